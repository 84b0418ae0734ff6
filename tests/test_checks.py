"""Checks of calibration rows: their findings on every kind of rows, and their false alarms."""

import json
import math
import re
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import torch
from command import succeeds
from devices import DEVICE
from populations import survey
from sklearn.linear_model import LogisticRegression
from strategies import labels_drawn

import ordinalrisk as orisk
from benchmarks.check_false_alarms import alarms
from ordinalrisk import CalibrationWarning, RiskController, WeightedLoss, jobs, metrics
from ordinalrisk.probabilities import softmax

K = 5
COLUMNS = [f"p{k}" for k in range(K)]


def good_rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    proba = softmax(-((np.arange(K) - rng.normal(2, 1.8, n)[:, None]) ** 2) / 2)
    return proba, labels_drawn(proba, rng)


def vague_rows(n=3_000, shares=(0.03, 0.07, 0.2, 0.4, 0.3), seed=0):
    """Survey data: right scores that know little, and a rare class."""
    rng = np.random.default_rng(seed)
    proba = softmax(np.log(shares) + np.outer(rng.normal(0, 1, n), np.arange(K) - 2) / 2)
    return proba, labels_drawn(proba, rng)


def said(call):
    """The messages of the category; any other warning is an error, as in all tests."""
    with warnings.catch_warnings(record=True, category=CalibrationWarning) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        call()
    return [str(each.message) for each in caught]


def calibrated(proba, y, **options):
    return lambda: RiskController(**{"alpha": 0.1} | options).calibrate(proba, y)


# --- the same wherever the rows are

PROBA, Y = good_rows()
REVERSED = PROBA[:, ::-1].copy()
EXPECTED = said(calibrated(REVERSED, Y))


def by_batches(**options):
    batches = [(REVERSED[rows], Y[rows]) for rows in (slice(7), slice(7, 300), slice(300, None))]
    RiskController(alpha=0.1, **options).calibrate_batches(batches)


def by_files(folder, **options):
    for part, rows in enumerate(np.array_split(np.arange(len(Y)), 3)):
        frame = pd.DataFrame(REVERSED[rows], columns=COLUMNS).assign(grade=Y[rows])
        frame.to_parquet(folder / f"{part}.parquet")
    files = jobs.calibrate(
        RiskController(alpha=0.1, **options),
        str(folder / "*.parquet"),
        scores=COLUMNS,
        label="grade",
        classes=range(K),
    )
    assert files.check is options.get("check", True)


def by_dask(**options):
    chunks = (7, 293, 300)
    proba, y = da.from_array(REVERSED, (chunks, K)), da.from_array(Y, (chunks,))
    RiskController(alpha=0.1, **options).calibrate(proba, y)


WAYS = {
    "arrays": lambda folder, **options: calibrated(REVERSED, Y, **options)(),
    "batches": lambda folder, **options: by_batches(**options),
    "files": by_files,
    "dask": lambda folder, **options: by_dask(**options),
}


def test_the_cause_is_named_with_its_numbers():
    (sentences,) = EXPECTED
    worse, shares = map(float, re.findall(r"(?:score is|of the shares) (0\.\d+)", sentences))
    n, share = len(Y), np.bincount(Y) / len(Y)
    at_most = (np.arange(K - 1) >= Y[:, None]).astype(float)
    assert worse == pytest.approx(((REVERSED.cumsum(axis=1)[:, :-1] - at_most) ** 2).mean(), abs=5e-4)
    in_sample = ((share.cumsum()[:-1] - at_most) ** 2).mean()
    assert shares == pytest.approx(in_sample * (n / (n - 1)) ** 2, abs=2e-3)
    assert "pass proba[:, [4, 3, 2, 1, 0]]" in sentences


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_checked_wherever_they_are(way, tmp_path):
    assert said(lambda: WAYS[way](tmp_path)) == EXPECTED
    assert said(lambda: WAYS[way](tmp_path, check=False)) == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_rows_on_a_device_are_checked(dtype, interpreter, on_a_device):
    proba = torch.as_tensor(REVERSED[:150], device=DEVICE)
    proba = (proba * 64).round() / 64  # exact in each type
    proba[:, -1] += 1 - proba.sum(axis=1)
    proba[:, 0] += proba[:, -1].clamp(max=0)
    proba = proba.clamp(min=0).to(dtype)
    assert "in reverse order" in said(calibrated(proba, torch.as_tensor(Y[:150], device=DEVICE)))[0]


