"""The guarantee itself: over many fresh calibrations, the expected loss is at most alpha and hardly less.

The population is finite and known, so the risk at a threshold is computed, not sampled: what varies from draw
to draw is the calibration alone. 2,000 draws put the standard error near 0.001, and a budget of ``n alpha``
instead of ``(n + 1) alpha - B`` is caught.
"""

import math

import numpy as np
import pytest
from strategies import RULE_NAMES

import ordinalrisk as orisk
from ordinalrisk.exact import as_fraction

pytestmark = pytest.mark.no_cover  # so many draws take twice as long if coverage is measured
DRAWS = 2_000
K = 5
COST_TABLE = [[0, 1, 1, 2, 3], [2, 0, 1, 2, 2], [4, 2, 0, 0, 1], [6, 5, 3, 0, 1], [9, 7, 5, 2, 0]]
LOSSES = {
    "coverage": (orisk.WeightedLoss(), 0.2, 40),
    "weighted": (orisk.WeightedLoss([1, 1, 2, 3, 4]), 0.1, 60),
    "divergence": (orisk.DivergenceLoss(), 0.1, 80),
    "squared, natural units": (orisk.DivergenceLoss(power=2, normalize=False), 0.6, 120),
    "asymmetric": (orisk.DivergenceLoss(under=3), 0.07, 80),
    "table": (orisk.CostTableLoss(COST_TABLE), 0.06, 100),
}


class Population:
    """Cases with known label distributions, scored by a model that is wrong about them."""

    def __init__(self, n_cases=3_000, seed=0):
        rng = np.random.default_rng(seed)
        self.rng = rng
        centre = rng.uniform(-0.5, K - 0.5, (n_cases, 1))
        self.truth = orisk.softmax(-((np.arange(K) - centre) ** 2) / 2)
        self.proba = orisk.softmax(np.log(self.truth) * 1.6 + rng.normal(0, 0.7, (n_cases, K)))
        self.cumulative = self.truth.cumsum(axis=1)

    def draw(self, n):
        case = self.rng.integers(0, len(self.proba), n)
        y = (self.cumulative[case, :-1] < self.rng.random((n, 1))).sum(axis=1)
        return self.proba[case], y

    def risks(self, loss, growth, thresholds):
        """The expected loss of a new case at each threshold."""
        costs = loss.cost_table(K)
        levels = orisk.growth.as_growth(growth).levels(self.proba, loss)
        labels = np.arange(K)
        found = {}
        for tau in np.unique(thresholds):
            inside = levels >= tau
            lower, upper = inside.argmax(1), K - 1 - inside[:, ::-1].argmax(1)
            nearest = np.clip(labels, lower[:, None], upper[:, None])
            found[tau] = (self.truth * costs[labels, nearest]).sum(axis=1).mean()
        return np.array([found[tau] for tau in thresholds])


def draw_calibrations(loss, alpha, n, growth, seed):
    population = Population(seed=seed)
    controllers = [
        orisk.RiskController(loss=loss, alpha=alpha, growth=growth).calibrate(*population.draw(n))
        for _ in range(DRAWS)
    ]
    return population, controllers


@pytest.mark.parametrize("growth", RULE_NAMES)
@pytest.mark.parametrize(("loss", "alpha", "n"), LOSSES.values(), ids=LOSSES.keys())
def test_expected_loss_is_at_most_alpha_and_at_least_the_lower_bound(loss, alpha, n, growth):
    population, controllers = draw_calibrations(loss, alpha, n, growth, seed=11)
    risks = population.risks(loss, growth, [controller.threshold_ for controller in controllers])
    error = risks.std() / math.sqrt(DRAWS)
    assert 3 * error < 0.06 * alpha, "the test would not see a small breach"
    assert risks.mean() <= alpha + 3 * error
    bounds = [controller.guarantee().lower_bound for controller in controllers]
    assert all(bound is not None for bound in bounds), "alpha must leave the two edge cases aside"
    assert risks.mean() >= np.mean([float(bound) for bound in bounds]) - 3 * error


@pytest.mark.parametrize("growth", RULE_NAMES)
@pytest.mark.parametrize("case", ["coverage", "divergence"])
def test_a_slightly_larger_budget_would_be_caught(case, growth):
    """The threshold of ``n alpha`` in place of ``(n + 1) alpha - B`` breaks the promise, visibly."""
    loss, alpha, n = LOSSES[case]
    population, controllers = draw_calibrations(loss, alpha, n, growth, seed=12)
    budget = n * as_fraction(alpha)
    thresholds = [controller.risk_curve_.first_level_above(budget) for controller in controllers]
    risks = population.risks(loss, growth, thresholds)
    error = risks.std() / math.sqrt(DRAWS)
    assert risks.mean() > alpha + 3 * error


@pytest.mark.parametrize("growth", RULE_NAMES)
def test_coverage_is_exact_without_ties(growth):
    """Continuous scores and equal weights: the miss rate is floor((n + 1) alpha) / (n + 1)."""
    n, alpha = 40, 0.2
    population, controllers = draw_calibrations(orisk.WeightedLoss(), alpha, n, growth, seed=13)
    risks = population.risks(orisk.WeightedLoss(), growth, [c.threshold_ for c in controllers])
    error = risks.std() / math.sqrt(DRAWS)
    assert abs(risks.mean() - math.floor(41 * as_fraction(alpha)) / 41) < 4 * error


@pytest.mark.parametrize("growth", RULE_NAMES)
def test_heavy_ties_only_make_it_safer(growth):
    """Scores rounded to quarters: whole crowds step at one level, and still the risk is at most alpha."""
    rng = np.random.default_rng(14)
    population = Population(seed=15)
    population.proba = rng.multinomial(4, [0.1, 0.2, 0.4, 0.2, 0.1], size=len(population.proba)) / 4
    loss, alpha = orisk.DivergenceLoss(), 0.12
    controllers = [
        orisk.RiskController(loss=loss, alpha=alpha, growth=growth).calibrate(*population.draw(60))
        for _ in range(DRAWS)
    ]
    assert np.mean([controller.risk_curve_.most_tied for controller in controllers]) > 3
    risks = population.risks(loss, growth, [controller.threshold_ for controller in controllers])
    assert risks.mean() <= alpha + 3 * risks.std() / math.sqrt(DRAWS)
