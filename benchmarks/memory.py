"""The peak memory of a call, in addition to its inputs."""

from __future__ import annotations

import ctypes
import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
_EVERYTHING = 0


def peak_bytes(job: Callable[[], Any]) -> int:
    """The most bytes that Python and numpy held during the call, its result included (tracemalloc)."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = job()
        _, peak = tracemalloc.get_traced_memory()
        del kept
        return peak - before
    finally:
        tracemalloc.stop()


def resident_peak_bytes(job: Callable[[], Any]) -> int | None:
    """The increase of the resident memory of the process; None if the system can't report it (Linux can).

    It sees every allocation, in pages. What the allocator had kept for reuse is given back before.
    """
    if not _CLEAR.exists():
        return None
    gc.collect()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(_EVERYTHING)
    _CLEAR.write_text(_RESET_PEAK)
    before = resident("VmRSS")
    kept = job()
    peak = resident("VmHWM")
    del kept
    return max(0, peak - before)


def available_bytes() -> int | None:
    """The free memory of the machine; None if the system can't report it."""
    info = Path("/proc/meminfo")
    if not info.exists():
        return None
    return next(1024 * int(line.split()[1]) for line in info.open() if line.startswith("MemAvailable"))


def resident(field: str) -> int:
    """The resident memory of this process in bytes: ``VmRSS`` is the present one, ``VmHWM`` the peak."""
    return next(1024 * int(line.split()[1]) for line in _STATUS.open() if line.startswith(field))
