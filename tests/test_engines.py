"""Readers, writers, columns and batches: the same rows whatever the format and however they are cut."""

import datetime as dt
import io
import json
import os
import re
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from file_formats import NAMES, encoded, read_rows, score_table, write_table
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv
from pyarrow import parquet
from sizes import read_few_rows_at_once, write_few_rows_at_once

import ordinalrisk as orisk
from ordinalrisk import metrics
from ordinalrisk.execution.fold import Serial, read_ahead
from ordinalrisk.files import json_lines, set_writer, writers
from ordinalrisk.files.find_columns import AskedColumns, ColumnFinder
from ordinalrisk.files.formats import FileError, format_by_first_bytes, format_by_name
from ordinalrisk.files.json_lines import LONGEST_LINE, WholeLines
from ordinalrisk.files.label_names import position_of_label
from ordinalrisk.files.opening import opened
from ordinalrisk.files.scored_rows import FileRows
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.probability_matrix import RowError
from ordinalrisk.saving import calibration_file

FORMATS = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
K, N_ROWS = 4, 400
SCORES = tuple(f"p{k}" for k in range(K))
WHERE = ScoreColumns(SCORES, "y")


@pytest.fixture(scope="module")
def rows(draw):
    return draw(N_ROWS, K, seed=3)


def read_in_batches(path, where=WHERE, classes=range(K), progress=lambda n_rows: None, **options):
    batches = []
    Serial(2, progress).map([FileRows(str(path), where, classes, **options)], batches.append)
    return batches


NAMED = {"scores": SCORES, "label": "y", "classes": range(K)}


def predict(controller, path, target, keep=(), scores=SCORES, **options):
    return orisk.jobs.predict(controller, path, target, scores=scores, keep=keep, **options)


# the same rows


@FORMATS
@pytest.mark.parametrize(
    ("rows_at_once", "bytes_at_once"), [(131_072, 1 << 23), (7, 400), (1, 5000), (64, 20_000)]
)
def test_rows_are_the_same_however_they_are_cut(name, rows_at_once, bytes_at_once, here, monkeypatch, rows):
    proba, labels = rows
    write_table(score_table(proba, labels, id=[f"{i:03d}" for i in range(N_ROWS)]), name)
    read_few_rows_at_once(monkeypatch, rows_at_once, bytes_at_once)
    done = []
    batches = read_in_batches(name, keep=["id"], progress=done.append)
    assert np.array_equal(np.concatenate([batch.proba for batch in batches]), proba)
    assert np.array_equal(np.concatenate([batch.labels for batch in batches]), labels)
    assert [id_ for batch in batches for id_ in batch.columns["id"].to_pylist()][7] == "007"
    assert max(len(batch.proba) for batch in batches) <= rows_at_once
    assert done == np.cumsum([len(batch.proba) for batch in batches]).tolist()


@FORMATS
@pytest.mark.parametrize("loss", ["coverage", orisk.DivergenceLoss(0.5)], ids=repr)
@pytest.mark.parametrize("growth", ["frontier", "paper"])
def test_a_calibration_does_not_depend_on_the_cut(name, loss, growth, here, monkeypatch, rows):
    write_table(score_table(*rows), name)
    expected = orisk.RiskController(loss, 0.1, growth).calibrate(*rows)
    texts = set()
    for sizes in ((131_072, 1 << 23), (7, 400)):
        read_few_rows_at_once(monkeypatch, *sizes)
        by_file = orisk.jobs.calibrate(orisk.RiskController(loss, 0.1, growth, range(K)), name, **NAMED)
        assert by_file.threshold_ == expected.threshold_
        assert by_file.data_blake3_ == expected.data_blake3_
        assert by_file.columns_ == WHERE
        texts.add(calibration_file.text_of(by_file.spec, by_file.calibration_))
    assert len(texts) == 1


@FORMATS
def test_predictions_and_counts_do_not_depend_on_the_cut(name, here, monkeypatch, rows):
    proba, labels = rows
    write_table(score_table(proba, labels), name)
    controller = orisk.RiskController(alpha=0.1).calibrate(proba, labels)
    sets = controller.predict_set(proba)
    for sizes in ((131_072, 1 << 23), (7, 400)):
        read_few_rows_at_once(monkeypatch, *sizes)
        found = orisk.jobs.evaluate(controller, name, scores=SCORES, label="y")
        done = predict(controller, name, here / f"out.{name}")
        assert "rows of the calibration itself" in found.verdict.text
        assert tuple(found.numbers["risk"]) == metrics.risk(labels, sets, confidence=0.95)
        assert done == (N_ROWS, sets.size.sum(), (sets.size == 1).sum(), 0)
        found = read_rows((here / f"out.{name}").read_bytes(), name)
        assert [tuple(map(int, row.values())) for row in found] == list(
            zip(sets.lower.tolist(), sets.upper.tolist(), sets.size.tolist(), strict=True)
        )


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_numbers_keep_their_type(kind, name, here, rows):
    """So that a file gives the threshold and the fingerprint of the array that it was written from."""
    proba = rows[0].astype(kind)
    write_table(score_table(proba, rows[1]), name)
    batches = read_in_batches(name)
    assert {batch.proba.dtype for batch in batches} == {np.dtype(kind)}
    assert np.array_equal(np.concatenate([batch.proba for batch in batches]), proba)