@pytest.mark.parametrize(
    ("rows", "remedy"),
    [
        ((PROBA * 20).round() + 1, "counts or rounded percentages; pass proba / proba.sum"),
        ((PROBA * 100).round(1), "counts or rounded percentages; pass proba / proba.sum"),
        (PROBA * 100, "percentages; divide them by 100"),
        (np.column_stack([np.arange(len(Y)), PROBA]), "leave out column 0, if its whole numbers"),
        (PROBA / PROBA.sum(axis=0), r"its columns do; pass proba.T, or take the softmax"),
        (PROBA * (Y > 0)[:, None], "all its scores are 0; leave the row out"),
    ],
    ids=["counts", "rounded", "percentages", "numbers", "by column", "zeros"],
)
def test_remedies_are_those_of_the_host_on_a_device(rows, remedy, interpreter, on_a_device):
    for proba in (rows, torch.as_tensor(rows, device=DEVICE)):
        with pytest.raises(ValueError, match=remedy):
            RiskController(alpha=0.1).calibrate(proba, Y)


def test_an_estimator_checks_its_held_out_rows():
    X = np.random.default_rng(0).normal(size=(600, 1))

    class Reverse(LogisticRegression):
        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

    y = np.digitize(X[:, 0], [-0.7, 0.7])
    model = orisk.OrdinalRiskClassifier(Reverse(), recalibrate=None, random_state=0)  # a map would undo it
    (sentences,) = said(lambda: model.fit(X, y))
    assert "in reverse order" in sentences
    assert said(lambda: model.set_params(check=False).fit(X, y)) == []


@pytest.mark.parametrize("loss", ["coverage", WeightedLoss([5, 1, 1, 1, 1])], ids=str)
@pytest.mark.parametrize("growth", ["frontier", "paper", orisk.AdaptiveGrowth(point="given")], ids=str)
def test_large_data_are_sampled_in_any_cut(loss, growth):
    proba, y = vague_rows(30_000)
    points = {"point_labels": proba.argmax(axis=1)} if getattr(growth, "point", "") == "given" else {}
    whole = RiskController(loss, 0.25, growth)
    expected = said(lambda: whole.calibrate(proba, y, **points))
    assert expected
    assert "on the sampled calibration rows" in expected[0]
    cuts = [slice(0, 1), slice(1, 20_001), slice(20_001, None)]
    batches = [
        {"proba": proba[rows], "y": y[rows], **{name: each[rows] for name, each in points.items()}}
        for rows in cuts
    ]
    assert said(lambda: RiskController(loss, 0.25, growth).calibrate_batches(batches)) == expected


def test_groups_have_their_own_sets():
    """Each group is counted with the threshold that it has."""
    proba, y = vague_rows(5_000)
    groups = np.where(np.arange(len(y)) % 2, "north", "south")
    controller = RiskController(alpha=0.25)
    (sentences,) = said(lambda: controller.calibrate(proba, y, groups=groups.tolist()))
    coverage = metrics.class_coverage(y, controller.predict_set(proba, groups=groups))
    n = np.bincount(y)
    assert f"0 ({round(coverage[0] * n[0])} of {n[0]} rows covered)" in sentences


def test_a_cluster_counts_once():
    proba, y = vague_rows(60)
    rows = np.repeat(np.arange(60), 50)
    assert said(calibrated(proba[rows], y[rows], alpha=0.25)) != []
    assert said(lambda: RiskController(alpha=0.25).calibrate(proba[rows], y[rows], clusters=rows)) == []


# --- the warning is a choice


def test_a_check_is_not_saved(tmp_path):
    assert (
        said(lambda: RiskController(alpha=0.1, check=False).calibrate(REVERSED, Y).save(tmp_path / "a")) == []
    )
    said(lambda: RiskController(alpha=0.1).calibrate(REVERSED, Y).save(tmp_path / "b"))
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    assert RiskController.load(tmp_path / "a").check is True


