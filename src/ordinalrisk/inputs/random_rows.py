"""A uniform sample of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.batch import Batch, Summary
from ordinalrisk.inputs.numbers import is_whole


class RandomRows(Summary):
    """A uniform sample of at most ``most`` of the rows that were added; all rows if there are fewer.

    The seed and the number of a row determine a random key. The sample keeps the rows with the smallest keys,
    so it depends only on the seed and on the number of rows.
    """

    def __init__(self, most: int, random_state: int = 0) -> None:
        self._most, self._seed = most, random_state
        self._below = np.inf
        self._parts: list[tuple[NDArray[Any], ...]] = []  # keys, row numbers, probabilities, labels

    def add(self, batch: Batch) -> None:
        keys = generator_at(batch.first_row, self._seed).random(len(batch))
        low = np.flatnonzero(keys <= self._below)
        self._parts.append((keys[low], batch.first_row + low, batch.proba[low], batch.labels[low]))
        self._drop(2 * self._most)

    def merge(self, other: RandomRows) -> RandomRows:
        mine, theirs = (self._most, self._seed), (other._most, other._seed)
        if mine != theirs:
            raise ValueError(
                f"A sample of {mine[0]} rows with seed {mine[1]} can't be merged with one of {theirs[0]} "
                f"with seed {theirs[1]}; use the same size and seed for both."
            )
        both = RandomRows(*mine)
        both._parts = self._parts + other._parts
        both._drop(2 * self._most)
        return both

    def drawn(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the probabilities and labels of the sample, in the order of the rows."""
        self._drop(0)
        _, rows, proba, labels = self._parts[0]
        order = np.argsort(rows)
        return proba[order], labels[order]

    def _drop(self, most_waiting: int) -> None:
        """Drop the rows outside the sample if more than ``most_waiting`` rows are in memory."""
        if not self._parts or sum(len(part[0]) for part in self._parts) <= most_waiting:
            return
        keys, rows, *others = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        low = np.lexsort((rows, keys))[: self._most]
        self._parts = [(keys[low], rows[low], *(values[low] for values in others))]
        if len(low) == self._most:
            self._below = float(keys[low].max())

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the sample."""
        self._drop(0)
        return self.__dict__.copy()


def generator_at(row: int, seed: int | None) -> np.random.Generator:
    """Return numpy's default generator with this seed, advanced by one random number per earlier row."""
    return np.random.Generator(np.random.PCG64(seed).advance(row))


def as_row_number(first_row: Any) -> int:
    if not is_whole(first_row) or first_row < 0:
        raise ValueError(
            f"first_row must be the number of earlier rows, a whole number, 0 or larger; got {first_row!r}."
        )
    return int(first_row)
