"""Select the level at which a total exceeds a budget, without sorting, for arrays of any library.

A sorted sample suggests two levels that probably bracket the wanted one. Exact totals below them show where
it is, and only the steps there are searched again.
"""

from __future__ import annotations

from typing import Any, Protocol, Self


class Selectable(Protocol):
    """Steps in any order, on the host or on a GPU."""

    at: Any

    @property
    def few(self) -> int:
        """The size of a sample, and the most steps to sort at once."""

    @property
    def near(self) -> int:
        """By how many places a position in the sample may be off."""

    @property
    def total(self) -> int:
        """The units of all steps."""

    def chosen(self, where: Any) -> Self:
        """Return the steps that a mask chooses."""

    def total_of(self, where: Any) -> int:
        """Return the units of the steps that a mask chooses."""

    def around(self, budget: int, near: int) -> tuple[float, float]:
        """Return two levels that probably bracket the one at which the total exceeds the budget."""

    def level_in_order(self, budget: int) -> float:
        """Return the level at which the total exceeds the budget, by sorting."""


def selected_level(steps: Selectable, budget: int) -> float:
    """Return the lowest level at which the steps up to it exceed ``budget``; infinite if none does."""
    near = steps.near
    while (n_steps := len(steps.at)) > steps.few:
        low, high = steps.around(budget, near)
        near = steps.near
        below = steps.at < low
        if (total := steps.total_of(below)) > budget:
            steps = steps.chosen(below)
            continue
        budget -= total
        here = steps.chosen((steps.at >= low) & (steps.at <= high))
        if here.total > budget:
            if low == high:
                return low
            steps = here
            if 2 * len(steps.at) > n_steps:
                near = 0  # ties: one level at a time
            continue
        steps, budget = steps.chosen(steps.at > high), budget - here.total
    return steps.level_in_order(budget)
