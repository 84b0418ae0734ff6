"""How good interval predictions are, on rows with known labels.

Each metric returns a plain number or array; with ``confidence=0.95`` an :class:`Estimate` that has the
interval too: exact binomial (Clopper-Pearson) for proportions and for losses with one cost, from bets
(Waudby-Smith and Ramdas) for other means. The interval contains the true value with at least this probability
if the rows are independent draws from one population and the sets were made without them: measure on rows
that were not calibrated on. This holds for each interval by itself, not for all entries of an array together.
Of intervals of dask collections all are computed in one pass over the partitions, from counts that add up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import Estimate, Value
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import class_indices
from ordinalrisk.inputs.lazy import is_lazy_set
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import as_loss
from ordinalrisk.prediction.interval_set import IntervalSet

__all__ = [
    "Estimate",
    "centroid_histogram",
    "class_coverage",
    "class_risk",
    "class_size",
    "coverage",
    "distance_when_missed",
    "losses",
    "mean_size",
    "risk",
    "size_histogram",
]

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
    r"""The loss of each row (paper, Eq. 1).

    .. math:: L_i = G[y_i, k_i], \qquad k_i = \min(\max(y_i, l_i), u_i)

    where :math:`k_i` is the label of the interval nearest to the truth.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The intervals, also on a GPU or of dask collections.
    loss : IntervalLoss, str or table
        What a miss costs, as for :class:`~ordinalrisk.RiskController`.

    Returns
    -------
    array of shape (n,)
        The losses, in units of the loss.

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
    r"""The mean loss: what ``alpha`` bounds in expectation (paper, Eq. 2). By default the share of misses.

    .. math:: \frac{1}{n} \sum_{i=1}^n L_i

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The intervals, also on a GPU or of dask collections.
    loss : IntervalLoss, str or table
        What a miss costs, as for :class:`~ordinalrisk.RiskController`.
    confidence : float, optional
        Give an :class:`Estimate` with the interval of this confidence too, such as 0.95.

    Returns
    -------
    float, or Estimate
        In units of the loss.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> risk([1, 1, 1], sets, "divergence")
    0.16666666666666666
    """
    return _tally(y, sets).risk(as_loss(loss), confidence)


