"""From probabilities to prediction sets, with the thresholds of one calibration."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.row_thresholds import RowKeys, Thresholds
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.growth.rules import GrowthRule
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.device import to_device_of, to_host
from ordinalrisk.inputs.labels import Classes, require_column_order
from ordinalrisk.inputs.random_rows import generator_at
from ordinalrisk.inputs.row_index import require_same_rows, row_index
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.prediction.ends import ends_by_label, ends_by_row, freed
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.recalibration.applying import recalibrated

_ROWS_AT_ONCE = 65_536  # with thresholds of their own


@dataclass(frozen=True)
class Predictor:
    """The sets of new rows: the labels with a level of at least the threshold."""

    growth: GrowthRule
    calibration: Calibration
    thresholds: Thresholds

    @classmethod
    def of(cls, spec: Spec, calibration: Calibration, alpha: Any = None) -> Predictor:
        """Return the predictor of a calibration, at its own risk or another."""
        return cls(spec.growth, calibration, spec.thresholds(calibration, alpha))

    def __call__(
        self,
        proba: Any,
        *,
        groups: Any = None,
        unseen_groups: str = "error",
        sample_weight: Any = None,
        random_state: Any = None,
        point_labels: Any = None,
    ) -> IntervalSet:
        """Return the set of each row; see :meth:`ordinalrisk.RiskController.predict_set`."""
        if not (groups is None and sample_weight is None and point_labels is None):
            require_same_rows(
                4, proba=proba, groups=groups, sample_weight=sample_weight, point_labels=point_labels
            )
        matrix = recalibrated(proba, self.calibration.recalibration)
        require_columns(proba, matrix.shape[1], self.calibration.classes)
        points = self.growth.given_points(point_labels, matrix)
        keys = self.thresholds.keys(len(matrix), groups, unseen_groups, sample_weight, random_state)
        sets, n_uncertified = self._sets(matrix, keys, points)
        warn_of_uncertified(n_uncertified, len(matrix), "new rows", stacklevel=4)
        sets.index = row_index(proba)
        return sets

    def sets(
        self, batch: Batch, *, unseen_groups: str = "error", random_state: Any = None
    ) -> tuple[IntervalSet, int]:
        """Return the set of each row, and how many rows have weights too large to certify anything.

        If ``random_state`` is a number, the coin of a row depends on the number of the row.
        """
        keys = self.keys(batch, unseen_groups, random_state)
        return self._sets(batch.proba, keys, batch.point_labels)

    def _sets(self, proba: Any, keys: RowKeys, points: Any) -> tuple[IntervalSet, int]:
        applied, costs = self.thresholds.of(keys), self.calibration.costs
        if isinstance(applied, float):
            ends = freed(self.growth.intervals(proba, costs, applied, points), costs)
            return IntervalSet.of(*ends, self.calibration.classes), 0
        parts: list[tuple[Any, Any]] = []
        for start in range(0, len(proba), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            mine = applied if len(applied) == 1 else applied[rows]
            parts += ends_at(
                self.growth, costs, proba[rows], [mine], None if points is None else points[rows]
            )
        lower, upper = (np.concatenate(part) for part in zip(*parts, strict=True))
        ends = to_device_of(proba, lower, "lower"), to_device_of(proba, upper, "upper")
        return IntervalSet.of(*ends, self.calibration.classes), Thresholds.n_uncertified(keys, applied)

    def keys(self, batch: Batch, unseen_groups: str = "error", random_state: Any = None) -> RowKeys:
        """Check the row options; return the values that thresholds depend on."""
        if random_state is not None and not isinstance(random_state, np.random.Generator) and batch.first_row:
            random_state = generator_at(batch.first_row, random_state)
        return self.thresholds.keys(
            len(batch), batch.groups, unseen_groups, batch.sample_weight, random_state
        )


def require_columns(proba: Any, n_columns: int, classes: Classes) -> None:
    """Raise an error if the columns differ in number or order from the classes of the calibration."""
    if n_columns != len(classes):
        by_class = getattr(proba, "shape", (0,))[0] == len(classes)
        remedy = " If it has a row for each class, pass proba.T." if by_class else ""
        raise ValueError(
            f"proba has {n_columns} columns, but the calibration had {len(classes)} classes.{remedy}"
        )
    require_column_order(proba, classes)


def ends_at(
    growth: GrowthRule,
    costs: CostTable,
    proba: Any,
    thresholds: Iterable[float | NDArray[np.float64]],
    point_labels: Any = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield the first and last labels of all rows at each threshold.

    A threshold is a number, or an array with a number for each row, for each label or for both.
    """
    levels: NDArray[np.float64] | None = None
    for applied in thresholds:
        if isinstance(applied, float):
            yield freed(growth.intervals(proba, costs, applied, point_labels), costs)
            continue
        if levels is None:
            levels = to_host(growth.row_levels(proba, costs, point_labels))
        if applied.shape[1] > 1:
            yield freed(ends_by_label(levels, applied, costs), costs)
        else:
            yield freed(ends_by_row(levels, applied[:, 0]), costs)


def warn_of_uncertified(n_uncertified: int, n_rows: int, rows: str = "rows", stacklevel: int = 3) -> None:
    if n_uncertified:
        warnings.warn(
            f"{n_uncertified:,} of {n_rows:,} {rows} have weights so large, compared with the calibration "
            "rows, that nothing can be certified for them: their sets are the full scale.",
            stacklevel=stacklevel,
        )
