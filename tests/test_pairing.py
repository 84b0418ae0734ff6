"""Scores go with classes by name: never by the order of a file, the alphabet, or chance."""

import pyarrow as pa
import pytest
from file_formats import write_table
from unchecked import UNCHECKED

import ordinalrisk as orisk

pytestmark = UNCHECKED

SCALE = ["low", "mid", "high"]


@pytest.fixture
def source(tmp_path):
    """``source(columns, labels)`` is a file with these score columns, and these labels in column ``y``."""

    def make(names, labels, ordered=None):
        kind = pa.array(labels)
        if ordered is not None:
            index = pa.array([ordered.index(label) for label in labels], pa.int8())
            kind = pa.DictionaryArray.from_arrays(index, pa.array(ordered), ordered=True)
        path = tmp_path / "rows.parquet"
        write_table(pa.table({name: [1 / len(names)] * len(labels) for name in names} | {"y": kind}), path)
        return path

    return make


def chosen(path, scores=None, classes=None):
    """The columns of the scores and the classes, as a calibration takes them."""
    found = orisk.jobs.calibrate(
        orisk.RiskController(alpha=0.9), path, scores=scores, label="y", classes=classes, note=[].append
    )
    return list(found.columns_.scores), found.classes_.tolist()


@pytest.mark.parametrize("scores", [None, "p*"])
@pytest.mark.parametrize("names", [["p_High", "p_Low", "p_Mid"], ["p_mid", "p_high", "p_low"]])
def test_each_class_gets_the_column_of_its_name(source, names, scores):
    by_name = {name.lower().removeprefix("p_"): name for name in names}
    found, labels = chosen(source(names, SCALE), scores, SCALE)
    assert (found, labels) == ([by_name[label] for label in SCALE], SCALE)


@pytest.mark.parametrize("names", [["high_p", "low_p", "mid_p"], ["pa", "pb", "pc"]])
def test_columns_that_no_name_ties_to_a_class_must_be_listed(source, names):
    with pytest.raises(ValueError, match=r"can't tell which of the columns .* list them with `scores`"):
        chosen(source(names, SCALE), "*p*", SCALE)
    assert chosen(source(names, SCALE), ",".join(names), SCALE) == (names, SCALE)


def test_brackets_around_a_name_do_not_matter(source):
    found, _ = chosen(source(["p(high)", "p(low)", "p(mid)"], SCALE), "*p*", SCALE)
    assert found == [f"p({name})" for name in SCALE]


def test_numbered_columns_stand_for_named_classes_in_their_order(source):
    found, _ = chosen(source(["p10", "p2", "p1"], SCALE), None, SCALE)
    assert found == ["p1", "p2", "p10"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["p_1", "p_-1", "p_0"], [-1, 0, 1]),
        (["p-2", "p-0", "p-1"], [0, 1, 2]),
        (["p_01", "p_02", "p_03"], [1, 2, 3]),
    ],
)
def test_numbers_in_names_are_the_classes(source, names, expected):
    found, labels = chosen(source(names, [expected[0], expected[-1]]), "p*")
    assert labels == expected
    assert [
        int(name.removeprefix("p").lstrip("_") if "_" in name else name[2:]) for name in found
    ] == expected


def test_a_listed_order_is_meant(source):
    assert chosen(source(["a", "b", "c"], SCALE), "c,a,b", SCALE) == (["c", "a", "b"], SCALE)


@pytest.mark.parametrize(
    ("listed", "classes"), [("p_high,p_mid,p_low", SCALE), ("p_low,p_high,p_mid", SCALE)]
)
def test_a_listed_order_that_the_names_contradict_is_refused(source, listed, classes):
    with pytest.raises(ValueError, match=r"`scores` lists .*, but the classes are low, mid, high"):
        chosen(source(["p_low", "p_mid", "p_high"], SCALE), listed, classes)


def test_a_label_that_numbered_columns_do_not_have_is_named(source):
    with pytest.raises(
        ValueError,
        match=r"rows\.parquet: row 3, column 'y': none of .* matches the label 0; .* `classes`",
    ):
        chosen(source([f"p{k}" for k in range(1, 6)], [1, 4, 0, 2]))


def test_a_label_is_no_score(source):
    table = source(["p0", "p1"], [0, 1])
    assert chosen(table, "*")[0] == ["p0", "p1"]
    with pytest.raises(ValueError, match="column 'y' can't be a score and the label"):
        chosen(table, "p0,p1,y")


def test_a_family_of_numbers_and_words_is_not_obvious(source):
    with pytest.raises(ValueError, match="can't tell which columns hold the scores"):
        chosen(source(["logit_max", "logit_0", "logit_1"], [0, 1]))


def test_an_order_that_the_file_has_is_not_contradicted(source):
    table = source(["p_low", "p_mid", "p_high"], SCALE, ordered=SCALE)
    assert chosen(table) == (["p_low", "p_mid", "p_high"], SCALE)
    with pytest.raises(ValueError, match="has the order low, mid, high, `classes` high, mid, low"):
        chosen(table, classes=SCALE[::-1])


def test_an_order_that_the_file_has_orders_the_scores(source):
    assert chosen(source(["p_mid", "p_high", "p_low"], SCALE, ordered=SCALE))[0] == [
        "p_low",
        "p_mid",
        "p_high",
    ]


def test_the_alphabet_is_no_scale(source):
    with pytest.raises(ValueError, match="alphabetical order"):
        chosen(source(["p_high", "p_low", "p_mid"], SCALE))
    with pytest.raises(ValueError, match="can't tell which of the columns"):
        chosen(source(["p_high", "p_low", "p_mid"], [0, 1, 2]), None, [0, 1, 2])
    assert chosen(source(["p_low", "p_mid", "p_high"], [0, 1, 2]), None, [0, 1, 2])[1] == [0, 1, 2]
