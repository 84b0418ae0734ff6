"""A fitted map together with the way it reads scores: what predictions need, and what is saved."""

from __future__ import annotations

from typing import Any

import msgspec

from ordinalrisk.recalibration.elementary import namespace
from ordinalrisk.recalibration.maps import AnyMap, Identity
from ordinalrisk.recalibration.reading import as_scores, log_probabilities

_ROWS_AT_ONCE = 8_192


class Recalibration(msgspec.Struct, frozen=True):
    """Turns scores into probabilities of the labels, with the same bits in every batch."""

    map: AnyMap
    kind: str
    floor: float
    n_scores: int

    def __call__(self, scores: Any) -> Any:
        """Return the probabilities of each row."""
        matrix = as_scores(scores)
        if matrix.shape[1] != self.n_scores:
            raise ValueError(
                f"The scores have {matrix.shape[1]} columns, but the map was fitted on {self.n_scores}."
            )
        if isinstance(self.map, Identity) and self.kind == "probabilities":
            return scores
        xp = namespace(matrix)
        pieces = (matrix[start : start + _ROWS_AT_ONCE] for start in range(0, len(matrix), _ROWS_AT_ONCE))
        return xp.concatenate(
            [xp.stack(self.map(log_probabilities(each, self.kind, self.floor)), 1) for each in pieces]
        )
