r"""What each action costs for each true label, and the action with the least worst case over a set.

The worst case of an action over a set is its largest cost there,

.. math:: W(a, [l, u]) = \max_{l \le y \le u} c(a, y).

Largest, smallest and equal costs depend on their order alone, so exact costs are replaced by their ranks, and
all choices are comparisons of whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import library_of, to_numpy
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.inputs.row_index import row_index
from ordinalrisk.losses.cost_table import LARGEST_COST
from ordinalrisk.losses.exact_numbers import items

_NO_NAMES = "; pass them as actions=[...], or pass costs as a mapping from each action to its costs"


class Choices(NamedTuple):
    """The chosen action for every interval ``[l, u]``, in tables with a row for each ``l``."""

    action: NDArray[np.int32]  # the first one with the least worst case
    worst_rank: NDArray[np.int32]
    are_tied: NDArray[np.bool_]  # whether other actions have the same worst case


@dataclass(frozen=True)
class ActionCosts:
    """A table of exact costs with a row for each action and a column for each label."""

    actions: tuple[str, ...]
    costs: tuple[tuple[Fraction, ...], ...]

    @classmethod
    def of(cls, costs: Any, classes: Classes, actions: Any = None) -> ActionCosts:
        """Read costs from a mapping, a data frame, or a table with ``actions``, the names of its rows."""
        is_frame = hasattr(type(costs), "columns")  # a lazy frame would have to be asked for them
        if actions is not None and (isinstance(costs, Mapping) or is_frame):
            raise ValueError("costs names the actions already; leave out actions.")
        if isinstance(costs, Mapping):
            names = list(costs)
            rows = [_row(row, classes, f"costs[{name!r}]") for name, row in costs.items()]
        elif is_frame:
            names, rows = _rows_of_frame(costs, classes)
        else:
            rows = [_row(row, classes, f"costs[{i}]") for i, row in enumerate(items(costs, "costs"))]
            if actions is None:
                raise ValueError(f"costs is a table without the names of the actions{_NO_NAMES}.")
            names = [actions] if isinstance(actions, str) else items(actions, "actions")
            if len(names) != len(rows):
                raise ValueError(f"costs has {len(rows)} rows, but actions has {len(names)} names.")
        return cls.of_rows(names, rows, classes)

    @classmethod
    def of_rows(cls, names: Sequence[Any], rows: Sequence[Sequence[Any]], classes: Classes) -> ActionCosts:
        """Check the names of actions and a row of costs for each, in the order of the labels."""
        if not names:
            raise ValueError("costs has no action; give at least one.")
        labels, table = classes.tolist(), []
        for name, row in zip(names, rows, strict=True):
            if not isinstance(name, str) or not name.strip():
                raise ValueError(f"The name of an action must be text; got {name!r}.")
            if len(row) != len(labels):
                raise ValueError(
                    f"Action {name!r} has {len(row)} costs, but there are {len(labels)} labels: {labels}."
                )
            where = [f"The cost of action {name!r} for label {label!r}" for label in labels]
            table.append(tuple(map(as_fraction, row, where)))
            if (largest := max(table[-1], key=abs)) and abs(largest) > LARGEST_COST:
                raise ValueError(f"{where[table[-1].index(largest)]} is too large for a float.")
        texts = [str(name) for name in names]  # plain text, even of a subclass
        if repeated := [name for i, name in enumerate(texts) if name in texts[:i]]:
            raise ValueError(f"Action {repeated[0]!r} is in costs more than once; name each action once.")
        return cls(tuple(texts), tuple(table))

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The costs by action and label, each correctly rounded."""
        return np.array([[float(cost) for cost in row] for row in self.costs])

    @cached_property
    def in_order(self) -> list[Fraction]:
        """The distinct costs, the smallest first."""
        return sorted({cost for row in self.costs for cost in row})

    @cached_property
    def ranks(self) -> NDArray[np.int32]:
        rank = {cost: at for at, cost in enumerate(self.in_order)}
        return np.array([[rank[cost] for cost in row] for row in self.costs], np.int32)

    @cached_property
    def choices(self) -> Choices:
        K = self.ranks.shape[1]
        found = Choices(np.zeros((K, K), np.int32), np.zeros((K, K), np.int32), np.zeros((K, K), bool))
        for lower in range(K):
            worst = np.maximum.accumulate(self.ranks[:, lower:], axis=1)
            least = worst.min(axis=0)
            found.action[lower, lower:] = worst.argmin(axis=0)
            found.worst_rank[lower, lower:] = least
            found.are_tied[lower, lower:] = (worst == least).sum(axis=0) > 1
        return found

    def choose(self, lower: NDArray[Any], upper: NDArray[Any], proba: Any = None) -> NDArray[np.int32]:
        """Return the position of each row's action.

        Among actions with the same worst case it is the one with the least mean cost under ``proba``, if
        given; else, and if these are equal too, the first.
        """
        chosen: NDArray[np.int32] = self.choices.action[lower, upper]
        tied = np.flatnonzero(self.choices.are_tied[lower, upper]) if proba is not None else ()
        if len(tied):
            ends, where = np.unique(np.stack([lower[tied], upper[tied]]), axis=1, return_inverse=True)
            are_least = np.array([self._are_least(first, last) for first, last in ends.T])
            means = self._mean_costs(proba[tied])
            chosen[tied] = np.where(are_least[where.ravel()], means, np.inf).argmin(axis=1)
        return chosen

    def worst_cases(self, lower: NDArray[Any], upper: NDArray[Any]) -> NDArray[np.float64]:
        """Return the largest cost of each row's action over the labels in its set."""
        numbers = np.array([float(cost) for cost in self.in_order])
        worst: NDArray[np.float64] = numbers[self.choices.worst_rank[lower, upper]]
        return worst

    def _are_least(self, lower: int, upper: int) -> NDArray[np.bool_]:
        worst = self.ranks[:, lower : upper + 1].max(axis=1)
        least: NDArray[np.bool_] = worst == worst.min()
        return least

    def _mean_costs(self, proba: NDArray[Any]) -> NDArray[np.float64]:
        """Return the mean cost of each row and action, in a unit that is a power of two.

        Terms are added label by label, so that a row has the same bits in every batch.
        """
        scaled = np.ldexp(self.values, -np.frexp(np.abs(self.values).max())[1])  # so that no sum overflows
        means = np.zeros((len(proba), len(self.actions)))
        for k, costs in enumerate(scaled.T):
            means += proba[:, k, None].astype(np.float64) * costs
        return means


