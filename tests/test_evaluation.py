"""What test rows show: counts, estimates with intervals that cover, verdicts, and what a report lists."""

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
import sizes
from hypothesis import given
from hypothesis import strategies as st
from populations import HEALTH, survey
from scipy.stats import binom, binomtest, multinomial
from strategies import as_loss, interval_rows
from unchecked import UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import metrics
from ordinalrisk.calibration.guarantees import Guarantee
from ordinalrisk.calibration.promises import Expectation, HighProbability, expectation_threshold
from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.checks.evidence import is_rarer
from ordinalrisk.curves.strata import Strata, Stratum
from ordinalrisk.evaluation import counts as tallies
from ordinalrisk.evaluation import estimates
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import (
    Estimate,
    interval,
    mean,
    mean_of_possible,
    share,
    shares,
    stacked,
)
from ordinalrisk.evaluation.far_off import Kind, far_off, kinds_of, least_covered
from ordinalrisk.evaluation.light import light_of, too_few_rows
from ordinalrisk.evaluation.outcomes import Outcomes
from ordinalrisk.evaluation.realised import ClusterLosses, WeightedLosses, of_losses, of_weighted_classes
from ordinalrisk.evaluation.striking import TopRows
from ordinalrisk.evaluation.verdict import Realised, StratumRisk, judged
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.prediction.predictor import Predictor
from ordinalrisk.report.stops import alpha_range, stops_of

pytestmark = UNCHECKED

# --- means and shares of counted values: as of the rows themselves, with intervals that cover

VALUES, COUNTS = np.array([0.0, 0.25, 1.0, 7.0]), np.array([50, 30, 0, 20])


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (0, 50), (50, 50), (7, 50), (123_456, 1_000_000)])
def test_the_interval_of_a_share_is_exact_binomial(hits, n, confidence):
    exact = binomtest(hits, n).proportion_ci(confidence, method="exact")
    np.testing.assert_allclose(share(hits, n, confidence), [hits / n, exact.low, exact.high], rtol=1e-9)


def test_shares_are_of_their_sum():
    found = shares(np.array([1, 0, 3]), 0.9)
    assert found.value.tolist() == [0.25, 0, 0.75]
    assert (found.low[0], found.high[0]) == share(1, 4, 0.9)[1:]
    assert shares(np.array([1, 0, 3]), None).tolist() == [0.25, 0, 0.75]


def wealth(stakes, shares, rows, candidate):
    """Of bets that the mean is larger, on rows of a value in [0, 1] and a weight in [0, 1]."""
    return sum(
        share * math.prod(1 + stake * weight * (value / candidate - 1) for value, weight in rows)
        for stake, share in zip(stakes, shares, strict=True)
    )


def bets(n):
    stakes, log_shares = estimates.bets(n)
    return stakes.ravel().tolist(), np.exp(log_shares).tolist()


def mirrored(rows):
    return [(1 - value, weight) for value, weight in rows]


# A value, a weight and a probability for each kind of row.
KINDS = {
    "rare": [(0.0, 1.0, 0.9), (0.2, 1.0, 0.09), (1.0, 1.0, 0.01)],
    "weighted": [(0.0, 1.0, 0.2), (0.0, 0.1, 0.5), (0.7, 0.4, 0.2), (1.0, 1.0, 0.1)],
}


