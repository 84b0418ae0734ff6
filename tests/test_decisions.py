"""Actions: the least worst case over each set, ties, inputs, files, and what follows from coverage."""

import copy
import itertools
import math
import pickle
import shutil
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from command import refusal, succeeds
from devices import DEVICE, take_for_a_device
from file_formats import NAMES, read_rows, score_table, write_table
from hypothesis import given
from hypothesis import strategies as st

import ordinalrisk as orisk
from ordinalrisk import IntervalSet

LABELS = ["none", "mild", "severe"]
COSTS = {"treat": [3, 1, 0], "refer": [2, 2, 2], "wait": [0, 2, 9]}
FEW_NUMBERS = [0, 1, 2, -1, 0.1, 0.29, "0.3", Decimal("0.10"), Fraction(1, 3), "1/3", np.float32(0.1), 1e-3]
"""Some are equal as written, none is the binary fraction that a float holds."""


def all_intervals(n_classes):
    ends = np.array([*itertools.combinations_with_replacement(range(n_classes), 2)])
    return IntervalSet(ends[:, 0], ends[:, 1], range(n_classes))


def written(cost):
    return Fraction(str(cost))


@st.composite
def cost_tables(draw):
    n_classes, n_actions = draw(st.integers(2, 6)), draw(st.integers(1, 5))
    row = st.lists(st.sampled_from(FEW_NUMBERS), min_size=n_classes, max_size=n_classes)
    return n_classes, {f"a{i}": draw(row) for i in range(n_actions)}


@given(cost_tables())
def test_it_is_the_first_action_with_the_least_worst_case(drawn):
    n_classes, costs = drawn
    sets = all_intervals(n_classes)
    decisions = sets.decide(costs)
    for i, (lower, upper) in enumerate(sets):
        worst = {name: max(map(written, row[lower : upper + 1])) for name, row in costs.items()}
        least = min(worst.values())
        assert decisions.action[i] == next(name for name in costs if worst[name] == least)
        assert decisions.worst_case[i] == float(least)


@given(cost_tables(), st.integers(0, 2**32))
def test_ties_go_to_the_least_mean_cost(drawn, seed):
    n_classes, costs = drawn
    costs = {name: [math.ceil(4 * written(cost)) for cost in row] for name, row in costs.items()}
    sets = all_intervals(n_classes)
    proba = np.random.default_rng(seed).multinomial(8, np.ones(n_classes) / n_classes, len(sets)) / 8
    decisions = sets.decide(costs, proba=proba)
    for i, (lower, upper) in enumerate(sets):
        worst = {name: max(row[lower : upper + 1]) for name, row in costs.items()}
        mean = {
            name: sum(map(Fraction.__mul__, map(Fraction, proba[i]), map(Fraction, costs[name])))
            for name in costs
        }
        tied = [name for name in costs if worst[name] == min(worst.values())]
        assert decisions.action[i] == min(tied, key=mean.get)  # the first of equal ones
        assert decisions.worst_case[i] == min(worst.values())


@given(cost_tables())
def test_the_cost_is_above_the_worst_case_on_a_miss_only(drawn):
    n_classes, costs = drawn
    sets = all_intervals(n_classes)
    decisions = sets.decide(costs)
    for y in range(n_classes):
        labels = np.full(len(sets), y)
        cost = decisions.cost(labels)
        assert cost.tolist() == [float(written(costs[name][y])) for name in decisions.action]
        assert not (cost > decisions.worst_case)[sets.contains(labels)].any()


def test_numbers_are_compared_as_they_are_written():
    """Costs can be nearer to each other than floats, and 32 bits of 0.1 are 0.1."""
    tiny = Fraction(1, 10**40)
    sets = IntervalSet([0], [1], range(2))
    assert sets.decide({"a": [1 + tiny, 0], "b": [0, 1]}).action.tolist() == ["b"]
    assert sets.decide({"a": [np.float32(0.1), 0], "b": [0.1, 0]}).action.tolist() == ["a"]
    assert sets.decide({"a": [0, "1/3"], "b": [0, 0.3333333333333333]}).action.tolist() == ["b"]


