"""A batch of rows, and the summaries that a pass over batches keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.device import on_device

_OF_ROWS = ("proba", "labels", "groups", "clusters", "sample_weight", "point_labels")


@dataclass(frozen=True)
class Batch:
    """Checked rows, on the host or on a device."""

    proba: Any = None
    labels: Any = None  # the position of each true label in the classes
    groups: Any = None
    clusters: Any = None
    sample_weight: Any = None
    point_labels: Any = None  # positions in the classes
    columns: Mapping[str, Any] = field(default_factory=dict)  # other columns of the same rows
    part: int = 0  # the file or partition, numbered in the order of the data
    first_row: int = 0  # the number of earlier rows; within this part if the parts' lengths are unknown
    number: int | None = None  # the number of the batch, if the caller passes several
    sets: Any = None  # if the rows are predicted already
    partitions: Mapping[str, Any] = field(default_factory=dict)  # several columns of groups, by name

    def __len__(self) -> int:
        return len(self.sets if self.proba is None else self.proba)

    def some(self, places: NDArray[np.int64]) -> Batch:
        """Return the rows at these places, which ascend."""
        taken = {name: _taken(getattr(self, name), places) for name in _OF_ROWS}
        columns = {name: column.take(places) for name, column in self.columns.items()}
        partitions = {name: _taken(groups, places) for name, groups in self.partitions.items()}
        return replace(self, columns=columns, partitions=partitions, **taken)

    @property
    def place(self) -> tuple[int, int]:
        """The position of the batch; batches sorted by it have their rows in order."""
        return self.part, self.first_row

    @property
    def used(self) -> list[str]:
        """The names of the row options that are set: groups, clusters, sample_weight."""
        names = ("groups", "clusters", "sample_weight")
        return [name for name in names if getattr(self, name) is not None]


def _taken(values: Any, places: NDArray[np.int64]) -> Any:
    if values is None:
        return None
    if on_device(values):
        import torch

        return values[torch.tensor(places, device=values.device)]
    if isinstance(values, list | tuple):
        return [values[place] for place in places.tolist()]
    return to_numpy(values, "values")[places]


@contextmanager
def in_batch(number: int | None) -> Iterator[None]:
    """Add the number of the batch to errors about its rows, if the caller passed several batches."""
    try:
        yield
    except ValueError as error:
        if number is None:
            raise
        raise ValueError(f"In batch {number}: {error}") from None


class Summary(ABC):
    """The result of a pass over rows.

    The result depends neither on how the rows are split into batches nor on the order in which summaries of
    different rows are merged. Only the batches of one part must be added in order.
    """

    @abstractmethod
    def add(self, batch: Batch) -> None:
        """Add more rows."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Return the summary of the rows of both summaries, without changing either."""


class SummaryGroup(Summary):
    """Several summaries that are made in one pass; each is an attribute under its name."""

    def __init__(self, **parts: Summary) -> None:
        self.parts: dict[str, Any] = parts

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["parts"][name]
        except KeyError:
            raise AttributeError(name) from None

    def add(self, batch: Batch) -> None:
        for part in self.parts.values():
            part.add(batch)

    def merge(self, other: Self) -> Self:
        both = copy(self)
        both.parts = {name: part.merge(other.parts[name]) for name, part in self.parts.items()}
        return both


def merge_all(summaries: Sequence[Any]) -> Any:
    """Merge several summaries into one. Merging in pairs copies less than merging one after the other."""
    while len(summaries) > 1:
        pairs = [summaries[i : i + 2] for i in range(0, len(summaries), 2)]
        summaries = [pair[0].merge(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return summaries[0]
