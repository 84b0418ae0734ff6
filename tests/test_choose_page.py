"""The charts of docs/choose.md have code for each loss and each option; tests of snippets run it."""

import re

import pytest
from options import COMBINES
from pages import ROOT, blocks

import ordinalrisk as orisk

PAGE = ROOT / "docs" / "choose.md"
TEXT = PAGE.read_text(encoding="utf-8")
CODE = "\n".join(blocks(PAGE, "python"))
LOSSES = [name for name in orisk.__all__ if name.endswith("Loss")]


def test_there_are_options_and_losses_to_look_for():
    assert len(COMBINES) > 5
    assert len(LOSSES) > 2


@pytest.mark.parametrize("option", COMBINES)
def test_each_option_has_a_line(option):
    assert re.search(rf"\b{option}=", CODE)


@pytest.mark.parametrize("loss", LOSSES)
def test_each_loss_has_a_line_or_a_link(loss):
    assert re.search(rf"orisk\.{loss}\(|ordinalrisk\.{loss}`", TEXT)


@pytest.mark.parametrize("name", ["OnlineRiskController", "RiskMonitor", "ScoreDrift"])
def test_each_way_over_time_has_a_line(name):
    assert f"orisk.{name}(" in CODE


def test_each_answer_ends_in_code_a_question_or_an_instruction():
    """The items of the lists that are answers: none is left without what to do."""
    answers = re.split(r"(?m)^ *- ", TEXT)[1:]
    led = [item for item in answers if ".answer}" in item]
    assert len(led) > 20
    assert not [item for item in led if not re.search(r"```python|\{doc\}`|Calibrate anew", item)]
