"""Format tables and lists as text, for a terminal or a page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NUMBER = re.compile(r"[+-]?[\d,]+(\.\d+)?")


@dataclass(frozen=True)
class TextTable:
    """A caption, a header and rows of text; columns of numbers are aligned right, others left.

    Examples
    --------
    >>> print(TextTable("Sizes", ("rule", "size"), [("paper", "2.5"), ("frontier", "10.0")]).text())
    rule      size
    paper      2.5
    frontier  10.0
    """

    caption: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def text(self) -> str:
        """Format the table as padded columns."""
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(row, widths, self._numbers(), strict=True)
            ).rstrip()
            for row in [self.header, *self.rows]
        )

    def markdown(self) -> str:
        """Format the table as Markdown."""
        rule = ["---:" if number else "---" for number in self._numbers()]
        rows = [[cell.replace("|", r"\|") for cell in row] for row in [self.header, rule, *self.rows]]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def _numbers(self) -> list[bool]:
        """Return which columns contain numbers."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.header)
        return [any(_NUMBER.fullmatch(cell) for cell in column) for column in columns]


def counted(n: int, noun: str) -> str:
    """Write a number with its noun.

    Examples
    --------
    >>> counted(1, "class"), counted(2000, "row"), counted(3, "class")
    ('1 class', '2,000 rows', '3 classes')
    """
    return f"{n:,} {noun}{'' if n == 1 else 'es' if noun.endswith('s') else 's'}"


def listed(texts: Iterable[str], most: int = 8) -> str:
    """List texts with commas; of more than ``most``, only the first ones.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    every = [*texts]
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most} more"
