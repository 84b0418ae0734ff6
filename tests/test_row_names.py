"""Names of groups and clusters come as arrays of every kind, and are told apart by value."""

import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from ordinalrisk.inputs.matrix import RowError
from ordinalrisk.inputs.row_names import RowNames

STRINGS = ["b", "a", "b"]
NUMBERS = [20, 10, 20]
DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    "values",
    [
        STRINGS,
        tuple(STRINGS),
        [np.str_(name) for name in STRINGS],
        np.array(STRINGS),
        np.array(STRINGS, object),
        pd.Series(STRINGS, index=[5, 5, 7]),
        pd.Series(STRINGS, dtype="category"),
        pd.Series(STRINGS, dtype="string"),
        pl.Series(STRINGS),
        pl.Series(STRINGS, dtype=pl.Categorical),
        pa.array(STRINGS),
        pa.chunked_array([STRINGS[:1], STRINGS[1:]]),
    ],
    ids=lambda values: type(values).__module__ + "." + type(values).__name__,
)
def test_names_are_numbered_as_they_are_met(values):
    names = RowNames("groups")
    assert names.numbered(values, 3).tolist() == [0, 1, 0]
    assert names.known == ("b", "a")
    assert all(type(name) is str for name in names.known)


@pytest.mark.parametrize(
    "values",
    [
        NUMBERS,
        np.array(NUMBERS),
        np.array(NUMBERS, np.uint8),
        np.array(NUMBERS, float),
        pd.Series(NUMBERS),
        pd.Series(NUMBERS, dtype="Int64"),
        pl.Series(NUMBERS),
        pa.array(NUMBERS),
        torch.tensor(NUMBERS),
    ],
    ids=lambda values: type(values).__module__ + "." + type(values).__name__,
)
def test_numbers_are_names_too(values):
    names = RowNames("groups")
    assert names.numbered(values, 3).tolist() == [0, 1, 0]
    assert names.known == (20, 10)


def test_numbers_among_strings_stay_numbers():
    names = RowNames("groups")
    assert names.numbered([1, "1", 1.5, "1"], 4).tolist() == [0, 1, 2, 1]
    assert names.known == (1, "1", 1.5)


def test_pairs_are_names():
    assert RowNames("clusters").numbered([("a", 1), ("a", 2), ("a", 1)], 3).tolist() == [0, 1, 0]


def test_later_batches_go_on_counting():
    names = RowNames("groups")
    names.numbered(STRINGS, 3)
    assert names.numbered(["c", "a"], 2).tolist() == [2, 1]
    assert names.known == ("b", "a", "c")


def test_unknown_names_are_found_but_not_learned():
    names = RowNames("groups", ["b", "a"])
    numbers, unseen = names.found(["a", "z", "b", "y", "z"], 5)
    assert numbers.tolist() == [1, -1, 0, -1, -1]
    assert unseen == ["z", "y"]
    assert names.known == ("b", "a")
    assert names.found(["a"], 1)[1] == []


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", None],
        ["a", "b", math.nan],
        np.array([1.0, 2.0, np.nan]),
        np.array(["2020-01-01", "2020-01-01", "NaT"], "datetime64[D]"),
        pd.Series(["a", "b", None]),
        pd.Series(["a", "b", None], dtype="string"),
        pd.Series(["a", "b", None], dtype="category"),
        pd.Series([1, 2, None], dtype="Int64"),
        pd.Series([DAY, DAY, pd.NaT]),
        pl.Series(["a", "b", None]),
        pl.Series([1, 2, None]),
        pa.array(["a", "b", None]),
    ],
    ids=lambda values: f"{type(values).__module__}.{type(values).__name__}",
)
@pytest.mark.parametrize("method", ["numbered", "found"])
def test_a_missing_name_is_located(values, method):
    with pytest.raises(RowError, match=r"clusters\[2\] is missing; .*fill it in, or leave the row out"):
        getattr(RowNames("clusters"), method)(values, 3)


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        (["a"], "(1,)"),
        ([], "(0,)"),
        (7, "()"),
        (np.ones((3, 2)), "(3, 2)"),
        (["a"] * 4, "(4,)"),
    ],
    ids=str,
)
def test_another_number_of_names_than_rows_is_an_error(values, shape):
    with pytest.raises(
        ValueError, match="groups must have one value for each of the 3 rows of proba"
    ) as raised:
        RowNames("groups").numbered(values, 3)
    assert str(raised.value).endswith(f"got shape {shape}.")


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, {1}], ids=repr)
def test_what_can_not_be_looked_up_is_no_name(value):
    with pytest.raises(RowError, match=r"groups\[1\] is .* which is no name"):
        RowNames("groups").numbered(["a", value, "b"], 3)
