"""Rows are matched by position; where two inputs name their rows, the names must agree."""

import re
from functools import partial

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import ordinalrisk as orisk
from ordinalrisk import OnlineRiskController, OrdinalRiskClassifier, RiskController, plots, shift
from ordinalrisk.report import summarise

N = 300
RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet([1, 2, 1], N)
Y = np.array([RNG.choice(3, p=p) for p in PROBA])
INDEX = pd.Index(RNG.permutation(10 * N)[:N])  # as that of a test part that was drawn at random
FRAME = pd.DataFrame(PROBA, index=INDEX)
LABELS = pd.Series(Y, index=INDEX)
CLUSTERS = pd.Series(np.arange(N) // 5, index=INDEX)
WEIGHTS = pd.Series(np.resize([0.5, 1.5], N), index=INDEX)
POINTS = pd.Series(PROBA.argmax(axis=1), index=INDEX)
FEATURES = pd.DataFrame({"score": PROBA @ [0, 1, 2]}, index=INDEX)
GIVEN = orisk.FrontierGrowth(point="given")
SETS = RiskController(alpha=0.2).calibrate(PROBA, Y).predict_set(FRAME)


def calibrate(**options):
    return RiskController(alpha=0.2).calibrate(**{"proba": FRAME, "y": LABELS} | options)


def calibrate_points(**options):
    return RiskController(alpha=0.2, growth=GIVEN).calibrate(FRAME, LABELS, **options)


def predict(option, **given):
    return (
        RiskController(alpha=0.2)
        .calibrate(PROBA, Y, **{option: np.asarray(given[option])})
        .predict_set(FRAME, **given)
    )


def fit(method, **options):
    model = OrdinalRiskClassifier(LogisticRegression(), alpha=0.2, random_state=0)
    return getattr(model, method)(**{"X": FEATURES, "y": LABELS} | options)


def calibrate_trained(**options):
    trained = LogisticRegression().fit(FEATURES, LABELS)
    model = OrdinalRiskClassifier(FrozenEstimator(trained), alpha=0.2)
    return model.calibrate(**{"X": FEATURES, "y": LABELS} | options)


def report(**options):
    return summarise(RiskController(alpha=0.2).calibrate(PROBA, Y), **{"proba": FRAME, "y": LABELS} | options)


CALLS = {
    "calibrate, y": (calibrate, {"y": LABELS}),
    "calibrate, groups": (calibrate, {"groups": CLUSTERS % 2}),
    "calibrate, clusters": (calibrate, {"clusters": CLUSTERS}),
    "calibrate, sample_weight": (calibrate, {"sample_weight": WEIGHTS}),
    "calibrate, point_labels": (calibrate_points, {"point_labels": POINTS}),
    "calibrate an array, groups": (partial(calibrate, proba=PROBA), {"groups": CLUSTERS % 2}),
    "calibrate_batches": (
        lambda y: RiskController(alpha=0.2).calibrate_batches([(FRAME, LABELS), (FRAME, y)]),
        {"y": LABELS},
    ),
    "predict_set, groups": (partial(predict, "groups"), {"groups": CLUSTERS % 2}),
    "predict_set, sample_weight": (partial(predict, "sample_weight"), {"sample_weight": WEIGHTS}),
    "levels": (partial(GIVEN.levels, FRAME), {"point_labels": POINTS}),
    "alpha_for_size": (
        lambda **given: orisk.alpha_for_size(calibrate_points(point_labels=POINTS), FRAME, 2, **given),
        {"point_labels": POINTS},
    ),
    "online": (lambda **given: OnlineRiskController(alpha=0.2).calibrate(FRAME, **given), {"y": LABELS}),
    "replay": (lambda **given: OnlineRiskController(alpha=0.2).replay(FRAME, **given), {"y": LABELS}),
    "online predict_set": (
        lambda **given: OnlineRiskController(alpha=0.2, growth=GIVEN).predict_set(FRAME, **given),
        {"point_labels": POINTS},
    ),
    "fit, y": (partial(fit, "fit"), {"y": LABELS}),
    "fit, groups": (partial(fit, "fit"), {"groups": CLUSTERS % 2}),
    "fit, clusters": (partial(fit, "fit"), {"clusters": CLUSTERS}),
    "fit, sample_weight": (partial(fit, "fit"), {"sample_weight": WEIGHTS}),
    "a trained model, y": (calibrate_trained, {"y": LABELS}),
    "a trained model, sample_weight": (calibrate_trained, {"sample_weight": WEIGHTS}),
    "compare": (partial(orisk.compare, FRAME, growths="frontier", alphas=0.2), {"y": LABELS}),
    "trade_off": (partial(orisk.trade_off, FRAME, LABELS, alphas=0.2), {"clusters": CLUSTERS}),
    "weights_for_coverage": (partial(orisk.weights_for_coverage, FRAME, targets=0.8), {"y": LABELS}),
    "label_ratios": (partial(shift.label_ratios, FRAME, proba_new=FRAME), {"y_cal": LABELS}),
    "report": (report, {"y": LABELS}),
    "contains": (lambda y: SETS.contains(y), {"y": LABELS}),
    "risk": (lambda y: orisk.metrics.risk(y, SETS), {"y": LABELS}),
    "losses": (lambda y: orisk.metrics.losses(y, SETS), {"y": LABELS}),
    "class_coverage of chosen rows": (
        lambda y: orisk.metrics.class_coverage(y, SETS[::-1][::-1]),
        {"y": LABELS},
    ),
    "monitor": (lambda y: orisk.RiskMonitor(alpha=0.2).update(y, SETS), {"y": LABELS}),
    "monitor, clusters": (
        lambda clusters: orisk.RiskMonitor(alpha=0.2).update(LABELS, SETS, clusters=clusters),
        {"clusters": CLUSTERS},
    ),
    "plot_intervals": (
        partial(plots.plot_intervals, orisk.IntervalSet([0] * N, [1] * N, range(3)), LABELS),
        {"proba": FRAME},
    ),
}
each_call = pytest.mark.parametrize(("call", "right"), CALLS.values(), ids=CALLS)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@each_call
def test_equal_indexes_are_right(call, right):
    call(**right)


@each_call
def test_another_order_is_an_error_that_says_how_to_align(call, right):
    ((name, values),) = right.items()
    shuffled = values.sample(frac=1, random_state=0)
    with pytest.raises(
        ValueError, match=rf"^(In batch \d: )?{name} has the index labels of (\w+) in another order: row \d"
    ) as error:
        call(**{name: shuffled})
    first = re.sub(r"^In batch \d: ", "", str(error.value)).split()[6]
    assert f"Align the rows with {name}.loc[{first}.index]; " in str(error.value)
    assert f"pass {name}.to_numpy(), which has no index." in str(error.value)
    call(**{name: shuffled.loc[INDEX]})  # the first remedy
    call(**{name: values.reset_index(drop=True).to_numpy()})  # the second


@each_call
def test_other_labels_are_a_warning(call, right):
    ((name, values),) = right.items()
    with pytest.warns(
        UserWarning, match=rf"^The index of {name} differs from that of \w+: row 0 is 0 in {name} and"
    ):
        call(**{name: values.reset_index(drop=True)})


def test_the_warning_is_at_the_line_of_the_caller():
    for call in (
        lambda: RiskController(alpha=0.2).calibrate(FRAME, LABELS.reset_index(drop=True)),
        lambda: RiskController(alpha=0.2).calibrate_batches([(FRAME, LABELS.reset_index(drop=True))]),
        lambda: RiskController(alpha=0.2).calibrate_batches(
            [(FRAME, LABELS), (FRAME, LABELS.reset_index(drop=True))]
        ),
        lambda: OrdinalRiskClassifier(LogisticRegression()).fit(FEATURES, LABELS.reset_index(drop=True)),
        lambda: orisk.compare(FRAME, LABELS.reset_index(drop=True), alphas=0.2, growths="frontier"),
    ):
        with pytest.warns(UserWarning, match="^The index of") as caught:
            call()
        assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (pd.RangeIndex(3), pd.Index([0, 1, 2])),
        (pd.Index([0, 1, 2]), pd.Index([0.0, 1.0, 2.0])),
        (pd.Index(list("abc"), dtype=object), pd.Index(list("abc"), dtype="string")),
        (pd.Index(list("abc")), pd.CategoricalIndex(list("abc"))),
        (pd.Index([1, None, 2], dtype=object), pd.Index([1, np.nan, 2], dtype=object)),
        (pd.Index([1, pd.NA, 2], dtype=object), pd.Index([1, pd.NA, 2], dtype=object)),
        (pd.MultiIndex.from_tuples([(0, "a"), (0, "b"), (1, "a")]), pd.Index([(0, "a"), (0, "b"), (1, "a")])),
        (pd.Index([7, 7, 8]), pd.Index([7, 7, 8])),
        (
            pd.date_range("2026-01-01", periods=3),
            pd.Index(pd.date_range("2026-01-01", periods=3), dtype=object),
        ),
    ],
    ids=str,
)
def test_labels_of_two_types_can_be_the_same(here, there):
    proba, y = pd.DataFrame(PROBA[:3], index=here), pd.Series(Y[:3], index=there)
    RiskController(alpha=0.5).calibrate(proba, y)


