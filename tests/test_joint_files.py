"""Joint calibrations of files: join, predict and evaluate them, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from command import refusal, succeeds
from unchecked import UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import JointController, jobs

pytestmark = UNCHECKED
SCORES = [f"p{k}" for k in range(5)]


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([1, 2, 4, 2, 1], size=n)
    frame = pd.DataFrame(proba, columns=SCORES)
    frame["grade"] = [rng.choice(5, p=row) for row in proba]
    frame["hospital"], frame["sex"] = rng.choice(["A", "B"], n), rng.choice(["f", "m"], n)
    frame["case"] = np.arange(n)
    return frame


PARTS = {
    "worse": ["--side", "upper", "--alpha", "0.02"],
    "milder": ["--side", "lower", "--alpha", "0.1", "--group", "sex"],
    "far": ["--loss", "divergence", "--growth-loss", "coverage", "--alpha", "0.05", "--group", "hospital"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows to calibrate and to test, three calibrations and the joint one."""
    folder = tmp_path_factory.mktemp("joint")
    for name, seed in (("scores", 0), ("test", 1)):
        drawn(600, seed).to_csv(folder / f"{name}.csv", index=False)
    for name, options in PARTS.items():
        columns = ["--scores", ",".join(SCORES), "--label", "grade"]
        succeeds(
            "calibrate",
            folder / "scores.csv",
            *columns,
            *options,
            "--no-check",
            "-o",
            folder / f"{name}.json",
        )
    succeeds("join", *(folder / f"{name}.json" for name in PARTS), "-o", folder / "joint.json")
    return folder


@pytest.fixture(scope="module")
def sets(folder):
    """The joint sets of the test rows, predicted from arrays."""
    rows, joint = drawn(600, 1), JointController.load(folder / "joint.json")
    return joint.predict_set(rows[SCORES].to_numpy(), groups=rows[["hospital", "sex"]])


def test_joined_calibrations_predict_files_as_arrays(folder, sets):
    loaded = {name: orisk.RiskController.load(folder / f"{name}.json") for name in PARTS}
    joint = JointController.join(loaded)
    assert joint.guarantee() == JointController.load(folder / "joint.json").guarantee()
    assert [*joint.parts_] == ["worse", "milder, by sex", "far, by hospital"]
    said = succeeds("predict", folder / "joint.json", folder / "test.csv", "-o", folder / "sets.csv").stdout
    found = pd.read_csv(folder / "sets.csv")
    np.testing.assert_array_equal(found[["lower", "upper"]], np.transpose([sets.lower, sets.upper]))
    assert f"{sets.size.mean():.2f} labels in a set on average" in said


def test_files_in_a_folder_list_every_guarantee(folder, tmp_path):
    rows = pd.read_csv(folder / "test.csv")
    for part in range(2):
        rows[part * 300 : (part + 1) * 300].to_csv(tmp_path / f"{part}.csv", index=False)
    joint = JointController.load(folder / "joint.json")
    written = jobs.predict(joint, [tmp_path / "0.csv", tmp_path / "1.csv"], tmp_path / "sets")
    assert written.n_rows == 600
    listed = json.loads((tmp_path / "sets" / "_ordinalrisk.json").read_text())
    assert {*listed["guarantees"]} == {*joint.parts_}
    assert listed["guarantees"]["worse"]["calibration"] == joint.parts_["worse"].data_blake3_


def test_each_guarantee_is_evaluated_on_the_joint_sets(folder, sets):
    joint, rows = JointController.load(folder / "joint.json"), drawn(600, 1)
    found = jobs.evaluate(joint, folder / "test.csv")
    y = rows["grade"].to_numpy()
    assert found.parts["worse"].numbers["risk"][0] == pytest.approx((y > sets.upper_index).mean())
    assert found.parts["milder, by sex"].numbers["risk"][0] == pytest.approx((y < sets.lower_index).mean())
    assert found.parts["worse"].numbers["coverage"][0] == pytest.approx((y <= sets.upper_index).mean())
    far = orisk.metrics.risk(y, sets, "divergence")
    assert found.parts["far, by hospital"].numbers["risk"][0] == pytest.approx(far)
    assert found.mean_size == sets.size.mean()
    of_sex = {part.guarantee.group: part.realised.risk.value for part in found.parts["milder, by sex"].strata}
    for sex in ("f", "m"):
        mine = (rows["sex"] == sex).to_numpy()
        assert of_sex[sex] == pytest.approx((y < sets.lower_index)[mine].mean())
    colours = [part.colour for part in found.parts.values()]
    assert found.colour == max(colours, key=["green", "amber", "red"].index)


def test_a_part_that_is_evaluated_alone_has_its_own_sets(folder):
    one, rows = orisk.RiskController.load(folder / "worse.json"), drawn(600, 1)
    found = jobs.evaluate(one, folder / "test.csv")
    own = one.predict_set(rows[SCORES].to_numpy())
    assert found.numbers["mean_size"][0] == own.size.mean()
    assert found.headline == "At most 2 % of sets lie below the truth."


