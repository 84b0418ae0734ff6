"""A uniform sample of rows that stream by, or that lie in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class RandomRows:
    """So many rows of all that were added, each as likely as any other, or all if they are fewer.

    Every row gets a random key, and those with the smallest keys are kept. So the sample depends on the seed
    and on the number of rows, and not on how they were cut into batches, or into parts that were merged.

    Parameters
    ----------
    most : int
        How many rows to draw.
    seed : int
        Of their keys.
    first_row : int
        The number of rows before the first that will be added.

    Examples
    --------
    >>> rows = RandomRows(2)
    >>> rows.add(np.eye(3), np.array([0, 1, 2]))
    >>> rows.add(np.eye(3), np.array([0, 1, 2]))
    >>> len(rows.drawn()[1])
    2
    """

    def __init__(self, most: int, seed: int = 0, first_row: int = 0) -> None:
        self._most, self._seed = most, seed
        self.first_row = self.next_row = as_row_number(first_row)
        self._below = np.inf
        self._parts: list[tuple[NDArray[np.float64], NDArray[Any], NDArray[np.int64]]] = []

    def add(self, proba: NDArray[Any], labels: NDArray[np.int64]) -> None:
        """Take in more rows."""
        keys = generator_at(self.next_row, self._seed).random(len(proba))
        self.next_row += len(proba)
        low = np.flatnonzero(keys < self._below)
        self._parts.append((keys[low], proba[low], labels[low]))
        self._drop_of_many()

    def merge(self, other: RandomRows) -> RandomRows:
        """Take in the sample of the rows that directly follow, which is left as it is.

        Examples
        --------
        >>> whole, left, right = RandomRows(2), RandomRows(2), RandomRows(2, first_row=3)
        >>> for rows in (whole, left):
        ...     rows.add(np.eye(3), np.array([0, 1, 2]))
        >>> for rows in (whole, right):
        ...     rows.add(np.eye(3), np.array([0, 1, 2]))
        >>> np.array_equal(left.merge(right).drawn()[0], whole.drawn()[0])
        True
        """
        mine, theirs = (self._most, self._seed), (other._most, other._seed)
        if mine != theirs:
            raise ValueError(
                f"A sample of {mine[0]} rows with seed {mine[1]} can't be merged with one of {theirs[0]} "
                f"with seed {theirs[1]}; draw both alike."
            )
        require_next(self.next_row, other.first_row)
        self.next_row = other.next_row
        self._parts += other._parts
        self._drop_of_many()
        return self

    def drawn(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The sample of the rows so far, in the order in which they came."""
        self._drop()
        return self._parts[0][1:]

    def _drop_of_many(self) -> None:
        """Now and then: so it takes no time to speak of."""
        if sum(len(part[0]) for part in self._parts) > 2 * self._most:
            self._drop()

    def _drop(self) -> None:
        if not self._parts:
            return
        keys, proba, labels = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        if len(keys) > self._most:
            self._below = float(np.partition(keys, self._most)[self._most])
        low = keys < self._below
        self._parts = [(keys[low], proba[low], labels[low])]

    def __getstate__(self) -> dict[str, Any]:
        """With the sample alone, not the rows that wait to be dropped."""
        self._drop()
        return self.__dict__.copy()


def generator_at(row: int, seed: int | None) -> np.random.Generator:
    """The default generator of numpy with this seed, past one number for each row before this one.

    Examples
    --------
    >>> bool(generator_at(2, seed=7).random() == np.random.default_rng(7).random(3)[2])
    True
    """
    return np.random.Generator(np.random.PCG64(seed).advance(row))


def as_row_number(first_row: Any) -> int:
    """The number of rows before a part, if it can be one."""
    whole = isinstance(first_row, int | np.integer) and not isinstance(first_row, bool)
    if not whole or first_row < 0:
        raise ValueError(
            f"first_row must be a whole number, 0 or larger: the number of rows before; got {first_row!r}."
        )
    return int(first_row)


def require_next(next_row: int, first_row: int) -> None:
    """Refuse a part that does not begin where the rows before it end."""
    if first_row != next_row:
        raise ValueError(
            f"The part to merge has first_row={first_row}, but row {next_row} comes next; merge parts in the "
            "order of their rows, each with first_row= the number of rows before it."
        )
