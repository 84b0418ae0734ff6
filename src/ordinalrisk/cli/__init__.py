"""The command line: parse, call the library, print.

What is heavy is imported by the command that needs it, so that ``--help`` and ``--version`` answer at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import terminal
from ordinalrisk.cli.demo import demo
from ordinalrisk.cli.reproduce import reproduce
from ordinalrisk.cli.warmup import warmup

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
app.command(short_help="Run the paper's simulation.")(terminal.stoppable(demo))
app.command(short_help="Run the paper's experiments beside their published numbers.")(
    terminal.stoppable(reproduce)
)
app.command(short_help="Compile ahead of the first call.")(terminal.stoppable(warmup))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ordinalrisk {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Prediction intervals for ordinal classifiers whose expected loss is guaranteed.

    \b
    Examples:
      ordinalrisk demo                   the paper's simulation, under a minute
      ordinalrisk demo --trials 10       a quick look
      ordinalrisk reproduce simulated    Table 1 of the paper and its figures
      ordinalrisk reproduce --help       the options
      ordinalrisk warmup                 compile now, for quick first calls later
    """  # noqa: D301 - a backspace keeps the lines of the paragraph apart
