"""Numbers from outside have limits: what is short to write and long to compute is refused at once.

Each case runs with the time that a loaded machine needs, and would take minutes or gigabytes without a limit.
"""

import copy
import json
import math
import time
import tracemalloc
from contextlib import contextmanager
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_errors import with_digests
from typer.testing import CliRunner

from ordinalrisk import (
    CostTableLoss,
    DivergenceLoss,
    RiskController,
    RiskMonitor,
    WeightedLoss,
    split_folds,
    split_rows,
)
from ordinalrisk.calibration.binomial_tails import so_few_are_rare, units_without_loss
from ordinalrisk.calibration.confidence_bounds import BOUNDS, betting_threshold, binomial_budget, units_needed
from ordinalrisk.cli import app
from ordinalrisk.curves.unit_steps import UnitSteps
from ordinalrisk.inputs.numbers import (
    MOST_CLASSES,
    MOST_DIGITS,
    MOST_ROWS,
    as_fraction,
    as_number,
    decimal_text,
)
from ordinalrisk.losses import cost_table as cost_tables
from ordinalrisk.losses.cost_table import CostTable

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
TOO_LONG = r"too long a number: at most 4300 digits and an exponent of ten up to 1000"


@cache
def yardstick():
    """The processor time of a fixed piece of work, by which the others are measured on this machine."""
    start = time.process_time()
    for numerator in range(200_000):
        Fraction(f"{numerator}/7")
    return time.process_time() - start


@contextmanager
def quickly(times=2):
    """Little processor time, as a multiple of the yardstick, whatever the machine and what else it does."""
    most = times * yardstick()
    start = time.process_time()
    yield
    assert time.process_time() - start < most


@contextmanager
def in_little_memory(megabytes):
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < megabytes * 2**20


# numbers

BOMBS = ["1e999999999", "1e-999999999", "1E+99999", "-1e1001", "1e00000000000000000001001", "1" * 4301]
BOMBS += [
    "0." + "1" * 4400,
    f"1/{'3' * 4400}",
    "1" * 10**6,
    10**4300,
    Fraction(1, 10**4300),
    Decimal("1e9999"),
]


@pytest.mark.parametrize("bomb", BOMBS, ids=range(len(BOMBS)))
def test_a_number_that_is_too_long_is_refused_with_the_limit(bomb):
    with quickly(), pytest.raises(ValueError, match=f"alpha is {TOO_LONG}"):
        as_fraction(bomb, "alpha")


@pytest.mark.parametrize(
    "text",
    [
        "1e9_99999999",
        "1e-999999999 ",
        " 1",
        "1_000",
        "1e5 ",
        "1\n",
        "\u0661",
        "0x10",
        "1e",
        "1/-3",
        "",
        "nan",
    ],
)
def test_only_plain_decimals_and_ratios_are_numbers(text):
    with quickly(), pytest.raises(ValueError, match="alpha must be a finite number; got"):
        as_fraction(text, "alpha")


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("1e1000", Fraction(10**1000)),
        ("-2.50E-0003", Fraction(-25, 10**4)),
        (".5", HALF),
        ("5.", Fraction(5)),
        ("+6/4", Fraction(3, 2)),
        ("9" * MOST_DIGITS, Fraction(10**MOST_DIGITS - 1)),
        (Decimal("1e-400"), Fraction(1, 10**400)),
        (np.float32(0.1), TENTH),
        (5e-324, Fraction(5, 10**324)),
        (10**4299, Fraction(10**4299)),
    ],
    ids=lambda value: str(value)[:12],
)
def test_numbers_up_to_the_limits_are_exact(written, exact):
    assert as_fraction(written) == exact
    assert as_fraction(str(as_fraction(written))) == exact


@given(st.fractions(), st.integers(-30, 30))
def test_every_spelling_of_a_number_is_that_number(number, exponent):
    assert as_fraction(str(number)) == number
    decimals = f"{number.numerator}e{exponent}"
    assert (
        as_fraction(decimals)
        == as_fraction(as_number(decimals))
        == number.numerator * Fraction(10) ** exponent
    )


