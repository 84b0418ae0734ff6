"""Counts from which every metric follows: whole numbers, so that batches of rows add up exactly.

Whatever is asked of a row is a function of two of three labels: the true one and the first and last of its
interval. So it is enough to count pairs, in tables whose size does not grow with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.evaluation.estimates import Value, mean_of_possible, share, shares, stacked
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss
from ordinalrisk.prediction.interval_set import IntervalSet

Counts = NDArray[np.int64]
_FEW_CELLS = 1 << 16  # all three labels are counted at once if their table stays in the processor's cache


@dataclass(frozen=True, eq=False)
class Tally:
    """How often pairs of labels occur among intervals and their truths.

    Attributes
    ----------
    truth_lower, truth_upper, lower_upper : array of int of shape (K, K)
        Rows by true and first label of the interval, by true and last, by first and last.

    Examples
    --------
    >>> sets = IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2])
    >>> tally = Tally.of(np.array([0, 1, 2]), sets)
    >>> tally.coverage()
    0.6666666666666666
    >>> (tally + tally).n_rows
    6
    """

    truth_lower: Counts
    truth_upper: Counts
    lower_upper: Counts

    @classmethod
    def of(cls, labels: NDArray[np.integer], sets: IntervalSet) -> Tally:
        """The counts of intervals whose true labels have the positions ``labels``."""
        K = len(sets.classes)
        lower, upper = sets.lower_index, sets.upper_index
        if K**3 > _FEW_CELLS:
            return cls(_pairs(labels, lower, K), _pairs(labels, upper, K), _pairs(lower, upper, K))
        triples = _pairs(labels * K + lower, upper, K, firsts=K * K).reshape(K, K, K)
        return cls(triples.sum(axis=2), triples.sum(axis=1), triples.sum(axis=0))

    @classmethod
    def empty(cls, n_classes: int) -> Tally:
        """The counts of no rows."""
        return cls(*np.zeros((3, n_classes, n_classes), np.int64))

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.truth_lower + other.truth_lower,
            self.truth_upper + other.truth_upper,
            self.lower_upper + other.lower_upper,
        )

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.lower_upper.sum())

    @property
    def class_rows(self) -> Counts:
        """The number of rows of each true class."""
        rows: Counts = self.truth_lower.sum(axis=1)
        return rows

    @property
    def nearest(self) -> Counts:
        """Rows by true label and the label of the interval that is nearest to it: itself if covered."""
        misses = np.tril(self.truth_upper, -1) + np.triu(self.truth_lower, 1)
        return misses + np.diag(self.class_rows - misses.sum(axis=1))

    @property
    def held(self) -> Counts:
        """Rows by true label and label that the interval holds."""
        begun, ended = self.truth_lower.cumsum(axis=1), self.truth_upper.cumsum(axis=1)
        held: Counts = begun - ended + self.truth_upper
        return held

    @property
    def sizes(self) -> Counts:
        """Rows by size of the interval, ``1 .. K``."""
        K = len(self.lower_upper)
        return np.array([np.trace(self.lower_upper, size - 1) for size in range(1, K + 1)])

    @property
    def centroids(self) -> Counts:
        """Rows by middle of the interval, ``0, 0.5, 1, .., K-1``."""
        flipped, K = np.fliplr(self.lower_upper), len(self.lower_upper)
        return np.array([np.trace(flipped, K - 1 - twice) for twice in range(2 * K - 1)])

    def total_loss(self, loss: IntervalLoss) -> Fraction:
        """The sum of the losses, exactly."""
        costs = self._costs(loss)
        units: int = sum((self.nearest.astype(object) * costs.units).ravel().tolist())
        return units * costs.unit

    def risk(self, loss: IntervalLoss, confidence: float | None = None) -> Value:
        """The mean loss."""
        return mean_loss(self.nearest, self._costs(loss).values, confidence)

    def class_risk(self, loss: IntervalLoss, confidence: float | None = None) -> Value:
        """The mean loss of the rows of each true class; NaN for a class without rows."""
        costs = self._costs(loss).values
        return stacked([mean_loss(*row, confidence) for row in zip(self.nearest, costs, strict=True)])

    def coverage(self, confidence: float | None = None) -> Value:
        """The share of rows whose interval holds the label."""
        return share(int(self.nearest.trace()), self.n_rows, confidence)

    def class_coverage(self, confidence: float | None = None) -> Value:
        """Coverage of the rows of each true class; NaN for a class without rows."""
        rows = zip(self.nearest.diagonal().tolist(), self.class_rows.tolist(), strict=True)
        return stacked([share(covered, n, confidence) for covered, n in rows])

    def mean_size(self, confidence: float | None = None) -> Value:
        """The mean number of labels in an interval."""
        return mean_of_possible(np.arange(1.0, len(self.sizes) + 1), self.sizes, confidence)

    def class_size(self) -> NDArray[np.float64]:
        """The mean size of the intervals of each true class; NaN for a class without rows."""
        position = np.arange(len(self.truth_lower))
        labels = (self.truth_upper - self.truth_lower) @ position + self.class_rows
        with np.errstate(invalid="ignore"):
            sizes: NDArray[np.float64] = labels / self.class_rows
        return sizes

    def size_histogram(self, confidence: float | None = None) -> Value:
        """The share of intervals of size ``1 .. K``."""
        return shares(self.sizes, confidence)

    def centroid_histogram(self, confidence: float | None = None) -> Value:
        """The share of intervals centred at ``0, 0.5, 1, .., K-1``."""
        return shares(self.centroids, confidence)

    def distance_when_missed(self, confidence: float | None = None) -> Value:
        """The mean number of labels between truth and interval where it is missed; NaN if it never is."""
        K = len(self.nearest)
        away = [np.trace(self.nearest, d) + np.trace(self.nearest, -d) for d in range(1, K)]
        return mean_of_possible(np.arange(1.0, K), np.array(away), confidence)

    def _costs(self, loss: IntervalLoss) -> CostTable:
        return CostTable.of(loss, len(self.nearest))


def _pairs(
    first: NDArray[np.integer], second: NDArray[np.integer], K: int, firsts: int | None = None
) -> Counts:
    code = first.astype(np.int64) * K
    code += second
    counts: Counts = np.bincount(code, minlength=(firsts or K) * K).reshape(firsts or K, K)
    return counts


def mean_loss(counts: Counts, costs: NDArray[np.float64], confidence: float | None) -> Value:
    """The mean, where these costs are all that a row can have."""
    values, which = np.unique(costs, return_inverse=True)
    occurs = np.bincount(which.ravel(), counts.ravel(), len(values)).astype(np.int64)
    return mean_of_possible(values, occurs, confidence)
