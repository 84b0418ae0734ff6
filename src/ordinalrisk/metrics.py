"""How good interval predictions are, on rows with known labels.

Each metric returns a plain number or array; with ``confidence=0.95`` an :class:`Estimate` that has the
interval too: exact binomial (Clopper-Pearson) for proportions, a percentile bootstrap over rows for means.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Real
from typing import Any, NamedTuple, ParamSpec

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.cost_table import CostTable
from ordinalrisk.device import to_host
from ordinalrisk.intervals import IntervalSet
from ordinalrisk.labels import class_indices
from ordinalrisk.losses import as_loss

_RESAMPLES = 2_000
Value = Any  # a float, or an array with one entry for each class
Parameters = ParamSpec("Parameters")


def _on_host(metric: Callable[Parameters, Value]) -> Callable[Parameters, Value]:
    """The metric also of labels and intervals on a GPU, which are brought to the host for it."""

    @wraps(metric)
    def on_host(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
        return metric(*map(_from_device, args), **{key: _from_device(value) for key, value in kwargs.items()})

    return on_host


def _from_device(value: Any) -> Any:
    return value.cpu() if isinstance(value, IntervalSet) else to_host(value)


class Estimate(NamedTuple):
    """A metric's value with the ends of its confidence interval."""

    value: Value
    low: Value
    high: Value

    def __str__(self) -> str:
        if np.ndim(self.value):
            return repr(self)
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@_on_host
def losses(y: Any, sets: IntervalSet, loss: Any = "coverage") -> NDArray[np.float64]:
    """The loss of each row.

    Examples
    --------
    >>> losses([1, 1, 1], IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2]), "divergence")
    array([0.5, 0. , 0. ])
    """
    label = _label_indices(y, sets)
    nearest = np.clip(label, sets.lower_index, sets.upper_index)
    return _cost_table(sets, loss)[label, nearest]


@_on_host
def risk(y: Any, sets: IntervalSet, loss: Any = "coverage", *, confidence: float | None = None) -> Value:
    """The mean loss.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> risk([1, 1, 1], sets, "divergence")
    0.16666666666666666
    """
    return _mean_loss(losses(y, sets, loss), _cost_table(sets, loss), confidence)


@_on_host
def coverage(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """The share of rows whose interval holds the label.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> print(coverage([1, 1, 1], sets, confidence=0.95))
    0.6667 (0.0943 to 0.9916)
    """
    return _proportion(losses(y, sets) == 0, confidence)


@_on_host
def class_coverage(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """Coverage of the rows of each true class; NaN for a class without rows.

    Examples
    --------
    >>> class_coverage([0, 1, 1], IntervalSet([0, 1, 2], [0, 2, 2], classes=[0, 1, 2]))
    array([1. , 0.5, nan])
    """
    label, covered = _label_indices(y, sets), losses(y, sets) == 0
    return _stacked([_proportion(covered[label == k], confidence) for k in range(len(sets.classes))])


@_on_host
def class_risk(
    y: Any, sets: IntervalSet, loss: Any = "coverage", *, confidence: float | None = None
) -> Value:
    """The mean loss of the rows of each true class; NaN for a class without rows.

    Examples
    --------
    >>> class_risk([0, 1, 1], IntervalSet([0, 1, 2], [0, 2, 2], classes=[0, 1, 2]), "divergence")
    array([0.  , 0.25,  nan])
    """
    label, cost, table = _label_indices(y, sets), losses(y, sets, loss), _cost_table(sets, loss)
    return _stacked([_mean_loss(cost[label == k], table[k], confidence) for k in range(len(table))])


@_on_host
def mean_size(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """The mean number of labels in an interval.

    Examples
    --------
    >>> mean_size(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    1.5
    """
    return _mean(sets.size, confidence)


@_on_host
def size_histogram(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """The share of intervals of size ``1 .. K``.

    Examples
    --------
    >>> size_histogram(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    array([0.5, 0.5, 0. ])
    """
    size = np.arange(1, len(sets.classes) + 1)
    return _histogram(sets.size, size, confidence)


@_on_host
def centroid_histogram(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """The share of intervals centred at ``0, 0.5, 1, .., K-1``.

    Examples
    --------
    >>> centroid_histogram(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    array([0.5, 0. , 0. , 0.5, 0. ])
    """
    return _histogram(sets.centroid, np.arange(2 * len(sets.classes) - 1) / 2, confidence)


@_on_host
def distance_when_missed(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """The mean number of labels between the truth and the interval where it is missed; NaN if it never is.

    Examples
    --------
    >>> distance_when_missed([2, 1, 1], IntervalSet([0, 1, 2], [0, 2, 2], classes=[0, 1, 2]))
    1.5
    """
    label = _label_indices(y, sets)
    distance = np.abs(label - np.clip(label, sets.lower_index, sets.upper_index))
    return _mean(distance[distance > 0], confidence)


def _label_indices(y: Any, sets: IntervalSet) -> NDArray[np.int64]:
    if not isinstance(sets, IntervalSet):
        raise ValueError(
            f"Metrics take the labels first and then an IntervalSet; got a {type(sets).__name__}."
        )
    return class_indices(y, sets.classes, len(sets))


def _cost_table(sets: IntervalSet, loss: Any) -> NDArray[np.float64]:
    return CostTable.of(as_loss(loss), len(sets.classes)).values


def _mean_loss(values: NDArray[np.float64], costs: NDArray[np.float64], confidence: float | None) -> Value:
    """The mean; where a miss can have one cost only, its interval is that of the share of such misses."""
    positive = np.unique(costs[costs > 0])
    if confidence is None or len(positive) != 1:
        return _mean(values, confidence)
    return Estimate(*(float(positive[0]) * part for part in _proportion(values > 0, confidence)))


def _mean(values: NDArray[Any], confidence: float | None) -> Value:
    """The mean; its interval by resampling rows, through the counts of the few distinct values."""
    value = float(values.mean()) if len(values) else np.nan
    if confidence is None:
        return value
    tails = _tails(confidence)
    if not len(values):
        return Estimate(value, np.nan, np.nan)
    distinct, counts = np.unique(values, return_counts=True)
    draws = np.random.default_rng(0).multinomial(len(values), counts / len(values), size=_RESAMPLES)
    low, high = np.quantile(draws @ distinct / len(values), tails)
    return Estimate(value, float(low), float(high))


def _proportion(hits: NDArray[np.bool_], confidence: float | None) -> Value:
    n, k = len(hits), int(np.count_nonzero(hits))
    value = k / n if n else np.nan
    if confidence is None:
        return value
    low_tail, high_tail = _tails(confidence)
    if not n:
        return Estimate(value, np.nan, np.nan)
    from scipy.stats import beta

    low = float(beta.ppf(low_tail, k, n - k + 1)) if k > 0 else 0.0
    high = float(beta.ppf(high_tail, k + 1, n - k)) if k < n else 1.0
    return Estimate(value, low, high)


def _histogram(values: NDArray[Any], bins: NDArray[Any], confidence: float | None) -> Value:
    return _stacked([_proportion(values == bin_value, confidence) for bin_value in bins])


def _stacked(estimates: list[Value]) -> Value:
    if isinstance(estimates[0], Estimate):
        return Estimate(*(np.array(part) for part in zip(*estimates, strict=True)))
    return np.array(estimates)


def _tails(confidence: float) -> tuple[float, float]:
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1; got {confidence!r}.")
    return (1 - confidence) / 2, (1 + confidence) / 2