def test_a_number_that_is_too_long_to_write_is_shown_approximately():
    assert decimal_text(Fraction(10**5000 + 1, 3 * 10**5000)) == "about 0.333333"
    assert decimal_text(-Fraction(10**5000)) == "about -1e+5000"


# the binomial bound


@settings(max_examples=60)
@given(
    st.integers(1, 400),
    st.fractions(Fraction(1, 200), Fraction(199, 200), max_denominator=200),
    st.fractions(Fraction(1, 10**6), 1 - Fraction(1, 10**6), max_denominator=10**6),
)
def test_the_budget_is_that_of_the_exact_sums(n, alpha, delta):
    budget = binomial_budget(n, alpha, delta)
    assert p_value(budget, n, alpha) <= delta < p_value(budget + 1, n, alpha)


def p_value(n_missed, n, alpha):
    return sum(math.comb(n, c) * alpha**c * (1 - alpha) ** (n - c) for c in range(n_missed + 1))


@pytest.mark.parametrize("alpha", [TENTH, HALF, Fraction(97, 100), Fraction(1, 10**8)], ids=str)
@pytest.mark.parametrize("n", [30, 1_200])
def test_long_decimals_decide_as_whole_numbers_do(n, alpha, monkeypatch):
    """Also where ``delta`` is a p-value, or a hair away from one."""
    hair = 1 + Fraction(1, 10**30)
    n_missed = max(int(n * alpha) - 3, 1)
    delta = p_value(n_missed, n, alpha)
    monkeypatch.setattr("ordinalrisk.calibration.binomial_tails._MOST_BITS", 0)  # no whole numbers
    for missed, more in ((n_missed, True), (n_missed + 1, False)):
        assert so_few_are_rare(missed, n, alpha, min(delta * hair, 1 - Fraction(1, 10**300))) == more
    assert not so_few_are_rare(n_missed, n, alpha, delta / hair)
    assert not so_few_are_rare(n_missed, n, alpha, delta)  # a tie that is not proved is decided safely


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
    growth = {"betting": 0.99, "dkw": None}.get(bound, 1.0)
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
    with quickly(), in_little_memory(100):
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


# cost tables


def slow_table(loss, n_classes):
    """The costs as the formulas have them, one by one, in rationals."""
    labels = range(n_classes)
    if isinstance(loss, WeightedLoss):
        h = [as_fraction(weight) for weight in loss.weights or [1] * n_classes]
        table = [[h[y] if k != y else Fraction(0) for k in labels] for y in labels]
    elif isinstance(loss, DivergenceLoss):
        v = [as_fraction(position) for position in loss.positions or labels]
        side = as_fraction(loss.under), as_fraction(loss.over)
        table = [[side[k > y] * powered(abs(v[y] - v[k]), loss.power) for k in labels] for y in labels]
    else:
        table = [[as_fraction(cost) for cost in row] for row in loss.table]
    bound = max(map(max, table)) if loss.normalize else 1
    return [[cost / bound for cost in row] for row in table]


def powered(distance, power):
    power = as_fraction(power)
    if power.denominator == 1 or distance == 0:
        return distance**power.numerator
    with localcontext(prec=30) as context:
        value = (Decimal(distance.numerator) / distance.denominator) ** (
            Decimal(power.numerator) / power.denominator
        )
        context.prec = 15
        return Fraction(+value)


def steps_up(K):
    """A table without any pattern."""
    costs = np.random.default_rng(K).integers(0, 1000, (K, K)) / 7
    upper = np.triu(costs, 1).cumsum(axis=1)
    return upper + np.tril(costs, -1)[:, ::-1].cumsum(axis=1)[:, ::-1]


def losses_for(K):
    uneven = [i + Fraction(i * i, 7) for i in range(K)]
    for normalize in (True, False):
        yield WeightedLoss(normalize=normalize)
        yield WeightedLoss([1 / (i + 3) for i in range(K)], normalize)
        yield WeightedLoss([10**25, *[Fraction(1, 3)] * (K - 1)], normalize)
        yield CostTableLoss(steps_up(K).round(3), normalize)
        yield CostTableLoss(np.triu(np.ones((K, K), int), 1), normalize)
        for power in (1, 2, 7, HALF, 3.3):
            for positions in (None, uneven):
                for under, over in ((1, 1), (2, Fraction(1, 7)), (0, 1)):
                    yield DivergenceLoss(power, positions, under, over, normalize)


