"""Numbers as they were written: ``0.29`` is 29/100, not the nearest binary fraction.

A guarantee is decided by comparing a total loss with a budget. Both are rationals here, so that no
rounding and no tolerance takes part in the decision.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

Number = int | float | Fraction | Decimal
_LARGEST_EXPONENT = 1_000  # beyond all floats; numbers with more digits would only take long


def as_fraction(value: Any, name: str = "value") -> Fraction:
    """The rational that ``value`` spells out in decimals.

    Examples
    --------
    >>> as_fraction(0.29)
    Fraction(29, 100)
    >>> as_fraction("1/3")
    Fraction(1, 3)
    """
    text = str(value)
    try:
        if (exponent := re.search(r"[eE]([+-]?\d+)$", text)) and abs(int(exponent[1])) > _LARGEST_EXPONENT:
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{name} must be a finite number; got {value!r}.") from None


def as_number(value: Any, name: str = "value") -> Number:
    """A plain Python number that spells out the same decimals as ``value``."""
    exact = as_fraction(value, name)
    if isinstance(value, int | Fraction | Decimal):
        return value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
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
    """A short decimal if ``value`` has one, else the ratio.

    Examples
    --------
    >>> decimal_text(Fraction(29, 100)), decimal_text(Fraction(1, 3)), decimal_text(Fraction(2))
    ('0.29', '1/3', '2')
    """
    try:
        near = float(value)
    except OverflowError:
        return str(value)
    return repr(near).removesuffix(".0") if as_fraction(near) == value else str(value)
