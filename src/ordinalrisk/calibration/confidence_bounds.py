r"""Certify a risk with confidence ``1 - delta``, from the losses of independent units.

Losses and ``alpha`` are relative here: shares of the largest loss ``B``. At each threshold, safest first, the
hypothesis :math:`R(\tau) \ge \alpha` is tested at level ``delta``, until a test does not reject. The risk
never falls as the threshold rises. So if the result is too large, the test has rejected a true hypothesis
just above the last safe threshold, which does not depend on the data. Thresholds between two levels have the
same losses, so that one is always among those tested: neither a grid nor a correction is needed.

All tests are monotone: with smaller losses or a larger ``delta``, a rejection stays a rejection. So the
search can bisect instead of testing every threshold.

References
----------
Bates, Angelopoulos, Lei, Malik and Jordan, "Distribution-free, risk-controlling prediction sets", 2021:
Hoeffding-Bentkus. Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024.
Voráček and Orabona, "STaR-Bets: Sequential target-recalculating bets for tighter confidence intervals", 2025.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ordinalrisk.calibration import betting_bound
from ordinalrisk.calibration.binomial_tails import (
    ROUNDING,
    binomial_p_value,
    binomial_rejects,
    units_without_loss,
    with_rounding_margin,
)
from ordinalrisk.curves.steps import last_of_each_level
from ordinalrisk.inputs.numbers import MOST_ROWS, as_fraction, decimal_text

if TYPE_CHECKING:
    from ordinalrisk.curves.unit_steps import UnitSteps

SMALLEST_SHARE = Fraction(1, 10**300)  # floats underflow not far below
FROM_BOTH_ENDS = "It must be at least 1e-300 away from both."
MOST_BETS = 10**8  # bets are placed one after the other, about ten nanoseconds each
_FEW_BETS = 10**6


def checked_bound(bound: str) -> str:
    if bound not in [*BOUNDS]:
        raise ValueError(f"confidence_bound must be one of {', '.join(BOUNDS)}; got {bound!r}.")
    return bound


def checked_delta(delta: Any) -> Fraction:
    exact = as_fraction(delta, "delta")
    if not SMALLEST_SHARE <= exact <= 1 - SMALLEST_SHARE:
        raise ValueError(
            f"delta must lie strictly between 0 and 1; got {decimal_text(exact)}. It is the probability of "
            f"being wrong: for a confidence of 95 % write 0.05. {FROM_BOTH_ENDS}"
        )
    return exact


def tightest_bound(two_valued: bool) -> str:
    """Return the default bound, which depends on the loss and the unit, never on the data.

    Clusters are never two-valued, even if each has one row: their sizes are data.

    If every miss costs the same, the number of misses is binomial: its test is exact, and needs no order of
    the units. Betting would gain a little, because it is not restricted to whole numbers of misses: a
    realised risk of 0.62 ``alpha`` instead of 0.59 on average with 100 units and ``alpha = delta = 0.1``, the
    same with 1,000.

    For other losses it is betting: only betting learns how much smaller than ``B`` most losses are. On
    ordinal models with divergence and weighted losses, 100 to 5,000 units, ``alpha`` from 0.05 to 0.2 and
    ``delta`` of 0.05 and 0.1, it was tighter than Hoeffding-Bentkus in every case: with the divergence of
    five classes, 300 units and ``alpha = delta = 0.1``, the realised risk is 0.87 ``alpha`` on average
    instead of 0.67.
    """
    return "binomial" if two_valued else "betting"


def units_needed(bound: str, alpha: Fraction, delta: Fraction, *, two_valued: bool = True) -> int:
    r"""Return the fewest units with which ``bound`` certifies a risk of ``alpha``, if none has a loss.

    The smallest ``n`` with :math:`(1 - \alpha)^n \le \delta` for the binomial and the Hoeffding-Bentkus
    bound. Betting never stakes all of its wealth, so it needs about 1 % more units. The
    Dvoretzky-Kiefer-Wolfowitz bound needs :math:`(t_\delta / \alpha)^2` units, far more where ``alpha`` is
    small.
    """
    needed = BOUNDS[checked_bound(bound)].units_needed
    return needed(_checked_alpha(alpha), checked_delta(delta), two_valued)


def binomial_budget(n: int, alpha: Fraction, delta: Fraction) -> int:
    r"""Return the most misses ``c`` with :math:`P(\mathrm{Binom}(n, \alpha) \le c) \le \delta`, or -1.

    For losses that are 0 or ``B``. If even long decimals can't separate the two sides, ``c`` counts as too
    many misses.
    """
    alpha, delta = _checked_alpha(alpha), checked_delta(delta)
    return _last_true(lambda missed: binomial_rejects(missed, n, alpha, delta))


def hoeffding_bentkus_p_value(mean: Fraction, n: int, alpha: Fraction) -> float:
    r"""Bound the probability of a mean loss this small if the risk is ``alpha``.

    .. math::

        \min\big( e^{-n\,\mathrm{kl}(\min(m, \alpha), \alpha)},\;
            e\,P(\mathrm{Binom}(n, \alpha) \le \lceil n m \rceil) \big)
    """
    from scipy.special import rel_entr

    low = min(mean, alpha)
    divergence = rel_entr(float(low), float(alpha)) + rel_entr(float(1 - low), float(1 - alpha))
    return min(math.exp(-n * divergence), math.e * binomial_p_value(math.ceil(n * mean), n, alpha))


def hoeffding_bentkus_budget(n: int, alpha: Fraction, delta: Fraction, unit: Fraction) -> Fraction:
    """Return the largest total loss, a multiple of ``unit``, that certifies ``alpha``; negative if none."""
    alpha, delta = _checked_alpha(alpha), checked_delta(delta)
    if n < units_without_loss(alpha, delta):
        return -unit
    enough = with_rounding_margin(delta, n)

    def rejects(total: int) -> bool:
        return total == 0 or hoeffding_bentkus_p_value(total * unit / n, n, alpha) <= enough

    return _last_true(rejects) * unit


def dkw_budget(n: int, alpha: Fraction, delta: Fraction, unit: Fraction, two_valued: bool) -> Fraction:
    r"""Return the largest total loss, a multiple of ``unit``, that certifies ``alpha``; negative if none.

    This bound holds for every ``alpha`` at once, also for one that is chosen after a look at the rows. With
    :math:`\hat R` the mean loss of the units,

    .. math:: P\Big( \sup_\tau \big( R(\tau) - \hat R(\tau) \big) > t / \sqrt n \Big) \le \delta,

    so the budget is :math:`n \alpha - t \sqrt n`. For losses that are 0 or 1, :math:`e^{-2 t^2} = \delta`
    (Dvoretzky, Kiefer, Wolfowitz 1956 with the constant of Massart 1990, for :math:`\delta \le 1/2`). For
    others,

    .. math:: e^{4 t x - 4 t^2} + 2 \sqrt{2 \pi}\, t\, e^{-2 t^2} = \delta, \qquad x = \sqrt{\log(2) / 2}.

    Why: a loss is the mean of :math:`1\{L(\tau) > u\}` over ``u`` between 0 and 1, and for each ``u`` this
    indicator steps once as the threshold rises. So :math:`\sqrt n \sup_\tau (R - \hat R)` is at most the
    mean over ``u`` of suprema :math:`X_u` with :math:`P(X_u > x) \le e^{-2 x^2}` where that is at most 1/2.
    By Jensen's inequality the exponential moment of the mean is at most that of one of them,
    :math:`E\, e^{4 t X_u} \le e^{4 t x} + 2 \sqrt{2 \pi}\, t\, e^{2 t^2}`, and Markov's inequality gives the
    tail.
    """
    alpha, delta = _checked_alpha(alpha), checked_delta(delta)
    reach = _dkw_reach(delta, two_valued)
    root = Fraction(math.isqrt(n * 10**20) + 1, 10**10)  # not below the root of n
    total = n * alpha - reach * root
    return max(math.floor(total / unit), -1) * unit


def betting_threshold(steps: UnitSteps, scale: Fraction, alpha: Fraction, delta: Fraction) -> float:
    r"""Return the largest threshold at which bets against a risk of ``alpha`` turn 1 into ``1 / delta``.

    For one unit after the other, part of the wealth is bet on a risk below ``alpha``:

    .. math:: K_t = K_{t-1} (1 + \nu_t (\alpha - L_t)), \qquad
        \nu_t = \min\Big( \sqrt{\frac{2 \log(1 / \delta K_{t-1})}{(n - t + 1)\, s_t^2}},\;
            \frac{0.99}{1 - \alpha} \Big).

    At a risk of ``alpha`` or more this wealth does not grow on average, and reaches ``1 / delta`` with
    probability ``delta`` at most (Ville), whatever the bets, if each is placed before its loss is seen.
    The size of a bet depends on the wealth that is still missing and on the number of units left. The
    resulting threshold is close to that of the normal approximation, which has no guarantee.

    The spread ``s_t`` is computed from the losses of earlier units, at the threshold where their mean is
    ``alpha``. It is the same for every threshold that is tested. A share ``p = delta K`` of the goal becomes
    ``p + I(p) (alpha - L)``, where ``I(p) / p`` falls and ``I(p) / (1 - p)`` rises. So, until the goal is
    reached, it rises with ``p`` and falls with ``L``; the outcome is monotone in the threshold and in
    ``delta``, and bisection finds what a scan from the safest threshold would.

    Units must be independent draws, and bet in the order of their numbers. The bound does not hold if the
    order depends on the losses, as in a sorted file, or if the shuffle is computed from the rows. Shuffle the
    units with random numbers that do not depend on the rows; :meth:`UnitSteps.shuffled` does so. ``scale`` is
    the loss, relative to ``B``, of one ``by``.

    If ``alpha`` is a share of what units can lose, :math:`g_i`, then full sets lose :math:`\alpha (1 - g_i)`
    already: all of the above holds for :math:`Z_i = L_i + \alpha (1 - g_i)`.
    """
    alpha, delta, n = _checked_alpha(alpha), checked_delta(delta), steps.n_units
    if n > MOST_BETS:
        raise ValueError(
            f"Betting takes at most {MOST_BETS} rows or clusters; got {n}. Take "
            'confidence_bound="hoeffding_bentkus", which is nearly as tight for so many.'
        )
    losses = betting_bound.relative_losses(steps.by, scale)
    order = np.lexsort((steps.unit, losses, steps.at))
    at, losses, place = steps.at[order], losses[order], steps.unit[order]
    betting_bound.require_bounded(place, losses)
    first = None if steps.stakes is None else betting_bound.losses_of_full_sets(steps.stakes, scale, alpha)
    spread = betting_bound.spread_before(at, place, losses, n, betting_bound.as_float(alpha), first)
    n_paid = np.concatenate([[0], last_of_each_level(at) + 1])  # at each candidate

    def wins(candidate: int) -> bool:
        if candidate >= len(n_paid):
            return False
        paid = slice(0, n_paid[candidate])
        return betting_bound.bets_reach_goal(
            betting_bound.total_losses(place[paid], losses[paid], n, first), spread, alpha, delta
        )

    last = _last_true(wins)
    if last < 0:
        return -math.inf
    return float(at[n_paid[last]]) if last < len(n_paid) - 1 else math.inf


class ConfidenceBound(NamedTuple):
    """One test of "the risk is at least ``alpha``" at level ``delta``: how to compute it and what to call it.

    ``units_needed(alpha, delta, two_valued)`` is the fewest units without a loss that certify ``alpha``.
    ``budget(n, alpha, delta, unit, two_valued)`` is the largest total loss of ``n`` units that certifies it.
    A bound without a budget has ``threshold(steps, unit, alpha, delta)``, from the steps of units in random
    order. ``alpha``, losses and the ``unit`` that all losses are multiples of are shares of the largest loss.
    """

    words: str
    units_needed: Callable[[Fraction, Fraction, bool], int]
    budget: Callable[[int, Fraction, Fraction, Fraction, bool], Fraction | int] | None = None
    threshold: Callable[[UnitSteps, Fraction, Fraction, Fraction], float] | None = None
    only_two_valued: bool = False
    every_alpha: bool = False


BOUNDS = {
    "binomial": ConfidenceBound(
        "exact binomial",
        lambda alpha, delta, _: units_without_loss(alpha, delta),
        lambda n, alpha, delta, *_: binomial_budget(n, alpha, delta),
        only_two_valued=True,
    ),
    "betting": ConfidenceBound(
        "betting", lambda alpha, delta, _: _bets_without_loss(alpha, delta), threshold=betting_threshold
    ),
    "hoeffding_bentkus": ConfidenceBound(
        "Hoeffding-Bentkus",
        lambda alpha, delta, _: units_without_loss(alpha, delta),
        lambda n, alpha, delta, unit, _: hoeffding_bentkus_budget(n, alpha, delta, unit),
    ),
    "dkw": ConfidenceBound(
        "Dvoretzky-Kiefer-Wolfowitz",
        lambda alpha, delta, two_valued: math.ceil((_dkw_reach(delta, two_valued) / alpha) ** 2),
        dkw_budget,
        every_alpha=True,
    ),
}
"""The bounds by name: the command line, guarantees, reports and tests read this list."""


def _checked_alpha(alpha: Fraction) -> Fraction:
    if not SMALLEST_SHARE <= alpha <= 1 - SMALLEST_SHARE:
        raise ValueError(
            "alpha must lie strictly between 0 and 1 as a share of the largest loss; "
            f"got {decimal_text(alpha)}. Divide it by B. {FROM_BOTH_ENDS}"
        )
    return alpha


def _last_true(holds: Callable[[int], bool]) -> int:
    """Return the last of 0, 1, 2, ... for which a condition holds, or -1; once false, it stays false."""
    holding, failing = -1, 0
    while holds(failing):
        holding, failing = failing, 2 * failing + 1
    while failing - holding > 1:
        middle = (holding + failing) // 2
        if holds(middle):
            holding = middle
        else:
            failing = middle
    return holding


def _bets_without_loss(alpha: Fraction, delta: Fraction) -> int:
    """Return the fewest units with which betting certifies ``alpha`` if none has a loss."""
    share = betting_bound.as_float(alpha)
    growth = math.log1p(betting_bound.largest_bet(share) * share)
    n = _last_true(lambda n: n < MOST_ROWS and n * growth < -math.log(with_rounding_margin(delta, n))) + 1

    def win(n: int) -> bool:
        return betting_bound.bets_reach_goal(
            np.zeros(n), np.array([betting_bound.largest_spread(share)]), alpha, delta
        )

    if n <= _FEW_BETS:  # few enough to place the bets, rounding included
        while not win(n):
            n += 1
        while win(n - 1):
            n -= 1
    return n


def _dkw_reach(delta: Fraction, two_valued: bool) -> Fraction:
    """The ``t`` of :func:`dkw_budget`, rounded up."""
    small = with_rounding_margin(min(delta, Fraction(1, 2)), 1)
    if two_valued:
        return Fraction(math.sqrt(-math.log(small) / 2) * (1 + ROUNDING))
    low, high = 0.6, 30.0  # the tail falls from 0.5 on; at 30 it is below any delta
    while high - low > ROUNDING:
        middle = (low + high) / 2
        low, high = (low, middle) if _mean_of_suprema_tail(middle) <= small else (middle, high)
    return Fraction(high)


def _mean_of_suprema_tail(t: float) -> float:
    return math.exp(4 * t * math.sqrt(math.log(2) / 2) - 4 * t * t) + 2 * math.sqrt(
        2 * math.pi
    ) * t * math.exp(-2 * t * t)
