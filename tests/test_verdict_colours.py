"""The colours of ``evaluate``: green is earned, a class that is nearly always missed is amber, else red."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import run, succeeds
from populations import HEALTH, survey

import ordinalrisk as orisk

SCORES = [f"p_{name}" for name in HEALTH]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A calibration, and test rows that are fine, that miss a class, and that are of another scale."""
    where = tmp_path_factory.mktemp("colours")
    rows = {
        "red.csv": (survey(600, 2)[0], 4 - survey(600, 2)[1]),
        "amber.csv": survey(1500, 2),
        "green.csv": tuple(part[survey(1500, 2)[1] > 0] for part in survey(1500, 2)),
        "few.csv": tuple(part[survey(9, 5)[1] > 0][:3] for part in survey(9, 5)),
        "cal.csv": survey(2000, 1),
    }
    for name, (proba, y) in rows.items():
        table = pd.DataFrame(proba, columns=SCORES).assign(y=np.array(HEALTH)[y])
        table.to_csv(where / name, index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(where)
        succeeds("calibrate", "cal.csv", "--classes", ",".join(HEALTH), "--alpha", "0.1", "-o", "cal.json")
    return where


@pytest.mark.parametrize(
    ("name", "colour", "code", "says"),
    [
        (
            "green.csv",
            "green",
            0,
            "No class, group or set size is clearly covered less than half as often as 1 - alpha.",
        ),
        ("amber.csv", "amber", 3, "% of class 'very poor' are missed ("),
        ("few.csv", "amber", 3, "too few test rows"),
        ("cal.csv", "amber", 3, "say nothing about the guarantee"),
        ("red.csv", "red", 4, "disagree with the guarantee"),
    ],
)
def test_strict_ends_with_the_code_of_the_colour(folder, monkeypatch, name, colour, code, says):
    monkeypatch.chdir(folder)
    shown = succeeds("evaluate", "cal.json", name, "--json", "found.json").stdout
    done = run("evaluate", "cal.json", name, "--strict", "--json", "strict.json")
    assert done.exit_code == code
    assert Path("strict.json").read_text() == Path("found.json").read_text()
    document = json.loads(Path("found.json").read_text())
    assert document["colour"] == colour
    assert says in document["sentence"]
    assert f"{colour.upper()}: {document['sentence']}" in " ".join(shown.split())
    found = orisk.jobs.evaluate(orisk.RiskController.load("cal.json"), name)
    assert (found.colour, found.sentence) == (colour, document["sentence"])
    listed = [{"kind": each.kind, "name": each.name, "rows": each.n_rows} for each in found.far_off]
    assert [{key: each[key] for key in ("kind", "name", "rows")} for each in document["far_off"]] == listed
    assert bool(listed) == ("very poor" in document["sentence"])
    assert document["looked_at"] > 1


def test_a_promise_of_another_alpha_has_its_own_colour(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert run("evaluate", "cal.json", "green.csv", "--strict", "--alpha", "0.0001").exit_code == 3