@pytest.mark.parametrize(
    "kinds",
    [
        [pa.decimal128(3, 2)] * 3,
        [pa.float32(), pa.float64(), pa.float32()],
        [pa.float64(), pa.int8(), pa.uint64()],
    ],
    ids=["decimals", "floats", "whole numbers"],
)
def test_other_numbers_become_float64(kinds, here):
    values = [[Decimal("0.25"), Decimal("0.75")], [Decimal(0)] * 2, [Decimal(0)] * 2]
    if kinds[1] == pa.int8():
        values[0] = [Decimal(1)] * 2
    arrays = [pa.array(v, pa.decimal128(3, 2)).cast(kind) for v, kind in zip(values, kinds, strict=True)]
    write_table(pa.table(arrays, names=SCORES[:3]), "rows.parquet")
    [batch] = read_in_batches("rows.parquet", ScoreColumns(SCORES[:3], ""), None)
    assert batch.proba.dtype == np.float64
    assert batch.proba.tolist() == np.array(values, float).T.tolist()


def test_rows_are_divided_by_their_sums_if_asked(here):
    counts = np.array([[1.0, 3.0], [2.0, 2.0], [0.0, 5.0]])
    write_table(score_table(counts, [0, 1, 1]), "rows.csv")
    [batch] = read_in_batches("rows.csv", ScoreColumns(("p0", "p1"), "y", rescale=True), [0, 1])
    assert batch.proba.tolist() == [[0.25, 0.75], [0.5, 0.5], [0, 1]]


# labels


LABELS = {
    "whole numbers": (pa.array([0, 2, 1]), [0, 1, 2]),
    "few bytes": (pa.array([0, 2, 1], pa.uint8()), [0, 1, 2]),
    "from 1": (pa.array([1, 3, 2]), [1, 2, 3]),
    "floats": (pa.array([0.0, 2.0, 1.0]), [0, 1, 2]),
    "decimals": (pa.array([Decimal("0.0"), Decimal("2.0"), Decimal("1.0")]), [0, 1, 2]),
    "digits": (pa.array(["0", "2", "1"]), [0, 1, 2]),
    "digits with a point": (pa.array(["0.0", "2.0", "1.0"]), [0, 1, 2]),
    "halves": (pa.array([0.5, 1.5, 1.0]), ["0.5", "1", "1.5"]),
    "text": (pa.array(["a", "c", "b"]), ["a", "b", "c"]),
    "large text": (pa.array(["a", "c", "b"], pa.large_string()), ["a", "b", "c"]),
    "text in views": (pa.array(["a", "c", "b"], pa.string_view()), ["a", "b", "c"]),
    "dictionary": (pa.array(["a", "c", "b"]).dictionary_encode(), ["a", "b", "c"]),
    "numbers in a dictionary": (pa.array([5, 7, 6]).dictionary_encode(), [5, 6, 7]),
    "whole numbers, text classes": (pa.array([1, 3, 2]), ["1", "2", "3"]),
    "the class None": (pa.array(["None", "c", "b"]), ["None", "b", "c"]),
}


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "stream.arrow", "rows.csv", "rows.jsonl"])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind_are_found_among_the_classes(kind, name, here):
    column, classes = LABELS[kind]
    if name == "rows.jsonl" and pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if name == "rows.csv" and (pa.types.is_dictionary(column.type) or column.type == pa.string_view()):
        column = column.cast(pa.string())
    table = pa.table({"p0": [1.0] * 3, "p1": [0.0] * 3, "p2": [0.0] * 3, "y": column})
    write_table(table, name)
    [batch] = read_in_batches(name, ScoreColumns(("p0", "p1", "p2"), "y"), classes)
    assert batch.labels.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("column", "row", "value"),
    [
        (pa.array([0, None, 1]), 2, "missing"),
        (pa.array([0.0, 1.0, np.nan]), 3, "missing"),
        (pa.array(["0", ""]), 2, "missing"),
        (pa.array(["0", None, "1"]).dictionary_encode(), 2, "missing"),
        (pa.array(["0", "9"]).dictionary_encode(), 2, "'9'"),
        (pa.array([0, 3]), 2, "3"),
        (pa.array([-1, 0]), 1, "-1"),
        (pa.array([0, 255], pa.uint8()), 2, "255"),
        (pa.array([0.0, 0.5]), 2, "0.5"),
        (pa.array(["0", "one"]), 2, "'one'"),
        (pa.array([dt.date(2024, 1, 1)]), 1, "datetime.date"),
        (pa.nulls(2), 1, "missing"),
    ],
    ids=str,
)
def test_a_label_that_is_none_is_located(column, row, value, here):
    n_rows = len(column)
    write_table(pa.table({"p0": [1.0] * n_rows, "p1": [0.0] * n_rows, "y": column}), "rows.parquet")
    controller = orisk.RiskController(alpha=0.1, classes=[0, 1])
    with pytest.raises(FileError) as error:
        orisk.jobs.calibrate(controller, "rows.parquet", scores="p0,p1", label="y")
    assert str(error.value).startswith(f"rows.parquet: row {row}, column 'y': the label ")
    assert value in str(error.value)


