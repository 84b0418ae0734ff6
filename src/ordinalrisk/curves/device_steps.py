"""The steps of the calibration losses on a GPU.

As on the host, the first query selects a threshold and the second one sorts the steps. Only single numbers
are copied to the host, and the curve if it is requested.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.selecting import UnsortedSteps
from ordinalrisk.curves.steps import Steps, cost_of_each_miss
from ordinalrisk.curves.windows import NO_STEPS, OrderedSteps

if TYPE_CHECKING:
    import torch


@dataclass(eq=False)
class DeviceSteps(UnsortedSteps):
    """Steps in tensors; their total has fewer than 64 bits."""

    few = 1 << 16  # so that a bracket has one step in thirty, and the second one is small enough to sort
    near = 1 << 10

    at: torch.Tensor
    by: int | torch.Tensor

    @classmethod
    def of(
        cls, at: torch.Tensor, before: torch.Tensor, after: torch.Tensor, units: NDArray[Any]
    ) -> DeviceSteps | Steps:
        """Make steps between entries of a cost table; on the host if totals may have more than 63 bits."""
        import torch

        largest = int(units.max())
        if max(len(at), 1) * largest >= 2**63:
            return Steps.of(at.cpu().numpy(), before.cpu().numpy(), after.cpu().numpy(), units)
        if cost := cost_of_each_miss(units):
            return cls(at, cost, cost)
        costs = torch.tensor(units.ravel().astype(np.int64), device=at.device)
        return cls(at, costs.index_select(0, after) - costs.index_select(0, before), largest)

    @classmethod
    def concatenated(cls, parts: Sequence[Any]) -> Any:
        """Concatenate the steps of several parts: on their device if they share one, else on the host."""
        import torch

        largest = max(part.largest for part in parts)
        if (
            len({part.at.device for part in parts}) > 1
            or sum(len(each.at) for each in parts) * largest >= 2**63
        ):
            return Steps.concatenated([part.on_host() for part in parts])
        at, first = torch.cat([part.at for part in parts]), parts[0].by
        if isinstance(first, int) and all(isinstance(part.by, int) and part.by == first for part in parts):
            return cls(at, first, largest)
        return cls(at, torch.cat([part._sizes for part in parts]), largest)

    def times(self, factor: int) -> DeviceSteps | Steps:
        """Multiply all steps by a factor; 0 leaves no steps."""
        if factor == 0:
            return DeviceSteps(self.at[:0], 1, 1)
        if max(len(self.at), 1) * self.largest * factor >= 2**63:
            return self.on_host().times(factor)
        return DeviceSteps(self.at, self.by * factor, self.largest * factor)

    @property
    def _sizes(self) -> torch.Tensor:
        import torch

        if isinstance(self.by, int):
            return torch.full(self.at.shape, self.by, dtype=torch.int64, device=self.at.device)
        return self.by

    @property
    def total(self) -> int:
        return self.by * len(self.at) if isinstance(self.by, int) else int(self.by.sum())

    def total_of(self, where: torch.Tensor) -> int:
        if isinstance(self.by, int):
            return self.by * int(where.sum())
        return int((self.by * where).sum())

    def around(self, budget: int, near: int) -> tuple[float, float]:
        import torch

        sample = self.chosen(slice(None, None, len(self.at) // self.few))
        levels, totals = sample._sorted
        share = min(budget / (self.largest * len(self.at)), 1.0)
        place = torch.searchsorted(totals.double(), share * self.largest * len(levels), right=True)
        ends = place + torch.tensor([-near, near], device=levels.device)
        low, high = levels[ends.clamp_(0, len(levels) - 1)].tolist()
        return low, high

    def level_in_order(self, budget: int) -> float:
        import torch

        levels, totals = self._sorted
        step = int(torch.searchsorted(totals, min(budget, 2**63 - 1), right=True))
        return float(levels[step]) if step < len(levels) else math.inf

    @cached_property
    def _sorted(self) -> tuple[torch.Tensor, torch.Tensor]:
        """All levels in order, and the total up to each place."""
        import torch

        if isinstance(self.by, int):
            places = torch.arange(1, len(self.at) + 1, device=self.at.device)
            return torch.sort(self.at).values, self.by * places
        levels, order = torch.sort(self.at)
        return levels, torch.cumsum(self.by[order], 0)

    @property
    def in_order(self) -> OrderedSteps:
        import torch

        if not len(self.at):
            return NO_STEPS
        levels, totals = self._sorted
        ends = torch.ones(len(levels), dtype=torch.bool, device=levels.device)
        torch.ne(levels[1:], levels[:-1], out=ends[:-1])
        last = ends.nonzero()[:, 0]
        most_tied = int(torch.diff(last, prepend=last.new_tensor([-1])).max())
        return OrderedSteps.whole(levels[last].cpu().numpy(), totals[last].cpu().numpy(), most_tied)

    def on_host(self) -> Steps:
        by = self.by if isinstance(self.by, int) else self.by.cpu().numpy()
        return Steps(self.at.cpu().numpy(), by, self.largest)


def concatenated_steps(parts: Sequence[Any]) -> Any:
    """Concatenate the steps of several parts, on their device if they share one; keep a single part."""
    if len(parts) > 1 and all(isinstance(part, DeviceSteps) for part in parts):
        return DeviceSteps.concatenated(parts)
    return Steps.concatenated(parts)
