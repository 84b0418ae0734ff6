"""Files that are damaged or made to do harm: an error that names the file, and nothing written."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import run
from effort import quickly
from file_formats import encoded, read_rows, write_table
from pyarrow import parquet
from unchecked import UNCHECKED

import ordinalrisk as orisk

pytestmark = UNCHECKED

N_ROWS = 40
DEEPEST_NESTING, LONGEST_LINE = 64, 1 << 23
CLASSES = ["a", "b"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder but for a calibration, which is the current one."""
    monkeypatch.chdir(tmp_path)
    controller = orisk.RiskController(alpha=0.1, classes=CLASSES)
    controller.calibrate([[0.5, 0.5]] * N_ROWS, CLASSES * (N_ROWS // 2)).save("cal.json")
    return tmp_path


def table(**others):
    scores = {"p0": [0.5] * N_ROWS, "p1": [0.5] * N_ROWS}
    return pa.table({**scores, "y": pa.array(CLASSES * (N_ROWS // 2)).dictionary_encode(), **others})


def refusal(name, command="predict"):
    """The line with which a command refuses a file, after which there is no output."""
    before = sorted(os.listdir())
    arguments = {
        "predict": ["predict", "cal.json", name, "--scores", "p0,p1", "-o", "sets.csv"],
        "calibrate": [
            "calibrate",
            name,
            "--scores",
            "p0,p1",
            "--label",
            "y",
            "--alpha",
            "0.1",
            "-o",
            "c.json",
        ],
        "evaluate": ["evaluate", "cal.json", name, "--scores", "p0,p1", "--label", "y"],
    }[command]
    result = run(*arguments)
    assert result.exit_code == 1, result.output
    line = result.stderr.splitlines()[-1]
    assert line.startswith(f"Error: {name}: ")
    assert sorted(os.listdir()) == before
    return line


# Arrow and Parquet


@pytest.mark.parametrize("name", ["rows.arrow", "stream.arrow"])
@pytest.mark.parametrize("offset", [2**31 - 1, -1, 0])
def test_text_with_wrong_offsets_is_refused(name, offset, folder):
    right = np.arange(0, 3 * N_ROWS + 1, 3, dtype=np.int32)
    wrong = right.copy()
    wrong[7] = offset
    with (
        pa.BufferOutputStream() as sink,
        (pa.ipc.new_stream if name.startswith("stream") else pa.ipc.new_file)(
            sink, (rows := table(id=[f"{i:03d}" for i in range(N_ROWS)])).schema
        ) as writer,
    ):
        writer.write_table(rows)
    content = sink.getvalue().to_pybytes()
    assert content.count(right.tobytes()) == 1
    Path(name).write_bytes(content.replace(right.tobytes(), wrong.tobytes()))
    assert "is not a whole Arrow file" in refusal(name)
    assert "is not a whole Arrow file" in refusal(name, "calibrate")  # which does not use the text


@pytest.mark.parametrize("index", [-2, -1, 2, 100])
@pytest.mark.parametrize("command", ["calibrate", "evaluate", "predict"])
def test_a_label_outside_its_dictionary_is_refused(index, command, folder):
    """An index of -2 would be the last class to numpy."""
    indices = pa.array([0, 1] * (N_ROWS // 2 - 1) + [0, index], pa.int8())
    labels = pa.DictionaryArray.from_arrays(indices, pa.array(CLASSES), ordered=True, safe=False)
    write_table(table().set_column(2, "y", labels), "rows.arrow")
    assert "is not a whole Arrow file" in refusal("rows.arrow", command)


def test_nulls_in_a_column_without_nulls_are_refused(folder):
    fields = [pa.field("p0", pa.float64()), pa.field("p1", pa.float64()), pa.field("id", pa.int64(), False)]
    values = [pa.array([0.5] * 2), pa.array([0.5] * 2), pa.array([1, None])]
    write_table(pa.table(values, schema=pa.schema(fields)), "rows.arrow")
    assert "column 'id' has nulls, which its type excludes" in refusal("rows.arrow")


def test_a_changed_page_of_parquet_is_refused(folder):
    """Written files have checksums, so that a changed number is detected."""
    write_table(table(kept=np.random.default_rng(0).random(N_ROWS)), "rows.parquet")
    command = ["predict", "cal.json", "rows.parquet", "--scores", "p0,p1", "-o", "new.parquet"]
    done = run(*command, "--keep", "*", "--prefix", "old_")
    assert done.exit_code == 0, done.output
    content = bytearray(Path("new.parquet").read_bytes())
    page = parquet.ParquetFile("new.parquet").metadata.row_group(0).column(3)
    assert page.path_in_schema == "kept"
    content[page.data_page_offset - 1] ^= 1  # the end of the last distinct number
    Path("changed.parquet").write_bytes(content)
    assert "is not a whole Parquet file" in refusal("changed.parquet")


# JSON lines


def nested(depth, opening="[", closing="]"):
    return f'{{"p0": 0.5, "p1": 0.5, "kept": {opening * (depth - 1)}{closing * (depth - 1)}}}\n'


@pytest.mark.parametrize("command", ["calibrate", "predict"])
@pytest.mark.parametrize("depth", [DEEPEST_NESTING + 1, 5000, 20_000, 1_000_000])
def test_deep_nesting_is_refused_before_it_is_parsed(depth, command, folder):
    Path("rows.jsonl").write_text(nested(2) + "\n" + nested(depth))
    assert f"row 2: is nested more than {DEEPEST_NESTING} levels deep" in refusal("rows.jsonl", command)
    Path("rows.jsonl").write_text(nested(depth, '{"a": ', "}"))
    assert f"row 1: is nested more than {DEEPEST_NESTING} levels deep" in refusal("rows.jsonl", command)


def test_nesting_that_goes_over_lines_is_refused(folder):
    for line in ('{"p0": [', '{"p0": "}", "p1":', '{"p0": "\\\\", "p1": {"}": '):
        Path("rows.jsonl").write_text(f"{line}\n" * 20_000)
        assert "row 1: can't be read as JSON (brackets or quotes don't match)" in refusal("rows.jsonl")


def test_nesting_up_to_the_limit_and_brackets_in_text_are_read(folder):
    text = "[" * 500 + '\\"' + "{" * 500 + "\\\\"
    rows = {"p0": 0.5, "p1": 0.5, "text": text}
    Path("rows.jsonl").write_text("".join(f"{json.dumps(rows)}\r\n\n" for _ in range(3)))
    command = ["predict", "cal.json", "rows.jsonl", "--scores", "p0,p1", "-o", "s.jsonl"]
    done = run(*command)
    assert done.exit_code == 0, done.output
    assert [row["text"] for row in read_rows(Path("s.jsonl").read_bytes(), "s.jsonl")] == [text] * 3
    Path("rows.jsonl").write_text(nested(DEEPEST_NESTING) * 3)
    assert run(*command).exit_code == 0
    assert len(read_rows(Path("s.jsonl").read_bytes(), "s.jsonl")) == 3


def test_no_more_than_a_line_is_decompressed(folder):
    """The whole line would be a thousand times as long as the file."""
    with gzip.open("rows.jsonl", "wb", 1) as file:
        file.write(b'{"p0": "')
        for _ in range(10):
            file.write(b"a" * (LONGEST_LINE // 2))
    assert f"row 1: is longer than {LONGEST_LINE:,} bytes" in refusal("rows.jsonl")


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize(
    "line", ['{"p0": 0.5, "p1": "', '{"p0": 0.5', "1", '{"p0": 0.5, "p1": 1' + "1" * 5000 + "}"]
)
def test_a_line_that_is_no_object_is_an_error_of_the_file(line, end, folder):
    Path("rows.jsonl").write_text(line + end)
    refusal("rows.jsonl")


# CSV and names


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_row_that_does_not_end_is_refused(quote, folder):
    with gzip.open("rows.csv", "wb", 1) as file:
        file.write(f"p0,p1\n0.5,{quote}".encode())
        for _ in range(5):
            file.write(b"a" * (LONGEST_LINE // 2))
    assert "has a row longer than" in refusal("rows.csv")
    with gzip.open("rows.csv", "wb", 1) as file:
        for _ in range(5):
            file.write(b"a," * (LONGEST_LINE // 4))
    assert "has a header longer than" in refusal("rows.csv")


N_COLUMNS = 30_000


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_many_columns_take_seconds(name, folder):
    """A count of each name among all takes minutes."""
    names = ["p0", "p1", *(f"a long name {i}" for i in range(N_COLUMNS))]
    row = [0.5, 0.5] + [1] * N_COLUMNS
    if name == "rows.csv":
        Path(name).write_text(",".join(names) + "\n" + ",".join(map(str, row)) + "\n")
    else:
        Path(name).write_text(json.dumps(dict(zip(names, row, strict=True))) + "\n")
    keep = ",".join([*names[:1000], "*"])
    arguments = ["predict", "cal.json", name, "--scores", "p0,p1", "-o", "sets.arrow", "--keep", keep]
    with quickly(200):
        done = run(*arguments)
    assert done.exit_code == 0, done.output


def test_a_repeated_name_among_many_is_found(folder):
    names = ["p0", "p1", *(f"c{i}" for i in range(N_COLUMNS)), "c7"]
    Path("rows.csv").write_text(",".join(names) + "\n" + ",".join(["0.5"] * len(names)) + "\n")
    Path("rows.jsonl").write_text("{" + ", ".join(f'"{name}": 0.5' for name in names) + "}\n")
    with quickly(200):
        assert "column 'c7' is there more than once" in refusal("rows.csv")
        assert "/c7) was specified twice" in refusal("rows.jsonl")


@pytest.mark.parametrize("digits", [4301, 100_000])
def test_a_number_of_many_digits_is_text(digits, folder):
    """Python refuses to make a number of more than 4,300 digits."""
    long = "1" * digits
    Path("rows.csv").write_text(f"p0,p1,y\n0.5,0.5,0\n0.5,0.5,{long}\n")
    line = refusal("rows.csv", "calibrate")
    assert "matches the label '111" in line
    assert len(line) < 500
    names = f"p{long}", f"p{long}x"  # which no number ends
    Path("rows.csv").write_text(f"{','.join(names)},y\n0.5,0.5,0\n")
    controller = orisk.RiskController(alpha=0.6, classes=[0, 1])
    assert orisk.jobs.calibrate(controller, "rows.csv", scores=names, label="y").n_rows_ == 1


# formulas


def test_formulas_are_text_in_safe_csv(folder):
    formulas = ["=cmd|' /C calc'!A0", "+1+2", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\uff1d1"]
    plain = ["", "a=1", "-1.5", "+2", "-.5e-3", "'x", " x", None]
    rows = pa.table({"p0": [0.5] * 16, "p1": [0.5] * 16, "=x": formulas + plain, "n": range(-8, 8)})
    write_table(rows, "rows.parquet")
    command = ["predict", "cal.json", "rows.parquet", "--scores", "p0,p1"]
    done = run(*command, "-o", "sets.csv", "--safe-csv")
    assert done.exit_code == 0, done.output
    found = read_rows(Path("sets.csv").read_bytes(), "sets.csv")
    assert [row["'=x"] for row in found] == [*(f"'{text}" for text in formulas), *plain[:-1], ""]
    assert [int(row["n"]) for row in found] == list(range(-8, 8))
    assert run(*command, "-o", "sets.csv").exit_code == 0
    assert [row["=x"] for row in read_rows(Path("sets.csv").read_bytes(), "sets.csv")][:8] == formulas
    refused = run(*command, "-o", "sets.arrow", "--safe-csv")
    assert (refused.exit_code, refused.stderr) == (
        2,
        "Error: --safe-csv: the output is not CSV; leave it out.\n",
    )


def test_labels_are_text_in_safe_csv_too(folder):
    classes = ["-", "=1", "0", "+"]
    controller = orisk.RiskController(alpha=0.1, classes=classes)
    controller.calibrate([[0.25] * 4] * 20, classes * 5).save("signs.json")
    names = ["p-", "p=1", "p0", "p+"]
    write_table(pa.table({name: [0.25] for name in names}), "rows.csv")
    command = ["predict", "signs.json", "rows.csv", "--scores", ",".join(names), "-o", "-", "--safe-csv"]
    done = run(*command)
    assert done.exit_code == 0, done.output
    [row] = read_rows(done.stdout.encode(), "sets.csv")
    assert row == {"lower": "'-", "upper": "'+", "size": "4"}


# places


def test_links_in_a_circle_and_long_names_as_output(folder):
    write_table(table(), "rows.arrow")
    command = ["predict", "cal.json", "rows.arrow", "--scores", "p0,p1", "-o"]
    Path("loop.csv").symlink_to("loop.csv")
    done = run(*command, "loop.csv")
    assert (done.exit_code, done.stderr.startswith("Error: --out: can't write to loop.csv (")) == (1, True)
    long = "x" * 240 + ".csv"
    assert run(*command, long).exit_code == 0
    assert len(read_rows(Path(long).read_bytes(), long)) == N_ROWS


def test_times_that_python_can_not_hold_are_said(folder):
    times = pa.array([2**62] * N_ROWS, pa.timestamp("us"))
    Path("rows.arrow").write_bytes(encoded(table(at=times), "rows.arrow"))
    command = ["predict", "cal.json", "rows.arrow", "--scores", "p0,p1", "-o", "sets.jsonl"]
    done = run(*command)
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1].startswith("Error: sets.jsonl: can't be written as jsonl (")