@pytest.mark.parametrize(
    ("classes", "known", "unknown"),
    [
        (
            [0, 1, 2],
            [(1, 1), ("1", 1), (1.0, 1), ("1.0", 1), (True, 1), (Decimal(2), 2)],
            [3, "x", None, 0.5],
        ),
        (["a", "b"], [("a", 0), ("b", 1)], ["A", 0, None, ""]),
        (["1", "2"], [(1, 0), ("2", 1), (2.0, 1), ("1.0", 0)], [0, "3"]),
        (["None", "Some"], [("None", 0)], [None]),
        (["False", "True"], [(True, 1), (False, 0), ("True", 1)], ["true", None]),
        ([0.5, 1.0], [("0.5", 0), (1, 1), ("1", 1)], ["0.50001", None]),
        ([1, "1"], [(1, 0), ("1", 1)], [2]),
        (["1", "1.0"], [("1", 0), ("1.0", 1)], ["2"]),
    ],
)
def test_text_and_numbers_that_say_the_same_are_the_same_label(classes, known, unknown):
    position = position_of_label(classes)
    assert [position(value) for value, _ in known] == [k for _, k in known]
    assert [position(value) for value in unknown] == [None] * len(unknown)


@pytest.mark.parametrize(
    ("value", "place"),
    [("03", None), ("3_0", None), ("3.0", 1), (3.0, 1), ("10", 2), (True, None), ("x", None)],
)
def test_only_plain_numbers_are_numbers(value, place):
    assert position_of_label([2, 3, 10])(value) == place


def test_large_whole_numbers_stay_apart():
    position = position_of_label([9007199254740992, 9007199254740993])
    assert [position(str(9007199254740992 + k)) for k in range(3)] == [0, 1, None]


# which columns


@pytest.mark.parametrize("saved", [None, ScoreColumns(("p_low", "p_mid", "p_high"), "y", logits=True)])
def test_the_columns_of_a_calibration_are_found_by_name(saved, here):
    scale = ["low", "mid", "high"]
    source = source_of(numbers("p_mid", "p_high", "p_low", y=["low", "high"]))
    finder = ColumnFinder(source, AskedColumns(label="y"), [].append)
    found = finder.as_calibrated(saved, scale, with_label=True)
    assert found == (saved or ScoreColumns(("p_low", "p_mid", "p_high"), "y"))


def source_of(table, name="rows.parquet"):
    write_table(table, name)
    with opened(Path(name)) as source:
        return source


def numbers(*names, y=(0, 1)):
    """A table of columns of numbers, and of labels unless there are none."""
    return pa.table({name: [0.5] * len(y) for name in names} | ({"y": y} if y[0] is not None else {}))


def chosen(table, scores=None, classes=None, label=None, logits=None, name="rows.parquet"):
    """The columns of the scores, the classes, and what was said."""
    heard = []
    asked = AskedColumns(scores, label, logits)
    where, labels = ColumnFinder(source_of(table, name), asked, heard.append).to_calibrate(classes)
    return list(where.scores), labels, heard


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["id", "p0", "p1"], ["p0", "p1"]),
        (["p2", "p0", "p1"], ["p0", "p1", "p2"]),
        (["P_0", "P_1", "age"], ["P_0", "P_1"]),
        (["proba.0", "proba.1"], ["proba.0", "proba.1"]),
        (["logit-0", "logit-1", "pressure"], ["logit-0", "logit-1"]),
        (["prob 0", "prob 1", "p"], ["prob 0", "prob 1"]),
        ([f"p{k}" for k in range(12)], [f"p{k}" for k in range(12)]),
        ([f"p{k}" for k in reversed(range(12))], [f"p{k}" for k in range(12)]),
    ],
)
def test_scores_are_guessed_by_their_names(names, found, here):
    scores, _, heard = chosen(numbers(*names))
    assert scores == found
    assert any(sentence.startswith("The scores of the classes 0, 1") for sentence in heard)


