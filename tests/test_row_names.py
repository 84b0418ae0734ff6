"""Names of groups and clusters can be arrays of every kind, and are distinguished by value."""

import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from unchecked import FEW, UNCHECKED

from ordinalrisk import RiskController

pytestmark = [
    FEW,
    pytest.mark.filterwarnings("ignore:Most groups have one or two rows:ordinalrisk.CalibrationWarning"),
    UNCHECKED,
]


STRINGS = ["b", "a", "b"]
NUMBERS = [20, 10, 20]
DAY = datetime.date(2020, 1, 1)
PROBA = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.15, 0.25, 0.6], [0.3, 0.4, 0.3], [0.4, 0.35, 0.25]])
LABELS = np.array([1, 2, 0, 2, 2])


def calibrated(n_rows=3, **names):
    """Every row has a level of its own, so a threshold shows which rows it comes from."""
    return RiskController(alpha=0.6).calibrate(PROBA[:n_rows], LABELS[:n_rows], **names)


def threshold_of(*rows):
    """That of these rows alone."""
    return RiskController(alpha=0.6).calibrate(PROBA[[*rows]], LABELS[[*rows]]).threshold_


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
def test_names_are_in_the_order_they_are_met(values):
    found = calibrated(groups=values).threshold_
    assert [*found.items()] == [("b", threshold_of(0, 2)), ("a", threshold_of(1))]
    assert all(type(name) is str for name in found)


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
    found = calibrated(groups=values).threshold_
    assert [*found.items()] == [(20, threshold_of(0, 2)), (10, threshold_of(1))]


def test_numbers_among_strings_stay_numbers():
    found = calibrated(4, groups=[1, "1", 1.5, "1"]).threshold_
    assert [*found.items()] == [(1, threshold_of(0)), ("1", threshold_of(1, 3)), (1.5, threshold_of(2))]


def test_pairs_are_names():
    pairs = [("a", 1), ("a", 2), ("a", 1)]
    assert [*calibrated(groups=pairs).threshold_] == pairs[:2]
    assert calibrated(clusters=pairs).guarantee().n_rows == 2


def test_later_batches_go_on_counting():
    """Partitions of a dask collection are batches."""
    dask = pytest.importorskip("dask.array")
    groups = np.array([*STRINGS, "c", "a"], object)
    cut = [dask.from_array(each, chunks=(3, *each.shape[1:])) for each in (PROBA, LABELS, groups)]
    found = RiskController(alpha=0.6).calibrate(*cut[:2], groups=cut[2]).threshold_
    assert [*found.items()] == [("b", threshold_of(0, 2)), ("a", threshold_of(1, 4)), ("c", threshold_of(3))]


def test_unknown_names_are_found_but_not_learned():
    controller = calibrated(groups=STRINGS)
    groups = ["a", "z", "b", "y", "z"]
    with pytest.raises(ValueError, match=r"groups\[1\] is 'z', a group without calibration rows"):
        controller.predict_set(PROBA, groups=groups)
    sets = controller.predict_set(PROBA, groups=groups, unseen_groups="full")
    assert sets.size[[1, 3, 4]].tolist() == [3, 3, 3]
    assert sets[[0, 2]] == controller.predict_set(PROBA[[0, 2]], groups=["a", "b"])
    assert [*controller.threshold_] == ["b", "a"]


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
def test_a_missing_name_is_located(values):
    known = calibrated(groups=STRINGS)
    for name, call in {
        "clusters": lambda: calibrated(clusters=values),
        "groups": lambda: known.predict_set(PROBA[:3], groups=values, unseen_groups="full"),
    }.items():
        with pytest.raises(ValueError, match=rf"{name}\[2\] is missing; .*fill it in, or leave the row out"):
            call()


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
        calibrated(groups=values)
    assert str(raised.value).endswith(f"got shape {shape}.")


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, {1}], ids=repr)
def test_what_can_not_be_looked_up_is_not_a_name(value):
    with pytest.raises(ValueError, match=r"groups\[1\] is .* which can't be a name"):
        calibrated(groups=["a", value, "b"])