@pytest.mark.parametrize("kinds", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_nobody_gains_on_average_at_the_true_mean(kinds, n):
    """So by Markov the wealth is 2 / delta or more with probability delta / 2 at most."""
    stakes, shares = bets(n)
    assert sum(shares) == pytest.approx(1, rel=1e-12)
    assert all(0 < stake < 1 for stake in stakes)
    true = sum(v * w * p for v, w, p in kinds) / sum(w * p for _, w, p in kinds)
    for side, mean_there in ((lambda rows: rows, true), (mirrored, 1 - true)):
        expected = sum(
            math.prod(p for *_, p in drawn)
            * wealth(stakes, shares, side([(v, w) for v, w, _ in drawn]), mean_there)
            for drawn in product(kinds, repeat=n)
        )
        assert expected == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("counts", [[1, 0, 0, 0], [0, 1, 0, 1], [40, 7, 2, 1], [0, 0, 3, 0], [5, 90, 0, 6]])
@pytest.mark.parametrize("weights", [1.0, np.array([1, 0.25, 1, 0.6])], ids=["alike", "weighted"])
def test_the_ends_are_where_the_wealth_reaches_its_limit(counts, weights, confidence):
    """At 2 / delta, and never below: rounding does not shorten the interval."""
    values = np.array([0.0, 0.1, 0.6, 1.0])
    each = np.broadcast_to(weights, 4).tolist()
    rows = [
        row for row, n in zip(zip(values.tolist(), each, strict=True), counts, strict=True) for _ in range(n)
    ]
    low, high = interval(3 + 2 * values, np.array(counts), confidence, 3, 5, weights)
    for side, end in ((rows, (low - 3) / 2), (mirrored(rows), (5 - high) / 2)):
        if not any(value for value, _ in side):
            assert end == 0
            continue
        reached = wealth(*bets(len(rows)), side, end) * (1 - confidence) / 2
        assert reached >= 1
        assert reached == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_intervals_of_few_rows_cover(n):
    """By enumeration, for all mixtures of three values on a grid: none is covered less than 95 %."""
    values = np.array([0.0, 0.1, 1.0])
    samples = [(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]
    ends = np.array([interval(values, np.array(counts), 0.95, 0, 1) for counts in samples])
    small = [*np.geomspace(1e-4, 0.2, 40), 0.4, 0.7, 0.98]
    mixtures = np.array([(1 - a - b, a, b) for a in small for b in small if a + b <= 1])
    mixtures = np.concatenate([mixtures, mixtures[:, ::-1]])
    true = mixtures @ values
    chance = np.array([multinomial.pmf(samples, n, mixture) for mixture in mixtures])
    inside = (ends[:, 0] <= true[:, None]) & (true[:, None] <= ends[:, 1])
    assert (chance * inside).sum(axis=1).min() >= 0.95


DIVERGENCE = np.arange(5) / 4
COSTS, SIZES, THREE = np.array([0.0, 1, 50]), np.arange(1.0, 6), np.array([0, 0.5, 1])


def of_risk(risk):
    missed = np.array([0.7, 0.2, 0.07, 0.03])
    missed *= risk / (missed @ DIVERGENCE[1:])
    return np.append(1 - missed.sum(), missed)


DESIGNS = {
    "divergence 0.01": (DIVERGENCE, of_risk(0.01)),
    "divergence 0.05": (DIVERGENCE, of_risk(0.05)),
    "divergence 0.2": (DIVERGENCE, of_risk(0.2)),
    "a rare huge cost": (COSTS, [0.898, 0.1, 0.002]),
    "a huge cost": (COSTS, [0.89, 0.1, 0.01]),
    "sizes near 1": (SIZES, [0.994, 0.004, 0.001, 0.0005, 0.0005]),
    "nearly constant": (THREE, [0.005, 0.99, 0.005]),
    "never a loss": (THREE, [1, 0, 0]),
    "two far values": (THREE, [0.5, 0, 0.5]),
}


@pytest.mark.parametrize("n", [30, 100, 500])
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_intervals_cover_as_often_as_they_say(design, n):
    """400 samples: the share of covering intervals is at most 3 standard errors below 95 %."""
    values, chances = design
    draws = np.random.default_rng(n).multinomial(n, chances, size=400)
    true, covered = values @ chances, 0
    for counts, times in zip(*np.unique(draws, axis=0, return_counts=True), strict=True):
        low, high = interval(values, counts, 0.95, values[0], values[-1])
        covered += times * (low <= true <= high)
    assert covered / 400 >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 400)


@pytest.mark.parametrize("risk", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("n", [1000, 100_000])
def test_intervals_are_not_too_wide(risk, n):
    """At most 2.2 times as wide as the normal interval, which covers for many rows alone."""
    chances = of_risk(risk)
    counts = np.random.default_rng(0).multinomial(n, chances)
    low, high = interval(DIVERGENCE, counts, 0.95, 0, 1)
    error = math.sqrt(chances @ (DIVERGENCE - risk) ** 2 / n)
    assert high - low < 2.2 * 2 * 1.96 * error


def test_rows_without_any_loss_are_not_certain():
    """The rule of three, with the price of many stakes: within twice Clopper-Pearson."""
    for n in (1, 10, 1000, 10**6):
        low, high = interval(np.array([0.0]), np.array([n]), 0.95, 0, 1)
        exact = binomtest(0, n).proportion_ci(0.95, method="exact").high
        assert low == 0
        assert exact < high < 2 * exact


def test_the_mean_is_that_of_the_rows():
    rows = np.repeat(VALUES, COUNTS)
    assert mean(VALUES, COUNTS, None, 0, 7) == rows.mean()
    assert mean(VALUES, COUNTS, 0.95, 0, 7) == (rows.mean(), *interval(VALUES, COUNTS, 0.95, 0, 7))


def test_values_that_do_not_occur_do_not_matter_beyond_the_range():
    """So a table of costs may have more costs than rows have met."""
    occur = COUNTS > 0
    assert mean(VALUES, COUNTS, 0.95, 0, 7) == mean(VALUES[occur], COUNTS[occur], 0.95, 0, 7)
    assert mean_of_possible(VALUES, COUNTS, 0.95) == mean(VALUES, COUNTS, 0.95, 0, 7)


def test_a_wider_range_is_a_wider_interval():
    narrow, wide = (interval(VALUES, COUNTS, 0.95, 0, high) for high in (7, 70))
    assert narrow[1] < wide[1]


def test_a_mean_is_certain_only_where_one_value_is_possible():
    ones = np.array([9])
    assert mean_of_possible(np.array([2.0]), ones, 0.95) == (2, 2, 2)
    value, low, high = mean(np.array([2.0]), ones, 0.95, 1, 3)
    assert 1 < low < value < high < 3


def test_a_mean_of_two_possible_values_is_a_share():
    found = mean_of_possible(np.array([1.0, 3.0]), np.array([6, 4]), 0.9)
    np.testing.assert_allclose(found, 1 + 2 * np.array(share(4, 10, 0.9)), rtol=1e-15)


def test_so_many_values_that_they_are_binned_widen_the_interval_a_little(monkeypatch):
    """By less than 1 %, on either side, and never the other way."""
    rng = np.random.default_rng(0)
    values, counts = np.sort(rng.beta(0.3, 3, 5000)), rng.integers(1, 3, 5000)
    binned = interval(values, counts, 0.95, 0, 1)
    monkeypatch.setattr(estimates, "_MOST_VALUES", 5000)
    low, high = interval(values, counts, 0.95, 0, 1)
    middle = values @ counts / counts.sum()
    assert low - 0.01 * (middle - low) < binned[0] < low
    assert high < binned[1] < high + 0.01 * (high - middle)


@pytest.mark.parametrize("scale", [1e-180, 1e-20, 1e300])
def test_costs_of_any_size(scale):
    """Where the largest one is far from those that occur, and where it is not."""
    counts = np.array([90, 10])
    usual = interval(np.array([0.0, 1.0]), counts, 0.95, 0, 1)
    scaled = interval(np.array([0.0, scale]), counts, 0.95, 0, scale)
    np.testing.assert_allclose(scaled, scale * np.array(usual), rtol=1e-6)
    low, high = interval(np.array([0.0, min(scale, 1)]), counts, 0.95, 0, 1)
    assert 0 < low < 0.1 * min(scale, 1) < high < 0.25


def test_a_row_that_outweighs_all_others_leaves_the_interval_open():
    values, counts = np.array([0.0, 0.5, 1.0]), np.array([500, 500, 1])
    low, high = interval(values, counts, 0.95, 0, 1, np.array([1e-12, 1e-12, 1.0]))
    assert 0 < low < 0.05
    assert high > 0.999


def test_intervals_are_the_same_every_time():
    assert mean(VALUES, COUNTS, 0.95, 0, 7) == mean(VALUES, COUNTS, 0.95, 0, 7)


def test_nothing_has_no_mean_and_no_share():
    none = 0 * COUNTS
    for found in (share(0, 0, 0.95), mean(VALUES, none, 0.95, 0, 7), mean_of_possible(VALUES, none, 0.95)):
        assert isinstance(found, Estimate)
        assert np.isnan(found).all()
    assert np.isnan([share(0, 0, None), mean(VALUES, none, None, 0, 7)]).all()


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 95, "0.95", np.nan])
def test_confidence_lies_strictly_between_zero_and_one(confidence):
    for estimate in (lambda: share(1, 2, confidence), lambda: mean(VALUES, COUNTS, confidence, 0, 7)):
        with pytest.raises(ValueError, match="confidence must lie strictly between 0 and 1; got"):
            estimate()


def test_stacked_parts_are_arrays():
    found = stacked([Estimate(1, 0, 2), Estimate(3, 2, 4)])
    assert [part.tolist() for part in found] == [[1, 3], [0, 2], [2, 4]]
    assert stacked([1.0, 2.0]).tolist() == [1, 2]


def test_an_estimate_reads_well():
    assert str(Estimate(0.123456, 0.1, 0.2)) == "0.1235 (0.1 to 0.2)"
    assert str(stacked([Estimate(1, 0, 2)])).startswith("Estimate(value=array([1])")


# --- counts of pairs of labels: by the definition, in any batches, and never rounded

LOSSES = [
    orisk.WeightedLoss(),
    orisk.WeightedLoss([1, 2, 3, 4, 0.1]),
    orisk.DivergenceLoss(0.5),
    orisk.DivergenceLoss(under=3, normalize=False),
    orisk.CostTableLoss(np.abs(np.subtract.outer(range(5), range(5))) * [[1], [2], [3], [4], [5]]),
]
PAIRS = ("truth_lower", "truth_upper", "lower_upper")
COUNTED = (*PAIRS, "covered_sizes")


def each(labels, sets):
    return zip(labels.tolist(), sets.lower_index.tolist(), sets.upper_index.tolist(), strict=True)


@pytest.fixture(params=[0, 1 << 16], ids=["pairs", "triples"])
def way_of_counting(request, monkeypatch):
    monkeypatch.setattr(tallies, "_FEW_CELLS", request.param)


EITHER_WAY = pytest.mark.usefixtures("way_of_counting")


