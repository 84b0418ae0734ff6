"""Whose loss steps where: exact, and the same as what the kernels say of all rows together."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import GROWTH_RULES, LOSSES, calibration_sets, exact_losses

from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.unit_steps import UnitSteps, exact_weights
from ordinalrisk.losses.cost_table import CostTable, whole_costs

every_rule = pytest.mark.parametrize("growth", GROWTH_RULES, ids=repr)
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


def for_every_loss_and_rule(test):
    """All rules for a loss, one after the other: its cost tables are made once."""
    return every_rule(every_loss(test))


def rows_of(loss, growth, data):
    proba, y = data
    costs = CostTable.of(loss(proba.shape[1]), proba.shape[1])
    levels = growth.row_levels(proba, costs, None)
    return UnitSteps.of_rows(levels, y, costs), levels, costs


def curve_of(steps, costs, n_rows):
    return RiskCurve(steps, unit=costs.unit, n_rows=n_rows, bound=costs.bound)


def unit_losses(steps, scale, tau):
    """The loss of each unit at a threshold, one step after the other."""
    losses = [Fraction(0)] * steps.n_units
    for at, unit, by in zip(*(part.tolist() for part in steps[:3]), strict=True):
        losses[unit] += by * scale if at < tau else 0
    return losses


@for_every_loss_and_rule
@settings(max_examples=6)
@given(data=calibration_sets(max_classes=20))
def test_the_curve_of_the_rows_is_that_of_the_kernels(loss, growth, data):
    """Levels, totals and ties, bit for bit."""
    proba, y = data
    steps, _, costs = rows_of(loss, growth, data)
    by_row = curve_of(steps.steps(int(costs.bound / costs.unit)), costs, len(y))
    assert by_row == curve_of(growth.steps(proba, y, costs, None), costs, len(y))


@for_every_loss_and_rule
@settings(max_examples=3)
@given(data=calibration_sets(max_rows=6, max_classes=10))
def test_each_row_has_its_own_loss_at_each_threshold(loss, growth, data):
    proba, y = data
    K = proba.shape[1]
    steps, levels, costs = rows_of(loss, growth, data)
    assert (steps.by > 0).all()
    assert steps.n_units == len(y)
    assert len({*zip(steps.at.tolist(), steps.unit.tolist(), strict=True)}) == len(steps.at)
    for tau in {*levels.ravel().tolist(), -math.inf}:
        inside = levels >= tau
        lower, upper = inside.argmax(axis=1), K - 1 - inside[:, ::-1].argmax(axis=1)
        assert unit_losses(steps, costs.unit, tau) == exact_losses(y, lower, upper, loss(K), K)


@settings(max_examples=30)
@given(data=calibration_sets(max_rows=20, max_classes=8), cut=st.integers(0, 20))
def test_joined_batches_are_all_rows(data, cut):
    _, y = data
    whole, levels, costs = rows_of(LOSSES["table"], GROWTH_RULES[1], data)
    joined = UnitSteps.joined(
        [UnitSteps.of_rows(levels[part], y[part], costs) for part in (slice(cut), slice(cut, None))]
    )
    assert joined.n_units == whole.n_units
    for tau in np.unique(levels).tolist():
        assert unit_losses(joined, 1, tau) == unit_losses(whole, 1, tau)


@settings(max_examples=30)
@given(data=calibration_sets(max_rows=20, max_classes=8), seed=st.integers(0, 99), n_parts=st.integers(1, 5))
def test_each_part_has_its_own_rows_numbered_anew(data, seed, n_parts):
    _, y = data
    whole, levels, _ = rows_of(LOSSES["squared"], GROWTH_RULES[0], data)
    into = np.random.default_rng(seed).integers(0, n_parts, len(y))
    parts = [*whole.split(into, n_parts)]
    assert len(parts) == n_parts
    for part, (rows, steps) in enumerate(parts):
        assert rows.tolist() == np.flatnonzero(into == part).tolist()
        assert steps.n_units == len(rows)
        for tau in np.unique(levels).tolist():
            expected = unit_losses(whole, 1, tau)
            assert unit_losses(steps, 1, tau) == [expected[row] for row in rows]


@settings(max_examples=30)
@given(data=calibration_sets(max_rows=20, max_classes=8), seed=st.integers(0, 99))
def test_a_cluster_has_the_mean_loss_of_its_rows(data, seed):
    _, y = data
    whole, levels, _ = rows_of(LOSSES["divergence"], GROWTH_RULES[1], data)
    clusters = np.unique(np.random.default_rng(seed).integers(0, 6, len(y)), return_inverse=True)[1]
    steps, parts = whole.clustered(clusters)
    assert parts == math.lcm(*np.bincount(clusters).tolist())
    assert steps.n_units == clusters.max() + 1
    for tau in np.unique(levels).tolist():
        rows = np.array(unit_losses(whole, 1, tau), object)
        means = [sum(rows[clusters == c]) / np.count_nonzero(clusters == c) for c in range(steps.n_units)]
        assert unit_losses(steps, Fraction(1, parts), tau) == means


def test_no_rows_make_no_clusters():
    nothing = UnitSteps(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), 0)
    steps, parts = nothing.clustered(np.empty(0, np.int64))
    assert (steps.n_units, len(steps.at), parts) == (0, 0, 1)
    assert nothing.steps(0).in_order.most_tied == 0


def test_clusters_of_many_sizes_stay_exact():
    """The least common multiple of 1 to 50 has 21 digits."""
    sizes = np.arange(1, 51)
    clusters = np.repeat(np.arange(50), sizes)
    n = len(clusters)
    rows = UnitSteps(np.arange(float(n)), np.arange(n), np.ones(n, np.int64), n)
    steps, parts = rows.clustered(clusters)
    assert parts == math.lcm(*sizes.tolist()) > 2**63
    assert unit_losses(steps, Fraction(1, parts), math.inf) == [1] * 50
    total = curve_of(steps.steps(parts), CostTable(whole_costs([[0, 1], [1, 0]])), 50).total_loss(math.inf)
    assert total == 50 * parts


def test_weights_multiply_steps_and_those_of_0_remove_them():
    rows = UnitSteps(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 1, 2]), np.array([1, 2, 3, 4]), 3)
    weighted = rows.weighted(np.array([5, 0, 2**70], object))
    assert weighted.at.tolist() == [0.1, 0.4]
    assert weighted.unit.tolist() == [0, 2]
    assert weighted.by.tolist() == [5, 4 * 2**70]
    assert weighted.n_units == 3


@pytest.mark.parametrize("weight", [2**62 - 1, 2**62, 2**63, 10**30])
def test_sums_of_large_steps_do_not_overflow(weight):
    rows = UnitSteps(np.array([0.1, 0.2]), np.arange(2), np.ones(2, np.int64), 2)
    steps = rows.weighted(np.full(2, weight, object)).steps(1)
    assert steps.in_order.totals.tolist() == [weight, 2 * weight]
    assert steps.first_level_above(2 * weight - 1) == 0.2
    assert steps.first_level_above(2 * weight) == math.inf


@given(
    st.lists(
        st.one_of(
            st.just(0.0), st.floats(0, 1e308), st.floats(0, 1), st.sampled_from([5e-324, 2.0**-1022, 1e300])
        ),
        min_size=1,
        max_size=8,
    ).map(np.array)
)
def test_weights_are_the_binary_fractions_they_are(weights):
    whole, unit = exact_weights(weights)
    assert [count * unit for count in whole] == [Fraction(weight) for weight in weights.tolist()]
    assert all(type(count) is int for count in whole)
    assert math.gcd(*whole) in (0, 1)
