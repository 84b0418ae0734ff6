"""Randomize labels with a level equal to the threshold, so that ties do not enlarge sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import budget_of, expectation_threshold
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.inputs.numbers import is_whole


def randomized(
    thresholds: NDArray[np.float64],
    strata: NDArray[np.int64],
    curves: Sequence[RiskCurve],
    alphas: Sequence[Fraction],
    coins: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the threshold of each row; just above the tied level for as many rows as the budget allows.

    The stratum of a row is -1 if it is unknown; coins are random numbers from 0 to 1.
    """
    shares = [
        float(math.floor(share_beyond(curve, alpha) * 2**53)) / 2**53
        for curve, alpha in zip(curves, alphas, strict=True)
    ]
    beyond = coins < np.array([*shares, 0.0])[strata]
    return np.where(beyond[:, None], np.nextafter(thresholds, math.inf), thresholds)


def share_beyond(curve: RiskCurve, alpha: Fraction) -> Fraction:
    """Return the share of new rows that may leave out the labels at the threshold, to use the whole budget.

    With it the expected loss lies within ``B / (n + 1)`` of ``alpha`` however many rows tie, if the single
    labels of ``n + 1`` rows always lose more than ``(n + 1) alpha - B``: a loss that is averaged over the
    coin is continuous in the threshold.
    """
    threshold = expectation_threshold(curve, alpha)
    if not math.isfinite(threshold):
        return Fraction(0)  # full sets or single labels: a coin changes nothing
    spent = curve.total_loss(threshold)
    left = budget_of(curve, alpha) - spent
    return left / (curve.total_loss(math.nextafter(threshold, math.inf)) - spent)


def coins(random_state: Any, n_rows: int) -> NDArray[np.float64]:
    """Draw a number from 0 to 1 for each row; equal seeds give equal numbers."""
    whole = is_whole(random_state) and random_state >= 0
    if not whole and not isinstance(random_state, np.random.Generator):
        raise ValueError(
            f"random_state must be a whole number, 0 or larger, or a numpy Generator; got {random_state!r}."
        )
    return np.random.default_rng(random_state).random(n_rows)
