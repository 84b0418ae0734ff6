"""From probabilities to prediction sets, with the thresholds of one calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.accumulate import Calibration
from ordinalrisk.calibration.row_thresholds import Thresholds
from ordinalrisk.growth.rules import GrowthRule
from ordinalrisk.inputs.device import beside, to_host
from ordinalrisk.inputs.labels import require_column_order
from ordinalrisk.inputs.matrix import as_matrix
from ordinalrisk.inputs.row_index import require_same_rows, row_index
from ordinalrisk.prediction.ends import Ends, ends_by_label, ends_by_row
from ordinalrisk.prediction.interval_set import IntervalSet

_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class Predictor:
    """The sets of new rows: the labels with a level of at least the threshold."""

    growth: GrowthRule
    calibration: Calibration
    thresholds: Thresholds

    def __call__(
        self,
        proba: Any,
        *,
        groups: Any = None,
        unseen_groups: str = "error",
        sample_weight: Any = None,
        seed: Any = None,
        point_labels: Any = None,
    ) -> IntervalSet:
        """The set of each row; see :meth:`ordinalrisk.RiskController.predict_set`."""
        if not (groups is None and sample_weight is None and point_labels is None):
            require_same_rows(
                4, proba=proba, groups=groups, sample_weight=sample_weight, point_labels=point_labels
            )
        matrix = as_matrix(proba)
        self.require_classes(matrix.shape[1])
        require_column_order(proba, self.calibration.classes)
        given = self.growth.given_points(point_labels, matrix)
        applied = self.thresholds.of_rows(
            len(matrix), groups=groups, unseen_groups=unseen_groups, sample_weight=sample_weight, seed=seed
        )
        if isinstance(applied, float):
            ends = self.growth.intervals(matrix, self.calibration.costs, applied, given)
        else:
            ends = self._ends(matrix, applied, given)
        return IntervalSet.of(*ends, self.calibration.classes, row_index(proba))

    def require_classes(self, n_columns: int) -> None:
        """Refuse probabilities of another number of classes than was calibrated with."""
        if (n_classes := len(self.calibration.classes)) != n_columns:
            raise ValueError(f"proba has {n_columns} columns, but the calibration had {n_classes} classes.")

    def _ends(
        self, matrix: Any, thresholds: NDArray[np.float64], given: NDArray[np.int64] | None
    ) -> tuple[Any, Any]:
        """The ends of intervals with a threshold that differs by row or label, some rows at a time."""
        by_label, same = thresholds.shape[1] > 1, len(thresholds) == 1
        costs = self.calibration.costs
        parts: list[Ends] = []
        for start in range(0, len(matrix), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            levels = self.growth.row_levels(matrix[rows], costs, None if given is None else given[rows])
            mine = thresholds if same else thresholds[rows]
            host: NDArray[np.float64] = to_host(levels)
            parts.append(ends_by_label(host, mine, costs) if by_label else ends_by_row(host, mine[:, 0]))
        lower, upper = (np.concatenate(part) for part in zip(*parts, strict=True))
        return beside(matrix, lower, "lower"), beside(matrix, upper, "upper")
