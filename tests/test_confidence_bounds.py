"""Bounds that hold with confidence: exact where they can be, against a naive scan, and over many draws.

The units of the draws have ``d`` steps of a quarter at uniform levels, with ``d`` from 0 to 4, or one step of
the whole at most, so that the risk at a threshold is known: ``E[d] tau / 4``. 2,000 draws put the standard
error of a miss rate of 0.1 at 0.007.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from effort import in_little_memory, quickly
from hypothesis import given, settings
from hypothesis import strategies as st
from options import BOUNDS as BOUND_NAMES
from scipy.integrate import quad

from ordinalrisk import CostTableLoss, DivergenceLoss, RiskController, WeightedLoss
from ordinalrisk.calibration import betting_bound
from ordinalrisk.calibration.binomial_tails import binomial_rejects, units_without_loss
from ordinalrisk.calibration.confidence_bounds import (
    BOUNDS,
    betting_threshold,
    binomial_budget,
    binomial_p_value,
    dkw_budget,
    hoeffding_bentkus_budget,
    hoeffding_bentkus_p_value,
    tightest_bound,
    units_needed,
)
from ordinalrisk.curves.unit_steps import UnitSteps

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
ALPHAS = [Fraction(1, 50), TENTH, Fraction(3, 10), HALF, Fraction(9, 10)]
DELTAS = [Fraction(1, 1000), Fraction(1, 20), TENTH, Fraction(1, 4), Fraction(4, 5)]

N_DRAWS = 2_000
N_STEPS_ODDS = [0.40, 0.35, 0.15, 0.07, 0.03]
MISS_RATE_LIMIT = 0.1 + 3 * math.sqrt(0.1 * 0.9 / N_DRAWS)


def exact_p_value(n_missed, n, alpha):
    return sum(math.comb(n, c) * alpha**c * (1 - alpha) ** (n - c) for c in range(n_missed + 1))


# ------------------------------------------------------------------------------------------------ binomial


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_binomial_p_value_is_the_sum_of_the_probabilities(n, alpha):
    found = [binomial_p_value(missed, n, alpha) for missed in range(-1, n + 1)]
    truth = [float(exact_p_value(missed, n, alpha)) for missed in range(-1, n + 1)]
    np.testing.assert_allclose(found, truth, rtol=1e-11)


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
@pytest.mark.parametrize("delta", DELTAS, ids=str)
def test_binomial_budget_is_the_most_misses_that_are_rare(alpha, delta):
    for n in (1, 2, 5, 22, 23, 50):
        rare = [missed for missed in range(n + 1) if exact_p_value(missed, n, alpha) <= delta]
        assert binomial_budget(n, alpha, delta) == max(rare, default=-1)


@pytest.mark.parametrize("missed", [0, 3])
def test_binomial_budget_is_exact_where_rounding_could_decide(missed):
    delta = exact_p_value(missed, 40, TENTH)
    hair = Fraction(1, 10**15)
    assert binomial_budget(40, TENTH, delta) == missed
    assert binomial_budget(40, TENTH, delta + hair) == missed
    assert binomial_budget(40, TENTH, delta - hair) == missed - 1


def test_binomial_budget_is_exact_for_a_delta_close_to_1():
    n, alpha, delta = 500, Fraction(9, 10), 1 - Fraction(1, 10**12)
    budget = binomial_budget(n, alpha, delta)
    assert exact_p_value(budget, n, alpha) <= delta < exact_p_value(budget + 1, n, alpha)


def test_binomial_budget_of_many_units_is_near_the_normal_one():
    n = 1_000_000
    normal = n / 10 - 1.2815515655 * math.sqrt(n * 0.09)
    assert abs(binomial_budget(n, TENTH, TENTH) - normal) < 2


# --------------------------------------------------------------------------------------- Hoeffding-Bentkus


def direct_p_value(mean, n, alpha):
    m, a = float(min(mean, alpha)), float(alpha)
    divergence = (m * math.log(m / a) if m else 0.0) + (
        (1 - m) * math.log((1 - m) / (1 - a)) if m < 1 else 0.0
    )
    tail = exact_p_value(min(math.ceil(n * mean), n), n, alpha)
    return min(math.exp(-n * divergence), math.e * float(tail))


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
@pytest.mark.parametrize("n", [1, 9, 40])
def test_hoeffding_bentkus_p_value_is_the_formula(n, alpha):
    means = [Fraction(total, 4 * n) for total in range(0, 4 * n + 1)]
    found = [hoeffding_bentkus_p_value(mean, n, alpha) for mean in means]
    np.testing.assert_allclose(found, [direct_p_value(mean, n, alpha) for mean in means], rtol=1e-11)
    assert (np.diff(found) >= -1e-12).all()


def test_both_parts_of_hoeffding_bentkus_count():
    entropy = [hoeffding_bentkus_p_value(Fraction(0), n, TENTH) == 0.9**n for n in (1, 2)]
    assert all(entropy)  # Bentkus alone would be e times that
    n, mean = 1_000, Fraction(8, 100)
    assert hoeffding_bentkus_p_value(mean, n, TENTH) == math.e * binomial_p_value(80, n, TENTH)


def test_a_whole_total_is_not_rounded_up():
    assert 0.07 * 100 > 7
    found = hoeffding_bentkus_p_value(Fraction(7, 100), 100, Fraction(1, 5))
    assert found == math.e * binomial_p_value(7, 100, Fraction(1, 5))


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
@pytest.mark.parametrize("delta", DELTAS, ids=str)
@pytest.mark.parametrize("unit", [Fraction(1), Fraction(1, 4), Fraction(2, 7)], ids=str)
def test_hoeffding_bentkus_budget_is_the_largest_total_that_rejects(alpha, delta, unit):
    for n in (1, 22, 30):
        totals = [count * unit for count in range(int(n / unit) + 1)]
        rejecting = [total for total in totals if direct_p_value(total / n, n, alpha) <= delta]
        found = hoeffding_bentkus_budget(n, alpha, delta, unit)
        assert found == max(rejecting) if rejecting else found < 0


def test_what_only_rounding_would_reject_is_not_rejected():
    total = Fraction(6)
    p_value = Fraction(hoeffding_bentkus_p_value(total / 120, 120, TENTH))
    assert hoeffding_bentkus_budget(120, TENTH, p_value * (1 + Fraction(1, 10**8)), Fraction(1)) == total
    assert hoeffding_bentkus_budget(120, TENTH, p_value * (1 + Fraction(1, 10**10)), Fraction(1)) == total - 1


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
def test_bets_on_zero_losses_are_bold_enough_and_only_rounding_is_left_over(alpha):
    for n in (1, 2, 7):
        goal = (1 + Fraction(99, 100) * alpha / (1 - alpha)) ** n
        assert units_needed("betting", alpha, (1 + Fraction(1, 10**8)) / goal) == n
        assert units_needed("betting", alpha, (1 + Fraction(1, 10**10)) / goal) == n + 1


# ----------------------------------------------------------------------------------------- zero losses


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
@pytest.mark.parametrize("delta", DELTAS, ids=str)
def test_fewer_units_than_needed_certify_nothing(alpha, delta):
    exact = next(n for n in range(1, 1_000) if (1 - alpha) ** n <= delta)
    assert units_needed("binomial", alpha, delta) == units_needed("hoeffding_bentkus", alpha, delta) == exact
    for n in (exact - 1, exact):
        assert (binomial_budget(n, alpha, delta) >= 0) == (n == exact)
        assert (hoeffding_bentkus_budget(n, alpha, delta, Fraction(1, 4)) >= 0) == (n == exact)


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
@pytest.mark.parametrize("delta", DELTAS, ids=str)
def test_betting_needs_hardly_more_units_whatever_their_losses(alpha, delta):
    needed = units_needed("betting", alpha, delta)
    gain = 1 + 0.99 * float(alpha / (1 - alpha))
    assert needed == math.ceil(-math.log(delta) / math.log(gain))
    for n in (needed - 1, needed):
        for n_steps in (0, n, 4 * n):
            steps = UnitSteps(
                np.linspace(1, 2, n_steps), np.arange(n_steps) % max(n, 1), np.ones(n_steps, int), n
            )
            threshold = betting_threshold(steps, Fraction(1, 4), alpha, delta)
            assert (threshold >= 1) == (n == needed)
            assert (threshold == -math.inf) == (n < needed)


def test_units_needed_is_exact_where_rounding_could_decide():
    for n in (1, 2, 22, 300):
        delta = Fraction(9, 10) ** n
        assert units_needed("binomial", TENTH, delta) == n
        assert units_needed("binomial", TENTH, delta * (1 - Fraction(1, 10**15))) == n + 1


# ------------------------------------------------------------------------------------------------- betting


def naive_share_of_goal(losses, spreads, alpha, share):
    """The wealth as a share of the goal, when it is reached or at the end."""
    n = len(losses)
    for t in range(n):
        missing = -math.log(share)
        bet = min(math.sqrt(2 * missing / (n - t)) / spreads[t], 0.99 / (1 - alpha))
        share *= 1 + bet * (alpha - losses[t])
        if share >= 1:
            break
        if share < 1e-200:
            return 0.0
    return share


def naive_losses(steps, scale, threshold, n_places):
    """The losses of the first units."""
    losses = [0.0] * n_places
    for i in np.argsort(steps.at, kind="stable"):
        if steps.at[i] < threshold and steps.unit[i] < n_places:
            losses[steps.unit[i]] += float(int(steps.by[i]) * scale)
    return losses


def naive_spreads(steps, scale, alpha):
    candidates = [*np.unique(steps.at), math.inf]
    bet = 0.99 / (1 - alpha)
    most = min(math.sqrt(alpha * (1 - alpha)), math.sqrt(2 * math.log1p(bet * alpha)) / bet)
    spreads = []
    for block in range(16):
        start, stop = block * steps.n_units // 16, (block + 1) * steps.n_units // 16
        losses = []
        for threshold in candidates:
            trial = naive_losses(steps, scale, threshold, start)
            if math.fsum(trial) > alpha * start:
                break
            losses = trial
        variance = alpha * (1 - alpha + math.fsum((x - alpha) ** 2 for x in losses)) / (1 + alpha * start)
        spreads += [min(math.sqrt(variance), most)] * (stop - start)
    return spreads


def naive_scan(steps, scale, alpha, delta):
    """Every candidate from the safest on, in the wealth's own words, and whether each wins."""
    candidates = [*np.unique(steps.at).tolist(), math.inf]
    n, a = steps.n_units, float(alpha)
    spreads = naive_spreads(steps, scale, a)
    share = float(delta) / (1 + 1e-9 + n * 1e-14)
    wins = [naive_share_of_goal(naive_losses(steps, scale, c, n), spreads, a, share) >= 1 for c in candidates]
    won = wins.index(False) if False in wins else len(wins)
    return ([-math.inf, *candidates])[won], wins


