"""Every guarantee through the commands: what the library gives, from files, and whatever can go wrong."""

import datetime
import json
import re
import warnings
from itertools import combinations, cycle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import refusal, run, run_installed, succeeds
from file_formats import read_rows, score_table, write_table
from saved_documents import rewrite
from sizes import read_few_rows_at_once
from test_commands import expected_intervals, intervals, saved

import ordinalrisk as orisk
from ordinalrisk import metrics

GRADES = ["None", "Mild", "Severe"]
PLAIN = ["--classes", ",".join(GRADES), "--alpha", "0.1"]
DIVERGENCE = ["--classes", ",".join(GRADES), "--alpha", "0.1", "--loss", "divergence"]
BY_CLASS = ["--classes", ",".join(GRADES), "--alpha", "Severe=0.05, None=0.1,Mild=0.2"]
BOTH = pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])


class Drawn:
    """Rows as arrays and as a table: levels tie, sites are whole numbers, patients have some rows each."""

    def __init__(self, n_rows, seed):
        rng = np.random.default_rng(seed)
        self.proba = np.array([rng.multinomial(16, p) for p in rng.dirichlet([2, 1, 1], n_rows)]) / 16
        self.labels = np.array([rng.choice(3, p=p) for p in self.proba])
        self.y = [GRADES[k] for k in self.labels]
        self.site = rng.integers(1, 4, n_rows)
        self.patient = [f"P{i}" for i in np.sort(rng.integers(0, n_rows // 2, n_rows))]
        self.ratio = rng.choice([0.0, 0.5, 1.25, 2.0], n_rows)
        columns = {"site": self.site, "patient": self.patient, "ratio": self.ratio}
        self.table = score_table(self.proba, self.y, **columns)

    def extras(self, name, *wanted):
        """As they are read from a file of that name: in CSV a site is text."""
        sites = [str(site) for site in self.site] if name.endswith("csv") else self.site
        found = {"groups": sites, "clusters": self.patient, "sample_weight": self.ratio}
        return {key: found[key] for key in wanted}


OLD, NEW = Drawn(300, 1), Drawn(200, 2)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """A folder with rows to calibrate with and new ones, in two formats; read a few at a time."""
    monkeypatch.chdir(tmp_path)
    read_few_rows_at_once(monkeypatch, 64, n_bytes=6000)
    for suffix in ("csv", "parquet"):
        write_table(OLD.table, f"rows.{suffix}")
        write_table(NEW.table, f"new.{suffix}")
    return tmp_path


def with_column(drawn, column, values, path):
    at = drawn.table.schema.get_field_index(column)
    return write_table(drawn.table.set_column(at, column, pa.array(values)), path)


def calibrate(*arguments, out="cal.json"):
    return succeeds("calibrate", *arguments, "-o", out)


CALIBRATIONS = {
    "delta": (["--delta", "0.2"], {"delta": 0.2}, []),
    "bound": (
        ["--delta", "0.2", "--confidence-bound", "hoeffding_bentkus"],
        {"delta": 0.2, "confidence_bound": "hoeffding_bentkus"},
        [],
    ),
    "group": (["--group", "site"], {}, ["groups"]),
    "cluster": (["--cluster-col", "patient"], {}, ["clusters"]),
    "cluster with delta": (
        ["--cluster-col", "patient", "--delta", "0.3", "--confidence-bound", "betting"],
        {"delta": 0.3, "confidence_bound": "betting"},
        ["clusters"],
    ),
    "group, cluster and delta": (
        ["--group", "site", "--cluster-col", "patient", "--delta", "0.3"],
        {"delta": 0.3},
        ["groups", "clusters"],
    ),
    "class": (["--per-class"], {"condition_on": "label"}, []),
    "class and group": (["--per-class", "--group", "site"], {"condition_on": "label"}, ["groups"]),
    "weight": (["--weight-col", "ratio"], {}, ["sample_weight"]),
    "weight and group": (
        ["--weight-col", "ratio", "--group", "site"],
        {},
        ["groups", "sample_weight"],
    ),
    "randomized group": (["--group", "site", "--randomize"], {"randomize": True}, ["groups"]),
}


def in_order(document):
    """Steps, where they are kept, in one order: batches bring them in another one."""
    for part in document["strata"]:
        if (steps := part["steps"]) is not None:
            part["steps"] = sorted(zip(steps["unit"], steps["at"], steps["by"], strict=True))
    return document


@pytest.mark.parametrize(
    ("name", "options", "parameters", "used"),
    [(name, *given) for name, given in zip(cycle(["rows.csv", "rows.parquet"]), CALIBRATIONS.values())],
    ids=CALIBRATIONS,
)
def test_calibrations_and_sets_are_those_of_the_library(name, options, parameters, used, tmp_path):
    """Calibrated from one format and predicted from the other."""
    expected = orisk.RiskController(alpha=0.1, classes=GRADES, random_state=4, **parameters)
    expected.calibrate(OLD.proba, OLD.y, **OLD.extras(name, *used))
    shuffled = ["--random-state", 4] if "delta" in parameters else []
    shown = calibrate(name, *PLAIN, *options, *shuffled).stdout
    expected.save("library.json")
    assert in_order(saved(tmp_path / "cal.json")) == in_order(saved(tmp_path / "library.json"))
    assert str(expected.guarantee()) in shown
    assert max(map(len, shown.splitlines())) <= 80

    other = "new.parquet" if name.endswith("csv") else "new.csv"
    seed = {"random_state": 7} if "randomize" in parameters else {}
    extras = NEW.extras(name, *(key for key in used if key != "clusters"))
    succeeds("predict", "cal.json", other, "-o", "sets.csv", *(["--random-state", 7] if seed else []))
    found = read_rows(Path("sets.csv").read_bytes(), "sets.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # weights for which nothing can be certified
        assert intervals(found) == expected_intervals(expected, NEW.proba, **extras, **seed)
    assert list(found[0]) == ["site", "patient", "ratio", "y", "lower", "upper", "size"]


@BOTH
def test_class_ratios_and_risks_by_class_are_those_of_the_library(name, tmp_path):
    by_class = orisk.RiskController(alpha={"None": 0.1, "Mild": 0.2, "Severe": 0.05}, classes=GRADES)
    by_class.calibrate(OLD.proba, OLD.y).save("library.json")
    shown = calibrate(name, *BY_CLASS).stdout
    assert saved(tmp_path / "cal.json") == saved(tmp_path / "library.json")
    assert re.search(r"^Severe +\d+ +0\.05 +", shown, re.MULTILINE)
    calibrate(name, *PLAIN, "--class-ratios", "1, 2,0.5", out="weighted.json")
    weighted = orisk.RiskController(alpha=0.1, classes=GRADES)
    weighted.calibrate(OLD.proba, OLD.y, class_ratios=[1, 2, 0.5]).save("library.json")
    assert saved(tmp_path / "weighted.json") == saved(tmp_path / "library.json")
    for controller, file in ((by_class, "cal.json"), (weighted, "weighted.json")):
        succeeds("predict", file, "new.csv", "-o", "sets.csv")
        found = read_rows(Path("sets.csv").read_bytes(), "sets.csv")
        assert intervals(found) == expected_intervals(controller, NEW.proba)


def test_whole_numbers_name_classes_in_a_risk_by_class():
    write_table(score_table(OLD.proba, OLD.labels), "numbers.parquet")
    calibrate("numbers.parquet", "--alpha", "0=0.1,2=0.05,1=0.2")
    loaded = orisk.RiskController.load("cal.json")
    assert loaded.alpha == {0: 0.1, 1: 0.2, 2: 0.05}


def test_a_class_whose_name_has_a_comma_or_an_equals_sign_has_its_own_risk():
    names = ["a,b", "c=d", "e"]
    write_table(score_table(OLD.proba, [names[k] for k in OLD.labels]), "odd.parquet")
    calibrate("odd.parquet", "--classes", '"a,b",c=d,e', "--alpha", '"a,b=0.1",c=d=0.2,e=0.3')
    assert orisk.RiskController.load("cal.json").alpha == {"a,b": 0.1, "c=d": 0.2, "e": 0.3}


# columns


def saved_columns():
    return json.loads(Path("cal.json").read_text())["columns"]


def test_columns_are_kept_with_the_calibration_and_found_by_name():
    where = ["--group", "site", "--cluster-col", "patient"]
    calibrate("rows.parquet", *PLAIN, *where)
    assert saved_columns() == {
        **{"scores": ["p0", "p1", "p2"], "label": "y", "logits": False, "rescale": False},
        **{"group": "site", "cluster": "patient", "weight": None},
    }
    shuffled = NEW.table.select(["y", "p2", "patient", "ratio", "p0", "site", "p1"])
    write_table(shuffled, "shuffled.csv")
    write_table(NEW.table.rename_columns(["clinic", "person", "ratio", "p0", "p1", "p2", "y"]), "renamed.csv")
    for command in (["evaluate"], ["predict", "-o", "sets.csv"]):
        results = []
        for name, given in {"new.csv": [], "shuffled.csv": [], "renamed.csv": ["--group", "clinic"]}.items():
            given = [*given, "--cluster-col", "person"] if given and command == ["evaluate"] else given
            results.append(succeeds(command[0], "cal.json", name, *command[1:], *given).stdout)
        assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    ("described", "line"),
    [
        ({"group": 3}, "Expected `str | null`, got `int`"),
        ({"group": "p0"}, "it must name each column once"),
        ({"weight": "y"}, "it must name each column once"),
        ({"group": "a", "cluster": "a"}, "it must name each column once"),
        ({"logits": True, "rescale": True}, "logits and rescale must not both be true"),
        ({"more": "a"}, "unknown field `more`"),
    ],
)
def test_saved_columns_that_make_no_sense_are_refused(described, line):
    calibrate("rows.parquet", *PLAIN)
    rewrite(Path("cal.json"), columns=saved_columns() | described)
    with pytest.raises(ValueError, match=f"field 'columns' is not valid.*{line}"):
        orisk.RiskController.load("cal.json")


NAMES = {
    "text": [f"north {site}" for site in range(4)],
    "numbers": [0.5, 1.0, 2.0, 3.25],
    "truths": [False, True, True, False],
    "days": [datetime.date(2024, 1, 1 + site) for site in range(4)],
    "times": [datetime.datetime(2024, 1, 1 + site, 12) for site in range(4)],
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_of_any_kind_are_the_same_in_every_format(kind):
    """Calibrated from a file with types, predicted from text, and the other way round."""
    for drawn, name in ((OLD, "rows"), (NEW, "new")):
        values = pa.array([NAMES[kind][site] for site in drawn.site])
        with_column(drawn, "site", values, f"{name}.csv")
        with_column(drawn, "site", values, f"{name}.parquet")
        encoded = values if kind == "truths" else values.dictionary_encode()
        with_column(drawn, "site", encoded, f"{name}.encoded.arrow")
    numbers = {value: k for k, value in enumerate(dict.fromkeys(NAMES[kind]))}
    sites, new_sites = ([numbers[NAMES[kind][site]] for site in drawn.site] for drawn in (OLD, NEW))
    expected = orisk.RiskController(alpha=0.1, classes=GRADES).calibrate(OLD.proba, OLD.y, groups=sites)
    sets = expected_intervals(expected, NEW.proba, groups=new_sites)
    for calibrated, predicted in (
        ("csv", "parquet"),
        ("parquet", "encoded.arrow"),
        ("encoded.arrow", "csv"),
    ):
        calibrate(f"rows.{calibrated}", *PLAIN, "--group", "site")
        succeeds("predict", "cal.json", f"new.{predicted}", "-o", "sets.csv")
        assert intervals(read_rows(Path("sets.csv").read_bytes(), "sets.csv")) == sets


def test_names_that_differ_in_text_only_are_different_groups():
    values = [["1.1", "1.10", "01", "1"][site] for site in OLD.site]
    with_column(OLD, "site", values, "rows.csv")
    calibrate("rows.csv", *PLAIN, "--group", "site")
    assert set(orisk.RiskController.load("cal.json").threshold_) == {"1.10", "01", "1"}


def test_true_and_false_may_be_spelled_in_any_case():
    with_column(OLD, "site", OLD.site > 1, "rows.parquet")
    calibrate("rows.parquet", *PLAIN, "--group", "site")
    for spelled in ("True", "TRUE", "true"):
        values = [
            spelled if site > 1 else spelled.replace("True", "False") for site in NEW.site[NEW.site > 1]
        ]
        write_table(NEW.table.filter(NEW.site > 1).set_column(0, "site", pa.array(values)), "new.csv")
        succeeds("predict", "cal.json", "new.csv", "-o", "sets.csv")


def test_scores_and_labels_are_guessed_around_the_other_columns():
    """A group column named like a label, or a weight column named like a score, causes no problem."""
    names = ["grade", "patient", "p_ratio", "p0", "p1", "p2", "y"]
    write_table(OLD.table.rename_columns(names), "rows.csv")
    write_table(NEW.table.rename_columns(names), "new.csv")
    for scores in ([], ["--scores", "p*"]):
        options = ["--group", "grade", "--weight-col", "p_ratio", *scores]
        if scores:
            write_table(OLD.table.rename_columns(names).drop(["patient"]), "rows.csv")
        calibrate("rows.csv", *PLAIN, *options)
        columns = saved_columns()
        assert (columns["scores"], columns["label"]) == (["p0", "p1", "p2"], "y")
        assert (columns["group"], columns["weight"]) == ("grade", "p_ratio")
        succeeds("evaluate", "cal.json", "new.csv")


# identities


@BOTH
def test_options_that_change_nothing_give_the_same_thresholds(name):
    with_column(OLD, "site", ["all"] * 300, name)
    calibrate(name, *PLAIN)
    plain = orisk.RiskController.load("cal.json").threshold_
    calibrate(name, *PLAIN, "--group", "site")
    assert orisk.RiskController.load("cal.json").threshold_ == {"all": plain}
    with_column(OLD, "patient", [f"P{i}" for i in range(300)], name)
    calibrate(name, *PLAIN, "--cluster-col", "patient")
    assert orisk.RiskController.load("cal.json").threshold_ == plain
    with_column(OLD, "ratio", [3] * 300, name)
    calibrate(name, *PLAIN, "--weight-col", "ratio")
    assert orisk.RiskController.load("cal.json").threshold_ == plain
    calibrate(name, *PLAIN, "--class-ratios", "2,2,2")
    assert orisk.RiskController.load("cal.json").threshold_ == plain
    calibrate(name, *PLAIN, "--per-class")
    by_class = orisk.RiskController.load("cal.json").threshold_
    calibrate(name, "--classes", ",".join(GRADES), "--alpha", "None=0.1,Mild=0.1,Severe=0.1")
    assert orisk.RiskController.load("cal.json").threshold_ == by_class


def test_calibrations_and_coins_do_not_depend_on_the_cut(monkeypatch):
    options = ["--group", "site", "--randomize"]
    found = set()
    for rows_at_once in (7, 64, 1000):
        read_few_rows_at_once(monkeypatch, rows_at_once)
        calibrate("rows.parquet", *DIVERGENCE, *options)
        succeeds("predict", "cal.json", "new.parquet", "-o", "sets.csv", "--random-state", 5)
        found.add((Path("cal.json").read_text(), Path("sets.csv").read_text()))
    assert len(found) == 1
    succeeds("predict", "cal.json", "new.parquet", "-o", "sets.csv", "--random-state", 6)
    assert Path("sets.csv").read_text() not in {sets for _, sets in found}


# wrong options

GIVEN = {
    "delta": (["--delta", "0.1"], 0.1),
    "condition_on": (["--per-class"], "label"),
    "groups": (["--group", "site"], OLD.site),
    "clusters": (["--cluster-col", "patient"], OLD.patient),
    "sample_weight": (["--weight-col", "ratio"], OLD.ratio),
    "class_ratios": (["--class-ratios", "1,1,2"], [1, 1, 2]),
    "randomize": (["--randomize"], True),
}
"""For each parameter of the library its option, and a value."""
COMBINED = {
    *(("delta", other) for other in ("condition_on", "groups", "clusters")),
    *(("condition_on", other) for other in ("groups", "clusters")),
    *(("groups", other) for other in ("clusters", "sample_weight", "randomize")),
    ("clusters", "randomize"),
}
"""Pairs with a theorem for both."""


@pytest.mark.parametrize(("one", "other"), [*combinations(GIVEN, 2)])
def test_options_without_a_theorem_are_refused_before_the_file_is_read(one, other):
    values = {name: GIVEN[name][1] for name in (one, other)}
    parameters = {name: values.pop(name) for name in ("delta", "condition_on", "randomize") if name in values}
    options = *GIVEN[one][0], *GIVEN[other][0]

    def calibrated_here():
        return orisk.RiskController(alpha=0.1, classes=GRADES, **parameters).calibrate(
            OLD.proba, OLD.y, **values
        )

    if (one, other) in COMBINED:
        calibrate("rows.csv", *PLAIN, *options)
        assert calibrated_here().n_rows_ == orisk.RiskController.load("cal.json").n_rows_
        return
    with pytest.raises(ValueError, match="can't be used together"):
        calibrated_here()
    Path("nothing.csv").write_text("")
    line = refusal(2, "calibrate", "nothing.csv", *PLAIN, *options, "-o", "cal.json")
    assert line.startswith(f"{options[0]} and {GIVEN[other][0][0]} can't be used together. ")
    assert f"Possible with {options[0]}: " in line
    assert not re.search(r"(?<!-)\b(groups|clusters|condition_on|sample_weight|class_ratios)\b", line)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--confidence-bound", "betting"], "--confidence-bound betting is for --delta; give a --delta too."),
        (["--delta", "1"], "--delta must lie strictly between 0 and 1; got 1."),
        (["--delta", "ten"], "--delta must be a finite number; got 'ten'."),
        (
            ["--delta", "0.1", "--confidence-bound", "binomial", "--loss", "divergence"],
            "--confidence-bound binomial is for losses of rows that are 0 or the largest one",
        ),
        (
            ["--class-ratios", "1,2"],
            "--class-ratios must have one ratio for each of the 3 classes; got 2.",
        ),
        (["--class-ratios", "1,-1,1"], "--class-ratios of 'Mild' is -1; a ratio of shares must be"),
        (["--class-ratios", "1,a,1"], "--class-ratios must be a finite number; got 'a'."),
        (
            ["--alpha", "None=0.1,Mild=0.1"],
            "--alpha has no risk for class 'Severe'; give each of None, Mild, Severe one.",
        ),
        (
            ["--alpha", "None=0.1,Mild=0.1,Sever=0.1"],
            "--alpha: 'Sever' is not one of the classes None, Mild, Severe; write CLASS=RISK for each.",
        ),
        (["--alpha", "None=0.1,0.2"], "--alpha: '0.2' names no class"),
        (["--alpha", "None=0.1,None=0.2"], "--alpha has class 'None' more than once"),
        (["--alpha", "None=0.1,Mild=x,Severe=1"], "--alpha of Mild must be a finite number; got 'x'."),
        (
            ["--alpha", "None=0.1,Mild=1,Severe=0.1"],
            "--alpha must lie strictly between 0 and the largest loss, 1; got 1.",
        ),
        (
            ["--alpha", "None=0.1,Mild=0.1,Severe=0.1", "--randomize"],
            "--per-class and --randomize can't be used together.",
        ),
        (
            ["--random-state", "1"],
            "--random-state is for --delta, --recalibrate and --growth auto; give one of them.",
        ),
        (["--delta", "0.1", "--random-state", "-1"], "--random-state must be 0 or larger; got -1."),
    ],
)
def test_options_that_make_no_sense_are_wrong_usage(options, line):
    assert refusal(2, "calibrate", "rows.csv", *PLAIN, *options, "-o", "new.json").startswith(line)
    assert not Path("new.json").exists()


@BOTH
@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--group", "p0", "--scores", "p0,p1,p2"], "column 'p0' can't be a score and the group; correct"),
        (["--group", "y"], "column 'y' can't be the label and the group; correct --group."),
        (["--cluster-col", "y", "--label", "y"], "column 'y' can't be the label and the cluster; correct"),
        (
            ["--group", "site", "--cluster-col", "site"],
            "column 'site' can't be the group and the cluster; correct --cluster-col.",
        ),
        (["--group", "city"], "there is no column 'city' (there are site, patient, ratio, p0, p1, p2, y); "),
        (["--cluster-col", "who"], "there is no column 'who'"),
        (["--weight-col", "w"], "there is no column 'w'"),
    ],
)
def test_columns_that_do_not_fit_are_bad_data(name, options, line):
    if options == ["--group", "y"]:
        options = [*options, "--label", "y"]
    found = refusal(1, "calibrate", name, *PLAIN, *options, "-o", "cal.json")
    assert found.startswith(f"{name}: {line}")


