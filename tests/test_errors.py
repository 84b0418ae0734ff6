"""Bad input raises an error that says what is wrong, where, and what to do."""

import copy
import json
import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command import succeeds
from rows_in_parts import calibrate_in_parts
from saved_documents import with_digests
from sizes import search_few_steps
from sklearn.exceptions import NotFittedError
from strategies import RULE_NAMES
from unchecked import UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import CostTableLoss, DivergenceLoss, IntervalSet, RiskController, WeightedLoss
from ordinalrisk.growth import GrowthRule

pytestmark = UNCHECKED

MANY_ROWS = 45_000  # enough for several threads

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda proba: proba.astype(np.float32),
    "float32, F": lambda proba: np.asfortranarray(proba, np.float32),
    "strided": lambda proba: np.repeat(proba, 2, axis=0)[::2],
    "reversed": lambda proba: proba[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.fixture
def calibrated(draw):
    return RiskController(alpha=0.2).calibrate(*draw(100, 4))


def spoilt(proba, row, column, value):
    """``proba`` with one entry replaced."""
    proba = proba.copy()
    proba[row, column] = value
    return proba


# probabilities


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(
    ("value", "what"),
    [(math.nan, "NaN"), (math.inf, "infinite"), (-math.inf, "infinite"), (-0.25, "negative")],
    ids=str,
)
@pytest.mark.parametrize(("n_rows", "row"), [(70, 0), (70, 66), (MANY_ROWS, 7), (MANY_ROWS, MANY_ROWS - 2)])
def test_a_bad_probability_is_named_with_row_column_and_value(draw, layout, value, what, n_rows, row):
    proba, y = draw(n_rows, 4)
    bad = layout(spoilt(proba, row, 2, value))
    message = rf"{what} value at row {row}, column 2 \({value}\)"
    with pytest.raises(ValueError, match=message):
        RiskController(alpha=0.2).calibrate(bad, y)
    controller = RiskController(alpha=0.2).calibrate(proba[:100], y[:100])
    with pytest.raises(ValueError, match=message):
        controller.predict_set(bad)


@pytest.mark.parametrize("growth", RULE_NAMES)
@pytest.mark.parametrize("point", ["mode", "bayes", "median"])
def test_every_growth_rule_names_a_bad_probability(draw, growth, point):
    proba, y = draw(70, 4)
    rule = type(RiskController(growth=growth).growth)(point)
    bad = spoilt(proba, 65, 1, math.nan)
    with pytest.raises(ValueError, match="NaN value at row 65, column 1"):
        RiskController(growth=rule, alpha=0.2).calibrate(bad, y)
    with pytest.raises(ValueError, match="NaN value at row 65, column 1"):
        rule.levels(bad)


@pytest.mark.parametrize("rows", [(3, 60), (10_000, MANY_ROWS - 1), (MANY_ROWS - 2, MANY_ROWS - 1)], ids=str)
def test_the_first_bad_row_is_named(draw, rows):
    first, second = rows
    proba, y = draw(MANY_ROWS, 4)
    bad = spoilt(spoilt(proba, second, 0, math.nan), first, 3, -1)
    with pytest.raises(ValueError, match=rf"negative value at row {first}, column 3"):
        RiskController(alpha=0.2).calibrate(bad, y)


@pytest.mark.parametrize(
    ("row", "column", "what"),
    [
        ([0.5, -0.1, math.nan, 0.6], 1, "negative"),
        ([0.5, math.inf, math.nan, 0.6], 1, "infinite"),
        ([-0.5, math.inf, -math.inf, math.nan], 0, "negative"),
        ([0.5, math.nan, -1, math.inf], 1, "NaN"),
    ],
    ids=str,
)
def test_the_first_bad_column_is_named(row, column, what):
    with pytest.raises(ValueError, match=f"{what} value at row 1, column {column}"):
        RiskController(alpha=0.2).calibrate([[0.25] * 4, row], [0, 1])


def test_a_negative_probability_that_keeps_the_sum_is_found():
    with pytest.raises(ValueError, match=r"negative value at row 0, column 1 \(-0\.1\).*softmax\(logits\)"):
        RiskController(alpha=0.2).calibrate([[0.6, -0.1, 0.5]], [0])


def test_infinities_of_both_signs_are_found():
    with pytest.raises(ValueError, match="infinite value at row 0, column 0"):
        RiskController(alpha=0.2).calibrate([[math.inf, -math.inf, 1.0]], [0])


@pytest.mark.parametrize(
    "missing",
    [
        lambda proba: pd.DataFrame(proba),
        lambda proba: pd.DataFrame(proba).convert_dtypes(),
        lambda proba: pl.DataFrame(proba).fill_nan(None),
        lambda proba: [[None if math.isnan(p) else p for p in row] for row in proba.tolist()],
    ],
    ids=["pandas", "pandas nullable", "polars", "lists"],
)
def test_a_missing_probability_is_named(draw, missing):
    proba, y = draw(20, 4)
    with pytest.raises(ValueError, match="NaN value at row 13, column 2"):
        RiskController(alpha=0.2).calibrate(missing(spoilt(proba, 13, 2, math.nan)), y)


def test_a_masked_value_is_not_used_in_silence(draw):
    proba, y = draw(20, 4)
    masked = np.ma.array(proba, mask=np.zeros(proba.shape, bool))
    masked.mask[13, 2] = True
    with pytest.raises(ValueError, match="row 13, column 2"):
        RiskController(alpha=0.2).calibrate(masked, y)
    with pytest.raises(ValueError, match=r"y\[4\]"):
        RiskController(alpha=0.2).calibrate(proba, np.ma.array(y, mask=np.arange(20) == 4))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(("n_rows", "row"), [(70, 66), (MANY_ROWS, MANY_ROWS - 2)])
def test_a_row_that_does_not_sum_to_one_is_named_with_its_sum(draw, layout, n_rows, row):
    proba, y = draw(n_rows, 4)
    proba[row] = [0.25, 0.25, 0.25, 0.125]
    with pytest.raises(
        ValueError, match=rf"Row {row} of proba sums to 0\.875, not to 1: if these are scores"
    ):
        RiskController(alpha=0.2).calibrate(layout(proba), y)


@pytest.mark.parametrize("logits", [[2.0, 0.5, 0.0], [3.5, 4.0, 5.0], [2.5, -1.0, 0.5], [-1.0, -2.0, -3.0]])
def test_softmax_is_the_remedy_for_what_looks_like_logits(logits):
    with pytest.raises(ValueError, match=r"logits.*softmax\(logits\)"):
        RiskController(alpha=0.2).calibrate([logits], [0])


def test_softmax_is_not_named_where_nothing_looks_like_logits():
    with pytest.raises(ValueError, match=r"sums to 0\.9, not to 1") as raised:
        RiskController(alpha=0.2).calibrate([[0.5, 0.4]], [0])
    assert "softmax" not in str(raised.value)


def test_a_sum_beyond_the_largest_float_is_an_error():
    with pytest.raises(ValueError, match="Row 0 of proba sums to inf"):
        RiskController(alpha=0.2).calibrate([[1e308, 1e308]], [0])


@pytest.mark.parametrize("n_classes", [2, 10, 100])
def test_float32_rounding_is_accepted(n_classes):
    logits = np.random.default_rng(0).normal(scale=3, size=(200, n_classes))
    proba = orisk.probabilities.softmax(logits).astype(np.float32)
    RiskController(alpha=0.2).calibrate(proba, np.zeros(200, int))


@pytest.mark.parametrize("off", [1e-4, -1e-4, 1e-3])
def test_more_than_float32_rounding_is_not_accepted(off):
    with pytest.raises(ValueError, match="Row 0 of proba sums to"):
        RiskController(alpha=0.2).calibrate([[0.5, 0.5 + off]], [0])


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        ([0.2, 0.8], r"shape \(n_rows, n_classes\).*got shape \(2,\)"),
        (0.5, r"got shape \(\)"),
        (np.full((2, 2, 2), 0.5), r"got shape \(2, 2, 2\)"),
        (np.ones((3, 1)), r"at least 2 columns.*got shape \(3, 1\)"),
        (np.ones((0, 3)), r"no rows; got shape \(0, 3\)"),
        ([], r"got shape \(0,\)"),
        ([[0.5, 0.5], [1.0]], "rows of proba differ in length"),
        ([["a", "b"]], "must hold numbers"),
        (np.array([[0.5 + 0j, 0.5]]), "must hold numbers"),
        (pl.LazyFrame({"a": [0.5], "b": [0.5]}), "collect"),
    ],
    ids=[
        "1-D",
        "0-D",
        "3-D",
        "one class",
        "no rows",
        "empty list",
        "ragged",
        "text",
        "complex",
        "lazy polars",
    ],
)
def test_what_is_no_table_of_probabilities_is_an_error(calibrated, proba, message):
    with pytest.raises(ValueError, match=message):
        RiskController(alpha=0.2).calibrate(proba, [0])
    with pytest.raises(ValueError, match=message):
        calibrated.predict_set(proba)


