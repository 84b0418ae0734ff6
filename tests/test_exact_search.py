"""The exact search among rows in parts: it finds the thresholds of all rows together, bit for bit."""

import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import cycle

import numpy as np
import pytest
from fingerprints import fingerprint
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_in_parts import WatchedParts, calibrate_in_parts, cut_up, finished
from sizes import search_few_steps
from strategies import GROWTH_RULES, LOSSES, PROBABILITIES, labels_drawn
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import PaperGrowth, RiskController, WeightedLoss
from ordinalrisk.calibration.loss_steps import LossSteps
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.curves import bracketing, part_steps
from ordinalrisk.curves.bracketing import windows_around
from ordinalrisk.curves.part_steps import Draw, LevelSums, PartSteps, Question, Sample, Sizes
from ordinalrisk.curves.steps import Steps
from ordinalrisk.curves.windows import NotKnownError, Window
from ordinalrisk.inputs.batch import Batch, merge_all
from ordinalrisk.losses.cost_table import CostTable

SHARES = [Fraction(1, 50), Fraction(1, 8), Fraction(2, 5)]  # of the largest loss, as alphas
pytestmark = [FEW, UNCHECKED]


@st.composite
def rows_to_cut(draw, max_rows=300, probabilities=tuple(PROBABILITIES)):
    """Probabilities, labels and where they are cut: anywhere, twice in a place too."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, K = draw(st.integers(30, max_rows)), draw(st.integers(2, 6))
    proba = draw(st.sampled_from(probabilities))(rng, n, K)
    likely = labels_drawn(proba, rng)
    y = likely if draw(st.booleans()) else rng.integers(0, K, n)
    cuts = draw(st.lists(st.integers(0, n), max_size=8))
    return proba, y, cuts


def small_sizes():
    """Constants of the search, from such that ask for all to such that make many rounds."""
    return st.fixed_dictionaries(
        {
            "KEPT_WHOLE": st.sampled_from([0, 20]),
            "SAMPLED": st.sampled_from([3, 40]),
            "SAMPLED_OF_STRATUM": st.sampled_from([1, 8]),
            "MOST_SENT": st.sampled_from([2, 15, 10_000]),
        }
    )


def alphas_for(loss, K):
    bound = RiskController(loss).loss.bound(K)
    return [share * bound for share in SHARES]


def curves_of(controller):
    return [part.curve for part in controller.calibration_.strata.parts]


def assert_slices(curve, whole):
    """The windows are what the whole curve has there."""
    assert (curve.unit, curve.n_rows, curve.bound, curve.weight) == (
        whole.unit,
        whole.n_rows,
        whole.bound,
        whole.weight,
    )
    assert curve.total_loss(math.inf) == whole.total_loss(math.inf)
    assert curve.most_tied <= whole.most_tied
    for below, levels, totals in curve.windows:
        first = int(np.searchsorted(whole.levels, levels[0]))
        mine = slice(first, first + len(levels))
        assert levels.tobytes() == whole.levels[mine].tobytes()
        assert totals.tolist() == whole.totals[mine].tolist()
        assert below == (whole.totals[first - 1] if first else 0)
    for one, after in zip(curve.windows, curve.windows[1:], strict=False):
        assert one.totals[-1] < after.below


def assert_same_thresholds(parted, whole, alphas):
    for alpha in alphas:
        found, expected = (each.spec.thresholds(each.calibration_, alpha) for each in (parted, whole))
        assert found.values == expected.values
        assert (found.by_class is None) == (expected.by_class is None)
        if found.by_class is not None:
            assert found.by_class.tobytes() == expected.by_class.tobytes()
    for curve, all_of_it in zip(curves_of(parted), curves_of(whole), strict=True):
        assert_slices(curve, all_of_it)


# the law


@pytest.mark.parametrize("growth", GROWTH_RULES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=2)
@given(
    rows=rows_to_cut(),
    others=st.lists(st.integers(0, 30), max_size=4),
    sizes=small_sizes(),
    at_once=st.sampled_from([2, 3, None]),
)
def test_rows_in_parts_have_the_thresholds_of_all_rows(loss, growth, rows, others, sizes, at_once):
    proba, y, cuts = rows
    loss = LOSSES[loss](proba.shape[1])
    first, *more = alphas = alphas_for(loss, proba.shape[1])
    whole = RiskController(loss, first, growth).calibrate(proba, y)
    with pytest.MonkeyPatch.context() as patch:
        search_few_steps(patch, **sizes)
        parted, _ = calibrate_in_parts(
            RiskController(loss, first, growth), proba, y, cuts, more_alphas=more, at_once=at_once
        )
        same, _ = calibrate_in_parts(
            RiskController(loss, first, growth), proba, y, others, more_alphas=more, batch=7
        )
    assert_same_thresholds(parted, whole, alphas)
    assert curves_of(same) == curves_of(parted)
    assert parted.threshold_ == whole.threshold_
    assert parted.n_rows_ == whole.n_rows_
    assert parted.predict_set(proba) == whole.predict_set(proba)


OPTIONS = {
    "by class": {"condition_on": "label"},
    "alpha by class": {"alpha": {0: 0.05, 1: 0.2, 2: 0.3, 3: 0.1}},
    "groups": {"groups": True},
    "groups and classes": {"groups": True, "condition_on": "label"},
    "binomial": {"delta": 0.2},
    "binomial by group": {"delta": 0.2, "groups": True},
    "Hoeffding and Bentkus": {"delta": 0.2, "confidence_bound": "hoeffding_bentkus"},
    "Hoeffding and Bentkus by class": {
        "delta": 0.2,
        "confidence_bound": "hoeffding_bentkus",
        "condition_on": "label",
        "loss": "divergence",
    },
    "class ratios": {"class_ratios": [0.5, 2, 1, "1/3"]},
    "class ratios with none": {"class_ratios": [1, 0, 2, 0.25], "loss": "divergence"},
    "randomized": {"randomize": True},
    "randomized groups": {"randomize": True, "groups": True, "loss": "divergence"},
    "costs by class": {"condition_on": "label", "loss": WeightedLoss([1, 2, 3, 4], normalize=False)},
    "given points": {"point_labels": True},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@settings(max_examples=4)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 600), max_size=8),
    sizes=small_sizes(),
    coarse=st.booleans(),
)
def test_options_of_rows_in_parts(draw, options, seed, cuts, sizes, coarse):
    options = dict(options)
    proba, y = draw(600, 4, seed=seed % 7)
    rng = np.random.default_rng(seed)
    if coarse:
        proba = rng.multinomial(6, [0.1, 0.4, 0.3, 0.2], size=600) / 6
    groups = rng.choice(["b", "a", "c"], 600, p=[0.7, 0.25, 0.05]) if options.pop("groups", False) else None
    points = rng.integers(0, 4, 600) if options.pop("point_labels", False) else None
    weights = options.pop("class_ratios", None)
    more = [] if "alpha" in options else [0.03, 0.3]
    options = {"loss": "coverage", "alpha": 0.12, **options}
    if points is not None:
        options["growth"] = PaperGrowth("given")

    def controller():
        return RiskController(**options)

    extras = {"groups": groups, "class_ratios": weights, "point_labels": points}
    whole = controller().calibrate(proba, y, **extras)
    with pytest.MonkeyPatch.context() as patch:
        search_few_steps(patch, **sizes)
        parted, _ = calibrate_in_parts(controller(), proba, y, cuts, more_alphas=more, at_once=3, **extras)
        same, _ = calibrate_in_parts(controller(), proba, y, [17], more_alphas=more, batch=50, **extras)
    assert_same_thresholds(parted, whole, [options["alpha"], *more])
    assert parted.threshold_ == whole.threshold_  # by the same names
    assert [*parted.risk_curve_] == [*whole.risk_curve_] if groups is not None else True
    assert curves_of(same) == curves_of(parted)
    coins = {"random_state": 3} if options.get("randomize") else {}
    new = {"groups": groups, "point_labels": points, **coins}
    assert parted.predict_set(proba, **new) == whole.predict_set(proba, **new)
    if more:
        assert parted.predict_set(proba, alpha=0.3, **new) == whole.predict_set(proba, alpha=0.3, **new)


def test_units_too_large_for_64_bits(draw, monkeypatch):
    search_few_steps(monkeypatch)
    primes = [10**18 + 9, 10**18 + 3, 10**17 + 3, 10**16 + 61]
    loss = WeightedLoss([Fraction(1, prime) + 1 for prime in primes])
    proba, y = draw(500, 4)
    whole = RiskController(loss, 0.2).calibrate(proba, y)
    for cuts in ([], [3, 200], [*range(0, 500, 10)]):
        parted, _ = calibrate_in_parts(
            RiskController(loss, 0.2), proba, y, cuts, at_once=4, more_alphas=[0.05]
        )
        assert_same_thresholds(parted, whole, [0.2, 0.05])
        assert curves_of(parted)[0].totals[-1] > 2**63
    assert not curves_of(parted)[0].is_whole


# how rows may lie


def arrangements():
    rng = np.random.default_rng(0)
    n = 4_000
    proba = rng.dirichlet(np.ones(5), n)
    y = labels_drawn(proba, rng)
    by_level = np.lexsort((proba[:, 0], proba[np.arange(n), y]))
    every_100th = [*range(100, n, 100)]
    ties = rng.dirichlet(np.ones(5), 12)[rng.integers(0, 12, n)]
    one = np.tile([0.4, 0.3, 0.1, 0.1, 0.1], (n, 1))
    one_step = np.tile([0.6, 0.4, 0, 0, 0], (n, 1))
    return {
        "shuffled": (proba, y, every_100th),
        "sorted": (proba[by_level], y[by_level], every_100th),
        "falling": (proba[by_level[::-1]], y[by_level[::-1]], every_100th),
        "one huge and many tiny": (proba, y, [*range(0, 60), n - 40, n - 3, n - 1]),
        "a row each": (proba[:300], y[:300], range(300)),
        "empty ones": (proba, y, [0, 0, 5, 5, 5, 2_000, 2_000, n, n]),
        "heavy ties": (ties, y, every_100th),
        "few levels": (one, rng.integers(0, 5, n), every_100th),
        "one level": (one_step, rng.integers(0, 2, n), every_100th),
        "the same rows in each": (np.tile(proba[:100], (40, 1)), np.tile(y[:100], 40), every_100th),
    }


ARRANGEMENTS = arrangements()


@pytest.mark.parametrize("loss", ["coverage", "divergence"])
@pytest.mark.parametrize("name", ARRANGEMENTS)
def test_however_the_rows_lie(monkeypatch, name, loss):
    proba, y, cuts = ARRANGEMENTS[name]
    alphas = [0.01, 0.05, 0.1, 0.3]
    whole = RiskController(loss, 0.05).calibrate(proba, y)
    for sizes in ({}, {"SAMPLED": 300, "MOST_SENT": 200}, {"SAMPLED": 1_000, "MOST_SENT": 5}):
        search_few_steps(monkeypatch, **sizes)
        parted, watched = calibrate_in_parts(
            RiskController(loss, 0.05), proba, y, cuts, at_once=16, more_alphas=alphas
        )
        assert_same_thresholds(parted, whole, alphas)
        assert watched.n_rounds < 30


# samples that lie


def drawn_lowest(steps, draw, random):
    return _these(steps, np.sort(steps.at)[:5], draw)


def drawn_highest(steps, draw, random):
    return _these(steps, np.sort(steps.at)[-5:], draw)


def drawn_nothing(steps, draw, random):
    return _sample(np.empty(0), np.empty(0, np.int64))


def drawn_one_level(steps, draw, random):
    return _these(steps, np.repeat(np.median(steps.at), 200), draw)


def drawn_from_elsewhere(steps, draw, random):
    return _sample(np.array([-3.0, 0.123, 7.0]), np.array([1, 10**6, 1]))


def drawn_heavy(steps, draw, random):
    """All steps as if each were huge, so that the threshold seems to lie at the lowest."""
    return _sample(steps.at, steps.sizes_of(slice(None)).astype(np.int64) * 1_000)


def drawn_light(steps, draw, random):
    """Two steps of a share that should be many."""
    return _sample(np.sort(steps.at)[[0, -1]], np.array([1, 1]))


def drawn_weightless(steps, draw, random):
    """Steps that stand for next to nothing."""
    return _sample(steps.at[::3], steps.sizes_of(slice(None, None, 3)), 1e-9)


def drawn_overweight(steps, draw, random):
    return _sample(steps.at[::3], steps.sizes_of(slice(None, None, 3)), 1e9)


def _these(steps, levels, draw):
    return _sample(levels, np.ones(len(levels), np.int64))


def _sample(levels, units, weight=2.5):
    return Sample(levels, units, np.full(len(levels), weight, np.float32))


LIES = [
    drawn_lowest,
    drawn_highest,
    drawn_nothing,
    drawn_one_level,
    drawn_from_elsewhere,
    drawn_heavy,
    drawn_light,
    drawn_weightless,
    drawn_overweight,
]


LIED_ABOUT = ["coverage", "divergence", WeightedLoss([1, 2, 3, 1, 9])]


@pytest.mark.parametrize(("lie", "loss"), [*zip(LIES, cycle(LIED_ABOUT))])
def test_a_sample_that_lies_costs_rounds_alone(monkeypatch, lie, loss):
    proba, y, cuts = ARRANGEMENTS["shuffled"]
    alphas = [0.02, 0.1, 0.25]
    whole = RiskController(loss, 0.1).calibrate(proba, y)
    search_few_steps(monkeypatch, SAMPLED=400, MOST_SENT=300)
    honest, few = calibrate_in_parts(RiskController(loss, 0.1), proba, y, cuts, more_alphas=alphas)
    monkeypatch.setattr(part_steps, "_drawn", lie)
    parted, watched = calibrate_in_parts(RiskController(loss, 0.1), proba, y, cuts, more_alphas=alphas)
    assert_same_thresholds(parted, whole, alphas)
    assert curves_of(parted) == curves_of(honest)
    assert few.n_rounds <= 12
    assert watched.n_rounds < 30


def test_an_honest_sample_mostly_takes_two_questions(monkeypatch):
    """How much there is with some of it, and the steps in the brackets."""
    search_few_steps(monkeypatch, SAMPLED=400, SAMPLED_OF_STRATUM=50, MOST_SENT=2_000)
    rounds = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.ones(4), 3_000)
        y = rng.integers(0, 4, 3_000)
        _, watched = calibrate_in_parts(RiskController(alpha=0.1), proba, y, range(0, 3_000, 200))
        rounds.append(watched.n_rounds)
    assert min(rounds) == 2
    assert np.mean(np.array(rounds) == 2) > 0.8


# what is kept


def test_an_alpha_that_was_not_asked_for_is_not_known(draw, monkeypatch):
    search_few_steps(monkeypatch)
    proba, y = draw(2_000, 5)
    parted, _ = calibrate_in_parts(
        RiskController(alpha=0.05), proba, y, [10, 900], more_alphas=[0.06, Fraction(1, 3)]
    )
    whole = RiskController(alpha=0.05).calibrate(proba, y)
    assert parted.calibration_.more_alphas == (Fraction(3, 50), Fraction(1, 3))
    with pytest.raises(
        NotKnownError,
        match=r"kept near alpha=0\.05 and 0\.06 and 1/3 only, .* calibrate again with 0\.2 in more_alphas",
    ):
        parted.threshold_at(0.2)
    with pytest.raises(ValueError, match=r"with 0\.2 in more_alphas"):
        parted.predict_set(proba, alpha=0.2)
    assert parted.threshold_at(0.051) == whole.threshold_at(0.051)  # near enough
    assert parted.threshold_at(0.99) == whole.threshold_at(0.99) == math.inf
    assert parted.threshold_at(0.0001) == whole.threshold_at(0.0001) == -math.inf
    assert "known in 2 windows" in repr(curves_of(parted)[0])


def test_few_steps_are_kept_whole(draw):
    proba, y = draw(2_000, 5)
    parted, watched = calibrate_in_parts(RiskController(alpha=0.05), proba, y, [10, 900])
    assert curves_of(parted) == curves_of(RiskController(alpha=0.05).calibrate(proba, y))
    assert curves_of(parted)[0].is_whole
    assert watched.n_rounds == 2


def test_steps_are_kept_whole_up_to_the_limit_itself(draw, monkeypatch):
    proba, y = draw(500, 5)
    n_steps = len(RiskController().growth.steps(proba, y, costs_of("coverage"), None).at)
    for limit, is_whole in ((n_steps, True), (n_steps - 1, False)):
        search_few_steps(monkeypatch, KEPT_WHOLE=limit)
        parted, _ = calibrate_in_parts(RiskController(alpha=0.05), proba, y, [100])
        assert curves_of(parted)[0].is_whole == is_whole


def costs_of(loss):
    return CostTable.of(RiskController(loss).loss, 5)


def test_windows_that_meet_are_one(draw, monkeypatch):
    search_few_steps(monkeypatch)
    proba, y = draw(2_000, 5)
    near, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [50], more_alphas=[0.1005, 0.101])
    alone, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [50])
    [joined], [single] = curves_of(near)[0].windows, curves_of(alone)[0].windows
    assert joined.below <= single.below
    assert joined.totals[-1] > single.totals[-1]
    far, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [50], more_alphas=[0.4])
    assert len(curves_of(far)[0].windows) == 2


def test_the_window_reaches_as_far_as_the_margin(draw, monkeypatch):
    search_few_steps(monkeypatch)
    proba, y = draw(3_000, 5)
    parted, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [1_000])
    [window] = curves_of(parted)[0].windows
    budget = 3_001 // 10 - 1
    margin = 4 * math.isqrt(budget)
    assert window.below == budget - margin
    assert window.totals[-1] == budget + margin + 1


def test_windows_are_no_wider_than_is_worth_keeping(monkeypatch):
    monkeypatch.setattr(bracketing, "_WIDEST", 50)
    assert bracketing._margin(10**10, 3) == 50
    assert bracketing._margin(100, 1) == 40
    assert bracketing._margin(0, 7) == 0


def test_margins_are_those_of_the_page_on_scale():
    assert (bracketing._SPREAD, bracketing._WIDEST, bracketing._DEVIATIONS) == (4, 2**16, 3)


def test_where_all_or_nothing_fits_no_steps_are_sent(draw, monkeypatch):
    search_few_steps(monkeypatch)
    proba, y = draw(2_000, 5)
    for alpha, threshold in ((0.0001, -math.inf), (0.99, math.inf)):
        parted, watched = calibrate_in_parts(RiskController(alpha=alpha), proba, y, [10, 900])
        assert parted.threshold_ == threshold
        assert curves_of(parted)[0].windows == ()
        assert not curves_of(parted)[0].is_whole
        assert watched.n_rounds == 1


def test_joined_windows():
    def window(below, *steps):
        levels, totals = zip(*steps, strict=True)
        return Window(below, np.array(levels), np.array(totals))

    one, inner = window(2, (0.1, 3), (0.2, 5), (0.3, 6)), window(3, (0.2, 5))
    touching, apart = window(6, (0.4, 9)), window(7, (0.5, 9))
    assert [*map(_plain, bracketing._adjoining_windows_merged([inner, one]))] == [_plain(one)]
    assert [*map(_plain, bracketing._adjoining_windows_merged([touching, one]))] == [
        (2, [0.1, 0.2, 0.3, 0.4], [3, 5, 6, 9])
    ]
    assert [*map(_plain, bracketing._adjoining_windows_merged([apart, inner]))] == [
        _plain(inner),
        _plain(apart),
    ]
    assert bracketing._adjoining_windows_merged([]) == ()


def _plain(window):
    return window.below, window.levels.tolist(), window.totals.tolist()


def test_no_rows_at_all_is_an_error():
    how = Spec(), np.arange(3)
    parts = cut_up(how, np.empty((0, 3)), np.empty(0, int), [0, 0])
    with pytest.raises(ValueError, match="There are no rows to calibrate with"):
        finished(WatchedParts(parts), *how)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"more_alphas": [0.2, 1.5]}, "alpha must lie strictly between 0 and the largest loss"),
        ({"more_alphas": ["x"]}, "must be a finite number; got 'x'"),
        ({"more_alphas": [{0: 0.1, 1: 0.1, 2: 0.1}]}, "must be a finite number"),
        ({"more_alphas": 0.2}, "more_alphas must be a sequence of numbers; got 0.2"),
        ({"more_alphas": "0.2"}, "more_alphas must be a sequence of numbers; got '0.2'"),
        ({"class_ratios": [1, 2]}, "class_ratios must have one ratio for each of the 3 classes; got 2"),
    ],
    ids=str,
)
def test_wrong_options_are_refused_before_any_row_is_read(options, message):
    with pytest.raises(ValueError, match=message):
        finished(None, Spec(condition_on=None), np.arange(3), **options)


def test_risks_by_class_can_not_be_asked_for_later():
    controller = RiskController(condition_on="label")
    with pytest.raises(ValueError, match="must be a finite number"):
        finished(None, controller.spec, np.arange(2), more_alphas=[{0: 0.1, 1: 0.1}])


def test_betting_needs_all_steps():
    for options in ({"loss": "divergence"}, {"confidence_bound": "betting"}):
        with pytest.raises(ValueError, match=r'bound="betting" must know .* take confidence_bound="hoef'):
            finished(None, Spec(delta=0.1, **options), np.arange(3))


def test_weights_of_classes_without_rows_are_an_error(draw):
    proba, _ = draw(50, 3)
    with pytest.raises(ValueError, match="class_ratios is 0 for every class that the calibration rows have"):
        calibrate_in_parts(RiskController(), proba, np.zeros(50, int), [20], class_ratios=[0, 1, 1])


# how much is sent


class GeneratedParts:
    """This many steps of size 1, made again for each question, so that they are never all in memory."""

    def __init__(self, n_steps, n_parts, levels):
        self.n_steps, self.n_parts, self.levels = n_steps, n_parts, levels
        self.sent = []

    def first_look(self):
        return self.ask(bracketing.first_question(self.n_parts))

    def ask(self, question):
        answers = []
        for part in range(self.n_parts):
            random = np.random.default_rng(part)
            steps = Steps(self.levels(random, self.n_steps // self.n_parts), 1, 1)
            rows, digests = {(None, None): len(steps.at)}, {part: f"{part:064x}"}
            answers.append(question(PartSteps({(None, None): steps}, rows, np.array([1]), digests)))
            if len(answers) == 8:
                answers = [merge_all(answers)]
        found = merge_all(answers)
        self.sent.append(len(pickle.dumps(found)))
        return found


def bytes_sent(n_steps, n_parts, levels, budgets=(0.1,)):
    parts = GeneratedParts(n_steps, n_parts, levels)
    first = parts.first_look()
    key = (None, None)
    assert first.sizes.steps == {key: n_steps}
    found = windows_around(parts, first, {key: {int(b * n_steps) for b in budgets}}, {key: 1})
    assert 0 < len(found[key].windows) <= len(budgets)
    assert sum(int(totals[-1]) - below for below, _, totals in found[key].windows) < n_steps
    return sum(parts.sent)


def uniform(random, n):
    return random.random(n)


def float32_like(random, n):
    return random.random(n, np.float32).astype(np.float64)


def few_levels(random, n):
    return random.integers(0, 50, n) / 50


def test_little_is_sent_and_hardly_more_of_many_more_rows():
    """Of 10 million rows with 5 float32 scores and a step each, less than 1 % of these bytes is sent."""
    many = bytes_sent(10**7, 8, uniform)
    assert many < 0.01 * 10**7 * 5 * 4
    assert bytes_sent(3 * 10**7, 12, uniform) < 2 * many


def test_little_is_sent_of_levels_that_tie():
    assert bytes_sent(10**7, 8, float32_like) < 0.01 * 10**7 * 5 * 4
    assert bytes_sent(10**7, 8, few_levels) < 0.01 * 10**7 * 5 * 4


def test_all_of_a_window_is_a_sorted_curve():
    sums = part_steps.LevelSums(np.array([0.1, 0.2]), np.array([3, 1]), np.array([2, 1]))
    found = bracketing._all_of(sums, 4)
    assert len(found.windows) == 1
    assert (found.totals.tolist(), found.most_tied) == ([3, 4], 2)
    large = part_steps.LevelSums(np.array([0.1, 0.2]), np.array([2**62, 2**62]), np.array([1, 1]))
    assert bracketing._all_of(large, 2**63).totals.tolist() == [2**62, 2**63]


# a single search


def sums(*steps):
    levels, units, counts = (np.array(each) for each in zip(*steps, strict=True))
    return part_steps.LevelSums(levels, units, counts)


TEN = sums(*((level / 10, 2, 1 + level % 3) for level in range(10)))  # 20 units in all


@pytest.mark.parametrize(
    ("budget", "below", "inside", "kept"),
    [
        (10, 0, slice(0, 10), (6, [0.3, 0.4, 0.5, 0.6])),
        (10, 6, slice(3, 7), (6, [0.3, 0.4, 0.5, 0.6])),
        (10, 8, slice(4, 7), None),  # begins above what is wanted
        (10, 6, slice(3, 6), None),  # ends below
        (10, 6, slice(3, 3), None),
        (1, 0, slice(0, 3), (0, [0.0, 0.1, 0.2])),  # nothing lies below the first level
        (1, 1, slice(1, 3), None),
        (18, 12, slice(6, 10), (14, [0.7, 0.8, 0.9])),  # nothing lies above the last
        (18, 12, slice(6, 9), None),
        (19, 12, slice(6, 10), (16, [0.8, 0.9])),
    ],
)
def test_a_window_is_kept_if_all_that_is_wanted_is_there(budget, below, inside, kept):
    search = bracketing._Search((None, None), budget, 3, 20, 10)
    search._keep(part_steps.LevelSums(*(values[inside] for values in TEN)), below)
    if kept is None:
        assert search.window is None
    else:
        first, levels = kept
        assert (search.window.below, search.window.levels.tolist()) == (first, levels)
        assert search.window.totals.tolist() == [first + 2 * (i + 1) for i in range(len(levels))]
        assert search.most_tied == max(TEN.counts[np.searchsorted(TEN.levels, levels)])


def test_sums_between_levels_hold_both_ends():
    between = bracketing._between(TEN, 0.3, 0.6)
    assert between.levels.tolist() == [0.3, 0.4, 0.5, 0.6]
    assert between.counts.tolist() == [1, 2, 3, 1]
    assert between.units.tolist() == [2, 2, 2, 2]


def answered(edges):
    below = [int(np.count_nonzero(TEN.levels < edge)) for edge in edges]
    return part_steps.Answer(tuple(2 * n for n in below), tuple(below), sums((0.0, 1, 1)))


def test_a_search_only_ever_comes_closer():
    search = bracketing._Search((None, None), 10, 3, 20, 10)
    for edges, low, high, is_stuck in (
        ([0.15, 0.85], 0.15, 0.85, False),
        ([0.05, 0.95], 0.15, 0.85, True),  # asked by another search
        ([0.25, 0.95], 0.25, 0.85, False),
        ([0.05, 0.75], 0.25, 0.75, False),
        ([0.35, 0.65], 0.25, 0.65, False),  # 8 units below 0.35 are too many
        ([0.3, 0.6, 0.65], 0.3, 0.65, False),  # 12 units below 0.6 may be wanted
    ):
        search._look_closer(np.array(edges), answered(edges))
        assert (search.low, search.high, search.is_stuck) == (low, high, is_stuck)
        assert search.below == 2 * search.n_below == 2 * np.count_nonzero(TEN.levels < low)
        assert search.n_inside == np.count_nonzero((TEN.levels >= low) & (TEN.levels < high))


def test_budgets_that_all_steps_fit_leave_no_window(monkeypatch):
    search_few_steps(monkeypatch, KEPT_WHOLE=0)
    steps = Steps(np.arange(10) / 10, 2, 2)
    part = PartSteps({(None, None): steps}, {(None, None): 10}, np.array([10]), {0: "ab" * 32})
    for budget, n_windows in ((19, 1), (20, 0), (21, 0), (-1, 0), (0, 1)):
        parts = WatchedParts([part])
        found = windows_around(parts, parts.first_look(), {(None, None): {budget}}, {(None, None): 2})
        assert len(found[None, None].windows) == n_windows


def test_an_uneven_first_look_is_followed_by_an_even_one(monkeypatch):
    """Where most steps lie in one part of many, few of them are in a sample that takes as many from each."""
    search_few_steps(monkeypatch, SAMPLED=400, MOST_SENT=10_000)
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(4), 8_000), rng.integers(0, 4, 8_000)
    _, even = calibrate_in_parts(RiskController(alpha=0.1), proba, y, range(0, 8_000, 80))
    _, uneven = calibrate_in_parts(RiskController(alpha=0.1), proba, y, range(100))
    assert [question.method for question in even.questions[1:]] == ["answers"]
    assert [question.method for question in uneven.questions[1:3]] == ["sample", "answers"]


def test_a_bracket_that_would_hold_too_many_levels_is_not_asked_for():
    """Counts below many levels come first, unless many steps have equal levels."""
    at = np.random.default_rng(0).random(40_000)

    def asks(levels, most_sent):
        search = bracketing._Search((None, None), 4_000, 10, 40_000, 40_000)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bracketing, "MOST_SENT", most_sent)
            return search.asks(Sample(levels[::40], np.ones(1_000, int), np.full(1_000, 40, np.float32)))

    narrow = asks(at, 10_000)
    [(low, high)] = narrow.brackets
    assert low < 0.1 < high
    assert narrow.edges.tolist() == [-math.inf, low]
    wide = asks(at, 100)
    assert wide.brackets == ()
    assert len(wide.edges) > 100
    assert len(asks(np.round(at, 2), 100).brackets) == 1


def test_a_later_sample_is_of_the_steps_between():
    """Steps that are known to be below are added to the sample of the others."""
    search = bracketing._Search((None, None), 4_000, 10, 10**6, 10**6)
    search.low, search.high, search.below, search.n_below = 0.3, 0.4, 3_000, 3_000
    levels = np.linspace(0.3, 0.4, 201)[:200]
    question = search.asks(Sample(levels, np.ones(200, int), np.full(200, 10, np.float32)))
    [(low, high)] = question.brackets
    assert 0.3 < low < 0.35 < high < 0.4  # 2000 units lie there, half of them below the budget


def test_rows_that_come_out_otherwise_when_asked_again_are_an_error(draw, monkeypatch):
    search_few_steps(monkeypatch)
    how = Spec(alpha=0.1), np.arange(5)
    parts = WatchedParts(cut_up(how, *draw(600, 5), [200]))
    ask = parts.ask

    def ask_others(question):
        found = ask(question)
        parts.parts[0] = cut_up(how, *draw(200, 5, seed=9), [])[0]
        return found

    parts.ask = ask_others
    with pytest.raises(
        ValueError, match=r"^The rows of the partitions changed between two passes\..* a seed"
    ):
        finished(parts, *how)


def test_a_search_that_does_not_end_is_an_error(draw, monkeypatch):
    search_few_steps(monkeypatch)
    monkeypatch.setattr(bracketing._Search, "learn", lambda *_: None)
    with pytest.raises(ValueError, match="changed between two passes"):
        calibrate_in_parts(RiskController(alpha=0.1), *draw(600, 5), [200])


@pytest.mark.parametrize("tiny", [1e-306, 5e-324, 1e-170])
def test_costs_of_any_scale(draw, monkeypatch, tiny):
    search_few_steps(monkeypatch)
    proba, y = draw(600, 3)
    table = [[0, 1, 1], [tiny, 0, 1], [1, 1, 0]]
    parted, _ = calibrate_in_parts(RiskController(table, alpha=0.1), proba, y, [100, 400])
    assert parted.threshold_ == RiskController(table, alpha=0.1).calibrate(proba, y).threshold_


def test_one_loss_that_dwarfs_the_others_does_not_widen_the_window(draw, monkeypatch):
    search_few_steps(monkeypatch)
    proba, y = draw(3_000, 3)
    loss = WeightedLoss([1, 1, 10**8])
    parted, _ = calibrate_in_parts(RiskController(loss, alpha=1e-9), proba, y, [1_000])
    assert parted.threshold_ == RiskController(loss, alpha=1e-9).calibrate(proba, y).threshold_
    assert sum(len(curve.levels) for curve in curves_of(parted)) < 1_000


def test_many_groups_do_not_make_the_parts_send_all_their_steps(draw, monkeypatch):
    search_few_steps(monkeypatch, KEPT_WHOLE=100, SAMPLED=300)
    proba, y = draw(6_000, 5)
    groups = np.arange(6_000) % 60  # each has fewer steps than are kept whole, all together more
    parted, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [1_000, 3_000], groups=groups)
    whole = RiskController(alpha=0.1).calibrate(proba, y, groups=groups)
    assert parted.threshold_ == whole.threshold_
    kept = sum(len(curve.levels) for curve in curves_of(parted))
    assert kept < 0.7 * sum(len(curve.levels) for curve in curves_of(whole))
    assert not all(curve.is_whole for curve in curves_of(parted))


@pytest.mark.parametrize(
    "options", [{}, {"randomize": True}, {"delta": 0.1, "confidence_bound": "dkw"}], ids=str
)
def test_a_curve_in_windows_has_the_same_guarantee(draw, monkeypatch, options):
    rows = draw(3_000, 5)
    whole = calibrate_in_parts(RiskController(alpha=0.1, **options), *rows, [9])[0].guarantee()
    search_few_steps(monkeypatch)
    windowed, _ = calibrate_in_parts(RiskController(alpha=0.1, **options), *rows, [9])
    assert not windowed.risk_curve_.is_whole
    assert windowed.guarantee() == whole


def test_what_needs_the_whole_curve_says_so(draw, monkeypatch):
    from ordinalrisk import alpha_for_size
    from ordinalrisk.calibration.promises import ThresholdsByWeight
    from ordinalrisk.plots import plot_risk_curve

    search_few_steps(monkeypatch)
    proba, y = draw(3_000, 5)
    windowed, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [9])
    asked = {
        "Choosing alpha": lambda: alpha_for_size(windowed, proba, 2),
        "A picture of it": lambda: plot_risk_curve(windowed),
        "A threshold for each row": lambda: ThresholdsByWeight(windowed.risk_curve_, Fraction(1, 10)),
    }
    for purpose, ask in asked.items():
        with pytest.raises(
            NotKnownError, match=f"^{purpose} needs the whole risk curve, but with rows in many"
        ):
            ask()


def test_a_report_says_that_it_knows_few_risks(draw, monkeypatch):
    from ordinalrisk.report import render, summarise

    proba, y = draw(3_000, 5)
    whole, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [9], more_alphas=[0.3])
    pages = {True: render(summarise(whole, proba, y))}
    search_few_steps(monkeypatch)
    windowed, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [9], more_alphas=[0.3])
    summary = summarise(windowed, proba, y)
    pages[False] = render(summary)
    assert {"0.1", "0.3"} <= {stop["alpha"] for stop in summary["stops"]}
    assert summary["calibration"]["most_tied"] is None
    for is_whole, page in pages.items():
        assert (f"known at only {len(summary['stops'])} values of" in page) != is_whole
        assert ("Most rows that change at one level (M)" in page) == is_whole
        assert ("Levels that were kept of the risk curve" in page) != is_whole
        assert f'"joined": {str(is_whole).lower()}' in page or f'"joined":{str(is_whole).lower()}' in page


# answers of parts: in few bytes, and the same however parts are merged


ALL = (None, None)
SIZES = st.sampled_from([1, 2, 7, 250, 2**40, 2**62, 2**63, 2**70])
LEVELS = st.sampled_from([-0.5, 0.0, 5e-324, 0.1, 0.1 + 2**-54, 0.25, 0.3, 1.0])


@st.composite
def some_steps(draw, max_size=12):
    """Levels and sizes; sizes as an array of the narrowest kind that holds them, or as one number."""
    at = np.array(draw(st.lists(LEVELS, max_size=max_size)), float)
    if draw(st.booleans()):
        size = draw(SIZES)
        return Steps(at, size, size)
    by = draw(st.lists(SIZES, min_size=len(at), max_size=len(at)))
    largest = max(by, default=1)
    dtype = object if largest >= 2**63 else np.int64
    return Steps(at, np.array(by, dtype), largest)


def sums_of(steps):
    return LevelSums.added(steps.at, steps.sizes_of(slice(None)), np.ones(len(steps.at), np.int64))


def plain(sums):
    return sums.levels.tolist(), sums.units.tolist(), sums.counts.tolist()


def naive_sums(*parts):
    units, counts = Counter(), Counter()
    for steps in parts:
        for level, size in zip(steps.at.tolist(), steps.sizes_of(slice(None)).tolist(), strict=True):
            units[level] += size
            counts[level] += 1
    levels = sorted(units)
    return levels, [units[level] for level in levels], [counts[level] for level in levels]


# sums by level


@given(steps=some_steps())
def test_sums_by_level(steps):
    assert plain(sums_of(steps)) == naive_sums(steps)


@given(parts=st.lists(some_steps(), min_size=3, max_size=3))
def test_sums_merge_in_any_order(parts):
    a, b, c = map(sums_of, parts)
    flat = merge_all([a, b, c])
    left = merge_all([merge_all([a, b]), c])
    right = merge_all([merge_all([c]), merge_all([b, a])])
    assert plain(flat) == plain(left) == plain(right) == naive_sums(*parts)
    assert flat.units.dtype == left.units.dtype == right.units.dtype


def test_sums_take_as_few_bytes_as_hold_them():
    for size, dtype in ((1, np.uint8), (200, np.uint16), (2**20, np.uint32), (2**40, np.uint64)):
        sums = LevelSums.added(np.array([0.5, 0.5]), np.array([size, size]), np.array([1, 1]))
        assert sums.units.dtype == dtype
        assert sums.units.tolist() == [2 * size]
        assert sums.counts.dtype == np.uint8
    large = LevelSums.added(np.array([0.5, 0.5]), np.array([2**62, 2**62]), np.array([1, 1]))
    assert large.units.dtype == object
    assert large.units.tolist() == [2**63]
    many = LevelSums.added(np.zeros(300), np.ones(300, np.uint8), np.ones(300, np.uint8))
    assert (many.units.tolist(), many.counts.tolist()) == ([300], [300])


def test_sums_of_nothing():
    nothing = LevelSums.added(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    assert plain(nothing) == ([], [], [])
    some = sums_of(Steps(np.array([0.5]), 2**64, 2**64))
    assert plain(merge_all([nothing, some, nothing])) == ([0.5], [2**64], [1])
    assert plain(merge_all([nothing])) == ([], [], [])


# answers


def naive_answer(question, *parts):
    steps = [
        pair
        for part in parts
        for pair in zip(part.at.tolist(), part.sizes_of(slice(None)).tolist(), strict=True)
    ]
    inside = [
        Steps(part.at[chosen], part.sizes_of(chosen), part.largest)
        for part in parts
        for chosen in [
            np.array(
                [any(low <= level <= high for low, high in question.brackets) for level in part.at.tolist()],
                bool,
            )
        ]
    ]
    edges = question.edges.tolist()
    return (
        tuple(sum(size for level, size in steps if level < edge) for edge in edges),
        tuple(sum(level < edge for level, _ in steps) for edge in edges),
        naive_sums(*inside),
    )


def plain_answer(answer):
    return answer.units_below, answer.steps_below, plain(answer.inside)


@st.composite
def some_questions(draw):
    ends = st.one_of(LEVELS, st.sampled_from([-np.inf, np.inf, 0.2]))
    brackets = draw(st.lists(st.tuples(ends, ends).map(sorted).map(tuple), max_size=2))
    return Question(np.array(sorted(draw(st.sets(ends, min_size=1)))), tuple(brackets))


@pytest.mark.parametrize("few", [0, 3, 100])
@settings(max_examples=40)
@given(parts=st.lists(some_steps(), min_size=3, max_size=3), question=some_questions())
def test_answers_are_counts_and_merge_in_any_order(parts, question, few):
    """Few edges are looked at one by one, many at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part_steps, "_FEW", few)
        check_answers(parts, question)


