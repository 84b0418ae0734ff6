"""A report's summary: the metrics of the controller's own sets at each stop, however the rows are cut."""

import json
import math
import pickle
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import exact_losses

import ordinalrisk as orisk
from ordinalrisk import metrics
from ordinalrisk.calibration.fingerprint import fingerprint, of_parts
from ordinalrisk.calibration.guarantees import Guarantee
from ordinalrisk.calibration.promises import expectation_threshold
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import Estimate
from ordinalrisk.evaluation.verdict import verdict_of
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.inputs.random_rows import RandomRows
from ordinalrisk.losses.kinds import as_loss
from ordinalrisk.losses.words import loss_in_words
from ordinalrisk.report import ReportSummary, counting, render, striking, summarise, summary, write_report
from ordinalrisk.report.render import _worst
from ordinalrisk.report.stops import MOST_STOPS, stops_of
from ordinalrisk.report.striking import TopRows
from ordinalrisk.selection.compare import GROWTHS, compare

pytestmark = [
    pytest.mark.filterwarnings("ignore:alpha=.* needs at least:UserWarning"),
    pytest.mark.usefixtures("few_stops"),
]

YEARS = orisk.DivergenceLoss(positions=[18, 30, 65], normalize=False)  # B = 47
SETTINGS = {
    "coverage": (4, {"alpha": 0.1}),
    "divergence": (5, {"loss": "divergence", "alpha": 0.03, "growth": "paper"}),
    "a weight of zero": (4, {"loss": orisk.WeightedLoss([0, 1, 1, 3]), "alpha": 0.1, "growth": "adaptive"}),
    "years": (3, {"loss": YEARS, "alpha": 2}),
    "a ratio": (4, {"alpha": Fraction(1, 3), "growth": "rps"}),
    "two classes": (2, {"alpha": 0.07}),
    "uncertified": (4, {"alpha": 0.001}),
    "beyond saturation": (4, {"loss": "divergence", "alpha": 0.9}),
    "other points": (4, {"loss": orisk.DivergenceLoss(2), "growth": orisk.FrontierGrowth("bayes")}),
    "names": (3, {"classes": ["low", "mid", "<b>high</b>"], "alpha": 0.2}),
}


class Setting:
    """A calibrated controller and test rows, of which the last class has none."""

    def __init__(self, draw, name, n_calibration=150, n_test=120):
        self.K, parameters = SETTINGS[name]
        proba, y = draw(n_calibration, self.K, seed=1)
        self.controller = orisk.RiskController(**parameters)
        names = np.array(parameters.get("classes", range(self.K)))
        self.controller.calibrate(proba, names[y])
        self.loss = self.controller.loss
        self.proba, y = draw(n_test, self.K, seed=2)
        self.index = np.minimum(y, max(self.K - 2, 1))
        self.y = names[self.index]
        self.cases = {"id": [f"A{i}" for i in range(n_test)], "age": np.arange(n_test) / 2}

    def summary(self):
        return summarise(self.controller, self.proba, self.y, cases=self.cases)

    @cached_property
    def found(self):
        return self.summary()

    def sets(self, stop):
        return self.controller.predict_set(self.proba, alpha=stop["alpha"])


@cache
def made(draw, name):
    return Setting(draw, name)


@pytest.fixture(params=SETTINGS)
def setting(draw, request):
    return made(draw, request.param)


# layout

NUMBER = (int, float)
DIGITS = "0123456789abcdef"


def is_text(value):
    return isinstance(value, str)


def is_whole(value):
    return type(value) is int and value >= 0


def is_number(value):
    return type(value) in (int, float) and math.isfinite(value)


def is_estimate(value):
    return isinstance(value, list) and len(value) == 3 and all(map(is_number, value))


def or_none(check):
    return lambda value: value is None or check(value)


def list_of(check, length=None):
    return lambda value: (
        isinstance(value, list) and (length is None or len(value) == length) and all(map(check, value))
    )


def one_of(*values):
    return lambda value: value in values and type(value) in map(type, values)


def record(**fields):
    return lambda value: (
        isinstance(value, dict)
        and list(value) == list(fields)
        and not [name for name, check in fields.items() if not check(value[name])]
    )


def is_digest(value):
    return is_text(value) and len(value) == 64 and set(value) <= set(DIGITS)


