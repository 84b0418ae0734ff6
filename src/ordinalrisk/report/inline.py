"""An evaluation inside a notebook: what the first screen of the report says, without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ordinalrisk.display import html_pieces as html
from ordinalrisk.display.palette import GREEN, ORANGE, VERMILLION
from ordinalrisk.evaluation.verdict import StratumRisk
from ordinalrisk.inputs.numbers import decimal_text

COLOURS = {"green": GREEN, "amber": ORANGE, "red": VERMILLION}
_MOST_ROWS = 40
_DOT = "display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.4em"


def evaluation_html(
    name: str,
    headline: str,
    colour: str,
    sentence: str,
    numbers: Mapping[str, Any],
    classes: Sequence[Any],
    class_rows: Sequence[int],
    strata: Sequence[StratumRisk] = (),
) -> str:
    """Return the verdict, the realised numbers, the sizes of sets, and a row for each class and stratum.

    Examples
    --------
    >>> numbers = {"risk": [0.1, 0.05, 0.2], "coverage": [0.9, 0.8, 0.95], "mean_size": [1.5, 1.2, 1.8]}
    >>> numbers |= {"sizes": [5, 5], "class_coverage": [None, [0.9, 0.8, 0.95]]}
    >>> numbers |= {"class_risk": [None, [0.1, 0.05, 0.2]], "class_size": [None, 1.5]}
    >>> page = evaluation_html("Evaluation", "As expected", "green", "", numbers, ["low", "<high>"], [0, 10])
    >>> "As expected" in page, "&lt;high&gt;" in page, "<script" in page
    (True, True, False)
    """
    n_rows = sum(numbers["sizes"])
    dot = f'<span style="{_DOT};background:{COLOURS[colour]}" title="{colour}"></span>'
    parts = [
        html.heading(name, f" of {n_rows:,} rows"),
        f"<div>{dot}<b>{html.text(headline, len(headline))}</b></div>",
        html.words(sentence),
        _measured(numbers),
        _sizes(numbers["sizes"]),
        _classes(numbers, classes, class_rows),
        _strata_table(strata) if strata else "",
    ]
    return f"<div>{''.join(parts)}</div>"


def _measured(numbers: Mapping[str, Any]) -> str:
    rows = [
        html.row(html.cell(title), *(html.cell(f"{value:.4f}", html.NUMBER) for value in numbers[key]))
        for title, key in (("risk", "risk"), ("coverage", "coverage"), ("labels in a set", "mean_size"))
    ]
    return html.table(("", "value", "95 % from", "to"), rows, range(1, 4))


def _sizes(sizes: Sequence[int]) -> str:
    n_rows = sum(sizes)
    rows = [
        html.row(
            html.cell(f"{size}", html.NUMBER),
            html.cell(f"{count:,}", html.NUMBER),
            html.cell(html.bar(count / n_rows)),
        )
        for size, count in enumerate(sizes, 1)
        if count
    ]
    return html.table(("size", "sets", ""), rows[:_MOST_ROWS], (0, 1)) + html.more(len(rows) - _MOST_ROWS)


def _classes(numbers: Mapping[str, Any], classes: Sequence[Any], class_rows: Sequence[int]) -> str:
    rows = []
    for k, label in enumerate(classes[:_MOST_ROWS]):
        cells = [
            html.cell(html.text(str(label), html.LONGEST_NAME)),
            html.cell(f"{class_rows[k]:,}", html.NUMBER),
        ]
        coverage, risk, size = (numbers[key][k] for key in ("class_coverage", "class_risk", "class_size"))
        if coverage is not None:
            values = [*coverage, risk[0], size]
            shown = [html.cell(f"{value:.4f}", html.NUMBER) for value in values]
            cells += [html.cell(html.bar(coverage[0])), *shown]
        else:
            cells += [html.cell("")] * 6
        rows.append(html.row(*cells))
    header = ("true label", "rows", "", "coverage", "95 % from", "to", "risk", "size")
    return html.table(header, rows, range(1, 8)) + html.more(len(classes) - len(rows))


def _strata_table(strata: Sequence[StratumRisk]) -> str:
    rows = []
    for part in strata[:_MOST_ROWS]:
        risk = ["", "", ""] if part.realised is None else [f"{value:.4f}" for value in part.realised.risk]
        n_rows = part.n_units if part.guarantee.pool else part.n_rows  # those of the risk
        cells = [f"{n_rows:,}", *risk, decimal_text(part.guarantee.alpha)]
        rows.append(
            html.row(
                html.cell(html.text(part.name, html.LONGEST_NAME)),
                *(html.cell(cell, html.NUMBER) for cell in cells),
                html.cell(html.text(part.word)),
            )
        )
    header = ("guarantee for", "rows", "risk", "95 % from", "to", "alpha", "verdict")
    return html.table(header, rows, range(1, 6)) + html.more(len(strata) - len(rows))
