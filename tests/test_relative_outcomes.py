"""Results of a guarantee about a share: evaluations, metrics, choices, reports and the command line."""

import json
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from command import refusal, succeeds
from file_formats import score_table, write_table
from saved_documents import rewrite
from unchecked import FEW

import ordinalrisk as orisk
from ordinalrisk.report import render, summarise

K, N = 4, 400
LOSS = orisk.WeightedLoss([6, 1, 1, 2])
DISTANCE = orisk.DivergenceLoss(under=2)
STAKES = {"weighted": np.array([6, 1, 1, 2]) / 6, "distance": DISTANCE.cost_table(K).max(axis=1)}
LOSSES = {"weighted": LOSS, "distance": DISTANCE}
COLUMNS = {"scores": "p0,p1,p2,p3", "label": "y", "classes": range(K)}
pytestmark = FEW


@pytest.fixture
def rows(draw, here):
    """Rows to calibrate with and others to test on, as arrays and in files."""
    rng = np.random.default_rng(3)
    found = {}
    for seed, name in enumerate(["cal", "test"]):
        proba, y = draw(N, K, seed=seed)
        extra = {
            "g": rng.choice(["a", "b"], N),
            "patient": rng.integers(0, 90, N),
            "w": rng.uniform(0.5, 2, N).round(2),
        }
        write_table(score_table(proba, y, **extra), f"{name}.parquet")
        found[name] = (proba, y, extra)
    return found


def lost(y, sets, loss):
    return orisk.metrics.losses(y, sets, loss)


OF_ROWS = {
    "rows": ({}, {}),
    "groups": ({"groups": "g"}, {"group": "g"}),
    "clusters": ({"clusters": "patient"}, {"cluster": "patient"}),
    "weights": ({"sample_weight": "w"}, {"weight": "w"}),
    "class ratios": ({"class_ratios": [1, 2, 0.5, 3]}, {"class_ratios": [1, 2, 0.5, 3]}),
}


def share_by_hand(unit, name, controller, rows):
    """The share of the stakes of the test rows that is lost, and that of each group."""
    proba, y, extra = rows["test"]
    given = {"groups": {"groups": extra["g"]}, "weights": {"sample_weight": extra["w"]}}.get(unit, {})
    sets = controller.predict_set(proba, **given)
    G, g = lost(y, sets, LOSSES[name]), STAKES[name][y]
    if unit == "groups":
        return {group: G[extra["g"] == group].sum() / g[extra["g"] == group].sum() for group in "ab"}
    weight = np.ones(N)
    if unit == "clusters":
        weight = 1 / np.bincount(extra["patient"])[extra["patient"]]
    if unit == "weights":
        weight = extra["w"]
    if unit == "class ratios":
        weight = np.array([1, 2, 0.5, 3])[y]
    return (weight * G).sum() / (weight * g).sum()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("unit", OF_ROWS)
def test_an_evaluation_of_files_shows_the_share_that_was_lost(unit, name, rows):
    of_arrays, of_files = OF_ROWS[unit]
    proba, y, extra = rows["cal"]
    given = {key: extra[column] if isinstance(column, str) else column for key, column in of_arrays.items()}
    one = orisk.RiskController(LOSSES[name], 0.1, relative=True).calibrate(proba, y, **given)
    found = orisk.jobs.calibrate(
        orisk.RiskController(LOSSES[name], 0.1, relative=True), "cal.parquet", **COLUMNS, **of_files
    )
    assert found.threshold_ == one.threshold_
    assert found.risk_curve_ == one.risk_curve_
    evaluation = orisk.jobs.evaluate(found, "test.parquet")
    expected = share_by_hand(unit, name, one, rows)
    if unit == "groups":
        shown = {part.guarantee.group: part.realised.risk.value for part in evaluation.strata}
        assert shown == pytest.approx(expected)
    else:
        whole = evaluation.found.whole
        assert whole.risk.value == pytest.approx(expected)
        assert whole.risk.low < expected < whole.risk.high
        assert whole.risk.high - whole.risk.low < 0.25
    assert evaluation.verdict.word in ("agrees", "chance")
    assert "of the largest possible loss (95 % interval" in evaluation.verdict.text
    by_row = lost(rows["test"][1], one.predict_set(rows["test"][0]), LOSSES[name]) if unit == "rows" else None
    if unit == "rows":
        assert evaluation.to_dict()["risk"][0] == pytest.approx(expected)
        worst = evaluation.to_dict()["classes"][0]
        mine = rows["test"][1] == 0
        assert worst["risk"] == pytest.approx(by_row[mine].mean() / STAKES[name][0])


