"""Answers of parts: in few bytes, and the same however parts are merged."""

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ordinalrisk as orisk
from ordinalrisk.calibration.accumulate import RowExtras
from ordinalrisk.calibration.fingerprint import fingerprint, of_parts
from ordinalrisk.curves.steps import Steps
from ordinalrisk.execution import part_steps
from ordinalrisk.execution.part_steps import (
    Answer,
    Draw,
    FirstLook,
    LevelSums,
    PartCollector,
    PartSteps,
    Question,
    Sample,
    Sizes,
)
from ordinalrisk.losses.cost_table import CostTable

ALL = (None, None)
SIZES = st.sampled_from([1, 2, 7, 250, 2**40, 2**62, 2**63, 2**70])
LEVELS = st.sampled_from([-0.5, 0.0, 5e-324, 0.1, 0.1 + 2**-54, 0.25, 0.3, 1.0])


@st.composite
def some_steps(draw, max_size=12):
    """Levels and sizes; sizes as an array of the narrowest kind that holds them, or as one number."""
    at = np.array(draw(st.lists(LEVELS, max_size=max_size)), float)
    if draw(st.booleans()):
        size = draw(SIZES)
        return Steps(at, size, size)
    by = draw(st.lists(SIZES, min_size=len(at), max_size=len(at)))
    largest = max(by, default=1)
    dtype = object if largest >= 2**63 else np.int64
    return Steps(at, np.array(by, dtype), largest)


def sums_of(steps):
    return LevelSums.added(steps.at, steps.sizes_of(slice(None)), np.ones(len(steps.at), np.int64))


def plain(sums):
    return sums.levels.tolist(), sums.units.tolist(), sums.counts.tolist()


def naive_sums(*parts):
    units, counts = Counter(), Counter()
    for steps in parts:
        for level, size in zip(steps.at.tolist(), steps.sizes_of(slice(None)).tolist(), strict=True):
            units[level] += size
            counts[level] += 1
    levels = sorted(units)
    return levels, [units[level] for level in levels], [counts[level] for level in levels]


# sums by level


@given(steps=some_steps())
def test_sums_by_level(steps):
    assert plain(sums_of(steps)) == naive_sums(steps)


@given(parts=st.lists(some_steps(), min_size=3, max_size=3))
def test_sums_merge_in_any_order(parts):
    a, b, c = map(sums_of, parts)
    flat = LevelSums.merged([a, b, c])
    left = LevelSums.merged([LevelSums.merged([a, b]), c])
    right = LevelSums.merged([LevelSums.merged([c]), LevelSums.merged([b, a])])
    assert plain(flat) == plain(left) == plain(right) == naive_sums(*parts)
    assert flat.units.dtype == left.units.dtype == right.units.dtype


def test_sums_take_as_few_bytes_as_hold_them():
    for size, dtype in ((1, np.uint8), (200, np.uint16), (2**20, np.uint32), (2**40, np.uint64)):
        sums = LevelSums.added(np.array([0.5, 0.5]), np.array([size, size]), np.array([1, 1]))
        assert sums.units.dtype == dtype
        assert sums.units.tolist() == [2 * size]
        assert sums.counts.dtype == np.uint8
    large = LevelSums.added(np.array([0.5, 0.5]), np.array([2**62, 2**62]), np.array([1, 1]))
    assert large.units.dtype == object
    assert large.units.tolist() == [2**63]
    many = LevelSums.added(np.zeros(300), np.ones(300, np.uint8), np.ones(300, np.uint8))
    assert (many.units.tolist(), many.counts.tolist()) == ([300], [300])


