r"""Thresholds from the losses of calibration rows. Calibration never sees a probability.

For exchangeable rows (Theorem 1) the expected loss of a new row is at most ``alpha`` at

.. math:: \hat\tau = \sup \{ \tau : \sum_{i=1}^n L_i(\tau) \le (n + 1)\,\alpha - B \}.

Rows can have weights :math:`w_i`, likelihood ratios of a new population to the old one. A row of weight
:math:`w_i` then counts :math:`w_i` times, and so does the new row (Tibshirani et al. 2019, Angelopoulos et
al. 2024):

.. math:: \sum_i w_i L_i(\tau) \le \Big(\sum_i w_i + w\Big)\,\alpha - w B.

If ``alpha`` is a share of what a row could lose, the largest cost :math:`g_i` of its true label, the promise
is :math:`E[L] \le \alpha\,E[g]`. It is the same as :math:`E[Z] \le \alpha B` for

.. math:: Z_i(\tau) = L_i(\tau) + \alpha\,(B - g_i),

which lies between 0 and ``B`` and never falls in :math:`\tau`, as a loss must. So all of the above holds for
it. Each row then counts as :math:`g_i / B` rows:

.. math:: \sum_i w_i L_i(\tau) \le \alpha \Big(\sum_i w_i g_i + w B\Big) - w B.
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

from ordinalrisk.calibration.confidence_bounds import (
    BOUNDS,
    ConfidenceBound,
    tightest_bound,
    units_needed,
)
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.strata import Stratum
from ordinalrisk.inputs.numbers import as_fraction, decimal_text
from ordinalrisk.losses.cost_table import CostTable


def checked_alpha(alpha: Fraction, bound: Fraction) -> Fraction:
    if not 0 < alpha < bound:
        raise ValueError(
            f"alpha must lie strictly between 0 and the largest loss, B={decimal_text(bound)}; "
            f"got {decimal_text(alpha)}. It has the units of the loss: for 5 % of a normalized one write "
            "0.05; normalize=False keeps natural units."
        )
    return alpha


def checked_share(alpha: Fraction) -> Fraction:
    if not 0 < alpha < 1:
        raise ValueError(
            f"alpha must lie strictly between 0 and 1 with relative=True; got {decimal_text(alpha)}. It is a "
            "share of what could be lost, whatever the units of the loss: for 5 % write 0.05."
        )
    return alpha


def checked_more_alphas(alphas: Any, costs: CostTable, relative: bool = False) -> tuple[Fraction, ...]:
    if isinstance(alphas, str) or not isinstance(alphas, Iterable):
        raise ValueError(f"more_alphas must be a sequence of numbers; got {alphas!r}.")
    risks = [as_fraction(alpha, "each of more_alphas") for alpha in alphas]
    try:
        return tuple(checked_share(risk) if relative else checked_alpha(risk, costs.bound) for risk in risks)
    except ValueError as error:
        raise ValueError(f"more_alphas: {error}") from None


def rows_needed(alpha: Fraction, bound: Fraction) -> int:
    """Return the fewest calibration rows with which an expected loss of ``alpha`` can be certified."""
    return math.ceil(bound / alpha) - 1


def loss_budget(
    alpha: Fraction, bound: Fraction, weight: Fraction | int, own: Fraction | int = 1
) -> Fraction:
    """Return the largest total calibration loss that is allowed; negative if nothing can be certified.

    ``weight`` is the total weight of the calibration rows (their number without weights), ``own`` the weight
    of the new row.
    """
    return (weight + own) * checked_alpha(alpha, bound) - own * bound


def allowed_risk(curve: RiskCurve, alpha: Fraction) -> Fraction:
    """Return the allowed risk in units of the loss; a share is a share of ``B``."""
    return alpha if curve.stake is None else alpha * curve.bound


def counted_weight(curve: RiskCurve) -> Fraction:
    """Return the weight of all rows; if ``alpha`` is a share, each counts as ``g / B`` rows."""
    return curve.weight if curve.stake is None else curve.stake / curve.bound


def budget_of(curve: RiskCurve, alpha: Fraction, own: Fraction | int = 1) -> Fraction:
    """Return the largest total loss of a curve's rows that is allowed for a new row of weight ``own``."""
    return loss_budget(allowed_risk(curve, alpha), curve.bound, counted_weight(curve), own)


