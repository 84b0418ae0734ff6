"""The page of the report in a real browser shows the numbers of the library at each alpha."""

import copy
import itertools
import json
import re
import sys
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import numpy as np
import pytest
from browser import DESK, ReportPage, running_chromium
from strategies import labels_drawn

import ordinalrisk as orisk
from ordinalrisk.report import render, summarise

pytest.importorskip("plotly", reason="the page needs plotly")
pytest.importorskip("jinja2", reason="the page needs jinja2")

pytestmark = pytest.mark.no_cover  # what is tested runs in the browser
GRADES = ["None", "Mild", "Moderate", "Severe", "Proliferative"]
NASTY = ["<script>alert(1)</script>", "<b>B</b> &lt;", '"q" $x^2$ %{x}']
LONG = [f"A class with a rather long name, number {k}" for k in range(20)]
CHARTS = [
    *("risk", "size", "sizes", "centroids", "class_coverage", "class_risk", "held"),
    *("top", "cumulative", "scores", "rules"),
]


# --- data


def draw(n_rows, n_classes, seed):
    rng = np.random.default_rng(seed)
    centre = rng.beta(1, 2, n_rows) * (n_classes - 1)
    logits = -0.5 * ((np.arange(n_classes) - centre[:, None]) / 0.8) ** 2
    proba = orisk.probabilities.softmax(logits + rng.normal(0, 0.3, (n_rows, n_classes)))
    return proba, labels_drawn(proba, rng)


class Study:
    """A calibration, test rows and their summary."""

    def __init__(self, classes, *, loss="coverage", alpha=0.1, n_calibration=600, n_test=400, labels=None):
        self.classes = np.array(classes, dtype=object)
        proba, y = draw(n_calibration, len(classes), 1)
        self.proba, self.labels = draw(n_test, len(classes), 2)
        if labels is not None:
            self.labels = np.minimum(self.labels, labels - 1)
        self.controller = orisk.RiskController(loss=loss, alpha=alpha, classes=classes)
        self.controller.calibrate(proba, self.classes[y])
        self.truth = self.classes[self.labels]
        self.ids = [f"<i>case</i> {row}" for row in range(n_test)]
        self.summary = json.loads(json.dumps(self._summary()))

    def _summary(self):
        return summarise(
            self.controller,
            self.proba,
            self.truth,
            cases={"id": self.ids},
            calibration_file="calibration.json",
            test_file="test.parquet",
            columns={
                "scores": [f"p{k}" for k in range(len(self.classes))],
                "label": "grade",
                "logits": False,
            },
        )

    def stop(self, s):
        return self.summary["stops"][s]

    def sets(self, s):
        return self.controller.predict_set(self.proba, alpha=Fraction(self.stop(s)["alpha"]))


def fixed(value, decimals):
    return str(Decimal(float(value)).quantize(Decimal(10) ** -decimals, ROUND_HALF_UP))


def percent(value, decimals=2):
    return f"{fixed(100 * value, decimals)} %"


# --- pages


PHONE = {"width": 360, "height": 740}


class Report(ReportPage):
    """One with fields that show the numbers of a stop."""

    def field(self, name):
        """The text of a field, which is the same wherever it is shown."""
        shown = self.page.locator(f"[data-field='{name}']").all_text_contents()
        assert len(set(shown)) == 1
        return shown[0]

    def traces(self, chart):
        return self.data(chart)["data"]

    def ticks(self, chart, axis):
        inside = f"[data-chart='{chart}'] .{axis}tick text"
        return self.page.locator(inside).evaluate_all("texts => texts.map(text => text.textContent)")

    def open_numbers(self):
        closed = self.page.locator("details:not([open]) summary")
        closed.evaluate_all("all => all.forEach(summary => summary.click())")
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('[data-table]')].every(d => d.querySelector('table'))"
        )


@pytest.fixture(scope="module")
def browser():
    yield from running_chromium()


def new_tab(browser, **options):
    tab = browser.new_context(**options).new_page()
    tab.add_init_script("window.charts = () => [...document.querySelectorAll('[data-chart]')]")
    return tab


@pytest.fixture(scope="module")
def tab(browser):
    """One for all reports that are opened one after the other."""
    return new_tab(browser)


@pytest.fixture(scope="module")
def grades():
    return Study(GRADES, n_test=1500)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """One for all of them too, since the browser keeps the compiled scripts of an address."""
    return tmp_path_factory.mktemp("pages") / "the report.html"


@pytest.fixture
def opened(tab, path):
    """``opened(summary, ...)`` opens a report; in the end there were no complaints, nothing was fetched."""
    reports = []

    def open_report(summary, tab=tab, **options):
        while reports:
            reports.pop().close()
        reports.append(Report(tab, path, summary, **options))
        return reports[-1]

    yield open_report
    for report in reports:
        report.close()


@pytest.fixture(scope="module")
def shared(browser, grades, tmp_path_factory):
    """One open report of the grades for the tests that only move it."""
    report = Report(new_tab(browser), tmp_path_factory.mktemp("page") / "report.html", grades.summary)
    yield report
    report.close()


@pytest.fixture
def report(shared, grades):
    """The shared report as it was when it opened."""
    shared.page.set_viewport_size(DESK)
    shared.page.emulate_media(media="null", color_scheme="light")
    shared.page.evaluate(
        "scrollTo(0, 0); document.querySelectorAll('details').forEach(each => each.open = false)"
    )
    return shared.move(grades.summary["start"])


