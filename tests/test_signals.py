"""An interrupted command ends with 128 + the signal's number, says so in one line, and leaves whole files.

A process sends itself a signal when a certain function is called. No test waits for a number of seconds; a
process that hangs is ended at last, and fails.
"""

import os
import shutil
import signal
import subprocess
import sys

import psutil
import pytest
from command import succeeds
from effort import PATIENCE
from file_formats import score_table, write_table
from sizes import TIDY_UP_PATIENTLY

MESSAGE = "Error: interrupted; files that were written are whole.\n"
ROWS = 40_000
OLD = b"old and whole"

STRIKE = f"""
import os, sys, threading
{TIDY_UP_PATIENTLY}
number, sys.argv[1:] = int(sys.argv[1]), sys.argv[2:]

def strike(*_):
    os.kill(os.getpid(), number)

def strike_and_stay(*_):
    strike()
    while True:
        threading.Event().wait()
"""
AT = {
    "a thread starts": """
start = threading.Thread.start
def started(thread):
    start(thread)
    if thread.name.startswith("ordinalrisk_"):
        strike()
threading.Thread.start = started
""",
    "a reader starts": """
start = threading.Thread.start
def started(thread):
    start(thread)
    if thread.name.startswith("ThreadPoolExecutor"):
        strike()
threading.Thread.start = started
""",
    "an import": """
class Finder:
    def find_spec(self, name, *_):
        if name == "typer":
            strike_and_stay()
sys.meta_path.insert(0, Finder())
""",
    "a late import": """
class Finder:
    def find_spec(self, name, *_):
        if name == "pyarrow":
            strike_and_stay()
sys.meta_path.insert(0, Finder())
""",
    "a file is written": """
sync = os.fsync
def synced(file):
    sync(file)
    strike_and_stay()
os.fsync = synced
""",
    "a file is created while others are removed": """
removing, created, left = (threading.Event() for _ in range(3))
end, leave, opened = interrupting._end, sys.exit, os.open

class Watched:
    def __init__(self, lock):
        self.lock = lock

    def __enter__(self):
        if created.is_set():
            left.set()  # the block in which the file was opened, which is no longer there
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()

    def acquire(self, timeout):
        removing.set()  # it has to wait here, or the new file would be left
        return self.lock.acquire(timeout=timeout)

def ended(code):
    removing.set()
    created.wait()
    left.wait()
    end(code)

def exiting(code):
    left.set()
    leave(code)

def struck(path, *rest, **more):
    if not str(path).endswith(".tmp"):
        return opened(path, *rest, **more)
    strike()
    removing.wait()
    try:
        return opened(path, *rest, **more)
    finally:
        created.set()

interrupting._creating, interrupting._end = Watched(interrupting._creating), ended
sys.exit, os.open = exiting, struck
""",
    "the interpreter exits": """
import atexit
atexit.register(strike_and_stay)
""",
    "many signals": """
sync = os.fsync
def synced(file):
    for _ in range(1000):
        strike()
    strike_and_stay()
os.fsync = synced
""",
}
RUN = "\nfrom ordinalrisk.__main__ import run\nrun()\n"
AT_ANY_MOMENT = """
import atexit, contextlib, importlib, random, signal
from ordinalrisk import cli
from ordinalrisk.jobs import report_job
from ordinalrisk.files.interrupting import end_when_asked
from ordinalrisk.growth.kernels import cpu

def outcome(folder, number, moment):
    child = os.fork()  # all is imported, and no thread runs yet
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(600)
    os.chdir(folder)
    os.dup2(os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(os.open("error", os.O_WRONLY | os.O_CREAT), 2)
    end_when_asked()
    calls = 0

    def count(*_):
        nonlocal calls
        calls += 1
        if calls == moment:
            os.kill(os.getpid(), number)

    sys.setprofile(count)
    try:
        cli.run()
    finally:
        sys.setprofile(None)
        if not moment:
            print(*sys.modules, calls, flush=True)
        elif calls < moment:  # a quick run had fewer calls: then it is struck at its end
            os.kill(os.getpid(), number)
        atexit._run_exitfuncs()  # as at the end of any process
        os._exit(0)

for _ in range(2):
    assert outcome("0", 0, 0) == 0
    *modules, n_calls = open("0/output").read().split("Wrote cal.json")[1].split()
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)  # so that children need not
rng = random.Random(0)
for i in range(1, 31):
    number = rng.choice([signal.SIGINT, signal.SIGTERM])
    print(int(number), outcome(str(i), number, rng.randrange(1, int(n_calls))))
"""


