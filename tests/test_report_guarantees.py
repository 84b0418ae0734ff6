"""Reports on guarantees past one risk for all rows: the numbers are the library's, and the page has them."""

import html
import json
import re
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import sizes
from browser import ReportPage, running_chromium
from command import run
from file_formats import score_table, write_table
from unchecked import FEW

import ordinalrisk as orisk
from ordinalrisk import metrics
from ordinalrisk.report import ReportSummary, render, summarise

pytestmark = [
    FEW,
    pytest.mark.filterwarnings("ignore:.*full scale"),
    pytest.mark.usefixtures("few_stops"),
]

GRADES = ["None", "Mild", "Severe", "Worst"]
CLINICS = ["north", "south", "<script>alert(1)</script>", "<b>tiny</b>"]
ALPHAS = {"None": 0.1, "Mild": 0.2, "Severe": 0.1, "Worst": 0.05}
YEARS = orisk.DivergenceLoss(positions=[18, 30, 65, 70], normalize=False)
SETTINGS = {
    "groups": ({}, "groups"),
    "groups and years": ({"loss": YEARS, "alpha": 2}, "groups"),
    "classes": ({"condition_on": "label"}, ""),
    "alpha by class": ({"alpha": ALPHAS}, ""),
    "groups by class": ({"condition_on": "label", "alpha": 0.3}, "groups"),
    "delta": ({"delta": 0.1}, ""),
    "delta by betting": ({"delta": 0.1, "loss": "divergence", "alpha": 0.05}, "groups"),
    "clusters": ({"loss": "divergence", "alpha": 0.05}, "clusters"),
    "delta of clusters by group": ({"delta": 0.2, "alpha": 0.2}, "groups clusters"),
    "weights": ({}, "sample_weight"),
    "weights by group": ({"loss": "divergence", "alpha": 0.05}, "groups sample_weight"),
    "class ratios": ({"loss": "divergence", "alpha": 0.05}, "class_ratios"),
    "randomized": ({"randomize": True}, ""),
    "randomized by group": ({"randomize": True, "alpha": 0.15}, "groups"),
}


