"""Mistakes that people make: each has an error, a warning, or a reason why it can't be seen."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import ordinalrisk as orisk
from ordinalrisk import CalibrationWarning, OrdinalRiskClassifier, RiskController, jobs, metrics

N, K = 600, 5
NAMES = ["very poor", "poor", "fair", "good", "very good"]
RNG = np.random.default_rng(0)


def softmax(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


CENTRE = RNG.normal(2, 1.8, N)
LOGITS = -((np.arange(K) - CENTRE[:, None]) ** 2) / 2
PROBA = softmax(LOGITS)
Y = (PROBA.cumsum(axis=1)[:, :-1] < RNG.random((N, 1))).sum(axis=1)
TEXT = np.array(NAMES)[Y]
FRAME = pd.DataFrame(PROBA, columns=NAMES)
X = CENTRE[:, None]
BELOW_TOP, ABOVE_BOTTOM = Y < K - 1, Y > 0
ALPHABETICAL = np.argsort(NAMES)
SHARES = np.array([0.03, 0.07, 0.2, 0.4, 0.3])
RARE = RNG.choice(K, 3_000, p=SHARES)
VAGUE = softmax(np.log(SHARES) + np.outer(RARE + RNG.normal(0, 2, 3_000) - 2, np.arange(K) - 2) / 4)
CERTAIN_NOISE = softmax(12 * RNG.normal(size=(N, K)) + 6 * np.eye(K)[Y])
TOP_TWO = np.where(np.sort(PROBA)[:, [-2]] <= PROBA, PROBA, 0)


def calibrate(proba=PROBA, y=Y, **options):
    return RiskController(**{"alpha": 0.1} | options).calibrate(proba, y)


def calibrated(**options):
    return calibrate(check=False, **options)


def model(**options):
    return OrdinalRiskClassifier(LogisticRegression(), random_state=0, **options)


def csv(path, proba=PROBA, y=Y, columns=("p0", "p1", "p2", "p3", "p4"), label="grade"):
    frame = pd.DataFrame(proba, columns=list(columns))
    if y is not None:
        frame[label] = y
    frame.to_csv(path, index=False)
    return str(path)


def cost_table_of_the_wrong_side():
    costs = np.abs(np.subtract.outer(np.arange(K), np.arange(K))).astype(float)
    costs[0, 1:] = [4, 3, 2, 1]
    return costs.tolist()


# --- rows and columns in the wrong order

WRONG_ORDER = {
    "columns in reverse order": (lambda: calibrate(PROBA[:, ::-1]), "look as if they were in reverse order"),
    "columns in alphabetical order": (
        lambda: calibrate(PROBA[:, ALPHABETICAL], TEXT, classes=NAMES),
        r"in alphabetical order: if they stood for 'fair', 'good', .* pass proba\[:, \[4, 2, 0, 1, 3\]\]",
    ),
    "columns of a frame in alphabetical order": (
        lambda: calibrate(FRAME[sorted(NAMES)], TEXT, classes=NAMES),
        "columns of proba are in the order",
    ),
    "columns 10 before 2": (
        lambda: calibrate(*wide_in_text_order()),
        "in alphabetical order",
    ),
    "columns moved by one": (lambda: calibrate(np.roll(PROBA, 1, axis=1)), "moved to the right by one"),
    "columns moved back by one": (lambda: calibrate(np.roll(PROBA, -1, axis=1)), "moved to the left by one"),
    "columns in no order": (lambda: calibrate(PROBA[:, [2, 4, 0, 3, 1]]), "in another order.*2, 4, 0, 3, 1"),
    "classes in reverse order": (
        lambda: calibrate(PROBA, TEXT, classes=NAMES[::-1]),
        "look as if they were in reverse order",
    ),
    "classes in alphabetical order, columns not": (
        lambda: calibrate(PROBA, TEXT, classes=sorted(NAMES)),
        "in another order: if they stood for 'very poor', 'poor', 'fair'",
    ),
    "text labels without their order": (
        lambda: model().fit(X, TEXT),
        "The labels are text, so they are taken in alpha",
    ),
    "labels of shuffled rows": (
        lambda: calibrate(y=RNG.permutation(Y)),
        "no better than if the labels were shuffled",
    ),
    "labels sorted, scores not": (lambda: calibrate(y=np.sort(Y)), "no better than if the labels were shuff"),
    "labels with another index": (
        lambda: calibrate(FRAME, pd.Series(Y).sample(frac=1, random_state=0), classes=None),
        "index labels of proba in another order",
    ),
    "labels from 1 to K": (lambda: calibrate(y=Y + 1), r"is 5, which is not one of the classes"),
    "labels from 1, top class absent": (
        lambda: calibrate(PROBA[BELOW_TOP], Y[BELOW_TOP] + 1),
        "look one too high as if they counted from 1: no row has class 0, and with y - 1",
    ),
    "labels from 0, classes from 1": (
        lambda: calibrate(y=Y, classes=[1, 2, 3, 4, 5]),
        "is 0, which is not one of the classes",
    ),
    "labels from 0, classes from 1, bottom class absent": (
        lambda: calibrate(PROBA[ABOVE_BOTTOM], Y[ABOVE_BOTTOM], classes=[1, 2, 3, 4, 5]),
        r"look one too low: no row has class 5, and with y \+ 1",
    ),
    "positions instead of names": (
        lambda: calibrate(y=Y, classes=NAMES),
        r"If these are positions, pass np.array\(classes\)\[y\]",
    ),
    "scores and labels swapped": (lambda: calibrate(Y, PROBA), "proba must have shape"),
}


def wide_in_text_order():
    centre = RNG.normal(6, 4, N)
    proba = softmax(-((np.arange(12) - centre[:, None]) ** 2) / 2)
    y = (proba.cumsum(axis=1)[:, :-1] < RNG.random((N, 1))).sum(axis=1)
    return proba[:, np.argsort([str(k) for k in range(12)])], y


# --- numbers on the wrong scale

WRONG_SCALE = {
    "percentages": (lambda: calibrate(PROBA * 100), "look like percentages; divide them by 100"),
    "logits": (lambda: calibrate(LOGITS), r"If these are logits, pass softmax\(logits\)"),
    "positive logits": (lambda: calibrate(LOGITS - LOGITS.min()), "look like logits"),
    "log-probabilities": (lambda: calibrate(np.log(PROBA)), r"pass softmax\(logits\)"),
    "cumulative probabilities": (lambda: calibrate(PROBA.cumsum(axis=1)), "look cumulative"),
    "a sigmoid for each class": (lambda: calibrate(1 / (1 + np.exp(-LOGITS))), "sums to .* not to 1"),
    "scores rounded to two digits": (lambda: calibrate(PROBA.round(2)), "not to 1: if these are scores"),
    "hard predictions": (
        lambda: calibrate(np.eye(K)[PROBA.argmax(axis=1)]),
        "score of the true class is exactly 0",
    ),
    "missing tokens": (
        lambda: calibrate(TOP_TWO / TOP_TWO.sum(axis=1, keepdims=True)),
        "missing tokens of a language model",
    ),
    "missing tokens at a floor": (
        lambda: calibrate((TOP_TWO + 1e-4) / (TOP_TWO + 1e-4).sum(axis=1, keepdims=True)),
        "is the smallest of the row",
    ),
    "far too sure": (lambda: calibrate(CERTAIN_NOISE), "far too sure of themselves"),
    "alpha in percent": (lambda: calibrate(alpha=10), "alpha must lie .*between 0 and .*1"),
    "alpha with a percent sign": (lambda: calibrate(alpha="10%"), "got '10%'. Write 5 % as 0.05"),
    "a coverage as alpha": (
        lambda: calibrate(alpha=0.9),
        "not the coverage. For a coverage of 0.9 write alpha=0.1",
    ),
    "alpha 0": (lambda: calibrate(alpha=0), "between 0 and"),
    "alpha 1": (lambda: calibrate(alpha=1), "between 0 and"),
    "alpha in years, loss as a share": (
        lambda: calibrate(alpha=2, loss=orisk.DivergenceLoss(positions=[18, 30, 45, 60, 75])),
        "between 0 and the largest loss.*1",
    ),
    "a confidence as delta": (
        lambda: RiskController(delta=0.95),
        "for a confidence of 0.95 write delta=0.05",
    ),
    "delta in percent": (lambda: RiskController(delta=5), "delta"),
    "a confidence in percent": (
        lambda: metrics.risk(Y, calibrated().predict_set(PROBA), confidence=95),
        "between 0 and 1; got 95",
    ),
    "a share above 1": (lambda: model(calibration_size=2.5).fit(X, Y), "calibration_size"),
}

# --- arrays of the wrong shape or type

WRONG_SHAPE = {
    "transposed": (lambda: calibrate(PROBA.T), "pass proba.T"),
    "transposed, with classes": (lambda: calibrate(PROBA.T, TEXT, classes=NAMES), "pass proba.T"),
    "labels in a column": (lambda: calibrate(y=Y[:, None]), r"Pass its only column: y.ravel\(\)"),
    "labels in a frame": (lambda: calibrate(y=pd.DataFrame({"y": Y})), r"y.iloc\[:, 0\] for a pandas frame"),
    "one-hot labels": (lambda: calibrate(y=np.eye(K)[Y]), r"pass y.argmax\(axis=1\)"),
    "scores of one row": (lambda: calibrate(PROBA[0], Y[:1]), r"For one row pass \[proba\]"),
    "the positive class alone": (
        lambda: calibrate(PROBA[:, 1], Y > 2),
        r"np.column_stack\(\[1 - proba, proba\]\)",
    ),
    "the positive class in a column": (lambda: calibrate(PROBA[:, [1]], Y > 2), "needs at least 2 columns"),
    "a list of matrices": (lambda: calibrate([PROBA, PROBA]), "must have shape .n_rows, n_classes."),
    "fewer labels than scores": (lambda: calibrate(y=Y[1:]), f"one label for each of the {N} rows"),
    "no rows": (lambda: calibrate(PROBA[:0], Y[:0]), "has no rows"),
    "booleans for five classes": (
        lambda: calibrate(y=Y > 2),
        "y holds True and False, but there are 5 classes",
    ),
    "booleans of a list": (
        lambda: calibrate(y=pd.Series(list(Y > 2), dtype=object)),
        "y holds True and False, but there are 5 classes",
    ),
    "labels as text": (lambda: calibrate(y=Y.astype(str)), r"Did you mean \d\?"),
    "labels with halves": (lambda: calibrate(y=Y + 0.5), "which is not one of the classes"),
    "a label missing": (lambda: calibrate(y=np.where(Y == 0, np.nan, Y)), "The label is missing"),
    "a label spelt otherwise": (
        lambda: calibrate(y=np.char.title(TEXT), classes=NAMES),
        "Did you mean 'good'",
    ),
    "a score missing": (lambda: calibrate(np.where(PROBA[3, 2] == PROBA, np.nan, PROBA)), "row 3, column 2"),
    "row numbers among the scores": (
        lambda: calibrate(np.column_stack([np.arange(N), PROBA]), Y),
        "Row 1 of proba sums to",
    ),
    "fewer classes than columns": (
        lambda: calibrate(y=TEXT, classes=NAMES[1:]),
        "5 columns, but there are 4 cl",
    ),
    "labels only": (lambda: calibrate(Y), "must have shape .n_rows, n_classes."),
    "too few rows": (lambda: calibrate(PROBA[:15], Y[:15], alpha=0.05), "needs at least 19 calibration rows"),
}

# --- wrong options and wrong calls

WRONG_OPTION = {
    "fit": (lambda: RiskController().fit(PROBA, Y), "trains no model. Call calibrate"),
    "predict": (lambda: calibrated().predict(PROBA), r"call predict_set\(proba\)"),
    "predict before calibrate": (lambda: RiskController().predict_set(PROBA), "not calibrated yet"),
    "features instead of scores": (lambda: calibrated().predict_set(X), "needs at least 2 columns"),
    "scores of another model": (
        lambda: calibrated().predict_set(PROBA[:, :3]),
        "3 columns, but the calibration had 5",
    ),
    "new rows without groups": (
        lambda: RiskController(check=False).calibrate(PROBA, Y, groups=Y % 2).predict_set(PROBA),
        "groups",
    ),
    "a group never seen": (
        lambda: (
            RiskController(check=False).calibrate(PROBA, Y, groups=Y % 2).predict_set(PROBA, groups=Y + 7)
        ),
        "unseen_groups",
    ),
    "patients as groups": (
        lambda: RiskController(check=False).calibrate(PROBA, Y, groups=np.arange(N) // 2),
        "pass them as clusters= instead",
    ),
    "condition_on a class": (lambda: RiskController(condition_on="class"), 'must be "label" or None'),
    "a loss of another library": (lambda: RiskController(loss="mae"), "mae"),
    "a rule of another library": (lambda: RiskController(growth="greedy"), "greedy"),
    "alpha without a class": (
        lambda: calibrate(alpha=dict.fromkeys(range(4), 0.1)),
        "alpha has no value for class 4",
    ),
    "a weight missing": (lambda: calibrate(loss=orisk.WeightedLoss([1, 1, 1, 2])), "4"),
    "weights in one number": (lambda: orisk.WeightedLoss(2), "weights"),
    "no weight at all": (lambda: calibrate(loss=orisk.WeightedLoss([0] * K)), "weight"),
    "a raised weight that hurts": (
        lambda: calibrate(loss=orisk.WeightedLoss([1, 2, 3, 4, 5]), alpha=0.25, growth="adaptive"),
        "weights hurt classes that they should protect.*`relative=True`",
    ),
    "a rare class under weights": (
        lambda: calibrate(VAGUE, RARE, loss=orisk.WeightedLoss([5, 1, 1, 1, 1])),
        r"covered less than half as often as 1 - alpha = 0.9 .*`relative=True`.*`condition_on='label'`",
    ),
    "a rare class under coverage": (
        lambda: calibrate(VAGUE, RARE, alpha=0.25),
        "covered less than half as often as 1 - alpha = 0.75",
    ),
    "costs that fall again": (lambda: calibrate(loss=cost_table_of_the_wrong_side()), "void|decrease"),
    "a bound without delta": (lambda: RiskController(confidence_bound="dkw"), "give a delta too"),
    "alpha changed afterwards": (lambda: setattr(calibrated(), "alpha", 0.2), "pass alpha to predict_set"),
    "a model without probabilities": (
        lambda: OrdinalRiskClassifier(RidgeClassifier()).fit(X, Y),
        "has no predict_proba",
    ),
    "a model that is not trained": (
        lambda: OrdinalRiskClassifier(FrozenEstimator(LogisticRegression())).calibrate(X, Y),
        "not fitted",
    ),
    "calibrate before fit": (lambda: model().calibrate(X, Y), "FrozenEstimator"),
    "negative weights of rows": (
        lambda: RiskController().calibrate(PROBA, Y, sample_weight=-np.ones(N)),
        "sample_weight",
    ),
    "check for a number": (lambda: RiskController(check=1), "check must be True or False; got 1"),
}

# --- wrong files

CONTROLLER = RiskController(alpha=0.1, check=False)
WRONG_FILE = {
    "no such file": (lambda folder: jobs.calibrate(CONTROLLER, folder / "scores.csv"), "there is no file"),
    "an empty file": (
        lambda folder: jobs.calibrate(CONTROLLER, touched(folder / "scores.csv")),
        "scores.csv",
    ),
    "a calibration instead of scores": (
        lambda folder: jobs.calibrate(CONTROLLER, saved(folder / "cal.json")),
        "cal.json",
    ),
    "scores instead of a calibration": (
        lambda folder: RiskController.load(csv(folder / "scores.csv")),
        "scores.csv",
    ),
    "any JSON instead of a calibration": (
        lambda folder: RiskController.load(other_json(folder / "any.json")),
        "any.json",
    ),
    "scores without labels": (
        lambda folder: jobs.calibrate(CONTROLLER, csv(folder / "new.csv", y=None), label="grade"),
        "grade",
    ),
    "a label column that is not there": (
        lambda folder: jobs.calibrate(CONTROLLER, csv(folder / "scores.csv"), label="Grades"),
        "Grades",
    ),
    "columns in reverse order": (
        lambda folder: jobs.calibrate(
            RiskController(alpha=0.1),
            csv(folder / "scores.csv", PROBA[:, ::-1]),
            scores="p0,p1,p2,p3,p4",
            label="grade",
            classes=range(K),
        ),
        "in reverse order",
    ),
    "logits in a file of probabilities": (
        lambda folder: jobs.calibrate(
            CONTROLLER, csv(folder / "scores.csv", LOGITS), label="grade", logits=False, classes=range(K)
        ),
        "logits",
    ),
    "another model's file": (
        lambda folder: jobs.predict(
            from_file(folder),
            csv(folder / "new.csv", PROBA[:, :3], y=None, columns="abc"),
            folder / "out.csv",
        ),
        "p0",
    ),
}


def touched(path):
    path.write_text("")
    return path


def saved(path):
    calibrated().save(path)
    return path


def other_json(path):
    path.write_text(json.dumps({"model": "resnet"}))
    return path


def from_file(folder):
    columns = {"scores": "p0,p1,p2,p3,p4", "label": "grade", "classes": range(K)}
    return jobs.calibrate(CONTROLLER, csv(folder / "scores.csv"), **columns)


# --- what can't be seen

UNSEEN = {
    "classes and columns in the same wrong order": (
        lambda: calibrate(PROBA[:, ALPHABETICAL], TEXT, classes=sorted(NAMES)),
        "Scores and labels fit each other; only a person knows the order of the names. Sets are wide then.",
    ),
    "rows that the model was trained on": (
        lambda: calibrate(softmax(4 * np.eye(K)[Y] + LOGITS), Y),
        "Scores that are too good look like those of a good model. `evaluate` finds it on new rows.",
    ),
    "rows of one patient without clusters": (
        lambda: calibrate(np.repeat(PROBA, 2, axis=0), np.repeat(Y, 2)),
        "Equal rows may be different people with the same answers.",
    ),
    "alpha chosen on the calibration rows": (
        lambda: [calibrate(alpha=alpha) for alpha in (0.05, 0.1, 0.2)],
        "No calibration knows of the others. The documentation says so.",
    ),
    "a cost table with rows and columns swapped": (
        lambda: calibrate(
            loss=[[0, 1, 2, 3, 4], [1, 0, 1, 2, 3], [2, 1, 0, 1, 2], [3, 2, 1, 0, 1], [9, 7, 5, 3, 0]]
        ),
        "Both tables can be meant; the report and the command say the loss in words.",
    ),
    "a few wrong labels": (
        lambda: calibrate(y=np.where(np.arange(N) % 20 == 0, (Y + 2) % K, Y)),
        "Noise in labels looks like a less certain model, and the guarantee holds for such labels.",
    ),
    "two neighbouring columns swapped": (
        lambda: calibrate(PROBA[:, [0, 1, 2, 4, 3]]),
        "Scores are still far better than the shares; a model may well confuse neighbours.",
    ),
    "rows of another population": (
        lambda: calibrate(PROBA[Y > 1], Y[Y > 1]),
        "The population of new rows is not known. `monitor` and `evaluate` watch it.",
    ),
    "sets of wrong rows": (
        lambda: calibrated().predict_set(PROBA[::-1]),
        "New rows have no labels to compare with.",
    ),
}

SEEN = {
    f"{kind}: {name}": (call, message)
    for kind, mistakes in {
        "order": WRONG_ORDER,
        "scale": WRONG_SCALE,
        "shape": WRONG_SHAPE,
        "option": WRONG_OPTION,
        "file": WRONG_FILE,
    }.items()
    for name, (call, message) in mistakes.items()
}
ERRORS = (ValueError, AttributeError, FileNotFoundError, NotFittedError)


def test_there_are_many():
    assert len(SEEN) + len(UNSEEN) >= 60


@pytest.mark.parametrize(("call", "message"), SEEN.values(), ids=SEEN.keys())
def test_a_mistake_is_said(call, message, tmp_path):
    """An error, or else a warning about this calibration."""
    folder = [tmp_path] if call in [each for each, _ in WRONG_FILE.values()] else []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(*folder)
        except ERRORS as error:
            said = str(error)
        else:
            assert caught, "nothing is said"
            said = " ".join(str(each.message) for each in caught)
    print(said)
    assert re.search(message, said, re.DOTALL), said


@pytest.mark.parametrize(("call", "reason"), UNSEEN.values(), ids=UNSEEN.keys())
def test_what_can_not_be_seen_has_a_reason(call, reason):
    call()
    assert reason.endswith(".")


@pytest.mark.parametrize(
    "name", [name for name, (call, _) in WRONG_ORDER.items() if name.startswith("columns moved")]
)
def test_warnings_have_one_category(name):
    with pytest.warns(CalibrationWarning):
        WRONG_ORDER[name][0]()
