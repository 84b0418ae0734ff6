"""A threshold by selection is the one that sorting finds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ordinalrisk as orisk
from ordinalrisk.curves import steps as steps_module
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.steps import Steps


def naive_first_level_above(at, by, budget):
    total = 0
    for level in sorted(set(at)):
        total += sum(size for place, size in zip(at, by, strict=True) if place == level)
        if total > budget:
            return level
    return math.inf


@st.composite
def some_steps(draw):
    levels = st.sampled_from([-0.5, 0.0, 5e-324, 0.1, 0.1 + 2**-54, 0.25, 0.3, 1.0])
    at = draw(st.lists(levels, max_size=30))
    by = draw(st.lists(st.integers(1, 5), min_size=len(at), max_size=len(at)))
    budget = draw(st.integers(0, 160))
    return at, by, budget


@pytest.mark.parametrize("few", [1, 4, 1_024])
@pytest.mark.parametrize("whole", [np.int64, object])
@given(case=some_steps())
def test_selection_finds_the_level_that_sorting_finds(case, whole, few):
    at, by, budget = case
    expected = naive_first_level_above(at, by, budget)
    steps = Steps(np.array(at, float), np.array(by, whole), largest=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps_module, "_FEW", few)
        assert steps.first_level_above(budget) == expected
    assert steps.in_order.first_level_above(budget) == expected


@given(case=some_steps(), size=st.integers(1, 4))
def test_selection_among_steps_of_one_size(case, size):
    at, _, budget = case
    steps = Steps(np.array(at, float), size, largest=size)
    expected = naive_first_level_above(at, [size] * len(at), budget)
    assert steps.first_level_above(budget) == expected
    assert steps.in_order.first_level_above(budget) == expected


def test_totals_too_large_for_64_bits():
    at, by = np.repeat([0.1, 0.2, 0.3], 2_000), np.full(6_000, 2**60)
    for size in (by, by.astype(object), 2**60):
        steps = Steps(at, size, largest=2**60)
        assert steps.in_order.totals.tolist() == [2_000 * 2**60, 4_000 * 2**60, 6_000 * 2**60]
        assert steps.first_level_above(4_000 * 2**60) == 0.3
        assert steps.first_level_above(4_000 * 2**60 - 1) == 0.2


def test_one_threshold_sorts_nothing(draw, monkeypatch):
    """The first threshold is selected; who asks again, or looks at the curve, has it sorted once."""
    sorts = []
    last_of_each_level = steps_module.last_of_each_level
    monkeypatch.setattr(
        steps_module, "last_of_each_level", lambda at: sorts.append(len(at)) or last_of_each_level(at)
    )
    proba, y = draw(5_000)
    for loss in ("coverage", "divergence"):
        controller = orisk.RiskController(loss, alpha=0.1).calibrate(proba, y)
        controller.predict_set(proba)
        assert max(sorts, default=0) <= steps_module._FEW
        sorts.clear()
        thresholds = [controller.threshold_at(alpha) for alpha in (0.05, 0.1, 0.2)]
        assert thresholds[1] == controller.threshold_
        assert controller.risk_curve_.most_tied >= 1
        assert len(sorts) == 1
        assert sorts[0] > steps_module._FEW
        sorts.clear()


def test_no_threshold_keeps_within_a_negative_budget():
    at, by = np.array([0.4, 0.1]), np.array([1, 2])
    for curve in (
        RiskCurve.from_steps(at, by, unit=Fraction(1), n_rows=4, bound=Fraction(2)),
        RiskCurve(Steps(at, 2, 2), unit=Fraction(1), n_rows=4, bound=Fraction(2)),
    ):
        assert curve.first_level_above(Fraction(-1, 2)) == -math.inf
        assert curve.levels.tolist() == [0.1, 0.4]
        assert curve.first_level_above(Fraction(-1, 2)) == -math.inf


def test_a_curve_has_the_same_answers_before_and_after_it_is_sorted():
    at, by = np.array([0.4, 0.1, 0.2, 0.2]), np.array([1, 2, 3, 1])
    shared = {"unit": Fraction(1, 2), "n_rows": 4, "bound": Fraction(2)}
    for budget in (Fraction(0), Fraction(1), Fraction(3, 2), Fraction(3), Fraction(10)):
        new, sorted_one = RiskCurve.from_steps(at, by, **shared), RiskCurve.from_steps(at, by, **shared)
        assert sorted_one.levels.tolist() == [0.1, 0.2, 0.4]
        assert sorted_one.most_tied == 2
        assert new.first_level_above(budget) == sorted_one.first_level_above(budget)
        assert new == sorted_one
