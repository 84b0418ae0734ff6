"""Parts that were counted elsewhere and merged: the very report and evaluation of all rows at once."""

import copy
import json
import pickle
from functools import cache, cached_property, reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ordinalrisk as orisk
from ordinalrisk import metrics
from ordinalrisk.calibration.accumulate import RowExtras
from ordinalrisk.calibration.fingerprint import fingerprint, of_parts
from ordinalrisk.evaluation.evaluation import StratumLosses, stratum_risks, verdict_on
from ordinalrisk.evaluation.origin import Origin
from ordinalrisk.evaluation.packing import packed
from ordinalrisk.evaluation.realised import ClusterLosses, WeightedLosses
from ordinalrisk.inputs.random_rows import RandomRows, generator_at
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.report import ReportSummary, counting, summary
from ordinalrisk.report.striking import TopRows

pytestmark = pytest.mark.filterwarnings("ignore:.*(needs at least|too few|full scale):UserWarning")

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
    "class weights": ({"alpha": 0.2}, "class_weight"),
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
    monkeypatch.setattr(summary, "_ROWS_COMPARED", 25)
    monkeypatch.setattr(counting, "_ROWS_AT_ONCE", 16)


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
        self.extras.pop("class_weight", None)
        self.options = {"unseen_groups": "full"}
        if "groups" in self.extras:
            self.extras["groups"][[3, 40, 88]] = "elsewhere"
        if self.controller.randomize:
            self.options["seed"] = 3
        self.cases = {"id": np.array([f"A{i}" for i in range(N)])}

    def _extras(self, rng, n):
        made = {
            "groups": np.array(["north", "south", ("east", 1)], object)[rng.integers(0, 3, n)],
            "clusters": np.array([f"P{i}" for i in rng.integers(0, n // 5, n)], object),
            "sample_weight": rng.gamma(2, 1, n),
            "class_weight": [1, "0.5", 2],
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
    def sets(self):
        extras = {name: values for name, values in self.extras.items() if name != "clusters"}
        return self.controller.predict_set(self.proba, **extras, **self.options)

    def losses(self, first_row=0, last_row=0, known=None):
        found = StratumLosses(self.controller.calibration_)
        rows = np.arange(first_row, last_row)
        if "groups" in self.extras:  # an evaluation takes rows of calibrated groups only
            rows = rows[self.extras["groups"][rows] != "elsewhere"]
        if len(rows):
            extras = RowExtras(**{name: values[rows] for name, values in self.extras.items()})
            found.add(self.y[rows], self.sets[rows], extras)
        return found

    def digests(self, cuts):
        return [
            fingerprint(self.proba[first:last], self.y[first:last]) for first, last in cuts if first < last
        ]


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
    digest = of_parts(kind.digests(spans(cuts)))
    expected = kind.text.replace(fingerprint(kind.proba, kind.y), digest)
    in_turn = one_by_one([kind.summary(), *parts])
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


def outcome(kind, losses):
    """All that an evaluation says."""
    guarantee = kind.controller.guarantee()
    parts = range(len(guarantee.parts) or 1)
    return (
        losses.tally.n_rows,
        losses.realised_by_all(),
        [(losses.n_rows(part), losses.realised(part)) for part in parts],
        verdict_on(losses, guarantee),
        [(found.word, found.realised) for found in stratum_risks(losses, guarantee)],
    )


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_merged_losses_are_those_of_all_rows(kind, cuts):
    parts = [sent(kind.losses(first, last)) for first, last in spans(cuts)]
    expected = outcome(kind, kind.losses(0, N))
    assert outcome(kind, as_tree(parts)) == expected
    assert outcome(kind, one_by_one([kind.losses(), *parts])) == expected
    assert outcome(kind, one_by_one([kind.losses(), *parts[::-1]])) == expected


@settings(max_examples=5)
@given(cuts=st.lists(st.integers(0, N), min_size=2, max_size=2).map(sorted))
@pytest.mark.parametrize("name", ["plain", "clusters by group", "row weights"])
def test_it_does_not_matter_which_are_merged_first(draw, name, cuts):
    """Whole summaries, down to the state that travels."""
    kind = made(draw, name)
    a, b, c = (kind.summary(first, last) for first, last in spans(cuts))
    left, right = sent(a).merge(b).merge(c), sent(a).merge(sent(b).merge(c))
    assert as_text(kind.summary().merge(left).finish()) == as_text(kind.summary().merge(right).finish())
    a, b, c = (kind.losses(first, last) for first, last in spans(cuts))
    left, right = sent(a).merge(b).merge(c), sent(a).merge(sent(b).merge(c))
    assert outcome(kind, left) == outcome(kind, right)


def test_strata_of_merged_losses_are_their_own_rows(draw):
    """Each group and class against the metrics of its rows; a miss costs one thing in a class."""
    proba, y = draw(400, 3)
    groups, rows = np.array(["a", "b"])[np.arange(400) % 2], np.arange(400)
    loss = orisk.WeightedLoss([1, 2, 4])
    controller = orisk.RiskController(loss, alpha=0.2, condition_on="label").calibrate(
        proba, y, groups=groups
    )
    sets = controller.predict_set(proba, groups=groups)
    merged = StratumLosses(controller.calibration_)
    for mine in (rows[:130], rows[130:]):
        part = StratumLosses(controller.calibration_)
        part.add(y[mine], sets[mine], RowExtras(groups[mine]))
        merged.merge(sent(part))
    for number, stratum in enumerate(controller.guarantee().parts):
        mine = (groups == stratum.group) & (y == stratum.label)
        expected = metrics.class_risk(y[mine], sets[mine], loss, confidence=0.95)
        assert merged.n_rows(number) == mine.sum()
        assert [*merged.realised(number).risk] == [part[stratum.label] for part in expected]


# --- what merging leaves alone


@pytest.mark.parametrize("name", ["plain", "clusters by group", "row weights"])
def test_what_is_merged_is_left_as_it_is(draw, name):
    kind = made(draw, name)
    left, right, last = kind.summary(0, 30), kind.summary(30, 60), kind.summary(60, N)
    before = as_text(right.finish())
    left.merge(right).merge(last)
    assert as_text(right.finish()) == before
    mine, theirs = kind.losses(0, 30), kind.losses(30, 60)
    before = outcome(kind, theirs)
    mine.merge(theirs).merge(kind.losses(60, N))
    assert outcome(kind, theirs) == before


def test_rows_can_follow_a_merge(kind):
    """They are a part of their own."""
    merged = kind.summary(0, 30).merge(sent(kind.summary(30, 50)))
    for first, last in [(50, 51), (51, N)]:
        rows = slice(first, last)
        extras = {name: values[rows] for name, values in kind.extras.items()}
        merged.add(kind.proba[rows], kind.y[rows], {"id": kind.cases["id"][rows]}, **extras)
    digest = of_parts(kind.digests([(0, 30), (30, 50), (50, N)]))
    assert as_text(merged.finish()) == kind.text.replace(fingerprint(kind.proba, kind.y), digest)


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
    parts = [fingerprint(proba[:20], y[:20]), fingerprint(proba[20:], y[20:])]
    controller.data_blake3_ = of_parts(parts)
    halves = [ReportSummary(controller, first_row=first) for first in (0, 20)]
    halves[0].add(proba[:20], y[:20])
    halves[1].add(proba[20:], y[20:])
    found = halves[0].merge(halves[1]).finish()
    assert found["test"]["data_blake3"] == of_parts(parts)
    assert {stop["verdict"] for stop in found["stops"]} == {"nothing"}


def test_parts_of_a_loaded_calibration_merge_with_those_of_the_original(draw, tmp_path):
    kind = made(draw, "clusters")
    kind.controller.save(tmp_path / "calibration.json")
    loaded = copy.copy(kind)
    loaded.controller = orisk.RiskController.load(tmp_path / "calibration.json")
    merged = kind.summary(0, 30).merge(sent(loaded.summary(30, N)))
    digest = of_parts(kind.digests([(0, 30), (30, N)]))
    assert as_text(merged.finish()) == kind.text.replace(fingerprint(kind.proba, kind.y), digest)
    losses = kind.losses(0, 30).merge(loaded.losses(30, N))
    assert outcome(kind, losses) == outcome(kind, kind.losses(0, N))


# --- what is refused


def test_parts_that_do_not_follow_are_refused(draw):
    kind = made(draw, "plain")
    left = kind.summary(0, 30)
    before = as_text(left.finish())
    for other in [
        kind.summary(31, N),
        kind.summary(29, N),
        kind.summary(0, 30),
        kind.summary(N, N),
        kind.summary(0, 0),
        left,
    ]:
        message = f"has first_row={other.first_row}, but row 30 comes next; merge parts in the order"
        with pytest.raises(ValueError, match=message):
            left.merge(sent(other))
    assert as_text(left.finish()) == before


@pytest.mark.parametrize("first_row", [-1, 1.0, True, "0", None], ids=repr)
def test_no_other_first_rows(draw, first_row):
    with pytest.raises(ValueError, match="first_row must be a whole number, 0 or larger"):
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
        (plain, calibrated(extras={"class_weight": [1, 1, 1]})),
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
        (calibrated(delta=0.1, bound="hoeffding_bentkus"), calibrated(delta=0.1, bound="binomial")),
    ]
    sure = {"proba": np.eye(3)[y] * 0.8 + 0.2 / 3}  # single labels already: every threshold is infinite
    of_controllers += [
        (calibrated(**sure), calibrated(**sure, growth="paper")),
        (calibrated(**sure), calibrated(**sure, alpha=0.31)),
        (calibrated(**sure, delta="0.1"), calibrated(**sure, delta="0.1000001")),
    ]
    message = "for another calibration, seed or unseen_groups"
    for one, other in of_calibrations + of_controllers:
        with pytest.raises(ValueError, match=message):
            ReportSummary(one).merge(sent(ReportSummary(other)))
    with pytest.raises(ValueError, match=message):
        ReportSummary(randomized, seed=1).merge(ReportSummary(randomized, seed=2))
    with pytest.raises(ValueError, match=message):
        ReportSummary(plain).merge(ReportSummary(randomized, seed=2))
    with pytest.raises(ValueError, match=message):
        ReportSummary(grouped).merge(ReportSummary(grouped, unseen_groups="full"))
    for one, other in of_calibrations:
        with pytest.raises(ValueError, match="losses to merge are those of another calibration"):
            StratumLosses(one.calibration_).merge(StratumLosses(other.calibration_))
    for one, other in of_controllers:
        assert Origin.of(one.calibration_) == Origin.of(other.calibration_)


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
    message = "The part to merge has probabilities of type float32, those before of float64"
    with pytest.raises(ValueError, match=message):
        left.merge(narrow)
    assert as_text(left.finish()) == before
    with pytest.raises(ValueError, match=message):
        ReportSummary(controller).merge(left).merge(narrow)
    right = ReportSummary(controller, first_row=20)
    right.add(proba, y, {"id": range(20)})
    left.merge(right)
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
    monkeypatch.setattr(counting, "_ROWS_AT_ONCE", 65_536)
    for name in ("plain", "classes", "row weights"):
        kind = made(draw, name)
        sizes = []
        for n in (5_000, 40_000):
            proba, y = draw(n, 3, seed=n)
            part = ReportSummary(kind.controller, unseen_groups="full")
            extras = {key: np.resize(values, n) for key, values in kind.extras.items()}
            for start in range(0, n, 5_000):
                rows = slice(start, start + 5_000)
                mine = {key: values[rows] for key, values in extras.items()}
                part.add(proba[rows], y[rows], **mine)
            sizes.append(len(pickle.dumps(part)))
        assert sizes[1] < 2.3 * sizes[0]  # larger counts take more bytes each
        assert sizes[1] < 400_000


def test_no_calibration_row_travels(draw):
    few, many = (orisk.RiskController(alpha=0.2).calibrate(*draw(n, 3)) for n in (500, 20_000))
    for of in (ReportSummary, lambda controller: StratumLosses(controller.calibration_)):
        assert len(pickle.dumps(of(many))) < 1.5 * len(pickle.dumps(of(few))) < 10_000
    assert len(pickle.dumps(many)) > 50_000


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


@pytest.mark.parametrize(("largest", "kind"), [(0, "u1"), (255, "u1"), (256, "u2"), (2**16, "u4")])
def test_counts_travel_in_few_bytes(largest, kind):
    assert packed(np.array([0, largest])).dtype == kind
    assert packed(np.zeros((3, 0), np.int64)).shape == (3, 0)
    exact = np.array([2**70], object)
    assert packed(exact) is exact


# --- the parts of a summary


@given(
    keys=st.lists(st.integers(0, 40), max_size=3).map(sorted),
    most=st.sampled_from([1, 5, 12, 60]),
    seed=st.integers(0, 5),
)
def test_random_rows_merge(keys, most, seed):
    proba, labels = np.arange(80.0).reshape(40, 2), np.arange(40)
    whole = RandomRows(most, seed)
    whole.add(proba, labels)
    parts = []
    for first, last in pairwise([0, *keys, 40]):
        parts.append(RandomRows(most, seed, first_row=first))
        parts[-1].add(proba[first:last], labels[first:last])
    merged = one_by_one([RandomRows(most, seed), *map(sent, parts)])
    assert merged.drawn()[1].tolist() == as_tree(parts).drawn()[1].tolist() == whole.drawn()[1].tolist()
    assert merged.drawn()[0].tolist() == whole.drawn()[0].tolist()
    assert (merged.first_row, merged.next_row) == (0, 40)


def test_a_sample_goes_on_after_a_merge():
    whole, left, right = RandomRows(4), RandomRows(4), RandomRows(4, first_row=20)
    proba, labels = np.zeros((60, 2)), np.arange(60)
    whole.add(proba, labels)
    left.add(proba[:20], labels[:20])
    right.add(proba[20:40], labels[20:40])
    left.merge(right).add(proba[40:], labels[40:])
    assert left.drawn()[1].tolist() == whole.drawn()[1].tolist()
    assert len(right.drawn()[1]) == 4


def test_samples_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="row 0 comes next"):
        RandomRows(3).merge(RandomRows(3, first_row=1))
    for other in (RandomRows(4), RandomRows(3, seed=1)):
        with pytest.raises(ValueError, match="A sample of 3 rows with seed 0 can't be merged with one of"):
            RandomRows(3).merge(other)


def test_a_sample_travels_without_the_rows_that_are_to_be_dropped():
    rows = RandomRows(10)
    rows.add(np.zeros((15, 100)), np.zeros(15, int))
    assert len(pickle.dumps(rows)) < 10 * 102 * 8 + 1_000
    assert len(sent(rows).drawn()[1]) == 10
    sent(RandomRows(10)).merge(rows)


@pytest.mark.parametrize("row", [0, 1, 1000, 10**12])
def test_a_generator_anywhere_in_its_stream(row):
    straight = np.random.default_rng(5)
    straight.bit_generator.advance(row)
    assert generator_at(row, 5).random(3).tolist() == straight.random(3).tolist()


NAMES = st.lists(st.sampled_from(["a", "b", 1, 1.0, "1", ("a", 1), 2.5]), max_size=6)


@given(parts=st.lists(NAMES, min_size=1, max_size=4))
def test_names_keep_the_numbers_that_they_would_have_had(parts):
    whole, merged = RowNames("clusters"), RowNames("clusters")
    for part in parts:
        there = RowNames("clusters")
        numbers = there.numbered(part, len(part))
        translated = merged.merge(sent(there))[numbers] if part else numbers
        assert translated.tolist() == whole.numbered(part, len(part)).tolist()
    assert merged.known == whole.known
    assert [*map(type, merged.known)] == [*map(type, whole.known)]


@pytest.mark.parametrize("unit", [1, 2**60, 2**70], ids=["small", "large sums", "large costs"])
def test_clusters_in_several_parts_and_strata_add_up(unit):
    """By brute force: the mean loss of each cluster's rows in a stratum."""
    rng = np.random.default_rng(0)
    loss = orisk.CostTableLoss([[0, 1, 2 * unit], [1, 0, 1], [2 * unit, 1, 0]], normalize=False)
    costs = CostTable.of(loss, 3)
    patients = np.array([f"P{i}" for i in rng.integers(0, 12, 100)], object)
    strata, units = rng.integers(0, 2, 100), costs.units[0][rng.integers(0, 3, (2, 100))]
    names, merged = RowNames("clusters"), ClusterLosses(2, 2, costs)
    for rows in (slice(0, 35), slice(35, 35), slice(35, 70), slice(70, 100)):
        own, part = RowNames("clusters"), ClusterLosses(2, 2, costs)
        numbers = own.numbered(patients[rows], len(patients[rows]))
        places = part.numbered(numbers, strata[rows])
        for stop in range(2):
            part.add(stop, places, units[stop][rows])
        merged.merge(sent(part), names.merge(own))
    for stop in range(2):
        for stratum in range(2):
            mine = strata == stratum
            means = [
                sum(units[stop][mine & (patients == name)].tolist()) / sum(mine & (patients == name))
                for name in np.unique(patients[mine].astype(str))
            ]
            found = merged.realised(stop, stratum)
            assert found.n_units == len(means)
            assert found.risk.value == pytest.approx(np.mean(means), rel=1e-12)


def test_weights_add_up_exactly():
    rng = np.random.default_rng(0)
    costs = CostTable.of(orisk.DivergenceLoss(), 3)
    weights = 10 ** rng.uniform(-200, 100, 40)
    strata, labels, nearest = rng.integers(0, 2, 40), rng.integers(0, 3, 40), rng.integers(0, 3, 40)
    whole, merged = WeightedLosses(2, 2, costs), WeightedLosses(2, 2, costs)
    whole.add(1, strata, labels, nearest, WeightedLosses.exactly(weights))
    for row in range(40):
        part, mine = WeightedLosses(2, 2, costs), slice(row, row + 1)
        part.add(1, strata[mine], labels[mine], nearest[mine], WeightedLosses.exactly(weights[mine]))
        merged.merge(sent(part))
    assert merged._sums.keys() == whole._sums.keys()
    assert all((merged._sums[exponent] == sums).all() for exponent, sums in whole._sums.items())
    assert merged.realised(1, [0]) == whole.realised(1, [0])
    assert merged.realised(0, [0]) is None


@given(
    values=st.lists(st.integers(1, 4), max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=3).map(sorted),
    most=st.integers(1, 6),
)
def test_top_rows_merge(values, cuts, most):
    whole, merged = TopRows(most), TopRows(most)
    whole.offer(np.array(values, int), np.arange(len(values)))
    for first, last in pairwise([0, *cuts, 30]):
        part, mine = TopRows(most), np.array(values[first:last], int)
        part.offer(mine, np.arange(first, first + len(mine)))
        merged.merge(sent(part))
    assert merged.rows == whole.rows