def test_a_check_changes_no_calibration():
    one, other = (RiskController(alpha=0.1, check=check) for check in (True, False))
    said(lambda: [each.calibrate(REVERSED, Y) for each in (one, other)])
    assert one.threshold_ == other.threshold_
    assert one.data_blake3_ == other.data_blake3_


def test_a_warning_that_is_an_error_leaves_the_controller_as_it_was():
    controller = RiskController(alpha=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        with pytest.raises(CalibrationWarning, match="in reverse order"):
            controller.calibrate(REVERSED, Y)
    assert not hasattr(controller, "threshold_")


def test_the_line_of_the_caller_is_named():
    with pytest.warns(CalibrationWarning) as caught:
        RiskController(alpha=0.1).calibrate(REVERSED, Y)
    assert caught[0].filename == __file__


def test_few_rows_and_unlikely_deltas_have_the_category():
    assert "needs at least 9" in said(calibrated(PROBA[:3], Y[:3]))[0]
    assert "for a confidence of 0.95" in said(lambda: RiskController(delta=0.95))[0]
    assert "needs at least 9" in said(calibrated(PROBA[:3], Y[:3], check=False))[0]


def test_the_command_says_it_in_options(here):
    pd.DataFrame(vague_rows()[0], columns=COLUMNS).assign(grade=vague_rows()[1]).to_csv("s.csv", index=False)
    command = ["calibrate", "s.csv", "--alpha", 0.25, "--classes", "0,1,2,3,4", "-o", "cal.json"]
    command += ["--label", "grade", "--scores", ",".join(COLUMNS)]
    text = " ".join(succeeds(*command).stdout.split())
    assert "Note: Some classes are covered less than half as often as 1 - alpha = 0.75" in text
    assert "--relative" in text
    assert "--per-class keeps alpha for each class; --alpha label=risk,... gives each class" in text
    assert "Note" not in succeeds(*command, "--no-check").stdout


# --- what sets miss


def test_a_rare_class_is_named_with_what_its_sets_cover():
    proba, y = vague_rows(5_000)
    controller = RiskController(alpha=0.25)
    (sentences,) = said(lambda: controller.calibrate(proba, y))
    coverage = metrics.class_coverage(y, controller.predict_set(proba))
    n = np.bincount(y)
    few = [k for k in range(K) if coverage[k] < 0.375]
    assert few == [0, 1]
    for k in few:
        assert f"{k} ({round(coverage[k] * n[k])} of {n[k]} rows covered)" in sentences
    for remedy in (
        "`relative=True` with a larger weight for them",
        "`condition_on='label'`",
        "`alpha={label: risk, ...}`",
    ):
        assert remedy in sentences


def test_remedies_that_are_taken_are_not_named():
    proba, y = vague_rows()
    assert said(calibrated(proba, y, alpha=0.25, condition_on="label")) == []
    loss = WeightedLoss([1, 1, 1, 1, 10])
    (sentences,) = said(calibrated(proba, y, loss=loss, alpha=0.25, condition_on="label"))
    assert "covered less than half as often" in sentences
    assert "condition_on" not in sentences


def test_a_raised_weight_that_hurts_is_said():
    """Weights 1 to 5 on right scores: more of every class is missed, of the heavy ones too."""
    proba, y = good_rows(3_000)
    (sentences,) = said(
        calibrated(proba, y, loss=WeightedLoss([1, 2, 3, 4, 5]), alpha=0.25, growth="adaptive")
    )
    plain = RiskController(alpha=0.25).calibrate(proba, y)
    assert "The weights hurt classes that they should protect" in sentences
    assert "`relative=True`" in sentences
    missed = 1 - metrics.class_coverage(y, plain.predict_set(proba))
    for k, after in re.findall(r"(\d) \(weight .*?, ([\d.]+)% with equal weights", sentences):
        assert int(k) >= 3
        assert float(after) == pytest.approx(100 * missed[int(k)], abs=3)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_a_class_with_few_rows_raises_no_alarm(n):
    proba, y = vague_rows()
    rows = np.concatenate([np.flatnonzero(y == 0)[:n], np.flatnonzero(y > 1)])
    assert not re.search(r"\b0 \(", " ".join(said(calibrated(proba[rows], y[rows], alpha=0.25))))


@pytest.mark.parametrize(("n", "weight"), [(200, 1), (200, 5), (600, 5), (2_000, 1), (2_000, 5), (2_000, 20)])
def test_a_weight_raised_to_protect_a_rare_class_is_said(n, weight):
    """As tried on a survey: the sets of all rows shrink, and the rare class is missed as before."""
    proba, y = survey(n, 1)
    controller = RiskController(WeightedLoss([weight, 1, 1, 1, 1]), alpha=0.1)
    (sentences,) = said(lambda: controller.calibrate(proba, y))
    sets = controller.predict_set(proba)
    coverage, rows = metrics.class_coverage(y, sets), np.bincount(y)
    named = re.findall(r"(\d) \(([\d,]+) of ([\d,]+) rows covered", sentences)
    assert {int(k): int(covered) for k, covered, _ in named} == {
        k: round(coverage[k] * rows[k]) for k in np.flatnonzero(coverage < 0.4).tolist()
    }
    assert ("0 (" in sentences) == (weight < 20)
    for remedy in ("`relative=True`", "`condition_on='label'`", "`alpha={label: risk, ...}`"):
        assert remedy in sentences
    assert ("`condition_on='label'` and equal weights keep alpha" in sentences) == (weight > 1)
    if weight == 1:
        assert "With these weights" not in sentences
        return
    plain = RiskController(alpha=0.1, check=False).calibrate(proba, y).predict_set(proba)
    after, before = sets.contains(y).mean(), plain.contains(y).mean()
    assert after < 0.7
    assert before >= 0.9
    collapse = (
        f"With these weights {after:.1%} of all rows together are covered on the calibration rows, "
        f"with equal weights {before:.1%}: alpha limits the mean weight of what is missed"
    )
    assert collapse in sentences


def test_the_remedies_protect_a_rare_class():
    proba, y = survey(2_000, 1)
    new_proba, new_y = survey(4_000, 2)
    share = {0: 0.1} | dict.fromkeys(range(1, K), 0.3)
    remedies = [{"loss": WeightedLoss([20, 1, 1, 1, 1]), "relative": True}, {"condition_on": "label"}]
    for options in [*remedies, {"alpha": share}]:
        sets = RiskController(**{"alpha": 0.1} | options).calibrate(proba, y).predict_set(new_proba)
        coverage = metrics.class_coverage(new_y, sets)
        assert coverage[0] > 0.7
        assert sets.contains(new_y).mean() > 0.7


def test_weights_hurt_a_promise_for_each_class_too():
    """Of a class that weighs a fifth of the largest weight, half may be missed at alpha=0.1."""
    proba, y = survey(2_000, 1)
    weighted = {"loss": WeightedLoss([5, 1, 1, 1, 1]), "condition_on": "label"}
    controller = RiskController(**weighted, alpha=0.1)
    (sentences,) = said(lambda: controller.calibrate(proba, y))
    covered = controller.predict_set(proba).contains(y).mean()
    assert f"With these weights {covered:.1%} of all rows" in sentences
    assert "What helps: equal weights keep alpha for each class; `alpha={" in sentences
    assert said(calibrated(proba, y, condition_on="label")) == []


def test_scores_that_do_not_fit_hide_no_weights_that_hurt():
    proba, y = good_rows(3_000)
    texts = said(calibrated(proba[:, ::-1], y, loss=WeightedLoss([1, 1, 20, 1, 1]), alpha=0.2))
    assert "in reverse order" in texts[0]
    assert texts[1].startswith("With these weights")


def test_mild_weights_are_not_held_against_anybody():
    assert said(calibrated(*good_rows(3_000), loss=WeightedLoss([1, 1, 1, 1.2, 1.5]))) == []


def test_groups_are_compared_with_their_own_equal_weights():
    proba, y = survey(2_000, 1)
    groups = np.where(np.arange(len(y)) % 3, "north", "south")
    controller = RiskController(WeightedLoss([5, 1, 1, 1, 1]), alpha=0.1)
    (sentences,) = said(lambda: controller.calibrate(proba, y, groups=groups))
    plain = RiskController(alpha=0.1, check=False).calibrate(proba, y, groups=groups)
    covered = plain.predict_set(proba, groups=groups).contains(y).mean()
    assert f"with equal weights {covered:.1%}" in sentences


@pytest.mark.parametrize(
    ("counts", "warned"),
    [
        ((1, 999), False),
        ((2, 44), False),
        ((2, 45), False),
        ((2, 63), True),
        ((20, 30, 40), True),
        ((50, 0), False),
    ],
)
def test_groups_that_are_the_classes_are_said_unless_it_can_be_chance(counts, warned):
    """The n! / (n_1! .. n_K! K!) ways to form such groups must be more than a thousand."""
    y = np.repeat(range(len(counts)), counts)
    proba = np.full((len(y), len(counts)), 1 / len(counts))
    calibrate = lambda groups: RiskController(alpha=0.1).calibrate(proba, y, groups=groups)  # noqa: E731
    alike = lambda groups: "look like the true classes" in " ".join(said(lambda: calibrate(groups)))  # noqa: E731
    ways = math.factorial(len(y)) // math.prod(map(math.factorial, counts))
    assert (ways > 1_000 * math.factorial(np.count_nonzero(counts)) and counts[1] > 0) == warned
    assert alike([f"site {k}" for k in y]) == warned
    assert not alike(["site 9", *(f"site {k}" for k in y[1:])])  # of one class there are two groups
    assert not alike(["one"] * len(y))


def test_what_alpha_does_not_count_is_not_held_against_it():
    assert said(calibrated(*vague_rows(), loss="divergence", alpha=0.2)) == []
    (sentences,) = said(calibrated(*vague_rows(), loss=WeightedLoss([0, 0, 1, 1, 1]), alpha=0.25))
    assert not re.search(r"\b[01] \(", sentences)  # misses of these are free


def test_rows_of_another_population_are_not_counted():
    proba, y = vague_rows()
    assert said(lambda: RiskController(alpha=0.25).calibrate(proba, y, class_ratios=[1] * K)) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0.9}, "For a coverage of 0.9 write `alpha=0.1`"),
        ({"alpha": dict.fromkeys(range(K), 0.8)}, "For a coverage of 0.8 write `alpha=0.2`"),
        (
            {"alpha": 3, "loss": orisk.DivergenceLoss(normalize=False)},
            "more than half of the largest loss, 4",
        ),
        ({"alpha": 0.5}, None),
        ({"alpha": {0: 0.9} | dict.fromkeys(range(1, K), 0.2)}, None),
    ],
    ids=str,
)
def test_a_coverage_instead_of_alpha(options, words):
    texts = [text for text in said(calibrated(PROBA, Y, **options)) if text.startswith("alpha=")]
    assert len(texts) == (words is not None)
    assert words is None or words in texts[0]


