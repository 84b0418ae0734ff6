"""The total calibration loss as an exact step function of the threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """Sorted levels and, for each, the total loss once the labels at that level have dropped out.

    The total loss at threshold ``tau`` counts every step at a level below ``tau``. It is a whole number of
    ``unit``, so sums and comparisons are exact. One curve answers every ``alpha`` in O(log n).

    Attributes
    ----------
    levels : array of float64
        The distinct levels at which some loss steps up, ascending.
    totals : array of int
        The total loss just above each level, in units.
    unit : Fraction
        The unit of ``totals``.
    n_rows : int
        The number of calibration rows.
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

    levels: NDArray[np.float64]
    totals: NDArray[Any]
    unit: Fraction
    n_rows: int
    bound: Fraction
    most_tied: int

    @classmethod
    def from_steps(
        cls, at: NDArray[np.float64], by: NDArray[Any], *, unit: Fraction, n_rows: int, bound: Fraction
    ) -> RiskCurve:
        """The curve of losses that step up at the levels ``at`` by so many units each."""
        if by.dtype != object and len(by) * int(bound / unit) >= 2**63:
            by = by.astype(object)
        if not len(at):
            return cls(at, by, unit, n_rows, bound, most_tied=0)
        order = None if (by == by[0]).all() else np.argsort(at)  # equal steps need no company when sorted
        at = np.sort(at) if order is None else at[order]
        last_of_its_level = np.append(at[1:] != at[:-1], True)
        last = np.flatnonzero(last_of_its_level)
        totals = by[0] * (last + 1).astype(by.dtype) if order is None else np.cumsum(by[order])[last]
        most_tied = int(max(last[0] + 1, np.diff(last).max(initial=1)))
        return cls(at[last_of_its_level], totals, unit, n_rows, bound, most_tied)

    def total_loss(self, threshold: float) -> Fraction:
        """The sum of the calibration rows' losses at ``threshold``, exactly."""
        below = int(np.searchsorted(self.levels, threshold, side="left"))
        return int(self.totals[below - 1]) * self.unit if below else Fraction(0)

    def risk(self, threshold: float) -> float:
        """The mean loss of the calibration rows at ``threshold``."""
        return float(self.total_loss(threshold) / self.n_rows)

    def first_level_above(self, budget: Fraction) -> float:
        """The largest threshold whose total loss is at most ``budget``; infinite if every step fits."""
        units = math.floor(budget / self.unit)
        step = int(np.searchsorted(self.totals, units, side="right"))
        return float(self.levels[step]) if step < len(self.levels) else math.inf

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RiskCurve):
            return NotImplemented
        return (
            np.array_equal(self.levels, other.levels)
            and np.array_equal(self.totals, other.totals)
            and (self.unit, self.n_rows, self.bound, self.most_tied)
            == (other.unit, other.n_rows, other.bound, other.most_tied)
        )

    def __repr__(self) -> str:
        return f"RiskCurve({len(self.levels)} levels, {self.n_rows} rows, B={float(self.bound):g})"
