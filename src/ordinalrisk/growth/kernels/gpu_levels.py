"""Triton kernels that mirror the reference step by step: any rule, point label and cost table.

A program has one lane for each row of a tile, and loops over tiles until none is left.
"""

from typing import NamedTuple

import triton
import triton.language as tl

from ordinalrisk.growth.kernels import POINT_NUMBERS, RULE_NUMBERS
from ordinalrisk.growth.kernels.gpu_pooling import frontier_levels
from ordinalrisk.growth.kernels.gpu_rows import (
    GAIN,
    MEAN,
    RISK,
    P,
    any_lane,
    first_row,
    in_float64,
    list_rows,
    own_tile,
    read,
    rows_from,
)
from ordinalrisk.losses import cost_table

PAPER, FRONTIER, ADAPTIVE, RPS = (tl.constexpr(code) for code in RULE_NUMBERS.values())
MODE, BAYES, MEDIAN, GIVEN = (tl.constexpr(code) for code in POINT_NUMBERS.values())
RUNNING = tl.constexpr(cost_table.RUNNING)
FULL = tl.constexpr(cost_table.FULL)


class Findings(NamedTuple):
    """The counts of the kernels: all that is copied to the host."""

    rows_from_first_bad: int
    n_listed: int
    n_unclear: int
    room: int
    n_steps: int


ROOM, N_STEPS = (tl.constexpr(Findings._fields.index(name)) for name in ("room", "n_steps"))


@triton.jit
def point_labels_kernel(
    proba, row_stride, column_stride, n, found, TOLERANCE: tl.constexpr,
    K, n_listed, listed_rows, given, left, right, mode_weights, rank, bound,
    RULE: tl.constexpr, POINT: tl.constexpr, SHAPE: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr,
    workspace, points,
):  # fmt: skip
    """The label that each set grows from."""
    tile = own_tile(workspace, K, BLOCK)
    for start in range(first_row(BLOCK), n, tl.num_programs(0) * BLOCK):
        rows, active = rows_from(start, n, listed_rows, False, BLOCK)
        active = read(proba, row_stride, column_stride, n, found, TOLERANCE, rows, active, tile, K, BLOCK)
        m = _point_label(rows, active, given, left, right, mode_weights, tile, K, POINT, SHAPE, BLOCK)
        tl.store(points + rows, m.to(tl.int64), mask=active)


@triton.jit
def levels_kernel(
    proba, row_stride, column_stride, n, found, TOLERANCE: tl.constexpr,
    K, n_listed, listed_rows, given, left, right, mode_weights, rank, bound,
    RULE: tl.constexpr, POINT: tl.constexpr, SHAPE: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr,
    workspace, out,
):  # fmt: skip
    """The level of each label."""
    tile = own_tile(workspace, K, BLOCK)
    for start in range(first_row(BLOCK), n, tl.num_programs(0) * BLOCK):
        rows, active = rows_from(start, n, listed_rows, False, BLOCK)
        active = read(proba, row_stride, column_stride, n, found, TOLERANCE, rows, active, tile, K, BLOCK)
        m = _point_label(rows, active, given, left, right, mode_weights, tile, K, POINT, SHAPE, BLOCK)
        _grow(
            m, tl.zeros_like(m), tl.zeros_like(m) + K - 1, active, in_float64(float("-inf"), BLOCK),
            left, right, mode_weights, bound, tile, K, RULE, SHAPE, WEIGHTED, BLOCK,
        )  # fmt: skip
        for j in range(K):
            level = tl.load(tile + (GAIN * K + j) * BLOCK)
            tl.store(out + rows * K + j, tl.where(m == j, float("inf"), level), mask=active)