def test_a_column_of_text_is_named():
    table = pytest.importorskip("pyarrow").table({"a": [0.5, 0.5], "b": ["x", "y"]})
    with pytest.raises(ValueError, match=r"Column 'b' of proba must hold numbers; got type string"):
        RiskController(alpha=0.2).calibrate(table, [0, 1])


# labels


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        (4, "4"),
        (-1, "-1"),
        (1.5, r"1\.5"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (None, "None"),
        ("x", "'x'"),
    ],
    ids=str,
)
def test_a_label_outside_the_classes_is_named_with_row_and_classes(draw, label, shown):
    proba, y = draw(30, 4)
    labels = y.tolist()
    labels[17] = label
    y = np.array(labels, object) if isinstance(label, str) else labels
    remedies = {"nan": "The label is missing", "None": "The label is missing", "4": "is a column missing"}
    remedy = remedies.get(shown, "classes=")
    message = rf"y\[17\] is {shown}, which is not one of the classes \[0, 1, 2, 3\].*{remedy}"
    with pytest.raises(ValueError, match=message):
        RiskController(alpha=0.2).calibrate(proba, y)


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
)
def test_a_label_outside_the_classes_is_found_whatever_its_type(dtype):
    labels = np.array([0, 1, 2, 9, 1], dtype)
    message = r"y\[3\] is 9(\.0)?, which is not one of the classes \[0, 1, 2, 3\]"
    with pytest.raises(ValueError, match=message):
        RiskController(classes=range(4)).calibrate(np.full((5, 4), 0.25), labels)
    with pytest.raises(ValueError, match=message):
        IntervalSet([0] * 5, [1] * 5, classes=range(4)).contains(labels)


def test_an_unsigned_label_outside_the_classes_never_reaches_the_kernels(draw):
    proba, y = draw(30, 4)
    y = y.astype(np.uint8)
    y[17] = 4
    with pytest.raises(ValueError, match=r"y\[17\] is 4, which is not one of the classes"):
        RiskController(alpha=0.2).calibrate(proba, y)


def test_positions_in_place_of_names_are_explained(draw):
    proba, y = draw(30, 4)
    named = RiskController(alpha=0.2, classes=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match=r"If these are positions, pass np\.array\(classes\)\[y\]\.$"):
        named.calibrate(proba, y)
    named.calibrate(proba, np.array(["a", "b", "c", "d"])[y])
    for other in (y - 1, y + 1, y.astype(float)):
        with pytest.raises(ValueError, match=r"is not one of the classes \['a', 'b', 'c', 'd'\]\.$"):
            named.calibrate(proba, other)


@pytest.mark.parametrize(
    ("label", "shown"), [("c", "'c'"), (None, "None"), (0, "0"), (math.nan, "nan"), ("", "''")], ids=repr
)
def test_a_label_outside_named_classes_is_named(draw, label, shown):
    proba, _ = draw(3, 2)
    with pytest.raises(ValueError, match=rf"y\[1\] is {shown}, which is not one of the classes \['b', 'a'\]"):
        RiskController(alpha=0.2, classes=["b", "a"]).calibrate(proba, np.array(["a", label, "b"], object))


@pytest.mark.parametrize(
    ("label", "shown"), [(15, r"15(\.0)?"), (25.5, r"25\.5"), (math.nan, "nan")], ids=str
)
def test_a_label_between_numeric_classes_is_named(draw, label, shown):
    proba, _ = draw(3, 3)
    with pytest.raises(
        ValueError, match=rf"y\[2\] is {shown}, which is not one of the classes \[10, 20, 30\]"
    ):
        RiskController(alpha=0.2, classes=[10, 20, 30]).calibrate(proba, [10, 20, label])