@pytest.mark.parametrize("K", [2, 3, 8])
def test_tables_are_those_of_the_slow_definition_bit_for_bit(K):
    for loss in losses_for(K):
        table, costs = slow_table(loss, K), CostTable.of(loss, K)
        assert [list(row) for row in costs.exact] == table
        per_unit = math.lcm(*(cost.denominator for row in table for cost in row))
        assert (costs.unit, costs.bound) == (Fraction(1, per_unit), max(map(max, table)))
        assert costs.units.tolist() == [[cost * per_unit for cost in row] for row in table]
        assert (costs.units.dtype == object) == (max(map(max, costs.units.tolist())) >= 2**62)
        assert costs.values.tolist() == [[float(cost) for cost in row] for row in table]
        left, right = np.zeros((K, K)), np.zeros((K, K))
        for j in range(K):
            for i in range(j + 1) if j < K - 1 else ():
                left[j, i] = float(table[i][j + 1] - table[i][j])
            for i in range(j, K) if j > 0 else ():
                right[j, i] = float(table[i][j - 1] - table[i][j])
        gains = costs.gains
        assert gains.left.tobytes() == left.tobytes()
        assert gains.right.tobytes() == right.tobytes()
        assert gains.rank.tolist() == [[sorted(set(row)).index(cost) for cost in row] for row in table]
        misses = [{cost for k, cost in enumerate(row) if k != y} for y, row in enumerate(table)]
        assert gains.weighted == all(len(costs) == 1 for costs in misses)
        weights = [float(*costs) for costs in misses] if gains.weighted else [1.0] * K
        assert gains.mode_weights.tolist() == weights


UNEVEN = np.random.default_rng(0).random(1_000).cumsum()
SCATTERED = np.abs(UNEVEN[:, None] - UNEVEN) ** 1.5  # a million distinct costs of up to 17 digits
THOUSANDS = {
    "coverage": WeightedLoss,
    "weights": lambda: WeightedLoss(UNEVEN),
    "divergence": DivergenceLoss,
    "asymmetric": lambda: DivergenceLoss(2, under=3),
    "irrational": lambda: DivergenceLoss(3.3),
    "positions": lambda: DivergenceLoss(2, positions=UNEVEN.round(6)),
    "table of distances": lambda: CostTableLoss(abs(np.subtract.outer(np.arange(1_000), np.arange(1_000)))),
    "irregular table": lambda: CostTableLoss(SCATTERED.round(4)),
    "table of all digits": lambda: CostTableLoss(SCATTERED, normalize=False),
    "small costs": lambda: CostTableLoss(SCATTERED * 1e-9),
    "text": lambda: CostTableLoss([[*map(repr, row)] for row in SCATTERED.round(4).tolist()]),
    "short floats": lambda: CostTableLoss(SCATTERED.astype(np.float32)),
}


WIDE_COST = [[abs(i - j) for j in range(500)] for i in range(500)]
WIDE_COST[0][1] = Fraction(1, 10**4299)


@pytest.mark.parametrize(
    ("under", "over"),
    [
        (1e20, 1),
        (1, 1e-20),
        (3.141592653589793, 0.00012345678901234567),
        (1 / 3, 1000),
        (2**63, 2**31),
        (3_037_000_500, 1),
        ("1e300", "1e-300"),
    ],
)
@pytest.mark.parametrize("power", [1, 3])
def test_wide_factors_are_exact(under, over, power):
    below, above = (as_fraction(factor) for factor in (under, over))
    table = DivergenceLoss(power, under=under, over=over, normalize=False).exact_costs(4)
    assert table == tuple(
        tuple((below if k < y else above) * Fraction(abs(y - k)) ** power for k in range(4)) for y in range(4)
    )