@pytest.mark.parametrize("loss", ["divergence", WeightedLoss([1, 1, 1, 1, 2])], ids=str)
def test_no_coverage_is_suggested_for_a_loss_that_is_none(loss):
    texts = [text for text in said(calibrated(PROBA, Y, alpha=0.6, loss=loss)) if text.startswith("alpha=")]
    (sentences,) = texts
    assert sentences.endswith("half of the largest loss, 1: alpha is the expected loss, not the coverage.")


# --- scores


def test_ties_are_said_if_alpha_can_not_afford_them():
    top = np.where(np.sort(PROBA)[:, [-2]] <= PROBA, PROBA, 0)
    top /= top.sum(axis=1, keepdims=True)
    share = (top[np.arange(len(Y)), Y] == 0).mean()
    (sentences,) = said(calibrated(top, Y, alpha=0.1))
    assert f"In {share:.0%} of 600 calibration rows the score of the true class is exactly 0" in sentences
    assert said(calibrated(top, Y, alpha=0.3)) == []
    assert said(calibrated(top, Y, loss="divergence", alpha=0.1)) == []


@pytest.mark.parametrize("names", [list("abcde"), [f"grade {k}" for k in range(K)], list("12345")], ids=str)
def test_letters_and_numbered_names_are_in_order(names):
    controller = RiskController(alpha=0.1, classes=names)
    (sentences,) = said(lambda: controller.calibrate(REVERSED, np.array(names)[Y]))
    assert "If that is so, pass proba[:, [4, 3, 2, 1, 0]]; if not" in sentences


