"""Means and shares of counted values, with the ends of their confidence intervals.

The interval of a share is exact binomial (Clopper-Pearson), that of any other mean a percentile bootstrap
over rows. Both need no more than how often each value occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
_RESAMPLES = 2_000
Value = Any  # a float, or an array with one entry for each class


class Estimate(NamedTuple):
    """A metric's value with the ends of its confidence interval.

    Attributes
    ----------
    value : float or array
        The metric itself.
    low, high : float or array
        The ends of the interval: exact binomial (Clopper-Pearson) for shares, a percentile bootstrap over
        rows for other means.

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


def share(hits: int, n: int, confidence: float | None) -> Value:
    """``hits / n``; NaN of nothing.

    Examples
    --------
    >>> print(share(2, 3, 0.95))
    0.6667 (0.0943 to 0.9916)
    """
    value = hits / n if n else np.nan
    if confidence is None:
        return value
    low_tail, high_tail = _tails(confidence)
    if not n:
        return Estimate(value, np.nan, np.nan)
    from scipy.stats import beta

    low = float(beta.ppf(low_tail, hits, n - hits + 1)) if hits > 0 else 0.0
    high = float(beta.ppf(high_tail, hits + 1, n - hits)) if hits < n else 1.0
    return Estimate(value, low, high)


def shares(counts: NDArray[np.int64], confidence: float | None) -> Value:
    """The share of each of the counts in their sum."""
    n = int(counts.sum())
    return stacked([share(count, n, confidence) for count in counts.tolist()])


def mean(values: NDArray[np.float64], counts: NDArray[np.int64], confidence: float | None) -> Value:
    """The mean of distinct ascending values that occur so often; NaN of nothing."""
    n = int(counts.sum())
    value = float(values @ counts) / n if n else np.nan
    if confidence is None:
        return value
    tails = _tails(confidence)
    if not n:
        return Estimate(value, np.nan, np.nan)
    occur = counts > 0
    draws = np.random.default_rng(0).multinomial(n, counts[occur] / n, size=_RESAMPLES)
    low, high = np.quantile(draws @ values[occur] / n, tails)
    return Estimate(value, float(low), float(high))


def stacked(estimates: Sequence[Value]) -> Value:
    """One value, or estimate, whose parts are arrays."""
    if isinstance(estimates[0], Estimate):
        return Estimate(*(np.array(part) for part in zip(*estimates, strict=True)))
    return np.array(estimates)


def _tails(confidence: float) -> tuple[float, float]:
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1; got {confidence!r}.")
    return (1 - confidence) / 2, (1 + confidence) / 2
