"""``ordinalrisk compare``: every loss with every growth rule on one file of scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import options, terminal

if TYPE_CHECKING:
    from ordinalrisk.display.text_table import Table
    from ordinalrisk.selection.compare import Comparison


_INTERVAL = (
    "The mean size has an approximate 95 % interval (from, to). Where two intervals overlap, they leave open "
    "which rule has smaller sets."
)
_OTHER_ROWS = (
    "Calibrate on other rows than these: a loss, rule or alpha that was chosen on the calibration rows has "
    "no guarantee."
)


def compare(
    scores_file: Annotated[str, typer.Argument(metavar="SCORES", help="File with scores and labels, or -.")],
    alpha: Annotated[
        list[str] | None, typer.Option(metavar="A", help="The risk; repeat for more. [default: 0.05, 0.1]")
    ] = None,
    label: options.Label = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    classes: options.Classes = None,
    weights: Annotated[
        str | None, typer.Option(metavar="H", help="Add a loss with a weight for each class.")
    ] = None,
    costs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Add a loss with a CSV file of costs.")
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts of the cross-validation.")] = 5,
    sample: Annotated[
        int, typer.Option(help="Compare on so many rows, drawn at random, if there are more.")
    ] = 200_000,
    seed: Annotated[int, typer.Option(help="Seed of the sample and of the parts.")] = 0,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="All results as JSON.")] = None,
    input_format: options.InputFormat = None,
) -> None:
    """Rank the growth rules under each loss by the mean size of their sets, by cross-validation.

    Each row is predicted by a calibration on the other folds. The losses are coverage, weights 1..K,
    divergence, its square, and one under which a set that lies too low counts double.

    Calibrate on other rows than you compare on. A loss, rule or alpha that was chosen on the calibration rows
    has no guarantee. Split your rows at random into two files first; keep the rows of one patient together.

    \b
    Examples:
      ordinalrisk compare choose.parquet
      ordinalrisk compare choose.csv --alpha 0.02 --weights 1,1,5 --json all.json
    """  # noqa: D301
    options.require_files()
    rows_in, written = options.place(scores_file), None if json is None else options.place(json)
    options.require_input(rows_in)
    if seed < 0:
        terminal.fail(f"--seed must be 0 or larger; got {seed}.", code=2)
    if sample < 10:
        terminal.fail(f"--sample must be at least 10; got {sample}.", code=2)
    if written is not None:
        terminal.require_writable_file(written, "--json", rows_in)

    from ordinalrisk.files import find_columns
    from ordinalrisk.files.formats import FileError
    from ordinalrisk.files.readers import opened
    from ordinalrisk.growth.rules import require_valid
    from ordinalrisk.inputs.random_rows import RandomRows
    from ordinalrisk.jobs import one_file
    from ordinalrisk.losses.kinds import WeightedLoss
    from ordinalrisk.selection import compare as comparing

    given = options.names(classes)
    alphas = [options.number(text, "--alpha") for text in alpha or ("0.05", "0.1")]
    console = terminal.printer()
    with terminal.bad_data_is_one_line(), opened(rows_in, input_format) as source:
        asked = find_columns.Asked(scores, label, logits, rescale)
        where, labels = find_columns.chosen(source, asked, given, terminal.note)
        losses: dict[str, Any] = dict(comparing.default_losses(len(labels)))
        if weights is not None:
            losses[f"weights {weights}"] = WeightedLoss(options.numbers(weights, "--weights"))
        if costs is not None:
            options.require_input(costs)
            losses[costs.name] = options.table_loss(costs, labels)
        drawn, n_rows = RandomRows(sample, seed), 0
        with terminal.row_progress(source, "Reading") as progress:
            rows = one_file.FileRows(source, where, labels, progress=progress)
            with rows.batches() as batches:
                for batch in batches:
                    require_valid(batch.proba)
                    drawn.add(batch.proba, batch.labels)
                    n_rows += len(batch.proba)
        if n_rows < folds:
            raise FileError(f"{source.name}: has {n_rows} rows, too few for --folds {folds}.")
        proba, y = drawn.drawn()
        results = comparing.ranked(
            comparing.compare(
                proba, y, losses=losses, alphas=alphas, folds=folds, seed=seed, track=terminal.track
            )
        )
    of_all = "" if len(y) == n_rows else f", drawn at random from {n_rows:,}"
    caption = f"{folds}-fold cross-validation on {len(y):,} rows{of_all}; smallest sets first"
    terminal.print_table(console, _table(results), caption)
    terminal.print_sentences(console, [_INTERVAL, _OTHER_ROWS])
    if written is not None:
        with terminal.writing_to(written, "--json"):
            terminal.write_json(_document(results, len(y), n_rows, folds, seed), written)
        console.print(f"Wrote {written}")


def _table(results: Sequence[Comparison]) -> Table:
    from ordinalrisk.selection.trade_off import fitted

    rows: list[tuple[str, ...]] = []
    before = None
    for result in results:
        case = (result.loss_name, str(result.alpha))
        names = ("", "") if case == before else case
        before = case
        size = (f"{number:.2f}" for number in result.mean_size)
        remark = "" if result.certified else "few rows"
        risk = (f"{result.single_labels:.3f}", f"{result.risk:.4f}")
        rows.append((*names, result.growth, *size, *risk, remark))
    return fitted(("loss", "alpha", "rule", "size", "from", "to", "single", "risk", ""), rows)


def _document(results: Sequence[Comparison], used: int, n_rows: int, folds: int, seed: int) -> dict[str, Any]:
    from ordinalrisk.inputs.numbers import to_json

    return {
        "format": "ordinalrisk comparison",
        "package_version": __version__,
        "rows": n_rows,
        "rows_compared": used,
        "folds": folds,
        "seed": seed,
        "results": [
            {
                "loss_name": result.loss_name,
                "loss": result.loss.to_dict(),
                "growth": result.growth,
                "alpha": to_json(result.alpha),
                "risk": result.risk,
                "mean_size": list(result.mean_size),
                "coverage": result.coverage,
                "single_labels": result.single_labels,
                "certified": result.certified,
            }
            for result in results
        ],
    }