def test_evaluate_prints_a_verdict_for_each_guarantee(folder):
    said = succeeds(
        "evaluate", folder / "joint.json", folder / "test.csv", "--json", folder / "found.json"
    ).stdout
    assert "worse: At most 2 % of sets lie below the truth." in said
    assert "milder, by sex: In each of 2 groups, at most 10 % of sets lie above the truth." in said
    document = json.loads((folder / "found.json").read_text())
    assert {*document["guarantees"]} == {"worse", "milder, by sex", "far, by hospital"}
    assert document["colour"] in ("green", "amber", "red")


def test_the_calibration_rows_test_nothing(folder):
    joint = JointController.load(folder / "joint.json")
    found = jobs.evaluate(joint, folder / "scores.csv")
    assert {part.verdict.word for part in found.parts.values()} == {"nothing"}


def test_join_says_what_holds(folder):
    said = succeeds("join", folder / "worse.json", folder / "far.json", "-o", folder / "two.json").stdout
    assert "worse: The expected loss of a new row from sets that lie below the truth" in said
    assert "All of these hold for the same sets." in said


@pytest.mark.parametrize("command", ["report", "monitor", "drift"])
def test_other_commands_name_the_way_out(folder, command, tmp_path):
    before = [tmp_path / "state.json"] if command != "report" else []
    after = ["-o", tmp_path / "report.html"] if command == "report" else []
    said = refusal(2, command, *before, folder / "joint.json", folder / "test.csv", *after)
    assert "is a joint calibration, which only predict and evaluate take" in said


def test_what_a_joint_calibration_cannot_do_is_refused(folder, tmp_path):
    joint, test, out = folder / "joint.json", folder / "test.csv", ["-o", tmp_path / "sets.csv"]
    assert "each guarantee of a joint calibration has its own" in refusal(
        2, "predict", joint, test, *out, "--alpha", "0.1"
    )
    said = refusal(2, "predict", joint, test, *out, "--group", "sex")
    assert "the guarantees have groups of their own, in the columns sex, hospital" in said
    (tmp_path / "worse.json").write_bytes((folder / "worse.json").read_bytes())
    said = refusal(2, "join", folder / "worse.json", tmp_path / "worse.json", "-o", tmp_path / "two.json")
    assert "two files are called 'worse'" in said
    pd.read_csv(test).drop(columns="sex").to_csv(tmp_path / "less.csv", index=False)
    assert "sex" in refusal(1, "predict", joint, tmp_path / "less.csv", *out)
    assert "is a joint calibration" in refusal(2, "join", joint, "-o", tmp_path / "two.json")


def test_guarantees_of_other_columns_are_not_mixed_in_files(folder, tmp_path):
    frame = drawn(600, 0).rename(columns={"p0": "q0"})
    frame.to_csv(tmp_path / "other.csv", index=False)
    asked = {"scores": ["q0", *SCORES[1:]], "label": "grade", "note": print}
    other = jobs.calibrate(orisk.RiskController(check=False), tmp_path / "other.csv", **asked)
    joint = JointController.join({"worse": orisk.RiskController.load(folder / "worse.json"), "other": other})
    with pytest.raises(ValueError, match="need different columns of a file"):
        jobs.predict(joint, folder / "test.csv", tmp_path / "sets.csv")


def test_one_column_of_groups_can_have_another_name(folder, tmp_path):
    joint = JointController.join({"milder": orisk.RiskController.load(folder / "milder.json")})
    rows = pd.read_csv(folder / "test.csv").rename(columns={"sex": "gender"})
    rows.to_csv(tmp_path / "new.csv", index=False)
    jobs.predict(joint, tmp_path / "new.csv", tmp_path / "sets.csv", group="gender", keep="")
    expected = joint.predict_set(rows[SCORES].to_numpy(), groups={"sex": rows["gender"]})
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "sets.csv")["lower"], expected.lower)


@pytest.mark.filterwarnings("ignore:The scores of the classes")
def test_joint_sets_that_lose_less_than_a_guarantee_allows_are_not_suspected(folder):
    """Sets are larger than one of the guarantees needs, which says nothing about the training rows."""
    rows = drawn(600, 0)
    alphas = {"strict": 0.02, "loose": 0.4}
    asked = {name: orisk.RiskController(alpha=alpha, check=False) for name, alpha in alphas.items()}
    joint = JointController(asked).calibrate(rows[SCORES].to_numpy(), rows["grade"].to_numpy())
    found = jobs.evaluate(joint, folder / "test.csv", scores=SCORES, label="grade")
    verdict = found.parts["loose"].verdict
    assert verdict.word == "agrees"
    assert "was the model trained" not in verdict.text


@pytest.mark.filterwarnings("ignore:The scores of the classes")
def test_guarantees_about_labels_of_two_columns_are_not_evaluated_on_one(tmp_path):
    rows = drawn(600, 0)
    rows["second"] = np.minimum(rows["grade"] + 1, 4)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    made = {
        label: jobs.calibrate(
            orisk.RiskController(check=False), tmp_path / "rows.csv", scores=SCORES, label=label
        )
        for label in ("grade", "second")
    }
    joint = JointController.join(made)
    with pytest.raises(ValueError, match="'second' about those in 'second'"):
        jobs.evaluate(joint, tmp_path / "rows.csv")
    named = jobs.evaluate(joint, tmp_path / "rows.csv", label="grade")
    assert [*named.parts] == ["grade", "second"]
