"""``alpha`` as a share of what could be lost: exact thresholds, and a guarantee that holds and is used up."""

import itertools
import math
import re
import warnings
from bisect import bisect
from fractions import Fraction

import numpy as np
import pytest
from control_variates import mean_and_error, standardised
from hypothesis import given, settings
from populations import COST_TABLE, Population
from report_words import headline
from rows_in_parts import calibrate_in_parts
from scipy.special import rel_entr
from scipy.stats import binom
from sizes import search_few_steps
from strategies import LOSSES, RULE_NAMES, as_rule, calibration_sets, ends_of, exact_losses, shares
from test_guarantee_identities import CLUSTERS, GROUPS, NEW, NEW_WEIGHTS, PROBA, WEIGHTS, K, N, Y
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk

pytestmark = [FEW, UNCHECKED, pytest.mark.filterwarnings("ignore:alpha=.* as a share")]
BOUNDS = ["hoeffding_bentkus", "betting", "dkw"]
for_every_loss = pytest.mark.parametrize("loss", LOSSES)
for_every_rule = pytest.mark.parametrize("growth", RULE_NAMES)


def relative(loss="coverage", alpha="1/8", growth="frontier", **options):
    loss = LOSSES[loss](K) if loss in [*LOSSES] else loss
    return orisk.RiskController(loss, alpha, growth, relative=True, **options)


def largest(costs):
    return [max(row) for row in costs]


def losses_at(levels, y, loss, tau):
    n_classes = levels.shape[1]
    return exact_losses(y.tolist(), *(end.tolist() for end in ends_of(levels, tau)), loss, n_classes)


def largest_safe(levels, is_safe):
    """The largest threshold that is safe, of all at which any set changes."""
    candidates = [*sorted({*levels.ravel().tolist()} - {math.inf}), math.inf]
    return max((tau for tau in candidates if is_safe(tau)), default=-math.inf)


@for_every_loss
@for_every_rule
@settings(max_examples=25)
@given(rows=calibration_sets(max_classes=12), alpha=shares())
def test_the_threshold_is_the_largest_with_a_small_enough_share(loss, growth, rows, alpha):
    """sum G <= alpha (sum g + B) - B, with rationals, straight from the definition of the loss."""
    proba, y = rows
    n_classes = proba.shape[1]
    loss = LOSSES[loss](n_classes)
    controller = orisk.RiskController(loss, alpha, growth, relative=True).calibrate(proba, y)
    levels, costs, bound = (
        controller.growth.levels(proba, loss),
        loss.exact_costs(n_classes),
        loss.bound(n_classes),
    )
    stake = sum(largest(costs)[label] for label in y)
    budget = alpha * (stake + bound) - bound
    expected = largest_safe(levels, lambda tau: sum(losses_at(levels, y, loss, tau)) <= budget)
    assert controller.threshold_ == expected if budget >= 0 else controller.threshold_ == -math.inf
    assert controller.risk_curve_.stake == stake


@for_every_loss
def test_the_design_says_the_same_in_other_words(loss):
    """L = G - alpha g is at most B' = max (1 - alpha) g, and sum L + B' <= 0."""
    one = relative(loss).calibrate(PROBA, Y)
    costs, alpha = one.loss.exact_costs(K), Fraction(1, 8)
    levels = one.growth.levels(PROBA, one.loss)
    most = max((1 - alpha) * g for g in largest(costs))

    def is_safe(tau):
        lost = losses_at(levels, Y, one.loss, tau)
        return sum(G - alpha * largest(costs)[y] for G, y in zip(lost, Y, strict=True)) + most <= 0

    assert one.threshold_ == largest_safe(levels, is_safe)


@pytest.mark.parametrize("options", [{}, {"delta": 0.1}, {"randomize": True}], ids=repr)
@for_every_rule
def test_of_coverage_it_is_alpha_itself(growth, options):
    """Every row can lose 1, and the exact binomial bound stays."""
    share = orisk.RiskController("coverage", 0.13, growth, relative=True, **options).calibrate(PROBA, Y)
    plain = orisk.RiskController("coverage", 0.13, growth, **options).calibrate(PROBA, Y)
    assert share.threshold_ == plain.threshold_
    assert share.guarantee().bound_name == plain.guarantee().bound_name
    coins = {"random_state": 1} if options.get("randomize") else {}
    assert share.predict_set(NEW, **coins) == plain.predict_set(NEW, **coins)


