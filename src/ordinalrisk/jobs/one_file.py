"""Calibrate, predict and evaluate on files larger than memory.

One batch of rows is worked on while the next is read and the last is written. Nothing is kept of a batch but
its steps (to calibrate) or its counts (to evaluate).
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ordinalrisk.calibration.accumulate import RowExtras
from ordinalrisk.calibration.fingerprint import Fingerprint, of_parts
from ordinalrisk.controller import RiskController
from ordinalrisk.evaluation.evaluation import StratumLosses
from ordinalrisk.files.find_columns import is_missing, is_number, listing, position_of_label, position_of_name
from ordinalrisk.files.formats import FileError, compression_of, format_by_name
from ordinalrisk.files.places import StoredFile
from ordinalrisk.files.readers import Source
from ordinalrisk.files.writers import writing
from ordinalrisk.growth.kernels.cpu import side_by_side
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.labels import Classes, as_classes, class_indices
from ordinalrisk.inputs.matrix import RowError
from ordinalrisk.inputs.random_rows import generator_at
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.probabilities import softmax

if TYPE_CHECKING:
    from ordinalrisk.report import ReportSummary

ADDED = ("lower", "upper", "size")
BATCHES_AHEAD = 2
BATCHES_BEHIND = 8  # as many as make a row group, which is written in one go
_REMEDIES = {
    "percentages": "They look like percentages: divide them by 100.",
    "logits": "They look like logits: add --logits.",
    "cumulative": "They look cumulative: take differences.",
    None: "If they were rounded, add --rescale: each row is then divided by its sum.",
}
_NO_WEIGHT = "a weight is a likelihood ratio, finite and 0 or larger: correct it, or leave such rows out."
_NEARLY = 1e-4
Item = TypeVar("Item")
Progress = Callable[[int], None]
"""Takes the number of rows that are done."""


class Rows(NamedTuple):
    """Some rows of a file: probabilities, positions of true labels, columns that are kept, and the rest."""

    proba: NDArray[Any]
    labels: NDArray[np.int64]
    kept: pa.RecordBatch
    extras: RowExtras


class FileRows:
    """The rows of a file in batches, read ahead.

    Parameters
    ----------
    source : Source
        The file.
    columns : ScoreColumns
        Where its scores, labels and all else are.
    classes : sequence, optional
        The labels in order. Without, no label is read.
    keep : sequence of str
        Other columns to read.
    progress : callable
        Told how many rows are done.
    groups : sequence, optional
        The groups that a calibration knows: rows have these names, if they say the same, such as text that
        spells out a number.
    unseen_groups : {"error", "full"}
        Whether another group is an error, or keeps its name.
    may_be_empty : bool
        Whether there may be no rows, as in one of many files.
    """

    def __init__(
        self,
        source: Source,
        columns: ScoreColumns,
        classes: Sequence[Any] | None = None,
        keep: Sequence[str] = (),
        progress: Progress = lambda n_rows: None,
        groups: Sequence[Any] | None = None,
        unseen_groups: str = "error",
        may_be_empty: bool = False,
    ) -> None:
        self._groups, self._unseen_groups, self._may_be_empty = groups, unseen_groups, may_be_empty
        self.source, self.columns, self.keep = source, columns, list(keep)
        self._classes = None if classes is None else as_classes(list(classes))
        self._progress = progress
        self._before = 0
        for name in columns.scores:
            kind = source.schema.field(name).type
            if not source.types_are_guessed and not is_number(kind):
                raise FileError(
                    f"{source.name}: column {name!r} holds {kind}, not numbers; choose other --scores."
                )

    @contextmanager
    def batches(self) -> Iterator[Iterator[Rows]]:
        """The rows, batch by batch; a wrong one is said with its place in the file.

        Whatever happens, nothing is read any more afterwards.
        """
        with closing(self._batches()) as batches:
            try:
                yield batches
            except RowError as error:
                raise FileError(f"{self._place(error)}: {self._problem(error)}") from None

    def _batches(self) -> Generator[Rows, None, None]:
        wanted = [
            *self.columns.scores,
            *self.keep,
            *([self.columns.label] if self._classes is not None else []),
            *filter(None, (self.columns.group, self.columns.cluster, self.columns.weight)),
        ]
        batches = self.source.batches(list(dict.fromkeys(wanted)), numbers=self.columns.scores)
        self._before = 0
        with closing(_ahead(batches)) as ahead:
            for batch in ahead:
                kept, extras = batch.select(self.keep), self._extras(batch)
                yield Rows(self._matrix(batch), self._labels(batch), kept, extras)
                self._before += batch.num_rows
                self._progress(self._before)
        if self._before == 0 and not self._may_be_empty:
            raise FileError(f"{self.source.name}: has no rows.")

    def _place(self, error: RowError) -> str:
        column = self.columns.label if isinstance(error, _LabelError) else None
        if isinstance(error, _ExtraError):
            column = error.name
        if error.column is not None:
            column = self.columns.scores[error.column]
        row = f"{self.source.name}: row {self._before + error.row + 1}"
        return row if column is None else f"{row}, column {column!r}"

    def _problem(self, error: RowError) -> str:
        if isinstance(error, _ExtraError):
            return str(error)
        if isinstance(error, _LabelError) and self._classes is not None:
            if is_missing(error.value):
                return "the label is missing; leave such rows out."
            known = listing(self._classes.tolist())
            return (
                f"the label {error.value!r} is not one of the classes {known}; correct it, or calibrate with "
                "all labels in --classes."
            )
        if error.column is None:
            return f"the scores sum to {error.value:.6g}, not to 1. {_REMEDIES[error.looks_like]}"
        kind = "logit" if self.columns.logits else "probability"
        what = (
            f"{error.value} is no {kind}" if error.value == error.value else f"the {kind} is missing or NaN"
        )
        return f"{what}. {'If these are logits, add --logits' if error.looks_like else 'Correct it'}."

    def _matrix(self, batch: pa.RecordBatch) -> NDArray[Any]:
        scores = _side_by_side([batch.column(name) for name in self.columns.scores])
        if self.columns.logits:
            return self._softmax(scores)
        return _rescaled(scores) if self.columns.rescale else scores

    def _softmax(self, logits: NDArray[Any]) -> NDArray[np.float64]:
        wrong = ~np.isfinite(logits)
        if wrong.any():
            row, column = (int(at) for at in np.argwhere(wrong)[0])
            raise RowError("a logit is not finite", row, float(logits[row, column]), column=column)
        if self._before == 0 and (logits >= 0).all() and (abs(logits.sum(axis=1) - 1) < _NEARLY).all():
            raise FileError(
                f"{self.source.name}: the scores are probabilities, not logits: every row sums to 1; say "
                "--probabilities."
            )
        return softmax(logits)

    def _labels(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        if self._classes is None:
            return np.empty(0, np.int64)
        column = batch.column(self.columns.label)
        if pa.types.is_integer(column.type) and not column.null_count and self._classes.dtype.kind in "iu":
            try:
                return class_indices(column.to_numpy(), self._classes, len(column))
            except RowError as error:
                raise _LabelError(str(error), error.row, error.value) from None
        encoded = column.dictionary_encode()
        position = position_of_label(self._classes.tolist())
        values = [*encoded.dictionary.to_pylist(), None]
        positions = np.array([-1 if (k := position(value)) is None else k for value in values], np.int64)
        where = encoded.indices.cast(pa.int64()).fill_null(len(values) - 1)
        labels: NDArray[np.int64] = positions[where.to_numpy()]
        if len(labels) and labels.min() < 0:
            row = int((labels < 0).argmax())
            raise _LabelError("a label is unknown", row, column[row].as_py())
        return labels

    def _extras(self, batch: pa.RecordBatch) -> RowExtras:
        group, cluster, weight = self.columns.group, self.columns.cluster, self.columns.weight
        return RowExtras(
            groups=None if group is None else self._names(batch, group, "group", self._groups),
            clusters=None if cluster is None else self._names(batch, cluster, "cluster"),
            sample_weight=None if weight is None else _weights(batch.column(weight), weight),
        )

    def _names(
        self, batch: pa.RecordBatch, column: str, role: str, known: Sequence[Any] | None = None
    ) -> NDArray[Any]:
        """A name for each row, which is that of a known group if it says the same."""
        encoded = batch.column(column)
        if not pa.types.is_dictionary(encoded.type):
            encoded = _as_names(encoded).dictionary_encode()
        names = [*_as_names(encoded.dictionary).to_pylist(), None]
        where = encoded.indices.cast(pa.int64()).fill_null(len(names) - 1).to_numpy()
        position = None if known is None else position_of_name(known)
        for k in _in_order_met(where):
            name = names[k]
            problem = None
            if is_missing(name):
                problem = f"the {role} is missing; fill it in, or leave such rows out."
            elif isinstance(name, float) and not math.isfinite(name):
                problem = f"{name} is no name of a {role}; correct it."
            elif position is not None and known is not None:
                if (at := position(name)) is not None:
                    names[k] = known[at]
                elif self._unseen_groups == "error":
                    problem = (
                        f"the group {name!r} has no calibration rows ({listing(known)} have some); calibrate "
                        "with it, leave such rows out, or predict them with --unseen-groups full, which "
                        "gives them all labels."
                    )
            if problem is not None:
                raise _ExtraError(problem, int((where == k).argmax()), name, column)
        named = np.empty(len(names), object)
        named[:] = names
        rows: NDArray[Any] = named[where]
        return rows


class _LabelError(RowError):
    """A label that is none of the classes."""


class _ExtraError(RowError):
    """What is wrong in the column of groups, clusters or weights, in the words of a file's reader."""

    def __init__(self, message: str, row: int, value: Any, name: str) -> None:
        super().__init__(message, row, value)
        self.name = name


