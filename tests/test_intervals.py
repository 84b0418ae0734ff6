"""IntervalSet: what a prediction is."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ordinalrisk import IntervalSet

LOWER, UPPER = [0, 1, 2, 0, 3], [0, 2, 2, 3, 3]
CLASSES = {
    "ints": [0, 1, 2, 3],
    "years": [1990, 2000, 2010, 2020],
    "floats": [0.5, 1.0, 2.5, 10.0],
    "strings": ["none", "mild", "moderate", "severe"],
    "falling": [3, 2, 1, 0],
    "mixed": [0, "low", 2.5, "high"],
    "with None": [0, 1, 2, None],
}


@pytest.fixture(params=CLASSES.values(), ids=CLASSES)
def classes(request):
    return request.param


@pytest.fixture
def sets(classes):
    return IntervalSet(LOWER, UPPER, classes)


def rows(sets):
    """Each row as the list of labels it holds."""
    labels = sets.classes.tolist()
    return [
        labels[low : up + 1]
        for low, up in zip(sets.lower_index.tolist(), sets.upper_index.tolist(), strict=True)
    ]


def many(n, n_classes=4, seed=0):
    ends = np.sort(np.random.default_rng(seed).integers(0, n_classes, (n, 2)), axis=1)
    return IntervalSet(ends[:, 0], ends[:, 1], range(n_classes))


# what each row holds


def test_lower_and_upper_are_labels(sets, classes):
    assert sets.lower.tolist() == [classes[k] for k in LOWER]
    assert sets.upper.tolist() == [classes[k] for k in UPPER]


def test_indices_are_positions(sets):
    assert sets.lower_index.tolist() == LOWER
    assert sets.upper_index.tolist() == UPPER
    assert sets.lower_index.dtype == sets.upper_index.dtype == np.int32


def test_size_counts_labels(sets):
    assert sets.size.tolist() == [1, 2, 1, 4, 1] == [len(row) for row in rows(sets)]


def test_centroid_is_the_middle_position(sets):
    assert sets.centroid.tolist() == [0, 1.5, 2, 1.5, 3]
    assert sets.centroid.dtype == np.float64


def test_mask_says_which_labels_each_row_holds(sets, classes):
    mask = sets.mask()
    assert mask.shape == (5, 4)
    assert mask.dtype == bool
    assert mask.sum(axis=1).tolist() == sets.size.tolist()
    assert [[k for k, inside in zip(classes, row, strict=True) if inside] for row in mask] == rows(sets)


@pytest.mark.parametrize("k", range(4))
def test_contains_agrees_with_the_mask(sets, classes, k):
    labels = np.empty(5, object)
    labels[:] = [classes[k]] * 5
    inside = sets.contains(labels)
    assert inside.dtype == bool
    assert inside.tolist() == sets.mask()[:, k].tolist()


@pytest.mark.parametrize(
    "given",
    [
        np.array,
        list,
        tuple,
        pd.Series,
        pl.Series,
        lambda y: np.array(y, np.uint8),
        lambda y: np.array(y, float),
        lambda y: pd.Series(y, dtype="Int64"),
    ],
    ids=["numpy", "list", "tuple", "pandas", "polars", "uint8", "float", "pandas nullable"],
)
def test_contains_takes_labels_of_many_kinds(given):
    sets = IntervalSet(LOWER, UPPER, range(4))
    assert sets.contains(given([0, 0, 2, 3, 2])).tolist() == [True, False, True, True, False]


def test_contains_of_a_strange_label_is_an_error():
    with pytest.raises(
        ValueError, match=r"y\[1\] is 'fatal', which is not one of the classes \['mild', 'severe'\]"
    ):
        IntervalSet([0, 0], [1, 1], ["mild", "severe"]).contains(["mild", "fatal"])


@pytest.mark.parametrize("labels", [[0], [0] * 6, 0, [[0]] * 5], ids=["short", "long", "0-D", "2-D"])
def test_contains_of_another_number_of_labels_is_an_error(labels):
    with pytest.raises(ValueError, match=r"5 rows.*got shape"):
        IntervalSet(LOWER, UPPER, range(4)).contains(labels)


# frames


@pytest.mark.parametrize("kind", ["ints", "years", "floats", "strings", "falling"])
def test_to_pandas_has_labels_and_sizes(kind):
    sets = IntervalSet(LOWER, UPPER, CLASSES[kind])
    frame = sets.to_pandas()
    assert list(frame.columns) == ["lower", "upper", "size"]
    assert frame.index.equals(pd.RangeIndex(5))
    assert frame["lower"].tolist() == sets.lower.tolist()
    assert frame["upper"].tolist() == sets.upper.tolist()
    assert frame["size"].tolist() == sets.size.tolist()


def test_to_pandas_takes_an_index():
    index = pd.Index(list("abcde"), name="patient")
    frame = IntervalSet(LOWER, UPPER, range(4)).to_pandas(index=index)
    assert frame.index.equals(index)
    assert frame.loc["d"].tolist() == [0, 3, 4]


@pytest.mark.parametrize("kind", ["ints", "years", "floats", "strings", "falling"])
def test_to_polars_has_labels_and_sizes(kind):
    sets = IntervalSet(LOWER, UPPER, CLASSES[kind])
    frame = sets.to_polars()
    assert frame.columns == ["lower", "upper", "size"]
    assert frame.rows() == list(
        zip(sets.lower.tolist(), sets.upper.tolist(), sets.size.tolist(), strict=True)
    )


def test_frames_of_no_rows():
    empty = IntervalSet([], [], ["a", "b"])
    assert empty.to_pandas().shape == (0, 3)
    assert empty.to_polars().shape == (0, 3)


# rows


SELECTIONS = {
    "slice": slice(1, 4),
    "step": slice(None, None, 2),
    "reverse": slice(None, None, -1),
    "nothing": slice(3, 3),
    "list": [4, 0, 0],
    "negative list": [-1, -5],
    "empty list": [],
    "array": np.array([2, 1]),
    "mask": np.array([True, False, False, True, True]),
    "mask list": [False, True, False, False, True],
    "empty mask": np.zeros(5, bool),
}


@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)
def test_a_selection_of_rows_is_an_interval_set(sets, selection):
    chosen = sets[selection]
    expected = np.arange(5)[
        np.array(selection, int) if isinstance(selection, list) and not selection else selection
    ]
    assert isinstance(chosen, IntervalSet)
    assert chosen.classes.tolist() == sets.classes.tolist()
    assert rows(chosen) == [rows(sets)[i] for i in expected]
    assert len(chosen) == len(expected)


@pytest.mark.parametrize("i", [0, 3, -1, np.int64(3), np.uint8(2)], ids=repr)
def test_one_row_is_an_interval(sets, classes, i):
    interval = sets[i]
    assert type(interval).__name__ == "Interval"
    assert interval == (classes[LOWER[i]], classes[UPPER[i]])
    assert (interval.lower, interval.upper) == tuple(interval)


@pytest.mark.parametrize("i", [5, -6, [0, 9]], ids=str)
def test_a_row_that_is_not_there_is_an_index_error(i):
    with pytest.raises(IndexError, match="There are 5 rows, none at position"):
        IntervalSet(LOWER, UPPER, range(4))[i]


def test_no_rows_have_no_last_one():
    none = IntervalSet(LOWER, UPPER, range(4))[:0]
    with pytest.raises(IndexError, match="There are 0 rows, none at position -1") as raised:
        none[-1]
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(
    "choice",
    [None, "a", b"a", 1.5, True, [[0, 1]], [0.5], ["a"], [True], np.ones(6, bool), np.array(None), ...],
    ids=repr,
)
def test_what_chooses_no_rows_is_an_error(choice):
    with pytest.raises(
        ValueError, match="Choose rows by a position, a slice, an array of positions or a mask"
    ):
        many(5)[choice]


@pytest.mark.parametrize(
    "wrong",
    [
        [0.5],
        [np.nan],
        ["0"],
        [b"0"],
        [0 + 0j],
        [None],
        [2**40],
        np.ma.array([0], mask=True),
        pd.Series([pd.NA]),
    ],
    ids=repr,
)
def test_ends_that_are_no_positions_are_an_error(wrong):
    with pytest.raises(ValueError, match="lower_index must hold label positions, whole numbers"):
        IntervalSet(wrong, [0], range(3))


def test_iteration_gives_the_rows_in_order(sets):
    assert list(sets) == [sets[i] for i in range(len(sets))]
    assert {type(interval) for interval in sets} == {type(sets[0])}


def test_labels_of_single_rows_are_plain_python_values():
    for interval in (many(3)[0], next(iter(many(3)))):
        assert {type(label) for label in interval} == {int}
    assert type(IntervalSet([0], [1], ["a", "b"])[0].lower) is str


def test_length_is_the_number_of_rows(sets):
    assert len(sets) == 5


# equality


def test_equal_sets_are_equal(sets, classes):
    assert sets == IntervalSet(np.array(LOWER), np.array(UPPER, np.uint8), np.array(classes, object))
    assert sets == copy.deepcopy(sets)
    assert sets == pickle.loads(pickle.dumps(sets))
    assert sets == sets[:]


@pytest.mark.parametrize(
    "other",
    [
        IntervalSet([0, 1, 2, 0, 2], UPPER, range(4)),
        IntervalSet(LOWER, [0, 2, 3, 3, 3], range(4)),
        IntervalSet(LOWER, UPPER, range(5)),
        IntervalSet(LOWER, UPPER, [0, 1, 3, 2]),
        IntervalSet(LOWER, UPPER, ["0", "1", "2", "3"]),
        IntervalSet(LOWER[:4], UPPER[:4], range(4)),
        IntervalSet([], [], range(4)),
        list(zip(LOWER, UPPER, strict=True)),
        None,
        0,
    ],
    ids=repr,
)
def test_different_sets_are_not_equal(other):
    sets = IntervalSet(LOWER, UPPER, range(4))
    assert sets != other
    assert (sets == other) is False


def test_equality_is_one_truth_value():
    assert (many(3) == many(3)) is True
    assert (many(3) == many(4)) is False


def test_sets_are_not_hashable():
    with pytest.raises(TypeError, match="unhashable"):
        hash(many(3))


# text


def test_repr_of_no_rows():
    assert repr(IntervalSet([], [], ["a", "b", "c"])) == "IntervalSet of 0 rows, 3 classes"


def test_repr_of_few_rows_shows_them_all():
    assert repr(IntervalSet(LOWER, UPPER, CLASSES["strings"])).splitlines() == [
        "IntervalSet of 5 rows, 4 classes, mean size 1.8",
        "  0  none",
        "  1  mild..moderate",
        "  2  moderate",
        "  3  none..severe",
        "  4  severe",
    ]


@pytest.mark.parametrize("n", [1, 2, 8])
def test_repr_leaves_no_row_out_where_there_are_few(n):
    assert len(repr(many(n)).splitlines()) == n + 1
    assert "more" not in repr(many(n))


@pytest.mark.parametrize("n", [9, 10, 100_000])
def test_repr_of_many_rows_says_how_many_more(n):
    lines = repr(many(n)).splitlines()
    assert lines[0].startswith(f"IntervalSet of {n} rows, 4 classes, mean size ")
    shown = len(lines) - 2
    assert shown == 8
    assert lines[-1].strip() == f"... {n - shown} more"


# no rows


def test_a_set_of_no_rows_has_everything():
    empty = IntervalSet([], [], range(3))
    assert len(empty) == 0
    assert list(empty) == []
    assert empty.mask().shape == (0, 3)
    for values in (empty.lower, empty.upper, empty.size, empty.centroid):
        assert values.shape == (0,)


@pytest.mark.parametrize("dtype", [int, float, np.uint8, bool, str, object])
def test_a_set_of_no_rows_contains_no_labels(dtype):
    assert IntervalSet([], [], range(3)).contains(np.array([], dtype)).tolist() == []


# what is no interval


@pytest.mark.parametrize(
    ("lower", "upper"),
    [([0, 2], [0, 1]), ([0, -1], [0, 1]), ([0, 0], [0, 3]), ([0, 3], [0, 3]), ([0, -2], [2, -1])],
    ids=["crossed", "below", "above", "both above", "both below"],
)
def test_an_impossible_interval_is_named(lower, upper):
    with pytest.raises(ValueError, match=rf"Row 1 is \[{lower[1]}, {upper[1]}\], .* labels 0 \.\. 2"):
        IntervalSet(lower, upper, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("lower", "upper", "shapes"),
    [
        ([0, 0], [1], r"\(2,\) and \(1,\)"),
        ([[0]], [[1]], r"\(1, 1\) and \(1, 1\)"),
        (0, 1, r"\(\) and \(\)"),
        ([], [1], r"\(0,\) and \(1,\)"),
    ],
    ids=["lengths", "2-D", "0-D", "empty"],
)
def test_ends_of_different_shapes_are_an_error_with_both(lower, upper, shapes):
    with pytest.raises(ValueError, match=shapes):
        IntervalSet(lower, upper, range(3))


@pytest.mark.parametrize(
    "end",
    [0.5, np.nan, np.inf, 2**31, 2**32, -(2**32), "a", None],
    ids=repr,
)
def test_an_end_that_is_no_position_is_an_error(end):
    for ends in ([0, end], np.array([0, end])):
        with pytest.raises(ValueError):
            IntervalSet(ends, [2, 2], range(3))
        with pytest.raises(ValueError):
            IntervalSet([0, 0], ends, range(3))


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["a", "a"], "distinct; 'a'"),
        ("ab", "sequence of labels"),
        (3, "sequence of labels"),
        (None, "sequence"),
    ],
    ids=repr,
)
def test_classes_that_are_none_are_an_error(classes, message):
    with pytest.raises(ValueError, match=message):
        IntervalSet([0], [0], classes)


def test_intervals_are_read_only():
    ends = np.array([0, 1], np.int32)
    sets = IntervalSet(ends, ends, classes=[0, 1])
    with pytest.raises(ValueError, match="read-only"):
        sets.lower_index[0] = 1
    assert ends.flags.writeable
