"""The sets of new rows that keep several guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ordinalrisk.calibration.spec import SIDES
from ordinalrisk.composition.parts import Part, joint_ends
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.prediction.interval_set import IntervalSet


@dataclass(frozen=True)
class JointPredictor:
    """The sets of new rows: as far out as the guarantees need."""

    parts: Sequence[Part]

    def sets(
        self, batch: Batch, *, unseen_groups: str = "error", random_state: Any = None
    ) -> tuple[IntervalSet, int]:
        """Return the set of each row, and for how many rows a guarantee could certify nothing."""
        found = [
            part.predictor.sets(part.batch_of(batch), **part.taken(unseen_groups, random_state))
            for part in self.parts
        ]
        return joined(self.parts, [sets for sets, _ in found]), max(number for _, number in found)


def joined(parts: Sequence[Part], every: Sequence[IntervalSet]) -> IntervalSet:
    """Return the joint sets of the sets of each part."""
    first = every[0]
    ends = joint_ends(
        [part.spec.side for part in parts],
        [(sets.lower_index, sets.upper_index) for sets in every],
        len(first.classes),
    )
    return IntervalSet.of(*ends, first.classes, first.index)


def sizes_without(parts: Sequence[Part], every: Sequence[IntervalSet], left_out: int) -> Any:
    """Return the sizes of the joint sets without one guarantee.

    If no other guarantee controls an end that it controls, one label is enough.
    """
    rest = [number for number in range(len(parts)) if number != left_out]
    if _controlled([parts[number] for number in rest]) != _controlled(parts):
        return every[0].size * 0 + 1
    return joined([parts[number] for number in rest], [every[number] for number in rest]).size


def _controlled(parts: Sequence[Part]) -> set[str]:
    """Return the ends of sets that a guarantee is about."""
    return {end for part in parts for end in SIDES if part.spec.side in (None, end)}
