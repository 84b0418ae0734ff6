"""A file of actions: their names in the first column, then a column of costs for each label."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import pyarrow as pa

from ordinalrisk.files.formats import FileError
from ordinalrisk.files.label_names import position_of_label
from ordinalrisk.files.opening import opened
from ordinalrisk.files.patterns import identity_of
from ordinalrisk.files.places import PIPE, exists
from ordinalrisk.files.readers import Source
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.prediction.action_costs import ActionCosts, columns_by_label


def action_costs(actions: Any, classes: Classes, out: str) -> ActionCosts:
    """Read the costs of actions from a file other than ``out``, or what ``IntervalSet.decide`` takes."""
    if not isinstance(actions, str | os.PathLike):
        return ActionCosts.of(actions, classes)
    place = os.fspath(actions)
    if place != PIPE and not exists(place):
        raise FileNotFoundError(f"there is no file {place}.")
    if place != PIPE and identity_of(place) == identity_of(out):
        raise FileError(f"{place}: is read, and would be lost; choose another name for `out`.")
    with opened(place) as source:
        first, *others = source.schema.names
        position = position_of_label(classes.tolist())
        named = [name if (k := position(name)) is None else str(classes[k]) for name in others]
        try:
            by_label = columns_by_label(named, [str(label) for label in classes.tolist()], f"{source.name}:")
            columns = [first, *(others[at] for at in by_label)]
            batches = list(source.batches(columns))
            names = [name for batch in batches for name in batch.column(0).cast(pa.string()).to_pylist()]
            costs = [_costs(source, name, batches) for name in columns[1:]]
            return ActionCosts.of_rows(names, list(zip(*costs, strict=True)), classes)
        except FileError:
            raise
        except ValueError as error:
            text = str(error)
            raise FileError(text if text.startswith(source.name) else f"{source.name}: {text}") from None


def _costs(source: Source, name: str, batches: list[pa.RecordBatch]) -> list[Fraction]:
    """Return the numbers in a column as they are written."""
    cells: list[Any] = []
    for batch in batches:
        column = batch.column(name)
        if pa.types.is_string(column.type):
            column, _ = source.spelling([name]).plain(column)  # a wrong number is named below
        cells += list(column.to_numpy(zero_copy_only=False))  # a list of Arrow has wider floats
    found = []
    for row, cell in enumerate(cells, 1):
        try:
            found.append(as_fraction(cell))
        except ValueError:
            is_blank = cell is None or cell != cell
            problem = (
                "the cost is missing; fill it in" if is_blank else f"{cell!r} is not a number; correct it"
            )
            raise FileError(f"{source.name}: row {row}, column {name!r}: {problem}.") from None
    return found
