"""Numbers from outside have limits: what is short to write and long to compute is refused at once.

Each case takes a multiple of a piece of work that is timed on the same machine; without a limit it would take
minutes or gigabytes.
"""

import copy
import json
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from command import run, succeeds
from effort import quickly
from hypothesis import given
from hypothesis import strategies as st
from strategies import labels_drawn
from test_errors import with_digests

from ordinalrisk import (
    CostTableLoss,
    DivergenceLoss,
    IntervalSet,
    RiskController,
    RiskMonitor,
    WeightedLoss,
)
from ordinalrisk.splitting import split_folds, split_rows

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
MOST_ROWS = 10**12
TOO_LONG = r"too long a number: at most 4300 digits and an exponent of ten up to 1000"


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
        RiskController(alpha=bomb)


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
        RiskController(alpha=text)


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("1e1000", Fraction(10**1000)),
        ("2.50E-0003", Fraction(25, 10**4)),
        (".5", HALF),
        ("5.", Fraction(5)),
        ("+6/4", Fraction(3, 2)),
        ("9" * 4_300, Fraction(10**4_300 - 1)),
        (Decimal("1e-400"), Fraction(1, 10**400)),
        (np.float32(0.1), TENTH),
        (5e-324, Fraction(5, 10**324)),
        (10**4299, Fraction(10**4299)),
    ],
    ids=lambda value: str(value)[:12],
)
def test_numbers_up_to_the_limits_are_exact(written, exact):
    assert meant(written) == meant(str(meant(written))) == exact


def meant(number):
    """The number that a weight is in the cost table, where another is 1."""
    (_, cost), (one, _) = WeightedLoss([number, 1]).exact_costs(2)
    return cost / one


@given(st.fractions(0), st.integers(-30, 30))
def test_every_spelling_of_a_number_is_that_number(number, exponent):
    assert meant(str(number)) == number
    assert meant(f"{number.numerator}e{exponent}") == number.numerator * Fraction(10) ** exponent


@pytest.mark.parametrize(
    ("delta", "shown"),
    [
        (Fraction(10**4000 + 1, 3 * 10**3999), "about 3.33333"),
        (-Fraction(10**1000 + 1), "about -1e+1000"),
        (Fraction(1, 10**1000), "about 1e-1000"),
        (Fraction(4, 3), "4/3"),
    ],
    ids=["share", "large", "small", "short"],
)
def test_numbers_too_long_to_read_are_rounded(delta, shown):
    with pytest.raises(ValueError, match=re.escape(f"got {shown}. ")):
        RiskController(delta=delta)


# cost tables

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
    below, above = (Fraction(str(factor)) for factor in (under, over))
    table = DivergenceLoss(power, under=under, over=over, normalize=False).exact_costs(4)
    assert table == tuple(
        tuple((below if k < y else above) * Fraction(abs(y - k)) ** power for k in range(4)) for y in range(4)
    )


def test_many_small_tables_take_as_long_as_the_first():
    with quickly(160):  # 36 at most are measured; a sum over all that are kept took 1600
        for weight in range(1, 20_001):
            WeightedLoss([1, weight]).bound(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WeightedLoss().bound(5_001), "5001 classes; at most 5000 are supported"),
        (lambda: DivergenceLoss().cost_table(10**9), "at most 5000 are supported"),
        (lambda: DivergenceLoss(10**9), "power must be at most 100; got 1000000000"),
        (lambda: DivergenceLoss(1e7 + 0.5).bound(4), "power must be at most 100"),
        (lambda: DivergenceLoss(100, [0, "1e1000"]).bound(2), "costs have too many digits.*at most 20000"),
        (lambda: DivergenceLoss(99.5, [0, 1, "1e-1000"][::2]).bound(2), "costs have too many digits"),
        (lambda: WeightedLoss([Fraction(1, 10**4000 + i) for i in range(30)]).bound(30), "too many digits"),
        (lambda: WeightedLoss(["1e-1000", *[1] * 4_999]).bound(5_000), "3322 bits each, but at most 85"),
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
    with quickly(40), pytest.raises(ValueError, match=message):
        make()


def test_tiny_risks_with_bets_say_how_many_rows_are_needed():
    controller = RiskController("divergence", "1e-300", delta="1e-300", confidence_bound="betting")
    with pytest.warns(UserWarning, match="needs at least 1000000000000 calibration rows"):
        controller.calibrate([[0.5, 0.5]] * 50, [0, 1] * 25)


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
    with quickly(40):
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
    y = labels_drawn(proba, rng)
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
    with quickly(40), pytest.raises(ValueError, match=f"field '{field}' .*Nothing was loaded"):
        RiskController.load(path)


def test_an_older_calibration_of_many_bets_is_refused_at_once(calibrations, tmp_path):
    document = with_rows(calibrations["betting"], 300_000_000, schema_version=4)
    newer = ("score_counts", "pool_classes", "exempt_classes", "recalibration", "side", "growth_loss")
    for name in ("shuffle_seed", *newer):
        del document[name], document["digests"][name]
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
    with quickly(40), pytest.raises(ValueError, match=f"field '({field}|delta)' .*Nothing was loaded"):
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
    with quickly(60):
        result = run("calibrate", scores, "--out", out, "--alpha", "0.3", *given)
    assert (result.exit_code, out.exists()) == (2, False)
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize("cost", ["1e999999999", "1" * 5000, "1e9_99"], ids=len)
def test_a_number_in_a_file_of_costs_is_refused_at_once(scores, tmp_path, cost):
    table = tmp_path / "costs.csv"
    table.write_text(f"0,1,1\n1,0,1\n{cost},1,0\n")
    out = tmp_path / "calibration.json"
    with quickly(60):
        result = run("calibrate", scores, "--out", out, "--alpha", "0.3", "--loss", table)
    assert result.exit_code == 1
    assert f"{table}: row 3, column 1" in " ".join(result.output.split())


def test_numbers_on_the_command_line_are_those_that_are_written(tmp_path):
    weights = ["0.1", "3", "0.30000000000000004", "1e-07", "2.5e-10", "0.10", "00.5", "1/3", "1e3"]
    scores, out = tmp_path / "scores.csv", tmp_path / "calibration.json"
    header = ",".join([*(f"p{k}" for k in range(9)), "label"])
    scores.write_text(f"{header}\n" + f"0.2{',0.1' * 8},0\n" * 40)
    succeeds("calibrate", scores, "-o", out, "--alpha", "0.3", "--weights", ",".join(weights))
    loaded = RiskController.load(out).loss
    assert loaded.exact_costs(9) == WeightedLoss([Fraction(weight) for weight in weights]).exact_costs(9)
