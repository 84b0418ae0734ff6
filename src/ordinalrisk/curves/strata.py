"""What a calibration keeps: the losses of all rows together, or of each group and each true class alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.unit_steps import UnitSteps
from ordinalrisk.losses.cost_table import CostTable


@dataclass(frozen=True)
class Stratum:
    """Rows that are calibrated by themselves.

    Attributes
    ----------
    group : int or None
        Which group they are, if rows are told apart by group.
    label : int or None
        Which true class they have, if rows are told apart by class.
    n_rows : int
        How many rows there are; the curve's own ``n_rows`` counts clusters where those are the units.
    curve : RiskCurve
        Their total loss at each threshold.
    two_valued : bool
        Whether a unit's loss is always 0 or the largest one.
    steps : UnitSteps or None
        Whose loss steps where, if a bound asks.
    """

    group: int | None
    label: int | None
    n_rows: int
    curve: RiskCurve
    two_valued: bool
    steps: UnitSteps | None = None


@dataclass(frozen=True)
class Strata:
    """The strata by group and by label, groups first; one of all rows if they are not told apart.

    Attributes
    ----------
    parts : tuple of Stratum
        In the order of groups, and of labels within a group.
    groups : tuple or None
        The groups in the order of the strata.
    n_labels : int
        The number of classes if rows are told apart by class, else 1.
    """

    parts: tuple[Stratum, ...]
    groups: tuple[Any, ...] | None = None
    n_labels: int = 1

    @property
    def is_one(self) -> bool:
        """Whether all rows are calibrated together."""
        return self.groups is None and self.n_labels == 1

    @property
    def n_rows(self) -> int:
        """The number of rows in all strata."""
        return sum(part.n_rows for part in self.parts)

    def table(self, values: Sequence[Any]) -> NDArray[Any]:
        """A value for each stratum as a table of groups and labels."""
        return np.array(values).reshape(-1, self.n_labels)

    def named(self, values: Sequence[Any], classes: NDArray[Any]) -> Any:
        """A value for each stratum by group and class; the value itself if there is one stratum."""
        if self.is_one:
            return values[0]
        names = [self.groups] if self.groups is not None else []
        names += [classes.tolist()] if self.n_labels > 1 else []
        keys = product(*names) if len(names) > 1 else names[0]
        return dict(zip(keys, values, strict=True))


@dataclass(frozen=True)
class RowsApart:
    """What tells rows apart or weighs them, as positions and whole numbers; None where it is not used.

    ``weights`` are whole multiples of ``weight_unit``.
    """

    groups: NDArray[np.int64] | None = None
    clusters: NDArray[np.int64] | None = None
    weights: NDArray[Any] | None = None
    weight_unit: Fraction = Fraction(1)


def strata_of(
    steps: UnitSteps,
    labels: NDArray[np.int64],
    costs: CostTable,
    apart: RowsApart,
    groups: tuple[Any, ...] | None,
    *,
    by_label: bool,
) -> Strata:
    """The rows' losses by group and, if asked, by true class."""
    n_labels = costs.n_classes if by_label else 1
    part = np.zeros(len(labels), np.int64) if apart.groups is None else apart.groups * n_labels
    if by_label:
        part = part + labels
    n_parts = n_labels * (1 if groups is None else len(groups))
    found = [
        _stratum(
            index // n_labels if groups is not None else None,
            index % n_labels if by_label else None,
            rows,
            mine,
            costs,
            apart,
        )
        for index, (rows, mine) in enumerate(steps.split(part, n_parts))
    ]
    return Strata(tuple(found), groups, n_labels)


def _stratum(
    group: int | None,
    label: int | None,
    rows: NDArray[np.int64],
    steps: UnitSteps,
    costs: CostTable,
    apart: RowsApart,
) -> Stratum:
    bound = costs.bound_of(label)
    unit, weight = costs.unit, Fraction(len(rows))
    alike = costs.two_valued(label)
    if apart.clusters is not None:
        steps, parts = steps.clustered(_renumbered(apart.clusters[rows]))
        unit, weight = unit / parts, Fraction(steps.n_units)
        alike = False  # also if each has one row: how many they have is data
    if apart.weights is not None:
        steps = steps.weighted(apart.weights[rows])
        unit = unit * apart.weight_unit
        weight = sum(apart.weights[rows].tolist()) * apart.weight_unit
    curve = RiskCurve(
        steps.steps(int(bound / unit)), unit=unit, n_rows=steps.n_units, bound=bound, weight=weight
    )
    return Stratum(group, label, len(rows), curve, alike, steps)


def _renumbered(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same codes without gaps, in the order in which they are met."""
    _, first, places = np.unique(codes, return_index=True, return_inverse=True)
    numbers: NDArray[np.int64] = np.argsort(np.argsort(first))[places]
    return numbers
