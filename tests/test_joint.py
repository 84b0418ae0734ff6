"""Several guarantees with one set: identities, the promise of each, and one ``delta`` for all together."""

import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from populations import COST_TABLE, LABELS, K, Population
from strategies import LOSSES, RULE_NAMES
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import JointController, RiskController

NAMED = pytest.mark.filterwarnings(
    r"ignore:[\w, ]+. (Some classes|The weights hurt|With these|alpha=\S+ allows)"
)
pytestmark = [FEW, UNCHECKED, NAMED]
PROBA = np.random.default_rng(0).dirichlet([1, 2, 4, 2, 1], size=600)
Y = np.array([np.random.default_rng(row).choice(5, p=p) for row, p in enumerate(PROBA)])
NEW = np.random.default_rng(7).dirichlet([1, 2, 4, 2, 1], size=500)
HOSPITAL = np.random.default_rng(1).choice(["A", "B", "C"], 600, p=[0.6, 0.3, 0.1])
SEX = np.random.default_rng(2).choice(["f", "m"], 600)
TABLE = orisk.CostTableLoss(COST_TABLE)


def ends(sets):
    return sets.lower_index, sets.upper_index


def contains(sets, part, side=None):
    lower = side == "upper" or (sets.lower_index <= part.lower_index).all()
    return bool(lower and (side == "lower" or (sets.upper_index >= part.upper_index).all()))


@pytest.mark.parametrize("growth", RULE_NAMES)
@pytest.mark.parametrize("loss", LOSSES)
def test_one_guarantee_is_the_controller_itself(loss, growth):
    made = LOSSES[loss](5)
    one = RiskController(made, made.bound(5) / 10, growth)
    joint = JointController([one]).calibrate(PROBA, Y)
    one.calibrate(PROBA, Y)
    assert joint.predict_set(NEW) == one.predict_set(NEW)
    assert joint.guarantee().parts == {"1": one.guarantee()}
    assert joint.parts_["1"].data_blake3_ == one.data_blake3_


def test_both_sides_at_one_threshold_are_the_plain_sets():
    """If both ends stop at the threshold of the whole loss, no label is lost or won."""
    plain = RiskController(alpha=0.1).calibrate(PROBA, Y)
    sets = plain.predict_set(PROBA)
    risks = {"upper": (sets.upper_index < Y), "lower": (sets.lower_index > Y)}
    # the smallest alpha at which a side's threshold is at least the one of the whole loss
    alphas = {side: Fraction(int(lost.sum()) + 1, len(Y) + 1) for side, lost in risks.items()}
    joint = JointController([RiskController(alpha=alphas[side], side=side) for side in alphas])
    found = joint.calibrate(PROBA, Y).predict_set(NEW)
    assert contains(plain.predict_set(NEW), found)
    lost = (found.size < plain.predict_set(NEW).size).mean()
    assert lost < 0.05  # only labels between the last row's level and the next
    at = {side: part.threshold_ for side, part in zip(alphas, joint.parts_.values(), strict=True)}
    assert min(at.values()) == plain.threshold_


def test_one_column_of_groups_is_groups():
    plain = RiskController(alpha=0.1).calibrate(PROBA, Y, groups=HOSPITAL)
    new = np.resize(["A", "B", "C"], len(NEW))
    for given, asked in ((HOSPITAL, new), ({"hospital": HOSPITAL}, {"hospital": new})):
        joint = JointController([RiskController(alpha=0.1)]).calibrate(PROBA, Y, groups=given)
        assert joint.predict_set(NEW, groups=asked) == plain.predict_set(NEW, groups=new)


