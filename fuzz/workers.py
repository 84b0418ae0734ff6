"""A process that runs cases, one after the other, with limits on memory and time.

The limit of time counts the work of the processors, so a busy machine reports no false hang. A case that
waits without work has a longer limit.
"""

import contextlib
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import ordinalrisk

LIBRARY = Path(ordinalrisk.__file__).parent
SECONDS_OF_WORK = 5
SECONDS_OF_WAITING = 600
BYTES = 2 << 30


class Finding(NamedTuple):
    """What went wrong: its kind, and where, by which equal findings are known."""

    kind: str
    where: str
    text: str


def outcome(kind: str, case: Any) -> Finding | None:
    """Check one case in this process, in an empty folder."""
    from fuzz import KINDS
    from fuzz.checking import WrongError, documented_warnings

    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        os.chdir(folder)
        try:
            with documented_warnings():
                KINDS[kind].check(case)
        except WrongError as error:
            return Finding("wrong", str(error).partition(":")[0], str(error))
        except MemoryError as error:
            return Finding("memory", _where(error), "more than 2 GiB")
        except Exception as error:
            return Finding("raw error", _where(error), "".join(traceback.format_exception(error))[-3000:])
        finally:
            os.chdir(before)
    return None


def _where(error: BaseException) -> str:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if LIBRARY in Path(frame.filename).parents
    ]
    last = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "fuzz"
    return f"{type(error).__name__} in {last}"


class Worker:
    """Runs cases in a process of its own, and starts a new one when that has ended."""

    def __init__(self, seconds: float = SECONDS_OF_WORK) -> None:
        self.seconds, self._process = seconds, None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def run(self, kind: str, case: Any) -> Finding | None:
        """Check one case there."""
        if self._process is None:
            self._start()
        try:
            self._pipe.send((kind, json.dumps(case)))
            self._pipe.recv()  # after what is imported once
            if self._pipe.poll(SECONDS_OF_WAITING):
                found: Finding | None = self._pipe.recv()
                return found
            self._stop()
            return Finding("hang", kind, f"no answer in {SECONDS_OF_WAITING} s")
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode
            self._stop()
            if code == -signal.SIGPROF:
                return Finding("hang", kind, f"more than {self.seconds} s of work")
            return Finding("crash", f"{kind} {code}", f"the process ended with {code}")

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, self.seconds), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def _serve(pipe: Any, seconds: float) -> None:
    from fuzz import KINDS

    warm = set()
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
        os.dup2(nowhere.fileno(), sys.stderr.fileno())
    _limit_memory()
    pipe.send("ready")
    with contextlib.suppress(EOFError):  # whoever asks has ended
        while True:
            kind, case = pipe.recv()
            if kind not in warm:
                KINDS[kind].warm_up()
                warm.add(kind)
            pipe.send("begun")
            signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal ends compiled code too
            found = outcome(kind, json.loads(case))
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.send(found)


def _limit_memory() -> None:
    """Of what is written to, not of files that are mapped."""
    status = Path("/proc/self/status")
    if status.exists():
        used = next(
            int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmData")
        )
        resource.setrlimit(resource.RLIMIT_DATA, (used * 1024 + BYTES, resource.RLIM_INFINITY))
