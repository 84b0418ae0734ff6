"""What a report says of single classes is true: of those far off, exempt, or in a pool."""

import html
import json
import re

import numpy as np
import pytest
from browser import ReportPage, running_chromium

import ordinalrisk as orisk
from ordinalrisk.report import render, summarise

pytestmark = [
    pytest.mark.usefixtures("few_stops"),
    pytest.mark.filterwarnings("ignore:.*(too few|needs at least):UserWarning"),
]

GRADES = np.array(["None", "Mild", "Severe", "Worst"], object)


def text_of(summary):
    page = render(summary)
    data = json.loads(re.search('id="data">(.*?)</script>', page, flags=re.DOTALL)[1])
    shown = html.unescape(re.sub("<.*?>", " ", page.partition("<body>")[2].partition('<script type="app')[0]))
    return " ".join(shown.split()), data


def start(summary):
    return summary["stops"][summary["start"]]


@pytest.fixture(scope="module")
def pooled(draw):
    """Few rows of the upper two classes share a threshold, and there is no guarantee for the first."""
    proba, y = draw(600, 4, seed=1)
    keep = (y < 2) | (np.cumsum(y >= 2) <= 14)
    controller = orisk.RiskController(
        alpha=0.1,
        classes=[*GRADES],
        condition_on="label",
        pool_classes=True,
        exempt_classes=["None"],
        check=False,
    )
    controller.calibrate(proba[keep], GRADES[y[keep]])
    test, truth = draw(500, 4, seed=2)
    return summarise(controller, test, GRADES[truth])


def test_one_class_is_named_as_far_off_and_no_other(draw):
    proba, y = draw(4000, 4)
    spoilt = np.where((y == 3)[:, None], [0.7, 0.2, 0.06, 0.04], proba)
    order = np.random.default_rng(0).permutation([*np.flatnonzero(y < 3), *np.flatnonzero(y == 3)[:100]])
    cal, test = order[: len(order) // 2], order[len(order) // 2 :]
    controller = orisk.RiskController(alpha=0.1, classes=[*GRADES], check=False)
    controller.calibrate(spoilt[cal], GRADES[y[cal]])
    summary = summarise(controller, spoilt[test], GRADES[y[test]])
    stop = start(summary)
    assert stop["colour"] == "amber"
    assert (stop["far_off"][0]["kind"], stop["far_off"][0]["name"]) == ("class", "Worst")
    assert "'Worst'" in stop["sentence"]
    shown, data = text_of(summary)
    assert "The class" not in shown
    for of_stop, fields in zip(summary["stops"], data["stops"], strict=True):
        named = any(each["kind"] == "class" for each in of_stop["far_off"])
        assert ("The class" in fields["fields"]["worst"]) == (not named)


def test_a_class_without_a_promise_has_no_verdict(pooled):
    shown, data = text_of(pooled)
    none = data["stops"][pooled["start"]]["strata"][0]
    assert (none["exempt"], none["word"]) == (True, "no guarantee")
    assert "There is no guarantee for None." in shown
    assert "the calibration rows themselves" not in json.dumps(data)
    assert "It includes None, without a guarantee, so it may be above alpha." in shown
    assert "so it may be above the dashed diagonal" in shown
    assert "for each true class except None." in shown
    assert "none: no guarantee" in shown
    assert "Smallest alpha" not in shown  # pools are others at another alpha
    assert "too few" not in data["stops"][pooled["start"]]["fields"]["tag"]


def test_a_class_without_a_promise_is_not_the_one_missed_most(pooled):
    """It is missed most often, since nothing holds it."""
    coverage = [estimate[0] for estimate in start(pooled)["class_coverage"]]
    assert coverage[0] == min(coverage)
    worst = GRADES[1 + int(np.argmin(coverage[1:]))]
    assert f"The class missed most often is {worst}: " in text_of(pooled)[0]


def test_classes_that_share_a_guarantee_are_named(pooled):
    shown, data = text_of(pooled)
    *_, severe, worst = data["stops"][pooled["start"]]["strata"]
    assert severe["word"] == worst["word"]
    assert severe["word"].endswith("(Severe + Worst together)")
    assert "These classes share a threshold and a guarantee: Severe + Worst." in shown


def test_a_single_row_is_one_row(draw):
    proba, y = draw(400, 3)
    controller = orisk.RiskController(alpha=0.3).calibrate(proba, y)
    shown, _ = text_of(summarise(controller, proba[[0, 1, 2]], [1, 2, 0]))
    assert re.search(
        r"of its sets miss the truth \((0|1) of 1 row\)|The mean loss of every class is 0", shown
    )
    assert "There are too few rows to tell whether the scores differ" in shown
    assert "Values with the most misses" not in shown


@pytest.fixture(scope="module")
def browser():
    yield from running_chromium()


@pytest.mark.no_cover
def test_the_table_has_no_alpha_for_it_and_the_chart_no_line(pooled, browser, tmp_path):
    page = ReportPage(browser.new_page(), tmp_path / "report.html", pooled).drawn(pooled["start"])
    header, none, mild, *_ = page.table("[data-strata]")
    cells = {title: (none[k], mild[k]) for k, title in enumerate(header)}
    assert cells["alpha"] == ("-", "0.1")
    assert cells["threshold"][0] == "-"
    assert [round(shape["y0"], 2) for shape in page.data("strata")["layout"]["shapes"]] == [0.58, 1.58, 2.58]
    page.close()


@pytest.mark.no_cover
def test_short_text_stays_on_one_line_and_a_desk_needs_no_scrolling(draw, browser, tmp_path):
    proba, y = draw(300, 4)
    controller = orisk.RiskController(alpha=0.1, classes=[*GRADES]).calibrate(proba, GRADES[y])
    values = {"a": "f", "b": "left", "c": "12,345", "d": "Nidek", "e": "x", "f": "y"}
    cases = {name: [value] * 300 for name, value in values.items()}
    summary = summarise(controller, proba, GRADES[y], cases=cases)
    page = ReportPage(browser.new_page(), tmp_path / "report.html", summary).drawn(summary["start"])
    widest = page.page.locator("[data-cases=widest]")
    assert widest.evaluate("box => box.scrollWidth <= box.clientWidth")
    heights = widest.locator("tbody tr").evaluate_all("rows => rows.map(row => row.clientHeight)")
    assert max(heights) <= min(heights) + 1
    page.close()
