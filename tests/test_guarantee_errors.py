"""Errors about wrong options and rows say what is wrong, where, and what to do."""

import hashlib
import json
import math
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from options import BOUNDS, COMBINES
from test_guarantee_identities import (
    CLUSTERS,
    GROUPS,
    NEW,
    NEW_GROUPS,
    NEW_WEIGHTS,
    PROBA,
    WEIGHTS,
    K,
    M,
    N,
    Y,
    options_of,
)
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk

pytestmark = UNCHECKED

ALPHAS = dict.fromkeys(range(K), 0.2)


def changed(values, row, value):
    return [value if i == row else item for i, item in enumerate(values)]


@pytest.mark.parametrize("name", ["groups", "clusters"])
@pytest.mark.parametrize("missing", [None, math.nan, pd.NA, pd.NaT], ids=repr)
def test_a_row_without_group_or_cluster_is_located(name, missing):
    with pytest.raises(ValueError, match=rf"{name}\[7\] is missing; fill it in, or leave"):
        orisk.RiskController().calibrate(PROBA, Y, **{name: changed(GROUPS, 7, missing)})


def test_a_new_row_without_group_is_located():
    one = orisk.RiskController().calibrate(PROBA, Y, groups=GROUPS)
    with pytest.raises(ValueError, match=r"groups\[3\] is missing"):
        one.predict_set(NEW, groups=changed(NEW_GROUPS, 3, None), unseen_groups="full")


@pytest.mark.parametrize("name", ["groups", "clusters"])
def test_another_number_of_groups_than_rows_is_an_error(name):
    message = rf"{name} must have one value for each of the {N} rows of proba; got shape \({N - 1},\)"
    with pytest.raises(ValueError, match=message):
        orisk.RiskController().calibrate(PROBA, Y, **{name: GROUPS[:-1]})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, -5e-324], ids=repr)
def test_a_weight_that_is_no_ratio_is_located(value):
    message = rf"sample_weight\[2\] is {value}; a weight is a likelihood ratio, finite and 0 or larger"
    with pytest.raises(ValueError, match=message):
        orisk.RiskController().calibrate(PROBA, Y, sample_weight=changed(WEIGHTS, 2, value))
    one = orisk.RiskController().calibrate(PROBA, Y, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match=message):
        one.predict_set(NEW, sample_weight=changed(NEW_WEIGHTS, 2, value))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(N), "sample_weight is 0 in every row; some row must count"),
        (np.ones(N + 1), rf"sample_weight must have one weight for each of the {N} rows of proba; got shape"),
        (np.ones((N, 1)), r"sample_weight must have one weight .* got shape \("),
        (["much"] * N, "sample_weight must hold numbers; got an array of type"),
    ],
    ids=["zero", "too many", "a table", "words"],
)
def test_weights_that_are_none_are_an_error(weights, message):
    with pytest.raises(ValueError, match=message):
        orisk.RiskController().calibrate(PROBA, Y, sample_weight=weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1, 1], r"class_ratios must have one ratio for each of the 5 classes; got 3"),
        ([0] * K, "class_ratios is 0 for every class; at least one must be positive"),
        ([1, 1, -0.5, 1, 1], r"class_ratios of 2 is -0.5; a ratio of shares must be at least 0"),
        ([1, 1, math.nan, 1, 1], "class_ratios must be a finite number"),
        ([1, 1, math.inf, 1, 1], "class_ratios must be a finite number"),
        ([1, 1, "x", 1, 1], "class_ratios must be a finite number"),
        (
            dict.fromkeys(range(4), 1),
            r"class_ratios has no value for class 4; give each of the classes \[0, 1",
        ),
        (
            dict.fromkeys(range(6), 1),
            r"class_ratios has 5, which is not one of the classes \[0, 1, 2, 3, 4\]",
        ),
        ("balanced", "class_ratios must"),
        (3, "class_ratios must"),
    ],
    ids=repr,
)
def test_class_ratios_that_are_none_are_an_error(weights, message):
    with pytest.raises(ValueError, match=message):
        orisk.RiskController().calibrate(PROBA, Y, class_ratios=weights)


