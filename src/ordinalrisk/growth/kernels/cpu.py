"""The growth rules in C, over blocks of rows in threads.

Every rule mirrors its namesake in :mod:`ordinalrisk.growth.kernels.reference` and gives the same bits; see
``native/tile.c`` for how. Kernels release the interpreter lock and run in plain Python threads, so they may
be called from any thread or process, nested or not. If the library can't be loaded, numpy computes the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from ctypes import byref
from functools import cache
from itertools import pairwise
from queue import SimpleQueue
from threading import Thread, local
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.growth.kernels import POINT_NUMBERS, RULE_NUMBERS, InvalidRow, vectorised
from ordinalrisk.growth.kernels.arguments import MARGIN, address, costs_of, quick_test_for, rows_of
from ordinalrisk.growth.kernels.library import functions
from ordinalrisk.inputs.arrays import SUM_TOLERANCE, number_type, widened
from ordinalrisk.losses.cost_table import GainTables

ROWS_IN_A_TILE = 16
ROWS_WORTH_A_THREAD = 16_384
NUMBERS_COPIED_AT_ONCE = 65_536
ALL_VALID = -1
STEP_TYPES = np.float64, np.int32, np.int32
IN_ONE_PIECE: tuple[Literal["C_CONTIGUOUS"], Literal["ALIGNED"]] = ("C_CONTIGUOUS", "ALIGNED")
MOST_THREADS = 4_096  # with many more, a system has none left for other programs

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
EndLabels = NDArray[np.int32]
Result = TypeVar("Result")


def _threads_wanted() -> int:
    wanted = os.environ.get("ORDINALRISK_NUM_THREADS")
    if wanted:
        try:
            count = int(wanted)
        except ValueError:
            count = 0
        if not 1 <= count <= MOST_THREADS:
            raise ValueError(
                f"ORDINALRISK_NUM_THREADS={wanted!r} is not a number of threads; "
                f"set it to a whole number from 1 to {MOST_THREADS}, or leave it unset."
            )
        return count
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


N_THREADS = _threads_wanted()


def point_labels(proba: NDArray[Any], costs: GainTables, point: str, given: Labels | None = None) -> Labels:
    """The label that each set grows from."""
    run = functions()
    if run is None:
        return vectorised.point_labels(proba, costs, point, given)
    points = np.empty(len(proba), np.int64)
    given, tolerance, table = _labels(given), SUM_TOLERANCE[number_type(proba)], costs_of(costs)

    def block(rows: slice) -> None:
        room, _held = _workspace(proba.shape[1])
        for here, p in _plain_rows(proba, rows):
            taken = rows_of(p, _part(given, here), tolerance)
            bad = run.point_labels(byref(taken), byref(table), POINT_NUMBERS[point], _at(points, here), room)
            _require_valid(bad, here.start)

    _over_blocks(block, len(proba))
    return points


def levels(
    proba: NDArray[Any], costs: GainTables, rule: str, point: str, given: Labels | None = None
) -> Floats:
    """``e[i, j]``: the largest threshold at which label ``j`` belongs to the set of row ``i``."""
    run = functions()
    if run is None:
        return vectorised.levels(proba, costs, rule, point, given)
    out = np.empty(proba.shape)
    given, tolerance, table = _labels(given), SUM_TOLERANCE[number_type(proba)], costs_of(costs)
    how = RULE_NUMBERS[rule], POINT_NUMBERS[point]

    def block(rows: slice) -> None:
        room, _held = _workspace(proba.shape[1])
        for here, p in _plain_rows(proba, rows):
            taken = rows_of(p, _part(given, here), tolerance)
            bad = run.levels(byref(taken), byref(table), *how, address(out[here]), room)
            _require_valid(bad, here.start)

    _over_blocks(block, len(proba))
    return out


def intervals(
    proba: NDArray[Any],
    costs: GainTables,
    rule: str,
    point: str,
    threshold: float,
    given: Labels | None = None,
) -> tuple[EndLabels, EndLabels]:
    """First and last label of each row's set ``{j : e_j >= threshold}``."""
    run = functions()
    if run is None:
        return vectorised.intervals(proba, costs, rule, point, threshold, given)
    ends = np.empty((2, len(proba)), np.int32)
    lower_at, upper_at = address(ends), address(ends) + ends.strides[0]
    given, tolerance, table = _labels(given), SUM_TOLERANCE[number_type(proba)], costs_of(costs)
    quick = quick_test_for(_plain_type(proba), costs, rule, point, threshold, tolerance)
    how = RULE_NUMBERS[rule], POINT_NUMBERS[point], threshold, byref(quick)

    def block(rows: slice, _: Any = ends) -> None:  # keeps the ends if the caller is interrupted
        room, _held = _workspace(proba.shape[1])
        for here, p in _plain_rows(proba, rows):
            taken = rows_of(p, _part(given, here), tolerance)
            first = 4 * here.start
            to = lower_at + first, upper_at + first, room
            bad = run.intervals(byref(taken), byref(table), *how, *to)
            _require_valid(bad, here.start)

    _over_blocks(block, len(proba))
    return ends[0], ends[1]


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
    run = functions()
    if run is None:
        return vectorised.steps(proba, labels, costs, rule, point, given)
    given, tolerance, table = _labels(given), SUM_TOLERANCE[number_type(proba)], costs_of(costs)
    y = np.require(labels, np.int64, IN_ONE_PIECE)
    quick = quick_test_for(_plain_type(proba), costs, rule, point, None, tolerance)
    how = RULE_NUMBERS[rule], POINT_NUMBERS[point], byref(quick)
    n_rows, K = proba.shape
    at_most_one = [np.empty(n_rows, dtype) for dtype in STEP_TYPES] if costs.one_step else None

    def block(rows: slice) -> list[list[NDArray[Any]]]:
        if at_most_one:
            found = [array[rows] for array in at_most_one]
        else:
            most = max(rows.stop - rows.start, 3 * ROWS_IN_A_TILE * K)
            found = [np.empty(most, dtype) for dtype in STEP_TYPES]
        parts, used = [], 0
        progress = np.zeros(2, np.int64)
        room, _held = _workspace(K)
        for here, p in _plain_rows(proba, rows):
            done = 0
            while done < len(p):
                rest = slice(here.start + done, here.stop)
                taken = rows_of(p[done:], _part(given, rest), tolerance)
                to = [_at(array, slice(used, None)) for array in found]
                where = _at(y, rest), *to, len(found[0]) - used, address(progress), room
                _require_valid(run.steps(byref(taken), byref(table), *how, *where), rest.start)
                n_done, n_found = progress.tolist()
                done, used = done + n_done, used + n_found
                if done < len(p):  # there is no room for the steps of more rows
                    parts.append([array[:used].copy() for array in found])
                    used = 0
        return [*parts, [array[:used] for array in found]]

    parts = zip(*(part for parts in _over_blocks(block, n_rows) for part in parts), strict=True)
    if at_most_one is None:
        at, before, after = map(np.concatenate, parts)
    else:
        at, before, after = map(_moved_together, at_most_one, parts)
    return at, before, after


