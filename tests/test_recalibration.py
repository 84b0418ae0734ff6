"""Recalibration: maps that undo what was done to scores, bits that do not depend on the batch, few rows."""

import json

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from saved_documents import rewrite
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import ordinalrisk as orisk

METHODS = ["auto", "identity", "mixture", "temperature", "isotonic", "ordered_regression", "regression"]


def labelled(n, K=5, seed=0):
    """Probabilities that are right, and labels drawn from them."""
    random = np.random.default_rng(seed)
    proba = random.dirichlet(np.ones(K), size=n)
    return proba, (random.random((n, 1)) > proba.cumsum(axis=1)).sum(axis=1)


def log_score(proba, y):
    return np.log(proba[np.arange(len(y)), y]).mean()


def shares_of(scores):
    return scores / scores.sum(axis=1, keepdims=True)


WRONGED = {
    "too sure": lambda proba: shares_of(proba**3),
    "too unsure": lambda proba: shares_of(proba**0.4),
    "of another population": lambda proba: shares_of(proba * [4, 1, 1, 1, 0.2]),
}


@pytest.mark.parametrize("scores", ["probabilities", "logits"])
@pytest.mark.parametrize("wrong", WRONGED)
def test_auto_undoes_what_was_done_to_right_probabilities(wrong, scores):
    proba, y = labelled(6_000)
    given = WRONGED[wrong](proba)
    given = given if scores == "probabilities" else np.log(given) + 3
    fitted = orisk.Recalibrator().fit(given[:3_000], y[:3_000])
    right, mended = proba[3_000:], fitted.transform(given[3_000:])
    assert fitted.recalibration_.scores == scores
    assert fitted.gain_ > 0.02
    assert log_score(right, y[3_000:]) - log_score(mended, y[3_000:]) < 0.01


def test_right_probabilities_stay_as_they_are():
    proba, y = labelled(3_000)
    fitted = orisk.Recalibrator().fit(proba, y)
    assert abs(fitted.gain_) < 0.003
    assert abs(fitted.transform(proba) - proba).mean() < 0.01
    assert orisk.Recalibrator("identity").fit(proba, y).transform(proba) is proba


def test_auto_says_how_much_each_map_counts():
    proba, y = labelled(1_500)
    fitted = orisk.Recalibrator().fit(shares_of(proba**1.3 * [1, 1, 1, 1, 2]), y)
    weights = fitted.weights_
    assert fitted.method_ == "blend"
    assert [*weights] == ["identity", "ordered_regression", "regression"]
    assert sum(weights.values()) == pytest.approx(1)
    assert fitted.log_scores_["blend"] > max(fitted.log_scores_[name] for name in weights) - 0.01
    assert fitted.gain_ == fitted.log_scores_["blend"] - fitted.log_scores_["identity"]


def test_the_weights_follow_what_the_maps_predict():
    proba, y = labelled(3_000)
    right, turned = orisk.Recalibrator().fit(proba, y), orisk.Recalibrator().fit(proba[:, ::-1], y)
    assert right.weights_["identity"] > 0.7
    assert turned.weights_.get("identity", 0) < 0.05
    assert orisk.Recalibrator().fit(proba[:30, ::-1], y[:30]).weights_["identity"] > 0.2  # few rows: careful


def test_a_blend_is_the_weighted_mean_of_its_maps():
    proba, y = labelled(800)
    given = shares_of(proba**1.5)
    fitted = orisk.Recalibrator().fit(given, y)
    parts = {name: orisk.Recalibrator(name).fit(given, y).transform(given) for name in fitted.weights_}
    mean = sum(weight * parts[name] for name, weight in fitted.weights_.items())
    np.testing.assert_allclose(fitted.transform(given), mean, atol=1e-12)


@pytest.mark.parametrize("n", [30, 60, 100])
def test_few_rows_do_no_harm(n):
    """Of a few rows no map is learnt that is much worse than the right probabilities."""
    lost = []
    for seed in range(20):
        proba, y = labelled(2_000, seed=seed)
        mended = orisk.Recalibrator().fit(proba[:n], y[:n]).transform(proba)
        lost.append(log_score(proba, y) - log_score(mended, y))
    assert np.mean(lost) < 0.01
    assert max(lost) < 0.2


