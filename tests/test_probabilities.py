"""From model output to probabilities: the formulas, their precision, and what is refused."""

import datetime
import decimal
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ordinalrisk as orisk
from ordinalrisk.probabilities import (
    from_cumulative,
    from_cumulative_logits,
    from_logprobs,
    min_shift,
    softmax,
)

MAKERS = [softmax, min_shift, from_cumulative, from_cumulative_logits]


def levels(proba):
    """Levels of labels, for which probabilities are read as they are for sets."""
    return orisk.FrontierGrowth().levels(proba)


def exactly(value):
    """The exact decimal value of a double."""
    return decimal.Decimal(float(value))


def relative_error(computed, exact):
    return abs((exactly(computed) - exact) / exact)


def exact_softmax(logits):
    with decimal.localcontext(prec=60):
        powers = [exactly(z).exp() for z in logits]
        return [power / sum(powers) for power in powers]


def exact_cumulative_link(logits):
    """Differences of ``P(Y > k) = 1 / (1 + exp(-z_k))``, without cancellation."""
    with decimal.localcontext(prec=900):
        above = [1, *(1 / (1 + (-exactly(z)).exp()) for z in logits), 0]
        return [decimal.Decimal(before) - after for before, after in pairwise(above)]


# softmax


@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
def test_softmax_is_the_formula(n_classes):
    for row in np.random.default_rng(n_classes).normal(scale=5, size=(5, n_classes)):
        for computed, exact in zip(softmax([row])[0], exact_softmax(row), strict=True):
            assert relative_error(computed, exact) < 1e-14


@pytest.mark.parametrize("shift", [-1e4, -700.0, 0.0, 700.0, 1e4])
def test_softmax_is_the_same_for_shifted_logits(shift):
    logits = np.array([[0.0, 1.0, -2.0], [0.5, 0.25, 8.0]])
    np.testing.assert_allclose(softmax(logits + shift), softmax(logits), rtol=1e-10)


def test_softmax_keeps_its_precision_far_in_the_tail():
    tail = softmax([[0.0, -600.0]])[0, 1]
    assert relative_error(tail, exact_softmax([0, -600])[1]) < 1e-14


def test_softmax_of_the_smallest_float_is_zero():
    assert softmax([[5.0, np.finfo(np.float64).min]]).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_softmax_is_float64_and_leaves_its_input_alone(dtype):
    logits = np.array([[1, 2, 3], [0, 0, 0]], dtype)
    before = logits.copy()
    proba = softmax(logits)
    assert proba.dtype == np.float64
    np.testing.assert_array_equal(logits, before)
    assert [math.fsum(row) for row in proba] == pytest.approx([1, 1], abs=1e-15)


def test_softmax_is_a_public_name():
    assert orisk.probabilities.softmax is softmax


# min_shift


def test_min_shift_is_the_formula():
    z = np.random.default_rng(1).normal(size=(20, 6))
    expected = [[(v - min(row)) / math.fsum(w - min(row) for w in row) for v in row] for row in z.tolist()]
    np.testing.assert_allclose(min_shift(z), expected, rtol=1e-14)


def test_min_shift_gives_zero_to_the_least_logit_only():
    assert min_shift([[1.0, 2.0, 4.0], [9.0, -3.0, -1.0]]).tolist() == [[0, 0.25, 0.75], [12 / 14, 0, 2 / 14]]


def test_min_shift_of_equal_logits_is_an_error():
    with pytest.raises(ValueError, match=r"not defined for row 1: its logits are all equal"):
        min_shift([[1.0, 2.0], [3.0, 3.0]])


# cumulative probabilities


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_from_cumulative_inverts_cumulation(n_classes, draw):
    proba, _ = draw(50, n_classes)
    np.testing.assert_allclose(from_cumulative(proba.cumsum(axis=1)[:, :-1]), proba, atol=1e-15)


