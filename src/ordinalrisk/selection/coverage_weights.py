r"""Class weights that reach a wanted coverage of each class.

The smallest mean size at which every class ``k`` is covered in a share :math:`t_k` of its rows has the
Lagrangian

.. math:: E|C| - \sum_k \lambda_k \big(P(Y \in C \mid Y = k) - t_k\big),

which a label ``j`` enters with :math:`1 - h_j p_j(x)`, where :math:`h_j = \lambda_j / P(Y = j)`: its
minimisers are the frontier's sets of a weighted loss at the threshold 1, one weight for each target. Each
weight is the smallest that meets its own target while the others stay, in turn until none moves: coordinate
ascent of the concave dual.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from numbers import Number as AnyNumber
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import expectation_threshold
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.display import tables
from ordinalrisk.display.tables import ColumnsByName, LabelColumn
from ordinalrisk.display.text_table import TextTable
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.growth.kernels import cpu
from ordinalrisk.growth.rules import GrowthRule, as_growth
from ordinalrisk.inputs.labels import Classes, as_classes, labelled_matrix
from ordinalrisk.inputs.numbers import as_fraction, decimal_text
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.inputs.weights import values_by_class
from ordinalrisk.losses.cost_table import DIAGONAL, CostTable, GainTables
from ordinalrisk.losses.kinds import WeightedLoss
from ordinalrisk.prediction.interval_set import IntervalSet

_DIGITS = 3
_GRID = [float(f"{10 ** (step / 1000):.5g}") for step in range(-3_000, 9_001)]
_MOST_SWEEPS = 30
_MOST_ROUNDINGS = 10  # for each class
_NOT_MOVED = 2  # places in the grid

Weights = tuple[float, ...]


@dataclass(frozen=True)
class CoverageWeights(tables.Table):
    """Class weights, and the ``alpha`` at which the coverage of every class reaches its target.

    Attributes
    ----------
    weights : tuple of float
        The weight of each class, with few digits; the largest is 1.
    alpha : Fraction
        The risk of these weights at which the targets are met on the rows that they were chosen with.
    loss : WeightedLoss
        The loss with these weights.
    coverage : tuple of float
        The coverage of each class on these rows; NaN for a class without rows.
    mean_size : float
        The mean number of labels in an interval on these rows.
    targets : tuple of Fraction or None
        The wanted coverage of each class.
    classes : tuple
        The labels in order.
    """

    weights: Weights
    alpha: Fraction
    loss: WeightedLoss
    coverage: tuple[float, ...]
    mean_size: float
    targets: tuple[Fraction | None, ...]
    classes: tuple[Any, ...]

    def _columns(self) -> ColumnsByName:
        positions = np.arange(len(self.classes))
        return {
            "class": LabelColumn(positions, as_classes([*self.classes])),
            "target": [None if target is None else float(target) for target in self.targets],
            "coverage": [*self.coverage],
            "weight": [*self.weights],
        }

    def _words(self) -> str:
        return f"alpha {float(self.alpha):.4g}, mean size {self.mean_size:.4g}"

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [
            (str(label), "" if target is None else decimal_text(target), f"{coverage:.4f}", f"{weight:g}")
            for label, target, coverage, weight in zip(
                self.classes, self.targets, self.coverage, self.weights, strict=True
            )
        ]
        table = TextTable("", ("class", "target", "coverage", "weight"), rows).text()
        return f"{table}\n{self._words()}"


def weights_for_coverage(
    proba: Any, y: Any, targets: Any, *, classes: Any = None, growth: Any = "frontier"
) -> CoverageWeights:
    r"""Find class weights and an ``alpha`` with which small sets reach a wanted coverage of each class.

    The weights ``h`` aim at

    .. math:: \min_h \; \text{mean size} \quad \text{such that} \quad
              \text{coverage}_k \ge t_k \; \text{for every class } k.

    ``RiskController(result.loss, result.alpha)`` calibrated on the same rows meets the targets on them, and
    its sets are on average no larger there than those of the plain coverage loss that meets them. The paper
    leaves open how to choose weights (Section 4).

    Parameters
    ----------
    proba : array-like of shape (n, K)
        Class probabilities on the host, from a model that was not trained on these rows.
    y : array-like of shape (n,)
        The true labels.
    targets : number, sequence or mapping
        The wanted coverage: of every class, of each class in label order, or by class. A class that is not in
        the mapping, or has None, has no target; it gets no weight where that makes intervals smaller.
    classes : sequence, optional
        The labels in order, as for :class:`RiskController`.
    growth : GrowthRule or str
        How intervals grow. The levels must depend on the weights, so ``"rps"`` is refused.

    Returns
    -------
    CoverageWeights
        The weights, the ``alpha``, and the coverage and size on these rows.

    Notes
    -----
    Choose on other rows than you calibrate with. The rows are used to choose the weights and to count the
    coverage, so on new rows it is lower, and a calibration on the same rows has no guarantee. Choose on one
    part of the rows and calibrate on the other (:func:`~ordinalrisk.splitting.split_rows`): the weighted risk
    of new rows is then at most ``alpha``, and coverages are near the targets, without a guarantee for each.
    Guarantees for each class come from a controller with ``condition_on="label"``.

    If too many rows of a class give it probability 0, only sets of all labels reach its target.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=1000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> result = weights_for_coverage(proba, y, {0: 0.7, 1: 0.8, 2: 0.8, 3: 0.8, 4: 0.9})
    >>> print(result)
    class  target  coverage  weight
        0     0.7    0.7053   0.605
        1     0.8    0.8034   0.317
        2     0.8    0.8010   0.137
        3     0.8    0.8020   0.304
        4     0.9    0.9068       1
    alpha 0.06306, mean size 2.829
    """
    require_same_rows(proba=proba, y=y)
    matrix, labels, known = labelled_matrix(proba, y, classes)
    wanted = _targets(targets, known)
    rows = _CoverageProblem(matrix, labels, _rows_to_cover(wanted, labels, known), _weighted_rule(growth))
    best = min(_candidates(rows), key=lambda candidate: candidate.n_labels)
    loss = WeightedLoss(best.weights)
    costs = CostTable.of(loss, len(known))
    steps = rows.rule.steps(matrix, labels, costs, None)
    curve = RiskCurve(steps, unit=costs.unit, n_rows=len(matrix), bound=costs.bound)
    alpha = (curve.total_loss(best.threshold) + curve.bound) / (curve.n_rows + 1)
    ends = rows.rule.intervals(matrix, costs, expectation_threshold(curve, alpha), None)
    tally = Tally.of(labels, IntervalSet.of(*ends, known))
    return CoverageWeights(
        weights=best.weights,
        alpha=alpha,
        loss=loss,
        coverage=tuple(tally.class_coverage().tolist()),
        mean_size=tally.mean_size(),
        targets=wanted,
        classes=tuple(known.tolist()),
    )


class _Candidate(NamedTuple):
    """Weights, the largest thresholds that meet each target and all targets, and the labels in all sets."""

    weights: Weights
    thresholds: dict[int, float]
    threshold: float
    n_labels: int


class _CoverageProblem(NamedTuple):
    """The rows, the number of rows of each class to cover, and the growth rule."""

    proba: NDArray[Any]
    labels: NDArray[np.int64]
    needed: dict[int, int]
    rule: GrowthRule

    def candidate(self, weights: Weights) -> _Candidate:
        levels = self.rule.levels(self.proba, WeightedLoss(weights))
        own = levels[np.arange(len(levels)), self.labels]
        thresholds = {k: _ranked_value(own[self.labels == k], needed) for k, needed in self.needed.items()}
        threshold = min(thresholds.values())
        return _Candidate(weights, thresholds, threshold, int((levels >= threshold).sum()))


def _candidates(rows: _CoverageProblem) -> Iterator[_Candidate]:
    """Yield equal weights, then rounded multipliers, raised where rounding misses a target.

    Rounding can move the point label of a row, and so change its coverage.
    """
    n_classes = rows.proba.shape[1]
    yield rows.candidate((1.0,) * n_classes)
    multipliers = _multipliers(rows)
    weights = tuple(_rounded(multiplier / max(multipliers)) for multiplier in multipliers)
    for _ in range(_MOST_ROUNDINGS * n_classes):
        yield (candidate := rows.candidate(weights))
        behind = min(candidate.thresholds, key=candidate.thresholds.__getitem__)
        if candidate.thresholds[behind] == max(candidate.thresholds.values()):
            return
        if weights[behind] < 1:
            weights = (*weights[:behind], _next(weights[behind], 1), *weights[behind + 1 :])
        else:
            weights = tuple(weight if weight == 1 else _next(weight, -1) for weight in weights)


def _multipliers(rows: _CoverageProblem) -> list[float]:
    """Find for each class the smallest weight that meets its target at threshold 1, given the others."""
    n_classes = rows.proba.shape[1]
    multipliers = [float(k in rows.needed) for k in range(n_classes)]
    places = dict.fromkeys(rows.needed, _GRID.index(1))
    of_class = {k: rows.proba[rows.labels == k] for k in rows.needed}

    def covers(k: int, place: int) -> bool:
        gains = _gains([*multipliers[:k], _GRID[place], *multipliers[k + 1 :]])
        levels = cpu.levels(of_class[k], gains, rows.rule.name, rows.rule.point)
        return int((levels[:, k] >= 1).sum()) >= rows.needed[k]

    for _ in range(_MOST_SWEEPS):
        moved = 0
        for k, before in places.items():
            places[k] = min(_first(partial(covers, k), len(_GRID), before), len(_GRID) - 1)
            multipliers[k] = _GRID[places[k]]
            moved = max(moved, abs(places[k] - before))
        if moved <= _NOT_MOVED:
            break
    return multipliers


def _gains(weights: Sequence[float]) -> GainTables:
    """Make the gain tables of a weighted loss without its exact table, which takes long."""
    h = np.array(weights)
    K = len(h)
    label = np.arange(K)
    return GainTables(
        left=np.diag(np.where(label < K - 1, h, 0)),
        right=np.diag(np.where(label > 0, h, 0)),
        shape=DIAGONAL,
        mode_weights=h,
        has_price=h > 0,
        weighted=True,
        bound=float(h.max()),
        rank=1 - np.eye(K, dtype=np.int64),
        one_step=True,
    )


def _first(holds: Callable[[int], bool], n: int, near: int) -> int:
    """Find the first of 0 .. n-1 from which on ``holds`` is true, else ``n``; fast if close to ``near``."""
    below, above, reach = near - 1, near, 1
    while above < n and not holds(above):
        below, above, reach = above, above + reach, 2 * reach
    reach = 1
    while below >= 0 and holds(below):
        above, below, reach = below, below - reach, 2 * reach
    return bisect_left(range(n), True, max(below + 1, 0), min(above, n), key=holds)


def _ranked_value(values: NDArray[np.float64], rank: int) -> float:
    """Return the ``rank``-th largest value."""
    return float(np.partition(values, len(values) - rank)[len(values) - rank])


def _rounded(weight: float) -> float:
    return float(f"{weight:.{_DIGITS}g}")


def _next(weight: float, steps: int) -> float:
    """Move a weight by units of its last digit; 0 stays 0."""
    if not weight:
        return weight
    unit = Fraction(10) ** (math.floor(math.log10(weight)) + 1 - _DIGITS)
    return _rounded(float(as_fraction(weight) + steps * unit))


def _weighted_rule(growth: Any) -> GrowthRule:
    rule = as_growth(growth)
    if not rule.uses_loss:
        raise ValueError(f'growth="{rule.name}" does not depend on the weights of a loss; take "frontier".')
    if rule.point == "given":
        raise ValueError('growth must find its own point labels; point="given" is not for choosing weights.')
    return rule


def _targets(targets: Any, classes: Classes) -> tuple[Fraction | None, ...]:
    labels = classes.tolist()
    if isinstance(targets, Mapping):
        by_label = dict.fromkeys(labels) | {**targets}
        values = values_by_class(by_label, classes, "targets")
    elif isinstance(targets, str | AnyNumber):
        values = [targets] * len(labels)
    else:
        values = [*targets] if isinstance(targets, Iterable) and getattr(targets, "ndim", 1) != 0 else []
        if len(values) != len(labels):
            raise ValueError(
                f"targets must be one number, a number for each of the {len(labels)} classes, or a mapping "
                f"from classes to numbers; got {targets!r}."
            )
    exact = tuple(None if target is None else as_fraction(target, "targets") for target in values)
    for label, target in zip(labels, exact, strict=True):
        if target is not None and not 0 <= target < 1:
            raise ValueError(
                "targets must lie between 0 and 1, below 1; that of class "
                f"{label!r} is {decimal_text(target)}."
            )
    if not any(exact):
        raise ValueError("targets are all missing or 0; give at least one class a coverage to reach.")
    return exact


def _rows_to_cover(
    targets: Sequence[Fraction | None], labels: NDArray[np.int64], classes: Classes
) -> dict[int, int]:
    """Count the rows to cover in each class that has a target."""
    needed = {}
    for k, n in enumerate(np.bincount(labels, minlength=len(classes)).tolist()):
        if target := targets[k]:
            if not n:
                raise ValueError(
                    f"Class {classes.tolist()[k]!r} has a target but no rows; leave it out of targets, or "
                    "add rows."
                )
            needed[k] = math.ceil(target * n)
    return needed
