r"""Thresholds from the losses of calibration rows. Calibration never sees a probability.

For exchangeable rows (Theorem 1) the expected loss of a new row is at most ``alpha`` at

.. math:: \hat\tau = \sup \{ \tau : \sum_{i=1}^n L_i(\tau) \le (n + 1)\,\alpha - B \}.

Rows with weights :math:`w_i`, likelihood ratios of a new population to theirs, count as often as these say,
and so does the new row (Tibshirani et al. 2019, Angelopoulos et al. 2024):

.. math:: \sum_i w_i L_i(\tau) \le \Big(\sum_i w_i + w\Big)\,\alpha - w B.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration import confidence_bounds
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.strata import Stratum
from ordinalrisk.inputs.numbers import as_fraction, decimal_text
from ordinalrisk.losses.cost_table import CostTable


def checked_alpha(alpha: Fraction, bound: Fraction) -> Fraction:
    """``alpha`` itself if it lies between 0 and the largest loss."""
    if not 0 < alpha < bound:
        raise ValueError(
            f"alpha must lie strictly between 0 and the largest loss, B={decimal_text(bound)}; "
            f"got {decimal_text(alpha)}. It has the units of the loss: for 5 % of a normalized one write "
            "0.05; normalize=False keeps natural units."
        )
    return alpha


def checked_more_alphas(alphas: Any, costs: CostTable) -> tuple[Fraction, ...]:
    """Other risks that will be asked for, each between 0 and the largest loss."""
    if isinstance(alphas, str) or not isinstance(alphas, Iterable):
        raise ValueError(f"more_alphas must be a sequence of numbers; got {alphas!r}.")
    risks = [as_fraction(alpha, "each of more_alphas") for alpha in alphas]
    try:
        return tuple(checked_alpha(risk, costs.bound) for risk in risks)
    except ValueError as error:
        raise ValueError(f"more_alphas: {error}") from None


def rows_needed(alpha: Fraction, bound: Fraction) -> int:
    """The fewest calibration rows with which an expected loss of ``alpha`` can be certified.

    Examples
    --------
    >>> rows_needed(Fraction(1, 10), Fraction(1))
    9
    """
    return math.ceil(bound / alpha) - 1


def loss_budget(
    alpha: Fraction, bound: Fraction, weight: Fraction | int, own: Fraction | int = 1
) -> Fraction:
    """What the losses of calibration rows may add up to; negative where nothing can be certified.

    ``weight`` is that of all calibration rows, their number if they have none, ``own`` that of the new row.
    """
    return (weight + own) * checked_alpha(alpha, bound) - own * bound


def expectation_threshold(curve: RiskCurve, alpha: Fraction) -> float:
    r"""``sup {tau : (total_loss(tau) + B) / (n + 1) <= alpha}``, which is attained.

    Minus infinity, full sets, where nothing can be certified; infinity, single labels, where every step fits.
    """
    if curve.weight == 0:
        return -math.inf
    own = curve.weight / curve.n_rows  # 1, unless rows are weighted: then this is for a row of mean weight
    return curve.first_level_above(loss_budget(alpha, curve.bound, curve.weight, own))


def threshold_by_weight(curve: RiskCurve, alpha: Fraction, weight: Fraction) -> float:
    """The threshold of a new row of this weight."""
    if curve.weight == 0:
        return -math.inf
    return curve.first_level_above(loss_budget(alpha, curve.bound, curve.weight, weight))


class ThresholdsByWeight:
    r"""The threshold of each new row by its weight, in O(log n) and exactly.

    A total loss ``T`` is within the budget of a row of weight ``w`` if and only if

    .. math:: w \le \frac{\alpha \sum_i w_i - T}{B - \alpha},

    so each level has a heaviest row for which the labels there may still drop out. These weights are rounded
    down to the nearest number that a row's weight can be; between such numbers nothing can happen.

    Examples
    --------
    >>> steps = np.array([0.1, 0.2, 0.3]), np.array([1, 1, 1])
    >>> curve = RiskCurve.from_steps(*steps, unit=Fraction(1), n_rows=9, bound=Fraction(1))
    >>> ThresholdsByWeight(curve, Fraction(1, 2)).of(np.array([1.0, 5.0, 9.0, 9.5]))
    array([ inf,  0.3,  0.1, -inf])
    """

    def __init__(self, curve: RiskCurve, alpha: Fraction) -> None:
        curve.require_whole("A threshold for each row")
        left = curve.weight * checked_alpha(alpha, curve.bound) / (curve.bound - alpha)
        one = curve.unit / (curve.bound - alpha)
        common = math.lcm(left.denominator, one.denominator)
        whole, step = int(left * common), int(one * common)
        totals = [0, *curve.totals.tolist()] if curve.weight else []
        heaviest = [_rounded_down(whole - total * step, common) for total in totals]
        self._ascending = np.array(heaviest[::-1], np.float64)
        self._thresholds = np.concatenate([[-math.inf], curve.levels, [math.inf]])

    def of(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The thresholds of rows of these weights."""
        n_fitting = len(self._ascending) - np.searchsorted(self._ascending, weights, side="left")
        found: NDArray[np.float64] = self._thresholds[n_fitting]
        return found