def test_means_of_large_costs_do_not_overflow():
    sets, large = IntervalSet([0], [1], range(2)), np.finfo(float).max
    costs = {"a": [large, large], "b": [large, -large]}
    assert sets.decide(costs, proba=[[0.500001, 0.500001]]).action.tolist() == ["b"]


# inputs

SETS = IntervalSet([0, 0, 1, 2, 0], [0, 1, 2, 2, 2], LABELS)
CHOSEN = ["wait", "refer", "treat", "treat", "refer"]
FRAME = pd.DataFrame(COSTS, index=LABELS).T
BESIDE = {"action": [*COSTS], **{label: [row[k] for row in COSTS.values()] for k, label in enumerate(LABELS)}}
FORMS = {
    "mapping": (COSTS, None),
    "pandas, actions as index": (FRAME, None),
    "pandas, actions in a column": (FRAME.reset_index(names="action"), None),
    "pandas, another order": (FRAME[["severe", "none", "mild"]], None),
    "polars": (pl.DataFrame(BESIDE), None),
    "arrow": (pa.table(BESIDE), None),
    "array": (np.array([*COSTS.values()]), [*COSTS]),
    "lists": ([*COSTS.values()], tuple(COSTS)),
    "tensor": (torch.tensor([*COSTS.values()]), [*COSTS]),
    "float32": (np.array([*COSTS.values()], np.float32), np.array([*COSTS])),
}


@pytest.mark.parametrize(("costs", "actions"), FORMS.values(), ids=FORMS)
def test_costs_come_in_many_forms(costs, actions):
    decisions = SETS.decide(costs, actions=actions)
    assert decisions.action.tolist() == CHOSEN
    assert decisions.worst_case.tolist() == [0, 2, 1, 0, 2]
    assert decisions.counts == {"treat": 2, "refer": 2, "wait": 1}


def test_columns_are_named_by_labels_that_are_numbers():
    frame = pd.DataFrame({"4": [0, 1], "3": [1, 0]}, index=["a", "b"])
    assert IntervalSet([0, 1], [0, 1], [3, 4]).decide(frame).action.tolist() == ["b", "a"]


@pytest.mark.parametrize("order", [LABELS, LABELS[::-1], ["mild", "severe", "none"]], ids=",".join)
def test_a_series_with_labels_is_read_by_its_labels(order):
    rows = {name: pd.Series(row, index=LABELS).loc[order] for name, row in COSTS.items()}
    assert SETS.decide(rows).action.tolist() == CHOSEN
    assert SETS.decide([*rows.values()], actions=[*rows]).action.tolist() == CHOSEN


