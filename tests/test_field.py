"""Sizes at equal risk over real targets: how they are compared, and the page on the last run."""

import json

import numpy as np
import pytest

import ordinalrisk as orisk
from benchmarks.field import judges, judges_page, measure, methods, page, results

CELLS, FOUND = results.load(page.NUMBERS)
PAGE = page.PAGE.read_text()


def block(name):
    return PAGE.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0].strip()


def test_tables_are_those_of_the_last_run():
    compared = results.comparable(CELLS)
    assert block("methods") == page.methods_table(compared, FOUND)
    assert block("models") == page.models_table(compared)
    assert block("rules") == page.rules_table(compared)
    assert block("behind") == page.behind_table(compared, FOUND)


def test_tables_on_judges_are_those_of_the_last_run():
    for name, text in judges_page.tables(json.loads(judges.NUMBERS.read_text())).items():
        assert block(name) == text


def test_the_page_counts_what_is_compared():
    assert len({cell["target"] for cell in CELLS}) == 50
    left_out = len(CELLS) - len(results.comparable(CELLS))
    assert f"{left_out} of {len(CELLS)} comparisons" in PAGE


def test_recalibration_costs_no_family_of_models_anything():
    """What the page says of the default."""
    by_model = results.by(
        results.comparable(CELLS), lambda cell: (cell["model"], cell["loss"], cell["alpha"])
    )
    assert len(by_model) == 18
    assert max(results.ratio(cells, results.OURS, "frontier") for cells in by_model.values()) < 1


def test_a_loss_counts_the_nearest_label_of_a_set_with_gaps():
    mask = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]], bool)
    y = np.array([2, 3, 0])
    assert measure.risk_and_size(mask, y, orisk.DivergenceLoss()) == pytest.approx(((1 + 2 + 3) / 9, 1.0))
    assert measure.risk_and_size(mask, y, orisk.WeightedLoss())[0] == 1


def test_sizes_are_read_at_equal_risk():
    curve = np.array([[[0.0, 4.0], [0.1, 2.0]], [[0.0, 4.0], [0.3, 2.0]]])
    assert measure.size_at(curve, 0.05) == pytest.approx(3.5)
    assert measure.size_at(curve, 0.5) == 2.0


def test_gaps_are_filled():
    def sweep(*rows):
        yield np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]], bool)

    (filled,) = methods.hull(sweep)(None)
    np.testing.assert_array_equal(filled, [[1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]])


def test_p_values_are_adjusted_by_holm():
    random = np.random.default_rng(0)
    cells = []
    for target in range(12):
        sizes = {results.OURS: 2.0, "larger": 2.5 + random.random() / 10, "same": 2 + random.normal() / 10}
        cells.append({"target": str(target), "sizes": sizes})
    found = results.adjusted_p_values(cells, ["larger", "same"])
    assert found["larger"] == pytest.approx(2 * 2 / 2**12)  # the smallest that 12 signs allow, twice
    assert found["same"] > 0.05


def cell(ratios, **about):
    """A cell with these ratios of our size to that of every peer, one by split."""
    without = {"frontier": np.log(ratios)} | dict.fromkeys(results.PEERS, np.zeros(len(ratios)))
    sizes = {"frontier": np.exp(np.mean(np.log(ratios)))} | dict.fromkeys(results.PEERS, 1.0)
    return about | {"without": without, "sizes": sizes}


def test_the_error_of_an_average_leaves_a_split_out_of_all_its_cells():
    log_ratios = np.random.default_rng(0).normal(size=20) / 100
    without = (log_ratios.sum() - log_ratios) / 19
    same, opposite = ([cell(np.exp(sign * without)) for sign in signs] for signs in ((1, 1), (1, -1)))
    expected = log_ratios.std(ddof=1) / np.sqrt(20)
    assert results.error(same, "frontier", "rps") == pytest.approx(expected)
    assert results.error(opposite, "frontier", "rps") == pytest.approx(0)


@pytest.mark.parametrize(("size", "error", "expected"), [(1.02, 0.005, 1), (1.02, 0.02, 0), (1.005, 0.0, 0)])
def test_behind_is_larger_by_one_percent_and_two_errors(size, error, expected):
    cells = [cell([size]), cell([size])]
    assert (
        results.is_behind(cells, {("frontier", peer): error for peer in results.PEERS}, "frontier")
        == expected
    )


def test_a_judge_gives_scores_of_its_ratings_and_labels_of_means():
    judge = judges.Judge(ratings=10, people=2)
    proba, y = judge.drawn(4_000, np.random.default_rng(0))
    assert proba.shape == (4_000, 10)
    assert ((proba > 0).sum(axis=1) <= 5).all()  # as many tokens are listed
    assert {*y.tolist()} <= {*range(19)} == {*range(judge.n_labels)}
    placed = judge.placed(proba)
    np.testing.assert_array_equal(placed[:, ::2], proba)
    assert not placed[:, 1::2].any()
    means = proba @ np.linspace(1, 5, 10)
    slope = np.polyfit(1 + 4 * y / 18, means, 1)[0]
    assert 0.3 < slope < 0.6  # central tendency
