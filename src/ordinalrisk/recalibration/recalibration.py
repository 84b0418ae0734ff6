"""A fitted map together with the way it reads scores: what predictions need, and what is saved."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ordinalrisk.inputs.probability_matrix import as_matrix
from ordinalrisk.recalibration.elementary import namespace
from ordinalrisk.recalibration.maps import AnyMap, Identity
from ordinalrisk.recalibration.reading import as_scores, log_probabilities

_ROWS_AT_ONCE = 8_192


def _about(text: str, **limits: Any) -> Meta:
    return Meta(description=text, **limits)


class Recalibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Turns scores into probabilities of the labels, with the same bits in every batch."""

    map: Annotated[AnyMap, _about("The fitted map.")]
    scores: Annotated[str, _about("What the scores are.", pattern="^(probabilities|logits)$")]
    floor: Annotated[float, _about("The probability that smaller ones count as.", gt=0, lt=1)]
    n_scores: Annotated[int, _about("The number of scores of a row.", ge=1)]
    n_rows: Annotated[int, _about("The number of rows that the map was fitted on.", ge=1)]

    def __post_init__(self) -> None:
        self.map.require_consistent(self.n_scores)

    @property
    def method(self) -> str:
        """The name of the map."""
        return str(type(self.map).__struct_config__.tag)

    @property
    def n_labels(self) -> int:
        """The number of labels that get a probability."""
        return self.map.n_labels(self.n_scores)

    def in_words(self) -> str:
        """Return the name of the map and how many rows it was fitted on."""
        return f"{self.method.replace('_', ' ')}, fitted on {self.n_rows:,} rows"

    def __call__(self, scores: Any) -> Any:
        """Return the probabilities of each row."""
        given = as_matrix(scores, "scores", fewest=1)
        if given.shape[1] != self.n_scores:
            raise ValueError(
                f"The scores have {given.shape[1]} columns, but the map was fitted on {self.n_scores}."
            )
        matrix = as_scores(given, self.scores)
        if isinstance(self.map, Identity) and self.scores == "probabilities":
            return given
        xp = namespace(matrix)
        pieces = (matrix[start : start + _ROWS_AT_ONCE] for start in range(0, len(matrix), _ROWS_AT_ONCE))
        return xp.concatenate(
            [xp.stack(self.map(log_probabilities(each, self.scores, self.floor)), 1) for each in pieces]
        )
