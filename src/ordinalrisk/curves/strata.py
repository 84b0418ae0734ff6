"""The strata of a calibration: all rows together, or each group and each true class by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.stratum_rows import stratum_numbers
from ordinalrisk.curves.unit_steps import UnitSteps
from ordinalrisk.losses.cost_table import CostTable


@dataclass(frozen=True)
class Stratum:
    """Rows that share a threshold."""

    group: int | None  # the number of the group, if each group has its own threshold
    label: int | None  # the position of the true class, if each class has its own threshold
    n_rows: int  # curve.n_rows counts clusters if there are clusters
    curve: RiskCurve
    two_valued: bool  # whether the loss of a unit is always 0 or the largest loss
    steps: UnitSteps | None = None  # if a bound needs the unit of each step


@dataclass(frozen=True)
class Strata:
    """The strata by group and, within a group, by true class; one if all rows share a threshold."""

    parts: tuple[Stratum, ...]
    groups: tuple[Any, ...] | None = None
    n_labels: int = 1  # the number of classes if each class has its own threshold

    @property
    def is_one(self) -> bool:
        """Whether all rows are calibrated together."""
        return self.groups is None and self.n_labels == 1

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self.parts)

    def table(self, values: Sequence[Any]) -> NDArray[Any]:
        """Arrange the values of all strata in a table, groups by classes."""
        return np.array(values).reshape(-1, self.n_labels)

    def named(self, values: Sequence[Any], classes: NDArray[Any]) -> Any:
        """Return a dict of the values by group and class; the value itself if there is one stratum."""
        if self.is_one:
            return values[0]
        names = [self.groups] if self.groups is not None else []
        names += [classes.tolist()] if self.n_labels > 1 else []
        keys = product(*names) if len(names) > 1 else names[0]
        return dict(zip(keys, values, strict=True))


def strata_of(
    steps: UnitSteps,
    labels: NDArray[np.int64],
    costs: CostTable,
    group_names: tuple[Any, ...] | None,
    *,
    groups: NDArray[np.int64] | None,
    clusters: NDArray[np.int64] | None,
    weights: NDArray[Any] | None,
    weight_unit: Fraction,
    by_label: bool,
) -> Strata:
    """Split the steps of rows into strata by group and, if ``by_label``, by true class.

    Groups and clusters are numbers, weights are whole multiples of ``weight_unit``; None if rows have none.
    """
    n_labels = costs.n_classes if by_label else 1
    part, strata = stratum_numbers(groups, labels, n_labels), []
    n_parts = n_labels * (1 if group_names is None else len(group_names))
    for index, (rows, mine) in enumerate(steps.split(part, n_parts)):
        label = index % n_labels if by_label else None
        bound, two_valued = costs.bound_of(label), costs.two_valued(label, steps.stakes is not None)
        unit, weight = costs.unit, Fraction(len(rows))
        if clusters is not None:
            mine, finer = mine.clustered(_renumbered(clusters[rows]))
            unit, weight = unit / finer, Fraction(mine.n_units)
            two_valued = False  # also if each has one row: the sizes of clusters are data
        if weights is not None:
            mine = mine.weighted(weights[rows])
            unit = unit * weight_unit
            weight = sum(weights[rows].tolist()) * weight_unit
        summed = mine.steps(int(bound / unit))
        curve = RiskCurve(
            summed, unit=unit, n_rows=mine.n_units, bound=bound, weight=weight, stake=mine.stake(unit)
        )
        group = None if group_names is None else index // n_labels
        strata.append(Stratum(group, label, len(rows), curve, two_valued, mine))
    return Strata(tuple(strata), group_names, n_labels)


def _renumbered(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Renumber codes without gaps, in the order of first appearance."""
    _, first, places = np.unique(codes, return_index=True, return_inverse=True)
    numbers: NDArray[np.int64] = np.argsort(np.argsort(first))[places]
    return numbers
