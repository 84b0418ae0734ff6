"""Choose a map by its cross-validated log score."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.recalibration import fitting
from ordinalrisk.recalibration.fitting import FitRows
from ordinalrisk.recalibration.maps import AnyMap, Identity

Fit = Callable[[FitRows], AnyMap]

ON_SCALE: dict[str, tuple[Fit, ...]] = {
    "identity": (fitting.fit_identity,),
    "mixture": (fitting.fit_mixture,),
    "temperature": (fitting.fit_temperature,),
    "isotonic": (fitting.fit_isotonic,),
}
OFF_SCALE: dict[str, tuple[Fit, ...]] = {
    "ordered_regression": tuple(
        partial(fitting.fit_ordered_regression, ridge=ridge) for ridge in (1.0, 30.0)
    ),
    "regression": tuple(partial(fitting.fit_regression, ridge=ridge) for ridge in (1.0, 10.0, 100.0)),
}
METHODS = (*ON_SCALE, *OFF_SCALE)
"""The names of the maps, from simple to flexible."""

MOST_COMPARED = 10_000
"""Rows beyond these add nothing to the choice."""


class Choice(NamedTuple):
    """The map that is fitted on all rows, and what the comparison found."""

    name: str
    map: AnyMap
    log_scores: dict[str, float]
    gain: float
    """By how much the log score of a row is better than without a map; NaN if that is not compared."""


def candidates(rows: FitRows) -> dict[str, tuple[Fit, ...]]:
    """Return the fits of each map that these scores allow."""
    return {**ON_SCALE, **OFF_SCALE} if rows.is_on_scale else dict(OFF_SCALE)


def choose(rows: FitRows, fold_of: NDArray[np.int64], methods: dict[str, tuple[Fit, ...]]) -> Choice:
    """Return a map by its log score on rows that it was not fitted on.

    ``fold_of`` gives the fold of each row; rows with -1 are only used to fit the map that is chosen.

    Of the maps that are worse than the best one by at most a standard error of the difference, it takes the
    simplest, so that few rows do no harm: the one-standard-error rule of Breiman et al. (1984).
    """
    compared, folds = rows.some(fold_of >= 0), fold_of[fold_of >= 0]
    scored = {
        (name, at): _held_out_scores(compared, folds, fit)
        for name, fits in methods.items()
        for at, fit in enumerate(fits)
    }
    means = {key: float(scores.mean()) for key, scores in scored.items()}
    best = {name: max((key for key in means if key[0] == name), key=means.__getitem__) for name in methods}
    top = max(best.values(), key=means.__getitem__)
    name, at = chosen = next(key for key in best.values() if _is_about_as_good(scored[key], scored[top]))
    plain = means.get(("identity", 0), np.nan)
    log_scores = {each: means[key] for each, key in best.items()}
    return Choice(name, methods[name][at](rows), log_scores, means[chosen] - plain)


_SMALLEST = 1e-12
"""The probability of a label that a map gives none."""


def _held_out_scores(rows: FitRows, fold_of: NDArray[np.int64], fit: Fit) -> NDArray[np.float64]:
    scores = np.empty(len(rows.labels))
    for fold in range(int(fold_of.max()) + 1):
        held_out = fold_of == fold
        fitted = fit(rows.some(~held_out))
        test = rows.some(held_out)
        proba = np.column_stack(fitted(list(np.ascontiguousarray(test.logs.T))))
        true = proba[np.arange(len(proba)), test.labels]
        if isinstance(fitted, Identity):  # which leaves scores of 0 as they are
            true = np.where(test.lack_score, 0.0, true)
        scores[held_out] = np.log(np.maximum(true, _SMALLEST))
    return scores


def _is_about_as_good(scores: NDArray[np.float64], top: NDArray[np.float64]) -> bool:
    losses = top - scores
    return bool(losses.mean() <= losses.std() / np.sqrt(len(losses)))