def test_of_words_in_alphabetical_order_the_classes_come_first():
    names = ["fair", "good", "poor", "very good", "very poor"]
    labels = np.array(["very poor", "poor", "fair", "good", "very good"])[Y]
    (sentences,) = said(lambda: RiskController(alpha=0.1, classes=names).calibrate(PROBA, labels))
    classes, columns = sentences.index("pass `classes="), sentences.index("pass proba[:, ")
    assert 0 < classes < columns
    meant = json.loads(sentences[classes:].split("=", 1)[1].split("`")[0].replace("'", '"'))
    assert said(lambda: RiskController(alpha=0.1, classes=meant).calibrate(PROBA, labels)) == []


@pytest.mark.parametrize(
    ("n", "n_wrong", "warned"), [(200, 1, True), (199, 0, False), (600, 3, True), (600, 4, False)]
)
def test_a_model_that_knows_its_rows_is_said(n, n_wrong, warned):
    """As a random forest on its training rows: from 200 rows on, with at most 0.5 % wrong."""
    proba = softmax(9 * np.eye(K)[Y[:n]])
    proba[:n_wrong] = 1 / K  # the true class is most probable, but so are the others
    texts = said(calibrated(proba, Y[:n]))
    assert any("Was the model trained on these rows" in text for text in texts) == warned
    assert not warned or f"in {n - n_wrong} of {n} calibration rows" in texts[0]
    assert said(calibrated(proba, Y[:n], check=False)) == []


