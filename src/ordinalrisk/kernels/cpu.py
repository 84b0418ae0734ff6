"""The growth rules compiled by numba, over blocks of rows in threads.

Every rule mirrors its namesake in :mod:`ordinalrisk.kernels.reference` and gives the same bits. What differs:
rows are taken a tile at a time with one vector lane for each row, growth stops once the threshold is
passed, and each row is checked while it is read. Kernels release the interpreter lock and run in plain
Python threads, so they may be called from any thread or process, nested or not.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from math import inf
from typing import Any, TypeVar

import numba
import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from ordinalrisk.cost_table import DIAGONAL, RUNNING, GainTables
from ordinalrisk.kernels import SUM_TOLERANCE, InvalidRow

RULES = {"paper": 0, "frontier": 1, "adaptive": 2, "rps": 3}
PAPER, FRONTIER, ADAPTIVE, RPS = RULES.values()
POINTS = {"mode": 0, "bayes": 1, "median": 2, "given": 3}
MODE, BAYES, MEDIAN, GIVEN = POINTS.values()

# The workspace: a tile (PARTS, K, TILE) of what is computed for many rows at once, single numbers for each of
# its rows in lanes (LANES, TILE), and a table (ROW_PARTS, K) of what is computed for one row at a time. Loops
# over lanes read before they choose, so that the compiler can choose without a branch, in vector registers.
TILE = 64
P, LEFT, RIGHT, HEAD, TAIL = range(5)
PARTS = 5
POINT, BEST, SECOND, TOTAL, LOWER, UPPER, GAP, CLEAR, MISSED = range(9)
LANES = 9
LEVEL, SLOPE, BLOCK_TOTAL, BLOCK_MEAN, BLOCK_SIZE = range(5)
ROW_PARTS = 5

ALL_VALID = -1
ROWS_WORTH_A_THREAD = 16_384
NOT_GIVEN = np.empty(0, np.int64)

# By how much of the threshold the runner-up must be worse for a set to be known without pooling; and the
# smallest threshold, as a share of the largest loss, and the largest number of classes for which rounding
# stays far below that. They decide how a set is computed, never what belongs to it.
CLEARLY = 1e-5
SMALLEST_CLEAR_THRESHOLD = 1e-4
MOST_CLEAR_CLASSES = 1_000
FAR_FROM_DENORMAL, FAR_FROM_OVERFLOW = 1e-280, 1e290

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Ends = NDArray[np.int32]
Result = TypeVar("Result")


def point_labels(proba: NDArray[Any], costs: GainTables, point: str, given: Labels = NOT_GIVEN) -> Labels:
    """The label each interval grows from."""
    points = np.empty(len(proba), np.int64)
    kernel = _compiled(_point_labels, proba.dtype)

    def block(rows: slice) -> None:
        bad = kernel(proba[rows], given[rows], points[rows], costs, POINTS[point], *_workspace(proba))
        _require_valid(bad, rows.start)

    _over_blocks(block, len(proba))
    return points


def levels(
    proba: NDArray[Any], costs: GainTables, rule: str, point: str, given: Labels = NOT_GIVEN
) -> Floats:
    """``e[i, j]``: the largest threshold at which label ``j`` belongs to the interval of row ``i``."""
    points = point_labels(proba, costs, point, given)
    out = np.empty(proba.shape)
    kernel = _compiled(_levels, proba.dtype)
    kernel(proba, points, out, costs, RULES[rule], *_workspace(proba))
    return out


def intervals(
    proba: NDArray[Any],
    costs: GainTables,
    rule: str,
    point: str,
    threshold: float,
    given: Labels = NOT_GIVEN,
) -> tuple[Ends, Ends]:
    """First and last label of each row's set ``{j : e_j >= threshold}``."""
    lower, upper = np.empty(len(proba), np.int32), np.empty(len(proba), np.int32)
    kernel = _compiled(_intervals, proba.dtype)

    def block(rows: slice) -> None:
        bad = kernel(
            proba[rows],
            given[rows],
            lower[rows],
            upper[rows],
            costs,
            RULES[rule],
            POINTS[point],
            threshold,
            *_workspace(proba),
        )
        _require_valid(bad, rows.start)

    _over_blocks(block, len(proba))
    return lower, upper


