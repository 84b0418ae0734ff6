r"""A run of an online controller: the place of its threshold, moved by the loss of each settled row.

.. math:: \theta \leftarrow \min\{1,\ \theta + \gamma\,(\alpha - L) / B\}

Places are whole multiples of a rational, so the bounds hold as computed, not up to rounding. Their proof
is in ``docs/design/over-time.md``. The threshold moves on a scale from 0 (full sets) to 1 (single labels).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import checked_alpha
from ordinalrisk.growth.rules import GrowthRule
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import is_whole
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss
from ordinalrisk.sequential.state import Run

_PLACES_BETWEEN_MOVES = 2**40  # so that a run can start anywhere
_FAINT = 1e-9  # equal moves are equal ratios of levels above this share of the largest level


class ThresholdScale(NamedTuple):
    """An exponential scale, so that equal moves are about equal ratios.

    Levels that are parts of the model's risk lie between 0 and ``length``; the scale is finest near 0. Scores
    lie between ``-length`` and 0, and it is finest near 0 too.
    """

    length: float
    stretch: float
    scores: bool

    @classmethod
    def of(cls, growth: GrowthRule, costs: CostTable) -> ThresholdScale:
        low, high = growth.level_range(costs)
        if low < 0:
            return cls(-low, math.log(costs.n_classes), scores=True)
        return cls(high, -math.log(_FAINT), scores=False)

    def threshold(self, theta: float) -> float:
        """Return the threshold at a place, infinite at both ends."""
        if not 0 < theta < 1:
            return -math.inf if theta <= 0 else math.inf
        away = 1 - theta if self.scores else theta
        level = self.length * math.expm1(self.stretch * away) / math.expm1(self.stretch)
        return -level if self.scores else level

    def place_of(self, threshold: float) -> float:
        """Return the place of a threshold, the nearer end for a threshold beyond the scale."""
        low, high = (-self.length, 0.0) if self.scores else (0.0, self.length)
        share = abs(min(max(threshold, low), high)) / self.length
        away = math.log1p(share * math.expm1(self.stretch)) / self.stretch
        return min(1.0, max(0.0, 1 - away if self.scores else away))


class OnlineRun(Run):
    """Where the threshold is, and the rows that wait for their labels."""

    def __init__(
        self,
        classes: Classes,
        loss: IntervalLoss,
        growth: GrowthRule,
        alpha: Fraction,
        rate: Fraction,
        threshold: float | None,
    ) -> None:
        costs = CostTable.of(loss, len(classes))
        self.alpha, self.scale = checked_alpha(alpha, costs.bound), ThresholdScale.of(growth, costs)
        parts = math.lcm(alpha.denominator, costs.unit.denominator) * _PLACES_BETWEEN_MOVES
        super().__init__(classes, costs, Fraction(1, parts))  # alpha and every loss are whole parts
        self.step = rate / costs.bound * self.part
        whole = parts // costs.unit.denominator
        self.losses = [[int(cost) * whole for cost in row] for row in costs.units]
        self.budget = int(alpha * parts)
        self.ceiling = math.ceil(1 / self.step)
        if threshold is None:
            threshold = -1.0 if self.scale.scores else float(alpha)
        # Slightly below the threshold's place, so that rounding does not exclude labels at the threshold.
        theta = Fraction(self.scale.place_of(threshold)) * (1 - Fraction(1, 2**40))
        self.start = self.place = math.floor(theta / self.step)
        self.most_pending = 0
        self.pending: dict[int, tuple[int, int]] = {}  # the ends of the set by row number, oldest first

    @property
    def floor(self) -> int:
        """The lowest place that so many pending rows can lead to."""
        return self.most_pending * (self.budget - max(map(max, self.losses)))

    @property
    def n_settled(self) -> int:
        return self.n_rows - len(self.pending)

    @property
    def theta(self) -> float:
        """The place as a number from 0, full sets, to 1, single labels."""
        return self.place * self.step.numerator / self.step.denominator  # rounded once

    @property
    def threshold(self) -> float:
        return self.scale.threshold(self.theta)

    @property
    def cut_off(self) -> int:
        """The total of the moves that the ceiling cut off."""
        moves: int = self.start + self.n_settled * self.budget - self.lost - self.place
        return moves

    def hand_out(self, lower: list[int], upper: list[int]) -> None:
        self.pending.update(enumerate(zip(lower, upper, strict=True), self.n_rows))
        self.n_rows += len(lower)
        self.most_pending = max(self.most_pending, len(self.pending))

    def pending_rows(self, rows: Any, n_labels: int) -> list[int]:
        """Return the number of the pending row that each label belongs to."""
        if rows is None:
            if n_labels > len(self.pending):
                raise ValueError(f"y has {n_labels} labels, but only {len(self.pending)} rows are pending.")
            return [*islice(self.pending, n_labels)]
        array = to_numpy(to_host(rows), "rows")
        if array.shape != (n_labels,) or (n_labels and array.dtype.kind not in "iu"):
            raise ValueError(
                f"rows must have a whole number for each of the {n_labels} labels; got shape {array.shape} "
                f"and type {array.dtype}."
            )
        numbers: list[int] = array.tolist()
        seen: set[int] = set()
        for number in numbers:
            if not 0 <= number < self.n_rows:
                raise ValueError(f"Row {number} was never handed out; there are {self.n_rows} rows so far.")
            if number in seen:
                raise ValueError(f"Row {number} is in rows more than once; give it one label.")
            if number not in self.pending:
                raise ValueError(f"Row {number} is settled already; leave it and its label out.")
            seen.add(number)
        return numbers

    def settle(self, y: int, ends: tuple[int, int]) -> None:
        """Move the place by the loss of a set whose label is known now."""
        lower, upper = ends
        loss = self.losses[y][min(max(y, lower), upper)]
        self.lost += loss
        self.place = min(self.ceiling, self.place + self.budget - loss)

    def replay(self, levels: NDArray[np.float64], labels: list[int]) -> Iterator[tuple[int, int]]:
        """Yield the ends of each row's set; each row is settled before the next one is handed out."""
        last = levels.shape[1] - 1
        self.most_pending = max(self.most_pending, len(self.pending) + 1)
        for level, y in zip(levels, labels, strict=True):
            inside = level >= self.threshold
            ends = int(inside.argmax()), last - int(inside[::-1].argmax())
            self.n_rows += 1
            self.settle(y, ends)
            yield ends

    def bound_after(self, n_rows: int, pending: int) -> Fraction:
        """Return the bound of the mean loss of the first rows of a run."""
        return self._mean_bound(self.start * self.part, self.costs.bound - self.alpha, n_rows, pending)

    def bound_over_any(self, n_rows: int, pending: int) -> Fraction:
        """Return the bound of the mean loss of consecutive rows anywhere in a run."""
        return self._mean_bound(self.ceiling * self.part - self.alpha, self.costs.bound, n_rows, pending)

    def _mean_bound(self, once: Fraction, each_pending: Fraction, n_rows: int, pending: int) -> Fraction:
        if not is_whole(n_rows) or n_rows < 1:
            raise ValueError(f"A mean loss is that of at least one row; got n_rows={n_rows!r}.")
        if not is_whole(pending) or pending < 1:
            raise ValueError(f"pending must be at least 1, the row that is handed out; got {pending!r}.")
        return min(self.costs.bound, self.alpha + (once + pending * each_pending) / n_rows)
