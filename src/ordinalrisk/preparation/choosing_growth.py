"""Choose the growth rule with the smallest sets, by cross-validation with the options of the calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.spec import Spec
from ordinalrisk.execution.calibrate import calibrate
from ordinalrisk.execution.fold import InMemory
from ordinalrisk.growth.rules import AdaptiveGrowth, FrontierGrowth, GrowthRule, RankedProbabilityGrowth
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.prediction.predictor import Predictor

CANDIDATES: dict[str, GrowthRule] = {
    "frontier": FrontierGrowth(),
    "frontier (bayes)": FrontierGrowth("bayes"),
    "frontier (median)": FrontierGrowth("median"),
    "adaptive": AdaptiveGrowth(),
    "rps": RankedProbabilityGrowth(),
}
"""The rules that are compared; an earlier one is kept unless a later one is clearly better."""
_FOLDS, _MOST = 5, 20_000


def sizes_and_rule(spec: Spec, classes: Classes, rows: Batch) -> tuple[Mapping[str, float], GrowthRule]:
    """Return the cross-validated mean size of each rule's sets, and a rule.

    Of the rules that are larger than the smallest one by at most a standard error of the difference, it is
    the first of :data:`CANDIDATES`.
    """
    rows = rows if len(rows) <= _MOST else rows.some(np.arange(_MOST))
    fold_of = _folds(rows)
    sizes = {
        name: _sizes(replace(spec, growth=rule), classes, rows, fold_of) for name, rule in CANDIDATES.items()
    }
    means = {name: float(each.mean()) for name, each in sizes.items()}
    smallest = sizes[min(means, key=means.__getitem__)]
    chosen = next(name for name, each in sizes.items() if _is_about_as_small(each, smallest))
    return means, CANDIDATES[chosen]


def _folds(rows: Batch) -> NDArray[np.int64]:
    units = np.arange(len(rows))
    if rows.clusters is not None:
        units = RowNames("clusters").numbered(rows.clusters, len(rows))
    n_units = int(units.max()) + 1
    place: NDArray[np.int64] = np.random.default_rng(0).permutation(n_units) % min(_FOLDS, n_units)
    return place[units]


def _sizes(spec: Spec, classes: Classes, rows: Batch, fold_of: NDArray[np.int64]) -> NDArray[np.int64]:
    sizes = np.full(len(rows), len(classes))
    for fold in range(int(fold_of.max()) + 1):
        held_out, others = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        if not len(others):
            continue
        calibration, _ = calibrate(spec, classes, [InMemory([rows.some(others)])], check=False)
        predict = Predictor.of(spec, calibration)
        sets, _ = predict.sets(
            rows.some(held_out), unseen_groups="full", random_state=fold if spec.randomize else None
        )
        sizes[held_out] = np.asarray(sets.upper_index) - np.asarray(sets.lower_index) + 1
    return sizes


def _is_about_as_small(sizes: NDArray[np.int64], smallest: NDArray[np.int64]) -> bool:
    larger = sizes - smallest
    return bool(larger.mean() <= larger.std() / np.sqrt(len(larger)))
