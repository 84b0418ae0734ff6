"""Triage of files: the commands ``triage`` and ``decide``, and what they refuse."""

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from command import refusal, succeeds
from file_formats import score_table, write_table
from saved_documents import with_digests
from unchecked import FEW

import ordinalrisk as orisk

pytestmark = FEW

GRADES = ["none", "mild", "severe"]
COLUMNS = "--scores", "p0,p1,p2", "--label", "y", "--classes", "none,mild,severe"
N = 3000
PROBA = np.random.default_rng(0).dirichlet([0.1, 0.2, 0.1], N)
Y = (PROBA.cumsum(axis=1)[:, :-1] < np.random.default_rng(1).random((N, 1))).sum(axis=1)
SITE = np.array(["north", "south"])[np.arange(N) % 2]


@pytest.fixture(autouse=True)
def files(here):
    table = score_table(PROBA, [GRADES[k] for k in Y], id=np.arange(N), site=SITE)
    write_table(table, "rows.parquet")
    write_table(table.slice(0, 1000), "first.csv")
    write_table(table.slice(1000), "rest.csv")
    write_table(table.drop_columns("y"), "new.csv")


def in_memory(loss="coverage", groups=None, **options):
    made = orisk.TriageController(loss, 0.05, 0.1, GRADES, **options)
    return made.calibrate(PROBA, np.array(GRADES)[Y], groups=groups)


@pytest.mark.parametrize("loss", ["coverage", "divergence"])
@pytest.mark.parametrize("paths", [["rows.parquet"], ["first.csv", "rest.csv"]], ids=len)
def test_files_are_triaged_and_decided_as_arrays_are(loss, paths):
    wanted = in_memory(loss, groups=SITE)
    options = "--alpha", "0.05", "--delta", "0.1", "--loss", loss, "--group", "site"
    done = succeeds("triage", *paths, *COLUMNS, *options, "-o", "triage.json")
    assert " ".join(str(wanted.guarantee()).split()) in " ".join(done.stdout.split())
    made = orisk.TriageController.load("triage.json")
    assert made.threshold_ == wanted.threshold_
    assert made.columns_.group == "site"
    done = succeeds("decide", "triage.json", "new.csv", "-o", "decided.parquet", "--prefix", "t_")
    decisions = wanted.decide(PROBA, groups=SITE)
    n = int(decisions.accepted.sum())
    assert f"3,000 rows, {n:,} accepted ({n / N:.1%}), {N - n:,} referred." in done.stdout
    table = pyarrow.parquet.read_table("decided.parquet")
    assert table.column_names == ["id", "site", "t_accepted", "t_label", "t_model_risk"]
    assert table["t_accepted"].to_pylist() == decisions.accepted.tolist()
    assert table["t_model_risk"].to_pylist() == decisions.model_risk.tolist()
    labels = [GRADES[k] if k >= 0 else None for k in decisions.label_index.tolist()]
    assert table["t_label"].to_pylist() == labels
    assert 0 < n < N


@pytest.mark.parametrize("name", ["decided.csv", "decided.arrow", "decided.jsonl"])
def test_every_format_has_no_label_where_a_row_is_referred(name):
    in_memory().save("triage.json")
    succeeds("decide", "triage.json", "new.csv", *COLUMNS[:2], "-o", name, "--keep", "id")
    decisions = in_memory().decide(PROBA)
    if name.endswith(".jsonl"):
        rows = [json.loads(line) for line in Path(name).read_text().splitlines()]
        found = [row["label"] for row in rows]
    elif name.endswith(".csv"):
        kept = pyarrow.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
        found = pyarrow.csv.read_csv(name, convert_options=kept)["label"].to_pylist()
    else:
        found = pyarrow.ipc.open_file(name).read_all()["label"].to_pylist()
    assert found == [GRADES[k] if k >= 0 else None for k in decisions.label_index.tolist()]


def test_whole_numbers_are_labels_too():
    made = orisk.TriageController(alpha=0.05, delta=0.1).calibrate(PROBA, Y)
    done = orisk.jobs.decide(made, "new.csv", "decided.parquet", scores="p0,p1,p2")
    table = pyarrow.parquet.read_table("decided.parquet")
    accepted = made.decide(PROBA).accepted
    assert done == (N, accepted.sum())
    assert table["label"].null_count == N - accepted.sum()
    assert table["label"].to_pandas()[accepted].tolist() == PROBA.argmax(axis=1)[accepted].tolist()


def test_the_numbers_of_the_curve_are_written():
    succeeds("triage", "rows.parquet", *COLUMNS, "--alpha", "0.05", "-o", "t.json", "--json", "curve.json")
    document = json.loads(Path("curve.json").read_text())
    assert document["format"] == "ordinalrisk triage result"
    [own] = document["calibrated"]
    assert own["alpha"] == "0.05"
    assert own in document["curve"]
    assert [point["alpha"] for point in document["curve"]][:3] == ["0.005", "0.01", "0.02"]


