"""Prediction sets: an interval of labels for each row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.display.tables import LabelColumn, pandas_frame, polars_frame
from ordinalrisk.inputs import device
from ordinalrisk.inputs.arrays import as_floats, to_numpy
from ordinalrisk.inputs.device import on_device, to_device_of, to_host
from ordinalrisk.inputs.labels import Classes, as_classes, class_indices, require_column_order
from ordinalrisk.inputs.numbers import is_whole
from ordinalrisk.inputs.probability_matrix import as_matrix
from ordinalrisk.inputs.row_index import require_same_rows, with_index
from ordinalrisk.prediction import notebook_view
from ordinalrisk.prediction.action_costs import ActionCosts
from ordinalrisk.prediction.decisions import Decisions
from ordinalrisk.recalibration.reading import as_scores

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_ROWS_SHOWN = 8  # at most 10, so that numbers have one digit


class Interval(NamedTuple):
    """The first and last label of one row's interval.

    Attributes
    ----------
    lower, upper : label
        The first label and the last.
    """

    lower: Any
    upper: Any


class NoSuchRowError(IndexError, ValueError):
    """An :class:`IntervalSet` has no such rows."""


class IntervalSet:
    r"""A contiguous interval of labels for each row.

    .. math:: C(x_i) = \{l_i, l_i + 1, \dots, u_i\}

    as condition C1 of the paper (Section 2.1) asks. ``sets[3]`` is one row's
    :class:`~ordinalrisk.prediction.interval_set.Interval`, ``sets[:10]`` and ``sets[mask]`` are the intervals
    of some rows; iterating gives one row after the other, and ``==`` compares all.

    Parameters
    ----------
    lower_index, upper_index : array of int
        Positions of the first and last label.
    classes : sequence
        The labels in order.

    Attributes
    ----------
    index : pandas.Index or None
        The index of the rows, if they came as a pandas frame.

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Section 2.1.

    Examples
    --------
    >>> sets = IntervalSet([0, 1], [0, 2], classes=["None", "Mild", "Severe"])
    >>> sets
    IntervalSet of 2 rows, 3 classes, mean size 1.5
      0  None
      1  Mild..Severe
    >>> sets.contains(["Mild", "Mild"])
    array([False,  True])
    >>> sets[1]
    Interval(lower='Mild', upper='Severe')
    """

    __hash__ = None  # type: ignore[assignment]
    index: Any = None

    def __init__(self, lower_index: Any, upper_index: Any, classes: Any) -> None:
        self.lower_index: NDArray[np.int32] = _checked_positions(lower_index, "lower_index")
        self.upper_index: NDArray[np.int32] = _checked_positions(upper_index, "upper_index")
        self.classes = as_classes(classes)
        if self.lower_index.ndim != 1 or self.lower_index.shape != self.upper_index.shape:
            raise ValueError(
                "lower_index and upper_index must be two arrays of one length; got shapes "
                f"{self.lower_index.shape} and {self.upper_index.shape}."
            )
        lower, upper = self.lower_index, self.upper_index
        if len(lower) and (lower.min() < 0 or upper.max() >= len(self.classes) or (lower > upper).any()):
            row = int(((lower < 0) | (lower > upper) | (upper >= len(self.classes))).argmax())
            raise ValueError(
                f"Row {row} is [{lower[row]}, {upper[row]}], which is not an interval of the "
                f"labels 0 .. {len(self.classes) - 1}."
            )

    @classmethod
    def of(
        cls,
        lower_index: NDArray[np.int32],
        upper_index: NDArray[np.int32],
        classes: Classes,
        index: Any = None,
    ) -> IntervalSet:
        """Return intervals without checks, from positions that are known to be valid."""
        sets = cls.__new__(cls)
        sets.lower_index, sets.upper_index = _read_only(lower_index), _read_only(upper_index)
        sets.classes, sets.index = classes, index
        return sets

    @property
    def lower(self) -> Any:
        """The first label of each row's interval."""
        return self._labels(self.lower_index)

    @property
    def upper(self) -> Any:
        """The last label of each row's interval."""
        return self._labels(self.upper_index)

    @property
    def size(self) -> NDArray[np.int32]:
        """The number of labels in each interval: :math:`u - l + 1`."""
        return self.upper_index - self.lower_index + 1

    @property
    def centroid(self) -> NDArray[np.float64]:
        """The middle of each interval, :math:`(l + u) / 2`, on the scale of label positions ``0 .. K-1``."""
        twice: Any = self.lower_index + self.upper_index
        middle: NDArray[np.float64] = (twice.double() if on_device(twice) else twice) / 2
        return middle

    def mask(self) -> NDArray[np.bool_]:
        """Return which labels are in each interval.

        Returns
        -------
        array of bool of shape (n, K)
            True where the interval of the row includes the label.

        Examples
        --------
        >>> IntervalSet([0, 1], [0, 2], classes=["None", "Mild", "Severe"]).mask()
        array([[ True, False, False],
               [False,  True,  True]])
        """
        label = to_device_of(self.lower_index, np.arange(len(self.classes)), "classes")
        lower, upper = self.lower_index[:, None], self.upper_index[:, None]
        inside: NDArray[np.bool_] = (lower <= label) & (label <= upper)
        return inside

    def contains(self, y: Any) -> NDArray[np.bool_]:
        """Return whether each row's interval includes its label.

        Parameters
        ----------
        y : array-like of shape (n,)
            A label for each row, by position. If the sets and ``y`` have a pandas index, the same labels in
            another order are an error, other labels a warning.

        Returns
        -------
        array of bool of shape (n,)
            True where the interval includes the label.

        Examples
        --------
        >>> IntervalSet([0, 1], [0, 2], classes=["None", "Mild", "Severe"]).contains(["None", "None"])
        array([ True, False])
        """
        require_same_rows(sets=self, y=y)
        label = to_device_of(self.lower_index, class_indices(y, self.classes, len(self)), "y")
        inside: NDArray[np.bool_] = (self.lower_index <= label) & (label <= self.upper_index)
        return inside

    def to_pandas(self, index: Any = None) -> pd.DataFrame:
        """A pandas frame with columns ``lower``, ``upper`` and ``size``.

        Parameters
        ----------
        index : array-like, optional
            The index of the frame; by default that of the rows that were predicted.

        Returns
        -------
        pandas.DataFrame
            A row for each interval. Labels that are text are ordered categoricals; a number stays a number.

        Examples
        --------
        >>> sets = IntervalSet([0, 1], [0, 2], classes=["None", "Mild", "Severe"])
        >>> sets.to_pandas(index=["Ann", "Bob"])
            lower   upper  size
        Ann  None    None     1
        Bob  Mild  Severe     2
        """
        return pandas_frame(self._columns(), self.index if index is None else index)

    def to_polars(self, index: Any = None) -> pl.DataFrame:
        """A polars frame with columns ``lower``, ``upper`` and ``size``.

        Parameters
        ----------
        index : array-like, optional
            The name of each row, for a first column ``index``. By default the pandas index of the rows that
            were predicted, by its own name if it has one; there is no such column if rows have no names.

        Returns
        -------
        polars.DataFrame
            A row for each interval. Labels that are text are an Enum; a number stays a number.

        Examples
        --------
        >>> sets = IntervalSet([0, 1], [0, 2], classes=["None", "Mild", "Severe"])
        >>> sets.to_polars().columns, sets.to_polars(index=["Ann", "Bob"]).columns
        (['lower', 'upper', 'size'], ['index', 'lower', 'upper', 'size'])
        """
        return polars_frame(with_index(self._columns(), self.index, index))

    def decide(self, costs: Any, *, actions: Any = None, proba: Any = None) -> Decisions:
        r"""Choose for each row the action with the least worst-case cost over the labels in its set.

        .. math:: a(C) \in \operatorname{argmin}_a \, \max_{y \in C} c(a, y)

        If the set includes the true label, the action costs at most its worst case. So if sets miss the true
        label with probability at most ``alpha``, the cost is above the worst case with probability at most
        ``alpha``, over all rows; for the rows of one action alone it can be higher.

        Parameters
        ----------
        costs : mapping, data frame or table
            What each action costs for each label: a mapping from each action to its costs in the order of
            the labels, or to a pandas series with the labels as its index; a frame with a column named after
            each label, and the actions as its index or in its first column; or a table with a row for each
            action. A cost is any number. Decimals are exact: 0.29 is 29/100, and worst cases are compared
            without rounding.
        actions : sequence of str, optional
            The names of the rows of a table.
        proba : array-like of shape (n, K), optional
            Among actions with the same worst case, take the one with the least mean cost under these
            probabilities. Without them, and for equal means, it is the first one in ``costs``; means are
            floats, so rounding can decide between means that are equal as decimals. If the
            calibration recalibrates scores, pass what its map makes of them:
            ``controller.recalibration(scores)``.

        Returns
        -------
        Decisions
            The action and the worst-case cost of each row, on the host.

        References
        ----------
        Wald. Statistical Decision Functions. Wiley 1950: the minimax rule.

        Examples
        --------
        >>> sets = IntervalSet([0, 0, 2], [0, 2, 2], classes=["None", "Mild", "Severe"])
        >>> sets.decide({"treat": [3, 1, 0], "refer": [2, 2, 2], "wait": [0, 2, 9]})
        Decisions for 3 rows: treat 1, refer 1, wait 1
          0  wait, worst case 0
          1  refer, worst case 2
          2  treat, worst case 0
        """
        table = ActionCosts.of(costs, self.classes, actions)
        host = self.cpu()
        ends = host.lower_index, host.upper_index
        matrix = None if proba is None else self._probabilities(proba)
        return Decisions(
            _read_only(table.choose(*ends, matrix)),
            _read_only(table.worst_cases(*ends)),
            table.actions,
            _read_only(table.values),
            self.classes,
            self.index,
        )

    def cpu(self) -> IntervalSet:
        """Copy the intervals from a GPU to the host.

        Returns
        -------
        IntervalSet
            The intervals as numpy arrays; this object itself if it is on the host already.

        Examples
        --------
        >>> sets = IntervalSet([0, 1], [0, 2], classes=["None", "Mild", "Severe"])
        >>> sets.cpu() is sets
        True
        """
        if not on_device(self.lower_index):
            return self
        return IntervalSet.of(to_host(self.lower_index), to_host(self.upper_index), self.classes, self.index)

    def _probabilities(self, proba: Any) -> Any:
        """Check that there is a row of probabilities for each set; return them on the host."""
        require_same_rows(4, sets=self, proba=proba)
        matrix, n, K = as_matrix(proba), len(self), len(self.classes)
        if tuple(matrix.shape) != (n, K):
            raise ValueError(
                f"proba must have a row for each of the {n} sets and a column for each of the {K} labels; "
                f"got shape {tuple(matrix.shape)}."
            )
        require_column_order(proba, self.classes)
        return to_host(as_scores(matrix, "probabilities"))

    def _labels(self, index: Any) -> Any:
        return device.labels_at(index, self.classes) if on_device(index) else self.classes[index]

    def _columns(self) -> dict[str, Any]:
        host = self.cpu()
        lower, upper = (LabelColumn(ends, self.classes) for ends in (host.lower_index, host.upper_index))
        return {"lower": lower, "upper": upper, "size": host.size}

    def __len__(self) -> int:
        return len(self.lower_index)

    @overload
    def __getitem__(self, rows: int) -> Interval: ...
    @overload
    def __getitem__(self, rows: slice | NDArray[Any] | list[Any]) -> IntervalSet: ...
    def __getitem__(self, rows: Any) -> Interval | IntervalSet:
        if not isinstance(rows, slice) and not is_whole(rows):
            rows = self._chosen(rows)
        try:
            lower, upper = self.lower_index[rows], self.upper_index[rows]
        except IndexError:
            raise NoSuchRowError(f"There are {len(self)} rows, none at position {rows!r}.") from None
        if np.ndim(lower) == 0:
            return Interval(*self.classes[[int(lower), int(upper)]].tolist())
        return IntervalSet.of(lower, upper, self.classes, None if self.index is None else self.index[rows])

    def _chosen(self, rows: Any) -> NDArray[Any]:
        """Return positions or a mask as an array."""
        try:
            array = to_numpy(to_host(rows), "rows")
        except ValueError:
            array = np.empty((), object)
        is_mask = array.dtype == bool and array.shape == (len(self),)
        if array.ndim != 1 or not (is_mask or array.dtype.kind in "iu" or not array.size):
            raise NoSuchRowError(
                f"Choose rows by a position, a slice, an array of positions or a mask of all {len(self)} "
                f"rows; got {rows!r}."
            )
        return array if array.size else array.astype(np.int64)

    def __iter__(self) -> Iterator[Interval]:
        host = self.cpu()
        return map(Interval, host.lower.tolist(), host.upper.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IntervalSet):
            return NotImplemented
        here, there = self.cpu(), other.cpu()
        return (
            here.classes.tolist() == there.classes.tolist()
            and np.array_equal(here.lower_index, there.lower_index)
            and np.array_equal(here.upper_index, there.upper_index)
        )

    def __repr__(self) -> str:
        lines = [f"IntervalSet of {len(self)} rows, {len(self.classes)} classes{self._mean_size()}"]
        for i, (lower, upper) in enumerate(self[:_ROWS_SHOWN]):
            lines.append(f"  {i}  {lower}" + (f"..{upper}" if upper != lower else ""))
        if len(self) > _ROWS_SHOWN:
            lines.append(f"  ... {len(self) - _ROWS_SHOWN} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = self[:_ROWS_SHOWN].cpu()
        names = range(len(shown)) if shown.index is None else shown.index.tolist()
        rows = zip(names, shown, shown.lower_index.tolist(), shown.upper_index.tolist(), strict=True)
        n, K = len(self), len(self.classes)
        about = f" of {n:,} rows, {K:,} classes{self._mean_size()}"
        return notebook_view.intervals_html(type(self).__name__, about, rows, n, K)

    def _mean_size(self) -> str:
        return f", mean size {int(self.size.sum()) / len(self):.4g}" if len(self) else ""


def _checked_positions(values: Any, name: str) -> NDArray[np.int32]:
    """Return whole numbers as int32; refuse others, so that nothing is truncated or wrapped."""
    array = to_numpy(to_host(values), name)
    if array.dtype == np.int32:
        return _read_only(array)
    floats = as_floats(array)
    if floats is not None:
        with np.errstate(invalid="ignore"):
            positions = floats.astype(np.int32)
    if floats is None or not (positions == floats).all():
        raise ValueError(f"{name} must hold label positions, whole numbers; got {values!r}.")
    return _read_only(positions)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    if on_device(array):  # tensors have no such flag
        return array
    view = array.view()
    view.flags.writeable = False
    return view
