"""The file story through the commands, and every way in which it can go wrong."""

import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import warnings
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import INSTALLED, PATIENT, refusal, run, run_installed, succeeds
from effort import PATIENCE, wait_until
from file_formats import NAMES, encoded, read_rows, score_table, write_table
from pyarrow import parquet
from sizes import read_few_rows_at_once, write_few_rows_at_once
from strategies import RULE_NAMES
from unchecked import UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import metrics
from ordinalrisk.jobs import report_job
from ordinalrisk.selection.compare import ranked

pytestmark = UNCHECKED

GRADES = ["None", "Mild", "Moderate", "Severe"]
PLAIN = ["--classes", ",".join(GRADES), "--alpha", "0.1"]
WEIGHTED = [*PLAIN, "--weights", "1,1,2,4"]
N_ROWS = 257
FORMATS = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


def said(result):
    """Standard error of the installed command, which is no traceback."""
    text = result.stderr.decode()
    assert "Traceback" not in text
    return text


@pytest.fixture(scope="module")
def rows(draw):
    return draw(N_ROWS, 4, seed=5)


@pytest.fixture(scope="module")
def table(rows):
    proba, labels = rows
    ids = [f"{i:03d}" for i in range(N_ROWS)]
    notes = [["größer", 'a "b", c', "two\nlines", "", "日本", "NA"][i % 6] for i in range(N_ROWS)]
    return score_table(proba, [GRADES[k] for k in labels], id=ids, note=notes)


@pytest.fixture(scope="module")
def controller(rows):
    proba, labels = rows
    named = [GRADES[k] for k in labels]
    return orisk.RiskController(orisk.WeightedLoss([1, 1, 2, 4]), 0.1, classes=GRADES).calibrate(proba, named)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory, table):
    """What calibrate writes."""
    folder = tmp_path_factory.mktemp("calibrated")
    write_table(table, folder / "rows.parquet")
    succeeds("calibrate", folder / "rows.parquet", *WEIGHTED, "-o", folder / "cal.json")
    return (folder / "cal.json").read_bytes()


@pytest.fixture
def files(tmp_path, monkeypatch, table, calibrated):
    """A folder with a calibration and the rows it was made from, which is the current one."""
    monkeypatch.chdir(tmp_path)
    write_table(table, "rows.parquet")
    Path("cal.json").write_bytes(calibrated)
    return tmp_path


@pytest.fixture
def small_batches(monkeypatch):
    read_few_rows_at_once(monkeypatch, 50, n_bytes=3000)


def saved(path_or_text):
    """The content of a calibration file without the columns, which the library does not know."""
    text = path_or_text.read_text() if isinstance(path_or_text, Path) else path_or_text
    document = json.loads(text)
    return {key: value for key, value in document.items() if key not in ("columns", "digests")}


def saved_by_library(controller, folder):
    controller.save(folder / "library.json")
    return saved(folder / "library.json")


def intervals(found, prefix=""):
    return [(row[f"{prefix}lower"], row[f"{prefix}upper"], int(row[f"{prefix}size"])) for row in found]


def expected_intervals(controller, proba, **options):
    sets = controller.predict_set(proba, **options)
    return list(zip(sets.lower.tolist(), sets.upper.tolist(), sets.size.tolist(), strict=True))


def temporary_files(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]


# the story


