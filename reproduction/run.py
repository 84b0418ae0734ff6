"""One experiment of the paper on one model's scores: every number, ready for tables, pictures and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk import metrics
from ordinalrisk.controller import RiskController
from ordinalrisk.selection.choose_alpha import SizeNotAttainedError, alpha_for_size
from reproduction.protocol import (
    CURVE_ALPHAS,
    GROWTHS,
    Experiment,
    SortedRows,
    Track,
    TrialMeans,
    class_means,
    halves,
    means_over_trials,
    repeat_trials,
    sorted_once,
)
from reproduction.scores import NORMALISATIONS, Scores

RELEASED = "min_shift"  # what the paper's released code does in place of a softmax
_PROBABILITIES = "softmax"
TOLERANCE = 0.003
_CURVE_PARTS = ("scenario", "growth", "alpha", "trials", "risk", "size")

_JUST_BELOW = 1 - Fraction(1, 10**9)


@dataclass(frozen=True)
class PublishedCell:
    """A cell of the paper's table and ours."""

    scenario: str
    alpha: float
    published: float
    risk: float
    risk_se: float | None

    @property
    def difference(self) -> float:
        """Ours minus the published one."""
        return self.risk - self.published

    @property
    def agrees(self) -> bool:
        """Whether the two are within ``TOLERANCE``."""
        return abs(self.difference) <= TOLERANCE


@dataclass(frozen=True)
class RealisedRisks:
    """The risk on the test half of each trial."""

    scenario: str
    alpha: float
    risks: tuple[float, ...]


@dataclass(frozen=True)
class Centroids:
    """Where the sets of a scenario lie at a given mean size; means over trials.

    ``shares[i]`` is the share of sets centred at ``i / 2``, ``from_middle`` the mean distance of the centres
    from the middle of the scale, ``class_coverage`` the coverage of each true class (None without rows).
    """

    scenario: str
    normalisation: str
    growth: str
    alpha: float
    size: float
    mean: float
    from_middle: float
    shares: tuple[float, ...]
    class_coverage: tuple[float | None, ...]


