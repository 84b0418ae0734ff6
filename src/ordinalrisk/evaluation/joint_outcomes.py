"""What joint sets of test rows lose, by each of their guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from ordinalrisk.composition.joint_sets import JointPredictor
from ordinalrisk.composition.parts import Part
from ordinalrisk.evaluation.outcomes import Outcomes
from ordinalrisk.inputs.batch import Batch, Summary


class JointOutcomes(Summary):
    """The outcomes of joint sets; a guarantee of one side counts them as if the other end were free."""

    def __init__(self, parts: Sequence[Part], *, random_state: int | None = None) -> None:
        self._parts, self._random_state = parts, random_state
        self.outcomes = [
            Outcomes([part.predictor], random_state=part.taken("error", random_state)["random_state"])
            for part in parts
        ]

    def add(self, batch: Batch) -> None:
        sets, _ = JointPredictor(self._parts).sets(batch, random_state=self._random_state)
        for part, outcomes in zip(self._parts, self.outcomes, strict=True):
            outcomes.add(replace(part.batch_of(batch), sets=sets))

    def merge(self, other: JointOutcomes) -> JointOutcomes:
        both = copy(self)
        both.outcomes = [one.merge(more) for one, more in zip(self.outcomes, other.outcomes, strict=True)]
        return both
