"""The second half of a report: the summary as one HTML page that needs nothing but a browser.

The page has the numbers of every slider position, so moving the slider computes nothing. Sentences and
headlines for every position are written here, so they are the same with and without JavaScript. Charts and
tables are drawn from the same data by ``charts.js``, ``tables.js`` and ``page.js``. Most of the page is the
script that draws charts, which is compressed; the browser unpacks it.
"""

from __future__ import annotations

import base64
import gzip
import importlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from ordinalrisk.display import wording
from ordinalrisk.display.wording import SummaryData

_MAX_BYTES = 6_000_000
_SCRIPTS = ("charts.js", "tables.js", "page.js")
_ICONS = {"green": "agrees", "amber": "amber", "red": "disagrees"}
_SATURATED = (
    "Every set is a single label at this alpha, because single labels already keep the loss of the "
    "calibration rows low enough. A larger alpha changes nothing."
)
_KEPT_OF_STOP = (
    *("alpha", "value", "colour", "risk", "coverage", "mean_size", "sizes", "centroids"),
    *("class_coverage", "class_risk", "class_size", "held", "widest", "missed"),
)


def render(summary: SummaryData) -> str:
    """The report as one self-contained HTML page.

    Parameters
    ----------
    summary : dict
        What ``summarise`` returns, or the same read from JSON. Its text may hold anything; the page shows it
        as text.

    Returns
    -------
    str
        The page, below 6 MB. It fetches nothing, and the same summary gives the same page.

    Raises
    ------
    ImportError
        If plotly or jinja2 is missing.
    ValueError
        If ``summary`` is not one of a report.

    Examples
    --------
    >>> from ordinalrisk import RiskController
    >>> from ordinalrisk.report import summarise
    >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
    >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
    >>> page = render(summarise(controller, proba, [0, 1, 2] * 7))
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    if summary.get("format") != "ordinalrisk report" or summary.get("schema_version") != 1:
        raise ValueError(
            "this is not a report's summary of schema version 1: "
            f"format={summary.get('format')!r}, schema_version={summary.get('schema_version')!r}"
        )
    if missing := [name for name in ("title", "slices", "reliability", "scores") if name not in summary]:
        raise ValueError(
            f"this summary lacks {', '.join(map(repr, missing))}, which a page shows: ordinalrisk "
            f"{summary.get('package_version')} wrote it; make a new one from the test rows"
        )
    page = _page(summary)
    if len(page.encode()) < _MAX_BYTES:
        return page
    without_map = [{**stop, "held": None} for stop in summary["stops"]]
    return _page({**summary, "stops": without_map})


def _page(summary: SummaryData) -> str:
    data, start = _page_data(summary), summary["stops"][summary["start"]]
    page: str = _template().render(
        summary=summary,
        has_map=start["held"] is not None,
        icon=_icon(start),
        colour=start["colour"],
        test_size=_bytes_in_words(summary["test"]["bytes"]),
        slice_notes=_slice_notes(summary),
        findable=_findable(summary),
        risk_reading=_risk_reading(summary, data["confidence"]),
        reliability_words=_reliability_words(summary),
        fields=data["stops"][summary["start"]]["fields"],
        promise_facts=wording.facts(summary, _bound(summary)) if "promise" in summary else [],
        smallest_alpha=_smallest_alpha(summary),
        title=_title(summary),
        promise=_promise_words(summary),
        calibrated=wording.calibrated_alpha(summary),
        word=wording.alpha_word(summary),
        confidence=data["confidence"],
        data=_json_for_html(data),
        style=_own_file("page.css"),
        plotly=_packed_plotly(),
        script=_script_for_html("\n".join(map(_own_file, _SCRIPTS))),
        n="{:,}".format,
    )
    return page


def _promise_words(summary: SummaryData) -> dict[str, Any] | None:
    """Return what the page says of a guarantee that is more than one risk for all rows."""
    if "promise" not in summary:
        return None
    promise = summary["promise"]
    return {
        "heading": wording.strata_heading(summary) if promise["by"] else None,
        "about": wording.parts_in_words(summary) if promise["by"] else [],
        "realised": wording.realised_in_words(summary),
        "interval_notes": wording.interval_notes(promise["unit"], promise["shift"]),
        "threshold": wording.how_thresholds_apply(summary),
        "limits": wording.limits(summary),
        "by_class": "class" in promise["by"],
        "exempt": wording.exempt_in_words(summary),
        "own_alphas": wording.has_own_alphas(summary),
        "plain_rules": "with one guarantee on average over all rows" if summary["rules"] else "",
    }


def _title(summary: SummaryData) -> str:
    if summary["title"]:
        return str(summary["title"])
    tested = summary["test"]["file"] or f"{summary['test']['rows']:,} test rows"
    alpha = "alpha by class" if wording.has_own_alphas(summary) else f"alpha {summary['alpha']}"
    return f"Risk report: {tested}, {alpha}"


# --- what the page's own scripts read


def _page_data(summary: SummaryData) -> dict[str, Any]:
    from ordinalrisk.growth.rules import GROWTH_RULES

    bound = float(Fraction(summary["loss"]["bound"]))
    decimals = _loss_decimals(bound)
    stops = [
        {key: stop[key] for key in _KEPT_OF_STOP}
        | {"icon": _icon(stop), "fields": _fields(stop, summary, decimals), "strata": _strata(stop, summary)}
        for stop in summary["stops"]
    ]
    return {
        "alpha": summary["alpha"],
        "alphaWord": wording.alpha_word(summary),
        "strata": _strata_facts(summary),
        "start": summary["start"],
        "bound": bound,
        "lossDecimals": decimals,
        "confidence": f"{100 * summary['confidence']:.6g} %",
        "classes": summary["classes"],
        "classRows": summary["test"]["class_rows"],
        "rows": summary["test"]["rows"],
        "growth": summary["growth"]["name"],
        "ruleNotes": {name: rule.note for name, rule in GROWTH_RULES.items()},
        "stops": stops,
        "joined": summary["calibration"]["most_tied"] is not None,
        "cases": summary["cases"],
        "slices": summary["slices"],
        "reliability": summary["reliability"],
        "scores": summary["scores"],
        "rules": summary["rules"],
    }


def _strata(stop: SummaryData, summary: SummaryData) -> list[dict[str, Any]]:
    """Return what is shown of each group and true class at one position of the slider."""
    kept = ("alpha", "value", "certified", "exempt", "verdict", "risk", "units", "mean_size", "single")
    return [
        {key: part[key] for key in kept}
        | {"threshold": _threshold(part["threshold"]), "word": wording.part_word(part, summary)}
        for part in stop.get("strata", [])
    ]


def _strata_facts(summary: SummaryData) -> dict[str, Any] | None:
    """Return what is shown of each group and true class wherever the slider stands."""
    if "promise" not in summary or not summary["promise"]["by"]:
        return None
    promise = summary["promise"]
    return {
        "names": [part["name"] for part in promise["strata"]],
        "rows": [part["test_rows"] for part in promise["strata"]],
        "calibrated": [part["calibration_units"] for part in promise["strata"]],
        "unit": promise["unit"],
        "weighted": promise["shift"] is not None,
        "title": ", ".join(promise["by"]).replace("class", "true class"),
    }


def _fields(stop: SummaryData, summary: SummaryData, decimals: int) -> dict[str, str]:
    """Return the text of each ``data-field`` of the page at one position of the slider."""
    threshold = stop["threshold"]
    return {
        "alpha": stop["alpha"],
        "headline": stop["headline"],
        "guarantee": stop["guarantee"],
        "worst": " ".join(
            filter(None, (wording.average_in_words(stop, summary), wording.worst_in_words(stop, summary)))
        ),
        "note": _SATURATED if stop["saturated"] else "",
        "tag": _tag(stop, summary),
        "sentence": stop["sentence"],
        "verdict-text": stop["verdict_text"],
        **_estimate("risk", stop["risk"], lambda value: _fixed(value, decimals)),
        **_estimate("coverage", stop["coverage"], _percent),
        **_estimate("size", stop["mean_size"], lambda value: _fixed(value, 2)),
        "threshold": wording.threshold_in_words(summary) if threshold is None else _threshold(threshold),
    }


def _estimate(name: str, estimate: Sequence[float], text: Callable[[float], str]) -> dict[str, str]:
    value, low, high = map(text, estimate)
    return {name: value, f"{name}-low": low.removesuffix(" %"), f"{name}-high": high}


def _icon(stop: SummaryData) -> str:
    """Return the icon of a verdict: one for each colour, and another one if the rows show nothing."""
    return "nothing" if stop["verdict"] == "nothing" else _ICONS[stop["colour"]]


def _slice_notes(summary: SummaryData) -> list[str]:
    """Explain the table of slices; nothing without one."""
    if (slices := summary["slices"]) is None:
        return []
    notes = [  # earlier summaries have no fewest_rows
        f"At the calibrated alpha, sets miss {_short(slices['missed'])} of all rows. Of the "
        f"{slices['looked_at']:,} values of {', '.join(slices['columns'])}, these have the most misses."
    ]
    notes += ["The intervals hold for all values together (Bonferroni), so few stand out by chance."]
    if (fewest := slices.get("fewest_rows", 1)) > 1:
        notes.append(f"Values with fewer than {fewest} rows are not shown.")
    if slices["left_out"]:
        notes.append(f"Columns with too many values are left out: {', '.join(slices['left_out'])}.")
    promise = summary.get("promise")
    if promise is not None and promise["unit"] == "cluster":
        notes.append("The intervals treat rows as independent; with clusters they are too narrow.")
    if promise is not None and promise["shift"] is not None:
        notes.append("Each row counts once, without weights.")
    return notes


def _risk_reading(summary: SummaryData, confidence: str) -> str:
    """Explain the chart of the realised risk against alpha."""
    start = "The line should be on or below the dashed diagonal, apart from chance."
    if "promise" in summary and summary["promise"]["exempt"]:
        start = "The line includes classes without a guarantee, so it may be above the dashed diagonal."
    if wording.has_own_alphas(summary):
        start = ""
    in_use = f"the diamond is the {wording.alpha_word(summary)} in use"
    return f"{start} The band is the {confidence} confidence interval, and {in_use}.".strip()


def _findable(summary: SummaryData) -> str:
    """Say which rows the page can find."""
    held, n_rows = summary["cases"]["lookup"]["rows"], summary["test"]["rows"]
    if held == n_rows:
        return f"The page has all {n_rows:,} rows." if n_rows > 1 else "The page has one row."
    also = f"and the {len(summary['cases']['rows']):,} that stand out at some alpha"
    return f"The page has the first {held:,} of {n_rows:,} rows {also}."


def _reliability_words(summary: SummaryData) -> str:
    top = summary["reliability"]["top"]
    return (
        "On average, the model gives its most probable label a probability of "
        f"{_short(top['predicted'])}; this label is right in {_short(top['right'])} of the rows."
    )


def _tag(stop: SummaryData, summary: SummaryData) -> str:
    if "promise" in summary and (names := wording.uncertified(stop, summary)):
        return f"{len(names)} of {len(stop['strata'])} with too few {summary['promise']['unit']}s"
    if not stop["certified"]:
        return "full sets: too few calibration rows"
    return "saturated: single labels" if stop["saturated"] else ""


def _bound(summary: SummaryData) -> str | None:
    """Return the confidence bound in words, if there is one."""
    from ordinalrisk.calibration.confidence_bounds import BOUNDS

    if (name := summary["promise"]["bound"]) is None:
        return None
    bound = BOUNDS[name]
    return f"{bound.words}, for every alpha at once" if bound.every_alpha else bound.words


# --- numbers as text


def _fixed(value: float, decimals: int) -> str:
    """Round as JavaScript's ``toFixed`` does: to nearest, and up when half way."""
    return format(Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP), "f")


