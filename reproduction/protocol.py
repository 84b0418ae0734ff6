"""The paper's evaluation: calibrate on a random half, test on the other, average over many such trials.

A scenario is a named loss. All scenarios and growth rules of a trial see the same halves, so that their
differences are not those of the draw, and a trial's halves depend on its number and the seed only, so that
more trials continue fewer. Random halves of fixed rows are exchangeable: the guarantee holds for the mean
over trials whatever the rows are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import rows_needed, too_few
from ordinalrisk.growth.rules import GrowthRule
from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.losses.kinds import DivergenceLoss, IntervalLoss
from reproduction.fixed_rows import FixedRows

GROWTHS = ("paper", "adaptive", "frontier")
CURVE_ALPHAS = [k / 200 for k in range(1, 41)]

Track = Callable[[Iterable[Any], int, str], Iterable[Any]]
"""``track(items, total, description)`` gives the items back, with a progress bar around them."""

SortedRows = dict[tuple[str, str], FixedRows]
"""Rows under each scenario and growth rule."""


@dataclass(frozen=True)
class Experiment:
    """What the paper did on one data set, and what it reports.

    Attributes
    ----------
    name, title : str
        For files and for readers.
    table : int
        The number of the paper's table.
    classes : tuple of str
        The labels in order.
    scenarios : mapping
        The loss of each scenario.
    meaning : mapping
        A few words on each scenario.
    alphas : tuple of float
        The risks of the table.
    published : mapping
        For each scenario the realised risks in the table, in the order of ``alphas``.
    histogram_alphas : mapping
        For each scenario the ``alpha`` of the picture of realised risks.
    class_alpha : float
        The ``alpha`` at which the classes are compared; small enough that sets are no single labels yet.
    centroid_size : int
        The mean set size at which the centroids of the sets are compared.
    figures : mapping
        The number of the paper's figure that each picture here stands for.
    released_rows : int, optional
        How many rows the scores have that the authors released, if they did.
    """

    name: str
    title: str
    table: int
    classes: tuple[str, ...]
    scenarios: Mapping[str, IntervalLoss]
    meaning: Mapping[str, str]
    alphas: tuple[float, ...]
    published: Mapping[str, tuple[float, ...]]
    histogram_alphas: Mapping[str, float]
    class_alpha: float
    centroid_size: int
    figures: Mapping[str, int]
    released_rows: int | None = None

    @property
    def divergence(self) -> str:
        """The scenario of the divergence loss."""
        return next(name for name, loss in self.scenarios.items() if isinstance(loss, DivergenceLoss))


@dataclass(frozen=True)
class Outcome:
    """One trial of one scenario, growth rule and ``alpha``: means over the test half.

    ``class_coverage`` and ``class_size`` are means over the rows of each true class; NaN without rows.
    """

    scenario: str
    growth: str
    alpha: float
    risk: float
    size: float
    class_coverage: tuple[float, ...]
    class_size: tuple[float, ...]


@dataclass(frozen=True)
class TrialMeans:
    """The mean over trials of one scenario, growth rule and ``alpha``.

    The standard errors ``risk_se`` and ``size_se`` are those of the means over random halves of the same
    rows; None after a single trial, which has none. A class without rows in all test halves has None too.
    """

    scenario: str
    growth: str
    alpha: float
    trials: int
    risk: float
    risk_se: float | None
    size: float
    size_se: float | None
    class_coverage: tuple[float | None, ...]
    class_size: tuple[float | None, ...]


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
    """The outcomes of one trial after another, for :func:`means_over_trials` or a progress bar around it.

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
        The risks to control.
    trials : int
        How many random halves.
    seed : int
        The seed of the halves.

    Yields
    ------
    list of Outcome
        One for each scenario, growth rule and ``alpha``, in this order.
    """
    rows = sorted_once(proba, np.asarray(y), scenarios, growths)
    yield from repeat_trials(rows, alphas=alphas, trials=trials, seed=seed)


def sorted_once(
    proba: Any, y: Any, scenarios: Mapping[str, IntervalLoss], growths: Sequence[str | GrowthRule]
) -> SortedRows:
    """The rows under each scenario and growth rule, ready for :func:`repeat_trials`."""
    return {
        (scenario, str(growth)): FixedRows(proba, y, loss, growth)
        for scenario, loss in scenarios.items()
        for growth in growths
    }


def repeat_trials(
    rows: SortedRows, *, alphas: Sequence[float], trials: int, seed: int
) -> Iterator[list[Outcome]]:
    """As :func:`run_trials`, on rows that are sorted already."""
    if trials < 1:
        raise ValueError(f"trials must be at least 1; got {trials}.")
    n_rows = next(iter(rows.values())).n_rows
    for bound in {fixed.costs.bound for fixed in rows.values()}:
        alpha, n_calibration = as_fraction(min(alphas)), n_rows // 2
        if n_calibration < (needed := rows_needed(alpha, bound)):
            warnings.warn(too_few(alpha, bound, n_calibration, needed), stacklevel=2)
    with ThreadPoolExecutor() as pool:
        for trial in range(trials):
            calibration, _ = halves(n_rows, trial, seed)
            results = pool.map(lambda fixed: [*fixed.test(calibration, alphas)], rows.values())  # noqa: B023
            yield [
                Outcome(scenario, growth, alpha, *result)
                for (scenario, growth), cells in zip(rows, results, strict=True)
                for alpha, result in zip(alphas, cells, strict=True)
            ]


def means_over_trials(outcomes: Iterable[Iterable[Outcome]]) -> list[TrialMeans]:
    """Mean and standard error over trials, in the order of the first trial.

    Examples
    --------
    >>> from ordinalrisk import WeightedLoss
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=1000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> equal = {"equal weights": WeightedLoss()}
    >>> outcomes = run_trials(proba, y, equal, growths=["frontier"], alphas=[0.1], trials=20)
    >>> [result] = means_over_trials(outcomes)
    >>> f"risk {result.risk:.2f}, {result.size:.1f} labels"
    'risk 0.10, 3.1 labels'
    """
    drawn: dict[tuple[str, str, float], list[Outcome]] = {}
    for trial in outcomes:
        for outcome in trial:
            drawn.setdefault((outcome.scenario, outcome.growth, outcome.alpha), []).append(outcome)
    return [_summary(cell) for cell in drawn.values()]


def _summary(cell: Sequence[Outcome]) -> TrialMeans:
    first = cell[0]
    risk, risk_se = _mean_and_error([outcome.risk for outcome in cell])
    size, size_se = _mean_and_error([outcome.size for outcome in cell])
    return TrialMeans(
        first.scenario,
        first.growth,
        first.alpha,
        len(cell),
        risk,
        risk_se,
        size,
        size_se,
        class_means([outcome.class_coverage for outcome in cell]),
        class_means([outcome.class_size for outcome in cell]),
    )


def _mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    n = len(values)
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None


def class_means(values: Sequence[tuple[float, ...]]) -> tuple[float | None, ...]:
    """For each class the mean over the trials that have rows of it; None where none has."""
    table = np.array(values)
    trials = np.count_nonzero(~np.isnan(table), axis=0)
    sums = np.nansum(table, axis=0)
    return tuple(float(total / n) if n else None for total, n in zip(sums, trials, strict=True))
