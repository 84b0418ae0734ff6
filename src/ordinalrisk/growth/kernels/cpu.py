"""The growth rules compiled by numba, over blocks of rows in threads.

Every rule mirrors its namesake in :mod:`ordinalrisk.growth.kernels.reference` and gives the same bits. Rows
are taken a tile at a time. Those whose result rounding can't change are done at a glance, in vector
registers; the others are worked out as in the reference, with one vector lane for each row where they have
work in common. Each row is checked while it is read. Kernels release the interpreter lock and run in plain
Python threads, so they may be called from any thread or process, nested or not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from functools import cache
from itertools import pairwise
from math import inf
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from ordinalrisk.growth.kernels import POINTS, RULES, InvalidRow
from ordinalrisk.growth.kernels.compiling import compiled
from ordinalrisk.growth.kernels.cpu_glance import (
    MARGIN,
    glance_for,
    rows_in_view,
    runs_at_a_glance,
    steps_at_a_glance,
)
from ordinalrisk.growth.kernels.cpu_tile import (
    ALL_VALID,
    CLEAR,
    FRONTIER,
    LEVEL,
    LOWER,
    MODE,
    N_LANES,
    PARTS,
    POINT,
    ROW_PARTS,
    TILE,
    UPPER,
    all_wait,
    find_clear_intervals,
    find_ends_of_falling_gains,
    find_points,
    grow,
    leave,
    load_tile,
    prepare,
    read_tile,
    steps_in_tile,
)
from ordinalrisk.growth.kernels.vectors import number_at
from ordinalrisk.inputs.arrays import SUM_TOLERANCE, number_type, widened
from ordinalrisk.losses.cost_table import RUNNING, GainTables

N_COMPILED = 10
ROWS_WORTH_A_THREAD = 16_384
NUMBERS_COPIED_AT_ONCE = 65_536
NOT_GIVEN = np.empty(0, np.int64)

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
    kernel = _compiled(_intervals, _plain_type(proba))
    glance = glance_for(_plain_type(proba), *how)

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
    kernel = _compiled(_steps, _plain_type(proba))
    glance = glance_for(_plain_type(proba), *how[:3], threshold=1.0, tolerance=tolerance)

    def block(rows: slice) -> list[tuple[Floats, Ends, Ends]]:
        parts = []
        room = max(rows.stop - rows.start, 3 * TILE * proba.shape[1])
        at, before, after = np.empty(room), np.empty(room, np.int32), np.empty(room, np.int32)
        for here, p in _plain(proba, rows):
            done = 0
            while done < len(p):
                left = slice(here.start + done, here.stop)
                n_done, found, bad = kernel(
                    p[done:], given[left], labels[left], at, before, after, *how, glance, *_workspace(p)
                )
                _require_valid(bad, left.start)
                parts.append((at[:found].copy(), before[:found].copy(), after[:found].copy()))
                done += n_done
        return parts

    blocks = _over_blocks(block, len(proba))
    parts = [part for parts in blocks for part in parts]
    at, before, after = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return at, before, after


def side_by_side(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns of one length and number type, each in one piece, as a matrix with each row in one piece."""
    dtype = columns[0].dtype
    if dtype not in MARGIN or not all(
        column.dtype == dtype and column.flags.c_contiguous and column.flags.aligned for column in columns
    ):
        return np.stack(columns, axis=1)
    matrix = np.empty((len(columns[0]), len(columns)), dtype)
    addresses = np.array([column.ctypes.data for column in columns], np.int64)

    def block(rows: slice, _: Any = columns) -> None:  # an interrupted caller may let go of the columns
        here = addresses + rows.start * dtype.itemsize
        _compiled(_copy_rows, dtype)(here, dtype.itemsize, matrix[rows])

    _over_blocks(block, len(matrix))
    return matrix


def compile_ahead() -> Iterator[str]:
    """Compile every kernel for every number type; their names, as they are ready."""
    for dtype in MARGIN:
        for kernel in (_point_labels, _levels, _intervals, _steps, _copy_rows):
            _compiled(kernel, dtype)
            yield f"{kernel.__name__.lstrip('_')}, {dtype}"