def test_columns_of_other_types_are_bad_data():
    with_column(OLD, "site", [[1]] * 300, "lists.parquet")
    line = refusal(1, "calibrate", "lists.parquet", *PLAIN, "--group", "site", "-o", "cal.json")
    assert line.endswith("not names; choose another --group.")
    line = refusal(1, "calibrate", "rows.parquet", *PLAIN, "--weight-col", "patient", "-o", "cal.json")
    assert line == "rows.parquet: column 'patient' holds string, not numbers; choose another --weight-col."


# wrong rows


def spoiled(values, wrong):
    return [*values[:150], wrong, *values[151:]]


@pytest.mark.parametrize(("column", "option"), [("site", "--group"), ("patient", "--cluster-col")])
def test_a_missing_name_is_said_with_its_place(column, option):
    role = option.removeprefix("--").removesuffix("-col")
    values = OLD.table.column(column).to_pylist()
    for name in ("rows.csv", "rows.parquet"):
        with_column(OLD, column, spoiled(values, None), name)
        line = refusal(1, "calibrate", name, *PLAIN, option, column, "-o", "cal.json")
        assert line == (
            f"{name}: row 151, column '{column}': the {role} is missing; fill it in, or leave such rows out."
        )
    with_column(OLD, column, spoiled([1.5] * 300, float("inf")), "rows.parquet")
    line = refusal(1, "calibrate", "rows.parquet", *PLAIN, option, column, "-o", "cal.json")
    assert line == f"rows.parquet: row 151, column '{column}': inf can't name a {role}; correct it."
    with_column(OLD, column, spoiled([1.5] * 300, float("nan")), "rows.parquet")
    line = refusal(1, "calibrate", "rows.parquet", *PLAIN, option, column, "-o", "cal.json")
    assert f"row 151, column '{column}': the {role} is missing" in line
    assert not Path("cal.json").exists()


