"""Every summary gives the same result, however rows are cut and in whichever order parts are merged."""

import ast
import json
import pickle
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import sizes
from fingerprints import fingerprint, of_parts
from hypothesis import given, settings
from hypothesis import strategies as st
from unchecked import FEW

import ordinalrisk as orisk
from ordinalrisk.calibration.fingerprint import DataFingerprint
from ordinalrisk.calibration.loss_steps import LossSteps
from ordinalrisk.calibration.score_counts import ScoreCounts
from ordinalrisk.curves.part_steps import (
    Answer,
    Answers,
    Draw,
    FirstLook,
    LevelSums,
    PartQuestion,
    Question,
    Sample,
    Sizes,
)
from ordinalrisk.evaluation.counts import SetCounts, Tally
from ordinalrisk.evaluation.joint_outcomes import JointOutcomes
from ordinalrisk.evaluation.outcomes import Outcomes
from ordinalrisk.evaluation.realised import ClusterLosses, StratumCounts, WeightedLosses
from ordinalrisk.evaluation.striking import StrikingRow, StrikingRows, TopRows
from ordinalrisk.inputs.batch import Batch, Summary, SummaryGroup
from ordinalrisk.inputs.random_rows import RandomRows, generator_at
from ordinalrisk.inputs.scattered_rows import ScatteredRows
from ordinalrisk.jobs.learning_job import AllRows
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.prediction.predictor import Predictor
from ordinalrisk.report import ReportSummary
from ordinalrisk.report import slices as report_slices
from ordinalrisk.report.reliability import Reliability
from ordinalrisk.report.rows import ReportRows
from ordinalrisk.report.slices import Slices
from ordinalrisk.sequential.watched_files import ClusteredRows, FileFingerprints, Repeated
from ordinalrisk.triage.scored_rows import ScoredRows

pytestmark = FEW

