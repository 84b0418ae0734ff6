"""Saved calibrations: the same predictions bit for bit, and a file that is whole or not there."""

import hashlib
import json
import math
import os
import stat
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rows_in_parts import calibrate_in_parts
from sizes import search_few_steps
from unchecked import FEW, UNCHECKED

import ordinalrisk as orisk
from ordinalrisk import CostTableLoss, DivergenceLoss, RiskController, WeightedLoss
from ordinalrisk.curves.windows import NotKnownError

pytestmark = UNCHECKED

K = 4
# Denominators without common factors: the unit of the loss is so small that totals exceed 64 bits.
PRIMES = [10**18 + 9, 10**18 + 3, 10**17 + 3, 10**16 + 61]
LOSSES = [
    WeightedLoss(),
    WeightedLoss([1, 2, 3, 4]),
    WeightedLoss([0.1, 0.3, 0, 0.7]),
    WeightedLoss([Fraction(1, 3), Fraction(2, 7), 1, Decimal("0.25")]),
    WeightedLoss([1, 2, 3, 4], normalize=False),
    WeightedLoss([Fraction(1, prime) + 1 for prime in PRIMES]),
    DivergenceLoss(),
    DivergenceLoss(2, under=2, over=Fraction(1, 3)),
    DivergenceLoss(0.5),
    DivergenceLoss(positions=[18, 30.5, Decimal("65.1"), 100], normalize=False),
    CostTableLoss([[0, 1, 2, 3], [5, 0, 1, 9], [50, 20, 0, 1], [7, 7, 7, 0]]),
    CostTableLoss(
        [[0, 0.1, 0.1, 3], [5, 0, 1, 9], [50, 20, 0, Fraction(1, 3)], [7, 7, 7, 0]], normalize=False
    ),
]
RULES = [
    orisk.PaperGrowth(),
    orisk.PaperGrowth("bayes"),
    orisk.FrontierGrowth(),
    orisk.FrontierGrowth("median"),
    orisk.AdaptiveGrowth(),
    orisk.RankedProbabilityGrowth(),
]
CLASSES = {
    "none given": None,
    "ints": [2, 3, 5, 7],
    "falling": [3, 2, 1, 0],
    "strings": ["none", "mild", "modérée", 'se"vere\n'],
    "floats": [0.1, 0.30000000000000004, 2.5, 1e300],
    "mixed": [0, 0.5, "one", True],
}
SHARES = [Fraction(1, 20), Fraction(1, 3), Fraction(9, 10)]  # of B, as alphas


def calibrated(draw, loss="coverage", growth="frontier", classes=None, alpha=None, n_rows=200, seed=0):
    proba, y = draw(n_rows, K, seed)
    if alpha is None:
        alpha = RiskController(loss=loss).loss.bound(K) / 5
    labels = np.empty(n_rows, object)
    labels[:] = [k if classes is None else classes[k] for k in y.tolist()]
    return RiskController(loss=loss, growth=growth, alpha=alpha, classes=classes).calibrate(proba, labels)


def again(controller, path):
    controller.save(path)
    return RiskController.load(path)


def assert_same(loaded, controller, proba):
    """Everything that a controller answers is the same."""
    assert loaded.threshold_ == controller.threshold_
    assert loaded.risk_curve_ == controller.risk_curve_
    assert loaded.risk_curve_.levels.tobytes() == controller.risk_curve_.levels.tobytes()
    assert loaded.loss == controller.loss
    assert loaded.growth == controller.growth
    assert Fraction(str(loaded.alpha)) == Fraction(str(controller.alpha))
    assert loaded.classes_.tolist() == controller.classes_.tolist()
    assert [type(c) for c in loaded.classes_.tolist()] == [type(c) for c in controller.classes_.tolist()]
    assert loaded.data_blake3_ == controller.data_blake3_
    assert loaded.guarantee() == controller.guarantee()
    assert str(loaded.guarantee()) == str(controller.guarantee())
    assert loaded.predict_set(proba) == controller.predict_set(proba)
    for share in SHARES:
        alpha = share * controller.risk_curve_.bound
        assert loaded.predict_set(proba, alpha=alpha) == controller.predict_set(proba, alpha=alpha)
        assert loaded.guarantee(alpha) == controller.guarantee(alpha)