def test_a_missing_label_of_a_nullable_series_is_named(draw):
    proba, y = draw(30, 4)
    series = pd.Series(y, dtype="Int64")
    series[5] = pd.NA
    with pytest.raises(ValueError, match=r"y\[5\] is (nan|<NA>), which is not one of the classes"):
        RiskController(alpha=0.2).calibrate(proba, series)
    with pytest.raises(ValueError, match=r"y\[5\] is (nan|None), which is not one of the classes"):
        RiskController(alpha=0.2).calibrate(
            proba, pl.Series([None if i == 5 else k for i, k in enumerate(y)])
        )


@pytest.mark.parametrize(
    ("labels", "shape"),
    [
        ([0] * 29, r"\(29,\)"),
        ([0] * 31, r"\(31,\)"),
        ([[0]] * 30, r"\(30, 1\)"),
        (0, r"\(\)"),
        ([], r"\(0,\)"),
    ],
    ids=["short", "long", "2-D", "0-D", "empty"],
)
def test_labels_of_another_length_are_an_error_with_both_shapes(draw, labels, shape):
    with pytest.raises(ValueError, match=rf"30 rows of proba; got shape {shape}"):
        RiskController(alpha=0.2).calibrate(draw(30, 4)[0], labels)
    with pytest.raises(ValueError, match=rf"30.*got shape {shape}"):
        IntervalSet([0] * 30, [1] * 30, classes=range(4)).contains(labels)


# classes


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["a", "b", "c"], r"proba has 4 columns, but there are 3 classes: \['a', 'b', 'c'\]"),
        (["a", "b", "a", "c"], r"classes must be distinct; 'a' is listed more than once"),
        ("abcd", "sequence of labels in order; got 'abcd'"),
        ({"a", "b", "c", "d"}, "sequence of labels in order"),
        ([["a", "b"], ["c", "d"]], "sequence of labels in order"),
        (4, "sequence of labels in order; got 4"),
    ],
    ids=["fewer", "repeated", "text", "set", "2-D", "number"],
)
def test_bad_classes_are_an_error(draw, classes, message):
    proba, y = draw(30, 4)
    with pytest.raises(ValueError, match=message):
        RiskController(alpha=0.2, classes=classes).calibrate(proba, y)


def test_classes_that_differ_from_the_categories_are_an_error(draw):
    proba, y = draw(30, 3)
    labels = pd.Categorical.from_codes(y, ["lo", "mid", "hi"], ordered=True)
    with pytest.raises(ValueError, match=r"\['hi', 'mid', 'lo'\] differ .* \['lo', 'mid', 'hi'\]"):
        RiskController(alpha=0.2, classes=["hi", "mid", "lo"]).calibrate(proba, labels)


# alpha


@pytest.mark.parametrize(
    ("loss", "bound"),
    [
        ("coverage", "1"),
        ("divergence", "1"),
        (WeightedLoss([1, 2, 5, 1]), "1"),
        (WeightedLoss([1, 2, 5, 1], normalize=False), "5"),
        (DivergenceLoss(normalize=False), "3"),
        (DivergenceLoss(positions=[0, 1, 2, 2.5], normalize=False), r"2\.5"),
        (CostTableLoss([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [7, 7, 7, 0]], normalize=False), "7"),
        (WeightedLoss([Fraction(1, 3)] * 4, normalize=False), "1/3"),
    ],
    ids=repr,
)
def test_alpha_outside_the_losses_range_is_an_error_with_the_bound(draw, loss, bound):
    proba, y = draw(500, 4)
    largest = RiskController(loss=loss).loss.bound(4)
    controller = RiskController(loss=loss, alpha=largest / 2).calibrate(proba, y)
    for alpha in (0, -1, -0.1, largest, largest + Fraction(1, 10), 100, 1e300):
        message = rf"alpha must lie strictly between 0 and the largest loss, B={bound}; got"
        with pytest.raises(ValueError, match=message):
            RiskController(loss=loss, alpha=alpha).calibrate(proba, y)
        with pytest.raises(ValueError, match=message):
            controller.predict_set(proba, alpha=alpha)
        with pytest.raises(ValueError, match=message):
            controller.guarantee(alpha)


def test_an_alpha_beyond_the_largest_float_is_an_error_with_the_bound(draw):
    with pytest.raises(ValueError, match=r"between 0 and the largest loss, B=1; got about 1e\+400"):
        RiskController(alpha=Decimal("1e400")).calibrate(*draw(30, 4))


@pytest.mark.parametrize("alpha", [math.nan, math.inf, -math.inf, "x", None, [0.1], True, Decimal("NaN")])
def test_an_alpha_that_is_no_number_is_an_error(calibrated, draw, alpha):
    with pytest.raises(ValueError, match="alpha must be a finite number; got"):
        RiskController(alpha=alpha)
    if alpha is not None:
        with pytest.raises(ValueError, match="alpha must be a finite number; got"):
            calibrated.predict_set(draw(5, 4)[0], alpha=alpha)


# losses and growth rules


@pytest.mark.parametrize(
    ("table", "row", "near", "far"),
    [
        ([[0, 2, 1], [1, 0, 1], [1, 1, 0]], 0, 1, 2),
        ([[0, 1, 1], [1, 0, 1], [1, 2, 0]], 2, 1, 0),
        ([[0, 1, 1, 1], [1, 0, 1, 0.5], [1, 1, 0, 1], [1, 1, 1, 0]], 1, 2, 3),
        ([[0, -1, 1], [1, 0, 1], [1, 1, 0]], 0, 0, 1),
        ([[0, 1, 2], [0.5, 0, 1], [2 - 1e-15, 2, 0]], 2, 1, 0),
    ],
    ids=["right", "left", "middle", "negative", "by a hair"],
)
def test_a_table_that_decreases_away_from_its_diagonal_is_an_error(table, row, near, far):
    message = rf"Row {row} of the cost table decreases.*column {near} to.*column {far}\. The guarantee needs"
    for make in (CostTableLoss, orisk.RiskController):
        with pytest.raises(ValueError, match=message):
            make(table)
    with pytest.raises(ValueError, match=message):
        orisk.metrics.risk([0], IntervalSet([0], [0], range(len(table))), table)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -2, 1, 1], r"must not be negative; weight 1 is -2"),
        ([1, 1, 1, -0.5], r"must not be negative; weight 3 is -0\.5"),
        ([0, 0, 0, 0], "all zero"),
        ([], "all zero|no weights"),
        ([1, math.nan, 1, 1], r"weights\[1\] must be a finite number; got nan"),
        ([1, 1, math.inf, 1], r"weights\[2\] must be a finite number; got inf"),
        ([1, "a", 1, 1], r"weights\[1\] must be a finite number; got 'a'"),
        ([1, None, 1, 1], r"weights\[1\] must be a finite number; got None"),
        ([[1, 1, 1, 1]], r"weights\[0\] must be a finite number"),
        (3, "weights must be a sequence of numbers; got 3"),
        ({0: 1, 1: 1, 2: 1, 3: 5}, "weights must be a sequence of numbers"),
    ],
    ids=repr,
)
def test_bad_weights_are_an_error(weights, message):
    with pytest.raises(ValueError, match=message):
        WeightedLoss(weights)