def check_answers(parts, question):
    a, b, c = (part_steps._answer(part, question) for part in parts)
    for part, answer in zip(parts, (a, b, c), strict=True):
        assert plain_answer(answer) == naive_answer(question, part)
    flat = merge_all([a, b, c])
    left = merge_all([merge_all([a, b]), c])
    right = merge_all([merge_all([c]), merge_all([b, a])])
    assert plain_answer(flat) == plain_answer(left) == plain_answer(right) == naive_answer(question, *parts)


def test_units_below_are_exact_beyond_64_bits():
    steps = Steps(np.repeat([0.1, 0.2], 3_000), np.full(6_000, 2**60), 2**60)
    for each in (steps, Steps(steps.at, 2**60, 2**60), Steps(steps.at, steps.by.astype(object), 2**60)):
        answer = part_steps._answer(each, Question(np.array([0.2, 0.5]), ((0.2, 0.2),)))
        assert answer.units_below == (3_000 * 2**60, 6_000 * 2**60)
        assert all(type(units) is int for units in answer.units_below)
        assert answer.inside.units.tolist() == [3_000 * 2**60]


def test_only_strata_that_a_part_has_are_answered():
    part = a_part(Steps(np.array([0.1]), 1, 1))
    question = Question(np.array([0.5]), ())
    assert part.answers({("x", None): question, ALL: question}).keys() == {ALL}
    assert part.sample({(("x", None), 0): Draw(1, 0, 1), (ALL, 4): Draw(1, 0, 1)}).keys() == {(ALL, 4)}