@pytest.mark.parametrize(
    "names", [["a", "b"], ["p0"], ["p0", "p1", "logit_0", "logit_1"], ["pp0", "pp1"], ["page1", "page2"]]
)
def test_what_is_not_obvious_is_not_guessed(names, here):
    with pytest.raises(FileError, match=r"can't tell which columns .*`scores='p\*'`, or `classes` if"):
        chosen(numbers(*names))


def test_a_misspelt_class_is_named(here):
    with pytest.raises(FileError, match="none is named like class 'hihg': correct `classes`"):
        chosen(numbers("low", "mid", "high"), classes=["low", "mid", "hihg"])


@pytest.mark.parametrize(
    "names", [["High", "Low", "Mid"], ["p_High", "p_Low", "p_Mid"], ["p_HIGH", "p_low", "p_mid"]]
)
def test_scores_named_like_the_classes_come_in_their_order(names, here):
    table = numbers(*names, y=["Low", "High"])
    found, labels, _ = chosen(table, classes=["Low", "Mid", "High"])
    assert (found, labels) == ([names[1], names[2], names[0]], ["Low", "Mid", "High"])


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("a,b", ["a", "b"]),
        ("b, a", ["b", "a"]),
        ("p*", ["p0", "p1"]),
        ("p0,p1", ["p0", "p1"]),
        ("[ab]", ["a", "b"]),
        ("a*,b", ["a*", "b"]),
    ],
)
def test_scores_are_taken_as_named(asked, found, here):
    names = ["p1", "p0", "a", "b", *(["a*"] if "a*" in asked else [])]
    assert chosen(numbers(*names), asked, classes=[0, 1])[0] == found


def test_scores_that_are_not_there_are_said(here):
    with pytest.raises(FileError, match=r"no column 'q' \(there are p0, p1, y\); correct `scores`"):
        chosen(numbers("p0", "p1"), "p0,q")
    for asked, problem in {
        "p0": "must name a column",
        "p0,p*": "names column 'p0' more than once",
    }.items():
        with pytest.raises(ValueError, match=f"^`scores` {problem}"):
            chosen(numbers("p0", "p1"), asked)


@pytest.mark.parametrize("label", ["y", "Label", "grade", "TRUTH"])
def test_the_label_is_guessed_by_its_name(label, here):
    _, _, heard = chosen(numbers("p0", "p1").rename_columns(["p0", "p1", label]), "p0,p1", [0, 1])
    assert heard == [f"The label is in the column {label!r}."]


@pytest.mark.parametrize("names", [["p0", "p1"], ["p0", "p1", "y", "label"]])
def test_a_label_that_is_not_obvious_is_not_guessed(names, here):
    with pytest.raises(FileError, match=r"can't tell which column holds the label .* name it with `label`"):
        chosen(numbers(*names, y=[None]), "p0,p1", [0, 1])


@pytest.mark.parametrize("asked", [None, "y"])
def test_a_nested_column_is_no_label(asked, here):
    with pytest.raises(FileError, match=r"column 'y' holds list<.*>, not labels; choose another"):
        chosen(numbers("p0", "p1", y=[[1]]), label=asked)


@pytest.mark.parametrize(
    ("names", "labels", "classes"),
    [
        (["p0", "p1", "p2"], [2, 0], [0, 1, 2]),
        (["p1", "p2", "p3"], [3, 1], [1, 2, 3]),
        (["p_lo", "p_hi", "p_top"], ["top", "lo"], ["lo", "hi", "top"]),
        (["p8", "p9", "p10"], [9, 10], [8, 9, 10]),
        (["p_no", "p_yes"], ["yes"], ["no", "yes"]),
        (["p_low", "p_high", "p_top"], [1, 2], [0, 1, 2]),
        (["p0", "p1", "p2"], [2.0, None, np.nan], [0, 1, 2]),
    ],
)
def test_classes_are_told_by_the_scores_and_the_labels(names, labels, classes, here):
    scores, found, _ = chosen(numbers(*names, y=labels))
    assert (scores, found) == (names, classes)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "stream.arrow"])
def test_an_ordered_dictionary_tells_the_classes_and_their_order(name, here):
    names = ["worst", "middle", "best"]
    coded = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(names), ordered=True)
    assert chosen(numbers(*SCORES[:3], y=coded), name=name)[1] == names
    with pytest.raises(
        FileError, match="has the order worst, middle, best, `classes` best, middle, worst; give"
    ):
        chosen(numbers(*SCORES[:3], y=coded), classes=names[::-1])


def test_classes_that_are_not_told_must_be_named(here):
    with pytest.raises(
        FileError,
        match=r"row 2, column 'y': none of .* matches the label 7; .* with `classes`",
    ):
        chosen(numbers("p0", "p1", y=[0, 7]))
    with pytest.raises(
        FileError, match="there are 3 classes, a, b, c, but 2 columns of scores, p0, p1; corr"
    ):
        chosen(numbers("p0", "p1"), classes=["a", "b", "c"])