def test_class_ratios_that_leave_no_row_are_an_error():
    with pytest.raises(ValueError, match="class_ratios is 0 for every class that the calibration rows have"):
        orisk.RiskController().calibrate(PROBA[Y == 1], Y[Y == 1], class_ratios=[1, 0, 1, 1, 1])


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        ({0: 0.1}, "alpha has no value for class 1; give each of the classes"),
        ({}, "alpha has no value for class 0"),
        (ALPHAS | {"z": 0.1}, "alpha has 'z', which is not one of the classes"),
        (ALPHAS | {3: 0}, "alpha must lie strictly between 0 and the largest loss, B=1; got 0"),
        (ALPHAS | {3: 1}, "alpha must lie strictly between 0 and the largest loss, B=1; got 1"),
        (ALPHAS | {3: -1}, "alpha must lie strictly between 0"),
    ],
    ids=repr,
)
def test_an_alpha_that_does_not_fit_the_classes_is_an_error(alpha, message):
    with pytest.raises(ValueError, match=message):
        orisk.RiskController(alpha=alpha).calibrate(PROBA, Y)
    one = orisk.RiskController(condition_on="label", alpha=0.3).calibrate(PROBA, Y)
    for asked in (one.threshold_at, one.guarantee, lambda alpha: one.predict_set(NEW, alpha=alpha)):
        with pytest.raises(ValueError, match=message):
            asked(alpha)


def test_an_alpha_of_a_class_that_is_no_number_names_the_class():
    with pytest.raises(ValueError, match="alpha of 2 must be a finite number; got 'low'"):
        orisk.RiskController(alpha=ALPHAS | {2: "low"})


def test_an_alpha_by_class_needs_a_calibration_by_class():
    one = orisk.RiskController().calibrate(PROBA, Y)
    for asked in (one.threshold_at, one.guarantee, lambda alpha: one.predict_set(NEW, alpha=alpha)):
        with pytest.raises(ValueError, match='alpha by class needs a calibration with condition_on="label"'):
            asked(ALPHAS)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, 10])
def test_delta_lies_between_0_and_1(delta):
    with pytest.raises(ValueError, match=r"delta must lie strictly between 0 and 1; got .* write 0.05"):
        orisk.RiskController(delta=delta)


@pytest.mark.parametrize("delta", ["x", math.nan, math.inf])
def test_delta_is_a_number(delta):
    with pytest.raises(ValueError, match="delta must be a finite number"):
        orisk.RiskController(delta=delta)


def test_an_unknown_bound_is_refused_with_those_there_are():
    message = f"bound must be one of {', '.join(BOUNDS)}; got 'normal'"
    with pytest.raises(ValueError, match=message):
        orisk.RiskController(delta=0.1, confidence_bound="normal")


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_bound_without_delta_bounds_nothing(bound):
    with pytest.raises(ValueError, match=f"confidence_bound='{bound}' is for delta; give a delta too"):
        orisk.RiskController(confidence_bound=bound)


@pytest.mark.parametrize("loss", ["divergence", orisk.WeightedLoss([1, 1, 2, 3, 4])], ids=repr)
@pytest.mark.parametrize("extras", [{}, {"groups": GROUPS}], ids=["rows", "groups"])
def test_binomial_is_for_two_valued_losses(loss, extras):
    one = orisk.RiskController(loss, delta=0.1, confidence_bound="binomial")
    with pytest.raises(
        ValueError,
        match=r'confidence_bound="binomial" is for losses of rows that are 0 or .* take "betting" or',
    ):
        one.calibrate(PROBA, Y, **extras)


@pytest.mark.parametrize("clusters", [CLUSTERS, np.arange(len(Y))], ids=["some", "of one row"])
def test_binomial_is_not_for_means_of_clusters(clusters):
    one = orisk.RiskController(delta=0.1, confidence_bound="binomial")
    with pytest.raises(
        ValueError, match=r'confidence_bound="binomial" is for losses of rows .* and for clusters'
    ):
        one.calibrate(PROBA, Y, clusters=clusters)


@pytest.mark.parametrize("seed", [-1, 0.5, True, "1"], ids=repr)
def test_a_random_state_is_a_whole_number(seed):
    with pytest.raises(ValueError, match="random_state must be a whole number, 0 or larger; got"):
        orisk.RiskController(delta=0.1, random_state=seed)


@FEW
def test_binomial_is_for_weighted_losses_given_each_class():
    loss = orisk.WeightedLoss([1, 1, 2, 3, 4])
    one = orisk.RiskController(
        loss, 0.2, delta=0.3, confidence_bound="binomial", condition_on="label"
    ).calibrate(PROBA, Y)
    assert one.guarantee().bound_name == "binomial"


