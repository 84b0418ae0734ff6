"""The charts of docs/choose.md have code for each kind of cost and each option; tests of snippets run it."""

import re

import pytest
from options import COMBINES
from pages import ROOT, blocks

import ordinalrisk as orisk

PAGE = ROOT / "docs" / "choose.md"
TEXT = PAGE.read_text(encoding="utf-8")
CODE = "\n".join(blocks(PAGE, "python"))
TABLE = [[0, 1], [1, 0]]
KINDS = {name: getattr(orisk, name) for name in orisk.__all__ if name.endswith("Loss")}
LOSSES = {name: (kind(TABLE) if name == "CostTableLoss" else kind()).measure for name, kind in KINDS.items()}


def test_there_are_options_and_losses_to_look_for():
    assert len(COMBINES) > 5
    assert len(LOSSES) > 2


@pytest.mark.parametrize("option", COMBINES)
def test_each_option_has_a_line(option):
    assert re.search(rf"\b{option}=", CODE)


@pytest.mark.parametrize("measure", sorted({*LOSSES.values()}))
def test_each_kind_of_cost_has_a_loss_with_a_line_or_a_link(measure):
    """Weights, distances and tables; a chart need not have every loss of one kind."""
    names = "|".join(name for name, measured in LOSSES.items() if measured == measure)
    assert re.search(rf"orisk\.({names})\(|ordinalrisk\.({names})`", TEXT)


@pytest.mark.parametrize("name", ["OnlineRiskController", "RiskMonitor", "ScoreDrift"])
def test_each_way_over_time_has_a_line(name):
    assert f"orisk.{name}(" in CODE


def test_each_answer_ends_in_code_a_question_or_an_instruction():
    """The items of the lists that are answers: none is left without what to do."""
    answers = re.split(r"(?m)^ *- ", TEXT)[1:]
    led = [item for item in answers if ".answer}" in item]
    assert len(led) > 20
    assert not [item for item in led if not re.search(r"```python|\{doc\}`|Calibrate again", item)]
