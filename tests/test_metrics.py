"""Metrics: a hand-made example, brute force, and intervals that cover as often as they say."""

import math
from itertools import pairwise

import dask.array
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from strategies import interval_rows

from ordinalrisk import (
    CostTableLoss,
    DivergenceLoss,
    IntervalSet,
    OnlineRiskController,
    RiskController,
    RiskMonitor,
    WeightedLoss,
    metrics,
)
from ordinalrisk.metrics import Estimate

# Six rows, four classes. Class "severe" has no rows, "none" is always covered.
CLASSES = ["none", "mild", "moderate", "severe"]
SETS = IntervalSet([0, 0, 1, 2, 3, 1], [0, 1, 2, 3, 3, 1], CLASSES)
Y = ["none", "none", "mild", "mild", "mild", "moderate"]
# distance from label to interval:     0       0       0       1       2       1
LOSSES = [
    "coverage",
    "divergence",
    WeightedLoss([1, 2, 3, 4]),
    WeightedLoss([1, 2, 3, 4], normalize=False),
    DivergenceLoss(2, under=3),
    DivergenceLoss(positions=[0, 1, 10, 100], normalize=False),
    CostTableLoss([[0, 1, 2, 3], [5, 0, 1, 9], [50, 20, 0, 1], [7, 7, 7, 0]], normalize=False),
]

# Every metric as a function of labels, sets and keywords.
METRICS = {
    "risk": metrics.risk,
    "risk of divergence": lambda y, sets, **kw: metrics.risk(y, sets, "divergence", **kw),
    "coverage": metrics.coverage,
    "class_coverage": metrics.class_coverage,
    "class_risk": metrics.class_risk,
    "mean_size": lambda y, sets, **kw: metrics.mean_size(sets, **kw),
    "size_histogram": lambda y, sets, **kw: metrics.size_histogram(sets, **kw),
    "centroid_histogram": lambda y, sets, **kw: metrics.centroid_histogram(sets, **kw),
    "distance_when_missed": metrics.distance_when_missed,
}
ARRAYS = {"class_coverage": 5, "class_risk": 5, "size_histogram": 5, "centroid_histogram": 9}
each_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def row_cost(table, y, lower, upper):
    """The cost of one row by the definition: ``G[y, nearest end]``, nothing if covered."""
    if lower <= y <= upper:
        return 0.0
    return table[y][lower] if y < lower else table[y][upper]


def mean(values):
    return math.fsum(values) / len(values) if values else math.nan


# by hand


def test_losses_by_hand():
    assert metrics.losses(Y, SETS).tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(metrics.losses(Y, SETS, "divergence"), np.array([0, 0, 0, 1, 2, 1]) / 3)
    assert metrics.losses(Y, SETS, WeightedLoss([1, 2, 4, 4])).tolist() == [0, 0, 0, 0.5, 0.5, 1]


def test_risk_by_hand():
    assert metrics.risk(Y, SETS) == 0.5
    assert metrics.risk(Y, SETS, "coverage") == 0.5
    assert metrics.risk(Y, SETS, "divergence") == pytest.approx(4 / 18, rel=1e-15)
    assert metrics.risk(Y, SETS, DivergenceLoss(normalize=False)) == pytest.approx(4 / 6, rel=1e-15)


def test_coverage_by_hand():
    assert metrics.coverage(Y, SETS) == 0.5


def test_class_coverage_by_hand():
    np.testing.assert_allclose(metrics.class_coverage(Y, SETS), [1, 1 / 3, 0, np.nan], rtol=1e-15)


def test_class_risk_by_hand():
    np.testing.assert_allclose(metrics.class_risk(Y, SETS), [0, 2 / 3, 1, np.nan], rtol=1e-15)
    np.testing.assert_allclose(
        metrics.class_risk(Y, SETS, "divergence"), [0, 1 / 3, 1 / 3, np.nan], rtol=1e-15
    )


