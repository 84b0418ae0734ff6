import errno
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import COMMANDS, NOT_A_TERMINAL, require_whole_small_pngs, run

import ordinalrisk

SEED, TRIALS = 3, 2
PICTURES = {"intervals.png", "sizes.png", "risk_curve.png"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A run of the whole demo: what it printed, and the folder it wrote."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    result = run("demo", "--trials", TRIALS, "--random-state", SEED, "--out", out)
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
    require_whole_small_pngs(out, PICTURES)


def test_a_demo_without_pictures(tmp_path, monkeypatch):
    arguments = ("demo", "--trials", 1, "--random-state", SEED, "--out", tmp_path)
    assert run(*arguments, "--no-pictures").exit_code == 0
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(*arguments)
    assert result.exit_code == 0
    assert 'pip install "ordinalrisk[plots]"' in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    in_colour = run(*arguments, "--no-pictures", env=NOT_A_TERMINAL | {"FORCE_COLOR": "1"})
    assert "Calibrating and testing" in in_colour.stderr


@pytest.mark.parametrize("name", ["--trials", "--random-state"])
def test_a_demo_with_a_wrong_number_gets_one_line(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("demo", name, "-1")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_no_half_picture(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def fails_halfway(figure, path, **_):
        Path(path).write_bytes(b"\x89PNG")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fails_halfway)
    result = run("demo", "--trials", 1, "--out", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == f"Error: --out: can't write to {tmp_path} (No space left on device).\n"
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_fits(command):
    for arguments in (["--help"], [command, "--help"]):
        result = run(*arguments)
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
