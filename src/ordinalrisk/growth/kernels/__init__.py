"""Growth rules as computations on rows of probabilities, one module for each backend.

Each backend has the same four functions, ``point_labels``, ``levels``, ``intervals`` and ``steps``, and gives
the same bits: float64 arithmetic in one fixed order, without fused or reassociated operations.
"""

from __future__ import annotations

from typing import Any

from ordinalrisk.growth.kernels import reference

RULE_NUMBERS = {rule: number for number, rule in enumerate(reference.RULES)}
POINT_NUMBERS = {"mode": 0, "bayes": 1, "median": 2, "given": 3}


class InvalidRow(Exception):  # noqa: N818 - it is a finding of the kernels, the error is raised from it
    """A row of ``proba`` is not a probability vector; ``args[0]`` is the number of the row."""


class SameObject:
    """A key that is equal only to itself, for objects that can't be hashed."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and self.value is other.value
