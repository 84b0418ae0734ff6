r"""Means and shares of counted values, with the ends of their confidence intervals.

The interval of a share is exact binomial (Clopper-Pearson). The interval of any other mean comes from bets
against each candidate mean ``m`` (Waudby-Smith and Ramdas). For values in ``[0, 1]`` and fixed stakes
:math:`\kappa_j` with weights :math:`p_j` that add up to 1, the wealth

.. math:: M(m) = \sum_j p_j \prod_i \left(1 + \kappa_j \left(\frac{x_i}{m} - 1\right)\right)

has expectation 1 at the true mean, so it reaches :math:`2 / \delta` there with probability at most
:math:`\delta / 2` (Markov). It falls in ``m``, and the lower end is where it is :math:`2 / \delta`. The upper
end is the same for :math:`1 - x_i` and :math:`1 - m`. The order of the rows does not matter, so both ends
follow from how often each value occurs.

References
----------
Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
Value = Any  # a float, or an array with one entry for each class
Floats = NDArray[np.float64]

_BOLDEST = (0.99, 0.75)  # stakes before 1/2, 1/4, ..., 1/n; a stake of 1 loses all at the first 0
_ROUNDING = 1e-12  # the logarithm of each row's factor is off by less
_CLOSE = 1e-9  # relative distance at which the search for an end stops
_SMALLEST = 1e-200  # below this share of the range the lower end is 0
_MOST_VALUES = 1024  # bets are computed for at most this many distinct values


class Estimate(NamedTuple):
    """A metric's value with the ends of its confidence interval.

    The interval contains the true value with at least the stated probability, for any number of rows, if the
    rows (or clusters) are independent draws from one population and the sets were made without them: not on
    the rows of the calibration. This holds for one interval at a time, not for several together. The mean
    sizes of :func:`~ordinalrisk.compare`, and the risk of test rows with weights of their own in reports and
    ``evaluate``, are the exceptions: their intervals are approximate.

    Attributes
    ----------
    value : float or array
        The metric itself.
    low, high : float or array
        The ends of the interval: exact binomial (Clopper-Pearson) for shares and for losses with one cost,
        from bets (Waudby-Smith and Ramdas) for other means. Bets need the range of the values, such as from 0
        to the largest cost. With weights of rows they assume that no weight is larger than the largest one
        seen.

    Examples
    --------
    >>> estimate = Estimate(0.12, 0.09, 0.15)
    >>> print(estimate)
    0.12 (0.09 to 0.15)
    >>> value, low, high = estimate
    """

    value: Value
    low: Value
    high: Value

    def __str__(self) -> str:
        if np.ndim(self.value):
            return repr(self)
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


def share(hits: float, n: float, confidence: float | None) -> Value:
    """``hits / n``; NaN without rows. Both may be fractions, if rows depend on each other.

    Examples
    --------
    >>> print(share(2, 3, 0.95))
    0.6667 (0.0943 to 0.9916)
    """
    value = hits / n if n else np.nan
    if confidence is None:
        return value
    tail = _tail(confidence)
    if not n:
        return Estimate(value, np.nan, np.nan)
    from scipy.stats import beta

    low = float(beta.ppf(tail, hits, n - hits + 1)) if hits > 0 else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0
    return Estimate(value, low, high)


def shares(counts: NDArray[np.int64], confidence: float | None) -> Value:
    """The share of each of the counts in their sum."""
    n = int(counts.sum())
    return stacked([share(count, n, confidence) for count in counts.tolist()])


def mean_of_possible(values: Floats, counts: NDArray[np.int64], confidence: float | None) -> Value:
    """The mean, if only these ascending values can occur; NaN without rows.

    Of two values, the mean follows from the share of the larger one.

    Examples
    --------
    >>> print(mean_of_possible(np.array([0.0, 3.0]), np.array([1, 2]), 0.95))
    2 (0.2829 to 2.975)
    """
    low, high = float(values[0]), float(values[-1])
    if confidence is None or len(values) != 2:
        return mean(values, counts, confidence, low, high)
    larger = share(int(counts[1]), int(counts.sum()), confidence)
    return Estimate(*(low + (high - low) * part for part in larger))


def mean(
    values: Floats, counts: NDArray[np.int64], confidence: float | None, low: float, high: float
) -> Value:
    """The mean of distinct ascending values in ``[low, high]``, which ``counts`` rows have; NaN without rows.

    Examples
    --------
    >>> print(mean(np.array([0.0, 0.5, 1.0]), np.array([80, 15, 5]), 0.95, 0, 1))
    0.125 (0.05081 to 0.2326)
    """
    n = int(counts.sum())
    value = float(values @ counts) / n if n else np.nan
    if confidence is None:
        return value
    return Estimate(value, *interval(values, counts, confidence, low, high))


def share_of_stakes(
    losses: Floats, stakes: Floats, counts: NDArray[Any], confidence: float | None, largest: float
) -> Value:
    """The total loss as a share of the stakes, what rows can lose; each is at most ``largest``.

    Rows with other losses or stakes than these can't occur. It is the mean of the shares of single rows,
    weighted by their stakes; NaN if nothing can be lost.

    Examples
    --------
    >>> losses, stakes, counts = np.array([0.0, 1.0, 5.0]), np.array([1.0, 1.0, 5.0]), np.array([90, 6, 4])
    >>> print(share_of_stakes(losses, stakes, counts, 0.95, 5.0))
    0.2241 (0.05797 to 0.4791)
    """
    losses, stakes, counts = np.ravel(losses), np.ravel(stakes), np.ravel(counts)
    total = float(stakes @ counts)
    value = float(losses @ counts) / total if total else np.nan
    if confidence is None:
        return value
    counted = stakes * counts > 0
    shares_lost, weights = losses[counted] / stakes[counted], stakes[counted] / largest
    if counted.any() and (stakes == largest).all():  # exact if every miss costs the same
        possible, which = np.unique(np.append(shares_lost, [0.0, 1.0]), return_inverse=True)
        times = np.bincount(which, np.append(counts[counted], [0, 0])).astype(np.int64)
        return mean_of_possible(possible, times, confidence)
    return Estimate(value, *interval(shares_lost, counts[counted], confidence, 0.0, 1.0, weights))


def interval(
    values: Floats, counts: NDArray[Any], confidence: float, low: float, high: float, weights: Any = 1.0
) -> tuple[float, float]:
    r"""The ends of the confidence interval of a mean of independent rows, by bets; NaN without rows.

    Values lie in ``[low, high]``, and ascend if they have no weights. Weights are shares of the largest
    weight that can occur; the mean is then the ratio ``r`` for which :math:`E[w (x - r)] = 0`, and the stake
    of a row is :math:`\kappa w`.

    Examples
    --------
    >>> losses, counts = np.array([0.0, 1.0, 0.0, 1.0]), np.array([80, 10, 8, 2])
    >>> [round(end, 4) for end in interval(losses, counts, 0.95, 0, 1, np.array([0.5, 0.5, 1, 1]))]
    [0.0377, 0.2744]
    """
    tail = _tail(confidence)
    occurs = np.asarray(counts * weights, np.float64) > 0
    if not occurs.any():
        return math.nan, math.nan
    if low == high:
        return float(low), float(high)
    x = np.clip((values[occurs] - low) / (high - low), 0, 1)
    times = np.asarray(counts, np.float64)[occurs]
    if np.ndim(weights):
        each: Floats = weights[occurs]
    else:
        x, times = _few_values(x, times)
        each = np.ones(len(x))
    above, below = _lower_end(x, times, each, tail), _lower_end(1 - x, times, each, tail)
    return low + (high - low) * above, high - (high - low) * below


def _few_values(values: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Return fewer values with the same mean and a slightly wider interval.

    Each value becomes a mixture of the two nearest ones that are kept. The logarithm of a factor is concave
    in the value, so this can only lower the wealth of every bet.
    """
    if len(values) <= _MOST_VALUES:
        return values, counts
    kept = np.unique(values[np.linspace(0, len(values) - 1, _MOST_VALUES).astype(np.int64)])
    above = np.clip(np.searchsorted(kept, values, side="right"), 1, len(kept) - 1)
    upper = counts * (values - kept[above - 1]) / (kept[above] - kept[above - 1])
    times: Any = np.bincount(above - 1, counts - upper, len(kept)) + np.bincount(above, upper, len(kept))
    return kept, times


