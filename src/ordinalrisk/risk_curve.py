"""The total calibration loss as an exact step function of the threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.steps import SortedSteps, Steps


class AnySteps(Protocol):
    """The steps of the losses, wherever they lie."""

    @property
    def in_order(self) -> SortedSteps:
        """The steps as a curve, on the host."""

    def first_level_above(self, budget: int) -> float:
        """The lowest level at which the steps up to it add up to more than ``budget``; infinite if none."""


class RiskCurve:
    """For each level, the total loss once the labels at that level have dropped out.

    The total loss at threshold ``tau`` counts every step at a level below ``tau``. It is a whole number of
    ``unit``, so sums and comparisons are exact. One curve answers every ``alpha``: the first in O(n), and in
    O(log n) once it is sorted, which the first look at ``levels``, ``totals`` or ``most_tied`` does.

    Attributes
    ----------
    levels : array of float64
        The distinct levels at which some loss steps up, ascending.
    totals : array of int
        The total loss just above each level, in units.
    unit : Fraction
        The unit of ``totals``.
    n_rows : int
        The number of calibration rows, or of clusters where those are what is exchangeable.
    weight : Fraction
        The total weight of the rows: their number, unless they are weighted.
    bound : Fraction
        ``B``, the largest loss a row can have.
    most_tied : int
        ``M`` of Theorem 4 as observed: the most rows whose loss steps at one level.

    Examples
    --------
    Three of four rows are missed above the levels 0.1, 0.1 and 0.3.

    >>> steps = np.array([0.3, 0.1, 0.1]), np.array([1, 1, 1])
    >>> curve = RiskCurve.from_steps(*steps, unit=Fraction(1), n_rows=4, bound=Fraction(1))
    >>> curve.risk(0.1), curve.risk(0.2), curve.risk(0.5)
    (0.0, 0.5, 0.75)
    >>> curve.first_level_above(Fraction(2))
    0.3
    """

    def __init__(
        self,
        steps: AnySteps,
        *,
        unit: Fraction,
        n_rows: int,
        bound: Fraction,
        weight: Fraction | None = None,
    ) -> None:
        self._steps = steps
        self.unit = unit
        self.n_rows = n_rows
        self.bound = bound
        self.weight = Fraction(n_rows) if weight is None else weight

    @classmethod
    def from_steps(
        cls, at: NDArray[np.float64], by: NDArray[Any], *, unit: Fraction, n_rows: int, bound: Fraction
    ) -> RiskCurve:
        """The curve of losses that step up at the levels ``at`` by so many units each."""
        return cls(Steps(at, by, int(bound / unit)), unit=unit, n_rows=n_rows, bound=bound)

    @property
    def levels(self) -> NDArray[np.float64]:  # noqa: D102 - an attribute, documented as such
        return self._in_order().levels

    @property
    def totals(self) -> NDArray[Any]:  # noqa: D102
        return self._in_order().totals

    @property
    def most_tied(self) -> int:  # noqa: D102
        return self._in_order().most_tied

    def _in_order(self) -> SortedSteps:
        self._steps = in_order = self._steps.in_order
        return in_order

    def total_loss(self, threshold: float) -> Fraction:
        """The sum of the calibration rows' losses at ``threshold``, exactly."""
        below = int(np.searchsorted(self.levels, threshold, side="left"))
        return int(self.totals[below - 1]) * self.unit if below else Fraction(0)

    def risk(self, threshold: float) -> float:
        """The mean loss of the calibration rows at ``threshold``."""
        return float(self.total_loss(threshold) / self.weight)

    def first_level_above(self, budget: Fraction) -> float:
        """The largest threshold whose total loss is at most ``budget``.

        Infinite if every step fits, minus infinity if nothing can: a total loss is never negative.
        """
        if budget < 0:
            return -math.inf
        return self._steps.first_level_above(math.floor(budget / self.unit))

    def __getstate__(self) -> dict[str, Any]:
        """With the steps in order and on the host, wherever they are."""
        return {**self.__dict__, "_steps": self._in_order()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RiskCurve):
            return NotImplemented
        return (
            np.array_equal(self.levels, other.levels)
            and np.array_equal(self.totals, other.totals)
            and (self.unit, self.n_rows, self.bound, self.weight, self.most_tied)
            == (other.unit, other.n_rows, other.bound, other.weight, other.most_tied)
        )

    def __repr__(self) -> str:
        return f"RiskCurve({len(self.levels)} levels, {self.n_rows} rows, B={float(self.bound):g})"
