"""Rows that are set apart to fit a map and to choose the growth rule calibrate nothing, so the promise holds.

The sets are those of a controller that gets the fitted map and the other rows. Tests of the promise have a
companion that learns on the calibration rows, and breaks it.
"""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from command import refusal, succeeds
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import ordinalrisk as orisk


def shares_of(scores):
    return scores / scores.sum(axis=1, keepdims=True)


def scored(n, seed=0):
    """Scores of five labels that are too sure, and labels drawn from the right probabilities."""
    random = np.random.default_rng(seed)
    proba = random.dirichlet(np.ones(5), size=n)
    return shares_of(proba**3), (random.random((n, 1)) > proba[:, :-1].cumsum(axis=1)).sum(axis=1)


def judged(n, seed=0, levels=9):
    """The scores of a judge for five levels, 0 where they are small, and labels on another scale."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, levels, n)
    at = truth[:, None] * 4 / (levels - 1) + random.normal(0, 0.5, (n, 1))
    judge = np.exp(-2 * (np.arange(5) - at) ** 2)
    return shares_of(np.where(judge < 1e-2, 0, judge)), truth


SCORES, LABELS = scored(400)
CLUSTERS = np.arange(400) // 4
GROUPS = np.array(["a", "b"])[np.arange(400) % 2]
HOW = {"recalibrate": "temperature", "recalibration_rows": 100}


def same(one, other):
    return one.lower.tolist() == other.lower.tolist() and one.upper.tolist() == other.upper.tolist()


def assert_learned_apart(found, controller, scores, y, method="temperature", **of_rows):
    """It is the calibration of the other rows, with a map that was fitted on the rows set apart."""
    apart = np.zeros(len(y), bool)
    apart[found.rows_apart_] = True
    clusters = of_rows.get("clusters")
    fitted = orisk.Recalibrator(method, classes=found.classes_).fit(
        scores[apart], y[apart], clusters=None if clusters is None else clusters[apart]
    )
    assert found.recalibration == fitted.recalibration_
    controller.recalibration = fitted
    whole = {"class_ratios"}
    rest = {name: values if name in whole else values[~apart] for name, values in of_rows.items()}
    controller.calibrate(scores[~apart], y[~apart], **rest)
    assert found.thresholds_ == controller.thresholds_
    assert found.data_blake3_ == controller.data_blake3_
    assert found.n_rows_ == (~apart).sum()


OPTIONS = {
    "none": ({}, {}),
    "groups": ({}, {"groups": GROUPS}),
    "clusters": ({}, {"clusters": CLUSTERS}),
    "groups and clusters": ({}, {"groups": GROUPS, "clusters": CLUSTERS}),
    "weights": ({}, {"sample_weight": np.linspace(0.5, 1.5, 400)}),
    "class ratios": ({}, {"class_ratios": [1, 1, 2, 1, 1]}),
    "delta": ({"delta": 0.1}, {}),
    "betting": ({"delta": 0.1, "loss": "divergence", "confidence_bound": "betting"}, {}),
    "each class": ({"condition_on": "label"}, {}),
    "alpha by class": ({"alpha": dict(zip(range(5), [0.1, 0.2, 0.3, 0.2, 0.1], strict=True))}, {}),
    "relative": ({"loss": orisk.WeightedLoss([1, 1, 1, 2, 5]), "relative": True}, {}),
    "randomize": ({"randomize": True}, {}),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_calibrates_on_the_other_rows(option):
    parameters, of_rows = OPTIONS[option]
    parameters = {"alpha": 0.2, "random_state": 3, "check": False} | parameters
    how = HOW | ({"recalibration_rows": 25} if "clusters" in option else {})
    found = orisk.RiskController(**parameters).calibrate(SCORES, LABELS, **of_rows, **how)
    assert len(found.rows_apart_) == 100
    if "clusters" in option:
        assert {*CLUSTERS[found.rows_apart_]}.isdisjoint(np.delete(CLUSTERS, found.rows_apart_))
    assert_learned_apart(found, orisk.RiskController(**parameters), SCORES, LABELS, **of_rows)


@pytest.mark.parametrize(
    "rows",
    [0.25, "1/4", Fraction(1, 4), 100, np.arange(400) < 100, [*range(100)], pd.Series(np.arange(400) < 100)],
    ids=["share", "text", "fraction", "number", "mask", "positions", "series"],
)
def test_rows_are_named_in_every_way(rows):
    controller = orisk.RiskController(alpha=0.2, random_state=0)
    found = controller.calibrate(SCORES, LABELS, recalibrate="temperature", recalibration_rows=rows)
    assert len(found.rows_apart_) == 100
    is_listed = hasattr(rows, "__len__") and not isinstance(rows, str)
    assert (found.rows_apart_.tolist() == [*range(100)]) == is_listed


def test_the_draw_depends_on_the_seed_alone():
    def drawn(seed):
        controller = orisk.RiskController(alpha=0.2, random_state=seed)
        return controller.calibrate(SCORES, LABELS, **HOW).rows_apart_.tolist()

    assert drawn(0) == drawn(0) != drawn(1)
    assert drawn(None) != drawn(None)


def test_another_calibration_starts_from_what_was_asked_for():
    controller = orisk.RiskController(alpha=0.2, growth="auto", random_state=0)
    first = controller.calibrate(SCORES, LABELS, **HOW).threshold_
    assert controller.growth != "auto"
    with pytest.raises(ValueError, match="recalibration_rows are to fit a map"):
        orisk.RiskController().calibrate(SCORES, LABELS, recalibration_rows=10)
    controller.calibrate(SCORES[::-1], LABELS[::-1], recalibration_rows=100)
    assert controller.recalibration is None
    assert controller.recalibrator_ is None
    assert controller.calibrate(SCORES, LABELS, **HOW).threshold_ == first


def test_a_plain_calibration_leaves_nothing_of_a_map(tmp_path):
    write(tmp_path / "all.csv", SCORES, LABELS)
    controller = orisk.RiskController(alpha=0.2, random_state=0).calibrate(SCORES, LABELS, **HOW)
    of_files = orisk.jobs.calibrate(controller, tmp_path / "all.csv", **COLUMNS | {"classes": range(5)})
    plain = controller.calibrate(SCORES, LABELS)
    for found in (of_files, plain):  # the rows set apart calibrate too, so the map may not be used
        assert found.recalibration is None
        assert found.n_rows_ == 400
        assert not hasattr(found, "recalibrator_")
        assert not hasattr(found, "rows_apart_")
    assert of_files.threshold_ == plain.threshold_


@pytest.mark.parametrize("n_labels", [5, 9])
def test_files_apply_a_fitted_map_once_before_a_rule_is_chosen(n_labels, tmp_path):
    scores, y = scored(600) if n_labels == 5 else judged(600)
    write(tmp_path / "all.csv", scores[300:], y[300:])
    fitted = orisk.Recalibrator("regression", classes=range(n_labels)).fit(scores[:300], y[:300])
    how = {"alpha": 0.1, "growth": "auto", "recalibration": fitted, "random_state": 0, "check": False}
    arrays = orisk.RiskController(**how).calibrate(scores[300:], y[300:], recalibration_rows=100)
    columns = COLUMNS | {"classes": range(n_labels)}
    controller = orisk.RiskController(**how)
    files = orisk.jobs.calibrate(controller, tmp_path / "all.csv", recalibration_rows=100, **columns)
    assert files.growth_sizes_ == arrays.growth_sizes_
    assert files.threshold_ == arrays.threshold_


def test_as_many_rows_as_cost_little_are_set_apart():
    sizes = {}
    for n in (100, 150, 400):
        with_warning = pytest.warns(UserWarning, match=f"{n} rows are too few to set 30 of them apart")
        controller = orisk.RiskController(alpha=0.1)
        if n == 100:
            with with_warning:
                controller.calibrate(SCORES[:n], LABELS[:n], recalibrate="auto")
        else:
            controller.calibrate(SCORES[:n], LABELS[:n], recalibrate="auto")
        sizes[n] = len(controller.rows_apart_)
    assert sizes == {100: 0, 150: 37, 400: 100}
    plain = orisk.RiskController(alpha=0.1).calibrate(SCORES[:100], LABELS[:100])
    with pytest.warns(UserWarning, match="too few to set 30 of them apart"):
        found = orisk.RiskController(alpha=0.1, growth="auto").calibrate(SCORES[:100], LABELS[:100])
    assert (found.threshold_, found.growth, found.recalibration) == (plain.threshold_, plain.growth, None)


def test_a_saved_calibration_keeps_map_and_rule(tmp_path):
    scores, y = judged(700)
    found = orisk.RiskController(alpha=0.1, growth="auto", classes=range(9))
    found.calibrate(scores[:500], y[:500], recalibrate="auto")
    found.save(tmp_path / "cal.json")
    again = orisk.RiskController.load(tmp_path / "cal.json")
    assert (again.growth, again.recalibration) == (found.growth, found.recalibration)
    assert same(again.predict_set(scores[500:]), found.predict_set(scores[500:]))


def test_logits_and_another_scale_are_read():
    scores, y = judged(600)
    with np.errstate(divide="ignore"):
        logits = np.log(scores) + 2
    found = orisk.RiskController(alpha=0.1, classes=range(9), random_state=0)
    found.calibrate(logits, y, recalibrate="auto")
    assert found.recalibration.scores == "logits"
    assert found.predict_set(logits).size.mean() < 4


WRONG = {
    "recalibration_rows=400 sets 400 of 400 rows apart": ({"recalibration_rows": 400}, {}),
    "recalibration_rows must be a share .* got 1.5": ({"recalibration_rows": 1.5}, {}),
    "recalibration_rows must be a mask of all 400 rows": ({"recalibration_rows": [True] * 3}, {}),
    "recalibration_rows must lie in 0 .. 399": ({"recalibration_rows": [400]}, {}),
    "recalibration_rows splits the cluster of row 48": (
        {"recalibration_rows": [*range(50)]},
        {"clusters": CLUSTERS},
    ),
    "method='best' is not known": ({"recalibrate": "best"}, {}),
    "recalibrate fits a map, but recalibration is a fitted one": (
        {},
        {"recalibration": orisk.Recalibrator("mixture").fit(SCORES, LABELS)},
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_calls_get_their_error(message):
    how, others = WRONG[message]
    recalibration = {name: value for name, value in others.items() if name == "recalibration"}
    of_rows = {name: value for name, value in others.items() if name == "clusters"}
    controller = orisk.RiskController(alpha=0.2, **recalibration)
    with pytest.raises(ValueError, match=message):
        controller.calibrate(SCORES, LABELS, **{"recalibrate": "mixture"} | how, **of_rows)
    assert not hasattr(controller, "threshold_")


def test_scores_on_another_scale_need_enough_rows():
    scores, y = judged(60)
    with pytest.raises(ValueError, match=r"60 rows are too few .* and 5 scores for 9 labels need a map"):
        orisk.RiskController(alpha=0.1, classes=range(9)).calibrate(scores, y, recalibrate="auto")


def test_a_wrong_row_is_named_by_its_number():
    wrong = SCORES.copy()
    wrong[317] *= 2
    with pytest.raises(ValueError, match="Row 317 of the scores sums to 2"):
        orisk.RiskController(alpha=0.2).calibrate(wrong, LABELS, recalibrate="auto")


def test_rows_that_come_in_parts_have_no_rows_to_set_apart():
    with pytest.raises(ValueError, match='growth="auto" is chosen on rows that are set apart'):
        orisk.RiskController(growth="auto").calibrate_batches([(SCORES, LABELS)])
    da = pytest.importorskip("dask.array")
    rows, y = da.from_array(SCORES, (200, 5)), da.from_array(LABELS, 200)
    with pytest.raises(ValueError, match='growth="auto" is chosen on rows that are set apart'):
        orisk.RiskController(growth="auto").calibrate(rows, y)
    with pytest.raises(ValueError, match="recalibrate can't be used with dask collections"):
        orisk.RiskController().calibrate(rows, y, recalibrate="auto")


# the growth rule


def test_right_probabilities_keep_the_frontier():
    random = np.random.default_rng(0)
    proba = random.dirichlet(np.ones(5), size=2_000)
    y = (random.random((2_000, 1)) > proba[:, :-1].cumsum(axis=1)).sum(axis=1)
    found = orisk.RiskController(alpha=0.1, growth="auto", random_state=0).calibrate(proba, y)
    assert found.growth == orisk.FrontierGrowth()
    assert found.growth_sizes_["frontier"] <= min(found.growth_sizes_.values()) * 1.01


def test_the_rule_with_the_smallest_sets_is_taken():
    """Scores that say no more than their mean: the median is a better start than the mode."""
    random = np.random.default_rng(1)
    y = random.integers(0, 9, 2_000)
    proba = shares_of(np.exp(-0.5 * (np.arange(9) - y[:, None] - random.normal(0, 1, (2_000, 1))) ** 2))
    proba = shares_of(np.where(random.random(proba.shape) < 0.3, 1e-6, proba))  # lost tokens
    found = orisk.RiskController(alpha=0.1, growth="auto", random_state=0).calibrate(proba[:1000], y[:1000])
    sizes = {
        growth: orisk.RiskController(alpha=0.1, growth=growth, check=False)
        .calibrate(proba[:1000], y[:1000])
        .predict_set(proba[1000:])
        .size.mean()
        for growth in ("frontier", "rps")
    }
    assert found.growth.name == "rps"
    assert sizes["rps"] < sizes["frontier"]
    assert found.predict_set(proba[1000:]).size.mean() < sizes["frontier"]


def floored(n, seed):
    """The scores of an unsure judge that lacks the tokens of unlikely labels."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 5, n)
    scores = shares_of(np.exp(-2 * (np.arange(5) - truth[:, None] - random.normal(0, 0.8, (n, 1))) ** 2))
    return shares_of(np.where(scores < 0.05, 0, scores)), truth


