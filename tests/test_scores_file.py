"""Files of scores: what is written is read back bit for bit, and what is wrong in a file is named."""

import gzip
import re
import struct

import numpy as np
import pytest

from ordinalrisk.probabilities import min_shift, softmax
from reproduction.scores import NORMALISATIONS, Scores, read_scores, write_scores

OURS = "name,label,logit_0,logit_1,logit_2"
AUTHORS = ",0,1,2,3,4,5"
AUTHORS_FILE = f"""{AUTHORS}
0,10_left.jpeg,2.0,1.0,-6.5,4.25,3.0984103679656982
1,10_right.jpeg,0.0,0.0,1.0728099346160889,-3.0,0.25
"""
for_each_ending = pytest.mark.parametrize("ending", ["csv", "csv.gz"])


def some_scores(n_rows=50, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    names = [f"{row}_left.jpeg" for row in range(n_rows)]
    return Scores(
        names, rng.integers(0, n_classes, n_rows), rng.normal(size=(n_rows, n_classes)), "some", "made up"
    )


def bits(values):
    return np.asarray(values).tobytes()


@pytest.fixture
def read(tmp_path):
    """Read a file of this text."""

    def read(text, name="some_scores.csv"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_scores(tmp_path / name)

    return read


@pytest.fixture
def refused(read):
    """The message with which a file of this text is refused."""

    def refused(text, name="some_scores.csv"):
        with pytest.raises(ValueError) as caught:
            read(text, name)
        return str(caught.value)

    return refused


# what is right


@for_each_ending
@pytest.mark.parametrize("n_classes", [2, 5, 20])
def test_a_round_trip_is_exact(tmp_path, ending, n_classes):
    scores = some_scores(n_classes=n_classes)
    write_scores(scores, tmp_path / f"my_own_scores.{ending}")
    read = read_scores(tmp_path / f"my_own_scores.{ending}")
    assert list(read.names) == list(scores.names)
    assert (read.y.dtype, read.logits.dtype) == (np.int64, np.float64)
    assert bits(read.y) == bits(scores.y)
    assert bits(read.logits) == bits(scores.logits)
    assert (read.key, read.source) == ("my-own-scores", f"scores in my_own_scores.{ending}")
    assert not read.authors_layout


@for_each_ending
def test_every_finite_float_survives(tmp_path, ending):
    """Random bit patterns, and the ends of the range: no digit is lost and no sign of a zero."""
    patterns = np.random.default_rng(0).integers(0, 2**64, 4000, dtype=np.uint64).view(np.float64)
    limits = np.finfo(np.float64)
    odd = [0.0, -0.0, 0.1, 1 / 3, 5e-324, -5e-324, limits.tiny, limits.max, limits.min, 2.0**53 + 2]
    logits = np.array([*odd, *patterns[np.isfinite(patterns)][:3990]]).reshape(-1, 4)
    scores = Scores(["row"] * len(logits), np.zeros(len(logits), int), logits, "floats", "made up")
    write_scores(scores, tmp_path / f"floats.{ending}")
    assert bits(read_scores(tmp_path / f"floats.{ending}").logits) == bits(logits)


def test_single_precision_is_written_in_full(tmp_path):
    logits = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    write_scores(Scores(["row"] * 50, np.zeros(50, int), logits, "short", "made up"), tmp_path / "short.csv")
    assert bits(read_scores(tmp_path / "short.csv").logits.astype(np.float32)) == bits(logits)


@for_each_ending
@pytest.mark.parametrize("name", ["a,b", 'say "a"', " a ", "é 年", "", "\ufeffa", "'a'", "1", "#a"], ids=repr)
def test_names_survive(tmp_path, ending, name):
    scores = Scores([name, "b"], np.array([0, 1]), np.eye(2), "names", "made up")
    write_scores(scores, tmp_path / f"names.{ending}")
    assert read_scores(tmp_path / f"names.{ending}").names == [name, "b"]


@pytest.mark.parametrize("name", ["a\nb", "a\r\nb", "a\x0bb", "a\x0cb", "a\x85b", "a\u2028b"], ids=repr)
def test_names_with_breaks_survive(tmp_path, name):
    scores = Scores([name, "b"], np.array([0, 1]), np.eye(2), "names", "made up")
    write_scores(scores, tmp_path / "names.csv")
    assert read_scores(tmp_path / "names.csv").names == [name, "b"]


def test_the_file_by_hand(tmp_path):
    scores = Scores(["a", "b"], np.array([1, 0]), np.array([[0.5, -2.0], [1e-7, 3.0]]), "hand", "made up")
    write_scores(scores, tmp_path / "hand.csv")
    expected = b"name,label,logit_0,logit_1\na,1,0.5,-2.0\nb,0,1e-07,3.0\n"
    assert (tmp_path / "hand.csv").read_bytes() == expected
    write_scores(scores, tmp_path / "hand.csv.gz")
    assert gzip.decompress((tmp_path / "hand.csv.gz").read_bytes()) == expected


@for_each_ending
def test_equal_scores_are_equal_files(tmp_path, ending, monkeypatch):
    write_scores(some_scores(), tmp_path / f"one.{ending}")
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    write_scores(some_scores(), tmp_path / f"other.{ending}")
    write_scores(some_scores(seed=1), tmp_path / f"third.{ending}")
    one, other, third = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("one", "other", "third"))
    assert one == other != third


def test_a_compressed_file_holds_no_name_and_no_time(tmp_path):
    write_scores(some_scores(), tmp_path / "one.csv.gz")
    _, _, flags, time = struct.unpack("<HBBI", (tmp_path / "one.csv.gz").read_bytes()[:8])
    assert (flags, time) == (0, 0)


@for_each_ending
@pytest.mark.parametrize("ready", [False, True], ids=["new", "there already"])
def test_a_file_is_written_whole_or_not_at_all(tmp_path, ending, ready):
    file = tmp_path / f"scores.{ending}"
    if ready:
        file.write_bytes(b"before")
    good = some_scores()
    bad = Scores(good.names[:-1], good.y, good.logits, "bad", "one name too few")
    with pytest.raises(ValueError, match="zip"):
        write_scores(bad, file)
    assert [path.name for path in tmp_path.iterdir()] == ([file.name] if ready else [])
    assert not ready or file.read_bytes() == b"before"


@for_each_ending
def test_a_full_disk_leaves_nothing(tmp_path, ending, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_scores(some_scores(), tmp_path / f"scores.{ending}")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"there is no folder {re.escape(str(tmp_path / 'no'))}"):
        write_scores(some_scores(), tmp_path / "no" / "scores.csv")


def test_writing_replaces_what_was_there(tmp_path):
    write_scores(some_scores(n_rows=500), tmp_path / "scores.csv")
    write_scores(some_scores(n_rows=3), tmp_path / "scores.csv")
    assert len(read_scores(tmp_path / "scores.csv").y) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["scores.csv"]


@for_each_ending
def test_the_layout_of_the_authors(read, ending):
    content = AUTHORS_FILE.encode()
    scores = read(gzip.compress(content) if ending.endswith("gz") else content, f"retina_scores.{ending}")
    assert scores.names == ["10_left.jpeg", "10_right.jpeg"]
    assert scores.y.tolist() == [2, 0]
    assert scores.logits.tolist() == [[-6.5, 4.25, 3.0984103679656982], [1.0728099346160889, -3.0, 0.25]]
    assert scores.authors_layout
    assert (scores.key, scores.source) == ("retina-scores", f"scores in retina_scores.{ending}")


def test_the_layout_of_the_authors_may_be_written_as_ours(read, tmp_path):
    theirs = read(AUTHORS_FILE)
    write_scores(theirs, tmp_path / "ours.csv")
    ours = read_scores(tmp_path / "ours.csv")
    assert (list(ours.names), ours.y.tolist()) == (list(theirs.names), theirs.y.tolist())
    assert bits(ours.logits) == bits(theirs.logits)
    assert not ours.authors_layout


@pytest.mark.parametrize(
    "text",
    [
        f"{OURS}\na,1,1,2,3\n",
        f"{OURS}\na,1,1,2,3",
        f"{OURS}\r\na,1,1,2,3\r\n",
        f"\ufeff{OURS}\na,1,1,2,3\n",
        f'{OURS}\n"a","1","1","2","3"\n',
        f"{OURS}\na,1.0, 1,2.0,3e0\n",
    ],
    ids=["plain", "no last break", "Windows", "byte order mark", "quotes", "other numbers"],
)
def test_other_hands_of_the_same_file(read, text):
    scores = read(text)
    assert (scores.names, scores.y.tolist(), scores.logits.tolist()) == (["a"], [1], [[1.0, 2.0, 3.0]])


@pytest.mark.parametrize("n_classes", [2, 5, 10])
def test_either_layout_has_any_number_of_classes(read, n_classes):
    numbers = ",".join("1" * n_classes)
    ours = ",".join(["name", "label", *(f"logit_{k}" for k in range(n_classes))])
    authors = ",".join(["", *map(str, range(n_classes + 3))])
    assert read(f"{ours}\na,0,{numbers}\n").logits.shape == (1, n_classes)
    assert read(f"{authors}\n0,a,0,0,{numbers}\n").logits.shape == (1, n_classes)


# what is wrong


def test_a_missing_file(tmp_path):
    with pytest.raises(
        ValueError, match=f"^There is no file of scores at {re.escape(str(tmp_path))}.*a.csv.$"
    ):
        read_scores(tmp_path / "a.csv")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="is a folder; scores are read from a CSV file"):
        read_scores(tmp_path)