P = [[0.5, 0.3, 0.2]] * 5
WRONG = {
    "no names": (
        [[1, 2, 3]],
        {},
        r"costs is a table without the names of the actions; pass them as actions=",
    ),
    "names twice": (COSTS, {"actions": ["a"]}, "costs names the actions already; leave out actions"),
    "few names": ([[1, 2, 3]], {"actions": ["a", "b"]}, "costs has 1 rows, but actions has 2 names"),
    "same names": ([[1, 2, 3]] * 2, {"actions": ["a", "a"]}, "Action 'a' is in costs more than once"),
    "a number as name": ({1: [1, 2, 3]}, {}, "The name of an action must be text; got 1"),
    "a blank name": ({" ": [1, 2, 3]}, {}, "The name of an action must be text; got ' '"),
    "a short row": ({"a": [1, 2]}, {}, r"Action 'a' has 2 costs, but there are 3 labels: \['none', 'mild', "),
    "a series with another index": (
        {"a": pd.Series([1, 2, 3], index=["none", "mild", "fatal"])},
        {},
        r"costs\['a'\] has the index none, mild, fatal, but the labels are none, mild, severe; if its costs",
    ),
    "text": (
        {"a": [1, "x", 2]},
        {},
        "The cost of action 'a' for label 'mild' must be a finite number; got 'x'",
    ),
    "NaN": ({"a": [1, 2, math.nan]}, {}, "The cost of action 'a' for label 'severe' must be a finite number"),
    "true": (
        {"a": [True, 2, 1]},
        {},
        "The cost of action 'a' for label 'none' must be a finite number; got True",
    ),
    "too large": (
        {"a": [1, "1e400", 2]},
        {},
        "The cost of action 'a' for label 'mild' is too large for a float",
    ),
    "nothing": ({}, {}, "costs has no action; give at least one"),
    "a number": (3, {}, "costs must be a sequence of numbers; got 3"),
    "a number as a row": ({"a": 3}, {}, r"costs\['a'\] must be a sequence of numbers; got 3"),
    "None": (None, {}, "costs must be a sequence of numbers; got None"),
    "no column": (
        FRAME[["none", "mild"]],
        {},
        "costs has no column for label 'severe': after the actions, the ",
    ),
    "another column": (FRAME.assign(fatal=1), {}, "costs has a column 'fatal', which is not a label"),
    "a column twice": (
        FRAME[["none", "mild", "mild", "severe"]],
        {},
        "costs has column 'mild' more than once",
    ),
    "an empty frame": (pd.DataFrame(), {}, "costs has no columns"),
    "a missing cost": (
        FRAME.astype(float).replace(9, math.nan),
        {},
        "'wait' for label 'severe' must be a finite",
    ),
    "a lazy frame": (pl.DataFrame(BESIDE).lazy(), {}, r"costs is a lazy frame; pass costs.collect\(\)"),
    "few rows": (COSTS, {"proba": P[:4]}, r"a row for each of the 5 sets .* got shape \(4, 3\)"),
    "few columns": (
        COSTS,
        {"proba": [[0.5, 0.5]] * 5},
        r"a column for each of the 3 labels; got shape \(5, 2\)",
    ),
    "not probabilities": (COSTS, {"proba": [*P[:4], [1, 1, 1]]}, "Row 4 of proba sums to 3, not to 1"),
    "NaN in proba": (
        COSTS,
        {"proba": [*P[:4], [1, 0, math.nan]]},
        "proba has a NaN value at row 4, column 2",
    ),
    "columns in another order": (
        COSTS,
        {"proba": pd.DataFrame(P, columns=LABELS[::-1])},
        "The columns of proba are in the order",
    ),
}


@pytest.mark.parametrize(("costs", "options", "said"), WRONG.values(), ids=WRONG)
def test_wrong_inputs_are_named(costs, options, said):
    with pytest.raises(ValueError, match=said):
        SETS.decide(costs, **options)


def test_wrong_labels_are_named():
    decisions = SETS.decide(COSTS)
    with pytest.raises(ValueError, match=r"y\[1\] is 'fatal', which is not one of the classes"):
        decisions.cost(["mild", "fatal", "mild", "mild", "mild"])
    with pytest.raises(ValueError, match=r"5 rows.*got shape"):
        decisions.cost(["mild"])


# the result


def test_rows_keep_their_index(draw):
    proba, y = draw(300, 3)
    controller = orisk.RiskController(alpha=0.2, classes=LABELS).calibrate(proba, np.array(LABELS)[y])
    names = pd.Index([f"case {i}" for i in range(20)], name="case")
    frame = pd.DataFrame(proba[:20], index=names)
    decisions = controller.predict_set(frame).decide(COSTS, proba=frame)
    table = decisions.to_pandas()
    assert table.index.equals(names)
    assert list(table.columns) == ["action", "worst_case"]
    assert table.action.tolist() == decisions.action.tolist()
    assert table.action.cat.categories.tolist() == [*COSTS]
    assert not table.action.cat.ordered
    polars = decisions.to_polars()
    assert polars.columns == ["case", "action", "worst_case"]
    assert polars["action"].dtype == pl.Enum([*COSTS])
    assert polars["worst_case"].to_list() == decisions.worst_case.tolist()
    with pytest.raises(ValueError, match="decisions in another order"):
        decisions.cost(pd.Series(["mild"] * 20, index=names[::-1]))
    with pytest.raises(ValueError, match="sets in another order"):
        controller.predict_set(frame).decide(COSTS, proba=frame[::-1])