def test_labels_with_a_score_of_0_are_not_left_as_they_are():
    proba, y = labelled(300)
    floored = shares_of(np.where(proba < 0.05, 0, proba))
    assert orisk.Recalibrator().fit(floored, y).method_ != "identity"


@pytest.mark.parametrize("method", ["auto", "ordered_regression", "regression"])
def test_five_scores_become_thirteen_labels(method):
    random = np.random.default_rng(1)
    truth = np.clip(np.round(6 + 3 * random.normal(size=4_000)), 0, 12).astype(int)
    judge = np.exp(-((np.arange(5) - truth[:, None] / 3 + random.normal(0, 0.3, (4_000, 1))) ** 2) * 3)
    judge = shares_of(np.where(judge < 1e-3, 0, judge))  # tokens that are not listed
    fitted = orisk.Recalibrator(method, classes=range(13)).fit(judge[:1_000], truth[:1_000])
    mended = fitted.transform(judge[1_000:])
    shares = np.bincount(truth, minlength=13) / len(truth)
    assert mended.shape == (3_000, 13)
    assert log_score(mended, truth[1_000:]) > np.log(shares) @ shares + 0.5
    assert np.isnan(fitted.gain_)


def test_a_label_that_no_row_has_stays_possible():
    """Half a row of each label is added, at the mean scores; without it, the label would have 1e-7."""
    random = np.random.default_rng(0)
    truth = random.choice([0, 1, 2, 3, 5, 6, 7, 8], 60)
    judge = shares_of(np.exp(-2 * (np.arange(5) - truth[:, None] / 2 + random.normal(0, 0.5, (60, 1))) ** 2))
    fitted = orisk.Recalibrator("ordered_regression", classes=range(9)).fit(judge, truth)
    assert fitted.transform(judge)[:, 4].max() > 0.02


def test_labels_without_a_score_get_their_share():
    """Half of the rows lack the token of the true label."""
    proba, y = labelled(4_000)
    floored = proba.copy()
    floored[np.arange(0, 4_000, 2), y[::2]] = 0
    fitted = orisk.Recalibrator("mixture").fit(shares_of(floored)[:2_000], y[:2_000])
    assert fitted.recalibration_.map.weight > 0.3
    assert fitted.transform([[0.5, 0.5, 0, 0, 0]])[0, 4] > 0.05


@pytest.mark.parametrize("method", METHODS)
def test_bits_do_not_depend_on_batch_layout_or_library(method):
    proba, y = labelled(20_000, seed=2)
    given = shares_of(proba**2)
    fitted = orisk.Recalibrator(method).fit(given[:2_000], y[:2_000])
    whole = np.asarray(fitted.transform(given))
    cuts = np.split(given, [1, 8, 9_000])
    np.testing.assert_array_equal(np.concatenate([fitted.transform(part) for part in cuts]), whole)
    np.testing.assert_array_equal(fitted.transform(np.asfortranarray(given)), whole)
    np.testing.assert_array_equal(fitted.transform(given[::-1])[::-1], whole)
    np.testing.assert_array_equal(np.asarray(fitted.transform(torch.tensor(given))), whole)
    tensors = fitted.recalibration_.map([torch.tensor(np.log(column)) for column in given.T])
    arrays = fitted.recalibration_.map([np.log(column) for column in given.T])
    np.testing.assert_array_equal(np.stack([np.asarray(each) for each in tensors]), np.stack(arrays))


@pytest.mark.parametrize("method", METHODS)
def test_a_map_is_probabilities_and_survives_json(method):
    proba, y = labelled(500)
    fitted = orisk.Recalibrator(method).fit(proba, y).recalibration_
    mended = np.asarray(fitted(proba))
    assert (mended >= 0).all()
    np.testing.assert_allclose(mended.sum(axis=1), 1, atol=1e-12)
    again = msgspec.json.decode(json.dumps(json.loads(msgspec.json.encode(fitted))), type=type(fitted))
    np.testing.assert_array_equal(again(proba), mended)


