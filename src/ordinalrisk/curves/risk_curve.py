"""The total calibration loss as an exact step function of the threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.steps import Steps
from ordinalrisk.curves.windows import NotKnownError, Window


class OrderedSteps(Protocol):
    """The steps of the losses in the order of their levels: all, or those in some windows."""

    @property
    def levels(self) -> NDArray[np.float64]:
        """The distinct levels, ascending."""

    @property
    def totals(self) -> NDArray[Any]:
        """The total just above each."""

    @property
    def most_tied(self) -> int:
        """The most steps at one level."""

    @property
    def windows(self) -> tuple[Window, ...]:
        """Consecutive levels."""

    @property
    def total(self) -> int:
        """All steps together."""

    @property
    def in_order(self) -> OrderedSteps:
        """Themselves."""

    def first_level_above(self, budget: int) -> float:
        """As for any steps."""

    def total_below(self, threshold: float) -> int:
        """What the steps at levels below ``threshold`` add up to."""


class AnySteps(Protocol):
    """The steps of the losses, wherever they lie."""

    @property
    def in_order(self) -> OrderedSteps:
        """The steps as a curve, on the host."""

    def first_level_above(self, budget: int) -> float:
        """The lowest level at which the steps up to it add up to more than ``budget``; infinite if none."""


class RiskCurve:
    r"""The total loss of the calibration rows at every threshold (paper, Eq. 3).

    .. math:: \tau \mapsto \sum_{i=1}^n L_i(\tau)

    It counts every step of a row's loss at a level below :math:`\tau`, in whole numbers of ``unit``, so sums
    and comparisons are exact. One curve answers every ``alpha``: the first in O(n), and in
    O(log n) once it is sorted, which the first look at ``levels``, ``totals`` or ``most_tied`` does.

    Where the rows were too many for one machine, the curve is known in windows around the thresholds that
    were asked for, and what it does not tell is a :exc:`~ordinalrisk.curves.windows.NotKnownError`.

    Attributes
    ----------
    is_whole : bool
        Whether all of it is known, not just some windows.
    windows : tuple of Window
        Levels with nothing unknown between them, and the totals below and above: one if it is whole.
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
        """The curve of losses that step up at some levels by so many units each.

        Parameters
        ----------
        at : array of float64
            The level of each step, in any order.
        by : array of int
            By how many units the loss steps up there.
        unit, n_rows, bound
            As for the class.

        Returns
        -------
        RiskCurve
            With equal levels joined.

        Examples
        --------
        >>> steps = np.array([0.3, 0.1, 0.1]), np.array([1, 1, 1])
        >>> RiskCurve.from_steps(*steps, unit=Fraction(1), n_rows=4, bound=Fraction(1)).levels
        array([0.1, 0.3])
        """
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

    @property
    def windows(self) -> tuple[Window, ...]:  # noqa: D102
        return self._in_order().windows

    @property
    def is_whole(self) -> bool:  # noqa: D102
        steps = self._in_order()
        known = sum(int(window.totals[-1]) - window.below for window in steps.windows)
        return known == steps.total

    def require_whole(self, purpose: str) -> None:
        """Refuse what only the whole curve can tell."""
        if not self.is_whole:
            raise NotKnownError(
                f"{purpose} needs the whole risk curve, which was kept near some thresholds only, since its "
                "rows lay in many parts; calibrate on one machine, on fewer rows."
            )

    def _in_order(self) -> OrderedSteps:
        self._steps = in_order = self._steps.in_order
        return in_order

    def total_loss(self, threshold: float) -> Fraction:
        r"""The sum of the calibration rows' losses, exactly: :math:`\sum_i L_i(\tau)` of the paper's Eq. 3.

        Parameters
        ----------
        threshold : float
            Where labels whose level is lower drop out.

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
        r"""The mean loss of the calibration rows: :math:`\frac{1}{n} \sum_i L_i(\tau)`.

        Parameters
        ----------
        threshold : float
            Where labels whose level is lower drop out.

        Returns
        -------
        float
            In units of the loss; the weighted mean where rows are weighted.

        Examples
        --------
        >>> steps = np.array([0.3, 0.1, 0.1]), np.array([1, 1, 1])
        >>> RiskCurve.from_steps(*steps, unit=Fraction(1), n_rows=4, bound=Fraction(1)).risk(0.2)
        0.5
        """
        return float(self.total_loss(threshold) / self.weight)

    def first_level_above(self, budget: Fraction) -> float:
        r"""The largest threshold whose total loss is at most ``budget``.

        .. math:: \sup \{ \tau : \sum_i L_i(\tau) \le b \}

        With :math:`b = (n + 1)\,\alpha - B` it is the calibrated threshold (paper, Eq. 3).

        Parameters
        ----------
        budget : Fraction
            What the losses may add up to.

        Returns
        -------
        float
            Infinite if every step fits, minus infinity if nothing can: a total loss is never negative.

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
        """With the steps in order and on the host, wherever they are."""
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
        return self.unit, self.n_rows, self.bound, self.weight, steps.most_tied, steps.total, windows

    def __repr__(self) -> str:
        n = len(self.windows)
        known = "" if self.is_whole else f" known in {n} window{'' if n == 1 else 's'}"
        return f"RiskCurve({len(self.levels)} levels{known}, {self.n_rows} rows, B={float(self.bound):g})"
