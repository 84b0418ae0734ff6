"""Choosing ``alpha`` by size or by single labels: the smallest that will do, for every loss and rule."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from strategies import (
    LOSSES,
    calibration_sets,
    ends_of,
    exact_losses,
    for_every_loss,
    for_every_rule,
)
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import RiskController, alpha_for_singletons, alpha_for_size

pytestmark = UNCHECKED

TINY = Fraction(1, 10**12)
sizes = st.integers(0, 12).map(lambda twelfths: Fraction(twelfths, 12))  # shares of the way from 1 to K


def calibrated(loss, growth, proba, y, point_labels=None):
    K = proba.shape[1]
    alpha = loss(K).bound(K) / 2
    return RiskController(loss(K), alpha, growth).calibrate(proba, y, point_labels=point_labels)


def in_two(data):
    """Calibration rows with their labels, and new rows; a single row is both."""
    proba, y = data
    n = len(y)
    return proba[: (n + 1) // 2], y[: (n + 1) // 2], proba[n // 2 :]


def smallest_certifiable(controller):
    return controller.risk_curve_.bound / (controller.risk_curve_.n_rows + 1)


def mean_size(controller, proba, alpha, point_labels=None):
    size = controller.predict_set(proba, alpha=alpha, point_labels=point_labels).size
    return Fraction(int(size.sum()), len(size))


def least_risks(controller, proba, y, new, will_do, points=(None, None)):
    """The least risk of all thresholds with sizes that will do, in rationals; None if that is the bound.

    Each of ``will_do`` looks at the sizes of the new rows.
    """
    n, K = proba.shape
    levels = controller.growth.levels(proba, controller.loss, points[0])
    new_levels = controller.growth.levels(new, controller.loss, points[1])
    bound = controller.loss.bound(K)
    found = []
    for threshold in {-math.inf, *levels.ravel().tolist()}:
        total = sum(exact_losses(y, *ends_of(levels, threshold), controller.loss, K))
        found.append(((total + bound) / (n + 1), (new_levels >= threshold).sum(axis=1)))
    return [
        min((risk for risk, sizes in found if good(sizes) and risk < bound), default=None) for good in will_do
    ]


def enumerated(controller, proba, y, new, sizes, points=(None, None)):
    """The least risk that keeps each mean size."""
    will_do = [lambda found, size=size: int(found.sum()) <= size * len(new) for size in sizes]
    return least_risks(controller, proba, y, new, will_do, points)


def chosen_or_none(controller, proba, wanted, point_labels=None, choose=alpha_for_size):
    try:
        return choose(controller, proba, wanted, point_labels=point_labels)
    except ValueError as error:
        if "No alpha below B=" not in str(error):
            raise
        return None


@pytest.mark.no_cover
@for_every_rule
@for_every_loss
@settings(max_examples=4)
@given(data=calibration_sets(max_rows=16, max_classes=8), share=sizes)
def test_it_is_the_least_risk_of_all_thresholds_that_keep_the_size(loss, growth, data, share):
    proba, y, new = in_two(data)
    size = 1 + share * (proba.shape[1] - 1)
    controller = calibrated(loss, growth, proba, y)
    assert [chosen_or_none(controller, new, size)] == enumerated(controller, proba, y, new, [size])


@FEW
@for_every_rule
@for_every_loss
@settings(max_examples=4)
@given(data=calibration_sets(max_rows=40, max_classes=20), share=sizes)
def test_the_size_is_kept_and_no_smaller_alpha_keeps_it(loss, growth, data, share):
    proba, y, new = in_two(data)
    n, K = proba.shape
    size = 1 + share * (K - 1)
    controller = calibrated(loss, growth, proba, y)
    alpha = chosen_or_none(controller, new, size)
    if alpha is None:
        return
    assert isinstance(alpha, Fraction)
    assert smallest_certifiable(controller) <= alpha < controller.risk_curve_.bound
    assert mean_size(controller, new, alpha) <= size
    if alpha > smallest_certifiable(controller):
        curve = controller.risk_curve_
        risks = [(total * curve.unit + curve.bound) / (n + 1) for total in [0, *curve.totals.tolist()]]
        step_before = risks[risks.index(alpha) - 1]
        for less in (alpha - TINY, step_before, (alpha + step_before) / 2):
            assert mean_size(controller, new, less) > size


@for_every_rule
@for_every_loss
def test_ties_within_rows_and_between_them(loss, growth):
    """Probabilities in tenths: many rows step at each level, so sizes fall in long jumps."""
    rng = np.random.default_rng(1)
    proba = rng.multinomial(10, [0.1, 0.2, 0.4, 0.2, 0.1], size=20) / 10
    new = rng.multinomial(10, [0.3, 0.3, 0.1, 0.2, 0.1], size=30) / 10
    y = rng.integers(0, 5, 20)
    controller = calibrated(loss, growth, proba, y)
    sizes = [Fraction(size) for size in ("1", "1.5", "7/3", "3", "4.99", "5")]
    chosen = [chosen_or_none(controller, new, size) for size in sizes]
    assert chosen == enumerated(controller, proba, y, new, sizes)


@for_every_rule
@for_every_loss
def test_all_labels_need_only_what_can_be_certified(loss, growth, draw):
    proba, y = draw(40, 6)
    controller = calibrated(loss, growth, proba, y)
    assert alpha_for_size(controller, proba, 6) == controller.risk_curve_.bound / 41


@for_every_rule
@for_every_loss
def test_size_one_is_single_labels(loss, growth, draw):
    proba, y = draw(200, 6)
    controller = calibrated(loss, growth, proba, y)
    new, _ = draw(50, 6, seed=1)
    alpha = alpha_for_size(controller, new, 1)
    assert (controller.predict_set(new, alpha=alpha).size == 1).all()


@pytest.mark.parametrize("rule", [orisk.PaperGrowth, orisk.FrontierGrowth, orisk.AdaptiveGrowth])
@for_every_loss
@settings(max_examples=4)
@given(data=calibration_sets(max_rows=16, max_classes=6), share=sizes, seed=st.integers(0, 1000))
def test_intervals_may_grow_from_given_labels(rule, loss, data, share, seed):
    proba, y, new = in_two(data)
    K = proba.shape[1]
    rng = np.random.default_rng(seed)
    points, new_points = rng.integers(0, K, len(proba)), rng.integers(0, K, len(new))
    size = 1 + share * (K - 1)
    controller = calibrated(loss, rule("given"), proba, y, points)
    alpha = chosen_or_none(controller, new, size, new_points)
    assert [alpha] == enumerated(controller, proba, y, new, [size], (points, new_points))


def test_given_labels_must_be_given(draw):
    proba, y = draw(50, 4)
    controller = calibrated(LOSSES["coverage"], orisk.PaperGrowth("given"), proba, y, y)
    with pytest.raises(ValueError, match="point='given', but point_labels were not given"):
        alpha_for_size(controller, proba, 2)


@pytest.mark.parametrize("scale", [Fraction(1, 7), 1, 40])
def test_alpha_has_the_units_of_the_loss(scale, draw):
    proba, y = draw(100, 5)
    table = [[scale * abs(i - j) for j in range(5)] for i in range(5)]
    natural = RiskController(orisk.CostTableLoss(table, normalize=False), scale / 2).calibrate(proba, y)
    normalized = RiskController("divergence").calibrate(proba, y)
    assert alpha_for_size(natural, proba, 2) == 4 * scale * alpha_for_size(normalized, proba, 2)


def three_missed_and_two_new_rows():
    """Labels at levels 0.1, 0.2 and 0.4 are missed above them; new rows shrink above 0.3 and above 0.45."""
    proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]])
    return RiskController(alpha=0.5).calibrate(proba, [1, 1, 1]), np.array([[0.7, 0.3], [0.55, 0.45]])


def test_by_hand():
    controller, new = three_missed_and_two_new_rows()
    assert alpha_for_size(controller, new, 2) == Fraction(1, 4)
    assert alpha_for_size(controller, new, 1.5) == Fraction(3, 4)
    assert alpha_for_size(controller, new, 1.99) == Fraction(3, 4)
    with pytest.raises(ValueError, match="No alpha below B=1 "):
        alpha_for_size(controller, new, 1.49)


def test_perfect_point_labels_need_no_more_than_can_be_certified():
    proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]])
    controller = RiskController(alpha=0.5).calibrate(proba, [0, 0, 1])
    assert alpha_for_size(controller, proba, 1) == Fraction(1, 4)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.7])
def test_the_calibrated_alpha_plays_no_part(alpha, draw):
    proba, y = draw(200, 5)
    controller = RiskController(alpha=alpha).calibrate(proba, y)
    threshold = controller.threshold_
    assert alpha_for_size(controller, proba, 2) == alpha_for_size(
        RiskController().calibrate(proba, y), proba, 2
    )
    assert controller.threshold_ == threshold


@pytest.mark.parametrize("size", [2.3, "2.3", Decimal("2.3"), Fraction(23, 10), np.float32(2.3)], ids=repr)
def test_size_means_the_decimals_that_are_written(size):
    """23 labels in ten rows are 2.3 each, though the nearest float is less than that."""
    proba = [[0.5, 0.3, 0.2]] * 6 + [[0.6, 0.3, 0.1]] + [[0.8, 0.1, 0.1]] * 3
    controller = RiskController(alpha=0.5).calibrate([[0.75, 0.15, 0.1]], [1])
    assert Fraction(2.3) < Fraction(23, 10) == mean_size(controller, proba, Fraction(1, 2))
    assert alpha_for_size(controller, proba, size) == Fraction(1, 2)
    with pytest.raises(ValueError, match=r"No alpha below B=1 brings the mean size down to 2\.2999:"):
        alpha_for_size(controller, proba, "2.2999")


@pytest.mark.parametrize(
    "container", [np.ndarray.tolist, np.asfortranarray, pd.DataFrame], ids=lambda c: c.__name__
)
def test_rows_may_come_as_for_predict_set(container, draw):
    proba, y = draw(200, 5)
    controller = RiskController().calibrate(proba, y)
    assert alpha_for_size(controller, container(proba), 2) == alpha_for_size(controller, proba, 2)


@pytest.mark.parametrize("size", [0, 0.999, -1, 5.001, 6, 1e300, Fraction(1, 2)], ids=repr)
def test_a_size_that_no_set_has(size, draw):
    controller = RiskController().calibrate(*draw(50, 5))
    message = f"size must lie between 1 and the number of labels, 5; got {size}."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        alpha_for_size(controller, draw(50, 5)[0], size)


@pytest.mark.parametrize("size", ["two", None, math.nan, math.inf, -math.inf, [2], True, "1/0", ""], ids=repr)
def test_a_size_that_is_no_number(size, draw):
    controller = RiskController().calibrate(*draw(50, 5))
    with pytest.raises(ValueError, match=f"^size must be a finite number; got {re.escape(repr(size))}"):
        alpha_for_size(controller, draw(50, 5)[0], size)


def test_without_a_calibration(draw):
    with pytest.raises(NotFittedError, match=r"not calibrated yet; call calibrate\(proba, y\) first"):
        alpha_for_size(RiskController(), draw(50, 5)[0], 2)


@pytest.mark.parametrize(
    ("loss", "bound"), [("coverage", "1"), (orisk.WeightedLoss([0.3, 0.2, 0.3], normalize=False), "0.3")]
)
def test_point_labels_that_are_as_wrong_as_they_can_be(loss, bound):
    proba = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    controller = RiskController(loss, alpha=float(bound) / 2).calibrate(proba, [2, 0])
    message = (
        f"No alpha below B={bound} brings the mean size down to 1: the point labels of the calibration rows "
        "are as wrong as they can be."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        alpha_for_size(controller, proba, 1)
    assert alpha_for_size(controller, proba, 3) == controller.risk_curve_.bound / 3


@pytest.mark.parametrize("n_classes", [4, 6])
def test_another_number_of_classes(n_classes, draw):
    controller = RiskController().calibrate(*draw(50, 5))
    with pytest.raises(ValueError, match=f"proba has {n_classes} columns, but the calibration had 5 classes"):
        alpha_for_size(controller, draw(50, n_classes)[0], 2)


def test_rows_that_are_no_probabilities(draw):
    proba, y = draw(50, 5)
    controller = RiskController().calibrate(proba, y)
    with pytest.raises(ValueError, match="Row 0 of proba sums to 2"):
        alpha_for_size(controller, 2 * proba, 2)
    with pytest.raises(ValueError, match="proba has no rows"):
        alpha_for_size(controller, proba[:0], 2)


def test_columns_in_another_order(draw):
    proba, y = draw(50, 3)
    frame = pd.DataFrame(proba, columns=["low", "mid", "high"])
    controller = RiskController(classes=list(frame)).calibrate(frame, np.array(list(frame))[y])
    with pytest.raises(ValueError, match="columns of proba are in the order"):
        alpha_for_size(controller, frame[["high", "mid", "low"]], 2)


# the share of single labels


def singles_enumerated(controller, proba, y, new, shares, points=(None, None)):
    """The least risk with each share of single labels."""
    will_do = [lambda found, share=share: int((found == 1).sum()) >= share * len(new) for share in shares]
    return least_risks(controller, proba, y, new, will_do, points)


singles_or_none = partial(chosen_or_none, choose=alpha_for_singletons)


@for_every_rule
@for_every_loss
@settings(max_examples=4)
@given(data=calibration_sets(max_rows=16, max_classes=8), share=sizes)
def test_singletons_have_the_least_risk_of_all_thresholds(loss, growth, data, share):
    proba, y, new = in_two(data)
    controller = calibrated(loss, growth, proba, y)
    assert [singles_or_none(controller, new, share)] == singles_enumerated(controller, proba, y, new, [share])


def test_singletons_with_ties_within_rows_and_between_them():
    rng = np.random.default_rng(1)
    proba = rng.multinomial(10, [0.1, 0.2, 0.4, 0.2, 0.1], size=20) / 10
    new = rng.multinomial(10, [0.3, 0.3, 0.1, 0.2, 0.1], size=30) / 10
    controller = calibrated(LOSSES["divergence"], "frontier", proba, y := rng.integers(0, 5, 20))
    wanted = [Fraction(share) for share in ("0", "1/30", "0.1", "0.5", "0.999", "1")]
    assert [singles_or_none(controller, new, share) for share in wanted] == singles_enumerated(
        controller, proba, y, new, wanted
    )


def test_singletons_from_given_labels(draw):
    proba, y = draw(80, 4)
    points = np.random.default_rng(0).integers(0, 4, 80)
    controller = calibrated(LOSSES["divergence"], orisk.FrontierGrowth("given"), proba, y, points)
    alpha = alpha_for_singletons(controller, proba, 0.5, point_labels=points)
    assert [alpha] == singles_enumerated(controller, proba, y, proba, [Fraction(1, 2)], (points, points))
    with pytest.raises(ValueError, match="point='given', but point_labels were not given"):
        alpha_for_singletons(controller, proba, 0.5)


def test_singletons_by_hand():
    controller, new = three_missed_and_two_new_rows()
    assert alpha_for_singletons(controller, new, 0) == Fraction(1, 4)
    assert alpha_for_singletons(controller, new, 0.5) == Fraction(3, 4)
    message = (
        "No alpha below B=1 brings the share of single labels up to 0.51: the point labels of the "
        "calibration rows are as wrong as they can be."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        alpha_for_singletons(controller, new, 0.51)


def test_all_single_labels_have_size_one(draw):
    proba, y = draw(200, 6)
    controller = RiskController().calibrate(proba, y)
    assert alpha_for_singletons(controller, proba, 1) == alpha_for_size(controller, proba, 1)


@pytest.mark.parametrize("share", [0.3, "0.3", Decimal("0.3"), Fraction(3, 10)], ids=repr)
def test_a_share_means_the_decimals_that_are_written(share):
    """3 of ten rows are 0.3 of them; a share that is larger by the least asks for a fourth."""
    proba = [[0.8, 0.2]] * 3 + [[0.6, 0.4]] * 7
    controller = RiskController(alpha=0.5).calibrate([[0.75, 0.25], [0.5, 0.5]], [1, 0])
    assert alpha_for_singletons(controller, proba, share) == Fraction(1, 3)
    assert alpha_for_singletons(controller, proba, "0.3000001") == Fraction(2, 3)


@pytest.mark.parametrize("share", [-0.1, 1.001, 2, Fraction(-1, 2)], ids=repr)
def test_a_share_that_is_none(share, draw):
    controller = RiskController().calibrate(*draw(50, 5))
    with pytest.raises(ValueError, match=f"^{re.escape(f'share must lie between 0 and 1; got {share}.')}$"):
        alpha_for_singletons(controller, draw(50, 5)[0], share)


def test_singletons_need_what_predictions_need(draw):
    proba, y = draw(50, 5)
    with pytest.raises(NotFittedError, match="not calibrated yet"):
        alpha_for_singletons(RiskController(), proba, 0.5)
    controller = RiskController().calibrate(proba, y)
    with pytest.raises(ValueError, match="share must be a finite number; got 'most'"):
        alpha_for_singletons(controller, proba, "most")
    with pytest.raises(ValueError, match="proba has 4 columns, but the calibration had 5 classes"):
        alpha_for_singletons(controller, draw(50, 4)[0], 0.5)
    with pytest.raises(ValueError, match="proba has no rows"):
        alpha_for_singletons(controller, proba[:0], 0.5)


# calibrations that have more than one curve


@pytest.mark.parametrize(
    ("options", "extras", "used"),
    [
        ({"delta": 0.1}, {}, "delta"),
        ({"condition_on": "label"}, {}, "condition_on"),
        ({"randomize": True}, {}, "randomize"),
        ({}, {"groups": np.arange(300) % 2}, "groups"),
        ({}, {"sample_weight": np.ones(300)}, "weights"),
        ({}, {"class_ratios": [1, 2, 1, 1]}, "weights"),
        ({"delta": 0.1}, {"groups": np.arange(300) % 2}, "delta and groups"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("choose", [alpha_for_size, alpha_for_singletons])
def test_one_alpha_is_chosen_from_one_curve(choose, options, extras, used, draw):
    proba, y = draw(300, 4)
    controller = RiskController(alpha=0.2, **options).calibrate(proba, y, **extras)
    message = f"calibration uses {used}; choose it with a calibration that does not."
    with pytest.raises(ValueError, match=f"{re.escape(message)}$"):
        choose(controller, proba, 1)


def test_clusters_have_one_curve(draw):
    proba, y = draw(300, 4)
    clusters = np.arange(300) // 3
    controller = RiskController(alpha=0.2).calibrate(proba, y, clusters=clusters)
    alpha = alpha_for_size(controller, proba, 2)
    assert mean_size(controller, proba, alpha) <= 2 < mean_size(controller, proba, alpha - TINY)
    assert (alpha * 101 - 1) * 3 == int((alpha * 101 - 1) * 3)


# an alpha that was found with the calibration rows


def test_an_alpha_from_the_calibration_rows_is_no_bound_and_one_from_others_is(draw):
    """Luck of the chosen rows does not lower the risk; an alpha chosen on other rows holds."""
    new, truth = draw(4_000, 5, seed=10_000)
    found = []
    for seed in range(400):
        proba, y = draw(138, 5, seed=seed)
        chooser, controller = (
            RiskController(alpha=0.3, classes=range(5)).calibrate(proba[part], y[part])
            for part in (slice(19), slice(19, 38))
        )
        alpha = alpha_for_size(chooser, proba[38:], 2)
        risks = (orisk.metrics.risk(truth, c.predict_set(new, alpha=alpha)) for c in (chooser, controller))
        found.append((float(alpha), *risks))
    alphas, same, other = np.transpose(found)
    smallest = alphas <= np.quantile(alphas, 1 / 3)
    assert np.mean(same[smallest]) > 1.3 * np.mean(alphas[smallest])
    for part in (smallest, ~smallest, np.full(400, True)):
        error = np.std((other - alphas)[part]) / np.sqrt(part.sum())
        assert 3 * error < 0.1 * np.mean(alphas[part]) + 0.01
        assert np.mean((other - alphas)[part]) <= 3 * error
