"""The arguments of the C kernels, as in ``native/kernels.h``, and the bounds for the quick test of a row.

With a weighted loss: if the labels with a gain of at least the threshold are next to each other, they are the
frontier's interval. A block of such labels has a mean of at least the threshold, a block of other labels has
not, so no block has both. The point label has the largest gain, so it is one of them or the only label of the
set. With gains that are running sums, which never rise outward, the ends are where the sums from either end
of the scale reach the threshold. The margins decide how a set is computed, never which labels belong to it.
"""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_int64, c_void_p
from functools import lru_cache
from math import inf
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.growth.kernels import SameObject
from ordinalrisk.losses.cost_table import RUNNING, GainTables

Structure = TypeVar("Structure", bound=ctypes.Structure)

MOST_CLASSES_COMPILED = 1_000
MARGIN = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-11}
SMALLEST_SEEN = {np.dtype(np.float32): 1e-28, np.dtype(np.float64): 1e-280}
MOST_LANES = 16
TERMS_OF_A_SUM = 16  # numbers that are added one by one before they join the sum of a row
AT_GAINS, AT_RUNNING_SUMS = 1, 2


class Costs(ctypes.Structure):
    """The cost table."""

    _fields_ = (
        ("left", c_void_p),
        ("right", c_void_p),
        ("left_diagonal", c_void_p),
        ("right_diagonal", c_void_p),
        ("mode_weights", c_void_p),
        ("rank", c_void_p),
        ("n_classes", c_int64),
        ("shape", c_int64),
        ("weighted", c_int64),
        ("one_step", c_int64),
        ("bound", c_double),
    )


class Rows(ctypes.Structure):
    """Rows of probabilities, each in one piece, and the point labels from the caller."""

    _fields_ = (
        ("proba", c_void_p),
        ("bytes", c_int64),
        ("n", c_int64),
        ("n_classes", c_int64),
        ("given", c_void_p),
        ("tolerance", c_double),
    )


class QuickTest(ctypes.Structure):
    """Bounds for the quick test of a row, in the number type of the rows; ``at`` is 0 without such a test.

    A label's gain reaches the threshold at a probability between ``nearly`` and ``enough``. Running sums of
    probabilities times ``left`` and ``right`` reach the threshold at 1. Multiplied by ``below`` and
    ``above``, a number brackets the numbers that rounding could confuse with it. ``smallest`` is larger than
    the gain of any probability that counts as zero. ``slack`` is how far rounding can move the sum of a row
    away from 1.
    """

    _fields_ = (
        ("at", c_int64),
        ("weights", c_void_p),
        ("nearly", c_void_p),
        ("enough", c_void_p),
        ("left", c_void_p),
        ("right", c_void_p),
        ("exact_weights", c_void_p),
        ("below", c_double),
        ("above", c_double),
        ("smallest", c_double),
        ("slack", c_double),
    )


