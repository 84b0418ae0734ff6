"""The files that places and patterns such as ``s3://bucket/part-*.csv`` name."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from typing import Any

from ordinalrisk.files.formats import FileError
from ordinalrisk.files.places import PIPE, StoredFile, is_url, join, located, reading_from


class Places(list[str]):
    """The places of single files: all patterns are expanded."""


def expanded(places: Sequence[str]) -> Places:
    """List the files that places and patterns name, in the order given; those of a pattern sorted by bytes.

    In a pattern ``*``, ``?`` and ``[..]`` mean what they mean in a shell, and ``**`` matches any folders. A
    pattern that is the name of an existing file means that file.
    """
    files: dict[Any, str] = {}
    for place in places:
        for file in _matching(place):
            identity = file if file == PIPE else identity_of(file)
            if identity in files:
                raise FileError(f"{file}: is named twice (before as {files[identity]}); name each file once.")
            files[identity] = file
    return Places(files.values())


def _matching(place: str) -> list[str]:
    if place == PIPE:
        return [place]
    file = located(place)
    if file.is_dir():
        example = join(place, "*.parquet")
        raise FileError(f"{place}: is a folder; name the files in it, such as {example}.")
    if not _is_pattern(place) or file.exists():
        return [place]
    if isinstance(file, StoredFile):
        matches = _stored_matches(file)
    else:
        matches = [path for path in glob.glob(str(file), recursive=True) if os.path.isfile(path)]
    if not matches:
        raise FileError(f"{place}: matches no file; correct the pattern.")
    return sorted(matches, key=os.fsencode)


def _is_pattern(place: str) -> bool:
    wildcards = r"[*\[]" if place.startswith("http") and is_url(place) else r"[*?\[]"
    return re.search(wildcards, place) is not None


def _stored_matches(pattern: StoredFile) -> list[str]:
    if "::" in pattern.url:
        raise FileError(f"{pattern}: a chain of URLs can't hold a pattern; name each file.")
    with reading_from(pattern.url):
        matches = pattern.system.glob(pattern.path, detail=True)
    return [
        pattern.system.unstrip_protocol(path)
        for path, info in matches.items()
        if info["type"] == "file" and not _is_hidden(path, pattern.path)
    ]


def _is_hidden(path: str, pattern: str) -> bool:
    """Return whether a shell would skip the path: only a pattern with a dot in front matches such names."""
    n_hidden, n_wanted = (sum(part.startswith(".") for part in each.split("/")) for each in (path, pattern))
    return n_hidden > n_wanted


def identity_of(place: str) -> Any:
    """Return a value that is equal for two names of one file."""
    file = located(place)
    return file if isinstance(file, StoredFile) else os.path.realpath(file)