@pytest.fixture(scope="module", params=NAMES.values(), ids=NAMES)
def story(request, tmp_path_factory, table):
    """Calibrated, predicted and evaluated, from and to one format."""
    folder, name = tmp_path_factory.mktemp("story"), request.param
    write_table(table, folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        calibrated = run("calibrate", name, *WEIGHTED, "-o", "cal.json")
        predicted = run("predict", "cal.json", name, "-o", f"sets.{name}")
        evaluated = run("evaluate", "cal.json", name, "--json", "metrics.json")
    return folder, name, calibrated, predicted, evaluated


def test_every_step_of_the_story_succeeds(story):
    folder, name, calibrated, predicted, evaluated = story
    assert [step.exit_code for step in story[2:]] == [0, 0, 0]
    assert calibrated.stderr == (
        "Note: The label is in the column 'y'.\n"
        "Note: The scores of the classes None, Mild, Moderate, Severe are in the columns p0, p1, p2, p3.\n"
    )
    assert predicted.stderr == evaluated.stderr == ""
    assert calibrated.stdout.endswith("Wrote cal.json\n")
    assert predicted.stdout.endswith(f"Wrote sets.{name}\n")
    assert {path.name for path in folder.iterdir()} == {name, f"sets.{name}", "cal.json", "metrics.json"}


def test_a_calibration_by_file_is_that_of_the_library(story, controller, tmp_path):
    folder, *_ = story
    assert saved(folder / "cal.json") == saved_by_library(controller, tmp_path)
    loaded = orisk.RiskController.load(folder / "cal.json")
    assert loaded.threshold_ == controller.threshold_
    assert loaded.data_blake3_ == controller.data_blake3_
    assert (loaded.columns_.scores, loaded.columns_.label) == (("p0", "p1", "p2", "p3"), "y")


def test_predicted_intervals_are_those_of_the_library(story, controller, rows):
    folder, name, _, predicted, _ = story
    found = read_rows((folder / f"sets.{name}").read_bytes(), name)
    assert intervals(found) == expected_intervals(controller, rows[0])
    mean = controller.predict_set(rows[0]).size.mean()
    assert predicted.stdout.startswith(f"{N_ROWS} rows, {mean:.2f} labels in a set on average")


def test_other_columns_pass_through_unchanged(story, table):
    folder, name, *_ = story
    found = read_rows((folder / f"sets.{name}").read_bytes(), name)
    assert list(found[0]) == ["id", "note", "y", "lower", "upper", "size"]
    kept = [{key: row[key] for key in ("id", "note", "y")} for row in found]
    assert kept == table.select(["id", "note", "y"]).to_pylist()
    assert found[7]["id"] == "007"


def test_evaluated_numbers_are_those_of_the_library(story, controller, rows):
    folder, *_, evaluated = story
    document = json.loads((folder / "metrics.json").read_text())
    assert document == expected_evaluation(controller, rows) | {
        key: document[key] for key in ("package_version", "verdict_text", "headline", "sentence", "far_off")
    }
    shown = evaluated.stdout
    assert "which can't test it" in document["verdict_text"]
    assert " ".join(document["verdict_text"].split()) in " ".join(shown.split())
    for metric in ("risk", "coverage", "mean_size"):
        assert all(f"{part:.4f}" in shown for part in document[metric])
    for grade in document["classes"]:
        assert re.search(
            rf"^ *{grade['label']} +{grade['rows']} +{grade['coverage']:.4f} ", shown, re.MULTILINE
        )


def expected_evaluation(controller, rows, alpha=0.1):
    proba, labels = rows
    y, loss = [GRADES[k] for k in labels], controller.loss
    sets = controller.predict_set(proba, alpha=alpha)
    by_class = {
        "coverage": metrics.class_coverage(y, sets),
        "risk": metrics.class_risk(y, sets, loss),
        "size": metrics.class_size(y, sets),
    }
    return {
        "format": "ordinalrisk evaluation",
        "alpha": str(alpha),
        "recalibration": None,
        "rows": len(y),
        "colour": "amber",
        "verdict": "nothing",  # they are the rows of the calibration
        "looked_at": 8,  # four classes, sets of three sizes and, as weights are unequal, all rows
        "drift": None,
        "total_loss": str(sum(map(Fraction, metrics.losses(y, sets, loss)))),
        "confidence": 0.95,
        "risk": list(metrics.risk(y, sets, loss, confidence=0.95)),
        "coverage": list(metrics.coverage(y, sets, confidence=0.95)),
        "mean_size": list(metrics.mean_size(sets, confidence=0.95)),
        "sizes": np.bincount(sets.size, minlength=5)[1:].tolist(),
        "classes": [
            {"label": label, "rows": int((labels == k).sum())}
            | {metric: float(values[k]) for metric, values in by_class.items()}
            for k, label in enumerate(GRADES)
        ],
    }


def test_a_calibration_goes_from_pipe_to_pipe(files, table, controller):
    done = run_installed("calibrate", "-", *WEIGHTED, "-o", "-", input=encoded(table, "rows.csv"))
    assert done.returncode == 0, done.stderr
    assert saved(done.stdout.decode()) == saved_by_library(controller, files)
    assert said(done).endswith("Wrote standard output\n")


def test_rows_go_from_pipe_to_pipe(files, table, controller, rows):
    piped = ["-", "-o", "-", "--output-format", "parquet"]
    done = run_installed("predict", "cal.json", *piped, input=encoded(table, "stream.arrow"))
    assert done.returncode == 0, done.stderr
    assert intervals(read_rows(done.stdout, "piped.parquet")) == expected_intervals(controller, rows[0])
    assert said(done).startswith(f"{N_ROWS} rows, ")


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet", "stream.arrow", "rows.jsonl"])
def test_every_format_is_told_by_its_first_bytes_and_written(name, files, table, controller, rows):
    plain = name.removesuffix(".gz").rpartition(".")[2]
    piped = ["-", "-o", "-", "--output-format", plain]
    done = succeeds("predict", "cal.json", *piped, input=encoded(table, name))
    found = read_rows(done.stdout_bytes, f"piped.{plain}")
    assert intervals(found) == expected_intervals(controller, rows[0])


def test_a_shell_may_put_a_pipe_in_the_place_of_a_file(files, table, controller, rows):
    write_table(table, "rows.csv")
    line = f"{INSTALLED} predict cal.json <(cat rows.csv) -o - --keep id | cat"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert intervals(read_rows(done.stdout, "sets.csv")) == expected_intervals(controller, rows[0])


def test_report_writes_the_page_and_the_same_as_json(files):
    reported = succeeds("report", "cal.json", "rows.parquet", "-o", "report.html")
    assert "Wrote report.html and report.json\n" in reported.stdout
    evaluated = succeeds("evaluate", "cal.json", "rows.parquet", "--json", "metrics.json")
    document, numbers = (json.loads(Path(f"{name}.json").read_text()) for name in ("report", "metrics"))
    stop = document["stops"][document["start"]]
    assert (document["alpha"], stop["alpha"]) == ("0.1", "0.1")
    assert [stop["risk"], stop["coverage"], stop["mean_size"], stop["sizes"]] == [
        numbers[key] for key in ("risk", "coverage", "mean_size", "sizes")
    ]
    assert document["test"]["file"] == "rows.parquet"
    assert document["cases"]["columns"] == ["id", "note"]
    assert " ".join(stop["verdict_text"].split()) in " ".join(evaluated.stdout.split())
    page = Path("report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")


def test_a_report_has_a_title_the_date_and_the_size_of_its_file(files):
    """The verdict of the page is that of evaluate, in the terminal too."""
    done = succeeds("report", "cal.json", "rows.parquet", "-o", "report.html", "--title", "Eyes & <more>")
    succeeds("evaluate", "cal.json", "rows.parquet", "--json", "metrics.json")
    document, numbers = (json.loads(Path(f"{name}.json").read_text()) for name in ("report", "metrics"))
    assert document["title"] == "Eyes & <more>"
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", document["date"])
    assert document["test"]["bytes"] == Path("rows.parquet").stat().st_size
    page = Path("report.html").read_text()
    assert "<h1>Eyes &amp; &lt;more&gt;</h1>" in page
    stop = document["stops"][document["start"]]
    for key in ("headline", "colour", "sentence"):
        assert stop[key] == numbers[key]
    assert f"{stop['colour'].upper()}: {stop['sentence']}" in " ".join(done.stdout.split())
    succeeds("report", "cal.json", "-", "-o", "piped.html", input=Path("rows.parquet").read_bytes())
    assert json.loads(Path("piped.json").read_text())["test"]["bytes"] is None


def default_losses(rows):
    return {found.loss_name: found.loss for found in orisk.compare(*rows, growths="paper", alphas=[0.5])}


def test_compare_ranks_the_rules_as_the_library_does(files, rows):
    done = succeeds(
        *("compare", "rows.parquet", "--classes", ",".join(GRADES), "--alpha", "0.1", "--alpha", "0.2"),
        *("--weights", "1,1,2,4", "--folds", "4", "--random-state", "3", "--json", "compared.json"),
    )
    losses = default_losses(rows) | {"weights 1,1,2,4": orisk.WeightedLoss([1, 1, 2, 4])}
    expected = ranked(orisk.compare(*rows, losses=losses, alphas=[0.1, 0.2], folds=4, random_state=3))
    document = json.loads(Path("compared.json").read_text())
    assert (document["rows"], document["rows_compared"], document["folds"], document["random_state"]) == (
        *(N_ROWS, N_ROWS),
        *(4, 3),
    )
    assert [
        (
            r["loss_name"],
            r["growth"],
            r["alpha"],
            r["risk"],
            tuple(r["mean_size"]),
            r["coverage"],
        )
        for r in document["results"]
    ] == [(r.loss_name, r.growth, r.alpha, r.risk, tuple(r.mean_size), r.coverage) for r in expected]
    shown = [line.split() for line in done.stdout.splitlines()]
    sizes = [[f"{number:.2f}" for number in result.mean_size] for result in expected]
    assert [
        cells[cells.index(rule) + 1 : cells.index(rule) + 4]
        for cells in shown
        for rule in RULE_NAMES
        if rule in cells
    ] == sizes


def test_compare_says_that_other_rows_must_calibrate(files):
    given = ["--classes", ",".join(GRADES), "--weights", "1,1.125,2.0625,4.03125", "--alpha", "0.001"]
    shown = succeeds("compare", "rows.parquet", *given, "--alpha", "0.2").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.endswith(
        "The mean size has an approximate 95 % interval (from, to). If two intervals\n"
        "overlap, the data do not show which rule has smaller sets.\n"
        "Calibrate on other rows than these: a loss, rule or alpha that was chosen on the\n"
        "calibration rows has no guarantee.\n"
    )
    described = " ".join(succeeds("compare", "--help").stdout.split())
    assert "Calibrate on other rows than you compare on." in described
    assert "Split your rows at random into two files first" in described


def test_compare_draws_a_sample_of_many_rows(files, rows):
    given = ["--classes", ",".join(GRADES), "--alpha", "0.2"]
    shown = succeeds("compare", "rows.parquet", *given, "--sample", 100, "--json", "compared.json").stdout
    assert shown.startswith("5-fold cross-validation on 100 rows, drawn at random from 257; smallest sets\n")
    document = json.loads(Path("compared.json").read_text())
    assert (document["rows"], document["rows_compared"]) == (N_ROWS, 100)

    def mean_sizes(*options):
        succeeds("compare", "rows.parquet", *given, *options, "--json", "compared.json")
        found = json.loads(Path("compared.json").read_text())["results"]
        return [each["mean_size"][0] for each in found]

    each_by_itself = ["--sample", 100, "--folds", 100]  # so the seed decides on the sample alone
    drawn = mean_sizes(*each_by_itself)
    assert drawn == pytest.approx(mean_sizes(*each_by_itself), rel=1e-12)
    assert drawn != pytest.approx(mean_sizes(*each_by_itself, "--random-state", 1), rel=1e-12)
    expected = [each.mean_size.value for each in ranked(orisk.compare(*rows, alphas=[0.2]))]
    assert expected == mean_sizes("--sample", N_ROWS)


# what is written is whole


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory, draw):
    """Files of half a million and two million rows whose scores alone take 40 and 160 MB."""
    folder = tmp_path_factory.mktemp("many")
    proba, labels = draw(50_000, 10, seed=1)
    block = score_table(proba, labels, id=range(50_000))
    for name, times in {"many": 10, "most": 40}.items():
        with parquet.ParquetWriter(folder / f"{name}.parquet", block.schema, compression="none") as writer:
            for _ in range(times):
                writer.write_table(block)
    write_table(block.slice(0, 1000), folder / "few.parquet")
    succeeds("calibrate", folder / "few.parquet", "--alpha", "0.1", "-o", folder / "cal.json")
    return folder