def cache_folder() -> str | None:
    """Where compiled kernels are kept; None if no folder could be written."""
    folder: str | None = _compiled(_intervals, np.dtype(np.float32)).stats.cache_path
    return folder


def _plain_type(proba: NDArray[Any]) -> np.dtype[Any]:
    return proba.dtype if proba.dtype in MARGIN else np.dtype(np.float32)


def _plain(proba: NDArray[Any], rows: slice) -> Iterator[tuple[slice, NDArray[Any]]]:
    """The rows as float32 or float64 in row order: as they are, or else copied a few at a time."""
    if proba.dtype == _plain_type(proba) and proba.flags.c_contiguous and proba.flags.aligned:
        yield rows, proba[rows]
        return
    at_once = max(TILE, NUMBERS_COPIED_AT_ONCE // proba.shape[1])
    for start in range(rows.start, rows.stop, at_once):
        here = slice(start, min(start + at_once, rows.stop))
        yield here, _in_row_order(widened(proba[here]))


def _in_row_order(proba: NDArray[Any]) -> NDArray[Any]:
    """A copy with each row in one piece; of columns in one piece, several times faster than numpy's."""
    if proba.flags.c_contiguous or not proba.flags.aligned or proba.dtype not in MARGIN:
        return np.ascontiguousarray(proba)
    copy = np.empty(proba.shape, proba.dtype)
    addresses = proba.ctypes.data + np.arange(proba.shape[1]) * proba.strides[1]
    _compiled(_copy_rows, proba.dtype)(addresses, proba.strides[0], copy)
    return copy


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
    tasks = _tasks_of_threads(numba.config.NUMBA_NUM_THREADS)
    others: list[Future[Result]] = []
    try:
        for block in blocks[1:]:
            other: Future[Result] = Future()
            tasks.put((other, run, block))
            others.append(other)
        first = run(blocks[0])
    finally:
        wait(others)  # they write to what the caller gave
    return [first, *(other.result() for other in others)]


@cache
def _tasks_of_threads(count: int) -> SimpleQueue[Any]:
    """Tasks of threads that stand ready: starting them anew would take longer than a hundred thousand rows.

    Nobody waits for these threads when Python ends. An executor waits for its own, and if it is interrupted
    while one starts, it forgets to stop that one and waits for ever.
    """
    tasks: SimpleQueue[Any] = SimpleQueue()
    for i in range(count):
        Thread(target=_work, args=(tasks,), name=f"ordinalrisk_{i}", daemon=True).start()
    return tasks


def _work(tasks: SimpleQueue[Any]) -> None:
    while True:
        _do(*tasks.get())


def _do(future: Future[Any], run: Callable[[slice], Any], block: slice) -> None:
    try:
        future.set_result(run(block))
    except BaseException as error:
        future.set_exception(error)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tasks_of_threads.cache_clear)  # threads do not live on in a child


@cache
def _compiled(kernel: Callable[..., Any], dtype: np.dtype[Any]) -> Any:
    """``kernel`` for probabilities of one number type; their array may be read-only."""
    number = numba.from_dtype(dtype)
    proba = types.Array(number, 2, "C", readonly=True)
    labels = types.Array(types.int64, 1, "A", readonly=True)
    costs = numba.typeof(_EXAMPLE_COSTS)
    glance = numba.typeof(glance_for(dtype, _EXAMPLE_COSTS, FRONTIER, MODE, 0.5, 0.0))
    code, ends, real = types.int64, types.int32[::1], types.float64
    tile, lane = types.float64[:, :, ::1], types.float64[:, ::1]
    rest = {
        _point_labels: (labels, types.int64[::1], costs, code, real),
        _levels: (labels, lane, costs, code),
        _intervals: (labels, ends, ends, costs, code, code, real, real, glance),
        _steps: (labels, labels, types.float64[::1], ends, ends, costs, code, code, real, glance),
    }
    if kernel is _copy_rows:
        return compiled(kernel, (types.int64[::1], types.int64, types.Array(number, 2, "C")))
    signature = (proba, *rest[kernel], tile, lane, lane, types.int64[::1])
    return compiled(kernel, signature)


