"""The same numbers give the same answer, whatever holds them."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from effort import in_little_memory
from strategies import RULE_NAMES, labels_drawn
from unchecked import UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import IntervalSet, RiskController

pytestmark = UNCHECKED

N, K = 400, 4
NAMES = ["none", "mild", "moderate", "severe"]


def dyadic_rows(n=N, seed=0):
    """Rows of multiples of 1/32: exact in every floating-point type, and they sum to 1 exactly."""
    rng = np.random.default_rng(seed)
    proba = rng.multinomial(32, rng.dirichlet(np.ones(K), n)) / 32
    return proba, labels_drawn(proba, rng)


PROBA, Y = dyadic_rows()
LEVELS = orisk.FrontierGrowth().levels


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def unaligned(array):
    bytes_of = bytearray(array.nbytes + 1)
    odd = np.ndarray(array.shape, array.dtype, bytes_of, offset=1)
    odd[...] = array
    return odd


NUMPY = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every other row": lambda p: np.repeat(p, 2, axis=0)[::2],
    "every other column": lambda p: np.repeat(p, 2, axis=1)[:, ::2],
    "rows backwards": lambda p: p[::-1].copy()[::-1],
    "columns backwards": lambda p: p[:, ::-1].copy()[:, ::-1],
    "part of a wider array": lambda p: np.hstack([p, p])[:, p.shape[1] :],
    "read-only": read_only,
    "read-only F": lambda p: read_only(np.asfortranarray(p)),
    "broadcast": lambda p: np.broadcast_to(p, (3, *p.shape))[1],
    "unaligned": unaligned,
    "float32": lambda p: p.astype(np.float32),
    "float32 F": lambda p: np.asfortranarray(p, np.float32),
    "float32 read-only": lambda p: read_only(p.astype(np.float32)),
    "float32 strided": lambda p: np.repeat(p.astype(np.float32), 2, axis=0)[::2],
}
SHORT = {
    "float16": lambda p: p.astype(np.float16),
    "float16 F": lambda p: np.asfortranarray(p, np.float16),
}
CONVERTED = {
    "long double": lambda p: p.astype(np.longdouble),
    "big-endian": lambda p: p.astype(">f8"),
    "object": lambda p: p.astype(object),
}
OTHER = {
    "lists": lambda p: p.tolist(),
    "tuples": lambda p: tuple(map(tuple, p.tolist())),
    "list of arrays": list,
    "pandas": pd.DataFrame,
    "pandas, named": lambda p: pd.DataFrame(p, columns=NAMES, index=np.arange(len(p))[::-1]),
    "pandas by columns": lambda p: pd.DataFrame({k: p[:, k] for k in range(K)}),
    "pandas float32": lambda p: pd.DataFrame(p.astype(np.float32)),
    "pandas mixed": lambda p: pd.DataFrame(p).astype({0: np.float32, 2: object}),
    "pandas nullable": lambda p: pd.DataFrame(p).astype("Float64"),
    "pandas nullable float32": lambda p: pd.DataFrame(p).astype("Float32"),
    "pandas on arrow": lambda p: pd.DataFrame(p).astype("double[pyarrow]"),
    "polars": lambda p: pl.DataFrame(p, schema=NAMES),
    "polars float32": lambda p: pl.DataFrame(p.astype(np.float32)),
    "polars, several chunks": lambda p: pl.concat([pl.DataFrame(p[:7]), pl.DataFrame(p[7:])], rechunk=False),
    "arrow": lambda p: pa.table(dict(zip(NAMES, p.T, strict=True))),
    "arrow float32": lambda p: pa.table(dict(zip(NAMES, p.T.astype(np.float32), strict=True))),
    "arrow, several chunks": lambda p: pa.concat_tables(
        [pa.table(dict(zip(NAMES, part.T, strict=True))) for part in (p[:7], p[7:])]
    ),
    "arrow batch": lambda p: pa.record_batch(dict(zip(NAMES, p.T, strict=True))),
    "torch": torch.tensor,
    "torch F": lambda p: torch.tensor(p.T.copy()).T,
    "torch float32": lambda p: torch.tensor(p, dtype=torch.float32),
    "torch float16": lambda p: torch.tensor(p, dtype=torch.float16),
    "torch bfloat16": lambda p: torch.tensor(p, dtype=torch.bfloat16),
    "torch with gradient": lambda p: torch.tensor(p, requires_grad=True),
    "torch bfloat16 with gradient": lambda p: torch.tensor(p, dtype=torch.bfloat16, requires_grad=True),
    "torch computed": lambda p: torch.tensor(p, requires_grad=True) * 1.0,
    "torch parameter": lambda p: torch.nn.Parameter(torch.tensor(p)),
}
HOLDERS = NUMPY | SHORT | CONVERTED | OTHER
each_holder = pytest.mark.parametrize("held", HOLDERS.values(), ids=HOLDERS)


def indices(sets):
    return sets.lower_index.tolist(), sets.upper_index.tolist()


# probabilities


@each_holder
@pytest.mark.parametrize("growth", RULE_NAMES)
@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_the_same_calibration_and_prediction_from_every_holder(held, growth, loss):
    expected = RiskController(loss=loss, alpha=0.1, growth=growth).calibrate(PROBA, Y)
    controller = RiskController(loss=loss, alpha=0.1, growth=growth).calibrate(held(PROBA), Y)
    assert controller.threshold_ == expected.threshold_
    assert controller.risk_curve_ == expected.risk_curve_
    new, _ = dyadic_rows(seed=1)
    sets = expected.predict_set(held(new))
    assert indices(sets) == indices(expected.predict_set(new))
    assert indices(sets) == indices(controller.predict_set(new))


@each_holder
def test_the_input_is_left_alone(held):
    given = held(PROBA)
    RiskController(alpha=0.1).calibrate(given, Y).predict_set(given)
    np.testing.assert_array_equal(LEVELS(given), LEVELS(PROBA))


@each_holder
def test_levels_are_those_of_every_holder(held):
    np.testing.assert_array_equal(LEVELS(held(PROBA)), LEVELS(PROBA))


MANY = np.tile(PROBA / 8, (250, 8))  # so many rows of 32 labels that a copy would show
NOT_COPIED = {
    **{name: held for name, held in NUMPY.items() if name != "unaligned"},
    **SHORT,
    **{name: OTHER[name] for name in ("pandas", "pandas float32")},
    **{name: held for name, held in OTHER.items() if name.startswith("torch")},
}


@pytest.mark.parametrize("held", NOT_COPIED.values(), ids=NOT_COPIED)
def test_rows_are_not_copied(held):
    given = held(MANY)
    controller = RiskController(alpha=0.1, check=False).calibrate(MANY[:100], np.resize(Y, 100))
    controller.predict_set(given)
    with in_little_memory(MANY.size):  # a byte for each of the numbers
        controller.predict_set(given)


def test_a_memory_mapped_file_is_not_read_into_memory(tmp_path):
    np.save(tmp_path / "proba.npy", MANY)
    mapped = np.load(tmp_path / "proba.npy", mmap_mode="r")
    controller = RiskController(alpha=0.1, check=False).calibrate(mapped, np.resize(Y, len(MANY)))
    with in_little_memory(MANY.size):
        controller.predict_set(mapped)


def test_float32_rows_are_summed_in_float64(draw):
    """Levels are float64 whatever the input's type: float32 rows are float64 rows with the same values."""
    proba, y = draw(300, 5)
    single = proba.astype(np.float32)
    from_single = RiskController(alpha=0.1).calibrate(single, y)
    from_double = RiskController(alpha=0.1).calibrate(single.astype(np.float64), y)
    assert from_single.risk_curve_ == from_double.risk_curve_


