"""The ``paper`` rule is that of the paper's text, and what the note on its slips says holds."""

import re
from fractions import Fraction

import numpy as np
import pytest
from pages import ROOT, blocks
from strategies import LOSSES, RULE_NAMES, exact_losses
from unchecked import UNCHECKED

import ordinalrisk as orisk
from benchmarks import literal, slips

pytestmark = UNCHECKED

NOTE = ROOT / "docs" / "design" / "paper-slips.md"
WALK = ROOT / "docs" / "reading_the_paper.md"


def paper_sets(proba, loss, thresholds):
    """Both ends of each row's set at each threshold; no level equals one, where the paper's sets differ."""
    levels = orisk.PaperGrowth().levels(proba, loss)
    assert not np.isin(levels, thresholds).any()
    inside = levels >= thresholds[:, None, None]
    return np.stack([inside.argmax(axis=2), proba.shape[1] - 1 - inside[..., ::-1].argmax(axis=2)], axis=-1)


def sixteenths(K):
    """Rows with many ties, and sums that are exact."""
    return np.random.default_rng(K).multinomial(16, np.ones(K) / K, size=300) / 16


@pytest.mark.parametrize("K", [3, 5, 9])
@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.5, 0.0]], ids=["equal", "unequal"])
def test_weighted_sets_are_those_of_algorithm_1(weights, K):
    """Its ``sum`` leaves out the score of the point label, so lambda is larger than ours by that score."""
    proba, h = sixteenths(K), np.resize(weights, K)
    thresholds = np.arange(1, 64, 2) / 64
    for threshold, found in zip(
        thresholds, paper_sets(proba, orisk.WeightedLoss(h), thresholds), strict=True
    ):
        assert found.tolist() == [[*literal.algorithm_1(threshold + max(h * f), h, f)] for f in proba]


@pytest.mark.parametrize("K", [3, 5, 9])
def test_divergence_sets_are_those_of_algorithm_3(K):
    """K - 1 is a power of two, so that sums divided by it are exact too."""
    proba, thresholds = sixteenths(K), np.arange(1, 256, 2) / 512
    for threshold, found in zip(
        thresholds, paper_sets(proba, orisk.DivergenceLoss(), thresholds), strict=True
    ):
        assert found.tolist() == [[*literal.algorithm_3(threshold, f)] for f in proba]


def shortfall(proba, y, loss, growth, alpha):
    """How far the expected loss is below alpha, in ``B / (n + 1)``, and ``M``; None if single labels suffice.

    Rows in random order are exchangeable, so the expectation is the mean over which row is the new one.
    """
    n_all, K = proba.shape
    controller = orisk.RiskController(loss, alpha=alpha, growth=growth)
    whole = controller.calibrate(proba, y).risk_curve_
    if whole.total_loss(np.inf) <= n_all * alpha - whole.bound:
        return None
    total = Fraction(0)
    for i in range(n_all):
        others = np.arange(n_all) != i
        sets = controller.calibrate(proba[others], y[others]).predict_set(proba[[i]])
        [lost] = exact_losses(y[[i]], sets.lower, sets.upper, loss, K)
        total += lost
    return (alpha - total / n_all) * n_all / whole.bound, whole.most_tied


@pytest.mark.parametrize("growth", RULE_NAMES)
@pytest.mark.parametrize("loss", ["coverage", "weighted", "divergence", "table"])
def test_the_expected_loss_is_at_least_alpha_less_m_plus_1_bounds(loss, growth):
    """Rows in one, two or three copies, coarse or not, with the least likely labels."""
    rng = np.random.default_rng(0)
    K, found = 4, []
    for design in range(60):
        n_rows, copies = int(rng.integers(2, 7)), 1 + design // 2 % 3
        coarse = rng.multinomial(4, np.ones(K) / K, n_rows) / 4
        proba = np.repeat(coarse if design % 2 else rng.dirichlet(np.ones(K), n_rows), copies, axis=0)
        n_all = len(proba)
        bound = max(map(max, LOSSES[loss](K).exact_costs(K)))
        alpha = bound * Fraction(int(rng.integers(100, 50 * n_all + 50)), 100 * n_all)
        found.append(shortfall(proba, proba.argmin(axis=1), LOSSES[loss](K), growth, alpha))
    kept = [each for each in found if each]
    assert len(kept) > 15
    assert min(M for _, M in kept) == 1
    assert max(M for _, M in kept) > 4
    assert all(short <= M + 1 for short, M in kept)