N, K = 40, 3
RNG = np.random.default_rng(3)
PROBA = RNG.multinomial(8, RNG.dirichlet([2, 1, 1], N)) / 8
LABELS = RNG.integers(0, K, N)
COLUMNS = {
    "groups": np.array(["north", "south"], object)[RNG.integers(0, 2, N)],
    "clusters": RNG.integers(0, 9, N),
    "sample_weight": RNG.gamma(2, 1, N),
}
SITES = [*"ABCD"] * (N // 4)
WINGS = [f"W{row // 8}" for row in range(N)]  # a part has fewer than all
PROMISES = {
    "rows": ({}, []),
    "groups": ({}, ["groups"]),
    "classes": ({"condition_on": "label"}, []),
    "clusters by group": ({}, ["groups", "clusters"]),
    "weights by group": ({}, ["groups", "sample_weight"]),
    "coins": ({"randomize": True}, []),
}


@cache
def controller(promise):
    options, used = PROMISES[promise]
    extras = {name: COLUMNS[name] for name in used}
    return orisk.RiskController("divergence", 0.2, **options).calibrate(PROBA, LABELS, **extras)


def seed(promise):
    return {"random_state": 5} if controller(promise).randomize else {}


def tally_found(tally):
    return [values.tolist() for values in vars(tally).values()]


def outcomes(promise):
    spec, calibration = controller(promise).spec, controller(promise).calibration_
    stops = [Predictor.of(spec, calibration, alpha) for alpha in (0.1, 0.2, 0.4)]
    return Outcomes(stops, striking=True, **seed(promise))


def outcomes_found(promise, found):
    guarantees = [controller(promise).guarantee(alpha) for alpha in (0.1, 0.2, 0.4)]
    evaluations = found.finish(controller(promise).calibration_, guarantees)
    cases = [(row, case.values, case.ends.tolist()) for row, case in found.striking.cases.items()]
    counts = [
        (each.tally.nearest.tolist(), each.whole, each.strata, each.verdict, each.light)
        for each in evaluations
    ]
    return counts, cases, found.n_rows, found.n_uncertified, found.n_clusters


def slices(promise):
    return Slices(
        Predictor.of(controller(promise).spec, controller(promise).calibration_),
        "error",
        seed(promise).get("random_state"),
    )


def report(promise):
    seeded = {"random_state": 5} if controller(promise).randomize else {}
    return ReportSummary(controller(promise), **seeded)


def report_found(promise, found):
    summary = report(promise)
    summary.rows = found
    return json.dumps(summary.finish())


def steps_found(promise, found):
    calibration = found.finish()
    strata = [(part.group, part.label, part.curve, part.n_rows) for part in calibration.strata.parts]
    return strata, calibration.strata.groups, calibration.data_blake3, calibration.unit


class Merged(NamedTuple):
    """How a kind of summary is filled, and all that is found in a full one."""

    empty: Callable  # what batches are added to
    found: Callable
    made: Callable = lambda filled: filled  # what is merged, if that is only a part of what was filled
    promises: Sequence = tuple(PROMISES)
    without_rows: bool = True  # whether there may be no rows


def all_rows_found(promise, found):
    rows = found.all()
    names = [None if each is None else each.tolist() for each in (rows.groups, rows.clusters)]
    return rows.proba.tolist(), rows.labels.tolist(), names


def scattered_found(promise, found):
    drawn = found.drawn()
    return drawn.proba.tolist(), drawn.labels.tolist(), drawn.groups, drawn.clusters, found.whole


def watched(proba, labels, known=()):
    found = FileFingerprints(known)
    found.add(Batch(proba, labels))
    return found


def clustered(promise):
    return ClusteredRows(Predictor.of(controller(promise).spec, controller(promise).calibration_).sets)


def clustered_found(promise, found):
    labels, sets, clusters = found.rows()
    ends = sets.lower_index.tolist(), sets.upper_index.tolist()
    return labels.tolist(), ends, clusters.tolist(), found.n_uncertified


def triaged_found(promise, found):
    parts, seed = found.ranked(0)
    ranked = {part.group: (part.scores.tolist(), part.losses.tolist()) for part in parts}
    return ranked, seed, found.data_blake3


@cache
def joint():
    asked = [orisk.RiskController(alpha=0.3), orisk.RiskController("divergence", 0.1, side="upper")]
    return orisk.JointController(asked).calibrate(PROBA, LABELS)


def joint_found(promise, found):
    parts = zip(joint().calibrated_parts, found.of_parts, strict=True)
    tallies = [
        outcomes.finish(part.calibration, [controller.guarantee()])[0].tally.nearest.tolist()
        for (part, outcomes), controller in zip(parts, joint().parts_.values(), strict=True)
    ]
    return tallies, [each.hexdigest() for each in found.fingerprints], found.mean_size


SUMMARIES = {
    LossSteps: Merged(lambda promise: LossSteps(controller(promise).spec, np.arange(K)), steps_found),
    DataFingerprint: Merged(lambda promise: DataFingerprint(), lambda promise, found: found.hexdigest()),
    RandomRows: Merged(
        lambda promise: RandomRows(7),
        lambda promise, found: [*map(np.ndarray.tolist, found.drawn())],
    ),
    ScatteredRows: Merged(lambda promise: ScatteredRows(7), scattered_found),
    AllRows: Merged(lambda promise: AllRows(scores=True), all_rows_found),
    ScoreCounts: Merged(lambda promise: ScoreCounts(), lambda promise, found: found.counts.tolist()),
    Outcomes: Merged(outcomes, outcomes_found),
    SummaryGroup: Merged(
        lambda promise: SummaryGroup(counted=outcomes(promise), sample=RandomRows(5)),
        lambda promise, found: (outcomes_found(promise, found.counted), found.sample.drawn()[1].tolist()),
    ),
    SetCounts: Merged(lambda promise: SetCounts(K), lambda promise, found: tally_found(found.tally)),
    Reliability: Merged(lambda promise: Reliability(), lambda promise, found: json.dumps(found.finish())),
    Slices: Merged(slices, lambda promise, found: json.dumps(found.finish())),
    ReportRows: Merged(lambda promise: report(promise).rows, report_found),
    FileFingerprints: Merged(
        lambda promise: FileFingerprints(watched(PROBA[:25], LABELS[:25]).files),
        lambda promise, found: (found.files, found.repeated),
    ),
    ClusteredRows: Merged(clustered, clustered_found, promises=["clusters by group"]),
    ScoredRows: Merged(
        lambda promise: orisk.TriageController("divergence", 0.2).empty_rows(np.arange(K)),
        triaged_found,
        promises=["rows", "groups"],
        without_rows=False,
    ),
    JointOutcomes: Merged(
        lambda promise: JointOutcomes(joint().calibrated_parts),
        joint_found,
        promises=["rows"],
        without_rows=False,
    ),
}


# what summaries keep of rows that were predicted

STRATA = RNG.integers(0, 2, N)
SETS = orisk.RiskController("divergence", 0.1).calibrate(PROBA, LABELS).predict_set(PROBA)
ENDS = SETS.lower_index, SETS.upper_index
NEAREST = np.clip(LABELS, *ENDS)
COSTS = CostTable.of(orisk.DivergenceLoss(), K)


class OfPredictedRows:
    """Takes batches of rows, which have the same sets whatever the guarantee is."""

    def __init__(self, part, count):
        self.part, self.count = part, count

    def add(self, batch):
        rows = np.arange(batch.first_row, batch.first_row + len(batch))
        self.count(self.part, rows)


def of_predicted_rows(empty, count, found, made=lambda part: part):
    return Merged(
        lambda promise: OfPredictedRows(empty(), count),
        lambda promise, part: found(part),
        made=lambda filled: made(filled.part),
        promises=["rows"],
    )


def count_clusters(part, rows):
    places = part.units(part.numbered(COLUMNS["clusters"][rows], len(rows)), STRATA[rows])
    part.add(0, places, COSTS.units[LABELS[rows], NEAREST[rows]])


def count_weights(part, rows):
    weights = WeightedLosses.exactly(COLUMNS["sample_weight"][rows])
    part.add(0, STRATA[rows], LABELS[rows], NEAREST[rows], weights)


def tally_of(rows):
    sets = orisk.IntervalSet(*(ends[rows] for ends in ENDS), classes=range(K))
    return Tally.of(LABELS[rows], sets)


def keep_striking(part, rows):
    part.add(0, LABELS[rows], tuple(ends[rows] for ends in ENDS), rows)
    new = part.new_rows.tolist()
    part.keep({row: StrikingRow([f"A{row}"], int(LABELS[row]), ENDS[0][row]) for row in new})


def strata_found(part):
    return [part.realised(0, stratum) for stratum in (None, 0, 1)]


PREDICTED = {
    StratumCounts: of_predicted_rows(
        lambda: StratumCounts(1, 2, COSTS),
        lambda part, rows: part.add(0, STRATA[rows], LABELS[rows], NEAREST[rows], SETS.size[rows]),
        lambda part: (
            [part.realised(0, stratum, label) for stratum in (0, 1) for label in (None, *range(K))],
            part.sizes.tolist(),
        ),
    ),
    ClusterLosses: of_predicted_rows(lambda: ClusterLosses(1, 2, COSTS), count_clusters, strata_found),
    WeightedLosses: of_predicted_rows(lambda: WeightedLosses(1, 2, COSTS), count_weights, strata_found),
    Tally: of_predicted_rows(
        list,
        list.extend,
        tally_found,
        lambda rows: tally_of(np.array(rows, int)),
    ),
    TopRows: of_predicted_rows(
        lambda: TopRows(5),
        lambda part, rows: part.add(SETS.size[rows], rows),
        lambda part: part.rows,
    ),
    StrikingRows: of_predicted_rows(
        lambda: StrikingRows(1, COSTS),
        keep_striking,
        lambda part: (part.widest[0].rows, part.missed[0].rows, part.cases),
    ),
}


# what parts answer about their steps

EDGES = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 1.0])
QUESTION = Question(EDGES, ((0.1, 0.3), (0.4, 0.6)))
EVERY_STEP = Draw(1.0, -np.inf, np.inf)
PARTED = ["rows", "groups", "classes", "coins"]
"""Guarantees that work without the row of each step."""


