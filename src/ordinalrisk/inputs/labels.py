"""Labels: which classes there are, in what order, and which of them each row has."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs import device
from ordinalrisk.inputs.arrays import is_missing, to_numpy, widened
from ordinalrisk.inputs.device import on_device, to_host
from ordinalrisk.inputs.matrix import RowError
from ordinalrisk.inputs.numbers import is_written_as_number

Classes = NDArray[Any]


def as_classes(classes: Any, name: str = "classes") -> Classes:
    """The classes as a one-dimensional array of distinct labels, in the order given."""
    if isinstance(classes, list | tuple):  # as they are: numpy would turn numbers among strings into strings
        items: Any = [label.item() if isinstance(label, np.generic) else label for label in classes]
    elif classes is None or isinstance(classes, str | bytes) or np.ma.is_masked(classes):
        items = None
    else:
        items = to_numpy(classes, name).tolist()
    if not isinstance(items, list) or any(isinstance(item, list | tuple | np.ndarray) for item in items):
        raise ValueError(f"{name} must be a sequence of labels in order; got {classes!r}.")
    if not items:
        raise ValueError(f"{name} is empty; name the labels in order.")
    for label in items:
        if not _is_label(label) or (label is not None and is_missing(label)):
            raise ValueError(f"{name} must be labels; {label!r} is not a label.")
    repeated = [label for i, label in enumerate(items) if label in items[:i]]
    if repeated:
        raise ValueError(f"{name} must be distinct; {repeated[0]!r} is there more than once.")
    kinds = {type(label) for label in items}
    array = np.array(items, dtype=None if len(kinds) == 1 else object)
    if kinds == {int} and array.dtype.kind == "f":  # of which large whole numbers would be rounded
        return np.array(items, object)
    return array


def ordered_categories(y: Any) -> list[Any] | None:
    """Categories that carry an order: an ordered pandas categorical's, a polars Enum's."""
    dtype = getattr(y, "dtype", None)
    categories = getattr(dtype, "categories", None)
    if categories is None:
        return None
    library = type(y).__module__.partition(".")[0]
    if library == "polars":
        return list(categories) if type(dtype).__name__ == "Enum" else None
    return list(categories) if getattr(dtype, "ordered", False) else None


def resolve_classes(classes: Any, y: Any, n_classes: int) -> Classes:
    """The classes in order: those given, else those that ``y`` itself brings, else ``0 .. K-1``."""
    brought = ordered_categories(y)
    if classes is None:
        resolved = np.arange(n_classes) if brought is None else as_classes(brought)
    else:
        resolved = as_classes(classes)
        if brought is not None and list(brought) != resolved.tolist():
            raise ValueError(
                f"classes={resolved.tolist()} differ from the ordered categories of y, {list(brought)}; "
                "give one of them."
            )
    if len(resolved) != n_classes:
        raise ValueError(
            f"proba has {n_classes} columns, but there are {len(resolved)} classes: {resolved.tolist()}."
        )
    return resolved


def class_indices(
    y: Any, classes: Classes, n_rows: int, name: str = "y", remedy: str = ""
) -> NDArray[np.int64]:
    """The position of each label of ``y`` in ``classes``; without a copy for integers ``0 .. K-1``."""
    labels: Any = y if on_device(y) else widened(to_numpy(y, name))
    if (shape := tuple(labels.shape)) != (n_rows,):
        raise ValueError(
            f"{name} must have one label for each of the {n_rows} rows of proba; got shape {shape}."
        )
    if on_device(labels):
        indices: Any = device.class_indices(labels, classes)
    elif labels.dtype.kind in "biuf" and classes.dtype.kind in "biuf" and _exact_as_floats(classes):
        indices = _numeric_indices(labels, classes)
    elif labels.dtype.kind in "mM" and classes.dtype.kind not in "mMO":
        raise ValueError(f"{name} holds {labels.dtype.name}, times; the classes are {classes.tolist()}.")
    else:
        position = {label: k for k, label in enumerate(classes.tolist())}
        indices = np.array([position.get(label, -1) for label in _hashable(labels, name)], np.int64)
    if len(indices) and indices.min() < 0:
        row = int(to_host(indices < 0).argmax())
        label = labels[row].item() if hasattr(labels[row], "item") else labels[row]
        if is_missing(label):
            remedy = " A label is missing there: leave the row out."
        elif _are_positions(labels, classes):
            remedy = f" If these are positions, pass np.array(classes)[{name}]."
        raise RowError(
            f"{name}[{row}] is {label!r}, which is not one of the classes {classes.tolist()}.{remedy}",
            row,
            label,
        )
    known: NDArray[np.int64] = indices
    return known


def _are_positions(labels: Any, classes: Classes) -> bool:
    """Whether labels are whole numbers from 0 up where the classes have names."""
    if on_device(labels) or labels.dtype.kind not in "iu" or classes.dtype.kind in "biuf":
        return False
    return bool(labels.min() >= 0 and labels.max() < len(classes))


def require_column_order(proba: Any, classes: Classes) -> None:
    """Refuse a frame with columns that are named like the classes but stand in another order.

    A column is named like a class if its name is that of the class, or if all names have the same text before
    and after that of the class, as in ``p_low, p_high``; capitals do not matter unless they tell two names
    apart. Where whole numbers are the classes, columns must not differ by whole numbers in no order, as in
    ``p3, p1, p2``.
    """
    pyarrow = type(proba).__module__.startswith("pyarrow")
    names = getattr(proba, "column_names" if pyarrow else "columns", None)
    if names is None:
        return
    columns, labels = [str(name) for name in names], [str(label) for label in classes]
    if len(columns) != len(labels):
        return
    for found, wanted in ((columns, labels), (_folded(columns), _folded(labels))):
        orders = _orders_by_name(found, wanted) if len({*found}) == len(found) else []
        if found in orders:
            return
        if orders:
            by_name = dict(zip(found, list(names), strict=True))
            order = [by_name[name] for name in orders[0]]
            pick = f"proba.select({order})" if pyarrow else f"proba[{order}]"
            raise ValueError(
                f"The columns of proba are in the order {columns}, the classes in the order {labels}; "
                f"pass {pick}."
            )
    _require_places(columns, labels)
    if classes.dtype.kind in "iu" and _are_in_no_order(columns):
        raise ValueError(
            f"The numbers in the columns of proba are in no order: {columns}. Put the columns into the order "
            "of the classes; if they are in it, pass proba.to_numpy()."
        )


def _folded(names: list[str]) -> list[str]:
    return [name.casefold() for name in names]


def _require_places(columns: list[str], labels: list[str]) -> None:
    """Refuse a column that is named like a class and stands in the place of another one.

    Numbers are no names: columns 1 to 5 may well hold the labels 0 to 4.
    """
    for place, name in enumerate(columns):
        if name in labels and labels[place] != name and not is_written_as_number(name.lstrip("-")):
            raise ValueError(
                f"Column {place} of proba is {name!r}, but class {place} is {labels[place]!r}; the columns "
                f"are {columns}, the classes {labels}. Name the columns like the classes, in their order."
            )


def _orders_by_name(columns: list[str], labels: list[str]) -> list[list[str]]:
    """The columns in the order of the classes, for each text around the classes that makes their names."""
    extra, rest = divmod(sum(map(len, columns)) - sum(map(len, labels)), max(len(labels), 1))
    if extra < 0 or rest:
        return []
    wanted, name = sorted(columns), columns[0]
    around = {(name[:k], name[len(name) - extra + k :]) for k in range(extra + 1)}
    orders = [[f"{before}{label}{after}" for label in labels] for before, after in sorted(around)]
    return [order for order in orders if sorted(order) == wanted]


def _are_in_no_order(columns: list[str]) -> bool:
    """Whether names differ by whole numbers alone, and these neither rise nor fall."""
    found = [re.fullmatch(r"(\D*)(\d{1,9})(\D*)", name) for name in columns]
    parts = [match.groups() for match in found if match]
    if len(parts) != len(columns) or len({(before, after) for before, _, after in parts}) > 1:
        return False
    numbers = [int(number) for _, number, _ in parts]
    return numbers not in (sorted(numbers), sorted(numbers, reverse=True))


def _hashable(labels: NDArray[Any], name: str) -> list[Any]:
    items: list[Any] = labels.tolist()
    for row, label in enumerate(items):
        if not _is_label(label):
            raise ValueError(f"{name}[{row}] is {label!r}, which is no label.")
    return items


def _is_label(value: Any) -> bool:
    return isinstance(value, Hashable) and not isinstance(value, complex)


def _exact_as_floats(classes: Classes) -> bool:
    """Whether numbers of any type can be compared with the classes without rounding two of them to one."""
    return bool(len(classes)) and bool((np.abs(classes.astype(np.float64)) < 2**53).all())


def _numeric_indices(labels: NDArray[Any], classes: Classes) -> NDArray[np.int64]:
    K = len(classes)
    if labels.dtype.kind in "iu" and len(labels) and np.array_equal(classes, np.arange(K)):
        indices = labels.astype(np.int64, copy=False)
        if labels.min() >= 0 and labels.max() < K:
            return indices
        return np.where((labels >= 0) & (labels < K), indices, -1)
    order = np.argsort(classes)
    place = np.searchsorted(classes[order], labels)
    found = order[np.minimum(place, K - 1)]
    return np.where(classes[found] == labels, found, -1)
