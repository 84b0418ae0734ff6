"""Which compiler builds the kernels, and what it is tried for before."""

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import hatch_build  # noqa: E402 - it stands beside the package

GCC = shutil.which("gcc")
pytestmark = pytest.mark.skipif(not GCC or sys.platform != "linux", reason="the tests need gcc on Linux")


def compilers_with(monkeypatch, cc):
    monkeypatch.setenv("CC", cc)
    return list(hatch_build.system_compilers())


def test_the_compiler_that_is_named_comes_first(monkeypatch):
    assert compilers_with(monkeypatch, "gcc -O1")[0] == ["gcc", "-O1"]


@pytest.mark.parametrize("cc", ["", " ", '"', "no-such-compiler", "-O2"])
def test_a_name_of_no_compiler_is_passed_over(monkeypatch, cc):
    assert ["gcc"] in compilers_with(monkeypatch, cc)


@pytest.mark.parametrize(
    "cc",
    [
        "true",  # it makes nothing
        "gcc -c",  # it makes no library
        "gcc -fsanitize=address",  # its library can't be loaded
        "gcc -ffast-math",  # its library changes the arithmetic of the whole process
        "gcc -D__MINGW32__",  # its vectors are not aligned
        "gcc -nostdinc",  # it has no headers
        "gcc -mfpmath=387",  # it rounds twice
    ],
)
def test_a_compiler_whose_library_would_not_work_is_passed_over(monkeypatch, cc):
    found = compilers_with(monkeypatch, cc)
    assert cc.split() not in found
    assert ["gcc"] in found


@pytest.mark.parametrize(("home", "own_cache"), [(None, True), ("no/such/folder", True), (".", False)])
def test_zig_has_a_cache_where_it_can_not_write_to_a_home(monkeypatch, tmp_path, home, own_cache):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ZIG_GLOBAL_CACHE_DIR", raising=False)
    monkeypatch.delenv("HOME")
    if home:
        monkeypatch.setenv("HOME", home)
    found = hatch_build._environment(tmp_path / "scratch").get("ZIG_GLOBAL_CACHE_DIR")
    assert found == (str(tmp_path / "scratch" / "zig") if own_cache else None)


def test_a_cache_for_zig_that_is_named_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", "here")
    monkeypatch.delenv("HOME")
    assert hatch_build._environment(tmp_path)["ZIG_GLOBAL_CACHE_DIR"] == "here"
