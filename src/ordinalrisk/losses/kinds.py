r"""Losses: what it costs when a set misses the truth.

A loss is a table. ``G[y, k]`` is the cost when the truth is ``y`` and the nearest end of the set is ``k``.
The diagonal is 0, and costs never decrease away from it along a row. Other modules use only the table, not
the kind of loss.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinalrisk.inputs.numbers import (
    LARGEST_POWER,
    Number,
    as_fraction,
    as_number,
    decimal_text,
    from_json,
    percent_text,
    require_bits,
)
from ordinalrisk.losses.cost_table import CostTable, ExactTable, WholeCosts, in_common_units, whole_costs
from ordinalrisk.losses.exact_numbers import (
    ExactParameters,
    as_numbers,
    converted,
    flag,
    items,
    named_values,
    powers,
)

__all__ = ["CostTableLoss", "DivergenceLoss", "WeightedLoss"]


class IntervalLoss(ExactParameters, ABC):
    r"""Base class of losses: a loss gives a cost table for any number of classes.

    The loss of the set ``[l, u]`` when the truth is ``y`` is :math:`G[y, k]`, where ``k`` is the label of the
    set nearest to ``y`` (paper, Eq. 1). Losses are immutable, hashable and comparable, so a grid search can
    vary them like any other parameter.

    Attributes
    ----------
    normalize : bool
        Whether costs are divided by the largest cost.
    """

    called: ClassVar[str | None] = None
    """The name that stands for the loss with default parameters, if it has defaults."""
    normalize: bool

    @property
    def measure(self) -> str:
        """What costs measure, for guarantees about a share: "weight", "distance" or "loss"."""
        return "loss"

    @abstractmethod
    def _natural_costs(self, n_classes: int) -> WholeCosts:
        """Return the table before normalisation; :func:`whole_costs` makes one from numbers."""

    def in_words(self, classes: Sequence[str]) -> str:
        """Describe in one sentence what a miss costs."""
        entry = "the entry of the cost table for the true class and the nearest label of the set"
        return f"A miss costs {entry}{self._share('entry', len(classes))}."

    def promise_in_words(self, alpha: Fraction, n_classes: int) -> str:
        """Describe a mean loss of at most ``alpha`` in words, without a full stop."""
        return f"sets cost {self._at_most(alpha, 'cost', n_classes)} on average"

    def _at_most(self, alpha: Fraction, largest: str, n_classes: int) -> str:
        if not self.normalize:
            return f"at most {decimal_text(alpha)}"
        return f"at most {percent_text(alpha / self.bound(n_classes))} of the largest {largest}"

    def _share(self, cost: str, n_classes: int) -> str:
        if self.normalize:
            return f", as a share of the largest {cost}"
        return f"; the largest cost is {decimal_text(self.bound(n_classes))}"

    def exact_costs(self, n_classes: int) -> ExactTable:
        """Return the cost table as exact rationals.

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
        """Return the cost table in whole numbers of its largest unit, after any normalisation."""
        natural = self._natural_costs(n_classes)
        natural.require_controllable()
        if not natural.units.any():
            raise ValueError(f"All costs of {self!r} are 0; at least one must be positive.")
        return natural.over_largest() if self.normalize else natural.reduced()

    def cost_table(self, n_classes: int) -> NDArray[np.float64]:
        """Return the table ``G`` in floating point.

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
        r"""Return the largest cost :math:`B = \max_{y, k} G[y, k]`; ``alpha`` must be smaller.

        Parameters
        ----------
        n_classes : int
            The number of labels ``K``.

        Returns
        -------
        Fraction
            The largest cost; 1 for a normalized loss.

        Examples
        --------
        >>> WeightedLoss([1, 1, 2]).bound(3), WeightedLoss([1, 1, 2], normalize=False).bound(3)
        (Fraction(1, 1), Fraction(2, 1))
        """
        return CostTable.of(self, n_classes).bound


@dataclass(frozen=True, init=False, repr=False, eq=False)
class WeightedLoss(IntervalLoss):
    r"""A loss with the same cost for every miss of a true class (paper, Section 2.3).

    .. math:: G[y, k] = h_y \quad (k \ne y)

    Parameters
    ----------
    weights : sequence of numbers, optional
        One non-negative weight ``h`` for each class, in label order. By default all weights are 1: the loss
        is plain miscoverage, which ``"coverage"`` also stands for.
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
    called: ClassVar[str | None] = "coverage"

    def __init__(self, weights: ArrayLike | Iterable[Any] | None = None, normalize: bool = True) -> None:
        self._freeze(weights=as_numbers(weights, "weights"), normalize=flag(normalize))
        if self.weights is None:
            return
        for i, weight in enumerate(self.weights):
            if weight < 0:
                raise ValueError(f"weights must not be negative; weight {i} is {weight}.")
        if not any(self.weights):
            raise ValueError("weights are all zero; give at least one class a positive weight.")

    @property
    def measure(self) -> str:
        return "weight"

    def _natural_costs(self, n_classes: int) -> WholeCosts:
        weights = (1,) * n_classes if self.weights is None else self.weights
        if len(weights) != n_classes:
            raise ValueError(f"WeightedLoss has {len(weights)} weights, but there are {n_classes} classes.")
        h, per_unit = in_common_units(weights)
        require_bits(int(h.max()).bit_length(), n_classes**2)
        return WholeCosts(np.where(np.eye(n_classes, dtype=bool), 0, h[:, None]), per_unit)

    def in_words(self, classes: Sequence[str]) -> str:
        by_class = [max(row) for row in self.exact_costs(len(classes))]
        if set(by_class) == {1}:
            return (
                "Every miss costs 1, near or far and in every class: "
                "the average loss is the share of sets that miss the truth."
            )
        return f"The cost of a miss depends only on the true class: {named_values(classes, by_class)}."

    def promise_in_words(self, alpha: Fraction, n_classes: int) -> str:
        bound = self.bound(n_classes)
        if all(max(row) == bound for row in self.exact_costs(n_classes)):
            return f"at most {percent_text(alpha / bound)} of sets miss the truth"
        return f"sets cost {self._at_most(alpha, 'weight', n_classes)} on average"