def layout(K, S):
    """The agreed layout of a summary, with K classes and S stops."""
    is_case = record(
        row=lambda row: is_whole(row) and row > 0,
        values=list_of(is_text),
        truth=lambda truth: is_whole(truth) and truth < K,
        until=list_of(lambda until: is_whole(until) and until <= S, K),
    )
    stop = record(
        alpha=is_text,
        value=is_number,
        threshold=lambda value: is_number(value) or value in ("inf", "-inf"),
        certified=one_of(True, False),
        saturated=one_of(True, False),
        guarantee=is_text,
        verdict=one_of("agrees", "chance", "disagrees", "nothing"),
        verdict_text=is_text,
        risk=is_estimate,
        coverage=is_estimate,
        mean_size=is_estimate,
        sizes=list_of(is_whole, K),
        centroids=list_of(is_whole, 2 * K - 1),
        class_coverage=list_of(or_none(is_estimate), K),
        class_risk=list_of(or_none(is_estimate), K),
        class_size=list_of(or_none(is_number), K),
        held=list_of(list_of(is_whole, K), K) if K <= 60 else lambda value: value is None,
        widest=list_of(is_whole),
        missed=list_of(is_whole),
    )
    return {
        "format": one_of("ordinalrisk report"),
        "schema_version": one_of(1),
        "package_version": one_of(orisk.__version__),
        "confidence": one_of(0.95),
        "classes": list_of(is_text, K),
        "loss": record(text=is_text, bound=is_text, description=is_text),
        "growth": record(name=one_of(*GROWTHS), point=one_of("mode", "bayes", "median")),
        "alpha": is_text,
        "start": lambda start: is_whole(start) and start < S,
        "calibration": record(
            file=or_none(is_text),
            rows=is_whole,
            bound=is_text,
            most_tied=is_whole,
            levels=is_whole,
            threshold=record(decimal=is_text, hex=is_text),
            data_blake3=is_digest,
            columns=or_none(record(scores=list_of(is_text, K), label=is_text, logits=one_of(True, False))),
            smallest_alpha=is_text,
        ),
        "test": record(
            file=or_none(is_text), rows=is_whole, class_rows=list_of(is_whole, K), data_blake3=is_digest
        ),
        "stops": list_of(stop, S),
        "cases": record(columns=list_of(is_text), rows=list_of(is_case)),
        "rules": or_none(
            record(
                text=is_text,
                rows=is_whole,
                folds=one_of(5),
                names=list_of(is_text, 4),
                risk=list_of(list_of(or_none(is_number), S), 4),
                mean_size=list_of(list_of(or_none(is_number), S), 4),
            )
        ),
    }


def assert_agreed_layout(found):
    fields = layout(len(found["classes"]), len(found["stops"]))
    assert list(found) == list(fields)
    assert [name for name, check in fields.items() if not check(found[name])] == []
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_layout_is_the_agreed_one(setting):
    assert_agreed_layout(setting.found)


def test_the_checker_sees_what_is_wrong(draw):
    found = Setting(draw, "coverage").summary()
    found["stops"][3]["risk"][1] = np.float64(0.1)
    with pytest.raises(AssertionError):
        assert_agreed_layout(found)


# numbers


def listed(estimate):
    """Value and interval of each class; None for a class without rows."""
    return [None if np.isnan(row[0]) else row.tolist() for row in np.transpose(np.array(estimate))]


@pytest.mark.no_cover
def test_every_stop_has_the_metrics_of_its_sets(setting):
    y, loss = setting.y, setting.loss
    found = setting.found
    for stop in found["stops"]:
        sets = setting.sets(stop)
        assert stop["risk"] == list(metrics.risk(y, sets, loss, confidence=0.95))
        assert stop["coverage"] == list(metrics.coverage(y, sets, confidence=0.95))
        assert stop["mean_size"] == list(metrics.mean_size(sets, confidence=0.95))
        assert stop["sizes"] == np.bincount(sets.size, minlength=setting.K + 1)[1:].tolist()
        twice = np.bincount((2 * sets.centroid).astype(int), minlength=2 * setting.K - 1)
        assert stop["centroids"] == twice.tolist()
        assert stop["class_coverage"] == listed(metrics.class_coverage(y, sets, confidence=0.95))
        assert stop["class_risk"] == listed(metrics.class_risk(y, sets, loss, confidence=0.95))
        sizes = metrics.class_size(y, sets).tolist()
        assert stop["class_size"] == [None if math.isnan(size) else size for size in sizes]
        held = [sets.mask()[setting.index == k].sum(axis=0).tolist() for k in range(setting.K)]
        assert stop["held"] == held


def test_every_stop_has_its_guarantee(setting):
    for stop in setting.found["stops"]:
        guarantee = setting.controller.guarantee(stop["alpha"])
        assert (stop["certified"], stop["saturated"]) == (guarantee.certified, guarantee.saturated)
        assert stop["guarantee"].split() == str(guarantee).split()
        assert "\n" not in stop["guarantee"]
        assert stop["value"] == float(Fraction(stop["alpha"]))
        assert float(stop["threshold"]) == setting.controller.threshold_at(stop["alpha"])


def test_starts_at_the_calibrated_alpha(setting):
    found, controller = setting.found, setting.controller
    start = found["stops"][found["start"]]
    assert found["alpha"] == start["alpha"] == decimal_text(Fraction(str(controller.alpha)))
    assert float(start["threshold"]) == controller.threshold_
    sets = controller.predict_set(setting.proba)
    assert start["risk"][0] == metrics.risk(setting.y, sets, setting.loss)
    assert start["mean_size"][0] == metrics.mean_size(sets)


def test_sets_shrink_along_the_stops(setting):
    found = setting.found
    for before, after in pairwise(found["stops"]):
        assert before["value"] < after["value"]
        assert float(before["threshold"]) <= float(after["threshold"])
        assert before["mean_size"][0] >= after["mean_size"][0]
        assert before["risk"][0] <= after["risk"][0]
        assert before["coverage"][0] >= after["coverage"][0]


