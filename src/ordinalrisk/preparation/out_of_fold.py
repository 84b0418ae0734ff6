"""What it takes to predict each training row with a model that was not trained on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.preparation.rows_apart import FEWEST


def may_learn(rows: Batch) -> bool:
    """Return whether the rows, or their clusters, are enough for a map that is only fitted by default."""
    n_rows, names = len(rows.labels), rows.clusters
    n_units = n_rows if names is None else int(RowNames("clusters").numbered(names, n_rows).max()) + 1
    return n_units >= FEWEST


def require_two_classes(rows: Batch, folds: Sequence[NDArray[np.int64]], classes: Classes) -> None:
    """Raise an error if the rows outside a fold have one label only: no model can be trained on them."""
    for fold in folds:
        others = np.unique(np.delete(rows.labels, fold))
        if len(others) < 2:
            raise ValueError(
                f"Without a fifth of them, all training rows have the label {classes[others[0]]!s}, so no "
                "model can be trained on them to predict that fifth. Add rows with other labels, or "
                'leave out recalibrate and growth="auto".'
            )
