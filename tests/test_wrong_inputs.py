"""Every array that a public function takes is refused with a ValueError that names it, if it is wrong."""

import inspect
import re
from copy import deepcopy
from fractions import Fraction
from functools import cache, partial

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from matplotlib import pyplot
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import ordinalrisk as orisk
from ordinalrisk import (
    IntervalSet,
    OnlineRiskController,
    RiskController,
    metrics,
    plots,
    probabilities,
    shift,
)
from ordinalrisk.report import ReportSummary
from ordinalrisk.selection.compare import ranked

mpl.use("agg")

N, K = 60, 3
RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet([1, 2, 1], N)
Y = np.array([RNG.choice(K, p=p) for p in PROBA])
X = RNG.normal(size=(N, 2)) + Y[:, None]
NAMES = np.arange(N) % 6
WEIGHTS = np.resize([0.5, 1.5], N)
POINTS = PROBA.argmax(axis=1)
SETS = IntervalSet([0] * N, [1] * N, classes=range(K))
COMPARED = orisk.compare(PROBA, Y, losses={"coverage": "coverage"}, growths=["paper", "frontier"])


# arrays that are wrong, made of right ones


def as_objects(values, wrong):
    """The values in an array of objects, one of which is wrong."""
    array = np.array(values).astype(object)
    array.flat[1] = wrong
    return array


def masked(values):
    return np.ma.array(values, mask=np.arange(np.size(values)).reshape(np.shape(values)) == 1)


def with_na(values):
    return (pd.DataFrame if np.ndim(values) == 2 else pd.Series)(as_objects(values, pd.NA))


def sparse(values):
    return scipy.sparse.csr_matrix(np.atleast_2d(np.asarray(values, float)))


WRONG = {
    "None": lambda values: None,
    "text": lambda values: "label",
    "bytes": lambda values: b"label",
    "empty": lambda values: [],
    "0-d": lambda values: np.array(0.5),
    "dictionary": lambda values: {"label": values},
    "list inside": lambda values: as_objects(values, [1]),
    "None inside": lambda values: as_objects(values, None),
    "NA inside": with_na,
    "masked": masked,
    "sparse": sparse,
    "complex": lambda values: np.asarray(values).astype(complex),
    "complex inside": lambda values: as_objects(values, complex(np.ravel(values)[1])),
    "text inside": lambda values: as_objects(values, str(np.ravel(values)[1])),
    "bytes inside": lambda values: as_objects(values, str(np.ravel(values)[1]).encode()),
    "dates": lambda values: np.asarray(values).astype("M8[s]"),
}

# calls that are right: the public name, how it is called, and with which arguments


@cache
def controller(option=None):
    options = {} if option is None else {option: OPTIONS[option]}
    return RiskController(alpha=0.3).calibrate(PROBA, Y, **options)


@cache
def pointed():
    return RiskController(alpha=0.3, growth=GIVEN).calibrate(PROBA, Y, point_labels=POINTS)


@cache
def fitted():
    return orisk.OrdinalRiskClassifier(LogisticRegression(), alpha=0.3, random_state=0).fit(X, Y)


@cache
def joint():
    return orisk.JointController([RiskController(alpha=0.3)]).calibrate(PROBA, Y, groups=NAMES)


def triage(point="bayes"):
    return orisk.TriageController(alpha=0.5, delta=0.5, point=point)


def update_online(**arguments):
    online = OnlineRiskController(alpha=0.3)
    online.predict_set(PROBA)
    return online.update(**arguments)


def method(owner, name, *options):
    return lambda **arguments: getattr(owner(*options), name)(**arguments)


