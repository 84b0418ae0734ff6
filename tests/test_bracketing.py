"""Rows in many parts have the thresholds of all rows together, bit for bit."""

import math
import pickle
from fractions import Fraction
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_in_parts import WatchedParts, calibrate_in_parts, cut_up, make_small
from strategies import GROWTH_RULES, LOSSES, PROBABILITIES

from ordinalrisk import PaperGrowth, RiskController, WeightedLoss
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.curves.steps import SortedSteps, Steps
from ordinalrisk.curves.windows import NotKnownError, Window, WindowedSteps
from ordinalrisk.execution import bracketing, part_steps
from ordinalrisk.execution.bracketing import windows_around
from ordinalrisk.execution.calibrating_parts import PartsCalibrator
from ordinalrisk.execution.part_steps import FirstLook, PartSteps, Sample

SHARES = [Fraction(1, 50), Fraction(1, 8), Fraction(2, 5)]  # of the largest loss, as alphas
pytestmark = pytest.mark.filterwarnings("ignore:.*needs at least")


@st.composite
def rows_to_cut(draw, max_rows=300, probabilities=tuple(PROBABILITIES)):
    """Probabilities, labels and where they are cut: anywhere, twice in a place too."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, K = draw(st.integers(30, max_rows)), draw(st.integers(2, 6))
    proba = draw(st.sampled_from(probabilities))(rng, n, K)
    likely = (proba.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
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
        make_small(patch, **sizes)
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
    "Hoeffding and Bentkus": {"delta": 0.2, "bound": "hoeffding_bentkus"},
    "Hoeffding and Bentkus by class": {
        "delta": 0.2,
        "bound": "hoeffding_bentkus",
        "condition_on": "label",
        "loss": "divergence",
    },
    "class weights": {"class_weight": [0.5, 2, 1, "1/3"]},
    "class weights with none": {"class_weight": [1, 0, 2, 0.25], "loss": "divergence"},
    "randomized": {"randomize": True},
    "randomized groups": {"randomize": True, "groups": True, "loss": "divergence"},
    "costs by class": {"condition_on": "label", "loss": WeightedLoss([1, 2, 3, 4], normalize=False)},
    "given points": {"point_labels": True},
}


@pytest.mark.filterwarnings("ignore:There are too few rows of")
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
    weights = options.pop("class_weight", None)
    more = [] if "alpha" in options else [0.03, 0.3]
    options = {"loss": "coverage", "alpha": 0.12, **options}
    if points is not None:
        options["growth"] = PaperGrowth("given")

    def controller():
        return RiskController(**options)

    extras = {"groups": groups, "class_weight": weights, "point_labels": points}
    whole = controller().calibrate(proba, y, **extras)
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch, **sizes)
        parted, _ = calibrate_in_parts(controller(), proba, y, cuts, more_alphas=more, at_once=3, **extras)
        same, _ = calibrate_in_parts(controller(), proba, y, [17], more_alphas=more, batch=50, **extras)
    assert_same_thresholds(parted, whole, [options["alpha"], *more])
    assert parted.threshold_ == whole.threshold_  # by the same names
    assert [*parted.risk_curve_] == [*whole.risk_curve_] if groups is not None else True
    assert curves_of(same) == curves_of(parted)
    coins = {"seed": 3} if options.get("randomize") else {}
    new = {"groups": groups, "point_labels": points, **coins}
    assert parted.predict_set(proba, **new) == whole.predict_set(proba, **new)
    if more:
        assert parted.predict_set(proba, alpha=0.3, **new) == whole.predict_set(proba, alpha=0.3, **new)


def test_units_too_large_for_64_bits(draw, monkeypatch):
    make_small(monkeypatch)
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
    y = (proba.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
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
        make_small(monkeypatch, **sizes)
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
    make_small(monkeypatch, SAMPLED=400, MOST_SENT=300)
    honest, few = calibrate_in_parts(RiskController(loss, 0.1), proba, y, cuts, more_alphas=alphas)
    monkeypatch.setattr(part_steps, "_drawn", lie)
    parted, watched = calibrate_in_parts(RiskController(loss, 0.1), proba, y, cuts, more_alphas=alphas)
    assert_same_thresholds(parted, whole, alphas)
    assert curves_of(parted) == curves_of(honest)
    assert few.n_rounds <= 12
    assert watched.n_rounds < 30


def test_an_honest_sample_mostly_takes_two_questions(monkeypatch):
    """How much there is with some of it, and the steps in the brackets."""
    make_small(monkeypatch, SAMPLED=400, SAMPLED_OF_STRATUM=50, MOST_SENT=2_000)
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
    make_small(monkeypatch)
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
        make_small(monkeypatch, KEPT_WHOLE=limit)
        parted, _ = calibrate_in_parts(RiskController(alpha=0.05), proba, y, [100])
        assert curves_of(parted)[0].is_whole == is_whole


def costs_of(loss):
    from ordinalrisk.losses.cost_table import CostTable

    return CostTable.of(RiskController(loss).loss, 5)


def test_windows_that_meet_are_one(draw, monkeypatch):
    make_small(monkeypatch)
    proba, y = draw(2_000, 5)
    near, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [50], more_alphas=[0.1005, 0.101])
    alone, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [50])
    [joined], [single] = curves_of(near)[0].windows, curves_of(alone)[0].windows
    assert joined.below <= single.below
    assert joined.totals[-1] > single.totals[-1]
    far, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [50], more_alphas=[0.4])
    assert len(curves_of(far)[0].windows) == 2


def test_the_window_reaches_as_far_as_the_margin(draw, monkeypatch):
    make_small(monkeypatch)
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


def test_where_all_or_nothing_fits_no_steps_are_sent(draw, monkeypatch):
    make_small(monkeypatch)
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
    assert [*map(_plain, bracketing._joined([inner, one]))] == [_plain(one)]
    assert [*map(_plain, bracketing._joined([touching, one]))] == [(2, [0.1, 0.2, 0.3, 0.4], [3, 5, 6, 9])]
    assert [*map(_plain, bracketing._joined([apart, inner]))] == [_plain(inner), _plain(apart)]
    assert bracketing._joined([]) == ()


def _plain(window):
    return window.below, window.levels.tolist(), window.totals.tolist()


def test_no_rows_at_all_is_an_error():
    calibrator = PartsCalibrator(Spec(), np.arange(3))
    for parts in ([], cut_up(calibrator, np.empty((0, 3)), np.empty(0, int), [0, 0])):
        with pytest.raises(ValueError, match="There are no rows to calibrate with"):
            calibrator.finish(WatchedParts(parts))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"more_alphas": [0.2, 1.5]}, "alpha must lie strictly between 0 and the largest loss"),
        ({"more_alphas": ["x"]}, "must be a finite number; got 'x'"),
        ({"more_alphas": [{0: 0.1, 1: 0.1, 2: 0.1}]}, "must be a finite number"),
        ({"more_alphas": 0.2}, "more_alphas must be a sequence of numbers; got 0.2"),
        ({"more_alphas": "0.2"}, "more_alphas must be a sequence of numbers; got '0.2'"),
        ({"class_weight": [1, 2]}, "class_weight must have one weight for each of the 3 classes; got 2"),
    ],
    ids=str,
)
def test_wrong_options_are_refused_before_any_row_is_read(options, message):
    with pytest.raises(ValueError, match=message):
        PartsCalibrator(Spec(condition_on=None), np.arange(3), **options)


def test_risks_by_class_can_not_be_asked_for_later():
    controller = RiskController(condition_on="label")
    with pytest.raises(ValueError, match="must be a finite number"):
        PartsCalibrator(controller.spec, np.arange(2), more_alphas=[{0: 0.1, 1: 0.1}])


def test_betting_needs_all_steps():
    for options in ({"loss": "divergence"}, {"bound": "betting"}):
        with pytest.raises(ValueError, match=r'bound="betting" must know .* take bound="hoeffding_bentkus"'):
            PartsCalibrator(Spec(delta=0.1, **options), np.arange(3))
    PartsCalibrator(Spec(delta=0.1), np.arange(3))
    PartsCalibrator(Spec("divergence", delta=0.1, bound="hoeffding_bentkus"), np.arange(3))


def test_weights_of_classes_without_rows_are_an_error(draw):
    proba, _ = draw(50, 3)
    with pytest.raises(ValueError, match="class_weight is 0 for every class that the calibration rows have"):
        calibrate_in_parts(RiskController(), proba, np.zeros(50, int), [20], class_weight=[0, 1, 1])


# how much is sent


class GeneratedParts:
    """So many steps of size 1, made anew whenever a part is asked: all of them are never in memory."""

    def __init__(self, n_steps, n_parts, levels):
        self.n_steps, self.n_parts, self.levels = n_steps, n_parts, levels
        self.sent = []

    def first_look(self):
        return self.ask(bracketing.first_question(self.n_parts), FirstLook.merged)

    def ask(self, question, merged):
        answers = []
        for part in range(self.n_parts):
            random = np.random.default_rng(part)
            steps = Steps(self.levels(random, self.n_steps // self.n_parts), 1, 1)
            rows = {(None, None): len(steps.at)}
            answers.append(question(PartSteps({(None, None): steps}, rows, np.array([1]), f"{part:064x}")))
            if len(answers) == 8:
                answers = [merged(answers)]
        found = merged(answers)
        self.sent.append(len(pickle.dumps(found)))
        return found


def bytes_sent(n_steps, n_parts, levels, budgets=(0.1,)):
    parts = GeneratedParts(n_steps, n_parts, levels)
    first = parts.first_look()
    key = (None, None)
    assert first.sizes.steps == {key: n_steps}
    found = windows_around(parts, first, {key: {int(b * n_steps) for b in budgets}}, {key: 1})
    assert isinstance(found[key], WindowedSteps)
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
    assert isinstance(found, SortedSteps)
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
    make_small(monkeypatch, KEPT_WHOLE=0)
    steps = Steps(np.arange(10) / 10, 2, 2)
    part = PartSteps({(None, None): steps}, {(None, None): 10}, np.array([10]), "ab" * 32)
    for budget, n_windows in ((19, 1), (20, 0), (21, 0), (-1, 0), (0, 1)):
        parts = WatchedParts([part])
        found = windows_around(parts, parts.first_look(), {(None, None): {budget}}, {(None, None): 2})
        assert len(found[None, None].windows) == n_windows


def test_an_uneven_first_look_is_followed_by_an_even_one(monkeypatch):
    """Where most steps lie in one part of many, few of them are in a sample that takes as many from each."""
    make_small(monkeypatch, SAMPLED=400, MOST_SENT=10_000)
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(4), 8_000), rng.integers(0, 4, 8_000)
    _, even = calibrate_in_parts(RiskController(alpha=0.1), proba, y, range(0, 8_000, 80))
    _, uneven = calibrate_in_parts(RiskController(alpha=0.1), proba, y, range(100))
    assert [type(question).__name__ for question in even.questions] == ["_FirstAsked", "_Answered"]
    assert [type(question).__name__ for question in uneven.questions][:3] == [
        "_FirstAsked",
        "_Sampled",
        "_Answered",
    ]


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
    """What is known to lie below counts with the sample of the rest."""
    search = bracketing._Search((None, None), 4_000, 10, 10**6, 10**6)
    search.low, search.high, search.below, search.n_below = 0.3, 0.4, 3_000, 3_000
    levels = np.linspace(0.3, 0.4, 201)[:200]
    question = search.asks(Sample(levels, np.ones(200, int), np.full(200, 10, np.float32)))
    [(low, high)] = question.brackets
    assert 0.3 < low < 0.35 < high < 0.4  # 2000 units lie there, half of them below the budget


def test_rows_that_come_out_otherwise_when_asked_again_are_an_error(draw, monkeypatch):
    make_small(monkeypatch)
    calibrator = PartsCalibrator(Spec(alpha=0.1), np.arange(5))
    parts = WatchedParts(cut_up(calibrator, *draw(600, 5), [200]))
    ask = parts.ask

    def ask_others(question, merged):
        found = ask(question, merged)
        parts.parts[0] = cut_up(calibrator, *draw(200, 5, seed=9), [])[0]
        return found

    parts.ask = ask_others
    with pytest.raises(ValueError, match=r"^The partitions contradict what they said before; .* a seed"):
        calibrator.finish(parts)


def test_a_search_that_does_not_end_is_an_error(draw, monkeypatch):
    make_small(monkeypatch)
    monkeypatch.setattr(bracketing._Search, "learn", lambda *_: None)
    with pytest.raises(ValueError, match="contradict"):
        calibrate_in_parts(RiskController(alpha=0.1), *draw(600, 5), [200])


@pytest.mark.parametrize("tiny", [1e-306, 5e-324, 1e-170])
def test_costs_of_any_scale(draw, monkeypatch, tiny):
    make_small(monkeypatch)
    proba, y = draw(600, 3)
    table = [[0, 1, 1], [tiny, 0, 1], [1, 1, 0]]
    parted, _ = calibrate_in_parts(RiskController(table, alpha=0.1), proba, y, [100, 400])
    assert parted.threshold_ == RiskController(table, alpha=0.1).calibrate(proba, y).threshold_


def test_one_loss_that_dwarfs_the_others_does_not_widen_the_window(draw, monkeypatch):
    make_small(monkeypatch)
    proba, y = draw(3_000, 3)
    loss = WeightedLoss([1, 1, 10**8])
    parted, _ = calibrate_in_parts(RiskController(loss, alpha=1e-9), proba, y, [1_000])
    assert parted.threshold_ == RiskController(loss, alpha=1e-9).calibrate(proba, y).threshold_
    assert sum(len(curve.levels) for curve in curves_of(parted)) < 1_000


def test_many_groups_do_not_make_the_parts_send_all_their_steps(draw, monkeypatch):
    make_small(monkeypatch, KEPT_WHOLE=100, SAMPLED=300)
    proba, y = draw(6_000, 5)
    groups = np.arange(6_000) % 60  # each has fewer steps than are kept whole, all together more
    parted, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [1_000, 3_000], groups=groups)
    whole = RiskController(alpha=0.1).calibrate(proba, y, groups=groups)
    assert parted.threshold_ == whole.threshold_
    kept = sum(len(curve.levels) for curve in curves_of(parted))
    assert kept < 0.7 * sum(len(curve.levels) for curve in curves_of(whole))
    assert not all(curve.is_whole for curve in curves_of(parted))


@pytest.mark.parametrize("options", [{}, {"randomize": True}, {"delta": 0.1, "bound": "dkw"}], ids=str)
def test_a_curve_in_windows_has_the_same_guarantee(draw, monkeypatch, options):
    rows = draw(3_000, 5)
    whole = calibrate_in_parts(RiskController(alpha=0.1, **options), *rows, [9])[0].guarantee()
    make_small(monkeypatch)
    windowed, _ = calibrate_in_parts(RiskController(alpha=0.1, **options), *rows, [9])
    assert not windowed.risk_curve_.is_whole
    assert windowed.guarantee() == whole


def test_what_needs_the_whole_curve_says_so(draw, monkeypatch):
    from ordinalrisk import alpha_for_size
    from ordinalrisk.calibration.promises import ThresholdsByWeight
    from ordinalrisk.plots import plot_risk_curve

    make_small(monkeypatch)
    proba, y = draw(3_000, 5)
    windowed, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [9])
    asked = {
        "Choosing alpha": lambda: alpha_for_size(windowed, proba, 2),
        "A picture of it": lambda: plot_risk_curve(windowed),
        "A threshold for each row": lambda: ThresholdsByWeight(windowed.risk_curve_, Fraction(1, 10)),
    }
    for purpose, ask in asked.items():
        with pytest.raises(
            NotKnownError, match=f"^{purpose} needs the whole risk curve, which was kept near"
        ):
            ask()


def test_a_report_says_that_it_knows_few_risks(draw, monkeypatch):
    from ordinalrisk.report import render, summarise

    proba, y = draw(3_000, 5)
    whole, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [9], more_alphas=[0.3])
    pages = {True: render(summarise(whole, proba, y))}
    make_small(monkeypatch)
    windowed, _ = calibrate_in_parts(RiskController(alpha=0.1), proba, y, [9], more_alphas=[0.3])
    summary = summarise(windowed, proba, y)
    pages[False] = render(summary)
    assert {"0.1", "0.3"} <= {stop["alpha"] for stop in summary["stops"]}
    assert summary["calibration"]["most_tied"] is None
    for is_whole, page in pages.items():
        assert (f"known at {len(summary['stops'])} values of" in page) != is_whole
        assert ("Most rows that change at one level (M)" in page) == is_whole
        assert ("Levels of the risk curve that were kept" in page) != is_whole
        assert f'"joined": {str(is_whole).lower()}' in page or f'"joined":{str(is_whole).lower()}' in page
