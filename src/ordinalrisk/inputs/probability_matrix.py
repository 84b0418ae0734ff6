"""Check that probabilities form a matrix, and explain what is wrong with a row."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import BFLOAT16, SUM_TOLERANCE, as_floats, to_numpy, widened
from ordinalrisk.inputs.device import on_device, to_host

_NEARLY = 1e-3
_FLOATS = (np.float32, np.float64, np.float16, BFLOAT16)


def as_matrix(values: Any, name: str = "proba", fewest: int = 2) -> Any:
    """Return ``values`` as a two-dimensional array of floats, without a copy if possible.

    It accepts numpy arrays, nested lists, pandas and polars frames, pyarrow tables and torch tensors. Floats
    of 16, 32 and 64 bits keep their type; other numbers become float64.
    """
    array: Any = values.detach() if on_device(values) else to_numpy(values, name)
    shape = tuple(array.shape)
    if array.ndim != 2:
        both = (
            f" For one row pass [{name}]; for two classes pass both columns, as in np.column_stack([1 - "
            f"{name}, {name}])."
        )
        raise ValueError(
            f"{name} must have shape (n_rows, n_classes), one column for each class; got shape {shape}."
            f"{both if array.ndim == 1 else ''}"
        )
    if shape[0] == 0:
        raise ValueError(f"{name} has no rows; got shape {shape}.")
    if shape[1] < fewest:
        raise ValueError(f"{name} needs at least {fewest} columns, one for each class; got shape {shape}.")
    if on_device(array):
        if str(array.dtype).removeprefix("torch.") in SUM_TOLERANCE:
            return array
        if not array.is_complex() and not array.is_floating_point():
            return array.double()
        raise ValueError(f"{name} must hold numbers of 16, 32 or 64 bits; got {array.dtype}.")
    if array.dtype in _FLOATS:
        return array
    if not array.dtype.isnative and array.dtype.newbyteorder() in _FLOATS:
        return array.astype(array.dtype.newbyteorder())
    if (floats := as_floats(array)) is None:
        raise ValueError(f"{name} must hold numbers; got an array of type {array.dtype}.")
    return floats


def softmax_of_rows(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore", under="ignore"):  # minus infinity is fine: its exponential is 0
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
    proba: NDArray[np.float64] = e / e.sum(axis=1, keepdims=True)
    return proba


class RowError(ValueError):
    """An error in one row; readers of files use its attributes to say where in the file the row is.

    ``value`` is the wrong value, or the sum of a row that does not sum to 1. ``column`` is the first wrong
    column, if the error is in a column. ``looks_like`` is what the row looks like instead of probabilities:
    "percentages", "rounded", "logits", "cumulative", "zeros", "by column" or "other column". Where logits are
    expected, it can be "probabilities".
    """

    def __init__(
        self, message: str, row: int, value: Any, *, column: int | None = None, looks_like: str | None = None
    ) -> None:
        super().__init__(message)
        self.row, self.value, self.column, self.looks_like = row, value, column, looks_like


def raise_invalid_row(proba: NDArray[Any], row: int) -> NoReturn:
    """Raise an error that says why a row is not a probability vector."""
    p = to_host(proba[row].double()) if on_device(proba) else widened(proba[[row]])[0].astype(np.float64)
    wrong = ~(np.isfinite(p) & (p >= 0))
    if wrong.any():
        column = int(wrong.argmax())
        value = float(p[column])
        what = "a NaN" if np.isnan(value) else "an infinite" if np.isinf(value) else "a negative"
        logits = what == "a negative"
        raise RowError(
            f"proba has {what} value at row {row}, column {column} ({value}): probabilities must be finite "
            f"and not negative.{' If these are logits, pass softmax(logits).' if logits else ''}",
            row,
            value,
            column=column,
            looks_like="logits" if logits else None,
        )
    with np.errstate(over="ignore"):
        total = float(p.sum())
    looks_like = _looks_like(p, total, proba)
    remedy = _REMEDIES[looks_like].format(column=_columns_of_whole_numbers(proba).argmax())
    message = f"Row {row} of proba sums to {total:.6g}, not to 1: {remedy}."
    raise RowError(message, row, total, looks_like=looks_like)


_RESCALE = "pass proba / proba.sum(axis=1, keepdims=True)"
_REMEDIES = {
    "zeros": "all its scores are 0; leave the row out",
    "by column": "its columns do; pass proba.T, or take the softmax of each row (axis=1)",
    "other column": "leave out column {column}, if its whole numbers are labels or row numbers",
    "percentages": "these look like percentages; divide them by 100",
    "rounded": f"these look like counts or rounded percentages; {_RESCALE}",
    "logits": "these look like logits; pass softmax(logits)",
    "cumulative": "these look cumulative; pass from_cumulative(proba[:, :-1])",
    None: f"if these are scores to rescale, {_RESCALE}",
}
_FEWEST_ROWS = 10
_ROUNDED = 1.5  # points of a hundred by which the sum of rounded percentages differs


def _looks_like(p: NDArray[np.float64], total: float, proba: Any) -> str | None:
    """Return what a row without negative numbers looks like that does not sum to 1."""
    if total == 0:
        return "zeros"
    if (np.abs(_sums(proba, 0) - 1) < _NEARLY).all():
        return "by column"
    whole = _columns_of_whole_numbers(proba)
    if whole.any() and not whole.all():
        return "other column"
    from_100 = np.abs(_sums(proba, 1) - 100)
    if abs(total - 100) < _ROUNDED:
        return "percentages" if (from_100[from_100 < _ROUNDED] < _NEARLY).all() else "rounded"
    if not (p % 1).any():
        return "rounded"
    if (p > 1).any():
        return "logits"
    return "cumulative" if (np.diff(p) >= 0).all() and p[-1] > 0.999 else None


def _sums(proba: Any, axis: int) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        values = to_host(proba.double()) if on_device(proba) else widened(proba)
        return np.asarray(values.sum(axis, np.float64))


def _columns_of_whole_numbers(proba: Any) -> NDArray[np.bool_]:
    """Return which columns hold whole numbers only, some of them larger than 1; of few rows, none."""
    values = proba.double() if on_device(proba) else widened(proba)
    whole, large = (values % 1 == 0).all(0), (values > 1).any(0) & (len(values) >= _FEWEST_ROWS)
    return np.asarray(to_host(whole & large) if on_device(proba) else whole & large)
