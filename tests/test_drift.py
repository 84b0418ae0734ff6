"""A test for drift, without labels: false alarms are rare over all time, and scores that change are found."""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import refusal, run, succeeds
from file_formats import write_table
from saved_documents import rewrite, with_digests
from test_commands import score_table
from unchecked import UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import RiskController, ScoreDrift

pytestmark = UNCHECKED

CLASSES = ["None", "Mild", "Severe"]


USUAL, LESS_CERTAIN, MORE_CERTAIN = (6, 2, 1), (4, 2, 2), (12, 2, 1)


def draw(rng, n, kind=USUAL):
    """Scores that tie often, and labels."""
    concentrated = rng.dirichlet(kind, n)
    proba = np.array([rng.multinomial(32, p) for p in concentrated]) / 32
    return proba, np.array([rng.choice(3, p=p) for p in concentrated])


def calibrated(rng, n=200, **options):
    return RiskController(alpha=0.2, check=False, **options).calibrate(*draw(rng, n))


def state(drift):
    return (
        drift.n_rows_,
        drift.evidence_,
        drift.p_value_,
        drift.alarm_row_,
        drift.rise_row_,
        drift.uncertainty_,
        drift._tested.wealth.tolist(),
        drift._lowest,
    )


def alarms(streams, n, delta, *, n_rows=500, kind=USUAL):
    """The row of the alarm in streams of new rows, 0 if there is none."""
    rows = np.zeros(streams, int)
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        drift = ScoreDrift(calibrated(rng, n), delta, random_state=seed)
        drift.update(draw(rng, n_rows, kind)[0])
        rows[seed] = drift.alarm_row_ or 0
    return rows


def test_false_alarms_are_as_rare_as_promised():
    delta, streams = 0.2, 400
    share = (alarms(streams, 60, delta, n_rows=300) > 0).mean()
    assert delta / 20 < share <= delta + 3 * math.sqrt(delta * (1 - delta) / streams)


def test_a_fixed_set_of_calibration_rows_would_break_the_promise(monkeypatch):
    """P-values from the same calibration rows again and again are not independent; new rows must join."""
    delta, streams = 0.2, 100
    update = ScoreDrift.update

    def without_joining(drift, proba):
        for row in proba:
            update(drift, row[None])
            drift._seen[:] = 0
        return drift.alarm_

    monkeypatch.setattr(ScoreDrift, "update", without_joining)
    share = (alarms(streams, 60, delta, n_rows=300) > 0).mean()
    assert share > delta + 3 * math.sqrt(delta * (1 - delta) / streams)


def test_one_row_of_each_cluster_keeps_the_promise_and_all_rows_break_it():
    """Rows of a cluster are alike, so bets on all of them win or lose together."""
    delta, streams = 0.2, 150
    raised = {"one row": 0, "all rows": 0}
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        controller, (new, _) = calibrated(rng, 60), draw(rng, 120)
        for name, times in zip(raised, (1, 5), strict=True):
            drift = ScoreDrift(controller, delta, random_state=seed)
            raised[name] += drift.update(np.repeat(new, times, axis=0))
    rare = delta + 3 * math.sqrt(delta * (1 - delta) / streams)
    assert raised["one row"] / streams <= rare < raised["all rows"] / streams


