"""``ordinalrisk monitor``: month after month, whether a calibration still keeps its promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ordinalrisk.cli import options, terminal

if TYPE_CHECKING:
    from pathlib import Path

    from ordinalrisk.controller import RiskController
    from ordinalrisk.files.places import StoredFile
    from ordinalrisk.sequential.monitor import RiskMonitor

_ALARM = 3
_DELTA = "0.05"


def monitor(
    state: Annotated[str, typer.Argument(metavar="STATE", help="What is known so far; made if absent.")],
    calibration: Annotated[str, typer.Argument(metavar="CALIBRATION", help="What calibrate wrote.")],
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
    weight_col: options.WeightColumn = None,
    seed: options.Seed = None,
    input_format: options.InputFormat = None,
    verify: options.Verify = None,
) -> None:
    """Watch whether new rows, whose labels have become known, keep the risk.

    Give it each file of rows once, in the order of time. The state is resumed and replaced, whole or not at
    all; one process at a time may use it. However often it is asked, the probability of a false alarm is at
    most D. Exit code 3 is the alarm.

    \b
    Examples:
      ordinalrisk monitor watch.json cal.json january.parquet --delta 0.01
      ordinalrisk monitor watch.json cal.json february.parquet
    """  # noqa: D301
    options.require_files()
    known, saved, rows_in = options.place(state), options.place(calibration), options.place(new)
    options.require_input(rows_in)
    terminal.require_writable_file(known, "STATE", saved, rows_in)

    from ordinalrisk.files import find_columns
    from ordinalrisk.files.readers import opened
    from ordinalrisk.jobs import one_file

    controller = options.loaded(saved, verify)
    options.require_seed(seed, controller)
    if controller.calibration_.unit == "cluster":
        terminal.fail(
            "the calibration is by cluster, but a monitor takes each row for a case of its own; watch one "
            "row of each cluster, with a calibration by row.",
            code=2,
        )
    classes = controller.classes_
    console = terminal.printer()
    with _alone_with(known) as require_unchanged:
        with terminal.bad_data_is_one_line():
            watching = _resumed(known, controller, alpha, delta) if known.exists() else None
            watching = watching or _begun(controller, alpha, delta)
            before = watching.n_rows_
            with opened(rows_in, input_format) as source:
                asked = find_columns.Asked(scores, label, logits, rescale, group, weight=weight_col)
                where = find_columns.found_again(
                    source,
                    controller.columns_,
                    classes.tolist(),
                    asked,
                    terminal.note,
                    with_label=True,
                    needs=find_columns.needed(controller.calibration_, for_test=False),
                )
                predictor = one_file.Predictor(controller, seed=seed)
                groups = controller.calibration_.strata.groups
                with terminal.noting_warnings(console), terminal.row_progress(source, "Watching") as progress:
                    rows = one_file.FileRows(
                        source, where, classes.tolist(), progress=progress, groups=groups
                    )
                    with rows.batches() as batches:
                        for batch in batches:
                            watching.update(classes[batch.labels], predictor.sets(batch))
                    predictor.finish()
        with terminal.writing_to(known, "STATE"):
            require_unchanged()
            watching.save(known)
    told = [_in_words(watching, before)]
    if not controller.calibration_.strata.is_one:
        told.append("This watches the mean over all rows, not each group or class by itself.")
    terminal.print_sentences(console, told)
    if watching.alarm_:
        raise typer.Exit(_ALARM)


@contextmanager
def _alone_with(state: Path | StoredFile) -> Iterator[Callable[[], None]]:
    """Lock a state on this machine; gives a function that fails if another process changed the state."""
    from pathlib import Path

    from ordinalrisk.files.locking import InUseError, locked

    def content() -> str | None:
        with terminal.bad_data_is_one_line():
            return state.read_text(encoding="latin-1") if state.exists() else None

    def require_unchanged() -> None:
        if content() != before:
            terminal.fail(
                f"{state}: another process changed it, so nothing was saved; run this command again.",
                code=1,
            )

    with ExitStack() as stack:
        try:
            with terminal.writing_to(state, "STATE"):
                if isinstance(state, Path):
                    stack.enter_context(locked(state))
        except InUseError:
            terminal.fail(
                f"{state}: another monitor is using it; run this command again when that one has ended.",
                code=1,
            )
        before = content()
        yield require_unchanged


def _begun(controller: RiskController, alpha: str | None, delta: str | None) -> RiskMonitor:
    from ordinalrisk.sequential.monitor import RiskMonitor

    if alpha is None and isinstance(controller.alpha, dict):
        terminal.fail("the calibration has a risk for each class; say which to watch with --alpha.", code=2)
    risk = controller.alpha if alpha is None else options.number(alpha, "--alpha")
    false_alarms = options.number(_DELTA if delta is None else delta, "--delta")
    try:
        return RiskMonitor(controller.loss, risk, false_alarms, controller.classes_)
    except ValueError as error:
        terminal.fail(f"--{error}", code=2)  # alpha or delta, whose name comes first


def _resumed(
    state: Path | StoredFile, controller: RiskController, alpha: str | None, delta: str | None
) -> RiskMonitor:
    from ordinalrisk.files.formats import FileError
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
        terminal.fail(f"{state} watches {what} the calibration; name another STATE.", code=2)
    for name, asked, used in (("alpha", alpha, watching.alpha), ("delta", delta, watching.delta)):
        if asked is not None and as_fraction(options.number(asked, f"--{name}")) != as_fraction(used):
            terminal.fail(
                f"--{name}: {state} was begun with {decimal_text(as_fraction(used))}; leave it out, or name "
                "another STATE.",
                code=2,
            )
    return watching


def _in_words(watching: RiskMonitor, before: int) -> str:
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text

    alpha, delta = (decimal_text(as_fraction(value)) for value in (watching.alpha, watching.delta))
    n_rows = watching.n_rows_
    seen = f"{n_rows:,} rows, {n_rows - before:,} of them new, the mean loss is {watching.risk_:.4g}"
    if watching.alarm_:
        return (
            f"Alarm at row {watching.alarm_row_:,}: after {seen}. If the expected loss were at most {alpha}, "
            f"the probability of ever seeing an alarm would be {delta} at most. Calibrate anew on recent "
            "rows, and watch that calibration with a new STATE."
        )
    return (
        f"No alarm: after {seen}. The evidence against an expected loss of at most {alpha} is "
        f"{watching.evidence_:.3g}; an alarm takes {float(1 / as_fraction(watching.delta)):.4g}."
    )