@pytest.mark.no_cover
def test_where_it_comes_from(setting):
    controller, curve = setting.controller, setting.controller.risk_curve_
    found = summarise(
        controller, setting.proba, setting.y, calibration_file="cal.json", test_file="t.csv", columns=None
    )
    assert found["classes"] == [str(label) for label in controller.classes_]
    assert found["loss"]["text"] == repr(controller.loss)
    assert found["loss"]["bound"] == found["calibration"]["bound"] == decimal_text(curve.bound)
    assert found["growth"] == {"name": controller.growth.name, "point": controller.growth.point}
    calibration = found["calibration"]
    assert (calibration["file"], calibration["rows"]) == ("cal.json", 150)
    assert (calibration["most_tied"], calibration["levels"]) == (curve.most_tied, len(curve.levels))
    assert float(calibration["threshold"]["decimal"]) == controller.threshold_
    assert float.fromhex(calibration["threshold"]["hex"]) == controller.threshold_
    assert calibration["data_blake3"] == controller.data_blake3_
    assert Fraction(calibration["smallest_alpha"]) == curve.bound / 151
    test = found["test"]
    assert (test["file"], test["rows"]) == ("t.csv", 120)
    assert test["class_rows"] == np.bincount(setting.index, minlength=setting.K).tolist()
    assert test["data_blake3"] == fingerprint(setting.proba, setting.index)


def test_columns_that_the_calibration_remembers(draw, tmp_path):
    setting = Setting(draw, "two classes")
    columns = {"scores": ["p0", "p1"], "label": "grade", "logits": True, "rescale": False}
    columns |= {"group": None, "cluster": None, "weight": None}
    found = summarise(setting.controller, setting.proba, setting.y, columns=columns)
    assert found["calibration"]["columns"] == columns
    from ordinalrisk.inputs.column_roles import ScoreColumns

    remembered = ScoreColumns(("p0", "p1"), "grade", True)
    calibration = replace(setting.controller.calibration_, columns=remembered)
    setting.controller = orisk.RiskController.of(setting.controller.spec, calibration)
    assert setting.summary()["calibration"]["columns"] == columns
    setting.controller.save(tmp_path / "calibration.json")
    setting.controller = orisk.RiskController.load(tmp_path / "calibration.json")
    assert setting.summary()["calibration"]["columns"] == columns


# batches


@pytest.mark.no_cover
def test_batches_of_any_size_give_the_same(setting, monkeypatch):
    monkeypatch.setattr(summary, "_ROWS_COMPARED", 60)
    whole = setting.summary()
    assert whole["rules"]["rows"] == 60
    monkeypatch.setattr(counting, "_ROWS_AT_ONCE", 7)
    rng = np.random.default_rng(0)
    batches = ReportSummary(setting.controller)
    for start, stop in pairwise([0, 1, 2, *sorted(rng.choice(np.arange(3, 120), 12, replace=False)), 120]):
        rows = slice(start, stop)
        cases = {name: values[rows] for name, values in setting.cases.items()}
        batches.add(setting.proba[rows], setting.y[rows], cases)
    assert batches.finish() == whole


@pytest.mark.no_cover
def test_parts_from_other_machines_merge_to_the_same(setting):
    merged = ReportSummary(setting.controller)
    cuts = [0, 1, 50, 50, 120]
    for start, stop in pairwise(cuts):
        part = ReportSummary(setting.controller, first_row=start)
        if rows := range(start, stop):
            cases = {name: [values[row] for row in rows] for name, values in setting.cases.items()}
            part.add(setting.proba[start:stop], setting.y[start:stop], cases)
        merged.merge(pickle.loads(pickle.dumps(part)))
    found = merged.finish()
    assert_agreed_layout(found)
    digests = [
        fingerprint(setting.proba[start:stop], setting.index[start:stop])
        for start, stop in pairwise(cuts)
        if start < stop
    ]
    assert found["test"] == setting.found["test"] | {"data_blake3": of_parts(digests)}
    assert json.dumps(found | {"test": None}) == json.dumps(setting.found | {"test": None})


