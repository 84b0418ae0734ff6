"""``ordinalrisk evaluate``: whether rows with known labels bear a calibration out."""

from __future__ import annotations

from collections.abc import Iterator
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

CONFIDENCE = 0.95


def evaluate(
    calibration: Annotated[Path, typer.Argument(metavar="CALIBRATION", help="What calibrate wrote.")],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="File with scores and known labels, or -.")],
    label: options.Label = None,
    scores: options.Scores = None,
    logits: options.Logits = None,
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
        terminal.require_writable_file(json, "--json")

    from ordinalrisk.engines import columns, streaming
    from ordinalrisk.engines.readers import opened
    from ordinalrisk.report.verdict import verdict_of

    controller = options.loaded(calibration)
    classes = controller.classes_.tolist()
    console = terminal.printer()
    with terminal.bad_data_is_one_line(), opened(test, input_format) as source:
        asked = (scores, label, logits)
        where = columns.found_again(
            source, controller.columns_, classes, asked, terminal.note, with_label=True
        )
        risk = None if alpha is None else options.number(alpha, "--alpha")
        guarantee = controller.guarantee(risk)
        with terminal.noting_warnings(console), terminal.row_progress(source, "Evaluating") as progress:
            rows = streaming.FileRows(source, where, classes, progress=progress)
            tally = streaming.evaluate(controller, rows, risk)
    verdict = verdict_of(tally, controller.loss, guarantee, tally.risk(controller.loss, CONFIDENCE))
    console.print(str(guarantee))
    console.print()
    terminal.print_sentences(console, [verdict.text])
    console.print()
    terminal.print_table(console, _whole_table(tally, controller))
    terminal.print_table(console, _class_table(tally, controller))
    if json is not None:
        with terminal.writing_to(json, "--json"):
            terminal.write_json(_document(tally, controller, guarantee.alpha, verdict), json)
        console.print(f"Wrote {json}")


def _whole_table(tally: Tally, controller: RiskController) -> Table:
    from ordinalrisk.text_table import Table

    estimates = {
        "risk": tally.risk(controller.loss, CONFIDENCE),
        "coverage": tally.coverage(CONFIDENCE),
        "mean size": tally.mean_size(CONFIDENCE),
    }
    rows = [(name, *(f"{part:.4f}" for part in estimate)) for name, estimate in estimates.items()]
    return Table("", (f"{tally.n_rows:,} rows", "value", "95 % from", "to"), rows)


def _class_table(tally: Tally, controller: RiskController) -> Table:
    from ordinalrisk.text_table import Table

    return Table(
        "",
        ("true label", "rows", "coverage", "from", "to", "risk", "size"),
        [*_class_rows(tally, controller)],
    )


def _class_rows(tally: Tally, controller: RiskController) -> Iterator[tuple[str, ...]]:
    coverage = tally.class_coverage(CONFIDENCE)
    columns = [*coverage, tally.class_risk(controller.loss), tally.class_size()]
    for k, label in enumerate(controller.classes_.tolist()):
        rows = int(tally.class_rows[k])
        numbers = [f"{column[k]:.4f}" if rows else "-" for column in columns]
        yield (_short(str(label)), f"{rows:,}", *numbers)


def _short(text: str, width: int = 24) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _document(tally: Tally, controller: RiskController, alpha: Any, verdict: Verdict) -> dict[str, Any]:
    from ordinalrisk.exact import decimal_text

    loss = controller.loss
    whole = {
        "risk": tally.risk(loss, CONFIDENCE),
        "coverage": tally.coverage(CONFIDENCE),
        "mean_size": tally.mean_size(CONFIDENCE),
    }
    by_class = {
        "coverage": tally.class_coverage(),
        "risk": tally.class_risk(loss),
        "size": tally.class_size(),
    }
    return {
        "format": "ordinalrisk evaluation",
        "package_version": __version__,
        "alpha": decimal_text(alpha),
        "rows": tally.n_rows,
        "verdict": verdict.word,
        "verdict_text": verdict.text,
        "total_loss": str(tally.total_loss(loss)),
        "confidence": CONFIDENCE,
        **{name: list(estimate) for name, estimate in whole.items()},
        "sizes": tally.sizes.tolist(),
        "classes": [
            {"label": label, "rows": int(tally.class_rows[k])}
            | {name: float(values[k]) if tally.class_rows[k] else None for name, values in by_class.items()}
            for k, label in enumerate(controller.classes_.tolist())
        ],
    }