@for_every_loss
@for_every_rule
def test_a_factor_of_all_costs_changes_nothing(loss, growth):
    costs = [list(row) for row in LOSSES[loss](K).exact_costs(K)]
    tables = [[[factor * cost for cost in row] for row in costs] for factor in (1, 8)]
    one, other = (
        relative(orisk.CostTableLoss(table, normalize=False), growth=growth).calibrate(PROBA, Y)
        for table in tables
    )
    assert one.predict_set(NEW) == other.predict_set(NEW)
    assert one.guarantee().calibration_risk == other.guarantee().calibration_risk


@for_every_loss
def test_given_each_class_it_is_a_share_of_the_largest_cost_of_the_class(loss):
    one = relative(loss, condition_on="label").calibrate(PROBA, Y)
    costs = one.loss.exact_costs(K)
    for label in range(K):
        most = max(costs[label])
        plain = orisk.RiskController(one.loss, Fraction(1, 8) * one.loss.bound(K), condition_on="label")
        plain.calibrate(PROBA, Y)
        expected = plain.threshold_at({y: Fraction(1, 8) * most or one.loss.bound(K) / 2 for y in range(K)})
        assert one.threshold_[label] == expected[label]


@for_every_loss
def test_a_pool_keeps_a_share_of_what_its_rows_could_lose(loss):
    """Among the rows of a pool: sum G + B <= alpha (sum g + B), with B the largest cost there."""
    alpha, pool = Fraction(1, 4), [3, 4]
    one = relative(loss, alpha, condition_on="label", pool_classes=[pool], exempt_classes=[0])
    one.calibrate(PROBA, Y)
    plain = relative(loss, alpha, condition_on="label").calibrate(PROBA, Y)
    inside = np.isin(Y, pool)
    most = largest(one.loss.exact_costs(K))
    bound, stake = max(most[y] for y in pool), sum(most[y] for y in Y[inside])
    levels = one.growth.levels(PROBA, one.loss)[inside]
    expected = largest_safe(
        levels,
        lambda tau: sum(losses_at(levels, Y[inside], one.loss, tau)) + bound <= alpha * (stake + bound),
    )
    assert one.threshold_[3] == one.threshold_[4] == expected
    assert [one.threshold_[y] for y in (1, 2)] == [plain.threshold_[y] for y in (1, 2)]
    assert one.threshold_[0] == math.inf


@for_every_loss
@pytest.mark.parametrize("by_class", [False, True])
def test_weights_of_rows_count_what_each_row_could_lose(loss, by_class):
    """sum w G + w' B <= alpha (sum w g + w' B) for each new row of weight w'."""
    alpha, ratios = Fraction(1, 4), [1, 2, 3, 2, Fraction(1, 2)]
    weights = [Fraction(ratios[y] if by_class else w) for y, w in zip(Y, WEIGHTS.tolist(), strict=True)]
    one = relative(loss, alpha)
    one.calibrate(PROBA, Y, **({"class_ratios": ratios} if by_class else {"sample_weight": WEIGHTS}))
    most, bound = largest(one.loss.exact_costs(K)), one.loss.bound(K)
    levels, new_levels = one.growth.levels(PROBA, one.loss), one.growth.levels(NEW, one.loss)
    stake = sum(w * most[y] for w, y in zip(weights, Y, strict=True))
    assert one.risk_curve_.stake == stake

    def threshold(own):
        budget = alpha * (stake + own * bound) - own * bound
        return largest_safe(
            levels,
            lambda tau: (
                sum(w * G for w, G in zip(weights, losses_at(levels, Y, one.loss, tau), strict=True))
                <= budget
            ),
        )

    assert one.threshold_ == threshold(sum(weights) / N)
    if not by_class:
        by_weight = {w: threshold(Fraction(w)) for w in sorted({*NEW_WEIGHTS.tolist()})}
        sets = one.predict_set(NEW, sample_weight=NEW_WEIGHTS)
        expected = new_levels >= np.array([by_weight[w] for w in NEW_WEIGHTS])[:, None]
        assert np.array_equal(sets.mask(), expected)
    elif one.loss.measure == "weight" and loss != "zero weights":
        passing = new_levels >= np.array([threshold(Fraction(ratio)) for ratio in ratios])
        sets = one.predict_set(NEW)
        assert np.array_equal(sets.lower_index, passing.argmax(axis=1))
        assert np.array_equal(sets.upper_index, K - 1 - passing[:, ::-1].argmax(axis=1))


