"""The views of controllers and intervals in notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from ordinalrisk.calibration.guarantees import Guarantee, guarantee_of
from ordinalrisk.display import html_pieces as html
from ordinalrisk.display.palette import BLUE

if TYPE_CHECKING:
    from ordinalrisk.calibration.result import Calibration
    from ordinalrisk.calibration.row_thresholds import Thresholds
    from ordinalrisk.calibration.spec import Spec

_MOST_CELLS = 40
_NAMES_SHOWN = 10
_STRATA_SHOWN = 12
_DIGITS_SHOWN = 12
_BOX = "display:inline-block;width:.8em;height:.8em;margin-right:2px;border-radius:2px;box-sizing:border-box"
_INSIDE, _OUTSIDE = f"{_BOX};background:{BLUE}", f"{_BOX};border:1px solid currentColor;opacity:.35"


def controller_html(name: str, spec: Spec, thresholds: Thresholds | None = None) -> str:
    """Return the parameters of a controller and, once it is calibrated, thresholds and guarantee.

    Examples
    --------
    >>> from ordinalrisk import RiskController
    >>> "Not calibrated yet" in controller_html("RiskController", RiskController(alpha=0.1).spec)
    True
    """
    lines = {
        "loss": html.text(repr(spec.loss)),
        "alpha": _alpha(spec.alpha),
        "growth": html.text(repr(spec.growth)),
    }
    if spec.delta is not None:
        bound = "" if spec.confidence_bound == "auto" else f", {spec.confidence_bound} bound"
        lines["delta"] = html.text(f"{spec.delta}{bound}")
    if spec.condition_on is not None:
        lines["condition on"] = html.text(spec.condition_on)
    if spec.relative:
        lines["relative"] = "alpha is a share of what could be lost"
    if spec.pool_classes:
        named = "by the numbers of rows" if spec.pool_classes is True else repr([*spec.pool_classes])
        lines["pool classes"] = html.text(named)
    if spec.exempt_classes:
        lines["exempt classes"] = _names([*spec.exempt_classes])
    if spec.randomize:
        lines["randomize"] = "labels at the threshold at random"
    if spec.recalibration is not None:
        lines["recalibration"] = html.text(spec.recalibration.in_words())
    if spec.side:
        lines["side"] = f"only the {spec.side} end of sets is controlled"
    if spec.growth_loss is not None:
        lines["growth loss"] = html.text(repr(spec.growth_loss))
    if thresholds is None:
        if spec.classes is not None:
            lines["classes"] = html.text(repr(spec.classes))  # checked by the calibration only
        words = (
            f"Not calibrated yet; call {html.code('calibrate(proba, y)')} with rows that have known labels."
        )
    else:
        calibration, guarantee = thresholds.calibration, guarantee_of(thresholds)
        lines |= {
            "classes": _names(calibration.classes.tolist()),
            "calibrated on": _calibrated_on(calibration),
            "threshold" if calibration.strata.is_one else "thresholds": _thresholds(thresholds, guarantee),
            "data": html.code(html.text(calibration.data_blake3, _DIGITS_SHOWN)),
        }
        words = escape(str(guarantee).replace("\n", " "))
    rows = [
        html.row(f'<th style="{html.CELL};{html.QUIET};white-space:nowrap">{title}</th>', html.cell(value))
        for title, value in lines.items()
    ]
    table = html.table((), rows)
    return f'<div>{html.heading(name)}{table}<div style="max-width:44em">{words}</div></div>'


def intervals_html(
    name: str, about: str, rows: Iterable[tuple[Any, Any, int, int]], n: int, n_classes: int
) -> str:
    """Return the first of ``n`` intervals in a table, each drawn on the scale of the labels.

    A row is its name, its two labels, and the positions of these.

    Examples
    --------
    >>> page = intervals_html("IntervalSet", " of 9 rows", [("a", ("none", "mild"), 0, 1)], 9, 3)
    >>> "none..mild" in page, page.count("<tr"), "8 more" in page
    (True, 2, True)
    """
    drawn = [_interval_row(_name(row), pair, first, last, n_classes) for row, pair, first, last in rows]
    table = ""
    if drawn:
        titles = ("row", "interval", "", "size") if n_classes <= _MOST_CELLS else ("row", "interval", "size")
        table = html.table(titles, drawn, (0, len(titles) - 1))
    return f"<div>{html.heading(name, about)}{table}{html.more(n - len(drawn))}</div>"


def _interval_row(name: str, interval: Any, first: int, last: int, n_classes: int) -> str:
    lower, upper = (html.text(str(label), html.LONGEST_NAME) for label in interval)
    boxes = ""
    if n_classes <= _MOST_CELLS:
        styles = (_INSIDE if first <= k <= last else _OUTSIDE for k in range(n_classes))
        drawn = "".join(f'<span style="{style}"></span>' for style in styles)
        boxes = f'<td style="{html.CELL};white-space:nowrap" aria-hidden="true">{drawn}</td>'
    return html.row(
        html.cell(html.text(name, html.LONGEST_NAME), f"{html.NUMBER};{html.QUIET}"),
        html.cell(lower if first == last else f"{lower}..{upper}"),
        boxes,
        html.cell(str(last - first + 1), html.NUMBER),
    )


def _name(name: Any) -> str:
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _alpha(alpha: Any) -> str:
    if not isinstance(alpha, Mapping):
        return html.text(str(alpha))
    return ", ".join(
        f"{html.text(str(risk))} for {html.text(str(label), html.LONGEST_NAME)}"
        for label, risk in alpha.items()
    )


def _calibrated_on(calibration: Calibration) -> str:
    text = f"{calibration.strata.n_rows:,} rows"
    if calibration.unit == "cluster":
        text += " in clusters"
    if (groups := calibration.strata.groups) is not None:
        text += f" of {len(groups):,} group{'' if len(groups) == 1 else 's'}"
    return (
        text + {None: "", "covariates": ", with weights", "labels": ", with class ratios"}[calibration.shift]
    )


def _thresholds(thresholds: Thresholds, guarantee: Guarantee) -> str:
    """Return one threshold, or a small table with the thresholds of groups and true classes."""
    if not guarantee.parts:
        [threshold] = thresholds.values
        weighted = thresholds.calibration.shift is not None
        mean = ", for a row of mean weight" if weighted and math.isfinite(threshold) else ""
        return _threshold(threshold) + mean
    rows = [_stratum_row(*pair) for pair in zip(guarantee.parts, thresholds.values, strict=True)]
    shown = "".join(rows[:_STRATA_SHOWN])
    table = f'<table style="border-collapse:collapse;border:0;margin:0">{shown}</table>'
    return table + html.more(len(rows) - _STRATA_SHOWN)


def _stratum_row(part: Guarantee, threshold: float) -> str:
    names = [html.text(str(name), html.LONGEST_NAME) for name in (part.group, part.label) if name is not None]
    full = "every set includes all labels" if part.label is None else "always in the set"
    units = f"{part.n_rows:,} {part.unit}{'' if part.n_rows == 1 else 's'}"
    cells = [*names, _threshold(threshold, full), f'<span style="{html.QUIET}">{units}</span>']
    return html.row(*map(html.cell, cells))


def _threshold(threshold: float, full: str = "every set includes all labels") -> str:
    number = html.text(f"{threshold:.6g}", hover=repr(threshold))
    if math.isfinite(threshold):
        return number
    return f"{number}, {'single labels' if threshold > 0 else full}"


def _names(labels: list[Any]) -> str:
    """Return the labels in order; of many, the first ones and the last."""
    names = [html.text(str(label), html.LONGEST_NAME) for label in labels]
    if len(names) > _NAMES_SHOWN:
        names = [*names[: _NAMES_SHOWN - 2], "…", names[-1]]
    return f'{" &lt; ".join(names)} <span style="{html.QUIET}">({len(labels):,})</span>'
