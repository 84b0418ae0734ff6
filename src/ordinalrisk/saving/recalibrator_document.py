"""The fields of a saved recalibrator."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from ordinalrisk.recalibration.choosing import METHODS
from ordinalrisk.recalibration.recalibration import Recalibration
from ordinalrisk.saving import shared_fields as shared
from ordinalrisk.saving.document_with_digests import Document, JsonObject
from ordinalrisk.saving.shared_fields import Whole, about, one_of

_COMPARED = (*METHODS, "blend")


class LogScore(JsonObject):
    """How well a map predicts the labels of rows that it was not fitted on."""

    map: Annotated[str, one_of(_COMPARED, "The map; blend is the mean of the others.")]
    mean: Annotated[float, about("The mean logarithm of the probability of the label.", le=0)]


class RecalibratorDocument(Document):
    """A fitted recalibrator, as Recalibrator.save writes it."""

    name: ClassVar = "ordinalrisk recalibrator"
    version: ClassVar = 1

    classes: shared.ClassNames
    recalibration: Annotated[Recalibration, about("The map from scores to probabilities.")]
    method: Annotated[str, one_of(("auto", *METHODS), "The method that was asked for.")]
    folds: Annotated[int, Meta(ge=2), about("The number of folds of the comparison.")]
    random_state: Annotated[Whole, about("The seed of the folds.")]
    log_scores: Annotated[list[LogScore], about("The maps that were compared.", min_length=1)]
