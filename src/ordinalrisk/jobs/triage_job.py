"""Calibrate a triage, and decide, on files of any size."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ordinalrisk.execution.fold import Serial
from ordinalrisk.files.find_columns import AskedColumns, Note
from ordinalrisk.files.formats import checked_format
from ordinalrisk.files.scored_rows import FileRows
from ordinalrisk.inputs.labels import as_classes
from ordinalrisk.jobs.decision_writer import Decided, total, writing_decisions
from ordinalrisk.jobs.score_files import Paths, Progress, Reading, to_calibrate, with_columns
from ordinalrisk.triage.controller import TriageController

_TO_REFER = "refer them with `unseen_groups='refer'`"


def triage(
    controller: TriageController | Callable[[list[Any]], TriageController],
    paths: Paths,
    *,
    label: str | None = None,
    scores: str | Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    logits: bool | None = None,
    rescale: bool = False,
    group: str | None = None,
    input_format: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    note: Note | None = None,
    progress: Progress | None = None,
) -> TriageController:
    """Find the largest certified threshold of a triage on files with known labels.

    Files are streamed, and only the score and the loss of each row are kept. The result equals that of
    :meth:`ordinalrisk.TriageController.calibrate` on all rows, and has the names of the columns too.

    Parameters
    ----------
    controller : TriageController or callable
        The parameters; it is not changed. Or a function that takes the classes of the file and returns a
        controller, for a loss that depends on them.
    paths : path, URL or pattern, or several of them
        As for :func:`calibrate`.
    label, scores, classes, logits, rescale
        As for :func:`calibrate`.
    group : str, optional
        The column of the groups; see :meth:`ordinalrisk.TriageController.calibrate`.
    input_format, delimiter, decimal, sheet, note, progress
        As for :func:`calibrate`.

    Returns
    -------
    TriageController
        A new, calibrated controller.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> rows = [[0.9, 0.1, 0.0, 0], [0.1, 0.8, 0.1, 1], [0.3, 0.4, 0.3, 0]] * 100
    >>> path = f"{tempfile.mkdtemp()}/scores.csv"
    >>> pd.DataFrame(rows, columns=["p0", "p1", "p2", "grade"]).to_csv(path, index=False)
    >>> columns = {"scores": "p0,p1,p2", "label": "grade", "classes": [0, 1, 2]}
    >>> triage(TriageController(alpha=0.05), path, **columns)
    TriageController(loss=WeightedLoss(), alpha=0.05, delta=0.05): 66.7 % of 300 rows accepted
    """
    asked = AskedColumns(scores, label, logits, rescale, group)
    reading = Reading(input_format, None, note, progress, delimiter, decimal, sheet)
    if classes is None and isinstance(controller, TriageController) and controller.classes is not None:
        classes = as_classes(controller.classes).tolist()
    with to_calibrate(paths, asked, classes, reading) as files:
        made = controller if isinstance(controller, TriageController) else controller(files.classes)
        _require_triage(made)
        calibrated = made.uncalibrated()
        known = as_classes(files.classes)
        rows = files.serial.fold(files.parts, calibrated.empty_rows(known))
        files.require_rows(rows.n_rows)
        return calibrated.use_rows(rows, known, columns=files.columns, stacklevel=3)


def decide(
    controller: TriageController,
    paths: Paths,
    out: str | os.PathLike[str],
    *,
    scores: str | Sequence[str] | None = None,
    logits: bool | None = None,
    rescale: bool = False,
    group: str | None = None,
    unseen_groups: str = "error",
    keep: str | Sequence[str] | None = None,
    prefix: str = "",
    input_format: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    output_format: str | None = None,
    safe_csv: bool = False,
    note: Note | None = None,
    progress: Progress | None = None,
) -> Decided:
    """Accept or refer each row of a file.

    The output has the columns that are kept, and ``accepted``, ``label`` and ``model_risk``, the model's own
    risk of the label. The label of a referred row is missing. The file is written whole or not at all.

    Parameters
    ----------
    controller : TriageController
        Calibrated.
    paths : path or URL
        The file to read.
    out : path or URL
        The file to write.
    scores, logits, rescale, group
        As for :func:`triage`; by default as calibrated.
    unseen_groups : {"error", "refer"}
        What to do with groups that had no calibration rows: raise an error, or refer their rows.
    keep, prefix
        As for :func:`predict`.
    input_format, delimiter, decimal, sheet
        As for :func:`calibrate`.
    output_format, safe_csv
        As for :func:`predict`.
    note, progress
        As for :func:`calibrate`.

    Returns
    -------
    Decided
        The number of rows, and of accepted rows.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
    >>> controller = TriageController(alpha=0.05).calibrate(proba, y)
    >>> folder, rows = tempfile.mkdtemp(), [["a", 0.7, 0.2, 0.1], ["b", 0.3, 0.4, 0.3]]
    >>> pd.DataFrame(rows, columns=["id", "p0", "p1", "p2"]).to_csv(f"{folder}/new.csv", index=False)
    >>> decide(controller, f"{folder}/new.csv", f"{folder}/decided.csv", scores="p0,p1,p2")
    Decided(n_rows=2, n_accepted=1)
    >>> pd.read_csv(f"{folder}/decided.csv").iloc[:, :3]
      id  accepted  label
    0  a      True    0.0
    1  b     False    NaN
    """
    _require_triage(controller)
    controller.guarantee()  # which raises an error unless it is calibrated
    checked_format(output_format, "output_format")
    reading = Reading(input_format, None, note, progress, delimiter, decimal, sheet)
    groups = controller.groups_
    with with_columns(
        controller.columns_,
        controller.classes_.tolist(),
        paths,
        AskedColumns(scores, None, logits, rescale, group),
        reading,
        labelled=False,
        keep=lambda finder, columns: finder.kept(keep, columns.scores),
        needs=[] if groups is None else ["group"],
        groups=groups,
        unseen_groups=unseen_groups,
        for_unseen=_TO_REFER,
    ) as files:
        if len(files.parts) > 1:
            raise ValueError("decide reads one file at a time; call it for each.")

        def write_part(rows: FileRows, reader: Serial) -> Decided:
            with writing_decisions(
                rows, os.fspath(out), controller.classes_, prefix, output_format, safe_csv
            ) as writer:
                reader.map(
                    [rows], lambda batch: writer.write(batch, controller.decide_batch(batch, unseen_groups))
                )
            return writer.written

        return total(files.serial.map_parts(files.parts, write_part))


def _require_triage(controller: Any) -> None:
    if not isinstance(controller, TriageController):
        raise ValueError(f"controller must be a TriageController; got a {type(controller).__name__}.")
    if controller.point == "given":
        raise ValueError(
            'A job needs a label that follows from the scores; this triage has point="given". Take another '
            "point, or pass arrays to TriageController.calibrate and decide."
        )
