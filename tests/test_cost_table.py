"""Cost tables are the formulas of the losses in rationals, also for a thousand classes."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from effort import quickly

from ordinalrisk import CostTableLoss, DivergenceLoss, RiskController, WeightedLoss

HALF = Fraction(1, 2)


def exact(number):
    """The decimals that were written."""
    return Fraction(str(number))


def slow_table(loss, n_classes):
    """The costs by the formulas, one by one, as rational numbers."""
    labels = range(n_classes)
    if isinstance(loss, WeightedLoss):
        h = [exact(weight) for weight in loss.weights or [1] * n_classes]
        table = [[h[y] if k != y else Fraction(0) for k in labels] for y in labels]
    elif isinstance(loss, DivergenceLoss):
        v = [exact(position) for position in loss.positions or labels]
        side = exact(loss.under), exact(loss.over)
        table = [[side[k > y] * powered(abs(v[y] - v[k]), loss.power) for k in labels] for y in labels]
    else:
        table = [[exact(cost) for cost in row] for row in loss.table]
    bound = max(map(max, table)) if loss.normalize else 1
    return [[cost / bound for cost in row] for row in table]


def powered(distance, power):
    power = exact(power)
    if power.denominator == 1 or distance == 0:
        return distance**power.numerator
    with localcontext(prec=30) as context:
        value = (Decimal(distance.numerator) / distance.denominator) ** (
            Decimal(power.numerator) / power.denominator
        )
        context.prec = 15
        return Fraction(+value)


def steps_up(K):
    """A table without any pattern."""
    costs = np.random.default_rng(K).integers(0, 1000, (K, K)) / 7
    upper = np.triu(costs, 1).cumsum(axis=1)
    return upper + np.tril(costs, -1)[:, ::-1].cumsum(axis=1)[:, ::-1]


def losses_for(K):
    uneven = [i + Fraction(i * i, 7) for i in range(K)]
    for normalize in (True, False):
        yield WeightedLoss(normalize=normalize)
        yield WeightedLoss([1 / (i + 3) for i in range(K)], normalize)
        yield WeightedLoss([10**25, *[Fraction(1, 3)] * (K - 1)], normalize)
        yield CostTableLoss(steps_up(K).round(3), normalize)
        yield CostTableLoss(np.triu(np.ones((K, K), int), 1), normalize)
        for power in (1, 2, 7, HALF, 3.3):
            for positions in (None, uneven):
                for under, over in ((1, 1), (2, Fraction(1, 7)), (0, 1)):
                    yield DivergenceLoss(power, positions, under, over, normalize)


@pytest.mark.parametrize("K", [2, 3, 8])
def test_tables_are_those_of_the_slow_definition_bit_for_bit(K):
    for loss in losses_for(K):
        table = slow_table(loss, K)
        assert [list(row) for row in loss.exact_costs(K)] == table
        assert loss.bound(K) == max(map(max, table))
        assert loss.cost_table(K).tolist() == [[float(cost) for cost in row] for row in table]


UNEVEN = np.random.default_rng(0).random(1_000).cumsum()
SCATTERED = np.abs(UNEVEN[:, None] - UNEVEN) ** 1.5  # a million distinct costs of up to 17 digits
THOUSANDS = {
    "coverage": WeightedLoss,
    "weights": lambda: WeightedLoss(UNEVEN),
    "divergence": DivergenceLoss,
    "asymmetric": lambda: DivergenceLoss(2, under=3),
    "irrational": lambda: DivergenceLoss(3.3),
    "positions": lambda: DivergenceLoss(2, positions=UNEVEN.round(6)),
    "table of distances": lambda: CostTableLoss(abs(np.subtract.outer(np.arange(1_000), np.arange(1_000)))),
    "irregular table": lambda: CostTableLoss(SCATTERED.round(4)),
    "table of all digits": lambda: CostTableLoss(SCATTERED, normalize=False),
    "small costs": lambda: CostTableLoss(SCATTERED * 1e-9),
    "text": lambda: CostTableLoss([[*map(repr, row)] for row in SCATTERED.round(4).tolist()]),
    "short floats": lambda: CostTableLoss(SCATTERED.astype(np.float32)),
}


@pytest.mark.parametrize("loss", THOUSANDS)
def test_a_thousand_classes_take_no_time(loss):
    with quickly(300):  # ninety at most are measured
        loss = THOUSANDS[loss]()
        controller = RiskController(loss, loss.bound(1_000) / 2, check=False)
        assert controller.calibrate(np.full((2, 1_000), 1e-3), [0, 999]).n_rows_ == 2
