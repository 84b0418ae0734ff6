"""The realised risk of what is exchangeable: of rows, of clusters, or of rows that count by their weights.

What is kept adds up exactly, so that it does not matter how rows were cut into batches, or into parts that
are counted elsewhere and merged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.cost_table import CostTable
from ordinalrisk.estimates import CONFIDENCE, Estimate, mean
from ordinalrisk.losses import IntervalLoss
from ordinalrisk.report.packing import packed
from ordinalrisk.tally import Tally

TWO_SIDED_95 = 1.96
_MOST_RESAMPLED = 1_000  # distinct values; with more of them a mean is as good as normal
_SMALL_COST = 2**31  # in units: 64 bits hold the sum of as many as a cluster can have rows
_SMALLEST = 1074  # the binary digits behind the point of the smallest float


class Realised(NamedTuple):
    """A mean loss with its interval, the standard deviation of one unit's loss, and how many units there are.

    One unit without loss is counted in, so that a few of one and the same loss do not look certain.
    """

    risk: Estimate
    deviation: float
    n_units: float


def of_rows(tally: Tally, loss: IntervalLoss, label: int | None = None) -> Realised | None:
    """The mean loss of all rows, or of those with one true class; None without rows.

    Examples
    --------
    >>> from ordinalrisk import IntervalSet, WeightedLoss
    >>> tally = Tally.of(np.array([0, 1, 2]), IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2]))
    >>> print(of_rows(tally, WeightedLoss()).risk, of_rows(tally, WeightedLoss(), label=2).n_units)
    0.3333 (0.008404 to 0.9057) 1
    """
    costs, nearest = CostTable.of(loss, len(tally.nearest)).values, tally.nearest
    if label is not None:
        alone = np.zeros_like(nearest)
        alone[label] = nearest[label]
        n_rows = int(nearest[label].sum())
        risk = Estimate(*(float(part[label]) for part in tally.class_risk(loss, CONFIDENCE)))
    else:
        alone, n_rows, risk = nearest, tally.n_rows, tally.risk(loss, CONFIDENCE)
    return Realised(risk, deviation(costs, alone), n_rows) if n_rows else None


def deviation(losses: NDArray[np.float64], times: NDArray[Any]) -> float:
    """The standard deviation of losses that occur so often."""
    values, weights = np.append(losses, 0), np.append(times, 1)
    return math.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights))


class ClusterLosses:
    """The loss of each cluster at each stop, by part: rows of one cluster may lie in several parts."""

    def __init__(self, n_stops: int, n_parts: int, costs: CostTable) -> None:
        self._costs, self._n_parts = costs, n_parts
        self._numbers: dict[int, int] = {}
        self._part = self._rows = np.zeros(0, np.int64)
        fits = int(costs.units.max()) < _SMALL_COST
        self._totals = np.zeros((n_stops, 0), np.int64 if fits else object)

    def numbered(self, clusters: NDArray[np.int64], parts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count rows of these clusters and parts, and say where their losses go."""
        keys, place = np.unique(clusters * self._n_parts + parts, return_inverse=True)
        units: NDArray[np.int64] = self._places(keys)[place]
        np.add.at(self._rows, units, 1)
        return units

    def _places(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where what is known of these distinct keys lies; for new ones there is room now."""
        numbers, before = self._numbers, len(self._numbers)
        places = np.array([numbers.setdefault(key, len(numbers)) for key in keys.tolist()], np.int64)
        if new := len(numbers) - before:
            self._rows = np.pad(self._rows, (0, new))
            self._part = np.append(self._part, keys[places >= before] % self._n_parts)
            room = np.zeros((len(self._totals), new), self._totals.dtype)
            self._totals = np.concatenate([self._totals, room], axis=1)
        return places

    def add(self, stop: int, units: NDArray[np.int64], losses: NDArray[Any]) -> None:
        """Take in the losses of those rows at one stop, in units of the cost table."""
        np.add.at(self._totals[stop], units, losses)

    def merge(self, other: ClusterLosses, clusters: NDArray[np.int64]) -> None:
        """Take in the clusters of other rows, which have these numbers here."""
        theirs = other._keys() // self._n_parts
        places = self._places(clusters[theirs] * self._n_parts + other._part)
        self._rows[places] += other._rows
        self._totals[:, places] += other._totals

    def _keys(self) -> NDArray[np.int64]:
        return np.fromiter(self._numbers, np.int64, len(self._numbers))

    def __getstate__(self) -> dict[str, Any]:
        """As arrays in few bytes."""
        small = {"_numbers": self._keys(), "_rows": packed(self._rows), "_totals": packed(self._totals)}
        return self.__dict__ | small

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._numbers = {key: place for place, key in enumerate(state["_numbers"].tolist())}
        self._rows = self._rows.astype(np.int64)
        if self._totals.dtype != object:
            self._totals = self._totals.astype(np.int64)

    def realised(self, stop: int, part: int) -> Realised | None:
        """The mean over clusters of the mean loss of their rows in a part."""
        mine = self._part == part
        if not mine.any():
            return None
        totals = self._totals[stop][mine].astype(np.float64) * float(self._costs.unit)
        values, counts = np.unique(totals / self._rows[mine], return_counts=True)
        n, spread = int(counts.sum()), deviation(values, counts)
        if len(values) <= _MOST_RESAMPLED:
            return Realised(mean(values, counts, CONFIDENCE), spread, n)
        return Realised(_normal(float(values @ counts) / n, spread / math.sqrt(n), self._costs), spread, n)


class WeightedLosses:
    """The weights, and their squares, of rows by part and by what they lose, exactly, at each stop."""

    def __init__(self, n_stops: int, n_parts: int, costs: CostTable) -> None:
        self._costs = costs
        self._values, self._which = np.unique(costs.values, return_inverse=True)
        self._which = self._which.reshape(costs.values.shape)
        self._sums = np.zeros((2, n_stops, n_parts, len(self._values)), object)

    @staticmethod
    def exactly(weights: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weights as whole multiples of the smallest float, and their squares."""
        ratios = map(float.as_integer_ratio, weights.tolist())
        whole = np.array([above << (_SMALLEST + 1 - below.bit_length()) for above, below in ratios], object)
        return whole, whole * whole

    def add(
        self,
        stop: int,
        parts: NDArray[np.int64],
        truth: NDArray[np.int64],
        nearest: NDArray[np.int64],
        weights: tuple[NDArray[Any], NDArray[Any]],
    ) -> None:
        """Take in rows at one stop."""
        for sums, each in zip(self._sums[:, stop], weights, strict=True):
            np.add.at(sums, (parts, self._which[truth, nearest]), each)

    def merge(self, other: WeightedLosses) -> None:
        """Take in other rows."""
        self._sums += other._sums

    def realised(self, stop: int, parts: Sequence[int]) -> Realised | None:
        """The weighted mean loss of the rows of some parts; None if none of them counts."""
        once, twice = self._sums[:, stop, [*parts]].sum(axis=1)
        smallest = Fraction(1, 2**_SMALLEST)
        return weighted_mean(
            self._values,
            [each * smallest for each in once],
            [each * smallest**2 for each in twice],
            self._costs,
        )


def of_weighted_classes(tally: Tally, costs: CostTable, weights: Sequence[Fraction]) -> Realised | None:
    """The mean loss of rows that count by their true class; None if none of them does."""
    values: NDArray[np.float64]
    values, which = np.unique(costs.values, return_inverse=True)
    each_value: Any = which.reshape(costs.values.shape).tolist()
    once, twice = [Fraction(0)] * len(values), [Fraction(0)] * len(values)
    for weight, values_of, rows in zip(weights, each_value, tally.nearest.tolist(), strict=True):
        for value, n in zip(values_of, rows, strict=True):
            once[value] += weight * n
            twice[value] += weight**2 * n
    return weighted_mean(values, once, twice, costs)


def weighted_mean(
    values: NDArray[np.float64], once: Sequence[Fraction], twice: Sequence[Fraction], costs: CostTable
) -> Realised | None:
    r"""The mean of values with these sums of weights and of squared weights.

    The rows count as :math:`(\sum w)^2 / \sum w^2` alike ones. Where a miss can have one cost only, the
    interval is exact binomial for so many rows, else normal.

    Examples
    --------
    >>> from ordinalrisk import WeightedLoss
    >>> costs = CostTable.of(WeightedLoss(), 3)
    >>> ones = [Fraction(8), Fraction(2)]
    >>> found = weighted_mean(np.array([0.0, 1.0]), ones, ones, costs)
    >>> print(found.risk, found.n_units)
    0.2 (0.02521 to 0.5561) 10.0
    """
    total = sum(once)
    if not total:
        return None
    n = float(total**2 / sum(twice))
    share = np.array([float(each / total) for each in once])
    value = float(values @ share)
    spread = deviation(values, n * share)
    if len(values) == 2 and values[0] == 0:
        return Realised(_binomial(float(share[1]), n, float(values[1])), spread, n)
    around = [float(each / total**2) for each in twice] @ (values - value) ** 2
    return Realised(_normal(value, math.sqrt(around), costs), spread, n)


def _binomial(share: float, n: float, cost: float) -> Estimate:
    from scipy.stats import beta

    tail = (1 - CONFIDENCE) / 2
    hits = share * n
    low = float(beta.ppf(tail, hits, n - hits + 1)) if hits > 0 else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, n - hits)) if share < 1 else 1.0
    return Estimate(cost * share, cost * low, cost * high)


def _normal(value: float, error: float, costs: CostTable) -> Estimate:
    reach = TWO_SIDED_95 * error
    return Estimate(value, max(value - reach, 0.0), min(value + reach, float(costs.bound)))
