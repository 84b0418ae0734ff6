"""Means over random draws from which the luck of each draw has been taken out."""

import numpy as np


def mean_and_error(values, luck):
    """The expectation of each column of ``values``, and its standard error.

    ``luck`` says how far each draw was off by chance alone, in numbers with expectation 0 and variance 1;
    more of it is worse. The part that a regression on it and its square explains is not an error of the mean.
    """
    regressors = np.column_stack([np.ones(len(luck)), luck, luck**2 - 1])
    inverse = np.linalg.pinv(regressors)
    coefficients = inverse @ values
    n_draws, n_coefficients = regressors.shape
    variance = ((values - regressors @ coefficients) ** 2).sum(axis=0) / (n_draws - n_coefficients)
    return coefficients[0], np.sqrt(variance * (inverse[0] ** 2).sum())


def standardised(surplus, probability):
    """The luck of each possible draw; on average it must be 0."""
    assert abs((probability * surplus).sum()) < 1e-12
    return surplus / np.sqrt((probability * surplus**2).sum())
