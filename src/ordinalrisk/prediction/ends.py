"""Intervals whose threshold differs from row to row, or from label to label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.losses.cost_table import CostTable

Ends = tuple[NDArray[np.int32], NDArray[np.int32]]


def ends_by_row(levels: NDArray[np.float64], thresholds: NDArray[np.float64]) -> Ends:
    """First and last label of ``{j : e_j >= tau}``, with a threshold for each row.

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
    """The smallest interval that costs every label ``y`` no more than the set at ``y``'s own threshold does.

    For a weighted loss, that is the hull of the labels that pass their thresholds. For others the set at a
    label's threshold may leave the label itself out and still come close to it, so what must be inside is
    the nearest label of that set, or one further in if it costs the same.

    Parameters
    ----------
    levels : array of shape (n, K)
        The level of each label, infinite at the point label alone.
    thresholds : array of shape (n, K) or (1, K)
        The threshold of each label.
    costs : CostTable
        What a miss costs.

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
    """The first label that some label to the left of the point label needs inside, else the point label."""
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
    """``[y, k]``: the last label from ``k`` on that costs truth ``y <= k`` no more than ``k`` does."""
    K = len(table)
    last = np.tile(np.arange(K), (K, 1))
    for k in reversed(range(K - 1)):
        same = table[:, k + 1] == table[:, k]
        last[same, k] = last[same, k + 1]
    return last