def test_a_promise_that_is_broken_by_far_disagrees(rows):
    one = orisk.RiskController(LOSS, 0.05, relative=True).calibrate(*rows["cal"][:2])
    proba, y, _ = rows["test"]
    shuffled = np.random.default_rng(0).permutation(y)
    write_table(score_table(proba, shuffled), "wrong.parquet")
    found = orisk.jobs.evaluate(one, "wrong.parquet", scores="p0,p1,p2,p3", label="y")
    assert found.verdict.word == "disagrees"


def test_a_uniform_share_of_misses_agrees_in_most_evaluations(draw):
    """About one in forty disagrees by chance."""
    words = []
    for seed in range(25):
        proba, y = draw(600, K, seed=seed)
        one = orisk.RiskController(LOSS, 0.2, relative=True).calibrate(proba[:300], y[:300])
        summary = summarise(one, proba[300:], y[300:])
        words.append(summary["stops"][summary["start"]]["verdict"])
    assert words.count("disagrees") <= 3
    assert words.count("agrees") > 18


def test_relative_risk_is_the_lost_share_of_what_could_be_lost(rows):
    proba, y, _ = rows["test"]
    sets = orisk.RiskController("coverage", 0.3).calibrate(*rows["cal"][:2]).predict_set(proba)
    missed = ~sets.contains(y)
    weight = np.array([6, 1, 1, 2])[y]
    share = (weight * missed).sum() / weight.sum()
    assert orisk.metrics.relative_risk(y, sets, LOSS) == pytest.approx(share)
    value, low, high = orisk.metrics.relative_risk(y, sets, LOSS, confidence=0.95)
    assert value == pytest.approx(share)
    assert low < value < high
    exact = orisk.metrics.relative_risk(y, sets, confidence=0.9)
    assert exact == orisk.metrics.risk(y, sets, confidence=0.9)
    assert np.isnan(orisk.metrics.relative_risk([0, 0], sets[:2], orisk.WeightedLoss([0, 1, 1, 1])))


def test_the_interval_of_a_share_covers_the_truth(draw):
    """2 % of draws may miss at 98 %; the intervals are conservative."""
    rng = np.random.default_rng(0)
    misses = 0
    for _ in range(300):
        y = rng.choice(K, 80, p=[0.1, 0.4, 0.3, 0.2])
        covered = rng.random(80) > np.array([0.3, 0.1, 0.2, 0.1])[y]
        other = (y + 1) % K
        sets = orisk.IntervalSet(np.where(covered, y, other), np.where(covered, y, other), classes=range(K))
        weight = np.array([6, 1, 1, 2])
        p = np.array([0.1, 0.4, 0.3, 0.2])
        truth = (p * weight * [0.3, 0.1, 0.2, 0.1]).sum() / (p * weight).sum()
        _, low, high = orisk.metrics.relative_risk(y, sets, LOSS, confidence=0.9)
        misses += not low <= truth <= high
    assert misses <= 30


@pytest.mark.parametrize("size", [1.2, 2, 3])
def test_alpha_for_size_finds_the_smallest_share(rows, size):
    one = orisk.RiskController(LOSS, 0.1, relative=True).calibrate(*rows["cal"][:2])
    proba = rows["test"][0]
    alpha = orisk.alpha_for_size(one, proba, size)
    assert 0 < alpha < 1
    assert one.predict_set(proba, alpha=alpha).size.mean() <= size
    smaller = alpha - Fraction(1, 10**9)
    assert one.predict_set(proba, alpha=smaller).size.mean() > size


