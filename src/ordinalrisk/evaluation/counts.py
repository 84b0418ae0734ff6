"""Counts that every metric is computed from: whole numbers, so that batches of rows add up exactly.

Each metric depends on two of three labels of a row: the true one, and the first and last of its set. So it is
enough to count pairs, in tables that do not grow with the rows.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.evaluation.estimates import Value, mean_of_possible, share, share_of_stakes, shares, stacked
from ordinalrisk.inputs.batch import Batch, Summary
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss
from ordinalrisk.prediction.interval_set import IntervalSet

CountTable = NDArray[np.int64]
_FEW_CELLS = 1 << 16  # all three labels are counted at once if their table stays in the processor's cache


@dataclass(frozen=True, eq=False)
class Tally:
    """How many rows have each pair of true label, first label and last label of the set.

    The metrics are those of :mod:`ordinalrisk.metrics`.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> tally = Tally.of(np.array([0, 1, 2]), sets)
    >>> tally.coverage()
    0.6666666666666666
    >>> tally.merge(tally).n_rows
    6
    """

    truth_lower: CountTable
    truth_upper: CountTable
    lower_upper: CountTable
    covered_sizes: CountTable
    """Rows whose set includes the truth, by size of the set, ``1 .. K``."""

    @classmethod
    def of(cls, labels: NDArray[np.integer], sets: IntervalSet) -> Tally:
        """Count sets and the positions of their true labels."""
        K = len(sets.classes)
        lower, upper = sets.lower_index, sets.upper_index
        if K**3 > _FEW_CELLS:
            held = sets.size[(lower <= labels) & (labels <= upper)]
            covered = np.bincount(held - 1, minlength=K).astype(np.int64)
            return cls(_pairs(labels, lower, K), _pairs(labels, upper, K), _pairs(lower, upper, K), covered)
        triples = _pairs(labels * K + lower, upper, K, firsts=K * K).reshape(K, K, K)
        inside, sizes = _covering(K)
        covered = np.bincount(sizes, triples[inside], K).astype(np.int64)
        return cls(triples.sum(axis=2), triples.sum(axis=1), triples.sum(axis=0), covered)

    @classmethod
    def empty(cls, n_classes: int) -> Tally:
        truth_lower, truth_upper, lower_upper = np.zeros((3, n_classes, n_classes), np.int64)
        return cls(truth_lower, truth_upper, lower_upper, np.zeros(n_classes, np.int64))

    def merge(self, other: Tally) -> Tally:
        return Tally(
            self.truth_lower + other.truth_lower,
            self.truth_upper + other.truth_upper,
            self.lower_upper + other.lower_upper,
            self.covered_sizes + other.covered_sizes,
        )

    @property
    def n_rows(self) -> int:
        return int(self.lower_upper.sum())

    @property
    def class_rows(self) -> CountTable:
        rows: CountTable = self.truth_lower.sum(axis=1)
        return rows

    @property
    def nearest(self) -> CountTable:
        """Rows by true label and the label of the set that is nearest to it."""
        misses = np.tril(self.truth_upper, -1) + np.triu(self.truth_lower, 1)
        return misses + np.diag(self.class_rows - misses.sum(axis=1))

    @property
    def held(self) -> CountTable:
        """Rows by true label and label in the set."""
        begun, ended = self.truth_lower.cumsum(axis=1), self.truth_upper.cumsum(axis=1)
        held: CountTable = begun - ended + self.truth_upper
        return held

    @property
    def sizes(self) -> CountTable:
        """Rows by size of the set, ``1 .. K``."""
        K = len(self.lower_upper)
        return np.array([np.trace(self.lower_upper, size - 1) for size in range(1, K + 1)])

    @property
    def centroids(self) -> CountTable:
        """Rows by middle of the set, ``0, 0.5, 1, .., K-1``."""
        flipped, K = np.fliplr(self.lower_upper), len(self.lower_upper)
        return np.array([np.trace(flipped, K - 1 - twice) for twice in range(2 * K - 1)])

    def total_loss(self, loss: IntervalLoss) -> Fraction:
        costs = self._costs(loss)
        return int((self.nearest.astype(object) * costs.units).sum()) * costs.unit

    def risk(self, loss: IntervalLoss, confidence: float | None = None) -> Value:
        return mean_of_possible(*counts_by_loss(self._costs(loss).values, self.nearest), confidence)

    def relative_risk(self, loss: IntervalLoss, confidence: float | None = None) -> Value:
        costs = self._costs(loss)
        largest = float(costs.bound)
        return share_of_stakes(costs.values, costs.stakes, self.nearest, confidence, largest)

    def class_risk(
        self, loss: IntervalLoss, confidence: float | None = None, relative: bool = False
    ) -> Value:
        costs = self._costs(loss)
        values = costs.values
        if relative:  # as a share of the largest cost of each class
            values = np.divide(values, costs.stakes, out=np.zeros_like(values), where=costs.stakes > 0)
        classes = zip(values, self.nearest, strict=True)
        return stacked([mean_of_possible(*counts_by_loss(*each), confidence) for each in classes])

    def coverage(self, confidence: float | None = None) -> Value:
        return share(int(self.nearest.trace()), self.n_rows, confidence)

    def class_coverage(self, confidence: float | None = None) -> Value:
        rows = zip(self.nearest.diagonal().tolist(), self.class_rows.tolist(), strict=True)
        return stacked([share(covered, n, confidence) for covered, n in rows])

    def mean_size(self, confidence: float | None = None) -> Value:
        return mean_of_possible(np.arange(1.0, len(self.sizes) + 1), self.sizes, confidence)

    def class_size(self) -> NDArray[np.float64]:
        position = np.arange(len(self.truth_lower))
        labels = (self.truth_upper - self.truth_lower) @ position + self.class_rows
        with np.errstate(invalid="ignore"):
            sizes: NDArray[np.float64] = labels / self.class_rows
        return sizes

    def size_histogram(self, confidence: float | None = None) -> Value:
        return shares(self.sizes, confidence)

    def centroid_histogram(self, confidence: float | None = None) -> Value:
        return shares(self.centroids, confidence)

    def distance_when_missed(self, confidence: float | None = None) -> Value:
        K = len(self.nearest)
        away = [np.trace(self.nearest, d) + np.trace(self.nearest, -d) for d in range(1, K)]
        return mean_of_possible(np.arange(1.0, K), np.array(away), confidence)

    def _costs(self, loss: IntervalLoss) -> CostTable:
        return CostTable.of(loss, len(self.nearest))


class SetCounts(Summary):
    """The tally of rows that are predicted already: each batch has sets, and the positions of labels."""

    def __init__(self, n_classes: int) -> None:
        self.tally = Tally.empty(n_classes)

    def add(self, batch: Batch) -> None:
        self.tally = self.tally.merge(Tally.of(batch.labels, batch.sets))

    def merge(self, other: SetCounts) -> SetCounts:
        both = copy(self)
        both.tally = self.tally.merge(other.tally)
        return both


def _pairs(
    first: NDArray[np.integer], second: NDArray[np.integer], K: int, firsts: int | None = None
) -> CountTable:
    code = first.astype(np.int64) * K
    code += second
    counts: CountTable = np.bincount(code, minlength=(firsts or K) * K).reshape(firsts or K, K)
    return counts


@cache
def _covering(K: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Mark triples of true, first and last label whose set includes the truth; return their sizes, from 0."""
    truth, lower, upper = np.indices((K, K, K))
    inside = (lower <= truth) & (truth <= upper)
    return inside, (upper - lower)[inside]


def counts_by_loss(losses: NDArray[np.float64], counts: CountTable) -> tuple[NDArray[np.float64], CountTable]:
    """Return the distinct losses, ascending, and how many rows have each."""
    values, which = np.unique(losses, return_inverse=True)
    return values, np.bincount(which.ravel(), counts.ravel(), len(values)).astype(np.int64)
