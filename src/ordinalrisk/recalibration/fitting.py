"""Fit each map by the log score, with a ridge penalty so that few rows do no harm.

A penalty pulls towards the simpler map, in units of the standard deviation of each feature, as if it had been
seen in some rows already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.recalibration.maps import (
    Identity,
    Isotonic,
    Mixture,
    OrderedRegression,
    Regression,
    Temperature,
)

Floats = NDArray[np.float64]
_LARGEST_SLOPE = 50.0
_ADDED = 0.5
"""How many rows are added for each label, because a label that no row has is not impossible."""


@dataclass(frozen=True)
class FitRows:
    """The log-probabilities of rows with known labels."""

    logs: Floats
    labels: NDArray[np.int64]
    n_classes: int

    @property
    def is_on_scale(self) -> bool:
        """Whether there is one score for each label."""
        return bool(self.logs.shape[1] == self.n_classes)

    def some(self, rows: Any) -> FitRows:
        return FitRows(self.logs[rows], self.labels[rows], self.n_classes)

    def label_shares(self) -> Floats:
        """Return the share of each label; half a row is added to each, so that none is 0."""
        counts = np.bincount(self.labels, minlength=self.n_classes) + _ADDED
        return np.asarray(counts / counts.sum(), np.float64)


def fit_identity(rows: FitRows) -> Identity:
    return Identity()


def fit_mixture(rows: FitRows) -> Mixture:
    from scipy.optimize import minimize_scalar

    shares, proba = rows.label_shares(), np.exp(rows.logs)
    proba /= proba.sum(axis=1, keepdims=True)
    true, share = proba[np.arange(len(proba)), rows.labels], shares[rows.labels]
    found = minimize_scalar(
        lambda weight: -np.log((1 - weight) * true + weight * share).sum(),
        bounds=(1e-9, 1 - 1e-9),
        method="bounded",
    )
    return Mixture(weight=float(found.x), label_shares=shares.tolist())


def fit_temperature(rows: FitRows, ridge: float = 1.0) -> Temperature:
    n, K = rows.logs.shape
    logs = np.ascontiguousarray(rows.logs.T)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        slope, bias = parameters[0], parameters[1:]
        value, error = _softmax_loss(slope * logs + bias[:, None], rows.labels)
        gradient = np.r_[(error * logs).sum(), error.sum(axis=1)]
        away = np.r_[slope - 1, bias]
        return value + ridge * (away @ away) / 2, gradient + ridge * away

    found = _minimized(loss, np.r_[1.0, np.zeros(K)], n, [(0.0, _LARGEST_SLOPE), *[(None, None)] * K])
    return Temperature(slope=float(found[0]), bias=found[1:].tolist())


def fit_regression(rows: FitRows, ridge: float = 10.0) -> Regression:
    n, n_scores = rows.logs.shape
    K = rows.n_classes
    scale = rows.logs.std(axis=0) + 1e-3
    if rows.is_on_scale:
        simple = fit_temperature(rows)
        centre = np.column_stack([simple.slope * np.eye(K), simple.bias])
    else:
        centre = np.column_stack([np.zeros((K, n_scores)), np.log(rows.label_shares())])
    step = 1 / np.sqrt(ridge * np.r_[scale**2, 0.1])  # in such steps the search takes far fewer of them
    logs = np.ascontiguousarray(rows.logs.T)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        away = parameters.reshape(K, n_scores + 1)
        matrix = centre + step * away
        value, error = _softmax_loss(matrix[:, :-1] @ logs + matrix[:, -1:], rows.labels)
        gradient = np.column_stack([error @ rows.logs, error.sum(axis=1)])
        return value + (away**2).sum() / 2, (step * gradient + away).ravel()

    found = centre + step * _minimized(loss, np.zeros(centre.size), n).reshape(K, n_scores + 1)
    return Regression(weights=found[:, :-1].tolist(), bias=found[:, -1].tolist())


def fit_ordered_regression(rows: FitRows, ridge: float = 1.0) -> OrderedRegression:
    """Fit the ordered regression to the rows and to half a row of each label, which has the mean features."""
    n, n_scores = rows.logs.shape
    K = rows.n_classes
    proba = np.exp(rows.logs)
    mean = proba @ np.arange(n_scores) / proba.sum(axis=1)
    features = np.column_stack([rows.logs, mean])
    centre, scale = features.mean(axis=0), features.std(axis=0) + 1e-6
    standard = np.vstack([(features - centre) / scale, np.zeros((K, n_scores + 1))])
    counts = np.r_[np.ones(n), np.full(K, _ADDED)]
    shares = np.cumsum(rows.label_shares())[:-1]
    start = np.log(shares / (1 - shares))
    label = np.r_[rows.labels, np.arange(K)]

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights, first, steps = np.split(parameters, [n_scores + 1, n_scores + 2])
        sizes = np.exp(np.clip(steps, -30, 30))
        cuts = first[0] + np.r_[0.0, np.cumsum(sizes)]
        eta = standard @ weights
        above = np.where(label < K - 1, _logistic(np.append(cuts, 0.0)[label] - eta), 1.0)
        below = np.where(label > 0, _logistic(np.append(0.0, cuts)[label] - eta), 0.0)
        p = np.maximum(above - below, 1e-12)
        up, down = counts * above * (1 - above) / p, counts * below * (1 - below) / p
        by_cut = np.bincount(label, -up, K)[: K - 1] + np.bincount(label, down, K)[1:]
        tails = np.cumsum(by_cut[::-1])[::-1]
        gradient = np.r_[standard.T @ (up - down), tails[0], tails[1:] * sizes]
        gradient[: n_scores + 1] += ridge * weights
        return -(counts @ np.log(p)) + ridge * (weights @ weights) / 2, gradient

    begin = np.r_[np.zeros(n_scores + 1), start[0], np.log(np.maximum(np.diff(start), 1e-6))]
    found = _minimized(loss, begin, n)
    weights = found[: n_scores + 1] / scale
    cuts = found[n_scores + 1] + np.r_[0.0, np.cumsum(np.exp(np.clip(found[n_scores + 2 :], -30, 30)))]
    cuts = cuts + weights @ centre
    return OrderedRegression(
        weights=weights[:-1].tolist(), mean_weight=float(weights[-1]), cuts=cuts.tolist()
    )


def fit_isotonic(rows: FitRows) -> Isotonic:
    from sklearn.isotonic import IsotonicRegression

    proba = np.exp(rows.logs)
    below = np.cumsum(proba / proba.sum(axis=1, keepdims=True), axis=1)
    least = 0.5 / (len(proba) + 1)
    knots, values = [], []
    for k in range(rows.n_classes - 1):
        fit = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip")
        fit.fit(below[:, k], rows.labels <= k)
        at, value = fit.X_thresholds_, fit.y_thresholds_
        if len(at) == 1:
            at, value = np.r_[at, at + 1], np.r_[value, value]
        knots.append(at.tolist())
        values.append(value.tolist())
    return Isotonic(knots=knots, values=values)


def fit_weights(true: Floats) -> Floats:
    r"""Return the weights of maps :math:`m` that maximize :math:`\sum_i \log \sum_m w_m q^{(m)}_{y_i}(x_i)`.

    There is a row of ``true`` for each row ``i``.
    """

    def loss(logits: Floats) -> tuple[float, Floats]:
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        parts = weights * true
        total = parts.sum(axis=1)
        return -np.log(total).sum(), weights * len(true) - (parts / total[:, None]).sum(axis=0)

    found = _minimized(loss, np.zeros(true.shape[1]), len(true))
    weights = np.exp(found - found.max())
    return np.asarray(weights / weights.sum(), np.float64)


def _logistic(z: Floats) -> Floats:
    share: Floats = 1 / (1 + np.exp(-np.clip(z, -35, 35)))
    return share


def _softmax_loss(logits: Floats, labels: NDArray[np.int64]) -> tuple[float, Floats]:
    """Return the total log score, and its gradient in each logit; there is a row of logits for each label."""
    logits = logits - logits.max(axis=0)
    error = np.exp(logits)
    total = error.sum(axis=0)
    at = np.arange(len(labels))
    value = float((np.log(total) - logits[labels, at]).sum())
    error /= total
    error[labels, at] -= 1
    return value, error


def _minimized(
    loss: Callable[[Floats], tuple[float, Floats]], start: Floats, n_rows: int, bounds: Any = None
) -> Floats:
    from scipy.optimize import minimize

    def mean(parameters: Floats) -> tuple[float, Floats]:
        value, gradient = loss(parameters)
        return value / n_rows, gradient / n_rows

    found = minimize(mean, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 300})
    return np.asarray(found.x, np.float64)
