"""Dask collections give the bits of one machine, for all partitions and if workers are lost."""

import os
import pickle
import signal
import threading
import warnings
from fractions import Fraction
from functools import cache
from itertools import product

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from effort import wait_until
from rows_in_parts import WatchedParts, finished
from sizes import search_few_steps
from strategies import GROWTH_RULES, LOSSES
from unchecked import FEW, UNCHECKED
from worker_processes import local_cluster

import ordinalrisk as orisk
from ordinalrisk import RiskController, metrics
from ordinalrisk.calibration.loss_steps import LossSteps
from ordinalrisk.curves.windows import NotKnownError
from ordinalrisk.execution.dask import collections, executor
from ordinalrisk.execution.dask.lazy_sets import LazyIntervalSet
from ordinalrisk.inputs.arrays import is_dask, is_lazy_set
from ordinalrisk.inputs.batch import SummaryGroup

K, N = 4, 900
CLASSES = ["none", "mild", "severe", "worst"]
pytestmark = [
    FEW,
    UNCHECKED,
    # distributed closes sockets and loops in threads of its own, now and then after the collector saw them
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*unclosed:pytest.PytestUnraisableExceptionWarning"),
]


def few_levels(n=N, seed=1):
    """Rows of which many have equal probabilities."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(6, [0.1, 0.4, 0.3, 0.2], size=n) / 6, rng.integers(0, K, n)


def chunk_lengths(n_rows, n_partitions):
    return tuple(len(part) for part in np.array_split(np.arange(n_rows), n_partitions))


def cut(array, lengths):
    """A dask array with such partitions."""
    array = np.asarray(array)
    return da.from_array(array, chunks=(tuple(lengths), *((n,) for n in array.shape[1:])))


def frame_of(array, n_partitions, **how):
    return dd.from_pandas(pd.DataFrame(array, **how), npartitions=n_partitions)


def curves_of(controller):
    return [part.curve for part in controller.calibration_.strata.parts]


@pytest.fixture
def small(monkeypatch):
    """The search treats few steps as it treats many."""
    search_few_steps(monkeypatch, SAMPLED=200, SAMPLED_OF_STRATUM=20, MOST_SENT=400)


@pytest.fixture(autouse=True)
def _threads():
    """Unless a test asks for a cluster, threads of this process do the work."""
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture(scope="module")
def shared_cluster():
    quiet = {"logging": {"distributed": "critical"}, "distributed.worker.memory.terminate": False}
    with (
        dask.config.set(quiet),
        warnings.catch_warnings(),
        local_cluster() as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def cluster(shared_cluster):
    """Two processes with a thread each, which do the work."""
    with dask.config.set(scheduler=shared_cluster.get), shared_cluster.as_current():
        yield shared_cluster


# the same bits


def same_as_one_machine(parted, whole, alphas, proba, in_parts):
    for alpha in alphas:
        assert parted.threshold_at(alpha) == whole.threshold_at(alpha)
    assert parted.threshold_ == whole.threshold_
    assert parted.n_rows_ == whole.n_rows_
    assert parted.predict_set(in_parts).compute() == whole.predict_set(proba)


PAIRS = [*product(LOSSES, range(len(GROWTH_RULES)))]


def pair_of(number, draw):
    """A loss and a growth rule, risks to ask for, rows, and in how many partitions they are."""
    name, rule = PAIRS[number]
    loss = LOSSES[name](K)
    n_partitions = (1, 2, 7, executor.MERGED_AT_ONCE + 2)[([*LOSSES].index(name) + rule) % 4]
    alphas = [share * loss.bound(K) for share in (Fraction(1, 8), Fraction(1, 50), Fraction(2, 5))]
    proba, y = few_levels() if number % 2 else draw(N, K)
    return loss, GROWTH_RULES[rule], alphas, proba, y, chunk_lengths(N, n_partitions)


@cache
def on_one_machine(number, draw):
    """The calibration of a pair."""
    loss, growth, alphas, proba, y, _ = pair_of(number, draw)
    return RiskController(loss, alphas[0], growth).calibrate(proba, y)


def test_every_loss_and_growth_rule(small, draw):
    """Each loss and each rule with each number of partitions."""
    in_windows = 0
    for number in range(len(PAIRS)):
        loss, growth, alphas, proba, y, lengths = pair_of(number, draw)
        in_parts = cut(proba, lengths)
        parted = RiskController(loss, alphas[0], growth).calibrate(
            in_parts, cut(y, lengths), more_alphas=alphas[1:]
        )
        same_as_one_machine(parted, on_one_machine(number, draw), alphas, proba, in_parts)
        in_windows += not curves_of(parted)[0].is_whole
    assert in_windows > len(PAIRS) / 2


def test_every_loss_and_growth_rule_in_other_processes(cluster, small, draw):
    """The steps of all pairs in one go, and all intervals in another: each question has a price there."""
    cases = [pair_of(number, draw) for number in range(len(PAIRS))]
    specs, steps = [], []
    for loss, growth, alphas, proba, y, _ in cases:
        spec = RiskController(loss, alphas[0], growth).spec
        specs.append(spec)
        empty = executor.shared((LossSteps(spec, np.arange(K)), SummaryGroup()))
        parts = (slice(0, 350), slice(350, 350), slice(350, N))
        steps.append(
            [
                executor.steps_of_part(executor.read_part(part, empty))
                for part in (
                    collections.labelled_partition(spec, np.arange(K), i, proba[rows], y[rows], None, None)
                    for i, rows in enumerate(parts)
                )
            ]
        )
    lazy, controllers = [], []
    for spec, parts, case in zip(specs, dask.compute(*steps), cases, strict=True):
        found = finished(WatchedParts(parts), spec, np.arange(K), more_alphas=case[2][1:])
        parted = orisk.RiskController.of(spec, found)
        lazy.append(parted.predict_set(cut(case[3], (500, 400)))._ends.parts)
        controllers.append(parted)
    found = zip(cases, controllers, dask.compute(*lazy), strict=True)
    for number, ((_, _, alphas, proba, *_), parted, ends) in enumerate(found):
        whole = on_one_machine(number, draw)
        for alpha in alphas:
            assert parted.threshold_at(alpha) == whole.threshold_at(alpha)
        sets = whole.predict_set(proba)
        assert np.array_equal(np.concatenate(ends), np.stack([sets.lower_index, sets.upper_index], axis=1))


def test_each_loss_asked_over_a_cluster(cluster, small, draw):
    for number in range(0, len(PAIRS), len(GROWTH_RULES) + 1):
        loss, growth, alphas, proba, y, _ = pair_of(number, draw)
        whole = on_one_machine(number, draw)
        lengths = (100, 0, 800)
        parted = RiskController(loss, alphas[0], growth).calibrate(
            cut(proba, lengths), cut(y, lengths), more_alphas=alphas[1:]
        )
        for alpha in alphas:
            assert parted.threshold_at(alpha) == whole.threshold_at(alpha)


LENGTHS = {
    "one": (N,),
    "two": (400, 500),
    "seven": chunk_lengths(N, 7),
    "64": chunk_lengths(N, 64),
    "empty ones": (0, 0, 300, 0, 600, 0),
    "one huge and many tiny": (1,) * 10 + (N - 25,) + (3,) * 5,
}


@pytest.mark.parametrize("where", ["cluster", "threads"])
@pytest.mark.parametrize("rows", ["drawn", "tied"])
def test_however_the_rows_are_cut(request, small, draw, rows, where):
    if where == "cluster":
        request.getfixturevalue("cluster")
    proba, y = draw(N, K) if rows == "drawn" else few_levels()
    whole = RiskController("divergence", 0.1).calibrate(proba, y)
    found = []
    for name, lengths in LENGTHS.items():
        if where == "cluster" and (rows == "tied") != (name in ("empty ones", "64")):
            continue  # the others are for threads, which take less time
        in_parts = cut(proba, lengths)
        parted = RiskController("divergence", 0.1).calibrate(in_parts, cut(y, lengths), more_alphas=[0.02])
        same_as_one_machine(parted, whole, [0.1, 0.02], proba, in_parts)
        found.append(curves_of(parted)[0])
    assert all(curve == found[0] for curve in found)
    assert not found[0].is_whole


@pytest.mark.parametrize("where", ["cluster", "threads"])
def test_options(request, small, draw, where):
    """Each option gives the thresholds and intervals of one machine."""
    if where == "cluster":
        request.getfixturevalue("cluster")
    proba, y = draw(N, K)
    rng = np.random.default_rng(0)
    groups, points = rng.choice(["b", "a"], N), rng.integers(0, K, N)
    lengths = (200, 0, 300, 400)
    given = orisk.PaperGrowth("given")
    for options, extras in (
        ({"condition_on": "label"}, {}),
        ({"alpha": {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.1}}, {}),
        ({}, {"groups": groups}),
        ({"delta": 0.1}, {}),
        ({"loss": "divergence", "delta": 0.1, "confidence_bound": "hoeffding_bentkus"}, {"groups": groups}),
        ({"growth": given}, {"point_labels": points}),
        ({"randomize": True}, {"groups": groups}),
        ({"loss": orisk.WeightedLoss([5, 1, 1, 2]), "relative": True}, {"groups": groups}),
        ({"loss": "divergence", "alpha": 0.05, "relative": True}, {}),
    ):
        lazy = {name: cut(values, lengths) for name, values in extras.items()}
        whole = RiskController(**options).calibrate(proba, y, **extras)
        parted = RiskController(**options).calibrate(cut(proba, lengths), cut(y, lengths), **lazy)
        assert parted.threshold_ == whole.threshold_
        coins = {"random_state": 7} if options.get("randomize") else {}
        sets = parted.predict_set(cut(proba, lengths), **lazy, **coins)
        assert sets.compute() == whole.predict_set(proba, **extras, **coins)


def test_class_ratios(small, draw):
    proba, y = draw(N, K)
    weights = {0: 1, 1: 0.5, 2: 2, 3: "1/3"}
    whole = RiskController().calibrate(proba, y, class_ratios=weights)
    lengths = (100, 800)
    parted = RiskController().calibrate(cut(proba, lengths), cut(y, lengths), class_ratios=weights)
    assert parted.threshold_ == whole.threshold_
    assert parted.guarantee().shift == "labels"
    assert parted.predict_set(cut(proba, lengths)).compute() == whole.predict_set(proba)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_arrays_of_any_kind(small, draw, dtype):
    proba, y = draw(N, K)
    proba = proba.astype(dtype)
    whole = RiskController(alpha=0.2).calibrate(proba, y)
    known = cut(proba, (300, 600))
    unknown = known[known[:, 0] >= 0]
    assert np.isnan(unknown.shape[0])
    in_columns = da.from_array(proba, chunks=((300, 600), (1, 3)))
    labels = da.from_array(y, chunks=500)  # rechunked, since all lengths are known
    for in_parts, y_in_parts in (
        (known, labels),
        (in_columns, labels),
        (unknown, cut(y, (300, 600))),
        (known, frame_of(y, 1)[0].repartition(divisions=[0, 300, N - 1])),
    ):
        parted = RiskController(alpha=0.2).calibrate(in_parts, y_in_parts)
        assert parted.threshold_ == whole.threshold_
        assert parted.predict_set(in_parts).compute() == whole.predict_set(proba)
    assert parted.data_blake3_ != whole.data_blake3_  # it is that of the parts
    alone = RiskController(alpha=0.2).calibrate(cut(proba, (0, N)), cut(y, (0, N)))
    assert alone.data_blake3_ == whole.data_blake3_


def test_frames_bring_the_order_of_their_classes(small, draw):
    proba, y = draw(N, K)
    ordered = pd.Categorical.from_codes(y, CLASSES, ordered=True)
    frame = pd.DataFrame(proba, columns=CLASSES).assign(y=ordered)
    whole = RiskController(alpha=0.2).calibrate(frame[CLASSES], frame["y"])
    in_parts = dd.from_pandas(frame, npartitions=5)
    parted = RiskController(alpha=0.2).calibrate(in_parts[CLASSES], in_parts["y"])
    assert parted.classes_.tolist() == CLASSES
    assert parted.threshold_ == whole.threshold_
    sets = parted.predict_set(in_parts[CLASSES])
    assert sets.compute() == whole.predict_set(frame[CLASSES])
    assert set(sets.lower.compute()) <= set(CLASSES)
    assert metrics.coverage(in_parts["y"], sets) == metrics.coverage(frame["y"], sets.compute())
    with pytest.raises(ValueError, match=r"The columns of proba are in the order"):
        RiskController().calibrate(in_parts[CLASSES[::-1]], in_parts["y"])
    with pytest.raises(ValueError, match=r"The columns of proba are in the order"):
        parted.predict_set(in_parts[CLASSES[::-1]])


def test_categories_that_dask_does_not_know_are_an_error(draw):
    proba, y = draw(N, K)
    labels = frame_of(np.array(CLASSES)[y], 3)[0].astype("category")
    with pytest.raises(
        ValueError, match=r"categories that dask does not know yet; pass y\.cat\.as_known\(\)"
    ):
        RiskController().calibrate(frame_of(proba, 3), labels)


def test_named_classes(draw):
    proba, y = draw(N, K)
    labels = np.array(CLASSES)[y]
    whole = RiskController(alpha=0.2, classes=CLASSES).calibrate(proba, labels)
    in_parts = frame_of(proba, 3, columns=CLASSES)
    parted = RiskController(alpha=0.2, classes=CLASSES).calibrate(in_parts, frame_of(labels, 3)[0])
    assert parted.threshold_ == whole.threshold_
    assert parted.risk_curve_ == whole.risk_curve_  # so few steps are kept whole
    assert parted.predict_set(in_parts).compute() == whole.predict_set(proba)


def test_a_calibration_of_one_machine_predicts_with_row_weights(draw):
    proba, y = draw(N, K)
    weights = np.random.default_rng(0).uniform(0.5, 2, N)
    controller = RiskController(alpha=0.2).calibrate(proba, y, sample_weight=weights)
    lengths = (10, 0, 890)
    sets = controller.predict_set(cut(proba, lengths), sample_weight=cut(weights, lengths))
    assert sets.compute() == controller.predict_set(proba, sample_weight=weights)


def test_coins_belong_to_rows_not_to_partitions(draw):
    proba, y = few_levels()
    controller = RiskController(alpha=0.2, randomize=True).calibrate(proba, y)
    expected = controller.predict_set(proba, random_state=5)
    for lengths in LENGTHS.values():
        assert controller.predict_set(cut(proba, lengths), random_state=5).compute() == expected
    assert controller.predict_set(cut(proba, (N,)), random_state=6).compute() != expected


def test_more_alphas_and_others(small, draw):
    proba, y = draw(N, K)
    lengths = (300, 600)
    parted = RiskController(alpha=0.1).calibrate(cut(proba, lengths), cut(y, lengths), more_alphas=[0.35])
    whole = RiskController(alpha=0.1).calibrate(proba, y)
    sets = parted.predict_set(cut(proba, lengths), alpha=0.35)
    assert sets.compute() == whole.predict_set(proba, alpha=0.35)
    for ask in (
        parted.threshold_at,
        parted.guarantee,
        lambda a: parted.predict_set(cut(proba, lengths), alpha=a),
    ):
        with pytest.raises(NotKnownError, match=r"near alpha=0\.1 and 0\.35 only.* with 0\.2 in more_alphas"):
            ask(0.2)


def test_a_calibration_in_parts_predicts_on_one_machine_and_survives(small, draw, tmp_path):
    proba, y = draw(N, K)
    lengths = (300, 600)
    parted = RiskController(alpha=0.1).calibrate(cut(proba, lengths), cut(y, lengths), more_alphas=[0.35])
    parted.save(tmp_path / "file.json")
    for same in (RiskController.load(tmp_path / "file.json"), pickle.loads(pickle.dumps(parted))):
        assert same.predict_set(proba) == parted.predict_set(cut(proba, lengths)).compute()
        assert same.risk_curve_ == parted.risk_curve_


def test_too_few_rows_are_warned_about_once(draw):
    proba, y = draw(6, K)
    with pytest.warns(UserWarning, match=r"alpha=0\.1 needs at least 9 calibration rows") as record:
        controller = RiskController(alpha=0.1).calibrate(cut(proba, (2, 4)), cut(y, (2, 4)))
    assert [warning.filename for warning in record] == [__file__]
    assert (controller.predict_set(cut(proba, (2, 4))).size.compute() == K).all()


def test_groups_that_look_like_patients_are_warned_of(draw):
    proba, y = draw(30, K)
    groups = np.arange(30) // 2
    with pytest.warns(
        UserWarning, match=r"Most groups have one or two rows \(15 groups, 30 rows\)"
    ) as record:
        RiskController(alpha=0.6, check=False).calibrate(
            *(cut(values, (10, 20)) for values in (proba, y)), groups=cut(groups, (10, 20))
        )
    assert [warning.filename for warning in record] == [__file__]


# nothing is computed until asked


@pytest.fixture
def counted(draw):
    """Probabilities that count how often they are computed."""
    calls, lock = [], threading.Lock()

    def counting(block):
        with lock:
            calls.append(len(block))
        return block

    proba, y = draw(N, K)
    source = cut(proba, (300, 600)).map_blocks(counting, meta=np.empty((0, K)))
    return proba, y, source, calls


def test_predictions_are_lazy(counted):
    proba, y, source, calls = counted
    controller = RiskController(alpha=0.2).calibrate(proba, y)
    sets = controller.predict_set(source)
    assert isinstance(sets, LazyIntervalSet)
    labels = cut(y, (300, 600))
    parts = [sets.lower, sets.upper, sets.lower_index, sets.upper_index, sets.size, sets.centroid]
    parts += [sets.mask(), sets.contains(labels), metrics.losses(labels, sets, "divergence")]
    sets.to_dask_dataframe()
    assert (len(sets), repr(sets)) == (N, "LazyIntervalSet of 900 rows in 2 partitions, 4 classes")
    assert calls == []
    whole = controller.predict_set(proba)
    expected = [whole.lower, whole.upper, whole.lower_index, whole.upper_index, whole.size, whole.centroid]
    expected += [whole.mask(), whole.contains(y), metrics.losses(y, whole, "divergence")]
    for found, value in zip(dask.compute(*parts), expected, strict=True):
        assert found.dtype == value.dtype
        assert np.array_equal(found, value)
    for array, value in zip(parts, expected, strict=True):
        assert array.dtype == value.dtype
        assert array.shape == value.shape
    assert sorted(calls) == [300, 600]
    calls.clear()
    metrics.risk(labels, sets, "divergence")
    assert sorted(calls) == [300, 600]


def test_a_calibration_reads_each_partition_once(counted, small):
    _, y, source, calls = counted
    RiskController(alpha=0.2).calibrate(source, cut(y, (300, 600)), more_alphas=[0.05, 0.4])
    assert sorted(calls) == [300, 600]


def test_sets_of_unknown_length(draw):
    proba, y = draw(N, K)
    controller = RiskController(alpha=0.2).calibrate(proba, y)
    source = cut(proba, (300, 600))
    sets = controller.predict_set(source[source[:, 0] > 0.1])
    assert repr(sets) == "LazyIntervalSet of unknown rows in 2 partitions, 4 classes"
    with pytest.raises(ValueError, match=r"unknown lengths; ask for len\(sets.compute\(\)\)"):
        len(sets)
    expected = controller.predict_set(proba[proba[:, 0] > 0.1])
    assert sets.compute() == expected
    assert np.array_equal(sets.mask().compute(), expected.mask())
    assert repr(controller.predict_set(cut(proba, (N,)))).endswith("in 1 partition, 4 classes")
    with pytest.raises(TypeError):
        hash(sets)


METRICS = {
    "risk": lambda y, sets, **how: metrics.risk(y, sets, "divergence", **how),
    "coverage": metrics.coverage,
    "class_coverage": metrics.class_coverage,
    "mean_size": lambda y, sets, **how: metrics.mean_size(sets, **how),
    "distance_when_missed": metrics.distance_when_missed,
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_those_of_one_machine(draw, name):
    proba, y = draw(N, K)
    controller = RiskController(alpha=0.3).calibrate(proba, y)
    whole = controller.predict_set(proba)
    for lengths in ((N,), (0, 300, 0, 600), chunk_lengths(N, 40)):
        sets = controller.predict_set(cut(proba, lengths))
        for how in ({}, {"confidence": 0.9}):
            found, expected = METRICS[name](cut(y, lengths), sets, **how), METRICS[name](y, whole, **how)
            assert repr(found) == repr(expected)


def test_metrics_on_a_cluster(cluster, draw):
    proba, y = draw(N, K)
    controller = RiskController(alpha=0.3).calibrate(proba, y)
    sets = controller.predict_set(cut(proba, (300, 600)))
    assert metrics.coverage(cut(y, (300, 600)), sets) == metrics.coverage(y, controller.predict_set(proba))
    assert np.array_equal(sets.size.compute(), controller.predict_set(proba).size)


def test_a_frame_of_intervals_has_index_and_divisions(draw):
    proba, y = draw(N, K)
    controller = RiskController(alpha=0.2, classes=CLASSES).calibrate(proba, np.array(CLASSES)[y])
    frame = pd.DataFrame(proba, index=pd.Index(np.arange(N) * 3 + 7, name="patient"))
    source = dd.from_pandas(frame, npartitions=4)
    expected = controller.predict_set(proba).to_pandas(index=frame.index)
    found = controller.predict_set(source).to_dask_dataframe()
    assert found.divisions == source.divisions
    assert found.known_divisions
    pd.testing.assert_frame_equal(found.compute(), expected, check_dtype=False)
    assert found.loc[10].compute().index.tolist() == [10]
    unknown = controller.predict_set(source.clear_divisions()).to_dask_dataframe()
    assert not unknown.known_divisions
    pd.testing.assert_frame_equal(unknown.compute(), expected, check_dtype=False)
    empty = source[source[0] > 2]
    assert len(controller.predict_set(empty).to_dask_dataframe().compute()) == 0


def test_a_frame_of_intervals_of_an_array_numbers_the_rows(draw):
    proba, y = draw(N, K)
    controller = RiskController(alpha=0.2).calibrate(proba, y)
    found = controller.predict_set(cut(proba, (300, 0, 600))).to_dask_dataframe()
    pd.testing.assert_frame_equal(found.compute(), controller.predict_set(proba).to_pandas())
    assert found.dtypes.to_dict() == controller.predict_set(proba).to_pandas().dtypes.to_dict()
    source = cut(proba, (300, 600))
    unknown = controller.predict_set(source[source[:, 0] >= 0]).to_dask_dataframe().compute()
    assert unknown.index.tolist() == [*range(300), *range(600)]


# what can go wrong


def calibrate(proba, y, controller=None, **extras):
    return (controller or RiskController(alpha=0.2)).calibrate(proba, y, **extras)


@pytest.fixture
def rows(draw):
    proba, y = draw(N, K)
    return cut(proba, (300, 600)), cut(y, (300, 600)), proba, y


def test_everything_must_be_in_parts_or_nothing(rows):
    lazy, lazy_y, proba, y = rows
    for name in ("y", "groups", "point_labels"):
        extras = {} if name == "y" else {name: y}
        growth = orisk.PaperGrowth("given") if name == "point_labels" else "frontier"
        with pytest.raises(
            ValueError,
            match=rf"^{name} must be a dask collection like proba, cut in the same places; got a ndarray\.",
        ):
            calibrate(lazy, y if name == "y" else lazy_y, RiskController(growth=growth), **extras)
    with pytest.raises(ValueError, match=r"y is a dask collection, .* pass y\.compute\(\)"):
        calibrate(proba, lazy_y)
    with pytest.raises(ValueError, match=r"groups is a dask collection, .* pass groups\.compute\(\)"):
        calibrate(proba, y, groups=lazy_y)
    controller = calibrate(proba, y)
    with pytest.raises(ValueError, match="y must be a dask collection like proba"):
        metrics.coverage(y, controller.predict_set(lazy))
    with pytest.raises(ValueError, match="y is a dask collection"):
        metrics.coverage(lazy_y, controller.predict_set(proba))
    with pytest.raises(ValueError, match="proba is a dask collection"):
        orisk.RiskController(alpha=0.2).calibrate_batches([(lazy, lazy_y)])


def test_other_partitions_are_an_error(rows):
    lazy, lazy_y, _, y = rows
    with pytest.raises(ValueError, match=r"^y has 3 partitions, proba 2; cut both in the same places\.$"):
        calibrate(lazy, frame_of(y, 3)[0])
    with pytest.raises(ValueError, match=r"^groups has 1 partitions, proba 2;"):
        calibrate(lazy, lazy_y, groups=frame_of(y, 1)[0])
    with pytest.raises(
        ValueError, match=r"^y must have one value for each of the 900 rows of proba; got shape \(899,\)\."
    ):
        calibrate(lazy, lazy_y[1:])
    unknown = lazy[lazy[:, 0] >= 0]
    with pytest.raises(ValueError, match=r"^y has 3 partitions, proba 2"):
        calibrate(unknown, cut(y, (300, 300, 300)))


def test_other_lengths_are_an_error_with_the_partition(rows):
    lazy, _, proba, y = rows
    unknown = lazy[lazy[:, 0] >= 0]
    with pytest.raises(
        ValueError,
        match=r"^Partition [01]: y must have one label for each of the [36]00 rows of proba; got",
    ):
        calibrate(unknown, cut(y, (299, 601)))
    controller = RiskController(alpha=0.2, check=False).calibrate(proba, y, groups=y)
    sets = controller.predict_set(unknown, groups=cut(y, (301, 599)))
    with pytest.raises(ValueError, match=r"^Partition [01]: groups must have one value for each of the"):
        sets.compute()
    sets = controller.predict_set(unknown, groups=cut(y, (300, 600)))
    for ask in (sets.contains, lambda y: metrics.losses(y, sets)):
        with pytest.raises(ValueError, match=r"^Partition [01]: y must have one label for each of the"):
            ask(cut(y, (301, 599))).compute()
    with pytest.raises(ValueError, match=r"^Partition [01]: y must have one label"):
        metrics.coverage(cut(y, (301, 599)), sets)


def test_extras_of_partitions_without_rows_are_an_error(rows):
    _, _, proba, y = rows
    empty = cut(proba, (0, N))
    unknown = empty[empty[:, 0] >= 0]
    one_more = cut(np.append(0, y), (1, N))
    with pytest.raises(ValueError, match=r"^Partition 0: proba has no rows"):
        calibrate(unknown, one_more)
    with pytest.raises(ValueError, match=r"^Partition 0: proba has no rows"):
        calibrate(unknown, cut(y, (0, N)), groups=one_more)
    controller = RiskController(alpha=0.2, check=False).calibrate(proba, y, groups=y)
    with pytest.raises(ValueError, match=r"^Partition 0: proba has no rows"):
        controller.predict_set(unknown, groups=one_more).compute()


@pytest.mark.parametrize("where", ["cluster", "threads"])
def test_a_bad_row_is_named_with_its_partition(request, rows, where):
    if where == "cluster":
        request.getfixturevalue("cluster")
    _, lazy_y, proba, y = rows
    broken = proba.copy()
    broken[310, 2] = np.nan
    bad = r"^Partition 1: proba has a NaN value at row 10, column 2"
    with pytest.raises(ValueError, match=bad):
        calibrate(cut(broken, (300, 600)), lazy_y)
    labels = y.copy()
    labels[305] = 9
    with pytest.raises(ValueError, match=r"^Partition 1: y\[5\] is 9, which is not one of the classes"):
        calibrate(cut(proba, (300, 600)), cut(labels, (300, 600)))
    controller = calibrate(proba, y)
    sets = controller.predict_set(cut(broken, (300, 600)))
    with pytest.raises(ValueError, match=bad):
        sets.compute()
    with pytest.raises(ValueError, match=bad):
        metrics.coverage(lazy_y, sets)


def test_no_rows_at_all_is_an_error(rows):
    lazy, _, proba, y = rows
    with pytest.raises(ValueError, match="There are no rows to calibrate with"):
        calibrate(cut(proba[:0], (0, 0)), cut(y[:0], (0, 0)))
    nothing = lazy[lazy[:, 0] > 2]
    with pytest.raises(ValueError, match="There are no rows to calibrate with"):
        calibrate(nothing, cut(y[:0], (0, 0)))


def test_what_needs_all_rows_on_one_machine_is_an_error(rows):
    lazy, lazy_y, _, _ = rows
    with pytest.raises(ValueError, match=r"^clusters can't be used with dask: .* several partitions"):
        calibrate(lazy, lazy_y, clusters=lazy_y)
    with pytest.raises(ValueError, match=r"^sample_weight can't be used with dask: .* threshold of its own"):
        calibrate(lazy, lazy_y, sample_weight=lazy_y)
    with pytest.raises(
        ValueError, match=r'^confidence_bound="betting" must know which row each step belongs to'
    ):
        calibrate(lazy, lazy_y, RiskController("divergence", delta=0.1))


def test_wrong_options_are_errors_before_anything_is_computed(counted):
    proba, y, source, calls = counted
    lazy_y = cut(y, (300, 600))
    for controller, extras, message in (
        (RiskController(), {"more_alphas": [2]}, "alpha must lie strictly between 0"),
        (RiskController(), {"more_alphas": 0.2}, r"more_alphas must be a sequence of numbers; got 0\.2"),
        (RiskController(alpha=1.5), {}, "alpha must lie strictly between 0"),
        (RiskController(classes=[0, 1]), {}, "proba has 4 columns, but there are 2 classes"),
        (RiskController(), {"class_ratios": [1]}, "class_ratios must have one ratio for each of the 4"),
        (RiskController(), {"point_labels": lazy_y}, "point='mode', but point_labels were given"),
        (RiskController(growth=orisk.PaperGrowth("given")), {}, "point_labels were not given"),
        (RiskController(randomize=True), {"class_ratios": [1] * K}, "randomize"),
    ):
        with pytest.raises(ValueError, match=message):
            calibrate(source, lazy_y, controller, **extras)
    plain = calibrate(proba, y)
    coins = RiskController(randomize=True).calibrate(proba, y)
    grouped = RiskController(check=False).calibrate(proba, y, groups=y)
    unknown = source[source[:, 0] >= 0]
    for predict, message in (
        (lambda: plain.predict_set(source[:, :3]), "proba has 3 columns, but the calibration had 4 classes"),
        (lambda: plain.predict_set(source, random_state=1), "random_state was given, but"),
        (lambda: plain.predict_set(source, groups=lazy_y), "groups was given, but"),
        (lambda: plain.predict_set(source, sample_weight=lazy_y), "sample_weight was given, but"),
        (lambda: plain.predict_set(source, point_labels=lazy_y), "point_labels were given"),
        (lambda: plain.predict_set(source, alpha=7), "alpha must lie strictly between"),
        (lambda: coins.predict_set(source), "predictions need random_state="),
        (lambda: coins.predict_set(source, random_state=-1), "random_state must be a whole number"),
        (
            lambda: coins.predict_set(source, random_state=np.random.default_rng(0)),
            "random_state must be a whole number, not a",
        ),
        (
            lambda: coins.predict_set(unknown, random_state=1),
            r"Randomized sets need the number of each row.* call compute_chunk_sizes\(\)",
        ),
        (lambda: grouped.predict_set(source), "predictions need groups="),
        (lambda: grouped.predict_set(source, groups=y), "groups must be a dask collection"),
        (lambda: grouped.predict_set(source, groups=lazy_y, unseen_groups="x"), "unseen_groups must be one"),
    ):
        with pytest.raises(ValueError, match=message):
            predict()
    assert calls == []


def test_groups_that_were_never_seen(draw):
    proba, y = draw(N, K)
    groups = np.where(np.arange(N) % 2, "a", "b")
    controller = RiskController(alpha=0.2).calibrate(proba, y, groups=groups)
    new = groups.astype(object)
    new[400] = "new"
    lazy, new_in_parts = cut(proba, (300, 600)), cut(new, (300, 600))
    with pytest.raises(ValueError, match=r"^Partition 1: groups\[100\] is 'new', a group without"):
        controller.predict_set(lazy, groups=new_in_parts).compute()
    sets = controller.predict_set(lazy, groups=new_in_parts, unseen_groups="full")
    assert sets.compute() == controller.predict_set(proba, groups=new, unseen_groups="full")
    assert sets.size.compute()[400] == K


def test_dask_objects_without_rows_are_an_error(rows):
    lazy, lazy_y, proba, y = rows
    frame = frame_of(proba, 2)
    for wrong, message in (
        (dask.delayed(proba), "^proba must be a dask array, frame or series; got a Delayed"),
        (frame[0], r"^proba must have shape \(n_rows, n_classes\), .*; got a series"),
        (lazy_y, r"^proba must have shape .*; got shape \(900,\)"),
        (lazy[:, lazy.sum(axis=0) > 0], r"^The number of columns of proba is unknown"),
    ):
        with pytest.raises(ValueError, match=message):
            calibrate(wrong, lazy_y)
        with pytest.raises(ValueError, match=message):
            calibrate(proba, y).predict_set(wrong)
    with pytest.raises(ValueError, match=r"^y must be a dask array, frame or series; got a Delayed"):
        calibrate(lazy, dask.delayed(y))
    with pytest.raises(ValueError, match=r"^y must have a value for each row of proba; got a single value"):
        calibrate(lazy, lazy_y.sum())


def test_not_calibrated_yet(rows):
    with pytest.raises(ValueError, match="not calibrated yet"):
        RiskController().predict_set(rows[0])


# workers that die


def dying_once(block, marker):
    """The process that is the first to see the block does not survive it."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return block
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_while_rows_are_read(cluster, small, draw, tmp_path):
    proba, y = draw(N, K)
    whole = RiskController("divergence", 0.1).calibrate(proba, y)
    lengths = chunk_lengths(N, 6)
    marker = str(tmp_path / "died")
    source = cut(proba, lengths).map_blocks(dying_once, marker, meta=np.empty((0, K)))
    parted = RiskController("divergence", 0.1).calibrate(source, cut(y, lengths), more_alphas=[0.02])
    assert os.path.exists(marker)
    assert parted.threshold_ == whole.threshold_
    assert parted.threshold_at(0.02) == whole.threshold_at(0.02)
    assert parted.predict_set(source).compute() == whole.predict_set(proba)