def test_from_cumulative_of_steps_at_the_ends():
    assert from_cumulative([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_from_cumulative_outside_the_unit_interval_is_an_error(value):
    with pytest.raises(ValueError, match=r"Row 1 of cumulative has a value outside \[0, 1\]: \["):
        from_cumulative([[0.1, 0.2], sorted([0.5, value])])


def test_from_cumulative_that_falls_is_an_error():
    with pytest.raises(ValueError, match=r"cumulative must increase .* along a row; row 1 is \[0\.7, 0\.6\]"):
        from_cumulative([[0.1, 0.2], [0.7, 0.6]])


# cumulative logits


CUMULATIVE_LOGITS = {
    "two classes": [0.3],
    "even": [2.0, 0.0, -2.0],
    "close together": [1e-9, 0.0, -1e-12],
    "far left": [-500.0, -501.0, -600.0],
    "far right": [600.0, 501.0, 500.0],
    "far apart": [400.0, 0.0, -400.0],
    "close together in the tail": [37.5, 37.5 - 2**-40, -37.5, -37.5 - 2**-40],
}


@pytest.mark.parametrize("logits", CUMULATIVE_LOGITS.values(), ids=CUMULATIVE_LOGITS)
def test_cumulative_logits_keep_full_precision_in_the_tails(logits):
    computed = from_cumulative_logits([logits])[0]
    exact = exact_cumulative_link(logits)
    assert len(computed) == len(logits) + 1
    for p, expected in zip(computed, exact, strict=True):
        assert relative_error(p, expected) < 1e-14


def test_cumulative_logits_agree_with_cumulative_probabilities():
    z = -np.sort(-np.random.default_rng(2).normal(size=(40, 5)), axis=1)
    below = 1 - 1 / (1 + np.exp(-z))
    np.testing.assert_allclose(from_cumulative_logits(z), from_cumulative(below), atol=1e-15)


def test_cumulative_logits_sum_to_one():
    z = -np.sort(-np.random.default_rng(3).normal(scale=30, size=(200, 8)), axis=1)
    assert [math.fsum(row) for row in from_cumulative_logits(z)] == pytest.approx([1] * 200, abs=1e-14)


def test_equal_cumulative_logits_leave_a_class_empty():
    assert from_cumulative_logits([[0.0, 0.0]]).tolist() == [[0.5, 0.0, 0.5]]


def test_cumulative_logits_of_two_classes_are_the_sigmoid():
    np.testing.assert_allclose(from_cumulative_logits([[1.5]]), softmax([[0.0, 1.5]]), rtol=1e-15)


def test_cumulative_logits_that_rise_are_an_error():
    with pytest.raises(ValueError, match=r"logits must decrease .* along a row; row 1 is \[-1\.0, 1\.0\]"):
        from_cumulative_logits([[1.0, -1.0], [-1.0, 1.0]])


# token log-probabilities


MAPPING = {"4": -0.2, "5": -2.0, "The": -5.0}
LISTED = [
    {"token": "4", "logprob": -0.2, "bytes": [52]},
    {"token": "5", "logprob": -2.0, "bytes": [53]},
    {"token": "The", "logprob": -5.0, "bytes": None},
]


@pytest.mark.parametrize("candidates", [MAPPING, LISTED, tuple(LISTED)], ids=["mapping", "list", "tuple"])
def test_logprobs_are_shared_among_the_labels(candidates):
    total = math.exp(-0.2) + math.exp(-2)
    expected = [[0, 0, 0, math.exp(-0.2) / total, math.exp(-2) / total]]
    np.testing.assert_allclose(from_logprobs([candidates], classes=[1, 2, 3, 4, 5]), expected, rtol=1e-15)


def test_white_space_variants_of_a_label_are_summed():
    row = {"mild": math.log(0.2), " mild": math.log(0.1), "mild\n": math.log(0.1), "severe": math.log(0.6)}
    proba = from_logprobs([row], classes=["none", "mild", "severe"])
    np.testing.assert_allclose(proba, [[0, 0.4, 0.6]], rtol=1e-14)


def test_white_space_around_a_class_does_not_matter():
    assert from_logprobs([{"a": 0.0}], classes=[" a ", "b"]).tolist() == [[1, 0]]


def test_a_token_listed_twice_is_summed():
    row = [{"token": t, "logprob": math.log(p)} for t, p in [("1", 0.25), ("2", 0.5), ("1", 0.25)]]
    np.testing.assert_allclose(from_logprobs([row], classes=[1, 2]), [[0.5, 0.5]], rtol=1e-15)


def test_a_label_of_probability_zero_is_allowed():
    assert from_logprobs([{"1": -math.inf, "2": -1.0}], classes=[1, 2]).tolist() == [[0, 1]]


def test_tiny_logprobs_keep_their_proportion():
    np.testing.assert_allclose(
        from_logprobs([{"1": -800.0, "2": -801.0}], classes=[1, 2]), softmax([[-800.0, -801.0]]), rtol=1e-12
    )


def test_logprobs_read_any_iterable_of_rows():
    assert from_logprobs(iter([{"1": -1.0}, {"2": -1.0}]), classes=(1, 2)).tolist() == [[1, 0], [0, 1]]


def test_logprobs_without_any_label_are_an_error():
    message = r"Row 1: none of the labels \['1', '2'\] is among the tokens \['I', 'think'\]"
    with pytest.raises(ValueError, match=message):
        from_logprobs([{"1": -0.1}, {"I": -0.1, "think": -3.0}], classes=[1, 2])


def test_logprobs_of_no_rows_are_an_error():
    with pytest.raises(ValueError, match="rows is empty"):
        from_logprobs([], classes=[1, 2])


@pytest.mark.parametrize("logprob", [0.5, math.nan, math.inf])
def test_a_logprob_above_zero_is_an_error(logprob):
    with pytest.raises(ValueError, match=rf"Row 1: the log-probability of '2' is {logprob}; .* at most 0"):
        from_logprobs([{"1": -0.1}, {"2": logprob}], classes=[1, 2])


@pytest.mark.parametrize(
    "candidates",
    [{"1": None}, {"1": "x"}, [{"token": "1"}], [{"logprob": -1.0}], ["1"], "1", None, -1.0],
    ids=repr,
)
def test_candidates_that_are_none_are_an_error_with_the_row(candidates):
    with pytest.raises(ValueError, match="Row 1"):
        from_logprobs([{"1": -0.1}, candidates], classes=[1, 2])


@pytest.mark.parametrize("classes", [["a", "a "], [1, "1"], [1, 1]], ids=repr)
def test_classes_that_are_the_same_token_are_an_error(classes):
    with pytest.raises(ValueError, match=r"differ when written as tokens|more than once"):
        from_logprobs([{"a": -0.1, "1": -0.1}], classes=classes)


# what every maker refuses


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_values_that_are_not_finite_are_an_error(maker, value):
    with pytest.raises(ValueError, match=rf"has {value} at row 1, column 0; it must be finite"):
        maker([[0.5, 0.4], [value, 0.1]])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], r"must have shape \(n_rows, n_classes\).*got shape \(2,\)"),
        (3.0, r"got shape \(\)"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        (np.zeros((0, 3)), r"no rows; got shape \(0, 3\)"),
        ([[1.0, 2.0], [1.0]], "differ in length"),
        ([["a", "b"]], "must hold numbers"),
        (np.array([[1j, 0]]), "must hold numbers"),
    ],
    ids=["1-D", "0-D", "3-D", "no rows", "ragged", "text", "complex"],
)
@pytest.mark.parametrize("maker", [*MAKERS, levels], ids=lambda maker: maker.__name__)
def test_what_is_no_matrix_is_an_error(maker, values, message):
    with pytest.raises(ValueError, match=message):
        maker(values)


