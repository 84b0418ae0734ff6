"""Lock a file, so that one process at a time uses it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ordinalrisk.files.atomic import HAS_LOCKS, gets_lock, stem
from ordinalrisk.files.interrupting import creating, undone_if_interrupted


class InUseError(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a hidden lock file next to ``path``; the system releases the lock of a process that was killed.

    Nothing is locked where the system has no locks (Windows, some network drives).
    """
    if not HAS_LOCKS:
        yield
        return
    target = path.resolve()
    lock = target.with_name(f".{stem(target.name)}.lock")
    with ExitStack() as stack:
        with creating():
            file = _locked_file(lock)
            stack.enter_context(undone_if_interrupted(lock.unlink))
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)  # before others can lock it: they check that it still exists
            os.close(file)


def _locked_file(lock: Path) -> int:
    while True:
        file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if gets_lock(file, lock) is not False:
                return file
        except BlockingIOError:
            os.close(file)
            raise InUseError(f"{lock} is locked") from None
        os.close(file)  # the process that held it removed it before it was locked here