@settings(max_examples=25)
@given(st.integers(2, 6), st.integers(5, 40), st.integers(0, 10**6), st.sampled_from(METHODS))
def test_every_map_fits_whatever_the_rows(K, n, seed, method):
    """Zeros, classes without rows, one class alone: always probabilities."""
    random = np.random.default_rng(seed)
    scores = random.dirichlet(np.full(K, 0.2), size=n).round(random.integers(1, 4))
    scores[scores.sum(axis=1) == 0] = 1 / K
    scores = shares_of(scores)
    y = random.integers(0, random.integers(1, K + 1), size=n)
    mended = np.asarray(orisk.Recalibrator(method, scores="probabilities").fit(scores, y).transform(scores))
    assert np.isfinite(mended).all()
    np.testing.assert_allclose(mended.sum(axis=1), 1, atol=1e-12)


EDITS = [
    ("mixture", "label_shares", [0.5, 0.5]),
    ("mixture", "label_shares", [0.5] * 5),
    ("mixture", "weight", 1.5),
    ("temperature", "bias", [0.0] * 4),
    ("temperature", "slope", -1.0),
    ("regression", "weights", [[1.0] * 5] * 4),
    ("regression", "weights", [[1.0] * 4] * 5),
    ("ordered_regression", "cuts", [1.0, 0.0, 2.0, 3.0]),
    ("isotonic", "knots", [[0.0, 1.0]]),
    ("isotonic", "values", [[0.0, 2.0]] * 4),
    ("isotonic", "other", 1),
]


@pytest.mark.parametrize(("method", "field", "value"), EDITS)
def test_a_map_that_contradicts_itself_is_not_read(method, field, value):
    proba, y = labelled(200)
    fitted = orisk.Recalibrator(method).fit(proba, y).recalibration_
    document = json.loads(msgspec.json.encode(fitted))
    document["map"][field] = value
    with pytest.raises(ValueError, match=r"\$.map|must have length|must increase|must sum|needs two knots"):
        msgspec.json.decode(json.dumps(document), type=type(fitted))


def test_rows_of_a_cluster_stay_together():
    """Copies of a row in other folds would make the most flexible map look best."""
    proba, y = labelled(60)
    many, truth, unit = np.repeat(proba, 30, axis=0), np.repeat(y, 30), np.repeat(np.arange(60), 30)
    apart = orisk.Recalibrator("regression").fit(many, truth)
    together = orisk.Recalibrator("regression").fit(many, truth, clusters=unit)
    assert together.log_scores_["regression"] < apart.log_scores_["regression"] - 0.02


def test_the_guarantee_holds_whatever_the_map():
    """Fitted on other rows, also for labels that have nothing to do with the scores."""
    risks = []
    for seed in range(400):
        proba, y = labelled(260, K=4, seed=seed)
        fitted = orisk.Recalibrator("regression", folds=2).fit(proba[:30], y[:30][::-1])
        mended = fitted.transform(proba[30:])
        controller = orisk.RiskController(alpha=0.2, check=False).calibrate(mended[:29], y[30:59])
        risks.append(1 - orisk.metrics.coverage(y[59:], controller.predict_set(mended[29:])))
    error = np.std(risks) / np.sqrt(len(risks))
    assert np.mean(risks) < 0.2 + 3 * error
    assert np.mean(risks) > 0.2 - 1 / 30 - 3 * error


