"""How good interval predictions are, on rows with known labels.

Each metric returns a plain number or array; with ``confidence=0.95`` an :class:`Estimate` that has the
interval too: exact binomial (Clopper-Pearson) for proportions, a percentile bootstrap over rows for means.
Of intervals of dask collections all are computed in one pass over the partitions, from counts that add up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.cost_table import CostTable
from ordinalrisk.device import to_host
from ordinalrisk.estimates import Estimate as Estimate
from ordinalrisk.estimates import Value
from ordinalrisk.intervals import IntervalSet
from ordinalrisk.labels import class_indices
from ordinalrisk.lazy import is_lazy_set
from ordinalrisk.losses import as_loss
from ordinalrisk.tally import Tally

Parameters = ParamSpec("Parameters")


def _on_host(metric: Callable[Parameters, Value]) -> Callable[Parameters, Value]:
    """The metric also of labels and intervals on a GPU, which are brought to the host for it."""

    @wraps(metric)
    def on_host(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
        return metric(*map(_from_device, args), **{key: _from_device(value) for key, value in kwargs.items()})

    return on_host


def _from_device(value: Any) -> Any:
    return value.cpu() if isinstance(value, IntervalSet) else to_host(value)


@_on_host
def losses(y: Any, sets: IntervalSet, loss: Any = "coverage") -> NDArray[np.float64]:
    """The loss of each row.

    Examples
    --------
    >>> losses([1, 1, 1], IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2]), "divergence")
    array([0.5, 0. , 0. ])
    """
    lazy: Any = sets
    if is_lazy_set(lazy):
        of_rows: NDArray[np.float64] = lazy.losses(y, CostTable.of(as_loss(loss), len(sets.classes)).values)
        return of_rows
    label = _label_indices(y, sets)
    nearest = np.clip(label, sets.lower_index, sets.upper_index)
    return CostTable.of(as_loss(loss), len(sets.classes)).values[label, nearest]


@_on_host
def risk(y: Any, sets: IntervalSet, loss: Any = "coverage", *, confidence: float | None = None) -> Value:
    """The mean loss.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> risk([1, 1, 1], sets, "divergence")
    0.16666666666666666
    """
    return _tally(y, sets).risk(as_loss(loss), confidence)


@_on_host
def coverage(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """The share of rows whose interval holds the label.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> print(coverage([1, 1, 1], sets, confidence=0.95))
    0.6667 (0.0943 to 0.9916)
    """
    return _tally(y, sets).coverage(confidence)


@_on_host
def class_coverage(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """Coverage of the rows of each true class; NaN for a class without rows.

    Examples
    --------
    >>> class_coverage([0, 1, 1], IntervalSet([0, 1, 2], [0, 2, 2], classes=[0, 1, 2]))
    array([1. , 0.5, nan])
    """
    return _tally(y, sets).class_coverage(confidence)


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
    return _tally(y, sets).class_risk(as_loss(loss), confidence)


@_on_host
def class_size(y: Any, sets: IntervalSet) -> NDArray[np.float64]:
    """The mean number of labels in the intervals of each true class; NaN for a class without rows.

    Examples
    --------
    >>> class_size([0, 1, 1], IntervalSet([0, 1, 2], [0, 2, 2], classes=[0, 1, 2]))
    array([1. , 1.5, nan])
    """
    return _tally(y, sets).class_size()


@_on_host
def mean_size(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """The mean number of labels in an interval.

    Examples
    --------
    >>> mean_size(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    1.5
    """
    return _tally(None, sets).mean_size(confidence)


@_on_host
def size_histogram(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """The share of intervals of size ``1 .. K``.

    Examples
    --------
    >>> size_histogram(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    array([0.5, 0.5, 0. ])
    """
    return _tally(None, sets).size_histogram(confidence)


@_on_host
def centroid_histogram(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """The share of intervals centred at ``0, 0.5, 1, .., K-1``.

    Examples
    --------
    >>> centroid_histogram(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    array([0.5, 0. , 0. , 0.5, 0. ])
    """
    return _tally(None, sets).centroid_histogram(confidence)


@_on_host
def distance_when_missed(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    """The mean number of labels between the truth and the interval where it is missed; NaN if it never is.

    Examples
    --------
    >>> distance_when_missed([2, 1, 1], IntervalSet([0, 1, 2], [0, 2, 2], classes=[0, 1, 2]))
    1.5
    """
    return _tally(y, sets).distance_when_missed(confidence)


def _tally(y: Any, sets: Any) -> Tally:
    if is_lazy_set(sets):
        tally: Tally = sets.tally(y)
        return tally
    return Tally.of(sets.lower_index if y is None else _label_indices(y, sets), sets)


def _label_indices(y: Any, sets: IntervalSet) -> NDArray[np.int64]:
    if not isinstance(sets, IntervalSet):
        raise ValueError(
            f"Metrics take the labels first and then an IntervalSet; got a {type(sets).__name__}."
        )
    return class_indices(y, sets.classes, len(sets))
