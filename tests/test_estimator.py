"""The scikit-learn meta-estimator: splitting, label order, routing, composition, and its guarantee."""

import math
import pickle
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import DivergenceLoss, OrdinalRiskClassifier, RiskController, WeightedLoss

pytestmark = UNCHECKED
SEVERITY = ["None", "Mild", "Moderate", "Severe"]


def ordinal_data(n_rows=400, seed=0, labels=None):
    """A latent severity cut into four grades, and two features of which one tells about it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2))
    grade = np.digitize(X[:, 0] + 0.6 * rng.normal(size=n_rows), [-1, 0, 1])
    return X, grade if labels is None else np.array(labels)[grade]


class PriorClassifier(ClassifierMixin, BaseEstimator):
    """Predicts the class shares it was trained on, and remembers the rows and metadata it was given."""

    def fit(self, X, y, sample_weight=None, note=None):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.prior_ = counts / counts.sum()
        self.trained_rows_, self.trained_labels_ = np.array(X)[:, 0], np.array(y)
        self.sample_weight_, self.note_ = sample_weight, note
        self.predicted_rows_ = []
        return self

    def predict_proba(self, X):
        self.predicted_rows_.append(np.array(X)[:, 0])
        return np.tile(self.prior_, (len(X), 1))

    def predict(self, X):
        return np.repeat(self.classes_[self.prior_.argmax()], len(X))


def numbered_rows(n_rows):
    """Features that number the rows, so that each row can be found again."""
    return np.arange(n_rows, dtype=float)[:, None]


# scikit-learn's contract


@FEW
@pytest.mark.filterwarnings("ignore:No .* row has the labels")
@parametrize_with_checks(
    [
        OrdinalRiskClassifier(inner)
        for inner in (
            LogisticRegression(),
            make_pipeline(StandardScaler(), LogisticRegression()),
            RandomForestClassifier(n_estimators=5, random_state=0),
        )
    ]
)
def test_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_accepts_missing_values_where_the_inner_estimator_does():
    X, y = ordinal_data()
    X[::7, 1] = np.nan
    model = OrdinalRiskClassifier(HistGradientBoostingClassifier(max_iter=5), random_state=0).fit(X, y)
    assert len(model.predict_set(X)) == len(X)
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert not OrdinalRiskClassifier(LogisticRegression()).__sklearn_tags__().input_tags.allow_nan


def test_parameters_are_stored_untouched():
    loss, classes = [[0, 1], [2, 0]], ("low", "high")
    model = OrdinalRiskClassifier(
        LogisticRegression(), loss=loss, classes=classes, alpha="1/5", random_state=0
    )
    X, y = ordinal_data(labels=["low", "low", "high", "high"])
    model.fit(X, y)
    assert model.loss is loss
    assert model.classes is classes
    assert model.alpha == "1/5"
    assert not hasattr(model.estimator, "coef_")


def test_clone_keeps_parameters_and_forgets_what_was_learned():
    model = OrdinalRiskClassifier(LogisticRegression(C=3), loss=DivergenceLoss(2), random_state=0)
    copy = clone(model.fit(*ordinal_data()))
    assert copy.loss == DivergenceLoss(2)
    assert copy.get_params()["estimator__C"] == 3
    assert not hasattr(copy, "controller_")


def test_pickle_predicts_the_same():
    X, y = ordinal_data()
    model = OrdinalRiskClassifier(LogisticRegression(), random_state=0).fit(X, y)
    assert pickle.loads(pickle.dumps(model)).predict_set(X) == model.predict_set(X)


def test_grid_search_over_its_own_and_the_inner_parameters():
    def smallness(model, X, y):
        return -model.predict_set(X).size.mean()

    grid = {
        "loss": ["coverage", DivergenceLoss(), WeightedLoss([1, 1, 2, 4])],
        "alpha": [0.05, 0.2],
        "estimator__C": [1e-4, 1.0],
    }
    search = GridSearchCV(
        OrdinalRiskClassifier(LogisticRegression(), random_state=0, check=False),
        grid,
        scoring=smallness,
        cv=3,
    ).fit(*ordinal_data())
    assert search.best_params_["alpha"] == 0.2
    assert len(set(np.round(search.cv_results_["mean_test_score"], 6))) > 4
    assert search.best_params_["estimator__C"] == search.best_estimator_.estimator_.C


def test_is_the_final_step_of_a_pipeline():
    X, y = ordinal_data()
    pipeline = make_pipeline(StandardScaler(), OrdinalRiskClassifier(LogisticRegression(), random_state=0))
    pipeline.fit(X, y)
    scaled = pipeline[:-1].transform(X)
    assert pipeline.score(X, y) == pipeline[-1].score(scaled, y)
    assert len(pipeline[-1].predict_set(scaled)) == len(X)


def test_wraps_a_pipeline_and_shows_its_feature_names():
    X, y = ordinal_data()
    frame = pd.DataFrame(X, columns=["age", "dose"])
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    model = OrdinalRiskClassifier(inner, random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["age", "dose"]
    assert model.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names"):
        model.predict_set(frame[["dose", "age"]])
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


def test_takes_polars_frames():
    X, y = ordinal_data()
    model = OrdinalRiskClassifier(LogisticRegression(), random_state=0)
    from_arrays = clone(model).fit(X, y).predict_set(X)
    frame = pl.DataFrame({"age": X[:, 0], "dose": X[:, 1]})
    assert model.fit(frame, pl.Series(y)).predict_set(frame) == from_arrays


# What fit does with the rows


@pytest.mark.parametrize(("size", "n_held_out"), [(0.25, 50), (0.07, 14), (0.9, 180), (1, 1), (30, 30)])
@FEW
@pytest.mark.filterwarnings("ignore:No calibration row has the labels")
def test_every_row_either_trains_or_calibrates(size, n_held_out):
    X, y = numbered_rows(200), np.arange(200) % 4
    model = OrdinalRiskClassifier(PriorClassifier(), calibration_size=size, random_state=0).fit(X, y)
    inner = model.estimator_
    (held_out,) = inner.predicted_rows_
    assert len(held_out) == model.controller_.risk_curve_.n_rows == n_held_out
    assert sorted([*inner.trained_rows_, *held_out]) == list(range(200))
    assert np.array_equal(inner.trained_labels_, y[inner.trained_rows_.astype(int)])


def held_out_rows(y, seed=0, clusters=None, **parameters):
    """The rows that fit calibrates with."""
    model = OrdinalRiskClassifier(PriorClassifier(), alpha=0.5, random_state=seed, **parameters)
    [held_out] = model.fit(numbered_rows(len(y)), y, clusters=clusters).estimator_.predicted_rows_
    return held_out.astype(int)


OPTIONS = [{}, {"delta": 0.1}, {"condition_on": "label"}, {"randomize": True}]


@pytest.mark.parametrize("clusters", [None, np.arange(200) // 2], ids=["rows", "clusters"])
def test_neither_labels_nor_options_decide_which_rows_are_held_out(clusters):
    labels = [np.arange(200) % 4, np.repeat([0, 1, 2, 3], [20, 60, 60, 60])]
    drawn = [held_out_rows(y, 3, clusters, **options) for y in labels for options in OPTIONS]
    assert all(np.array_equal(drawn[0], again) for again in drawn)
    assert not np.array_equal(drawn[0], held_out_rows(labels[0], 4, clusters))


@pytest.mark.filterwarnings("ignore:No calibration row has the labels")
def test_every_choice_of_held_out_rows_is_equally_likely():
    """Two of 6 rows, which are 15 choices: chi-squared exceeds 36.1 with probability 0.001."""
    choices = [held_out_rows([0, 0, 0, 1, 1, 1], seed, calibration_size=2) for seed in range(750)]
    _, times = np.unique(choices, axis=0, return_counts=True)
    assert len(times) == 15
    assert ((times - 50) ** 2 / 50).sum() < 36.1


@pytest.mark.filterwarnings("ignore:No .* row has the labels")
@pytest.mark.parametrize(("size", "n_held_out"), [(0.25, 2), (0.26, 3), (5, 5)])
def test_sizes_of_clusters_do_not_decide_how_many_are_held_out(size, n_held_out):
    for members in ([1] * 8, [1, 1, 1, 1, 1, 1, 1, 90], [30, 30, 30, 1, 1, 1, 1, 1]):
        clusters = np.repeat(np.arange(8), members)
        y = np.arange(sum(members)) % 2
        model = OrdinalRiskClassifier(PriorClassifier(), alpha=0.5, calibration_size=size, random_state=0)
        model.fit(numbered_rows(len(y)), y, clusters=clusters)
        assert len({*clusters[model.estimator_.predicted_rows_[0].astype(int)]}) == n_held_out
    with pytest.raises(ValueError, match="calibration_size=8 would hold out 8 of 8 clusters and leave none"):
        model.set_params(calibration_size=8).fit(numbered_rows(len(y)), y, clusters=clusters)


TRAINING = "the model gives them probability 0, and sets may miss nearly every new row with such a label"
CALIBRATION = "the calibration can't measure how often sets miss them"


@pytest.mark.parametrize(
    ("only_calibrate", "only_train", "messages"),
    [
        ("bc", "", [f"No training row has the labels ['b', 'c']: {TRAINING}."]),
        ("", "bc", [f"No calibration row has the labels ['b', 'c']: {CALIBRATION}."]),
        (
            "c",
            "b",
            [
                f"No training row has the labels ['c']: {TRAINING}.",
                f"No calibration row has the labels ['b']: {CALIBRATION}.",
            ],
        ),
        ("", "", []),
    ],
)
def test_labels_that_one_part_lacks_are_named(only_calibrate, only_train, messages):
    """The label e, which no row has, is never named."""
    y = np.array(["a", "d"] * 40)
    held_out = held_out_rows(np.arange(80) % 2)
    for labels, rows in ((only_calibrate, held_out), (only_train, np.setdiff1d(np.arange(80), held_out))):
        y[rows[: len(labels)]] = [*labels]
    model = OrdinalRiskClassifier(PriorClassifier(), alpha=0.5, classes=[*"abcde"], random_state=0)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model.fit(numbered_rows(80), y)
    remedy = " Add rows with these labels, or merge each of them with a neighbour."
    assert [str(each.message) for each in warned] == [message + remedy for message in messages]
    assert all(each.category is UserWarning and each.filename == __file__ for each in warned)
    proba = model.predict_ordered_proba(numbered_rows(1))[0]
    assert "".join(np.array([*"abcde"])[proba == 0]) == "".join(c for c in "bce" if c not in only_train)


@pytest.mark.filterwarnings("ignore:No .* row has the labels .2.:")
def test_class_with_one_row_trains_or_calibrates():
    y = np.array([0] * 40 + [1] * 40 + [2])
    trained = []
    for seed in range(40):
        model = OrdinalRiskClassifier(PriorClassifier(), random_state=seed).fit(numbered_rows(81), y)
        trained.append(Counter(model.estimator_.trained_labels_)[2])
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.predict_proba(numbered_rows(3)).shape == (3, 3)
        assert model.controller_.risk_curve_.n_rows == 21
    assert 20 < sum(trained) < 40


@pytest.mark.parametrize("size", [0, 0.0, 1.0, -3, 1.5, True, "half", None, float("nan")])
def test_calibration_size_must_be_a_share_or_a_number(size):
    model = OrdinalRiskClassifier(LogisticRegression(), calibration_size=size)
    with pytest.raises(ValueError, match=r"calibration_size must be .* between 0 and 1, .* at least 1; got"):
        model.fit(*ordinal_data())


@pytest.mark.parametrize(("size", "asked"), [(400, 400), (0.999, 400), (1000, 1000)])
def test_calibration_size_must_leave_rows_to_train_on(size, asked):
    with pytest.raises(ValueError, match=f"hold out {asked} of 400 rows and leave none for training"):
        OrdinalRiskClassifier(LogisticRegression(), calibration_size=size).fit(*ordinal_data())


# Models that are trained already


@pytest.fixture(scope="module")
def trained():
    return LogisticRegression().fit(*ordinal_data(seed=1))


@pytest.mark.parametrize("loss", ["coverage", WeightedLoss([1, 1, 2, 4]), DivergenceLoss()], ids=repr)
def test_frozen_estimator_is_a_controller_on_its_probabilities(trained, loss):
    X, y = ordinal_data(seed=2)
    X_new, _ = ordinal_data(seed=3)
    controller = RiskController(loss=loss, alpha=0.05).calibrate(trained.predict_proba(X), y)
    model = OrdinalRiskClassifier(FrozenEstimator(trained), loss=loss, alpha=0.05)
    assert model.calibrate(X, y) is model
    assert model.controller_.threshold_ == controller.threshold_
    assert model.controller_.data_blake3_ == controller.data_blake3_
    assert model.predict_set(X_new) == controller.predict_set(trained.predict_proba(X_new))
    assert model.predict_set(X_new, alpha=0.15) == controller.predict_set(
        trained.predict_proba(X_new), alpha=0.15
    )
    assert model.guarantee() == controller.guarantee()
    assert model.guarantee(0.15) == controller.guarantee(0.15)


def test_fit_calibrates_a_frozen_estimator_on_all_rows(trained):
    X, y = ordinal_data(seed=2)
    coefficients = trained.coef_.copy()
    fitted = OrdinalRiskClassifier(FrozenEstimator(trained)).fit(X, y, sample_weight=np.ones(len(y)))
    calibrated = OrdinalRiskClassifier(FrozenEstimator(trained)).calibrate(X, y)
    assert fitted.controller_.risk_curve_.n_rows == len(y)
    assert fitted.controller_.threshold_ == calibrated.controller_.threshold_
    assert np.array_equal(trained.coef_, coefficients)


def test_calibrate_after_fit_keeps_the_model():
    X, y = ordinal_data(labels=SEVERITY)
    X_other, y_other = ordinal_data(seed=2, labels=SEVERITY)
    ordered = pd.Series(pd.Categorical(y, SEVERITY, ordered=True))
    model = OrdinalRiskClassifier(LogisticRegression(), random_state=0).fit(X, ordered)
    inner = model.estimator_
    assert model.calibrate(X_other, y_other) is model
    assert model.estimator_ is inner
    assert model.controller_.risk_curve_.n_rows == len(X_other)
    assert model.controller_.classes_.tolist() == SEVERITY


def test_prediction_and_score_are_those_of_the_inner_model():
    X, y = ordinal_data(labels=SEVERITY)
    model = OrdinalRiskClassifier(LogisticRegression(), classes=SEVERITY, random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), model.estimator_.predict(X))
    assert model.score(X, y) == model.estimator_.score(X, y) > 0.5


def test_nothing_predicts_before_fit(trained):
    X, y = ordinal_data()
    untrained, uncalibrated = (
        OrdinalRiskClassifier(LogisticRegression()),
        OrdinalRiskClassifier(FrozenEstimator(trained)),
    )
    for model in (untrained, uncalibrated):
        for use in (model.predict, model.predict_proba, model.predict_ordered_proba, model.predict_set):
            with pytest.raises(NotFittedError, match="FrozenEstimator and call calibrate"):
                use(X)
        with pytest.raises(NotFittedError):
            model.guarantee()
    with pytest.raises(NotFittedError, match="call fit"):
        untrained.calibrate(X, y)
    with pytest.raises(NotFittedError, match="LogisticRegression"):
        OrdinalRiskClassifier(FrozenEstimator(LogisticRegression())).calibrate(X, y)


# The order of the labels


@pytest.mark.filterwarnings("ignore:The labels are text")
def test_default_order_is_the_sorted_one():
    X, y = ordinal_data(labels=SEVERITY)
    model = OrdinalRiskClassifier(LogisticRegression(), random_state=0).fit(X, y)
    assert model.classes_.tolist() == sorted(SEVERITY)
    assert np.array_equal(model.predict_proba(X), model.estimator_.predict_proba(X))


def given_order(y):
    return {"classes": SEVERITY}, y


def pandas_order(y):
    return {}, pd.Series(pd.Categorical(y, SEVERITY, ordered=True))


def polars_order(y):
    return {}, pl.Series(y, dtype=pl.Enum(SEVERITY))


@pytest.mark.parametrize("order", [given_order, pandas_order, polars_order])
def test_sets_follow_the_order_of_the_labels(order):
    X, grade = ordinal_data()
    numbered = OrdinalRiskClassifier(LogisticRegression(tol=1e-9), random_state=0).fit(X, grade)
    parameters, y = order(np.array(SEVERITY)[grade])
    model = clone(numbered).set_params(**parameters).fit(X, y)
    assert model.controller_.classes_.tolist() == SEVERITY
    assert np.array_equal(model.predict_set(X).mask(), numbered.predict_set(X).mask())
    assert np.mean(model.predict_set(X).contains(y)) > 0.8
    frozen = OrdinalRiskClassifier(FrozenEstimator(model.estimator_), **parameters).calibrate(X, y)
    assert frozen.predict_set(X).classes.tolist() == SEVERITY


def test_probabilities_stay_sorted_for_scikit_learns_scores():
    X, y = ordinal_data(labels=SEVERITY)
    model = OrdinalRiskClassifier(LogisticRegression(), classes=SEVERITY, random_state=0).fit(X, y)
    assert model.classes_.tolist() == sorted(SEVERITY)
    assert np.array_equal(model.predict_proba(X), model.estimator_.predict_proba(X))
    in_order = model.predict_ordered_proba(X)
    assert np.array_equal(in_order, model.predict_proba(X)[:, [sorted(SEVERITY).index(g) for g in SEVERITY]])
    assert model.controller_.predict_set(in_order) == model.predict_set(X)
    for name in ("neg_log_loss", "roc_auc_ovr"):
        score = get_scorer(name)
        assert score(model, X, y) == score(model.estimator_, X, y)


def test_text_in_alphabetical_order_is_warned_of():
    X, y = ordinal_data(labels=SEVERITY)
    model = OrdinalRiskClassifier(LogisticRegression(), random_state=0)
    with pytest.warns(UserWarning, match=r"alphabetical order: \['Mild', 'Moderate', .*classes="):
        model.fit(X, y)
    frozen = OrdinalRiskClassifier(FrozenEstimator(model.estimator_))
    with pytest.warns(UserWarning, match=r"alphabetical order: \['Mild', 'Moderate', .*classes="):
        frozen.calibrate(X, y)


@pytest.mark.filterwarnings("ignore:The labels are text")
def test_unordered_categories_bring_no_order():
    X, y = ordinal_data(labels=SEVERITY)
    model = OrdinalRiskClassifier(LogisticRegression(), random_state=0)
    assert model.fit(X, pd.Series(pd.Categorical(y, SEVERITY))).classes_.tolist() == sorted(SEVERITY)


@pytest.mark.parametrize("missing", [0, 2, 4])
def test_class_that_was_never_seen_has_probability_zero(missing):
    X, y = ordinal_data()
    classes = [*range(missing), 9, *range(missing, 4)]
    model = OrdinalRiskClassifier(LogisticRegression(), classes=classes, random_state=0).fit(X, y)
    proba = model.predict_proba(X)
    assert model.classes_.tolist() == [0, 1, 2, 3, 9]
    assert not proba[:, 4].any()
    assert np.array_equal(proba[:, :4], model.estimator_.predict_proba(X))
    assert model.predict_set(X).classes.tolist() == classes


@pytest.mark.filterwarnings("ignore:The labels are text")
def test_float32_probabilities_stay_float32():
    class Single(PriorClassifier):
        def predict_proba(self, X):
            return super().predict_proba(X).astype(np.float32)

    X, y = ordinal_data(labels=SEVERITY)
    for classes in (None, SEVERITY):
        model = OrdinalRiskClassifier(Single(), classes=classes, random_state=0).fit(X, y)
        assert model.predict_proba(X).dtype == np.float32
        assert len(model.predict_set(X)) == len(X)


# Bad input


class Untrainable(PriorClassifier):
    def fit(self, X, y, **metadata):
        raise AssertionError("trained before the parameters were checked")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 1}, "alpha must lie strictly between 0 and"),
        ({"alpha": "much"}, "alpha must be a finite number"),
        ({"loss": "hinge"}, "'coverage', 'divergence'"),
        ({"loss": WeightedLoss([1, 2])}, "2 weights, but there are 4 classes"),
        ({"growth": "moss"}, "'frontier'"),
        ({"classes": [0, 1, 2]}, r"is 3, which is not one of the classes \[0, 1, 2\]"),
        ({"classes": [0, 1, 2, 2]}, "distinct"),
        ({"classes": [0]}, "only one class"),
    ],
)
def test_parameters_are_checked_before_training(parameters, message):
    with pytest.raises(ValueError, match=message):
        OrdinalRiskClassifier(Untrainable(), **parameters).fit(*ordinal_data())


@pytest.mark.parametrize("wrap", [lambda model: model, FrozenEstimator], ids=["fit", "frozen"])
def test_inner_estimator_needs_probabilities(wrap):
    X, y = ordinal_data()
    model = OrdinalRiskClassifier(wrap(LinearSVC().fit(X, y)))
    with pytest.raises(ValueError, match=r"LinearSVC\(\) has no predict_proba.*CalibratedClassifierCV"):
        model.fit(X, y)


def test_classes_must_agree_with_an_ordered_y():
    X, y = ordinal_data(labels=SEVERITY)
    ordered = pd.Series(pd.Categorical(y, SEVERITY, ordered=True))
    with pytest.raises(ValueError, match="differ from the ordered categories of y"):
        OrdinalRiskClassifier(LogisticRegression(), classes=SEVERITY[::-1]).fit(X, ordered)


def test_model_with_a_class_outside_the_order(trained):
    X, y = ordinal_data()
    model = OrdinalRiskClassifier(FrozenEstimator(trained), classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"estimator.classes_\[3\] is 3, which is not one of the classes"):
        model.calibrate(X[y < 3], y[y < 3])


@pytest.mark.parametrize("missing", [None, pd.NA, 7])
def test_labels_that_cannot_be_sorted(missing):
    X, y = ordinal_data(labels=SEVERITY)
    y = y.astype(object)
    y[5] = missing
    with pytest.raises(ValueError, match=r"have types \['\w+', '\w+'\], which can't be sorted"):
        OrdinalRiskClassifier(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match=r"y\[5\] is .*, which is not one of the classes"):
        OrdinalRiskClassifier(LogisticRegression(), classes=SEVERITY).fit(X, y)


def test_failed_fit_leaves_the_fitted_model_as_it_was():
    X, y = ordinal_data()
    model = OrdinalRiskClassifier(LogisticRegression(), random_state=0).fit(X, y)
    before = model.predict_set(X)
    X_bad = np.where(np.arange(len(X))[:, None] == 7, np.nan, X)
    for seed in range(2):
        with pytest.raises(ValueError, match="NaN"):
            model.set_params(random_state=seed).fit(X_bad, y)
    with pytest.raises(ValueError, match="alpha"):
        model.set_params(alpha=2).calibrate(X, y)
    assert model.predict_set(X) == before


def test_too_few_rows_warn_and_give_full_sets():
    X, y = ordinal_data(40)
    model = OrdinalRiskClassifier(LogisticRegression(), alpha=0.05, random_state=0)
    with pytest.warns(UserWarning, match="needs at least 19 calibration rows .* got 10"):
        model.fit(X, y)
    assert (model.predict_set(X).size == 4).all()


# Metadata


def test_metadata_goes_to_the_inner_fit_cut_to_the_training_rows():
    X, y = numbered_rows(100), np.arange(100) % 4
    model = OrdinalRiskClassifier(PriorClassifier(), random_state=0)
    inner = model.fit(X, y, sample_weight=np.arange(100) / 7, note="as it is").estimator_
    assert np.array_equal(inner.sample_weight_, inner.trained_rows_ / 7)
    assert inner.note_ == "as it is"


def test_metadata_is_routed_to_what_requests_it():
    X, y = numbered_rows(100), np.arange(100) % 4
    weight = np.arange(100) / 7
    with sklearn.config_context(enable_metadata_routing=True):
        asking = PriorClassifier().set_fit_request(sample_weight="trust", note=False)
        inner = OrdinalRiskClassifier(asking, random_state=0).fit(X, y, trust=weight).estimator_
        assert np.array_equal(inner.sample_weight_, inner.trained_rows_ / 7)
        assert OrdinalRiskClassifier(asking, random_state=0).fit(X, y).estimator_.sample_weight_ is None
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            OrdinalRiskClassifier(PriorClassifier()).fit(X, y, sample_weight=weight)


def test_metadata_is_routed_through_cross_validation():
    X, y = numbered_rows(120), np.arange(120) % 4
    with sklearn.config_context(enable_metadata_routing=True):
        inner = PriorClassifier().set_fit_request(sample_weight=True)
        model = OrdinalRiskClassifier(inner, random_state=0).set_score_request(sample_weight=False)
        folds = cross_validate(
            model, X, y, cv=3, params={"sample_weight": np.arange(120) / 7}, return_estimator=True
        )
        for fitted in folds["estimator"]:
            assert np.array_equal(fitted.estimator_.sample_weight_, fitted.estimator_.trained_rows_ / 7)


def test_weights_are_routed_to_the_score():
    X, y = ordinal_data()
    weight = 1.0 + (y == 0)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=False)
        model = OrdinalRiskClassifier(inner, random_state=0).set_score_request(sample_weight=True)
        folds = cross_validate(
            model, X, y, cv=3, params={"sample_weight": weight}, return_estimator=True, return_indices=True
        )
    for fitted, test, score in zip(
        folds["estimator"], folds["indices"]["test"], folds["test_score"], strict=True
    ):
        assert score == fitted.score(X[test], y[test], sample_weight=weight[test])
        assert score != fitted.score(X[test], y[test])


# The guarantee


@pytest.mark.no_cover
@pytest.mark.parametrize(("loss", "alpha"), [("coverage", 0.1), ("divergence", 0.03)])
def test_expected_loss_on_fresh_rows_is_within_the_guarantee(loss, alpha):
    """Mean over 200 draws; three standard errors, about 0.006 and 0.002, are allowed on either side.

    Scores are continuous and single labels lose more than alpha, so the risk is at least alpha - 2 / 101.
    """
    risks = []
    for seed in range(200):
        model = OrdinalRiskClassifier(LogisticRegression(), loss=loss, alpha=alpha, random_state=seed)
        model.fit(*ordinal_data(400, seed=2 * seed))
        X_new, y_new = ordinal_data(1000, seed=2 * seed + 1)
        risks.append(orisk.metrics.risk(y_new, model.predict_set(X_new), loss))
    tolerance = 3 * np.std(risks) / np.sqrt(len(risks))
    assert alpha - 2 / 101 - tolerance < np.mean(risks) < alpha + tolerance
    assert tolerance < 0.08 * alpha


# guarantees past the average


def test_clusters_are_held_out_whole_and_calibrated_as_units():
    X, y = ordinal_data(300)
    X = np.column_stack([np.arange(300), X[:, 0]])
    patient = np.arange(300) // 3
    model = OrdinalRiskClassifier(PriorClassifier(), alpha=0.2, classes=range(4), random_state=1)
    model.fit(X, y, clusters=patient)
    [held_out] = model.estimator_.predicted_rows_
    trained = model.estimator_.trained_rows_
    assert not {*patient[trained.astype(int)]} & {*patient[held_out.astype(int)]}
    assert len(trained) + len(held_out) == 300
    assert abs(len(held_out) - 75) <= 3
    assert model.controller_.risk_curve_.n_rows == len({*patient[held_out.astype(int)]})
    assert model.guarantee().unit == "cluster"
    other = clone(model).set_params(random_state=2).fit(X, y, clusters=patient)
    assert not np.array_equal(other.estimator_.trained_rows_, trained)
    same = clone(model).fit(X, y, clusters=patient.astype(str).tolist())
    assert np.array_equal(same.estimator_.trained_rows_, trained)


BETTING = {"loss": "divergence", "delta": 0.1, "confidence_bound": "betting"}


@pytest.mark.parametrize(
    "options",
    [
        {"delta": 0.1},
        {"condition_on": "label"},
        {"delta": 0.1, "confidence_bound": "hoeffding_bentkus"},
        BETTING,
    ],
    ids=str,
)
def test_options_reach_the_controller(options):
    X, y = ordinal_data(400)
    model = OrdinalRiskClassifier(LogisticRegression(), alpha=0.1, random_state=0, **options).fit(X, y)
    held_out = held_out_rows(y)
    assert len(held_out) == 100
    proba = model.estimator_.predict_proba(X)
    seed = model.controller_.random_state
    expected = RiskController(alpha=0.1, random_state=seed, recalibration=model.recalibrator_, **options)
    expected.calibrate(proba[held_out], y[held_out])
    assert model.controller_.threshold_ == expected.threshold_ != math.inf
    assert model.predict_set(X) == expected.predict_set(proba)


@pytest.mark.parametrize("wrap", [clone, FrozenEstimator], ids=["fit", "frozen"])
def test_random_state_seeds_the_shuffle_behind_delta(trained, wrap):
    X, y = ordinal_data(400)

    def controller(random_state, **options):
        model = OrdinalRiskClassifier(wrap(trained), alpha=0.1, random_state=random_state, **options)
        return model.fit(X, y).controller_

    first, again, other = (controller(seed, **BETTING) for seed in (0, 0, 1))
    assert first.random_state == again.random_state != other.random_state
    assert first.threshold_ == again.threshold_ != other.threshold_
    one, two = (controller(np.random.RandomState(5), **BETTING) for _ in range(2))
    assert one.random_state == two.random_state
    assert controller(None, **BETTING).random_state is None
    assert controller(0).random_state is None


def test_groups_and_weights_reach_the_controller():
    X, y = ordinal_data(400)
    group = np.where(X[:, 1] > 0, "right", "left")
    fitted = OrdinalRiskClassifier(LogisticRegression(), alpha=0.2, random_state=0).fit(X, y, groups=group)
    assert {*fitted.controller_.threshold_} == {"left", "right"}
    assert fitted.predict_set(X, groups=group) == fitted.controller_.predict_set(
        fitted.predict_proba(X), groups=group
    )
    frozen = OrdinalRiskClassifier(FrozenEstimator(LogisticRegression().fit(X, y)), alpha=0.2)
    proba = frozen.calibrate(X, y).predict_proba(X)
    for at_calibration, new in (
        ({"sample_weight": np.exp(X[:, 0])}, {"sample_weight": np.exp(X[:, 0])}),
        ({"class_ratios": [1, 2, 3, 4]}, {}),
        ({"groups": group}, {"groups": group}),
    ):
        expected = RiskController(alpha=0.2).calibrate(proba, y, **at_calibration).predict_set(proba, **new)
        assert frozen.calibrate(X, y, **at_calibration).predict_set(X, **new) == expected
    assert frozen.fit(X, y, groups=group).controller_.threshold_ == frozen.controller_.threshold_


def test_randomized_sets_repeat_with_their_seed():
    X, y = ordinal_data(400)
    model = OrdinalRiskClassifier(PriorClassifier(), alpha=0.2, randomize=True, random_state=0).fit(X, y)
    assert model.predict_set(X, random_state=3) == model.predict_set(X, random_state=3)
    assert model.predict_set(X, random_state=3) != model.predict_set(X, random_state=4)