def of_steps(made, found, promises=PARTED, **more):
    return Merged(
        SUMMARIES[LossSteps].empty,
        lambda promise, part: found(part),
        made=lambda filled: made(filled.as_part()),
        promises=promises,
        **more,
    )


def sizes_found(found):
    """Groups come in the order of their first rows."""
    groups = [*dict.fromkeys(group for group, _ in found.rows_in_order)]
    return groups, found.rows, found.steps, found.units, found.class_rows.tolist(), found.checksum


def sample_found(found):
    return sorted(zip(*map(np.ndarray.tolist, found), strict=True))


def answer_found(found):
    return found.units_below, found.steps_below, sums_found(found.inside)


def sums_found(found):
    return [values.tolist() for values in found]


def of_all_rows(method, *queries):
    """Ask about the only stratum, for kinds that are parts of answers."""
    return lambda part: next(iter(getattr(part, method)(*queries).values()))


KEY, GROUPS = (None, None), (None, "north", "south")
ASKED = {
    Sizes: of_steps(lambda part: part.sizes(), sizes_found),
    FirstLook: of_steps(
        lambda part: part.first_look(1e9, 1e9),
        lambda found: (
            sizes_found(found.sizes),
            {key: sample_found(each) for key, each in found.samples.items()},
        ),
    ),
    Sample: of_steps(
        of_all_rows("sample", {(KEY, 0): EVERY_STEP}), sample_found, ["rows", "coins"], without_rows=False
    ),
    Answers: of_steps(
        PartQuestion(
            "answers", {(group, label): QUESTION for group in GROUPS for label in (None, *range(K))}
        ),
        lambda found: ({key: answer_found(each) for key, each in found.by_key.items()}, found.checksum),
    ),
    Answer: of_steps(
        of_all_rows("answers", {KEY: QUESTION}), answer_found, ["rows", "coins"], without_rows=False
    ),
    LevelSums: of_steps(
        lambda part: of_all_rows("answers", {KEY: QUESTION})(part).inside,
        sums_found,
        ["rows", "coins"],
        without_rows=False,
    ),
}
EVERY_KIND = {**SUMMARIES, **PREDICTED, **ASKED}
"""Every class that can be merged."""


