"""A run of a monitor: bets on the loss of each row, and what was lost so far.

Losses and stakes are whole or rational numbers, so the loss, when it began to rise and each factor before it
is rounded down are exact.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.confidence_bounds import SMALLEST_SHARE
from ordinalrisk.calibration.promises import checked_alpha, checked_share
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.sequential.state import Run
from ordinalrisk.sequential.wealth import Bets, Floats, bet_sizes, loss_bet_factors

MOST_RECENT = 500
"""The number of recent losses to keep."""
_ROWS_AT_ONCE, _BETS_AT_ONCE = 65_536, 2**20


class Seen(NamedTuple):
    """Rows so far, what they lost, and what a loss is compared with: ``alpha`` times their stakes."""

    n_rows: int = 0
    lost: int | Fraction = 0  # in parts of the loss
    staked: int | Fraction = 0  # one for each row, or its largest possible loss in the same parts


class BettingRun(Run):
    r"""Bets against "the expected loss is at most ``alpha``", or against the relative guarantee.

    A row with the loss ``L`` and the stake ``s`` multiplies the wealth of the bet of size :math:`\lambda` by

    .. math:: 1 + \lambda\,(L - \alpha s) / B,

    which is at most 1 in expectation if :math:`E[L - \alpha s] \le 0`, given the rows before. The stake is 1
    if ``alpha`` is a loss. With ``relative`` it is :math:`g_y`, the largest cost of the true label, and the
    factor is that of :math:`Z = L + \alpha\,(B - g_y)`, which lies between 0 and ``B``, against
    :math:`E[Z] \le \alpha B`.

    Rows of exempt classes have the factor 1, so they are left out. If rows have clusters, a cluster counts as
    a row, with the mean loss and the mean stake of its rows.
    """

    def __init__(
        self,
        costs: CostTable,
        alpha: Fraction,
        needed: float,
        classes: Classes,
        relative: bool = False,
        exempt: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(classes, costs, costs.unit)
        claim = checked_share(alpha) if relative else checked_alpha(alpha, costs.bound) / costs.bound
        if claim < SMALLEST_SHARE:
            raise ValueError(f"alpha must be at least 1e-300 of the largest loss; got {decimal_text(alpha)}.")
        self.alpha, self.relative, self.sizes = alpha, relative, bet_sizes(claim)
        self._in_parts = alpha if relative else alpha / costs.unit  # the loss allowed for a stake of 1
        self._stakes = costs.units.max(axis=1) if relative else np.ones(len(costs.units), np.int64)
        self._exempt = np.isin(np.arange(len(costs.units)), [*exempt])
        distinct, cost = np.unique(costs.units.ravel(), return_inverse=True)
        stakes, stake = np.unique(self._stakes, return_inverse=True)
        pairs = cost.reshape(costs.units.shape) + len(distinct) * stake[:, None]
        used, which = np.unique(pairs.ravel(), return_inverse=True)
        self._factors: Floats = np.array(
            [
                self._factors_of(int(distinct[pair % len(distinct)]), int(stakes[pair // len(distinct)]))
                for pair in used.tolist()
            ]
        )
        self._which = which.reshape(costs.units.shape)
        self.bets = Bets(len(self.sizes), needed)
        self.n_exempt = 0
        self.staked: int | Fraction = 0
        self.lowest = Seen()  # where the excess of the loss was lowest
        self.recent: deque[tuple[int | Fraction, int | Fraction]] = deque(maxlen=MOST_RECENT)
        self.clusters: dict[str, None] | None = None  # digests of their names

    @property
    def risk(self) -> float:
        return self.mean_loss([(self.lost, self.staked)])

    def factors(self, labels: NDArray[np.int64], nearest: NDArray[np.int64]) -> Floats:
        """Return the factors of the bets, a row for each true label and the nearest label of its set."""
        factors: Floats = self._factors[self._which[labels, nearest]]
        return factors

    def watch(self, labels: NDArray[np.int64], nearest: NDArray[np.int64]) -> None:
        """Add rows by their true labels and the nearest labels of their sets."""
        labels, nearest = self._promised(labels, nearest)
        at_once = min(_ROWS_AT_ONCE, _BETS_AT_ONCE // len(self.sizes))
        for start in range(0, len(labels), at_once):
            here = slice(start, start + at_once)
            self.bets.take(self.factors(labels[here], nearest[here]))
            losses = self.costs.units[labels[here], nearest[here]].tolist()
            self._follow([*zip(losses, self._stakes[labels[here]].tolist(), strict=True)])

    def watch_clusters(
        self, labels: NDArray[np.int64], nearest: NDArray[np.int64], clusters: NDArray[np.int64]
    ) -> None:
        """Add whole clusters; ``clusters`` numbers them in the order of their first rows."""
        labels, nearest, clusters = self._promised(labels, nearest, clusters)
        sums: dict[int, tuple[int, int, int]] = {}
        losses, stakes = self.costs.units[labels, nearest].tolist(), self._stakes[labels].tolist()
        for cluster, loss, stake in zip(clusters.tolist(), losses, stakes, strict=True):
            n_rows, lost, staked = sums.get(cluster, (0, 0, 0))
            sums[cluster] = n_rows + 1, lost + loss, staked + stake
        means = [(Fraction(lost, n), Fraction(staked, n)) for _, (n, lost, staked) in sorted(sums.items())]
        of_mean = {mean: self._factors_of(*mean) for mean in set(means)}
        for mean in means:
            self.bets.take(np.array([of_mean[mean]]))
            self._follow([mean])

    def mean_loss(self, seen: Iterable[tuple[int | Fraction, int | Fraction]]) -> float:
        """Return the mean loss, or with ``relative`` its share of the stakes; NaN if nothing was at stake."""
        lost, staked = (sum(each) for each in zip((0, 0), *seen, strict=True))
        unit = 1 if self.relative else self.part
        return float(Fraction(lost) * unit / Fraction(staked)) if staked else math.nan

    def excess(self, lost: Fraction | int, staked: Fraction | int) -> Fraction:
        """Return by how much a loss is above what is allowed, in parts."""
        return lost - self._in_parts * staked

    def _factors_of(self, loss: Fraction | int, stake: Fraction | int) -> list[float]:
        return loss_bet_factors(self.excess(loss, stake) / int(self.costs.units.max()), self.sizes)

    def _promised(
        self, labels: NDArray[np.int64], *others: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], ...]:
        """Return the rows of classes that are not exempt, and count the others."""
        if not self._exempt.any():
            return labels, *others
        kept = ~self._exempt[labels]
        self.n_exempt += len(kept) - int(kept.sum())
        return labels[kept], *(each[kept] for each in others)

    def _follow(self, seen: Sequence[tuple[int | Fraction, int | Fraction]]) -> None:
        """Add losses and stakes of rows that were bet on, and note where the excess of the loss is lowest.

        The last such row is where the loss has been above alpha on average ever since.
        """
        unit, alpha = self._in_parts.denominator, self._in_parts.numerator
        row, lost, staked = self.bets.n_rows - len(seen), self.lost, self.staked
        lowest = self.lowest.lost * unit - self.lowest.staked * alpha
        for loss, stake in seen:
            row, lost, staked = row + 1, lost + loss, staked + stake
            if (excess := lost * unit - staked * alpha) <= lowest:
                lowest, self.lowest = excess, Seen(row, lost, staked)
            if row == self.bets.alarm_row:
                self.bets.rise_row = self.lowest.n_rows + 1
        self.lost, self.staked, self.n_rows = lost, staked, row
        self.recent.extend(seen)
