"""Decisions as a file: the kept columns, whether a row is accepted, its label, and the model's risk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ordinalrisk.files.formats import FileError
from ordinalrisk.files.scored_rows import FileRows
from ordinalrisk.files.set_writer import LabelArrays, WriteColumns, as_array, writing_columns
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.triage.triaged_rows import TriagedRows

ADDED = ("accepted", "label", "model_risk")


class Decided(NamedTuple):
    """Counts of decided rows.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    n_accepted : int
        The number of rows that are accepted.
    """

    n_rows: int
    n_accepted: int


_NOTHING = Decided(0, 0)


def total(counts: Sequence[Decided]) -> Decided:
    return Decided(*map(sum, zip(*counts, strict=True)))


@dataclass
class DecisionWriter:
    """Writes the decisions of batches, and counts them in ``written``."""

    labels: LabelArrays
    write_columns: WriteColumns
    written: Decided = _NOTHING

    def write(self, batch: Batch, decisions: TriagedRows) -> None:
        accepted = decisions.accepted
        label = self.labels.array(decisions.label_index, accepted)
        self.write_columns(batch, [as_array(accepted), label, as_array(decisions.model_risk)])
        self.written = total([self.written, Decided(len(accepted), int(np.count_nonzero(accepted)))])


@contextmanager
def writing_decisions(
    rows: FileRows,
    place: str,
    classes: Classes,
    prefix: str = "",  # before the names of the new columns
    given_format: str | None = None,  # if the name has no known ending
    safe_csv: bool = False,
) -> Iterator[DecisionWriter]:
    """Write decisions to a file, whole or not at all, or to standard output; no label where referred."""
    labels = LabelArrays(classes)
    kinds = pa.bool_(), labels.type, pa.float64()
    new = [
        pa.field(prefix + name, kind, nullable=name == "label")
        for name, kind in zip(ADDED, kinds, strict=True)
    ]
    with writing_columns(rows, place, new, given_format, safe_csv) as write_columns:
        decisions = DecisionWriter(labels, write_columns)
        yield decisions
        if not decisions.written.n_rows:
            raise FileError(f"{rows.name}: has no rows.")
