"""The steps of the calibration losses, in any order, on the host.

One threshold is the level at which a running total exceeds a budget. Finding it is a selection, in time
proportional to the number of steps; the steps are sorted only if the whole curve is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.selecting import UnsortedSteps
from ordinalrisk.curves.windows import NO_STEPS, OrderedSteps

_FEW_FOR_A_PARTITION = 32_768  # of more steps, a sample brackets the level sooner


@dataclass(eq=False)
class Steps(UnsortedSteps):
    """Steps in arrays of numpy."""

    few = 1_024
    near = 64

    at: NDArray[np.float64]
    by: int | NDArray[Any]

    @classmethod
    def of(
        cls, at: NDArray[np.float64], before: NDArray[Any], after: NDArray[Any], units: NDArray[Any]
    ) -> Steps:
        """Make steps between entries of a cost table in units; entry ``y * K + k`` is ``G[y, k]``."""
        if cost := cost_of_each_miss(units):
            return cls(at, cost, cost)
        costs = units.ravel()
        return cls(at, costs[after] - costs[before], int(units.max()))

    @classmethod
    def concatenated(cls, parts: Sequence[Any]) -> Any:
        """Concatenate the steps of several parts on the host; return a single part unchanged."""
        if len(parts) == 1:
            return parts[0]
        parts = [part if isinstance(part, Steps) else part.on_host() for part in parts]
        at, first = np.concatenate([part.at for part in parts]), parts[0].by
        largest = max(part.largest for part in parts)
        if isinstance(first, int) and all(isinstance(part.by, int) and part.by == first for part in parts):
            return cls(at, first, largest)
        return cls(at, np.concatenate([part.sizes_of(slice(None)) for part in parts]), largest)

    def sizes_of(self, chosen: Any) -> NDArray[Any]:
        if isinstance(self.by, int):
            return np.full(len(self.at[chosen]), self.by, np.int64 if self.by < 2**62 else object)
        sizes: NDArray[Any] = self.by[chosen]
        return sizes

    def times(self, factor: int) -> Steps:
        """Multiply all steps by a factor; 0 leaves no steps."""
        if factor == 0:
            return Steps(np.empty(0), 1, 1)
        if isinstance(self.by, int):
            return Steps(self.at, self.by * factor, self.largest * factor)
        wide = np.int64 if self.largest * factor < 2**62 else object
        return Steps(self.at, self.by.astype(wide) * factor, self.largest * factor)

    def packed(self) -> Steps:
        """Return the same steps in the smallest number type that holds them."""
        if isinstance(self.by, int) or self.largest >= 2**63:
            return self
        return Steps(self.at, self.by.astype(np.min_scalar_type(self.largest)), self.largest)

    @property
    def total(self) -> int:
        return self.by * len(self.at) if isinstance(self.by, int) else _total(self.by, self.largest)

    def below(self, level: float) -> tuple[int, int]:
        """Return the units and the number of the steps below a level."""
        below = self.at < level
        return self.total_of(below), int(np.count_nonzero(below))

    @cached_property
    def in_order(self) -> OrderedSteps:
        if not len(self.at):
            return NO_STEPS
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
        return OrderedSteps.whole(at[last], totals, int(np.diff(last, prepend=-1).max()))

    def selected_level(self, budget: int) -> float:
        if isinstance(self.by, int) and len(self.at) <= _FEW_FOR_A_PARTITION:
            rank = budget // self.by
            return float(np.partition(self.at, rank)[rank]) if rank < len(self.at) else math.inf
        return super().selected_level(budget)

    def total_of(self, where: NDArray[np.bool_]) -> int:
        if isinstance(self.by, int):
            return self.by * int(np.count_nonzero(where))
        return _total(self.by[where], self.largest)

    def around(self, budget: int, near: int) -> tuple[float, float]:
        sample = self.chosen(slice(None, None, len(self.at) // self.few))
        order = np.argsort(sample.at)
        sizes = sample.sizes_of(order)
        share = Fraction(min(budget, self.largest * len(self.at)), self.largest * len(self.at))
        totals = np.cumsum((sizes / self.largest).astype(np.float64))
        place = int(np.searchsorted(totals, float(share) * len(order), side="right"))
        ends = np.clip([place - near, place + near], 0, len(order) - 1)
        low, high = sample.at[order[ends]].tolist()
        return low, high

    def level_in_order(self, budget: int) -> float:
        return self.in_order.first_level_above(budget)


def rises(
    levels: NDArray[np.float64], labels: NDArray[np.int64], points: NDArray[np.int64], costs: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return where the losses of rows rise: level, row, and the nearest label before and after.

    Walk from the true label to the point label, which alone has an infinite level: when a label drops out of
    the set, the nearest end of the set is one label further. Labels of the same level drop out together.
    ``levels`` has a row for each label; ``costs`` are compared along each row of the table.
    """
    row = np.flatnonzero(labels != points)
    truth, point = labels[row], points[row]
    near = next_ = truth
    level = levels[near, row]
    found = [(level[:0], row[:0], row[:0], row[:0])]
    while len(row):
        next_ = next_ + np.sign(point - next_)
        next_level = levels[next_, row]
        drops = (next_ == point) | (next_level != level)
        pays = np.flatnonzero(drops & (costs[truth, next_] > costs[truth, near]))
        found.append((level[pays], row[pays], near[pays], next_[pays]))
        near = np.where(drops, next_, near)
        left = np.flatnonzero(next_ != point)
        level = next_level[left]
        row, truth, point, near, next_ = (part[left] for part in (row, truth, point, near, next_))
    at, rows, before, after = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return at, rows, before, after


def cost_of_each_miss(units: NDArray[Any]) -> int | None:
    """Return the cost of a miss if all misses cost the same, else None."""
    costs = units[units > 0]
    return int(costs[0]) if (costs == costs[0]).all() else None


def last_of_each_level(at: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the last position of each distinct level in sorted levels."""
    return np.flatnonzero(np.append(at[1:] != at[:-1], True))


def _total(by: NDArray[Any], largest: int) -> int:
    return int(by.sum() if len(by) * largest < 2**63 else by.astype(object).sum())
