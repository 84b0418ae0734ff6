"""What saved documents have in common: classes, losses, growth rules and totals, read with every check."""

from __future__ import annotations

import math
from fractions import Fraction
from os import PathLike
from typing import Any, NamedTuple

from ordinalrisk.growth.rules import GROWTH_RULES, GrowthRule
from ordinalrisk.inputs.labels import Classes, as_classes
from ordinalrisk.inputs.numbers import MOST_ROWS, as_fraction, require_classes
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss, loss_from_dict
from ordinalrisk.saving.document_with_digests import naming


def require(holds: bool, otherwise: str) -> None:
    """Refuse the field that is being read unless something holds."""
    if not holds:
        raise ValueError(f"it {otherwise}")


class Scale(NamedTuple):
    """What a miss costs, on which labels."""

    loss: IntervalLoss
    classes: Classes
    costs: CostTable


def scale_of(path: str | PathLike[str], saved: dict[str, Any]) -> Scale:
    """The fields ``loss`` and ``classes``."""
    with naming(path, "loss"):
        loss = loss_from_dict(saved["loss"])
    with naming(path, "classes"):
        names = names_of(saved["classes"])
        require_classes(len(names))
        classes = as_classes(names)
        return Scale(loss, classes, CostTable.of(loss, len(classes)))


def saved_growth(growth: GrowthRule) -> dict[str, str]:
    """A growth rule as :func:`growth_of` reads it."""
    return {"name": growth.name, "point": growth.point}


def growth_of(saved: Any) -> GrowthRule:
    """The growth rule that was saved."""
    require(set(saved) == {"name", "point"}, "must have a name and a point")
    return GROWTH_RULES[saved["name"]](saved["point"])


def saved_names(names: list[Any], kind: str = "Class", plural: str = "classes") -> list[Any]:
    """The names, if JSON has them all."""
    for name in names:
        if not isinstance(name, str | int | float):
            raise ValueError(f"{kind} {name!r} can't be saved; {plural} must be strings or numbers.")
        if isinstance(name, float) and not math.isfinite(name):
            raise ValueError(f"{kind} {name!r} can't be saved; numbers among the {plural} must be finite.")
    return names


def names_of(saved: Any) -> list[Any]:
    """The names that were saved."""
    require(
        isinstance(saved, list) and all(isinstance(name, str | int | float) for name in saved),
        "must be a list of strings or numbers",
    )
    require(
        all(math.isfinite(name) for name in saved if isinstance(name, float)),
        "must not have infinite numbers",
    )
    names: list[Any] = saved
    return names


def count_of(saved: Any) -> int:
    """A number of rows."""
    require(type(saved) is int and saved >= 0, "must be a whole number, 0 or larger")
    require(saved <= MOST_ROWS, f"must be at most {MOST_ROWS}")
    count: int = saved
    return count


def total_of(saved: Any, n_rows: int, costs: CostTable) -> Fraction:
    """The total loss of so many rows."""
    total = as_fraction(saved)
    require((total / costs.unit).denominator == 1, "must be a whole number of units of the loss")
    require(0 <= total <= n_rows * costs.bound, "must be one that so many rows can have")
    return total
