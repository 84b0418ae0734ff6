"""The identities of the method, for every loss and every growth rule."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    LOSSES,
    calibration_sets,
    ends_of,
    exact_losses,
    for_every_loss,
    for_every_loss_and_rule,
    for_every_rule,
    shares,
)
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk

pytestmark = [
    UNCHECKED,
    FEW,
    pytest.mark.no_cover,  # what so many examples run is run by others, and takes twice as long if measured
]


def calibrated(loss, growth, data, share):
    proba, y = data
    K = proba.shape[1]
    alpha = share * loss(K).bound(K)
    return orisk.RiskController(loss=loss(K), growth=growth, alpha=alpha).calibrate(proba, y)


@for_every_loss_and_rule
@settings(max_examples=6)
@given(data=calibration_sets())
def test_levels_fall_outward_from_the_point_label(loss, growth, data):
    proba, _ = data
    for level in growth.levels(proba, loss(proba.shape[1])):
        [m] = np.flatnonzero(level == math.inf)
        assert all(inner >= outer for inner, outer in pairwise(level[m:]))
        assert all(inner >= outer for inner, outer in pairwise(level[m::-1]))
        assert np.isfinite(np.delete(level, m)).all()


@for_every_loss_and_rule
@settings(max_examples=10)
@given(data=calibration_sets(max_classes=20), share=shares())
def test_membership_is_level_at_least_threshold(loss, growth, data, share):
    proba, y = data
    controller = calibrated(loss, growth, data, share)
    sets = controller.predict_set(proba)
    levels = growth.levels(proba, controller.loss)
    assert np.array_equal(sets.mask(), levels >= controller.threshold_)
    assert np.array_equal(sets.contains(y), levels[np.arange(len(y)), y] >= controller.threshold_)


@for_every_loss_and_rule
@settings(max_examples=8)
@given(data=calibration_sets(max_rows=8, max_classes=12), share=shares())
def test_threshold_is_the_largest_safe_one(loss, growth, data, share):
    proba, y = data
    n, K = proba.shape
    controller = calibrated(loss, growth, data, share)
    levels = growth.levels(proba, controller.loss)

    def is_safe(threshold):
        total = sum(exact_losses(y, *ends_of(levels, threshold), controller.loss, K))
        assert controller.risk_curve_.total_loss(threshold) == total
        return total + controller.loss.bound(K) <= controller.alpha * (n + 1)

    candidates = sorted({*levels.ravel(), math.inf})
    safe = [tau for tau in candidates if is_safe(tau)]
    assert controller.threshold_ == max(safe, default=-math.inf)


@for_every_loss_and_rule
@settings(max_examples=8)
@given(data=calibration_sets(max_classes=20), seed=st.integers(0, 1000))
def test_the_order_of_rows_changes_nothing(loss, growth, data, seed):
    proba, y = data
    shuffle = np.random.default_rng(seed).permutation(len(y))
    here = calibrated(loss, growth, (proba, y), Fraction(1, 5))
    there = calibrated(loss, growth, (proba[shuffle], y[shuffle]), Fraction(1, 5))
    assert here.threshold_ == there.threshold_
    assert here.risk_curve_ == there.risk_curve_


@for_every_loss_and_rule
@settings(max_examples=8)
@given(data=calibration_sets(max_classes=20), chosen=st.lists(shares(), min_size=2, max_size=4))
def test_sets_are_nested_in_alpha_and_one_curve_answers_all(loss, growth, data, chosen):
    proba, y = data
    K = proba.shape[1]
    controller = calibrated(loss, growth, data, chosen[0])
    bound = controller.risk_curve_.bound
    masks = []
    for share in sorted(chosen):
        sets = controller.predict_set(proba, alpha=share * bound)
        assert sets == calibrated(loss, growth, data, share).predict_set(proba)
        masks.append(sets.mask())
    assert all((smaller <= larger).all() for larger, smaller in pairwise(masks))
    nothing_certified = controller.predict_set(proba, alpha=bound / (len(y) + 2))
    assert (nothing_certified.size == K).all()


@for_every_rule
@given(data=calibration_sets(max_rows=40, max_classes=6), share=shares())
def test_equal_weights_are_standard_split_conformal(growth, data, share):
    proba, y = data
    n = len(y)
    controller = orisk.RiskController(growth=growth, alpha=share).calibrate(proba, y)
    scores = np.sort(-growth.levels(proba)[np.arange(n), y])
    k = math.ceil((1 - share) * (n + 1))
    assert controller.threshold_ == (-scores[k - 1] if k <= n else -math.inf)


@given(share=shares(), n=st.integers(1, 300))
def test_alpha_means_the_decimals_that_were_written(share, n):
    """Half of the rows are missed at levels below 1/2; floating point would get some budgets wrong by one."""
    proba = np.tile([0.6, 0.4], (n, 1))
    y = np.ones(n, int)
    as_float = orisk.RiskController(alpha=float(share)).calibrate(proba, y)
    as_text = orisk.RiskController(alpha=str(share)).calibrate(proba, y)
    assert as_float.threshold_ == as_text.threshold_
    distinct = 0.4 - np.arange(n) * 1e-6
    proba = np.column_stack([1 - distinct, distinct])
    controller = orisk.RiskController(alpha=float(share)).calibrate(proba, y)
    missed = int(np.count_nonzero(~controller.predict_set(proba).contains(y)))
    assert missed == (0 if (n + 1) * share < 1 else min(n, math.floor((n + 1) * share) - 1))


def dyadic_probabilities(seed, n, K):
    """Multiples of 2**-20, so that sums are exact in floating point and enumeration can demand equality."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(2**20, rng.dirichlet(np.full(K, 0.7)), size=n) / 2**20