def test_many_small_tables_take_as_long_as_the_first():
    with quickly(16):  # two are measured; a sum over all that are kept took 160
        for weight in range(1, 20_001):
            WeightedLoss([1, weight]).bound(2)


@pytest.mark.parametrize(
    "text", ["0.1", "3", "0.30000000000000004", "1e-07", "2.5e-10", "0.10", "00.5", "1/3", "1e3"]
)
def test_numbers_in_text_spell_out_the_same(text):
    assert as_fraction(as_number(text)) == Fraction(text)


@pytest.mark.parametrize("loss", THOUSANDS)
def test_a_thousand_classes_take_no_time(loss):
    with quickly(20):  # seven at most are measured
        assert CostTable(THOUSANDS[loss]().whole_costs(1_000)).gains.bound > 0


def test_the_tables_that_are_kept_take_bounded_memory():
    size = cost_tables._CACHED_BYTES
    for n in range(2, 300, 6):
        for loss in (DivergenceLoss(under=n), WeightedLoss()):
            first = CostTable.of(loss, n % 100 + 50)
            assert CostTable.of(loss, n % 100 + 50) is first
        assert sum(table.n_bytes for table in cost_tables._tables.kept.values()) <= size
    assert len(cost_tables._tables.kept) > 1
    assert CostTable.of(WeightedLoss(), 1_300) is CostTable.of(WeightedLoss(), 1_300)  # larger than all
    assert len(cost_tables._tables.kept) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WeightedLoss().bound(MOST_CLASSES + 1), "5001 classes; at most 5000 are supported"),
        (lambda: DivergenceLoss().cost_table(10**9), "at most 5000 are supported"),
        (lambda: DivergenceLoss(10**9), "power must be at most 100; got 1000000000"),
        (lambda: DivergenceLoss(1e7 + 0.5).bound(4), "power must be at most 100"),
        (lambda: DivergenceLoss(100, [0, "1e1000"]).bound(2), "costs have too many digits.*at most 20000"),
        (lambda: DivergenceLoss(99.5, [0, 1, "1e-1000"][::2]).bound(2), "costs have too many digits"),
        (lambda: WeightedLoss([Fraction(1, 10**4000 + i) for i in range(30)]).bound(30), "too many digits"),
        (lambda: WeightedLoss(["1e-1000", *[1] * 4_999]).bound(5_000), "3322 bits each, at most 85"),
        (lambda: DivergenceLoss(100, np.arange(2_000) / 7).bound(2_000), "too many digits"),
        (lambda: CostTableLoss(WIDE_COST), "too many digits"),
        (lambda: CostTableLoss([[0, 1], [-(2**100), 0]]), "Row 1 of the cost table decreases"),
        (lambda: CostTableLoss([[0, -1e300], [1.0, 0]]), "Row 0 of the cost table decreases"),
        (
            lambda: DivergenceLoss(1.5, np.cumsum(np.random.default_rng(0).random(400))).bound(400),
            "at most 50000",
        ),
    ],
    ids=range(13),
)
def test_tables_that_would_take_too_long_are_refused(make, message):
    with quickly(4), pytest.raises(ValueError, match=message):
        make()


def test_tiny_risks_with_bets_say_how_many_rows_are_needed():
    controller = RiskController("divergence", "1e-300", delta="1e-300", bound="betting")
    with pytest.warns(UserWarning, match="needs at least 1000000000000 calibration rows"):
        controller.calibrate([[0.5, 0.5]] * 50, [0, 1] * 25)


def test_numbers_too_long_to_read_are_rounded():
    assert decimal_text(Fraction(1, 10**1000)) == "about 1e-1000"
    assert decimal_text(Fraction(10**1000 + 1)) == "about 1e+1000"
    assert decimal_text(Fraction(1, 3)) == "1/3"


@pytest.mark.parametrize("split", [lambda n: split_rows(n), lambda n: split_folds(n, 2)])
def test_more_rows_than_memory_are_refused(split):
    with pytest.raises(ValueError, match="At most 1000000000 rows can be split; got 1000000000000000"):
        split(10**15)


# monitors


