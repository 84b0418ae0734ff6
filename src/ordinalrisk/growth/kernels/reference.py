"""The growth rules in plain Python: the truth that every other backend must equal bit for bit.

A sum over labels runs from the end of the scale inward, so the left and the right side mirror each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.losses.cost_table import GainTables

Row = Sequence[float]


def point_labels(
    proba: NDArray[np.floating], costs: GainTables, point: str, given: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """The label that each set grows from."""
    return np.array(
        [
            point_label([float(p) for p in row], costs, point, -1 if given is None else int(given[i]))
            for i, row in enumerate(proba)
        ]
    )


def levels(
    proba: NDArray[np.floating],
    costs: GainTables,
    rule: str,
    point: str,
    given: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """``e[i, j]``: the largest threshold at which label ``j`` belongs to the set of row ``i``."""
    points = point_labels(proba, costs, point, given)
    return np.array(
        [row_levels([float(p) for p in row], costs, rule, m) for row, m in zip(proba, points, strict=True)]
    )


def intervals(
    proba: NDArray[np.floating],
    costs: GainTables,
    rule: str,
    point: str,
    threshold: float,
    given: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """First and last label of each row's set ``{j : e_j >= threshold}``."""
    inside = levels(proba, costs, rule, point, given) >= threshold
    lower = inside.argmax(axis=1)
    upper = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
    return lower.astype(np.int32), upper.astype(np.int32)