@pytest.mark.parametrize("weights", [[1, 1, 2], [1, 1, 1, 1, 2]], ids=len)
def test_wrongly_many_weights_are_an_error_with_both_numbers(calibrated, draw, weights):
    proba, y = draw(30, 4)
    message = rf"{len(weights)} weights, but there are 4 classes"
    with pytest.raises(ValueError, match=message):
        RiskController(loss=WeightedLoss(weights), alpha=0.2).calibrate(proba, y)
    with pytest.raises(ValueError, match=message):
        orisk.metrics.risk(y, calibrated.predict_set(proba), WeightedLoss(weights))


@pytest.mark.parametrize("loss", ["accuracy", "", None, 3, object], ids=str)
def test_an_unknown_loss_is_an_error(loss):
    with pytest.raises(ValueError, match=r"the names (are )?\['coverage', 'divergence'"):
        RiskController(loss=loss)


@pytest.mark.parametrize("growth", ["greedy", "", None, 3, ["frontier"]], ids=str)
def test_an_unknown_growth_rule_is_an_error_with_the_names(growth):
    with pytest.raises(ValueError, match=r"growth rules are \['frontier', 'adaptive', 'paper', 'rps'"):
        RiskController(growth=growth)


def test_an_unknown_point_label_rule_is_an_error_with_the_names():
    with pytest.raises(ValueError, match=r"point='mean' is not known.*'mode', 'bayes', 'median', 'given'"):
        orisk.FrontierGrowth("mean")


# order of calls


@pytest.mark.parametrize(
    "call",
    [
        lambda controller, tmp_path: controller.predict_set([[0.5, 0.5]]),
        lambda controller, tmp_path: controller.predict_set([[0.5, 0.5]], alpha=0.1),
        lambda controller, tmp_path: controller.guarantee(),
        lambda controller, tmp_path: controller.save(tmp_path / "file.json"),
    ],
    ids=["predict_set", "predict_set alpha", "guarantee", "save"],
)
def test_use_before_calibration_is_sklearns_error(tmp_path, call):
    with pytest.raises(NotFittedError, match=r"not calibrated yet; call calibrate\(proba, y\) first"):
        call(RiskController(alpha=0.2), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_another_number_of_classes_at_prediction_is_an_error_with_both(calibrated, draw, n_classes):
    with pytest.raises(ValueError, match=rf"{n_classes} columns, but the calibration had 4 classes"):
        calibrated.predict_set(draw(10, n_classes)[0])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda controller, proba, y: controller.calibrate(spoilt(proba, 3, 1, math.nan), y),
        lambda controller, proba, y: controller.calibrate(proba, y + 1),
        lambda controller, proba, y: controller.calibrate(proba[:, :3], y),
        lambda controller, proba, y: controller.predict_set(spoilt(proba, 3, 1, math.nan)),
        lambda controller, proba, y: controller.predict_set(proba, alpha=7),
    ],
    ids=["NaN", "labels", "columns", "predicting NaN", "predicting with a wrong alpha"],
)
def test_a_failure_leaves_the_calibration_as_it_was(calibrated, draw, spoil):
    proba, y = draw(100, 4, seed=1)
    before, state = calibrated.predict_set(proba), dict(vars(calibrated))
    with pytest.raises(ValueError):
        spoil(calibrated, proba, y)
    assert vars(calibrated) == state
    assert calibrated.predict_set(proba) == before


# too few rows


@pytest.mark.parametrize(
    ("loss", "alpha", "needed", "bound"),
    [
        ("coverage", 0.1, 9, "1"),
        ("coverage", 0.29, 3, "1"),
        ("divergence", Fraction(1, 7), 6, "1"),
        (DivergenceLoss(normalize=False), 0.5, 5, "3"),
        (WeightedLoss([1, 1, 1, 2.5], normalize=False), 0.5, 4, r"2\.5"),
    ],
    ids=str,
)
@pytest.mark.parametrize("growth", RULE_NAMES)
def test_too_few_rows_give_full_sets_and_a_warning_with_the_number_needed(
    draw, loss, alpha, needed, bound, growth
):
    proba, y = draw(needed, 4)
    controller = RiskController(loss=loss, alpha=alpha, growth=growth)
    controller.calibrate(proba, y)  # just enough: no warning
    message = (
        rf"needs at least {needed} calibration rows .* bounded by {bound}; got {needed - 1}, .*full scale"
    )
    with pytest.warns(orisk.TooFewRowsWarning, match=message) as caught:
        controller.calibrate(proba[:-1], y[:-1])
    assert [warning.filename for warning in caught] == [__file__]
    assert controller.threshold_ == -math.inf
    assert controller.predict_set(proba).size.tolist() == [4] * needed
    assert not controller.guarantee().certified
    assert f"At least {needed} rows are needed" in " ".join(str(controller.guarantee()).split())


def test_too_few_rows_for_another_alpha_are_warned_of(calibrated, draw):
    proba, _ = draw(10, 4)
    with pytest.warns(
        orisk.TooFewRowsWarning, match=r"alpha=0\.005 needs at least 199 .*; got 100, .*full scale"
    ) as caught:
        sets = calibrated.predict_set(proba, alpha=0.005)
    assert [warning.filename for warning in caught] == [__file__]
    assert sets.size.tolist() == [4] * 10


def test_a_warning_that_is_an_error_leaves_the_calibration_as_it_was(calibrated, draw):
    state = dict(vars(calibrated))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="needs at least 4"):
            calibrated.calibrate(*draw(3, 4))
    assert vars(calibrated) == state