def hear_interrupts():
    """Tests may run where they are ignored, as in the background of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def killed_while_writing(folder, by):
    """Predict a large file over an old one, and end the process as soon as it writes."""
    old = folder / "sets.csv"
    old.write_bytes(b"old and whole")
    process = subprocess.Popen(
        [*PATIENT, "predict", "cal.json", "most.parquet", "-o", "sets.csv"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,
    )
    wait_until(
        lambda: any(path.stat().st_size > 0 for path in folder.glob(".sets.csv.*.tmp")),
        still_running=lambda: process.poll() is None,
    )
    process.send_signal(by)
    _, error = process.communicate(timeout=PATIENCE)
    left = temporary_files(folder)
    for name in left:
        (folder / name).unlink()
    assert old.read_bytes() == b"old and whole"
    return process.returncode, error.decode(), left


def test_a_killed_process_leaves_the_old_file_as_it_was(many_rows):
    code, error, _ = killed_while_writing(many_rows, signal.SIGKILL)
    assert (code, error) == (-signal.SIGKILL, "")


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_asked_to_end_leaves_nothing_behind(by, many_rows):
    code, error, left = killed_while_writing(many_rows, by)
    assert (code, error) == (128 + by, "Error: interrupted; files that were written are whole.\n")
    assert left == []


@contextmanager
def files_of_at_most(n_bytes):
    """The files of this process are limited in size by the system."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_gets_too_large_leaves_the_old_one_as_it_was(many_rows, tmp_path):
    target = tmp_path / "limited.csv"
    target.write_bytes(b"old and whole")
    with files_of_at_most(1 << 20):
        line = refusal(1, "predict", many_rows / "cal.json", many_rows / "many.parquet", "-o", target)
    assert line == f"--out: can't write to {target} (File too large)."
    assert target.read_bytes() == b"old and whole"
    assert temporary_files(tmp_path) == []


def test_a_full_disk_leaves_the_old_file_as_it_was(many_rows, tmp_path):
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("no disk of a megabyte can be mounted here")
    try:
        target = tmp_path / "sets.parquet"
        target.write_bytes(b"old and whole")
        line = refusal(1, "predict", many_rows / "cal.json", many_rows / "many.parquet", "-o", target)
        assert line == f"--out: can't write to {target} (No space left on device)."
        assert target.read_bytes() == b"old and whole"
        assert temporary_files(tmp_path) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["predict", "cal.json", "rows.parquet", "-o", "-"],
            "--out: can't write to - (No space left on device).",
        ),
        (["evaluate", "cal.json", "rows.parquet"], "standard output: No space left on device."),
    ],
    ids=["sets", "tables"],
)
def test_a_full_disk_behind_standard_output_gets_one_line(arguments, line, files):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([INSTALLED, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, said(done)) == (1, f"Error: {line}\n")


@pytest.mark.parametrize(
    "line", ["predict cal.json many.parquet -o - | head -n 1", "evaluate cal.json few.parquet | true"]
)
def test_nobody_reading_on_is_no_error_to_speak_of(line, many_rows):
    script = f"{INSTALLED} {line}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], cwd=many_rows, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (141, b"")
    assert done.stdout.count(b"\n") == line.count("head")


OLD_NUMBERS = '{"format":"ordinalrisk report","schema_version":1}'


def test_report_replaces_both_files_or_none(files):
    Path("report.html").write_text("old page")
    Path("report.json").write_text(OLD_NUMBERS)
    with open("rows.csv", "w") as file:
        file.write("p0,p1,p2,p3,y\n0.25,0.25,0.25,0.25,Mild\n0.25,0.25,0.25,0.5,Mild\n")
    assert refusal(1, "report", "cal.json", "rows.csv").startswith("rows.csv: row 2: the scores sum to 1.25,")
    assert (Path("report.html").read_text(), Path("report.json").read_text()) == ("old page", OLD_NUMBERS)
    with files_of_at_most(10_000):
        line = refusal(1, "report", "cal.json", "rows.parquet")
    assert line == "--out: can't write to report.html (File too large)."
    assert (Path("report.html").read_text(), Path("report.json").read_text()) == ("old page", OLD_NUMBERS)
    assert temporary_files(files) == []


def test_report_does_not_overwrite_the_calibration(files):
    before = Path("cal.json").read_bytes()
    for out in ("cal.html", files / "cal.html", "./cal.htm"):
        line = refusal(2, "report", "cal.json", "rows.parquet", "-o", out)
        assert line.startswith("--out writes the numbers next to the page: ")
        assert line.endswith("cal.json is read too, and would be lost; choose another name.")
    assert Path("cal.json").read_bytes() == before
    for out in ("report.json", "report.csv", "report"):
        line = refusal(2, "report", "cal.json", "rows.parquet", "-o", out)
        assert line == (
            f"--out: {out} is the page, so its name must end in .html; its numbers go next to it, as JSON."
        )
        assert not Path(out).exists()


@pytest.mark.parametrize("before", [b'{"colour": "green"}', b"\xff\x00"], ids=["evaluation", "not text"])
def test_report_replaces_only_the_numbers_of_a_report(files, before):
    """The JSON of `evaluate` may have the name that the report would use."""
    Path("quarter.json").write_bytes(before)
    line = refusal(2, "report", "cal.json", "rows.parquet", "-o", "quarter.html")
    assert line.startswith(
        "--out: quarter.html would replace quarter.json, which no report wrote: the numbers"
    )
    assert Path("quarter.json").read_bytes() == before
    assert not Path("quarter.html").exists()
    Path("quarter.json").unlink()
    for _ in range(2):
        succeeds("report", "cal.json", "rows.parquet", "-o", "quarter.html")
    assert json.loads(Path("quarter.json").read_text())["format"] == "ordinalrisk report"


def test_report_leaves_single_rows_out(files):
    """The name of a customer is then neither in the page nor in the JSON."""
    written = succeeds("report", "cal.json", "rows.parquet").stdout
    whole = json.loads(Path("report.json").read_text())
    n_rows = whole["cases"]["lookup"]["rows"]
    said = f"Both contain {n_rows:,} test rows"
    assert said in " ".join(written.split())
    page = Path("report.html").read_text()
    assert "Share it only with people who may see them." in page
    assert '<section aria-labelledby="cases">' in page
    without = succeeds("report", "cal.json", "rows.parquet", "--no-rows").stdout
    assert "Both contain" not in without
    found = json.loads(Path("report.json").read_text())
    assert (found["cases"]["columns"], found["cases"]["rows"], found["cases"]["lookup"]["rows"]) == (
        [],
        [],
        0,
    )
    assert not any(stop["widest"] or stop["missed"] for stop in found["stops"])
    assert '<section aria-labelledby="cases" hidden>' in Path("report.html").read_text()
    some = {"cases", "stops", "slices"}
    assert {key: found[key] for key in found.keys() - some} == {
        key: whole[key] for key in whole.keys() - some
    }


def test_a_pipe_is_not_replaced_by_a_file(files):
    """A device is refused too; this test does not write to one."""
    os.mkfifo("pipe.csv")
    for arguments in (["predict", "cal.json", "rows.parquet"], ["calibrate", "rows.parquet", *PLAIN]):
        line = refusal(2, *arguments, "-o", "pipe.csv")
        assert line == "--out: pipe.csv is a device or a pipe, which a file can't replace; write to -."
    assert Path("pipe.csv").is_fifo()


def test_what_is_read_is_not_overwritten(files):
    before = Path("cal.json").read_bytes(), Path("rows.parquet").read_bytes()
    for arguments in (
        ["predict", "cal.json", "rows.parquet", "-o", "cal.json", "--output-format", "csv"],
        ["predict", "cal.json", "rows.parquet", "-o", "rows.parquet"],
        ["calibrate", "rows.parquet", *PLAIN, "-o", "rows.parquet"],
        ["evaluate", "cal.json", "rows.parquet", "--json", "cal.json"],
    ):
        assert refusal(2, *arguments).endswith("is read too, and would be lost; choose another name.")
    assert (Path("cal.json").read_bytes(), Path("rows.parquet").read_bytes()) == before


def test_memory_does_not_grow_with_the_rows(many_rows):
    """Four times the rows hold 120 MB more of scores; what a process needs at most stays about the same."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process's memory is read from /proc")
    code = """
import sys
from pathlib import Path
from ordinalrisk.cli import app

for command in (["predict", "-o", "sets.arrow", "--keep", "id"], ["evaluate"]):
    for name in ("many.parquet", "most.parquet"):
        app([*command, "cal.json", name], standalone_mode=False)
        status = Path("/proc/self/status").read_text().splitlines()
        print(*(line.split()[1] for line in status if line.startswith("VmHWM")), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=many_rows, check=True, capture_output=True)
    peaks = [int(peak) / 1000 for peak in done.stderr.split()]
    assert peaks[1] < peaks[0] + 60
    assert peaks[3] < peaks[2] + 60
    assert peaks[-1] < 600


# usage


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["calibrate"], "Missing argument 'SCORES...'. See ordinalrisk calibrate --help."),
        (["predict", "cal.json", "rows.parquet"], "Missing option '--out'"),
        (["predict", "cal.json", "rows.parquet", "-o", "s.csv", "--nope"], "No such option: --nope"),
        (["predicted"], "No such command 'predicted'."),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments, line, files):
    done = run_installed(*arguments)
    text = said(done)
    assert (done.returncode, done.stdout, text.count("\n")) == (2, b"", 1)
    assert text.startswith("Error: ")
    assert line in text
    assert text.endswith(" --help.\n")


