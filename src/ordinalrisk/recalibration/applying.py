"""Apply the map of a calibration, if it has one, to scores that come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ordinalrisk.inputs.labels import as_classes
from ordinalrisk.inputs.probability_matrix import as_matrix

if TYPE_CHECKING:
    from ordinalrisk.recalibration.recalibration import Recalibration


def recalibrated(scores: Any, recalibration: Recalibration | None) -> Any:
    """Return the matrix of probabilities: the scores as they are, or what the map makes of them."""
    return as_matrix(scores) if recalibration is None else recalibration(scores)


def checked_recalibration(given: Any, classes: Any) -> tuple[Recalibration | None, Any]:
    """Return the map of a fitted recalibrator, and the classes: those given or else its own."""
    if given is None:
        return None, classes
    from ordinalrisk.recalibration.recalibration import Recalibration

    fitted = getattr(given, "recalibration_", given)
    if not isinstance(fitted, Recalibration):
        raise ValueError(
            f"recalibration must be a fitted Recalibrator; got {given!r}. Fit it on rows that are not "
            "calibration rows, or pass recalibrate to calibrate."
        )
    own = getattr(given, "classes_", None)
    known = own if classes is None else classes
    if known is None:
        return fitted, None
    labels = as_classes(known).tolist()
    if own is not None and labels != own.tolist():
        raise ValueError(f"The recalibrator was fitted for the classes {own.tolist()}; classes has {labels}.")
    if len(labels) != fitted.n_labels:
        raise ValueError(
            f"The map gives probabilities of {fitted.n_labels} labels; classes has {len(labels)}."
        )
    return fitted, known
