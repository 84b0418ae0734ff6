"""The partitions of dask collections, matched with those of other collections of the same rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, NamedTuple

import dask.array as da
from dask.delayed import Delayed

from ordinalrisk.inputs.arrays import is_dask


class Partitions(NamedTuple):
    """The partitions of a collection, and their numbers of rows where known."""

    parts: list[Delayed]
    lengths: list[int | None]
    divisions: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, values: Any, name: str) -> Partitions:
        require_rows(values, name)
        if not isinstance(values, da.Array):
            # Optimizing would join files to larger partitions, differently for each collection.
            parts = values.simplify().to_delayed(optimize_graph=False)
            divisions = values.divisions if values.known_divisions else None
            return cls(list(parts), [None] * len(parts), divisions)
        if values.ndim == 2 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
        lengths = [None if math.isnan(length) else int(length) for length in values.chunks[0]]
        return cls(list(values.to_delayed().ravel()), lengths)

    def aligned(self, values: Any, name: str) -> Partitions:
        """Return the partitions of another collection of these rows; it must be cut in the same places."""
        if not is_dask(values):
            raise ValueError(
                f"{name} must be a dask collection like proba, cut in the same places; got a "
                f"{type(values).__name__}."
            )
        require_rows(values, name)
        if isinstance(values, da.Array) and None not in self.lengths and not math.isnan(values.shape[0]):
            n_rows = sum(filter(None, self.lengths))
            if values.shape[0] != n_rows:
                raise ValueError(
                    f"{name} must have one value for each of the {n_rows} rows of proba; got shape "
                    f"{values.shape}."
                )
            values = values.rechunk({0: tuple(self.lengths)})
        others = Partitions.of(values, name)
        if len(others.parts) != len(self.parts):
            raise ValueError(
                f"{name} has {len(others.parts)} partitions, proba {len(self.parts)}; cut both in the same "
                "places."
            )
        if None not in (self.divisions, others.divisions) and self.divisions != others.divisions:
            raise ValueError(
                f"{name} and proba are cut at different places of the index: the divisions of {name} are "
                f"{others.divisions}, those of proba {self.divisions}; cut both in the same places."
            )
        return others

    def with_others(self, **others: Any) -> Iterator[tuple[Delayed, dict[str, Delayed | None]]]:
        """Yield each partition with those of other collections by name; None for collections not given."""
        parts = {
            name: [None] * len(self.parts) if values is None else self.aligned(values, name).parts
            for name, values in others.items()
        }
        for i, part in enumerate(self.parts):
            yield part, {name: each[i] for name, each in parts.items()}

    def first_rows(self) -> list[int]:
        """Return the number of the first row of each partition."""
        if None in self.lengths:
            raise ValueError(
                "Randomized sets need the number of each row, but the lengths of the partitions are "
                "unknown; call compute_chunk_sizes(), or to_dask_array(lengths=True) of a frame."
            )
        return [0, *accumulate(length or 0 for length in self.lengths)][:-1]


def require_rows(values: Any, name: str) -> None:
    ndim = getattr(values, "ndim", None)
    if not isinstance(ndim, int):
        raise ValueError(f"{name} must be a dask array, frame or series; got a {type(values).__name__}.")
    if ndim == 0:
        raise ValueError(f"{name} must have a value for each row of proba; got a single value.")


@contextmanager
def naming_partition(index: int) -> Iterator[None]:
    """Name the partition in errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Partition {index}: {error}") from None