# saved files


@pytest.fixture
def saved(draw, tmp_path):
    """A saved file as a dict, and a function that loads a changed one. The command notes columns in it."""
    path = tmp_path / "saved.json"
    proba, y = draw(100, 4)
    pd.DataFrame(proba, columns=[*"abcd"]).assign(grade=y).to_csv(tmp_path / "rows.csv", index=False)
    options = ("--scores", "a,b,c,d", "--label", "grade", "--classes", "0,1,2,3", "--alpha", "0.2")
    succeeds("calibrate", tmp_path / "rows.csv", *options, "-o", path)
    document = json.loads(path.read_text())

    def load(changed):
        path.write_text(changed if isinstance(changed, str) else json.dumps(changed))
        return RiskController.load(path)

    return document, load


def refusal(field):
    return rf"saved\.json can't be loaded: field '{field}' .*Nothing was loaded"


def changed_values(value):
    """The value with each of its parts changed in turn."""
    if isinstance(value, dict):
        for key in value:
            for part in changed_values(value[key]):
                yield value | {key: part}
            yield {other: value[other] for other in value if other != key}
        yield value | {"new": 1}
    elif isinstance(value, list):
        for i in (0, len(value) // 2, -1) if value else ():
            for part in changed_values(value[i]):
                yield [*value[:i], part, *value[i:][1:]]
        yield value[:-1]
        yield [*value, *value[-1:]]
        yield value[::-1]
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, -value - 1, str(value), float(value))
    elif isinstance(value, float):
        yield from (math.nextafter(value, math.inf), -value, value + 1)
    elif isinstance(value, str):
        yield from (value + " ", value[:-1], value.swapcase() if value.lower() != value.upper() else "x")
    yield None
    yield {}


def test_the_unchanged_file_loads(saved, calibrated):
    document, load = saved
    assert load(document).threshold_ == calibrated.threshold_
    assert load(with_digests(document)).threshold_ == calibrated.threshold_


def test_an_edited_field_is_named(saved):
    document, load = saved
    assert document.keys() == document["digests"].keys() | {"digests"}
    for field in document["digests"]:
        variants = [value for value in changed_values(document[field]) if value != document[field]]
        assert len(variants) >= 1
        for value in variants:
            with pytest.raises(ValueError, match=refusal(field)):
                load(document | {field: value})


def test_a_missing_field_is_named(saved):
    document, load = saved
    for field in document:
        with pytest.raises(ValueError, match=refusal(field)):
            load({other: value for other, value in document.items() if other != field})


@pytest.mark.parametrize("field", ["note", "Alpha", "digest", ""])
def test_an_extra_field_is_named(saved, field):
    document, load = saved
    with pytest.raises(ValueError, match=refusal(field)):
        load(document | {field: 1})


def test_a_field_that_is_there_twice_is_named(saved):
    document, load = saved
    text = json.dumps(document)
    for field in document["digests"]:
        with pytest.raises(ValueError, match=refusal(field)):
            load("{" + f'"{field}": 0, ' + text[1:])


def test_an_edited_digest_names_its_field(saved):
    document, load = saved
    digests = document["digests"]
    for field in digests:
        for digest in ("0" * 64, "", None, 1, digests[field].upper()):
            with pytest.raises(ValueError, match=refusal(field)):
                load(document | {"digests": digests | {field: digest}})


@pytest.mark.parametrize("digests", [None, [], "x", 3], ids=repr)
def test_digests_that_are_none_are_named(saved, digests):
    document, load = saved
    with pytest.raises(ValueError, match=refusal("digests")):
        load(document | {"digests": digests})


def test_a_digest_too_many_is_named(saved):
    document, load = saved
    with pytest.raises(ValueError, match=refusal("digests")):
        load(document | {"digests": document["digests"] | {"note": "0" * 64}})


def test_a_file_cut_anywhere_is_an_error(saved):
    document, load = saved
    whole = json.dumps(document)
    for end in [*range(0, len(whole), 97), len(whole) - 1]:
        with pytest.raises(ValueError, match=r"saved\.json is not a whole JSON file .*nothing was loaded"):
            load(whole[:end])


@pytest.mark.parametrize(
    "text",
    ["", "hello", "{", '{"format": NaN', "[" * 100_000, '{"a":' * 100_000],
    ids=["empty", "text", "brace", "NaN", "deep list", "deep object"],
)
def test_a_file_that_is_no_json_is_an_error(saved, text):
    with pytest.raises(ValueError, match=r"saved\.json is not a whole JSON file .*nothing was loaded"):
        saved[1](text)


def test_a_binary_file_is_an_error(tmp_path):
    path = tmp_path / "saved.json"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(ValueError, match=r"saved\.json is not a whole JSON file .*nothing was loaded"):
        RiskController.load(path)


@pytest.mark.parametrize("document", [[], 3, "x", None, {}, {"format": "something else"}], ids=repr)
def test_json_that_is_no_calibration_is_an_error(saved, document):
    with pytest.raises(ValueError, match=refusal("format")):
        saved[1](json.dumps(document))


@pytest.mark.parametrize("version", [0, 1, 2, 3, 99, "4", None, [4]], ids=repr)
def test_another_schema_is_an_error_that_says_which_is_read(saved, version):
    document, load = saved
    for changed in (
        document | {"schema_version": version},
        with_digests(document | {"schema_version": version}),
    ):
        with pytest.raises(ValueError, match=refusal("schema_version")) as raised:
            load(changed)
        assert f"is {version!r}; this version of ordinalrisk reads 4" in str(raised.value)


def in_window(**changes):
    """A curve whose window is changed."""

    def changed(curve):
        [window] = curve["windows"]
        return curve | {"windows": [window | {name: value(window) for name, value in changes.items()}]}

    return changed


def without_in_window(name):
    """A curve whose window has lost something."""
    return lambda curve: (
        curve | {"windows": [{key: value for key, value in curve["windows"][0].items() if key != name}]}
    )