@pytest.mark.parametrize("growth", RULE_NAMES)
@pytest.mark.parametrize("growth_loss", [None, "coverage"])
def test_joint_sets_are_the_ends_that_the_guarantees_need_and_nested(growth, growth_loss):
    """At every pair of risks: contains what each guarantee needs, and no set contains less for less risk."""
    before = None
    for alpha in ("0.3", "0.2", "0.1", "0.05"):
        asked = {
            "misses": RiskController(alpha=alpha, growth=growth),
            "costs": RiskController(TABLE, Fraction(alpha) / 4, growth),
            "worse": RiskController(alpha=Fraction(alpha) / 5, growth=growth, side="upper"),
            "milder": RiskController(alpha=Fraction(alpha) / 2, growth=growth, side="lower"),
        }
        joint = JointController(asked, growth_loss=growth_loss).calibrate(PROBA, Y)
        sets = joint.predict_set(NEW)
        each = {name: part.predict_set(NEW) for name, part in joint.parts_.items()}
        for name, part in each.items():
            assert contains(sets, part, joint.parts_[name].side)
        low = np.min([each[name].lower_index for name in ("misses", "costs", "milder")], axis=0)
        high = np.max([each[name].upper_index for name in ("misses", "costs", "worse")], axis=0)
        np.testing.assert_array_equal(sets.lower_index, low)
        np.testing.assert_array_equal(sets.upper_index, high)
        assert before is None or contains(sets, before)
        before = sets


def test_with_one_family_the_joint_threshold_is_the_smallest():
    asked = [RiskController(alpha=0.2), RiskController("divergence", alpha="0.03")]
    joint = JointController(asked, growth_loss="coverage").calibrate(PROBA, Y)
    smallest = min(part.threshold_ for part in joint.parts_.values())
    lower, upper = ends(joint.predict_set(NEW))
    levels = asked[0].growth.levels(NEW, "coverage")
    for row in range(len(NEW)):
        inside = np.flatnonzero(levels[row] >= smallest)
        assert (lower[row], upper[row]) == (inside[0], inside[-1])


def test_ends_that_would_cross_change_places():
    """The two sides start at different labels, because their weights differ."""
    worse = RiskController(
        alpha="0.9", side="upper", check=False, growth_loss=orisk.WeightedLoss([9, 1, 1, 1, 1])
    )
    milder = RiskController(
        alpha="0.9", side="lower", check=False, growth_loss=orisk.WeightedLoss([1, 1, 1, 1, 9])
    )
    joint = JointController([worse, milder]).calibrate(PROBA, Y)
    first, second = (part.predict_set(NEW) for part in joint.parts_.values())
    assert (second.lower_index > first.upper_index).any()
    sets = joint.predict_set(NEW)
    assert (sets.lower_index <= sets.upper_index).all()
    assert contains(sets, first, "upper")
    assert contains(sets, second, "lower")


def test_the_order_of_the_rows_does_not_matter():
    groups = {"hospital": HOSPITAL, "sex": SEX}
    new = {"hospital": np.resize(["A", "B"], len(NEW)), "sex": np.resize(["m", "m", "f"], len(NEW))}
    found = []
    for rows in (np.arange(600), np.argsort(Y), np.argsort(HOSPITAL)):
        given = {name: values[rows] for name, values in groups.items()}
        joint = JointController([RiskController(alpha=0.1)]).calibrate(PROBA[rows], Y[rows], groups=given)
        found.append(joint.predict_set(NEW, groups=new))
    assert found[0] == found[1] == found[2]


# the promise, over many calibrations of a known population

DRAWS = 300
MORE = Fraction(11, 10)


def drawn(rng, population, n):
    case = rng.integers(0, len(population.proba), n)
    return case, (population.cumulative[case, :-1] < rng.random((n, 1))).sum(axis=1)


def risks_of(population, loss, sets, side=None, joint=None):
    """The expected loss, computed; of one side, the other end counts as free."""
    lower, upper = ends(sets)
    lower = lower * 0 if side == "upper" else lower
    upper = upper * 0 + K - 1 if side == "lower" else upper
    share = population.joint if joint is None else joint
    return float((share * population.losses(loss, lower, upper)).sum())