def expectation_threshold(curve: RiskCurve, alpha: Fraction, weight: Fraction | None = None) -> float:
    r"""Return ``sup {tau : (total_loss(tau) + B) / (n + 1) <= alpha}``, which is attained.

    It is minus infinity (full sets) if nothing can be certified, and infinity (single labels) if every step
    fits into the budget. With weights it is for a new row of this weight, by default the mean weight.
    """
    if curve.weight == 0:
        return -math.inf
    own = curve.weight / curve.n_rows if weight is None else weight
    return curve.first_level_above(budget_of(curve, alpha, own))


class ThresholdsByWeight:
    r"""The threshold of each new row by its weight, in O(log n) and exactly.

    A total loss ``T`` is within the budget of a row of weight ``w`` if and only if

    .. math:: w \le \frac{\alpha \sum_i w_i - T}{B - \alpha},

    so at each level there is a largest weight at which labels may still drop out. These weights are rounded
    down to the nearest float, which changes nothing, because the weight of a row is a float. If ``alpha`` is
    a share, rows count as above: :math:`w \le (\alpha \sum_i w_i g_i - T) / (B - \alpha B)`.
    """

    def __init__(self, curve: RiskCurve, alpha: Fraction) -> None:
        curve.require_whole("A threshold for each row")
        risk = checked_alpha(allowed_risk(curve, alpha), curve.bound)
        left = counted_weight(curve) * risk / (curve.bound - risk)
        one = curve.unit / (curve.bound - risk)
        common = math.lcm(left.denominator, one.denominator)
        whole, step = int(left * common), int(one * common)
        totals = [0, *curve.totals.tolist()] if curve.weight else []
        heaviest = [_rounded_down(whole - total * step, common) for total in totals]
        self._ascending = np.array(heaviest[::-1], np.float64)
        self._thresholds = np.concatenate([[-math.inf], curve.levels, [math.inf]])

    def of(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        n_fitting = len(self._ascending) - np.searchsorted(self._ascending, weights, side="left")
        thresholds: NDArray[np.float64] = self._thresholds[n_fitting]
        return thresholds


def _rounded_down(numerator: int, denominator: int) -> float:
    """Return the largest float that does not exceed the ratio."""
    try:
        near = numerator / denominator  # Python divides whole numbers with one rounding, to nearest
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
    top, bottom = near.as_integer_ratio()
    return near if top * denominator <= numerator * bottom else math.nextafter(near, -math.inf)


class Promise(ABC):
    """A promise about the loss of new rows, and the threshold that keeps it."""

    delta: Fraction | None
    measure: str | None
    """What ``alpha`` is a share of: "weight", "distance" or "loss"; None if ``alpha`` is a loss."""

    @abstractmethod
    def threshold(self, stratum: Stratum, alpha: Fraction) -> float:
        """Return the largest threshold at which the promise is known to hold; infinite if it always holds."""

    @abstractmethod
    def rows_needed(self, stratum: Stratum, alpha: Fraction) -> int:
        """Return the fewest independent units that can certify ``alpha``."""

    def bound_for(self, two_valued: bool) -> str | None:
        """Return the name of the confidence bound for such losses, if the promise needs one."""
        return None

    def needs_steps(self, two_valued: bool) -> bool:
        """Whether a bound needs the steps of each unit, not just the total loss at each threshold."""
        name = self.bound_for(two_valued)
        return name is not None and BOUNDS[name].threshold is not None


@dataclass(frozen=True)
class Expectation(Promise):
    """The expected loss is at most ``alpha``, on average over calibrations."""

    measure: str | None = None
    delta = None

    def threshold(self, stratum: Stratum, alpha: Fraction) -> float:
        if allowed_risk(stratum.curve, alpha) >= stratum.curve.bound:
            return math.inf
        return expectation_threshold(stratum.curve, alpha)

    def rows_needed(self, stratum: Stratum, alpha: Fraction) -> int:
        curve = stratum.curve
        risk = allowed_risk(curve, alpha)
        return 0 if risk >= curve.bound else rows_needed(risk, curve.bound)


@dataclass(frozen=True)
class HighProbability(Promise):
    """The expected loss is at most ``alpha`` with probability ``1 - delta`` over calibrations.

    Over calibrations means over the draw of independent units and, for betting, over their shuffle.
    ``bound`` names a bound of :mod:`ordinalrisk.calibration.confidence_bounds`; ``"auto"`` is the tightest.
    """

    delta: Fraction
    bound: str = "auto"
    measure: str | None = None

    def bound_for(self, two_valued: bool) -> str:
        if self.bound == "auto":
            return tightest_bound(two_valued)
        if BOUNDS[self.bound].only_two_valued and not two_valued:
            raise ValueError(
                f'confidence_bound="{self.bound}" is for losses of rows that are 0 or the largest one, as '
                'with "coverage"; take "betting" or "hoeffding_bentkus" for other losses and for clusters.'
            )
        return self.bound

    def threshold(self, stratum: Stratum, alpha: Fraction) -> float:
        curve, n = stratum.curve, stratum.curve.n_rows
        if allowed_risk(curve, alpha) >= curve.bound:
            return math.inf
        if n == 0:
            return -math.inf
        share, unit = allowed_risk(curve, alpha) / curve.bound, curve.unit / curve.bound
        bound = BOUNDS[self.bound_for(stratum.two_valued)]
        if bound.budget is not None:
            lost = Fraction(
                0
            )  # the loss of full sets if alpha is a share: the sum of Z is the total loss plus this
            if curve.stake is not None:
                lost, unit = share * (n - curve.stake / curve.bound), unit / share.denominator
            total = bound.budget(n, share, self._delta_of(bound, stratum), unit, stratum.two_valued)
            return curve.first_level_above((total - lost) * curve.bound)
        if bound.threshold is None or stratum.steps is None:
            raise ValueError(f"the {bound.words} bound needs the steps of each unit's loss")
        return bound.threshold(stratum.steps, unit, share, self.delta)

    def rows_needed(self, stratum: Stratum, alpha: Fraction) -> int:
        risk, largest = allowed_risk(stratum.curve, alpha), stratum.curve.bound
        if risk >= largest:
            return 0
        name, two_valued = self.bound_for(stratum.two_valued), stratum.two_valued
        delta = self._delta_of(BOUNDS[name], stratum)
        return units_needed(name, risk / largest, delta, two_valued=two_valued)

    def _delta_of(self, bound: ConfidenceBound, stratum: Stratum) -> Fraction:
        """Return the probability that the bound may fail.

        If ``alpha`` is a share, ``Z`` is linear in it. So a bound that holds for the ``Z`` of 0 and for that
        of 1 holds for every ``alpha`` at once; each of these two fails for half of ``delta``.
        """
        several = bound.every_alpha and stratum.curve.stake is not None and not stratum.two_valued
        return self.delta / 2 if several else self.delta


def share_text(alpha: Fraction) -> str:
    """Write a share in percent.

    >>> share_text(Fraction(1, 10)), share_text(Fraction(1, 3))
    ('10 %', '100/3 %')
    """
    return f"{decimal_text(100 * alpha)} %"


def too_little(
    alpha: Fraction,
    bound: Fraction,
    n_rows: int,
    needed: int,
    stake: float,
    unit: str = "row",
    also: str = "",
) -> str:
    return (
        f"alpha={decimal_text(alpha)} as a share{also} needs calibration {unit}s that can lose about "
        f"{decimal_text(needed * bound)} together, such as {needed} {unit}s of classes that can lose B = "
        f"{decimal_text(bound)}; these {n_rows} {unit}s can lose {stake:.6g} together, so every set is the "
        "full scale."
    )


def too_few(
    alpha: Fraction, bound: Fraction, n_rows: int, needed: int, unit: str = "row", also: str = ""
) -> str:
    return (
        f"alpha={decimal_text(alpha)} needs at least {needed} calibration {unit}s for a loss bounded by "
        f"{decimal_text(bound)}{also}; got {n_rows}, so every set is the full scale."
    )
