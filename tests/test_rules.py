"""``python -m reproduction.rules`` as people run it: its output, its files and its errors."""

import errno
import json
import re
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
from command import NOT_A_TERMINAL, require_whole_small_pngs, run

from ordinalrisk.datasets import simulated_classes
from reproduction import rule_figures, simulated
from reproduction.protocol import means_over_trials, run_trials
from reproduction.rules import app

PICTURES = {"data.png", "sizes.png", "intervals.png"}
SEED, TRIALS = 3, 2
invoke = partial(run, app=app)


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    """A run of the whole comparison: what it printed, and the folder it wrote."""
    out = tmp_path_factory.mktemp("rules") / "new" / "folder"
    result = invoke("--trials", TRIALS, "--random-state", SEED, "--out", out)
    assert result.exit_code == 0, result.output
    return result.stdout, out


@pytest.fixture(scope="module")
def scores():
    X, y = simulated_classes(random_state=SEED)
    return simulated.network_scores(X, y, SEED)


@pytest.fixture
def trained(monkeypatch, scores):
    """Ready scores, for tests that are not about the network."""
    monkeypatch.setattr(simulated, "network_scores", lambda X, y, seed: scores)


@pytest.fixture(scope="module")
def expected(scores):
    return means_over_trials(
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


def test_results_are_those_of_the_library(rules, expected):
    _, out = rules
    document = json.loads((out / "results.json").read_text())
    assert document["results"] == json.loads(json.dumps([asdict(result) for result in expected]))
    assert (document["trials"], document["seed"], document["rows"]) == (TRIALS, SEED, 16_000)
    assert document["scenarios"]["S4"]["kind"] == "divergence"


def test_table_shows_the_results(rules, expected):
    shown = [re.findall(r"\d\.\d+", line) for line in rules[0].splitlines()]
    rows = [numbers for numbers in shown if len(numbers) == 7]
    assert len(rows) == 16
    for i, (alpha, *cells) in enumerate(rows):
        of_row = [r for r in expected if r.scenario == f"S{i // 4 + 1}" and f"{r.alpha:.2f}" == alpha]
        assert cells == [text for r in of_row for text in (f"{r.risk:.4f}", f"{r.size:.2f}")]


def test_output_is_plain_and_fits_80_columns(rules):
    printed, out = rules
    lines = printed.splitlines()
    *body, last = lines
    assert str(out) in last
    assert max(len(line) for line in body) <= 80
    assert all(character.isprintable() for line in lines for character in line)
    assert not any(line.endswith(" ") for line in lines)


def test_sentences_follow_from_the_results(rules, expected):
    printed = " ".join(rules[0].split())
    single = next(r for r in expected if r.scenario == "S4" and r.size == 1)
    assert f"S4 saturates at {single.risk:.4f} from alpha = {single.alpha:.2f} on" in printed
    assert "S1 saturates" not in printed
    excess = max(r.risk - r.alpha for r in expected)
    assert f"the one furthest above its alpha exceeds it by {max(excess, 0):.4f}" in printed


def test_pictures_are_whole_small_pngs(rules):
    _, out = rules
    assert {path.name for path in out.iterdir()} == PICTURES | {"results.json"}
    require_whole_small_pngs(out, PICTURES)


def test_no_pictures(tmp_path, trained):
    result = invoke("--trials", 1, "--random-state", SEED, "--out", tmp_path, "--no-pictures")
    assert result.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert "standard error" not in result.output


def test_without_matplotlib_says_how_to_get_it(tmp_path, trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = invoke("--trials", 1, "--out", tmp_path)
    assert result.exit_code == 0
    assert 'pip install "ordinalrisk[plots]"' in result.stdout
    assert "S4 divergence" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_bar_is_for_terminals_and_on_standard_error(tmp_path, trained):
    arguments = ("--trials", 1, "--out", tmp_path, "--no-pictures")
    assert invoke(*arguments).stderr == ""
    terminal = invoke(*arguments, env=NOT_A_TERMINAL | {"FORCE_COLOR": "1"})
    assert "Calibrating and testing" in terminal.stderr
    assert "Calibrating and testing" not in terminal.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trials", "0"], "--trials must be at least 1; got 0."),
        (["--trials", "-5"], "--trials must be at least 1; got -5."),
        (["--random-state", "-1"], "--random-state must lie between 0 and 4294967295; got -1."),
        (
            ["--random-state", "4294967296"],
            "--random-state must lie between 0 and 4294967295; got 4294967296.",
        ),
    ],
)
def test_bad_values_get_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"Error: {message}\n")
    assert not list(tmp_path.iterdir())


def test_a_file_for_a_folder_gets_one_line(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    result = invoke("--out", file)
    assert (result.exit_code, result.stderr) == (2, f"Error: --out: {file} is a file, not a folder.\n")
    result = invoke("--out", file / "below")
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

    monkeypatch.setattr(rule_figures, "demo_pictures", lambda *_: {"data": Figure()})
    monkeypatch.setattr(Figure, "savefig", fails_halfway)
    result = invoke("--trials", 1, "--out", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == f"Error: --out: can't write to {tmp_path} (No space left on device).\n"
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
