"""Growth rules as computations on rows of probabilities, one module for each backend.

Each backend has the same four functions, ``point_labels``, ``levels``, ``intervals`` and ``steps``, and gives
the same bits: float64 arithmetic in one stated order, nothing fused, nothing reassociated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

RULES = {"paper": 0, "frontier": 1, "adaptive": 2, "rps": 3}
POINTS = {"mode": 0, "bayes": 1, "median": 2, "given": 3}

SUM_TOLERANCE = {"float64": 1e-5, "float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}
"""How far a row's sum may be from 1: the rounding of a softmax in that number type, with room."""

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
"""The upper half of a float32, which numpy has no type for."""


class InvalidRow(Exception):  # noqa: N818 - it is a finding of the kernels, the error is raised from it
    """A row of ``proba`` is no probability vector; ``args[0]`` is its number."""


_NAMES = {np.dtype(name): name for name in ("float64", "float32", "float16")} | {BFLOAT16: "bfloat16"}


class SameObject:
    """A key that is equal to itself only, for what can't be hashed."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and self.value is other.value


def number_type(proba: NDArray[Any]) -> str:
    """The name of the number type: a key of ``SUM_TOLERANCE``."""
    return _NAMES[proba.dtype]


def widened(proba: NDArray[Any]) -> NDArray[Any]:
    """16-bit floats as float32, exactly; others as they are."""
    if proba.dtype == BFLOAT16:
        bits: NDArray[np.uint32] = proba["bfloat16"].astype(np.uint32)
        return (bits << 16).view(np.float32)
    return proba.astype(np.float32) if proba.dtype == np.float16 else proba