@pytest.mark.parametrize("condition", ["class", "group", True, ["label"]], ids=repr)
def test_the_label_is_all_that_can_be_conditioned_on(condition):
    with pytest.raises(ValueError, match='condition_on must be "label" or None; got'):
        orisk.RiskController(condition_on=condition)


PAIRS = [*combinations(COMBINES, 2)]
INSTEAD = {
    frozenset(("delta", "sample_weight")): "Calibrate again on recent rows of the new population, without",
    frozenset(("delta", "class_ratios")): "ordinalrisk.shift.accepted_rows draws rows by their weights",
    frozenset(("condition_on", "class_ratios")): "does not depend on the class shares: leave class_",
}


def test_combining_is_mutual():
    for one, other in PAIRS:
        assert (other in COMBINES[one]) == (one in COMBINES[other])
    assert all(one not in others for one, others in COMBINES.items())


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
@FEW
@pytest.mark.filterwarnings("ignore:.*weights so large")
def test_two_options_work_together_or_are_refused_with_what_is_possible(pair):
    at_start, with_rows, with_new = options_of(pair)
    of_classes = {"pool_classes", "exempt_classes"} & {*pair}
    if of_classes:
        at_start["condition_on"] = "label"
    if pair[1] in COMBINES[pair[0]]:
        alpha = 0.1 if "relative" in pair else 0.3  # as a share, 0.3 is more than single labels lose
        one = orisk.RiskController("divergence", alpha, **at_start).calibrate(PROBA, Y, **with_rows)
        sets = one.predict_set(NEW, **with_new)
        assert len(sets) == M
        assert any(math.isfinite(tau) for tau in one.thresholds_)
        return
    with pytest.raises(ValueError, match="can't be used together") as raised:
        orisk.RiskController("divergence", 0.3, **at_start).calibrate(PROBA, Y, **with_rows)
    if of_classes:  # the pair with condition_on may be named first
        return
    message = str(raised.value)
    assert INSTEAD.get(frozenset(pair), "We know of no theorem for both.") in message
    for option in pair:
        assert f"with {option}: {', '.join(COMBINES[option]) or 'no other option'}" in message


def test_an_alpha_by_class_is_a_condition_too():
    with pytest.raises(ValueError, match="condition_on and randomize can't be used together"):
        orisk.RiskController(alpha=ALPHAS, randomize=True)
    with pytest.raises(ValueError, match="condition_on and sample_weight can't be used together"):
        orisk.RiskController(alpha=ALPHAS).calibrate(PROBA, Y, sample_weight=WEIGHTS)


def test_one_pair_without_theorem_is_enough():
    with pytest.raises(ValueError, match="clusters and sample_weight can't be used together"):
        orisk.RiskController().calibrate(PROBA, Y, groups=GROUPS, clusters=CLUSTERS, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match=r"delta and sample_weight .*shift\.accepted_rows"):
        orisk.RiskController(delta=0.1).calibrate(PROBA, Y, groups=GROUPS, sample_weight=WEIGHTS)


NEEDED = {
    "groups": (
        "groups",
        {"groups": NEW_GROUPS},
        "The calibration was made with groups, so predictions need groups=",
    ),
    "sample_weight": (
        "sample_weight",
        {"sample_weight": NEW_WEIGHTS},
        "The calibration was made with sample_weight, so predictions need sample_weight=",
    ),
    "random_state": (
        "randomize",
        {"random_state": 1},
        "The calibration is randomized, so predictions need random_state=",
    ),
}


@pytest.mark.parametrize(("option", "told", "message"), NEEDED.values(), ids=NEEDED.keys())
def test_what_the_calibration_had_predictions_need(option, told, message):
    at_start, with_rows, with_new = options_of((option,))
    one = orisk.RiskController(alpha=0.2, **at_start).calibrate(PROBA, Y, **with_rows)
    assert with_new.keys() == told.keys()
    with pytest.raises(ValueError, match=message):
        one.predict_set(NEW)
    one.predict_set(NEW, **told)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (
            {"groups": NEW_GROUPS},
            "groups was given, but the calibration was not made with groups; calibrate so",
        ),
        (
            {"sample_weight": NEW_WEIGHTS},
            "sample_weight was given, but the calibration was not made with sample",
        ),
        (
            {"random_state": 0},
            "random_state was given, but the calibration was not randomized; calibrate so first",
        ),
    ],
    ids=["groups", "sample_weight", "random_state"],
)
@pytest.mark.parametrize("options", [{}, {"class_ratios": [1] * K}], ids=["none", "class_ratios"])
def test_what_the_calibration_had_not_predictions_can_not_have(told, message, options):
    one = orisk.RiskController(alpha=0.2).calibrate(PROBA, Y, **options)
    with pytest.raises(ValueError, match=message):
        one.predict_set(NEW, **told)


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True, [1]], ids=repr)
def test_a_seed_is_a_whole_number_or_a_generator(seed):
    one = orisk.RiskController(alpha=0.2, randomize=True).calibrate(PROBA, Y)
    with pytest.raises(
        ValueError, match="random_state must be a whole number, 0 or larger, or a numpy Generator; got"
    ):
        one.predict_set(NEW, random_state=seed)
    assert one.predict_set(NEW, random_state=np.int64(4)) == one.predict_set(NEW, random_state=4)