@st.composite
def unit_steps(draw):
    n = draw(st.integers(0, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_steps = rng.choice(5, n, p=N_STEPS_ODDS)
    unit = rng.permutation(np.repeat(np.arange(n), n_steps))
    n_levels = draw(st.sampled_from([3, 20, 10**6]))
    return UnitSteps(rng.integers(0, n_levels, len(unit)) / 8, unit, np.ones(len(unit), np.int64), n)


@settings(max_examples=30)
@given(steps=unit_steps(), alpha=st.sampled_from([TENTH, Fraction(1, 5), Fraction(1, 3), Fraction(4, 5)]))
def test_bisection_finds_what_a_naive_scan_of_all_candidates_finds(steps, alpha):
    for delta in (TENTH, Fraction(2, 5)):
        threshold, wins = naive_scan(steps, Fraction(1, 4), alpha, delta)
        assert betting_threshold(steps, Fraction(1, 4), alpha, delta) == threshold
        assert wins == sorted(wins, reverse=True)


@given(steps=unit_steps(), deltas=st.lists(st.integers(1, 999), min_size=6, max_size=6))
def test_a_smaller_delta_never_gives_a_larger_threshold(steps, deltas):
    for alpha in (TENTH, Fraction(1, 4), Fraction(2, 3)):
        thresholds = [
            betting_threshold(steps, Fraction(1, 4), alpha, Fraction(delta, 1000)) for delta in sorted(deltas)
        ]
        assert thresholds == sorted(thresholds)


@given(steps=unit_steps(), seed=st.integers(0, 1000))
def test_larger_losses_never_win_where_smaller_ones_lose(steps, seed):
    """For one and the same spread; every part of the bet is passed, from the boldest to the last."""
    rng = np.random.default_rng(seed)
    n, alpha = steps.n_units, Fraction(int(rng.integers(1, 20)), 20 + int(rng.integers(1, 20)))
    spread = np.full(n, rng.uniform(0.02, 0.5))
    small = rng.random(n) ** rng.integers(1, 12)
    large = np.minimum(small + rng.random(n) * (rng.random(n) < 0.2) * 0.3, 1)
    for delta in (Fraction(1, 20), Fraction(1, 3)):
        small_wins = betting_bound.bets_reach_goal(small, spread, alpha, delta)
        assert small_wins >= betting_bound.bets_reach_goal(large, spread, alpha, delta)


def test_neither_the_order_of_steps_nor_their_number_type_counts():
    steps = draws(1, 300, N_STEPS_ODDS)[0]
    threshold = betting_threshold(steps, Fraction(1, 4), TENTH, TENTH)
    order = np.random.default_rng(1).permutation(len(steps.at))
    shuffled = UnitSteps(steps.at[order], steps.unit[order], steps.by[order], steps.n_units)
    assert betting_threshold(shuffled, Fraction(1, 4), TENTH, TENTH) == threshold
    huge = steps._replace(by=steps.by.astype(object) * 10**400)
    assert betting_threshold(huge, Fraction(1, 4 * 10**400), TENTH, TENTH) == threshold


def test_without_units_or_steps():
    none = np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)
    assert betting_threshold(UnitSteps(*none, 0), Fraction(1), TENTH, TENTH) == -math.inf
    assert betting_threshold(UnitSteps(*none, 22), Fraction(1), TENTH, TENTH) == -math.inf
    assert betting_threshold(UnitSteps(*none, 23), Fraction(1), TENTH, TENTH) == math.inf


def test_a_unit_can_not_lose_more_than_everything():
    steps = UnitSteps(np.array([0.1, 0.2]), np.array([3, 3]), np.array([2, 3]), 40)
    assert betting_threshold(steps, Fraction(1, 5), TENTH, TENTH) > -math.inf
    with pytest.raises(ValueError, match=r"reaches 1\.25 times the largest loss.*relative to B"):
        betting_threshold(steps, Fraction(1, 4), TENTH, TENTH)


# -------------------------------------------------------------------------------------- many units


@settings(max_examples=60)
@given(
    st.integers(1, 400),
    st.fractions(Fraction(1, 200), Fraction(199, 200), max_denominator=200),
    st.fractions(Fraction(1, 10**6), 1 - Fraction(1, 10**6), max_denominator=10**6),
)
def test_the_budget_is_that_of_the_exact_sums(n, alpha, delta):
    budget = binomial_budget(n, alpha, delta)
    assert exact_p_value(budget, n, alpha) <= delta < exact_p_value(budget + 1, n, alpha)


@pytest.mark.parametrize("alpha", [TENTH, HALF, Fraction(97, 100), Fraction(1, 10**8)], ids=str)
@pytest.mark.parametrize("n", [30, 1_200])
def test_long_decimals_decide_as_whole_numbers_do(n, alpha, monkeypatch):
    """Even if ``delta`` is a p-value, or nearly one."""
    hair = 1 + Fraction(1, 10**30)
    n_missed = max(int(n * alpha) - 3, 1)
    delta = exact_p_value(n_missed, n, alpha)
    monkeypatch.setattr("ordinalrisk.calibration.binomial_tails._MOST_BITS", 0)  # no whole numbers
    for missed, more in ((n_missed, True), (n_missed + 1, False)):
        assert binomial_rejects(missed, n, alpha, min(delta * hair, 1 - Fraction(1, 10**300))) == more
    assert not binomial_rejects(n_missed, n, alpha, delta / hair)
    assert not binomial_rejects(n_missed, n, alpha, delta)  # a tie that is not proved is decided safely


@pytest.mark.parametrize("n", [1, 10_001, 30_001, 1_000_000_001, 10_000_000_001])
def test_half_of_an_odd_number_is_exact_by_symmetry(n):
    with quickly():
        assert binomial_budget(n, HALF, HALF) == (n - 1) // 2


@pytest.mark.parametrize("alpha", [Fraction(1, 10**8), Fraction(1, 10**4), TENTH, Fraction(3, 7)], ids=str)
@pytest.mark.parametrize("delta", [Fraction(1, 20), Fraction(99, 100)], ids=str)
def test_the_budget_of_ten_billion_units_takes_no_time(alpha, delta):
    """It is the normal quantile, corrected for skewness, up to a few misses."""
    n = 10**10
    with quickly():
        budget = binomial_budget(n, alpha, delta)
    z = {Fraction(1, 20): -1.6448536269514722, Fraction(99, 100): 2.3263478740408408}[delta]
    mean, deviation = float(n * alpha), math.sqrt(n * alpha * (1 - alpha))
    corrected = mean + deviation * z + (1 - 2 * float(alpha)) * (z * z - 1) / 6 - 0.5
    assert abs(budget - math.floor(corrected)) <= 1


@pytest.mark.parametrize("alpha", [Fraction(1, 10**7), Fraction(1, 10**8), Fraction(1, 10**300)], ids=str)
@pytest.mark.parametrize("bound", BOUNDS)
def test_a_tiny_alpha_needs_many_units_and_no_time(alpha, bound):
    delta = Fraction(1, 20)
    with quickly():
        needed = units_needed(bound, alpha, delta)
        nothing = binomial_budget(50, alpha, delta)
    assert nothing == -1
    growth = {"betting": 0.99, "binomial": 1.0, "hoeffding_bentkus": 1.0}.get(bound)
    if growth and alpha > 1e-9:
        assert needed == pytest.approx(math.log(20) / (growth * float(alpha)), 1e-5)


@given(st.integers(1, 10**6), st.integers(1, 10**5))
def test_units_without_loss_is_the_first_power_that_is_small_enough(alpha, delta):
    alpha, delta = Fraction(alpha, 10**6 + 1), Fraction(delta, 10**5 + 1)
    n = units_without_loss(alpha, delta)
    logs = math.log(delta) / math.log1p(-alpha)
    assert n - 1 - 1e-6 < logs < n + 1e-6


@pytest.mark.parametrize("n", [1, 2, 300, 5_000])
def test_a_power_that_ties_is_small_enough(n):
    delta = Fraction(999, 1000) ** n
    assert units_without_loss(Fraction(1, 1000), delta) == n
    assert units_without_loss(Fraction(1, 1000), delta * (1 - Fraction(1, 10**100))) == n + 1


@pytest.mark.parametrize("alpha", [Fraction(1, 10**6), Fraction(1, 2 * 10**6), Fraction(1, 10**4)], ids=str)
def test_the_bets_of_so_many_units_win_and_of_fewer_lose(alpha):
    """Beyond a million units the number comes from a formula; the bets themselves agree."""
    n = units_needed("betting", alpha, TENTH)
    none = np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)
    assert betting_threshold(UnitSteps(*none, n), Fraction(1), alpha, TENTH) == math.inf
    assert betting_threshold(UnitSteps(*none, n - 1), Fraction(1), alpha, TENTH) == -math.inf