def environment(folder):
    (folder / "temporary").mkdir(exist_ok=True)
    return os.environ | {"ORDINALRISK_NUM_THREADS": "4", "TMPDIR": str(folder / "temporary"), "COLUMNS": "80"}


def hear_signals():
    """The process that runs the tests may ignore some signals, as nohup and background shells do."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def result_of(script, number, *arguments, folder, **options):
    """Exit code, standard output and standard error of a process that sends itself a signal."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(int(number)), *map(str, arguments)],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,
        **options,
    )
    try:
        output, error = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode, output, error


def left_over(folder):
    hidden = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    return hidden + [path.name for path in (folder / "temporary").iterdir()]


@pytest.fixture(scope="module")
def rows(tmp_path_factory, draw):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    write_table(score_table(*draw(ROWS, 3, seed=1)), path)
    return path


@pytest.fixture
def here(tmp_path, rows):
    (tmp_path / "rows.parquet").symlink_to(rows)
    (tmp_path / "cal.json").write_bytes(OLD)
    return tmp_path


COLUMNS = ("--scores", "p0,p1,p2", "--label", "y", "--classes", "0,1,2")
CALIBRATE = ("calibrate", "rows.parquet", "--alpha", "0.1", "-o", "cal.json", *COLUMNS)


@pytest.mark.parametrize(
    ("point", "number"),
    [*((point, signal.SIGINT) for point in AT), *((point, signal.SIGTERM) for point in [*AT][:2])],
)
def test_interrupted_commands_end_and_leave_nothing(point, number, here):
    code, _, error = result_of(STRIKE + AT[point] + RUN, number, *CALIBRATE, folder=here)
    assert (code, error) == (128 + number, MESSAGE)
    assert (here / "cal.json").read_bytes() == OLD or point == "the interpreter exits"
    assert left_over(here) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_copy_of_a_pipe_is_removed(number, here):
    script = STRIKE + "import shutil\nshutil.copyfileobj = strike_and_stay\n" + RUN
    with open(here / "rows.parquet", "rb") as pipe:
        arguments = [name.replace("rows.parquet", "-") for name in CALIBRATE]
        assert result_of(script, number, *arguments, folder=here, stdin=pipe)[::2] == (128 + number, MESSAGE)
    assert left_over(here) == []


def test_an_interrupted_local_cluster_ends_with_all_its_processes(here, rows):
    """Ctrl-C in a terminal, which every process of the command receives, while workers write."""
    succeeds("calibrate", rows, "--alpha", "0.1", "-o", here / "cal.json", *COLUMNS)
    for i in range(2):
        shutil.copy(rows, here / f"rows-{i}.parquet")
    script = """
import glob, signal, time
from ordinalrisk.execution.dask.executor import DaskExecutor

wait, waits = DaskExecutor._wait, []

def watched(*given):
    waits.append(given)
    if len(waits) == 1:  # for files that are looked at before any is written
        return wait(*given)
    import psutil
    print(*[process.pid for process in psutil.Process().children(recursive=True)], flush=True)
    while not glob.glob("sets/.*.tmp"):
        time.sleep(0.001)
    os.killpg(0, number)
    threading.Event().wait()

DaskExecutor._wait = watched
"""
    arguments = (
        "predict",
        "cal.json",
        "rows-0.parquet",
        "rows-1.parquet",
        "-o",
        "sets",
        "--cluster",
        "local:2",
    )
    found = result_of(STRIKE + script + RUN, signal.SIGINT, *arguments, folder=here, start_new_session=True)
    code, output, error = found
    assert (code, error.splitlines()[1:]) == (130, MESSAGE.splitlines()), error
    processes = [int(number) for number in output.split()]
    assert len(processes) >= 2
    psutil.wait_procs([psutil.Process(pid) for pid in processes if psutil.pid_exists(pid)], timeout=PATIENCE)
    assert not any(map(is_running, processes))
    assert [path.name for path in (here / "sets").iterdir() if path.name.endswith(".tmp")] == []
    assert left_over(here) == []


