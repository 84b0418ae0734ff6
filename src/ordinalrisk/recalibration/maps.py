"""The maps from logarithms of scores to probabilities, each with its formula.

A map takes the columns of the log-probabilities of a model and returns the columns of the
recalibrated probabilities. Sums are added up in the order of the labels, so every batch and every processor
gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isclose
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ordinalrisk.recalibration.elementary import exp, logistic, namespace, shares, softmax

Columns = Sequence[Any]


class Map(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """A fitted map; its fields are what is saved."""

    def __call__(self, logs: Columns) -> list[Any]:
        raise NotImplementedError

    def n_labels(self, n_scores: int) -> int:
        """Return the number of labels that get a probability."""
        return n_scores

    def require_consistent(self, n_scores: int) -> None:
        """Raise an error if the fields do not fit each other or the number of scores."""

    def weights_of_maps(self) -> dict[str, float]:
        """Return how much each single map counts, by name."""
        return {str(type(self).__struct_config__.tag): 1.0}


class Identity(Map, frozen=True, tag="identity"):
    """The probabilities as they are: q[k] = p[k]."""

    def __call__(self, logs: Columns) -> list[Any]:
        return shares([exp(column) for column in logs])


class Mixture(Map, frozen=True, tag="mixture"):
    """A part of the label shares, also for labels with a score of 0: q[k] = (1 - w) p[k] + w share[k]."""

    weight: Annotated[float, Meta(ge=0, le=1, description="w, the part of the label shares.")]
    label_shares: Annotated[list[float], Meta(description="The share of each label.")]

    def __call__(self, logs: Columns) -> list[Any]:
        kept = 1 - self.weight
        mixed = [
            kept * column + self.weight * share
            for column, share in zip(Identity()(logs), self.label_shares, strict=True)
        ]
        return shares(mixed)

    def require_consistent(self, n_scores: int) -> None:
        _require_length(self.label_shares, n_scores, "label_shares")
        if min(self.label_shares) < 0 or not isclose(sum(self.label_shares), 1, rel_tol=1e-6):
            raise ValueError("label_shares must sum to 1")


class Temperature(Map, frozen=True, tag="temperature"):
    """Sharper or flatter, with a bias for each label: q[k] ~ exp(a log p[k] + b[k])."""

    slope: Annotated[float, Meta(ge=0, description="a, one by the temperature.")]
    bias: Annotated[list[float], Meta(description="b, a number for each label.")]

    def __call__(self, logs: Columns) -> list[Any]:
        return softmax([self.slope * column + b for column, b in zip(logs, self.bias, strict=True)])

    def require_consistent(self, n_scores: int) -> None:
        _require_length(self.bias, n_scores, "bias")


class Regression(Map, frozen=True, tag="regression"):
    """Multinomial regression on the logarithms: q[k] ~ exp(b[k] + sum over j of W[k, j] log p[j])."""

    weights: Annotated[list[list[float]], Meta(description="W: for each label, a number for each score.")]
    bias: Annotated[list[float], Meta(min_length=2, description="b, a number for each label.")]

    def __call__(self, logs: Columns) -> list[Any]:
        return softmax([_linear(row, b, logs) for row, b in zip(self.weights, self.bias, strict=True)])

    def n_labels(self, n_scores: int) -> int:
        return len(self.bias)

    def require_consistent(self, n_scores: int) -> None:
        _require_length(self.weights, len(self.bias), "weights")
        for row in self.weights:
            _require_length(row, n_scores, "each of weights")


class OrderedRegression(Map, frozen=True, tag="ordered_regression"):
    """Proportional odds: P(y <= k) = 1 / (1 + exp(sum of w[j] log p[j] + v sum of j p[j] - c[k]))."""

    weights: Annotated[list[float], Meta(description="w, a number for each score.")]
    mean_weight: Annotated[float, Meta(description="v, of the mean label.")]
    cuts: Annotated[list[float], Meta(min_length=1, description="c, one for each label but the last.")]

    def __call__(self, logs: Columns) -> list[Any]:
        position = _linear(self.weights, 0.0, logs) + self.mean_weight * _mean_label(logs)
        below = [logistic(cut - position) for cut in self.cuts]
        return _differences(below)

    def n_labels(self, n_scores: int) -> int:
        return len(self.cuts) + 1

    def require_consistent(self, n_scores: int) -> None:
        _require_length(self.weights, n_scores, "weights")
        _require_order(self.cuts, "cuts")


class Isotonic(Map, frozen=True, tag="isotonic"):
    """A non-decreasing function of each cumulative probability: P(y <= k) = f[k](p[0] + .. + p[k])."""

    knots: Annotated[
        list[list[float]], Meta(description="For each label but the last, where its function bends.")
    ]
    values: Annotated[list[list[float]], Meta(description="The value of the function at each knot.")]

    def __call__(self, logs: Columns) -> list[Any]:
        proba = Identity()(logs)
        below, total, least = [], 0, None
        for column, knots, values in zip(proba[:-1], self.knots, self.values, strict=True):
            total = total + column
            each = _interpolated(total, knots, values)
            least = each if least is None else namespace(each).maximum(least, each)
            below.append(least)
        return _differences(below)

    def require_consistent(self, n_scores: int) -> None:
        _require_length(self.knots, n_scores - 1, "knots")
        _require_length(self.values, n_scores - 1, "values")
        for knots, values in zip(self.knots, self.values, strict=True):
            _require_length(values, len(knots), "each of values")
            _require_order(knots, "each of knots", strictly=True)
            _require_order(values, "each of values")
            if len(knots) < 2 or values[0] < 0 or values[-1] > 1:
                raise ValueError("a function needs two knots or more, and values between 0 and 1")


SingleMap = Identity | Mixture | Temperature | Regression | OrderedRegression | Isotonic


class Blend(Map, frozen=True, tag="blend"):
    r"""The weighted mean of other maps: :math:`q_k = \sum_m w_m\,q_k^{(m)}`."""

    weights: Annotated[list[float], Meta(min_length=1, description="w, a number for each map.")]
    maps: Annotated[list[SingleMap], Meta(description="The maps.")]

    def __call__(self, logs: Columns) -> list[Any]:
        parts = [each(logs) for each in self.maps]
        return shares([_linear(self.weights, 0.0, columns) for columns in zip(*parts, strict=True)])

    def n_labels(self, n_scores: int) -> int:
        return self.maps[0].n_labels(n_scores)

    def weights_of_maps(self) -> dict[str, float]:
        names = (str(type(each).__struct_config__.tag) for each in self.maps)
        return dict(zip(names, self.weights, strict=True))

    def require_consistent(self, n_scores: int) -> None:
        _require_length(self.maps, len(self.weights), "maps")
        for each in self.maps:
            each.require_consistent(n_scores)
        if len({each.n_labels(n_scores) for each in self.maps}) > 1:
            raise ValueError("maps must all have the same number of labels")
        if min(self.weights) < 0 or not isclose(sum(self.weights), 1, rel_tol=1e-6):
            raise ValueError("weights must sum to 1")


def _require_length(values: Sequence[Any], length: int, name: str) -> None:
    if len(values) != length:
        raise ValueError(f"{name} must have length {length}; got {len(values)}")


def _require_order(values: Sequence[float], name: str, *, strictly: bool = False) -> None:
    if not all(a < b if strictly else a <= b for a, b in pairwise(values)):
        raise ValueError(f"{name} must increase")


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


MAPS = (Identity, Mixture, Temperature, Regression, OrderedRegression, Isotonic, Blend)
AnyMap = SingleMap | Blend
