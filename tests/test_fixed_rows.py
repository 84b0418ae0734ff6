"""Many splits of the same rows: each gives what a controller on its halves gives, to the label."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    calibration_sets,
    exact_losses,
    for_every_loss,
    for_every_rule,
    shares,
)
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import RiskController, metrics
from reproduction.fixed_rows import FixedRows

pytestmark = [FEW, UNCHECKED]


def in_tenths(n_rows, n_classes, seed=0):
    """Probabilities of one decimal, so that levels tie within rows and between them, and any labels."""
    rng = np.random.default_rng(seed)
    proba = rng.multinomial(10, rng.dirichlet(np.ones(n_classes)), size=n_rows) / 10
    return proba, rng.integers(0, n_classes, n_rows)


def close(values):
    return pytest.approx(values, rel=0, abs=1e-12, nan_ok=True)


def assert_as_by_controllers(proba, y, loss, growth, calibration, alphas):
    """The risk is the correctly rounded one. One label more or less changes a size by ``1 / len(y)``."""
    test = np.setdiff1d(np.arange(len(y)), calibration)
    K = proba.shape[1]
    results = list(FixedRows(proba, y, loss, growth).test(calibration, alphas))
    assert len(results) == len(alphas)
    for alpha, result in zip(alphas, results, strict=True):
        controller = RiskController(loss, alpha, growth).calibrate(proba[calibration], y[calibration])
        sets = controller.predict_set(proba[test])
        losses = exact_losses(y[test], sets.lower_index, sets.upper_index, loss, K)
        assert result.risk == float(sum(losses) / len(test))
        assert result.risk == pytest.approx(metrics.risk(y[test], sets, loss), rel=1e-12, abs=1e-12)
        assert result.size == close(metrics.mean_size(sets))
        assert result.class_coverage == close(tuple(metrics.class_coverage(y[test], sets)))
        assert result.class_size == close(tuple(metrics.mean_size(sets[y[test] == k]) for k in range(K)))


@st.composite
def splits(draw, data):
    """Rows, some of them for calibration, and a few alphas as shares of the bound, in any order."""
    proba, y = draw(data)
    proba, y = np.tile(proba, (2, 1)), np.tile(y, 2)  # at least two rows, and ties of whole rows
    n_calibration = draw(st.integers(1, len(y) - 1))
    order = np.random.default_rng(draw(st.integers(0, 1000))).permutation(len(y))
    return proba, y, order[:n_calibration], draw(st.lists(shares(), min_size=1, max_size=4))


@for_every_rule
@for_every_loss
@settings(max_examples=4)
@given(split=splits(calibration_sets(max_rows=20, max_classes=10)))
def test_a_split_is_a_calibration_of_its_own(loss, growth, split):
    proba, y, calibration, chosen = split
    K = proba.shape[1]
    alphas = [share * loss(K).bound(K) for share in chosen]
    assert_as_by_controllers(proba, y, loss(K), growth, calibration, alphas)


@for_every_rule
@for_every_loss
def test_ties_within_rows_and_between_them(loss, growth):
    """At alphas where the budget is met exactly, just missed, and anything between."""
    proba, y = in_tenths(70, 5)
    calibration = np.arange(70)[::2]
    bound, n = loss(5).bound(5), len(calibration)
    curve = (
        RiskController(loss(5), bound / 2, growth).calibrate(proba[calibration], y[calibration]).risk_curve_
    )
    met = [(int(total) * curve.unit + bound) / (n + 1) for total in curve.totals[::3]]
    alphas = [near for alpha in met for near in (alpha, alpha - Fraction(1, 10**30)) if near < bound]
    assert_as_by_controllers(proba, y, loss(5), growth, calibration, alphas)


@for_every_rule
@for_every_loss
def test_classes_without_rows(loss, growth):
    """Class 1 has no rows at all, class 3 only calibration rows, class 4 only test rows."""
    proba, _ = in_tenths(60, 6, seed=1)
    y = np.array([0, 2, 3, 5, 0, 2, 4, 5] * 8)[:60]
    calibration = np.flatnonzero(np.arange(60) % 8 < 4)
    alphas = [share * loss(6).bound(6) for share in (Fraction(1, 10), Fraction(1, 3))]
    assert_as_by_controllers(proba, y, loss(6), growth, calibration, alphas)
    for result in FixedRows(proba, y, loss(6), growth).test(calibration, alphas):
        without_rows = [math.isnan(value) for value in result.class_coverage]
        assert without_rows == [False, True, False, True, False, False]
        assert without_rows == [math.isnan(value) for value in result.class_size]


@for_every_rule
@for_every_loss
def test_too_few_rows_give_full_sets(loss, growth):
    proba, y = in_tenths(20, 5)
    calibration, bound = np.arange(9), loss(5).bound(5)
    too_small, enough = bound / 10 - Fraction(1, 10**15), bound / 10
    rows = FixedRows(proba, y, loss(5), growth)
    [result] = rows.test(calibration, [too_small])
    assert (result.risk, result.size) == (0, 5)
    assert {value for value in result.class_size if not math.isnan(value)} == {5}
    assert {value for value in result.class_coverage if not math.isnan(value)} == {1}
    assert_as_by_controllers(proba, y, loss(5), growth, calibration, [too_small, enough])


@for_every_rule
@for_every_loss
def test_single_labels_when_they_keep_within_alpha(loss, growth, draw):
    proba, y = draw(200, 5)
    calibration, bound = np.arange(100), loss(5).bound(5)
    alpha = bound - Fraction(1, 10**6)
    [result] = FixedRows(proba, y, loss(5), growth).test(calibration, [alpha])
    assert result.size == 1
    assert set(result.class_size) == {1}
    assert_as_by_controllers(proba, y, loss(5), growth, calibration, [alpha])


def test_alphas_in_any_order_and_again(draw):
    proba, y = draw(120, 5)
    rows, calibration = FixedRows(proba, y, orisk.DivergenceLoss(), "paper"), np.arange(50)
    alphas = [0.3, 0.05, 0.1, 0.3, 0.01, 0.05, 0.99]
    together = list(rows.test(calibration, alphas))
    assert together == [result for alpha in alphas for result in rows.test(calibration, [alpha])]
    assert together[0] == together[3]
    assert together[1] == together[5]
    assert len({result.size for result in together}) == 5
    assert_as_by_controllers(proba, y, orisk.DivergenceLoss(), orisk.PaperGrowth(), calibration, alphas)


def test_no_alpha_is_no_result(draw):
    rows = FixedRows(*draw(20, 3), orisk.WeightedLoss(), "paper")
    assert list(rows.test(np.arange(10), [])) == []


def test_one_split_leaves_nothing_behind(draw):
    """The same rows, in any order, give the same; other splits between change nothing."""
    proba, y = draw(100, 4)
    rows, calibration = FixedRows(proba, y, orisk.WeightedLoss(), "frontier"), np.arange(0, 100, 3)
    before = list(rows.test(calibration, [0.1, 0.4]))
    list(rows.test(np.arange(70), [0.2]))
    assert list(rows.test(calibration[::-1], [0.1, 0.4])) == before
    assert list(FixedRows(proba, y, orisk.WeightedLoss(), "frontier").test(calibration, [0.1, 0.4])) == before


@for_every_rule
def test_rows_of_single_precision(growth, draw):
    proba, y = draw(120, 5)
    calibration = np.arange(60)
    assert_as_by_controllers(
        proba.astype(np.float32), y, orisk.DivergenceLoss(), growth, calibration, [0.02, 0.1]
    )


def test_by_hand():
    """Truths at the levels 0.1, 0.2 and 0.3 calibrate; a budget of 4 * 0.6 - 1 pays for missing one."""
    proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.85, 0.15], [0.75, 0.25], [0.35, 0.65]])
    y = np.array([1, 1, 1, 1, 1, 0])
    [result] = FixedRows(proba, y, orisk.WeightedLoss(), "frontier").test(np.arange(3), [0.6])
    assert result.risk == 1 / 3
    assert result.size == close(5 / 3)
    assert result.class_coverage == (1, 0.5)
    assert result.class_size == (2, 1.5)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5])
def test_an_alpha_that_is_none(alpha, draw):
    rows = FixedRows(*draw(20, 3), orisk.WeightedLoss(), "paper")
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and the largest loss, B=1; got"):
        list(rows.test(np.arange(10), [0.2, alpha]))


WIDE_TOTALS = {
    "floats as weights": (orisk.WeightedLoss([1 / 3, 1 / 7, 1 / 9, 1 / 11, 1 / 13]), 4000),
    "large costs": (orisk.WeightedLoss([3 * 10**18, 10**18, 1, 1, 2 * 10**18], normalize=False), 60),
}


@pytest.mark.parametrize("case", WIDE_TOTALS)
def test_totals_that_64_bits_are_too_few_for(case, draw):
    loss, n_rows = WIDE_TOTALS[case]
    proba, _ = draw(n_rows, 5)
    y = np.random.default_rng(0).integers(0, 5, n_rows)
    alphas = [loss.bound(5) * Fraction(1, 5), loss.bound(5) / 2]
    assert_as_by_controllers(proba, y, loss, orisk.FrontierGrowth(), np.arange(n_rows // 2), alphas)


def test_costs_that_64_bits_are_too_few_for(draw):
    """Then the table itself holds Python's integers."""
    loss = orisk.CostTableLoss([[0, 10**19, 2 * 10**19], [10**18, 0, 1], [3 * 10**19, 7, 0]], normalize=False)
    proba, y = draw(60, 3)
    alphas = [loss.bound(3) * Fraction(percent, 100) for percent in (5, 20, 60)]
    assert_as_by_controllers(proba, y, loss, orisk.FrontierGrowth(), np.arange(30), alphas)
