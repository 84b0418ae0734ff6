"""False alarms have probability at most delta over all time, and a grown risk soon raises the alarm.

Streams of losses are simulated straight into the two functions that the class computes its evidence with, one
test states that the class does so, and one that they never exceed the evidence in exact arithmetic.
"""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from saved_documents import rewrite, with_digests
from test_drift import alarms

import ordinalrisk as orisk
from ordinalrisk import RiskMonitor
from ordinalrisk.calibration.score_counts import score_counts, two_sample_p_value
from ordinalrisk.sequential import betting_run, drift
from ordinalrisk.sequential.wealth import bet_sizes, evidence_after, loss_bet_factors, wealth_after

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
        (monitor.risk_, monitor.recent_risk_, monitor._run.lowest),
        monitor.evidence_,
        monitor.p_value_,
        monitor.alarm_,
        monitor.alarm_row_,
        monitor.rise_row_,
        monitor._run.bets.wealth.tolist(),
    )


def first_alarms(rows, streams, alpha, delta, risk, size=1, seed=0):
    """The row of the alarm in each stream of losses of ``size`` or 0; 0 if there is none.

    ``risk`` is a function of the row number.
    """
    rng = np.random.default_rng(seed)
    claim = Fraction(alpha)
    sizes = bet_sizes(claim)
    factors = np.array([loss_bet_factors(-claim, sizes), loss_bet_factors(Fraction(size) - claim, sizes)]).T
    wealth, alarm = np.zeros((len(sizes), streams)), np.zeros(streams, int)
    for row in range(1, rows + 1):
        lost = rng.random(streams) < risk(row) / float(Fraction(size))
        wealth = wealth_after(wealth, factors[:, lost.astype(int)], row)
        alarm[(alarm == 0) & (evidence_after(wealth, row) >= 1 / delta)] = row
    return alarm


@pytest.mark.parametrize(
    ("alpha", "delta", "size", "seed"),
    [("0.1", 0.05, 1, 1), ("0.2", 0.2, 1, 2), ("0.05", 0.2, "1/4", 3)],
    ids=["one in ten", "one in five", "small losses"],
)
def test_false_alarms_are_as_rare_as_promised(alpha, delta, size, seed):
    rung = first_alarms(3_000, 2_000, alpha, delta, lambda row: float(Fraction(alpha)), size, seed) > 0
    assert rung.mean() <= delta + 3 * math.sqrt(delta * (1 - delta) / 2_000)
    assert rung.mean() > delta / 5, "the monitor raised no alarm at all, so this shows nothing"


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
    sizes = bet_sizes(claim / bound)
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
        assert Fraction(float(evidence_after(np.zeros(4), row))) < Fraction(1, 2) * Fraction(1000, 1000 + row)


@CASES
def test_no_bet_gains_on_average_while_the_claim_holds(loss, alpha):
    """The heart of the guarantee: of two losses that average alpha, the factors average just below 1."""
    monitor = RiskMonitor(loss, alpha, classes=range(5))
    costs, bound = loss.cost_table(5), float(loss.bound(5))
    worst = np.unravel_index(costs.argmax(), costs.shape)
    share = alpha / bound
    factors = monitor._run.factors
    mean = share * factors(*worst) + (1 - share) * factors(0, 0)
    assert (mean < 1).all()
    assert mean == pytest.approx(np.ones(len(mean)), rel=1e-13)


def test_the_class_computes_what_was_simulated():
    y, sets = intervals(200)
    monitor = RiskMonitor("coverage", "0.3", delta=0.01)
    monitor.update(y, sets)
    sizes = bet_sizes(Fraction(3, 10))
    factors = np.array(
        [loss_bet_factors(Fraction(-3, 10), sizes), loss_bet_factors(Fraction(7, 10), sizes)]
    ).T
    wealth, peak, alarm = np.zeros((len(sizes), 2)), 1.0, None  # the same stream twice
    for row, missed in enumerate(~sets.contains(y), start=1):
        wealth = wealth_after(wealth, factors[:, [int(missed)] * 2], row)
        evidence = evidence_after(wealth, row)
        peak = max(peak, evidence[0])
        alarm = row if alarm is None and evidence[1] >= 100 else alarm
    assert monitor._run.bets.wealth.tolist() == wealth[:, 0].tolist()
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
    monkeypatch.setattr(betting_run, "_ROWS_AT_ONCE", 7)
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