def test_ties_of_floored_scores_are_broken_by_the_map():
    """Labels without a token tie at 0, and join together. The map gives them a share of their own."""
    scores, y = floored(6_000, 0)

    def mean_size(growth, **how):
        sizes = []
        for alpha in (0.02, 0.05, 0.1):
            controller = orisk.RiskController(alpha=alpha, growth=growth, random_state=0, check=False)
            controller.calibrate(scores[:2_000], y[:2_000], **how)
            sizes.append(controller.predict_set(scores[2_000:]).size.mean())
        return np.mean(sizes)

    mapped = mean_size("frontier", recalibrate="auto")
    assert mapped < 0.6 * mean_size("frontier")
    assert mapped < 1.01 * mean_size("rps")


def test_the_estimator_chooses_on_training_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 2))
    y = np.digitize(X[:, 0] + random.normal(size=600), [-1, 0, 1])
    how = {"recalibrate": "auto", "random_state": 0}
    model = orisk.OrdinalRiskClassifier(LogisticRegression(), growth="auto", **how).fit(X, y)
    assert model.controller_.n_rows_ == 150
    assert model.growth_sizes_.keys() >= {"frontier", "rps", "adaptive"}
    fixed = orisk.OrdinalRiskClassifier(LogisticRegression(), growth=model.controller_.growth, **how)
    fixed.fit(X, y)
    assert fixed.controller_.threshold_ == model.controller_.threshold_
    again = model.calibrate(X[:100], y[:100]).controller_
    assert (again.growth, again.recalibration) == (fixed.controller_.growth, fixed.controller_.recalibration)


