"""Cross-validation of one loss and growth rule: folds, their thresholds, and the sets that they lead to.

The rows are shuffled and cut into folds. The threshold of each fold is calibrated on the other folds, and the
counts of all folds add up. The steps of a row's loss do not depend on its fold, so they are computed once for
each loss and growth rule and joined for each fold.

Rows of one cluster stay together. Clusters are then exchangeable, not rows: each counts once, with the mean
loss of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import expectation_threshold, rows_needed
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.steps import Steps
from ordinalrisk.curves.unit_steps import UnitSteps
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.growth.rules import GrowthRule
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import Number, as_fraction
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.inputs.splitting import checked_seed, split_folds
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss
from ordinalrisk.prediction.ends import Ends
from ordinalrisk.prediction.interval_set import IntervalSet


class ShuffledFolds(NamedTuple):
    """The probabilities, label positions and cluster numbers of each fold."""

    proba: Sequence[NDArray[Any]]
    labels: Sequence[NDArray[np.int64]]
    classes: Classes
    clusters: Sequence[NDArray[np.int64]] | None = None

    @property
    def n_units(self) -> list[int]:
        """The number of rows, or of clusters where there are any, in each fold."""
        return (
            [*map(len, self.labels)] if self.clusters is None else [int(c.max()) + 1 for c in self.clusters]
        )

    @property
    def n_calibrated(self) -> int:
        """The fewest rows, or clusters, that a fold's threshold is calibrated with."""
        return sum(self.n_units) - max(self.n_units)


class FoldTotals(NamedTuple):
    """The counts over all folds, and whether every fold had enough rows or clusters to calibrate with."""

    tally: Tally
    certified: bool


def shuffled_folds(
    proba: NDArray[Any],
    labels: NDArray[np.int64],
    classes: Classes,
    folds: int,
    seed: int,
    clusters: Any = None,
) -> ShuffledFolds:
    """Shuffle the rows into the folds of :func:`split_folds`, copied once."""
    parts = split_folds(len(proba), folds, clusters=clusters, random_state=checked_seed(seed))
    number = None if clusters is None else RowNames("clusters").numbered(clusters, len(proba))
    return ShuffledFolds(
        [np.ascontiguousarray(proba[part]) for part in parts],
        [labels[part] for part in parts],
        classes,
        None if number is None else [np.unique(number[part], return_inverse=True)[1] for part in parts],
    )


def cross_validated(
    rows: ShuffledFolds, loss: IntervalLoss, growth: GrowthRule, alphas: Sequence[Number]
) -> list[FoldTotals]:
    """Return the totals of one loss and growth rule at each ``alpha``."""
    costs = CostTable.of(loss, len(rows.classes))
    curves = curves_without_each(rows, growth, costs)
    return [totals for totals, _ in measured(rows, growth, costs, curves, alphas)]


def measured(
    rows: ShuffledFolds,
    growth: GrowthRule,
    costs: CostTable,
    curves: Iterable[RiskCurve],
    alphas: Sequence[Number],
) -> list[tuple[FoldTotals, list[Ends]]]:
    """Return the totals at each ``alpha``, and the ends of the sets of each fold."""
    exact = [as_fraction(alpha, "alpha") for alpha in alphas]
    folds: list[list[tuple[Tally, Ends]]] = []
    for fold, curve in enumerate(curves):
        found_at: dict[float, tuple[Tally, Ends]] = {}
        for threshold in (thresholds := [expectation_threshold(curve, alpha) for alpha in exact]):
            if threshold not in found_at:
                ends = growth.intervals(rows.proba[fold], costs, threshold, None)
                found_at[threshold] = Tally.of(rows.labels[fold], IntervalSet.of(*ends, rows.classes)), ends
        folds.append([found_at[threshold] for threshold in thresholds])
    found = []
    for alpha, *parts in zip(exact, *folds, strict=True):
        tallies, sets = zip(*parts, strict=True)
        totals = FoldTotals(reduce(add, tallies), rows.n_calibrated >= rows_needed(alpha, costs.bound))
        found.append((totals, [*sets]))
    return found


def curves_without_each(rows: ShuffledFolds, growth: GrowthRule, costs: CostTable) -> Iterator[RiskCurve]:
    """For each fold, yield the risk curve of all others."""
    each = [*zip(rows.proba, rows.labels, strict=True)]
    if rows.clusters is not None:
        losses = [UnitSteps.of_rows(growth.row_levels(p, costs, None), y, costs) for p, y in each]
        for fold in range(len(each)):
            yield _clustered_curve(_without(losses, fold), _without(rows.clusters, fold), costs)
        return
    steps: list[Any] = [growth.steps(proba, labels, costs, None) for proba, labels in each]
    n_rows = sum(map(len, rows.labels))
    for fold, labels in enumerate(rows.labels):
        others = Steps.joined(_without(steps, fold))
        yield RiskCurve(others, unit=costs.unit, n_rows=n_rows - len(labels), bound=costs.bound)


def _clustered_curve(
    losses: Sequence[UnitSteps], clusters: Sequence[NDArray[np.int64]], costs: CostTable
) -> RiskCurve:
    """Return the risk curve of clusters, each of which counts once."""
    firsts = np.cumsum([0, *(int(numbers.max()) + 1 for numbers in clusters)])
    numbers = np.concatenate([part + first for part, first in zip(clusters, firsts[:-1], strict=True)])
    steps, parts = UnitSteps.joined(losses).clustered(numbers)
    unit = costs.unit / parts
    largest = int(costs.bound / unit)
    return RiskCurve(steps.steps(largest), unit=unit, n_rows=steps.n_units, bound=costs.bound)


def _without(items: Sequence[Any], fold: int) -> list[Any]:
    return [*items[:fold], *items[fold + 1 :]]