@pytest.mark.parametrize("labels", [[7, 7, 8], [(0, "a"), (1, "a"), (0, "b")], ["b", pd.NA, "a"]], ids=str)
def test_another_order_is_found_whatever_the_labels(labels):
    here, there = (pd.Index(each, dtype=object) for each in (labels, labels[::-1]))
    with pytest.raises(ValueError, match="y has the index labels of proba in another order"):
        RiskController(alpha=0.5).calibrate(
            pd.DataFrame(PROBA[:3], index=here), pd.Series(Y[:3], index=there)
        )


def test_repeated_labels_have_no_loc_as_a_remedy():
    proba, y = pd.DataFrame(PROBA[:3], index=[7, 7, 8]), pd.Series(Y[:3], index=[8, 7, 7])
    with pytest.raises(
        ValueError, match=r"row 0 is 8 in y and 7 in proba\. If the rows correspond by position"
    ):
        RiskController(alpha=0.5).calibrate(proba, y)


def test_inputs_without_an_index_are_taken_as_they_stand():
    expected = RiskController(alpha=0.2).calibrate(PROBA, Y)
    shuffled = LABELS.set_axis(INDEX[::-1])
    for proba, y in ((PROBA, shuffled), (FRAME, shuffled.to_numpy()), (FRAME, shuffled.tolist())):
        assert RiskController(alpha=0.2).calibrate(proba, y).risk_curve_ == expected.risk_curve_


