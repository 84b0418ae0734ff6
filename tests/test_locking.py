"""One monitor at a time uses a state: the rows of every file that was accepted are counted."""

import json
import signal
import subprocess
import time
from pathlib import Path

import fsspec
import pytest
from file_formats import score_table, write_table
from test_commands import COMMAND, refusal, succeeds

from ordinalrisk.files import locking
from ordinalrisk.files.locking import InUseError, locked
from ordinalrisk.jobs import one_file

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
    """Whether a process has locked the file; where the system does not tell, whether it is there."""
    held = Path("/proc/locks")
    return lock.exists() and (not held.exists() or f":{lock.stat().st_ino} " in held.read_text())


def waiting_monitor():
    """A monitor that has the state and waits for its rows, which come through a pipe."""
    command = [COMMAND, "monitor", "watch.json", "cal.json", "-", "--input-format", "csv"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(command, **pipes)
    while not is_held(LOCK):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
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
    first.communicate(Path("january.csv").read_bytes(), timeout=60)
    assert (first.returncode, rows_seen()) == (0, before + 30)
    succeeds("monitor", "watch.json", "cal.json", "february.csv")
    assert rows_seen() == before + 50
    assert not LOCK.exists()


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_a_monitor_that_was_killed_blocks_nobody(by):
    first = waiting_monitor()
    first.send_signal(by)
    first.communicate(timeout=60)
    assert LOCK.exists() == (by == signal.SIGKILL)
    succeeds("monitor", "watch.json", "cal.json", "january.csv")
    assert rows_seen() == 30
    assert not LOCK.exists()


@pytest.mark.parametrize("state", ["watch.json", "memory://watched/state.json"])
@pytest.mark.parametrize("known", [True, False])
def test_where_there_are_no_locks_a_state_that_another_changed_is_not_replaced(state, known, monkeypatch):
    before = 0
    if known:
        succeeds("monitor", state, "cal.json", "old.csv")
        before = 100
    monkeypatch.setattr(locking, "fcntl", None)
    finish = one_file.Predictor.finish

    def meanwhile(predictor):
        monkeypatch.setattr(one_file.Predictor, "finish", finish)
        succeeds("monitor", state, "cal.json", "january.csv")

    monkeypatch.setattr(one_file.Predictor, "finish", meanwhile)
    assert refusal(1, "monitor", state, "cal.json", "february.csv") == (
        f"{state}: another process changed it, so nothing was saved; run this command again."
    )
    assert rows_seen(state) == before + 30
    if "://" in state:
        fsspec.open(state).fs.rm("/watched", recursive=True)


def test_a_lock_is_held_by_one_and_follows_links(tmp_path):
    file, link, other = tmp_path / "file", tmp_path / "link", tmp_path / "other"
    link.symlink_to(file)
    with locked(file), locked(other):
        for path in (file, link):
            with pytest.raises(InUseError), locked(path):
                pass
        assert (tmp_path / ".file.lock").exists()
    with locked(link):
        pass
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_lock_whose_file_was_removed_by_another_is_taken_anew(tmp_path, monkeypatch):
    """The other removes the file after we opened it and before we lock it."""
    lock, flock, names = tmp_path / ".file.lock", locking.fcntl.flock, []

    def removed_before(file, how):
        if not names:
            lock.unlink()
        names.append(lock.exists())
        flock(file, how)

    monkeypatch.setattr(locking.fcntl, "flock", removed_before)
    with locked(tmp_path / "file"):
        assert lock.exists()
        with pytest.raises(InUseError), locked(tmp_path / "file"):
            pass
    assert names == [False, True, True]
