"""Files that earlier versions saved still load and predict what they did, and say what has changed."""

import json
import re
from pathlib import Path

import pytest

import ordinalrisk as orisk

SAVED = Path(__file__).parent / "saved"
THRESHOLDS = {
    "schema-4-plain.json": [0.15733333333333333],
    "schema-4-betting.json": [0.2913752913752914, 0.5006666666666666],
    "schema-4-paper.json": [
        0.12287712287712282,
        0.33399999999999996,
        0.5964035964035963,
        0.29400000000000004,
    ],
    "schema-5-groups.json": [0.125, 0.125],
    "schema-5-betting.json": [0.25],
    "schema-5-plain.json": [0.24],
    "schema-5-by-class.json": [0.28, 0.24, 0.12],
    "schema-6-plain.json": [0.2],
    "schema-7-plain.json": [0.2],
}
WARNINGS = {
    "schema-4-betting.json": "shuffled the rows by a digest of the rows themselves.*calibrate again",
    "schema-4-paper.json": "added the left label where both neighbours tie.*calibrate again",
}


def loaded(path):
    if (message := WARNINGS.get(path.name)) is None:
        return orisk.RiskController.load(path)
    with pytest.warns(UserWarning, match=message):
        return orisk.RiskController.load(path)


@pytest.mark.parametrize("name", THRESHOLDS)
def test_calibrations_of_older_schemas_load_with_the_same_thresholds(name):
    assert loaded(SAVED / name).thresholds_ == THRESHOLDS[name]


@pytest.mark.parametrize("name", [name for name in THRESHOLDS if "paper" not in name])
def test_they_are_saved_in_the_schema_of_today(name, tmp_path):
    one = loaded(SAVED / name)
    one.save(tmp_path / name)
    assert json.loads((tmp_path / name).read_text())["schema_version"] == 8
    again = loaded(tmp_path / name)
    assert again.thresholds_ == one.thresholds_
    assert again.guarantee() == one.guarantee()
    assert not again.relative


def test_an_unknown_schema_is_refused_with_those_that_can_be_read(tmp_path):
    document = json.loads((SAVED / "schema-4-plain.json").read_text()) | {"schema_version": 3}
    (tmp_path / "old.json").write_text(json.dumps(document))
    message = re.escape("field 'schema_version' is 3; this version of ordinalrisk reads 4, 5, 6, 7, 8")
    with pytest.raises(ValueError, match=message):
        orisk.RiskController.load(tmp_path / "old.json")


@pytest.mark.parametrize("field", ["loss", "growth", "strata"])
def test_an_old_file_that_was_edited_is_refused_by_the_name_of_the_field(field, tmp_path):
    document = json.loads((SAVED / "schema-4-plain.json").read_text()) | {field: "other"}
    (tmp_path / "old.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=f"field '{field}' does not match its digest"):
        orisk.RiskController.load(tmp_path / "old.json")


# the present schemas: a file of each kind of calibration, and its predictions when it was saved

EXPECTED = json.loads((SAVED / "expected.json").read_text())
CALIBRATIONS = SAVED / "schema-5"


def ends(sets):
    return {"lower": sets.lower_index.tolist(), "upper": sets.upper_index.tolist()}


def assert_as_expected(found, sets, expected):
    assert [threshold.hex() for threshold in found.thresholds_] == expected["thresholds"]
    assert ends(sets) == {end: expected[end] for end in ("lower", "upper")}


@pytest.mark.filterwarnings("ignore:1 of 6 new rows have weights so large")
@pytest.mark.parametrize("name", EXPECTED["calibrations"])
def test_a_calibration_of_schema_5_predicts_the_sets_of_then(name):
    expected, found = EXPECTED["calibrations"][name], orisk.RiskController.load(CALIBRATIONS / f"{name}.json")
    assert_as_expected(found, found.predict_set(EXPECTED["proba"], **expected["rows"]), expected)


@pytest.mark.parametrize("name", EXPECTED["calibrations"])
def test_a_calibration_of_schema_5_that_is_saved_again_keeps_its_promise(name, tmp_path):
    found = orisk.RiskController.load(CALIBRATIONS / f"{name}.json")
    found.save(tmp_path / "again.json")
    again = orisk.RiskController.load(tmp_path / "again.json")
    assert again.guarantee() == found.guarantee()
    assert again.thresholds_ == found.thresholds_
    assert again.data_blake3_ == found.data_blake3_


def test_every_file_of_schema_5_has_its_sets():
    assert {path.stem for path in CALIBRATIONS.glob("*.json")} == EXPECTED["calibrations"].keys()


def test_a_signed_calibration_of_schema_5_is_verified():
    key, expected = CALIBRATIONS / "public.pem", EXPECTED["calibrations"]["signed"]
    found = orisk.RiskController.load(CALIBRATIONS / "signed.json", key=key)
    assert_as_expected(found, found.predict_set(EXPECTED["proba"]), expected)
    with pytest.raises(ValueError, match="signature"):
        orisk.RiskController.load(CALIBRATIONS / "randomize.json", key=key)


def test_a_run_of_schema_1_has_no_rows_pending():
    run = orisk.OnlineRiskController.load(SAVED / "schema-1-online.json")
    assert (run.n_rows_, run.n_pending_, run.most_pending_) == (60, 0, 1)
    assert run.risk_ == pytest.approx(14 / 3 / 60)


def test_a_run_of_schema_2_goes_on_as_it_did_then():
    """Two of its rows had no label yet when it was saved."""
    run, expected = orisk.OnlineRiskController.load(SAVED / "schema-2-online.json"), EXPECTED["online"]
    assert run.n_pending_ == 2
    run.update(expected["y"])
    assert run.threshold_.hex() == expected["threshold"]
    assert ends(run.predict_set(EXPECTED["proba"])) == {end: expected[end] for end in ("lower", "upper")}


def test_a_monitor_of_schema_1_goes_on_as_it_did_then():
    monitor, expected = orisk.RiskMonitor.load(SAVED / "schema-1-monitor.json"), EXPECTED["monitor"]
    assert not monitor.alarm_
    n_rows = len(expected["y"])
    assert monitor.update(expected["y"], orisk.IntervalSet([1] * n_rows, [2] * n_rows, classes=range(4)))
    assert monitor.alarm_row_ == expected["alarm_row"]
    assert monitor.evidence_ == pytest.approx(expected["evidence"], rel=1e-9)
