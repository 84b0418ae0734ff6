"""Sizes at equal risk over real targets: how they are compared, and the page on the last run."""

import numpy as np
import pytest

import ordinalrisk as orisk
from benchmarks.field import measure, methods, page, results

CELLS, FOUND = results.load(page.NUMBERS)
PAGE = page.PAGE.read_text()


def block(name):
    return PAGE.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0].strip()


def test_tables_are_those_of_the_last_run():
    compared = results.comparable(CELLS)
    assert block("methods") == page.methods_table(compared, FOUND)
    assert block("models") == page.models_table(compared)
    assert block("behind") == page.behind_table(compared)


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
