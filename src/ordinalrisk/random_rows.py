"""A uniform sample of rows that stream by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class RandomRows:
    """So many rows of all that were added, each as likely as any other, or all if they are fewer.

    Every row gets a random key, and those with the smallest keys are kept. So the sample depends on the seed
    and on the number of rows, and not on how they were cut into batches.

    Examples
    --------
    >>> rows = RandomRows(2)
    >>> rows.add(np.eye(3), np.array([0, 1, 2]))
    >>> rows.add(np.eye(3), np.array([0, 1, 2]))
    >>> len(rows.drawn()[1])
    2
    """

    def __init__(self, most: int, seed: int = 0) -> None:
        self._most = most
        self._random = np.random.default_rng(seed)
        self._below = np.inf
        self._parts: list[tuple[NDArray[np.float64], NDArray[Any], NDArray[np.int64]]] = []

    def add(self, proba: NDArray[Any], labels: NDArray[np.int64]) -> None:
        """Take in more rows."""
        keys = self._random.random(len(proba))
        low = np.flatnonzero(keys < self._below)
        self._parts.append((keys[low], proba[low], labels[low]))
        if sum(len(part[0]) for part in self._parts) > 2 * self._most:
            self._drop()

    def drawn(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The sample of the rows so far, in the order in which they came."""
        self._drop()
        return self._parts[0][1:]

    def _drop(self) -> None:
        keys, proba, labels = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        if len(keys) > self._most:
            self._below = float(np.partition(keys, self._most)[self._most])
        low = keys < self._below
        self._parts = [(keys[low], proba[low], labels[low])]
