"""``ordinalrisk evaluate``: whether rows with known labels agree with a calibration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk.cli import options, row_files, terminal
from ordinalrisk.display.text_table import TextTable

if TYPE_CHECKING:
    from rich.console import Console

    from ordinalrisk.jobs import FileEvaluation, JointEvaluation

_MOST_STRATA = 40
_EXIT_CODES = {"green": 0, "amber": 3, "red": 4}


def evaluate(
    calibration: options.CalibrationFile,
    test: options.TestFiles,
    label: options.Label = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    alpha: options.Alpha = None,
    group: options.Group = None,
    cluster_col: options.ClusterColumn = None,
    weight_col: options.WeightColumn = None,
    random_state: options.RandomState = None,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="The same numbers as JSON.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 3 if the verdict is amber, 4 if it is red.")
    ] = False,
    input_format: options.InputFormat = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    cluster: options.Cluster = None,
    verify: options.Verify = None,
) -> None:
    """Compare the loss on rows with known labels with what was guaranteed.

    If groups or true classes have guarantees of their own, a table shows one line for each. The loss is the
    one that the guarantee is about: with clusters the mean of the cluster means, with weights the weighted
    mean. With weights, the test rows must be drawn like the calibration rows, not from the new population:
    that would weight them twice.

    The verdict is green if the rows agree with the guarantee and no class, group or size of sets is far off.
    Far off means that its coverage is less than half of the target, or that of a class less than three
    quarters, and chance seldom explains this. The
    verdict is red if the rows disagree with the guarantee, and amber otherwise.

    With a joint calibration, the joint sets are compared with each guarantee. Each has a verdict of its own;
    the exit code is that of the worst.

    \b
    Examples:
      ordinalrisk evaluate cal.json test.parquet
      ordinalrisk evaluate cal.json test.parquet --strict
      ordinalrisk evaluate cal.json test.csv --alpha 0.1 --json metrics.json
      ordinalrisk evaluate joint.json test.parquet
      ordinalrisk evaluate cal.json 'test/*.parquet' --cluster local:4
    """  # noqa: D301
    places = row_files.named(test, cluster)
    saved, written = options.place(calibration), None if json is None else options.place(json)
    if written is not None:
        terminal.require_writable_file(written, "--json", saved, *map(options.place, places))

    from ordinalrisk import jobs

    controller = options.loaded_with_joint(saved, verify, random_state)
    risk = options.another_alpha(alpha, controller)
    console = terminal.printer()
    with terminal.noting_warnings(console), row_files.working_on(places, "Evaluating", cluster) as progress:
        evaluation = jobs.evaluate(
            controller,
            places,
            alpha=risk,
            label=label,
            scores=scores,
            logits=logits,
            rescale=rescale,
            group=group,
            cluster=cluster_col,
            weight=weight_col,
            random_state=random_state,
            input_format=input_format,
            delimiter=options.delimiter_of(delimiter),
            decimal=decimal,
            sheet=sheet,
            dask=cluster,
            note=terminal.note,
            progress=progress,
        )
    if isinstance(evaluation, jobs.JointEvaluation):
        _print_joint(console, evaluation)
    else:
        _print(console, evaluation)
    if written is not None:
        with terminal.writing_to(written, "--json"):
            terminal.write_json(evaluation.to_dict(), written)
        console.print(f"Wrote {written}")
    if strict and (code := _EXIT_CODES[evaluation.colour]):
        raise typer.Exit(code)


def _print_joint(console: Console, evaluation: JointEvaluation) -> None:
    """Print the verdict on each guarantee, and a table of what each of them shows."""
    for name, part in evaluation.parts.items():
        terminal.print_sentences(console, [f"{name}: {part.headline}"])
        terminal.print_light(console, part.colour, part.sentence)
        terminal.print_sentences(console, [part.verdict.text, *filter(None, [part.drift])])
        console.print()
        if part.strata:
            terminal.print_table(console, _stratum_table(part))
    rows: list[tuple[str, ...]] = [
        (terminal.short(name), *(f"{value:.4f}" for value in part.numbers["risk"]), _alpha(part), part.colour)
        for name, part in evaluation.parts.items()
    ]
    terminal.print_table(console, TextTable("", ("guarantee", "risk", "95 % from", "to", "alpha", ""), rows))
    terminal.print_sentences(console, [evaluation._words()])


def _alpha(part: FileEvaluation) -> str:
    from ordinalrisk.inputs.numbers import decimal_text

    return decimal_text(part.guarantee.alpha)


def _print(console: Console, evaluation: FileEvaluation) -> None:
    from ordinalrisk.display.wording import cautions
    from ordinalrisk.losses.kinds import loss_in_words

    guarantee, n_strata = evaluation.guarantee, len(evaluation.strata)
    names = [str(label) for label in evaluation.classes]
    terminal.print_sentences(
        console, [evaluation.headline, loss_in_words(evaluation.loss, names, guarantee.side)]
    )
    console.print(str(guarantee))
    console.print()
    terminal.print_light(console, evaluation.colour, evaluation.sentence)
    terminal.print_sentences(console, [evaluation.verdict.text, *filter(None, [evaluation.drift])])
    console.print()
    if n_strata:
        terminal.print_table(console, _stratum_table(evaluation))
    if n_strata > _MOST_STRATA:
        most = f"Those are the {_MOST_STRATA} furthest above alpha of {n_strata}; --json has all."
        terminal.print_sentences(console, [most])
        console.print()
    risk_name = "risk" if guarantee.unit == "row" and guarantee.shift is None else "risk by row"
    rows: list[tuple[str, ...]] = [
        (name, *(f"{value:.4f}" for value in evaluation.numbers[key]))
        for name, key in ((risk_name, "risk"), ("coverage", "coverage"), ("mean size", "mean_size"))
    ]
    header = (f"{evaluation.n_rows:,} rows", "value", "95 % from", "to")
    terminal.print_table(console, TextTable("", header, rows))
    terminal.print_table(console, _class_table(evaluation))
    terminal.print_sentences(console, cautions(guarantee.unit, guarantee.shift))


def _stratum_table(evaluation: FileEvaluation) -> TextTable:
    """Show each stratum in its order; of very many, only those furthest above their alpha."""
    from ordinalrisk.inputs.numbers import decimal_text

    strata = evaluation.strata
    shown = strata if len(strata) <= _MOST_STRATA else sorted(strata, key=_below_alpha)[:_MOST_STRATA]
    header = (
        *terminal.stratum_header(strata[0].guarantee),
        f"{strata[0].guarantee.unit}s",
        *("risk", "95 % from", "to", "alpha", "verdict"),
    )
    rows: list[tuple[str, ...]] = [
        (
            *terminal.stratum_name(stratum.guarantee),
            f"{stratum.n_units:,}",
            *(["-"] * 3 if stratum.realised is None else [f"{part:.4f}" for part in stratum.realised.risk]),
            decimal_text(stratum.guarantee.alpha),
            stratum.word,
        )
        for stratum in shown
    ]
    return TextTable("", header, rows)


def _below_alpha(stratum: Any) -> float:
    if stratum.realised is None:
        return math.inf
    return float(stratum.guarantee.alpha) - float(stratum.realised.risk.value)


def _class_table(evaluation: FileEvaluation) -> TextTable:
    rows: list[tuple[str, ...]] = []
    numbers = evaluation.numbers
    for k, label in enumerate(evaluation.classes):
        n_rows, shown = int(evaluation.found.tally.class_rows[k]), ["-"] * 5
        if n_rows:
            values = [*numbers["class_coverage"][k], numbers["class_risk"][k][0], numbers["class_size"][k]]
            shown = [f"{value:.4f}" for value in values]
        rows.append((terminal.short(str(label)), f"{n_rows:,}", *shown))
    return TextTable("", ("true label", "rows", "coverage", "from", "to", "risk", "size"), rows)