@pytest.mark.parametrize("number_type", ["f2", "f4", "f8"])
def test_bytes_in_the_other_order_are_the_same_numbers(draw, number_type):
    """The tolerance for rounding differs too: the sum of 16-bit floats may be further from 1."""
    proba, y = draw()
    proba = proba.astype(number_type)
    swapped = proba.astype(proba.dtype.newbyteorder())
    one, other = (RiskController(alpha=0.2).calibrate(rows, y) for rows in (proba, swapped))
    assert one.threshold_ == other.threshold_
    assert one.predict_set(proba) == other.predict_set(swapped)


def test_a_tensor_on_another_device_is_an_error():
    tensor = torch.full((2, 2), 0.5, device="meta")
    with pytest.raises(ValueError, match=r"proba is on device meta; move it with proba\.cpu\(\) first"):
        RiskController(alpha=0.1).calibrate(tensor, [0, 1])


# the order of a frame's columns


FRAMES = {
    "pandas": lambda p, names: pd.DataFrame(p, columns=names),
    "polars": lambda p, names: pl.DataFrame(p, schema=names),
    "arrow": lambda p, names: pa.table(dict(zip(names, p.T, strict=True))),
}
each_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)


@each_frame
def test_columns_in_another_order_than_the_classes_are_refused(frame):
    labels = np.array(NAMES)[Y]
    shuffled = ["mild", "none", "moderate", "severe"]
    message = r"columns of proba are in the order \['mild', 'none'.*classes in the order \['none', 'mild'"
    with pytest.raises(ValueError, match=message):
        RiskController(alpha=0.1, classes=NAMES).calibrate(frame(PROBA, shuffled), labels)
    controller = RiskController(alpha=0.1, classes=NAMES).calibrate(frame(PROBA, NAMES), labels)
    with pytest.raises(ValueError, match=message):
        controller.predict_set(frame(PROBA, shuffled))
    assert len(controller.predict_set(frame(PROBA, NAMES))) == N


