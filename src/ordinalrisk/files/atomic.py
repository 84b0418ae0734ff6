"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
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
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{12}\.tmp", re.DOTALL)
_LONGEST_STEM = 100
HAS_LOCKS = fcntl is not None


@overload
def replacing(place: Path) -> AbstractContextManager[Path]: ...
@overload
def replacing(place: str | PathLike[str]) -> AbstractContextManager[Path | StoredFile]: ...
def replacing(
    place: str | PathLike[str],
) -> AbstractContextManager[Path] | AbstractContextManager[Path | StoredFile]:
    """Yield a temporary name next to ``place`` to write to; on success it replaces the file at once.

    If anything fails, the file stays as it was and the temporary one is removed. The new file gets the
    permissions of the old one before anything is written to it. If ``place`` is a link, its target is
    replaced. Temporary files of the same target that a killed process left are removed, unless the system has
    no locks (Windows, some network drives).
    """
    file = located(place)
    return _replacing_stored(file) if isinstance(file, StoredFile) else _replacing_local(file)


def stem(name: str) -> str:
    """Return the part of a temporary name that identifies the file: its name, or a digest of a long one."""
    code = os.fsencode(name)
    return name if len(code) <= _LONGEST_STEM else blake2b(code, digest_size=16).hexdigest()


def temporary_beside(target: File) -> File:
    """Return a hidden name next to a file that no other process uses."""
    return target.with_name(f".{stem(target.name)}.{secrets.token_hex(6)}.tmp")


def temporary_names(names: Iterable[str], targets: Iterable[str]) -> list[str]:
    """Return the names among these that belong to temporary files of the targets."""
    stems = {*map(stem, targets)}
    return [name for name in names if (match := _TEMPORARY.fullmatch(name)) and match[1] in stems]


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
            with suppress(OSError):  # it may not exist; the first error is the one to raise
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
    """Create a temporary file with the permissions of the one it replaces, locked while it is written."""
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
                elif gets_lock(file, temporary, wait=True) is False:
                    continue  # another process removed it before it was locked
                yield temporary
                return
            finally:
                temporary.unlink(missing_ok=True)
                if file is not None:
                    os.close(file)


def _remove_left_behind(target: Path) -> None:
    """Remove temporary files of the target that no process has locked, so none writes to them."""
    if fcntl is None:
        return
    with suppress(OSError):
        for name in temporary_names(os.listdir(target.parent), [target.name]):
            _remove_unlocked(target.with_name(name))


def _remove_unlocked(temporary: Path) -> None:
    with suppress(OSError):
        file = os.open(temporary, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        try:
            if gets_lock(file, temporary):
                temporary.unlink()
        finally:
            os.close(file)


def gets_lock(file: int, path: Path, wait: bool = False) -> bool | None:
    """Lock an open file: False if it was removed before it was locked, None if there are no locks here.

    Raises ``BlockingIOError`` if another process holds the lock, unless told to wait.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:
        return None
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), path.stat())
    return False
