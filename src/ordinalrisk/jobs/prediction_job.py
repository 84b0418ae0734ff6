"""Predict files of any size."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

from ordinalrisk import __version__
from ordinalrisk.calibration.score_counts import BinCounts, difference_of, no_counts, score_counts
from ordinalrisk.composition.joint_sets import JointPredictor
from ordinalrisk.composition.parts import Part
from ordinalrisk.controller import RiskController
from ordinalrisk.execution.fold import Serial
from ordinalrisk.files.action_file import action_costs
from ordinalrisk.files.find_columns import AskedColumns, Note
from ordinalrisk.files.formats import checked_format
from ordinalrisk.files.interrupting import undone_if_interrupted
from ordinalrisk.files.output_folder import OutputFolder, output_names
from ordinalrisk.files.scored_rows import FileRows
from ordinalrisk.files.set_writer import Predicted, SetWriter, total, writing_sets
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.jobs.score_files import (
    Paths,
    Progress,
    Reading,
    ScoreFiles,
    absolute,
    as_calibrated,
    at_risk,
    parts_of,
    require_file,
)
from ordinalrisk.joint_controller import JointController
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.prediction.predictor import Predictor, warn_of_uncertified


def predict(
    controller: RiskController | JointController,
    paths: Paths,
    out: str | os.PathLike[str],
    *,
    alpha: Any = None,
    actions: Any = None,
    scores: str | Sequence[str] | None = None,
    logits: bool | None = None,
    rescale: bool = False,
    group: str | None = None,
    weight: str | None = None,
    unseen_groups: str = "error",
    random_state: int | None = None,
    keep: str | Sequence[str] | None = None,
    prefix: str = "",
    input_format: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    output_format: str | None = None,
    safe_csv: bool = False,
    drift_note: bool = True,
    dask: Any = None,
    note: Note | None = None,
    progress: Progress | None = None,
) -> Predicted:
    """Write the prediction set of each row of a file.

    The output has the columns that are kept, and ``lower``, ``upper`` (labels) and ``size``; with
    ``actions`` also ``action`` and ``worst_case``. Columns are found by the names that they had when
    calibrating, in any order. Files are written whole or not at all.

    Parameters
    ----------
    controller : RiskController or JointController
        Calibrated. Several columns of groups are found by their names.
    paths : path, URL or pattern, or several of them
        The files to predict, as for :func:`calibrate`.
    out : path or URL
        The file to write. With several files or with Dask, the folder for one file each, and for
        ``_ordinalrisk.json``, the list of these files, which is written last.
    alpha : number or mapping, optional
        Another risk than the one calibrated for.
    actions : path, mapping or data frame, optional
        Costs of actions: for each row, choose the action with the least worst-case cost over its set, as
        :meth:`ordinalrisk.IntervalSet.decide` does with the probabilities that the sets are made of. A file
        has the names of the actions in its first column, and a column of costs named after each label.
    scores, logits, rescale, group, weight
        As for :func:`calibrate`; by default as calibrated.
    unseen_groups : {"error", "full"}
        What to do with groups that had no calibration rows: raise an error, or predict all labels.
    random_state : int, optional
        For a randomized calibration: equal seeds give equal sets.
    keep : str or sequence of str, optional
        The columns to copy to the output: names or patterns. By default all but the scores.
    prefix : str
        Text before the names of the new columns.
    input_format, delimiter, decimal, sheet : str, optional
        As for :func:`calibrate`.
    output_format : {"csv", "parquet", "arrow", "jsonl"}, optional
        By default inferred from the name of the output; CSV in a pipe.
    safe_csv : bool
        In CSV, put ``'`` before text that spreadsheets run as a formula.
    drift_note : bool
        Add a note if the scores differ from those of the calibration rows: by a two-sample test with a
        probability of a false alarm of at most 0.001, and only if they differ by a lot.
    dask, note, progress
        As for :func:`calibrate`.

    Returns
    -------
    Predicted
        The number of rows, of labels in their sets and of single labels.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20
    >>> controller = RiskController(alpha=0.1).calibrate(proba, [0, 1, 1] * 20)
    >>> folder, rows = tempfile.mkdtemp(), [["a", 0.7, 0.2, 0.1], ["b", 0.1, 0.3, 0.6]]
    >>> pd.DataFrame(rows, columns=["id", "p0", "p1", "p2"]).to_csv(f"{folder}/new.csv", index=False)
    >>> predict(controller, f"{folder}/new.csv", f"{folder}/sets.csv", scores="p0,p1,p2").n_labels
    4
    >>> pd.read_csv(f"{folder}/sets.csv")
      id  lower  upper  size
    0  a      0      1     2
    1  b      1      2     2
    """
    out, asked = os.fspath(out), AskedColumns(scores, None, logits, rescale, group, weight=weight)
    checked_format(output_format, "output_format")
    reading = Reading(input_format, dask, note, progress, delimiter, decimal, sheet)
    with as_calibrated(
        controller,
        paths,
        asked,
        reading,
        labelled=False,
        keep=lambda finder, columns: finder.kept(keep, columns.scores),
        unseen_groups=unseen_groups,
    ) as files:
        controller = at_risk(controller, alpha)
        costs = None if actions is None else action_costs(actions, controller.classes_, out)
        predicted_sets = partial(
            _sets_of(controller),
            unseen_groups=unseen_groups,
            random_state=random_state,
        )
        folder, places = None, [out]
        if dask is not None or len(files.parts) > 1:
            names = output_names([part.place for part in files.parts], output_format, input_format)
            folder = OutputFolder(out if dask is None else absolute(out), names)
            places, output_format = folder.files, None
        writing = partial(
            writing_sets,
            classes=controller.classes_,
            actions=costs,
            prefix=prefix,
            given_format=output_format,
            safe_csv=safe_csv,
            may_be_empty=folder is not None,
        )
        work = partial(_write_part, predicted_sets, writing, places)
        if folder is None:
            with files.executor() as executor:
                written = executor.map_parts(files.parts, work)
        else:
            written = _write_into(folder, controller, files, work, random_state is not None)
    predicted = total([part.counts for part in written])
    seen = sum((part.scores for part in written), start=no_counts())
    differences = (difference_of(part.calibration, seen) for part in parts_of(controller))
    if drift_note and (sentence := next(filter(None, differences), None)):
        reading.say(f"{sentence} `drift_note=False` turns this note off.")
    warn_of_uncertified(predicted.n_uncertified, predicted.n_rows)
    return predicted


def _sets_of(controller: RiskController | JointController) -> Callable[..., tuple[IntervalSet, int]]:
    if isinstance(controller, JointController):
        return JointPredictor(parts_of(controller)).sets
    return Predictor.of(controller.spec, controller.calibration_).sets


class _WrittenPart(NamedTuple):
    """The counts of the sets written for a part, and of the uncertainty of its rows."""

    counts: Predicted
    scores: BinCounts


def _write_into(
    folder: OutputFolder,
    controller: RiskController | JointController,
    files: ScoreFiles,
    work: Callable[[FileRows, Serial], _WrittenPart],
    by_row_number: bool,
) -> list[_WrittenPart]:
    """Write one output for each file into a folder, and a list at the end; the files must be alike."""
    with files.executor() as executor:
        folder.make_ready([part.place for part in files.parts])
        if by_row_number:
            files.number_rows(executor)
        executor.map_parts(files.parts, require_file)
        with undone_if_interrupted(folder.tidy_up):
            written = executor.map_parts(files.parts, work)
    counts = [part.counts for part in written]
    files.require_rows(sum(count.n_rows for count in counts))
    of_each = {part.full_name: _identified(part) for part in parts_of(controller)}
    about = {
        "format": "ordinalrisk prediction",
        "package_version": __version__,
        **({"guarantees": of_each} if isinstance(controller, JointController) else of_each[""]),
    }
    folder.finish(about, [count.n_rows for count in counts])
    return written


def _identified(part: Part) -> dict[str, Any]:
    return {
        "calibration": part.calibration.data_blake3,
        "thresholds": [threshold.hex() for threshold in part.predictor.thresholds.values],
    }


def _write_part(
    predicted_sets: Callable[[Batch], tuple[IntervalSet, int]],
    writing: Callable[[FileRows, str], AbstractContextManager[SetWriter]],
    places: Sequence[str],
    rows: FileRows,
    reader: Serial,
) -> _WrittenPart:
    scores = no_counts()

    def write(batch: Batch) -> None:
        nonlocal scores
        writer.write(batch, *predicted_sets(batch))
        scores = scores + score_counts(batch.proba)

    with writing(rows, places[rows.part]) as writer:
        reader.map([rows], write)
    return _WrittenPart(writer.written, scores)