@pytest.mark.parametrize("clusters", [False, True])
def test_compare_and_trade_off_hold_losses_to_the_same_share(rows, clusters):
    proba, y, extra = rows["cal"]
    patients = {"clusters": extra["patient"]} if clusters else {}
    alphas = [Fraction(1, 20), Fraction(1, 5)]
    how = {"losses": {"any": "coverage", "weights": LOSS}, "alphas": alphas, "growths": ["frontier"]}
    for result in orisk.compare(proba, y, **how, relative=True, **patients):
        assert result.certified
        assert abs(result.risk - float(result.alpha)) < 0.05
        assert result.mean_size.low <= result.mean_size.value <= result.mean_size.high
    plain = [each for each in orisk.compare(proba, y, **how, **patients) if each.loss_name == "weights"]
    share = [
        each
        for each in orisk.compare(proba, y, **how, **patients, relative=True)
        if each.loss_name == "weights"
    ]
    assert all(one.mean_size.value > other.mean_size.value for one, other in zip(share, plain, strict=True))
    if not clusters:
        how.pop("growths")
        table = orisk.trade_off(proba, y, **how, relative=True)
        assert [each.risk for each in table if each.loss_name == "weights"] == [each.risk for each in share]
    with pytest.raises(
        ValueError, match=r"Loss 'any': alpha must lie strictly between 0 and 1 with relative=True"
    ):
        orisk.compare(proba, y, losses={"any": "coverage"}, alphas=[1], relative=True)


@pytest.mark.parametrize("options", [{}, {"delta": 0.1}, {"condition_on": "label"}], ids=repr)
def test_a_report_is_about_shares(rows, options):
    years = orisk.DivergenceLoss(positions=[18, 30, 50, 90], normalize=False)
    one = orisk.RiskController(years, 0.1, relative=True, **options).calibrate(*rows["cal"][:2])
    summary = summarise(one, *rows["test"][:2])
    stop = summary["stops"][summary["start"]]
    assert stop["alpha"] == "0.1"
    assert all(0 < each["value"] < 1 for each in summary["stops"])
    assert 0 <= stop["risk"][0] <= 1
    assert "10 % of the largest possible distance" in stop["guarantee"]
    assert summary["loss"]["description"].endswith(
        "Losses, risks and alpha are shares of what could be lost."
    )
    assert summary["loss"]["bound"] == "1"
    assert "shares of what could be lost" in render(summary)
    json.dumps(summary, allow_nan=False)


def test_the_picture_of_the_curve_has_shares(rows):
    pytest.importorskip("matplotlib")
    one = orisk.RiskController(LOSS, 0.1, relative=True).calibrate(*rows["cal"][:2])
    axes = orisk.plots.plot_risk_curve(one)
    assert axes.get_ylabel() == "loss, as a share of what could be lost, of the calibration rows"
    assert axes.get_lines()[0].get_ydata().max() == pytest.approx(one.risk_curve_.risk(np.inf))


def test_the_estimator_takes_it(draw):
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression

    X, y = draw(400, 3)
    model = orisk.OrdinalRiskClassifier(
        LogisticRegression(), loss=orisk.WeightedLoss([5, 1, 1]), relative=True
    )
    model = clone(model.set_params(random_state=0)).fit(X, y)
    assert model.controller_.relative
    assert str(model.guarantee()).startswith("At most 10 % of the total weight is missed")


def test_the_command_line_has_it(rows):
    made = succeeds(
        *("calibrate", "cal.parquet", "--label", "y", "--scores", "p0,p1,p2,p3", "--alpha", "0.1"),
        *("--weights", "6,1,1,2", "--relative", "-o", "cal.json"),
    )
    assert "At most 10 % of the total weight is missed" in made.stdout
    one = orisk.RiskController.load("cal.json")
    assert one.relative
    assert (
        one.threshold_
        == orisk.RiskController(LOSS, 0.1, relative=True).calibrate(*rows["cal"][:2]).threshold_
    )
    found = succeeds("evaluate", "cal.json", "test.parquet", "--json", "found.json")
    assert "of the largest possible loss (95 %" in " ".join(found.stdout.split())
    proba, y, _ = rows["test"]
    share = orisk.metrics.relative_risk(y, one.predict_set(proba), LOSS)
    assert json.loads(Path("found.json").read_text())["risk"][0] == pytest.approx(share)
    compared = succeeds(
        *("compare", "cal.parquet", "--label", "y", "--scores", "p0,p1,p2,p3", "--weights", "6,1,1,2"),
        *("--relative", "--json", "compared.json"),
    )
    assert "weights 6,1,1,2" in compared.stdout
    assert json.loads(Path("compared.json").read_text())["relative"] is True