def test_when_the_loss_began_to_rise_is_where_its_excess_was_lowest():
    rows = []
    for seed in range(21):
        rng = np.random.default_rng(seed)
        missed = rng.random(3_000) < np.where(np.arange(3_000) < 2_000, 0.08, 0.3)
        monitor = RiskMonitor(alpha=0.1, delta="1e-6")
        sets = orisk.IntervalSet([0] * 3_000, [1] * 3_000, classes=range(3))
        assert monitor.rise_row_ is None
        assert monitor.update(np.where(missed, 2, 0), sets)
        excess = np.cumsum(missed[: monitor.alarm_row_] - 0.1).round(9)
        assert monitor.rise_row_ == len(excess) - excess[::-1].argmin() + 1
        rows.append(monitor.rise_row_)
        assert monitor.recent_risk_ == missed[-500:].mean()
        assert missed[monitor.rise_row_ - 1], "it begins with a loss"
    assert abs(np.median(rows) - 2_000) < 30


def clustered_misses(rng, n, risk, size=5):
    """Clusters of 1 to ``size`` rows: the chance of a miss is that of a row, all rows of some are missed."""
    sizes = rng.integers(1, size + 1, n)
    return np.repeat(np.arange(n), sizes), np.repeat(rng.random(n) < risk, sizes)


def test_false_alarms_with_clusters_are_as_rare_as_promised():
    """One factor for each cluster keeps the guarantee; rows of these clusters, taken one by one, break it."""
    delta, streams, n = 0.2, 300, 400
    rung = {True: 0, False: 0}
    sets = orisk.IntervalSet([0] * 5 * n, [0] * 5 * n, classes=range(2))
    for seed in range(streams):
        clusters, missed = clustered_misses(np.random.default_rng(seed), n, 0.2)
        for by_cluster in rung:
            monitor = RiskMonitor(alpha=0.2, delta=delta)
            given = {"clusters": clusters} if by_cluster else {}
            rung[by_cluster] += monitor.update(missed.astype(int), sets[: len(missed)], **given)
    assert rung[True] / streams <= delta + 3 * math.sqrt(delta * (1 - delta) / streams)
    assert rung[True] > 0
    assert rung[False] / streams > delta + 3 * math.sqrt(delta * (1 - delta) / streams)


def test_a_risk_of_clusters_that_is_a_tenth_too_large_is_found():
    rung, n = 0, 6_000
    sets = orisk.IntervalSet([0] * 2 * n, [0] * 2 * n, classes=range(2))
    for seed in range(30):
        clusters, missed = clustered_misses(np.random.default_rng(seed), n, 0.22, size=2)
        rung += RiskMonitor(alpha=0.2, delta=0.2).update(
            missed.astype(int), sets[: len(missed)], clusters=clusters
        )
    assert rung / 30 > 0.6


