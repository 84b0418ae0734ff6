"""Match labels and group names in files with the known ones, and list names in messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

LONGEST_NUMBER = 1000
"""Longer text is compared as text, even if all its characters are digits."""
LONGEST_SHOWN = 100
"""Characters of a name or a label in a message."""


def is_blank(label: Any) -> bool:
    return label is None or label == "" or label != label


def position_of_label(classes: Sequence[Any]) -> Callable[[Any], int | None]:
    """Return a function that finds the position of a value among the classes; None if it is not a class.

    Text and numbers with the same meaning are equal: ``"3.0"`` in a file is the class 3.
    """
    position: dict[Any, int] = {}
    for key in (_number, str, lambda label: label):  # an exact match comes last, and overwrites the others
        position |= {key(label): k for k, label in enumerate(classes)}
    position.pop(None, None)

    def position_of(value: Any) -> int | None:
        if value is None:  # "None" may well be a class
            return None
        spellings = (value, str(value), _number(value))
        return next((position[spelling] for spelling in spellings if spelling in position), None)

    return position_of


def position_of_name(known: Sequence[Any]) -> Callable[[Any], int | None]:
    """Return a function that finds the position of a group's name; true and false match in any case."""
    position = position_of_label(known)
    truths = position_of_label([str(name).lower() for name in known])

    def position_of(value: Any) -> int | None:
        k, text = position(value), str(value).lower()
        return truths(text) if k is None and text in ("true", "false") else k

    return position_of


def _number(label: Any) -> Fraction | None:
    """Return the exact number that a label is or spells; ``01`` is text."""
    text = str(label)
    is_number = len(text) <= LONGEST_NUMBER and re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", text)
    return Fraction(text) if is_number else None


def listing(names: Sequence[Any]) -> str:
    """Join names for a message: of many the first ones and the last; quoted if spaces would be invisible."""
    some = names if len(names) <= 12 else [*names[:10], "..", names[-1]]
    shown = [repr(name) if isinstance(name, str) and name != name.strip() else str(name) for name in some]
    return ", ".join(map(shortened, shown))


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}.."