GIVEN = orisk.FrontierGrowth(point="given")
OPTIONS = {"groups": NAMES, "clusters": np.arange(N) // 2, "sample_weight": WEIGHTS}
ROWS = {"proba": PROBA, "y": Y}
NEW = {"proba": PROBA, "point_labels": POINTS}
HALVES = {"groups": np.arange(N) % 2}
OF_SETS = {"y": Y, "sets": SETS}
OF_METRICS = OF_SETS | {"groups": NAMES}
LOGITS = {"logits": PROBA[:, ::-1].cumsum(axis=1)[:, ::-1]}
CUMULATIVE = {"cumulative": PROBA.cumsum(axis=1)[:, :-1]}
TO_COMPARE = ROWS | {"clusters": OPTIONS["clusters"], "alphas": [0.3, 0.4]}
LOGPROBS = {"rows": [{"0": -1.0, "1": -2.0}] * 5, "classes": range(K)}
RULES = [getattr(orisk, name) for name in orisk.__all__ if name.endswith("Growth")]
CALLS = [
    ("RiskController.calibrate", RiskController(alpha=0.3, growth=GIVEN).calibrate, ROWS | NEW),
    *(
        ("RiskController.calibrate", RiskController(alpha=0.3).calibrate, ROWS | {option: right})
        for option, right in (OPTIONS | {"class_ratios": [0.5, 1.0, 1.0]}).items()
    ),
    (
        "RiskController.calibrate",
        partial(RiskController(alpha=0.3).calibrate, PROBA, Y, recalibrate="temperature"),
        {"recalibration_rows": np.arange(30)},
    ),
    (
        "RiskController.calibrate_batches",
        RiskController(alpha=0.3).calibrate_batches,
        {"batches": [(PROBA, Y)] * 2},
    ),
    ("RiskController.predict_set", method(pointed, "predict_set"), NEW),
    *(
        (
            "RiskController.predict_set",
            method(controller, "predict_set", option),
            {"proba": PROBA, option: OPTIONS[option]},
        )
        for option in ("groups", "sample_weight")
    ),
    ("OnlineRiskController.calibrate", OnlineRiskController(alpha=0.3, growth=GIVEN).calibrate, ROWS | NEW),
    ("OnlineRiskController.predict_set", OnlineRiskController(alpha=0.3, growth=GIVEN).predict_set, NEW),
    ("OnlineRiskController.replay", OnlineRiskController(alpha=0.3, growth=GIVEN).replay, ROWS | NEW),
    ("OnlineRiskController.update", update_online, {"y": Y, "rows": np.arange(N)}),
    (
        "RiskMonitor.update",
        lambda **arguments: orisk.RiskMonitor(alpha=0.5).update(**arguments),
        OF_SETS | {"clusters": OPTIONS["clusters"]},
    ),
    (
        "ScoreDrift.update",
        lambda **arguments: orisk.ScoreDrift(controller()).update(**arguments),
        {"proba": PROBA},
    ),
    *(
        (
            "OrdinalRiskClassifier.fit",
            lambda **arguments: clone(fitted()).fit(**arguments),
            {"X": X, "y": Y, option: right},
        )
        for option, right in {"groups": np.arange(N) % 2, "clusters": OPTIONS["clusters"]}.items()
    ),
    (
        "OrdinalRiskClassifier.calibrate",
        lambda **arguments: deepcopy(fitted()).calibrate(**arguments),
        {"X": X, "y": Y},
    ),
    ("Recalibrator.transform", orisk.Recalibrator("temperature").fit(PROBA, Y).transform, {"X": PROBA}),
    ("IntervalSet", IntervalSet, {"lower_index": [0] * N, "upper_index": [1] * N, "classes": range(K)}),
    ("CostTableLoss", orisk.CostTableLoss, {"table": 1 - np.eye(K)}),
    ("WeightedLoss", orisk.WeightedLoss, {"weights": [1, 2, 3]}),
    ("DivergenceLoss", orisk.DivergenceLoss, {"positions": [1, 2, 3]}),
    ("IntervalSet.contains", SETS.contains, {"y": Y}),
    ("IntervalSet.decide", partial(SETS.decide, {"treat": [3, 1, 0], "wait": [0, 2, 9]}), {"proba": PROBA}),
    (
        "JointController.calibrate",
        orisk.JointController([RiskController(alpha=0.3)]).calibrate,
        ROWS | HALVES,
    ),
    ("JointController.predict_set", method(joint, "predict_set"), {"proba": PROBA, "groups": NAMES}),
    ("TriageController.calibrate", triage("given").calibrate, ROWS | NEW),
    ("TriageController.calibrate", triage().calibrate, ROWS | HALVES),
    ("TriageController.decide", triage("given").calibrate(PROBA, Y, point_labels=POINTS).decide, NEW),
    (
        "TriageController.decide",
        triage().calibrate(PROBA, Y, **HALVES).decide,
        {"proba": PROBA} | HALVES,
    ),
    *(
        (
            "jobs.evaluate_arrays",
            lambda option=option, **arguments: orisk.jobs.evaluate_arrays(controller(option), **arguments),
            ROWS | {option: right},
        )
        for option, right in OPTIONS.items()
    ),
    *(
        (
            f"metrics.{name}",
            metric,
            {
                name: right
                for name, right in OF_METRICS.items()
                if name in inspect.signature(metric).parameters
            },
        )
        for name in metrics.__all__
        if inspect.isfunction(metric := getattr(metrics, name))
    ),
    *((f"{rule.__name__}.levels", rule(point="given").levels, NEW) for rule in RULES),
    ("alpha_for_size", lambda **new: orisk.alpha_for_size(pointed(), size=2, **new), NEW),
    ("alpha_for_singletons", lambda **new: orisk.alpha_for_singletons(pointed(), share=0.1, **new), NEW),
    ("compare", orisk.compare, TO_COMPARE),
    ("trade_off", orisk.trade_off, TO_COMPARE),
    ("ranked", ranked, {"comparisons": COMPARED}),
    ("weights_for_coverage", orisk.weights_for_coverage, ROWS | {"targets": [0.6] * K}),
    ("plots.plot_class_coverage", plots.plot_class_coverage, OF_SETS),
    ("plots.plot_intervals", plots.plot_intervals, OF_SETS | {"proba": PROBA, "rows": [0, 1, 2, 3]}),
    ("plots.plot_stratum_risks", partial(plots.plot_stratum_risks, loss="coverage"), OF_SETS | {"by": NAMES}),
    ("plots.plot_set_sizes", plots.plot_set_sizes, {"sets": SETS}),
    ("plots.plot_centroids", plots.plot_centroids, {"sets": SETS}),
    ("probabilities.softmax", probabilities.softmax, LOGITS),
    ("probabilities.min_shift", probabilities.min_shift, LOGITS),
    ("probabilities.from_cumulative_logits", probabilities.from_cumulative_logits, LOGITS),
    ("probabilities.from_cumulative", probabilities.from_cumulative, CUMULATIVE),
    ("probabilities.from_logprobs", probabilities.from_logprobs, LOGPROBS),
    *(
        (
            "report.ReportSummary.add",
            lambda option=option, **arguments: ReportSummary(controller(option)).add(**arguments),
            ROWS | {option: right},
        )
        for option, right in OPTIONS.items()
    ),
    ("shift.accepted_rows", partial(shift.accepted_rows, largest=2), {"weights": WEIGHTS}),
    ("shift.effective_rows", shift.effective_rows, {"weights": WEIGHTS}),
    ("shift.covariate_ratios", shift.covariate_ratios, {"X_cal": X, "X_new": X[::2] + 0.1}),
    ("shift.label_ratios", shift.label_ratios, {"proba_cal": PROBA, "y_cal": Y, "proba_new": PROBA}),
    ("splitting.split_rows", orisk.splitting.split_rows, {"n_or_y": Y, "clusters": NAMES}),
    (
        "splitting.split_folds",
        partial(orisk.splitting.split_folds, folds=2),
        {"n_rows": N, "clusters": NAMES},
    ),
]


# what is right too

NAMED = {"complex", "complex inside", "text inside", "bytes inside", "dates"}
WHOLE = {"None", "text", "bytes", "empty", "0-d", "dictionary"}
RIGHT = {
    **dict.fromkeys(["groups", "clusters", "by"], NAMED),  # names may be of any type
    "classes": {"text inside", "bytes inside", "dates", "None inside"},  # so may labels
    "n_or_y": {*WRONG} - WHOLE,  # only their number counts
    "n_rows": {"masked"},
    "comparisons": {"empty"},
    **dict.fromkeys(["X", "X_cal", "X_new"], {*WRONG} - WHOLE),  # a classifier has its own checks
    "alphas": {"text inside"},  # numbers may be written out
    "class_ratios": {"text inside"},
    "table": {"text inside"},
    "positions": {"text inside", "empty"},
    "targets": {"text inside", "None inside"},
}
OPTIONAL = {
    "RiskController.calibrate": {"groups", "clusters", "sample_weight", "class_ratios", "recalibration_rows"},
    "OrdinalRiskClassifier.fit": {"groups", "clusters"},
    "OnlineRiskController.update": {"rows"},
    "RiskMonitor.update": {"clusters"},
    "TriageController.calibrate": {"groups"},
    "JointController.calibrate": {"groups"},
    "IntervalSet.decide": {"proba"},
    "WeightedLoss": {"weights"},
    "DivergenceLoss": {"positions"},
    "plots.plot_intervals": {"y", "proba", "rows"},
    **{
        name: {"clusters"}
        for name in ("compare", "trade_off", "splitting.split_rows", "splitting.split_folds")
    },
}


def wrong_kinds(name, parameter):
    right = RIGHT.get(parameter, set())
    if parameter in OPTIONAL.get(name, ()):
        right = right | {"None"}
    if (name, parameter) == ("OrdinalRiskClassifier.fit", "y"):
        right = right | {"dates"}  # labels of any type, in their own order
    if (name, parameter) == ("JointController.calibrate", "groups"):
        right = right | {"dictionary"}  # columns by their names
    if (name, parameter) == ("WeightedLoss", "weights"):
        right = right | {"text inside"}
    return [kind for kind in WRONG if kind not in right]


def exists(kind, values):
    """Whether there is such an array: dates of dictionaries, say, are not."""
    try:
        WRONG[kind](values)
    except (TypeError, ValueError, IndexError):
        return False
    return True


CASES = [
    pytest.param(name, call, right, parameter, kind, id=f"{name}-{parameter}-{kind}")
    for name, call, right in CALLS
    for parameter in right
    for kind in wrong_kinds(name, parameter)
    if exists(kind, right[parameter])
]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.mark.parametrize(
    ("name", "call", "right"), CALLS, ids=[f"{name}-{[*right]}" for name, _, right in CALLS]
)
def test_the_right_arguments_are_accepted(name, call, right):
    call(**right)


@pytest.mark.parametrize(("name", "call", "right", "parameter", "kind"), CASES)
def test_a_wrong_array_is_a_value_error_that_names_it(name, call, right, parameter, kind):
    with pytest.raises(ValueError, match=r"\w") as raised:
        call(**right | {parameter: WRONG[kind](right[parameter])})
    own_words = "OrdinalRiskClassifier", "Recalibrator"  # scikit-learn's, and those of scores
    if not name.startswith(own_words) and parameter != "n_or_y":
        assert parameter.rstrip("s").lower() in str(raised.value).lower()


@pytest.mark.parametrize("count", [None, "x", "7", 1.5, 7.0, True, 0, -1, np.nan, [7], 1j], ids=repr)
@pytest.mark.parametrize("parameter", ["n_rows", "pending"])
@pytest.mark.parametrize("name", ["bound_after", "bound_over_any"])
def test_what_counts_no_rows_is_an_error(name, parameter, count):
    bound = getattr(OnlineRiskController(alpha=0.3, classes=range(K)), name)
    assert bound(np.int64(7), pending=np.uint8(2)) == bound(7, pending=2)
    with pytest.raises(ValueError, match=parameter):
        bound(**{"n_rows": 7, "pending": 2} | {parameter: count})


@pytest.mark.parametrize("count", [None, "x", 1.5, 7.0, True, 0, -3, np.nan, [7], 1j], ids=repr)
def test_what_counts_no_rows_to_split_is_an_error(count):
    with pytest.raises(ValueError, match="n_rows must be a whole number, at least 1"):
        orisk.splitting.split_folds(count, 2)


def documented_arrays():
    """``(name, parameter)`` for each array-like that the docstring of a public name has."""
    modules = {"": orisk, **{f"{n}.": m for n in orisk.__all__ if inspect.ismodule(m := getattr(orisk, n))}}
    for prefix, module in modules.items():
        for name in module.__all__:
            public = getattr(module, name)
            owned = vars(public) if inspect.isclass(public) else {}
            for path, each in {
                name: public,
                **{f"{name}.{own}": getattr(public, own) for own in owned},
            }.items():
                text = (
                    (inspect.getdoc(each) or "")
                    .partition("Parameters\n---")[2]
                    .partition("\nReturns\n")[0]
                    .partition("\nAttributes\n")[0]
                )
                if not any(part.startswith("_") for part in path.split(".")):
                    for names in re.findall(r"^(\w[\w, ]*) : .*array", text, re.MULTILINE):
                        yield from ((prefix + path, parameter) for parameter in names.split(", "))


ELSEWHERE = {
    **{
        f"OrdinalRiskClassifier.{name}": "the classifier has its own checks"
        for name in ("predict", "predict_proba", "predict_ordered_proba", "predict_set")
    },
    "Recalibrator.fit": "test_recalibration.py has its errors",
    "IntervalSet.to_pandas": "pandas has its own checks",
    "IntervalSet.to_polars": "polars has its own checks",
    "RiskCurve.from_steps": "it takes what a calibration made",
}


def test_every_array_of_the_reference_is_tested_here():
    tested = {(name, parameter) for name, _, right in CALLS for parameter in right}
    documented = [each for each in documented_arrays() if each[0] not in ELSEWHERE]
    assert len(documented) > 60
    assert [each for each in documented if each not in tested] == []


CURVE = orisk.RiskController(alpha=0.3).calibrate([[0.6, 0.4]] * 9, [0, 1, 0] * 3).risk_curve_
SETS = orisk.IntervalSet([0, 1], [0, 1], classes=[0, 1])
NUMBERS = {
    "no classes": (lambda: orisk.WeightedLoss().cost_table(None), "needs at least two classes; got None"),
    "no threshold": (lambda: CURVE.total_loss(None), "threshold must be a number; got None"),
    "a threshold that is NaN": (lambda: CURVE.risk(float("nan")), "threshold must be a number; got nan"),
    "a huge weight": (
        lambda: orisk.shift.accepted_rows([1.0], largest=10**400),
        "largest must be a positive number that a float can hold",
    ),
    "a confidence in percent": (
        lambda: orisk.metrics.mean_size(SETS, confidence=95),
        "between 0 and 1; got 95",
    ),
}


@pytest.mark.parametrize(("call", "message"), NUMBERS.values(), ids=NUMBERS.keys())
def test_a_wrong_number_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_confidence_may_be_a_fraction():
    third = Fraction(1, 3)
    assert orisk.metrics.mean_size(SETS, confidence=third) == orisk.metrics.mean_size(SETS, confidence=1 / 3)