def test_a_frozen_estimator_sets_rows_apart():
    random = np.random.default_rng(0)
    X = random.normal(size=(900, 2))
    y = np.digitize(X[:, 0] + random.normal(size=900), [-1, 0, 1])
    trained = FrozenEstimator(LogisticRegression().fit(X[:300], y[:300]))
    model = orisk.OrdinalRiskClassifier(trained, random_state=0)
    model.calibrate(X[300:], y[300:], recalibrate="temperature")
    assert model.controller_.n_rows_ == 450
    assert model.recalibrator_.recalibration_.n_rows == 150
    threshold = model.controller_.threshold_
    again = model.calibrate(X[300:], y[300:], recalibrate="temperature").controller_
    assert again.threshold_ == threshold
    assert model.calibrate(X[300:], y[300:], recalibrate="temperature", recalibration_rows=200)
    assert model.controller_.n_rows_ == 400


# files and the command


def write(path, scores, y, **others):
    frame = pd.DataFrame(scores, columns=[f"p{k}" for k in range(1, scores.shape[1] + 1)])
    frame = frame.assign(grade=y, **others)
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)


COLUMNS = {"scores": "p1,p2,p3,p4,p5", "label": "grade", "classes": range(9), "note": lambda sentence: None}


def test_probabilities_in_a_file_are_refused_where_a_map_needs_logits(tmp_path):
    scores, y = judged(600)
    logits = np.log(np.maximum(scores, 1e-3))
    write(tmp_path / "logits.csv", logits, y)
    write(tmp_path / "mixed.csv", np.concatenate([logits[:100], scores[100:]]), y)
    how = COLUMNS | {"logits": True}
    fitted = orisk.Recalibrator("regression", classes=range(9)).fit(logits, y)
    controller = orisk.RiskController(alpha=0.2, recalibration=fitted)
    calibrated = orisk.jobs.calibrate(controller, tmp_path / "logits.csv", **how)
    words = r"mixed.csv: row 101: the scores are probabilities, where the map of the scores needs logits"
    with pytest.raises(ValueError, match=words):
        orisk.jobs.calibrate(controller, tmp_path / "mixed.csv", **how)
    with pytest.raises(ValueError, match=words):
        orisk.jobs.calibrate(
            orisk.RiskController(alpha=0.2), tmp_path / "mixed.csv", recalibrate="regression", **how
        )
    with pytest.raises(ValueError, match=words):
        orisk.jobs.evaluate(calibrated, tmp_path / "mixed.csv", note=lambda sentence: None)