@EITHER_WAY
def test_counts_are_those_of_the_definition():
    labels, sets = interval_rows(300)
    counted = Tally.of(labels, sets)
    held, nearest = np.zeros((2, 5, 5), int)
    pairs = np.zeros((3, 5, 5), int)
    sizes, centroids, covered = np.zeros(5, int), np.zeros(9, int), np.zeros(5, int)
    for y, lower, upper in each(labels, sets):
        pairs[0][y, lower] += 1
        pairs[1][y, upper] += 1
        pairs[2][lower, upper] += 1
        nearest[y, min(max(y, lower), upper)] += 1
        held[y, lower : upper + 1] += 1
        sizes[upper - lower] += 1
        covered[upper - lower] += lower <= y <= upper
        centroids[lower + upper] += 1
    for name, expected in zip(PAIRS, pairs, strict=True):
        assert np.array_equal(getattr(counted, name), expected)
    found = {"nearest": nearest, "held": held, "sizes": sizes, "centroids": centroids}
    for name, expected in (found | {"covered_sizes": covered}).items():
        assert np.array_equal(getattr(counted, name), expected)
    assert (counted.n_rows, counted.class_rows.tolist()) == (300, np.bincount(labels, minlength=5).tolist())


@EITHER_WAY
@pytest.mark.parametrize("cuts", [[], [1], [0, 10, 10, 299], range(300)])
def test_batches_add_up(cuts):
    labels, sets = interval_rows(300)
    whole, added = Tally.of(labels, sets), Tally.empty(5)
    for rows in np.split(np.arange(300), list(cuts)):
        added = added.merge(Tally.of(labels[rows], sets[rows]))
    for name in COUNTED:
        assert np.array_equal(getattr(added, name), getattr(whole, name))


@EITHER_WAY
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_total_loss_is_exact(loss):
    labels, sets = interval_rows(300)
    table = loss.exact_costs(5)
    total = sum(table[y][min(max(y, lower), upper)] for y, lower, upper in each(labels, sets))
    assert isinstance(total, Fraction)
    assert Tally.of(labels, sets).total_loss(loss) == total


@EITHER_WAY
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_risk_is_the_mean_of_the_losses(loss):
    labels, sets = interval_rows(300)
    losses = metrics.losses(labels, sets, loss)
    counted = Tally.of(labels, sets)
    assert counted.risk(loss) == pytest.approx(losses.mean(), rel=1e-14)
    by_class = [losses[labels == k].mean() for k in range(4)]
    np.testing.assert_allclose(counted.class_risk(loss), [*by_class, np.nan], rtol=1e-14)


@EITHER_WAY
def test_sizes_and_coverage_of_each_class():
    labels, sets = interval_rows(300)
    counted = Tally.of(labels, sets)
    inside = (sets.lower_index <= labels) & (labels <= sets.upper_index)
    for values, expected in ((counted.class_size(), sets.size), (counted.class_coverage(), inside)):
        by_class = [expected[labels == k].mean() for k in range(4)]
        np.testing.assert_allclose(values, [*by_class, np.nan], rtol=1e-14)


@EITHER_WAY
def test_no_rows_are_nan():
    empty = Tally.empty(3)
    assert empty.n_rows == 0
    assert empty.total_loss(orisk.WeightedLoss()) == 0
    for value in (
        empty.coverage(),
        empty.risk(orisk.WeightedLoss()),
        empty.mean_size(),
        empty.distance_when_missed(),
    ):
        assert np.isnan(value)
    assert np.isnan(empty.class_size()).all()


@EITHER_WAY
def test_counts_beyond_32_bits_stay_exact():
    """As of a file with billions of rows."""
    labels, sets = interval_rows(300)
    once = Tally.of(labels, sets)
    many = Tally(*(getattr(once, name) * 10**10 for name in COUNTED))
    loss = orisk.DivergenceLoss(power=0.5)
    assert many.n_rows == 300 * 10**10
    assert many.total_loss(loss) == once.total_loss(loss) * 10**10
    assert many.coverage() == once.coverage()
    assert many.risk(loss) == pytest.approx(once.risk(loss), rel=1e-14)


@EITHER_WAY
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64])
def test_labels_of_few_bytes_do_not_overflow(kind):
    labels, sets = interval_rows(300, 120)
    expected = Tally.of(labels, sets)
    narrow = Tally.of(labels.astype(kind), sets)
    assert all(np.array_equal(getattr(narrow, name), getattr(expected, name)) for name in COUNTED)


# --- realised risks, by brute force


def close(risk, *expected):
    return np.allclose([float(part) for part in risk], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_weighted_risks(loss):
    y, sets = interval_rows(250, 4)
    costs, weights = CostTable.of(as_loss(loss), 4), np.random.default_rng(1).gamma(2, 1, 250)
    each = metrics.losses(y, sets, loss)
    summed = WeightedLosses(1, 2, costs)
    nearest = np.clip(y, sets.lower_index, sets.upper_index)
    parts = np.arange(250) % 2
    summed.add(0, parts, y, nearest, WeightedLosses.exactly(weights))
    for mine, chosen in [(np.ones(250, bool), None), (parts == 1, 1)]:
        w, lost = weights[mine], each[mine]
        risk, n = np.average(lost, weights=w), w.sum() ** 2 / (w**2).sum()
        found = summed.realised(0, chosen)
        assert found.n_units == pytest.approx(n, rel=1e-12)
        assert found.risk.value == pytest.approx(risk, rel=1e-12)
        low, high = estimates.interval(lost, np.ones(len(w)), 0.95, 0, 1, w / w.max())
        assert low - 0.1 * (risk - low) < found.risk.low <= low
        assert high <= found.risk.high < high + 0.1 * (high - risk)
    assert WeightedLosses(1, 2, costs).realised(0, 0) is None


def rows_by_weight(kind, rng, n):
    """Losses of 0 or more, with weights that go along with them and a largest one that is often seen."""
    nearest = rng.choice(4, n, p=[0.85, 0.1, 0.03, 0.02])
    if kind == "heavy":
        return nearest, np.where(rng.random(n) < 0.1 + 0.2 * nearest, 6.0, 0.3)
    return nearest, np.minimum(rng.lognormal(0.3 * nearest, 1), 5)


@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize("kind", ["heavy", "clipped"])
def test_intervals_of_weighted_rows_cover(kind, n):
    """200 samples at 95 %, up to 3 standard errors; they are less than 3 times as wide as normal ones."""
    rng = np.random.default_rng(0)
    nearest, weights = rows_by_weight(kind, rng, 2_000_000)
    true = np.average(nearest, weights=weights) / 3
    costs, zeros, covered, widths = CostTable.of(orisk.DivergenceLoss(), 4), np.zeros(n, int), 0, []
    for _ in range(200):
        nearest, weights = rows_by_weight(kind, rng, n)
        kept = WeightedLosses(1, 1, costs)
        kept.add(0, zeros, zeros, nearest, WeightedLosses.exactly(weights))
        value, low, high = kept.realised(0, 0).risk
        covered += low <= true <= high
        error = math.sqrt((weights**2 * (nearest / 3 - value) ** 2).sum()) / weights.sum()
        widths.append((high - low) / (2 * 1.96 * error) if error else math.inf)
    assert covered / 200 >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 200)
    assert np.median(widths) < 3


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [1, 0, 8, 1]])
def test_intervals_of_weighted_classes_cover(weights):
    """200 samples of 100 rows at 95 %, up to 3 standard errors."""
    rng = np.random.default_rng(0)
    chances, costs = np.array([0.7, 0.2, 0.07, 0.03]), CostTable.of(orisk.DivergenceLoss(), 4)
    weights = [Fraction(weight) for weight in weights]
    count = chances * [float(weight) for weight in weights]
    true, sets = count @ np.arange(4) / 3 / count.sum(), orisk.IntervalSet([0] * 100, [0] * 100, range(4))
    covered = 0
    for _ in range(200):
        tally = Tally.of(rng.choice(4, 100, p=chances), sets)
        _, low, high = of_weighted_classes(tally, costs, weights).risk
        covered += low <= true <= high
    assert covered / 200 >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 200)


