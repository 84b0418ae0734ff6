"""Prediction sets as a file: the kept columns, both ends of a set, its size, and maybe an action.

Decisions are written by the same functions, with other new columns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ordinalrisk.files.formats import FileError, compression_of, format_to_write
from ordinalrisk.files.patterns import identity_of
from ordinalrisk.files.places import PIPE, located
from ordinalrisk.files.scored_rows import FileRows
from ordinalrisk.files.writers import writing
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.prediction.action_costs import ActionCosts
from ordinalrisk.prediction.interval_set import IntervalSet

ADDED = ("lower", "upper", "size")
ADDED_BY_ACTIONS = ("action", "worst_case")
BATCHES_BEHIND = 8  # as many as are in a row group, which is written at once
_BINARY = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
)
Item = TypeVar("Item")
WriteColumns = Callable[[Batch, Iterable[pa.Array]], None]
"""A function that writes the kept columns of a batch, and new ones."""


class Predicted(NamedTuple):
    """Counts of predicted rows.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    n_labels : int
        The number of labels in their sets, all together.
    n_single : int
        The number of sets with a single label.
    n_uncertified : int
        The number of rows with weights so large that their sets are the full scale.
    """

    n_rows: int
    n_labels: int
    n_single: int
    n_uncertified: int


_NOTHING = Predicted(0, 0, 0, 0)


def total(counts: Sequence[Predicted]) -> Predicted:
    return Predicted(*map(sum, zip(*counts, strict=True)))


@dataclass
class SetWriter:
    """Writes the sets of batches, and counts them in ``written``."""

    columns: _SetColumns
    actions: _ActionColumns | None
    write_columns: WriteColumns
    written: Predicted = _NOTHING

    def write(self, batch: Batch, sets: IntervalSet, n_uncertified: int) -> None:
        size = sets.size
        arrays = [*self.columns.arrays(sets, size)]
        if self.actions is not None:
            arrays += self.actions.arrays(sets, batch.proba)
        self.write_columns(batch, arrays)
        n_single = int(np.count_nonzero(size == 1))
        self.written = total([self.written, Predicted(len(size), int(size.sum()), n_single, n_uncertified)])


@contextmanager
def writing_sets(
    rows: FileRows,
    place: str,
    classes: Classes,
    actions: ActionCosts | None = None,
    prefix: str = "",  # before the names of the new columns
    given_format: str | None = None,  # if the name has no known ending
    safe_csv: bool = False,
    may_be_empty: bool = False,  # a file without rows is fine, as one of many
) -> Iterator[SetWriter]:
    """Write prediction sets to a file, whole or not at all, or to standard output."""
    columns, chosen = _SetColumns(classes), None if actions is None else _ActionColumns(actions)
    names = (*ADDED, *(() if actions is None else ADDED_BY_ACTIONS))
    types = [*columns.types, *(() if chosen is None else chosen.types)]
    new = [pa.field(prefix + name, kind, nullable=False) for name, kind in zip(names, types, strict=True)]
    with writing_columns(rows, place, new, given_format, safe_csv) as write_columns:
        sets = SetWriter(columns, chosen, write_columns)
        yield sets
        if not sets.written.n_rows and not may_be_empty:
            raise FileError(f"{rows.name}: has no rows.")


@contextmanager
def writing_columns(
    rows: FileRows, place: str, new: Sequence[pa.Field], given_format: str | None, safe_csv: bool
) -> Iterator[WriteColumns]:
    """Write the kept columns of rows and new ones to a file, whole or not at all, or to standard output.

    They are written in another thread while the next rows are computed.
    """
    new_names = [field.name for field in new]
    if taken := [name for name in new_names if name in rows.keep]:
        raise FileError(
            f"{rows.name}: already has a column {taken[0]!r}; keep other columns with `keep`, or rename the "
            "new ones with `prefix`."
        )
    schema = pa.schema([*map(rows.source.field_as_read, rows.keep), *new])
    _require_writable(rows, place, schema, given_format)
    with (
        writing(place, schema, given_format, new_names, safe_csv) as writer,
        _in_background(writer.write) as write_batch,
    ):

        def write_columns(batch: Batch, arrays: Iterable[pa.Array]) -> None:
            every = [*batch.columns.values(), *arrays]
            write_batch(pa.RecordBatch.from_arrays(every, schema=schema))

        yield write_columns


def _require_writable(rows: FileRows, place: str, schema: pa.Schema, given_format: str | None) -> None:
    """Refuse to replace the file that is read, and columns that a text format can't represent."""
    file = located(place)
    if place != PIPE and identity_of(place) == identity_of(rows.place):
        raise FileError(f"{rows.name}: is read, and would be lost; choose another name for `out`.")
    target = (
        "csv" if place == PIPE and given_format is None else format_to_write(file.name, given_format, file)
    )
    if compression_of(file.name) and target in ("parquet", "arrow"):
        raise ValueError(
            f"`out`: {file}: {target} is not compressed as a whole; choose a name without {file.suffix}."
        )
    for field in schema:
        nested = target == "csv" and pa.types.is_nested(field.type)
        if nested or (target in ("csv", "jsonl") and _is_binary(field.type)):
            raise FileError(
                f"{rows.name}: column {field.name!r} holds {field.type}, which {target} can't; leave it out "
                "with `keep`, or write another format."
            )


