"""Convert arrays of any library to numpy, and define the number types that they may have."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

SUM_TOLERANCE = {"float64": 1e-5, "float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}
"""How far the sum of a row may be from 1: more than the rounding errors of a softmax in that type."""

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
"""The 16-bit float that is the upper half of a float32. Numpy has no type for it."""

_NAMES = {np.dtype(name): name for name in ("float64", "float32", "float16")} | {BFLOAT16: "bfloat16"}


def library_of(values: Any) -> str:
    """Return the name of the package that defines the type of ``values``, without importing the package."""
    return type(values).__module__.partition(".")[0]


def is_dask(values: Any) -> bool:
    return library_of(values) == "dask"


def is_lazy_set(sets: Any) -> bool:
    """Return whether ``sets`` is a ``LazyIntervalSet``."""
    return type(sets).__module__ == "ordinalrisk.execution.dask.lazy_sets"


def number_type(proba: NDArray[Any]) -> str:
    """Return the name of the number type, a key of ``SUM_TOLERANCE``."""
    return _NAMES[proba.dtype]


def widened(proba: NDArray[Any]) -> NDArray[Any]:
    """Return 16-bit floats as float32, exactly; return other arrays unchanged."""
    if proba.dtype == BFLOAT16:
        bits: NDArray[np.uint32] = proba["bfloat16"].astype(np.uint32)
        return (bits << 16).view(np.float32)
    return proba.astype(np.float32) if proba.dtype == np.float16 else proba


def to_numpy(values: Any, name: str) -> NDArray[Any]:
    """Return ``values`` as a numpy array of any shape and type, without importing its library."""
    try:
        return _to_numpy(values, name)
    except (TypeError, RuntimeError) as error:
        raise ValueError(f"{name} can't be read as an array ({type(values).__name__}: {error}).") from None


def _to_numpy(values: Any, name: str) -> NDArray[Any]:
    if type(values) is np.ndarray and values.dtype.kind in "biuf":
        return values
    if values is None:
        raise ValueError(
            f"{name} is None; pass its values. If you read it with get(), the column may not exist."
        )
    if isinstance(values, str | bytes):
        raise ValueError(f"{name} must have a value for each row; got the text {values!r}.")
    library = library_of(values)
    if library == "torch":
        if values.device.type != "cpu":
            raise ValueError(f"{name} is on device {values.device}; move it with {name}.cpu() first.")
        tensor = values.detach()
        if "bfloat16" in str(tensor.dtype):
            import torch

            bits: NDArray[Any] = tensor.view(torch.int16).numpy()
            return bits.view(BFLOAT16)
        array: NDArray[Any] = tensor.numpy()
        return array
    if library == "pyarrow" and hasattr(values, "columns"):
        matrix = np.empty((values.num_rows, values.num_columns), order="F")
        for k, column in enumerate(values.columns):
            numbers = as_floats(column.to_numpy(zero_copy_only=False))
            if numbers is None:
                raise ValueError(
                    f"Column {values.column_names[k]!r} of {name} must hold numbers; got type {column.type}."
                )
            matrix[:, k] = numbers
        return matrix
    if library == "dask":
        raise ValueError(
            f"{name} is a dask collection, but other inputs are not, or this function does not take dask "
            f"collections; pass {name}.compute()."
        )
    if library == "polars" and hasattr(values, "collect"):
        raise ValueError(f"{name} is a lazy frame; pass {name}.collect().")
    if library == "polars" and hasattr(values, "schema"):
        for column, kind in values.schema.items():
            if kind.is_temporal():  # polars would turn it into numbers
                raise ValueError(f"Column {column!r} of {name} must hold numbers; got type {kind}.")
    if library == "scipy" and hasattr(values, "toarray"):
        raise ValueError(f"{name} is a sparse matrix; pass {name}.toarray().")
    if library in ("pandas", "polars"):
        return np.asarray(values.to_numpy())
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        shown: NDArray[Any] = np.asarray(values.data).astype(object)
        shown[np.ma.getmaskarray(values)] = None
        return shown
    try:
        plain = np.asarray(values)
    except ValueError:
        raise ValueError(f"The rows of {name} differ in length; give all rows the same length.") from None
    return plain.view(BFLOAT16) if plain.dtype.name == "bfloat16" else plain


def as_floats(array: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return numbers as float64 and missing values as NaN; None if some value is not a number."""
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    if array.dtype != object:
        return None
    types = {*map(type, array.flat)}
    missing = {kind for kind in types if kind.__name__ in ("NoneType", "NAType")}
    if not all(issubclass(kind, Real | Decimal | np.bool_) for kind in types - missing):
        return None
    if missing:
        places = np.reshape([type(value) in missing for value in array.flat], array.shape)
        array = np.where(places, np.nan, array)
    try:
        return array.astype(np.float64)
    except (ValueError, OverflowError):  # a signalling NaN, or a whole number too large for a float
        return None


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, or pandas' NA or NaT."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)