def test_a_group_without_calibration_rows_is_named_with_the_remedy():
    one = orisk.RiskController(alpha=0.2).calibrate(PROBA, Y, groups=GROUPS)
    groups = changed(changed(NEW_GROUPS, 4, "new"), 6, "newer")
    with pytest.raises(ValueError, match=r"groups\[4\] is 'new', a group without calibration rows") as raised:
        one.predict_set(NEW, groups=groups)
    assert "('b', 'a', 'c' have some)" in str(raised.value)
    assert 'pass unseen_groups="full" to give such rows all labels' in str(raised.value)


def test_of_many_groups_some_are_listed():
    one = orisk.RiskController(alpha=0.5).calibrate(PROBA, Y, groups=np.arange(N) % 10)
    with pytest.raises(ValueError, match="0, 1, 2, 3, 4, 5, 6, 7 and 2 more have some"):
        one.predict_set(NEW, groups=[10] * M)


@pytest.mark.parametrize(
    "names", [("groups",), ("groups", "sample_weight"), ("groups", "randomize")], ids=" ".join
)
def test_unseen_groups_get_all_labels_and_others_what_they_would(names):
    at_start, with_rows, with_new = options_of(names)
    one = orisk.RiskController(alpha=0.3, **at_start).calibrate(PROBA, Y, **with_rows)
    known = one.predict_set(NEW, **with_new)
    assert known.size.max() < K
    groups = changed(changed(NEW_GROUPS, 4, "new"), 6, 17)
    sets = one.predict_set(NEW, **(with_new | {"groups": groups}), unseen_groups="full")
    unseen = np.isin(np.arange(M), [4, 6])
    assert (sets.size[unseen] == K).all()
    assert np.array_equal(sets.mask()[~unseen], known.mask()[~unseen])


@FEW
def test_unseen_groups_get_all_labels_given_each_class_too():
    one = orisk.RiskController("divergence", 0.3, condition_on="label").calibrate(PROBA, Y, groups=GROUPS)
    sets = one.predict_set(NEW, groups=["new"] * M, unseen_groups="full")
    assert (sets.size == K).all()


def test_what_to_do_with_unseen_groups_is_one_of_two():
    one = orisk.RiskController(alpha=0.3).calibrate(PROBA, Y, groups=GROUPS)
    with pytest.raises(ValueError, match=r"unseen_groups must be one of \['error', 'full'\]; got 'skip'"):
        one.predict_set(NEW, groups=NEW_GROUPS, unseen_groups="skip")