@pytest.mark.parametrize("by", [{}, {"cluster": "patient", "group": "site"}], ids=["rows", "clusters"])
def test_files_give_the_bits_of_arrays(by, tmp_path):
    scores, y = judged(600)
    patient, site = np.arange(600) // 3, np.array(["a", "b"])[np.arange(600) % 2]
    write(tmp_path / "all.csv", scores, y, patient=patient, site=site)
    for part, rows in enumerate(np.split(np.arange(600), [150, 400])):
        others = {"patient": patient[rows], "site": site[rows]}
        write(tmp_path / f"part{part}.parquet", scores[rows], y[rows], **others)
    controller = orisk.RiskController(alpha=0.1, growth="auto", classes=range(9), random_state=5, check=False)
    of_rows = {"clusters": patient, "groups": site} if by else {}
    plain = orisk.RiskController(alpha=0.1, growth="auto", classes=range(9), random_state=5, check=False)
    plain.calibrate(scores, y, recalibrate="auto", **of_rows)
    whole = orisk.jobs.calibrate(controller, tmp_path / "all.csv", recalibrate="auto", **COLUMNS, **by)
    parts = orisk.jobs.calibrate(controller, tmp_path / "part*.parquet", recalibrate="auto", **COLUMNS, **by)
    for found in (whole, parts):
        assert found.rows_apart_.tolist() == plain.rows_apart_.tolist()
        assert (found.recalibration, found.growth) == (plain.recalibration, plain.growth)
        assert found.thresholds_ == plain.thresholds_
    assert whole.data_blake3_ == plain.data_blake3_