# samples


def a_part(steps, digest="ab" * 32):
    return PartSteps({ALL: steps}, {ALL: len(steps.at)}, np.array([len(steps.at)]), {0: digest})


def levels_drawn(part, draw):
    return part.sample({(ALL, 0): draw})[ALL, 0].levels


def test_samples_are_the_same_whenever_asked():
    at = np.random.default_rng(0).random(1_000)
    draw = Draw(0.1, 0.2, 0.7)
    part = a_part(Steps(at, 1, 1))
    first = levels_drawn(part, draw)
    assert levels_drawn(pickle.loads(pickle.dumps(part)), draw).tobytes() == first.tobytes()
    assert levels_drawn(a_part(Steps(at, 1, 1), "cd" * 32), draw).tobytes() != first.tobytes()


def test_a_sample_is_of_distinct_steps_between_the_levels():
    at = np.arange(1_000) / 1_000
    by = np.arange(1, 1_001)
    part = a_part(Steps(at, by, 1_000))
    for share in (0.0001, 0.3, 1.0, 5.0):
        sample = part.sample({(ALL, 0): Draw(share, 0.2, 0.7)})[ALL, 0]
        inside = 501
        assert abs(len(sample.levels) - min(share, 1) * inside) <= 1
        assert len(set(sample.levels)) == len(sample.levels)
        assert len(sample.levels) == 0 or 0.2 <= sample.levels.min() <= sample.levels.max() <= 0.7
        assert sample.units.tolist() == np.rint(sample.levels * 1_000 + 1).tolist()


