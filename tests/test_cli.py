import errno
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from numba.core.caching import _CacheLocator
from typer.testing import CliRunner

import ordinalrisk
from ordinalrisk import cli
from ordinalrisk.cli import app
from ordinalrisk.datasets import simulated_classes
from ordinalrisk.experiments import demo_figures, simulated
from ordinalrisk.experiments.protocol import run_trials, summarise
from ordinalrisk.growth.kernels import cpu
from ordinalrisk.growth.kernels.compiling import _sources

PICTURES = {"data.png", "sizes.png", "intervals.png"}
SEED, TRIALS = 3, 2
warmup = sys.modules["ordinalrisk.cli.warmup"]  # the package has a command of that name


def invoke(*arguments, **environment):
    not_a_terminal = {"COLUMNS": "80", "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], env=not_a_terminal | environment
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A run of the whole demo: what it printed, and the folder it wrote."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    result = invoke("demo", "--trials", TRIALS, "--seed", SEED, "--out", out)
    assert result.exit_code == 0, result.output
    return result.stdout, out


@pytest.fixture(scope="module")
def scores():
    X, y = simulated_classes(seed=SEED)
    return simulated.network_scores(X, y, SEED)


@pytest.fixture
def trained(monkeypatch, scores):
    """Scores at hand, for tests that are not about the network."""
    monkeypatch.setattr(simulated, "network_scores", lambda X, y, seed: scores)


@pytest.fixture(scope="module")
def expected(scores):
    return summarise(
        run_trials(
            scores.proba(),
            scores.y,
            simulated.EXPERIMENT.scenarios,
            growths=("paper", "adaptive", "frontier"),
            alphas=(0.02, 0.08, 0.14, 0.20),
            trials=TRIALS,
            seed=SEED,
        )
    )


def test_results_are_those_of_the_library(demo, expected):
    _, out = demo
    document = json.loads((out / "results.json").read_text())
    assert document["results"] == json.loads(json.dumps([asdict(result) for result in expected]))
    assert (document["trials"], document["seed"], document["rows"]) == (TRIALS, SEED, 16_000)
    assert document["scenarios"]["S4"]["kind"] == "divergence"


def test_table_shows_the_results(demo, expected):
    shown = [re.findall(r"\d\.\d+", line) for line in demo[0].splitlines()]
    rows = [numbers for numbers in shown if len(numbers) == 7]
    assert len(rows) == 16
    for i, (alpha, *cells) in enumerate(rows):
        of_row = [r for r in expected if r.scenario == f"S{i // 4 + 1}" and f"{r.alpha:.2f}" == alpha]
        assert cells == [text for r in of_row for text in (f"{r.risk:.4f}", f"{r.size:.2f}")]


def test_output_is_plain_and_fits_80_columns(demo):
    printed, out = demo
    lines = printed.splitlines()
    *body, last = lines
    assert str(out) in last
    assert max(len(line) for line in body) <= 80
    assert all(character.isprintable() for line in lines for character in line)
    assert not any(line.endswith(" ") for line in lines)


def test_sentences_follow_from_the_results(demo, expected):
    printed = " ".join(demo[0].split())
    single = next(r for r in expected if r.scenario == "S4" and r.size == 1)
    assert f"S4 saturates at {single.risk:.4f} from alpha = {single.alpha:.2f} on" in printed
    assert "S1 saturates" not in printed
    excess = max(r.risk - r.alpha for r in expected)
    assert f"the one furthest above its alpha exceeds it by {max(excess, 0):.4f}" in printed


def test_pictures_are_whole_small_pngs(demo):
    _, out = demo
    assert {path.name for path in out.iterdir()} == PICTURES | {"results.json"}
    for name in PICTURES:
        picture = (out / name).read_bytes()
        assert picture.startswith(b"\x89PNG\r\n\x1a\n")
        assert picture.endswith(b"IEND\xaeB`\x82")
        assert len(picture) < 300_000


def test_no_pictures(tmp_path, trained):
    result = invoke("demo", "--trials", 1, "--seed", SEED, "--out", tmp_path, "--no-pictures")
    assert result.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert "standard error" not in result.output


def test_without_matplotlib_says_how_to_get_it(tmp_path, trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = invoke("demo", "--trials", 1, "--out", tmp_path)
    assert result.exit_code == 0
    assert 'pip install "ordinalrisk[plots]"' in result.stdout
    assert "S4 divergence" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_bar_is_for_terminals_and_on_standard_error(tmp_path, trained):
    arguments = ("demo", "--trials", 1, "--out", tmp_path, "--no-pictures")
    assert invoke(*arguments).stderr == ""
    terminal = invoke(*arguments, FORCE_COLOR="1")
    assert "Calibrating and testing" in terminal.stderr
    assert "Calibrating and testing" not in terminal.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trials", "0"], "--trials must be at least 1; got 0."),
        (["--trials", "-5"], "--trials must be at least 1; got -5."),
        (["--seed", "-1"], "--seed must lie between 0 and 4294967295; got -1."),
        (["--seed", "4294967296"], "--seed must lie between 0 and 4294967295; got 4294967296."),
    ],
)
def test_bad_values_get_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("demo", *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"Error: {message}\n")
    assert not list(tmp_path.iterdir())


def test_a_file_for_a_folder_gets_one_line(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    result = invoke("demo", "--out", file)
    assert (result.exit_code, result.stderr) == (2, f"Error: --out: {file} is a file, not a folder.\n")
    result = invoke("demo", "--out", file / "below")
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: --out: can't write to {file / 'below'} (Not a directory).\n",
    )
    assert file.read_text() == "mine"


def test_a_full_disk_gets_one_line_and_no_half_files(tmp_path, trained, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    def fails_halfway(figure, path, **_):
        Path(path).write_bytes(b"\x89PNG")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(demo_figures, "demo_pictures", lambda *_: {"data": Figure()})
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
