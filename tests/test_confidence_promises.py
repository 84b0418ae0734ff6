"""Guarantees with confidence on the hardest designs: sorted files, ties, many alphas, shifts.

Every risk here is known in closed form or enumerated, so that what varies is the calibration alone.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk
from ordinalrisk.shift import accepted_rows

pytestmark = UNCHECKED

LARGER = Fraction(11, 10)

# ------------------------------------------------------------------- one level, sorted file, enumerated


def betting_failures(n, alpha, delta, first, n_seeds=40):
    """How often single labels are let through although their risk is ``alpha``, and the standard error.

    Scores are constant and labels 1 or 2, so that a file has ``n + 1`` versions: for each number of misses
    the share of shuffles that lose is drawn, and the numbers of misses are enumerated.
    """
    share = 2 * alpha  # a miss of one label costs one half
    proba = np.tile([0.1, 0.6, 0.3], (n, 1))
    rate = variance = 0.0
    seed = 0
    for n_missed in range(n + 1):
        if (probability := binom.pmf(n_missed, n, float(share))) < 1e-5:
            continue
        y = np.where(np.arange(n) < n_missed, 2, 1)[:: 1 if first == "misses first" else -1]
        passed = 0
        for _ in range(n_seeds):
            seed += 1
            one = orisk.RiskController("divergence", alpha, delta=delta, random_state=seed)
            passed += one.calibrate(proba, y).threshold_ == math.inf
        among = passed / n_seeds
        rate += probability * among
        variance += probability**2 * among * (1 - among) / (n_seeds - 1)
    return rate, math.sqrt(variance)


@pytest.mark.parametrize(
    ("n", "alpha", "delta", "first"),
    [
        (105, Fraction(3, 20), 0.1, "misses last"),
        (105, Fraction(3, 20), 0.2, "misses first"),
        (60, Fraction(1, 10), 0.2, "misses last"),
        (100, Fraction(1, 4), 0.05, "misses first"),
    ],
)
def test_a_sorted_file_with_one_level_is_let_through_with_probability_delta_at_most(n, alpha, delta, first):
    rate, error = betting_failures(n, alpha, delta, first)
    assert 3 * error < 0.4 * delta, "the test would not see a breach"
    assert rate <= delta + 3 * error
    assert rate > delta / 3, "the bound is not idle either"


def test_the_enumeration_sees_an_alpha_that_is_too_large_by_a_tenth():
    alpha, n = Fraction(3, 20), 105
    proba = np.tile([0.1, 0.6, 0.3], (n, 1))
    rate = 0.0
    for n_missed in range(n + 1):
        if (probability := binom.pmf(n_missed, n, float(2 * alpha))) < 1e-4:
            continue
        y = np.where(np.arange(n) < n_missed, 2, 1)
        passed = [
            orisk.RiskController("divergence", alpha * LARGER, delta=0.1, random_state=seed)
            .calibrate(proba, y)
            .threshold_
            == math.inf
            for seed in range(20)
        ]
        rate += probability * np.mean(passed)
    assert rate > 0.15


def test_without_a_random_state_each_calibration_draws_its_own_shuffle():
    proba, y = np.tile([0.1, 0.6, 0.3], (105, 1)), np.where(np.arange(105) < 24, 2, 1)
    found = [orisk.RiskController("divergence", 0.15, delta=0.1).calibrate(proba, y) for _ in range(60)]
    assert len({one.calibration_.shuffle_seed for one in found}) == 60
    assert {one.threshold_ == math.inf for one in found} == {True, False}
    again = orisk.RiskController(
        "divergence", 0.15, delta=0.1, random_state=found[0].calibration_.shuffle_seed
    )
    assert again.calibrate(proba, y).threshold_ == found[0].threshold_


def test_only_betting_keeps_a_seed():
    proba, y = np.tile([0.1, 0.6, 0.3], (105, 1)), np.where(np.arange(105) < 24, 2, 1)
    for options in (
        {},
        {"delta": 0.1, "confidence_bound": "hoeffding_bentkus"},
        {"delta": 0.1, "confidence_bound": "dkw"},
    ):
        one = orisk.RiskController("divergence", 0.15, random_state=3, **options).calibrate(proba, y)
        assert one.calibration_.shuffle_seed is None


# ----------------------------------------------------------------------------------- a risk in closed form


class TwoClasses:
    """Label 1 joins at a level that is uniform between 0 and 1/2, and is true with a known probability."""

    loss = "coverage"

    def __init__(self, share=0.6):
        self.share = share

    def draw(self, rng, n):
        level = rng.random(n) / 2
        return np.column_stack([1 - level, level]), (rng.random(n) < self.share).astype(int)

    def risk(self, tau):
        return self.share * np.clip(2 * np.asarray(tau), 0, 1)


class ThreeClasses:
    """Labels 1 and 2 join at different levels, and a miss costs one or two halves."""

    loss = "divergence"

    def draw(self, rng, n):
        both = rng.random(n) / 2
        last = both * rng.random(n)
        return np.column_stack([1 - both, both - last, last]), rng.choice(3, n, p=[0.4, 0.3, 0.3])

    def risk(self, tau):
        x = np.clip(2 * np.asarray(tau, float), 1e-300, 0.5)
        return 0.3 * 2 * x + 0.15 * 2 * x * (1 + np.log(0.5 / x))


def failures(population, alphas, draws, n, seed=0, **options):
    """For each draw and each alpha whether the risk exceeds alpha."""
    rng = np.random.default_rng(seed)
    found = []
    for draw in range(draws):
        one = orisk.RiskController(population.loss, alphas[0], random_state=draw, **options)
        one.calibrate(*population.draw(rng, n))
        thresholds = [one.threshold_at(alpha) for alpha in alphas]
        found.append(population.risk(thresholds) > np.array(alphas) * (1 + 1e-9))
    return np.array(found)


ALPHAS = [round(0.02 * i, 2) for i in range(1, 14)]


@pytest.mark.parametrize("population", [TwoClasses(), ThreeClasses()], ids=lambda p: p.loss)
def test_each_alpha_has_its_own_confidence_and_all_together_have_less(population):
    """What predict_set says of other alphas; 1 - delta for all at once needs the bound for that."""
    failed = failures(population, ALPHAS, 400, 300, delta=0.1)
    assert (failed.mean(axis=0) <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 400)).all()
    assert failed.any(axis=1).mean() > 0.2


@pytest.mark.parametrize("population", [TwoClasses(), ThreeClasses()], ids=lambda p: p.loss)
@pytest.mark.parametrize("n", [200, 1_000])
@FEW
def test_dkw_keeps_every_alpha_at_once(population, n):
    alphas = [round(0.01 * i, 2) for i in range(3, 40)]
    failed = (
        failures(population, alphas, 400, n, seed=n, delta=0.1, confidence_bound="dkw").any(axis=1).mean()
    )
    assert failed <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 400)


def test_dkw_keeps_an_alpha_that_was_chosen_by_a_look_at_the_rows():
    """The alpha with the largest threshold above its fair one is the worst choice there is."""
    population, n, rng = TwoClasses(share=1.0), 500, np.random.default_rng(5)
    exceeded = []
    for _ in range(600):
        one = orisk.RiskController(alpha=0.5, delta=0.1, confidence_bound="dkw").calibrate(
            *population.draw(rng, n)
        )
        alphas = [Fraction(i, 40) for i in range(3, 38)]
        exceeded.append(max(float(population.risk(one.threshold_at(a))) - float(a) for a in alphas) > 0)
    rate = np.mean(exceeded)
    assert rate <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 600)
    assert rate > 0.03, "the bound is not idle either"


def test_dkw_with_a_tenth_more_would_be_noticed():
    population = TwoClasses(share=1.0)
    alphas = [Fraction(i, 40) for i in range(10, 30)]
    rng, exceeded = np.random.default_rng(6), []
    for _ in range(200):
        one = orisk.RiskController(alpha=0.5, delta=0.1, confidence_bound="dkw").calibrate(
            *population.draw(rng, 2_000)
        )
        exceeded.append(
            max(float(population.risk(one.threshold_at(a * LARGER))) - float(a) for a in alphas) > 0
        )
    assert np.mean(exceeded) > 0.5


# ------------------------------------------------------------------------------------- shifts with confidence


def shifted(rng, n, accept):
    """Label 1 is true for 20 % of the rows, and for 60 % of new ones."""
    proba, y = TwoClasses(share=0.2).draw(rng, n)
    ratios = np.array([0.5, 3.0])
    rows = (
        accepted_rows(ratios[y], largest=3, random_state=int(rng.integers(2**31))) if accept else slice(None)
    )
    return proba[rows], y[rows]


@pytest.mark.parametrize("alpha", [0.1, 0.1 * 1.1], ids=["alpha", "a tenth more"])
def test_accepted_rows_keep_delta_in_the_new_population(alpha):
    new, rng, failed = TwoClasses(share=0.6), np.random.default_rng(7), []
    for _ in range(800):
        one = orisk.RiskController(alpha=round(alpha, 3), delta=0.1).calibrate(*shifted(rng, 1_500, True))
        failed.append(new.risk(one.threshold_) > 0.1)
    limit = 0.1 + 3 * math.sqrt(0.1 * 0.9 / 800)
    assert (np.mean(failed) <= limit) == (alpha == 0.1)


def test_rows_that_are_not_accepted_by_weight_break_it():
    new, rng = TwoClasses(share=0.6), np.random.default_rng(8)
    found = [
        orisk.RiskController(alpha=0.1, delta=0.1).calibrate(*shifted(rng, 1_500, False)) for _ in range(50)
    ]
    assert np.mean([new.risk(one.threshold_) > 0.1 for one in found]) > 0.9


@pytest.mark.parametrize("options", [{}, {"delta": 0.2}], ids=str)
def test_a_promise_for_each_class_survives_any_shift_of_the_classes(options):
    """The class of half of the rows becomes that of one in twenty, or of nearly all."""
    rng, old = np.random.default_rng(9), TwoClasses(share=0.5)
    risks, plain = [], []
    for _ in range(300):
        rows = old.draw(rng, 120)
        one = orisk.RiskController(alpha=0.2, condition_on="label", **options).calibrate(*rows)
        level = np.arange(0.5, 1_000) / 2_000
        sets = one.predict_set(np.column_stack([1 - level, level]))
        of_class = [1 - sets.contains(np.full(1_000, y)).mean() for y in (0, 1)]
        risks.append([(1 - share) * of_class[0] + share * of_class[1] for share in (0.05, 0.95)])
        controller = orisk.RiskController(alpha=0.2, **options).calibrate(*rows)
        plain.append(TwoClasses(share=0.95).risk(controller.threshold_))
    if options:
        error = 3 * math.sqrt(0.2 * 0.8 / 300)
        assert (np.mean(np.array(risks) > 0.2, axis=0) <= 0.2 + error).all()
        assert np.mean(np.array(plain) > 0.2) > 0.9
    else:
        error = 3 * np.std(risks, axis=0) / math.sqrt(300)
        assert (error < 0.02).all()
        assert (np.mean(risks, axis=0) <= 0.2 + error).all()
        assert np.mean(plain) > 0.25