# round trips


@pytest.mark.parametrize("growth", RULES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_loaded_calibration_is_the_same_for_every_loss_and_rule(draw, tmp_path, loss, growth):
    controller = calibrated(draw, loss, growth)
    assert_same(again(controller, tmp_path / "file.json"), controller, draw(300, K, seed=1)[0])


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize("loss", [WeightedLoss([1, 2, 3, 4]), DivergenceLoss()], ids=repr)
def test_a_loaded_calibration_is_the_same_for_every_kind_of_class(draw, tmp_path, loss, classes):
    controller = calibrated(draw, loss, classes=classes)
    loaded = again(controller, tmp_path / "file.json")
    assert loaded.classes_.tolist() == (classes or [0, 1, 2, 3])
    assert_same(loaded, controller, draw(300, K, seed=1)[0])


@pytest.mark.parametrize(
    "alpha",
    [
        0.1,
        0.29,
        0.05,
        1e-2,
        Fraction(1, 7),
        Decimal("0.123456789012345678901"),
        "1/3",
        "0.2",
        np.float32(0.1),
    ],
    ids=repr,
)
def test_alpha_keeps_its_digits(draw, tmp_path, alpha):
    controller = calibrated(draw, alpha=alpha)
    loaded = again(controller, tmp_path / "file.json")
    assert loaded.guarantee().alpha == Fraction(str(alpha))
    assert_same(loaded, controller, draw(50, K, seed=1)[0])


def test_a_whole_number_for_alpha_keeps_its_kind(draw, tmp_path):
    controller = calibrated(draw, DivergenceLoss(normalize=False), alpha=1)
    loaded = again(controller, tmp_path / "file.json")
    assert loaded.alpha == 1
    assert type(loaded.alpha) is int


def test_a_threshold_of_plus_infinity_survives(draw, tmp_path):
    controller = calibrated(draw, alpha=0.9)
    assert controller.threshold_ == math.inf
    loaded = again(controller, tmp_path / "file.json")
    assert loaded.threshold_ == math.inf
    assert loaded.guarantee().saturated
    assert_same(loaded, controller, draw(50, K, seed=1)[0])


def test_a_threshold_of_minus_infinity_survives(draw, tmp_path):
    with pytest.warns(UserWarning, match="needs at least 999 calibration rows"):
        controller = calibrated(draw, alpha=0.001)
    loaded = again(controller, tmp_path / "file.json")
    assert loaded.threshold_ == -math.inf
    assert not loaded.guarantee().certified
    assert_same(loaded, controller, draw(50, K, seed=1)[0])


def test_a_negative_threshold_survives(draw, tmp_path):
    controller = calibrated(draw, growth="rps", alpha=0.1)
    assert controller.threshold_ < 0
    assert_same(again(controller, tmp_path / "file.json"), controller, draw(50, K, seed=1)[0])


def test_totals_beyond_64_bits_survive(draw, tmp_path):
    controller = calibrated(draw, WeightedLoss([Fraction(1, prime) + 1 for prime in PRIMES]))
    assert max(controller.risk_curve_.totals.tolist()) > 2**64
    loaded = again(controller, tmp_path / "file.json")
    assert loaded.risk_curve_.totals.tolist() == controller.risk_curve_.totals.tolist()
    assert loaded.risk_curve_.total_loss(math.inf) == controller.risk_curve_.total_loss(math.inf)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_totals_about_64_bits_survive(tmp_path, more):
    """Weights for which the largest total is just below, and just above, the largest 64-bit integer."""
    proba = np.tile([0.97, 0.01, 0.01, 0.01], (40, 1)) + np.arange(40)[:, None] * [-3e-4, 1e-4, 1e-4, 1e-4]
    heavy = 2**63 // 20 + more
    loss = WeightedLoss([1, heavy, heavy, 1], normalize=False)
    controller = RiskController(loss=loss, alpha=Fraction(heavy, 4), growth=orisk.FrontierGrowth("median"))
    controller.calibrate(proba, np.arange(40) % 4)
    loaded = again(controller, tmp_path / "file.json")
    assert loaded.risk_curve_.total_loss(math.inf) == 20 * heavy + 10
    assert_same(loaded, controller, proba)


def test_a_curve_without_steps_survives(tmp_path):
    proba = np.tile([0.7, 0.1, 0.1, 0.1], (30, 1))
    controller = RiskController(alpha=0.1).calibrate(proba, np.zeros(30, int))
    loaded = again(controller, tmp_path / "file.json")
    assert len(loaded.risk_curve_.levels) == 0
    assert_same(loaded, controller, proba)


def test_a_curve_with_one_step_survives(tmp_path):
    proba = np.tile([0.7, 0.1, 0.1, 0.1], (30, 1))
    controller = RiskController(alpha=0.1).calibrate(proba, np.arange(30) % 4)
    assert len(controller.risk_curve_.levels) == 1
    assert_same(again(controller, tmp_path / "file.json"), controller, proba)


def test_given_point_labels_survive(draw, tmp_path):
    proba, y = draw(100, K)
    controller = RiskController(alpha=0.2, growth=orisk.PaperGrowth("given"))
    loaded = again(controller.calibrate(proba, y, point_labels=y), tmp_path / "file.json")
    assert loaded.growth == orisk.PaperGrowth("given")
    assert loaded.predict_set(proba, point_labels=y) == controller.predict_set(proba, point_labels=y)


def test_a_file_saved_twice_is_the_same(draw, tmp_path):
    controller = calibrated(draw, DivergenceLoss(0.5))
    controller.save(tmp_path / "first.json")
    RiskController.load(tmp_path / "first.json").save(tmp_path / "second.json")
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()


def test_a_loaded_controller_can_be_calibrated_anew(draw, tmp_path):
    loaded = again(calibrated(draw, classes=["a", "b", "c", "d"]), tmp_path / "file.json")
    proba, y = draw(80, K, seed=3)
    fresh = RiskController(alpha=loaded.alpha, classes=["a", "b", "c", "d"])
    labels = np.array(["a", "b", "c", "d"])[y]
    assert loaded.calibrate(proba, labels).risk_curve_ == fresh.calibrate(proba, labels).risk_curve_


@pytest.mark.parametrize("as_path", [str, Path], ids=["text", "path"])
def test_a_path_may_be_text(draw, tmp_path, as_path):
    path = as_path(tmp_path / "file.json")
    assert again(calibrated(draw), path).threshold_ == calibrated(draw).threshold_


# what is in the file


@pytest.fixture
def controller(draw):
    return calibrated(draw, DivergenceLoss(2, under=Fraction(1, 3)), alpha=0.05, classes=["a", "b", "c", "d"])


@pytest.fixture
def document(controller, tmp_path):
    controller.save(tmp_path / "file.json")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads((tmp_path / "file.json").read_bytes().decode("ascii"), parse_constant=refuse)


def test_the_file_says_what_it_is(document):
    assert document["format"] == "ordinalrisk calibration"
    assert document["schema_version"] == 8
    assert document["package_version"] == orisk.__version__


def test_the_file_has_the_settings(document):
    assert document["classes"] == ["a", "b", "c", "d"]
    assert document["loss"] == {
        "kind": "divergence",
        "power": 2,
        "positions": None,
        "under": "1/3",
        "over": 1,
        "normalize": True,
    }
    assert document["growth"] == {"name": "frontier", "point": "mode"}
    assert document["alpha"] == 0.05


def test_the_file_has_the_threshold_in_both_notations(document, controller):
    [stratum] = document["strata"]
    assert float.fromhex(stratum["threshold"]["hex"]) == controller.threshold_
    assert float(stratum["threshold"]["decimal"]) == controller.threshold_
    assert stratum["threshold"]["hex"].startswith("0x")


def test_the_file_has_the_curve(document, controller):
    [stratum] = document["strata"]
    curve = stratum["curve"]
    assert stratum["n_rows"] == curve["n_rows"] == Fraction(curve["weight"]) == 200
    assert Fraction(curve["bound"]) == controller.loss.bound(K) == 1
    [window] = curve["windows"]
    assert window["below"] == 0
    assert window["levels"] == controller.risk_curve_.levels.tolist()
    assert window["totals"] == controller.risk_curve_.totals.tolist()
    assert curve["total"] == window["totals"][-1]
    assert Fraction(curve["unit"]) == controller.risk_curve_.unit
    assert curve["most_tied"] == controller.risk_curve_.most_tied


def test_the_file_has_a_digest_of_every_field(document):
    assert set(document) == {*document["digests"], "digests"}
    for field, digest in document["digests"].items():
        canonical = json.dumps(document[field], sort_keys=True, separators=(",", ":"))
        assert digest == hashlib.sha256(canonical.encode()).hexdigest()


def test_the_file_has_the_fingerprint_of_the_data(document, controller):
    assert document["data_blake3"] == controller.data_blake3_
    assert len(bytes.fromhex(document["data_blake3"])) == 32


@pytest.mark.parametrize("alpha", [0.9, 0.001])
@FEW
def test_infinite_thresholds_are_written_as_text(draw, tmp_path, alpha):
    path = tmp_path / "file.json"
    calibrated(draw, alpha=alpha).save(path)
    threshold = json.loads(path.read_text(), parse_constant=pytest.fail)["strata"][0]["threshold"]
    assert threshold == (
        {"hex": "inf", "decimal": "inf"} if alpha == 0.9 else {"hex": "-inf", "decimal": "-inf"}
    )


# the fingerprint of the data


LAYOUTS = {
    "F": np.asfortranarray,
    "strided": lambda p: np.repeat(p, 2, axis=0)[::2],
    "backwards": lambda p: p[::-1].copy()[::-1],
    "pandas": pd.DataFrame,
    "lists": lambda p: p.tolist(),
}


@pytest.mark.parametrize("n_rows", [50, 70_000])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_fingerprint_does_not_depend_on_the_layout(draw, layout, n_rows):
    proba, y = draw(n_rows, 3)
    expected = RiskController(alpha=0.2).calibrate(proba, y).data_blake3_
    assert RiskController(alpha=0.2).calibrate(layout(proba), y).data_blake3_ == expected


def test_the_fingerprint_does_not_depend_on_the_settings(draw):
    proba, y = draw(50, 3)
    controllers = [
        RiskController(alpha=alpha, loss=loss, growth=growth).calibrate(proba, y)
        for alpha, loss, growth in [(0.1, "coverage", "frontier"), (0.3, "divergence", "paper")]
    ]
    assert len({controller.data_blake3_ for controller in controllers}) == 1


def test_the_fingerprint_changes_with_any_value(draw):
    proba, y = draw(50, 3)
    seen = {RiskController(alpha=0.2).calibrate(proba, y).data_blake3_}
    for row, column in [(0, 0), (20, 1), (49, 2)]:
        moved = proba.copy()
        moved[row, column] = np.nextafter(moved[row, column], 1)
        seen.add(RiskController(alpha=0.2).calibrate(moved, y).data_blake3_)
    for row in (0, 49):
        labels = y.copy()
        labels[row] = (labels[row] + 1) % 3
        seen.add(RiskController(alpha=0.2).calibrate(proba, labels).data_blake3_)
    seen.add(RiskController(alpha=0.2).calibrate(proba[:-1], y[:-1]).data_blake3_)
    seen.add(RiskController(alpha=0.2).calibrate(proba[::-1], y[::-1]).data_blake3_)
    assert len(seen) == 8


@pytest.mark.parametrize("row", [10, 69_999])
def test_the_fingerprint_changes_with_one_value_of_a_large_fortran_array(draw, row):
    proba, y = draw(70_000, 3)
    moved = np.asfortranarray(proba)
    moved[row, 1] = np.nextafter(moved[row, 1], 1)
    before = RiskController(alpha=0.2).calibrate(proba, y).data_blake3_
    assert RiskController(alpha=0.2).calibrate(moved, y).data_blake3_ != before


# whole or not at all


def failing_midway(*args, **kwargs):
    raise OSError("no space left on device")


def half_written(path, content):
    with open(path, "wb") as file:
        file.write(content[: len(content) // 2])
    raise OSError("no space left on device")


def interrupted(*args, **kwargs):
    raise KeyboardInterrupt


FAILURES = {
    "replacing": (os, "replace", failing_midway, OSError),
    "flushing": (os, "fsync", failing_midway, OSError),
    "writing": (Path, "write_bytes", half_written, OSError),
    "interrupted": (os, "replace", interrupted, KeyboardInterrupt),
}


@pytest.mark.parametrize(("where", "name", "failure", "error"), FAILURES.values(), ids=FAILURES)
def test_a_failure_while_saving_leaves_everything_as_it_was(
    draw, controller, tmp_path, monkeypatch, where, name, failure, error
):
    path = tmp_path / "file.json"
    calibrated(draw, seed=5).save(path)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(where, name, failure)
        with pytest.raises(error):
            controller.save(path)
        with pytest.raises(error):
            controller.save(tmp_path / "new.json")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["file.json"]
    controller.save(path)
    assert_same(RiskController.load(path), controller, draw(20, K)[0])


def test_saving_leaves_no_other_file_behind(controller, tmp_path):
    controller.save(tmp_path / "file.json")
    controller.save(tmp_path / "file.json")
    assert [file.name for file in tmp_path.iterdir()] == ["file.json"]


def test_saving_into_a_folder_that_is_not_there_is_the_systems_error(controller, tmp_path):
    with pytest.raises(FileNotFoundError):
        controller.save(tmp_path / "nowhere" / "file.json")
    assert list(tmp_path.iterdir()) == []


def test_classes_that_json_cannot_hold_are_an_error_and_nothing_is_written(draw, tmp_path):
    proba, y = draw(50, K)
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"], "datetime64[D]")
    controller = RiskController(alpha=0.2, classes=days).calibrate(proba, days[y])
    with pytest.raises(ValueError, match=r"can't be saved; classes must be strings or numbers"):
        controller.save(tmp_path / "file.json")
    assert list(tmp_path.iterdir()) == []


def test_an_infinite_class_is_saved_as_json_or_not_at_all(draw, tmp_path):
    proba, y = draw(50, K)
    classes = np.array([0.5, 1.0, 2.0, math.inf])
    controller = RiskController(alpha=0.2, classes=classes).calibrate(proba, classes[y])
    path = tmp_path / "file.json"
    try:
        controller.save(path)
    except ValueError as error:
        assert "inf" in str(error)  # noqa: PT017 - either outcome is right
        assert list(tmp_path.iterdir()) == []
    else:
        json.loads(path.read_text(), parse_constant=pytest.fail)
        assert RiskController.load(path).classes_.tolist() == classes.tolist()


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002, 0o027], ids=oct)
def test_permissions_follow_the_umask(controller, tmp_path, umask):
    path = tmp_path / "file.json"
    before = os.umask(umask)
    try:
        controller.save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


# curves that are known in windows


def in_windows(draw, monkeypatch, **options):
    """A controller for rows in parts, with a curve that is only partly known."""
    search_few_steps(monkeypatch)
    proba, y = draw(2_000, K)
    extras = {name: options.pop(name) for name in ("groups", "class_ratios") if name in options}
    controller = RiskController(**{"loss": "divergence", "alpha": 0.05, **options})
    more = [] if isinstance(controller.alpha, dict) else [0.06, Fraction(1, 3)]
    return calibrate_in_parts(controller, proba, y, [10, 900], more_alphas=more, **extras)[0]


WINDOWED = {
    "plain": {},
    "big units": {"loss": LOSSES[5]},
    "classes": {"condition_on": "label"},
    "alpha by class": {"alpha": {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.1}},
    "groups": {"groups": np.repeat(["a", "b"], 1_000)},
    "class ratios": {"class_ratios": [1, 2, 0.5, 1]},
    "randomized": {"randomize": True},
    "high probability": {"loss": "coverage", "delta": 0.1},
    "nothing fits": {"alpha": 0.0001},
}


@FEW
@pytest.mark.parametrize("options", WINDOWED.values(), ids=WINDOWED)
def test_a_curve_in_windows_is_the_same_again(draw, tmp_path, monkeypatch, options):
    controller = in_windows(draw, monkeypatch, **options)
    loaded = again(controller, tmp_path / "file.json")
    strata, same = controller.calibration_.strata, loaded.calibration_.strata
    assert not all(part.curve.is_whole for part in strata.parts)
    for one, other in zip(strata.parts, same.parts, strict=True):
        assert one.curve == other.curve
        assert one.curve.levels.tobytes() == other.curve.levels.tobytes()
        assert one.curve.is_whole == other.curve.is_whole
    assert loaded.thresholds_ == controller.thresholds_
    assert loaded.guarantee() == controller.guarantee()
    assert loaded.calibration_.more_alphas == controller.calibration_.more_alphas
    new = {"random_state": 5} if controller.randomize else {}
    new |= {"groups": options["groups"][:200]} if "groups" in options else {}
    proba, _ = draw(200, K, seed=1)
    for alpha in (None, *controller.calibration_.more_alphas):
        assert loaded.predict_set(proba, alpha=alpha, **new) == controller.predict_set(
            proba, alpha=alpha, **new
        )
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "file.json").read_bytes()


