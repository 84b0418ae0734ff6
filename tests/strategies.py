"""The inputs of the laws: every kind of loss, growth rule and probabilities."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import strategies as st

import ordinalrisk as orisk

RULES = [getattr(orisk, name) for name in orisk.__all__ if name.endswith("Growth")]
RULE_NAMES = [rule().name for rule in RULES]


def _another_point(number, rule):
    """A point label that is not the rule's default; rules take turns."""
    return [point for point in ("bayes", "median", "mode") if point != rule().point][number // 2 % 2]


GROWTH_RULES = [
    *(rule() for rule in RULES),
    *(rule(_another_point(number, rule)) for number, rule in enumerate(RULES)),
]


def _any_table(K):
    """A cost table without structure: random steps away from the diagonal, some of them zero."""
    rng = np.random.default_rng(K)
    table = np.zeros((K, K), int)
    for y in range(K):
        table[y, y + 1 :] = np.cumsum(rng.integers(0, 4, K - 1 - y))
        table[y, :y] = np.cumsum(rng.integers(0, 4, y))[::-1]
    table[0, -1] += 1  # not all zero
    return table


_LOSSES = {
    "coverage": lambda K: orisk.WeightedLoss(),
    "weighted": lambda K: orisk.WeightedLoss([0.1 * (1 + i % 3) for i in range(K)]),
    "zero weights": lambda K: orisk.WeightedLoss(range(K)),
    "divergence": lambda K: orisk.DivergenceLoss(),
    "squared": lambda K: orisk.DivergenceLoss(power=2, normalize=False),
    "root": lambda K: orisk.DivergenceLoss(power=0.5),
    "positions": lambda K: orisk.DivergenceLoss(positions=[i * i / 10 for i in range(1, K + 1)]),
    "asymmetric": lambda K: orisk.DivergenceLoss(under=5, over=0.3),
    "table": lambda K: orisk.CostTableLoss(_any_table(K), normalize=False),
}
LOSSES = {name: cache(loss) for name, loss in _LOSSES.items()}

for_every_rule = pytest.mark.parametrize("growth", GROWTH_RULES, ids=repr)
for_every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


def for_every_loss_and_rule(test):
    """All rules for a loss, one after the other: its cost tables are made once."""
    return for_every_rule(for_every_loss(test))


def labels_drawn(proba, rng):
    """A label for each row, drawn from its probabilities."""
    return (proba.astype(float).cumsum(axis=1)[:, :-1] < rng.random((len(proba), 1))).sum(axis=1)


def interval_rows(n=500, n_classes=5, seed=0):
    """Random labels and intervals; the last class has no rows."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, n_classes, (n, 2)), axis=1)
    return rng.integers(0, n_classes - 1, n), orisk.IntervalSet(ends[:, 0], ends[:, 1], range(n_classes))


def _uniform(rng, n, K):
    return np.full((n, K), 1.0 / K)


def _flat(rng, n, K):
    return rng.dirichlet(np.ones(K), n)


def _peaked(rng, n, K):
    centre = rng.uniform(0, K - 1, (n, 1))
    return orisk.probabilities.softmax(-((np.arange(K) - centre) ** 2) / rng.uniform(0.2, 3))


def _multimodal(rng, n, K):
    return orisk.probabilities.softmax(rng.normal(0, 3, (n, K)))


def _one_hot(rng, n, K):
    return np.eye(K)[rng.integers(0, K, n)]


def _coarse(rng, n, K):
    """Few distinct values, so that levels tie within rows and between them."""
    return rng.multinomial(4, np.ones(K) / K, size=n) / 4


def _denormal(rng, n, K):
    p = rng.integers(0, 3, (n, K)) * 5e-324 * rng.choice([1.0, 1e10, 1e300], (n, K))
    p[np.arange(n), rng.integers(0, K, n)] = 1.0
    return p


PROBABILITIES = [_uniform, _flat, _peaked, _multimodal, _one_hot, _coarse, _denormal]


@st.composite
def calibration_sets(draw, max_rows=12, max_classes=60):
    """Probabilities and labels; the labels are sometimes likely, sometimes anything."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    K = draw(st.one_of(st.integers(2, 8), st.integers(2, max_classes)))
    n = draw(st.integers(1, max_rows))
    proba = draw(st.sampled_from(PROBABILITIES))(rng, n, K)
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    likely = draw(st.booleans())
    y = [rng.choice(K, p=p / p.sum()) if likely else rng.integers(K) for p in proba]
    return proba.astype(dtype), np.array(y)


def shares():
    """What share of its largest value the expected loss may have; short decimals, as people write them."""
    return st.integers(1, 99).map(lambda percent: Fraction(percent, 100))


@cache
def _exact_costs(loss, K):
    return loss.exact_costs(K)


def exact_losses(y, lower, upper, loss, K):
    """The loss of each row as a rational, straight from the definition."""
    table = _exact_costs(loss, K)
    return [table[label][min(max(label, low), up)] for label, low, up in zip(y, lower, upper, strict=True)]


def as_rule(growth):
    """The growth rule that a name means."""
    return orisk.RiskController(growth=growth).growth


def as_loss(loss):
    """The loss that a name or a table means."""
    return orisk.RiskController(loss=loss).loss


def ends_of(levels, threshold):
    """First and last label of each set, straight from the definition."""
    inside = levels >= threshold
    return inside.argmax(axis=1), inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
