"""Reports as files: the page, and beside it what it shows as JSON."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from ordinalrisk.controller import RiskController
from ordinalrisk.files.atomic import replacing
from ordinalrisk.report import render
from ordinalrisk.report.summary import summarise


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
    seed: int | None = None,
    unseen_groups: str = "error",
) -> None:
    """Write a report on test rows as an HTML page, and beside it the same as JSON.

    Parameters
    ----------
    controller, proba, y
        As for :func:`summarise`.
    path : path
        Of the page. The JSON file has the same name with the ending ``.json``.
    cases, groups, clusters, sample_weight, seed, unseen_groups
        As for :func:`summarise`.

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
    _beside(path)
    summary = summarise(
        controller,
        proba,
        y,
        cases=cases,
        groups=groups,
        clusters=clusters,
        sample_weight=sample_weight,
        seed=seed,
        unseen_groups=unseen_groups,
    )
    write_summary(summary, path)


def write_summary(summary: dict[str, Any], path: str | PathLike[str]) -> None:
    """Write a summary as an HTML page and as JSON, each whole or not at all.

    Parameters
    ----------
    summary : dict
        What :func:`summarise` or :meth:`ReportSummary.finish` returns.
    path : path
        Of the page. The JSON file has the same name with the ending ``.json``.

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
    with replacing(path) as html, replacing(_beside(path)) as beside:
        html.write_text(page, encoding="utf-8")
        beside.write_text(data + "\n", encoding="utf-8")


def _beside(path: str | PathLike[str]) -> Path:
    beside = Path(path).with_suffix(".json")
    if beside == Path(path):
        raise ValueError(f"{path} is the page, and needs another ending than .json; .html is usual.")
    return beside
