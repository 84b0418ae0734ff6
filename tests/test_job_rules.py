"""Jobs on files keep the rules that arrays keep, and say what is wrong with their own parameters."""

import os
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from command import refusal, run, succeeds
from file_formats import score_table, write_table
from options import COMBINES
from unchecked import UNCHECKED

import ordinalrisk as orisk

pytestmark = UNCHECKED

K, N_ROWS = 3, 240
PROBA = np.random.default_rng(1).dirichlet(np.ones(K), N_ROWS)
Y = np.arange(N_ROWS) % K
RATIO = np.where(Y > 0, 1.0, 0.5)
COLUMNS = {"scores": "p0,p1,p2", "label": "y"}
TO_CALIBRATE = {**COLUMNS, "classes": range(K)}


@pytest.fixture(autouse=True)
def files(here):
    table = score_table(PROBA, Y, site=np.arange(N_ROWS) // 80, patient=np.arange(N_ROWS) // 2, ratio=RATIO)
    write_table(table, "rows.csv")
    write_table(table.slice(0, 100), "more.csv")


# point labels of the caller are in no column

BY_HAND = r'finds its own point labels; this one has point="given"\. Take another point, or pass arrays to'


@pytest.fixture
def by_hand():
    growth = orisk.FrontierGrowth(point="given")
    return orisk.RiskController(growth=growth).calibrate(PROBA, Y, point_labels=PROBA.argmax(axis=1))


def test_jobs_refuse_a_rule_that_needs_point_labels(by_hand):
    for controller in (by_hand, lambda classes: by_hand):
        with pytest.raises(ValueError, match=BY_HAND):
            orisk.jobs.calibrate(controller, "rows.csv", **TO_CALIBRATE)
    with pytest.raises(ValueError, match=BY_HAND):
        orisk.jobs.predict(by_hand, "rows.csv", "sets.csv", scores="p0,p1,p2")
    with pytest.raises(ValueError, match=BY_HAND):
        orisk.jobs.evaluate(by_hand, "rows.csv", **COLUMNS)
    assert not Path("sets.csv").exists()


def test_commands_refuse_a_rule_that_needs_point_labels(by_hand):
    by_hand.save("cal.json")
    scores = "--scores", "p0,p1,p2"
    to_calibrate = (
        "calibrate",
        "rows.csv",
        *scores,
        "--classes",
        "0,1,2",
        "--alpha",
        "0.1",
        "--point",
        "given",
    )
    for point in ("given",):
        line = refusal(2, *to_calibrate, "-o", "new.json")
        assert line == f"--point {point}: point labels can't be given in a file."
    for command in (
        ["predict", "cal.json", "rows.csv", "-o", "sets.csv"],
        ["evaluate", "cal.json", "rows.csv"],
    ):
        result = run(*command, *scores)
        assert result.exit_code == 2
        assert 'finds its own point labels; this one has point="given".' in result.stderr
    assert not Path("sets.csv").exists()


# options without a theorem

OPTIONS = {
    "delta": {"delta": 0.2},
    "condition_on": {"condition_on": "label"},
    "randomize": {"randomize": True},
    "groups": {"group": "site"},
    "clusters": {"cluster": "patient"},
    "sample_weight": {"weight": "ratio"},
    "class_ratios": {"class_ratios": [1, 1, 2]},
}
AT_START = "delta", "condition_on", "randomize"


@pytest.mark.parametrize("pair", [*combinations(OPTIONS, 2)], ids=" ".join)
def test_a_pair_of_options_without_a_theorem_is_refused_as_with_arrays(pair):
    of_rows = {"groups": np.arange(N_ROWS) // 80, "clusters": np.arange(N_ROWS) // 2, "sample_weight": RATIO}
    values = of_rows | {"class_ratios": [1, 1, 2]}
    at_start = {key: value for name in pair if name in AT_START for key, value in OPTIONS[name].items()}
    with_files = {key: value for name in pair if name not in AT_START for key, value in OPTIONS[name].items()}
    with_arrays = {name: values[name] for name in pair if name not in AT_START}

    def of_arrays():
        return orisk.RiskController("divergence", 0.4, **at_start).calibrate(PROBA, Y, **with_arrays)

    def of_files():
        controller = orisk.RiskController("divergence", 0.4, **at_start)
        return orisk.jobs.calibrate(controller, "rows.csv", **TO_CALIBRATE, **with_files)

    if pair[1] in COMBINES[pair[0]]:
        assert len(of_files().thresholds_) == len(of_arrays().thresholds_)
        return
    with pytest.raises(ValueError, match="can't be used together") as here:
        of_arrays()
    with pytest.raises(ValueError, match="can't be used together") as there:
        of_files()
    assert {*str(there.value).split()} == {*str(here.value).split()}


def test_a_function_that_makes_the_controller_is_held_to_the_same_rule():
    with pytest.raises(ValueError, match="randomize and class_ratios can't be used together"):
        orisk.jobs.calibrate(
            lambda classes: orisk.RiskController(randomize=True),
            "rows.csv",
            class_ratios=[1, 1, 2],
            **TO_CALIBRATE,
        )


@pytest.mark.parametrize("name", ["cluster", "weight"])
def test_options_that_parts_can_not_have_are_refused_on_a_cluster(name, client):
    column = {"cluster": "patient", "weight": "ratio"}[name]
    with pytest.raises(ValueError, match=r"can't be used with dask: .* Calibrate on one machine"):
        orisk.jobs.calibrate(
            orisk.RiskController(), "rows.csv", dask=client, **TO_CALIBRATE, **{name: column}
        )


# the file that is read is not replaced


@pytest.fixture
def controller():
    return orisk.RiskController(alpha=0.1).calibrate(PROBA, Y)


@pytest.mark.parametrize("out", ["rows.csv", "./rows.csv", "link.csv"])
def test_a_file_is_not_replaced_by_its_own_sets(out, controller):
    Path("link.csv").symlink_to("rows.csv")
    before = Path("rows.csv").read_bytes()
    for paths in ("rows.csv", "link.csv", Path("rows.csv").resolve()):
        with pytest.raises(ValueError, match=r"is read, and would be lost; choose another name for `out`"):
            orisk.jobs.predict(controller, paths, out, scores="p0,p1,p2")
    assert Path("rows.csv").read_bytes() == before
    assert Path("link.csv").is_symlink()
    assert {path.name for path in Path().iterdir()} == {"rows.csv", "more.csv", "link.csv"}


def test_a_pipe_may_be_read_and_written(controller):
    controller.save("cal.json")
    rows = Path("rows.csv").read_bytes()
    piped = succeeds("predict", "cal.json", "-", "-o", "-", "--scores", "p0,p1,p2", input=rows)
    orisk.jobs.predict(controller, "rows.csv", "sets.csv", scores="p0,p1,p2")
    assert piped.stdout == Path("sets.csv").read_text()


# parameters of a wrong kind


@pytest.mark.parametrize(
    ("job", "options", "said"),
    [
        ("calibrate", {"input_format": "xlsx"}, "input_format must be one of .*csv.*; got 'xlsx'"),
        ("evaluate", {"input_format": "CSV"}, "input_format must be one of .*csv.*; got 'CSV'"),
        ("predict", {"input_format": ""}, "input_format must be one of .*csv.*; got ''"),
        ("predict", {"output_format": "excel"}, "output_format must be one of .*csv.*; got 'excel'"),
    ],
)
def test_an_unknown_format_is_refused_with_those_that_are_known(job, options, said, controller):
    with pytest.raises(ValueError, match=said):
        run_job(job, controller, "rows.csv", **options)


def run_job(job, controller, paths, **options):
    if job == "predict":
        return orisk.jobs.predict(controller, paths, "sets.csv", scores="p0,p1,p2", **options)
    columns = TO_CALIBRATE if job == "calibrate" else COLUMNS
    return getattr(orisk.jobs, job)(controller, paths, **columns, **options)


JOBS = "calibrate", "predict", "evaluate"


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    "paths", [5, None, ["rows.csv", 5], PROBA, {"rows.csv"}], ids=lambda paths: type(paths).__name__
)
def test_paths_of_a_wrong_kind_are_refused(job, paths, controller):
    with pytest.raises(ValueError, match=rf"paths must be a path, .*; got a {type(paths).__name__}"):
        run_job(job, controller, paths)


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("wrong", [0.1, "cal.json", None, orisk.RiskController], ids=repr)
def test_a_controller_of_a_wrong_kind_is_refused(job, wrong):
    with pytest.raises(
        ValueError, match=rf"controller must be a RiskController; got a {type(wrong).__name__}"
    ):
        run_job(job, wrong, "rows.csv")


def test_a_function_that_makes_no_controller_is_refused():
    with pytest.raises(ValueError, match="controller must be a RiskController; got a float"):
        orisk.jobs.calibrate(lambda classes: 0.1, "rows.csv", **TO_CALIBRATE)


# batches of arrays


def test_an_error_in_a_batch_names_the_batch():
    batches = [(PROBA, Y), (PROBA, Y), {"proba": PROBA, "y": [*Y[:-1], K]}]
    with pytest.raises(ValueError, match=r"^In batch 2: y\[239\] is 3, which is not one of"):
        orisk.RiskController(classes=range(K)).calibrate_batches(batches)
    bad = np.where(np.arange(N_ROWS * K).reshape(N_ROWS, K) == 7 * K + 1, np.nan, PROBA)
    with pytest.raises(ValueError, match=r"^In batch 1: proba has a NaN value at row 7, column 1"):
        orisk.RiskController().calibrate_batches([(PROBA, Y), (bad, Y)])
    with pytest.raises(ValueError, match=r"^In batch 1: These rows come with \['groups'\], those before"):
        orisk.RiskController().calibrate_batches([(PROBA, Y), {"proba": PROBA, "y": Y, "groups": Y}])
    with pytest.raises(ValueError, match=r"^In batch 1: "):
        orisk.RiskController().calibrate_batches([(PROBA, Y), (PROBA, Y[1:])])


# warnings point at the caller


def called_from(caught):
    return {Path(each.filename).name for each in caught}


def test_warnings_of_jobs_point_at_the_line_that_calls_them():
    few = orisk.RiskController(alpha=0.001)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibrated = orisk.jobs.calibrate(few, "rows.csv")
        orisk.jobs.predict(calibrated, "rows.csv", "sets.csv", alpha=0.002)
        orisk.jobs.evaluate(calibrated, ["rows.csv", "more.csv"], alpha=0.003)
    said = [str(each.message) for each in caught]
    assert any("The label is in the column 'y'" in each for each in said)
    assert {f"alpha=0.00{i}" for i in (1, 2, 3)} <= {each.split()[0] for each in said}
    assert called_from(caught) == {os.path.basename(__file__)}


@pytest.mark.parametrize("job", ["predict", "evaluate"])
def test_weights_too_large_are_warned_of_at_the_line_that_calls_the_job(job):
    weighted = orisk.jobs.calibrate(orisk.RiskController(), "rows.csv", weight="ratio", **TO_CALIBRATE)
    write_table(score_table(PROBA, Y, ratio=np.where(np.arange(N_ROWS) == 5, 1e9, RATIO)), "new.csv")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_job(job, weighted, "new.csv")
    assert "1 of 240 rows have weights so large" in str(caught[0].message)
    assert called_from(caught) == {os.path.basename(__file__)}
