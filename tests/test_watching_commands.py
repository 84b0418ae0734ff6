"""``monitor`` and ``drift`` in use: repeated files, other guarantees, JSON and exit codes."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import refusal, run, succeeds
from file_formats import write_table
from test_command_guarantees import GRADES, NEW, PLAIN, calibrate, files
from unchecked import UNCHECKED

import ordinalrisk as orisk

pytestmark = UNCHECKED
SHARE = ["--weights", "3,1,1", "--relative"]
EXEMPT = ["--per-class", "--exempt-class", "None"]
both = pytest.mark.parametrize("command", ["monitor", "drift"])


@pytest.fixture(autouse=True)
def some_files(tmp_path, monkeypatch):
    return files.__wrapped__(tmp_path, monkeypatch)


def text_of(done):
    return " ".join(done.stdout.split())


@both
def test_files_that_come_again_are_noticed_in_any_order(command):
    calibrate("rows.csv", *PLAIN)
    write_table(NEW.table.take(np.random.default_rng(0).permutation(200)), "shuffled.parquet")
    write_table(NEW.table.slice(0, 170), "start.csv")
    write_table(NEW.table.slice(170), "end.csv")
    succeeds(command, "state.json", "cal.json", "new.csv")
    before = Path("state.json").read_bytes()
    twice = (
        "rows were watched before{}, and would count twice; {}, or add --again if they are other rows with"
    )
    for name, (rows, order, remedy) in {
        "new.parquet": ("its 200", "", "leave it out"),
        "shuffled.parquet": ("its 200", ", in another order", "leave it out"),
        "start.csv": ("its first 160", "", "give the rows that are new"),
    }.items():
        line = refusal(1, command, "state.json", "cal.json", name)
        assert line.startswith(f"{name}: {rows} {twice.format(order, remedy)}")
        assert line.endswith("Nothing was changed.")
    assert Path("state.json").read_bytes() == before
    assert run(command, "state.json", "cal.json", "shuffled.parquet", "--again").exit_code in (0, 3)
    assert run(command, "state.json", "cal.json", "end.csv").exit_code in (0, 3), "ends are not known again"


@both
def test_two_files_of_one_call_with_the_same_rows_are_noticed(command):
    calibrate("rows.csv", *PLAIN)
    Path("both").mkdir()
    write_table(NEW.table, "both/a.csv")
    write_table(NEW.table.take(np.arange(200)[::-1]), "both/b.csv")
    line = refusal(1, command, "state.json", "cal.json", "both/*.csv")
    assert line.startswith("both/b.csv: its 200 rows were watched before, in another order, and would")
    assert not Path("state.json").exists()


@pytest.mark.parametrize(
    ("options", "promise"),
    [
        (SHARE, {"relative": True}),
        (EXEMPT, {"exempt_classes": ["None"]}),
        ([*EXEMPT, *SHARE], {"relative": True, "exempt_classes": ["None"]}),
    ],
    ids=str,
)
def test_what_is_watched_is_what_the_calibration_promises(options, promise):
    calibrate("rows.csv", *PLAIN, *options)
    done = succeeds("monitor", "watch.json", "cal.json", "new.csv", "--json", "found.json")
    controller = orisk.RiskController.load("cal.json")
    monitor = orisk.RiskMonitor(controller.loss, 0.1, 0.05, GRADES, **promise)
    monitor.update(NEW.y, controller.predict_set(NEW.proba))
    resumed = orisk.RiskMonitor.load("watch.json")
    assert repr(resumed) == repr(monitor)
    assert resumed.evidence_ == monitor.evidence_
    n_exempt = NEW.y.count("None") if "exempt_classes" in promise else 0
    n_rows, share = 200 - n_exempt, promise.get("relative", False)
    what = "loss, as a share of what could be lost," if share else "mean loss"
    expected = (
        f"No alarm after {n_rows} rows, {n_rows} of them new. The {what} is {monitor.risk_:.4g}. The "
        f"evidence against an expected loss of at most 0.1{' of what could be lost' * share} is "
        f"{monitor.evidence_:.3g}; an alarm needs 1/delta = 20."
    )
    assert text_of(done).startswith(expected)
    assert (f"{n_exempt:,} rows of exempt classes are left out." in text_of(done)) == (n_exempt > 0)
    document = json.loads(Path("found.json").read_text())
    assert (document["relative"], document["exempt_rows"], document["rows"]) == (share, n_exempt, n_rows)
    assert document["risk"] == monitor.risk_
    calibrate("rows.csv", *PLAIN, *(SHARE[:2] if share else []), out="plain.json")
    line = refusal(2, "monitor", "watch.json", "plain.json", "new.csv", "--again")
    assert line.startswith("watch.json tests another guarantee than that of the calibration: --relative or")


def test_the_alarm_of_a_share_names_it():
    calibrate("rows.csv", *PLAIN, *SHARE)
    write_table(NEW.table.set_column(6, "y", pa.array(["Severe"] * 200)), "bad.csv")
    done = run("monitor", "watch.json", "cal.json", "bad.csv", "--json", "found.json")
    assert done.exit_code == 3
    assert (
        "strong evidence against an expected loss of at most 0.1 of what could be lost. The loss, as a"
        in text_of(done)
    )
    document, monitor = json.loads(Path("found.json").read_text()), orisk.RiskMonitor.load("watch.json")
    assert document == {
        "format": "ordinalrisk monitor result",
        "package_version": orisk.__version__,
        "alarm": True,
        "alarm_row": monitor.alarm_row_,
        "delta": "0.05",
        "evidence": monitor.evidence_,
        "p_value": monitor.p_value_,
        "rise_row": monitor.rise_row_,
        "rows": 200,
        "new_rows": 200,
        "files": 1,
        "unit": "row",
        "exempt_rows": 0,
        "alpha": "0.1",
        "relative": True,
        "risk": monitor.risk_,
        "recent_risk": monitor.recent_risk_,
    }


def test_drift_as_json():
    calibrate("rows.csv", *PLAIN)
    done = succeeds("drift", "drift.json", "cal.json", "new.csv", "--json", "found.json")
    assert text_of(done).endswith("Wrote found.json")
    drift = orisk.ScoreDrift.load("drift.json")
    assert json.loads(Path("found.json").read_text()) == {
        "format": "ordinalrisk drift result",
        "package_version": orisk.__version__,
        "alarm": False,
        "alarm_row": None,
        "delta": "0.01",
        "evidence": drift.evidence_,
        "p_value": drift.p_value_,
        "rise_row": None,
        "rows": 200,
        "new_rows": 200,
        "files": 1,
        "unit": "row",
        "uncertainty": drift.uncertainty_,
        "calibrated_uncertainty": drift.calibrated_uncertainty_,
    }


@both
def test_the_json_replaces_nothing_that_is_read(command):
    calibrate("rows.csv", *PLAIN)
    succeeds(command, "state.json", "cal.json", "new.csv")
    for name in ("state.json", "cal.json", "rows.csv"):
        before = Path(name).read_bytes()
        line = refusal(2, command, "state.json", "cal.json", "rows.csv", "--json", name)
        assert line == f"--json: {name} is read too, and would be lost; choose another name."
        assert Path(name).read_bytes() == before
    line = refusal(2, command, "absent.json", "cal.json", "rows.csv", "--json", "absent.json")
    assert line == "--json: absent.json is STATE too; choose another name."


def test_several_files_of_a_randomized_calibration_toss_the_coins_that_predict_tosses():
    """Rows are numbered through all files, as where sets are predicted."""
    calibrate("rows.csv", *PLAIN, "--randomize")
    Path("months").mkdir()
    write_table(NEW.table.slice(0, 90), "months/a.csv")
    write_table(NEW.table.slice(90), "months/b.csv")
    seed = ["--random-state", 3]
    for state, name in {"whole.json": "new.csv", "parts.json": "months/*.csv"}.items():
        assert run("monitor", state, "cal.json", name, *seed).exit_code in (0, 3)
    whole, parts = (orisk.RiskMonitor.load(f"{name}.json") for name in ("whole", "parts"))
    assert (parts.evidence_, parts.risk_) == (whole.evidence_, whole.risk_)


def test_clusters_of_several_files_are_watched_once_all_are_read():
    calibrate("rows.csv", *PLAIN, "--cluster-col", "patient")
    Path("months").mkdir()
    middle = next(i for i in range(100, 200) if NEW.patient[i] == NEW.patient[i - 1])
    write_table(NEW.table.slice(0, middle), "months/a.csv")
    write_table(NEW.table.slice(middle), "months/b.csv")
    assert run("monitor", "parts.json", "cal.json", "months/*.csv").exit_code == 0
    assert run("monitor", "whole.json", "cal.json", "new.csv").exit_code == 0
    whole, parts = (orisk.RiskMonitor.load(f"{name}.json") for name in ("whole", "parts"))
    assert (parts.n_rows_, parts.evidence_) == (whole.n_rows_, whole.evidence_)
    assert [file.n_rows for file in parts.files_] == [middle, 200 - middle]