@triton.jit
def intervals_kernel(
    proba, row_stride, column_stride, n, found, TOLERANCE: tl.constexpr,
    K, n_listed, listed_rows, given, left, right, mode_weights, rank, bound,
    RULE: tl.constexpr, POINT: tl.constexpr, SHAPE: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr,
    workspace, lower, upper, threshold: tl.float64, LISTED: tl.constexpr,
):  # fmt: skip
    """Both ends of each interval, of all rows or of those listed."""
    tile = own_tile(workspace, K, BLOCK)
    n_rows = tl.load(n_listed) if LISTED else n
    for start in range(first_row(BLOCK), n_rows, tl.num_programs(0) * BLOCK):
        rows, active = rows_from(start, n_rows, listed_rows, LISTED, BLOCK)
        active = read(proba, row_stride, column_stride, n, found, TOLERANCE, rows, active, tile, K, BLOCK)
        m = _point_label(rows, active, given, left, right, mode_weights, tile, K, POINT, SHAPE, BLOCK)
        low, high = _grow(
            m, tl.zeros_like(m), tl.zeros_like(m) + K - 1, active, in_float64(threshold, BLOCK),
            left, right, mode_weights, bound, tile, K, RULE, SHAPE, WEIGHTED, BLOCK,
        )  # fmt: skip
        tl.store(lower + rows, low, mask=active)
        tl.store(upper + rows, high, mask=active)


@triton.jit
def missed_rows_kernel(
    proba, row_stride, column_stride, n, found, TOLERANCE: tl.constexpr,
    K, n_listed, listed_rows, given, left, right, mode_weights, rank, bound,
    RULE: tl.constexpr, POINT: tl.constexpr, SHAPE: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr,
    workspace, labels,
):  # fmt: skip
    """List the rows whose point label costs something, and count the steps they can have at most.

    A step moves the nearest end by a label at least, and to a larger cost.
    """
    tile = own_tile(workspace, K, BLOCK)
    room = tl.zeros([BLOCK], tl.int64)
    for start in range(first_row(BLOCK), n, tl.num_programs(0) * BLOCK):
        rows, active = rows_from(start, n, listed_rows, False, BLOCK)
        active = read(proba, row_stride, column_stride, n, found, TOLERANCE, rows, active, tile, K, BLOCK)
        m = _point_label(rows, active, given, left, right, mode_weights, tile, K, POINT, SHAPE, BLOCK)
        y = tl.load(labels + rows, mask=active, other=0).to(tl.int32)
        most = tl.minimum(tl.abs(y - m), tl.load(rank + y * K + m, mask=active, other=0))
        room += tl.where(active, most, 0)
        list_rows(rows, active & (most > 0), n_listed, listed_rows)
    tl.atomic_add(found + ROOM, tl.sum(room))


@triton.jit
def steps_kernel(
    proba, row_stride, column_stride, n, found, TOLERANCE: tl.constexpr,
    K, n_listed, listed_rows, given, left, right, mode_weights, rank, bound,
    RULE: tl.constexpr, POINT: tl.constexpr, SHAPE: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr,
    workspace, labels, at, before, after,
):  # fmt: skip
    """The steps of the rows that are listed."""
    tile = own_tile(workspace, K, BLOCK)
    n_rows = tl.load(n_listed)
    for start in range(first_row(BLOCK), n_rows, tl.num_programs(0) * BLOCK):
        rows, active = rows_from(start, n_rows, listed_rows, True, BLOCK)
        active = read(proba, row_stride, column_stride, n, found, TOLERANCE, rows, active, tile, K, BLOCK)
        m = _point_label(rows, active, given, left, right, mode_weights, tile, K, POINT, SHAPE, BLOCK)
        y = tl.load(labels + rows, mask=active, other=0).to(tl.int32)
        _grow(
            m, tl.where(y < m, 0, m), tl.where(y < m, m, K - 1), active, in_float64(float("-inf"), BLOCK),
            left, right, mode_weights, bound, tile, K, RULE, SHAPE, WEIGHTED, BLOCK,
        )  # fmt: skip
        nowhere = tl.zeros([BLOCK], tl.int64)
        count = _walk(y, m, active, rank, tile, K, nowhere, at, before, after, False, BLOCK)
        first = tl.atomic_add(found + N_STEPS, tl.sum(count).to(tl.int64))
        place = first + tl.cumsum(count, 0) - count
        _walk(y, m, active, rank, tile, K, place, at, before, after, True, BLOCK)


