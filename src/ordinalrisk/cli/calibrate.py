"""``ordinalrisk calibrate``: from a file of scores with known outcomes to a saved calibration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk.cli import clusters, options, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from ordinalrisk.controller import RiskController
    from ordinalrisk.files.places import StoredFile
    from ordinalrisk.files.readers import Source
    from ordinalrisk.inputs.column_roles import ScoreColumns
    from ordinalrisk.jobs.many_files import Files

_MOST_THRESHOLDS = 40


def calibrate(
    scores_files: Annotated[
        list[str],
        typer.Argument(metavar="SCORES...", help="File with scores and labels, or -; many with --cluster."),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The calibration, as JSON, or -.")],
    alpha: Annotated[
        str, typer.Option(metavar="A", help="The largest expected loss; by class: None=0.1,Severe=0.01.")
    ],
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
    delta: Annotated[
        str | None, typer.Option(metavar="D", help="Keep alpha with probability 1 - D, not just on average.")
    ] = None,
    bound: Annotated[
        options.Bound, typer.Option(metavar="BOUND", help=f"With --delta: {', '.join(options.Bound)}.")
    ] = options.Bound.auto,
    group: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of groups, to keep alpha in each of them.")
    ] = None,
    cluster_col: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of whom rows come from, such as patients.")
    ] = None,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Keep alpha for each true class, not just on average.")
    ] = False,
    weight_col: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of likelihood ratios of a new population to this one."),
    ] = None,
    class_weights: Annotated[
        str | None,
        typer.Option(metavar="W", help="New shares of the classes by the shares here: 1,2,0.5."),
    ] = None,
    randomize: Annotated[
        bool, typer.Option("--randomize", help="Let a coin decide about labels at the threshold.")
    ] = False,
    random_state: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="With --delta: seed of the betting bound's shuffle, for rows in random order."
        ),
    ] = None,
    input_format: options.InputFormat = None,
    cluster: options.Cluster = None,
    more_alphas: Annotated[
        str | None,
        typer.Option(metavar="A", help="With --cluster: other risks to ask for later, as 0.01,0.1."),
    ] = None,
    sign: options.Sign = None,
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
      ordinalrisk calibrate scores.parquet --alpha 0.1 --delta 0.1 \\
          --group hospital --cluster-col patient -o cal.json
      ordinalrisk calibrate 's3://bucket/scores/*.parquet' --alpha 0.05 \\
          --cluster tcp://10.0.0.1:8786 --more-alphas 0.01,0.1 -o cal.json
    """  # noqa: D301
    options.require_files()
    places = clusters.inputs(scores_files, cluster)
    rows_in, written = options.place(places[0]), options.place(out)
    options.require_input(rows_in)
    if out != "-":
        terminal.require_writable_file(written, "--out", *map(options.place, places))
    if more_alphas is not None and cluster is None:
        terminal.fail("--more-alphas is for --cluster; one machine keeps what any risk needs.", code=2)
    if sign is not None:
        options.require_private_key(sign, written)
    per_class = per_class or options.is_by_class(alpha)
    options.require_combination(
        {
            "delta": delta is not None,
            "condition_on": per_class,
            "groups": group is not None,
            "clusters": cluster_col is not None,
            "sample_weight": weight_col is not None,
            "class_weight": class_weights is not None,
            "randomize": randomize,
        }
    )
    likely = _likely(delta, bound, random_state)

    from ordinalrisk.controller import RiskController
    from ordinalrisk.files import find_columns
    from ordinalrisk.files.readers import opened
    from ordinalrisk.growth.rules import GROWTH_RULES, as_growth
    from ordinalrisk.jobs import one_file
    from ordinalrisk.losses.words import loss_in_words

    given = options.names(classes)
    console = terminal.printer(to_error=out == "-")
    with terminal.bad_data_is_one_line(), opened(rows_in, input_format) as source:
        rule = as_growth(growth) if point is None else GROWTH_RULES[as_growth(growth).name](point)
        if rule.point == "given":
            terminal.fail("--point given: point labels can't be given in a file.", code=2)
        asked = find_columns.Asked(scores, label, logits, rescale, group, cluster_col, weight_col)
        where, labels = find_columns.chosen(source, asked, given, terminal.note)
        costs = options.loss_of(loss, weights, positions, power, under, over, natural_units, labels)
        with terminal.noting_warnings(console):
            controller = RiskController(
                costs,
                options.alpha_of(alpha, labels),
                rule,
                labels,
                condition_on="label" if per_class else None,
                randomize=randomize,
                **likely,
            )
        _require_alpha(controller, len(labels))
        ratios = options.numbers(class_weights, "--class-weights")
        with _in_options(), terminal.noting_warnings(console):
            if cluster is None:
                with terminal.row_progress(source, "Calibrating") as progress:
                    rows = one_file.FileRows(source, where, labels, progress=progress)
                    calibrated = one_file.calibrate(controller, rows, ratios)
            else:
                more = options.numbers(more_alphas, "--more-alphas") or []
                files = _files(places, where, source, labels, input_format)
                calibrated = _on_cluster(controller, files, cluster, ratios, more)
        _write(calibrated, written, sign)
    terminal.print_sentences(console, [loss_in_words(costs, [str(name) for name in labels])])
    console.print(str(calibrated.guarantee()))
    _print_thresholds(console, calibrated)
    if (seed := calibrated.shuffle_seed_) is not None:
        terminal.print_sentences(
            console,
            [f"The rows were shuffled with seed {seed}: --random-state {seed} gives these thresholds again."],
        )
    signature = "" if sign is None else f" and its signature {written}.sig"
    console.print(f"Wrote {'standard output' if out == '-' else written}{signature}")


