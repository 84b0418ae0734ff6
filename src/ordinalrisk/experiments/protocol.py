"""The paper's evaluation: calibrate on a random half, test on the other, average over many such trials.

A scenario is a named loss. All scenarios and growth rules of a trial see the same halves, so that their
differences are not those of the draw, and a trial's halves depend on its number and the seed only, so that
more trials continue fewer. Random halves of fixed rows are exchangeable: the guarantee holds for the mean
over trials whatever the rows are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk import metrics
from ordinalrisk.controller import RiskController
from ordinalrisk.growth import GrowthRule
from ordinalrisk.losses import IntervalLoss


@dataclass(frozen=True)
class Outcome:
    """One trial of one scenario, growth rule and ``alpha``: mean loss and mean set size on the test half."""

    scenario: str
    growth: str
    alpha: float
    risk: float
    size: float


@dataclass(frozen=True)
class Summary:
    """The mean over trials of one scenario, growth rule and ``alpha``.

    The standard errors ``risk_se`` and ``size_se`` are those of the means over random halves of the same
    rows; None after a single trial, which has none.
    """

    scenario: str
    growth: str
    alpha: float
    trials: int
    risk: float
    risk_se: float | None
    size: float
    size_se: float | None


def halves(n_rows: int, trial: int = 0, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The calibration rows and the test rows of a trial.

    Examples
    --------
    >>> calibration, test = halves(5)
    >>> len(calibration), len(test), sorted([*calibration.tolist(), *test.tolist()])
    (2, 3, [0, 1, 2, 3, 4])
    """
    rows = np.random.default_rng([seed, trial]).permutation(n_rows)
    return rows[: n_rows // 2], rows[n_rows // 2 :]


def run_trials(
    proba: Any,
    y: Any,
    scenarios: Mapping[str, IntervalLoss],
    *,
    growths: Sequence[str | GrowthRule],
    alphas: Sequence[float],
    trials: int = 100,
    seed: int = 0,
) -> Iterator[list[Outcome]]:
    """The outcomes of one trial after another, ready for :func:`summarise` or a progress bar around it.

    Parameters
    ----------
    proba : array of shape (n, K)
        The model's class probabilities on rows that it was not trained on.
    y : array of shape (n,)
        Their labels ``0 .. K-1``.
    scenarios : mapping
        The loss of each scenario.
    growths : sequence
        Growth rules, by name or as objects.
    alphas : sequence of numbers
        The risks to control. One calibration answers them all.
    trials : int
        How many random halves.
    seed : int
        The seed of the halves.

    Yields
    ------
    list of Outcome
        One for each scenario, growth rule and ``alpha``, in this order.
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1; got {trials}.")
    proba, y = np.asarray(proba), np.asarray(y)
    for trial in range(trials):
        calibration, test = halves(len(proba), trial, seed)
        known, unseen = (proba[calibration], y[calibration]), (proba[test], y[test])
        yield [
            outcome
            for scenario, loss in scenarios.items()
            for growth in growths
            for outcome in _one_calibration(scenario, loss, growth, alphas, known, unseen)
        ]


def summarise(outcomes: Iterable[Iterable[Outcome]]) -> list[Summary]:
    """Mean and standard error over trials, in the order of the first trial.

    Examples
    --------
    >>> from ordinalrisk import WeightedLoss
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=1000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> equal = {"equal weights": WeightedLoss()}
    >>> [result] = summarise(run_trials(proba, y, equal, growths=["frontier"], alphas=[0.1], trials=20))
    >>> f"risk {result.risk:.2f}, {result.size:.1f} labels"
    'risk 0.10, 3.1 labels'
    """
    drawn: dict[tuple[str, str, float], list[tuple[float, float]]] = {}
    for trial in outcomes:
        for outcome in trial:
            key = outcome.scenario, outcome.growth, outcome.alpha
            drawn.setdefault(key, []).append((outcome.risk, outcome.size))
    return [_summary(*key, np.array(values)) for key, values in drawn.items()]


def _one_calibration(
    scenario: str,
    loss: IntervalLoss,
    growth: str | GrowthRule,
    alphas: Sequence[float],
    known: tuple[NDArray[Any], NDArray[Any]],
    unseen: tuple[NDArray[Any], NDArray[Any]],
) -> Iterator[Outcome]:
    controller = RiskController(loss=loss, alpha=alphas[0], growth=growth).calibrate(*known)
    proba, y = unseen
    for alpha in alphas:
        sets = controller.predict_set(proba, alpha=alpha)
        yield Outcome(scenario, str(growth), alpha, metrics.risk(y, sets, loss), metrics.mean_size(sets))


def _summary(scenario: str, growth: str, alpha: float, values: NDArray[np.float64]) -> Summary:
    trials = len(values)
    risk, size = values.mean(axis=0).tolist()
    risk_se, size_se = (values.std(axis=0, ddof=1) / np.sqrt(trials)).tolist() if trials > 1 else (None, None)
    return Summary(scenario, growth, alpha, trials, risk, risk_se, size, size_se)
