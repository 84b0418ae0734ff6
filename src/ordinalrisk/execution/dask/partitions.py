"""The partitions of dask collections, side by side, and questions to all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import dask
import dask.array as da
from dask.delayed import Delayed, delayed

from ordinalrisk.execution.bracketing import first_question
from ordinalrisk.execution.part_steps import FirstLook, PartSteps
from ordinalrisk.inputs.lazy import is_dask

MERGED_AT_ONCE = 32

Found = TypeVar("Found")


class Partitions(NamedTuple):
    """The partitions of a collection, each with its number of rows if that is known."""

    parts: list[Delayed]
    lengths: list[int | None]
    divisions: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, values: Any, name: str) -> Partitions:
        """Those of a dask array, frame or series."""
        require_rows(values, name)
        if not isinstance(values, da.Array):
            # not optimized, which joins files to larger partitions, of each collection others
            parts = values.simplify().to_delayed(optimize_graph=False)
            divisions = values.divisions if values.known_divisions else None
            return cls(list(parts), [None] * len(parts), divisions)
        if values.ndim == 2 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
        lengths = [None if math.isnan(length) else int(length) for length in values.chunks[0]]
        return cls(list(values.to_delayed().ravel()), lengths)

    def beside(self, values: Any, name: str) -> Partitions:
        """The partitions of another collection of as many rows, cut in the same places."""
        if not is_dask(values):
            raise ValueError(
                f"{name} must be a dask collection like proba, cut in the same places; got a "
                f"{type(values).__name__}."
            )
        require_rows(values, name)
        if isinstance(values, da.Array) and None not in self.lengths and not math.isnan(values.shape[0]):
            if values.shape[0] != sum(filter(None, self.lengths)):
                raise ValueError(
                    f"{name} must have one value for each of the {sum(filter(None, self.lengths))} rows of "
                    f"proba; got shape {values.shape}."
                )
            values = values.rechunk({0: tuple(self.lengths)})
        found = Partitions.of(values, name)
        if len(found.parts) != len(self.parts):
            raise ValueError(
                f"{name} has {len(found.parts)} partitions, proba {len(self.parts)}; cut both in the same "
                "places."
            )
        if None not in (self.divisions, found.divisions) and self.divisions != found.divisions:
            raise ValueError(
                f"{name} has its rows at other places of the index than proba: its divisions are "
                f"{found.divisions}, those of proba {self.divisions}; cut both in the same places."
            )
        return found

    def first_rows(self) -> list[int]:
        """The number of each partition's first row."""
        first, rows = [], 0
        for length in self.lengths:
            if length is None:
                raise ValueError(
                    "Each row has a coin of its own, by its number, but how long the partitions are is not "
                    "known; call compute_chunk_sizes(), or to_dask_array(lengths=True) of a frame."
                )
            first.append(rows)
            rows += length
        return first


def require_rows(values: Any, name: str) -> None:
    """Refuse what is dask's, but has no rows."""
    ndim = getattr(values, "ndim", None)
    if not isinstance(ndim, int):
        raise ValueError(f"{name} must be a dask array, frame or series; got a {type(values).__name__}.")
    if ndim == 0:
        raise ValueError(f"{name} must have a value for each row of proba; got a single one.")


@contextmanager
def naming_partition(index: int) -> Iterator[None]:
    """Say in which partition something is wrong."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Partition {index}: {error}") from None


def shared(value: Any) -> Delayed:
    """A value that many tasks take, sent once and as it is."""
    return delayed(value, traverse=False)


class AskedPartitions:
    """Steps of losses that stay on the workers, whom questions are sent to.

    The first question goes with them, lest the scheduler be asked twice.
    """

    def __init__(self, parts: Sequence[Delayed]) -> None:
        asked = shared(first_question(len(parts)))
        first = merged_in_order([answer_of_part(asked, part) for part in parts], FirstLook.merged)
        *self.parts, self._answer = dask.persist(*parts, first, optimize_graph=False)

    def first_look(self) -> FirstLook:
        """What all parts say first."""
        return self._first

    @cached_property
    def _first(self) -> FirstLook:
        found: FirstLook = self._answer.compute()
        return found

    def ask(
        self, question: Callable[[PartSteps], Found], merged: Callable[[Sequence[Found]], Found]
    ) -> Found:
        """What all parts answer, merged a few at a time on the workers."""
        asked = shared(question)
        answers = [answer_of_part(asked, part) for part in self.parts]
        found: Found = dask.compute(merged_in_order(answers, merged), optimize_graph=False)[0]
        return found


def merged_in_order(answers: Sequence[Delayed], merged: Callable[[Sequence[Found]], Found]) -> Delayed:
    """The answers as one, merged a few at a time where they are.

    Answers that are computed already must be held by the caller: they are forgotten with the last reference.
    """
    how, level = shared(merged), list(answers)
    while len(level) > 1:
        level = [
            merge_answers(how, level[start : start + MERGED_AT_ONCE])
            for start in range(0, len(level), MERGED_AT_ONCE)
        ]
    return level[0]


@delayed(pure=False)
def answer_of_part(question: Callable[[PartSteps], Found], part: PartSteps) -> Found:
    """What one part answers."""
    return question(part)


@delayed(pure=False)
def merge_answers(merged: Callable[[Sequence[Found]], Found], answers: list[Found]) -> Found:
    """Some answers as one."""
    return merged(answers)
