"""The guarantee itself: over many fresh calibrations, the expected loss is at most alpha and hardly less.

The population is finite and known, so the risk at a threshold is computed, not sampled: what varies from draw
to draw is the calibration alone. How lucky a draw was is known as well: what its rows lose beyond the risk,
at a threshold that is not theirs. Without this luck 400 draws put the standard error near 0.001, and a budget
of ``n alpha`` instead of ``(n + 1) alpha - B`` is caught.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from control_variates import mean_and_error, standardised
from populations import COST_TABLE, Population
from strategies import RULE_NAMES, as_rule, ends_of
from unchecked import UNCHECKED

import ordinalrisk as orisk

pytestmark = [
    UNCHECKED,
    pytest.mark.no_cover,  # so many draws take twice as long if coverage is measured
]
DRAWS = 400
LOSSES = {
    "coverage": (orisk.WeightedLoss(), 0.2, 40),
    "weighted": (orisk.WeightedLoss([1, 1, 2, 3, 4]), 0.1, 60),
    "divergence": (orisk.DivergenceLoss(), 0.1, 80),
    "squared, natural units": (orisk.DivergenceLoss(power=2, normalize=False), 0.6, 120),
    "asymmetric": (orisk.DivergenceLoss(under=3), 0.07, 80),
    "table": (orisk.CostTableLoss(COST_TABLE), 0.06, 100),
}


class KnownRisk:
    """The expected loss of a new case at any threshold."""

    def __init__(self, population, loss, growth):
        self._population, self._truth, self._loss = population, population.truth, loss
        self._levels = as_rule(growth).levels(population.proba, loss)
        stops = np.sort(self._levels, axis=1).T
        at_stops = np.array([self._of_cases(self.losses(stop[:, None])) for stop in stops])
        steps = np.diff(at_stops, axis=0, append=at_stops[-1:])  # the loss of a case rises beyond its stops
        order = stops.argsort(axis=None)
        self._stops = stops.ravel()[order]
        self._risks = np.append(0, steps.ravel()[order].cumsum()) / len(self._truth)

    def __call__(self, thresholds):
        return self._risks[np.searchsorted(self._stops, thresholds)]

    def losses(self, threshold):
        """What each label of each case loses."""
        return self._population.losses(self._loss, *ends_of(self._levels, threshold))

    def surplus(self, alpha):
        """What each label of each case loses beyond the risk where that is alpha, in standard deviations."""
        losses = self.losses(self._stops[np.searchsorted(self._risks, alpha)])
        return standardised(losses - self._of_cases(losses).mean(), self._population.joint)

    def _of_cases(self, losses):
        return (self._truth * losses).sum(axis=1)


def draw_calibrations(population, loss, alpha, n, growth):
    """Controllers, how lucky each was, and the risk at any threshold."""
    risk = KnownRisk(population, loss, growth)
    surplus = risk.surplus(alpha)
    controllers, luck = [], []
    for _ in range(DRAWS):
        case, y = population.draw(n)
        controller = orisk.RiskController(loss=loss, alpha=alpha, growth=growth)
        controllers.append(controller.calibrate(population.proba[case], y))
        luck.append(surplus[case, y].sum() / math.sqrt(n))
    return controllers, np.array(luck), risk


@cache
def draw_named(name, growth):
    return draw_calibrations(Population(seed=11, n_cases=3_000), *LOSSES[name], growth)


@pytest.mark.parametrize("growth", RULE_NAMES)
@pytest.mark.parametrize("name", LOSSES)
def test_expected_loss_is_at_most_alpha_and_at_least_the_lower_bound(name, growth):
    """Theorem 4 as well: single labels do not suffice here, and a new row can tie with one row more."""
    _, alpha, _ = LOSSES[name]
    controllers, luck, risk = draw_named(name, growth)
    expected, error = mean_and_error(risk([controller.threshold_ for controller in controllers]), luck)
    assert 3 * error < 0.03 * alpha, "the test would not see a small breach"
    assert expected <= alpha + 3 * error
    curves = [controller.risk_curve_ for controller in controllers]
    budgets = [(curve.n_rows + 1) * Fraction(str(alpha)) - curve.bound for curve in curves]
    assert all(curve.total_loss(math.inf) > budget for curve, budget in zip(curves, budgets, strict=True))
    slack = [(curve.most_tied + 2) * curve.bound / (curve.n_rows + 1) for curve in curves]
    assert expected >= alpha - float(np.mean(slack)) - 3 * error


@pytest.mark.parametrize("growth", RULE_NAMES)
@pytest.mark.parametrize("name", ["coverage", "divergence"])
def test_a_slightly_larger_budget_would_be_caught(name, growth):
    """The threshold of ``n alpha`` in place of ``(n + 1) alpha - B`` breaks the guarantee, visibly."""
    _, alpha, n = LOSSES[name]
    controllers, luck, risk = draw_named(name, growth)
    budget = n * Fraction(str(alpha))
    thresholds = [controller.risk_curve_.first_level_above(budget) for controller in controllers]
    expected, error = mean_and_error(risk(thresholds), luck)
    assert expected > alpha + 3 * error


@pytest.mark.parametrize("growth", RULE_NAMES)
def test_coverage_is_exact_without_ties(growth):
    """Continuous scores and equal weights: the miss rate is floor((n + 1) alpha) / (n + 1)."""
    _, alpha, n = LOSSES["coverage"]
    controllers, luck, risk = draw_named("coverage", growth)
    expected, error = mean_and_error(risk([controller.threshold_ for controller in controllers]), luck)
    assert abs(expected - math.floor((n + 1) * Fraction(str(alpha))) / (n + 1)) < 4 * error


@pytest.mark.parametrize("growth", RULE_NAMES)
def test_heavy_ties_only_make_it_safer(growth):
    """Scores rounded to quarters: whole crowds step at one level, and still the risk is at most alpha."""
    rng = np.random.default_rng(14)
    population = Population(seed=15, n_cases=3_000)
    population.proba = rng.multinomial(4, [0.1, 0.2, 0.4, 0.2, 0.1], size=len(population.proba)) / 4
    alpha = 0.12
    controllers, luck, risk = draw_calibrations(population, orisk.DivergenceLoss(), alpha, 60, growth)
    assert np.mean([controller.risk_curve_.most_tied for controller in controllers]) > 3
    expected, error = mean_and_error(risk([controller.threshold_ for controller in controllers]), luck)
    assert expected <= alpha + 3 * error