@triton.jit
def _point_label(
    rows, active, given, left, right, mode_weights, tile, K,
    POINT: tl.constexpr, SHAPE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    label = tl.zeros([BLOCK], tl.int32)
    if POINT == MODE:
        best = tl.full([BLOCK], -1.0, tl.float64)
        for j in range(K):
            score = tl.load(mode_weights + j) * tl.load(tile + (P * K + j) * BLOCK)
            label = tl.where(score > best, j, label)
            best = tl.where(score > best, score, best)
    elif POINT == BAYES:
        label = _label_of_least_risk(left, right, tile, K, SHAPE, BLOCK)
    elif POINT == MEDIAN:
        cumulative = tl.zeros([BLOCK], tl.float64)
        for j in range(K - 1):
            cumulative += tl.load(tile + (P * K + j) * BLOCK)
            label += (cumulative < 0.5).to(tl.int32)
    else:
        label = tl.load(given + rows, mask=active, other=0).to(tl.int32)
    return label


@triton.jit
def _label_of_least_risk(left, right, tile, K, SHAPE: tl.constexpr, BLOCK: tl.constexpr):
    gain = tl.zeros([BLOCK], tl.float64)
    tail = tl.zeros([BLOCK], tl.float64)
    for t in range(K):
        j = K - 1 - t
        tl.store(tile + (RISK * K + j) * BLOCK, tail)
        gain = _gain(gain, j, right, tile, K, False, SHAPE, BLOCK)
        tail += gain
    tl.debug_barrier()
    gain = tl.zeros([BLOCK], tl.float64)
    head = tl.zeros([BLOCK], tl.float64)
    least = tl.full([BLOCK], float("inf"), tl.float64)
    label = tl.zeros([BLOCK], tl.int32)
    for j in range(K):
        risk = head + tl.load(tile + (RISK * K + j) * BLOCK)
        label = tl.where(risk < least, j, label)
        least = tl.where(risk < least, risk, least)
        gain = _gain(gain, j, left, tile, K, True, SHAPE, BLOCK)
        head += gain
    tl.debug_barrier()
    return label


@triton.jit
def _gain(outer_gain, j, saved, tile, K, LEFT: tl.constexpr, SHAPE: tl.constexpr, BLOCK: tl.constexpr):
    """``a_j`` or ``b_j``, from the gain of the next label outward where the table allows it."""
    gain = tl.zeros([BLOCK], tl.float64)
    if SHAPE != FULL:
        gain = tl.load(tile + (P * K + j) * BLOCK) * tl.load(saved + j * K + j)
        if SHAPE == RUNNING:
            gain = outer_gain + gain
    else:
        for t in range(j + 1 if LEFT else K - j):
            i = t if LEFT else K - 1 - t
            gain += tl.load(tile + (P * K + i) * BLOCK) * tl.load(saved + j * K + i)
    return gain


@triton.jit
def _grow(
    m, begin, end, active, threshold, left, right, mode_weights, bound, tile, K,
    RULE: tl.constexpr, SHAPE: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Grow from ``m`` while the next level is at least ``threshold``; the levels take the place of gains.

    The frontier's are found for the places ``begin..end`` only, see ``label_at``.
    """
    low, high = m, m
    if RULE == RPS:
        _ranked_probability_levels(m, active, tile, K, BLOCK)
        low, high = _ends(m, active, threshold, tile, K, BLOCK)
    else:
        head, rises_left = _gains_and_risks(m, left, tile, K, True, RULE != FRONTIER, SHAPE, BLOCK)
        tail, rises_right = _gains_and_risks(m, right, tile, K, False, RULE != FRONTIER, SHAPE, BLOCK)
        rises = rises_left | rises_right
        tl.debug_barrier()
        if RULE == FRONTIER:
            frontier_levels(m, begin, end, active & rises, tile, K, BLOCK)
            low, high = _ends(m, active, threshold, tile, K, BLOCK)
        else:
            growing = active & (head + tail >= threshold)
            if RULE == ADAPTIVE:
                everywhere = tl.zeros_like(m)
                frontier_levels(m, everywhere, everywhere + K - 1, growing & rises, tile, K, BLOCK)
            else:
                growing = active
            low, high = _join(
                m, head, tail, growing, threshold, mode_weights, bound, tile, K, RULE, WEIGHTED, BLOCK
            )
    return low, high


@triton.jit
def _gains_and_risks(
    m, saved, tile, K, LEFT: tl.constexpr, RISKS: tl.constexpr, SHAPE: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Each label's gain and the risk beyond it, on one side of ``m``.

    Returns the risk beyond ``m``, and which rows have gains that rise outward and so must be pooled.
    """
    rises = tl.zeros([BLOCK], tl.int1)
    gain = tl.zeros([BLOCK], tl.float64)
    risk = tl.zeros([BLOCK], tl.float64)
    for t in range(K):
        j = t if LEFT else K - 1 - t
        beyond = j < m if LEFT else j > m
        outer = gain
        gain = _gain(gain, j, saved, tile, K, LEFT, SHAPE, BLOCK)
        rises = rises | (beyond & (outer > gain))
        tl.store(tile + (GAIN * K + j) * BLOCK, gain, mask=beyond)
        if RISKS:
            tl.store(tile + (RISK * K + j) * BLOCK, risk, mask=beyond)
            risk = tl.where(beyond, risk + gain, risk)
    return risk, rises


@triton.jit
def _ends(m, active, threshold, tile, K, BLOCK: tl.constexpr):
    """The ends of the labels whose level reaches ``threshold``; levels never rise outward."""
    low, high = m, m
    for j in range(K):
        reaches = tl.load(tile + (GAIN * K + j) * BLOCK, mask=active, other=0.0) >= threshold
        low -= (reaches & (j < m)).to(tl.int32)
        high += (reaches & (j > m)).to(tl.int32)
    return low, high


@triton.jit
def _join(
    m, head, tail, growing, threshold, mode_weights, bound, tile, K,
    RULE: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Labels join one at a time, left or right, while the model's risk before that reaches ``threshold``.

    ``paper`` compares the neighbours' gains; on a tie the right one joins under a weighted loss, the left one
    under any other. ``adaptive`` compares their slopes, and there labels of one slope share the risk before
    the first of them. Past an end of the scale there is -1, less than any gain.
    """
    gains = tile + GAIN * K * BLOCK
    low, high = m, m
    next_left = tl.load(gains + (low - 1) * BLOCK, mask=growing & (low > 0), other=-1.0)
    next_right = tl.load(gains + (high + 1) * BLOCK, mask=growing & (high < K - 1), other=-1.0)
    covered = tl.load(mode_weights + m) * tl.load(tile + P * K * BLOCK + m * BLOCK)
    steepest = tl.full([BLOCK], -2.0, tl.float64)
    risk = tl.zeros([BLOCK], tl.float64)
    while any_lane(growing):
        if RULE == PAPER:
            goes_left = next_left > next_right if WEIGHTED else next_left >= next_right
            risk = tl.load(bound) - covered if WEIGHTED else head + tail
        else:
            steeper = tl.where(next_left >= next_right, next_left, next_right)
            risk = tl.where(steeper == steepest, risk, head + tail)
            steepest = steeper
            goes_left = next_left == steepest
        growing = growing & (risk >= threshold)
        joins_left, joins_right = growing & goes_left, growing & (goes_left == 0)
        low -= joins_left.to(tl.int32)
        high += joins_right.to(tl.int32)
        joining = tl.where(goes_left, low, high)
        tl.store(gains + joining * BLOCK, risk, mask=growing)
        beyond = tl.load(tile + (RISK * K + joining) * BLOCK, mask=growing, other=0.0)
        head, tail = tl.where(joins_left, beyond, head), tl.where(joins_right, beyond, tail)
        covered += tl.where(growing, tl.where(goes_left, next_left, next_right), 0.0)
        outward = tl.where(goes_left, low - 1, high + 1)
        on_scale = (outward >= 0) & (outward < K)
        gain = tl.load(gains + outward * BLOCK, mask=growing & on_scale, other=-1.0)
        next_left, next_right = tl.where(joins_left, gain, next_left), tl.where(joins_right, gain, next_right)
        growing = growing & (high - low < K - 1)
    tl.debug_barrier()
    return low, high


@triton.jit
def _ranked_probability_levels(m, active, tile, K, BLOCK: tl.constexpr):
    """The score is summed from the median outward; a level is never more than the label next inward has."""
    cumulatives = tile + MEAN * K * BLOCK
    scores = tile + RISK * K * BLOCK
    cumulative = tl.zeros([BLOCK], tl.float64)
    median = tl.zeros([BLOCK], tl.int32)
    for j in range(K):
        cumulative += tl.load(tile + (P * K + j) * BLOCK)
        tl.store(cumulatives + j * BLOCK, cumulative)
        median += ((cumulative < 0.5) & (j < K - 1)).to(tl.int32)
    tl.debug_barrier()
    at_median = tl.zeros([BLOCK], tl.float64)
    for k in range(K - 1):
        F = tl.load(cumulatives + k * BLOCK)
        miss = tl.where(k < median, F, 1.0 - F)
        at_median += miss * miss
    score = at_median
    for t in range(K):
        j = K - 1 - t
        score = tl.where(j < median, score + (1.0 - 2.0 * tl.load(cumulatives + j * BLOCK)), score)
        tl.store(scores + j * BLOCK, score, mask=j <= median)
    score = at_median
    for j in range(1, K):
        score = tl.where(j > median, score + (2.0 * tl.load(cumulatives + (j - 1) * BLOCK) - 1.0), score)
        tl.store(scores + j * BLOCK, score, mask=j > median)
    tl.debug_barrier()
    for LEFT in tl.static_range(2):
        level = tl.full([BLOCK], float("inf"), tl.float64)
        for t in range(K):
            j = K - 1 - t if LEFT else t
            beyond = j < m if LEFT else j > m
            own = 0.0 - tl.load(scores + j * BLOCK)
            level = tl.where(beyond & (own < level), own, level)
            tl.store(tile + (GAIN * K + j) * BLOCK, level, mask=beyond)
    tl.debug_barrier()


@triton.jit
def _walk(
    y, m, active, rank, tile, K, place, at, before, after, WRITES: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """From each row's label to its point label, the steps of its loss, written from ``place`` on; how many.

    Labels that drop out together make one step, and steps that cost nothing are left out.
    """
    gains = tile + GAIN * K * BLOCK
    towards = tl.where(m > y, 1, -1)
    near, far = y, y
    count = tl.zeros([BLOCK], tl.int32)
    walking = active & (y != m)
    level = tl.load(gains + y * BLOCK, mask=walking, other=0.0)
    while any_lane(walking):
        far += tl.where(walking, towards, 0)
        next_level = tl.load(gains + far * BLOCK, mask=walking & (far != m), other=float("inf"))
        drops = walking & ((far == m) | (next_level != level))
        cost_before = tl.load(rank + y * K + near, mask=drops, other=0)
        cost_after = tl.load(rank + y * K + far, mask=drops, other=0)
        steps_up = drops & (cost_after > cost_before)
        if WRITES:
            tl.store(at + place + count, level, mask=steps_up)
            tl.store(before + place + count, y * K + near, mask=steps_up)
            tl.store(after + place + count, y * K + far, mask=steps_up)
        count += steps_up.to(tl.int32)
        near = tl.where(drops, far, near)
        level = tl.where(drops, next_level, level)
        walking = walking & (far != m)
    return count
