"""Weights for wanted coverages: the targets are met on these rows, and the sets could hardly be smaller."""

import math
import re
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import calibration_sets
from unchecked import UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import RiskController, WeightedLoss, metrics, weights_for_coverage
from ordinalrisk.splitting import split_rows

pytestmark = UNCHECKED

MIXED = [0.7, 0.95, 0.9, 0.5, 0.8]


def graded(n_rows, n_classes, seed=0, spread=0.9):
    """A latent trait with noise, cut into grades of unequal shares, and a model that is off by a little."""
    rng = np.random.default_rng(seed)
    trait = 1.5 * rng.normal(size=n_rows)
    cuts = np.linspace(-2.2, 1.6, n_classes - 1)
    y = np.digitize(trait + 0.6 * rng.normal(size=n_rows), cuts)
    inner = 1 / (1 + np.exp(-(cuts - trait[:, None] - 0.3) * 1.7 / spread))
    return orisk.probabilities.from_cumulative(inner), y


def covered(proba, y, result, growth="frontier"):
    """The result of a controller with these weights on its calibration rows."""
    controller = RiskController(result.loss, result.alpha, growth, result.classes).calibrate(proba, y)
    return controller, controller.predict_set(proba)


def meets(y, sets, targets):
    inside = sets.contains(y)
    return all(
        inside[y == k].sum() >= Fraction(str(target)) * (y == k).sum()
        for k, target in enumerate(targets)
        if target is not None
    )


def smallest_size(proba, y, targets, weights):
    """The mean size at the largest threshold that meets the targets, straight from the levels."""
    levels = orisk.FrontierGrowth().levels(proba, WeightedLoss(weights))
    own = levels[np.arange(len(y)), y]
    threshold = min(
        np.sort(own[y == k])[::-1][math.ceil(Fraction(str(target)) * int((y == k).sum())) - 1]
        for k, target in enumerate(targets)
    )
    return (levels >= threshold).sum() / len(y)


@pytest.mark.parametrize("growth", ["frontier", "adaptive", "paper", orisk.FrontierGrowth("bayes")], ids=str)
@pytest.mark.parametrize("targets", [[0.8] * 5, [0.95] * 5, MIXED], ids=str)
def test_targets_are_met_where_the_weights_were_chosen(growth, targets):
    proba, y = graded(600, 5)
    result = weights_for_coverage(proba, y, targets, growth=growth)
    controller, sets = covered(proba, y, result, growth)
    assert meets(y, sets, targets)
    assert result.coverage == tuple(metrics.class_coverage(y, sets))
    assert result.mean_size == metrics.mean_size(sets)
    assert result.loss == WeightedLoss(result.weights)
    assert result.targets == tuple(Fraction(str(target)) for target in targets)
    total = controller.risk_curve_.total_loss(controller.threshold_)
    assert result.alpha == (total + 1) / Fraction(len(y) + 1)


@pytest.mark.parametrize("targets", [[0.8] * 5, [0.95] * 5, MIXED], ids=str)
def test_a_larger_alpha_misses_a_target(targets):
    proba, y = graded(600, 5, seed=3)
    result = weights_for_coverage(proba, y, targets)
    controller, _ = covered(proba, y, result)
    curve = controller.risk_curve_
    above = curve.total_loss(math.nextafter(controller.threshold_, math.inf))
    assert not meets(y, controller.predict_set(proba, alpha=(above + 1) / (len(y) + 1)), targets)


@settings(max_examples=20)
@given(data=calibration_sets(max_rows=14, max_classes=5), seed=st.integers(0, 1000))
def test_targets_are_met_whatever_the_rows(data, seed):
    proba, y = data
    rng = np.random.default_rng(seed)
    targets = {int(k): str(rng.choice(["0.1", "0.5", "0.9", "0.999"])) for k in np.unique(y)}
    result = weights_for_coverage(proba, y, targets)
    _, sets = covered(proba, y, result)
    assert meets(y, sets, [targets.get(k) for k in range(proba.shape[1])])
    assert metrics.mean_size(sets) == result.mean_size


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("targets", [[0.8] * 5, [0.9] * 5, MIXED], ids=str)
def test_intervals_are_smaller_than_those_of_equal_weights(targets, seed):
    proba, y = graded(800, 5, seed)
    result = weights_for_coverage(proba, y, targets)
    plain = smallest_size(proba, y, targets, [1] * 5)
    assert result.mean_size == smallest_size(proba, y, targets, result.weights)
    assert result.mean_size < 0.9 * plain