def _files(
    places: list[str], where: ScoreColumns, source: Source, labels: list[Any], given_format: str | None
) -> Files:
    from ordinalrisk.calibration.combinations import require_parts_suffice
    from ordinalrisk.jobs.many_files import Files

    used = {"clusters": where.cluster, "sample_weight": where.weight}
    require_parts_suffice(name for name, column in used.items() if column is not None)
    return Files(places, where, source.schema, labels, given_format=given_format)


def _on_cluster(
    controller: RiskController, files: Files, cluster: str, class_weight: Any, more_alphas: list[Any]
) -> RiskController:
    from ordinalrisk.jobs.many_files import calibrate

    with clusters.working_on(cluster, "Calibrating", len(files.places)) as progress:
        return calibrate(
            controller, files, class_weight=class_weight, more_alphas=more_alphas, progress=progress
        )


def _likely(delta: str | None, bound: options.Bound, random_state: int | None) -> dict[str, Any]:
    """The parameters of a guarantee with some probability, if there is to be one."""
    from ordinalrisk.calibration.confidence_bounds import checked_delta

    if delta is None:
        if bound != options.Bound.auto:
            terminal.fail(f"--bound {bound.value} is for --delta; give a --delta too.", code=2)
        if random_state is not None:
            terminal.fail("--random-state is for --delta; give a --delta too.", code=2)
        return {}
    if random_state is not None and random_state < 0:
        terminal.fail(f"--random-state must be 0 or larger; got {random_state}.", code=2)
    risk = options.number(delta, "--delta")
    try:
        checked_delta(risk)
    except ValueError as error:
        terminal.fail(options.in_options(error), code=2)
    return {"delta": risk, "bound": bound.value, "random_state": random_state}


@contextmanager
def _in_options() -> Iterator[None]:
    """Say what is wrong with parameters in the words of the options."""
    from ordinalrisk.files.formats import FileError

    try:
        yield
    except FileError:
        raise
    except ValueError as error:
        raise ValueError(options.in_options(error)) from None


def _print_thresholds(console: Console, calibrated: RiskController) -> None:
    data = f"data {calibrated.data_blake3_[:16]}."
    strata = calibrated.calibration_.strata
    if strata.is_one:
        mean = " for a row of mean weight" if calibrated.calibration_.shift is not None else ""
        console.print(f"Threshold {calibrated.threshold_!r}{mean}; {data}")
        return
    from ordinalrisk.display.text_table import Table
    from ordinalrisk.inputs.numbers import decimal_text

    promised = calibrated.guarantee().parts
    by = terminal.stratum_header(promised[0])
    unit = f"{promised[0].unit}s"
    rows = [
        (*terminal.stratum_name(part), f"{part.n_rows:,}", decimal_text(part.alpha), f"{threshold!r}")
        for part, threshold in zip(promised, calibrated.thresholds_, strict=True)
    ]
    shown = rows[:_MOST_THRESHOLDS]
    console.print()
    terminal.print_table(console, Table("", (*by, unit, "alpha", "threshold"), shown))
    more = "" if len(shown) == len(rows) else f"The first {len(shown)} of "
    console.print(f"{more}{len(rows)} thresholds; {data}")


def _require_alpha(controller: Any, n_classes: int) -> None:
    """Before the rows are read rather than after."""
    from ordinalrisk.inputs.numbers import as_fraction, decimal_text

    bound, given = controller.loss.bound(n_classes), controller.alpha
    for risk in given.values() if isinstance(given, dict) else [given]:
        if not 0 < (alpha := as_fraction(risk)) < bound:
            terminal.fail(
                f"--alpha must lie strictly between 0 and the largest loss, {decimal_text(bound)}; got "
                f"{decimal_text(alpha)}. It has the units of the loss; --natural-units keeps those of the "
                "costs.",
                code=2,
            )


def _write(calibrated: Any, out: Path | StoredFile, key: Path | None) -> None:
    from ordinalrisk.saving import calibration_file

    if str(out) == "-":
        typer.echo(calibration_file.text_of(calibrated.spec, calibrated.calibration_), nl=False)
        return
    with terminal.writing_to(out):
        calibrated.save(out, key=key)