def test_a_cluster_gives_the_bits_of_arrays(client, tmp_path):
    scores, y = judged(600)
    for part, rows in enumerate(np.split(np.arange(600), [150, 400])):
        write(tmp_path / f"part{part}.parquet", scores[rows], y[rows])
    controller, plain = (
        orisk.RiskController(alpha=0.1, growth="auto", classes=range(9), random_state=5, check=False)
        for _ in range(2)
    )
    plain.calibrate(scores, y, recalibrate="auto")
    how = COLUMNS | {"recalibrate": "auto", "dask": client}
    found = orisk.jobs.calibrate(controller, tmp_path / "part*.parquet", **how)
    assert (found.recalibration, found.growth) == (plain.recalibration, plain.growth)
    assert found.thresholds_ == plain.thresholds_


SCALES = ["--scores", "p1,p2,p3,p4,p5", "--classes", "0,1,2,3,4,5,6,7,8"]
ASKED = [*SCALES, "--label", "grade", "--alpha", "0.1"]


def test_the_command_says_what_it_learned_and_later_files_hold_scores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scores, y = judged(900)
    write(tmp_path / "rows.csv", scores[:600], y[:600])
    write(tmp_path / "new.csv", scores[600:], y[600:])
    learn = ["--recalibrate", "auto", "--growth", "auto", "--random-state", "1"]
    learn += ["--recalibration-rows", "200"]
    printed = " ".join(succeeds("calibrate", "rows.csv", *ASKED, *learn, "-o", "cal.json").stdout.split())
    plain = orisk.RiskController(alpha=0.1, growth="auto", classes=range(9), random_state=1)
    plain.calibrate(scores[:600], y[:600], recalibrate="auto", recalibration_rows=200)
    assert "200 rows were set apart" in printed
    assert f"The map of the scores is {plain.recalibrator_.method_!r}" in printed
    assert f"The growth rule is {plain.growth.name}" in printed
    assert "mean size of the sets: frontier" in printed
    assert orisk.RiskController.load("cal.json").threshold_ == plain.threshold_
    succeeds("predict", "cal.json", "new.csv", "-o", "sets.csv")
    sets = plain.predict_set(scores[600:])
    written = pd.read_csv("sets.csv")
    assert written["lower"].tolist() == sets.lower.tolist()
    assert written["upper"].tolist() == sets.upper.tolist()
    succeeds("evaluate", "cal.json", "new.csv", "--json", "found.json")
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["mean_size"][0] == pytest.approx(sets.size.mean())
    succeeds("report", "cal.json", "new.csv", "-o", "report.html")
    succeeds("monitor", "monitor.json", "cal.json", "new.csv")
    succeeds("drift", "drift.json", "cal.json", "new.csv")


