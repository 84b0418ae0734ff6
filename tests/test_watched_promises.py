"""A monitor of a guarantee about a share of the possible loss, or with exempt classes.

With ``relative`` the guarantee is E[L] <= alpha E[g_y], where g_y is the largest cost of the label y. Rows of
exempt classes have no guarantee. False alarms are as rare as for the plain guarantee.
"""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from saved_documents import rewrite
from test_monitoring import BAD_FIELDS, intervals, state

import ordinalrisk as orisk
from ordinalrisk import RiskMonitor

WEIGHTS = orisk.WeightedLoss([5, 1, 1, 2, 0], normalize=False)
TABLE = orisk.CostTableLoss([[0, 1, 3], [1, 0, 1], [6, 2, 0]], normalize=False)


def rung(streams, rows, times, seed=0, **monitored):
    """The share of streams with an alarm, and labels whose losses are 0.2 times ``times`` of the stakes.

    Class 0 costs 5 and is missed rarely, class 1 costs 1 and is missed often.
    """
    alarms = 0
    for stream in range(streams):
        rng = np.random.default_rng([seed, stream])
        y = (rng.random(rows) < 0.7).astype(int)  # E[g] = 0.3 * 5 + 0.7 * 1
        missed = rng.random(rows) < times * np.where(y == 0, 0.08, 0.32 / 0.7)  # E[L] = 0.12 + 0.32
        ends = np.where(missed, 2, 0), np.where(missed, 2, 1)
        monitor = RiskMonitor(WEIGHTS, 0.2, 0.2, range(5), **monitored)
        alarms += monitor.update(y, orisk.IntervalSet(*ends, classes=range(5)))
    return alarms / streams


def test_false_alarms_about_a_share_are_as_rare_as_promised():
    share = rung(300, 1_500, 1, relative=True)
    assert 0.2 / 10 < share <= 0.2 + 3 * math.sqrt(0.2 * 0.8 / 300)


def test_a_share_that_is_a_tenth_too_large_is_found():
    assert rung(40, 10_000, 1.1, seed=1, relative=True) > 0.2 + 3 * math.sqrt(0.2 * 0.8 / 40)


def test_the_mean_loss_of_these_rows_is_above_alpha():
    """A monitor of the mean loss would raise an alarm, although the relative guarantee holds."""
    assert rung(20, 1_500, 1) == 1


@pytest.mark.parametrize("by_cluster", [False, True], ids=["rows", "clusters"])
@pytest.mark.parametrize(
    ("loss", "alpha", "promise"),
    [
        (WEIGHTS, "0.2", {"relative": True}),
        (TABLE, "0.15", {"relative": True, "exempt_classes": [1]}),
        (WEIGHTS, "0.7", {"exempt_classes": [0, 3]}),
        (orisk.DivergenceLoss(), "0.1", {"relative": True}),
    ],
    ids=str,
)
def test_evidence_is_that_of_bets_on_the_excess_in_exact_arithmetic(loss, alpha, promise, by_cluster):
    """Each factor is 1 + size (L - alpha s) / B, where s is 1 or the largest cost of the true label."""
    K = 3 if loss is TABLE else 5
    y, sets = intervals(90, K=K)
    costs, bound = loss.exact_costs(K), loss.bound(K)
    claim, relative = Fraction(alpha), promise.get("relative", False)
    exempt = promise.get("exempt_classes", [])
    clusters = np.arange(90) // 3 if by_cluster else np.arange(90)
    monitor = RiskMonitor(loss, alpha, **promise)
    monitor.update(y, sets, **({"clusters": clusters} if by_cluster else {}))
    ends = zip(sets.lower_index.tolist(), sets.upper_index.tolist(), strict=True)
    losses = [
        costs[label][min(max(label, low), high)] for label, (low, high) in zip(y.tolist(), ends, strict=True)
    ]
    largest = Fraction(1, 2) / (claim if relative else claim / bound)  # half is left after a row without loss
    sizes = [size for size in (Fraction(2**k, 32) for k in range(12)) if size <= largest]
    wealth, kept, row, lost, staked = [Fraction(0)] * len(sizes), Fraction(1), 0, Fraction(0), Fraction(0)
    for cluster in range(clusters[-1] + 1):
        rows = [i for i in np.flatnonzero(clusters == cluster).tolist() if y[i] not in exempt]
        if not rows:
            continue
        row += 1
        loss_here = sum(losses[i] for i in rows) / Fraction(len(rows))
        stake = sum(max(costs[y[i]]) if relative else Fraction(1) for i in rows) / Fraction(len(rows))
        left = Fraction(1, 2) * Fraction(1000, 1000 + row)
        surplus = (loss_here - claim * stake) / bound
        wealth = [(w + kept - left) * (1 + s * surplus) for w, s in zip(wealth, sizes, strict=True)]
        kept, lost, staked = left, lost + loss_here, staked + stake
    exact = sum(wealth) / len(wealth) + kept
    assert exact * (1 - Fraction(1, 10**10)) < Fraction(monitor.evidence_) < exact
    assert monitor.n_rows_ == row
    assert monitor.n_exempt_ == np.isin(y, exempt).sum()
    assert monitor.risk_ == pytest.approx(float(lost / staked))


