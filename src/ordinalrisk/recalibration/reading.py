"""From scores of any kind to logarithms of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import widened
from ordinalrisk.inputs.device import on_device, to_host
from ordinalrisk.inputs.matrix import RowError, as_matrix
from ordinalrisk.recalibration.elementary import exp, largest, log, namespace

KINDS = ("probabilities", "logits")
_SMALLEST_FLOOR = 1e-8
_SUM_TOLERANCE = 0.02  # of probabilities that were rounded


def as_scores(scores: Any) -> Any:
    """Return a matrix of float64, finite; minus infinity is a log-probability of 0."""
    matrix = as_matrix(scores, "scores", fewest=1)
    matrix = matrix.double() if on_device(matrix) else widened(matrix).astype(np.float64, copy=False)
    wrong = (matrix != matrix) | (matrix == np.inf)
    wrong |= (matrix == -np.inf).all(1)[:, None]
    if bool(wrong.any()):
        row = int(to_host(wrong).any(axis=1).argmax())
        raise RowError(
            f"Row {row} of the scores has no probabilities: {to_host(matrix[row]).tolist()}. Scores must be "
            "numbers; minus infinity, for a probability of 0, is allowed in some columns of a row.",
            row,
            None,
        )
    return matrix


def kind_of(scores: NDArray[np.float64]) -> str:
    """Return which of :data:`KINDS` the scores look like. Log-probabilities are logits too."""
    if (scores < 0).any():
        return "logits"
    sums = scores.sum(axis=1)
    return "probabilities" if (np.abs(sums - 1) <= _SUM_TOLERANCE).all() else "logits"


def floor_of(scores: NDArray[np.float64], kind: str) -> float:
    """Return what counts as the smallest probability: half of the smallest one that is not 0."""
    if kind == "logits":
        return _SMALLEST_FLOOR
    return max(_SMALLEST_FLOOR, float(scores[scores > 0].min(initial=1.0)) / 2)


def log_probabilities(scores: Any, kind: str, floor: float) -> list[Any]:
    """Return the columns of the logarithms of the probabilities, none below ``floor``."""
    xp = namespace(scores)
    columns = [scores[:, k] + 0.0 for k in range(scores.shape[1])]  # contiguous
    if kind == "logits":
        top = largest(columns)
        columns = [exp(column - top) for column in columns]
    total = columns[0]
    for column in columns[1:]:
        total = total + column
    return [log(xp.clip(column / total, floor, None)) for column in columns]
