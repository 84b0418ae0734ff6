"""Arrays of any library as numpy arrays, and the number types they may have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SUM_TOLERANCE = {"float64": 1e-5, "float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}
"""How far a row's sum may be from 1: the rounding of a softmax in that number type, with room."""

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
"""The upper half of a float32, which numpy has no type for."""

_NAMES = {np.dtype(name): name for name in ("float64", "float32", "float16")} | {BFLOAT16: "bfloat16"}


def number_type(proba: NDArray[Any]) -> str:
    """The name of the number type: a key of ``SUM_TOLERANCE``."""
    return _NAMES[proba.dtype]


def widened(proba: NDArray[Any]) -> NDArray[Any]:
    """16-bit floats as float32, exactly; others as they are."""
    if proba.dtype == BFLOAT16:
        bits: NDArray[np.uint32] = proba["bfloat16"].astype(np.uint32)
        return (bits << 16).view(np.float32)
    return proba.astype(np.float32) if proba.dtype == np.float16 else proba


def to_numpy(values: Any, name: str) -> NDArray[Any]:
    """``values`` as a numpy array of whatever shape and type; no library is imported for it."""
    try:
        return _to_numpy(values, name)
    except (TypeError, RuntimeError) as error:
        raise ValueError(f"{name} can't be read as an array ({type(values).__name__}: {error}).") from None


def _to_numpy(values: Any, name: str) -> NDArray[Any]:
    if type(values) is np.ndarray and values.dtype.kind in "biuf":
        return values
    library = type(values).__module__.partition(".")[0]
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
            try:
                matrix[:, k] = column.to_numpy(zero_copy_only=False)
            except (TypeError, ValueError):
                raise ValueError(
                    f"Column {values.column_names[k]!r} of {name} must hold numbers; got type {column.type}."
                ) from None
        return matrix
    if library == "pandas" and hasattr(values, "columns"):
        array = values.to_numpy()
        return values.to_numpy(dtype=np.float64, na_value=np.nan) if _holds_missing(array) else array
    if library == "dask":
        raise ValueError(
            f"{name} is a dask collection, which calibrate, predict_set and metrics take if all else are "
            f"such collections too; here pass {name}.compute()."
        )
    if library == "polars" and hasattr(values, "collect"):
        raise ValueError(f"{name} is a lazy frame; pass {name}.collect().")
    if library in ("pandas", "polars"):
        return np.asarray(values.to_numpy())
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        shown: NDArray[Any] = np.asarray(values.data).astype(object)
        shown[np.ma.getmaskarray(values)] = None
        return shown
    try:
        plain = np.asarray(values)
    except ValueError:
        raise ValueError(f"The rows of {name} differ in length.") from None
    return plain.view(BFLOAT16) if plain.dtype.name == "bfloat16" else plain


def _holds_missing(array: NDArray[Any]) -> bool:
    return array.dtype == object and any(type(value).__name__ == "NAType" for value in array.flat)
