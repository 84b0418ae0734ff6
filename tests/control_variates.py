"""Means over random draws from which the luck of each draw has been taken out."""

import numpy as np


def mean_and_error(values, luck):
    """The expectation of each column of ``values``, and its standard error.

    ``luck`` says how far each draw was off by chance alone, in numbers with expectation 0 and variance 1.
    What a regression on them and their squares explains is no error of the mean.
    """
    regressors = np.column_stack([np.ones(len(luck)), luck, luck**2 - 1])
    coefficients, *_ = np.linalg.lstsq(regressors, values, rcond=None)
    rest = values - regressors @ coefficients
    n_draws, n_coefficients = regressors.shape
    return coefficients[0], np.sqrt((rest**2).sum(axis=0) / (n_draws - n_coefficients) / n_draws)