def test_tied_rows_come_close_to_the_bound():
    """Four rows step at one level, four at another, and the budget is a little less than three of them."""
    proba = np.array([[0.5, 0.3, 0.2]] * 4 + [[0.6, 0.25, 0.15]] * 4)
    y = np.array([1] * 8)
    short, M = shortfall(proba, y, orisk.WeightedLoss(), "frontier", Fraction(499, 1000))
    assert (M, short) == (4, Fraction(3992, 1000))


def test_the_figures_are_those_of_the_script():
    """Of a sixteenth of the rows and a tenth of the trials, so within about three standard errors."""
    text = " ".join(NOTE.read_text(encoding="utf-8").split())
    assert "python -m benchmarks.slips" in text
    longer = re.search(r"(\d+) % of the rows at .{1,20}, (\d+) % at some", text).groups()
    at_lambda, at_some = map(int, longer)
    proba, _ = slips._rows(np.random.default_rng(1), 1_250)
    assert slips.greedy_is_longer(proba, 0.2) == pytest.approx(at_lambda / 100, abs=0.04)
    assert slips.greedy_is_longer(proba) == pytest.approx(at_some / 100, abs=0.04)
    broken = re.search(r"(\d+) % of 1,000 trials with coverage and (\d+) % with divergence", text).groups()
    for loss, percent in zip(("coverage", "divergence"), map(int, broken), strict=True):
        found = slips.search_breaks_its_inequality(loss, 0.1, 100, trials=100, seed=1)
        assert found == pytest.approx(percent / 100, abs=0.15)


def test_the_shortest_sets_are_not_nested():
    """The row of the note: two labels reach to the right, three to the left."""
    f = np.array([0.3, 0.1, 0.4, 0.15, 0.05])
    assert re.search(r"0\.3, 0\.1, 0\.4, 0\.15, 0\.05", NOTE.read_text(encoding="utf-8"))
    best = {}
    for size in (2, 3):
        around = [first for first in range(6 - size) if first <= 2 < first + size]
        best[size] = max(around, key=lambda first: f[first : first + size].sum())
    assert best == {2: 2, 3: 0}


def test_the_walk_through_the_paper_shows_each_slip(capsys):
    exec("\n".join(blocks(WALK, "python")), {})
    shown = capsys.readouterr().out
    for line in (
        "as printed: (0, 2)\nwith the sum at 0.5: [1]",
        "the sum ends at 0.27 and has to reach 0.5",
        "paper [1 2 3 4]\nfrontier [2 3 4]",
        "best of 2 labels: [2, 3]\nbest of 3 labels: [0, 1, 2]",
        "Algorithm 2 misses: 10\nthe exact threshold misses: 9",
        "as printed: -0.1\ndivided: 0.125",
        "printed bound: 0.198\nsingle labels: True",
    ):
        assert line in shown


def test_its_set_sizes_are_those_of_the_reproduction():
    text = " ".join(WALK.read_text(encoding="utf-8").split())
    needs = r'`"paper"` needs (\d\.\d+) labels, `"adaptive"` (\d\.\d+) and `"frontier"` (\d\.\d+)'
    sizes = re.search(needs, text)
    measured = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    softmax = measured.split("each growth rule, softmax scores:")[1]
    row = re.search(r"(?m)^\| S2 weight i on class i \| 0\.02 \|(.*)\|$", softmax)[1]
    assert [cell.strip() for cell in row.split("|")][1::2] == [*sizes.groups()]
