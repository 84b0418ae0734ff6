"""The rows of a file of scores: checked batches, and errors that name the row and the column."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ordinalrisk.files.find_columns import is_number
from ordinalrisk.files.formats import FileError, FormatOptions
from ordinalrisk.files.label_names import is_blank, listing, position_of_label, position_of_name
from ordinalrisk.files.opening import source_at
from ordinalrisk.files.places import exists
from ordinalrisk.files.readers import Source
from ordinalrisk.files.spelled_numbers import PLAIN, Spelling
from ordinalrisk.growth.kernels.cpu import side_by_side
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.labels import as_classes, class_indices
from ordinalrisk.inputs.probability_matrix import RowError, softmax_of_rows
from ordinalrisk.recalibration.reading import as_scores

if TYPE_CHECKING:
    from ordinalrisk.recalibration.recalibration import Recalibration

_REMEDIES = {
    "zeros": "All scores of the row are 0: leave it out.",
    "by column": "The columns do: the file needs a row for each case.",
    "other column": "A column holds whole numbers: correct `scores` if it holds labels or row numbers.",
    "percentages": "They look like percentages: `rescale=True` divides each row by its sum.",
    "rounded": "They look like counts or rounded percentages: `rescale=True` divides each row by its sum.",
    "logits": "They look like logits: add `logits=True`.",
    "cumulative": "They look cumulative: take differences.",
    None: "If they were rounded, add `rescale=True`: each row is then divided by its sum.",
}
_WEIGHTS_ARE = "a weight is a likelihood ratio, finite and 0 or larger: correct it, or leave such rows out."
_NEARLY = 1e-4
FULL_SETS = "predict them with `unseen_groups='full'`, which gives them all labels"


class FirstFile(NamedTuple):
    """The first of several files. The others must have the same columns."""

    name: str
    schema: pa.Schema


class FileRows:
    """The rows of a file, read when they are asked for; a :class:`~ordinalrisk.execution.fold.Part`.

    It can be pickled, and opens the file again wherever it is read.
    """

    def __init__(
        self,
        place: str,
        columns: ScoreColumns,
        classes: Sequence[Any] | None = None,  # without them, no label is read
        keep: Sequence[str] = (),  # other columns to read
        *,
        groups: Sequence[Any] | None = None,  # of a calibration; a file may spell them differently
        unseen_groups: str = "error",  # or another value: another group keeps its name
        for_unseen: str = FULL_SETS,  # what to do with rows of such groups
        written: FormatOptions = FormatOptions(),  # noqa: B008 - it has no state
        source: Source | None = None,  # if the file is open already
        first: FirstFile | None = None,  # the file that this one must be like
        part: int = 0,
        first_row: int = 0,
        recalibration: Recalibration | None = None,
        partitions: Mapping[str, tuple[str, Sequence[Any]]] | None = None,  # columns of groups, and these
    ) -> None:
        self.recalibration = recalibration
        self.only: NDArray[np.bool_] | None = None  # which rows of the file to yield, if not all
        self.scores_are_raw = False  # whether to leave scores as they are, for a map to be fitted
        self.place, self.columns, self.keep = place, columns, list(keep)
        self.part, self.first_row = part, first_row
        self._classes = None if classes is None else as_classes(list(classes))
        self._groups, self._unseen_groups, self._for_unseen = groups, unseen_groups, for_unseen
        self._partitions = partitions or {}
        self._written, self._first = written, first
        self.share_read = 0.0
        if source is not None:
            self.__dict__["source"] = self._checked(source)

    @property
    def name(self) -> str:
        return self.source.name if "source" in self.__dict__ else self.place

    @cached_property
    def source(self) -> Source:
        if not exists(self.place):
            raise FileError(
                f"{self.place}: there is no such file for a worker; name what all of them can read."
            )
        return self._checked(source_at(self.place, self._written))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "source"}

    @property
    def kind(self) -> str:
        """What the scores are, for a map."""
        return "logits" if self.columns.logits else "probabilities"

    def count_rows(self) -> int:
        if self.source.n_rows is not None:
            return self.source.n_rows
        return sum(batch.num_rows for batch in self.source.batches([self.columns.scores[0]]))

    def batches(self) -> Generator[Batch, None, None]:
        columns, n_rows = self.columns, 0
        label = None if self._classes is None else columns.label
        others = filter(None, (label, columns.group, columns.cluster, columns.weight))
        partitions = (column for column, _ in self._partitions.values())
        names = list(dict.fromkeys([*columns.scores, *self.keep, *others, *partitions]))
        for read in self.source.batches(names, numbers=columns.scores):
            with self._naming(n_rows):
                batch = self._batch(read, n_rows)
                if self.only is not None and self.recalibration is None and not self.scores_are_raw:
                    as_scores(
                        batch.proba, "probabilities"
                    )  # of all rows, so that an error has the right number
            only = None if self.only is None else np.flatnonzero(self.only[n_rows : n_rows + read.num_rows])
            n_rows += read.num_rows
            self.share_read = self.source.share_read(n_rows)
            if only is None or len(only):
                yield batch if only is None else batch.some(only)
        self.share_read = 1.0

    @contextmanager
    def naming(self, batch: Batch) -> Iterator[None]:
        with self._naming(batch.first_row - self.first_row):
            yield

    @contextmanager
    def _naming(self, n_before: int) -> Iterator[None]:
        try:
            yield
        except RowError as error:
            column, problem = self._explained(error)
            where = "" if column is None else f", column {column!r}"
            raise FileError(f"{self.name}: row {n_before + error.row + 1}{where}: {problem}") from None

    def _explained(self, error: RowError) -> tuple[str | None, str]:
        """Return the column and the problem, in terms of the file."""
        if isinstance(error, _ColumnError):
            return error.name, str(error)
        if error.looks_like == "probabilities":
            return None, (
                "the scores are probabilities, where the map of the scores needs logits: none is negative, "
                "and they sum to 1. Give the scores that the map is for; to fit one, say `logits=False`."
            )
        if error.column is None:
            return None, f"the scores sum to {error.value:.6g}, not to 1. {_REMEDIES[error.looks_like]}"
        kind = "logit" if self.columns.logits else "probability"
        is_nan = error.value != error.value
        problem = f"the {kind} is missing or NaN" if is_nan else f"{error.value} is not a {kind}"
        remedy = "If these are logits, add `logits=True`" if error.looks_like else "Correct it"
        return self.columns.scores[error.column], f"{problem}. {remedy}."

    def _checked(self, source: Source) -> Source:
        """Raise an error if the file lacks a column that is needed."""
        if self._first is not None:
            self._require_alike(source, self._first)
        for name in self.columns.scores:
            kind = source.schema.field(name).type
            if not source.types_are_guessed and not is_number(kind):
                raise FileError(
                    f"{source.name}: column {name!r} holds {kind}, not numbers; choose other `scores`."
                )
        return source

    def _require_alike(self, source: Source, first: FirstFile) -> None:
        types, expected = (dict(zip(s.names, s.types, strict=True)) for s in (source.schema, first.schema))
        if missing := [name for name in expected if name not in types]:
            raise FileError(
                f"{source.name}: has no column {missing[0]!r}, which {first.name} has (there are "
                f"{listing(source.schema.names)}); give all files the same columns."
            )
        if extra := [name for name in types if name not in expected]:
            raise FileError(
                f"{source.name}: has a column {extra[0]!r}, which {first.name} does not have; give all files "
                "the same columns."
            )
        for name in () if source.format == "csv" else self.keep:  # in CSV, values stay text
            kind, other = types[name], expected[name]
            unknown = source.types_are_guessed and pa.null() in (kind, other)
            if kind != other and not unknown:
                raise FileError(
                    f"{source.name}: column {name!r} holds {kind}, in {first.name} {other}; give all files "
                    "the same types, or leave it out with `keep`."
                )

    def _batch(self, read: pa.RecordBatch, n_before: int) -> Batch:
        group, cluster, weight = self.columns.group, self.columns.cluster, self.columns.weight
        return Batch(
            proba=self._matrix(read, n_before),
            labels=None if self._classes is None else self._labels(read),
            groups=None if group is None else self._names(read, group, "group", self._groups),
            clusters=None if cluster is None else self._names(read, cluster, "cluster"),
            sample_weight=None if weight is None else self._weights(read.column(weight), weight),
            partitions={
                name: self._names(read, column, "group", known)
                for name, (column, known) in self._partitions.items()
            },
            columns={name: read.column(name) for name in self.keep},
            part=self.part,
            first_row=self.first_row + n_before,
        )

    def _matrix(self, read: pa.RecordBatch, n_before: int) -> NDArray[Any]:
        scores = _side_by_side([read.column(name) for name in self.columns.scores])
        if self.recalibration is not None or self.scores_are_raw:
            scores = _rescaled(scores) if self.columns.rescale else scores
            if self.recalibration is not None:
                mapped: NDArray[Any] = self.recalibration(scores)
                return mapped
            as_scores(scores, self.kind)  # raises an error that names the row, of all rows
            return scores
        if not self.columns.logits:
            return _rescaled(scores) if self.columns.rescale else scores
        wrong = ~np.isfinite(scores)
        if wrong.any():
            row, column = (int(at) for at in np.argwhere(wrong)[0])
            raise RowError("a logit is not finite", row, float(scores[row, column]), column=column)
        if n_before == 0 and (scores >= 0).all() and (abs(scores.sum(axis=1) - 1) < _NEARLY).all():
            raise FileError(
                f"{self.name}: the scores are probabilities, not logits: every row sums to 1; say "
                "`logits=False`."
            )
        return softmax_of_rows(scores.astype(np.float64))

    def _labels(self, read: pa.RecordBatch) -> NDArray[np.int64]:
        column, classes = read.column(self.columns.label), self._classes
        assert classes is not None
        if pa.types.is_integer(column.type) and not column.null_count and classes.dtype.kind in "iu":
            try:
                return class_indices(column.to_numpy(), classes, len(column))
            except RowError as error:
                raise self._label_error(error.row, error.value) from None
        (values, where), position = _distinct_values(column), position_of_label(classes.tolist())
        positions = np.array([-1 if (k := position(value)) is None else k for value in values], np.int64)
        labels: NDArray[np.int64] = positions[where]
        if len(labels) and labels.min() < 0:
            row = int((labels < 0).argmax())
            raise self._label_error(row, column[row].as_py())
        return labels

    def _label_error(self, row: int, value: Any) -> RowError:
        assert self._classes is not None
        problem = (
            "the label is missing; leave such rows out."
            if is_blank(value)
            else f"the label {value!r} is not one of the classes {listing(self._classes.tolist())}; correct "
            "it, or calibrate with all labels in `classes`."
        )
        return _ColumnError(problem, row, value, self.columns.label)

    def _weights(self, column: pa.Array, name: str) -> NDArray[np.float64]:
        return _weights(column, name, self.source.spelling([name]))

    def _names(
        self, read: pa.RecordBatch, column: str, role: str, known: Sequence[Any] | None = None
    ) -> NDArray[Any]:
        """Return the name of each row's group or cluster, as the calibration spells it if known."""
        names, where = _distinct_values(_as_names(read.column(column)))
        position = None if known is None else position_of_name(known)
        used, first_rows = np.unique(where, return_index=True)
        for k, row in sorted(zip(used.tolist(), first_rows.tolist(), strict=True), key=lambda each: each[1]):
            name, problem = names[k], None
            if is_blank(name):
                problem = f"the {role} is missing; fill it in, or leave such rows out."
            elif isinstance(name, float) and not math.isfinite(name):
                problem = f"{name} can't name a {role}; correct it."
            elif position is not None and known is not None:
                if (at := position(name)) is not None:
                    names[k] = known[at]
                elif self._unseen_groups == "error":
                    problem = (
                        f"the group {name!r} has no calibration rows ({listing(known)} have some); calibrate "
                        f"with it, leave such rows out, or {self._for_unseen}."
                    )
            if problem is not None:
                raise _ColumnError(problem, row, name, column)
        named = np.empty(len(names), object)
        named[:] = names
        rows: NDArray[Any] = named[where]
        return rows