def test_the_order_of_the_alphabet_is_not_taken_for_that_of_the_scale(here):
    with pytest.raises(FileError, match=r"alphabetical order, p_High, p_Low, p_Mid, .* with `classes`"):
        chosen(numbers("p_High", "p_Low", "p_Mid", y=["Mid"]))


def test_a_label_column_is_not_taken_for_one_whose_name_begins_like_it(here):
    table = pa.table({"y.z": ["x"], "p0": [0.5], "p1": [0.5], "y": [1]})
    assert chosen(table)[1] == [0, 1]


def test_long_lists_of_columns_are_cut_in_messages(here):
    with pytest.raises(FileError, match=r"\(there are c0, c1, .*, c9, \.\., y\)"):
        chosen(numbers(*(f"c{i}" for i in range(50))))


# formats


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a.csv", "csv"),
        ("a.CSV", "csv"),
        ("a.csv.gz", "csv"),
        ("a.jsonl.zst", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.pq", "parquet"),
        ("a.feather", "arrow"),
        ("a.txt", None),
        ("csv", None),
        ("a.gz", None),
        ("-", None),
    ],
)
def test_names_tell_the_format(name, found):
    assert format_by_name(Path(name)) == found


def test_first_bytes_tell_the_format(rows):
    table = score_table(*rows)
    told = {
        name: format_by_first_bytes(encoded(table, name)[:16]) for name in NAMES.values() if ".gz" not in name
    }
    assert told == {
        "rows.csv": "csv",
        "rows.parquet": "parquet",
        "rows.arrow": "arrow",
        "stream.arrow": "arrow",
        "rows.jsonl": "jsonl",
    }
    assert format_by_first_bytes(b'\n\n  {"p0": 1}') == "jsonl"


@pytest.mark.parametrize("compression", ["gzip", "bz2", "zstd", "lz4"])
def test_every_compression_is_known_by_its_first_bytes(compression, here, rows):
    content = encoded(score_table(*rows), "rows.csv")
    with pa.output_stream("rows.csv", compression=compression) as stream:
        stream.write(content)
    [batch] = read_in_batches("rows.csv")
    assert np.array_equal(batch.proba, rows[0])


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst", "lz4"])
def test_compressed_files_are_read_as_they_were_written(ending, here, rows):
    controller = orisk.RiskController(alpha=0.1).calibrate(*rows)
    write_table(score_table(*rows), "rows.parquet")
    for plain in ("csv", "jsonl"):
        target = Path(f"sets.{plain}.{ending}")
        predict(controller, "rows.parquet", target, keep="*")
        assert target.read_bytes()[:4] != (b'"p0"' if plain == "csv" else b'{"p0')
        [batch] = read_in_batches(target)
        assert np.array_equal(batch.proba, rows[0])


@FORMATS
def test_progress_ends_at_the_whole(name, here, monkeypatch, rows):
    read_few_rows_at_once(monkeypatch, 50, 3000)
    write_table(score_table(*rows), name)
    with opened(Path(name)) as source:
        shares, n_rows = [source.share_read(0)], 0
        for batch in source.batches(SCORES, SCORES):
            n_rows += batch.num_rows
            shares.append(source.share_read(n_rows))
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert 0.5 < shares[-1] <= 1


def test_quoted_lines_may_go_over_the_cut(here, monkeypatch):
    """A value with line ends in it is one value, wherever the reader cuts the bytes."""
    notes = [f"{i}\n" * (i % 9) for i in range(200)]
    table = pa.table({"note": notes, "p0": [0.5] * 200, "p1": [0.5] * 200})
    write_table(table, "rows.csv")
    read_few_rows_at_once(monkeypatch, 1000, 100)
    with opened(Path("rows.csv")) as source:
        found = [note for batch in source.batches(["note"]) for note in batch.column(0).to_pylist()]
    assert found == notes


def test_a_file_that_goes_away_is_said(here, rows):
    write_table(score_table(*rows), "rows.csv")
    with opened(Path("rows.csv")) as source:
        Path("rows.csv").unlink()
        with pytest.raises(FileError, match=r"^rows.csv: can't be read \(.*No such file or directory"):
            next(source.batches(SCORES))


