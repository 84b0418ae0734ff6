r"""How well scores fit labels: the ranked probability score, and that of the label shares alone.

.. math::

    \mathrm{RPS}(p, y) = \frac{1}{K - 1} \sum_{j < K - 1} \left( \sum_{i \le j} p_i - 1[y \le j] \right)^2

It lies between 0 (certain and right) and 1, and respects the order of the labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import widened
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.labels import Classes

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class ScoredRows:
    """Scores with known labels; the columns should be in the order of the classes."""

    proba: Floats
    labels: Labels
    classes: Classes

    @classmethod
    def of(cls, batch: Batch, classes: Classes) -> ScoredRows:
        return cls(widened(batch.proba).astype(np.float64, copy=False), batch.labels, classes)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def counts(self) -> Labels:
        """The number of rows of each class."""
        return np.bincount(self.labels, minlength=self.n_classes)

    @cached_property
    def scores(self) -> Floats:
        """The ranked probability score of each row."""
        return ranked_probability_scores(self.proba, self.labels)

    @cached_property
    def of_shares(self) -> Floats:
        """The score of each row if the label shares of the other rows were its prediction."""
        n, at_most = len(self), np.cumsum(self.counts[:-1])
        below = np.append(0, np.cumsum((at_most / (n - 1)) ** 2))  # the row itself is not counted
        above = np.append(np.cumsum((((n - at_most) / (n - 1)) ** 2)[::-1])[::-1], 0)
        of_class: Floats = (below + above) / (self.n_classes - 1)
        return of_class[self.labels]

    @property
    def of_each_label(self) -> Floats:
        """The score of each row if its label were 0, 1, ..., K - 1."""
        at_most = np.cumsum(self.proba[:, :-1], axis=1)
        scores = np.zeros_like(self.proba)
        np.cumsum(at_most**2, axis=1, out=scores[:, 1:])
        scores[:, :-1] += np.cumsum(((1 - at_most) ** 2)[:, ::-1], axis=1)[:, ::-1]
        return scores / (self.n_classes - 1)

    def with_columns(self, order: Labels) -> ScoredRows:
        """Return the same rows, with column ``order[k]`` as the score of class ``k``."""
        return ScoredRows(self.proba[:, order], self.labels, self.classes)

    def with_labels_moved(self, by: int) -> ScoredRows:
        return ScoredRows(self.proba, self.labels + by, self.classes)


def ranked_probability_scores(proba: Floats, labels: Labels) -> Floats:
    """Return the ranked probability score of each row.

    Examples
    --------
    >>> ranked_probability_scores(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]), np.array([2, 0]))
    array([1.   , 0.125])
    """
    K = proba.shape[1]
    at_most = np.cumsum(proba[:, :-1], axis=1)
    at_most -= labels[:, None] <= np.arange(K - 1)
    scores: Floats = np.minimum(np.einsum("ij,ij->i", at_most, at_most) / (K - 1), 1.0)
    return scores
