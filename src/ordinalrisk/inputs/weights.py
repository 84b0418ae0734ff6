"""Check row weights and class ratios, and scale them to whole numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import as_floats, to_numpy
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.inputs.probability_matrix import RowError

_MANTISSA = 53


def row_weights(values: Any, n_rows: int, name: str = "sample_weight") -> NDArray[np.float64]:
    array = to_numpy(to_host(values), name)
    if array.shape != (n_rows,):
        raise ValueError(
            f"{name} must have one weight for each of the {n_rows} rows of proba; got shape {array.shape}."
        )
    if (weights := as_floats(array)) is None:
        raise ValueError(f"{name} must hold numbers; got an array of type {array.dtype}.")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise RowError(
            f"{name}[{row}] is {weights[row]}; a weight is a likelihood ratio, finite and 0 or larger.",
            row,
            float(weights[row]),
        )
    return weights


def exact_weights(weights: NDArray[np.float64]) -> tuple[NDArray[Any], Fraction]:
    """Return floating-point weights as exact whole multiples of a unit, and the unit.

    >>> exact_weights(np.array([0.5, 1.5, 0.0]))
    (array([1, 3, 0], dtype=object), Fraction(1, 2))
    """
    mantissa, exponent = np.frexp(weights)
    lowest = int(exponent[weights > 0].min(initial=1023)) - _MANTISSA
    whole = [
        int(m) << max(int(e) - _MANTISSA - lowest, 0)
        for m, e in zip(np.ldexp(mantissa, _MANTISSA), exponent, strict=True)
    ]
    divisor = math.gcd(*whole) or 1
    unit = Fraction(divisor) * Fraction(2) ** lowest
    return np.array([number // divisor for number in whole], object), unit


def whole_weights(weights: Sequence[Fraction]) -> tuple[list[int], Fraction]:
    """Return rational weights as whole multiples of a unit, and the unit.

    >>> whole_weights([Fraction(1, 2), Fraction(1, 3)])
    ([3, 2], Fraction(1, 6))
    """
    unit = Fraction(1, math.lcm(*(weight.denominator for weight in weights)))
    return [int(weight / unit) for weight in weights], unit


def checked_class_ratios(ratios: Any, classes: Classes) -> tuple[Fraction, ...]:
    if isinstance(ratios, Mapping):
        values = values_by_class(ratios, classes, "class_ratios")
    elif not isinstance(ratios, str) and (array := to_numpy(ratios, "class_ratios")).ndim == 1:
        values = array.tolist()
    else:
        raise ValueError(
            f"class_ratios must be a sequence with a ratio for each class, or a mapping; got {ratios!r}."
        )
    if len(values) != len(classes):
        raise ValueError(
            f"class_ratios must have one ratio for each of the {len(classes)} classes; got {len(values)}."
        )
    weights = tuple(as_fraction(value, "class_ratios") for value in values)
    for label, weight in zip(classes.tolist(), weights, strict=True):
        if weight < 0:
            raise ValueError(
                f"class_ratios of {label!r} is {float(weight):g}; a ratio of shares must be at least 0."
            )
    if not any(weights):
        raise ValueError("class_ratios is 0 for every class; at least one must be positive.")
    return weights


def values_by_class(values: Mapping[Any, Any], classes: Classes, name: str) -> list[Any]:
    """Return the values of a mapping in the order of the classes; its keys must be the classes."""
    labels = classes.tolist()
    for label in values:
        if label not in labels:
            raise ValueError(f"{name} has {label!r}, which is not one of the classes {labels}.")
    for label in labels:
        if label not in values:
            raise ValueError(
                f"{name} has no value for class {label!r}; give each of the classes {labels} a value."
            )
    return [values[label] for label in labels]
