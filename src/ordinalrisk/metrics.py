"""Measure how good prediction sets are, on rows with known labels.

Each metric returns a plain number or array. With ``confidence=0.95`` it returns an :class:`Estimate` that
also has a confidence interval: the exact binomial one (Clopper-Pearson) for proportions and for losses with a
single cost, the betting one (Waudby-Smith and Ramdas) for other means. A confidence interval is valid if the
rows are independent draws from one population and the sets were made without them, so use rows that were not
used for calibration. The confidence holds for each interval separately, not for all entries of an array
together. Sets on a GPU are copied to the host. Sets of dask collections are counted in one pass over the
partitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.evaluation.class_table import ClassTable, GroupTable, class_table, group_table
from ordinalrisk.evaluation.counts import SetCounts, Tally
from ordinalrisk.evaluation.estimates import CONFIDENCE, Estimate, Value
from ordinalrisk.execution.fold import SERIAL, InMemory
from ordinalrisk.inputs.arrays import is_lazy_set
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import class_indices
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import as_loss
from ordinalrisk.prediction.interval_set import IntervalSet

__all__ = [
    "ClassTable",
    "Estimate",
    "GroupTable",
    "by_class",
    "by_group",
    "centroid_histogram",
    "class_coverage",
    "class_risk",
    "class_size",
    "coverage",
    "distance_when_missed",
    "losses",
    "mean_size",
    "relative_risk",
    "risk",
    "size_histogram",
]


def losses(y: Any, sets: IntervalSet, loss: Any = "coverage") -> NDArray[np.float64]:
    r"""Compute the loss of each row (paper, Eq. 1).

    .. math:: L_i = G[y_i, k_i], \qquad k_i = \min(\max(y_i, l_i), u_i)

    where :math:`k_i` is the label of the set nearest to the truth.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.
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
        of_rows: NDArray[np.float64] = lazy.losses(y, _costs(loss, sets))
        return of_rows
    label, sets = _on_host(y, sets)
    return _costs(loss, sets)[label, np.clip(label, sets.lower_index, sets.upper_index)]


def risk(y: Any, sets: IntervalSet, loss: Any = "coverage", *, confidence: float | None = None) -> Value:
    r"""Compute the mean loss, which by default is the share of misses (paper, Eq. 2).

    .. math:: \frac{1}{n} \sum_{i=1}^n L_i

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.
    loss : IntervalLoss, str or table
        What a miss costs, as for :class:`~ordinalrisk.RiskController`.
    confidence : float, optional
        Return an :class:`Estimate` with a confidence interval of this confidence, such as 0.95.

    Returns
    -------
    float, or Estimate
        The mean loss, in units of the loss.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> risk([1, 1, 1], sets, "divergence")
    0.16666666666666666
    """
    return _tally(y, sets).risk(as_loss(to_host(loss)), confidence)


def relative_risk(
    y: Any, sets: IntervalSet, loss: Any = "coverage", *, confidence: float | None = None
) -> Value:
    r"""Compute the loss as a share of what could be lost, which ``alpha`` bounds with ``relative=True``.

    .. math:: \frac{\sum_i L_i}{\sum_i g_i}, \qquad g_i = \max_k G[y_i, k]

    For a weighted loss, this is the weight of the misses as a share of the total weight.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.
    loss : IntervalLoss, str or table
        What a miss costs, as for :class:`~ordinalrisk.RiskController`.
    confidence : float, optional
        Return an :class:`Estimate` with a confidence interval of this confidence, such as 0.95.

    Returns
    -------
    float, or Estimate
        A share from 0 to 1; NaN if no row can lose anything.

    Examples
    --------
    >>> import ordinalrisk as orisk
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> relative_risk([1, 1, 0], sets, orisk.WeightedLoss([4, 1, 1]))
    0.8333333333333334
    """
    return _tally(y, sets).relative_risk(as_loss(to_host(loss)), confidence)


