"""``ordinalrisk calibrate``: from a file of scores with known outcomes to a saved calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ordinalrisk.cli import options, terminal


def calibrate(
    scores_file: Annotated[Path, typer.Argument(metavar="SCORES", help="File with scores and labels, or -.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The calibration, as JSON, or -.")],
    alpha: Annotated[str, typer.Option(metavar="A", help="The largest expected loss.")],
    label: options.Label = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    classes: options.Classes = None,
    loss: Annotated[
        str, typer.Option(metavar="LOSS", help="coverage, weighted, divergence, or a CSV file of costs.")
    ] = "coverage",
    weights: Annotated[str | None, typer.Option(metavar="H", help="A weight for each class: 1,1,2.")] = None,
    positions: Annotated[
        str | None, typer.Option(metavar="V", help="Where the labels lie: 18,30,65. With divergence.")
    ] = None,
    power: Annotated[
        str | None, typer.Option(metavar="P", help="Power of the distance. With divergence.")
    ] = None,
    under: Annotated[
        str | None, typer.Option(metavar="C", help="Factor for sets below the truth. With divergence.")
    ] = None,
    over: Annotated[
        str | None, typer.Option(metavar="C", help="Factor for sets above the truth. With divergence.")
    ] = None,
    natural_units: Annotated[
        bool, typer.Option("--natural-units", help="Do not divide the loss by its largest value.")
    ] = False,
    growth: Annotated[
        str, typer.Option(metavar="RULE", help="frontier, adaptive, paper or rps.")
    ] = "frontier",
    point: Annotated[
        str | None, typer.Option(metavar="RULE", help="Where sets grow from: mode, bayes or median.")
    ] = None,
    input_format: options.InputFormat = None,
) -> None:
    """Find the exact threshold on rows with known labels, and save it.

    The rows must be ones that the model was not trained on. Columns that are not named are guessed where
    that is obvious, and the guess is said.

    \b
    Examples:
      ordinalrisk calibrate scores.parquet --alpha 0.05 -o cal.json
      ordinalrisk calibrate scores.csv --label grade --scores 'p_*' \\
          --classes None,Mild,Severe --weights 1,1,5 --alpha 0.02 -o cal.json
      ordinalrisk calibrate ages.jsonl --loss divergence --positions 18,30,65 \\
          --natural-units --alpha 2 -o cal.json
      ordinalrisk calibrate scores.arrow --loss costs.csv --alpha 0.1 -o cal.json
    """  # noqa: D301
    options.require_files()
    options.require_input(scores_file)
    if str(out) != "-":
        terminal.require_writable_file(out, "--out", scores_file)

    from ordinalrisk.controller import RiskController
    from ordinalrisk.engines import columns, streaming
    from ordinalrisk.engines.readers import opened
    from ordinalrisk.growth import GROWTH_RULES, as_growth
    from ordinalrisk.report.describing import loss_in_words

    given = options.names(classes)
    console = terminal.printer(to_error=str(out) == "-")
    with terminal.bad_data_is_one_line(), opened(scores_file, input_format) as source:
        rule = as_growth(growth) if point is None else GROWTH_RULES[as_growth(growth).name](point)
        if rule.point == "given":
            terminal.fail("--point given: point labels can't be given in a file.", code=2)
        asked = columns.Asked(scores, label, logits, rescale)
        where, labels = columns.chosen(source, asked, given, terminal.note)
        costs = options.loss_of(loss, weights, positions, power, under, over, natural_units, labels)
        controller = RiskController(costs, options.number(alpha, "--alpha"), rule, labels)
        _require_alpha(controller, len(labels))
        with terminal.noting_warnings(console), terminal.row_progress(source, "Calibrating") as progress:
            rows = streaming.FileRows(source, where, labels, progress=progress)
            calibrated = streaming.calibrate(controller, rows)
        _write(calibrated, out)
    terminal.print_sentences(console, [loss_in_words(costs, [str(name) for name in labels])])
    console.print(str(calibrated.guarantee()))
    console.print(f"Threshold {calibrated.threshold_!r}; data {calibrated.data_blake3_[:16]}.")
    console.print(f"Wrote {'standard output' if str(out) == '-' else out}")


def _require_alpha(controller: Any, n_classes: int) -> None:
    """Before the rows are read rather than after."""
    from ordinalrisk.exact import as_fraction, decimal_text

    alpha, bound = as_fraction(controller.alpha), controller.loss.bound(n_classes)
    if not 0 < alpha < bound:
        terminal.fail(
            f"--alpha must lie strictly between 0 and the largest loss, {decimal_text(bound)}; got "
            f"{decimal_text(alpha)}. It has the units of the loss; --natural-units keeps those of the costs.",
            code=2,
        )


def _write(calibrated: Any, out: Path) -> None:
    from ordinalrisk import calibration_file

    if str(out) == "-":
        typer.echo(calibration_file.text_of(calibrated), nl=False)
        return
    with terminal.writing_to(out):
        calibrated.save(out)