def test_an_empty_file(refused):
    assert refused("") == "some_scores.csv is empty."
    assert refused(gzip.compress(b""), "a.csv.gz") == "a.csv.gz is empty."
    assert refused(b"", "a.csv.gz") == "a.csv.gz is empty."


@pytest.mark.parametrize("header", [OURS, f"{OURS}\n", AUTHORS, f"{AUTHORS}\r\n"], ids=repr)
def test_a_header_without_rows(refused, header):
    assert refused(header) == "some_scores.csv has a header but no rows."


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("image,truth,a,b,c", "image,truth,a,b,c"),
        ("label,name,logit_0,logit_1", "label,name,logit_0,logit_1"),
        ("name,label,logit_1,logit_2", "name,label,logit_1,logit_2"),
        ("name,label,logit_0", "name,label,logit_0"),
        ("name,label", "name,label"),
        ("0,1,2,3,4,5,6,7", "0,1,2,3,4,5,..."),
        (",0,1,2,3", ",0,1,2,3"),
        (",0,1,2,3,5", ",0,1,2,3,5"),
        ("name;label;logit_0;logit_1", "name;label;logit_0;logit_1"),
        ("a,0,0.5,0.5", "a,0,0.5,0.5"),
        ("", ""),
    ],
)
def test_an_unknown_header(refused, header, shown):
    assert refused(f"{header}\na,0,1,2\n") == (
        f"some_scores.csv has an unknown layout: its header is {shown!r}; expected "
        "'name,label,logit_0,logit_1,logit_2,logit_3,...' or the paper authors' ',0,1,2,3,4,...'."
    )


