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
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.exact import decimal_text, require_bits, require_classes

if TYPE_CHECKING:
    from ordinalrisk.losses import IntervalLoss

ExactTable = tuple[tuple[Fraction, ...], ...]
LARGEST_COST = Fraction(np.finfo(np.float64).max)
_CACHED_BYTES = 2**26  # of tables that are kept for the next call; the last one is kept whatever its size
_BYTES_OF_A_COST = 48  # its rational, whole, floating-point and ranked forms and its two gains
_EXACT_IN_FLOATS = 2**53


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
        self.exact = exact
        self.units, per_unit = whole_costs(exact)
        self.unit = Fraction(1, per_unit)
        self.n_classes = len(exact)
        if self.bound > LARGEST_COST:
            raise ValueError("The largest cost is too large for a float; use normalize=True or larger units.")

    unit: Fraction
    """The largest ``1 / m``, ``m`` a whole number, of which every cost is a whole multiple."""

    units: NDArray[Any]
    """``G`` in whole multiples of ``unit``; Python integers where 64 bits are too few."""

    @staticmethod
    def of(loss: IntervalLoss, n_classes: int) -> CostTable:
        """The table of ``loss`` for so many classes."""
        return _kept(loss, n_classes)

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


_cache: OrderedDict[tuple[IntervalLoss, int], CostTable] = OrderedDict()
_changing_cache = Lock()


def _kept(loss: IntervalLoss, n_classes: int) -> CostTable:
    """The table that was last made of an equal loss, or a new one in place of those that were used least."""
    with _changing_cache:
        if (loss, n_classes) in _cache:
            _cache.move_to_end((loss, n_classes))
            return _cache[loss, n_classes]
    table = CostTable(loss.exact_costs(n_classes))
    with _changing_cache:
        _cache[loss, n_classes] = table
        while len(_cache) > 1 and sum(map(_n_bytes, _cache.values())) > _CACHED_BYTES:
            _cache.popitem(last=False)
    return table


def _n_bytes(table: CostTable) -> int:
    wide = int(table.units.max()).bit_length() // 8 if table.units.dtype == object else 0
    return table.n_classes**2 * (_BYTES_OF_A_COST + wide)


def whole_costs(table: ExactTable) -> tuple[NDArray[Any], int]:
    """The costs as whole numbers, and how many of these make 1, if risk can be controlled with the table.

    Examples
    --------
    >>> whole_costs(((Fraction(0), Fraction(1, 6)), (Fraction(1, 4), Fraction(0))))
    (array([[0, 2],
           [3, 0]]), 12)
    """
    K = len(table)
    require_classes(K)
    for y, row in enumerate(table):
        if len(row) != K:
            raise ValueError(
                f"A cost table must be square; it has {K} rows, but row {y} has length {len(row)}."
            )
    distinct = {id(cost): cost for row in table for cost in row}  # tables repeat a few costs many times
    per_unit = common_denominator(distinct.values())
    number = {i: cost.numerator * (per_unit // cost.denominator) for i, cost in distinct.items()}
    largest = max(map(abs, number.values()))
    require_bits(largest.bit_length(), len(distinct))
    rows = [[number[id(cost)] for cost in row] for row in table]
    whole = np.array(rows, dtype=np.int64 if largest < 2**62 else object)
    _require_controllable(whole, table)
    return whole, per_unit


def common_denominator(numbers: Iterable[Fraction]) -> int:
    """The least common multiple of the denominators.

    Examples
    --------
    >>> common_denominator([Fraction(1, 6), Fraction(3, 4)])
    12
    """
    common = 1
    for denominator in {number.denominator for number in numbers}:
        common = math.lcm(common, denominator)
        require_bits(common.bit_length())
    return common


def _require_controllable(whole: NDArray[Any], table: ExactTable) -> None:
    """Refuse costs on the diagonal and rows that fall away from it; the first row is named."""
    K = len(whole)
    falls = whole[:, 1:] < whole[:, :-1]
    upper = np.triu(np.ones((K, K), bool))[:, :-1]
    wrong = np.where(upper, falls, whole[:, :-1] < whole[:, 1:])
    costly = np.diagonal(whole) != 0
    if not (wrong.any() or costly.any()):
        return
    y = int((wrong.any(axis=1) | costly).argmax())
    row = table[y]
    if row[y] != 0:
        raise ValueError(
            f"A covered label costs nothing, but the cost table has {decimal_text(row[y])} at row {y}, "
            f"column {y}; the diagonal must be 0."
        )
    left = [k for k in range(y - 1, -1, -1) if wrong[y, k]]
    near, far = (left[0] + 1, left[0]) if left else (int(wrong[y].argmax()), int(wrong[y].argmax()) + 1)
    raise ValueError(
        f"Row {y} of the cost table decreases away from its diagonal, from {decimal_text(row[near])} in "
        f"column {near} to {decimal_text(row[far])} in column {far}: "
        "such a loss voids the guarantee. Costs must not fall as the miss grows."
    )


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