@each_frame
def test_columns_in_another_order_than_numbered_classes_are_refused(frame):
    with pytest.raises(
        ValueError, match=r"\['3', '2', '1', '0'\], but the classes in the order \['0', '1', '2', '3'\]"
    ):
        RiskController(alpha=0.1).calibrate(frame(PROBA, ["3", "2", "1", "0"]), Y)


def test_number_columns_in_another_order_are_refused():
    with pytest.raises(ValueError, match="in the order"):
        RiskController(alpha=0.1).calibrate(pd.DataFrame(PROBA, columns=[1, 0, 2, 3]), Y)


@each_frame
@pytest.mark.parametrize(
    "names", [["a", "b", "c", "d"], ["p_none", "p_mild", "p_moderate", "p_severe"]], ids=str
)
def test_columns_with_other_names_are_taken_as_they_stand(frame, names):
    expected = RiskController(alpha=0.1).calibrate(PROBA, Y)
    assert RiskController(alpha=0.1).calibrate(frame(PROBA, names), Y).risk_curve_ == expected.risk_curve_


AROUND = {
    "before": "p_{}",
    "after": "{}_proba",
    "both": "P(Y = {})",
    "nothing": "{}",
}
around = pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
SHUFFLED = ["severe", "none", "mild", "moderate"]


@each_frame
@around
def test_columns_named_after_the_classes_in_another_order_are_refused(frame, around):
    labels = np.array(NAMES)[Y]
    right, wrong = ([around.format(name) for name in names] for names in (NAMES, SHUFFLED))
    controller = RiskController(alpha=0.1, classes=NAMES).calibrate(frame(PROBA, right), labels)
    for call in (
        lambda proba: RiskController(alpha=0.1, classes=NAMES).calibrate(proba, labels),
        lambda proba: RiskController(alpha=0.1, classes=NAMES).calibrate_batches([(proba, labels)]),
        controller.predict_set,
        orisk.OnlineRiskController(alpha=0.1, classes=NAMES).predict_set,
        lambda proba: orisk.compare(proba, labels, classes=NAMES),
        lambda proba: orisk.weights_for_coverage(proba, labels, 0.8, classes=NAMES),
        lambda proba: orisk.alpha_for_size(controller, proba, 2),
    ):
        with pytest.raises(ValueError, match="columns of proba are in the order") as raised:
            call(frame(PROBA, wrong))
        assert f"{right}" in str(raised.value)  # the right order, to copy


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        (range(11), [f"p{k}" for k in sorted(range(11), key=str)]),
        (["grade0", "grade1", "grade2"], ["p_grade1", "p_grade0", "p_grade2"]),
        ([0, 10, 100], ["x100", "x10", "x0"]),
        ([True, False], ["is False", "is True"]),
        ([1.5, 0.5], ["p 0.5", "p 1.5"]),
        (["lo", "mid", "hi"], ["P_HI", "P_LO", "P_MID"]),
    ],
    ids=str,
)
def test_names_hold_the_class_whatever_is_around_it(classes, names):
    K, y = len(names), [*classes]
    frame = pd.DataFrame(np.full((K, K), 1 / K), columns=names)
    with pytest.raises(ValueError, match="columns of proba are in the order"):
        RiskController(alpha=0.5, classes=[*classes]).calibrate(frame, y)


