"""What recalibration does when it is fitted on few rows: sizes relative to the scores as they are.

First with models that were trained on many rows, then with models that were trained on the same few rows, by
OrdinalRiskClassifier.

python -m benchmarks.field.few_rows        after python -m benchmarks --section field
"""

from __future__ import annotations

import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import ordinalrisk as orisk

from .measure import ALPHAS, LOSSES
from .scores import MOST_ROWS, Scores, pipeline_of, scores
from .targets import Target, installed

ROWS, SEEDS = (30, 100), (10, 11)
TRAINED_ON, QUICK_MODELS = (30, 100, 300), ("random forest", "logistic regression")
TREES = 30


def main() -> None:
    """Print a line for each number of rows."""
    pairs = [(target, model) for target in installed()[0] for model in MODELS]
    kept = [scores(target, model) for target, model in pairs]
    for n in ROWS:
        changes = np.array([[change(scored, n, seed) for seed in SEEDS] for scored in kept])
        above = (changes > 0.03).mean()
        found = f"sets {changes.mean():+.2%}; the largest {changes.max():+.2%}; above 3 % {above:.1%}"
        print(f"{n:4} rows, {changes.size} samples: {found}")


def change(scored: Scores, n: int, seed: int) -> float:
    """Return the change of the mean size, with a map fitted on ``n`` rows of the training rows."""
    some = np.random.default_rng(seed).permutation(len(scored.y_train))[:n]
    recalibrator = orisk.Recalibrator(classes=range(scored.train.shape[1]), scores="probabilities")
    recalibrator.fit(scored.train[some], scored.y_train[some])
    ours, plain = (
        sizes(proba, scored.y) for proba in (recalibrator.transform(scored.held_out), scored.held_out)
    )
    return float(np.exp(np.mean(np.log(ours / plain)))) - 1


def sizes(proba: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return mean sizes at each loss and alpha, calibrated on the rows themselves: at equal risk."""
    found = []
    with warnings.catch_warnings(action="ignore"):  # too few rows for an alpha: full sets for both
        for loss in LOSSES.values():
            controller = orisk.RiskController(loss, alpha=0.1, check=False).calibrate(proba, y)
            found += [controller.predict_set(proba, alpha=alpha).size.mean() for alpha in ALPHAS]
    return np.array(found)


if __name__ == "__main__":
    main()
