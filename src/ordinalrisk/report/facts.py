"""What a calibration guarantees and what test rows show about it, as JSON types."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ordinalrisk.calibration.guarantees import Guarantee
from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.score_counts import (
    BinCounts,
    coarse_counts,
    comparison,
    difference,
    two_sample_p_value,
    why_not_compared,
)
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.curves.strata import Strata
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import CONFIDENCE, Estimate
from ordinalrisk.evaluation.outcomes import Evaluation
from ordinalrisk.evaluation.verdict import StratumRisk, strata_noun
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.losses.kinds import IntervalLoss
from ordinalrisk.recalibration.recalibration import Recalibration
from ordinalrisk.report.stops import MOST_CLASSES_HELD

MOST_PARTS = 120  # of more groups and classes, a report shows those with the most calibration rows


def measured(
    tally: Tally, loss: IntervalLoss, risk: Estimate | None = None, relative: bool = False
) -> dict[str, Any]:
    """Return the numbers that follow from counts; None for a class without rows.

    The risk is by default that of the rows. If ``relative``, risks are shares of what could be lost.

    Examples
    --------
    >>> from ordinalrisk import IntervalSet, WeightedLoss
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> numbers = measured(Tally.of(np.array([0, 1, 0]), sets), WeightedLoss())
    >>> numbers["sizes"], numbers["class_size"], numbers["held"]
    ([2, 1, 0], [1.0, 2.0, None], [[1, 1, 0], [0, 1, 1], [0, 0, 0]])
    """
    return {
        "risk": [*map(float, risk or (tally.relative_risk if relative else tally.risk)(loss, CONFIDENCE))],
        "coverage": [*map(float, tally.coverage(CONFIDENCE))],
        "mean_size": [*map(float, tally.mean_size(CONFIDENCE))],
        "sizes": tally.sizes.tolist(),
        "centroids": tally.centroids.tolist(),
        "class_coverage": _estimate_rows(tally.class_coverage(CONFIDENCE)),
        "class_risk": _estimate_rows(tally.class_risk(loss, CONFIDENCE, relative)),
        "class_size": [None if math.isnan(size) else size for size in tally.class_size().tolist()],
        "held": tally.held.tolist() if len(tally.held) <= MOST_CLASSES_HELD else None,
    }


def _estimate_rows(estimate: Estimate) -> list[list[float] | None]:
    rows = np.transpose(np.array(estimate)).tolist()
    return [None if math.isnan(row[0]) else row for row in rows]


def promised(
    value: Fraction, guarantee: Guarantee, headline: str, found: Evaluation, threshold: float | None
) -> dict[str, Any]:
    """Return what is guaranteed at a stop, and what the test rows show about it."""
    return {
        "alpha": decimal_text(value),
        "value": float(value),
        "threshold": None if threshold is None else _in_json(threshold),
        "certified": guarantee.certified,
        "saturated": guarantee.saturated,
        "headline": headline,
        "guarantee": " ".join(str(guarantee).splitlines()),
        "colour": found.light.colour,
        "sentence": found.light.sentence,
        "verdict": found.verdict.word,
        "verdict_text": found.verdict.text,
        "far_off": [each.to_dict() for each in found.light.far_off],
    }


def stratum_facts(part: StratumRisk, threshold: float) -> dict[str, Any]:
    """Return what is guaranteed and was measured for a group, a true class, or both."""
    guarantee, realised = part.guarantee, part.realised
    return {
        "alpha": decimal_text(guarantee.alpha),
        "value": float(guarantee.alpha),
        "threshold": _in_json(threshold),
        "certified": guarantee.certified,
        "saturated": guarantee.saturated,
        "exempt": guarantee.exempt,
        "pool": [str(label) for label in guarantee.pool],
        "verdict": part.word,
        "risk": None if realised is None else [*map(float, realised.risk)],
        "units": None if realised is None else realised.n_units,
        "mean_size": part.mean_size if part.n_rows else None,
        "single": part.single if part.n_rows else None,
    }


def is_plain(spec: Spec, calibration: Calibration) -> bool:
    """Return whether one risk is guaranteed for all rows, on average over calibrations."""
    return (
        calibration.strata.is_one
        and calibration.unit == "row"
        and calibration.shift is None
        and spec.delta is None
        and not spec.randomize
        and not spec.relative
    )


def recalibration_facts(recalibration: Recalibration | None) -> dict[str, Any] | None:
    """Return the name of the map, what its scores are, and on how many rows it was fitted."""
    if recalibration is None:
        return None
    return {
        "method": recalibration.method,
        "scores": recalibration.scores,
        "rows": recalibration.n_rows,
        "text": recalibration.in_words(),
    }


def shown_strata(strata: Strata) -> list[int]:
    """Return the positions of the groups, true classes, or both, that are shown; none of a single stratum."""
    order = sorted(range(len(strata.parts)), key=lambda i: -strata.parts[i].n_rows)
    return [] if strata.is_one else sorted(order[:MOST_PARTS])


def promise_facts(
    spec: Spec,
    calibration: Calibration,
    guarantee: Guarantee,
    shown: Sequence[StratumRisk],
    random_state: int | None,
) -> dict[str, Any]:
    """Return what is guaranteed beyond one risk for all rows, overall and for each part that is shown."""
    strata, ratios = calibration.strata, calibration.class_ratios
    thresholds = spec.thresholds(calibration).values
    by = ["group"] * (strata.groups is not None) + ["class"] * (strata.n_labels > 1)
    return {
        "delta": None if guarantee.delta is None else decimal_text(guarantee.delta),
        "bound": guarantee.bound_name,
        "shuffle_seed": calibration.shuffle_seed,
        "unit": calibration.unit,
        "shift": calibration.shift,
        "class_ratios": None if ratios is None else [decimal_text(ratio) for ratio in ratios],
        "exempt": [*dict.fromkeys(str(part.label) for part in guarantee.parts if part.exempt)],
        "relative": spec.relative,
        "randomized": spec.randomize,
        "random_state": random_state,
        "by": by,
        "noun": strata_noun(guarantee) if by else "true classes",
        "alphas_differ": isinstance(spec.alpha, Mapping),
        "parts": len(strata.parts) if by else 0,
        "strata": [
            {
                "name": part.name,
                "calibration_rows": strata.parts[position].n_rows,
                "calibration_units": strata.parts[position].curve.n_rows,
                "test_rows": part.n_rows,
                "threshold": threshold_facts(thresholds[position]),
                "alpha": decimal_text(guarantee.parts[position].alpha),
                "needed": guarantee.parts[position].n_needed,
                "exempt": guarantee.parts[position].exempt,
            }
            for position, part in zip(shown_strata(strata), shown, strict=True)
        ],
    }


def scores_compared(calibration: Calibration, new: BinCounts) -> dict[str, Any]:
    """Return whether the scores of test rows look like those of the calibration rows, and both in bins."""
    calibrated, strata = calibration.score_counts, calibration.strata
    if calibrated is None:
        text = f"The scores of this calibration can't be compared: {why_not_compared(calibration)}."
        return {"text": text, "differ": False, "p_value": None, "calibrated": None, "new": None}
    text, differ = comparison(calibrated, new), difference(calibrated, new) is not None
    if differ and not strata.is_one:
        parts = "classes" if strata.groups is None else "groups"
        text += f" Another mix of {parts} can do this too, and breaks none of their guarantees."
    return {
        "text": text,
        "differ": differ,
        "p_value": two_sample_p_value(calibrated, new),
        "calibrated": coarse_counts(calibrated),
        "new": coarse_counts(new),
    }


def threshold_facts(threshold: float) -> dict[str, str]:
    """Return a threshold in decimals and exactly."""
    return {"decimal": repr(float(threshold)), "hex": float(threshold).hex()}


def _in_json(threshold: float) -> float | str:
    """Return a threshold as a JSON value: infinite ones as text."""
    return threshold if math.isfinite(threshold) else str(threshold)
