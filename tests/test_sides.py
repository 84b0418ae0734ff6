"""One end of the sets, and sets that grow by another loss: exact thresholds, identities, and the promise."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from populations import COST_TABLE, LABELS, K, Population
from strategies import LOSSES, RULE_NAMES, calibration_sets, ends_of, exact_losses, shares
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk

pytestmark = [FEW, UNCHECKED]
SIDES = ("upper", "lower")
GROWN_BY = [None, "coverage", "divergence"]
PROBA = np.random.default_rng(0).dirichlet([1, 2, 4, 2, 1], size=400)
Y = np.array([np.random.default_rng(row).choice(5, p=p) for row, p in enumerate(PROBA)])


def of_side(loss, side, n_classes):
    """The same costs as a table: those of sets that lie below the truth, or of sets above it."""
    table = [list(row) for row in loss.exact_costs(n_classes)]
    for y, k in np.ndindex(n_classes, n_classes):
        if (k > y and side == "upper") or (k < y and side == "lower"):
            table[y][k] = Fraction(0)
    return orisk.CostTableLoss(table, normalize=False)


def assert_as_by_hand(loss, side, grown_by, growth, rows, share):
    """The curve at every threshold, the threshold and the sets, straight from the definitions."""
    proba, y = rows
    n_classes = proba.shape[1]
    counted = of_side(loss, side, n_classes) if side else loss
    alpha = share * counted.bound(n_classes)
    controller = orisk.RiskController(loss, alpha, growth, side=side, growth_loss=grown_by)
    controller.calibrate(proba, y)
    levels = controller.growth.levels(proba, grown_by or loss)
    stops = sorted({*levels.ravel().tolist()})
    totals = []
    for stop in stops:
        lower, upper = (end.tolist() for end in ends_of(levels, stop))
        if side:
            lower, upper = (lower, [n_classes - 1] * len(y)) if side == "lower" else ([0] * len(y), upper)
        totals.append(sum(exact_losses(y.tolist(), lower, upper, counted, n_classes)))
        assert controller.risk_curve_.total_loss(stop) == totals[-1]
    budget = alpha * (len(y) + 1) - counted.bound(n_classes)
    safe = [stop for stop, total in zip(stops, totals, strict=True) if total <= budget]
    assert controller.threshold_ == max(safe, default=-np.inf)
    if safe:
        sets, (lower, upper) = controller.predict_set(proba), ends_of(levels, max(safe))
        np.testing.assert_array_equal(sets.lower_index, 0 if side == "upper" else lower)
        np.testing.assert_array_equal(sets.upper_index, n_classes - 1 if side == "lower" else upper)


@pytest.mark.parametrize("grown_by", GROWN_BY)
@pytest.mark.parametrize("side", [None, *SIDES])
@pytest.mark.parametrize("growth", RULE_NAMES)
@settings(max_examples=15)
@given(rows=calibration_sets(max_classes=9), alpha=shares())
def test_thresholds_and_sets_are_those_by_hand(growth, side, grown_by, rows, alpha):
    for name in ("coverage", "weighted", "squared", "asymmetric", "table"):
        loss = LOSSES[name](rows[0].shape[1])
        if side is None or any(map(any, of_side_table(loss, side, rows[0].shape[1]))):
            assert_as_by_hand(loss, side, grown_by, growth, rows, alpha)


def of_side_table(loss, side, n_classes):
    costs = loss.cost_table(n_classes)
    return (np.tril(costs) if side == "upper" else np.triu(costs)).tolist()


@pytest.mark.parametrize("growth", RULE_NAMES)
def test_growing_by_its_own_loss_changes_nothing(growth):
    for name in LOSSES:
        loss = LOSSES[name](5)
        alpha = loss.bound(5) / 10
        own = orisk.RiskController(loss, alpha, growth).calibrate(PROBA, Y)
        named = orisk.RiskController(loss, alpha, growth, growth_loss=loss).calibrate(PROBA, Y)
        assert named.threshold_ == own.threshold_
        assert named.predict_set(PROBA) == own.predict_set(PROBA)


@pytest.mark.parametrize("growth", RULE_NAMES)
def test_the_scale_upside_down_has_the_other_side(growth):
    """Without ties, the sets of one side are those of the other on the mirrored scale."""
    for loss, mirrored in (
        ("coverage", "coverage"),
        (COST_TABLE, np.array(COST_TABLE)[::-1, ::-1]),
        (orisk.DivergenceLoss(under=3), orisk.DivergenceLoss(over=3)),
    ):
        upper = orisk.RiskController(loss, "0.05", growth, side="upper").calibrate(PROBA, Y)
        lower = orisk.RiskController(mirrored, "0.05", growth, side="lower").calibrate(PROBA[:, ::-1], 4 - Y)
        found, other = upper.predict_set(PROBA), lower.predict_set(PROBA[:, ::-1])
        np.testing.assert_array_equal(found.upper_index, 4 - other.lower_index)
        assert (found.lower_index == 0).all()
        assert (other.upper_index == 4).all()


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("growth", RULE_NAMES)
def test_given_each_class_the_end_costs_it_no_more_than_its_own_set(side, growth):
    for loss in (orisk.WeightedLoss(), orisk.CostTableLoss(COST_TABLE, normalize=False)):
        costs = np.array(of_side(loss, side, K).cost_table(K))
        alpha = {k: float(costs.max()) / 20 * (1 + k) for k in range(K)}
        one = orisk.RiskController(loss, alpha, growth, side=side).calibrate(PROBA, Y)
        sets, levels = one.predict_set(PROBA), one.growth.levels(PROBA, loss)
        for y in range(K):
            lower, upper = ends_of(levels, one.thresholds_[y])
            if side == "upper":
                own, joint = np.minimum(upper, y), np.minimum(sets.upper_index, y)
            else:
                own, joint = np.maximum(lower, y), np.maximum(sets.lower_index, y)
            assert (costs[y, joint] <= costs[y, own]).all()


OPTIONS = {
    "condition_on": {"condition_on": "label"},
    "pools": {"condition_on": "label", "pool_classes": True},
    "exempt": {"condition_on": "label", "exempt_classes": [0]},
    "relative": {"relative": True},
    "relative by class": {"relative": True, "condition_on": "label"},
    "randomize": {"randomize": True},
    **{bound: {"delta": 0.1, "confidence_bound": bound, "random_state": 0}
       for bound in ("binomial", "hoeffding_bentkus", "betting", "dkw")},
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_one_side_is_a_cost_table_for_every_option(options):
    """With the levels of coverage, everything else is that of the table of one side."""
    table = of_side(orisk.WeightedLoss(), "upper", 5)
    one = orisk.RiskController("coverage", 0.1, side="upper", **options).calibrate(PROBA, Y)
    plain = orisk.RiskController(table, 0.1, growth_loss="coverage", **options).calibrate(PROBA, Y)
    assert one.thresholds_ == plain.thresholds_
    seed = {"random_state": 3} if one.randomize else {}
    sets, others = one.predict_set(PROBA, **seed), plain.predict_set(PROBA, **seed)
    np.testing.assert_array_equal(sets.upper_index, others.upper_index)
    assert one.guarantee().n_needed == plain.guarantee().n_needed


def test_units_and_weights_are_those_of_the_table():
    table, groups = of_side(orisk.WeightedLoss(), "upper", 5), np.arange(len(Y)) % 2
    for rows in ({"groups": groups}, {"clusters": np.arange(len(Y)) // 2}, {"class_ratios": [1, 2, 1, 1, 1]}):
        one = orisk.RiskController("coverage", 0.1, side="upper").calibrate(PROBA, Y, **rows)
        plain = orisk.RiskController(table, 0.1, growth_loss="coverage").calibrate(PROBA, Y, **rows)
        assert one.thresholds_ == plain.thresholds_


@pytest.mark.parametrize("n", [200, 600])
@pytest.mark.parametrize("side", SIDES)
def test_the_expected_loss_of_one_side_is_at_most_alpha(side, n):
    """Over many calibrations of a known population, on sorted rows; a tenth more is seen."""
    alpha, larger = Fraction(1, 10), Fraction(11, 100)
    population, coarse = Population(seed=2), Population(seed=2, coarse=True)
    rng, kept = np.random.default_rng(0), {alpha: [], larger: [], "ties": []}
    for _ in range(400):
        case = rng.integers(0, len(population.proba), n)
        y = (population.cumulative[case, :-1] < rng.random((n, 1))).sum(axis=1)
        rows = np.argsort(y)
        for scored, risk, found in (
            (population, alpha, kept[alpha]),
            (population, larger, kept[larger]),
            (coarse, alpha, kept["ties"]),
        ):
            one = orisk.RiskController("coverage", risk, side=side, check=False)
            sets = one.calibrate(scored.proba[case[rows]], y[rows]).predict_set(scored.proba)
            beyond = sets.upper_index[:, None] < LABELS
            if side == "lower":
                beyond = sets.lower_index[:, None] > LABELS
            found.append(float((population.joint * beyond).sum()))
    means = {name: np.mean(found) for name, found in kept.items()}
    error = np.std(kept[alpha]) / np.sqrt(400)
    assert max(means[alpha], means["ties"]) <= alpha + 2 * error
    assert means[larger] > alpha + 2 * error


@pytest.mark.parametrize("side", SIDES)
def test_a_side_without_costs_is_refused(side):
    loss = orisk.DivergenceLoss(under=0) if side == "upper" else orisk.DivergenceLoss(over=0)
    lies = "below" if side == "upper" else "above"
    with pytest.raises(ValueError, match=f"side='{side}': a set that lies {lies} the truth costs nothing"):
        orisk.RiskController(loss, side=side).calibrate(PROBA, Y)


def test_an_unknown_side_is_refused():
    with pytest.raises(ValueError, match=re.escape("side must be one of ['upper', 'lower'], or None")):
        orisk.RiskController(side="left")


def test_words_name_the_side():
    one = orisk.RiskController(alpha=0.1, side="upper", growth_loss="divergence").calibrate(PROBA, Y)
    words = " ".join(str(one.guarantee()).split())
    assert "expected loss of a new row from sets that lie below the truth is at most 0.1" in words
    assert "side='upper', growth_loss=DivergenceLoss()" in repr(one)
    assert "only the upper end of sets is controlled" in one._repr_html_()


@pytest.mark.parametrize("options", [{"side": "upper"}, {"side": "lower", "loss": "divergence"},
                                     {"growth_loss": COST_TABLE}], ids=repr)  # fmt: skip
def test_a_saved_calibration_keeps_its_side(options, tmp_path):
    one = orisk.RiskController(alpha=0.1, **options).calibrate(PROBA, Y)
    one.save(tmp_path / "one.json")
    again = orisk.RiskController.load(tmp_path / "one.json")
    assert again.guarantee() == one.guarantee()
    assert again.predict_set(PROBA) == one.predict_set(PROBA)
    assert (again.side, again.growth_loss) == (one.side, one.growth_loss)


# what tests and reports say about one side


def class_risks(sets, lost, relative):
    """The risk of each class, as a share of its largest cost if ``relative``."""
    risks, largest = orisk.metrics.class_risk(Y, sets, lost), lost.cost_table(5).max(axis=1)
    return [risk / most if relative and most else risk for risk, most in zip(risks, largest, strict=True)]


def test_a_report_counts_one_side():
    """Its numbers are those of the one-sided sets, its words name the side, its rules are one-sided too."""
    for options in ({}, {"relative": True}):
        one = orisk.RiskController("divergence", "0.3", side="upper", **options).calibrate(PROBA, Y)
        facts = orisk.report.summarise(one, PROBA[::-1], Y[::-1])
        lost = of_side(orisk.DivergenceLoss(), "upper", 5)
        by_class = [
            None if risk is None else risk[0] for risk in facts["stops"][facts["start"]]["class_risk"]
        ]
        shares = class_risks(one.predict_set(PROBA), lost, relative=bool(options))
        assert by_class[1:] == pytest.approx(shares[1:])
        sets = one.predict_set(PROBA)
        expected = (orisk.metrics.relative_risk if options else orisk.metrics.risk)(Y, sets, lost)
        stop = facts["stops"][facts["start"]]
        assert stop["risk"][0] == pytest.approx(expected)
        assert "lie below the truth" in stop["headline"]
        assert "Only sets that lie below the truth count as misses" in facts["loss"]["description"]
        own = facts["rules"]["names"].index("frontier")
        assert facts["rules"]["mean_size"][own][facts["start"]] > sets.size.mean() - 0.3


def test_growth_auto_and_alpha_for_size_know_one_sided_sets():
    auto = orisk.RiskController(alpha="0.1", side="upper", growth="auto", random_state=0).calibrate(PROBA, Y)
    assert (auto.predict_set(PROBA).lower_index == 0).all()
    one = orisk.RiskController(side="upper").calibrate(PROBA, Y)
    alpha = orisk.alpha_for_size(one, PROBA, 4)
    assert one.predict_set(PROBA, alpha=alpha).size.mean() <= 4


def test_checks_do_not_mistake_the_free_end_for_misses():
    """Class 1 ties for the smallest score, but all sets reach beyond it; class 4 is missed, and named."""
    tied, y = np.tile([0.05, 0.05, 0.8, 0.05, 0.05], (400, 1)), np.repeat([1, 2, 4], [120, 260, 20])
    with pytest.warns(orisk.CalibrationWarning) as caught:
        orisk.RiskController(alpha=0.1, side="upper", classes=range(5)).calibrate(tied, y)
    said = " ".join(str(each.message) for each in caught)
    assert "is the smallest of the row" not in said
    assert "covered less than half as often as 1 - alpha = 0.9 on the calibration rows: 4 (0 of 20" in said


def test_a_monitor_and_the_estimator_take_one_side():
    loss = of_side(orisk.WeightedLoss(), "upper", 5)
    one = orisk.RiskController(alpha="0.1", side="upper").calibrate(PROBA, Y)
    monitor = orisk.RiskMonitor(loss, "0.1", classes=range(5))
    monitor.update(Y, one.predict_set(PROBA))
    assert monitor.risk_ == (one.predict_set(PROBA).upper_index < Y).mean()
    from sklearn.linear_model import LogisticRegression

    model = orisk.OrdinalRiskClassifier(LogisticRegression(), side="lower", growth_loss="divergence")
    sets = model.fit(PROBA, Y).predict_set(PROBA)
    assert (sets.upper_index == 4).all()
    assert model.controller_.growth_loss == orisk.DivergenceLoss()


@pytest.mark.parametrize(("loss", "says_nothing_more"), [("coverage", False), ("divergence", True)])
def test_a_side_of_coverage_is_about_the_share_of_sets_there(loss, says_nothing_more):
    guarantee = orisk.RiskController(loss, alpha=0.05, side="upper").calibrate(PROBA, Y).guarantee()
    assert (
        "Nothing more is guaranteed about the share" in " ".join(str(guarantee).split())
    ) == says_nothing_more
