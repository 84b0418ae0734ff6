"""The compiled kernels equal the plain Python reference bit for bit."""

import math
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import GROWTH_RULES, LOSSES, PROBABILITIES, RULE_NAMES, calibration_sets

import ordinalrisk as orisk
from ordinalrisk.growth.kernels import InvalidRow, compiling, cpu, cpu_glance, cpu_tile, reference
from ordinalrisk.inputs.arrays import BFLOAT16, widened
from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.losses.cost_table import CostTable


def bits(array):
    return np.ascontiguousarray(array).view(np.uint8)


def assert_same_bits(here, there):
    for one, other in zip(here, there, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert np.array_equal(bits(one), bits(other))


def assert_same_steps(here, there):
    """Steps have no order of their own."""
    assert_same_bits(*([part[np.lexsort(steps)] for part in steps] for steps in (here, there)))


def ends(levels, threshold):
    """First and last label of each set, as the reference finds them, without finding the levels anew."""
    inside = levels >= threshold
    lower, upper = inside.argmax(axis=1), inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
    return lower.astype(np.int32), upper.astype(np.int32)


def assert_kernels_agree(proba, y, loss, growth, given_points=None, backend=cpu):
    costs = CostTable.of(loss, proba.shape[1]).gains
    how = (costs, growth.name, growth.point)
    levels = reference.levels(proba, *how, given_points)
    assert_same_bits([backend.levels(proba, *how, given_points)], [levels])
    points = reference.point_labels(proba, costs, growth.point, given_points)
    assert_same_bits([backend.point_labels(proba, costs, growth.point, given_points)], [points])
    assert_same_steps(
        backend.steps(proba, y, *how, given_points), reference.steps(proba, y, *how, given_points)
    )
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
        found = backend.intervals(proba, *how, float(threshold), given_points)
        assert_same_bits(found, ends(levels, threshold))
    some_threshold = float(thresholds[len(some) // 2])
    expected = reference.intervals(proba, *how, some_threshold, given_points)
    assert_same_bits(backend.intervals(proba, *how, some_threshold, given_points), expected)


@pytest.mark.no_cover
@pytest.mark.parametrize("growth", GROWTH_RULES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@settings(max_examples=5)
@given(data=calibration_sets(max_rows=5, max_classes=60))
def test_compiled_equals_reference(loss, growth, data):
    proba, y = data
    assert_kernels_agree(proba, y, loss(proba.shape[1]), growth)


@pytest.mark.no_cover
@pytest.mark.parametrize("growth", RULE_NAMES)
def test_compiled_equals_reference_from_given_points(growth):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(7, 0.5), 200)
    y, given_points = rng.integers(0, 7, (2, 200))
    rule = orisk.growth.rules.GROWTH_RULES[growth]("given")
    for loss in LOSSES.values():
        assert_kernels_agree(proba, y, loss(7), rule, given_points)


# Of the row 1/8, 1/4, 1/4, 1/4, 1/8 that grows from its middle: both neighbours tie, and then both ends.
LEVELS_OF_A_TIED_ROW = {
    "coverage": [1 / 8, 1 / 2, math.inf, 3 / 4, 1 / 4],  # right first, as in Algorithm 1
    "weighted": [1 / 8, 1 / 2, math.inf, 3 / 4, 1 / 4],
    "divergence": [1 / 16, 1 / 4, math.inf, 5 / 32, 1 / 32],  # left first, as in Algorithm 3
    "table": [1 / 4, 1, math.inf, 5 / 8, 1 / 8],
}
TIED_LOSSES = {
    "coverage": orisk.WeightedLoss(),
    "weighted": orisk.CostTableLoss(1 - np.eye(5)),  # a table that is a weighted loss
    "divergence": orisk.DivergenceLoss(),
    "table": orisk.CostTableLoss(np.abs(np.subtract.outer(range(5), range(5))), normalize=False),
}
TIED_ROW = np.array([[1 / 8, 1 / 4, 1 / 4, 1 / 4, 1 / 8]])


@pytest.mark.parametrize("backend", [reference, cpu], ids=lambda module: module.__name__.split(".")[-1])
@pytest.mark.parametrize("loss", TIED_LOSSES)
def test_ties_of_the_paper_rule_go_right_for_weighted_losses_and_left_for_others(loss, backend):
    costs = CostTable.of(TIED_LOSSES[loss], 5).gains
    levels = backend.levels(TIED_ROW, costs, "paper", "given", np.array([2]))
    assert levels.tolist() == [LEVELS_OF_A_TIED_ROW[loss]]


def test_the_point_label_of_a_tie_is_the_leftmost():
    """The paper has argmax and does not name a side; numpy's takes the first."""
    for loss in TIED_LOSSES.values():
        assert orisk.PaperGrowth().levels(TIED_ROW, loss).argmax() == TIED_ROW.argmax() == 1


LOSSES_IN_TILES = ["coverage", "weighted", "zero weights", "divergence"]


@pytest.mark.no_cover
@pytest.mark.parametrize("family", PROBABILITIES)
@pytest.mark.parametrize("loss", LOSSES_IN_TILES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_tiles_equal_the_reference(dtype, loss, family):
    """Many rows at once are done in other ways than a few; each loss and each family meets each scale."""
    rng = np.random.default_rng(5)
    turn = LOSSES_IN_TILES.index(loss) + PROBABILITIES.index(family)
    for K in [(2, 65), (16, 17)][turn % 2]:
        proba = family(rng, cpu.TILE + 40, K).astype(dtype)
        y = rng.integers(0, K, len(proba))
        costs = CostTable.of(LOSSES[loss](K), K).gains
        how = (costs, "frontier", "mode")
        assert_same_steps(cpu.steps(proba, y, *how), reference.steps(proba, y, *how))
        levels = reference.levels(proba, *how)
        some = rng.choice(levels[np.isfinite(levels)], 3)
        for threshold in [*some, *np.nextafter(some, np.inf), *(some * (1 + 1e-7)), 0.3 / K, 0.1, 0.6]:
            assert_same_bits(cpu.intervals(proba, *how, float(threshold)), ends(levels, threshold))


def at_a_glance(proba, loss, threshold):
    """What is done at a glance of one tile of rows: both ends, and the rows that are left."""
    costs = CostTable.of(loss, proba.shape[1]).gains
    glance = cpu_glance.glance_for(proba.dtype, costs, cpu_tile.FRONTIER, cpu_tile.MODE, threshold, 1e-5)
    assert glance.suffices
    lower, upper = np.full((2, cpu.TILE), -1, np.int32)
    waiting = np.empty(2 * cpu.TILE, np.int64)
    left = cpu_glance.runs_at_a_glance(proba, lower, upper, glance, 0, waiting, 0)
    return lower, upper, waiting[:left].tolist()


@pytest.mark.parametrize("K", [4, 16, 23, 150])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_clear_is_done_at_a_glance(dtype, K):
    rng = np.random.default_rng(7)
    centre = rng.uniform(0, K - 1, (cpu.TILE + 16, 1))
    proba = orisk.softmax(-((np.arange(K) - centre) ** 2)).astype(dtype)
    expected = reference.intervals(
        proba[: cpu.TILE], CostTable.of(orisk.WeightedLoss(), K).gains, "frontier", "mode", 0.1
    )
    lower, upper, left = at_a_glance(proba, orisk.WeightedLoss(), 0.1)
    assert len(left) < 3
    done = np.setdiff1d(np.arange(cpu.TILE), left)
    assert np.array_equal(lower[done], expected[0][done])
    assert np.array_equal(upper[done], expected[1][done])


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ([0.4, 0.1, 0.4, 0.1], "two labels for a point"),
        ([0.5, 0.2 * (1 + 2e-7), 0.2, 0.1], "a gain at the threshold"),
        ([0.5, 0.1, 0.3, 0.1], "labels apart"),
        ([0.5, 0.3, 0.1, 0.1 + 1.2e-5], "a sum that is not 1"),
        ([0.5, 0.35, 0.15 + 1e-9, -1e-9], "a negative number"),
        ([0.5, 0.35, 0.15, -0.0], "a minus zero"),
        ([0.5, 0.35, 0.15, np.nan], "not a number"),
        ([0.5, 0.35, 0.15, np.inf], "infinite"),
        ([0.19, 0.19, 0.19, 0.43], ""),
        ([0.5, 0.3, 0.1, 0.1], ""),
    ],
)
def test_what_is_not_clear_is_left(row, why):
    proba = np.tile(np.float32([0.7, 0.28, 0.01, 0.01]), (cpu.TILE + 16, 1))
    proba[5] = row
    threshold = 0.5 if why == "two labels for a point" else 0.2
    *_, left = at_a_glance(proba, orisk.WeightedLoss(), threshold)
    assert left == ([5] if why else [])


@pytest.mark.parametrize("growth", RULE_NAMES)
@pytest.mark.parametrize("number_type", ["float16", "bfloat16"])
def test_numbers_of_16_bits_are_read_as_they_are(number_type, growth):
    rng = np.random.default_rng(8)
    wide = orisk.softmax(rng.normal(0, 2, (20_000, 7)))
    if number_type == "float16":
        proba = wide.astype(np.float16)
    else:
        proba = (wide.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(BFLOAT16)
    y = rng.integers(0, 7, len(proba))
    how = (CostTable.of(orisk.WeightedLoss(), 7).gains, growth, "mode")
    values = widened(proba)
    assert values.dtype == np.float32
    assert abs(values.sum(axis=1) - 1).max() > 1e-5  # so rounding to 16 bits has to be allowed for
    first = slice(0, 300)
    assert_same_bits(cpu.intervals(proba[first], *how, 0.1), reference.intervals(values[first], *how, 0.1))
    assert_same_steps(cpu.steps(proba[first], y[first], *how), reference.steps(values[first], y[first], *how))
    exact = values.astype(np.float64)
    exact /= exact.sum(axis=1, keepdims=True)  # other values, to show that the whole array is gone through
    assert (cpu.intervals(proba, *how, 0.1)[0] != cpu.intervals(exact, *how, 0.1)[0]).mean() < 0.03


@pytest.mark.parametrize(("number_type", "allowed"), [("float16", 1e-3), ("bfloat16", 8e-3)])
def test_the_sum_of_16_bit_numbers_may_be_off_by_their_rounding(number_type, allowed):
    costs = CostTable.of(orisk.WeightedLoss(), 3).gains
    for share, is_valid in ((0.7, True), (1.3, False)):
        row = np.float32([[0.5, 0.25, 0.25 - share * allowed]])
        if number_type == "float16":
            proba = row.astype(np.float16)
        else:
            proba = (row.view(np.uint32) >> 16).astype(np.uint16).view(BFLOAT16)
        off = abs(float(widened(proba).sum()) - 1)
        assert (off <= allowed) == is_valid
        if is_valid:
            cpu.intervals(proba, costs, "frontier", "mode", 0.1)
        else:
            with pytest.raises(InvalidRow):
                cpu.intervals(proba, costs, "frontier", "mode", 0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("growth", RULE_NAMES)
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
        assert_same_steps(
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
    assert_same_bits(one[0], many[0])
    assert_same_steps(one[1], many[1])


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


@pytest.mark.parametrize("last", [-1e-9, np.nan, np.inf, 1e-3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_invalid_row_is_found_at_a_glance(dtype, last):
    """Among rows that are clear, in prediction and in calibration; the row's label is its point label."""
    proba = np.tile(np.array([0.7, 0.2, 0.06, 0.04], dtype), (3 * cpu.TILE, 1))
    proba[70] = [0.7, 0.25, 0.05, last]
    how = (CostTable.of(orisk.WeightedLoss(), 4).gains, "frontier", "mode")
    for kernel, first, rest in (
        (cpu.intervals, (), (0.1,)),
        (cpu.steps, (np.zeros(len(proba), np.int64),), ()),
    ):
        with pytest.raises(InvalidRow) as found:
            kernel(proba, *first, *how, *rest)
        assert found.value.args == (70,)


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


def _predict_in_child(proba, expected, sender):
    costs = CostTable.of(orisk.WeightedLoss(), 5).gains
    lower, upper = cpu.intervals(proba, costs, "frontier", "mode", 0.1)
    sender.send(bool((lower == expected[0]).all() and (upper == expected[1]).all()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(monkeypatch):
    """Threads that stand ready in the parent are missing in the child, which must not wait for them."""
    monkeypatch.setattr(cpu.numba.config, "NUMBA_NUM_THREADS", 3)
    proba = np.random.default_rng(9).dirichlet(np.ones(5), 60_000)
    expected = cpu.intervals(proba, CostTable.of(orisk.WeightedLoss(), 5).gains, "frontier", "mode", 0.1)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_predict_in_child, args=(proba, expected, sender))
    child.start()
    answered = receiver.poll(60)
    child.kill()
    child.join()
    assert answered
    assert receiver.recv()


def test_what_was_compiled_is_kept_by_all_its_sources(monkeypatch, tmp_path):
    """A changed helper must not meet a kernel that was compiled from another version of it."""
    here = Path(compiling.__file__).parents[2]
    copy = tmp_path / "ordinalrisk"
    shutil.copytree(here, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compiling, "__file__", str(copy / "growth" / "kernels" / "compiling.py"))
    digests = set()
    kernels = ("__init__.py", "compiling.py", "vectors.py", "cpu_tile.py", "cpu_glance.py")
    for file in (None, "losses/cost_table.py", *(f"growth/kernels/{name}" for name in kernels)):
        if file:
            (copy / file).write_text((copy / file).read_text() + "# changed\n")
        compiling._sources.cache_clear()
        digests.add(compiling._sources())
    compiling._sources.cache_clear()
    assert len(digests) == 7
    kernel = cpu._compiled(cpu._intervals, np.dtype(np.float64))
    monkeypatch.undo()
    assert kernel.py_func.__qualname__ == f"_intervals-{compiling._sources()}"


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiny_probabilities_under_large_weights(dtype):
    """A probability that vectors take for zero may have the largest gain of its row."""
    rng = np.random.default_rng(10)
    lowest = np.log10(np.finfo(dtype).smallest_subnormal)
    for largest in (0, 5, 25):
        weights = 10.0 ** rng.integers(-12, largest + 1, 6)
        weights[:2] = 10.0**largest, 0.0
        proba = (10.0 ** rng.uniform(lowest, -3, (cpu.TILE + 40, 6))).astype(dtype)
        proba[:, 1] = 1 - proba[:, 2:].sum(axis=1) - proba[:, 0]
        y = rng.integers(0, 6, len(proba))
        loss = orisk.WeightedLoss(weights.tolist(), normalize=False)
        assert_kernels_agree(proba, y, loss, orisk.FrontierGrowth())


@pytest.mark.parametrize(
    ("weights", "alpha"),
    [([1, 1, "1e-340"], "0.1"), (["1e-330"] * 3, "1e-331")],
)
def test_weights_that_round_to_zero_still_cost(weights, alpha):
    proba, y = np.tile([0.6, 0.1, 0.3], (200, 1)), np.full(200, 2)
    loss = orisk.WeightedLoss(weights, normalize=False)
    curve = orisk.RiskController(loss, alpha=alpha).calibrate(proba, y).risk_curve_
    assert curve.total_loss(np.inf) == 200 * as_fraction(weights[2])


def test_a_threshold_near_the_end_of_the_float_range():
    costs = CostTable.of(orisk.WeightedLoss(["1e-40"] * 3, normalize=False), 3).gains
    threshold = 1e-318
    proba = np.zeros((200, 3))
    proba[:, 1] = 1
    proba[:, 0] = threshold / 1e-40 * (1 - 1e-6)  # its gain rounds up to the threshold
    lower, upper = cpu.intervals(proba, costs, "frontier", "mode", threshold)
    assert (set(lower.tolist()), set(upper.tolist())) == ({0}, {1})


def test_a_row_is_valid_wherever_it_stands():
    """A sum at the edge of the tolerance, which depends on the order of its terms."""
    K, u = 1_000, 2.0**-54
    base = np.floor((0.5 + 1e-5) / (K - 1) / (2 * u)) * 2 * u
    row = np.full(K, base + u + 2 * u / 256)
    row[0] = 0.5
    row[-1] += 1 + 1e-5 - 3e-14 - math.fsum(row)
    costs = CostTable.of(orisk.WeightedLoss(), K).gains
    outcomes = set()
    for place in (10, 199):
        proba = np.full((200, K), 1 / K)
        proba[place] = row
        try:
            cpu.intervals(proba, costs, "frontier", "mode", 0.1)
            outcomes.add("valid")
        except InvalidRow:
            outcomes.add("invalid")
    assert len(outcomes) == 1


def test_calibrating_on_16_bits_takes_little_memory():
    """Room for steps is made once for each thread, however many pieces the rows are copied in."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(100), 50_000).astype(np.float16)
    y = rng.integers(0, 100, len(proba))
    orisk.RiskController(alpha=0.1).calibrate(proba[:100], y[:100])
    tracemalloc.start()
    orisk.RiskController(alpha=0.1).calibrate(proba, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < proba.nbytes


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


@pytest.mark.parametrize("growth", RULE_NAMES)
def test_prediction_takes_ten_bytes_a_row_at_most(growth):
    proba = np.random.default_rng(0).dirichlet(np.ones(10), 300_000).astype(np.float32)
    controller = orisk.RiskController(alpha=0.2, growth=growth).calibrate(proba[:100], np.arange(100) % 10)
    tracemalloc.start()
    controller.predict_set(proba)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * len(proba)


def test_kernels_compile_where_nothing_can_be_kept(monkeypatch):
    """numba refuses to cache where no folder can be written; the kernels then compile without."""
    compile_kernel = compiling.njit

    def njit_without_cache(*args, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return compile_kernel(*args, **options)

    monkeypatch.setattr(compiling, "njit", njit_without_cache)
    cpu._compiled.cache_clear()
    columns = [np.array([0.2, 0.1]), np.array([0.8, 0.9])]
    assert cpu.side_by_side(columns).tolist() == [[0.2, 0.8], [0.1, 0.9]]
    assert cpu._compiled(cpu._copy_rows, np.dtype(np.float64)).stats.cache_path is None
    cpu._compiled.cache_clear()


INTERPRETED = """
import numpy as np, test_kernels as t
from ordinalrisk.growth.kernels import cpu
assert not hasattr(cpu.load_tile, "py_func"), "still compiled"
rng = np.random.default_rng(4)
for K, n in [(2, 3), (6, 3), (6, 66)]:
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


# rows in one piece


@pytest.mark.parametrize("n_rows", [1, 7, 40_000])
@pytest.mark.parametrize("number_type", [np.float16, np.float32, np.float64])
def test_columns_side_by_side_are_the_matrix(number_type, n_rows):
    matrix = np.random.default_rng(0).random((n_rows, 5)).astype(number_type)
    columns = [np.ascontiguousarray(matrix[:, k]) for k in range(5)]
    for parts in (columns, [np.repeat(column, 2)[::2] for column in columns]):  # in one piece, and not
        found = cpu.side_by_side(parts)
        assert found.dtype == number_type
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, matrix)


@pytest.mark.parametrize(
    "layout",
    [np.asfortranarray, lambda p: p[::-1], lambda p: p[:, ::-1], lambda p: p[::3, ::2], lambda p: p.T[:4].T],
)
@pytest.mark.parametrize("number_type", [np.float32, np.float64])
def test_rows_of_any_layout_are_copied_as_they_are(layout, number_type):
    proba = layout(np.random.default_rng(0).random((1_000, 7)).astype(number_type))
    copy = cpu._in_row_order(proba)
    assert copy.flags.c_contiguous
    np.testing.assert_array_equal(copy, proba)
