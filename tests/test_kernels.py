"""The compiled kernels equal the plain Python reference bit for bit."""

import os
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import GROWTH_RULES, LOSSES, calibration_sets

import ordinalrisk as orisk
from ordinalrisk.cost_table import CostTable
from ordinalrisk.kernels import InvalidRow, cpu, reference


def bits(array):
    return np.ascontiguousarray(array).view(np.uint8)


def assert_same_bits(here, there):
    for one, other in zip(here, there, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert np.array_equal(bits(one), bits(other))


def assert_kernels_agree(proba, y, loss, growth, given_points=None):
    costs = CostTable.of(loss, proba.shape[1]).gains
    how = (costs, growth.name, growth.point)
    given = cpu.NOT_GIVEN if given_points is None else given_points
    levels = reference.levels(proba, *how, given_points)
    assert_same_bits([cpu.levels(proba, *how, given)], [levels])
    points = reference.point_labels(proba, costs, growth.point, given_points)
    assert_same_bits([cpu.point_labels(proba, costs, growth.point, given)], [points])
    assert_same_bits(cpu.steps(proba, y, *how, given), reference.steps(proba, y, *how, given_points))
    some = np.unique(levels)[:: max(1, levels.size // 25)]
    thresholds = [
        *some,
        *np.nextafter(some, np.inf),
        *(some * (1 + 1e-10)),
        -np.inf,
        0.0,
        5e-324,
        0.1,
        np.inf,
    ]
    for threshold in thresholds:
        assert_same_bits(
            cpu.intervals(proba, *how, float(threshold), given),
            reference.intervals(proba, *how, float(threshold), given_points),
        )


@pytest.mark.parametrize("growth", GROWTH_RULES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@settings(max_examples=10)
@given(data=calibration_sets(max_rows=5, max_classes=60))
def test_compiled_equals_reference(loss, growth, data):
    proba, y = data
    assert_kernels_agree(proba, y, loss(proba.shape[1]), growth)


@pytest.mark.parametrize("growth", ["paper", "frontier", "adaptive", "rps"])
def test_compiled_equals_reference_from_given_points(growth):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(7, 0.5), 200)
    y, given_points = rng.integers(0, 7, (2, 200))
    rule = orisk.growth.GROWTH_RULES[growth]("given")
    for loss in LOSSES.values():
        assert_kernels_agree(proba, y, loss(7), rule, given_points)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("growth", ["paper", "frontier", "adaptive", "rps"])
def test_memory_layout_does_not_matter(growth, dtype):
    rng = np.random.default_rng(1)
    wide = rng.dirichlet(np.ones(6), 300).astype(dtype)
    spread = np.zeros((600, 12), dtype)
    spread[::2, ::2] = wide
    read_only = wide.copy()
    read_only.setflags(write=False)
    layouts = [np.asfortranarray(wide), spread[::2, ::2], wide[::-1].copy()[::-1], read_only]
    costs = CostTable.of(orisk.DivergenceLoss(), 6).gains
    y = rng.integers(0, 6, 300)
    for other in layouts:
        assert_same_bits(
            cpu.intervals(other, costs, growth, "mode", 0.05),
            cpu.intervals(wide, costs, growth, "mode", 0.05),
        )
        assert_same_bits(
            cpu.steps(other, y, costs, growth, "mode"), cpu.steps(wide, y, costs, growth, "mode")
        )


@pytest.mark.parametrize("n", [1, 63, 64, 65, 40_000, 100_003])
def test_tiles_and_blocks_of_any_size(n, monkeypatch):
    """Many threads give the rows of one, whatever is left over in the last tile."""
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(5), n)
    y = rng.integers(0, 5, n)
    costs = CostTable.of(orisk.DivergenceLoss(), 5).gains
    monkeypatch.setattr(cpu.numba.config, "NUMBA_NUM_THREADS", 1)
    one = cpu.intervals(proba, costs, "frontier", "mode", 0.1), cpu.steps(proba, y, costs, "frontier", "mode")
    monkeypatch.setattr(cpu.numba.config, "NUMBA_NUM_THREADS", 7)
    many = (
        cpu.intervals(proba, costs, "frontier", "mode", 0.1),
        cpu.steps(proba, y, costs, "frontier", "mode"),
    )
    for here, there in zip(one, many, strict=True):
        assert_same_bits(here, there)


def test_room_for_steps_is_extended():
    """A scale with many labels has far more steps than rows."""
    n, K = 3_000, 40
    proba = np.zeros((n, K))
    proba[:, 0] = 1.0
    y = np.full(n, K - 1)
    levels = np.linspace(0.5, 0.1, K)
    proba = np.tile(levels / levels.sum(), (n, 1))
    costs = CostTable.of(orisk.DivergenceLoss(), K).gains
    at, before, after = cpu.steps(proba, y, costs, "frontier", "mode")
    assert len(at) == n * (K - 1)
    assert_same_bits([at[: K - 1]], [reference.steps(proba[:1], y[:1], costs, "frontier", "mode")[0]])
    assert (after == before - 1).all()


@pytest.mark.parametrize("bad_row", [0, 64, 20_000, 99_999])
def test_the_first_invalid_row_is_found(bad_row):
    proba = np.full((100_000, 4), 0.25)
    proba[bad_row:, 2] = np.nan
    costs = CostTable.of(orisk.WeightedLoss(), 4).gains
    for kernel, rest in (
        (cpu.intervals, (costs, "frontier", "mode", 0.1)),
        (cpu.steps, (np.zeros(100_000, np.int64), costs, "paper", "mode")),
        (cpu.point_labels, (costs, "mode")),
    ):
        with pytest.raises(InvalidRow) as found:
            kernel(proba, *rest)
        assert found.value.args == (bad_row,)


def test_kernels_run_in_many_threads_at_once():
    rng = np.random.default_rng(3)
    proba = rng.dirichlet(np.ones(5), 50_000)
    costs = CostTable.of(orisk.WeightedLoss(), 5).gains
    expected = cpu.intervals(proba, costs, "adaptive", "mode", 0.1)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(cpu.intervals(proba, costs, "adaptive", "mode", 0.1)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    for result in results:
        assert_same_bits(result, expected)


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e250, 1e307])
def test_costs_at_the_ends_of_the_float_range(scale):
    """Where prices overflow or means round to denormals, rows are pooled and not taken as clear."""
    rng = np.random.default_rng(6)
    proba = rng.dirichlet(np.full(60, 0.3), 50)
    costs = CostTable.of(orisk.WeightedLoss(np.full(60, scale), normalize=False), 60).gains
    levels = reference.levels(proba, costs, "frontier", "mode")
    for threshold in np.quantile(levels[np.isfinite(levels)], [0.2, 0.5, 0.8, 0.95, 1.0]):
        assert_same_bits(
            cpu.intervals(proba, costs, "frontier", "mode", threshold),
            reference.intervals(proba, costs, "frontier", "mode", threshold),
        )


def test_a_minus_zero_is_a_zero():
    proba = np.array([[0.25, -0.0, 0.75], [-0.0, 1.0, -0.0]])
    for growth in GROWTH_RULES:
        assert_kernels_agree(proba, np.array([0, 2]), orisk.WeightedLoss([1, 2, 3]), growth)


def test_prediction_needs_memory_for_its_result_only():
    """O(n) and not O(nK): a fortieth of the scores, and no copy of them whatever their layout."""
    proba = np.asfortranarray(np.full((200_000, 40), 1 / 40, np.float32))
    controller = orisk.RiskController(alpha=0.2).calibrate(proba[:100], np.arange(100) % 40)
    controller.predict_set(proba)
    tracemalloc.start()
    controller.predict_set(proba)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * len(proba) < proba.nbytes / 8


def test_kernels_compile_where_nothing_can_be_kept(monkeypatch):
    """numba refuses to cache where no folder can be written; the kernels then compile without."""
    compile_kernel = cpu.njit

    def njit_without_cache(*args, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return compile_kernel(*args, **options)

    monkeypatch.setattr(cpu, "njit", njit_without_cache)
    cpu._compiled.cache_clear()
    costs = CostTable.of(orisk.WeightedLoss(), 3).gains
    assert cpu.point_labels(np.array([[0.2, 0.5, 0.3]]), costs, "mode").tolist() == [1]
    cpu._compiled.cache_clear()


INTERPRETED = """
import numpy as np, test_kernels as t
from ordinalrisk.kernels import cpu
assert not hasattr(cpu._load, "py_func"), "still compiled"
rng = np.random.default_rng(4)
for K in (2, 6):
    for n in (3, 66):
        proba = rng.dirichlet(np.full(K, 0.5), n)
        y = rng.integers(0, K, n)
        for loss in t.LOSSES.values() if n == 3 else [t.LOSSES["divergence"]]:
            for growth in t.GROWTH_RULES:
                t.assert_kernels_agree(proba, y, loss(K), growth)
t.test_the_first_invalid_row_is_found(64)
"""


def test_interpreted_kernels_agree_too():
    """The same source without the compiler: what it adds is speed, and no rounding of its own."""
    here = os.path.dirname(__file__)
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": here}
    subprocess.run([sys.executable, "-c", INTERPRETED], check=True, env=environment, cwd=here)