def means_of(draw_risks, factor, seed=0, draws=DRAWS):
    rng = np.random.default_rng(seed)
    found = np.array([draw_risks(rng, factor) for _ in range(draws)])
    return found.mean(axis=0), found.std(axis=0) / np.sqrt(draws), found


COVERAGE, FAR = orisk.WeightedLoss(), orisk.DivergenceLoss()
SEVERAL = {  # several losses, of sets that each grow as they like or all as one
    "several losses": ([(COVERAGE, "0.2", None), (TABLE, "0.05", None)], None),
    "one family": ([(COVERAGE, "0.2", None), (FAR, "0.03", None)], COVERAGE),
    "two sides": ([(COVERAGE, "0.05", "upper"), (COVERAGE, "0.15", "lower")], None),
    "far above, near below": ([(FAR, "0.02", "upper"), (COVERAGE, "0.1", None)], None),
}


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("n", [150, 500])
@pytest.mark.parametrize("name", SEVERAL)
def test_each_guarantee_is_kept_and_a_tenth_more_is_seen(name, n, coarse):
    asked, growth_loss = SEVERAL[name]
    population = Population(seed=3, coarse=coarse)

    def draw_risks(rng, factor):
        case, y = drawn(rng, population, n)
        parts = [
            RiskController(loss, Fraction(a) * factor, side=side, check=False) for loss, a, side in asked
        ]
        joint = JointController(parts, growth_loss=growth_loss).calibrate(population.proba[case], y)
        sets = joint.predict_set(population.proba)
        return [risks_of(population, loss, sets, side) for loss, _, side in asked]

    alphas = np.array([float(Fraction(alpha)) for _, alpha, _ in asked])
    means, errors, _ = means_of(draw_risks, Fraction(1))
    assert (means <= alphas + 2.5 * errors).all()
    if coarse or n < 500:
        return  # with ties and few rows some of alpha is left unspent
    means, errors, _ = means_of(draw_risks, MORE)
    beyond = means > alphas + 2.5 * errors
    assert beyond.all() if name == "two sides" else beyond.any()


@pytest.mark.parametrize("n", [200, 800])
def test_each_of_overlapping_groups_keeps_its_promise(n):
    """A rare group of hard cases overlaps both columns; a tenth more is seen where the groups bind."""
    population, alpha = Population(seed=1), Fraction(1, 5)
    n_cases = len(population.proba)
    hard = np.arange(n_cases) % 8 == 0  # the model is wrong most often there
    rng = np.random.default_rng(5)
    population.proba[hard] = orisk.probabilities.softmax(rng.normal(0, 2, (hard.sum(), K)))
    columns = {
        "hospital": np.where(hard, "rare", np.where(np.arange(n_cases) % 3 == 0, "A", "B")),
        "sex": np.where(np.arange(n_cases) % 2 == 0, "f", "m"),  # all hard cases are "f"
    }
    kinds = [(name, group) for name, values in columns.items() for group in np.unique(values)]

    def draw_risks(rng, factor):
        case, y = drawn(rng, population, n)
        rows = np.argsort(columns["hospital"][case])
        case, y = case[rows], y[rows]
        given = {name: values[case] for name, values in columns.items()}
        asked = [RiskController(alpha=alpha * factor, check=False)]
        joint = JointController(asked).calibrate(population.proba[case], y, groups=given)
        sets = joint.predict_set(population.proba, groups=columns)
        return [
            risks_of(population, COVERAGE, sets, joint=share / share.sum())
            for name, group in kinds
            for share in [population.joint * (columns[name] == group)[:, None]]
        ]

    means, errors, _ = means_of(draw_risks, Fraction(1))
    assert (means <= float(alpha) + 2.5 * errors).all(), dict(zip(kinds, means, strict=True))
    means, errors, _ = means_of(draw_risks, MORE)
    if n == 800:
        assert (means > float(alpha) + 2.5 * errors).any()


DELTA = 0.1


