"""Which threshold applies to which row: by weight, exactly, and by class under label shift."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unchecked import FEW

import ordinalrisk as orisk

WEIGHTS = st.floats(0, 1e6) | st.sampled_from([0.0, 5e-324, 1e-300, 0.1, 1.0, 1e300])


def exact_threshold(curve, alpha, weight):
    """The first level where the losses of all rows, and the largest loss of a new one, exceed the budget."""
    return curve.first_level_above((curve.weight + weight) * alpha - weight * curve.bound)


def weights_on_edges(curve, alpha):
    """Weights of new rows where the threshold changes, and the next larger floats."""
    edges = [
        float((alpha * curve.weight - int(total) * curve.unit) / (curve.bound - alpha))
        for total in curve.totals
    ]
    return [w for edge in edges for w in (edge, math.nextafter(edge, math.inf)) if 0 <= w < 1e308]


@FEW
@pytest.mark.filterwarnings("ignore:.*weights so large")
@pytest.mark.parametrize(
    "loss", ["coverage", orisk.WeightedLoss([1, 2, 3, 7]), orisk.DivergenceLoss(power=2)]
)
@given(own=st.lists(WEIGHTS, min_size=1, max_size=20), new=st.lists(WEIGHTS, min_size=1, max_size=20))
def test_thresholds_by_weight_are_those_of_exact_budgets(loss, own, new, draw):
    """Told by the sets of all calibration rows, which differ from threshold to threshold."""
    if not any(own):
        own = [*own, 1.0]
    proba, y = draw(len(own), 4, seed=len(own))
    controller = orisk.RiskController(loss, "1/1000000").calibrate(proba, y, sample_weight=own)
    curve = controller.risk_curve_
    assert curve.weight == sum(map(Fraction, own))
    levels = controller.growth.levels(proba, controller.loss)
    assert {*curve.levels.tolist()} <= {*levels.ravel().tolist()}
    for alpha in (Fraction(1, 7), Fraction(1, 2), Fraction(99, 100)):
        weights = np.array([*new, *weights_on_edges(curve, alpha)])
        expected = np.array([exact_threshold(curve, alpha, Fraction(w)) for w in weights])
        sets = controller.predict_set(
            np.tile(proba, (len(weights), 1)), alpha=alpha, sample_weight=np.repeat(weights, len(own))
        )
        assert np.array_equal(sets.mask(), (levels >= expected[:, None, None]).reshape(-1, 4))


@FEW
@pytest.mark.parametrize("loss", ["coverage", orisk.WeightedLoss([1, 2, 3, 7])])
@given(ratios=st.lists(st.fractions(0, 50, max_denominator=60), min_size=4, max_size=4).filter(all))
def test_thresholds_by_class_ratio_are_those_of_exact_budgets(loss, ratios, draw):
    """For weighted losses sets are the hulls of the labels that pass."""
    proba, y = draw(60, 4)
    for alpha in (Fraction(1, 7), Fraction(1, 2)):
        controller = orisk.RiskController(loss, alpha).calibrate(proba, y, class_ratios=ratios)
        own = [exact_threshold(controller.risk_curve_, alpha, ratio) for ratio in ratios]
        passing = controller.growth.levels(proba, controller.loss) >= np.array(own)
        sets = controller.predict_set(proba)
        assert sets.lower.tolist() == passing.argmax(axis=1).tolist()
        assert sets.upper.tolist() == (3 - passing[:, ::-1].argmax(axis=1)).tolist()


def test_a_group_without_weight_has_full_sets_and_is_named(draw):
    proba, y = draw(200, 4)
    group = np.arange(200) % 2
    weights = np.where(group == 0, 1.0, 0.0)
    with pytest.warns(UserWarning, match="too few rows of 1, so their sets include all labels"):
        controller = orisk.RiskController(alpha=0.2).calibrate(proba, y, groups=group, sample_weight=weights)
    assert controller.threshold_[1] == -math.inf
    assert not controller.guarantee().parts[1].certified
    with pytest.warns(UserWarning, match="100 of 200 new rows have weights so large"):
        sets = controller.predict_set(proba, groups=group, sample_weight=np.ones(200))
    assert {*sets.size[group == 1].tolist()} == {4}


def test_under_label_shift_a_class_that_is_too_heavy_for_its_rows_is_named(draw):
    proba, y = draw(60, 3)[0], [0, 1] * 29 + [2] * 2
    with pytest.warns(
        UserWarning, match="The weights of 2 are too large .* every set includes these classes"
    ):
        controller = orisk.RiskController(alpha=0.1).calibrate(proba, y, class_ratios=[0.01, 0.01, 100])
    assert controller.predict_set(proba).lower.max() > 0
    assert controller.predict_set(proba).upper.tolist() == [2] * 60
    assert controller.guarantee().always_held == (2,)
    assert "every set includes these classes" in str(controller.guarantee()).replace("\n", " ")


def test_full_sets_hold_labels_that_cost_nothing_too(draw):
    proba, y = draw(300, 3)
    loss = orisk.WeightedLoss([0, 1, 1])
    controller = orisk.RiskController(loss, 0.2, condition_on="label").calibrate(proba, y, groups=["a"] * 300)
    sets = controller.predict_set(proba, groups=["b"] * 300, unseen_groups="full")
    assert {*sets.size.tolist()} == {3}