def test_another_alpha_is_not_known_after_loading(draw, tmp_path, monkeypatch):
    loaded = again(in_windows(draw, monkeypatch), tmp_path / "file.json")
    with pytest.raises(
        NotKnownError,
        match=r"near alpha=0\.05 and 0\.06 and 1/3 only, .* calibrate again with 0\.2 in more_alphas",
    ):
        loaded.predict_set(draw(5, K)[0], alpha=0.2)
    assert loaded.threshold_at("1/3") == in_windows(draw, monkeypatch).threshold_at("1/3")


def test_a_whole_curve_found_in_parts_is_saved_as_any_other(draw, tmp_path, monkeypatch):
    """One level only: a window on it is the whole curve, and is read as such."""
    search_few_steps(monkeypatch)
    proba, y = np.tile([0.6, 0.4, 0.0], (1_000, 1)), np.arange(1_000) % 2
    controller = RiskController(alpha=0.2)
    parted, _ = calibrate_in_parts(controller, proba, y, [300])
    loaded = again(parted, tmp_path / "file.json")
    whole = RiskController(alpha=0.2).calibrate(proba, y)
    assert loaded.risk_curve_ == parted.risk_curve_ == whole.risk_curve_
    for threshold in (0.0, 0.4, 0.5, 0.9):
        losses = [each.risk_curve_.total_loss(threshold) for each in (loaded, parted, whole)]
        assert losses[0] == losses[1] == losses[2]


def test_the_file_has_the_windows_and_the_risks_they_are_for(draw, tmp_path, monkeypatch):
    controller = in_windows(draw, monkeypatch, loss="coverage")
    controller.save(tmp_path / "file.json")
    document = json.loads((tmp_path / "file.json").read_text())
    curve, known = document["strata"][0]["curve"], controller.risk_curve_
    assert document["more_alphas"] == ["3/50", "1/3"]
    assert curve["total"] * known.unit == known.total_loss(math.inf)
    assert len(curve["windows"]) == len(known.windows) == 2
    for saved, window in zip(curve["windows"], known.windows, strict=True):
        assert saved == {
            "below": window.below,
            "levels": window.levels.tolist(),
            "totals": window.totals.tolist(),
        }