class LabelArrays:
    """Labels as Arrow columns: whole numbers in few bytes, text once in an ordered dictionary."""

    def __init__(self, classes: Classes) -> None:
        self.small = narrowest(len(classes))
        small = pa.from_numpy_dtype(self.small)
        self._names = _texts([str(label) for label in classes.tolist()])
        self._numbers = classes if classes.dtype.kind in "iuf" else None
        if classes.dtype.kind in "iu":
            self._numbers = classes.astype(narrowest(max(abs(label) for label in classes.tolist())))
        if self._numbers is None:
            self.type = pa.dictionary(small, pa.string(), ordered=True)
        else:
            self.type = pa.from_numpy_dtype(self._numbers.dtype)

    def array(self, index: NDArray[Any], known: NDArray[np.bool_] | None = None) -> pa.Array:
        """Return the labels at these positions; null where they are not known."""
        if self._numbers is not None:
            return as_array(self._numbers.take(index), known)
        positions = as_array(index.astype(self.small), known)
        return pa.DictionaryArray.from_arrays(positions, self._names, ordered=True)


class _SetColumns:
    """Sets as Arrow columns."""

    def __init__(self, classes: Classes) -> None:
        self._labels = LabelArrays(classes)
        self.types = self._labels.type, self._labels.type, pa.from_numpy_dtype(self._labels.small)

    def arrays(self, sets: IntervalSet, size: NDArray[Any]) -> Iterator[pa.Array]:
        for index in (sets.lower_index, sets.upper_index):
            yield self._labels.array(index)
        yield as_array(size.astype(self._labels.small))


class _ActionColumns:
    """The action of each row as text, once in a dictionary, and its worst-case cost."""

    def __init__(self, costs: ActionCosts) -> None:
        self._costs, self._names = costs, _texts(list(costs.actions))
        self._small = narrowest(len(costs.actions))
        self.types = pa.dictionary(pa.from_numpy_dtype(self._small), pa.string()), pa.float64()

    def arrays(self, sets: IntervalSet, proba: Any) -> Iterator[pa.Array]:
        ends = sets.lower_index, sets.upper_index
        chosen = self._costs.choose(*ends, proba)
        yield pa.DictionaryArray.from_arrays(as_array(chosen.astype(self._small)), self._names)
        yield as_array(self._costs.worst_cases(*ends))


# pa.array would do both, but it imports pandas where that is installed, which takes longer than all the rest.


def as_array(values: NDArray[Any], known: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers, or truth values, as an Arrow array; null where they are not known."""
    kind, numbers = pa.from_numpy_dtype(values.dtype), np.ascontiguousarray(values)
    data = _bits(numbers) if values.dtype == bool else pa.py_buffer(numbers)
    return pa.Array.from_buffers(kind, len(values), [None if known is None else _bits(known), data])


def _bits(values: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def _texts(values: list[str]) -> pa.Array:
    encoded = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def narrowest(largest: int) -> np.dtype[Any]:
    """Return the smallest signed integer type that can represent ``largest``."""
    return np.min_scalar_type(-largest - 1)


def _is_binary(kind: pa.DataType) -> bool:
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return any(is_kind(kind) for is_kind in _BINARY) or any(map(_is_binary, inner))


@contextmanager
def _in_background(work: Callable[[Item], None]) -> Iterator[Callable[[Item], None]]:
    """Do the work in another thread, a few items behind; raise its error with a later item or at the end."""
    pending: deque[Future[None]] = deque()
    with ThreadPoolExecutor(1) as writer:

        def hand_over(item: Item) -> None:
            if len(pending) == BATCHES_BEHIND or (pending and pending[0].done()):
                pending.popleft().result()
            pending.append(writer.submit(work, item))

        try:
            yield hand_over
            for each in pending:
                each.result()
        finally:
            for each in pending:
                each.cancel()
