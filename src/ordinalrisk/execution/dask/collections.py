"""Dask arrays and frames: calibrated with where their partitions lie, predicted when someone asks."""

from __future__ import annotations

import math
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from ordinalrisk.calibration.accumulate import Calibration, RowExtras
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.execution.calibrating_parts import PartsCalibrator
from ordinalrisk.execution.dask.lazy_sets import LazyIntervalSet
from ordinalrisk.execution.dask.partitions import (
    AskedPartitions,
    Partitions,
    naming_partition,
    require_rows,
    shared,
)
from ordinalrisk.execution.part_steps import PartSteps
from ordinalrisk.inputs.labels import require_column_order, resolve_classes
from ordinalrisk.inputs.random_rows import generator_at
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.prediction.predictor import Predictor

UNKNOWN_CATEGORIES = "__UNKNOWN_CATEGORIES__"


def calibration_of(
    spec: Spec,
    proba: Any,
    y: Any,
    *,
    groups: Any,
    class_weight: Any,
    point_labels: Any,
    more_alphas: Any,
) -> Calibration:
    """The calibration on dask collections: the curve around its thresholds.

    The steps of the losses stay on the workers, 8 to 16 bytes for each, until it is done.
    """
    n_classes = n_columns(proba)
    spec.growth.require_points(point_labels)
    partitions = Partitions.of(proba, "proba")
    beside = [
        None if values is None and name != "y" else partitions.beside(values, name).parts
        for name, values in (("y", y), ("groups", groups), ("point_labels", point_labels))
    ]
    classes = resolve_classes(spec.classes, _without_rows(y), n_classes)
    require_column_order(proba, classes)
    calibrator = PartsCalibrator(spec, classes, groups is not None, class_weight, more_alphas)
    how = shared(calibrator)
    parts = [
        steps_of_partition(how, i, part, *(None if each is None else each[i] for each in beside))
        for i, part in enumerate(partitions.parts)
    ]
    return calibrator.finish(AskedPartitions(parts))


@delayed(pure=False)
def steps_of_partition(
    calibrator: PartsCalibrator, index: int, proba: Any, y: Any, groups: Any, point_labels: Any
) -> PartSteps:
    """The steps of the losses of one partition's rows."""
    collector = calibrator.collector()
    if _has_rows(proba, y, groups, point_labels):
        with naming_partition(index):
            require_same_rows(proba=proba, y=y, groups=groups, point_labels=point_labels)
            spec = calibrator.spec
            matrix, labels, _ = spec.checked_rows(proba, y, calibrator.classes)
            given = spec.growth.given_points(point_labels, matrix)
            collector.add(matrix, labels, RowExtras(groups, point_labels=given))
    return collector.finish()


def predicted(
    predictor: Predictor,
    proba: Any,
    *,
    groups: Any,
    unseen_groups: str,
    sample_weight: Any,
    seed: Any,
    point_labels: Any,
) -> LazyIntervalSet:
    """The interval of each row, not computed yet; what is wrong with the options is said at once."""
    classes = predictor.calibration.classes
    predictor.require_classes(n_columns(proba))
    require_column_order(proba, classes)
    predictor.growth.require_points(point_labels)
    if isinstance(seed, np.random.Generator):
        raise ValueError("For dask collections seed must be a whole number, not a Generator.")
    predictor.thresholds.of_rows(
        0,
        groups=None if groups is None else [],
        unseen_groups=unseen_groups,
        sample_weight=None if sample_weight is None else [],
        seed=seed,
    )
    partitions = Partitions.of(proba, "proba")
    first = [0] * len(partitions.parts) if seed is None else partitions.first_rows()
    beside = [
        None if values is None else partitions.beside(values, name).parts
        for name, values in (
            ("groups", groups),
            ("sample_weight", sample_weight),
            ("point_labels", point_labels),
        )
    ]
    how = shared(predictor)
    ends = [
        ends_of_partition(
            how,
            i,
            part,
            unseen_groups,
            seed,
            first[i],
            *(None if each is None else each[i] for each in beside),
        )
        for i, part in enumerate(partitions.parts)
    ]
    return LazyIntervalSet(ends, partitions.lengths, classes, proba)


@delayed(pure=False)
def ends_of_partition(
    predictor: Predictor,
    index: int,
    proba: Any,
    unseen_groups: str,
    seed: int | None,
    first_row: int,
    groups: Any,
    sample_weight: Any,
    point_labels: Any,
) -> NDArray[np.int32]:
    """The positions of the first and the last label of each row's interval."""
    if not _has_rows(proba, groups, sample_weight, point_labels):
        return np.empty((0, 2), np.int32)
    with naming_partition(index):
        sets = predictor(
            proba,
            groups=groups,
            unseen_groups=unseen_groups,
            sample_weight=sample_weight,
            seed=None if seed is None else generator_at(first_row, seed),
            point_labels=point_labels,
        )
    return np.stack([sets.lower_index, sets.upper_index], axis=1)


def n_columns(proba: Any) -> int:
    """How many classes there are probabilities of."""
    require_rows(proba, "proba")
    if proba.ndim != 2:
        raise ValueError(
            "proba must have shape (n_rows, n_classes), one column for each class; got "
            f"{f'shape {proba.shape}' if isinstance(proba, da.Array) else 'a series'}."
        )
    if not isinstance(proba, da.Array):
        return len(proba.columns)
    if math.isnan(proba.shape[1]):
        raise ValueError("How many columns proba has is not known; call compute_chunk_sizes().")
    return int(proba.shape[1])


def _has_rows(*collections: Any) -> bool:
    """Whether any has some, which then all must have."""
    return any(values is not None and len(values) for values in collections)


def _without_rows(y: Any) -> Any:
    """An empty collection that has the order of the categories, if there is one."""
    meta = getattr(y, "_meta", y)
    categories = getattr(getattr(meta, "dtype", None), "categories", None)
    if categories is not None and UNKNOWN_CATEGORIES in list(categories):
        raise ValueError("y has categories that dask does not know yet; pass y.cat.as_known().")
    return meta
