"""Saved calibrations, with exact numbers.

Thresholds are written as hexadecimal floats beside the decimal ones, rationals as ratios, levels with all
their digits.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from ordinalrisk.calibration.accumulate import Calibration
from ordinalrisk.calibration.combinations import require_theorem
from ordinalrisk.calibration.promises import checked_alpha
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.curves.risk_curve import OrderedSteps, RiskCurve
from ordinalrisk.curves.steps import SortedSteps
from ordinalrisk.curves.strata import Strata, Stratum
from ordinalrisk.curves.unit_steps import UnitSteps
from ordinalrisk.curves.windows import Window, WindowedSteps
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import as_fraction, from_json, to_json
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.saving.document_with_digests import OlderSchema, Schema, naming
from ordinalrisk.saving.older_calibrations import SHUFFLED_BY_DATA, from_schema_4
from ordinalrisk.saving.shared_fields import (
    count_of,
    growth_of,
    names_of,
    require,
    saved_growth,
    saved_names,
    scale_of,
)

_FIELDS = (
    "classes",
    "loss",
    "growth",
    "alpha",
    "options",
    "unit",
    "shift",
    "groups",
    "strata",
    "data_blake3",
    "columns",
    "more_alphas",
)
SCHEMA = Schema(
    "ordinalrisk calibration",
    5,
    (*_FIELDS, "shuffle_seed"),
    older={4: OlderSchema(_FIELDS, from_schema_4)},
)
_OPTIONS = ("delta", "bound", "condition_on", "randomize")
_STRATUM = ("group", "label", "n_rows", "threshold", "curve", "steps")
_CURVE = ("unit", "bound", "n_rows", "weight", "most_tied", "total", "windows")


def write(
    spec: Spec, calibration: Calibration, path: str | PathLike[str], key: str | PathLike[str] | None = None
) -> None:
    """Save a calibration with what it was made for; sign it with a private key."""
    SCHEMA.write(_values(spec, calibration), path, key)


def text_of(spec: Spec, calibration: Calibration) -> str:
    """What is saved of a calibration."""
    return SCHEMA.text(_values(spec, calibration))


def read(path: str | PathLike[str], key: str | PathLike[str] | None = None) -> tuple[Spec, Calibration]:
    """Load a calibration, or nothing; a public key verifies its signature first."""
    saved = SCHEMA.read(path, key)
    loss, classes, costs = scale_of(path, saved)
    with naming(path, "growth"):
        growth = growth_of(saved["growth"])
    with naming(path, "alpha"):
        alpha = _alpha(saved["alpha"], classes)
    with naming(path, "options"):
        seed = saved["shuffle_seed"]
        spec = _spec(loss, alpha, growth, classes, saved["options"], seed)
    with naming(path, "alpha"):
        spec.calibrator(classes)  # which checks it against the loss
    with naming(path, "unit"):
        require(saved["unit"] in ("row", "cluster"), "must be row or cluster")
    with naming(path, "shift"):
        shift, class_weights = _shift(saved["shift"], classes)
    with naming(path, "groups"):
        groups = None if saved["groups"] is None else tuple(names_of(saved["groups"]))
        require(groups is None or 0 < len(set(groups)) == len(groups), "must be distinct names")
    with naming(path, "options"):
        used = {
            "groups": groups is not None,
            "clusters": saved["unit"] == "cluster",
            "sample_weight": shift == "covariates",
            "class_weight": shift == "labels",
        }
        require_theorem([*spec.options, *(name for name, is_used in used.items() if is_used)])
    with naming(path, "strata"):
        told_apart = _ToldApart(
            saved["unit"],
            shift is not None,
            shift == "covariates",
            groups,
            spec.condition_on is not None,
        )
        strata = _strata(saved["strata"], told_apart, costs)
    with naming(path, "data_blake3"):
        digest = saved["data_blake3"]
        require(isinstance(digest, str) and bool(re.fullmatch("[0-9a-f]{64}", digest)), "must be a digest")
    with naming(path, "columns"):
        described = saved["columns"]
        columns = None if described is None else ScoreColumns.from_dict(described)
        require(columns is None or len(columns.scores) == len(classes), "must have a column for each class")
    with naming(path, "more_alphas"):
        require(isinstance(saved["more_alphas"], list), "must be a list")
        more = tuple(
            checked_alpha(as_fraction(from_json(alpha)), costs.bound) for alpha in saved["more_alphas"]
        )
    with naming(path, "shuffle_seed"):
        shuffled = any(part.steps is not None for part in strata.parts)
        require(shuffled or seed is None, "must be null where no bound needs an order")
        if shuffled and seed is None:
            warnings.warn(SHUFFLED_BY_DATA.format(path), stacklevel=3)
    with naming(path, "strata"):
        calibration = Calibration(
            costs, classes, strata, digest, saved["unit"], shift, class_weights, columns, more, seed
        )
        thresholds = spec.thresholds(calibration).values
        for part, threshold in zip(saved["strata"], thresholds, strict=True):
            require(
                part["threshold"].keys() == {"hex", "decimal"}, "must have its threshold in hex and decimal"
            )
            found = float.fromhex(part["threshold"]["hex"])
            require(found == float(part["threshold"]["decimal"]), "differs between hexadecimal and decimal")
            require(found == threshold, "has a threshold that does not follow from its curve")
    with naming(path, "more_alphas"):
        for alpha in more:
            spec.thresholds(calibration, alpha)  # which must be known
    return spec, calibration


def _values(spec: Spec, calibration: Calibration) -> dict[str, Any]:
    strata, alpha = calibration.strata, spec.alpha
    return {
        "classes": saved_names(calibration.classes.tolist()),
        "loss": spec.loss.to_dict(),
        "growth": saved_growth(spec.growth),
        "alpha": [to_json(alpha[label]) for label in calibration.classes.tolist()]
        if isinstance(alpha, Mapping)
        else to_json(alpha),
        "options": {
            "delta": None if spec.delta is None else to_json(spec.delta),
            "bound": spec.bound,
            "condition_on": spec.condition_on,
            "randomize": spec.randomize,
        },
        "unit": calibration.unit,
        "shift": [str(weight) for weight in calibration.class_weights]
        if calibration.class_weights
        else calibration.shift,
        "groups": None if strata.groups is None else saved_names([*strata.groups], "Group", "groups"),
        "strata": [
            _saved_stratum(part, threshold)
            for part, threshold in zip(strata.parts, spec.thresholds(calibration).values, strict=True)
        ],
        "data_blake3": calibration.data_blake3,
        "columns": None if calibration.columns is None else calibration.columns.to_dict(),
        "more_alphas": [to_json(alpha) for alpha in calibration.more_alphas],
        "shuffle_seed": calibration.shuffle_seed,
    }


def _alpha(saved: Any, classes: Classes) -> Any:
    if not isinstance(saved, list):
        return from_json(saved)
    return dict(zip(classes.tolist(), map(from_json, saved), strict=True))


def _spec(loss: Any, alpha: Any, growth: Any, classes: Classes, options: Any, seed: Any) -> Spec:
    require(set(options) == set(_OPTIONS), f"must have {', '.join(_OPTIONS)}")
    require(isinstance(options["randomize"], bool), "must have true or false for randomize")
    delta = None if options["delta"] is None else from_json(options["delta"])
    return Spec(loss, alpha, growth, classes, **(options | {"delta": delta}), random_state=seed)


def _shift(saved: Any, classes: Classes) -> tuple[str | None, tuple[Fraction, ...] | None]:
    if not isinstance(saved, list):
        require(saved in (None, "covariates"), "must be covariates, the ratios of the classes, or nothing")
        return saved, None
    weights = tuple(as_fraction(weight) for weight in saved)
    require(
        len(weights) == len(classes) and min(weights) >= 0 < max(weights), "must have a ratio for each class"
    )
    return "labels", weights


class _ToldApart(NamedTuple):
    """What the strata must fit."""

    unit: str
    weighted: bool
    row_weights: bool
    groups: tuple[Any, ...] | None
    by_label: bool


def _strata(saved: Any, told_apart: _ToldApart, costs: CostTable) -> Strata:
    groups, n_labels = told_apart.groups, costs.n_classes if told_apart.by_label else 1
    keys = [
        (group if groups is not None else None, label if told_apart.by_label else None)
        for group in range(1 if groups is None else len(groups))
        for label in range(n_labels)
    ]
    require(isinstance(saved, list) and len(saved) == len(keys), f"must be a list of {len(keys)}")
    parts = [_stratum(part, *key, told_apart, costs) for part, key in zip(saved, keys, strict=True)]
    require(any(part.n_rows for part in parts), "must have rows")
    require(
        not told_apart.row_weights or all(part.curve.is_whole for part in parts),
        "must have whole curves where each row has a threshold of its own",
    )
    return Strata(tuple(parts), groups, n_labels)


def _stratum(
    saved: Any, group: int | None, label: int | None, told_apart: _ToldApart, costs: CostTable
) -> Stratum:
    require(set(saved) == set(_STRATUM), f"must have {', '.join(_STRATUM)}")
    require((saved["group"], saved["label"]) == (group, label), "is not in the order of groups and classes")
    n_rows, n_units = count_of(saved["n_rows"]), count_of(saved["curve"]["n_rows"])
    steps = None if saved["steps"] is None else _unit_steps(saved["steps"], n_units)
    curve = _curve(saved["curve"], steps, n_rows, costs.bound_of(label), told_apart, costs)
    _require_totals(curve, n_rows)
    alike = costs.two_valued(label) and told_apart.unit == "row"
    return Stratum(group, label, n_rows, curve, alike, steps)


def _curve(
    saved: Any,
    steps: UnitSteps | None,
    n_rows: int,
    bound: Fraction,
    told_apart: _ToldApart,
    costs: CostTable,
) -> RiskCurve:
    require(set(saved) == set(_CURVE), f"must have curves with {', '.join(_CURVE)}")
    unit, weight, units = as_fraction(saved["unit"]), as_fraction(saved["weight"]), saved["n_rows"]
    require(as_fraction(saved["bound"]) == bound, "has another largest loss than the loss")
    clustered = told_apart.unit == "cluster"
    require(units <= n_rows if clustered else units == n_rows, "has other rows than it says")
    require(unit > 0, "has a unit that is none")
    if not told_apart.weighted:
        whole = costs.unit / unit
        require(whole.denominator == 1 if clustered else whole == 1, "has another unit than the loss")
        require(weight == units, "has weights without a shift")
    require(weight > 0 or not n_rows or told_apart.weighted, "has no weight")
    if steps is not None:
        require(saved["windows"] is None, "must have steps or windows, not both")
        in_order: OrderedSteps = steps.steps(int(bound / unit)).in_order
        require(saved["most_tied"] == in_order.most_tied, "has other ties than its steps")
    else:
        in_order = _ordered_steps(saved)
    require(saved["total"] == in_order.total, "has another total than its steps")
    return RiskCurve(in_order, unit=unit, n_rows=units, bound=bound, weight=weight)


def _ordered_steps(saved: Mapping[str, Any]) -> OrderedSteps:
    total, most_tied = saved["total"], saved["most_tied"]
    require(type(total) is int and total >= 0, "must have a whole total")
    require(isinstance(saved["windows"], list), "must have windows")
    windows = tuple(_window(window) for window in saved["windows"])
    for one, next_one in pairwise(windows):
        require(
            one.levels[-1] < next_one.levels[0] and int(one.totals[-1]) < next_one.below,
            "must have windows in ascending order, with something between them",
        )
    last = int(windows[-1].totals[-1]) if windows else 0
    require(last <= total, "has levels above its total")
    if len(windows) < 2 and last == total and not (windows and windows[0].below):
        levels, totals = windows[0][1:] if windows else (np.empty(0), np.empty(0, np.int64))
        return SortedSteps(levels, totals, most_tied)
    return WindowedSteps(windows, total, most_tied)


def _window(saved: Any) -> Window:
    require(set(saved) == {"below", "levels", "totals"}, "must have windows with below, levels and totals")
    below, levels, totals = saved["below"], np.array(saved["levels"], np.float64), saved["totals"]
    require(type(below) is int and below >= 0, "must have a whole total below each window")
    require(
        isinstance(totals, list) and all(type(total) is int and total > 0 for total in totals),
        "must have positive whole totals",
    )
    require(levels.shape == (len(totals),), "must have a total for each level")
    require(len(levels) > 0, "must have no empty windows")
    require(
        bool(np.isfinite(levels).all() and (np.diff(levels) > 0).all()), "must have increasing finite levels"
    )
    require(all(a < b for a, b in pairwise([below, *totals])), "must have increasing totals")
    return Window(below, levels, np.array(totals, np.int64 if totals[-1] < 2**63 else object))


def _unit_steps(saved: Any, n_units: int) -> UnitSteps:
    require(set(saved) == {"at", "unit", "by"}, "must have steps with at, unit and by")
    at, unit = np.array(saved["at"], np.float64), np.array(saved["unit"], np.int64)
    by = saved["by"]
    require(
        isinstance(by, list) and all(type(step) is int and step > 0 for step in by), "must have whole steps"
    )
    require(at.shape == unit.shape == (len(by),), "must have a level and a unit for each step")
    require(bool(np.isfinite(at).all()), "must have finite levels")
    require(bool(((unit >= 0) & (unit < n_units)).all()), "must have steps of its own units")
    return UnitSteps(at, unit, np.array(by, np.int64 if sum(by) < 2**63 else object), n_units)


def _require_totals(curve: RiskCurve, n_rows: int) -> None:
    ties, any_levels = curve.most_tied, len(curve.levels) > 0
    require(
        type(ties) is int and (1 if any_levels else 0) <= ties <= (n_rows if any_levels else 0),
        "must have between 1 and n_rows rows tied at a level, none without levels",
    )
    require(
        curve.total_loss(math.inf) <= curve.weight * curve.bound,
        "has a larger total than so many rows can have",
    )


def _saved_stratum(part: Stratum, threshold: float) -> dict[str, Any]:
    curve, steps = part.curve, part.steps
    return {
        "group": part.group,
        "label": part.label,
        "n_rows": part.n_rows,
        "threshold": {"hex": threshold.hex(), "decimal": repr(threshold)},
        "curve": {
            "unit": str(curve.unit),
            "bound": str(curve.bound),
            "n_rows": curve.n_rows,
            "weight": str(curve.weight),
            "most_tied": curve.most_tied,
            "total": int(curve.total_loss(math.inf) / curve.unit),
            "windows": [
                {"below": window.below, "levels": window.levels.tolist(), "totals": window.totals.tolist()}
                for window in curve.windows
            ]
            if steps is None
            else None,
        },
        "steps": None
        if steps is None
        else {"at": steps.at.tolist(), "unit": steps.unit.tolist(), "by": steps.by.tolist()},
    }
