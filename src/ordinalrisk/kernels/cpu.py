"""The growth rules compiled by numba, over blocks of rows in threads.

Every rule mirrors its namesake in :mod:`ordinalrisk.kernels.reference` and gives the same bits. Rows are
taken a tile at a time. Those whose result rounding can't change are done at a glance, in vector registers;
the others are worked out as in the reference, with one vector lane for each row where they have work in
common. Each row is checked while it is read. Kernels release the interpreter lock and run in plain Python
threads, so they may be called from any thread or process, nested or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from ordinalrisk.cost_table import DIAGONAL, RUNNING, GainTables
from ordinalrisk.kernels import POINTS, RULES, SUM_TOLERANCE, InvalidRow, number_type, widened
from ordinalrisk.kernels.vectors import (
    LANES,
    falls_outward_through,
    first_and_count_at_least,
    labels_between,
    sum_sign_and_largest,
)

PAPER, FRONTIER, ADAPTIVE, RPS = RULES.values()
MODE, BAYES, MEDIAN, GIVEN = POINTS.values()

# The workspace: a tile (PARTS, K, TILE) of what is computed for many rows at once, single numbers for each of
# its rows in lanes (N_LANES, TILE), a table (ROW_PARTS, K) of what is computed for one row at a time, and the
# numbers of the rows that wait for a place in the tile. Loops over lanes read before they choose, so that the
# compiler can choose without a branch, in registers.
TILE = 64
P, LEFT, RIGHT, HEAD, TAIL = range(5)
PARTS = 5
POINT, BEST, SECOND, TOTAL, LOWER, UPPER, GAP, CLEAR, MISSED = range(9)
N_LANES = 9
LEVEL, SLOPE, BLOCK_TOTAL, BLOCK_MEAN, BLOCK_SIZE = range(5)
ROW_PARTS = 5

ALL_VALID = -1
N_COMPILED = 8
ROWS_WORTH_A_THREAD = 16_384
NUMBERS_COPIED_AT_ONCE = 65_536
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


def point_labels(proba: NDArray[Any], costs: GainTables, point: str, given: Labels | None = None) -> Labels:
    """The label each interval grows from."""
    points = np.empty(len(proba), np.int64)
    given = NOT_GIVEN if given is None else given
    how = (costs, POINTS[point], SUM_TOLERANCE[number_type(proba)])

    def block(rows: slice) -> None:
        for here, p in _plain(proba, rows):
            bad = _compiled(_point_labels, p.dtype)(p, given[here], points[here], *how, *_workspace(p))
            _require_valid(bad, here.start)

    _over_blocks(block, len(proba))
    return points


def levels(
    proba: NDArray[Any], costs: GainTables, rule: str, point: str, given: Labels | None = None
) -> Floats:
    """``e[i, j]``: the largest threshold at which label ``j`` belongs to the interval of row ``i``."""
    points = point_labels(proba, costs, point, given)
    out = np.empty(proba.shape)
    for here, p in _plain(proba, slice(0, len(proba))):
        _compiled(_levels, p.dtype)(p, points[here], out[here], costs, RULES[rule], *_workspace(p))
    return out


def intervals(
    proba: NDArray[Any],
    costs: GainTables,
    rule: str,
    point: str,
    threshold: float,
    given: Labels | None = None,
) -> tuple[Ends, Ends]:
    """First and last label of each row's set ``{j : e_j >= threshold}``."""
    lower, upper = np.empty(len(proba), np.int32), np.empty(len(proba), np.int32)
    given = NOT_GIVEN if given is None else given
    tolerance = SUM_TOLERANCE[number_type(proba)]
    how = (costs, RULES[rule], POINTS[point], threshold, tolerance)
    kernel, glance = _compiled(_intervals, _plain_type(proba)), _glance(_plain_type(proba), *how)

    def block(rows: slice) -> None:
        for here, p in _plain(proba, rows):
            bad = kernel(p, given[here], lower[here], upper[here], *how, glance, *_workspace(p))
            _require_valid(bad, here.start)

    _over_blocks(block, len(proba))
    return lower, upper


