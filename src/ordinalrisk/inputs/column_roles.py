"""Which columns of a table hold what: kept with a calibration, so that names decide."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
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
    group, cluster, weight : str or None
        The column of each row's group, cluster and weight, where rows have them.
    """

    scores: tuple[str, ...]
    label: str
    logits: bool = False
    rescale: bool = False
    group: str | None = None
    cluster: str | None = None
    weight: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description that :meth:`from_dict` reads back."""
        return asdict(self) | {"scores": list(self.scores)}

    @classmethod
    def from_dict(cls, described: Any) -> ScoreColumns:
        """The columns that :meth:`to_dict` described, or a ValueError."""
        fields = [field.name for field in dataclass_fields(cls)]
        if set(described) != set(fields):
            raise ValueError(f"it must have {', '.join(fields[:-1])} and {fields[-1]}")
        scores, label = described["scores"], described["label"]
        others = [described[role] for role in ("group", "cluster", "weight") if described[role] is not None]
        if not isinstance(scores, list) or not all(
            isinstance(name, str) for name in [*scores, label, *others]
        ):
            raise ValueError("it must name columns")
        if len({*scores, *others}) < len(scores) + len(others) or label in others:
            raise ValueError("it must name each column once")
        flags = described["logits"], described["rescale"]
        if not all(isinstance(flag, bool) for flag in flags) or all(flags):
            raise ValueError("logits and rescale must be true or false, and not both true")
        return cls(**described | {"scores": tuple(scores)})
