"""Steps with the row or cluster that each belongs to, for clusters, row weights and the betting bound."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.steps import Steps, rises
from ordinalrisk.curves.stratum_rows import rows_by_number
from ordinalrisk.losses.cost_table import CostTable


class UnitSteps(NamedTuple):
    """The losses of independent units, rows or clusters of rows, as steps in any order.

    As the threshold passes the level ``at[i]``, the loss of unit ``unit[i]`` grows by ``by[i] > 0`` whole
    multiples of a scale that is kept elsewhere. ``n_units`` counts units without a step too. ``stakes`` is
    the most that each unit can lose, in the same multiples, if the guarantee is a share of it.
    """

    at: NDArray[np.float64]
    unit: NDArray[np.int64]
    by: NDArray[Any]
    n_units: int
    stakes: NDArray[Any] | None = None

    @classmethod
    def of_rows(
        cls,
        levels: NDArray[np.float64],
        labels: NDArray[np.int64],
        costs: CostTable,
        relative: bool = False,
    ) -> UnitSteps:
        """Return the steps of each row, in units of the cost table."""
        at, row, before, after = rises(levels.T, labels, levels.argmax(axis=1), costs.units)
        by = costs.units[labels[row], after] - costs.units[labels[row], before]
        stakes = costs.units.max(axis=1)[labels] if relative else None
        return cls(at, row, by, len(levels), stakes)

    @classmethod
    def concatenated(cls, parts: Sequence[UnitSteps]) -> UnitSteps:
        firsts = np.cumsum([0, *(part.n_units for part in parts)])
        return cls(
            np.concatenate([part.at for part in parts]),
            np.concatenate([part.unit + first for part, first in zip(parts, firsts[:-1], strict=True)]),
            np.concatenate([part.by for part in parts]),
            int(firsts[-1]),
            None if parts[0].stakes is None else np.concatenate([part.stakes for part in parts]),
        )

    def split(self, into: NDArray[np.int64], n_parts: int) -> Iterator[tuple[NDArray[np.int64], UnitSteps]]:
        """Yield the units of each part, and their steps with the units renumbered from 0."""
        units, steps = rows_by_number(into), rows_by_number(into[self.unit])
        number, none = np.empty(self.n_units, np.int64), np.empty(0, np.int64)
        for part in range(n_parts):
            mine, taken = units.get(part, none), steps.get(part, none)
            number[mine] = np.arange(len(mine))
            stakes = None if self.stakes is None else self.stakes[mine]
            yield mine, UnitSteps(self.at[taken], number[self.unit[taken]], self.by[taken], len(mine), stakes)

    def shuffled(self, seed: Any) -> UnitSteps:
        """Renumber the units in a random order, for the betting bound."""
        places = np.random.default_rng(seed).permutation(self.n_units)
        stakes = None if self.stakes is None else self.stakes[np.argsort(places)]
        return self._replace(unit=places[self.unit], stakes=stakes)

    def clustered(self, clusters: NDArray[np.int64]) -> tuple[UnitSteps, int]:
        """Return the mean loss of each cluster as a unit, and the factor by which the scale is finer."""
        sizes = np.bincount(clusters)
        parts = math.lcm(*np.unique(sizes).tolist())
        unit = clusters[self.unit]
        finer = np.array([parts // size for size in sizes.tolist()], object)
        stakes = None
        if self.stakes is not None:
            stakes = np.zeros(len(sizes), object)
            np.add.at(stakes, clusters, _wide_product(self.stakes, finer[clusters]).astype(object))
        return UnitSteps(self.at, unit, _wide_product(self.by, finer[unit]), len(sizes), stakes), parts

    def weighted(self, weights: NDArray[Any]) -> UnitSteps:
        """Multiply each step by the weight of its unit, a whole number; drop units of weight 0."""
        heavy = weights[self.unit] > 0
        by = _wide_product(self.by[heavy], weights[self.unit[heavy]].astype(object))
        stakes = None if self.stakes is None else _wide_product(self.stakes, weights.astype(object))
        return UnitSteps(self.at[heavy], self.unit[heavy], by, self.n_units, stakes)

    def stake(self, unit: Fraction) -> Fraction | None:
        """Return the most that all units can lose together, in multiples of ``unit``."""
        return None if self.stakes is None else sum(self.stakes.tolist()) * unit

    def steps(self, largest: int) -> Steps:
        """Return the steps without their units; ``largest`` is an upper bound of their sizes."""
        return Steps(self.at, self.by, max(largest, int(self.by.max(initial=0))))


def _wide_product(by: NDArray[Any], times: NDArray[Any]) -> NDArray[Any]:
    """Multiply element by element, in 64 bits if the sum fits."""
    product: NDArray[Any] = by.astype(object) * times
    return product.astype(np.int64) if sum(product.tolist()) < 2**63 else product