def calibrate(controller: RiskController, rows: FileRows, class_weight: Any = None) -> RiskController:
    """``controller``, which knows its classes, calibrated on a file."""
    calibrator = controller.spec.calibrator(controller.classes, class_weight=class_weight)
    some_row_counts = rows.columns.weight is None
    with rows.batches() as batches:
        for batch in batches:
            calibrator.add(batch.proba, batch.labels, batch.extras)
            some_row_counts = some_row_counts or bool(batch.extras.sample_weight.any())
    if not some_row_counts:
        raise FileError(
            f"{rows.source.name}: column {rows.columns.weight!r} is 0 in every row; some row must count."
        )
    calibrated = RiskController.of(controller.spec, calibrator.finish(rows.columns))
    if warning := calibrated.guarantee().warning:
        warnings.warn(warning, stacklevel=2)
    return calibrated


class Predictor:
    """The intervals of a file's rows, batch by batch, however it is cut.

    Parameters
    ----------
    controller : RiskController
        Calibrated.
    alpha : number or mapping, optional
        Another risk than the one calibrated for.
    unseen_groups : {"error", "full"}
        What rows of groups without calibration rows get.
    seed : int, optional
        For randomized sets: one stream of coins for all batches.
    first_row : int
        How many rows come before, in other files: their coins are not tossed again.

    Attributes
    ----------
    n_rows, n_uncertified : int
        How many rows there were, and how many had weights so large that nothing could be certified for them.
    """

    def __init__(
        self,
        controller: RiskController,
        alpha: Any = None,
        *,
        unseen_groups: str = "error",
        seed: int | None = None,
        first_row: int = 0,
    ) -> None:
        self._controller, self._alpha, self._unseen_groups = controller, alpha, unseen_groups
        self._coins = None if seed is None else generator_at(first_row, seed)
        strata = controller.calibration_.strata
        guarantee = controller.guarantee(alpha)
        promised = zip(strata.parts, guarantee.parts or (guarantee,), strict=True)
        self._largest_weights = (
            [part.curve.weight * each.alpha / (part.curve.bound - each.alpha) for part, each in promised]
            if controller.calibration_.shift == "covariates"
            else []
        )
        self._group_numbers = None if strata.groups is None else RowNames("groups", strata.groups)
        self.n_rows = self.n_uncertified = 0

    def sets(self, rows: Rows) -> IntervalSet:
        """The intervals of some rows."""
        extras = rows.extras
        self.n_rows += len(rows.proba)
        self.n_uncertified += self._count_uncertified(extras)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*new rows have weights so large")
            return self._controller.predict_set(
                rows.proba,
                alpha=self._alpha,
                groups=extras.groups,
                unseen_groups=self._unseen_groups,
                sample_weight=extras.sample_weight,
                seed=self._coins,
            )

    def finish(self) -> None:
        """Warn of weights too large to certify anything, once for all batches."""
        warn_of_uncertified(self.n_uncertified, self.n_rows)

    def _count_uncertified(self, extras: RowExtras) -> int:
        """How many rows weigh more than the calibration rows of their group can answer for."""
        if not self._largest_weights:
            return 0
        weights = extras.sample_weight
        if self._group_numbers is None:
            group = np.zeros(len(weights), np.int64)
        else:
            group, _ = self._group_numbers.found(extras.groups, len(weights))
        return sum(
            int(np.count_nonzero(_exceeds(weights[group == number], largest)))
            for number, largest in enumerate(self._largest_weights)
        )


