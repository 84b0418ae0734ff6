"""Parts that were counted elsewhere and merged: the very report and evaluation of all rows at once."""

import copy
import json
import pickle
from functools import cache, cached_property, reduce
from itertools import pairwise

import numpy as np
import pytest
import sizes
from hypothesis import given, settings
from hypothesis import strategies as st
from unchecked import FEW

import ordinalrisk as orisk
from ordinalrisk.report import ReportSummary

pytestmark = [FEW, pytest.mark.filterwarnings("ignore:.*full scale")]

N = 90
KINDS = {
    "plain": ({"loss": "divergence", "alpha": 0.05}, ""),
    "delta": ({"delta": 0.1, "loss": "divergence"}, ""),
    "groups, some unseen": ({"alpha": 0.2}, "groups"),
    "clusters": ({"loss": "divergence", "alpha": 0.1}, "clusters"),
    "clusters by group": ({"alpha": 0.3}, "groups clusters"),
    "classes": ({"condition_on": "label", "alpha": 0.3}, ""),
    "alpha by class": ({"alpha": {0: 0.3, 1: 0.4, 2: 0.3}}, ""),
    "row weights": ({"loss": "divergence", "alpha": 0.1}, "sample_weight"),
    "class ratios": ({"alpha": 0.2}, "class_ratios"),
    "randomized": ({"randomize": True, "alpha": 0.2}, ""),
    "randomized by group": ({"randomize": True, "alpha": 0.2}, "groups"),
}
CUTS = {
    "one part": [],
    "none, one and some rows": [0, 0, 4, 20, 21, 21, 48, 77, N, N],
    "many of one row": range(1, 12),
}


@pytest.fixture(autouse=True)
def little_work(monkeypatch, few_stops):
    """Both sides have the same few rows to compare, and chunks."""
    sizes.compare_few_rows(monkeypatch, 25)
    sizes.count_few_rows_at_once(monkeypatch, 16)


def sent(part):
    """As another process gets it."""
    return pickle.loads(pickle.dumps(part))