def test_mean_size_by_hand():
    assert metrics.mean_size(SETS) == 1.5


def test_size_histogram_by_hand():
    assert metrics.size_histogram(SETS).tolist() == [0.5, 0.5, 0, 0]


def test_centroid_histogram_by_hand():
    assert (metrics.centroid_histogram(SETS) * 6).tolist() == [1, 1, 1, 1, 0, 1, 1]


def test_distance_when_missed_by_hand():
    assert metrics.distance_when_missed(Y, SETS) == pytest.approx(4 / 3, rel=1e-15)


# labels that are missing


OF_LABELS = [
    "losses",
    "risk",
    "coverage",
    "class_coverage",
    "class_risk",
    "class_size",
    "distance_when_missed",
]


@pytest.mark.parametrize("name", OF_LABELS)
def test_missing_labels_are_an_error(name):
    with pytest.raises(ValueError, match="y is None; pass its values"):
        getattr(metrics, name)(None, SETS)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT], ids=repr)
@pytest.mark.parametrize("name", OF_LABELS)
def test_a_missing_label_is_an_error_with_its_row(name, missing):
    labels = pd.Series([*Y[:4], missing, Y[5]], dtype=object)
    with pytest.raises(ValueError, match=r"y\[4\] is .* The label is missing: leave the row out"):
        getattr(metrics, name)(labels, SETS)


@pytest.mark.parametrize("name", OF_LABELS)
def test_missing_labels_of_dask_sets_are_an_error(name):
    proba = np.eye(4)[[0, 1, 2, 3] * 10]
    controller = RiskController(alpha=0.2).calibrate(proba, [0, 1, 2, 3] * 10)
    sets = controller.predict_set(dask.array.from_array(proba, chunks=(15, 4)))
    assert metrics.mean_size(sets) == 1  # which needs no labels
    with pytest.raises(ValueError, match=r"y must be a dask collection like proba.* got a NoneType"):
        getattr(metrics, name)(None, sets)


def test_missing_labels_are_an_error_wherever_labels_are_taken():
    proba = np.eye(4)[[0, 1, 2, 3] * 10]
    online = OnlineRiskController(alpha=0.2, classes=range(4))
    online.predict_set(proba)
    for call in (
        lambda: RiskController(alpha=0.2).calibrate(proba, None),
        lambda: RiskController(alpha=0.2).calibrate(dask.array.from_array(proba, chunks=(15, 4)), None),
        lambda: RiskMonitor(alpha=0.2).update(None, SETS),
        lambda: online.update(None),
        lambda: online.replay(proba, None),
        lambda: SETS.contains(None),
    ):
        with pytest.raises(ValueError, match=r"y is None; pass its values|y must be a dask collection"):
            call()
    assert (online.n_rows_, online.n_pending_) == (40, 40)


# by brute force


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_losses_are_those_of_the_nearest_end(loss):
    y, sets = interval_rows(300, 4)
    table = RiskController(loss).loss.cost_table(4)
    expected = [row_cost(table, *row) for row in zip(y, sets.lower_index, sets.upper_index, strict=True)]
    assert metrics.losses(y, sets, loss).tolist() == expected
    assert metrics.risk(y, sets, loss) == pytest.approx(mean(expected), rel=1e-12)
    by_class = [mean([cost for cost, k in zip(expected, y, strict=True) if k == c]) for c in range(4)]
    np.testing.assert_allclose(metrics.class_risk(y, sets, loss), by_class, rtol=1e-12)


def test_coverage_by_brute_force():
    y, sets = interval_rows()
    inside = [
        k in range(low, up + 1) for k, low, up in zip(y, sets.lower_index, sets.upper_index, strict=True)
    ]
    assert metrics.coverage(y, sets) == mean(inside)
    assert metrics.coverage(y, sets) + metrics.risk(y, sets) == pytest.approx(1, abs=1e-15)
    by_class = [mean([hit for hit, k in zip(inside, y, strict=True) if k == c]) for c in range(5)]
    np.testing.assert_allclose(metrics.class_coverage(y, sets), by_class, rtol=1e-15)
    np.testing.assert_allclose(
        metrics.class_coverage(y, sets) + metrics.class_risk(y, sets), [1, 1, 1, 1, np.nan]
    )


