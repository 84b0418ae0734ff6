"""Number the names of groups and clusters, which can be values of any type."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import is_missing, to_numpy
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.probability_matrix import RowError


class RowNames:
    """Names that are numbered in order of appearance.

    >>> names = RowNames("groups")
    >>> names.numbered(["b", "a", "b"], 3), names.known
    (array([0, 1, 0]), ('b', 'a'))
    """

    def __init__(self, name: str, known: Iterable[Any] = ()) -> None:
        self._name = name
        self._position: dict[Any, int] = {value: i for i, value in enumerate(known)}

    @property
    def known(self) -> tuple[Any, ...]:
        """All names seen so far, in the order of their numbers."""
        return tuple(self._position)

    def numbered(self, values: Any, n_rows: int) -> NDArray[np.int64]:
        """Return the number of each row's name; new names get the next numbers."""
        names = self._listed(values, n_rows)
        for value in names:
            self._position.setdefault(value, len(self._position))
        return np.fromiter((self._position[value] for value in names), np.int64, n_rows)

    def looked_up(self, values: Any, n_rows: int) -> tuple[NDArray[np.int64], list[Any]]:
        """Return the number of each row's name, with -1 for unknown names, and list the unknown names."""
        names = self._listed(values, n_rows)
        numbers = np.fromiter((self._position.get(value, -1) for value in names), np.int64, n_rows)
        return numbers, [*dict.fromkeys(names[row] for row in np.flatnonzero(numbers < 0))]

    def _listed(self, values: Any, n_rows: int) -> list[Any]:
        array = (
            _as_objects(values) if isinstance(values, list | tuple) else to_numpy(to_host(values), self._name)
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
                raise RowError(f"{self._name}[{row}] is {value!r}, which can't be a name.", row, value)
            if is_missing(value):
                raise RowError(
                    f"{self._name}[{row}] is missing; fill it in, or leave the row out.",
                    row,
                    value,
                )
        return names


def _as_objects(items: Sequence[Any]) -> NDArray[Any]:
    """Return the items in an array of objects: numpy would turn numbers among strings into strings."""
    array = np.empty(len(items), object)
    array[:] = [item.item() if isinstance(item, np.generic) else item for item in items]
    return array