def test_closed_pipes_are_said(here, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(FileError, match=r"^standard input: is closed"), opened(Path("-")):
        pass
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        with (
            pytest.raises(FileError, match=r"^standard output: is closed"),
            writers.writing(Path("-"), pa.schema([])),
        ):
            pass


# what passes through


KEPT = {
    "text": pa.array(["007", None, "日本 ü"]),
    "text in views": pa.array(["007", None, "日本 ü"], pa.string_view()),
    "large text": pa.array(["007", None, ""], pa.large_string()),
    "dictionary": pa.array(["b", None, "a"]).dictionary_encode(),
    "views in a dictionary": pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0], pa.uint32()), pa.array(["a", "b"], pa.string_view())
    ),
    "whole numbers": pa.array([2**62 + 1, None, -1]),
    "large whole numbers": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "floats": pa.array([0.1, None, 1e300]),
    "halves": pa.array(np.array([0.5, 1, 2], np.float16)),
    "decimals": pa.array([Decimal("1.50"), None, Decimal("-0.01")]),
    "truth": pa.array([True, None, False]),
    "times": pa.array([dt.datetime(2024, 2, 29, 1, 2, 3, 456), None, dt.datetime(1969, 1, 1)]),
    "times with a zone": pa.array([dt.datetime(2024, 2, 29, tzinfo=dt.UTC), None, None]),
    "dates": pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]),
    "nothing": pa.nulls(3),
}
NESTED = {
    "lists": pa.array([[1, 2], None, []]),
    "structs": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": ""}]),
}


def predicted(kept, target, name="rows.arrow", **options):
    controller = orisk.RiskController(alpha=0.1).calibrate([[0.5, 0.5]] * 20, [0, 1] * 10)
    table = pa.table({"p0": [0.5] * len(kept), "kept": kept, "p1": [0.5] * len(kept)})
    write_table(table, name)
    predict(controller, name, target, ["kept"], "p0,p1", **options)
    return Path(target)


@pytest.mark.parametrize("kind", KEPT | NESTED)
def test_kept_columns_are_unchanged_in_formats_with_types(kind, here):
    column = (KEPT | NESTED)[kind]
    path = predicted(column, "sets.arrow")
    found = pa.ipc.open_file(path).read_all().column("kept")
    assert (found.type, found.to_pylist()) == (column.type, column.to_pylist())
    found = parquet.read_table(predicted(column, "sets.parquet")).column("kept")
    assert found.to_pylist() == column.to_pylist()


@pytest.mark.parametrize("kind", KEPT)
def test_kept_columns_are_spelled_out_in_csv(kind, here):
    column = KEPT[kind]
    content = predicted(column, "sets.csv").read_bytes()
    as_text = column.type if not pa.types.is_dictionary(column.type) else pa.string()
    as_text = pa.string() if as_text == pa.string_view() else as_text
    convert = arrow_csv.ConvertOptions(
        column_types={"kept": as_text}, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    if pa.types.is_float16(column.type):
        convert = None
    found = arrow_csv.read_csv(io.BytesIO(content), convert_options=convert).column("kept")
    assert found.to_pylist() == column.to_pylist()


@pytest.mark.parametrize("kind", KEPT | NESTED)
def test_kept_columns_are_spelled_out_in_json(kind, here):
    column = (KEPT | NESTED)[kind]
    lines = predicted(column, "sets.jsonl").read_text().splitlines()
    found = [json.loads(line)["kept"] for line in lines]
    expected = column.to_pylist()
    plain = (str, int, float, bool, list, dict, type(None))
    assert found == [value if isinstance(value, plain) else str(value) for value in expected]


def test_text_files_can_not_hold_everything(here):
    for target, column in (
        ("sets.csv", NESTED["lists"]),
        ("sets.csv", pa.array([b"x"])),
        ("s.jsonl", pa.array([b"x"])),
    ):
        with pytest.raises(
            FileError, match=r"column 'kept' holds .*, which .* can't; leave it out with `keep`"
        ):
            predicted(column, target)
        assert not Path(target).exists()


def test_what_no_writer_can_write_is_said(here):
    intervals = pa.array([pa.MonthDayNano([1, 2, 3])])
    with pytest.raises(
        FileError, match=r"^sets.parquet: can't be written as parquet \(.*\); leave columns out"
    ):
        predicted(intervals, "sets.parquet")
    assert [path.name for path in here.iterdir()] == ["rows.arrow"]


def test_what_is_no_number_is_null_in_json(here):
    for column in (pa.array([np.nan, np.inf, None]), pa.array([[np.nan], [-np.inf], [None]])):
        lines = predicted(column, "sets.jsonl").read_text().splitlines()
        inner = pa.types.is_nested(column.type)
        assert [json.loads(line)["kept"] for line in lines] == [[None] if inner else None] * 3
        assert "NaN" not in "".join(lines)


def test_json_text_that_looks_like_a_time_stays_as_it_is(here):
    times = ["2024-01-01", "2024-01-01T00:00:00Z", "2024-01-01 12:00"]
    objects = [
        {"p0": 0.5, "p1": 0.5, "kept": time, "in": [time, {"at": time}][:1], "of": {"at": time}}
        for time in times
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(item) + "\n" for item in objects))
    controller = orisk.RiskController(alpha=0.1).calibrate([[0.5, 0.5]] * 20, [0, 1] * 10)
    predict(controller, "rows.jsonl", "sets.jsonl", ["kept", "in", "of"], "p0,p1")
    found = [json.loads(line) for line in Path("sets.jsonl").read_text().splitlines()]
    assert [{key: row[key] for key in ("kept", "in", "of")} for row in found] == [
        {key: row[key] for key in ("kept", "in", "of")} for row in objects
    ]


