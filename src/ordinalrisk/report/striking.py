"""The rows that a report shows one by one: the widest sets and the worst misses at each threshold.

They are found while rows stream by. Only rows that are among the most striking so far are kept, and which
these are does not depend on how the rows were cut into batches, or into parts that were merged.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.growth.rules import GrowthRule
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss
from ordinalrisk.prediction.interval_set import IntervalSet

MOST_COLUMNS = 6
MOST_CHARACTERS = 80
MOST_ROWS = 10


class Case(NamedTuple):
    """One row: what the caller says of it, its true label, and at how many stops each label is in its set."""

    values: list[str]
    truth: int
    until: list[int]


class CaseApart(NamedTuple):
    """One row where thresholds differ from row to row: with its set, first and last label, at each stop."""

    values: list[str]
    truth: int
    sets: list[list[int]]


CaseT = TypeVar("CaseT", Case, CaseApart)


class TopRows:
    """The rows with the largest values of all that were offered; of equal ones the first.

    Examples
    --------
    >>> top = TopRows(3)
    >>> top.offer(np.array([5, 7, 5]), rows=np.array([0, 1, 2]))
    >>> top.offer(np.array([5, 9, 1]), rows=np.array([3, 4, 5]))
    >>> top.rows
    [4, 1, 0]
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._most = most
        self._best: list[tuple[int, int]] = []

    def offer(self, values: NDArray[np.integer], rows: NDArray[np.int64]) -> None:
        """Take in the positive values of rows, whose numbers ascend."""
        to_beat = -self._best[-1][0] if len(self._best) == self._most else 0
        above = np.flatnonzero(values > to_beat)
        chosen = above[np.argsort(-values[above], kind="stable")[: self._most]]
        new = zip((-values[chosen]).tolist(), rows[chosen].tolist(), strict=True)
        self._best = sorted([*self._best, *new])[: self._most]

    def merge(self, other: TopRows) -> None:
        """Take in what was offered to another."""
        self._best = sorted([*self._best, *other._best])[: self._most]

    @property
    def rows(self) -> list[int]:
        """Their numbers, the most striking first."""
        return [row for _, row in self._best]


class StrikingRows:
    """The widest sets and the worst misses at each of some ascending thresholds, one for each stop."""

    def __init__(self, growth: GrowthRule, loss: IntervalLoss, n_classes: int, thresholds: Sequence[float]):
        self._growth, self._loss = growth, loss
        self._thresholds = np.array(thresholds)
        self._top = TopRowsAt(thresholds, loss, n_classes)
        self._cases: dict[int, Case] = {}

    def offer(
        self, threshold: float, labels: NDArray[np.int64], sets: IntervalSet, rows: NDArray[np.int64]
    ) -> None:
        """Take in the sets that rows of these numbers have at one of the thresholds."""
        self._top.offer(threshold, labels, sets, rows)

    def keep(
        self, proba: NDArray[Any], labels: NDArray[np.int64], columns: Mapping[str, Any], first_row: int
    ) -> None:
        """Look at those of these rows that are striking so far, and forget those that no longer are."""
        striking = self._top.rows
        new = np.array(sorted(striking - self._cases.keys()), np.int64) - first_row
        self._cases = still_striking(self._cases, striking)
        if len(new):
            levels = self._growth.levels(proba[new], self._loss)
            until = np.searchsorted(self._thresholds, levels, side="right").tolist()
            for row, label_until in zip(new.tolist(), until, strict=True):
                values = [shown(value_at(column, row)) for column in columns.values()]
                self._cases[first_row + row] = Case(values, int(labels[row]), label_until)

    def merge(self, other: StrikingRows) -> None:
        """Take in the striking ones of other rows, and forget those that no longer are."""
        self._top.merge(other._top)
        self._cases = still_striking({**self._cases, **other._cases}, self._top.rows)

    @property
    def cases(self) -> dict[int, Case]:
        """The striking rows by number, ascending."""
        return dict(sorted(self._cases.items()))

    def widest(self, threshold: float) -> list[int]:
        """The rows with the most labels in their sets."""
        return self._top.widest[threshold].rows

    def missed(self, threshold: float) -> list[int]:
        """The rows whose sets miss the truth, the largest loss first."""
        return self._top.missed[threshold].rows


class TopRowsAt:
    """The widest sets and the worst misses at each of some stops, whatever these are called."""

    def __init__(self, stops: Iterable[Hashable], loss: IntervalLoss, n_classes: int) -> None:
        self._severity = _severities(CostTable.of(loss, n_classes))
        self.widest = {stop: TopRows() for stop in stops}
        self.missed = {stop: TopRows() for stop in self.widest}

    def offer(
        self, stop: Hashable, labels: NDArray[np.int64], sets: IntervalSet, rows: NDArray[np.int64]
    ) -> None:
        """Take in the sets that rows of these numbers have at a stop."""
        self.widest[stop].offer(sets.size, rows)
        lower, upper = sets.lower_index, sets.upper_index
        away = np.flatnonzero((labels < lower) | (upper < labels))
        truth = labels[away]
        nearest = np.clip(truth, lower[away], upper[away])
        self.missed[stop].offer(self._severity[truth, nearest], rows[away])

    def merge(self, other: TopRowsAt) -> None:
        """Take in what was offered to another."""
        for stop, widest in self.widest.items():
            widest.merge(other.widest[stop])
            self.missed[stop].merge(other.missed[stop])

    @property
    def rows(self) -> set[int]:
        """All of them."""
        return {row for top in (*self.widest.values(), *self.missed.values()) for row in top.rows}


def still_striking(cases: Mapping[int, CaseT], striking: set[int]) -> dict[int, CaseT]:
    """Those of the cases whose rows are striking."""
    return {row: case for row, case in cases.items() if row in striking}


def shown_columns(cases: Any, n_rows: int) -> dict[str, Any]:
    """The first few columns of what the caller says of the rows, each with a value for every row."""
    if cases is None:
        return {}
    if not hasattr(cases, "items"):
        raise ValueError(f"cases must map names of columns to their values; got a {type(cases).__name__}.")
    columns = {str(name): values for name, values in cases.items()}
    for name, values in columns.items():
        if isinstance(values, str) or not hasattr(values, "__len__") or len(values) != n_rows:
            raise ValueError(f"cases[{name!r}] must have one value for each of the {n_rows} rows of proba.")
    return dict([*columns.items()][:MOST_COLUMNS])


def value_at(column: Any, row: int) -> Any:
    """The value of a list, array, or column of a frame, by position."""
    value = column.iloc[row] if hasattr(column, "iloc") else column[row]
    return value.as_py() if hasattr(value, "as_py") else value


def shown(value: Any) -> str:
    """A value as text of bounded length; nothing for a missing one.

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
    """For each truth and nearest label a positive whole number, larger for a larger cost."""
    rank = {cost: 1 + r for r, cost in enumerate(sorted({cost for row in costs.exact for cost in row}))}
    return np.array([[rank[cost] for cost in row] for row in costs.exact])
