"""The calibrations behind joint sets: one for each guarantee and each column of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.prediction.predictor import Predictor
from ordinalrisk.recalibration.elementary import namespace

Groups = Mapping[str, Any]
"""The groups of each row, by the name of the column."""


@dataclass(frozen=True)
class Part:
    """A calibrated guarantee of joint sets."""

    name: str
    spec: Spec
    calibration: Calibration
    partition: str | None = None  # the column of groups that have thresholds of their own

    @property
    def predictor(self) -> Predictor:
        return Predictor.of(self.spec, self.calibration)

    @property
    def full_name(self) -> str:
        return self.name if not self.partition else f"{self.name}, by {self.partition}"

    def groups_of(self, groups: Groups) -> Any:
        return None if self.partition is None else groups[self.partition]


def partitions_of(groups: Any) -> Groups:
    """Return the columns of groups by name; a single unnamed column has the name ''."""
    if groups is None:
        return {}
    if isinstance(groups, Mapping):
        named = {str(name): values for name, values in groups.items()}
    elif hasattr(groups, "columns"):  # a frame of any library
        named = {str(name): groups[name] for name in groups.columns}
    elif getattr(groups, "ndim", 1) == 2:
        columns = np.asarray(to_numpy(groups, "groups"))
        named = {str(number): columns[:, number] for number in range(columns.shape[1])}
    else:
        return {"": groups}
    if not named:
        raise ValueError("groups has no columns; give the groups of each row, or leave groups out.")
    return named


def require_partitions(groups: Groups, wanted: Sequence[str]) -> None:
    """Raise an error unless the columns of groups are those of the calibration."""
    if {*groups} == {*wanted}:
        return
    given = f"got {_listed([*groups])}" if groups else "got none"
    needed = f"needs groups for {_listed(wanted)}" if wanted else "was made without groups"
    raise ValueError(f"The calibration {needed}; {given}.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) if name else "one column" for name in names)


def joint_ends(
    sides: Sequence[str | None], ends: Sequence[tuple[Any, Any]], n_classes: int
) -> tuple[Any, Any]:
    """Return the ends of the joint sets: each end as far out as the guarantees that control it need.

    >>> sides, ends = ("upper", "lower"), [(np.array([0]), np.array([2])), (np.array([1]), np.array([4]))]
    >>> joint_ends(sides, ends, 5)
    (array([1]), array([2]))
    """
    xp = namespace(ends[0][0])
    lower = [low for side, (low, _) in zip(sides, ends, strict=True) if side != "upper"]
    upper = [high for side, (_, high) in zip(sides, ends, strict=True) if side != "lower"]
    first = reduce(xp.minimum, lower) if lower else ends[0][0] * 0
    last = reduce(xp.maximum, upper) if upper else ends[0][1] * 0 + (n_classes - 1)
    return first, last