@pytest.mark.parametrize(
    "header",
    [
        "name,label,logit_0,logit_1,logit_3,logit_2",
        "name,label,logit_0,logit_1,logit_2,predicted",
        ",0,1,2,3,4,6,5",
    ],
)
def test_a_header_that_is_wrong_further_on(refused, header):
    assert "unknown layout" in refused(f"{header}\n{','.join('0' * (header.count(',') + 1))}\n")


@pytest.mark.parametrize("header", [OURS, AUTHORS], ids=["ours", "authors"])
@pytest.mark.parametrize("change", [-3, -1, 1, 5])
@pytest.mark.parametrize("line", [2, 3, 4])
def test_a_row_with_too_few_or_too_many_columns(refused, header, change, line):
    n_columns = header.count(",") + 1
    rows = [",".join("0" * n_columns)] * 3
    rows[line - 2] = ",".join("0" * (n_columns + change))
    found = refused("\n".join([header, *rows]))
    assert (
        found == f"Line {line} of some_scores.csv has {n_columns + change} columns, the header {n_columns}."
    )


def test_an_empty_line(refused):
    assert refused(f"{OURS}\na,0,1,2,3\n\nb,0,1,2,3\n") == (
        "Line 3 of some_scores.csv has 0 columns, the header 5."
    )


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e999"])
@pytest.mark.parametrize("k", [0, 2])
@pytest.mark.parametrize("more", ["", "c,2,nan,nan,nan\n"], ids=["alone", "the first"])
def test_a_logit_that_is_not_finite(refused, text, k, more):
    logits = ["1", "2", "3"]
    logits[k] = text
    found = refused(f"{OURS}\na,0,1,2,3\nb,1,{','.join(logits)}\n{more}")
    assert found == (
        f"Line 3 of some_scores.csv has the logit {float(text)} for class {k}; logits must be finite."
    )


@pytest.mark.parametrize("text", ["", " ", "high", "1,5", "1.2.3", "0x10", "None", "1 2"], ids=repr)
@pytest.mark.parametrize("header", [OURS, AUTHORS], ids=["ours", "authors"])
def test_a_logit_that_is_no_number(refused, text, header):
    left = "a,0" if header == OURS else "0,a,0,0"
    assert refused(f'{header}\n{left},1,2,3\n{left},1,"{text}",3\n') == (
        "Line 3 of some_scores.csv holds something that is no number "
        f"(could not convert string to float: {text!r})."
    )


