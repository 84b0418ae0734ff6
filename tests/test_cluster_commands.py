"""Commands over many files on a cluster: what one machine says of one file with all rows, and every refusal.

The cluster is real, two processes and a scheduler; of all that it does, nothing may show in the results.
"""

import json
import os
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import refusal, succeeds
from distributed import Client
from file_formats import encoded, read_rows, score_table, write_table
from sizes import few_stops, search_few_steps
from test_commands import GRADES
from worker_processes import local_cluster

MANIFEST = "_ordinalrisk.json"
N_ROWS = 360
CLASSES = ["--classes", ",".join(GRADES), "--scores", "p0,p1,p2,p3", "--label", "y"]
PLAIN = [*CLASSES, "--alpha", "0.1"]
NAMES = {
    "parquet": "rows.parquet",
    "csv": "rows.csv",
    "compressed csv": "rows.csv.gz",
    "arrow file": "rows.arrow",
    "arrow stream": "stream.arrow",
    "json lines": "rows.jsonl",
}
FORMATS = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(scope="module")
def running():
    with local_cluster() as cluster, pytest.MonkeyPatch.context() as patch:
        with Client(cluster.scheduler_address) as client:
            client.run(few_stops)  # all workers live until the end
        few_stops(patch.setattr)
        yield cluster


