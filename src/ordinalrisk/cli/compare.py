"""``ordinalrisk compare``: every loss with every growth rule on one file of scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import options, row_files, terminal
from ordinalrisk.display.text_table import TextTable
from ordinalrisk.files.formats import FileError

if TYPE_CHECKING:
    from ordinalrisk.inputs.batch import Batch
    from ordinalrisk.selection.compare import Comparison


_INTERVAL = (
    "The mean size has an approximate 95 % interval (from, to). If two intervals overlap, the data do not "
    "show which rule has smaller sets."
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
    classes: options.ClassList = None,
    weights: Annotated[
        str | None, typer.Option(metavar="H", help="Add a loss with a weight for each class.")
    ] = None,
    costs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Add a loss with a CSV file of costs.")
    ] = None,
    relative: Annotated[
        bool, typer.Option("--relative", help="Make alpha a share of the largest possible loss.")
    ] = False,
    folds: Annotated[int, typer.Option(help="Number of folds of the cross-validation.")] = 5,
    sample: Annotated[
        int, typer.Option(help="Most rows to compare on; more are sampled at random.")
    ] = 200_000,
    random_state: Annotated[int, typer.Option(help="Seed of the sample and of the parts.")] = 0,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="All results as JSON.")] = None,
    input_format: options.InputFormat = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
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
    places, written = row_files.named([scores_file]), None if json is None else options.place(json)
    if random_state < 0:
        terminal.fail(f"--random-state must be 0 or larger; got {random_state}.")
    if sample < 10:
        terminal.fail(f"--sample must be at least 10; got {sample}.")
    if written is not None:
        terminal.require_writable_file(written, "--json", options.place(places[0]))

    from ordinalrisk.files.find_columns import AskedColumns
    from ordinalrisk.growth.rules import require_valid
    from ordinalrisk.inputs.random_rows import RandomRows
    from ordinalrisk.jobs.score_files import Reading, to_calibrate
    from ordinalrisk.losses.kinds import WeightedLoss
    from ordinalrisk.selection import compare as comparing

    alphas = [options.number(text, "--alpha") for text in alpha or ("0.05", "0.1")]
    console = terminal.printer()
    drawn, n_rows = RandomRows(sample, random_state), 0

    def draw(batch: Batch) -> None:
        nonlocal n_rows
        require_valid(batch.proba)
        drawn.add(batch)
        n_rows += len(batch)

    with row_files.working_on(places, "Reading") as progress:
        reading = Reading(
            input_format, None, terminal.note, progress, options.delimiter_of(delimiter), decimal, sheet
        )
        asked = AskedColumns(scores, label, logits, rescale)
        with to_calibrate(places, asked, options.names(classes), reading) as files:
            labels = files.classes
            losses: dict[str, Any] = dict(comparing.default_losses(len(labels)))
            if weights is not None:
                losses[f"weights {weights}"] = WeightedLoss(options.numbers(weights, "--weights"))
            if costs is not None:
                options.require_input(costs)
                losses[costs.name] = options.table_loss(costs, labels)
            files.serial.map(files.parts, draw)
            files.require_rows(n_rows)
            if n_rows < folds:
                raise FileError(f"{files.parts[0].name}: has {n_rows} rows, too few for --folds {folds}.")
    with terminal.bad_data_is_one_line():
        proba, y = drawn.drawn()
        results = comparing.ranked(
            comparing.compare(
                proba,
                y,
                losses=losses,
                alphas=alphas,
                folds=folds,
                random_state=random_state,
                relative=relative,
                track=terminal.track,
            )
        )
    of_all = "" if len(y) == n_rows else f", drawn at random from {n_rows:,}"
    caption = f"{folds}-fold cross-validation on {len(y):,} rows{of_all}; smallest sets first"
    terminal.print_table(console, _table(results), caption)
    terminal.print_sentences(console, [_INTERVAL, _OTHER_ROWS])
    if written is not None:
        with terminal.writing_to(written, "--json"):
            how = {"folds": folds, "random_state": random_state, "relative": relative}
            terminal.write_json(_document(results, len(y), n_rows, how), written)
        console.print(f"Wrote {written}")


def _table(results: Sequence[Comparison]) -> TextTable:
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


def _document(results: Sequence[Comparison], used: int, n_rows: int, how: dict[str, Any]) -> dict[str, Any]:
    from ordinalrisk.inputs.numbers import to_json

    return {
        "format": "ordinalrisk comparison",
        "package_version": __version__,
        "rows": n_rows,
        "rows_compared": used,
        **how,
        "results": [
            vars(result) | {"loss": result.loss.to_dict(), "alpha": to_json(result.alpha)}
            for result in results
        ],
    }
