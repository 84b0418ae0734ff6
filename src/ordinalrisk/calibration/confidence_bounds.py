r"""How small a risk can be certified with confidence ``1 - delta``, from the losses of independent units.

Losses and ``alpha`` are relative here: shares of the largest loss ``B``. At each threshold, safest first, the
hypothesis :math:`R(\tau) \ge \alpha` is tested at level ``delta``, until it is not rejected. The risk is
nondecreasing, so whoever goes too far has rejected a true hypothesis at one threshold that does not depend on
the data: just above the last safe one. Candidates between two levels have the same losses, so that threshold
is always among those tested, and no grid and no correction is needed.

All three tests are monotone: smaller losses or a larger ``delta`` never turn a rejection around. So the
search may bisect where it would have to scan otherwise.

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
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.binomial_tails import (
    ROUNDING,
    binomial_p_value,
    rounding,
    so_few_are_rare,
    units_without_loss,
)
from ordinalrisk.curves.steps import last_of_each_level
from ordinalrisk.inputs.numbers import MOST_ROWS, as_fraction, decimal_text

if TYPE_CHECKING:
    from ordinalrisk.curves.unit_steps import UnitSteps

BOUNDS = ("binomial", "betting", "hoeffding_bentkus", "dkw")

SMALLEST_SHARE = Fraction(1, 10**300)  # floats end not far below
FROM_BOTH_ENDS = "It must be at least 1e-300 away from both."
MOST_BETS = 10**8  # bets are laid one after the other, some ten nanoseconds each
_FEW_BETS = 10**6
BOLDEST = 0.99  # share of the wealth that the largest loss may cost: whoever stakes all never comes back
BLOCKS = 16  # times that the spread of the losses is estimated anew; 8 and 64 give the same risk to 0.3 %

Floats = NDArray[np.float64]


def checked_bound(bound: str) -> str:
    """``bound`` itself if there is one of that name."""
    if bound not in BOUNDS:
        raise ValueError(f"bound must be one of {', '.join(BOUNDS)}; got {bound!r}.")
    return bound


def checked_delta(delta: Any) -> Fraction:
    """``delta`` as it is written, if it lies between 0 and 1."""
    exact = as_fraction(delta, "delta")
    if not SMALLEST_SHARE <= exact <= 1 - SMALLEST_SHARE:
        raise ValueError(
            f"delta must lie strictly between 0 and 1; got {decimal_text(exact)}. It is the probability of "
            f"being wrong: for a confidence of 95 % write 0.05. {FROM_BOTH_ENDS}"
        )
    return exact


def tightest_bound(two_valued: bool) -> str:
    """The bound to use where none is asked for; it depends on the loss and on the unit, never on the data.

    Clusters are never two-valued, even if each has one row: their sizes are data.

    If every miss costs the same, the number of misses is binomial: its test is exact, and needs no order of
    the units. Betting would gain what is lost to whole numbers, by the luck of the order: a realised risk of
    0.62 ``alpha`` instead of 0.59 on average with 100 units and ``alpha = delta = 0.1``, the same with 1,000.

    Otherwise betting, which alone learns how much smaller than ``B`` most losses are. On ordinal models with
    divergence and weighted losses, 100 to 5,000 units, ``alpha`` from 0.05 to 0.2 and ``delta`` of 0.05 and
    0.1, it was tighter than Hoeffding-Bentkus in every case: with the divergence of five classes, 300 units
    and ``alpha = delta = 0.1``, the realised risk is 0.87 ``alpha`` on average instead of 0.67.

    Examples
    --------
    >>> tightest_bound(two_valued=True), tightest_bound(two_valued=False)
    ('binomial', 'betting')
    """
    return "binomial" if two_valued else "betting"


def units_needed(bound: str, alpha: Fraction, delta: Fraction, *, two_valued: bool = True) -> int:
    r"""The fewest units with which ``bound`` certifies a risk of ``alpha``, when none of them has a loss.

    The smallest ``n`` with :math:`(1 - \alpha)^n \le \delta` for the binomial and the Hoeffding-Bentkus
    bound. Betting never stakes all, and needs about 1 % more (30 more than 2,995 at ``alpha = 0.001`` and
    ``delta = 0.05``). The Dvoretzky-Kiefer-Wolfowitz bound needs
    :math:`(t_\delta / \alpha)^2` units, far more where ``alpha`` is small.

    Examples
    --------
    >>> alpha, delta = Fraction(1, 10), Fraction(1, 10)
    >>> [units_needed(bound, alpha, delta) for bound in BOUNDS]
    [22, 23, 22, 116]
    """
    alpha, delta = _checked_alpha(alpha), checked_delta(delta)
    if checked_bound(bound) == "dkw":
        return math.ceil((_dkw_reach(delta, two_valued) / alpha) ** 2)
    return _bets_without_loss(alpha, delta) if bound == "betting" else units_without_loss(alpha, delta)


def binomial_budget(n: int, alpha: Fraction, delta: Fraction) -> int:
    r"""The most misses ``c`` with :math:`P(\mathrm{Binom}(n, \alpha) \le c) \le \delta`; -1 if there is none.

    For losses that are 0 or ``B``. No rounding decides: whole numbers or long decimals do where it could, and
    a tie of very many units that even those can't prove counts as too many misses.

    Examples
    --------
    >>> binomial_budget(100, Fraction(1, 10), Fraction(1, 10))
    5
    >>> binomial_budget(21, Fraction(1, 10), Fraction(1, 10))
    -1
    """
    alpha, delta = _checked_alpha(alpha), checked_delta(delta)
    return _last_that(lambda missed: so_few_are_rare(missed, n, alpha, delta))


def hoeffding_bentkus_p_value(mean: Fraction, n: int, alpha: Fraction) -> float:
    r"""How likely so small a mean loss is at a risk of ``alpha``, at most.

    .. math::

        \min\big( e^{-n\,\mathrm{kl}(\min(m, \alpha), \alpha)},\;
            e\,P(\mathrm{Binom}(n, \alpha) \le \lceil n m \rceil) \big)

    Examples
    --------
    >>> round(hoeffding_bentkus_p_value(Fraction(1, 20), 300, Fraction(1, 10)), 5)
    0.00344
    """
    from scipy.special import rel_entr

    low = min(mean, alpha)
    divergence = rel_entr(float(low), float(alpha)) + rel_entr(float(1 - low), float(1 - alpha))
    return min(math.exp(-n * divergence), math.e * binomial_p_value(math.ceil(n * mean), n, alpha))


def hoeffding_bentkus_budget(n: int, alpha: Fraction, delta: Fraction, unit: Fraction) -> Fraction:
    """The largest total loss, a multiple of ``unit``, that rejects a risk of ``alpha``; negative if none.

    Examples
    --------
    >>> hoeffding_bentkus_budget(300, Fraction(1, 10), Fraction(1, 10), unit=Fraction(1, 4))
    Fraction(20, 1)
    """
    alpha, delta = _checked_alpha(alpha), checked_delta(delta)
    if n < units_without_loss(alpha, delta):
        return -unit
    enough = _shaved(delta, n)

    def rejects(total: int) -> bool:
        return total == 0 or hoeffding_bentkus_p_value(total * unit / n, n, alpha) <= enough

    return _last_that(rejects) * unit


def dkw_budget(n: int, alpha: Fraction, delta: Fraction, unit: Fraction, *, two_valued: bool) -> Fraction:
    r"""The largest total loss, a multiple of ``unit``, that certifies a risk of ``alpha``; negative if none.

    This bound holds for every ``alpha`` at once, also for one that is chosen after a look at the rows. With
    :math:`\hat R` the mean loss of the units,

    .. math:: P\Big( \sup_\tau \big( R(\tau) - \hat R(\tau) \big) > t / \sqrt n \Big) \le \delta,

    so the budget is :math:`n \alpha - t \sqrt n`. For losses that are 0 or 1, :math:`e^{-2 t^2} = \delta`
    (Dvoretzky, Kiefer, Wolfowitz 1956 with the constant of Massart 1990, for :math:`\delta \le 1/2`). For
    others,

    .. math:: e^{4 t x - 4 t^2} + 2 \sqrt{2 \pi}\, t\, e^{-2 t^2} = \delta, \qquad x = \sqrt{\log(2) / 2}.

    Notes
    -----
    Why: a loss is the mean of :math:`1\{L(\tau) > u\}` over ``u`` between 0 and 1, and for each ``u`` this
    indicator steps once as the threshold rises. So :math:`\sqrt n \sup_\tau (R - \hat R)` is at most the
    mean over ``u`` of suprema :math:`X_u` with :math:`P(X_u > x) \le e^{-2 x^2}` where that is at most 1/2.
    By Jensen's inequality the exponential moment of the mean is at most that of one of them,
    :math:`E\, e^{4 t X_u} \le e^{4 t x} + 2 \sqrt{2 \pi}\, t\, e^{2 t^2}`, and Markov's inequality gives the
    tail.

    Examples
    --------
    >>> alpha, delta, unit = Fraction(1, 10), Fraction(1, 10), Fraction(1, 4)
    >>> dkw_budget(1000, alpha, delta, unit, two_valued=True)
    Fraction(66, 1)
    >>> dkw_budget(1000, alpha, delta, unit, two_valued=False)
    Fraction(213, 4)
    """
    alpha, delta = _checked_alpha(alpha), checked_delta(delta)
    reach = _dkw_reach(delta, two_valued)
    root = Fraction(math.isqrt(n * 10**20) + 1, 10**10)  # not below the root of n
    total = n * alpha - reach * root
    return max(math.floor(total / unit), -1) * unit


def betting_threshold(steps: UnitSteps, scale: Fraction, alpha: Fraction, delta: Fraction) -> float:
    r"""The largest threshold at which bets against a risk of ``alpha`` turn 1 into ``1 / delta``.

    Unit after unit, whoever believes the risk is smaller stakes a part of the wealth on it:

    .. math:: K_t = K_{t-1} (1 + \nu_t (\alpha - L_t)), \qquad
        \nu_t = \min\Big( \sqrt{\frac{2 \log(1 / \delta K_{t-1})}{(n - t + 1)\, s_t^2}},\;
            \frac{0.99}{1 - \alpha} \Big).

    At a risk of ``alpha`` or more this wealth does not grow on average, and reaches ``1 / delta`` with
    probability ``delta`` at most (Ville), whatever the bets, as long as each is laid before the loss is seen.
    These bets ask how much is missing and how many units are left, and so end close to what the normal
    approximation would allow, which has no guarantee.

    The spread ``s_t`` is that of the earlier units' losses at the threshold where their own mean is
    ``alpha``: the same for every threshold that is tested. A share ``p = delta K`` of the goal becomes
    ``p + I(p) (alpha - L)``, where ``I(p) / p`` falls and ``I(p) / (1 - p)`` rises. So, until the goal is
    reached, it rises with ``p`` and falls with ``L``; the outcome is monotone in the threshold and in
    ``delta``, and bisection finds what a scan from the safest threshold would.

    Parameters
    ----------
    steps : UnitSteps
        Where the loss of which unit steps up. The guarantee needs units that are independent draws.
    scale : Fraction
        The loss, relative to ``B``, of one ``by``.
    alpha, delta : Fraction
        The risk, relative to ``B``, and the probability with which it may be exceeded.

    Returns
    -------
    float
        Minus infinity if not even zero losses would do, infinity if all steps may be paid.

    Notes
    -----
    Units bet in the order of their numbers. An order that knows the losses, such as that of a sorted file,
    would void the bound, and so would any shuffle that is a function of the rows. So the units must have been
    shuffled by random numbers that do not depend on the rows; :meth:`UnitSteps.shuffled` does it.

    Examples
    --------
    Of 100 units, 40 lose a quarter of ``B``, one after the other.

    >>> from ordinalrisk.curves.unit_steps import UnitSteps
    >>> steps = UnitSteps(np.arange(1.0, 41), np.arange(40), np.ones(40, np.int64), 100)
    >>> betting_threshold(steps.shuffled(0), Fraction(1, 4), alpha=Fraction(1, 10), delta=Fraction(1, 10))
    32.0
    """
    alpha, delta, n = _checked_alpha(alpha), checked_delta(delta), steps.n_units
    if n > MOST_BETS:
        raise ValueError(
            f"Betting takes at most {MOST_BETS} rows or clusters; got {n}. Take the bound "
            '"hoeffding_bentkus", which is nearly as tight for so many.'
        )
    losses = _relative(steps.by, scale)
    order = np.lexsort((steps.unit, losses, steps.at))
    at, losses, place = steps.at[order], losses[order], steps.unit[order]
    _require_bounded(place, losses)
    spread = _spread_before(at, place, losses, n, _as_float(alpha))
    n_paid = np.concatenate([[0], last_of_each_level(at) + 1])  # at each candidate

    def wins(candidate: int) -> bool:
        if candidate >= len(n_paid):
            return False
        paid = slice(0, n_paid[candidate])
        return _wins(_totals(place[paid], losses[paid], n), spread, alpha, delta)

    last = _last_that(wins)
    if last < 0:
        return -math.inf
    return float(at[n_paid[last]]) if last < len(n_paid) - 1 else math.inf


def _checked_alpha(alpha: Fraction) -> Fraction:
    if not SMALLEST_SHARE <= alpha <= 1 - SMALLEST_SHARE:
        raise ValueError(
            "alpha must lie strictly between 0 and 1 as a share of the largest loss; "
            f"got {decimal_text(alpha)}. Divide it by B. {FROM_BOTH_ENDS}"
        )
    return alpha


def _shaved(delta: Fraction, n: int) -> float:
    """``delta`` less what rounding may have taken from a p-value, so that every error is on the safe side."""
    return float(delta) / (1 + rounding(n))


def _last_that(holds: Callable[[int], bool]) -> int:
    """The last of 0, 1, 2, ... before a condition fails that then fails ever after; -1 if it never holds."""
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
    """The fewest bets that win if no unit has a loss: nearly all of them are the largest."""
    share = _as_float(alpha)
    growth = math.log1p(_largest_bet(share) * share)
    n = _last_that(lambda n: n < MOST_ROWS and n * growth < -math.log(_shaved(delta, n))) + 1

    def win(n: int) -> bool:
        return _wins(np.zeros(n), np.array([_largest_spread(share)]), alpha, delta)

    if n <= _FEW_BETS:  # the bets themselves know how they are rounded
        while not win(n):
            n += 1
        while win(n - 1):
            n -= 1
    return n


def _as_float(alpha: Fraction) -> float:
    return min(float(alpha), 1 - 2.0**-53)  # 1 itself would be an infinite bet


def _dkw_reach(delta: Fraction, two_valued: bool) -> Fraction:
    """The ``t`` of :func:`dkw_budget`, rounded up."""
    small = _shaved(min(delta, Fraction(1, 2)), 1)
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


def _relative(by: NDArray[Any], scale: Fraction) -> Floats:
    sizes, which = np.unique(by, return_inverse=True)
    return np.array([float(size * scale) for size in sizes.tolist()], np.float64)[which]


def _totals(place: NDArray[np.int64], losses: Floats, n: int) -> Floats:
    """The loss of each unit, from those of its steps."""
    return np.bincount(place, losses, n).astype(np.float64, copy=False)  # numpy counts nothing in integers


def _totals_above_zero(place: NDArray[np.int64], losses: Floats) -> Floats:
    """The same of the units that have steps, however many others there are."""
    units, number = np.unique(place, return_inverse=True)
    return _totals(number, losses, len(units))


def _require_bounded(place: NDArray[np.int64], losses: Floats) -> None:
    largest = float(_totals_above_zero(place, losses).max(initial=0.0))
    if largest > 1 + ROUNDING:
        raise ValueError(
            f"A unit's loss reaches {largest:.6g} times the largest loss, B; betting needs losses up to B. "
            "Give the scale relative to B, and weights that don't raise a unit's loss above it."
        )


def _largest_bet(alpha: float) -> float:
    return BOLDEST / (1 - alpha)


def _largest_spread(alpha: float) -> float:
    """No larger one, so that zero losses win whenever they would win the largest bets."""
    bet = _largest_bet(alpha)
    return min(math.sqrt(alpha * (1 - alpha)), math.sqrt(2 * math.log1p(bet * alpha)) / bet)


def _spread_before(at: Floats, place: NDArray[np.int64], losses: Floats, n: int, alpha: float) -> Floats:
    """For each block, the spread around ``alpha`` of the losses of units in earlier blocks.

    They are taken at the largest threshold at which the mean of those units is at most ``alpha``, as if
    ``1 / alpha`` more had been seen, as spread out as losses can be.
    """
    spread = np.empty(BLOCKS)
    for block in range(BLOCKS):
        start = block * n // BLOCKS
        earlier = np.flatnonzero(place < start)
        above = np.searchsorted(np.cumsum(losses[earlier]), alpha * start, side="right")
        if above < len(earlier):  # the steps at one level are paid together
            above = np.searchsorted(at[earlier], at[earlier[above]], side="left")
        paid = earlier[:above]
        around = _totals_above_zero(place[paid], losses[paid]) - alpha
        squares = [*(around**2).tolist(), *_product(start - len(around), alpha * alpha)]
        variance = alpha * (1 - alpha + math.fsum(squares)) / (1 + alpha * start)
        spread[block] = min(math.sqrt(variance), _largest_spread(alpha))
    return spread


def _product(count: int, value: float) -> tuple[float, float]:
    """Two floats that add up to the product exactly."""
    exact = count * Fraction(value)
    near = float(exact)
    return near, float(exact - Fraction(near))


def _wins(losses: Floats, spread: Floats, alpha: Fraction, delta: Fraction) -> bool:
    share = _shaved(delta, len(losses))
    risk = _as_float(alpha)
    return bool(_compiled()(losses, spread, risk, share, _largest_bet(risk)))


def _bets_reach_goal(losses: Floats, spread: Floats, alpha: float, share: float, largest_bet: float) -> bool:
    """Whether the wealth, as a share of the goal, ever reaches 1."""
    n, n_blocks = len(losses), len(spread)
    at_best = math.log1p(largest_bet * alpha) * (1 + 1e-9)
    for block in range(n_blocks):
        for t in range(block * n // n_blocks, (block + 1) * n // n_blocks):
            left = n - t
            missing = -math.log(share)
            if missing > left * at_best:
                return False
            bet = min(math.sqrt(2 * missing / left) / spread[block], largest_bet)
            share *= 1 + bet * (alpha - losses[t])
            if share >= 1:
                return True
    return False


@cache
def _compiled() -> Any:
    from numba import types

    from ordinalrisk.growth.kernels.compiling import compiled

    number, numbers = types.float64, types.float64[::1]
    return compiled(_bets_reach_goal, (numbers, numbers, number, number, number))
