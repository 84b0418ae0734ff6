"""The command line: parse, call the library, print.

Each command imports heavy packages itself, so that ``--help`` and ``--version`` answer at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import options, terminal
from ordinalrisk.cli.calibrate import calibrate
from ordinalrisk.cli.compare import compare
from ordinalrisk.cli.demo import demo
from ordinalrisk.cli.drift import drift
from ordinalrisk.cli.evaluate import evaluate
from ordinalrisk.cli.join import join
from ordinalrisk.cli.monitor import monitor
from ordinalrisk.cli.predict import predict
from ordinalrisk.cli.report import report
from ordinalrisk.cli.triage import decide, triage

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
_COMMANDS: dict[Callable[..., None], str] = {
    calibrate: "Find the exact threshold on a file with known labels.",
    join: "Join several calibrations into one that keeps each guarantee.",
    predict: "Write the prediction set of each row of a file.",
    evaluate: "Compare the loss on known labels with the guarantee.",
    triage: "Find the rows whose label is safe enough, on a file with known labels.",
    decide: "Accept or refer each row of a file.",
    monitor: "Test whether the risk of new rows exceeds alpha.",
    drift: "Test whether the scores change, without labels.",
    report: "Write a report as one HTML page.",
    compare: "Rank growth rules under each loss.",
    demo: "Try the library on simulated data.",
}
for command, help_line in _COMMANDS.items():
    app.command(cls=options.Command, short_help=help_line)(terminal.stoppable(command))


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
    """Prediction sets for ordinal classifiers, with a guaranteed expected loss.

    \b
    Examples:
      ordinalrisk calibrate scores.parquet --alpha 0.05 -o cal.json
      ordinalrisk join worse.json milder.json -o joint.json
      ordinalrisk predict cal.json new.parquet -o sets.parquet
      ordinalrisk evaluate cal.json test.parquet
      ordinalrisk report cal.json test.parquet -o report.html
      ordinalrisk compare choose.parquet
      ordinalrisk triage scores.parquet --alpha 0.05 -o triage.json
      ordinalrisk decide triage.json new.parquet -o decided.parquet
      ordinalrisk monitor state.json cal.json march.parquet
      ordinalrisk drift state.json cal.json april.parquet
      ordinalrisk demo                   on simulated data, some seconds
    """  # noqa: D301 - a backspace keeps the lines of the paragraph apart


def run() -> None:
    """Run the installed command."""
    terminal.run(app, "ordinalrisk")
