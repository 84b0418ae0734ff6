"""``ordinalrisk monitor``: test, file after file, whether a calibration still keeps its guarantee."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk.cli import options, row_files, states, terminal
from ordinalrisk.files.formats import FileError
from ordinalrisk.files.places import StoredFile

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController
    from ordinalrisk.inputs.batch import Batch
    from ordinalrisk.losses.kinds import IntervalLoss
    from ordinalrisk.prediction.interval_set import IntervalSet
    from ordinalrisk.sequential.monitor import RiskMonitor
    from ordinalrisk.sequential.watched_files import ClusteredRows, FileFingerprints

_DELTA = "0.05"


def monitor(
    state: states.State,
    calibration: options.CalibrationFile,
    new: Annotated[str, typer.Argument(metavar="MONTH", help="File with scores and known labels, or -.")],
    alpha: Annotated[
        str | None,
        typer.Option(
            metavar="A", help="The risk to test; a share after --relative. [default: as calibrated]"
        ),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(metavar="D", help=f"Largest probability of a false alarm. [default: {_DELTA}]"),
    ] = None,
    label: options.Label = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    group: options.Group = None,
    cluster_col: options.ClusterColumn = None,
    weight_col: options.WeightColumn = None,
    random_state: options.RandomState = None,
    again: states.Again = False,
    json: states.Json = None,
    input_format: options.InputFormat = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    verify: options.Verify = None,
) -> None:
    """Watch whether the risk stays within alpha on new rows with known labels.

    Pass each file once, in the order of time; a file that comes twice is refused, also if it is re-sorted.
    A file can have rows of earlier months if the delay of a label does not depend on whether the set missed.
    All rows count together: to watch each group, keep a file and a state for each. Each call updates the
    state file; one process at a time can use it. Over all calls, the probability of a false alarm is at most
    D. Exit code 3 is the alarm.

    If the calibration is relative, the alarm is about the share of what could be lost. Rows of exempt classes
    are left out. If it is by cluster, a cluster counts once, with the mean loss of its rows: one call must
    have all its rows.

    \b
    Examples:
      ordinalrisk monitor watch.json cal.json january.parquet --delta 0.01
      ordinalrisk monitor watch.json cal.json february.parquet
    """  # noqa: D301
    places, known, saved, written = states.places_of(state, calibration, new, json)

    from ordinalrisk.files.find_columns import AskedColumns
    from ordinalrisk.inputs.batch import SummaryGroup
    from ordinalrisk.jobs.score_files import Reading, as_calibrated
    from ordinalrisk.prediction.predictor import Predictor, warn_of_uncertified
    from ordinalrisk.sequential.monitor import RiskMonitor
    from ordinalrisk.sequential.watched_files import ClusteredRows, FileFingerprints

    controller = options.loaded(saved, verify, random_state)
    asked = AskedColumns(scores, label, logits, rescale, group, cluster_col, weight_col)
    predictor, unit = Predictor.of(controller.spec, controller.calibration_), controller.calibration_.unit
    console, n_uncertified = terminal.printer(), 0

    groups = set[str]()

    def sets_of(batch: Batch) -> tuple[IntervalSet, int]:
        groups.update(map(str, [] if batch.groups is None else batch.groups))
        return predictor.sets(batch, random_state=random_state)

    def bet(batch: Batch) -> None:
        nonlocal n_uncertified
        sets, n_more = sets_of(batch)
        watch.update(controller.classes_[batch.labels], sets)
        n_uncertified += n_more

    def begun() -> RiskMonitor:
        return _begun(controller, alpha, delta)

    with states.resumed(known, "monitor", RiskMonitor, begun, console) as watch:
        _require_same(known, watch, controller, alpha, delta)
        before, rows = watch.n_rows_, FileFingerprints(watch.files_)
        with row_files.working_on(places, "Watching") as progress:
            separator = options.delimiter_of(delimiter)
            reading = Reading(input_format, None, terminal.note, progress, separator, decimal, sheet)
            with as_calibrated(controller, places, asked, reading, labelled=True, by_cluster=True) as files:
                if random_state is not None and len(files.parts) > 1:
                    files.number_rows(files.serial)
                if unit == "cluster":
                    found = files.serial.fold(
                        files.parts, SummaryGroup(files=rows, clusters=ClusteredRows(sets_of))
                    )
                else:
                    files.serial.fold(files.parts, rows, then=bet)
            states.remember(watch, files, rows, again)
            if unit == "cluster":
                n_uncertified = _watch_clusters(watch, found.clusters, str(files))
        _warn_of_calibration_rows(controller, rows)
        warn_of_uncertified(n_uncertified, sum(file.n_rows for file in rows.files))
    sentences = _in_words(watch, before, unit)
    strata = controller.calibration_.strata
    if len(groups) > 1 or strata.n_labels > 1:
        sentences.append("This watches all these rows together, not each group or class by itself.")
    elif groups:
        sentences.append(f"All new rows are of group {groups.pop()!r}.")
    states.finish(console, "monitor", watch, sentences, _facts(watch, before, unit), written)


def _begun(controller: RiskController, alpha: str | None, delta: str | None) -> RiskMonitor:
    from ordinalrisk.sequential.monitor import RiskMonitor

    if alpha is None and isinstance(controller.alpha, dict):
        terminal.fail("the calibration has a risk for each class; say which to watch with --alpha.")
    risk = controller.alpha if alpha is None else options.number(alpha, "--alpha")
    false_alarms = options.number(_DELTA if delta is None else delta, "--delta")
    promise: dict[str, Any] = {
        "relative": controller.relative,
        "exempt_classes": controller.exempt_classes,
    }
    try:
        return RiskMonitor(_counted(controller), risk, false_alarms, controller.classes_, **promise)
    except ValueError as error:
        terminal.fail(f"--{error}")  # the error begins with alpha or delta


def _counted(controller: RiskController) -> IntervalLoss:
    """Return the loss that the guarantee is about."""
    from ordinalrisk.losses.kinds import of_side

    return of_side(controller.loss, controller.side, len(controller.classes_))


def _require_same(
    state: Path | StoredFile,
    watch: RiskMonitor,
    controller: RiskController,
    alpha: str | None,
    delta: str | None,
) -> None:
    same_loss = watch.loss.to_dict() == _counted(controller).to_dict()
    if not same_loss or watch.classes_.tolist() != controller.classes_.tolist():
        what = "other classes than" if same_loss else "another loss than that of"
        terminal.fail(f"{state} watches {what} the calibration; name another STATE.")
    promise = controller.relative, {*controller.exempt_classes}
    if (watch.relative, {*watch.exempt_classes}) != promise:
        terminal.fail(
            f"{state} tests another guarantee than that of the calibration: --relative or --exempt-class "
            "differ; name another STATE."
        )
    states.require_same(state, "--alpha", alpha, watch.alpha)
    states.require_same(state, "--delta", delta, watch.delta)


def _watch_clusters(watch: RiskMonitor, clusters: ClusteredRows, name: str) -> int:
    """Pass all rows to the monitor, and return how many could not be certified; ``name`` names the files."""
    from ordinalrisk.inputs.probability_matrix import RowError

    labels, sets, names = clusters.rows()
    try:
        watch.update(labels, sets, clusters=names)
    except RowError as error:
        raise FileError(f"{name}: cluster {error.value!r}{str(error).partition(' that')[2]}") from None
    return clusters.n_uncertified


def _warn_of_calibration_rows(controller: RiskController, new: FileFingerprints) -> None:
    if controller.data_blake3_ in [file.blake3 for file in new.files]:
        warnings.warn(
            "These are the calibration rows: the threshold was chosen on them, so their loss is lower than "
            "that of new rows.",
            stacklevel=2,
        )


def _facts(watch: RiskMonitor, before: int, unit: str) -> dict[str, Any]:
    """Return the numbers of ``--json`` that only a monitor has; a risk is null before the first row."""
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text

    known = watch.risk_ == watch.risk_
    return {
        "unit": unit,
        "new_rows": watch.n_rows_ - before,
        "exempt_rows": watch.n_exempt_,
        "alpha": decimal_text(as_fraction(watch.alpha)),
        "relative": watch.relative,
        "risk": watch.risk_ if known else None,
        "recent_risk": watch.recent_risk_ if known else None,
    }


def _in_words(watch: RiskMonitor, before: int, unit: str) -> list[str]:
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text
    from ordinalrisk.sequential.betting_run import MOST_RECENT

    alpha, delta = (decimal_text(as_fraction(value)) for value in (watch.alpha, watch.delta))
    n_rows, recent = watch.n_rows_, min(watch.n_rows_, MOST_RECENT)
    what, promised = "mean loss", f"an expected loss of at most {alpha}"
    if watch.relative:
        what = "loss, as a share of what could be lost,"
        promised = f"an expected loss of at most {alpha} of what could be lost"
    seen = f"{n_rows:,} {unit}s, {n_rows - before:,} of them new"
    left_out = [f"{watch.n_exempt_:,} rows of exempt classes are left out."] if watch.n_exempt_ else []
    if not watch.alarm_:
        return [
            f"No alarm after {seen}. The {what} is {watch.risk_:.4g}. The evidence against {promised} is "
            f"{watch.evidence_:.3g}; an alarm needs 1/delta = {float(1 / as_fraction(watch.delta)):.4g}.",
            *left_out,
        ]
    last = "" if recent == n_rows else f", and {watch.recent_risk_:.4g} in the last {recent:,}"
    since = "" if watch.rise_row_ is None else f" It began to rise at about {unit} {watch.rise_row_:,}."
    return [
        f"Alarm at {unit} {watch.alarm_row_:,}: there is strong evidence against {promised}.",
        f"The {what} is {watch.risk_:.4g} in {seen}{last}.{since}",
        *left_out,
        f"The probability of a false alarm, ever, is at most {delta}. Sorted rows can cause a false alarm: "
        f"give the {unit}s in the order of prediction or in random order, not sorted by label or score.",
        "If they were not sorted, calibrate again on recent rows, and watch the new calibration with a new "
        "STATE.",
    ]
