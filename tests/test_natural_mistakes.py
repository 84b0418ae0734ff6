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
from strategies import labels_drawn

import ordinalrisk as orisk
from ordinalrisk import CalibrationWarning, OrdinalRiskClassifier, RiskController, jobs, metrics
from ordinalrisk.probabilities import softmax

N, K = 600, 5
NAMES = ["very poor", "poor", "fair", "good", "very good"]
RNG = np.random.default_rng(0)


CENTRE = RNG.normal(2, 1.8, N)
LOGITS = -((np.arange(K) - CENTRE[:, None]) ** 2) / 2
PROBA = softmax(LOGITS)
Y = labels_drawn(PROBA, RNG)
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
    "columns in reverse order": (
        lambda: calibrate(PROBA[:, ::-1]),
        r"look as if they were in reverse order.* pass proba\[:, \[4, 3, 2, 1, 0\]\]",
    ),
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
        "columns of the scores look as if they were in alphabetical order: if they stood for 0, 1, 10, 11, 2",
    ),
    "columns moved by one": (
        lambda: calibrate(np.roll(PROBA, 1, axis=1)),
        "look as if they were moved to the right by one",
    ),
    "columns moved back by one": (
        lambda: calibrate(np.roll(PROBA, -1, axis=1)),
        "look as if they were moved to the left by one",
    ),
    "columns in no order": (lambda: calibrate(PROBA[:, [2, 4, 0, 3, 1]]), "in another order.*2, 4, 0, 3, 1"),
    "classes in reverse order": (
        lambda: calibrate(PROBA, TEXT, classes=NAMES[::-1]),
        "look as if they were in reverse order",
    ),
    "classes in alphabetical order, columns not": (
        lambda: calibrate(PROBA, TEXT, classes=sorted(NAMES)),
        "in another order: if they stood for 'very poor', 'poor', 'fair'.* classes are in alphabetical order"
        r".* pass `classes=\['very poor', 'poor', 'fair', .*\]`; if the classes are, pass proba\[:",
    ),
    "an ordered categorical in alphabetical order": (
        lambda: calibrate(PROBA, pd.Series(pd.Categorical(TEXT, ordered=True))),
        r"classes are in alphabetical order.* pass `classes=\['very poor', 'poor', 'fair', 'good', 'very",
    ),
    "a categorical without an order": (
        lambda: calibrate(PROBA, pd.Series(pd.Categorical(TEXT))),
        "is not one of the classes .* Name the labels in order with classes=",
    ),
    "labels from 1": (
        lambda: calibrate(y=Y + 1, classes=None),
        r"which is not one of the classes .* If your labels count from 1, pass classes=range\(1, 6\)\.",
    ),
    "a score column is missing": (
        lambda: calibrate(PROBA[:, :4] / PROBA[:, :4].sum(axis=1, keepdims=True), classes=None),
        "proba has 4 columns, but y has 5 labels: is a column missing?",
    ),
    "classes in a Python set": (
        lambda: calibrate(PROBA, TEXT, classes={*NAMES}),
        "classes must be a sequence of labels in order; got {",
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
    "scores and labels swapped": (
        lambda: calibrate(Y, PROBA),
        r"proba must have shape \(n_rows, n_classes\), one column for each class; got shape \(600,\)",
    ),
}


def wide_in_text_order():
    centre = RNG.normal(6, 4, N)
    proba = softmax(-((np.arange(12) - centre[:, None]) ** 2) / 2)
    return proba[:, np.argsort([str(k) for k in range(12)])], labels_drawn(proba, RNG)


# --- numbers on the wrong scale

