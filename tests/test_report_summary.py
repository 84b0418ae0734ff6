"""A report's summary: the metrics of the controller's own sets at each stop, however the rows are cut."""

import html
import json
import math
import pickle
import re
import subprocess
import sys
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sizes
from fingerprints import fingerprint, of_parts
from scipy.stats import binomtest
from strategies import RULE_NAMES, as_loss, exact_losses
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import metrics
from ordinalrisk.report import ReportSummary, render, summarise, write_report

pytestmark = [
    UNCHECKED,
    FEW,
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
        headline=is_text,
        guarantee=is_text,
        colour=one_of("green", "amber", "red"),
        sentence=is_text,
        verdict=one_of("agrees", "chance", "disagrees", "nothing"),
        verdict_text=is_text,
        far_off=list_of(record(kind=is_text, name=lambda name: True, rows=is_whole, missed=is_estimate)),
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
    is_lookup = record(rows=is_whole, packed=is_text)
    is_slice = record(
        column=is_text, value=is_text, rows=is_whole, missed=is_estimate, stands_out=one_of(True, False)
    )
    is_bin = record(
        **{"from": is_number, "to": is_number, "count": is_whole, "predicted": is_number},
        observed=lambda value: is_estimate(value) or list_of(is_number, 1)(value),
    )
    return {
        "format": one_of("ordinalrisk report"),
        "schema_version": one_of(1),
        "package_version": one_of(orisk.__version__),
        "title": or_none(is_text),
        "date": or_none(is_text),
        "confidence": one_of(0.95),
        "classes": list_of(is_text, K),
        "loss": record(
            name=one_of("coverage", "weighted", "divergence"),
            text=is_text,
            bound=is_text,
            description=is_text,
        ),
        "growth": record(name=one_of(*RULE_NAMES), point=one_of("mode", "bayes", "median")),
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
            recalibration=lambda value: value is None,
        ),
        "test": record(
            file=or_none(is_text),
            bytes=or_none(is_whole),
            rows=is_whole,
            class_rows=list_of(is_whole, K),
            data_blake3=is_digest,
        ),
        "stops": list_of(stop, S),
        "cases": record(columns=list_of(is_text), rows=list_of(is_case), lookup=is_lookup),
        "slices": or_none(
            record(
                looked_at=is_whole,
                fewest_rows=is_whole,
                columns=list_of(is_text),
                left_out=list_of(is_text),
                missed=is_number,
                worst=list_of(is_slice),
            )
        ),
        "reliability": record(
            top=record(predicted=is_number, right=is_number, bins=list_of(is_bin)),
            cumulative=record(bins=list_of(is_bin)),
        ),
        "scores": record(
            text=is_text,
            differ=one_of(True, False),
            p_value=is_number,
            calibrated=list_of(is_whole, 16),
            new=list_of(is_whole, 16),
        ),
        "rules": or_none(
            record(
                text=is_text,
                rows=is_whole,
                folds=one_of(5),
                names=list_of(is_text, len(RULE_NAMES)),
                risk=list_of(list_of(or_none(is_number), S), len(RULE_NAMES)),
                mean_size=list_of(list_of(or_none(is_number), S), len(RULE_NAMES)),
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
    assert found["alpha"] == start["alpha"]
    assert Fraction(found["alpha"]) == Fraction(str(controller.alpha))
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
    assert found["loss"]["bound"] == found["calibration"]["bound"]
    assert Fraction(found["loss"]["bound"]) == curve.bound
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
    table = {"p0": np.log(setting.proba[:, 0]), "p1": np.log(setting.proba[:, 1]), "grade": setting.y}
    pd.DataFrame(table).to_csv(tmp_path / "rows.csv")
    names = {"scores": ["p0", "p1"], "label": "grade", "logits": True, "classes": [0, 1]}
    setting.controller = orisk.jobs.calibrate(orisk.RiskController(), tmp_path / "rows.csv", **names)
    assert setting.summary()["calibration"]["columns"] == columns
    setting.controller.save(tmp_path / "calibration.json")
    setting.controller = orisk.RiskController.load(tmp_path / "calibration.json")
    assert setting.summary()["calibration"]["columns"] == columns


# batches


@pytest.mark.no_cover
def test_batches_of_any_size_give_the_same(setting, monkeypatch):
    sizes.compare_few_rows(monkeypatch, 60)
    whole = setting.summary()
    assert whole["rules"]["rows"] == 60
    sizes.count_few_rows_at_once(monkeypatch, 7)
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
        merged = merged.merge(pickle.loads(pickle.dumps(part)))
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
    sizes.compare_few_rows(monkeypatch, 100)
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
        far = np.maximum(sets.lower_index - setting.index, setting.index - sets.upper_index).tolist()
        away = np.flatnonzero(~sets.contains(setting.y)).tolist()
        widest = sorted(range(120), key=lambda row: (-size[row], row))[:10]
        missed = sorted(away, key=lambda row: (-far[row], -losses[row], row))[:10]
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


# slices of the columns that are shown


def binomial(k, n, confidence):
    exact = binomtest(k, n).proportion_ci(confidence, method="exact")
    return [k / n, exact.low, exact.high]


def test_slices_by_brute_force(setting):
    """Each value of each column of few values; the intervals hold for all of them together."""
    rng, n = np.random.default_rng(0), len(setting.y)
    columns = {
        "id": [f"A{i}" for i in range(n)],
        "site": rng.choice(["north", "<b>", None], n).tolist(),
        "one": ["same"] * n,
        "age": rng.integers(20, 26, n),
    }
    found = summarise(setting.controller, setting.proba, setting.y, cases=columns)["slices"]
    missed = ~setting.controller.predict_set(setting.proba).contains(setting.y)
    texts = {name: np.array(["" if v is None else str(v) for v in columns[name]]) for name in ("site", "age")}
    every = [(name, value) for name, of in texts.items() for value in np.unique(of)]
    assert (found["looked_at"], found["columns"], found["left_out"]) == (len(every), ["site", "age"], ["id"])
    assert found["missed"] == missed.mean()
    expected = {}
    for name, value in every:
        mine = texts[name] == value
        expected[name, value] = mine.sum(), binomial(missed[mine].sum(), mine.sum(), 1 - 0.05 / len(every))
    lows = sorted((estimate[1] for _, estimate in expected.values()), reverse=True)[:10]
    assert [each["missed"][1] for each in found["worst"]] == pytest.approx(lows, abs=1e-9)
    for each in found["worst"]:
        rows, estimate = expected[each["column"], each["value"]]
        assert each["rows"] == rows
        assert each["missed"] == pytest.approx(estimate, abs=1e-9)
        assert each["stands_out"] == (each["missed"][1] > missed.mean())


def test_a_slice_that_is_missed_stands_out(draw):
    proba, y = draw(4000, 4)
    site = np.array(["north", "south", "east", "west"])[np.arange(4000) % 4]
    wrong = np.where((site == "west") & (np.arange(4000) % 8 < 4), 3 - y, y)
    controller = orisk.RiskController(alpha=0.1).calibrate(proba[:1000], y[:1000])
    first, *rest = summarise(controller, proba[1000:], wrong[1000:], cases={"site": site[1000:]})["slices"][
        "worst"
    ]
    assert (first["value"], first["stands_out"]) == ("west", True)
    assert not any(each["stands_out"] for each in rest)


def test_few_slices_stand_out_by_chance(draw):
    """60 reports with 20 slices each: fewer than 1 in 20 has one that stands out, and one at a time many."""
    alarms = 0
    for seed in range(60):
        proba, y = draw(700, 4, seed)
        controller = orisk.RiskController(alpha=0.2).calibrate(proba[:200], y[:200])
        site = np.random.default_rng(seed).integers(0, 20, 500)
        found = summarise(controller, proba[200:], y[200:], cases={"site": site})["slices"]
        alarms += any(each["stands_out"] for each in found["worst"])
    assert alarms <= 3


@pytest.mark.parametrize("library", ["pandas", "categorical", "polars", "pyarrow", "dictionary", "numpy"])
def test_slices_of_any_library(draw, library):
    setting = Setting(draw, "coverage")
    names = ["north", "south", None] * 40
    as_column = {
        "pandas": lambda: pd.Series(names, index=range(119, -1, -1)),
        "categorical": lambda: pd.Series(names, dtype="category"),
        "polars": lambda: pl.Series(names),
        "pyarrow": lambda: pa.chunked_array([names[:7], names[7:]]),
        "dictionary": lambda: pa.array(names).dictionary_encode(),
        "numpy": lambda: np.array(names, object),
    }[library]
    plain, found = (
        summarise(setting.controller, setting.proba, setting.y, cases={"site": column})["slices"]
        for column in (names, as_column())
    )
    assert found == plain
    assert {each["value"] for each in found["worst"]} == {"north", "south", ""}


def test_no_columns_no_slices(draw):
    setting = Setting(draw, "coverage")
    assert summarise(setting.controller, setting.proba, setting.y)["slices"] is None
    assert setting.found["slices"] is None  # its columns have a value for each row


# are the probabilities right?


def test_reliability_by_brute_force(setting):
    proba, y = setting.proba, setting.index
    found = setting.found["reliability"]
    top = proba.argmax(axis=1)
    of_top = proba[np.arange(len(y)), top]
    below = np.minimum(proba.cumsum(axis=1)[:, :-1], 1)
    at_most = y[:, None] <= np.arange(setting.K - 1)
    assert found["top"]["predicted"] == pytest.approx(of_top.mean(), abs=1e-7)
    assert found["top"]["right"] == (top == y).mean()
    for kind, given, true in (
        ("top", of_top, top == y),
        ("cumulative", below.ravel(), at_most.ravel()),
    ):
        bins = np.minimum((given * 10).astype(int), 9)
        assert [each["from"] for each in found[kind]["bins"]] == [b / 10 for b in np.unique(bins)]
        for each in found[kind]["bins"]:
            mine = bins == round(10 * each["from"])
            assert each["to"] == pytest.approx(each["from"] + 0.1)
            assert each["count"] == mine.sum()
            assert each["predicted"] == pytest.approx(given[mine].mean(), abs=1e-7)
            seen = binomial(true[mine].sum(), mine.sum(), 0.95) if kind == "top" else [true[mine].mean()]
            assert each["observed"] == pytest.approx(seen, abs=1e-9)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_probabilities_of_few_digits_are_counted(draw, kind):
    proba, y = draw(200, 4)
    controller = orisk.RiskController(alpha=0.1).calibrate(proba.astype(kind), y)
    bins = summarise(controller, proba.astype(kind)[1:], y[1:])["reliability"]["top"]["bins"]
    assert sum(each["count"] for each in bins) == 199


# growth rules


@pytest.mark.no_cover
def test_rules_are_those_of_compare(setting):
    found = setting.found
    own = setting.controller.growth
    growths = [own if name == own.name else name for name in found["rules"]["names"]]
    alphas = [stop["alpha"] for stop in found["stops"]]
    classes = setting.controller.classes_
    results = orisk.compare(
        setting.proba,
        setting.y,
        losses={"own": setting.loss},
        growths=growths,
        alphas=alphas,
        classes=classes,
    )
    S, rules = len(alphas), found["rules"]
    assert (rules["text"], rules["rows"]) == ("5-fold cross-validation on 120 test rows", 120)
    assert sorted(rules["names"]) == sorted(RULE_NAMES)
    for i in range(len(RULE_NAMES)):
        cells = results[i * S : (i + 1) * S]
        assert rules["risk"][i] == [cell.risk if cell.certified else None for cell in cells]
        assert rules["mean_size"][i] == [cell.mean_size.value if cell.certified else None for cell in cells]
    assert any(None in row for row in rules["risk"]) == any(not cell.certified for cell in results)


def test_rules_of_a_sample(draw, monkeypatch):
    setting = Setting(draw, "coverage", n_test=1500)
    sizes.compare_few_rows(monkeypatch, 1000)
    rules = setting.summary()["rules"]
    assert rules["text"] == "5-fold cross-validation on 1,000 of 1,500 test rows, drawn at random"


def test_the_class_named_is_that_of_the_largest_loss():
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
    rows, missed = np.sum(truth == worst), np.sum((truth == worst) & ~sets.contains(truth))
    page = " ".join(html.unescape(re.sub("<.*?>", "", render(found))).split())
    loss_of_worst, share = f"{by_loss[worst]:.4g}", f"{round(100 * missed / rows)} %"
    words = f"{worst}: {loss_of_worst}, and {share} of its sets miss the truth ({missed} of {rows} rows)."
    assert f"The class with the largest mean loss is {words}" in page


# verdicts


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


# the guarantee in the user's terms


@pytest.mark.parametrize(
    ("loss", "alpha", "words"),
    [
        ("coverage", 0.1, "At most 10 % of sets miss the truth."),
        ("coverage", Fraction(1, 3), "At most 33.33 % of sets miss the truth."),
        (orisk.WeightedLoss([2, 2, 2], normalize=False), 0.5, "At most 25 % of sets miss the truth."),
        (orisk.WeightedLoss([1, 2, 3]), 0.2, "Sets cost at most 20 % of the largest weight on average."),
        (orisk.WeightedLoss([1, 2, 3], normalize=False), 0.5, "Sets cost at most 0.5 on average."),
        ("divergence", 0.1, "Sets are at most 0.1 of the scale away from the truth on average."),
        (
            orisk.DivergenceLoss(normalize=False),
            0.1,
            "Sets are at most 0.1 labels away from the truth on average.",
        ),
        (YEARS, 5, "Sets are at most 5 away from the truth on average."),
        (orisk.DivergenceLoss(2), 0.1, "Sets cost at most 10 % of the largest cost on average."),
        (orisk.DivergenceLoss(under=3), 0.1, "Sets cost at most 10 % of the largest cost on average."),
        (
            orisk.CostTableLoss([[0, 1, 2], [5, 0, 1], [50, 20, 0]], normalize=False),
            4,
            "Sets cost at most 4 on average.",
        ),
    ],
)
def test_headlines(draw, loss, alpha, words):
    proba, y = draw(200, 3)
    controller = orisk.RiskController(loss, alpha).calibrate(proba, y)
    found = summarise(controller, *draw(50, 3, seed=1))
    assert found["stops"][found["start"]]["headline"] == words


def test_headlines_of_other_promises(draw):
    proba, y = draw(900, 3)
    sites, patients = np.array(["A", "B"])[np.arange(900) % 2], np.arange(900) // 2

    def words(alpha=0.1, columns=None, **options):
        columns = columns or {}
        controller = orisk.RiskController(alpha=alpha, **options).calibrate(proba, y, **columns)
        known = {name: values for name, values in columns.items() if name != "class_ratios"}
        found = summarise(controller, proba, y, **known)
        return found["stops"][found["start"]]["headline"]

    missed = "10 % of sets miss the truth"
    assert words(columns={"groups": sites}) == f"In each of 2 groups, at most {missed}."
    assert words(condition_on="label") == f"For each true class, at most {missed}."
    assert words(delta=0.05) == f"With 95 % confidence, at most {missed}."
    each = "In each of 2 groups separately, with 95 % confidence"
    assert words(delta=0.05, columns={"groups": sites}) == f"{each}, at most {missed}."
    assert words(columns={"clusters": patients}) == f"At most {missed}, on average over clusters."
    assert words(columns={"class_ratios": [1, 1, 2]}) == f"At most {missed} in the new population."
    assert (
        words(alpha=0.0001)
        == "Every set includes all labels: 900 calibration rows are too few for this alpha."
    )
    assert words({0: 0.1, 1: 0.1, 2: 0.02}, condition_on="label") == (
        "At most 10 % of sets miss the truth for 0 and 1, at most 2 % for 2."
    )


# losses in words


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (
            "coverage",
            "Every miss costs 1, near or far and in every class: "
            "the average loss is the share of sets that miss the truth.",
        ),
        (
            orisk.WeightedLoss([1, 2, 3]),
            "The cost of a miss depends only on the true class: 1/3 for low, 2/3 for mid, 1 for high.",
        ),
        (
            orisk.WeightedLoss([1, 2, 3], normalize=False),
            "The cost of a miss depends only on the true class: 1 for low, 2 for mid, 3 for high.",
        ),
        (
            "divergence",
            "A miss costs the distance in labels from the truth to the set, "
            "as a share of the largest such cost.",
        ),
        (
            orisk.DivergenceLoss(2, under=3, over=0.5, normalize=False),
            "A miss costs the squared distance in labels from the truth to the set, times 3 where the set "
            "lies below the truth, times 0.5 where the set lies above the truth; the largest cost is 12.",
        ),
        (
            YEARS,
            "A miss costs the distance from the truth to the set on the scale 18 for low, 30 for mid, "
            "65 for high; the largest cost is 47.",
        ),
        (
            orisk.DivergenceLoss(0.5),
            "A miss costs the distance in labels from the truth to the set, to the power 0.5, "
            "as a share of the largest such cost.",
        ),
        (
            orisk.CostTableLoss([[0, 1, 2], [5, 0, 1], [50, 20, 0]], normalize=False),
            "A miss costs the entry of the cost table for the true class and the nearest label of the set; "
            "the largest cost is 50.",
        ),
        (
            orisk.CostTableLoss([[0, 1, 2], [5, 0, 1], [50, 20, 0]]),
            "A miss costs the entry of the cost table for the true class and the nearest label of the set, "
            "as a share of the largest entry.",
        ),
    ],
)
def test_losses_in_words(loss, words):
    assert as_loss(loss).in_words(["low", "mid", "high"]) == words


def test_many_weights_are_not_all_listed():
    words = orisk.WeightedLoss(range(1, 41)).in_words([str(k) for k in range(40)])
    assert "0.15 for 5, ..., 0.875 for 34" in words


# files


def test_writes_page_and_data(draw, tmp_path):
    setting = Setting(draw, "names")
    write_report(setting.controller, setting.proba, setting.y, tmp_path / "r.html", cases=setting.cases)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.json"]
    found = setting.summary()
    written = json.loads((tmp_path / "r.json").read_text())
    assert written == found | {"date": written["date"]}
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == render(written)
    assert abs(datetime.now().astimezone().date() - date.fromisoformat(written["date"])) <= timedelta(days=1)


def test_writes_nothing_if_anything_fails(draw, tmp_path, monkeypatch):
    setting = Setting(draw, "coverage")
    with pytest.raises(ValueError, match=r"r\.json is the page, so its name must end in \.html"):
        write_report(setting.controller, setting.proba, setting.y, tmp_path / "r.json")
    with pytest.raises(FileNotFoundError):
        write_report(setting.controller, setting.proba, setting.y, tmp_path / "no" / "r.html")
    (tmp_path / "r.json").mkdir()  # can't be replaced by a file
    with pytest.raises(OSError, match=r"r\.json"):
        write_report(setting.controller, setting.proba, setting.y, tmp_path / "r.html")
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_what_the_report_has_is_found_by_name():
    code = "import ordinalrisk.report.render; from ordinalrisk import report; print(callable(report.render))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    from ordinalrisk import report

    assert all(hasattr(report, name) for name in report.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = report.nothing


def test_values_of_few_rows_are_not_shown_without_single_rows(draw):
    """The name of a customer with one row is then neither in the summary nor on the page."""
    proba, y = draw(200)[:2]
    controller = orisk.RiskController(alpha=0.2).calibrate(proba[:100], y[:100])
    names = ["usual"] * 92 + ["often"] * 5 + ["seldom"] * 2 + ["Ann Smith"]
    shown = {
        rows: summarise(controller, proba[100:], y[100:], cases={"name": names}, rows=rows)
        for rows in (True, False)
    }
    values = {rows: {each["value"] for each in found["slices"]["worst"]} for rows, found in shown.items()}
    assert values == {True: {*names}, False: {"usual", "often"}}
    assert shown[False]["slices"]["looked_at"] == 4
    page = render(shown[False])
    assert "Ann Smith" not in page
    assert "Values with fewer than 5 rows are not shown." in page
    few = [f"Ann {i}" for i in range(25) for _ in range(4)]
    assert summarise(controller, proba[100:], y[100:], cases={"name": few}, rows=False)["slices"] is None