def test_one_other_name_does_not_hide_another_order():
    misspelt = pd.DataFrame(PROBA, columns=["severe", "none", "mlid", "moderate"])
    with pytest.raises(ValueError, match="Column 0 of proba is 'severe', but class 0 is 'none'"):
        RiskController(alpha=0.1, classes=NAMES).calibrate(misspelt, np.array(NAMES)[Y])
    right = pd.DataFrame(PROBA, columns=["none", "mlid", "moderate", "severe"])
    RiskController(alpha=0.1, classes=NAMES).calibrate(right, np.array(NAMES)[Y])


@pytest.mark.parametrize("names", [["p3", "p1", "p2"], ["2018", "2020", "2019"]], ids=str)
def test_numbers_in_no_order_are_refused(names):
    frame = pd.DataFrame(np.full((3, 3), 1 / 3), columns=names)
    with pytest.raises(ValueError, match=r"numbers that are not in order: .* order, pass proba.to_numpy\(\)"):
        RiskController(alpha=0.5).calibrate(frame, [0, 1, 2])


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        (range(10, 0, -1), [f"p_{k:02d}" for k in range(10, 0, -1)]),
        (range(3), [-3, -2, -1]),
        (range(3), [-1, -2, -3]),
        (range(4), ["egfr90", "egfr60", "egfr30", "egfr15"]),
        ([-2, -1, 0], [-1, 0, 1]),
        ([0.0, 0.5, 1.0], [0.5, 1.0, 1.5]),
    ],
    ids=str,
)
def test_other_numbers_may_well_be_right(classes, names):
    K = len(names)
    frame = pd.DataFrame(np.full((K, K), 1 / K), columns=names)
    RiskController(alpha=0.5, classes=[*classes]).calibrate(frame, [*classes])


def test_capitals_may_tell_classes_apart():
    frame = pd.DataFrame(np.full((3, 3), 1 / 3), columns=["b", "B", "c"])
    RiskController(alpha=0.5, classes=["b", "B", "c"]).calibrate(frame, ["b", "B", "c"])
    with pytest.raises(ValueError, match="columns of proba are in the order"):
        RiskController(alpha=0.5, classes=["B", "b", "c"]).calibrate(frame, ["b", "B", "c"])


def test_the_remedy_names_columns_as_they_are():
    with pytest.raises(ValueError, match=r"pass proba\[\[0, 1, 2, 3\]\]"):
        RiskController(alpha=0.1).calibrate(pd.DataFrame(PROBA, columns=[1, 0, 2, 3]), Y)


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[ns]"])
def test_times_are_no_whole_numbers(kind):
    with pytest.raises(
        ValueError, match=r"y holds times \((datetime|timedelta)64\[ns\]\), but the classes are"
    ):
        RiskController(alpha=0.1).calibrate(PROBA, pd.Series(np.array(Y, kind)))


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        ([1, 2, 3], ["p0", "p1", "p2"]),
        (["a", "aa"], ["xa", "xaa"]),
        (["0", "00"], ["00", "000"]),
        (["lo", "hi"], ["q_hi", "p_lo"]),
        (["lo", "hi"], ["high", "low"]),
        (["", "a"], ["b", "c"]),
    ],
    ids=str,
)
def test_names_that_are_not_those_of_the_classes_or_in_order_are_taken_as_they_stand(classes, names):
    K = len(names)
    frame = pd.DataFrame(np.full((K, K), 1 / K), columns=names)
    assert RiskController(alpha=0.5, classes=classes).calibrate(frame, classes).n_rows_ == K


