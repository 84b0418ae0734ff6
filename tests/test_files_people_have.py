"""Files as spreadsheets and other programs write them give what the plain file gives, and a note says so."""

import gzip
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from command import refusal, run, succeeds
from file_formats import read_rows, score_table, workbook, write_table

import ordinalrisk as orisk

SCALE = ["very poor", "so-so", "good"]
NAMES = ["p_very_poor", "p_so_so", "p_good"]
N_ROWS = 150


@pytest.fixture(scope="module")
def rows(draw):
    """Scores of three decimals that add up to 1, and labels."""
    proba, labels = draw(N_ROWS, 3, seed=3)
    thousandths = np.round(proba * 1000).astype(int)
    thousandths[:, 2] = 1000 - thousandths[:, :2].sum(axis=1)
    return thousandths / 1000, labels


@pytest.fixture
def controller(rows):
    return orisk.RiskController(alpha=0.2, classes=SCALE).calibrate(rows[0], np.array(SCALE)[rows[1]])


def point(value):
    return f"{value:.3f}"


def comma(value):
    return point(value).replace(".", ",")


def percent(value):
    return f"{value * 100:.1f}%"


def percent_with_comma(value):
    return f"{value * 100:.1f} %".replace(".", ",")


def grouped(value):
    return f"{round(value * 100_000):,}"


def grouped_with_points(value):
    return grouped(value).replace(",", ".")


def grouped_with_spaces(value):
    return grouped(value).replace(",", "\u202f")


def table(rows, spell=point, delimiter=",", quote="", names=NAMES, labels=SCALE, before=""):
    """The text of a table, as a program writes it that spells its numbers in some way."""
    lines = [["id", *names, "label"]]
    for i, (scores, label) in enumerate(zip(*rows, strict=True)):
        lines.append([f"{i:03d}", *(f"{quote}{spell(score)}{quote}" for score in scores), labels[label]])
    return before + "".join(
        delimiter.join(f'"{cell}"' if i == 0 else cell for cell in line) + "\r\n"
        for i, line in enumerate(lines)
    )


def calibrated(path, **options):
    """The calibration of a file with the classes of the scale, and what was said about the file."""
    heard = []
    options = {"classes": SCALE} | options
    found = orisk.jobs.calibrate(orisk.RiskController(alpha=0.2), path, note=heard.append, **options)
    return found, " ".join(sentence for sentence in heard if sentence.startswith(str(path)))