SCORES, LABELS = [[0.5, 0.5], [0.2, 0.8]] * 10, [0, 1] * 10
LOGITS = [[0.5, -0.5], [0.2, 0.9]] * 10
WRONG = {
    "method='best' is not known": lambda: orisk.Recalibrator("best").fit(SCORES, LABELS),
    "scores='odds' is not known": lambda: orisk.Recalibrator(scores="odds").fit(SCORES, LABELS),
    "folds must be a whole number from 2 on; got 1": lambda: orisk.Recalibrator(folds=1).fit(SCORES, LABELS),
    "5 folds need at least 5 rows; got 2": lambda: orisk.Recalibrator().fit(SCORES[:2], LABELS[:2]),
    "5 folds need at least 5 clusters; got 2": lambda: orisk.Recalibrator().fit(
        SCORES, LABELS, clusters=LABELS
    ),
    "method='temperature' needs one score for each label; got 2 scores and 3 labels": lambda: (
        orisk.Recalibrator("temperature", classes=[0, 1, 2]).fit(SCORES, LABELS)
    ),
    "Row 1 of the scores has no probabilities": lambda: orisk.Recalibrator().fit(
        [[0.5, 0.5], [np.nan, 1]] * 10, LABELS
    ),
    "Row 1 of proba sums to 1.5": lambda: orisk.Recalibrator(scores="probabilities").fit(
        [[0.5, 0.5], [0.5, 1]] * 10, LABELS
    ),
    'Row 1 of the scores sums to 1.5, not to 1, .* Say scores="logits"': lambda: orisk.Recalibrator().fit(
        [[0.5, 0.5], [0.5, 1]] * 10, LABELS
    ),
    "proba has a negative value at row 0, column 1": lambda: (
        orisk.Recalibrator("temperature").fit(SCORES, LABELS).transform([[1.2, -0.2]])
    ),
    "Row 1 of the scores has probabilities, .0.5, 0.5., where logits are expected.*subtract the largest": (
        lambda: orisk.Recalibrator("temperature").fit(LOGITS, LABELS).transform([[1.0, 3.0], [0.5, 0.5]])
    ),
    "Row 0 of the scores has probabilities, .0.5, 0.5., where logits": lambda: orisk.Recalibrator(
        "temperature", scores="logits"
    ).fit(SCORES, LABELS),
    "Row 0 of the scores has no probabilities": lambda: (
        orisk.Recalibrator("temperature").fit(LOGITS, LABELS).transform([[-np.inf, -np.inf]])
    ),
    "recalibration must be a fitted Recalibrator; got": lambda: orisk.RiskController(
        recalibration=orisk.Recalibrator()
    ),
    r"was fitted for the classes \[0, 1\]; classes has \['a', 'b'\]": lambda: orisk.RiskController(
        recalibration=orisk.Recalibrator().fit(SCORES, LABELS), classes=["a", "b"]
    ),
    "gives probabilities of 2 labels; classes has 3": lambda: orisk.RiskController(
        recalibration=orisk.Recalibrator().fit(SCORES, LABELS).recalibration_, classes=[0, 1, 2]
    ),
    "The scores have 3 columns, but the map was fitted on 2": lambda: (
        orisk.Recalibrator("temperature").fit(SCORES, LABELS).transform([[0.2, 0.3, 0.5]])
    ),
    r"y\[0\] is 2, which is not one of the classes \[0, 1\]": lambda: orisk.Recalibrator(classes=[0, 1]).fit(
        SCORES, [2, *LABELS[1:]]
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_input_gets_its_error(message):
    with pytest.raises(ValueError, match=message):
        WRONG[message]()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_probabilities_are_no_logits_however_they_are_cut(dtype):
    """The answer depends on the row alone: for each row, in batches and with tensors, it is the same."""
    proba, y = labelled(400)
    fitted = orisk.Recalibrator("temperature").fit(np.log(proba) + 2, y)
    given = proba.astype(dtype)
    for rows in (given, given[:1], np.concatenate([np.log(proba).astype(dtype), given[:1]])):
        for batch in (rows, torch.tensor(rows)):
            with pytest.raises(ValueError, match=r"has probabilities, .* where logits are expected"):
                fitted.transform(batch)
    for row in given[:50]:
        with pytest.raises(ValueError, match="Row 0 of the scores has probabilities"):
            fitted.transform(row[None])


def test_logits_that_sum_to_1_have_a_way_out():
    """Subtracting the largest logit changes no bit, and its row can't be mistaken."""
    proba, y = labelled(400)
    logits = np.log(proba)
    fitted = orisk.Recalibrator("regression").fit(logits, y)
    for row in ([0.7, 0.1, 0.1, 0.1, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]):
        logits[7] = row
        with pytest.raises(ValueError, match="Row 7 of the scores has probabilities"):
            fitted.transform(logits)
    logits[7] = [2.0, 0.1, 0.1, 0.1, 0.0]
    shifted = logits - logits.max(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.transform(shifted), fitted.transform(logits), rtol=1e-12)


def test_log_probabilities_are_logits():
    """None is above 0, also of a sure row and of one with a probability of 0."""
    proba, y = labelled(400)
    proba[:2] = [[1, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0]]
    with np.errstate(divide="ignore"):
        logs = np.log(proba)
    fitted = orisk.Recalibrator("temperature").fit(logs, y)
    assert fitted.recalibration_.scores == "logits"
    assert np.isfinite(fitted.transform(logs)).all()


# saved by itself


@pytest.mark.parametrize("scores", ["probabilities", "logits"])
@pytest.mark.parametrize("method", METHODS)
def test_a_saved_recalibrator_is_the_same(method, scores, tmp_path):
    proba, y = labelled(500)
    names = np.array(["none", "mild", "fair", "poor", "bad"])
    given = proba if scores == "probabilities" else np.log(proba)
    fitted = orisk.Recalibrator(method, classes=names, folds=3, random_state=7).fit(given, names[y])
    fitted.save(tmp_path / "map.json")
    again = orisk.Recalibrator.load(tmp_path / "map.json")
    np.testing.assert_array_equal(again.transform(given), fitted.transform(given))
    assert again.recalibration_ == fitted.recalibration_
    assert again.classes_.tolist() == names.tolist()
    assert again.get_params() == fitted.get_params() | {"classes": names.tolist(), "scores": scores}
    for name in ("method_", "weights_", "log_scores_", "n_features_in_"):
        assert getattr(again, name) == getattr(fitted, name)
    assert again.gain_ == fitted.gain_ or np.isnan([again.gain_, fitted.gain_]).all()
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "map.json").read_bytes()
    refitted = again.fit(given, names[y])
    assert refitted.recalibration_ == fitted.recalibration_


def test_a_loaded_recalibrator_is_part_of_a_calibration(tmp_path):
    proba, y = labelled(600)
    fitted = orisk.Recalibrator().fit(proba[:300] ** 2 / (proba[:300] ** 2).sum(1, keepdims=True), y[:300])
    fitted.save(tmp_path / "map.json")
    own, loaded = (
        orisk.RiskController(alpha=0.1, recalibration=each).calibrate(proba[300:], y[300:])
        for each in (fitted, orisk.Recalibrator.load(tmp_path / "map.json"))
    )
    assert (own.threshold_, own.data_blake3_) == (loaded.threshold_, loaded.data_blake3_)


DAMAGE = {
    "classes": [0, 1, 2],
    "recalibration": {
        "map": {"kind": "identity"},
        "scores": "odds",
        "floor": 0.1,
        "n_scores": 5,
        "n_rows": 3,
    },
    "method": "temperature",
    "folds": 1,
    "random_state": -1,
    "log_scores": [{"map": "identity", "mean": -1.0}],
}


@pytest.mark.parametrize("field", DAMAGE)
def test_a_damaged_recalibrator_is_refused_by_its_field(field, tmp_path):
    proba, y = labelled(500)
    path = tmp_path / "map.json"
    orisk.Recalibrator("regression").fit(np.roll(proba, 1, axis=1), y).save(path)
    text = path.read_text(encoding="utf-8")
    rewrite(path, **{field: DAMAGE[field]})
    with pytest.raises(ValueError, match=f"map.json can't be loaded: field '{field}'"):
        orisk.Recalibrator.load(path)
    document = json.loads(text)
    document[field] = DAMAGE[field]
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ValueError, match=f"field '{field}' does not match its digest"):
        orisk.Recalibrator.load(path)
    path.write_text(text[:-40], encoding="utf-8")
    with pytest.raises(ValueError, match="is not a whole JSON file"):
        orisk.Recalibrator.load(path)


def test_a_recalibrator_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        orisk.Recalibrator().save(tmp_path / "map.json")
    orisk.RiskController().calibrate(SCORES, LABELS).save(tmp_path / "calibration.json")
    with pytest.raises(ValueError, match="field 'format' is 'ordinalrisk calibration'"):
        orisk.Recalibrator.load(tmp_path / "calibration.json")


def test_it_is_a_transformer():
    fitted = orisk.Recalibrator("temperature").fit(SCORES, LABELS)
    assert clone(fitted).get_params() == fitted.get_params()
    with pytest.raises(ValueError, match="not fitted"):
        clone(fitted).transform(SCORES)


OWN_WORDS = dict.fromkeys(
    (
        "check_n_features_in_after_fitting",
        "check_complex_data",
        "check_dtype_object",
        "check_estimators_empty_data_messages",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
    ),
    "it raises its error in the words of this library",
)
OWN_WORDS["check_estimators_dtypes"] = "rows such as 0, 0, 1 are probabilities, and refused as logits"


@parametrize_with_checks(
    [orisk.Recalibrator("regression", scores="logits", folds=2)],
    expected_failed_checks=lambda estimator: OWN_WORDS,
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
