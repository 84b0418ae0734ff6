"""Upgrades of calibrations that earlier versions saved."""

from __future__ import annotations

import hashlib
import math
import warnings
from typing import TYPE_CHECKING

import numpy as np
from msgspec import to_builtins
from msgspec.structs import replace
from numpy.typing import NDArray

from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import loss_from_dict

if TYPE_CHECKING:
    from ordinalrisk.saving.calibration_document import CalibrationDocument, SavedStratum

SHUFFLED_BY_DATA = (
    "{} was calibrated by an earlier version, which shuffled the rows by a digest of the rows themselves. "
    "On sorted rows with few distinct scores its confidence can be lower than 1 - delta; calibrate again."
)
_OTHER_TIES = (
    "The file was calibrated by an earlier version, in which the paper rule added the left label where both "
    "neighbours tie. Algorithm 1 adds the right one, and so do predictions now: if scores tie, calibrate "
    "again."
)

_MOST_UNITS = 10**7  # sorting them again takes some seconds


def from_schema_4(saved: CalibrationDocument) -> CalibrationDocument:
    """Number units in the order in which they bet: schema 4 kept the order of the rows."""
    costs = CostTable.of(loss_from_dict(to_builtins(saved.loss)), len(saved.classes))
    if saved.growth.name == "paper" and costs.gains.weighted:
        warnings.warn(_OTHER_TIES, stacklevel=5)
    return replace(saved, strata=[_with_places(stratum) for stratum in saved.strata])


def _with_places(stratum: SavedStratum) -> SavedStratum:
    steps, curve = stratum.steps, stratum.curve
    if steps is None:
        return stratum
    if curve.n_rows > _MOST_UNITS:
        raise ValueError(f"it has {curve.n_rows} units, at most {_MOST_UNITS} are read; calibrate again")
    scale = as_fraction(curve.unit) / as_fraction(curve.bound)
    at, unit = np.array(steps.at, np.float64), np.array(steps.unit, np.int64)
    losses = np.array([float(by * scale) for by in steps.by], np.float64)
    places = _places_by_digest(at, unit, losses, curve.n_rows)
    return replace(stratum, steps=replace(steps, unit=places[unit].tolist()))


def _places_by_digest(
    at: NDArray[np.float64], unit: NDArray[np.int64], losses: NDArray[np.float64], n: int
) -> NDArray[np.int64]:
    order = np.lexsort((unit, losses, at))
    at, unit, losses = at[order], unit[order], losses[order]
    first = np.full(n, math.inf)
    np.minimum.at(first, unit, at)
    alike = np.bincount(unit, losses * at, n), np.bincount(unit, losses, n), first
    digest = hashlib.sha256(b"%d " % n + at.tobytes() + losses.tobytes() + unit.tobytes()).digest()
    places = np.empty(n, np.int64)
    places[np.lexsort(alike)] = np.random.default_rng(int.from_bytes(digest, "little")).permutation(n)
    return places
