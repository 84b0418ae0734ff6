"""Which columns of a table hold the scores and the label: kept with a calibration, so that names decide."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ScoreColumns:
    """The columns that a calibration was made from.

    Attributes
    ----------
    scores : tuple of str
        The column of each class, in the order of the classes.
    label : str
        The column of the true label.
    logits : bool
        Whether the scores are logits, of which probabilities are made by a softmax.
    """

    scores: tuple[str, ...]
    label: str
    logits: bool = False

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description that :meth:`from_dict` reads back."""
        return asdict(self) | {"scores": list(self.scores)}

    @classmethod
    def from_dict(cls, described: Any) -> ScoreColumns:
        """The columns that :meth:`to_dict` described, or a ValueError."""
        if set(described) != {"scores", "label", "logits"}:
            raise ValueError("it must have scores, label and logits")
        scores, label, logits = described["scores"], described["label"], described["logits"]
        if not isinstance(scores, list) or not all(isinstance(name, str) for name in [*scores, label]):
            raise ValueError("it must name columns")
        if len(set(scores)) < len(scores):
            raise ValueError("it must name each column once")
        if not isinstance(logits, bool):
            raise ValueError("logits must be true or false")
        return cls(tuple(scores), label, logits)
