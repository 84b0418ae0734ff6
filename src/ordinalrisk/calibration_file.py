"""Saved calibrations, with exact numbers.

The threshold is written as a hexadecimal float beside the decimal one, rationals as ratios, levels with all
their digits.
"""

from __future__ import annotations

import math
import re
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ordinalrisk.calibration import checked_alpha, expectation_threshold
from ordinalrisk.cost_table import CostTable
from ordinalrisk.exact import as_fraction, from_json, to_json
from ordinalrisk.growth import GROWTH_RULES
from ordinalrisk.labels import as_classes
from ordinalrisk.losses import loss_from_dict
from ordinalrisk.risk_curve import RiskCurve
from ordinalrisk.saved_document import Schema, refusal, require
from ordinalrisk.score_columns import ScoreColumns
from ordinalrisk.steps import SortedSteps

if TYPE_CHECKING:
    from ordinalrisk.controller import RiskController

SCHEMA = Schema(
    "ordinalrisk calibration",
    2,
    (
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
    ),
)


def write(controller: RiskController, path: str | PathLike[str]) -> None:
    """Save a calibrated controller."""
    SCHEMA.write(_values(controller), path)


def text_of(controller: RiskController) -> str:
    """What is saved of a calibrated controller."""
    return SCHEMA.text(_values(controller))


def _values(controller: RiskController) -> dict[str, Any]:
    curve = controller.risk_curve_
    document: dict[str, Any] = {
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
    return document


def read(path: str | PathLike[str]) -> RiskController:
    """Load a calibrated controller, or nothing."""
    document = SCHEMA.read(path)
    field = ""
    try:
        field = "loss"
        loss = loss_from_dict(document["loss"])
        field = "growth"
        require(set(document["growth"]) == {"name", "point"}, "must have a name and a point")
        growth = GROWTH_RULES[document["growth"]["name"]](document["growth"]["point"])
        field = "classes"
        require(
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
        require(as_fraction(document["bound"]) == costs.bound, "is not that of the loss")
        field = "n_rows"
        n_rows = document["n_rows"]
        require(type(n_rows) is int and n_rows > 0, "must be a positive whole number")
        field = "curve"
        curve = _curve(document["curve"], n_rows, costs)
        field = "threshold"
        threshold = float.fromhex(document["threshold"]["hex"])
        require(
            threshold == float(document["threshold"]["decimal"]), "differs between hexadecimal and decimal"
        )
        require(
            threshold == expectation_threshold(curve, as_fraction(alpha)), "does not follow from the curve"
        )
        field = "data_blake3"
        digest = document["data_blake3"]
        require(
            isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None, "must be a digest"
        )
        field = "columns"
        described = document["columns"]
        columns = None if described is None else ScoreColumns.from_dict(described)
        require(columns is None or len(columns.scores) == len(classes), "must have a column for each class")
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise refusal(path, field, f"is not valid: {str(error).rstrip('.')}") from None

    from ordinalrisk.controller import RiskController

    controller = RiskController(loss=loss, alpha=alpha, growth=growth, classes=classes)
    return controller._calibrated(costs, classes, curve, threshold, digest, columns)


def _curve(saved: dict[str, Any], n_rows: int, costs: CostTable) -> RiskCurve:
    levels = np.array(saved["levels"], np.float64)
    totals = saved["totals"]
    require(
        isinstance(totals, list) and all(type(total) is int and total > 0 for total in totals),
        "must have positive whole totals",
    )
    ties = saved["most_tied"]
    require(
        type(ties) is int and (1 if totals else 0) <= ties <= (n_rows if totals else 0),
        "must have between 1 and n_rows rows tied at a level, none without levels",
    )
    small = not totals or max(totals) < 2**63
    steps = SortedSteps(levels, np.array(totals, np.int64 if small else object), ties)
    curve = RiskCurve(steps, unit=as_fraction(saved["unit"]), n_rows=n_rows, bound=costs.bound)
    require(levels.shape == curve.totals.shape and levels.ndim == 1, "must have a total for each level")
    require(
        bool(np.isfinite(levels).all() and (np.diff(levels) > 0).all()), "must have increasing finite levels"
    )
    require(all(a < b for a, b in pairwise(totals)), "must have increasing totals")
    require(curve.unit == costs.unit, "has another unit than the loss")
    require(
        curve.total_loss(math.inf) <= n_rows * costs.bound, "has a larger total than so many rows can have"
    )
    return curve