def address(array: Any) -> int:
    """Return the address of the first number of an array."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # takes a third of the time
    except (TypeError, ValueError):  # read-only, empty, or not in one piece
        place: int = array.__array_interface__["data"][0]
        return place


def rows_of(proba: NDArray[Any], given: NDArray[np.int64] | None, tolerance: float) -> Rows:
    """Return the rows for the kernels; the caller must keep the arrays during the call."""
    given_at = None if given is None else address(given)
    return Rows(address(proba), proba.itemsize, *proba.shape, given_at, tolerance)


def costs_of(costs: GainTables) -> Costs:
    """Return the cost table for the kernels."""
    return _costs_of(SameObject(costs))


@lru_cache(maxsize=8)
def _costs_of(kept: SameObject) -> Costs:
    costs: GainTables = kept.value
    arrays = [
        np.ascontiguousarray(array, np.float64)
        for array in (costs.left, costs.right, np.diagonal(costs.left), np.diagonal(costs.right))
    ]
    arrays.append(np.ascontiguousarray(costs.mode_weights, np.float64))
    rank = np.ascontiguousarray(costs.rank, np.int64)
    numbers = len(rank), costs.shape, costs.weighted, costs.one_step, costs.bound
    found: Costs = _kept(Costs(*map(address, arrays), address(rank), *numbers), *arrays, rank)
    return found


def quick_test_for(
    dtype: np.dtype[Any],
    costs: GainTables,
    rule: str,
    point: str,
    threshold: float | None,
    tolerance: float,
) -> QuickTest:
    """Return the bounds for the quick test of a row: for sets at a threshold or, without one, for steps."""
    if rule != "frontier" or point != "mode" or len(costs.mode_weights) > MOST_CLASSES_COMPILED:
        return NO_QUICK_TEST
    if costs.one_step if threshold is None else costs.weighted:
        return _quick_test_of_gains(
            dtype, SameObject(costs), 1.0 if threshold is None else threshold, tolerance
        )
    if costs.shape == RUNNING and threshold is not None:
        return _quick_test_of_running_sums(dtype, SameObject(costs), threshold, tolerance)
    return NO_QUICK_TEST


@lru_cache(maxsize=64)
def _quick_test_of_gains(
    dtype: np.dtype[Any], kept: SameObject, threshold: float, tolerance: float
) -> QuickTest:
    costs: GainTables = kept.value
    K, h = len(costs.mode_weights), np.ascontiguousarray(costs.mode_weights, np.float64)
    margin, smallest = MARGIN[dtype], SMALLEST_SEEN[dtype]
    with np.errstate(all="ignore"):  # out of range, so there is no quick test
        weights = h.astype(dtype)
        nearly, enough = np.full((2, K + MOST_LANES), inf, dtype)
        nearly[:K], enough[:K] = threshold * (1 - margin) / h, threshold * (1 + margin) / h
    suffices = (
        costs.has_price.any()
        and smallest < min(threshold, h[costs.has_price].min())
        and h.max() < 1 / smallest
        and smallest < nearly[:K].min() < inf
    )
    if not suffices:
        return NO_QUICK_TEST
    arrays = weights, nearly, enough, h
    at = [*map(address, arrays[:3]), None, None, address(h)]
    margins = 1 - margin, 1 + margin, smallest * max(1.0, h.max()), tolerance - _rounding(dtype, K)
    found: QuickTest = _kept(QuickTest(AT_GAINS, *at, *margins), *arrays)
    return found


@lru_cache(maxsize=64)
def _quick_test_of_running_sums(
    dtype: np.dtype[Any], kept: SameObject, threshold: float, tolerance: float
) -> QuickTest:
    """The margin covers the roundings of a running sum, at most K + 3, and those of the reference."""
    costs: GainTables = kept.value
    K, eps = len(costs.mode_weights), float(np.finfo(dtype).eps)
    with np.errstate(all="ignore"):  # numbers out of range fail the quick test
        left, right = ((np.diagonal(table) / threshold).astype(dtype) for table in (costs.left, costs.right))
        largest = float(max(left.max(), right.max()))
    if not (threshold > 0 and K * SMALLEST_SEEN[dtype] * largest < eps):  # nor a NaN
        return NO_QUICK_TEST
    margin = (K + 8) * eps
    at = None, None, None, address(left), address(right), None
    margins = 1 - margin, 1 + margin, 0.0, tolerance - _rounding(dtype, K)
    found: QuickTest = _kept(QuickTest(AT_RUNNING_SUMS, *at, *margins), left, right)
    return found


def _rounding(dtype: np.dtype[Any], K: int) -> float:
    """How far rounding can move the sum of a row."""
    n_added = -(-K // TERMS_OF_A_SUM) + TERMS_OF_A_SUM + 2
    return 0.6 * n_added * float(np.finfo(dtype).eps) + K * float(np.finfo(np.float64).eps)


def _kept(structure: Structure, *arrays: NDArray[Any]) -> Structure:
    """Attach the arrays to the structure, which has only their addresses, so that they are not freed."""
    structure.arrays = arrays
    return structure


NO_QUICK_TEST = QuickTest()
