"""Losses: the cost tables against their formulas, exact, immutable and comparable."""

import copy
import dataclasses
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV
from strategies import as_loss

from ordinalrisk import CostTableLoss, DivergenceLoss, RiskController, WeightedLoss

TABLE = [[0, 1, 2], [5, 0, 1], [50, 20, 0]]
POSITIONS = [18, 30, 65, 100.5]

LOSSES = [
    WeightedLoss(),
    WeightedLoss([1, 2, 3]),
    WeightedLoss([0.1, 0.3, 0]),
    WeightedLoss([Fraction(1, 3), Decimal("0.10"), 2], normalize=False),
    DivergenceLoss(),
    DivergenceLoss(2),
    DivergenceLoss(0.5, under=3, over=Fraction(1, 7)),
    DivergenceLoss(positions=[1, 2.5, Decimal("10.1")], normalize=False),
    DivergenceLoss(under=0),
    CostTableLoss(TABLE),
    CostTableLoss(TABLE, normalize=False),
    CostTableLoss([[0, 0.1, 0.1], [Fraction(1, 3), 0, 1], [1, 1, 0]]),
]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def tabulated(cost, n_classes):
    """The table of ``cost(y, k)`` off the diagonal."""
    labels = range(n_classes)
    return [[cost(y, k) if k != y else 0 for k in labels] for y in labels]


# the formulas


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_coverage_costs_one_whatever_the_miss(n_classes):
    expected = tabulated(lambda y, k: 1, n_classes)
    for loss in (WeightedLoss(), WeightedLoss([1] * n_classes), WeightedLoss([0.3] * n_classes)):
        assert loss.cost_table(n_classes).tolist() == expected


@pytest.mark.parametrize("weights", [[1, 2, 3], [5, 0, 2.5, 1], [0.1, 0.1]], ids=str)
@pytest.mark.parametrize("normalize", [True, False])
def test_a_weighted_miss_costs_the_weight_of_the_truth(weights, normalize):
    loss = WeightedLoss(weights, normalize=normalize)
    scale = max(weights) if normalize else 1
    expected = tabulated(lambda y, k: weights[y] / scale, len(weights))
    np.testing.assert_allclose(loss.cost_table(len(weights)), expected, rtol=1e-15)
    assert loss.bound(len(weights)) == (1 if normalize else Fraction(str(max(weights))))


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("power", [1, 2, 3])
def test_divergence_is_a_power_of_the_distance(n_classes, power):
    expected = tabulated(lambda y, k: (abs(y - k) / (n_classes - 1)) ** power, n_classes)
    np.testing.assert_allclose(DivergenceLoss(power).cost_table(n_classes), expected, rtol=1e-15)
    natural = tabulated(lambda y, k: abs(y - k) ** power, n_classes)
    assert DivergenceLoss(power, normalize=False).cost_table(n_classes).tolist() == natural
    assert DivergenceLoss(power, normalize=False).bound(n_classes) == (n_classes - 1) ** power


@pytest.mark.parametrize("power", [0.5, 1.5, 0.1, Fraction(1, 3), Decimal("2.25"), 2.718281828])
@pytest.mark.parametrize("positions", [None, POSITIONS], ids=["even", "positions"])
def test_a_fractional_power_is_that_of_the_float_formula(power, positions):
    v = positions or range(4)
    scale = (v[-1] - v[0]) ** float(power)
    expected = tabulated(lambda y, k: abs(v[y] - v[k]) ** float(power) / scale, 4)
    computed = DivergenceLoss(power, positions=positions).cost_table(4)
    np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-14)
    natural = tabulated(lambda y, k: abs(v[y] - v[k]) ** float(power), 4)
    computed = DivergenceLoss(power, positions=positions, normalize=False).cost_table(4)
    np.testing.assert_allclose(computed, natural, rtol=1e-14)


@pytest.mark.parametrize("base", [4, 9, 10_000])
def test_a_fractional_power_with_a_whole_result_is_exact(base):
    loss = DivergenceLoss(0.5, positions=[0, base], normalize=False)
    assert loss.exact_costs(2)[0][1] == math.isqrt(base)