def test_it_can_be_shown_copied_and_not_changed():
    costs = {"<b>wait</b>": [0, 2, 9], "treat": [3, 1, 0]}
    decisions = SETS.decide(costs)
    assert repr(decisions).splitlines()[:2] == [
        "Decisions for 5 rows: <b>wait</b> 2, treat 3",
        "  0  <b>wait</b>, worst case 0",
    ]
    assert "<b>wait" not in decisions._repr_html_()
    assert "&lt;b&gt;wait" in decisions._repr_html_()
    for again in (copy.deepcopy(decisions), pickle.loads(pickle.dumps(decisions))):
        assert str(again) == repr(again) == repr(decisions)
    for array in (decisions.action_index, decisions.worst_case, decisions.costs):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        decisions.worst_case = None
    many = IntervalSet([0] * 20, [1] * 20, LABELS).decide(COSTS)
    assert repr(many).splitlines()[-1] == "  ... 12 more"
    assert len(IntervalSet([], [], LABELS).decide(COSTS, proba=None)) == 0


def test_sets_on_a_device_are_decided_on_the_host(monkeypatch):
    take_for_a_device(monkeypatch)
    ends = (
        torch.tensor(each, device=DEVICE, dtype=torch.int32) for each in (SETS.lower_index, SETS.upper_index)
    )
    there = IntervalSet.of(*ends, SETS.classes)
    costs = {"a": [1, 0, 1], "b": [0, 1, 1], "c": [1, 1, 0]}
    expected = SETS.decide(costs, proba=P)
    found = there.decide(costs, proba=torch.tensor(P, dtype=torch.float64, device=DEVICE))
    assert found.action_index.tolist() == expected.action_index.tolist()
    assert isinstance(found.action_index, np.ndarray)


def test_lazy_sets_say_what_to_call(draw):
    da = pytest.importorskip("dask.array")
    proba, y = draw(300, 3)
    controller = orisk.RiskController(alpha=0.2, classes=LABELS).calibrate(proba, np.array(LABELS)[y])
    sets = controller.predict_set(da.from_array(proba, chunks=(100, 3)))
    with pytest.raises(AttributeError, match=r"not computed yet; call sets\.compute\(\)\.decide"):
        sets.decide(COSTS)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sets.nothing  # noqa: B018
    assert sets.compute().decide(COSTS).counts == controller.predict_set(proba).decide(COSTS).counts


# the bound


def costs_of_draws(alpha, n=99, n_draws=300, n_new=500):
    """Per calibration: the probability of a cost above the worst case, the mean cost, the mean worst case.

    Two labels, and probabilities that are right: every miss is of a single label, where the chosen action
    costs nothing if the label is right and the largest cost if it is wrong. No bound on the cost can be
    better than here. Labels of new rows are not drawn: their probabilities are known.
    """
    costs = {"wait": [0, 1], "treat": [1, 0], "refer": ["1/2", "1/2"]}
    rng, found = np.random.default_rng(0), []
    for _ in range(n_draws):
        p = rng.random(n)
        controller = orisk.RiskController(alpha=alpha, check=False)
        controller.calibrate(np.column_stack([1 - p, p]), (rng.random(n) < p).astype(int))
        p = rng.random(n_new)
        truth = np.column_stack([1 - p, p])
        decisions = controller.predict_set(truth).decide(costs)
        cost = np.column_stack([decisions.cost(np.full(n_new, y)) for y in (0, 1)])
        above = (cost > decisions.worst_case[:, None]) * truth
        found.append([above.sum(1).mean(), (cost * truth).sum(1).mean(), decisions.worst_case.mean()])
    found = np.array(found)
    return found, found.std(axis=0, ddof=1) / math.sqrt(n_draws)


ALPHA = 0.1


def test_the_cost_is_above_the_worst_case_with_probability_alpha_at_most():
    """300 draws of 99 rows put three standard errors near 0.005; here the probability is alpha itself."""
    found, error = costs_of_draws(ALPHA)
    above, cost, worst = found.mean(axis=0)
    assert ALPHA - 3 * error[0] < above < ALPHA + 3 * error[0] < ALPHA + 0.006
    assert cost <= worst + ALPHA * (1 - 0) + 3 * error[0]
    assert cost == pytest.approx(worst + above, abs=1e-9)  # the largest excess, at every miss