def as_tree(parts):
    """Neighbours first, then their results."""
    while len(parts) > 1:
        pairs = [sent(left).merge(right) for left, right in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def one_by_one(parts):
    return reduce(lambda left, right: left.merge(right), parts)


class Kind:
    """A calibration of some kind, and test rows for it."""

    def __init__(self, draw, name):
        parameters, used = KINDS[name]
        self.used = used.split()
        rng = np.random.default_rng(7)
        proba, y = draw(200, 3, seed=1)
        self.proba, self.y = draw(N, 3, seed=2)
        if "randomize" in parameters:  # so that levels tie, and coins matter
            proba, self.proba = (rng.multinomial(8, each) / 8 for each in (proba, self.proba))
        self.controller = orisk.RiskController(**parameters)
        self.controller.calibrate(proba, y, **self._extras(rng, 200))
        self.extras = self._extras(rng, N)
        self.extras.pop("class_ratios", None)
        self.options = {"unseen_groups": "full"}
        if "groups" in self.extras:
            self.extras["groups"][[3, 40, 88]] = "elsewhere"
        if self.controller.randomize:
            self.options["random_state"] = 3
        self.cases = {"id": np.array([f"A{i}" for i in range(N)])}

    def _extras(self, rng, n):
        made = {
            "groups": np.array(["north", "south", ("east", 1)], object)[rng.integers(0, 3, n)],
            "clusters": np.array([f"P{i}" for i in rng.integers(0, n // 5, n)], object),
            "sample_weight": rng.gamma(2, 1, n),
            "class_ratios": [1, "0.5", 2],
        }
        return {name: values for name, values in made.items() if name in self.used}

    def summary(self, first_row=0, last_row=0):
        """That of some rows."""
        found = ReportSummary(self.controller, **self.options, first_row=first_row)
        if last_row > first_row:
            rows = slice(first_row, last_row)
            cases = {name: values[rows] for name, values in self.cases.items()}
            extras = {name: values[rows] for name, values in self.extras.items()}
            found.add(self.proba[rows], self.y[rows], cases, **extras)
        return found

    @cached_property
    def text(self):
        return as_text(self.summary(0, N).finish())

    @cached_property
    def digest(self):
        return self.summary(0, N).finish()["test"]["data_blake3"]


def as_text(found):
    return json.dumps(found, allow_nan=False)


@cache
def made(draw, name):
    return Kind(draw, name)


@pytest.fixture(params=KINDS)
def kind(draw, request):
    return made(draw, request.param)


def spans(cuts):
    return [*pairwise([0, *cuts, N])]


def assert_merges(kind, cuts):
    parts = [sent(kind.summary(first, last)) for first, last in spans(cuts)]
    in_turn = one_by_one([kind.summary(), *parts])
    digest = in_turn.finish()["test"]["data_blake3"]
    expected = kind.text.replace(kind.digest, digest)
    assert (digest == kind.digest) == (sum(part.n_rows > 0 for part in parts) == 1)
    assert as_text(in_turn.finish()) == expected
    assert as_text(kind.summary().merge(sent(as_tree(parts))).finish()) == expected
    assert (in_turn.first_row, in_turn.n_rows) == (0, N)


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_a_merged_report_is_that_of_all_rows(kind, cuts):
    assert_merges(kind, cuts)


@settings(max_examples=5)
@given(cuts=st.lists(st.integers(0, N), max_size=6).map(sorted))
@pytest.mark.parametrize("name", ["plain", "clusters by group", "randomized by group"])
def test_reports_merge_however_rows_are_cut(draw, name, cuts):
    assert_merges(made(draw, name), cuts)


@settings(max_examples=5)
@given(cuts=st.lists(st.integers(0, N), min_size=2, max_size=2).map(sorted))
@pytest.mark.parametrize("name", ["plain", "clusters by group", "row weights"])
def test_it_does_not_matter_which_are_merged_first(draw, name, cuts):
    kind = made(draw, name)
    a, b, c = (kind.summary(first, last) for first, last in spans(cuts))
    expected = as_text(a.merge(b).merge(c).finish())
    for merged in (sent(c).merge(sent(b).merge(a)), b.merge(sent(c).merge(sent(a)))):
        assert as_text(kind.summary().merge(merged).finish()) == expected


# --- what merging leaves alone


@pytest.mark.parametrize("name", ["plain", "clusters by group", "row weights"])
def test_what_is_merged_is_left_as_it_is(draw, name):
    kind = made(draw, name)
    left, right, last = kind.summary(0, 30), kind.summary(30, 60), kind.summary(60, N)
    before = as_text(left.finish()), as_text(right.finish())
    left.merge(right).merge(last)
    assert (as_text(left.finish()), as_text(right.finish())) == before


def test_rows_can_follow_a_merge(kind):
    """They are a part of their own."""
    merged = kind.summary(0, 30).merge(sent(kind.summary(30, 50)))
    for first, last in [(50, 51), (51, N)]:
        rows = slice(first, last)
        extras = {name: values[rows] for name, values in kind.extras.items()}
        merged.add(kind.proba[rows], kind.y[rows], {"id": kind.cases["id"][rows]}, **extras)
    in_parts = one_by_one([kind.summary(0, 30), kind.summary(30, 50), kind.summary(50, N)])
    assert as_text(merged.finish()) == as_text(in_parts.finish())


def test_a_part_without_rows_before_it_keeps_its_numbers(draw):
    kind = made(draw, "plain")
    found = kind.summary(40, N).finish()
    assert {case["values"][0] for case in found["cases"]["rows"]} == {
        f"A{case['row'] - 1}" for case in found["cases"]["rows"]
    }
    assert min(case["row"] for case in found["cases"]["rows"]) > 40


def test_merged_calibration_rows_are_recognised(draw):
    """By the fingerprint of the same parts, or of one alone."""
    proba, y = draw(60, 3)
    controller = orisk.RiskController(alpha=0.3).calibrate(proba, y)
    whole = ReportSummary(controller)
    whole.add(proba, y)
    merged = ReportSummary(controller).merge(sent(whole)).merge(ReportSummary(controller, first_row=60))
    assert {stop["verdict"] for stop in merged.finish()["stops"]} == {"nothing"}
    halves = [ReportSummary(controller, first_row=first) for first in (0, 20)]
    halves[0].add(proba[:20], y[:20])
    halves[1].add(proba[20:], y[20:])
    merged = halves[0].merge(halves[1])
    controller.data_blake3_ = merged.finish()["test"]["data_blake3"]
    found = merged.finish()
    assert {stop["verdict"] for stop in found["stops"]} == {"nothing"}


def test_parts_of_a_loaded_calibration_merge_with_those_of_the_original(draw, tmp_path):
    kind = made(draw, "clusters")
    kind.controller.save(tmp_path / "calibration.json")
    loaded = copy.copy(kind)
    loaded.controller = orisk.RiskController.load(tmp_path / "calibration.json")
    merged = kind.summary(0, 30).merge(sent(loaded.summary(30, N)))
    expected = kind.summary(0, 30).merge(kind.summary(30, N))
    assert as_text(merged.finish()) == as_text(expected.finish())


# --- what is refused


def test_rows_that_are_in_both_parts_are_refused(draw):
    kind = made(draw, "plain")
    left = kind.summary(0, 30)
    before = as_text(left.finish())
    for other in [kind.summary(29, N), kind.summary(0, 30), kind.summary(0, 1), left]:
        with pytest.raises(ValueError, match=r"Row \d+ is in both parts; give each part first_row="):
            left.merge(sent(other))
    assert as_text(left.finish()) == before
    assert (left.merge(kind.summary(N, N)).n_rows, left.merge(kind.summary(31, N)).n_rows) == (30, N - 1)


@pytest.mark.parametrize("first_row", [-1, 1.0, True, "0", None], ids=repr)
def test_no_other_first_rows(draw, first_row):
    with pytest.raises(ValueError, match="first_row must be the number of earlier rows, a whole number"):
        ReportSummary(made(draw, "plain").controller, first_row=first_row)
    assert ReportSummary(made(draw, "plain").controller, first_row=np.int64(3)).first_row == 3


def test_parts_of_another_calibration_are_refused(draw):
    proba, y = draw(80, 3)
    groups, clusters = np.array(["a", "b"])[np.arange(80) % 2], np.arange(80) // 2

    def calibrated(alpha=0.3, proba=proba, y=y, extras=None, **options):
        return orisk.RiskController(alpha=alpha, **options).calibrate(proba, y, **extras or {})

    plain, grouped = calibrated(), calibrated(extras={"groups": groups})
    randomized = calibrated(randomize=True)
    weighted = calibrated(extras={"sample_weight": np.ones(80)})
    of_calibrations = [
        (plain, calibrated(proba=draw(80, 3, seed=1)[0])),
        (plain, calibrated(loss="divergence")),
        (plain, calibrated(classes=[0, 1, 2], y=y, extras={"clusters": clusters})),
        (plain, calibrated(classes=["a", "b", "c"], y=np.array(["a", "b", "c"])[y])),
        (plain, calibrated(extras={"class_ratios": [1, 1, 1]})),
        (plain, calibrated(condition_on="label")),
        (grouped, calibrated(extras={"groups": groups[::-1]})),
        (grouped, calibrated(extras={"groups": np.append(groups[1:], "b")})),
        (weighted, calibrated(extras={"sample_weight": 2 * np.ones(80)})),
        tuple(  # as many clusters in each group, but one row is in another
            calibrated(extras={"groups": each, "clusters": np.arange(80) // 4})
            for each in (groups, np.where(np.arange(80) == 2, "b", groups))
        ),
    ]
    of_controllers = [
        (plain, calibrated(alpha=0.29)),
        tuple(  # as many clusters of the same sizes, but of other rows
            calibrated(loss="divergence", alpha=0.1, extras={"clusters": each})
            for each in (clusters // (1 + clusters // 20), clusters[::-1] // (1 + clusters[::-1] // 20))
        ),
        (plain, calibrated(growth="paper")),
        (calibrated(delta=0.1), calibrated(delta=0.2)),
        (
            calibrated(delta=0.1, confidence_bound="hoeffding_bentkus"),
            calibrated(delta=0.1, confidence_bound="binomial"),
        ),
    ]
    sure = {"proba": np.eye(3)[y] * 0.8 + 0.2 / 3}  # single labels already: every threshold is infinite
    of_controllers += [
        (calibrated(**sure), calibrated(**sure, growth="paper")),
        (calibrated(**sure), calibrated(**sure, alpha=0.31)),
        (calibrated(**sure, delta="0.1"), calibrated(**sure, delta="0.1000001")),
    ]
    message = "for another calibration, random_state or unseen_groups"
    for one, other in of_calibrations + of_controllers:
        with pytest.raises(ValueError, match=message):
            ReportSummary(one).merge(sent(ReportSummary(other)))
    with pytest.raises(ValueError, match=message):
        ReportSummary(randomized, random_state=1).merge(ReportSummary(randomized, random_state=2))
    with pytest.raises(ValueError, match=message):
        ReportSummary(plain).merge(ReportSummary(randomized, random_state=2))
    with pytest.raises(ValueError, match=message):
        ReportSummary(grouped).merge(ReportSummary(grouped, unseen_groups="full"))


def test_parts_of_other_columns_or_number_types_are_refused(draw):
    controller = made(draw, "plain").controller
    proba, y = draw(20, 3)
    left, named, narrow = (ReportSummary(controller, first_row=first) for first in (0, 20, 20))
    left.add(proba, y, {"id": range(20)})
    named.add(proba, y, {"name": range(20)})
    narrow.add(proba.astype(np.float32), y, {"id": range(20)})
    before = as_text(left.finish())
    with pytest.raises(ValueError, match=r"The part to merge has cases with the columns \['name'\], those"):
        left.merge(named)
    message = "The part to merge has probabilities of type float32, but earlier rows have float64"
    with pytest.raises(ValueError, match=message):
        left.merge(narrow)
    assert as_text(left.finish()) == before
    with pytest.raises(ValueError, match=message):
        ReportSummary(controller).merge(left).merge(narrow)
    right = ReportSummary(controller, first_row=20)
    right.add(proba, y, {"id": range(20)})
    left = left.merge(right)
    with pytest.raises(ValueError, match="This batch has probabilities of type float32"):
        left.add(proba.astype(np.float32), y, {"id": range(20)})
    with pytest.raises(ValueError, match=r"This batch has cases with the columns \[\], those before"):
        left.add(proba, y)


def test_a_pickled_summary_has_to_be_merged(kind):
    part = sent(kind.summary(0, N))
    with pytest.raises(ValueError, match=r"left its controller behind; merge it into a new one"):
        part.finish()
    with pytest.raises(ValueError, match=r"left its controller behind; merge it into a new one"):
        part.add(kind.proba, kind.y, kind.cases, **kind.extras)
    assert as_text(kind.summary().merge(part).finish()) == kind.text


# --- what travels


def test_the_state_does_not_grow_with_the_rows(draw, monkeypatch):
    sizes.count_few_rows_at_once(monkeypatch, 65_536)
    sizes.look_up_few_rows(monkeypatch, 1_000)
    for name in ("plain", "classes", "row weights"):
        kind = made(draw, name)
        lengths = []
        for n in (5_000, 40_000):
            proba, y = draw(n, 3, seed=n)
            part = ReportSummary(kind.controller, unseen_groups="full")
            extras = {key: np.resize(values, n) for key, values in kind.extras.items()}
            for start in range(0, n, 5_000):
                rows = slice(start, start + 5_000)
                mine = {key: values[rows] for key, values in extras.items()}
                part.add(proba[rows], y[rows], **mine)
            lengths.append(len(pickle.dumps(part)))
        assert lengths[1] < 2.3 * lengths[0]  # larger counts take more bytes each
        assert lengths[1] < 400_000


def test_no_calibration_row_travels_with_rows(draw):
    sizes = []
    for n in (500, 20_000):
        controller = orisk.RiskController(alpha=0.2).calibrate(*draw(n, 3))
        part = ReportSummary(controller)
        part.add(*draw(20, 3))
        sizes.append(len(pickle.dumps(part)))
    assert sizes[1] < 1.5 * sizes[0]  # a table of costs may have been read in more forms by other tests
    assert 2 * sizes[1] < len(pickle.dumps(controller))


@pytest.mark.parametrize("name", ["plain", "classes"])
def test_counts_have_room_again_after_their_journey(draw, name):
    """Of 200 rows a byte is enough for each count, of 600 it is not."""
    controller = made(draw, name).controller
    proba, y = np.full((600, 3), 1 / 3), np.zeros(600, int)
    parts = [ReportSummary(controller, first_row=first) for first in (0, 200, 400)]
    for part in parts:
        part.add(proba[:200], y[:200])
    found = ReportSummary(controller).merge(as_tree([sent(part) for part in parts])).finish()
    assert found["test"]["class_rows"] == [600, 0, 0]
    assert {sum(stop["sizes"]) for stop in found["stops"]} == {600}