@BOTH
@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (None, "the weight is missing"),
        (float("nan"), "the weight is missing or NaN"),
        (-0.5, "-0.5 is not a weight"),
        (float("inf"), "inf is not a weight"),
    ],
)
def test_a_wrong_weight_is_said_with_its_place(name, wrong, problem):
    with_column(OLD, "ratio", spoiled(OLD.ratio.tolist(), wrong), name)
    line = refusal(1, "calibrate", name, *PLAIN, "--weight-col", "ratio", "-o", "cal.json")
    assert line.startswith(f"{name}: row 151, column 'ratio': {problem}")
    assert line.endswith(
        "a weight is a likelihood ratio, finite and 0 or larger: correct it, or leave such rows out."
    )


def test_a_weight_that_is_text_is_said_with_its_place():
    with_column(OLD, "ratio", spoiled([f" {ratio}" for ratio in OLD.ratio], "much"), "rows.csv")
    line = refusal(1, "calibrate", "rows.csv", *PLAIN, "--weight-col", "ratio", "-o", "cal.json")
    assert line.startswith("rows.csv: row 151, column 'ratio': 'much' is not a number; a weight is")


@BOTH
def test_weights_that_are_all_0_are_bad_data(name):
    with_column(OLD, "ratio", [0] * 300, name)
    line = refusal(1, "calibrate", name, *PLAIN, "--weight-col", "ratio", "-o", "cal.json")
    assert line == f"{name}: column 'ratio' is 0 in every row; some row must count."


