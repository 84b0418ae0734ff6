"""A risk curve that is known around some thresholds only, where the rows were too many to keep it whole."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class NotKnownError(ValueError):
    """What a curve does not tell, since that part of it was not kept."""


class Window(NamedTuple):
    """Consecutive levels: the total below the first one, the levels ascending, the total just above each."""

    below: int
    levels: NDArray[np.float64]
    totals: NDArray[Any]


@dataclass(frozen=True, eq=False)
class WindowedSteps:
    """The steps of losses in some windows, with what all others add up to.

    Parameters
    ----------
    windows : tuple of Window
        Apart from each other, in ascending order, none of them empty.
    total : int
        All steps together.
    most_tied : int
        The most steps at one level, of those in the windows.

    Examples
    --------
    >>> window = Window(5, np.array([0.25, 0.5]), np.array([6, 8]))
    >>> steps = WindowedSteps((window,), total=20, most_tied=2)
    >>> steps.first_level_above(5), steps.first_level_above(7), steps.first_level_above(20)
    (0.25, 0.5, inf)
    >>> steps.first_level_above(8)
    Traceback (most recent call last):
    ordinalrisk.curves.windows.NotKnownError: The risk curve is not known where the total loss passes 8 units.
    """

    windows: tuple[Window, ...]
    total: int
    most_tied: int

    @property
    def in_order(self) -> WindowedSteps:
        """The steps as they are."""
        return self

    @cached_property
    def levels(self) -> NDArray[np.float64]:
        """All levels that are known."""
        return np.concatenate([np.empty(0), *(window.levels for window in self.windows)])

    @cached_property
    def totals(self) -> NDArray[Any]:
        """The total just above each of them."""
        return np.concatenate([np.empty(0, np.int64), *(window.totals for window in self.windows)])

    def first_level_above(self, budget: int) -> float:
        """The lowest level at which the steps up to it add up to more than ``budget``; infinite if none."""
        if budget >= self.total:
            return math.inf
        for window in self.windows:
            if window.below <= budget < int(window.totals[-1]):
                return float(window.levels[np.searchsorted(window.totals, budget, side="right")])
        raise NotKnownError(f"The risk curve is not known where the total loss passes {budget} units.")

    def total_below(self, threshold: float) -> int:
        """What the steps at levels below ``threshold`` add up to."""
        if threshold == -math.inf:
            return 0
        if threshold == math.inf:
            return self.total
        for window in self.windows:
            low, high = float(window.levels[0]), math.nextafter(float(window.levels[-1]), math.inf)
            if (threshold >= low or not window.below) and (
                threshold <= high or window.totals[-1] == self.total  # there are no steps beyond
            ):
                below = int(np.searchsorted(window.levels, threshold, side="left"))
                return int(window.totals[below - 1]) if below else window.below
        raise NotKnownError(f"The risk curve is not known at the threshold {threshold!r}.")