SEMANTICALLY_WRONG = {
    "threshold moved": ("threshold", lambda t: {"hex": (0.125).hex(), "decimal": "0.125"}),
    "threshold infinite": ("threshold", lambda t: {"hex": "inf", "decimal": "inf"}),
    "threshold NaN": ("threshold", lambda t: {"hex": "nan", "decimal": "nan"}),
    "threshold's decimals differ": ("threshold", lambda t: t | {"decimal": "0.5"}),
    "threshold's hexadecimals differ": ("threshold", lambda t: t | {"hex": "0x1p-1"}),
    "threshold without decimals": ("threshold", lambda t: {"hex": t["hex"]}),
    "threshold is a number": ("threshold", lambda t: 0.5),
    "threshold is no number": ("threshold", lambda t: {"hex": "x", "decimal": "x"}),
    "threshold too large": ("threshold", lambda t: {"hex": "0x1p5000", "decimal": "inf"}),
    "alpha is no number": ("alpha", lambda a: "x"),
    "alpha is missing": ("alpha", lambda a: None),
    "alpha divides by zero": ("alpha", lambda a: "1/0"),
    "alpha too large": ("alpha", lambda a: 2),
    "alpha is negative": ("alpha", lambda a: -0.1),
    "bound of another loss": ("bound", lambda b: "2"),
    "bound divides by zero": ("bound", lambda b: "1/0"),
    "bound is no number": ("bound", lambda b: "x"),
    "bound is missing": ("bound", lambda b: None),
    "no rows": ("n_rows", lambda n: 0),
    "negative rows": ("n_rows", lambda n: -5),
    "fractional rows": ("n_rows", lambda n: n + 0.5),
    "rows in words": ("n_rows", lambda n: "many"),
    "rows missing": ("n_rows", lambda n: None),
    "unit of another loss": ("curve", lambda c: c | {"unit": "1/2"}),
    "unit divides by zero": ("curve", lambda c: c | {"unit": "1/0"}),
    "unit is no number": ("curve", lambda c: c | {"unit": None}),
    "levels fall": ("curve", in_window(levels=lambda w: w["levels"][::-1])),
    "levels repeat": ("curve", in_window(levels=lambda w: [w["levels"][1], *w["levels"][1:]])),
    "levels too few": ("curve", in_window(levels=lambda w: w["levels"][1:])),
    "levels not finite": ("curve", in_window(levels=lambda w: [*w["levels"][:-1], math.inf])),
    "levels NaN": ("curve", in_window(levels=lambda w: [math.nan, *w["levels"][1:]])),
    "levels in words": ("curve", in_window(levels=lambda w: ["x" for _ in w["levels"]])),
    "levels nested": ("curve", in_window(levels=lambda w: [w["levels"]])),
    "levels missing": ("curve", without_in_window("levels")),
    "totals fall": ("curve", in_window(totals=lambda w: w["totals"][::-1])),
    "totals repeat": ("curve", in_window(totals=lambda w: [w["totals"][1], *w["totals"][1:]])),
    "totals negative": ("curve", in_window(totals=lambda w: [-1, *w["totals"][1:]])),
    "totals zero": ("curve", in_window(totals=lambda w: [0, *w["totals"][1:]])),
    "totals fractional": ("curve", in_window(totals=lambda w: [t + 0.5 for t in w["totals"]])),
    "totals in words": ("curve", in_window(totals=lambda w: [str(t) for t in w["totals"]])),
    "totals too large": ("curve", in_window(totals=lambda w: [*w["totals"][:-1], 10**30])),
    "totals missing": ("curve", without_in_window("totals")),
    "only total negative": (
        "curve",
        in_window(levels=lambda w: w["levels"][:1], totals=lambda w: [-1]),
    ),
    "below is negative": ("curve", in_window(below=lambda w: -1)),
    "below is fractional": ("curve", in_window(below=lambda w: 0.5)),
    "below is a whole float": ("curve", in_window(below=lambda w: 0.0)),
    "below is true or false": ("curve", in_window(below=lambda w: False)),
    "below in words": ("curve", in_window(below=lambda w: "0")),
    "below is the first total": ("curve", in_window(below=lambda w: w["totals"][0])),
    "below missing": ("curve", without_in_window("below")),
    "window with more": ("curve", in_window(more=lambda w: 1)),
    "window is a list": ("curve", lambda c: c | {"windows": [[0, [0.5], [1]]]}),
    "window is empty": ("curve", in_window(levels=lambda w: [], totals=lambda w: [])),
    "window twice": ("curve", lambda c: c | {"windows": c["windows"] * 2}),
    "windows missing": ("curve", lambda c: {k: v for k, v in c.items() if k != "windows"}),
    "windows are none": ("curve", lambda c: c | {"windows": None}),
    "windows are an object": ("curve", lambda c: c | {"windows": c["windows"][0]}),
    "windows left out": ("curve", lambda c: c | {"windows": []}),
    "total missing": ("curve", lambda c: {k: v for k, v in c.items() if k != "total"}),
    "total is none": ("curve", lambda c: c | {"total": None}),
    "total is smaller than the last": ("curve", lambda c: c | {"total": c["total"] - 1}),
    "total is more than rows can have": ("curve", lambda c: c | {"total": 10**30}),
    "total is negative": ("curve", lambda c: c | {"total": -1}),
    "total is a float": ("curve", lambda c: c | {"total": float(c["total"])}),
    "total in words": ("curve", lambda c: c | {"total": str(c["total"])}),
    "more alphas missing": ("more_alphas", lambda more: None),
    "more alphas are a number": ("more_alphas", lambda more: 0.1),
    "more alphas in words": ("more_alphas", lambda more: "0.1"),
    "another alpha is no number": ("more_alphas", lambda more: ["x"]),
    "another alpha is missing": ("more_alphas", lambda more: [None]),
    "another alpha is too large": ("more_alphas", lambda more: [0.1, 1]),
    "another alpha is negative": ("more_alphas", lambda more: [-0.1]),
    "ties negative": ("curve", lambda c: c | {"most_tied": -1}),
    "ties none": ("curve", lambda c: c | {"most_tied": 0}),
    "ties fractional": ("curve", lambda c: c | {"most_tied": 1.5}),
    "ties in words": ("curve", lambda c: c | {"most_tied": "x"}),
    "more ties than rows": ("curve", lambda c: c | {"most_tied": 101}),
    "curve is a list": ("curve", lambda c: []),
    "one class": ("classes", lambda c: c[:1]),
    "no class": ("classes", lambda c: []),
    "classes repeat": ("classes", lambda c: [c[0], *c[:-1]]),
    "classes in words": ("classes", lambda c: "abcd"),
    "classes missing": ("classes", lambda c: None),
    "classes nested": ("classes", lambda c: [[label] for label in c]),
    "a class is missing": ("classes", lambda c: [None, *c[1:]]),
    "a class is an object": ("classes", lambda c: [{}, *c[1:]]),
    "loss unknown": ("loss", lambda loss: loss | {"kind": "x"}),
    "loss without kind": ("loss", lambda loss: {}),
    "loss with more": ("loss", lambda loss: loss | {"more": 1}),
    "loss is text": ("loss", lambda loss: "coverage"),
    "weights negative": ("loss", lambda loss: loss | {"weights": [1, 1, 1, -1]}),
    "weights in words": ("loss", lambda loss: loss | {"weights": "x"}),
    "growth unknown": ("growth", lambda growth: growth | {"name": "x"}),
    "growth from an unknown point": ("growth", lambda growth: growth | {"point": "x"}),
    "growth without point": ("growth", lambda growth: {"name": "frontier"}),
    "growth with more": ("growth", lambda growth: growth | {"more": 1}),
    "growth is text": ("growth", lambda growth: "frontier"),
    "fingerprint is a number": ("data_blake3", lambda sha: 3),
    "fingerprint is none": ("data_blake3", lambda sha: "x"),
    "format of something else": ("format", lambda name: "x"),
    "columns of fewer classes": ("columns", lambda c: c | {"scores": c["scores"][1:]}),
    "columns repeat": ("columns", lambda c: c | {"scores": ["a", "a", "b", "c"]}),
    "columns are numbers": ("columns", lambda c: c | {"scores": [0, 1, 2, 3]}),
    "columns in words": ("columns", lambda c: c | {"scores": "abcd"}),
    "columns without label": ("columns", lambda c: {k: v for k, v in c.items() if k != "label"}),
    "label column is a number": ("columns", lambda c: c | {"label": 3}),
    "logits in words": ("columns", lambda c: c | {"logits": "no"}),
    "rescale in words": ("columns", lambda c: c | {"rescale": "no"}),
    "logits rescaled": ("columns", lambda c: c | {"logits": True, "rescale": True}),
    "columns with more": ("columns", lambda c: c | {"more": 1}),
    "columns are none": ("columns", lambda c: {}),
    "package version missing": ("package_version", lambda version: None),
}