def test_sizes_by_brute_force():
    _, sets = interval_rows()
    sizes = sets.mask().sum(axis=1).tolist()
    assert metrics.mean_size(sets) == pytest.approx(mean(sizes), rel=1e-15)
    assert metrics.size_histogram(sets).tolist() == [sizes.count(size) / 500 for size in range(1, 6)]
    assert metrics.size_histogram(sets) @ np.arange(1, 6) == pytest.approx(metrics.mean_size(sets), rel=1e-13)


def test_centroids_by_brute_force():
    _, sets = interval_rows()
    centroids = [mean(np.flatnonzero(row).tolist()) for row in sets.mask()]
    histogram = metrics.centroid_histogram(sets)
    assert histogram.tolist() == [centroids.count(half / 2) / 500 for half in range(9)]
    assert histogram.sum() == pytest.approx(1, abs=1e-15)


def test_distance_by_brute_force():
    y, sets = interval_rows()
    distances = [
        min(abs(k - label) for label in range(low, up + 1))
        for k, low, up in zip(y, sets.lower_index, sets.upper_index, strict=True)
    ]
    missed = [distance for distance in distances if distance]
    assert metrics.distance_when_missed(y, sets) == pytest.approx(mean(missed), rel=1e-14)


# edges


@each_metric
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_labels_by_name_and_by_number_are_the_same(metric, confidence):
    y, sets = interval_rows(60, 4)
    named = IntervalSet(sets.lower_index, sets.upper_index, CLASSES)
    computed = metric([CLASSES[k] for k in y], named, confidence=confidence)
    np.testing.assert_array_equal(computed, metric(y, sets, confidence=confidence))


def test_nothing_missed_has_no_distance():
    sets = IntervalSet([0, 0], [2, 2], range(3))
    assert math.isnan(metrics.distance_when_missed([0, 2], sets))
    assert metrics.coverage([0, 2], sets) == 1
    assert metrics.risk([0, 2], sets) == 0
    estimate = metrics.distance_when_missed([0, 2], sets, confidence=0.9)
    assert all(math.isnan(part) for part in estimate)


@pytest.mark.parametrize("metric", [metrics.class_coverage, metrics.class_risk])
def test_an_absent_class_is_nan_with_its_interval(metric):
    estimate = metric(Y, SETS, confidence=0.9)
    for part in estimate:
        assert np.isnan(part).tolist() == [False, False, False, True]


@each_metric
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_no_rows_are_nan(metric, confidence):
    empty = IntervalSet([], [], range(3))
    for labels in ([], np.array([], int)):
        assert np.isnan(np.asarray(metric(labels, empty, confidence=confidence))).all()


@pytest.mark.parametrize("name", METRICS)
def test_results_are_plain_floats_or_arrays(name):
    y, sets = interval_rows()
    value = METRICS[name](y, sets)
    estimate = METRICS[name](y, sets, confidence=0.9)
    assert isinstance(estimate, Estimate)
    np.testing.assert_array_equal(estimate.value, value)
    for part in (value, *estimate):
        if name in ARRAYS:
            assert part.shape == (ARRAYS[name],)
            assert part.dtype == np.float64
        else:
            assert type(part) is float


@pytest.mark.parametrize("name", ["risk", "coverage", "class_coverage", "class_risk", "distance_when_missed"])
def test_another_number_of_labels_is_an_error(name):
    with pytest.raises(ValueError, match=r"6 rows.*got shape \(5,\)"):
        METRICS[name](Y[:5], SETS)
    with pytest.raises(ValueError, match=r"y\[5\] is 'fatal', which is not one of the classes"):
        METRICS[name]([*Y[:5], "fatal"], SETS)