def test_units_without_steps_take_no_memory():
    steps = UnitSteps(np.array([0.1, 0.2]), np.array([3, 10**6]), np.array([1, 1]), 5 * 10**6)
    with quickly(), in_little_memory(100 * 2**20):
        assert betting_threshold(steps, HALF, TENTH, TENTH) == math.inf


def test_more_bets_than_can_be_laid_are_refused():
    steps = UnitSteps(np.array([0.1, 0.2]), np.array([3, 4]), np.array([1, 1]), 10**8 + 1)
    with quickly(), pytest.raises(ValueError, match="at most 100000000 rows or clusters; got 100000001"):
        betting_threshold(steps, HALF, TENTH, TENTH)


@pytest.mark.parametrize("near", [Fraction(1, 10**400), 1 - Fraction(1, 10**400)], ids=["0", "1"])
def test_what_floats_can_not_tell_from_an_end_is_refused(near):
    for bound in BOUNDS:
        with pytest.raises(ValueError, match=r"alpha must lie .* at least 1e-300 away from both"):
            units_needed(bound, near, TENTH)
        with pytest.raises(ValueError, match=r"delta must lie .* at least 1e-300 away from both"):
            units_needed(bound, TENTH, near)


@pytest.mark.parametrize("alpha", [1 - Fraction(1, 10**17), 1 - Fraction(1, 10**300)], ids=["-17", "-300"])
def test_an_alpha_that_rounds_to_1_is_no_infinite_bet(alpha):
    assert units_needed("betting", alpha, TENTH) == units_needed("binomial", alpha, TENTH) == 1
    steps = UnitSteps(np.array([0.5]), np.array([0]), np.array([1]), 1)
    assert betting_threshold(steps, Fraction(1), alpha, TENTH) == 0.5


