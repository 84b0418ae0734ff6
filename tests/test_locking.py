"""One monitor at a time uses a state: the rows of every file that was accepted are counted."""

import errno
import fcntl
import json
import signal
import subprocess
from pathlib import Path

import fsspec
import pytest
from command import PATIENT, refusal, succeeds
from effort import PATIENCE, wait_until
from file_formats import score_table, write_table

from ordinalrisk import RiskMonitor

LOCK = Path(".watch.json.lock")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    for name, n_rows in {"old": 100, "january": 30, "february": 20}.items():
        write_table(score_table(*draw(n_rows, 3, seed=n_rows)), f"{name}.csv")
    succeeds("calibrate", "old.csv", "--alpha", "0.3", "-o", "cal.json")


def rows_seen(state="watch.json"):
    with fsspec.open(state) as file:
        return json.load(file)["n_rows"]


def is_held(lock):
    """Whether a process has locked the file; if the system can't say so, whether the file exists."""
    held = Path("/proc/locks")
    return lock.exists() and (not held.exists() or f":{lock.stat().st_ino} " in held.read_text())


def waiting_monitor():
    """A monitor that has the state and waits for its rows, which come through a pipe."""
    command = [*PATIENT, "monitor", "watch.json", "cal.json", "-", "--input-format", "csv"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(command, **pipes)
    wait_until(lambda: is_held(LOCK), still_running=lambda: process.poll() is None)
    return process


@pytest.mark.parametrize("known", [True, False])
def test_a_second_monitor_is_refused_while_the_first_has_the_state(known):
    before = 0
    if known:
        succeeds("monitor", "watch.json", "cal.json", "old.csv")
        before = 100
    first = waiting_monitor()
    assert refusal(1, "monitor", "watch.json", "cal.json", "february.csv") == (
        "watch.json: another monitor is using it; run this command again when that one has ended."
    )
    first.communicate(Path("january.csv").read_bytes(), timeout=PATIENCE)
    assert (first.returncode, rows_seen()) == (0, before + 30)
    succeeds("monitor", "watch.json", "cal.json", "february.csv")
    assert rows_seen() == before + 50
    assert not LOCK.exists()


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_a_monitor_that_was_killed_blocks_nobody(by):
    first = waiting_monitor()
    first.send_signal(by)
    first.communicate(timeout=PATIENCE)
    assert LOCK.exists() == (by == signal.SIGKILL)
    succeeds("monitor", "watch.json", "cal.json", "january.csv")
    assert rows_seen() == 30
    assert not LOCK.exists()


def at_its_first_update(monkeypatch, do):
    """Do this while the next monitor has its state and has seen no rows of its file."""
    update = RiskMonitor.update

    def meanwhile(monitor, *given):
        monkeypatch.setattr(RiskMonitor, "update", update)
        do()
        return update(monitor, *given)

    monkeypatch.setattr(RiskMonitor, "update", meanwhile)


@pytest.mark.parametrize("state", ["watch.json", "memory://watched/state.json"])
@pytest.mark.parametrize("known", [True, False])
def test_where_there_are_no_locks_a_state_that_another_changed_is_not_replaced(state, known, monkeypatch):
    before = 0
    if known:
        succeeds("monitor", state, "cal.json", "old.csv")
        before = 100

    def no_locks(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    at_its_first_update(monkeypatch, lambda: succeeds("monitor", state, "cal.json", "january.csv"))
    assert refusal(1, "monitor", state, "cal.json", "february.csv") == (
        f"{state}: another process changed it, so nothing was saved; run this command again."
    )
    assert rows_seen(state) == before + 30
    if "://" in state:
        fsspec.open(state).fs.rm("/watched", recursive=True)


def test_a_lock_is_that_of_one_state_and_follows_links(monkeypatch):
    Path("link.json").symlink_to("watch.json")

    def use_others():
        for name in ("watch.json", "link.json"):
            assert "another monitor is using it" in refusal(1, "monitor", name, "cal.json", "january.csv")
        succeeds("monitor", "other.json", "cal.json", "january.csv")

    at_its_first_update(monkeypatch, use_others)
    succeeds("monitor", "watch.json", "cal.json", "february.csv")
    succeeds("monitor", "link.json", "cal.json", "january.csv")
    assert (rows_seen(), rows_seen("other.json")) == (50, 30)
    assert not [*Path().glob(".*")]


def test_a_lock_whose_file_was_removed_by_another_is_taken_anew(monkeypatch):
    """The other removes the file after we opened it and before we lock it."""
    flock, there = fcntl.flock, []

    def removed_before(file, how):
        if not there:
            LOCK.unlink()
        there.append(LOCK.exists())
        flock(file, how)

    def another():
        assert there == [False, True]
        assert "another monitor is using it" in refusal(1, "monitor", "watch.json", "cal.json", "january.csv")

    monkeypatch.setattr(fcntl, "flock", removed_before)
    at_its_first_update(monkeypatch, another)
    succeeds("monitor", "watch.json", "cal.json", "february.csv")
    assert rows_seen() == 20
