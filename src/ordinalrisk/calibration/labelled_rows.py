"""Check rows with known labels, from arrays or in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from ordinalrisk.calibration.spec import Spec
from ordinalrisk.inputs.batch import Batch, in_batch
from ordinalrisk.inputs.caller import level_of_caller
from ordinalrisk.inputs.device import to_device_of
from ordinalrisk.inputs.labels import Classes, class_indices, require_column_order, resolve_classes
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.recalibration.applying import recalibrated

_OF_ROWS = ("groups", "clusters", "sample_weight", "point_labels")


def labelled_rows(
    spec: Spec,
    classes: Any,
    proba: Any,
    y: Any,
    *,
    part: int = 0,
    first_row: int = 0,
    number: int | None = None,
    **of_rows: Any,
) -> tuple[Batch, Classes]:
    """Check rows with labels; infer the classes if they are not given."""
    stacklevel = 4 if number is None else 1 + level_of_caller()  # batches are read at different depths
    require_same_rows(stacklevel, proba=proba, y=y, **of_rows)
    matrix = recalibrated(proba, spec.recalibration)
    known = resolve_classes(classes, y, matrix.shape[1])
    require_column_order(proba, known)
    remedy = " Name the labels in order with classes=." if spec.classes is None else ""
    labels = to_device_of(matrix, class_indices(y, known, len(matrix), remedy=remedy), "y")
    of_rows["point_labels"] = spec.growth.given_points(of_rows.get("point_labels"), matrix)
    return Batch(matrix, labels, part=part, first_row=first_row, number=number, **of_rows), known


def labelled_batches(spec: Spec, batches: Any) -> tuple[list[str], Classes, Iterator[Batch]]:
    """Check labelled batches one by one, the first one now; return its row options, classes and batches."""
    if not isinstance(batches, Iterable) or isinstance(batches, str | bytes | Mapping | np.ndarray):
        raise ValueError(f"batches must be pairs (proba, y); got a {type(batches).__name__}.")

    def checked(classes: Any) -> Iterator[tuple[Batch, Classes]]:
        first_row = 0
        for number, rows in enumerate(batches):
            named = _named(number, rows)
            with in_batch(number):
                batch, classes = labelled_rows(spec, classes, first_row=first_row, number=number, **named)
            yield batch, classes
            first_row += len(batch)

    rest = checked(spec.classes)
    if (first := next(rest, None)) is None:
        raise ValueError("There are no batches to calibrate with.")
    batch, classes = first
    return batch.used, classes, chain([batch], (batch for batch, _ in rest))


def _named(number: int, batch: Any) -> dict[str, Any]:
    if isinstance(batch, Mapping):
        if missing := [name for name in ("proba", "y") if name not in batch]:
            raise ValueError(f"Batch {number} has no {missing[0]!r}.")
        if unknown := [name for name in batch if name not in ("proba", "y", *_OF_ROWS)]:
            raise ValueError(
                f"Batch {number} has {unknown[0]!r}; a batch has proba, y and any of {', '.join(_OF_ROWS)}."
            )
        return {**batch}
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise ValueError(
            f"Batch {number} must be a pair (proba, y), or a mapping; got a {type(batch).__name__}."
        )
    return {"proba": batch[0], "y": batch[1]}