def test_a_sample_is_fair_however_small_the_parts():
    """Of many parts of a few steps each, a share comes back in all: parts round up or down at random."""
    parts = [a_part(Steps(np.full(3, number), 1, 1), f"{number:064x}") for number in range(2_000)]
    drawn = sum(len(levels_drawn(part, Draw(0.05, 0, np.inf))) for part in parts)
    assert abs(drawn - 300) < 5 * np.sqrt(300)


def test_samples_are_uniform_over_the_steps():
    counts = np.zeros(4, int)
    for number in range(2_000):
        part = a_part(Steps(np.arange(4.0), 1, 1), f"{number:064x}")
        counts[levels_drawn(part, Draw(0.5, 0, 3)).astype(int)] += 1
    assert counts.sum() == 4_000
    assert abs(counts - 1_000).max() < 5 * np.sqrt(500)


def test_samples_merge():
    one = Sample(np.array([0.5]), np.array([3]), np.ones(1, np.float32))
    other = Sample(np.array([0.1]), np.array([2**64], object), np.full(1, 2, np.float32))
    merged = merge_all([one, other])
    assert [values.tolist() for values in merged] == [[0.5, 0.1], [3, 2**64], [1, 2]]


def test_each_step_of_a_sample_stands_for_others():
    part = a_part(Steps(np.arange(1_000) / 1_000, 1, 1))
    for share in (0.05, 0.25, 1.0):
        sample = part.sample({(ALL, 0): Draw(share, -np.inf, np.inf)})[ALL, 0]
        assert sample.weights.dtype == np.float32
        assert sample.weights.tolist() == [np.float32(1 / share)] * len(sample.levels)
        assert abs(sample.weights.sum() - 1_000) <= 1 / share


