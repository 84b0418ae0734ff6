"""What a calibration guarantees, in numbers and in words."""

import math
from fractions import Fraction

import numpy as np
import pytest
from test_guarantee_identities import CLUSTERS, GROUPS, PROBA, WEIGHTS, N, Y
from unchecked import FEW

import ordinalrisk as orisk

N_CLUSTERS = len({*CLUSTERS.tolist()})
COUNTS = np.bincount(Y)


def words(guarantee):
    return " ".join(str(guarantee).split())


def guarantee_of(alpha=0.2, loss="coverage", options=None, **extras):
    return orisk.RiskController(loss, alpha, **(options or {})).calibrate(PROBA, Y, **extras).guarantee()


def test_the_plain_promise():
    found = guarantee_of(0.25)
    assert (found.alpha, found.n_rows, found.bound, found.n_needed) == (Fraction(1, 4), N, 1, 3)
    assert (found.unit, found.shift, found.delta, found.bound_name, found.parts) == (
        "row",
        None,
        None,
        None,
        (),
    )
    assert found.certified
    assert not found.saturated
    assert words(found) == (
        "The expected loss of a new row is at most 0.25, provided that the row is exchangeable with the "
        f"calibration rows (n = {N} rows, losses from 0 to B = 1)."
    )


def test_the_loss_of_the_calibration_rows_is_known():
    one = orisk.RiskController(alpha=0.25).calibrate(PROBA, Y)
    assert one.guarantee().calibration_risk == orisk.metrics.risk(Y, one.predict_set(PROBA))


@pytest.mark.parametrize(
    ("options", "loss", "name"),
    [
        ({}, "coverage", "exact binomial bound"),
        ({}, "divergence", "betting bound"),
        ({"confidence_bound": "hoeffding_bentkus"}, "coverage", "Hoeffding-Bentkus bound"),
        ({"confidence_bound": "dkw"}, "coverage", "Dvoretzky-Kiefer-Wolfowitz bound"),
    ],
    ids=str,
)
def test_with_delta_it_says_with_what_probability_and_by_which_bound(options, loss, name):
    found = guarantee_of(0.2, loss, {"delta": 0.05} | options)
    assert found.delta == Fraction(1, 20)
    drawn = "draw and the shuffle" if name == "betting bound" else "draw"
    at_once = " for every alpha at once," if options.get("confidence_bound") == "dkw" else ""
    alone = "" if at_once else "; for this alpha by itself"
    assert words(found) == (
        f"With probability at least 0.95 over the {drawn} of the calibration rows,{at_once} the expected "
        "loss of a new row is at most 0.2, provided that the row and the calibration rows are independent "
        f"draws from one population (n = {N} rows, losses from 0 to B = 1; {name}{alone})."
        + " Nothing more is guaranteed about the share of sets that miss the truth."
        * (loss == "divergence")
    )


def test_clusters_are_what_is_counted():
    found = guarantee_of(clusters=CLUSTERS)
    assert (found.unit, found.n_rows) == ("cluster", N_CLUSTERS)
    assert words(found).startswith(
        "The expected mean loss of a new cluster is at most 0.2, provided that the cluster is exchangeable "
        f"with the calibration clusters (n = {N_CLUSTERS} clusters, losses from 0 to B = 1)."
    )


@pytest.mark.parametrize("options", [{}, {"randomize": True}], ids=str)
def test_no_lower_bound_is_printed(options):
    """Theorem 4 needs that single labels do not suffice, which no calibration can know."""
    found = guarantee_of(0.3, options=options)
    assert found.randomized == ("randomize" in options)
    assert "at least" not in words(found)


def test_shifts_say_what_must_hold_of_the_weights():
    covariates = guarantee_of(sample_weight=WEIGHTS)
    assert covariates.shift == "covariates"
    assert words(covariates) == (
        "The expected loss of a new row is at most 0.2, provided that the weights are the likelihood ratios "
        f"of the new population to that of the calibration rows (n = {N} rows, losses from 0 to B = 1)."
    )
    labels = guarantee_of(class_ratios=[1, 2, 3, 4, 5])
    assert labels.shift == "labels"
    assert words(labels) == (
        "The expected loss of a new row is at most 0.2, provided that only the shares of the classes have "
        f"changed, by the ratios that were given (n = {N} rows, losses from 0 to B = 1)."
    )


