"""The columns of a table that hold scores, labels, groups, clusters and weights, saved with a calibration."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ScoreColumns:
    """The columns that were used for a calibration."""

    scores: tuple[str, ...]  # in the order of the classes
    label: str
    logits: bool = False  # whether a softmax turns the scores into probabilities
    rescale: bool = False  # whether to divide each row by its sum, for rounded probabilities or counts
    group: str | None = None
    cluster: str | None = None
    weight: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"scores": list(self.scores)}

    @classmethod
    def from_dict(cls, described: dict[str, Any]) -> ScoreColumns:
        """Return the columns that a file describes; the types of its fields have been checked."""
        columns = cls(**described | {"scores": tuple(described["scores"])})
        others = [name for name in (columns.group, columns.cluster, columns.weight) if name is not None]
        names = [*columns.scores, *others]
        if len({*names}) < len(names) or columns.label in others:
            raise ValueError("it must name each column once")
        if columns.logits and columns.rescale:
            raise ValueError("logits and rescale must not both be true")
        return columns
