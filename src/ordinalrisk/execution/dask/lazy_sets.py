"""Prediction sets of a dask collection, computed later."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from ordinalrisk.evaluation.counts import SetCounts, Tally
from ordinalrisk.execution.dask.executor import DaskExecutor, shared
from ordinalrisk.execution.dask.partitions import Partitions, naming_partition
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.labels import Classes, class_indices
from ordinalrisk.prediction.interval_set import IntervalSet


class LazyIntervalSet:
    """The prediction set of each row of a dask collection.

    It has the attributes of an :class:`IntervalSet` as dask arrays. Nothing is computed before ``compute()``
    of these arrays or of all sets, or before they are written or counted by a metric.

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

    def __init__(self, ends: Partitions, classes: Classes, proba: Any = None) -> None:
        self._ends, self._proba, self.classes = ends, proba, classes

    @property
    def lower_index(self) -> da.Array:
        """The position of the first label of each set."""
        return self._from_delayed(self._ends.parts, np.int32, (2,))[:, 0]

    @property
    def upper_index(self) -> da.Array:
        """The position of the last label of each set."""
        return self._from_delayed(self._ends.parts, np.int32, (2,))[:, 1]

    @property
    def lower(self) -> da.Array:
        """The first label of each set."""
        return self.lower_index.map_blocks(self.classes.take, dtype=self.classes.dtype)

    @property
    def upper(self) -> da.Array:
        """The last label of each set."""
        return self.upper_index.map_blocks(self.classes.take, dtype=self.classes.dtype)

    @property
    def size(self) -> da.Array:
        """The number of labels in each set."""
        return self.upper_index - self.lower_index + 1

    @property
    def centroid(self) -> da.Array:
        """The middle of each set, on the scale of label positions ``0 .. K-1``."""
        return (self.lower_index + self.upper_index) / 2

    def mask(self) -> da.Array:
        """Return which labels are in each set, as an ``(n, K)`` array."""
        label = np.arange(len(self.classes))
        return (self.lower_index[:, None] <= label) & (label <= self.upper_index[:, None])

    def contains(self, y: Any) -> da.Array:
        """Return whether each set includes the label in ``y``, a dask collection with the same partitions."""
        return self._with_labels(contains_in_partition, y, bool)

    def losses(self, y: Any, costs: NDArray[np.float64]) -> da.Array:
        """Return the loss of each row, given a table of costs by true and nearest label."""
        return self._with_labels(losses_in_partition, y, np.float64, shared(costs))

    def tally(self, y: Any) -> Tally:
        """Count what metrics need, which computes the sets in one pass."""
        return self._tally(self._ends.aligned(y, "y").parts)

    def tally_of_sets(self) -> Tally:
        """Count sets without labels: the first label of each set counts as the true one."""
        return self._tally([None] * len(self._ends.parts))

    def _tally(self, labels: Sequence[Delayed | None]) -> Tally:
        classes = shared(self.classes)
        parts: list[Any] = [
            predicted_partition(i, ends, label, classes)
            for i, (ends, label) in enumerate(zip(self._ends.parts, labels, strict=True))
        ]
        return DaskExecutor().fold(parts, SetCounts(len(self.classes))).tally

    def __getattr__(self, name: str) -> Any:
        if name in ("decide", "to_pandas", "to_polars", "cpu"):
            raise AttributeError(f"The sets are not computed yet; call sets.compute().{name}.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def compute(self) -> IntervalSet:
        """Compute the sets."""
        return _sets(np.concatenate(dask.compute(*self._ends.parts)), self.classes)

    def to_dask_dataframe(self, columns: Any = None) -> Any:
        """Return a dask frame with columns ``lower``, ``upper`` and ``size``, and the index of ``proba``.

        Rows of an array are numbered, within each partition if the lengths of the partitions are unknown.

        Parameters
        ----------
        columns : dask frame, optional
            Other columns of the same rows, such as their names, to place before these.
        """
        import dask.dataframe as dd
        from dask.dataframe import DataFrame

        classes, ends = shared(self.classes), self._ends
        if isinstance(self._proba, DataFrame):
            divisions, index = self._proba.divisions, self._proba._meta.index
            like: Sequence[Any] = Partitions.of(self._proba, "proba").parts
        else:
            divisions = index = None
            like = [0] * len(ends.parts) if None in ends.lengths else ends.first_rows()
        frames = [
            frame_of_partition(part, classes, each) for part, each in zip(ends.parts, like, strict=True)
        ]
        meta = _sets(np.empty((0, 2), np.int32), self.classes).to_pandas(index=index)
        if columns is not None:
            join = delayed(join_columns, pure=False)
            frames = [
                join(*pair) for pair in zip(ends.aligned(columns, "columns").parts, frames, strict=True)
            ]
            meta = join_columns(columns._meta, meta)
        return dd.from_delayed(frames, meta=meta, divisions=divisions, verify_meta=False)

    def _with_labels(self, function: Any, y: Any, dtype: Any, *more: Any) -> da.Array:
        classes, labels = shared(self.classes), self._ends.aligned(y, "y").parts
        parts = [
            function(i, ends, label, classes, *more)
            for i, (ends, label) in enumerate(zip(self._ends.parts, labels, strict=True))
        ]
        return self._from_delayed(parts, dtype, ())

    def _from_delayed(self, parts: list[Delayed], dtype: Any, shape: tuple[int, ...]) -> da.Array:
        arrays = [
            da.from_delayed(part, (np.nan if length is None else length, *shape), dtype)
            for part, length in zip(parts, self._ends.lengths, strict=True)
        ]
        return da.concatenate(arrays)

    def __len__(self) -> int:
        if None in self._ends.lengths:
            raise ValueError("The partitions have unknown lengths; ask for len(sets.compute()).")
        return sum(filter(None, self._ends.lengths))

    def __repr__(self) -> str:
        rows = "unknown" if None in self._ends.lengths else f"{len(self):,}"
        n_parts = len(self._ends.parts)
        parts = f"{n_parts} partition{'' if n_parts == 1 else 's'}"
        return f"LazyIntervalSet of {rows} rows in {parts}, {len(self.classes)} classes"


@delayed(pure=False)
def contains_in_partition(index: int, ends: Any, y: Any, classes: Classes) -> NDArray[np.bool_]:
    with naming_partition(index):
        return _sets(ends, classes).contains(y)


@delayed(pure=False)
def losses_in_partition(
    index: int, ends: Any, y: Any, classes: Classes, costs: NDArray[np.float64]
) -> NDArray[np.float64]:
    with naming_partition(index):
        labels = class_indices(y, classes, len(ends))
    losses: NDArray[np.float64] = costs[labels, np.clip(labels, ends[:, 0], ends[:, 1])]
    return losses


@dataclass(frozen=True)
class PredictedPartition:
    """The sets of one partition; without labels, the first label of each set counts as the true one."""

    index: int
    ends: Any
    y: Any
    classes: Classes

    def batches(self) -> Generator[Batch, None, None]:
        with naming_partition(self.index):
            labels = (
                self.ends[:, 0] if self.y is None else class_indices(self.y, self.classes, len(self.ends))
            )
        yield Batch(labels=labels, sets=_sets(self.ends, self.classes), part=self.index)

    def naming(self, batch: Batch) -> AbstractContextManager[Any]:
        return naming_partition(self.index)


predicted_partition = delayed(PredictedPartition, pure=False)


@delayed(pure=False)
def frame_of_partition(ends: Any, classes: Classes, like: Any) -> Any:
    index = range(like, like + len(ends)) if isinstance(like, int) else like.index
    return _sets(ends, classes).to_pandas(index=index)


def join_columns(first: Any, second: Any) -> Any:
    """Append the columns of the second frame to the first by position, whatever their indexes."""
    if len(first) != len(second):
        raise ValueError(f"columns has {len(first)} rows in a partition where proba has {len(second)}.")
    return first.assign(**{name: second[name].array for name in second})


def _sets(ends: NDArray[np.int32], classes: Classes) -> IntervalSet:
    return IntervalSet.of(ends[:, 0], ends[:, 1], classes)