def test_a_first_look_shares_steps_out_among_strata():
    strata = {("a", None): 5_000, ("b", None): 50, ("c", None): 0, ("d", None): 3}
    random = np.random.default_rng(0)
    part = PartSteps(
        {key: Steps(random.random(n), 1, 1) for key, n in strata.items()},
        {key: n + 10 for key, n in strata.items()},
        np.array([5_093]),
        {0: "ab" * 32},
    )
    look = part.first_look(100, 20)
    assert look.sizes.steps == strata
    assert look.samples.keys() == {key for key, n in strata.items() if n}
    drawn = {key: len(sample.levels) for key, sample in look.samples.items()}
    assert 98 <= drawn["a", None] <= 100
    assert drawn["b", None] == 20
    assert drawn["d", None] == 3
    for key, sample in look.samples.items():
        assert set(sample.levels) <= set(part.strata[key].at)
    again = pickle.loads(pickle.dumps(part)).first_look(100, 20)
    assert again.samples["a", None].levels.tobytes() == look.samples["a", None].levels.tobytes()
    both = merge_all([look, merge_all([a_part(Steps(np.array([0.5]), 1, 1)).first_look(9, 9)])])
    assert both.samples[ALL].levels.tolist() == [0.5]
    assert both.sizes.steps == {**strata, ALL: 1}
    assert len(both.samples["b", None].levels) == 20
    twice = merge_all([look, look])
    assert len(twice.samples["b", None].levels) == 40


