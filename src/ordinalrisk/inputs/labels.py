"""Check classes and labels: the classes in order, and the class of each row."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs import device
from ordinalrisk.inputs.arrays import is_missing, library_of, to_numpy, widened
from ordinalrisk.inputs.device import on_device, to_host
from ordinalrisk.inputs.numbers import is_written_as_number
from ordinalrisk.inputs.probability_matrix import RowError, as_matrix

Classes = NDArray[Any]


def as_classes(classes: Any, name: str = "classes") -> Classes:
    """Return the classes as a one-dimensional array of distinct labels, in the order given."""
    if isinstance(classes, list | tuple):  # numpy would turn numbers among strings into strings
        items: Any = [label.item() if isinstance(label, np.generic) else label for label in classes]
    elif classes is None or isinstance(classes, str | bytes) or np.ma.is_masked(classes):
        items = None
    else:
        items = to_numpy(classes, name).tolist()
    if not isinstance(items, list) or any(isinstance(item, list | tuple | np.ndarray) for item in items):
        raise ValueError(f"{name} must be a sequence of labels in order; got {classes!r}.")
    if not items:
        raise ValueError(f"{name} is empty; list the labels in order.")
    for label in items:
        if not _is_label(label) or (label is not None and is_missing(label)):
            raise ValueError(f"{name} must list labels; {label!r} can't be a label.")
    repeated = [label for i, label in enumerate(items) if label in items[:i]]
    if repeated:
        raise ValueError(f"{name} must be distinct; {repeated[0]!r} is listed more than once.")
    kinds = {type(label) for label in items}
    array = np.array(items, dtype=None if len(kinds) == 1 else object)
    if kinds == {int} and array.dtype.kind == "f":  # floats would round large whole numbers
        return np.array(items, object)
    return array


def ordered_categories(y: Any) -> list[Any] | None:
    """Return the categories of an ordered pandas categorical or a polars Enum; None for anything else."""
    dtype = getattr(y, "dtype", None)
    categories = getattr(dtype, "categories", None)
    if categories is None:
        return None
    if library_of(y) == "polars":
        return list(categories) if type(dtype).__name__ == "Enum" else None
    return list(categories) if getattr(dtype, "ordered", False) else None


def resolve_classes(classes: Any, y: Any, n_classes: int) -> Classes:
    """Return the classes in order: ``classes``, else the ordered categories of ``y``, else ``0 .. K-1``."""
    categories = ordered_categories(y)
    if classes is None:
        resolved = np.arange(n_classes) if categories is None else as_classes(categories)
    else:
        resolved = as_classes(classes)
        if categories is not None and categories != resolved.tolist():
            raise ValueError(
                f"classes={resolved.tolist()} differ from the ordered categories of y, {categories}; "
                "make them equal, or leave out classes."
            )
    if len(resolved) != n_classes:
        looks = getattr(y, "shape", None) == (n_classes,) and n_classes > len(resolved)
        remedy = " If proba has a column for each row of y, pass proba.T." if looks else ""
        raise ValueError(
            f"proba has {n_classes} columns, but there are {len(resolved)} classes: {resolved.tolist()}."
            f"{remedy}"
        )
    return resolved


def class_indices(
    y: Any, classes: Classes, n_rows: int, name: str = "y", remedy: str = ""
) -> NDArray[np.int64]:
    """Return the position of each label in ``classes``, without a copy for integers ``0 .. K-1``."""
    labels: Any = y if on_device(y) else widened(to_numpy(y, name))
    if (shape := tuple(labels.shape)) != (n_rows,):
        raise ValueError(
            f"{name} must have one label for each of the {n_rows} rows of proba; got shape {shape}."
            f"{_other_shape(shape, (n_rows, len(classes)), name)}"
        )
    if n_rows and len(classes) > 2 and _are_booleans(labels, classes):
        raise ValueError(
            f"{name} holds True and False, but there are {len(classes)} classes: {classes.tolist()}. Pass "
            "the class of each row, not a yes or no."
        )
    if on_device(labels):
        indices: Any = device.tensor_class_indices(labels, classes)
    elif labels.dtype.kind in "biuf" and classes.dtype.kind in "biuf" and _exact_as_floats(classes):
        indices = _numeric_indices(labels, classes)
    elif labels.dtype.kind in "mM" and classes.dtype.kind not in "mMO":
        raise ValueError(
            f"{name} holds times ({labels.dtype.name}), but the classes are {classes.tolist()}; pass labels."
        )
    else:
        position = {label: k for k, label in enumerate(classes.tolist())}
        indices = np.array([position.get(label, -1) for label in _hashable(labels, name)], np.int64)
    if len(indices) and indices.min() < 0:
        row = int(to_host(indices < 0).argmax())
        label = labels[row].item() if hasattr(labels[row], "item") else labels[row]
        if is_missing(label):
            remedy = " The label is missing: leave the row out."
        elif (meant := _meant(label, classes)) is not None:
            remedy = f" Did you mean {meant!r}? Labels and classes must be spelled the same."
        elif _are_positions(labels, classes):
            remedy = f" If these are positions, pass np.array(classes)[{name}]."
        elif remedy:
            remedy = _other_classes(to_host(labels), len(classes), name) or remedy
        raise RowError(
            f"{name}[{row}] is {label!r}, which is not one of the classes {classes.tolist()}.{remedy}",
            row,
            label,
        )
    known: NDArray[np.int64] = indices
    return known


def _other_classes(labels: NDArray[Any], n_classes: int, name: str) -> str:
    """Say what numbers look like that are not all in ``0 .. K-1``: labels from 1, or a missing column."""
    if labels.dtype.kind not in "iuf":
        return ""
    known = np.unique(labels)
    if len(known) > n_classes and np.array_equal(known, np.arange(len(known))):
        return f" proba has {n_classes} columns, but {name} has {len(known)} labels: is a column missing?"
    if known[0] == 1 and known[-1] == n_classes:
        return f" If your labels count from 1, pass classes=range(1, {n_classes + 1})."
    return ""


def _meant(label: Any, classes: Classes) -> Any:
    """Return the class that differs from a label only by case, spaces, or quotes around a number."""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    text = str(label).strip().casefold()
    return next((each for each in classes.tolist() if str(each).strip().casefold() == text), None)


def _other_shape(shape: tuple[int, ...], of_proba: tuple[int, int], name: str) -> str:
    """Say what to pass instead if labels or scores have a shape that is often passed by mistake."""
    n_rows, n_classes = of_proba
    if shape == (n_classes,):
        return f" If proba has a row for each class and a column for each entry of {name}, pass proba.T."
    if shape == (n_rows, 1):
        return f" Pass its only column: {name}.ravel() for an array, {name}.iloc[:, 0] for a pandas frame."
    if shape == of_proba:
        return f" If the labels are one-hot encoded, pass {name}.argmax(axis=1)."
    return ""


def _are_booleans(labels: Any, classes: Classes) -> bool:
    if str(labels.dtype) in ("bool", "torch.bool"):
        return not any(isinstance(label, bool) for label in classes.tolist())
    if (
        on_device(labels)
        or labels.dtype != object
        or not labels.size
        or not isinstance(labels[0], bool | np.bool_)
    ):
        return False
    known = {type(label) for label in classes.tolist()}
    return not known & {bool} and all(isinstance(label, bool | np.bool_) for label in labels.tolist())


def labelled_matrix(proba: Any, y: Any, classes: Any) -> tuple[NDArray[Any], NDArray[np.int64], Classes]:
    """Check rows on the host; return their probabilities, the position of each label, and the classes."""
    matrix = as_matrix(to_numpy(proba, "proba"))
    ordered = resolve_classes(classes, y, matrix.shape[1])
    require_column_order(proba, ordered)
    return matrix, class_indices(y, ordered, len(matrix)), ordered


def _are_positions(labels: Any, classes: Classes) -> bool:
    if on_device(labels) or labels.dtype.kind not in "iu" or classes.dtype.kind in "biuf":
        return False
    return bool(labels.min() >= 0 and labels.max() < len(classes))


def require_column_order(proba: Any, classes: Classes) -> None:
    """Raise an error if the columns of a frame are named like the classes but in another order.

    A column matches a class if it has the name of the class, or if all columns have the same text before and
    after the name, as in ``p_low, p_high``. Case only matters if two names differ by nothing else. If the
    classes are whole numbers, the numbers in the column names must be in ascending or descending order.
    """
    pyarrow = library_of(proba) == "pyarrow"
    names = getattr(proba, "column_names" if pyarrow else "columns", None)
    if names is None:
        return
    columns, labels = [str(name) for name in names], [str(label) for label in classes]
    if len(columns) != len(labels):
        return
    for fold in (str, str.casefold):
        folded = [fold(name) for name in columns]
        orders = _orders_by_name(folded, [fold(label) for label in labels])
        if folded in orders:
            return
        if orders:
            by_name = dict(zip(folded, names, strict=True))
            order = [by_name[name] for name in orders[0]]
            pick = f"proba.select({order})" if pyarrow else f"proba[{order}]"
            raise ValueError(
                f"The columns of proba are in the order {columns}, but the classes in the order {labels}; "
                f"pass {pick}."
            )
    _require_places(columns, labels)
    if classes.dtype.kind in "iu" and _are_unsorted(columns):
        raise ValueError(
            f"The column names of proba have numbers that are not in order: {columns}. Put the columns in "
            "the order of the classes; if they are already in that order, pass proba.to_numpy()."
        )


def _require_places(columns: list[str], labels: list[str]) -> None:
    """Raise an error if a column has the name of one class and the position of another.

    Numbers do not count as names: columns 1 to 5 may hold the labels 0 to 4.
    """
    for place, name in enumerate(columns):
        if name in labels and labels[place] != name and not is_written_as_number(name.lstrip("-")):
            raise ValueError(
                f"Column {place} of proba is {name!r}, but class {place} is {labels[place]!r}; the columns "
                f"are {columns}, the classes {labels}. Give the columns the names of the classes, in order."
            )


def _orders_by_name(columns: list[str], labels: list[str]) -> list[list[str]]:
    """Return the columns in class order, for each prefix and suffix that turns classes into column names."""
    if len({*columns}) < len(columns):
        return []
    extra, rest = divmod(sum(map(len, columns)) - sum(map(len, labels)), max(len(labels), 1))
    if extra < 0 or rest:
        return []
    wanted, name = sorted(columns), columns[0]
    around = {(name[:k], name[len(name) - extra + k :]) for k in range(extra + 1)}
    orders = [[f"{before}{label}{after}" for label in labels] for before, after in sorted(around)]
    return [order for order in orders if sorted(order) == wanted]


def _are_unsorted(columns: list[str]) -> bool:
    """Return whether the names differ only by whole numbers that are in no order."""
    matches = [re.fullmatch(r"(\D*)(\d{1,9})(\D*)", name) for name in columns]
    parts = [match.groups() for match in matches if match]
    if len(parts) != len(columns) or len({(before, after) for before, _, after in parts}) > 1:
        return False
    numbers = [int(number) for _, number, _ in parts]
    return numbers not in (sorted(numbers), sorted(numbers, reverse=True))


def _hashable(labels: NDArray[Any], name: str) -> list[Any]:
    items: list[Any] = labels.tolist()
    for row, label in enumerate(items):
        if not _is_label(label):
            raise ValueError(f"{name}[{row}] is {label!r}, which can't be a label.")
    return items


def _is_label(value: Any) -> bool:
    return isinstance(value, Hashable) and not isinstance(value, complex)


def _exact_as_floats(classes: Classes) -> bool:
    """Return whether floats represent all classes exactly, so that they compare with any number type."""
    return bool(len(classes)) and bool((np.abs(classes.astype(np.float64)) < 2**53).all())


def _numeric_indices(labels: NDArray[Any], classes: Classes) -> NDArray[np.int64]:
    K = len(classes)
    places = labels.dtype.kind in "iu" and len(labels) and np.array_equal(classes, np.arange(K))
    if places and labels.min() >= 0 and labels.max() < K:
        return labels.astype(np.int64, copy=False)
    order = np.argsort(classes)
    place = np.searchsorted(classes[order], labels)
    indices = order[np.minimum(place, K - 1)]
    return np.where(classes[indices] == labels, indices, -1)
