"""The command line: parse, call the library, print.

What is heavy is imported by the command that needs it, so that ``--help`` and ``--version`` answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import terminal
from ordinalrisk.cli.calibrate import calibrate
from ordinalrisk.cli.compare import compare
from ordinalrisk.cli.demo import demo
from ordinalrisk.cli.evaluate import evaluate
from ordinalrisk.cli.monitor import monitor
from ordinalrisk.cli.predict import predict
from ordinalrisk.cli.report import report
from ordinalrisk.cli.reproduce import reproduce
from ordinalrisk.cli.warmup import warmup
from ordinalrisk.files.redacting import redacted

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
_COMMANDS: dict[Callable[..., None], str] = {
    calibrate: "Find the exact threshold on a file with known labels.",
    predict: "Give each row of a file its interval.",
    evaluate: "Compare the loss on known labels with the guarantee.",
    monitor: "Watch whether new rows keep the risk.",
    report: "Write a page that shows all of it.",
    compare: "Rank growth rules under each loss.",
    demo: "Run the paper's simulation.",
    reproduce: "Run the paper's experiments beside their published numbers.",
    warmup: "Compile ahead of the first call.",
}
for command, help_line in _COMMANDS.items():
    app.command(short_help=help_line)(terminal.stoppable(command))


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
      ordinalrisk calibrate scores.parquet --alpha 0.05 -o cal.json
      ordinalrisk predict cal.json new.parquet -o sets.parquet
      ordinalrisk evaluate cal.json test.parquet
      ordinalrisk report cal.json test.parquet -o report.html
      ordinalrisk compare choose.parquet
      ordinalrisk monitor state.json cal.json march.parquet
      ordinalrisk demo                   the paper's simulation, under a minute
    """  # noqa: D301 - a backspace keeps the lines of the paragraph apart


def run() -> None:
    """The installed command: an error of usage is one line too."""
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except OSError as error:
        terminal.discard_output()
        typer.echo(f"Error: standard output: {error.strerror}.", err=True)
        code = 1
    except Exception as error:
        if not hasattr(error, "format_message"):  # only what typer raises has one
            raise
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "ordinalrisk"
        text = redacted(" ".join(error.format_message().split()))
        typer.echo(f"Error: {text} See {path} --help.", err=True)
        code = getattr(error, "exit_code", 2)
    sys.exit(code if isinstance(code, int) else 0)
