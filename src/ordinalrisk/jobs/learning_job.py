"""Learn on rows of files that are set apart, before the others calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.spec import Spec
from ordinalrisk.execution.fold import Serial
from ordinalrisk.files.places import PIPE
from ordinalrisk.inputs.batch import Batch, Summary
from ordinalrisk.inputs.labels import as_classes
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.jobs.score_files import ScoreFiles, count_rows
from ordinalrisk.preparation.learning import Learned, drawn, fitted, unlearned
from ordinalrisk.preparation.recalibrator import recalibrator_of

if TYPE_CHECKING:
    from ordinalrisk.execution.dask.executor import DaskExecutor


def learned_from_files(
    files: ScoreFiles,
    executor: Serial | DaskExecutor,
    spec: Spec,
    recalibrate: Any,
    recalibration_rows: Any,
) -> Learned:
    """Set rows of all files apart and learn on them; leave the files with the other rows."""
    if any(part.place == PIPE for part in files.parts):
        raise ValueError("A pipe can be read once only, but rows are to be set apart first; name a file.")
    classes, columns, kind = as_classes(files.classes), files.columns, files.parts[0].kind
    recalibrator = None if recalibrate is None else recalibrator_of(recalibrate, classes=classes, scores=kind)
    lengths = executor.map_parts(files.parts, count_rows)
    n_rows, n_scores = sum(lengths), len(columns.scores)
    files.require_rows(n_rows)
    for part in files.parts:
        part.scores_are_raw = recalibrator is not None or spec.recalibration is not None
        part.recalibration = None  # learning applies it
    units = n_groups = None
    if columns.cluster is not None or columns.group is not None:
        names = executor.fold(files.parts, AllRows(scores=False)).all()
        if columns.cluster is not None:
            units = RowNames("clusters").numbered(names.clusters, n_rows)
        if columns.group is not None:
            n_groups = len({*names.groups.tolist()})
    apart = drawn(spec, classes, recalibration_rows, units, n_rows, n_groups or 1)
    if not apart.any():
        return replace(unlearned(spec, classes, n_rows, n_scores), apart=apart)
    _leave(files, apart, lengths)
    rows = executor.fold(files.parts, AllRows(scores=True)).all()
    if units is not None:
        rows = replace(rows, clusters=units[apart])
    learned = replace(fitted(spec, classes, rows, recalibrator), apart=apart)
    _leave(files, ~apart, lengths)
    return learned


def _leave(files: ScoreFiles, rows: NDArray[np.bool_], lengths: Sequence[int]) -> None:
    """Let each file yield only its part of these rows."""
    ends = np.cumsum([0, *lengths])
    for part, start, end in zip(files.parts, ends[:-1], ends[1:], strict=True):
        part.only = rows[start:end]


class AllRows(Summary):
    """All rows, in order: their scores, labels, groups and clusters, or only the last two."""

    def __init__(self, *, scores: bool) -> None:
        self._with_scores = scores
        self._batches: dict[tuple[int, int], Batch] = {}

    def add(self, batch: Batch) -> None:
        scores, labels = (batch.proba, batch.labels) if self._with_scores else (None, None)
        kept = Batch(scores, labels, batch.groups, batch.clusters)
        self._batches[batch.place] = kept

    def merge(self, other: AllRows) -> AllRows:
        both = copy(self)
        both._batches = {**self._batches, **other._batches}
        return both

    def all(self) -> Batch:
        """Return the rows in one batch."""
        batches = [batch for _, batch in sorted(self._batches.items())]
        names = ("proba", "labels", "groups", "clusters")
        parts = {name: [getattr(batch, name) for batch in batches] for name in names}
        joined: dict[str, Any] = {
            name: None if each[0] is None else np.concatenate(each) for name, each in parts.items()
        }
        return Batch(**joined)
