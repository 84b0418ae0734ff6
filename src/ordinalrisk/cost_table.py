r"""One cost table in the forms that computing needs: exact for decisions, floating point for levels.

The model's own estimate of the risk of ``[l, u]`` splits into a left and a right part for every table,

.. math:: R(l, u) = H(l) + T(u), \quad H(l) = \sum_{j < l} a_j, \quad T(u) = \sum_{j > u} b_j,

where adding label ``j`` on the left removes :math:`a_j = \sum_{i \le j} p_i (G[i, j+1] - G[i, j])` and on
the right :math:`b_j = \sum_{i \ge j} p_i (G[i, j-1] - G[i, j])`. The differences in brackets are taken here,
exactly, and rounded once; no term is negative, so the sums are monotone in floating point too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.exact import decimal_text

if TYPE_CHECKING:
    from ordinalrisk.losses import IntervalLoss

ExactTable = tuple[tuple[Fraction, ...], ...]
LARGEST_COST = Fraction(np.finfo(np.float64).max)


class GainTables(NamedTuple):
    """The cost table as the kernels read it.

    ``left[j, i]`` is what truth ``i`` saves when label ``j`` joins the interval on the left, ``right[j, i]``
    when it joins on the right. ``shape`` tells how few of those terms a sum needs:
    one (``DIAGONAL``, the weighted losses), one more than its outer neighbour's (``RUNNING``, distances on
    an even scale), or all (``FULL``).
    """

    left: NDArray[np.float64]
    right: NDArray[np.float64]
    shape: int
    mode_weights: NDArray[np.float64]
    rank: NDArray[np.int64]
    weighted: bool
    bound: float


DIAGONAL, RUNNING, FULL = range(3)


class CostTable:
    """An exact cost table ``G`` and what is derived from it."""

    def __init__(self, exact: ExactTable) -> None:
        self.exact = exact_table_checked(exact)
        self.n_classes = len(exact)
        if self.bound > LARGEST_COST:
            raise ValueError("The largest cost is too large for a float; use normalize=True or larger units.")

    @staticmethod
    def of(loss: IntervalLoss, n_classes: int) -> CostTable:
        """The table of ``loss`` for so many classes."""
        return _table_of(loss, n_classes)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """``G`` in floating point, each entry correctly rounded."""
        return np.array([[cost / self.unit.denominator for cost in row] for row in self._whole])

    @cached_property
    def bound(self) -> Fraction:
        """``B``, the largest cost."""
        return max(max(row) for row in self._whole) * self.unit

    def two_valued(self, label: int | None = None) -> bool:
        """Whether every miss costs the same, of any truth or of this one."""
        table = self.units if label is None else self.units[label]
        return bool((table[table > 0] == table.max()).all())

    def bound_of(self, label: int | None) -> Fraction:
        """The largest cost of this truth, or of any."""
        return self.bound if label is None else int(self.units[label].max()) * self.unit

    @cached_property
    def unit(self) -> Fraction:
        """The largest rational of which every cost is a whole multiple."""
        return Fraction(1, math.lcm(*(cost.denominator for row in self.exact for cost in row)))

    @cached_property
    def units(self) -> NDArray[Any]:
        """``G`` in whole multiples of ``unit``; Python integers where 64 bits are too few."""
        return np.array(self._whole, dtype=np.int64 if self.bound / self.unit < 2**62 else object)

    @cached_property
    def _whole(self) -> list[list[int]]:
        """The costs in units: as exact as rationals, and many times faster."""
        per_unit = self.unit.denominator
        return [[cost.numerator * (per_unit // cost.denominator) for cost in row] for row in self.exact]

    @cached_property
    def gains(self) -> GainTables:
        """What the kernels read."""
        K, G, per_unit = self.n_classes, self._whole, self.unit.denominator
        left, right = np.zeros((K, K)), np.zeros((K, K))
        for j in range(K):  # Python divides whole numbers with one rounding
            for i in range(j + 1) if j < K - 1 else ():
                left[j, i] = (G[i][j + 1] - G[i][j]) / per_unit
            for i in range(j, K) if j > 0 else ():
                right[j, i] = (G[i][j - 1] - G[i][j]) / per_unit
        weights = _off_diagonal_constants(G)
        return GainTables(
            left=left,
            right=right,
            shape=_shape(left, right),
            mode_weights=np.array([weight / per_unit for weight in weights]) if weights else np.ones(K),
            rank=np.array([_ranks(row) for row in G]),
            weighted=weights is not None,
            bound=float(self.bound),
        )


@lru_cache(maxsize=256)
def _table_of(loss: IntervalLoss, n_classes: int) -> CostTable:
    return CostTable(loss.exact_costs(n_classes))


def exact_table_checked(table: ExactTable) -> ExactTable:
    """The table itself if risk can be controlled with it, else an error that says where it fails."""
    K = len(table)
    if K < 2:
        raise ValueError(f"A cost table needs at least two classes; got {K}.")
    for y, row in enumerate(table):
        if len(row) != K:
            raise ValueError(
                f"A cost table must be square; it has {K} rows, but row {y} has length {len(row)}."
            )
        if row[y] != 0:
            raise ValueError(
                f"A covered label costs nothing, but the cost table has {decimal_text(row[y])} at row {y}, "
                f"column {y}; the diagonal must be 0."
            )
        for near, far in [*((k, k - 1) for k in range(y, 0, -1)), *((k, k + 1) for k in range(y, K - 1))]:
            if row[far] < row[near]:
                closer, further = decimal_text(row[near]), decimal_text(row[far])
                raise ValueError(
                    f"Row {y} of the cost table decreases away from its diagonal, from {closer} in column "
                    f"{near} to {further} in column {far}: "
                    "such a loss voids the guarantee. Costs must not fall as the miss grows."
                )
    return table


def _shape(left: NDArray[np.float64], right: NDArray[np.float64]) -> int:
    K = len(left)
    if not (np.tril(left, -1).any() or np.triu(right, 1).any()):
        return DIAGONAL
    carried_left = all(np.array_equal(left[j, :j], left[j - 1, :j]) for j in range(1, K - 1))
    carried_right = all(np.array_equal(right[j, j + 1 :], right[j + 1, j + 1 :]) for j in range(1, K - 1))
    return RUNNING if carried_left and carried_right else FULL


def _ranks(costs: list[int]) -> list[int]:
    """Small integers in the order of the costs, so that kernels can tell exactly which are equal."""
    rank = {cost: r for r, cost in enumerate(sorted(set(costs)))}
    return [rank[cost] for cost in costs]


def _off_diagonal_constants(table: list[list[int]]) -> list[int] | None:
    """The class weights if the table is a weighted loss, else None."""
    constants = [{cost for k, cost in enumerate(row) if k != y} for y, row in enumerate(table)]
    if any(len(costs) > 1 for costs in constants):
        return None
    return [costs.pop() for costs in constants]
