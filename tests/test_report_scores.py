"""Whether the scores of test rows look like those calibrated with: in reports and in evaluations."""

import html
import json
from pathlib import Path

import numpy as np
import pytest
from command import run
from file_formats import score_table, write_table

import ordinalrisk as orisk
from ordinalrisk.report import render, summarise

pytestmark = pytest.mark.usefixtures("few_stops")

DIFFER = "The scores of these rows differ from those of the calibration rows: the largest probability is "


def less_certain(proba):
    """Scores of a model that knows less of the same rows."""
    return (proba + proba.mean(axis=0)) / 2


@pytest.fixture(scope="module")
def calibrated(draw):
    proba, y = draw(1000, 4, seed=1)
    return orisk.RiskController(alpha=0.1).calibrate(proba, y), proba


def in_sixteenths(proba):
    """The rows by their largest probability, where those at an end belong to the bin below it."""
    return np.bincount(np.ceil(16 * proba.max(axis=1)).astype(int) - 1, minlength=16).tolist()


def test_rows_are_counted_by_their_largest_probability(draw, calibrated):
    controller, before = calibrated
    proba, y = draw(500, 4, seed=2)
    proba[:3] = [[0.5, 0.5, 0, 0], [0.25] * 4, [1, 0, 0, 0]]
    found = summarise(controller, proba, y)["scores"]
    assert found["calibrated"] == in_sixteenths(before)
    assert found["new"] == in_sixteenths(proba)


def test_rows_of_one_population_show_no_drift(draw, calibrated):
    controller, _ = calibrated
    proba, y = draw(500, 4, seed=2)
    summary = summarise(controller, proba, y)
    found = summary["scores"]
    assert not found["differ"]
    assert found["p_value"] > 0.01
    assert found["text"] == "No sign of drift: the scores look like those of the calibration rows."
    page = html.unescape(render(summary))
    assert page.count(found["text"]) == 2  # once read, once in the data
    assert "see <a" not in page


def test_other_scores_are_said_at_the_top_of_the_page(draw, calibrated):
    controller, before = calibrated
    proba, y = draw(500, 4, seed=2)
    proba = less_certain(proba)
    summary = summarise(controller, proba, y)
    found = summary["scores"]
    now, then = (100 * rows.max(axis=1).mean() for rows in (proba, before))
    assert found["differ"]
    assert found["p_value"] < 1e-9
    assert found["text"].startswith(DIFFER)
    said = [float(word) for word in found["text"].split() if word.replace(".", "").isdigit()]
    assert said == pytest.approx([now, then], rel=0.01)
    opening, _, _ = render(summary).partition("<main")
    assert 'see <a href="#drift">Have the scores changed?</a>' in opening


def test_a_small_difference_is_said_to_be_small(draw):
    proba, y = draw(20_000, 3, seed=1)
    controller = orisk.RiskController(alpha=0.2).calibrate(proba, y)
    other = 0.93 * proba + 0.07 * proba.mean(axis=0)
    found = summarise(controller, other, y)["scores"]
    assert (found["p_value"] < 0.001, found["differ"]) == (True, False)
    assert found["text"].startswith("The scores differ a little from those of the calibration rows")


@pytest.mark.parametrize(
    ("options", "columns", "parts"),
    [({}, {"groups": ["a", "b"]}, "groups"), ({"condition_on": "label"}, {}, "classes")],
)
def test_another_mix_breaks_no_promise_of_a_part(draw, options, columns, parts):
    proba, y = draw(1000, 4, seed=1)
    columns = {name: values * 500 for name, values in columns.items()}
    controller = orisk.RiskController(alpha=0.1, **options).calibrate(proba, y, **columns)
    found = summarise(controller, less_certain(proba), y, **columns)["scores"]
    assert found["text"].endswith(
        f"Another mix of {parts} can do this too, and breaks none of their guarantees."
    )
    same = summarise(controller, proba, y, **columns)["scores"]
    assert "mix" not in same["text"]


@pytest.mark.parametrize(
    ("name", "why"), [("clusters", "its rows come from clusters"), ("sample_weight", "its rows have weights")]
)
def test_what_cannot_be_compared_says_why(draw, name, why):
    proba, y = draw(300, 4)
    columns = {name: np.arange(300) // 2 + 1}
    controller = orisk.RiskController(alpha=0.1).calibrate(proba, y, **columns)
    summary = summarise(controller, proba, y, **columns)
    assert summary["scores"]["new"] is None
    assert f"can't be compared: {why}" in summary["scores"]["text"]
    page = render(summary)
    assert "Have the scores changed?" in page
    assert 'data-chart="scores"' not in page


# evaluate


@pytest.fixture
def files(draw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, seed, change in (("cal", 1, None), ("alike", 2, None), ("other", 2, less_certain)):
        proba, y = draw(600, 4, seed=seed)
        scores = proba if change is None else change(proba)
        write_table(score_table(scores, y, site=["a", "b"] * 300), f"{name}.csv")
    columns = ["--scores", "p*", "--label", "y", "--alpha", "0.2"]
    for name, more in (("all", []), ("sites", ["--group", "site"])):
        assert run("calibrate", "cal.csv", "-o", f"{name}.json", *columns, *more).exit_code == 0


@pytest.mark.usefixtures("files")
def test_evaluate_says_that_scores_differ():
    alike = run("evaluate", "all.json", "alike.csv", "--json", "alike.out.json")
    other = run("evaluate", "all.json", "other.csv", "--json", "other.out.json")
    assert DIFFER not in " ".join(alike.output.split())
    assert DIFFER in " ".join(other.output.split())
    assert json.loads(Path("alike.out.json").read_text())["drift"] is None
    assert json.loads(Path("other.out.json").read_text())["drift"].startswith(DIFFER)
    found = orisk.jobs.evaluate(orisk.RiskController.load("all.json"), "other.csv")
    assert found.drift.startswith(DIFFER)
    assert DIFFER in html.unescape(found._repr_html_())


@pytest.mark.usefixtures("files")
def test_evaluate_does_not_compare_where_groups_have_a_promise_each():
    found = orisk.jobs.evaluate(orisk.RiskController.load("sites.json"), "other.csv")
    assert found.drift is None
