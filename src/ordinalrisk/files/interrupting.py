"""End a command that is interrupted within a second, with its temporary files removed.

By default Python raises ``KeyboardInterrupt`` between any two instructions of the main thread, even while a
thread starts, and handles a signal only when the main thread returns from compiled code. Here the main
thread is left alone. One thread waits for signals, a second one tidies up, and the process ends without
waiting for any other thread.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import NoReturn

INTERRUPTED = "interrupted; files that were written are whole."
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_SECONDS_TO_TIDY_UP = 0.7
_CLEAR_LINE_SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"

_undo: dict[object, Callable[[], object]] = {}
_is_ending = threading.Lock()

_creating = threading.RLock()  # a signal handler may write a file while another is written


@contextmanager
def creating() -> Iterator[None]:
    """Guard a block that creates what an undo would remove; it does not run once undoing has begun."""
    with _creating:
        yield


def _renew_lock() -> None:
    """Replace the lock in a forked child, which has no thread that could release it."""
    global _creating
    _creating = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def undone_if_interrupted(undo: Callable[[], object]) -> Iterator[None]:
    """Call ``undo`` if the command is interrupted inside the block, in the order in which blocks began.

    Another thread calls it, while the block may still run. Its errors are ignored. Once the undoing
    has begun, nobody leaves the block, so an error that follows from it is not reported.
    """
    key = object()
    _undo[key] = undo
    try:
        yield
    finally:
        with creating():
            _undo.pop(key, None)


@contextmanager
def temporary_folder(within: str | None = None) -> Iterator[str]:
    """Make a folder that is removed after the block, or when the command is interrupted."""
    import secrets
    import shutil
    import tempfile

    folder = os.path.join(within or tempfile.gettempdir(), f"ordinalrisk-{secrets.token_hex(8)}")
    with undone_if_interrupted(lambda: shutil.rmtree(folder, ignore_errors=True)):
        with creating():
            os.mkdir(folder, 0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def end_when_asked() -> None:
    """Make SIGINT, SIGTERM and SIGHUP end the process with exit code 128 + the number of the signal.

    A signal that the process was told to ignore, as by ``nohup``, is still ignored.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    asked: SimpleQueue[int] = SimpleQueue()
    for work in (lambda: _wait(receiver, asked), lambda: _tidy_up(asked)):
        threading.Thread(target=work, daemon=True).start()
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)

    received: list[int] = []

    def pass_on(number: int, _: object) -> None:  # another library may have taken the descriptor
        received.append(number)
        with suppress(OSError):
            sender.send(bytes([number]))

    def stay() -> None:
        """Wait for the other thread to end the process, if it was interrupted just before its end."""
        if received:
            time.sleep(2 * _SECONDS_TO_TIDY_UP)

    atexit.register(stay)

    watched = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    for number in watched:
        signal.signal(number, pass_on)

    def leave_child_alone() -> None:  # it shares the sockets, and would end its parent
        signal.set_wakeup_fd(-1)
        for number in watched:
            signal.signal(number, signal.SIG_DFL)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=leave_child_alone)


def _wait(receiver: socket.socket, asked: SimpleQueue[int]) -> None:
    while (number := receiver.recv(1)[0]) not in _SIGNALS:
        pass
    asked.put(128 + number)
    time.sleep(_SECONDS_TO_TIDY_UP)
    _end(128 + number)


def _tidy_up(asked: SimpleQueue[int]) -> NoReturn:
    code = asked.get()
    _creating.acquire(timeout=_SECONDS_TO_TIDY_UP / 2)  # never released; a disk may hang
    for undo in list(_undo.values()):
        with suppress(Exception):
            undo()
    _end(code)


def _end(code: int) -> NoReturn:
    """End now, without waiting for other threads or writing buffered output."""
    _is_ending.acquire()  # never released: the first thread to come here ends the process
    with suppress(OSError):
        os.write(2, f"{_CLEAR_LINE_SHOW_CURSOR * os.isatty(2)}Error: {INTERRUPTED}\n".encode())
    os._exit(code)
