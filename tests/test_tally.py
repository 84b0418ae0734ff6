"""Counts of pairs of labels: by the definition, in any batches, and never rounded."""

from fractions import Fraction

import numpy as np
import pytest

from ordinalrisk import CostTableLoss, DivergenceLoss, IntervalSet, WeightedLoss, metrics
from ordinalrisk.evaluation import counts as tally
from ordinalrisk.evaluation.counts import Tally

LOSSES = [
    WeightedLoss(),
    WeightedLoss([1, 2, 3, 4, 0.1]),
    DivergenceLoss(0.5),
    DivergenceLoss(under=3, normalize=False),
    CostTableLoss(np.abs(np.subtract.outer(range(5), range(5))) * [[1], [2], [3], [4], [5]]),
]
COUNTS = ("truth_lower", "truth_upper", "lower_upper")


def random_rows(n_rows=300, n_classes=5, seed=0):
    """Random intervals and labels; the last class has no rows."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, n_classes, (n_rows, 2)), axis=1)
    return rng.integers(0, n_classes - 1, n_rows), IntervalSet(ends[:, 0], ends[:, 1], range(n_classes))


def each(labels, sets):
    return zip(labels.tolist(), sets.lower_index.tolist(), sets.upper_index.tolist(), strict=True)


@pytest.fixture(params=[0, 1 << 16], ids=["pairs", "triples"], autouse=True)
def way_of_counting(request, monkeypatch):
    monkeypatch.setattr(tally, "_FEW_CELLS", request.param)


def test_counts_are_those_of_the_definition():
    labels, sets = random_rows()
    counted = Tally.of(labels, sets)
    held, nearest = np.zeros((2, 5, 5), int)
    pairs = np.zeros((3, 5, 5), int)
    sizes, centroids = np.zeros(5, int), np.zeros(9, int)
    for y, lower, upper in each(labels, sets):
        pairs[0][y, lower] += 1
        pairs[1][y, upper] += 1
        pairs[2][lower, upper] += 1
        nearest[y, min(max(y, lower), upper)] += 1
        held[y, lower : upper + 1] += 1
        sizes[upper - lower] += 1
        centroids[lower + upper] += 1
    for name, expected in zip(COUNTS, pairs, strict=True):
        assert np.array_equal(getattr(counted, name), expected)
    for name, expected in {"nearest": nearest, "held": held, "sizes": sizes, "centroids": centroids}.items():
        assert np.array_equal(getattr(counted, name), expected)
    assert (counted.n_rows, counted.class_rows.tolist()) == (300, np.bincount(labels, minlength=5).tolist())


@pytest.mark.parametrize("cuts", [[], [1], [0, 10, 10, 299], range(300)])
def test_batches_add_up(cuts):
    labels, sets = random_rows()
    whole, added = Tally.of(labels, sets), Tally.empty(5)
    for rows in np.split(np.arange(300), list(cuts)):
        added += Tally.of(labels[rows], IntervalSet(sets.lower_index[rows], sets.upper_index[rows], range(5)))
    for name in COUNTS:
        assert np.array_equal(getattr(added, name), getattr(whole, name))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_total_loss_is_exact(loss):
    labels, sets = random_rows()
    table = loss.exact_costs(5)
    total = sum(table[y][min(max(y, lower), upper)] for y, lower, upper in each(labels, sets))
    assert isinstance(total, Fraction)
    assert Tally.of(labels, sets).total_loss(loss) == total


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_risk_is_the_mean_of_the_losses(loss):
    labels, sets = random_rows()
    losses = metrics.losses(labels, sets, loss)
    counted = Tally.of(labels, sets)
    assert counted.risk(loss) == pytest.approx(losses.mean(), rel=1e-14)
    by_class = [losses[labels == k].mean() for k in range(4)]
    np.testing.assert_allclose(counted.class_risk(loss), [*by_class, np.nan], rtol=1e-14)


def test_sizes_and_coverage_of_each_class():
    labels, sets = random_rows()
    counted = Tally.of(labels, sets)
    inside = (sets.lower_index <= labels) & (labels <= sets.upper_index)
    for values, expected in ((counted.class_size(), sets.size), (counted.class_coverage(), inside)):
        by_class = [expected[labels == k].mean() for k in range(4)]
        np.testing.assert_allclose(values, [*by_class, np.nan], rtol=1e-14)


def test_no_rows_are_nan():
    empty = Tally.empty(3)
    assert empty.n_rows == 0
    assert empty.total_loss(WeightedLoss()) == 0
    for value in (
        empty.coverage(),
        empty.risk(WeightedLoss()),
        empty.mean_size(),
        empty.distance_when_missed(),
    ):
        assert np.isnan(value)
    assert np.isnan(empty.class_size()).all()


def test_counts_beyond_32_bits_stay_exact():
    """As of a file with billions of rows."""
    labels, sets = random_rows()
    once = Tally.of(labels, sets)
    many = Tally(*(getattr(once, name) * 10**10 for name in COUNTS))
    loss = DivergenceLoss(power=0.5)
    assert many.n_rows == 300 * 10**10
    assert many.total_loss(loss) == once.total_loss(loss) * 10**10
    assert many.coverage() == once.coverage()
    assert many.risk(loss) == pytest.approx(once.risk(loss), rel=1e-14)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64])
def test_labels_of_few_bytes_do_not_overflow(kind):
    labels, sets = random_rows(n_classes=120)
    expected = Tally.of(labels, sets)
    narrow = Tally.of(labels.astype(kind), sets)
    assert all(np.array_equal(getattr(narrow, name), getattr(expected, name)) for name in COUNTS)
