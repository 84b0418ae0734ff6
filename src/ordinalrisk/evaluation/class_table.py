"""Metrics of each true class, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.display.tables import ColumnsByName, LabelColumn, Table
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import Estimate, Value
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.losses.kinds import IntervalLoss


@dataclass(frozen=True)
class ClassTable(Table):
    """Metrics of the rows of each true class, which notebooks show as a table.

    Attributes
    ----------
    classes : array
        The labels in order.
    rows : array of int
        The number of rows of each true class.
    coverage : Estimate or array
        The share of the sets that include the label; NaN for a class without rows.
    risk : Estimate or array
        The mean loss.
    size : array
        The mean number of labels in a set.
    """

    classes: Classes
    rows: NDArray[np.int64]
    coverage: Value
    risk: Value
    size: NDArray[np.float64]

    def _columns(self) -> ColumnsByName:
        return {
            "label": LabelColumn(np.arange(len(self.classes)), self.classes),
            "rows": self.rows,
            **_ends("coverage", self.coverage),
            **_ends("risk", self.risk),
            "size": self.size,
        }


def class_table(tally: Tally, classes: Classes, loss: IntervalLoss, confidence: float | None) -> ClassTable:
    """Return the metrics of counted rows."""
    coverage, risk = tally.class_coverage(confidence), tally.class_risk(loss, confidence)
    return ClassTable(classes, tally.class_rows, coverage, risk, tally.class_size())


def _ends(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Estimate):
        return {name: value}
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
