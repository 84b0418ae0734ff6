"""The report on test rows: data to one dict, then dict to one page.

:func:`summarise` gives everything that is shown as one dict, :func:`render` makes one HTML page of it that
needs nothing else, :func:`write_report` writes both. The modules that compute are imported on first use.
"""

from typing import TYPE_CHECKING, Any

from ordinalrisk.report.render import render as render

if TYPE_CHECKING:
    from ordinalrisk.report.summary import ReportSummary, summarise
    from ordinalrisk.report.writing import write_report, write_summary

_HOME = {
    "ReportSummary": "summary",
    "summarise": "summary",
    "write_report": "writing",
    "write_summary": "writing",
}
__all__ = ["ReportSummary", "render", "summarise", "write_report", "write_summary"]


def __getattr__(name: str) -> Any:
    """Import a function on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'ordinalrisk.report' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"ordinalrisk.report.{_HOME[name]}"), name)
