"""A file is replaced whole or not at all, keeps its permissions, and stays where a link points."""

import os

import pytest

from ordinalrisk.atomic import replacing


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
