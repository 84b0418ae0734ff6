"""What joint sets of test rows lose under each of their guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from ordinalrisk.calibration.fingerprint import DataFingerprint
from ordinalrisk.composition.joint_sets import JointPredictor
from ordinalrisk.composition.parts import Part
from ordinalrisk.evaluation.outcomes import Outcomes
from ordinalrisk.inputs.batch import Batch, Summary


class JointOutcomes(Summary):
    """The outcomes of joint sets; a guarantee of one side counts them as if the other end were free."""

    def __init__(self, parts: Sequence[Part], *, random_state: int | None = None) -> None:
        self._parts, self._random_state, self._n_labels = parts, random_state, 0
        self.of_parts = [
            Outcomes([part.predictor], random_state=part.taken("error", random_state)["random_state"])
            for part in parts
        ]
        self.fingerprints = [DataFingerprint(at_most=part.calibration.strata.n_rows) for part in parts]

    @property
    def n_rows(self) -> int:
        return self.of_parts[0].n_rows

    @property
    def mean_size(self) -> float:
        return self._n_labels / self.n_rows

    def add(self, batch: Batch) -> None:
        sets, _ = JointPredictor(self._parts).sets(batch, random_state=self._random_state)
        self._n_labels += int(sets.size.sum())
        for part, outcomes, rows in zip(self._parts, self.of_parts, self.fingerprints, strict=True):
            mine = part.batch_of(batch)
            outcomes.add(replace(mine, sets=sets))
            rows.add(mine)

    def merge(self, other: JointOutcomes) -> JointOutcomes:
        both = copy(self)
        both._n_labels = self._n_labels + other._n_labels
        both.of_parts = [one.merge(more) for one, more in zip(self.of_parts, other.of_parts, strict=True)]
        rows = zip(self.fingerprints, other.fingerprints, strict=True)
        both.fingerprints = [one.merge(more) for one, more in rows]
        return both
