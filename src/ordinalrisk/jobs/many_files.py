"""Many files on a cluster: each is one task, read and written by the worker that has it.

What one machine does with a file is done here with each. What comes back adds up, in the order of the files.
A task that is repeated, since its worker was lost, does the same again; a file that is written appears whole.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import pyarrow as pa
from dask.delayed import Delayed, delayed
from distributed import as_completed, futures_of
from distributed.scheduler import KilledWorker

from ordinalrisk import __version__
from ordinalrisk.controller import RiskController
from ordinalrisk.execution.calibrating_parts import PartsCalibrator
from ordinalrisk.execution.dask.partitions import AskedPartitions, merged_in_order, shared
from ordinalrisk.execution.part_steps import PartSteps
from ordinalrisk.files.atomic import TEMPORARY, replacing, stem
from ordinalrisk.files.find_columns import listing
from ordinalrisk.files.formats import FileError, compression_of, format_by_name, renamed
from ordinalrisk.files.interrupting import undone_if_interrupted
from ordinalrisk.files.places import exists, join, located, name_of, names_in, remove
from ordinalrisk.files.readers import Source, opened
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.labels import as_classes
from ordinalrisk.jobs import one_file
from ordinalrisk.report import ReportSummary

MANIFEST = "_ordinalrisk.json"
"""Written last, beside the files of a prediction: who finds it has them all."""

Progress = Callable[[int], None]
"""Takes the number of files that are done."""


@dataclass(frozen=True)
class Files:
    """Files with the same columns, in order.

    Parameters
    ----------
    places : sequence of str
        Paths or URLs that every worker can reach; those relative to the folder we are in are made absolute,
        since workers may be in another.
    columns : ScoreColumns
        Where scores, labels and all else are.
    schema : pyarrow.Schema
        The columns of the first file; every file must have them, in whatever order.
    classes : sequence, optional
        The labels in order. Without, no label is read.
    keep : sequence of str
        Other columns to read.
    given_format : str, optional
        The format of all files.
    groups, unseen_groups
        As for :class:`ordinalrisk.jobs.one_file.FileRows`.
    """

    places: Sequence[str]
    columns: ScoreColumns
    schema: pa.Schema
    classes: Sequence[Any] | None = None
    keep: Sequence[str] = ()
    given_format: str | None = None
    groups: Sequence[Any] | None = None
    unseen_groups: str = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", [_absolute(place) for place in self.places])

    @contextmanager
    def source(self, index: int) -> Iterator[Source]:
        """One of the files."""
        place = self.places[index]
        if not exists(place):
            raise FileError(f"{place}: there is no such file for a worker; name what all of them can read.")
        with opened(place, self.given_format) as source:
            yield source

    @contextmanager
    def rows(self, index: int) -> Iterator[one_file.FileRows]:
        """The rows of one of the files."""
        with self.source(index) as source:
            self._require_alike(source)
            yield one_file.FileRows(
                source,
                self.columns,
                self.classes,
                self.keep,
                groups=self.groups,
                unseen_groups=self.unseen_groups,
                may_be_empty=True,
            )

    def _require_alike(self, source: Source) -> None:
        first, names, expected = self.places[0], source.schema.names, self.schema.names
        for name in expected:
            if name not in names:
                raise FileError(
                    f"{source.name}: has no column {name!r}, which {first} has (there are {listing(names)}); "
                    "give all files the same columns."
                )
        for name in names:
            if name not in expected:
                raise FileError(
                    f"{source.name}: has a column {name!r}, which {first} has not; give all files the same "
                    "columns."
                )
        for name in () if source.format == "csv" else self.keep:  # whose values stay the text that they are
            kind, other = source.schema.field(name).type, self.schema.field(name).type
            unknown = source.types_are_guessed and pa.null() in (kind, other)
            if kind != other and not unknown:
                raise FileError(
                    f"{source.name}: column {name!r} holds {kind}, in {first} {other}; give all files the "
                    "same types, or leave it out with --keep."
                )


def calibrate(
    controller: RiskController,
    files: Files,
    *,
    class_weight: Any = None,
    more_alphas: Sequence[Any] = (),
    progress: Progress = lambda done: None,
) -> RiskController:
    """``controller``, which knows its classes, calibrated on all files."""
    calibrator = PartsCalibrator(
        controller.spec,
        as_classes(controller.classes),
        files.columns.group is not None,
        class_weight,
        more_alphas,
    )
    how, read = shared(calibrator), shared(files)
    parts = [steps_of_file(how, read, i) for i in range(len(files.places))]
    asked = AskedPartitions(parts)
    _watched(files, asked.parts, progress)
    if not asked.first_look().sizes.rows:
        raise FileError(f"{_all(files)} no rows.")
    calibrated = RiskController.of(controller.spec, calibrator.finish(asked, files.columns))
    if warning := calibrated.guarantee().warning:
        warnings.warn(warning, stacklevel=2)
    return calibrated


def evaluate(
    controller: RiskController,
    files: Files,
    alpha: Any = None,
    *,
    seed: int | None = None,
    progress: Progress = lambda done: None,
) -> one_file.Evaluated:
    """How the rows of all files, whose labels are known, were predicted."""
    controller = _at(controller, alpha)
    how, read = shared(controller), shared(files)
    first = first_rows(files) if seed is not None else [0] * len(files.places)
    parts = [losses_of_file(how, read, i, seed, row) for i, row in enumerate(first)]
    counted: one_file.Counted = _merged(files, parts, one_file.Counted.merged, progress)
    if not counted.n_rows:
        raise FileError(f"{_all(files)} no rows.")
    return counted.evaluated(controller)


def summary_of(
    controller: RiskController,
    files: Files,
    *,
    seed: int | None = None,
    progress: Progress = lambda done: None,
) -> ReportSummary:
    """All that a report on the rows of all files needs."""
    how, read = shared(controller), shared(files)
    parts = [summary_of_file(how, read, i, seed, row) for i, row in enumerate(first_rows(files))]
    summary = ReportSummary(controller, seed=seed).merge(_merged(files, parts, merge_summaries, progress))
    if not summary.n_rows:
        raise FileError(f"{_all(files)} no rows.")
    return summary


def predict(
    controller: RiskController,
    files: Files,
    folder: str,
    *,
    alpha: Any = None,
    prefix: str = "",
    target_format: str | None = None,
    seed: int | None = None,
    safe_csv: bool = False,
    progress: Progress = lambda done: None,
) -> one_file.Predicted:
    """Write a file of intervals into a folder for each of the files, and a list of them when all are there.

    What an earlier run wrote for the same files is replaced, so that a run can be repeated; other files in
    the folder are refused, since they would be taken for part of the output.
    """
    controller, folder = _at(controller, alpha), _absolute(folder)
    names = output_names(files.places, target_format, files.given_format)
    _make_ready(folder, names, files.places)
    how, read = shared(controller), shared(files)
    first = first_rows(files) if seed is not None else [0] * len(files.places)
    checks = [require_file(read, i) for i in range(len(files.places))]
    all_alike = merged_in_order(checks, len)  # nothing is written if one of them is not as the others
    parts = [
        prediction_of_file(all_alike, how, read, i, join(folder, names[i]), prefix, seed, row, safe_csv)
        for i, row in enumerate(first)
    ]
    with undone_if_interrupted(lambda: _tidy_up(folder, names)):
        done: tuple[one_file.Predicted, ...] = _computed(files, parts, progress)
    predicted = one_file.Predicted(*map(sum, zip(*done, strict=True)))
    if not predicted.n_rows:
        raise FileError(f"{_all(files)} no rows.")
    _tidy_up(folder, names)
    _require_here(folder, names)
    _write_manifest(controller, folder, names, done)
    return predicted


def _at(controller: RiskController, alpha: Any) -> RiskController:
    """Calibrated for another risk, if one is asked for; warnings of it are given here, not by workers."""
    if alpha is None:
        return controller
    controller.threshold_at(alpha)  # which names the risks that are known
    at_alpha = RiskController.of(controller.spec.at(alpha), controller.calibration_)
    if warning := at_alpha.guarantee().warning:
        warnings.warn(warning, stacklevel=3)
    return at_alpha


def first_rows(files: Files) -> list[int]:
    """How many rows come before each file; text formats must be read to tell."""
    read = shared(files)
    parts = [length_of_file(read, i) for i in range(len(files.places))]
    lengths = _computed(files, parts, lambda done: None)
    first = [0]
    for length in lengths[:-1]:
        first.append(first[-1] + length)
    return first


def output_names(places: Sequence[str], target_format: str | None, given_format: str | None) -> list[str]:
    """What the output of each file is called: like the file itself, with the ending of another format.

    Examples
    --------
    >>> output_names(["data/a.csv.gz", "s3://bucket/b.parquet"], "parquet", None)
    ['a.parquet', 'b.parquet']
    """
    names: dict[str, str] = {}
    for place in places:
        name = name_of(place)
        wanted = target_format or (given_format if format_by_name(name) is None else None)
        named = name if wanted is None else renamed(name, wanted)
        kind = format_by_name(named)
        if kind is None:
            raise FileError(f"{place}: does not tell a format by its name; give --output-format.")
        if compression_of(named) and kind in ("parquet", "arrow"):
            raise FileError(
                f"{place}: would be written to {named}, but {kind} is not compressed as a whole; give "
                f"--output-format {kind}."
            )
        if named in names:
            raise FileError(
                f"{place}: would be written to {named}, like {names[named]}; give the files different names."
            )
        names[named] = place
    return [*names]


def _watched(files: Files, parts: Sequence[Delayed], progress: Progress) -> None:
    """Wait for parts that are being computed, one for each file; the first that fails ends it all."""
    index = {part.key: i for i, part in enumerate(parts)}
    for done, future in enumerate(as_completed(futures_of(parts)), 1):
        try:
            if future.status != "finished":
                future.result()
        except KilledWorker:
            place = files.places[index[future.key]]
            raise FileError(
                f"{place}: the workers that had it were lost again and again; do they have enough memory?"
            ) from None
        progress(done)


def _computed(files: Files, parts: Sequence[Delayed], progress: Progress) -> tuple[Any, ...]:
    """What comes of each file."""
    computed = dask.persist(*parts, optimize_graph=False)
    _watched(files, computed, progress)
    found: tuple[Any, ...] = dask.compute(*computed)
    return found


def _merged(
    files: Files, parts: Sequence[Delayed], merged: Callable[[Sequence[Any]], Any], progress: Progress
) -> Any:
    """What comes of all files together."""
    *computed, whole = dask.persist(*parts, merged_in_order(parts, merged), optimize_graph=False)
    _watched(files, computed, progress)
    return whole.compute()


def _make_ready(folder: str, names: Sequence[str], places: Sequence[str]) -> None:
    """Refuse a folder with other files in it, and say that what is in it is not whole until it is."""
    target = located(folder)
    if target.exists() and not target.is_dir():
        raise FileError(f"{folder}: is a file; with a cluster, --out is a folder.")
    written = {_identity(join(folder, name)) for name in names}
    for place in places:
        if _identity(place) in written:
            raise FileError(f"{place}: is read, and would be lost; choose another folder for --out.")
    for name in names_in(folder):
        if name not in names and not name.startswith((".", "_")):
            raise FileError(
                f"{join(folder, name)}: is there already, and no output of these files; choose an empty "
                "folder."
            )
    if isinstance(target, Path):
        target.mkdir(parents=True, exist_ok=True)
    remove(join(folder, MANIFEST))
    _tidy_up(folder, names)


def _tidy_up(folder: str, names: Sequence[str]) -> None:
    """Remove what workers left behind that were lost while they wrote."""
    wanted = set(map(stem, names))
    for name in names_in(folder):
        if (found := TEMPORARY.fullmatch(name)) and found[1] in wanted:
            remove(join(folder, name))


def _require_here(folder: str, names: Sequence[str]) -> None:
    """A worker on another machine may have written to a folder of its own."""
    if missing := sorted({*names}.difference(names_in(folder))):
        raise FileError(
            f"{join(folder, missing[0])}: was written by a worker, but is not here; choose a folder for "
            "--out that all machines share."
        )


def _write_manifest(
    controller: RiskController, folder: str, names: Sequence[str], done: Sequence[one_file.Predicted]
) -> None:
    """Say that all is there."""
    document = {
        "format": "ordinalrisk prediction",
        "package_version": __version__,
        "calibration": controller.data_blake3_,
        "thresholds": [threshold.hex() for threshold in controller.thresholds_],
        "rows": sum(each.n_rows for each in done),
        "files": [{"name": name, "rows": each.n_rows} for name, each in zip(names, done, strict=True)],
    }
    with replacing(join(folder, MANIFEST)) as temporary:
        temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _absolute(place: str) -> str:
    file = located(place)
    return os.path.abspath(file) if isinstance(file, Path) else place


def _identity(place: str) -> Any:
    """Equal for two names of one file."""
    file = located(place)
    return os.path.realpath(file) if isinstance(file, Path) else file


def _all(files: Files) -> str:
    one = len(files.places) == 1
    return f"{files.places[0]}: has" if one else f"{files.places[0]} and {len(files.places) - 1} more: have"


@delayed(pure=False)
def steps_of_file(calibrator: PartsCalibrator, files: Files, index: int) -> PartSteps:
    """The steps of the losses of one file's rows."""
    collector = calibrator.collector()
    with files.rows(index) as rows, rows.batches() as batches:
        for batch in batches:
            collector.add(batch.proba, batch.labels, batch.extras)
    return collector.finish()