def warn_of_uncertified(n_uncertified: int, n_rows: int) -> None:
    """Warn of weights too large to certify anything, once for all rows."""
    if n_uncertified:
        warnings.warn(
            f"{n_uncertified:,} of {n_rows:,} rows have weights so large, beside those of the calibration "
            "rows, that nothing can be certified for them: their sets are the full scale.",
            stacklevel=3,
        )


def _exceeds(weights: NDArray[np.float64], largest: Fraction) -> NDArray[np.bool_]:
    """Exactly: the float next to a rational may lie on either side of it."""
    near = float(largest)
    return weights > near if Fraction(near) <= largest else weights >= near


class Evaluated(NamedTuple):
    """The losses of a file's rows, and whether they are the very rows of the calibration."""

    losses: StratumLosses
    calibrated_on: bool


class Counted(NamedTuple):
    """What is kept of labelled rows that were predicted: of one file, or of several that follow each other.

    A file with more rows than the calibration had is another one, and has no ``digests``.
    """

    losses: StratumLosses
    n_rows: int
    n_uncertified: int
    digests: tuple[str | None, ...]

    @classmethod
    def merged(cls, parts: Sequence[Counted]) -> Counted:
        """Those of all parts, which are left as they are."""
        losses = deepcopy(parts[0].losses)
        for part in parts[1:]:
            losses.merge(part.losses)
        return cls(
            losses,
            sum(part.n_rows for part in parts),
            sum(part.n_uncertified for part in parts),
            tuple(digest for part in parts for digest in part.digests),
        )

    def evaluated(self, controller: RiskController) -> Evaluated:
        """With what else there is to say of all rows."""
        warn_of_uncertified(self.n_uncertified, self.n_rows)
        known = [digest for digest in self.digests if digest is not None]
        same = self.n_rows == controller.n_rows_ and len(known) == len(self.digests)
        return Evaluated(self.losses, same and of_parts(known) == controller.data_blake3_)


