"""Files of scores as the parts of a fold: which files, which columns, and where they are read."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ordinalrisk.calibration.guarantees import warn_if_uncertified
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.composition.parts import Part
from ordinalrisk.controller import RiskController, require_calibrated
from ordinalrisk.execution.fold import READ_AHEAD, Serial
from ordinalrisk.files.find_columns import AskedColumns, ColumnFinder, Note
from ordinalrisk.files.formats import FileError, FormatOptions, checked_format
from ordinalrisk.files.label_names import listing
from ordinalrisk.files.opening import opened
from ordinalrisk.files.patterns import Places, expanded
from ordinalrisk.files.places import PIPE, exists, located
from ordinalrisk.files.readers import Source
from ordinalrisk.files.scored_rows import FileRows, FirstFile
from ordinalrisk.files.spelled_numbers import DECIMALS
from ordinalrisk.inputs.caller import level_of_caller
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.joint_controller import JointController

if TYPE_CHECKING:
    from ordinalrisk.execution.dask.executor import DaskExecutor

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""One path, URL or pattern, or several."""
Progress = Callable[[int, float], None]
"""A function that takes the number of rows (with Dask, of files) that are done, and the share of the work."""


@dataclass(frozen=True)
class Reading:
    """How files are read: their format, the cluster, and callbacks for notes and progress."""

    input_format: str | None = None
    dask: Any = None
    note: Note | None = None  # by default a note becomes a warning
    progress: Progress | None = None
    delimiter: str | None = None
    decimal: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        checked_format(self.input_format, "input_format")
        if self.decimal is not None and self.decimal not in DECIMALS:
            raise ValueError(f"`decimal` must be '.' or ','; got {self.decimal!r}.")
        sign = self.delimiter
        if sign is not None and (len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in '"\r\n'):
            raise ValueError(f"`delimiter` must be one sign, such as ';' or a tab; got {sign!r}.")

    @property
    def written(self) -> FormatOptions:
        """The user's options about the format of the files."""
        return FormatOptions(self.input_format, self.delimiter, self.decimal, self.sheet)

    def say(self, sentence: str) -> None:
        if self.note is not None:
            self.note(sentence)
        else:
            warnings.warn(sentence, stacklevel=level_of_caller())

    def places(self, paths: Paths) -> list[str]:
        """Return the files that paths and patterns name."""
        several = [paths] if isinstance(paths, str | os.PathLike) else paths
        known = isinstance(several, Sequence) and all(isinstance(each, str | os.PathLike) for each in several)
        if not known:
            raise ValueError(f"paths must be a path, a URL or a list of them; got a {type(paths).__name__}.")
        places = several if isinstance(several, Places) else expanded([os.fspath(path) for path in several])
        if not places:
            raise ValueError("There are no files to read; name at least one.")
        if PIPE in places and (self.dask is not None or len(places) > 1):
            raise ValueError("- is a pipe, which is read alone and on this machine; name files.")
        for place in places if self.dask is None else places[:1]:
            if place != PIPE and not exists(place):
                raise FileNotFoundError(f"there is no file {place}.")
        return places if self.dask is None else [absolute(place) for place in places]


@dataclass(frozen=True)
class ScoreFiles:
    """Files with the same columns; the classes are in order."""

    parts: list[FileRows]
    columns: ScoreColumns
    classes: list[Any]
    reading: Reading

    @property
    def serial(self) -> Serial:
        """Reads the files one after the other, on this machine."""
        return replace(
            READ_AHEAD,
            progress=lambda n_rows: self._show(n_rows, sum(part.share_read for part in self.parts)),
        )

    def _show(self, done: int, files_done: float) -> None:
        if self.reading.progress is not None:
            self.reading.progress(done, files_done / len(self.parts))

    @contextmanager
    def executor(self) -> Iterator[Serial | DaskExecutor]:
        """Connect to Dask, or read ahead on this machine."""
        if self.reading.dask is None:
            yield self.serial
            return
        from ordinalrisk.execution.dask.connecting import connected
        from ordinalrisk.execution.dask.executor import DaskExecutor

        dask = self.reading.dask
        with connected(dask) if isinstance(dask, str) else dask.as_current() as client:
            if isinstance(dask, str) and client.dashboard_link and self.reading.note is not None:
                self.reading.say(f"The work can be watched at {client.dashboard_link}")
            yield DaskExecutor(lambda n_parts: self._show(n_parts, n_parts))

    def require_rows(self, n_rows: int) -> None:
        if not n_rows:
            raise FileError(f"{self}: {'has' if len(self.parts) == 1 else 'have'} no rows.")

    def __str__(self) -> str:
        others = len(self.parts) - 1
        return f"{self.parts[0].name} and {others:,} more" if others else self.parts[0].name

    def number_rows(self, executor: Serial | DaskExecutor) -> None:
        """Set the number of the first row of each part; this reads files in text formats in full."""
        n_rows = 0
        for part, length in zip(self.parts, executor.map_parts(self.parts, count_rows), strict=True):
            part.first_row = n_rows
            n_rows += length


