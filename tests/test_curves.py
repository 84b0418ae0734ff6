"""Curves of losses: steps that are selected or sorted, that belong to rows, or that are known in windows."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
import torch
from devices import DEVICE, sort_few_at_once
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import GROWTH_RULES, LOSSES, calibration_sets, exact_losses, for_every_loss_and_rule
from test_cost_table import losses_for, slow_table

import ordinalrisk as orisk
from ordinalrisk import RiskCurve
from ordinalrisk.curves import steps as steps_module
from ordinalrisk.curves.device_steps import DeviceSteps
from ordinalrisk.curves.steps import Steps
from ordinalrisk.curves.unit_steps import UnitSteps
from ordinalrisk.curves.windows import NotKnownError, OrderedSteps, Window
from ordinalrisk.inputs.weights import exact_weights
from ordinalrisk.losses import cost_table as cost_tables
from ordinalrisk.losses.cost_table import CostTable, whole_costs

# a threshold by selection is the one that sorting finds


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
        patch.setattr(Steps, "few", few)
        assert steps.first_level_above(budget) == expected
    assert steps.in_order.first_level_above(budget) == expected


@pytest.mark.parametrize(("few", "near"), [(1, 0), (4, 1), (8, 1), (1 << 16, 1 << 10)])
@pytest.mark.parametrize("size", [None, 1, 3], ids=["any size", "size 1", "size 3"])
@given(case=some_steps())
def test_selection_on_a_device_finds_the_level_that_sorting_finds(case, size, few, near):
    at, by, budget = case
    by = by if size is None else [size] * len(at)
    expected = naive_first_level_above(at, by, budget)
    sizes = size or torch.tensor(by, dtype=torch.int64, device=DEVICE)
    steps = DeviceSteps(torch.tensor(at, dtype=torch.float64, device=DEVICE), sizes, largest=5)
    with pytest.MonkeyPatch.context() as patch:
        sort_few_at_once(patch, few, near)
        assert steps.first_level_above(budget) == expected
    assert steps.first_level_above(budget) == expected
    there, here = steps.in_order, steps.on_host().in_order
    assert there.levels.tolist() == here.levels.tolist()
    assert there.totals.tolist() == here.totals.tolist()
    assert (there.total, there.most_tied) == (here.total, here.most_tied)


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
        assert max(sorts, default=0) <= Steps.few
        sorts.clear()
        thresholds = [controller.threshold_at(alpha) for alpha in (0.05, 0.1, 0.2)]
        assert thresholds[1] == controller.threshold_
        assert controller.risk_curve_.most_tied >= 1
        assert len(sorts) == 1
        assert sorts[0] > Steps.few
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


# the steps of each row are exact, and those of all rows together are what kernels find


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
    joined = UnitSteps.concatenated(
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


# a curve that is known in windows has the answers of the whole curve, or says that it does not know them


WHOLE = OrderedSteps.whole(np.array([0.1, 0.2, 0.3, 0.5, 0.6, 0.8]), np.array([2, 3, 7, 8, 12, 13]), 4)


def cut_out(*slices, whole=WHOLE):
    """The parts of a whole curve that are known."""
    windows = [
        Window(int(whole.totals[at.start - 1]) if at.start else 0, whole.levels[at], whole.totals[at])
        for at in slices
    ]
    return OrderedSteps(tuple(windows), whole.total, whole.most_tied)


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
    steps = OrderedSteps((), 5, 0)
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


def test_totals_of_windows_too_large_for_64_bits():
    window = Window(2**64, np.array([0.5, 0.7]), np.array([2**64 + 5, 2**65], object))
    steps = OrderedSteps((window,), 2**66, 1)
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
    nothing = OrderedSteps.whole(np.empty(0), np.empty(0, np.int64), 0)
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
        OrderedSteps(one.windows, one.total + 1, one.most_tied),
        OrderedSteps(one.windows, one.total, one.most_tied + 1),
        OrderedSteps((window._replace(below=1),), one.total, one.most_tied),
    ]
    for other in others:
        assert RiskCurve(other, unit=Fraction(1, 2), n_rows=10, bound=Fraction(2)) != curve(slice(1, 3))
    assert curve(slice(1, 3)) != "a curve"


def test_a_curve_in_windows_travels():
    known = curve(slice(1, 3), slice(4, 5))
    assert pickle.loads(pickle.dumps(known)) == known


# the units in which losses are summed


@pytest.mark.parametrize("K", [2, 3, 8])
def test_units_are_the_largest_that_divide_every_cost(K):
    for loss in losses_for(K):
        table, costs = slow_table(loss, K), CostTable.of(loss, K)
        per_unit = math.lcm(*(cost.denominator for row in table for cost in row))
        assert costs.unit == Fraction(1, per_unit)
        assert costs.units.tolist() == [[cost * per_unit for cost in row] for row in table]
        assert (costs.units.dtype == object) == (max(map(max, costs.units.tolist())) >= 2**62)


def test_the_cost_tables_that_are_kept_take_bounded_memory():
    kept = cost_tables._tables.kept
    for n in range(2, 300, 6):
        for loss in (orisk.DivergenceLoss(under=n), orisk.WeightedLoss()):
            first = CostTable.of(loss, n % 100 + 50)
            assert CostTable.of(loss, n % 100 + 50) is first
        assert sum(table.n_bytes for table in kept.values()) <= cost_tables._CACHED_BYTES
    assert len(kept) > 1
    loss = orisk.WeightedLoss()
    assert CostTable.of(loss, 1_300) is CostTable.of(loss, 1_300)  # larger than all
    assert len(kept) == 1
