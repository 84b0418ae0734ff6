"""Data that many test files draw on."""

import hypothesis
import numpy as np
import pytest

# Compiling a kernel for the first time takes seconds, so a deadline would say nothing about the code.
hypothesis.settings.register_profile("laws", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("laws")


def draw_rows(n_rows=300, n_classes=5, seed=0):
    """Rows of class probabilities, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), size=n_rows)
    labels = (proba.cumsum(axis=1)[:, :-1] < rng.random((n_rows, 1))).sum(axis=1)
    return proba, labels


@pytest.fixture(scope="session")
def draw():
    """``draw(n_rows, n_classes, seed)`` gives probabilities and labels drawn from them."""
    return draw_rows
