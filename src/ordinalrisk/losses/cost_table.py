r"""A cost table in two forms: exact numbers for decisions, floating point for levels.

The model's own estimate of the risk of ``[l, u]`` splits into a left and a right part for every table,

.. math:: R(l, u) = H(l) + T(u), \quad H(l) = \sum_{j < l} a_j, \quad T(u) = \sum_{j > u} b_j,

where adding label ``j`` on the left removes :math:`a_j = \sum_{i \le j} p_i (G[i, j+1] - G[i, j])` and on
the right :math:`b_j = \sum_{i \ge j} p_i (G[i, j-1] - G[i, j])`. This module computes the differences in
parentheses exactly and rounds each once. No term is negative, so the sums are monotone in floating point too.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.numbers import (
    Number,
    decimal_text,
    ratio,
    require_bits,
    require_class_count,
)

ExactTable = tuple[tuple[Fraction, ...], ...]
LARGEST_COST = Fraction(np.finfo(np.float64).max)
_CACHED_BYTES = 2**26  # the limit for cached tables; the last table is kept whatever its size
_BYTES_OF_A_COST = 300  # measured; includes all forms of a cost and its gains
_BYTES_OF_A_TABLE = 4096
_EXACT_IN_FLOATS = 2**53
_EXACT_IN_INT64 = 2**62  # the sum of two still fits in 64 bits


class HasCosts(Protocol):
    """A loss: hashable, with a cost table for any number of classes."""

    def whole_costs(self, n_classes: int) -> WholeCosts: ...


class GainTables(NamedTuple):
    """The cost table as the kernels read it: the last two are about steps, all others about levels."""

    left: NDArray[np.float64]  # [j, i]: what a row with truth i saves when label j joins on the left
    right: NDArray[np.float64]
    shape: int  # DIAGONAL, RUNNING or FULL
    mode_weights: NDArray[np.float64]
    has_price: NDArray[np.bool_]  # of each true label; exactly, where a weight may round to zero
    weighted: bool
    bound: float
    rank: NDArray[np.int64]  # of each cost in its row
    one_step: bool  # the loss of a row has at most one step, where its true label drops out


DIAGONAL, RUNNING, FULL = range(3)
"""How many terms the gain of a label needs: one (weighted losses), one in addition to the gain of the next
label outward (distances on an evenly spaced scale), or all."""


class CostTable:
    """An exact cost table ``G``, also in floating point."""

    def __init__(self, costs: WholeCosts) -> None:
        self.units = costs.units  # whole multiples of the unit; Python integers if 64 bits are too few
        self.unit = Fraction(1, costs.per_unit)  # the largest 1 / m such that every cost is a multiple of it
        self.n_classes = len(costs.units)
        self.side: str | None = None  # the only end of the set that costs depend on
        self._two_valued: dict[tuple[int | None, bool], bool] = {}
        if self.bound > LARGEST_COST:
            raise ValueError("The largest cost is too large for a float; use normalize=True or larger units.")

    @staticmethod
    def of(loss: HasCosts, n_classes: int) -> CostTable:
        require_class_count(n_classes)
        return _tables.of(loss, int(n_classes))

    @cached_property
    def n_bytes(self) -> int:
        """The approximate memory of the table in all its forms."""
        wide = int(self.units.max()).bit_length() // 8 if self.units.dtype == object else 0
        return _BYTES_OF_A_TABLE + self.n_classes**2 * (_BYTES_OF_A_COST + wide)

    @cached_property
    def exact(self) -> ExactTable:
        """``G`` as rationals; equal costs share one object."""
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

    @cached_property
    def largest(self) -> list[int]:
        """The largest cost of each true label, in units."""
        largest: list[int] = self.units.max(axis=1).tolist()
        return largest

    @cached_property
    def stakes(self) -> NDArray[np.float64]:
        """The largest cost of each true label, in floating point, repeated in the shape of the table."""
        return np.broadcast_to(self.values.max(axis=1)[:, None], self.values.shape)

    def two_valued(self, label: int | None = None, relative: bool = False) -> bool:
        """Return whether every miss costs the same, for every true label or only for ``label``.

        With ``relative`` and no ``label``, the largest cost must also be the same for every true label.
        """
        key = label, relative
        if key not in self._two_valued:
            table = self.units if label is None else self.units[label]
            alike = not relative or label is not None or len(set(self.largest)) == 1
            self._two_valued[key] = alike and bool((table[table > 0] == table.max()).all())
        return self._two_valued[key]

    @property
    def one_cost(self) -> bool:
        """Whether every miss of a true class costs the same, however far off the set is.

        With one side, sets that lie on the other side of the truth miss nothing.
        """
        missed = ~np.eye(self.n_classes, dtype=bool)
        if self.side is not None:
            missed = np.tril(missed) if self.side == "upper" else np.triu(missed)
        return bool((self.units == self.units.max(axis=1, keepdims=True))[missed].all())

    def stake(self, counts: NDArray[np.int64], weights: Sequence[int] | None = None) -> int:
        """Return the largest total loss of this many rows of each true label, in units.

        ``weights`` has the weight of a row of each true label; by default every row counts once.
        """
        each = (
            self.largest if weights is None else [a * b for a, b in zip(self.largest, weights, strict=True)]
        )
        return sum(most * count for most, count in zip(each, counts.tolist(), strict=True))

    def bound_of(self, label: int | None) -> Fraction:
        """Return the largest cost for this true label, or for all labels if it is None."""
        return self.bound if label is None else int(self.units[label].max()) * self.unit

    @cached_property
    def gains(self) -> GainTables:
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
            has_price=G.max(axis=1) > 0,
            weighted=weights is not None,
            bound=float(self.bound),
            rank=np.array([np.unique(row, return_inverse=True)[1] for row in G]),
            one_step=weights is not None,
        )

    def with_levels_of(self, growth: CostTable) -> CostTable:
        """Return this table with the levels of another one: sets grow by the other, and lose by this."""
        made, own = copy(self), self.gains
        levels = growth.gains
        one_step = own.weighted and levels.weighted and np.array_equal(own.has_price, levels.has_price)
        made.__dict__["gains"] = levels._replace(rank=own.rank, one_step=one_step)
        return made

    def of_side(self, side: str) -> CostTable:
        """Return the costs of sets that lie below the truth (``"upper"``) or above it (``"lower"``).

        They depend on that end of the set alone, so its other end is free: ``"upper"`` is for the sets of all
        labels up to an upper end.
        """
        G = np.tril(self.units) if side == "upper" else np.triu(self.units)
        if not G.any():
            lies = "below" if side == "upper" else "above"
            raise ValueError(f"side={side!r}: a set that lies {lies} the truth costs nothing with this loss.")
        made = CostTable(WholeCosts(G, self.unit.denominator).reduced())
        made.side = side
        return made

    def _rounded(self, whole: NDArray[Any]) -> NDArray[np.float64]:
        """Convert whole numbers of units to floating point, rounding each once."""
        per_unit = self.unit.denominator
        if self.units.dtype != object and max(per_unit, int(self.units.max())) <= _EXACT_IN_FLOATS:
            return whole / per_unit
        quotients = [number / per_unit for number in whole.ravel().tolist()]  # Python rounds these once
        return np.array(quotients, np.float64).reshape(whole.shape)


class _Tables:
    """A cache of recently used tables with a limit on their memory."""

    def __init__(self) -> None:
        self.kept: OrderedDict[tuple[HasCosts, int], CostTable] = OrderedDict()
        self.n_bytes = 0
        self._changing = Lock()

    def of(self, loss: HasCosts, n_classes: int) -> CostTable:
        """Return the cached table of an equal loss, or make one and drop the least recently used tables."""
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
    """A cost table in whole numbers of a unit; ``per_unit`` units make 1."""

    units: NDArray[Any]
    per_unit: int

    def over_largest(self) -> WholeCosts:
        return WholeCosts(self.units, int(self.units.max())).reduced()

    def reduced(self) -> WholeCosts:
        """Write the same costs in the largest possible unit."""
        common = math.gcd(self.per_unit, int(np.gcd.reduce(self.units, axis=None)))
        units = self.units // common if common > 1 else self.units
        if units.dtype == object and int(units.max()) < _EXACT_IN_INT64:
            units = units.astype(np.int64)
        return WholeCosts(units, self.per_unit // common)

    def require_controllable(self) -> None:
        """Raise an error if a diagonal cost is not 0 or if costs decrease away from the diagonal."""
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
                f"The cost table has {row[y]} at row {y}, column {y}; the diagonal must be 0, because a set "
                "that includes the truth costs nothing."
            )
        left = [k for k in range(y - 1, -1, -1) if wrong[y, k]]
        near, far = (left[0] + 1, left[0]) if left else (int(wrong[y].argmax()), int(wrong[y].argmax()) + 1)
        raise ValueError(
            f"Row {y} of the cost table decreases away from its diagonal, from {row[near]} in column {near} "
            f"to {row[far]} in column {far}. The guarantee needs costs that do not fall as the miss grows."
        )


def whole_costs(table: Sequence[Sequence[Number]]) -> WholeCosts:
    """Write the costs as whole numbers of a common unit.

    >>> whole_costs(((0, Fraction(1, 6)), (0.5, 0)))
    WholeCosts(units=array([[ 0,  5],
           [15,  0]]), per_unit=30)
    """
    K = len(table)
    require_class_count(K)
    for y, row in enumerate(table):
        if len(row) != K:
            raise ValueError(
                f"A cost table must be square; it has {K} rows, but row {y} has length {len(row)}."
            )
    flat = list(chain.from_iterable(table))  # often has only a few distinct costs
    if set(map(type, flat)) == {float}:
        distinct, where = np.unique(np.array(flat, np.float64), return_inverse=True)
        units, per_unit = in_common_units(distinct.tolist())
        require_bits(int(np.abs(units).max()).bit_length(), K * K)
        return WholeCosts(units[where].reshape(K, K), per_unit)
    # Costs are distinct by type too: the float 0.1 denotes 1/10, an equal Decimal another number.
    units, per_unit = in_common_units(flat, lru_cache(None, typed=True)(ratio))
    return WholeCosts(units.reshape(K, K), per_unit)


def in_common_units(
    numbers: Iterable[Number], ratio_of: Callable[[Number], tuple[int, int]] = ratio
) -> tuple[NDArray[Any], int]:
    """Write the numbers as whole multiples of a common unit; return them and the number of units in 1.

    >>> in_common_units([Fraction(1, 6), Fraction(3, 4)])
    (array([2, 9]), 12)
    """
    ratios = [ratio_of(number) for number in numbers]
    per_unit = 1
    for denominator in {denominator for _, denominator in ratios}:
        per_unit = math.lcm(per_unit, denominator)
        require_bits(per_unit.bit_length())
    longest = max(above.bit_length() - below.bit_length() for above, below in ratios)
    require_bits(per_unit.bit_length() + max(longest, 0), len(ratios))  # before the numbers are computed
    return whole_array([numerator * (per_unit // denominator) for numerator, denominator in ratios]), per_unit


def whole_array(numbers: list[int]) -> NDArray[Any]:
    """Make an array of 64-bit integers, or of Python integers if 64 bits are too few."""
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
    """Return the class weights if the table belongs to a weighted loss, else None."""
    weights = np.append(table[:-1, -1], table[-1, 0])
    off_diagonal = ~np.eye(len(table), dtype=bool)
    return weights if (table == weights[:, None])[off_diagonal].all() else None
