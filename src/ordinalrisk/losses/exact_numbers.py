"""Handle the parameters of losses as exact numbers: read them, raise them to a power, list them in words."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import fields
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import library_of, to_numpy
from ordinalrisk.inputs.numbers import Number, as_fraction, as_number, decimal_text, to_json
from ordinalrisk.losses.cost_table import in_common_units, whole_array

# A fractional power of a distance is irrational. Rounding it to this many digits with decimal arithmetic
# makes the cost the same on every machine.
_IRRATIONAL_DIGITS = 15
_MOST_IRRATIONAL = 50_000  # this many take some seconds
_FEW = 12


class ExactParameters:
    """A frozen dataclass of exact numbers that compares by value, is hashable and can be saved as JSON."""

    kind: ClassVar[str]
    """The name in saved files."""

    def _freeze(self, **values: Any) -> None:
        """Set the fields; only constructors call this."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def _exact_fields(self) -> tuple[Any, ...]:
        """The parameters as exact rationals: 0.1 is 1/10, not the nearest binary fraction."""
        return tuple(converted([*self._parameters.values()], lru_cache(None, typed=True)(as_fraction)))

    @property
    def _parameters(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactParameters) or type(other) is not type(self):
            return NotImplemented
        return self._exact_fields == other._exact_fields

    @cached_property
    def _hash(self) -> int:
        return hash((type(self), self._exact_fields))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_hash"}  # differs by process

    def __repr__(self) -> str:
        defaults = {field.name: field.default for field in fields(self)}  # type: ignore[arg-type]
        changed = [
            f"{name}={converted(value, lambda number: number, list)!r}"
            for name, value in self._parameters.items()
            if value != defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def to_dict(self) -> dict[str, Any]:
        """Describe the loss for JSON; :func:`~ordinalrisk.losses.kinds.loss_from_dict` reads it back."""
        return {"kind": self.kind} | {
            name: converted(value, to_json, list) for name, value in self._parameters.items()
        }


def powers(distances: list[int], part: int, power: Fraction) -> tuple[NDArray[Any], int]:
    """Return each ``(distance / part) ** power`` in whole units, and the number of units in 1."""
    if power.denominator == 1:
        return whole_array([distance**power.numerator for distance in distances]), part**power.numerator
    if len(distances) > _MOST_IRRATIONAL:
        raise ValueError(
            f"A fractional power of {len(distances)} distances takes too long; at most "
            f"{_MOST_IRRATIONAL} are supported. Use a whole power or evenly spaced positions."
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


def items(values: Any, name: str) -> list[Any]:
    """List the items of a sequence or array, or the rows of a frame; raise an error for unordered values."""
    if hasattr(values, "columns") or library_of(values) == "torch":
        values = to_numpy(values, name)  # frames would iterate over columns
    try:
        if isinstance(values, Mapping | Set | str | bytes):
            raise TypeError
        return list(values)
    except TypeError:
        raise ValueError(f"{name} must be a sequence of numbers; got {values!r}.") from None


def as_numbers(values: Any, name: str) -> tuple[Number, ...] | None:
    """Read numbers from any sequence; None stays None."""
    if values is None:
        return None
    return tuple([as_number(value, f"{name}[{i}]") for i, value in enumerate(items(values, name))])


def flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"normalize must be True or False; got {value!r}.")
    return bool(value)


def converted(value: Any, convert: Callable[[Any], Any], into: type = tuple) -> Any:
    """Convert each number in nested sequences, leaving None, True and False unchanged."""
    if isinstance(value, tuple | list):
        return into([converted(item, convert, into) for item in value])
    return value if value is None or isinstance(value, bool) else convert(value)


def named_values(classes: Sequence[str], values: Iterable[Fraction]) -> str:
    """List a number for each class, as in "0.5 for Mild, 1 for Severe"; shorten long lists."""
    pairs = [f"{decimal_text(value)} for {label}" for label, value in zip(classes, values, strict=True)]
    if len(pairs) > _FEW:
        pairs[_FEW // 2 : -_FEW // 2] = ["..."]
    return ", ".join(pairs)