@pytest.mark.parametrize("options", [{}, {"delta": 0.1}, {"randomize": True}], ids=repr)
def test_a_group_with_too_few_rows_is_named_and_gets_all_labels(options):
    groups = ["rare"] * 3 + ["common"] * (N - 3)
    message = r"There are too few rows of 'rare', so their sets include all labels"
    with pytest.warns(UserWarning, match=message) as caught:
        one = orisk.RiskController(alpha=0.2, **options).calibrate(PROBA, Y, groups=groups)
    assert caught[0].filename == __file__
    assert one.threshold_["rare"] == -math.inf < one.threshold_["common"]
    told = {"random_state": 1} if "randomize" in options else {}
    sets = one.predict_set(NEW, groups=["rare", "common"] * (M // 2), **told)
    assert (sets.size[::2] == K).all()
    assert sets.size[1::2].mean() < K
    with pytest.warns(orisk.TooFewRowsWarning, match="There are too few rows of 'rare', 'common'") as caught:
        one.predict_set(NEW, groups=["common"] * M, alpha=0.001, **told)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_a_class_with_too_few_rows_is_named_and_always_in_the_set(loss):
    keep = (Y != 3) | (np.cumsum(Y == 3) < 3)
    with pytest.warns(
        orisk.TooFewRowsWarning, match="There are too few rows of 3, so every set includes them"
    ):
        one = orisk.RiskController(loss, 0.2, condition_on="label").calibrate(PROBA[keep], Y[keep])
    assert [label for label, tau in one.threshold_.items() if tau == -math.inf] == [3]
    sets = one.predict_set(NEW)
    assert sets.contains([3] * M).all()
    assert sets.size.mean() < K


def test_a_class_without_rows_is_always_in_the_set():
    with pytest.warns(
        orisk.TooFewRowsWarning, match="There are too few rows of 0, so every set includes them"
    ):
        one = orisk.RiskController(alpha=0.25, condition_on="label").calibrate(PROBA[Y > 0], Y[Y > 0])
    assert one.predict_set(NEW).contains([0] * M).all()


def test_too_few_clusters_are_counted_as_clusters():
    with pytest.warns(
        orisk.TooFewRowsWarning, match="needs at least 9 calibration clusters .* got 5, so every set"
    ):
        one = orisk.RiskController(alpha=0.1).calibrate(PROBA, Y, clusters=np.arange(N) % 5)
    assert (one.predict_set(NEW).size == K).all()


def test_too_few_rows_for_delta_are_counted_by_its_bound():
    with pytest.warns(
        orisk.TooFewRowsWarning, match=r"alpha=0.1 needs at least 22 calibration rows .*and delta=0.1; got 21"
    ):
        orisk.RiskController(alpha=0.1, delta=0.1).calibrate(PROBA[:21], Y[:21])


def test_new_rows_whose_weight_is_too_large_are_counted_and_get_all_labels():
    one = orisk.RiskController(alpha=0.2).calibrate(PROBA, Y, sample_weight=np.ones(N))
    with pytest.warns(UserWarning, match=f"2 of {M} new rows have weights so large.* full scale") as caught:
        sets = one.predict_set(NEW, sample_weight=changed(changed(np.ones(M), 0, 1e6), 5, 1e300))
    assert caught[0].filename == __file__
    assert np.flatnonzero(sets.size == K).tolist()[:2] == [0, 5]
    plain = one.predict_set(NEW, sample_weight=np.ones(M))
    rest = ~np.isin(np.arange(M), [0, 5])
    assert np.array_equal(sets.mask()[rest], plain.mask()[rest])


def test_options_can_not_change_after_the_calibration():
    one = orisk.RiskController(alpha=0.2).calibrate(PROBA, Y)
    for name, value in {
        "delta": 0.1,
        "confidence_bound": "betting",
        "condition_on": "label",
        "randomize": True,
    }.items():
        with pytest.raises(AttributeError, match=f"{name} can't change after the calibration"):
            setattr(one, name, value)


def test_groups_that_no_file_can_hold_are_not_saved(tmp_path):
    one = orisk.RiskController(alpha=0.2).calibrate(PROBA, Y, groups=[("a", 1)] * N)
    with pytest.raises(
        ValueError, match=r"Group \('a', 1\) can't be saved; groups must be strings or numbers"
    ):
        one.save(tmp_path / "saved.json")
    infinite = orisk.RiskController(alpha=0.2).calibrate(PROBA, Y, groups=[math.inf] * N)
    with pytest.raises(ValueError, match="Group inf can't be saved; numbers among the groups must be finite"):
        infinite.save(tmp_path / "saved.json")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("alpha", [0.3, {0: 0.3, 1: 0.3, 2: 0.1, 3: 0.1, 4: 0.1}], ids=repr)
@FEW
def test_a_class_that_can_not_lose_alpha_needs_no_certificate(alpha):
    """Its largest loss is below alpha: single labels will do, with whatever probability."""
    loss = orisk.WeightedLoss([1, 1, 2, 3, 4])
    for options in ({}, {"delta": 0.1}):
        one = orisk.RiskController(loss, alpha, condition_on="label", **options).calibrate(PROBA, Y)
        assert one.threshold_[0] == one.threshold_[1] == math.inf
        parts = one.guarantee().parts
        assert [part.saturated for part in parts[:2]] == [True, True]
        assert parts[0].n_needed == 0


# saved files


@pytest.mark.parametrize(
    ("field", "value", "names"),
    [
        ("shift", "covariates", "delta and sample_weight"),
        ("shift", ["1", "1", "1", "1"], "delta and class_ratios"),
        (
            "options",
            {"delta": 0.1, "bound": "auto", "condition_on": None, "randomize": True},
            "delta and randomize",
        ),
    ],
    ids=str,
)
def test_a_saved_file_that_no_theorem_covers_is_refused(draw, tmp_path, field, value, names):
    path = tmp_path / "saved.json"
    orisk.RiskController(alpha=0.2, delta=0.1).calibrate(*draw(200, 4)).save(path)
    document = json.loads(path.read_text()) | {field: value}
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    document["digests"][field] = hashlib.sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=rf"field 'options' .*{names} can't be used together"):
        orisk.RiskController.load(path)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (["1"] * 200, "sample_weight must hold numbers"),
        (np.ones(200, complex), "sample_weight must hold numbers"),
        (np.full(200, "2024-01-01", "datetime64[D]"), "sample_weight must hold numbers"),
        ([None, *[1.0] * 199], r"sample_weight\[0\] is nan"),
    ],
    ids=["text", "complex", "dates", "missing"],
)
def test_weights_that_are_no_numbers_are_refused(draw, weights, message):
    with pytest.raises(ValueError, match=message):
        orisk.RiskController(alpha=0.2).calibrate(*draw(200, 4), sample_weight=weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"randomize": "no"}, "randomize must be True or False; got 'no'"),
        ({"alpha": {0: 0.1}, "condition_on": "group"}, "condition_on must be"),
        ({"delta": "1e-400"}, "delta must lie strictly between 0 and 1"),
    ],
    ids=str,
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        orisk.RiskController(**options)