def _rounded_down(numerator: int, denominator: int) -> float:
    """The largest float that is no larger than the ratio."""
    try:
        near = numerator / denominator  # Python divides whole numbers with one rounding, to nearest
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
    top, bottom = near.as_integer_ratio()
    return near if top * denominator <= numerator * bottom else math.nextafter(near, -math.inf)


class Promise(ABC):
    """What is promised of the loss of new cases, and the threshold that keeps it."""

    @abstractmethod
    def threshold(self, stratum: Stratum, alpha: Fraction) -> float:
        """The largest threshold of which the promise is known to hold; infinite if any is."""

    @abstractmethod
    def rows_needed(self, stratum: Stratum, alpha: Fraction) -> int:
        """The fewest independent units with which anything can be certified."""


@dataclass(frozen=True)
class Expectation(Promise):
    """The expected loss, over calibrations too, is at most ``alpha``."""

    def threshold(self, stratum: Stratum, alpha: Fraction) -> float:  # noqa: D102
        if alpha >= stratum.curve.bound:
            return math.inf
        return expectation_threshold(stratum.curve, alpha)

    def rows_needed(self, stratum: Stratum, alpha: Fraction) -> int:  # noqa: D102
        return max(rows_needed(alpha, stratum.curve.bound), 0)


@dataclass(frozen=True)
class HighProbability(Promise):
    """The expected loss is at most ``alpha`` with probability ``1 - delta`` over calibrations.

    Over calibrations means over the draw of independent units and, for betting, over their shuffle.
    ``bound`` names a bound of :mod:`ordinalrisk.calibration.confidence_bounds`; ``"auto"`` is the tightest.
    """

    delta: Fraction
    bound: str = "auto"

    def bound_for(self, stratum: Stratum) -> str:
        """The name of the bound that serves these losses."""
        return self._bound(stratum.two_valued)

    def needs_totals_only(self, two_valued: bool) -> bool:
        """Whether it does not matter whose loss steps where."""
        return self._bound(two_valued) != "betting"

    def _bound(self, two_valued: bool) -> str:
        if self.bound == "auto":
            return confidence_bounds.tightest_bound(two_valued)
        if self.bound == "binomial" and not two_valued:
            raise ValueError(
                'bound="binomial" is for losses of rows that are 0 or the largest one, as with "coverage"; '
                'take "betting" or "hoeffding_bentkus" for other losses and for clusters.'
            )
        return self.bound

    def threshold(self, stratum: Stratum, alpha: Fraction) -> float:  # noqa: D102
        curve, n = stratum.curve, stratum.curve.n_rows
        if alpha >= curve.bound:
            return math.inf
        if n == 0:
            return -math.inf
        relative, unit = alpha / curve.bound, curve.unit / curve.bound
        match self.bound_for(stratum):
            case "binomial":
                missed = confidence_bounds.binomial_budget(n, relative, self.delta)
                return curve.first_level_above(missed * curve.bound)
            case "hoeffding_bentkus":
                total = confidence_bounds.hoeffding_bentkus_budget(n, relative, self.delta, unit)
                return curve.first_level_above(total * curve.bound)
            case "dkw":
                total = confidence_bounds.dkw_budget(
                    n, relative, self.delta, unit, two_valued=stratum.two_valued
                )
                return curve.first_level_above(total * curve.bound)
            case _:
                if stratum.steps is None:
                    raise ValueError("the betting bound needs to know whose loss steps where")
                return confidence_bounds.betting_threshold(stratum.steps, unit, relative, self.delta)

    def rows_needed(self, stratum: Stratum, alpha: Fraction) -> int:  # noqa: D102
        if alpha >= stratum.curve.bound:
            return 0
        relative = alpha / stratum.curve.bound
        bound = self.bound_for(stratum)
        return confidence_bounds.units_needed(bound, relative, self.delta, two_valued=stratum.two_valued)


def too_few(
    alpha: Fraction, bound: Fraction, n_rows: int, needed: int, unit: str = "row", also: str = ""
) -> str:
    """What to say where there are too few calibration rows for anything to be certified."""
    return (
        f"alpha={decimal_text(alpha)} needs at least {needed} calibration {unit}s for a loss bounded by "
        f"{decimal_text(bound)}{also}; got {n_rows}, so every set is the full scale."
    )