def evaluate(
    controller: RiskController, rows: FileRows, alpha: Any = None, *, seed: int | None = None
) -> Evaluated:
    """How a file's rows, whose labels are known, were predicted."""
    return counted(controller, rows, alpha, seed=seed).evaluated(controller)


def counted(
    controller: RiskController,
    rows: FileRows,
    alpha: Any = None,
    *,
    seed: int | None = None,
    first_row: int = 0,
) -> Counted:
    """What is kept of a file's rows."""
    losses, digest = StratumLosses(controller.calibration_), Fingerprint()
    predictor = Predictor(controller, alpha, seed=seed, first_row=first_row)
    n_rows, n_calibrated = 0, controller.n_rows_
    with rows.batches() as batches:
        for batch in batches:
            losses.add(batch.labels, predictor.sets(batch), batch.extras)
            n_rows += len(batch.proba)
            if n_rows <= n_calibrated:  # else they are other rows, and need no fingerprint
                digest.update(batch.proba, batch.labels)
    digests = (digest.hexdigest() if n_rows <= n_calibrated else None,) if n_rows else ()
    return Counted(losses, n_rows, predictor.n_uncertified, digests)


def summarise(summary: ReportSummary, rows: FileRows, classes: Classes) -> None:
    """Take a file's rows into a report, with the columns that are kept as what to show of them."""
    with rows.batches() as batches:
        for batch in batches:
            cases = dict(zip(batch.kept.schema.names, batch.kept.columns, strict=True))
            extras = batch.extras
            summary.add(
                batch.proba,
                classes[batch.labels],
                cases,
                extras.groups,
                extras.clusters,
                extras.sample_weight,
            )