def share_that_fails(asked, growth_loss, factor, n=300, draws=600):
    """How often any risk exceeds its alpha."""
    population, rng, failed = Population(seed=4), np.random.default_rng(1), 0
    for _ in range(draws):
        case, y = drawn(rng, population, n)
        parts = [
            RiskController(loss, Fraction(a) * factor, delta=DELTA, side=side, check=False)
            for loss, a, side in asked
        ]
        joint = JointController(parts, growth_loss=growth_loss).calibrate(population.proba[case], y)
        sets = joint.predict_set(population.proba)
        risks = [(risks_of(population, loss, sets, side), Fraction(a)) for loss, a, side in asked]
        failed += any(risk > alpha for risk, alpha in risks)
    return failed / draws, joint.guarantee().at_once


WEIGHTED = orisk.WeightedLoss([1, 1, 0, 0, 0]), orisk.WeightedLoss([0, 0, 0, 1, 1])


def test_with_one_family_one_delta_covers_all_guarantees():
    """Misses of low and of high classes depend on other rows, so a union bound would need delta / 3."""
    asked = [(WEIGHTED[0], "0.05", None), (WEIGHTED[1], "0.05", None), (COVERAGE, "0.15", None)]
    error = np.sqrt(DELTA * (1 - DELTA) / 600)
    failed, at_once = share_that_fails(asked, COVERAGE, Fraction(1))
    assert at_once
    assert failed <= DELTA + 2.5 * error
    failed, _ = share_that_fails(asked, COVERAGE, Fraction(3, 2))
    assert failed > DELTA + 2.5 * error


def test_without_one_family_each_guarantee_has_its_delta_by_itself():
    """Two sides have thresholds of their own: any of them fails more often than delta, as the words say."""
    asked = [(COVERAGE, "0.1", "upper"), (COVERAGE, "0.1", "lower")]
    failed, at_once = share_that_fails(asked, None, Fraction(1), n=312)  # where the binomial bound is tight
    assert not at_once
    assert failed > DELTA + 2.5 * np.sqrt(DELTA * (1 - DELTA) / 600)
    joint = JointController([RiskController(alpha=0.1, delta=0.1, side=side) for side in ("upper", "lower")])
    words = " ".join(str(joint.calibrate(PROBA, Y).guarantee()).split())
    assert words.endswith("each has its confidence by itself.")


@pytest.mark.parametrize(
    ("asked", "growth_loss", "at_once"),
    [
        ([{}, {"loss": "divergence", "alpha": 0.05}], "coverage", True),
        ([{}, {"alpha": 0.2}], None, True),
        ([{}, {"loss": "divergence", "alpha": 0.05}], None, False),
        ([{}, {"delta": 0.2}], None, False),
        ([{}, {"growth": "adaptive"}], None, False),
        ([{}, {"growth": orisk.FrontierGrowth("median")}], None, False),
        ([{}, {"side": "upper"}], None, False),
        ([{"side": "upper"}, {"side": "upper", "alpha": 0.2}], None, True),
        ([{}, {"condition_on": "label"}], None, False),
        ([{}], None, False),
    ],
    ids=str,
)
def test_all_at_once_is_said_only_of_one_family(asked, growth_loss, at_once):
    parts = [RiskController(**{"delta": 0.1, "alpha": 0.15} | options) for options in asked]
    joint = JointController(parts, growth_loss=growth_loss).calibrate(PROBA, Y)
    assert joint.guarantee().at_once == at_once
    assert ("together with probability at least 0.9" in str(joint.guarantee())) == at_once


def test_another_map_makes_another_family():
    maps = [orisk.Recalibrator(method).fit(PROBA, Y) for method in ("temperature", "isotonic")]
    parts = [RiskController(alpha=0.15, delta=0.1, recalibration=each) for each in maps]
    assert not JointController(parts).calibrate(PROBA, Y).guarantee().at_once
    assert JointController([parts[0], parts[0]]).calibrate(PROBA, Y).guarantee().at_once