_EXAMPLE_COSTS = GainTables(
    np.zeros((2, 2)), np.zeros((2, 2)), 0, np.ones(2), np.zeros((2, 2), np.int64), True, 1.0
)


def _copy_rows(addresses, stride, copy):
    """Rows from columns that begin at these addresses, a row's numbers ``stride`` bytes after the last's."""
    for i in range(copy.shape[0]):
        for j in range(copy.shape[1]):
            copy[i, j] = number_at(addresses[j] + i * stride, copy)


def _point_labels(proba, given, points, costs, point, tolerance, tile, lane, row, waiting):
    for start in range(0, proba.shape[0], TILE):
        count = all_wait(start, proba.shape[0], waiting, 0)
        bad = load_tile(proba, waiting, count, tolerance, tile)
        if bad != ALL_VALID:
            return bad
        find_points(costs, point, given, waiting, count, tile, lane)
        for q in range(count):
            points[start + q] = int(lane[POINT, q])
    return ALL_VALID


def _levels(proba, points, out, costs, rule, tile, lane, row, waiting):
    for start in range(0, proba.shape[0], TILE):
        count = all_wait(start, proba.shape[0], waiting, 0)
        load_tile(proba, waiting, count, inf, tile)
        prepare(costs, rule, count, tile)
        for q in range(count):
            grow(costs, rule, points[start + q], -inf, q, tile, row)
            for j in range(proba.shape[1]):
                out[start + q, j] = row[LEVEL, j]


def _intervals(
    proba, given, lower, upper, costs, rule, point, threshold, tolerance, glance, tile, lane, row, waiting
):
    n = proba.shape[0]
    n_in_view = rows_in_view(proba)
    left = 0
    for start in range(0, n, TILE):
        if glance.suffices and start + TILE <= n_in_view:
            left = runs_at_a_glance(proba, lower, upper, glance, start, waiting, left)
        else:
            left = all_wait(start, n, waiting, left)
        while left >= TILE or (left > 0 and start + TILE >= n):
            count = min(TILE, left)
            bad = read_tile(proba, given, costs, rule, point, tolerance, waiting, count, tile, lane)
            if bad != ALL_VALID:
                return bad
            n_clear = 0
            if rule == FRONTIER and costs.shape == RUNNING:
                n_clear = find_ends_of_falling_gains(threshold, count, tile, lane)
            elif rule == FRONTIER:
                n_clear = find_clear_intervals(costs, threshold, count, tile, lane)
            for q in range(count):
                i = waiting[q]
                if rule == FRONTIER and (n_clear == count or lane[CLEAR, q] == 1.0):
                    lower[i], upper[i] = np.int32(lane[LOWER, q]), np.int32(lane[UPPER, q])
                else:
                    lower[i], upper[i] = grow(costs, rule, int(lane[POINT, q]), threshold, q, tile, row)
            left = leave(count, waiting, left)
    return ALL_VALID


def _steps(
    proba, given, labels, at, before, after, costs, rule, point, tolerance, glance, tile, lane, row, waiting
):
    """Fill the room given, if the rows last; rows done, steps found, first invalid row."""
    n, K = proba.shape
    n_in_view = rows_in_view(proba)
    found = left = done = 0
    while done < n and found + 2 * TILE * K <= at.size:
        if glance.suffices and done + TILE <= n_in_view:
            left, found = steps_at_a_glance(
                proba, labels, at, before, after, glance, done, found, waiting, left
            )
        else:
            left = all_wait(done, n, waiting, left)
        done = min(done + TILE, n)
        while left >= TILE or (left > 0 and (done == n or found + 2 * TILE * K > at.size)):
            count = min(TILE, left)
            bad = read_tile(proba, given, costs, rule, point, tolerance, waiting, count, tile, lane)
            if bad != ALL_VALID:
                return done, found, bad
            found = steps_in_tile(
                labels, at, before, after, costs, rule, found, waiting, count, tile, lane, row
            )
            left = leave(count, waiting, left)
    return done, found, ALL_VALID