@pytest.mark.parametrize(
    "delta", [Fraction(1, 1000), Fraction(1, 20), Fraction(1, 10), Fraction(1, 2)], ids=str
)
def test_the_constant_of_dkw_for_losses_of_any_size_is_that_of_its_proof(delta):
    """Markov's inequality for exp(4 t X), with P(X > x) at most exp(-2 x^2) where that is at most 1/2."""
    n = 10**12
    t = float(
        (n - dkw_budget(n, 1 - Fraction(1, 10**15), delta, Fraction(1, 10**6), two_valued=False)) / 10**6
    )
    start = math.sqrt(math.log(2) / 2)

    def tail(t):
        moment = quad(lambda x: 4 * t * math.exp(4 * t * x - 2 * x * x), start, start + 40)[0]
        return math.exp(-4 * t * t) * (math.exp(4 * t * start) + moment)

    assert tail(t) <= delta
    assert tail(0.93 * t) > delta  # the proof leaves out what lies below the start, and no more


# --------------------------------------------------------------------------------------------- many draws


def draws(n_draws, n, odds, seed=0):
    rng = np.random.default_rng(seed)
    return [
        UnitSteps(rng.random(len(unit)), unit, np.ones(len(unit), np.int64), n)
        for n_steps in rng.choice(len(odds), (n_draws, n), p=odds)
        for unit in [np.repeat(np.arange(n), n_steps)]
    ]