def test_no_kind_is_forgotten():
    """All classes of the package with a ``merge``, but the report itself, which test_merging.py is about."""
    package = Path(orisk.__file__).parent
    found = {
        each.name
        for file in package.rglob("*.py")
        for each in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(each, ast.ClassDef) and "merge" in {getattr(part, "name", None) for part in each.body}
    }
    assert found - {"Summary", "ReportSummary"} == {kind.__name__ for kind in EVERY_KIND}


def batches(promise, parts, cuts):
    """The rows of each part, cut into batches."""
    used = PROMISES[promise][1]
    for number, (first, last) in enumerate(pairwise([0, *parts, N])):
        inside = [first, *(cut for cut in cuts if first < cut < last), last]
        yield [
            Batch(
                PROBA[start:end],
                LABELS[start:end],
                sets=SETS[start:end],
                **{name: COLUMNS[name][start:end] for name in used},
                columns={"id": np.arange(start, end), "site": SITES[start:end], "wing": WINGS[start:end]},
                part=number,
                first_row=start,
            )
            for start, end in pairwise(inside)
        ]


@st.composite
def merge_orders(draw, n):
    """Which two to merge next, until one is left."""
    return [draw(st.permutations(range(left)))[:2] for left in range(n, 1, -1)]


def state(summary):
    return pickle.dumps(summary)


def pickled(summary):
    """As another process gets it."""
    return pickle.loads(pickle.dumps(summary))


CUTS = st.lists(st.integers(1, N - 1), max_size=4, unique=True).map(sorted)