# sizes


def test_sizes_add_up_in_the_order_met():
    a = Sizes(
        {("b", None): 2},
        {("b", None): 5},
        {("b", None): 2**70},
        np.array([1, 1]),
        {0: "x"},
        {("b", None): (0, 0)},
    )
    b = Sizes(
        {("a", None): 1, ("b", None): 1},
        {("a", None): 0, ("b", None): 1},
        {("a", None): 0, ("b", None): 1},
        np.array([0, 2]),
        {1: "y", 2: "z"},
        {("a", None): (1, 0), ("b", None): (1, 1)},
    )
    for merged in (a.merge(b), b.merge(a)):
        assert [*merged.rows_in_order.items()] == [(("b", None), 3), (("a", None), 1)]
        assert merged.steps == {("b", None): 6, ("a", None): 0}
        assert merged.units == {("b", None): 2**70 + 1, ("a", None): 0}
        assert merged.class_rows.tolist() == [1, 3]
        assert merged.digests == {0: "x", 1: "y", 2: "z"}


# collecting


COSTS = CostTable.of(orisk.DivergenceLoss(), 4)
FRONTIER = orisk.FrontierGrowth()


def collected(proba, y, batches, groups=None, *, by_label=False, class_ratios=None):
    steps = LossSteps(
        Spec("divergence", condition_on="label" if by_label else None), np.arange(4), class_ratios
    )
    for rows in np.array_split(np.arange(len(y)), batches) if len(y) else ():
        mine = None if groups is None else groups[rows]
        steps.add(Batch(proba[rows], y[rows], mine, first_row=int(rows[0])))
    return steps.as_part()


