"""Rows in any number of partitions, made where they are needed, in little more time than copying them.

A process draws one block of rows. Each partition is that block with every probability moved a little towards
equal ones, by an amount of its own: the rows of two partitions have other levels, as rows that were drawn
have, and a partition is the same whoever makes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from ordinalrisk.growth.kernels.cpu import N_THREADS

from .scores import ordinal_scores

K = 10
FURTHEST = 0.05


@cache
def block(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows that all partitions of this length are made from."""
    return ordinal_scores(n_rows, K)


def proba_of(index: int, n_rows: int) -> np.ndarray:
    """The probabilities of a partition."""
    moved = np.float32(FURTHEST * (index * 0.6180339887 % 1))  # no two alike, however many there are
    proba, _ = block(n_rows)
    found = np.multiply(proba, np.float32(1) - moved)
    found += moved / np.float32(K)
    return found


def labels_of(index: int, n_rows: int) -> np.ndarray:
    """The labels of a partition."""
    return block(n_rows)[1]


def made_ahead(n_partitions: int, n_rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All partitions in order, the next ones made while one is worked on."""
    with ThreadPoolExecutor(N_THREADS) as pool:
        ahead = [pool.submit(proba_of, index, n_rows) for index in range(min(N_THREADS, n_partitions))]
        for index in range(n_partitions):
            proba = ahead.pop(0).result()
            if index + N_THREADS < n_partitions:
                ahead.append(pool.submit(proba_of, index + N_THREADS, n_rows))
            yield proba, labels_of(index, n_rows)


def as_dask(n_partitions: int, n_rows: int) -> tuple[Any, Any]:
    """The same as dask arrays, a chunk for each partition: probabilities and labels."""
    import dask.array as da
    from dask.delayed import delayed

    proba = [
        da.from_delayed(delayed(proba_of)(index, n_rows), (n_rows, K), np.float32)
        for index in range(n_partitions)
    ]
    labels = [
        da.from_delayed(delayed(labels_of)(index, n_rows), (n_rows,), np.int64)
        for index in range(n_partitions)
    ]
    return da.concatenate(proba), da.concatenate(labels)