def test_equal_weights_are_kept_where_nothing_is_smaller():
    proba = np.array([[0.6, 0.4], [0.4, 0.6]] * 5)
    y = np.array([0, 1] * 5)
    assert weights_for_coverage(proba, y, 0.9).weights == (1, 1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("target", [0.8, 0.9, 0.95])
def test_no_weights_of_a_grid_are_better_for_two_classes(target, seed):
    proba, y = graded(300, 2, seed, spread=2)
    result = weights_for_coverage(proba, y, target)
    grid = np.geomspace(0.01, 100, 300)
    best = min(smallest_size(proba, y, [target] * 2, [1, weight]) for weight in grid)
    assert result.mean_size <= 1.003 * best


@pytest.mark.parametrize("targets", [[0.8] * 3, [0.9] * 3, [0.7, 0.95, 0.9]], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_no_weights_of_a_grid_are_better_for_three_classes(targets, seed):
    proba, y = graded(300, 3, seed, spread=1.4)
    result = weights_for_coverage(proba, y, targets)
    grid = [float(f"{weight:.3g}") for weight in np.geomspace(0.05, 20, 24)]
    best = min(smallest_size(proba, y, targets, [1, *weights]) for weights in product(grid, grid))
    assert result.mean_size <= 1.003 * best


def test_coverages_hold_on_fresh_rows_after_a_split():
    """Weights from one half, the threshold from the other: within 4 standard deviations on new rows."""
    proba, y = graded(20_000, 5)
    choose, calibrate = split_rows(y, random_state=0)
    result = weights_for_coverage(proba[choose], y[choose], MIXED)
    controller = RiskController(result.loss, result.alpha).calibrate(proba[calibrate], y[calibrate])
    new, truth = graded(40_000, 5, seed=1)
    found = metrics.class_coverage(truth, controller.predict_set(new))
    for k, target in enumerate(MIXED):
        fewest = min((y[part] == k).sum() for part in (choose, calibrate))
        deviation = math.sqrt(target * (1 - target) * (2 / fewest + 1 / (truth == k).sum()))
        assert abs(found[k] - target) < 4 * deviation
    assert metrics.risk(truth, controller.predict_set(new), result.loss) < float(result.alpha) + 0.01


def test_weights_are_short_decimals_and_the_largest_is_one():
    for seed in range(5):
        weights = weights_for_coverage(*graded(400, 6, seed), 0.85).weights
        assert max(weights) == 1
        assert all(weight == float(f"{weight:.3g}") and type(weight) is float for weight in weights)


def test_rounding_undoes_no_coverage():
    """A row may be covered because its label is just the point label: the last digit then decides much."""
    result = weights_for_coverage(*graded(1_000, 5, seed=2), [0.7, 0.95, 0.9, 0.5, 0.7])
    assert result.mean_size < 1.35


def test_a_class_without_a_target_makes_no_interval_larger():
    proba, y = graded(600, 5)
    all_classes = weights_for_coverage(proba, y, 0.9)
    some = weights_for_coverage(proba, y, {1: 0.9, 3: 0.9, 4: 0.9})
    assert min(some.coverage[1], *some.coverage[3:]) >= 0.9
    assert some.weights[0] == some.weights[2] == 0
    assert some.mean_size < all_classes.mean_size - 0.3
    assert some.targets == (None, Fraction(9, 10), None, Fraction(9, 10), Fraction(9, 10))
    assert weights_for_coverage(proba, y, [None, 0.9, 0, "0.9", 0.9]).weights == some.weights


def test_a_larger_target_gets_a_larger_weight():
    proba, y = graded(2_000, 5)
    weights = [
        weights_for_coverage(proba, y, [0.8, 0.8, target, 0.8, 0.8]).weights for target in (0.6, 0.8, 0.95)
    ]
    relative = [w[2] / w[0] for w in weights]
    assert relative[0] < relative[1] < relative[2]


def test_labels_that_are_given_no_chance_need_all_labels():
    proba = np.tile([0.5, 0.5, 0.0, 0.0], (20, 1))
    y = np.array([0, 1, 2, 3] * 5)
    result = weights_for_coverage(proba, y, 0.9)
    assert result.mean_size == 4
    assert result.alpha == Fraction(1, 21)
    assert result.coverage == (1, 1, 1, 1)


def test_a_target_is_a_number_of_rows_exactly():
    """0.29 of 100 rows are 29 of them; the nearest float is a little less, and 0.290000001 makes them 30."""
    second = np.concatenate([np.full(100, 0.1), np.linspace(0.11, 0.48, 100)])
    proba, y = np.column_stack([1 - second, second]), np.repeat([0, 1], 100)
    few = weights_for_coverage(proba, y, [0.99, 0.29])
    more = weights_for_coverage(proba, y, [0.99, "0.290000001"])
    assert (few.coverage[1], more.coverage[1]) == (0.29, 0.3)


@pytest.mark.parametrize(
    "targets",
    [
        "0.8",
        Fraction(4, 5),
        [0.8] * 3,
        np.full(3, 0.8),
        {"low": 0.8, "mid": 0.8, "high": 0.8},
        pd.Series({"low": 0.8, "mid": 0.8, "high": 0.8}),
    ],
    ids=repr,
)
def test_targets_may_come_in_several_ways(targets):
    proba, y = graded(200, 3)
    names = np.array(["low", "mid", "high"])
    frame = pd.DataFrame(proba, columns=names)
    assert weights_for_coverage(frame, names[y], targets, classes=names) == weights_for_coverage(
        proba, pd.Series(pd.Categorical(names[y], names, ordered=True)), 0.8
    )


def test_it_prints_as_a_table():
    proba, y = graded(400, 3)
    names = np.array(["low", "mid", "high"])
    result = weights_for_coverage(proba, names[y], {"mid": 0.9, "high": 0.9}, classes=names)
    header, *rows, last = str(result).splitlines()
    assert header.split() == ["class", "target", "coverage", "weight"]
    assert rows[0].split() == ["low", f"{result.coverage[0]:.4f}", "0"]
    assert rows[1].split() == ["mid", "0.9", f"{result.coverage[1]:.4f}", f"{result.weights[1]:g}"]
    assert last == f"alpha {float(result.alpha):.4g}, mean size {result.mean_size:.4g}"


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (1, "targets must lie between 0 and 1, below 1; that of class 0 is 1."),
        ([0.5, -0.1, 0.5], "targets must lie between 0 and 1, below 1; that of class 1 is -0.1."),
        ({2: 1.5}, "targets must lie between 0 and 1, below 1; that of class 2 is 1.5."),
        ({"low": 0.5}, "targets has 'low', which is not one of the classes [0, 1, 2]."),
        ([0.5, 0.5], "targets must be one number, a number for each of the 3 classes, or a mapping"),
        (None, "targets must be one number, a number for each of the 3 classes, or a mapping"),
        ("most", "targets must be a finite number; got 'most'."),
        ({0: math.nan}, "targets must be a finite number; got nan."),
        ({}, "targets are all missing or 0; give at least one class a coverage to reach."),
        (0, "targets are all missing or 0; give at least one class a coverage to reach."),
    ],
    ids=repr,
)
def test_targets_that_are_none(targets, message):
    proba, y = graded(60, 3)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        weights_for_coverage(proba, y, targets)


def test_a_class_without_rows_can_not_have_a_target():
    proba, y = graded(60, 3)
    some = y != 1
    message = "Class 1 has a target but no rows; leave it out of targets, or add rows."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        weights_for_coverage(proba[some], y[some], 0.9)
    assert math.isnan(weights_for_coverage(proba[some], y[some], {0: 0.9, 2: 0.9}).coverage[1])


@pytest.mark.parametrize(
    ("growth", "message"),
    [
        ("rps", 'growth="rps" does not depend on the weights of a loss; take "frontier".'),
        (orisk.FrontierGrowth("given"), "growth must find its own point labels"),
        ("nearest", "growth='nearest' is not known"),
    ],
    ids=str,
)
def test_rules_that_have_no_use_for_weights(growth, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        weights_for_coverage(*graded(60, 3), 0.9, growth=growth)


def test_rows_that_are_no_probabilities():
    proba, y = graded(60, 3)
    with pytest.raises(ValueError, match="Row 0 of proba sums to 2"):
        weights_for_coverage(2 * proba, y, 0.9)
