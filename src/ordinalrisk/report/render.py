"""The second half of a report: the summary as one HTML page that needs nothing but a browser.

The page holds every position of its slider, so moving it looks numbers up and computes none. What stands in a
sentence or a headline is worded here, once, for every position, so the words are the same with and without
JavaScript. Charts and tables are drawn from the same data by ``charts.js``, ``tables.js`` and ``page.js``.
"""

from __future__ import annotations

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

Summary = Mapping[str, Any]

_MAX_BYTES = 6_000_000
_SCRIPTS = ("charts.js", "tables.js", "page.js")
_VERDICTS = {
    "agrees": "The test data agrees.",
    "chance": "The test data is above alpha, but within chance.",
    "disagrees": "The test data disagrees.",
    "nothing": "Nothing to check: every set is the whole scale.",
}
_RULES = {
    "frontier": "smallest around the point label at the risks it attains, if the probabilities are right",
    "adaptive": "evens out the model's own risk from row to row",
    "paper": "adds the better neighbour, one label at a time",
    "rps": "by ranked probability score, around the median",
}
_KEPT_OF_STOP = (
    *("alpha", "value", "verdict", "risk", "coverage", "mean_size", "sizes", "centroids"),
    *("class_coverage", "class_risk", "class_size", "held", "widest", "missed"),
)


def render(summary: Summary) -> str:
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
    page = _page(summary)
    if len(page.encode()) < _MAX_BYTES:
        return page
    without_map = [{**stop, "held": None} for stop in summary["stops"]]
    return _page({**summary, "stops": without_map})


def _page(summary: Summary) -> str:
    data = _page_data(summary)
    page: str = _template().render(
        summary=summary,
        has_map=summary["stops"][summary["start"]]["held"] is not None,
        verdict=summary["stops"][summary["start"]]["verdict"],
        fields=data["stops"][summary["start"]]["fields"],
        facts=_facts(summary),
        title=_title(summary),
        promise=_promise_words(summary),
        calibrated=wording.calibrated_alpha(summary),
        word=wording.alpha_word(summary),
        confidence=data["confidence"],
        data=_json_for_html(data),
        style=_own_file("page.css"),
        plotly=_script_for_html(_plotly_source()),
        script=_script_for_html("\n".join(map(_own_file, _SCRIPTS))),
        n=_count,
    )
    return page


def _promise_words(summary: Summary) -> dict[str, Any] | None:
    """What the page says of a promise that is more than one risk for all rows."""
    if "promise" not in summary:
        return None
    promise = summary["promise"]
    return {
        "heading": wording.heading(summary) if promise["by"] else None,
        "about": wording.parts_in_words(summary) if promise["by"] else [],
        "realised": wording.realised_in_words(summary),
        "interval_notes": wording.interval_notes(promise["unit"], promise["shift"]),
        "threshold": wording.how_thresholds_apply(summary),
        "limits": wording.limits(summary),
        "by_class": "class" in promise["by"],
        "own_alphas": wording.has_own_alphas(summary),
        "plain_rules": "without groups, weights, clusters or coins" if summary["rules"] else "",
    }


def _title(summary: Summary) -> str:
    tested = summary["test"]["file"] or f"{_count(summary['test']['rows'])} test rows"
    alpha = "alpha by class" if wording.has_own_alphas(summary) else f"alpha {summary['alpha']}"
    return f"Risk report: {tested}, {alpha}"


# --- what the page's own scripts read


def _page_data(summary: Summary) -> dict[str, Any]:
    bound = float(Fraction(summary["loss"]["bound"]))
    decimals = _loss_decimals(bound)
    stops = [
        {key: stop[key] for key in _KEPT_OF_STOP}
        | {"fields": _fields(stop, summary, decimals), "strata": _strata(stop, summary)}
        for stop in summary["stops"]
    ]
    return {
        "alpha": summary["alpha"],
        "alphaWord": wording.alpha_word(summary),
        "strata": _strata_facts(summary),
        "start": summary["start"],
        "bound": bound,
        "lossDecimals": decimals,
        "confidence": _confidence(summary),
        "classes": summary["classes"],
        "classRows": summary["test"]["class_rows"],
        "rows": summary["test"]["rows"],
        "growth": summary["growth"]["name"],
        "ruleNotes": _RULES,
        "stops": stops,
        "joined": summary["calibration"]["most_tied"] is not None,
        "cases": summary["cases"],
        "rules": summary["rules"],
    }