# how numbers are spelled, what separates values, the quote around numbers, the encoding, more; what is said
_PERCENT = "percent signs (20% is 0.2)"
KINDS = {
    "standard": (point, ",", "", "utf-8", {}, ""),
    "byte order mark": (point, ",", "", "utf-8-sig", {}, ""),
    "quoted numbers": (point, ",", '"', "utf-8", {}, ""),
    "semicolons": (point, ";", "", "utf-8", {}, "has semicolons between the values"),
    "German Excel": (comma, ";", "", "utf-8-sig", {}, "semicolons between the values and decimal commas"),
    "German percentages": (percent_with_comma, ";", "", "utf-8", {}, f"decimal commas and {_PERCENT}"),
    "percentages": (percent, ",", "", "utf-8", {}, f"has {_PERCENT}"),
    "Unicode text of Excel": (point, "\t", "", "utf-16", {}, "tabs between the values and text in UTF-16"),
    "the same in German": (comma, "\t", "", "utf-16", {}, "tabs .*, text in UTF-16 and decimal commas"),
    "big endian": (comma, "\t", "", "utf-16-be", {"before": "\ufeff"}, "text in UTF-16"),
    "quoted decimal commas": (comma, ",", '"', "utf-8", {}, "has decimal commas"),
    "vertical bars": (point, "|", "", "utf-8", {}, "has vertical bars between the values"),
    "declared": (comma, ";", "", "utf-8", {"before": "sep=;\r\n"}, "semicolons between the values"),
    "counts": (grouped, ",", '"', "utf-8", {}, "has thousands separators"),
    "German counts": (grouped_with_points, ";", "", "utf-8", {}, "decimal"),
    "French counts": (grouped_with_spaces, ";", "", "utf-8", {}, "thousands separators"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_it_is_read_like_the_plain_file_and_said(kind, packed, here, rows, controller):
    spell, delimiter, quote, encoding, more, said = KINDS[kind]
    options = {}
    if "counts" in kind:
        options["rescale"] = True
        if kind != "French counts":
            options["decimal"] = "," if "German" in kind else "."
            said = ""
    content = table(rows, spell, delimiter, quote, **more).encode(encoding)
    path = "rows.csv.gz" if packed else "rows.csv"
    Path(path).write_bytes(gzip.compress(content) if packed else content)
    found, heard = calibrated(path, **options)
    assert found.threshold_ == controller.threshold_
    assert found.data_blake3_ == controller.data_blake3_ or "rescale" in options
    assert re.search(said.replace("(", r"\(").replace(")", r"\)"), heard)
    assert heard == "" or said or "counts" in kind


def test_decimals_are_rounded_once(here):
    """A score is the float nearest to what is written, whatever its spelling."""
    rng = np.random.default_rng(0)
    digits = [f"{first:015d}" for first in rng.integers(0, 10**15, 200)]
    lines = [
        f"{d[:2]},{d[2:]}%;{99 - int(d[:2])},{10**13 - int(d[2:]):013d}%;{i % 2}"
        for i, d in enumerate(digits)
    ]
    Path("rows.csv").write_text("p0;p1;label\n" + "\n".join(lines))
    exact = [[float(f"0.{d}"), float(f"0.{99 - int(d[:2]):02d}{10**13 - int(d[2:]):013d}")] for d in digits]
    found, _ = calibrated("rows.csv", classes=[0, 1])
    assert found.data_blake3_ == orisk.RiskController(alpha=0.2).calibrate(exact, [0, 1] * 100).data_blake3_


@pytest.mark.parametrize("command", ["calibrate", "evaluate", "report", "predict", "monitor", "compare"])
def test_commands_say_it_and_take_the_options(command, here, rows, controller):
    Path("rows.csv").write_text(table(rows, comma, ";"))
    controller.save("cal.json")
    given = {
        "calibrate": ["rows.csv", "--alpha", "0.2", "-o", "new.json"],
        "compare": ["rows.csv", "--alpha", "0.2"],
        "predict": ["cal.json", "rows.csv", "-o", "sets.csv"],
        "monitor": ["state.json", "cal.json", "rows.csv"],
    }.get(command, ["cal.json", "rows.csv"])
    done = run(command, *given)
    said = "Note: rows.csv has semicolons between the values and decimal commas; if that is wrong, set "
    assert f"{said}--delimiter or --decimal." in done.stderr.splitlines()
    again = ["--again"] if command == "monitor" else []
    given += again
    done = run(command, *given, "--delimiter", ";", "--decimal", ",")
    assert done.exit_code in (0, 3)
    assert "decimal" not in done.stderr
    assert refusal(2, command, *given, "--sheet", "a").endswith("a CSV file; leave it out.")
    Path("rows.csv").write_text(table(rows, point, "\t"))
    assert run(command, *given, "--delimiter", "tab").exit_code in (0, 3)


def test_kept_columns_stay_the_text_that_they_are(here, rows, controller):
    lines = table(rows, comma, ";").splitlines()
    Path("rows.csv").write_text(
        "\n".join(f"{line};{'12,50' if i else 'price'}" for i, line in enumerate(lines))
    )
    with pytest.warns(UserWarning, match="decimal commas"):
        orisk.jobs.predict(controller, "rows.csv", "sets.csv", scores=NAMES)
    found = read_rows(Path("sets.csv").read_bytes(), "sets.csv")
    assert {row["price"] for row in found} == {"12,50"}
    assert [int(row["size"]) for row in found] == controller.predict_set(rows[0]).size.tolist()


def test_weights_have_decimal_commas_too(here, rows):
    proba, labels = rows
    weights = np.resize([0.5, 1250.25], N_ROWS)
    lines = table(rows, comma, ";").splitlines()
    spelled = ["w", *(f"{weight:.2f}".replace(".", ",") for weight in weights)]
    for text in (spelled, [each.replace("1250", "1.250") for each in spelled]):
        Path("rows.csv").write_text(
            "\n".join(f"{line};{weight}" for line, weight in zip(lines, text, strict=True))
        )
        found, _ = calibrated("rows.csv", weight="w")
        expected = orisk.RiskController(alpha=0.2, classes=SCALE).calibrate(
            proba, np.array(SCALE)[labels], sample_weight=weights
        )
        assert found.threshold_ == expected.threshold_
    lines[7] += ";1.5"
    Path("rows.csv").write_text(
        "\n".join(line if i == 7 else f"{line};{spelled[i]}" for i, line in enumerate(lines))
    )
    with pytest.raises(ValueError, match=r"row 7, column 'w': '1\.5' is not a number"):
        calibrated("rows.csv", weight="w")


@pytest.mark.parametrize("dask", [None, "local:1"])
def test_other_files_are_written_like_the_first(dask, here, rows, controller):
    for part in range(2):
        mine = tuple(each[part::2] for each in rows)
        Path(f"part-{part}.csv").write_text(table(mine, comma, ";"))
    found, _ = calibrated("part-*.csv", dask=dask)
    assert found.threshold_ == controller.threshold_
    if dask is None:
        Path("part-1.csv").write_text(table(rows, point, ";"))
        with pytest.raises(
            ValueError, match=r"part-1.csv: row 1, column 'p_very_poor': '0\.\d+' is not a number"
        ):
            calibrated("part-*.csv")
        Path("part-1.csv").write_text(table(rows, point, ","))
        with pytest.raises(ValueError, match=r"part-1\.csv: ',' seems to separate the values, and not ';'"):
            calibrated("part-*.csv")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "p0;p1;label\n" + "1,234;2,345;0\n2,345;1,234;1\n" * 9,
            r"column 'p0': can't tell whether .* `decimal`",
        ),
        (
            "p0;p1;label\n" + "0,5;0.5;0\n0,25;0.75;1\n" * 9,
            "'p0' has decimal commas, column 'p1' decimal points; .* `decimal`",
        ),
        ("a,p0;p1\n" + "0,5;1\n" * 9, "',' and ';' may separate the values; say which does with `delimiter`"),
    ],
    ids=["a thousand or one", "both signs", "two delimiters"],
)
def test_what_the_file_leaves_open_must_be_said(content, said, here):
    Path("rows.csv").write_text(content)
    with pytest.raises(ValueError, match=said):
        calibrated("rows.csv", classes=[0, 1], scores="p0,p1")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"decimal": "x"}, "`decimal` must be '.' or ','; got 'x'"),
        ({"delimiter": ";;"}, "`delimiter` must be one sign, such as ';' or a tab; got ';;'"),
        ({"delimiter": "\t"}, r"';' seems to separate the values, and not '\\t'; correct `delimiter`"),
        ({"sheet": "one"}, "`sheet` has no meaning for rows.csv, a CSV file; leave it out"),
        (
            {"decimal": "."},
            "row 1, column 'p_very_poor': '0,.*' is not a number; .* set the decimal sign with `decimal`",
        ),
    ],
)
def test_wrong_options_are_said(options, said, here, rows):
    Path("rows.csv").write_text(table(rows, comma, ";"))
    with pytest.raises(ValueError, match=said):
        calibrated("rows.csv", **options)


