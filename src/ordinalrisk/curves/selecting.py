"""Select the level at which a total exceeds a budget, without sorting, for arrays of any library.

A sorted sample suggests two levels that probably bracket the wanted one. Exact totals below them show where
it is, and only the steps there are searched again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self


@dataclass(eq=False)
class UnsortedSteps(ABC):
    """Levels at which the loss of a row steps up, in any order, and the sizes of the steps in units.

    ``by`` is one number if all steps have that size, else an array; no step is larger than ``largest``.
    The first query selects a level in linear time. The second one sorts the steps, and later ones reuse them.
    """

    few: ClassVar[int]  # the size of a sample, and the most steps to sort at once
    near: ClassVar[int]  # by how many places a position in the sample may be off

    at: Any
    by: Any
    largest: int
    was_queried: bool = False

    @property
    @abstractmethod
    def total(self) -> int:
        """The units of all steps."""

    @abstractmethod
    def total_of(self, where: Any) -> int:
        """Return the units of the steps that a mask chooses."""

    @abstractmethod
    def around(self, budget: int, near: int) -> tuple[float, float]:
        """Return two levels that probably bracket the one at which the total exceeds the budget."""

    @abstractmethod
    def level_in_order(self, budget: int) -> float:
        """Return the level at which the total exceeds the budget, by sorting."""

    def chosen(self, where: Any) -> Self:
        """Return the steps that a mask chooses."""
        return type(self)(
            self.at[where], self.by if isinstance(self.by, int) else self.by[where], self.largest
        )

    def first_level_above(self, budget: int) -> float:
        """Return the lowest level at which the steps up to it exceed ``budget``; infinite if none does."""
        if self.was_queried:
            return self.level_in_order(budget)
        self.was_queried = True
        return self.selected_level(budget)

    def selected_level(self, budget: int) -> float:
        """Return the same without sorting all steps."""
        steps, near = self, self.near
        while (n_steps := len(steps.at)) > self.few:
            low, high = steps.around(budget, near)
            near = self.near
            below = steps.at < low
            if (total := steps.total_of(below)) > budget:
                steps = steps.chosen(below)
                continue
            budget -= total
            here = steps.chosen((steps.at <= high) ^ below)
            if here.total > budget:
                if low == high:
                    return low
                steps = here
                if 2 * len(steps.at) > n_steps:
                    near = 0  # ties: one level at a time
                continue
            steps, budget = steps.chosen(steps.at > high), budget - here.total
        return steps.level_in_order(budget)
