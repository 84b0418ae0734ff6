"""The betting test of a risk of ``alpha``: the size of each bet, and whether the wealth reaches its goal.

:func:`ordinalrisk.calibration.confidence_bounds.betting_threshold` has the formula and the guarantee.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.binomial_tails import ROUNDING, with_rounding_margin
from ordinalrisk.growth.kernels.library import functions

BOLDEST = 0.99  # share of the wealth that the largest loss may cost: betting everything could lose everything
BLOCKS = 16  # how often the spread of the losses is estimated; 8 and 64 change the risk by up to 0.3 %

Floats = NDArray[np.float64]


def as_float(alpha: Fraction) -> float:
    """Round ``alpha`` to a float below 1."""
    return min(float(alpha), 1 - 2.0**-53)  # 1 itself would be an infinite bet


def relative_losses(by: NDArray[Any], scale: Fraction) -> Floats:
    """Return each loss times ``scale``, rounded once."""
    sizes, which = np.unique(by, return_inverse=True)
    return np.array([float(size * scale) for size in sizes.tolist()], np.float64)[which]


def losses_of_full_sets(stakes: NDArray[Any], scale: Fraction, alpha: Fraction) -> Floats:
    """Return the loss of each unit with full sets, if ``alpha`` is a share of what units can lose."""
    sizes, which = np.unique(stakes, return_inverse=True)
    return np.array([float(alpha * (1 - size * scale)) for size in sizes.tolist()], np.float64)[which]


def total_losses(place: NDArray[np.int64], losses: Floats, n: int, first: Floats | None = None) -> Floats:
    totals = np.bincount(place, losses, n).astype(np.float64, copy=False)  # integers if there is no loss
    return totals if first is None else totals + first


def _losses_above_zero(place: NDArray[np.int64], losses: Floats) -> Floats:
    """Return the total loss of each unit that has a step."""
    units, number = np.unique(place, return_inverse=True)
    return total_losses(number, losses, len(units))


def require_bounded(place: NDArray[np.int64], losses: Floats) -> None:
    """Raise an error if a unit loses more than the largest loss."""
    largest = float(_losses_above_zero(place, losses).max(initial=0.0))
    if largest > 1 + ROUNDING:
        raise ValueError(
            f"A unit's loss reaches {largest:.6g} times the largest loss, B; betting needs losses up to B. "
            "Give the scale relative to B, and weights that don't raise a unit's loss above it."
        )


def largest_bet(alpha: float) -> float:
    """Return the bet with which the largest loss costs nearly all of the wealth."""
    return BOLDEST / (1 - alpha)


def largest_spread(alpha: float) -> float:
    """Return a cap on the spread, so that zero losses reach the goal whenever the largest bets would."""
    bet = largest_bet(alpha)
    return min(math.sqrt(alpha * (1 - alpha)), math.sqrt(2 * math.log1p(bet * alpha)) / bet)


def spread_before(
    at: Floats,
    place: NDArray[np.int64],
    losses: Floats,
    n: int,
    alpha: float,
    first: Floats | None = None,
) -> Floats:
    """For each block, return the spread around ``alpha`` of the losses of units in earlier blocks.

    It uses the losses at the largest threshold with a mean of at most ``alpha``, and adds ``1 / alpha`` units
    with the largest possible spread. ``first`` is the loss of full sets, by default 0.
    """
    spread = np.empty(BLOCKS)
    for block in range(BLOCKS):
        start = block * n // BLOCKS
        earlier = np.flatnonzero(place < start)
        lost = 0.0 if first is None else math.fsum(first[:start].tolist())
        above = np.searchsorted(np.cumsum(losses[earlier]), alpha * start - lost, side="right")
        if above < len(earlier):  # steps at one level count together
            above = np.searchsorted(at[earlier], at[earlier[above]], side="left")
        paid = earlier[:above]
        if first is None:
            around = _losses_above_zero(place[paid], losses[paid]) - alpha
            squares = [*(around**2).tolist(), *_exact_product(start - len(around), alpha * alpha)]
        else:
            around = total_losses(place[paid], losses[paid], start, first[:start]) - alpha
            squares = (around**2).tolist()
        variance = alpha * (1 - alpha + math.fsum(squares)) / (1 + alpha * start)
        spread[block] = min(math.sqrt(variance), largest_spread(alpha))
    return spread


def _exact_product(count: int, value: float) -> tuple[float, float]:
    """Return two floats that add up to the product exactly."""
    exact = count * Fraction(value)
    near = float(exact)
    return near, float(exact - Fraction(near))


def bets_reach_goal(losses: Floats, spread: Floats, alpha: Fraction, delta: Fraction) -> bool:
    """Return whether bets on these losses, one after the other, turn 1 into ``1 / delta``."""
    share = with_rounding_margin(delta, len(losses))
    risk = as_float(alpha)
    run = functions()
    if run is None:
        return _bets_reach_goal_in_python(losses, spread, risk, share, largest_bet(risk))
    losses, spread = np.ascontiguousarray(losses, np.float64), np.ascontiguousarray(spread, np.float64)
    arrays = losses.ctypes.data, len(losses), spread.ctypes.data, len(spread)
    return bool(run.bets_reach_goal(*arrays, risk, share, largest_bet(risk)))


def _bets_reach_goal_in_python(
    losses: Floats, spread: Floats, alpha: float, share: float, largest_bet: float
) -> bool:
    """Return whether the wealth, as a share of the goal, reaches 1; the same as ``native/bets.c``."""
    n, n_blocks = len(losses), len(spread)
    at_best = math.log1p(largest_bet * alpha) * (1 + 1e-9)
    for block in range(n_blocks):
        of_block = slice(block * n // n_blocks, (block + 1) * n // n_blocks)
        for t, loss in enumerate(losses[of_block].tolist(), of_block.start):
            left = n - t
            missing = -math.log(share)
            if missing > left * at_best:
                return False
            bet = min(math.sqrt(2 * missing / left) / float(spread[block]), largest_bet)
            share *= 1 + bet * (alpha - loss)
            if share >= 1:
                return True
    return False
