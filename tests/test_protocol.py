import json
from dataclasses import asdict

import numpy as np
import pytest
import sklearn.neural_network

from ordinalrisk import DivergenceLoss, IntervalSet, PaperGrowth, RiskController, WeightedLoss, metrics
from ordinalrisk.datasets import simulated_classes
from reproduction import simulated
from reproduction.figures import example_rows
from reproduction.protocol import Outcome, TrialMeans, halves, means_over_trials, run_trials

SCENARIOS = {"equal": WeightedLoss(), "far": DivergenceLoss()}
GROWTHS = ["paper", "frontier"]
ALPHAS = [0.05, 0.2]


def drawn_scores(n, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([1, 2, 3, 2, 1], size=n)
    return proba, np.array([rng.choice(5, p=p) for p in proba])


@pytest.mark.parametrize("n_rows", [2, 3, 10, 101])
def test_halves_are_a_partition(n_rows):
    calibration, test = halves(n_rows, trial=4, seed=2)
    assert len(calibration) == n_rows // 2
    assert sorted([*calibration, *test]) == list(range(n_rows))


def test_halves_depend_on_trial_and_seed_only():
    assert np.array_equal(halves(50, 1, 2), halves(50, 1, 2))
    for trial, seed in [(2, 1), (1, 3), (3, 2)]:
        assert not np.array_equal(halves(50, 1, 2), halves(50, trial, seed))


def test_every_cell_is_a_calibration_of_its_own():
    """One calibration for all alphas gives what a calibration for each gives."""
    proba, y = drawn_scores(300)
    trials = run_trials(proba, y, SCENARIOS, growths=GROWTHS, alphas=ALPHAS, trials=3, seed=7)
    for trial, outcomes in enumerate(trials):
        calibration, test = halves(300, trial, seed=7)
        expected = []
        for name, loss in SCENARIOS.items():
            for growth in GROWTHS:
                for alpha in ALPHAS:
                    controller = RiskController(loss=loss, alpha=alpha, growth=growth)
                    controller.calibrate(proba[calibration], y[calibration])
                    sets = controller.predict_set(proba[test])
                    expected.append((name, growth, alpha))
                    outcome = outcomes[len(expected) - 1]
                    assert outcome.risk == pytest.approx(metrics.risk(y[test], sets, loss), abs=1e-12)
                    assert outcome.size == pytest.approx(metrics.mean_size(sets), abs=1e-12)
                    assert outcome.class_coverage == pytest.approx(metrics.class_coverage(y[test], sets))
                    sizes = [sets.size[y[test] == label].mean() for label in range(5)]
                    assert outcome.class_size == pytest.approx(sizes)
        assert [(o.scenario, o.growth, o.alpha) for o in outcomes] == expected
    assert trial == 2


def test_levels_are_computed_once_for_all_trials():
    calls = []

    class CountedGrowth(PaperGrowth):
        def levels(self, *args):
            calls.append(1)
            return super().levels(*args)

    list(run_trials(*drawn_scores(100), SCENARIOS, growths=[CountedGrowth()], alphas=ALPHAS, trials=5))
    assert len(calls) == len(SCENARIOS)


def test_too_few_rows_are_said():
    with pytest.warns(UserWarning, match="alpha=0.05 needs at least 19 calibration rows .* got 10, so every"):
        [results] = run_trials(
            *drawn_scores(20), {"equal": WeightedLoss()}, growths=["paper"], alphas=ALPHAS, trials=1
        )
    assert (results[0].risk, results[0].size) == (0, 5)


def test_more_trials_continue_fewer():
    few, many = (
        list(run_trials(*drawn_scores(100), SCENARIOS, growths=GROWTHS, alphas=ALPHAS, trials=trials))
        for trials in (2, 4)
    )
    assert many[:2] == few


def test_growth_rules_may_be_objects():
    rules = [PaperGrowth(), PaperGrowth(point="bayes")]
    results = means_over_trials(
        run_trials(*drawn_scores(100), SCENARIOS, growths=rules, alphas=[0.2], trials=1)
    )
    assert [r.growth for r in results] == [str(rule) for rule in rules] * 2


def test_mean_risk_keeps_within_its_bounds():
    """Theorems 1 and 4 hold for random halves of any fixed rows; 600 trials, four standard errors.

    At 30 calibration rows, leaving out the ``B`` of the budget would show as six or more of them.
    """
    proba, y = drawn_scores(60)
    results = means_over_trials(
        run_trials(proba, y, {"equal": WeightedLoss()}, growths=GROWTHS, alphas=[0.1, 0.2], trials=600)
    )
    for result in results:
        assert result.risk - 4 * result.risk_se <= result.alpha
        assert result.risk + 4 * result.risk_se >= result.alpha - 3 / 31


def test_summary_is_mean_and_standard_error():
    nan = np.nan
    drawn = [(0.1, 2.0, (0.5, nan, nan)), (0.2, 2.0, (0.7, 0.9, nan)), (0.6, 5.0, (0.9, 0.8, nan))]
    [result] = means_over_trials([[Outcome("s", "g", 0.1, *means, (1.0, 2.0, nan))] for means in drawn])
    assert (result.scenario, result.growth, result.alpha, result.trials) == ("s", "g", 0.1, 3)
    assert result.risk == pytest.approx(0.3)
    assert result.risk_se == pytest.approx(np.sqrt((0.04 + 0.01 + 0.09) / 2 / 3))
    assert result.size == pytest.approx(3)
    assert result.size_se == pytest.approx(1)
    assert result.class_coverage[:2] == pytest.approx((0.7, 0.85))
    assert result.class_size[:2] == (1, 2)
    assert (result.class_coverage[2], result.class_size[2]) == (None, None)


def test_one_trial_has_no_standard_error():
    assert means_over_trials([[Outcome("s", "g", 0.1, 0.2, 3.0, (0.8, 0.9), (2.0, 4.0))]]) == [
        TrialMeans("s", "g", 0.1, 1, 0.2, None, 3.0, None, (0.8, 0.9), (2.0, 4.0))
    ]


@pytest.mark.parametrize("trials", [1, 3])
def test_results_survive_json(trials):
    results = means_over_trials(
        run_trials(*drawn_scores(100), SCENARIOS, growths=GROWTHS, alphas=ALPHAS, trials=trials)
    )
    read = json.loads(json.dumps([asdict(result) for result in results], allow_nan=False))
    parts = ("class_coverage", "class_size")
    assert [TrialMeans(**f | {part: tuple(f[part]) for part in parts}) for f in read] == results


def test_no_trials_are_refused():
    with pytest.raises(ValueError, match="at least 1; got 0"):
        means_over_trials(run_trials(*drawn_scores(10), SCENARIOS, growths=GROWTHS, alphas=ALPHAS, trials=0))


def test_scenarios_are_those_of_the_paper():
    scenarios = simulated.EXPERIMENT.scenarios
    nearest_miss = {name: loss.cost_table(10)[:, 0][1:] for name, loss in scenarios.items()}
    label = np.arange(1, 10)
    assert nearest_miss["S1"] == pytest.approx(np.ones(9))
    assert nearest_miss["S2"] == pytest.approx(label / 9)
    assert nearest_miss["S3"] == pytest.approx(np.where(label >= 5, 1, 0.5))
    assert nearest_miss["S4"] == pytest.approx(label / 9)
    assert scenarios["S4"].cost_table(10)[9] == pytest.approx(np.arange(9, -1, -1) / 9)


def test_network_scores_four_fifths_of_each_class():
    X, y = simulated_classes(n_per_class=200)
    scores = simulated.network_scores(X, y, seed=1)
    assert np.bincount(scores.y).tolist() == [160] * 10
    assert scores.proba().sum(axis=1) == pytest.approx(1)
    assert np.mean(scores.proba().argmax(axis=1) == scores.y) > 0.5
    again = simulated.network_scores(X, y, seed=1)
    assert np.array_equal(scores.logits, again.logits)


def test_an_unfinished_network_does_not_warn(monkeypatch):
    network = sklearn.neural_network.MLPClassifier
    monkeypatch.setattr(
        sklearn.neural_network, "MLPClassifier", lambda **kwargs: network(**kwargs | {"max_iter": 2})
    )
    scores = simulated.network_scores(*simulated_classes(n_per_class=50))
    assert scores.logits.shape == (400, 10)


def test_examples_are_the_first_of_each_size_and_the_first_miss():
    sets = IntervalSet([0, 1, 0, 2, 0], [1, 1, 2, 2, 0], classes=range(3))
    assert example_rows(np.array([0, 1, 1, 0, 0]), sets) == [1, 0, 2, 3]
    assert example_rows(np.array([0, 1, 1, 0, 0]), sets, n_sizes=1) == [1, 3]
    assert example_rows(np.array([0, 1, 1, 2, 0]), sets) == [1, 0, 2]