def miss_rate(thresholds, odds, alpha):
    """How often the risk of all that could be drawn is above ``alpha`` at the threshold."""
    most = len(odds) - 1
    risks = np.clip(thresholds, 0, 1) * (np.arange(most + 1) @ np.asarray(odds)) / most
    return np.mean(risks > float(alpha))


def budget_thresholds(all_steps, budget):
    """Where the total passes so many steps."""
    if budget < 0:
        return [-math.inf] * len(all_steps)
    return [
        np.partition(steps.at, budget)[budget] if budget < len(steps.at) else math.inf for steps in all_steps
    ]


def thresholds_of(bound, n, alpha, seed):
    if bound == "betting":
        odds = N_STEPS_ODDS
        found = [betting_threshold(s, Fraction(1, 4), alpha, TENTH) for s in draws(N_DRAWS, n, odds, seed)]
    else:
        odds = [0.7, 0.3]
        budget = BOUNDS[bound].budget(n, alpha, TENTH, Fraction(1), True)
        found = budget_thresholds(draws(N_DRAWS, n, odds, seed), int(budget))
    return found, odds


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("n", [60, 400])
def test_the_risk_is_above_alpha_in_at_most_delta_of_the_draws(bound, n):
    thresholds, odds = thresholds_of(bound, n, TENTH, seed=n)
    assert max(thresholds) > 0 or n < units_needed(bound, TENTH, TENTH)
    assert miss_rate(thresholds, odds, TENTH) <= MISS_RATE_LIMIT


