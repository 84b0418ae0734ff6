"""Means and shares of counted values: the same as of the rows themselves."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from ordinalrisk.estimates import Estimate, mean, share, shares, stacked

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


def test_the_mean_is_that_of_the_rows():
    rows = np.repeat(VALUES, COUNTS)
    assert mean(VALUES, COUNTS, None) == rows.mean()
    assert mean(VALUES, COUNTS, 0.95).value == rows.mean()


def test_the_interval_of_a_mean_is_that_of_resampled_rows():
    """Percentiles of 2,000 resamples lie within four of their standard errors of those of many more."""
    rows = np.repeat(VALUES, COUNTS)
    resampled = np.random.default_rng(1).choice(rows, (20_000, len(rows))).mean(axis=1)
    found = mean(VALUES, COUNTS, 0.9)
    deviation = rows.std() / np.sqrt(len(rows))
    error = np.sqrt(0.05 * 0.95 / 2000) / norm.pdf(norm.ppf(0.05)) * deviation
    np.testing.assert_allclose(found[1:], np.quantile(resampled, [0.05, 0.95]), atol=4 * error)


def test_values_that_do_not_occur_do_not_matter():
    """So a table of costs may have more costs than rows have met."""
    occur = COUNTS > 0
    assert mean(VALUES, COUNTS, 0.95) == mean(VALUES[occur], COUNTS[occur], 0.95)


def test_a_mean_of_one_value_is_certain():
    assert mean(np.array([1.0, 2.0]), np.array([0, 9]), 0.95) == (2.0, 2.0, 2.0)


def test_intervals_are_the_same_every_time():
    assert mean(VALUES, COUNTS, 0.95) == mean(VALUES, COUNTS, 0.95)


def test_nothing_has_no_mean_and_no_share():
    for found in (share(0, 0, 0.95), mean(VALUES, 0 * COUNTS, 0.95)):
        assert isinstance(found, Estimate)
        assert np.isnan(found).all()
    assert np.isnan([share(0, 0, None), mean(VALUES, 0 * COUNTS, None)]).all()


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 95, "0.95", np.nan])
def test_confidence_lies_strictly_between_zero_and_one(confidence):
    for estimate in (lambda: share(1, 2, confidence), lambda: mean(VALUES, COUNTS, confidence)):
        with pytest.raises(ValueError, match="confidence must lie strictly between 0 and 1; got"):
            estimate()


def test_stacked_parts_are_arrays():
    found = stacked([Estimate(1, 0, 2), Estimate(3, 2, 4)])
    assert [part.tolist() for part in found] == [[1, 3], [0, 2], [2, 4]]
    assert stacked([1.0, 2.0]).tolist() == [1, 2]


def test_an_estimate_reads_well():
    assert str(Estimate(0.123456, 0.1, 0.2)) == "0.1235 (0.1 to 0.2)"
    assert str(stacked([Estimate(1, 0, 2)])).startswith("Estimate(value=array([1])")
