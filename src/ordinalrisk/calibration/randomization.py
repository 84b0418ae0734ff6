"""A coin for labels whose level ties with the threshold, so that ties cost no more labels than they must."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import expectation_threshold, loss_budget
from ordinalrisk.curves.risk_curve import RiskCurve


def randomized(
    thresholds: NDArray[np.float64],
    strata: NDArray[np.int64],
    curves: Sequence[RiskCurve],
    alphas: Sequence[Fraction],
    seed: Any,
) -> NDArray[np.float64]:
    """The threshold of each row, moved just above its ties for as many rows as the budget has room for.

    Parameters
    ----------
    thresholds : array of shape (n, 1 or K)
        The threshold of each row, before the coin.
    strata : array of int of shape (n,)
        The stratum of each row; -1 where it is not known.
    curves, alphas : sequences
        The risk curve of each stratum, and the risk that it may have.
    seed : int or numpy Generator
        Equal seeds give equal coins.
    """
    shares = [
        float(math.floor(share_beyond(curve, alpha) * 2**53)) / 2**53
        for curve, alpha in zip(curves, alphas, strict=True)
    ]
    coins = _generator(seed).random(len(strata))
    beyond = coins < np.array([*shares, 0.0])[strata]
    return np.where(beyond[:, None], np.nextafter(thresholds, math.inf), thresholds)


def share_beyond(curve: RiskCurve, alpha: Fraction) -> Fraction:
    """The share of new rows that may leave out the labels at the threshold itself, so that no budget is left.

    With it the expected loss lies within ``B / (n + 1)`` of ``alpha`` however many rows tie, if the single
    labels of ``n + 1`` rows always lose more than ``(n + 1) alpha - B``: a loss that is averaged over the
    coin is continuous in the threshold.
    """
    threshold = expectation_threshold(curve, alpha)
    if not math.isfinite(threshold):
        return Fraction(0)  # full sets, or single labels: there is nothing to spend or nothing to spend it on
    spent = curve.total_loss(threshold)
    left = loss_budget(alpha, curve.bound, curve.weight) - spent
    return left / (curve.total_loss(math.nextafter(threshold, math.inf)) - spent)


def _generator(seed: Any) -> np.random.Generator:
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0
    if not whole and not isinstance(seed, np.random.Generator):
        raise ValueError(f"seed must be a whole number, 0 or larger, or a numpy Generator; got {seed!r}.")
    return np.random.default_rng(seed)