def steps(
    proba: NDArray[Any],
    labels: Labels,
    costs: GainTables,
    rule: str,
    point: str,
    given: Labels | None = None,
) -> tuple[Floats, Ends, Ends]:
    """Where each row's loss steps up as the threshold rises, and between which entries of the cost table.

    The steps are in no particular order.
    """
    given = NOT_GIVEN if given is None else given
    tolerance = SUM_TOLERANCE[number_type(proba)]
    how = (costs, RULES[rule], POINTS[point], tolerance)
    kernel, glance = (
        _compiled(_steps, _plain_type(proba)),
        _glance(_plain_type(proba), *how[:3], 1.0, tolerance),
    )

    def block(rows: slice) -> list[tuple[Floats, Ends, Ends]]:
        parts = []
        for here, p in _plain(proba, rows):
            room = max(len(p), 3 * TILE * p.shape[1])
            done = 0
            while done < len(p):
                at, before, after = np.empty(room), np.empty(room, np.int32), np.empty(room, np.int32)
                left = slice(here.start + done, here.stop)
                n_done, found, bad = kernel(
                    p[done:], given[left], labels[left], at, before, after, *how, glance, *_workspace(p)
                )
                _require_valid(bad, left.start)
                parts.append((at[:found], before[:found], after[:found]))
                done += n_done
        return parts

    blocks = _over_blocks(block, len(proba))
    parts = [part for parts in blocks for part in parts]
    at, before, after = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return at, before, after


def compile_ahead() -> Iterator[str]:
    """Compile every kernel for every number type; their names, as they are ready."""
    for dtype in MARGIN:
        for kernel in (_point_labels, _levels, _intervals, _steps):
            _compiled(kernel, dtype)
            yield f"{kernel.__name__.lstrip('_')}, {dtype}"


def cache_folder() -> str | None:
    """Where compiled kernels are kept; None if no folder could be written."""
    folder: str | None = _compiled(_intervals, np.dtype(np.float32)).stats.cache_path
    return folder


class Glance(NamedTuple):
    """What doing a row of a weighted loss at a glance needs, in the number type of the rows.

    ``nearly`` and ``enough`` bracket the probability with which a label's gain reaches the threshold,
    ``below`` and ``above`` times a gain those that rounding could confuse with it. ``smallest`` is far from
    denormal, ``slack`` is how far the sum may seem to be from 1.
    """

    suffices: bool
    keep: NDArray[Any]
    weights: NDArray[Any]
    exact_weights: Floats
    nearly: NDArray[Any]
    enough: NDArray[Any]
    above: Any
    below: Any
    smallest: Any
    slack: float


MARGIN = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-11}
SMALLEST_SEEN = {np.dtype(np.float32): 1e-28, np.dtype(np.float64): 1e-280}