def test_bad_data_is_one_line_and_exit_code_1(files):
    Path("new").write_text("p0,p1,p2,p3\n0.1,0.2,0.3,0.4\n0.1,0.2,x,0.4\n")
    done = run_installed("predict", "cal.json", "new", "-o", "sets.csv")
    assert (done.returncode, done.stdout) == (1, b"")
    assert said(done).startswith("Error: new: row 2, column 'p2': 'x' is not a number; correct it,")
    assert said(done).count("\n") == 1
    assert not Path("sets.csv").exists()


def test_files_that_are_not_there_are_wrong_usage(files):
    assert refusal(2, "predict", "cal.json", "new.csv", "-o", "s.csv") == "there is no file new.csv."
    assert refusal(2, "predict", "no.json", "rows.parquet", "-o", "s.csv") == "there is no file no.json."
    assert refusal(2, "predict", "-", "rows.parquet", "-o", "s.csv") == "there is no file -."
    assert refusal(2, "calibrate", "new.csv", "--alpha", "0.1", "-o", "c.json") == "there is no file new.csv."
    for path, line in {"no/s.csv": "there is no folder no.", ".": ". is a folder, not a file."}.items():
        assert refusal(2, "predict", "cal.json", "rows.parquet", "-o", path) == f"--out: {line}"
        assert refusal(2, "evaluate", "cal.json", "rows.parquet", "--json", path) == f"--json: {line}"
        assert refusal(2, "calibrate", "rows.parquet", "--alpha", "0.1", "-o", path) == f"--out: {line}"
        assert refusal(2, "compare", "rows.parquet", "--json", path) == f"--json: {line}"


def test_folders_and_closed_files_are_bad_data(files):
    assert (
        refusal(1, "predict", "cal.json", ".", "-o", "s.csv")
        == ".: is a folder; name the files in it, such as *.parquet."
    )
    assert refusal(1, "predict", ".", "rows.parquet", "-o", "s.csv") == ".: can't be read (Is a directory)."


@pytest.mark.skipif(os.geteuid() == 0, reason="everything can be read by root")
def test_a_file_that_may_not_be_read_is_bad_data(files):
    Path("rows.parquet").chmod(0)
    Path("cal.json").chmod(0)
    assert "Permission denied" in refusal(1, "calibrate", "rows.parquet", "--alpha", "0.1", "-o", "c.json")
    assert "Permission denied" in refusal(1, "predict", "cal.json", "rows.parquet", "-o", "s.csv")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--alpha", "5%"], "--alpha must be a finite number; got '5%'."),
        (["--alpha", "nan"], "--alpha must be a finite number; got 'nan'."),
        (["--alpha", "1.5"], "alpha must lie strictly between 0 and the largest loss, B=1; got 1.5."),
        (["--alpha", "0"], "alpha must lie strictly between 0 and the largest loss, B=1; got 0."),
        (["--scores", "p0,p1,p0"], "--scores names column 'p0' more than once."),
        (["--scores", " , "], "--scores must name a column"),
    ],
)
def test_wrong_parameters_are_wrong_usage(options, line, files):
    assert refusal(2, "predict", "cal.json", "rows.parquet", "-o", "s.csv", *options).startswith(line)
    assert refusal(2, "evaluate", "cal.json", "rows.parquet", *options).startswith(line)
    assert not Path("s.csv").exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--loss", "weighted"], "--loss weighted needs --weights, one for each class: --weights 1,1,2."),
        (["--weights", "1,1"], "WeightedLoss has 2 weights, but there are 4 classes."),
        (["--weights", "1,a,1,1"], "--weights must be a finite number; got 'a'."),
        (["--weights", "1,-1,1,1"], "weights must not be negative; weight 1 is -1."),
        (["--loss", "divergence", "--weights", "1,1,1,1"], "--weights has no meaning for --loss divergence."),
        (["--power", "2"], "--power has no meaning for --loss coverage."),
        (
            ["--loss", "divergence", "--positions", "1,2"],
            "DivergenceLoss has 2 positions, but there are 4",
        ),
        (
            ["--loss", "divergence", "--positions", "1,3,2,4"],
            "positions must increase strictly; positions[1] is 3",
        ),
        (
            ["--loss", "nope"],
            "--loss nope is neither coverage, weighted",
        ),
        (["--growth", "fast"], "growth='fast' is not known; the growth rules are"),
        (["--point", "top"], "point='top' is not known; the point label rules are"),
        (["--point", "given"], "--point given: point labels can't be given in a file."),
        (["--alpha", "4"], "--alpha must lie strictly between 0 and the largest loss, 1; got 4."),
        (["--classes", ""], "--classes names no label; write all labels in order: None,Mild,Severe."),
        (["--classes", "a,b,b,c"], "classes must be distinct; 'b' is listed more than once."),
    ],
)
def test_a_loss_that_makes_no_sense_is_wrong_usage(options, line, files):
    given = [*PLAIN, *options, "-o", "new.json"]
    assert refusal(2, "calibrate", "rows.parquet", *given).startswith(line)
    assert not Path("new.json").exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--folds", "1"], "folds must be a whole number from 2 to the number of rows, 257; got 1."),
        (["--random-state", "-1"], "--random-state must be 0 or larger; got -1."),
        (["--sample", "9"], "--sample must be at least 10; got 9."),
        (
            ["--alpha", "2"],
            "Loss 'coverage': alpha must lie strictly between 0 and the largest loss, B=1; got 2.",
        ),
        (["--weights", "1,2"], "WeightedLoss has 2 weights, but there are 4 classes."),
        (["--costs", "costs.csv"], "there is no file costs.csv."),
    ],
)
def test_a_comparison_that_makes_no_sense_is_wrong_usage(options, line, files):
    assert refusal(2, "compare", "rows.parquet", "--classes", ",".join(GRADES), *options).startswith(line)


# calibrations


@pytest.mark.parametrize(
    ("options", "loss", "alpha", "growth"),
    [
        ([], "coverage", 0.1, "frontier"),
        (["--weights", "1,1,2,2.5"], orisk.WeightedLoss([1, 1, 2, 2.5]), 0.1, "adaptive"),
        (["--loss", "divergence"], "divergence", 0.05, "paper"),
        (
            ["--loss", "divergence", "--power", "2", "--under", "3", "--over", "0.5"],
            orisk.DivergenceLoss(2, under=3, over=0.5),
            0.05,
            "rps",
        ),
        (
            ["--loss", "divergence", "--positions", "18,25,40,65.5", "--natural-units"],
            orisk.DivergenceLoss(positions=[18, 25, 40, 65.5], normalize=False),
            2,
            orisk.FrontierGrowth("bayes"),
        ),
        (
            ["--natural-units", "--weights", "1,1,1,3"],
            orisk.WeightedLoss([1, 1, 1, 3], False),
            "1/3",
            "frontier",
        ),
    ],
)
def test_options_say_the_loss_and_the_rule(options, loss, alpha, growth, files, rows):
    proba, labels = rows
    expected = orisk.RiskController(loss, alpha, growth, GRADES).calibrate(proba, [GRADES[k] for k in labels])
    rule = expected.growth
    succeeds(
        *("calibrate", "rows.parquet", "--classes", ",".join(GRADES), "--alpha", alpha, *options),
        *("--growth", rule.name, "--point", rule.point, "-o", "new.json"),
    )
    assert saved(files / "new.json") == saved_by_library(expected, files)


COSTS = [[0, 1, 2, 3], [5, 0, 1, 1.5], [50, 20, 0, 1], [60, 20, 10, 0]]


