"""Set sizes with a generated language model as judge, against ratings of people.

python -m benchmarks.field.judges        takes a few minutes on one core
python -m benchmarks.field.page          writes the tables of docs/field.md from its numbers

A judge rates answers, and the log-probabilities of its first token are its scores. The labels are the means
of people's ratings. Everything is drawn at random from :class:`Judge`, so labels can be drawn as often as
needed; the kinds of faults are those of real judges, their sizes are made up.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ordinalrisk as orisk
from ordinalrisk.files.atomic import replacing

from .measure import size_at
from .methods import RULES

NUMBERS = Path(__file__).parents[1] / "results" / "judges.json"
ROWS, NEW_ROWS, SEEDS, ROWS_OF_LIMIT = (150, 500, 2_000), 2_000, 20, 20_000
LEVELS = np.array([0.02, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3, 0.45, 0.65, 0.9])
RISKS = (0.05, 0.1)
OURS = "frontier, recalibrated"


@dataclass(frozen=True)
class Judge:
    """How answers, people and the judge are drawn. Qualities are on a scale from 1 to 5.

    Attributes
    ----------
    ratings : int
        The judge and each of the people rate on so many levels.
    people : int
        The label is the mean rating of so many people, so there are ``people * (ratings - 1) + 1`` labels.
    unlisted : float
        The probability that stands for each rating that is not among the listed tokens.
    spread : float
        The standard deviation of the quality of answers, around 3.
    people_error : float
        The standard deviation of what one of the people sees, around the quality.
    judge_error : float
        The standard deviation of what the judge sees.
    centre, pull : float
        Central tendency: what the judge sees is as far from ``centre`` as the quality from 3, times ``pull``.
    confidence : float
        Over-confidence: a rating's logit falls with this number times its squared distance from what is seen.
        One by twice ``judge_error``'s square, or 5.6, would fit its error on its own, pulled scale; because
        of ``pull`` and the error of people, about 0.3 would fit their ratings.
    noise : float
        The standard deviation of an error of each logit.
    listed : int
        So many of the most probable tokens are listed; two tokens that are no ratings compete with the
        ratings, with probabilities of 0.002 to 0.02 and of 0.001 to 0.01.
    """

    ratings: int = 5
    people: int = 3
    unlisted: float = 0.0
    spread: float = 1.1
    people_error: float = 0.5
    judge_error: float = 0.3
    centre: float = 3.3
    pull: float = 0.5
    confidence: float = 3.0
    noise: float = 0.3
    listed: int = 5

    @property
    def n_labels(self) -> int:
        return self.people * (self.ratings - 1) + 1

    def drawn(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the judge's probabilities of its ratings, and the positions of the labels."""
        quality = 3 + rng.normal(0, self.spread, n)
        steps = (self.ratings - 1) / 4
        seen = quality[:, None] + rng.normal(0, self.people_error, (n, self.people))
        y = np.clip(np.rint((seen - 1) * steps), 0, self.ratings - 1).sum(axis=1).astype(int)
        return self._tokens(quality, rng), y

    def _tokens(self, quality: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        n, ratings = len(quality), np.linspace(1, 5, self.ratings)
        seen = self.centre + self.pull * (quality - 3) + rng.normal(0, self.judge_error, n)
        logits = -self.confidence * (ratings - seen[:, None]) ** 2
        proba = np.exp(logits + rng.normal(0, self.noise, logits.shape))
        proba *= 0.97 / proba.sum(axis=1, keepdims=True)
        others = np.column_stack([rng.uniform(0.002, 0.02, n), rng.uniform(0.001, 0.01, n)])
        least = np.sort(np.column_stack([proba, others]), axis=1)[:, [-self.listed]]
        proba = np.where(proba >= least, proba, self.unlisted)
        return proba / proba.sum(axis=1, keepdims=True)

    def placed(self, proba: np.ndarray) -> np.ndarray:
        """Return scores of the labels: each rating gives its probability to the label of the same value."""
        scores = np.zeros((len(proba), self.n_labels))
        scores[:, :: self.people] = proba
        return scores


JUDGES = {
    "1 to 5, mean of three people: 13 labels": Judge(),
    "1 to 10, mean of two people: 19 labels": Judge(ratings=10, people=2),
    "1 to 5, one person: 5 labels, unlisted tokens 0": Judge(people=1),
    "1 to 5, one person: 5 labels, unlisted tokens 0.0001": Judge(people=1, unlisted=1e-4),
}


def main() -> None:
    """Measure every judge with every number of rows, and write the numbers."""
    cells = []
    for name, judge in JUDGES.items():
        limit = fitted_on_many(judge)
        for n in ROWS:
            curves = [dict(sizes(judge, n, seed, limit)) for seed in range(SEEDS)]
            cells.append({"judge": name, "rows": n, "methods": at_equal_risk(curves)})
            print(name, n, {m: found["sizes"][-1] for m, found in cells[-1]["methods"].items()}, flush=True)
    head = {"seeds": SEEDS, "new_rows": NEW_ROWS, "rows_of_limit": ROWS_OF_LIMIT, "risks": RISKS}
    lines = ",\n".join(json.dumps(cell, separators=(",", ":")) for cell in cells)
    with replacing(NUMBERS) as temporary:
        temporary.write_text(json.dumps(head)[:-1] + ', "cells": [\n' + lines + "\n]}\n")


def fitted_on_many(judge: Judge) -> orisk.Recalibrator:
    """Return a map that is fitted on far more rows than anyone would label."""
    scores, y = judge.drawn(ROWS_OF_LIMIT, np.random.default_rng(2**32))
    return orisk.Recalibrator(classes=range(judge.n_labels)).fit(scores, y)


def sizes(judge: Judge, n: int, seed: int, limit: orisk.Recalibrator) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each method's curve of realised risk and mean size, with ``n`` labelled rows in all.

    Methods that learn set some of these rows apart, as many as ``calibrate`` does by default.
    """
    rng = np.random.default_rng(seed)
    (scores, y), (new, y_new) = judge.drawn(n, rng), judge.drawn(NEW_ROWS, rng)
    placed, new_placed = judge.placed(scores), judge.placed(new)
    how: dict[str, Any] = {"classes": range(judge.n_labels), "random_state": seed, "check": False}

    def curve(controller: orisk.RiskController, asked: np.ndarray) -> np.ndarray:
        sets = (controller.predict_set(asked, alpha=float(level)) for level in LEVELS)
        return np.array([(1 - found.contains(y_new).mean(), found.size.mean()) for found in sets])

    with warnings.catch_warnings(action="ignore"):  # too few rows for the lowest levels: full sets
        for rule in RULES:
            plain = orisk.RiskController(alpha=0.1, growth=rule, **how).calibrate(placed, y)
            yield rule, curve(plain, new_placed)
        auto = orisk.RiskController(alpha=0.1, growth="auto", **how).calibrate(placed, y)
        yield "auto", curve(auto, new_placed)
        tempered = orisk.RiskController(alpha=0.1, **how).calibrate(placed, y, recalibrate="temperature")
        yield "frontier, temperature", curve(tempered, new_placed)
        learned = orisk.RiskController(alpha=0.1, growth="auto", **how).calibrate(
            scores, y, recalibrate="auto"
        )
        yield "auto, recalibrated", curve(learned, new)
        apart = np.isin(np.arange(n), learned.rows_apart_)
        shares = np.bincount(y[apart], minlength=judge.n_labels) + 0.5
        ignorant, new_ignorant = (np.tile(shares / shares.sum(), (rows, 1)) for rows in (n, NEW_ROWS))
        blind = orisk.RiskController(alpha=0.1, **how).calibrate(ignorant[~apart], y[~apart])
        yield "shares of the labels alone", curve(blind, new_ignorant)
        for rule in RULES:
            mapped = orisk.RiskController(alpha=0.1, growth=rule, recalibration=learned.recalibration, **how)
            yield f"{rule}, recalibrated", curve(mapped.calibrate(scores[~apart], y[~apart]), new)
        best = orisk.RiskController(alpha=0.1, recalibration=limit, **how).calibrate(scores, y)
        yield f"frontier, map from {ROWS_OF_LIMIT:,} rows", curve(best, new)


def at_equal_risk(curves: list[dict[str, np.ndarray]]) -> dict[str, dict[str, Any]]:
    """Return each method's sizes at the realised risks, and its risk and size where it is asked for 0.1.

    ``errors`` are standard errors of the sizes, and ``errors_of_ratio`` those of the logarithm of the ratio
    to recalibrated ``frontier``: by the jackknife over seeds.
    """
    stacked = {method: np.stack([each[method] for each in curves]) for method in curves[0]}
    seeds = range(len(curves))
    found = {
        method: np.array(
            [[size_at(np.delete(curve, seed, axis=0), risk) for risk in RISKS] for seed in seeds]
        )
        for method, curve in stacked.items()
    }

    def error(without: np.ndarray) -> list[float]:
        return [float(f"{e:.2g}") for e in np.sqrt((len(seeds) - 1) * without.var(axis=0))]

    asked = [*LEVELS].index(0.1)
    return {
        method: {
            "sizes": [round(size_at(curve, risk), 4) for risk in RISKS],
            "errors": error(found[method]),
            "errors_of_ratio": error(np.log(found[method] / found[OURS])),
            "asked": [round(float(value), 4) for value in curve.mean(axis=0)[asked]],
        }
        for method, curve in stacked.items()
    }


if __name__ == "__main__":
    main()
