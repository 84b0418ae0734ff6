"""The label of each row, and the model's own risk of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.growth.rules import AdaptiveGrowth, require_valid
from ordinalrisk.inputs.device import to_host
from ordinalrisk.losses.cost_table import CostTable

_ROWS_AT_ONCE = 65_536

Labels = NDArray[np.int64]
Floats = NDArray[np.float64]


def labels_and_risks(
    growth: AdaptiveGrowth, proba: Any, costs: CostTable, given: Any = None
) -> tuple[Labels, Floats]:
    r"""Return the position of each row's label ``m``, and :math:`R(m, m)`.

    It is the largest level of another label under adaptive growth: the model's risk before the first label
    joins. So every backend computes the same bits.
    """
    if len(proba) > _ROWS_AT_ONCE:
        require_valid(proba)  # so that an error has the number of the row among all
    labels, risks = np.empty(len(proba), np.int64), np.empty(len(proba))
    for start in range(0, len(proba), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        points = None if given is None else given[rows]
        levels = to_host(growth.row_levels(proba[rows], costs, points))
        labels[rows] = levels.argmax(axis=1)  # the level of the label itself is infinite
        levels[np.arange(len(levels)), labels[rows]] = -np.inf
        risks[rows] = levels.max(axis=1)
    return labels, risks