@pytest.fixture(scope="module", params=["first", "start", "middle", "last"])
def stop(request, grades):
    n = len(grades.summary["stops"])
    return {"first": 0, "start": grades.summary["start"], "middle": n // 2, "last": n - 1}[request.param]


@pytest.fixture
def report_at_stop(shared, stop):
    return shared.move(stop)


# --- numbers


def test_fields_are_the_librarys_numbers(report_at_stop, grades, stop):
    report = report_at_stop
    alpha, sets, y = grades.stop(stop)["alpha"], grades.sets(stop), grades.truth
    risk = orisk.metrics.risk(y, sets, loss=grades.controller.loss, confidence=0.95)
    coverage = orisk.metrics.coverage(y, sets, confidence=0.95)
    size = orisk.metrics.mean_size(sets, confidence=0.95)
    ends = ["", "-low", "-high"]
    assert report.field("alpha") == alpha
    assert [report.field("risk" + end) for end in ends] == [fixed(value, 4) for value in risk]
    assert [report.field("size" + end) for end in ends] == [fixed(value, 2) for value in size]
    assert report.field("coverage") == percent(coverage.value)
    assert report.field("coverage-low") == fixed(100 * coverage.low, 2)
    assert report.field("coverage-high") == percent(coverage.high)
    threshold = grades.controller.guarantee(Fraction(alpha))
    assert report.field("guarantee") == " ".join(str(threshold).splitlines())
    percent_of_sets = f"{float(100 * Fraction(alpha)):.4g} %"
    assert report.field("headline") == f"At most {percent_of_sets} of sets miss the truth."
    assert report.field("sentence") == grades.stop(stop)["sentence"]
    assert report.field("verdict-text") == grades.stop(stop)["verdict_text"]
    by_class = orisk.metrics.class_coverage(y, sets)
    worst = int(np.nanargmin(by_class))
    name, rows = grades.summary["classes"][worst], f"{grades.summary['test']['class_rows'][worst]:,} rows)."
    named = any(each["kind"] == "class" for each in grades.stop(stop)["far_off"])
    assert (f"The class missed most often is {name}: " in report.field("worst")) == (not named)
    assert report.field("worst").endswith("all classes." if named else rows)
    assert report.slider.get_attribute("aria-valuetext") == f"alpha {alpha}"


def test_threshold_at_each_stop(report_at_stop, grades, stop):
    report = report_at_stop
    threshold = grades.stop(stop)["threshold"]
    expected = {"inf": "∞", "-inf": "−∞"}.get(threshold) or f"{threshold:.5g}"  # noqa: RUF001
    assert report.field("threshold") == expected


def test_curves_are_drawn_with_a_mark_at_the_stop(report_at_stop, grades, stop):
    report = report_at_stop
    stops = grades.summary["stops"]
    for chart, key in [("risk", "risk"), ("size", "mean_size")]:
        low, high, line, mark = report.traces(chart)[:4]
        assert line["x"] == [each["value"] for each in stops]
        drawn = list(map(list, zip(line["y"], low["y"], high["y"], strict=True)))
        assert drawn == [each[key] for each in stops]
        assert (mark["x"], mark["y"]) == ([stops[stop]["value"]], [stops[stop][key][0]])
    diagonal = report.traces("risk")[4]
    assert diagonal["x"] == diagonal["y"]
    assert diagonal["x"][1] > stops[-1]["value"]


def test_bars_are_counts_of_the_sets(report_at_stop, grades, stop):
    report = report_at_stop
    sets, K, n = grades.sets(stop), len(GRADES), len(grades.truth)
    (sizes,), (centroids,) = report.traces("sizes"), report.traces("centroids")
    assert sizes["x"] == list(range(1, K + 1))
    assert sizes["y"] == [count / n for count in np.bincount(sets.size, minlength=K + 1)[1:].tolist()]
    assert centroids["x"] == [k / 2 for k in range(2 * K - 1)]
    middles = np.bincount(sets.lower_index + sets.upper_index, minlength=2 * K - 1)
    assert centroids["y"] == [count / n for count in middles.tolist()]


@pytest.mark.parametrize("chart", ["class_coverage", "class_risk"])
def test_class_charts_have_the_estimates_and_their_intervals(report_at_stop, grades, stop, chart):
    report = report_at_stop
    estimates = np.array(grades.stop(stop)[chart])
    (points,) = report.traces(chart)
    assert points["y"] == list(range(len(GRADES)))
    assert points["x"] == estimates[:, 0].tolist()
    bars = points["error_x"]
    np.testing.assert_allclose(bars["array"], estimates[:, 2] - estimates[:, 0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(bars["arrayminus"], estimates[:, 0] - estimates[:, 1], rtol=0, atol=1e-15)
    (line,) = report.data(chart)["layout"]["shapes"]
    summary = grades.stop(stop)
    assert line["x0"] == line["x1"] == (summary["value"] if chart == "class_risk" else summary["coverage"][0])
    rows = np.bincount(grades.labels, minlength=len(GRADES))
    assert report.ticks(chart, "y") == [f"{name} ({count})" for name, count in zip(GRADES, rows, strict=True)]


def test_map_is_the_share_of_sets_that_hold_a_label(report_at_stop, grades, stop):
    report = report_at_stop
    mask = grades.sets(stop).mask()
    expected = [mask[grades.labels == k].mean(axis=0) for k in range(len(GRADES))]
    (cells,) = report.traces("held")
    np.testing.assert_allclose(cells["z"], expected, rtol=0, atol=1e-15)
    assert report.ticks("held", "y") == report.ticks("held", "x") == GRADES
    shapes = report.data("held")["layout"]["shapes"]
    assert [(shape["x0"], shape["y0"]) for shape in shapes] == [
        (k - 0.5, k - 0.5) for k in range(len(GRADES))
    ]


def test_cells_say_none_and_all_only_where_true(opened, grades):
    summary = copy.deepcopy(grades.summary)
    summary["test"]["class_rows"] = [1000] * 5
    summary["stops"][summary["start"]]["held"] = [[0, 4, 996, 1000, 295]] * 5
    report = opened(summary).drawn(summary["start"])
    cells = report.page.locator("[data-chart=held] .heatmap-label").all_text_contents()
    assert cells == ["0", "<1", ">99", "100", "30"] * 5


def test_rules_are_compared_at_the_stop(report_at_stop, grades, stop):
    report = report_at_stop
    rules, traces = grades.summary["rules"], report.traces("rules")
    shown = report.table("[data-rules]")
    for r, name in enumerate(rules["names"]):
        line, mark = traces[2 * r : 2 * r + 2]
        assert line["name"] == name
        assert line["y"] == rules["mean_size"][r]
        assert (mark["x"], mark["y"]) == ([grades.stop(stop)["value"]], [rules["mean_size"][r][stop]])
        in_use = " (in use)" if name == "frontier" else ""
        risk, size = rules["risk"][r][stop], rules["mean_size"][r][stop]
        known = ["-" if risk is None else fixed(risk, 4), "-" if size is None else fixed(size, 2)]
        assert shown[1 + r][:3] == [name + in_use, *known]
    assert len({(line["line"]["dash"], line["line"]["color"]) for line in traces[::2]}) == 4
    assert len({line["marker"]["symbol"] for line in traces[::2]}) == 4


@pytest.mark.parametrize("which", ["widest", "missed"])
def test_case_tables_show_the_sets_of_the_stop(report_at_stop, grades, stop, which):
    report = report_at_stop
    sets, cases = grades.sets(stop), grades.summary["cases"]["rows"]
    chosen = [cases[index]["row"] - 1 for index in grades.stop(stop)[which]]
    if not chosen:
        assert report.page.locator(f"[data-cases={which}]").inner_text() == "None at this alpha."
        return
    header, *rows = report.table(f"[data-cases={which}]")
    assert header == ["row", "truth", "set", "labels", "the truth is", "id"]
    assert [row[0] for row in rows] == [f"{row + 1:,}" for row in chosen]
    for cells, row in zip(rows, chosen, strict=True):
        lower, upper, y = sets.lower_index[row], sets.upper_index[row], grades.labels[row]
        interval = GRADES[lower] if lower == upper else f"{GRADES[lower]} .. {GRADES[upper]}"
        away = max(lower - y, y - upper, 0)
        side = "below" if y < lower else "above"
        lies = f"{away} label{'s' if away > 1 else ''} {side}" if away else "in the set"
        assert cells[1:] == [GRADES[y], interval, str(upper - lower + 1), lies, grades.ids[row]]
        assert (away > 0) or which == "widest"


def test_tables_of_numbers_follow_the_slider(report_at_stop, grades, stop):
    report = report_at_stop
    report.open_numbers()
    summary, stops, n = grades.stop(stop), grades.summary["stops"], len(grades.truth)
    rows = [str(count) for count in grades.summary["test"]["class_rows"]]
    risks = [[each["alpha"], *(fixed(value, 4) for value in each["risk"])] for each in stops]
    assert report.table("[data-table=risk]")[1:] == risks
    sizes = [[each["alpha"], *(fixed(value, 2) for value in each["mean_size"])] for each in stops]
    assert report.table("[data-table=size]")[1:] == sizes
    current = report.page.locator("[data-table=risk] tr[aria-current] th").all_text_contents()
    assert current == [summary["alpha"]]
    counts = [[str(k + 1), f"{c:,}", percent(c / n)] for k, c in enumerate(summary["sizes"])]
    assert report.table("[data-table=sizes]")[1:] == counts
    names = [
        part for k, name in enumerate(GRADES) for part in (name, f"between {name} and {GRADES[(k + 1) % 5]}")
    ]
    middles = [[names[k], f"{c:,}", percent(c / n)] for k, c in enumerate(summary["centroids"])]
    assert report.table("[data-table=centroids]")[1:] == middles
    coverage = [
        [name, count, *map(percent, estimate), fixed(size, 2)]
        for name, count, estimate, size in zip(
            GRADES, rows, summary["class_coverage"], summary["class_size"], strict=True
        )
    ]
    assert report.table("[data-table=class_coverage]")[1:] == coverage
    risk = [
        [name, count, *(fixed(value, 4) for value in estimate)]
        for name, count, estimate in zip(GRADES, rows, summary["class_risk"], strict=True)
    ]
    assert report.table("[data-table=class_risk]")[1:] == risk
    held = [
        [name, count, *(percent(c / int(count), 1) for c in counts)]
        for name, count, counts in zip(GRADES, rows, summary["held"], strict=True)
    ]
    assert report.table("[data-table=held]")[1:] == held
    assert f"alpha {summary['alpha']}" in report.page.locator("[data-table=held] caption").inner_text()


def test_title_date_and_size_of_the_file(opened, grades):
    summary = copy.deepcopy(grades.summary)
    summary.update(title="<b>Eyes</b>, spring", date="2026-02-03")
    summary["test"]["bytes"] = 1_234_567
    report = opened(summary)
    assert report.page.title() == report.page.locator("h1").text_content() == "<b>Eyes</b>, spring"
    source = " ".join(report.page.locator(".source").inner_text().split())
    assert (
        source
        == "2026-02-03 · 1,500 test rows of test.parquet (1.2 MB), 5 classes from None to Proliferative"
    )
    assert report.page.locator("time").get_attribute("datetime") == "2026-02-03"
    assert "1.2 MB" in report.page.locator(".facts dd").all_text_contents()
    assert opened(grades.summary).page.locator("h1").text_content() == "Risk report"


def test_worst_slices_are_in_a_table(opened, grades):
    site = np.array(["north", "south", ""])[np.arange(1500) % 3]
    truth = np.where(site == "south", grades.classes[0], grades.truth)
    cases = {"id": grades.ids, "site": site}
    summary = json.loads(json.dumps(summarise(grades.controller, grades.proba, truth, cases=cases)))
    report = opened(summary).drawn(summary["start"])
    header, first, *others = report.table("[data-slices]")
    assert header == ["column", "value", "rows", "missed", "from", "to", "against all rows"]
    worst = summary["slices"]["worst"][0]
    assert first == ["site", "south", "500", *(percent(share, 1) for share in worst["missed"]), "stands out"]
    assert {row[1] for row in others} == {"north", "(missing)"}
    assert {row[-1] for row in others} == {"within chance"}
    text = report.page.locator("main").inner_text()
    assert f"sets miss {percent(summary['slices']['missed'], 1)} of all rows." in text
    assert "Columns with too many values are left out: id." in text
    assert opened(grades.summary).page.locator("[data-slices]").count() == 0


def test_predicted_and_observed_are_those_of_the_summary(report, grades):
    report.open_numbers()
    for kind in ("top", "cumulative"):
        bins = grades.summary["reliability"][kind]["bins"]
        diagonal, points = report.traces(kind)
        assert diagonal["x"] == diagonal["y"] == [0, 1]
        assert points["x"] == [each["predicted"] for each in bins]
        assert points["y"] == [each["observed"][0] for each in bins]
        assert ("error_y" in points) == (kind == "top")
        rows = [
            [
                f"{percent(each['from'], 0)} to {percent(each['to'], 0)}",
                f"{each['count']:,}",
                *map(percent, [each["predicted"], *each["observed"]]),
            ]
            for each in bins
        ]
        assert report.table(f"[data-table={kind}]")[1:] == rows
    top = grades.summary["reliability"]["top"]
    text = report.page.locator("main").inner_text()
    assert f"most probable label a probability of {percent(top['predicted'], 1)}" in text
    assert f"right in {percent(top['right'], 1)} of the rows" in text


# --- the slider


def test_keys_move_the_slider(report, grades):
    report.slider.focus()
    last, start = len(grades.summary["stops"]) - 1, grades.summary["start"]
    for key, expected in [
        ("Home", 0),
        ("ArrowRight", 1),
        ("ArrowUp", 2),
        ("ArrowLeft", 1),
        ("End", last),
        ("ArrowDown", last - 1),
    ]:
        report.page.keyboard.press(key)
        report.drawn(expected)
        assert report.field("alpha") == grades.stop(expected)["alpha"]
    report.page.keyboard.press("Tab")
    report.page.keyboard.press("Enter")
    report.drawn(start)
    assert report.field("alpha") == grades.summary["alpha"]
    assert report.slider.input_value() == str(start)


def test_the_mouse_drags_the_slider(report, grades):
    box, last = report.slider.bounding_box(), len(grades.summary["stops"]) - 1
    height = box["y"] + box["height"] / 2
    share = grades.summary["start"] / last
    report.page.mouse.move(box["x"] + 8 + share * (box["width"] - 16), height)
    report.page.mouse.down()
    report.page.mouse.move(box["x"] + 0.6 * box["width"], height, steps=15)
    half = int(report.slider.input_value())
    assert 0.55 * last < half < 0.65 * last
    assert report.field("alpha") == grades.stop(half)["alpha"]
    report.page.mouse.move(box["x"] + box["width"] + 50, height, steps=5)
    report.page.mouse.up()
    report.drawn(last)
    assert report.field("risk") == fixed(grades.stop(last)["risk"][0], 4)


def test_only_what_is_in_sight_is_drawn_at_once(report):
    seen = report.slider.evaluate("""slider => new Promise(resolve => {
        slider.value = 0;
        slider.dispatchEvent(new Event("input"));
        requestAnimationFrame(() => resolve(
            charts().filter(box => box.dataset.stop === "0").map(box => box.dataset.chart)));
    })""")
    assert set(seen) < set(CHARTS)
    report.page.locator("#rules").scroll_into_view_if_needed()
    report.drawn(0)


def test_verdict_is_a_sentence_a_colour_and_a_shape(opened, grades):
    summary = copy.deepcopy(grades.summary)
    cases = [
        ("agrees", "green", "agrees"),
        ("agrees", "amber", "amber"),
        ("chance", "amber", "amber"),
        ("nothing", "amber", "nothing"),
        ("disagrees", "red", "disagrees"),
    ]
    for s, (word, colour, _) in enumerate(cases):
        summary["stops"][s].update(
            verdict=word, colour=colour, sentence=f"{word}, so {colour}", certified=True
        )
    report = opened(summary)
    tones = {}
    for s, (word, colour, shape) in enumerate(cases):
        report.move(s)
        visible = report.page.locator(".verdict .icon g").evaluate_all(
            "shapes => shapes.filter(g => getComputedStyle(g).display !== 'none').map(g => g.classList[0])"
        )
        assert visible == [shape]
        assert report.field("sentence") == f"{word}, so {colour}"
        tones.setdefault(colour, set()).add(
            report.page.locator(".verdict .word").evaluate("word => getComputedStyle(word).color")
        )
    assert [len(shown) for shown in tones.values()] == [1, 1, 1]
    assert len(set.union(*tones.values())) == 3


def test_what_is_not_certified_or_saturated_says_so(opened):
    study = Study(GRADES[:3], alpha=0.1, n_calibration=9, n_test=60)
    summary = copy.deepcopy(study.summary)
    few = "Every set includes all labels: 9 calibration rows are too few for this alpha."
    summary["stops"][0].update(
        certified=False, verdict="nothing", colour="amber", threshold="-inf", headline=few
    )
    summary["stops"][-1].update(saturated=True, threshold="inf")
    report = opened(summary)
    report.move(0)
    assert report.field("headline") == few
    assert report.page.locator(".verdict").get_attribute("data-icon") == "nothing"
    assert report.page.locator(".tag").inner_text() == "full sets: too few calibration rows"
    report.move(len(summary["stops"]) - 1)
    assert report.page.locator(".tag").inner_text() == "saturated: single labels"
    assert (
        report.page.locator("[data-field=note]")
        .inner_text()
        .startswith("Every set is a single label at this alpha")
    )
    report.move(len(summary["stops"]) // 2)
    assert not report.page.locator("[data-field=note]").is_visible()


def test_the_address_keeps_the_alpha(opened, grades):
    report = opened(grades.summary)
    assert "#" not in report.page.url
    visited = report.page.evaluate("history.length")
    report.move(3)
    report.page.wait_for_function("() => location.hash !== ''")
    alpha = grades.stop(3)["alpha"]
    assert report.page.url.endswith(f"#alpha={alpha}")
    assert report.page.evaluate("history.length") == visited
    report.page.evaluate("alpha => { location.hash = 'alpha=' + alpha }", grades.stop(5)["alpha"])
    report.drawn(5)
    assert opened(grades.summary, address=f"#alpha={alpha}").drawn(3).field("alpha") == alpha


@pytest.mark.parametrize("address", ["#alpha=7", "#alpha=%"])
def test_an_address_of_no_stop_opens_at_the_calibrated_alpha(opened, grades, address):
    report = opened(grades.summary, address=address)
    assert report.field("alpha") == grades.summary["alpha"]
    assert report.slider.input_value() == str(grades.summary["start"])


def test_the_slider_says_what_changed_to_those_who_do_not_see_it(report, grades):
    report.move(2)
    heading = f"At alpha {grades.stop(2)['alpha']}: "
    report.page.wait_for_function(  # what an earlier move had said may still be there
        "heading => document.querySelector('[role=status]').textContent.startsWith(heading)", arg=heading
    )
    said = report.page.locator("[role=status]").text_content()
    assert f"mean size {fixed(grades.stop(2)['mean_size'][0], 2)}" in said


# --- reading it anywhere


def test_tab_goes_from_the_skip_link_to_the_slider_and_on(opened, grades):
    page = opened(grades.summary).drawn(grades.summary["start"]).page
    order = []
    for _ in range(6):
        page.keyboard.press("Tab")
        order.append(
            page.evaluate(
                "(({id, className, tagName}) => id || className || tagName)(document.activeElement)"
            )
        )
    assert order == ["skip", "SUMMARY", "alpha", "back", "SUMMARY", "SUMMARY"]
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("Enter")
    assert page.locator("#size details").get_attribute("open") is not None


def test_the_slider_stays_in_sight(report):
    report.page.mouse.wheel(0, 2500)
    report.page.wait_for_function("() => scrollY > 2000")
    assert report.page.locator(".control").bounding_box()["y"] == 0
    report.page.evaluate("scrollTo(0, 0)")


def test_headings_are_in_order_and_charts_are_named(report):
    levels = report.page.locator("h1, h2, h3").evaluate_all("all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    charts = report.page.locator("[data-chart][role=img][aria-label]")
    assert sorted(charts.evaluate_all("all => all.map(box => box.dataset.chart)")) == sorted(CHARTS)
    assert report.page.evaluate("document.documentElement.lang") == "en"
    assert report.page.title() == "Risk report: test.parquet, alpha 0.1"


def test_dark_follows_the_system_live(report, grades):
    ink = lambda: {chart: report.data(chart)["layout"]["font"]["color"] for chart in CHARTS}  # noqa: E731
    background = lambda: report.page.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
    light = ink(), background()
    report.page.emulate_media(color_scheme="dark")
    report.page.wait_for_function(
        "() => document.querySelector('[data-chart=rules]').layout.font.color === '#e8ecf0'"
    )
    dark = ink(), background()
    report.page.emulate_media(color_scheme="light")
    report.page.wait_for_function(
        "() => document.querySelector('[data-chart=rules]').layout.font.color === '#1d2329'"
    )
    assert set(light[0].values()) == {"#1d2329"}
    assert set(dark[0].values()) == {"#e8ecf0"}
    assert light[1] != dark[1]
    assert (ink(), background()) == light


@pytest.mark.parametrize("classes", ["grades", "many long names"])
def test_a_phone_needs_no_sideways_scrolling(opened, grades, classes):
    study = grades if classes == "grades" else Study(LONG)
    summary = copy.deepcopy(study.summary)
    summary["test"]["file"] = "oneword" * 20
    assert len(render(summary).encode()) < 6_000_000
    report = opened(summary, viewport=PHONE).drawn(summary["start"])
    report.open_numbers()
    widths = "[document.scrollingElement.scrollWidth, innerWidth]"
    assert report.page.evaluate(widths) == [360, 360]
    report.move(0)
    assert report.page.evaluate(widths) == [360, 360]
    charts = report.page.locator("[data-chart]").evaluate_all("all => all.map(box => box.layout.width)")
    assert max(charts) < 330


def test_tables_that_go_on_say_so(opened, grades):
    def shown(report):
        said = "box => [box.scrollWidth > box.clientWidth + 1, box.nextElementSibling?.textContent ?? '']"
        return report.page.locator("[data-cases=widest]").evaluate(said)

    start = grades.summary["start"]
    phone = opened(grades.summary, viewport=PHONE).drawn(start)
    assert shown(phone) == [True, "Scroll right to see the rest of the table."]
    shadows = "box => getComputedStyle(box).backgroundAttachment"
    assert phone.page.locator("[data-cases=widest]").evaluate(shadows) == "local, local, scroll, scroll"
    phone.page.set_viewport_size(DESK)
    phone.page.wait_for_function("() => !document.querySelector('[data-cases=widest] + .goes-on')")
    assert shown(phone) == [False, ""]


def test_charts_follow_the_width_of_the_window(report):
    before = report.data("risk")["layout"]["width"]
    report.page.set_viewport_size({"width": 700, "height": 800})
    report.page.wait_for_function(
        "before => document.querySelector('[data-chart=risk]').layout.width > before + 50", arg=before
    )


def test_print_is_light_complete_and_of_the_alpha_in_force(report, grades):
    report.page.emulate_media(color_scheme="dark")
    report.slider.evaluate("slider => { slider.value = 1; slider.dispatchEvent(new Event('input')); }")
    report.page.emulate_media(media="print", color_scheme="dark")
    report.drawn(1)
    for chart in CHARTS:
        layout = report.data(chart)["layout"]
        assert layout["font"]["color"] == "#1d2329"
        assert layout["width"] == (676 if chart in ("held", "scores") else 326)
    assert not report.page.locator(".control").is_visible()
    assert report.page.locator(".print-only b").inner_text() == grades.stop(1)["alpha"]
    ink = report.page.evaluate("getComputedStyle(document.body).color")
    assert ink == "rgb(0, 0, 0)"
    assert not report.page.locator("details summary").first.is_visible()
    assert report.page.locator(".facts").is_visible()
    assert report.page.locator("[data-field=guarantee]").is_visible()
    assert not report.page.locator("#find").is_visible()
    report.page.emulate_media(media="null", color_scheme="dark")
    report.page.wait_for_function(
        "() => document.querySelector('[data-chart=held]').layout.font.color === '#e8ecf0'"
    )
    assert not report.page.locator(".facts").is_visible()


def test_print_cuts_no_chart_in_two(report):
    report.page.emulate_media(media="print")
    inside = "charts().map(box => getComputedStyle(box).breakInside)"
    assert {*report.page.evaluate(inside)} == {"avoid"}


def test_print_makes_a_pdf_of_a_few_pages(report):
    report.page.evaluate(
        "addEventListener('beforeprint', () => { window.printed = charts().map(box => box.layout.width); })"
    )
    pdf = report.page.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8
    assert set(report.page.evaluate("window.printed")) == {326, 676}
    report.page.wait_for_function("() => document.querySelector('[data-chart=risk]').layout.width > 400")


def test_without_javascript_the_opening_and_the_facts_are_there(opened, grades, browser):
    report = opened(grades.summary, new_tab(browser, java_script_enabled=False))
    stop, text = grades.stop(grades.summary["start"]), report.page.locator("body").inner_text()
    for expected in [
        "At most 10 % of sets miss the truth.",
        stop["sentence"],
        stop["verdict_text"],
        fixed(stop["risk"][0], 4),
        percent(stop["coverage"][0]),
        fixed(stop["mean_size"][0], 2),
        "need JavaScript",
    ]:
        assert expected in text
    for summary in report.page.locator("details.technical > summary").all():
        summary.click()  # which needs no script
    text = report.page.locator("body").inner_text()
    assert stop["guarantee"] in text
    assert grades.controller.data_blake3_ in text
    assert not report.slider.is_visible()
    assert grades.summary["scores"]["text"] in text


def test_facts_for_the_auditor(report, grades):
    terms = report.page.locator(".facts dt").all_text_contents()
    values = report.page.locator(".facts dd").all_text_contents()
    calibration, test = grades.summary["calibration"], grades.summary["test"]
    facts = list(zip(terms, values, strict=True))
    for fact in [
        ("File", "calibration.json"),
        ("Rows", "600"),
        ("Calibrated alpha", "0.1"),
        ("Smallest alpha with enough calibration rows", "1/601 (about 0.00166)"),
        ("Loss", "WeightedLoss()"),
        ("Largest possible loss (B)", "1"),
        ("Growth rule", "frontier (point label: mode)"),
        ("Threshold, decimal", repr(grades.controller.threshold_)),
        ("Threshold, hexadecimal", grades.controller.threshold_.hex()),
        ("Levels in the risk curve", str(calibration["levels"])),
        ("Most rows that change at one level (M)", str(calibration["most_tied"])),
        ("Columns of probabilities", "p0, p1, p2, p3, p4"),
        ("Column of the true label", "grade"),
        ("Fingerprint of the calibration data (BLAKE3)", calibration["data_blake3"]),
        ("File", "test.parquet"),
        ("Rows", "1,500"),
        ("Fingerprint of the test data (BLAKE3)", test["data_blake3"]),
        ("Classes, in order", ", ".join(GRADES)),
        ("ordinalrisk version", orisk.__version__),
    ]:
        assert fact in facts


# --- text from the data


@pytest.fixture(scope="module")
def oddly_named():
    return Study([*NASTY, *LONG[:3]], alpha=0.2)


def test_text_from_the_data_is_shown_as_text_and_shortened_on_the_axes_only(opened, oddly_named):
    summary = copy.deepcopy(oddly_named.summary)
    summary["test"]["file"] = "<img src=x onerror=alert(1)>.csv"
    summary["cases"]["columns"] = ["</script><b>column</b>"]
    summary["calibration"]["columns"]["label"] = "<u>label</u>"
    summary["stops"][summary["start"]]["verdict_text"] = "<em>verdict</em> & \u2028 more"
    report = opened(summary).drawn(summary["start"])
    report.open_numbers()
    page = report.page
    assert page.locator("main b:has-text('column'), main i, u, img, em, main script").count() == 0
    assert page.locator("script").count() == 4
    ticks = ["<script>al…ript>", *NASTY[1:], "A class wi…ber 0", "A class wi…ber 1", "A class wi…ber 2"]
    assert report.ticks("held", "y") == ticks
    assert report.ticks("centroids", "x")[1] == NASTY[1]
    assert len(set(report.ticks("centroids", "x"))) == 6  # with less room, but still apart
    assert [tick.rpartition(" (")[0] for tick in report.ticks("class_risk", "y")] == ticks
    assert report.table("[data-table=class_risk]")[1][0] == NASTY[0]
    assert report.table("[data-table=held]")[0][2:] == summary["classes"] == [*NASTY, *LONG[:3]]
    assert report.table("[data-cases=widest]")[0][-1] == "</script><b>column</b>"
    assert report.table("[data-cases=widest]")[1][-1].startswith("<i>case</i>")
    assert report.field("verdict-text") == "<em>verdict</em> & \u2028 more"
    assert "<img src=x onerror=alert(1)>.csv" in page.locator(".source").inner_text()


def test_hovering_shows_the_whole_name_as_text(opened, oddly_named):
    classes = oddly_named.classes
    report = opened(oddly_named.summary).drawn(oddly_named.summary["start"])
    cells = report.page.locator("[data-chart=held]")
    cells.scroll_into_view_if_needed()
    for y in range(len(classes)):
        cells.evaluate("(box, y) => Plotly.Fx.hover(box, {xval: 0, yval: y})", y)
        expected = f"true class: {classes[y]}"
        hover = report.page.locator("[data-chart=held] .hovertext").filter(has_text=expected)
        hover.wait_for()
        assert f"label: {classes[0]}" in hover.text_content()


# --- what can be missing


def test_a_class_without_rows(opened):
    study = Study(GRADES, labels=4)
    assert study.summary["stops"][0]["class_risk"][4] is None
    report = opened(study.summary).drawn(study.summary["start"])
    report.open_numbers()
    for chart in ["class_coverage", "class_risk"]:
        data = report.data(chart)
        assert data["data"][0]["y"] == [0, 1, 2, 3]
        assert [(note["y"], note["text"]) for note in data["layout"]["annotations"]] == [(4, "no rows")]
        assert report.table(f"[data-table={chart}]")[5][1:5] == ["0", "no rows", "", ""]
    assert report.traces("held")[0]["z"][4] == [None] * 5
    assert report.table("[data-table=held]")[5][2:] == ["no rows"] * 5


def test_no_map_and_no_rules(opened, grades):
    summary = copy.deepcopy(grades.summary)
    summary["rules"] = None
    for stop in summary["stops"]:
        stop["held"] = None
    report = opened(summary).drawn(summary["start"])
    report.move(2)
    text = report.page.locator("main").inner_text()
    assert "Not shown: there are too many classes" in text
    assert "Not shown: there are too few test rows to compare rules." in text
    assert report.page.locator("[data-chart]").count() == 9


def test_rules_that_are_unknown_at_an_alpha(opened, grades):
    summary = copy.deepcopy(grades.summary)
    for key in ["risk", "mean_size"]:
        summary["rules"][key][0][0] = None
        summary["rules"][key][1] = None
    report = opened(summary)
    report.move(0)
    assert [row[1:3] for row in report.table("[data-rules]")[1:3]] == [["-", "-"], ["-", "-"]]
    assert report.traces("rules")[0]["y"][0] is None


def test_one_stop(opened, grades):
    summary = copy.deepcopy(grades.summary)
    summary["stops"], summary["start"] = [summary["stops"][summary["start"]]], 0
    for row in summary["cases"]["rows"]:
        row["until"] = [1] * len(GRADES)
    for key in ["risk", "mean_size"]:
        summary["rules"][key] = [values[:1] for values in summary["rules"][key]]
    report = opened(summary).drawn(0)
    assert report.slider.is_disabled()
    assert report.field("alpha") == "0.1"


def test_two_classes_in_natural_units_without_files(opened):
    """Losses that are large numbers have fewer decimals."""
    loss = orisk.DivergenceLoss(positions=[18, 65], normalize=False)
    study = Study(["young", "old"], loss=loss, alpha=2, n_test=30)
    summary = copy.deepcopy(study.summary)
    summary["calibration"].update(file=None, columns=None)
    summary["test"]["file"] = None
    summary["cases"]["columns"] = []
    summary["cases"]["rows"] = [row | {"values": []} for row in summary["cases"]["rows"]]
    report = opened(summary).drawn(summary["start"])
    assert report.page.title() == "Risk report: 30 test rows, alpha 2"
    assert "not recorded" in report.page.locator(".facts").text_content()
    assert report.field("risk") == fixed(study.stop(summary["start"])["risk"][0], 3)
    assert report.field("headline") == "Sets are at most 2 away from the truth on average."


# --- the file


def test_sixty_classes_stay_below_six_megabytes(opened):
    study = Study([f"Rating class {k}" for k in range(60)], n_test=3000)
    assert len(render(study.summary).encode()) < 6_000_000
    report = opened(study.summary).drawn(study.summary["start"])
    report.move(0)
    assert np.shape(report.traces("held")[0]["z"]) == (60, 60)


def test_the_map_gives_way_when_the_page_would_be_too_large(grades):
    summary = copy.deepcopy(grades.summary)
    for stop in summary["stops"]:
        stop["held"] = [[10**12] * 100] * 100
    page = render(summary)
    assert len(page.encode()) < 6_000_000
    assert "Not shown: there are too many classes" in page


def test_the_same_summary_gives_the_same_page_and_stays_as_it_was(grades):
    before = copy.deepcopy(grades.summary)
    assert render(grades.summary) == render(copy.deepcopy(grades.summary))
    assert grades.summary == before


def test_the_page_is_small_enough_for_a_mail(grades):
    """The script for charts has 4.5 MB; with compression, the page has half of this."""
    assert len(render(grades.summary).encode()) < 2_500_000


def test_an_old_browser_says_why_there_are_no_charts(browser, path, grades):
    page = new_tab(browser)
    page.add_init_script("delete window.DecompressionStream")
    path.write_text(render(grades.summary), encoding="utf-8")
    page.goto(path.as_uri())
    page.locator("#results > .note").wait_for()
    assert "can't show the charts; a newer browser can" in page.locator("#results > .note").inner_text()
    page.locator("#risk summary").click()
    rows, n_stops = page.locator("[data-table=risk] tr"), len(grades.summary["stops"])
    rows.nth(n_stops).wait_for(state="attached")  # the table is made when it is opened
    assert rows.count() == 1 + n_stops
    page.close()


def test_nothing_can_be_fetched(grades):
    page = render(grades.summary)
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert {*rules["script-src"].split(), *rules["style-src"].split()} == {"'unsafe-inline'"}
    assert rules["img-src"] == "data: blob:"
    assert "connect-src" not in rules


def test_data_cannot_leave_its_element(grades):
    summary = copy.deepcopy(grades.summary)
    summary["classes"][0] = "</SCRIPT><!-- <script> & \u2028\u2029"
    page = render(summary)
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert not set("<>&\u2028\u2029") & set(data)
    assert json.loads(data)["classes"][0] == summary["classes"][0]
    assert page.lower().count("</script") == 4


@pytest.mark.parametrize(
    "wrong", [{}, {"format": "ordinalrisk report", "schema_version": 2}, {"format": "other"}]
)
def test_what_is_no_summary_is_refused(wrong):
    with pytest.raises(ValueError, match="not a report's summary of schema version 1"):
        render(wrong)


def test_a_summary_of_an_earlier_version_is_refused_by_what_it_lacks(grades):
    earlier = {
        name: part for name, part in grades.summary.items() if name not in ("slices", "reliability", "scores")
    }
    with pytest.raises(
        ValueError, match="lacks 'slices', 'reliability', 'scores', which a page shows: ordinalrisk"
    ):
        render(earlier | {"package_version": "0.1"})


@pytest.mark.parametrize("package", ["plotly", "jinja2"])
def test_a_missing_package_is_named_with_the_remedy(grades, monkeypatch, package):
    module = sys.modules[render.__module__]
    module._packed_plotly.cache_clear()
    real = module.importlib.import_module

    def absent(name, *rest):
        if name.startswith(package):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(module.importlib, "import_module", absent)
    with pytest.raises(ImportError, match=re.escape(f'needs {package}: pip install "ordinalrisk[report]"')):
        render(grades.summary)