@for_every_loss
def test_a_cluster_counts_by_the_means_of_its_rows(loss):
    one = relative(loss).calibrate(PROBA, Y, clusters=CLUSTERS)
    most, bound = largest(one.loss.exact_costs(K)), one.loss.bound(K)
    levels, sizes = one.growth.levels(PROBA, one.loss), np.bincount(CLUSTERS)[CLUSTERS].tolist()
    stake = sum(most[y] / size for y, size in zip(Y, sizes, strict=True))
    budget = Fraction(1, 8) * (stake + bound) - bound

    def is_safe(tau):
        return sum(G / n for G, n in zip(losses_at(levels, Y, one.loss, tau), sizes, strict=True)) <= budget

    assert one.threshold_ == largest_safe(levels, is_safe)


def hoeffding_bentkus_p_value(mean, n, alpha):
    m, a = min(float(mean), float(alpha)), float(alpha)
    divergence = rel_entr(m, a) + rel_entr(1 - m, 1 - a)
    return min(math.exp(-n * divergence), math.e * binom.cdf(math.ceil(n * mean), n, a))


@for_every_loss
@pytest.mark.parametrize("clusters", [None, CLUSTERS])
def test_hoeffding_bentkus_bounds_the_mean_of_what_is_lost_and_the_slack(loss, clusters):
    """With rationals: the p-value of the mean of Z = G + alpha (B - g), over B, at a risk of alpha."""
    alpha, delta = Fraction(2, 5), Fraction(1, 5)
    one = relative(loss, alpha, delta=delta, confidence_bound="hoeffding_bentkus")
    one.calibrate(PROBA, Y, clusters=clusters)
    most, bound = largest(one.loss.exact_costs(K)), one.loss.bound(K)
    levels = one.growth.levels(PROBA, one.loss)
    sizes = [1] * N if clusters is None else np.bincount(CLUSTERS)[CLUSTERS].tolist()
    n = N if clusters is None else len({*CLUSTERS.tolist()})

    def is_safe(tau):
        lost = losses_at(levels, Y, one.loss, tau)
        total = sum((G + alpha * (bound - most[y])) / size for G, y, size in zip(lost, Y, sizes, strict=True))
        return hoeffding_bentkus_p_value(total / bound / n, n, alpha) <= delta

    assert one.threshold_ == largest_safe(levels, is_safe)


@pytest.mark.parametrize("loss", ["weighted", "divergence", "table"])
def test_the_bound_for_every_alpha_at_once_fails_for_half_of_delta_at_each_end(loss):
    one = relative(loss, "1/2", delta=0.2, confidence_bound="dkw").calibrate(PROBA, Y)
    assert one.guarantee().n_needed == (
        orisk.RiskController(one.loss, one.loss.bound(K) / 2, delta=0.1, confidence_bound="dkw")
        .calibrate(PROBA, Y)
        .guarantee()
        .n_needed
    )
    same = relative("coverage", "1/2", delta=0.2, confidence_bound="dkw").calibrate(PROBA, Y)
    plain = orisk.RiskController("coverage", "1/2", delta=0.2, confidence_bound="dkw").calibrate(PROBA, Y)
    assert same.threshold_ == plain.threshold_


def test_binomial_is_for_classes_that_all_can_lose_the_same():
    with pytest.raises(ValueError, match='confidence_bound="binomial" is for losses of rows that are 0 or'):
        relative("weighted", delta=0.1, confidence_bound="binomial").calibrate(PROBA, Y)
    loss = orisk.WeightedLoss([0, 1, 1, 1, 1])  # two values, but Z of class 0 is a third one
    with pytest.raises(ValueError, match='confidence_bound="binomial" is for losses of rows that are 0 or'):
        relative(loss, delta=0.1, confidence_bound="binomial").calibrate(PROBA, Y)
    one = relative("weighted", "1/3", delta=0.4, confidence_bound="binomial", condition_on="label")
    assert one.calibrate(PROBA, Y).guarantee().bound_name == "binomial"


