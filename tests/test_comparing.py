"""Comparing losses and growth rules: the results of a controller on each fold, added up and ranked."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from strategies import RULE_NAMES, as_loss, as_rule, ends_of, exact_losses
from unchecked import UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import compare, metrics
from ordinalrisk.selection.compare import ranked

pytestmark = UNCHECKED

LOSSES = {
    "coverage": "coverage",
    "weights": orisk.WeightedLoss([1, 2, 3, 4]),
    "no weight": orisk.WeightedLoss([0, 1, 1, 5], normalize=False),
    "years": orisk.DivergenceLoss(positions=[18, 30, 45, 65], under=2, normalize=False),
    "table": orisk.CostTableLoss([[0, 1, 2, 3], [5, 0, 1, 9], [50, 20, 0, 1], [7, 7, 7, 0]]),
}
GROWTHS = RULE_NAMES
RULES = {name: name for name in GROWTHS} | {"frontier (bayes)": orisk.FrontierGrowth("bayes")}


def by_controllers(proba, y, loss, growth, alpha, folds, seed):
    """The sets of all rows, those of each fold from a controller that was calibrated on the other rows."""
    parts = np.array_split(np.random.default_rng(seed).permutation(len(y)), folds)
    lower, upper = np.empty((2, len(y)), int)
    for fold in parts:
        others = np.setdiff1d(np.arange(len(y)), fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            controller = orisk.RiskController(loss, alpha, growth).calibrate(proba[others], y[others])
        sets = controller.predict_set(proba[fold])
        lower[fold], upper[fold] = sets.lower, sets.upper
    return orisk.IntervalSet(lower, upper, classes=range(proba.shape[1]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", LOSSES)
def test_equals_controllers_on_each_fold(draw, name, dtype):
    proba, y = draw(203, 4, seed=1)
    proba = proba.astype(dtype)
    alphas = [0.004, 0.05, "1/3", 0.9]
    results = compare(
        proba, y, losses={name: LOSSES[name]}, growths=RULES.values(), alphas=alphas, folds=4, random_state=7
    )
    assert [(r.growth, r.alpha) for r in results] == [
        (growth, alpha) for growth in RULES for alpha in [0.004, 0.05, Fraction(1, 3), 0.9]
    ]
    for result in results:
        loss = as_loss(LOSSES[name])
        sets = by_controllers(proba, y, loss, RULES[result.growth], result.alpha, folds=4, seed=7)
        assert (result.loss_name, result.loss) == (name, loss)
        assert result.risk == metrics.risk(y, sets, loss)
        assert result.mean_size.value == metrics.mean_size(sets)
        assert 1 <= result.mean_size.low <= result.mean_size.value <= result.mean_size.high <= 4
        assert result.coverage == metrics.coverage(y, sets)
        assert result.single_labels == np.mean(sets.size == 1)


def test_the_layout_of_rows_does_not_matter(draw):
    proba, y = draw(50, 4)
    spread = np.repeat(proba, 2, axis=1)[:, ::2]
    plain = compare(proba, y, folds=3)
    assert compare(np.asfortranarray(proba), y, folds=3) == compare(spread, y, folds=3) == plain


def test_seed_decides(draw):
    proba, y = draw(100)
    first, again, other = (compare(proba, y, growths="paper", random_state=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_every_combination_by_default(draw):
    proba, y = draw(120, 6)
    results = compare(proba, y)
    n_rules = len(RULE_NAMES)
    assert [r.loss_name for r in results[:: n_rules * 3]] == [
        "coverage",
        "weights 1..6",
        "divergence",
        "divergence squared",
        "under counts double",
    ]
    assert len(results) == 5 * n_rules * 3
    assert {r.alpha for r in results} == {0.01, 0.05, 0.1}
    assert [r.growth for r in results[:12:3]] == ["frontier", "adaptive", "paper", "rps"]
    losses = {r.loss_name: r.loss for r in results}
    assert losses["weights 1..6"] == orisk.WeightedLoss([1, 2, 3, 4, 5, 6])
    assert losses["under counts double"] == orisk.DivergenceLoss(under=2)
    assert all(loss.bound(6) == 1 for loss in losses.values())


def test_risk_is_near_alpha(draw):
    proba, y = draw(20_000, 5)
    for result in compare(proba, y, losses={"coverage": "coverage"}, alphas=[0.05, 0.2]):
        assert abs(result.risk - result.alpha) < 0.005
        assert result.certified


def test_certified_if_every_fold_has_the_rows(draw):
    """24 rows in 5 folds leave 19 or 20 to calibrate with; 0.05 needs 19, 1/21 needs 20."""
    proba, y = draw(24, 3)
    kwargs = {"losses": {"coverage": "coverage"}, "growths": ["frontier"]}
    enough, too_few, none = compare(proba, y, alphas=[0.05, "1/21", 0.001], **kwargs)
    assert enough.certified
    assert not too_few.certified
    assert not none.certified
    assert (none.mean_size, none.risk, none.coverage) == ((3, 3, 3), 0, 1)


# ranking


def test_ranked_by_brute_force(draw):
    rng = np.random.default_rng(0)
    [any_result] = compare(*draw(30, 3), losses={"c": "coverage"}, growths="paper", alphas=[0.1])

    def result(loss, growth, alpha, size, width):
        mean_size = metrics.Estimate(size, size - width, size + width)
        return replace(any_result, loss_name=loss, growth=growth, alpha=alpha, mean_size=mean_size)

    for _ in range(50):
        cells = [
            result(loss, growth, alpha, float(rng.integers(1, 4)), rng.random())
            for growth in ("frontier", "adaptive", "paper", "rps")
            for loss in ("b", "a")
            for alpha in (0.1, 0.05)
        ]
        order = ranked(cells)
        assert sorted(map(id, order)) == sorted(map(id, cells))
        keys = [(r.loss_name, r.alpha) for r in order]
        assert list(dict.fromkeys(keys)) == [("b", 0.1), ("b", 0.05), ("a", 0.1), ("a", 0.05)]
        assert all(keys[i : i + 4] == [keys[i]] * 4 for i in range(0, 16, 4))
        for i in range(0, 16, 4):
            left = [r for r in cells if (r.loss_name, r.alpha) == keys[i]]
            for place in order[i : i + 4]:
                smallest = min(other.mean_size.value for other in left)
                best = next(r for r in left if r.mean_size.value == smallest)
                assert place is best
                left = [r for r in left if r is not best]


def test_ranked_of_nothing():
    assert ranked([]) == []


# how far the mean size is known


@pytest.mark.parametrize(
    ("loss", "growth", "alpha"),
    [
        ("coverage", "frontier", 0.1),
        (orisk.WeightedLoss([4, 3, 2, 1]), "rps", 0.1),
        ("divergence", "paper", 0.05),
    ],
    ids=lambda value: getattr(value, "kind", value),
)
def test_the_interval_of_the_mean_size_covers_what_calibrations_give(draw, loss, growth, alpha):
    """In 0.95 of 200 draws of 400 rows, within its errors; an interval from the sizes alone does not."""
    n, n_draws = 400, 200
    new, _ = draw(5_000, 4, seed=10_000)
    found, sizes = [], []
    for seed in range(n_draws):
        proba, y = draw(n, 4, seed=seed)
        [result] = compare(proba, y, losses={"own": loss}, growths=growth, alphas=[alpha], random_state=seed)
        found.append(result.mean_size)
        sizes.append(orisk.RiskController(loss, alpha, growth).calibrate(proba, y).predict_set(new).size)
    value, low, high = np.transpose(found)
    expected = np.mean(sizes)
    assert 0.91 <= np.mean((low <= expected) & (expected <= high)) <= 0.985
    assert 0.9 <= np.mean(high - low) / (2 * 1.96 * value.std()) <= 1.2
    naive = 1.96 * np.mean([size.std() for size in sizes]) / np.sqrt(n)
    assert np.mean(abs(value - expected) <= naive) < 0.8


def test_the_interval_is_that_of_clusters(draw):
    """Visits of one patient that are alike tell little more than one of them."""
    proba, y = draw(400, 4)
    visits = np.repeat(np.arange(400), 4)
    kwargs = {"losses": {"coverage": "coverage"}, "growths": "frontier", "alphas": [0.1]}
    [apart] = compare(proba[visits], y[visits], **kwargs)
    [together] = compare(proba[visits], y[visits], clusters=visits, **kwargs)
    width = together.mean_size.high - together.mean_size.low
    assert width > 1.6 * (apart.mean_size.high - apart.mean_size.low)


# choosing on the rows that calibrate


def test_choosing_on_the_calibration_rows_breaks_alpha_and_choosing_on_others_keeps_it():
    """One loss for each class, and a rule that ignores it: the smallest sets have the luckiest rows."""
    K, alpha, n_draws, n_parts = 6, 0.06, 70, 8
    losses = {f"class {k}": orisk.WeightedLoss(np.eye(K)[k]) for k in range(K)}
    rng = np.random.default_rng(0)

    def rows(n):
        return rng.dirichlet(np.ones(K), n), rng.integers(0, K, n)

    new, truth = rows(4_000)

    def smallest(proba, y):
        results = compare(proba, y, losses=losses, growths="rps", alphas=[alpha], classes=range(K))
        return min(results, key=lambda result: result.mean_size.value)

    def risk(best, proba, y):
        controller = orisk.RiskController(best.loss, best.alpha, best.growth, classes=range(K))
        return orisk.metrics.risk(truth, controller.calibrate(proba, y).predict_set(new), best.loss)

    same, other = [], []
    for seed in range(n_draws):
        proba, y = rows(99)
        same.append(risk(smallest(proba, y), proba, y))
        proba, y = rows(50 + n_parts * 49)
        choose, calibrate = orisk.splitting.split_rows(len(y), share=Fraction(50, len(y)), random_state=seed)
        best = smallest(proba[choose], y[choose])
        other.append(np.mean([risk(best, proba[part], y[part]) for part in calibrate.reshape(n_parts, 49)]))
    errors = np.std([same, other], axis=1) / np.sqrt(n_draws)
    assert np.mean(same) - 3 * errors[0] > alpha  # a documented fact: 0.075
    assert 3 * errors[1] < 0.1 * alpha
    assert np.mean(other) - 3 * errors[1] <= alpha
    assert np.mean(other) > 0.9 * alpha


# what it takes


def test_names_of_labels_and_frames(draw):
    proba, y = draw(60, 3)
    names = np.array(["low", "mid", "high"])
    plain = compare(proba, y, alphas=0.2)
    assert compare(proba, names[y], alphas="0.2", classes=names) == plain
    frame = pd.DataFrame(proba, columns=names)
    grades = pd.Series(pd.Categorical(names[y], names, ordered=True))
    assert compare(frame, grades, alphas=[0.2]) == plain
    with pytest.raises(ValueError, match="columns of proba are in the order"):
        compare(frame[["mid", "low", "high"]], grades)


def test_tracks_every_loss_and_rule(draw):
    proba, y = draw(40, 3)
    seen = []

    def track(items, total, description):
        items = list(items)
        seen.append((len(items), total, description))
        return items

    tracked = compare(proba, y, growths=["paper", "rps"], track=track)
    assert tracked == compare(proba, y, growths=["paper", "rps"])
    assert seen == [(10, 10, "Comparing losses and growth rules")]


def test_as_many_folds_as_rows(draw):
    proba, y = draw(12, 3)
    [leave_one_out] = compare(proba, y, losses={"c": "coverage"}, growths="rps", alphas=[0.3], folds=12)
    sets = by_controllers(proba, y, "coverage", "rps", 0.3, folds=12, seed=0)
    assert leave_one_out.mean_size.value == metrics.mean_size(sets)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"folds": 1}, r"folds must be a whole number from 2 to the number of rows, 30; got 1"),
        ({"folds": 31}, "from 2 to the number of rows, 30; got 31"),
        ({"folds": 2.5}, "got 2.5"),
        ({"folds": True}, "got True"),
        ({"random_state": -1}, "random_state must be a whole number, 0 or larger; got -1"),
        ({"random_state": "x"}, "random_state must be"),
        ({"growths": ["frontier", "nearest"]}, "growth='nearest' is not known"),
        ({"growths": []}, "growths is empty"),
        ({"growths": ["paper", orisk.PaperGrowth()]}, "'paper' is given more than once"),
        ({"growths": [orisk.PaperGrowth("given")]}, "must find their own point labels"),
        ({"losses": "coverage"}, "losses must map names to losses"),
        ({"losses": {}}, "losses must map names to losses"),
        ({"losses": {"mine": "nearest"}}, "loss='nearest' is not known"),
        ({"losses": {"mine": orisk.WeightedLoss([1, 2])}}, "2 weights, but there are 3 classes"),
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [0.1, 1]}, r"Loss 'coverage': alpha must lie strictly between 0 .* got 1"),
        ({"alphas": ["many"]}, "alpha must be a finite number; got 'many'"),
        ({"classes": ["a", "b"]}, "there are 2 classes"),
    ],
)
def test_says_what_is_wrong(draw, wrong, message):
    with pytest.raises(ValueError, match=message):
        compare(*draw(30, 3), **wrong)


def test_one_row_is_too_few(draw):
    with pytest.raises(ValueError, match="from 2 to the number of rows, 1"):
        compare(*draw(1, 3), folds=2)


def test_invalid_rows_are_refused(draw):
    proba, y = draw(30, 3)
    proba[7, 1] = np.nan
    with pytest.raises(ValueError, match="NaN value at row 7, column 1"):
        compare(proba, y)


# rows in clusters


def clustered(draw, n_rows=240, n_classes=4, seed=3):
    """Rows of patients of one to many visits, alike within a patient."""
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 40, n_rows)
    shared, y = draw(40, n_classes, seed=seed)
    proba = 0.7 * shared[clusters] + 0.3 * rng.dirichlet(np.ones(n_classes), n_rows)
    return (
        proba,
        np.where(rng.random(n_rows) < 0.6, y[clusters], rng.integers(0, n_classes, n_rows)),
        clusters,
    )


def by_definition(proba, y, clusters, loss, growth, alpha, folds, seed):
    """Sets of each fold from the largest threshold that is safe for clusters, in rationals; row by row."""
    n, K = proba.shape
    lower, upper = np.empty(n, int), np.empty(n, int)
    names = [*dict.fromkeys(clusters.tolist())]
    levels = growth.levels(proba, loss)
    bound = loss.bound(K)
    for part in np.array_split(np.random.default_rng(seed).permutation(len(names)), folds):
        held_out = np.isin(clusters, [names[i] for i in part])
        others = np.flatnonzero(~held_out)
        best = -np.inf
        for threshold in {np.inf, *levels[others].ravel().tolist()}:
            costs = exact_losses(y[others], *ends_of(levels[others], threshold), loss, K)
            total = sum(
                Fraction(sum(costs[i] for i in mine), len(mine))
                for name in {*clusters[others].tolist()}
                if (mine := np.flatnonzero(clusters[others] == name).tolist())
            )
            if (total + bound) / (len({*clusters[others].tolist()}) + 1) <= Fraction(str(alpha)):
                best = max(best, threshold)
        lower[held_out], upper[held_out] = ends_of(levels[held_out], best)
    return lower, upper


@pytest.mark.parametrize("name", ["coverage", "weights", "years"])
@pytest.mark.parametrize("growth", ["frontier", "rps"])
def test_clusters_count_as_one_each(draw, name, growth):
    proba, y, clusters = clustered(draw, n_rows=90)
    loss, rule = as_loss(LOSSES[name]), as_rule(growth)
    for alpha in (0.1, 0.35):
        [result] = compare(
            proba,
            y,
            losses={name: loss},
            growths=[rule],
            alphas=[alpha],
            folds=3,
            random_state=2,
            clusters=clusters,
        )
        lower, upper = by_definition(proba, y, clusters, loss, rule, alpha, folds=3, seed=2)
        assert result.mean_size.value == pytest.approx((upper - lower + 1).mean(), abs=1e-12)
        assert result.single_labels == pytest.approx((upper == lower).mean(), abs=1e-12)
        assert result.coverage == pytest.approx(((lower <= y) & (y <= upper)).mean(), abs=1e-12)
        costs = np.array([float(cost) for cost in exact_losses(y, lower, upper, loss, 4)])
        means = [costs[clusters == name].mean() for name in np.unique(clusters)]
        assert result.risk == pytest.approx(np.mean(means), abs=1e-12)


def test_clusters_of_one_row_are_rows(draw):
    proba, y = draw(150, 4)
    plain = compare(proba, y, losses=LOSSES, alphas=[0.05, 0.3])
    for ids in (np.arange(150), [f"row {i}" for i in range(150)]):
        for row, cluster in zip(
            plain, compare(proba, y, losses=LOSSES, alphas=[0.05, 0.3], clusters=ids), strict=True
        ):
            assert cluster.risk == pytest.approx(row.risk, abs=1e-12)
            assert cluster.mean_size == pytest.approx(row.mean_size, abs=1e-9)
            assert replace(cluster, risk=row.risk, mean_size=row.mean_size) == row


def test_clusters_are_what_must_be_enough(draw):
    """24 clusters in 5 folds leave 19 or 20 to calibrate with, however many rows they have."""
    proba, y = draw(240, 3)
    enough, too_few = compare(
        proba,
        y,
        losses={"coverage": "coverage"},
        growths=["frontier"],
        alphas=[0.05, "1/21"],
        clusters=np.arange(240) % 24,
    )
    assert enough.certified
    assert not too_few.certified


def test_repeated_rows_do_not_make_more_certain(draw):
    """Each row ten times is no more than each row once, and its interval as wide."""
    proba, y = draw(60, 4)
    many = np.repeat(np.arange(60), 10)
    kwargs = {"losses": {"coverage": "coverage"}, "growths": "frontier", "alphas": [0.2]}
    [once] = compare(proba, y, clusters=np.arange(60), **kwargs)
    [often] = compare(proba[many], y[many], clusters=many, **kwargs)
    assert often.mean_size == pytest.approx(once.mean_size)
    assert often.risk == pytest.approx(once.risk)


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (["a"] * 29, "clusters must have one value for each of the 30 rows"),
        (["a", None] * 15, r"clusters\[1\] is missing"),
        ([*"abcd", *"aa" * 13], "folds must be a whole number from 2 to the number of clusters, 4; got 5"),
    ],
)
def test_clusters_say_what_is_wrong(draw, clusters, message):
    with pytest.raises(ValueError, match=message):
        compare(*draw(30, 3), clusters=clusters)
