"""Which threshold applies to which row: by weight, exactly, and by class under label shift."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ordinalrisk as orisk
from ordinalrisk.calibration.promises import ThresholdsByWeight, loss_budget, threshold_by_weight

WEIGHTS = st.floats(0, 1e6) | st.sampled_from([0.0, 5e-324, 1e-300, 0.1, 1.0, 1e300])


@pytest.mark.parametrize(
    "loss", ["coverage", orisk.WeightedLoss([1, 2, 3, 7]), orisk.DivergenceLoss(power=2)]
)
@given(own=st.lists(WEIGHTS, min_size=1, max_size=20), new=st.lists(WEIGHTS, min_size=1, max_size=20))
def test_thresholds_by_weight_are_those_of_exact_budgets(loss, own, new, draw):
    if not any(own):
        own = [*own, 1.0]
    proba, y = draw(len(own), 4, seed=len(own))
    controller = orisk.RiskController(loss, "1/1000000").calibrate(proba, y, sample_weight=own)
    curve = controller.risk_curve_
    assert curve.weight == sum(map(Fraction, own))
    for alpha in (Fraction(1, 7), Fraction(1, 2), Fraction(99, 100)):
        at_edges = [
            float((alpha * curve.weight - int(total) * curve.unit) / (curve.bound - alpha))
            for total in curve.totals
        ]
        nearby = [w for edge in at_edges for w in (edge, math.nextafter(edge, math.inf)) if 0 <= w < 1e308]
        weights = np.array([*new, *nearby])
        budgets = [loss_budget(alpha, curve.bound, curve.weight, Fraction(w)) for w in weights]
        expected = [curve.first_level_above(budget) for budget in budgets]
        assert ThresholdsByWeight(curve, alpha).of(weights).tolist() == expected
        assert [threshold_by_weight(curve, alpha, Fraction(w)) for w in weights] == expected


test_thresholds_by_weight_are_those_of_exact_budgets = pytest.mark.filterwarnings("ignore:.*needs at least")(
    test_thresholds_by_weight_are_those_of_exact_budgets
)


def test_a_group_without_weight_has_full_sets_and_is_named(draw):
    proba, y = draw(200, 4)
    group = np.arange(200) % 2
    weights = np.where(group == 0, 1.0, 0.0)
    with pytest.warns(UserWarning, match="too few rows of 1, so their sets hold all labels"):
        controller = orisk.RiskController(alpha=0.2).calibrate(proba, y, groups=group, sample_weight=weights)
    assert controller.threshold_[1] == -math.inf
    assert not controller.guarantee().parts[1].certified
    with pytest.warns(UserWarning, match="100 of 200 new rows have weights so large"):
        sets = controller.predict_set(proba, groups=group, sample_weight=np.ones(200))
    assert {*sets.size[group == 1].tolist()} == {4}


def test_under_label_shift_a_class_that_is_too_heavy_for_its_rows_is_named(draw):
    proba, y = draw(60, 3)[0], [0, 1] * 29 + [2] * 2
    with pytest.warns(UserWarning, match="The weights of 2 are too large .* sets always hold these classes"):
        controller = orisk.RiskController(alpha=0.1).calibrate(proba, y, class_weight=[0.01, 0.01, 100])
    assert controller.predict_set(proba).lower.max() > 0
    assert controller.predict_set(proba).upper.tolist() == [2] * 60
    assert controller.guarantee().always_held == (2,)
    assert "sets always hold these classes" in str(controller.guarantee()).replace("\n", " ")


def test_full_sets_hold_labels_that_cost_nothing_too(draw):
    proba, y = draw(300, 3)
    loss = orisk.WeightedLoss([0, 1, 1])
    controller = orisk.RiskController(loss, 0.2, condition_on="label").calibrate(proba, y, groups=["a"] * 300)
    sets = controller.predict_set(proba, groups=["b"] * 300, unseen_groups="full")
    assert {*sets.size.tolist()} == {3}