@pytest.mark.parametrize("text", ["3", "-1", "1e9", "0.5", "1.0000001", "", "mild", "nan", "inf", "-inf"])
@pytest.mark.parametrize("header", [OURS, AUTHORS], ids=["ours", "authors"])
def test_a_label_that_is_none(refused, text, header):
    row = f"a,{text},1,2,3" if header == OURS else f"0,a,{text},0,1,2,3"
    assert refused(f"{header}\n{row}\n") == (
        f"Line 2 of some_scores.csv has the label {text!r}; with 3 logits labels are 0 .. 2."
    )


def test_the_first_wrong_line_is_named(refused):
    assert refused(f"{OURS}\na,0,1,2,3\nb,9,1,2,3\nc,9,1\n").startswith("Line 3 ")


@pytest.mark.parametrize("kept", [1, 5, 10, 100, 500, -1, -8])
def test_a_compressed_file_that_is_cut(refused, tmp_path, kept):
    write_scores(some_scores(), tmp_path / "whole.csv.gz")
    cut = (tmp_path / "whole.csv.gz").read_bytes()[:kept]
    assert refused(cut, "cut.csv.gz").startswith("cut.csv.gz can't be read as CSV (")


@pytest.mark.parametrize("place", [30, 300, -5, -2])
def test_a_compressed_file_that_is_spoilt(refused, tmp_path, place):
    write_scores(some_scores(), tmp_path / "whole.csv.gz")
    content = bytearray((tmp_path / "whole.csv.gz").read_bytes())
    content[place] ^= 0xFF
    assert refused(bytes(content), "spoilt.csv.gz").startswith("spoilt.csv.gz can't be read as CSV (")


def test_a_plain_file_under_a_compressed_name(refused):
    found = refused(f"{OURS}\na,0,1,2,3\n", "plain.csv.gz")
    assert found == "plain.csv.gz can't be read as CSV (Not a gzipped file (b'na'))."


@pytest.mark.parametrize(
    "junk",
    [gzip.compress(AUTHORS_FILE.encode()), AUTHORS_FILE.encode("utf-16"), b"\x89PNG\r\n\x1a\n", b"\xe9,0"],
    ids=["compressed", "UTF-16", "picture", "Latin-1"],
)
def test_bytes_that_are_no_text(refused, junk):
    found = refused(junk)
    assert re.fullmatch(r"some_scores\.csv can't be read as CSV \('utf-8' codec can't decode .*\)\.", found)


def test_bytes_that_happen_to_be_text(refused):
    assert "has an unknown layout: its header is '\\x00\\x01\\x02'" in refused(b"\x00\x01\x02")


def test_a_cell_without_end(refused):
    found = refused(f'{OURS}\n"{"a" * 200_000}')
    assert found == "some_scores.csv can't be read as CSV (field larger than field limit (131072))."


# what is made from them


def test_accuracy_and_error_by_hand():
    logits = np.array([[3.0, 1, 2], [0, 5, 4], [1, 2, 9], [-1, -2, -3]])  # largest at 0, 1, 2, 0
    scores = Scores("abcd", np.array([0, 2, 0, 0]), logits, "hand", "made up")
    assert scores.accuracy == 0.5
    assert scores.mean_absolute_error == (0 + 1 + 2 + 0) / 4
    assert (type(scores.accuracy), type(scores.mean_absolute_error)) == (float, float)


def test_the_first_of_equal_logits_counts():
    scores = Scores("ab", np.array([0, 1]), np.array([[2.0, 2.0], [2.0, 2.0]]), "ties", "made up")
    assert (scores.accuracy, scores.mean_absolute_error) == (0.5, 0.5)


def test_probabilities_by_hand():
    scores = Scores(
        "ab", np.array([0, 1]), np.array([[1.0, 2.0, 4.0], [np.log(2), 0.0, 0.0]]), "hand", "made up"
    )
    assert scores.proba("min_shift")[0].tolist() == [0, 0.25, 0.75]
    assert scores.proba("softmax")[1] == pytest.approx([0.5, 0.25, 0.25])
    assert np.array_equal(scores.proba(), scores.proba("softmax"))


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_a_normalisation_is_the_function_of_its_name(name):
    scores = some_scores()
    function = {"min_shift": min_shift, "softmax": softmax}[name]
    assert np.array_equal(scores.proba(name), function(scores.logits))
    assert scores.proba(name).sum(axis=1) == pytest.approx(1)


def test_equal_logits_have_no_min_shift():
    scores = Scores("ab", np.array([0, 1]), np.array([[1.0, 2.0], [3.0, 3.0]]), "equal", "made up")
    with pytest.raises(ValueError, match="min_shift is not defined for row 1: its logits are all equal"):
        scores.proba("min_shift")