class _ColumnError(RowError):
    """A wrong value in a column that is not a score."""

    def __init__(self, message: str, row: int, value: Any, name: str) -> None:
        super().__init__(message, row, value)
        self.name = name


def _side_by_side(columns: Sequence[pa.Array]) -> NDArray[Any]:
    """Make a matrix of the columns: of 16 or 32 bits if all have them, else 64."""
    kinds = {column.type for column in columns}
    same = kinds.pop() if len(kinds) == 1 else None
    kind = same if same in (pa.float16(), pa.float32()) else pa.float64()
    return side_by_side([_in_memory(column.cast(kind, safe=False)) for column in columns])


def _in_memory(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return numbers as numpy has them, missing ones as NaN."""
    if column.null_count or not len(column):
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return values
    # to_numpy imports pandas where that is installed, which takes longer than to predict a small file
    return np.from_dlpack(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)


def _rescaled(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Divide each row by its sum. A row with an impossible sum stays and causes an error later."""
    wide = scores.astype(np.float64)
    total = wide.sum(axis=1, keepdims=True)
    np.divide(wide, total, out=wide, where=np.isfinite(total) & (total > 0))
    return wide


def _distinct_values(column: pa.Array) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the distinct values and None, and the position of each row's value among them."""
    encoded = column.dictionary_encode()
    values = [*encoded.dictionary.to_pylist(), None]
    return values, encoded.indices.cast(pa.int64()).fill_null(len(values) - 1).to_numpy()


def _as_names(column: pa.Array) -> pa.Array:
    """Keep text, numbers and booleans; make dates and the rest text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(column.indices, _as_names(column.dictionary))
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return column if plain or pa.types.is_null(kind) else column.cast(pa.string())


def _weights(column: pa.Array, name: str, spelling: Spelling) -> NDArray[np.float64]:
    if not is_number(column.type):
        column = pc.utf8_trim_whitespace(column)
        if spelling != PLAIN:
            column, row = spelling.plain(column)
            if row is not None:
                text = column[row].as_py()
                raise _ColumnError(f"{text!r} is not a number; {_WEIGHTS_ARE}", row, text, name)
    try:
        weights: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        for row, text in enumerate(column.to_pylist()):
            if not _spells_number(text):
                problem = "the weight is missing" if is_blank(text) else f"{text!r} is not a number"
                raise _ColumnError(f"{problem}; {_WEIGHTS_ARE}", row, text, name) from None
        raise
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        first = int(wrong.argmax())
        value = float(weights[first])
        problem = "the weight is missing or NaN" if math.isnan(value) else f"{value:g} is not a weight"
        raise _ColumnError(f"{problem}; {_WEIGHTS_ARE}", first, value, name)
    return weights


def _spells_number(text: Any) -> bool:
    try:
        pa.array([text]).cast(pa.float64(), safe=False)
    except pa.ArrowInvalid:
        return False
    return True
