import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import _CacheLocator
from typer.testing import CliRunner

import ordinalrisk
from ordinalrisk import cli
from ordinalrisk.cli import app
from ordinalrisk.growth.kernels import cpu
from ordinalrisk.growth.kernels.compiling import _sources

warmup = sys.modules["ordinalrisk.cli.warmup"]  # the package has a command of that name


def invoke(*arguments, app=app, **environment):
    not_a_terminal = {"COLUMNS": "80", "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], env=not_a_terminal | environment
    )


SEED, TRIALS = 3, 2
PICTURES = {"intervals.png", "sizes.png", "risk_curve.png"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A run of the whole demo: what it printed, and the folder it wrote."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    result = invoke("demo", "--trials", TRIALS, "--seed", SEED, "--out", out)
    assert result.exit_code == 0, result.output
    return result.stdout, out


def test_the_demo_keeps_its_promise_with_the_smallest_sets_by_frontier(demo):
    results = json.loads((demo[1] / "results.json").read_text())["results"]
    assert len(results) == 4 * 2 * 3
    sizes = {}
    for result in results:
        assert result["risk"] <= result["alpha"] + 0.01
        sizes.setdefault((result["loss"], result["alpha"]), {})[result["growth"]] = result["size"]
    assert all(size["frontier"] <= 1.02 * min(size.values()) for size in sizes.values())
    assert sizes["weight i on i", 0.02]["paper"] > 1.5 * sizes["weight i on i", 0.02]["frontier"]


def test_the_table_of_the_demo_has_its_results(demo):
    printed, out = demo
    results = json.loads((out / "results.json").read_text())["results"]
    lines = [re.findall(r"\d\.\d+", line) for line in printed.splitlines()]
    rows = [numbers for numbers in lines if len(numbers) == 7]
    assert len(rows) == 8
    cells = [cell for _, *numbers in rows for cell in numbers]
    told = {(r["loss"], r["alpha"], r["growth"]): r for r in results}
    cases = dict.fromkeys((r["loss"], r["alpha"]) for r in results)
    ordered = [told[*case, growth] for case in cases for growth in ("paper", "adaptive", "frontier")]
    assert cells == [text for r in ordered for text in (f"{r['risk']:.4f}", f"{r['size']:.2f}")]


def test_output_is_plain_and_fits_80_columns(demo):
    printed, out = demo
    *body, last = printed.splitlines()
    assert str(out) in last
    assert max(len(line) for line in body) <= 80
    assert all(character.isprintable() for line in body for character in line)


def test_pictures_of_the_demo_are_whole_small_pngs(demo):
    _, out = demo
    assert {path.name for path in out.iterdir()} == PICTURES | {"results.json"}
    for name in PICTURES:
        picture = (out / name).read_bytes()
        assert picture.startswith(b"\x89PNG\r\n\x1a\n")
        assert picture.endswith(b"IEND\xaeB`\x82")
        assert len(picture) < 300_000


def test_a_demo_without_pictures(tmp_path, monkeypatch):
    arguments = ("demo", "--trials", 1, "--seed", SEED, "--out", tmp_path)
    assert invoke(*arguments, "--no-pictures").exit_code == 0
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = invoke(*arguments)
    assert result.exit_code == 0
    assert 'pip install "ordinalrisk[plots]"' in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert "Calibrating and testing" in invoke(*arguments, "--no-pictures", FORCE_COLOR="1").stderr


@pytest.mark.parametrize("name", ["--trials", "--seed"])
def test_a_demo_with_a_wrong_number_gets_one_line(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("demo", name, "-1")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_no_half_picture(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def fails_halfway(figure, path, **_):
        Path(path).write_bytes(b"\x89PNG")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fails_halfway)
    result = invoke("demo", "--trials", 1, "--out", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == f"Error: --out: can't write to {tmp_path} (No space left on device).\n"
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.parametrize("command", [command.__name__ for command in cli._COMMANDS])
def test_help_has_examples_and_fits(command):
    for arguments in (["--help"], [command, "--help"]):
        result = invoke(*arguments)
        assert result.exit_code == 0
        assert max(map(len, result.stdout.splitlines())) <= 80
    assert re.search(rf"^    (\w+=\S+ )?ordinalrisk {command}\b", result.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    "command", [[sys.executable, "-m", "ordinalrisk"], [str(Path(sys.executable).with_name("ordinalrisk"))]]
)
def test_version(command):
    result = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == f"ordinalrisk {ordinalrisk.__version__}\n"
    assert result.stderr == ""


def test_importing_the_command_line_is_light():
    heavy = {"PIL", "matplotlib", "numba", "numpy", "pandas", "rich", "sklearn", "torch"}
    code = f"import sys, ordinalrisk.cli; print(sorted({heavy} & sys.modules.keys()))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_warmup_compiles_what_is_missing_and_keeps_it(tmp_path):
    """In a copy of what is kept for the tests, less one kernel; a second run finds all of them there."""
    list(cpu.compile_ahead())
    folder = tmp_path / _CacheLocator.get_suitable_cache_subpath(cpu.__file__)
    folder.mkdir()
    for file in Path(cpu.cache_folder()).glob(f"*{_sources()}*"):
        shutil.copy2(file, folder)
    for file in folder.glob("cpu._copy_rows-*"):
        file.unlink()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    environment |= {"NUMBA_CACHE_DIR": str(tmp_path), "COLUMNS": "400"}  # measured, the compiler is slow
    command = [sys.executable, "-m", "ordinalrisk", "warmup"]
    found = [_times_of_writing(folder)]
    for _ in range(2):
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        ready, kept, gpu = done.stdout.splitlines()
        assert re.fullmatch(r"Processor: ready after [\d.]+ s\.", ready)
        assert kept == f"Kept in {folder}"
        assert gpu.startswith("GPU: ")
        found.append(_times_of_writing(folder))
    assert [name.split("-")[0] for name in found[1].keys() - found[0].keys()] == ["cpu._copy_rows"] * 2
    assert found[0].items() <= found[1].items() == found[2].items()
    assert len(found[2]) == cpu.N_COMPILED == 10
    names = {file.name.split("-")[0] for file in folder.glob("*.nbi")}
    assert names == {"cpu._point_labels", "cpu._levels", "cpu._intervals", "cpu._steps", "cpu._copy_rows"}


def _times_of_writing(folder):
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("*.nbc")}


def test_warmup_says_where_nothing_can_be_kept(monkeypatch):
    monkeypatch.setattr(cpu, "compile_ahead", lambda: iter(["one"] * cpu.N_COMPILED))
    monkeypatch.setattr(cpu, "cache_folder", lambda: None)
    result = invoke("warmup")
    assert result.exit_code == 0
    assert "Not kept: no folder could be written" in result.output


def test_warmup_compiles_for_a_gpu_where_there_is_one(monkeypatch):
    monkeypatch.setattr(cpu, "compile_ahead", lambda: iter(["one"] * cpu.N_COMPILED))
    monkeypatch.setattr(warmup, "_has_gpu", lambda: True)
    monkeypatch.setattr(warmup, "_compile_for_gpu", lambda: iter([object()] * len(warmup.GPU_CASES)))
    assert re.search(r"GPU: ready after [\d.]+ s\.", invoke("warmup").output)
