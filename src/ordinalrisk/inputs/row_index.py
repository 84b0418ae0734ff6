"""The index of rows: inputs that both have one must agree on which row is which."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

from ordinalrisk.inputs.arrays import is_missing


def require_same_rows(stacklevel: int = 3, /, **inputs: Any) -> None:
    """Compare the row indexes of inputs that are matched by position.

    The first input with an index is compared with each other one of the same length. Inputs without an index,
    such as arrays and lists, are taken as they stand.

    Parameters
    ----------
    stacklevel : int
        That of the warning; by default the caller of the function that checks its inputs.
    **inputs
        Each input by its name; None where it is not given.

    Raises
    ------
    ValueError
        If one index has the labels of the other in another order.

    Warns
    -----
    UserWarning
        If one index has other labels: the rows may correspond all the same, as after ``reset_index``.

    Examples
    --------
    >>> import pandas as pd
    >>> proba = pd.DataFrame({"no": [0.9, 0.2], "yes": [0.1, 0.8]}, index=["Ann", "Bob"])
    >>> y = pd.Series(["yes", "no"], index=["Bob", "Ann"])
    >>> require_same_rows(proba=proba, y=y.loc[proba.index])
    >>> require_same_rows(proba=proba, y=y.to_numpy())
    >>> require_same_rows(proba=proba, y=y)
    Traceback (most recent call last):
    ValueError: y has the index labels of proba in another order: row 0 is 'Bob' in y and 'Ann' in proba. ...
    """
    indexes = {name: index for name, values in inputs.items() if (index := row_index(values)) is not None}
    if len(indexes) < 2:
        return
    (first, expected), *others = indexes.items()
    for name, index in others:
        if len(index) != len(expected) or index.equals(expected):
            continue
        here, there = ([None if is_missing(x) else x for x in each.tolist()] for each in (index, expected))
        if here == there:  # labels of two types can be equal
            continue
        row = [mine == other for mine, other in zip(here, there, strict=True)].index(False)
        where = f"row {row} is {here[row]!r} in {name} and {there[row]!r} in {first}"
        as_it_stands = f"if the rows correspond as they stand, pass {name}.to_numpy(), which has no index"
        if dict(Counter(here)) == dict(Counter(there)):
            align = f"Align the rows with {name}.loc[{first}.index]; " if expected.is_unique else ""
            raise ValueError(
                f"{name} has the index labels of {first} in another order: {where}. "
                f"{align}{as_it_stands if align else as_it_stands.capitalize()}."
            )
        warnings.warn(
            f"{name} has another index than {first}: {where}. Rows are matched by position, not by index; "
            f"{as_it_stands}.",
            stacklevel=stacklevel,
        )


def row_index(values: Any) -> Any:
    """The index of a pandas frame or series, or of the sets of one; None for anything else."""
    index = getattr(values, "index", None)
    return index if type(index).__module__.partition(".")[0] == "pandas" else None
