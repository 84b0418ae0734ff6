"""Results as tables: one set of columns, shown in notebooks and turned into data frames."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ordinalrisk.display import html_pieces as html
from ordinalrisk.display.text_table import TextTable

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_ROWS_SHOWN = 60
_DECIMALS = 4
_NULLABLE: dict[str, Any] = {"i": "Int64", "u": "UInt64", "f": "Float64", "b": "boolean"}
"""The pandas types for labels with missing values, by kind of number."""


class LabelColumn(NamedTuple):
    """A column of labels: their positions in the classes, which are in order unless stated otherwise.

    A position of -1 is a missing label.
    """

    positions: Any
    classes: Any
    are_in_order: bool = True

    @property
    def are_text(self) -> bool:
        return all(isinstance(label, str) for label in self.names)

    @property
    def names(self) -> list[Any]:
        names: list[Any] = self.classes.tolist()
        return names

    @property
    def are_complete(self) -> bool:
        return not (np.asarray(self.positions) < 0).any()

    def listed(self) -> list[Any]:
        """Return the labels, None where one is missing."""
        names = [*self.names, None]  # None is at -1
        return [names[position] for position in np.asarray(self.positions).tolist()]


ColumnsByName = Mapping[str, Any]
"""Columns by name: :class:`LabelColumn`, arrays or lists, all of one length."""


class Table(ABC):
    """A result that prints as a table, shows as one in notebooks, and converts to data frames.

    Labels that are text are ordered categories, in the order of the classes; a number stays a number.
    """

    @abstractmethod
    def _columns(self) -> ColumnsByName:
        """Return the columns by name."""

    def _heading(self) -> str:
        return ""

    def _words(self) -> str:
        """Return the text below the table."""
        return ""

    def to_pandas(self) -> pd.DataFrame:
        """Make a pandas frame of the table.

        Returns
        -------
        pandas.DataFrame
            Labels that are text are an ordered categorical.

        Examples
        --------
        >>> from ordinalrisk import weights_for_coverage
        >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20, [0, 1, 2] * 20
        >>> weights_for_coverage(proba, y, 0.9).to_pandas()[["class", "target", "weight"]]
           class  target  weight
        0      0     0.9     1.0
        1      1     0.9     1.0
        2      2     0.9     1.0
        """
        return pandas_frame(self._columns())

    def to_polars(self) -> pl.DataFrame:
        """Make a polars frame of the table.

        Returns
        -------
        polars.DataFrame
            Labels that are text are an Enum.

        Examples
        --------
        >>> from ordinalrisk import weights_for_coverage
        >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20, [0, 1, 2] * 20
        >>> weights_for_coverage(proba, y, 0.9).to_polars().columns
        ['class', 'target', 'coverage', 'weight']
        """
        return polars_frame(self._columns())

    def __str__(self) -> str:
        return "\n".join(filter(None, (text_table(self._columns()), self._words())))

    def _repr_html_(self) -> str:
        parts = html.heading(type(self).__name__, html.text(self._heading()) if self._heading() else "")
        below = html.words(self._words()) if self._words() else ""
        return f"<div>{parts}{html_table(self._columns())}{below}</div>"


def pandas_frame(columns: ColumnsByName, index: Any = None) -> pd.DataFrame:
    """Make a pandas frame of columns.

    >>> pandas_frame({"label": LabelColumn([0, 2], np.array(["low", "mid", "high"]))}).label.dtype.ordered
    True
    """
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise ModuleNotFoundError("to_pandas needs pandas: pip install pandas.") from None

    def values(column: Any) -> Any:
        if not isinstance(column, LabelColumn):
            return column
        if not column.are_text:
            if column.are_complete:
                return column.classes[column.positions]
            return pd.array(column.listed(), dtype=_NULLABLE.get(column.classes.dtype.kind))
        categories = pd.Index(column.names)
        return pd.Categorical.from_codes(column.positions, categories, ordered=column.are_in_order)

    return pd.DataFrame({name: values(column) for name, column in columns.items()}, index=index)


def polars_frame(columns: ColumnsByName) -> pl.DataFrame:
    """Make a polars frame of columns.

    >>> polars_frame({"label": LabelColumn([0, 2], np.array(["low", "mid", "high"]))})["label"].dtype
    Enum(categories=['low', 'mid', 'high'])
    """
    try:
        import polars as pl
    except ModuleNotFoundError:
        raise ModuleNotFoundError("to_polars needs polars: pip install polars.") from None

    def series(name: str, column: Any) -> Any:
        if not isinstance(column, LabelColumn):
            return pl.Series(name, column)
        if column.are_text:
            return pl.Series(name, column.listed(), pl.Enum(column.names))
        return pl.Series(name, column.classes[column.positions] if column.are_complete else column.listed())

    return pl.DataFrame([series(name, column) for name, column in columns.items()])


def html_table(columns: ColumnsByName) -> str:
    """Return the first rows of columns as a table of a notebook."""
    shown = {name: _first_values(column) for name, column in columns.items()}
    numbers = [at for at, values in enumerate(shown.values()) if any(map(_is_number, values))]
    cells = [
        [html.cell(text, html.NUMBER if at in numbers else html.CELL) for text in _as_text(values, _escaped)]
        for at, values in enumerate(shown.values())
    ]
    rows = [html.row(*row) for row in zip(*cells, strict=True)]
    header = [html.text(name) for name in columns]
    return html.table(header, rows, numbers) + html.more(_length(columns) - len(rows))


def text_table(columns: ColumnsByName) -> str:
    """Return the first rows of columns as padded text.

    >>> label = LabelColumn(np.arange(2), np.array(["low", "high"]))
    >>> print(text_table({"label": label, "risk": [0.5, 0.25]}))
    label  risk
    low    0.50
    high   0.25
    """
    cells = [_as_text(_first_values(column), str) for column in columns.values()]
    table = TextTable("", tuple(columns), [*zip(*cells, strict=True)])
    n_more = _length(columns) - len(table.rows)
    return table.text() + (f"\n... {n_more:,} more" if n_more > 0 else "")


def _length(columns: ColumnsByName) -> int:
    column = next(iter(columns.values()))
    return len(column.positions if isinstance(column, LabelColumn) else column)


def _first_values(column: Any) -> list[Any]:
    if isinstance(column, LabelColumn):
        shown = LabelColumn(column.positions[:_ROWS_SHOWN], column.classes).listed()
        return [None if label is None else str(label) for label in shown]
    first = column[:_ROWS_SHOWN]
    return first.tolist() if isinstance(first, np.ndarray) else list(first)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_text(values: list[Any], written: Callable[[str], str]) -> list[str]:
    """Write the values of a column: numbers with the same decimals, at most four, names as ``written``."""
    fractions = [value for value in values if isinstance(value, float) and math.isfinite(value)]
    rounded = [f"{value:.{_DECIMALS}f}".rstrip("0").partition(".")[2] for value in fractions]
    decimals = max(map(len, rounded), default=0)
    are_tiny = any(0 < abs(value) < 10**-_DECIMALS for value in fractions)
    number = ".3g" if are_tiny else f",.{decimals}f"
    return [_text(value, number, written) for value in values]


def _text(value: Any, number: str, written: Callable[[str], str]) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:{number}}"
    return written(str(value))


def _escaped(name: str) -> str:
    return html.text(name, html.LONGEST_NAME)
