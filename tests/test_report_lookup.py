"""Every row of a report can be looked up: the page holds the first 20,000 with their sets at every stop."""

import base64
import gzip
import html
import json
from itertools import pairwise

import numpy as np
import pytest
import sizes
from browser import ReportPage, running_chromium

import ordinalrisk as orisk
from ordinalrisk.report import ReportSummary, render, summarise

pytestmark = pytest.mark.usefixtures("few_stops")

GRADES = ["None", "Mild", "Moderate", "Severe"]


def unpacked(summary):
    """The rows as a page unpacks them."""
    found = json.loads(gzip.decompress(base64.b64decode(summary["cases"]["lookup"]["packed"])))
    assert len({*map(len, found.values()), summary["cases"]["lookup"]["rows"]}) == 1
    return found


def sets_of(changes, n_stops):
    """The ends at each stop."""
    ends, parts = [], np.reshape(changes, (-1, 3)).tolist()
    for (stop, *these), (after, *_) in pairwise([*parts, [n_stops]]):
        ends += [these] * (after - stop)
    return ends


class Study:
    def __init__(self, draw, n_rows=300, **options):
        proba, y = draw(400, 4, seed=1)
        names = np.array(GRADES, object)
        sites = np.array(["a", "b"])[np.arange(400) % 2]
        columns = {"groups": sites} if options.pop("by_site", False) else {}
        self.controller = orisk.RiskController(alpha=0.1, classes=GRADES, **options)
        self.controller.calibrate(proba, names[y], **columns)
        self.proba, self.index = draw(n_rows, 4, seed=2)
        self.truth = names[self.index]
        self.columns = {"groups": np.resize(sites, n_rows)} if columns else {}
        self.ids = [f"{12_000 + row:,}" if row % 2 else f"{12_000 + row}" for row in range(n_rows)]

    def summary(self):
        cases = {"id": self.ids, "site": ["x"] * len(self.ids)}
        return summarise(self.controller, self.proba, self.truth, cases=cases, **self.columns)

    def sets(self, stop):
        return self.controller.predict_set(self.proba, alpha=stop["alpha"], **self.columns)


@pytest.mark.parametrize("options", [{}, {"by_site": True}, {"condition_on": "label"}, {"delta": 0.1}])
def test_every_row_has_its_set_at_every_stop(draw, options):
    study = Study(draw, **options)
    summary = study.summary()
    found, stops = unpacked(summary), summary["stops"]
    assert found["row"] == [*range(1, 301)]
    assert found["truth"] == study.index.tolist()
    assert found["values"] == [[each, "x"] for each in study.ids]
    ends = np.array([sets_of(changes, len(stops)) for changes in found["sets"]])
    for s, stop in enumerate(stops):
        sets = study.sets(stop)
        assert ends[:, s].tolist() == np.column_stack([sets.lower_index, sets.upper_index]).tolist()


def test_however_the_rows_are_cut(draw):
    study = Study(draw)
    parts = []
    for start, stop in ((200, 300), (0, 60), (60, 200)):
        part = ReportSummary(study.controller, first_row=start)
        ids = {"id": study.ids[start:stop], "site": ["x"] * (stop - start)}
        part.add(study.proba[start:stop], study.truth[start:stop], ids)
        parts.append(part)
    merged = parts[0].merge(parts[1]).merge(parts[2]).finish()
    assert merged["cases"] == study.summary()["cases"]


def test_of_many_rows_the_first_are_held(draw, monkeypatch):
    sizes.look_up_few_rows(monkeypatch, 40)
    study = Study(draw)
    summary = study.summary()
    assert unpacked(summary)["row"] == [*range(1, 41)]
    n_striking = len(summary["cases"]["rows"])
    assert any(case["row"] > 40 for case in summary["cases"]["rows"])
    words = f"The page has the first 40 of 300 rows and the {n_striking} that stand out"
    assert words in html.unescape(render(summary))


def test_rows_that_take_much_room_are_fewer(draw, monkeypatch):
    study = Study(draw)
    whole = len(study.summary()["cases"]["lookup"]["packed"])
    sizes.look_up_few_characters(monkeypatch, whole - 1)
    summary = study.summary()
    assert summary["cases"]["lookup"]["rows"] == 150
    assert unpacked(summary)["row"] == [*range(1, 151)]


def test_twenty_thousand_rows_fit_a_mail(draw):
    study = Study(draw, n_rows=20_000)
    summary = study.summary()
    assert summary["cases"]["lookup"]["rows"] == 20_000
    assert len(summary["cases"]["lookup"]["packed"]) < 500_000
    assert "The page has all 20,000 rows." in render(summary)


# the page


@pytest.fixture(scope="module")
def browser():
    yield from running_chromium()


@pytest.fixture(scope="module")
def shown(browser, draw, tmp_path_factory):
    study = Study(draw)
    page = ReportPage(
        browser.new_page(), tmp_path_factory.mktemp("page") / "report.html", study.summary()
    ).drawn(study.summary()["start"])
    yield study, page
    page.close()


def found(page, asked):
    """The rows that a page finds, once it has unpacked them."""
    page.page.locator("#find").fill(asked)
    page.page.wait_for_function("() => document.querySelector('[data-found]').children.length > 0")
    return page.table("[data-found]")[1:]


@pytest.mark.no_cover
def test_a_row_that_does_not_stand_out_is_found(shown):
    study, page = shown
    striking_rows = {case["row"] for case in page.summary["cases"]["rows"]}
    row = next(number for number in range(20, 300) if number not in striking_rows)
    for s in (page.summary["start"], 0):
        page.move(s)
        sets = study.sets(page.summary["stops"][s])
        lower, upper = (GRADES[ends[row - 1]] for ends in (sets.lower_index, sets.upper_index))
        [first, *_] = found(page, str(row))
        interval = lower if lower == upper else f"{lower} .. {upper}"
        assert first[:3] == [str(row), GRADES[study.index[row - 1]], interval]
        assert first[5] == study.ids[row - 1]


@pytest.mark.no_cover
@pytest.mark.parametrize("asked", ["12,101", "12101", "12 101", "12,100", "12100"])
def test_numbers_are_found_with_and_without_separators(shown, asked):
    """The ids of odd rows are written with a comma, those of even rows without."""
    study, page = shown
    [row] = found(page, asked)
    digits = "".join(letter for letter in asked if letter.isdigit())
    assert row[5] == study.ids[int(digits) - 12_000]
    assert row[5].replace(",", "") == digits


@pytest.mark.no_cover
def test_many_cases_are_cut_short_and_counted(shown):
    _, page = shown
    assert len(found(page, "X")) == 20  # of any case
    assert page.page.locator("[data-found]").inner_text().endswith("The first 20 of 300 rows.")
    page.page.locator("#find").fill("no such case")
    page.page.get_by_text("No row on this page matches.").wait_for()
    page.page.locator("#find").fill("")
    page.page.wait_for_function("() => document.querySelector('[data-found]').children.length === 0")
