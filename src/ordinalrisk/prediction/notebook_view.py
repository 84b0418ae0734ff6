"""What notebooks show of a controller and of intervals: small pieces of HTML that stand by themselves.

Styles are inline and take the colour of the text around them, so that they fit light and dark pages. All that
comes from data is escaped: a class may be called ``<script>``, and is shown so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from ordinalrisk.display.palette import BLUE

if TYPE_CHECKING:
    from ordinalrisk.calibration.guarantees import Guarantee
    from ordinalrisk.controller import RiskController
    from ordinalrisk.prediction.interval_set import IntervalSet

_ROWS_SHOWN = 8
_MOST_CELLS = 40
_NAMES_SHOWN = 10
_STRATA_SHOWN = 12
_LONGEST_TEXT, _LONGEST_NAME, _DIGITS_SHOWN = 160, 40, 12
_RULE = "1px solid rgba(128,128,128,.35)"
_TABLE = f"border-collapse:collapse;border:0;border-top:{_RULE};border-bottom:{_RULE};margin:.3em 0"
_CELL = "padding:.15em .8em .15em 0;text-align:left;vertical-align:top;border:0;background:transparent"
_NUMBER = "padding:.15em .8em .15em 0;text-align:right;vertical-align:top;border:0;background:transparent"
_QUIET = "opacity:.65;font-weight:normal"
_MONO = "font-family:monospace"
_BOX = "display:inline-block;width:.8em;height:.8em;margin-right:2px;border-radius:2px;box-sizing:border-box"
_INSIDE, _OUTSIDE = f"{_BOX};background:{BLUE}", f"{_BOX};border:1px solid currentColor;opacity:.35"


def controller_html(controller: RiskController) -> str:
    """The parameters of a controller and, once it is calibrated, what it found and what it guarantees.

    Examples
    --------
    >>> from ordinalrisk import RiskController
    >>> "Not calibrated yet" in controller_html(RiskController(alpha=0.1))
    True
    """
    lines = {
        "loss": _text(repr(controller.loss)),
        "alpha": _alpha(controller.alpha),
        "growth": _text(repr(controller.growth)),
        **_options(controller),
    }
    if not hasattr(controller, "threshold_"):
        if controller.classes is not None:
            lines["classes"] = _text(repr(controller.classes))  # checked by the calibration only
        told = f"Not calibrated yet; call {_code('calibrate(proba, y)')} with rows whose labels are known."
    else:
        lines |= {
            "classes": _names(controller.classes_.tolist()),
            "calibrated on": _calibrated_on(controller),
            **_thresholds(controller),
            "data": _code(_text(controller.data_blake3_, _DIGITS_SHOWN)),
        }
        told = escape(str(controller.guarantee()).replace("\n", " "))
    return (
        f"<div>{_heading(type(controller).__name__)}{_lines_table(lines)}"
        f'<div style="max-width:44em">{told}</div></div>'
    )


def interval_set_html(sets: IntervalSet) -> str:
    """The first intervals in a table, each drawn on the scale of the labels.

    Examples
    --------
    >>> from ordinalrisk import IntervalSet
    >>> page = interval_set_html(IntervalSet([0, 1], [0, 2], classes=["none", "mild", "severe"]))
    >>> "mild..severe" in page, page.count("<tr")
    (True, 3)
    """
    n, K = len(sets), len(sets.classes)
    mean = f", mean size {int(sets.size.sum()) / n:.4g}" if n else ""
    about = f" of {n:,} rows, {K:,} classes{mean}"
    shown = sets[:_ROWS_SHOWN].cpu()
    rows = [
        _interval_row(i, interval, int(first), int(last), K)
        for i, (interval, first, last) in enumerate(
            zip(shown, shown.lower_index, shown.upper_index, strict=True)
        )
    ]
    more = f'<div style="{_QUIET}">... {n - len(rows):,} more</div>' if n > len(rows) else ""
    return f"<div>{_heading(type(sets).__name__, about)}{_rows_table(rows)}{more}</div>"


def _interval_row(row: int, interval: Any, first: int, last: int, n_classes: int) -> str:
    lower, upper = (_text(str(label), _LONGEST_NAME) for label in interval)
    boxes = ""
    if n_classes <= _MOST_CELLS:
        drawn = (_INSIDE if first <= k <= last else _OUTSIDE for k in range(n_classes))
        cells = "".join(f'<span style="{style}"></span>' for style in drawn)
        boxes = f'<td style="{_CELL};white-space:nowrap" aria-hidden="true">{cells}</td>'
    return (
        f'<tr style="background:transparent"><td style="{_NUMBER};{_QUIET}">{row}</td>'
        f'<td style="{_CELL}">{lower if first == last else f"{lower}..{upper}"}</td>'
        f'{boxes}<td style="{_NUMBER}">{last - first + 1}</td></tr>'
    )


def _rows_table(rows: list[str]) -> str:
    if not rows:
        return ""
    drawn = ("",) if "aria-hidden" in rows[0] else ()
    titles = ("row", "interval", *drawn, "size")
    head = "".join(f'<th style="{_CELL};{_QUIET}">{title}</th>' for title in titles)
    return f'<table style="{_TABLE}"><tr style="background:transparent">{head}</tr>{"".join(rows)}</table>'


def _lines_table(lines: dict[str, str]) -> str:
    """One line for each name; the values are HTML already."""
    rows = "".join(
        f'<tr style="background:transparent"><th style="{_CELL};{_QUIET};white-space:nowrap">{name}</th>'
        f'<td style="{_CELL}">{value}</td></tr>'
        for name, value in lines.items()
    )
    return f'<table style="{_TABLE}">{rows}</table>'


def _heading(name: str, about: str = "") -> str:
    return f"<div><b>{escape(name)}</b>{about}</div>"


def _alpha(alpha: Any) -> str:
    if not isinstance(alpha, Mapping):
        return _text(str(alpha))
    return ", ".join(
        f"{_text(str(risk))} for {_text(str(label), _LONGEST_NAME)}" for label, risk in alpha.items()
    )


def _options(controller: RiskController) -> dict[str, str]:
    """The options that are in use."""
    lines = {}
    if controller.delta is not None:
        bound = "" if controller.bound == "auto" else f", {controller.bound} bound"
        lines["delta"] = _text(f"{controller.delta}{bound}")
    if controller.condition_on is not None:
        lines["condition on"] = _text(controller.condition_on)
    if controller.randomize:
        lines["randomize"] = "a coin decides at the threshold"
    return lines


def _calibrated_on(controller: RiskController) -> str:
    calibration = controller.calibration_
    strata = calibration.strata
    clusters = groups = ""
    if calibration.unit == "cluster":
        clusters = " in clusters"
    if strata.groups is not None:
        n = len(strata.groups)
        groups = f" of {n:,} group{'' if n == 1 else 's'}"
    weights = {None: "", "covariates": ", with weights", "labels": ", with class weights"}[calibration.shift]
    return f"{controller.n_rows_:,} rows{clusters}{groups}{weights}"


def _thresholds(controller: RiskController) -> dict[str, str]:
    """One threshold, or a small table of those of the groups and true classes."""
    found = controller.threshold_
    if not isinstance(found, dict):
        weighted = controller.calibration_.shift is not None
        mean = ", for a row of mean weight" if weighted and math.isfinite(found) else ""
        return {"threshold": _threshold(found) + mean}
    parts = controller.guarantee().parts
    rows = [_stratum_row(part, value) for part, value in zip(parts, found.values(), strict=True)]
    more = len(rows) - _STRATA_SHOWN
    hidden = f'<div style="{_QUIET}">... {more:,} more</div>' if more > 0 else ""
    table = (
        f'<table style="border-collapse:collapse;border:0;margin:0">{"".join(rows[:_STRATA_SHOWN])}</table>'
    )
    return {"thresholds": table + hidden}


def _stratum_row(part: Guarantee, threshold: float) -> str:
    names = [str(name) for name in (part.group, part.label) if name is not None]
    full = "every set holds all labels" if part.label is None else "always in the set"
    cells = [*(_text(name, _LONGEST_NAME) for name in names), _threshold(threshold, full)]
    cells.append(
        f'<span style="{_QUIET}">{part.n_rows:,} {part.unit}{"" if part.n_rows == 1 else "s"}</span>'
    )
    return (
        '<tr style="background:transparent">'
        + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
        + "</tr>"
    )


def _threshold(threshold: float, full: str = "every set holds all labels") -> str:
    number = _text(f"{threshold:.6g}", whole=repr(threshold))
    if math.isfinite(threshold):
        return number
    return f"{number}, {'single labels' if threshold > 0 else full}"


def _names(labels: list[Any]) -> str:
    """The labels in order; of many, the first ones and the last."""
    names = [_text(str(label), _LONGEST_NAME) for label in labels]
    if len(names) > _NAMES_SHOWN:
        names = [*names[: _NAMES_SHOWN - 2], "…", names[-1]]
    return f'{" &lt; ".join(names)} <span style="{_QUIET}">({len(labels):,})</span>'


def _text(text: str, longest: int = _LONGEST_TEXT, whole: str = "") -> str:
    """Escaped; where it is cut short, the whole is told when the pointer rests on it."""
    shown = text if len(text) <= longest else f"{text[:longest]}…"
    whole = whole or text
    return escape(shown) if shown == whole else f'<span title="{escape(whole)}">{escape(shown)}</span>'


def _code(html: str) -> str:
    return f'<span style="{_MONO}">{html}</span>'