@pytest.mark.parametrize("maker", [softmax, min_shift, levels], ids=lambda maker: maker.__name__)
def test_one_column_is_an_error(maker):
    with pytest.raises(ValueError, match=r"at least 2 columns, one for each class; got shape \(3, 1\)"):
        maker([[1.0], [2.0], [3.0]])


@pytest.mark.parametrize("maker", [from_cumulative, from_cumulative_logits], ids=lambda maker: maker.__name__)
def test_no_column_is_an_error(maker):
    with pytest.raises(ValueError, match=r"at least 1 columns.* got shape \(3, 0\)"):
        maker(np.zeros((3, 0)))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.longdouble, ">f8", ">f4", object])
def test_probabilities_may_be_numbers_of_any_type(dtype):
    assert levels(np.array([[0, 1], [1, 0]], dtype)).tolist() == [[0, math.inf], [math.inf, 0]]


# the largest numbers


LARGEST = np.finfo(np.float64).max


@pytest.mark.parametrize("scale", [1e300, 1.7e308, LARGEST], ids=str)
def test_min_shift_is_the_same_at_every_scale(scale):
    rows = np.array([[-1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [-1.0, -0.5, 0.0], [1.0, 0.25, -1.0]])
    np.testing.assert_allclose(min_shift(rows * scale), min_shift(rows), rtol=1e-15)
    many = np.resize([1.0, -1.0], (1, 5000)) * scale
    np.testing.assert_allclose(min_shift(many), np.resize([1 / 2500, 0], (1, 5000)), rtol=1e-13)


def test_softmax_of_the_largest_logits_is_certain():
    with np.errstate(all="raise"):
        assert softmax([[LARGEST, -LARGEST, 0.0]]).tolist() == [[1, 0, 0]]
        assert softmax([[-LARGEST, -LARGEST]]).tolist() == [[0.5, 0.5]]


def test_cumulative_logits_of_the_largest_numbers_are_certain():
    assert from_cumulative_logits([[LARGEST, -LARGEST]]).tolist() == [[0, 1, 0]]
    assert from_cumulative_logits([[-LARGEST, -LARGEST]]).tolist() == [[1, 0, 0]]
    with pytest.raises(ValueError, match="logits must decrease"):
        from_cumulative_logits([[-LARGEST, LARGEST]])


# what is no probability


def as_objects(value):
    return np.array([[value, 0.5]], object)


NO_NUMBERS = {
    "arrow text": pa.table({"a": ["0.5"], "b": [0.5]}),
    "arrow time": pa.table({"a": pa.array([0], pa.timestamp("s")), "b": [1.0]}),
    "arrow duration": pa.table({"a": pa.array([0], pa.duration("s")), "b": [1.0]}),
    "arrow bytes": pa.table({"a": [b"0.5"], "b": [0.5]}),
    "arrow dictionary": pa.table({"a": pa.array(["0.5"]).dictionary_encode(), "b": [0.5]}),
    "polars text": pl.DataFrame({"a": ["0.5"], "b": [0.5]}),
    "polars date": pl.DataFrame({"a": [datetime.date(1970, 1, 2)], "b": [0.0]}),
    "polars duration": pl.DataFrame({"a": [datetime.timedelta(0)], "b": [1.0]}),
    "pandas text with NA": pd.DataFrame({"a": ["0.5", pd.NA], "b": [0.5, 0.5]}),
    "pandas bytes": pd.DataFrame({"a": [b"0.5"], "b": [0.5]}),
    "pandas time": pd.DataFrame({"a": [pd.Timestamp(0)], "b": [0.5]}),
    "bytes": as_objects(b"0.5"),
    "bytearray": as_objects(bytearray(b"0.5")),
    "numpy bytes": np.array([[b"0.5", b"0.5"]]),
    "array of text": as_objects(np.array("0.5")),
    "complex": as_objects(0.5 + 0j),
    "date": as_objects(datetime.date(1970, 1, 1)),
    "beyond floats": as_objects(10**400),
    "signalling NaN": as_objects(decimal.Decimal("sNaN")),
}


@pytest.mark.parametrize("values", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_what_is_no_number_is_refused(values):
    with pytest.raises(ValueError, match=r"proba must hold numbers"):
        levels(values)


NUMBERS = {
    "arrow decimal": pa.table({"a": [decimal.Decimal("0.5")], "b": [0.5]}),
    "arrow whole": pa.table({"a": [1], "b": [False]}),
    "fraction": as_objects(Fraction(1, 2)),
    "truth value": np.array([[np.bool_(True), 0]], object),
    "numpy float": as_objects(np.float32(0.5)),
}


@pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS)
def test_numbers_of_any_type_are_taken(values):
    assert levels(values).tolist() in ([[math.inf, 0.5]], [[math.inf, 0]])


@pytest.mark.parametrize(
    "values",
    [
        pa.table({"a": [0.5, None], "b": [0.5, 0.5]}),
        pa.table({"b": [0.5, 0.5], "a": pa.array([None, None])}),
        pd.DataFrame({"a": [0.5, pd.NA], "b": [0.5, 0.5]}),
        pd.DataFrame({"a": [0.5, pd.NA], "b": [0.5, 0.5]}, dtype="Float64"),
        pl.DataFrame({"a": [0.5, None], "b": [0.5, 0.5]}),
    ],
    ids=lambda frame: type(frame).__module__,
)
def test_a_missing_number_is_nan(values):
    with pytest.raises(ValueError, match=r"proba has a NaN value at row (1, column 0|0, column 1)"):
        levels(values)


@pytest.mark.parametrize(
    ("rows", "classes", "message"),
    [
        (None, [0, 1], "rows must be a sequence"),
        ("abc", [0, 1], "rows must be a sequence"),
        ({"0": -1.0}, [0, 1], "rows must be a sequence"),
        ([None], [0, 1], "Row 0: the candidates must map tokens"),
        ([{"0": -1.0}], None, "classes must be a sequence of labels"),
        ([{"0": -1.0}], "01", "classes must be a sequence of labels"),
        ([{"0": -1.0}], [], "classes is empty"),
    ],
    ids=repr,
)
def test_what_is_no_log_probabilities_is_an_error(rows, classes, message):
    with pytest.raises(ValueError, match=message):
        from_logprobs(rows, classes)


def test_log_probabilities_may_come_one_by_one():
    assert from_logprobs(iter([{"0": -1.0, "1": -1.0}]), range(2)).tolist() == [[0.5, 0.5]]