@pytest.mark.parametrize(("field", "change"), SEMANTICALLY_WRONG.values(), ids=SEMANTICALLY_WRONG)
def test_a_field_that_makes_no_sense_is_named_even_if_its_digest_is_right(saved, field, change):
    document, load = saved
    named = field if field in document else "strata"
    holder = document if field in document else document["strata"][0]
    holder = holder["curve"] if field == "bound" else holder
    holder[field] = change(copy.deepcopy(holder[field]))
    with pytest.raises(ValueError, match=refusal(named)):
        load(with_digests(document))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", 0.5),
        ("classes", [0, 1, 2]),
        ("groups", ["a"]),
        ("groups", ["a", "b"]),
        ("options", {"delta": 0.1, "bound": "auto", "condition_on": None, "randomize": False}),
        ("options", {"delta": None, "bound": "auto", "condition_on": "label", "randomize": False}),
    ],
    ids=str,
)
def test_fields_that_contradict_each_other_are_an_error(draw, tmp_path, field, value):
    """Each is possible by itself; together with the others it is not."""
    path = tmp_path / "saved.json"
    RiskController(loss=WeightedLoss([1, 1, 2, 3]), alpha=0.2).calibrate(*draw(100, 4)).save(path)
    path.write_text(json.dumps(with_digests(json.loads(path.read_text()) | {field: value})))
    with pytest.raises(ValueError, match=refusal(f"({field}|strata)")):
        RiskController.load(path)


def moved(number, **changes):
    """A curve with something else in one of its windows."""

    def changed(curve):
        windows = copy.deepcopy(curve["windows"])
        windows[number] |= {name: value(windows[number]) for name, value in changes.items()}
        return curve | {"windows": windows}

    return changed


WRONG_WINDOWS = {
    "in another order": (lambda c: c | {"windows": c["windows"][::-1]}, "ascending order"),
    "the same one twice": (lambda c: c | {"windows": [c["windows"][0], *c["windows"]]}, "ascending order"),
    "nothing between them": (
        lambda c: moved(1, below=lambda w: c["windows"][0]["totals"][-1])(c),
        "with something between them",
    ),
    "totals that overlap": (
        lambda c: moved(1, below=lambda w: c["windows"][0]["totals"][-1] - 1)(c),
        "with something between them",
    ),
    "levels that overlap": (
        lambda c: moved(0, levels=lambda w: [*w["levels"][:-1], c["windows"][1]["levels"][0]])(c),
        "ascending order",
    ),
    "above the total": (
        lambda c: c | {"total": c["windows"][-1]["totals"][-1] - 1},
        "levels above its total",
    ),
    "total fractional": (lambda c: c | {"total": c["total"] + 0.5}, "got `float` - at `$[0].curve.total`"),
    "total true": (lambda c: c | {"total": True}, "got `bool` - at `$[0].curve.total`"),
    "total beyond all rows": (lambda c: c | {"total": 10**9}, "larger total than so many rows can have"),
    "no whole number below": (moved(1, below=lambda w: float(w["below"])), "got `float` - at"),
    "negative below": (moved(0, below=lambda w: -1), ">= 0 - at `$[0].curve.windows[0].below`"),
    "below beyond the first total": (moved(1, below=lambda w: w["totals"][0]), "increasing totals"),
    "empty": (moved(1, levels=lambda w: [], totals=lambda w: []), "length >= 1"),
    "that of the threshold is gone": (lambda c: c | {"windows": c["windows"][1:]}, "kept near alpha"),
    "too few levels": (moved(0, levels=lambda w: w["levels"][1:]), "a total for each level"),
    "no ties": (lambda c: c | {"most_tied": 0}, "between 1 and n_rows rows tied"),
    "ties without levels": (lambda c: c | {"windows": []}, "0 without levels"),
}


@pytest.fixture
def saved_windows(draw, tmp_path, monkeypatch):
    search_few_steps(monkeypatch)
    controller, _ = calibrate_in_parts(RiskController(alpha=0.05), *draw(2_000, 4), [700], more_alphas=[0.3])
    controller.save(tmp_path / "saved.json")
    document = json.loads((tmp_path / "saved.json").read_text())
    assert len(document["strata"][0]["curve"]["windows"]) == 2

    def load(changed):
        (tmp_path / "saved.json").write_text(json.dumps(with_digests(changed)))
        return RiskController.load(tmp_path / "saved.json")

    return document, load