def _strata(stop: Summary, summary: Summary) -> list[dict[str, Any]]:
    """What is shown of each part that has a guarantee of its own, at one position of the slider."""
    kept = ("alpha", "value", "certified", "verdict", "risk", "units", "mean_size", "single")
    return [
        {key: part[key] for key in kept}
        | {"threshold": _threshold(part["threshold"]), "word": wording.part_word(part, summary)}
        for part in stop.get("strata", [])
    ]


def _strata_facts(summary: Summary) -> dict[str, Any] | None:
    """What is shown of each part wherever the slider stands."""
    if "promise" not in summary or not summary["promise"]["by"]:
        return None
    promise = summary["promise"]
    return {
        "names": [part["name"] for part in promise["strata"]],
        "rows": [part["test_rows"] for part in promise["strata"]],
        "calibrated": [part["calibration_units"] for part in promise["strata"]],
        "unit": promise["unit"],
        "weighted": promise["shift"] is not None,
        "title": {1: {"group": "group", "class": "true class"}[promise["by"][0]]}.get(
            len(promise["by"]), "group, true class"
        ),
    }


def _fields(stop: Summary, summary: Summary, decimals: int) -> dict[str, str]:
    """The text of each ``data-field`` of the page at one position of the slider."""
    return {
        "alpha": stop["alpha"],
        "lead": _lead(stop, summary),
        "guarantee": stop["guarantee"],
        "worst": _worst(stop, summary),
        "note": _note(stop),
        "tag": _tag(stop, summary),
        "verdict-word": _VERDICTS[stop["verdict"]],
        "verdict-text": stop["verdict_text"],
        **_estimate("risk", stop["risk"], lambda value: _fixed(value, decimals)),
        **_estimate("coverage", stop["coverage"], _percent),
        **_estimate("size", stop["mean_size"], lambda value: _fixed(value, 2)),
        "threshold": (
            wording.threshold_in_words(summary)
            if stop["threshold"] is None
            else _threshold(stop["threshold"])
        ),
    }


def _estimate(name: str, estimate: Sequence[float], text: Callable[[float], str]) -> dict[str, str]:
    value, low, high = map(text, estimate)
    return {name: value, f"{name}-low": low.removesuffix(" %"), f"{name}-high": high}


def _lead(stop: Summary, summary: Summary) -> str:
    if "lead" in stop and (stop["certified"] or summary["promise"]["by"]):
        return str(stop["lead"])
    if stop["certified"]:
        return f"Promised: the loss of a new row is at most {stop['alpha']} on average."
    rows = _count(summary["calibration"]["rows"])
    return (
        f"At alpha {stop['alpha']} every prediction is the whole scale: "
        f"{rows} calibration rows cannot certify anything narrower."
    )


def _worst(stop: Summary, summary: Summary) -> str:
    """What an average hides most: the class whose loss is the largest."""
    loss = [(estimate[0], y) for y, estimate in enumerate(stop["class_risk"]) if estimate]
    if len(loss) < 2:
        return ""
    largest, y = max(loss)
    name, rows = summary["classes"][y], _count(summary["test"]["class_rows"][y])
    share = stop["class_coverage"][y][0]
    about = wording.average_in_words(summary)
    by_misses = math.isclose(largest, 1 - share, abs_tol=1e-9)
    mean = "" if by_misses else f"its mean loss is {wording.in_digits(largest)}, and "
    return (
        f"{about} The class served worst is {name}: {mean}"
        f"{_percent(share)} of its {rows} rows have the truth in their set."
    )


def _note(stop: Summary) -> str:
    if stop["saturated"]:
        return (
            "Every set is a single label at this alpha, since those of the calibration rows kept within it. "
            "A larger alpha changes nothing."
        )
    return ""


def _tag(stop: Summary, summary: Summary) -> str:
    if "promise" in summary and (names := wording.uncertified(stop, summary)):
        return f"{len(names)} of {len(stop['strata'])} not certified"
    if not stop["certified"]:
        return "whole scale, not certified"
    return "single labels, saturated" if stop["saturated"] else ""


# --- what only the template reads


