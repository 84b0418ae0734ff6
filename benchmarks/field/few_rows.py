"""What recalibration does when it is fitted on few rows: sizes relative to the scores as they are.

python -m benchmarks.field.few_rows        after python -m benchmarks --section field
"""

from __future__ import annotations

import warnings

import numpy as np

import ordinalrisk as orisk

from .measure import ALPHAS, LOSSES
from .scores import MODELS, Scores, scores
from .targets import installed

ROWS, SEEDS = (30, 100), (10, 11)


def main() -> None:
    """Print a line for each number of rows, and the sample with the largest sets."""
    pairs = [(target, model) for target in installed()[0] for model in MODELS]
    for n in ROWS:
        found = []
        for target, model in pairs:
            scored = scores(target, model)
            found += [(*change(scored, n, seed), f"{target.name}, {model}") for seed in SEEDS]
        changes, errors, names = (np.array(column) for column in zip(*found, strict=True))
        worst = changes.argmax()
        print(
            f"{n:4} rows, {len(found)} samples: sets {changes.mean():+.2%}; "
            f"above 3 %: {(changes > 0.03).sum()}, beyond doubt: {(changes - 2 * errors > 0.03).sum()}; "
            f"the largest {changes[worst]:+.2%} (standard error {errors[worst]:.2%}; {names[worst]})",
            flush=True,
        )


def change(scored: Scores, n: int, seed: int) -> tuple[float, float]:
    """Return the change of the mean size with a map fitted on ``n`` training rows, and its standard error.

    The error is that of the rows that are held out, by the jackknife over tenths of them.
    """
    some = np.random.default_rng(seed).permutation(len(scored.y_train))[:n]
    recalibrator = orisk.Recalibrator(classes=range(scored.train.shape[1]), scores="probabilities")
    recalibrator.fit(scored.train[some], scored.y_train[some])
    mapped = recalibrator.transform(scored.held_out)
    tenth = np.arange(len(scored.y)) % 10  # the rows are shuffled already

    def log_ratio(kept: np.ndarray) -> float:
        ours, plain = (sizes(proba[kept], scored.y[kept]) for proba in (mapped, scored.held_out))
        return float(np.mean(np.log(ours / plain)))

    without = np.array([log_ratio(tenth != each) for each in range(10)])
    return float(np.exp(log_ratio(tenth >= 0))) - 1, float(np.sqrt(9 * without.var()))


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
