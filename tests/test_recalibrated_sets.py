"""A map from scores to probabilities: calibrations give the sets of its probabilities, and keep the promise.

A map must not have seen a calibration row. Tests of the promise have a companion that fits the map on the
calibration rows, and breaks it.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import ordinalrisk as orisk

METHODS = ["auto", "identity", "mixture", "temperature", "isotonic", "ordered_regression", "regression"]
SAVED = Path(__file__).parent / "saved" / "schema-7"


def shares_of(scores):
    return scores / scores.sum(axis=1, keepdims=True)


def too_sure(n, K=5, seed=0):
    """Scores that are too sure, and labels drawn from the right probabilities."""
    random = np.random.default_rng(seed)
    proba = random.dirichlet(np.ones(K), size=n)
    return shares_of(proba**3), (random.random((n, 1)) > proba[:, :-1].cumsum(axis=1)).sum(axis=1)


def judged(n, seed=0):
    """The scores of a judge for five levels, some of them 0, and labels on 9 levels."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 9, n)
    judge = np.exp(-((np.arange(5) - truth[:, None] / 2 + random.normal(0, 0.5, (n, 1))) ** 2) * 2)
    return shares_of(np.where(judge < 1e-2, 0, judge)), truth


SCORES, LABELS = too_sure(900)
FITTED = orisk.Recalibrator("temperature").fit(SCORES[:300], LABELS[:300])
CAL, NEW = (SCORES[300:600], LABELS[300:600]), SCORES[600:]


def with_map(**options):
    return orisk.RiskController(alpha=0.1, recalibration=FITTED, **options)


def same(one, other):
    return one.lower.tolist() == other.lower.tolist() and one.upper.tolist() == other.upper.tolist()


ON_SCALE = [(method, too_sure) for method in METHODS]
OFF_SCALE = [(method, judged) for method in METHODS[-2:]]


@pytest.mark.parametrize(("method", "scores"), ON_SCALE + OFF_SCALE)
def test_a_map_gives_the_sets_of_its_probabilities(method, scores):
    rows, y = scores(900)
    fitted = orisk.Recalibrator(method, classes=range(y.max() + 1)).fit(rows[:300], y[:300])
    raw = orisk.RiskController(alpha=0.1, recalibration=fitted).calibrate(rows[300:600], y[300:600])
    mended = orisk.RiskController(alpha=0.1, classes=range(y.max() + 1))
    mended.calibrate(fitted.transform(rows[300:600]), y[300:600])
    assert raw.threshold_ == mended.threshold_
    assert raw.data_blake3_ == mended.data_blake3_
    assert same(raw.predict_set(rows[600:]), mended.predict_set(fitted.transform(rows[600:])))


def parts_of(rows, y):
    return [(rows[start : start + 70], y[start : start + 70]) for start in range(0, len(y), 70)]