# binding, saving, joining, refusing


def test_binding_counts_the_rows_that_each_guarantee_makes_larger():
    asked = {"misses": RiskController(alpha=0.1), "costs": RiskController(TABLE, "0.05")}
    joint = JointController(asked).calibrate(PROBA, Y)
    frame, size = joint.binding(NEW).to_pandas(), joint.predict_set(NEW).size
    for name, other in (("misses", "costs"), ("costs", "misses")):
        row = frame.set_index("guarantee").loc[name]
        assert row["size_alone"] == joint.parts_[name].predict_set(NEW).size.mean()
        assert row["binds"] == (joint.parts_[other].predict_set(NEW).size < size).mean()


def test_of_two_sides_each_binds_where_the_set_has_more_than_one_label():
    joint = JointController([RiskController(alpha=0.1, side=side) for side in ("upper", "lower")])
    binds = joint.calibrate(PROBA, Y).binding(NEW).binds
    assert binds == [(joint.predict_set(NEW).size > 1).mean()] * 2


@pytest.mark.parametrize("groups", [None, {"hospital": HOSPITAL, "sex": SEX}], ids=["alone", "groups"])
def test_a_saved_joint_calibration_predicts_the_same(groups, tmp_path):
    asked = {"misses": RiskController(alpha=0.1), "worse": RiskController(alpha=0.02, side="upper")}
    joint = JointController(asked).calibrate(PROBA, Y, groups=groups)
    joint.save(tmp_path / "joint.json")
    again = JointController.load(tmp_path / "joint.json")
    assert again.predict_set(PROBA, groups=groups) == joint.predict_set(PROBA, groups=groups)
    assert again.guarantee() == joint.guarantee()
    assert [*again.parts_] == [*joint.parts_]
    assert repr(again) == repr(joint)


@pytest.mark.parametrize(("field", "value"), [("name", "other"), ("partition", "hospital")])
def test_an_edited_joint_file_is_refused(field, value, tmp_path):
    JointController([RiskController()]).calibrate(PROBA, Y).save(tmp_path / "joint.json")
    text = (tmp_path / "joint.json").read_text()
    edited = re.sub(rf'"{field}": ("1"|null)', f'"{field}": "{value}"', text, count=1)
    assert edited != text
    (tmp_path / "joint.json").write_text(edited)
    with pytest.raises(ValueError, match="field 'parts' does not match its digest"):
        JointController.load(tmp_path / "joint.json")


def test_joined_controllers_are_those_calibrated_together():
    asked = {"misses": RiskController(alpha=0.1), "worse": RiskController(alpha=0.02, side="upper")}
    together = JointController(asked).calibrate(PROBA, Y)
    joined = JointController.join({name: each.calibrate(PROBA, Y) for name, each in asked.items()})
    assert joined.predict_set(NEW) == together.predict_set(NEW)
    assert joined.guarantee() == together.guarantee()


def test_joined_controllers_may_have_other_rows_and_groups():
    by_sex = RiskController(alpha=0.1).calibrate(PROBA[:400], Y[:400], groups=SEX[:400])
    plain = RiskController(alpha=0.05).calibrate(PROBA[100:], Y[100:])
    joint = JointController.join({"sex": by_sex, "all": plain})
    new = np.resize(["f", "m"], len(NEW))
    sets = joint.predict_set(NEW, groups={"sex": new})
    assert contains(sets, by_sex.predict_set(NEW, groups=new))
    assert contains(sets, plain.predict_set(NEW))
    assert joint.n_rows_ == 400


