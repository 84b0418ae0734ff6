"""What a report keeps of test rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ordinalrisk.calibration.fingerprint import DataFingerprint
from ordinalrisk.calibration.score_counts import ScoreCounts
from ordinalrisk.evaluation.outcomes import Outcomes
from ordinalrisk.evaluation.striking import StrikingRows
from ordinalrisk.inputs.batch import Batch, SummaryGroup
from ordinalrisk.inputs.random_rows import RandomRows
from ordinalrisk.prediction.predictor import Predictor
from ordinalrisk.report.reliability import Reliability
from ordinalrisk.report.slices import Slices

_MOST_COLUMNS = 6
_ROWS_COMPARED = 20_000


class ReportRows(SummaryGroup):
    """The outcomes of rows at every stop, a sample of them, and their fingerprint.

    Slices are counted at the stop ``start``.
    """

    outcomes: Outcomes
    sample: RandomRows
    fingerprint: DataFingerprint
    reliability: Reliability
    scores: ScoreCounts
    slices: Slices
    spans: list[tuple[int, int]]  # the numbers of the rows, each span without its end
    columns: list[str] | None  # the names of the columns that are shown

    def __init__(
        self, stops: Sequence[Predictor], start: int, unseen_groups: str, random_state: int | None
    ) -> None:
        super().__init__(
            outcomes=Outcomes(stops, unseen_groups=unseen_groups, random_state=random_state, striking=True),
            sample=RandomRows(_ROWS_COMPARED),
            fingerprint=DataFingerprint(),
            reliability=Reliability(),
            scores=ScoreCounts(),
            slices=Slices(stops[start], unseen_groups, random_state),
        )
        self._growth, self._costs = stops[0].growth, stops[0].calibration.costs
        self.spans, self.columns = [], None
        self._number_type: str | None = None

    @property
    def n_rows(self) -> int:
        return sum(end - first for first, end in self.spans)

    @property
    def striking(self) -> StrikingRows:
        assert self.outcomes.striking is not None
        return self.outcomes.striking

    def next_row(self, first_row: int) -> int:
        """Return the number of the row after the last; without rows, the first."""
        return self.spans[-1][1] if self.spans else first_row

    def add(self, batch: Batch) -> None:
        """Add more rows; nothing changes if some of them can't be counted."""
        if not len(batch):
            return
        columns, number = [*batch.columns], batch.proba.dtype
        number_type = str(number.names[0] if number.names else number.name)
        self._require_alike("This batch", columns, number_type)
        spans = _adjoining_spans_merged([*self.spans, (batch.first_row, batch.first_row + len(batch))])
        self._growth.intervals(batch.proba, self._costs, math.inf, None)  # refuses wrong probabilities
        super().add(batch)
        self.spans, self.columns, self._number_type = spans, columns, number_type

    def merge(self, other: ReportRows) -> ReportRows:
        if other.columns is not None and other._number_type is not None:
            self._require_alike("The part to merge", other.columns, other._number_type)
        spans = _adjoining_spans_merged([*self.spans, *other.spans])
        both = super().merge(other)
        both.spans, both.columns = spans, self.columns if other.columns is None else other.columns
        both._number_type = self._number_type or other._number_type
        return both

    def _require_alike(self, what: str, columns: list[str], number_type: str) -> None:
        if self.columns not in (None, columns):
            raise ValueError(f"{what} has cases with the columns {columns}, those before {self.columns}.")
        if self._number_type not in (None, number_type):
            raise ValueError(
                f"{what} has probabilities of type {number_type}, but earlier rows have {self._number_type}; "
                "convert all to one type."
            )


def _adjoining_spans_merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order, adjacent ones as one.

    Examples
    --------
    >>> _adjoining_spans_merged([(5, 9), (0, 2), (2, 4)])
    [(0, 4), (5, 9)]
    """
    merged: list[tuple[int, int]] = []
    for first, end in sorted(spans):
        if merged and first < merged[-1][1]:
            raise ValueError(
                f"Row {first} is in both parts; give each part first_row= the number of rows before it."
            )
        if merged and first == merged[-1][1]:
            first = merged.pop()[0]
        merged.append((first, end))
    return merged


def shown_columns(cases: Any, n_rows: int) -> dict[str, Any]:
    """Return the first few columns of cases, after checks."""
    if cases is None:
        return {}
    if not hasattr(cases, "items"):
        raise ValueError(f"cases must map names of columns to their values; got a {type(cases).__name__}.")
    columns = {str(name): values for name, values in cases.items()}
    for name, values in columns.items():
        if isinstance(values, str) or not hasattr(values, "__len__") or len(values) != n_rows:
            raise ValueError(f"cases[{name!r}] must have one value for each of the {n_rows} rows of proba.")
    return dict([*columns.items()][:_MOST_COLUMNS])
