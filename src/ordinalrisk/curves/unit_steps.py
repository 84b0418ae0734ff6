"""Whose loss steps where: needed as soon as rows are not all alike.

Rows that come in clusters, carry weights or are told apart by group or label have steps that belong to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.steps import Steps
from ordinalrisk.losses.cost_table import CostTable

_MANTISSA = 53


class UnitSteps(NamedTuple):
    """The loss of every independent unit, a row or a cluster of rows, as steps in any order.

    As the threshold passes the level ``at[i]``, the loss of unit ``unit[i]`` grows by ``by[i] > 0`` whole
    multiples of a scale that is kept elsewhere. Units without a step are among the ``n_units`` too.
    """

    at: NDArray[np.float64]
    unit: NDArray[np.int64]
    by: NDArray[Any]
    n_units: int

    @classmethod
    def of_rows(cls, levels: NDArray[np.float64], labels: NDArray[np.int64], costs: CostTable) -> UnitSteps:
        """The steps of each row, in units of the cost table.

        Walking from the label to the point label, whose level alone is infinite: once a label has dropped
        out, the nearest end of the set is one label further.

        Examples
        --------
        >>> from ordinalrisk import DivergenceLoss
        >>> levels = np.array([[0.1, 0.2, np.inf], [np.inf, 0.3, 0.3]])
        >>> UnitSteps.of_rows(levels, np.array([0, 1]), CostTable.of(DivergenceLoss(), 3))
        UnitSteps(at=array([0.1, 0.3, 0.2]), unit=array([0, 1, 0]), by=array([1, 1, 1]), n_units=2)
        """
        points = levels.argmax(axis=1)
        towards = np.sign(points - labels)
        waiting = np.zeros(len(levels), costs.units.dtype)  # labels that drop out together make one step
        parts = []
        for distance in range(costs.n_classes - 1):
            rows = np.flatnonzero(abs(points - labels) > distance)
            truth, dropped = labels[rows], labels[rows] + distance * towards[rows]
            nearest = dropped + towards[rows]
            by = waiting[rows] + costs.units[truth, nearest] - costs.units[truth, dropped]
            together = levels[rows, nearest] == levels[rows, dropped]
            waiting[rows] = np.where(together, by, 0)
            pays = ~together & (by > 0)
            parts.append((levels[rows, dropped][pays], rows[pays], by[pays]))
        at, row, by = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(at, row, by, len(levels))

    @classmethod
    def joined(cls, parts: Sequence[UnitSteps]) -> UnitSteps:
        """The units of all parts, numbered on."""
        firsts = np.cumsum([0, *(part.n_units for part in parts)])
        return cls(
            np.concatenate([part.at for part in parts]),
            np.concatenate([part.unit + first for part, first in zip(parts, firsts[:-1], strict=True)]),
            np.concatenate([part.by for part in parts]),
            int(firsts[-1]),
        )

    def split(self, into: NDArray[np.int64], n_parts: int) -> Iterator[tuple[NDArray[np.int64], UnitSteps]]:
        """The units of each part, and their steps with the units numbered anew."""
        units, steps = np.argsort(into, kind="stable"), np.argsort(into[self.unit], kind="stable")
        ends = np.searchsorted(into[units], np.arange(n_parts + 1))
        step_ends = np.searchsorted(into[self.unit[steps]], np.arange(n_parts + 1))
        number = np.empty(self.n_units, np.int64)
        number[units] = np.arange(self.n_units) - ends[into[units]]
        for part in range(n_parts):
            mine = units[ends[part] : ends[part + 1]]
            taken = steps[step_ends[part] : step_ends[part + 1]]
            yield mine, UnitSteps(self.at[taken], number[self.unit[taken]], self.by[taken], len(mine))

    def shuffled(self, seed: Any) -> UnitSteps:
        """The units numbered anew in a random order, as bets need them."""
        return self._replace(unit=np.random.default_rng(seed).permutation(self.n_units)[self.unit])

    def clustered(self, clusters: NDArray[np.int64]) -> tuple[UnitSteps, int]:
        """The mean loss of each cluster as a unit; the second value is how many new scales make an old one.

        Examples
        --------
        >>> steps = UnitSteps(np.array([0.1, 0.2, 0.3]), np.arange(3), np.array([1, 1, 1]), 3)
        >>> steps.clustered(np.array([0, 0, 1]))
        (UnitSteps(at=array([0.1, 0.2, 0.3]), unit=array([0, 0, 1]), by=array([1, 1, 2]), n_units=2), 2)
        """
        sizes = np.bincount(clusters)
        parts = math.lcm(*np.unique(sizes).tolist())
        unit = clusters[self.unit]
        by = _product(self.by, np.array([parts // size for size in sizes.tolist()], object)[unit])
        return UnitSteps(self.at, unit, by, len(sizes)), parts

    def weighted(self, weights: NDArray[Any]) -> UnitSteps:
        """Each step as many times as its unit's weight, a whole number, says; none of weight 0."""
        heavy = weights[self.unit] > 0
        by = _product(self.by[heavy], weights[self.unit[heavy]].astype(object))
        return UnitSteps(self.at[heavy], self.unit[heavy], by, self.n_units)

    def steps(self, largest: int) -> Steps:
        """The steps, no matter whose; ``largest`` is no less than any of them."""
        return Steps(self.at, self.by, max(largest, int(self.by.max(initial=0))))


def exact_weights(weights: NDArray[np.float64]) -> tuple[NDArray[Any], Fraction]:
    """Weights as whole multiples of one number, exactly: they are taken as the binary fractions they are.

    Examples
    --------
    >>> exact_weights(np.array([0.5, 1.5, 0.0]))
    (array([1, 3, 0], dtype=object), Fraction(1, 2))
    """
    mantissa, exponent = np.frexp(weights)
    lowest = int(exponent[weights > 0].min(initial=1023)) - _MANTISSA
    whole = [
        int(m) << max(int(e) - _MANTISSA - lowest, 0)
        for m, e in zip(np.ldexp(mantissa, _MANTISSA), exponent, strict=True)
    ]
    divisor = math.gcd(*whole) or 1
    unit = Fraction(divisor) * Fraction(2) ** lowest
    return np.array([number // divisor for number in whole], object), unit


def _product(by: NDArray[Any], times: NDArray[Any]) -> NDArray[Any]:
    """Element by element, in 64 bits where the sum of all fits."""
    product: NDArray[Any] = by.astype(object) * times
    return product.astype(np.int64) if sum(product.tolist()) < 2**63 else product
