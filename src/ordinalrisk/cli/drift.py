"""``ordinalrisk drift``: test, without labels, whether scores differ from those of the calibration rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ordinalrisk.cli import options, row_files, states, terminal

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController
    from ordinalrisk.inputs.batch import Batch
    from ordinalrisk.sequential.drift import ScoreDrift

_DELTA = "0.01"


def drift(
    state: states.State,
    calibration: options.CalibrationFile,
    new: Annotated[str, typer.Argument(metavar="MONTH", help="File with scores, or -.")],
    delta: Annotated[
        str | None,
        typer.Option(metavar="D", help=f"Largest probability of a false alarm. [default: {_DELTA}]"),
    ] = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    again: states.Again = False,
    json: states.Json = None,
    input_format: options.InputFormat = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    verify: options.Verify = None,
) -> None:
    """Watch whether new rows have other scores than the calibration rows; no labels are needed.

    The test looks at how certain the model is of each row. Pass each file once, in the order of time; a file
    that comes twice is refused, also if it is re-sorted. Each call updates the state file; one process at a
    time can use it. Over all calls, the probability of a false alarm is at most D. Exit code 3 is the alarm:
    the guarantee may no longer hold. Once labels are known, monitor tests whether the risk has grown.

    \b
    Examples:
      ordinalrisk drift drift.json cal.json january.parquet
      ordinalrisk drift drift.json cal.json february.parquet
    """  # noqa: D301
    places, known, saved, written = states.places_of(state, calibration, new, json)

    from ordinalrisk.files.find_columns import AskedColumns
    from ordinalrisk.jobs.score_files import Reading, as_calibrated
    from ordinalrisk.sequential.drift import ScoreDrift
    from ordinalrisk.sequential.watched_files import FileFingerprints

    controller = options.loaded(saved, verify, None, needs_seed=False)
    console = terminal.printer()

    def begun() -> ScoreDrift:
        return _begun(controller, delta)

    def bet(batch: Batch) -> None:
        watch._compare(batch.proba)  # the file has applied the map

    with states.resumed(known, "drift", ScoreDrift, begun, console) as watch:
        if watch.data_blake3_ != controller.data_blake3_:
            terminal.fail(f"{known} watches another calibration; name another STATE.")
        states.require_same(known, "--delta", delta, watch.delta)
        before, rows = watch.n_rows_, FileFingerprints(watch.files_)
        with row_files.working_on(places, "Comparing") as progress:
            separator = options.delimiter_of(delimiter)
            reading = Reading(input_format, None, terminal.note, progress, separator, decimal, sheet)
            asked = AskedColumns(scores, None, logits, rescale)
            with as_calibrated(controller, places, asked, reading, labelled=False, by_group=False) as files:
                files.serial.fold(files.parts, rows, then=bet)
            states.remember(watch, files, rows, again)
    facts = {
        "unit": "row",
        "new_rows": watch.n_rows_ - before,
        "uncertainty": watch.uncertainty_,
        "calibrated_uncertainty": watch.calibrated_uncertainty_,
    }
    states.finish(console, "drift", watch, _in_words(watch, before), facts, written)


def _begun(controller: RiskController, delta: str | None) -> ScoreDrift:
    from ordinalrisk.sequential.drift import ScoreDrift

    false_alarms = options.number(_DELTA if delta is None else delta, "--delta")
    try:
        return ScoreDrift(controller, false_alarms)
    except ValueError as error:
        text = str(error)
        terminal.fail(f"--{text}" if text.startswith("delta") else text[:1].lower() + text[1:])


def _in_words(watch: ScoreDrift, before: int) -> list[str]:
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text

    n_rows, delta = watch.n_rows_, decimal_text(as_fraction(watch.delta))
    uncertainty = (
        f"The mean uncertainty, one minus the largest probability, is {watch.uncertainty_:.4g}; in the "
        f"calibration rows it was {watch.calibrated_uncertainty_:.4g}."
    )
    seen = f"{n_rows:,} rows, {n_rows - before:,} of them new"
    if not watch.alarm_:
        return [
            f"No alarm after {seen}. {uncertainty} The evidence for a difference is {watch.evidence_:.3g}; "
            f"an alarm needs 1/delta = {float(1 / as_fraction(watch.delta)):.4g}."
        ]
    return [
        f"Alarm at row {watch.alarm_row_:,} ({seen}): the scores differ from those of the calibration rows.",
        f"{uncertainty} The scores began to differ at about row {watch.rise_row_:,}.",
        f"The probability of a false alarm, ever, is at most {delta}. Sorted rows can cause a false alarm: "
        "give the rows in the order in which they come or in random order.",
        "If they were not sorted, the guarantee may no longer hold: find out what has changed, and calibrate "
        "again on recent rows with known labels.",
    ]
