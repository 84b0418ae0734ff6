"""Jobs on files from Python give what arrays give, in however many files and wherever they are read."""

import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from file_formats import read_rows, score_table, write_table
from sklearn.exceptions import NotFittedError

import ordinalrisk as orisk

K, N_ROWS = 4, 300
COLUMNS = {"scores": "p0,p1,p2,p3", "label": "y"}
TO_CALIBRATE = {**COLUMNS, "classes": range(K)}


@pytest.fixture(scope="module")
def rows(draw):
    return draw(N_ROWS, K, seed=5)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, rows):
    """One file with all rows, and three with some of them; the second has none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    table = score_table(*rows, id=[f"{i:03d}" for i in range(N_ROWS)])
    write_table(table, "all.parquet")
    for part, (start, end) in enumerate([(0, 120), (120, 120), (120, N_ROWS)]):
        write_table(table.slice(start, end - start), f"parts/rows-{part}.parquet")
    return tmp_path


PATHS = {
    "one": "all.parquet",
    "a pattern": "parts/*.parquet",
    "a list": [f"parts/rows-{part}.parquet" for part in range(3)],
}
EVERY_PATH = pytest.mark.parametrize("paths", PATHS.values(), ids=PATHS)


def test_too_few_rows_are_warned_of_in_their_own_category():
    with pytest.warns(orisk.TooFewRowsWarning, match="needs at least 9999 calibration rows"):
        orisk.jobs.calibrate(orisk.RiskController(alpha=0.0001), "all.parquet", **TO_CALIBRATE)


@EVERY_PATH
@pytest.mark.parametrize("growth", ["frontier", "paper"])
def test_a_calibration_is_that_of_the_arrays(paths, growth, rows):
    controller = orisk.RiskController("divergence", 0.05, growth)
    found = orisk.jobs.calibrate(controller, paths, **TO_CALIBRATE)
    assert found.threshold_ == orisk.RiskController("divergence", 0.05, growth).calibrate(*rows).threshold_
    assert found.columns_.label == "y"
    assert not hasattr(controller, "threshold_")


@EVERY_PATH
def test_an_evaluation_is_that_of_the_arrays(paths, rows):
    controller = orisk.RiskController(alpha=0.1).calibrate(*rows)
    found = orisk.jobs.evaluate(controller, paths, **COLUMNS)
    sets = controller.predict_set(rows[0])
    assert tuple(found.numbers["risk"]) == orisk.metrics.risk(rows[1], sets, confidence=0.95)
    assert found.n_rows == N_ROWS
    assert ("rows of the calibration itself" in found.verdict.text) == (paths == "all.parquet")
    assert json.loads(json.dumps(found.to_dict()))["rows"] == N_ROWS


def test_sets_of_one_file(rows, here):
    controller = orisk.RiskController(alpha=0.1).calibrate(*rows)
    done = orisk.jobs.predict(
        controller, here / "all.parquet", here / "sets.csv", scores="p0,p1,p2,p3", keep="id"
    )
    assert_sets(controller, rows[0], read_rows((here / "sets.csv").read_bytes(), "sets.csv"))
    assert done.n_rows == N_ROWS


def assert_sets(controller, proba, found, **options):
    sets = controller.predict_set(proba, **options)
    assert [int(row["size"]) for row in found] == sets.size.tolist()
    assert [row["id"] for row in found] == [f"{i:03d}" for i in range(len(proba))]


def rows_in(folder):
    names = [each["name"] for each in json.loads((folder / "_ordinalrisk.json").read_text())["files"]]
    return [row for name in names for row in read_rows((folder / name).read_bytes(), name)]


@pytest.mark.parametrize("paths", ["parts/*.parquet", PATHS["a list"]], ids=["a pattern", "a list"])
def test_sets_of_several_files_are_in_a_folder(paths, rows, here):
    controller = orisk.RiskController(alpha=0.1).calibrate(*rows)
    orisk.jobs.predict(controller, paths, "sets", scores="p0,p1,p2,p3", keep=["id"])
    assert_sets(controller, rows[0], rows_in(here / "sets"))


def test_coins_do_not_depend_on_the_files(rows, here):
    tied = np.round(rows[0] * 4) / 4 + 1e-3
    tied /= tied.sum(axis=1, keepdims=True)
    table = score_table(tied, rows[1], id=[f"{i:03d}" for i in range(N_ROWS)])
    for part, (start, end) in enumerate([(0, 7), (7, N_ROWS)]):
        write_table(table.slice(start, end - start), f"tied-{part}.csv")
    controller = orisk.RiskController(alpha=0.2, randomize=True).calibrate(tied, rows[1])
    orisk.jobs.predict(controller, "tied-*.csv", "sets", scores="p0,p1,p2,p3", keep="id", random_state=3)
    assert_sets(controller, tied, rows_in(here / "sets"), random_state=3)


def test_a_client_of_dask_does_the_same(client, rows, here):
    controller = orisk.jobs.calibrate(
        orisk.RiskController(alpha=0.1), "parts/*.parquet", dask=client, **TO_CALIBRATE
    )
    assert controller.threshold_ == orisk.RiskController(alpha=0.1).calibrate(*rows).threshold_
    orisk.jobs.predict(controller, "parts/*.parquet", "sets", keep="id", dask=client)
    assert_sets(controller, rows[0], rows_in(here / "sets"))
    found = orisk.jobs.evaluate(controller, "parts/*.parquet", dask=client)
    assert found.n_rows == N_ROWS
    assert "rows of the calibration itself" in found.verdict.text


@pytest.mark.parametrize("dask", [None, "local"])
def test_groups_that_look_like_patients_are_warned_of(dask):
    controller = orisk.RiskController(alpha=0.6, check=False)
    with pytest.warns(orisk.CalibrationWarning, match="Most groups have one or two rows") as caught:
        orisk.jobs.calibrate(controller, "parts/*.parquet", group="id", dask=dask, **TO_CALIBRATE)
    [warning] = caught
    assert warning.filename == __file__
    assert str(warning.message).endswith(
        f"({N_ROWS} groups, {N_ROWS} rows): if they are patients or other units with several rows, pass them "
        "as `cluster` instead of `group`."
    )


def test_a_guess_is_a_warning_or_a_note():
    heard = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        orisk.jobs.calibrate(orisk.RiskController(alpha=0.1), "all.parquet", note=heard.append)
    assert heard == [
        "The label is in the column 'y'.",
        "The scores of the classes 0, 1, 2, 3 are in the columns p0, p1, p2, p3.",
    ]
    with pytest.warns(UserWarning, match="The label is in the column 'y'"):
        orisk.jobs.calibrate(
            orisk.RiskController(alpha=0.1), "all.parquet", scores="p0,p1,p2,p3", classes=range(K)
        )


def test_a_controller_may_depend_on_the_classes():
    def controller(classes):
        return orisk.RiskController(orisk.WeightedLoss([1] * len(classes)), 0.1)

    found = orisk.jobs.calibrate(controller, "all.parquet", **TO_CALIBRATE)
    assert found.classes_.tolist() == [0, 1, 2, 3]


def test_progress_ends_at_the_whole():
    seen = []
    controller = orisk.jobs.calibrate(
        orisk.RiskController(alpha=0.1),
        "parts/*.parquet",
        progress=lambda *done: seen.append(done),
        **TO_CALIBRATE,
    )
    orisk.jobs.predict(controller, "parts/*.parquet", "sets", progress=lambda *done: seen.append(done))
    assert [done for done, _ in seen] == [120, 300, 120, 300]
    assert seen[1][1] == seen[3][1] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scores": "q*"}, r"there is no column 'q\*' .* correct `scores`"),
        ({"label": "z"}, "name the right one with `label`"),
        ({"classes": ["a", "b"]}, "correct `classes` or `scores`"),
    ],
)
def test_errors_name_the_parameters(options, said):
    with pytest.raises(ValueError, match=said):
        orisk.jobs.calibrate(orisk.RiskController(alpha=0.1), "all.parquet", **{**TO_CALIBRATE, **options})


def test_what_is_not_there_is_named():
    controller = orisk.RiskController(alpha=0.1)
    with pytest.raises(FileNotFoundError, match=r"there is no file none\.csv"):
        orisk.jobs.calibrate(controller, "none.csv")
    with pytest.raises(ValueError, match="matches no file"):
        orisk.jobs.calibrate(controller, "none*.csv")
    with pytest.raises(ValueError, match="no files to read"):
        orisk.jobs.calibrate(controller, [])
    write_table(pa.table({"p0": [0.5], "p1": [0.5], "z": [0]}), "parts/rows-3.parquet")
    with pytest.raises(ValueError, match=r"rows-3\.parquet: has no column 'id', which .* has"):
        orisk.jobs.calibrate(controller, "parts/*.parquet", **TO_CALIBRATE)


@pytest.mark.parametrize("job", [orisk.jobs.predict, orisk.jobs.evaluate])
def test_a_controller_that_was_not_calibrated_says_so(job):
    """``jobs.calibrate`` returns another controller and leaves the one it was given as it is."""
    controller = orisk.RiskController(alpha=0.1)
    orisk.jobs.calibrate(controller, "all.parquet", **TO_CALIBRATE)
    out = ["sets.parquet"] * (job is orisk.jobs.predict)
    with pytest.raises(NotFittedError, match="not calibrated yet"):
        job(controller, "all.parquet", *out)
