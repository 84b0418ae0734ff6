"""How the processor's kernels are compiled, and where the result is kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit

# Without numba's reference counting, since nothing is allocated in a kernel: its atomic counters, on arrays
# that threads share, would cost more than the work itself.
_OPTIONS = {"nogil": True, "_nrt": False}
helper = njit(**_OPTIONS)
inlined = njit(**_OPTIONS, forceinline=True)  # once a row, where passing so many arrays would take longer


def compiled(kernel: Callable[..., Any], signature: tuple[Any, ...]) -> Any:
    """``kernel`` for arguments of these types, from where it was kept if it was compiled before."""
    kernel.__qualname__ = f"{kernel.__name__}-{_sources()}"
    try:
        return njit(signature, **_OPTIONS, cache=True)(kernel)
    except RuntimeError:  # a read-only image without a home: nowhere to keep what was compiled
        return njit(signature, **_OPTIONS)(kernel)


@cache
def _sources() -> str:
    """A digest of all that goes into a kernel, for the name it is kept by.

    numba itself looks at the file of the kernel alone, and would go on using what was compiled from another
    version of the files that it calls.
    """
    here = Path(__file__).parent
    others = [here / name for name in ("__init__.py", "compiling.py", "vectors.py")]
    files = [here.parents[1] / "losses" / "cost_table.py", *others, *sorted(here.glob("cpu*.py"))]
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
