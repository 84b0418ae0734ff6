"""The steps of losses in order of their levels: all of them, or those near some thresholds.

With too many rows to keep all steps, they are known in some windows only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class NotKnownError(ValueError):
    """The risk curve is not known at this place, because that part of it was not kept."""


class Window(NamedTuple):
    """Consecutive levels: the total below the first, the levels ascending, the total just above each."""

    below: int
    levels: NDArray[np.float64]
    totals: NDArray[Any]


@dataclass(frozen=True, eq=False)
class OrderedSteps:
    """The steps of losses by level, in one window if all are known, and the total of all steps.

    Windows ascend, do not touch and are not empty.

    Examples
    --------
    >>> window = Window(5, np.array([0.25, 0.5]), np.array([6, 8]))
    >>> steps = OrderedSteps((window,), total=20, most_tied=2)
    >>> steps.first_level_above(5), steps.first_level_above(7), steps.first_level_above(20)
    (0.25, 0.5, inf)
    >>> steps.first_level_above(8)
    Traceback (most recent call last):
    ordinalrisk.curves.windows.NotKnownError: The risk curve is not known where the total loss passes 8 units.
    """

    windows: tuple[Window, ...]
    total: int
    most_tied: int  # the most steps at one level of the windows

    @classmethod
    def whole(cls, levels: NDArray[np.float64], totals: NDArray[Any], most_tied: int) -> OrderedSteps:
        if not len(levels):
            return NO_STEPS
        return cls((Window(0, levels, totals),), int(totals[-1]), most_tied)

    @property
    def in_order(self) -> OrderedSteps:
        return self

    @cached_property
    def levels(self) -> NDArray[np.float64]:
        levels = [window.levels for window in self.windows]
        return levels[0] if len(levels) == 1 else np.concatenate([np.empty(0), *levels])

    @cached_property
    def totals(self) -> NDArray[Any]:
        """The total just above each known level."""
        totals = [window.totals for window in self.windows]
        return totals[0] if len(totals) == 1 else np.concatenate([np.empty(0, np.int64), *totals])

    def first_level_above(self, budget: int) -> float:
        """Return the lowest level at which the steps up to it exceed ``budget``; infinite if none does."""
        if budget >= self.total:
            return math.inf
        for window in self.windows:
            if window.below <= budget < int(window.totals[-1]):
                return float(window.levels[np.searchsorted(window.totals, budget, side="right")])
        raise NotKnownError(f"The risk curve is not known where the total loss passes {budget} units.")

    def total_below(self, threshold: float) -> int:
        """Return the total of the steps at levels below ``threshold``."""
        if threshold == -math.inf or not self.total:
            return 0
        if threshold == math.inf:
            return self.total
        for window in self.windows:
            low, high = float(window.levels[0]), math.nextafter(float(window.levels[-1]), math.inf)
            if (threshold >= low or not window.below) and (
                threshold <= high or window.totals[-1] == self.total  # no steps lie beyond
            ):
                below = int(np.searchsorted(window.levels, threshold, side="left"))
                return int(window.totals[below - 1]) if below else window.below
        raise NotKnownError(f"The risk curve is not known at the threshold {threshold!r}.")


NO_STEPS = OrderedSteps((), 0, 0)
