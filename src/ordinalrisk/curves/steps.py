"""The steps of the calibration losses, before they are put in order.

One threshold asks for the level at which a running total passes a budget. That is a selection, in time
proportional to the number of steps; sorting waits until someone asks for the whole curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.windows import Window

_FEW = 1_024


class SortedSteps(NamedTuple):
    """The distinct levels, ascending; the total just above each; the most steps at one level."""

    levels: NDArray[np.float64]
    totals: NDArray[Any]
    most_tied: int

    @property
    def in_order(self) -> SortedSteps:
        """The steps as they are."""
        return self

    def first_level_above(self, budget: int) -> float:
        """The lowest level at which the steps up to it add up to more than ``budget``; infinite if none."""
        step = int(np.searchsorted(self.totals, budget, side="right"))
        return float(self.levels[step]) if step < len(self.levels) else math.inf

    def total_below(self, threshold: float) -> int:
        """What the steps at levels below ``threshold`` add up to."""
        below = int(np.searchsorted(self.levels, threshold, side="left"))
        return int(self.totals[below - 1]) if below else 0

    @property
    def total(self) -> int:
        """All steps together."""
        return int(self.totals[-1]) if len(self.totals) else 0

    @property
    def windows(self) -> tuple[Window, ...]:
        """The steps as one window on all of them; none if there are no steps."""
        return (Window(0, self.levels, self.totals),) if len(self.levels) else ()


@dataclass(eq=False)
class Steps:
    """Levels at which some row's loss steps up, in any order, and by how many units.

    ``by`` is one number if every step is of that size, else an array; ``largest`` is no less than any step.
    The first level asked for is selected; who asks twice will ask again, and has the steps sorted.
    """

    at: NDArray[np.float64]
    by: int | NDArray[Any]
    largest: int
    was_asked: bool = False

    @classmethod
    def of(
        cls, at: NDArray[np.float64], before: NDArray[Any], after: NDArray[Any], units: NDArray[Any]
    ) -> Steps:
        """Steps between entries of a cost table in whole units, which are numbered ``y * K + k``."""
        costs, largest = units.ravel(), int(units.max())
        if (costs[costs > 0] == largest).all():  # every miss costs the same, so every step does
            return cls(at, largest, largest)
        return cls(at, costs[after] - costs[before], largest)

    @classmethod
    def joined(cls, parts: Sequence[Steps]) -> Steps:
        """The steps of all parts."""
        at, first = np.concatenate([part.at for part in parts]), parts[0].by
        largest = max(part.largest for part in parts)
        if isinstance(first, int) and all(isinstance(part.by, int) and part.by == first for part in parts):
            return cls(at, first, largest)
        return cls(at, np.concatenate([part.sizes_of(slice(None)) for part in parts]), largest)

    def sizes_of(self, chosen: Any) -> NDArray[Any]:
        """How much each of the chosen steps is."""
        if isinstance(self.by, int):
            return np.full(len(self.at[chosen]), self.by, np.int64 if self.by < 2**62 else object)
        sizes: NDArray[Any] = self.by[chosen]
        return sizes

    def times(self, factor: int) -> Steps:
        """Each step so many times; none if that is 0."""
        if factor == 0:
            return Steps(np.empty(0), 1, 1)
        if isinstance(self.by, int):
            return Steps(self.at, self.by * factor, self.largest * factor)
        wide = np.int64 if self.largest * factor < 2**62 else object
        return Steps(self.at, self.by.astype(wide) * factor, self.largest * factor)

    def packed(self) -> Steps:
        """The same in as few bytes as hold them."""
        if isinstance(self.by, int) or self.largest >= 2**63:
            return self
        return Steps(self.at, self.by.astype(np.min_scalar_type(self.largest)), self.largest)

    @property
    def total(self) -> int:
        """All steps together."""
        return self.sum_of(slice(None))

    def sum_of(self, chosen: Any) -> int:
        """What the chosen steps add up to."""
        if isinstance(self.by, int):
            return self.by * len(self.at[chosen])
        return _total(self.by[chosen], self.largest)

    @cached_property
    def in_order(self) -> SortedSteps:
        """The steps as a curve."""
        if not len(self.at):
            return SortedSteps(self.at, np.empty(0, np.int64), 0)
        whole = np.dtype(np.int64 if len(self.at) * self.largest < 2**63 else object)
        if isinstance(self.by, int):
            at = np.sort(self.at)
            last = last_of_each_level(at)
            totals = self.by * (last + 1).astype(whole)
        else:
            order = np.argsort(self.at)
            at = self.at[order]
            last = last_of_each_level(at)
            totals = np.cumsum(self.by[order].astype(whole, copy=False))[last]
        return SortedSteps(at[last], totals, int(np.diff(last, prepend=-1).max()))

    def first_level_above(self, budget: int) -> float:
        """As for sorted steps."""
        if self.was_asked:
            return self.in_order.first_level_above(budget)
        self.was_asked = True
        return self._selected(budget)

    def _selected(self, budget: int) -> float:
        if isinstance(self.by, int):
            rank = budget // self.by
            return float(np.partition(self.at, rank)[rank]) if rank < len(self.at) else math.inf
        at, by = self.at, self.by
        while len(at) > _FEW:
            middle = np.partition(at, len(at) // 2)[len(at) // 2]
            below = at < middle
            if (total := _total(by[below], self.largest)) > budget:
                at, by = at[below], by[below]
                continue
            here = at == middle
            total += _total(by[here], self.largest)
            if total > budget:
                return float(middle)
            above = at > middle
            at, by, budget = at[above], by[above], budget - total
        return Steps(at, by, self.largest).in_order.first_level_above(budget)


def last_of_each_level(at: NDArray[np.float64]) -> NDArray[np.int64]:
    """Where, in sorted levels, each distinct one is for the last time."""
    return np.flatnonzero(np.append(at[1:] != at[:-1], True))


def _total(by: NDArray[Any], largest: int) -> int:
    return int(by.sum() if len(by) * largest < 2**63 else by.astype(object).sum())
