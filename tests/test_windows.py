"""A curve that is known in windows says what the whole curve says, or that it does not know."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.steps import SortedSteps
from ordinalrisk.curves.windows import NotKnownError, Window, WindowedSteps

WHOLE = SortedSteps(np.array([0.1, 0.2, 0.3, 0.5, 0.6, 0.8]), np.array([2, 3, 7, 8, 12, 13]), 4)


def cut_out(*slices, whole=WHOLE):
    """What is known of the whole in some places."""
    windows = [
        Window(int(whole.totals[at.start - 1]) if at.start else 0, whole.levels[at], whole.totals[at])
        for at in slices
    ]
    return WindowedSteps(tuple(windows), whole.total, whole.most_tied)


@st.composite
def some_windows(draw):
    """Slices of the whole with something between them."""
    ends = sorted(draw(st.sets(st.integers(0, 6), max_size=6)))
    return [slice(a, b) for a, b in zip(ends[::2], ends[1::2], strict=False)]


@given(slices=some_windows(), budget=st.integers(0, 15))
def test_a_level_is_that_of_the_whole_curve_or_not_known(slices, budget):
    steps = cut_out(*slices)
    expected = WHOLE.first_level_above(budget)
    known = expected == math.inf or any(expected in WHOLE.levels[at] for at in slices)
    if known:
        assert steps.first_level_above(budget) == expected
    else:
        with pytest.raises(NotKnownError, match=f"where the total loss passes {budget} units"):
            steps.first_level_above(budget)


THRESHOLDS = [-math.inf, -1.0, 0.0, *WHOLE.levels.tolist(), 0.55, 0.9, math.inf]
THRESHOLDS += [math.nextafter(level, to) for level in WHOLE.levels.tolist() for to in (-math.inf, math.inf)]


@given(slices=some_windows(), threshold=st.sampled_from(THRESHOLDS))
def test_a_total_is_that_of_the_whole_curve_or_not_known(slices, threshold):
    steps = cut_out(*slices)
    levels = WHOLE.levels
    first_at = int(np.searchsorted(levels, threshold))  # how many levels lie below
    known = math.isinf(threshold) or any(
        (at.start < first_at or (at.start == first_at and (threshold in levels or first_at == 0)))
        and (first_at < at.stop or at.stop == 6 or threshold == math.nextafter(levels[at.stop - 1], 9))
        for at in slices
    )
    if known:
        assert steps.total_below(threshold) == WHOLE.total_below(threshold)
    else:
        with pytest.raises(NotKnownError, match="is not known at the threshold"):
            steps.total_below(threshold)


def test_a_window_on_everything_knows_everything():
    steps = cut_out(slice(0, 6))
    for threshold in THRESHOLDS:
        assert steps.total_below(threshold) == WHOLE.total_below(threshold)
    curve = RiskCurve(steps, unit=Fraction(1), n_rows=13, bound=Fraction(1))
    assert curve.is_whole
    assert curve == RiskCurve(WHOLE, unit=Fraction(1), n_rows=13, bound=Fraction(1))
    assert repr(curve) == "RiskCurve(6 levels, 13 rows, B=1)"


def test_no_windows_at_all():
    steps = WindowedSteps((), 5, 0)
    assert steps.levels.tolist() == steps.totals.tolist() == []
    assert steps.first_level_above(5) == math.inf
    assert (steps.total_below(-math.inf), steps.total_below(math.inf)) == (0, 5)
    for ask in (lambda: steps.first_level_above(4), lambda: steps.total_below(0.5)):
        with pytest.raises(NotKnownError):
            ask()


def test_all_known_levels_with_their_totals():
    steps = cut_out(slice(1, 3), slice(4, 5))
    assert steps.levels.tolist() == [0.2, 0.3, 0.6]
    assert steps.totals.tolist() == [3, 7, 12]
    assert steps.in_order is steps


def test_totals_too_large_for_64_bits():
    window = Window(2**64, np.array([0.5, 0.7]), np.array([2**64 + 5, 2**65], object))
    steps = WindowedSteps((window,), 2**66, 1)
    assert steps.first_level_above(2**64) == 0.5
    assert steps.first_level_above(2**64 + 5) == 0.7
    assert steps.total_below(0.5) == 2**64
    assert steps.total_below(0.7) == 2**64 + 5
    assert steps.totals.tolist() == [2**64 + 5, 2**65]
    with pytest.raises(NotKnownError):
        steps.first_level_above(2**65)


def test_the_whole_curve_is_one_window_on_it():
    [window] = WHOLE.windows
    assert (window.below, window.levels is WHOLE.levels, window.totals is WHOLE.totals) == (0, True, True)
    assert WHOLE.total == 13
    nothing = SortedSteps(np.empty(0), np.empty(0, np.int64), 0)
    assert (nothing.windows, nothing.total, nothing.total_below(0.5)) == ((), 0, 0)


def curve(*slices):
    return RiskCurve(cut_out(*slices), unit=Fraction(1, 2), n_rows=10, bound=Fraction(2))


def test_a_curve_in_windows():
    known = curve(slice(1, 3), slice(4, 5))
    assert not known.is_whole
    assert len(known.windows) == 2
    assert known.total_loss(0.3) == Fraction(3, 2)
    assert known.total_loss(math.inf) == Fraction(13, 2)
    assert known.risk(0.3) == 0.15
    assert known.first_level_above(Fraction(3)) == 0.3
    assert repr(known) == "RiskCurve(3 levels known in 2 windows, 10 rows, B=2)"
    with pytest.raises(NotKnownError):
        known.first_level_above(Fraction(7, 2))
    with pytest.raises(NotKnownError):
        known.risk(0.55)


def test_curves_are_equal_if_all_that_is_known_of_them_is():
    assert curve(slice(1, 3)) == curve(slice(1, 3))
    assert curve(slice(1, 3)) != curve(slice(1, 4))
    assert curve(slice(1, 4)) != curve(slice(1, 3), slice(3, 4))
    one = cut_out(slice(1, 3))
    [window] = one.windows
    others = [
        WindowedSteps(one.windows, one.total + 1, one.most_tied),
        WindowedSteps(one.windows, one.total, one.most_tied + 1),
        WindowedSteps((window._replace(below=1),), one.total, one.most_tied),
    ]
    for other in others:
        assert RiskCurve(other, unit=Fraction(1, 2), n_rows=10, bound=Fraction(2)) != curve(slice(1, 3))
    assert curve(slice(1, 3)) != "a curve"


def test_a_curve_in_windows_travels():
    known = curve(slice(1, 3), slice(4, 5))
    assert pickle.loads(pickle.dumps(known)) == known
