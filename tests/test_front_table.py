"""The table of peers says what the last run of the benchmarks found."""

import json

import pytest
from pages import ROOT

from benchmarks import front_table
from benchmarks.peers import ALPHA

FINDINGS = json.loads((ROOT / "benchmarks" / "results" / "speed.json").read_text())
TABLE = front_table.PAGE.read_text().split("<!-- peers -->")[1].split("<!-- /peers -->")[0]
ROWS = {cells[0]: cells[1:] for line in TABLE.splitlines() if (cells := line.strip("| ").split(" | "))}


@pytest.mark.parametrize("data", front_table.DATA)
def test_sizes_are_those_of_the_last_run(data):
    assert ROWS[f"labels in a set: {front_table.DATA[data]}"][:-1] == front_table.sizes(FINDINGS, data)


@pytest.mark.parametrize("step", ["calibrate", "predict"])
def test_times_are_those_of_the_last_run(step):
    assert ROWS[f"time to {step}"][:-1] == front_table.times(FINDINGS, step)


def test_gaps_are_those_of_the_last_run():
    assert ROWS["sets with gaps, of clarity"][:-1] == front_table.gaps(FINDINGS, "diamonds: clarity")


def test_the_page_says_at_which_alpha():
    assert f"at `alpha = {ALPHA}` with the coverage loss" in front_table.PAGE.read_text()


def test_the_rest_has_an_answer_for_each():
    for what, answers in front_table.DOCUMENTED.items():
        assert ROWS[what] == [*answers, "*read*"]
    assert ROWS["refuses NaN"][0] == front_table.refused(front_table.Ours(), float("nan")) == "yes"
    assert ROWS["refuses rows that sum to 2"][0] == front_table.refused(front_table.Ours(), 1.5) == "yes"
    assert front_table.refused(front_table.Ours(), 0.5) == "no"