def test_a_tenth_more_would_be_seen():
    found, error = costs_of_draws(1.1 * ALPHA)
    above, cost, worst = found.mean(axis=0)
    assert above > ALPHA + 3 * error[0]
    assert cost > worst + ALPHA + 3 * error[0]


# files

FILE_COSTS = {"wait": ["0", "2", "10", "20.5"], "refer": ["2", "2", "2", "4"], "treat": ["9", "7", "2", "0"]}
HEADER = "action,0,1,2,3"
CSV = "\n".join([HEADER, *(",".join([name, *row]) for name, row in FILE_COSTS.items())])
N_ROWS = 200


@pytest.fixture
def files(here, draw):
    proba, y = draw(N_ROWS, 4, seed=5)
    proba = np.round(proba * 8) / 8 + 0.125  # many ties, in scores and in mean costs
    proba /= proba.sum(axis=1, keepdims=True)
    orisk.RiskController(alpha=0.2, check=False).calibrate(proba, y).save("cal.json")
    write_table(score_table(proba, y), "new.csv")
    (here / "costs.csv").write_text(CSV)
    sets = orisk.RiskController.load("cal.json").predict_set(proba)
    return sets.decide(FILE_COSTS, proba=proba)


def predict(*options, new="new.csv", out="sets.csv"):
    scores = ["--scores", "p0,p1,p2,p3", "--keep", "", "--no-drift-note"]
    return "predict", "cal.json", new, "-o", out, *scores, *options


WRITTEN = {kind: name for kind, name in NAMES.items() if kind != "arrow stream"}  # which goes to pipes only


@pytest.mark.parametrize("name", WRITTEN.values(), ids=WRITTEN)
def test_the_command_adds_what_decide_gives(name, files, here):
    succeeds(*predict("--actions", "costs.csv", "--prefix", "set_", out=name))
    rows = read_rows((here / name).read_bytes(), name)
    assert [*rows[0]] == ["set_lower", "set_upper", "set_size", "set_action", "set_worst_case"]
    assert [row["set_action"] for row in rows] == files.action.tolist()
    assert [float(row["set_worst_case"]) for row in rows] == files.worst_case.tolist()
    assert len({*files.action}) == 3


def test_actions_are_a_dictionary_without_an_order(files):
    succeeds(*predict("--actions", "costs.csv", out="sets.parquet"))
    kind = pa.parquet.read_schema("sets.parquet").field("action").type
    assert not kind.ordered
    assert kind.value_type == pa.string()
    assert pd.read_parquet("sets.parquet").action.cat.categories.tolist() == [*FILE_COSTS]


TABLE = pa.table(
    {"action": [*FILE_COSTS], **{str(k): [float(row[k]) for row in FILE_COSTS.values()] for k in range(4)}}
)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_the_table_of_costs_has_any_format_and_order_of_columns(name, files, here):
    write_table(TABLE.select([0, 4, 2, 3, 1]), f"costs-{name}")
    succeeds(*predict("--actions", f"costs-{name}"))
    rows = read_rows((here / "sets.csv").read_bytes(), "sets.csv")
    assert [row["action"] for row in rows] == files.action.tolist()


def test_decimal_commas_and_narrow_floats_are_what_is_written(files, here):
    (here / "a.csv").write_text("action;0;1;2;3\nwait;0,1;2;2;2\ntreat;0,3;0;0;0")
    narrow = TABLE.slice(0, 1).set_column(1, "0", pa.array([0.1], pa.float32()))
    write_table(narrow, "b.parquet")
    for name, most in (("a.csv", {0, 0.1, 0.3}), ("b.parquet", {0.1, 2, 10, 20.5})):
        succeeds(*predict("--actions", name, out="sets.parquet"))
        assert {*pd.read_parquet("sets.parquet").worst_case} == most