# predictions


@BOTH
def test_a_group_without_calibration_rows_is_an_error_or_gets_all_labels(name):
    calibrate("rows.csv", *PLAIN, "--group", "site")
    with_column(NEW, "site", [9 if i == 120 else site for i, site in enumerate(NEW.site)], name)
    line = refusal(1, "predict", "cal.json", name, "-o", "sets.csv")
    said_name = "'9'" if name.endswith("csv") else "9"
    assert line.startswith(f"{name}: row 121, column 'site': the group {said_name} has no calibration rows (")
    assert "--unseen-groups full" in line
    assert not Path("sets.csv").exists()
    assert refusal(1, "evaluate", "cal.json", name) == line
    succeeds("predict", "cal.json", name, "-o", "sets.csv", "--unseen-groups", "full")
    found = intervals(read_rows(Path("sets.csv").read_bytes(), "sets.csv"))
    controller = orisk.RiskController.load("cal.json")
    expected = expected_intervals(controller, NEW.proba, groups=[str(site) for site in NEW.site])
    assert found == [("None", "Severe", 3) if i == 120 else row for i, row in enumerate(expected)]


@pytest.mark.parametrize(
    ("calibrated", "given", "line"),
    [
        (
            ["--randomize"],
            [],
            "the calibration is randomized; give a --random-state: equal ones give equal sets.",
        ),
        (["--randomize"], ["--random-state", "-1"], "--random-state must be 0 or larger; got -1."),
        ([], ["--random-state", "1"], "--random-state is for calibrations with --randomize; leave it out."),
        ([], ["--group", "site"], "--group: the calibration was made without groups; leave it out."),
        ([], ["--weight-col", "ratio"], "--weight-col: the calibration was made without weights; leave it"),
        ([], ["--alpha", "None=0.1,Mild=0.1,Severe=0.2"], "--alpha by class needs a calibration with --per"),
    ],
)
def test_options_that_do_not_fit_the_calibration_are_wrong_usage(calibrated, given, line):
    calibrate("rows.csv", *PLAIN, *calibrated)
    assert refusal(2, "predict", "cal.json", "new.csv", "-o", "sets.csv", *given).startswith(line)
    assert refusal(2, "evaluate", "cal.json", "new.csv", *given).startswith(line)
    if "--alpha" not in given:
        assert refusal(2, "monitor", "watch.json", "cal.json", "new.csv", *given).startswith(line)


