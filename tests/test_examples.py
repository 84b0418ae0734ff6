"""The command-line example runs as it is; those in Python are run by the build of the documentation."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ordinalrisk import RiskController, jobs

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh"))
PAGES = [name for name in SCRIPTS if name.endswith(".py") and not name.startswith("make_")]


def test_the_command_line_example_runs_and_its_guarantee_holds(tmp_path):
    scripts = str(Path(sys.executable).parent)
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        ["bash", str(EXAMPLES / "retina_grader.sh"), "out"],
        env={**unmeasured, "PATH": scripts + os.pathsep + os.environ["PATH"]},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    written = {path.name for path in (tmp_path / "out").iterdir()}
    scores = {"all.csv", "calibration.csv", "test.csv", "new.csv", "sets.csv"}
    assert written == scores | {"cal.json", "report.html", "report.json"}
    controller = RiskController.load(tmp_path / "out" / "cal.json")
    summary = json.loads((tmp_path / "out" / "report.json").read_text())
    stop = summary["stops"][summary["start"]]
    assert (controller.risk_curve_.n_rows, summary["test"]["rows"]) == (260, 260)
    assert summary["calibration"]["data_blake3"] == controller.data_blake3_
    assert str(controller.guarantee()) in done.stdout
    assert stop["verdict"] == "agrees"
    assert max(map(len, done.stdout.splitlines())) <= 99


def test_the_judgements_are_those_that_the_script_writes(tmp_path):
    shutil.copy(EXAMPLES / "make_llm_judgements.py", tmp_path)
    subprocess.run([sys.executable, str(tmp_path / "make_llm_judgements.py")], check=True)
    made = [json.loads(line) for line in (tmp_path / "llm_judgements.jsonl").read_text().splitlines()]
    kept = [json.loads(line) for line in (EXAMPLES / "llm_judgements.jsonl").read_text().splitlines()]
    assert made == kept


def test_the_workbook_is_what_the_script_writes(tmp_path):
    shutil.copy(EXAMPLES / "make_marriage_scores.py", tmp_path)
    subprocess.run([sys.executable, "make_marriage_scores.py"], check=True, cwd=tmp_path)
    made, kept = (zipfile.ZipFile(folder / "marriage_scores.xlsx") for folder in (tmp_path, EXAMPLES))
    assert made.namelist() == kept.namelist()
    assert all(made.read(name) == kept.read(name) for name in kept.namelist())


def test_new_rows_of_the_workbook_are_like_its_calibration_rows(tmp_path):
    workbook, notes = EXAMPLES / "marriage_scores.xlsx", []
    scale = ["very poor", "poor", "fair", "good", "very good"]
    controller = jobs.calibrate(
        RiskController(alpha=0.1, check=False), workbook, classes=scale, note=notes.append
    )
    jobs.predict(controller, workbook, tmp_path / "sets.csv", sheet="new", note=notes.append)
    assert not [note for note in notes if "differ" in note]


def test_every_example_is_in_the_index():
    index = (EXAMPLES / "README.md").read_text()
    listed = set(re.findall(r"`examples/(\S+)`", index))
    assert listed == set(SCRIPTS)


@pytest.mark.parametrize("name", PAGES)
def test_the_documentation_has_a_title_for_it(name):
    docstring = ast.get_docstring(ast.parse((EXAMPLES / name).read_text()))
    title, underline = docstring.splitlines()[:2]
    assert title
    assert set(underline) == {"="}
    assert len(underline) == len(title)


@pytest.mark.parametrize("name", PAGES)
def test_the_documentation_has_a_place_for_it(name):
    order = (EXAMPLES.parent / "docs" / "_extensions" / "house_style.py").read_text()
    assert f'"{Path(name).stem}"' in order
