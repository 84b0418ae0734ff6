"""The rows that a report shows one by one: the widest sets and the worst misses at each stop, and the first.

Misses are ordered by the number of labels between the truth and the set, then by cost.

Only the most striking rows so far are kept, and the first ones, so that people can look them up. The result
does not depend on how the rows were cut into batches or on the order of merges.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.prediction.ends import Ends

MOST_CHARACTERS = 80
MOST_SHOWN = 10
MOST_LOOKED_UP = 20_000  # rows


class StrikingRow(NamedTuple):
    """One row: the values of its columns as text, its true label, and the ends of its set at each stop."""

    values: list[str]
    truth: int
    ends: NDArray[np.int32]


class TopRows:
    """The rows with the largest values so far; of ties, the first rows.

    Examples
    --------
    >>> top = TopRows(3)
    >>> top.add(np.array([5, 7, 5]), rows=np.array([0, 1, 2]))
    >>> top.add(np.array([5, 9, 1]), rows=np.array([3, 4, 5]))
    >>> top.rows
    [4, 1, 0]
    """

    def __init__(self, most: int = MOST_SHOWN) -> None:
        self._most = most
        self._best: list[tuple[int, int]] = []

    def add(self, values: NDArray[np.integer], rows: NDArray[np.int64]) -> None:
        """Add the positive whole values of rows, in ascending order of their row numbers."""
        to_beat = 0
        if len(self._best) == self._most and len(rows):
            value, last_row = self._best[-1]
            to_beat = -value - int(rows[0] < last_row)
        above = np.flatnonzero(values > to_beat)
        chosen = above[np.argsort(-values[above], kind="stable")[: self._most]]
        new = zip((-values[chosen]).tolist(), rows[chosen].tolist(), strict=True)
        self._best = sorted([*self._best, *new])[: self._most]

    def merge(self, other: TopRows) -> TopRows:
        both = TopRows(self._most)
        both._best = sorted([*self._best, *other._best])[: self._most]
        return both

    @property
    def rows(self) -> list[int]:
        """The numbers of the rows, the most striking row first."""
        return [row for _, row in self._best]


class StrikingRows:
    """The widest sets and the worst misses at each stop, and the first rows."""

    def __init__(self, n_stops: int, costs: CostTable) -> None:
        self._severity = _severities(costs)
        self._first: set[int] = set()
        self.widest = [TopRows() for _ in range(n_stops)]
        self.missed = [TopRows() for _ in range(n_stops)]
        self._cases: dict[int, StrikingRow] = {}

    def add(self, stop: int, labels: NDArray[np.int64], ends: Ends, rows: NDArray[np.int64]) -> None:
        """Add the sets of the rows with these numbers at a stop."""
        if stop == 0:
            self._first.update(rows[rows < MOST_LOOKED_UP].tolist())
        lower, upper = ends
        self.widest[stop].add(upper - lower + 1, rows)
        away = np.flatnonzero((labels < lower) | (upper < labels))
        truth = labels[away]
        nearest = np.clip(truth, lower[away], upper[away])
        self.missed[stop].add(self._severity[truth, nearest], rows[away])

    @property
    def new_rows(self) -> NDArray[np.int64]:
        """The numbers of the rows that are to be kept."""
        return np.array(sorted((self.striking | self._first) - self._cases.keys()), np.int64)

    def keep(self, cases: Mapping[int, StrikingRow]) -> None:
        """Keep more rows by number, and drop those that are no longer striking."""
        kept = self.striking | self._first
        self._cases = {row: case for row, case in {**self._cases, **cases}.items() if row in kept}

    @property
    def cases(self) -> dict[int, StrikingRow]:
        """The rows that are kept by number, ascending."""
        return dict(sorted(self._cases.items()))

    @property
    def striking(self) -> set[int]:
        """The numbers of the rows that are shown at some stop."""
        return {row for top in (*self.widest, *self.missed) for row in top.rows}

    def merge(self, other: StrikingRows) -> StrikingRows:
        both = copy(self)
        both.widest = [mine.merge(top) for mine, top in zip(self.widest, other.widest, strict=True)]
        both.missed = [mine.merge(top) for mine, top in zip(self.missed, other.missed, strict=True)]
        both._first = self._first | other._first
        both.keep(other._cases)
        return both


def value_at(column: Any, row: int) -> Any:
    """Return the value of a list, an array or a column of a frame, by position."""
    value = column.iloc[row] if hasattr(column, "iloc") else column[row]
    return value.as_py() if hasattr(value, "as_py") else value


def shown(value: Any) -> str:
    """Write a value as text of bounded length; an empty text if it is missing.

    Examples
    --------
    >>> shown(2.5), shown(None), shown(float("nan")), len(shown("long " * 100)), shown("long " * 100)[-4:]
    ('2.5', '', '', 80, 'ong…')
    """
    if value is None or (isinstance(value, float) and value != value):
        return ""
    text = str(value)
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1].rstrip() + "…"


def _severities(costs: CostTable) -> NDArray[np.int64]:
    """Return a positive whole number by true and nearest label: by their distance, then by the cost."""
    rank = {cost: 1 + r for r, cost in enumerate(sorted({cost for row in costs.exact for cost in row}))}
    by_cost = np.array([[rank[cost] for cost in row] for row in costs.exact])
    label = np.arange(costs.n_classes)
    severities: NDArray[np.int64] = np.abs(label[:, None] - label) * (len(rank) + 1) + by_cost
    return severities
