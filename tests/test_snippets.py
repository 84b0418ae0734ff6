"""Every snippet of the README and the documentation runs, in order, in one session a file."""

import re
import shlex

import numpy as np
import pytest
from prose import PAGES, ROOT, SCRIPTS, fenced_blocks, text_blocks
from typer.testing import CliRunner

import ordinalrisk as orisk
from ordinalrisk.cli import app

README = ROOT / "README.md"
# Python runs below, commands are held against the command line by another test, and directives are Sphinx's.
KINDS = {"python", "console", "diff", "json", "text"}


def name(path):
    return str(path.relative_to(ROOT))


def python_of(page):
    return [code for kind, code in fenced_blocks(page.read_text()) if kind == "python"]


def test_the_readme_has_snippets():
    assert python_of(README)


@pytest.mark.parametrize("page", [page for page in PAGES if python_of(page)], ids=name)
def test_snippets_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = {}
    for snippet in python_of(page):
        exec(compile(snippet, page.name, "exec"), session)


def looks_like_python(line):
    return bool(re.match(r"\s*(import |from \w+ import|>>> |\w+ = \w+[.(])|.*\borisk\.", line))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_python_hides_where_nothing_runs_it(page):
    text = page.read_text()
    unknown = {kind for kind, _ in fenced_blocks(text) if kind not in KINDS and not kind.startswith("{")}
    assert not unknown
    shown = [code for kind, code in fenced_blocks(text) if kind in {"console", "text"}]
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    shown += re.findall(r"^(?:    .*\n)+", outside, flags=re.MULTILINE)
    assert not [line for block in shown for line in block.splitlines() if looks_like_python(line)]


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_texts_of_examples_show_commands_alone(script):
    text = "\n".join(text_blocks(script.read_text()))
    assert set(re.findall(r"^ *\.\. code(?:-block)?:: *(.*)$", text, flags=re.MULTILINE)) <= {"console"}
    assert not re.search(r"::\n\n +\S", re.sub(r"^ *\.\. .*$", "", text, flags=re.MULTILINE))


def test_commands_of_the_readme_run_in_their_order(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    for file in ("scores", "new", "test", "march"):
        proba = random.dirichlet([1, 2, 1], size=300)
        table = pd.DataFrame(proba, columns=["p_0", "p_1", "p_2"])
        if file != "new":
            table["label"] = [random.choice(3, p=row) for row in proba]
        table.to_parquet(f"{file}.parquet")
    section = README.read_text().split("## From files to decisions")[1].split("\n## ")[0]
    commands = re.findall(r"^    ordinalrisk (.*?)(?: +#.*)?$", section, flags=re.MULTILINE)
    assert [command.split()[0] for command in commands] == [
        "calibrate",
        "predict",
        "evaluate",
        "report",
        "compare",
        "monitor",
    ]
    for command in commands:
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exit_code == 0, done.output
    assert orisk.RiskController.load("cal.json").n_rows_ == 300
    assert {"sets.parquet", "report.html", "state.json"} <= {path.name for path in tmp_path.iterdir()}
