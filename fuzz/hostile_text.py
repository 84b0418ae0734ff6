"""Scripts, formulas and control characters as names in reports: the page keeps its elements."""

import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pandas as pd
from hypothesis import strategies as st

import ordinalrisk as orisk
from fuzz.checking import VOCABULARY, WrongError, rows

CASES_A_ROUND = 6
_PLACES = ["class", "group", "column", "value", "calibration file", "test file"]


def cases() -> st.SearchStrategy[dict[str, Any]]:
    """Some text in some places; each place that is not named has harmless text."""
    text = st.one_of(
        st.sampled_from(VOCABULARY["payloads"]),
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=12),
    )
    return st.fixed_dictionaries(
        {"text": text, "places": st.lists(st.sampled_from(_PLACES), min_size=1, unique=True)}
    )


class _Elements(HTMLParser):
    """The elements of a page, with the names of their attributes; and where code could hide."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[tuple[str, ...]] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[tag, *sorted(name for name, _ in attrs)] += 1
        if any(name.startswith("on") or "script:" in (value or "") for name, value in attrs):
            self.found["script in an attribute", tag] += 1


def elements(page: str) -> Counter[tuple[str, ...]]:
    """How often each kind of element is on a page."""
    parser = _Elements()
    parser.feed(page)
    parser.close()
    return parser.found


def check(case: dict[str, Any]) -> None:
    """Text is text: it adds no element, no attribute and no end of a script."""
    try:
        hostile = _page(dict.fromkeys(case["places"], case["text"]))
    except ValueError:
        return
    found, harmless = elements(hostile), elements(_page({}))
    if any(found[element] and not harmless[element] for element in found):
        new = [element for element in found if not harmless[element]]
        raise WrongError(f"text became an element: {new}")
    if found["script",] != harmless["script",]:
        raise WrongError(f"text became a script: {found['script',]}")
    if len(re.findall("(?i)</script", hostile)) != len(re.findall("(?i)</script", _page({}))):
        raise WrongError("text ended a script")


def _page(texts: dict[str, str]) -> str:
    said = {place: texts.get(place, "name") for place in _PLACES}
    proba, y = rows(40, 3, 0)
    classes = [f"{said['class']}{k}" for k in range(3)]
    groups = [f"{said['group']}{k % 2}" for k in range(40)]
    named = [classes[k] for k in y]
    controller = orisk.RiskController(alpha=0.3, classes=classes).calibrate(proba, named, groups=groups)
    summary = orisk.report.summarise(
        controller,
        proba,
        named,
        groups=groups,
        cases=pd.DataFrame({said["column"]: [said["value"]] * 40}),
        calibration_file=said["calibration file"],
        test_file=said["test file"],
    )
    page: str = orisk.report.render(summary)
    return page


def warm_up() -> None:
    """Import what reports import, and let them be about few risks, which makes them sooner."""
    from ordinalrisk.report import stops

    for name, value in {
        "MOST_STOPS": 9,
        "MOST_STOPS_BY_ROW": 9,
        "FEWEST_STOPS": 2,
        "_FEWEST_STOPS_BY_ROW": 2,
    }.items():
        setattr(stops, name, value)
    _page({})