# labels


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
LABELS = {
    **{
        dtype: lambda y, dtype=dtype: y.astype(dtype)
        for dtype in [*INTEGERS, "float16", "float32", "float64"]
    },
    "big-endian": lambda y: y.astype(">i8"),
    "object": lambda y: y.astype(object),
    "list": lambda y: y.tolist(),
    "list of floats": lambda y: y.astype(float).tolist(),
    "tuple": tuple,
    "backwards": lambda y: y[::-1].copy()[::-1],
    "strided": lambda y: np.repeat(y, 3)[::3],
    "read-only": read_only,
    "unaligned": unaligned,
    "pandas": lambda y: pd.Series(y, index=np.arange(len(y))[::-1]),
    "pandas nullable": lambda y: pd.Series(y, dtype="Int64"),
    "pandas nullable float": lambda y: pd.Series(y, dtype="Float64"),
    "pandas on arrow": lambda y: pd.Series(y, dtype="int64[pyarrow]"),
    "pandas category": lambda y: pd.Series(pd.Categorical(y)),
    "pandas ordered": lambda y: pd.Series(pd.Categorical(y, categories=range(K), ordered=True)),
    "pandas index": pd.Index,
    "polars": pl.Series,
    "polars, several chunks": lambda y: pl.concat([pl.Series(y[:9]), pl.Series(y[9:])], rechunk=False),
    "arrow": pa.array,
    "arrow, several chunks": lambda y: pa.chunked_array([y[:9], y[9:]]),
    "torch": torch.tensor,
    "torch int32": lambda y: torch.tensor(y, dtype=torch.int32),
    "torch float": lambda y: torch.tensor(y, dtype=torch.float32),
}


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 2 + 0j]),
        np.array([0, 1, complex(2)], object),
        [0, 1, 2 + 0j],
        torch.tensor([0, 1, 2 + 0j]),
        pd.Series([0, 1, 2 + 0j]),
        [b"0", b"1", b"2"],
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_complex_numbers_and_bytes_are_no_labels(labels):
    with pytest.raises(
        ValueError, match=r"y\[\d\] is .*, which (can't be a label|is not one of the classes)"
    ):
        RiskController(alpha=0.3).calibrate(PROBA[:3, :3] * 0 + 1 / 3, labels)
    with pytest.raises(ValueError, match="1j can't be a label"):
        RiskController(classes=[0, 1, 1j]).calibrate(PROBA[:3, :3] * 0 + 1 / 3, [0, 1, 1])


@pytest.mark.parametrize(
    ("classes", "label"),
    [
        ([0, 2**63], np.uint64(2**63 + 1)),
        ([0, 2**63], np.float64(2**63 + 2**12)),
        ([-1, 2**63], np.uint64(2**63 + 1)),
        ([0, 2**53 + 1], np.float64(2**53)),
        ([0.0, float(2**53)], np.int64(2**53 + 1)),
        ([0, 2**62], np.uint64(2**62 + 1)),
        ([0, 10**30], np.float64(1e30)),
    ],
    ids=str,
)
def test_large_labels_are_compared_exactly(classes, label):
    assert int(label) not in map(int, classes)
    with pytest.raises(ValueError, match=r"y\[0\] is \S+, which is not one of the classes"):
        IntervalSet([0], [0], classes).contains(np.array([label]))
    for position, known in enumerate(classes):
        here = np.array([known])
        assert IntervalSet([position], [position], classes).contains(here).tolist() == [True]
    assert IntervalSet([0], [0], classes).classes.tolist() == classes


@pytest.mark.parametrize("held", LABELS.values(), ids=LABELS)
def test_the_same_calibration_from_labels_of_every_kind(held):
    expected = RiskController(alpha=0.1).calibrate(PROBA, Y)
    controller = RiskController(alpha=0.1).calibrate(PROBA, held(Y))
    assert controller.risk_curve_ == expected.risk_curve_
    assert controller.classes_.tolist() == [0, 1, 2, 3]
    assert controller.data_blake3_ == expected.data_blake3_
    sets = expected.predict_set(PROBA)
    assert sets.contains(held(Y)).tolist() == sets.contains(Y).tolist()


@pytest.mark.parametrize("held", [np.array, list, pd.Series, pl.Series, pa.array, torch.tensor])
def test_truth_values_are_the_labels_of_two_classes(held):
    proba = np.column_stack([1 - PROBA[:, 0], PROBA[:, 0]])
    y = Y == 0
    expected = RiskController(alpha=0.1).calibrate(proba, y.astype(int))
    assert RiskController(alpha=0.1).calibrate(proba, held(y.tolist())).risk_curve_ == expected.risk_curve_
    named = RiskController(alpha=0.1, classes=[False, True]).calibrate(proba, held(y.tolist()))
    assert named.risk_curve_ == expected.risk_curve_
    assert set(named.predict_set(proba).lower.tolist()) <= {False, True}


