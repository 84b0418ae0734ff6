"""Tensors on a GPU: the same answers as on the host, where the tensors are.

Without a GPU the same code runs on tensors of the host, its kernels in Triton's interpreter.
"""

import pickle
from functools import cache

import numpy as np
import pytest
import torch
from devices import (
    DEVICE,
    HAS_GPU,
    fingerprint_instead,
    hide_the_kernels,
    sort_few_at_once,
    use_wide_blocks,
)
from strategies import GROWTH_RULES, LOSSES
from unchecked import UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import RiskController, metrics
from ordinalrisk.growth import GrowthRule

OF_THE_INTERPRETER = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
pytestmark = [OF_THE_INTERPRETER, UNCHECKED]


NAMES = ["none", "mild", "moderate", "severe", "critical"]
N, K = 150, 5  # more than the rows of a tile that are not in whole vectors


@pytest.fixture(autouse=True)
def device_of_the_tests(monkeypatch, interpreter, on_a_device):
    if not HAS_GPU:
        use_wide_blocks(monkeypatch)


def rows(seed=0, n=N):
    rng = np.random.default_rng(seed)
    proba = rng.multinomial(64, rng.dirichlet(np.ones(K), n)) / 64  # exact in each of the number types
    return proba, rng.integers(0, K, n)


PROBA, Y = rows()
NEW, Y_NEW = rows(1)


def on(values, dtype=None):
    return torch.as_tensor(values, dtype=dtype, device=DEVICE)


def as_numpy(values):
    return values.cpu().numpy() if isinstance(values, torch.Tensor) else values


def on_the_host(*args, **parameters):
    """A calibration of the same rows by the other kernels."""
    return RiskController(*args, **parameters).calibrate(PROBA, Y)


@cache
def calibrated_there():
    return RiskController(alpha=0.3).calibrate(on(PROBA), on(Y))


@pytest.fixture
def calibrated():
    return calibrated_there()


@pytest.mark.parametrize("growth", GROWTH_RULES[:3], ids=repr)
@pytest.mark.parametrize("loss", ["zero weights", "table"])
def test_calibration_and_prediction_equal_the_host(loss, growth):
    loss = LOSSES[loss](K)
    alpha = float(loss.cost_table(K).max()) * 0.2
    here = on_the_host(loss, alpha, growth)
    there = RiskController(loss, alpha, growth).calibrate(on(PROBA), on(Y))
    assert there.threshold_ == here.threshold_
    assert there.data_blake3_ == here.data_blake3_
    assert there.predict_set(on(NEW)) == here.predict_set(NEW)
    assert there.threshold_at(alpha / 2) == here.threshold_at(alpha / 2)
    assert there.risk_curve_ == here.risk_curve_
    assert there.guarantee() == here.guarantee()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_number_type(dtype):
    proba, y = rows(n=24)
    here = RiskController(alpha=0.3).calibrate(proba, y)
    there = RiskController(alpha=0.3).calibrate(on(proba, dtype), on(y))
    assert there.threshold_ == here.threshold_
    assert there.predict_set(on(NEW, dtype)) == here.predict_set(NEW)
    assert len({there.data_blake3_, here.data_blake3_}) == (1 if dtype == torch.float64 else 2)


def test_a_result_is_where_the_rows_are(calibrated):
    sets = calibrated.predict_set(on(NEW))
    here = on_the_host(alpha=0.3).predict_set(NEW)
    for name in ("lower_index", "upper_index", "lower", "upper", "size", "centroid"):
        value, expected = getattr(sets, name), getattr(here, name)
        assert isinstance(value, torch.Tensor), name
        assert value.device.type == DEVICE
        assert as_numpy(value).dtype == expected.dtype, name
        np.testing.assert_array_equal(as_numpy(value), expected)
    for value, expected in ((sets.mask(), here.mask()), (sets.contains(on(Y_NEW)), here.contains(Y_NEW))):
        assert isinstance(value, torch.Tensor)
        np.testing.assert_array_equal(as_numpy(value), expected)
    assert isinstance(sets.cpu().lower_index, np.ndarray)
    assert sets.cpu() == here
    assert repr(sets) == repr(here)
    assert list(sets) == list(here)
    assert sets[3] == here[3]
    assert sets[:7] == here[:7]
    assert isinstance(sets[:7].lower_index, torch.Tensor)
    assert sets.to_pandas().equals(here.to_pandas())