@pytest.mark.parametrize("actions", ["costs.csv", FILE_COSTS, TABLE], ids=["a path", "a mapping", "a table"])
@pytest.mark.parametrize("dask", [None, "local:1"])
def test_the_job_does_the_same_for_several_files(actions, dask, files, here):
    for part in range(2):
        shutil.copy("new.csv", f"new-{part}.csv")
    controller = orisk.RiskController.load("cal.json")
    found = orisk.jobs.predict(
        controller, "new-*.csv", "sets", actions=actions, scores="p0,p1,p2,p3", drift_note=False, dask=dask
    )
    assert found.n_rows == 2 * N_ROWS
    for part in range(2):
        rows = read_rows((here / f"sets/new-{part}.csv").read_bytes(), "sets.csv")
        assert [row["action"] for row in rows] == files.action.tolist()


def test_ties_go_by_the_recalibrated_probabilities(here, draw):
    proba, y = draw(300, 3)
    over = proba**3 / (proba**3).sum(axis=1, keepdims=True)
    recalibrator = orisk.Recalibrator("temperature", classes=range(3)).fit(over[:100], y[:100])
    controller = orisk.RiskController(alpha=0.1, recalibration=recalibrator, check=False)
    controller.calibrate(over[100:], y[100:])
    write_table(score_table(over, y), "new.csv")
    costs = {"a": [2, 0, 1], "b": [1, 1, 2]}  # equal worst cases of full sets; b is cheaper if p_0 > 1/2
    orisk.jobs.predict(controller, "new.csv", "sets.parquet", actions=costs, scores="p0,p1,p2")
    sets, found = controller.predict_set(over), pd.read_parquet("sets.parquet").action.tolist()
    assert found == sets.decide(costs, proba=controller.recalibration(over)).action.tolist()
    assert found != sets.decide(costs, proba=over).action.tolist()


WRONG_FILES = {
    "text": (CSV.replace("20.5", "x"), "row 1, column '3': 'x' is not a number; correct it."),
    "missing": (
        CSV.replace("refer,2,2,2,4", "refer,2,,2,4"),
        "row 2, column '1': the cost is missing; fill it in.",
    ),
    "no column": (
        CSV.replace("0,1,2,3", "0,1,2,4"),
        "has no column for label '3': after the actions, the columns are 0, 1, 2, 4; there must be one for "
        "each of the labels 0, 1, 2, 3.",
    ),
    "a name too many": (CSV.replace(HEADER, f"{HEADER},9"), None),
    "twice": (
        CSV.replace("refer", "wait"),
        "Action 'wait' is in costs more than once; name each action once.",
    ),
    "no name": (CSV.replace("refer", ""), "The name of an action must be text; got ''."),
    "no row": (f"{HEADER}\n", "costs has no action; give at least one."),
    "empty": ("", "is empty."),
}


@pytest.mark.parametrize(("text", "said"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_wrong_files_of_costs_are_named(text, said, files, here):
    (here / "costs.csv").write_text(text)
    line = refusal(1, *predict("--actions", "costs.csv"))
    assert line.startswith("costs.csv: ")
    assert said is None or line == f"costs.csv: {said}"
    assert not (here / "sets.csv").exists()


def test_a_file_of_costs_must_be_there_and_stay(files, here):
    assert refusal(2, *predict("--actions", "none.csv")) == "there is no file none.csv."
    assert refusal(2, *predict("--actions", "costs.csv", out="costs.csv")).startswith(
        "--out: costs.csv is read too, and would be lost"
    )
    controller, scores = orisk.RiskController.load("cal.json"), "p0,p1,p2,p3"
    with pytest.raises(FileNotFoundError, match=r"there is no file none\.csv"):
        orisk.jobs.predict(controller, "new.csv", "sets.csv", actions="none.csv", scores=scores)
    with pytest.raises(ValueError, match=r"costs\.csv: is read, and would be lost; choose another name"):
        orisk.jobs.predict(controller, "new.csv", "costs.csv", actions=here / "costs.csv", scores=scores)
    assert (here / "costs.csv").read_text() == CSV


def test_a_kept_column_can_be_in_the_way(files, here):
    frame = pd.read_csv("new.csv").assign(action="none")
    frame.to_csv("new.csv", index=False)
    command = ["predict", "cal.json", "new.csv", "-o", "sets.csv", "--scores", "p0,p1,p2,p3"]
    assert "already has a column 'action'" in refusal(1, *command, "--actions", "costs.csv")
    succeeds(*command)
