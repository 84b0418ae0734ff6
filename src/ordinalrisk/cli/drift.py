"""``ordinalrisk drift``: test, without labels, whether scores differ from those of the calibration rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordinalrisk.cli import options, row_files, states, terminal
from ordinalrisk.files.formats import FileError
from ordinalrisk.files.places import StoredFile

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController
    from ordinalrisk.inputs.batch import Batch
    from ordinalrisk.sequential.drift import ScoreDrift

_ALARM = 3
_DELTA = "0.01"


def drift(
    state: Annotated[str, typer.Argument(metavar="STATE", help="State file; created if it does not exist.")],
    calibration: options.CalibrationFile,
    new: Annotated[str, typer.Argument(metavar="MONTH", help="File with scores, or -.")],
    delta: Annotated[
        str | None, typer.Option(metavar="D", help=f"Probability of a false alarm, ever. [default: {_DELTA}]")
    ] = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    again: states.Again = False,
    input_format: options.InputFormat = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    verify: options.Verify = None,
) -> None:
    """Watch whether new rows have other scores than the calibration rows; no labels are needed.

    The test looks at how certain the model is of each row. Pass each file once, in the order of time. Each
    call updates the state file; one process at a time can use it. Over all calls, the probability of a false
    alarm is at most D. Exit code 3 is the alarm: the guarantee may no longer hold. Once labels are known,
    monitor tests whether the risk has grown.

    \b
    Examples:
      ordinalrisk drift drift.json cal.json january.parquet
      ordinalrisk drift drift.json cal.json february.parquet
    """  # noqa: D301
    places, known, saved = row_files.named([new]), options.place(state), options.place(calibration)
    terminal.require_writable_file(known, "STATE", saved, *map(options.place, places))

    from ordinalrisk.files.find_columns import AskedColumns
    from ordinalrisk.jobs.score_files import Reading, as_calibrated
    from ordinalrisk.sequential.watched_files import FileFingerprints

    controller = options.loaded(saved, verify, None, needs_seed=False)
    console = terminal.printer()
    with states.alone_with(known, "drift") as require_unchanged:
        with terminal.noting_warnings(console), row_files.working_on(places, "Comparing") as progress:
            watching = _resumed(known, controller, delta) if known.exists() else _begun(controller, delta)
            before, fingerprints = watching.n_rows_, FileFingerprints(watching.files_)

            def watch(batch: Batch) -> None:
                fingerprints.add(batch)
                watching.update(batch.proba)

            separator = options.delimiter_of(delimiter)
            reading = Reading(input_format, None, terminal.note, progress, separator, decimal, sheet)
            asked = AskedColumns(scores, None, logits, rescale)
            with as_calibrated(controller, places, asked, reading, labelled=False, by_group=False) as files:
                files.serial.map(files.parts, watch)
            files.require_rows(watching.n_rows_ - before)
            if not again:
                states.require_new(fingerprints, [part.name for part in files.parts])
            for file in fingerprints.files:
                watching.remember(file.blake3, file.n_rows, again=True)
        with terminal.writing_to(known, "STATE"):
            require_unchanged()
            watching.save(known)
    terminal.print_sentences(console, [_in_words(watching, before)])
    if watching.alarm_:
        raise typer.Exit(_ALARM)


def _begun(controller: RiskController, delta: str | None) -> ScoreDrift:
    from ordinalrisk.sequential.drift import ScoreDrift

    false_alarms = options.number(_DELTA if delta is None else delta, "--delta")
    try:
        return ScoreDrift(controller, false_alarms)
    except ValueError as error:
        text = str(error)
        terminal.fail(f"--{text}" if text.startswith("delta") else text[:1].lower() + text[1:])


def _resumed(state: Path | StoredFile, controller: RiskController, delta: str | None) -> ScoreDrift:
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text
    from ordinalrisk.sequential.drift import ScoreDrift

    try:
        watching = ScoreDrift.load(state)
    except OSError as error:
        raise FileError(f"{state}: can't be read ({error.strerror}).") from None
    except ValueError as error:
        raise FileError(str(error)) from None
    if watching.data_blake3_ != controller.data_blake3_:
        terminal.fail(f"{state} watches another calibration; name another STATE.")
    used = as_fraction(watching.delta)
    if delta is not None and as_fraction(options.number(delta, "--delta")) != used:
        terminal.fail(
            f"--delta: {state} was begun with {decimal_text(used)}; leave it out, or name another STATE."
        )
    return watching


def _in_words(watching: ScoreDrift, before: int) -> str:
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text

    n_rows, delta = watching.n_rows_, decimal_text(as_fraction(watching.delta))
    seen = (
        f"{n_rows:,} rows, {n_rows - before:,} of them new, their mean uncertainty (one minus the largest "
        f"probability) is {watching.uncertainty_:.4g}, when calibrating it was "
        f"{watching.calibrated_uncertainty_:.4g}"
    )
    if watching.alarm_:
        return (
            f"Alarm at row {watching.alarm_row_:,}: after {seen}. The scores began to differ at about row "
            f"{watching.rise_row_:,}. If new rows were exchangeable with the calibration rows, the "
            f"probability of ever seeing an alarm would be {delta} at most. Sorted rows can raise it too: "
            "compare rows in the order in which they come, or at random. The guarantee may no longer hold: "
            "find out what has changed, and calibrate anew on recent rows with known labels."
        )
    return (
        f"No alarm: after {seen}. The evidence for a difference is {watching.evidence_:.3g}; an alarm takes "
        f"{float(1 / as_fraction(watching.delta)):.4g}."
    )
