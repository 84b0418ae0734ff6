"""What recalibration does when it is fitted on few rows: sizes relative to the scores as they are.

First with models that were trained on many rows, then with models that were trained on the same few rows, by
OrdinalRiskClassifier.

python -m benchmarks.field.few_rows        after python -m benchmarks --section field
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordinalrisk as orisk

from .measure import ALPHAS, LOSSES
from .scores import MODELS, Scores, scores
from .targets import installed

ROWS, SEEDS = (30, 100), (10, 11)
TRAINED_ON, NEW_ROWS, HELD_OUT = (30, 60, 100, 300), 3_000, 20
SMALL_MODELS = {
    "random forest": RandomForestClassifier(30, random_state=0),
    "logistic regression": LogisticRegression(max_iter=200),
}


def main() -> None:
    """Print a line for each number of rows."""
    maps_on_few_rows()
    models_on_few_rows()


def models_on_few_rows() -> None:
    """Train and recalibrate on the same few rows, as OrdinalRiskClassifier does by default."""
    loaded = [target.load() for target in installed()[0]]
    for n in TRAINED_ON:
        enough = [each for each in loaded if len(each[1]) >= n + 10 * HELD_OUT]
        for name in SMALL_MODELS:
            changes = np.array([change_by_default(*each, name, n) for each in enough])
            found = f"sets {changes.mean():+.2%}; the largest {changes.max():+.2%}"
            print(f"{name} on {n} rows, {changes.size} targets: {found}", flush=True)


def change_by_default(X: np.ndarray, y: np.ndarray, K: int, name: str, n: int) -> float:
    """Return the change of the mean size of a model that is trained on ``n`` rows."""
    some = np.random.default_rng(5).permutation(len(y))[:NEW_ROWS]
    X, y = X[some], y[some]
    model = orisk.OrdinalRiskClassifier(
        make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), SMALL_MODELS[name]),
        classes=range(K),
        calibration_size=HELD_OUT,
        random_state=1,
        check=False,
    )
    with warnings.catch_warnings(action="ignore"):  # classes without rows, fits that are cut short
        model.fit(X[: n + HELD_OUT], y[: n + HELD_OUT])
        plain = model.predict_ordered_proba(X[n + HELD_OUT :])
    if model.recalibrator_ is None:
        return 0.0
    ours = np.asarray(model.recalibrator_.transform(plain))
    return relative(ours, plain, y[n + HELD_OUT :])


def maps_on_few_rows() -> None:
    """Fit maps on few rows for models that were trained on many; name the sample with the largest sets."""
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


def relative(mapped: np.ndarray, plain: np.ndarray, y: np.ndarray) -> float:
    """Return the change of the mean size, over losses and values of alpha."""
    return float(np.exp(np.mean(np.log(sizes(mapped, y) / sizes(plain, y))))) - 1


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
