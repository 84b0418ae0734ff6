"""Collections that are not computed yet: dask's, told without importing it."""

from __future__ import annotations

from typing import Any


def is_dask(values: Any) -> bool:
    """Whether ``values`` is an array, a frame or a series of dask."""
    return type(values).__module__.partition(".")[0] == "dask"


def is_lazy_set(sets: Any) -> bool:
    """Whether ``sets`` are intervals that are not computed yet."""
    return type(sets).__module__ == "ordinalrisk.execution.dask.lazy_sets"