@CASES
def test_a_cluster_is_a_row_with_the_mean_loss_of_its_rows(loss, alpha):
    y, sets = intervals(60)
    doubled = orisk.IntervalSet(
        np.repeat(sets.lower_index, 2), np.repeat(sets.upper_index, 2), classes=range(5)
    )
    by_row, by_cluster = RiskMonitor(loss, alpha), RiskMonitor(loss, alpha)
    by_row.update(y, sets)
    order = np.r_[0:120:2, np.random.default_rng(0).permutation(np.r_[1:120:2])]
    by_cluster.update(np.repeat(y, 2)[order], doubled[order], clusters=order // 2)
    assert state(by_cluster) == state(by_row)


def test_whole_clusters_in_any_batches_are_one_run_and_are_saved(tmp_path):
    y, sets = intervals(90)
    clusters = np.repeat([f"patient {i}" for i in range(30)], 3)
    whole, parted = RiskMonitor("divergence", 0.1), RiskMonitor("divergence", 0.1)
    assert whole.update(y, sets, clusters=clusters)
    for start, stop in [(0, 3), (3, 60), (60, 60), (60, 90)]:
        parted.update(y[start:stop], sets[start:stop], clusters=clusters[start:stop])
        parted.save(tmp_path / "monitor.json")
        parted = RiskMonitor.load(tmp_path / "monitor.json")
    assert state(parted) == state(whole)
    assert parted.n_rows_ == 30
    means = [
        orisk.metrics.losses(y, sets, "divergence")[clusters == name].mean()
        for name in dict.fromkeys(clusters)
    ]
    assert parted.risk_ == pytest.approx(np.mean(means))
    assert "patient" not in (tmp_path / "monitor.json").read_text(), "only digests of names are kept"
    before = state(parted)
    for name, given in [("patient 29", {"clusters": ["new", "patient 29"]}), ("begun with clusters", {})]:
        with pytest.raises(ValueError, match=name):
            parted.update([0, 0], sets[:2], **given)
        assert state(parted) == before
    monitor = RiskMonitor()
    monitor.update(y, sets)
    with pytest.raises(ValueError, match="begun without clusters"):
        monitor.update(y, sets, clusters=clusters)


def test_the_name_of_a_cluster_is_the_same_in_files_of_every_format():
    monitor = RiskMonitor(classes=range(5))
    _, sets = intervals(1)
    monitor.update([0], sets, clusters=[7])
    for same in ("7", 7.0):
        with pytest.raises(ValueError, match="a cluster that was watched before"):
            monitor.update([0], sets, clusters=[same])


@pytest.mark.parametrize("late", ["by chance", "without a loss"])
def test_late_labels_are_fine_if_it_is_chance_which_come_late(late):
    """Rows are watched as labels arrive. If misses become known first, false alarms are no longer rare."""
    delta, streams, n = 0.2, 400, 1_500
    rung, sets = 0, orisk.IntervalSet([0] * n, [0] * n, classes=range(2))
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        missed = rng.random(n) < 0.2
        delay = rng.exponential(200, n) * (True if late == "by chance" else ~missed)
        rung += RiskMonitor(alpha=0.2, delta=delta).update(
            missed[np.argsort(np.arange(n) + delay)].astype(int), sets
        )
    rare = delta + 3 * math.sqrt(delta * (1 - delta) / streams)
    assert rung / streams <= rare if late == "by chance" else rung / streams > rare


def test_fingerprints_are_kept_and_known_again(tmp_path):
    monitor = RiskMonitor(classes=range(3))
    monitor.remember("ab" * 32, 7)
    monitor.save(tmp_path / "monitor.json")
    monitor = RiskMonitor.load(tmp_path / "monitor.json")
    with pytest.raises(ValueError, match=r"These 7 rows were watched before.*again=True"):
        monitor.remember("ab" * 32, 7)
    monitor.remember("ab" * 32, 7, again=True)
    monitor.remember("cd" * 32, 7)
    assert len(monitor.files_) == 3
    for bad in [("ab", 7), ("ab" * 32, 0), ("AB" * 32, 7), (None, 7)]:
        with pytest.raises(ValueError, match="must be"):
            monitor.remember(*bad)


def test_a_monitor_of_schema_1_goes_on(tmp_path):
    path = tmp_path / "monitor.json"
    y, sets = intervals(40)
    monitor = RiskMonitor(alpha=0.1, classes=range(5))
    monitor.update(y[:20] * 0, orisk.IntervalSet([0] * 20, [0] * 20, classes=range(5)))
    monitor.save(path)
    document = json.loads(path.read_text()) | {"schema_version": 1}
    new_in_3 = ("relative", "exempt_classes", "n_exempt", "stakes")
    for name in ("lowest", "recent", "rise_row", "clusters", "files", *new_in_3):
        del document[name]
    path.write_text(json.dumps(with_digests(document)))
    old = RiskMonitor.load(path)
    assert math.isnan(old.recent_risk_)
    assert old.files_ == []
    for each in (old, monitor):
        assert each.update(y, sets)
    assert state(old)[2:] == state(monitor)[2:]
    assert (old.n_rows_, old.risk_) == (60, monitor.risk_)
    assert old.rise_row_ > 20


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
    "rise_row": 999,
    "lowest": {"n_rows": 41, "total_loss": "0"},
    "recent": ["1"] * 41,
    "clusters": [],
    "files": [{"n_rows": 0, "blake3": "0" * 64}],
    "relative": 1,
    "exempt_classes": [5],
    "n_exempt": 1,
    "stakes": {"total": "1", "lowest": "0", "recent": []},
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
        ("rise_row", 0),
        ("lowest", {"n_rows": 1, "total_loss": "41"}),
        ("lowest", {"n_rows": 0, "total_loss": "1"}),
        ("recent", ["-1"]),
        ("clusters", ["patient"] * 40),
        ("clusters", ["0" * 16] * 40),
        ("files", [{"n_rows": 1, "blake3": "0"}]),
        ("classes", [0, 1, None, 3, 4]),
    ],
)
def test_a_document_that_can_not_be_is_refused_by_its_field(field, bad, tmp_path):
    path = tmp_path / "monitor.json"
    y, sets = intervals(40)
    monitor = RiskMonitor(alpha=0.1)
    assert monitor.update(y, sets)
    monitor.save(path)
    if field == "wealth" and bad == "nan":
        bad = [bad, *json.loads(path.read_text())["wealth"][1:]]
    assert rewrite(path, **{field: bad}) == set(BAD_FIELDS)
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


