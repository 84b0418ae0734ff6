"""What the commands share: progress bars, printing, files and errors."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

import typer

from ordinalrisk.cli.option_names import with_options
from ordinalrisk.display.text_table import TextTable
from ordinalrisk.files.formats import FileError
from ordinalrisk.files.interrupting import INTERRUPTED
from ordinalrisk.files.places import StoredFile
from ordinalrisk.files.redacting import redacted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from ordinalrisk.calibration.guarantees import Guarantee

WIDTH = 80
_LARGEST_SEED = 2**32 - 1

Parameters = ParamSpec("Parameters")


def printer(to_error: bool = False) -> Console:
    """Return a console that prints text as it is; on standard error if standard output is data."""
    from rich.console import Console

    class Printer(Console):
        def on_broken_pipe(self) -> NoReturn:
            raise BrokenPipeError  # rich would exit with code 1, which means bad data here

    return Printer(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=to_error)


def print_table(console: Console, table: TextTable, caption: str = "") -> None:
    if caption:
        print_sentences(console, [caption])
        console.print()
    for i, line in enumerate(table.text().split("\n")):
        console.print(printable(line), style="bold" if i == 0 else None)
    console.print()


def stratum_header(guarantee: Guarantee) -> tuple[str, ...]:
    names = (("group", guarantee.group), ("true label", guarantee.label))
    return tuple(name for name, value in names if value is not None) or ("",)


def stratum_name(guarantee: Guarantee) -> tuple[str, ...]:
    """Shorten the group and the true class to fit into 80 columns."""
    names = [value for value in (guarantee.group, guarantee.label) if value is not None]
    width = 12 if len(names) > 1 else 24
    return tuple(short(str(name), width) for name in names) or ("all",)


def short(text: str, width: int = 24) -> str:
    """Shorten a name in its middle, because many names differ only at their end.

    >>> short("deductible 1000", 12), short("deductible 500", 12)
    ('deducti…1000', 'deducti… 500')
    """
    end = width // 3
    return text if len(text) <= width else f"{text[: width - end - 1]}…{text[-end:]}"


def print_sentences(console: Console, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        console.print(textwrap.fill(sentence, min(console.width, WIDTH)))


def progress(*more: Any) -> Progress:
    """Show a bar on standard error, if that is a terminal, and remove it at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24 if more else 40),
        TaskProgressColumn(),
        *(more or (TimeElapsedColumn(),)),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def print_light(console: Console, colour: str, sentence: str) -> None:
    """Print a verdict's colour and its sentence, in that colour on a terminal."""
    text = textwrap.fill(f"{colour.upper()}: {printable(sentence)}", min(console.width, WIDTH))
    console.print(text, style={"amber": "bold yellow"}.get(colour, f"bold {colour}"))


@contextmanager
def file_progress(description: str) -> Iterator[Callable[[int, float], None]]:
    """Yield a function that takes the number of rows done and the share of the work, and shows both."""
    from rich.progress import TextColumn, TimeRemainingColumn

    start = time.perf_counter()
    counts = TextColumn("{task.fields[done]:,} done  {task.fields[rate]:,.0f} per second")
    with progress(counts, TimeRemainingColumn()) as bar:
        task = bar.add_task(description, total=1.0, done=0, rate=0.0)

        def show(done: int, share: float) -> None:
            rate = done / max(time.perf_counter() - start, 1e-9)
            bar.update(task, completed=share, done=done, rate=rate)

        yield show


def track(items: Iterable[Any], total: int, description: str) -> Iterator[Any]:
    with progress() as bar:
        yield from bar.track(items, total, description=description)


