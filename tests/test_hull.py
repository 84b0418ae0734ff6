"""Intervals whose threshold differs from row to row or from label to label, by enumeration."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import GROWTH_RULES, LOSSES, calibration_sets

from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.prediction.ends import ends_by_label, ends_by_row


def levels_and_costs(loss, growth, data):
    proba, _ = data
    K = proba.shape[1]
    return growth.levels(proba, loss(K)), CostTable.of(loss(K), K)


def any_thresholds(levels, seed, shape):
    """Some of the levels, some infinite, some in between."""
    rng = np.random.default_rng(seed)
    finite = levels[np.isfinite(levels)]
    between = rng.uniform(finite.min() - 0.1, finite.max() + 0.1, finite.size)
    return rng.choice([*finite, *between, math.inf, -math.inf], shape)


def nearest_cost(costs, y, inside):
    return min(costs.exact[y][k] for k in np.flatnonzero(inside))


def naive_ends(level, thresholds, costs):
    """The shortest interval around the point label that costs no label more than its own set does.

    It holds every label of which nothing is certified.
    """
    K, m = len(level), int(level.argmax())
    allowed = [nearest_cost(costs, y, level >= thresholds[y]) for y in range(K)]
    fits = [
        (lower, upper)
        for lower in range(m + 1)
        for upper in range(m, K)
        if all(costs.exact[y][min(max(y, lower), upper)] <= allowed[y] for y in range(K))
        and all(lower <= y <= upper for y in range(K) if thresholds[y] == -math.inf)
    ]
    shortest = min(upper - lower for lower, upper in fits)
    [ends] = [(lower, upper) for lower, upper in fits if upper - lower == shortest]
    return ends


@pytest.mark.parametrize("growth", GROWTH_RULES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@settings(max_examples=4)
@given(data=calibration_sets(max_rows=4, max_classes=7), seed=st.integers(0, 10**6))
def test_the_interval_is_the_shortest_that_costs_no_label_more_than_its_own_set(loss, growth, data, seed):
    levels, costs = levels_and_costs(loss, growth, data)
    thresholds = any_thresholds(levels, seed, levels.shape)
    found = ends_by_label(levels, thresholds, costs)
    expected = [naive_ends(*row, costs) for row in zip(levels, thresholds, strict=True)]
    assert [*zip(*(ends.tolist() for ends in found), strict=True)] == expected


@settings(max_examples=40)
@given(data=calibration_sets(max_rows=6, max_classes=7), seed=st.integers(0, 10**6))
def test_for_a_weighted_loss_it_is_the_hull_of_the_labels_that_pass(data, seed):
    levels, costs = levels_and_costs(LOSSES["weighted"], GROWTH_RULES[1], data)
    thresholds = any_thresholds(levels, seed, levels.shape)
    lower, upper = ends_by_label(levels, thresholds, costs)
    for row, (level, own) in enumerate(zip(levels, thresholds, strict=True)):
        passing = [j for j in range(len(level)) if level[j] >= own[j]]
        assert (lower[row], upper[row]) == (min(passing), max(passing))


@settings(max_examples=40)
@given(data=calibration_sets(max_rows=6, max_classes=7), seed=st.integers(0, 10**6))
def test_thresholds_of_rows_are_membership(data, seed):
    levels, _ = levels_and_costs(LOSSES["coverage"], GROWTH_RULES[0], data)
    thresholds = any_thresholds(levels, seed, len(levels))
    lower, upper = ends_by_row(levels, thresholds)
    label = np.arange(levels.shape[1])
    assert np.array_equal(
        (lower[:, None] <= label) & (label <= upper[:, None]), levels >= thresholds[:, None]
    )


@pytest.mark.parametrize("loss", ["coverage", "divergence", "squared", "asymmetric"])
@settings(max_examples=20)
@given(data=calibration_sets(max_rows=6, max_classes=7), seed=st.integers(0, 10**6))
def test_equal_thresholds_for_all_labels_are_one_threshold(loss, data, seed):
    """For losses that grow with every label further away."""
    levels, costs = levels_and_costs(LOSSES[loss], GROWTH_RULES[2], data)
    thresholds = any_thresholds(levels, seed, len(levels))
    by_label = ends_by_label(levels, np.repeat(thresholds[:, None], levels.shape[1], axis=1), costs)
    for one, other in zip(by_label, ends_by_row(levels, thresholds), strict=True):
        assert one.dtype == other.dtype == np.int32
        assert np.array_equal(one, other)


@settings(max_examples=20)
@given(data=calibration_sets(max_rows=6, max_classes=7), seed=st.integers(0, 10**6))
def test_one_line_of_thresholds_serves_all_rows(data, seed):
    levels, costs = levels_and_costs(LOSSES["table"], GROWTH_RULES[1], data)
    line = any_thresholds(levels, seed, (1, levels.shape[1]))
    for one, other in zip(
        ends_by_label(levels, line, costs),
        ends_by_label(levels, np.repeat(line, len(levels), axis=0), costs),
        strict=True,
    ):
        assert np.array_equal(one, other)
