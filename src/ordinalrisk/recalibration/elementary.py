"""Logarithm, exponential and softmax from additions, products, quotients and bits alone.

A library's ``exp`` may round otherwise on another processor, or at another place of an array. A calibration
and its predictions must be the same computation, so fitted maps use these functions: every operation in them
is rounded as IEEE 754 says, so every machine and every batch gives the same bits. They work on arrays of
float64, of numpy and of torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ordinalrisk.inputs.arrays import library_of

_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_LOG2_E = 1.4426950408889634
_SQRT2 = 1.4142135623730951
_ATANH = [1 / (2 * k + 1) for k in range(12, -1, -1)]
_EXP = [1 / factorial for factorial in np.cumprod([1.0, *range(1, 15)])[::-1].tolist()]
_SMALLEST_EXPONENT = -700.0
_MANTISSA, _ONE = (1 << 52) - 1, 1023 << 52


def log(x: Any) -> Any:
    """Return the natural logarithm of positive normal numbers.

    Examples
    --------
    >>> x = np.geomspace(1e-300, 1e300, 10_000)
    >>> bool(abs(log(x) / np.log(x) - 1).max() < 1e-14)
    True
    """
    xp = namespace(x)
    bits = x.view(xp.int64)
    mantissa = ((bits & _MANTISSA) | _ONE).view(xp.float64)
    is_upper = mantissa > _SQRT2
    exponent = xp.asarray((bits >> 52) - 1023 + is_upper, dtype=xp.float64)
    mantissa = xp.where(is_upper, mantissa * 0.5, mantissa)
    f = (mantissa - 1) / (mantissa + 1)
    return exponent * _LN2_HIGH + (2 * f * _polynomial(_ATANH, f * f) + exponent * _LN2_LOW)


def exp(x: Any) -> Any:
    """Return the exponential of numbers from -700 to 700; further numbers count as these.

    Examples
    --------
    >>> x = np.linspace(-700, 700, 10_000)
    >>> bool(abs(exp(x) / np.exp(x) - 1).max() < 1e-14)
    True
    """
    xp = namespace(x)
    x = xp.clip(x, _SMALLEST_EXPONENT, -_SMALLEST_EXPONENT)
    twos = xp.floor(x * _LOG2_E + 0.5)
    rest = (x - twos * _LN2_HIGH) - twos * _LN2_LOW
    power = ((xp.asarray(twos, dtype=xp.int64) + 1023) << 52).view(xp.float64)
    return _polynomial(_EXP, rest) * power


def softmax(columns: Sequence[Any]) -> list[Any]:
    """Return the softmax over the columns."""
    top = largest(columns)
    return shares([exp(column - top) for column in columns])


def logistic(x: Any) -> Any:
    r"""Return :math:`1 / (1 + e^{-x})`."""
    small = exp(-abs(x))
    return namespace(x).where(x >= 0, 1 / (1 + small), small / (1 + small))


def largest(columns: Sequence[Any]) -> Any:
    """Return the largest of all columns at each row."""
    top = columns[0]
    for column in columns[1:]:
        top = namespace(top).maximum(top, column)
    return top


def shares(columns: Sequence[Any]) -> list[Any]:
    """Return each column divided by their sum, which is added up in their order."""
    total = columns[0]
    for column in columns[1:]:
        total = total + column
    return [column / total for column in columns]


def namespace(x: Any) -> Any:
    """Return the module whose functions work on ``x``: numpy or torch."""
    if library_of(x) == "torch":
        import torch

        return torch
    return np


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    value = coefficients[0] * x + coefficients[1]
    for coefficient in coefficients[2:]:
        value = value * x + coefficient
    return value
