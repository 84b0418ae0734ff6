"""Learn the map of the scores and the growth rule on rows that are set apart.

The rows are set apart from the calibration rows, or are training rows with predictions of models that were
not trained on them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.spec import Spec
from ordinalrisk.calibration.warning_category import CalibrationWarning
from ordinalrisk.growth.rules import FrontierGrowth
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.caller import level_of_caller
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes, as_classes, class_indices, ordered_categories
from ordinalrisk.inputs.probability_matrix import as_matrix
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.preparation.choosing_growth import sizes_and_rule
from ordinalrisk.preparation.recalibrator import Recalibrator, recalibrator_of
from ordinalrisk.preparation.rows_apart import FEWEST, Mask, number_apart, rows_apart
from ordinalrisk.recalibration.applying import recalibrated
from ordinalrisk.recalibration.reading import as_scores, kind_of


@dataclass(frozen=True)
class Learned:
    """What was learned, and which rows it was learned on, if these were set apart from calibration rows."""

    spec: Spec
    recalibrator: Recalibrator | None = None
    growth_sizes: Mapping[str, float] | None = None
    apart: Mask | None = None


def learned_apart(
    spec: Spec, proba: Any, y: Any, recalibrate: Any, recalibration_rows: Any, *, groups: Any, clusters: Any
) -> Learned:
    """Set rows apart at random, and learn on them."""
    recalibrator = None if recalibrate is None else recalibrator_of(recalibrate, classes=spec.classes)
    scores = as_matrix(proba, "scores", fewest=1)
    n_rows, n_scores = scores.shape
    classes = _classes(spec, recalibrator, y, n_scores)
    labels = np.asarray(to_host(class_indices(y, classes, n_rows)), np.int64)
    units = None if clusters is None else RowNames("clusters").numbered(clusters, n_rows)
    group = None if groups is None else RowNames("groups").numbered(groups, n_rows)
    n_groups = 1 if group is None else int(group.max()) + 1
    apart = drawn(spec, classes, recalibration_rows, units, n_rows, n_groups)
    if not apart.any():
        return replace(unlearned(spec, classes, n_rows, n_scores), apart=apart)
    if recalibrator is not None:  # an error names the row by the number that the caller knows
        kind = kind_of(scores) if recalibrator.scores == "auto" else recalibrator.scores
        as_scores(scores, kind)
        recalibrator.set_params(scores=kind)
    else:
        recalibrated(scores, spec.recalibration)
    rows = Batch(scores, labels, group, units).some(np.flatnonzero(apart))
    return replace(fitted(spec, classes, rows, recalibrator), apart=apart)


def fitted(spec: Spec, classes: Classes, rows: Batch, recalibrator: Recalibrator | None) -> Learned:
    """Fit the map on the scores of rows, if there is one to fit; choose the growth rule, if it is open."""
    known, sizes = replace(spec, classes=classes), None
    if recalibrator is not None:
        recalibrator.set_params(classes=classes)
        recalibrator.fit(rows.proba, classes[rows.labels], clusters=rows.clusters)
        known = replace(known, recalibration=recalibrator.recalibration_)
    if spec.growth_is_open:
        mapped = replace(rows, proba=recalibrated(rows.proba, known.recalibration))
        sizes, rule = sizes_and_rule(known, classes, mapped)
        known = replace(known, growth=rule)
    return Learned(known, recalibrator, sizes)


def drawn(
    spec: Spec,
    classes: Classes,
    asked: Any,
    units: NDArray[np.int64] | None,
    n_rows: int,
    n_groups: int,
) -> Mask:
    """Return which rows are set apart; see :mod:`ordinalrisk.preparation.rows_apart`."""
    of_rows = np.arange(n_rows) if units is None else units
    costs = spec.costs(len(classes))
    risk = min(spec.alphas(spec.alpha, classes, costs)) / spec.largest_alpha(costs)
    n_parts = n_groups * (len(classes) if spec.condition_on == "label" else 1)
    default = number_apart(int(of_rows.max()) + 1, risk, n_parts)
    return rows_apart(asked, default, of_rows, spec.random_state)


def _classes(spec: Spec, recalibrator: Recalibrator | None, y: Any, n_scores: int) -> Classes:
    for given in (spec.classes, getattr(recalibrator, "classes", None)):
        if given is not None:
            return as_classes(given)
    if (categories := ordered_categories(y)) is not None:
        return as_classes(categories)
    n_labels = n_scores if spec.recalibration is None else spec.recalibration.n_labels
    return np.arange(n_labels)


def unlearned(spec: Spec, classes: Classes, n_rows: int, n_scores: int) -> Learned:
    """Use the scores as they are, with a warning, because there are too few rows to set some apart."""
    few = f"{n_rows} rows are too few to set {FEWEST} of them apart without larger sets"
    needs_map = spec.recalibration is None and n_scores != len(classes)
    if needs_map:
        raise ValueError(
            f"{few}, and {n_scores} scores for {len(classes)} labels need a map. Say with recalibration_rows "
            "how many rows to fit it on, or pass a fitted one as RiskController(recalibration=...)."
        )
    warnings.warn(
        f"{few}: the scores are used as they are, and growth=\"auto\" is 'frontier'. recalibration_rows sets "
        "rows apart all the same.",
        CalibrationWarning,
        stacklevel=level_of_caller(),
    )
    growth = FrontierGrowth() if spec.growth_is_open else spec.growth
    return Learned(replace(spec, classes=classes, growth=growth))