# confidence


@each_metric
@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, 95, math.nan, math.inf, "0.95"], ids=str)
def test_confidence_outside_zero_and_one_is_an_error(metric, confidence):
    message = rf"confidence must lie strictly between 0 and 1; got {confidence!r}"
    with pytest.raises(ValueError, match=message):
        metric(Y, SETS, confidence=confidence)


@each_metric
def test_more_confidence_is_a_wider_interval_around_the_value(metric):
    y, sets = interval_rows(200)
    narrow, wide = metric(y, sets, confidence=0.5), metric(y, sets, confidence=0.99)
    there = ~np.isnan(np.atleast_1d(narrow.value))
    ends = [
        np.atleast_1d(part)[there] for part in (wide.low, narrow.low, narrow.value, narrow.high, wide.high)
    ]
    for before, after in pairwise(ends):
        assert (before <= after).all()
    assert (ends[0] < ends[-1]).all()


@each_metric
def test_intervals_are_the_same_every_time(metric):
    y, sets = interval_rows()
    np.random.seed(0)  # noqa: NPY002 - the global state must not matter
    first = metric(y, sets, confidence=0.95)
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(metric(y, sets, confidence=0.95), first)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(("n", "k"), [(1, 0), (1, 1), (10, 0), (10, 3), (10, 10), (1000, 951)])
def test_the_interval_of_a_proportion_is_exact_binomial(n, k, confidence):
    sets = IntervalSet([0] * n, [0] * n, range(2))
    y = np.arange(n) >= k
    estimate = metrics.coverage(y.astype(int), sets, confidence=confidence)
    exact = binomtest(k, n).proportion_ci(confidence, method="exact")
    assert estimate.value == k / n
    assert (estimate.low, estimate.high) == pytest.approx((exact.low, exact.high), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["class_coverage", "size_histogram", "centroid_histogram"])
def test_the_intervals_of_many_proportions_are_exact_binomial(name):
    y, sets = interval_rows()
    estimate = METRICS[name](y, sets, confidence=0.95)
    sizes = (
        [np.count_nonzero(y == c) for c in range(5)]
        if name == "class_coverage"
        else [500] * len(estimate.value)
    )
    for n, value, low, high in zip(sizes, *estimate, strict=True):
        if n:
            exact = binomtest(round(value * n), n).proportion_ci(0.95, method="exact")
            assert (low, high) == pytest.approx((exact.low, exact.high), rel=1e-9, abs=1e-12)


def test_the_interval_of_a_mean_narrows_as_its_error_does():
    """It has 1.5 to 2.2 times the width of the normal interval, 1.96 standard errors on each side."""
    for n in (1000, 20_000):
        y, sets = interval_rows(n)
        estimate = metrics.risk(y, sets, "divergence", confidence=0.95)
        error = metrics.losses(y, sets, "divergence").std() / math.sqrt(n)
        assert 1.5 < (estimate.high - estimate.low) / (2 * 1.96 * error) < 2.2


CHANCES = [0.985, 0.008, 0.004, 0.002, 0.001]  # of the labels, with the interval always [0, 0]
HUGE = CostTableLoss([[0, 1, 1, 1, 1], *([1] * k + [0] + [1] * (4 - k) for k in (1, 2, 3)), [50] * 4 + [0]])
COVERED = {
    "divergence": lambda y, sets: metrics.risk(y, sets, "divergence", confidence=0.95),
    "huge cost": lambda y, sets: metrics.risk(y, sets, HUGE, confidence=0.95),
    "size": lambda y, sets: metrics.mean_size(
        IntervalSet(np.zeros_like(y), y, range(5)),
        confidence=0.95,
    ),
    "distance": lambda y, sets: metrics.distance_when_missed(y, sets, confidence=0.95),
}
TRUE = {
    "divergence": np.dot(CHANCES, range(5)) / 4,
    "huge cost": np.dot(CHANCES, [0, 1, 1, 1, 50]) / 50,
    "size": np.dot(CHANCES, range(1, 6)),
    "distance": np.dot(CHANCES, range(5)) / sum(CHANCES[1:]),
}


