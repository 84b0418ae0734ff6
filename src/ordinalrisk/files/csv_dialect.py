"""Infer from its first bytes how a text table is written: encoding, delimiter and spelling of numbers.

Only the first :data:`BYTES_LOOKED_AT` bytes are read. In a file with commas and decimal points, the values
are not examined here.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from types import MappingProxyType
from typing import NamedTuple

from ordinalrisk.files.formats import FileError
from ordinalrisk.files.spelled_numbers import PossibleSpellings, SpellingsByColumn, possible_spellings

BYTES_LOOKED_AT = 1 << 16
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n")  # which Excel writes, and hides
_UNUSUAL_NUMBER = re.compile(
    r"%|\"\s*[+-]?[0-9.'\u2019 \u00a0\u202f]*,[0-9]|[0-9]['\u2019 \u00a0\u202f][0-9]{3}(?![0-9])"
)


class CsvDialect(NamedTuple):
    """How a text table is written."""

    delimiter: str = ","
    encoding: str | None = None  # if it is not UTF-8
    lines_before: int = 0  # above the header
    looks: SpellingsByColumn = MappingProxyType({})  # by the position of the column, as text

    def in_words(self) -> list[str]:
        """List what differs from the standard: commas, and UTF-8."""
        words = [] if self.delimiter == "," else [f"{plural_of(self.delimiter)} between the values"]
        return words if self.encoding is None else [*words, "text in UTF-16"]


def plural_of(delimiter: str) -> str:
    return DELIMITERS.get(delimiter, repr(delimiter))


def is_utf_16(start: bytes) -> bool:
    return start.startswith(_UTF_16)


def dialect_of(
    start: bytes, name: str, delimiter: str | None = None, decimal: str | None = None
) -> CsvDialect:
    r"""Return how a text table is written, given its first bytes and what the user says.

    >>> dialect_of(b"id;p0;p1\n1;0,5;0,5\n", "new.csv").in_words()
    ['semicolons between the values']
    """
    encoding = "utf-16" if is_utf_16(start) else None
    text = codecs.getincrementaldecoder(encoding or "utf-8-sig")("replace").decode(start)
    lines_before = 0
    if declared := _SEPARATOR_LINE.match(text):
        text, lines_before, delimiter = text[declared.end() :], 1, delimiter or declared[1]
    delimiter = _delimiter(text, name, delimiter, len(start) < BYTES_LOOKED_AT)
    looks: SpellingsByColumn = {}
    if delimiter != "," or decimal == "," or _UNUSUAL_NUMBER.search(text):
        looks = _looks(text, delimiter, len(start) < BYTES_LOOKED_AT)
    return CsvDialect(delimiter, encoding, lines_before, looks)


def _delimiter(text: str, name: str, given: str | None, is_whole: bool) -> str:
    """Find the delimiter in the header or, if several fit there, in all rows."""
    first, _, rest = text.lstrip("\r\n").partition("\n")
    header, below = (first, rest) if first.count('"') % 2 == 0 else (text, "")
    header = _QUOTED.sub('""', header).splitlines()[0] if header.strip() else ""
    possible = [sign for sign in DELIMITERS if sign in header]
    if given is not None:
        if given not in header and possible:
            raise FileError(
                f"{name}: {possible[0]!r} seems to separate the values, and not {given!r}; correct "
                "`delimiter`, or give all files the same."
            )
        return given
    if len(possible) > 1 and (rows := _rows_in(below, is_whole)):
        alike = [sign for sign in possible if all(row.count(sign) == header.count(sign) for row in rows)]
        if len(alike) > 1:
            signs = " and ".join(map(repr, alike))
            raise FileError(f"{name}: {signs} may separate the values; say which does with `delimiter`.")
        possible = alike or possible
    return possible[0] if possible else ","


def _rows_in(text: str, is_whole: bool) -> list[str]:
    """Return the lines without what is in quotes; of a part of a file, without the last one."""
    rows = [line for line in _QUOTED.sub('""', text).splitlines() if line.strip()]
    return rows if is_whole else rows[:-1]


def _looks(text: str, delimiter: str, is_whole: bool) -> SpellingsByColumn:
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    if not rows:
        return {}
    header, *values = rows if is_whole or len(rows) < 2 else rows[:-1]
    columns = zip(*(row for row in values if len(row) == len(header)), strict=True)
    looks = possible_spellings({str(position): texts for position, texts in enumerate(columns)})
    if delimiter != ",":
        return looks
    return {at: _without_grouped_points(look) for at, look in looks.items()}


def _without_grouped_points(look: PossibleSpellings) -> PossibleSpellings:
    """Read 1.234 as a decimal number if commas separate the values."""
    return look._replace(spellings={".": look.spellings["."]}) if look.signs == "." else look
