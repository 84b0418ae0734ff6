"""The trade-off between risk and size: the comparisons of one growth rule, as a table and as a frame."""

import numpy as np
import pytest

import ordinalrisk as orisk
from ordinalrisk import compare, trade_off


def test_it_is_a_comparison_of_one_rule(draw):
    proba, y = draw(200, 4)
    result = trade_off(proba, y)
    expected = compare(proba, y, growths=["frontier"], alphas=[0.01, 0.02, 0.05, 0.1, 0.2])
    assert [*result] == expected
    assert len(result) == 25
    names = np.array([*"abcd"])
    clusters = np.arange(200) // 3
    options = {
        "alphas": ["1/3"],
        "folds": 3,
        "random_state": 5,
        "clusters": clusters,
        "losses": {"mine": "divergence"},
    }
    rule = orisk.AdaptiveGrowth("bayes")
    assert [*trade_off(proba, names[y], growth=rule, classes=names, **options)] == compare(
        proba, y, growths=[rule], **options
    )


def test_it_prints_a_line_for_each_loss_and_alpha(draw):
    result = trade_off(
        *draw(300, 4), losses={"coverage": "coverage", "distance": "divergence"}, alphas=[0.001, 0.1]
    )
    lines = str(result).splitlines()
    assert lines[0].split() == ["loss", "alpha", "risk", "size", "from", "to", "single", "coverage"]
    first, second, third, _ = result
    full = ["4.00", "4.00", "4.00"]
    assert lines[1].split() == ["coverage", "0.001", "0", *full, "0.000", "1.000", "few", "rows"]
    assert lines[2].split() == [
        "0.1",
        f"{second.risk:.4g}",
        *(f"{number:.2f}" for number in second.mean_size),
        f"{second.single_labels:.3f}",
        f"{second.coverage:.3f}",
    ]
    assert lines[3].split()[:2] == ["distance", "0.001"]
    assert len(lines) == 5
    assert not first.certified
    assert not third.certified


def test_it_is_at_most_80_columns_wide(draw):
    proba, y = draw(120, 4)
    losses = {
        "a loss with a name that is far too long for a line of a table" * 3: "coverage",
        "tiny": orisk.CostTableLoss(np.array([[abs(i - j) for j in range(4)] for i in range(4)]) * 1234567),
        "large": orisk.DivergenceLoss(positions=[0, 1, 1e5, 123456.789], normalize=False),
    }
    text = str(trade_off(proba, y, losses=losses, alphas=["1/7", "0.123456789012", 0.0001]))
    widest = max(map(len, text.splitlines()))
    assert widest == 80
    assert "a loss with a..." in text
    assert "0.123..." in text


def test_it_makes_a_frame(draw):
    result = trade_off(*draw(200, 4), alphas=[0.1, "1/3"])
    frame = result.to_pandas()
    assert [*frame] == [
        "loss",
        "growth",
        "alpha",
        "risk",
        "mean_size",
        "mean_size_low",
        "mean_size_high",
        "single_labels",
        "coverage",
        "certified",
    ]
    assert len(frame) == len(result) == 10
    for row, comparison in zip(frame.itertuples(), result, strict=True):
        assert row.loss == comparison.loss_name
        assert row.growth == "frontier"
        assert row.alpha == float(comparison.alpha)
        assert row.risk == comparison.risk
        assert (row.mean_size, row.mean_size_low, row.mean_size_high) == comparison.mean_size
        assert row.single_labels == comparison.single_labels
        assert row.coverage == comparison.coverage
        assert row.certified == comparison.certified


def test_sizes_fall_as_alpha_rises(draw):
    sizes = trade_off(*draw(2_000, 5), losses={"c": "coverage"}).to_pandas()["mean_size"]
    assert sizes.is_monotonic_decreasing


def test_it_says_what_is_wrong(draw):
    with pytest.raises(ValueError, match="growth='nearest' is not known"):
        trade_off(*draw(30, 3), growth="nearest")
    with pytest.raises(ValueError, match="alphas is empty"):
        trade_off(*draw(30, 3), alphas=[])
