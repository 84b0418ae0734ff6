"""Classes that sets miss far more often than users would expect from ``alpha`` and the weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.loss_steps import LossSteps
from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.checks.evidence import is_rarer
from ordinalrisk.display.text_table import listed
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.prediction.predictor import Predictor

Mask = NDArray[np.bool_]

_HALF = Fraction(1, 2)
_WHY_RARE = (
    " alpha limits the mean loss of all rows together, so a class that is rare or weighs little can be "
    "missed nearly always."
)
_MORE, _LEAST_HARM = 1.5, 0.02  # times the misses without weights, plus this share of the class


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


def class_warnings(spec: Spec, own: Predictor, rows: Batch, *, sampled: bool) -> Iterator[str]:
    """Say which classes are covered less than half as often as ``1 - alpha``, and which weights hurt.

    Losses by distance and calibrations for a shifted population are not checked: they promise no coverage of
    these rows.
    """
    calibration = own.calibration
    costs, K = calibration.costs, len(calibration.classes)
    if calibration.shift is not None or not all(costs.two_valued(k) for k in range(K)):
        return
    seed = 0 if spec.randomize else None
    covered = _covers(own, rows, seed)
    names, of = calibration.classes.tolist(), " sampled" if sampled else ""
    n_rows = np.bincount(rows.labels, minlength=K)
    n_covered = np.bincount(rows.labels[covered], minlength=K)
    weights = [costs.bound_of(k) for k in range(K)]
    alphas = spec.alphas(spec.alpha, calibration.classes, costs)
    rare, found = [], list[str]()
    exempt = spec.pooling(calibration.classes).exempt
    for k in set(range(K)) - exempt:
        promised = 1 - alphas[k % len(alphas)] / spec.largest_alpha(costs)
        if weights[k] and is_rarer(int(n_covered[k]), int(n_rows[k]), promised * _HALF, K):
            rare.append(_Class(names[k], int(n_rows[k]), int(n_covered[k])))
    if rare:
        worst = sorted(rare, key=lambda each: -each.missed)
        of_alpha = f" = {decimal_text(1 - alphas[0] / spec.largest_alpha(costs))}" if len(alphas) == 1 else ""
        why = "" if spec.condition_on else _WHY_RARE
        found.append(
            f"Some classes are covered less than half as often as 1 - alpha{of_alpha} on the{of} calibration "
            f"rows: {listed(map(str, worst))}.{why}"
        )
    if len({*weights}) > 1 and spec.condition_on is None and not spec.relative:
        found += _harmful_weights(spec, calibration, rows, covered, weights, of)
    if found:
        yield " ".join([*found, _remedies(spec)])


def _harmful_weights(
    spec: Spec,
    calibration: Calibration,
    rows: Batch,
    covered: Mask,
    weights: list[Fraction],
    of: str,
) -> Iterator[str]:
    """Say so if a class that weighs more than the mean is missed more often than without weights."""
    K, names = len(weights), calibration.classes.tolist()
    mean, alpha = sum(weights) / K, spec.alphas(spec.alpha, calibration.classes, calibration.costs)[0]
    plain = replace(
        spec,
        loss="coverage",
        alpha=alpha / calibration.costs.bound,
        delta=None,
        confidence_bound="auto",
        randomize=False,
        random_state=None,
    )
    steps = LossSteps(plain, calibration.classes)
    steps.add(rows)
    without = _covers(Predictor.of(plain, steps.finish()), rows, None)
    lost = np.bincount(rows.labels[without & ~covered], minlength=K)
    won = np.bincount(rows.labels[covered & ~without], minlength=K)
    n_rows = np.bincount(rows.labels, minlength=K)
    n_missed, before = (np.bincount(rows.labels[~each], minlength=K) for each in (covered, without))
    hurt = [
        f"{names[k]!r} (weight {decimal_text(weights[k])}: {n_missed[k] / n_rows[k]:.1%} of {n_rows[k]:,} "
        f"rows missed, {before[k] / n_rows[k]:.1%} without weights)"
        for k in range(K)
        if weights[k] > mean
        and n_missed[k] > _MORE * before[k] + _LEAST_HARM * n_rows[k]
        and is_rarer(int(won[k]), int(won[k] + lost[k]), _HALF, K)
    ]
    if hurt:
        yield (
            f"The weights hurt classes that they should protect, on the{of} calibration rows: "
            f"{listed(hurt)}. alpha limits the mean weight of what is missed, so it allows many more misses "
            "of classes that weigh little, and the sets of all classes shrink."
        )


def _covers(predictor: Predictor, rows: Batch, seed: int | None) -> Mask:
    sets, _ = predictor.sets(rows, random_state=seed)
    covered: Mask = (sets.lower_index <= rows.labels) & (rows.labels <= sets.upper_index)
    return covered


def _remedies(spec: Spec) -> str:
    remedies = []
    if not spec.relative and spec.condition_on is None:
        remedies.append("`relative=True` limits the share of the total weight that is missed")
    if spec.condition_on is None:
        remedies.append("`condition_on='label'` keeps alpha for each class")
    remedies.append("a mapping {label: alpha} gives each class an alpha of its own")
    return f"What helps: {'; '.join(remedies)}."
