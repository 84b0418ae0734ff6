"""The files that places and patterns such as ``s3://bucket/part-*.csv`` name."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from typing import Any

from ordinalrisk.files.formats import FileError
from ordinalrisk.files.places import PIPE, StoredFile, is_url, join, located, reading_from


def expanded(places: Sequence[str]) -> list[str]:
    """List the files that places and patterns name, in the order given; those of a pattern sorted by bytes.

    In a pattern ``*``, ``?`` and ``[..]`` mean what they mean in a shell, and ``**`` matches any folders. A
    pattern that is the name of an existing file means that file.

    Raises
    ------
    FileError
        If a pattern matches no file, if a file is named twice, or if a place is a folder.

    Examples
    --------
    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe({"/e/part-1.csv": b"", "/e/part-0.csv": b"", "/e/notes.txt": b""})
    >>> expanded(["memory://e/part-*.csv"])
    ['memory:///e/part-0.csv', 'memory:///e/part-1.csv']
    """
    files: dict[Any, str] = {}
    for place in places:
        for file in _matching(place):
            identity = file if file == PIPE else _identity(file)
            if identity in files:
                raise FileError(f"{file}: is named twice (before as {files[identity]}); name each file once.")
            files[identity] = file
    return list(files.values())


def _matching(place: str) -> list[str]:
    """Return the file at a place, or the files that a pattern matches."""
    if place == PIPE:
        return [place]
    file = located(place)
    if file.is_dir():
        example = join(place, "*.parquet")
        raise FileError(f"{place}: is a folder; name the files in it, such as {example}.")
    if not _is_pattern(place) or file.exists():
        return [place]
    found = _stored_matches(file) if isinstance(file, StoredFile) else _local_matches(str(file))
    if not found:
        raise FileError(f"{place}: matches no file; correct the pattern.")
    return sorted(found, key=os.fsencode)


def _is_pattern(place: str) -> bool:
    wildcards = r"[*\[]" if place.startswith("http") and is_url(place) else r"[*?\[]"
    return re.search(wildcards, place) is not None


def _local_matches(pattern: str) -> list[str]:
    return [path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path)]


def _stored_matches(pattern: StoredFile) -> list[str]:
    if "::" in pattern.url:
        raise FileError(f"{pattern}: a chain of URLs can't hold a pattern; name each file.")
    with reading_from(pattern.url):
        found = pattern.system.glob(pattern.path, detail=True)
    return [
        pattern.system.unstrip_protocol(path)
        for path, info in found.items()
        if info["type"] == "file" and not _is_hidden(path, pattern.path)
    ]


def _is_hidden(path: str, pattern: str) -> bool:
    """Return whether a shell would skip the path: only a pattern with a dot in front matches such names."""
    asked = [part for part in pattern.split("/") if part.startswith(".")]
    hidden = [part for part in path.split("/") if part.startswith(".")]
    return len(hidden) > len(asked)


def _identity(place: str) -> Any:
    file = located(place)
    return file if isinstance(file, StoredFile) else os.path.realpath(file)
