"""``ordinalrisk evaluate``: whether rows with known labels bear a calibration out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalrisk import __version__
from ordinalrisk.cli import options, terminal

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController
    from ordinalrisk.report.verdict import Verdict
    from ordinalrisk.tally import Tally
    from ordinalrisk.text_table import Table

_WHOLE = ("risk", "coverage", "mean_size")


def evaluate(
    calibration: Annotated[Path, typer.Argument(metavar="CALIBRATION", help="What calibrate wrote.")],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="File with scores and known labels, or -.")],
    label: options.Label = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
    rescale: options.Rescale = False,
    alpha: options.Alpha = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="The same numbers as JSON.")] = None,
    input_format: options.InputFormat = None,
) -> None:
    """Compare the loss on rows with known labels with what was guaranteed.

    \b
    Examples:
      ordinalrisk evaluate cal.json test.parquet
      ordinalrisk evaluate cal.json test.csv --alpha 0.1 --json metrics.json
    """  # noqa: D301
    options.require_files()
    options.require_input(test)
    if json is not None:
        terminal.require_writable_file(json, "--json", calibration, test)

    from ordinalrisk.engines import columns, streaming
    from ordinalrisk.engines.readers import opened
    from ordinalrisk.estimates import Estimate
    from ordinalrisk.report.describing import loss_in_words
    from ordinalrisk.report.measured import measured
    from ordinalrisk.report.verdict import verdict_of

    controller = options.loaded(calibration)
    classes = controller.classes_.tolist()
    console = terminal.printer()
    with terminal.bad_data_is_one_line(), opened(test, input_format) as source:
        asked = columns.Asked(scores, label, logits, rescale)
        where = columns.found_again(
            source, controller.columns_, classes, asked, terminal.note, with_label=True
        )
        risk = None if alpha is None else options.number(alpha, "--alpha")
        guarantee = controller.guarantee(risk)
        with terminal.noting_warnings(console), terminal.row_progress(source, "Evaluating") as progress:
            rows = streaming.FileRows(source, where, classes, progress=progress)
            tally, calibrated_on = streaming.evaluate(controller, rows, risk)
    numbers = measured(tally, controller.loss)
    verdict = verdict_of(tally, controller.loss, guarantee, Estimate(*numbers["risk"]), calibrated_on)
    terminal.print_sentences(console, [loss_in_words(controller.loss, [str(name) for name in classes])])
    console.print(str(guarantee))
    console.print()
    terminal.print_sentences(console, [verdict.text])
    console.print()
    terminal.print_table(console, _whole_table(numbers, tally.n_rows))
    terminal.print_table(console, _class_table(numbers, tally, classes))
    if json is not None:
        with terminal.writing_to(json, "--json"):
            terminal.write_json(_document(numbers, tally, controller, guarantee.alpha, verdict), json)
        console.print(f"Wrote {json}")


def _whole_table(numbers: Mapping[str, Any], n_rows: int) -> Table:
    from ordinalrisk.text_table import Table

    rows: list[tuple[str, ...]] = [
        (name.replace("_", " "), *(f"{part:.4f}" for part in numbers[name])) for name in _WHOLE
    ]
    return Table("", (f"{n_rows:,} rows", "value", "95 % from", "to"), rows)


def _class_table(numbers: Mapping[str, Any], tally: Tally, classes: list[Any]) -> Table:
    from ordinalrisk.text_table import Table

    header = ("true label", "rows", "coverage", "from", "to", "risk", "size")
    return Table("", header, [*_class_rows(numbers, tally, classes)])


def _class_rows(numbers: Mapping[str, Any], tally: Tally, classes: list[Any]) -> Iterator[tuple[str, ...]]:
    for k, label in enumerate(classes):
        rows, shown = int(tally.class_rows[k]), ["-"] * 5
        if rows:
            values = [*numbers["class_coverage"][k], numbers["class_risk"][k][0], numbers["class_size"][k]]
            shown = [f"{value:.4f}" for value in values]
        yield (_short(str(label)), f"{rows:,}", *shown)


def _short(text: str, width: int = 24) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _document(
    numbers: Mapping[str, Any], tally: Tally, controller: RiskController, alpha: Any, verdict: Verdict
) -> dict[str, Any]:
    from ordinalrisk.estimates import CONFIDENCE
    from ordinalrisk.exact import decimal_text

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