def test_a_worker_that_dies_between_questions(cluster, small, draw, monkeypatch):
    """Its steps are lost, and computed again from its rows."""
    proba, y = draw(N, K)
    whole = RiskController("divergence", 0.1).calibrate(proba, y)
    ask = executor.KeptParts.ask
    killed = []

    def ask_after_a_death(parts, question):
        if not killed:
            steps = {key: where for key, where in cluster.who_has().items() if "steps_of_part" in str(key)}
            pid = next(
                pid
                for worker, pid in cluster.run(os.getpid).items()
                if any(worker in where for where in steps.values())
            )
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)
        return ask(parts, question)

    monkeypatch.setattr(executor.KeptParts, "ask", ask_after_a_death)  # the first look is taken then
    lengths = chunk_lengths(N, 6)
    parted = RiskController("divergence", 0.1).calibrate(
        cut(proba, lengths), cut(y, lengths), more_alphas=[0.02]
    )
    assert len(killed) == 1
    assert parted.threshold_ == whole.threshold_
    assert parted.threshold_at(0.02) == whole.threshold_at(0.02)
    assert not curves_of(parted)[0].is_whole


def test_what_is_kept_on_the_cluster_goes_when_it_is_done(cluster, draw):
    proba, y = draw(N, K)
    lengths = chunk_lengths(N, 5)
    before = set(cluster.who_has())
    RiskController(alpha=0.2).calibrate(cut(proba, lengths), cut(y, lengths))
    wait_until(lambda: not set(cluster.who_has()) - before)  # a cluster forgets when it has time