# The guarantee itself, on designs for which its expectation is computed and not sampled.

DESIGNS = {
    # probabilities of types of rows, their scores and labels, and the loss
    "a rare heavy class that is always missed": (
        [Fraction(1, 10), Fraction(9, 10)],
        [[0.2, 0.7, 0.1], [0.1, 0.8, 0.1]],
        [0, 1],
        orisk.WeightedLoss([20, 1, 1]),
    ),
    "light rows that are missed first": (
        [Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)],
        [[0.15, 0.8, 0.05], [0.3, 0.5, 0.2], [0.05, 0.9, 0.05]],
        [0, 2, 1],
        orisk.WeightedLoss([1, 1, 7]),
    ),
    "ties": (
        [Fraction(1, 5), Fraction(2, 5), Fraction(2, 5)],
        [[0.2, 0.6, 0.2], [0.2, 0.6, 0.2], [0.2, 0.6, 0.2]],
        [0, 1, 2],
        orisk.WeightedLoss([5, 1, 2]),
    ),
    "distances": (
        [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)],
        [[0.5, 0.3, 0.2], [0.1, 0.4, 0.5], [0.2, 0.5, 0.3]],
        [2, 0, 1],
        orisk.DivergenceLoss(),
    ),
    "a class that costs nothing": (
        [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)],
        [[0.5, 0.3, 0.2], [0.1, 0.4, 0.5], [0.2, 0.5, 0.3]],
        [1, 0, 2],
        orisk.WeightedLoss([3, 0, 1]),
    ),
}


def compositions(n, parts):
    if parts == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, parts - 1):
            yield (first, *rest)


def at_stake(y, loss, n_classes):
    return [max(loss.exact_costs(n_classes)[label]) for label in y]


