"""The ends of intervals where thresholds differ from row to row, or from label to label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.losses.cost_table import CostTable

Ends = tuple[NDArray[np.int32], NDArray[np.int32]]


def freed(ends: tuple[Any, Any], costs: CostTable) -> tuple[Any, Any]:
    """Return the ends of sets; where costs depend on one end alone, the other is the end of the scale."""
    lower, upper = ends
    if costs.side == "upper":
        return lower * 0, upper
    return (lower, upper * 0 + (costs.n_classes - 1)) if costs.side == "lower" else ends


def ends_by_row(levels: NDArray[np.float64], thresholds: NDArray[np.float64]) -> Ends:
    """Return the first and last label of ``{j : e_j >= tau}``, with a threshold for each row.

    Examples
    --------
    >>> ends_by_row(np.array([[0.1, 0.2, np.inf]] * 2), np.array([0.1, 0.2]))
    (array([0, 1], dtype=int32), array([2, 2], dtype=int32))
    """
    inside = levels >= thresholds[:, None]
    lower = inside.argmax(axis=1)
    upper = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
    return lower.astype(np.int32), upper.astype(np.int32)


def ends_by_label(levels: NDArray[np.float64], thresholds: NDArray[np.float64], costs: CostTable) -> Ends:
    """Return the smallest interval that costs each label ``y`` no more than the set at its own threshold.

    For a weighted loss, that is the hull of the labels that pass their thresholds. For others the set at a
    label's threshold may leave the label itself out and still come close to it, so the interval must include
    the nearest label of that set, or one further in if it costs the same. Only the level of the point label
    is infinite; thresholds differ by label, and may differ by row.

    Examples
    --------
    >>> from ordinalrisk import WeightedLoss
    >>> levels = np.array([[0.1, 0.3, np.inf, 0.2]])
    >>> ends_by_label(levels, np.array([[0.1, 0.5, 0.5, 0.5]]), CostTable.of(WeightedLoss(), 4))
    (array([0], dtype=int32), array([2], dtype=int32))
    """
    lower = _outermost(levels, thresholds, costs.units)
    mirrored = _outermost(levels[:, ::-1], thresholds[:, ::-1], costs.units[::-1, ::-1])
    upper = costs.n_classes - 1 - mirrored
    return lower.astype(np.int32), upper.astype(np.int32)


def _outermost(
    levels: NDArray[np.float64], thresholds: NDArray[np.float64], table: NDArray[Any]
) -> NDArray[np.int64]:
    """Return the first label that the labels at or left of the point label need in the interval."""
    points = levels.argmax(axis=1)
    inward = _as_cheap_as(table)
    outermost: NDArray[np.int64] = points.copy()
    for y in range(levels.shape[1] - 1):
        nearest = y + (levels[:, y:] >= thresholds[:, y, None]).argmax(axis=1)
        uncertified = thresholds[:, y] == -np.inf  # then it is inside whatever it costs
        needed = np.where(uncertified, y, inward[y, nearest])
        np.minimum(outermost, needed, out=outermost, where=y < points)
    return outermost


def _as_cheap_as(table: NDArray[Any]) -> NDArray[np.int64]:
    """Return for ``y <= k`` the last label from ``k`` on that costs ``y`` no more than ``k`` does."""
    K = len(table)
    last = np.tile(np.arange(K), (K, 1))
    for k in reversed(range(K - 1)):
        same = table[:, k + 1] == table[:, k]
        last[same, k] = last[same, k + 1]
    return last