def test_csv_text_stays_as_it_is(here):
    """The text is not changed, even if it looks like a number."""
    values = ["007", "1e3", "NA", "null", "", " x ", "true", "2024-01-01", "1.10", '"', "a,b", "a\nb"]
    write_table(pa.table({"kept": values, "p0": [0.5] * 12, "p1": [0.5] * 12}), "rows.csv")
    controller = orisk.RiskController(alpha=0.1).calibrate([[0.5, 0.5]] * 20, [0, 1] * 10)
    for target in ("sets.csv", "sets.parquet", "sets.jsonl"):
        predict(controller, "rows.csv", target, ["kept"], "p0,p1")
        assert [row["kept"] for row in read_rows(Path(target).read_bytes(), target)] == values


def test_polars_files_are_read(here, rows):
    proba, labels = rows
    names = ["a", "b", "c", "d"]
    frame = pl.DataFrame({f"p{k}": proba[:, k] for k in range(K)}).with_columns(
        pl.Series("y", [names[k] for k in labels], dtype=pl.Enum(names)), pl.Series("id", ["007"] * N_ROWS)
    )
    frame.write_ipc("rows.arrow")
    frame.write_parquet("rows.parquet")
    controller = orisk.RiskController(alpha=0.1, classes=names).calibrate(proba, [names[k] for k in labels])
    for name in ("rows.arrow", "rows.parquet"):
        by_file = orisk.jobs.calibrate(orisk.RiskController(alpha=0.1), name, note=[].append)
        assert (by_file.columns_, by_file.classes_.tolist()) == (WHERE, names)
        assert by_file.threshold_ == controller.threshold_
        for target in ("sets.csv", "sets.parquet", "sets.arrow", "sets.jsonl"):
            orisk.jobs.predict(by_file, name, target, keep=["y", "id"])
            found = read_rows(Path(target).read_bytes(), target)
            assert [row["y"] for row in found] == [names[k] for k in labels]
            assert [row["lower"] for row in found] == controller.predict_set(proba).lower.tolist()


# what is written


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        (range(3), pa.int8()),
        ([-1, 0, 1000], pa.int16()),
        ([0.5, 1.0, 1.5], pa.float64()),
        (["a", "b", "c"], pa.dictionary(pa.int8(), pa.string(), ordered=True)),
    ],
)
def test_labels_are_written_with_their_type(classes, kind, here, draw):
    proba, labels = draw(50, 3, seed=0)
    named = list(classes)
    controller = orisk.RiskController(alpha=0.2, classes=named).calibrate(proba, [named[k] for k in labels])
    write_table(score_table(proba, labels), "rows.parquet")
    predict(controller, "rows.parquet", "sets.arrow", scores=SCORES[:3])
    table = pa.ipc.open_file("sets.arrow").read_all()
    assert table.schema.types == [kind, kind, pa.int8()]
    sets = controller.predict_set(proba)
    as_text = str if pa.types.is_dictionary(kind) else (lambda label: label)
    assert table.column("lower").to_pylist() == [as_text(label) for label in sets.lower.tolist()]
    assert table.column("upper").to_pylist() == [as_text(label) for label in sets.upper.tolist()]


@pytest.mark.parametrize("error", [RuntimeError("stop"), RowError("a row is wrong", 0, 0.0)], ids=repr)
def test_nothing_is_read_any_more_after_an_error(error, here, monkeypatch, rows):
    """Threads that read ahead end with the error, not when something collects what refers to it."""
    read_few_rows_at_once(monkeypatch, 10, 1000)
    write_table(score_table(*rows), "rows.csv")
    before = threading.active_count()
    seen = []

    def see_and_raise(batch):
        seen.append(threading.active_count())
        raise error

    with pytest.raises((RuntimeError, FileError)):
        Serial(2).map([FileRows("rows.csv", WHERE, range(K))], see_and_raise)
    assert threading.active_count() == before < seen[-1]
    assert len(seen) == 1


def test_row_groups_are_few(here, monkeypatch, rows):
    """Small batches do not make small groups."""
    write_few_rows_at_once(monkeypatch, 150)
    read_few_rows_at_once(monkeypatch, 10, 1000)
    controller = orisk.RiskController(alpha=0.1).calibrate(*rows)
    write_table(score_table(*rows), "rows.csv")
    predict(controller, "rows.csv", "sets.parquet")
    metadata = parquet.ParquetFile("sets.parquet").metadata
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sum(groups) == N_ROWS
    assert all(150 <= n_rows < 170 for n_rows in groups[:-1])
    assert len(groups) == 3


