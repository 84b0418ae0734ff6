"""Rows that a model never trains on, and the file that remembers them.

Rows that belong together, such as copies of an image or the two eyes of a patient, stay on one side.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinalrisk.files.atomic import replacing

FORMAT = "ordinalrisk split"
SCHEMA_VERSION = 1


def hold_out(groups: ArrayLike, n_rows: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training rows and held-out rows, whole groups at random.

    Groups are taken in random order; one that no longer fits is passed over. Where enough rows are their own
    group, exactly ``n_rows`` rows are held out, else as many as fit.

    Parameters
    ----------
    groups : array of shape (n,)
        Rows of equal group stay together.
    n_rows : int
        Rows to hold out, at least 2: some to calibrate on, some to test on.
    seed : int
        The same seed gives the same rows.

    Returns
    -------
    train, held : arrays of int
        Both ascending.

    Examples
    --------
    >>> train, held = hold_out([7, 7, 8, 9, 10, 10], n_rows=3)
    >>> train.tolist(), held.tolist()
    ([2, 4, 5], [0, 1, 3])
    """
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    if not 2 <= n_rows < len(group):
        raise ValueError(
            f"n_rows={n_rows} can't be held out of {len(group)} rows: take at least 2, leave at least 1."
        )
    size = np.bincount(group)
    taken = np.zeros(len(size), bool)
    room = n_rows
    for g in np.random.default_rng(seed).permutation(len(size)):
        if size[g] <= room:
            taken[g] = True
            room -= size[g]
    held = taken[group]
    if held.sum() < 2:
        raise ValueError(
            f"n_rows={n_rows} is too few for whole groups: only {held.sum()} rows fit, and 2 are needed."
        )
    return np.flatnonzero(~held), np.flatnonzero(held)


def write_split(
    path: str | PathLike[str], names: Sequence[str], train: ArrayLike, held: ArrayLike, seed: int
) -> None:
    """Save which of the named rows are held out.

    Parameters
    ----------
    path : path
        The JSON file to write.
    names : sequence of str
        Identifiers of all rows; only their digest is saved.
    train, held : arrays of int
        Positions, each row in one of the two.
    seed : int
        The seed that the split was drawn with, to be read by people.
    """
    train, held = np.sort(np.asarray(train, np.int64)), np.sort(np.asarray(held, np.int64))
    if not np.array_equal(np.sort(np.concatenate([train, held])), np.arange(len(names))):
        raise ValueError(
            f"Each of {len(names)} rows must be in one of train ({len(train)}) and held ({len(held)})."
        )
    document = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "names_sha256": _names_digest(names),
        "n_rows": len(names),
        "seed": int(seed),
        "held_out": held.tolist(),
    }
    with replacing(path) as temporary:
        temporary.write_text(json.dumps({**document, "sha256": _digest(document)}) + "\n", encoding="utf-8")


def read_split(
    path: str | PathLike[str], names: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The training rows and the held-out rows of a saved split.

    Parameters
    ----------
    path : path
        A file of :func:`write_split`.
    names : sequence of str
        Identifiers of all rows, the same in the same order as when it was written.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a whole JSON file ({error}).") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path} is no {FORMAT}.")
    if document.get("schema_version") != SCHEMA_VERSION:
        found = document.get("schema_version")
        raise ValueError(f"{path} has schema version {found!r}; this version reads {SCHEMA_VERSION}.")
    if document.pop("sha256", None) != _digest(document):
        raise ValueError(f"{path} does not match its digest, so it was changed after it was saved.")
    if document["names_sha256"] != _names_digest(names):
        raise ValueError(
            f"{path} is a split of other rows: {document['n_rows']} rows in it, {len(names)} here, and the "
            "names differ. Use the data that it was made from, in the same order."
        )
    held = np.zeros(len(names), bool)
    held[document["held_out"]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def _names_digest(names: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _digest(document: dict[str, Any]) -> str:
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