def test_positions_set_the_distances():
    expected = tabulated(lambda y, k: abs(POSITIONS[y] - POSITIONS[k]) / 82.5, 4)
    np.testing.assert_allclose(DivergenceLoss(positions=POSITIONS).cost_table(4), expected, rtol=1e-15)
    natural = tabulated(lambda y, k: abs(POSITIONS[y] - POSITIONS[k]), 4)
    assert DivergenceLoss(positions=POSITIONS, normalize=False).cost_table(4).tolist() == natural


@pytest.mark.parametrize(("under", "over"), [(2, 1), (1, 3), (0, 1), (1, 0), (0.5, 0.25)])
def test_under_and_over_weigh_the_two_sides(under, over):
    """``under`` applies to an interval that lies below the truth, ``over`` to one above it."""

    def natural(y, k):
        return (under if k < y else over) * abs(y - k)

    loss = DivergenceLoss(under=under, over=over, normalize=False)
    assert loss.cost_table(4).tolist() == tabulated(natural, 4)
    share = tabulated(lambda y, k: natural(y, k) / (3 * max(under, over)), 4)
    np.testing.assert_allclose(DivergenceLoss(under=under, over=over).cost_table(4), share, rtol=1e-15)


def test_a_table_is_itself_or_a_share_of_its_largest_cost():
    assert CostTableLoss(TABLE, normalize=False).cost_table(3).tolist() == TABLE
    assert CostTableLoss(TABLE).cost_table(3).tolist() == [[cost / 50 for cost in row] for row in TABLE]


@each_loss
def test_every_table_is_one_that_risk_can_be_controlled_with(loss):
    G = loss.cost_table(3)
    assert (np.diag(G) == 0).all()
    for y in range(3):
        assert (np.diff(G[y, y:]) >= 0).all()
        assert (np.diff(G[y, : y + 1]) <= 0).all()
    assert G.max() == float(loss.bound(3))
    if loss.normalize:
        assert loss.bound(3) == 1


# exact numbers


def test_weights_mean_the_decimals_that_are_written():
    assert WeightedLoss([0.1, 0.3]).exact_costs(2) == ((0, Fraction(1, 3)), (1, 0))


@pytest.mark.parametrize(
    "tenth",
    [0.1, np.float64(0.1), np.float32(0.1), np.float16(0.1), Decimal("0.1"), Fraction(1, 10), "0.1", "1/10"],
    ids=repr,
)
def test_a_tenth_is_a_tenth_however_it_is_given(tenth):
    assert WeightedLoss([tenth, 1]).exact_costs(2)[0][1] == Fraction(1, 10)
    assert CostTableLoss([[0, tenth], [1, 0]]).exact_costs(2)[0][1] == Fraction(1, 10)
    assert DivergenceLoss(positions=[0, tenth], normalize=False).bound(2) == Fraction(1, 10)
    assert DivergenceLoss(under=tenth, normalize=False).exact_costs(2)[1][0] == Fraction(1, 10)


def test_numpy_arrays_of_weights_are_read_in_decimals():
    for dtype in (np.float32, np.float64):
        assert WeightedLoss(np.array([0.1, 0.3], dtype)).exact_costs(2)[0][1] == Fraction(1, 3)
    assert WeightedLoss(np.array([1, 3], np.uint8)).exact_costs(2)[0][1] == Fraction(1, 3)


def test_sums_that_floats_get_wrong_are_right():
    loss = DivergenceLoss(positions=[0, 0.1, 0.3], normalize=False)
    assert [list(row) for row in loss.exact_costs(3)] == [
        [0, Fraction(1, 10), Fraction(3, 10)],
        [Fraction(1, 10), 0, Fraction(1, 5)],
        [Fraction(3, 10), Fraction(1, 5), 0],
    ]


