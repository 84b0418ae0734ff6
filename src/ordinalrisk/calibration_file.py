"""Saved calibrations: JSON with a schema, a digest of every field, and exact numbers.

The threshold is written as a hexadecimal float beside the decimal one, rationals as ratios, levels with all
their digits. A file that was cut, edited or written by another schema is refused by the name of the field.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ordinalrisk import __version__
from ordinalrisk.atomic import replacing
from ordinalrisk.calibration import checked_alpha, expectation_threshold
from ordinalrisk.cost_table import CostTable
from ordinalrisk.exact import as_fraction, from_json, to_json
from ordinalrisk.growth import GROWTH_RULES
from ordinalrisk.labels import as_classes
from ordinalrisk.losses import loss_from_dict
from ordinalrisk.risk_curve import RiskCurve
from ordinalrisk.score_columns import ScoreColumns
from ordinalrisk.steps import SortedSteps

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController

FORMAT = "ordinalrisk calibration"
SCHEMA_VERSION = 2
FIELDS = (
    "format",
    "schema_version",
    "package_version",
    "classes",
    "loss",
    "growth",
    "alpha",
    "threshold",
    "n_rows",
    "bound",
    "curve",
    "data_blake3",
    "columns",
)


def write(controller: RiskController, path: str | PathLike[str]) -> None:
    """Save a calibrated controller."""
    text = text_of(controller)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def text_of(controller: RiskController) -> str:
    """What is saved of a calibrated controller."""
    curve = controller.risk_curve_
    document: dict[str, Any] = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "package_version": __version__,
        "classes": controller.classes_.tolist(),
        "loss": controller.loss.to_dict(),
        "growth": {"name": controller.growth.name, "point": controller.growth.point},
        "alpha": to_json(controller.alpha),
        "threshold": {"hex": controller.threshold_.hex(), "decimal": repr(controller.threshold_)},
        "n_rows": curve.n_rows,
        "bound": str(curve.bound),
        "curve": {
            "unit": str(curve.unit),
            "most_tied": curve.most_tied,
            "levels": curve.levels.tolist(),
            "totals": curve.totals.tolist(),
        },
        "data_blake3": controller.data_blake3_,
        "columns": None if controller.columns_ is None else controller.columns_.to_dict(),
    }
    for label in document["classes"]:
        if not isinstance(label, str | int | float):
            raise ValueError(f"Class {label!r} can't be saved; classes must be strings or numbers.")
        if isinstance(label, float) and not math.isfinite(label):
            raise ValueError(f"Class {label!r} can't be saved; numbers among the classes must be finite.")
    document["digests"] = {field: _digest(document[field]) for field in FIELDS}
    return _readable(document)


def read(path: str | PathLike[str]) -> RiskController:
    """Load a calibrated controller, or nothing."""
    document = _parsed(path)
    if document.get("format") != FORMAT:
        raise _refusal(path, "format", f"is {document.get('format')!r}, not {FORMAT!r}")
    if document.get("schema_version") != SCHEMA_VERSION:
        found = document.get("schema_version")
        raise _refusal(
            path, "schema_version", f"is {found!r}; this version of ordinalrisk reads {SCHEMA_VERSION}"
        )
    for field in (*FIELDS, "digests"):
        if field not in document:
            raise _refusal(path, field, "is missing")
    for field in document:
        if field not in (*FIELDS, "digests"):
            raise _refusal(path, field, "is not part of the schema")
    if not isinstance(document["digests"], dict):
        raise _refusal(path, "digests", "must map fields to their digests")
    for field in document["digests"]:
        if field not in FIELDS:
            raise _refusal(path, "digests", f"has an entry {field!r} that is not part of the schema")
    for field in FIELDS:
        if document["digests"].get(field) != _digest(document[field]):
            raise _refusal(path, field, "does not match its digest, so it was changed after it was saved")
    field = ""
    try:
        field = "loss"
        loss = loss_from_dict(document["loss"])
        field = "growth"
        _require(set(document["growth"]) == {"name", "point"}, "must have a name and a point")
        growth = GROWTH_RULES[document["growth"]["name"]](document["growth"]["point"])
        field = "package_version"
        _require(isinstance(document["package_version"], str), "must be text")
        field = "classes"
        _require(
            isinstance(document["classes"], list)
            and all(isinstance(label, str | int | float) for label in document["classes"]),
            "must be a list of strings or numbers",
        )
        classes = as_classes(document["classes"])
        costs = CostTable.of(loss, len(classes))
        field = "alpha"
        alpha = from_json(document["alpha"])
        checked_alpha(as_fraction(alpha), costs.bound)
        field = "bound"
        _require(as_fraction(document["bound"]) == costs.bound, "is not that of the loss")
        field = "n_rows"
        n_rows = document["n_rows"]
        _require(type(n_rows) is int and n_rows > 0, "must be a positive whole number")
        field = "curve"
        curve = _curve(document["curve"], n_rows, costs)
        field = "threshold"
        threshold = float.fromhex(document["threshold"]["hex"])
        _require(
            threshold == float(document["threshold"]["decimal"]), "differs between hexadecimal and decimal"
        )
        _require(
            threshold == expectation_threshold(curve, as_fraction(alpha)), "does not follow from the curve"
        )
        field = "data_blake3"
        digest = document["data_blake3"]
        _require(
            isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None, "must be a digest"
        )
        field = "columns"
        described = document["columns"]
        columns = None if described is None else ScoreColumns.from_dict(described)
        _require(columns is None or len(columns.scores) == len(classes), "must have a column for each class")
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise _refusal(path, field, f"is not valid: {str(error).rstrip('.')}") from None

    from ordinalrisk.controller import RiskController

    controller = RiskController(loss=loss, alpha=alpha, growth=growth, classes=classes)
    return controller._calibrated(costs, classes, curve, threshold, digest, columns)


def _curve(saved: dict[str, Any], n_rows: int, costs: CostTable) -> RiskCurve:
    levels = np.array(saved["levels"], np.float64)
    totals = saved["totals"]
    _require(
        isinstance(totals, list) and all(type(total) is int and total > 0 for total in totals),
        "must have positive whole totals",
    )
    ties = saved["most_tied"]
    _require(
        type(ties) is int and (1 if totals else 0) <= ties <= (n_rows if totals else 0),
        "must have between 1 and n_rows rows tied at a level, none without levels",
    )
    small = not totals or max(totals) < 2**63
    steps = SortedSteps(levels, np.array(totals, np.int64 if small else object), ties)
    curve = RiskCurve(steps, unit=as_fraction(saved["unit"]), n_rows=n_rows, bound=costs.bound)
    _require(levels.shape == curve.totals.shape and levels.ndim == 1, "must have a total for each level")
    _require(
        bool(np.isfinite(levels).all() and (np.diff(levels) > 0).all()), "must have increasing finite levels"
    )
    _require(all(a < b for a, b in pairwise(totals)), "must have increasing totals")
    _require(curve.unit == costs.unit, "has another unit than the loss")
    _require(
        curve.total_loss(math.inf) <= n_rows * costs.bound, "has a larger total than so many rows can have"
    )
    return curve


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(f"it {otherwise}")


def _parsed(path: str | PathLike[str]) -> dict[str, Any]:
    try:
        document = json.loads(
            Path(path).read_text(encoding="utf-8"), object_pairs_hook=lambda pairs: _unrepeated(path, pairs)
        )
    except _RefusedError:
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a whole JSON file ({error}); nothing was loaded.") from None
    if not isinstance(document, dict):
        raise _refusal(path, "format", "is missing")
    return document


class _RefusedError(ValueError):
    """A file that is JSON, but no calibration."""


def _unrepeated(path: str | PathLike[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise _refusal(path, repeated, "is there more than once")
    return members


def _refusal(path: str | PathLike[str], field: str, problem: str) -> _RefusedError:
    return _RefusedError(f"{path} can't be loaded: field {field!r} {problem}. Nothing was loaded.")


def _digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _readable(document: dict[str, Any]) -> str:
    """One field a line, the curve's long lists on one line each."""
    lines = []
    for field, value in document.items():
        if field == "curve":
            inner = ",\n".join(f"    {json.dumps(key)}: {json.dumps(part)}" for key, part in value.items())
            lines.append(f'  "curve": {{\n{inner}\n  }}')
        else:
            lines.append(f"  {json.dumps(field)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
