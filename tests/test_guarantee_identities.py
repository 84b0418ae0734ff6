"""Identities: options without an effect change nothing, and parts are calibrated as if they were alone."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from options import BOUNDS
from strategies import LOSSES, RULE_NAMES, exact_losses, labels_drawn
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk

pytestmark = [
    FEW,
    UNCHECKED,
    pytest.mark.filterwarnings("ignore:.*weights so large", "ignore:delta=.*keeps alpha"),
]
K = 5
SHARE = Fraction(13, 100)  # of the largest loss
SHARES = {"table": Fraction(4, 100), "squared": Fraction(6, 100)}  # single labels would lose less than that
STRICT = ["coverage", "weighted", "divergence", "squared", "root", "positions", "asymmetric"]
for_every_loss = pytest.mark.parametrize("loss", LOSSES)
for_every_rule = pytest.mark.parametrize("growth", RULE_NAMES)


def rows(n=120, seed=0, dtype=np.float64):
    """Half of the rows have coarse probabilities, so that levels tie within rows and between them."""
    rng = np.random.default_rng(seed)
    coarse = rng.multinomial(8, np.full(K, 1 / K), size=n // 2) / 8
    proba = np.concatenate([coarse, rng.dirichlet(np.ones(K), n - n // 2)])[rng.permutation(n)].astype(dtype)
    return proba, labels_drawn(proba, rng)


PROBA, Y = rows()
NEW, _ = rows(40, seed=1)
N, M = len(Y), len(NEW)
GROUPS, NEW_GROUPS = np.array(["b", "a", "c"])[np.arange(N) % 3], np.array(["a", "c", "b"])[np.arange(M) % 3]
CLUSTERS = np.sort(np.random.default_rng(2).integers(0, 50, N))
WEIGHTS, NEW_WEIGHTS = 0.5 + np.arange(N) % 7, 0.5 + np.arange(M) % 5


def controller(loss="coverage", growth="frontier", share=None, **options):
    share = share or SHARES.get(loss, SHARE)
    loss = LOSSES[loss](K)
    options = {"random_state": 0} | options
    alpha = share if options.get("relative") else share * loss.bound(K)
    return orisk.RiskController(loss, alpha, growth, **options)


def options_of(names, n=N, m=M):
    """What the constructor, ``calibrate`` and ``predict_set`` are given to use these options."""
    at_start = {
        "delta": {"delta": 0.2, "random_state": 1},
        "condition_on": {"condition_on": "label"},
        "randomize": {"randomize": True},
        "relative": {"relative": True},
        "pool_classes": {"pool_classes": [(3, 4)]},
        "exempt_classes": {"exempt_classes": [0]},
    }
    with_rows = {
        "groups": {"groups": GROUPS[:n]},
        "clusters": {"clusters": CLUSTERS[:n]},
        "sample_weight": {"sample_weight": WEIGHTS[:n]},
        "class_ratios": {"class_ratios": [1, 2, 3, 2, 0.5]},
    }
    with_new = {
        "groups": {"groups": NEW_GROUPS[:m]},
        "sample_weight": {"sample_weight": NEW_WEIGHTS[:m]},
        "randomize": {"random_state": 5},
    }
    found = []
    for given in (at_start, with_rows, with_new):
        found.append({key: value for name in names for key, value in given.get(name, {}).items()})
    return found


COMBINATIONS = [
    (),
    ("delta",),
    ("condition_on",),
    ("groups",),
    ("clusters",),
    ("sample_weight",),
    ("class_ratios",),
    ("randomize",),
    ("delta", "groups"),
    ("delta", "clusters"),
    ("delta", "condition_on"),
    ("condition_on", "groups"),
    ("condition_on", "clusters"),
    ("groups", "clusters"),
    ("groups", "sample_weight"),
    ("groups", "randomize"),
    ("clusters", "randomize"),
    ("delta", "groups", "clusters", "condition_on"),
    ("groups", "clusters", "randomize"),
]
COMBINATIONS += [(*names, "relative") for names in COMBINATIONS]
for_every_combination = pytest.mark.parametrize(
    "names", COMBINATIONS, ids=lambda names: " ".join(names) or "none"
)


def calibrated(names, loss="divergence", growth="frontier", share=None):
    at_start, with_rows, with_new = options_of(names)
    return controller(loss, growth, share, **at_start).calibrate(PROBA, Y, **with_rows), with_new


def same(one, other):
    """Thresholds, curves and sets."""
    assert one.threshold_ == other.threshold_
    assert one.risk_curve_ == other.risk_curve_
    assert one.predict_set(NEW) == other.predict_set(NEW)


@for_every_loss
@for_every_rule
@pytest.mark.parametrize("options", [{}, {"delta": 0.1}, {"randomize": True}], ids=repr)
def test_one_group_is_no_groups(loss, growth, options):
    one = controller(loss, growth, **options).calibrate(PROBA, Y, groups=["all"] * N)
    none = controller(loss, growth, **options).calibrate(PROBA, Y)
    assert one.threshold_ == {"all": none.threshold_}
    assert one.risk_curve_ == {"all": none.risk_curve_}
    seed = {"random_state": 3} if options.get("randomize") else {}
    assert one.predict_set(NEW, groups=["all"] * M, **seed) == none.predict_set(NEW, **seed)


@for_every_loss
@for_every_rule
@pytest.mark.parametrize("options", [{}, {"delta": 0.1, "confidence_bound": "betting"}], ids=repr)
def test_clusters_of_one_row_are_no_clusters(loss, growth, options):
    none = controller(loss, growth, **options).calibrate(PROBA, Y)
    same(controller(loss, growth, **options).calibrate(PROBA, Y, clusters=range(N)[::-1]), none)


def test_clusters_of_one_row_are_no_clusters_given_each_class():
    none = controller(condition_on="label").calibrate(PROBA, Y)
    same(controller(condition_on="label").calibrate(PROBA, Y, clusters=np.arange(N)), none)


@for_every_loss
@for_every_rule
def test_constant_weights_are_no_weights(loss, growth):
    none = controller(loss, growth).calibrate(PROBA, Y)
    constant = controller(loss, growth).calibrate(PROBA, Y, sample_weight=np.full(N, 3.7))
    assert constant.threshold_ == none.threshold_
    assert constant.predict_set(NEW, sample_weight=np.full(M, 3.7)) == none.predict_set(NEW)


@for_every_loss
@pytest.mark.parametrize("factor", [3.7, 1e-300, 3.7e200, 2.0**-1060, 2.0**1010], ids=repr)
def test_a_common_factor_of_all_weights_changes_nothing(loss, factor):
    """Powers of two, so that the product has no rounding of its own."""
    rng = np.random.default_rng(4)
    weight, new_weight = 2.0 ** rng.integers(-2, 3, N), 2.0 ** rng.integers(-2, 3, M)
    plain = controller(loss).calibrate(PROBA, Y, sample_weight=weight)
    scaled = controller(loss).calibrate(PROBA, Y, sample_weight=weight * factor)
    assert scaled.threshold_ == plain.threshold_
    sets = plain.predict_set(NEW, sample_weight=new_weight)
    assert scaled.predict_set(NEW, sample_weight=new_weight * factor) == sets
    assert len({*sets.size}) > 1


@for_every_loss
@for_every_rule
def test_whole_weights_are_repeated_rows(loss, growth):
    """``sum w_i L_i <= (sum w_i + 1) alpha - B`` says the same of both."""
    times = np.random.default_rng(5).integers(0, 4, N)
    weighted = controller(loss, growth).calibrate(PROBA, Y, sample_weight=times)
    repeated = controller(loss, growth, check=False)
    repeated.calibrate(np.repeat(PROBA, times, axis=0), np.repeat(Y, times))
    assert weighted.predict_set(NEW, sample_weight=np.ones(M)) == repeated.predict_set(NEW)
    assert math.isfinite(repeated.threshold_)


def test_a_new_row_of_weight_w_is_a_threshold_of_its_own():
    """The exact inequality, with rationals, for each new row."""
    one = controller("divergence").calibrate(PROBA, Y, sample_weight=WEIGHTS)
    sets = one.predict_set(NEW, sample_weight=NEW_WEIGHTS)
    levels = one.growth.levels(PROBA, one.loss)
    new_levels = one.growth.levels(NEW, one.loss)

    def total(tau):
        inside = levels >= tau
        lower, upper = inside.argmax(axis=1), K - 1 - inside[:, ::-1].argmax(axis=1)
        losses = exact_losses(Y, lower, upper, one.loss, K)
        return sum(Fraction(w) * one_loss for w, one_loss in zip(WEIGHTS.tolist(), losses, strict=True))

    candidates = [(tau, total(tau)) for tau in sorted({*levels.ravel().tolist()})]
    everything = sum(map(Fraction, WEIGHTS.tolist()))
    for row, w in enumerate(map(Fraction, NEW_WEIGHTS.tolist())):
        budget = (everything + w) * SHARE - w
        tau = max((tau for tau, spent in candidates if spent <= budget), default=-math.inf)
        assert sets.mask()[row].tolist() == (new_levels[row] >= tau).tolist()


@pytest.mark.parametrize("loss", STRICT)
@for_every_rule
def test_equal_class_ratios_are_none(loss, growth):
    none = controller(loss, growth).calibrate(PROBA, Y)
    equal = controller(loss, growth).calibrate(PROBA, Y, class_ratios=[0.3] * K)
    assert equal.threshold_ == none.threshold_
    assert equal.predict_set(NEW) == none.predict_set(NEW)


@for_every_loss
def test_equal_class_ratios_lose_no_more_and_hold_no_more_labels(loss):
    """Where labels at the end of a set cost nothing, they are left out."""
    none = controller(loss).calibrate(PROBA, Y).predict_set(NEW)
    equal = controller(loss).calibrate(PROBA, Y, class_ratios=dict.fromkeys(range(K), "1/3")).predict_set(NEW)
    assert (equal.mask() <= none.mask()).all()
    for y in range(K):
        assert losses_of(loss, equal, np.full(M, y)) == losses_of(loss, none, np.full(M, y))


def losses_of(loss, sets, y):
    return exact_losses(y, sets.lower_index, sets.upper_index, LOSSES[loss](K), K)


def test_class_ratios_solve_their_inequality():
    weights = [Fraction(w) for w in (4, 2, 1, 0, 9)]
    proba = np.random.default_rng(6).dirichlet(np.ones(K), 70)
    y = np.arange(70) % K
    one = controller("weighted", share=Fraction(1, 5)).calibrate(proba, y, class_ratios=weights)
    levels, costs = one.growth.levels(proba, one.loss), one.loss.exact_costs(K)
    own_levels = levels[np.arange(70), y]
    everything = sum(weights[label] for label in y)

    def total(tau):
        return sum(weights[label] * costs[label][(label + 1) % K] for label in y[own_levels < tau])

    totals = {tau: total(tau) for tau in sorted({*own_levels})}
    budgets = [(everything + w) * one.alpha - w * one.loss.bound(K) for w in weights]
    thresholds = [max(tau for tau, spent in totals.items() if spent <= budget) for budget in budgets]
    assert len({*thresholds}) > 2
    sets = one.predict_set(NEW)
    for row, level in enumerate(one.growth.levels(NEW, one.loss)):
        passing = [j for j in range(K) if level[j] >= thresholds[j]]
        assert sets.mask()[row].tolist() == [passing[0] <= j <= passing[-1] for j in range(K)]


@for_every_loss
@pytest.mark.parametrize(
    "options",
    [{}, {"delta": 0.1, "confidence_bound": "hoeffding_bentkus"}, {"condition_on": "label"}],
    ids=repr,
)
def test_repeating_every_row_of_a_cluster_changes_nothing(loss, options):
    times = 1 + CLUSTERS % 3
    once = controller(loss, **options).calibrate(PROBA, Y, clusters=CLUSTERS)
    again = controller(loss, **options).calibrate(
        *(np.repeat(part, times, axis=0) for part in (PROBA, Y)), clusters=np.repeat(CLUSTERS, times)
    )
    assert again.threshold_ == once.threshold_
    assert again.predict_set(NEW) == once.predict_set(NEW)


@for_every_loss
@for_every_rule
def test_a_cluster_counts_by_its_mean_loss(loss, growth):
    one = controller(loss, growth).calibrate(PROBA, Y, clusters=CLUSTERS)
    levels = one.growth.levels(PROBA, one.loss)
    sizes = np.bincount(CLUSTERS)[CLUSTERS]
    n_clusters = len({*CLUSTERS.tolist()})
    assert one.risk_curve_.n_rows == n_clusters

    def total(tau):
        inside = levels >= tau
        lower, upper = inside.argmax(axis=1), K - 1 - inside[:, ::-1].argmax(axis=1)
        losses = exact_losses(Y, lower, upper, one.loss, K)
        return sum(loss / int(size) for loss, size in zip(losses, sizes, strict=True))

    bound = one.loss.bound(K)
    candidates = sorted({*levels.ravel().tolist()})
    safe = [tau for tau in candidates if total(tau) + bound <= (n_clusters + 1) * one.alpha]
    assert one.threshold_ == max(safe, default=-math.inf)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("loss", ["coverage", "weighted", "divergence", "table"])
def test_a_smaller_delta_never_gives_smaller_sets(bound, loss):
    if bound == "binomial" and loss != "coverage":
        bound = "auto"
    masks = [
        controller(loss, delta=delta, confidence_bound=bound).calibrate(PROBA, Y).predict_set(NEW).mask()
        for delta in (0.001, 0.01, 0.1, 0.3, 0.6, 0.9)
    ]
    assert all((larger >= smaller).all() for larger, smaller in pairwise(masks))
    assert masks[0].sum() > masks[-1].sum() or bound == "dkw"  # which needs more rows than these


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_bound_that_is_asked_for_is_used(bound):
    asked = controller(delta=0.2, confidence_bound=bound).calibrate(PROBA, Y)
    assert asked.guarantee().bound_name == bound
    alphas = [Fraction(i, 50) for i in range(3, 20)]
    others = {b: controller(delta=0.2, confidence_bound=b).calibrate(PROBA, Y) for b in BOUNDS}
    found = {b: tuple(map(other.threshold_at, alphas)) for b, other in others.items()}
    assert tuple(map(asked.threshold_at, alphas)) == found[bound]
    assert len({*found.values()}) >= 4


@for_every_loss
def test_the_bound_by_itself_is_the_one_for_the_loss(loss):
    auto = controller(loss, delta=0.2).calibrate(PROBA, Y)
    two_valued = len({cost for row in auto.loss.exact_costs(K) for cost in row}) == 2
    assert auto.guarantee().bound_name == ("binomial" if two_valued else "betting")
    asked = controller(loss, delta=0.2, confidence_bound=auto.guarantee().bound_name).calibrate(PROBA, Y)
    same(auto, asked)


def test_binomial_certifies_as_many_misses_as_it_says():
    """The most ``c`` with ``P(Binom(n, alpha) <= c) <= delta``."""
    alpha, delta = Fraction(1, 5), Fraction(1, 8)
    one = controller(share=alpha, delta=delta).calibrate(PROBA, Y)
    tail, c = Fraction(0), -1
    while tail <= delta:
        c += 1
        tail += math.comb(N, c) * alpha**c * (1 - alpha) ** (N - c)
    assert one.threshold_ == one.risk_curve_.first_level_above(Fraction(c - 1))


@for_every_combination
@pytest.mark.parametrize("loss", ["coverage", "weighted", "divergence", "table"])
def test_saved_and_loaded_is_the_same(names, loss, tmp_path):
    one, with_new = calibrated(names, loss)
    one.save(tmp_path / "saved.json")
    other = orisk.RiskController.load(tmp_path / "saved.json")
    assert other.threshold_ == one.threshold_
    assert other.thresholds_ == one.thresholds_
    assert other.risk_curve_ == one.risk_curve_
    assert other.guarantee() == one.guarantee()
    assert str(other.guarantee()) == str(one.guarantee())
    assert repr(other) == repr(one)
    for alpha in (None, one.alpha / 2, one.alpha * 2):
        assert other.predict_set(NEW, alpha=alpha, **with_new) == one.predict_set(
            NEW, alpha=alpha, **with_new
        )
        assert other.guarantee(alpha) == one.guarantee(alpha)
    other.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "saved.json").read_bytes()


@pytest.mark.parametrize("bound", ["betting", "hoeffding_bentkus"])
def test_a_bound_that_was_asked_for_is_saved(bound, tmp_path):
    one = controller("divergence", delta="1/7", confidence_bound=bound).calibrate(PROBA, Y)
    one.save(tmp_path / "saved.json")
    other = orisk.RiskController.load(tmp_path / "saved.json")
    assert other.guarantee() == one.guarantee()
    assert (other.confidence_bound, other.delta) == (bound, Fraction(1, 7))


@pytest.mark.parametrize("names", [np.array([3, 1, 2]), [True, False, "x"], [0.5, -1, "1"]], ids=repr)
def test_group_names_keep_their_kind_in_a_file(names, tmp_path):
    groups = [names[i % 3] for i in range(N)]
    one = controller().calibrate(PROBA, Y, groups=groups)
    one.save(tmp_path / "saved.json")
    other = orisk.RiskController.load(tmp_path / "saved.json")
    assert [*map(repr, other.threshold_)] == [*map(repr, one.threshold_)]
    assert other.predict_set(PROBA, groups=groups) == one.predict_set(PROBA, groups=groups)


def test_an_alpha_for_each_class_is_saved(tmp_path):
    alpha = {"e": 0.1, "d": "1/3", "c": Fraction(1, 7), "b": 0.25, "a": 0.3}
    one = orisk.RiskController("coverage", alpha, classes=list("edcba")).calibrate(
        PROBA, np.array([*"edcba"])[Y]
    )
    one.save(tmp_path / "saved.json")
    other = orisk.RiskController.load(tmp_path / "saved.json")
    assert other.alpha == one.alpha
    assert other.guarantee() == one.guarantee()
    assert other.predict_set(NEW) == one.predict_set(NEW)


def test_absurd_weights_are_saved_exactly(tmp_path):
    one = controller().calibrate(PROBA, Y, sample_weight=np.where(np.arange(N) % 2, 5e-324, 1e300))
    one.save(tmp_path / "saved.json")
    other = orisk.RiskController.load(tmp_path / "saved.json")
    assert other.risk_curve_ == one.risk_curve_
    assert (
        other.risk_curve_.weight == one.risk_curve_.weight == (N // 2) * (Fraction(5e-324) + Fraction(1e300))
    )


def thresholds_by_ratio(one, ratios):
    """The threshold of each class, from the exact inequality with its ratio as the weight of a new row."""
    curve = one.risk_curve_
    budgets = [
        (curve.weight + Fraction(ratio)) * one.alpha - Fraction(ratio) * curve.bound for ratio in ratios
    ]
    return [curve.first_level_above(budget) for budget in budgets]


@for_every_loss
@for_every_rule
@pytest.mark.parametrize("names", [("condition_on",), ("delta", "condition_on"), ("class_ratios",)], ids=repr)
def test_no_label_loses_more_than_at_its_own_threshold(loss, growth, names):
    one, _ = calibrated(names, loss, growth)
    own = one.threshold_.values() if one.condition_on else thresholds_by_ratio(one, [1, 2, 3, 2, 0.5])
    sets = one.predict_set(PROBA)
    levels = one.growth.levels(PROBA, one.loss)
    for y, tau in enumerate(own):
        inside = levels >= tau
        lower, upper = inside.argmax(axis=1), K - 1 - inside[:, ::-1].argmax(axis=1)
        truth = np.full(N, y)
        allowed = exact_losses(truth, lower, upper, one.loss, K)
        found = losses_of(loss, sets, truth)
        assert all(loss <= most for loss, most in zip(found, allowed, strict=True))


@pytest.mark.parametrize("loss", ["coverage", "weighted"])
@for_every_rule
def test_given_each_class_sets_are_the_hull_of_the_labels_that_pass(loss, growth):
    one = controller(loss, growth, condition_on="label").calibrate(PROBA, Y)
    levels = one.growth.levels(NEW, one.loss)
    for row, (lower, upper) in enumerate(zip(*ends(one.predict_set(NEW)), strict=True)):
        passing = [j for j in range(K) if levels[row, j] >= one.threshold_[j]]
        assert (lower, upper) == (min(passing), max(passing))


def ends(sets):
    return sets.lower_index.tolist(), sets.upper_index.tolist()


@for_every_loss
@for_every_rule
def test_each_class_has_the_threshold_of_its_own_rows(loss, growth):
    """With its own largest loss; a class that costs nothing has nothing to certify."""
    one = controller(loss, growth, condition_on="label").calibrate(PROBA, Y)
    costs = one.loss.exact_costs(K)
    levels = one.growth.levels(PROBA, one.loss)
    for y in range(K):
        mine, bound = levels[y == Y], max(costs[y])
        assert one.risk_curve_[y].bound == bound

        def total(tau, mine=mine, y=y):
            inside = mine >= tau
            lower, upper = inside.argmax(axis=1), K - 1 - inside[:, ::-1].argmax(axis=1)
            return sum(exact_losses([y] * len(mine), lower, upper, one.loss, K))

        candidates = sorted({*mine.ravel().tolist(), math.inf})
        safe = [tau for tau in candidates if total(tau) + bound <= (len(mine) + 1) * one.alpha]
        assert one.threshold_[y] == max(safe, default=-math.inf)


def test_an_alpha_for_each_class_is_that_of_its_class():
    alpha = {0: 0.1, 1: 0.3, 2: 0.5, 3: 0.2, 4: 0.4}
    one = orisk.RiskController("coverage", alpha).calibrate(PROBA, Y)
    assert one.condition_on == "label"
    for label, risk in alpha.items():
        alone = orisk.RiskController("coverage", risk, condition_on="label").calibrate(PROBA, Y)
        assert one.threshold_[label] == alone.threshold_[label]
    equal = orisk.RiskController("coverage", 0.2, condition_on="label").calibrate(PROBA, Y)
    assert equal.predict_set(NEW, alpha=alpha) == one.predict_set(NEW)
    assert equal.threshold_at(alpha) == one.threshold_
    assert [part.alpha for part in one.guarantee().parts] == [Fraction(str(risk)) for risk in alpha.values()]


def test_the_order_of_a_mapping_does_not_matter():
    alpha = {"c": 0.3, "a": 0.1, "b": 0.2}
    proba, y = PROBA[:, :3] + 1e-3, np.array([*"abc"])[Y % 3]
    proba /= proba.sum(axis=1, keepdims=True)
    one = orisk.RiskController("coverage", alpha, classes=["a", "b", "c"]).calibrate(proba, y)
    assert [float(part.alpha) for part in one.guarantee().parts] == [0.1, 0.2, 0.3]
    by_name = orisk.RiskController(alpha=0.2, classes=["a", "b", "c"])
    weighted = by_name.calibrate(proba, y, class_ratios={"c": 3, "a": 1, "b": 2})
    assert weighted.calibration_.class_ratios == (1, 2, 3)


@pytest.mark.parametrize("names", [names for names in COMBINATIONS if "groups" in names], ids=" ".join)
@pytest.mark.parametrize("loss", ["coverage", "divergence", "table"])
def test_each_group_is_calibrated_as_if_alone(names, loss):
    one, with_new = calibrated(names, loss)
    at_start, with_rows, _ = options_of(names)
    for group in "bac":
        mine, new = group == GROUPS, group == NEW_GROUPS
        alone = controller(loss, **at_start).calibrate(
            PROBA[mine], Y[mine], **{key: value[mine] for key, value in with_rows.items() if key != "groups"}
        )
        if "condition_on" in names:
            assert {label: one.threshold_[group, label] for label in range(K)} == alone.threshold_
        else:
            assert one.threshold_[group] == alone.threshold_
            assert one.risk_curve_[group] == alone.risk_curve_
        if "randomize" not in names:
            told = {key: value[new] for key, value in with_new.items() if key != "groups"}
            together = one.predict_set(NEW, **with_new).mask()[new]
            assert np.array_equal(alone.predict_set(NEW[new], **told).mask(), together)


@for_every_combination
@pytest.mark.parametrize("loss", ["weighted", "divergence"])
def test_predictions_in_batches_are_those_at_once(names, loss):
    one, with_new = calibrated(names, loss)
    at_once = one.predict_set(NEW, **with_new)
    if "random_state" in with_new:
        assert one.predict_set(NEW, **with_new) == at_once
        with_new["random_state"] = np.random.default_rng(5)
    parts = []
    for batch in (slice(0, 1), slice(1, 25), slice(25, M)):
        told = {key: value if key == "random_state" else value[batch] for key, value in with_new.items()}
        parts.append(one.predict_set(NEW[batch], **told).mask())
    assert np.array_equal(np.concatenate(parts), at_once.mask())


@for_every_combination
def test_many_predictions_are_those_of_few_rows_at_a_time(names):
    """More rows than are predicted in one go, with point labels that are given."""
    at_start, with_rows, with_new = options_of(names)
    one = controller("divergence", orisk.FrontierGrowth("given"), **at_start)
    one.calibrate(PROBA, Y, point_labels=PROBA.argmax(axis=1), **with_rows)
    n = 2**16 + 1_000
    new = np.resize(NEW, (n, K))
    told = {key: np.resize(value, n) for key, value in with_new.items() if key != "random_state"}
    told["point_labels"] = np.resize(np.arange(K), n)
    at_once = one.predict_set(new, **told, **{key: 5 for key in with_new if key == "random_state"})
    coins = {key: np.random.default_rng(5) for key in with_new if key == "random_state"}
    parts = [
        one.predict_set(new[rows], **{key: value[rows] for key, value in told.items()}, **coins)
        for rows in (slice(0, 30_000), slice(30_000, 60_000), slice(60_000, n))
    ]
    for end in ("lower", "upper"):
        assert np.array_equal(np.concatenate([getattr(part, end) for part in parts]), getattr(at_once, end))


@for_every_combination
def test_one_calibration_answers_every_alpha(names):
    one, with_new = calibrated(names)
    for share in (Fraction(1, 20), Fraction(3, 10)):
        other, _ = calibrated(names, share=share)
        assert one.threshold_at(other.alpha) == other.threshold_
        assert one.predict_set(NEW, alpha=other.alpha, **with_new) == other.predict_set(NEW, **with_new)
        assert one.guarantee(other.alpha) == other.guarantee()


class Coins(np.random.Generator):
    """The same coin for every row."""

    def __init__(self, coin):
        super().__init__(np.random.PCG64())
        self.coin = coin

    def random(self, n):
        return np.full(n, float(self.coin))


def share_to_spend(curve, tau, alpha):
    """The share of rows without the labels at the threshold at which the whole budget is spent."""
    spent, beyond = curve.total_loss(tau), curve.total_loss(math.nextafter(tau, math.inf))
    return ((curve.n_rows + 1) * alpha - curve.bound - spent) / (beyond - spent)


@for_every_loss
@for_every_rule
def test_a_coin_with_nothing_to_spend_changes_nothing(loss, growth):
    """At an alpha that the tied losses spend to the last."""
    none = controller(loss, growth).calibrate(PROBA, Y)
    curve = none.risk_curve_
    alpha = (curve.total_loss(none.threshold_) + curve.bound) / (N + 1)
    coin = controller(loss, growth, randomize=True).calibrate(PROBA, Y)
    assert coin.threshold_ == none.threshold_
    assert coin.predict_set(NEW, alpha=alpha, random_state=Coins(0)) == none.predict_set(NEW, alpha=alpha)


@for_every_loss
@for_every_rule
def test_the_coin_spends_exactly_what_is_left(loss, growth):
    """Labels at the threshold are left out by the coins below the share, up to the last bit of a coin."""
    one = controller(loss, growth, randomize=True).calibrate(PROBA, Y)
    share = share_to_spend(one.risk_curve_, one.threshold_, one.alpha)
    assert 0 <= share < 1
    first_inside = math.floor(share * 2**53) / 2**53
    levels = one.growth.levels(PROBA, one.loss)
    masks = {
        coin: one.predict_set(PROBA, random_state=Coins(coin)).mask()
        for coin in (math.nextafter(first_inside, -1), first_inside)
    }
    below, at = masks.values()
    assert np.array_equal(below, levels > one.threshold_)
    assert np.array_equal(at, levels >= one.threshold_)


def test_the_coin_decides_for_its_share_of_the_rows():
    """All rows tie at the threshold: those whose coin falls below the share leave the label out."""
    proba = np.tile([0.6, 0.4], (99, 1))
    y = np.repeat([0, 1], [60, 39])
    one = orisk.RiskController(alpha=0.2, randomize=True).calibrate(proba, y)
    share = Fraction(19, 39)  # of 39 misses at one level, 20 - 1 may be paid
    new = np.tile([0.6, 0.4], (500, 1))
    sets = one.predict_set(new, random_state=11)
    assert np.array_equal(sets.size == 1, np.random.default_rng(11).random(500) < float(share))
    assert one.predict_set(new, random_state=np.random.default_rng(11)) == sets
    assert one.predict_set(new, random_state=12) != sets
    assert 0 < np.count_nonzero(sets.size == 1) < 500


def test_each_group_has_its_own_coin():
    one = controller(randomize=True).calibrate(PROBA, Y, groups=GROUPS)
    levels, coins = one.growth.levels(NEW), np.random.default_rng(5).random(M)
    shares = {
        group: share_to_spend(curve, one.threshold_[group], one.alpha)
        for group, curve in one.risk_curve_.items()
    }
    assert len({*shares.values()}) == 3
    found = one.predict_set(NEW, groups=NEW_GROUPS, random_state=5).mask()
    for row, group in enumerate(NEW_GROUPS.tolist()):
        tau = one.threshold_[group]
        beyond = coins[row] < float(shares[group])
        assert found[row].tolist() == [level > tau if beyond else level >= tau for level in levels[row]]


@pytest.mark.parametrize("alpha", [0.05, 0.9])
def test_there_is_no_coin_where_sets_are_full_or_single(alpha):
    proba, y = PROBA[:10], PROBA[:10].argmax(axis=1)
    one = orisk.RiskController(alpha=alpha, randomize=True, check=False).calibrate(proba, y)
    assert math.isinf(one.threshold_)
    plain = orisk.RiskController(alpha=alpha, check=False).calibrate(proba, y)
    assert one.predict_set(NEW, random_state=Coins(0)) == plain.predict_set(NEW)


@for_every_combination
def test_natural_units_are_a_matter_of_scale(names):
    """The largest squared distance of five labels is 16, a power of two: levels scale without rounding.

    A share of what could be lost has no units.
    """
    at_start, with_rows, with_new = options_of(names)
    found = []
    share = Fraction(4 if {"delta", "condition_on", "relative"} <= {*names} else 1, 10)
    for normalize, alpha in ((True, share), (False, share if "relative" in names else 16 * share)):
        loss = orisk.DivergenceLoss(power=2, normalize=normalize)
        one = orisk.RiskController(loss, alpha, **at_start).calibrate(PROBA, Y, **with_rows)
        found.append((one.thresholds_, one.predict_set(NEW, **with_new)))
    (relative, sets), (natural, same_sets) = found
    assert [16 * tau for tau in relative] == natural
    assert sets == same_sets
    assert any(math.isfinite(tau) for tau in natural)


@for_every_combination
def test_single_precision_is_what_it_is_in_double(names):
    at_start, with_rows, with_new = options_of(names)
    narrow, new = PROBA.astype(np.float32), NEW.astype(np.float32)
    one = controller("divergence", **at_start).calibrate(narrow, Y, **with_rows)
    wide = controller("divergence", **at_start).calibrate(narrow.astype(float), Y, **with_rows)
    assert one.thresholds_ == wide.thresholds_
    assert one.predict_set(new, **with_new) == wide.predict_set(new.astype(float), **with_new)


@for_every_combination
def test_given_point_labels_are_those_the_rule_would_find(names):
    at_start, with_rows, with_new = options_of(names)
    rule = orisk.FrontierGrowth("bayes")
    found = controller("asymmetric", rule, **at_start).calibrate(PROBA, Y, **with_rows)
    points, new_points = (rule.levels(rows, found.loss).argmax(axis=1) for rows in (PROBA, NEW))
    given = controller("asymmetric", orisk.FrontierGrowth("given"), **at_start)
    given.calibrate(PROBA, Y, point_labels=points, **with_rows)
    assert given.threshold_ == found.threshold_
    sets = given.predict_set(NEW, point_labels=new_points, **with_new)
    assert sets == found.predict_set(NEW, **with_new)


@for_every_combination
def test_a_device_free_tensor_and_a_frame_are_arrays(names):
    import pandas as pd
    import torch

    at_start, with_rows, with_new = options_of(names)
    one, _ = calibrated(names)
    framed = {key: value if key == "class_ratios" else pd.Series(value) for key, value in with_rows.items()}
    other = controller("divergence", **at_start).calibrate(torch.tensor(PROBA), pd.Series(Y), **framed)
    assert other.thresholds_ == one.thresholds_
    told = {key: value if key == "random_state" else pd.Series(value) for key, value in with_new.items()}
    assert other.predict_set(pd.DataFrame(NEW), **told) == one.predict_set(NEW, **with_new)


@for_every_combination
def test_rows_in_batches_are_all_rows(names):
    """Whatever comes with them."""
    one, with_new = calibrated(names)
    at_start, with_rows, _ = options_of(names)
    class_ratios = with_rows.pop("class_ratios", None)
    batches = [
        {"proba": PROBA[rows], "y": Y[rows]} | {key: value[rows] for key, value in with_rows.items()}
        for rows in (slice(0, 20), slice(20, 21), slice(21, N))
    ]
    shell = controller("divergence", **at_start).calibrate_batches(batches, class_ratios=class_ratios)
    assert shell.threshold_ == one.threshold_
    assert shell.risk_curve_ == one.risk_curve_
    assert shell.data_blake3_ == one.data_blake3_
    assert shell.predict_set(NEW, **with_new) == one.predict_set(NEW, **with_new)


def test_a_group_with_clusters_and_bets_is_calibrated_as_if_alone():
    """However the rows of groups and clusters lie among each other."""
    rng = np.random.default_rng(8)
    proba = rng.dirichlet(np.ones(4), 600)
    y = labels_drawn(proba, rng)
    cluster, group = rng.permutation(np.arange(600) // 2), rng.integers(0, 2, 600)
    options = {"loss": "divergence", "alpha": 0.15, "delta": 0.1, "random_state": 0}
    together = orisk.RiskController(**options).calibrate(proba, y, groups=group, clusters=cluster)
    for name in (0, 1):
        mine = group == name
        alone = orisk.RiskController(**options).calibrate(proba[mine], y[mine], clusters=cluster[mine])
        assert together.threshold_[name] == alone.threshold_