@pytest.mark.parametrize(("bound", "n"), [("binomial", 600), ("betting", 600), ("hoeffding_bentkus", 1_500)])
def test_a_tenth_more_than_alpha_would_be_noticed(bound, n):
    assert miss_rate(*thresholds_of(bound, n, TENTH * Fraction(11, 10), seed=1), TENTH) > MISS_RATE_LIMIT


def test_a_shuffle_moves_each_unit_anywhere():
    """Units with a loss can be first, last or anywhere: over many seeds each position is as likely."""
    n = 12
    steps = UnitSteps(np.arange(3.0), np.arange(3), np.ones(3, np.int64), n)
    turns = np.array([steps.shuffled(seed).unit for seed in range(2_000)])
    counts = np.bincount(turns.ravel(), minlength=n)
    assert abs(counts - 500).max() < 4.5 * math.sqrt(500)
    assert abs(np.corrcoef(turns[:, 0], turns[:, 1])[0, 1] + 1 / (n - 1)) < 4 / math.sqrt(2_000)


def sorted_by_loss(steps):
    """As if the file had been sorted: the units without a loss first."""
    n_steps = np.bincount(steps.unit, minlength=steps.n_units)
    rank = np.empty(steps.n_units, np.int64)
    rank[np.argsort(n_steps, kind="stable")] = np.arange(steps.n_units)
    return steps._replace(unit=rank[steps.unit])