def steps(
    proba: NDArray[Any],
    labels: Labels,
    costs: GainTables,
    rule: str,
    point: str,
    given: Labels = NOT_GIVEN,
) -> tuple[Floats, Ends, Ends]:
    """Where each row's loss steps up as the threshold rises, and between which entries of the cost table."""
    kernel = _compiled(_steps, proba.dtype)
    shared = (costs, RULES[rule], POINTS[point])

    def block(rows: slice) -> list[tuple[Floats, Ends, Ends]]:
        parts = []
        row, n = rows.start, rows.stop - rows.start
        room = max(n, TILE * proba.shape[1])
        while row < rows.stop:
            at, before, after = np.empty(room), np.empty(room, np.int32), np.empty(room, np.int32)
            here = slice(row, rows.stop)
            done, found, bad = kernel(
                proba[here], given[here], labels[here], at, before, after, *shared, *_workspace(proba)
            )
            _require_valid(bad, row)
            parts.append((at[:found], before[:found], after[:found]))
            row += done
        return parts

    blocks = _over_blocks(block, len(proba), spare=1)  # the fingerprint of the data is taken meanwhile
    parts = [part for parts in blocks for part in parts]
    at, before, after = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return at, before, after


def _require_valid(bad: int, first_row: int) -> None:
    if bad != ALL_VALID:
        raise InvalidRow(first_row + bad)


