"""Metrics of each true class or of each group, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.display.tables import ColumnsByName, LabelColumn, Table
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import Estimate, Value, stacked
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.losses.kinds import IntervalLoss


@dataclass(frozen=True)
class ClassTable(Table):
    """Metrics of the rows of each true class, which prints as a table.

    Attributes
    ----------
    classes : array
        The labels in order.
    rows : array of int
        The number of rows of each true class.
    coverage : Estimate or array
        The share of the sets that include the label; NaN for a class without rows.
    risk : Estimate or array
        The mean loss, or the loss as a share of the largest possible one.
    size : array
        The mean number of labels in a set.
    """

    classes: Classes
    rows: NDArray[np.int64]
    coverage: Value
    risk: Value
    size: NDArray[np.float64]

    def _columns(self) -> ColumnsByName:
        return {"label": LabelColumn(np.arange(len(self.classes)), self.classes)} | _metrics(self)


@dataclass(frozen=True)
class GroupTable(Table):
    """Metrics of the rows of each group, which prints as a table.

    Attributes
    ----------
    groups : list
        The groups in order of appearance.
    rows : array of int
        The number of rows of each group.
    coverage : Estimate or array
        The share of the sets that include the label.
    risk : Estimate or array
        The mean loss, or the loss as a share of the largest possible one.
    size : array
        The mean number of labels in a set.
    """

    groups: list[Any]
    rows: NDArray[np.int64]
    coverage: Value
    risk: Value
    size: NDArray[np.float64]

    def _columns(self) -> ColumnsByName:
        return {"group": self.groups} | _metrics(self)


def class_table(
    tally: Tally, classes: Classes, loss: IntervalLoss, confidence: float | None, relative: bool = False
) -> ClassTable:
    """Return the metrics of counted rows."""
    coverage, risk = tally.class_coverage(confidence), tally.class_risk(loss, confidence, relative)
    return ClassTable(classes, tally.class_rows, coverage, risk, tally.class_size())


def group_table(
    tallies: Mapping[Any, Tally], loss: IntervalLoss, confidence: float | None, relative: bool = False
) -> GroupTable:
    """Return the metrics of the counted rows of each group."""
    found = [*tallies.values()]
    risks = [each.relative_risk if relative else each.risk for each in found]
    return GroupTable(
        [*tallies],
        np.array([each.n_rows for each in found]),
        stacked([each.coverage(confidence) for each in found]),
        stacked([risk(loss, confidence) for risk in risks]),
        np.array([each.mean_size() for each in found]),
    )


def _metrics(table: ClassTable | GroupTable) -> dict[str, Any]:
    ends = _ends("coverage", table.coverage) | _ends("risk", table.risk)
    return {"rows": table.rows} | ends | {"size": table.size}


def _ends(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Estimate):
        return {name: value}
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