def test_risks_of_weighted_classes():
    y, sets = interval_rows(250, 4)
    weights = [Fraction(1), Fraction(1, 2), Fraction(2), Fraction(1)]
    w = np.array([float(weight) for weight in weights])[y]
    tally = Tally.of(y, sets)
    found = of_weighted_classes(tally, CostTable.of(orisk.WeightedLoss(), 4), weights)
    risk, n = np.average(metrics.losses(y, sets), weights=w), w.sum() ** 2 / (w**2).sum()
    ends = estimates.interval(metrics.losses(y, sets), np.ones(250), 0.95, 0, 1, w / 2)
    assert close(found.risk, risk, *ends)
    assert found.n_units == pytest.approx(n, rel=1e-12)
    nothing = Tally.of(np.array([1]), sets[:1])
    assert of_weighted_classes(nothing, CostTable.of(orisk.WeightedLoss(), 4), [1, 0, 1, 1]) is None


def test_risks_of_clusters():
    rng = np.random.default_rng(0)
    costs = CostTable.of(orisk.DivergenceLoss(), 4)
    clusters, parts = rng.integers(0, 40, 300), rng.integers(0, 2, 300)
    units = rng.integers(0, 4, 300)
    kept = ClusterLosses(2, 2, costs)
    for rows in (slice(0, 120), slice(120, 300)):
        numbers = kept.numbered(clusters[rows], len(units[rows]))
        kept.add(1, kept.units(numbers, parts[rows]), units[rows])
    for part in (0, 1):
        mine = parts == part
        rows = [units[mine & (clusters == c)] for c in np.unique(clusters[mine])]
        means = [lost.sum() * (1 / 3) / len(lost) for lost in rows]
        found = kept.realised(1, part)
        assert found.n_units == len(means)
        assert found.risk.value == pytest.approx(np.mean(means), rel=1e-12)
        error = np.std([*means, 0])
        assert found.deviation == pytest.approx(error, rel=1e-12)
        assert found.risk == estimates.mean(*np.unique(means, return_counts=True), 0.95, 0, 1)
        assert kept.realised(0, part).risk.value == 0
    assert ClusterLosses(1, 2, costs).realised(0, 0) is None


# --- verdicts


def guarantee(alpha, n_rows, certified=True, saturated=False, bound=1):
    return Guarantee(Fraction(alpha), n_rows, Fraction(bound), certified, saturated)


def verdict(n_missed, n_test, promised, risk=None, cost=1.0):
    """The verdict on this number of misses among this number of rows."""
    found = of_losses(np.array([0.0, cost]), np.array([n_test - n_missed, n_missed]))
    return judged(found if risk is None else found._replace(risk=risk), promised, n_test)


def test_three_verdicts():
    agrees = verdict(50, 1000, guarantee("0.05", 400))
    assert agrees.word == "agrees"
    assert agrees.text == (
        "On 1,000 test rows the average loss was 0.05 (95 % interval 0.03734 to 0.06539). "
        "This agrees with the guarantee of at most 0.05, which lies within the interval."
    )
    chance = verdict(70, 1000, guarantee("0.05", 400))
    assert chance.word == "chance"
    assert "average loss was 0.07" in chance.text
    assert "400 rows" in chance.text
    assert "1,000 test rows" in chance.text
    assert "up to 0.02957 above" in chance.text  # 1.96 sqrt(0.07 * 0.93 (1 / 400 + 1 / 1000)), nearly
    disagrees = verdict(90, 1000, guarantee("0.05", 400))
    assert disagrees.word == "disagrees"
    assert "average loss was 0.09" in disagrees.text
    for reason in ("trained on those", "population", "model", "one person", "columns"):
        assert reason in disagrees.text
    assert verdict(70, 1000, guarantee("0.05", 40_000)).word == "disagrees"
    assert verdict(90, 1000, guarantee("0.05", 100)).word == "chance"


def test_a_loss_too_small_to_be_true_is_asked_about():
    """Standard deviation of the difference: sqrt(p (1 - p) (1 / 400 + 1 / 1000)), with p = 0.045 0.0123."""
    promised = replace(guarantee("0.05", 400), calibration_risk=0.045)
    question = " It is far less than the 0.045 of the calibration rows: was the model trained on these rows?"
    assert verdict(20, 1000, promised).text.endswith(question)
    assert "far less" not in verdict(30, 1000, promised).text
    assert "far less" not in verdict(20, 1000, guarantee("0.05", 400)).text
    assert verdict(20, 1000, promised).word == "agrees"


def test_agrees_while_the_interval_reaches_alpha():
    for low, word in ((0.125, "agrees"), (0.126, "chance")):
        assert verdict(1, 2, guarantee("0.125", 400), Estimate(0.5, low, 0.9)).word == word


def test_chance_ends_where_the_formula_says():
    """Excess over deviation passes 1.96 between two numbers of misses."""
    for n_calibration in (100, 1000):
        words = [verdict(k, 1000, guarantee("0.05", n_calibration)).word for k in range(50, 200)]
        first = 50 + words.index("disagrees")
        assert set(words[first - 50 :]) == {"disagrees"}

        def excess(k):
            r = k / 1001  # one row without loss is counted in
            return (k / 1000 - 0.05) / math.sqrt(r * (1 - r) * (1 / n_calibration + 1 / 1000))  # noqa: B023

        assert excess(first - 1) <= 1.96 < excess(first)


def test_verdict_of_saturated_and_uncertified_stops():
    saturated = verdict(10, 1000, guarantee("0.05", 400, saturated=True))
    assert saturated.word == "agrees"
    assert "Every set is a single label" in saturated.text
    assert verdict(200, 1000, guarantee("0.05", 400, saturated=True)).word == "disagrees"
    uncertified = verdict(0, 1000, guarantee("0.001", 400, certified=False))
    assert uncertified.word == "nothing"
    assert "at least 999 calibration rows, and there were 400" in uncertified.text


def test_one_row_can_not_disagree_with_much():
    for cost in (1.0, 0.5):
        assert verdict(1, 1, guarantee("0.1", 400), cost=cost).word == "agrees"


@pytest.mark.no_cover
@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_disagreement_is_rare_for_exchangeable_rows(draw, loss):
    """300 draws of 200 calibration and 20,000 test rows: at most 5 % disagree, by the interval alone 20 %."""
    loss, alpha, n_draws = as_loss(loss), Fraction("0.1"), 300
    words, above = [], 0
    for seed in range(n_draws):
        proba, y = draw(20_200, 5, seed)
        controller = orisk.RiskController(loss, alpha).calibrate(proba[:200], y[:200])
        sets = controller.predict_set(proba[200:])
        risk = metrics.risk(y[200:], sets, loss, confidence=0.95)
        found = of_losses(*np.unique(metrics.losses(y[200:], sets, loss), return_counts=True))
        words.append(judged(found._replace(risk=risk), controller.guarantee(), 20_000).word)
        above += risk.low > alpha
    assert words.count("disagrees") <= 0.05 * n_draws
    assert words.count("chance") + words.count("disagrees") == above
    assert above >= 0.2 * n_draws


def promised(alpha="0.1", n=400, certified=True, **more):
    return Guarantee(Fraction(alpha), n, Fraction(1), certified, False, **more)


