r"""The maps from logarithms of scores to probabilities, each with its formula.

A map takes the columns of the log-probabilities :math:`\ell_j` of a model and returns the columns of the
recalibrated probabilities. Sums are added up in the order of the labels, so every batch and every processor
gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec

from ordinalrisk.recalibration.elementary import exp, logistic, namespace, shares, softmax

Columns = Sequence[Any]


class Map(msgspec.Struct, frozen=True, tag_field="map"):
    """A fitted map; its fields are what is saved."""

    def __call__(self, logs: Columns) -> list[Any]:
        raise NotImplementedError


class Identity(Map, frozen=True, tag="identity"):
    r"""The probabilities as they are: :math:`q_k = p_k`."""

    def __call__(self, logs: Columns) -> list[Any]:
        return shares([exp(column) for column in logs])


class Mixture(Map, frozen=True, tag="mixture"):
    r"""A part of the label shares: :math:`q_k = (1 - w)\,p_k + w\,\pi_k`.

    It gives labels with a score of 0 the probability that they have without a model.
    """

    weight: float
    label_shares: list[float]

    def __call__(self, logs: Columns) -> list[Any]:
        kept = 1 - self.weight
        mixed = [
            kept * column + self.weight * share
            for column, share in zip(Identity()(logs), self.label_shares, strict=True)
        ]
        return shares(mixed)


class Temperature(Map, frozen=True, tag="temperature"):
    r"""Sharper or flatter, with a bias for each label: :math:`q_k \propto \exp(a\,\ell_k + b_k)`."""

    slope: float
    bias: list[float]

    def __call__(self, logs: Columns) -> list[Any]:
        return softmax([self.slope * column + b for column, b in zip(logs, self.bias, strict=True)])


class Regression(Map, frozen=True, tag="regression"):
    r"""Multinomial regression on the log-scores: :math:`q_k \propto \exp(b_k + \sum_j W_{kj} \ell_j)`."""

    weights: list[list[float]]
    bias: list[float]

    def __call__(self, logs: Columns) -> list[Any]:
        return softmax([_linear(row, b, logs) for row, b in zip(self.weights, self.bias, strict=True)])


class OrderedRegression(Map, frozen=True, tag="ordered_regression"):
    r"""Proportional odds: :math:`P(y \le k) = \sigma(c_k - \sum_j w_j \ell_j - v \sum_j j\,p_j)`."""

    weights: list[float]
    mean_weight: float
    cuts: list[float]

    def __call__(self, logs: Columns) -> list[Any]:
        position = _linear(self.weights, 0.0, logs) + self.mean_weight * _mean_label(logs)
        below = [logistic(cut - position) for cut in self.cuts]
        return _differences(below)


class Isotonic(Map, frozen=True, tag="isotonic"):
    r"""A non-decreasing function of cumulative probabilities: :math:`P(y \le k) = f_k(\sum_{j\le k} p_j)`."""

    knots: list[list[float]]
    values: list[list[float]]

    def __call__(self, logs: Columns) -> list[Any]:
        proba = Identity()(logs)
        below, total, least = [], 0, None
        for column, knots, values in zip(proba[:-1], self.knots, self.values, strict=True):
            total = total + column
            each = _interpolated(total, knots, values)
            least = each if least is None else namespace(each).maximum(least, each)
            below.append(least)
        return _differences(below)


def _linear(weights: Sequence[float], start: float, logs: Columns) -> Any:
    value = start + weights[0] * logs[0]
    for weight, column in zip(weights[1:], logs[1:], strict=True):
        value = value + weight * column
    return value


def _mean_label(logs: Columns) -> Any:
    proba = Identity()(logs)
    return _linear([float(label) for label in range(len(logs))], 0.0, proba)


def _differences(below: Columns) -> list[Any]:
    """Return the probabilities of the labels from those of the labels up to each."""
    xp = namespace(below[0])
    tails = [
        below[0],
        *(after - before for before, after in pairwise(below)),
        1 - below[-1],
    ]
    return shares([xp.clip(each, _SMALLEST, None) for each in tails])


_SMALLEST = 1e-9
"""No label has a smaller probability, however sure a regression is."""


def _interpolated(x: Any, knots: Sequence[float], values: Sequence[float]) -> Any:
    """Interpolate between knots, constant outside."""
    xp = namespace(x)
    at, value = xp.asarray(knots, dtype=xp.float64), xp.asarray(values, dtype=xp.float64)
    if xp.__name__ == "torch":
        at, value = at.to(x.device), value.to(x.device)
    right = xp.clip(xp.searchsorted(at, x), 1, len(knots) - 1)
    share = xp.clip((x - at[right - 1]) / (at[right] - at[right - 1]), 0.0, 1.0)
    return value[right - 1] + share * (value[right] - value[right - 1])


MAPS = (Identity, Mixture, Temperature, Regression, OrderedRegression, Isotonic)
AnyMap = Identity | Mixture | Temperature | Regression | OrderedRegression | Isotonic
