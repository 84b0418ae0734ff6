"""Calibrate on files of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ordinalrisk.calibration.combinations import require_parts_suffice, require_theorem
from ordinalrisk.calibration.guarantees import warn_if_uncertified, warn_of_tiny_groups
from ordinalrisk.checks.findings import warn_of_findings
from ordinalrisk.controller import RiskController, require_controller
from ordinalrisk.execution.calibrate import calibrate as calibrate_parts
from ordinalrisk.files.find_columns import AskedColumns, Note
from ordinalrisk.files.formats import FileError
from ordinalrisk.inputs.labels import as_classes
from ordinalrisk.jobs.score_files import (
    Paths,
    Progress,
    Reading,
    ScoreFiles,
    require_no_point_labels,
    to_calibrate,
)


def calibrate(
    controller: RiskController | Callable[[list[Any]], RiskController],
    paths: Paths,
    *,
    label: str | None = None,
    scores: str | Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    logits: bool | None = None,
    rescale: bool = False,
    group: str | None = None,
    cluster: str | None = None,
    weight: str | None = None,
    class_ratios: Any = None,
    more_alphas: Sequence[Any] = (),
    recalibrate: Any = None,
    recalibration_rows: Any = None,
    input_format: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    dask: Any = None,
    note: Note | None = None,
    progress: Progress | None = None,
) -> RiskController:
    """Find the exact threshold on files with known labels.

    Files are streamed, and only the steps of each row's loss are kept. The result equals that of
    :meth:`ordinalrisk.RiskController.calibrate` on all rows, and has the names of the columns too.

    Parameters
    ----------
    controller : RiskController or callable
        The parameters of the calibration; it is not changed. Or a function that takes the classes of the
        file and returns a controller, for a loss that depends on them.
    paths : path, URL or pattern, or several of them
        Parquet, Arrow, CSV, JSON lines or Excel, such as ``"scores/*.parquet"``. All files have the same
        columns.
    label : str, optional
        The column of the true label. By default it is guessed from the names, as the scores are.
    scores : str or sequence of str, optional
        The columns of the scores in the order of the classes: names or a pattern such as ``"p*"``.
    classes : sequence, optional
        The labels in order. By default those of the controller, else inferred from the file.
    logits : bool, optional
        Whether the scores are logits. By default inferred from their names.
    rescale : bool
        Divide each row of scores by its sum, as for rounded probabilities or counts.
    group, cluster, weight : str, optional
        The columns of the groups, the clusters and the weights; see
        :meth:`ordinalrisk.RiskController.calibrate`.
    class_ratios, more_alphas
        As for :meth:`ordinalrisk.RiskController.calibrate`. Only Dask needs ``more_alphas`` in advance.
    recalibrate, recalibration_rows
        As for :meth:`ordinalrisk.RiskController.calibrate`, with the same rows set apart. For scores on
        another scale, give ``classes`` too. Files are read more than once, so a pipe is refused.
    input_format : {"csv", "parquet", "arrow", "jsonl", "excel"}, optional
        By default inferred from the name, else from the first bytes.
    delimiter, decimal, sheet : str, optional
        What separates the values of CSV, the decimal sign (``"."`` or ``","``), and the sheet of an Excel
        file. By default what the first rows show, which a note says, and the first sheet.
    dask : str or distributed.Client, optional
        Run on a Dask cluster: a client, the address of a scheduler, ``"local"`` or ``"local:4"``.
    note : callable, optional
        A function that takes a sentence about each guess. By default it becomes a warning.
    progress : callable, optional
        A function that takes the number of rows (with Dask, of files) that are done, and the share of the
        work.

    Returns
    -------
    RiskController
        A new, calibrated controller.

    Raises
    ------
    ValueError
        If something is wrong with a file; it names the file, the row and the column.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> rows = [[0.6, 0.3, 0.1, 0], [0.2, 0.5, 0.3, 1], [0.1, 0.2, 0.7, 1]] * 20
    >>> path = f"{tempfile.mkdtemp()}/scores.csv"
    >>> pd.DataFrame(rows, columns=["p0", "p1", "p2", "grade"]).to_csv(path, index=False)
    >>> columns = {"scores": "p0,p1,p2", "label": "grade", "classes": [0, 1, 2]}
    >>> calibrate(RiskController(alpha=0.1), path, **columns)
    RiskController(loss=WeightedLoss(), alpha=0.1, ...): threshold 0.2 from 60 rows
    """
    if isinstance(controller, type) or not callable(controller):
        require_controller(controller)
    asked = AskedColumns(scores, label, logits, rescale, group, cluster, weight)
    if classes is None and isinstance(controller, RiskController):
        own = controller.classes if controller.classes is not None else getattr(recalibrate, "classes", None)
        classes = None if own is None else as_classes(own).tolist()
    columns = {"groups": group, "clusters": cluster, "sample_weight": weight, "class_ratios": class_ratios}
    used = [name for name, column in columns.items() if column is not None]
    reading = Reading(input_format, dask, note, progress, delimiter, decimal, sheet)
    maps_scores = recalibrate is not None or (
        isinstance(controller, RiskController) and controller._asked.recalibration is not None
    )
    with to_calibrate(paths, asked, classes, reading, maps_scores=maps_scores) as files:
        made = controller if isinstance(controller, RiskController) else controller(files.classes)
        require_controller(made)
        asked_for, learned = made._asked, None  # a map that was learned before may have seen these rows
        spec = asked_for
        require_no_point_labels(spec)
        require_theorem([*spec.options, *used])
        if dask is not None:
            require_parts_suffice([*spec.options, *used])
        with files.executor() as executor, _naming_files(files):
            if spec.is_open(recalibrate, recalibration_rows):
                from ordinalrisk.jobs.learning_job import learned_from_files

                learned = learned_from_files(files, executor, spec, recalibrate, recalibration_rows)
                spec = learned.spec
            for part in files.parts:
                part.recalibration, part.scores_are_raw = spec.recalibration, False
            calibration, rows = calibrate_parts(
                spec,
                as_classes(files.classes),
                files.parts,
                executor,
                class_ratios=class_ratios,
                more_alphas=more_alphas,
                columns=files.columns,
                check=made.check,
            )
    calibrated = RiskController.of(spec, calibration)
    calibrated.check = made.check
    calibrated._remember(asked_for, learned)
    warn_of_tiny_groups(calibration, 2, ("group", "cluster"))
    warn_if_uncertified(calibrated._predictor.thresholds, stacklevel=2)
    warn_of_findings(spec, calibrated._predictor, rows, stacklevel=2)
    return calibrated


@contextmanager
def _naming_files(files: ScoreFiles) -> Iterator[None]:
    """Name the files and the column in errors about all rows."""
    try:
        yield
    except ValueError as error:
        if str(error).startswith("There are no rows"):
            files.require_rows(0)
        if str(error).startswith(every := "sample_weight is 0 in every row"):
            rest = str(error).removeprefix(every)
            raise FileError(f"{files}: column {files.columns.weight!r} is 0 in every row{rest}") from None
        raise