def _facts(summary: Summary) -> list[tuple[str, list[tuple[str, str, bool]]]]:
    """Groups of (term, value, whether the value is a code) for the auditor."""
    calibration, test = summary["calibration"], summary["test"]
    smallest = calibration["smallest_alpha"]
    point = summary["growth"]["point"]
    return [
        (
            "Calibration",
            [
                ("File", calibration["file"] or "not saved to a file", False),
                ("Rows", _count(calibration["rows"]), False),
                ("Calibrated alpha", wording.calibrated_alpha(summary), False),
                (
                    "Smallest alpha that can be certified",
                    "none" if smallest is None else _with_decimal(smallest, Fraction(smallest)),
                    False,
                ),
                ("Loss", summary["loss"]["text"], True),
                ("Largest possible loss (B)", calibration["bound"], False),
                ("Growth rule", f"{summary['growth']['name']} (point label: {point})", False),
                *_threshold_facts(calibration["threshold"]),
                *_level_facts(calibration["levels"], calibration["most_tied"]),
                *_columns(calibration["columns"]),
                ("Fingerprint of the calibration data (BLAKE3)", calibration["data_blake3"], True),
            ],
        ),
        *(wording.facts(summary) if "promise" in summary else []),
        (
            "Test",
            [
                ("File", test["file"] or "not read from a file", False),
                ("Rows", _count(test["rows"]), False),
                ("Fingerprint of the test data (BLAKE3)", test["data_blake3"], True),
            ],
        ),
        (
            "Report",
            [
                ("Classes, in order", ", ".join(summary["classes"]), False),
                ("Confidence of the intervals", _confidence(summary), False),
                ("ordinalrisk version", summary["package_version"], False),
            ],
        ),
    ]


def _level_facts(levels: int, most_tied: int | None) -> list[tuple[str, str, bool]]:
    if most_tied is None:
        return [("Levels of the risk curve that were kept", _count(levels), False)]
    return [
        ("Levels in the risk curve", _count(levels), False),
        ("Most rows that change at one level (M)", _count(most_tied), False),
    ]


def _threshold_facts(threshold: Summary | None) -> list[tuple[str, str, bool]]:
    if threshold is None:
        return []
    return [
        ("Threshold, decimal", threshold["decimal"], True),
        ("Threshold, hexadecimal", threshold["hex"], True),
    ]


def _columns(columns: Summary | None) -> list[tuple[str, str, bool]]:
    if columns is None:
        return [("Columns", "not recorded: the data came as arrays", False)]
    kind = "logits" if columns["logits"] else "probabilities"
    return [
        (f"Columns of {kind}", ", ".join(columns["scores"]), True),
        ("Column of the true label", columns["label"], True),
        *(
            (f"Column of the {role}s", columns[role], True)
            for role in ("group", "cluster", "weight")
            if columns.get(role) is not None
        ),
    ]


# --- numbers as text


def _fixed(value: float, decimals: int) -> str:
    """``value`` rounded as JavaScript's ``toFixed`` does: to nearest, and up when half way."""
    return format(Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP), "f")


def _percent(share: float) -> str:
    return f"{_fixed(100 * share, 2)} %"


def _loss_decimals(bound: float) -> int:
    """Decimals that show losses up to ``bound`` in steps of a ten-thousandth of its power of ten."""
    return min(max(4 - math.floor(math.log10(bound)), 0), 12)


def _threshold(threshold: float | str) -> str:
    if isinstance(threshold, str):
        return {"inf": "∞", "-inf": "−∞"}[threshold]  # noqa: RUF001
    return f"{threshold:.5g}"


def _with_decimal(text: str, value: Fraction) -> str:
    return f"{text} (about {float(value):.3g})" if "/" in text else text


def _count(number: int) -> str:
    return f"{number:,}"


def _confidence(summary: Summary) -> str:
    return f"{100 * summary['confidence']:.6g} %"


# --- files and packages


def _json_for_html(data: Mapping[str, Any]) -> str:
    r"""JSON that can stand inside any element: nothing in it starts a tag, an entity or a new line.

    Examples
    --------
    >>> print(_json_for_html({"name": "</script>&"}))
    {"name":"\u003c/script\u003e\u0026"}
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _script_for_html(source: str) -> str:
    r"""A script that does not end the element it stands in, nor open a comment there.

    Examples
    --------
    >>> print(_script_for_html("'</script><!--'"))
    '<\/script><\!--'
    """
    return re.sub(r"<(/script|!--)", r"<\\\1", source, flags=re.IGNORECASE)


def _own_file(name: str) -> str:
    return files("ordinalrisk.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _plotly_source() -> str:
    source: str = _extra("plotly.offline").get_plotlyjs()
    return source


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
