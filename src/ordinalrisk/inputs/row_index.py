"""Compare the pandas indexes of inputs, which must have the same labels in the same order."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ordinalrisk.inputs.arrays import is_missing, library_of


def require_same_rows(stacklevel: int = 3, /, **inputs: Any) -> None:
    """Compare the first pandas index with the other indexes of the same length.

    The same index labels in another order are an error. Different index labels, as after ``reset_index``,
    only give a warning, since the rows may still correspond.
    """
    indexes = {name: index for name, values in inputs.items() if (index := row_index(values)) is not None}
    if len(indexes) < 2:
        return
    (first, expected), *others = indexes.items()
    for name, index in others:
        if len(index) != len(expected) or index.equals(expected):
            continue
        here, there = ([None if is_missing(x) else x for x in each.tolist()] for each in (index, expected))
        if here == there:  # equal labels can have different types
            continue
        row = [mine == other for mine, other in zip(here, there, strict=True)].index(False)
        where = f"row {row} is {here[row]!r} in {name} and {there[row]!r} in {first}"
        by_position = f"if the rows correspond by position, pass {name}.to_numpy(), which has no index"
        if dict(Counter(here)) == dict(Counter(there)):
            align = f"Align the rows with {name}.loc[{first}.index]; " if expected.is_unique else ""
            raise ValueError(
                f"{name} has the index labels of {first} in another order: {where}. "
                f"{align}{by_position if align else by_position.capitalize()}."
            )
        warnings.warn(
            f"The index of {name} differs from that of {first}: {where}. Rows are matched by position, not "
            f"by index; {by_position}.",
            stacklevel=stacklevel,
        )


def row_index(values: Any) -> Any:
    """Return the index of a pandas frame or series, or of sets made from one; None for anything else."""
    index = getattr(values, "index", None)
    return index if library_of(index) == "pandas" else None


def index_columns(index: Any) -> dict[str, Any]:
    """Return the levels of a pandas index as columns by name; no columns if it only counts rows from 0."""
    if index is None or (type(index).__name__ == "RangeIndex" and index.name is None and _counts(index)):
        return {}
    if index.nlevels == 1:
        return {"index" if index.name is None else str(index.name): _level_values(index)}
    return {
        f"level_{i}" if name is None else str(name): _level_values(index.get_level_values(i))
        for i, name in enumerate(index.names)
    }


def with_index(columns: Mapping[str, Any], index: Any, names: Any = None) -> dict[str, Any]:
    """Return columns by name, after those of a pandas index or a column ``index`` with ``names``."""
    first = index_columns(index) if names is None else {"index": names}
    if taken := [name for name in first if name in columns]:
        raise ValueError(f"The index and a column are both called {taken[0]!r}; rename the index.")
    return {**first, **columns}


def _counts(index: Any) -> bool:
    return bool(index.start == 0 and index.step == 1)


def _level_values(index: Any) -> Any:
    return index.to_numpy() if index.dtype.kind in "biufMm" else index.tolist()
