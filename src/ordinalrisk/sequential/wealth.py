"""Bets: their sizes, how a row changes their wealth, and their total evidence.

All numbers are sums and products of positive numbers, rounded down at each row by more than its rounding
errors: the computed wealth is never above the true one. ``docs/design/over-time.md`` has the reasons for
these bets.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.saving.document_with_digests import FilePath, naming, require
from ordinalrisk.saving.run_documents import DriftDocument, MonitorDocument

Floats = NDArray[np.float64]

LARGEST_WEALTH = 1e300
_BET_AT_ONCE = 0.5
_PATIENCE = 1000.0
_DOWN_EACH_ROW, _DOWN_IN_SUM = 1 - Fraction(1, 2**48), 1 - 2.0**-40
_SMALLEST_BET = Fraction(1, 32)
_LARGEST_STAKE = Fraction(1, 2)


class Bets:
    """Bets with a total wealth of 1 at the start, and the row at which they reached what an alarm needs."""

    def __init__(self, n_bets: int, needed: float) -> None:
        self.wealth: Floats = np.zeros(n_bets)
        self.needed, self.peak = needed, 1.0
        self.n_rows = 0
        self.alarm_row: int | None = None
        self.rise_row: int | None = None  # where the rise began, estimated at the alarm

    @property
    def evidence(self) -> float:
        """The wealth of all bets, from a start of 1."""
        return float(evidence_after(self.wealth, self.n_rows)) if self.n_rows else 1.0

    def take(self, factors: Floats) -> Floats:
        """Multiply the wealth by the factors of each row, in order; return the evidence after each row."""
        rows = self.n_rows + 1 + np.arange(len(factors))
        wealth = np.empty(factors.T.shape)
        for i, row in enumerate(rows.tolist()):
            self.wealth = wealth[:, i] = wealth_after(self.wealth, factors[i], row)
        evidence = evidence_after(wealth, rows)
        if self.alarm_row is None and (raised := evidence >= self.needed).any():
            self.alarm_row = int(rows[raised.argmax()])
        self.peak = max(self.peak, float(evidence.max()))
        self.n_rows += len(factors)
        return evidence

    def values(self) -> dict[str, Any]:
        """Return the fields of a document."""
        wealth = [part.hex() for part in self.wealth.tolist()]
        return {
            "n_rows": self.n_rows,
            "wealth": wealth,
            "peak": self.peak.hex(),
            "alarm_row": self.alarm_row,
            "rise_row": self.rise_row,
        }

    def restore(self, path: FilePath, saved: MonitorDocument | DriftDocument) -> None:
        """Set the wealth after the rows of a document, or refuse the field that is wrong."""
        self.n_rows, self.alarm_row, self.rise_row = saved.n_rows, saved.alarm_row, saved.rise_row
        with naming(path, "wealth"):
            wealth = np.array([float.fromhex(part) for part in saved.wealth])
            require(wealth.shape == self.wealth.shape, "must have a number for each bet")
            require(bool((wealth <= LARGEST_WEALTH).all()), f"must be at most {LARGEST_WEALTH}")
            require(self.n_rows > 0 or not wealth.any(), "must be 0 before the first row")
            self.wealth = wealth
        with naming(path, "peak"):
            self.peak = float.fromhex(saved.peak)
            require(max(1.0, self.evidence) <= self.peak <= LARGEST_WEALTH, "must be the largest evidence")
        with naming(path, "alarm_row"):
            require((self.alarm_row or 0) <= self.n_rows, "must be one of the rows")
            raised = self.alarm_row is not None
            require(raised == (self.peak >= self.needed), "must be there if the alarm was raised")


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