@pytest.mark.parametrize("n", [30, 200])
@pytest.mark.parametrize("name", COVERED)
def test_intervals_of_means_cover_as_often_as_they_say(name, n):
    """400 samples with rare misses, up to 3 standard errors; without any miss there is no distance."""
    draws = np.random.default_rng(n).multinomial(n, CHANCES, size=400)
    sets = IntervalSet([0] * n, [0] * n, range(5))
    covered = certain = 0
    for counts, times in zip(*np.unique(draws, axis=0, return_counts=True), strict=True):
        estimate = COVERED[name](np.repeat(range(5), counts), sets)
        covered += times * (math.isnan(estimate.value) or estimate.low <= TRUE[name] <= estimate.high)
        certain += estimate.low == estimate.high
    assert covered / 400 >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 400)
    assert not certain


def test_the_range_of_a_class_is_that_of_its_own_costs():
    """One row of each class without a loss: the upper end is in proportion to the largest cost."""
    loss = CostTableLoss([[0, 1, 2], [3, 0, 6], [20, 10, 0]], normalize=False)
    sets = IntervalSet([0, 1, 2], [0, 1, 2], range(3))
    high = metrics.class_risk([0, 1, 2], sets, loss, confidence=0.95).high
    np.testing.assert_allclose(high / [2, 6, 20], high[0] / 2, rtol=1e-9)
    assert 0.9 < high[0] / 2 < 1


@pytest.mark.parametrize("name", [*COVERED])
def test_intervals_do_not_depend_on_the_order_of_rows(name):
    y = np.random.default_rng(0).choice(5, 300, p=CHANCES)
    sets = IntervalSet([0] * 300, [0] * 300, range(5))
    assert COVERED[name](np.sort(y), sets) == COVERED[name](y, sets)


def test_risk_of_a_loss_with_one_cost_has_the_binomial_interval():
    """All rows covered: that is not certain."""
    sets = IntervalSet([0] * 20, [2] * 20, classes=[0, 1, 2])
    estimate = metrics.risk([1] * 20, sets, WeightedLoss([3, 3, 3], normalize=False), confidence=0.95)
    missed = binomtest(0, 20).proportion_ci(0.95, method="exact")
    assert estimate == pytest.approx((0, 0, 3 * missed.high))


def test_an_estimate_reads_well():
    assert str(Estimate(0.088, 0.06466845754105842, 0.11633517066316554)) == "0.088 (0.06467 to 0.1163)"


@pytest.mark.parametrize(
    "loss", [WeightedLoss([0, 1, 1]), WeightedLoss(), DivergenceLoss(), DivergenceLoss(over=0)]
)
def test_the_value_is_the_same_with_and_without_an_interval(loss):
    rng = np.random.default_rng(0)
    sets = IntervalSet(*np.sort(rng.integers(0, 3, (2, 200)), axis=0), classes=[0, 1, 2])
    y = rng.integers(0, 3, 200)
    value, low, high = metrics.risk(y, sets, loss, confidence=0.9)
    assert value == pytest.approx(metrics.risk(y, sets, loss), rel=1e-12)
    assert low <= value <= high
    by_class = metrics.class_risk(y, sets, loss, confidence=0.9)
    assert by_class.value == pytest.approx(metrics.class_risk(y, sets, loss), rel=1e-12)


def test_class_risk_of_few_covered_rows_is_not_certain():
    sets = IntervalSet([0], [1], classes=[0, 1])
    assert metrics.class_risk([0], sets, confidence=0.95).high[0] > 0.9
