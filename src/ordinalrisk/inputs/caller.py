"""Find the line outside the library that a warning should point at."""

from __future__ import annotations

import sys


def level_of_caller() -> int:
    """Return the ``stacklevel`` of the user's line, for a warning raised in the calling function."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(("ordinalrisk.", "contextlib")):
        level, frame = level + 1, frame.f_back
    return level