def coverage(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""Compute the share of rows with the true label in the set.

    .. math:: \frac{1}{n} \#\{i : l_i \le y_i \le u_i\}

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.
    confidence : float, optional
        Return an :class:`Estimate` with a confidence interval of this confidence, such as 0.95.

    Returns
    -------
    float, or Estimate
        A share from 0 to 1.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> print(coverage([1, 1, 1], sets, confidence=0.95))
    0.6667 (0.0943 to 0.9916)
    """
    return _tally(y, sets).coverage(confidence)


def class_coverage(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""Compute the coverage in each true class; NaN for a class without rows.

    .. math:: \frac{\#\{i : y_i = k,\ l_i \le k \le u_i\}}{\#\{i : y_i = k\}}

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.
    confidence : float, optional
        Return an :class:`Estimate` with a confidence interval of this confidence, such as 0.95.

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


def class_risk(
    y: Any,
    sets: IntervalSet,
    loss: Any = "coverage",
    *,
    confidence: float | None = None,
    relative: bool = False,
) -> Value:
    r"""Compute the mean loss in each true class; NaN for a class without rows.

    .. math:: \frac{1}{n_k} \sum_{i : y_i = k} L_i, \qquad n_k = \#\{i : y_i = k\}

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.
    loss : IntervalLoss, str or table
        What a miss costs, as for :class:`~ordinalrisk.RiskController`.
    confidence : float, optional
        Return an :class:`Estimate` with a confidence interval of this confidence, such as 0.95.
    relative : bool
        Divide by the largest loss of the class. Compare this with ``alpha`` if the calibration has
        ``relative=True``, otherwise the mean loss.

    Returns
    -------
    array of shape (K,), or Estimate
        One mean for each class, in label order.

    Examples
    --------
    >>> class_risk([0, 1, 1], IntervalSet([0, 1, 2], [0, 2, 2], classes=[0, 1, 2]), "divergence")
    array([0.  , 0.25,  nan])
    """
    return _tally(y, sets).class_risk(as_loss(to_host(loss)), confidence, relative)


def class_size(y: Any, sets: IntervalSet) -> NDArray[np.float64]:
    r"""Compute the mean set size in each true class; NaN for a class without rows.

    .. math:: \frac{1}{n_k} \sum_{i : y_i = k} (u_i - l_i + 1), \qquad n_k = \#\{i : y_i = k\}

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.

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


def by_class(
    y: Any,
    sets: IntervalSet,
    loss: Any = "coverage",
    *,
    confidence: float | None = CONFIDENCE,
    relative: bool = False,
) -> ClassTable:
    r"""Tabulate the number of rows, coverage, mean loss and mean set size of each true class.

    The columns have the values of :func:`class_coverage`, :func:`class_risk` and :func:`class_size`. The mean
    loss of class ``k`` is

    .. math:: \frac{1}{n_k} \sum_{i : y_i = k} L_i, \qquad n_k = \#\{i : y_i = k\}.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.
    loss : IntervalLoss, str or table
        What a miss costs, as for :class:`~ordinalrisk.RiskController`.
    confidence : float or None
        The confidence of the confidence intervals; None leaves them out.
    relative : bool
        As for :func:`class_risk`.

    Returns
    -------
    ClassTable
        A table, which ``print`` shows, with methods ``to_pandas`` and ``to_polars``.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 2], [0, 2, 2], classes=["low", "mid", "high"])
    >>> by_class(["low", "mid", "mid"], sets, "divergence", confidence=None).to_pandas()
      label  rows  coverage  risk  size
    0   low     1       1.0  0.00   1.0
    1   mid     2       0.5  0.25   1.5
    2  high     0       NaN   NaN   NaN
    """
    return class_table(_tally(y, sets), sets.classes, as_loss(to_host(loss)), confidence, relative)


def by_group(
    y: Any,
    sets: IntervalSet,
    groups: Any,
    loss: Any = "coverage",
    *,
    confidence: float | None = CONFIDENCE,
    relative: bool = False,
) -> GroupTable:
    r"""Tabulate the number of rows, coverage, mean loss and mean set size of each group.

    The mean loss of group ``g`` is

    .. math:: \frac{1}{n_g} \sum_{i : g_i = g} L_i, \qquad n_g = \#\{i : g_i = g\}.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets, on the host or on a GPU.
    groups : array-like of shape (n,)
        The group of each row, as for :meth:`ordinalrisk.RiskController.calibrate`.
    loss : IntervalLoss, str or table
        What a miss costs, as for :class:`~ordinalrisk.RiskController`.
    confidence : float or None
        The confidence of the confidence intervals; None leaves them out.
    relative : bool
        Whether the loss is a share of what could be lost, as for :func:`relative_risk`. Compare this with
        ``alpha`` if the calibration has ``relative=True``, otherwise the mean loss.

    Returns
    -------
    GroupTable
        A table, which ``print`` shows, with methods ``to_pandas`` and ``to_polars``.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 2], [0, 2, 2], classes=["low", "mid", "high"])
    >>> print(by_group(["low", "mid", "mid"], sets, ["a", "a", "b"], "divergence", confidence=None))
    group  rows  coverage  risk  size
    a         2         1   0.0   1.5
    b         1         0   0.5   1.0
    """
    label, sets = _on_host(y, sets)
    require_same_rows(sets=sets, groups=groups)
    names = RowNames("groups")
    number = names.numbered(groups, len(sets))
    rows = {name: np.flatnonzero(number == i) for i, name in enumerate(names.known)}
    tallies = {name: _counted(label[mine], sets[mine]) for name, mine in rows.items()}
    return group_table(tallies, as_loss(to_host(loss)), confidence, relative)


def mean_size(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""Compute the mean number of labels in a set.

    .. math:: \frac{1}{n} \sum_{i=1}^n (u_i - l_i + 1)

    Parameters
    ----------
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.
    confidence : float, optional
        Return an :class:`Estimate` with a confidence interval of this confidence, such as 0.95.

    Returns
    -------
    float, or Estimate
        A number from 1 to ``K``.

    Examples
    --------
    >>> mean_size(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    1.5
    """
    return _tally_of_sets(sets).mean_size(confidence)


def size_histogram(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""Compute the share of sets with each size ``1 .. K``.

    .. math:: \frac{1}{n} \#\{i : u_i - l_i + 1 = s\}, \qquad s = 1, \dots, K

    Parameters
    ----------
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.
    confidence : float, optional
        Return an :class:`Estimate` with a confidence interval of this confidence, such as 0.95.

    Returns
    -------
    array of shape (K,), or Estimate
        The shares, which sum to 1.

    Examples
    --------
    >>> size_histogram(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    array([0.5, 0.5, 0. ])
    """
    return _tally_of_sets(sets).size_histogram(confidence)


def centroid_histogram(sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""Compute the share of sets centred at each of ``0, 0.5, 1, .., K-1`` (paper, Figures 4, 6 and 8).

    .. math:: \frac{1}{n} \#\{i : (l_i + u_i) / 2 = c\}, \qquad c = 0, \tfrac{1}{2}, 1, \dots, K - 1

    Parameters
    ----------
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.
    confidence : float, optional
        Return an :class:`Estimate` with a confidence interval of this confidence, such as 0.95.

    Returns
    -------
    array of shape (2 K - 1,), or Estimate
        The shares, which sum to 1.

    Examples
    --------
    >>> centroid_histogram(IntervalSet([0, 1], [0, 2], classes=[0, 1, 2]))
    array([0.5, 0. , 0. , 0.5, 0. ])
    """
    return _tally_of_sets(sets).centroid_histogram(confidence)


def distance_when_missed(y: Any, sets: IntervalSet, *, confidence: float | None = None) -> Value:
    r"""Compute the mean distance, in labels, from the truth to the set over all missed rows.

    .. math:: \frac{1}{m} \sum_{i : y_i \notin C_i} |y_i - k_i|, \qquad m = \#\{i : y_i \notin C_i\}

    where :math:`k_i` is the label of the set nearest to the truth.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true labels.
    sets : IntervalSet
        The prediction sets: on the host, on a GPU or of dask collections.
    confidence : float, optional
        Return an :class:`Estimate` with a confidence interval of this confidence, such as 0.95.

    Returns
    -------
    float, or Estimate
        A number of at least 1; NaN if no row is missed.

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
    return _counted(*_on_host(y, sets))


def _tally_of_sets(sets: Any) -> Tally:
    """Count sets without labels; the first label of each set stands in for the truth."""
    if is_lazy_set(sets):
        tally: Tally = sets.tally_of_sets()
        return tally
    _require_sets(sets)
    sets = sets.cpu()
    return _counted(sets.lower_index, sets)


def _counted(labels: NDArray[np.integer], sets: IntervalSet) -> Tally:
    rows = InMemory([Batch(labels=labels, sets=sets)])
    return SERIAL.fold([rows], SetCounts(len(sets.classes))).tally


def _on_host(y: Any, sets: IntervalSet) -> tuple[NDArray[np.int64], IntervalSet]:
    """Return the positions of the labels, and the sets, on the host."""
    _require_sets(sets)
    y = to_host(y)
    require_same_rows(5, sets=sets, y=y)  # the stack level of the caller of a metric
    return class_indices(y, sets.classes, len(sets)), sets.cpu()


def _costs(loss: Any, sets: IntervalSet) -> NDArray[np.float64]:
    return CostTable.of(as_loss(to_host(loss)), len(sets.classes)).values


def _require_sets(sets: Any) -> None:
    if not isinstance(sets, IntervalSet):
        raise ValueError(
            f"sets must be an IntervalSet; got a {type(sets).__name__}. Pass the labels first, then the sets."
        )
