"""Intervals that are not computed yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.execution.dask.partitions import Partitions, merged_in_order, naming_partition, shared
from ordinalrisk.inputs.labels import Classes, class_indices
from ordinalrisk.prediction.interval_set import IntervalSet


class LazyIntervalSet:
    """A contiguous interval of labels for each row of a dask collection.

    It has the attributes of an :class:`IntervalSet` as dask arrays. Nothing is computed before dask is told
    to: by ``compute()`` of these arrays or of the whole, by writing them, or by a metric.

    Examples
    --------
    >>> import dask.array as da
    >>> from ordinalrisk import RiskController
    >>> proba = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7)
    >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
    >>> sets = controller.predict_set(da.from_array(proba, chunks=(5, 3)))
    >>> sets
    LazyIntervalSet of 21 rows in 5 partitions, 3 classes
    >>> sets.size.mean().compute()
    np.float64(1.6666666666666667)
    >>> sets.compute() == controller.predict_set(proba)
    True
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, ends: list[Delayed], lengths: list[int | None], classes: Classes, proba: Any = None
    ) -> None:
        self._ends, self._lengths, self._proba = ends, lengths, proba
        self.classes = classes

    @property
    def lower_index(self) -> da.Array:
        """The position of the first label of each row's interval."""
        return self._array()[:, 0]

    @property
    def upper_index(self) -> da.Array:
        """The position of the last label of each row's interval."""
        return self._array()[:, 1]

    @property
    def lower(self) -> da.Array:
        """The first label of each row's interval."""
        return self.lower_index.map_blocks(self.classes.take, dtype=self.classes.dtype)

    @property
    def upper(self) -> da.Array:
        """The last label of each row's interval."""
        return self.upper_index.map_blocks(self.classes.take, dtype=self.classes.dtype)

    @property
    def size(self) -> da.Array:
        """How many labels each interval holds."""
        return self.upper_index - self.lower_index + 1

    @property
    def centroid(self) -> da.Array:
        """The middle of each interval, on the scale of label positions ``0 .. K-1``."""
        return (self.lower_index + self.upper_index) / 2

    def mask(self) -> da.Array:
        """Which labels each interval holds, as an ``(n, K)`` array."""
        label = np.arange(len(self.classes))
        return (self.lower_index[:, None] <= label) & (label <= self.upper_index[:, None])

    def contains(self, y: Any) -> da.Array:
        """Whether each row's interval holds its label ``y``, a dask collection cut in the same places."""
        return self._from_parts(contains_in_partition, y, bool)

    def losses(self, y: Any, costs: NDArray[np.float64]) -> da.Array:
        """The cost of each row, given a table of costs by true and nearest label."""
        return self._from_parts(losses_in_partition, y, np.float64, shared(costs))

    def tally(self, y: Any) -> Tally:
        """The counts that metrics are made of; this computes the intervals, in one pass."""
        return self._tally(self._beside(y))

    def tally_of_sets(self) -> Tally:
        """The same without labels: each row counts as one with the first label of its set as the truth."""
        return self._tally([None] * len(self._ends))

    def _tally(self, labels: Sequence[Delayed | None]) -> Tally:
        classes = shared(self.classes)
        counts = [
            tally_of_partition(i, ends, label, classes)
            for i, (ends, label) in enumerate(zip(self._ends, labels, strict=True))
        ]
        tally: Tally = merged_in_order(counts, add_tallies).compute()
        return tally

    def compute(self) -> IntervalSet:
        """The intervals, here and now."""
        ends = np.concatenate(dask.compute(*self._ends))
        return IntervalSet.of(ends[:, 0], ends[:, 1], self.classes)

    def to_dask_dataframe(self, beside: Any = None) -> Any:
        """A dask frame with columns ``lower``, ``upper`` and ``size``, and the index of the probabilities.

        Rows of an array are numbered; those of each partition on their own if the lengths are not known.

        Parameters
        ----------
        beside : dask frame, optional
            Other columns of the same rows, such as their names, to stand before these.
        """
        import dask.dataframe as dd
        from dask.dataframe import DataFrame

        classes = shared(self.classes)
        framed = isinstance(self._proba, DataFrame)
        like = Partitions.of(self._proba, "proba").parts if framed else self._first_rows()
        frames = [
            frame_of_partition(ends, classes, each) for ends, each in zip(self._ends, like, strict=True)
        ]
        meta = _sets(np.empty((0, 2), np.int32), self.classes).to_pandas(
            index=self._proba._meta.index if framed else None
        )
        if beside is not None:
            others = Partitions(self._ends, self._lengths).beside(beside, "beside").parts
            frames = [columns_together(*pair) for pair in zip(others, frames, strict=True)]
            meta = columns_side_by_side(beside._meta, meta)
        divisions = self._proba.divisions if framed else None
        return dd.from_delayed(frames, meta=meta, divisions=divisions, verify_meta=False)

    def _first_rows(self) -> list[int]:
        if None in self._lengths:
            return [0] * len(self._ends)
        return Partitions(self._ends, self._lengths).first_rows()

    def _array(self) -> da.Array:
        return self._from_delayed(self._ends, np.int32, (2,))

    def _from_parts(self, function: Any, y: Any, dtype: Any, *more: Any) -> da.Array:
        classes = shared(self.classes)
        parts = [
            function(i, ends, label, classes, *more)
            for i, (ends, label) in enumerate(zip(self._ends, self._beside(y), strict=True))
        ]
        return self._from_delayed(parts, dtype, ())

    def _from_delayed(self, parts: list[Delayed], dtype: Any, shape: tuple[int, ...]) -> da.Array:
        arrays = [
            da.from_delayed(part, (np.nan if length is None else length, *shape), dtype)
            for part, length in zip(parts, self._lengths, strict=True)
        ]
        return da.concatenate(arrays)

    def _beside(self, y: Any) -> list[Delayed]:
        return Partitions(self._ends, self._lengths).beside(y, "y").parts

    def __len__(self) -> int:
        if None in self._lengths:
            raise ValueError("The partitions have unknown lengths; ask for len(sets.compute()).")
        return sum(filter(None, self._lengths))

    def __repr__(self) -> str:
        rows = "unknown" if None in self._lengths else f"{len(self):,}"
        parts = f"{len(self._ends)} partition{'' if len(self._ends) == 1 else 's'}"
        return f"LazyIntervalSet of {rows} rows in {parts}, {len(self.classes)} classes"


