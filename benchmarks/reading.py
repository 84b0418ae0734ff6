"""The limit that the machine sets: the time to read the same array once, with as many threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

THREADS = numba.config.NUMBA_NUM_THREADS
_POOL = ThreadPoolExecutor(THREADS)


@numba.njit("float32(float32[::1])", nogil=True, fastmath=True)  # reassociated, so that it is vectorised
def _sum(values):
    total = np.float32(0)
    for i in range(values.size):
        total += values[i]
    return total


def readers(array: np.ndarray) -> dict[str, Callable[[], float]]:
    """Two ways to sum all values, in this thread and in as many as the kernels use; the faster one counts."""
    flat = array.reshape(-1)
    blocks = np.array_split(flat, THREADS)
    return {"read": lambda: _sum(flat), "read in threads": lambda: sum(_POOL.map(_sum, blocks))}
