r"""One cost table in the forms that computing needs: exact for decisions, floating point for levels.

The model's own estimate of the risk of ``[l, u]`` splits into a left and a right part for every table,

.. math:: R(l, u) = H(l) + T(u), \quad H(l) = \sum_{j < l} a_j, \quad T(u) = \sum_{j > u} b_j,

where adding label ``j`` on the left removes :math:`a_j = \sum_{i \le j} p_i (G[i, j+1] - G[i, j])` and on
the right :math:`b_j = \sum_{i \ge j} p_i (G[i, j-1] - G[i, j])`. The differences in brackets are taken here,
exactly, and rounded once; no term is negative, so the sums are monotone in floating point too.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.numbers import Number, decimal_text, ratio, require_bits, require_classes

if TYPE_CHECKING:
    from ordinalrisk.losses.kinds import IntervalLoss

ExactTable = tuple[tuple[Fraction, ...], ...]
LARGEST_COST = Fraction(np.finfo(np.float64).max)
_CACHED_BYTES = 2**26  # of tables that are kept for the next call; the last one is kept whatever its size
_BYTES_OF_A_COST = 300  # measured: as it was given, rational, whole, floating-point and ranked, and its gains
_BYTES_OF_A_TABLE = 4096
_EXACT_IN_FLOATS = 2**53
_EXACT_IN_INT64 = 2**62  # so that two can be added


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

    def __init__(self, costs: WholeCosts) -> None:
        self.units = costs.units
        self.unit = Fraction(1, costs.per_unit)
        self.n_classes = len(costs.units)
        if self.bound > LARGEST_COST:
            raise ValueError("The largest cost is too large for a float; use normalize=True or larger units.")

    unit: Fraction
    """The largest ``1 / m``, ``m`` a whole number, of which every cost is a whole multiple."""

    units: NDArray[Any]
    """``G`` in whole multiples of ``unit``; Python integers where 64 bits are too few."""

    @staticmethod
    def of(loss: IntervalLoss, n_classes: int) -> CostTable:
        """The table of ``loss`` for so many classes."""
        require_classes(n_classes)
        return _tables.of(loss, int(n_classes))

    @cached_property
    def n_bytes(self) -> int:
        """About how much memory the table takes with all that is derived from it."""
        wide = int(self.units.max()).bit_length() // 8 if self.units.dtype == object else 0
        return _BYTES_OF_A_TABLE + self.n_classes**2 * (_BYTES_OF_A_COST + wide)

    @cached_property
    def exact(self) -> ExactTable:
        """``G`` as rationals; equal costs are one object."""
        rational = {number: number * self.unit for number in set(self.units.ravel().tolist())}
        return tuple(tuple([rational[number] for number in row]) for row in self.units.tolist())

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """``G`` in floating point, each entry correctly rounded."""
        return self._rounded(self.units)

    @cached_property
    def bound(self) -> Fraction:
        """``B``, the largest cost."""
        return int(self.units.max()) * self.unit

    def two_valued(self, label: int | None = None) -> bool:
        """Whether every miss costs the same, of any truth or of this one."""
        table = self.units if label is None else self.units[label]
        return bool((table[table > 0] == table.max()).all())

    def bound_of(self, label: int | None) -> Fraction:
        """The largest cost of this truth, or of any."""
        return self.bound if label is None else int(self.units[label].max()) * self.unit

    @cached_property
    def gains(self) -> GainTables:
        """What the kernels read."""
        K, G = self.n_classes, self.units
        left, right = np.zeros((K, K)), np.zeros((K, K))
        left[:-1] = np.tril(self._rounded((G[:, 1:] - G[:, :-1]).T))
        right[1:] = np.triu(self._rounded((G[:, :-1] - G[:, 1:]).T), 1)
        weights = _off_diagonal_constants(G)
        return GainTables(
            left=left,
            right=right,
            shape=_shape(left, right),
            mode_weights=np.ones(K) if weights is None else self._rounded(weights),
            rank=np.array([np.unique(row, return_inverse=True)[1] for row in G]),
            weighted=weights is not None,
            bound=float(self.bound),
        )

    def _rounded(self, whole: NDArray[Any]) -> NDArray[np.float64]:
        """So many units in floating point, each rounded once."""
        per_unit = self.unit.denominator
        if self.units.dtype != object and max(per_unit, int(self.units.max())) <= _EXACT_IN_FLOATS:
            return whole / per_unit
        quotients = [number / per_unit for number in whole.ravel().tolist()]  # Python rounds whole ones once
        return np.array(quotients, np.float64).reshape(whole.shape)


class _Tables:
    """The tables that were used last, as many as fit into the bytes for them."""

    def __init__(self) -> None:
        self.kept: OrderedDict[tuple[IntervalLoss, int], CostTable] = OrderedDict()
        self.n_bytes = 0
        self._changing = Lock()

    def of(self, loss: IntervalLoss, n_classes: int) -> CostTable:
        """The table that was made of an equal loss, or a new one in place of those that were used least."""
        key = loss, n_classes
        with self._changing:
            if key in self.kept:
                self.kept.move_to_end(key)
                return self.kept[key]
        table = CostTable(loss.whole_costs(n_classes))
        with self._changing:
            if key not in self.kept:
                self.kept[key] = table
                self.n_bytes += table.n_bytes
            while len(self.kept) > 1 and self.n_bytes > _CACHED_BYTES:
                self.n_bytes -= self.kept.popitem(last=False)[1].n_bytes
        return table


_tables = _Tables()


class WholeCosts(NamedTuple):
    """A cost table in whole numbers, of which ``per_unit`` make 1."""

    units: NDArray[Any]
    per_unit: int

    def over_largest(self) -> WholeCosts:
        """The table whose largest cost is 1, in the largest unit."""
        return WholeCosts(self.units, int(self.units.max())).reduced()

    def reduced(self) -> WholeCosts:
        """The same costs in the largest unit."""
        common = math.gcd(self.per_unit, int(np.gcd.reduce(self.units, axis=None)))
        units = self.units // common if common > 1 else self.units
        if units.dtype == object and int(units.max()) < _EXACT_IN_INT64:
            units = units.astype(np.int64)
        return WholeCosts(units, self.per_unit // common)

    def require_controllable(self) -> None:
        """Refuse costs on the diagonal and rows that fall away from it; the first row is named."""
        whole, K = self.units, len(self.units)
        falls = whole[:, 1:] < whole[:, :-1]
        upper = np.triu(np.ones((K, K), bool))[:, :-1]
        wrong = np.where(upper, falls, whole[:, :-1] < whole[:, 1:])
        costly = np.diagonal(whole) != 0
        if not (wrong.any() or costly.any()):
            return
        y = int((wrong.any(axis=1) | costly).argmax())
        row = [decimal_text(Fraction(number, self.per_unit)) for number in whole[y].tolist()]
        if whole[y, y] != 0:
            raise ValueError(
                f"A covered label costs nothing, but the cost table has {row[y]} at row {y}, "
                f"column {y}; the diagonal must be 0."
            )
        left = [k for k in range(y - 1, -1, -1) if wrong[y, k]]
        near, far = (left[0] + 1, left[0]) if left else (int(wrong[y].argmax()), int(wrong[y].argmax()) + 1)
        raise ValueError(
            f"Row {y} of the cost table decreases away from its diagonal, from {row[near]} in column {near} "
            f"to {row[far]} in column {far}: such a loss voids the guarantee. Costs must not fall as the "
            "miss grows."
        )


def whole_costs(table: Sequence[Sequence[Number]]) -> WholeCosts:
    """The costs as whole numbers, and how many of these make 1.

    Examples
    --------
    >>> whole_costs(((0, Fraction(1, 6)), (0.5, 0)))
    WholeCosts(units=array([[ 0,  5],
           [15,  0]]), per_unit=30)
    """
    K = len(table)
    require_classes(K)
    for y, row in enumerate(table):
        if len(row) != K:
            raise ValueError(
                f"A cost table must be square; it has {K} rows, but row {y} has length {len(row)}."
            )
    flat = list(chain.from_iterable(table))  # often a few costs many times
    if set(map(type, flat)) == {float}:
        distinct, where = np.unique(np.array(flat, np.float64), return_inverse=True)
        units, per_unit = _in_common_units([ratio(cost) for cost in distinct.tolist()])
        require_bits(int(np.abs(units).max()).bit_length(), K * K)
        return WholeCosts(units[where].reshape(K, K), per_unit)
    # by type too: the float 0.1 stands for 1/10, and a Decimal that equals it for another number
    ratios = {key: ratio(key[1]) for key in {(type(cost), cost) for cost in flat}}
    units, per_unit = _in_common_units([ratios[type(cost), cost] for cost in flat])
    return WholeCosts(units.reshape(K, K), per_unit)


def in_common_units(numbers: Iterable[Fraction]) -> tuple[NDArray[Any], int]:
    """The numbers as whole ones, and how many of these make 1.

    Examples
    --------
    >>> in_common_units([Fraction(1, 6), Fraction(3, 4)])
    (array([2, 9]), 12)
    """
    return _in_common_units([number.as_integer_ratio() for number in numbers])


def _in_common_units(ratios: list[tuple[int, int]]) -> tuple[NDArray[Any], int]:
    per_unit = 1
    for denominator in {denominator for _, denominator in ratios}:
        per_unit = math.lcm(per_unit, denominator)
        require_bits(per_unit.bit_length())
    longest = max(above.bit_length() - below.bit_length() for above, below in ratios)
    require_bits(per_unit.bit_length() + max(longest, 0), len(ratios))  # before they are there
    return whole_array([numerator * (per_unit // denominator) for numerator, denominator in ratios]), per_unit


def whole_array(numbers: list[int]) -> NDArray[Any]:
    """The numbers in 64 bits each, as Python's where these are too few."""
    largest = max(map(abs, numbers))
    require_bits(largest.bit_length(), len(numbers))
    return np.array(numbers, dtype=np.int64 if largest < _EXACT_IN_INT64 else object)


def _shape(left: NDArray[np.float64], right: NDArray[np.float64]) -> int:
    K = len(left)
    if not (np.tril(left, -1).any() or np.triu(right, 1).any()):
        return DIAGONAL
    carried_left = all(np.array_equal(left[j, :j], left[j - 1, :j]) for j in range(1, K - 1))
    carried_right = all(np.array_equal(right[j, j + 1 :], right[j + 1, j + 1 :]) for j in range(1, K - 1))
    return RUNNING if carried_left and carried_right else FULL


def _off_diagonal_constants(table: NDArray[Any]) -> NDArray[Any] | None:
    """The class weights if the table is a weighted loss, else None."""
    weights = np.append(table[:-1, -1], table[-1, 0])
    off_diagonal = ~np.eye(len(table), dtype=bool)
    return weights if (table == weights[:, None])[off_diagonal].all() else None