def test_rows_of_a_frame_keep_their_index():
    joint = JointController([RiskController(), RiskController(side="upper")]).calibrate(PROBA, Y)
    frame = pd.DataFrame(NEW, index=[f"case {row}" for row in range(len(NEW))])
    groups = pd.DataFrame({"hospital": HOSPITAL, "sex": SEX})
    assert joint.predict_set(frame).index[0] == "case 0"
    by_frame = JointController([RiskController()]).calibrate(PROBA, Y, groups=groups)
    by_matrix = JointController([RiskController()]).calibrate(PROBA, Y, groups=groups.to_numpy())
    assert [*by_frame.parts_] == ["1, by hospital", "1, by sex"]
    assert [*by_matrix.parts_] == ["1, by 0", "1, by 1"]


def test_randomized_and_plain_guarantees_share_a_seed():
    joint = JointController([RiskController(randomize=True), RiskController(side="upper", alpha=0.02)])
    joint.calibrate(PROBA, Y)
    assert joint.predict_set(NEW, random_state=1) == joint.predict_set(NEW, random_state=1)
    with pytest.raises(ValueError, match="is randomized, so predictions need random_state="):
        joint.predict_set(NEW)


ONE_SIDED = RiskController(side="upper")
THREE = np.random.default_rng(0).dirichlet([1, 2, 1], size=600)
PLAIN, BY_GROUP = (
    JointController([RiskController(alpha=0.1)]).calibrate(PROBA, Y, groups=groups)
    for groups in (None, {"hospital": HOSPITAL, "sex": SEX})
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: JointController([]), "controllers is empty"),
        (lambda: JointController(RiskController()), "must be a mapping or a sequence of RiskControllers"),
        (lambda: JointController(["coverage"]), "RiskController"),
        (
            lambda: JointController([RiskController()]).predict_set(NEW),
            "JointController is not calibrated yet",
        ),
        (lambda: JointController.join([RiskController()]), "not calibrated yet"),
        (lambda: JointController([RiskController(growth="auto")]), 'growth="auto" is chosen on rows'),
        (lambda: PLAIN.predict_set(NEW, groups=["A"] * 500), "was made without groups; got one column"),
        (lambda: PLAIN.predict_set(NEW, random_state=1), "random_state was given, but"),
        (lambda: PLAIN.predict_set(NEW, sample_weight=[1.0] * 500), "sample_weight was given, but"),
        (lambda: BY_GROUP.predict_set(NEW), "needs groups for 'hospital', 'sex'; got none"),
        (
            lambda: BY_GROUP.predict_set(NEW, groups={"hospital": ["A"] * 500}),
            "needs groups for 'hospital', 'sex'; got 'hospital'",
        ),
        (
            lambda: BY_GROUP.predict_set(NEW, groups={"hospital": ["Z"] * 500, "sex": ["f"] * 500}),
            "a group without calibration rows",
        ),
        (lambda: PLAIN.calibrate(PROBA, Y, groups={}), "groups has no columns"),
        (
            lambda: orisk.alpha_for_size(RiskController(side="upper").calibrate(PROBA, Y), NEW, 1),
            "one-sided sets",
        ),
        (
            lambda: JointController.join(
                [RiskController().calibrate(PROBA, Y), RiskController().calibrate(THREE, Y % 3)]
            ),
            "joint sets need the same classes in the same order",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:The scores")
def test_what_has_no_answer_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_unseen_groups_can_have_all_labels():
    groups = {"hospital": ["Z"] * 500, "sex": ["f"] * 500}
    assert (BY_GROUP.predict_set(NEW, groups=groups, unseen_groups="full").size == 5).all()


def test_warnings_name_the_guarantee():
    asked = {"misses": RiskController(alpha=0.1), "rare": RiskController(alpha=0.001)}
    with pytest.warns(orisk.TooFewRowsWarning, match="^rare: alpha=0.001 needs at least 999"):
        joint = JointController(asked).calibrate(PROBA, Y)
    assert not joint.guarantee().certified
    assert (joint.predict_set(NEW).size == 5).all()


@pytest.mark.filterwarnings("error:The guarantees start")
def test_sets_that_start_at_other_labels_are_warned_of():
    """A loss without weight for most classes starts at the others, so the joint sets reach far."""
    asked = {
        "misses": RiskController(alpha=0.3),
        "severe": RiskController(orisk.WeightedLoss([0, 0, 0, 0, 1]), "0.2"),
    }
    message = "at labels far apart, so joint sets have at least [23][.0-9]* labels on average, whatever"
    with pytest.warns(orisk.CalibrationWarning, match=message):
        own = JointController(asked).calibrate(PROBA, Y)
    family = JointController(asked, growth_loss="coverage").calibrate(PROBA, Y)
    assert family.predict_set(NEW).size.mean() < own.predict_set(NEW).size.mean()
    JointController([RiskController(alpha=0.1), RiskController("divergence", alpha=0.1)]).calibrate(PROBA, Y)


def test_words_have_all_guarantees():
    joint = JointController({"misses": RiskController(alpha=0.1), "worse": RiskController(side="upper")})
    words = str(joint.calibrate(PROBA, Y).guarantee())
    assert words.startswith("misses: The expected loss of a new row is at most 0.1")
    assert "worse: The expected loss of a new row from sets that lie below" in words
    assert words.endswith("All of these hold for the same sets.")
    assert (joint.classes_ == LABELS).all()


def test_one_growth_loss_replaces_that_of_each_guarantee():
    """Also of a guarantee about the very loss that all are to grow by."""
    asked = [
        RiskController(alpha=0.1, delta=0.1, growth_loss="divergence"),
        RiskController("divergence", 0.05, delta=0.1),
    ]
    joint = JointController(asked, growth_loss="coverage").calibrate(PROBA, Y)
    plain = RiskController(alpha=0.1, delta=0.1).calibrate(PROBA, Y)
    assert joint.parts_["1"].threshold_ == plain.threshold_
    assert joint.guarantee().at_once


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: JointController({1: RiskController(), "1": RiskController()}), "guarantees are called '1'"),
        (
            lambda: JointController([RiskController()]).calibrate(PROBA, Y, groups={1: HOSPITAL, "1": SEX}),
            "columns of groups are called '1'",
        ),
    ],
)
def test_names_with_the_same_text_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_no_part_says_what_is_true_of_its_own_sets_only():
    asked = {"worse": RiskController(alpha=0.9, side="upper"), "milder": RiskController(alpha=0.05)}
    joint = JointController(asked).calibrate(PROBA, Y)
    assert joint.parts_["worse"].guarantee().saturated
    assert (joint.predict_set(NEW).size > 1).any()
    assert "Every set" not in str(joint.guarantee())
    words = " ".join(str(joint.parts_["worse"].guarantee()).split())
    assert "Every set ends at its point label; on the calibration rows" in words


@pytest.mark.filterwarnings("ignore:.*alpha=0.001 needs")
def test_an_end_without_a_certificate_is_said_of_that_end():
    asked = {"worse": RiskController(alpha=0.001, side="upper"), "milder": RiskController(side="lower")}
    joint = JointController(asked).calibrate(PROBA, Y)
    assert (joint.predict_set(NEW).size < 5).any()
    words = " ".join(str(joint.guarantee()).split())
    assert "too few of them, so every set reaches up to the last label" in words
    assert "all labels" not in words


def test_what_a_calibration_learned_on_rows_apart_is_not_used_to_calibrate_on_them():
    for made, given in (({"growth": "auto"}, {}), ({}, {"recalibrate": "temperature"})):
        learned = RiskController(alpha=0.1, check=False, **made)
        joint = JointController([learned]) if given else None
        learned.calibrate(PROBA, Y, **given)
        with pytest.raises(ValueError, match="has learned its map or its growth rule"):
            JointController([learned])
        if joint is not None:
            with pytest.raises(ValueError, match="has learned its map or its growth rule"):
                joint.calibrate(PROBA, Y)
        assert JointController.join([learned]).predict_set(NEW) == learned.predict_set(NEW)
