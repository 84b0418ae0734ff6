"""The fields of a saved triage."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from ordinalrisk.growth.rules import POINT_RULES
from ordinalrisk.saving import shared_fields as shared
from ordinalrisk.saving.calibration_document import Columns, Threshold
from ordinalrisk.saving.document_with_digests import JsonObject
from ordinalrisk.saving.shared_fields import Count, PositiveNumber, Ratio, Whole, about, one_of


class SavedPart(JsonObject):
    """The rows of a group, or all rows."""

    group: Annotated[shared.Name | None, about("The group; null if there are no groups.")]
    n_rows: Annotated[Annotated[int, Meta(ge=1)], about("The number of calibration rows.")]
    threshold: Annotated[
        Threshold, about("Rows are accepted if the model's risk of their label is below it.")
    ]
    n_accepted: Annotated[Count, about("The number of calibration rows that are accepted.")]
    total_loss: Annotated[Ratio, about("The sum of their losses, exactly.")]


class TriageDocument(shared.DocumentOfLoss):
    """A saved triage, as TriageController.save and ordinalrisk triage write it."""

    name: ClassVar = "ordinalrisk triage"
    version: ClassVar = 1

    alpha: Annotated[PositiveNumber, about("The largest expected loss of an accepted row.")]
    delta: Annotated[shared.Probability, about("alpha is kept with probability 1 - delta.")]
    point: Annotated[str, one_of(POINT_RULES, "The label of a row.")]
    parts: Annotated[list[SavedPart], about("A threshold for each group, or for all rows.", min_length=1)]
    data_blake3: Annotated[shared.Digest, about("A BLAKE3 fingerprint of the calibration data.")]
    shuffle_seed: Annotated[
        Whole | None, about("The seed of the order of equal scores; null if no two rows have equal scores.")
    ]
    columns: Annotated[Columns | None, about("The columns of the calibration file; null for arrays.")]