WRONG_SCALE = {
    "percentages": (lambda: calibrate(PROBA * 100), "look like percentages; divide them by 100"),
    "logits": (lambda: calibrate(LOGITS), r"If these are logits, pass softmax\(logits\)"),
    "positive logits": (
        lambda: calibrate(LOGITS - LOGITS.min()),
        r"look like logits; pass softmax\(logits\)",
    ),
    "log-probabilities": (lambda: calibrate(np.log(PROBA)), r"negative value .* logits, pass softmax\(log"),
    "cumulative probabilities": (
        lambda: calibrate(PROBA.cumsum(axis=1)),
        r"look cumulative; pass from_cumulative\(proba\[:, :-1\]\)",
    ),
    "a sigmoid for each class": (
        lambda: calibrate(1 / (1 + np.exp(-LOGITS))),
        r"Row 0 of proba sums to 1\.\d+, not to 1: if these are scores to rescale, pass proba / proba.sum",
    ),
    "a softmax over the rows": (
        lambda: calibrate(np.exp(LOGITS) / np.exp(LOGITS).sum(axis=0)),
        r"its columns do; pass proba.T, or take the softmax of each row \(axis=1\)",
    ),
    "scores rounded to two digits": (
        lambda: calibrate(PROBA.round(2)),
        "sums to 0.99, not to 1: if these are scores to rescale, pass proba / proba.sum",
    ),
    "percentages without digits": (
        lambda: calibrate((PROBA * 100).round()),
        "sums to 99, not to 1: these look like counts or rounded percentages; pass proba / proba.sum",
    ),
    "percentages with one digit": (
        lambda: calibrate((PROBA * 100).round(1)),
        "sums to 100, not to 1: these look like counts or rounded percentages; pass proba / proba.sum",
    ),
    "votes": (
        lambda: calibrate((PROBA * 20).round() + 1),
        "these look like counts or rounded percentages; pass proba / proba.sum",
    ),
    "a row of zeros": (
        lambda: calibrate(np.where(np.arange(N)[:, None] == 7, 0, PROBA)),
        "Row 7 of proba sums to 0, not to 1: all its scores are 0; leave the row out",
    ),
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
        "the score of the true class is the smallest of the row, as for other classes there",
    ),
    "predictions of the model as labels": (
        lambda: calibrate(y=PROBA.argmax(axis=1)),
        "in 600 of 600 calibration rows.*or are the labels its own predictions",
    ),
    "rows that the model was trained on": (
        lambda: calibrate(softmax(9 * np.eye(K)[Y] + LOGITS), Y),
        "in 600 of 600 calibration rows. Was the model trained on these rows",
    ),
    "far too sure": (
        lambda: calibrate(CERTAIN_NOISE),
        "do follow the labels, but are far too sure of themselves or on another scale; recalibrate",
    ),
    "alpha in percent": (lambda: calibrate(alpha=10), "largest loss, B=1; got 10. .* for 5 % .* write 0.05"),
    "alpha with a percent sign": (lambda: calibrate(alpha="10%"), "got '10%'. Write 5 % as 0.05"),
    "a coverage as alpha": (
        lambda: calibrate(alpha=0.9),
        "not the coverage. For a coverage of 0.9 write `alpha=0.1`",
    ),
    "alpha 0": (lambda: calibrate(alpha=0), "alpha must lie strictly between 0 and the largest loss.* got 0"),
    "alpha 1": (lambda: calibrate(alpha=1), "alpha must lie strictly between 0 and the largest loss.* got 1"),
    "alpha in years, as a share": (
        lambda: calibrate(alpha=2, loss=orisk.DivergenceLoss(normalize=False), relative=True),
        "strictly between 0 and 1 with relative=True; got 2. It is a share of what could be lost",
    ),
    "alpha in years, loss as a share": (
        lambda: calibrate(alpha=2, loss=orisk.DivergenceLoss(positions=[18, 30, 45, 60, 75])),
        "largest loss, B=1; got 2. It has the units of the loss.*normalize=False keeps natural units",
    ),
    "a confidence as delta": (
        lambda: RiskController(delta=0.95),
        "for a confidence of 0.95 write `delta=0.05`",
    ),
    "delta in percent": (
        lambda: RiskController(delta=5),
        "delta must lie strictly between 0 and 1; got 5.* for a confidence of 95 % write 0.05",
    ),
    "a confidence in percent": (
        lambda: metrics.risk(Y, calibrated().predict_set(PROBA), confidence=95),
        "between 0 and 1; got 95",
    ),
    "a share above 1": (
        lambda: model(calibration_size=2.5).fit(X, Y),
        "calibration_size must be a share of the rows, .* or a number of rows, at least 1; got 2.5",
    ),
}