@delayed(pure=False)
def contains_in_partition(index: int, ends: Any, y: Any, classes: Classes) -> NDArray[np.bool_]:
    """Whether intervals hold their labels."""
    with naming_partition(index):
        return _sets(ends, classes).contains(y)


@delayed(pure=False)
def losses_in_partition(
    index: int, ends: Any, y: Any, classes: Classes, costs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What intervals cost."""
    with naming_partition(index):
        labels = class_indices(y, classes, len(ends))
    found: NDArray[np.float64] = costs[labels, np.clip(labels, ends[:, 0], ends[:, 1])]
    return found


@delayed(pure=False)
def tally_of_partition(index: int, ends: Any, y: Any, classes: Classes) -> Tally:
    """The counts of one partition."""
    with naming_partition(index):
        labels = ends[:, 0] if y is None else class_indices(y, classes, len(ends))
    return Tally.of(labels, _sets(ends, classes))


@delayed(pure=False)
def frame_of_partition(ends: Any, classes: Classes, like: Any) -> Any:
    """The intervals of one partition as a pandas frame."""
    index = range(like, like + len(ends)) if isinstance(like, int) else like.index
    return _sets(ends, classes).to_pandas(index=index)


@delayed(pure=False)
def columns_together(first: Any, second: Any) -> Any:
    """The columns of two pandas frames of the same rows, in order."""
    return columns_side_by_side(first, second)


def columns_side_by_side(first: Any, second: Any) -> Any:
    """The first frame with the columns of the second, row by row whatever their indices."""
    if len(first) != len(second):
        raise ValueError(f"beside has {len(first)} rows in a partition where proba has {len(second)}.")
    return first.assign(**{name: second[name].array for name in second})


def add_tallies(tallies: Sequence[Tally]) -> Tally:
    """All counts together."""
    return sum(tallies[1:], tallies[0])


def _sets(ends: NDArray[np.int32], classes: Classes) -> IntervalSet:
    return IntervalSet.of(ends[:, 0], ends[:, 1], classes)
