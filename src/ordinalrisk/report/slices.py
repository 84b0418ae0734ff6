"""Where sets miss most often: the rows of each value of the columns that a report shows.

A column with many values, such as an identifier, has no slices. With many slices some look bad by chance, so
the interval of each is corrected for their number (Bonferroni), so that all of them hold together.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.evaluation.estimates import CONFIDENCE, share
from ordinalrisk.evaluation.striking import shown
from ordinalrisk.inputs.batch import Batch, Summary
from ordinalrisk.prediction.predictor import Predictor

MOST_VALUES = 50  # of a column
MOST_SHOWN = 10
FEWEST_ROWS = 5  # of a value that is shown without single rows

MissesByValue = dict[str, tuple[int, int]]  # rows, and those that are missed, by value


class Slices(Summary):
    """How many rows of each value of each column are missed at one stop.

    A summary that has rows is pickled without its predictor, so that no calibration travels with it.
    """

    def __init__(self, predictor: Predictor, unseen_groups: str, random_state: int | None) -> None:
        self._predictor: Predictor | None = predictor
        self._options = unseen_groups, random_state
        self._columns: dict[str, MissesByValue | None] = {}  # None for those with too many values
        self._whole = 0, 0
        self._has_rows = False

    def add(self, batch: Batch) -> None:
        self._has_rows = True
        names = [name for name in batch.columns if self._columns.get(name, {}) is not None]
        if not names:
            return
        if self._predictor is None:
            raise ValueError("A summary that was pickled takes in no more rows; merge it with a new one.")
        unseen_groups, random_state = self._options
        sets, _ = self._predictor.sets(batch, unseen_groups=unseen_groups, random_state=random_state)
        missed = (batch.labels < sets.lower_index) | (sets.upper_index < batch.labels)
        self._whole = self._whole[0] + len(missed), self._whole[1] + int(missed.sum())
        for name in names:
            self._columns[name] = _added(
                self._columns.get(name, {}), _misses_by_value(batch.columns[name], missed)
            )

    def merge(self, other: Slices) -> Slices:
        both = copy(self)
        both._predictor = self._predictor or other._predictor
        both._has_rows = self._has_rows or other._has_rows
        both._whole = self._whole[0] + other._whole[0], self._whole[1] + other._whole[1]
        names = dict.fromkeys([*self._columns, *other._columns])
        both._columns = {
            name: _added(self._columns.get(name, {}), other._columns.get(name, {})) for name in names
        }
        return both

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the predictor, once there are rows."""
        return self.__dict__ | ({"_predictor": None} if self._has_rows else {})

    def finish(self, fewest_rows: int = 1) -> dict[str, Any] | None:
        """Return the slices that are missed most often by the lower end of their interval; None without.

        Values with fewer than ``fewest_rows`` rows count, but are not shown.

        A column with a single value is left out, since its rows are all rows, and so is one with a value for
        nearly each row.
        """
        most = min(MOST_VALUES, self._whole[0] / 2)
        counts = {
            name: values for name, values in self._columns.items() if values and 1 < len(values) <= most
        }
        n_slices = sum(map(len, counts.values()))
        if not n_slices:
            return None
        n_rows, n_missed = self._whole
        found = []
        for place, (name, values) in enumerate(counts.items()):
            for value, (rows, missed) in values.items():
                estimate = share(missed, rows, 1 - (1 - CONFIDENCE) / n_slices)
                worst_first = -estimate.low, -estimate.value, -rows, place, value
                if rows >= fewest_rows:
                    found.append((worst_first, name, value, rows, [*map(float, estimate)]))
        if not found:
            return None
        return {
            "looked_at": n_slices,
            "fewest_rows": fewest_rows,
            "columns": [*counts],
            "left_out": [
                name for name, values in self._columns.items() if values is None or len(values) > most
            ],
            "missed": n_missed / n_rows,
            "worst": [
                {
                    "column": name,
                    "value": value,
                    "rows": rows,
                    "missed": estimate,
                    "stands_out": estimate[1] > n_missed / n_rows,
                }
                for _, name, value, rows, estimate in sorted(found)[:MOST_SHOWN]
            ],
        }


def _added(mine: MissesByValue | None, others: MissesByValue | None) -> MissesByValue | None:
    """Return the sums of two counts; None if there are too many values."""
    if mine is None or others is None or len(mine.keys() | others.keys()) > MOST_VALUES:
        return None
    both = dict(mine)
    for value, (rows, missed) in others.items():
        before = both.get(value, (0, 0))
        both[value] = before[0] + rows, before[1] + missed
    return both


def _misses_by_value(column: Any, missed: NDArray[np.bool_]) -> MissesByValue | None:
    """Return the rows and the missed ones by the text of their value; None if there are too many values."""
    items, places = _encoded(column)
    numbers: dict[str, int] = {}
    of_items: list[int] = []
    for value in items:
        of_items.append(numbers.setdefault(shown(value), len(numbers)))
        if len(numbers) > MOST_VALUES:
            return None
    where = np.array(of_items, np.int64)
    where = where if places is None else where[places]
    rows, of_missed = (np.bincount(part, minlength=len(numbers)).tolist() for part in (where, where[missed]))
    return dict(zip(numbers, zip(rows, of_missed, strict=True), strict=True))


def _encoded(column: Any) -> tuple[Any, NDArray[np.int64] | None]:
    """Return the values of all rows; of Arrow, the distinct ones and the place of each row's."""
    if not hasattr(column, "dictionary_encode"):
        return column.tolist() if hasattr(column, "iloc") else column, None
    encoded = column.dictionary_encode()
    if hasattr(encoded, "combine_chunks"):
        encoded = encoded.combine_chunks()
    values = encoded.dictionary
    filled = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    used, places = np.unique(filled, return_inverse=True)
    return (values[int(place)].as_py() if place < len(values) else None for place in used), places
