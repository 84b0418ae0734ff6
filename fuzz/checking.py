"""Functions that the checks share: rows, texts, and how to report an error."""

import tomllib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

VOCABULARY = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text(encoding="utf-8"))


class WrongError(Exception):
    """A result that the documentation calls wrong, or a refusal of what it allows."""


def rows(n_rows: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, and labels drawn from them; the first labels are all the classes."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n_rows)
    labels = (proba.cumsum(axis=1)[:, :-1] < rng.random((n_rows, 1))).sum(axis=1)
    labels[:n_classes] = np.arange(n_classes)[:n_rows]
    return proba, labels


@contextmanager
def documented_warnings() -> Iterator[None]:
    """The library warns with ``UserWarning``; any other warning is an error of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        yield
