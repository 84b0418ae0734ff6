"""The calibrations behind joint sets: one for each guarantee and each column of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.display.text_table import listed
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.batch import Batch
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

    @cached_property
    def predictor(self) -> Predictor:
        return Predictor.of(self.spec, self.calibration)

    @property
    def full_name(self) -> str:
        return f"{self.name}, by {self.partition}" if self.partition else self.name

    @property
    def weighs_rows(self) -> bool:
        return self.calibration.shift == "covariates"

    def groups_of(self, groups: Groups) -> Any:
        return None if self.partition is None else groups[self.partition]

    def taken(self, unseen_groups: str, random_state: Any) -> dict[str, Any]:
        """Return the options of predictions that this guarantee takes."""
        return {
            "unseen_groups": unseen_groups,
            "random_state": random_state if self.spec.randomize else None,
        }

    def batch_of(self, batch: Batch) -> Batch:
        """Return the rows with the options that this guarantee takes."""
        return replace(
            batch,
            groups=self.groups_of(batch.partitions),
            sample_weight=batch.sample_weight if self.weighs_rows else None,
            clusters=batch.clusters if self.calibration.unit == "cluster" else None,
        )


def require_joinable(parts: Sequence[Part]) -> None:
    """Raise an error unless the parts have distinct names and the same classes."""
    names = [part.full_name for part in parts]
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(f"Two guarantees are called {twice[0]!r}; give them different names.")
    first, classes = parts[0], parts[0].calibration.classes.tolist()
    for part in parts:
        if (own := part.calibration.classes.tolist()) != classes:
            raise ValueError(
                f"{first.full_name!r} has the classes {listed(map(repr, classes))}, but {part.full_name!r} "
                f"has {listed(map(repr, own))}; joint sets need the same classes in the same order."
            )


def by_text(named: Mapping[Any, Any], two: str) -> dict[str, Any]:
    """Return the values by the text of their names; raise an error if two names have the same text."""
    found: dict[str, Any] = {}
    for name, value in named.items():
        if str(name) in found:
            raise ValueError(f"{two} called {str(name)!r}; give them different names.")
        found[str(name)] = value
    return found


def partitions_of(groups: Any) -> Groups:
    """Return the columns of groups by name; a single unnamed column has the name ''."""
    if groups is None:
        return {}
    if isinstance(groups, Mapping):
        named = by_text(groups, "Two columns of groups are")
    elif hasattr(groups, "columns"):  # a frame of any library
        named = by_text({name: groups[name] for name in groups.columns}, "Two columns of groups are")
    elif getattr(groups, "ndim", 1) == 2:
        columns = np.asarray(to_numpy(groups, "groups"))
        named = {str(number): columns[:, number] for number in range(columns.shape[1])}
    else:
        return {"": groups}
    if not named:
        raise ValueError("groups has no columns; give the groups of each row, or leave groups out.")
    return named


def require_partitions(groups: Groups, partitions: Sequence[str | None]) -> None:
    """Raise an error unless the columns of groups are those of the calibration."""
    wanted = [*dict.fromkeys(name for name in partitions if name is not None)]
    if {*groups} == {*wanted}:
        return
    given = f"got {_columns([*groups])}" if groups else "got none"
    needed = f"needs groups for {_columns(wanted)}" if wanted else "was made without groups"
    raise ValueError(f"The calibration {needed}; {given}.")


def _columns(names: Sequence[str]) -> str:
    return ", ".join(repr(name) if name else "one column" for name in names)


def joint_ends(
    sides: Sequence[str | None], ends: Sequence[tuple[Any, Any]], n_classes: int
) -> tuple[Any, Any]:
    """Return the ends of the joint sets: each end as far out as the guarantees that control it need.

    The ends can only cross if sets with a side start at different labels; they then swap places, which
    moves each further out.

    >>> import numpy as np
    >>> sides, ends = ("upper", "lower"), [(np.array([0]), np.array([2])), (np.array([1]), np.array([4]))]
    >>> joint_ends(sides, ends, 5)
    (array([1]), array([2]))
    """
    xp = namespace(ends[0][0])
    lower = [low for side, (low, _) in zip(sides, ends, strict=True) if side != "upper"]
    upper = [high for side, (_, high) in zip(sides, ends, strict=True) if side != "lower"]
    first = reduce(xp.minimum, lower) if lower else ends[0][0] * 0
    last = reduce(xp.maximum, upper) if upper else ends[0][1] * 0 + (n_classes - 1)
    return xp.minimum(first, last), xp.maximum(first, last)
