"""Counts on their way to another machine: one array in few bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.evaluation.counts import Tally


def packed(counts: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers, none of them negative, in the narrowest type that holds them.

    Examples
    --------
    >>> packed(np.array([3, 255])).dtype, packed(np.array([3, 256])).dtype
    (dtype('uint8'), dtype('uint16'))
    """
    if counts.dtype == object:  # too large for 64 bits
        return counts
    return counts.astype(np.min_scalar_type(counts.max(initial=0)))


def packed_tallies(tallies: Iterable[Tally]) -> NDArray[Any]:
    """All counts of some tallies of as many classes."""
    return packed(np.array([(each.truth_lower, each.truth_upper, each.lower_upper) for each in tallies]))


def unpacked_tallies(counts: NDArray[Any]) -> list[Tally]:
    """The tallies again.

    Examples
    --------
    >>> from ordinalrisk import IntervalSet
    >>> tally = Tally.of(np.array([0, 1]), IntervalSet([0, 0], [0, 1], classes=[0, 1]))
    >>> [same] = unpacked_tallies(packed_tallies([tally]))
    >>> same.coverage(), same.lower_upper.dtype
    (1.0, dtype('int64'))
    """
    return [Tally(*each) for each in counts.astype(np.int64)]