def predict(
    controller: RiskController,
    rows: FileRows,
    target: Path | StoredFile,
    *,
    alpha: Any = None,
    prefix: str = "",
    given_format: str | None = None,
    unseen_groups: str = "error",
    seed: int | None = None,
    first_row: int = 0,
    safe_csv: bool = False,
) -> Predicted:
    """Write the kept columns and the interval of each row; ``first_row`` is as for :class:`Predictor`.

    Weights too large to certify anything are counted; who has all files says so.
    """
    added = [prefix + name for name in ADDED]
    for name in added:
        if name in rows.keep:
            raise FileError(
                f"{rows.source.name}: already has a column {name!r}; keep other columns with --keep, or name "
                "the new ones otherwise with --prefix."
            )
    labels = _LabelType(controller.classes_)
    kept = [rows.source.field_as_read(name) for name in rows.keep]
    types = (labels.type, labels.type, pa.from_numpy_dtype(_narrowest(len(controller.classes_))))
    filled = [pa.field(name, kind, nullable=False) for name, kind in zip(added, types, strict=True)]
    schema = pa.schema([*kept, *filled])
    target_format = given_format or format_by_name(target.name) or "csv"
    if compression_of(target.name) and target_format in ("parquet", "arrow"):
        raise ValueError(
            f"--out: {target}: {target_format} is not compressed as a whole; choose a name without "
            f"{target.suffix}."
        )
    _require_writable(schema, rows, target_format)
    n_rows = n_labels = n_single = 0
    predictor = Predictor(controller, alpha, unseen_groups=unseen_groups, seed=seed, first_row=first_row)
    with (
        writing(target, schema, given_format, added, safe_csv) as writer,
        _behind(writer.write) as write,
        rows.batches() as batches,
    ):
        for batch in batches:
            sets = predictor.sets(batch)
            size = sets.size.astype(_narrowest(len(controller.classes_)))
            ends = labels.array(sets.lower_index), labels.array(sets.upper_index), pa.array(size)
            write(pa.RecordBatch.from_arrays([*batch.kept.columns, *ends], schema=schema))
            n_rows += len(size)
            n_labels += int(size.sum())
            n_single += int(np.count_nonzero(size == 1))
    return Predicted(n_rows, n_labels, n_single, predictor.n_uncertified)


class Predicted(NamedTuple):
    """How many rows were predicted, how many labels their sets hold, how many sets are a single label.

    The last number is that of rows whose weights were so large that nothing could be certified for them.
    """

    n_rows: int
    n_labels: int
    n_single: int
    n_uncertified: int


class _LabelType:
    """Labels as an Arrow column: whole numbers in few bytes, text once in an ordered dictionary."""

    def __init__(self, classes: Classes) -> None:
        self._numbers = _narrowed(classes) if classes.dtype.kind in "iuf" else None
        self._names = pa.array([str(label) for label in classes.tolist()])
        self._index = _narrowest(len(classes))
        self.type = (
            pa.dictionary(pa.from_numpy_dtype(self._index), pa.string(), ordered=True)
            if self._numbers is None
            else pa.from_numpy_dtype(self._numbers.dtype)
        )

    def array(self, index: NDArray[np.int32]) -> pa.Array:
        """The labels at these positions."""
        if self._numbers is not None:
            return pa.array(self._numbers.take(index))
        return pa.DictionaryArray.from_arrays(pa.array(index.astype(self._index)), self._names, ordered=True)


