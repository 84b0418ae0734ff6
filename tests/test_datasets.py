import numpy as np
import pytest
from scipy.stats import chi2, kstest

from ordinalrisk.datasets import simulated_classes

ROWS, CLASSES, SEED = 20_000, 6, 3


@pytest.fixture(scope="module")
def clouds():
    X, _ = simulated_classes(n_per_class=ROWS, n_classes=CLASSES, random_state=SEED)
    return X.reshape(CLASSES, ROWS, 2)


@pytest.fixture(scope="module")
def covariances():
    A = np.random.default_rng(SEED).standard_normal((CLASSES, 2, 2))
    return np.array([a @ a.T for a in A])


def test_default_is_the_size_of_the_paper():
    X, y = simulated_classes()
    assert X.shape == (20_000, 2)
    assert np.bincount(y).tolist() == [2_000] * 10


def test_same_seed_same_rows():
    first, again, other = (simulated_classes(n_per_class=10, random_state=seed)[0] for seed in (5, 5, 6))
    assert np.array_equal(first, again)
    assert not np.isclose(first, other).any()


def test_class_i_is_centred_at_i_i(clouds, covariances):
    for i in range(CLASSES):
        five_standard_errors = 5 * np.sqrt(np.diag(covariances[i]) / ROWS)
        assert (np.abs(clouds[i].mean(axis=0) - i) < five_standard_errors).all()


def test_covariance_is_that_of_its_factor(clouds, covariances):
    for i, S in enumerate(covariances):
        variances = np.diag(S)
        five_standard_errors = 5 * np.sqrt((np.outer(variances, variances) + S**2) / ROWS)
        assert (np.abs(np.cov(clouds[i].T) - S) < five_standard_errors).all()


def test_each_class_is_gaussian(clouds, covariances):
    """Squared Mahalanobis distances in the plane are chi-squared with two degrees of freedom."""
    for i, S in enumerate(covariances):
        centred = clouds[i] - i
        distance = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(S), centred)
        assert kstest(distance, chi2(2).cdf).pvalue > 1e-4


@pytest.mark.parametrize("size", [{"n_per_class": 0}, {"n_classes": 1}])
def test_too_little_data_is_refused(size):
    (name, value), *_ = size.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        simulated_classes(**size)