def test_another_number_of_rows_is_said_first():
    with pytest.raises(ValueError, match=r"one label for each of the 300 rows of proba; got shape \(299,\)"):
        RiskController(alpha=0.2).calibrate(FRAME, LABELS.iloc[1:])


def test_a_train_test_split_is_right():
    from sklearn.model_selection import train_test_split

    X, X_new, y, y_new = train_test_split(FEATURES.reset_index(drop=True), LABELS.reset_index(drop=True))
    model = OrdinalRiskClassifier(LogisticRegression(), alpha=0.2).fit(X, y)
    model.calibrate(X_new, y_new)


# dask frames


def partitions(values):
    """In the order in which they stand, in 3 partitions."""
    return dd.from_pandas(values, npartitions=3, sort=False)


def test_dask_frames_with_equal_indexes_are_right():
    controller = RiskController(alpha=0.2).calibrate(partitions(FRAME), partitions(LABELS))
    assert controller.threshold_ == RiskController(alpha=0.2).calibrate(PROBA, Y).threshold_


@pytest.mark.parametrize("name", ["y", "groups", "point_labels"])
def test_another_order_of_a_dask_series_is_an_error(name):
    right = {"y": LABELS, "groups": CLUSTERS % 2, "point_labels": POINTS}
    rule = GIVEN if name == "point_labels" else "frontier"
    shuffled = {name: partitions(right[name]).map_partitions(lambda part: part[::-1])}
    with pytest.raises(
        ValueError, match=rf"Partition \d: {name} has the index labels of proba in another order"
    ):
        RiskController(alpha=0.2, growth=rule).calibrate(
            **{"proba": partitions(FRAME), "y": partitions(LABELS)} | shuffled
        )


def test_other_labels_of_a_dask_series_are_a_warning():
    with pytest.warns(UserWarning, match="The index of y differs from that of proba"):
        RiskController(alpha=0.2).calibrate(partitions(FRAME), partitions(LABELS.reset_index(drop=True)))


def test_groups_of_new_dask_rows_are_checked_when_they_are_computed():
    groups = partitions(CLUSTERS % 2)
    controller = RiskController(alpha=0.2).calibrate(partitions(FRAME), partitions(LABELS), groups=groups)
    controller.predict_set(partitions(FRAME), groups=groups).compute()
    sets = controller.predict_set(partitions(FRAME), groups=groups.map_partitions(lambda part: part[::-1]))
    with pytest.raises(
        ValueError, match=r"Partition \d: groups has the index labels of proba in another order"
    ):
        sets.compute()


def test_sets_keep_the_index_of_their_rows():
    assert SETS.index is FRAME.index
    assert SETS.to_pandas().index.equals(INDEX)
    few = [4, 2, 250]
    assert SETS[few].to_pandas().index.tolist() == INDEX[few].tolist()
    assert SETS[SETS.size > 1].index.equals(INDEX[SETS.size > 1])
    assert SETS.to_pandas(index=range(N)).index.tolist() == [*range(N)]
    plain = RiskController(alpha=0.2).calibrate(PROBA, Y).predict_set(PROBA)
    assert plain.index is None
    assert plain == SETS
    assert plain.contains(LABELS.sample(frac=1, random_state=0)).any()  # sets without an index: by position


def test_sets_of_a_classifier_have_the_index_of_its_features():
    sets = fit("fit").predict_set(FEATURES)
    assert sets.to_pandas().index.equals(INDEX)
    with pytest.raises(ValueError, match="in another order"):
        orisk.metrics.coverage(LABELS.sample(frac=1, random_state=0), sets)
