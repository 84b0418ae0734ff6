"""The limit that the machine sets: the time to read the same array once, with as many threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ordinalrisk.growth.kernels.cpu import N_THREADS

_POOL = ThreadPoolExecutor(N_THREADS)


def _squares(values: np.ndarray) -> float:
    """The sum of squares: the fastest function of numpy that reads every value."""
    return float(values @ values)


def readers(array: np.ndarray) -> dict[str, Callable[[], float]]:
    """Two ways to read all values, in this thread and in those of the kernels; the faster one counts."""
    flat = array.reshape(-1)
    blocks = np.array_split(flat, N_THREADS)
    return {"read": lambda: _squares(flat), "read in threads": lambda: sum(_POOL.map(_squares, blocks))}
