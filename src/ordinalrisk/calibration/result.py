"""The result of a calibration: everything that predictions need from the calibration rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.strata import Strata
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.losses.cost_table import CostTable

if TYPE_CHECKING:
    from ordinalrisk.recalibration.recalibration import Recalibration


@dataclass(frozen=True)
class Calibration:
    """The strata with their risk curves, and the setting that they were computed for."""

    costs: CostTable
    classes: Classes
    strata: Strata
    data_blake3: str  # a fingerprint of the rows
    unit: str = "row"  # what is exchangeable: "row" or "cluster"
    shift: str | None = None  # "covariates" with row weights, "labels" with class ratios
    class_ratios: tuple[Fraction, ...] | None = None
    columns: ScoreColumns | None = None  # if the rows came from a file
    more_alphas: tuple[Fraction, ...] = ()  # other risks near which a partial curve is known
    shuffle_seed: int | None = None  # if a bound needs an order of the rows
    score_counts: NDArray[np.int64] | None = None  # the model's uncertainty, if rows are exchangeable
    recalibration: Recalibration | None = None  # the map from scores to the probabilities of all rows