def test_columns_in_another_order_are_refused_by_their_names():
    """Without names they are not seen: the largest probability is the same in another place."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    proba, y = draw(rng, 200)
    controller = RiskController(alpha=0.2, classes=CLASSES).calibrate(proba, [CLASSES[k] for k in y])
    drift, same = (ScoreDrift(controller, random_state=0) for _ in range(2))
    new = draw(rng, 100)[0]
    frame = pandas.DataFrame(new, columns=CLASSES)
    with pytest.raises(
        ValueError, match=r"The columns of proba are in the order.*but the classes in the order"
    ):
        drift.update(frame[CLASSES[::-1]])
    assert drift.n_rows_ == 0
    drift.update(new[:, ::-1])
    same.update(frame)
    assert state(drift) == state(same)


@pytest.mark.parametrize("kind", [LESS_CERTAIN, MORE_CERTAIN], ids=str)
def test_a_change_of_certainty_is_found_soon(kind):
    rows = alarms(20, 1_000, 0.01, n_rows=150, kind=kind)
    assert (rows > 0).mean() > 0.5


def test_a_change_after_many_good_rows_is_found_and_dated():
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        drift = ScoreDrift(calibrated(rng, 1_000), 0.001, random_state=0)
        assert not drift.update(draw(rng, 3_000)[0])
        assert drift.update(draw(rng, 1_000, LESS_CERTAIN)[0])
        assert drift.uncertainty_ > drift.calibrated_uncertainty_
        found.append(drift.rise_row_)
    assert abs(np.median(found) - 3_000) < 100


def test_any_cut_into_batches_and_any_number_of_saves_give_the_same_state(tmp_path):
    rng = np.random.default_rng(1)
    controller, new = calibrated(rng), draw(rng, 120, LESS_CERTAIN)[0]
    whole = ScoreDrift(controller, 0.05, random_state=7)
    assert whole.update(new)
    for cuts in ([0, 120], [0, 1, 50, 120]):
        parted = ScoreDrift(controller, 0.05, random_state=7)
        for start, stop in pairwise(cuts):
            parted.update(new[start:stop])
            parted.save(tmp_path / "drift.json")
            parted = ScoreDrift.load(tmp_path / "drift.json")
            assert parted.classes_.tolist() == [0, 1, 2]
        assert state(parted) == state(whole)
        assert repr(parted) == repr(whole)


def test_the_seed_is_drawn_at_random_and_kept(tmp_path):
    controller = calibrated(np.random.default_rng(0))
    one, other = ScoreDrift(controller), ScoreDrift(controller)
    assert one.random_state != other.random_state
    one.save(tmp_path / "drift.json")
    assert ScoreDrift.load(tmp_path / "drift.json").random_state == one.random_state


def test_scores_are_compared_wherever_the_calibration_came_from(tmp_path):
    rng = np.random.default_rng(3)
    proba, y = draw(rng, 90)
    whole = RiskController(alpha=0.2).calibrate(proba, y)
    whole.save(tmp_path / "cal.json")
    saved = RiskController.load(tmp_path / "cal.json")
    parts = RiskController(alpha=0.2).calibrate_batches([(proba[:20], y[:20]), (proba[20:], y[20:])])
    float32 = RiskController(alpha=0.2).calibrate(proba.astype(np.float32), y)
    by_group = RiskController(alpha=0.2).calibrate(proba, y, groups=y > 0)
    betting = RiskController(alpha=0.2, delta=0.1, confidence_bound="betting").calibrate(proba, y)
    found = []
    for controller in (whole, saved, parts, float32, by_group, betting):
        drift = ScoreDrift(controller, random_state=0)
        drift.update(proba[::-1])
        found.append(state(drift))
    assert all(each == found[0] for each in found)
    exact = (1 - proba.max(axis=1)).mean()
    drift = ScoreDrift(whole)
    assert drift.calibrated_uncertainty_ == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"sample_weight": [1.0, 2.0] * 50}, "its rows have weights, since the new ones are expected to"),
        ({"class_ratios": [1, 1, 2]}, "its rows have weights"),
        ({"clusters": [*range(50)] * 2}, r"come from clusters.* one row of each cluster, drawn at random"),
    ],
    ids=str,
)
def test_calibrations_with_other_rows_than_new_ones_are_refused(options, match, tmp_path):
    controller = RiskController(alpha=0.3).calibrate(*draw(np.random.default_rng(0), 100), **options)
    controller.save(tmp_path / "cal.json")
    for each in (controller, RiskController.load(tmp_path / "cal.json")):
        with pytest.raises(ValueError, match=match):
            ScoreDrift(each)


def test_what_can_not_be_compared_is_refused_and_changes_nothing():
    old = RiskController.load(Path(__file__).parent / "saved" / "schema-5-plain.json")
    with pytest.raises(ValueError, match="saved by an earlier version; calibrate again"):
        ScoreDrift(old)
    with pytest.raises(ValueError, match="needs a calibrated RiskController"):
        ScoreDrift(RiskController())
    drift = ScoreDrift(calibrated(np.random.default_rng(0)), random_state=0)
    assert repr(drift) == "ScoreDrift(delta=0.01)"
    assert (drift.evidence_, drift.p_value_, drift.alarm_) == (1.0, 1.0, False)
    assert math.isnan(drift.uncertainty_)
    drift.update([[0.5, 0.25, 0.25]])
    before = state(drift)
    for proba, match in [
        ([[0.5, 0.5]], "proba has 2 columns, but the calibration had 3 classes"),
        ([[0.5, 0.25, 0.25], [0.5, 0.6, 0.25]], "sum"),
        ([[0.5, np.nan, 0.25]], "NaN|nan"),
    ]:
        with pytest.raises(ValueError, match=match):
            drift.update(proba)
        assert state(drift) == before
    for delta in (0, 1, -1, "nan", None):
        with pytest.raises(ValueError, match="delta"):
            ScoreDrift(calibrated(np.random.default_rng(0)), delta)
    with pytest.raises(ValueError, match="random_state must be a whole number"):
        ScoreDrift(calibrated(np.random.default_rng(0)), random_state=-1)


BAD_FIELDS = {
    "classes": ["a", "a", "b"],
    "delta": 2,
    "data_blake3": "0",
    "seed": -1,
    "n_rows": 3,
    "calibrated": {"bins": [], "counts": []},
    "seen": {"bins": [1], "counts": [119]},
    "wealth": ["0x1p+0"],
    "peak": "0x1p-1",
    "lowest": {"n_rows": 0, "evidence": "0x1p+1"},
    "alarm_row": None,
    "rise_row": None,
    "files": [{"n_rows": 0, "blake3": "0" * 64}],
    "recalibration": {
        "map": {"kind": "identity"},
        "scores": "probabilities",
        "floor": 0.1,
        "n_scores": 2,
        "n_rows": 9,
    },
}


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        *BAD_FIELDS.items(),
        ("calibrated", {"bins": [2, 1], "counts": [1, 1]}),
        ("calibrated", {"bins": [1, 1025], "counts": [1, 1]}),
        ("calibrated", {"bins": [1], "counts": [1, 2]}),
        ("calibrated", {"bins": [1], "counts": [0]}),
        ("alarm_row", 121),
        ("rise_row", 121),
    ],
)
def test_a_document_that_can_not_be_is_refused_by_its_field(field, bad, tmp_path):
    path, rng = tmp_path / "drift.json", np.random.default_rng(1)
    drift = ScoreDrift(calibrated(rng), 0.05, random_state=0)
    assert drift.update(draw(rng, 120, LESS_CERTAIN)[0])
    drift.save(path)
    assert rewrite(path, **{field: bad}) == set(BAD_FIELDS)
    named = "seen" if field == "n_rows" else field
    with pytest.raises(ValueError, match=f"field '{named}' is not valid"):
        ScoreDrift.load(path)


@pytest.mark.parametrize(
    "bad", [None, {"bins": [0], "counts": [199]}, {"bins": [0], "counts": [201]}], ids=str
)
def test_counts_of_a_saved_calibration_must_be_those_of_its_rows(bad, tmp_path):
    path = tmp_path / "cal.json"
    calibrated(np.random.default_rng(0)).save(path)
    rewrite(path, score_counts=bad)
    if bad is None:  # as upgraded from an earlier version
        assert RiskController.load(path).calibration_.score_counts is None
        return
    with pytest.raises(ValueError, match="field 'score_counts' is not valid: it must count each row once"):
        RiskController.load(path)


# the command


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, n, kind in [("old", 400, USUAL), ("january", 300, USUAL), ("february", 300, LESS_CERTAIN)]:
        proba, y = draw(rng, n, kind)
        write_table(score_table(proba, [CLASSES[k] for k in y]), f"{name}.csv")
        write_table(score_table(proba, [CLASSES[k] for k in y]), f"{name}.parquet")
    succeeds("calibrate", "old.csv", "-o", "cal.json", "--alpha", "0.2", "--classes", ",".join(CLASSES))
    return tmp_path


@pytest.mark.usefixtures("files")
def test_the_command_compares_month_after_month():
    done = succeeds("drift", "drift.json", "cal.json", "january.csv", "--delta", "0.001")
    text = " ".join(done.stdout.split())
    drift = ScoreDrift.load("drift.json")
    uncertainty = (
        f"The mean uncertainty, one minus the largest probability, is {drift.uncertainty_:.4g}; in the "
        f"calibration rows it was {drift.calibrated_uncertainty_:.4g}."
    )
    assert text == (
        f"No alarm after 300 rows, 300 of them new. {uncertainty} The evidence for a difference is "
        f"{drift.evidence_:.3g}; an alarm needs 1/delta = 1000."
    )
    line = refusal(1, "drift", "drift.json", "cal.json", "january.parquet")
    assert line.startswith("january.parquet: its 300 rows were watched before, and would count twice;")
    done = run("drift", "drift.json", "cal.json", "february.csv")
    assert done.exit_code == 3, done.output
    drift = ScoreDrift.load("drift.json")
    text = " ".join(done.stdout.split())
    assert text.startswith(
        f"Alarm at row {drift.alarm_row_} (600 rows, 300 of them new): the scores differ from those of the "
        "calibration rows. The mean uncertainty"
    )
    assert f"The scores began to differ at about row {drift.rise_row_}. The probability of a false" in text
    assert "ever, is at most 0.001. Sorted rows can cause a false alarm: give the rows in the order" in text
    assert text.endswith("calibrate again on recent rows with known labels.")
    assert run("drift", "drift.json", "cal.json", "january.csv", "--again").exit_code == 3


@pytest.mark.usefixtures("files")
def test_a_drift_that_makes_no_sense_is_wrong_usage():
    succeeds("drift", "drift.json", "cal.json", "january.csv")
    line = refusal(2, "drift", "drift.json", "cal.json", "february.csv", "--delta", "0.05")
    assert line == "--delta: drift.json was begun with 0.01; leave it out, or name another STATE."
    line = refusal(2, "drift", "other.json", "cal.json", "february.csv", "--delta", "2")
    assert line.startswith("--delta must lie strictly between 0 and 1")
    succeeds("calibrate", "january.csv", "-o", "new.json", "--alpha", "0.2", "--classes", ",".join(CLASSES))
    line = refusal(2, "drift", "drift.json", "new.json", "february.csv")
    assert line == "drift.json watches another calibration; name another STATE."
    Path("watch.json").write_text("{}")
    assert "field 'format'" in refusal(1, "drift", "watch.json", "cal.json", "february.csv")
    succeeds("monitor", "risk.json", "cal.json", "january.csv")
    assert "is 'ordinalrisk monitor'" in refusal(1, "drift", "risk.json", "cal.json", "february.csv")


@pytest.mark.usefixtures("files")
def test_files_without_labels_and_calibrations_with_groups_or_coins_are_compared():
    rng = np.random.default_rng(9)
    proba, y = draw(rng, 100)
    table = score_table(proba, [CLASSES[k] for k in y], site=["a", "b"] * 50)
    write_table(table, "sites.csv")
    write_table(table.drop_columns(["y", "site"]), "new.csv")
    plain = ["--alpha", "0.2", "--classes", ",".join(CLASSES)]
    for options in (["--group", "site"], ["--randomize"]):
        succeeds("calibrate", "sites.csv", "-o", "cal2.json", *plain, *options)
        state = f"{options[0][2:]}.json"
        assert run("drift", state, "cal2.json", "new.csv").exit_code == 0
        assert json.loads(Path(state).read_text())["n_rows"] == 100


def test_it_is_public():
    assert orisk.ScoreDrift is ScoreDrift


# a note where sets are predicted

NOTE = "The scores of these rows differ from those of the calibration rows: the largest probability is "


@pytest.mark.usefixtures("files")
def test_predict_says_that_scores_differ_and_can_be_told_not_to():
    done = succeeds("predict", "cal.json", "january.csv", "-o", "sets.csv")
    assert NOTE not in done.stderr
    done = succeeds("predict", "cal.json", "february.csv", "-o", "sets.csv")
    [line] = [line for line in done.stderr.splitlines() if NOTE in line]
    assert line.startswith("Note: ")
    assert line.endswith("--no-drift-note turns this note off.")
    quiet = succeeds("predict", "cal.json", "february.csv", "-o", "quiet.csv", "--no-drift-note")
    assert NOTE not in quiet.stderr
    assert Path("quiet.csv").read_bytes() == Path("sets.csv").read_bytes()
    several = succeeds("predict", "cal.json", "february.csv", "february.parquet", "-o", "sets")
    assert NOTE in several.stderr


@pytest.mark.usefixtures("files")
def test_jobs_say_it_as_a_warning_except_where_rows_are_expected_to_differ():
    controller = RiskController.load("cal.json")
    with pytest.warns(UserWarning, match="differ from those of the calibration rows.*`drift_note=False`"):
        orisk.jobs.predict(controller, "february.csv", "sets.csv")
    orisk.jobs.predict(controller, "february.csv", "sets.csv", drift_note=False)
    rng = np.random.default_rng(9)
    proba, y = draw(rng, 100)
    table = score_table(proba, [CLASSES[k] for k in y], site=["a"] * 50 + ["b"] * 50, w=[1.0] * 100)
    write_table(table, "sites.csv")
    proba, _ = draw(rng, 200, LESS_CERTAIN)
    write_table(score_table(proba, [CLASSES[0]] * 200, site=["a"] * 200, w=[1.0] * 200), "new.csv")
    for how in ({"group": "site"}, {"weight": "w"}):
        known = RiskController(alpha=0.3, classes=CLASSES)
        other = orisk.jobs.calibrate(known, "sites.csv", note=str, **how)
        orisk.jobs.predict(other, "new.csv", "sets.csv")


def test_a_calibration_with_a_map_takes_raw_scores(tmp_path):
    """Like the sets; a saved state has the map, and one of an older schema takes what the map makes."""
    rng = np.random.default_rng(0)
    judge, y = rng.dirichlet([4, 2, 1, 1], 900), rng.integers(0, 6, 900)
    fitted = orisk.Recalibrator("regression", classes=range(6)).fit(judge[:300], y[:300])
    controller = orisk.RiskController(alpha=0.2, recalibration=fitted).calibrate(judge[300:600], y[300:600])
    mapped = orisk.RiskController(alpha=0.2, classes=range(6))
    mapped.calibrate(fitted.transform(judge[300:600]), y[300:600])
    raw, by_hand = (ScoreDrift(each, 0.05, random_state=0) for each in (controller, mapped))
    raw.update(judge[600:700])
    raw.save(tmp_path / "drift.json")
    raw = ScoreDrift.load(tmp_path / "drift.json")
    raw.update(judge[700:])
    by_hand.update(fitted.transform(judge[600:]))
    assert (raw.evidence_, raw.uncertainty_) == (by_hand.evidence_, by_hand.uncertainty_)
    with pytest.raises(ValueError, match="The scores have 6 columns, but the map was fitted on 4"):
        raw.update(fitted.transform(judge[600:]))
    older = json.loads((tmp_path / "drift.json").read_text(encoding="utf-8"))
    del older["recalibration"]
    older["schema_version"] = 2
    (tmp_path / "older.json").write_text(json.dumps(with_digests(older)), encoding="utf-8")
    older = ScoreDrift.load(tmp_path / "older.json")
    older.update(fitted.transform(judge[700:]))
    assert older.evidence_ == raw.evidence_


def test_the_command_applies_the_map_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    proba, y = draw(rng, 900)
    sure = proba**2 / (proba**2).sum(axis=1, keepdims=True)
    fitted = orisk.Recalibrator("temperature").fit(sure[:300], y[:300])
    columns = ["p0", "p1", "p2"]
    pd.DataFrame(sure[300:600], columns=columns).assign(grade=y[300:600]).to_csv("known.csv", index=False)
    pd.DataFrame(sure[600:], columns=columns).to_csv("new.csv", index=False)
    controller = orisk.jobs.calibrate(
        orisk.RiskController(alpha=0.2, recalibration=fitted), "known.csv", note=lambda sentence: None
    )
    controller.save("cal.json")
    succeeds("drift", "drift.json", "cal.json", "new.csv")
    found = ScoreDrift.load("drift.json")
    expected = ScoreDrift(controller, random_state=found.random_state)
    expected.update(sure[600:])
    assert (found.evidence_, found.uncertainty_) == (expected.evidence_, expected.uncertainty_)
    found.update(sure[600:650])
    expected.update(sure[600:650])
    assert found.evidence_ == expected.evidence_
