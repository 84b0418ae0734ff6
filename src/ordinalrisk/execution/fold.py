"""Read rows wherever they are, and fold them into a summary."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from ordinalrisk.inputs.batch import Batch, Summary, in_batch

Item = TypeVar("Item")
Result = TypeVar("Result")
SummaryT = TypeVar("SummaryT", bound=Summary)
RowsDone = Callable[[int], None]
"""A function that takes the number of rows that are done, or of parts on a cluster."""


class Part(Protocol):
    """Rows to be read in batches: arrays, an iterator, a file or a partition."""

    def batches(self) -> Generator[Batch, None, None]:
        """Yield the rows in order. Close the generator to stop early."""

    def naming(self, batch: Batch) -> AbstractContextManager[Any]:
        """Return a context in which errors say where the rows of this batch come from."""


@dataclass(frozen=True)
class InMemory:
    """Batches in memory, or from an iterator; errors name the batch if the caller passes several."""

    rows: Iterable[Batch]

    def batches(self) -> Generator[Batch, None, None]:
        yield from self.rows

    def naming(self, batch: Batch) -> AbstractContextManager[Any]:
        return in_batch(batch.number)


@dataclass(frozen=True)
class Serial:
    """Read one batch after the other in this thread; another thread prepares the next ``ahead`` batches."""

    ahead: int = 0
    progress: RowsDone = lambda n_rows: None

    def fold(
        self, source: Sequence[Part], summary: SummaryT, then: Callable[[Batch], None] | None = None
    ) -> SummaryT:
        """Add all rows to an empty summary and return it; do not use ``summary`` afterwards.

        ``then`` is called on each batch, in order, after it was added. It is for what depends on the order of
        rows, such as bets, and so is no summary.
        """

        def add(batch: Batch) -> None:
            summary.add(batch)
            if then is not None:
                then(batch)

        self.map(source, add)
        return summary

    def map(self, source: Sequence[Part], work: Callable[[Batch], None]) -> None:
        """Call ``work`` on each batch, in order."""
        n_rows = 0
        for part in source:
            with closing(part.batches()) as batches, closing(read_ahead(batches, self.ahead)) as read:
                for batch in read:
                    with part.naming(batch):
                        work(batch)
                    n_rows += len(batch)
                    self.progress(n_rows)

    def map_parts(self, source: Sequence[Any], function: Callable[[Any, Serial], Result]) -> list[Result]:
        """Return ``function(part, reader)`` of each part, in order. The reader adds to the count of rows."""
        results, n_rows = [], 0

        def count(n_before: int, n_read: int) -> None:
            nonlocal n_rows
            n_rows = n_before + n_read
            self.progress(n_rows)

        for part in source:
            results.append(function(part, replace(self, progress=partial(count, n_rows))))
        return results


SERIAL = Serial()
READ_AHEAD = Serial(ahead=2)


def read_ahead(items: Iterable[Item], ahead: int) -> Generator[Item, None, None]:
    """Yield items while another thread prepares the next few."""
    if not ahead:
        yield from items
        return
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1) as reader:
        pending = deque(reader.submit(next, iterator, end) for _ in range(ahead))
        while (item := pending.popleft().result()) is not end:
            pending.append(reader.submit(next, iterator, end))
            yield item  # type: ignore[misc]