# how answers travel


def test_answers_are_merged_a_few_at_a_time(monkeypatch):
    merged_at_once = []

    class Noted:
        def __init__(self, numbers):
            self.numbers = numbers

        def merge(self, other):
            return Noted(self.numbers + other.numbers)

    def note(found, merge_all=executor.merge_all):
        merged_at_once.append(len(found))
        return merge_all(found)

    monkeypatch.setattr(executor, "MERGED_AT_ONCE", 16)
    monkeypatch.setattr(executor, "merge_all", note)
    answers = [dask.delayed(Noted([number])) for number in range(40)]
    assert executor.merge_on_workers(answers).compute().numbers == [*range(40)]
    assert sorted(merged_at_once) == [3, 8, 16, 16]
    assert executor.merge_on_workers([dask.delayed(Noted([7]))]).compute().numbers == [7]


def test_lazy_things_are_told_without_importing_dask(rows):
    assert is_dask(rows[0])
    assert is_dask(frame_of(rows[2], 2))
    assert not is_dask(rows[2])
    sets = calibrate(*rows[2:]).predict_set(rows[0])
    assert is_lazy_set(sets)
    assert not is_lazy_set(sets.compute())


def test_frames_that_dask_would_cut_otherwise(tmp_path, draw):
    proba, y = draw(2_000, K)
    for i, rows in enumerate(np.split(np.arange(2_000), 20)):
        frame = pd.DataFrame(proba[rows], columns=list("abcd"))
        frame.assign(y=y[rows], g=y[rows] % 2, unused="text").to_parquet(tmp_path / f"{i:02}.parquet")
    read = dd.read_parquet(tmp_path)
    scores = read[list("abcd")]
    whole = RiskController(alpha=0.2).calibrate(proba, y, groups=y % 2)
    parted = RiskController(alpha=0.2).calibrate(scores, read["y"], groups=read["g"])
    assert parted.threshold_ == whole.threshold_
    sets = parted.predict_set(scores, groups=read["g"])
    expected = whole.predict_set(proba, groups=y % 2)
    assert sets.compute() == expected
    assert sets.contains(read["y"]).compute().tolist() == expected.contains(y).tolist()
    changed = parted.predict_set(scores.assign(b=read["b"]), groups=read["g"]).to_dask_dataframe()
    assert changed.compute()["upper"].tolist() == expected.upper.tolist()


