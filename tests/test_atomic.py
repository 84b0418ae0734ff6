"""A file is replaced whole or not at all, keeps its permissions, and stays where a link points."""

import errno
import fcntl
import os
import subprocess
import sys

import pytest
from effort import PATIENCE

from ordinalrisk.files.atomic import replacing


def write(path, text):
    with replacing(path) as temporary:
        temporary.write_text(text)


def test_a_new_file_appears_at_the_end(tmp_path):
    with replacing(tmp_path / "new") as temporary:
        temporary.write_text("whole")
        assert not (tmp_path / "new").exists()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("new", "whole")]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_changes_if_anything_fails(tmp_path, error):
    path = tmp_path / "old"
    path.write_text("old")

    def fails_halfway():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fails_halfway()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "old")]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_permissions_are_handed_on(tmp_path, mode):
    path = tmp_path / "patients"
    path.write_text("old")
    path.chmod(mode)
    write(path, "new")
    assert path.stat().st_mode & 0o777 == mode


def test_what_a_link_points_to_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert os.listdir(tmp_path / "folder") == ["target"]


def test_a_pipe_or_a_folder_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(OSError, match="which a file can't replace"):
            write(tmp_path / name, "new")
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]
    assert not (tmp_path / "pipe").is_file()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write(tmp_path / "none" / "file", "new")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400])
def test_permissions_hold_from_the_first_byte(tmp_path, mode):
    """Nobody reads a private file while it is replaced; its owner may write to the temporary one."""
    path = tmp_path / "patients"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as temporary:
        assert temporary.stat().st_mode & 0o777 == mode | 0o200
        temporary.write_text("new")
    assert (path.stat().st_mode & 0o777, path.read_text()) == (mode, "new")


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644)])
def test_new_files_have_the_permissions_of_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        with replacing(tmp_path / "new") as temporary:
            assert temporary.stat().st_mode & 0o777 == mode
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == mode


KILLED = """
import os, signal, sys
from pathlib import Path
from ordinalrisk.files.atomic import replacing
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("name", ["sets.csv", "x" * 250])
def test_the_next_write_removes_what_a_killed_process_left(tmp_path, name):
    for killed in (name, "other.csv"):
        subprocess.run([sys.executable, "-c", KILLED, tmp_path / killed], check=False)
    assert len(os.listdir(tmp_path)) == 2
    write(tmp_path / name, "whole")
    left = set(os.listdir(tmp_path)) - {name}
    assert len(left) == 1
    assert left.pop().startswith(".other.csv.")


def test_what_is_still_written_is_not_removed(tmp_path):
    path = tmp_path / "sets.csv"
    with replacing(path) as slow:
        slow.write_text("slow")
        write(path, "quick")
        assert slow.read_text() == "slow"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("sets.csv", "slow")]


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    path, lock = tmp_path / "sets.csv", fcntl.flock

    def lock_late(*arguments):
        monkeypatch.setattr(fcntl, "flock", lock)
        write(path, "first")
        lock(*arguments)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    write(path, "second")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("sets.csv", "second")]


def test_nothing_is_removed_where_files_have_no_locks(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    left = tmp_path / ".sets.csv.0123456789ab.tmp"
    left.touch()
    write(tmp_path / "sets.csv", "new")
    assert left.exists()


@pytest.mark.parametrize("name", ["x" * 238, "x" * 244, "x" * 255, "ü" * 127], ids=len)
def test_names_may_be_as_long_as_the_system_allows(tmp_path, name):
    write(tmp_path / name, "new")
    assert os.listdir(tmp_path) == [name]


def test_links_in_a_circle_are_an_error_of_the_system(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links") as error:
        write(tmp_path / "a", "new")
    assert error.value.errno == errno.ELOOP
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_handler_of_signals_may_write_while_a_file_is_created(tmp_path, monkeypatch):
    opened = os.open

    def interrupted(path, *rest, **more):
        file = opened(path, *rest, **more)
        if "first" in str(path):
            with replacing(tmp_path / "second") as temporary:  # as a handler would, in the same thread
                temporary.write_text("two")
        return file

    monkeypatch.setattr(os, "open", interrupted)
    with replacing(tmp_path / "first") as temporary:
        temporary.write_text("one")
    assert [(tmp_path / name).read_text() for name in ("first", "second")] == ["one", "two"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_may_write_though_its_parent_was_creating_a_file(tmp_path):
    script = """
import os, sys, threading, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from ordinalrisk.files.atomic import replacing
from ordinalrisk.files.interrupting import creating
held, done = threading.Event(), threading.Event()
def hold():
    with creating():
        held.set()
        done.wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if not child:
    with replacing(Path("child")) as temporary:
        temporary.write_text("whole")
    os._exit(0)
os.waitpid(child, 0)
done.set()
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, timeout=PATIENCE)
    assert (tmp_path / "child").read_text() == "whole"
