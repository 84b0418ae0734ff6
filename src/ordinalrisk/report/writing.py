"""Reports as files: the page, and what it shows as JSON."""

from __future__ import annotations

import json
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

from ordinalrisk.controller import RiskController
from ordinalrisk.files.atomic import replacing
from ordinalrisk.files.places import StoredFile, located
from ordinalrisk.report import render
from ordinalrisk.report.summary import summarise

_BEGINNING = '{"format":"ordinalrisk report",'


def write_report(
    controller: RiskController,
    proba: Any,
    y: Any,
    path: str | PathLike[str],
    *,
    cases: Any = None,
    groups: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    random_state: int | None = None,
    unseen_groups: str = "error",
    title: str | None = None,
    rows: bool = True,
) -> None:
    """Write a report on test rows as an HTML page, and what the page shows as JSON.

    Parameters
    ----------
    controller, proba, y
        As for :func:`summarise`.
    path : path
        The page, whose name ends in ``.html``. The JSON file has the same name with the ending ``.json``; it
        replaces an earlier report's, but no other file.
    cases, groups, clusters, sample_weight, random_state, unseen_groups
        As for :func:`summarise`.
    title : str, optional
        The title of the report; by default "Risk report". Its date is today.
    rows : bool
        As for :meth:`ReportSummary.finish`.

    Examples
    --------
    >>> import os, tempfile
    >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
    >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(controller, proba, [0, 1, 2] * 7, f"{folder}/report.html")
    ...     print(sorted(os.listdir(folder)))
    ['report.html', 'report.json']
    """
    numbers_beside(path)
    summary = summarise(
        controller,
        proba,
        y,
        cases=cases,
        groups=groups,
        clusters=clusters,
        sample_weight=sample_weight,
        random_state=random_state,
        unseen_groups=unseen_groups,
        title=title,
        date=today(),
        rows=rows,
    )
    write_summary(summary, path)


def write_summary(summary: dict[str, Any], path: str | PathLike[str]) -> None:
    """Write a summary as an HTML page and as JSON, each whole or not at all.

    Parameters
    ----------
    summary : dict
        What :func:`summarise` or :meth:`ReportSummary.finish` returns.
    path : path
        As for :func:`write_report`.

    Examples
    --------
    >>> import os, tempfile
    >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
    >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
    >>> summary = summarise(controller, proba, [0, 1, 2] * 7)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_summary(summary, f"{folder}/report.html")
    ...     print(sorted(os.listdir(folder)))
    ['report.html', 'report.json']
    """
    page, data = render(summary), json.dumps(summary, allow_nan=False, separators=(",", ":"))
    with replacing(path) as html, replacing(numbers_beside(path)) as numbers:
        html.write_text(page, encoding="utf-8")
        numbers.write_text(data + "\n", encoding="utf-8")


def today() -> str:
    """Return the date, such as 2026-01-31."""
    return datetime.now().astimezone().date().isoformat()


def numbers_beside(path: str | PathLike[str]) -> Path | StoredFile:
    """Return where the numbers of a page go; a file there is only replaced if a report wrote it.

    Examples
    --------
    >>> numbers_beside("quarter.html").name
    'quarter.json'
    """
    page = located(path)
    if page.suffix.lower() not in (".html", ".htm"):
        raise ValueError(
            f"{path} is the page, so its name must end in .html; its numbers go next to it, as JSON."
        )
    numbers = page.with_suffix(".json")
    if numbers.is_file() and not _is_of_a_report(numbers):
        raise ValueError(
            f"{path} would replace {numbers}, which no report wrote: the numbers of a page go next to it, as "
            "JSON. Choose another name for the page, or move that file."
        )
    return numbers


def _is_of_a_report(file: Path | StoredFile) -> bool:
    try:
        return file.read_text(encoding="utf-8").startswith(_BEGINNING)
    except UnicodeDecodeError:
        return False