def test_a_refused_batch_leaves_no_trace(draw):
    setting = Setting(draw, "names")
    batches = ReportSummary(setting.controller)
    batches.add(setting.proba[:60], setting.y[:60], {"id": range(60)})
    bad = setting.proba[60:].copy()
    bad[-1, 0] = np.nan
    id60 = {"id": range(60)}
    for wrong, message in [
        ((bad, setting.y[60:], id60), "NaN value at row 59, column 0"),
        ((setting.proba[60:], ["low"] * 59 + ["none"], id60), "'none', which is not one of the classes"),
        ((setting.proba[60:], setting.y[61:], id60), "one label for each of the 60 rows"),
        ((setting.proba[60:, :2], setting.y[60:], id60), "proba has 2 columns, but the calibration had 3"),
        ((setting.proba[60:].astype(np.float32), setting.y[60:], id60), "float32"),
        ((setting.proba[60:], setting.y[60:], {"id": range(59)}), r"cases\['id'\] must have one value"),
        ((setting.proba[60:], setting.y[60:], {"no": range(60)}), r"columns \['no'\], those before \['id'\]"),
        ((setting.proba[60:], setting.y[60:]), r"columns \[\], those before \['id'\]"),
        ((setting.proba[60:], setting.y[60:], "id"), "cases must map names of columns"),
        ((setting.proba[60:], setting.y[60:], {"id": "x" * 60}), "must have one value"),
        ((setting.proba[:0], setting.y[:0], {}), "no rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            batches.add(*wrong)
    batches.add(setting.proba[60:], setting.y[60:], {"id": range(60, 120)})
    assert batches.finish() == summarise(
        setting.controller, setting.proba, setting.y, cases={"id": range(120)}
    )


def test_frames_are_read_by_their_columns(draw):
    setting = Setting(draw, "names")
    frame = pd.DataFrame(setting.proba, columns=setting.controller.classes_)
    plain = summarise(setting.controller, setting.proba, setting.y)
    assert summarise(setting.controller, frame, pd.Series(setting.y)) == plain
    with pytest.raises(ValueError, match="columns of proba are in the order"):
        summarise(setting.controller, frame[frame.columns[::-1]], setting.y)


def test_what_can_not_be_reported(draw):
    proba, y = draw(50, 3)
    with pytest.raises(ValueError, match="not calibrated"):
        ReportSummary(orisk.RiskController())
    given = orisk.RiskController(growth=orisk.PaperGrowth("given")).calibrate(proba, y, point_labels=y)
    with pytest.raises(ValueError, match="finds its own point labels"):
        ReportSummary(given)
    with pytest.raises(ValueError, match="no test rows"):
        ReportSummary(orisk.RiskController().calibrate(proba, y)).finish()


# edges


def test_one_test_row(draw):
    setting = Setting(draw, "divergence", n_test=1)
    found = setting.summary()
    assert_agreed_layout(found)
    assert found["rules"] is None
    assert [case["row"] for case in found["cases"]["rows"]] == [1]
    assert {stop["verdict"] for stop in found["stops"]} <= {"agrees", "chance"}
    assert "On the one test row" in found["stops"][-1]["verdict_text"]


@pytest.mark.parametrize(("n_test", "compared"), [(9, False), (10, True)])
def test_ten_rows_are_compared(draw, n_test, compared):
    found = Setting(draw, "coverage", n_test=n_test).summary()
    assert (found["rules"] is not None) == compared


def test_saturated_from_the_first_stop(usual_stops):
    """A model that is never wrong: single labels keep within whatever can be certified."""
    proba = np.eye(3)[[0, 1, 2] * 20] * 0.8 + 0.2 / 3
    controller = orisk.RiskController(alpha=0.1).calibrate(proba, [0, 1, 2] * 20)
    found = summarise(controller, proba[:-1], ([0, 1, 2] * 20)[:-1])
    assert_agreed_layout(found)
    assert [stop["alpha"] for stop in found["stops"]] == ["0.0164", "0.1"]
    assert all(stop["saturated"] and stop["threshold"] == "inf" for stop in found["stops"])
    assert all(stop["missed"] == [] for stop in found["stops"])
    assert "single label" in found["stops"][0]["verdict_text"]


def test_wrong_about_every_row(usual_stops):
    """No alpha below the largest loss saturates: the last stop is the last multiple below it."""
    proba = np.array([[0.7, 0.2, 0.1]] * 30)
    controller = orisk.RiskController("divergence", alpha=0.5).calibrate(proba, [2] * 30)
    found = summarise(controller, proba, [2] * 30)
    assert_agreed_layout(found)
    last = found["stops"][-1]
    assert last["alpha"] == "0.995"
    assert not last["saturated"]


@pytest.mark.no_cover
@pytest.mark.parametrize("K", [60, 61])
def test_many_classes(draw, K, usual_stops):
    proba, y = draw(400, K)
    controller = orisk.RiskController(alpha=0.1).calibrate(proba, y)
    found = summarise(controller, proba[:200], y[:200])
    assert_agreed_layout(found)
    assert len(found["stops"]) >= 15
    assert len(json.dumps(found)) < 900_000


@pytest.mark.no_cover
@pytest.mark.parametrize("K", [2, 10, 20, 33])
def test_the_file_stays_small(draw, K, usual_stops, monkeypatch):
    monkeypatch.setattr(summary, "_ROWS_COMPARED", 100)
    proba, y = draw(5000, K)
    controller = orisk.RiskController(alpha=0.1).calibrate(proba, y)
    cases = {name: ["twenty characters or so"] * 5000 for name in "abcdef"}
    found = summarise(controller, proba, y, cases=cases)
    assert 30 <= len(found["stops"]) <= 200
    assert len(json.dumps(found)) < 900_000


def test_few_calibration_rows(draw):
    proba, y = draw(3, 3)
    found = summarise(orisk.RiskController(alpha=0.1).calibrate(proba, y), *draw(20, 3, seed=1))
    assert_agreed_layout(found)
    assert not found["stops"][0]["certified"]
    assert found["stops"][0]["alpha"] == "0.1"
    assert all(stop["certified"] for stop in found["stops"][1:])
    assert found["stops"][0]["mean_size"][::2] == [3, 3]


# stops


def random_curve(rng):
    n = int(rng.choice([1, 2, 9, 60, 1000, 40_000]))
    m = int(rng.integers(0, n + 1))
    bound = Fraction(rng.choice(["1", "47", "0.3", "1000000", "1/7"]))
    units = int(rng.choice([1, 9]))
    by = rng.integers(1, units + 1, m)
    return RiskCurve.from_steps(rng.random(m), by, unit=bound / units, n_rows=n, bound=bound)


def is_round(step):
    """Whether a step is 1, 2 or 5 times a power of ten."""
    while step < 1:
        step *= 10
    while step >= 10:
        step /= 10
    return step in (1, 2, 5)


@pytest.mark.no_cover
def test_stops_by_their_definition(usual_stops):
    rng = np.random.default_rng(0)
    for _ in range(200):
        curve = random_curve(rng)
        K = int(rng.choice([2, 5, 12, 40, 60, 61, 300]))
        alpha = curve.bound * Fraction(int(rng.integers(1, 300)), 301)
        stops = stops_of(curve, alpha, K)
        assert [stop.alpha for stop in stops] == sorted({stop.alpha for stop in stops})
        assert all(stop.threshold == expectation_threshold(curve, stop.alpha) for stop in stops)
        assert alpha in [stop.alpha for stop in stops]
        assert len(stops) <= MOST_STOPS
        others = [stop for stop in stops if stop.alpha != alpha]
        assert all(stop.threshold > -math.inf for stop in others)
        assert all(0 < stop.alpha < curve.bound for stop in others)
        if len(others) < 3:
            continue
        step = min(b.alpha - a.alpha for a, b in pairwise(others))
        assert is_round(step)
        assert all((stop.alpha / step).denominator == 1 for stop in others)
        assert (others[-1].alpha - others[0].alpha) / step in (len(others) - 1, len(others))
        if (alpha / step).denominator == 1 and alpha < others[0].alpha:
            continue
        assert others[0].alpha - step * (1 + (alpha == others[0].alpha - step)) < curve.bound / (
            curve.n_rows + 1
        )
        saturated = [stop for stop in others if stop.threshold == math.inf]
        assert len(saturated) <= 1
        if not saturated and expectation_threshold(curve, alpha) < math.inf:
            assert others[-1].alpha + step >= curve.bound


def test_about_a_hundred_stops(usual_stops):
    """Enough to choose from with few classes, at least 15 with many."""
    rng = np.random.default_rng(0)
    for n in (200, 1000, 30_000):
        for share in (0.01, 0.1, 0.5, 0.99):
            m = math.ceil(share * n)
            curve = RiskCurve.from_steps(
                rng.random(m), np.ones(m, int), unit=Fraction(1), n_rows=n, bound=Fraction(1)
            )
            for K, fewest, most in ((2, 70, 200), (10, 60, 200), (30, 20, 80), (60, 15, 40), (500, 15, 40)):
                assert fewest <= len(stops_of(curve, Fraction(1, 20), K)) <= most


# striking rows


@pytest.mark.no_cover
def test_cases_by_brute_force(setting):
    found = setting.found
    numbers = [case["row"] for case in found["cases"]["rows"]]
    assert numbers == sorted(set(numbers))
    shown = set()
    for stop in found["stops"]:
        sets = setting.sets(stop)
        size = sets.size.tolist()
        losses = exact_losses(setting.index, sets.lower_index, sets.upper_index, setting.loss, setting.K)
        away = np.flatnonzero(~sets.contains(setting.y)).tolist()
        widest = sorted(range(120), key=lambda row: (-size[row], row))[:10]
        missed = sorted(away, key=lambda row: (-losses[row], row))[:10]
        assert [numbers[i] - 1 for i in stop["widest"]] == widest
        assert [numbers[i] - 1 for i in stop["missed"]] == missed
        shown |= {*widest, *missed}
    assert {number - 1 for number in numbers} == shown


@pytest.mark.no_cover
def test_until_gives_the_sets_of_every_stop(setting):
    found = setting.found
    ends = [setting.sets(stop) for stop in found["stops"]]
    for case in found["cases"]["rows"]:
        row = case["row"] - 1
        assert case["truth"] == setting.index[row]
        assert case["values"] == [f"A{row}", str(row / 2)]
        for s, sets in enumerate(ends):
            held = [k for k, until in enumerate(case["until"]) if s < until]
            assert held == list(range(sets.lower_index[row], sets.upper_index[row] + 1))


@given(
    values=st.lists(st.integers(1, 6), max_size=60),
    cut=st.integers(1, 60),
    most=st.integers(1, 12),
)
def test_top_rows_by_sorting(values, cut, most):
    top = TopRows(most)
    for start in range(0, len(values), cut):
        part = np.array(values[start : start + cut])
        top.offer(part, np.arange(start, start + len(part)))
    assert top.rows == sorted(range(len(values)), key=lambda row: (-values[row], row))[:most]


def test_only_the_first_columns_and_characters_are_shown(draw):
    setting = Setting(draw, "coverage", n_test=12)
    texts = ["x" * 79, "y" * 80, "z" * 81, "word " * 40, None, float("nan"), 3, 2.5, True, "ä", "", "<i>"]
    setting.cases = {7: texts} | {name: range(12) for name in "abcdefg"}
    found = setting.summary()
    assert found["cases"]["columns"] == ["7", "a", "b", "c", "d", "e"]
    shown = {case["row"] - 1: case["values"][0] for case in found["cases"]["rows"]}
    expected = ["x" * 79, "y" * 80, "z" * 79 + "…", None, "", "", "3", "2.5", "True", "ä", "", "<i>"]
    assert len(shown) == 12
    for row, text in shown.items():
        if row == 3:
            assert text.endswith("word…")
            assert len(text) <= 80
        else:
            assert text == expected[row]


@pytest.mark.no_cover
@pytest.mark.parametrize("library", ["pandas", "pandas frame", "polars", "pyarrow", "numpy"])
def test_columns_of_any_library(draw, library):
    setting = Setting(draw, "coverage", n_test=30)
    names = [f"A{i}" for i in range(30)]
    backwards = pd.Series(names, index=range(29, -1, -1))  # an index that is not the position
    setting.cases = {
        "pandas": {"id": backwards},
        "pandas frame": pd.DataFrame({"id": backwards}),
        "polars": {"id": pl.Series(names)},
        "pyarrow": {"id": pa.chunked_array([names[:4], names[4:]])},
        "numpy": {"id": np.array(names)},
    }[library]
    found = setting.summary()
    assert found["cases"]["columns"] == ["id"]
    assert all(case["values"] == [f"A{case['row'] - 1}"] for case in found["cases"]["rows"])


def test_no_cases_are_shown_by_number_only(draw):
    setting = Setting(draw, "coverage")
    setting.cases = None
    found = setting.summary()
    assert found["cases"]["columns"] == []
    assert all(case["values"] == [] for case in found["cases"]["rows"])


def test_few_rows_are_kept_of_many(draw):
    """What is kept does not grow with the rows."""
    setting = Setting(draw, "coverage")
    batches = ReportSummary(setting.controller)
    for seed in range(20):
        batches.add(*draw(500, 4, seed=seed))
        counted = batches._counted
        assert len(counted.cases) <= striking.MOST_ROWS * 2 * len(counted._tallies)
        assert set(counted.cases) == counted._striking._top.rows


# growth rules


@pytest.mark.no_cover
def test_rules_are_those_of_compare(setting):
    found = setting.found
    own = setting.controller.growth
    growths = [own if name == own.name else name for name in GROWTHS]
    alphas = [stop["alpha"] for stop in found["stops"]]
    classes = setting.controller.classes_
    results = compare(
        setting.proba,
        setting.y,
        losses={"own": setting.loss},
        growths=growths,
        alphas=alphas,
        classes=classes,
    )
    S, rules = len(alphas), found["rules"]
    assert (rules["text"], rules["rows"]) == ("5-fold cross-validation on 120 test rows", 120)
    assert rules["names"] == ["frontier", "adaptive", "paper", "rps"]
    for i in range(4):
        cells = results[i * S : (i + 1) * S]
        assert rules["risk"][i] == [cell.risk if cell.certified else None for cell in cells]
        assert rules["mean_size"][i] == [cell.mean_size.value if cell.certified else None for cell in cells]
    assert any(None in row for row in rules["risk"]) == any(not cell.certified for cell in results)


def test_rules_of_a_sample(draw, monkeypatch):
    setting = Setting(draw, "coverage", n_test=1500)
    monkeypatch.setattr(summary, "_ROWS_COMPARED", 1000)
    rules = setting.summary()["rules"]
    assert rules["text"] == "5-fold cross-validation on 1,000 of 1,500 test rows, drawn at random"


def test_random_rows_are_uniform_and_distinct():
    counts = np.zeros(30)
    for seed in range(2000):
        rows = RandomRows(10, seed)
        for start, stop in pairwise([0, 3, 4, 25, 30]):
            rows.add(np.arange(start, stop)[:, None] / 1.0, np.arange(start, stop))
        proba, labels = rows.drawn()
        assert len(set(labels.tolist())) == 10
        np.testing.assert_array_equal(proba[:, 0], labels)
        assert labels.tolist() == sorted(labels.tolist())
        counts[labels] += 1
    assert abs(counts / 2000 - 1 / 3).max() < 0.05


def test_random_rows_of_few_are_all():
    rows = RandomRows(10)
    rows.add(np.eye(3), np.arange(3))
    assert rows.drawn()[1].tolist() == [0, 1, 2]


def test_the_class_served_worst_is_that_of_the_largest_loss():
    """Too high costs five times as much, so it is not the class that is covered least."""
    random = np.random.default_rng(0)
    proba = random.dirichlet([3, 2, 1, 2], size=3000)
    y = np.array([random.choice(4, p=row) for row in proba])
    loss = orisk.DivergenceLoss(over=5)
    controller = orisk.RiskController(loss, alpha=0.05).calibrate(proba[:1500], y[:1500])
    sets, truth = controller.predict_set(proba[1500:]), y[1500:]
    by_loss, by_coverage = metrics.class_risk(truth, sets, loss), metrics.class_coverage(truth, sets)
    worst = int(by_loss.argmax())
    assert worst != by_coverage.argmin()
    found = summarise(controller, proba[1500:], truth)
    text = _worst(found["stops"][found["start"]], found)
    share, rows = f"{100 * by_coverage[worst]:.2f} %", np.sum(truth == worst)
    assert text.endswith(
        f"The class served worst is {worst}: its mean loss is {by_loss[worst]:.4g}, and {share} of its "
        f"{rows} rows have the truth in their set."
    )


# verdicts


def guarantee(alpha, n_rows, certified=True, saturated=False, bound=1):
    return Guarantee(Fraction(alpha), n_rows, Fraction(bound), certified, saturated)


def verdict(n_missed, n_test, promised):
    loss = as_loss("coverage")
    sets = orisk.IntervalSet([0] * n_test, [1] * n_test, range(3))
    tally = Tally.of(np.array([2] * n_missed + [0] * (n_test - n_missed)), sets)
    return verdict_of(tally, loss, promised, tally.risk(loss, 0.95))


def test_three_verdicts():
    agrees = verdict(50, 1000, guarantee("0.05", 400))
    assert agrees.word == "agrees"
    assert agrees.text == (
        "On 1,000 test rows the loss was 0.05 on average (95 % interval 0.03734 to 0.06539). "
        "This agrees with the guarantee of at most 0.05, which lies within the interval."
    )
    chance = verdict(70, 1000, guarantee("0.05", 400))
    assert chance.word == "chance"
    assert "0.07 on average" in chance.text
    assert "400 rows" in chance.text
    assert "1,000 test rows" in chance.text
    assert "up to 0.02957 above" in chance.text  # 1.96 sqrt(0.07 * 0.93 (1 / 400 + 1 / 1000)), nearly
    disagrees = verdict(90, 1000, guarantee("0.05", 400))
    assert disagrees.word == "disagrees"
    assert "0.09 on average" in disagrees.text
    for reason in ("trained on those", "population", "model", "one person", "columns"):
        assert reason in disagrees.text
    assert verdict(70, 1000, guarantee("0.05", 40_000)).word == "disagrees"
    assert verdict(90, 1000, guarantee("0.05", 100)).word == "chance"


def test_a_loss_too_small_to_be_true_is_asked_about():
    """Standard deviation of the difference: sqrt(p (1 - p) (1 / 400 + 1 / 1000)), with p = 0.045 0.0123."""
    promised = replace(guarantee("0.05", 400), calibration_risk=0.045)
    question = " It is far less than the 0.045 of the calibration rows: was the model trained on these rows?"
    assert verdict(20, 1000, promised).text.endswith(question)
    assert "far less" not in verdict(30, 1000, promised).text
    assert "far less" not in verdict(20, 1000, guarantee("0.05", 400)).text
    assert verdict(20, 1000, promised).word == "agrees"


def test_agrees_while_the_interval_reaches_alpha():
    loss = as_loss("coverage")
    tally = Tally.of(np.array([2, 0]), orisk.IntervalSet([0, 0], [1, 1], range(3)))
    for low, word in ((0.125, "agrees"), (0.126, "chance")):
        assert verdict_of(tally, loss, guarantee("0.125", 400), Estimate(0.5, low, 0.9)).word == word


def test_chance_ends_where_the_formula_says():
    """Excess over deviation passes 1.96 between two numbers of misses."""
    for n_calibration in (100, 1000):
        words = [verdict(k, 1000, guarantee("0.05", n_calibration)).word for k in range(50, 200)]
        first = 50 + words.index("disagrees")
        assert set(words[first - 50 :]) == {"disagrees"}

        def excess(k):
            r = k / 1001  # one row without loss is counted in
            return (k / 1000 - 0.05) / math.sqrt(r * (1 - r) * (1 / n_calibration + 1 / 1000))  # noqa: B023

        assert excess(first - 1) <= 1.96 < excess(first)


def test_verdict_of_saturated_and_uncertified_stops():
    saturated = verdict(10, 1000, guarantee("0.05", 400, saturated=True))
    assert saturated.word == "agrees"
    assert "Every set is a single label" in saturated.text
    assert verdict(200, 1000, guarantee("0.05", 400, saturated=True)).word == "disagrees"
    uncertified = verdict(0, 1000, guarantee("0.001", 400, certified=False))
    assert uncertified.word == "nothing"
    assert "at least 999 calibration rows, and there were 400" in uncertified.text


def test_one_row_can_not_disagree_with_much():
    for loss in map(as_loss, ("coverage", "divergence")):
        tally = Tally.of(np.array([2]), orisk.IntervalSet([0], [1], range(3)))
        assert verdict_of(tally, loss, guarantee("0.1", 400), tally.risk(loss, 0.95)).word == "agrees"


@pytest.mark.no_cover
@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_disagreement_is_rare_for_exchangeable_rows(draw, loss):
    """300 draws of 200 calibration and 20,000 test rows: at most 5 % disagree, by the interval alone 20 %."""
    loss, alpha, n_draws = as_loss(loss), Fraction("0.1"), 300
    words, above = [], 0
    for seed in range(n_draws):
        proba, y = draw(20_200, 5, seed)
        controller = orisk.RiskController(loss, alpha).calibrate(proba[:200], y[:200])
        tally = Tally.of(y[200:], controller.predict_set(proba[200:]))
        risk = tally.risk(loss, 0.95)
        words.append(verdict_of(tally, loss, controller.guarantee(), risk).word)
        above += risk.low > alpha
    assert words.count("disagrees") <= 0.05 * n_draws
    assert words.count("chance") + words.count("disagrees") == above
    assert above >= 0.2 * n_draws


def test_the_rows_of_the_calibration_test_nothing(draw):
    proba, y = draw(300, 5)
    controller = orisk.RiskController(alpha=0.1).calibrate(proba, y)
    stops = summarise(controller, proba, y)["stops"]
    assert {stop["verdict"] for stop in stops} == {"nothing"}
    assert all("rows of the calibration itself" in stop["verdict_text"] for stop in stops)
    assert summarise(controller, proba[1:], y[1:])["stops"][0]["verdict"] == "agrees"


@pytest.mark.no_cover
def test_disagrees_with_another_population(draw):
    proba, y = draw(4000, 5)
    controller = orisk.RiskController(alpha=0.1).calibrate(proba[:2000], y[:2000])
    found = summarise(controller, proba[2000:], 4 - y[2000:])
    assert found["stops"][found["start"]]["verdict"] == "disagrees"
    found = summarise(controller, proba[2000:], y[2000:])
    assert found["stops"][found["start"]]["verdict"] == "agrees"


# losses in words


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (
            "coverage",
            "Every miss costs 1, whatever the class and however far off it is: "
            "the average loss is the share of cases whose set misses the truth.",
        ),
        (
            orisk.WeightedLoss([1, 2, 3]),
            "A miss costs by the true class, however far off it is: 1/3 for low, 2/3 for mid, 1 for high.",
        ),
        (
            orisk.WeightedLoss([1, 2, 3], normalize=False),
            "A miss costs by the true class, however far off it is: 1 for low, 2 for mid, 3 for high.",
        ),
        (
            "divergence",
            "A miss costs the number of labels between the truth and the set, "
            "as a share of the largest such cost.",
        ),
        (
            orisk.DivergenceLoss(2, under=3, over=0.5, normalize=False),
            "A miss costs the number of labels between the truth and the set squared, times 3 where the set "
            "lies below the truth, times 0.5 where the set lies above the truth, 12 at most.",
        ),
        (
            YEARS,
            "A miss costs the distance from the truth to the set on the scale 18 for low, 30 for mid, "
            "65 for high, 47 at most.",
        ),
        (
            orisk.DivergenceLoss(0.5),
            "A miss costs the number of labels between the truth and the set to the power 0.5, "
            "as a share of the largest such cost.",
        ),
        (
            orisk.CostTableLoss([[0, 1, 2], [5, 0, 1], [50, 20, 0]], normalize=False),
            "A miss costs what the cost table has for the true class and the nearest label of the set, "
            "50 at most.",
        ),
        (
            orisk.CostTableLoss([[0, 1, 2], [5, 0, 1], [50, 20, 0]]),
            "A miss costs what the cost table has for the true class and the nearest label of the set, "
            "as a share of the largest cost in it.",
        ),
    ],
)
def test_losses_in_words(loss, words):
    assert loss_in_words(as_loss(loss), ["low", "mid", "high"]) == words