def test_rows_of_other_places_in_the_index_are_an_error(draw):
    proba, y = draw(N, K)
    frame = frame_of(proba, 2)
    labels = dd.from_pandas(pd.Series(y, index=np.arange(N) + 5_000), npartitions=2)
    with pytest.raises(ValueError, match=r"^y and proba are cut at different places of the index"):
        calibrate(frame, labels)


def test_more_alphas_are_checked_on_one_machine_too(draw):
    proba, y = draw(N, K)
    lazy, lazy_y = cut(proba, (N,)), cut(y, (N,))
    for rows in ((proba, y), (lazy, lazy_y)):
        with pytest.raises(ValueError, match=r"^more_alphas: alpha must lie strictly between 0 and"):
            RiskController(alpha=0.1).calibrate(*rows, more_alphas=[7])
        with pytest.raises(ValueError, match=r"^more_alphas must be a sequence of numbers; got '0\.2'"):
            RiskController(alpha=0.1).calibrate(*rows, more_alphas="0.2")
    once = RiskController(alpha=0.1).calibrate(lazy, lazy_y, more_alphas=(a for a in [0.3]))
    assert once.calibration_.more_alphas == (Fraction(3, 10),)


def test_other_columns_stand_beside_the_intervals(draw):
    proba, y = draw(N, K)
    names = pd.DataFrame({"id": np.arange(N)[::-1], "site": y % 3}, index=np.arange(N) * 2)
    controller = RiskController(alpha=0.2).calibrate(proba, y)
    scores = dd.from_pandas(pd.DataFrame(proba, index=names.index), npartitions=3)
    sets = controller.predict_set(scores)
    found = sets.to_dask_dataframe(columns=dd.from_pandas(names, npartitions=3)).compute()
    expected = controller.predict_set(proba)
    assert [*found.columns] == ["id", "site", "lower", "upper", "size"]
    assert found["id"].tolist() == names["id"].tolist()
    assert found["lower"].tolist() == expected.lower.tolist()
    assert found.index.tolist() == names.index.tolist()
    numbered = controller.predict_set(cut(proba, (300, 300, 300)))  # whose rows have another index
    again = numbered.to_dask_dataframe(columns=dd.from_pandas(names, npartitions=3)).compute()
    assert again["lower"].tolist() == expected.lower.tolist()
    uneven = dd.concat([dd.from_pandas(names[:rows], npartitions=1) for rows in (1, 1, 1)])
    with pytest.raises(ValueError, match=r"^columns has 1 rows in a partition where proba has 300\.$"):
        sets.to_dask_dataframe(columns=uneven).compute()
