"""From scores of any kind to logarithms of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import SUM_TOLERANCE, number_type, widened
from ordinalrisk.inputs.device import on_device, to_host
from ordinalrisk.inputs.probability_matrix import RowError, raise_invalid_row
from ordinalrisk.recalibration.elementary import exp, largest, log, namespace

KINDS = ("probabilities", "logits")
_SMALLEST_FLOOR = 1e-8


def as_scores(matrix: Any, kind: str) -> Any:
    """Return the scores as float64; raise an error for a row that is not of this kind.

    Among logits, minus infinity is the logarithm of a probability of 0. A row of probabilities raises an
    error there, whatever the other rows are, so that batches of any size give the same answer.
    """
    scores = _as_float64(matrix)
    if kind == "probabilities":
        if (row := _first(_are_not_probabilities(scores, matrix))) is not None:
            raise_invalid_row(matrix, row)
        return scores
    wrong = (scores != scores) | (scores == np.inf)
    if (row := _first((wrong.any(1)) | (scores == -np.inf).all(1))) is not None:
        values = to_host(scores[row])
        column = int((~np.isfinite(values)).argmax())
        raise RowError(
            f"Row {row} of the scores has no probabilities: {values.tolist()}. Logits must be numbers; minus "
            "infinity, for a probability of 0, is allowed in some columns of a row.",
            row,
            float(values[column]),
            column=column,
        )
    if scores.shape[1] > 1 and (row := _first(~_are_not_probabilities(scores, matrix))) is not None:
        raise RowError(
            f"Row {row} of the scores has probabilities, {to_host(scores[row]).tolist()}, where logits are "
            "expected: no number is negative, and their sum is 1. Pass the scores that the map is fitted on. "
            "If these are logits all the same, subtract the largest of each row: scores - "
            "scores.max(axis=1, keepdims=True). That changes nothing else.",
            row,
            1.0,
            looks_like="probabilities",
        )
    return scores


def kind_of(matrix: Any) -> str:
    """Return which of :data:`KINDS` the scores are. Log-probabilities are logits too."""
    scores = _as_float64(matrix)
    if bool((scores < 0).any()):
        return "logits"
    row = _first(_are_not_probabilities(scores, matrix))
    if row is None:
        return "probabilities"
    if not bool((scores == scores).all()):
        as_scores(matrix, "logits")  # raises an error that names the row
    raise RowError(
        f"Row {row} of the scores sums to {float(to_host(scores[row]).sum()):.6g}, not to 1, and no score is "
        'negative: they can be logits, or probabilities to rescale. Say scores="logits", or pass scores / '
        "scores.sum(axis=1, keepdims=True).",
        row,
        None,
    )


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


def _as_float64(matrix: Any) -> Any:
    return matrix.double() if on_device(matrix) else widened(matrix).astype(np.float64, copy=False)


def _are_not_probabilities(scores: Any, matrix: Any) -> Any:
    name = str(matrix.dtype).removeprefix("torch.") if on_device(matrix) else number_type(matrix)
    return ~((scores >= 0).all(1) & (abs(scores.sum(1) - 1) <= SUM_TOLERANCE[name]))


def _first(wrong: Any) -> int | None:
    return int(to_host(wrong).argmax()) if bool(wrong.any()) else None
