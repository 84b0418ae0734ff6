"""The scores of three models on rows that they were not trained on, kept on disk so that runs can resume."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sklearn
from sklearn.base import ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ordinalrisk.files.atomic import replacing

from .targets import Target

MOST_ROWS = 6_000
"""At most so many rows of a target are used, half of them for training."""
FOLDS = 5
MODELS: dict[str, ClassifierMixin] = {
    "random forest": RandomForestClassifier(random_state=0),
    "gradient boosting": HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=15, random_state=0),
    "logistic regression": LogisticRegression(max_iter=200),
}


Arrays = Mapping[str, np.ndarray]


class Scores(NamedTuple):
    """Out-of-fold probabilities of the training rows, and probabilities of the rows that are held out."""

    train: np.ndarray
    y_train: np.ndarray
    held_out: np.ndarray
    y: np.ndarray


def scores(target: Target, model: str) -> Scores:
    """Return the scores of a model, from the disk if they are there."""
    decided_by = (target, MODELS[model], MOST_ROWS, FOLDS, sklearn.__version__)
    return Scores(
        **kept(f"{target.name} {model} scores", decided_by, lambda: _trained(target, model)._asdict())
    )


def kept(name: str, decided_by: tuple[object, ...], make: Callable[[], Arrays]) -> Arrays:
    """Return arrays from the disk; or make them and keep them there, by a digest of what decides them."""
    digest = hashlib.sha256(repr(decided_by).encode()).hexdigest()[:8]
    path = folder() / f"{name} {digest}.npz".replace(" ", "-").replace(":", "")
    if path.exists():
        with np.load(path) as file:
            return dict(file)
    made = make()
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **made)
    return made


def folder() -> Path:
    """Return the folder of what is kept, which is made if need be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    made = cache / "ordinalrisk-benchmarks" / "field"
    made.mkdir(parents=True, exist_ok=True)
    return made


def _trained(target: Target, model: str) -> Scores:
    X, y, K = target.load()
    some = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
    train, rest = np.array_split(some, 2)
    pipeline = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), MODELS[model])
    fold = np.arange(len(train)) % FOLDS  # the rows are shuffled already
    out_of_fold = np.empty((len(train), K), np.float32)

    def fitted(rows: np.ndarray, asked: np.ndarray) -> np.ndarray:
        trained = clone(pipeline).fit(X[rows], y[rows])
        proba = np.zeros((len(asked), K), np.float32)
        proba[:, trained.classes_] = trained.predict_proba(X[asked])
        return proba

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for each in range(FOLDS):
            out_of_fold[fold == each] = fitted(train[fold != each], train[fold == each])
        return Scores(out_of_fold, y[train], fitted(train, rest), y[rest])
