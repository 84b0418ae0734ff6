"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TypeVar, overload

from ordinalrisk.engines.places import StoredFile, located

File = TypeVar("File", Path, StoredFile)


@overload
def replacing(place: Path) -> AbstractContextManager[Path]: ...
@overload
def replacing(place: str | PathLike[str]) -> AbstractContextManager[Path | StoredFile]: ...
def replacing(
    place: str | PathLike[str],
) -> AbstractContextManager[Path] | AbstractContextManager[Path | StoredFile]:
    """A temporary name beside ``place`` to write to; on success it takes the place of the file at once.

    If anything fails, the file is as it was and the temporary one is gone. A file that is replaced hands on
    its permissions; of a link, what it points to is replaced. ``place`` may be a URL that fsspec knows; what
    is to be written to is a :class:`~ordinalrisk.engines.places.StoredFile` then.
    """
    file = located(place)
    return _replacing_stored(file) if isinstance(file, StoredFile) else _replacing_local(file)


TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{12}\.tmp")
"""What a temporary file is called; the first group is the name that it is to have."""


def temporary_beside(target: File) -> File:
    """A hidden name beside a file, which no other process uses."""
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")


@contextmanager
def _replacing_stored(target: StoredFile) -> Iterator[StoredFile]:
    if target.is_dir():
        raise OSError(errno.EINVAL, f"{target} is a folder, which a file can't replace")
    temporary = temporary_beside(target)
    try:
        yield temporary
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):  # it may never have come to be, and the first error is the one to be told
            temporary.remove()
        raise


@contextmanager
def _replacing_local(path: Path) -> Iterator[Path]:
    target = path.resolve() if path.is_symlink() else path
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target} can't be written: there is no folder {target.parent}.")
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, f"{target} is a folder, a device or a pipe, which a file can't replace")
    temporary = temporary_beside(target)
    try:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