@pytest.mark.parametrize("with_header", [False, True])
@pytest.mark.parametrize("with_names", [False, True])
def test_a_cost_table_comes_with_names_or_without(with_header, with_names, files, rows):
    lines = [([GRADES[y]] if with_names else []) + [str(cost) for cost in row] for y, row in enumerate(COSTS)]
    if with_header:
        lines.insert(0, ["truth"] * with_names + GRADES)
    Path("costs.csv").write_text("\ufeff" + "".join(", ".join(line) + "\n" for line in lines) + "\n")
    succeeds("calibrate", "rows.parquet", *PLAIN, "--loss", "costs.csv", "-o", "new.json")
    expected = orisk.RiskController(orisk.CostTableLoss(COSTS), 0.1, classes=GRADES)
    expected.calibrate(rows[0], [GRADES[k] for k in rows[1]])
    assert saved(files / "new.json") == saved_by_library(expected, files)
    result = succeeds("compare", "rows.parquet", *PLAIN, "--costs", "costs.csv", "--json", "compared.json")
    assert "costs.csv" in result.stdout
    losses = default_losses(rows) | {"costs.csv": orisk.CostTableLoss(COSTS)}
    document = json.loads(Path("compared.json").read_text())
    last = ranked(orisk.compare(*rows, losses=losses, alphas=[0.1]))[-1]
    assert tuple(document["results"][-1]["mean_size"]) == last.mean_size


def test_costs_of_whole_numbers_can_have_whole_numbers_as_names(files, rows, tmp_path):
    write_table(score_table(rows[0][:, :3] / rows[0][:, :3].sum(1, keepdims=True), rows[1] % 3), "three.csv")
    plain, named = "0,1,2\n1,0,1\n2,1,0\n", ",0,1,2\n0,0,1,2\n1,1,0,1\n2,2,1,0\n"
    for name, text in {"plain": plain, "header": "0,1,2\n" + plain, "named": named}.items():
        Path("costs.csv").write_text(text)
        succeeds("calibrate", "three.csv", "--alpha", "0.1", "--loss", "costs.csv", "-o", f"{name}.json")
    assert saved(tmp_path / "plain.json") == saved(tmp_path / "header.json") == saved(tmp_path / "named.json")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "is empty; a row of costs for each class is needed."),
        (
            "a,b,c,d\n",
            "the header is a, b, c, d, the classes are None, Mild, Moderate, Severe; make them equal.",
        ),
        (
            "x,0,1,1,1\nMild,1,0,1,1\nModerate,1,1,0,1\nSevere,1,1,1,0\n",
            "the first column is x, Mild, Moderate",
        ),
        ("0,1,1,1\n1,0,1,1\n1,1,0,1\n1,one,1,0\n", "row 4, column 2: 'one' is not a number; correct it."),
        ("0,1\n1,0\n", "CostTableLoss has 2 rows and columns, but there are 4 classes."),
        (
            "0,1,1,1\n1,0,1\n1,1,0,1\n1,1,1,0\n",
            "A cost table must be square; it has 4 rows, but row 1 has length",
        ),
        ("0,2,1,1\n1,0,1,1\n1,1,0,1\n1,1,1,0\n", "Row 0 of the cost table decreases away from its diagonal"),
        (
            "0,0,0,0\n" * 4,
            f"All costs of CostTableLoss(table={[[0] * 4] * 4}) are 0",
        ),
    ],
)
def test_a_wrong_cost_table_is_bad_data(text, line, files):
    Path("costs.csv").write_text(text)
    given = ["rows.parquet", *PLAIN]
    found = refusal(1, "calibrate", *given, "--loss", "costs.csv", "-o", "new.json")
    assert found.startswith(f"costs.csv: {line}")
    assert refusal(1, "compare", *given, "--costs", "costs.csv") == found


def test_a_cost_table_that_is_no_text_is_bad_data(files):
    Path("costs.csv").write_bytes(b"\xff\xfe0,1")
    given = [*PLAIN, "--loss", "costs.csv", "-o", "new.json"]
    assert refusal(1, "calibrate", "rows.parquet", *given).startswith("costs.csv: ")


def test_too_few_rows_are_said(files):
    given = ["--classes", ",".join(GRADES), "--alpha", "0.001"]
    shown = succeeds("calibrate", "rows.parquet", *given, "-o", "new.json").stdout
    assert "Note: alpha=0.001 needs at least 999 calibration rows for a loss bounded by 1;" in shown
    assert "Threshold -inf" in shown
    shown = succeeds("predict", "new.json", "rows.parquet", "-o", "sets.csv").stdout
    assert "257 rows, 4.00 labels in a set on average, 0.0% single labels." in shown
    shown = succeeds("evaluate", "cal.json", "rows.parquet", "--alpha", "0.001").stdout
    assert "Note: alpha=0.001 needs at least 999 calibration rows" in shown


def test_a_report_notes_warnings_on_standard_error(files, monkeypatch):
    summary = report_job.report_summary

    def warned(*args, **options):
        warnings.warn("The kernels are slow.", stacklevel=1)
        return summary(*args, **options)

    monkeypatch.setattr(report_job, "report_summary", warned)
    shown = succeeds("report", "cal.json", "rows.parquet", "-o", "noted.html")
    assert "Note: The kernels are slow.\n" in shown.stderr
    assert "Note: " not in shown.stdout


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda text: text[:500], "cal.json is not a whole JSON file ("),
        (lambda text: "", "cal.json is not a whole JSON file ("),
        (lambda text: "[]", "cal.json can't be loaded: field 'format' is missing."),
        (
            lambda text: text.replace('"alpha": 0.1', '"alpha": 0.2'),
            "cal.json can't be loaded: field 'alpha' does not match its digest,",
        ),
        (
            lambda text: text.replace('"p0", "p1"', '"p1", "p0"'),
            "cal.json can't be loaded: field 'columns' does not match its digest,",
        ),
    ],
    ids=["cut", "empty", "list", "alpha", "columns"],
)
def test_a_calibration_that_was_cut_or_edited_is_bad_data(change, line, files):
    path = Path("cal.json")
    assert change(path.read_text()) != path.read_text()
    path.write_text(change(path.read_text()))
    for arguments in (["predict", "-o", "s.csv"], ["evaluate"], ["report", "-o", "r.html"]):
        command, *options = arguments
        assert refusal(1, command, "cal.json", "rows.parquet", *options).startswith(line)


def test_what_a_calibration_was_not_made_for_is_bad_data(files, rows):
    proba, labels = rows
    three = score_table(proba[:, :3], labels)
    write_table(three, "three.csv")
    assert refusal(1, "predict", "cal.json", "three.csv", "-o", "s.csv") == (
        "three.csv: there is no column 'p3' (there are p0, p1, p2, y); name the right one with --scores."
    )
    assert refusal(1, "predict", "cal.json", "three.csv", "-o", "s.csv", "--scores", "p*") == (
        "three.csv: there are 3 columns of scores, p0, p1, p2, but the calibration has 4 classes, None, "
        "Mild, Moderate, Severe; name one for each with --scores."
    )


# columns


@FORMATS
def test_columns_are_found_by_name_in_whatever_order(name, files, table, controller, rows):
    shuffled = table.select(["p2", "y", "p0", "note", "p3", "id", "p1"])
    write_table(shuffled, name)
    result = succeeds("predict", "cal.json", name, "-o", "sets.jsonl")
    assert result.stderr == ""
    found = read_rows(Path("sets.jsonl").read_bytes(), "sets.jsonl")
    assert intervals(found) == expected_intervals(controller, rows[0])
    assert list(found[0]) == ["y", "note", "id", "lower", "upper", "size"]
    succeeds("evaluate", "cal.json", name, "--json", "metrics.json")
    document = json.loads(Path("metrics.json").read_text())
    assert document["risk"] == expected_evaluation(controller, rows)["risk"]


def test_renamed_columns_are_named_with_options(files, table, controller, rows):
    renamed = table.rename_columns(["id", "note", "d", "c", "b", "a", "truth"])
    write_table(renamed, "renamed.csv")
    assert "no column 'p0'" in refusal(1, "evaluate", "cal.json", "renamed.csv")
    assert refusal(1, "evaluate", "cal.json", "renamed.csv", "--scores", "d,c,b,a") == (
        "renamed.csv: there is no column 'y' (there are id, note, d, c, b, a, truth); name the right one "
        "with --label."
    )
    options = ["--scores", "d,c,b,a", "--label", "truth", "--json", "metrics.json"]
    succeeds("evaluate", "cal.json", "renamed.csv", *options)
    document = json.loads(Path("metrics.json").read_text())
    assert document["classes"] == expected_evaluation(controller, rows)["classes"]