@contextmanager
def to_calibrate(
    paths: Paths,
    asked: AskedColumns,
    classes: Sequence[Any] | None,
    reading: Reading,
    *,
    maps_scores: bool = False,
) -> Iterator[ScoreFiles]:
    """Find the columns and the classes of files to calibrate with."""
    with _opened(paths, reading) as (places, source):
        columns, labels = ColumnFinder(source, asked, reading.say).to_calibrate(
            classes, maps_scores=maps_scores
        )
        _say_how(source, columns, reading)
        yield ScoreFiles(_parts(places, source, columns, labels), columns, labels, reading)


@contextmanager
def as_calibrated(
    controller: RiskController | JointController,
    paths: Paths,
    asked: AskedColumns,
    reading: Reading,
    *,
    labelled: bool,
    by_cluster: bool = False,
    by_group: bool = True,
    keep: Callable[[ColumnFinder, ScoreColumns], Sequence[str]] = lambda finder, columns: (),
    unseen_groups: str = "error",
) -> Iterator[ScoreFiles]:
    """Find the columns of a calibration in other files; with labels, clusters and groups if asked for."""
    partitions: dict[str, list[Any]] = {}
    if isinstance(controller, JointController):
        if labelled and asked.label is None:
            _require_one_label(controller)
        controller, partitions = _one_of(controller)
    require_calibrated(controller)
    require_no_point_labels(controller.spec)
    calibration, recalibration = controller.calibration_, controller.calibration_.recalibration
    groups = None if partitions else calibration.strata.groups
    used = {
        "group": groups is not None and by_group,
        "cluster": calibration.unit == "cluster" and by_cluster,
        "weight": calibration.shift == "covariates",
    }
    with with_columns(
        controller.columns_,
        controller.classes_.tolist(),
        paths,
        asked,
        reading,
        labelled=labelled,
        keep=keep,
        needs=[role for role, is_used in used.items() if is_used],
        n_scores=None if recalibration is None else recalibration.n_scores,
        partitions=partitions,
        groups=groups,
        unseen_groups=unseen_groups,
        recalibration=recalibration,
    ) as files:
        yield files


@contextmanager
def with_columns(
    saved: ScoreColumns | None,
    classes: list[Any],
    paths: Paths,
    asked: AskedColumns,
    reading: Reading,
    *,
    labelled: bool,
    keep: Callable[[ColumnFinder, ScoreColumns], Sequence[str]] = lambda finder, columns: (),
    needs: Collection[str] = (),
    n_scores: int | None = None,
    partitions: Mapping[str, list[Any]] | None = None,
    **options: Any,
) -> Iterator[ScoreFiles]:
    """Find the columns that were saved, or that the user names, in files; ``options`` apply to their rows."""
    partitions = partitions or {}
    with _opened(paths, reading) as (places, source):
        if len(partitions) == 1 and asked.group is not None:
            of_groups, asked = dict.fromkeys(partitions, asked.group), asked._replace(group=None)
        else:
            of_groups = {name: name for name in partitions}
        if asked.group is not None and partitions:
            raise ValueError(
                f"`group`: the guarantees have groups of their own, in the columns {listing([*of_groups])}; "
                "leave it out, and give the columns these names."
            )
        finder = ColumnFinder(source, asked, reading.say)
        columns = finder.as_calibrated(saved, classes, with_label=labelled, needs=needs, n_scores=n_scores)
        _say_how(source, columns, reading)
        labels = classes if labelled else None
        options["keep"] = keep(finder, columns)
        options["partitions"] = {
            name: (finder.groups(column), partitions[name]) for name, column in of_groups.items()
        }
        yield ScoreFiles(_parts(places, source, columns, labels, **options), columns, classes, reading)


