"""Upgrades of calibrations that earlier versions saved."""

from __future__ import annotations

import hashlib
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import loss_from_dict

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


def warn_of_other_ties(growth: str, loss: dict[str, Any], n_classes: int) -> None:
    """Warn if sets of this rule and this saved loss have changed since schema 4."""
    costs = CostTable.of(loss_from_dict(loss), n_classes)
    if growth == "paper" and costs.gains.weighted:
        warnings.warn(_OTHER_TIES, stacklevel=6)


def units_in_betting_order(levels: list[float], units: list[int], losses: list[float], n: int) -> list[int]:
    """Renumber the units of steps in the order in which they bet: schema 4 kept the order of the rows."""
    if n > _MOST_UNITS:
        raise ValueError(f"it has {n} units, at most {_MOST_UNITS} are read; calibrate again")
    at, unit, by = np.array(levels, np.float64), np.array(units, np.int64), np.array(losses, np.float64)
    places: list[int] = _places_by_digest(at, unit, by, n)[unit].tolist()
    return places


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
