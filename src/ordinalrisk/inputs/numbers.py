"""Exact numbers: ``0.29`` is 29/100, not the nearest binary fraction.

A guarantee compares a total loss with a budget. Both are rational numbers, so rounding can't change the
result. Numbers that users pass have limits, since a short text such as ``1e999999`` takes very long to
compute with.
"""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from fractions import Fraction
from operator import index
from typing import Any

import numpy as np

Number = int | float | Fraction | Decimal

MOST_DIGITS = 4_300  # in a whole number, a numerator or a denominator; Python reads no more from text
LARGEST_EXPONENT = 1_000  # a power of ten that is too large for a float
LARGEST_POWER = 100  # of a distance; with a larger power only the farthest misses would count
MOST_CLASSES = 5_000  # a cost table of this size takes about a gigabyte
MOST_ROWS = 10**12  # floats represent whole numbers exactly up to about a thousand times this
_MOST_BITS = 20_000  # in a cost as a whole number of units
_MOST_BITS_IN_ALL = 2**31  # in all distinct costs of a table together
_TOO_LONG = 10**MOST_DIGITS
_TOO_LONG_TO_READ = 10**40
_SIX_DIGITS = Context(prec=6, Emin=-10_000, Emax=10_000)
_FLOAT = re.compile(r"[+-]?\d{1,17}\.\d{1,17}(?:e[+-]\d{1,3})?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+/\d+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?(\d+))?)", re.ASCII)


def as_fraction(value: Any, name: str = "value") -> Fraction:
    """Return the exact rational that the decimals of ``value`` denote.

    Numbers may have at most 4,300 digits and an exponent of ten up to 1,000.

    >>> as_fraction(0.29), as_fraction("1/3")
    (Fraction(29, 100), Fraction(1, 3))
    """
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return _not_too_long(Fraction(value), name)
    text = str(value)
    match = _NUMBER.fullmatch(text)
    if match is None:
        percent = " Write 5 % as 0.05." if text.rstrip().endswith("%") else ""
        raise ValueError(f"{name} must be a finite number; got {value!r:.100}.{percent}")
    exponent = (match[1] or "").lstrip("0")
    if len(exponent) > 4 or int(exponent or 0) > LARGEST_EXPONENT:
        raise _too_long(name)
    if max(map(len, re.split("[./eE]", text))) > MOST_DIGITS + 1:
        raise _too_long(name)
    try:
        return _not_too_long(Fraction(text), name)
    except ZeroDivisionError:
        raise ValueError(f"{name} must be a finite number; got {value!r:.100}.") from None
    except ValueError:  # a whole number too long for Python to read
        raise _too_long(name) from None


def ratio(value: Number) -> tuple[int, int]:
    """Return the numerator and denominator of ``value``, fast for floats but not always in lowest terms.

    >>> ratio(0.29), ratio(1e-7), ratio(2.5e20), ratio(Fraction(1, 3))
    ((29, 100), (1, 10000000), (250000000000000000000, 1), (1, 3))
    """
    if isinstance(value, Fraction):
        return value.as_integer_ratio()
    if type(value) is float:
        mantissa, _, exponent = repr(value).partition("e")
        whole, _, decimals = mantissa.partition(".")
        if whole.lstrip("-").isdigit():  # "inf" and "nan" have no digits
            digits, places = int(whole + decimals), len(decimals) - int(exponent or 0)
            return (digits, 10**places) if places >= 0 else (digits * 10**-places, 1)
    return as_fraction(value).as_integer_ratio()


def is_written_as_number(text: str) -> bool:
    """Return whether a text is a decimal or a ratio of any length.

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


def is_whole(value: Any) -> bool:
    """Return whether ``value`` is a whole number of any type; booleans do not count."""
    try:
        index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def checked_seed(seed: Any) -> int:
    if not is_whole(seed) or seed < 0:
        raise ValueError(f"random_state must be a whole number, 0 or larger; got {seed!r}.")
    return int(seed)


def require_class_count(n_classes: int) -> None:
    if not isinstance(n_classes, int | np.integer) or n_classes < 2:
        raise ValueError(f"A cost table needs at least two classes; got {n_classes!r}.")
    if n_classes > MOST_CLASSES:
        raise ValueError(
            f"There are {n_classes} classes; at most {MOST_CLASSES} are supported. Merge adjacent classes."
        )


def require_bits(n_bits: int, n_numbers: int = 1) -> None:
    """Raise an error if the costs need too many bits as whole numbers of a common unit."""
    if n_bits > _MOST_BITS or n_bits * n_numbers > _MOST_BITS_IN_ALL:
        most = min(_MOST_BITS, _MOST_BITS_IN_ALL // n_numbers)
        raise ValueError(
            f"The costs have too many digits in a common unit: {n_bits} bits each, but at most {most} are "
            "supported. Round weights, positions or costs, or use a smaller power."
        )


def as_number(value: Any, name: str = "value") -> Number:
    """Return a Python number with the same decimals as ``value``."""
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.float16 | np.float32) and math.isfinite(value):
        return float(str(value))
    if isinstance(value, str) and _FLOAT.fullmatch(value) and repr(near := float(value)) == value:
        return int(near) if near.is_integer() else near
    exact = as_fraction(value, name)
    if isinstance(value, Fraction):
        return exact  # a plain Python number, even if value has a subclass
    if isinstance(value, int | Decimal):
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
    """Return a JSON value that :func:`from_json` turns back into the same number."""
    return value if isinstance(value, int | float) else str(value)


def from_json(value: Any) -> Number:
    """Return the number that :func:`to_json` wrote."""
    return as_fraction(value) if isinstance(value, str) else as_number(value)


def decimal_text(value: Fraction) -> str:
    """Write ``value`` as a short decimal if possible, else as a ratio; approximate a long ratio.

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


def percent_text(share: Fraction) -> str:
    """Write a share in percent as a decimal, with four digits if the exact decimal is long.

    >>> percent_text(Fraction(1, 10)), percent_text(Fraction(1, 200)), percent_text(Fraction(1, 3))
    ('10 %', '0.5 %', '33.33 %')
    """
    exact = decimal_text(100 * share)
    return f"{exact if exact.replace('.', '').isdigit() else f'{float(100 * share):.4g}'} %"
