"""Classes that sets miss far more often than users would expect from ``alpha`` and the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.spec import Spec
from ordinalrisk.checks.evidence import is_rarer
from ordinalrisk.display.text_table import listed
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import WeightedLoss
from ordinalrisk.prediction.predictor import Predictor

Mask = NDArray[np.bool_]

_HALF = Fraction(1, 2)
_WHY_RARE = (
    " alpha limits the mean loss of all rows together, so a class that is rare or weighs little can be "
    "missed nearly always."
)
_FEWEST_ROWS = 5  # of a class
_DOUBT = Fraction(1, 10)  # what is said is true of these rows; of new rows, too, with some certainty
_MORE, _LEAST_HARM = 1.5, 0.02  # times the misses with equal weights, and more by this share of the rows


@dataclass(frozen=True)
class _Class:
    """How often the sets cover one class."""

    name: Any
    n_rows: int
    n_covered: int

    @property
    def missed(self) -> float:
        return 1 - self.n_covered / self.n_rows

    def __str__(self) -> str:
        return f"{self.name!r} ({self.n_covered:,} of {self.n_rows:,} rows covered)"


def class_warnings(
    spec: Spec, own: Predictor, rows: Batch, *, sampled: bool, weights_only: bool = False
) -> Iterator[str]:
    """Say which classes are covered less than half as often as ``1 - alpha``, and which weights hurt.

    Losses by distance and calibrations for a shifted population are not checked, because they do not
    guarantee a coverage of these rows.
    """
    calibration = own.calibration
    costs, K = calibration.costs, len(calibration.classes)
    if calibration.shift is not None or not all(costs.two_valued(k) for k in range(K)):
        return
    covered = _covers(own, rows, 0 if spec.randomize else None)
    names, where = calibration.classes.tolist(), f"the{' sampled' if sampled else ''} calibration rows"
    n_rows = np.bincount(rows.labels, minlength=K)
    n_covered = np.bincount(rows.labels[covered], minlength=K)
    weights = [costs.bound_of(k) for k in range(K)]
    alphas = [
        alpha / spec.largest_alpha(costs) for alpha in spec.alphas(spec.alpha, calibration.classes, costs)
    ]
    exempt = spec.pooling(calibration.classes).exempt
    rare = [
        _Class(names[k], int(n_rows[k]), int(n_covered[k]))
        for k in {*range(K)} - exempt
        if weights[k]
        and n_rows[k] >= _FEWEST_ROWS
        and is_rarer(int(n_covered[k]), int(n_rows[k]), (1 - alphas[k % len(alphas)]) * _HALF, _DOUBT)
    ]
    found = list[str]()
    if rare and not weights_only:
        worst = sorted(rare, key=lambda each: -each.missed)
        of_alpha = f" = {decimal_text(1 - alphas[0])}" if len(alphas) == 1 else ""
        why = "" if spec.condition_on else _WHY_RARE
        found.append(
            f"Some classes are covered less than half as often as 1 - alpha{of_alpha} on {where}: "
            f"{listed(map(str, worst))}.{why}"
        )
    unequal = len({*weights} - {0}) > 1
    if unequal and not (costs.side or spec.relative or spec.pool_classes or spec.exempt_classes):
        plain = _covers_with_equal_weights(spec, rows, weights, alphas, covered)
        found += _harm(rows, covered, plain, weights, names, where)
    if found:
        yield " ".join([*found, _remedies(spec, unequal)])


def _harm(
    rows: Batch, covered: Mask, plain: Mask, weights: list[Fraction], names: list[Any], where: str
) -> list[str]:
    """Say so if all rows, or classes that weigh more than the mean, are missed more often than ``plain``."""
    n_rows, missed, before, lost, won = (
        _by_class_and_all(rows.labels[each], weights)
        for each in (slice(None), ~covered, ~plain, plain & ~covered, covered & ~plain)
    )
    hurt = [
        k
        for k in np.flatnonzero(missed > _MORE * before + _LEAST_HARM * n_rows).tolist()
        if n_rows[k] >= _FEWEST_ROWS and is_rarer(int(won[k]), int(won[k] + lost[k]), _HALF, _DOUBT)
    ]
    K, mean, found = len(weights), sum(weights) / len(weights), []
    if K in hurt:
        after, without = (f"{1 - each[K] / n_rows[K]:.1%}" for each in (missed, before))
        found.append(
            f"With these weights {after} of all rows {'' if all(weights) else 'with a weight '}together are "
            f"covered on {where}, with equal weights {without}: alpha limits the mean weight of what is "
            "missed, so it allows many more misses of classes that weigh little, and all sets shrink."
        )
    heavy = [
        f"{names[k]!r} (weight {decimal_text(weights[k])}: {missed[k] / n_rows[k]:.1%} of {n_rows[k]:,} rows "
        f"missed, {before[k] / n_rows[k]:.1%} with equal weights)"
        for k in hurt
        if k < K and weights[k] > mean
    ]
    if heavy:
        found.append(f"The weights hurt classes that they should protect, on {where}: {listed(heavy)}.")
    return found


def _by_class_and_all(labels: NDArray[np.int64], weights: list[Fraction]) -> NDArray[np.int64]:
    """Return the number of rows of each class, and of all classes with a weight together."""
    counts = np.bincount(labels, minlength=len(weights))
    return np.append(counts, counts[np.array(weights, bool)].sum())


def _covers_with_equal_weights(
    spec: Spec, rows: Batch, weights: list[Fraction], alphas: list[Fraction], covered: Mask
) -> Mask:
    """Return which rows are covered if classes with a weight all have the same, calibrated on these rows.

    Rows of strata that are too small for equal weights stay as they are.
    """
    counts = np.array(weights, bool)
    costs = CostTable.of(WeightedLoss(counts.astype(int)), len(weights))
    levels = spec.growth.row_levels(rows.proba, costs, rows.point_labels)[np.arange(len(rows)), rows.labels]
    first_missed = np.where(counts[rows.labels], levels, np.inf)
    plain = covered.copy()
    for label, mine in _strata(rows, by_class=spec.condition_on is not None):
        allowed = math.floor((len(mine) + 1) * alphas[label % len(alphas)] - 1)
        if allowed >= 0:
            plain[mine] = levels[mine] >= np.partition(first_missed[mine], allowed)[allowed]
    return plain


def _strata(rows: Batch, by_class: bool) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the rows of each group, or of each group and true class with the class."""
    of_group: dict[object, list[int]] = {}
    for i, group in enumerate(rows.groups or []):
        of_group.setdefault(group, []).append(i)
    for mine in map(np.array, of_group.values() or [range(len(rows))]):
        classes = np.unique(rows.labels[mine]).tolist() if by_class else []
        yield from ((k, mine[rows.labels[mine] == k]) for k in classes)
        if not by_class:
            yield 0, mine


def _covers(predictor: Predictor, rows: Batch, seed: int | None) -> Mask:
    sets, _ = predictor.sets(rows, random_state=seed)
    covered: Mask = (sets.lower_index <= rows.labels) & (rows.labels <= sets.upper_index)
    return covered


def _remedies(spec: Spec, unequal: bool) -> str:
    """Name the remedies that were not taken; with equal weights ``relative`` alone changes nothing."""
    by_class, remedies = spec.condition_on is not None, []
    if not (by_class or spec.relative):
        raised = "" if unequal else " with a larger weight for them"
        remedies.append(f"`relative=True`{raised} limits the share of the total weight that is missed")
    if unequal:
        each = "" if by_class else "`condition_on='label'` and "
        remedies.append(f"{each}equal weights keep alpha for each class")
    elif not by_class:
        remedies.append("`condition_on='label'` keeps alpha for each class")
    remedies.append("`alpha={label: risk, ...}` gives each class an alpha of its own")
    return f"What helps: {'; '.join(remedies)}."