def unimodal_scores(seed, n, K):
    """Rows that rise to a peak somewhere and fall after it."""
    rng = np.random.default_rng(seed)
    rising = np.sort(rng.exponential(size=(n, K)), axis=1)
    before_peak = rng.random((n, K)) < 0.5
    return np.array([[*row[left], *row[~left][::-1]] for row, left in zip(rising, before_peak, strict=True)])


def intervals_around(m, K):
    return [(lower, upper) for lower in range(m + 1) for upper in range(m, K)]


def chain(level):
    """The sets of a row from the point label to the full scale."""
    sets = [(np.flatnonzero(level >= tau)[[0, -1]]) for tau in sorted(set(level), reverse=True)]
    return [(int(lower), int(upper)) for lower, upper in sets]


def model_risk(p, table):
    """``R(l, u)`` straight from its definition, exactly."""

    def risk(lower, upper):
        return sum(Fraction(p[i]) * table[i][min(max(i, lower), upper)] for i in range(len(p)))

    return risk


def assert_every_set_is_the_shortest(level, risk, m):
    K = len(level)
    for lower, upper in chain(level):
        least = min(risk(l, u) for l, u in intervals_around(m, K) if u - l == upper - lower)  # noqa: E741
        assert risk(lower, upper) == least


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), K=st.integers(2, 9), equal=st.booleans())
def test_greedy_is_shortest_for_unimodal_weighted_scores(seed, K, equal):
    weights = np.ones(K) if equal else 2.0 ** np.random.default_rng(seed).integers(0, 3, K)
    loss = orisk.WeightedLoss(weights, normalize=False)
    proba = unimodal_scores(seed, 3, K) / weights  # powers of two keep the order of the scores exact
    proba /= proba.sum(axis=1, keepdims=True)
    for p, level in zip(proba, orisk.PaperGrowth().levels(proba, loss), strict=True):
        assert_every_set_is_the_shortest(level, model_risk(p, loss.exact_costs(K)), int(level.argmax()))


def test_greedy_is_not_shortest_for_every_weighted_score():
    """Theorem 2 of the paper needs unimodal scores: greedy takes 0.15 first and misses 0.1 and then 0.3."""
    p = [0.3, 0.1, 0.4, 0.15, 0.05]
    level = orisk.PaperGrowth().levels([p])[0]
    risk = model_risk(p, orisk.WeightedLoss().exact_costs(5))
    lower, upper = chain(level)[2]
    assert risk(lower, upper) > min(risk(low, low + 2) for low in (0, 1, 2))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), K=st.integers(2, 9), power=st.integers(1, 3), under=st.integers(1, 3))
