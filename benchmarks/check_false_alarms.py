"""How often the checks of calibration rows warn of healthy scores.

Run it with ``python -m benchmarks.check_false_alarms``. A data set has 2 to 12 classes and 50 to 5,000 rows.
Scores are right, too flat or too sharp by a factor of up to 2 in the logits, shifted in the class shares,
without skill, or those of a model trained on few rows.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import ordinalrisk as orisk

KINDS = ("right", "Dirichlet", "temperature", "other shares", "logistic", "forest", "naive Bayes", "no skill")


def healthy(seed: int) -> tuple[str, np.ndarray, np.ndarray]:
    """Return the kind of one data set, its scores and its labels."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    K, n = int(rng.integers(2, 13)), int(np.exp(rng.uniform(np.log(50), np.log(5_000))))
    shares = rng.dirichlet(np.full(K, rng.uniform(0.5, 10)))
    if kind == "Dirichlet":
        proba = rng.dirichlet(shares * rng.uniform(1, 20) + 0.01, n)
        return kind, proba, drawn(proba, rng)
    if kind == "no skill":
        proba = np.tile(rng.dirichlet(shares * 1_000 + 0.01), (n, 1))
        return kind, proba, rng.choice(K, n, p=shares)
    if kind in ("logistic", "forest", "naive Bayes"):
        n_train = int(rng.integers(150, 1_500))
        X = rng.normal(size=(n_train + n, 4))
        severity = X @ [1, 0.5, 0.2, 0] + rng.uniform(0.3, 2) * rng.normal(size=len(X))
        labels = np.digitize(severity, np.quantile(severity, np.cumsum(shares)[:-1]))
        model = {
            "logistic": LogisticRegression(max_iter=300),
            "forest": RandomForestClassifier(40, min_samples_leaf=3, random_state=seed),
            "naive Bayes": GaussianNB(),
        }[kind].fit(np.vstack([X[:n_train], np.zeros((K, 4))]), np.append(labels[:n_train], np.arange(K)))
        return kind, model.predict_proba(X[n_train:]), labels[n_train:]
    centre = (K - 1) * rng.beta(1, 1, n)
    logits = -((np.arange(K) - centre[:, None]) ** 2) / 2 / (rng.uniform(0.1, 0.5) * K) ** 2 + np.log(
        shares + 0.01
    )
    labels = drawn(softmax(logits), rng)
    if kind == "temperature":
        logits = logits * rng.uniform(0.5, 2)
    if kind == "other shares":
        logits = logits + 0.3 * rng.normal(size=K)
    return kind, softmax(logits), labels


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def drawn(proba: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (proba.cumsum(axis=1)[:, :-1] < rng.random((len(proba), 1))).sum(axis=1)


def alarms(seed: int, alpha: float = 0.1) -> list[str]:
    """Return the warnings about the scores of one data set; what its sets miss is another matter."""
    _, proba, labels = healthy(seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        orisk.RiskController(alpha=alpha).calibrate(proba, labels)
    texts = [str(each.message) for each in caught]
    return [text for text in texts if not text.startswith(("Some classes are covered", "alpha="))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1_000)
    n_sets = parser.parse_args().sets
    found = {seed: texts for seed in range(n_sets) if (texts := alarms(seed))}
    kinds = Counter(KINDS[seed % len(KINDS)] for seed in found)
    print(f"{len(found)} of {n_sets} healthy data sets gave a warning. {dict(kinds)}")
    for seed, texts in found.items():
        kind, proba, labels = healthy(seed)
        print(seed, kind, proba.shape, np.bincount(labels, minlength=proba.shape[1]), *texts, sep="\n   ")


if __name__ == "__main__":
    main()