def _moved_together(whole: NDArray[Any], parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join parts of an array inside it: fresh memory would take longer than the move."""
    end = 0
    for part in parts:
        start, end = end, end + len(part)
        whole[start:end] = part
    return whole[:end]


def count_uncertainty(proba: NDArray[Any], shift: int, first: int, n_bins: int) -> Labels | None:
    """Count rows by one minus their largest probability; None without the library.

    Numbers with the same bits above ``shift`` share a bin. Bin 1 has the bits ``first``; bin 0 is for all
    numbers below.
    """
    run = functions()
    if run is None:
        return None

    def block(rows: slice) -> Labels:
        counts = np.zeros(n_bins, np.int64)
        for _, p in _plain_rows(proba, rows):
            run.count_uncertainty(byref(rows_of(p, None, 0.0)), shift, first, n_bins, address(counts))
        return counts

    counts: Labels = np.sum(_over_blocks(block, len(proba)), axis=0)
    return counts


def side_by_side(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Copy contiguous columns of one length and type into a matrix with contiguous rows."""
    dtype, run = columns[0].dtype, functions()
    plain = all(
        column.dtype == dtype and column.flags.c_contiguous and column.flags.aligned for column in columns
    )
    if run is None or dtype not in MARGIN or not plain:
        return np.stack(columns, axis=1)
    matrix = np.empty((len(columns[0]), len(columns)), dtype)
    addresses = np.array([address(column) for column in columns], np.int64)

    def block(rows: slice, _: Any = columns) -> None:  # keeps the columns if the caller is interrupted
        _copy_rows(run, addresses + rows.start * dtype.itemsize, dtype.itemsize, matrix[rows])

    _over_blocks(block, len(matrix))
    return matrix


def _copy_rows(run: Any, columns: Labels, stride: int, copy: NDArray[Any]) -> None:
    run.copy_rows(address(columns), stride, copy.itemsize, address(copy), *copy.shape)


def _plain_type(proba: NDArray[Any]) -> np.dtype[Any]:
    return proba.dtype if proba.dtype in MARGIN else np.dtype(np.float32)


def _plain_rows(proba: NDArray[Any], rows: slice) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield the rows as float32 or float64 in row order, unchanged or copied a few at a time."""
    flags = proba.flags
    if flags.c_contiguous and flags.aligned and proba.dtype in MARGIN:
        yield rows, proba[rows]
        return
    at_once = max(ROWS_IN_A_TILE, NUMBERS_COPIED_AT_ONCE // proba.shape[1])
    for start in range(rows.start, rows.stop, at_once):
        here = slice(start, min(start + at_once, rows.stop))
        yield here, _in_row_order(widened(proba[here]))


def _in_row_order(proba: NDArray[Any]) -> NDArray[Any]:
    """Copy to contiguous rows; from contiguous columns, several times faster than numpy."""
    run = functions()
    if run is None or proba.flags.c_contiguous or not proba.flags.aligned or proba.dtype not in MARGIN:
        return np.ascontiguousarray(proba)
    copy = np.empty(proba.shape, proba.dtype)
    columns = address(proba) + np.arange(proba.shape[1]) * proba.strides[1]
    _copy_rows(run, columns, proba.strides[0], copy)
    return copy


def _labels(given: Labels | None) -> Labels | None:
    return None if given is None else np.require(given, np.int64, IN_ONE_PIECE)


def _part(given: Labels | None, rows: slice) -> Labels | None:
    return None if given is None else given[rows]


def _at(array: NDArray[Any], rows: slice) -> int:
    place: int = address(array) + rows.start * array.itemsize
    return place


def _require_valid(bad: int, first_row: int) -> None:
    if bad != ALL_VALID:
        raise InvalidRow(first_row + bad)


def _workspace(n_classes: int) -> tuple[int, Any]:
    """Return the address of a thread's workspace, kept for its next call, and the object that holds it.

    A signal's handler may need a workspace of another size before the kernel has run.
    """
    kept: tuple[int, int, Any] | None = getattr(_of_this_thread, "workspace", None)
    if kept is None or kept[0] != n_classes:
        room = np.empty(functions().room_for(n_classes), np.uint8)
        kept = _of_this_thread.workspace = n_classes, address(room), room
    return kept[1:]


_of_this_thread = local()


def _over_blocks(run: Callable[[slice], Result], n: int) -> list[Result]:
    """Run a kernel on each block of rows; return the results in the order of the blocks."""
    n_blocks = min(N_THREADS, n // ROWS_WORTH_A_THREAD)
    if n_blocks <= 1:
        return [run(slice(0, n))]
    edges = [n * b // n_blocks for b in range(n_blocks + 1)]
    blocks = [slice(*pair) for pair in pairwise(edges)]
    try:
        tasks = _tasks_of_threads(N_THREADS)
    except RuntimeError:  # the system starts no thread
        return [run(slice(0, n))]
    others: list[Future[Result]] = []
    try:
        for block in blocks[1:]:
            others.append(_handed_over(tasks, run, block))
        first = run(blocks[0])
    finally:
        wait(others)  # they write into the caller's arrays
    results = [first]
    while others:  # so that an error does not keep its task alive, and the rows
        results.append(others.pop(0).result())
    return results


def _handed_over(tasks: SimpleQueue[Any], run: Callable[[slice], Result], block: slice) -> Future[Result]:
    future: Future[Result] = Future()
    tasks.put((future, run, block))
    return future


@cache
def _tasks_of_threads(count: int) -> SimpleQueue[Any]:
    """The task queue of threads that stay alive: starting threads would take longer than 100,000 rows.

    Python does not wait for these threads when it ends. The threads of an executor would be waited for, and
    if it is interrupted while it starts one, it does not stop that one and waits for ever.
    """
    tasks: SimpleQueue[Any] = SimpleQueue()
    for i in range(count):
        try:
            Thread(target=_work, args=(tasks,), name=f"ordinalrisk_{i}", daemon=True).start()
        except RuntimeError:  # the system starts no more threads
            if i == 0:
                raise
            break
    return tasks


def _work(tasks: SimpleQueue[Any]) -> None:
    while True:
        _do(*tasks.get())


def _do(future: Future[Any], run: Callable[[slice], Any], block: slice) -> None:
    try:
        future.set_result(run(block))
    except BaseException as error:
        future.set_exception(error)
        del future  # it refers to the error, which refers to this frame


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tasks_of_threads.cache_clear)  # a forked child has no threads
