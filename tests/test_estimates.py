"""Means and shares of counted values: the same as of the rows themselves, with intervals that cover."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest, multinomial

from ordinalrisk.evaluation import estimates
from ordinalrisk.evaluation.estimates import (
    Estimate,
    interval,
    mean,
    mean_of_possible,
    share,
    shares,
    stacked,
)

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
    stakes, log_shares = estimates._bets(n)
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
