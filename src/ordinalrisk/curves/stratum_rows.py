"""Cut rows into strata: the number of each row's stratum, and the rows of each number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def stratum_numbers(
    groups: NDArray[np.int64] | None, labels: NDArray[np.int64], n_labels: int
) -> NDArray[np.int64]:
    """Number the stratum of each row, by group and, if ``n_labels`` is not 1, by true class."""
    numbers = np.zeros(len(labels), np.int64) if groups is None else groups * n_labels
    return numbers + labels if n_labels > 1 else numbers


def rows_by_number(number: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Return the positions of the rows of each number, ascending.

    >>> rows_by_number(np.array([3, 0, 3]))
    {0: array([1]), 3: array([0, 2])}
    """
    order = np.argsort(number, kind="stable")
    numbers, first = np.unique(number[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(order, first)[1:], strict=True))