@delayed(pure=False)
def losses_of_file(
    controller: RiskController, files: Files, index: int, seed: int | None, first_row: int
) -> one_file.Counted:
    """What is kept of one file's rows."""
    with files.rows(index) as rows:
        return one_file.counted(controller, rows, seed=seed, first_row=first_row)


@delayed(pure=False)
def summary_of_file(
    controller: RiskController, files: Files, index: int, seed: int | None, first_row: int
) -> ReportSummary:
    """What a report keeps of one file's rows."""
    summary = ReportSummary(controller, seed=seed, first_row=first_row)
    with files.rows(index) as rows:
        one_file.summarise(summary, rows, controller.classes_)
    return summary


@delayed(pure=False)
def prediction_of_file(
    all_alike: Any,
    controller: RiskController,
    files: Files,
    index: int,
    target: str,
    prefix: str,
    seed: int | None,
    first_row: int,
    safe_csv: bool,
) -> one_file.Predicted:
    """Write the intervals of one file's rows, once all files are known to be alike."""
    with files.rows(index) as rows:
        return one_file.predict(
            controller,
            rows,
            located(target),
            prefix=prefix,
            unseen_groups=files.unseen_groups,
            seed=seed,
            first_row=first_row,
            safe_csv=safe_csv,
        )


@delayed(pure=False)
def require_file(files: Files, index: int) -> None:
    """Refuse a file that can't be opened or has other columns."""
    with files.rows(index):
        pass


@delayed(pure=False)
def length_of_file(files: Files, index: int) -> int:
    """How many rows one file has."""
    with files.source(index) as source:
        if source.n_rows is not None:
            return source.n_rows
        return sum(batch.num_rows for batch in source.batches([files.columns.scores[0]]))


def merge_summaries(parts: Sequence[ReportSummary]) -> ReportSummary:
    """Those of files that follow each other as one; the parts are left as they are, for another time."""
    whole = deepcopy(parts[0])
    for part in parts[1:]:
        whole.merge(part)
    return whole