def test_p_values_of_drift_are_uniform_and_independent(monkeypatch):
    """The heart of the guarantee, however often scores tie: a tenth more small ones would be found."""
    found, win = [], drift.score_bet_factors
    monkeypatch.setattr(drift, "score_bet_factors", lambda p: found.append(p) or win(p))
    alarms(400, 60, 0.2, n_rows=100)
    p_values = np.array(found).reshape(400, 100)
    shares = np.bincount((p_values * 10).astype(int).ravel(), minlength=10) / p_values.size
    assert abs(shares - 0.1).max() < 0.006  # the standard error is 0.0015
    assert abs(np.corrcoef(p_values, rowvar=False)[np.triu_indices(100, 1)].mean()) < 0.002
    in_stream = p_values.mean(axis=1)  # its variance would be larger if they went together
    assert in_stream.var() == pytest.approx(1 / 12 / 100, rel=0.25)


def test_bets_on_p_values_that_are_uniform_win_nothing_on_average():
    points, weights = np.polynomial.legendre.leggauss(8)  # exact for polynomials up to degree 15
    factors = np.array([drift.score_bet_factors((1 + point) / 2) for point in points])
    mean = weights @ factors / 2
    assert (mean < 1).all()
    assert mean == pytest.approx(np.ones(len(mean)), abs=1e-13)
    assert (np.array([drift.score_bet_factors(p) for p in np.linspace(0, 1, 101)]) >= 0).all()


@pytest.mark.parametrize(("n", "m"), [(50, 30), (400, 100)])
def test_a_note_about_scores_is_false_as_rarely_as_its_p_value_says(n, m):
    """Not above its level, and not far below it, so that files which differ are found."""
    rng = np.random.default_rng(n)

    def p_value(shift=0.0):
        proba = rng.dirichlet([6 - shift, 2, 1], n + m)
        old = score_counts(rng.dirichlet([6, 2, 1], n))
        return two_sample_p_value(old, score_counts(proba[:m]))

    same = np.array([p_value() for _ in range(2_000)])
    for level in (0.2, 0.05):
        assert level / 4 < (same <= level).mean() <= level + 3 * math.sqrt(level * (1 - level) / 2_000)
    assert (np.array([p_value(3) for _ in range(100)]) < 0.001).mean() > (0.5 if n > 100 else 0.1)