@pytest.mark.parametrize("how", [{}, {"by_label": True}, {"class_ratios": [3, 0, 1, 2]}], ids=str)
@pytest.mark.parametrize("grouped", [False, True])
def test_batches_of_a_part_do_not_matter(draw, how, grouped):
    proba, y = draw(200, 4)
    groups = np.random.default_rng(0).choice(["b", "a"], 200) if grouped else None
    one, many = (collected(proba, y, batches, groups, **how) for batches in (1, 9))
    assert one.digests == many.digests == {0: fingerprint(proba, y)}
    assert one.rows == many.rows
    assert [*one.rows] == [*many.rows] or how == {"by_label": True}  # classes are met in any order
    assert one.class_rows.tolist() == many.class_rows.tolist()
    if grouped or how:
        assert one.class_rows.tolist() == np.bincount(y, minlength=4).tolist()
    assert one.strata.keys() == many.strata.keys()
    for key in one.strata:
        assert plain(sums_of(one.strata[key])) == plain(sums_of(many.strata[key]))
    assert one.sizes().units == many.sizes().units == {k: s.total for k, s in one.strata.items()}
    assert one.sizes().steps == {k: len(s.at) for k, s in one.strata.items()}


def test_rows_by_group_and_class(draw):
    proba, y = draw(100, 4)
    groups = np.where(np.arange(100) % 3, "later", "first")
    part = collected(proba, y, 1, groups, by_label=True)
    assert {group for group, _ in part.rows} == {"first", "later"}
    for (group, label), n_rows in part.rows.items():
        mine = (groups == group) & (y == label)
        assert n_rows == mine.sum()
        alone = collected(proba[mine], y[mine], 1, by_label=True)
        assert plain(sums_of(part.strata[group, label])) == plain(sums_of(alone.strata[None, label]))


