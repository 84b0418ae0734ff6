"""Calibrating and testing on many splits of the same rows: levels are computed and sorted once.

The level of a label does not depend on how the rows are split, and a threshold only says how many of the
sorted labels have left their sets. So a split needs no more than a running sum over the calibration rows, and
every quantity of the test rows is a count of what has left. A :class:`RiskController` on each split gives the
same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import loss_budget
from ordinalrisk.growth.rules import GrowthRule, as_growth
from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss


class HeldOutMeans(NamedTuple):
    """Means over the test rows: loss, set size, and for each true class coverage and set size."""

    risk: float
    size: float
    class_coverage: tuple[float, ...]
    class_size: tuple[float, ...]


class FixedRows:
    """Rows under one loss and growth rule, ready for any number of splits.

    Examples
    --------
    >>> from ordinalrisk import WeightedLoss
    >>> proba = np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8], [0.9, 0.1]] * 2)
    >>> y = np.array([0, 1, 1, 0] * 2)
    >>> rows = FixedRows(proba, y, WeightedLoss(), "frontier")
    >>> [result] = rows.test(np.array([0, 1, 2, 3]), [0.3])
    >>> result.risk, result.size
    (0.0, 1.5)
    """

    def __init__(
        self, proba: Any, y: NDArray[np.int64], loss: IntervalLoss, growth: str | GrowthRule
    ) -> None:
        levels = as_growth(growth).levels(proba, loss)
        self.n_rows, self.n_classes = levels.shape
        self.costs = CostTable.of(loss, self.n_classes)
        # The n point labels are at infinity, sort last and never leave.
        order = np.argsort(levels, axis=None)[: self.n_rows * (self.n_classes - 1)]
        level = levels.ravel()[order]
        self._budgets: dict[tuple[Any, int], int] = {}
        self._y = y
        self._row = order // self.n_classes
        self._truth = np.flatnonzero(order % self.n_classes == y[self._row])
        units = self.costs.units
        if self.n_rows * int(self.costs.bound / self.costs.unit) >= 2**63:
            units = units.astype(object)  # 64 bits are too few for their total
        gained = _units_gained(levels, y, units).ravel()[order]
        self._step = np.flatnonzero(gained)  # where among the sorted labels some loss steps up
        self._gained = gained[self._step]
        self._total_gained = _running_total(self._gained)
        # A step takes its whole level along; past the last step every label but the point label goes.
        self._gone_before_step = np.append(np.searchsorted(level, level[self._step]), len(level))

    def test(self, calibration: NDArray[np.int64], alphas: Sequence[Any]) -> Iterator[HeldOutMeans]:
        """Calibrate on some rows and test on the others, at each ``alpha``."""
        calibrates = np.zeros(self.n_rows, dtype=np.int64)
        calibrates[calibration] = 1
        # Calibration rows count as one more class, which the counts leave out.
        test_class = np.where(calibrates, self.n_classes, self._y)
        n_test = np.bincount(test_class, minlength=self.n_classes)[: self.n_classes]
        calibration_loss = _running_total(self._gained * calibrates[self._row[self._step]])
        gone = [self._labels_gone(calibration_loss, alpha, len(calibration)) for alpha in alphas]
        steps_gone = np.searchsorted(self._step, gone)
        loss = self._total_gained[steps_gone] - calibration_loss[steps_gone]
        lost = _counts_before(gone, test_class[self._row], self.n_classes)
        truths_gone = np.searchsorted(self._truth, gone)
        missed = _counts_before(truths_gone, test_class[self._row[self._truth]], self.n_classes)
        with np.errstate(invalid="ignore"):  # a class without test rows has no coverage: NaN
            class_coverage, class_size = 1 - missed / n_test, self.n_classes - lost / n_test
        for k in range(len(gone)):
            yield HeldOutMeans(
                risk=float(int(loss[k]) * self.costs.unit / int(n_test.sum())),
                size=float(self.n_classes - lost[k].sum() / n_test.sum()),
                class_coverage=tuple(class_coverage[k].tolist()),
                class_size=tuple(class_size[k].tolist()),
            )

    def _labels_gone(self, calibration_loss: NDArray[np.int64], alpha: Any, n_calibration: int) -> int:
        """How many of the sorted labels are below the threshold; those of one level go together."""
        units = self._budget(alpha, n_calibration)
        if units < 0:
            return 0
        first_too_many = np.searchsorted(calibration_loss[1:], units, side="right")
        return int(self._gone_before_step[first_too_many])

    def _budget(self, alpha: Any, n_calibration: int) -> int:
        """The largest total of the calibration losses, in units; computed once for many halves."""
        if (alpha, n_calibration) not in self._budgets:
            budget = loss_budget(as_fraction(alpha, "alpha"), self.costs.bound, n_calibration)
            self._budgets[alpha, n_calibration] = math.floor(budget / self.costs.unit)
        return self._budgets[alpha, n_calibration]


def _units_gained(
    levels: NDArray[np.float64], y: NDArray[np.int64], units: NDArray[np.int64]
) -> NDArray[np.int64]:
    """By how much a row's loss grows when a label leaves its set.

    A label between the truth and the point label leaves its inner neighbour as the end nearest to the truth;
    any other leaves the loss as it is.
    """
    label, truth, point = np.arange(levels.shape[1]), y[:, None], levels.argmax(axis=1)[:, None]
    on_the_way = ((point < label) & (label <= truth)) | ((truth <= label) & (label < point))
    inner = np.where(on_the_way, label - np.sign(truth - point), label)
    gained: NDArray[np.int64] = units[truth, inner] - units[truth, label]
    return gained


def _counts_before(ends: Any, values: NDArray[np.int64], n_values: int) -> NDArray[np.int64]:
    """How often each of ``0 .. n_values - 1`` is among the first so many values, one row for each end."""
    edges = np.unique([0, *ends])
    between = [
        np.bincount(values[start:stop], minlength=n_values)[:n_values]
        for start, stop in zip([0, *edges[:-1]], edges, strict=True)
    ]
    counts: NDArray[np.int64] = np.cumsum(between, axis=0)[np.searchsorted(edges, ends)]
    return counts


def _running_total(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of the first ``k`` values, for ``k`` from 0."""
    return np.concatenate([[0], np.cumsum(values)])
