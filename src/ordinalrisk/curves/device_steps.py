"""Steps of the calibration losses that stay on a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ordinalrisk.curves.steps import SortedSteps, Steps
from ordinalrisk.inputs.device import to_host

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class DeviceSteps:
    """Steps of the calibration losses, sorted on the device where they are."""

    at: torch.Tensor
    before: torch.Tensor
    after: torch.Tensor
    units: NDArray[Any]

    @property
    def in_order(self) -> SortedSteps:
        """The steps as a curve, on the host."""
        return self._on_host().in_order

    def first_level_above(self, budget: int) -> float:
        """As for sorted steps; one number comes back from the device."""
        import torch

        if self.units.dtype == object or len(self.at) * int(self.units.max()) >= 2**63:
            return self._on_host().first_level_above(budget)
        levels, totals = self._sorted
        step = int(torch.searchsorted(totals, min(budget, 2**63 - 1), right=True))
        return float(levels[step]) if step < len(levels) else math.inf

    @cached_property
    def _sorted(self) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        units = torch.tensor(self.units.ravel(), device=self.at.device)
        levels, order = torch.sort(self.at)
        return levels, torch.cumsum((units[self.after] - units[self.before])[order], 0)

    def _on_host(self) -> Steps:
        return Steps.of(to_host(self.at), to_host(self.before), to_host(self.after), self.units)