NAMED = {
    "numpy": np.array,
    "numpy object": lambda y: np.array(y, object),
    "numpy string": lambda y: np.array(y, np.dtypes.StringDType()),
    "list": list,
    "pandas": pd.Series,
    "pandas object": lambda y: pd.Series(y, dtype=object),
    "pandas category": lambda y: pd.Series(pd.Categorical(y)),
    "pandas ordered": lambda y: pd.Series(pd.Categorical(y, categories=NAMES, ordered=True)),
    "pandas categorical": lambda y: pd.Categorical(y, categories=NAMES, ordered=True),
    "polars": pl.Series,
    "polars enum": lambda y: pl.Series(y, dtype=pl.Enum(NAMES)),
    "polars categorical": lambda y: pl.Series(y, dtype=pl.Categorical),
    "arrow": pa.array,
    "arrow dictionary": lambda y: pa.array(y).dictionary_encode(),
    "arrow, several chunks": lambda y: pa.chunked_array([y[:9], y[9:]]),
}


@pytest.mark.parametrize("held", NAMED.values(), ids=NAMED)
def test_the_same_calibration_from_named_labels_of_every_kind(held):
    expected = RiskController(alpha=0.1).calibrate(PROBA, Y)
    labels = held([NAMES[k] for k in Y])
    controller = RiskController(alpha=0.1, classes=NAMES).calibrate(PROBA, labels)
    assert controller.risk_curve_ == expected.risk_curve_
    assert controller.classes_.tolist() == NAMES
    sets = controller.predict_set(PROBA)
    assert indices(sets) == indices(expected.predict_set(PROBA))
    assert set(sets.lower.tolist()) <= set(NAMES)
    assert sets.contains(labels).tolist() == expected.predict_set(PROBA).contains(Y).tolist()


@pytest.mark.parametrize("name", ["pandas ordered", "pandas categorical", "polars enum"])
def test_ordered_categories_bring_the_classes(name):
    labels = NAMED[name]([NAMES[k] for k in Y])
    controller = RiskController(alpha=0.1).calibrate(PROBA, labels)
    assert controller.classes_.tolist() == NAMES
    assert controller.risk_curve_ == RiskController(alpha=0.1).calibrate(PROBA, Y).risk_curve_


@pytest.mark.parametrize("name", ["pandas category", "polars categorical", "pandas", "list"])
def test_categories_without_order_do_not_bring_the_classes(name):
    labels = NAMED[name]([NAMES[k] for k in Y])
    with pytest.raises(ValueError, match=r"is not one of the classes \[0, 1, 2, 3\].*classes="):
        RiskController(alpha=0.1).calibrate(PROBA, labels)


def test_categories_that_say_nothing_of_an_order_have_none():
    class Labels(list):
        dtype = SimpleNamespace(categories=NAMES)

    with pytest.raises(ValueError, match=r"is not one of the classes \[0, 1, 2, 3\]"):
        RiskController(alpha=0.1).calibrate(PROBA, Labels(NAMES[k] for k in Y))


def test_a_binned_number_brings_its_bins():
    bins = pd.cut(pd.Series(Y), [-1, 0, 1, 2, 3])
    controller = RiskController(alpha=0.1).calibrate(PROBA, bins)
    assert controller.classes_.tolist() == bins.cat.categories.tolist()
    assert controller.predict_set(PROBA).contains(bins).mean() > 0.8


@pytest.mark.parametrize(
    "classes",
    [[10, 20, 30, 40], [40, 30, 20, 10], [0.5, 1.5, 2.25, 9.0], [-2, -1, 1, 2], [3, 0, 2, 1], range(1, 5)],
    ids=str,
)
@pytest.mark.parametrize("dtype", [None, np.float64, object], ids=str)
def test_classes_may_be_any_numbers_in_any_order(classes, dtype):
    labels = np.array(classes, dtype)[Y]
    controller = RiskController(alpha=0.1, classes=classes).calibrate(PROBA, labels)
    assert controller.risk_curve_ == RiskController(alpha=0.1).calibrate(PROBA, Y).risk_curve_
    assert controller.classes_.tolist() == list(classes)
    sets = controller.predict_set(PROBA)
    assert sets.lower.tolist() == [classes[k] for k in sets.lower_index]


@pytest.mark.parametrize("given", [list, tuple, np.array, pd.Index, pd.Series, pl.Series, pa.array])
def test_classes_may_be_any_sequence(given):
    controller = RiskController(alpha=0.1, classes=given(NAMES)).calibrate(PROBA, np.array(NAMES)[Y])
    assert controller.classes_.tolist() == NAMES