def is_running(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_signal_that_is_ignored_stays_ignored(here):
    ignore = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    script = STRIKE + ignore + AT["a thread starts"] + RUN
    code, _, error = result_of(script, signal.SIGTERM, *CALIBRATE, folder=here)
    assert (code, error.count("Error")) == (0, 0)


def test_a_forked_child_that_is_terminated_does_not_end_its_parent(here):
    script = """
import os, signal, sys
from ordinalrisk.files.interrupting import end_when_asked
end_when_asked()
ready, told = os.pipe()
child = os.fork()
if not child:
    os.write(told, b"x")
    signal.pause()
os.read(ready, 1)
os.kill(child, signal.SIGTERM)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
print("alive")
"""
    assert result_of(script, 0, folder=here) == (0, "alive\n", "")


def test_a_library_that_is_interrupted_while_threads_start_ends(here):
    """With Python's own ``KeyboardInterrupt``, as in a script: no thread is waited for without end."""
    script = f"""
import numpy as np
from ordinalrisk import RiskController
proba = np.full(({ROWS}, 2), 0.5)
try:
    RiskController(alpha=0.1).calibrate(proba, np.zeros({ROWS}, int))
except KeyboardInterrupt:
    print("interrupted")
threading.Thread.start = start
print(RiskController(alpha=0.1).calibrate(proba, np.zeros({ROWS}, int)).n_rows_)
"""
    found = result_of(STRIKE + AT["a thread starts"] + script, signal.SIGINT, folder=here)
    assert found == (0, f"interrupted\n{ROWS}\n", "")


def test_interrupted_at_any_moment(here):
    """30 moments drawn at random among the calls of functions, while files are read and written."""
    folders = [here / str(i) for i in range(31)]
    for folder in folders:
        folder.mkdir()
        (folder / "rows.parquet").symlink_to(here / "rows.parquet")
        (folder / "cal.json").write_bytes(OLD)
    code, output, error = result_of(STRIKE + AT_ANY_MOMENT, 0, *CALIBRATE, folder=here)
    assert (code, error) == (0, "")
    whole = (folders[0] / "cal.json").read_bytes()
    assert whole != OLD
    for line, folder in zip(output.splitlines(), folders[1:], strict=True):
        number, code = map(int, line.split())
        assert (code, (folder / "error").read_text()) == (128 + number, MESSAGE)
        assert (folder / "cal.json").read_bytes() in (OLD, whole)
        assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    assert left_over(here) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_ends_within_a_second_though_tidying_up_hangs(number, here):
    """All that it waits for is less than a second, at the end of which nothing else is waited for."""
    script = """
import os, sys, threading
from types import SimpleNamespace
from ordinalrisk.files import interrupting

hanging = threading.Event()

def hang():
    hanging.set()
    threading.Event().wait()

def sleep(seconds):
    hanging.wait()
    print(seconds, flush=True)

interrupting.time = SimpleNamespace(sleep=sleep)
interrupting.end_when_asked()
with interrupting.undone_if_interrupted(hang):
    os.kill(os.getpid(), int(sys.argv[1]))
    threading.Event().wait()
"""
    code, waited, error = result_of(script, number, folder=here)
    assert (code, error) == (128 + number, MESSAGE)
    assert 0 < float(waited) < 1