def test_options_of_one_command_that_do_not_fit_are_wrong_usage():
    calibrate("rows.csv", *PLAIN)
    line = refusal(2, "predict", "cal.json", "new.csv", "-o", "s.csv", "--unseen-groups", "full")
    assert line == "--unseen-groups: the calibration was made without groups; leave it out."
    line = refusal(2, "evaluate", "cal.json", "new.csv", "--cluster-col", "patient")
    assert line == "--cluster-col: the calibration was made without clusters; leave it out."


def test_a_calibration_of_the_library_needs_the_columns_named():
    controller = orisk.RiskController(alpha=0.1, classes=GRADES)
    controller.calibrate(OLD.proba, OLD.y, groups=OLD.site, clusters=OLD.patient).save("cal.json")
    line = refusal(2, "predict", "cal.json", "new.csv", "-o", "sets.csv")
    assert line.endswith("was made with groups, but not from a file; name their column with --group.")
    line = refusal(2, "evaluate", "cal.json", "new.csv", "--group", "site")
    assert line.endswith("was made with clusters, but not from a file; name their column with --cluster-col.")
    line = refusal(2, "evaluate", "cal.json", "new.csv")
    both = "was made with groups and clusters, but not from a file; name their columns with --group and "
    both += "--cluster-col"
    assert line.endswith(f"{both}.")
    names = [{"y": "result"}.get(name, name) for name in NEW.table.column_names]
    write_table(NEW.table.rename_columns(names), "other.csv")
    line = refusal(2, "evaluate", "cal.json", "other.csv")
    assert line.endswith(f"{both}, and that of the label with --label.")
    succeeds("predict", "cal.json", "new.csv", "-o", "sets.csv", "--group", "site")
    found = intervals(read_rows(Path("sets.csv").read_bytes(), "sets.csv"))
    assert found == expected_intervals(controller, NEW.proba, groups=NEW.site)


def test_a_file_without_the_column_of_the_groups_says_so():
    calibrate("rows.csv", *PLAIN, "--group", "site", "--cluster-col", "patient")
    write_table(NEW.table.drop(["site"]), "new.csv")
    for command in (["predict", "-o", "sets.csv"], ["evaluate"]):
        line = refusal(1, command[0], "cal.json", "new.csv", *command[1:])
        assert line.startswith("new.csv: there is no column 'site' (there are patient, ratio,")
        assert line.endswith("name the right one with --group.")
    write_table(NEW.table.drop(["patient"]), "new.csv")
    succeeds("predict", "cal.json", "new.csv", "-o", "sets.csv")
    assert refusal(1, "evaluate", "cal.json", "new.csv").endswith("name the right one with --cluster-col.")


def test_weights_too_large_for_a_guarantee_are_counted_once_for_all_batches():
    calibrate("rows.csv", *PLAIN, "--weight-col", "ratio", "--group", "site")
    weights = [10_000.0 if i in (3, 70, 190) else 1.0 for i in range(200)]
    with_column(NEW, "ratio", weights, "new.parquet")
    for command in (["predict", "-o", "sets.csv"], ["evaluate"]):
        shown = " ".join(succeeds(command[0], "cal.json", "new.parquet", *command[1:]).stdout.split())
        assert shown.count("weights so large") == 1
        assert "Note: 3 of 200 rows have weights so large" in shown


@pytest.mark.parametrize("above", [False, True])
def test_a_weight_is_too_large_just_beyond_what_the_calibration_rows_weigh(above):
    """270 rows of weight 1 answer at 0.1 for a new row of weight 30 and no more: 0.1 (270 + w) >= w."""
    write_table(OLD.table.slice(0, 270).set_column(2, "ratio", pa.array([1.0] * 270)), "rows.csv")
    calibrate("rows.csv", *PLAIN, "--weight-col", "ratio")
    with_column(NEW, "ratio", [np.nextafter(30, 99) if above else 30.0] * 200, "new.parquet")
    shown = succeeds("predict", "cal.json", "new.parquet", "-o", "sets.csv").stdout
    assert ("Note: 200 of 200 rows have weights so large" in " ".join(shown.split())) == above


# evaluations


def evaluated(*arguments):
    shown = succeeds("evaluate", "cal.json", *arguments, "--json", "metrics.json").stdout
    assert max(map(len, shown.splitlines())) <= 80
    document = json.loads(Path("metrics.json").read_text())
    assert " ".join(document["verdict_text"].split()) in " ".join(shown.split())
    for part in document.get("strata", []):
        if part["risk"] is not None:
            numbers = " +".join(f"{number:.4f}" for number in part["risk"])
            assert re.search(rf"{numbers} +{part['alpha']} +{part['verdict']}$", shown, re.MULTILINE)
    return document


@BOTH
def test_each_group_and_class_is_evaluated_by_itself(name):
    new = name.replace("rows", "new")
    calibrate(name, *DIVERGENCE, "--group", "site", "--per-class")
    controller = orisk.RiskController.load("cal.json")
    sets = controller.predict_set(NEW.proba, groups=NEW.extras(name, "groups")["groups"])
    document = evaluated(new)
    keys = [(str(part["group"]), part["label"]) for part in document["strata"]]
    assert keys == [(str(site), label) for site in dict.fromkeys(OLD.site) for label in GRADES]
    for part in document["strata"]:
        mine = np.flatnonzero((NEW.site == int(part["group"])) & (np.array(NEW.y) == part["label"]))
        y = [NEW.y[row] for row in mine]
        assert part["rows"] == len(mine)
        assert part["clusters"] is None
        assert part["risk"][0] == pytest.approx(metrics.risk(y, sets[mine], "divergence"), abs=1e-12)
    assert document["risk"] == list(metrics.risk(NEW.y, sets, "divergence", confidence=0.95))


def test_an_evaluation_by_class_has_the_intervals_of_the_library():
    calibrate("rows.csv", *BY_CLASS, "--weights", "1,2,4")
    document = evaluated("new.parquet")
    sets = orisk.RiskController.load("cal.json").predict_set(NEW.proba)
    estimate = metrics.class_risk(NEW.y, sets, orisk.WeightedLoss([1, 2, 4]), confidence=0.95)
    assert [part["risk"] for part in document["strata"]] == np.transpose(estimate).tolist()
    assert [part["alpha"] for part in document["strata"]] == ["0.1", "0.2", "0.05"]


