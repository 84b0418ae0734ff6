"""All checks of one calibration."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.calibration.warning_category import CalibrationWarning
from ordinalrisk.checks.fit import ScoredRows
from ordinalrisk.checks.groups import group_warnings
from ordinalrisk.checks.missed_classes import class_warnings
from ordinalrisk.checks.score_quality import score_warnings, tie_warnings, training_warnings
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.inputs.scattered_rows import ScatteredRows
from ordinalrisk.prediction.predictor import Predictor

_MOST_ROWS, _FEWEST_ROWS = 5_000, 1_000
_MOST_NUMBERS = 200_000  # in the scores of the sample


def rows_to_check(n_classes: int) -> ScatteredRows:
    """Return the summary of calibration rows that :func:`findings` looks at."""
    return ScatteredRows(min(_MOST_ROWS, max(_FEWEST_ROWS, _MOST_NUMBERS // n_classes)))


def warn_of_findings(spec: Spec, own: Predictor, sample: ScatteredRows | None, stacklevel: int) -> None:
    """Warn of everything that looks wrong with a calibration; ``sample`` is None if checks are off."""
    for sentences in [] if sample is None else findings(spec, own, sample):
        warnings.warn(sentences, CalibrationWarning, stacklevel=stacklevel + 1)


def findings(spec: Spec, own: Predictor, sample: ScatteredRows) -> list[str]:
    """Return a few sentences for each thing that looks wrong; ``own`` predicts the calibration's sets."""
    calibration = own.calibration
    rows = _one_of_each_cluster(sample.drawn())
    scored = ScoredRows.of(rows, calibration.classes)
    alphas = spec.alphas(spec.alpha, calibration.classes, calibration.costs)
    affordable = max(alphas) * (_mean_stake(calibration, rows) if spec.relative else 1)
    unlike, ties = [*score_warnings(scored)], tie_warnings(scored, calibration.costs, affordable)
    if spec.side is not None or spec.growth_loss is not None:
        ties = iter(())  # a tied label can be in the set because of a label beyond it
    trained_on = training_warnings(scored)
    # with scores that do not fit the labels, what the sets miss follows from that, but not what weights do
    about_sets = class_warnings(spec, own, rows, sampled=not sample.whole, weights_only=bool(unlike))
    about_groups = group_warnings(rows)
    return [
        *_alpha_warnings(spec, calibration, alphas),
        *about_groups,
        *unlike,
        *trained_on,
        *ties,
        *about_sets,
    ]


def _mean_stake(calibration: Calibration, rows: Batch) -> Fraction:
    """Return the mean of the largest loss of each row."""
    costs = calibration.costs
    class_rows = np.bincount(rows.labels, minlength=len(calibration.classes))
    return costs.stake(class_rows) * costs.unit / len(rows)


def _alpha_warnings(spec: Spec, calibration: Calibration, alphas: list[Fraction]) -> Iterator[str]:
    bound = spec.largest_alpha(calibration.costs)
    large = [alpha for alpha in alphas if 2 * alpha > bound]
    if not large or (isinstance(spec.alpha, Mapping) and len(large) < len(alphas)):
        return
    alpha = decimal_text(max(large))
    units = calibration.costs.units
    of_coverage = bound == 1 and np.count_nonzero(units < units.max()) == len(units)  # the diagonal
    meant = f" For a coverage of {alpha} write `alpha={decimal_text(1 - max(large))}`." if of_coverage else ""
    of = "what could be lost" if spec.relative else f"the largest loss, {decimal_text(bound)}"
    loss = "the share that is lost" if spec.relative else "the expected loss"
    yield f"alpha={alpha} allows more than half of {of}: alpha is {loss}, not the coverage.{meant}"


def _one_of_each_cluster(rows: Batch) -> Batch:
    """Return the first row of each cluster: rows of one cluster are not independent."""
    if rows.clusters is None:
        return rows
    first: dict[object, int] = {}
    for i, cluster in enumerate(rows.clusters):
        first.setdefault(cluster, i)
    places = np.array([*first.values()])
    groups = None if rows.groups is None else [rows.groups[i] for i in places.tolist()]
    points = None if rows.point_labels is None else rows.point_labels[places]
    return replace(
        rows,
        proba=rows.proba[places],
        labels=rows.labels[places],
        groups=groups,
        clusters=None,
        point_labels=points,
    )