# point labels that are given


POINTS = {
    "numpy": np.array,
    "int8": lambda m: np.array(m, np.int8),
    "float": lambda m: np.array(m, float),
    "list": list,
    "pandas": pd.Series,
    "pandas nullable": lambda m: pd.Series(m, dtype="Int64"),
    "polars": pl.Series,
    "arrow": pa.array,
    "torch": torch.tensor,
}
RULES = [orisk.PaperGrowth, orisk.FrontierGrowth, orisk.AdaptiveGrowth, orisk.RankedProbabilityGrowth]
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


@each_rule
@pytest.mark.parametrize("held", POINTS.values(), ids=POINTS)
def test_given_point_labels_are_where_intervals_grow_from(rule, held):
    points = np.random.default_rng(2).integers(0, K, N).tolist()
    controller = RiskController(alpha=0.1, growth=rule("given"))
    controller.calibrate(PROBA, Y, point_labels=held(points))
    sets = controller.predict_set(PROBA, point_labels=held(points))
    assert sets.contains(points).all()
    assert orisk.metrics.coverage(Y, sets) >= 0.9
    levels = rule("given").levels(PROBA, point_labels=held(points))
    assert np.isinf(levels[np.arange(N), points]).all()


@each_rule
def test_the_modes_given_are_the_modes_found(rule):
    found = RiskController(alpha=0.1, growth=rule("mode")).calibrate(PROBA, Y)
    modes = PROBA.argmax(axis=1)
    given = RiskController(alpha=0.1, growth=rule("given")).calibrate(PROBA, Y, point_labels=modes)
    assert given.risk_curve_ == found.risk_curve_
    assert given.predict_set(PROBA, point_labels=modes) == found.predict_set(PROBA)


@each_rule
def test_point_labels_are_asked_for_if_they_are_to_be_given(rule):
    message = r"point='given', but point_labels were not given"
    controller = RiskController(alpha=0.1, growth=rule("given"))
    with pytest.raises(ValueError, match=message):
        controller.calibrate(PROBA, Y)
    controller.calibrate(PROBA, Y, point_labels=Y)
    with pytest.raises(ValueError, match=message):
        controller.predict_set(PROBA)
    with pytest.raises(ValueError, match=message):
        rule("given").levels(PROBA)


@each_rule
@pytest.mark.parametrize("point", ["mode", "bayes", "median"])
def test_point_labels_that_nobody_asked_for_are_an_error(rule, point):
    message = rf"point='{point}', but point_labels were given"
    controller = RiskController(alpha=0.1, growth=rule(point))
    with pytest.raises(ValueError, match=message):
        controller.calibrate(PROBA, Y, point_labels=Y)
    controller.calibrate(PROBA, Y)
    with pytest.raises(ValueError, match=message):
        controller.predict_set(PROBA, point_labels=Y)
    with pytest.raises(ValueError, match=message):
        rule(point).levels(PROBA, point_labels=Y)


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        (-1, "-1"),
        (K, "4"),
        (0.5, r"0\.5"),
        (np.nan, "nan"),
        (np.inf, "inf"),
        ("mild", "'?mild"),
        (None, "None"),
    ],
    ids=str,
)
def test_a_point_label_that_is_no_index_is_named(label, shown):
    points = Y.tolist()
    points[7] = label
    if isinstance(label, str):
        points = np.array(points, object)
    with pytest.raises(ValueError, match=rf"point_labels\[7\] is {shown}"):
        RiskController(alpha=0.1, growth=orisk.PaperGrowth("given")).calibrate(PROBA, Y, point_labels=points)


@pytest.mark.parametrize("points", [[0] * (N - 1), [0] * (N + 1), 0, [[0]] * N, []], ids=np.shape)
def test_point_labels_of_another_shape_are_an_error_with_both(points):
    with pytest.raises(
        ValueError, match=rf"point_labels must .*{N}.*got .*\({', '.join(map(str, np.shape(points)))}"
    ):
        RiskController(alpha=0.1, growth=orisk.PaperGrowth("given")).calibrate(PROBA, Y, point_labels=points)


def test_a_public_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'ordinalrisk' has no attribute 'nothing'"):
        orisk.nothing  # noqa: B018


def test_dir_lists_the_public_names():
    assert set(orisk.__all__) < set(dir(orisk))
    assert "__version__" in dir(orisk)