@contextmanager
def noting_warnings(console: Console) -> Iterator[None]:
    """Print each distinct warning once, as a sentence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    sentences = list(
        dict.fromkeys(f"Note: {redacted(with_options(str(warning.message)))}" for warning in caught)
    )
    if sentences:
        print_sentences(console, sentences)
        console.print()


def can_draw(console: Console) -> bool:
    """Return whether matplotlib is installed, and print how to install it if not."""
    if find_spec("matplotlib") is None:
        from ordinalrisk.plots.axes import INSTALL_PLOTS

        console.print(f"No pictures without matplotlib: {INSTALL_PLOTS}")
        return False
    return True


def write_json(document: Any, path: Path | StoredFile) -> None:
    from ordinalrisk.files.atomic import replacing

    with replacing(path) as temporary:
        temporary.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def require_trials_and_seed(trials: int, random_state: int) -> None:
    if trials < 1:
        fail(f"--trials must be at least 1; got {trials}.")
    if not 0 <= random_state <= _LARGEST_SEED:
        fail(f"--random-state must lie between 0 and {_LARGEST_SEED}; got {random_state}.")


def require_writable(folder: Path) -> None:
    """Make the folder; fail before the work if nothing can be written there."""
    if folder.is_file():
        fail(f"--out: {folder} is a file, not a folder.")
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def require_writable_file(path: Path | StoredFile, option: str, *inputs: Path | StoredFile) -> None:
    """Fail before the work if a file can't be written, or would replace one that is read."""
    if str(path) == "-":
        fail(f"{option}: a file is needed here, not -.")
    for read in inputs:
        if _is_same(path, read):
            fail(f"{option}: {path} is read too, and would be lost; choose another name.")
    if not isinstance(path, Path):
        with bad_data_is_one_line(), writing_to(path, option):
            _require_storable(path, option)
        return
    if not path.parent.is_dir():
        fail(f"{option}: there is no folder {path.parent}.")
    if path.is_dir():
        fail(f"{option}: {path} is a folder, not a file.")
    if path.exists() and not path.is_file():
        fail(f"{option}: {path} is a device or a pipe, which a file can't replace; write to -.")
    with writing_to(path, option), tempfile.TemporaryFile(dir=path.parent):
        pass


def require_other_file(path: Path | StoredFile, option: str, other: Path | StoredFile, name: str) -> None:
    """Fail if two outputs are the same file under any of its names, whether or not it exists yet."""
    are_paths = isinstance(path, Path) and isinstance(other, Path)
    if _is_same(path, other) or (are_paths and os.path.realpath(path) == os.path.realpath(other)):
        fail(f"{option}: {path} is {name} too; choose another name.")


def _is_same(path: Path | StoredFile, read: Path | StoredFile) -> bool:
    if isinstance(path, Path) and isinstance(read, Path):
        return path.exists() and read.exists() and path.samefile(read)
    return path == read


def _require_storable(file: StoredFile, option: str) -> None:
    """Write a trial file, because not every storage can tell whether writing is allowed."""
    from ordinalrisk.files.atomic import temporary_beside

    if str(file).endswith("/") or file.is_dir():
        fail(f"{option}: {file} is a folder, not a file.")
    trial = temporary_beside(file)
    trial.write_bytes(b"")
    trial.remove()


@contextmanager
def writing_to(path: Path | StoredFile, option: str = "--out") -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if str(path) == "-":
            discard_output()
        why = os.strerror(error.errno) if error.errno else error.strerror or str(error)  # Arrow's is long
        fail(f"{option}: can't write to {path} ({why}).", code=1)


def stoppable(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """End a command with one line if it is interrupted, and silently if its output is closed."""

    @wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            command(*args, **kwargs)
            if sys.stdout is not None:
                sys.stdout.flush()
        except KeyboardInterrupt:  # in a caller's process; the installed command ends without it
            fail(INTERRUPTED, code=130)
        except BrokenPipeError:
            discard_output()
            raise typer.Exit(141) from None
        except OSError as error:
            discard_output()
            fail(f"{error.filename or 'standard output'}: {error.strerror or error}.", code=1)

    return run


def discard_output() -> None:
    """Drop unwritten output, which Python would try to flush again at the end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def bad_data_is_one_line() -> Iterator[None]:
    """Turn errors of files into one line and exit code 1, errors of parameters into exit code 2."""
    try:
        yield
    except ValueError as error:
        fail(" ".join(with_options(str(error)).split()), code=1 if isinstance(error, FileError) else 2)
    except FileNotFoundError as error:
        fail(str(error))


def note(sentence: str) -> None:
    typer.echo(f"Note: {printable(redacted(with_options(sentence)))}", err=True)


def printable(text: str) -> str:
    """Escape control characters, because names and labels can contain anything."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def fail(message: str, code: int = 2) -> NoReturn:
    """Print an error and exit: with code 2 for a wrong option, 1 for a wrong file."""
    typer.echo(f"Error: {printable(redacted(message))}", err=True)
    raise typer.Exit(code)


def run(app: Any, name: str) -> NoReturn:
    """Run a command line; print usage errors on one line."""
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except OSError as error:
        discard_output()
        typer.echo(f"Error: standard output: {error.strerror}.", err=True)
        code = 1
    except Exception as error:
        if not hasattr(error, "format_message"):  # only what typer raises has one
            raise
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else name
        text = redacted(" ".join(error.format_message().split()))
        typer.echo(f"Error: {text} See {path} --help.", err=True)
        code = getattr(error, "exit_code", 2)
    sys.exit(code if isinstance(code, int) else 0)