def test_too_few_rows_are_noted_and_everything_is_referred():
    write_table(score_table(PROBA[:20], [GRADES[k] for k in Y[:20]]), "few.csv")
    done = succeeds("triage", "few.csv", *COLUMNS, "--alpha", "0.05", "-o", "t.json")
    assert "Note: All rows are referred: with alpha=0.05" in " ".join(done.output.split())
    done = succeeds("decide", "t.json", "new.csv", "-o", "decided.csv")
    assert "0 accepted (0.0%), 3,000 referred." in done.stdout


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        (
            2,
            ("triage", "rows.parquet", *COLUMNS, "--alpha", "2", "-o", "t.json"),
            "--alpha must lie strictly",
        ),
        (2, ("triage", "rows.parquet", *COLUMNS, "--alpha", "none=1", "-o", "t.json"), "--alpha must be one"),
        (
            2,
            ("triage", "rows.parquet", *COLUMNS, "--alpha", "0.1", "--delta", "2", "-o", "t.json"),
            "--delta",
        ),
        (
            2,
            ("triage", "rows.parquet", *COLUMNS, "--alpha", "0.1", "--point", "given", "-o", "t.json"),
            "can't be given in a file",
        ),
        (
            2,
            ("triage", "rows.parquet", *COLUMNS, "--alpha", "0.1", "-o", "t.json", "--json", "t.json"),
            "--json: t.json is --out too",
        ),
        (
            2,
            ("triage", "rows.parquet", *COLUMNS, "--alpha", "0.1", "-o", "t.json", "--json", "sub/../t.json"),
            "is --out too",
        ),
        (
            2,
            ("triage", "rows.parquet", *COLUMNS, "--alpha", "0.1", "-o", "t.json", "--random-state", "-1"),
            "--random-state must be 0 or larger; got -1",
        ),
        (1, ("triage", "new.csv", *COLUMNS, "--alpha", "0.1", "-o", "t.json"), "'y'"),
        (1, ("decide", "rows.parquet", "new.csv", "-o", "d.csv"), "The triage comes first"),
        (2, ("decide", "ready.json", "*.csv", "-o", "d.csv"), "decide reads one file at a time"),
        (2, ("decide", "ready.json", "new.csv", "-o", "new.csv"), "--out"),
        (2, ("decide", "ready.json", "new.csv", "-o", "d.parquet", "--safe-csv"), "the output is not CSV"),
        (
            2,
            ("decide", "ready.json", "new.csv", "-o", "d.csv", "--unseen-groups", "refer"),
            "made without groups",
        ),
        (1, ("decide", "ready.json", "rest.csv", "--keep", "accepted", "-o", "d.csv"), "accepted"),
    ],
)
def test_wrong_commands_are_refused(code, arguments, message):
    Path("sub").mkdir()
    orisk.jobs.triage(
        orisk.TriageController(alpha=0.1),
        "rows.parquet",
        classes=GRADES,
        scores="p0,p1,p2",
        label="y",
    ).save("ready.json")
    assert message in refusal(code, *arguments)
    assert not Path("d.csv").exists()
    assert not Path("t.json").exists()


def test_groups_that_were_not_calibrated_are_refused_or_referred():
    in_memory(groups=np.where(SITE == "north", "north", "west")).save("triage.json")
    arguments = "decide", "triage.json", "new.csv", *COLUMNS[:2], "--group", "site", "-o", "decided.csv"
    assert "or refer them with --unseen-groups refer" in refusal(1, *arguments)
    succeeds(*arguments, "--unseen-groups", "refer")
    table = pyarrow.csv.read_csv("decided.csv")
    south = np.array(table["site"].to_pylist()) == "south"
    assert not np.array(table["accepted"].to_pylist())[south].any()


def test_jobs_say_what_they_take():
    with pytest.raises(ValueError, match="must be a TriageController; got a RiskController"):
        orisk.jobs.decide(orisk.RiskController(), "new.csv", "d.csv")
    given = orisk.TriageController(point="given")
    with pytest.raises(ValueError, match='this triage has point="given"'):
        orisk.jobs.triage(given, "rows.parquet", scores="p0,p1,p2", label="y", classes=GRADES)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", 2),
        ("delta", "3/2"),
        ("point", "mean"),
        ("n_accepted", 10**6),
        ("n_accepted", 3),
        ("total_loss", "1/2"),
        ("total_loss", "10000"),
        ("total_loss", "MOST"),  # alpha of the accepted rows, which no test rejects
        ("threshold", {"hex": "-0x1.8p+0", "decimal": "-1.5"}),
        ("threshold", {"hex": "0x0.0p+0", "decimal": "0.0"}),
        ("threshold", {"hex": "inf", "decimal": "inf"}),
        ("threshold", {"hex": "-inf", "decimal": "-inf"}),
        ("threshold", {"hex": "0x1.8p-3", "decimal": "0.25"}),
        ("group", "north"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(field, value):
    in_memory(groups=SITE).save("triage.json")
    document = json.loads(Path("triage.json").read_text())
    part = document["parts"][1]
    assert part["n_accepted"] not in (0, part["n_rows"])
    if value == "MOST":
        value = str(part["n_accepted"] // 20)
    (part if field in part else document)[field] = value
    Path("triage.json").write_text(json.dumps(with_digests(document)))
    with pytest.raises(ValueError, match="can't be loaded: field"):
        orisk.TriageController.load("triage.json")


def test_a_file_that_accepts_too_few_rows_to_certify_anything_is_refused():
    in_memory().save("triage.json")
    document = json.loads(Path("triage.json").read_text())
    document["parts"][0] |= {"n_accepted": 3, "total_loss": "0"}
    Path("triage.json").write_text(json.dumps(with_digests(document)))
    with pytest.raises(ValueError, match="accepts fewer rows than can certify alpha"):
        orisk.TriageController.load("triage.json")


def test_an_edited_or_cut_file_is_refused():
    in_memory().save("triage.json")
    text = Path("triage.json").read_text()
    Path("triage.json").write_text(text.replace('"alpha": 0.05', '"alpha": 0.06', 1))
    with pytest.raises(ValueError, match="'alpha' does not match its digest"):
        orisk.TriageController.load("triage.json")
    Path("triage.json").write_text(text[:400])
    with pytest.raises(ValueError, match="is not a whole JSON file"):
        orisk.TriageController.load("triage.json")
