"""The examples run as they are, and what they write is what they say."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ordinalrisk import RiskController

EXAMPLES = Path(__file__).parents[1] / "examples"
COMMANDS = {
    "retina_grader.sh": ["bash"],
    "survey_answers.py": [sys.executable],
    "llm_judge.py": [sys.executable],
}
ROWS = {"retina_grader.sh": (260, 260), "survey_answers.py": (2122, 2122), "llm_judge.py": (200, 200)}
WRITTEN = {
    "retina_grader.sh": {"all.csv", "calibration.csv", "test.csv", "new.csv", "sets.csv"},
    "survey_answers.py": {"class_coverage.png"},
    "llm_judge.py": set(),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_runs_and_its_guarantee_holds(name, tmp_path):
    if name == "survey_answers.py":
        pytest.importorskip("statsmodels", reason="the survey comes with statsmodels")
    scripts = str(Path(sys.executable).parent)
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [*COMMANDS[name], str(EXAMPLES / name), "out"],
        env={**unmeasured, "PATH": scripts + os.pathsep + os.environ["PATH"]},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == WRITTEN[name] | {"cal.json", "report.html", "report.json"}
    controller = RiskController.load(tmp_path / "out" / "cal.json")
    summary = json.loads((tmp_path / "out" / "report.json").read_text())
    stop = summary["stops"][summary["start"]]
    assert (controller.risk_curve_.n_rows, summary["test"]["rows"]) == ROWS[name]
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


def test_every_example_is_in_the_index():
    index = (EXAMPLES / "README.md").read_text()
    assert all(re.search(rf"`\S*( examples/|examples/){re.escape(name)}`", index) for name in COMMANDS)
