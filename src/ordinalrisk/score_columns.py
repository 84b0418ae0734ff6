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
    rescale : bool
        Whether each row is divided by its sum: probabilities that were rounded, or counts.
    """

    scores: tuple[str, ...]
    label: str
    logits: bool = False
    rescale: bool = False

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description that :meth:`from_dict` reads back."""
        return asdict(self) | {"scores": list(self.scores)}

    @classmethod
    def from_dict(cls, described: Any) -> ScoreColumns:
        """The columns that :meth:`to_dict` described, or a ValueError."""
        if set(described) != {"scores", "label", "logits", "rescale"}:
            raise ValueError("it must have scores, label, logits and rescale")
        scores, label = described["scores"], described["label"]
        if not isinstance(scores, list) or not all(isinstance(name, str) for name in [*scores, label]):
            raise ValueError("it must name columns")
        if len(set(scores)) < len(scores):
            raise ValueError("it must name each column once")
        flags = described["logits"], described["rescale"]
        if not all(isinstance(flag, bool) for flag in flags) or all(flags):
            raise ValueError("logits and rescale must be true or false, and not both true")
        return cls(tuple(scores), label, *flags)
