"""Files of calibrations: exact numbers, read back only if they are consistent with each other."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from msgspec import to_builtins

from ordinalrisk.calibration.combinations import require_theorem
from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.numbers import as_fraction, from_json, to_json
from ordinalrisk.losses.kinds import loss_from_dict
from ordinalrisk.saving.calibration_document import CalibrationDocument
from ordinalrisk.saving.document_with_digests import FilePath, naming, require
from ordinalrisk.saving.older_calibrations import SHUFFLED_BY_DATA
from ordinalrisk.saving.saved_strata import loaded_strata, require_same, saved_stratum
from ordinalrisk.saving.shared_fields import growth_of, saved_counts, saved_growth, saved_names


def write(spec: Spec, calibration: Calibration, path: FilePath, key: FilePath | None = None) -> None:
    """Save a calibration and its specification; a private key signs it."""
    CalibrationDocument.write(document_fields(spec, calibration), path, key)


def text_of(spec: Spec, calibration: Calibration) -> str:
    return CalibrationDocument.text(document_fields(spec, calibration))


def document_fields(spec: Spec, calibration: Calibration) -> dict[str, Any]:
    strata, alpha, ratios = calibration.strata, spec.alpha, calibration.class_ratios
    labels = calibration.classes.tolist()
    return {
        "classes": saved_names(labels),
        "loss": spec.loss.to_dict(),
        "growth": saved_growth(spec.growth),
        "alpha": [to_json(alpha[label]) for label in labels]
        if isinstance(alpha, Mapping)
        else to_json(alpha),
        "options": {
            "delta": None if spec.delta is None else to_json(spec.delta),
            "bound": spec.confidence_bound,
            "condition_on": spec.condition_on,
            "randomize": spec.randomize,
            "relative": spec.relative,
        },
        "pool_classes": [[*pool] for pool in spec.pool_classes]
        if isinstance(spec.pool_classes, tuple)
        else spec.pool_classes,
        "exempt_classes": [*spec.exempt_classes],
        "unit": calibration.unit,
        "shift": [str(ratio) for ratio in ratios] if ratios else calibration.shift,
        "groups": None if strata.groups is None else saved_names([*strata.groups], "Group", "groups"),
        "strata": [*map(saved_stratum, strata.parts, spec.thresholds(calibration).values)],
        "data_blake3": calibration.data_blake3,
        "columns": calibration.columns and calibration.columns.to_dict(),
        "more_alphas": [to_json(alpha) for alpha in calibration.more_alphas],
        "shuffle_seed": calibration.shuffle_seed,
        "score_counts": None if calibration.score_counts is None else saved_counts(calibration.score_counts),
        "recalibration": to_builtins(calibration.recalibration),
        "side": spec.side,
        "growth_loss": None if spec.growth_loss is None else spec.growth_loss.to_dict(),
    }


def read(path: FilePath, key: FilePath | None = None) -> tuple[Spec, Calibration]:
    """Load a calibration and check that it is consistent; a public key verifies its signature first."""
    return loaded(CalibrationDocument.read(path, key), path)


def loaded(saved: CalibrationDocument, path: FilePath, inside: str = "") -> tuple[Spec, Calibration]:
    """Return a calibration that was read, if it is consistent; ``inside`` goes before its fields' names."""

    def field(name: str) -> AbstractContextManager[None]:
        return naming(path, inside + name)

    loss, classes, _ = saved.loss_on_classes(path)
    options, seed = saved.options, saved.shuffle_seed
    with field("growth"):
        growth = growth_of(saved.growth)
    with field("alpha"):
        alpha = (
            dict(zip(classes.tolist(), map(from_json, saved.alpha), strict=True))
            if isinstance(saved.alpha, list)
            else from_json(saved.alpha)
        )
    with field("options"):
        spec = Spec(
            loss,
            alpha,
            growth,
            classes,
            delta=None if options.delta is None else from_json(options.delta),
            confidence_bound=options.bound,
            condition_on=options.condition_on,
            randomize=options.randomize,
            random_state=seed,
            relative=options.relative,
        )
    for name in ("exempt_classes", "pool_classes"):
        with field(name):
            spec = replace(spec, **{name: getattr(saved, name)})
            spec.pooling(classes)
    with field("recalibration"):
        spec = replace(spec, recalibration=saved.recalibration)
    with field("growth_loss"):
        growth_loss = None if saved.growth_loss is None else loss_from_dict(to_builtins(saved.growth_loss))
        spec = replace(spec, growth_loss=growth_loss)
        spec.costs(len(classes))
    with field("side"):
        spec = replace(spec, side=saved.side)
        costs = spec.costs(len(classes))
    with field("alpha"):
        spec.require_alpha(classes)
    with field("shift"):
        shift = "labels" if isinstance(saved.shift, list) else saved.shift
        ratios = tuple(map(as_fraction, saved.shift)) if isinstance(saved.shift, list) else None
        require(not ratios or len(ratios) == len(classes), "must have a ratio for each class")
        require(not ratios or any(ratios), "must have a ratio above 0")
    with field("groups"):
        groups = None if saved.groups is None else tuple(saved.groups)
        require(groups is None or len(set(groups)) == len(groups), "must be distinct names")
    with field("options"):
        used = {
            "groups": groups is not None,
            "clusters": saved.unit == "cluster",
            "sample_weight": shift == "covariates",
            "class_ratios": shift == "labels",
        }
        require_theorem([*spec.options, *(name for name, is_used in used.items() if is_used)])
    with field("strata"):
        by_label, clustered = spec.condition_on is not None, saved.unit == "cluster"
        strata = loaded_strata(
            saved.strata,
            costs,
            groups,
            by_label=by_label,
            clustered=clustered,
            shift=shift,
            relative=spec.relative,
        )
    with field("columns"):
        columns = None if saved.columns is None else ScoreColumns.from_dict(to_builtins(saved.columns))
        n_scores = len(classes) if saved.recalibration is None else saved.recalibration.n_scores
        require(columns is None or len(columns.scores) == n_scores, "must have a column for each score")
    with field("more_alphas"):
        more = tuple(spec.checked_alpha(as_fraction(from_json(each)), costs) for each in saved.more_alphas)
    with field("shuffle_seed"):
        shuffled = any(part.steps is not None for part in strata.parts)
        require(shuffled or seed is None, "must be null where no bound needs an order")
        if shuffled and seed is None:
            warnings.warn(SHUFFLED_BY_DATA.format(path), stacklevel=4)
    with field("score_counts"):
        scores = None if saved.score_counts is None else saved.score_counts.dense()
        exchangeable = shift is None and not clustered
        require(scores is None or exchangeable, "must be null for clusters and weighted rows")
    calibration = Calibration(
        costs,
        classes,
        strata,
        saved.data_blake3,
        saved.unit,
        shift,
        ratios,
        columns,
        more,
        seed,
        scores,
        saved.recalibration,
    )
    with field("strata"):
        again = map(saved_stratum, strata.parts, spec.thresholds(calibration).values)
        for part, expected in zip(saved.strata, again, strict=True):
            require_same(part, expected)
    with field("more_alphas"):
        for alpha in more:
            spec.thresholds(calibration, alpha)  # raises an error if the windows do not cover it
    with field("score_counts"):
        require(scores is None or int(scores.sum()) == strata.n_rows, "must count each row once")
    return spec, calibration