@dataclass(frozen=True, init=False, repr=False, eq=False)
class DivergenceLoss(IntervalLoss):
    r"""Distance from the true label to the set, as a share of the scale (paper, Section 2.4, Eq. 8).

    .. math:: G[y, k] = c_{yk} \, |v_y - v_k|^p, \qquad
              c_{yk} = \text{under if } k < y, \text{ over if } k > y

    divided by its largest value unless ``normalize=False``.

    Parameters
    ----------
    power : number
        The exponent ``p > 0``, at most 100; 1 in the paper.
    positions : sequence of numbers, optional
        The positions of the labels, strictly increasing: years, euros, grades. By default
        ``0, 1, ..., K-1``.
    under, over : number
        Factors for a set that lies below the truth, and for a set that lies above it.
    normalize : bool
        Divide by the largest cost, so that the loss lies in [0, 1]. If False, ``alpha`` has the units of
        ``positions`` (to the power ``p``), as in "at most 2 years off on average".

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
    called: ClassVar[str | None] = "divergence"

    def __init__(
        self,
        power: Any = 1,
        positions: ArrayLike | Iterable[Any] | None = None,
        under: Any = 1,
        over: Any = 1,
        normalize: bool = True,
    ) -> None:
        self._freeze(
            power=as_number(power, "power"),
            positions=as_numbers(positions, "positions"),
            under=as_number(under, "under"),
            over=as_number(over, "over"),
            normalize=flag(normalize),
        )
        if self.power <= 0:
            raise ValueError(f"power must be positive; got {self.power}.")
        if self.power > LARGEST_POWER:
            raise ValueError(f"power must be at most {LARGEST_POWER}; got {self.power}.")
        if self.under < 0 or self.over < 0:
            raise ValueError(f"under and over must not be negative; got {self.under} and {self.over}.")
        if self.under == 0 and self.over == 0:
            raise ValueError("under and over are both zero; make at least one of them positive.")
        for i, (here, there) in enumerate(pairwise(self.positions or ())):
            if as_fraction(there) <= as_fraction(here):
                raise ValueError(f"positions must increase strictly; positions[{i}] is {here}, then {there}.")

    @property
    def measure(self) -> str:
        """A power of the distance, or a multiple of it on one side, is a loss, but not a distance."""
        return "distance" if self.power == self.under == self.over == 1 else "loss"

    def _natural_costs(self, n_classes: int) -> WholeCosts:
        positions = range(n_classes) if self.positions is None else self.positions
        if len(positions) != n_classes:
            raise ValueError(
                f"DivergenceLoss has {len(positions)} positions, but there are {n_classes} classes."
            )
        under, over, power = (as_fraction(value) for value in (self.under, self.over, self.power))
        v, part = in_common_units(positions)
        bits = math.ceil(power * max(part, int(v[-1] - v[0])).bit_length())
        require_bits(bits, n_classes**2 if power.denominator == 1 else 1)  # before powers are computed
        distances, place = np.unique(np.abs(v[:, None] - v), return_inverse=True)
        costs, per_unit = powers(distances.tolist(), part, power)
        factors, per_factor = in_common_units([under, over])
        bits = int(costs.max()).bit_length() + int(factors.max()).bit_length()
        require_bits(bits, n_classes**2)
        costs = costs if bits < 63 else costs.astype(object)
        below, above = (
            (costs * factor)[place.reshape(n_classes, -1)] for factor in map(int, factors.tolist())
        )
        return WholeCosts(np.where(np.tri(n_classes, k=-1, dtype=bool), below, above), per_unit * per_factor)

    def in_words(self, classes: Sequence[str]) -> str:
        power = as_fraction(self.power)
        squared = "squared " if power == 2 else ""
        distance = f"the {squared}distance in labels from the truth to the set"
        if self.positions is not None:
            at = named_values(classes, map(as_fraction, self.positions))
            distance = f"the {squared}distance from the truth to the set on the scale {at}"
        raised = "" if power in (1, 2) else f", to the power {decimal_text(power)}"
        sides = "".join(
            f", times {decimal_text(as_fraction(factor))} where the set lies {side} the truth"
            for factor, side in ((self.under, "below"), (self.over, "above"))
            if factor != 1
        )
        return f"A miss costs {distance}{raised}{sides}{self._share('such cost', len(classes))}."

    def promise_in_words(self, alpha: Fraction, n_classes: int) -> str:
        if self.measure != "distance":
            return super().promise_in_words(alpha, n_classes)
        unit = " of the scale" if self.normalize else " labels" if self.positions is None else ""
        return f"sets are at most {decimal_text(alpha)}{unit} away from the truth on average"


@dataclass(frozen=True, init=False, repr=False, eq=False)
class CostTableLoss(IntervalLoss):
    r"""Your own cost table, such as one that a hospital or a bank uses.

    The guarantee only needs

    .. math:: G[y, k] \le G[y, k'] \quad \text{if } y \le k \le k' \text{ or } k' \le k \le y,
              \qquad G[y, y] = 0,

    so a larger set never costs more (paper, Section 2.2).

    Parameters
    ----------
    table : array-like of shape (K, K)
        ``table[y][k]`` is the cost when the truth is ``y`` and the nearest end of the set is ``k``. The
        diagonal must be 0, and costs must not decrease away from it along a row.
    normalize : bool
        Divide by the largest cost. If False, ``alpha`` has the units of the table.

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
            as_numbers(row, f"row {y} of the cost table") or () for y, row in enumerate(items(table, "table"))
        ]
        self._freeze(table=tuple(rows), normalize=flag(normalize))
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
"""Every loss by its kind: saved files, the command line and tests read this list."""
NAMED_LOSSES = {loss.called: loss for loss in LOSSES.values() if loss.called is not None}
"""The losses that have a name."""


