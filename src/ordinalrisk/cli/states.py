"""State files that commands update: one process at a time, each file of rows once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordinalrisk.cli import terminal
from ordinalrisk.files.places import StoredFile

if TYPE_CHECKING:
    from ordinalrisk.sequential.watched_files import FileFingerprints

Again = Annotated[
    bool, typer.Option("--again", help="Count rows although a file with the same rows was counted.")
]


def require_new(fingerprints: FileFingerprints, names: list[str]) -> None:
    """Refuse rows that were watched before, also as the first rows of a longer file."""
    for part, (n_rows, whole) in fingerprints.repeated.items():
        whose, remedy = ("its", "leave it out") if whole else ("its first", "give the rows that are new")
        terminal.fail(
            f"{names[part]}: {whose} {n_rows:,} rows were watched before, and would count twice; {remedy}, "
            "or add --again if they are other rows with equal values. Nothing was changed.",
            code=1,
        )


@contextmanager
def alone_with(state: Path | StoredFile, command: str) -> Iterator[Callable[[], None]]:
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
