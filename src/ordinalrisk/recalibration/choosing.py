"""Compare maps by their cross-validated log score, and weigh them by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.recalibration import fitting
from ordinalrisk.recalibration.fitting import FitRows
from ordinalrisk.recalibration.maps import AnyMap, Blend, SingleMap

Fit = Callable[[FitRows], SingleMap]

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
    "regression": tuple(partial(fitting.fit_regression, ridge=ridge) for ridge in (3.0, 30.0, 300.0)),
}
METHODS = (*ON_SCALE, *OFF_SCALE)
"""The names of the maps, from simple to flexible."""
BLENDED = ("identity", *OFF_SCALE)
"""The maps of ``"auto"``. On real data, more maps gave no smaller sets, and a single map larger ones."""

MOST_COMPARED = 10_000
"""Rows beyond these add nothing to the choice."""
_ROWS_FOR_IDENTITY, _TIMES_LIKELIER = 40, 2.0
"""Rows that are added, and how many times likelier the identity makes their labels than other maps do."""
_LEAST_WEIGHT = 0.01
"""A map that counts less is left out."""
_SMALLEST = 1e-6
"""The least probability of a label in a comparison, so that no single row decides."""


class Choice(NamedTuple):
    """The map that is fitted on all rows, and what the comparison found."""

    map: AnyMap
    log_scores: dict[str, float]


def candidates(rows: FitRows) -> dict[str, tuple[Fit, ...]]:
    """Return the fits of each map that these scores allow."""
    return {**ON_SCALE, **OFF_SCALE} if rows.is_on_scale else dict(OFF_SCALE)


def choose(rows: FitRows, fold_of: NDArray[np.int64], methods: Mapping[str, tuple[Fit, ...]]) -> Choice:
    """Return the mean of the maps, with the weights that have the best log score on held-out rows.

    ``fold_of`` gives the fold of each row; rows with -1 are only used to fit the maps in the end. A map that
    has several fits, with weaker and stronger penalties, takes part with the best of them.
    """
    compared, folds = rows.some(fold_of >= 0), fold_of[fold_of >= 0]
    held_out, fits = {}, {}
    for name, ways in methods.items():
        tried = [_held_out(compared, folds, fit) for fit in ways]
        best = max(range(len(ways)), key=lambda way: np.log(tried[way]).mean())
        held_out[name], fits[name] = tried[best], ways[best]
    log_scores = {name: float(np.log(true).mean()) for name, true in held_out.items()}
    if len(methods) == 1:
        (fit,) = fits.values()
        return Choice(fit(rows), log_scores)
    found, true = _weights(held_out), np.column_stack(list(held_out.values()))
    total = sum(weight for weight in found.values() if weight >= _LEAST_WEIGHT)
    weights = {name: weight / total for name, weight in found.items() if weight >= _LEAST_WEIGHT}
    blend = Blend([*weights.values()], [fits[name](rows) for name in weights])
    blended = np.empty(len(true))
    for fold in range(int(folds.max()) + 1):
        others = {name: each[folds != fold] for name, each in held_out.items()}
        blended[folds == fold] = true[folds == fold] @ [*_weights(others).values()]
    log_scores["blend"] = float(np.log(blended).mean())
    return Choice(blend, log_scores)


def _held_out(rows: FitRows, fold_of: NDArray[np.int64], fit: Fit) -> NDArray[np.float64]:
    """Return the probability of each row's label from the map that is fitted on the other folds."""
    true = np.empty(len(rows.labels))
    for fold in range(int(fold_of.max()) + 1):
        held_out = fold_of == fold
        fitted = fit(rows.some(~held_out))
        test = rows.some(held_out)
        proba = np.column_stack(fitted(list(np.ascontiguousarray(test.logs.T))))
        true[held_out] = proba[np.arange(len(proba)), test.labels]
    return np.maximum(true, _SMALLEST)


def _weights(held_out: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Return the weight of each map. With few rows, the identity keeps most of it."""
    true = np.column_stack(list(held_out.values()))
    if "identity" in held_out:
        start = [_TIMES_LIKELIER if name == "identity" else 1.0 for name in held_out]
        true = np.vstack([true, np.tile(start, (_ROWS_FOR_IDENTITY, 1))])
    return dict(zip(held_out, fitting.fit_weights(true).tolist(), strict=True))