def as_loss(loss: Any) -> IntervalLoss:
    """Return the loss for an :class:`IntervalLoss`, a name such as ``"coverage"``, or a table."""
    if isinstance(loss, IntervalLoss):
        return loss
    if isinstance(loss, str):
        if loss not in NAMED_LOSSES:
            raise ValueError(f"loss={loss!r} is not known; the names are {sorted(NAMED_LOSSES)}.")
        return NAMED_LOSSES[loss]()
    if not isinstance(loss, Iterable) or isinstance(loss, type):
        meant = (
            f" If this is the largest expected loss to allow, pass alpha={loss!r}."
            if isinstance(loss, Real)
            else ""
        )
        raise ValueError(
            f"loss must be a loss such as WeightedLoss([1, 1, 2]), one of the names "
            f"{sorted(NAMED_LOSSES)} or a cost table; got {loss!r}.{meant}"
        )
    return CostTableLoss(loss)


def of_side(loss: IntervalLoss, side: str | None, n_classes: int) -> IntervalLoss:
    """Return the loss of sets on one side of the truth; the same loss if there is no side.

    >>> of_side(WeightedLoss(), "upper", 3).cost_table(3)
    array([[0., 0., 0.],
           [1., 0., 0.],
           [1., 1., 0.]])
    """
    if side is None:
        return loss
    return CostTableLoss(CostTable.of(loss, n_classes).of_side(side).exact, normalize=False)


def loss_in_words(loss: IntervalLoss, classes: Sequence[str], side: str | None) -> str:
    """Describe what a miss costs, and on which side of the truth."""
    if side is None:
        return loss.in_words(classes)
    lies = "below" if side == "upper" else "above"
    return f"Only sets that lie {lies} the truth count as misses. {loss.in_words(classes)}"


def loss_from_dict(description: dict[str, Any]) -> IntervalLoss:
    """Return the loss that :meth:`IntervalLoss.to_dict` described."""
    loss = LOSSES[description["kind"]]
    parameters = {
        name: converted(value, from_json, list) for name, value in description.items() if name != "kind"
    }
    expected = {field.name for field in fields(loss)}  # type: ignore[arg-type]
    if parameters.keys() != expected:
        raise ValueError(f"must have {sorted(expected)} in addition to its kind; got {sorted(parameters)}")
    return loss(**parameters)