@pytest.mark.parametrize(
    ("binary", "decimal"),
    [(Fraction(0.1), 0.1), (Decimal.from_float(0.1), 0.1), (Fraction(0.7), 0.7)],
    ids=["Fraction", "Decimal", "0.7"],
)
def test_equal_losses_have_equal_tables(binary, decimal):
    """A float and the binary fraction nearest to it are equal to Python, but not the same cost."""
    first, second = WeightedLoss([decimal, 1]), WeightedLoss([binary, 1])
    assert first.exact_costs(2) != second.exact_costs(2)
    assert first != second
    for loss in (first, second, first):
        curve = RiskController(loss).calibrate([[0.2, 0.8]] * 20, [0] * 20).risk_curve_
        assert curve.total_loss(math.inf) == 20 * loss.exact_costs(2)[0][1]


def test_costs_that_floats_cannot_hold_are_an_error():
    with pytest.raises(ValueError, match="too large"):
        WeightedLoss([Fraction(10) ** 400, 1], normalize=False).cost_table(2)


def test_costs_that_underflow_stay_exact():
    loss = WeightedLoss([Decimal("1e-400"), 1])
    assert loss.exact_costs(2)[0][1] == Fraction(1, 10**400)
    assert loss.cost_table(2).tolist() == [[0, 0], [1, 0]]


# objects that can be passed around


@each_loss
def test_repr_can_be_evaluated(loss):
    assert eval(repr(loss)) == loss
    assert repr(eval(repr(loss))) == repr(loss)


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (WeightedLoss(), "WeightedLoss()"),
        (WeightedLoss([1, 2.5]), "WeightedLoss(weights=[1, 2.5])"),
        (WeightedLoss(np.array([1, 2])), "WeightedLoss(weights=[1, 2])"),
        (WeightedLoss(np.array([0.5, 2])), "WeightedLoss(weights=[0.5, 2.0])"),
        (DivergenceLoss(2, under=3, normalize=False), "DivergenceLoss(power=2, under=3, normalize=False)"),
        (DivergenceLoss(positions=(1, 2)), "DivergenceLoss(positions=[1, 2])"),
        (CostTableLoss(((0, 1), (1, 0))), "CostTableLoss(table=[[0, 1], [1, 0]])"),
    ],
    ids=str,
)
def test_repr_shows_what_is_not_the_default(loss, text):
    assert repr(loss) == text


def saved_and_loaded(loss):
    """The loss of a calibration that went through a file."""
    controller = RiskController(loss, alpha=loss.bound(3) / 2).calibrate(np.eye(3), [0, 1, 2])
    with TemporaryDirectory() as folder:
        controller.save(Path(folder, "saved.json"))
        return RiskController.load(Path(folder, "saved.json")).loss


@each_loss
@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda loss: pickle.loads(pickle.dumps(loss)),
        lambda loss: saved_and_loaded(loss),
        lambda loss: clone(loss, safe=False),
        lambda loss: as_loss(loss),
    ],
    ids=["copy", "deepcopy", "pickle", "file", "clone", "as_loss"],
)
def test_copies_are_equal(loss, copied):
    again = copied(loss)
    assert again == loss
    assert hash(again) == hash(loss)
    assert type(again) is type(loss)
    assert again.exact_costs(3) == loss.exact_costs(3)


@each_loss
def test_a_hash_stays_in_its_process(loss):
    hash(loss)
    assert "_hash" not in vars(pickle.loads(pickle.dumps(loss)))


def test_different_losses_differ():
    assert len(set(LOSSES)) == len(LOSSES)
    for i, loss in enumerate(LOSSES):
        assert [other == loss for other in LOSSES] == [j == i for j in range(len(LOSSES))]
        assert loss != repr(loss)


@pytest.mark.parametrize(
    "given",
    [[1, 2, 3], (1, 2, 3), np.array([1, 2, 3]), pd.Series([1, 2, 3]), pl.Series([1, 2, 3]), range(1, 4)],
)
def test_weights_of_any_sequence_are_the_same_loss(given):
    assert WeightedLoss(given) == WeightedLoss([1, 2, 3])
    assert hash(WeightedLoss(given)) == hash(WeightedLoss([1, 2, 3]))
    assert DivergenceLoss(positions=given) == DivergenceLoss(positions=[1, 2, 3])