def test_labels_that_are_names_come_to_the_host():
    names = np.array(NAMES)
    sets = RiskController(alpha=0.3, classes=NAMES).calibrate(on(PROBA), names[Y]).predict_set(on(NEW))
    expected = on_the_host(alpha=0.3).predict_set(NEW)
    assert sets.lower.tolist() == names[expected.lower].tolist()
    assert isinstance(sets.size, torch.Tensor)
    assert as_numpy(sets.contains(names[Y_NEW])).tolist() == expected.contains(Y_NEW).tolist()


@pytest.mark.parametrize(
    "classes", [[10, 20, 30, 40, 50], [0.5, 1.5, 1.0, 7.0, -2.0], [2**53 + k for k in range(5)]]
)
def test_labels_that_are_other_numbers(classes):
    classes = np.array(classes)
    there = RiskController(alpha=0.3, classes=classes).calibrate(on(PROBA), on(classes[Y]))
    here = RiskController(alpha=0.3, classes=classes).calibrate(PROBA, classes[Y])
    assert there.threshold_ == here.threshold_
    sets = there.predict_set(on(NEW))
    np.testing.assert_array_equal(as_numpy(sets.upper), here.predict_set(NEW).upper)


def test_labels_that_are_positions_are_taken_as_they_stand(calibrated, monkeypatch):
    """Others are looked up, which takes as long as all else."""
    looked_up, searchsorted = [], torch.searchsorted

    def seen(known, wanted, **how):
        looked_up.append(len(known))
        return searchsorted(known, wanted, **how)

    monkeypatch.setattr(torch, "searchsorted", seen)
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.uint16, torch.float64):
        looked_up.clear()
        controller = RiskController(alpha=0.3).calibrate(on(PROBA), on(Y, dtype))
        assert controller.threshold_ == calibrated.threshold_
        assert controller.data_blake3_ == calibrated.data_blake3_
        assert (K in looked_up) == (dtype == torch.float64)


@pytest.mark.parametrize(
    "options", [{}, {"condition_on": "label"}, {"delta": 0.2, "random_state": 1}], ids=repr
)
def test_a_share_of_what_could_be_lost(options):
    loss = orisk.WeightedLoss([5, 1, 1, 2, 1])
    there = RiskController(loss, 0.3, relative=True, **options).calibrate(on(PROBA), on(Y))
    here = RiskController(loss, 0.3, relative=True, **options).calibrate(PROBA, Y)
    assert there.threshold_ == here.threshold_
    assert there.risk_curve_ == here.risk_curve_


def test_labels_may_stay_on_the_host(calibrated):
    for labels in (Y, Y.tolist(), Y.astype(float)):
        controller = RiskController(alpha=0.3).calibrate(on(PROBA), labels)
        assert controller.threshold_ == calibrated.threshold_
        assert controller.data_blake3_ == calibrated.data_blake3_


def test_point_labels_that_are_given():
    rule = orisk.FrontierGrowth("given")
    points, new_points = np.random.default_rng(2).integers(0, K, (2, N))
    here = RiskController(alpha=0.4, growth=rule).calibrate(PROBA, Y, point_labels=points)
    expected = here.predict_set(NEW, point_labels=new_points)
    for given in (points, on(points)):
        there = RiskController(alpha=0.4, growth=rule).calibrate(on(PROBA), on(Y), point_labels=given)
        assert there.threshold_ == here.threshold_
        assert there.predict_set(on(NEW), point_labels=on(new_points)) == expected


def test_levels_stay_there():
    levels = orisk.AdaptiveGrowth().levels(on(PROBA), "divergence")
    assert isinstance(levels, torch.Tensor)
    np.testing.assert_array_equal(as_numpy(levels), orisk.AdaptiveGrowth().levels(PROBA, "divergence"))


def test_a_saved_calibration_serves_both(calibrated, tmp_path):
    calibrated.save(tmp_path / "there.json")
    loaded = RiskController.load(tmp_path / "there.json")
    assert loaded.predict_set(NEW) == loaded.predict_set(on(NEW)) == calibrated.predict_set(on(NEW))


def test_metrics_take_them(calibrated):
    there, here = calibrated.predict_set(on(NEW)), on_the_host(alpha=0.3).predict_set(NEW)
    assert metrics.risk(on(Y_NEW), there, "divergence") == metrics.risk(Y_NEW, here, "divergence")
    assert metrics.coverage(Y_NEW, there, confidence=0.9) == metrics.coverage(Y_NEW, here, confidence=0.9)
    assert metrics.mean_size(sets=there) == metrics.mean_size(here)
    assert metrics.size_histogram(there).tolist() == metrics.size_histogram(here).tolist()


