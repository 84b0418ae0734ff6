"""``ordinalrisk monitor``: test, file after file, whether a calibration still keeps its promise."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordinalrisk.cli import options, row_files, states, terminal
from ordinalrisk.files.formats import FileError
from ordinalrisk.files.places import StoredFile

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController
    from ordinalrisk.inputs.batch import Batch
    from ordinalrisk.saving.run_documents import WatchedFile
    from ordinalrisk.sequential.monitor import RiskMonitor

_ALARM = 3
_DELTA = "0.05"


def monitor(
    state: Annotated[str, typer.Argument(metavar="STATE", help="State file; created if it does not exist.")],
    calibration: options.CalibrationFile,
    new: Annotated[str, typer.Argument(metavar="MONTH", help="File with scores and known labels, or -.")],
    alpha: Annotated[
        str | None, typer.Option(metavar="A", help="The risk to watch. [default: the calibrated one]")
    ] = None,
    delta: Annotated[
        str | None, typer.Option(metavar="D", help=f"Probability of a false alarm, ever. [default: {_DELTA}]")
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
    input_format: options.InputFormat = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    verify: options.Verify = None,
) -> None:
    """Watch whether the risk stays within alpha on new rows with known labels.

    Pass each file once, in the order of time; a file that comes twice is refused. Labels may come late: a
    file can have rows of earlier months, as long as labels are late at random. Each call updates the state
    file; one process at a time can use it. Over all calls, the probability of a false alarm is at most D.
    Exit code 3 is the alarm.

    If the calibration is by cluster, a cluster counts once, with the mean loss of its rows: one call must
    have all its rows.

    \b
    Examples:
      ordinalrisk monitor watch.json cal.json january.parquet --delta 0.01
      ordinalrisk monitor watch.json cal.json february.parquet
    """  # noqa: D301
    places, known, saved = row_files.named([new]), options.place(state), options.place(calibration)
    terminal.require_writable_file(known, "STATE", saved, *map(options.place, places))

    from ordinalrisk.files.find_columns import AskedColumns
    from ordinalrisk.jobs.score_files import Reading, as_calibrated
    from ordinalrisk.prediction.predictor import Predictor, warn_of_uncertified
    from ordinalrisk.sequential.watched_files import ClusteredRows, FileFingerprints

    controller = options.loaded(saved, verify, random_state)
    asked = AskedColumns(scores, label, logits, rescale, group, cluster_col, weight_col)
    predictor, n_uncertified = Predictor.of(controller.spec, controller.calibration_), 0
    console = terminal.printer()
    with states.alone_with(known, "monitor") as require_unchanged:
        with terminal.noting_warnings(console), row_files.working_on(places, "Watching") as progress:
            watching = _resumed(known, controller, alpha, delta) if known.exists() else None
            watching = watching or _begun(controller, alpha, delta)
            before, fingerprints = watching.n_rows_, FileFingerprints(watching.files_)
            clustered = ClusteredRows(watching)

            def watch(batch: Batch) -> None:
                nonlocal n_uncertified
                sets, n_more = predictor.sets(batch, random_state=random_state)
                n_uncertified += n_more
                fingerprints.add(batch)
                if batch.clusters is None:
                    watching.update(controller.classes_[batch.labels], sets)
                else:
                    clustered.add(batch, sets)

            reading = Reading(
                input_format, None, terminal.note, progress, options.delimiter_of(delimiter), decimal, sheet
            )
            with as_calibrated(controller, places, asked, reading, labelled=True, by_cluster=True) as files:
                files.serial.map(files.parts, watch)
            rows = fingerprints.files
            files.require_rows(sum(file.n_rows for file in rows))
            if not again:
                states.require_new(fingerprints, [part.name for part in files.parts])
            clustered.watch(str(files))
            for file in rows:
                watching.remember(file.blake3, file.n_rows, again=True)
            _warn_of_calibration_rows(controller, rows)
            warn_of_uncertified(n_uncertified, sum(file.n_rows for file in rows))
        with terminal.writing_to(known, "STATE"):
            require_unchanged()
            watching.save(known)
    sentences = [_in_words(watching, before, controller.calibration_.unit)]
    if not controller.calibration_.strata.is_one:
        sentences.append("This watches the mean over all rows, not each group or class by itself.")
    terminal.print_sentences(console, sentences)
    if watching.alarm_:
        raise typer.Exit(_ALARM)


def _begun(controller: RiskController, alpha: str | None, delta: str | None) -> RiskMonitor:
    from ordinalrisk.sequential.monitor import RiskMonitor

    if alpha is None and controller.relative:
        terminal.fail(
            "the alpha of the calibration is a share of what could be lost, but a monitor watches the mean "
            "loss; say with --alpha which mean loss to watch for, in units of the loss: about the share "
            "times the mean of the largest loss of each row."
        )
    if alpha is None and isinstance(controller.alpha, dict):
        terminal.fail("the calibration has a risk for each class; say which to watch with --alpha.")
    if alpha is None and controller.exempt_classes:
        terminal.fail(
            "the calibration promises nothing for its exempt classes, but a monitor watches the mean loss of "
            "all rows; say with --alpha which mean loss to watch for."
        )
    risk = controller.alpha if alpha is None else options.number(alpha, "--alpha")
    false_alarms = options.number(_DELTA if delta is None else delta, "--delta")
    try:
        return RiskMonitor(controller.loss, risk, false_alarms, controller.classes_)
    except ValueError as error:
        terminal.fail(f"--{error}")  # the error begins with alpha or delta


def _resumed(
    state: Path | StoredFile, controller: RiskController, alpha: str | None, delta: str | None
) -> RiskMonitor:
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text
    from ordinalrisk.sequential.monitor import RiskMonitor

    try:
        watching = RiskMonitor.load(state)
    except OSError as error:
        raise FileError(f"{state}: can't be read ({error.strerror}).") from None
    except ValueError as error:
        raise FileError(str(error)) from None
    same_loss = watching.loss.to_dict() == controller.loss.to_dict()
    if not same_loss or watching.classes_.tolist() != controller.classes_.tolist():
        what = "other classes than" if same_loss else "another loss than that of"
        terminal.fail(f"{state} watches {what} the calibration; name another STATE.")
    for name, asked, used in (("alpha", alpha, watching.alpha), ("delta", delta, watching.delta)):
        if asked is not None and as_fraction(options.number(asked, f"--{name}")) != as_fraction(used):
            terminal.fail(
                f"--{name}: {state} was begun with {decimal_text(as_fraction(used))}; leave it out, or name "
                "another STATE."
            )
    return watching


def _warn_of_calibration_rows(controller: RiskController, new: list[WatchedFile]) -> None:
    if controller.data_blake3_ in [file.blake3 for file in new]:
        warnings.warn(
            "These are the rows that were calibrated with: the threshold was chosen on them, so they show "
            "less loss than new rows do.",
            stacklevel=2,
        )


def _in_words(watching: RiskMonitor, before: int, unit: str) -> str:
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text

    alpha, delta = (decimal_text(as_fraction(value)) for value in (watching.alpha, watching.delta))
    n_rows = watching.n_rows_
    seen = f"{n_rows:,} {unit}s, {n_rows - before:,} of them new, the mean loss is {watching.risk_:.4g}"
    if watching.alarm_:
        return (
            f"Alarm at {unit} {watching.alarm_row_:,}: after {seen}{_recently(watching, unit)}. If the "
            f"expected loss were at most {alpha}, the probability of ever seeing an alarm would be {delta} "
            f"at most. Sorted rows, by label or by score, can raise it too: watch {unit}s in the order of "
            "prediction, or at random. Otherwise calibrate anew on recent rows, and watch that calibration "
            "with a new STATE."
        )
    return (
        f"No alarm: after {seen}. The evidence against an expected loss of at most {alpha} is "
        f"{watching.evidence_:.3g}; an alarm takes {float(1 / as_fraction(watching.delta)):.4g}."
    )


def _recently(watching: RiskMonitor, unit: str) -> str:
    """Describe the recent loss, and since when it has been high."""
    rose, recent = watching.rise_row_, min(watching.n_rows_, 500)
    last = "" if recent == watching.n_rows_ else f", of the last {recent:,} {watching.recent_risk_:.4g}"
    if rose is None:
        return last
    return f"{last}; at the alarm it had been above alpha since about {unit} {rose:,}"
