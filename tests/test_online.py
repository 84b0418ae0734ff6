"""Sets handed out in any batches keep their bound against everyone, and find alpha on ordinary rows."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saved_documents import rewrite
from strategies import RULE_NAMES, as_rule, exact_losses
from unchecked import UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import OnlineRiskController

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
    counts = controller.n_rows_, controller.n_pending_, controller.most_pending_
    return *counts, controller.risk_, controller.threshold_, controller._run.place


def costliest(table, interval):
    """The label with the highest cost for a set that the adversary sees."""
    lower, upper = interval
    return max(range(len(table)), key=lambda y: table[y][min(max(y, lower), upper)])


class Ledger:
    """A controller, and the loss of each row handed out: if it is pending, the largest possible one."""

    def __init__(self, controller, loss, K):
        self.controller, self.loss, self.table = controller, loss, loss.exact_costs(K)
        self.ends, self.losses = [], []

    def hand_out(self, proba):
        """The numbers of the rows."""
        first = self.controller.n_rows_
        self.record(self.controller.predict_set(proba))
        return list(range(first, self.controller.n_rows_))

    def record(self, sets):
        ends = [*zip(sets.lower_index.tolist(), sets.upper_index.tolist(), strict=True)]
        self.ends += ends
        self.losses += [self.cost(costliest(self.table, each), each) for each in ends]

    def settle(self, labels, rows):
        self.controller.update(labels, rows)
        for y, row in zip(labels, rows, strict=True):
            self.losses[row] = self.cost(y, self.ends[row])

    def replay(self, proba, labels):
        first = len(self.ends)
        self.record(self.controller.replay(proba, labels))
        self.losses[first:] = map(self.cost, labels, self.ends[first:])

    def cost(self, y, ends):
        return exact_losses([y], [ends[0]], [ends[1]], self.loss, len(self.table))[0]

    def assert_within_the_bound(self):
        controller, n = self.controller, len(self.losses)
        assert (controller.n_rows_, len(self.ends)) == (n, n)
        if n:
            assert sum(self.losses) <= n * controller.bound_so_far()
            assert controller.bound_so_far() == controller.bound_after(n, controller.most_pending_)

    def assert_all_parts_are_within_their_bounds(self):
        controller, b, totals = self.controller, self.controller.most_pending_, [Fraction(0)]
        for loss in self.losses:
            totals.append(totals[-1] + loss)
        for n in {*range(1, len(totals), 9), len(self.losses)} - {0}:
            assert totals[n] <= n * controller.bound_after(n, b)
            window = max(map(Fraction.__sub__, totals[n:], totals))
            assert window <= n * controller.bound_over_any(n, b)


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
    controller = OnlineRiskController(loss, alpha, growth, range(K), rate="0.04")
    replayed = OnlineRiskController(loss, alpha, growth, range(K), rate="0.04")
    ledger = Ledger(controller, loss, K)
    for row, proba in enumerate(np.concatenate(kinds)):
        [number] = ledger.hand_out(proba[None])
        y = adversary(row, proba, ledger.ends[number], controller, ledger.table)
        ledger.assert_within_the_bound()
        ledger.settle([y], [number])
        assert replayed.replay(proba[None], [y])[0] == ledger.ends[number], "replay is one row at a time"
        assert state(replayed) == state(controller)
        assert controller.risk_ == float(sum(ledger.losses) / (row + 1))
        ledger.assert_within_the_bound()
    assert controller.most_pending_ == 1
    ledger.assert_all_parts_are_within_their_bounds()


def in_order(rng, rows):
    return rows


def last_first(rng, rows):
    return rows[::-1]


def in_any_order(rng, rows):
    return rng.permutation(rows).tolist()


@EVERY_RULE
@EVERY_LOSS
@pytest.mark.parametrize(
    ("batch", "delay", "order"),
    [(7, 0, last_first), (30, 0, in_any_order), (6, 3, in_order), (6, 3, last_first)],
)
def test_sets_delivered_in_batches_are_within_the_bound(loss, alpha, growth, batch, delay, order):
    """The adversary sees every set; labels come ``delay`` batches late, in whatever order."""
    rng = np.random.default_rng(15)
    ledger = Ledger(OnlineRiskController(loss, alpha, growth, range(K), rate="0.04"), loss, K)
    pending = []
    for t in range(240 // batch):
        proba = rng.dirichlet(np.ones(K), batch) if t % 2 else np.eye(K)[rng.integers(0, K, batch)]
        pending += ledger.hand_out(proba)
        ledger.assert_within_the_bound()
        if t >= delay:
            pending = order(rng, pending)
            labels = [costliest(ledger.table, ledger.ends[row]) for row in pending[:batch]]
            ledger.settle(labels, pending[:batch])
            pending = pending[batch:]
    assert ledger.controller.most_pending_ == batch * (delay + 1)
    ledger.assert_all_parts_are_within_their_bounds()


CERTAIN = {
    **{name: (*case, 5) for name, case in LOSSES.items()},
    "two classes": (orisk.WeightedLoss(), "0.1", 2),
    "nine classes": (orisk.DivergenceLoss(power=2), "0.2", 9),
}
CERTAIN_ROWS = pytest.mark.parametrize(
    ("loss", "alpha", "K", "growth"),
    [
        pytest.param(*case, growth, id=f"{name}-{growth}")
        for name, case in CERTAIN.items()
        for growth in ("paper", "frontier", "adaptive")
        if (name, growth) != ("weighted, natural units", "paper")  # its levels measure against 1, not 0
    ],
)


class Certain:
    """Rows with probabilities of 0 and 1: their sets are single labels until all sets are full."""

    def __init__(self, loss, alpha, growth, K):
        table = loss.exact_costs(K)
        self.B = loss.bound(K)
        self.wrong = next(y for y in range(K) if max(table[y]) == self.B)
        self.right = max(range(K), key=lambda k: table[self.wrong][k])
        self.controller = OnlineRiskController(loss, alpha, growth, range(K), rate="0.04")

    def sets_are_full(self):
        return self.controller.threshold_ == -math.inf

    def hand_out(self, n):
        self.controller.predict_set(np.eye(len(self.controller.classes_))[[self.right] * n])

    def in_turn(self, label, full):
        """Predict one row and settle it with this label, until sets become full or stop being full."""
        while self.sets_are_full() != full:
            self.hand_out(1)
            self.controller.update([label], [self.controller.n_rows_ - 1])

    def total_loss(self):
        settled = self.controller.n_rows_ - self.controller.n_pending_
        return self.B * round(Fraction(self.controller.risk_) * settled / self.B)  # every miss costs B

    def attack(self, batch, times):
        """Lose all that ``batch`` rows can lose whenever sets are not full."""
        for _ in range(times):
            self.in_turn(self.right, full=False)
            while not self.sets_are_full():
                self.hand_out(batch)
                self.controller.update([self.wrong] * batch)


@pytest.mark.parametrize("batch", [1, 3, 60])
@CERTAIN_ROWS
def test_the_bound_is_reached(loss, alpha, K, growth, batch):
    """Within the loss of one row, so that a tenth less in the number of pending rows would be too little."""
    rows = Certain(loss, alpha, growth, K)
    rows.attack(batch, times=3)
    controller, lost = rows.controller, rows.total_loss()
    n = controller.n_rows_
    assert controller.most_pending_ == batch
    assert controller.bound_so_far() < rows.B, "it says something"
    limit = n * controller.bound_so_far()
    assert limit - rows.B <= lost <= limit
    if batch == 60:
        assert lost > n * controller.bound_after(n, pending=54)


@pytest.mark.parametrize("batch", [1, 3, 60])
@CERTAIN_ROWS
def test_the_bound_over_any_rows_is_reached(loss, alpha, K, growth, batch):
    """Rows before the window make room when they are settled within it."""
    rows = Certain(loss, alpha, growth, K)
    controller = rows.controller
    controller.replay(np.eye(K)[[rows.right] * 2_000], [rows.right] * 2_000)
    assert (controller.threshold_, controller.risk_) == (math.inf, 0)
    if batch > 1:
        rows.hand_out(batch - 1)
    first = controller.n_rows_
    rows.in_turn(rows.wrong, full=True)
    controller.update([rows.right] * (batch - 1), range(first - batch + 1, first))
    rows.attack(batch, times=3)
    n, lost = controller.n_rows_ - first, rows.total_loss()
    assert controller.most_pending_ == batch
    limit = n * controller.bound_over_any(n, batch)
    assert limit < n * rows.B
    assert limit - rows.B <= lost <= limit
    if batch == 60:
        assert lost > n * controller.bound_over_any(n, pending=54)


def test_three_classes_in_batches_of_a_hundred():
    """The labels of a batch are chosen by someone who sees its sets; they come when all are in use."""
    loss = orisk.WeightedLoss()
    ledger = Ledger(OnlineRiskController(loss, 0.1, classes=range(3)), loss, 3)
    proba = np.eye(3)[[0] * 100]
    for _ in range(60):
        rows = ledger.hand_out(proba)
        ledger.settle([costliest(ledger.table, ledger.ends[row]) for row in rows], rows)
        ledger.assert_within_the_bound()
    delivered, controller = sum(ledger.losses) / 6_000, ledger.controller
    assert controller.bound_after(6_000) < delivered <= controller.bound_after(6_000, pending=100)
    assert controller.bound_after(6_000, pending=100) == controller.bound_so_far() < Fraction("0.131")


def test_without_labels_nothing_is_promised():
    loss = orisk.WeightedLoss()
    ledger = Ledger(OnlineRiskController(loss, 0.1, classes=range(3)), loss, 3)
    for t in range(1, 20):
        ledger.hand_out(np.eye(3)[[0] * 50])
        ledger.assert_within_the_bound()
        controller = ledger.controller
        assert (controller.n_rows_, controller.n_pending_, controller.most_pending_) == (50 * t,) * 3
        assert controller.bound_so_far() == 1
        assert math.isnan(controller.risk_)


def test_labels_of_bad_rows_that_never_come_are_in_the_bound():
    """Only rows without a loss are settled: their mean says nothing, the bound counts the others."""
    loss = orisk.WeightedLoss()
    ledger = Ledger(OnlineRiskController(loss, 0.1, classes=range(3), rate="0.04"), loss, 3)
    for _ in range(200):
        rows = ledger.hand_out(np.eye(3)[[0] * 10])
        ledger.settle([0] * 7, rows[:7])
        ledger.assert_within_the_bound()
    assert ledger.controller.risk_ == 0
    assert ledger.controller.most_pending_ == 200 * 3 + 7
    assert sum(ledger.losses) == 200 * 3 <= 2_000 * ledger.controller.bound_so_far() < 2_000 * Fraction("0.4")


@st.composite
def interleavings(draw):
    """Rows handed out, settled in any order, replayed: what each step does, and to how many rows."""
    loss, alpha = LOSSES[draw(st.sampled_from([*LOSSES]))]
    rate = draw(st.sampled_from(["0.04", "0.3", "1"]))
    step = st.tuples(st.sampled_from(["hand out", "settle", "settle", "replay"]), st.integers(0, 9))
    steps = draw(st.lists(step, max_size=25))
    return loss, alpha, draw(st.sampled_from(RULE_NAMES)), rate, steps, draw(st.integers(0, 2**32 - 1))


@settings(max_examples=60)
@given(case=interleavings())
def test_the_bound_holds_at_each_moment_and_saving_changes_nothing(case, tmp_path_factory):
    loss, alpha, growth, rate, steps, seed = case
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("run") / "run.json"
    ledger = Ledger(OnlineRiskController(loss, alpha, growth, range(K), rate=rate), loss, K)
    same = OnlineRiskController(loss, alpha, growth, range(K), rate=rate)
    pending = []
    for what, n in steps:
        sure = rng.random() < 0.5
        proba = np.eye(K)[rng.integers(0, K, n + 1)] if sure else rng.dirichlet(np.ones(K), n + 1)
        same.save(path)
        same = OnlineRiskController.load(path)
        if what == "hand out":
            rows = ledger.hand_out(proba)
            pending += rows
            sets = same.predict_set(proba)
            assert [*zip(sets.lower_index, sets.upper_index, strict=True)] == ledger.ends[rows[0] :]
        elif what == "settle":
            rows = rng.permutation(pending)[:n].astype(int).tolist()
            hostile = rng.random() < 0.7
            labels = [
                costliest(ledger.table, ledger.ends[r]) if hostile else int(rng.integers(K)) for r in rows
            ]
            ledger.settle(labels, rows)
            same.update(labels, rows)
            pending = [row for row in pending if row not in rows]
        else:
            labels = rng.integers(0, K, n + 1).tolist()
            ledger.replay(proba, labels)
            same.replay(proba, labels)
        assert state(same) == pytest.approx(state(ledger.controller), rel=0, abs=0, nan_ok=True)
        assert same.n_pending_ == len(pending)
        ledger.assert_within_the_bound()
    ledger.assert_all_parts_are_within_their_bounds()
    ledger.controller.save(path)
    text = path.read_text()
    same.save(path)
    assert path.read_text() == text


def test_labels_go_to_the_oldest_pending_rows_or_to_those_named():
    proba = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    by_number, by_age = (OnlineRiskController(alpha=0.2, classes=range(3)) for _ in range(2))
    for controller in (by_number, by_age):
        controller.predict_set(proba)
    by_number.update([1, 1], rows=[4, 1])
    by_number.update([0, 0], rows=np.array([0, 2]))
    by_number.update([2, 0])  # rows 3 and 5: two misses
    assert by_number.risk_ == 0.5
    assert by_age.update([0, 1, 0]).update(pd.Series([2])).update([1, 0]).risk_ == 0.5
    assert (by_age.n_pending_, by_age.most_pending_, by_age.n_rows_) == (0, 6, 6)
    assert by_age.update([]) is by_age


@pytest.mark.parametrize(
    ("y", "rows", "match"),
    [
        ([0] * 5, None, "y has 5 labels, but only 4 rows are pending"),
        ([0], [6], "Row 6 was never handed out; there are 6 rows so far"),
        ([0], [-1], "Row -1 was never handed out"),
        ([0, 0], [5, 1], "Row 1 is settled already"),
        ([0, 0], [4, 4], "Row 4 is in rows more than once"),
        ([0, 0], [4], "a whole number for each of the 2 labels"),
        ([0], [4, 5], "a whole number for each of the 1 labels"),
        ([0], [4.0], "a whole number for each"),
        ([0], [True], "a whole number for each"),
        ([0], 4, "a whole number for each"),
        ([0, 3], [4, 5], r"y\[1\] is 3.*classes="),
        ([0, 3], None, r"y\[1\] is 3.*classes="),
        ([[0, 1]], None, "shape"),
        (0, None, "y must be a sequence of labels"),
        (pd.Series(pd.Categorical(["a"], categories=["a", "b", "c"], ordered=True)), None, "differ"),
    ],
)
def test_labels_that_do_not_fit_change_nothing(y, rows, match, tmp_path):
    fresh = OnlineRiskController(alpha=0.2)
    with pytest.raises(ValueError, match="call predict_set first"):
        fresh.update(y, rows)
    controller = OnlineRiskController(alpha=0.2)
    controller.predict_set(np.eye(3)[[0, 1, 2, 0, 1, 2]])
    controller.update([0, 0], rows=[1, 3])
    controller.save(tmp_path / "before.json")
    with pytest.raises(ValueError, match=match):
        controller.update(y, rows)
    controller.save(tmp_path / "after.json")
    assert (tmp_path / "after.json").read_text() == (tmp_path / "before.json").read_text()


def test_a_run_of_the_first_schema_goes_on(tmp_path, draw):
    """It has no pending rows, and there was one at a time."""
    proba, y = draw(20, K, seed=16)
    for n in (0, 20):
        controller = OnlineRiskController(alpha=0.3, classes=range(K))
        controller.replay(proba[:n], y[:n]) if n else None
        controller.save(tmp_path / "new.json")
        document = json.loads((tmp_path / "new.json").read_text())
        del document["pending"], document["most_pending"]
        (tmp_path / "old.json").write_text(json.dumps(document))
        rewrite(tmp_path / "old.json", schema_version=1)
        loaded = OnlineRiskController.load(tmp_path / "old.json")
        assert (loaded.n_pending_, loaded.most_pending_) == (0, min(n, 1))
        assert state(loaded) == pytest.approx(state(controller), rel=0, abs=0, nan_ok=True)
        assert loaded.replay(proba, y) == controller.replay(proba, y)
    rewrite(tmp_path / "old.json", n_rows="20")
    with pytest.raises(ValueError, match="field 'n_rows' is not valid"):
        OnlineRiskController.load(tmp_path / "old.json")


@EVERY_RULE
@EVERY_LOSS
def test_without_saturation_the_mean_loss_goes_to_alpha(loss, alpha, growth):
    """The lower half: it holds as long as the threshold has not reached infinity."""
    rng = np.random.default_rng(2)
    proba, y = rng.dirichlet(np.ones(K) / 2, 3_000), rng.integers(0, K, 3_000)
    controller = OnlineRiskController(loss, alpha, growth, range(K), rate="0.04")
    for i in range(0, 3_000, 100):
        controller.replay(proba[i : i + 100], y[i : i + 100])
        assert controller._run.cut_off == 0, "random labels do not saturate"
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
    assert controller.bound_after(700, 30) - controller.bound_after(700) == 29 * Fraction(9, 10) / 700
    assert controller.bound_over_any(700, 30) - controller.bound_over_any(700) == Fraction(29, 700)
    assert natural.bound_over_any(700, 30) == 1 + Fraction(4 * 40 + 4 * 30 - 1, 700)
    for bound in (controller.bound_after, controller.bound_over_any):
        with pytest.raises(ValueError, match="at least one row"):
            bound(0)
        with pytest.raises(ValueError, match="pending must be at least 1"):
            bound(5, pending=0)
    with pytest.raises(ValueError, match="at least one row"):
        controller.bound_so_far()


@EVERY_RULE
def test_saturation_leaves_no_trace(growth):
    """However long single labels were enough, the next bad times are met from the same place."""
    rng = np.random.default_rng(3)
    proba, y = rng.dirichlet(np.ones(K), 300), rng.integers(0, K, 300)
    followers = []
    for length in (1_000, 4_000):
        controller = OnlineRiskController("divergence", 0.2, growth, rate=0.02)
        controller.replay(np.eye(K)[[2] * length], [2] * length)
        assert controller.threshold_ == math.inf
        followers.append(controller.replay(proba, y))
    assert followers[0] == followers[1]
    assert followers[0].size[0] == 1
    assert followers[0].size.max() > 1


@EVERY_RULE
@EVERY_LOSS
def test_batches_of_any_size_are_rows_one_by_one(loss, alpha, growth):
    rng = np.random.default_rng(4)
    proba, y = rng.dirichlet(np.ones(K), 120).astype(np.float32), rng.integers(0, K, 120)
    whole = OnlineRiskController(loss, alpha, growth)
    sets = whole.replay(proba, y)
    assert len(np.unique(sets.size)) > 1
    for at_once in (1, 7):
        cut = OnlineRiskController(loss, alpha, growth)
        for i in range(0, 120, at_once):
            assert cut.replay(proba[i : i + at_once], y[i : i + at_once]) == sets[i : i + at_once]
        assert state(cut) == state(whole)


@EVERY_RULE
@pytest.mark.parametrize("case", ["coverage", "root"])
def test_a_saved_run_goes_on_without_a_difference(case, growth, tmp_path):
    loss, alpha = LOSSES[case]
    rng = np.random.default_rng(5)
    proba, y = rng.dirichlet(np.ones(K), 30), rng.integers(0, K, 30)
    whole = OnlineRiskController(loss, alpha, growth, range(K), rate="1/30").calibrate(proba, y)
    start = whole.threshold_
    sets = whole.replay(proba, y)
    for cut in range(31):
        first = OnlineRiskController(loss, alpha, growth, range(K), rate="1/30").calibrate(proba, y)
        first.replay(proba[:cut], y[:cut]) if cut else None
        first.save(tmp_path / "run.json")
        second = OnlineRiskController.load(tmp_path / "run.json")
        assert repr(second) == repr(first)
        if cut < 30:
            assert second.replay(proba[cut:], y[cut:]) == sets[cut:]
        assert state(second) == state(whole)
        assert second.bound_after(50) == whole.bound_after(50)
    assert second.calibrate(proba, y).threshold_ == start


@EVERY_RULE
@pytest.mark.parametrize(("loss", "alpha"), [("coverage", 0.1), ("divergence", 0.05)])
def test_on_rows_that_do_not_change_it_is_as_good_as_a_fixed_threshold(loss, alpha, growth, draw):
    proba, y = draw(9_000, K, seed=6)
    controller = OnlineRiskController(loss, alpha, growth)
    sets = controller.replay(proba, y)
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
    sets = controller.replay(later, noise)
    assert orisk.metrics.risk(noise, fixed.predict_set(later), "coverage") > 0.25
    assert orisk.metrics.risk(noise[:200], sets[:200], "coverage") > 0.11
    assert orisk.metrics.risk(noise[500:], sets[500:], "coverage") == pytest.approx(0.1, abs=0.01)


@UNCHECKED
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
        controller.replay([[1.0, 0.0]], [1])
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
    rule = type(as_rule(growth))("given")
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


def test_sets_are_handed_out_at_one_threshold(draw):
    proba, y = draw(50, K, seed=12)
    controller = OnlineRiskController(alpha=0.2, rate=0.05)
    threshold = OnlineRiskController(alpha=0.2, rate=0.05, classes=range(K)).threshold_
    sets = controller.predict_set(proba)
    assert controller.threshold_ == threshold
    for lower, upper, levels in zip(
        sets.lower_index, sets.upper_index, controller.growth.levels(proba), strict=True
    ):
        assert np.flatnonzero(levels >= threshold)[[0, -1]].tolist() == [lower, upper]
    assert controller.predict_set(proba) == sets
    assert controller.update(y[:30], range(60, 90)).threshold_ != threshold
    assert (controller.n_rows_, controller.n_pending_, controller.most_pending_) == (100, 70, 100)
    controller.replay(proba[:1], y[:1])
    assert (controller.n_rows_, controller.n_pending_, controller.most_pending_) == (101, 70, 100)
    assert controller.calibrate(proba, y).n_rows_ == controller.n_pending_ == controller.most_pending_ == 0


def test_labels_bring_or_have_names():
    proba = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    grades = pd.Series(pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True))
    controller = OnlineRiskController(alpha=0.2)
    sets = controller.replay(proba, grades)
    assert sets.classes.tolist() == controller.classes_.tolist() == ["low", "mid", "high"]
    assert controller.replay(proba, ["mid", "low"]).classes.tolist() == ["low", "mid", "high"]
    named = OnlineRiskController(alpha=0.2, classes=["low", "mid", "high"])
    assert named.replay(proba, ["low", "high"]) == sets
    assert named.predict_set(proba).classes.tolist() == ["low", "mid", "high"]
    assert named.update(grades).n_pending_ == 0
    with pytest.raises(ValueError, match="order"):
        named.replay(pd.DataFrame(proba, columns=["low", "high", "mid"]), ["low", "high"])
    with pytest.raises(ValueError, match="order"):
        named.predict_set(pd.DataFrame(proba, columns=["low", "high", "mid"]))


def test_point_labels_can_be_given():
    controller = OnlineRiskController(alpha=0.2, growth=orisk.FrontierGrowth("given"))
    sets = controller.replay([[0.6, 0.3, 0.1]] * 2, [0, 1], point_labels=[2, 0])
    assert [tuple(interval) for interval in sets] == [(0, 2), (0, 1)]
    assert controller.predict_set([[0.6, 0.3, 0.1]], point_labels=[1])[0] == (0, 1)
    with pytest.raises(ValueError, match="point_labels"):
        controller.replay([[0.6, 0.3, 0.1]], [0])


@pytest.mark.parametrize("rate", [0, -0.1, 1.01, "nan", None])
def test_a_rate_that_leads_nowhere_is_refused(rate):
    with pytest.raises(ValueError, match="rate must be"):
        OnlineRiskController(rate=rate)


def test_the_largest_rate_takes_two_misses_from_single_labels_to_full_sets():
    """One would be enough for a loss that is much larger than alpha."""
    controller = OnlineRiskController(alpha=0.4, rate=1)
    controller.replay([[1.0, 0, 0]] * 9, [0] * 9)
    assert controller.replay([[1.0, 0, 0]] * 4, [2, 2, 2, 2]).size.tolist() == [1, 1, 3, 1]


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
            controller.replay(proba, y)
        before = controller.n_rows_, repr(controller)
        for args, match in [
            ((bad, y), "row 7"),
            ((proba, [*y[:-1], 9]), r"y\[19\] is 9.*classes="),
            ((proba, y[:-1]), "one label for each of the 20 rows"),
            ((proba[0], y), "shape"),
        ]:
            with pytest.raises(ValueError, match=match):
                controller.replay(*args)
            assert (controller.n_rows_, repr(controller)) == before
    with pytest.raises(ValueError, match="3 columns"):
        controller.replay(np.full((1, 3), 1 / 3), [0])
    with pytest.raises(ValueError, match="3 columns, but there are 5 classes"):
        controller.predict_set(np.full((1, 3), 1 / 3))
    with pytest.raises(AttributeError, match="alpha can't change"):
        controller.alpha = 0.3
    with pytest.raises(ValueError, match="alpha must lie strictly between"):
        OnlineRiskController(alpha=1).replay(proba, y)
    with pytest.raises(ValueError, match="alpha must lie strictly between"):
        OnlineRiskController(alpha=1, classes=range(3))


def test_it_tells_what_it_is_and_where_it_stands():
    controller = OnlineRiskController(orisk.DivergenceLoss(), 0.1, "rps")
    text = "OnlineRiskController(loss=DivergenceLoss(), alpha=0.1, growth=RankedProbabilityGrowth"
    assert repr(controller) == f"{text}(point='median'), rate=0.01)"
    assert math.isnan(controller.risk_)
    controller.replay([[0.0, 0.0, 1.0]], [2])
    assert repr(controller).endswith("after 1 rows, mean loss 0")
    controller.predict_set([[0.0, 0.0, 1.0]] * 2)
    assert repr(controller).endswith("after 3 rows, 2 of them pending, mean loss 0")


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
    "pending": {"rows": [21], "lower": [0], "upper": [K]},
    "most_pending": 1,
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
        ("pending", {"rows": [21], "lower": [2], "upper": [1]}),
        ("pending", {"rows": [21], "lower": [0], "upper": []}),
        ("pending", {"rows": [22], "lower": [0], "upper": [1]}),
        ("pending", {"rows": [-1], "lower": [0], "upper": [1]}),
        ("pending", {"rows": [21, 20], "lower": [0, 0], "upper": [1, 1]}),
        ("pending", {"rows": [21, 21], "lower": [0, 0], "upper": [1, 1]}),
        ("pending", {"rows": [21.0], "lower": [0], "upper": [1]}),
        ("pending", {"rows": [21], "lower": [0]}),
        ("pending", None),
        ("most_pending", 23),
        ("most_pending", 2.0),
    ],
)
def test_a_document_that_can_not_be_is_refused_by_its_field(field, bad, tmp_path, draw):
    path = tmp_path / "run.json"
    controller = OnlineRiskController(alpha=0.3)
    controller.replay(*draw(20, K, seed=14))
    controller.predict_set(draw(2, K, seed=14)[0])
    controller.save(path)
    bad = json.loads(path.read_text())["place"] + 1 if bad == "one more" else bad
    assert rewrite(path, **{field: bad}) == set(BAD_FIELDS)
    with pytest.raises(ValueError, match=f"field '{field}' is not valid"):
        OnlineRiskController.load(path)


def test_a_run_without_rows_is_where_it_started(tmp_path):
    controller = OnlineRiskController(alpha=0.3, classes=range(3))
    controller.save(tmp_path / "run.json")
    document = json.loads((tmp_path / "run.json").read_text())
    rewrite(tmp_path / "run.json", place=document["place"] - 1)
    with pytest.raises(ValueError, match="start before the first label"):
        OnlineRiskController.load(tmp_path / "run.json")


def test_classes_that_are_no_json_are_not_saved(tmp_path):
    for label in [None, math.inf]:
        controller = OnlineRiskController(classes=["a", label])
        with pytest.raises(ValueError, match="can't be saved"):
            controller.save(tmp_path / "run.json")
    assert not list(tmp_path.iterdir())