def make_table(draw, seed, n_rows=N_ROWS):
    proba, labels = draw(n_rows, 4, seed=seed)
    rng = np.random.default_rng(seed)
    return score_table(
        proba,
        [GRADES[k] for k in labels],
        id=[f"{i:03d}" for i in range(n_rows)],
        site=[["north", "east", "south"][k] for k in rng.choice(3, n_rows, p=[0.2, 0.4, 0.4])],
        patient=rng.integers(0, n_rows // 3, n_rows).astype(str),
        ratio=rng.choice([0.5, 1.0, 2.0], n_rows),
        age=rng.integers(20, 90, n_rows),
    )


@pytest.fixture(scope="module")
def calibration_rows(draw):
    return make_table(draw, seed=1)


@pytest.fixture(scope="module")
def test_rows(draw):
    return make_table(draw, seed=2)


def cut(table, folder, name="rows.parquet", cuts=(10, 200)):
    """The rows in files of a folder, a number before the ending of each name; gives a pattern for them."""
    Path(folder).mkdir(exist_ok=True)
    stem, ending = name.split(".", 1)
    edges = [0, *cuts, len(table)]
    for i, (start, end) in enumerate(pairwise(edges)):
        write_table(table.slice(start, end - start), Path(folder) / f"{stem}-{i:02d}.{ending}")
    return f"{folder}/{stem}-*.{ending}"


def document(path, *without):
    """A saved JSON file, less what tells one file from many."""

    def less(value):
        if isinstance(value, dict):
            return {name: less(each) for name, each in value.items() if name not in without}
        return [less(each) for each in value] if isinstance(value, list) else value

    return less(json.loads(Path(path).read_text()))


def calibration(path):
    found = document(path, "data_blake3", "more_alphas")
    found.pop("digests")
    return found


def manifest(folder):
    return json.loads((Path(folder) / MANIFEST).read_text())


def rows_in(folder):
    """All rows of a prediction, in the order of its files, of which there are no others."""
    names = [each["name"] for each in manifest(folder)["files"]]
    assert sorted(path.name for path in Path(folder).iterdir()) == sorted([*names, MANIFEST])
    parts = [read_rows((Path(folder) / name).read_bytes(), name) for name in names]
    assert [len(part) for part in parts] == [each["rows"] for each in manifest(folder)["files"]]
    found = [row for part in parts for row in part]
    assert len(found) == manifest(folder)["rows"]
    return found


def told(result, *without):
    """Standard output, less the lines with one of these words."""
    return [line for line in result.stdout.splitlines() if not any(word in line for word in without)]


def assert_same_predictions(cluster, saved, name, table, *options):
    """Intervals, summaries and reports on a cluster are those of one machine."""
    one, many = write_table(table, name), cut(table, "parts", name)
    alone = succeeds("predict", saved, one, "-o", f"sets-{name}", *options)
    shutil.rmtree("sets", ignore_errors=True)
    together = succeeds("predict", saved, many, "-o", "sets", *options, "--cluster", cluster)
    assert told(alone, "Wrote") == told(together, "Wrote")
    assert rows_in("sets") == read_rows(Path(f"sets-{name}").read_bytes(), name)


def assert_same_evaluation(cluster, saved, name, table, *options, report=True):
    one, many = write_table(table, name), cut(table, "parts", name)
    alone = succeeds("evaluate", saved, one, "--json", "one.json", *options)
    together = succeeds("evaluate", saved, many, "--json", "many.json", *options, "--cluster", cluster)
    assert told(alone, "Wrote") == told(together, "Wrote")
    assert document("one.json") == document("many.json")
    if report:
        options = [each for each in options if each not in ("--alpha", "0.2")]
        alone = succeeds("report", saved, one, "-o", "page_one.html", *options)
        together = succeeds("report", saved, many, "-o", "page_many.html", *options, "--cluster", cluster)
        assert told(alone, "Wrote") == told(together, "Wrote")
        without = "data_blake3", "file", "bytes", "calibrated_on"
        assert document("page_one.json", *without) == document("page_many.json", *without)


@FORMATS
def test_every_format_gives_what_one_file_does(cluster, name, calibration_rows, test_rows):
    one, many = write_table(calibration_rows, name), cut(calibration_rows, "train", name)
    alone = succeeds("calibrate", one, *PLAIN, "-o", "one-cal.json")
    together = succeeds("calibrate", many, *PLAIN, "-o", "cal.json", "--cluster", cluster)
    assert told(alone, "Wrote", "data ") == told(together, "Wrote", "data ")
    assert calibration("one-cal.json") == calibration("cal.json")
    assert_same_predictions(cluster, "cal.json", name, test_rows)
    assert_same_evaluation(cluster, "cal.json", name, test_rows, report=name.startswith("rows.csv"))


OPTIONS = {
    "groups": ([*PLAIN, "--group", "site"], []),
    "true classes": ([*PLAIN, "--per-class"], []),
    "alpha by class": ([*CLASSES, "--alpha", "None=0.3,Mild=0.2,Moderate=0.2,Severe=0.1"], []),
    "groups by true class": ([*CLASSES, "--alpha", "0.3", "--per-class", "--group", "site"], []),
    "binomial": ([*PLAIN, "--delta", "0.1", "--confidence-bound", "binomial"], []),
    "hoeffding_bentkus": (
        [*PLAIN, "--delta", "0.2", "--confidence-bound", "hoeffding_bentkus", "--loss", "divergence"],
        [],
    ),
    "binomial by group": ([*CLASSES, "--alpha", "0.2", "--delta", "0.1", "--group", "site"], []),
    "class ratios": ([*PLAIN, "--class-ratios", "1,2,1,0.5"], []),
    "costs": ([*PLAIN, "--weights", "1,1,2,4", "--growth", "adaptive"], ["--alpha", "0.2"]),
    "too few rows": ([*CLASSES, "--alpha", "0.001"], []),
}


@pytest.mark.parametrize(("calibrating", "using"), OPTIONS.values(), ids=OPTIONS)
def test_every_option_gives_what_one_file_does(cluster, calibrating, using, calibration_rows, test_rows):
    one, many = write_table(calibration_rows, "rows.parquet"), cut(calibration_rows, "train")
    alone = succeeds("calibrate", one, *calibrating, "-o", "one-cal.json")
    together = succeeds("calibrate", many, *calibrating, "-o", "cal.json", "--cluster", cluster)
    assert told(alone, "Wrote", "data ") == told(together, "Wrote", "data ")
    assert calibration("one-cal.json") == calibration("cal.json")
    assert_same_predictions(cluster, "cal.json", "rows.parquet", test_rows, *using)
    with_report = "--group" in calibrating
    assert_same_evaluation(cluster, "cal.json", "rows.csv", test_rows, *using, report=with_report)


def tied(table, scores):
    """A table with few different rows of scores, those of another: so coins decide about many labels."""
    rows = np.arange(len(table)) % 7
    for name in ("p0", "p1", "p2", "p3"):
        at = table.schema.names.index(name)
        table = table.set_column(at, name, scores[name].take(rows))
    return table


@pytest.mark.parametrize("options", [[], ["--group", "site"]], ids=["all rows", "groups"])
def test_coins_are_those_of_one_file(cluster, options, calibration_rows, test_rows):
    train, new = tied(calibration_rows, calibration_rows), tied(test_rows, calibration_rows)
    one, many = write_table(train, "train.parquet"), cut(train, "train")
    given = [*CLASSES, "--alpha", "0.35", "--randomize", *options]
    succeeds("calibrate", one, *given, "-o", "one-cal.json")
    succeeds("calibrate", many, *given, "-o", "cal.json", "--cluster", cluster)
    assert calibration("one-cal.json") == calibration("cal.json")
    assert_same_predictions(cluster, "cal.json", "rows.csv", new, "--random-state", "3")
    sizes = [row["size"] for row in rows_in("sets")]
    succeeds("predict", "cal.json", "parts/*", "-o", "sets", "--random-state", "4", "--cluster", cluster)
    assert sum(a != b for a, b in zip(sizes, (row["size"] for row in rows_in("sets")), strict=True)) > 2
    assert_same_evaluation(cluster, "cal.json", "rows.csv", new, "--random-state", "3")


ONE_MACHINE = {
    "patients": ["--cluster-col", "patient"],
    "weights by site": ["--weight-col", "ratio", "--group", "site"],
}


@pytest.mark.parametrize("calibrating", ONE_MACHINE.values(), ids=ONE_MACHINE)
def test_what_one_machine_calibrated_predicts_on_a_cluster(cluster, calibrating, calibration_rows, test_rows):
    write_table(calibration_rows, "train.parquet")
    succeeds("calibrate", "train.parquet", *PLAIN, *calibrating, "-o", "cal.json")
    assert_same_predictions(cluster, "cal.json", "rows.parquet", test_rows)
    assert_same_evaluation(cluster, "cal.json", "rows.parquet", test_rows)


def test_weights_too_large_to_certify_are_noted_once(cluster, calibration_rows, test_rows):
    write_table(calibration_rows, "train.parquet")
    succeeds("calibrate", "train.parquet", *PLAIN, "--weight-col", "ratio", "-o", "cal.json")
    at = test_rows.schema.names.index("ratio")
    heavy = test_rows.set_column(at, "ratio", pa.array([1e9 if i % 90 == 0 else 1.0 for i in range(N_ROWS)]))
    assert_same_predictions(cluster, "cal.json", "rows.parquet", heavy)
    together = succeeds("predict", "cal.json", "parts/*", "-o", "sets", "--cluster", cluster)
    assert together.stdout.count("nothing can be certified") == 1
    assert "Note: 4 of 360 rows" in together.stdout
    assert_same_evaluation(cluster, "cal.json", "rows.parquet", heavy, report=False)


def test_logits_and_scores_to_rescale(cluster, calibration_rows):
    scores = [f"p{k}" for k in range(4)]
    proba = np.column_stack([calibration_rows[name] for name in scores])
    labels = calibration_rows["y"].to_pylist()
    for table, option in (
        (score_table(np.log(proba) + 3, labels), "--logits"),
        (score_table(np.round(proba * 100) + 1, labels), "--rescale"),
    ):
        one, many = write_table(table, "rows.parquet"), cut(table, "train")
        succeeds("calibrate", one, *PLAIN, option, "-o", "one-cal.json")
        succeeds("calibrate", many, *PLAIN, option, "-o", "cal.json", "--cluster", cluster)
        assert calibration("one-cal.json") == calibration("cal.json")
        assert_same_predictions(cluster, "cal.json", "rows.parquet", table)


def saved_by(cluster, table, n_files, out, *options):
    cuts = [int(at) for at in np.linspace(0, len(table), n_files + 1)[1:-1]]
    shutil.rmtree("train", ignore_errors=True)
    pattern = cut(table, "train", cuts=cuts)
    succeeds("calibrate", pattern, *PLAIN, *options, "-o", out, "--cluster", cluster)
    return Path(out).read_text()


@pytest.mark.parametrize(
    ("small", "options"),
    [(False, []), (True, ["--group", "site", "--more-alphas", "0.2,0.05"])],
    ids=["all steps kept", "windows of groups"],
)
def test_saved_files_are_the_same_for_any_number_of_files(
    cluster, calibration_rows, small, options, monkeypatch
):
    if small:
        search_few_steps(monkeypatch)
    saved = [saved_by(cluster, calibration_rows, n, f"{n}.json", *options) for n in (1, 3, 8, 8)]
    assert saved[2] == saved[3]
    digests = [json.loads(text)["data_blake3"] for text in saved]
    assert len(set(digests)) == 3

    def less(text):
        return [line for line in text.splitlines() if "blake3" not in line]

    assert less(saved[0]) == less(saved[1]) == less(saved[2])
    whole = json.loads(saved[0])
    for text in saved[1:]:
        other = json.loads(text)
        changed = {name for name in whole["digests"] if whole["digests"][name] != other["digests"][name]}
        assert changed == {"data_blake3"}


def test_another_alpha_is_answered_if_it_was_announced(cluster, calibration_rows, test_rows, monkeypatch):
    search_few_steps(monkeypatch)
    train, new = cut(calibration_rows, "train"), cut(test_rows, "new")
    write_table(calibration_rows, "train.parquet")
    write_table(test_rows, "new.parquet")
    succeeds("calibrate", "train.parquet", *PLAIN, "-o", "one.json")
    here = ["--cluster", cluster]
    succeeds("calibrate", train, *PLAIN, "--more-alphas", "0.02, 0.05", "-o", "cal.json", *here)
    for alpha in ("0.02", "0.05"):
        succeeds("predict", "one.json", "new.parquet", "-o", "one.parquet", "--alpha", alpha)
        succeeds("predict", "cal.json", new, "-o", "sets", "--alpha", alpha, *here)
        assert rows_in("sets") == read_rows(Path("one.parquet").read_bytes(), "one.parquet")
    line = refusal(2, "predict", "cal.json", new, "-o", "other", "--alpha", "0.3", *here)
    assert "near alpha=0.1 and 0.02 and 0.05 only" in line, line
    assert line.endswith("calibrate again with 0.3 in --more-alphas.")
    assert not Path("other").exists()


def test_columns_formats_and_names_of_the_output(cluster, calibration_rows, test_rows):
    write_table(calibration_rows, "train.parquet")
    write_table(test_rows, "new.csv")
    new = cut(test_rows, "new", "rows.csv.gz")
    succeeds("calibrate", "train.parquet", *PLAIN, "-o", "cal.json")
    chosen = ["--keep", "id,a*", "--prefix", "set_"]
    succeeds("predict", "cal.json", "new.csv", "-o", "one.jsonl", *chosen)
    out = ["--output-format", "jsonl", "--cluster", cluster]
    succeeds("predict", "cal.json", new, "-o", "sets", *chosen, *out)
    assert rows_in("sets") == read_rows(Path("one.jsonl").read_bytes(), "one.jsonl")
    assert sorted(path.name for path in Path("sets").iterdir()) == [
        MANIFEST,
        *(f"rows-{i:02d}.jsonl" for i in range(3)),
    ]
    found = manifest("sets")
    saved = json.loads(Path("cal.json").read_text())
    assert found["calibration"] == saved["data_blake3"]
    assert found["format"] == "ordinalrisk prediction"
    assert found["package_version"] == saved["package_version"]
    assert len(found["thresholds"]) == 1


def test_files_without_an_ending_are_written_in_the_format_they_are_said_to_have(
    cluster, calibration_rows, test_rows
):
    write_table(calibration_rows, "train.parquet")
    succeeds("calibrate", "train.parquet", *PLAIN, "-o", "cal.json")
    Path("part-a").write_bytes(encoded(test_rows, "x.csv"))
    here = ["--cluster", cluster]
    line = refusal(1, "predict", "cal.json", "part-a", "-o", "sets", *here)
    assert line.endswith("part-a: can't infer the format from this name; give --output-format.")
    succeeds("predict", "cal.json", "part-a", "-o", "sets", "--input-format", "csv", *here)
    assert [each["name"] for each in manifest("sets")["files"]] == ["part-a.csv"]
    assert len(rows_in("sets")) == N_ROWS


def test_groups_that_were_not_calibrated(cluster, calibration_rows, test_rows):
    sites = test_rows["site"].to_pylist()
    sites[205] = "west"
    at = test_rows.schema.names.index("site")
    table = test_rows.set_column(at, "site", pa.array(sites))
    write_table(calibration_rows, "train.parquet")
    succeeds("calibrate", "train.parquet", *PLAIN, "--group", "site", "-o", "cal.json")
    assert_same_predictions(cluster, "cal.json", "rows.parquet", table, "--unseen-groups", "full")
    line = refusal(1, "predict", "cal.json", "parts/*", "-o", "other", "--cluster", cluster)
    assert "rows-02.parquet: row 6, column 'site': the group 'west' has no calibration rows" in line
    line = refusal(1, "evaluate", "cal.json", "parts/*", "--cluster", cluster)
    assert "rows-02.parquet: row 6, column 'site': the group 'west'" in line


def test_groups_are_in_the_order_of_the_files(cluster, calibration_rows):
    sites = calibration_rows["site"].to_pylist()
    cut(calibration_rows, "train")
    first, last = [f"train/rows-{i:02d}.parquet" for i in (0, 2)]
    for given, met in ([first, last], sites[:10] + sites[200:]), ([last, first], sites[200:] + sites[:10]):
        succeeds("calibrate", *given, *PLAIN, "--group", "site", "-o", "cal.json", "--cluster", cluster)
        assert json.loads(Path("cal.json").read_text())["groups"] == list(dict.fromkeys(met))


def test_the_very_rows_of_the_calibration_are_known_again(cluster, calibration_rows):
    train, here = cut(calibration_rows, "train"), ["--cluster", cluster]
    succeeds("calibrate", train, *PLAIN, "-o", "cal.json", *here)
    words = {}
    for cuts in ((10, 200), (20, 200)):
        test = cut(calibration_rows, f"test-{cuts[0]}", cuts=cuts)
        succeeds("evaluate", "cal.json", test, "--json", "found.json", *here)
        words[cuts[0]] = json.loads(Path("found.json").read_text())["verdict_text"]
    assert "these are the rows of the calibration itself" in words[10]
    assert "calibration itself" not in words[20]
    more = pa.concat_tables([calibration_rows] * 3)  # the second file has too many to be looked at
    succeeds("calibrate", cut(calibration_rows, "whole", cuts=()), *PLAIN, "-o", "cal.json", *here)
    twice = cut(more, "twice", cuts=(N_ROWS,))
    succeeds("evaluate", "cal.json", twice, "--json", "found.json", *here)
    assert "calibration itself" not in json.loads(Path("found.json").read_text())["verdict_text"]


def test_paths_are_those_of_the_command_not_of_the_workers(cluster, here, calibration_rows, running):
    cut(calibration_rows, "train")
    with Client(running.scheduler_address) as client:
        assert str(here) not in client.run(os.getcwd).values()
    os.chdir("train")
    there = ["--cluster", cluster]
    succeeds(
        "calibrate", "rows-00.parquet", "../train/rows-0[12].parquet", *PLAIN, "-o", "../cal.json", *there
    )
    succeeds("predict", "../cal.json", "*.parquet", "-o", "../sets/new/ones", *there)
    assert len(rows_in(here / "sets/new/ones")) == N_ROWS
