"""Cost tables: exact numbers, the gains that kernels read, and how many are kept."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from effort import quickly

from ordinalrisk import CostTableLoss, DivergenceLoss, WeightedLoss
from ordinalrisk.losses import cost_table as cost_tables
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.selection.coverage_weights import _gains

HALF = Fraction(1, 2)


def exact(number):
    """The decimals that were written."""
    return Fraction(str(number))


def slow_table(loss, n_classes):
    """The costs as the formulas have them, one by one, in rationals."""
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
        table, costs = slow_table(loss, K), CostTable.of(loss, K)
        assert [list(row) for row in costs.exact] == table
        per_unit = math.lcm(*(cost.denominator for row in table for cost in row))
        assert (costs.unit, costs.bound) == (Fraction(1, per_unit), max(map(max, table)))
        assert costs.units.tolist() == [[cost * per_unit for cost in row] for row in table]
        assert (costs.units.dtype == object) == (max(map(max, costs.units.tolist())) >= 2**62)
        assert costs.values.tolist() == [[float(cost) for cost in row] for row in table]
        left, right = np.zeros((K, K)), np.zeros((K, K))
        for j in range(K):
            for i in range(j + 1) if j < K - 1 else ():
                left[j, i] = float(table[i][j + 1] - table[i][j])
            for i in range(j, K) if j > 0 else ():
                right[j, i] = float(table[i][j - 1] - table[i][j])
        gains = costs.gains
        assert gains.left.tobytes() == left.tobytes()
        assert gains.right.tobytes() == right.tobytes()
        assert gains.rank.tolist() == [[sorted(set(row)).index(cost) for cost in row] for row in table]
        misses = [{cost for k, cost in enumerate(row) if k != y} for y, row in enumerate(table)]
        assert gains.weighted == all(len(costs) == 1 for costs in misses)
        weights = [float(*costs) for costs in misses] if gains.weighted else [1.0] * K
        assert gains.mode_weights.tolist() == weights


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
    with quickly(20):  # seven at most are measured
        assert CostTable(THOUSANDS[loss]().whole_costs(1_000)).gains.bound > 0


def test_the_tables_that_are_kept_take_bounded_memory():
    size = cost_tables._CACHED_BYTES
    for n in range(2, 300, 6):
        for loss in (DivergenceLoss(under=n), WeightedLoss()):
            first = CostTable.of(loss, n % 100 + 50)
            assert CostTable.of(loss, n % 100 + 50) is first
        assert sum(table.n_bytes for table in cost_tables._tables.kept.values()) <= size
    assert len(cost_tables._tables.kept) > 1
    assert CostTable.of(WeightedLoss(), 1_300) is CostTable.of(WeightedLoss(), 1_300)  # larger than all
    assert len(cost_tables._tables.kept) == 1


def test_the_unit_divides_every_cost():
    table = CostTable.of(WeightedLoss([Fraction(1, 6), Fraction(1, 10), 1]), 3)
    assert table.unit == Fraction(1, 30)
    assert table.units.tolist() == [[0, 5, 5], [3, 0, 3], [30, 30, 0]]


def test_gains_are_those_of_the_loss():
    weights = [0.5, 0.0, 3.25, 7.0]
    exact = CostTable.of(WeightedLoss(weights, normalize=False), 4).gains
    for name, value in _gains(weights)._asdict().items():
        if name != "rank":  # of a class without weight all costs are equal, which levels do not ask
            np.testing.assert_array_equal(value, getattr(exact, name), err_msg=name)
