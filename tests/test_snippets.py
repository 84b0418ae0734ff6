"""Every snippet of the README and the documentation runs, in order, in one session a page.

Sybil finds and runs them. Its plugin for pytest is not used: it makes a test of each snippet, which parallel
runs would give to different processes, each without the names of the snippets before. The output in a page is
what its snippet prints; ``python -m docs.outputs`` writes it.
"""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from command import succeeds
from pages import PAGES, ROOT, blocks, name_of

import ordinalrisk as orisk
from docs.outputs import with_outputs

# What a page may only show. Other tests hold commands and diffs against the code.
SHOWN = {"console", "diff", "json", "output", "text"}


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_snippets_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert with_outputs(page) == page.read_text()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_block_is_run_or_only_shown(page):
    """A block without a language, or with another name for Python, would be skipped in silence."""
    fences = re.findall(r"(?m)^[ >-]*(```+|~~~+)(.*)\n(?s:.*?)^[ >]*\1", page.read_text())
    languages = {language.strip() for _, language in fences if not language.startswith("{")}
    assert languages <= {"python", *SHOWN}
    assert not re.search(r"\{(code|code-block|code-cell|sourcecode|doctest|testcode)\}", page.read_text())
    read = {"console", "json", "text"}
    assert not [code for name in read for code in blocks(page, name) if "orisk." in code]
    assert not re.search(r"(?m)^\s*>>> ", page.read_text())


def test_the_readme_has_snippets():
    assert blocks(ROOT / "README.md", "python")


def test_commands_of_the_readme_run_in_their_order(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    for file in ("scores", "new", "test", "march", "april", "choose"):
        proba = random.dirichlet([1, 2, 1], size=300)
        table = pd.DataFrame(proba, columns=["p_0", "p_1", "p_2"])
        if file not in ("new", "april"):
            table["label"] = [random.choice(3, p=row) for row in proba]
        table.to_parquet(f"{file}.parquet")
    commands = re.findall(r"(?m)^    ordinalrisk (.*?)(?: +#.*)?$", (ROOT / "README.md").read_text())
    assert [command.split()[0] for command in commands] == [
        "calibrate",
        "predict",
        "evaluate",
        "report",
        "compare",
        "monitor",
        "drift",
    ]
    for command in commands:
        succeeds(*shlex.split(command))
    assert orisk.RiskController.load("cal.json").n_rows_ == 300
    assert {"sets.parquet", "report.html", "state.json", "drift.json"} <= {
        path.name for path in tmp_path.iterdir()
    }


NOT_RUN = ("s3://", "--sign", "--verify", "zcat", ".xlsx")
"""Commands of the guide that need a cluster, keys, a shell or a workbook; their options are checked too."""


def tables_of_the_guide():
    """Files with five classes, of which the model's probabilities are right."""
    pd = pytest.importorskip("pandas")
    random = np.random.default_rng(1)
    columns = [f"p_{label}" for label in range(5)]
    for name in ("scores", "new", "test", "choose", "march", "april"):
        proba = random.dirichlet([1, 2, 2, 1, 1], size=400)
        table = pd.DataFrame(proba, columns=columns)
        table["hospital"] = random.choice(["north", "south"], 400)
        table["patient"], table["ratio"] = np.arange(400) // 2, random.uniform(0.5, 1.5, 400)
        if name not in ("new", "april"):
            table["label"] = [random.choice(5, p=row) for row in proba]
        table.to_csv(f"{name}.csv", index=False)
        for place, rows in table.groupby("hospital"):
            rows.drop(columns=["patient", "ratio"]).to_csv(f"{place}_{name}.csv", index=False)
    known = pd.read_csv("scores.csv")
    names = ["None", "Mild", "Moderate", "Severe", "Critical"]
    words = known.rename(columns=dict(zip(columns, [f"p_{name}" for name in names], strict=True)))
    words.assign(label=[names[label] for label in known["label"]]).to_csv("words.csv", index=False)
    known.assign(**{name: np.log(known[name]) for name in columns}).to_csv("logits.csv", index=False)
    judge = known.assign(label=2 * known["label"] - (known["label"] > 0) * random.integers(0, 2, 400))
    judge.to_csv("judge.csv", index=False)
    judge.drop(columns="label").to_csv("judge_new.csv", index=False)
    costs = "0,1,2,3,4\n1,0,1,2,3\n4,2,0,1,2\n9,6,3,0,1\n50,30,20,10,0\n"
    Path("costs.csv").write_text(costs)


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "guide"], ids=name_of)
def test_commands_of_the_guide_run_in_their_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables_of_the_guide()
    succeeds("calibrate", "scores.csv", "--alpha", "0.1", "-o", "cal.json")  # where other pages left off
    commands = [
        line.removeprefix("$ ordinalrisk ")
        for block in blocks(page, "console")
        for line in block.splitlines()
        if not any(part in line for part in NOT_RUN)
    ]
    assert commands or page.stem == "index"
    for command in commands:
        succeeds(*shlex.split(command))