def test_alpha_for_a_size(calibrated):
    expected = orisk.alpha_for_size(on_the_host(alpha=0.3), NEW, 2)
    assert orisk.alpha_for_size(calibrated, on(NEW), 2) == expected


def test_units_too_large_for_64_bits():
    loss = orisk.WeightedLoss(["1e-30", 1, 2, 3, "3.000000000000000000001"], normalize=False)
    there = RiskController(loss, alpha=0.5, check=False).calibrate(on(PROBA), on(Y))
    assert there.threshold_ == on_the_host(loss, 0.5, check=False).threshold_


@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_one_threshold_sorts_a_sample_only(loss, monkeypatch):
    """More thresholds, and the whole curve, are read off all steps in order; they are sorted once."""
    sorts, sort = [], torch.sort
    monkeypatch.setattr(torch, "sort", lambda levels: sorts.append(len(levels)) or sort(levels))
    sort_few_at_once(monkeypatch, 16, near=4)
    there = RiskController(loss, alpha=0.1).calibrate(on(PROBA), on(Y))
    here = on_the_host(loss, alpha=0.1)
    assert there.threshold_ == here.threshold_
    assert 0 < max(sorts) <= 32
    sorts.clear()
    for alpha in (0.02, 0.1, 0.2):
        assert there.threshold_at(alpha) == here.threshold_at(alpha)
    assert there.risk_curve_ == here.risk_curve_
    assert len(sorts) == 1
    assert sorts[0] > 32


@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": 0.001},  # nothing can be certified
        {"alpha": 0.99},
        {"alpha": 0.3, "delta": 0.1, "random_state": 0},
        {"alpha": 0.3, "delta": 0.1, "confidence_bound": "hoeffding_bentkus"},
        {"alpha": 0.3, "growth": "rps"},
    ],
    ids=repr,
)
@pytest.mark.parametrize("loss", ["coverage", "divergence"])
@pytest.mark.filterwarnings("ignore:alpha=:UserWarning")
def test_thresholds_at_the_ends_and_with_confidence(loss, parameters, monkeypatch):
    sort_few_at_once(monkeypatch, 8, near=1)
    there = RiskController(loss, **parameters).calibrate(on(PROBA), on(Y))
    here = on_the_host(loss, **parameters)
    assert there.threshold_ == here.threshold_
    assert there.risk_curve_ == here.risk_curve_


MANY, Y_MANY = rows(3, 1_500)  # at least 256 for each stratum
GROUPS = np.array(["a", "b"])[np.arange(1_500) % 7 // 5]


@pytest.mark.parametrize(
    ("parameters", "options"),
    [
        ({}, {"groups": GROUPS}),
        ({"condition_on": "label"}, {}),
        ({"loss": "divergence"}, {"class_ratios": [1, 2, 0.5, 1, 0]}),
        ({}, {"class_ratios": ["1e-30", 1, 1, 1, 2]}),  # beyond 64 bits
    ],
    ids=["groups", "classes", "class_ratios", "tiny class_ratios"],
)
def test_strata_are_calibrated_on_the_device(parameters, options, monkeypatch):
    """No levels of all rows come to the host for them."""
    here = RiskController(alpha=0.3, **parameters).calibrate(MANY, Y_MANY, **options)
    monkeypatch.delattr(GrowthRule, "row_levels")
    there = RiskController(alpha=0.3, **parameters, check=False)  # checks take a sample to the host
    there.calibrate(on(MANY), on(Y_MANY), **options)
    assert there.threshold_ == here.threshold_
    assert there.risk_curve_ == here.risk_curve_
    assert there.data_blake3_ == here.data_blake3_


@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_strata_of_many_rows_and_of_few_are_joined(loss):
    """The steps of few rows are found on the host, from their levels."""
    here, there = (RiskController(loss, alpha=0.3) for _ in range(2))
    named = {"groups": GROUPS}, {"groups": GROUPS[:N]}
    here.calibrate_batches(
        {"proba": proba, "y": y, **of_rows}
        for proba, y, of_rows in zip((MANY, PROBA), (Y_MANY, Y), named, strict=True)
    )
    there.calibrate_batches(
        {"proba": on(proba), "y": on(y), **of_rows}
        for proba, y, of_rows in zip((MANY, PROBA), (Y_MANY, Y), named, strict=True)
    )
    assert there.threshold_ == here.threshold_
    assert there.risk_curve_ == here.risk_curve_


@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_steps_of_batches_are_joined_on_the_device(loss, monkeypatch):
    """They come to the host when somebody looks at the curve."""
    copied, cpu = [], torch.Tensor.cpu
    batches = [(on(PROBA[i : i + 60]), on(Y[i : i + 60])) for i in range(0, N, 60)]
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "cpu", lambda part: copied.append((part.ndim, part.dtype)) or cpu(part))
        there = RiskController(loss, alpha=0.3).calibrate_batches(batches)
        assert (2, torch.float64) in copied  # few rows, which are hashed on the host
        assert (1, torch.float64) not in copied
    here = on_the_host(loss, alpha=0.3)
    assert there.threshold_ == here.threshold_
    assert there.risk_curve_ == here.risk_curve_


