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

from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import CONFIDENCE, Estimate, interval, mean
from ordinalrisk.evaluation.packing import packed
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss

TWO_SIDED_95 = 1.96
_SMALL_COST = 2**31  # in units: 64 bits hold the sum of as many as a cluster can have rows
_DIGITS = 53  # binary digits of a float


class Realised(NamedTuple):
    """A mean loss with its interval, the standard deviation of one unit's loss, and how many units there are.

    ``weight`` is that of all rows together, if they have weights.

    One unit without loss is counted in, so that a few of one and the same loss do not look certain.
    """

    risk: Estimate
    deviation: float
    n_units: float
    weight: float | None = None


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
        risk = mean(values, counts, CONFIDENCE, 0.0, float(self._costs.bound))
        return Realised(risk, deviation(values, counts), int(counts.sum()))


class ExactWeights(NamedTuple):
    """Rows with weights between a power of two and half of it, which are whole multiples of one number.

    ``powers`` has 1, that multiple and its square for each row.
    """

    exponent: int
    rows: NDArray[np.int64]
    weights: NDArray[np.float64]
    powers: NDArray[Any]


class WeightedLosses:
    """The weights of rows by part and by what they lose, exactly, at each stop.

    For each power of two the number of the weights just below it, their sum and that of their squares are
    kept. For the interval each weight is split between the two ends of its bin, so that their number and
    their sum stay the same. The logarithm of a bet's factor is concave in the weight, so this can only widen
    the interval. The interval takes the largest weight seen for the largest that a row can have.
    """

    def __init__(self, n_stops: int, n_parts: int, costs: CostTable) -> None:
        self._costs = costs
        self._values, self._which = np.unique(costs.values, return_inverse=True)
        self._which = self._which.reshape(costs.values.shape)
        self._shape = 3, n_stops, n_parts, len(self._values)
        self._sums: dict[int, NDArray[Any]] = {}
        self._largest = np.zeros(n_parts)

    @staticmethod
    def exactly(weights: NDArray[np.float64]) -> list[ExactWeights]:
        """Weights by their power of two, without those that are 0."""
        fractions, exponents = np.frexp(weights)
        whole = np.ldexp(fractions, _DIGITS).astype(np.int64).astype(object)
        bins = [
            (exponent, np.flatnonzero((exponents == exponent) & (weights > 0)))
            for exponent in np.unique(exponents[weights > 0]).tolist()
        ]
        return [
            ExactWeights(
                exponent, rows, weights[rows], np.array([whole[rows] ** power for power in range(3)])
            )
            for exponent, rows in bins
        ]

    def add(
        self,
        stop: int,
        parts: NDArray[np.int64],
        truth: NDArray[np.int64],
        nearest: NDArray[np.int64],
        weights: Sequence[ExactWeights],
    ) -> None:
        """Take in rows at one stop."""
        lost = self._which[truth, nearest]
        for exponent, rows, each, powers in weights:
            cells = parts[rows], lost[rows]
            np.maximum.at(self._largest, cells[0], each)
            for sums, of_rows in zip(self._sums_of(exponent)[:, stop], powers, strict=True):
                np.add.at(sums, cells, of_rows)

    def _sums_of(self, exponent: int) -> NDArray[Any]:
        if exponent not in self._sums:
            self._sums[exponent] = np.zeros(self._shape, object)
        return self._sums[exponent]

    def merge(self, other: WeightedLosses) -> None:
        """Take in other rows."""
        np.maximum(self._largest, other._largest, out=self._largest)
        for exponent, sums in other._sums.items():
            self._sums_of(exponent)[:] += sums

    def realised(self, stop: int, parts: Sequence[int]) -> Realised | None:
        """The weighted mean loss of the rows of some parts; None if none of them counts."""
        largest = Fraction(float(self._largest[[*parts]].max()))
        totals: Any = np.full((2, len(self._values)), Fraction(0))
        times: list[Any] = []
        shares: list[Fraction] = []
        for exponent, sums in sorted(self._sums.items()):
            unit = Fraction(2) ** (exponent - _DIGITS)
            n, once, twice = sums[:, stop, [*parts]].sum(axis=1)
            totals += once * unit, twice * unit**2
            low = unit * 2 ** (_DIGITS - 1)
            high = min(2 * low, largest)
            above = (once * unit - n * low) / (high - low) if high > low else 0 * n
            times += [n - above, above]
            shares += [low / largest, high / largest]
        if not totals[0].sum():
            return None
        values, each = np.tile(self._values, len(shares)), np.repeat(np.array(shares, float), len(n))
        bound = float(self._costs.bound)
        ends = interval(values, np.concatenate(times).astype(float), CONFIDENCE, 0.0, bound, each)
        return _weighted(self._values, totals[0], totals[1], ends)


def of_weighted_classes(tally: Tally, costs: CostTable, weights: Sequence[Fraction]) -> Realised | None:
    """The mean loss of rows that count by their true class; None if none of them does.

    Examples
    --------
    >>> from ordinalrisk import IntervalSet, WeightedLoss
    >>> tally = Tally.of(np.array([0, 1, 2]), IntervalSet([0, 1, 1], [0, 2, 1], classes=[0, 1, 2]))
    >>> found = of_weighted_classes(tally, CostTable.of(WeightedLoss(), 3), [Fraction(1, 2), 1, 1])
    >>> print(found.risk, round(found.n_units, 2))
    0.4 (0.001544 to 0.9731) 2.78
    """
    n = tally.nearest.astype(object)
    each: Any = np.array([weights] * len(n)).T
    once, twice = (each * n).ravel(), (each**2 * n).ravel()
    if not once.sum():
        return None
    values, shares = costs.values.ravel(), (each / max(weights)).ravel().astype(float)
    ends = interval(values, tally.nearest.ravel(), CONFIDENCE, 0.0, float(costs.bound), shares)
    return _weighted(values, once, twice, ends)


def _weighted(
    values: NDArray[np.float64], once: NDArray[Any], twice: NDArray[Any], ends: tuple[float, float]
) -> Realised:
    r"""The mean of values with these sums of weights and of squared weights, and with these ends.

    The rows count as :math:`(\sum w)^2 / \sum w^2` alike ones.
    """
    total = once.sum()
    n, share = float(total**2 / twice.sum()), (once / total).astype(float)
    risk = Estimate(float(values @ share), *ends)
    return Realised(risk, deviation(values, n * share), n, float(total))
