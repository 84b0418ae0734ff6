"""Numbers as people write them: decimal commas, thousands separators and percent signs.

Scores are exact: the text is rewritten with a decimal point and converted once, so ``12,5 %`` is the float
nearest to 0.125.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ordinalrisk.files.formats import FileError

DECIMALS = {".": "decimal points", ",": "decimal commas"}
MISSING = ("", "#N/A", "NA", "N/A", "n/a", "NULL", "null", "NaN", "nan", "-nan", "-NaN")
"""Text that stands for a missing number."""
_SPACES = "'\u2019 \u00a0\u202f"
"""Thousands separators, besides the point or comma that is not the decimal sign."""


class Spelling(NamedTuple):
    """How the numbers of some columns are written.

    >>> plain, wrong = Spelling(",", grouped=True, percent=True).plain(pa.array(["12,5 %", "1.000,5", ""]))
    >>> plain.to_pylist(), wrong
    (['12.5e-2', '1000.5', None], None)
    """

    decimal: str = "."
    grouped: bool = False
    percent: bool = False

    @property
    def pattern(self) -> str:
        point = f"[{self.decimal}]"
        whole = "[0-9]+"
        if self.grouped:
            separators = _separators(self.decimal)
            whole = "|".join([*(f"[1-9][0-9]{{0,2}}(?:[{s}][0-9]{{3}})+" for s in separators), whole])
        number = rf"[+-]?(?:(?:{whole})(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        return rf"^{number}(?:[\s{_SPACES}]*%)?$" if self.percent else f"^{number}$"

    def plain(self, texts: pa.Array) -> tuple[pa.Array, int | None]:
        """Return numbers as Python writes them, and the position of the first text that is not a number."""
        trimmed = pc.utf8_trim_whitespace(texts.cast(pa.string()))
        is_blank = pc.is_in(trimmed, value_set=pa.array(MISSING))
        numbers = pc.if_else(is_blank, pa.scalar(None, pa.string()), trimmed)
        wrong = pc.index(pc.match_substring_regex(numbers, self.pattern), False).as_py()
        if wrong >= 0:
            return texts, wrong
        if self.percent:
            numbers = pc.replace_substring_regex(numbers, rf"[\s{_SPACES}]*%$", "e-2")
        if self.grouped:
            numbers = pc.replace_substring_regex(numbers, f"[{_separators(self.decimal)}]", "")
        return pc.replace_substring(numbers, ",", ".") if self.decimal == "," else numbers, None

    def in_words(self) -> list[str]:
        """List what a reader of the file may not expect."""
        words = [] if self.decimal == "." else [DECIMALS[self.decimal]]
        if self.grouped:
            words.append("thousands separators")
        if self.percent:
            words.append("percent signs (20% is 0.2)")
        return words


PLAIN = Spelling()


class PossibleSpellings(NamedTuple):
    """The spellings that fit the first values of a column, by decimal sign, and the signs that occur."""

    spellings: Mapping[str, Spelling]
    signs: str

    @property
    def is_open(self) -> bool:
        """Whether a sign may be the decimal one or separate thousands, as in ``1.234``."""
        return len(self.spellings) > 1 and self.signs != ""


SpellingsByColumn = Mapping[str, PossibleSpellings]
"""The columns that may contain numbers."""


def possible_spellings(columns: Mapping[str, Iterable[str]]) -> dict[str, PossibleSpellings]:
    """Find the columns that may contain numbers.

    >>> possible_spellings({"p0": ["0,5", "12,5 %"], "note": ["good"]})
    {'p0': PossibleSpellings(spellings={',': Spelling(decimal=',', grouped=False, percent=True)}, signs=',')}
    """
    looks = {name: _spellings_of([text.strip() for text in texts]) for name, texts in columns.items()}
    return {name: look for name, look in looks.items() if look.spellings}


def agreed(looks: SpellingsByColumn, columns: Collection[str], asked: str | None, name: str) -> Spelling:
    """Return how the numbers of these columns are written; an error if the values don't show it."""
    mine = {column: looks[column] for column in columns if column in looks}
    decimal = asked or _decimal(looks, mine, name)
    found = [look.spellings[decimal] for look in mine.values() if decimal in look.spellings]
    return Spelling(decimal, any(each.grouped for each in found), any(each.percent for each in found))


def _decimal(looks: SpellingsByColumn, mine: SpellingsByColumn, name: str) -> str:
    votes = _votes(mine)
    if len(votes) == 2:
        comma, point = votes[","], votes["."]
        raise FileError(
            f"{name}: column {comma!r} has decimal commas, column {point!r} decimal points; write all alike, "
            "or say which with `decimal`."
        )
    votes = votes or _votes(looks)
    if len(votes) == 1:
        return next(iter(votes))
    for column, look in mine.items():
        if look.is_open:
            raise FileError(
                f"{name}: column {column!r}: can't tell whether a point or a comma there is a decimal sign "
                "or separates thousands; say which sign is the decimal one with `decimal`."
            )
    return "."


def _votes(looks: SpellingsByColumn) -> dict[str, str]:
    """Return the decimal signs that some column needs, each with one such column."""
    return {
        sign: column for column, look in looks.items() if len(look.spellings) == 1 for sign in look.spellings
    }


def _spellings_of(texts: list[str]) -> PossibleSpellings:
    """Return the spellings that fit most values; the other values cause an error when they are read."""
    numbers = [text for text in texts if text not in MISSING]
    fits = {decimal: sum(map(bool, map(pattern.match, numbers))) for decimal, pattern in _NUMBERS.items()}
    most = max(fits.values())
    if most == 0 or most <= _FEWEST_NUMBERS * len(numbers):
        return PossibleSpellings({}, "")
    percent = any(text.endswith("%") for text in numbers)
    spellings = {
        decimal: Spelling(decimal, any(map(_GROUPED[decimal].search, numbers)), percent)
        for decimal in DECIMALS
        if fits[decimal] == most
    }
    return PossibleSpellings(
        spellings, "".join(sign for sign in DECIMALS if any(sign in text for text in numbers))
    )


def _separators(decimal: str) -> str:
    return ("," if decimal == "." else ".") + _SPACES


_FEWEST_NUMBERS = 0.9  # as a share of the values of a column of numbers
_NUMBERS = {decimal: re.compile(Spelling(decimal, True, True).pattern) for decimal in DECIMALS}
_GROUPED = {
    decimal: re.compile(f"^[+-]?[1-9][0-9]{{0,2}}[{_separators(decimal)}][0-9]{{3}}") for decimal in DECIMALS
}