@each_loss
def test_losses_cannot_be_changed(loss):
    before = loss.exact_costs(3)
    for field in dataclasses.fields(loss):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(loss, field.name, getattr(loss, field.name))
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(loss, field.name)
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.more = 1
    assert loss.exact_costs(3) == before


def test_losses_do_not_follow_the_arrays_they_were_made_from():
    weights, table = np.array([1.0, 2.0]), [[0, 1], [2, 0]]
    weighted, tabled = WeightedLoss(weights), CostTableLoss(table)
    weights[0], table[0][1] = 9, 9
    assert weighted.cost_table(2)[0, 1] == 0.5
    assert tabled.cost_table(2)[0, 1] == 0.5


@each_loss
def test_a_cost_table_is_a_fresh_array(loss):
    table = loss.cost_table(3)
    expected = table.copy()
    assert table.dtype == np.float64
    assert table.flags.writeable
    table[:] = 7
    assert loss.cost_table(3).tolist() == expected.tolist()


# parameters of scikit-learn's objects


class Holder(ClassifierMixin, BaseEstimator):
    """The least estimator that has a loss for a parameter; its score is the mean cost."""

    def __init__(self, loss=None, scale=1):
        self.loss = loss
        self.scale = scale

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def score(self, X, y):
        return -self.scale * self.loss.cost_table(3).mean()


@each_loss
def test_clone_keeps_the_loss(loss):
    cloned = clone(Holder(loss))
    assert cloned.loss == loss
    assert cloned.get_params()["loss"] == loss
    assert cloned.set_params(loss=WeightedLoss()).loss == WeightedLoss()


def test_losses_can_be_searched_over():
    X, y = np.zeros((12, 1)), np.arange(12) % 3
    search = GridSearchCV(Holder(), {"loss": LOSSES, "scale": [1, 2]}, cv=2).fit(X, y)
    cheapest = min(LOSSES, key=lambda loss: loss.cost_table(3).mean())
    assert search.best_params_ == {"loss": cheapest, "scale": 1}
    assert list(search.cv_results_["param_loss"][::2]) == LOSSES


# as_loss


def test_names_mean_losses():
    assert as_loss("coverage") == WeightedLoss()
    assert as_loss("divergence") == DivergenceLoss()


@pytest.mark.parametrize(
    "table",
    [TABLE, tuple(map(tuple, TABLE)), np.array(TABLE), np.asfortranarray(TABLE), np.array(TABLE, object)],
    ids=["lists", "tuples", "numpy", "numpy F", "numpy object"],
)
def test_a_table_means_a_table_loss(table):
    assert as_loss(table) == CostTableLoss(TABLE)
    assert RiskController(loss=table).loss == CostTableLoss(TABLE)


