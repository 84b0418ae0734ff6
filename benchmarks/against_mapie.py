"""Time and set size against MAPIE on the same scores, as ratios measured in one run.

Run with ``make bench``. Every figure is the best of several repeats; ratios above 1 mean that ordinalrisk is
faster. ``--rows`` and ``--classes`` change the size of the job.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from mapie.classification import SplitConformalClassifier
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.base import BaseEstimator, ClassifierMixin

import ordinalrisk as orisk

ALPHA = 0.1


class GivenProbabilities(ClassifierMixin, BaseEstimator):
    """A trained classifier whose features are its probabilities, so that only conformal work is timed."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]


def ordinal_scores(n: int, K: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What a decent ordinal model gives: a peak near a latent position, with noise; labels drawn from it."""
    rng = np.random.default_rng(seed)
    latent = rng.uniform(-0.5, K - 0.5, (n, 1))
    proba = orisk.softmax(-((np.arange(K) - latent) ** 2) / 2 + rng.normal(0, 0.3, (n, K)))
    return proba.astype(np.float32), drawn_labels(proba, rng)


def noise_scores(n: int, K: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The worst case for growing intervals: probabilities without any order."""
    rng = np.random.default_rng(seed)
    proba = orisk.softmax(rng.normal(0, 2, (n, K)))
    return proba.astype(np.float32), drawn_labels(proba, rng)


def drawn_labels(proba: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (proba.cumsum(axis=1)[:, :-1] < rng.random((len(proba), 1))).sum(axis=1)


class Ours:
    """A growth rule of ordinalrisk, calibrated and predicting on the same rows."""

    def __init__(self, proba: np.ndarray, y: np.ndarray, growth: str) -> None:
        self.proba, self.y = proba, y
        self.controller = orisk.RiskController(alpha=ALPHA, growth=growth)

    def calibrate(self) -> None:
        self.controller.calibrate(self.proba, self.y)

    def predict(self) -> orisk.IntervalSet:
        return self.controller.predict_set(self.proba)

    def mean_size(self) -> float:
        return float(self.predict().size.mean())


class Mapie:
    """A conformity score of MAPIE on the same rows."""

    def __init__(self, proba: np.ndarray, y: np.ndarray, score: str) -> None:
        self.proba, self.y, self.score = proba, y, score
        self.estimator = GivenProbabilities().fit(proba, y)

    def calibrate(self) -> None:
        self.model = SplitConformalClassifier(
            self.estimator, confidence_level=1 - ALPHA, conformity_score=self.score, prefit=True
        ).conformalize(self.proba, self.y)

    def predict(self) -> np.ndarray:
        return self.model.predict_set(self.proba)

    def mean_size(self) -> float:
        _, sets = self.predict()
        return float(sets[:, :, 0].sum(axis=1).mean())


def measure(scores: tuple[np.ndarray, np.ndarray], repeats: int) -> dict[str, dict[str, float]]:
    """The best time of each, taken in turns so that a slow spell of the machine hits all of them."""
    contenders = {growth: Ours(*scores, growth) for growth in ("frontier", "adaptive", "paper")}
    contenders |= {f"MAPIE {score}": Mapie(*scores, score) for score in ("lac", "aps")}
    best = {name: {"calibrate_s": np.inf, "predict_s": np.inf} for name in contenders}
    for _ in track(range(repeats), description="Timing", transient=True):
        for name, contender in contenders.items():
            for step in ("calibrate", "predict"):
                start = time.perf_counter()
                getattr(contender, step)()
                taken = time.perf_counter() - start
                best[name][f"{step}_s"] = min(best[name][f"{step}_s"], taken)
    return {name: best[name] | {"mean_size": contenders[name].mean_size()} for name in contenders}


def ratio_table(title: str, results: dict[str, dict[str, float]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in ("calibrate", "predict", "mean size"):
        table.add_column(name, justify="right")
    ours = results["frontier"]
    for name, found in results.items():
        peer = name.startswith("MAPIE")
        cells = [
            f"{found[key] / ours[key]:.1f}x" if peer else f"{found[key] * 1e3:.0f} ms"
            for key in ("calibrate_s", "predict_s")
        ]
        table.add_row(f"{name} / frontier" if peer else name, *cells, f"{found['mean_size']:.2f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    n, K = arguments.rows, arguments.classes
    console = Console()
    warnings.simplefilter("ignore")  # MAPIE warns about float32
    console.print(f"n = {n:,} rows, K = {K} classes, float32, coverage loss, alpha = {ALPHA}")
    everything = {}
    for name, scores in {"ordinal scores": ordinal_scores, "noise": noise_scores}.items():
        everything[name] = measure(scores(n, K, seed=0), arguments.repeats)
        console.print(ratio_table(name, everything[name]))
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=2) + "\n")


if __name__ == "__main__":
    main()