def test_a_saved_calibration_without_columns_guesses_them_and_says_so(files, controller):
    controller.save("library.json")
    result = succeeds("evaluate", "library.json", "rows.parquet")
    assert result.stderr == (
        "Note: The label is in the column 'y'.\n"
        "Note: The scores of the classes None, Mild, Moderate, Severe are in the columns p0, p1, p2, p3.\n"
    )


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ([], ["id", "note", "y"]),
        (["--keep", "id"], ["id"]),
        (["--keep", "y,id"], ["y", "id"]),
        (["--keep", "n*, p1"], ["note", "p1"]),
        (["--keep", "*"], ["id", "note", "p0", "p1", "p2", "p3", "y"]),
        (["--keep", ""], []),
        (["--keep", "id,i*,id"], ["id"]),
    ],
)
@pytest.mark.parametrize("name", ["sets.csv", "sets.parquet"])
def test_kept_columns_are_those_asked_for_in_that_order(options, kept, name, files):
    succeeds("predict", "cal.json", "rows.parquet", "-o", name, *options)
    found = read_rows(Path(name).read_bytes(), name)
    assert list(found[0]) == [*kept, "lower", "upper", "size"]
    assert len(found) == N_ROWS


def test_a_column_to_keep_that_is_not_there_is_bad_data(files):
    line = refusal(1, "predict", "cal.json", "rows.parquet", "-o", "s.csv", "--keep", "id,age")
    assert (
        line
        == "rows.parquet: there is no column 'age' (there are id, note, p0, p1, p2, p3, y); correct --keep."
    )


def test_new_columns_do_not_clash_with_old_ones(files, controller, rows):
    succeeds("predict", "cal.json", "rows.parquet", "-o", "once.csv")
    again = pa.table({**parquet.read_table("rows.parquet").to_pydict(), "size": ["large"] * N_ROWS})
    write_table(again, "again.parquet")
    assert refusal(1, "predict", "cal.json", "again.parquet", "-o", "twice.csv") == (
        "again.parquet: already has a column 'size'; keep other columns with --keep, or rename the new "
        "ones with --prefix."
    )
    succeeds("predict", "cal.json", "again.parquet", "-o", "twice.csv", "--prefix", "set_")
    found = read_rows(Path("twice.csv").read_bytes(), "twice.csv")
    assert list(found[0]) == ["id", "note", "y", "size", "set_lower", "set_upper", "set_size"]
    assert intervals(found, "set_") == expected_intervals(controller, rows[0])
    succeeds("predict", "cal.json", "again.parquet", "-o", "twice.csv", "--keep", "id")


def test_another_alpha_needs_no_other_calibration(files, controller, rows):
    succeeds("predict", "cal.json", "rows.parquet", "-o", "sets.csv", "--alpha", "0.25")
    found = read_rows(Path("sets.csv").read_bytes(), "sets.csv")
    assert intervals(found) == expected_intervals(controller, rows[0], alpha=0.25)
    succeeds("evaluate", "cal.json", "rows.parquet", "--alpha", "0.25", "--json", "metrics.json")
    document = json.loads(Path("metrics.json").read_text())
    assert document["risk"] == expected_evaluation(controller, rows, 0.25)["risk"]
    assert document["alpha"] == "0.25"


@pytest.mark.parametrize("named", ["logit_", "p"])
def test_logits_are_told_by_their_name_or_by_an_option(named, files, rows):
    proba, labels = rows
    logits = np.log(proba) + 3
    write_table(score_table(logits, labels, [f"{named}{k}" for k in range(4)]), "logits.csv")
    options = ["--logits"] if named == "p" else []
    result = succeeds("calibrate", "logits.csv", "--alpha", "0.1", *options, "-o", "new.json")
    assert ("read as logits" in result.stderr) == (named == "logit_")
    soft = orisk.probabilities.softmax(logits)
    expected = orisk.RiskController(alpha=0.1).calibrate(soft, labels)
    assert saved(files / "new.json") == saved_by_library(expected, files)
    succeeds("predict", "new.json", "logits.csv", "-o", "sets.parquet")
    found = read_rows(Path("sets.parquet").read_bytes(), "sets.parquet")
    assert intervals(found) == expected_intervals(expected, soft)
    if named == "p":
        line = refusal(1, "calibrate", "logits.csv", "--alpha", "0.1", "-o", "new.json")
        assert line.startswith("logits.csv: row 1")
        assert line.endswith(
            "logits: add --logits." if " sum " in line else "If these are logits, add --logits."
        )


def test_a_logit_that_is_no_number_is_located(files):
    Path("logits.csv").write_text("logit_0,logit_1,y\n1,2,0\n1,inf,0\n")
    line = refusal(1, "calibrate", "logits.csv", "--alpha", "0.1", "-o", "new.json")
    assert line == "logits.csv: row 2, column 'logit_1': inf is not a logit. Correct it."
    Path("logits.csv").write_text("logit_0,logit_1,y\n1,2,0\n1,,0\n")
    line = refusal(1, "calibrate", "logits.csv", "--alpha", "0.1", "-o", "new.json")
    assert line == "logits.csv: row 2, column 'logit_1': the logit is missing or NaN. Correct it."


# what is wrong with a row is said with its place


def broken(table, row, column, value):
    values = table.column(column).to_pylist()
    values[row - 1] = value
    place = table.schema.names.index(column)
    return table.set_column(place, column, pa.array(values, table.schema.field(column).type))


BAD_SCORES = {
    "missing": ({"p1": None}, ", column 'p1': the probability is missing or NaN. Correct it."),
    "NaN": ({"p1": np.nan}, ", column 'p1': the probability is missing or NaN. Correct it."),
    "negative": (
        {"p2": -0.25},
        ", column 'p2': -0.25 is not a probability. If these are logits, add --logits.",
    ),
    "infinite": ({"p3": np.inf}, ", column 'p3': inf is not a probability. Correct it."),
    "percent": (
        {"p0": 10.0, "p1": 20.0, "p2": 30.0, "p3": 40.0},
        ": the scores sum to 100, not to 1. "
        "They look like percentages: --rescale divides each row by its sum.",
    ),
    "logits": (
        {"p0": 1.5, "p1": 2.0, "p2": 3.0, "p3": 4.0},
        ": the scores sum to 10.5, not to 1. They look like logits: add --logits.",
    ),
    "cumulative": (
        {"p0": 0.25, "p1": 0.5, "p2": 0.75, "p3": 1.0},
        ": the scores sum to 2.5, not to 1. They look cumulative: take differences.",
    ),
    "too small": (
        {"p0": 0.25, "p1": 0.0, "p2": 0.25, "p3": 0.25},
        ": the scores sum to 0.75, not to 1. If they were rounded, add --rescale: each row is then divided "
        "by its sum.",
    ),
}


NOT_IN_JSON = ("NaN", "infinite")


@pytest.mark.parametrize(
    ("wrong", "name", "row"),
    [
        (wrong, name, (1, 51, 217)[(i + j) % 3])
        for i, name in enumerate(("rows.csv", "rows.parquet", "stream.arrow", "rows.jsonl"))
        for j, wrong in enumerate(BAD_SCORES)
        if name != "rows.jsonl" or wrong not in NOT_IN_JSON
    ],
)
def test_a_bad_score_is_located_in_any_batch(wrong, name, row, files, table, small_batches):
    values, line = BAD_SCORES[wrong]
    for column, value in values.items():
        table = broken(table, row, column, value)
    write_table(table, name)
    Path("sets.csv").write_text("old")
    expected = f"{name}: row {row}{line}"
    assert refusal(1, "predict", "cal.json", name, "-o", "sets.csv") == expected
    assert Path("sets.csv").read_text() == "old"
    assert temporary_files(files) == []
    if row == 217:
        assert refusal(1, "evaluate", "cal.json", name) == expected
        assert refusal(1, "report", "cal.json", name) == expected
        assert refusal(1, "calibrate", name, *PLAIN, "-o", "new.json") == expected
        assert refusal(1, "compare", name, *PLAIN) == expected