def _narrowest(largest: int) -> np.dtype[Any]:
    """The smallest type of signed whole numbers that holds this one and its negative."""
    return np.min_scalar_type(-largest - 1)


def _narrowed(labels: Classes) -> Classes:
    if labels.dtype.kind == "f":
        return labels
    return labels.astype(_narrowest(max(abs(label) for label in labels.tolist())))


def _side_by_side(columns: Sequence[pa.Array]) -> NDArray[Any]:
    """The columns as a matrix: 16 or 32 bits if all have them, else 64."""
    kinds = {column.type for column in columns}
    same = kinds.pop() if len(kinds) == 1 else None
    kind = same if same in (pa.float16(), pa.float32()) else pa.float64()
    return side_by_side([column.cast(kind, safe=False).to_numpy(zero_copy_only=False) for column in columns])


def _as_names(column: pa.Array) -> pa.Array:
    """Text, numbers and booleans as they are; dates and whatever else as text."""
    kind = column.type
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return column if plain or pa.types.is_null(kind) else column.cast(pa.string())


def _in_order_met(codes: NDArray[np.int64]) -> list[int]:
    distinct, first = np.unique(codes, return_index=True)
    found: list[int] = distinct[np.argsort(first)].tolist()
    return found


def _weights(column: pa.Array, name: str) -> NDArray[np.float64]:
    """A weight for each row: finite, and 0 or larger."""
    if not is_number(column.type):
        column = pc.utf8_trim_whitespace(column)
    try:
        weights: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        for row, text in enumerate(column.to_pylist()):
            if not _spells_number(text):
                problem = "the weight is missing" if is_missing(text) else f"{text!r} is not a number"
                raise _ExtraError(f"{problem}; {_NO_WEIGHT}", row, text, name) from None
        raise
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        value = float(weights[row])
        problem = "the weight is missing or NaN" if math.isnan(value) else f"{value:g} is no weight"
        raise _ExtraError(f"{problem}; {_NO_WEIGHT}", row, value, name)
    return weights


def _spells_number(text: Any) -> bool:
    try:
        pa.array([text]).cast(pa.float64(), safe=False)
    except pa.ArrowInvalid:
        return False
    return True


def _rescaled(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Each row divided by its sum; rows for which that makes no sense as they are, to be refused as such."""
    wide = scores.astype(np.float64)
    total = wide.sum(axis=1, keepdims=True)
    np.divide(wide, total, out=wide, where=np.isfinite(total) & (total > 0))
    return wide


def _require_writable(schema: pa.Schema, rows: FileRows, target_format: str) -> None:
    """Text formats can't hold everything."""
    for field in schema:
        nested = target_format == "csv" and pa.types.is_nested(field.type)
        if nested or (target_format in ("csv", "jsonl") and _is_binary(field.type)):
            raise FileError(
                f"{rows.source.name}: column {field.name!r} holds {field.type}, which {target_format} can't; "
                "leave it out with --keep, or write another format."
            )


def _is_binary(kind: pa.DataType) -> bool:
    is_kind = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return any(of(kind) for of in is_kind) or any(map(_is_binary, inner))


def _ahead(items: Iterable[Item]) -> Generator[Item, None, None]:
    """The items, a few of them made while one is worked on."""
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1) as reader:
        pending = deque(reader.submit(next, iterator, end) for _ in range(BATCHES_AHEAD))
        while (item := pending.popleft().result()) is not end:
            pending.append(reader.submit(next, iterator, end))
            yield item  # type: ignore[misc]


@contextmanager
def _behind(work: Callable[[Item], None]) -> Iterator[Callable[[Item], None]]:
    """``work``, done on a few items while the next are made; an error comes up with an item after it."""
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