def test_groups_have_a_guarantee_each():
    groups = np.repeat(["x", "y"], [40, N - 40])
    found = guarantee_of(groups=groups)
    assert [(part.group, part.n_rows, part.name) for part in found.parts] == [
        ("x", 40, "'x'"),
        ("y", N - 40, "'y'"),
    ]
    assert found.n_rows == N
    assert words(found) == (
        "In each of 2 groups, the expected loss of a new row is at most 0.2, provided that the row is "
        "exchangeable with the calibration rows of its group "
        f"(n = 40 to {N - 40} rows each, losses from 0 to B = 1)."
    )
    assert words(found.parts[0]).startswith(
        "The expected loss of a new row of group 'x' is at most 0.2, provided that the row is exchangeable "
        "with the calibration rows of its group (n = 40 rows, losses"
    )
    alone = orisk.RiskController(alpha=0.2).calibrate(PROBA[:40], Y[:40]).guarantee()
    assert found.parts[0].calibration_risk == alone.calibration_risk


def test_true_classes_have_a_guarantee_each():
    found = guarantee_of(0.25, options={"condition_on": "label"})
    assert [(part.label, part.n_rows) for part in found.parts] == [*enumerate(COUNTS.tolist())]
    low, high = COUNTS.min(), COUNTS.max()
    assert words(found) == (
        "For each of 5 true classes, the expected loss of a new row is at most 0.25, provided that the row "
        f"is exchangeable with the calibration rows of its true class "
        f"(n = {low} to {high} rows each, losses from 0 to B = 1)."
    )
    assert "of a new row with true class 3 is at most 0.25" in words(found.parts[3])
    assert found.parts[3].name == "3"


def test_a_class_has_its_own_largest_loss():
    found = guarantee_of(0.2, "divergence", {"condition_on": "label"})
    assert [part.bound for part in found.parts] == [1, Fraction(3, 4), Fraction(1, 2), Fraction(3, 4), 1]
    assert [part.n_needed for part in found.parts] == [4, 3, 2, 3, 4]
    assert (found.bound, found.n_needed) == (1, 4)


@pytest.mark.parametrize("loss", ["divergence", orisk.DivergenceLoss(0.5), "coverage"], ids=str)
def test_a_loss_by_distance_says_that_it_guarantees_no_coverage(loss):
    by_distance = loss != "coverage"
    found = guarantee_of(0.2, loss)
    assert found.one_cost == (not by_distance)
    said = "Nothing more is guaranteed about the share of sets that miss the truth."
    assert (said in words(found)) == by_distance


def test_an_alpha_for_each_class_is_listed():
    found = guarantee_of({0: 0.3, 1: 0.25, 2: 0.2, 3: "1/3", 4: 0.3})
    assert "is at most 0.3 for 0, 0.25 for 1, 0.2 for 2, 1/3 for 3, 0.3 for 4, provided that" in words(found)
    assert found.alpha == Fraction(1, 3)


@FEW
def test_groups_and_classes_are_both_named():
    found = guarantee_of(0.2, "coverage", {"condition_on": "label", "delta": 0.1}, groups=GROUPS)
    assert words(found).startswith(
        "In each of 3 groups and for each of 5 true classes by itself, with probability at least 0.9"
    )
    assert [part.name for part in found.parts[:6]] == [*(f"{label} in 'b'" for label in range(5)), "0 in 'a'"]
    assert "a new row of group 'b' with true class 1 is at most" in words(found.parts[1])
    assert "the row and the calibration rows of its group and true class are independent" in words(found)
    assert not found.certified
    names = [part.name for part in found.parts if not part.certified]
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    assert len(names) > 8
    counts = [str(part.n_rows) for part in found.parts if not part.certified]
    listed_counts = ", ".join(counts[:8]) + (f" and {len(counts) - 8} more" if len(counts) > 8 else "")
    assert found.warning == (
        f"There are too few rows of {listed}, so every set includes them; at least {found.n_needed} are "
        f"needed, and there are {listed_counts}. `exempt_classes` names classes without a "
        "guarantee."
    )
    assert words(found).endswith(f"and there are {listed_counts}.")