def _percent(share: float) -> str:
    return f"{_fixed(100 * share, 2)} %"


def _short(share: float) -> str:
    return f"{_fixed(100 * share, 1)} %"


def _loss_decimals(bound: float) -> int:
    """Return the decimals that show losses in steps of a ten-thousandth of the bound's power of ten."""
    return min(max(4 - math.floor(math.log10(bound)), 0), 12)


def _bytes_in_words(n_bytes: int | None) -> str:
    """Write the size of files.

    Examples
    --------
    >>> _bytes_in_words(512), _bytes_in_words(1_234_567), _bytes_in_words(None)
    ('512 bytes', '1.2 MB', '')
    """
    if n_bytes is None:
        return ""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "kB")):
        if n_bytes >= 1000**power:
            return f"{n_bytes / 1000**power:.1f} {unit}"
    return f"{n_bytes:,} bytes"


def _threshold(threshold: float | str) -> str:
    if isinstance(threshold, str):
        return {"inf": "∞", "-inf": "−∞"}[threshold]  # noqa: RUF001
    return f"{threshold:.5g}"


def _smallest_alpha(summary: SummaryData) -> str:
    """Write the smallest alpha that can be certified; nothing for pools, which depend on alpha."""
    if any(part["pool"] for stop in summary["stops"] for part in stop.get("strata", [])):
        return ""
    text: str | None = summary["calibration"]["smallest_alpha"]
    if text is None:
        return "none"
    return f"{text} (about {float(Fraction(text)):.3g})" if "/" in text else text


# --- files and packages


def _json_for_html(data: Mapping[str, Any]) -> str:
    r"""Return JSON that can stand inside any element: it starts no tag, entity or new line.

    Examples
    --------
    >>> print(_json_for_html({"name": "</script>&"}))
    {"name":"\u003c/script\u003e\u0026"}
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _script_for_html(source: str) -> str:
    r"""Escape what would end the element that a script stands in, or open a comment there.

    Examples
    --------
    >>> print(_script_for_html("'</script><!--'"))
    '<\/script><\!--'
    """
    return re.sub(r"<(/script|!--)", r"<\\\1", source, flags=re.IGNORECASE)


def _own_file(name: str) -> str:
    return files("ordinalrisk.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _packed_plotly() -> str:
    """Return Plotly's script, compressed and in base64: two fifths of its size."""
    source: str = _extra("plotly.offline").get_plotlyjs()
    return base64.b64encode(gzip.compress(source.encode(), 6, mtime=0)).decode()


def _template() -> Any:
    jinja2 = _extra("jinja2")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_own_file("page.html.j2"))


def _extra(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        name = module.partition(".")[0]
        raise ImportError(f'the report needs {name}: pip install "ordinalrisk[report]"') from missing
