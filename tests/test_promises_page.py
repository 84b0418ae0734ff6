"""The page of guarantees has a row for every public way, option and pair of options, and its tests exist."""

import ast
import inspect
import re
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from command import COMMANDS
from options import BOUNDS, COMBINES

import ordinalrisk as orisk
from ordinalrisk import shift

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "maintaining" / "promises.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.M | re.S))


def rows_of(section):
    """The cells of a table's rows; a pipe within a cell is escaped."""
    lines = [line for line in SECTIONS[section].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


TABLES = [section for section in SECTIONS if rows_of(section)]
ROWS = [row for section in TABLES for row in rows_of(section)]


def codes(cell):
    return re.findall(r"`([^`]+)`", cell)


TESTS = dict(re.findall(r"^- (T\d+): `(.*?)`", SECTIONS["Tests"], flags=re.M))
FIRST = {code for row in ROWS for code in codes(row[0])}
NO_SET = {*codes(SECTIONS["Names that make no set"])}


@cache
def defined_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_row_has_a_promise_assumptions_a_theorem_and_a_test():
    assert len(ROWS) > 40
    for row in ROWS:
        assert len(row) == 5, row[0]
        assert all(row), row[0]
        cited = re.findall(r"\bT\d+\b", row[4])
        assert cited or row[4].endswith(("above", "below")), row[0]
        assert {*cited} <= TESTS.keys(), row[0]


def test_tests_are_named_once_and_cited():
    assert len({*TESTS.values()}) == len(TESTS)
    assert {*re.findall(r"\bT\d+\b", " ".join(row[4] for row in ROWS))} == TESTS.keys()


@pytest.mark.parametrize("test", TESTS.values())
def test_every_test_that_is_named_exists(test):
    path, name = test.split("::")
    assert name in defined_in(path)


def test_every_option_has_a_row():
    online = orisk.OnlineRiskController
    calls = [orisk.RiskController, orisk.RiskController.calibrate, orisk.RiskController.predict_set]
    calls += [
        orisk.OrdinalRiskClassifier,
        orisk.OrdinalRiskClassifier.fit,
        orisk.OrdinalRiskClassifier.calibrate,
    ]
    calls += [
        online,
        online.predict_set,
        online.update,
        online.bound_after,
        online.bound_over_any,
        orisk.RiskMonitor,
    ]
    parameters = {name for call in calls for name in inspect.signature(call).parameters}
    assert parameters - {"self", "proba", "X", "y", "fit_params"} <= FIRST | NO_SET
    assert {*COMBINES} <= FIRST


def test_every_pair_that_is_allowed_has_a_row_and_no_other():
    allowed = {frozenset(pair) for pair in combinations(COMBINES, 2) if pair[1] in COMBINES[pair[0]]}
    pairs = [frozenset(codes(row[0])) for row in rows_of("Pairs of options")]
    assert {*pairs} == allowed
    assert len(pairs) == len(allowed)


def test_every_bound_has_a_row():
    assert [codes(row[0]) for row in rows_of("Bounds behind `delta`")] != []
    assert {code for row in rows_of("Bounds behind `delta`") for code in codes(row[0])} == {*BOUNDS}


PROMISING = ("RiskController", "JointController", "OrdinalRiskClassifier", "OnlineRiskController")
OF_ESTIMATORS = {"predict", "predict_proba", "predict_ordered_proba", "score", "get_metadata_routing"}


@pytest.mark.parametrize("name", PROMISING)
def test_every_method_of_a_class_with_promises_has_a_row(name):
    bases = [base for base in getattr(orisk, name).__mro__ if base.__module__.startswith("ordinalrisk")]
    members = [member for base in bases for member in vars(base).items()]
    methods = {
        member
        for member, value in members
        if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, classmethod))
    }
    of_sklearn = {member for member in methods if member.startswith(("set_", "get_"))}
    listed = {code.split(".")[1] for code in FIRST if code.startswith(f"{name}.")}
    assert methods - {"of"} - of_sklearn - OF_ESTIMATORS == listed & methods
    assert listed <= methods


def test_every_public_name_and_command_is_somewhere():
    named = {code.split(".")[0] for code in FIRST | NO_SET}
    under_one_row = {name for name in orisk.__all__ if name.endswith(("Growth", "Loss"))}  # loss, growth
    assert {*orisk.__all__} - under_one_row - {"shift"} <= named
    assert {f"shift.{name}" for name in shift.__all__} <= FIRST
    assert {f"ordinalrisk {name}" for name in COMMANDS} <= FIRST | NO_SET


def test_the_page_names_nothing_that_is_not_there():
    for code in FIRST | NO_SET:
        if re.fullmatch(r"[A-Z]\w+(\.\w+)?", code):
            home, *member = code.split(".")
            assert hasattr(orisk, home), code
            assert not member or hasattr(getattr(orisk, home), member[0]), code