def test_the_command_line_names_its_option(here):
    write_table(score_table(np.full((9, 2), 0.5), np.zeros(9, int)), "few.parquet")
    columns = ("few.parquet", "--label", "y", "--scores", "p0,p1", "--classes", "0,1", "-o", "cal.json")
    message = refusal(2, "calibrate", *columns, "--loss", "divergence", "--alpha", "1.2", "--relative")
    assert message.startswith(
        "--alpha must lie strictly between 0 and 1 with --relative; got 1.2. It is a share"
    )


def test_a_monitor_watches_the_same_share(rows):
    orisk.RiskController(LOSS, 0.1, relative=True, classes=range(K)).calibrate(*rows["cal"][:2]).save(
        "cal.json"
    )
    columns = ("test.parquet", "--label", "y", "--scores", "p0,p1,p2,p3")
    watched = succeeds("monitor", "state.json", "cal.json", *columns)
    assert "as a share of what could be lost" in " ".join(watched.stdout.split())


def test_online_controllers_have_no_such_promise():
    with pytest.raises(TypeError, match="relative"):
        orisk.OnlineRiskController(relative=True)


EDITS = {
    "no stake": (lambda curve: curve.pop("stake"), "must have a stake, because alpha is a share of it"),
    "more than the rows can lose": (
        lambda curve: curve.update(stake="401"),
        "has a stake that its rows can't",
    ),
    "less than was lost": (
        lambda curve: curve.update(stake="1/6"),
        "has a larger total than so many rows can",
    ),
    "no whole units": (lambda curve: curve.update(stake="100/7"), "has a stake that its rows can't have"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_saved_stake_that_can_not_be_is_refused(name, rows):
    orisk.RiskController(LOSS, 0.1, relative=True).calibrate(*rows["cal"][:2]).save("cal.json")
    change, message = EDITS[name]
    [stratum] = json.loads(Path("cal.json").read_text())["strata"]
    change(stratum["curve"])
    rewrite(Path("cal.json"), strata=[stratum])
    with pytest.raises(ValueError, match=f"field 'strata' is not valid: it {message}"):
        orisk.RiskController.load("cal.json")


def test_stakes_of_bets_must_agree(rows):
    one = orisk.RiskController(LOSS, 0.1, relative=True, delta=0.1).calibrate(*rows["cal"][:2])
    one.save("cal.json")
    [stratum] = json.loads(Path("cal.json").read_text())["strata"]
    stratum["steps"]["stakes"][0] += 1
    rewrite(Path("cal.json"), strata=[stratum])
    with pytest.raises(ValueError, match="it has a stake that is not that of its steps"):
        orisk.RiskController.load("cal.json")


def test_bets_keep_the_stake_of_each_unit_when_units_are_shuffled(rows):
    """A miss costs the whole stake of its row."""
    one = orisk.RiskController(LOSS, 0.1, relative=True, delta=0.1).calibrate(*rows["cal"][:2])
    one.save("cal.json")
    [stratum] = json.loads(Path("cal.json").read_text())["strata"]
    steps = stratum["steps"]
    assert len({*steps["by"]}) == 3
    assert steps["by"] == [steps["stakes"][unit] for unit in steps["unit"]]
    steps["stakes"] = steps["stakes"][::-1]
    rewrite(Path("cal.json"), strata=[stratum])
    with pytest.raises(ValueError, match="it has a unit that loses more than its stake"):
        orisk.RiskController.load("cal.json")


def test_a_stake_without_the_option_is_refused(rows):
    orisk.RiskController(LOSS, 0.1, check=False).calibrate(*rows["cal"][:2]).save("cal.json")
    [stratum] = json.loads(Path("cal.json").read_text())["strata"]
    stratum["curve"]["stake"] = "100"
    rewrite(Path("cal.json"), strata=[stratum])
    with pytest.raises(ValueError, match="it has a stake, but alpha is not a share of it"):
        orisk.RiskController.load("cal.json")


def test_without_the_option_nothing_is_relative(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = orisk.RiskController(LOSS, 0.1, check=False).calibrate(*rows["cal"][:2])
    assert one.risk_curve_.stake is None
    assert not one.relative
    assert "relative" not in repr(one)
    assert one.guarantee().measure is None
