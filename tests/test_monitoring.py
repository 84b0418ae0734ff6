"""The monitor rings falsely with probability delta at most over all time, and soon when the risk has grown.

Streams of losses are simulated straight into the two functions that the class computes its evidence with, one
test states that the class does so, and one that they never exceed the evidence in exact arithmetic.
"""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import ordinalrisk as orisk
from ordinalrisk.sequential import monitor as monitoring
from ordinalrisk.sequential.monitor import RiskMonitor, _bet_sizes, _evidence, _factors, _wealth_after

COST_TABLE = [[0, 1, 1, 2, 3], [2, 0, 1, 2, 2], [4, 2, 0, 0, 1], [6, 5, 3, 0, 1], [9, 7, 5, 2, 0]]
LOSSES = {
    "coverage": (orisk.WeightedLoss(), 0.2),
    "weighted, natural units": (orisk.WeightedLoss([1, 1, 2, 3, 4], normalize=False), 0.5),
    "divergence, natural units": (orisk.DivergenceLoss(normalize=False), 0.5),
    "root": (orisk.DivergenceLoss(power=0.5), 0.2),
    "table": (orisk.CostTableLoss(COST_TABLE, normalize=False), 0.5),
}
CASES = pytest.mark.parametrize(("loss", "alpha"), LOSSES.values(), ids=LOSSES.keys())