@_on_host
def coverage(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""The share of rows whose interval holds the label.

    .. math:: \frac{1}{n} \#\{i : l_i \le y_i \le u_i\}

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The intervals, also on a GPU or of dask collections.
    confidence : float, optional
        Give an :class:`Estimate` with the interval of this confidence too, such as 0.95.

    Returns
    -------
    float, or Estimate
        From 0 to 1.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> print(coverage([1, 1, 1], sets, confidence=0.95))
    0.6667 (0.0943 to 0.9916)
    """
    return _tally(y, sets).coverage(confidence)


@_on_host
def class_coverage(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""Coverage of the rows of each true class; NaN for a class without rows.

    .. math:: \frac{\#\{i : y_i = k,\ l_i \le k \le u_i\}}{\#\{i : y_i = k\}}

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The intervals, also on a GPU or of dask collections.
    confidence : float, optional
        Give an :class:`Estimate` with the interval of this confidence too, such as 0.95.

    Returns
    -------
    array of shape (K,), or Estimate
        One share for each class, in label order.

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
    r"""The mean loss of the rows of each true class; NaN for a class without rows.

    .. math:: \frac{1}{n_k} \sum_{i : y_i = k} L_i, \qquad n_k = \#\{i : y_i = k\}

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The intervals, also on a GPU or of dask collections.
    loss : IntervalLoss, str or table
        What a miss costs, as for :class:`~ordinalrisk.RiskController`.
    confidence : float, optional
        Give an :class:`Estimate` with the interval of this confidence too, such as 0.95.

    Returns
    -------
    array of shape (K,), or Estimate
        One mean for each class, in label order.

    Examples
    --------
    >>> class_risk([0, 1, 1], IntervalSet([0, 1, 2], [0, 2, 2], classes=[0, 1, 2]), "divergence")
    array([0.  , 0.25,  nan])
    """
    return _tally(y, sets).class_risk(as_loss(loss), confidence)


@_on_host
def class_size(y: Any, sets: IntervalSet) -> NDArray[np.float64]:
    r"""The mean number of labels in the intervals of each true class; NaN for a class without rows.

    .. math:: \frac{1}{n_k} \sum_{i : y_i = k} (u_i - l_i + 1), \qquad n_k = \#\{i : y_i = k\}

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The intervals, also on a GPU or of dask collections.

    Returns
    -------
    array of shape (K,)
        One mean for each class, in label order.

    Examples
    --------
    >>> class_size([0, 1, 1], IntervalSet([0, 1, 2], [0, 2, 2], classes=[0, 1, 2]))
    array([1. , 1.5, nan])
    """
    return _tally(y, sets).class_size()


@_on_host
def mean_size(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""The mean number of labels in an interval.

    .. math:: \frac{1}{n} \sum_{i=1}^n (u_i - l_i + 1)

    Parameters
    ----------
    sets : IntervalSet
        The intervals, also on a GPU or of dask collections.
    confidence : float, optional
        Give an :class:`Estimate` with the interval of this confidence too, such as 0.95.

    Returns
    -------
    float, or Estimate
        From 1 to ``K``.

    Examples
    --------
    >>> mean_size(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    1.5
    """
    return _tally_of_sets(sets).mean_size(confidence)


@_on_host
def size_histogram(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""The share of intervals of size ``1 .. K``.

    .. math:: \frac{1}{n} \#\{i : u_i - l_i + 1 = s\}, \qquad s = 1, \dots, K

    Parameters
    ----------
    sets : IntervalSet
        The intervals, also on a GPU or of dask collections.
    confidence : float, optional
        Give an :class:`Estimate` with the interval of this confidence too, such as 0.95.

    Returns
    -------
    array of shape (K,), or Estimate
        They add up to 1.

    Examples
    --------
    >>> size_histogram(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    array([0.5, 0.5, 0. ])
    """
    return _tally_of_sets(sets).size_histogram(confidence)


@_on_host
def centroid_histogram(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""The share of intervals centred at ``0, 0.5, 1, .., K-1`` (paper, Figures 4, 6 and 8).

    .. math:: \frac{1}{n} \#\{i : (l_i + u_i) / 2 = c\}, \qquad c = 0, \tfrac{1}{2}, 1, \dots, K - 1

    Parameters
    ----------
    sets : IntervalSet
        The intervals, also on a GPU or of dask collections.
    confidence : float, optional
        Give an :class:`Estimate` with the interval of this confidence too, such as 0.95.

    Returns
    -------
    array of shape (2 K - 1,), or Estimate
        They add up to 1.

    Examples
    --------
    >>> centroid_histogram(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    array([0.5, 0. , 0. , 0.5, 0. ])
    """
    return _tally_of_sets(sets).centroid_histogram(confidence)


@_on_host
def distance_when_missed(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""How many labels lie from the truth to the interval, on average, where it is missed.

    .. math:: \frac{1}{m} \sum_{i : y_i \notin C_i} |y_i - k_i|, \qquad m = \#\{i : y_i \notin C_i\}

    with :math:`k_i` the label of the interval nearest to the truth.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The intervals, also on a GPU or of dask collections.
    confidence : float, optional
        Give an :class:`Estimate` with the interval of this confidence too, such as 0.95.

    Returns
    -------
    float, or Estimate
        At least 1; NaN if no row is missed.

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
    return Tally.of(_label_indices(y, sets), sets)


def _tally_of_sets(sets: Any) -> Tally:
    """The counts of sets alone: each row counts as one with the first label of its set as the truth."""
    if is_lazy_set(sets):
        tally: Tally = sets.tally_of_sets()
        return tally
    _require_sets(sets)
    return Tally.of(sets.lower_index, sets)


def _label_indices(y: Any, sets: IntervalSet) -> NDArray[np.int64]:
    _require_sets(sets)
    require_same_rows(6, sets=sets, y=y)  # below a metric and what brings it to the host
    return class_indices(y, sets.classes, len(sets))


def _require_sets(sets: Any) -> None:
    if not isinstance(sets, IntervalSet):
        raise ValueError(
            f"Metrics take the labels first and then an IntervalSet; got a {type(sets).__name__} as sets."
        )