@settings(max_examples=6)
@given(data=st.data(), parts=CUTS, cuts=CUTS)
@pytest.mark.parametrize(
    ("kind", "promise"),
    [(kind, promise) for kind, how in EVERY_KIND.items() for promise in how.promises],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_the_result_depends_on_the_rows_alone(kind, promise, few_stops_always, data, parts, cuts):
    how = EVERY_KIND[kind]
    whole = how.empty(promise)
    for batch in (batch for part in batches(promise, parts, []) for batch in part):
        whole.add(batch)
    expected = how.found(promise, how.made(whole))
    each = [how.empty(promise)] if how.without_rows else []
    for part in batches(promise, parts, cuts):
        each.append(sent(how.empty(promise)))
        for batch in part:
            each[-1].add(batch)
    each = [how.made(filled) for filled in each]
    assert all(isinstance(summary, kind) for summary in each)
    for left, right in data.draw(merge_orders(len(each))):
        sides = [each[left], pickled(each[right])]
        before = [*map(state, sides)]
        merged = sides[0].merge(sides[1])
        assert [*map(state, sides)] == before
        each = [summary for i, summary in enumerate(each) if i not in (left, right)] + [merged]
    assert how.found(promise, each[0]) == expected


def sent(empty):
    """An empty summary as a worker gets it; what only fills one here is not sent."""
    return pickled(empty) if isinstance(empty, Summary) else empty


@pytest.fixture(scope="module")
def few_stops_always():
    sizes.few_stops()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_slices, "MOST_VALUES", 4)  # more than sites, fewer than wings
        yield
    sizes.usual_stops()


def test_the_fingerprint_is_that_of_the_parts():
    first, second = (fingerprint(PROBA[rows], LABELS[rows]) for rows in (slice(9), slice(9, N)))
    found = [DataFingerprint(), DataFingerprint(at_most=N - 1)]
    for summary in found:
        for batch in (batch for part in batches("rows", [9], [3, 20]) for batch in part):
            summary.add(batch)
    assert [summary.hexdigest() for summary in found] == [of_parts([first, second]), ""]
    with pytest.raises(ValueError, match="Both have rows of part 0"):
        found[0].merge(found[0])
    with pytest.raises(ValueError, match="Part 0 is finished"):
        found[0].merge(DataFingerprint()).add(Batch(PROBA, LABELS))


def test_rows_in_any_order_have_one_fingerprint():
    rng = np.random.default_rng(6)
    proba, y = rng.dirichlet([3, 2, 1], 60), rng.integers(0, 3, 60)

    def prints(rows, known=(), labels=y):
        return watched(proba[rows], labels[rows], known)

    [file] = prints(np.arange(60)).files
    shuffled = rng.permutation(60)
    assert prints(shuffled, [file]).repeated == {0: Repeated(60, whole=True, in_order=False)}
    assert prints(np.arange(60), [file]).repeated == {0: Repeated(60, whole=True)}
    assert prints(np.arange(45), [file]).repeated == {0: Repeated(40, whole=False)}
    assert prints(np.arange(40), [file]).repeated == {0: Repeated(40, whole=True)}
    assert prints(np.arange(40, 60), [file]).repeated == {}
    assert prints(np.r_[shuffled[:59], 0 if shuffled[59] else 1], [file]).repeated == {}, "another row, twice"
    other = np.where(np.arange(60) == 7, (y + 1) % 3, y)
    assert prints(shuffled, [file], other).repeated == {}, "another label"
    alike = watched(np.full((60, 2), 0.5), None)
    assert (alike.files[0].in_any_order, alike.files[0].starts) == (None, ()), "chance makes these alike"


def test_a_file_is_read_by_one_summary_to_its_end():
    first = watched(PROBA, LABELS)
    with pytest.raises(ValueError, match="Both have rows of part 0"):
        first.merge(first)
    with pytest.raises(ValueError, match="Part 0 is finished"):
        first.merge(FileFingerprints([])).add(Batch(PROBA, LABELS))
    of_clusters = clustered("clusters by group")
    [[batch]] = batches("clusters by group", [], [])
    of_clusters.add(batch)
    with pytest.raises(ValueError, match="Both have row 0 of part 0; read it once"):
        of_clusters.merge(of_clusters)


# --- the parts of summaries


def test_samples_that_do_not_belong_together_are_refused():
    for other in (RandomRows(4), RandomRows(3, 1)):
        with pytest.raises(ValueError, match="A sample of 3 rows with seed 0 can't be merged with one of"):
            RandomRows(3).merge(other)


def test_random_rows_are_uniform_and_distinct():
    counts = np.zeros(30)
    for seed in range(2000):
        rows = RandomRows(10, seed)
        for start, stop in pairwise([0, 3, 4, 25, 30]):
            labels = np.arange(start, stop)
            rows.add(Batch(labels[:, None] / 1.0, labels, first_row=start))
        proba, labels = rows.drawn()
        assert len(set(labels.tolist())) == 10
        np.testing.assert_array_equal(proba[:, 0], labels)
        assert labels.tolist() == sorted(labels.tolist())
        counts[labels] += 1
    assert abs(counts / 2000 - 1 / 3).max() < 0.05