def test_sorted_units_are_safe_because_they_are_shuffled():
    files = [sorted_by_loss(steps) for steps in draws(N_DRAWS, 200, N_STEPS_ODDS, seed=2)]

    def rate(files):
        thresholds = [betting_threshold(steps, Fraction(1, 4), TENTH, TENTH) for steps in files]
        return miss_rate(thresholds, N_STEPS_ODDS, TENTH)

    assert rate([steps.shuffled(seed) for seed, steps in enumerate(files)]) <= MISS_RATE_LIMIT
    assert rate(files[:200]) > 0.5


@pytest.mark.parametrize(
    ("n", "at_least", "lead"), [(100, 0.68, 0.2), (300, 0.82, 0.12), (2_000, 0.93, 0.05)]
)
def test_betting_is_tighter_than_hoeffding_bentkus_for_graded_losses(n, at_least, lead):
    files = draws(200, n, N_STEPS_ODDS, seed=3)
    slope = np.arange(5) @ N_STEPS_ODDS / 4 / 0.1
    betting = np.mean([betting_threshold(steps, Fraction(1, 4), TENTH, TENTH) for steps in files]) * slope
    budget = int(hoeffding_bentkus_budget(n, TENTH, TENTH, Fraction(1, 4)) * 4)
    assert betting > at_least
    assert betting > np.mean(budget_thresholds(files, budget)) * slope + lead
    assert tightest_bound(two_valued=False) == "betting"