FRAMES = {
    "pandas": lambda: pd.DataFrame(TABLE),
    "pandas with names": lambda: pd.DataFrame(TABLE, columns=["a", "b", "c"]),
    "polars": lambda: pl.DataFrame(TABLE, orient="row"),
    "pyarrow": lambda: pa.table(dict(zip("abc", np.array(TABLE).T, strict=True))),
    "torch": lambda: torch.tensor(TABLE),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_is_never_read_by_columns(frame):
    """A transposed cost table is a valid one that means something else."""
    try:
        loss = as_loss(frame())
    except ValueError:
        return
    assert loss.exact_costs(3) == CostTableLoss(TABLE).exact_costs(3)


def test_an_unknown_name_is_an_error_with_the_names():
    with pytest.raises(
        ValueError, match=r"loss='hinge' is not known; the names are \['coverage', 'divergence'"
    ):
        as_loss("hinge")


@pytest.mark.parametrize("loss", [None, 3, 0.5, WeightedLoss], ids=str)
def test_what_is_no_loss_is_an_error(loss):
    with pytest.raises(
        ValueError, match=r"such as WeightedLoss\(\[1, 1, 2\]\), one of the names .* or a cost table"
    ):
        as_loss(loss)


# bad parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"power": 0}, "power must be positive; got 0"),
        ({"power": -1}, "power must be positive; got -1"),
        ({"power": math.nan}, "power must be a finite number; got nan"),
        ({"power": math.inf}, "power must be a finite number; got inf"),
        ({"power": "x"}, "power must be a finite number; got 'x'"),
        ({"power": None}, "power must be a finite number; got None"),
        ({"under": -1}, "must not be negative; got -1 and 1"),
        ({"over": -0.5}, r"must not be negative; got 1 and -0\.5"),
        ({"under": 0, "over": 0}, "both zero"),
        ({"under": math.nan}, "under must be a finite number"),
        ({"positions": [0, 0]}, r"increase strictly; positions\[0\] is 0, then 0"),
        ({"positions": [0, 2, 1]}, r"increase strictly; positions\[1\] is 2, then 1"),
        ({"positions": [0.3, Fraction(3, 10)]}, "increase strictly"),
        ({"positions": [0, math.inf]}, r"positions\[1\] must be a finite number; got inf"),
        ({"positions": [0, math.nan]}, r"positions\[1\] must be a finite number; got nan"),
        ({"positions": 3}, "positions must be a sequence of numbers; got 3"),
        ({"positions": {1: 0, 2: 1}}, "positions must be a sequence of numbers"),
    ],
    ids=str,
)
def test_bad_parameters_of_a_divergence_are_an_error(parameters, message):
    with pytest.raises(ValueError, match=message):
        DivergenceLoss(**parameters)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([], "at least two classes; got 0"),
        ([[0]], "at least two classes; got 1"),
        ([[0, 1], [1, 0], [1, 1]], "square; it has 3 rows, but row 0 has length 2"),
        ([[0, 1], [1]], "square; it has 2 rows, but row 1 has length 1"),
        ([[0, 1], [1, 2]], "has 2 at row 1, column 1; the diagonal must be 0"),
        ([[0, 1], [-1, 0]], "Row 1 .* decreases .* 0 in column 1 to -1 in column 0"),
        ([[0, 1, 0.5], [1, 0, 1], [1, 1, 0]], "Row 0 .* from 1 in column 1 to 0.5 in column 2"),
        ([[0, math.nan], [1, 0]], r"row 0 of the cost table\[1\] must be a finite number; got nan"),
        ([[0, 1], [math.inf, 0]], r"row 1 of the cost table\[0\] must be a finite number; got inf"),
        ([[0, "x"], [1, 0]], r"row 0 of the cost table\[1\] must be a finite number; got 'x'"),
        ([0, 1], "row 0 of the cost table must be a sequence of numbers; got 0"),
        (np.zeros((2, 2, 2)), "must be a finite number"),
    ],
    ids=str,
)
def test_a_bad_table_is_an_error(table, message):
    with pytest.raises(ValueError, match=message):
        CostTableLoss(table)
    with pytest.raises(ValueError, match=message):
        as_loss(table)


@pytest.mark.parametrize("normalize", [True, False])
def test_a_table_of_zeros_is_an_error(normalize):
    loss = CostTableLoss([[0, 0], [0, 0]], normalize=normalize)
    with pytest.raises(ValueError, match="at least one must be positive"):
        loss.cost_table(2)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (WeightedLoss([1, 2, 3]), "3 weights, but there are 4 classes"),
        (DivergenceLoss(positions=[1, 2, 3]), "3 positions, but there are 4 classes"),
        (CostTableLoss(TABLE), "3 rows and columns, but there are 4 classes"),
    ],
    ids=repr,
)
def test_a_loss_for_another_number_of_classes_is_an_error_with_both(loss, message):
    for use in (loss.cost_table, loss.bound, loss.exact_costs):
        with pytest.raises(ValueError, match=message):
            use(4)


@pytest.mark.parametrize("loss", [WeightedLoss(), DivergenceLoss(), DivergenceLoss(0.5)], ids=repr)
@pytest.mark.parametrize("n_classes", [0, 1])
def test_a_table_for_fewer_than_two_classes_is_an_error(loss, n_classes):
    with pytest.raises(ValueError, match="at least two classes"):
        loss.cost_table(n_classes)
