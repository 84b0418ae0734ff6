"""How often the checks of calibration rows warn of healthy rows.

Run it with ``python -m benchmarks.check_false_alarms``. A data set has 2 to 12 classes and 50 to 5,000 rows.
Scores are right, too flat or too sharp by a factor of up to 2 in the logits, shifted in the class shares,
without skill, or those of a model trained on few rows. Each warning about scores is a false alarm.

Warnings about missed classes are true of the calibration rows. Here it is a false alarm if it is not true of
the population, of which 20,000 rows are drawn: a class is covered at least half as often as guaranteed, or
weights do not cause more misses.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import ordinalrisk as orisk

KINDS = ("right", "Dirichlet", "temperature", "other shares", "logistic", "tree", "naive Bayes", "no skill")
ALPHA = 0.1
_POPULATION = 20_000
_ABOUT_SETS = ("Some classes are covered", "With these weights", "The weights hurt", "alpha=")

Rows = tuple[np.ndarray, np.ndarray]


class Healthy(NamedTuple):
    """Where the rows of one data set come from, and how many there are."""

    kind: str
    n_classes: int
    n_rows: int
    draw: Callable[[int, np.random.Generator], Rows]  # the scores and labels of so many rows

    def rows(self, seed: int) -> Rows:
        return self.draw(self.n_rows, np.random.default_rng([seed, 1]))

    def population(self, seed: int) -> Rows:
        return self.draw(_POPULATION, np.random.default_rng([seed, 2]))


def healthy(seed: int) -> Healthy:
    """Return one data set."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    K, n = int(rng.integers(2, 13)), int(np.exp(rng.uniform(np.log(50), np.log(5_000))))
    shares = rng.dirichlet(np.full(K, rng.uniform(0.5, 10)))
    draw = {"Dirichlet": _dirichlet, "no skill": _no_skill}.get(kind, _centred)
    if kind in ("logistic", "tree", "naive Bayes"):
        draw = _trained
    return Healthy(kind, K, n, draw(kind, shares, rng))


def _dirichlet(kind: str, shares: np.ndarray, rng: np.random.Generator) -> Callable[..., Rows]:
    concentration = shares * rng.uniform(1, 20) + 0.01

    def draw(n: int, rng: np.random.Generator) -> Rows:
        proba = rng.dirichlet(concentration, n)
        return proba, drawn(proba, rng)

    return draw


def _no_skill(kind: str, shares: np.ndarray, rng: np.random.Generator) -> Callable[..., Rows]:
    scores = rng.dirichlet(shares * 1_000 + 0.01)
    return lambda n, rng: (np.tile(scores, (n, 1)), rng.choice(len(shares), n, p=shares))


def _trained(kind: str, shares: np.ndarray, rng: np.random.Generator) -> Callable[..., Rows]:
    K, n_train, noise = len(shares), int(rng.integers(150, 1_500)), rng.uniform(0.3, 2)

    def features(n: int, rng: np.random.Generator) -> Rows:
        X = rng.normal(size=(n, 4))
        return X, X @ [1, 0.5, 0.2, 0] + noise * rng.normal(size=n)

    X, severity = features(n_train, rng)
    cuts = np.quantile(severity, np.cumsum(shares)[:-1])
    model = {
        "logistic": LogisticRegression(max_iter=300),
        "tree": DecisionTreeClassifier(min_samples_leaf=20),
        "naive Bayes": GaussianNB(),
    }[kind].fit(np.vstack([X, np.zeros((K, 4))]), np.append(np.digitize(severity, cuts), np.arange(K)))

    def draw(n: int, rng: np.random.Generator) -> Rows:
        X, severity = features(n, rng)
        return model.predict_proba(X), np.digitize(severity, cuts)

    return draw


def _centred(kind: str, shares: np.ndarray, rng: np.random.Generator) -> Callable[..., Rows]:
    K = len(shares)
    width, sharper, moved = rng.uniform(0.1, 0.5) * K, rng.uniform(0.5, 2), 0.3 * rng.normal(size=K)

    def draw(n: int, rng: np.random.Generator) -> Rows:
        centre = (K - 1) * rng.beta(1, 1, n)
        logits = -((np.arange(K) - centre[:, None]) ** 2) / 2 / width**2 + np.log(shares + 0.01)
        labels = drawn(softmax(logits), rng)
        if kind == "temperature":
            logits *= sharper
        if kind == "other shares":
            logits += moved
        return softmax(logits), labels

    return draw


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def drawn(proba: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (proba.cumsum(axis=1)[:, :-1] < rng.random((len(proba), 1))).sum(axis=1)


def weights(seed: int, n_classes: int) -> list[int]:
    """Return weights as people choose them: one class raised, one step more from class to class, or equal."""
    rng = np.random.default_rng([seed, 3])
    raised = [1] * n_classes
    raised[rng.integers(n_classes)] = int(rng.choice([2, 3, 5, 10, 20]))
    return [raised, [*range(1, n_classes + 1)], [1] * n_classes][seed // len(KINDS) % 3]


def said(controller: orisk.RiskController, proba: np.ndarray, labels: np.ndarray) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        controller.calibrate(proba, labels)
    return [str(each.message) for each in caught]


def alarms(seed: int) -> list[str]:
    """Return the warnings about the scores of one data set, and the wrong ones about its sets."""
    data = healthy(seed)
    controller = orisk.RiskController(orisk.WeightedLoss(weights(seed, data.n_classes)), alpha=ALPHA)
    texts = said(controller, *data.rows(seed))
    about_sets = [text for text in texts if text.startswith(_ABOUT_SETS)]
    found = [text for text in texts if text not in about_sets]
    if about_sets:
        found += untrue(" ".join(about_sets), seed, data, controller)
    return found


def untrue(text: str, seed: int, data: Healthy, controller: orisk.RiskController) -> list[str]:
    """Return the warnings about sets that are not true of the population."""
    proba, labels = data.population(seed)
    plain = orisk.RiskController(alpha=ALPHA, check=False).calibrate(*data.rows(seed))
    n = np.bincount(labels, minlength=data.n_classes)
    covered, before = (
        np.bincount(labels[each.predict_set(proba).contains(labels)], minlength=data.n_classes)
        for each in (controller, plain)
    )
    wrong = [
        f"Class {k} is covered {covered[k] / n[k]:.1%}. Said: {text}"
        for k in map(int, re.findall(r"(\d+) \([\d,]+ of [\d,]+ rows covered", text))
        if covered[k] >= n[k] * (1 - ALPHA) / 2
    ]
    wrong += [
        f"Class {k} is covered {covered[k] / n[k]:.1%}, before {before[k] / n[k]:.1%}. Said: {text}"
        for k in map(int, re.findall(r"(\d+) \(weight", text))
        if covered[k] >= before[k]
    ]
    if "With these weights" in text and covered.sum() >= before.sum():
        wrong.append(f"{covered.sum():,} are covered, with equal weights {before.sum():,}. Said: {text}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1_000)
    n_sets = parser.parse_args().sets
    found = {seed: texts for seed in range(n_sets) if (texts := alarms(seed))}
    kinds = Counter(KINDS[seed % len(KINDS)] for seed in found)
    print(f"{len(found)} of {n_sets} healthy data sets gave a false warning. {dict(kinds)}")
    for seed, texts in found.items():
        data = healthy(seed)
        n = np.bincount(data.rows(seed)[1], minlength=data.n_classes)
        print(seed, data.kind, n, weights(seed, data.n_classes), *texts, sep="\n   ")


if __name__ == "__main__":
    main()
