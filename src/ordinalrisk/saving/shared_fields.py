"""Fields that several documents have: their types, and the objects that they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Any, Literal

from msgspec import Meta, to_builtins

from ordinalrisk.calibration.score_counts import N_BINS, BinCounts, no_counts
from ordinalrisk.growth.rules import GROWTH_RULES, POINT_RULES, GrowthRule
from ordinalrisk.inputs.labels import Classes, as_classes
from ordinalrisk.inputs.numbers import MOST_CLASSES, MOST_ROWS
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss, loss_from_dict
from ordinalrisk.saving.document_with_digests import Document, FilePath, JsonObject, naming, require


def about(text: str, **limits: Any) -> Meta:
    """Describe a field in its schema, and limit its values."""
    return Meta(description=text, **limits)


def one_of(names: Iterable[str], text: str) -> Meta:
    """Describe a field that has one of these names."""
    return about(text, pattern=f"^({'|'.join(names)})$", extra_json_schema={"enum": [*names]})


_UNSIGNED = r"[0-9]+(/[0-9]+|(\.[0-9]+)?([eE][+-]?[0-9]+)?)$"
POSITIVE = rf"^(?=[0-9./]*[1-9]){_UNSIGNED}"
_WRITTEN = "As it was written: a JSON number, or text for others, such as 1/3 or a number with many digits."

AnyNumber = Annotated[int | float | Annotated[str, Meta(pattern=f"^-?{_UNSIGNED}")], about(_WRITTEN)]
NumberFrom0 = Annotated[
    Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)] | Annotated[str, Meta(pattern=f"^{_UNSIGNED}")],
    about(_WRITTEN),
]
PositiveNumber = Annotated[
    Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)] | Annotated[str, Meta(pattern=POSITIVE)],
    about(_WRITTEN),
]
Probability = Annotated[float, Meta(gt=0, lt=1)] | Annotated[str, Meta(pattern=POSITIVE)]
Share = Literal[1] | Annotated[float, Meta(gt=0, le=1)] | Annotated[str, Meta(pattern=POSITIVE)]
Ratio = Annotated[str, Meta(pattern="^[0-9]+(/[1-9][0-9]*)?$")]
Whole = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0, le=MOST_ROWS)]
Digest = Annotated[str, about("64 hexadecimal digits.", pattern="^[0-9a-f]{64}$", max_length=64)]

Name = str | int | float | bool
UNIQUE = {"uniqueItems": True}
_CLASSES = about("The labels in order.", min_length=2, max_length=MOST_CLASSES, extra_json_schema=UNIQUE)
ClassNames = Annotated[list[Name], _CLASSES]
_ClassCosts = Annotated[list[NumberFrom0], Meta(min_length=2)]
_Positions = Annotated[list[AnyNumber], Meta(min_length=2)]
Normalize = Annotated[bool, about("Whether costs are divided by the largest.")]


class SavedWeightedLoss(JsonObject, tag_field="kind", tag="weighted"):
    """A cost that depends on the true class: WeightedLoss."""

    weights: Annotated[
        _ClassCosts | None, about("The weight of each class, in label order; null if all are 1.")
    ]
    normalize: Normalize


class SavedDivergenceLoss(JsonObject, tag_field="kind", tag="divergence"):
    """A cost by distance: DivergenceLoss."""

    power: Annotated[PositiveNumber, about("The exponent of the distance.")]
    positions: Annotated[_Positions | None, about("The positions of the labels; null if they are 0, 1, ...")]
    under: Annotated[NumberFrom0, about("Factor for a set that lies below the truth.")]
    over: Annotated[NumberFrom0, about("Factor for a set that lies above the truth.")]
    normalize: Normalize


class SavedTableLoss(JsonObject, tag_field="kind", tag="table"):
    """Any cost table: CostTableLoss."""

    table: Annotated[
        list[_ClassCosts], about("A row for each class, a column for each nearest end.", min_length=2)
    ]
    normalize: Normalize


Loss = Annotated[SavedWeightedLoss | SavedDivergenceLoss | SavedTableLoss, about("The cost of a miss.")]


class Growth(JsonObject):
    """The growth rule of sets."""

    name: Annotated[str, one_of(GROWTH_RULES, "The growth rule.")]
    point: Annotated[str, one_of(POINT_RULES, "The label that sets grow from.")]


class SavedCounts(JsonObject):
    """Numbers of rows by uncertainty, one minus the largest probability, in 1,025 bins."""

    bins: Annotated[
        list[Annotated[int, Meta(ge=0, lt=N_BINS)]], about("The bins that have rows, increasing.")
    ]
    counts: Annotated[list[Annotated[int, Meta(ge=1, le=MOST_ROWS)]], about("The rows of each.")]

    def dense(self) -> BinCounts:
        """Return the number of rows in every bin."""
        require(len(self.bins) == len(self.counts), "must have a count for each bin")
        require(all(a < b for a, b in pairwise(self.bins)), "must have increasing bins")
        counts = no_counts()
        counts[self.bins] = self.counts
        return counts


def saved_counts(counts: BinCounts) -> dict[str, list[int]]:
    bins = counts.nonzero()[0]
    return {"bins": bins.tolist(), "counts": counts[bins].tolist()}


class DocumentOfLoss(Document):
    """A document that begins with labels and a loss."""

    classes: ClassNames
    loss: Loss

    def loss_on_classes(self, path: FilePath) -> tuple[IntervalLoss, Classes, CostTable]:
        with naming(path, "loss"):
            loss = loss_from_dict(to_builtins(self.loss))
        with naming(path, "classes"):
            classes = as_classes(self.classes)
            return loss, classes, CostTable.of(loss, len(classes))


def saved_growth(growth: GrowthRule) -> dict[str, str]:
    return {"name": growth.name, "point": growth.point}


def growth_of(saved: Growth) -> GrowthRule:
    return GROWTH_RULES[saved.name](saved.point)


def saved_names(names: list[Any], kind: str = "Class", plural: str = "classes") -> list[Name]:
    """Return the names unchanged; raise an error for names that JSON can't represent."""
    for name in names:
        if not isinstance(name, str | int | float):
            raise ValueError(f"{kind} {name!r} can't be saved; {plural} must be strings or numbers.")
        if isinstance(name, float) and not math.isfinite(name):
            raise ValueError(f"{kind} {name!r} can't be saved; numbers among the {plural} must be finite.")
    return names
