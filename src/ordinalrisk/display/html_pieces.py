"""Small self-contained pieces of HTML for notebooks.

Styles are inline and take the colour of the text around them, so that they fit light and dark pages. All text
from data is escaped: a class may be called ``<script>``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from ordinalrisk.display.palette import BLUE

LONGEST_TEXT, LONGEST_NAME = 160, 40
_RULE = "1px solid rgba(128,128,128,.35)"
TABLE = f"border-collapse:collapse;border:0;border-top:{_RULE};border-bottom:{_RULE};margin:.3em 0"
CELL = "padding:.15em .8em .15em 0;text-align:left;vertical-align:top;border:0;background:transparent"
NUMBER = "padding:.15em .8em .15em 0;text-align:right;vertical-align:top;border:0;background:transparent"
QUIET = "opacity:.65;font-weight:normal"
_MONO = "font-family:monospace"
_WIDTH = "max-width:44em"
_TRACK = "display:inline-block;width:6em;height:.6em;border-radius:2px;border:1px solid rgba(128,128,128,.35)"
_FILLED = f"display:block;height:100%;background:{BLUE}"


def heading(name: str, about: str = "") -> str:
    return f"<div><b>{escape(name)}</b>{about}</div>"


def words(text: str) -> str:
    """Wrap a paragraph that is as wide as a column of text."""
    return f'<div style="{_WIDTH}">{escape(text)}</div>'


def table(header: Sequence[str], rows: Sequence[str], numbers: Collection[int] = ()) -> str:
    """Wrap rows in a table; ``header`` is HTML, ``numbers`` the positions of columns of numbers."""
    titles = (
        f'<th style="{NUMBER if at in numbers else CELL};{QUIET}">{title}</th>'
        for at, title in enumerate(header)
    )
    return f'<table style="{TABLE}">{row(*titles) if header else ""}{"".join(rows)}</table>'


def row(*cells: str) -> str:
    return f'<tr style="background:transparent">{"".join(cells)}</tr>'


def cell(html: str, style: str = CELL) -> str:
    return f'<td style="{style}">{html}</td>'


def more(n: int) -> str:
    return f'<div style="{QUIET}">... {n:,} more</div>' if n > 0 else ""


def text(whole: str, longest: int = LONGEST_TEXT, hover: str = "") -> str:
    """Escape a text; if it is shortened, a tooltip shows all of it."""
    shown = whole if len(whole) <= longest else f"{whole[:longest]}…"
    hover = hover or whole
    return escape(shown) if shown == hover else f'<span title="{escape(hover)}">{escape(shown)}</span>'


def code(html: str) -> str:
    return f'<span style="{_MONO}">{html}</span>'


def bar(share: float) -> str:
    """Draw a share as a bar.

    >>> "width:25.0%" in bar(0.25)
    True
    """
    return (
        f'<span style="{_TRACK}" aria-hidden="true"><span style="{_FILLED};width:{share:.1%}"></span></span>'
    )