def test_bounds_that_differ_between_parts_are_not_named():
    """A miss of the middle one of three classes always costs the same, one of the others does not."""
    proba, y = np.repeat(np.eye(3) * 0.7 + 0.1, 40, axis=0), np.repeat(np.arange(3), 40)
    one = orisk.RiskController("divergence", 0.2, delta=0.2, condition_on="label").calibrate(proba, y)
    found = one.guarantee()
    assert [part.bound_name for part in found.parts] == ["betting", "binomial", "betting"]
    assert found.bound_name is None
    assert "bound" not in words(found)
    assert "over the draw and the shuffle of the calibration rows, the" in words(found)


def test_the_bound_for_clusters_does_not_depend_on_their_sizes():
    for clusters in (CLUSTERS, np.arange(N)):
        assert guarantee_of(0.3, options={"delta": 0.2}, clusters=clusters).bound_name == "betting"


def test_too_few_rows_are_said_with_how_many_are_needed():
    with pytest.warns(UserWarning, match="needs at least") as caught:
        one = orisk.RiskController(alpha=0.1).calibrate(PROBA[:8], Y[:8])
    found = one.guarantee()
    assert not found.certified
    assert found.n_needed == 9
    assert found.warning == str(caught[0].message)
    assert found.warning == (
        "alpha=0.1 needs at least 9 calibration rows for a loss bounded by 1; got 8, so every set is the "
        "full scale."
    )
    assert words(found).endswith(
        "There are too few of them, so every set includes all labels. At least 9 rows are needed."
    )
    assert one.guarantee(0.2).warning is None


def test_the_needed_rows_are_those_that_suffice():
    for options in ({}, {"delta": 0.1}, {"delta": 0.1, "confidence_bound": "betting"}):
        needed = guarantee_of(0.1, options=options).n_needed
        one = orisk.RiskController(alpha=0.1, **options)
        y = PROBA[:needed].argmax(axis=1)  # nobody is missed
        assert one.calibrate(PROBA[:needed], y).guarantee().certified
        fewer = orisk.RiskController(alpha=0.1, **options)
        with pytest.warns(UserWarning, match=f"needs at least {needed} calibration rows"):
            fewer.calibrate(PROBA[: needed - 1], y[:-1])


def test_saturation_is_said():
    one = orisk.RiskController(alpha=0.5).calibrate(PROBA, PROBA.argmax(axis=1))
    found = one.guarantee()
    assert found.saturated
    assert words(found).endswith(
        "Every set is a single label; on the calibration rows their mean loss was 0."
    )
    y = np.where(np.arange(N) < 24, (PROBA.argmax(axis=1) + 1) % 5, PROBA.argmax(axis=1))
    some = orisk.RiskController(alpha=0.5).calibrate(PROBA, y).guarantee()
    assert words(some).endswith(f"their mean loss was {24 / N:.6g}.")


def test_all_parts_must_saturate_or_be_certified_for_the_whole_to_be():
    y = np.where(GROUPS == "a", PROBA.argmax(axis=1), Y)
    found = orisk.RiskController(alpha=0.2).calibrate(PROBA, y, groups=GROUPS).guarantee()
    assert {part.group: part.saturated for part in found.parts}["a"]
    assert not found.saturated
    assert found.certified
    assert found.warning is None


def test_another_alpha_has_its_own_guarantee():
    one = orisk.RiskController(alpha=0.2).calibrate(PROBA, Y, groups=GROUPS)
    other = orisk.RiskController(alpha=0.4).calibrate(PROBA, Y, groups=GROUPS)
    assert one.guarantee(0.4) == other.guarantee()
    assert one.guarantee() != other.guarantee()


def test_no_line_is_longer_than_a_page_is_wide():
    for options in ({}, {"delta": 0.1}, {"condition_on": "label"}):
        found = guarantee_of(0.3, "divergence", options, groups=np.repeat(["x", "y"], N // 2))
        assert max(map(len, str(found).splitlines())) <= 78


def test_a_group_without_weight_is_not_certified():
    """Its sets are full because it has no rows, and the guarantee must say so."""
    weights = np.where(GROUPS == "a", 0.0, 1.0)
    with pytest.warns(UserWarning, match="too few rows of 'a'"):
        one = orisk.RiskController(alpha=0.2).calibrate(PROBA, Y, groups=GROUPS, sample_weight=weights)
    assert one.threshold_["a"] == -math.inf
