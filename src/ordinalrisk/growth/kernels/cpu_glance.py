"""Rows of a weighted loss at a glance: in vector registers, where rounding can't change the result.

If the labels whose gain reaches the threshold are next to each other, they are the frontier's interval:
blocks of labels that all reach it have a mean that does, blocks of others have not, so no block has both. The
point label has the largest gain, so it is one of them, or is alone. The margins decide how a set is computed,
never what belongs to it.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from ordinalrisk.growth.kernels import SameObject
from ordinalrisk.growth.kernels.compiling import helper, inlined
from ordinalrisk.growth.kernels.cpu_tile import FRONTIER, MODE, TILE
from ordinalrisk.growth.kernels.vectors import (
    LANES,
    falls_outward_through,
    fetch_ahead,
    first_and_count_at_least,
    labels_between,
    sum_sign_and_largest,
)
from ordinalrisk.losses.cost_table import GainTables

MOST_CLASSES = 1_000
NUMBERS_AHEAD = 2_048
MARGIN = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-11}
SMALLEST_SEEN = {np.dtype(np.float32): 1e-28, np.dtype(np.float64): 1e-280}


class Glance(NamedTuple):
    """What doing a row of a weighted loss at a glance needs, in the number type of the rows.

    ``nearly`` and ``enough`` bracket the probability with which a label's gain reaches the threshold,
    ``below`` and ``above`` times a gain those that rounding could confuse with it. ``smallest`` is more
    than the gain of any probability that is taken for zero, and ``slack`` how far the sum may seem to be from
    1.
    """

    suffices: bool
    keep: NDArray[Any]
    weights: NDArray[Any]
    exact_weights: NDArray[np.float64]
    nearly: NDArray[Any]
    enough: NDArray[Any]
    above: Any
    below: Any
    smallest: Any
    slack: float


def glance_for(
    dtype: np.dtype[Any], costs: GainTables, rule: int, point: int, threshold: float, tolerance: float
) -> Glance:
    """What is needed for rows of this type, and whether it suffices for the loss, rule and threshold."""
    return _made_before(dtype, SameObject(costs), rule, point, threshold, tolerance)


@lru_cache(maxsize=64)
def _made_before(
    dtype: np.dtype[Any], kept: SameObject, rule: int, point: int, threshold: float, tolerance: float
) -> Glance:
    costs: GainTables = kept.value
    K, h = len(costs.mode_weights), costs.mode_weights
    width, margin, smallest = -(-K // LANES) * LANES, MARGIN[dtype], SMALLEST_SEEN[dtype]
    keep, weights = np.zeros(width, f"i{dtype.itemsize}"), np.zeros(width, dtype)
    nearly, enough = np.full((2, width), inf, dtype)
    with np.errstate(all="ignore"):  # what is out of range is not done at a glance
        keep[:K], weights[:K] = -1, h
        nearly[:K], enough[:K] = threshold * (1 - margin) / h, threshold * (1 + margin) / h
    has_price = costs.rank.max(axis=1) > 0  # exactly, where a weight may round to zero
    in_range = (
        has_price.any()
        and smallest < min(threshold, h[has_price].min())
        and h.max() < 1 / smallest
        and smallest < nearly[:K].min() < inf
    )
    return Glance(
        costs.weighted
        and rule == FRONTIER
        and point == MODE
        and in_range
        and K <= MOST_CLASSES
        and not numba.config.DISABLE_JIT,
        keep,
        weights,
        h,
        nearly,
        enough,
        dtype.type(1 + margin),
        dtype.type(1 - margin),
        dtype.type(smallest * max(1.0, h.max())) if in_range else dtype.type(inf),
        tolerance - (width // LANES + 8) * float(np.finfo(dtype).eps) - K * float(np.finfo(np.float64).eps),
    )


@helper
def rows_in_view(proba):
    """How many rows may be read in whole vectors without leaving the array."""
    n, K = proba.shape
    return n - (LANES - 1) // K - 1


@helper
def runs_at_a_glance(proba, lower, upper, glance, start, waiting, left):
    """Intervals of the rows where no gain is near the threshold; how many others wait."""
    if 0 < proba.shape[1] <= LANES:  # where one vector holds a row, the compiler leaves out the loops over it
        return _runs_of_tile(proba, lower, upper, glance, start, waiting, left)
    return _runs_of_tile(proba, lower, upper, glance, start, waiting, left)


@inlined
def _runs_of_tile(proba, lower, upper, glance, start, waiting, left):
    K = proba.shape[1]
    for i in range(start, start + TILE):
        fetch_ahead(proba, i * K + NUMBERS_AHEAD, K)
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


@helper
def steps_at_a_glance(proba, labels, at, before, after, glance, start, found, waiting, left):
    """Steps of the rows whose label is a block of its own; how many others wait, and how many steps."""
    if 0 < proba.shape[1] <= LANES:
        return _steps_of_tile(proba, labels, at, before, after, glance, start, found, waiting, left)
    return _steps_of_tile(proba, labels, at, before, after, glance, start, found, waiting, left)


@inlined
def _steps_of_tile(proba, labels, at, before, after, glance, start, found, waiting, left):
    K = proba.shape[1]
    for i in range(start, start + TILE):
        fetch_ahead(proba, i * K + NUMBERS_AHEAD, K)
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


@inlined
def _point_at_a_glance(proba, glance, i):
    """The point label, and whether the row is valid and no other label comes near it."""
    K = proba.shape[1]
    total, negative, largest = sum_sign_and_largest(proba, i * K, K, glance.keep, glance.weights)
    m, count = first_and_count_at_least(proba, i * K, K, glance.keep, glance.weights, largest * glance.below)
    seen = (count == 1) & (largest > glance.smallest)
    return m, (not negative) & (abs(total - 1.0) <= glance.slack) & seen


@inlined
def _stands_alone(y, m, proba, glance, i):
    """Whether the label is a block of its own: less than every gain inward, more than every one outward."""
    K = proba.shape[1]
    gain = proba[i, y] * glance.weights[y]
    bars = gain * glance.below, gain * glance.above
    return (gain > glance.smallest) & falls_outward_through(
        proba, i * K, K, glance.keep, glance.weights, y, m, *bars
    )