def intervals(n, seed=0, K=5):
    """Intervals and labels that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, K, (n, 2)), axis=1)
    return rng.integers(0, K, n), orisk.IntervalSet(ends[:, 0], ends[:, 1], classes=range(K))


def state(monitor):
    return (
        monitor.n_rows_,
        monitor.risk_,
        monitor.evidence_,
        monitor.p_value_,
        monitor.alarm_,
        monitor.alarm_row_,
        monitor._wealth.tolist(),
    )


def first_alarms(rows, streams, alpha, delta, risk, size=1, seed=0):
    """The row of the alarm in each stream of losses of ``size`` or 0; 0 if there is none.

    ``risk`` is a function of the row number.
    """
    rng = np.random.default_rng(seed)
    claim = Fraction(alpha)
    sizes = _bet_sizes(claim)
    factors = np.array([_factors(-claim, sizes), _factors(Fraction(size) - claim, sizes)]).T
    wealth, alarm = np.zeros((len(sizes), streams)), np.zeros(streams, int)
    for row in range(1, rows + 1):
        lost = rng.random(streams) < risk(row) / float(Fraction(size))
        wealth = _wealth_after(wealth, factors[:, lost.astype(int)], row)
        alarm[(alarm == 0) & (_evidence(wealth, row) >= 1 / delta)] = row
    return alarm


@pytest.mark.parametrize(
    ("alpha", "delta", "size", "seed"),
    [("0.1", 0.05, 1, 1), ("0.2", 0.2, 1, 2), ("0.05", 0.2, "1/4", 3)],
    ids=["one in ten", "one in five", "small losses"],
)
def test_false_alarms_are_as_rare_as_promised(alpha, delta, size, seed):
    rung = first_alarms(3_000, 2_000, alpha, delta, lambda row: float(Fraction(alpha)), size, seed) > 0
    assert rung.mean() <= delta + 3 * math.sqrt(delta * (1 - delta) / 2_000)
    assert rung.mean() > delta / 5, "a test that never rings is no test"


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_a_risk_that_is_a_tenth_too_large_is_found(delta):
    rung = first_alarms(6_000, 300, "0.2", delta, lambda row: 0.22, seed=4) > 0
    assert rung.mean() > delta + 0.5


@pytest.mark.parametrize(("times", "median"), [(1.25, 1_600), (1.5, 430), (2, 125)])
def test_a_larger_risk_is_found_soon(times, median):
    alarm = first_alarms(median, 400, "0.1", 0.05, lambda row: 0.1 * times, seed=5)
    assert (alarm > 0).mean() > 0.5


def test_a_change_after_many_good_rows_is_found_soon():
    """Bets that began in good times have lost; those that begin late have not."""
    alarm = first_alarms(10_350, 200, "0.1", 0.05, lambda row: 0.09 if row <= 10_000 else 0.2, seed=6)
    assert (alarm[alarm > 0] > 10_000).mean() > 0.95
    assert (alarm > 0).mean() > 0.5


@CASES
def test_evidence_never_exceeds_the_exact_one_and_hardly_falls_short(loss, alpha):
    """All bets in rational arithmetic: half at once, the rest little by little."""
    y, sets = intervals(60)
    monitor = RiskMonitor(loss, alpha)
    claim, table, bound = Fraction(str(alpha)), loss.exact_costs(5), loss.bound(5)
    sizes = _bet_sizes(claim / bound)
    assert all(0 < size * claim / bound <= Fraction(1, 2) for size in sizes)
    wealth = [Fraction(0)] * len(sizes)
    kept, total, peak = Fraction(1), Fraction(0), Fraction(1)
    for row in range(1, 61):
        monitor.update(y[row - 1 : row], sets[row - 1 : row])
        label, lower, upper = int(y[row - 1]), sets.lower_index[row - 1], sets.upper_index[row - 1]
        cost = table[label][min(max(label, int(lower)), int(upper))]
        left = Fraction(1, 2) * Fraction(1000, 1000 + row)
        surplus = (cost - claim) / bound
        wealth = [(w + kept - left) * (1 + s * surplus) for w, s in zip(wealth, sizes, strict=True)]
        kept = left
        exact = sum(wealth) / len(wealth) + kept
        assert exact * (1 - Fraction(1, 10**11)) < Fraction(monitor.evidence_) < exact
        total += cost
        peak = max(peak, exact)
        assert monitor.risk_ == float(total / row)
        assert Fraction(monitor.p_value_) == pytest.approx(1 / peak, rel=1e-11)


def test_what_is_not_bet_yet_is_rounded_down_too():
    for row in range(1, 2_000):
        assert Fraction(float(_evidence(np.zeros(4), row))) < Fraction(1, 2) * Fraction(1000, 1000 + row)


@CASES
def test_no_bet_gains_on_average_while_the_claim_holds(loss, alpha):
    """The heart of the guarantee: of two losses that average alpha, the factors average just below 1."""
    monitor = RiskMonitor(loss, alpha, classes=range(5))
    costs, bound = loss.cost_table(5), float(loss.bound(5))
    worst = np.unravel_index(costs.argmax(), costs.shape)
    share = alpha / bound
    factors = monitor._bets.factors
    mean = share * factors(*worst) + (1 - share) * factors(0, 0)
    assert (mean < 1).all()
    assert mean == pytest.approx(np.ones(len(mean)), rel=1e-13)


def test_the_class_computes_what_was_simulated():
    y, sets = intervals(200)
    monitor = RiskMonitor("coverage", "0.3", delta=0.01)
    monitor.update(y, sets)
    sizes = _bet_sizes(Fraction(3, 10))
    factors = np.array([_factors(Fraction(-3, 10), sizes), _factors(Fraction(7, 10), sizes)]).T
    wealth, peak, alarm = np.zeros((len(sizes), 2)), 1.0, None  # the same stream twice
    for row, missed in enumerate(~sets.contains(y), start=1):
        wealth = _wealth_after(wealth, factors[:, [int(missed)] * 2], row)
        evidence = _evidence(wealth, row)
        peak = max(peak, evidence[0])
        alarm = row if alarm is None and evidence[1] >= 100 else alarm
    assert monitor._wealth.tolist() == wealth[:, 0].tolist()
    assert (monitor.evidence_, monitor.p_value_) == (evidence[0], 1 / peak)
    assert monitor.alarm_row_ == alarm is not None


@CASES
def test_batches_of_any_size_are_rows_one_by_one(loss, alpha, monkeypatch):
    y, sets = intervals(150)
    whole = RiskMonitor(loss, alpha)
    whole.update(y, sets)
    single = RiskMonitor(loss, alpha)
    answers = [single.update(y[i : i + 1], sets[i : i + 1]) for i in range(150)]
    assert state(single) == state(whole)
    assert answers.index(True) + 1 == whole.alarm_row_
    assert all(answers[whole.alarm_row_ :]), "the alarm stays"
    monkeypatch.setattr(monitoring, "_ROWS_AT_ONCE", 7)
    cut = RiskMonitor(loss, alpha)
    cut.update(y[:40], sets[:40])
    cut.update(y[40:40], sets[40:40])
    cut.update(y[40:], sets[40:])
    assert state(cut) == state(whole)


@pytest.mark.parametrize("case", ["coverage", "table", "root"])
def test_a_saved_monitor_goes_on_without_a_difference(case, tmp_path):
    loss, alpha = LOSSES[case]
    y, sets = intervals(40)
    alpha = alpha / 4
    whole = RiskMonitor(loss, alpha, classes=range(5))
    whole.update(y, sets)
    assert whole.alarm_
    for cut in range(41):
        first = RiskMonitor(loss, alpha, classes=range(5))
        first.update(y[:cut], sets[:cut])
        first.save(tmp_path / "monitor.json")
        second = RiskMonitor.load(tmp_path / "monitor.json")
        assert state(second)[2:] == state(first)[2:]
        assert repr(second) == repr(first)
        second.update(y[cut:], sets[cut:])
        assert state(second) == state(whole)


def test_units_of_the_loss_do_not_matter():
    y, sets = intervals(100)
    natural, shares = RiskMonitor(orisk.DivergenceLoss(normalize=False), 0.8), RiskMonitor("divergence", 0.2)
    natural.update(y, sets)
    shares.update(y, sets)
    assert state(natural)[2:] == state(shares)[2:]
    assert natural.risk_ == pytest.approx(4 * shares.risk_)


def test_the_p_value_falls_only_and_reaches_delta_with_the_alarm():
    y, sets = intervals(300)
    monitor = RiskMonitor("coverage", 0.35, delta="1/30")
    values = []
    for i in range(300):
        raised = monitor.update(y[i : i + 1], sets[i : i + 1])
        values.append(monitor.p_value_)
        assert raised == (monitor.p_value_ <= 1 / 30)
    assert values[0] <= 1
    assert values[-1] < 1 / 30
    assert (np.diff(values) <= 0).all()
    monitor.update([2] * 200, orisk.IntervalSet([2] * 200, [2] * 200, classes=range(5)))
    assert monitor.evidence_ < 1 < 1 / monitor.p_value_
    assert monitor.alarm_


def test_evidence_beyond_all_numbers_is_cut_off():
    monitor = RiskMonitor(alpha=0.001, delta="1e-299")
    monitor.update([0] * 400, orisk.IntervalSet([1] * 400, [1] * 400, classes=range(2)))
    assert 1e298 < monitor.evidence_ <= 1e300
    assert monitor.p_value_ >= 1e-300
    assert monitor.alarm_


def test_rows_without_a_loss_never_ring():
    monitor = RiskMonitor(alpha=0.5, delta=0.99)
    sets = orisk.IntervalSet([0] * 3_000, [1] * 3_000, classes=range(2))
    assert not monitor.update([0, 1] * 1_500, sets)
    assert (monitor.risk_, monitor.p_value_) == (0.0, 1.0)
    assert 0 < monitor.evidence_ < 0.2


def test_before_the_first_row_nothing_is_known():
    for monitor in (RiskMonitor(), RiskMonitor(classes=["low", "high"])):
        assert (monitor.n_rows_, monitor.evidence_, monitor.p_value_) == (0, 1.0, 1.0)
        assert math.isnan(monitor.risk_)
        assert (monitor.alarm_, monitor.alarm_row_) == (False, None)
        assert repr(monitor) == "RiskMonitor(loss=WeightedLoss(), alpha=0.1, delta=0.05)"
    assert monitor.classes_.tolist() == ["low", "high"]


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, "nan", None])
def test_a_delta_that_is_no_probability_is_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        RiskMonitor(delta=delta)


@pytest.mark.parametrize("alpha", [0, 1, 2, -1])
def test_an_alpha_beyond_the_losses_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and the largest loss"):
        RiskMonitor(alpha=alpha, classes=range(3))
    monitor = RiskMonitor(alpha=alpha)
    with pytest.raises(ValueError, match="alpha must lie strictly between"):
        monitor.update(*intervals(3))
    assert monitor.n_rows_ == 0


def test_rows_that_do_not_fit_change_nothing():
    y, sets = intervals(20)
    monitor = RiskMonitor(alpha=0.3)
    with pytest.raises(AttributeError, match="give classes="):
        monitor.classes_  # noqa: B018 - the attribute itself is refused
    with pytest.raises(AttributeError, match="give classes="):
        monitor.save("nowhere.json")
    with pytest.raises(ValueError, match=r"y\[1\] is 7"):
        monitor.update([0, 7], sets[:2])
    monitor.update(y, sets)
    before = state(monitor)
    others = orisk.IntervalSet([0], [1], classes=["a", "b"])
    for args, match in [
        ((["a"], others), r"classes \['a', 'b'\], but \[0, 1, 2, 3, 4\] are watched"),
        (([0, 1, 9], sets[:3]), r"y\[2\] is 9"),
        (([0, 1], sets[:3]), "one label for each of the 3 rows"),
        ((sets, y), "the labels come first|The labels come first"),
    ]:
        with pytest.raises(ValueError, match=match):
            monitor.update(*args)
        assert state(monitor) == before
    with pytest.raises(ValueError, match="are watched"):
        RiskMonitor(classes=["b", "a"]).update(["a"], others)
    with pytest.raises(AttributeError, match="alpha can't change"):
        monitor.alpha = 0.5


def test_labels_have_names_and_the_alarm_is_told():
    sets = orisk.IntervalSet([0] * 60, [1] * 60, classes=["none", "mild", "severe"])
    monitor = RiskMonitor("divergence", 0.1)
    assert monitor.update(["none", "severe"] * 30, sets)
    assert monitor.classes_.tolist() == ["none", "mild", "severe"]
    assert monitor.risk_ == 0.25
    told = f"alarm at row {monitor.alarm_row_}, p-value {monitor.p_value_:.3g} after 60 rows, mean loss 0.25"
    assert repr(monitor) == f"RiskMonitor(loss=DivergenceLoss(), alpha=0.1, delta=0.05): {told}"
    quiet = RiskMonitor(alpha=0.4)
    quiet.update(["none"], sets[:1])
    assert "no alarm, p-value 1 after 1 rows, mean loss 0" in repr(quiet)


BAD_FIELDS = {
    "loss": {"kind": "unknown"},
    "classes": "01234",
    "alpha": 3,
    "delta": 2,
    "n_rows": -1,
    "total_loss": "1/3",
    "wealth": ["0x1p+0"],
    "peak": "0x1p-1",
    "alarm_row": 999,
}


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        *BAD_FIELDS.items(),
        ("n_rows", 40.0),
        ("total_loss", "41"),
        ("total_loss", "-1"),
        ("wealth", "nan"),
        ("peak", "inf"),
        ("peak", "nan"),
        ("alarm_row", None),
        ("alarm_row", 0),
        ("classes", [0, 1, None, 3, 4]),
    ],
)
def test_a_document_that_can_not_be_is_refused_by_its_field(field, bad, tmp_path):
    path = tmp_path / "monitor.json"
    y, sets = intervals(40)
    monitor = RiskMonitor(alpha=0.1)
    assert monitor.update(y, sets)
    monitor.save(path)
    document = json.loads(path.read_text())
    assert set(BAD_FIELDS) == set(monitoring.SCHEMA.fields)
    values = {name: document[name] for name in monitoring.SCHEMA.fields}
    if field == "wealth" and bad == "nan":
        bad = [bad, *values["wealth"][1:]]
    monitoring.SCHEMA.write(values | {field: bad}, path)
    with pytest.raises(ValueError, match=f"field '{field}' is not valid"):
        RiskMonitor.load(path)


def test_classes_that_are_no_json_are_not_saved(tmp_path):
    for label in [(1, 2), math.inf]:
        classes = np.empty(2, object)
        classes[:] = ["a", label]
        monitor = RiskMonitor(classes=None)
        monitor.update(["a"], orisk.IntervalSet.of(np.zeros(1, np.int32), np.ones(1, np.int32), classes))
        with pytest.raises(ValueError, match="can't be saved"):
            monitor.save(tmp_path / "monitor.json")
    assert not list(tmp_path.iterdir())
