"""State files that ``monitor`` and ``drift`` update: one process at a time, each file of rows once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import options, row_files, terminal
from ordinalrisk.files.formats import FileError
from ordinalrisk.files.places import StoredFile

if TYPE_CHECKING:
    from rich.console import Console

    from ordinalrisk.jobs.score_files import ScoreFiles
    from ordinalrisk.sequential.state import Watch
    from ordinalrisk.sequential.watched_files import FileFingerprints

Again = Annotated[
    bool, typer.Option("--again", help="Count the rows even if a file with the same rows was counted before.")
]
Json = Annotated[str | None, typer.Option(metavar="FILE", help="The same numbers as JSON.")]
State = Annotated[str, typer.Argument(metavar="STATE", help="State file; created if it does not exist.")]
_ALARM = 3

W = TypeVar("W", bound="Watch")


def places_of(
    state: str, calibration: str, new: str, json: str | None
) -> tuple[list[str], Path | StoredFile, Path | StoredFile, Path | StoredFile | None]:
    """Return the places of the new rows, the state, the calibration and the JSON; none may be lost."""
    rows, known, saved = row_files.named([new]), options.place(state), options.place(calibration)
    read = [saved, *map(options.place, rows)]
    terminal.require_writable_file(known, "STATE", *read)
    written = None if json is None else options.place(json)
    if written is not None:
        terminal.require_writable_file(written, "--json", known, *read)
        terminal.require_other_file(written, "--json", known, "STATE")
    return rows, known, saved, written


@contextmanager
def resumed(
    state: Path | StoredFile, command: str, kind: type[W], begun: Callable[[], W], console: Console
) -> Iterator[W]:
    """Yield the saved state, or one that begins; save it at the end. One process at a time may use it."""
    with _alone_with(state, command) as require_unchanged:
        with terminal.noting_warnings(console), terminal.bad_data_is_one_line():
            try:
                watch = kind.load(state) if state.exists() else begun()
            except OSError as error:
                raise FileError(f"{state}: can't be read ({error.strerror}).") from None
            except ValueError as error:
                raise FileError(str(error)) from None
            yield watch
        with terminal.writing_to(state, "STATE"):
            require_unchanged()
            watch.save(state)


def require_same(state: Path | StoredFile, option: str, asked: str | None, used: Any) -> None:
    """Refuse another number than the one that the state was begun with."""
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text

    if asked is not None and as_fraction(options.number(asked, option)) != as_fraction(used):
        terminal.fail(
            f"{option}: {state} was begun with {decimal_text(as_fraction(used))}; leave it out, or name "
            "another STATE."
        )


def remember(watch: Watch, files: ScoreFiles, rows: FileFingerprints, again: bool) -> None:
    """Add the files to those of the state; refuse rows that were watched before."""
    files.require_rows(sum(file.n_rows for file in rows.files))
    for part, (n_rows, whole, in_order) in ({} if again else rows.repeated).items():
        which, remedy = ("its", "leave it out") if whole else ("its first", "give the rows that are new")
        order = "" if in_order else ", in another order"
        terminal.fail(
            f"{files.parts[part].name}: {which} {n_rows:,} rows were watched before{order}, and would count "
            f"twice; {remedy}, or add --again if they are other rows with equal values. Nothing was changed.",
            code=1,
        )
    watch.files_ += rows.files


def finish(
    console: Console,
    command: str,
    watch: Watch,
    sentences: Sequence[str],
    facts: dict[str, Any],
    written: Path | StoredFile | None,
) -> None:
    """Print what was found, write it as JSON if asked for, and end with the exit code of an alarm."""
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text

    terminal.print_sentences(console, sentences)
    if written is not None:
        document = {
            "format": f"ordinalrisk {command} result",
            "package_version": __version__,
            "alarm": watch.alarm_,
            "alarm_row": watch.alarm_row_,
            "delta": decimal_text(as_fraction(watch.delta)),
            "evidence": watch.evidence_,
            "p_value": watch.p_value_,
            "rise_row": watch.rise_row_,
            "rows": watch.n_rows_,
            "files": len(watch.files_),
            **facts,
        }
        with terminal.writing_to(written, "--json"):
            terminal.write_json(document, written)
        console.print(f"Wrote {written}")
    if watch.alarm_:
        raise typer.Exit(_ALARM)


@contextmanager
def _alone_with(state: Path | StoredFile, command: str) -> Iterator[Callable[[], None]]:
    """Lock a state on this machine; yield a function that fails if another process changed the state."""
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
                f"{state}: another {command} is using it; run this command again when that one has ended.",
                code=1,
            )
        before = content()
        yield require_unchanged
