"""``ordinalrisk evaluate``: whether rows with known labels bear a calibration out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import clusters, options, terminal

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController
    from ordinalrisk.display.text_table import Table
    from ordinalrisk.evaluation.counts import Tally
    from ordinalrisk.evaluation.evaluation import StratumRisk
    from ordinalrisk.evaluation.verdict import Verdict

_MOST_STRATA = 40
_WHOLE = ("risk", "coverage", "mean_size")


def evaluate(
    calibration: Annotated[str, typer.Argument(metavar="CALIBRATION", help="What calibrate wrote.")],
    test: Annotated[
        list[str],
        typer.Argument(
            metavar="TEST...", help="File with scores and known labels, or -; many with --cluster."
        ),
    ],
    label: options.Label = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    alpha: options.Alpha = None,
    group: options.Group = None,
    cluster_col: options.ClusterColumn = None,
    weight_col: options.WeightColumn = None,
    seed: options.Seed = None,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="The same numbers as JSON.")] = None,
    input_format: options.InputFormat = None,
    cluster: options.Cluster = None,
    verify: options.Verify = None,
) -> None:
    """Compare the loss on rows with known labels with what was guaranteed.

    Where groups, true classes or clusters have a guarantee of their own, so does each line of a table. What
    counts is the loss that the guarantee is about: with clusters the mean of their means, with weights the
    weighted mean. With weights, the test rows must be drawn like the calibration rows, not from the new
    population: that would weight them twice.

    \b
    Examples:
      ordinalrisk evaluate cal.json test.parquet
      ordinalrisk evaluate cal.json test.csv --alpha 0.1 --json metrics.json
      ordinalrisk evaluate cal.json 'test/*.parquet' --cluster local:4
    """  # noqa: D301
    options.require_files()
    places = clusters.inputs(test, cluster)
    saved, rows_in = options.place(calibration), options.place(places[0])
    written = None if json is None else options.place(json)
    options.require_input(rows_in)
    if written is not None:
        terminal.require_writable_file(written, "--json", saved, *map(options.place, places))

    from ordinalrisk.display.wording import cautions
    from ordinalrisk.evaluation.evaluation import stratum_risks, verdict_on
    from ordinalrisk.files import find_columns
    from ordinalrisk.files.readers import opened
    from ordinalrisk.jobs import one_file
    from ordinalrisk.losses.words import loss_in_words
    from ordinalrisk.report.measured import measured

    controller = options.loaded(saved, verify)
    options.require_seed(seed, controller)
    classes = controller.classes_.tolist()
    console = terminal.printer()
    with terminal.bad_data_is_one_line(), opened(rows_in, input_format) as source:
        asked = find_columns.Asked(scores, label, logits, rescale, group, cluster_col, weight_col)
        where = find_columns.found_again(
            source,
            controller.columns_,
            classes,
            asked,
            terminal.note,
            with_label=True,
            needs=find_columns.needed(controller.calibration_, for_test=True),
        )
        risk = options.another_alpha(alpha, controller)
        guarantee = controller.guarantee(risk)
        known = controller.calibration_.strata.groups
        with terminal.noting_warnings(console):
            if cluster is None:
                with terminal.row_progress(source, "Evaluating") as progress:
                    rows = one_file.FileRows(source, where, classes, progress=progress, groups=known)
                    losses, calibrated_on = one_file.evaluate(controller, rows, risk, seed=seed)
            else:
                from ordinalrisk.jobs import many_files

                with clusters.working_on(cluster, "Evaluating", len(places)) as done:
                    many = many_files.Files(
                        places, where, source.schema, classes, given_format=input_format, groups=known
                    )
                    losses, calibrated_on = many_files.evaluate(
                        controller, many, risk, seed=seed, progress=done
                    )
    tally = losses.tally
    numbers = measured(tally, controller.loss)
    verdict = verdict_on(losses, guarantee, calibrated_on=calibrated_on)
    risks = [] if losses.is_plain else stratum_risks(losses, guarantee, calibrated_on=calibrated_on)
    terminal.print_sentences(console, [loss_in_words(controller.loss, [str(name) for name in classes])])
    console.print(str(guarantee))
    console.print()
    terminal.print_sentences(console, [verdict.text])
    console.print()
    if risks:
        terminal.print_table(console, _stratum_table(risks))
        if len(risks) > _MOST_STRATA:
            terminal.print_sentences(
                console,
                [f"Those are the {_MOST_STRATA} furthest above alpha of {len(risks)}; --json has all."],
            )
            console.print()
    risk_name = "risk" if guarantee.unit == "row" and guarantee.shift is None else "risk by row"
    terminal.print_table(console, _whole_table(numbers, tally.n_rows, risk_name))
    terminal.print_table(console, _class_table(numbers, tally, classes))
    terminal.print_sentences(console, cautions(guarantee.unit, guarantee.shift))
    if written is not None:
        with terminal.writing_to(written, "--json"):
            document = _document(numbers, tally, controller, guarantee.alpha, verdict)
            if risks:
                document["strata"] = [_stratum_document(found) for found in risks]
            terminal.write_json(document, written)
        console.print(f"Wrote {written}")


def _stratum_table(risks: Sequence[StratumRisk]) -> Table:
    """A line for each stratum in its order; of very many, those furthest above their alpha."""
    from ordinalrisk.display.text_table import Table
    from ordinalrisk.inputs.numbers import decimal_text

    shown = [*risks]
    if len(risks) > _MOST_STRATA:
        shown = sorted(risks, key=_below_alpha)[:_MOST_STRATA]
    header = (
        *terminal.stratum_header(risks[0].guarantee),
        f"{risks[0].guarantee.unit}s",
        *("risk", "95 % from", "to", "alpha", "verdict"),
    )
    rows: list[tuple[str, ...]] = [
        (
            *terminal.stratum_name(found.guarantee),
            f"{_count(found):,}",
            *(["-"] * 3 if found.realised is None else [f"{part:.4f}" for part in found.realised.risk]),
            decimal_text(found.guarantee.alpha),
            found.word,
        )
        for found in shown
    ]
    return Table("", header, rows)


def _below_alpha(found: StratumRisk) -> float:
    if found.realised is None:
        return math.inf
    return float(found.guarantee.alpha) - float(found.realised.risk.value)


def _count(found: StratumRisk) -> int:
    """How many clusters there are where those are the units, else rows."""
    if found.guarantee.unit == "row":
        return found.n_rows
    return 0 if found.realised is None else int(found.realised.n_units)


def _stratum_document(found: StratumRisk) -> dict[str, Any]:
    from ordinalrisk.inputs.numbers import decimal_text

    guarantee = found.guarantee
    return {
        "group": guarantee.group,
        "label": guarantee.label,
        "rows": found.n_rows,
        "clusters": _count(found) if guarantee.unit == "cluster" else None,
        "alpha": decimal_text(guarantee.alpha),
        "risk": None if found.realised is None else [*map(float, found.realised.risk)],
        "verdict": found.word,
    }


def _whole_table(numbers: Mapping[str, Any], n_rows: int, risk_name: str) -> Table:
    from ordinalrisk.display.text_table import Table

    rows: list[tuple[str, ...]] = [
        (risk_name if name == "risk" else name.replace("_", " "), *(f"{part:.4f}" for part in numbers[name]))
        for name in _WHOLE
    ]
    return Table("", (f"{n_rows:,} rows", "value", "95 % from", "to"), rows)


def _class_table(numbers: Mapping[str, Any], tally: Tally, classes: list[Any]) -> Table:
    from ordinalrisk.display.text_table import Table

    header = ("true label", "rows", "coverage", "from", "to", "risk", "size")
    return Table("", header, [*_class_rows(numbers, tally, classes)])


def _class_rows(numbers: Mapping[str, Any], tally: Tally, classes: list[Any]) -> Iterator[tuple[str, ...]]:
    for k, label in enumerate(classes):
        rows, shown = int(tally.class_rows[k]), ["-"] * 5
        if rows:
            values = [*numbers["class_coverage"][k], numbers["class_risk"][k][0], numbers["class_size"][k]]
            shown = [f"{value:.4f}" for value in values]
        yield (terminal.short(str(label)), f"{rows:,}", *shown)


def _document(
    numbers: Mapping[str, Any], tally: Tally, controller: RiskController, alpha: Any, verdict: Verdict
) -> dict[str, Any]:
    from ordinalrisk.evaluation.estimates import CONFIDENCE
    from ordinalrisk.inputs.numbers import decimal_text

    by_class = {"coverage": "class_coverage", "risk": "class_risk"}
    return {
        "format": "ordinalrisk evaluation",
        "package_version": __version__,
        "alpha": decimal_text(alpha),
        "rows": tally.n_rows,
        "verdict": verdict.word,
        "verdict_text": verdict.text,
        "total_loss": str(tally.total_loss(controller.loss)),
        "confidence": CONFIDENCE,
        **{name: numbers[name] for name in _WHOLE},
        "sizes": numbers["sizes"],
        "classes": [
            {"label": label, "rows": int(tally.class_rows[k])}
            | {name: numbers[key][k] and numbers[key][k][0] for name, key in by_class.items()}
            | {"size": numbers["class_size"][k]}
            for k, label in enumerate(controller.classes_.tolist())
        ],
    }