def test_text_in_another_encoding_gets_the_name_that_excel_has_for_utf_8(here, rows):
    Path("rows.csv").write_bytes(table(rows, comma, ";").replace("\n007;", "\nJürgen;").encode("cp1252"))
    with pytest.raises(
        ValueError, match=r"row 8, column 'id': .*invalid UTF8 data; .* in Excel as 'CSV UTF-8'"
    ):
        orisk.jobs.predict(
            orisk.RiskController(alpha=0.2, classes=SCALE).calibrate(rows[0], np.array(SCALE)[rows[1]]),
            "rows.csv",
            "sets.csv",
            scores=NAMES,
            note=lambda said: None,
        )


@pytest.mark.parametrize("row", [3, 77])
@pytest.mark.parametrize("spell", [comma, percent_with_comma])
@pytest.mark.parametrize("before", ["", "sep=;\r\n"])
def test_what_is_not_a_number_is_placed(row, spell, before, here, rows):
    lines = table(rows, spell, ";", before=before).splitlines()
    at = row + bool(before)
    lines[at] = lines[at].replace(",", "x", 1)
    Path("rows.csv").write_text("\n".join(lines))
    with pytest.raises(
        ValueError, match=rf"rows.csv: row {row}, column 'p_very_poor': '\S+x\S+.*' is not a number"
    ):
        calibrated("rows.csv")