def test_many_weights_are_not_all_listed():
    words = loss_in_words(orisk.WeightedLoss(range(1, 41)), [str(k) for k in range(40)])
    assert "0.15 for 5, ..., 0.875 for 34" in words


# files


def test_writes_page_and_data(draw, tmp_path):
    setting = Setting(draw, "names")
    write_report(setting.controller, setting.proba, setting.y, tmp_path / "r.html", cases=setting.cases)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.json"]
    found = setting.summary()
    assert json.loads((tmp_path / "r.json").read_text()) == found
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == render(found)


def test_writes_nothing_if_anything_fails(draw, tmp_path, monkeypatch):
    setting = Setting(draw, "coverage")
    with pytest.raises(ValueError, match=r"another ending than \.json"):
        write_report(setting.controller, setting.proba, setting.y, tmp_path / "r.json")
    with pytest.raises(FileNotFoundError):
        write_report(setting.controller, setting.proba, setting.y, tmp_path / "no" / "r.html")
    (tmp_path / "r.json").mkdir()  # can't be replaced by a file
    with pytest.raises(OSError, match=r"r\.json"):
        write_report(setting.controller, setting.proba, setting.y, tmp_path / "r.html")
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_importing_the_report_is_light():
    heavy = "import sys, ordinalrisk.report; print({'numpy', 'jinja2', 'plotly'} & set(sys.modules))"
    both = "from ordinalrisk.report.render import render; from ordinalrisk import report"
    for code, printed in ((heavy, "set()"), (f"{both}; print(report.render is render)", "True")):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == printed
    from ordinalrisk import report

    assert all(hasattr(report, name) for name in report.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = report.nothing
