"""The growth rules in numpy, for machines where the C kernels can't be loaded.

Every rule mirrors its namesake in :mod:`ordinalrisk.growth.kernels.reference` and gives the same bits; a rule
that has no function here is computed by the reference, row by row. Loops run over labels, vectors over rows:
arrays have a row for each label. ``numpy.sum`` is not used, because it adds in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.steps import rises
from ordinalrisk.growth.kernels import InvalidRow, reference
from ordinalrisk.inputs.arrays import SUM_TOLERANCE, number_type, widened
from ordinalrisk.losses.cost_table import DIAGONAL, RUNNING, GainTables

NUMBERS_AT_ONCE = 65_536

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
EndLabels = NDArray[np.int32]


def point_labels(proba: NDArray[Any], costs: GainTables, point: str, given: Labels | None = None) -> Labels:
    """The label that each set grows from."""
    points = np.empty(len(proba), np.int64)
    for rows, p in _blocks(proba):
        points[rows] = _points(p, costs, point, rows, given)
    return points


def levels(
    proba: NDArray[Any], costs: GainTables, rule: str, point: str, given: Labels | None = None
) -> Floats:
    """``e[i, j]``: the largest threshold at which label ``j`` belongs to the set of row ``i``."""
    found = np.empty(proba.shape)
    for rows, p in _blocks(proba):
        found[rows] = _levels(rule, p, costs, _points(p, costs, point, rows, given)).T
    return found


def intervals(
    proba: NDArray[Any],
    costs: GainTables,
    rule: str,
    point: str,
    threshold: float,
    given: Labels | None = None,
) -> tuple[EndLabels, EndLabels]:
    """First and last label of each row's set ``{j : e_j >= threshold}``."""
    lower, upper = np.empty(len(proba), np.int32), np.empty(len(proba), np.int32)
    for rows, p in _blocks(proba):
        inside = _levels(rule, p, costs, _points(p, costs, point, rows, given)) >= threshold
        lower[rows] = inside.argmax(axis=0)
        upper[rows] = len(p) - 1 - inside[::-1].argmax(axis=0)
    return lower, upper


def steps(
    proba: NDArray[Any],
    labels: Labels,
    costs: GainTables,
    rule: str,
    point: str,
    given: Labels | None = None,
) -> tuple[Floats, EndLabels, EndLabels]:
    """Where each row's loss steps up as the threshold rises, and between which entries of the cost table.

    The steps are in no particular order.
    """
    K = proba.shape[1]
    found = [(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))]
    for rows, p in _blocks(proba):
        points = _points(p, costs, point, rows, given)
        at, row, before, after = rises(_levels(rule, p, costs, points), labels[rows], points, costs.rank)
        first = labels[rows][row] * K
        found.append((at, first + before, first + after))
    at, before, after = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return at, before.astype(np.int32), after.astype(np.int32)


