"""Files that earlier versions saved: they still load, with the same thresholds, and say what has changed."""

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
def test_calibrations_of_schema_4_load_with_the_same_thresholds(name):
    assert loaded(SAVED / name).thresholds_ == THRESHOLDS[name]


@pytest.mark.parametrize("name", ["schema-4-plain.json", "schema-4-betting.json"])
def test_they_are_saved_in_the_schema_of_today(name, tmp_path):
    one = loaded(SAVED / name)
    one.save(tmp_path / name)
    assert json.loads((tmp_path / name).read_text())["schema_version"] == 5
    again = loaded(tmp_path / name)
    assert again.thresholds_ == one.thresholds_
    assert again.guarantee() == one.guarantee()


def test_an_unknown_schema_is_refused_with_those_that_can_be_read(tmp_path):
    document = json.loads((SAVED / "schema-4-plain.json").read_text()) | {"schema_version": 3}
    (tmp_path / "old.json").write_text(json.dumps(document))
    message = re.escape("field 'schema_version' is 3; this version of ordinalrisk reads 4, 5")
    with pytest.raises(ValueError, match=message):
        orisk.RiskController.load(tmp_path / "old.json")


@pytest.mark.parametrize("field", ["loss", "growth", "strata"])
def test_an_old_file_that_was_edited_is_refused_by_the_name_of_the_field(field, tmp_path):
    document = json.loads((SAVED / "schema-4-plain.json").read_text()) | {field: "other"}
    (tmp_path / "old.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=f"field '{field}' does not match its digest"):
        orisk.RiskController.load(tmp_path / "old.json")