def test_a_very_common_class_does_not_look_like_training_rows():
    y = np.append(np.zeros(597, int), [1, 2, 3])
    always_common = np.tile(softmax([np.arange(K)[::-1]]), (600, 1))
    assert not any("trained" in text for text in said(calibrated(always_common, y)))


def test_scores_without_skill_raise_no_alarm():
    shares = np.bincount(Y) / len(Y)
    assert said(calibrated(np.tile(shares, (len(Y), 1)), Y, alpha=0.3, condition_on=None)) == []


def test_a_single_class_raises_no_alarm():
    assert said(calibrated(PROBA, np.full(len(Y), 2))) == []


def test_two_classes_are_checked():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    (sentences,) = said(calibrated(np.stack([p, 1 - p], axis=1), y))
    assert "in reverse order" in sentences
    assert said(calibrated(np.stack([1 - p, p], axis=1), y > 0.5)) == []  # booleans of two classes


def test_many_classes_are_checked():
    rng = np.random.default_rng(0)
    proba = softmax(-((np.arange(40) - rng.uniform(0, 40, 800)[:, None]) ** 2) / 20)
    y = labels_drawn(proba, rng)
    assert said(calibrated(proba, y)) == []
    (sentences,) = said(calibrated(proba[:, ::-1], y))
    assert "put them into the order of the classes" in sentences


@pytest.mark.parametrize("first", range(0, 1_000, 200))
def test_healthy_rows_raise_no_alarm(first):
    """At most 1 % of a thousand data sets of 50 to 5,000 rows: scores are healthy, what sets miss is true."""
    assert sum(bool(alarms(seed)) for seed in range(first, first + 200)) <= 2


def test_wrong_orders_are_found_in_small_data():
    """The power of the check: of 50 data sets of 100 rows each."""
    found = 0
    for seed in range(50):
        proba, y = good_rows(100, seed)
        found += "in reverse order" in " ".join(said(calibrated(proba[:, ::-1], y)))
    assert found >= 48


def test_a_check_looks_at_few_rows():
    proba, y = good_rows(100_000)
    (sentences,) = said(calibrated(proba[:, ::-1], y))
    (n,) = re.findall(r"on ([\d,]+) calibration rows", sentences)
    assert 2_000 < int(n.replace(",", "")) <= 5_000