def test_sums_of_nothing():
    nothing = LevelSums.added(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    assert plain(nothing) == ([], [], [])
    some = sums_of(Steps(np.array([0.5]), 2**64, 2**64))
    assert plain(LevelSums.merged([nothing, some, nothing])) == ([0.5], [2**64], [1])
    assert plain(LevelSums.merged([nothing])) == ([], [], [])


# answers


def naive_answer(question, *parts):
    steps = [
        pair
        for part in parts
        for pair in zip(part.at.tolist(), part.sizes_of(slice(None)).tolist(), strict=True)
    ]
    inside = [
        Steps(part.at[chosen], part.sizes_of(chosen), part.largest)
        for part in parts
        for chosen in [
            np.array(
                [any(low <= level <= high for low, high in question.brackets) for level in part.at.tolist()],
                bool,
            )
        ]
    ]
    edges = question.edges.tolist()
    return (
        tuple(sum(size for level, size in steps if level < edge) for edge in edges),
        tuple(sum(level < edge for level, _ in steps) for edge in edges),
        naive_sums(*inside),
    )


def plain_answer(answer):
    return answer.units_below, answer.steps_below, plain(answer.inside)


@st.composite
def some_questions(draw):
    ends = st.one_of(LEVELS, st.sampled_from([-np.inf, np.inf, 0.2]))
    brackets = draw(st.lists(st.tuples(ends, ends).map(sorted).map(tuple), max_size=2))
    return Question(np.array(sorted(draw(st.sets(ends, min_size=1)))), tuple(brackets))


@pytest.mark.parametrize("few", [0, 3, 100])
@settings(max_examples=40)
@given(parts=st.lists(some_steps(), min_size=3, max_size=3), question=some_questions())
def test_answers_are_counts_and_merge_in_any_order(parts, question, few):
    """Few edges are looked at one by one, many at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part_steps, "_FEW", few)
        check_answers(parts, question)


def check_answers(parts, question):
    a, b, c = (part_steps._answer(part, question) for part in parts)
    for part, answer in zip(parts, (a, b, c), strict=True):
        assert plain_answer(answer) == naive_answer(question, part)
    flat = Answer.merged([a, b, c])
    left = Answer.merged([Answer.merged([a, b]), c])
    right = Answer.merged([Answer.merged([c]), Answer.merged([b, a])])
    assert plain_answer(flat) == plain_answer(left) == plain_answer(right) == naive_answer(question, *parts)


def test_units_below_are_exact_beyond_64_bits():
    steps = Steps(np.repeat([0.1, 0.2], 3_000), np.full(6_000, 2**60), 2**60)
    for each in (steps, Steps(steps.at, 2**60, 2**60), Steps(steps.at, steps.by.astype(object), 2**60)):
        answer = part_steps._answer(each, Question(np.array([0.2, 0.5]), ((0.2, 0.2),)))
        assert answer.units_below == (3_000 * 2**60, 6_000 * 2**60)
        assert all(type(units) is int for units in answer.units_below)
        assert answer.inside.units.tolist() == [3_000 * 2**60]


def test_only_strata_that_a_part_has_are_answered():
    part = a_part(Steps(np.array([0.1]), 1, 1))
    question = Question(np.array([0.5]), ())
    assert part.answers({("x", None): question, ALL: question}).keys() == {ALL}
    assert part.sample({(("x", None), 0): Draw(1, 0, 1), (ALL, 4): Draw(1, 0, 1)}).keys() == {(ALL, 4)}


# samples


def a_part(steps, digest="ab" * 32):
    return PartSteps({ALL: steps}, {ALL: len(steps.at)}, np.array([len(steps.at)]), digest)


def levels_drawn(part, draw):
    return part.sample({(ALL, 0): draw})[ALL, 0].levels


def test_samples_are_the_same_whenever_asked():
    at = np.random.default_rng(0).random(1_000)
    draw = Draw(0.1, 0.2, 0.7)
    part = a_part(Steps(at, 1, 1))
    first = levels_drawn(part, draw)
    assert levels_drawn(pickle.loads(pickle.dumps(part)), draw).tobytes() == first.tobytes()
    assert levels_drawn(a_part(Steps(at, 1, 1), "cd" * 32), draw).tobytes() != first.tobytes()
    assert levels_drawn(a_part(Steps(at, 1, 1), None), draw).tobytes() != first.tobytes()


def test_a_sample_is_of_distinct_steps_between_the_levels():
    at = np.arange(1_000) / 1_000
    by = np.arange(1, 1_001)
    part = a_part(Steps(at, by, 1_000))
    for share in (0.0001, 0.3, 1.0, 5.0):
        sample = part.sample({(ALL, 0): Draw(share, 0.2, 0.7)})[ALL, 0]
        inside = 501
        assert abs(len(sample.levels) - min(share, 1) * inside) <= 1
        assert len(set(sample.levels)) == len(sample.levels)
        assert len(sample.levels) == 0 or 0.2 <= sample.levels.min() <= sample.levels.max() <= 0.7
        assert sample.units.tolist() == np.rint(sample.levels * 1_000 + 1).tolist()


def test_a_sample_is_fair_however_small_the_parts():
    """Of many parts of a few steps each, a share comes back in all: parts round up or down at random."""
    parts = [a_part(Steps(np.full(3, number), 1, 1), f"{number:064x}") for number in range(2_000)]
    drawn = sum(len(levels_drawn(part, Draw(0.05, 0, np.inf))) for part in parts)
    assert abs(drawn - 300) < 5 * np.sqrt(300)


def test_samples_are_uniform_over_the_steps():
    counts = np.zeros(4, int)
    for number in range(2_000):
        part = a_part(Steps(np.arange(4.0), 1, 1), f"{number:064x}")
        counts[levels_drawn(part, Draw(0.5, 0, 3)).astype(int)] += 1
    assert counts.sum() == 4_000
    assert abs(counts - 1_000).max() < 5 * np.sqrt(500)


def test_samples_merge():
    one = Sample(np.array([0.5]), np.array([3]), np.ones(1, np.float32))
    other = Sample(np.array([0.1]), np.array([2**64], object), np.full(1, 2, np.float32))
    merged = Sample.merged([one, other])
    assert [values.tolist() for values in merged] == [[0.5, 0.1], [3, 2**64], [1, 2]]


def test_each_step_of_a_sample_stands_for_others():
    part = a_part(Steps(np.arange(1_000) / 1_000, 1, 1))
    for share in (0.05, 0.25, 1.0):
        sample = part.sample({(ALL, 0): Draw(share, -np.inf, np.inf)})[ALL, 0]
        assert sample.weights.dtype == np.float32
        assert sample.weights.tolist() == [np.float32(1 / share)] * len(sample.levels)
        assert abs(sample.weights.sum() - 1_000) <= 1 / share


def test_a_first_look_shares_steps_out_among_strata():
    strata = {("a", None): 5_000, ("b", None): 50, ("c", None): 0, ("d", None): 3}
    random = np.random.default_rng(0)
    part = PartSteps(
        {key: Steps(random.random(n), 1, 1) for key, n in strata.items()},
        {key: n + 10 for key, n in strata.items()},
        np.array([5_093]),
        "ab" * 32,
    )
    look = part.first_look(100, 20)
    assert look.sizes.steps == strata
    assert look.samples.keys() == {key for key, n in strata.items() if n}
    drawn = {key: len(sample.levels) for key, sample in look.samples.items()}
    assert 98 <= drawn["a", None] <= 100
    assert drawn["b", None] == 20
    assert drawn["d", None] == 3
    for key, sample in look.samples.items():
        assert set(sample.levels) <= set(part.strata[key].at)
    again = pickle.loads(pickle.dumps(part)).first_look(100, 20)
    assert again.samples["a", None].levels.tobytes() == look.samples["a", None].levels.tobytes()
    both = FirstLook.merged([look, FirstLook.merged([a_part(Steps(np.array([0.5]), 1, 1)).first_look(9, 9)])])
    assert both.samples[ALL].levels.tolist() == [0.5]
    assert both.sizes.steps == {**strata, ALL: 1}
    assert len(both.samples["b", None].levels) == 20
    twice = FirstLook.merged([look, look])
    assert len(twice.samples["b", None].levels) == 40


# sizes


def test_sizes_add_up_in_the_order_met():
    a = Sizes({("b", None): 2}, {("b", None): 5}, {("b", None): 2**70}, np.array([1, 1]), ("x",))
    b = Sizes(
        {("a", None): 1, ("b", None): 1},
        {("a", None): 0, ("b", None): 1},
        {("a", None): 0, ("b", None): 1},
        np.array([0, 2]),
        ("y", "z"),
    )
    merged = Sizes.merged([a, b])
    assert [*merged.rows.items()] == [(("b", None), 3), (("a", None), 1)]
    assert merged.steps == {("b", None): 6, ("a", None): 0}
    assert merged.units == {("b", None): 2**70 + 1, ("a", None): 0}
    assert merged.class_rows.tolist() == [1, 3]
    assert merged.digests == ("x", "y", "z")


# collecting


COSTS = CostTable.of(orisk.DivergenceLoss(), 4)
FRONTIER = orisk.FrontierGrowth()


def collected(proba, y, batches, extras=None, **how):
    collector = PartCollector(COSTS, FRONTIER, **how)
    for rows in np.array_split(np.arange(len(y)), batches):
        groups = None if extras is None else extras[rows]
        collector.add(proba[rows], y[rows], RowExtras(groups))
    return collector.finish()


@pytest.mark.parametrize("how", [{}, {"by_label": True}, {"class_weights": [3, 0, 1, 2]}], ids=str)
@pytest.mark.parametrize("grouped", [False, True])
def test_batches_of_a_part_do_not_matter(draw, how, grouped):
    proba, y = draw(200, 4)
    groups = np.random.default_rng(0).choice(["b", "a"], 200) if grouped else None
    one, many = (collected(proba, y, batches, groups, **how) for batches in (1, 9))
    assert one.digest == many.digest == fingerprint(proba, y)
    assert one.rows == many.rows
    assert [*one.rows] == [*many.rows] or how == {"by_label": True}  # classes are met in any order
    assert one.class_rows.tolist() == many.class_rows.tolist() == np.bincount(y, minlength=4).tolist()
    assert one.strata.keys() == many.strata.keys()
    for key in one.strata:
        assert plain(sums_of(one.strata[key])) == plain(sums_of(many.strata[key]))
    assert one.sizes().units == many.sizes().units == {k: s.total for k, s in one.strata.items()}
    assert one.sizes().steps == {k: len(s.at) for k, s in one.strata.items()}


def test_rows_by_group_and_class(draw):
    proba, y = draw(100, 4)
    groups = np.where(np.arange(100) % 3, "later", "first")
    part = collected(proba, y, 1, groups, by_label=True)
    assert {group for group, _ in part.rows} == {"first", "later"}
    for (group, label), n_rows in part.rows.items():
        mine = (groups == group) & (y == label)
        assert n_rows == mine.sum()
        alone = collected(proba[mine], y[mine], 1, by_label=True)
        assert plain(sums_of(part.strata[group, label])) == plain(sums_of(alone.strata[None, label]))


def test_weights_of_classes_multiply_steps(draw):
    proba, y = draw(300, 4)
    weights = [3, 0, 2**62, 5]
    part = collected(proba, y, 2, class_weights=weights)
    assert part.rows == {ALL: 300}
    expected = Counter()
    for label, weight in enumerate(weights):
        mine = y == label
        steps = FRONTIER.steps(proba[mine], y[mine], COSTS, None)
        for level, size in zip(steps.at.tolist(), steps.sizes_of(slice(None)).tolist(), strict=True):
            expected[level] += size * weight
    levels, units, _ = plain(sums_of(part.strata[ALL]))
    assert dict(zip(levels, units, strict=True)) == {k: v for k, v in expected.items() if v}
    assert part.sizes().units[ALL] == sum(expected.values())


def test_a_part_without_rows():
    part = PartCollector(COSTS, FRONTIER).finish()
    sizes = part.sizes()
    assert (sizes.rows, sizes.steps, sizes.units, sizes.digests) == ({}, {}, {}, ())
    assert sizes.class_rows.tolist() == [0, 0, 0, 0]
    assert part.sample({(ALL, 0): Draw(1, 0, 1)}) == {}
    assert part.answers({ALL: Question(np.array([0.5]), ())}) == {}


def test_rows_that_are_never_missed_leave_no_steps():
    part = collected(np.eye(4), np.arange(4), 1)
    assert part.sizes().steps == {ALL: 0}
    assert part.sizes().units == {ALL: 0}
    answer = part.answers({ALL: Question(np.array([0.5]), ((-np.inf, np.inf),))})[ALL]
    assert plain_answer(answer) == ((0,), (0,), ([], [], []))


def test_the_fingerprint_of_parts_leaves_out_empty_ones(draw):
    proba, y = draw(50, 4)
    full, empty = collected(proba, y, 1), PartCollector(COSTS, FRONTIER).finish()
    merged = Sizes.merged([empty.sizes(), full.sizes(), empty.sizes()])
    assert of_parts(merged.digests) == fingerprint(proba, y)
    both = Sizes.merged([full.sizes(), full.sizes()])
    assert of_parts(both.digests) not in (fingerprint(proba, y), of_parts(both.digests * 2))
