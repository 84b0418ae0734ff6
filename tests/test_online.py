"""Rolling risk control keeps its finite-time bound against everyone, and finds alpha on ordinary rows."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from strategies import RULE_NAMES, exact_losses

import ordinalrisk as orisk
from ordinalrisk import online
from ordinalrisk.online import OnlineRiskController

K = 5
COST_TABLE = [[0, 1, 1, 2, 3], [2, 0, 1, 2, 2], [4, 2, 0, 0, 1], [6, 5, 3, 0, 1], [9, 7, 5, 2, 0]]
LOSSES = {
    "coverage": (orisk.WeightedLoss(), "0.1"),
    "weighted, natural units": (orisk.WeightedLoss([1, 1, 2, 3, 4], normalize=False), "0.3"),
    "divergence, natural units": (orisk.DivergenceLoss(normalize=False), "1/3"),
    "root": (orisk.DivergenceLoss(power=0.5), "0.07"),
    "table": (orisk.CostTableLoss(COST_TABLE, normalize=False), "0.6"),
}
EVERY_LOSS = pytest.mark.parametrize(("loss", "alpha"), LOSSES.values(), ids=LOSSES.keys())
EVERY_RULE = pytest.mark.parametrize("growth", RULE_NAMES)


def state(controller):
    return controller.n_rows_, controller.risk_, controller.threshold_, controller._run.place


def costliest(table, interval):
    """The label that costs most beside an interval that the adversary sees."""
    lower, upper = interval
    return max(range(K), key=lambda y: table[y][min(max(y, lower), upper)])


def always_wrong(row, proba, interval, controller, table):
    return int(proba.argmin())


def seeing_the_set(row, proba, interval, controller, table):
    return costliest(table, interval)


def patient(row, proba, interval, controller, table):
    """Costs nothing until sets are single labels, then all it can."""
    return interval[0] if row < 110 else costliest(table, interval)


def switching(row, proba, interval, controller, table):
    return int(proba.argmax()) if row // 40 % 2 else (int(proba.argmin()) + row) % K


@EVERY_RULE
@EVERY_LOSS
@pytest.mark.parametrize("adversary", [always_wrong, seeing_the_set, patient, switching])
def test_no_sequence_has_a_mean_loss_above_the_bound(loss, alpha, growth, adversary):
    rng = np.random.default_rng(1)
    kinds = [rng.dirichlet(np.ones(K), 60), np.eye(K)[rng.integers(0, K, 120)]]
    table = loss.exact_costs(K)
    controller = OnlineRiskController(loss, alpha, growth, range(K), rate="0.04")
    total, totals = Fraction(0), [Fraction(0)]
    for row, proba in enumerate(np.concatenate(kinds)):
        seen = controller.predict_set(proba[None])[0]
        y = adversary(row, proba, seen, controller, table)
        sets = controller.update(proba[None], [y])
        assert sets[0] == seen, "a row is predicted with the state before it"
        total += exact_losses([y], sets.lower_index.tolist(), sets.upper_index.tolist(), loss, K)[0]
        totals.append(total)
        n = row + 1
        assert total <= n * controller.bound_after(n)
        assert controller.n_rows_ == n
        assert controller.risk_ == float(total / n)
    for n in (10, 50, 100):
        worst = max(totals[i + n] - totals[i] for i in range(len(totals) - n))
        assert worst <= n * controller.bound_over_any(n)


@pytest.mark.parametrize("growth", ["paper", "frontier", "adaptive"])
@EVERY_LOSS
def test_the_bound_is_reached(loss, alpha, growth):
    """With probabilities of 0 and 1 no set is larger than one label until all are full."""
    table = loss.exact_costs(K)
    bound = loss.bound(K)
    worst = next(y for y in range(K) if max(table[y]) == bound)
    far = max(range(K), key=lambda k: table[worst][k])
    proba = np.eye(K)[[far]]
    controller = OnlineRiskController(loss, alpha, growth, range(K), rate="0.04")
    controller.update(np.repeat(proba, 1_000, axis=0), [far] * 1_000)
    assert (controller.threshold_, controller.risk_) == (math.inf, 0)
    n = 0
    while not controller.predict_set(proba).contains([worst])[0]:
        controller.update(proba, [worst])
        n += 1
    lost, limit = n * bound, n * controller.bound_over_any(n)
    assert controller.risk_ == float(lost / controller.n_rows_)
    assert limit - 2 * bound <= lost <= limit


@EVERY_RULE
@EVERY_LOSS
def test_without_saturation_the_mean_loss_goes_to_alpha(loss, alpha, growth):
    """The lower half: a place below the ceiling has not forgotten any loss that was not made."""
    rng = np.random.default_rng(2)
    proba, y = rng.dirichlet(np.ones(K) / 2, 3_000), rng.integers(0, K, 3_000)
    controller = OnlineRiskController(loss, alpha, growth, range(K), rate="0.04")
    for i in range(0, 3_000, 100):
        controller.update(proba[i : i + 100], y[i : i + 100])
        assert controller._run.cut_off == 0, "labels without rhyme or reason do not saturate"
        n = controller.n_rows_
        if controller.bound_over_any(n) == loss.bound(K):
            continue
        below = controller.bound_over_any(n) - controller.bound_after(n)  # B (1 - theta_1) / (rate n)
        assert controller.risk_ >= Fraction(alpha) - below - Fraction(1, 10**12)
    assert controller.risk_ == pytest.approx(float(Fraction(alpha)), rel=0.2)


def test_the_bound_is_the_formula():
    controller = OnlineRiskController("coverage", 0.1, classes=range(K), rate="1/40")
    theta = controller._run.theta
    assert controller.bound_after(700) == pytest.approx(0.1 + (40 * theta + 0.9) / 700)
    assert controller.bound_over_any(700) == Fraction(1, 10) + Fraction(409, 7000)
    assert controller.bound_over_any(7) == 1, "no mean is above the largest loss"
    natural = OnlineRiskController(orisk.DivergenceLoss(normalize=False), 1, classes=range(K), rate="1/40")
    assert natural.bound_over_any(700) == 1 + Fraction(4 * 40 + 3, 700)
    with pytest.raises(ValueError, match="at least one row"):
        controller.bound_after(0)


@EVERY_RULE
def test_saturation_leaves_no_trace(growth):
    """However long single labels were enough, the next bad times are met from the same place."""
    rng = np.random.default_rng(3)
    proba, y = rng.dirichlet(np.ones(K), 300), rng.integers(0, K, 300)
    followers = []
    for length in (1_000, 4_000):
        controller = OnlineRiskController("divergence", 0.2, growth, rate=0.02)
        controller.update(np.eye(K)[[2] * length], [2] * length)
        assert controller.threshold_ == math.inf
        followers.append(controller.update(proba, y))
    assert followers[0] == followers[1]
    assert followers[0].size[0] == 1
    assert followers[0].size.max() > 1


@EVERY_RULE
@EVERY_LOSS
def test_batches_of_any_size_are_rows_one_by_one(loss, alpha, growth):
    rng = np.random.default_rng(4)
    proba, y = rng.dirichlet(np.ones(K), 120).astype(np.float32), rng.integers(0, K, 120)
    whole = OnlineRiskController(loss, alpha, growth)
    sets = whole.update(proba, y)
    assert len(np.unique(sets.size)) > 1
    for at_once in (1, 7):
        cut = OnlineRiskController(loss, alpha, growth)
        for i in range(0, 120, at_once):
            assert cut.update(proba[i : i + at_once], y[i : i + at_once]) == sets[i : i + at_once]
        assert state(cut) == state(whole)


@EVERY_RULE
@pytest.mark.parametrize("case", ["coverage", "root"])
def test_a_saved_run_goes_on_without_a_difference(case, growth, tmp_path):
    loss, alpha = LOSSES[case]
    rng = np.random.default_rng(5)
    proba, y = rng.dirichlet(np.ones(K), 30), rng.integers(0, K, 30)
    whole = OnlineRiskController(loss, alpha, growth, range(K), rate="1/30").calibrate(proba, y)
    start = whole.threshold_
    sets = whole.update(proba, y)
    for cut in range(31):
        first = OnlineRiskController(loss, alpha, growth, range(K), rate="1/30").calibrate(proba, y)
        first.update(proba[:cut], y[:cut]) if cut else None
        first.save(tmp_path / "run.json")
        second = OnlineRiskController.load(tmp_path / "run.json")
        assert repr(second) == repr(first)
        if cut < 30:
            assert second.update(proba[cut:], y[cut:]) == sets[cut:]
        assert state(second) == state(whole)
        assert second.bound_after(50) == whole.bound_after(50)
    assert second.calibrate(proba, y).threshold_ == start


@EVERY_RULE
@pytest.mark.parametrize(("loss", "alpha"), [("coverage", 0.1), ("divergence", 0.05)])
def test_on_rows_that_do_not_change_it_is_as_good_as_a_fixed_threshold(loss, alpha, growth, draw):
    proba, y = draw(9_000, K, seed=6)
    controller = OnlineRiskController(loss, alpha, growth)
    sets = controller.update(proba, y)
    assert abs(controller.risk_ - alpha) < 0.003
    fixed = orisk.RiskController(loss, alpha, growth).calibrate(proba, y).predict_set(proba)
    assert sets[1_000:].size.mean() == pytest.approx(fixed.size.mean(), rel=0.02)


def test_after_a_change_the_risk_returns(draw):
    proba, y = draw(4_000, K, seed=7)
    later, _ = draw(4_000, K, seed=8)
    noise = np.random.default_rng(9).integers(0, K, 4_000)
    controller = OnlineRiskController("coverage", 0.1).calibrate(proba, y)
    fixed = orisk.RiskController("coverage", 0.1).calibrate(proba, y)
    assert controller.n_rows_ == 0
    sets = controller.update(later, noise)
    assert orisk.metrics.risk(noise, fixed.predict_set(later), "coverage") > 0.25
    assert orisk.metrics.risk(noise[:200], sets[:200], "coverage") > 0.11
    assert orisk.metrics.risk(noise[500:], sets[500:], "coverage") == pytest.approx(0.1, abs=0.01)


@EVERY_RULE
@EVERY_LOSS
def test_a_warm_start_predicts_what_the_calibration_does(loss, alpha, growth, draw):
    proba, y = draw(500, K, seed=10)
    batch = orisk.RiskController(loss, alpha, growth).calibrate(proba, y)
    warm = OnlineRiskController(loss, alpha, growth).calibrate(proba, y)
    assert math.isfinite(batch.threshold_)
    assert warm.predict_set(proba) == batch.predict_set(proba)
    assert warm.threshold_ <= batch.threshold_
    assert warm.threshold_ == pytest.approx(batch.threshold_, rel=1e-9)


def test_a_warm_start_knows_the_edge_cases():
    proba = np.eye(K)[[0, 1, 2, 3, 4] * 10]
    sure = OnlineRiskController(alpha=0.1).calibrate(proba, [0, 1, 2, 3, 4] * 10)
    assert sure.threshold_ == pytest.approx(1)
    assert sure.predict_set(proba).size.max() == 1
    with pytest.warns(UserWarning, match="needs at least 99 calibration rows"):
        unsure = OnlineRiskController(alpha=0.01).calibrate(proba, [0, 1, 2, 3, 4] * 10)
    assert unsure.threshold_ == -math.inf
    assert unsure.bound_after(100) == Fraction(1, 100) + Fraction(99, 100) / 100


def test_misses_divide_a_threshold_by_the_same_number_wherever_it_is():
    """Ratios, not differences: half of 0.2 and half of 0.002 are equally far away."""
    controller = OnlineRiskController("coverage", 0.2, classes=range(2))
    thresholds = [controller.threshold_]
    while controller.threshold_ > 1e-6:
        controller.update([[1.0, 0.0]], [1])
        thresholds.append(controller.threshold_)
    assert thresholds[0] == pytest.approx(0.2)
    ratios = np.array(thresholds[:-1]) / np.array(thresholds[1:])
    assert ratios == pytest.approx(np.full(len(ratios), 1e9 ** (0.01 * 0.8)), rel=1e-3)


@pytest.mark.parametrize(
    ("loss", "growth", "top"),
    [
        (orisk.WeightedLoss([1, 2, 7], normalize=False), "frontier", 7),
        (orisk.DivergenceLoss(normalize=False), "frontier", 1),
        (orisk.DivergenceLoss(normalize=False), "adaptive", 2),
        (orisk.DivergenceLoss(normalize=False), "paper", 2),
        (orisk.DivergenceLoss(normalize=False), "rps", 0),
    ],
)
def test_the_scale_ends_where_levels_do(loss, growth, top):
    proba = np.random.default_rng(11).dirichlet(np.ones(3) / 5, 5_000)
    rule = type(orisk.growth.as_growth(growth))("given")
    levels = rule.levels(proba, loss, point_labels=np.arange(5_000) % 3)
    levels = levels[np.isfinite(levels)]
    scale = OnlineRiskController(loss, 0.5, growth, range(3))._run.scale
    ends = scale.threshold(1e-12), scale.threshold(1 - 1e-12)
    assert ends == pytest.approx((-2 if growth == "rps" else 0, top), abs=1e-9)
    assert ends[0] - 1e-9 <= levels.min()
    assert levels.max() <= ends[1] + 1e-9
    assert levels.max() > (-0.5 if growth == "rps" else 0.9 * top)
    places = np.linspace(0.01, 0.99, 99)
    thresholds = [scale.threshold(place) for place in places]
    assert (np.diff(thresholds) > 0).all()
    assert [scale.place_of(threshold) for threshold in thresholds] == pytest.approx(places)


def test_predicting_changes_nothing(draw):
    proba, y = draw(50, K, seed=12)
    controller = OnlineRiskController(alpha=0.2, rate=0.05)
    first = controller.predict_set(proba)
    assert controller.n_rows_ == 0
    assert first[:1] == controller.update(proba[:1], y[:1])
    controller.update(proba, y)
    before = state(controller)
    controller.predict_set(proba)
    assert state(controller) == before


def test_labels_bring_or_have_names():
    proba = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    grades = pd.Series(pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True))
    controller = OnlineRiskController(alpha=0.2)
    sets = controller.update(proba, grades)
    assert sets.classes.tolist() == controller.classes_.tolist() == ["low", "mid", "high"]
    assert controller.update(proba, ["mid", "low"]).classes.tolist() == ["low", "mid", "high"]
    named = OnlineRiskController(alpha=0.2, classes=["low", "mid", "high"])
    assert named.update(proba, ["low", "high"]) == sets
    with pytest.raises(ValueError, match="order"):
        named.update(pd.DataFrame(proba, columns=["low", "high", "mid"]), ["low", "high"])
    with pytest.raises(ValueError, match="order"):
        named.predict_set(pd.DataFrame(proba, columns=["low", "high", "mid"]))


def test_point_labels_can_be_given():
    controller = OnlineRiskController(alpha=0.2, growth=orisk.FrontierGrowth("given"))
    sets = controller.update([[0.6, 0.3, 0.1]] * 2, [0, 1], point_labels=[2, 0])
    assert [tuple(interval) for interval in sets] == [(0, 2), (0, 1)]
    assert controller.predict_set([[0.6, 0.3, 0.1]], point_labels=[1])[0] == (0, 1)
    with pytest.raises(ValueError, match="point_labels"):
        controller.update([[0.6, 0.3, 0.1]], [0])


@pytest.mark.parametrize("rate", [0, -0.1, 1.01, "nan", None])
def test_a_rate_that_leads_nowhere_is_refused(rate):
    with pytest.raises(ValueError, match="rate must be"):
        OnlineRiskController(rate=rate)


def test_the_largest_rate_takes_two_misses_from_single_labels_to_full_sets():
    """One would do for a loss beside which alpha is nothing."""
    controller = OnlineRiskController(alpha=0.4, rate=1)
    controller.update([[1.0, 0, 0]] * 9, [0] * 9)
    assert controller.update([[1.0, 0, 0]] * 4, [2, 2, 2, 2]).size.tolist() == [1, 1, 3, 1]


def test_rows_that_do_not_fit_change_nothing(draw):
    proba, y = draw(20, K, seed=13)
    fresh = OnlineRiskController(alpha=0.2)
    for wanted in ("threshold_", "classes_"):
        assert not hasattr(fresh, wanted)
    with pytest.raises(AttributeError, match="give classes="):
        fresh.bound_after(3)
    bad = proba.copy()
    bad[7, 2] = np.nan
    for controller in (fresh, OnlineRiskController(alpha=0.2)):
        if controller is not fresh:
            controller.update(proba, y)
        before = controller.n_rows_, repr(controller)
        for args, match in [
            ((bad, y), "row 7"),
            ((proba, [*y[:-1], 9]), r"y\[19\] is 9.*classes="),
            ((proba, y[:-1]), "one label for each of the 20 rows"),
            ((proba[0], y), "shape"),
        ]:
            with pytest.raises(ValueError, match=match):
                controller.update(*args)
            assert (controller.n_rows_, repr(controller)) == before
    with pytest.raises(ValueError, match="3 columns"):
        controller.update(np.full((1, 3), 1 / 3), [0])
    with pytest.raises(ValueError, match="3 columns, but there are 5 classes"):
        controller.predict_set(np.full((1, 3), 1 / 3))
    with pytest.raises(AttributeError, match="alpha can't change"):
        controller.alpha = 0.3
    with pytest.raises(ValueError, match="alpha must lie strictly between"):
        OnlineRiskController(alpha=1).update(proba, y)
    with pytest.raises(ValueError, match="alpha must lie strictly between"):
        OnlineRiskController(alpha=1, classes=range(3))


def test_it_tells_what_it_is_and_where_it_stands():
    controller = OnlineRiskController(orisk.DivergenceLoss(), 0.1, "rps")
    text = "OnlineRiskController(loss=DivergenceLoss(), alpha=0.1, growth=RankedProbabilityGrowth"
    assert repr(controller) == f"{text}(point='median'), rate=0.01)"
    assert math.isnan(controller.risk_)
    controller.update([[0.0, 0.0, 1.0]], [2])
    assert repr(controller).endswith("after 1 rows, mean loss 0")


BAD_FIELDS = {
    "loss": {"kind": "unknown"},
    "growth": {"name": "frontier"},
    "classes": "01234",
    "alpha": 3,
    "rate": 2,
    "n_rows": -1,
    "total_loss": "1/3",
    "start": -1,
    "place": 10**40,
    "theta": "0x1p-1",
}


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        *BAD_FIELDS.items(),
        ("n_rows", 20.0),
        ("total_loss", "21"),
        ("total_loss", "-1"),
        ("start", 10**40),
        ("place", -(10**40)),
        ("place", "one more"),
        ("classes", [0, 1, None, 3, 4]),
        ("growth", {"name": "sideways", "point": "mode"}),
    ],
)
def test_a_document_that_can_not_be_is_refused_by_its_field(field, bad, tmp_path, draw):
    path = tmp_path / "run.json"
    controller = OnlineRiskController(alpha=0.3)
    controller.update(*draw(20, K, seed=14))
    controller.save(path)
    document = json.loads(path.read_text())
    assert set(BAD_FIELDS) == set(online.SCHEMA.fields)
    values = {name: document[name] for name in online.SCHEMA.fields}
    bad = values["place"] + 1 if bad == "one more" else bad
    online.SCHEMA.write(values | {field: bad}, path)
    with pytest.raises(ValueError, match=f"field '{field}' is not valid"):
        OnlineRiskController.load(path)


def test_a_run_without_rows_is_where_it_started(tmp_path):
    controller = OnlineRiskController(alpha=0.3, classes=range(3))
    controller.save(tmp_path / "run.json")
    document = json.loads((tmp_path / "run.json").read_text())
    values = {name: document[name] for name in online.SCHEMA.fields}
    online.SCHEMA.write(values | {"place": values["place"] - 1}, tmp_path / "run.json")
    with pytest.raises(ValueError, match="start before the first row"):
        OnlineRiskController.load(tmp_path / "run.json")


def test_classes_that_are_no_json_are_not_saved(tmp_path):
    for label in [None, math.inf]:
        controller = OnlineRiskController(classes=["a", label])
        with pytest.raises(ValueError, match="can't be saved"):
            controller.save(tmp_path / "run.json")
    assert not list(tmp_path.iterdir())
