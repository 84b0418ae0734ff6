"""Cross-validation of one loss and growth rule: folds, their thresholds, and the sets that they lead to.

The rows are shuffled and cut into folds. The threshold of each fold is calibrated on the other folds, and the
counts of all folds add up. The steps of a row's loss do not depend on its fold, so they are computed once for
each loss and growth rule and concatenated for each fold.

Rows of one cluster stay together. Clusters are then exchangeable, not rows: each counts once, with the mean
loss of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import budget_of, expectation_threshold
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.steps import Steps
from ordinalrisk.curves.unit_steps import UnitSteps
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.growth.rules import GrowthRule
from ordinalrisk.inputs.batch import merge_all
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import Number, as_fraction, checked_seed
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.prediction.ends import Ends, freed
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.splitting import split_folds


class ShuffledFolds(NamedTuple):
    """The probabilities, label positions and cluster numbers of each fold."""

    proba: Sequence[NDArray[Any]]
    labels: Sequence[NDArray[np.int64]]
    classes: Classes
    clusters: Sequence[NDArray[np.int64]] | None = None


class CrossValidated(NamedTuple):
    """The results of all folds at one ``alpha``."""

    tally: Tally
    certified: bool  # every fold had enough rows or clusters to calibrate with
    ends: list[Ends]  # of the sets of each fold


def shuffled_folds(
    proba: NDArray[Any],
    labels: NDArray[np.int64],
    classes: Classes,
    folds: int,
    random_state: int,
    clusters: Any = None,
) -> ShuffledFolds:
    """Copy the rows, once, into the folds of :func:`~ordinalrisk.splitting.split_folds`."""
    parts = split_folds(len(proba), folds, clusters=clusters, random_state=checked_seed(random_state))
    number = None if clusters is None else RowNames("clusters").numbered(clusters, len(proba))
    return ShuffledFolds(
        [np.ascontiguousarray(proba[part]) for part in parts],
        [labels[part] for part in parts],
        classes,
        None if number is None else [np.unique(number[part], return_inverse=True)[1] for part in parts],
    )


def cross_validated(
    rows: ShuffledFolds,
    growth: GrowthRule,
    costs: CostTable,
    curves: Iterable[RiskCurve],
    alphas: Sequence[Number],
) -> list[CrossValidated]:
    """Return the results of each ``alpha`` with the curves of :func:`curves_without_each`."""
    exact = [as_fraction(alpha, "alpha") for alpha in alphas]
    folds: list[list[tuple[Tally, Ends]]] = []
    certified = [True] * len(exact)
    for fold, curve in enumerate(curves):
        sets_at: dict[float, tuple[Tally, Ends]] = {}
        for threshold in (thresholds := [expectation_threshold(curve, alpha) for alpha in exact]):
            if threshold not in sets_at:
                ends = freed(growth.intervals(rows.proba[fold], costs, threshold, None), costs)
                sets_at[threshold] = Tally.of(rows.labels[fold], IntervalSet.of(*ends, rows.classes)), ends
        folds.append([sets_at[threshold] for threshold in thresholds])
        enough = (budget_of(curve, alpha) >= 0 for alpha in exact)
        certified = [before and now for before, now in zip(certified, enough, strict=True)]
    results = []
    for of_all_folds, *parts in zip(certified, *folds, strict=True):
        tallies, ends_of_folds = zip(*parts, strict=True)
        results.append(CrossValidated(merge_all(tallies), of_all_folds, [*ends_of_folds]))
    return results


def curves_without_each(
    rows: ShuffledFolds, growth: GrowthRule, costs: CostTable, relative: bool = False
) -> Iterator[RiskCurve]:
    """For each fold, yield the risk curve of all others; ``relative`` if ``alpha`` is a share."""
    folds = [*zip(rows.proba, rows.labels, strict=True)]
    if rows.clusters is not None:
        losses = [UnitSteps.of_rows(growth.row_levels(p, costs, None), y, costs, relative) for p, y in folds]
        for fold in range(len(folds)):
            yield _clustered_curve(_without(losses, fold), _without(rows.clusters, fold), costs)
        return
    steps: list[Any] = [growth.steps(proba, labels, costs, None) for proba, labels in folds]
    n_rows = sum(map(len, rows.labels))
    stakes = [costs.stake(np.bincount(y, minlength=costs.n_classes)) * costs.unit for y in rows.labels]
    for fold, labels in enumerate(rows.labels):
        others, stake = (
            Steps.concatenated(_without(steps, fold)),
            sum(_without(stakes, fold)) if relative else None,
        )
        n_others = n_rows - len(labels)
        yield RiskCurve(others, unit=costs.unit, n_rows=n_others, bound=costs.bound, stake=stake)


def _clustered_curve(
    losses: Sequence[UnitSteps], clusters: Sequence[NDArray[np.int64]], costs: CostTable
) -> RiskCurve:
    """Return the risk curve of clusters, each of which counts once."""
    firsts = np.cumsum([0, *(int(numbers.max()) + 1 for numbers in clusters)])
    numbers = np.concatenate([part + first for part, first in zip(clusters, firsts[:-1], strict=True)])
    steps, parts = UnitSteps.concatenated(losses).clustered(numbers)
    unit = costs.unit / parts
    largest = int(costs.bound / unit)
    summed, stake = steps.steps(largest), steps.stake(unit)
    return RiskCurve(summed, unit=unit, n_rows=steps.n_units, bound=costs.bound, stake=stake)


def _without(items: Sequence[Any], fold: int) -> list[Any]:
    return [*items[:fold], *items[fold + 1 :]]
