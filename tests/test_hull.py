"""Intervals with thresholds that differ from row to row or from label to label, by enumeration."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import GROWTH_RULES, LOSSES, calibration_sets, for_every_loss_and_rule
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk

pytestmark = [FEW, UNCHECKED]


def calibrated(loss, growth, data, seed, **options):
    """A calibration with a random risk for each label, its rows, their groups and their levels."""
    proba, y = data
    n, K = proba.shape
    rng = np.random.default_rng(seed)
    alpha = {k: loss(K).bound(K) * int(rng.integers(1, 100)) / 100 for k in range(K)}
    groups = rng.integers(0, 2, n)
    options = {"groups": groups} | options
    one = orisk.RiskController(loss(K), alpha, growth).calibrate(proba, y, **options)
    return one, groups, growth.levels(proba, loss(K))


def own_thresholds(one, groups):
    """The threshold of each label, for each row."""
    return [[one.threshold_[group, k] for k in one.classes_.tolist()] for group in groups.tolist()]


def naive_ends(level, thresholds, costs):
    """The shortest interval around the point label that costs no label more than its own set does.

    It holds every label of which nothing is certified.
    """
    K, m = len(level), int(level.argmax())
    allowed = [min(costs[y][k] for k in np.flatnonzero(level >= thresholds[y])) for y in range(K)]
    fits = [
        (lower, upper)
        for lower in range(m + 1)
        for upper in range(m, K)
        if all(costs[y][min(max(y, lower), upper)] <= allowed[y] for y in range(K))
        and all(lower <= y <= upper for y in range(K) if thresholds[y] == -math.inf)
    ]
    shortest = min(upper - lower for lower, upper in fits)
    [ends] = [(lower, upper) for lower, upper in fits if upper - lower == shortest]
    return ends


def ends_of(sets):
    assert sets.lower_index.dtype == sets.upper_index.dtype == np.int32
    return [*zip(sets.lower_index.tolist(), sets.upper_index.tolist(), strict=True)]


@for_every_loss_and_rule
@settings(max_examples=4)
@given(data=calibration_sets(max_rows=40, max_classes=7), seed=st.integers(0, 10**6))
def test_the_interval_is_the_shortest_that_costs_no_label_more_than_its_own_set(loss, growth, data, seed):
    one, groups, levels = calibrated(loss, growth, data, seed)
    costs = one.loss.exact_costs(levels.shape[1])
    rows = zip(levels, own_thresholds(one, groups), strict=True)
    assert ends_of(one.predict_set(data[0], groups=groups)) == [naive_ends(*row, costs) for row in rows]


@settings(max_examples=40)
@given(data=calibration_sets(max_rows=40, max_classes=7), seed=st.integers(0, 10**6))
def test_for_a_weighted_loss_it_is_the_hull_of_the_labels_that_pass(data, seed):
    one, groups, levels = calibrated(LOSSES["weighted"], GROWTH_RULES[1], data, seed)
    passing = [np.flatnonzero(row) for row in levels >= np.array(own_thresholds(one, groups))]
    expected = [(labels.min(), labels.max()) for labels in passing]
    assert ends_of(one.predict_set(data[0], groups=groups)) == expected


@settings(max_examples=40)
@given(data=calibration_sets(max_rows=40, max_classes=7), seed=st.integers(0, 10**6))
def test_thresholds_of_rows_are_membership(data, seed):
    proba, y = data
    groups = np.random.default_rng(seed).integers(0, 4, len(y))
    one = orisk.RiskController(alpha=0.3).calibrate(proba, y, groups=groups)
    own = np.array([one.threshold_[group] for group in groups.tolist()])
    sets = one.predict_set(proba, groups=groups)
    assert np.array_equal(sets.mask(), one.growth.levels(proba, one.loss) >= own[:, None])


@settings(max_examples=20)
@given(data=calibration_sets(max_rows=40, max_classes=7), seed=st.integers(0, 10**6))
def test_one_line_of_thresholds_serves_all_rows(data, seed):
    none, _, _ = calibrated(LOSSES["table"], GROWTH_RULES[1], data, seed, groups=None)
    all_groups = ["all"] * len(data[1])
    one, _, _ = calibrated(LOSSES["table"], GROWTH_RULES[1], data, seed, groups=all_groups)
    assert [*one.threshold_.values()] == [*none.threshold_.values()]
    assert one.predict_set(data[0], groups=all_groups) == none.predict_set(data[0])
