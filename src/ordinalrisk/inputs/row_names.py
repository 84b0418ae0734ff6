"""Names of groups and clusters: a value of any kind for each row, numbered in the order they are met."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import is_missing, to_numpy
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.matrix import RowError


class RowNames:
    """Names that are numbered as they are met.

    Examples
    --------
    >>> names = RowNames("groups")
    >>> names.numbered(["b", "a", "b"], 3), names.known
    (array([0, 1, 0]), ('b', 'a'))
    """

    def __init__(self, name: str, known: Iterable[Any] = ()) -> None:
        self._name = name
        self._position: dict[Any, int] = {value: i for i, value in enumerate(known)}

    @property
    def known(self) -> tuple[Any, ...]:
        """All names so far, in the order of their numbers."""
        return tuple(self._position)

    def numbered(self, values: Any, n_rows: int) -> NDArray[np.int64]:
        """The number of each row's name; names that are new get the next numbers."""
        names = self._listed(values, n_rows)
        for value in names:
            self._position.setdefault(value, len(self._position))
        return np.fromiter((self._position[value] for value in names), np.int64, n_rows)

    def merge(self, other: RowNames) -> NDArray[np.int64]:
        """Take in the names that another has met; the number here of each of them, in its order.

        Examples
        --------
        >>> names, others = RowNames("clusters", ["b", "a"]), RowNames("clusters", ["c", "b"])
        >>> names.merge(others), names.known
        (array([2, 0]), ('b', 'a', 'c'))
        """
        position = self._position
        return np.array([position.setdefault(value, len(position)) for value in other._position], np.int64)

    def found(self, values: Any, n_rows: int) -> tuple[NDArray[np.int64], list[Any]]:
        """The number of each row's name, -1 for one that is not known, and those names."""
        names = self._listed(values, n_rows)
        numbers = np.fromiter((self._position.get(value, -1) for value in names), np.int64, n_rows)
        return numbers, [*dict.fromkeys(names[row] for row in np.flatnonzero(numbers < 0))]

    def _listed(self, values: Any, n_rows: int) -> list[Any]:
        array = (
            _objects(values) if isinstance(values, list | tuple) else to_numpy(to_host(values), self._name)
        )
        if array.shape != (n_rows,):
            raise ValueError(
                f"{self._name} must have one value for each of the {n_rows} rows of proba; got shape "
                f"{array.shape}."
            )
        if array.dtype.kind == "M":  # finer dates would become whole numbers
            array = array.astype("M8[us]")
        names: list[Any] = array.tolist()
        for row, value in enumerate(names):
            if not isinstance(value, Hashable):
                raise RowError(f"{self._name}[{row}] is {value!r}, which is no name.", row, value)
            if is_missing(value):
                raise RowError(
                    f"{self._name}[{row}] is missing; every row needs one: fill it in, or leave the row out.",
                    row,
                    value,
                )
        return names


def _objects(items: Sequence[Any]) -> NDArray[Any]:
    """As they are: numpy would turn numbers among strings into strings."""
    array = np.empty(len(items), object)
    array[:] = [item.item() if isinstance(item, np.generic) else item for item in items]
    return array