def realised(risk, n, deviation=0.3):
    spread = 1.96 * deviation / math.sqrt(n)
    return Realised(estimates.Estimate(risk, risk - spread, risk + spread), deviation, n)


def test_with_delta_only_the_test_rows_are_by_chance():
    """An excess of 2.5 standard errors of the test rows alone, 1.1 with those of the calibration."""
    found = realised(0.1 + 2.5 * 0.3 / math.sqrt(2000), 2000)
    assert judged(found, promised(), 2000).word == "chance"
    sure = judged(found, promised(delta=Fraction(1, 20)), 2000)
    assert sure.word == "disagrees"
    assert "fails with a probability of up to 0.05" in sure.text


def test_a_verdict_names_its_units():
    clusters = judged(realised(0.05, 80), promised(unit="cluster"), 1000)
    assert clusters.text.startswith(
        "On 80 clusters with 1,000 test rows the average loss of a cluster was 0.05"
    )
    weighted = judged(realised(0.05, 412.25), promised(shift="covariates"), 1000)
    assert weighted.text.startswith(
        "On 1,000 test rows, which count as 412.2 by their weights, the weighted average loss"
    )
    few = judged(realised(0.0, 80), promised(certified=False, unit="cluster", n_needed=950), 100)
    assert "0.1 needs at least 950 calibration clusters, and there were 400" in few.text


def parts_with(excesses, n_test=1000, n=400):
    """Groups that exceed their alpha by so many standard deviations."""
    error = 0.3 * math.sqrt(1 / n + 1 / n_test)
    found = [realised(0.1 + z * error, n_test) for z in excesses]
    return [
        StratumRisk(promised(n=n, group=f"g{i}"), n_test, each, judged(each, promised(n=n), n_test).word)
        for i, each in enumerate(found)
    ]


def whole(parts):
    return promised(parts=tuple(part.guarantee for part in parts))


@pytest.mark.parametrize(
    ("excesses", "word"),
    [
        ([0, -1, -2], "agrees"),
        ([0, 1.9, 0], "chance"),
        ([2.5], "disagrees"),
        ([2.5] + [0] * 19, "chance"),  # one of 20 looks so by chance: 2.5 is below their 3.02
        ([3.1] + [0] * 19, "disagrees"),
    ],
)
def test_the_worst_of_many_groups_is_judged_as_such(excesses, word):
    parts = parts_with(excesses)
    verdict = judged(realised(0.1, 1000), whole(parts), 1000, strata=parts)
    assert verdict.word == word
    above = sum(part.word != "agrees" for part in parts)
    count = f"{len(parts) - above} of {len(parts)}" if above else f"All {len(parts)}"
    assert f"{count} groups that could be tested agree" in verdict.text
    text = verdict.text.replace("\n", " ")
    assert ("In g0, the loss is above alpha by more than chance explains;" in text) == (word == "disagrees")
    assert (f"by no more than chance explains among {len(parts)}." in text) == (word == "chance")
    assert ("g0" in verdict.text) == (parts[0].word != "agrees")


def test_parts_that_say_nothing():
    uncertified = [StratumRisk(promised(certified=False, group="few"), 30, realised(0, 30), "nothing")]
    verdict = judged(realised(0, 30), whole(uncertified), 30, strata=uncertified)
    assert verdict.word == "nothing"
    parts = uncertified + parts_with([0])
    both = judged(realised(0.1, 100), whole(parts), 100, strata=parts)
    assert both.word == "agrees"
    assert "1 of 1 groups that could be tested agrees with the guarantee." in both.text
    assert "Too few calibration rows for a guarantee: few." in both.text
    same = judged(realised(0.1, 100), whole(parts), 100, calibrated_on=True, strata=parts)
    assert same.word == "nothing"
    assert "rows of the calibration itself" in same.text


def verdict_of(controller, batch):
    counted = Outcomes([Predictor.of(controller.spec, controller.calibration_)])
    counted.add(batch)
    [found] = counted.finish(controller.calibration_, [controller.guarantee()])
    return found.verdict


@pytest.mark.parametrize("by", ["rows", "classes"])
def test_weighted_rows_of_the_new_population_are_noticed(draw, by):
    """They would be weighted twice; rows drawn like the calibration rows are what the weights are for."""
    proba, y = draw(6_000, 5, seed=3)
    ratios = np.array([0.25, 0.5, 1, 2, 3])
    weights = ratios[proba.argmax(axis=1)] if by == "rows" else ratios[y]
    known, like = slice(0, 2_000), np.arange(2_000, 6_000)
    told = {"sample_weight": weights[known]} if by == "rows" else {"class_ratios": ratios}
    controller = orisk.RiskController(alpha=0.2).calibrate(proba[known], y[known], **told)
    chance = weights[like] / weights[like].sum()
    shifted = np.random.default_rng(4).choice(like, 2_000, p=chance)
    words = {}
    for name, rows in (("like", like), ("shifted", shifted)):
        new = {"sample_weight": weights[rows]} if by == "rows" else {}
        words[name] = verdict_of(controller, Batch(proba[rows], y[rows], **new))
    assert words["like"].word == "agrees"
    assert words["shifted"].word == "nothing"
    assert (
        "Rows of the new population would be weighted twice: test on rows drawn like" in words["shifted"].text
    )