@BOTH
def test_every_cluster_counts_once(name):
    calibrate(name, *PLAIN, "--cluster-col", "patient")
    document = evaluated(name.replace("rows", "new"))
    sets = orisk.RiskController.load("cal.json").predict_set(NEW.proba)
    losses, patients = metrics.losses(NEW.y, sets), np.array(NEW.patient)
    means = [losses[patients == patient].mean() for patient in dict.fromkeys(NEW.patient)]
    [whole] = document["strata"]
    assert whole["clusters"] == len(means) < whole["rows"] == 200
    assert whole["risk"][0] == pytest.approx(np.mean(means), abs=1e-12)
    assert whole["risk"][0] != pytest.approx(document["risk"][0], abs=1e-6)
    low, high = whole["risk"][1:]
    near = 1.96 * np.std(means) / np.sqrt(len(means))
    assert low < whole["risk"][0] < high
    assert near < (high - low) / 2 < 2.2 * near
    calibrate(name, *PLAIN, "--cluster-col", "patient", "--group", "site")
    document = evaluated(name.replace("rows", "new"))
    groups = NEW.extras(name, "groups")["groups"]
    losses = metrics.losses(
        NEW.y, orisk.RiskController.load("cal.json").predict_set(NEW.proba, groups=groups)
    )
    for part in document["strata"]:
        mine = NEW.site == int(part["group"])
        means = [losses[mine & (patients == patient)].mean() for patient in {*patients[mine]}]
        assert part["clusters"] == len(means)
        assert part["risk"][0] == pytest.approx(np.mean(means), abs=1e-12)


