r"""Losses: what it costs when the interval misses the truth.

A loss is a table. ``G[y, k]`` is the cost when the truth is ``y`` and the end of the interval nearest to
it is ``k``; it is 0 on the diagonal and never decreases while moving away from it along a row. Nothing
downstream knows where a table came from.
"""

from __future__ import annotations

import decimal
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.numbers import (
    LARGEST_POWER,
    Number,
    as_fraction,
    as_number,
    from_json,
    require_bits,
    to_json,
)
from ordinalrisk.losses.cost_table import (
    CostTable,
    ExactTable,
    WholeCosts,
    in_common_units,
    whole_array,
    whole_costs,
)

# Irrational costs (a fractional power of a distance) are part of the loss's definition: rounding them to
# this many digits with decimal arithmetic makes them the same on every machine.
_IRRATIONAL_DIGITS = 15
_MOST_IRRATIONAL = 50_000  # they take some seconds


class IntervalLoss(ABC):
    r"""A loss of an interval, given as a cost table for any number of classes.

    The loss of ``[l, u]`` when the truth is ``y`` is :math:`G[y, k]`, where ``k`` is the label of the
    interval nearest to ``y`` (paper, Eq. 1). Losses are immutable, hashable and comparable, so they can be
    grid-searched like any other parameter.

    Attributes
    ----------
    normalize : bool
        Whether costs are divided by the largest.
    """

    kind: ClassVar[str]
    normalize: bool

    @abstractmethod
    def _natural_costs(self, n_classes: int) -> WholeCosts:
        """The table in natural units, before any normalisation; :func:`whole_costs` makes it of numbers."""

    def exact_costs(self, n_classes: int) -> ExactTable:
        """The cost table as exact rationals.

        Parameters
        ----------
        n_classes : int
            The number of labels ``K``.

        Returns
        -------
        tuple of tuples of Fraction
            ``G[y][k]`` in row ``y``.

        Examples
        --------
        >>> WeightedLoss([0.1, 0.3]).exact_costs(2)
        ((Fraction(0, 1), Fraction(1, 3)), (Fraction(1, 1), Fraction(0, 1)))
        """
        return CostTable.of(self, n_classes).exact

    def whole_costs(self, n_classes: int) -> WholeCosts:
        """The cost table in whole numbers of its largest unit, normalized if this loss is."""
        natural = self._natural_costs(n_classes)
        natural.require_controllable()
        if not natural.units.any():
            raise ValueError(f"{self!r} costs nothing whatever happens; some cost must be positive.")
        return natural.over_largest() if self.normalize else natural.reduced()

    def cost_table(self, n_classes: int) -> NDArray[np.float64]:
        """The table ``G`` in floating point.

        Parameters
        ----------
        n_classes : int
            The number of labels ``K``.

        Returns
        -------
        array of shape (K, K)
            ``G[y, k]`` in row ``y`` and column ``k``.

        Examples
        --------
        >>> DivergenceLoss(power=2).cost_table(3)
        array([[0.  , 0.25, 1.  ],
               [0.25, 0.  , 0.25],
               [1.  , 0.25, 0.  ]])
        """
        return CostTable.of(self, n_classes).values.copy()

    def bound(self, n_classes: int) -> Fraction:
        r"""The largest cost :math:`B = \max_{y, k} G[y, k]`; ``alpha`` lies between 0 and it.

        Parameters
        ----------
        n_classes : int
            The number of labels ``K``.

        Returns
        -------
        Fraction
            1 for a normalized loss.

        Examples
        --------
        >>> WeightedLoss([1, 1, 2]).bound(3), WeightedLoss([1, 1, 2], normalize=False).bound(3)
        (Fraction(1, 1), Fraction(2, 1))
        """
        return CostTable.of(self, n_classes).bound

    @cached_property
    def _exact_fields(self) -> tuple[Any, ...]:
        """The parameters as the rationals they spell out: 0.1 is 1/10 and not the binary fraction near it."""
        return _exactly(tuple(getattr(self, field.name) for field in fields(self)), {})  # type: ignore

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IntervalLoss) or type(other) is not type(self):
            return NotImplemented
        return self._exact_fields == other._exact_fields

    @cached_property
    def _hash(self) -> int:
        return hash((type(self), self._exact_fields))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_hash"}  # it differs elsewhere

    def __repr__(self) -> str:
        given = [
            f"{field.name}={_text(getattr(self, field.name))}"
            for field in fields(self)  # type: ignore[arg-type]
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description that :func:`loss_from_dict` reads back."""
        return {"kind": self.kind} | {
            field.name: _jsonable(getattr(self, field.name))
            for field in fields(self)  # type: ignore[arg-type]
        }


@dataclass(frozen=True, init=False, repr=False, eq=False)
class WeightedLoss(IntervalLoss):
    r"""A cost for every miss that depends on the true class only (paper, Section 2.3).

    .. math:: G[y, k] = h_y \quad (k \ne y)

    Parameters
    ----------
    weights : sequence of numbers, optional
        One non-negative weight ``h`` for each class, in label order. By default all are 1: the loss is
        plain miscoverage, also spelled ``"coverage"``.
    normalize : bool
        Divide by the largest weight, as in the paper, so that the loss lies in [0, 1].

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Section 2.3.

    Examples
    --------
    >>> WeightedLoss([1, 1, 2]).cost_table(3)
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [1. , 1. , 0. ]])
    """

    weights: tuple[Number, ...] | None = None
    normalize: bool = True
    kind: ClassVar[str] = "weighted"

    def __init__(self, weights: ArrayLike | Iterable[Any] | None = None, normalize: bool = True) -> None:
        _freeze(self, weights=_numbers(weights, "weights"), normalize=_flag(normalize))
        if self.weights is None:
            return
        for i, weight in enumerate(self.weights):
            if weight < 0:
                raise ValueError(f"weights must not be negative; weight {i} is {weight}.")
        if not any(self.weights):
            raise ValueError("weights are all zero; give at least one class a positive weight.")

    def _natural_costs(self, n_classes: int) -> WholeCosts:
        weights = (1,) * n_classes if self.weights is None else self.weights
        if len(weights) != n_classes:
            raise ValueError(f"WeightedLoss has {len(weights)} weights, but there are {n_classes} classes.")
        h, per_unit = in_common_units([as_fraction(weight) for weight in weights])
        require_bits(int(h.max()).bit_length(), n_classes**2)
        return WholeCosts(np.where(np.eye(n_classes, dtype=bool), 0, h[:, None]), per_unit)


@dataclass(frozen=True, init=False, repr=False, eq=False)
class DivergenceLoss(IntervalLoss):
    r"""Distance from the label to the interval, as a share of the scale (paper, Section 2.4, Eq. 8).

    .. math:: G[y, k] = c_{yk} \, |v_y - v_k|^p, \qquad
              c_{yk} = \text{under if } k < y, \text{ over if } k > y

    divided by its largest value unless ``normalize=False``.

    Parameters
    ----------
    power : number
        The exponent ``p > 0``, at most 100; 1 in the paper.
    positions : sequence of numbers, optional
        Where the labels lie, strictly increasing: years, euros, grades. By default ``0, 1, ..., K-1``.
    under, over : number
        Factors for an interval that lies below the truth, and above it.
    normalize : bool
        Divide by the largest cost, so that the loss lies in [0, 1]. Without, ``alpha`` has the units of
        ``positions`` (to the power ``p``): "at most 2 years wrong on average".

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Section 2.4, Eq. 8.

    Examples
    --------
    >>> DivergenceLoss().cost_table(3)
    array([[0. , 0.5, 1. ],
           [0.5, 0. , 0.5],
           [1. , 0.5, 0. ]])
    >>> DivergenceLoss(positions=[18, 30, 65], under=2, normalize=False).cost_table(3)
    array([[ 0., 12., 47.],
           [24.,  0., 35.],
           [94., 70.,  0.]])
    """

    power: Number = 1
    positions: tuple[Number, ...] | None = None
    under: Number = 1
    over: Number = 1
    normalize: bool = True
    kind: ClassVar[str] = "divergence"

    def __init__(
        self,
        power: Any = 1,
        positions: ArrayLike | Iterable[Any] | None = None,
        under: Any = 1,
        over: Any = 1,
        normalize: bool = True,
    ) -> None:
        _freeze(
            self,
            power=as_number(power, "power"),
            positions=_numbers(positions, "positions"),
            under=as_number(under, "under"),
            over=as_number(over, "over"),
            normalize=_flag(normalize),
        )
        if self.power <= 0:
            raise ValueError(f"power must be positive; got {self.power}.")
        if self.power > LARGEST_POWER:
            raise ValueError(f"power must be at most {LARGEST_POWER}; got {self.power}.")
        if self.under < 0 or self.over < 0:
            raise ValueError(f"under and over must not be negative; got {self.under} and {self.over}.")
        if self.under == 0 and self.over == 0:
            raise ValueError("under and over are both zero; make at least one of them positive.")
        steps = zip(self.positions or (), (self.positions or ())[1:], strict=False)
        for i, (here, there) in enumerate(steps):
            if as_fraction(there) <= as_fraction(here):
                raise ValueError(f"positions must increase strictly; {here} at {i} is followed by {there}.")

    def _natural_costs(self, n_classes: int) -> WholeCosts:
        positions = range(n_classes) if self.positions is None else self.positions
        if len(positions) != n_classes:
            raise ValueError(
                f"DivergenceLoss has {len(positions)} positions, but there are {n_classes} classes."
            )
        under, over, power = (as_fraction(value) for value in (self.under, self.over, self.power))
        v, part = in_common_units([as_fraction(position) for position in positions])
        bits = math.ceil(power * max(part, int(v[-1] - v[0])).bit_length())
        require_bits(bits, n_classes**2 if power.denominator == 1 else 1)  # before powers are there
        distances, place = np.unique(np.abs(v[:, None] - v), return_inverse=True)
        costs, per_unit = _powers(distances.tolist(), part, power)
        factors, per_factor = in_common_units([under, over])
        bits = int(costs.max()).bit_length() + int(factors.max()).bit_length()
        require_bits(bits, n_classes**2)
        costs = costs if bits < 63 else costs.astype(object)
        below, above = (
            (costs * factor)[place.reshape(n_classes, -1)] for factor in map(int, factors.tolist())
        )
        return WholeCosts(np.where(np.tri(n_classes, k=-1, dtype=bool), below, above), per_unit * per_factor)


@dataclass(frozen=True, init=False, repr=False, eq=False)
class CostTableLoss(IntervalLoss):
    r"""Any cost table: the hospital's or the bank's own.

    .. math:: G[y, k] \le G[y, k'] \quad \text{if } y \le k \le k' \text{ or } k' \le k \le y,
              \qquad G[y, y] = 0

    is all that the guarantee asks of a loss (paper, Section 2.2: the weight function decreases as the set
    grows).

    Parameters
    ----------
    table : array-like of shape (K, K)
        ``table[y][k]`` is the cost when the truth is ``y`` and the nearest end of the interval is ``k``.
        The diagonal is 0, and no row decreases while moving away from it: otherwise a larger interval
        could cost more and nothing could be guaranteed.
    normalize : bool
        Divide by the largest cost. Without, ``alpha`` has the units of the table.

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Eq. 1, Section 2.2.

    Examples
    --------
    >>> CostTableLoss([[0, 1, 2], [5, 0, 1], [50, 20, 0]], normalize=False).bound(3)
    Fraction(50, 1)
    """

    table: tuple[tuple[Number, ...], ...]
    normalize: bool = True
    kind: ClassVar[str] = "table"

    def __init__(self, table: ArrayLike | Iterable[Any], normalize: bool = True) -> None:
        rows = [
            _numbers(row, f"row {y} of the cost table") or () for y, row in enumerate(_items(table, "table"))
        ]
        _freeze(self, table=tuple(rows), normalize=_flag(normalize))
        self._natural_costs(len(rows))

    @cached_property
    def _costs(self) -> WholeCosts:
        whole = whole_costs(self.table)
        whole.require_controllable()
        return whole.reduced()

    def _natural_costs(self, n_classes: int) -> WholeCosts:
        if len(self.table) != n_classes:
            raise ValueError(
                f"CostTableLoss has {len(self.table)} rows and columns, but there are {n_classes} classes."
            )
        return self._costs

    @cached_property
    def _exact_fields(self) -> tuple[Any, ...]:
        units, per_unit = self._costs
        numbers = tuple(units.ravel().tolist()) if units.dtype == object else units.tobytes()
        return numbers, per_unit, self.normalize


LOSSES: dict[str, type[IntervalLoss]] = {
    loss.kind: loss for loss in (WeightedLoss, DivergenceLoss, CostTableLoss)
}


def as_loss(loss: Any) -> IntervalLoss:
    """The loss meant by an :class:`IntervalLoss`, a name (``"coverage"``, ``"divergence"``) or a table.

    Examples
    --------
    >>> as_loss("coverage")
    WeightedLoss()
    """
    named: dict[str, type[IntervalLoss]] = {"coverage": WeightedLoss, "divergence": DivergenceLoss}
    if isinstance(loss, IntervalLoss):
        return loss
    if isinstance(loss, str):
        if loss not in named:
            raise ValueError(f"loss={loss!r} is not known; the names are {sorted(named)}.")
        return named[loss]()
    if not isinstance(loss, Iterable) or isinstance(loss, type):
        raise ValueError(
            f"loss must be a loss such as WeightedLoss([1, 1, 2]), one of the names {sorted(named)} or a "
            f"cost table; got {loss!r}."
        )
    return CostTableLoss(loss)


def loss_from_dict(description: dict[str, Any]) -> IntervalLoss:
    """The loss that :meth:`IntervalLoss.to_dict` described."""
    loss = LOSSES[description["kind"]]
    parameters = {name: _from_jsonable(value) for name, value in description.items() if name != "kind"}
    expected = {field.name for field in fields(loss)}  # type: ignore[arg-type]
    if parameters.keys() != expected:
        raise ValueError(f"must have {sorted(expected)} beside its kind; got {sorted(parameters)}")
    return loss(**parameters)


def _powers(distances: list[int], part: int, power: Fraction) -> tuple[NDArray[Any], int]:
    """``(distance / part) ** power`` of each in common units."""
    if power.denominator == 1:
        return whole_array([distance**power.numerator for distance in distances]), part**power.numerator
    if len(distances) > _MOST_IRRATIONAL:
        raise ValueError(
            f"A fractional power of {len(distances)} distances takes too long; at most "
            f"{_MOST_IRRATIONAL} are supported. Take a whole power or evenly spaced positions."
        )
    return in_common_units([_irrational(Fraction(distance, part), power) for distance in distances])


def _irrational(distance: Fraction, power: Fraction) -> Fraction:
    if distance == 0:
        return distance
    with decimal.localcontext(prec=2 * _IRRATIONAL_DIGITS) as context:
        value = _quotient(distance) ** _quotient(power)
        context.prec = _IRRATIONAL_DIGITS
        return Fraction(+value)


def _quotient(value: Fraction) -> decimal.Decimal:
    return decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)


def _freeze(loss: IntervalLoss, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(loss, name, value)


def _items(values: Any, name: str) -> list[Any]:
    if hasattr(values, "columns") or type(values).__module__.partition(".")[0] == "torch":
        values = to_numpy(values, name)  # frames iterate over their columns, a cost table is read by rows
    try:
        if isinstance(values, Mapping | Set | str | bytes):
            raise TypeError
        return list(values)
    except TypeError:
        raise ValueError(f"{name} must be a sequence of numbers; got {values!r}.") from None


def _numbers(values: Any, name: str) -> tuple[Number, ...] | None:
    if values is None:
        return None
    return tuple([as_number(value, f"{name}[{i}]") for i, value in enumerate(_items(values, name))])


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"normalize must be True or False; got {value!r}.")
    return bool(value)


def _exactly(value: Any, known: dict[Any, Fraction]) -> Any:
    """The value with each number in it as a rational; equal ones are one object."""
    if isinstance(value, tuple):
        return tuple([_exactly(item, known) for item in value])
    if value is None or isinstance(value, bool):
        return value
    if (type(value), value) not in known:
        known[type(value), value] = as_fraction(value)
    return known[type(value), value]


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_text(item) for item in value)}]"
    return repr(value)


def _jsonable(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_jsonable(item) for item in value]
    return value if value is None or isinstance(value, bool) else to_json(value)


def _from_jsonable(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_jsonable(item) for item in value]
    return value if value is None or isinstance(value, bool) else from_json(value)