def _row(row: Any, classes: Classes, name: str) -> list[Any]:
    """List the costs of an action; those of a pandas series with an index are found by their labels."""
    index = row_index(row)
    if index is None or type(index).__name__ == "RangeIndex":
        return items(row, name)
    texts, labels = [str(label) for label in index], [str(label) for label in classes.tolist()]
    if sorted(texts) != sorted(labels):
        raise ValueError(
            f"{name} has the index {', '.join(texts)}, but the labels are {', '.join(labels)}; if its costs "
            f"are in the order of the labels, pass {name}.to_numpy(), which has no index."
        )
    return [row.iloc[texts.index(label)] for label in labels]


def _rows_of_frame(frame: Any, classes: Classes) -> tuple[list[Any], list[list[Any]]]:
    """Return the actions of a data frame and their costs, with the columns in the order of the labels."""
    if library_of(frame) == "dask" or hasattr(frame, "collect"):
        to_numpy(frame, "costs")  # raises an error that says what to pass instead
    names = list(frame.column_names if library_of(frame) == "pyarrow" else frame.columns)
    index: Any = frame.index if library_of(frame) == "pandas" else None
    if index is None or type(index).__name__ == "RangeIndex":
        if not names:
            raise ValueError("costs has no columns; it needs one for the actions and one for each label.")
        actions, labels = list(to_numpy(frame[names[0]], f"Column {names[0]!r} of costs")), names[1:]
    else:
        actions, labels = index.tolist(), names
    by_label = columns_by_label(labels, [str(label) for label in classes.tolist()], "costs")
    columns = [list(to_numpy(frame[labels[at]], f"Column {labels[at]!r} of costs")) for at in by_label]
    return actions, [list(row) for row in zip(*columns, strict=True)]


def columns_by_label(columns: Sequence[Any], labels: Sequence[str], name: str) -> list[int]:
    """Return the position of each label's column; raise an error if columns and labels are not the same."""
    texts = [str(column) for column in columns]
    missing = [f"no column for label {label!r}" for label in labels if label not in texts]
    unknown = [f"a column {text!r}, which is not a label" for text in texts if text not in labels]
    repeated = [f"column {text!r} more than once" for i, text in enumerate(texts) if text in texts[:i]]
    if wrong := [*missing, *unknown, *repeated]:
        raise ValueError(
            f"{name} has {wrong[0]}: after the actions, the columns are {', '.join(texts)}; there must be "
            f"one for each of the labels {', '.join(labels)}."
        )
    return [texts.index(label) for label in labels]
