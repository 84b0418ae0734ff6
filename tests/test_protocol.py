import json
from dataclasses import asdict

import numpy as np
import pytest
import sklearn.neural_network

from ordinalrisk import DivergenceLoss, IntervalSet, RiskController, WeightedLoss, metrics
from ordinalrisk.datasets import simulated_classes
from ordinalrisk.experiments import simulated
from ordinalrisk.experiments.figures import example_rows
from ordinalrisk.experiments.protocol import Outcome, Summary, halves, run_trials, summarise
from ordinalrisk.growth import PaperGrowth

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
                    risk, size = metrics.risk(y[test], sets, loss), metrics.mean_size(sets)
                    expected.append(Outcome(name, growth, alpha, risk, size))
        assert outcomes == expected
    assert trial == 2


def test_calibrates_once_for_all_alphas(monkeypatch):
    calls = []
    calibrate = RiskController.calibrate
    monkeypatch.setattr(RiskController, "calibrate", lambda *args: calls.append(1) or calibrate(*args))
    list(run_trials(*drawn_scores(100), SCENARIOS, growths=GROWTHS, alphas=ALPHAS, trials=5))
    assert len(calls) == 5 * len(SCENARIOS) * len(GROWTHS)


def test_more_trials_continue_fewer():
    few, many = (
        list(run_trials(*drawn_scores(100), SCENARIOS, growths=GROWTHS, alphas=ALPHAS, trials=trials))
        for trials in (2, 4)
    )
    assert many[:2] == few


def test_growth_rules_may_be_objects():
    rules = [PaperGrowth(), PaperGrowth(point="bayes")]
    results = summarise(run_trials(*drawn_scores(100), SCENARIOS, growths=rules, alphas=[0.2], trials=1))
    assert [r.growth for r in results] == [str(rule) for rule in rules] * 2


def test_mean_risk_keeps_within_its_bounds():
    """Theorems 1 and 4 hold for random halves of any fixed rows; 600 trials, four standard errors.

    At 30 calibration rows, leaving out the ``B`` of the budget would show as six or more of them.
    """
    proba, y = drawn_scores(60)
    results = summarise(
        run_trials(proba, y, {"equal": WeightedLoss()}, growths=GROWTHS, alphas=[0.1, 0.2], trials=600)
    )
    for result in results:
        assert result.risk - 4 * result.risk_se <= result.alpha
        assert result.risk + 4 * result.risk_se >= result.alpha - 3 / 31


def test_summary_is_mean_and_standard_error():
    outcomes = [[Outcome("s", "g", 0.1, risk, size)] for risk, size in [(0.1, 2.0), (0.2, 2.0), (0.6, 5.0)]]
    [result] = summarise(outcomes)
    assert (result.scenario, result.growth, result.alpha, result.trials) == ("s", "g", 0.1, 3)
    assert result.risk == pytest.approx(0.3)
    assert result.risk_se == pytest.approx(np.sqrt((0.04 + 0.01 + 0.09) / 2 / 3))
    assert result.size == pytest.approx(3)
    assert result.size_se == pytest.approx(1)


def test_one_trial_has_no_standard_error():
    assert summarise([[Outcome("s", "g", 0.1, 0.2, 3.0)]]) == [
        Summary("s", "g", 0.1, 1, 0.2, None, 3.0, None)
    ]


@pytest.mark.parametrize("trials", [1, 3])
def test_results_survive_json(trials):
    results = summarise(
        run_trials(*drawn_scores(100), SCENARIOS, growths=GROWTHS, alphas=ALPHAS, trials=trials)
    )
    read = json.loads(json.dumps([asdict(result) for result in results], allow_nan=False))
    assert [Summary(**fields) for fields in read] == results


def test_no_trials_are_refused():
    with pytest.raises(ValueError, match="at least 1; got 0"):
        summarise(run_trials(*drawn_scores(10), SCENARIOS, growths=GROWTHS, alphas=ALPHAS, trials=0))


def test_scenarios_are_those_of_the_paper():
    nearest_miss = {name: loss.cost_table(10)[:, 0][1:] for name, loss in simulated.SCENARIOS.items()}
    label = np.arange(1, 10)
    assert nearest_miss["S1"] == pytest.approx(np.ones(9))
    assert nearest_miss["S2"] == pytest.approx(label / 9)
    assert nearest_miss["S3"] == pytest.approx(np.where(label >= 5, 1, 0.5))
    assert nearest_miss["S4"] == pytest.approx(label / 9)
    assert simulated.SCENARIOS["S4"].cost_table(10)[9] == pytest.approx(np.arange(9, -1, -1) / 9)
    assert simulated.MEANING.keys() == simulated.SCENARIOS.keys()


def test_network_scores_four_fifths_of_each_class():
    X, y = simulated_classes(n_per_class=200)
    scores = simulated.network_scores(X, y, seed=1)
    assert np.bincount(scores.y).tolist() == [160] * 10
    assert scores.proba.sum(axis=1) == pytest.approx(1)
    assert np.mean(scores.proba.argmax(axis=1) == scores.y) > 0.5
    again = simulated.network_scores(X, y, seed=1)
    assert np.array_equal(scores.proba, again.proba)


def test_an_unfinished_network_does_not_warn(monkeypatch):
    network = sklearn.neural_network.MLPClassifier
    monkeypatch.setattr(
        sklearn.neural_network, "MLPClassifier", lambda **kwargs: network(**kwargs | {"max_iter": 2})
    )
    scores = simulated.network_scores(*simulated_classes(n_per_class=50))
    assert scores.proba.shape == (400, 10)


def test_examples_are_the_first_of_each_size_and_the_first_miss():
    sets = IntervalSet([0, 1, 0, 2, 0], [1, 1, 2, 2, 0], classes=range(3))
    assert example_rows(np.array([0, 1, 1, 0, 0]), sets) == [1, 0, 2, 3]
    assert example_rows(np.array([0, 1, 1, 0, 0]), sets, n_sizes=1) == [1, 3]
    assert example_rows(np.array([0, 1, 1, 2, 0]), sets) == [1, 0, 2]