@pytest.mark.parametrize("n_test", [1, 5, 20, 60, 100, 400])
@pytest.mark.parametrize("heavy", [False, True], ids=["by class", "a rare heavy row"])
def test_rows_drawn_like_the_calibration_rows_are_not_accused(draw, n_test, heavy):
    rng, accused = np.random.default_rng(n_test), 0
    for seed in range(30):
        proba, y = draw(300 + n_test, 3, seed=seed)
        weights = np.where(rng.random(len(y)) < 0.01, 20.0, 1.0)
        told = {"sample_weight": weights[:300]} if heavy else {"class_ratios": [2, 1, 0.8]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rows too heavy to certify
            controller = orisk.RiskController(alpha=0.2).calibrate(proba[:300], y[:300], **told)
        new = {"sample_weight": weights[300:]} if heavy else {}
        accused += "weighted twice" in verdict_of(controller, Batch(proba[300:], y[300:], **new)).text
    assert accused == 0


# --- the risks that a report shows


@pytest.mark.parametrize("delta", ["0.1", "0.01"])
def test_the_range_of_delta_begins_and_ends_where_thresholds_do(draw, delta):
    proba, y = draw(150, 4)
    controller = orisk.RiskController(alpha=0.2, delta=delta).calibrate(proba, y)
    [part] = controller.calibration_.strata.parts
    promise = HighProbability(Fraction(delta))
    lowest, saturation = alpha_range(part, promise)
    tick = Fraction(1, 1000)
    assert promise.threshold(part, lowest) > -math.inf == promise.threshold(part, lowest - tick)
    assert promise.threshold(part, saturation) == math.inf > promise.threshold(part, saturation - tick)
    nobody = type(part)(
        None,
        None,
        0,
        part.curve.from_steps(np.zeros(0), np.zeros(0, int), unit=Fraction(1), n_rows=0, bound=Fraction(1)),
        True,
    )
    assert alpha_range(nobody, promise) is None


def random_curve(rng):
    n = int(rng.choice([1, 2, 9, 60, 1000, 40_000]))
    m = int(rng.integers(0, n + 1))
    bound = Fraction(rng.choice(["1", "47", "0.3", "1000000", "1/7"]))
    units = int(rng.choice([1, 9]))
    by = rng.integers(1, units + 1, m)
    return orisk.RiskCurve.from_steps(rng.random(m), by, unit=bound / units, n_rows=n, bound=bound)


def is_round(step):
    """Whether a step is 1, 2 or 5 times a power of ten."""
    while step < 1:
        step *= 10
    while step >= 10:
        step /= 10
    return step in (1, 2, 5)


def stops_at(curve, alpha, K):
    """The stops of a calibration with this curve."""
    loss = orisk.WeightedLoss([curve.bound] * K, normalize=False)
    part = Stratum(None, None, curve.n_rows, curve, two_valued=True)
    calibration = Calibration(CostTable.of(loss, K), np.arange(K), Strata((part,)), "")
    ranges = [alpha_range(part, Expectation())]
    stops = stops_of(Spec(loss, alpha), calibration, ranges, plain=True)
    return [SimpleNamespace(alpha=stop.value, threshold=stop.thresholds.values[0]) for stop in stops]


@pytest.mark.no_cover
def test_stops_by_their_definition(usual_stops):
    rng = np.random.default_rng(0)
    for _ in range(200):
        curve = random_curve(rng)
        K = int(rng.choice([2, 5, 12, 40, 60, 61, 300]))
        alpha = curve.bound * Fraction(int(rng.integers(1, 300)), 301)
        stops = stops_at(curve, alpha, K)
        assert [stop.alpha for stop in stops] == sorted({stop.alpha for stop in stops})
        assert all(stop.threshold == expectation_threshold(curve, stop.alpha) for stop in stops)
        assert alpha in [stop.alpha for stop in stops]
        assert len(stops) <= sizes.USUAL["MOST_STOPS"]
        others = [stop for stop in stops if stop.alpha != alpha]
        assert all(stop.threshold > -math.inf for stop in others)
        assert all(0 < stop.alpha < curve.bound for stop in others)
        if len(others) < 3:
            continue
        step = min(b.alpha - a.alpha for a, b in pairwise(others))
        assert is_round(step)
        assert all((stop.alpha / step).denominator == 1 for stop in others)
        assert (others[-1].alpha - others[0].alpha) / step in (len(others) - 1, len(others))
        if (alpha / step).denominator == 1 and alpha < others[0].alpha:
            continue
        assert others[0].alpha - step * (1 + (alpha == others[0].alpha - step)) < curve.bound / (
            curve.n_rows + 1
        )
        saturated = [stop for stop in others if stop.threshold == math.inf]
        assert len(saturated) <= 1
        if not saturated and expectation_threshold(curve, alpha) < math.inf:
            assert others[-1].alpha + step >= curve.bound


def test_about_a_hundred_stops(usual_stops):
    """Enough to choose from with few classes, at least 15 with many."""
    rng = np.random.default_rng(0)
    for n in (200, 1000, 30_000):
        for part in (0.01, 0.1, 0.5, 0.99):
            m = math.ceil(part * n)
            curve = orisk.RiskCurve.from_steps(
                rng.random(m), np.ones(m, int), unit=Fraction(1), n_rows=n, bound=Fraction(1)
            )
            for K, fewest, most in ((2, 70, 200), (10, 60, 200), (30, 20, 80), (60, 15, 40), (500, 15, 40)):
                assert fewest <= len(stops_at(curve, Fraction(1, 20), K)) <= most


# --- the rows that a report shows


@given(
    values=st.lists(st.integers(1, 6), max_size=60),
    cut=st.integers(1, 60),
    most=st.integers(1, 12),
)
def test_top_rows_by_sorting(values, cut, most):
    top = TopRows(most)
    for start in range(0, len(values), cut):
        part = np.array(values[start : start + cut])
        top.add(part, np.arange(start, start + len(part)))
    assert top.rows == sorted(range(len(values)), key=lambda row: (-values[row], row))[:most]


# --- classes, groups and sizes that are far off


def found_by(controller, proba, y, **columns):
    counted = Outcomes([Predictor.of(controller.spec, controller.calibration_)])
    counted.add(Batch(proba, y, **columns))
    [found] = counted.finish(controller.calibration_, [controller.guarantee()])
    return found


def calibrated(loss="coverage", alpha=0.1, names=HEALTH, **options):
    proba, y = survey(2000, 1)
    controller = orisk.RiskController(loss, alpha, classes=names, **options)
    return controller.calibrate(proba, np.array(names)[y])


@pytest.mark.parametrize("m", [1, 7])
@pytest.mark.parametrize("n", [1, 5, 20, 200, 3000])
def test_chance_alone_makes_a_class_far_off_rarely(n, m):
    """Exactly: at half of the target with probability 0.1, a class at three quarters of it with 0.025."""
    others = [Kind("class", f"fine {i}", 100, 90, 0.9) for i in range(m - 1)]
    for kind, limit, most in (("group", 0.45, 0.1), ("class", 0.675, 0.025)):
        accused = [k for k in range(n + 1) if far_off([Kind(kind, "a", n, k, 0.9), *others])]
        level = binom.cdf(max(accused), n, limit) if accused else 0.0
        assert level <= most
        assert accused == [*range(len(accused))]
        assert n < 5 or binom.cdf(len(accused), n, limit) > most  # one more covered row would be too many


@pytest.mark.parametrize(("n_rows", "n_covered"), [(5, 0), (10, 0), (40, 10), (99, 36)])
def test_a_class_that_is_mostly_missed_is_far_off_beside_many_others(n_rows, n_covered):
    others = [Kind("group", f"fine {i}", 100, 90, 0.9) for i in range(40)]
    [found] = far_off([*others, Kind("class", "rare", n_rows, n_covered, 0.9)])
    assert found.name == "rare"
    assert not far_off([*others, Kind("class", "rare", 4, 0, 0.9)])


@pytest.mark.parametrize("n_rows", [5, 20, 100, 1000])
def test_evaluations_and_calibrations_name_the_same_classes(n_rows):
    """A class that a calibration warns of is not green when rows like these test it."""
    for n_covered in range(n_rows + 1):
        of_rows = is_rarer(n_covered, n_rows, Fraction("0.45"), Fraction("0.1"))
        assert far_off([Kind("class", "a", n_rows, n_covered, 0.9)]) or not of_rows
        for other in (
            Kind("group", "a", n_rows, n_covered, 0.9),
            Kind("class", "a", n_rows, n_covered, 0.9, False),
        ):
            assert bool(far_off([other])) == of_rows


def test_the_interval_is_corrected_for_all_that_was_looked_at():
    kinds = [Kind("class", "a", 50, 4, 0.9), Kind("group", "b", 50, 45, 0.9), Kind("size", 1, 50, 45, 0.9)]
    [found] = far_off(kinds)
    exact = binomtest(46, 50).proportion_ci(1 - 0.05 / 3, method="exact")
    assert found.missed == pytest.approx((0.92, exact.low, exact.high))
    assert (found.kind, found.name, found.n_rows, found.n_missed) == ("class", "a", 50, 46)


def test_rows_of_clusters_count_as_their_clusters():
    """60 rows of 6 patients are no more than 6 rows, where each patient's rows agree."""
    kinds = [Kind("class", "a", 60, 20, 0.9)]
    assert far_off(kinds)
    assert not far_off(kinds, rows_per_unit=10)


def test_clusters_are_not_taken_for_rows():
    """Every patient with 'very poor' health is missed: so are 80 rows, but of two patients."""
    proba, y = survey(3000, 2)
    known = slice(0, 1000)
    patients = np.where(y == 0, np.arange(3000) % 2, 2 + np.arange(3000) % 40)
    sure = orisk.RiskController(alpha=0.1).calibrate(proba[known], y[known])
    by_patient = orisk.RiskController(alpha=0.1).calibrate(
        proba[known], y[known], clusters=np.arange(1000) // 2
    )
    rest = slice(1000, 3000)
    assert found_by(sure, proba[rest], y[rest]).light.far_off
    assert not found_by(by_patient, proba[rest], y[rest], clusters=patients[rest]).light.far_off


def sets_of(pairs):
    lower, upper = np.transpose(pairs)
    return IntervalSet(lower, upper, classes=range(4))


def test_what_is_looked_at():
    """Each class that can cost something, each group, and each size but the whole scale, if it has rows."""
    y = np.array([0, 0, 1, 1, 3])
    tally = Tally.of(y, sets_of([(0, 0), (1, 1), (0, 1), (2, 3), (0, 3)]))
    costs = CostTable.of(orisk.WeightedLoss([1, 1, 1, 0]), 4)
    parts = [
        StratumRisk(promised("0.1", group=g, label=y), n, None, "nothing", n_covered=k)
        for g, y, n, k in [("A", 0, 3, 1), ("A", 1, 2, 2), ("B", 0, 0, 0)]
    ]
    found = kinds_of(tally, promised("0.1"), costs, range(4), parts)
    assert found == [
        Kind("class", 0, 2, 1, 0.9),
        Kind("class", 1, 2, 1, 0.9),
        Kind("group", "A", 5, 3, 0.9),
        Kind("size", 1, 2, 1, 0.9),
        Kind("size", 2, 2, 1, 0.9),
    ]


def test_all_rows_are_looked_at_with_unequal_weights():
    """Not if weights are part of the guarantee: of the share of the weight, of each class, of a shift."""
    tally = Tally.of(np.array([0, 0, 1, 3]), sets_of([(0, 0), (1, 1), (0, 1), (2, 2)]))
    unequal = CostTable.of(orisk.WeightedLoss([2, 1, 1, 0]), 4)
    of_all = lambda *of: [kind for kind in kinds_of(tally, *of, range(4)) if kind.kind == "all"]  # noqa: E731
    assert of_all(promised("0.1"), unequal) == [Kind("all", None, 3, 2, 0.9)]
    assert not of_all(promised("0.1", measure="weight"), unequal)
    assert not of_all(promised("0.1", shift="labels"), unequal)
    assert not of_all(promised("0.1", parts=(promised("0.1", label=0),)), unequal)
    assert not of_all(promised("0.1"), CostTable.of(orisk.WeightedLoss(), 4))
    assert not of_all(promised("0.1"), CostTable.of(orisk.DivergenceLoss(), 4))


def test_all_rows_are_far_off_if_missed_twice_as_often_as_equal_weights_allow():
    [worst, *_] = far_off([Kind("class", "a", 90, 0, 0.9), Kind("all", None, 1000, 700, 0.9)])
    said = "30 % of all rows are missed (300 of 1,000 rows, more than twice what equal weights allow)"
    assert str(worst) == said
    assert not far_off([Kind("all", None, 1000, 790, 0.9)])
    assert not far_off([Kind("all", None, 1000, 310, 0.6)])
    assert far_off([Kind("all", None, 1000, 200, 0.6)])


def test_what_was_promised():
    """By the alpha of the class; in units of the largest cost; not more than all rows have for distances."""
    y = np.repeat([0, 1], 500)
    tally = Tally.of(y, sets_of([(0, 0)] * 600 + [(1, 1)] * 400))
    parts = tuple(promised(alpha, label=label) for label, alpha in ((0, "0.1"), (1, "0.3")))
    by_class = promised("0.3", parts=parts)

    def coverages(loss, guarantee):
        kinds = kinds_of(tally, guarantee, CostTable.of(loss, 4), range(4))
        return [kind.promised for kind in kinds if kind.kind == "class"]

    assert coverages(orisk.WeightedLoss(), by_class) == [0.9, 0.7]
    assert coverages(orisk.WeightedLoss([1, 2, 2, 10], normalize=False), promised("2")) == [0.8, 0.8]
    low = tally.coverage(0.95).low
    assert 0.8 < low < 0.9
    assert coverages(orisk.DivergenceLoss(), promised("0.01")) == [low, low]


# --- the colours


@pytest.mark.parametrize(
    ("word", "missed", "few", "colour", "start"),
    [
        ("agrees", False, False, "green", "The test rows agree with the guarantee. No class, group or"),
        (
            "agrees",
            True,
            False,
            "amber",
            "The test rows agree with the guarantee on average, but 90 % of class",
        ),
        ("agrees", False, True, "amber", "There are too few test rows to tell whether"),
        ("chance", False, False, "amber", "The loss is above alpha, which can be chance."),
        (
            "chance",
            True,
            False,
            "amber",
            "The loss is above alpha, which can be chance, but 90 %",
        ),
        ("nothing", False, False, "amber", "The test rows say nothing about the guarantee."),
        ("nothing", True, True, "amber", "The test rows say nothing about the guarantee, but 90 % of class"),
        ("disagrees", False, False, "red", "The test rows disagree with the guarantee."),
        ("disagrees", True, False, "red", "The test rows disagree with the guarantee; 90 % of class 'a' are"),
    ],
)
def test_colours(word, missed, few, colour, start):
    kinds = far_off([Kind("class", "a", 1000, 100, 0.9)]) if missed else []
    light = light_of(word, kinds, 4, few)
    assert light.colour == colour
    assert light.sentence.startswith(start)
    assert light.sentence.endswith(".")
    assert (list(light.far_off), light.n_looked_at) == (kinds, 4)


@pytest.mark.parametrize("by", ["groups", "true classes"])
def test_the_loss_of_some_groups_is_not_that_of_all_rows(draw, by):
    """All rows together lose less than alpha, one stratum a little more: the sentence says which is meant."""
    for seed in range(40):
        proba, y = draw(1200, 3, seed)
        known, rest = slice(0, 400), slice(400, 1200)
        sites = np.arange(1200) % 3
        options = {"condition_on": "label"} if by == "true classes" else {}
        groups = {} if options else {"groups": sites[known]}
        controller = orisk.RiskController(alpha=0.2, **options).calibrate(proba[known], y[known], **groups)
        tested = {} if options else {"groups": sites[rest].tolist()}
        found = found_by(controller, proba[rest], y[rest], **tested)
        if found.verdict.word == "chance" and found.whole.risk.value < 0.2:
            break
    said = f"In some {by}, the loss is above alpha, which can be chance."
    assert (found.light.colour, found.light.sentence) == ("amber", said)


def test_a_class_whose_interval_is_below_three_quarters_is_not_green():
    """13 of 31 rows at alpha = 0.1: the interval ends at 61 %, three quarters of the target are 67.5 %."""
    kinds = [Kind("class", "Mild", 900, 830, 0.9), Kind("class", "Severe", 31, 13, 0.9)]
    light = light_of("agrees", far_off(kinds), 2, False)
    assert light.colour == "amber"
    assert light.sentence.endswith("but 58 % of class 'Severe' are missed (18 of 31 rows).")
    assert not far_off([Kind("class", "Severe", 31, 13, 0.9, guaranteed=False)])


@pytest.mark.parametrize(
    ("n_rows", "n_covered", "named"), [(8, 3, "38 %"), (8, 6, None), (300, 240, "80 %"), (30, 24, None)]
)
def test_green_names_the_class_that_may_be_far_below(n_rows, n_covered, named):
    """Below half of the target by its share, or below the target by its exact interval."""
    kinds = [Kind("class", "Mild", 900, 830, 0.9), Kind("class", "Severe", n_rows, n_covered, 0.9)]
    kinds += [Kind("group", "north", 7, 3, 0.9)]
    assert not far_off(kinds)
    light = light_of("agrees", [], 3, False, least_covered=least_covered(kinds))
    assert light.colour == "green"
    exact = binomtest(n_covered, n_rows).proportion_ci(0.95, method="exact")
    of_rows = (
        f"({n_covered} of {n_rows} rows, 95 % interval {100 * exact.low:.4g} % to {100 * exact.high:.4g} %)"
    )
    said = f"as 1 - alpha; the least covered class is 'Severe': {named} {of_rows}."
    assert light.sentence.endswith(said if named else "as 1 - alpha.")


@pytest.mark.parametrize(
    ("loss", "alpha", "weights", "said"),
    [
        (
            "coverage",
            0.3,
            None,
            ". No class, group or set size is clearly covered less than half as often as 1 - alpha",
        ),
        (
            orisk.WeightedLoss([2, 2, 2], normalize=False),
            0.6,
            None,
            " less than half as often as 1 - alpha / B",
        ),
        ("divergence", 0.2, None, " clearly covered less than half as often as all rows together"),
        ("coverage", 0.3, np.ones(400), "The test rows agree with the guarantee."),
    ],
    ids=["coverage", "natural units", "distance", "row weights"],
)
def test_green_says_what_coverage_was_compared(draw, loss, alpha, weights, said):
    """A distance loss guarantees no coverage, and with row weights no coverage is compared."""
    known = {} if weights is None else {"sample_weight": weights}
    rest = {} if weights is None else {"sample_weight": np.ones(800)}
    for seed in range(20):
        proba, y = draw(1200, 3, seed)
        controller = orisk.RiskController(loss, alpha).calibrate(proba[:400], y[:400], **known)
        light = found_by(controller, proba[400:], y[400:], **rest).light
        if light.colour == "green":
            break
    assert light.sentence == said if weights is not None else said in light.sentence


def test_the_worst_are_named_first_and_not_all():
    kinds = [Kind("group", f"G{k}", 1000, 100 * k, 0.9) for k in range(4)] + [Kind("size", 1, 999, 5, 0.9)]
    assert light_of("agrees", far_off(kinds), 5, False).sentence == (
        "The test rows agree with the guarantee on average, but 100 % of group 'G0' are missed (1,000 of "
        "1,000 rows), 99 % of the sets with a single label miss (994 of 999 rows) and 3 more."
    )


def test_too_few_rows_are_not_green():
    """Four rows without a miss leave open that half of what was guaranteed is lost; five do not."""
    risk = lambda n: of_losses(np.array([0.0, 1.0]), np.array([n, 0]))  # noqa: E731
    few = [too_few_rows(risk(n), Fraction("0.1"), Fraction(1)) for n in (1, 4, 5, 100)]
    assert few == [True, True, False, False]
    assert too_few_rows(None, Fraction("0.1"), Fraction(1))
    assert too_few_rows(risk(5), Fraction("0.01"), Fraction(1))


def test_a_raised_weight_that_hurts_its_class_is_amber():
    """As tried on a survey: the weight of 'very poor' is raised, and it or its neighbour is missed."""
    proba, y = survey(3000, 2)
    for raised, missed in ((1, "very poor"), (5, "very poor"), (20, "poor")):  # and all rows, with weights
        weights = [raised, 1, 1, 1, 1]
        found = found_by(calibrated(orisk.WeightedLoss(weights)), proba, y)
        assert found.verdict.word == "agrees"
        assert found.light.colour == "amber"
        assert f"of class '{missed}' are missed" in found.light.sentence
        assert found.light.sentence.startswith("The test rows agree with the guarantee on average, but ")
        assert (found.light.far_off[0].kind == "all") == (raised > 1)
    each = found_by(calibrated(condition_on="label"), proba, y)
    assert each.light.colour == "green"


@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_healthy_data_are_green_or_above_alpha(draw, loss):
    """100 draws: no class, group or size is far off, so amber stands for a loss above alpha by chance."""
    for seed in range(100):
        proba, y = draw(1000, 5, seed)
        controller = orisk.RiskController(loss, 0.1).calibrate(proba[:500], y[:500])
        found = found_by(controller, proba[500:], y[500:])
        assert not found.light.far_off
        assert (
            found.light.colour
            == {"agrees": "green", "chance": "amber", "disagrees": "red"}[found.verdict.word]
        )


def test_a_group_that_is_missed_is_named():
    """It has so few calibration rows that chance alone would excuse it."""
    proba, y = survey(3000, 3)
    groups = np.where(np.arange(3000) % 10 == 0, "north", "south")
    first, rest = slice(0, 600), slice(600, 3000)
    controller = orisk.RiskController(alpha=0.1).calibrate(proba[first], y[first], groups=groups[first])
    shuffled = np.where(groups == "north", 4 - y, y)
    found = found_by(controller, proba[rest], shuffled[rest], groups=groups[rest])
    assert "of group 'north' are missed" in found.light.sentence


def test_row_weights_leave_classes_out():
    """Test rows with weights are not drawn from the population of the guarantee."""
    proba, y = survey(2000, 1)
    weights = np.full(2000, 1.0)
    controller = orisk.RiskController(alpha=0.1).calibrate(proba, y, sample_weight=weights)
    found = found_by(controller, *survey(2000, 2), sample_weight=weights)
    assert found.light.n_looked_at == 0
    assert not found.light.far_off


def test_parts_add_up_to_the_same_colour():
    controller = calibrated(names=list(range(5)))
    proba, y = survey(900, 2)
    whole, parts = (Outcomes([Predictor.of(controller.spec, controller.calibration_)]) for _ in range(2))
    whole.add(Batch(proba, y))
    for rows in (slice(0, 1), slice(1, 400), slice(400, 900)):
        part = Outcomes([Predictor.of(controller.spec, controller.calibration_)])
        part.add(Batch(proba[rows], y[rows], first_row=rows.start))
        parts = parts.merge(part)
    guarantees = [replace(controller.guarantee())]
    lights = [each.finish(controller.calibration_, guarantees)[0].light for each in (whole, parts)]
    assert lights[0] == lights[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss": orisk.WeightedLoss([0, 1, 1])}, "Not counting class 0, no class, group or set size"),
        ({"condition_on": "label", "exempt_classes": [0]}, "Not counting class 0, no class, group or set"),
        (
            {"condition_on": "label", "exempt_classes": [0, 2]},
            "Not counting classes 0, 2, no class, group or",
        ),
    ],
    ids=["no cost", "exempt", "two"],
)
def test_a_green_light_names_the_classes_that_were_not_compared(options, said):
    """All rows of class 0 are missed, which neither a loss without cost nor an exempt class counts."""
    y = np.random.default_rng(0).integers(0, 3, 2000)
    proba = np.full((2000, 3), 0.02)
    proba[np.arange(2000), np.where(y == 0, 2, y)] = 0.96
    controller = orisk.RiskController(alpha=0.1, check=False, **options).calibrate(proba[:1000], y[:1000])
    found = orisk.jobs.evaluate_arrays(controller, proba[1000:], y[1000:])
    assert found.by_class.coverage.value[0] == 0
    assert found.colour == "green"
    assert said in found.sentence
