"""Calibrate on dask arrays and frames where their partitions are, and predict their sets lazily."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from ordinalrisk.calibration.labelled_rows import labelled_rows
from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.execution.calibrate import calibrate
from ordinalrisk.execution.dask.executor import DaskExecutor, shared
from ordinalrisk.execution.dask.lazy_sets import LazyIntervalSet
from ordinalrisk.execution.dask.partitions import Partitions, naming_partition, require_rows
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.labels import Classes, require_column_order, resolve_classes
from ordinalrisk.inputs.random_rows import generator_at
from ordinalrisk.inputs.scattered_rows import ScatteredRows
from ordinalrisk.prediction.predictor import Predictor, require_columns

UNKNOWN_CATEGORIES = "__UNKNOWN_CATEGORIES__"


def calibrate_collections(
    spec: Spec,
    proba: Any,
    y: Any,
    *,
    groups: Any,
    class_ratios: Any,
    point_labels: Any,
    more_alphas: Any,
    check: bool,
) -> tuple[Calibration, ScatteredRows | None]:
    """Calibrate where the partitions are, and return a sample of the rows if they are checked.

    Until it is done, workers keep 8 to 16 bytes for each step.
    """
    n_classes = n_columns(proba) if spec.recalibration is None else spec.recalibration.n_labels
    spec.growth.require_points(point_labels)
    partitions = Partitions.of(proba, "proba")
    labels = partitions.aligned(y, "y").parts
    classes = resolve_classes(spec.classes, _without_rows(y), n_classes)
    require_column_order(proba, classes)
    sent_spec, sent_classes = shared(spec), shared(classes)
    parts = partitions.with_others(groups=groups, point_labels=point_labels)
    source: list[Any] = [
        labelled_partition(sent_spec, sent_classes, i, part, labels[i], **others)
        for i, (part, others) in enumerate(parts)
    ]
    return calibrate(
        spec,
        classes,
        source,
        DaskExecutor(),
        class_ratios=class_ratios,
        more_alphas=more_alphas,
        check=check,
    )


@dataclass(frozen=True)
class LabelledPartition:
    """The rows of one partition, with their labels."""

    spec: Spec
    classes: Classes
    index: int
    proba: Any
    y: Any
    groups: Any
    point_labels: Any

    def batches(self) -> Generator[Batch, None, None]:
        if not _has_rows(self.proba, self.y, self.groups, self.point_labels):
            return
        with naming_partition(self.index):
            batch, _ = labelled_rows(
                self.spec,
                self.classes,
                self.proba,
                self.y,
                groups=self.groups,
                point_labels=self.point_labels,
                part=self.index,
            )
        yield batch

    def naming(self, batch: Batch) -> AbstractContextManager[Any]:
        return naming_partition(self.index)


labelled_partition = delayed(LabelledPartition, pure=False)


def predict_collections(
    predictor: Predictor,
    proba: Any,
    *,
    groups: Any,
    unseen_groups: str,
    sample_weight: Any,
    random_state: Any,
    point_labels: Any,
) -> LazyIntervalSet:
    """Predict the sets of all rows lazily; wrong options raise an error at once."""
    classes = predictor.calibration.classes
    if predictor.calibration.recalibration is None:
        require_columns(proba, n_columns(proba), classes)
    predictor.growth.require_points(point_labels)
    if isinstance(random_state, np.random.Generator):
        raise ValueError("For dask collections random_state must be a whole number, not a Generator.")
    predictor.thresholds.keys(
        0,
        groups=None if groups is None else [],
        unseen_groups=unseen_groups,
        sample_weight=None if sample_weight is None else [],
        random_state=random_state,
    )
    partitions = Partitions.of(proba, "proba")
    first = [0] * len(partitions.parts) if random_state is None else partitions.first_rows()
    sent_predictor = shared(predictor)
    parts = partitions.with_others(groups=groups, sample_weight=sample_weight, point_labels=point_labels)
    ends = [
        ends_of_partition(sent_predictor, i, part, unseen_groups, random_state, first[i], **others)
        for i, (part, others) in enumerate(parts)
    ]
    return LazyIntervalSet(Partitions(ends, partitions.lengths), classes, proba)


@delayed(pure=False)
def ends_of_partition(
    predictor: Predictor,
    index: int,
    proba: Any,
    unseen_groups: str,
    random_state: int | None,
    first_row: int,
    groups: Any,
    sample_weight: Any,
    point_labels: Any,
) -> NDArray[np.int32]:
    """Return the positions of the first and the last label of each set."""
    if not _has_rows(proba, groups, sample_weight, point_labels):
        return np.empty((0, 2), np.int32)
    with naming_partition(index):
        sets = predictor(
            proba,
            groups=groups,
            unseen_groups=unseen_groups,
            sample_weight=sample_weight,
            random_state=None if random_state is None else generator_at(first_row, random_state),
            point_labels=point_labels,
        )
    return np.stack([sets.lower_index, sets.upper_index], axis=1)


def n_columns(proba: Any) -> int:
    require_rows(proba, "proba")
    if proba.ndim != 2:
        raise ValueError(
            "proba must have shape (n_rows, n_classes), one column for each class; got "
            f"{f'shape {proba.shape}' if isinstance(proba, da.Array) else 'a series'}."
        )
    if not isinstance(proba, da.Array):
        return len(proba.columns)
    if math.isnan(proba.shape[1]):
        raise ValueError("The number of columns of proba is unknown; call compute_chunk_sizes().")
    return int(proba.shape[1])


def _has_rows(*collections: Any) -> bool:
    """Return whether any collection of a partition has rows; then a later check requires rows in all."""
    return any(values is not None and len(values) for values in collections)


def _without_rows(y: Any) -> Any:
    """Return an empty collection with the categories of ``y``, if it has categories."""
    meta = getattr(y, "_meta", y)
    categories = getattr(getattr(meta, "dtype", None), "categories", None)
    if categories is not None and UNKNOWN_CATEGORIES in list(categories):
        raise ValueError("y has categories that dask does not know yet; pass y.cat.as_known().")
    return meta