def _workspace(proba: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    K = proba.shape[1]
    return np.empty((PARTS, K, TILE)), np.empty((LANES, TILE)), np.empty((ROW_PARTS, K))


def _over_blocks(run: Callable[[slice], Result], n: int, spare: int = 0) -> list[Result]:
    """``run`` for each block of rows, the blocks' results in order; ``spare`` cores are left to others."""
    n_blocks = max(1, min(numba.config.NUMBA_NUM_THREADS - spare, n // ROWS_WORTH_A_THREAD))
    edges = [n * b // n_blocks for b in range(n_blocks + 1)]
    blocks = [slice(*pair) for pair in pairwise(edges)]
    if n_blocks == 1:
        return [run(blocks[0])]
    with ThreadPoolExecutor(n_blocks) as pool:
        return list(pool.map(run, blocks))


@cache
def _compiled(kernel: Callable[..., Any], dtype: np.dtype[Any]) -> Callable[..., Any]:
    """``kernel`` for probabilities of one number type, whatever their memory layout.

    Read-only parameters of any layout accept every array, so there is one compilation and not one for each
    of C order, Fortran order, strided, writable and read-only.
    """
    proba = types.Array(numba.from_dtype(dtype), 2, "A", readonly=True)
    labels = types.Array(types.int64, 1, "A", readonly=True)
    costs = numba.typeof(_EXAMPLE_COSTS)
    code, ends = types.int64, types.int32[::1]
    tile, lane = types.float64[:, :, ::1], types.float64[:, ::1]
    rest = {
        _point_labels: (labels, types.int64[::1], costs, code),
        _levels: (labels, types.float64[:, ::1], costs, code),
        _intervals: (labels, ends, ends, costs, code, code, types.float64),
        _steps: (labels, labels, types.float64[::1], ends, ends, costs, code, code),
    }
    signature = (proba, *rest[kernel], tile, lane, lane)
    compiled: Callable[..., Any]
    try:
        compiled = njit(signature, **_OPTIONS, cache=True)(kernel)
    except RuntimeError:  # a read-only image without a home: nowhere to keep what was compiled
        compiled = njit(signature, **_OPTIONS)(kernel)
    return compiled


# Without numba's reference counting, since nothing is allocated here: its atomic counters, on arrays that
# threads share, would cost more than the work itself.
_OPTIONS = {"nogil": True, "_nrt": False}
_helper = njit(**_OPTIONS)
_EXAMPLE_COSTS = GainTables(
    np.empty((2, 2)), np.empty((2, 2)), 0, np.empty(2), np.empty((2, 2), np.int64), True, 1.0
)


def _point_labels(proba, given, points, costs, point, tile, lane, row):
    for start in range(0, proba.shape[0], TILE):
        count = min(TILE, proba.shape[0] - start)
        bad = _load(proba, start, count, tile)
        if bad != ALL_VALID:
            return start + bad
        _find_points(costs, point, given, start, count, tile, lane)
        for q in range(count):
            points[start + q] = int(lane[POINT, q])
    return ALL_VALID


def _levels(proba, points, out, costs, rule, tile, lane, row):
    for start in range(0, proba.shape[0], TILE):
        count = min(TILE, proba.shape[0] - start)
        _load(proba, start, count, tile)
        _prepare(costs, rule, count, tile)
        for q in range(count):
            _grow(costs, rule, points[start + q], -inf, q, tile, row)
            for j in range(proba.shape[1]):
                out[start + q, j] = row[LEVEL, j]


def _intervals(proba, given, lower, upper, costs, rule, point, threshold, tile, lane, row):
    for start in range(0, proba.shape[0], TILE):
        count = min(TILE, proba.shape[0] - start)
        bad = _read(proba, given, costs, rule, point, start, count, tile, lane)
        if bad != ALL_VALID:
            return start + bad
        if rule == FRONTIER:
            n_clear = _find_clear_intervals(costs, threshold, count, tile, lane)
            for q in range(count):
                lower[start + q] = np.int32(lane[LOWER, q])
                upper[start + q] = np.int32(lane[UPPER, q])
            if n_clear == count:
                continue
        for q in range(count):
            if rule != FRONTIER or lane[CLEAR, q] == 0.0:
                m = int(lane[POINT, q])
                lower[start + q], upper[start + q] = _grow(costs, rule, m, threshold, q, tile, row)
    return ALL_VALID


def _steps(proba, given, labels, at, before, after, costs, rule, point, tile, lane, row):
    """Fill the room given, if the rows last; rows done, steps found, first invalid row."""
    n, K = proba.shape
    found = 0
    for start in range(0, n, TILE):
        if found + TILE * (K - 1) > at.size:
            return start, found, ALL_VALID
        count = min(TILE, n - start)
        bad = _read(proba, given, costs, rule, point, start, count, tile, lane)
        if bad != ALL_VALID:
            return start, found, start + bad
        if rule == FRONTIER:
            _find_gains_that_fall(count, tile, lane)
        n_missed = 0
        for q in range(count):
            lane[MISSED, n_missed] = q
            n_missed += costs.rank[labels[start + q], int(lane[POINT, q])] > 0
        for t in range(n_missed):
            q = int(lane[MISSED, t])
            y, m = labels[start + q], int(lane[POINT, q])
            towards, gains = (1, LEFT) if m > y else (-1, RIGHT)
            as_they_are = rule == FRONTIER and lane[CLEAR, q] == 1.0
            if rule == FRONTIER and not as_they_are:
                n_outward = m if m > y else K - 1 - m
                _decreasing_slopes(gains, m - towards, -towards, n_outward, LEVEL, q, tile, row)
            elif rule != FRONTIER:
                _grow(costs, rule, m, -inf, q, tile, row)
            near = y
            while costs.rank[y, near] < costs.rank[y, m]:
                level = tile[gains, near, q] if as_they_are else row[LEVEL, near]
                far = near + towards
                while far != m and level == (tile[gains, far, q] if as_they_are else row[LEVEL, far]):
                    far += towards
                if costs.rank[y, far] > costs.rank[y, near]:
                    at[found] = level
                    before[found] = y * K + near
                    after[found] = y * K + far
                    found += 1
                near = far
    return n, found, ALL_VALID


@_helper
def _read(proba, given, costs, rule, point, start, count, tile, lane):
    """Rows into the tile with all that is the same computation in each; the first invalid one, if any."""
    bad = _load(proba, start, count, tile)
    if bad == ALL_VALID:
        _find_points(costs, point, given, start, count, tile, lane)
        _prepare(costs, rule, count, tile)
    return bad


@_helper
def _load(proba, start, count, tile):
    """Copy rows to the tile; the first that is no probability vector, if any."""
    for q in range(count):
        total = smallest = 0.0
        for j in range(tile.shape[1]):
            p = np.float64(proba[start + q, j])
            tile[P, j, q] = abs(p)  # a minus zero is a zero
            total += p
            smallest = p if p < smallest else smallest
        if not (smallest >= 0.0 and abs(total - 1.0) <= SUM_TOLERANCE):  # so that a NaN fails
            return q
    return ALL_VALID


@_helper
def _find_points(costs, point, given, start, count, tile, lane):
    K = tile.shape[1]
    for q in range(count):
        lane[POINT, q] = 0.0
    if point == MODE:
        for q in range(count):
            lane[BEST, q] = -1.0
        for j in range(K):
            weight = costs.mode_weights[j]
            for q in range(count):
                score, best, label = weight * tile[P, j, q], lane[BEST, q], lane[POINT, q]
                lane[BEST, q] = score if score > best else best
                lane[POINT, q] = float(j) if score > best else label
    elif point == BAYES:
        _gains(costs, count, tile)
        _head_and_tail(count, tile)
        for q in range(count):
            lane[BEST, q] = inf
        for j in range(K):
            for q in range(count):
                risk, least, label = tile[HEAD, j, q] + tile[TAIL, j, q], lane[BEST, q], lane[POINT, q]
                lane[BEST, q] = risk if risk < least else least
                lane[POINT, q] = float(j) if risk < least else label
    elif point == MEDIAN:
        for q in range(count):
            lane[TOTAL, q] = 0.0
        for j in range(K - 1):
            for q in range(count):
                lane[TOTAL, q] += tile[P, j, q]
                lane[POINT, q] += lane[TOTAL, q] < 0.5
    else:
        for q in range(count):
            lane[POINT, q] = given[start + q]


@_helper
def _prepare(costs, rule, count, tile):
    """Whatever growth by ``rule`` needs that is the same computation in every row."""
    if rule != RPS:
        _gains(costs, count, tile)
        if rule != FRONTIER:
            _head_and_tail(count, tile)


@_helper
def _gains(costs, count, tile):
    K = tile.shape[1]
    if costs.shape == DIAGONAL:
        for j in range(K):
            left, right = costs.left[j, j], costs.right[j, j]
            for q in range(count):
                tile[LEFT, j, q] = tile[P, j, q] * left
                tile[RIGHT, j, q] = tile[P, j, q] * right
    elif costs.shape == RUNNING:
        _running_sums(costs.left, 0, 1, LEFT, count, tile)
        _running_sums(costs.right, K - 1, -1, RIGHT, count, tile)
    else:
        for j in range(K):
            for q in range(count):
                tile[LEFT, j, q] = 0.0
                tile[RIGHT, j, q] = 0.0
            for i in range(j + 1):
                left = costs.left[j, i]
                for q in range(count):
                    tile[LEFT, j, q] += tile[P, i, q] * left
            for i in range(K - 1, j - 1, -1):
                right = costs.right[j, i]
                for q in range(count):
                    tile[RIGHT, j, q] += tile[P, i, q] * right


@_helper
def _running_sums(saved, first, inward, part, count, tile):
    for q in range(count):
        tile[part, first, q] = tile[P, first, q] * saved[first, first]
    for t in range(1, tile.shape[1]):
        j = first + inward * t
        for q in range(count):
            tile[part, j, q] = tile[part, j - inward, q] + tile[P, j, q] * saved[j, j]


@_helper
def _head_and_tail(count, tile):
    K = tile.shape[1]
    for q in range(count):
        tile[HEAD, 0, q] = 0.0
        tile[TAIL, K - 1, q] = 0.0
    for j in range(K - 1):
        for q in range(count):
            tile[HEAD, j + 1, q] = tile[HEAD, j, q] + tile[LEFT, j, q]
    for j in range(K - 1, 0, -1):
        for q in range(count):
            tile[TAIL, j - 1, q] = tile[TAIL, j, q] + tile[RIGHT, j, q]


@_helper
def _find_clear_intervals(costs, threshold, count, tile, lane):
    """The frontier's intervals, where they can be known without pooling; how many those are.

    The lower end minimises ``H(l) + threshold * (m - l)``: what stays at risk, plus the price of the labels.
    Where every other label is clearly worse, no level is near the threshold, and rounding can't have moved
    the minimum. Likewise the upper end.
    """
    K = tile.shape[1]
    for q in range(count):
        lane[GAP, q] = inf
    _minimise(LEFT, 0, 1, threshold, LOWER, count, tile, lane)
    _minimise(RIGHT, K - 1, -1, threshold, UPPER, count, tile, lane)
    smallest = max(SMALLEST_CLEAR_THRESHOLD * costs.bound, FAR_FROM_DENORMAL)
    reliable = smallest < threshold < FAR_FROM_OVERFLOW and K <= MOST_CLEAR_CLASSES
    enough = CLEARLY * threshold if reliable else inf
    n_clear = 0.0
    for q in range(count):
        clear = 1.0 if lane[GAP, q] > enough else 0.0
        lane[CLEAR, q] = clear
        n_clear += clear
    return int(n_clear)


@_helper
def _minimise(gains, first, inward, price, end, count, tile, lane):
    """From one end of the scale inward to the point label, the end at which risk plus price is least."""
    for q in range(count):
        lane[TOTAL, q] = 0.0
        lane[BEST, q] = 0.0
        lane[SECOND, q] = inf
        lane[end, q] = first
    for t in range(1, tile.shape[1]):
        j = float(first + inward * t)
        for q in range(count):
            best, second, label = lane[BEST, q], lane[SECOND, q], lane[end, q]
            total = lane[TOTAL, q] + tile[gains, first + inward * (t - 1), q]
            value = total - t * price if (j - lane[POINT, q]) * inward <= 0.0 else inf
            runner_up = best if value < best else value
            lane[TOTAL, q] = total
            lane[SECOND, q] = runner_up if runner_up < second else second
            lane[BEST, q] = value if value < best else best
            lane[end, q] = j if value < best else label
    for q in range(count):
        gap, so_far = lane[SECOND, q] - lane[BEST, q], lane[GAP, q]
        lane[GAP, q] = gap if gap < so_far else so_far


@_helper
def _find_gains_that_fall(count, tile, lane):
    """Mark the rows whose gains never rise outward: they are the frontier's levels as they are."""
    for q in range(count):
        lane[CLEAR, q] = 1.0
    for j in range(tile.shape[1] - 1):
        here = float(j)
        for q in range(count):
            clear, m = lane[CLEAR, q], lane[POINT, q]
            left, left_inward = tile[LEFT, j, q], tile[LEFT, j + 1, q]
            right, right_outward = tile[RIGHT, j, q], tile[RIGHT, j + 1, q]
            rises_left = (left > left_inward) & (here + 1.0 < m)
            rises_right = (right < right_outward) & (here > m)
            lane[CLEAR, q] = 0.0 if rises_left | rises_right else clear


@_helper
def _grow(costs, rule, m, threshold, q, tile, row):
    """Grow from ``m`` while the next level is at least ``threshold``; its levels stay in ``row``."""
    if rule == PAPER:
        return _paper(costs, m, threshold, q, tile, row)
    if rule == ADAPTIVE:
        return _adaptive(m, threshold, q, tile, row)
    if rule == FRONTIER:
        _frontier_levels(m, LEVEL, q, tile, row)
    else:
        _ranked_probability_levels(m, q, tile, row)
    K = tile.shape[1]
    lower = upper = m
    while lower > 0 and row[LEVEL, lower - 1] >= threshold:
        lower -= 1
    while upper < K - 1 and row[LEVEL, upper + 1] >= threshold:
        upper += 1
    return lower, upper


@_helper
def _paper(costs, m, threshold, q, tile, row):
    K = tile.shape[1]
    row[LEVEL, m] = inf
    lower = upper = m
    covered = costs.mode_weights[m] * tile[P, m, q]
    while upper - lower < K - 1:
        risk = costs.bound - covered if costs.weighted else tile[HEAD, lower, q] + tile[TAIL, upper, q]
        if risk < threshold:
            break
        if upper == K - 1 or (lower > 0 and tile[LEFT, lower - 1, q] >= tile[RIGHT, upper + 1, q]):
            lower -= 1
            row[LEVEL, lower] = risk
            covered += tile[LEFT, lower, q]
        else:
            upper += 1
            row[LEVEL, upper] = risk
            covered += tile[RIGHT, upper, q]
    return lower, upper


@_helper
def _frontier_levels(m, part, q, tile, row):
    row[part, m] = inf
    _decreasing_slopes(LEFT, m - 1, -1, m, part, q, tile, row)
    _decreasing_slopes(RIGHT, m + 1, 1, tile.shape[1] - 1 - m, part, q, tile, row)


@_helper
def _decreasing_slopes(gains, first, outward, count, part, q, tile, row):
    blocks = 0
    for t in range(count):
        total = mean = tile[gains, first + outward * t, q]
        size = 1.0
        while blocks > 0 and mean > row[BLOCK_MEAN, blocks - 1]:
            blocks -= 1
            total = row[BLOCK_TOTAL, blocks] + total
            size += row[BLOCK_SIZE, blocks]
            mean = total / size
        row[BLOCK_TOTAL, blocks] = total
        row[BLOCK_MEAN, blocks] = mean
        row[BLOCK_SIZE, blocks] = size
        blocks += 1
    j = first
    for b in range(blocks):
        for _ in range(int(row[BLOCK_SIZE, b])):
            row[part, j] = row[BLOCK_MEAN, b]
            j += outward


@_helper
def _adaptive(m, threshold, q, tile, row):
    K = tile.shape[1]
    row[LEVEL, m] = inf
    lower = upper = m
    if tile[HEAD, m, q] + tile[TAIL, m, q] < threshold:
        return lower, upper
    _frontier_levels(m, SLOPE, q, tile, row)
    while upper - lower < K - 1:
        risk = tile[HEAD, lower, q] + tile[TAIL, upper, q]
        if risk < threshold:
            break
        steepest = max(
            row[SLOPE, lower - 1] if lower > 0 else -1.0,
            row[SLOPE, upper + 1] if upper < K - 1 else -1.0,
        )
        while lower > 0 and row[SLOPE, lower - 1] == steepest:
            lower -= 1
            row[LEVEL, lower] = risk
        while upper < K - 1 and row[SLOPE, upper + 1] == steepest:
            upper += 1
            row[LEVEL, upper] = risk
    return lower, upper


@_helper
def _ranked_probability_levels(m, q, tile, row):
    K = tile.shape[1]
    cumulative = 0.0
    median = 0
    for j in range(K):
        cumulative += tile[P, j, q]
        tile[HEAD, j, q] = cumulative
        median += j < K - 1 and cumulative < 0.5
    score = 0.0
    for k in range(K - 1):
        miss = tile[HEAD, k, q] if k < median else 1.0 - tile[HEAD, k, q]
        score += miss * miss
    tile[TAIL, median, q] = score
    for j in range(median - 1, -1, -1):
        tile[TAIL, j, q] = tile[TAIL, j + 1, q] + (1.0 - 2.0 * tile[HEAD, j, q])
    for j in range(median + 1, K):
        tile[TAIL, j, q] = tile[TAIL, j - 1, q] + (2.0 * tile[HEAD, j - 1, q] - 1.0)
    row[LEVEL, m] = inf
    for j in range(m - 1, -1, -1):
        row[LEVEL, j] = min(row[LEVEL, j + 1], 0.0 - tile[TAIL, j, q])
    for j in range(m + 1, K):
        row[LEVEL, j] = min(row[LEVEL, j - 1], 0.0 - tile[TAIL, j, q])
