"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import TypeVar, overload

from ordinalrisk.files.interrupting import creating, undone_if_interrupted
from ordinalrisk.files.places import StoredFile, located

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

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
    its permissions, which the temporary one has before anything is written to it; of a link, what it points
    to is replaced. What a killed process left of the same file is removed, unless the system has no locks
    (Windows, some network drives). ``place`` may be a URL that fsspec knows; what is to be written to is a
    :class:`~ordinalrisk.files.places.StoredFile` then.
    """
    file = located(place)
    return _replacing_stored(file) if isinstance(file, StoredFile) else _replacing_local(file)


TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{12}\.tmp", re.DOTALL)
"""What a temporary file is called; the first group is the :func:`stem` of the name that it is to have."""
_LONGEST_STEM = 100


def stem(name: str) -> str:
    """What stands for a file's name in that of a temporary one: the name, or a digest of a long one.

    Examples
    --------
    >>> stem("sets.csv"), len(stem(250 * "x"))
    ('sets.csv', 32)
    """
    code = os.fsencode(name)
    return name if len(code) <= _LONGEST_STEM else blake2b(code, digest_size=16).hexdigest()


def temporary_beside(target: File) -> File:
    """A hidden name beside a file, which no other process uses."""
    return target.with_name(f".{stem(target.name)}.{secrets.token_hex(6)}.tmp")


@contextmanager
def _replacing_stored(target: StoredFile) -> Iterator[StoredFile]:
    if target.is_dir():
        raise OSError(errno.EINVAL, f"{target} is a folder, which a file can't replace")
    temporary = temporary_beside(target)
    with undone_if_interrupted(temporary.remove):
        try:
            yield temporary
            temporary.replace(target)
        except BaseException:
            with suppress(OSError):  # it may never have come to be, and the first error is the one to be told
                temporary.remove()
            raise


@contextmanager
def _replacing_local(path: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError, NotADirectoryError):
        path.stat()  # an error if links go in a circle
    target = path.resolve() if path.is_symlink() else path
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target} can't be written: there is no folder {target.parent}.")
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, f"{target} is a folder, a device or a pipe, which a file can't replace")
    _remove_left_behind(target)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    with _created(target, mode) as temporary:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        if mode is not None:
            temporary.chmod(mode)
        os.replace(temporary, target)


@contextmanager
def _created(target: Path, mode: int | None) -> Iterator[Path]:
    """A temporary file with the permissions of the one it replaces, locked as long as it is written."""
    while True:
        temporary = temporary_beside(target)
        file: int | None = None
        with undone_if_interrupted(temporary.unlink):
            try:
                with creating():
                    file = os.open(
                        temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600
                    )
                if mode is not None:
                    temporary.chmod(mode | stat.S_IWUSR)
                if fcntl is None:
                    os.close(file)  # an open file can't be replaced there
                    file = None
                elif _is_ours(file, temporary, wait=True) is False:
                    continue  # another process removed it before it was locked
                yield temporary
                return
            finally:
                temporary.unlink(missing_ok=True)
                if file is not None:
                    os.close(file)


def _remove_left_behind(target: Path) -> None:
    """Remove temporary files of the target that no living process writes to: it would have locked them."""
    if fcntl is None:
        return
    wanted = stem(target.name)
    with suppress(OSError):
        for name in os.listdir(target.parent):
            if (found := TEMPORARY.fullmatch(name)) and found[1] == wanted:
                _remove_unlocked(target.with_name(name))


def _remove_unlocked(temporary: Path) -> None:
    with suppress(OSError):
        file = os.open(temporary, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        try:
            if _is_ours(file, temporary, wait=False):
                temporary.unlink()
        finally:
            os.close(file)


def _is_ours(file: int, temporary: Path, wait: bool) -> bool | None:
    """Whether this process gets the lock of a file that still has its name; None if there are no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), temporary.stat())
    return False