def _one_of(joint: JointController) -> tuple[RiskController, dict[str, list[Any]]]:
    """Return the controller whose columns all guarantees share, and the groups of each column of groups."""
    parts, (first, *others) = joint.calibrated_parts, joint.parts_.items()
    for name, other in others:
        for what in ("columns", "recalibration", "shift", "unit"):
            mine, its = (_read_by(each, what) for each in (first[1], other))
            if mine != its:
                raise ValueError(
                    f"The guarantees {first[0]!r} and {name!r} need different columns of a file "
                    f"({_WHAT[what]} differ); calibrate both on files with the same columns, or "
                    "predict arrays."
                )
    groups: dict[str, list[Any]] = {}
    for part in parts:
        if part.partition is not None:
            known = groups.setdefault(part.partition, [])
            known += [name for name in part.calibration.strata.groups or () if name not in known]
    return first[1], groups


def _require_one_label(joint: JointController) -> None:
    """Raise an error if the guarantees were calibrated on labels of different columns."""
    found = {name: each.columns_.label for name, each in joint.parts_.items() if each.columns_ is not None}
    first = next(iter(found), "")
    for name, label in found.items():
        if label != found[first]:
            raise ValueError(
                f"`label`: the guarantee {first!r} is about the labels in the column {found[first]!r}, "
                f"{name!r} about those in {label!r}; name the column if they mean the same, or evaluate each "
                "guarantee by itself."
            )


_WHAT = {
    "columns": "their scores, clusters or weights",
    "recalibration": "the maps of their scores",
    "shift": "their weights",
    "unit": "their clusters",
}


def _read_by(controller: RiskController, what: str) -> Any:
    """Return what decides how the rows of a file are read, without the groups."""
    if what == "columns":
        return None if (columns := controller.columns_) is None else replace(columns, group=None, label="")
    return getattr(controller.calibration_, what)


@contextmanager
def _opened(paths: Paths, reading: Reading) -> Iterator[tuple[list[str], Source]]:
    """Open the first of the files; the others are opened when they are read."""
    places = reading.places(paths)
    with opened(places[0], reading.written) as source:
        yield places, source


def _say_how(source: Source, columns: ScoreColumns, reading: Reading) -> None:
    """Say what is unusual about the first file; the others must be written like it."""
    numbers = [*columns.scores, *filter(None, [columns.weight])]
    for sentence in source.remarks(numbers):
        reading.say(sentence)


def _parts(
    places: list[str],
    source: Source,
    columns: ScoreColumns,
    classes: Sequence[Any] | None,
    **options: Any,
) -> list[FileRows]:
    first, written = FirstFile(places[0], source.schema), source.written_as(columns.scores)
    return [
        FileRows(
            place,
            columns,
            classes,
            **options,
            written=written,
            source=None if part else source,
            first=first if part else None,
            part=part,
        )
        for part, place in enumerate(places)
    ]


def require_no_point_labels(spec: Spec) -> None:
    """Refuse a growth rule that needs the caller's point labels, which are in no column of a file."""
    if not spec.growth_is_open and spec.growth.point == "given":
        raise ValueError(
            'A job needs a growth rule that finds its own point labels; this one has point="given". Take '
            "another point, or pass arrays to RiskController.calibrate and predict_set."
        )


def count_rows(part: FileRows, _: Serial) -> int:
    return part.count_rows()


def require_file(part: FileRows, _: Serial) -> None:
    """Raise an error if a file can't be opened or differs from the first."""
    part.source  # noqa: B018 - opening it is the check


def absolute(place: str) -> str:
    """Return a place that means the same in another folder, where a worker may be."""
    file = located(place)
    return os.path.abspath(file) if isinstance(file, Path) else place


def parts_of(controller: RiskController | JointController) -> list[Part]:
    """Return the calibrated guarantees of a controller."""
    if isinstance(controller, JointController):
        return [*controller.calibrated_parts]
    return [Part("", controller.spec, controller.calibration_)]


C = TypeVar("C", bound=RiskController | JointController)


def at_risk(controller: C, alpha: Any) -> C:
    """Return the controller for another risk, if one is given; warn if it needs more calibration rows."""
    if alpha is None:
        return controller
    if isinstance(controller, JointController):
        raise ValueError(
            "`alpha`: each guarantee of a joint calibration has its own; calibrate anew and join again."
        )
    controller.threshold_at(alpha)  # which names the risks that are known
    spec = replace(controller.spec, alpha=alpha)
    warn_if_uncertified(spec.thresholds(controller.calibration_), stacklevel=3)
    found: Any = RiskController.of(spec, controller.calibration_)
    return cast(C, found)