def test_only_the_first_rows_are_looked_at(here, rows, controller):
    """A file whose first rows have no percent signs is not read as one that has."""
    many = tuple(np.concatenate([each] * 30) for each in rows)
    text = table(many, point)
    last = table((rows[0][:1], rows[1][:1]), percent).splitlines()[1]
    Path("rows.csv").write_text(text + last)
    with pytest.raises(
        ValueError, match=rf"row {30 * N_ROWS + 1}, column 'p_very_poor': '.*%' is not a number"
    ):
        calibrated("rows.csv")


def test_text_with_commas_and_semicolons_stays_a_plain_file(here, rows, controller):
    lines = table(rows).splitlines()
    notes = ['"a; b, c"', '"1,5"', "12 % less; or so", "1'000"] * N_ROWS
    text = [f"{line},{'note; more' if i == 0 else notes[i]}" for i, line in enumerate(lines)]
    Path("rows.csv").write_text("\n".join(text))
    found, heard = calibrated("rows.csv")
    assert (found.threshold_, heard) == (controller.threshold_, "")


# names of columns and classes


def test_names_of_columns_and_classes_differ_in_their_spaces(here, rows, controller):
    Path("rows.csv").write_text(table(rows))
    for classes in (SCALE, None):
        found, _ = calibrated("rows.csv", classes=classes)
        assert found.classes_.tolist() == SCALE
        assert found.threshold_ == controller.threshold_
    other_orders = {
        ("Very Poor", "So So", "Good"): [0, 1, 2],
        ("p.good", "p.very.poor", "p.so-so"): [2, 0, 1],
    }
    for names, order in other_orders.items():
        Path("rows.csv").write_text(table((rows[0][:, order], rows[1]), names=names))
        assert calibrated("rows.csv")[0].threshold_ == controller.threshold_


def test_labels_that_are_not_the_numbers_of_columns_are_refused(here, rows):
    Path("rows.csv").write_text(table(rows, names=["p0", "p1", "p2"], labels=["0 ", "1 ", "2 "]))
    with pytest.raises(ValueError, match=r"matches the label '[012] '; correct it"):
        calibrated("rows.csv", classes=None)


def test_names_that_could_be_two_classes_are_refused(here, rows):
    Path("rows.csv").write_text(table(rows, names=["p_a_b", "p_c", "p_a b"]))
    with pytest.raises(ValueError, match="which of the columns"):
        calibrated("rows.csv", classes=["a-b", "c", "a.b"])


@pytest.mark.parametrize("first", [0, 1])
def test_columns_named_by_number_are_guessed(first, here, rows):
    numbers = [first + k for k in range(3)]
    Path("rows.csv").write_text(table(rows, names=list(map(str, numbers)), labels=list(map(str, numbers))))
    found, _ = calibrated("rows.csv", classes=None)
    assert found.classes_.tolist() == numbers
    assert found.columns_.scores == tuple(map(str, numbers))


@pytest.mark.parametrize("names", [["2019", "2020", "2021"], ["1", "2", "4"], ["2", "3", "4"]])
def test_other_numbers_are_not(names, here, rows):
    Path("rows.csv").write_text(table(rows, names=names, labels=names))
    with pytest.raises(ValueError, match="can't tell which columns hold the scores"):
        calibrated("rows.csv", classes=None)


# Excel


def sheet(rows, spell=float, names=NAMES):
    scores = [[i, *map(spell, each), SCALE[label]] for i, (each, label) in enumerate(zip(*rows, strict=True))]
    return [["id", *names, "label"], *scores]


@pytest.fixture
def excel():
    return pytest.importorskip("python_calamine")


@pytest.mark.parametrize("name", ["rows.xlsx", "rows", "rows.csv"])
def test_the_first_sheet_of_a_workbook(name, excel, here, rows, controller):
    Path(name).write_bytes(
        workbook({"Draft": [["p1", "p2"], [1, 2]], "Scores": sheet(rows)}, hidden=["Draft"])
    )
    found, heard = calibrated(name)
    assert (found.data_blake3_, heard) == (controller.data_blake3_, "")


