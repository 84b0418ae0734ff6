"""The first rows in few characters, so that a page can find each of them.

JSON in gzip in base64: of each row its number, its columns, its true label, and its set at every stop. Sets
seldom change from one stop to the next, so only changes are written: the stop, and the first and last label.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ordinalrisk.evaluation.striking import MOST_LOOKED_UP, StrikingRow

_MOST_CHARACTERS = 1_200_000  # of a page of 6 MB


def lookup(cases: Mapping[int, StrikingRow], distinct: Sequence[int]) -> dict[str, Any]:
    """Return the first rows and their number, as many as there is room for; ``distinct`` as for outcomes.

    Examples
    --------
    >>> ends = np.array([[0, 2], [1, 2], [1, 1]], np.int32)
    >>> found = lookup({0: StrikingRow(["A"], 1, ends), 5: StrikingRow(["B"], 2, ends)}, [0, 0, 1, 2])
    >>> found["rows"], gzip.decompress(base64.b64decode(found["packed"])).decode()
    (2, '{"row":[1,6],"truth":[1,2],"values":[["A"],["B"]],"sets":[[0,0,2,2,1,2,3,1,1],[0,0,2,2,1,2,3,1,1]]}')
    """
    first = [(row, case) for row, case in cases.items() if row < MOST_LOOKED_UP]
    while len(packed := _packed(first, distinct)) > _MOST_CHARACTERS:
        first = first[: len(first) // 2]
    return {"rows": len(first), "packed": packed}


def _packed(cases: Sequence[tuple[int, StrikingRow]], distinct: Sequence[int]) -> str:
    columns = {
        "row": [row + 1 for row, _ in cases],
        "truth": [case.truth for _, case in cases],
        "values": [case.values for _, case in cases],
        "sets": [_changes(case.ends[distinct]) for _, case in cases],
    }
    text = json.dumps(columns, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def _changes(ends: np.ndarray[Any, Any]) -> list[int]:
    """Return each stop with another set than the one before, and the ends of that set."""
    stops = np.flatnonzero(np.r_[True, (ends[1:] != ends[:-1]).any(axis=1)])
    changes: list[int] = np.column_stack([stops, ends[stops]]).ravel().tolist()
    return changes
