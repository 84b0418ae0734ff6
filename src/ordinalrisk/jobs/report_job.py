"""Summarise test files for a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ordinalrisk.controller import RiskController
from ordinalrisk.files.find_columns import AskedColumns
from ordinalrisk.files.places import PIPE, located, name_of
from ordinalrisk.jobs.score_files import Paths, Reading, as_calibrated
from ordinalrisk.report import ReportSummary
from ordinalrisk.report.writing import today

COLUMNS_SHOWN = 6
_MOST_ASKED = 100  # files; a storage takes a while for each


def report_summary(
    controller: RiskController,
    paths: Paths,
    asked: AskedColumns,
    reading: Reading,
    *,
    random_state: int | None = None,
    calibration_name: str,
    title: str | None = None,
    rows: bool = True,
) -> dict[str, Any]:
    """Return all that a report on the rows of files shows; see :func:`ordinalrisk.report.summarise`."""

    def shown(finder: Any, columns: Any) -> list[str]:
        names: list[str] = finder.kept(None, (*columns.scores, columns.label))
        return names[:COLUMNS_SHOWN]

    with as_calibrated(
        controller, paths, asked, reading, labelled=True, by_cluster=True, keep=shown
    ) as files:
        with files.executor() as executor:
            if len(files.parts) > 1:
                files.number_rows(executor)
            summary = ReportSummary(controller, random_state=random_state)
            summary.rows = executor.fold(files.parts, summary.rows)
        files.require_rows(summary.n_rows)
        others = f" and {len(files.parts) - 1:,} more" if len(files.parts) > 1 else ""
        name = name_of(files.parts[0].place) + others
        n_bytes = _total_size([part.place for part in files.parts])
        columns = files.columns.to_dict()
        return summary.finish(
            calibration_name, name, columns, title=title, date=today(), test_bytes=n_bytes, rows=rows
        )


def _total_size(places: Sequence[str]) -> int | None:
    """Return the size of all files together; None for a pipe or for very many files."""
    total = 0
    for place in places if len(places) <= _MOST_ASKED else ():
        file = located(place)
        if place == PIPE or not file.is_file():
            return None
        size = file.stat().st_size if isinstance(file, Path) else file.size()
        if size is None:
            return None
        total += size
    return total or None