@pytest.mark.parametrize(
    "alpha", ["1e-999", "1e-301", Fraction(1, 10**4000)], ids=lambda alpha: str(alpha)[:6]
)
def test_a_monitor_of_too_small_a_risk_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha must be at least 1e-300 of the largest loss"):
        RiskMonitor(alpha=alpha, classes=range(3))


def test_a_monitor_of_a_tiny_risk_is_quick_and_rings_at_once():
    from ordinalrisk import IntervalSet

    with quickly(4):
        monitor = RiskMonitor("divergence", "1e-300", classes=range(60))
        assert not monitor.update([0] * 500, IntervalSet([0] * 500, [1] * 500, classes=range(60)))
        assert monitor.update([59] * 500, IntervalSet([0] * 500, [1] * 500, classes=range(60)))
    assert monitor.evidence_ <= 1e300


# saved files whose digests are right


@pytest.fixture
def calibrations(tmp_path):
    """Saved calibrations as documents: an expectation, a binomial bound, a betting bound."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 300)
    y = (proba.cumsum(axis=1)[:, :-1] < rng.random((300, 1))).sum(axis=1)
    kinds = {
        "expectation": RiskController(DivergenceLoss(), 0.1),
        "binomial": RiskController("coverage", 0.2, delta=0.1),
        "betting": RiskController("divergence", 0.2, delta=0.1, random_state=0),
    }
    documents = {}
    for name, controller in kinds.items():
        controller.calibrate(proba, y).save(tmp_path / "saved.json")
        documents[name] = json.loads((tmp_path / "saved.json").read_text())
    return documents


def with_rows(document, n_rows, **more):
    """The same steps, of more rows."""
    forged = copy.deepcopy(document) | more
    [stratum] = forged["strata"]
    stratum["n_rows"] = stratum["curve"]["n_rows"] = n_rows
    stratum["curve"]["weight"] = str(n_rows)
    return forged


def options(document, **changes):
    return {"options": document["options"] | changes}


CALIBRATION_BOMBS = {
    "alpha with underscores": ("expectation", "alpha", lambda d: d | {"alpha": "1e9_99999999"}),
    "alpha with a space": ("expectation", "alpha", lambda d: d | {"alpha": "1e-999999999 "}),
    "alpha of a long exponent": ("expectation", "alpha", lambda d: d | {"alpha": "1e-999999999"}),
    "alpha of many digits": ("expectation", "alpha", lambda d: d | {"alpha": f"1/{'7' * 10**6}"}),
    "another alpha": ("expectation", "more_alphas", lambda d: d | {"more_alphas": ["1e-999999999"]}),
    "delta": ("binomial", "options", lambda d: d | options(d, delta="1e-999999999")),
    "delta next to 1": ("binomial", "options", lambda d: d | options(d, delta="0." + "9" * 4000)),
    "power": ("expectation", "loss", lambda d: d | {"loss": d["loss"] | {"power": 10**9}}),
    "power of a float": ("expectation", "loss", lambda d: d | {"loss": d["loss"] | {"power": 1e7 + 0.5}}),
    "positions": (
        "expectation",
        "classes",
        lambda d: d | {"loss": d["loss"] | {"power": 99, "positions": [0, "1e-999", 1, "1e999"]}},
    ),
    "shift": ("expectation", "shift", lambda d: d | {"shift": ["1e999999999"] * 4}),
    "classes": ("expectation", "classes", lambda d: d | {"classes": [*range(10**5)]}),
    "rows": ("expectation", "strata", lambda d: with_rows(d, MOST_ROWS + 1)),
    "rows beyond 64 bits": ("binomial", "strata", lambda d: with_rows(d, 2**64)),
    "rows of bets": ("betting", "strata", lambda d: with_rows(d, 300_000_000)),
    "rows that tie": (
        "binomial",
        "strata",
        lambda d: with_rows(d, 1_000_000_001, alpha=0.5, **options(d, delta=0.5)),
    ),
    "most rows": ("binomial", "strata", lambda d: with_rows(d, MOST_ROWS)),
}


@pytest.mark.parametrize(("kind", "field", "forge"), CALIBRATION_BOMBS.values(), ids=CALIBRATION_BOMBS)
def test_a_forged_calibration_is_refused_at_once(calibrations, tmp_path, kind, field, forge):
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(with_digests(forge(calibrations[kind]))))
    with quickly(4), pytest.raises(ValueError, match=f"field '{field}' .*Nothing was loaded"):
        RiskController.load(path)


def test_an_older_calibration_of_many_bets_is_refused_at_once(calibrations, tmp_path):
    document = with_rows(calibrations["betting"], 300_000_000, schema_version=4)
    del document["shuffle_seed"], document["digests"]["shuffle_seed"]
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(with_digests(document)))
    with quickly(), pytest.raises(ValueError, match=r"300000000 units, at most 10000000 .*calibrate again"):
        RiskController.load(path)


def test_a_repeated_name_among_many_is_found_at_once(tmp_path):
    path = tmp_path / "saved.json"
    names = [f'"{i}": 1' for i in range(60_000)]
    path.write_text(f"{{{', '.join([*names, names[-1]])}}}")
    with quickly(), pytest.raises(ValueError, match="field '59999' is there more than once"):
        RiskController.load(path)


MONITOR_BOMBS = {
    "alpha": ("alpha", {"alpha": "1e-999"}),
    "alpha with underscores": ("alpha", {"alpha": "1e9_99999999"}),
    "rows": ("n_rows", {"n_rows": 2**64}),
    "total": ("total_loss", {"total_loss": "1e999999999"}),
    "wealth of another alpha": ("wealth", {"alpha": "1e-300"}),
    "row of the alarm": ("alarm_row", {"alarm_row": 2**64}),
}


@pytest.mark.parametrize(("field", "changes"), MONITOR_BOMBS.values(), ids=MONITOR_BOMBS)
def test_a_forged_monitor_is_refused_at_once(tmp_path, field, changes):
    path = tmp_path / "monitor.json"
    RiskMonitor(alpha=0.1, classes=range(60)).save(path)
    path.write_text(json.dumps(with_digests(json.loads(path.read_text()) | changes)))
    with quickly(4), pytest.raises(ValueError, match=f"field '({field}|delta)' .*Nothing was loaded"):
        RiskMonitor.load(path)


# the command line


@pytest.fixture
def scores(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("p0,p1,p2,label\n" + "0.5,0.3,0.2,0\n0.2,0.5,0.3,1\n" * 20)
    return path


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--alpha", "1e9_9999999"], "--alpha must be a finite number"),
        (["--alpha", "1e-999999999"], "--alpha is too long a number"),
        (["--delta", "1e-999999999"], "--delta is too long a number"),
        (["--loss", "divergence", "--power", "1e9"], "power must be at most 100"),
        (["--loss", "divergence", "--power", "1e999999999"], "--power is too long a number"),
        (["--weights", "1,1,1e-999999999"], "--weights is too long a number"),
        (["--classes", f"1,2,{'3' * 5000}"], "--classes is too long a number"),
    ],
    ids=str,
)
def test_a_number_on_the_command_line_is_refused_at_once(scores, tmp_path, given, message):
    out = tmp_path / "calibration.json"
    arguments = ["calibrate", str(scores), "--out", str(out), "--alpha", "0.3", *given]
    result = run(arguments)
    assert (result.exit_code, out.exists()) == (2, False)
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize("cost", ["1e999999999", "1" * 5000, "1e9_99"], ids=len)
def test_a_number_in_a_file_of_costs_is_refused_at_once(scores, tmp_path, cost):
    table = tmp_path / "costs.csv"
    table.write_text(f"0,1,1\n1,0,1\n{cost},1,0\n")
    out = str(tmp_path / "calibration.json")
    result = run(["calibrate", str(scores), "--out", out, "--alpha", "0.3", "--loss", str(table)])
    assert result.exit_code == 1
    assert f"{table}: row 3, column 1" in " ".join(result.output.split())


def run(arguments):
    with quickly(6):
        return CliRunner().invoke(app, arguments)