def test_binomial_allows_more_misses_than_hoeffding_bentkus():
    for n in (100, 300, 5_000):
        assert binomial_budget(n, TENTH, TENTH) > hoeffding_bentkus_budget(n, TENTH, TENTH, Fraction(1))
    assert tightest_bound(two_valued=True) == "binomial"


def test_betting_on_two_valued_losses_ends_near_the_exact_test():
    files = draws(200, 1_000, [0.7, 0.3], seed=4)
    betting = np.mean([betting_threshold(steps, Fraction(1), TENTH, TENTH) for steps in files])
    exact = np.mean(budget_thresholds(files, binomial_budget(1_000, TENTH, TENTH)))
    assert betting == pytest.approx(exact, rel=0.02)


# ------------------------------------------------------------------------------------------------- inputs


def test_the_names_of_the_bounds():
    assert tuple(BOUNDS) == BOUND_NAMES


STEPS = UnitSteps(np.array([0.1]), np.array([0]), np.array([1]), 30)
CERTIFYING = {
    "binomial": lambda alpha, delta: binomial_budget(30, alpha, delta),
    "hoeffding_bentkus": lambda alpha, delta: hoeffding_bentkus_budget(30, alpha, delta, Fraction(1)),
    "dkw": lambda alpha, delta: dkw_budget(30, alpha, delta, Fraction(1), two_valued=True),
    "betting": lambda alpha, delta: betting_threshold(STEPS, Fraction(1), alpha, delta),
    "units": lambda alpha, delta: units_needed("betting", alpha, delta),
}


@pytest.mark.parametrize("certify", CERTIFYING.values(), ids=CERTIFYING.keys())
def test_each_bound_checks_what_it_is_given(certify):
    certify(TENTH, TENTH)
    for delta in (Fraction(0), Fraction(1)):
        with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
            certify(TENTH, delta)
    for alpha in (Fraction(0), Fraction(1), Fraction(5, 4)):
        with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1 as a share"):
            certify(alpha, TENTH)


@pytest.mark.parametrize("name", BOUNDS)
def test_each_bound_is_in_the_docstring(name):
    assert f'"{name}"' in RiskController.__doc__


@pytest.mark.parametrize(
    "loss", [WeightedLoss([1, 5, 2, 0]), DivergenceLoss(), CostTableLoss([[0, 1, 2], [3, 0, 1], [7, 7, 0]])]
)
def test_betting_is_the_plain_one_if_each_row_pays_its_slack_below_all_levels(loss, draw):
    options = {"delta": "1/5", "confidence_bound": "betting", "random_state": 3, "relative": True}
    proba, y = draw(120, 3 if isinstance(loss, CostTableLoss) else 4)
    one = RiskController(loss, "2/5", **options).calibrate(proba, y)
    steps = one.calibration_.strata.parts[0].steps
    scale = one.risk_curve_.unit / one.risk_curve_.bound
    alpha = Fraction(2, 5)
    q = alpha.denominator
    full = [round(Fraction(1) / scale)] * len(y)
    offsets = [
        int(alpha * q) * (most - stake) for most, stake in zip(full, steps.stakes.tolist(), strict=True)
    ]
    first = np.array(offsets, object)
    paying = np.flatnonzero(first > 0)
    with_offset = UnitSteps(
        np.concatenate([np.full(len(paying), -1e300), steps.at]),
        np.concatenate([paying, steps.unit]),
        np.concatenate([first[paying], steps.by.astype(object) * q]),
        len(y),
    )
    expected = betting_threshold(with_offset, scale / q, alpha, Fraction(1, 5))
    assert one.threshold_ == (-math.inf if expected == -1e300 else expected)