def test_a_share_is_the_mean_loss_if_every_class_costs_the_same():
    y, sets = intervals(150)
    plain, relative = (RiskMonitor("coverage", 0.2, relative=relative) for relative in (False, True))
    assert plain.update(y, sets)
    assert relative.update(y, sets)
    assert state(relative) == state(plain)


def test_rows_of_exempt_classes_are_left_out():
    y, sets = intervals(150)
    others = np.flatnonzero(~np.isin(y, [1, 4]))
    exempting, without = RiskMonitor(WEIGHTS, 0.5, exempt_classes=[4, 1]), RiskMonitor(WEIGHTS, 0.5)
    exempting.update(y, sets)
    without.update(y[others], sets[others])
    assert state(exempting) == state(without)
    assert (exempting.n_exempt_, without.n_exempt_) == (150 - len(others), 0)


@pytest.mark.parametrize("clusters", [None, np.arange(160) // 4], ids=["rows", "clusters"])
@pytest.mark.parametrize(
    "promise",
    [{"relative": True}, {"exempt_classes": [0]}, {"relative": True, "exempt_classes": [2]}],
    ids=str,
)
def test_any_cut_and_any_number_of_saves_give_the_same_state(promise, clusters, tmp_path):
    y, sets = intervals(160)
    whole, parted = (RiskMonitor(WEIGHTS, "0.1", **promise) for _ in range(2))
    whole.update(y, sets, clusters=clusters)
    for start, stop in [(0, 4), (4, 4), (4, 40), (40, 160)]:
        given = None if clusters is None else clusters[start:stop]
        parted.update(y[start:stop], sets[start:stop], clusters=given)
        parted.save(tmp_path / "monitor.json")
        parted = RiskMonitor.load(tmp_path / "monitor.json")
    assert whole.alarm_
    assert state(parted) == state(whole)
    assert repr(parted) == repr(whole)
    assert (parted.relative, parted.n_exempt_) == (whole.relative, whole.n_exempt_)


def test_nothing_at_stake_has_no_share():
    monitor = RiskMonitor(WEIGHTS, 0.5, relative=True)
    monitor.update([4, 4], orisk.IntervalSet([0, 0], [0, 0], classes=range(5)))
    assert math.isnan(monitor.risk_)
    assert (monitor.n_rows_, monitor.alarm_) == (2, False)
    assert repr(monitor).endswith("after 2 rows, share lost nan")


def test_a_promise_that_is_none_is_refused():
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1 with relative=True"):
        RiskMonitor(WEIGHTS, 1.5, classes=range(5), relative=True)
    RiskMonitor(WEIGHTS, 1.5, classes=range(5))
    for exempt, match in [
        (["none"], "exempt_classes has 'none', which is not one of the classes 0, 1, 2, 3, 4"),
        (range(5), "exempt_classes has every class"),
        ("01", "exempt_classes must be a sequence of labels; got '01'"),
    ]:
        with pytest.raises(ValueError, match=match):
            RiskMonitor(classes=range(5), exempt_classes=exempt)
    with pytest.raises(ValueError, match="relative must be True or False; got 1"):
        RiskMonitor(relative=1)
    with pytest.raises(AttributeError, match="relative can't change"):
        RiskMonitor().relative = True


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("relative", False),
        ("stakes", None),
        ("stakes", {"total": "201", "lowest": "0", "recent": ["1"] * 40}),
        ("stakes", {"recent": []}),
        ("stakes", {"recent": ["0"] * 28}),
        ("stakes", {"recent": ["5"] * 28}),
        ("stakes", {"total": "100", "lowest": "101"}),
        ("alpha", 1),
        ("n_exempt", -1),
        ("exempt_classes", [9]),
        ("exempt_classes", [0, 1, 2, 3, 4]),
    ],
)
def test_a_document_of_a_share_that_can_not_be_is_refused_by_its_field(field, bad, tmp_path):
    path = tmp_path / "monitor.json"
    y, sets = intervals(40)
    monitor = RiskMonitor(WEIGHTS, 0.1, relative=True, exempt_classes=[1])
    monitor.update(y, sets)
    monitor.save(path)
    document = json.loads(path.read_text())
    assert {*document} >= {*BAD_FIELDS}
    if isinstance(bad, dict):
        bad = document[field] | bad
    rewrite(path, **{field: bad})
    named = "stakes" if field == "relative" else field
    with pytest.raises(ValueError, match=f"field '{named}' is not valid"):
        RiskMonitor.load(path)