class Setting:
    """A calibration with options, and test rows that have what it needs."""

    def __init__(self, draw, name, n_calibration=400, n_test=250):
        parameters, self.used = SETTINGS[name][0], SETTINGS[name][1].split()
        rng = np.random.default_rng(5)
        proba, y = draw(n_calibration, 4, seed=1)
        self.proba, self.index = draw(n_test, 4, seed=2)
        if "randomize" in parameters:  # so that levels tie, and coins matter
            proba, self.proba = (rng.multinomial(8, each) / 8 for each in (proba, self.proba))
        self.names = np.array(GRADES, object)
        self.controller = orisk.RiskController(**{"alpha": 0.1, "classes": GRADES} | parameters)
        self.controller.calibrate(proba, self.names[y], **self._extras(rng, n_calibration))
        self.loss = self.controller.loss
        self.y = self.names[self.index]
        self.extras = self._extras(rng, n_test)
        self.extras.pop("class_ratios", None)
        self.seed = {"random_state": 3} if self.controller.randomize else {}
        self.cases = {"id": [f"A{i}" for i in range(n_test)]}

    def _extras(self, rng, n):
        made = {
            "groups": np.array(CLINICS, object)[rng.choice(4, n, p=[0.4, 0.3, 0.28, 0.02])],
            "clusters": rng.integers(0, n // 6, n),
            "sample_weight": rng.gamma(2, 1, n),
            "class_ratios": [1, "0.5", 2, 1],
        }
        return {name: values for name, values in made.items() if name in self.used}

    @cached_property
    def found(self):
        return self.summary()

    def summary(self, **more):
        return summarise(
            self.controller, self.proba, self.y, cases=self.cases, **self.extras, **self.seed, **more
        )

    def alpha(self, stop):
        factor = Fraction(stop["alpha"])
        alpha = self.controller.alpha
        return {k: factor * Fraction(str(v)) for k, v in alpha.items()} if isinstance(alpha, dict) else factor

    def sets(self, stop):
        extras = {name: values for name, values in self.extras.items() if name != "clusters"}
        return self.controller.predict_set(self.proba, alpha=self.alpha(stop), **extras, **self.seed)

    def evaluation(self, alpha):
        """What ``evaluate`` finds at one risk."""
        roles = {"groups": "group", "clusters": "cluster", "sample_weight": "weight"}
        columns = {roles[name]: values for name, values in self.extras.items()}
        where = {"scores": "p*", "label": "y", **{role: role for role in columns}}
        with TemporaryDirectory() as folder:
            path = write_table(score_table(self.proba, self.y, **columns), f"{folder}/rows.parquet")
            return orisk.jobs.evaluate(
                self.controller, path, alpha=alpha, **where, **self.seed, note=str
            ).found


@cache
def made(draw, name):
    return Setting(draw, name)


@pytest.fixture(params=SETTINGS)
def setting(draw, request):
    return made(draw, request.param)


# --- numbers


def test_every_stop_counts_the_librarys_own_sets(setting):
    found = setting.found
    json.dumps(found, allow_nan=False)
    for stop in found["stops"]:
        sets = setting.sets(stop)
        assert stop["sizes"] == np.bincount(sets.size, minlength=5)[1:].tolist()
        held = [sets.mask()[setting.index == k].sum(axis=0).tolist() for k in range(4)]
        assert stop["held"] == held
        assert stop["coverage"][0] == metrics.coverage(setting.y, sets)


def test_cases_have_their_sets_at_every_stop(setting):
    ends = [setting.sets(stop) for stop in setting.found["stops"]]
    for case in setting.found["cases"]["rows"]:
        row = case["row"] - 1
        assert case["values"] == [f"A{row}"]
        assert case["truth"] == setting.index[row]
        assert case["sets"] == [[int(sets.lower_index[row]), int(sets.upper_index[row])] for sets in ends]


def test_risks_and_verdicts_are_those_of_evaluate(setting):
    for stop in setting.found["stops"]:
        evaluation = setting.evaluation(setting.alpha(stop))
        guarantee = setting.controller.guarantee(setting.alpha(stop))
        assert stop["risk"] == [*map(float, evaluation.whole.risk)]
        assert stop["units"] == evaluation.whole.n_units
        assert stop["verdict"] == evaluation.verdict.word
        assert stop["verdict_text"] == evaluation.verdict.text
        if not guarantee.parts:
            assert stop["strata"] == []
            continue
        for part, expected in zip(stop["strata"], evaluation.strata, strict=True):
            assert part["verdict"] == expected.word
            risk = expected.realised and [*map(float, expected.realised.risk)]
            assert part["risk"] == risk
            assert part["units"] == (expected.realised and expected.realised.n_units)
            assert Fraction(part["alpha"]) == expected.guarantee.alpha
            assert (part["certified"], part["saturated"]) == (
                expected.guarantee.certified,
                expected.guarantee.saturated,
            )


def test_parts_have_the_sizes_of_their_rows(setting):
    promise, calibration = setting.found["promise"], setting.controller.calibration_
    groups = setting.extras.get("groups")
    for s in (0, setting.found["start"], -1):
        stop = setting.found["stops"][s]
        sets, thresholds = setting.sets(stop), setting.controller.threshold_at(setting.alpha(stop))
        for facts, part, stratum in zip(
            promise["strata"], stop["strata"], calibration.strata.parts, strict=not calibration.strata.is_one
        ):
            mine = np.ones(len(setting.y), bool)
            key = []
            if stratum.group is not None:
                key.append(calibration.strata.groups[stratum.group])
                mine &= groups == key[-1]
            if stratum.label is not None:
                key.append(GRADES[stratum.label])
                mine &= setting.index == stratum.label
            assert facts["name"] == " / ".join(key)
            assert facts["test_rows"] == mine.sum()
            assert facts["calibration_units"] == stratum.curve.n_rows
            assert float(part["threshold"]) == thresholds[key[0] if len(key) == 1 else tuple(key)]
            if mine.any():
                assert part["mean_size"] == pytest.approx(sets.size[mine].mean(), rel=1e-14)
                assert part["single"] == (sets.size[mine] == 1).mean()
            else:
                assert part["mean_size"] is part["single"] is None


def test_the_start_is_the_calibration_itself(setting):
    found, controller = setting.found, setting.controller
    stop = found["stops"][found["start"]]
    assert (
        stop["alpha"]
        == found["alpha"]
        == ("1" if isinstance(controller.alpha, dict) else str(controller.alpha))
    )
    guarantee = controller.guarantee()
    assert stop["guarantee"] == " ".join(str(guarantee).split())
    assert stop["guarantee"].startswith(stop["lead"][:-1] + ", provided that ")
    for facts, threshold in zip(found["promise"]["strata"], controller.thresholds_, strict=False):
        assert float.fromhex(facts["threshold"]["hex"]) == float(facts["threshold"]["decimal"]) == threshold
    one = found["calibration"]["threshold"]
    assert (one is None) == isinstance(controller.threshold_, dict)
    if one is not None:
        assert float.fromhex(one["hex"]) == controller.threshold_


def test_stops_reach_from_the_first_certified_to_single_labels(setting, usual_stops):
    summary = ReportSummary(setting.controller, **setting.seed)
    summary.add(setting.proba, setting.y, **setting.extras)
    found = summary.finish()
    values = [Fraction(stop["alpha"]) for stop in found["stops"]]
    assert 8 <= len(values) <= sizes.USUAL["MOST_STOPS_BY_ROW"]
    assert values == sorted(set(values))
    guarantees = [setting.controller.guarantee(setting.alpha({"alpha": value})) for value in values]
    below = values[0] - (values[1] - values[0])
    if below > 0:
        smaller = setting.controller.guarantee(setting.alpha({"alpha": below}))
        assert not any(part.certified for part in smaller.parts or [smaller])
    if found["start"] != 0:
        assert any(part.certified for part in guarantees[0].parts or [guarantees[0]])
    largest = max(float(part.alpha) for part in guarantees[-1].parts or [guarantees[-1]])
    step = float(values[-1] - values[-2]) * largest / float(values[-1])
    assert guarantees[-1].saturated or largest + step >= float(setting.controller.calibration_.costs.bound)
    assert not guarantees[-3].saturated


def test_sets_shrink_along_the_stops(setting):
    for before, after in pairwise(setting.found["stops"]):
        assert before["mean_size"][0] >= after["mean_size"][0] - 0.05 * (setting.controller.delta is not None)


@pytest.mark.parametrize(
    "name", ["groups by class", "delta of clusters by group", "weights by group", "randomized"]
)
def test_batches_of_any_size_give_the_same(draw, name, monkeypatch):
    setting = made(draw, name)
    sizes.count_few_rows_at_once(monkeypatch, 17)
    batches = ReportSummary(setting.controller, **setting.seed)
    for start, stop in pairwise([0, 1, 40, 41, 130, 250]):
        rows = slice(start, stop)
        extras = {key: values[rows] for key, values in setting.extras.items()}
        batches.add(setting.proba[rows], setting.y[rows], {"id": setting.cases["id"][rows]}, **extras)
    assert batches.finish() == setting.found


def test_another_seed_tosses_other_coins(draw):
    setting = made(draw, "randomized")
    other = summarise(setting.controller, setting.proba, setting.y, cases=setting.cases, random_state=4)
    assert other["promise"]["random_state"] == 4
    assert [stop["sizes"] for stop in other["stops"]] != [stop["sizes"] for stop in setting.found["stops"]]


def test_of_very_many_groups_the_largest_are_shown(draw, monkeypatch):
    sizes.show_few_parts(monkeypatch, 2)
    setting = Setting(draw, "groups", n_test=60)
    found = setting.summary()
    rows = dict(zip(*np.unique(setting.extras["groups"].astype(str), return_counts=True), strict=True))
    assert {part["name"] for part in found["promise"]["strata"]} == {"north", "south"}
    assert found["promise"]["parts"] == 4
    assert [part["test_rows"] for part in found["promise"]["strata"]] == [
        rows[part["name"]] for part in found["promise"]["strata"]
    ]
    assert "The page shows the 2 with the most calibration rows." in render(found)


def test_groups_without_calibration_rows_are_full_and_said(draw):
    setting = Setting(draw, "groups", n_test=80)
    setting.extras["groups"][:5] = "elsewhere"
    with pytest.raises(ValueError, match=r"groups\[0\] is 'elsewhere', a group without calibration rows"):
        setting.summary()
    found = setting.summary(unseen_groups="full")
    assert found["promise"]["unseen_rows"] == 5
    assert sum(part["test_rows"] for part in found["promise"]["strata"]) == 75
    assert all(stop["sizes"][3] >= 5 for stop in found["stops"])
    assert "5 test rows belong to groups without calibration rows" in render(found)


# --- what is refused


def test_what_the_calibration_needs_must_be_there(draw):
    proba, y = draw(60, 4)
    plain = orisk.RiskController().calibrate(proba, y)
    classes = made(draw, "classes")
    for name in ("groups", "clusters", "sample_weight"):
        message = f"{name} was given, but the calibration was not made with {name}"
        with pytest.raises(ValueError, match=message):
            summarise(plain, proba, y, **{name: np.ones(60)})
        with pytest.raises(ValueError, match=message):
            summarise(classes.controller, classes.proba, classes.y, **{name: np.ones(250)})
    for name, needs in [("groups", "groups"), ("clusters", "clusters"), ("weights", "sample_weight")]:
        setting = made(draw, name)
        with pytest.raises(ValueError, match=f"made with {needs}, so .* need {needs}= too"):
            summarise(setting.controller, setting.proba, setting.y)
    randomized = made(draw, "randomized").controller
    with pytest.raises(ValueError, match="need random_state= too"):
        ReportSummary(randomized)
    with pytest.raises(ValueError, match="random_state was given"):
        ReportSummary(plain, random_state=1)
    with pytest.raises(ValueError, match="not a Generator"):
        ReportSummary(randomized, random_state=np.random.default_rng(0))


def test_a_refused_batch_leaves_no_trace(draw):
    setting = made(draw, "delta of clusters by group")
    batches = ReportSummary(setting.controller)
    parts = [
        {key: values[rows] for key, values in setting.extras.items()}
        for rows in (slice(100), slice(100, 250))
    ]
    ids = setting.cases["id"]
    batches.add(setting.proba[:100], setting.y[:100], {"id": ids[:100]}, **parts[0])
    wrong = [
        ({"groups": ["nowhere"] * 150}, "'nowhere', a group without calibration rows"),
        ({"clusters": [None] * 150}, r"clusters\[0\] is missing"),
        ({"clusters": [1]}, "clusters must have one value"),
    ]
    for change, message in wrong:
        with pytest.raises(ValueError, match=message):
            batches.add(setting.proba[100:], setting.y[100:], {"id": ids[100:]}, **parts[1] | change)
    batches.add(setting.proba[100:], setting.y[100:], {"id": ids[100:]}, **parts[1])
    assert batches.finish() == setting.found


# --- the page


class Page(ReportPage):
    """One with a table of strata, and facts for the auditor."""

    def stop(self, s):
        self.move(s)
        return self.summary["stops"][s]

    def strata(self):
        return self.table("[data-strata]")

    def facts(self):
        terms = self.page.locator(".facts dt").all_text_contents()
        return dict(zip(terms, self.page.locator(".facts dd").all_text_contents(), strict=True))


@pytest.fixture(scope="module")
def browser():
    yield from running_chromium()


@pytest.fixture(scope="module")
def tab(browser):
    return browser.new_page()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """One for all pages, since the browser keeps the compiled scripts of an address."""
    return tmp_path_factory.mktemp("pages") / "report.html"


@pytest.fixture
def opened(tab, path):
    pages = []

    def open_page(summary, **options):
        pages.append(Page(tab, path, summary, **options).drawn(summary["start"]))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


def test_the_page_shows_each_group_at_every_alpha(draw, opened, usual_stops):
    setting = Setting(draw, "groups")
    found = setting.found
    page = opened(found)
    text = page.page.locator("body").inner_text()
    assert page.page.locator(".lead").inner_text() == (
        "In each of 4 groups, at most 10 % of sets miss the truth."
    )
    assert "The guarantee of each group" in page.page.locator("h2").all_inner_texts()
    assert "Within a group, the guarantee is an average over all classes." in text
    names = [part["name"] for part in found["promise"]["strata"]]
    assert set(names) == set(CLINICS)
    for s in (found["start"], len(found["stops"]) - 1, 0):
        stop = page.stop(s)
        header, *rows = page.strata()
        assert header[0] == "group"
        cell = {title: k for k, title in enumerate(header)}
        for row, name, part in zip(rows, names, stop["strata"], strict=True):
            assert row[0] == name
            assert row[cell["alpha"]] == part["alpha"]
            assert float(row[cell["realised risk"]]) == pytest.approx(part["risk"][0], abs=5.1e-5)
            assert float(row[cell["95 % interval, from"]]) == pytest.approx(part["risk"][1], abs=5.1e-5)
            assert float(row[cell["to"]]) == pytest.approx(part["risk"][2], abs=5.1e-5)
            assert float(row[cell["mean size"]]) == pytest.approx(part["mean_size"], abs=5.1e-3)
            assert row[cell["single labels"]].endswith(" %")
            verdict = part["verdict"] if part["certified"] else "too few calibration rows: full sets"
            assert row[cell["verdict"]] == verdict.replace("chance", "above alpha, within chance")
        drawn = page.data("strata")
        [points] = drawn["data"]
        assert points["x"] == [part["risk"][0] for part in stop["strata"]]
        assert [shape["x0"] for shape in drawn["layout"]["shapes"]] == [
            part["value"] for part in stop["strata"]
        ]
        shapes = {
            "agrees": "circle",
            "chance": "diamond",
            "disagrees": "triangle-up",
            "nothing": "square-open",
        }
        assert points["marker"]["symbol"] == [shapes[part["verdict"]] for part in stop["strata"]]
    uncertified = [sum(not part["certified"] for part in stop["strata"]) for stop in found["stops"]]
    assert uncertified[0] > 0 == uncertified[-1]
    assert page.page.locator(".tag").inner_text() == f"{uncertified[0]} of 4 with too few rows"
    assert page.page.locator("main script, main b:has-text('alert')").count() == 0
    ticks = page.page.locator("[data-chart=strata] .ytick text").all_text_contents()
    assert [tick.rpartition(" (")[0] for tick in ticks] == names
    hexes = [threshold.hex() for threshold in setting.controller.thresholds_]
    facts = page.facts()
    assert [facts[name].split()[0] for name in names] == hexes
    assert facts["Guarantee for each"] == "group"


def test_alphas_by_class_share_one_slider(draw, opened):
    found = made(draw, "alpha by class").found
    page = opened(found)
    lead = page.page.locator(".lead").inner_text()
    assert lead == (
        "At most 10 % of sets miss the truth for 'None' and 'Severe', at most 20 % for 'Mild', "
        "at most 5 % for 'Worst'."
    )
    assert page.page.locator(".chosen label").inner_text() == "Alpha factor"
    assert (
        "The slider multiplies all alphas by the alpha factor; the factor 1 gives the calibrated alphas."
        in page.page.locator("main").inner_text()
    )
    stop = page.stop(found["start"] + 2)
    assert [row[1] for row in page.strata()[1:]] == [part["alpha"] for part in stop["strata"]]
    factor = Fraction(stop["alpha"])
    assert [Fraction(part["alpha"]) for part in stop["strata"]] == [
        factor * Fraction(str(alpha)) for alpha in ALPHAS.values()
    ]
    assert len(page.data("risk")["data"]) == 4  # a factor is no loss, so there is no diagonal
    assert "each class has its own alpha" in page.page.locator("main").inner_text()
    assert page.page.locator("#back").inner_text() == "Back to the calibrated alphas"


@pytest.mark.parametrize(
    ("name", "shown", "facts"),
    [
        (
            "delta",
            [
                "With probability at least 0.9 over the draw of the calibration rows, the expected loss",
                "fails with a probability of at most 0.1",
            ],
            {"Delta": "0.1", "Bound": "exact binomial", "Holds": "with high probability"},
        ),
        (
            "clusters",
            [
                "expected mean loss of a new cluster",
                "Mean over 41 clusters of the mean loss of their rows, 250 rows",
            ],
            {"What is exchangeable": "clusters", "Clusters among the test rows": "41", "Randomized": "no"},
        ),
        (
            "weights",
            ["which count as", "It is only as good as these ratios", "by weight"],
            {"Shift": "of covariates: rows have weights"},
        ),
        ("class ratios", ["by label"], {"Shift": "of the shares of the classes", "Ratio of Mild": "0.5"}),
        (
            "randomized",
            ["The seed is 3", "labels exactly at the threshold are included at random"],
            {"Randomized": "yes, seed 3"},
        ),
        (
            "groups by class",
            ["Each group and true class", "north / None", "always in the set"],
            {"Guarantee for each": "group and class"},
        ),
    ],
)
def test_the_page_says_what_is_promised(draw, name, shown, facts):
    page = html.unescape(render(made(draw, name).found))
    for words in shown:
        assert words in page
    listed = re.findall("<dt>(.*?)</dt><dd>(?:<code>)?(.*?)(?:</code>)?</dd>", page)
    assert facts.items() <= dict(listed).items()


def test_a_phone_and_a_sheet_hold_every_pair(draw, opened):
    page = opened(made(draw, "groups by class").found, viewport={"width": 360, "height": 740})
    assert page.page.evaluate("document.scrollingElement.scrollWidth") == 360
    assert [row[0] for row in page.strata()[1:5]] == [
        f"{page.strata()[1][0].split(' / ')[0]} / {k}" for k in GRADES
    ]
    page.page.emulate_media(media="print", color_scheme="dark")
    page.drawn(page.summary["start"])
    layout = page.data("strata")["layout"]
    assert (layout["width"], layout["font"]["color"]) == (676, "#1d2329")


# --- the command


def test_the_command_finds_groups_and_clusters_by_name(draw, tmp_path):
    csv = pytest.importorskip("pyarrow.csv")
    import pyarrow as pa

    setting = made(draw, "delta of clusters by group")
    rng = np.random.default_rng(0)
    columns = {f"p{k}": setting.proba[:, k] for k in range(4)} | {"label": setting.index}
    columns |= {"site": setting.extras["groups"].tolist(), "patient": setting.extras["clusters"]}
    table = pa.table({name: columns[name] for name in rng.permutation([*columns])})
    csv.write_csv(table, tmp_path / "test.csv")
    controller = orisk.RiskController(alpha=0.2, delta=0.2)
    controller.calibrate(*draw(300, 4), groups=[*CLINICS[:3]] * 100, clusters=np.arange(300) // 3)
    controller.save(tmp_path / "cal.json")
    keep = setting.extras["groups"] != "<b>tiny</b>"
    csv.write_csv(table.filter(pa.array(keep)), tmp_path / "test.csv")
    out = tmp_path / "report.html"
    arguments = ["report", str(tmp_path / "cal.json"), str(tmp_path / "test.csv"), "-o", str(out)]
    refused = run(*arguments)
    assert refused.exit_code != 0
    done = run(*arguments, "--group", "site", "--cluster-col", "patient")
    assert done.exit_code == 0, done.output
    found = json.loads(out.with_suffix(".json").read_text())
    expected = summarise(
        controller,
        setting.proba[keep],
        setting.index[keep],
        groups=setting.extras["groups"][keep],
        clusters=setting.extras["clusters"][keep],
    )
    assert found["promise"] == expected["promise"]
    assert found["calibration"]["columns"]["group"] == "site"
    for ours, theirs in zip(found["stops"], expected["stops"], strict=True):
        assert ours["risk"] == theirs["risk"]
        assert ours["strata"] == theirs["strata"]
    told = ["--group", "site", "--cluster-col", "patient", "--random-state", "1"]
    wrong = run(*arguments, *told)
    assert wrong.exit_code == 2


def test_intervals_that_take_rows_as_independent_say_so(draw):
    page = html.unescape(render(made(draw, "clusters").found))
    assert "(treats rows as independent)" in page
    assert "Except for the realised risk, intervals treat rows as independent" in page
    page = html.unescape(render(made(draw, "weights").found))
    assert "(approximate)" in page
    assert "Except for the realised risk, all numbers count each test row once" in page
    page = html.unescape(render(made(draw, "class ratios").found))
    assert "(approximate)" not in page


def test_ratios_of_classes_have_the_key_that_earlier_reports_have(draw):
    """The report is still of schema version 1, which others read."""
    found = made(draw, "class ratios").found
    assert found["schema_version"] == 1
    assert found["promise"]["class_ratios"] == ["1", "0.5", "2", "1"]
