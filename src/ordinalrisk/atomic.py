"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[Path]:
    """A temporary name beside ``path`` to write to; on success it takes the place of ``path`` at once.

    If anything fails, ``path`` is as it was and the temporary file is gone. A file that is replaced hands on
    its permissions; of a link, what it points to is replaced.
    """
    target = Path(path).resolve() if Path(path).is_symlink() else Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target} can't be written: there is no folder {target.parent}.")
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, f"{target} is a folder, a device or a pipe, which a file can't replace")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