def test_weights_of_classes_multiply_steps(draw):
    proba, y = draw(300, 4)
    weights = [3, 0, 2**62, 5]
    part = collected(proba, y, 2, class_ratios=weights)
    assert part.rows == {ALL: 300}
    expected = Counter()
    for label, weight in enumerate(weights):
        mine = y == label
        steps = FRONTIER.steps(proba[mine], y[mine], COSTS, None)
        for level, size in zip(steps.at.tolist(), steps.sizes_of(slice(None)).tolist(), strict=True):
            expected[level] += size * weight
    levels, units, _ = plain(sums_of(part.strata[ALL]))
    assert dict(zip(levels, units, strict=True)) == {k: v for k, v in expected.items() if v}
    assert part.sizes().units[ALL] == sum(expected.values())


def test_a_part_without_rows():
    part = collected(np.empty((0, 4)), np.empty(0, int), 1)
    sizes = part.sizes()
    assert (sizes.rows, sizes.steps, sizes.units, sizes.digests) == ({}, {}, {}, {})
    assert sizes.class_rows.tolist() == [0, 0, 0, 0]
    assert part.sample({(ALL, 0): Draw(1, 0, 1)}) == {}
    assert part.answers({ALL: Question(np.array([0.5]), ())}) == {}


def test_rows_that_are_never_missed_leave_no_steps():
    part = collected(np.eye(4), np.arange(4), 1)
    assert part.sizes().steps == {ALL: 0}
    assert part.sizes().units == {ALL: 0}
    answer = part.answers({ALL: Question(np.array([0.5]), ((-np.inf, np.inf),))})[ALL]
    assert plain_answer(answer) == ((0,), (0,), ([], [], []))