def test_a_budget_too_large_for_64_bits():
    """Costs in tiny units, few misses: the budget has more digits than the losses."""
    loss = orisk.WeightedLoss([1, 1, 1, 1, "0.999999999999999999"], normalize=False)
    y = Y[:24]
    proba = np.eye(K)[y] * 0.5 + 0.1
    there = RiskController(loss, alpha=0.5).calibrate(on(proba), on(y))
    assert there.threshold_ == RiskController(loss, alpha=0.5).calibrate(proba, y).threshold_ == np.inf


def test_a_pickled_calibration_needs_no_device(calibrated):
    pickled = pickle.dumps(calibrated)
    assert b"torch" not in pickled
    copy = pickle.loads(pickled)
    assert copy.predict_set(NEW) == calibrated.predict_set(on(NEW))


def test_labels_of_an_array_that_is_read_only(calibrated):
    labels = Y.copy()
    labels.flags.writeable = False
    assert RiskController(alpha=0.3).calibrate(on(PROBA), labels).threshold_ == calibrated.threshold_


def test_without_triton_the_remedy_is_named(monkeypatch):
    hide_the_kernels(monkeypatch)
    with pytest.raises(
        ValueError, match=r"^proba is on device .*install ordinalrisk\[gpu\], or move it with"
    ):
        RiskController(alpha=0.3).calibrate(on(PROBA), on(Y))


def test_gradients_are_left_out(calibrated):
    proba = on(PROBA).requires_grad_()
    assert RiskController(alpha=0.3).calibrate(proba, on(Y)).threshold_ == calibrated.threshold_
    assert not calibrated.predict_set(proba).lower_index.requires_grad


def test_whole_numbers_become_floats():
    y = Y[:12]
    proba = np.eye(K, dtype=int)[y]
    there = RiskController(alpha=0.3).calibrate(on(proba), on(y))
    assert there.predict_set(on(proba)) == there.predict_set(proba)


def changed(row, column, value):
    proba = PROBA.copy()
    proba[row, column] = value
    return on(proba)


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        (lambda: changed(7, 2, np.nan), r"^proba has a NaN value at row 7, column 2 \(nan\)"),
        (lambda: changed(7, 2, np.inf), r"^proba has an infinite value at row 7, column 2 \(inf\)"),
        (lambda: changed(7, 2, -0.5), r"^proba has a negative value at row 7, column 2 \(-0\.5\)"),
        (lambda: changed(140, 4, 3.0), r"^Row 140 of proba sums to 3\.\d+, not to 1: these look like logits"),
        (lambda: on(PROBA[:0]), r"^proba has no rows; got shape \(0, 5\)"),
        (lambda: on(PROBA[0]), r"^proba must have shape \(n_rows, n_classes\).*got shape \(5,\)"),
        (lambda: on(PROBA[:, :1]), r"^proba needs at least 2 columns.*got shape \(150, 1\)"),
        (lambda: on(PROBA[:, :4]), r"^proba has 4 columns, but the calibration had 5 classes"),
        (lambda: on(PROBA).to(torch.complex64), r"^proba must hold numbers.*complex64"),
        (lambda: on(PROBA).to(torch.float8_e4m3fn), r"^proba must hold numbers of 16, 32 or 64 bits.*float8"),
    ],
)
def test_bad_rows_have_the_errors_of_the_host(calibrated, proba, message):
    with pytest.raises(ValueError, match=message):
        calibrated.predict_set(proba())


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (lambda: on(np.where(np.arange(N) == 9, 5, Y)), r"^y\[9\] is 5, which is not one of the classes"),
        (
            lambda: on(np.where(np.arange(N) == 9, 1.5, Y)),
            r"^y\[9\] is 1\.5, which is not one of the classes",
        ),
        (lambda: on(np.where(np.arange(N) == 9, np.nan, Y)), r"^y\[9\] is nan, which is not one of the"),
        (lambda: on(Y[:-1]), r"^y must have one label for each of the 150 rows of proba; got shape \(149,\)"),
    ],
)
def test_bad_labels_have_the_errors_of_the_host(y, message):
    with pytest.raises(ValueError, match=message):
        RiskController(alpha=0.3).calibrate(on(PROBA), y())