def _blocks(proba: NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
    """A few rows at a time, checked, as float64 with a row of numbers for each label."""
    tolerance = SUM_TOLERANCE[number_type(proba)]
    at_once = max(64, NUMBERS_AT_ONCE // proba.shape[1])
    for start in range(0, len(proba), at_once):
        rows = slice(start, min(start + at_once, len(proba)))
        p = np.array(widened(proba[rows]).T, np.float64, order="C")
        with np.errstate(invalid="ignore", over="ignore"):
            valid = (p >= 0).all(axis=0) & (abs(_running_sums(p)[-1] - 1.0) <= tolerance)
        if not valid.all():
            raise InvalidRow(start + int(valid.argmin()))
        yield rows, np.abs(p, out=p)  # a minus zero is a zero


def _points(p: Floats, costs: GainTables, point: str, rows: slice, given: Labels | None) -> Labels:
    """The label that each set grows from; the leftmost on a tie."""
    if point == "mode":
        likeliest: Labels = (costs.mode_weights[:, None] * p).argmax(axis=0)
        return likeliest
    if point == "bayes":
        head, tail = _head_and_tail(*_left_and_right_gains(p, costs))
        cheapest: Labels = (head + tail).argmin(axis=0)
        return cheapest
    if point == "median":
        return _medians(_running_sums(p))
    assert given is not None
    return given[rows]


def _levels(rule: str, p: Floats, costs: GainTables, m: Labels) -> Floats:
    if rule in RULES:
        return RULES[rule](p, costs, m)
    rows = zip(p.T.tolist(), m.tolist(), strict=True)
    return np.array([reference.row_levels(row, costs, rule, point) for row, point in rows]).T


def _left_and_right_gains(p: Floats, costs: GainTables) -> tuple[Floats, Floats]:
    """``a_j`` and ``b_j``: what label ``j`` takes off the model's risk as it joins left, or right."""
    if costs.shape != DIAGONAL and costs.shape != RUNNING:
        left, right = np.zeros_like(p), np.zeros_like(p)
        for i in range(len(p)):
            left[i:] += p[i] * costs.left[i:, i, None]
        for i in reversed(range(len(p))):
            right[: i + 1] += p[i] * costs.right[: i + 1, i, None]
        return left, right
    left, right = p * np.diagonal(costs.left)[:, None], p * np.diagonal(costs.right)[:, None]
    if costs.shape == DIAGONAL:
        return left, right
    return _running_sums(left), _running_sums(right[::-1])[::-1]


def _head_and_tail(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """``H(l)`` and ``T(u)``: the model's risk of truths below ``l``, and above ``u``."""
    head, tail = np.zeros_like(left), np.zeros_like(right)
    head[1:] = _running_sums(left[:-1])
    tail[:-1] = _running_sums(right[:0:-1])[::-1]
    return head, tail


def _running_sums(values: Floats) -> Floats:
    """Sums of the first 1, 2, 3, ... labels' values."""
    sums = np.empty_like(values)
    total = sums[0] = values[0]
    for value, to in zip(values[1:], sums[1:], strict=True):
        total = np.add(total, value, out=to)
    return sums


def _medians(F: Floats) -> Labels:
    """The first label whose cumulative probability reaches one half."""
    median: Labels = np.count_nonzero(F[:-1] < 0.5, axis=0)
    return median


def _paper_levels(p: Floats, costs: GainTables, m: Labels) -> Floats:
    left, right = _left_and_right_gains(p, costs)
    head, tail = _head_and_tail(left, right)
    next_left, next_right = _with_ends(left), _with_ends(right)
    level, row = _unknown_but_the_point(m, len(p))
    lower, upper = m.copy(), m.copy()
    covered = costs.mode_weights[m] * p[m, row]
    for _ in range(len(p) - 1):
        risk = costs.bound - covered if costs.weighted else head[lower, row] + tail[upper, row]
        to_left, to_right = next_left[lower, row], next_right[upper + 2, row]
        go_left = to_left > to_right if costs.weighted else to_left >= to_right
        lower -= go_left
        upper += ~go_left
        level[np.where(go_left, lower, upper), row] = risk
        covered += np.where(go_left, to_left, to_right)
    return level


def _frontier_levels(p: Floats, costs: GainTables, m: Labels) -> Floats:
    left, right = _left_and_right_gains(p, costs)
    level, _ = _unknown_but_the_point(m, len(p))
    _decreasing_slopes(right, m, level)
    _decreasing_slopes(left[::-1], len(p) - 1 - m, level[::-1])
    return level


def _decreasing_slopes(gains: Floats, m: Labels, level: Floats) -> None:
    """Pool adjacent violators: into ``level`` above ``m``, the mean gain of each label's block."""
    K = len(gains)
    rises = np.zeros(len(m), bool)
    for j in range(1, K):
        level[j] = np.where(j > m, gains[j], level[j])
        rises |= (j - 1 > m) & (gains[j] > gains[j - 1])
    columns = np.flatnonzero(rises)
    total, m, row = gains[:, columns], m[columns], np.arange(len(columns))
    # A block is identified by its first label; `before` is the first label of the next block inward.
    mean, size, before = total.copy(), np.ones(total.shape, np.int64), np.zeros(total.shape, np.int64)
    begin = np.zeros(len(row), np.int64)
    for j in range(1, K):
        before[j] = np.where(j - 1 > m, begin, 0)
        begin = np.full(len(row), j)
        pooled = row[j > m]
        while len(pooled):
            last = begin[pooled]
            inward = before[last, pooled]
            steeper = (inward > m[pooled]) & (mean[last, pooled] > mean[inward, pooled])
            pooled, last, inward = pooled[steeper], last[steeper], inward[steeper]
            total[inward, pooled] += total[last, pooled]
            size[inward, pooled] += size[last, pooled]
            mean[inward, pooled] = total[inward, pooled] / size[inward, pooled]
            begin[pooled] = inward
    for j in reversed(range(1, K)):
        outside = j > m
        level[j, columns[outside]] = mean[begin, row][outside]
        begin = np.where(begin == j, before[j], begin)


def _adaptive_levels(p: Floats, costs: GainTables, m: Labels) -> Floats:
    slopes = _with_ends(_frontier_levels(p, costs, m))
    head, tail = _head_and_tail(*_left_and_right_gains(p, costs))
    level, row = _unknown_but_the_point(m, len(p))
    lower, upper = m.copy(), m.copy()
    risk, steepest = np.empty(len(m)), np.full(len(m), np.inf)
    for _ in range(len(p) - 1):
        to_left, to_right = slopes[lower, row], slopes[upper + 2, row]
        less_steep = (to_left != steepest) & (to_right != steepest)
        risk = np.where(less_steep, head[lower, row] + tail[upper, row], risk)
        steepest = np.where(less_steep, np.maximum(to_left, to_right), steepest)
        go_left = to_left == steepest
        lower -= go_left
        upper += ~go_left
        level[np.where(go_left, lower, upper), row] = risk
    return level


def _ranked_probability_levels(p: Floats, costs: GainTables, m: Labels) -> Floats:
    K = len(p)
    F = _running_sums(p)
    median = _medians(F)
    of_median = np.zeros(len(m))
    for k in range(K - 1):
        share = np.where(k < median, F[k], 1.0 - F[k])
        of_median += share * share
    score = np.tile(of_median, (K, 1))
    for j in reversed(range(K - 1)):
        score[j] = np.where(j < median, score[j + 1] + (1.0 - 2.0 * F[j]), score[j])
    for j in range(1, K):
        score[j] = np.where(j > median, score[j - 1] + (2.0 * F[j - 1] - 1.0), score[j])
    level, _ = _unknown_but_the_point(m, K)
    for j in reversed(range(K - 1)):
        level[j] = np.where(j < m, np.minimum(level[j + 1], 0.0 - score[j]), level[j])
    for j in range(1, K):
        level[j] = np.where(j > m, np.minimum(level[j - 1], 0.0 - score[j]), level[j])
    return level


def _unknown_but_the_point(m: Labels, K: int) -> tuple[Floats, Labels]:
    """Levels that are infinite everywhere, and the numbers of the rows."""
    return np.full((K, len(m)), np.inf), np.arange(len(m))


def _with_ends(gains: Floats) -> Floats:
    """Add -1, which is less than any gain, beyond both ends of the scale."""
    return np.pad(gains, ((1, 1), (0, 0)), constant_values=-1.0)


RULES: dict[str, Callable[[Floats, GainTables, Labels], Floats]] = {
    "paper": _paper_levels,
    "frontier": _frontier_levels,
    "adaptive": _adaptive_levels,
    "rps": _ranked_probability_levels,
}