# --- arrays of the wrong shape or type

WRONG_SHAPE = {
    "transposed": (
        lambda: calibrate(PROBA.T),
        "If proba has a row for each class and a column for each entry of y, pass proba.T",
    ),
    "transposed, with classes": (
        lambda: calibrate(PROBA.T, TEXT, classes=NAMES),
        "600 columns, but there are 5 classes.* If proba has a column for each row of y, pass proba.T",
    ),
    "transposed, as many rows as classes": (
        lambda: calibrate(PROBA[:K].T, Y[:K]),
        r"Row 0 of proba sums to 0\.\d+, not to 1: its columns do; pass proba.T",
    ),
    "transposed new rows": (
        lambda: calibrated().predict_set(PROBA.T),
        "600 columns, but the calibration had 5 classes. If it has a row for each class, pass proba.T",
    ),
    "labels in a column": (lambda: calibrate(y=Y[:, None]), r"Pass its only column: y.ravel\(\)"),
    "labels in a frame": (lambda: calibrate(y=pd.DataFrame({"y": Y})), r"y.iloc\[:, 0\] for a pandas frame"),
    "one-hot labels": (lambda: calibrate(y=np.eye(K)[Y]), r"pass y.argmax\(axis=1\)"),
    "scores of one row": (lambda: calibrate(PROBA[0], Y[:1]), r"For one row pass \[proba\]"),
    "the positive class alone": (
        lambda: calibrate(PROBA[:, 1], Y > 2),
        r"np.column_stack\(\[1 - proba, proba\]\)",
    ),
    "the positive class in a column": (
        lambda: calibrate(PROBA[:, [1]], Y > 2),
        r"proba needs at least 2 columns, one for each class; got shape \(600, 1\)",
    ),
    "a list of matrices": (lambda: calibrate([PROBA, PROBA]), "must have shape .n_rows, n_classes."),
    "fewer labels than scores": (lambda: calibrate(y=Y[1:]), f"one label for each of the {N} rows"),
    "no rows": (lambda: calibrate(PROBA[:0], Y[:0]), r"proba has no rows; got shape \(0, 5\)"),
    "booleans for five classes": (
        lambda: calibrate(y=Y > 2),
        "y holds True and False, but there are 5 classes",
    ),
    "booleans of a list": (
        lambda: calibrate(y=pd.Series(list(Y > 2), dtype=object)),
        "y holds True and False, but there are 5 classes",
    ),
    "labels as text": (lambda: calibrate(y=Y.astype(str)), r"Did you mean \d\?"),
    "labels with halves": (lambda: calibrate(y=Y + 0.5), r"\d\.5, which is not one of the classes"),
    "a label missing": (
        lambda: calibrate(y=np.where(Y == 0, np.nan, Y)),
        "is nan, which is not one of the classes.* The label is missing: leave the row out",
    ),
    "no labels": (lambda: calibrate(y=None), "y is None; pass its values"),
    "a label spelt otherwise": (
        lambda: calibrate(y=np.char.title(TEXT), classes=NAMES),
        "Did you mean 'good'",
    ),
    "a score missing": (lambda: calibrate(np.where(PROBA[3, 2] == PROBA, np.nan, PROBA)), "row 3, column 2"),
    "row numbers among the scores": (
        lambda: calibrate(np.column_stack([np.arange(N), PROBA]), Y),
        "sums to 2, not to 1: leave out column 0, if its whole numbers are labels or row numbers",
    ),
    "labels among the scores": (
        lambda: calibrate(np.column_stack([PROBA, Y]), Y),
        "not to 1: leave out column 5, if its whole numbers are labels or row numbers",
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
    "features instead of scores": (
        lambda: calibrated().predict_set(X),
        r"proba needs at least 2 columns, one for each class; got shape \(600, 1\)",
    ),
    "scores of another model": (
        lambda: calibrated().predict_set(PROBA[:, :3]),
        "3 columns, but the calibration had 5",
    ),
    "new rows without groups": (
        lambda: RiskController(check=False).calibrate(PROBA, Y, groups=Y % 2).predict_set(PROBA),
        "calibration was made with groups, so predictions need groups= too",
    ),
    "a group never seen": (
        lambda: (
            RiskController(check=False).calibrate(PROBA, Y, groups=Y % 2).predict_set(PROBA, groups=Y + 7)
        ),
        r"a group without calibration rows \(.*\); calibrate with it, or pass unseen_groups=\"full\"",
    ),
    "patients as groups": (
        lambda: RiskController(check=False).calibrate(PROBA, Y, groups=np.arange(N) // 2),
        "one or two rows .* if they are patients .* pass them as `clusters` instead of `groups`",
    ),
    "true classes as groups": (
        lambda: RiskController().calibrate(PROBA, Y, groups=Y),
        "The groups look like the true classes: .* leave the groups out and pass `condition_on='label'`",
    ),
    "names of true classes as groups": (
        lambda: RiskController().calibrate(PROBA, Y, groups=TEXT),
        "The groups look like the true classes",
    ),
    "hospitals as clusters": (
        lambda: RiskController(check=False).calibrate(PROBA, Y, clusters=Y % 2),
        "needs at least 9 calibration clusters .* got 2, so every set is the full scale",
    ),
    "weights of classes as weights of rows": (
        lambda: RiskController().calibrate(PROBA, Y, sample_weight=[1, 1, 1, 2, 2]),
        r"sample_weight must have one weight for each of the 600 rows of proba; got shape \(5,\)",
    ),
    "condition_on a class": (lambda: RiskController(condition_on="class"), 'must be "label" or None'),
    "a loss of another library": (
        lambda: RiskController(loss="mae"),
        r"loss='mae' is not known; the names are \[",
    ),
    "a rule of another library": (
        lambda: RiskController(growth="greedy"),
        r"growth='greedy' is not known; the growth rules are \['frontier', 'adaptive', 'paper', 'rps'\]",
    ),
    "alpha without a class": (
        lambda: calibrate(alpha=dict.fromkeys(range(4), 0.1)),
        "alpha has no value for class 4",
    ),
    "a weight missing": (
        lambda: calibrate(loss=orisk.WeightedLoss([1, 1, 1, 2])),
        "WeightedLoss has 4 weights, but there are 5 classes",
    ),
    "weights by label": (
        lambda: orisk.WeightedLoss({0: 5, 1: 1, 2: 1, 3: 1}),
        "weights must be a sequence of numbers; got {0: 5, 1: 1, 2: 1, 3: 1}",
    ),
    "a ratio missing": (
        lambda: RiskController().calibrate(PROBA, Y, class_ratios={0: 2, 1: 1, 2: 1, 3: 1}),
        "class_ratios has no value for class 4; give each of the classes",
    ),
    "alpha for a class that is not there": (
        lambda: calibrate(alpha=dict.fromkeys(range(6), 0.1)),
        "alpha has 5, which is not one of the classes",
    ),
    "alpha in a list": (
        lambda: calibrate(alpha=[0.1, 0.2]),
        r"alpha must be a finite number; got \[0.1, 0.2\]",
    ),
    "weights in one number": (lambda: orisk.WeightedLoss(2), "weights must be a sequence of numbers; got 2"),
    "no weight at all": (
        lambda: calibrate(loss=orisk.WeightedLoss([0] * K)),
        "weights are all zero; give at least one class a positive weight",
    ),
    "a class of a loss instead of a loss": (
        lambda: calibrate(loss=orisk.WeightedLoss),
        r"loss must be a loss such as WeightedLoss\(\[1, 1, 2\]\)",
    ),
    "positions in falling order": (
        lambda: calibrate(loss=orisk.DivergenceLoss(positions=[75, 60, 45, 30, 18])),
        r"positions must increase strictly; positions\[0\] is 75, then 60",
    ),
    "likenesses instead of costs": (
        lambda: calibrate(loss=[[5 - abs(i - j) for j in range(K)] for i in range(K)]),
        "The cost table has 5 at row 0, column 0; the diagonal must be 0",
    ),
    "scores and labels instead of a controller": (
        lambda: orisk.alpha_for_size(PROBA, Y, 2),
        "controller must be a RiskController; got a ndarray",
    ),
    "a classifier instead of its controller": (
        lambda: orisk.alpha_for_singletons(model().fit(X, Y), X, 0.5),
        "must be a RiskController; got a OrdinalRiskClassifier. .* pass its controller_",
    ),
    "a report of a classifier": (
        lambda: orisk.report.summarise(model().fit(X, Y), X, Y),
        "must be a RiskController; got a OrdinalRiskClassifier. .* pass its controller_",
    ),
    "sets before labels": (
        lambda: metrics.class_coverage(calibrated().predict_set(PROBA), Y),
        "sets must be an IntervalSet; got a ndarray. Pass the labels first, then the sets",
    ),
    "a weight raised for a rare class": (
        lambda: calibrate(VAGUE, RARE, loss=orisk.WeightedLoss([20, 1, 1, 1, 1])),
        r"With these weights [\d.]+% of all rows together .*, with equal weights 9.*`relative=True`",
    ),
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
    "costs that fall again": (
        lambda: calibrate(loss=cost_table_of_the_wrong_side()),
        "Row 0 of the cost table decreases away",
    ),
    "a bound without delta": (lambda: RiskController(confidence_bound="dkw"), "give a delta too"),
    "alpha changed afterwards": (lambda: setattr(calibrated(), "alpha", 0.2), "pass alpha to predict_set"),
    "a model without probabilities": (
        lambda: OrdinalRiskClassifier(RidgeClassifier()).fit(X, Y),
        "has no predict_proba",
    ),
    "a model that is not trained": (
        lambda: OrdinalRiskClassifier(FrozenEstimator(LogisticRegression())).calibrate(X, Y),
        "LogisticRegression instance is not fitted yet",
    ),
    "calibrate before fit": (
        lambda: model().calibrate(X, Y),
        r"not fitted yet; call fit\(X, y\), or pass a trained model in a FrozenEstimator",
    ),
    "negative weights of rows": (
        lambda: RiskController().calibrate(PROBA, Y, sample_weight=-np.ones(N)),
        r"sample_weight\[0\] is -1.0; a weight is a likelihood ratio, finite and 0 or larger",
    ),
    "check for a number": (lambda: RiskController(check=1), "check must be True or False; got 1"),
}

# --- wrong files

CONTROLLER = RiskController(alpha=0.1, check=False)
COLUMNS = {"scores": "p0,p1,p2,p3,p4", "label": "grade", "classes": range(K)}
WRONG_FILE = {
    "no such file": (
        lambda folder: jobs.calibrate(CONTROLLER, folder / "scores.csv"),
        "there is no file .*scores",
    ),
    "an empty file": (
        lambda folder: jobs.calibrate(CONTROLLER, touched(folder / "scores.csv")),
        "scores.csv: is empty",
    ),
    "a calibration instead of scores": (
        lambda folder: jobs.calibrate(CONTROLLER, saved(folder / "cal.json")),
        "cal.json: row 1: can't be read as JSON",
    ),
    "scores instead of a calibration": (
        lambda folder: RiskController.load(csv(folder / "scores.csv")),
        "scores.csv is not a whole JSON file .* nothing was loaded",
    ),
    "any JSON instead of a calibration": (
        lambda folder: RiskController.load(other_json(folder / "any.json")),
        "any.json can't be loaded: field 'format' is None, not 'ordinalrisk calibration'",
    ),
    "scores without labels": (
        lambda folder: jobs.calibrate(CONTROLLER, csv(folder / "new.csv", y=None), label="grade"),
        r"no column 'grade' \(there are p0, p1, p2, p3, p4\); name the right one with `label`",
    ),
    "a label column that is not there": (
        lambda folder: jobs.calibrate(CONTROLLER, csv(folder / "scores.csv"), label="Grades"),
        r"there is no column 'Grades' \(there are .*grade\); name the right one with `label`",
    ),
    "columns in reverse order": (
        lambda folder: jobs.calibrate(
            RiskController(alpha=0.1),
            csv(folder / "scores.csv", PROBA[:, ::-1]),
            scores="p0,p1,p2,p3,p4",
            label="grade",
            classes=range(K),
        ),
        "look as if they were in reverse order",
    ),
    "percentages in a file": (
        lambda folder: jobs.calibrate(CONTROLLER, csv(folder / "scores.csv", PROBA * 100), **COLUMNS),
        "row 1: the scores sum to 100, not to 1. They look like percentages: `rescale=True` divides each row",
    ),
    "rounded percentages in a file": (
        lambda folder: jobs.calibrate(
            CONTROLLER, csv(folder / "scores.csv", (PROBA * 100).round()), **COLUMNS
        ),
        "They look like counts or rounded percentages: `rescale=True` divides each row",
    ),
    "a row of zeros in a file": (
        lambda folder: jobs.calibrate(
            CONTROLLER, csv(folder / "scores.csv", PROBA * (Y > 0)[:, None]), **COLUMNS
        ),
        "the scores sum to 0, not to 1. All scores of the row are 0: leave it out",
    ),
    "row numbers among the scores of a file": (
        lambda folder: jobs.calibrate(
            CONTROLLER, csv(folder / "scores.csv", np.column_stack([np.arange(N), PROBA[:, 1:]])), **COLUMNS
        ),
        "A column holds whole numbers: correct `scores` if it holds labels or row numbers",
    ),
    "probabilities as logits": (
        lambda folder: jobs.calibrate(CONTROLLER, csv(folder / "scores.csv"), logits=True, **COLUMNS),
        "the scores are probabilities, not logits: every row sums to 1; say `logits=False`",
    ),
    "the label among the scores": (
        lambda folder: jobs.calibrate(
            CONTROLLER, csv(folder / "scores.csv"), **COLUMNS | {"scores": "p0,p1,p2,p3,grade"}
        ),
        "column 'grade' can't be a score and the label; correct `scores`",
    ),
    "a test on the calibration rows": (
        lambda folder: jobs.evaluate(from_file(folder), folder / "scores.csv").verdict.text,
        "these are the rows of the calibration itself, which can't test it: take others",
    ),
    "logits in a file of probabilities": (
        lambda folder: jobs.calibrate(
            CONTROLLER, csv(folder / "scores.csv", LOGITS), label="grade", logits=False, classes=range(K)
        ),
        "is not a probability. If these are logits, add `logits=True`",
    ),
    "another model's file": (
        lambda folder: jobs.predict(
            from_file(folder),
            csv(folder / "new.csv", PROBA[:, :3], y=None, columns="abc"),
            folder / "out.csv",
        ),
        r"new.csv: there is no column 'p0' \(there are a, b, c\)",
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
    return jobs.calibrate(CONTROLLER, csv(folder / "scores.csv"), **COLUMNS)


# --- what can't be seen

UNSEEN = {
    "classes and columns in the same wrong order": (
        lambda: calibrate(PROBA[:, ALPHABETICAL], TEXT, classes=sorted(NAMES)),
        "Scores and labels fit each other; only a person knows the order of the names. Sets are wide then.",
    ),
    "a softmax of probabilities": (
        lambda: calibrate(softmax(PROBA)),
        "Scores that are too even are still no worse than the shares of the classes. Sets are wide then.",
    ),
    "rows that the model was trained on, if it did not learn them by heart": (
        lambda: calibrate(softmax(2 * np.eye(K)[Y] + LOGITS), Y),
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
    """By an error, or else by a warning about this calibration or the text of a verdict."""
    folder = [tmp_path] if call in [each for each, _ in WRONG_FILE.values()] else []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*folder)
        except ERRORS as error:
            said = str(error)
        else:
            said = " ".join([str(each.message) for each in caught] + [result] * isinstance(result, str))
            assert said, "nothing is said"
    assert re.search(message, said, re.DOTALL), said


@pytest.mark.parametrize(("call", "reason"), UNSEEN.values(), ids=UNSEEN.keys())
def test_what_can_not_be_seen_has_a_reason(call, reason):
    """No warning either: once one is possible, the mistake belongs to the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call()
    assert reason.endswith(".")


@pytest.mark.parametrize(
    "name", [name for name, (call, _) in WRONG_ORDER.items() if name.startswith("columns moved")]
)
def test_warnings_have_one_category(name):
    with pytest.warns(CalibrationWarning):
        WRONG_ORDER[name][0]()