@pytest.mark.parametrize(
    ("value", "name", "row"),
    [
        (("Worse", None)[(i + j) % 2], name, row)
        for i, name in enumerate(("rows.csv", "rows.parquet", "stream.arrow", "rows.jsonl"))
        for j, row in enumerate((1, 51, 217))
    ],
)
def test_a_bad_label_is_located_in_any_batch(value, name, row, files, table, small_batches):
    write_table(broken(table, row, "y", value), name)
    line = (
        "the label is missing; leave such rows out."
        if value is None
        else "the label 'Worse' is not one of the classes None, Mild, Moderate, Severe; correct it, or "
        "calibrate with all labels in --classes."
    )
    expected = f"{name}: row {row}, column 'y': {line}"
    for command in ("evaluate", "report"):
        assert refusal(1, command, "cal.json", name) == expected
    assert refusal(1, "calibrate", name, *PLAIN, "-o", "new.json") == expected
    succeeds("predict", "cal.json", name, "-o", "sets.parquet")  # which needs no label


@pytest.mark.parametrize("row", [1, 50, 51, 217])
def test_text_among_the_scores_is_located(row, files, table, small_batches):
    lines = encoded(table.drop_columns(["note"]), "rows.csv").decode().splitlines(keepends=True)
    lines[row] = re.sub(r",[\d.e-]+,", ",oops,", lines[row], count=1)
    Path("rows.csv").write_text("".join(lines))
    expected = f"rows.csv: row {row}, column 'p0': 'oops' is not a number; correct it, or change --scores."
    assert refusal(1, "predict", "cal.json", "rows.csv", "-o", "s.csv") == expected
    assert refusal(1, "calibrate", "rows.csv", *PLAIN, "-o", "new.json") == expected
    objects = table.to_pylist()
    objects[max(row, 2) - 1]["p0"] = "oops"  # the first row tells the types
    Path("rows.jsonl").write_text("".join(json.dumps(item) + "\n" for item in objects))
    line = f"rows.jsonl: row {max(row, 2)}, column 'p0': is of type string, where number was expected;"
    assert refusal(1, "predict", "cal.json", "rows.jsonl", "-o", "s.csv").startswith(line)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
@pytest.mark.parametrize("options", [[], ["--scores", "p*"]])
def test_a_column_of_text_among_the_scores_is_named(name, options, files, table):
    write_table(table.set_column(3, "p1", [["many"] * N_ROWS]), name)
    expected = f"{name}: column 'p1' holds string, not numbers; choose other --scores."
    given = [*PLAIN, *options, "-o", "new.json"]
    assert refusal(1, "calibrate", name, *given) == expected
    assert refusal(1, "predict", "cal.json", name, *options, "-o", "s.csv") == expected


@pytest.mark.parametrize("row", [1, 30, 217])
def test_a_ragged_row_is_located(row, files, table, small_batches):
    lines = encoded(table, "rows.csv").decode().split('\n"')
    lines[row] += ",more" if row < 217 else ",more\n\n"
    Path("rows.csv").write_text('\n"'.join(lines))
    assert refusal(1, "predict", "cal.json", "rows.csv", "-o", "s.csv") == (
        f"rows.csv: row {row}: has 8 values under 7 column names; correct it, and check that commas separate "
        "the values."
    )


# files that are not what they should be


HEADER, ROW = "id,p0,p1,p2,p3,y\n", "a,0.1,0.2,0.3,0.4,Mild\n"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "new.csv: is empty."),
        (b"\n\n", "new.csv: is empty; a header and rows are needed."),
        (HEADER.encode(), "new.csv: has no rows."),
        (("id,p0,p0,p2,p3,y\n" + ROW).encode(), "new.csv: column 'p0' is there more than once; rename one."),
        (
            (HEADER + ROW + "é,0.1,0.2,0.3,0.4,Mild\n").encode("latin-1"),
            "new.csv: row 2, column 'id': CSV conversion error to string: invalid UTF8 data; correct",
        ),
        (
            (HEADER.replace("id", "né") + ROW).encode("latin-1"),
            "new.csv: has a column name that is not UTF-8;",
        ),
        ((HEADER + "a,0.1\n").encode("utf-16"), "new.csv: row 1: has 2 values under 6 column names;"),
        (gzip.compress((HEADER + ROW * 99).encode())[:60], "new.csv: can't be read"),
        (b"PAR1\n" * 9, "new.csv: is not a whole Parquet file"),
    ],
    ids=[
        "empty",
        "blank",
        "header",
        "twice",
        "latin",
        "latin header",
        "utf-16",
        "cut gzip",
        "no csv",
    ],
)
def test_a_csv_file_that_is_none_gets_a_clear_answer(content, line, files):
    Path("new.csv").write_bytes(content)
    assert refusal(1, "predict", "cal.json", "new.csv", "-o", "s.csv").startswith(line)
    assert not Path("s.csv").exists()


def test_a_file_without_rows_has_no_rows_whatever_is_asked_of_it(files, table):
    for name in ("none.csv", "none.parquet", "none.arrow"):
        write_table(table.slice(0, 0), name)
        assert refusal(1, "calibrate", name, "--alpha", "0.1", "-o", "n.json") == f"{name}: has no rows."
        assert refusal(1, "compare", name) == f"{name}: has no rows."
        for arguments in (["predict", "-o", "s.csv"], ["evaluate"], ["report"]):
            command, *options = arguments
            assert refusal(1, command, "cal.json", name, *options) == f"{name}: has no rows."
    assert not {"n.json", "s.csv", "report.html"} & {path.name for path in files.iterdir()}


def test_byte_order_marks_line_ends_and_blank_lines_do_not_matter(files, controller):
    text = (HEADER + ROW + "\n" + ROW).replace("\n", "\r\n")
    Path("new.csv").write_bytes(text.encode("utf-8-sig"))
    succeeds("predict", "cal.json", "new.csv", "-o", "sets.csv")
    found = read_rows(Path("sets.csv").read_bytes(), "sets.csv")
    assert [(row["id"], row["y"]) for row in found] == [("a", "Mild")] * 2
    assert intervals(found) == expected_intervals(controller, [[0.1, 0.2, 0.3, 0.4]]) * 2


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "stream.arrow", "rows.csv.gz"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_cut_file_is_bad_data(name, share, files, table):
    content = encoded(table, name)
    Path(name).write_bytes(content[: int(share * len(content))])
    line = refusal(1, "predict", "cal.json", name, "-o", "sets.csv")
    assert line.startswith(f"{name}: ")
    assert "whole" in line or "can't be read" in line
    assert not Path("sets.csv").exists()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("not json", "row 3: can't be read as JSON (JSON parse error: Invalid value); each line must be"),
        ("[1, 2]", "row 3: can't be read as JSON (JSON parse error: Column() changed from object to"),
        ('{"p0": 0.1,', "row 3: can't be read as JSON (brackets or quotes don't match);"),
        ('{"p0": 0.5, "p1": 0.5}', "row 3, column 'p2': the probability is missing or NaN. Correct it."),
        ('{"p0": [0.5], "p1": 0.5}', "row 3, column 'p0': is of type array, where number was expected;"),
        (
            '{"p0": 1, "p0": 0}',
            "row 3: can't be read as JSON (JSON parse error: Column(/p0) was specified",
        ),
    ],
)
def test_a_bad_line_of_json_is_located(line, expected, files):
    good = '{"p0": 0.1, "p1": 0.2, "p2": 0.3, "p3": 0.4}\n'
    Path("new.jsonl").write_text(good * 2 + line + "\n" + good)
    found = refusal(1, "predict", "cal.json", "new.jsonl", "-o", "s.csv")
    assert found.startswith(f"new.jsonl: {expected}")


def test_bytes_that_are_no_text_are_located_in_json(files, small_batches):
    good = b'{"p0": 0.1, "p1": 0.2, "p2": 0.3, "p3": 0.4, "id": "a"}\n'
    Path("new.jsonl").write_bytes(good * 99 + good.replace(b'"a"', b'"\xff"'))
    line = refusal(1, "predict", "cal.json", "new.jsonl", "-o", "s.csv")
    assert line.startswith("new.jsonl: row 100: can't be read as JSON (Invalid UTF8)")


@pytest.mark.parametrize("given", ["csv", "parquet", "arrow", "jsonl"])
@FORMATS
def test_a_format_that_is_not_the_file_s_is_bad_data(given, name, files, table):
    write_table(table, name)
    right = {"rows.csv": "csv", "rows.csv.gz": "csv", "rows.jsonl": "jsonl", "rows.parquet": "parquet"}
    if right.get(name, "arrow") == given:
        succeeds("predict", "cal.json", name, "--input-format", given, "-o", "sets.parquet")
    else:
        line = refusal(1, "predict", "cal.json", name, "--input-format", given, "-o", "sets.parquet")
        assert line.startswith(f"{name}: ")
        assert line.isprintable()