@BOTH
def test_the_weighted_mean_loss_counts(name):
    calibrate(name, *PLAIN, "--weight-col", "ratio")
    document = evaluated(name.replace("rows", "new"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sets = orisk.RiskController.load("cal.json").predict_set(NEW.proba, sample_weight=NEW.ratio)
    [whole] = document["strata"]
    assert whole["risk"][0] == pytest.approx(np.average(metrics.losses(NEW.y, sets), weights=NEW.ratio))
    assert whole["risk"][1] < whole["risk"][0] < whole["risk"][2]
    calibrate(name, *PLAIN, "--class-ratios", "1,2,0.5")
    document = evaluated(name.replace("rows", "new"))
    sets = orisk.RiskController.load("cal.json").predict_set(NEW.proba)
    [whole] = document["strata"]
    weights = np.array([1, 2, 0.5])[NEW.labels]
    assert whole["risk"][0] == pytest.approx(np.average(metrics.losses(NEW.y, sets), weights=weights))


def test_a_group_that_has_moved_disagrees_and_the_others_do_not():
    calibrate("rows.csv", *PLAIN, "--group", "site")
    wrong = ["Severe" if site == 2 else label for site, label in zip(NEW.site, NEW.y, strict=True)]
    with_column(NEW, "y", wrong, "new.csv")
    document = evaluated("new.csv")
    words = {part["group"]: part["verdict"] for part in document["strata"]}
    assert words["2"] == document["verdict"] == "disagrees"
    assert set(words.values()) - {"disagrees"} == {"agrees"}
    assert (
        "In 2, the loss is above alpha by more than chance explains; the test rows may"
        in document["verdict_text"]
    )
    succeeds("report", "cal.json", "new.csv", "-o", "report.html")
    page = json.loads(Path("report.json").read_text())
    assert page["stops"][page["start"]]["verdict_text"] == document["verdict_text"]


def test_the_calibration_rows_and_groups_without_test_rows_say_nothing():
    calibrate("rows.csv", *PLAIN, "--group", "site")
    document = evaluated("rows.parquet")
    assert document["verdict"] == "nothing"
    assert {part["verdict"] for part in document["strata"]} == {"nothing"}
    write_table(NEW.table.filter(NEW.site == 2), "two.csv")
    parts = {part["group"]: part for part in evaluated("two.csv")["strata"]}
    assert (parts["1"]["risk"], parts["1"]["rows"], parts["1"]["verdict"]) == (None, 0, "nothing")
    assert parts["2"]["verdict"] == "agrees"


def test_a_delta_that_was_meant_as_a_confidence_is_noted():
    result = calibrate("rows.csv", *PLAIN, "--delta", "0.95")
    assert "Note: delta=0.95 keeps alpha with probability 0.05 only" in " ".join(result.output.split())


@pytest.mark.parametrize("alpha", ["0.2", "0.7"], ids=["too few rows", "certified"])
def test_groups_that_look_like_patients_are_noted(alpha):
    table = OLD.table.append_column("row", pa.array(range(len(OLD.y))))
    write_table(table, "rows.csv")
    asked = ["--alpha", alpha, "--classes", ",".join(GRADES), "--group", "row", "--no-check"]
    shown = " ".join(succeeds("calibrate", "rows.csv", *asked, "-o", "cal.json").output.split())
    assert (
        "Note: Most groups have one or two rows (300 groups, 300 rows): if they are patients or other units "
        "with several rows, pass them as --cluster-col instead of --group." in shown
    )
    assert ("too few rows" in shown) == (alpha == "0.2")
    assert "clusters" not in shown


def test_a_guarantee_with_probability_leaves_no_room_for_the_calibration():
    """The same excess is chance for an average over calibrations of few rows, and a sign with delta."""
    few = OLD.table.slice(0, 40)
    write_table(few, "few.csv")
    alpha = ["--classes", ",".join(GRADES), "--alpha", "0.3"]
    calibrate("few.csv", *alpha, out="average.json")
    calibrate("few.csv", *alpha, "--delta", "0.5")
    for file in ("average.json", "cal.json"):
        sets = orisk.RiskController.load(file).predict_set(NEW.proba)
        covered = metrics.losses(NEW.y, sets) == 0
        missed, held = np.flatnonzero(~covered), np.flatnonzero(covered)
        rows = [*np.resize(missed, 156), *np.resize(held, 244)]  # 0.39 missed: 0.09 above alpha
        write_table(NEW.table.take(rows), "new.csv")
        succeeds("evaluate", file, "new.csv", "--json", "metrics.json")
        document = json.loads(Path("metrics.json").read_text())
        assert document["risk"][0] == pytest.approx(0.39)
        assert document["verdict"] == ("chance" if file == "average.json" else "disagrees")
    assert "probability" in document["verdict_text"]


def test_another_risk_is_evaluated_by_class():
    calibrate("rows.csv", *PLAIN, "--per-class")
    document = evaluated("new.csv", "--alpha", "None=0.2,Mild=0.1,Severe=0.3")
    assert [part["alpha"] for part in document["strata"]] == ["0.2", "0.1", "0.3"]
    shown = succeeds(
        "predict", "cal.json", "new.csv", "-o", "sets.csv", "--alpha", "Severe=0.3,None=0.2,Mild=0.1"
    )
    expected = orisk.RiskController.load("cal.json").predict_set(
        NEW.proba, alpha={"None": 0.2, "Mild": 0.1, "Severe": 0.3}
    )
    assert f"{expected.size.mean():.2f} labels in a set" in shown.stdout


def test_of_very_many_groups_the_worst_are_shown():
    sites = np.arange(300) % 60
    with_column(OLD, "site", sites, "rows.csv")
    wrong = ["Severe" if i % 60 == 59 else label for i, label in enumerate(NEW.y)]
    moved = NEW.table.set_column(0, "site", pa.array(np.arange(200) % 60))
    write_table(moved.set_column(moved.schema.get_field_index("y"), "y", pa.array(wrong)), "new.csv")
    half = ["--classes", ",".join(GRADES), "--alpha", "0.5"]
    shown = calibrate("rows.csv", *half, "--group", "site").stdout
    assert len(re.findall(r"^ +\d+ +5 +0.5 ", shown, re.MULTILINE)) == 40
    assert "The first 40 of 60 thresholds; data" in shown
    shown = succeeds("evaluate", "cal.json", "new.csv", "--json", "metrics.json").stdout
    assert "Those are the 40 furthest above alpha of 60; --json has all." in shown
    lines = re.findall(r"^ +(\d+) +[34] +([0-9.]+) +[0-9.]+ +[0-9.]+ +0.5 ", shown, re.MULTILINE)
    risks = [float(risk) for _, risk in lines]
    assert len(risks) == 40
    assert risks == sorted(risks, reverse=True)
    assert len(json.loads(Path("metrics.json").read_text())["strata"]) == 60


def test_a_randomized_calibration_is_evaluated_with_its_seed():
    calibrate("rows.csv", *PLAIN, "--randomize")
    document = evaluated("new.csv", "--random-state", 3)
    sets = orisk.RiskController.load("cal.json").predict_set(NEW.proba, random_state=3)
    assert document["risk"] == list(metrics.risk(NEW.y, sets, confidence=0.95))
    assert "strata" not in document


# monitoring


def watched(*files, state="watch.json", options=()):
    return [run("monitor", state, "cal.json", file, *options) for file in files]


@BOTH
@pytest.mark.parametrize("options", [[], ["--group", "site"], ["--randomize"]], ids=str)
def test_a_monitor_that_is_resumed_is_as_one_that_was_never_interrupted(name, options, tmp_path):
    calibrate(name, *PLAIN, *options)
    suffix = name.rpartition(".")[2]
    for k, (start, stop) in enumerate([(0, 70), (70, 71), (71, 200)]):
        write_table(NEW.table.slice(start, stop - start), f"month{k}.{suffix}")
    seed = ["--random-state", 1] if options == ["--randomize"] else []
    if seed:
        results = watched(f"new.{suffix}", options=seed)
        extras = {"random_state": 1}
    else:
        results = watched(*(f"month{k}.{suffix}" for k in range(3)))
        extras = NEW.extras(name, "groups") if options else {}
    assert [result.exit_code for result in results] == [0] * len(results), results[-1].output
    controller = orisk.RiskController.load("cal.json")
    monitor = orisk.RiskMonitor("coverage", 0.1, 0.05, GRADES)
    monitor.update(NEW.y, controller.predict_set(NEW.proba, **extras))
    monitor.save("library.json")
    by_command, by_library = saved(tmp_path / "watch.json"), saved(tmp_path / "library.json")
    assert [file["n_rows"] for file in by_command.pop("files")] == ([200] if seed else [70, 1, 129])
    assert by_library.pop("files") == []
    assert by_command == by_library
    text = " ".join(results[-1].stdout.split())
    new = 200 if options == ["--randomize"] else 129
    assert text == (
        f"No alarm after 200 rows, {new} of them new. The mean loss is {monitor.risk_:.4g}. "
        f"The evidence against an expected loss of at most 0.1 is {monitor.evidence_:.3g}; an alarm needs "
        "1/delta = 20."
        + (
            " This watches all these rows together, not each group or class by itself."
            if "groups" in extras
            else ""
        )
    )


def test_a_monitor_of_one_group_names_it():
    """No warning about groups that count together where there is only one."""
    calibrate("rows.csv", *PLAIN, "--group", "site")
    sites = NEW.table["site"].to_pylist()
    one = [site == sites[0] for site in sites]
    write_table(NEW.table.filter(pa.array(one)), "one.csv")
    [done] = watched("one.csv")
    text = " ".join(done.stdout.split())
    assert text.endswith(f"All new rows are of group {str(sites[0])!r}.")
    assert "watches all these rows together" not in text


def test_an_alarm_has_an_exit_code_of_its_own_and_stays():
    calibrate("rows.csv", *PLAIN)
    write_table(NEW.table.set_column(6, "y", pa.array(["Severe"] * 200)), "bad.csv")
    write_table(OLD.table.slice(0, 200), "more.csv")
    results = watched("new.csv", "bad.csv", "more.csv", options=["--alpha", "0.2", "--delta", "0.01"])
    assert [result.exit_code for result in results] == [0, 3, 3]
    monitor = orisk.RiskMonitor.load("watch.json")
    assert (monitor.alpha, monitor.delta, monitor.n_rows_) == (0.2, 0.01, 600)
    assert " ".join(results[-1].stdout.split()) == (
        f"Alarm at row {monitor.alarm_row_}: there is strong evidence against an expected loss of at most "
        f"0.2. The mean loss is {monitor.risk_:.4g} in 600 rows, 200 of them new, and "
        f"{monitor.recent_risk_:.4g} in the last 500. It began to rise at about row {monitor.rise_row_}. The "
        "probability of a false alarm, ever, is at most 0.01. Sorted rows can cause a false alarm: give the "
        "rows in the order of prediction or in random order, not sorted by label or score. If they were not "
        "sorted, calibrate again on recent rows, and watch the new calibration with a new STATE."
    )
    assert 195 <= monitor.rise_row_ <= 205
    assert results[-1].stderr == ""
    done = run_installed("monitor", "watch.json", "cal.json", "new.csv", "--again")
    assert (done.returncode, done.stderr) == (3, b"")


def test_a_state_is_written_whole_or_not_at_all():
    calibrate("rows.csv", *PLAIN)
    watched("new.csv")
    before = Path("watch.json").read_bytes()
    write_table(NEW.table.set_column(6, "y", pa.array([*NEW.y[:150], "Grave", *NEW.y[151:]])), "bad.csv")
    line = refusal(1, "monitor", "watch.json", "cal.json", "bad.csv")
    assert line.startswith("bad.csv: row 151, column 'y': the label 'Grave' is not one of the classes")
    assert Path("watch.json").read_bytes() == before
    refusal(1, "monitor", "other.json", "cal.json", "bad.csv")
    assert not Path("other.json").exists()
    Path("watch.json").write_bytes(before[:100])
    assert refusal(1, "monitor", "watch.json", "cal.json", "new.csv").startswith("watch.json is not a whole")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--alpha", "0.2"], "--alpha: watch.json was begun with 0.1; leave it out, or name another STATE."),
        (
            ["--delta", "0.01"],
            "--delta: watch.json was begun with 0.05; leave it out, or name another STATE.",
        ),
    ],
)
def test_a_monitor_goes_on_as_it_was_begun(options, line):
    calibrate("rows.csv", *PLAIN)
    watched("new.csv")
    assert refusal(2, "monitor", "watch.json", "cal.json", "new.csv", *options) == line
    same = ["--alpha", "0.10", "--delta", "1/20", "--again"]
    assert watched("new.csv", options=same)[0].exit_code == 0