def test_scattered_rows_are_uniform():
    """One row of each 2**k neighbours, each as often as the others, at any place."""
    drawn = np.zeros(64)
    for block in range(2_000):
        rows = ScatteredRows(1)
        rows.add(Batch(np.full((64, 2), 0.5), np.arange(64), first_row=64 * block))
        drawn[rows.drawn().labels] += 1
    assert drawn.sum() == 2_000
    assert ((drawn - 2_000 / 64) ** 2 / (2_000 / 64)).sum() < 104  # chi-square with 63 degrees, p = 0.001
    halves = drawn.reshape(2, 32).sum(axis=1)
    assert abs(halves[0] - halves[1]) < 3.3 * np.sqrt(2_000)


def test_scattered_rows_of_few_are_all():
    rows = ScatteredRows(N)
    rows.add(Batch(PROBA, LABELS, groups=COLUMNS["groups"], point_labels=LABELS))
    drawn = rows.drawn()
    assert rows.whole
    np.testing.assert_array_equal(drawn.proba, PROBA)
    np.testing.assert_array_equal(drawn.point_labels, LABELS)
    assert drawn.groups == COLUMNS["groups"].tolist()


def test_scattered_rows_of_several_number_types_sum_to_one():
    rows = ScatteredRows(2 * N)
    rows.add(Batch(PROBA.astype(np.float16), LABELS))
    rows.add(Batch(PROBA, LABELS, first_row=N))
    assert abs(rows.drawn().proba.sum(axis=1) - 1).max() < 1e-12


def test_random_rows_of_few_are_all():
    rows = RandomRows(10)
    rows.add(Batch(np.eye(3), np.arange(3)))
    assert rows.drawn()[1].tolist() == [0, 1, 2]


def test_a_sample_travels_without_the_rows_that_are_to_be_dropped():
    rows = RandomRows(10)
    rows.add(Batch(np.zeros((15, 100)), np.zeros(15, int)))
    assert len(pickle.dumps(rows)) < 10 * 103 * 8 + 1_000
    assert len(pickled(rows).drawn()[1]) == 10
    pickled(RandomRows(10)).merge(rows)


@pytest.mark.parametrize("row", [0, 1, 1000, 10**12])
def test_a_generator_anywhere_in_its_stream(row):
    straight = np.random.default_rng(5)
    straight.bit_generator.advance(row)
    assert generator_at(row, 5).random(3).tolist() == straight.random(3).tolist()


@pytest.mark.parametrize("unit", [1, 2**60, 2**70], ids=["small", "large sums", "large costs"])
def test_clusters_in_several_parts_and_strata_add_up(unit):
    """By brute force: the mean loss of each cluster's rows in a stratum."""
    rng = np.random.default_rng(0)
    loss = orisk.CostTableLoss([[0, 1, 2 * unit], [1, 0, 1], [2 * unit, 1, 0]], normalize=False)
    costs = CostTable.of(loss, 3)
    patients = np.array([f"P{i}" for i in rng.integers(0, 12, 100)], object)
    strata, units = rng.integers(0, 2, 100), costs.units[0][rng.integers(0, 3, (2, 100))]
    merged = ClusterLosses(2, 2, costs)
    for rows in (slice(0, 35), slice(35, 35), slice(35, 70), slice(70, 100)):
        part = ClusterLosses(2, 2, costs)
        places = part.units(part.numbered(patients[rows], len(patients[rows])), strata[rows])
        for stop in range(2):
            part.add(stop, places, units[stop][rows])
        merged = merged.merge(pickled(part))
    for stop in range(2):
        for stratum in (0, 1, None):
            mine = np.ones(100, bool) if stratum is None else strata == stratum
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
        merged = merged.merge(pickled(part))
    assert merged._sums.keys() == whole._sums.keys()
    assert all((merged._sums[exponent] == sums).all() for exponent, sums in whole._sums.items())
    assert merged.realised(1, 0) == whole.realised(1, 0)
    assert merged.realised(0, 0) is None
