"""A cheap sample that is spread evenly over all rows."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import number_type, to_numpy, widened
from ordinalrisk.inputs.batch import Batch, Summary
from ordinalrisk.inputs.device import on_device, to_host

_OF_ROWS = ("groups", "clusters", "point_labels")
_STEP = 0x9E3779B97F4A7C15
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class ScatteredRows(Summary):
    r"""At most ``most`` of the rows, one drawn at random from each :math:`2^k` consecutive rows.

    A coin toss decides which row of each pair of neighbours stays. Another toss decides between the rows that
    stayed in two neighbouring pairs, and so on. The tosses depend only on row numbers, so every row is drawn
    with probability :math:`2^{-k}`, and rows that are not drawn are never read. This makes the sample cheaper
    than :class:`~ordinalrisk.inputs.random_rows.RandomRows`.

    Examples
    --------
    >>> rows = ScatteredRows(10)
    >>> rows.add(Batch(np.full((1_000, 2), 0.5), np.arange(1_000)))
    >>> rows.drawn().labels
    array([104, 176, 349, 490, 532, 714, 864, 898])
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._level = 0
        self._parts: list[_Drawn] = []

    @property
    def whole(self) -> bool:
        """Whether all rows are in the sample."""
        return self._level == 0

    def add(self, batch: Batch) -> None:
        while (len(batch) >> self._level) > self._most + 1:
            self._level += 1
        rows = _drawn_rows(batch.first_row, batch.first_row + len(batch), self._level)
        places = rows - batch.first_row
        others = {name: _taken(getattr(batch, name), places, name) for name in _OF_ROWS}
        part = np.full(len(rows), batch.part)
        labels = to_host(batch.labels[_places(places, batch.labels)])
        self._parts.append(_Drawn(part, rows, _taken_scores(batch.proba, places), labels, others))
        self._drop()

    def merge(self, other: ScatteredRows) -> ScatteredRows:
        both = copy(self)
        both._most = min(self._most, other._most)
        both._level = max(self._level, other._level)
        both._parts = [part.at_level(both._level) for part in (*self._parts, *other._parts)]
        both._drop()
        return both

    def drawn(self) -> Batch:
        """Return the sample on the host, in the order of the rows."""
        part, rows, labels = (
            np.concatenate([getattr(each, name) for each in self._parts])
            for name in ("part", "rows", "labels")
        )
        order = np.lexsort((rows, part))
        others: dict[str, Any] = {
            name: _in_order([each.others[name] for each in self._parts], order) for name in _OF_ROWS
        }
        if others["point_labels"] is not None:
            others["point_labels"] = np.array(others["point_labels"], np.int64)
        return Batch(_alike([each.proba for each in self._parts])[order], labels[order], **others)

    def _drop(self) -> None:
        while sum(len(each.rows) for each in self._parts) > self._most:
            self._level += 1
            self._parts = [each.at_level(self._level) for each in self._parts]


class _Drawn(NamedTuple):
    """Rows of the sample from one batch."""

    part: NDArray[np.int64]
    rows: NDArray[np.int64]
    proba: NDArray[Any]
    labels: NDArray[np.int64]
    others: dict[str, list[Any] | None]

    def at_level(self, level: int) -> _Drawn:
        stays = np.ones(len(self.rows), bool)
        for k in range(1, level + 1):
            stays &= ((self.rows >> (k - 1)) & 1) == _coins(self.rows >> k, k)
        if stays.all():
            return self
        places = np.flatnonzero(stays)
        others = {
            name: None if values is None else [values[i] for i in places.tolist()]
            for name, values in self.others.items()
        }
        return _Drawn(self.part[places], self.rows[places], self.proba[places], self.labels[places], others)


def _drawn_rows(first: int, end: int, level: int) -> NDArray[np.int64]:
    """Return the numbers of the rows that are drawn from ``first .. end - 1``."""
    rows = np.arange(first >> level, ((end - 1) >> level) + 1, dtype=np.int64)
    for k in range(level, 0, -1):
        rows = 2 * rows + _coins(rows, k)
    return rows[(rows >= first) & (rows < end)]


def _coins(blocks: NDArray[np.int64], level: int) -> NDArray[np.int64]:
    """Return 0 or 1 for each block of a level: the half of the block that stays."""
    mixed = blocks.astype(np.uint64) + np.uint64(level * _STEP % 2**64)
    for shift, factor in zip((30, 27), _MIX, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    return ((mixed >> np.uint64(33)) & np.uint64(1)).astype(np.int64)


def _places(places: NDArray[np.int64], values: Any) -> Any:
    if not on_device(values):
        return places
    import torch

    return torch.tensor(places, device=values.device)


def _taken_scores(proba: Any, places: NDArray[np.int64]) -> NDArray[Any]:
    taken = proba[_places(places, proba)]
    return to_numpy(taken.cpu() if on_device(proba) else taken, "proba")


def _taken(values: Any, places: NDArray[np.int64], name: str) -> list[Any] | None:
    if values is None:
        return None
    if isinstance(values, list | tuple):
        return [values[i] for i in places.tolist()]
    array = to_numpy(to_host(values), name)[places]
    listed: list[Any] = (array.astype("M8[us]") if array.dtype.kind == "M" else array).tolist()
    return listed


def _in_order(parts: Sequence[list[Any] | None], order: NDArray[np.int64]) -> list[Any] | None:
    values = [value for part in parts if part is not None for value in part]
    return [values[i] for i in order.tolist()] if values else None


def _alike(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join scores; if their number types differ, convert them to float64 and make each row sum to 1."""
    if len({number_type(each) for each in parts}) == 1:
        return np.concatenate(parts)
    rows = np.concatenate([widened(each).astype(np.float64) for each in parts])
    scaled: NDArray[Any] = rows / rows.sum(axis=1, keepdims=True)
    return scaled