def test_a_monitor_that_makes_no_sense_is_wrong_usage():
    calibrate("rows.csv", *PLAIN)
    watched("new.csv")
    calibrate("rows.csv", *DIVERGENCE)
    line = refusal(2, "monitor", "watch.json", "cal.json", "new.csv")
    assert line == "watch.json watches another loss than that of the calibration; name another STATE."
    calibrate("rows.csv", *BY_CLASS)
    line = refusal(2, "monitor", "w.json", "cal.json", "new.csv")
    assert line == "the calibration has a risk for each class; say which to watch with --alpha."
    assert watched("new.csv", state="w.json", options=["--alpha", "0.2"])[0].exit_code == 0
    for given, line in {
        ("--alpha", "1.5"): "--alpha must lie strictly between 0 and the largest loss",
        ("--delta", "0"): "--delta must lie strictly between 0 and 1",
    }.items():
        assert refusal(2, "monitor", "n.json", "cal.json", "new.csv", "--alpha", "0.1", *given).startswith(
            line
        )
    line = refusal(2, "monitor", "cal.json", "cal.json", "new.csv")
    assert line == "STATE: cal.json is read too, and would be lost; choose another name."
    assert orisk.RiskController.load("cal.json").classes_.tolist() == GRADES


def test_rows_that_were_watched_are_refused_unless_they_are_to_count_again():
    calibrate("rows.csv", *PLAIN)
    write_table(NEW.table.slice(0, 70), "january.csv")
    write_table(NEW.table.slice(70), "february.parquet")
    watched("january.csv")
    before = Path("watch.json").read_bytes()
    again = "or add --again if they are other rows with equal values. Nothing was changed."
    count = "rows were watched before, and would count twice;"
    write_table(NEW.table.slice(0, 70), "copy.parquet")
    for name in ("january.csv", "copy.parquet"):
        line = refusal(1, "monitor", "watch.json", "cal.json", name)
        assert line == f"{name}: its 70 {count} leave it out, {again}"
    line = refusal(1, "monitor", "watch.json", "cal.json", "new.csv")  # January and February
    assert line == f"new.csv: its first 70 {count} give the rows that are new, {again}"
    Path("both").mkdir()
    write_table(NEW.table.slice(70), "both/a.csv")
    write_table(NEW.table.slice(70), "both/b.csv")
    line = refusal(1, "monitor", "watch.json", "cal.json", "both/*.csv")
    assert line == f"both/b.csv: its 130 {count} leave it out, {again}"
    assert Path("watch.json").read_bytes() == before
    assert watched("february.parquet")[0].exit_code == 0
    assert watched("january.csv", options=["--again"])[0].exit_code == 0
    monitor = orisk.RiskMonitor.load("watch.json")
    assert monitor.n_rows_ == 270
    assert [file.n_rows for file in monitor.files_] == [70, 130, 70]
    assert monitor.files_[0] == monitor.files_[2]


def test_the_first_rows_of_a_short_file_can_be_the_same_by_chance():
    calibrate("rows.csv", *PLAIN)
    for n_rows in (19, 20):
        write_table(NEW.table.slice(0, n_rows), f"{n_rows}.csv")
        watched(f"{n_rows}.csv", state=f"{n_rows}.json")
    assert watched("new.csv", state="19.json")[0].exit_code == 0
    assert "its first 20 rows were watched" in refusal(1, "monitor", "20.json", "cal.json", "new.csv")


def test_the_rows_of_the_calibration_are_noticed():
    calibrate("rows.csv", *PLAIN)
    text = " ".join(watched("rows.parquet")[0].stdout.split())
    assert text.startswith("Note: These are the calibration rows: the threshold was chosen on them")


@BOTH
def test_clusters_are_watched_as_one_case_each(name, tmp_path):
    suffix = name.rpartition(".")[2]
    calibrate(name, *PLAIN, "--cluster-col", "patient")
    whole = NEW.patient.index(NEW.patient[100])
    write_table(NEW.table.slice(0, whole), f"first.{suffix}")
    write_table(NEW.table.slice(whole), f"second.{suffix}")
    results = watched(f"first.{suffix}", f"second.{suffix}")
    assert [result.exit_code for result in results] == [0, 0], results[-1].output
    controller = orisk.RiskController.load("cal.json")
    monitor = orisk.RiskMonitor("coverage", 0.1, 0.05, GRADES)
    monitor.update(NEW.y, controller.predict_set(NEW.proba), clusters=NEW.patient)
    monitor.save("library.json")
    by_command, by_library = saved(tmp_path / "watch.json"), saved(tmp_path / "library.json")
    by_command.pop("files"), by_library.pop("files")
    assert by_command == by_library
    n_clusters = len(set(NEW.patient))
    assert f"after {n_clusters} clusters" in " ".join(results[-1].stdout.split())
    write_table(NEW.table.slice(whole), f"again.{suffix}")
    line = refusal(1, "monitor", "watch.json", "cal.json", f"again.{suffix}", "--again")
    assert line.startswith(
        f"again.{suffix}: cluster {NEW.patient[whole]!r} was watched before. A cluster counts once, with the "
        "mean loss of its rows: give all its rows in one update"
    )


def test_two_columns_of_groups_are_refused():
    words = refusal(2, "calibrate", "rows.csv", "--group", "site", "--group=sex", "-o", "new.json")
    assert words.startswith("--group is given more than once; calibrate once for each column, then join.")
