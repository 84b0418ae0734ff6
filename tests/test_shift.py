"""Likelihood ratios: near the truth where it is known, and never from a classifier that saw the row."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ordinalrisk import RiskController, metrics
from ordinalrisk.probabilities import from_cumulative
from ordinalrisk.shift import covariate_ratios, effective_rows, label_ratios

# covariate shift


def shifted(n_cal, n_new, seed=0):
    """Two features, the means of which move by 0.6 and -0.4: the ratio is exp(b x - |b|^2 / 2)."""
    rng = np.random.default_rng(seed)
    by = np.array([0.6, -0.4])
    X_cal, X_new = rng.normal(size=(n_cal, 2)), by + rng.normal(size=(n_new, 2))
    return X_cal, X_new, *(np.exp(X @ by - by @ by / 2) for X in (X_cal, X_new))


@pytest.mark.parametrize(("n_cal", "n_new"), [(20_000, 20_000), (30_000, 10_000), (10_000, 30_000)])
def test_ratios_converge_to_the_truth_in_both_samples(n_cal, n_new):
    X_cal, X_new, truth_cal, truth_new = shifted(n_cal, n_new)
    ratios_cal, ratios_new = covariate_ratios(X_cal, X_new)
    assert abs(np.log(ratios_cal / truth_cal)).mean() < 0.025
    assert abs(np.log(ratios_new / truth_new)).mean() < 0.025
    assert ratios_cal.mean() == pytest.approx(1, abs=1e-12)


def test_the_error_falls_with_the_number_of_rows():
    """By the square root of 16, of which at least half shows in means over six draws."""
    errors = []
    for n in (500, 8_000):
        draws = [shifted(n, n, seed) for seed in range(6)]
        errors.append(
            np.mean([abs(np.log(covariate_ratios(*draw[:2])[0] / draw[2])).mean() for draw in draws])
        )
    assert errors[1] < errors[0] / 2


def test_weighted_calibration_rows_have_the_means_of_new_rows():
    X_cal, X_new, _, _ = shifted(20_000, 20_000, seed=1)
    ratios, _ = covariate_ratios(X_cal, X_new)
    np.testing.assert_allclose(np.average(X_cal, axis=0, weights=ratios), X_new.mean(axis=0), atol=0.03)


def test_another_classifier_learns_another_shift():
    """Twice the spread: the logarithm of the ratio is 3/8 x^2 - log 2, which no linear model sees."""
    rng = np.random.default_rng(2)
    X_cal, X_new = rng.normal(0, 2, (20_000, 1)), rng.normal(0, 1, (20_000, 1))
    truth = 2 * np.exp(-3 / 8 * X_cal[:, 0] ** 2)
    quadratic = make_pipeline(PolynomialFeatures(2), LogisticRegression())
    near, _ = covariate_ratios(X_cal, X_new, classifier=quadratic)
    far, _ = covariate_ratios(X_cal, X_new)
    inner = abs(X_cal[:, 0]) < 3
    assert abs(np.log(near / truth))[inner].mean() < 0.05
    assert abs(np.log(far / truth))[inner].mean() > 0.4


class Memoriser(ClassifierMixin, BaseEstimator):
    """Certain of the rows that it was trained on, undecided about all others."""

    trained, asked = [], []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.known_ = {row[0]: label for row, label in zip(X.tolist(), y, strict=True)}
        self.trained.append({*self.known_})
        return self

    def predict_proba(self, X):
        self.asked.append([row[0] for row in X.tolist()])
        new = [0.999 if self.known_.get(row[0]) else 0.5 for row in X.tolist()]
        return np.array([[1 - q, q] for q in new])


def test_no_row_is_judged_by_a_classifier_that_saw_it():
    Memoriser.trained, Memoriser.asked = [], []
    X_cal, X_new = np.arange(40.0)[:, None], 100 + np.arange(20.0)[:, None]
    ratios_cal, ratios_new = covariate_ratios(X_cal, X_new, classifier=Memoriser(), folds=4)
    assert (ratios_cal == 1).all()
    assert (ratios_new == 1).all()
    everyone = {*X_cal[:, 0], *X_new[:, 0]}
    assert sorted(row for rows in Memoriser.asked for row in rows) == sorted(everyone)
    for trained, asked in zip(Memoriser.trained, Memoriser.asked, strict=True):
        assert trained == everyone - {*asked}
        assert len(asked) == 15


def test_folds_of_unequal_size_make_no_difference():
    """A classifier that knows only the shares of the samples gives ratios of 1, whatever those are."""
    rng = np.random.default_rng(0)
    for n_cal, n_new in [(7, 23), (23, 7), (9, 9)]:
        ratios = covariate_ratios(
            rng.normal(size=(n_cal, 2)), rng.normal(size=(n_new, 2)), classifier=DummyClassifier()
        )
        np.testing.assert_allclose(np.concatenate(ratios), 1, rtol=1e-12)


def test_the_seed_decides_and_the_classifier_stays_untrained():
    X_cal, X_new, _, _ = shifted(200, 200)
    classifier = LogisticRegression()
    first, again, other = (
        covariate_ratios(X_cal, X_new, classifier=classifier, random_state=seed)[0] for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert not hasattr(classifier, "coef_")


def test_frames_stay_frames_for_the_classifier():
    X_cal, X_new, _, _ = shifted(300, 300)
    frames = [pd.DataFrame(X, columns=["age", "dose"]) for X in (X_cal, X_new)]
    seen = []

    class Named(LogisticRegression):
        def fit(self, X, y):
            seen.append([*X.columns])
            return super().fit(X, y)

    by_frames = covariate_ratios(*frames, classifier=Named())
    by_arrays = covariate_ratios(X_cal.tolist(), X_new, classifier=LogisticRegression())
    np.testing.assert_allclose(by_frames[0], by_arrays[0], rtol=1e-12)  # sums depend on the memory's order
    np.testing.assert_allclose(by_frames[1], by_arrays[1], rtol=1e-12)
    assert seen == [["age", "dose"]] * 5
    with pytest.raises(
        ValueError, match=r"X_cal has the columns \['age', 'dose'\], but X_new has \['dose', 'age'\]"
    ):
        covariate_ratios(frames[0], frames[1][["dose", "age"]])


def test_a_few_rows_that_carry_most_of_the_weight_are_warned_of():
    rng = np.random.default_rng(0)
    X_cal, X_new = rng.normal(0, 1, (1000, 1)), rng.normal(2.5, 1, (1000, 1))
    with pytest.warns(
        UserWarning, match=r"The 1000 calibration rows count as \d[\d.]* rows: \d+ of them"
    ) as found:
        ratios, _ = covariate_ratios(X_cal, X_new)
    counted, half = map(float, re.findall(r"count as ([\d.]+) rows: (\d+)", str(found[0].message))[0])
    assert counted == pytest.approx(effective_rows(ratios), rel=0.005)
    largest = np.sort(ratios)[::-1]
    assert largest[: int(half)].sum() >= ratios.sum() / 2 > largest[: int(half) - 1].sum()
    assert found[0].filename == __file__


@pytest.mark.parametrize(
    ("X_cal", "X_new"),
    [
        (np.zeros((5, 2)), np.zeros((5, 3))),
        (np.zeros(5), np.zeros((5, 2))),
        (np.zeros((5, 2)), np.zeros((1, 2))),
        (np.zeros((0, 2)), np.zeros((5, 2))),
    ],
)
def test_tables_of_other_shapes(X_cal, X_new):
    with pytest.raises(ValueError, match=re.escape(f"got shapes {X_cal.shape} and {X_new.shape}.")):
        covariate_ratios(X_cal, X_new)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"classifier": LinearSVC()}, "has no predict_proba, but the ratios come from class probabilities"),
        ({"folds": 1}, "folds must be a whole number from 2 to the number of rows, 30; got 1"),
        ({"folds": 21}, "folds must be a whole number from 2 to the number of rows, 20; got 21"),
        ({"random_state": -1}, "random_state must be a whole number"),
        (
            {"classifier": DecisionTreeClassifier()},
            r"certain that X_(cal|new)\[\d+\] is a new row, so its ratio",
        ),
    ],
)
def test_covariate_ratios_say_what_is_wrong(more, message):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        covariate_ratios(rng.normal(size=(30, 2)), rng.normal(size=(20, 2)), **more)


def test_an_infinite_ratio_names_its_row():
    X_cal, X_new = np.zeros((10, 1)), np.zeros((10, 1))
    X_new[3] = X_new[8] = 1
    with pytest.raises(ValueError, match=r"certain that X_new\[3\] is a new row"):
        covariate_ratios(X_cal, X_new, classifier=DecisionTreeClassifier(), folds=10)


def test_samples_without_overlap():
    X_cal = np.zeros((10, 1))

    class Certain(DummyClassifier):
        def predict_proba(self, X):
            return np.tile([1.0, 0.0], (len(X), 1))

    with pytest.raises(ValueError, match="certain about every calibration row: X_cal and X_new do not"):
        covariate_ratios(X_cal, X_cal, classifier=Certain())


# effective rows


def test_effective_rows_by_hand():
    assert effective_rows([3, 3, 3]) == 3
    assert effective_rows([1, 2, 3]) == pytest.approx(36 / 14)
    assert effective_rows(pd.Series([0.0, 5.0, 0.0])) == 1
    assert effective_rows(np.array([1e300, 1e300])) == 2
    assert effective_rows([1e-300, 1e-300]) == 2


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([], "weights must have one number for each row; got an array of shape (0,)"),
        ([[1.0]], "weights must have one number for each row; got an array of shape (1, 1)"),
        (["a"], "weights must have one number for each row; got an array of shape (1,)"),
        ([1, -1, np.nan], "weights must be finite and not negative; weights[1] is -1.0."),
        ([1, np.inf], "weights must be finite and not negative; weights[1] is inf."),
        ([0, 0], "weights are all zero; at least one must be positive."),
    ],
)
def test_weights_that_are_none(weights, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        effective_rows(weights)


# label shift

CONFUSION = np.array([[50, 10, 0], [10, 80, 20], [0, 10, 20]])  # rows by prediction and truth


def population(counts):
    """Rows in such numbers by predicted and true label: probabilities and labels."""
    predicted, truth = np.nonzero(counts)
    times = counts[predicted, truth]
    proba = np.full((len(predicted), len(counts)), 0.2)
    proba[np.arange(len(predicted)), predicted] = 1 - 0.2 * (len(counts) - 1)
    return np.repeat(proba, times, axis=0), np.repeat(truth, times)


@pytest.mark.parametrize("ratios", [[1, 1, 1], [1.5, 0.9, 0.5], [0, 1, 2.5], [10 / 3, 0, 0]], ids=repr)
def test_label_ratios_of_whole_populations_are_exact(ratios):
    """New rows have the same confusion within each class, in shares that are ``ratios`` times the old."""
    proba_cal, y_cal = population(CONFUSION)
    proba_new, _ = population(np.rint(60 * CONFUSION * np.array(ratios)).astype(int))
    np.testing.assert_allclose(label_ratios(proba_cal, y_cal, proba_new), ratios, atol=1e-9)


def test_label_ratios_converge():
    rng = np.random.default_rng(0)
    rates = CONFUSION / CONFUSION.sum(axis=0)
    truth = np.array([0.2, 1.3, 1.0])
    p = np.array([0.3, 0.5, 0.2])
    truth /= p @ truth

    def drawn(shares, n):
        y = rng.choice(3, p=shares, size=n)
        return np.eye(3)[[rng.choice(3, p=rates[:, k]) for k in y]], y

    proba_cal, y_cal = drawn(p, 20_000)
    found = label_ratios(proba_cal, y_cal, drawn(p * truth, 20_000)[0])
    np.testing.assert_allclose(found, truth, atol=0.05)


def test_where_a_ratio_would_be_negative_least_squares_takes_its_place():
    """The plain solution is (2.5, -0.5); with the second held at 0, all new rows are of the first class."""
    proba_cal, y_cal = population(np.array([[40, 10], [10, 40]]))
    proba_new, _ = population(np.array([[95, 0], [5, 0]]))
    with pytest.warns(UserWarning, match="hardly show how the share of 1 has changed"):
        ratios = label_ratios(proba_cal, y_cal, proba_new)
    np.testing.assert_allclose(ratios, [2, 0], atol=1e-12)


def test_least_squares_that_is_not_negative_means_shares_that_add_up_to_one():
    proba_cal, y_cal = population(CONFUSION)
    proba_new, _ = population(np.diag([60, 0, 40]))
    with pytest.warns(UserWarning, match="hardly show"):
        ratios = label_ratios(proba_cal, y_cal, proba_new)
    assert (ratios >= 0).all()
    assert (ratios == 0).any()
    assert ratios @ np.bincount(y_cal) / len(y_cal) == pytest.approx(1, abs=1e-12)


@pytest.mark.filterwarnings("ignore:The predictions hardly show")
def test_labels_may_have_names():
    proba_cal, y_cal = population(CONFUSION)
    names = np.array(["low", "mid", "high"])
    plain = label_ratios(proba_cal, y_cal, proba_cal[:150])
    named = label_ratios(proba_cal.tolist(), names[y_cal], proba_cal[:150], classes=names)
    np.testing.assert_array_equal(named, plain)
    grades = pd.Categorical(names[y_cal], names, ordered=True)
    frame = pd.DataFrame(proba_cal, columns=names)
    np.testing.assert_array_equal(label_ratios(frame, pd.Series(grades), frame[:150]), plain)
    with pytest.raises(ValueError, match="columns of proba are in the order"):
        label_ratios(frame, pd.Series(grades), frame[["high", "mid", "low"]])


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[5, 1, 0], [1, 5, 0], [1, 1, 0]], "Class 'high' has no calibration row"),
        ([[5, 1, 1], [0, 0, 0], [1, 1, 5]], "Class 'mid' is predicted for no calibration row"),
        ([[4, 2, 1], [2, 1, 3], [4, 2, 1]], "confusion matrix of the calibration rows is singular"),
    ],
)
def test_classes_that_predictions_can_not_tell(counts, message):
    proba, y = population(np.array(counts))
    names = np.array(["low", "mid", "high"])
    with pytest.raises(ValueError, match=message):
        label_ratios(proba, names[y], proba, classes=names)


def test_label_ratios_say_what_is_wrong(draw):
    proba, y = draw(60, 3)
    with pytest.raises(ValueError, match="proba_cal has 3 columns, but proba_new has 4"):
        label_ratios(proba, y, draw(60, 4)[0])
    with pytest.raises(ValueError, match="proba_new must have shape"):
        label_ratios(proba, y, proba[0])
    with pytest.raises(ValueError, match="Row 0 of proba sums to 2"):
        label_ratios(proba, y, 2 * proba)
    with pytest.raises(ValueError, match=r"y_cal\[0\] is 7"):
        label_ratios(proba, [7, *y[1:]], proba)
    with pytest.raises(ValueError, match="y_cal must have one label for each of the 60 rows"):
        label_ratios(proba, y[1:], proba)


# what the ratios are for


def graded(n_rows, rng, second=0.0):
    """Grades of a first feature, with more noise the larger a second one is, and a model that ignores it."""
    X = rng.normal([0, second], size=(n_rows, 2))
    noise = np.where(X[:, 1] > 0.5, 1.6, 0.4)
    y = np.digitize(X[:, 0] + noise * rng.normal(size=n_rows), [-1, 0, 1])
    return X, from_cumulative(1 / (1 + np.exp(-3.4 * ([-1, 0, 1] - X[:, :1])))), y


def test_intervals_cover_new_rows_whose_features_have_shifted():
    """In means over 12 draws, whose standard error is below 0.003; without ratios far fewer are covered."""
    weighted, plain = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X_cal, proba, y = graded(2_000, rng)
        X_new, new, truth = graded(2_000, rng, second=1)
        ratios_cal, ratios_new = covariate_ratios(X_cal, X_new)
        controller = RiskController(alpha=0.2).calibrate(proba, y, sample_weight=ratios_cal)
        weighted.append(metrics.coverage(truth, controller.predict_set(new, sample_weight=ratios_new)))
        plain.append(metrics.coverage(truth, RiskController(alpha=0.2).calibrate(proba, y).predict_set(new)))
    assert abs(np.mean(weighted) - 0.8) < 0.012
    assert np.mean(plain) < 0.75


@pytest.mark.filterwarnings("ignore:The predictions hardly show")
def test_intervals_cover_new_rows_whose_classes_have_shifted():
    """In means over 12 draws, whose standard error is 0.004: the outer grades become rare."""
    weighted, plain = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        _, proba, y = graded(2_000, rng)
        _, drawn, grade = graded(6_000, rng)
        kept = rng.random(6_000) < np.array([0.02, 1, 1, 0.02])[grade]
        new, truth = drawn[kept], grade[kept]
        controller = RiskController(alpha=0.2).calibrate(proba, y, class_ratios=label_ratios(proba, y, new))
        weighted.append(metrics.coverage(truth, controller.predict_set(new)))
        plain.append(metrics.coverage(truth, RiskController(alpha=0.2).calibrate(proba, y).predict_set(new)))
    assert abs(np.mean(weighted) - 0.8) < 0.016
    assert np.mean(plain) > 0.84