CONTAINERS = {
    "pandas": lambda rows: pd.DataFrame(rows),
    "torch": torch.tensor,
    "lists": lambda rows: rows.tolist(),
    "Fortran": np.asfortranarray,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_bits(container):
    made, plain = CONTAINERS[container], with_map().calibrate(*CAL)
    found = with_map().calibrate(made(CAL[0]), CAL[1])
    assert (found.threshold_, found.data_blake3_) == (plain.threshold_, plain.data_blake3_)
    assert same(found.predict_set(made(NEW)), plain.predict_set(NEW))


def test_batches_give_the_same_bits():
    plain, found = with_map().calibrate(*CAL), with_map().calibrate_batches(parts_of(*CAL))
    assert (found.threshold_, found.data_blake3_) == (plain.threshold_, plain.data_blake3_)
    sizes = [found.predict_set(rows).size for rows, _ in parts_of(NEW, NEW)]
    assert np.concatenate(sizes).tolist() == plain.predict_set(NEW).size.tolist()


@pytest.mark.filterwarnings("ignore:Sending large graph")
def test_dask_gives_the_same_bits():
    da = pytest.importorskip("dask.array")
    rows, y = judged(900)
    fitted = orisk.Recalibrator("regression", classes=range(9)).fit(rows[:300], y[:300])
    plain = orisk.RiskController(alpha=0.1, recalibration=fitted).calibrate(rows[300:600], y[300:600])
    found = orisk.RiskController(alpha=0.1, recalibration=fitted)
    found.calibrate(da.from_array(rows[300:600], (100, 5)), da.from_array(y[300:600], 100))
    assert found.threshold_ == plain.threshold_
    sets = found.predict_set(da.from_array(rows[600:], (70, 5))).compute()
    assert same(sets, plain.predict_set(rows[600:]))


@pytest.mark.parametrize("on_a_cluster", [False, True], ids=["stream", "cluster"])
def test_files_give_the_same_bits(on_a_cluster, request, tmp_path):
    dask = request.getfixturevalue("client") if on_a_cluster else None
    for part, rows in enumerate(np.split(np.arange(900), [300, 370, 600, 750])):
        frame = pd.DataFrame(SCORES[rows], columns=[f"p{k}" for k in range(5)])
        frame.assign(y=LABELS[rows]).to_parquet(tmp_path / f"{'new' if part > 2 else 'old'}{part}.parquet")
    how = {"dask": dask, "note": lambda sentence: None}
    columns = {"scores": "p0,p1,p2,p3,p4", "label": "y", "classes": range(5)}
    known = [str(tmp_path / f"old{part}.parquet") for part in (1, 2)]
    plain, found = with_map().calibrate(*CAL), orisk.jobs.calibrate(with_map(), known, **columns, **how)
    assert found.threshold_ == plain.threshold_
    if not on_a_cluster:  # where files are cut into parts, the fingerprint is made of theirs
        one = orisk.jobs.calibrate(with_map(), _whole(tmp_path), **columns, **how)
        assert one.data_blake3_ == plain.data_blake3_
    orisk.jobs.predict(found, str(tmp_path / "new*.parquet"), tmp_path / "sets", **how)
    written = pd.concat([pd.read_parquet(path) for path in sorted((tmp_path / "sets").glob("*.parquet"))])
    sets = plain.predict_set(NEW)
    assert written["lower"].tolist() == sets.lower.tolist()
    assert written["upper"].tolist() == sets.upper.tolist()


def _whole(folder):
    path = folder / "whole.parquet"
    frame = pd.DataFrame(CAL[0], columns=[f"p{k}" for k in range(5)]).assign(y=CAL[1])
    frame.to_parquet(path)
    return str(path)


def test_a_report_takes_the_scores_too():
    from ordinalrisk.report import summarise

    found = summarise(with_map().calibrate(*CAL), SCORES[600:], LABELS[600:])
    mended = orisk.RiskController(alpha=0.1).calibrate(FITTED.transform(CAL[0]), CAL[1])
    expected = summarise(mended, FITTED.transform(SCORES[600:]), LABELS[600:])
    assert found["stops"][found["start"]]["sizes"] == expected["stops"][expected["start"]]["sizes"]
    assert found["test"]["data_blake3"] == expected["test"]["data_blake3"]


def test_reports_and_views_name_the_map(tmp_path):
    """With the rows that it was fitted on, and that none of them may be a calibration row."""
    from ordinalrisk.report import render, summarise

    words = "temperature, fitted on 300 rows"
    controller, plain = with_map().calibrate(*CAL), orisk.RiskController(alpha=0.1).calibrate(*CAL)
    frame = pd.DataFrame(NEW, columns=[f"p{k}" for k in range(5)]).assign(y=LABELS[600:])
    frame.to_csv(tmp_path / "new.csv", index=False)
    for made, there in ((controller, True), (plain, False)):
        found = summarise(made, NEW, LABELS[600:])
        facts = {"method": "temperature", "scores": "probabilities", "rows": 300, "text": words}
        assert found["calibration"]["recalibration"] == (facts if there else None)
        sentence = f"Scores are recalibrated first: {words}, none of which may be a calibration row."
        assert (f"<dt>Map of the scores</dt><dd>{sentence}</dd>" in render(found)) == there
        assert (words in made._repr_html_().split("none of which")[0].split("Scores are")[0]) == there
        columns = {"scores": "p0,p1,p2,p3,p4", "label": "y", "note": lambda sentence: None}
        evaluation = orisk.jobs.evaluate(made, tmp_path / "new.csv", **columns).to_dict()
        assert evaluation["recalibration"] == (words if there else None)
    assert words in with_map()._repr_html_()


EXPECTED = json.loads((SAVED / "expected.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_a_saved_map_predicts_the_sets_of_then(name, tmp_path):
    expected, found = EXPECTED[name], orisk.RiskController.load(SAVED / f"{name}.json")
    found.save(tmp_path / "again.json")
    for each in (found, orisk.RiskController.load(tmp_path / "again.json")):
        sets = each.predict_set(expected["scores"])
        assert [threshold.hex() for threshold in each.thresholds_] == expected["thresholds"]
        assert sets.lower_index.tolist() == expected["lower"]
        assert sets.upper_index.tolist() == expected["upper"]
        assert each.guarantee().recalibration == f"{name.replace('_', ' ')}, fitted on 100 rows"


def test_the_guarantee_says_that_scores_are_recalibrated():
    words = " ".join(str(with_map().calibrate(*CAL).guarantee()).split())
    assert "Scores are recalibrated first: temperature, fitted on 300 rows, none of which may be" in words
    assert "recalibrated" not in str(orisk.RiskController(alpha=0.1).calibrate(*CAL).guarantee())
    assert "recalibration=temperature" in repr(with_map())


def test_classes_come_from_the_recalibrator():
    names = np.array(["none", "mild", "fair", "poor", "bad"])
    fitted = orisk.Recalibrator("temperature", classes=names).fit(SCORES[:300], names[LABELS[:300]])
    found = orisk.RiskController(alpha=0.1, recalibration=fitted).calibrate(CAL[0], names[CAL[1]])
    assert found.classes_.tolist() == names.tolist()


def test_wrong_scores_get_an_error():
    controller = with_map().calibrate(*CAL)
    with pytest.raises(ValueError, match="The scores have 4 columns, but the map was fitted on 5"):
        controller.predict_set(shares_of(NEW[:, :4]))
    with pytest.raises(
        ValueError, match=r"proba has a negative value at row 0, column 0.*If these are logits"
    ):
        controller.predict_set(np.log(NEW))
    with pytest.raises(ValueError, match="In batch 1: Row 0 of proba sums to 2"):
        with_map().calibrate_batches([CAL, (CAL[0] * 2, CAL[1])])


# the estimator, which fits the map on predictions of training rows


class Recording(LogisticRegression):
    """Records the rows that it is trained on and asked for; the first feature is the number of the row."""

    trained, asked = [], []

    def fit(self, X, y):
        self.trained.append({*X[:, 0].astype(int)})
        return super().fit(X[:, 1:], y)

    def predict_proba(self, X):
        self.asked.append({*X[:, 0].astype(int)})
        return super().predict_proba(X[:, 1:])


def features(n, seed=0):
    random = np.random.default_rng(seed)
    X = np.column_stack([np.arange(n), random.normal(size=(n, 2))])
    return X, np.digitize(X[:, 1] + random.normal(size=n), [-1, 0, 1])


@pytest.fixture
def recording():
    Recording.trained, Recording.asked = [], []
    return Recording()


def test_the_map_is_fitted_on_training_rows_that_the_model_was_not_trained_on(recording):
    X, y = features(200)
    patients = np.arange(200) // 4
    model = orisk.OrdinalRiskClassifier(recording, recalibrate="temperature", random_state=0)
    model.fit(X, y, clusters=patients)
    whole, *trained = recording.trained
    *asked, calibration = recording.asked
    assert len(trained) == len(asked) == 5
    assert whole | calibration == {*range(200)}
    assert not whole & calibration
    assert set.union(*asked) == whole
    for fold, rest in zip(asked, trained, strict=True):
        assert fold | rest == whole
        assert not {*patients[[*fold]]} & {*patients[[*rest]]}
    assert model.recalibrator_.recalibration_.n_rows == len(whole)
    assert model.controller_.recalibration == model.recalibrator_.recalibration_
    assert "temperature, fitted on" in str(model.guarantee())


def test_without_a_map_nothing_changes():
    X, y = features(200)
    X = X[:, 1:]
    plain, identity = (
        orisk.OrdinalRiskClassifier(LogisticRegression(), recalibrate=how, random_state=0).fit(X, y)
        for how in (None, "identity")
    )
    assert plain.recalibrator_ is None
    assert plain.controller_.recalibration is None
    assert plain.controller_.data_blake3_ == identity.controller_.data_blake3_
    assert plain.controller_.threshold_ == identity.controller_.threshold_
    assert same(plain.predict_set(X), identity.predict_set(X))


def test_another_calibration_keeps_the_map():
    X, y = features(300)
    X = X[:, 1:]
    model = orisk.OrdinalRiskClassifier(LogisticRegression(), recalibrate="regression", random_state=0)
    before = model.fit(X[:200], y[:200]).controller_.recalibration
    assert model.calibrate(X[200:], y[200:]).controller_.recalibration == before
    with pytest.raises(ValueError, match=r"The map was fitted for the classes \[0, .*; calibrate has \["):
        model.set_params(classes=sorted({*y.tolist()}, reverse=True)).calibrate(X[200:], y[200:])
    model.set_params(classes=None, recalibrate=None, growth="paper").calibrate(X[200:], y[200:])
    assert model.controller_.recalibration is None
    assert model.controller_.growth == orisk.PaperGrowth()


def test_the_default_recalibrates():
    X, y = features(300)
    model = orisk.OrdinalRiskClassifier(LogisticRegression(), random_state=0).fit(X[:, 1:], y)
    auto = orisk.OrdinalRiskClassifier(LogisticRegression(), recalibrate="auto", random_state=0)
    assert model.recalibrator_.recalibration_.n_rows == 225
    assert auto.fit(X[:, 1:], y).controller_.recalibration == model.controller_.recalibration
    assert same(model.predict_set(X[:, 1:]), auto.predict_set(X[:, 1:]))


class Fussy(LogisticRegression):
    """Can't be trained on fewer rows than this."""

    fewest = 0

    def fit(self, X, y):
        if len(y) < self.fewest:
            raise ValueError(f"{len(y)} rows are too few for me")
        return super().fit(X, y)


def lonely(n):
    """One row of a second class, which is a training row."""
    X, _ = features(n)
    y = np.zeros(n, int)
    y[-1] = 1
    return X[:, 1:], y


@pytest.mark.filterwarnings("ignore:No calibration row has the labels")
@pytest.mark.filterwarnings("ignore:.*calibration row", "ignore:Every set", "ignore:Sets hold")
class TestTheDefaultGoesWithoutAMap:
    """Where there can't be one, or where nobody has measured what it does."""

    def fitted(self, X, y, model=None, **how):
        how = {"random_state": 1, "calibration_size": 10, "alpha": 0.2, "check": False} | how
        clusters = how.pop("clusters", None)
        made = orisk.OrdinalRiskClassifier(model or LogisticRegression(), **how)
        return made.fit(X, y, clusters=clusters)

    @pytest.mark.parametrize(("n", "is_there"), [(39, False), (40, True)])
    def test_with_fewer_than_30_training_rows(self, n, is_there):
        X, y = features(n)
        default, asked = (self.fitted(X[:, 1:], y, **how) for how in ({}, {"recalibrate": "regression"}))
        assert (default.recalibrator_ is not None) == is_there
        assert (default.controller_.recalibration is not None) == is_there
        assert asked.recalibrator_.recalibration_.n_rows == n - 10

    def test_with_fewer_than_30_clusters(self):
        X, y = features(200)
        few, many = np.arange(200) // 6, np.arange(200) // 5
        assert self.fitted(X[:, 1:], y, clusters=few, calibration_size=5).recalibrator_ is None
        assert self.fitted(X[:, 1:], y, clusters=many, calibration_size=5).recalibrator_ is not None
        with pytest.raises(ValueError, match="folds must be a whole number from 2 to the number of clusters"):
            self.fitted(
                X[:, 1:], y, clusters=np.arange(200) // 50, calibration_size=1, recalibrate="temperature"
            )

    def test_where_a_fold_would_leave_one_class(self):
        X, y = lonely(80)
        plain = self.fitted(X, y, recalibrate=None)
        default = self.fitted(X, y)
        assert default.recalibrator_ is None
        assert default.controller_.data_blake3_ == plain.controller_.data_blake3_
        with pytest.raises(ValueError, match=r"all training rows have the label 0, so no model.*Add rows"):
            self.fitted(X, y, recalibrate="regression")
        with pytest.raises(ValueError, match="all training rows have the label 0, so no model"):
            self.fitted(X, y, growth="auto")

    def test_where_the_model_fails_without_a_fold(self):
        X, y = features(100)
        model = Fussy()
        Fussy.fewest = 80
        with pytest.warns(orisk.CalibrationWarning, match=r"not recalibrated.*72 rows are too few for me.*"):
            default = self.fitted(X[:, 1:], y, model)
        assert default.recalibrator_ is None
        with pytest.raises(ValueError, match="72 rows are too few for me"):
            self.fitted(X[:, 1:], y, model, recalibrate=orisk.Recalibrator())
        Fussy.fewest = 95
        with pytest.raises(ValueError, match="90 rows are too few for me"):
            self.fitted(X[:, 1:], y, model)

    def test_and_still_chooses_a_growth_rule(self):
        X, y = features(39)
        found = self.fitted(X[:, 1:], y, growth="auto")
        assert found.recalibrator_ is None
        assert found.growth_sizes_.keys() >= {"frontier", "rps"}


@pytest.mark.filterwarnings("ignore:No .* row has the labels")
@pytest.mark.parametrize("forest", [False, True], ids=["regression", "forest"])
def test_rare_classes_are_safe(forest):
    """A class of one row is unknown to the model that predicts it, and a forest gives exact zeros."""
    from sklearn.ensemble import RandomForestClassifier

    inner = RandomForestClassifier(10, random_state=0) if forest else LogisticRegression()
    for seed in range(3):
        X, y = features(120, seed)
        y[[3, 50]] = 4, 5
        model = orisk.OrdinalRiskClassifier(
            inner, alpha=0.2, classes=range(7), random_state=seed, check=False
        )
        raw = model.fit(X[:, 1:], y).predict_ordered_proba(X[:, 1:])
        mended = np.asarray(model.recalibrator_.transform(raw))
        assert np.isfinite(mended).all()
        np.testing.assert_allclose(mended.sum(axis=1), 1, atol=1e-12)
        assert mended[:, 4:].mean() < 0.1
        gain = log_score(mended[:, :4], y) - log_score(np.maximum(raw[:, :4], 1e-6), y)
        assert gain > -0.1


def log_score(proba, y):
    known = y < 4
    return np.log(shares_of(proba[known])[np.arange(known.sum()), y[known]]).mean()


# models that are trained already, and recalibrators with parameters of their own


@pytest.fixture(scope="module")
def frozen():
    X, y = features(300, 5)
    return FrozenEstimator(LogisticRegression().fit(X[:, 1:], y))


@pytest.mark.parametrize("how", [{}, {"recalibrate": "auto"}, {"recalibrate": None}], ids=repr)
def test_scores_of_a_frozen_model_are_used_as_they_are(frozen, how):
    X, y = features(200)
    plain = orisk.RiskController(alpha=0.1).calibrate(frozen.predict_proba(X[:, 1:]), y)
    for method in ("fit", "calibrate"):
        model = orisk.OrdinalRiskClassifier(frozen, random_state=0, **how)
        getattr(model, method)(X[:, 1:], y)
        assert model.controller_.n_rows_ == 200
        assert model.controller_.threshold_ == plain.threshold_
        assert model.controller_.data_blake3_ == plain.data_blake3_
        assert model.recalibrator_ is None


def test_a_frozen_model_gets_a_map_where_calibrate_is_asked(frozen):
    X, y = features(300)
    model = orisk.OrdinalRiskClassifier(frozen, random_state=0)
    model.calibrate(X[:, 1:], y, recalibrate="temperature", recalibration_rows=np.arange(100))
    expected = orisk.Recalibrator("temperature", classes=range(4), scores="probabilities")
    expected.fit(frozen.predict_proba(X[:100, 1:]), y[:100])
    assert model.controller_.recalibration == model.recalibrator_.recalibration_ == expected.recalibration_
    assert model.controller_.n_rows_ == 200
    model.calibrate(X[:, 1:], y)
    assert model.controller_.recalibration is model.recalibrator_ is None


def test_nobody_ignores_what_was_asked(frozen):
    X, y = features(100)
    for asked in ("regression", orisk.Recalibrator()):
        for method in ("fit", "calibrate"):
            with pytest.raises(ValueError, match=r"is not trained.*calibrate\(X, y, recalibrate="):
                getattr(orisk.OrdinalRiskClassifier(frozen, recalibrate=asked), method)(X[:, 1:], y)
    fitted = orisk.OrdinalRiskClassifier(LogisticRegression(), random_state=0).fit(X[:, 1:], y)
    for asked in ({"recalibrate": "auto"}, {"recalibration_rows": 30}):
        with pytest.raises(ValueError, match="are for a FrozenEstimator"):
            fitted.calibrate(X[:, 1:], y, **asked)


NAMES = np.array(["none", "mild", "fair", "poor", "bad"])


def test_the_classes_of_a_recalibrator_are_those_of_the_calibration(frozen):
    rows, y = judged(900)
    recalibrator = orisk.Recalibrator("regression", classes=range(9))
    found = orisk.RiskController(alpha=0.2, random_state=0).calibrate(rows, y, recalibrate=recalibrator)
    assert found.classes_.tolist() == [*range(9)]
    assert recalibrator.classes == range(9)
    named = orisk.Recalibrator("temperature", classes=NAMES)
    found = orisk.RiskController(alpha=0.2).calibrate(SCORES, NAMES[LABELS], recalibrate=named)
    assert found.classes_.tolist() == NAMES.tolist()
    X, y = features(300)
    model = orisk.OrdinalRiskClassifier(
        LogisticRegression(), recalibrate=orisk.Recalibrator("temperature", classes=NAMES[:4])
    )
    assert model.fit(X[:, 1:], NAMES[y]).controller_.classes_.tolist() == NAMES[:4].tolist()
    late = orisk.OrdinalRiskClassifier(frozen)
    late.calibrate(X[:, 1:], y, recalibrate=orisk.Recalibrator("temperature", classes=[*range(5)]))
    assert late.controller_.classes_.tolist() == [*range(5)]


def test_parameters_that_contradict_each_other_are_refused(frozen):
    X, y = features(300)
    other = orisk.Recalibrator(classes=[4, 3, 2, 1, 0])
    with pytest.raises(
        ValueError, match=r"has the classes \[4, 3, 2, 1, 0\], the calibration \[0, 1, 2, 3, 4\]"
    ):
        orisk.RiskController(classes=range(5)).calibrate(SCORES, LABELS, recalibrate=other)
    with pytest.raises(
        ValueError, match=r"has the classes \[4, 3, 2, 1, 0\], the calibration \[0, 1, 2, 3\]"
    ):
        orisk.OrdinalRiskClassifier(LogisticRegression(), classes=range(4), recalibrate=other).fit(X, y)
    with pytest.raises(ValueError, match="The Recalibrator is for logits, but the scores are probabilities"):
        orisk.OrdinalRiskClassifier(
            LogisticRegression(), recalibrate=orisk.Recalibrator(scores="logits")
        ).fit(X, y)


WRONG = {
    "method='best' is not known": {"recalibrate": "best"},
    "method=3 is not known": {"recalibrate": 3},
    "recalibrate must be an unfitted Recalibrator": {"recalibrate": FITTED},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_options_are_refused_before_training(message, recording):
    with pytest.raises(ValueError, match=message):
        orisk.OrdinalRiskClassifier(recording, **WRONG[message]).fit(*features(40))
    assert recording.trained == []


# the promise


class Shares(ClassifierMixin, BaseEstimator):
    """Predicts its features: they are scores already."""

    def fit(self, X, y):
        self.classes_ = np.arange(X.shape[1])
        return self

    def predict_proba(self, X):
        return X


def noise(n, K, seed):
    """Scores that say nothing, some of them tied, and labels of which one class is rare."""
    random = np.random.default_rng(seed)
    rare = np.r_[np.ones(K - 1), 0.1]
    return shares_of(random.dirichlet(np.full(K, 0.5), n).round(1) + 1e-3), random.choice(
        K, n, p=rare / rare.sum()
    )


def risk_and_error(risks):
    return np.mean(risks), np.std(risks) / np.sqrt(len(risks))


ALPHA, DRAWS, N_CALIBRATION = 0.2, 200, 29


@pytest.mark.filterwarnings("ignore:No .* row has the labels")
@pytest.mark.parametrize("method", ["isotonic", "regression"])
def test_the_estimator_keeps_its_promise_with_a_map(method):
    risks = []
    for seed in range(DRAWS):
        X, y = noise(360, 4, seed)
        model = orisk.OrdinalRiskClassifier(
            *(Shares(),),
            alpha=ALPHA,
            classes=range(4),
            recalibrate=orisk.Recalibrator(method, folds=2),
            calibration_size=N_CALIBRATION,
            random_state=seed,
            check=False,
        ).fit(X[:60], y[:60])
        risks.append(1 - orisk.metrics.coverage(y[60:], model.predict_set(X[60:])))
    risk, error = risk_and_error(risks)
    assert risk < ALPHA + 3 * error


@pytest.mark.parametrize("method", ["isotonic", "regression"])
def test_a_map_that_saw_the_calibration_rows_breaks_the_promise(method):
    risks = []
    for seed in range(DRAWS):
        X, y = noise(360, 4, seed)
        fitted = orisk.Recalibrator(method, folds=2, classes=range(4)).fit(
            X[:N_CALIBRATION], y[:N_CALIBRATION]
        )
        controller = orisk.RiskController(alpha=ALPHA, recalibration=fitted, check=False)
        controller.calibrate(X[:N_CALIBRATION], y[:N_CALIBRATION])
        risks.append(1 - orisk.metrics.coverage(y[60:], controller.predict_set(X[60:])))
    risk, error = risk_and_error(risks)
    assert risk > ALPHA + 3 * error


def test_a_calibration_without_the_map_has_no_recalibrator():
    X = np.random.default_rng(0).normal(size=(200, 1))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = orisk.OrdinalRiskClassifier(LogisticRegression(), recalibrate="temperature").fit(X, y)
    assert model.recalibrator_ is not None
    model.set_params(recalibrate=None).calibrate(X[:100], y[:100])
    assert model.controller_.recalibration is None
    assert model.recalibrator_ is None