WRONG_COMMANDS = {
    "--recalibration-rows are to fit a map or to choose the growth rule": [
        "--recalibration-rows",
        "20",
        "--classes",
        "0,1,2,3,4",
    ],
    "--growth auto chooses the point label too": ["--growth", "auto", "--point", "median"],
    "method='best' is not known": ["--recalibrate", "best"],
    "there are 9 classes": [],
}


@pytest.mark.parametrize("message", WRONG_COMMANDS)
def test_wrong_options_are_one_line(message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows.csv", *judged(100))
    code = 1 if message.startswith("there are") else 2
    printed = refusal(code, "calibrate", "rows.csv", *ASKED, *WRONG_COMMANDS[message], "-o", "cal.json")
    assert message in " ".join(printed.split())


def test_a_wrong_row_of_a_file_is_named(tmp_path):
    scores, y = judged(600)
    scores[417] *= 2
    write(tmp_path / "rows.csv", scores, y)
    with pytest.raises(ValueError, match=r"rows\.csv: row 418: the scores sum to 2"):
        orisk.jobs.calibrate(orisk.RiskController(), tmp_path / "rows.csv", recalibrate="auto", **COLUMNS)


# the promise


def noise(n, seed, K=4):
    """Scores that say nothing, some of them tied, and labels of which one class is rare."""
    random = np.random.default_rng(seed)
    rare = shares_of(np.r_[np.ones(K - 1), 0.1][None])[0]
    return shares_of(random.dirichlet(np.full(K, 0.5), n).round(1) + 1e-3), random.choice(K, n, p=rare)


ALPHA, DRAWS = 0.2, 150
WAYS = {
    "isotonic": {"recalibrate": orisk.Recalibrator("isotonic", folds=2)},
    "growth": {"growth": "auto"},
    "both": {"recalibrate": orisk.Recalibrator("ordered_regression", folds=2), "growth": "auto"},
}


def risk_and_error(way, *, learns_on_calibration_rows):
    risks, n_apart, n_calibration = [], 30, 29
    for seed in range(DRAWS):
        scores, y = noise(360, seed)
        how = dict(way)
        controller = orisk.RiskController(
            alpha=ALPHA,
            growth=how.pop("growth", "frontier"),
            random_state=seed,
            check=False,
            classes=range(4),
        )
        rows = slice(n_apart + n_calibration)
        controller.calibrate(scores[rows], y[rows], recalibration_rows=n_apart, **how)
        if learns_on_calibration_rows:
            apart = controller.rows_apart_
            controller = orisk.RiskController(
                alpha=ALPHA, growth=controller.growth, recalibration=controller.recalibration, check=False
            ).calibrate(scores[apart], y[apart])
        risks.append(1 - orisk.metrics.coverage(y[60:], controller.predict_set(scores[60:])))
    return np.mean(risks), np.std(risks) / np.sqrt(DRAWS)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_learned_on_rows_apart_keeps_the_promise(way):
    risk, error = risk_and_error(WAYS[way], learns_on_calibration_rows=False)
    assert risk < ALPHA + 3 * error


@pytest.mark.parametrize("way", ["isotonic", "both"])
def test_what_is_learned_on_calibration_rows_breaks_the_promise(way):
    risk, error = risk_and_error(WAYS[way], learns_on_calibration_rows=True)
    assert risk > ALPHA + 3 * error