@pytest.mark.parametrize("weights", [2, "balanced", [[1, 1], [1, 1]]], ids=str)
def test_class_ratios_of_a_wrong_type_are_refused(draw, weights):
    with pytest.raises(ValueError, match="class_ratios must be a sequence with a ratio for each class"):
        orisk.RiskController(alpha=0.2).calibrate(*draw(200, 4), class_ratios=weights)


def test_an_alpha_that_no_miss_of_a_class_can_reach_needs_no_rows_of_it(draw):
    proba, y = draw(300, 3)
    loss = orisk.WeightedLoss([1, 5, 5])
    controller = orisk.RiskController(loss, 0.3, condition_on="label", delta=0.1, check=False)
    controller.calibrate(proba, y)
    first = controller.guarantee().parts[0]
    assert (first.n_needed, first.saturated, first.certified) == (0, True, True)


def test_a_delta_that_was_meant_as_a_confidence_is_warned_of():
    with pytest.warns(
        UserWarning, match=r"delta=0\.95 keeps alpha with probability 0\.05 only; .* `delta=0\.05`"
    ):
        orisk.RiskController(alpha=0.1, delta=0.95)


@pytest.mark.parametrize("alpha", [0.2, 0.6], ids=["too few rows", "certified"])
@pytest.mark.parametrize("rows_each", [1, 2, 3])
@pytest.mark.parametrize("in_batches", [False, True])
def test_groups_that_look_like_patients_are_warned_of(draw, rows_each, alpha, in_batches):
    (proba, y), groups = draw(60, 4), np.arange(60) // rows_each
    controller = orisk.RiskController(alpha=alpha, check=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if in_batches:
            parts = np.s_[:7], np.s_[7:]
            controller.calibrate_batches(
                {"proba": proba[part], "y": y[part], "groups": groups[part]} for part in parts
            )
        else:
            controller.calibrate(proba, y, groups=groups)
    messages = [str(each.message) for each in caught]
    assert {each.filename for each in caught} <= {__file__}
    if alpha == 0.2:
        assert messages.pop().startswith("There are too few rows of")
    said = (
        f"Most groups have one or two rows ({60 // rows_each} groups, 60 rows): if they are patients or "
        "other units with several rows, pass them as `clusters` instead of `groups`."
    )
    assert messages == ([said] if rows_each < 3 else [])


@pytest.mark.filterwarnings("ignore:There are too few rows of")
@pytest.mark.parametrize("condition_on", [None, "label"])
def test_rows_of_a_group_count_in_all_its_classes(draw, condition_on):
    proba, y = draw(60, 4)
    controller = orisk.RiskController(alpha=0.2, condition_on=condition_on, check=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Most groups have")
        controller.calibrate(proba, y, groups=np.arange(60) // 3)


def test_the_same_groups_as_clusters_are_not_warned_of(draw):
    orisk.RiskController(alpha=0.2).calibrate(*draw(60, 4), clusters=np.arange(60) // 2)
