"""The total calibration loss as an exact step function of the threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.device_steps import DeviceSteps
from ordinalrisk.curves.steps import Steps
from ordinalrisk.curves.windows import NotKnownError, OrderedSteps, Window

AnySteps = Steps | DeviceSteps | OrderedSteps
"""What a risk curve is made from: each type finds one level, or sorts its steps."""


class RiskCurve:
    r"""The total loss of the calibration rows at every threshold (paper, Eq. 3).

    .. math:: \tau \mapsto \sum_{i=1}^n L_i(\tau)

    It counts every step of a loss at a level below :math:`\tau` in whole multiples of ``unit``, so sums and
    comparisons are exact. One curve answers every ``alpha``: the first query takes O(n); later ones take
    O(log n), because the second query, or ``levels``, ``totals`` or ``most_tied``, sorts the steps.

    With too many rows for one machine, the curve is known in windows around the calibrated thresholds;
    elsewhere it raises a :exc:`~ordinalrisk.curves.windows.NotKnownError`.

    Attributes
    ----------
    is_whole : bool
        Whether the whole curve is known, not just some windows.
    windows : tuple of Window
        Runs of consecutive levels, with the totals below and above; one window if the curve is whole.
    levels : array of float64
        The distinct levels at which some loss steps up, ascending.
    totals : array of int
        The total loss just above each level, in units.
    unit : Fraction
        The unit of ``totals``.
    n_rows : int
        The number of calibration rows, or of clusters if there are clusters.
    weight : Fraction
        The total weight of the rows: their number, unless they are weighted.
    bound : Fraction
        ``B``, the largest loss a row can have.
    stake : Fraction or None
        The most that all rows can lose together, with their weights; None unless ``alpha`` is a share of it.
    divisor : Fraction
        What total losses are divided by to get the risk: ``stake``, or ``weight`` if that is None.
    most_tied : int
        ``M`` of Theorem 4 as observed: the most rows with a step at one level.

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Eq. 3, Theorem 4.

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
        stake: Fraction | None = None,
    ) -> None:
        self._steps = steps
        self.unit = unit
        self.n_rows = n_rows
        self.bound = bound
        self.weight = Fraction(n_rows) if weight is None else weight
        self.stake = stake

    @classmethod
    def from_steps(
        cls, at: NDArray[np.float64], by: NDArray[Any], *, unit: Fraction, n_rows: int, bound: Fraction
    ) -> RiskCurve:
        """Make a curve from the levels at which losses step up, and the sizes of these steps.

        Parameters
        ----------
        at : array of float64
            The level of each step, in any order.
        by : array of int
            The size of each step, in units.
        unit, n_rows, bound
            As for the class.

        Returns
        -------
        RiskCurve
            The curve, with equal levels merged.

        Examples
        --------
        >>> steps = np.array([0.3, 0.1, 0.1]), np.array([1, 1, 1])
        >>> RiskCurve.from_steps(*steps, unit=Fraction(1), n_rows=4, bound=Fraction(1)).levels
        array([0.1, 0.3])
        """
        return cls(Steps(at, by, int(bound / unit)), unit=unit, n_rows=n_rows, bound=bound)

    @property
    def levels(self) -> NDArray[np.float64]:
        return self._in_order().levels

    @property
    def totals(self) -> NDArray[Any]:
        return self._in_order().totals

    @property
    def most_tied(self) -> int:
        return self._in_order().most_tied

    @property
    def windows(self) -> tuple[Window, ...]:
        return self._in_order().windows

    @property
    def is_whole(self) -> bool:
        steps = self._in_order()
        known = sum(int(window.totals[-1]) - window.below for window in steps.windows)
        return known == steps.total

    def require_whole(self, purpose: str) -> None:
        """Raise an error unless the whole curve is known."""
        if not self.is_whole:
            raise NotKnownError(
                f"{purpose} needs the whole risk curve, but with rows in many parts it is kept near some "
                "thresholds only; calibrate on one machine, on fewer rows."
            )

    @property
    def divisor(self) -> Fraction:
        """What the total loss is divided by to get the risk: the weight of all rows, or their stake."""
        return self.weight if self.stake is None else self.stake

    def _in_order(self) -> OrderedSteps:
        self._steps = in_order = self._steps.in_order
        return in_order

    def total_loss(self, threshold: float) -> Fraction:
        r"""Return the total calibration loss, exactly: :math:`\sum_i L_i(\tau)` of the paper's Eq. 3.

        Parameters
        ----------
        threshold : float
            The threshold: labels with a lower level are not in the set.

        Returns
        -------
        Fraction
            In units of the loss.

        Examples
        --------
        >>> steps = np.array([0.3, 0.1, 0.1]), np.array([1, 1, 1])
        >>> curve = RiskCurve.from_steps(*steps, unit=Fraction(1, 3), n_rows=4, bound=Fraction(1))
        >>> curve.total_loss(0.2)
        Fraction(2, 3)
        """
        if not isinstance(threshold, Real) or threshold != threshold:
            raise ValueError(f"threshold must be a number; got {threshold!r}.")
        return self._in_order().total_below(float(threshold)) * self.unit

    def risk(self, threshold: float) -> float:
        r"""Return the mean loss of the calibration rows: :math:`\frac{1}{n} \sum_i L_i(\tau)`.

        Parameters
        ----------
        threshold : float
            The threshold: labels with a lower level are not in the set.

        Returns
        -------
        float
            In units of the loss; the weighted mean if rows have weights. As a share of what all rows can
            lose, if ``alpha`` is a share.

        Examples
        --------
        >>> steps = np.array([0.3, 0.1, 0.1]), np.array([1, 1, 1])
        >>> RiskCurve.from_steps(*steps, unit=Fraction(1), n_rows=4, bound=Fraction(1)).risk(0.2)
        0.5
        """
        return float(self.total_loss(threshold) / self.divisor)

    def first_level_above(self, budget: Fraction) -> float:
        r"""Return the largest threshold with a total loss of at most ``budget``.

        .. math:: \sup \{ \tau : \sum_i L_i(\tau) \le b \}

        With :math:`b = (n + 1)\,\alpha - B` it is the calibrated threshold (paper, Eq. 3).

        Parameters
        ----------
        budget : Fraction
            The largest total loss that is allowed.

        Returns
        -------
        float
            Infinite if all steps together are within the budget; minus infinity if the budget is negative.

        Examples
        --------
        >>> steps = np.array([0.3, 0.1, 0.1]), np.array([1, 1, 1])
        >>> curve = RiskCurve.from_steps(*steps, unit=Fraction(1), n_rows=4, bound=Fraction(1))
        >>> curve.first_level_above(Fraction(1)), curve.first_level_above(Fraction(3))
        (0.1, inf)
        """
        if budget < 0:
            return -math.inf
        return self._steps.first_level_above(math.floor(budget / self.unit))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the steps sorted and on the host."""
        return {**self.__dict__, "_steps": self._in_order()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RiskCurve):
            return NotImplemented
        return (
            np.array_equal(self.levels, other.levels)
            and np.array_equal(self.totals, other.totals)
            and self._facts() == other._facts()
        )

    def _facts(self) -> tuple[Any, ...]:
        steps = self._in_order()
        windows = [(window.below, len(window.levels)) for window in steps.windows]
        facts = self.unit, self.n_rows, self.bound, self.weight, self.stake
        return *facts, steps.most_tied, steps.total, windows

    def __repr__(self) -> str:
        n = len(self.windows)
        known = "" if self.is_whole else f" known in {n} window{'' if n == 1 else 's'}"
        return f"RiskCurve({len(self.levels)} levels{known}, {self.n_rows} rows, B={float(self.bound):g})"