def _glance(
    dtype: np.dtype[Any], costs: GainTables, rule: int, point: int, threshold: float, tolerance: float
) -> Glance:
    K, h = len(costs.mode_weights), costs.mode_weights
    width, margin, smallest = -(-K // LANES) * LANES, MARGIN[dtype], SMALLEST_SEEN[dtype]
    keep, weights = np.zeros(width, f"i{dtype.itemsize}"), np.zeros(width, dtype)
    nearly, enough = np.full((2, width), inf, dtype)
    with np.errstate(all="ignore"):  # what is out of range is not done at a glance
        keep[:K], weights[:K] = -1, h
        nearly[:K], enough[:K] = threshold * (1 - margin) / h, threshold * (1 + margin) / h
    in_range = smallest < h[h > 0].min() and h.max() < 1 / smallest and smallest < nearly[:K].min() < inf
    return Glance(
        costs.weighted
        and rule == FRONTIER
        and point == MODE
        and in_range
        and K <= MOST_CLEAR_CLASSES
        and not numba.config.DISABLE_JIT,
        keep,
        weights,
        h,
        nearly,
        enough,
        dtype.type(1 + margin),
        dtype.type(1 - margin),
        dtype.type(smallest),
        tolerance - (width // LANES + 8) * float(np.finfo(dtype).eps),
    )


def _plain_type(proba: NDArray[Any]) -> np.dtype[Any]:
    return proba.dtype if proba.dtype in MARGIN else np.dtype(np.float32)


def _plain(proba: NDArray[Any], rows: slice) -> Iterator[tuple[slice, NDArray[Any]]]:
    """The rows as float32 or float64 in row order: as they are, or else copied a few at a time."""
    if proba.dtype == _plain_type(proba) and proba.flags.c_contiguous:
        yield rows, proba[rows]
        return
    at_once = max(TILE, NUMBERS_COPIED_AT_ONCE // proba.shape[1])
    for start in range(rows.start, rows.stop, at_once):
        here = slice(start, min(start + at_once, rows.stop))
        yield here, np.ascontiguousarray(widened(proba[here]))


def _require_valid(bad: int, first_row: int) -> None:
    if bad != ALL_VALID:
        raise InvalidRow(first_row + bad)


def _workspace(proba: NDArray[Any]) -> tuple[Floats, Floats, Floats, Labels]:
    K = proba.shape[1]
    waiting = np.empty(2 * TILE, np.int64)
    return np.empty((PARTS, K, TILE)), np.empty((N_LANES, TILE)), np.empty((ROW_PARTS, K)), waiting


def _over_blocks(run: Callable[[slice], Result], n: int) -> list[Result]:
    """``run`` for each block of rows, the blocks' results in order."""
    n_blocks = max(1, min(numba.config.NUMBA_NUM_THREADS, n // ROWS_WORTH_A_THREAD))
    edges = [n * b // n_blocks for b in range(n_blocks + 1)]
    blocks = [slice(*pair) for pair in pairwise(edges)]
    if n_blocks == 1:
        return [run(blocks[0])]
    with ThreadPoolExecutor(n_blocks - 1) as pool:
        others = [pool.submit(run, block) for block in blocks[1:]]
        return [run(blocks[0]), *(other.result() for other in others)]


@cache
def _compiled(kernel: Callable[..., Any], dtype: np.dtype[Any]) -> Any:
    """``kernel`` for probabilities of one number type; their array may be read-only."""
    number = numba.from_dtype(dtype)
    proba = types.Array(number, 2, "C", readonly=True)
    labels = types.Array(types.int64, 1, "A", readonly=True)
    costs = numba.typeof(_EXAMPLE_COSTS)
    glance = numba.typeof(_glance(dtype, _EXAMPLE_COSTS, FRONTIER, MODE, 0.5, 0.0))
    code, ends, real = types.int64, types.int32[::1], types.float64
    tile, lane = types.float64[:, :, ::1], types.float64[:, ::1]
    rest = {
        _point_labels: (labels, types.int64[::1], costs, code, real),
        _levels: (labels, lane, costs, code),
        _intervals: (labels, ends, ends, costs, code, code, real, real, glance),
        _steps: (labels, labels, types.float64[::1], ends, ends, costs, code, code, real, glance),
    }
    signature = (proba, *rest[kernel], tile, lane, lane, types.int64[::1])
    try:
        return njit(signature, **_OPTIONS, cache=True)(kernel)
    except RuntimeError:  # a read-only image without a home: nowhere to keep what was compiled
        return njit(signature, **_OPTIONS)(kernel)


# Without numba's reference counting, since nothing is allocated here: its atomic counters, on arrays that
# threads share, would cost more than the work itself.
_OPTIONS = {"nogil": True, "_nrt": False}
_helper = njit(**_OPTIONS)
_inlined = njit(**_OPTIONS, forceinline=True)  # for each row, where passing so many arrays would take longer
_EXAMPLE_COSTS = GainTables(
    np.zeros((2, 2)), np.zeros((2, 2)), 0, np.ones(2), np.zeros((2, 2), np.int64), True, 1.0
)


def _point_labels(proba, given, points, costs, point, tolerance, tile, lane, row, waiting):
    for start in range(0, proba.shape[0], TILE):
        count = _all_wait(start, proba.shape[0], waiting, 0)
        bad = _load(proba, waiting, count, tolerance, tile)
        if bad != ALL_VALID:
            return bad
        _find_points(costs, point, given, waiting, count, tile, lane)
        for q in range(count):
            points[start + q] = int(lane[POINT, q])
    return ALL_VALID


def _levels(proba, points, out, costs, rule, tile, lane, row, waiting):
    for start in range(0, proba.shape[0], TILE):
        count = _all_wait(start, proba.shape[0], waiting, 0)
        _load(proba, waiting, count, inf, tile)
        _prepare(costs, rule, count, tile)
        for q in range(count):
            _grow(costs, rule, points[start + q], -inf, q, tile, row)
            for j in range(proba.shape[1]):
                out[start + q, j] = row[LEVEL, j]


def _intervals(
    proba, given, lower, upper, costs, rule, point, threshold, tolerance, glance, tile, lane, row, waiting
):
    n = proba.shape[0]
    n_in_view = _rows_in_view(proba)
    left = 0
    for start in range(0, n, TILE):
        if glance.suffices and start + TILE <= n_in_view:
            left = _runs_at_a_glance(proba, lower, upper, glance, start, waiting, left)
        else:
            left = _all_wait(start, n, waiting, left)
        while left >= TILE or (left > 0 and start + TILE >= n):
            count = min(TILE, left)
            bad = _read(proba, given, costs, rule, point, tolerance, waiting, count, tile, lane)
            if bad != ALL_VALID:
                return bad
            n_clear = 0
            if rule == FRONTIER and costs.shape == RUNNING:
                n_clear = _find_ends_of_falling_gains(threshold, count, tile, lane)
            elif rule == FRONTIER:
                n_clear = _find_clear_intervals(costs, threshold, count, tile, lane)
            for q in range(count):
                i = waiting[q]
                if rule == FRONTIER and (n_clear == count or lane[CLEAR, q] == 1.0):
                    lower[i], upper[i] = np.int32(lane[LOWER, q]), np.int32(lane[UPPER, q])
                else:
                    lower[i], upper[i] = _grow(costs, rule, int(lane[POINT, q]), threshold, q, tile, row)
            left = _leave(count, waiting, left)
    return ALL_VALID


def _steps(
    proba, given, labels, at, before, after, costs, rule, point, tolerance, glance, tile, lane, row, waiting
):
    """Fill the room given, if the rows last; rows done, steps found, first invalid row."""
    n, K = proba.shape
    n_in_view = _rows_in_view(proba)
    found = left = done = 0
    while done < n and found + 2 * TILE * K <= at.size:
        if glance.suffices and done + TILE <= n_in_view:
            left, found = _steps_at_a_glance(
                proba, labels, at, before, after, glance, done, found, waiting, left
            )
        else:
            left = _all_wait(done, n, waiting, left)
        done = min(done + TILE, n)
        while left >= TILE or (left > 0 and (done == n or found + 2 * TILE * K > at.size)):
            count = min(TILE, left)
            bad = _read(proba, given, costs, rule, point, tolerance, waiting, count, tile, lane)
            if bad != ALL_VALID:
                return done, found, bad
            found = _steps_in_tile(
                labels, at, before, after, costs, rule, found, waiting, count, tile, lane, row
            )
            left = _leave(count, waiting, left)
    return done, found, ALL_VALID


@_helper
def _steps_in_tile(labels, at, before, after, costs, rule, found, waiting, count, tile, lane, row):
    K = tile.shape[1]
    if rule == FRONTIER and costs.shape != RUNNING:
        _find_gains_that_fall(count, tile, lane)
    n_missed = 0
    for q in range(count):
        lane[MISSED, n_missed] = q
        n_missed += costs.rank[labels[waiting[q]], int(lane[POINT, q])] > 0
    for t in range(n_missed):
        q = int(lane[MISSED, t])
        y, m = labels[waiting[q]], int(lane[POINT, q])
        towards, gains = (1, LEFT) if m > y else (-1, RIGHT)
        if rule != FRONTIER:
            _grow(costs, rule, m, -inf, q, tile, row)
        elif costs.shape == RUNNING or lane[CLEAR, q] == 1.0:
            for j in range(y, m, towards):
                row[LEVEL, j] = tile[gains, j, q]
        else:
            n_outward = m if m > y else K - 1 - m
            _decreasing_slopes(gains, m - towards, -towards, n_outward, LEVEL, q, tile, row)
        found = _walk(costs, y, m, at, before, after, found, row)
    return found


@_inlined
def _walk(costs, y, m, at, before, after, found, row):
    """Write down the steps from the label to the point label, whose levels are in ``row``."""
    K = costs.rank.shape[0]
    towards = 1 if m > y else -1
    near = y
    while costs.rank[y, near] < costs.rank[y, m]:
        level = row[LEVEL, near]
        far = near + towards
        while far != m and level == row[LEVEL, far]:
            far += towards
        if costs.rank[y, far] > costs.rank[y, near]:
            at[found] = level
            before[found] = y * K + near
            after[found] = y * K + far
            found += 1
        near = far
    return found


@_helper
def _rows_in_view(proba):
    """How many rows may be read in whole vectors without leaving the array."""
    n, K = proba.shape
    return n - (LANES - 1) // K - 1


@_helper
def _all_wait(start, n, waiting, left):
    """Every row of a tile joins those that wait; how many do now."""
    for i in range(start, min(start + TILE, n)):
        waiting[left] = i
        left += 1
    return left


@_helper
def _leave(count, waiting, left):
    """The first ones leave, the others move up; how many still wait."""
    for q in range(count, left):
        waiting[q - count] = waiting[q]
    return left - count


@_helper
def _runs_at_a_glance(proba, lower, upper, glance, start, waiting, left):
    """Intervals of a weighted loss, for the rows where no gain is near the threshold; how many others wait.

    If the labels whose gain reaches the threshold are next to each other, they are the interval: blocks of
    labels that all reach it have a mean that does, blocks of others have not, so no block has both. The
    point label has the largest gain, so it is one of them, or is alone.
    """
    if 0 < proba.shape[1] <= LANES:  # where one vector holds a row, the compiler leaves out the loops over it
        return _runs_of_tile(proba, lower, upper, glance, start, waiting, left)
    return _runs_of_tile(proba, lower, upper, glance, start, waiting, left)


@_inlined
def _runs_of_tile(proba, lower, upper, glance, start, waiting, left):
    K = proba.shape[1]
    for i in range(start, start + TILE):
        total, negative, near, first, last, count = labels_between(
            proba, i * K, K, glance.keep, glance.nearly, glance.enough
        )
        clear = (not negative) & (not near) & (abs(total - 1.0) <= glance.slack)
        if count == 0:
            first, is_clear = _point_at_a_glance(proba, glance, i)
            clear &= is_clear
            last, count = first, 1
        lower[i], upper[i] = np.int32(first), np.int32(last)
        waiting[left] = i
        left += not (clear & (last - first + 1 == count))
    return left


@_helper
def _steps_at_a_glance(proba, labels, at, before, after, glance, start, found, waiting, left):
    """Steps of the rows whose label is a block of its own; how many others wait, and how many steps."""
    if 0 < proba.shape[1] <= LANES:
        return _steps_of_tile(proba, labels, at, before, after, glance, start, found, waiting, left)
    return _steps_of_tile(proba, labels, at, before, after, glance, start, found, waiting, left)


@_inlined
def _steps_of_tile(proba, labels, at, before, after, glance, start, found, waiting, left):
    K = proba.shape[1]
    for i in range(start, start + TILE):
        y = labels[i]
        m, clear = _point_at_a_glance(proba, glance, i)
        costs_nothing = (m == y) | (glance.weights[y] == 0.0)
        alone = _stands_alone(y, m, proba, glance, i)
        at[found] = np.float64(proba[i, y]) * glance.exact_weights[y]
        before[found] = y * K + y
        after[found] = y * K + y + (1 if m > y else -1)
        found += clear & alone & (not costs_nothing)
        waiting[left] = i
        left += not (clear & (costs_nothing | alone))
    return left, found


@_inlined
def _point_at_a_glance(proba, glance, i):
    """The point label, and whether the row is valid and no other label comes near it."""
    K = proba.shape[1]
    total, negative, largest = sum_sign_and_largest(proba, i * K, K, glance.keep, glance.weights)
    m, count = first_and_count_at_least(proba, i * K, K, glance.keep, glance.weights, largest * glance.below)
    return m, (not negative) & (abs(total - 1.0) <= glance.slack) & (count == 1)


@_inlined
def _stands_alone(y, m, proba, glance, i):
    """Whether the label is a block of its own: less than every gain inward, more than every one outward."""
    K = proba.shape[1]
    gain = proba[i, y] * glance.weights[y]
    bars = gain * glance.below, gain * glance.above
    return (gain > glance.smallest) & falls_outward_through(
        proba, i * K, K, glance.keep, glance.weights, y, m, *bars
    )


@_helper
def _read(proba, given, costs, rule, point, tolerance, waiting, count, tile, lane):
    """Rows into the tile with all that is the same computation in each; the first invalid one, if any."""
    bad = _load(proba, waiting, count, tolerance, tile)
    if bad == ALL_VALID:
        _find_points(costs, point, given, waiting, count, tile, lane)
        _prepare(costs, rule, count, tile)
    return bad


@_helper
def _load(proba, waiting, count, tolerance, tile):
    """Copy rows to the tile; the first that is no probability vector, if any."""
    for q in range(count):
        i = waiting[q]
        total = smallest = 0.0
        for j in range(tile.shape[1]):
            p = np.float64(proba[i, j])
            tile[P, j, q] = abs(p)  # a minus zero is a zero
            total += p
            smallest = p if p < smallest else smallest
        if not (smallest >= 0.0 and abs(total - 1.0) <= tolerance):  # so that a NaN fails
            return i
    return ALL_VALID


@_helper
def _find_points(costs, point, given, waiting, count, tile, lane):
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
            lane[POINT, q] = given[waiting[q]]


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
def _find_ends_of_falling_gains(threshold, count, tile, lane):
    """Running sums never rise outward, so they are the frontier's levels; the number of rows, all clear."""
    K = tile.shape[1]
    for q in range(count):
        lane[LOWER, q] = 0.0
        lane[UPPER, q] = K - 1.0
    for j in range(K - 1):
        here, there = float(j), float(K - 1 - j)
        for q in range(count):
            m, left, right = lane[POINT, q], tile[LEFT, j, q], tile[RIGHT, K - 1 - j, q]
            lane[LOWER, q] += 1.0 if (left < threshold) & (here < m) else 0.0
            lane[UPPER, q] -= 1.0 if (right < threshold) & (there > m) else 0.0
    return count


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
