"""A file for one process at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ordinalrisk.files.atomic import stem
from ordinalrisk.files.interrupting import creating, undone_if_interrupted

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


class InUseError(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a hidden lock file beside ``path``; the system releases the lock of a process that was killed.

    Nothing is locked where the system has no locks (Windows, some network drives).

    Raises
    ------
    InUseError
        If another process holds the lock.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder, "watch.json")):
    ...     os.listdir(folder)
    ['.watch.json.lock']
    """
    if fcntl is None:
        yield
        return
    target = path.resolve()
    lock = target.with_name(f".{stem(target.name)}.lock")
    with ExitStack() as stack:
        with creating():
            file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
            while not _is_ours(file, lock):  # the process that held it removed it before we did
                os.close(file)
                file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
            stack.enter_context(undone_if_interrupted(lock.unlink))
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)  # before others can lock it: they look whether it is still there
            os.close(file)


def _is_ours(file: int, lock: Path) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise InUseError(f"{lock} is locked") from None
    except OSError:  # no locks here
        return True
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), lock.stat())
    return False