@dataclass(frozen=True, eq=False)
class Reproduction:
    """An experiment's results on one model's scores.

    Attributes
    ----------
    results : mapping
        For each normalisation the means over trials of every scenario, growth rule and tabulated alpha.
    curves : mapping
        The same at many alphas, over fewer trials.
    realised : list of RealisedRisks
        Under the first growth rule and the normalisation of the released code.
    centroids : list of Centroids
        Under the first growth rule and each normalisation, and under the last growth rule and softmax.
    """

    experiment: Experiment
    scores: Scores
    growths: Sequence[str]
    trials: int
    seed: int
    results: Mapping[str, list[TrialMeans]]
    curves: Mapping[str, list[TrialMeans]]
    realised: list[RealisedRisks]
    centroids: list[Centroids]

    @property
    def on_released_scores(self) -> bool:
        """Whether these are the scores that the paper's authors released."""
        return self.scores.authors_layout and len(self.scores.y) == self.experiment.released_rows

    @property
    def source(self) -> str:
        """Where the scores come from, in words."""
        return ("the authors' " if self.on_released_scores else "") + self.scores.source

    @cached_property
    def comparisons(self) -> list[PublishedCell]:
        """The paper's table and ours, for the first growth rule and the released normalisation."""
        return self.compared(RELEASED)

    def compared(self, normalisation: str) -> list[PublishedCell]:
        """The paper's table and ours for one normalisation."""
        published = {
            (scenario, alpha): risk
            for scenario, risks in self.experiment.published.items()
            for alpha, risk in zip(self.experiment.alphas, risks, strict=True)
        }
        return [
            PublishedCell(r.scenario, r.alpha, published[r.scenario, r.alpha], r.risk, r.risk_se)
            for r in self.results[normalisation]
            if r.growth == self.growths[0]
        ]

    def centroids_by(self, normalisation: str, growth: str) -> dict[str, Centroids]:
        """The centroids of each scenario."""
        return {
            c.scenario: c for c in self.centroids if (c.normalisation, c.growth) == (normalisation, growth)
        }

    def class_results(self, normalisation: str, growth: str) -> list[TrialMeans]:
        """The scenarios at the ``alpha`` at which classes are compared."""
        return [
            r
            for r in self.results[normalisation]
            if (r.growth, r.alpha) == (growth, self.experiment.class_alpha)
        ]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description of everything."""
        experiment = self.experiment
        return {
            "experiment": experiment.name,
            "source": self.source,
            "rows": len(self.scores.y),
            "accuracy": self.scores.accuracy,
            "mean_absolute_error": self.scores.mean_absolute_error,
            "trials": self.trials,
            "seed": self.seed,
            "classes": list(experiment.classes),
            "scenarios": {name: loss.to_dict() for name, loss in experiment.scenarios.items()},
            "published": [
                asdict(c) | {"difference": c.difference, "agrees": c.agrees} for c in self.comparisons
            ],
            "results": {name: [asdict(r) for r in results] for name, results in self.results.items()},
            "curves": {
                name: [{part: getattr(r, part) for part in _CURVE_PARTS} for r in results]
                for name, results in self.curves.items()
            },
            "realised": [asdict(r) for r in self.realised],
            "centroids": [asdict(c) for c in self.centroids],
        }


def _enough_trials(n_rows: int, at_least: int) -> int:
    """For curves and distributions, which average over many rows; data with few rows get more trials."""
    return max(at_least, min(25, 80_000 // n_rows))


def untracked(items: Iterable[Any], total: int, description: str) -> Iterable[Any]:
    """No progress bar."""
    return items


def reproduce(
    experiment: Experiment,
    scores: Scores,
    *,
    growths: Sequence[str] = GROWTHS,
    trials: int = 100,
    seed: int = 0,
    track: Track = untracked,
) -> Reproduction:
    """Run an experiment on a model's scores.

    Parameters
    ----------
    experiment : Experiment
        Which of the paper's experiments.
    scores : Scores
        Logits and labels of rows that the model was not trained on.
    growths : sequence of str
        Growth rules; the published numbers are compared with the first.
    trials, seed : int
        How many random halves, and their seed.
    track : callable
        ``track(items, total, description)`` gives the items back, with a progress bar around them.
    """
    n_classes = len(experiment.classes)
    if scores.logits.shape[1] != n_classes:
        raise ValueError(
            f"{experiment.name} has {n_classes} classes; got {scores.source} with {scores.logits.shape[1]}."
        )
    if len(scores.y) < 4:
        raise ValueError(f"Two halves need at least 4 rows; got {scores.source} with {len(scores.y)}.")
    try:
        proba = {name: scores.proba(name) for name in NORMALISATIONS}
    except ValueError as error:
        raise ValueError(f"{scores.source}: {error}") from None
    rows = {name: sorted_once(p, scores.y, experiment.scenarios, growths) for name, p in proba.items()}

    def averaged(name: str, alphas: Sequence[float], trials: int, what: str) -> list[TrialMeans]:
        outcomes = repeat_trials(rows[name], alphas=alphas, trials=trials, seed=seed)
        return means_over_trials(track(outcomes, trials, f"{experiment.title}: {what}, {name}"))

    few = min(trials, _enough_trials(len(scores.y), at_least=5))
    ways = dict.fromkeys([*((name, growths[0]) for name in proba), (_PROBABILITIES, growths[-1])])
    return Reproduction(
        experiment,
        scores,
        growths,
        trials,
        seed,
        results={name: averaged(name, experiment.alphas, trials, "table") for name in proba},
        curves={name: averaged(name, CURVE_ALPHAS, few, "set sizes") for name in proba},
        realised=list(
            track(
                _realised(experiment, rows[RELEASED], growths[0], trials, seed),
                len(experiment.scenarios),
                f"{experiment.title}: realised risks",
            )
        ),
        centroids=list(
            track(
                (
                    _centroids(experiment, scenario, name, proba[name], scores.y, growth, trials, seed)
                    for name, growth in ways
                    for scenario in experiment.scenarios
                ),
                len(ways) * len(experiment.scenarios),
                f"{experiment.title}: centroids",
            )
        ),
    )


def _realised(
    experiment: Experiment, rows: SortedRows, growth: str, trials: int, seed: int
) -> Iterator[RealisedRisks]:
    for scenario, alpha in experiment.histogram_alphas.items():
        way = scenario, growth
        outcomes = repeat_trials({way: rows[way]}, alphas=[alpha], trials=trials, seed=seed)
        yield RealisedRisks(scenario, alpha, tuple(outcome.risk for [outcome] in outcomes))


def _centroids(
    experiment: Experiment,
    scenario: str,
    normalisation: str,
    proba: NDArray[np.float64],
    y: NDArray[np.int64],
    growth: str,
    trials: int,
    seed: int,
) -> Centroids:
    middle = (len(experiment.classes) - 1) / 2
    found, class_coverage = [], []
    for trial in range(min(trials, _enough_trials(len(y), at_least=10))):
        calibration, test = halves(len(y), trial, seed)
        controller = RiskController(experiment.scenarios[scenario], growth=growth, check=False)
        controller.calibrate(proba[calibration], y[calibration])
        try:
            alpha = alpha_for_size(controller, proba[test], experiment.centroid_size)
        except SizeNotAttainedError:
            alpha = controller.risk_curve_.bound * _JUST_BELOW
        sets = controller.predict_set(proba[test], alpha=alpha)
        centre = sets.centroid
        found.append(
            [
                float(alpha),
                metrics.mean_size(sets),
                centre.mean(),
                np.abs(centre - middle).mean(),
                *metrics.centroid_histogram(sets),
            ]
        )
        class_coverage.append(tuple(metrics.class_coverage(y[test], sets).tolist()))
    alpha, size, mean, from_middle, *shares = np.mean(found, axis=0).tolist()
    return Centroids(
        scenario,
        normalisation,
        growth,
        alpha,
        size,
        mean,
        from_middle,
        tuple(shares),
        class_means(class_coverage),
    )