@pytest.mark.parametrize(("change", "why"), WRONG_WINDOWS.values(), ids=WRONG_WINDOWS)
def test_windows_that_make_no_sense_are_named(saved_windows, change, why):
    document, load = saved_windows
    stratum = document["strata"][0]
    stratum["curve"] = change(stratum["curve"])
    with pytest.raises(ValueError, match=refusal("strata")) as raised:
        load(document)
    assert why in str(raised.value)


def test_another_alpha_that_the_windows_do_not_tell_is_named(saved_windows):
    document, load = saved_windows
    assert load(document).calibration_.more_alphas == (Fraction(3, 10),)
    with pytest.raises(ValueError, match=refusal("more_alphas")) as raised:
        load(document | {"more_alphas": [0.3, 0.15]})
    assert "0.15" in str(raised.value)


def test_row_weights_need_the_whole_curve(draw, tmp_path):
    """Each row has a threshold of its own, from anywhere on the curve: a part of it would tell wrong ones."""
    path = tmp_path / "saved.json"
    proba, y = draw(400, 4)
    RiskController(alpha=0.1).calibrate(proba, y, sample_weight=np.full(400, 1.0)).save(path)
    document = json.loads(path.read_text())
    curve = document["strata"][0]["curve"]
    [window] = curve["windows"]
    curve["windows"] = [window | {"levels": window["levels"][:-1], "totals": window["totals"][:-1]}]
    path.write_text(json.dumps(with_digests(document)))
    with pytest.raises(ValueError, match=refusal("strata")) as raised:
        RiskController.load(path)
    assert "whole curves where each row has a threshold of its own" in str(raised.value)


def test_a_missing_file_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        RiskController.load(tmp_path / "none.json")


# all of them


def test_every_error_can_be_caught_as_a_value_error():
    assert issubclass(NotFittedError, ValueError)
    with pytest.raises(ValueError, match="not calibrated yet"):
        RiskController().predict_set([[0.5, 0.5]])


@pytest.mark.parametrize("name", ["loss", "alpha", "growth", "classes"])
def test_parameters_can_not_change_under_a_calibration(draw, name):
    controller = orisk.RiskController(alpha=0.2).calibrate(*draw())
    with pytest.raises(AttributeError, match=f"{name} can't change after the calibration"):
        setattr(controller, name, 0.1)


def test_nan_is_no_class(draw):
    proba, y = draw(n_classes=3)
    with pytest.raises(ValueError, match="nan can't be a label"):
        orisk.RiskController(classes=[0, 1, float("nan")]).calibrate(proba, y)


@pytest.mark.parametrize(
    ("rows", "remedy"),
    [
        ([[20.0, 30.0, 50.0]], r"sums to 100, not to 1: these look like percentages; divide them by 100"),
        ([[0.2, 0.5, 1.0]], r"sums to 1\.7, not to 1: these look cumulative; pass from_cumulative"),
        ([[3.0, -1.0, 0.5]], r"pass softmax\(logits\)"),
        ([[0.2, 0.5, 0.2]], r"sums to 0\.9, not to 1: if these are scores"),
    ],
)
def test_the_remedy_fits_what_it_looks_like(rows, remedy):
    with pytest.raises(ValueError, match=remedy):
        RiskController(alpha=0.2).calibrate(rows, [0])


def test_metrics_say_what_they_take(draw):
    _, y = draw()
    with pytest.raises(
        ValueError, match=r"sets must be an IntervalSet; got a ndarray\. Pass the labels first"
    ):
        orisk.metrics.coverage(y, y)


def test_a_missing_folder_is_named(calibrated, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"grades\.json can't be written: there is no folder .*nowhere"
    ):
        calibrated.save(tmp_path / "nowhere" / "grades.json")


@pytest.mark.parametrize("normalize", ["no", 0, None])
def test_normalize_is_a_flag(normalize):
    with pytest.raises(ValueError, match="normalize must be True or False"):
        WeightedLoss([1, 2], normalize=normalize)


def test_costs_beyond_floats_are_refused(draw):
    loss = CostTableLoss([[0, 10**400, 10**400], [1, 0, 1], [1, 1, 0]], normalize=False)
    with pytest.raises(ValueError, match="too large for a float; use normalize=True"):
        RiskController(loss=loss, alpha=1).calibrate(*draw(n_classes=3))


def test_the_base_of_the_growth_rules_is_none():
    with pytest.raises(ValueError, match="use one of"):
        GrowthRule()


def test_labels_that_are_lists_are_refused(draw):
    proba, _ = draw(2, 3)
    y = np.empty(2, object)
    y[:] = ["a", ["b"]]
    with pytest.raises(ValueError, match=r"y\[1\] is \['b'\], which can't be a label"):
        RiskController(alpha=0.5, classes=["a", "b", "c"]).calibrate(proba, y)


def test_what_is_no_array_is_refused(draw):
    class Odd:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("no")

    with pytest.raises(ValueError, match=r"proba can't be read as an array \(Odd: no\)"):
        RiskController(alpha=0.5).calibrate(Odd(), [0])


def test_parameters_that_are_set_before_calibrate_are_checked_by_it(draw):
    controller = RiskController()
    controller.loss, controller.growth, controller.alpha = "divergence", "paper", dict.fromkeys(range(4), 0.3)
    controller.confidence_bound = "auto"
    assert repr(controller)
    controller.calibrate(*draw(60, 4))
    assert controller.loss == orisk.DivergenceLoss()
    assert (controller.growth, controller.condition_on) == (orisk.PaperGrowth(), "label")
    controller = RiskController()
    controller.confidence_bound = "dkw"
    assert "RiskController(loss" in repr(controller)  # delta may come next
    with pytest.raises(ValueError, match="is for delta; give a delta too"):
        controller.calibrate(*draw(60, 4))


def test_a_file_is_loaded_as_a_plain_controller(draw, tmp_path):
    class Tagged(RiskController):
        def __init__(self, tag):
            super().__init__(alpha=0.3)
            self.tag = tag

    Tagged("x").calibrate(*draw(60, 4)).save(tmp_path / "cal.json")
    assert type(Tagged.load(tmp_path / "cal.json")) is RiskController