@pytest.mark.parametrize("name", ["sets.csv", "sets.csv.gz", "sets.parquet", "sets.arrow", "sets.jsonl"])
@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()], ids=repr)
def test_a_writer_that_is_stopped_leaves_the_old_file(name, error, here):
    def stopped():
        batch = pa.record_batch({"a": [1, 2]})
        with writers.writing(Path(name), batch.schema) as writer:
            writer.write(batch)
            raise error

    Path(name).write_bytes(b"old")
    with pytest.raises(type(error)):
        stopped()
    assert Path(name).read_bytes() == b"old"
    assert len(list(here.iterdir())) == 1


def test_reading_ahead_gives_the_items_and_then_the_error():
    def items():
        yield from range(5)
        raise KeyError("end")

    seen = []

    def see(items):
        for item in items:
            seen.append(item)

    with pytest.raises(KeyError):
        see(read_ahead(items(), 2))
    assert seen == list(range(5))
    assert list(read_ahead([], 2)) == []


def test_work_behind_is_done_in_order_and_its_error_comes_up():
    done = []

    def until_two(item):
        if item == 2:
            raise OSError("full")
        done.append(item)

    def work_on(items):
        with set_writer._in_background(until_two) as work:
            for item in items:
                work(item)

    work_on([0, 1])
    assert done == [0, 1]
    for items in ([0, 1, 2], [0, 1, 2, 3]):  # also if it is the last one that fails
        with pytest.raises(OSError, match="full"):
            work_on(items)


# lines of JSON


def each_is_whole(lines, deepest):
    """Character by character."""
    for line in lines.split("\n"):
        depth, in_string = 0, False
        for character in re.sub(r'\\[\\"]', "", line):
            if character == '"':
                in_string = not in_string
            elif not in_string:
                depth += (character in "{[") - (character in "}]")
            if not 0 <= depth <= deepest:
                return False
        if depth or in_string:
            return False
    return True


PARTS = ["{", "}", "[", "]", '"', "\\", "\\\\", '\\"', "\n", "x", "{}\n", '{"x":1}\n']


@given(lines=st.lists(st.sampled_from(PARTS), max_size=30).map("".join), size=st.integers(1, 12))
def test_lines_are_whole_however_they_are_cut(lines, size):
    content, read = WholeLines(io.BytesIO(lines.encode()), "rows.jsonl"), b""
    deepest, json_lines.DEEPEST_NESTING = json_lines.DEEPEST_NESTING, 3
    try:
        while part := content.read(size):
            read += part
    except FileError:
        assert not each_is_whole(lines, 3)
    else:
        assert each_is_whole(lines, 3)
        assert read == lines.encode()
    finally:
        json_lines.DEEPEST_NESTING = deepest


def test_no_more_than_a_line_is_read_ahead():
    class Endless(io.RawIOBase):
        n_read = 0

        def read(self, size=-1):
            assert size >= 0
            self.n_read += size
            return b"a" * size

    endless = Endless()
    lines = WholeLines(endless, "rows.jsonl")
    with pytest.raises(FileError, match=r"^rows.jsonl: row 1: is longer than"):
        list(iter(lambda: lines.read(1 << 20), b""))
    assert endless.n_read <= LONGEST_LINE + (1 << 21)


# damaged files


def two_classes(**others):
    labels = pa.array(["a", "b"] * 20).dictionary_encode()
    return pa.table({"p0": [0.5] * 40, "p1": [0.5] * 40, "y": labels, **others})


def read_changed(name):
    """Change every fifth word of four bytes in turn, read the file, and count the errors that name it."""
    content, place, n_refused = Path(name).read_bytes(), Path(f"changed-{name}"), 0
    for start in range(0, len(content) - 4, 20):
        for word in (b"\xfe\xff\xff\xff", b"\xff\xff\xff\x7f"):
            place.write_bytes(content[:start] + word + content[start + 4 :])
            try:
                with opened(place) as source:
                    ColumnFinder(source, AskedColumns("p0,p1", "y"), str).to_calibrate(["a", "b"])
                    for batch in source.batches(source.schema.names, ["p0", "p1"]):
                        batch.to_pylist()
            except FileError as error:
                n_refused += str(error).startswith(f"{place}: ") or sys.exit(f"unnamed: {error}")
    print(n_refused)


@pytest.mark.parametrize("name", ["rows.arrow", "stream.arrow", "rows.parquet"])
def test_no_changed_word_ends_the_process(name, here):
    kept = {
        "text": [f"text {i}" for i in range(40)],
        "large": pa.array([str(i) for i in range(40)], pa.large_string()),
        "lists": [[i, i + 1] for i in range(40)],
        "coded": pa.array(["x", None] * 20).dictionary_encode(),
    }
    write_table(two_classes(**kept), name)
    script = f"from test_engines import read_changed; read_changed({name!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, env=environment)
    assert done.returncode == 0, (done.returncode, done.stderr[-500:])
    assert int(done.stdout) > 100
