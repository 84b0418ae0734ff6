"""Check the inputs for fitting a scikit-learn classifier, and order its probabilities by class."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets

from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes, class_indices
from ordinalrisk.inputs.probability_matrix import as_matrix

RowNumbers = NDArray[np.int64]


def require_probabilities(estimator: Any) -> None:
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{estimator!r} has no predict_proba, but prediction sets need class probabilities; use "
            "another classifier, or wrap it in sklearn.calibration.CalibratedClassifierCV."
        )


def sorted_labels(y: NDArray[Any]) -> Classes:
    try:
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        return np.unique(y)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise ValueError(
            f"The labels in y have types {kinds}, which can't be sorted; list them in order with classes=."
        ) from None


def warn_if_alphabetical(classes: Classes) -> None:
    """Warn that text labels are in alphabetical order, which is rarely the order of the scale."""
    if len(classes) > 2 and any(isinstance(label, str) for label in classes.tolist()):
        warnings.warn(
            f"The labels are text, so they are taken in alphabetical order: {classes.tolist()}; list them in "
            "the order of the scale with classes=.",
            stacklevel=3,
        )


def warn_of_absent_classes(
    classes: Classes, labels: RowNumbers, train: RowNumbers, held_out: RowNumbers
) -> None:
    """Warn about classes without training rows or without calibration rows."""
    untrained = "the model gives them probability 0, and sets may miss nearly every new row with such a label"
    unmeasured = "the calibration can't measure how often sets miss them"
    for part, rows, effect in (("training", train, untrained), ("calibration", held_out, unmeasured)):
        if (absent := np.setdiff1d(labels, labels[rows])).size:
            warnings.warn(
                f"No {part} row has the labels {classes[absent].tolist()}: {effect}. Add rows with these "
                "labels, or merge each of them with a neighbour.",
                stacklevel=3,
            )


def ordered_probabilities(estimator: Any, X: Any, classes: Classes) -> NDArray[Any]:
    """Return the estimator's probabilities with a column for each class, in the order of ``classes``."""
    proba: NDArray[Any] = as_matrix(to_host(estimator.predict_proba(X)), fewest=1)
    trained_on = estimator.classes_
    column = class_indices(trained_on, classes, len(trained_on), "estimator.classes_")
    if np.array_equal(column, np.arange(len(classes))):
        return proba
    ordered = np.zeros((len(proba), len(classes)), proba.dtype)
    ordered[:, column] = proba
    return ordered