def expected_loss_and_stake(design, n, alpha, **options):
    """Over all calibrations with n rows, with rationals."""
    shares_of, proba, y, loss = DESIGNS[design]
    proba, y = np.array(proba), np.array(y)
    levels = as_rule("frontier").levels(proba, loss)
    expected = Fraction(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for counts in compositions(n, len(y)):
            chance = Fraction(math.factorial(n))
            for share, count in zip(shares_of, counts, strict=True):
                chance *= share**count / math.factorial(count)
            rows = np.repeat(np.arange(len(y)), counts)
            one = orisk.RiskController(loss, alpha, relative=True, **options).calibrate(proba[rows], y[rows])
            lost = losses_at(levels, y, loss, one.threshold_)
            expected += chance * sum(share * each for share, each in zip(shares_of, lost, strict=True))
    stake = sum(share * each for share, each in zip(shares_of, at_stake(y, loss, 3), strict=True))
    return expected, stake


@pytest.mark.parametrize("alpha", ["1/10", "1/5", "1/3", "1/2", "4/5"])
@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("design", DESIGNS)
def test_the_expected_share_is_at_most_alpha_over_all_calibrations(design, n, alpha):
    expected, stake = expected_loss_and_stake(design, n, alpha)
    assert expected <= Fraction(alpha) * stake


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("design", DESIGNS)
def test_the_share_exceeds_alpha_with_probability_delta_at_most(design, bound):
    """Over all sequences of rows: their order is random, and the seed does not depend on it."""
    shares_of, proba, y, loss = DESIGNS[design]
    proba, y, alpha, delta, n = np.array(proba), np.array(y), Fraction(3, 5), Fraction(1, 4), 5
    levels = as_rule("frontier").levels(proba, loss)
    stake = sum(share * each for share, each in zip(shares_of, at_stake(y, loss, 3), strict=True))
    fails = Fraction(0)
    options = {"delta": delta, "confidence_bound": bound, "relative": True, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rows in itertools.product(range(len(y)), repeat=n):
            one = orisk.RiskController(loss, alpha, **options).calibrate(proba[[*rows]], y[[*rows]])
            lost = losses_at(levels, y, loss, one.threshold_)
            risk = sum(share * each for share, each in zip(shares_of, lost, strict=True))
            if risk > alpha * stake:
                fails += math.prod(shares_of[row] for row in rows)
    assert fails <= delta


HEAVY = {
    # the loss, alpha and the number of rows: the mean over draws needs no more
    "rare and heavy": (orisk.WeightedLoss([20, 1, 1, 1, 1]), Fraction(1, 10), 3_000),
    "heavy at both ends": (orisk.WeightedLoss([4, 1, 1, 1, 4]), Fraction(1, 5), 800),
    "distances": (orisk.DivergenceLoss(), Fraction(1, 10), 600),
    "a table": (orisk.CostTableLoss(COST_TABLE), Fraction(1, 10), 1_000),
}
DRAWS = 400


class ShareLost:
    """What new rows of a known population lose at a threshold, as a share of what they could lose."""

    def __init__(self, loss, seed=21, n_cases=2_000, coarse=False):
        self.population = Population(seed, n_cases=n_cases, coarse=coarse)
        self.loss, self.most = loss, loss.cost_table(K).max(axis=1)
        self.levels = as_rule("frontier").levels(self.population.proba, loss)
        self.stake = (self.population.joint * self.most).sum()
        self.stops = np.unique(self.levels)
        self._known = {}

    def losses(self, tau):
        return self.population.losses(self.loss, *ends_of(self.levels, tau))

    def __call__(self, tau):
        if tau not in self._known:
            self._known[tau] = float((self.population.joint * self.losses(tau)).sum() / self.stake)
        return self._known[tau]

    def luck(self, alpha):
        """What each label of each case loses beyond the guarantee, where that is just kept."""
        tau = self.stops[bisect(self.stops, float(alpha), hi=len(self.stops) - 1, key=self)]
        return standardised(self.losses(tau) - self(tau) * self.most, self.population.joint)


def calibrations(share_lost, loss, alpha, n, draws=DRAWS, **options):
    for _ in range(draws):
        case, y = share_lost.population.draw(n)
        one = orisk.RiskController(loss, alpha, relative=True, **options)
        yield one.calibrate(share_lost.population.proba[case], y), case, y


@pytest.mark.no_cover
@pytest.mark.parametrize("coarse", [False, True], ids=["levels differ", "levels tie"])
@pytest.mark.parametrize("name", HEAVY)
def test_over_many_calibrations_the_share_is_alpha_and_a_tenth_more_is_seen(name, coarse):
    loss, alpha, n = HEAVY[name]
    share_lost = ShareLost(loss, coarse=coarse)
    surplus = share_lost.luck(alpha)
    found, luck = [], []
    for one, case, y in calibrations(share_lost, loss, alpha, n):
        found.append([share_lost(one.threshold_), share_lost(one.threshold_at(alpha * Fraction(11, 10)))])
        luck.append(surplus[case, y].sum() / math.sqrt(n))
    expected, error = mean_and_error(np.array(found), np.array(luck))
    assert expected[0] <= alpha + 3 * error[0]
    if not coarse:
        assert expected[1] > alpha + 3 * error[1]


def share_with_the_coin(one, alpha, share_lost):
    """On average over the coin, which spends what is left of the budget."""
    tau, curve = one.threshold_at(alpha), one.risk_curve_
    beyond = math.nextafter(tau, math.inf)
    left = alpha * (curve.stake + curve.bound) - curve.bound - curve.total_loss(tau)
    coin = float(left / (curve.total_loss(beyond) - curve.total_loss(tau))) if math.isfinite(tau) else 0.0
    return (1 - coin) * share_lost(tau) + coin * share_lost(beyond)


@pytest.mark.no_cover
def test_with_the_coin_the_share_is_alpha_and_a_tenth_more_is_seen():
    """Levels tie, and what is left unspent is at most one loss: B / (n g) of what could be lost."""
    loss, alpha, n = HEAVY["heavy at both ends"]
    share_lost = ShareLost(loss, coarse=True)
    surplus = share_lost.luck(alpha)
    found, luck = [], []
    for one, case, y in calibrations(share_lost, loss, alpha, n, randomize=True):
        more = alpha * Fraction(11, 10)
        found.append([share_with_the_coin(one, a, share_lost) for a in (alpha, more)])
        luck.append(surplus[case, y].sum() / math.sqrt(n))
    expected, error = mean_and_error(np.array(found), np.array(luck))
    one_loss = 1 / (n * share_lost.stake)
    assert alpha - one_loss - 3 * error[0] <= expected[0] <= alpha + 3 * error[0]
    assert expected[1] > alpha + 3 * error[1]


@pytest.mark.no_cover
def test_with_delta_a_tenth_more_fails_too_often():
    loss, alpha, delta, draws = orisk.WeightedLoss([5, 1, 1, 1, 1]), Fraction(1, 5), Fraction(3, 10), 200
    share_lost = ShareLost(loss)
    fails = np.zeros(2)
    for one, _, _ in calibrations(share_lost, loss, alpha, 1_500, draws, delta=delta):
        thresholds = one.threshold_, one.threshold_at(alpha * Fraction(11, 10))
        fails += [share_lost(tau) > alpha for tau in thresholds]
    error = math.sqrt(float(delta * (1 - delta)) / draws)
    assert fails[0] / draws <= delta + 3 * error
    assert fails[1] / draws > delta + 3 * error


@pytest.mark.no_cover
@pytest.mark.parametrize("unit", ["groups", "clusters", "weights"])
def test_groups_clusters_and_weights_keep_their_share_too(unit):
    """Clusters are the rows of one case; weights stand for a population in which hard cases are common."""
    (loss, alpha, _), n = HEAVY["heavy at both ends"], 60
    share_lost = ShareLost(loss)
    population, rng = share_lost.population, np.random.default_rng(5)
    hard = population.truth.max(axis=1) < np.median(population.truth.max(axis=1))
    found = []
    for _ in range(DRAWS):
        one, options = orisk.RiskController(loss, alpha, relative=True), {}
        if unit == "clusters":
            cases = rng.integers(0, len(hard), n)
            sizes = 1 + rng.integers(0, 3, n)
            case, options["clusters"] = np.repeat(cases, sizes), np.repeat(np.arange(n), sizes)
        else:
            case = rng.integers(0, len(hard), n)
        y = (population.cumulative[case, :-1] < rng.random((len(case), 1))).sum(axis=1)
        if unit == "groups":
            options["groups"] = hard[case]
        if unit == "weights":
            options["sample_weight"] = np.where(hard[case], 3.0, 1.0)
        one.calibrate(population.proba[case], y, **options)
        if unit == "weights":
            of_case = np.where(hard, 3.0, 1.0)
            sets = one.predict_set(population.proba, sample_weight=of_case)
            joint = population.joint * of_case[:, None]
            shares_lost = [share_of(share_lost, joint, population.losses_of(loss, sets))]
        elif unit == "groups":
            shares_lost = [
                share_of(share_lost, population.joint * (hard == group)[:, None], share_lost.losses(tau))
                for group, tau in sorted(one.threshold_.items())
            ]
        else:
            shares_lost = [share_lost(one.threshold_)]
        found.append(shares_lost)
    means, errors = np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(DRAWS)
    assert (errors < 0.02 * float(alpha)).all()
    assert (means <= float(alpha) + 3 * errors).all()
    assert (means > 0.7 * float(alpha)).all()


def share_of(share_lost, joint, losses):
    return float((joint * losses).sum() / (joint * share_lost.most).sum())


def test_a_raised_weight_protects_its_class():
    """As a loss it makes sets smaller and misses more common; as a share it does what people mean."""
    rng = np.random.default_rng(0)
    shares_of_classes = np.array([0.02, 0.1, 0.3, 0.3, 0.28])
    y = rng.choice(5, 6_000, p=shares_of_classes)
    score = y + 0.9 * rng.normal(size=len(y))
    proba = np.exp(-((score[:, None] - np.arange(5)) ** 2)) * shares_of_classes
    proba /= proba.sum(axis=1, keepdims=True)
    rare, everyone = {}, {}
    for share, weight in itertools.product([False, True], [1, 5, 20]):
        one = orisk.RiskController(orisk.WeightedLoss([weight, 1, 1, 1, 1]), 0.1, relative=share)
        sets = one.calibrate(proba[:3_000], y[:3_000]).predict_set(proba[3_000:])
        covered = sets.contains(y[3_000:])
        rare[share, weight] = covered[y[3_000:] == 0].mean()
        everyone[share, weight] = covered.mean()
    assert rare[True, 1] < rare[True, 5] < rare[True, 20]
    assert min(everyone[True, weight] for weight in (1, 5, 20)) > 0.85
    assert everyone[False, 5] < 0.6
    assert everyone[False, 20] < 0.6


# Words and errors.


def test_the_guarantee_says_what_is_a_share_of_what():
    def words(loss, **options):
        with_rows = options.pop("with_rows", {})
        return " ".join(
            str(relative(loss, 0.1, **options).calibrate(PROBA, Y, **with_rows).guarantee()).split()
        )

    weighted = words("weighted")
    stake = relative("weighted", 0.1).calibrate(PROBA, Y).guarantee().stake
    assert weighted.startswith(
        "At most 10 % of the total weight is missed: the expected loss of a new row is at most that share of "
        "its expected weight, provided that the row is exchangeable with the calibration rows (n = 120 rows, "
        f"losses from 0 to B = 1, largest losses that sum to {stake:.6g})."
    )
    nearest = "is at most 10 % of the largest possible distance from its label, provided that the row is"
    assert nearest in words("divergence")
    assert "is at most 10 % of the largest loss that its label can have, pro" in words("table")
    by_group = relative("weighted", 0.1).calibrate(PROBA, Y, groups=GROUPS).guarantee()
    grouped = words("weighted", with_rows={"groups": GROUPS})
    assert grouped.startswith("In each of 3 groups, at most 10 % of the")
    stakes = [part.stake for part in by_group.parts]
    assert f"largest losses that sum to {min(stakes):.6g} to {max(stakes):.6g})" in grouped
    clusters = words("weighted", with_rows={"clusters": CLUSTERS})
    assert (
        "the expected mean loss of a new cluster is at most that share of its expected mean weight"
        in clusters
    )
    likely = words("weighted", delta=0.1)
    assert likely.startswith(
        "With probability at least 0.9 over the draw and the shuffle of the calibration rows, at most"
    )
    by_class = orisk.RiskController(alpha={0: 0.1, 1: "1/3", 2: 0.1, 3: 0.1, 4: 0.1}, relative=True)
    assert "10 % for 0, 100/3 % for 1, 10 % for 2" in " ".join(
        str(by_class.calibrate(PROBA, Y).guarantee()).split()
    )


@pytest.mark.filterwarnings("default")
def test_too_little_to_lose_is_a_warning_with_what_is_needed():
    message = re.escape(
        "alpha=0.01 as a share needs calibration rows that can lose about 99 together, such as 99 rows of "
        "classes that can lose B = 1; these 100 rows can lose 60 together, so every set is the full scale."
    )
    proba, y = PROBA[:100], np.repeat([0, 1], [20, 80])
    one = orisk.RiskController(orisk.WeightedLoss([2, 1, 1, 1, 1]), 0.01, relative=True)
    with pytest.warns(UserWarning, match=message):
        one.calibrate(proba, y)
    assert one.threshold_ == -math.inf
    assert one.guarantee().n_needed == 99
    needed = "At least 99 rows are needed if each of them can lose B = 1, more if some can lose less."
    assert needed in str(one.guarantee()).replace("\n", " ")


def test_exactly_enough_to_lose_is_certified():
    """alpha (sum g + B) = B."""
    y = np.repeat([0, 1], [50, 98])
    proba = np.eye(5)[y] * 0.8 + 0.04
    loss = orisk.WeightedLoss([2, 1, 1, 1, 1])
    assert orisk.RiskController(loss, 0.01, relative=True).calibrate(proba, y).guarantee().certified
    one_less = orisk.RiskController(loss, 0.01, relative=True).calibrate(proba[:-1], y[:-1])
    assert not one_less.guarantee().certified


@pytest.mark.parametrize("alpha", [0, 1, 1.5, -0.1], ids=repr)
def test_a_share_lies_between_0_and_1_whatever_the_largest_loss(alpha):
    message = (
        rf"alpha must lie strictly between 0 and 1 with relative=True; got {alpha}\. It is a share of what"
    )
    loss = orisk.DivergenceLoss(normalize=False)
    with pytest.raises(ValueError, match=message):
        orisk.RiskController(loss, alpha, relative=True).calibrate(PROBA, Y)
    one = orisk.RiskController(loss, 0.3, relative=True).calibrate(PROBA, Y)
    with pytest.raises(ValueError, match=message):
        one.predict_set(NEW, alpha=alpha)
    assert orisk.RiskController(loss, 1.5).calibrate(PROBA, Y).guarantee().certified


@pytest.mark.parametrize("value", [1, "yes", None], ids=repr)
def test_relative_is_true_or_false(value):
    with pytest.raises(ValueError, match=f"relative must be True or False; got {value!r}"):
        orisk.RiskController(relative=value)


def test_it_is_shown_and_can_not_change_after_the_calibration():
    one = relative(loss="weighted")
    assert "relative=True" in repr(one)
    assert "relative" in one._repr_html_()
    one.calibrate(PROBA, Y)
    assert "relative=True" in repr(one)
    with pytest.raises(AttributeError, match="relative can't change after the calibration"):
        one.relative = False


# Wherever the rows are.


@pytest.mark.parametrize(
    "options", [{}, {"condition_on": "label"}, {"delta": 0.2, "random_state": 1}], ids=repr
)
@pytest.mark.parametrize("of_rows", [(), ("groups",), ("clusters",)], ids=str)
def test_batches_give_the_same(options, of_rows):
    values = {"groups": GROUPS, "clusters": CLUSTERS}
    whole = relative("weighted", "1/4", **options).calibrate(
        PROBA, Y, **{name: values[name] for name in of_rows}
    )
    batches = [
        {"proba": PROBA[cut], "y": Y[cut], **{name: values[name][cut] for name in of_rows}}
        for cut in (slice(0, 7), slice(7, 8), slice(8, N))
    ]
    parts = relative("weighted", "1/4", **options).calibrate_batches(batches)
    assert parts.threshold_ == whole.threshold_
    assert parts.risk_curve_ == whole.risk_curve_
    assert parts.guarantee() == whole.guarantee()


@pytest.mark.parametrize("options", [{}, {"condition_on": "label"}], ids=repr)
@pytest.mark.parametrize("with_groups", [False, True])
def test_parts_give_the_same(options, with_groups, monkeypatch):
    search_few_steps(monkeypatch)
    groups = GROUPS if with_groups else None
    whole = relative("weighted", "1/4", **options).calibrate(PROBA, Y, groups=groups)
    parts, _ = calibrate_in_parts(
        relative("weighted", "1/4", **options), PROBA, Y, [11, 12, 90], groups=groups
    )
    assert parts.threshold_ == whole.threshold_
    assert [part.curve.stake for part in parts.calibration_.strata.parts] == [
        part.curve.stake for part in whole.calibration_.strata.parts
    ]
    ratios = {"class_ratios": [1, 2, 3, 2, 0.5]}
    if not options and not with_groups:
        one, _ = calibrate_in_parts(relative("weighted", "1/4"), PROBA, Y, [11, 12, 90], **ratios)
        assert one.threshold_ == relative("weighted", "1/4").calibrate(PROBA, Y, **ratios).threshold_


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (orisk.WeightedLoss([5, 1, 1, 1, 1]), "At most 12.5 % of the total weight is missed."),
        (orisk.DivergenceLoss(), "Sets miss by at most 12.5 % of the largest possible distance on average."),
        *(
            (loss, "Sets cost at most 12.5 % of the largest possible loss on average.")
            for loss in (orisk.DivergenceLoss(2), orisk.DivergenceLoss(0.5), orisk.DivergenceLoss(under=5))
        ),
    ],
    ids=["weight", "distance", "squared", "root", "one side times 5"],
)
def test_the_headline_is_about_the_share(loss, said):
    one = orisk.RiskController(loss, "1/8", relative=True).calibrate(PROBA, Y)
    assert headline(one, PROBA, Y) == said
