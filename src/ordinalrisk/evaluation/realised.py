"""The realised risk of rows, of clusters, or of rows with weights.

Sums are exact, so the result does not depend on how rows were cut into batches, nor on the order of merges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.evaluation.counts import Tally, counts_by_loss
from ordinalrisk.evaluation.estimates import (
    CONFIDENCE,
    Estimate,
    interval,
    mean,
    mean_of_possible,
    share_of_stakes,
)
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.losses.cost_table import CostTable

_SMALL_COST = 2**31  # in units: 64 bits hold the sum over as many rows as a cluster can have
_DIGITS = 53  # binary digits of a float


class Realised(NamedTuple):
    """A mean loss with its interval, and the number of units."""

    risk: Estimate
    deviation: float  # of the loss of one unit
    n_units: float
    weight: float | None = None  # of all rows together, if they have weights


def of_losses(losses: NDArray[np.float64], counts: NDArray[np.int64]) -> Realised | None:
    """Return the mean of losses that ``counts`` rows have, if no others can occur; None without rows.

    Examples
    --------
    >>> realised = of_losses(np.array([0.0, 1.0]), np.array([2, 1]))
    >>> print(realised.risk, realised.n_units)
    0.3333 (0.008404 to 0.9057) 3
    """
    if not (n_rows := int(counts.sum())):
        return None
    values, counts = counts_by_loss(losses, counts)
    return Realised(mean_of_possible(values, counts, CONFIDENCE), _deviation(values, counts), n_rows)


def of_shares(
    losses: NDArray[np.float64],
    stakes: NDArray[np.float64],
    counts: NDArray[Any],
    largest: float,
    ends: tuple[float, float] | None = None,
) -> Realised | None:
    """Return what is lost as a share of what could be lost; None if nothing could.

    ``ends`` are the ends of the interval, if they are known.
    """
    losses, stakes, counts = np.ravel(losses), np.ravel(stakes), np.ravel(counts)
    if not (stakes * counts).any():
        return None
    value = float(losses @ counts) / float(stakes @ counts)
    risk = share_of_stakes(losses, stakes, counts, CONFIDENCE, largest) if ends is None else (value, *ends)
    n = int(counts.sum())
    beyond, times = np.append(losses - value * stakes, -value * largest), np.append(counts, 1)
    spread = math.sqrt(float(beyond**2 @ times) / (n + 1)) / (float(stakes @ counts) / n)
    return Realised(Estimate(*risk), spread, n)


def _deviation(losses: NDArray[np.float64], counts: NDArray[Any]) -> float:
    """Return the standard deviation of the loss of one unit.

    One unit without loss is added, so that a few units of the same loss do not look certain.
    """
    values, weights = np.append(losses, 0), np.append(counts, 1)
    return math.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights))


class StratumCounts:
    """How often rows of each stratum have each loss at each stop, and how large their sets are."""

    def __init__(self, n_stops: int, n_strata: int, costs: CostTable, relative: bool = False) -> None:
        self._relative, self._bound = relative, costs.bound
        self._values, self._stakes, self._which = _distinct_losses(costs, relative)
        self._counts = np.zeros((n_stops, n_strata, len(self._values)), np.int64)
        self.sizes = np.zeros((n_stops, n_strata, 3), np.int64)
        """The number of labels in all sets, of sets with one label, and of sets that include the truth."""

    def add(
        self,
        stop: int,
        strata: NDArray[np.int64],
        labels: NDArray[np.int64],
        nearest: NDArray[np.int64],
        sizes: NDArray[np.int32],
    ) -> None:
        shape = self._counts.shape[1:]
        cells = strata * shape[1] + self._which[labels, nearest]
        self._counts[stop] += np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        self.sizes[stop, :, 0] += np.bincount(strata, sizes, shape[0]).astype(np.int64)
        self.sizes[stop, :, 1] += np.bincount(strata[sizes == 1], minlength=shape[0])
        self.sizes[stop, :, 2] += np.bincount(strata[labels == nearest], minlength=shape[0])

    def merge(self, other: StratumCounts) -> StratumCounts:
        both = copy(self)
        both._counts, both.sizes = self._counts + other._counts, self.sizes + other.sizes
        return both

    def n_rows(self, stop: int, stratum: int) -> int:
        return int(self._counts[stop, stratum].sum())

    def realised(self, stop: int, stratum: int, label: int | None) -> Realised | None:
        """Return the mean loss of the rows of a stratum, of one true class if there is a label."""
        return self.realised_together(stop, [stratum], None if label is None else [label])

    def realised_together(
        self, stop: int, strata: Sequence[int], labels: Sequence[int] | None
    ) -> Realised | None:
        """Return the mean loss of the rows of several strata, of some true classes if there are labels."""
        possible = np.unique(self._which if labels is None else self._which[[*labels]])
        values, counts = self._values[possible], self._counts[stop, [*strata]].sum(axis=0)[possible]
        if not self._relative:
            return of_losses(values, counts)
        return of_shares(values, self._stakes[possible], counts, float(self._stakes[possible].max()))


def _distinct_losses(costs: CostTable, relative: bool) -> tuple[Any, Any, NDArray[np.int64]]:
    """Return the distinct losses with their stakes, 1 if they do not count, and which each cell has."""
    stakes = costs.stakes if relative else np.ones_like(costs.values)
    pairs = np.stack([costs.values, stakes], axis=-1).reshape(-1, 2)
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    return distinct[:, 0], distinct[:, 1], which.reshape(costs.values.shape)


class ClusterLosses:
    """The loss of each cluster at each stop, by stratum; a cluster may have rows in several strata."""

    def __init__(self, n_stops: int, n_strata: int, costs: CostTable, relative: bool = False) -> None:
        self._costs, self._n_strata, self._relative = costs, n_strata, relative
        self._names = RowNames("clusters")
        self._places: dict[int, int] = {}  # by cluster * n_strata + stratum
        self._rows = np.zeros(0, np.int64)
        fits = int(costs.units.max()) < _SMALL_COST
        self._totals = np.zeros((n_stops, 0), np.int64 if fits else object)
        self._stakes = np.zeros(0, self._totals.dtype)

    @property
    def n_clusters(self) -> int:
        return len(self._names.known)

    def numbered(self, clusters: Any, n_rows: int) -> NDArray[np.int64]:
        """Return the number of each row's cluster."""
        return self._names.numbered(clusters, n_rows)

    def units(self, clusters: NDArray[np.int64], strata: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count rows of these clusters and strata, and return the places of their losses."""
        keys, place = np.unique(clusters * self._n_strata + strata, return_inverse=True)
        units: NDArray[np.int64] = self._room_for(keys)[place]
        np.add.at(self._rows, units, 1)
        return units

    def add_stakes(self, units: NDArray[np.int64], labels: NDArray[np.int64]) -> None:
        """Add what these rows can lose, if losses count as a share of it."""
        if self._relative:
            np.add.at(self._stakes, units, np.array(self._costs.largest, self._stakes.dtype)[labels])

    def _room_for(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of distinct keys, with room for those that are new."""
        places = self._places
        of_keys = np.array([places.setdefault(key, len(places)) for key in keys.tolist()], np.int64)
        if new := len(places) - len(self._rows):
            self._rows = np.pad(self._rows, (0, new))
            room = np.zeros(
                (len(self._totals), new), self._totals.dtype
            )  # np.pad would pad objects with int64
            self._totals = np.concatenate([self._totals, room], axis=1)
            self._stakes = np.concatenate([self._stakes, np.zeros(new, self._stakes.dtype)])
        return of_keys

    def add(self, stop: int, units: NDArray[np.int64], losses: NDArray[Any]) -> None:
        """Add the losses of these rows at one stop, in units of the cost table."""
        np.add.at(self._totals[stop], units, losses)

    def merge(self, other: ClusterLosses) -> ClusterLosses:
        both = ClusterLosses(len(self._totals), self._n_strata, self._costs, self._relative)
        for side in (self, other):
            clusters, strata = side._keys()
            numbers = both.numbered([*side._names.known], side.n_clusters)
            places = both._room_for(numbers[clusters] * self._n_strata + strata)
            both._rows[places] += side._rows
            both._totals[:, places] += side._totals
            both._stakes[places] += side._stakes
        return both

    def _keys(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the cluster and the stratum of each place."""
        return np.divmod(np.fromiter(self._places, np.int64, len(self._places)), self._n_strata)

    def realised(self, stop: int, stratum: int | None = None) -> Realised | None:
        """Return the mean over clusters of the mean loss of their rows, of all rows or of one stratum."""
        clusters, strata = self._keys()
        mine = np.ones(len(strata), bool) if stratum is None else strata == stratum
        if not mine.any():
            return None
        present, place = np.unique(clusters[mine], return_inverse=True)
        totals, rows = np.zeros(len(present), self._totals.dtype), np.zeros(len(present), np.int64)
        np.add.at(totals, place, self._totals[stop][mine])
        np.add.at(rows, place, self._rows[mine])
        means = totals.astype(np.float64) * float(self._costs.unit) / rows
        if self._relative:
            stakes = np.zeros(len(present), self._stakes.dtype)
            np.add.at(stakes, place, self._stakes[mine])
            of_clusters = stakes.astype(np.float64) * float(self._costs.unit) / rows
            return _of_cluster_means(means, of_clusters, float(self._costs.bound))
        values, counts = np.unique(means, return_counts=True)
        risk = mean(values, counts, CONFIDENCE, 0.0, float(self._costs.bound))
        return Realised(risk, _deviation(values, counts), int(counts.sum()))


def _of_cluster_means(
    means: NDArray[np.float64], stakes: NDArray[np.float64], largest: float
) -> Realised | None:
    counted = stakes > 0
    shares, weights, counts = means[counted] / stakes[counted], stakes[counted] / largest, np.ones(len(means))
    ends = interval(shares, counts[counted], CONFIDENCE, 0.0, 1.0, weights)
    return of_shares(means, stakes, counts.astype(np.int64), largest, ends)


class ExactWeights(NamedTuple):
    """Rows with weights between a power of two and half of it, all of them whole multiples of one number."""

    exponent: int
    rows: NDArray[np.int64]
    weights: NDArray[np.float64]
    powers: NDArray[Any]  # 1, the multiple and its square, each for all rows


class WeightedLosses:
    """The weights of rows by stratum and by loss, exactly, at each stop.

    For each power of two, the number of the weights just below it, their sum and the sum of their squares are
    kept. For the interval each weight is split between the two ends of its bin, so that their number and
    their sum stay the same. The logarithm of a bet's factor is concave in the weight, so this can only widen
    the interval. The interval assumes that no weight is larger than the largest one seen.
    """

    def __init__(self, n_stops: int, n_strata: int, costs: CostTable, relative: bool = False) -> None:
        self._costs, self._relative = costs, relative
        self._values, self._stakes, self._which = _distinct_losses(costs, relative)
        self._shape = 3, n_stops, n_strata, len(self._values)
        self._sums: dict[int, NDArray[Any]] = {}
        self._largest = np.zeros(n_strata)

    @staticmethod
    def exactly(weights: NDArray[np.float64]) -> list[ExactWeights]:
        """Return weights by their power of two, without those that are 0."""
        fractions, exponents = np.frexp(weights)
        whole = np.ldexp(fractions, _DIGITS).astype(np.int64).astype(object)
        exact = []
        for exponent in np.unique(exponents[weights > 0]).tolist():
            rows = np.flatnonzero((exponents == exponent) & (weights > 0))
            powers = np.array([whole[rows] ** power for power in range(3)])
            exact.append(ExactWeights(exponent, rows, weights[rows], powers))
        return exact

    def add(
        self,
        stop: int,
        strata: NDArray[np.int64],
        labels: NDArray[np.int64],
        nearest: NDArray[np.int64],
        weights: Sequence[ExactWeights],
    ) -> None:
        losses = self._which[labels, nearest]
        for exponent, rows, each, powers in weights:
            cells = strata[rows], losses[rows]
            np.maximum.at(self._largest, cells[0], each)
            for sums, of_rows in zip(self._sums_of(exponent)[:, stop], powers, strict=True):
                np.add.at(sums, cells, of_rows)

    def _sums_of(self, exponent: int) -> NDArray[Any]:
        if exponent not in self._sums:
            self._sums[exponent] = np.zeros(self._shape, object)
        return self._sums[exponent]

    def merge(self, other: WeightedLosses) -> WeightedLosses:
        both = WeightedLosses(*self._shape[1:3], self._costs, self._relative)
        both._largest = np.maximum(self._largest, other._largest)
        for side in (self, other):
            for exponent, sums in side._sums.items():
                both._sums_of(exponent)[:] += sums
        return both

    def realised(self, stop: int, stratum: int | None = None) -> Realised | None:
        """Return the weighted mean loss of all rows or of one stratum; None if all their weights are 0."""
        strata = [*range(len(self._largest))] if stratum is None else [stratum]
        largest = Fraction(float(self._largest[strata].max()))
        totals: Any = np.full((2, len(self._values)), Fraction(0))
        times: list[Any] = []
        shares: list[Fraction] = []
        for exponent, sums in sorted(self._sums.items()):
            unit = Fraction(2) ** (exponent - _DIGITS)
            n, once, twice = sums[:, stop, strata].sum(axis=1)
            totals += once * unit, twice * unit**2
            low = unit * 2 ** (_DIGITS - 1)
            high = min(2 * low, largest)
            above = (once * unit - n * low) / (high - low) if high > low else 0 * n
            times += [n - above, above]
            shares += [low / largest, high / largest]
        if not totals[0].sum():
            return None
        own, bound = self._values, float(self._costs.bound)
        if self._relative:
            own = _shares_of_stakes(own, self._stakes)
        values, each = np.tile(own, len(shares)), np.repeat(np.array(shares, float), len(n))
        if self._relative:
            each, bound = each * np.tile(self._stakes / bound, len(shares)), 1.0
        ends = interval(values, np.concatenate(times).astype(float), CONFIDENCE, 0.0, bound, each)
        return _weighted(own, totals[0], totals[1], ends, self._stakes if self._relative else None)


def _shares_of_stakes(losses: NDArray[np.float64], stakes: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = np.divide(losses, stakes, out=np.zeros_like(losses), where=stakes > 0)
    return shares


def of_weighted_classes(
    tally: Tally, costs: CostTable, weights: Sequence[Fraction], relative: bool = False
) -> Realised | None:
    """Return the mean loss of rows weighted by their true class; None if all their weights are 0."""
    n = tally.nearest.astype(object)
    each: Any = np.array([weights] * len(n)).T
    once, twice = (each * n).ravel(), (each**2 * n).ravel()
    if not once.sum():
        return None
    values, shares = costs.values.ravel(), (each / max(weights)).ravel().astype(float)
    stakes, bound = None, float(costs.bound)
    if relative:
        stakes = costs.stakes.ravel()
        values, shares, bound = _shares_of_stakes(values, stakes), shares * stakes / bound, 1.0
    ends = interval(values, tally.nearest.ravel(), CONFIDENCE, 0.0, bound, shares)
    return _weighted(values, once, twice, ends, stakes)


def _weighted(
    values: NDArray[np.float64],
    once: NDArray[Any],
    twice: NDArray[Any],
    ends: tuple[float, float],
    stakes: NDArray[np.float64] | None = None,
) -> Realised | None:
    r"""Return the mean of values with these sums of weights and of squared weights, times the stakes.

    The rows count as :math:`(\sum w)^2 / \sum w^2` rows of equal weight.
    """
    weight = total = once.sum()
    if stakes is not None:
        exact = np.array([Fraction(stake) for stake in stakes.tolist()], object)
        once, twice = once * exact, twice * exact**2
        if not (total := once.sum()):
            return None
    n, share = float(total**2 / twice.sum()), (once / total).astype(float)
    risk = Estimate(float(values @ share), *ends)
    return Realised(risk, _deviation(values, n * share), n, float(weight))