def test_greedy_is_shortest_for_divergence_whatever_the_probabilities(seed, K, power, under):
    loss = orisk.DivergenceLoss(power=power, under=under, normalize=False)
    proba = dyadic_probabilities(seed, 3, K)
    for p, level in zip(proba, orisk.PaperGrowth().levels(proba, loss), strict=True):
        m = int(level.argmax())
        assert_every_set_is_the_shortest(level, model_risk(p, loss.exact_costs(K)), m)


@pytest.mark.parametrize("rule", [orisk.FrontierGrowth, orisk.AdaptiveGrowth])
@pytest.mark.parametrize("loss", ["coverage", "zero weights", "divergence", "squared", "asymmetric", "table"])
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), K=st.integers(2, 9))
def test_frontier_attains_the_lower_convex_hull_of_size_and_risk(rule, loss, seed, K):
    loss = LOSSES[loss](K)
    proba = dyadic_probabilities(seed, 3, K)
    for p, level in zip(proba, rule().levels(proba, loss), strict=True):
        risk = model_risk(p, loss.exact_costs(K))
        m = int(level.argmax())
        corners = [(upper - lower + 1, risk(lower, upper)) for lower, upper in chain(level)]
        assert corners[-1] == (K, 0)
        for lower, upper in intervals_around(m, K):
            size = upper - lower + 1
            (s0, r0), (s1, r1) = next(
                pair for pair in [*pairwise(corners), (corners[-1],) * 2] if size <= pair[1][0]
            )
            on_the_hull = r0 if s0 == s1 else r0 + (r1 - r0) * (size - s0) / (s1 - s0)
            assert risk(lower, upper) >= on_the_hull


@settings(max_examples=30)
@given(data=calibration_sets(max_rows=4))
def test_adaptive_has_the_sets_of_frontier(data):
    proba, _ = data
    for frontier, adaptive in zip(
        orisk.FrontierGrowth().levels(proba, "divergence"),
        orisk.AdaptiveGrowth().levels(proba, "divergence"),
        strict=True,
    ):
        assert set(chain(adaptive)) <= set(chain(frontier))


@settings(max_examples=30)
@given(data=calibration_sets(max_rows=4, max_classes=12))
def test_rps_levels_are_minus_the_ranked_probability_score(data):
    proba, _ = data
    K = proba.shape[1]
    F = np.cumsum(proba.astype(float), axis=1)
    score = [((F - (j <= np.arange(K))) ** 2)[:, :-1].sum(axis=1) for j in range(K)]
    levels = orisk.RankedProbabilityGrowth().levels(proba)
    finite = np.isfinite(levels)
    assert (finite.sum(axis=1) == K - 1).all()
    assert levels[finite] == pytest.approx(-np.array(score).T[finite], abs=1e-12)
    best = np.array(score).T.min(axis=1)
    assert np.array(score).T[~finite] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("growth", [orisk.FrontierGrowth(), orisk.AdaptiveGrowth()], ids=repr)
@for_every_loss
@settings(max_examples=12)
@given(data=calibration_sets(max_classes=12))
def test_the_scale_may_be_read_from_either_end(loss, growth, data):
    """Mirroring labels, costs and probabilities mirrors the levels bit for bit."""
    proba, _ = data
    K = proba.shape[1]
    mirrored = orisk.CostTableLoss([row[::-1] for row in loss(K).exact_costs(K)[::-1]], normalize=False)
    levels = growth.levels(proba, loss(K))
    back = growth.levels(proba[:, ::-1], mirrored)[:, ::-1]
    same_point = ((levels == math.inf) == (back == math.inf)).all(axis=1)
    assert np.array_equal(levels[same_point], back[same_point])


@for_every_rule
@settings(max_examples=5)
@given(data=calibration_sets(max_classes=10), share=shares())
def test_the_same_table_is_the_same_loss(growth, data, share):
    """Nothing branches on where a table came from."""
    proba, _ = data
    K = proba.shape[1]
    for loss in LOSSES.values():
        table = orisk.CostTableLoss(loss(K).exact_costs(K), normalize=False)
        by_name = calibrated(loss, growth, data, share)
        by_table = calibrated(lambda _, table=table: table, growth, data, share)
        assert by_name.risk_curve_ == by_table.risk_curve_
        assert by_name.predict_set(proba) == by_table.predict_set(proba)