def test_another_sheet(excel, here, rows, controller):
    Path("rows.xlsx").write_bytes(workbook({"About": [["a", "b"], [1, 2]], "Scores": sheet(rows)}))
    assert calibrated("rows.xlsx", sheet="Scores")[0].data_blake3_ == controller.data_blake3_
    with pytest.raises(
        ValueError, match=r"has no sheet 'scores' \(there are About, Scores\); correct `sheet`"
    ):
        calibrated("rows.xlsx", sheet="scores")
    done = run("calibrate", "rows.xlsx", "--alpha", "0.2", "--sheet", "Scores", "-o", "cal.json")
    assert done.exit_code == 0, done.stderr
    Path("rows.xlsx").write_bytes(workbook({"Scores": sheet(rows), "About": [["a"], [1]]}))
    assert "rows.xlsx: sheet 'Scores' is read; set `sheet` for About." in calibrated("rows.xlsx")[1]


def test_cells_of_all_kinds_pass_through(excel, here, rows, controller):
    cells = sheet(rows)
    for i, row in enumerate(cells):
        row += ["good?", "mixed", None] if i == 0 else [i % 2 == 0, i if i % 2 else "n/a", None]
    cells.insert(40, [])
    Path("rows.xlsx").write_bytes(workbook({"Scores": [[], *([None, *row] for row in cells), [None, None]]}))
    orisk.jobs.predict(controller, "rows.xlsx", "sets.jsonl", scores=NAMES, keep="*")
    found = read_rows(Path("sets.jsonl").read_bytes(), "sets.jsonl")
    assert [row["id"] for row in found] == [*range(N_ROWS)]
    assert found[0]["good?"] is False
    assert [row["mixed"] for row in found[:2]] == ["1", "n/a"]
    assert [row["size"] for row in found] == controller.predict_set(rows[0]).size.tolist()
    assert set(found[0]) == {"id", *NAMES, "label", "good?", "mixed", "lower", "upper", "size"}


@pytest.mark.parametrize("spell", [comma, percent, percent_with_comma, point])
def test_numbers_that_are_text_in_excel(spell, excel, here, rows, controller):
    Path("rows.xlsx").write_bytes(workbook({"Scores": sheet(rows, spell)}))
    found, heard = calibrated("rows.xlsx")
    assert found.data_blake3_ == controller.data_blake3_
    assert ("decimal commas" in heard) == (spell in (comma, percent_with_comma))


@pytest.mark.parametrize("every", [2, 20])
@pytest.mark.parametrize("spell", [comma, percent_with_comma, point])
def test_cells_that_are_numbers_have_no_decimal_sign(every, spell, excel, here, rows, controller):
    """Some cells are text, others numbers: only the text shows how people write a decimal sign."""
    proba, labels = rows
    cells = [*sheet(rows, spell)]
    for i in range(3, N_ROWS + 1, every):
        cells[i] = [i - 1, *map(float, proba[i - 1]), SCALE[labels[i - 1]]]
    Path("rows.xlsx").write_bytes(workbook({"Scores": cells}))
    found, heard = calibrated("rows.xlsx")
    assert found.data_blake3_ == controller.data_blake3_
    assert ("decimal commas" in heard) == (spell != point)


def test_numbers_in_cells_do_not_turn_commas_into_thousands(excel, here, rows):
    """2,091 may be two thousand or two; that another cell is the number 5.73 shows neither."""
    logits = np.round(np.log(np.maximum(rows[0], 1e-3)) + 9, 3)
    assert (logits >= 1).all()
    as_text = [[*map(comma, each), int(label)] for each, label in zip(logits, rows[1], strict=True)]
    as_text[4][:3] = 5.73, 6.5, 7.25
    names = ["logit_0", "logit_1", "logit_2", "label"]
    Path("rows.xlsx").write_bytes(workbook({"Scores": [names, *as_text]}))
    with pytest.raises(ValueError, match=r"column 'logit_0': can't tell whether .* `decimal`"):
        calibrated("rows.xlsx", classes=[0, 1, 2])
    found, _ = calibrated("rows.xlsx", classes=[0, 1, 2], decimal=",")
    logits[4] = 5.73, 6.5, 7.25
    proba = orisk.probabilities.softmax(logits)
    expected = orisk.RiskController(alpha=0.2).calibrate(proba, rows[1])
    assert found.data_blake3_ == expected.data_blake3_


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([], "sheet 'Scores' is empty; column names and rows are needed"),
        ([["id", *NAMES, "label"]], "has no rows"),
        (
            [["id", None, None], [1, 2, 3]],
            "the first row with values must name the columns, but columns B, C have no name",
        ),
        ([["p0", "p1", "label"], [0.5, None, 0]], "row 1, column 'p1': the probability is missing"),
        (
            [["p0", "p1", "label"], [0.5, "half", 0]],
            "column 'p1' (holds string, not numbers|is named like a score)",
        ),
        ([["p0", "p0", "label"], [0.5, 0.5, 0]], "column 'p0' is there more than once"),
    ],
)
def test_a_sheet_that_is_no_table_of_scores(cells, said, excel, here):
    Path("rows.xlsx").write_bytes(workbook({"Scores": cells}))
    with pytest.raises(ValueError, match=said):
        calibrated("rows.xlsx", classes=None)


