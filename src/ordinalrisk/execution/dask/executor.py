"""Read parts with Dask, on the workers of a cluster or in threads of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import dask
from dask.delayed import Delayed, delayed

from ordinalrisk.calibration.loss_steps import LossSteps
from ordinalrisk.curves.bracketing import first_question
from ordinalrisk.curves.part_steps import FirstLook, PartSteps
from ordinalrisk.execution.fold import READ_AHEAD, Part, Result, RowsDone, Serial, SummaryT
from ordinalrisk.files.formats import FileError
from ordinalrisk.inputs.batch import Summary, SummaryGroup, merge_all

MERGED_AT_ONCE = 32


class DaskExecutor:
    """Read each part in a task of its own, and merge summaries on the workers.

    Parts are objects that every worker can read, or delayed objects of Dask. If a worker is lost, Dask
    repeats its tasks, with the same results. ``progress`` is called with the number of parts that are done.
    """

    def __init__(self, progress: RowsDone = lambda n_parts: None) -> None:
        self._progress = progress

    def fold(self, source: Sequence[Part], summary: SummaryT) -> SummaryT:
        empty = shared(summary)
        parts = [summary_of_part(part, empty) for part in source]
        *computed, whole = dask.persist(*parts, merge_on_workers(parts), optimize_graph=False)
        self._wait(source, computed)
        merged_summary: SummaryT = whole.compute()
        return merged_summary

    def map_parts(self, source: Sequence[Any], function: Callable[[Any, Serial], Result]) -> list[Result]:
        work = shared(function)
        computed = dask.persist(*(called_with_reader(work, part) for part in source), optimize_graph=False)
        self._wait(source, computed)
        return [*dask.compute(*computed)]

    def keep(self, source: Sequence[Part], steps: LossSteps, others: SummaryT) -> tuple[KeptParts, SummaryT]:
        """Read each part on a worker; keep its steps there to answer questions, and merge other summaries."""
        empty = shared((steps, others))
        read = [read_part(part, empty) for part in source]
        kept = KeptParts([*map(steps_of_part, read)], [*map(others_of_part, read)])
        self._wait(source, kept.parts)
        merged_summary: SummaryT = kept.others.compute()
        return kept, merged_summary

    def _wait(self, source: Sequence[Part], parts: Sequence[Delayed]) -> None:
        """Wait for parts that are computed on a cluster; raise the first error."""
        from distributed import as_completed, futures_of
        from distributed.scheduler import KilledWorker

        index = {part.key: i for i, part in enumerate(parts)}
        futures = futures_of(parts)
        for done, future in enumerate(as_completed(futures) if futures else (), 1):
            try:
                if future.status != "finished":
                    future.result()
            except KilledWorker:
                name = getattr(source[index[future.key]], "name", f"Partition {index[future.key]}")
                raise FileError(
                    f"{name}: the workers that had it were lost again and again; do they have enough memory?"
                ) from None
            self._progress(done)


class KeptParts:
    """Steps of losses that stay on the workers, where they answer questions.

    The first question is sent with the parts, in one call of the scheduler.
    """

    def __init__(self, parts: Sequence[Delayed], others: Sequence[Delayed]) -> None:
        question = shared(first_question(len(parts)))
        first = merge_on_workers([called(question, part) for part in parts])
        *self.parts, self._first_look, self.others = dask.persist(
            *parts, first, merge_on_workers(others), optimize_graph=False
        )

    def first_look(self) -> FirstLook:
        """Return the merged answers of all parts to the first question."""
        answer: FirstLook = self._first_look.compute()
        return answer

    def ask(self, question: Callable[[PartSteps], Result]) -> Result:
        """Return the answers of all parts, merged on the workers."""
        sent = shared(question)
        answers = [called(sent, part) for part in self.parts]
        answer: Result = dask.compute(merge_on_workers(answers), optimize_graph=False)[0]
        return answer


def merge_on_workers(parts: Sequence[Delayed]) -> Delayed:
    """Merge all into one, a few at a time on the workers.

    The caller must keep references to computed parts: Dask drops a part with its last reference.
    """
    while len(parts) > 1:
        starts = range(0, len(parts), MERGED_AT_ONCE)
        parts = [merged(parts[start : start + MERGED_AT_ONCE]) for start in starts]
    return parts[0]


def shared(value: Any) -> Delayed:
    """Wrap a value that many tasks use, so that it is sent once and unchanged."""
    return delayed(value, traverse=False)


@delayed(pure=False)
def summary_of_part(part: Part, empty: SummaryT) -> SummaryT:
    return READ_AHEAD.fold([part], deepcopy(empty))


@delayed(pure=False)
def read_part(part: Part, empty: tuple[LossSteps, Summary]) -> tuple[PartSteps, Summary]:
    steps, others = deepcopy(empty)
    both = READ_AHEAD.fold([part], SummaryGroup(steps=steps, others=others))
    return both.steps.as_part(), both.others


@delayed(pure=False)
def steps_of_part(read: tuple[PartSteps, Summary]) -> PartSteps:
    return read[0]


@delayed(pure=False)
def others_of_part(read: tuple[PartSteps, Summary]) -> Summary:
    return read[1]


@delayed(pure=False)
def called(function: Callable[[PartSteps], Result], part: PartSteps) -> Result:
    return function(part)


@delayed(pure=False)
def called_with_reader(function: Callable[[Any, Serial], Result], part: Any) -> Result:
    return function(part, READ_AHEAD)


@delayed(pure=False)
def merged(parts: list[Any]) -> Any:
    return merge_all(parts)