def test_a_file_is_known_by_its_first_bytes_if_its_name_says_nothing(files, table, controller, rows):
    for name in NAMES.values():
        Path("data").write_bytes(encoded(table, name))
        succeeds("predict", "cal.json", "data", "-o", "sets.parquet")
        found = read_rows(Path("sets.parquet").read_bytes(), "sets.parquet")
        assert intervals(found) == expected_intervals(controller, rows[0])


def test_files_of_parts_are_not_compressed_as_a_whole(files, table):
    for name in ("rows.parquet", "rows.arrow"):
        Path(f"{name}.gz").write_bytes(gzip.compress(encoded(table, name)))
        assert refusal(1, "predict", "cal.json", f"{name}.gz", "-o", "s.csv") == (
            f"{name}.gz: is compressed as a whole, and can't be read in parts; decompress it first."
        )
        line = refusal(2, "predict", "cal.json", "rows.parquet", "-o", f"s.{name}.gz")
        assert line.endswith("is not compressed as a whole; choose a name without .gz.")


# labels


def test_labels_are_written_as_they_are(files, rows, draw):
    """Whole numbers stay numbers, text is text, whatever is in it."""
    proba, labels = rows
    odd = ["a, b", 'say "c"', "two\nlines", "ü"]
    write_table(score_table(proba, [odd[k] for k in labels]), "odd.csv")
    quoted = ",".join(f'"{name}"' for name in ("a, b", 'say ""c""', "two\nlines", "ü"))
    succeeds("calibrate", "odd.csv", "--alpha", "0.1", "--classes", quoted, "-o", "odd.json")
    expected = orisk.RiskController(alpha=0.1, classes=odd).calibrate(proba, [odd[k] for k in labels])
    assert saved(files / "odd.json") == saved_by_library(expected, files)
    for name in ("sets.csv", "sets.parquet", "sets.jsonl"):
        succeeds("predict", "odd.json", "odd.csv", "-o", name)
        found = read_rows(Path(name).read_bytes(), name)
        assert intervals(found) == expected_intervals(expected, proba)
        assert [row["y"] for row in found] == [odd[k] for k in labels]
    assert "two\nlines" in succeeds("evaluate", "odd.json", "odd.csv").stdout


@pytest.mark.parametrize("n_classes", [2, 150])
@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_two_classes_and_many(n_classes, name, files, draw):
    proba, labels = draw(400, n_classes, seed=2)
    write_table(score_table(proba, labels), name)
    succeeds("calibrate", name, "--alpha", "0.1", "-o", "new.json")
    expected = orisk.RiskController(alpha=0.1).calibrate(proba, labels)
    assert saved(files / "new.json") == saved_by_library(expected, files)
    succeeds("predict", "new.json", name, "-o", "sets.parquet")
    found = read_rows(Path("sets.parquet").read_bytes(), "sets.parquet")
    assert intervals(found) == expected_intervals(expected, proba)
    succeeds("evaluate", "new.json", name, "--json", "metrics.json")
    document = json.loads(Path("metrics.json").read_text())
    sets = expected.predict_set(proba)
    assert document["risk"] == list(metrics.risk(labels, sets, confidence=0.95))
    assert sum(document["sizes"]) == 400


def test_a_class_without_test_rows_has_no_numbers(files, table):
    seen = table.filter(pa.compute.field("y") != "Severe")
    write_table(seen, "seen.csv")
    shown = succeeds("evaluate", "cal.json", "seen.csv", "--json", "metrics.json").stdout
    assert re.search(r"^ *Severe +0 +- +- +- +- +-$", shown, re.MULTILINE)
    severe = json.loads(Path("metrics.json").read_text())["classes"][3]
    assert severe == {"label": "Severe", "rows": 0, "coverage": None, "risk": None, "size": None}


# what must not pass in silence


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_a_pipe_that_fails_halfway_gets_no_end(name, files, table, small_batches, monkeypatch):
    """Otherwise the rows before the wrong one would look like a complete file."""
    write_few_rows_at_once(monkeypatch, 50)
    write_table(broken(table, N_ROWS, "p0", 7.0), "wrong.parquet")
    done = run("predict", "cal.json", "wrong.parquet", "-o", "-", "--output-format", name)
    assert done.exit_code == 1
    assert f"wrong.parquet: row {N_ROWS}: the scores sum to" in done.stderr
    assert len(done.stdout_bytes) > 100  # what the writer had time for
    assert not done.stdout_bytes.endswith({"parquet": b"PAR1", "arrow": b"\xff\xff\xff\xff\0\0\0\0"}[name])


def test_rounded_scores_are_rescaled_if_asked(files, rows):
    proba, labels = rows
    rounded = np.round(proba, 2)
    write_table(score_table(rounded, [GRADES[k] for k in labels]), "rounded.csv")
    assert "add --rescale" in refusal(1, "calibrate", "rounded.csv", *PLAIN, "-o", "r.json")
    succeeds("calibrate", "rounded.csv", *PLAIN, "--rescale", "-o", "r.json")
    by_hand = orisk.RiskController(alpha=0.1).calibrate(rounded / rounded.sum(axis=1, keepdims=True), labels)
    assert orisk.RiskController.load("r.json").threshold_ == by_hand.threshold_
    succeeds("predict", "r.json", "rounded.csv", "-o", "sets.csv")  # as it was calibrated
    assert refusal(1, "predict", "r.json", "rounded.csv", "--probabilities", "-o", "s.csv")


def test_probabilities_are_not_taken_for_logits(files):
    line = refusal(1, "predict", "cal.json", "rows.parquet", "--logits", "-o", "s.csv")
    assert line == (
        "rows.parquet: the scores are probabilities, not logits: every row sums to 1; say --probabilities."
    )


@pytest.mark.parametrize("name", ["zz.foo", "sets.json", "sets", "sets.csv.xz"])
def test_a_name_that_tells_no_format_is_wrong_usage(name, files):
    assert "can't infer the format" in refusal(2, "predict", "cal.json", "rows.parquet", "-o", name)


def test_a_control_character_is_spelled_out(files):
    line = refusal(1, "predict", "cal.json", "\x1b[31mred.csv", "-o", "s.csv")
    assert line == "\\x1b[31mred.csv: matches no file; correct the pattern."


def test_no_arguments_show_the_help():
    done = run_installed()
    assert done.returncode == 0
    assert done.stdout.decode().startswith("Usage: ordinalrisk [OPTIONS] COMMAND")


def beyond_the_first_look(lines):
    """The lines so often that there are more than those that tell the columns and their types."""
    return lines * (2**24 // sum(map(len, lines)))


def test_a_column_that_comes_late_is_not_dropped(files, table):
    lines = encoded(table, "rows.jsonl").decode().splitlines()
    many = beyond_the_first_look(lines)
    Path("late.jsonl").write_text("\n".join([*many, json.dumps(json.loads(lines[0]) | {"late": 1})]))
    line = refusal(1, "predict", "cal.json", "late.jsonl", "-o", "s.jsonl")
    assert "has a column that the first rows lack" in line
    assert "late" in line
    succeeds("predict", "cal.json", "late.jsonl", "-o", "s.jsonl", "--keep", "id")


def test_a_number_with_a_point_among_whole_ones_is_placed(files, table):
    counted = table.append_column("count", [[1] * N_ROWS])
    lines = beyond_the_first_look(encoded(counted, "x.jsonl").decode().splitlines())
    lines[-3] = lines[-3].replace('"count": 1', '"count": 1.5')
    Path("counts.jsonl").write_text("\n".join(lines))
    line = refusal(1, "predict", "cal.json", "counts.jsonl", "-o", "s.jsonl")
    assert line == (
        f"counts.jsonl: row {len(lines) - 2}, column 'count': is 1.5, where whole numbers stand above; "
        "write all alike."
    )


def test_the_rows_of_the_calibration_test_nothing(files):
    assert "rows of the calibration itself" in " ".join(
        succeeds("evaluate", "cal.json", "rows.parquet").stdout.split()
    )


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"PK\x03\x04", "decompress it first"),
        (b"\xfd7zXZ\0", "decompress it first"),
        (b'[{"p0"', "JSON array"),
    ],
)
def test_files_of_other_kinds_are_named(start, said, files):
    Path("new.csv").write_bytes(start + bytes(100))
    assert said in refusal(1, "predict", "cal.json", "new.csv", "-o", "s.csv")