def test_a_workbook_that_is_cut_is_bad_data(excel, here, rows):
    content = workbook({"Scores": sheet(rows)})
    Path("rows.xlsx").write_bytes(content[: len(content) // 2])
    with pytest.raises(
        ValueError, match=r"^rows.xlsx: is not a whole Excel file \(.*; save or export it again"
    ):
        calibrated("rows.xlsx")


def test_a_workbook_that_unpacks_to_gigabytes_is_refused(excel, here, rows):
    content = bytearray(workbook({"Scores": sheet(rows)}))
    at = content.index(b"PK\x01\x02") + 24  # the size of the first part in the list of parts
    content[at : at + 4] = (2**32 - 2).to_bytes(4, "little")
    Path("rows.xlsx").write_bytes(content)
    with pytest.raises(ValueError, match="is larger than 2,147,483,648 bytes unpacked; export it as CSV"):
        calibrated("rows.xlsx")


def test_without_the_extra_it_is_said_what_to_install(here, rows, monkeypatch):
    Path("rows.xlsx").write_bytes(workbook({"Scores": sheet(rows)}))
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(
        ValueError, match=r'python-calamine, which is not installed: pip install "ordinalrisk\[excel\]"'
    ):
        calibrated("rows.xlsx")


def test_a_workbook_in_a_pipe_and_on_a_cluster(excel, here, rows, controller):
    Path("rows.xlsx").write_bytes(workbook({"Scores": sheet(rows)}))
    controller.save("cal.json")
    shown = succeeds(
        "predict",
        "cal.json",
        "-",
        "-o",
        "-",
        "--scores",
        ",".join(NAMES),
        input=Path("rows.xlsx").read_bytes(),
    )
    assert len(shown.stdout.splitlines()) == N_ROWS + 1
    found, _ = calibrated("rows.xlsx", dask="local:1")
    assert found.threshold_ == controller.threshold_


# formats of outputs


@pytest.mark.parametrize("name", ["sets.xlsx", "zz.foo", "sets"])
def test_sets_are_not_written_in_a_format_that_nobody_named(name, here, rows, controller):
    write_table(score_table(*rows, NAMES), "rows.csv")
    problem = (
        "Excel files are not written: sets.xlsx" if "xlsx" in name else f"can't infer the format of {name}"
    )
    with pytest.raises(
        ValueError, match=rf"{problem}; use a name that ends in \.csv, .* give `output_format`"
    ):
        orisk.jobs.predict(controller, "rows.csv", name, scores=NAMES)
    assert not Path(name).exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        orisk.jobs.predict(controller, "rows.csv", name, scores=NAMES, output_format="csv")
    controller.save("cal.json")
    line = refusal(2, "predict", "cal.json", "rows.csv", "--scores", ",".join(NAMES), "-o", name)
    assert line.startswith("--out: ")
    assert line.endswith("or give --output-format.")


def test_workbooks_are_read_but_not_written(excel, here, rows, controller):
    for part in range(2):
        Path(f"part-{part}.xlsx").write_bytes(workbook({"Scores": sheet(rows)}))
    with pytest.raises(ValueError, match="Excel files are read, but not written; give `output_format`"):
        orisk.jobs.predict(controller, "part-*.xlsx", "sets", scores=NAMES)
    orisk.jobs.predict(controller, "part-*.xlsx", "sets", scores=NAMES, output_format="csv")
    assert {path.name for path in Path("sets").iterdir()} == {"part-0.csv", "part-1.csv", "_ordinalrisk.json"}
    with pytest.raises(
        ValueError, match="output_format must be one of csv, parquet, arrow, jsonl; got 'excel'"
    ):
        orisk.jobs.predict(controller, "part-0.xlsx", "x.csv", output_format="excel")
