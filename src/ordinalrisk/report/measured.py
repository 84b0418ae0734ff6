"""What the sets at one threshold came to on the test rows: counts, and numbers with their intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import CONFIDENCE, Estimate
from ordinalrisk.losses.kinds import IntervalLoss
from ordinalrisk.report.stops import MOST_CLASSES_HELD


def measured(tally: Tally, loss: IntervalLoss) -> dict[str, Any]:
    """The part of a stop that follows from its counts, as JSON types; None for a class without rows.

    Examples
    --------
    >>> from ordinalrisk import IntervalSet, WeightedLoss
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> numbers = measured(Tally.of(np.array([0, 1, 0]), sets), WeightedLoss())
    >>> numbers["sizes"], numbers["class_size"], numbers["held"]
    ([2, 1, 0], [1.0, 2.0, None], [[1, 1, 0], [0, 1, 1], [0, 0, 0]])
    """
    return {
        "risk": [*map(float, tally.risk(loss, CONFIDENCE))],
        "coverage": [*map(float, tally.coverage(CONFIDENCE))],
        "mean_size": [*map(float, tally.mean_size(CONFIDENCE))],
        "sizes": tally.sizes.tolist(),
        "centroids": tally.centroids.tolist(),
        "class_coverage": _by_class(tally.class_coverage(CONFIDENCE)),
        "class_risk": _by_class(tally.class_risk(loss, CONFIDENCE)),
        "class_size": [None if math.isnan(size) else size for size in tally.class_size().tolist()],
        "held": tally.held.tolist() if len(tally.held) <= MOST_CLASSES_HELD else None,
    }


def _by_class(estimate: Estimate) -> list[list[float] | None]:
    return [
        None if math.isnan(value) else [value, low, high]
        for value, low, high in np.transpose(np.array(estimate)).tolist()
    ]