def steps(
    proba: NDArray[np.floating],
    labels: NDArray[np.int64],
    costs: GainTables,
    rule: str,
    point: str,
    given: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
    """Where each row's loss steps up as the threshold rises, and between which entries of the cost table.

    Walking from the label ``y`` to the point label ``m``: once label ``j`` has dropped out, the nearest end
    is one label further from ``y``. Labels that drop out together make one step; steps that cost nothing
    are left out. Entries are numbered ``y * K + k``.
    """
    all_points = point_labels(proba, costs, point, given)
    all_levels = levels(proba, costs, rule, point, given)
    K = proba.shape[1]
    found = []
    for level, y, m in zip(all_levels, labels.tolist(), all_points.tolist(), strict=True):
        towards = 1 if m > y else -1
        near = y
        while near != m:
            far = near + towards
            while far != m and level[far] == level[near]:
                far += towards
            if costs.rank[y, far] > costs.rank[y, near]:
                found.append((level[near], y * K + near, y * K + far))
            near = far
    at, before, after = zip(*found, strict=True) if found else ((), (), ())
    return np.array(at, np.float64), np.array(before, np.int32), np.array(after, np.int32)


def point_label(p: Row, costs: GainTables, point: str, given: int) -> int:
    """The label one interval grows from; the leftmost on a tie."""
    labels = range(len(p))
    if point == "mode":
        return max(labels, key=lambda j: costs.mode_weights[j] * p[j])
    if point == "bayes":
        head, tail = head_and_tail(*left_and_right_gains(p, costs))
        return min(labels, key=lambda j: head[j] + tail[j])
    if point == "median":
        return median_label(running_sums(p))
    return given


def row_levels(p: Row, costs: GainTables, rule: str, m: int) -> list[float]:
    """The level of each label of one row that grows from ``m``."""
    return RULES[rule](p, costs, m)


def left_and_right_gains(p: Row, costs: GainTables) -> tuple[list[float], list[float]]:
    """``a_j`` and ``b_j``: what label ``j`` takes off the model's risk as it joins left, or right."""
    K = len(p)
    left, right = [0.0] * K, [0.0] * K
    for j in range(K):
        for i in range(j + 1):
            left[j] += p[i] * costs.left[j, i]
        for i in reversed(range(j, K)):
            right[j] += p[i] * costs.right[j, i]
    return left, right


def head_and_tail(left: Row, right: Row) -> tuple[list[float], list[float]]:
    """``H(l)`` and ``T(u)``: the model's risk of truths below ``l``, and above ``u``."""
    head = [0.0, *running_sums(left[:-1])]
    tail = [0.0, *running_sums(right[:0:-1])][::-1]
    return head, tail


def running_sums(values: Row) -> list[float]:
    """Sums of the first 1, 2, 3, ... values."""
    sums, total = [], 0.0
    for value in values:
        total += value
        sums.append(total)
    return sums


def paper_levels(p: Row, costs: GainTables, m: int) -> list[float]:
    """The neighbour that removes more risk joins next (Algorithms 1 and 3).

    On a tie the right one joins under a weighted loss, as in Algorithm 1, and the left one under any other,
    as in Algorithm 3. Its level is what the paper compares with lambda before it joins: ``1 - sum of h_i
    p_i`` over the interval for a weighted loss (Eq. 7), the model's risk of it for any other (Eq. 11).
    """
    K = len(p)
    level = [inf] * K
    left, right = left_and_right_gains(p, costs)
    head, tail = head_and_tail(left, right)
    lower = upper = m
    covered = costs.mode_weights[m] * p[m]
    while upper - lower < K - 1:
        risk = costs.bound - covered if costs.weighted else head[lower] + tail[upper]
        next_left = left[lower - 1] if lower > 0 else -1.0
        next_right = right[upper + 1] if upper < K - 1 else -1.0
        if next_left > next_right or (next_left == next_right and not costs.weighted):
            lower -= 1
            level[lower] = risk
            covered += left[lower]
        else:
            upper += 1
            level[upper] = risk
            covered += right[upper]
    return level


def frontier_levels(p: Row, costs: GainTables, m: int) -> list[float]:
    """Slopes of the concave majorant of risk removed against labels added, on each side of ``m``."""
    left, right = left_and_right_gains(p, costs)
    return [
        *reversed(decreasing_slopes(list(reversed(left[:m])))),
        inf,
        *decreasing_slopes(right[m + 1 :]),
    ]


def decreasing_slopes(gains: Row) -> list[float]:
    """Pool adjacent violators: the mean of each block, no block's mean above the one before it."""
    blocks: list[tuple[float, int, float]] = []
    for gain in gains:
        total, size, mean = gain, 1, gain
        while blocks and mean > blocks[-1][2]:
            total, size = blocks[-1][0] + total, blocks[-1][1] + size
            mean = total / size
            blocks.pop()
        blocks.append((total, size, mean))
    return [mean for _, size, mean in blocks for _ in range(size)]


def adaptive_levels(p: Row, costs: GainTables, m: int) -> list[float]:
    """The frontier's sets in the frontier's order; the level is the model's risk before a label joins."""
    K = len(p)
    level = [inf] * K
    slopes = frontier_levels(p, costs, m)
    head, tail = head_and_tail(*left_and_right_gains(p, costs))
    lower = upper = m
    while upper - lower < K - 1:
        risk = head[lower] + tail[upper]
        steepest = max(slopes[lower - 1] if lower > 0 else -1.0, slopes[upper + 1] if upper < K - 1 else -1.0)
        while lower > 0 and slopes[lower - 1] == steepest:
            lower -= 1
            level[lower] = risk
        while upper < K - 1 and slopes[upper + 1] == steepest:
            upper += 1
            level[upper] = risk
    return level


def ranked_probability_levels(p: Row, costs: GainTables, m: int) -> list[float]:
    """Minus the ranked probability score of each label, and never more than the score of the next inward.

    The score is convex in the label with its minimum at the median, and moving from ``k`` to ``k + 1``
    changes it by ``2 F_k - 1``: it is summed from the median outward, so that it is monotone as computed.
    """
    K = len(p)
    F = running_sums(p)
    median = median_label(F)
    score = [0.0] * K
    for k in range(K - 1):
        score[median] += F[k] * F[k] if k < median else (1.0 - F[k]) * (1.0 - F[k])
    for j in reversed(range(median)):
        score[j] = score[j + 1] + (1.0 - 2.0 * F[j])
    for j in range(median + 1, K):
        score[j] = score[j - 1] + (2.0 * F[j - 1] - 1.0)
    level = [inf] * K
    for j in reversed(range(m)):
        level[j] = min(level[j + 1], 0.0 - score[j])
    for j in range(m + 1, K):
        level[j] = min(level[j - 1], 0.0 - score[j])
    return level


def median_label(F: Row) -> int:
    """The first label whose cumulative probability reaches one half."""
    return next((j for j, cumulative in enumerate(F) if cumulative >= 0.5), len(F) - 1)


RULES: dict[str, Callable[[Row, GainTables, int], list[float]]] = {
    "paper": paper_levels,
    "frontier": frontier_levels,
    "adaptive": adaptive_levels,
    "rps": ranked_probability_levels,
}
"""The growth rules by name. Other backends number them in this order."""