def test_online_sets_are_where_the_rows_are_and_settle_on_the_host():
    here, there = (orisk.OnlineRiskController(alpha=0.3, rate=0.1) for _ in range(2))
    for proba, y in ((PROBA, Y), (NEW, Y_NEW)):
        sets = there.predict_set(on(proba))
        assert sets.lower_index.device.type == DEVICE
        assert sets == here.predict_set(proba)
        assert b"torch" not in pickle.dumps(there)
        first = there.n_rows_ - N
        there.update(on(y), on(np.arange(first, first + N)))
        assert there.threshold_ == here.update(y).threshold_
    assert there.replay(on(NEW), on(Y_NEW)) == here.replay(NEW, Y_NEW)


def test_labels_on_the_device_need_rows_there():
    with pytest.raises(ValueError, match=r"^y is on device .*, but proba is not; move it with y\.cpu"):
        RiskController(alpha=0.3).calibrate(PROBA, on(Y))


def test_names_can_not_be_numbers_on_the_device():
    with pytest.raises(ValueError, match=r"^y\[0\] is \d, which is not one of the classes \['none'"):
        RiskController(alpha=0.3, classes=NAMES).calibrate(on(PROBA), on(Y))


def test_other_devices_are_named(monkeypatch):
    with pytest.raises(ValueError, match=r"^proba is on device meta; move it with proba\.cpu\(\) first\.$"):
        RiskController(alpha=0.3).calibrate(torch.empty(N, K, device="meta"), Y)


@pytest.mark.skipif(not HAS_GPU, reason="what is copied from a GPU can be seen where there is one")
def test_only_the_fingerprint_copies_rows_to_the_host(monkeypatch):
    """All else is single numbers: the first bad row, a count, the threshold."""
    largest = []
    fingerprint_instead(monkeypatch, PROBA, Y)
    for name in ("cpu", "numpy", "tolist", "item", "to"):
        method = getattr(torch.Tensor, name)

        def seen(tensor, *args, method=method, name=name, **kwargs):
            result = method(tensor, *args, **kwargs)
            moved = name != "to" or (tensor.device.type == "cuda" and result.device.type == "cpu")
            largest.append(tensor.numel() if moved else 0)
            return result

        monkeypatch.setattr(torch.Tensor, name, seen)
    controller = RiskController(alpha=0.3).calibrate(on(PROBA), on(Y))
    controller.predict_set(on(NEW))
    controller.predict_set(on(NEW), alpha=0.2)
    assert max(largest) <= 64


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("scores", ["probabilities", "logits"])
@pytest.mark.parametrize("method", ["auto", "isotonic", "temperature"])
def test_a_map_gives_the_bits_of_the_host(method, scores, dtype):
    def given(proba):
        mixed = (proba + 0.05) / (proba + 0.05).sum(axis=1, keepdims=True)
        return (mixed if scores == "probabilities" else np.log(mixed) - 1).astype(str(dtype)[6:])

    fitted = orisk.Recalibrator(method, classes=NAMES, scores=scores)
    fitted.fit(given(rows(2)[0]), np.array(NAMES)[rows(2)[1]])
    here = RiskController(alpha=0.2, recalibration=fitted).calibrate(given(PROBA), np.array(NAMES)[Y])
    there = RiskController(alpha=0.2, recalibration=fitted.recalibration_, classes=NAMES)
    there.calibrate(torch.tensor(given(PROBA), device=DEVICE), np.array(NAMES)[Y])
    assert there.threshold_ == here.threshold_
    assert there.data_blake3_ == here.data_blake3_
    sets, same = (there.predict_set(torch.tensor(given(NEW), device=DEVICE)), here.predict_set(given(NEW)))
    assert sets.lower_index.device.type == DEVICE
    assert sets.lower_index.tolist() == same.lower_index.tolist()
    assert sets.upper_index.tolist() == same.upper_index.tolist()