def _lower_end(values: Floats, counts: Floats, weights: Floats, tail: float) -> float:
    """The lower end of the mean of values in [0, 1].

    The logarithm of the wealth is convex in that of the candidate, so each step of Newton's method ends at or
    below the lower end, from wherever it starts. Rounding errors are added to the goal, so that they never
    move the end inward.
    """
    candidate = float((values * weights) @ counts / (weights @ counts))
    if candidate < _SMALLEST:
        return 0.0
    n = round(float(counts.sum()))
    goal = _ROUNDING * n - math.log(tail)
    kappa, log_share = bets(n)
    kept, staked = 1 - kappa * weights, kappa * weights * values
    step = math.inf
    while abs(step) > _CLOSE:
        gained = staked / candidate
        factors = kept + gained
        log_wealth = log_share + np.log(factors) @ counts
        most = log_wealth.max()
        wealth = np.exp(log_wealth - most)
        slope = float(wealth @ ((gained / factors) @ counts) / wealth.sum())
        step = max((most + math.log(wealth.sum()) - goal) / slope, -100.0)
        candidate *= math.exp(step)
    return candidate


def bets(n: int) -> tuple[Floats, Floats]:
    """The stakes, boldest first, one in each row, and the logarithms of their shares.

    Bold stakes are the best ones for rare losses, and for means with a small error. The shares were chosen by
    the width of intervals for 50 to 100,000 rows.
    """
    halves = 0.5 ** np.arange(1, max(n - 1, 1).bit_length() + 1)
    kappa = np.concatenate([_BOLDEST, halves])
    share = np.arange(1, len(kappa) + 1) ** -1.5
    return kappa[:, None], np.log(share / share.sum())


def stacked(estimates: Sequence[Value]) -> Value:
    """Stack several values, or estimates, into one of arrays."""
    if isinstance(estimates[0], Estimate):
        return Estimate(*(np.array(part) for part in zip(*estimates, strict=True)))
    return np.array(estimates)


def _tail(confidence: float) -> float:
    """The probability that the mean lies beyond one end."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1; got {confidence!r}.")
    return float(1 - confidence) / 2
