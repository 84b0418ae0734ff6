"""The bets behind a monitor: their sizes, how a row changes their wealth, and their total evidence.

All numbers are sums and products of positive numbers, rounded down at each row by more than its rounding
errors: the computed wealth is never above the true one. ``docs/design/over-time.md`` has the reasons for
these bets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.confidence_bounds import SMALLEST_SHARE
from ordinalrisk.calibration.promises import checked_alpha
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.sequential.state import Run

Floats = NDArray[np.float64]

LARGEST_WEALTH = 1e300
MOST_RECENT = 500
"""The number of recent losses to keep."""
_BET_AT_ONCE = 0.5
_PATIENCE = 1000.0
_DOWN_EACH_ROW, _DOWN_IN_SUM = 1 - Fraction(1, 2**48), 1 - 2.0**-40
_ROWS_AT_ONCE, _BETS_AT_ONCE = 65_536, 2**20
_SMALLEST_BET = Fraction(1, 32)
_LARGEST_STAKE = Fraction(1, 2)


class BettingRun(Run):
    """Bets against "the expected loss is at most ``alpha``", and the row at which they raised the alarm.

    If rows have clusters, a cluster counts as a row, with the mean loss of its rows.
    """

    def __init__(self, costs: CostTable, alpha: Fraction, needed: float, classes: Classes) -> None:
        super().__init__(classes, costs, costs.unit)
        claim = checked_alpha(alpha, costs.bound) / costs.bound
        if claim < SMALLEST_SHARE:
            raise ValueError(f"alpha must be at least 1e-300 of the largest loss; got {decimal_text(alpha)}.")
        self.alpha, self._claim, self.sizes = alpha, claim, bet_sizes(claim)
        distinct, which = np.unique(costs.units.ravel(), return_inverse=True)
        shares = [Fraction(cost, int(distinct[-1])) for cost in distinct.tolist()]
        self._factors: Floats = np.array([loss_bet_factors(share - claim, self.sizes) for share in shares])
        self._which = which.reshape(costs.units.shape)
        self.wealth: Floats = np.zeros(len(self.sizes))
        self.needed, self.peak = needed, 1.0
        self.alarm_row: int | None = None
        self.rise_row: int | None = None  # where the loss began to rise, estimated at the alarm
        common = lcm(alpha.denominator, costs.unit.denominator)
        self._in_whole = int(costs.unit * common), int(alpha * common)  # a unit of the loss, and alpha
        self.lowest: tuple[int, int | Fraction] = (0, 0)  # rows and total loss where its excess was lowest
        self.recent: deque[int | Fraction] = deque(maxlen=MOST_RECENT)
        self.clusters: dict[str, None] | None = None  # digests of their names

    @property
    def evidence(self) -> float:
        """The wealth of all bets, from a start of 1."""
        return float(evidence_after(self.wealth, self.n_rows)) if self.n_rows else 1.0

    def factors(self, labels: NDArray[np.int64], nearest: NDArray[np.int64]) -> Floats:
        """Return the factors of the bets, a row for each true label and the nearest label of its set."""
        factors: Floats = self._factors[self._which[labels, nearest]]
        return factors

    def watch(self, labels: NDArray[np.int64], nearest: NDArray[np.int64]) -> None:
        """Add rows by their true labels and the nearest labels of their sets."""
        at_once = min(_ROWS_AT_ONCE, _BETS_AT_ONCE // len(self.sizes))
        for start in range(0, len(labels), at_once):
            here = slice(start, start + at_once)
            self._bet(self.factors(labels[here], nearest[here]))
            self._follow(self.costs.units[labels[here], nearest[here]].tolist())

    def watch_clusters(
        self, labels: NDArray[np.int64], nearest: NDArray[np.int64], clusters: NDArray[np.int64]
    ) -> None:
        """Add whole clusters; ``clusters`` numbers them in the order of their first rows."""
        lost, sizes = [0] * (int(clusters.max(initial=-1)) + 1), np.bincount(clusters).tolist()
        for cluster, loss in zip(clusters.tolist(), self.costs.units[labels, nearest].tolist(), strict=True):
            lost[cluster] += loss
        means = [Fraction(total, size) for total, size in zip(lost, sizes, strict=True)]
        largest, claim = int(self.costs.units.max()), self._claim
        of_mean = {mean: loss_bet_factors(mean / largest - claim, self.sizes) for mean in set(means)}
        for mean in means:
            self._bet(np.array([of_mean[mean]]))
            self._follow([mean])

    def _follow(self, losses: Sequence[int | Fraction]) -> None:
        """Add losses of rows that were bet on to the total, and note where its excess over alpha is lowest.

        The last such row is where the loss has been above alpha on average ever since.
        """
        unit, alpha = self._in_whole
        row, lost = self.n_rows - len(losses), self.lost
        lowest = self.lowest[1] * unit - self.lowest[0] * alpha
        for loss in losses:
            row, lost = row + 1, lost + loss
            if (excess := lost * unit - row * alpha) <= lowest:
                lowest, self.lowest = excess, (row, lost)
            if row == self.alarm_row:
                self.rise_row = self.lowest[0] + 1
        self.lost = lost
        self.recent.extend(losses)

    def _bet(self, factors: Floats) -> None:
        rows = self.n_rows + 1 + np.arange(len(factors))
        wealth = np.empty(factors.T.shape)
        for i, row in enumerate(rows.tolist()):
            self.wealth = wealth[:, i] = wealth_after(self.wealth, factors[i], row)
        evidence = evidence_after(wealth, rows)
        if self.alarm_row is None and (raised := evidence >= self.needed).any():
            self.alarm_row = int(rows[raised.argmax()])
        self.peak = max(self.peak, float(evidence.max()))
        self.n_rows += len(factors)


def bet_sizes(claim: Fraction) -> list[Fraction]:
    """Return sizes that double as long as a row without loss leaves half of the wealth.

    Smaller bets would only help to find a risk below 1.02 ``alpha``, in a million rows; larger ones would
    find a risk of many times ``alpha`` a few rows earlier.
    """
    sizes = [_SMALLEST_BET]
    while 2 * sizes[-1] * claim <= _LARGEST_STAKE:
        sizes.append(2 * sizes[-1])
    return sizes


def loss_bet_factors(surplus: Fraction, sizes: list[Fraction]) -> list[float]:
    """Return ``1 + size * surplus`` for each size, rounded down by more than a row's rounding errors."""
    down, lost, in_all = _DOWN_EACH_ROW, surplus.numerator, surplus.denominator
    return [  # Python rounds the quotient of whole numbers once
        (size.denominator * in_all + size.numerator * lost)
        * down.numerator
        / (size.denominator * in_all * down.denominator)
        for size in sizes
    ]


def _newly_bet(row: int) -> float:
    """Return the part of the initial wealth that is bet from this row on, the first row being 1."""
    part = (1 - _BET_AT_ONCE) * _PATIENCE / ((_PATIENCE + (row - 1)) * (_PATIENCE + row))
    return _BET_AT_ONCE + part if row == 1 else part


def wealth_after(wealth: Floats, factors: Floats, row: int) -> Floats:
    with np.errstate(over="ignore"):
        after: Floats = np.minimum((wealth + _newly_bet(row)) * factors, LARGEST_WEALTH)
    return after


def evidence_after(wealth: Floats, row: int | NDArray[np.int64]) -> Floats:
    """Return the total wealth after each row: of all bets (first axis) and of what is not bet yet."""
    kept = (1 - _BET_AT_ONCE) * _PATIENCE / (_PATIENCE + row)
    in_order = np.add.accumulate(wealth, axis=0)[-1]  # the order of this sum does not depend on the shape
    total: Floats = (in_order / len(wealth) + kept) * _DOWN_IN_SUM
    return total
