"""Numbers as they were written: ``0.29`` is 29/100, not the nearest binary fraction.

A guarantee is decided by comparing a total loss with a budget. Both are rationals here, so that no
rounding and no tolerance takes part in the decision.

Exact numbers can be small to write and large to compute with, so those that come from outside have limits.
"""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

Number = int | float | Fraction | Decimal

MOST_DIGITS = 4_300  # in a whole number, above and below the bar of a ratio; Python reads no more from text
LARGEST_EXPONENT = 1_000  # of ten: beyond all floats
LARGEST_POWER = 100  # of a distance: already only the farthest misses count
MOST_CLASSES = 5_000  # a cost table of so many takes about a gigabyte
MOST_ROWS = 10**12  # floats hold all whole numbers up to some thousand times that
_MOST_BITS = 20_000  # of a cost as a whole number of units
_MOST_BITS_IN_ALL = 2**31  # of all distinct costs of a table
_TOO_LONG = 10**MOST_DIGITS
_TOO_LONG_TO_READ = 10**40
_SIX_DIGITS = Context(prec=6, Emin=-10_000, Emax=10_000)
_FLOAT = re.compile(r"[+-]?\d{1,17}\.\d{1,17}(?:e[+-]\d{1,3})?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+/\d+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?(\d+))?)", re.ASCII)


def as_fraction(value: Any, name: str = "value") -> Fraction:
    """The rational that ``value`` spells out in decimals.

    Numbers may have up to 4,300 digits and an exponent of ten of up to 1,000.

    Examples
    --------
    >>> as_fraction(0.29)
    Fraction(29, 100)
    >>> as_fraction("1/3")
    Fraction(1, 3)
    >>> as_fraction("1e999999999", "alpha")
    Traceback (most recent call last):
    ValueError: alpha is too long a number: at most 4300 digits and an exponent of ten up to 1000 are allowed.
    """
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return _not_too_long(Fraction(value), name)
    text = str(value)
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"{name} must be a finite number; got {value!r:.100}.")
    exponent = (found[1] or "").lstrip("0")
    if len(exponent) > 4 or int(exponent or 0) > LARGEST_EXPONENT:
        raise _too_long(name)
    if max(map(len, re.split("[./eE]", text))) > MOST_DIGITS + 1:
        raise _too_long(name)
    try:
        return _not_too_long(Fraction(text), name)
    except ZeroDivisionError:
        raise ValueError(f"{name} must be a finite number; got {value!r:.100}.") from None
    except ValueError:  # Python reads no such whole number
        raise _too_long(name) from None


def ratio(value: Number) -> tuple[int, int]:
    """The rational that ``value`` spells out, not always in lowest terms: a short way for many floats.

    Examples
    --------
    >>> ratio(0.29), ratio(1e-7), ratio(2.5e20), ratio(Fraction(1, 3))
    ((29, 100), (1, 10000000), (250000000000000000000, 1), (1, 3))
    """
    if type(value) is float:
        mantissa, _, exponent = repr(value).partition("e")
        whole, _, decimals = mantissa.partition(".")
        if whole.lstrip("-").isdigit():  # not infinite
            digits, places = int(whole + decimals), len(decimals) - int(exponent or 0)
            return (digits, 10**places) if places >= 0 else (digits * 10**-places, 1)
    return as_fraction(value).as_integer_ratio()


def is_written_as_number(text: str) -> bool:
    """Whether a text is a decimal or a ratio, however long.

    Examples
    --------
    >>> [is_written_as_number(text) for text in ("0.1", "1/3", "1e999999", "1_000", " 1", "nan")]
    [True, True, True, False, False, False]
    """
    return _NUMBER.fullmatch(text) is not None


def _not_too_long(exact: Fraction, name: str) -> Fraction:
    if max(abs(exact.numerator), exact.denominator) >= _TOO_LONG:
        raise _too_long(name)
    return exact


def _too_long(name: str) -> ValueError:
    return ValueError(
        f"{name} is too long a number: at most {MOST_DIGITS} digits and an exponent of ten up to "
        f"{LARGEST_EXPONENT} are allowed."
    )


def require_classes(n_classes: int) -> None:
    """Refuse a number of classes for which no cost table is made."""
    if not isinstance(n_classes, int | np.integer) or n_classes < 2:
        raise ValueError(f"A cost table needs at least two classes; got {n_classes!r}.")
    if n_classes > MOST_CLASSES:
        raise ValueError(
            f"There are {n_classes} classes; at most {MOST_CLASSES} are supported. Merge adjacent ones."
        )


def require_bits(n_bits: int, n_numbers: int = 1) -> None:
    """Refuse costs that take too many bits as whole numbers."""
    if n_bits > _MOST_BITS or n_bits * n_numbers > _MOST_BITS_IN_ALL:
        most = min(_MOST_BITS, _MOST_BITS_IN_ALL // n_numbers)
        raise ValueError(
            f"The costs have too many digits in common units: {n_bits} bits each, at most {most} are "
            "supported. Round weights, positions or costs, or take a smaller power."
        )


def as_number(value: Any, name: str = "value") -> Number:
    """A plain Python number that spells out the same decimals as ``value``."""
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.float16 | np.float32) and math.isfinite(value):
        return float(str(value))
    if isinstance(value, str) and _FLOAT.fullmatch(value) and repr(near := float(value)) == value:
        return int(near) if near.is_integer() else near
    exact = as_fraction(value, name)
    if isinstance(value, int | Fraction | Decimal):
        return value
    if isinstance(value, np.floating):
        return float(str(value))
    if exact.denominator == 1:
        return int(exact)
    try:
        near = float(exact)
    except OverflowError:
        return exact
    return near if as_fraction(near) == exact else exact


def to_json(value: Number) -> int | float | str:
    """A JSON value that :func:`from_json` turns back into the same number."""
    return value if isinstance(value, int | float) else str(value)


def from_json(value: Any) -> Number:
    """The number that :func:`to_json` wrote."""
    return as_fraction(value) if isinstance(value, str) else as_number(value)


def decimal_text(value: Fraction) -> str:
    """A short decimal if ``value`` has one, else the ratio; an approximation of what is too long to write.

    Examples
    --------
    >>> decimal_text(Fraction(29, 100)), decimal_text(Fraction(1, 3)), decimal_text(Fraction(2))
    ('0.29', '1/3', '2')
    """
    try:
        near = float(value)
        if as_fraction(near) == value:
            return repr(near).removesuffix(".0")
    except OverflowError:
        pass
    if max(abs(value.numerator), value.denominator) < _TOO_LONG_TO_READ:
        return str(value)
    short = _SIX_DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()
    return f"about {short}".lower()
