"""The kernels in C, in every variant, and numpy in their place: each equals the reference bit for bit."""

import gc
import math
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import threading
import tracemalloc
import warnings
import weakref
from ctypes import byref
from dataclasses import replace
from fractions import Fraction
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from effort import PATIENCE, in_little_memory, wait_until
from guarded_memory import guarded
from hypothesis import given, settings
from strategies import (
    GROWTH_RULES,
    LOSSES,
    PROBABILITIES,
    RULE_NAMES,
    as_rule,
    calibration_sets,
    ends_of,
    for_every_loss_and_rule,
)
from test_cost_table import losses_for, slow_table
from test_sides import assert_as_by_hand
from unchecked import UNCHECKED

import ordinalrisk as orisk
from ordinalrisk.calibration import betting_bound, score_counts
from ordinalrisk.growth.kernels import InvalidRow, arguments, cpu, library, reference, vectorised
from ordinalrisk.inputs.arrays import BFLOAT16, widened
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.selection import coverage_weights

pytestmark = UNCHECKED


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
    """First and last label of each set, as the reference finds them, from levels that are already known."""
    return [end.astype(np.int32) for end in ends_of(levels, threshold)]


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
@for_every_loss_and_rule
@settings(max_examples=5)
@given(data=calibration_sets(max_rows=5, max_classes=60))
def test_compiled_equals_reference(loss, growth, data):
    proba, y = data
    assert_kernels_agree(proba, y, loss(proba.shape[1]), growth)


@pytest.mark.no_cover
@for_every_loss_and_rule
@settings(max_examples=6)
@given(data=calibration_sets())
def test_levels_lie_in_the_range_that_the_rule_states(loss, growth, data):
    proba, _ = data
    K = proba.shape[1]
    levels = growth.levels(proba, loss(K))
    low, high = growth.level_range(CostTable.of(loss(K), K))
    rounding = 1e-4 * (high - low)  # rows need not sum to 1 exactly
    finite = levels[np.isfinite(levels)]
    assert low - rounding <= finite.min()
    assert finite.max() <= high + rounding


@pytest.mark.no_cover
@pytest.mark.parametrize("growth", RULE_NAMES)
def test_compiled_equals_reference_from_given_points(growth):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(7, 0.5), 200)
    y, given_points = rng.integers(0, 7, (2, 200))
    rule = replace(as_rule(growth), point="given")
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
        proba = family(rng, cpu.ROWS_IN_A_TILE + 40, K).astype(dtype)
        y = rng.integers(0, K, len(proba))
        costs = CostTable.of(LOSSES[loss](K), K).gains
        how = (costs, "frontier", "mode")
        assert_same_steps(cpu.steps(proba, y, *how), reference.steps(proba, y, *how))
        levels = reference.levels(proba, *how)
        some = rng.choice(levels[np.isfinite(levels)], 3)
        for threshold in [*some, *np.nextafter(some, np.inf), *(some * (1 + 1e-7)), 0.3 / K, 0.1, 0.6]:
            assert_same_bits(cpu.intervals(proba, *how, float(threshold)), ends(levels, threshold))


def by_quick_test(proba, loss, threshold, variant):
    """One tile of rows by the quick test: both ends, and the rows that are left."""
    run = library.functions_of(variant)
    costs = CostTable.of(loss, proba.shape[1]).gains
    quick = arguments.quick_test_for(proba.dtype, costs, "frontier", "mode", threshold, 1e-5)
    assert quick.at
    lower, upper = np.full((2, cpu.ROWS_IN_A_TILE), -1, np.int32)
    waiting = np.empty(2 * cpu.ROWS_IN_A_TILE, np.int64)
    room = np.empty(run.room_for(proba.shape[1]), np.uint8)
    rows = arguments.rows_of(proba, None, 1e-5)
    places = map(arguments.address, (lower, upper, waiting, room))
    left = run.sets_by_quick_test(byref(rows), byref(quick), 0, *places)
    return lower, upper, waiting[:left].tolist()


every_variant = pytest.mark.parametrize("variant", library.variants())


@pytest.mark.parametrize("K", [2, 10, 16, 17, 33])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("order", "CF")
def test_certainty_is_counted_as_numpy_does(order, dtype, K):
    rng = np.random.default_rng(K)
    proba = rng.dirichlet(np.full(K, 0.3), 40_000).astype(dtype)
    proba[0], proba[1] = np.eye(K)[0], 1 / K
    bins = score_counts.score_bins(proba)
    found = score_counts.score_counts(np.array(proba, order=order))
    assert found.tolist() == np.bincount(bins, minlength=score_counts.N_BINS).tolist()


@every_variant
@pytest.mark.parametrize("K", [4, 16, 23, 150])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("loss", "threshold"),
    [
        (orisk.WeightedLoss(), 0.1),
        (orisk.DivergenceLoss(normalize=False), 0.1),
        (orisk.DivergenceLoss(), math.inf),
    ],
    ids=["gains", "running sums", "single labels"],
)
def test_clear_rows_are_done_by_the_quick_test(loss, threshold, dtype, K, variant):
    rng = np.random.default_rng(7)
    centre = rng.uniform(0, K - 1, (cpu.ROWS_IN_A_TILE + 16, 1))
    proba = orisk.probabilities.softmax(-((np.arange(K) - centre) ** 2)).astype(dtype)
    expected = reference.intervals(
        proba[: cpu.ROWS_IN_A_TILE], CostTable.of(loss, K).gains, "frontier", "mode", threshold
    )
    lower, upper, left = by_quick_test(proba, loss, threshold, variant)
    assert len(left) < 3
    done = np.setdiff1d(np.arange(cpu.ROWS_IN_A_TILE), left)
    assert np.array_equal(lower[done], expected[0][done])
    assert np.array_equal(upper[done], expected[1][done])


@every_variant
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
def test_what_is_not_clear_is_left(row, why, variant):
    proba = np.tile(np.float32([0.7, 0.28, 0.01, 0.01]), (cpu.ROWS_IN_A_TILE + 16, 1))
    proba[5] = row
    threshold = 0.5 if why == "two labels for a point" else 0.2
    *_, left = by_quick_test(proba, orisk.WeightedLoss(), threshold, variant)
    assert left == ([5] if why else [])


@every_variant
@pytest.mark.parametrize(
    ("row", "why"),
    [
        ([0.2 * (1 - 2e-7), 0.5, 0.2, 0.1], "a sum from the left at the threshold"),
        ([0.5, 0.3, 0.1, 0.1 * (1 + 2e-7)], "a sum from the right at the threshold"),
        ([0.5, 0.3, 0.1, 0.1 + 1.2e-5], "a sum that is not 1"),
        ([0.5, 0.35, 0.15 + 1e-9, -1e-9], "a negative number"),
        ([0.5, 0.35, 0.15, np.nan], "not a number"),
        ([0.4, 0.35, 0.15, 0.1], ""),
        ([0.5, 0.25, 0.15, 0.1], ""),
    ],
)
def test_running_sums_that_are_not_clear_are_left(row, why, variant):
    proba = np.tile(np.float32([0.7, 0.28, 0.01, 0.01]), (cpu.ROWS_IN_A_TILE + 16, 1))
    proba[5] = row
    *_, left = by_quick_test(proba, orisk.DivergenceLoss(normalize=False), 0.2, variant)
    assert left == ([5] if why else [])


@pytest.mark.parametrize("growth", RULE_NAMES)
@pytest.mark.parametrize("number_type", ["float16", "bfloat16"])
def test_numbers_of_16_bits_are_read_as_they_are(number_type, growth):
    rng = np.random.default_rng(8)
    wide = orisk.probabilities.softmax(rng.normal(0, 2, (20_000, 7)))
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
def test_the_layout_does_not_matter(growth, dtype):
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


@pytest.mark.parametrize("loss", [orisk.DivergenceLoss(), orisk.WeightedLoss()], ids=repr)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 40_000, 100_003])
def test_tiles_and_blocks_of_any_size(n, loss, monkeypatch):
    """Many threads give the rows of one, whatever is left over in the last tile."""
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(5), n)
    y = rng.integers(0, 5, n)
    costs = CostTable.of(loss, 5).gains
    monkeypatch.setattr(cpu, "N_THREADS", 1)
    one = cpu.intervals(proba, costs, "frontier", "mode", 0.1), cpu.steps(proba, y, costs, "frontier", "mode")
    monkeypatch.setattr(cpu, "N_THREADS", 7)
    many = (
        cpu.intervals(proba, costs, "frontier", "mode", 0.1),
        cpu.steps(proba, y, costs, "frontier", "mode"),
    )
    assert_same_bits(one[0], many[0])
    assert_same_steps(one[1], many[1])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 100_003])
def test_every_row_may_have_a_step(n, dtype, monkeypatch):
    """Blocks, and the pieces that 16-bit rows are copied in, write side by side and then move together."""
    monkeypatch.setattr(cpu, "N_THREADS", 3)
    proba = np.eye(5, dtype=dtype)[np.arange(n) % 4] * dtype(0.5)
    proba[:, 4] = 0.5
    costs = CostTable.of(orisk.WeightedLoss([1, 2, 3, 4, 9]), 5).gains
    y = np.arange(n) % 4
    at, before, after = cpu.steps(proba, y, costs, "frontier", "mode")
    assert_same_steps((at, before, after), vectorised.steps(proba, y, costs, "frontier", "mode"))
    assert len(at) == n


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
def test_the_quick_test_finds_an_invalid_row(dtype, last):
    """Among rows that are clear, in prediction and in calibration; the row's label is its point label."""
    proba = np.tile(np.array([0.7, 0.2, 0.06, 0.04], dtype), (3 * cpu.ROWS_IN_A_TILE, 1))
    proba[20] = [0.7, 0.25, 0.05, last]
    how = (CostTable.of(orisk.WeightedLoss(), 4).gains, "frontier", "mode")
    for kernel, first, rest in (
        (cpu.intervals, (), (0.1,)),
        (cpu.steps, (np.zeros(len(proba), np.int64),), ()),
    ):
        with pytest.raises(InvalidRow) as found:
            kernel(proba, *first, *how, *rest)
        assert found.value.args == (20,)


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
    monkeypatch.setattr(cpu, "N_THREADS", 3)
    proba = np.random.default_rng(9).dirichlet(np.ones(5), 60_000)
    expected = cpu.intervals(proba, CostTable.of(orisk.WeightedLoss(), 5).gains, "frontier", "mode", 0.1)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_predict_in_child, args=(proba, expected, sender))
    child.start()
    answered = receiver.poll(PATIENCE)
    child.kill()
    child.join()
    assert answered
    assert receiver.recv()


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
        proba = (10.0 ** rng.uniform(lowest, -3, (cpu.ROWS_IN_A_TILE + 40, 6))).astype(dtype)
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
    curve = orisk.RiskController(loss, alpha=alpha, check=False).calibrate(proba, y).risk_curve_
    assert curve.total_loss(np.inf) == 200 * Fraction(weights[2])


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
    orisk.RiskController(alpha=0.1).calibrate(proba, y)  # what a check imports is no memory of the rows
    with in_little_memory(proba.nbytes):
        orisk.RiskController(alpha=0.1).calibrate(proba, y)


def test_a_minus_zero_is_a_zero():
    proba = np.array([[0.25, -0.0, 0.75], [-0.0, 1.0, -0.0]])
    for growth in GROWTH_RULES:
        assert_kernels_agree(proba, np.array([0, 2]), orisk.WeightedLoss([1, 2, 3]), growth)


def test_prediction_needs_memory_for_its_result_only():
    """O(n) and not O(nK): a fortieth of the scores, and no copy of them whatever their layout."""
    proba = np.asfortranarray(np.full((200_000, 40), 1 / 40, np.float32))
    controller = orisk.RiskController(alpha=0.2, check=False).calibrate(proba[:100], np.arange(100) % 40)
    controller.predict_set(proba)
    assert 16 * len(proba) < proba.nbytes / 8
    with in_little_memory(16 * len(proba)):
        controller.predict_set(proba)


@pytest.mark.parametrize("growth", RULE_NAMES)
def test_prediction_takes_ten_bytes_a_row_at_most(growth):
    proba = np.random.default_rng(0).dirichlet(np.ones(10), 300_000).astype(np.float32)
    controller = orisk.RiskController(alpha=0.2, growth=growth).calibrate(proba[:100], np.arange(100) % 10)
    with in_little_memory(10 * len(proba)):
        controller.predict_set(proba)


def test_each_growth_rule_has_a_kernel():
    assert reference.RULES.keys() == {*RULE_NAMES}


# threads: a call that is interrupted, that fails, or that gets none


N_IN_THREADS, K_IN_THREADS = 40_000, 5
COSTS = CostTable.of(orisk.WeightedLoss(), K_IN_THREADS).gains
HOW = COSTS, "frontier", "mode"

c_kernels = pytest.mark.skipif(library.functions() is None, reason="numpy needs no threads")


def scores():
    return np.full((N_IN_THREADS, K_IN_THREADS), 1 / K_IN_THREADS)


def zeros():
    return np.zeros(N_IN_THREADS, np.int64)


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(cpu, "N_THREADS", 2)


@pytest.fixture
def interrupted(monkeypatch, two_threads):
    """Calls are interrupted while another thread is in a kernel, and stays there."""
    real, inside, go_on = library.functions(), threading.Event(), threading.Event()

    def lingering(kernel):
        def run(*arguments):
            if threading.current_thread() is not threading.main_thread():
                inside.set()
                go_on.wait(PATIENCE)
            return kernel(*arguments)

        return run

    def interrupt(others):
        assert inside.wait(PATIENCE)
        waiting_for.extend(others)
        raise KeyboardInterrupt

    waiting_for = []
    slow = {name: lingering(kernel) for name, kernel in vars(real).items()}
    monkeypatch.setattr(cpu, "functions", lambda: SimpleNamespace(**slow | {"room_for": real.room_for}))
    monkeypatch.setattr(cpu, "wait", interrupt)
    yield
    go_on.set()
    wait_until(lambda: all(task.done() for task in waiting_for))


@c_kernels
@pytest.mark.parametrize(
    ("call", "numbers_of_a_row"),
    [
        (lambda: cpu.point_labels(scores(), COSTS, "given", zeros()), K_IN_THREADS + 2),
        (lambda: cpu.levels(scores(), *HOW), 2 * K_IN_THREADS),
        (lambda: cpu.intervals(scores(), COSTS, "frontier", "given", 0.1, zeros()), K_IN_THREADS + 2),
        (lambda: cpu.steps(scores(), zeros(), *HOW), K_IN_THREADS + 1),
        (lambda: cpu.side_by_side([np.zeros(N_IN_THREADS) for _ in range(K_IN_THREADS)]), 2 * K_IN_THREADS),
    ],
    ids=["point_labels", "levels", "intervals", "steps", "side_by_side"],
)
def test_what_a_thread_still_reads_and_writes_outlives_an_interrupted_call(
    interrupted, call, numbers_of_a_row
):
    tracemalloc.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held >= 8 * N_IN_THREADS * numbers_of_a_row


@c_kernels
def test_an_invalid_row_does_not_keep_the_scores_in_memory(two_threads):
    """Without the collector of cycles: the scores may be most of the memory that there is."""
    proba = scores()
    proba[-1] = np.nan
    known = weakref.ref(proba)
    gc.disable()
    try:
        with pytest.raises(InvalidRow):
            cpu.intervals(proba, *HOW, 0.1)
        del proba
        wait_until(lambda: known() is None)
    finally:
        gc.enable()


@c_kernels
@pytest.mark.parametrize("n_that_start", [0, 1, 3])
def test_where_the_system_starts_few_threads_the_others_do_the_work(monkeypatch, n_that_start):
    started = []

    def start(thread):
        if len(started) == n_that_start:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        really_start(thread)

    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(K_IN_THREADS), 100_000)
    monkeypatch.setattr(cpu, "N_THREADS", 1)
    expected = cpu.intervals(proba, *HOW, 0.1)
    really_start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(cpu, "N_THREADS", 6)
    cpu._tasks_of_threads.cache_clear()
    for _ in range(2):
        for found, end in zip(cpu.intervals(proba, *HOW, 0.1), expected, strict=True):
            np.testing.assert_array_equal(found, end)
        assert len(started) == n_that_start
    cpu._tasks_of_threads.cache_clear()


@pytest.mark.parametrize(("wanted", "count"), [("1", 1), (" 12 ", 12), ("4096", 4096)])
def test_the_number_of_threads_is_what_was_set(monkeypatch, wanted, count):
    monkeypatch.setenv("ORDINALRISK_NUM_THREADS", wanted)
    assert cpu._threads_wanted() == count


@pytest.mark.parametrize("unset", [None, ""])
def test_without_a_number_there_is_a_thread_for_each_core(monkeypatch, unset):
    monkeypatch.delenv("ORDINALRISK_NUM_THREADS", raising=False)
    if unset is not None:
        monkeypatch.setenv("ORDINALRISK_NUM_THREADS", unset)
    assert 1 <= cpu._threads_wanted() <= os.cpu_count()


@pytest.mark.parametrize("wanted", ["0", "-3", "2.5", "1e3", "all", "4097"])
def test_what_is_no_number_of_threads_is_refused(monkeypatch, wanted):
    monkeypatch.setenv("ORDINALRISK_NUM_THREADS", wanted)
    message = (
        f"ORDINALRISK_NUM_THREADS='{wanted}' is not a number of threads; set it to a whole number from 1 to"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        cpu._threads_wanted()


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


# what the kernels read of a loss


@pytest.mark.parametrize("K", [2, 3, 8])
def test_gains_are_differences_of_exact_costs_each_rounded_once(K):
    for loss in losses_for(K):
        table, gains = slow_table(loss, K), CostTable.of(loss, K).gains
        left, right = np.zeros((K, K)), np.zeros((K, K))
        for j in range(K):
            for i in range(j + 1) if j < K - 1 else ():
                left[j, i] = float(table[i][j + 1] - table[i][j])
            for i in range(j, K) if j > 0 else ():
                right[j, i] = float(table[i][j - 1] - table[i][j])
        assert gains.left.tobytes() == left.tobytes()
        assert gains.right.tobytes() == right.tobytes()
        assert gains.rank.tolist() == [[sorted(set(row)).index(cost) for cost in row] for row in table]
        misses = [{cost for k, cost in enumerate(row) if k != y} for y, row in enumerate(table)]
        assert gains.weighted == all(len(costs) == 1 for costs in misses)
        weights = [float(*costs) for costs in misses] if gains.weighted else [1.0] * K
        assert gains.mode_weights.tolist() == weights


def test_gains_of_weights_that_are_tried_are_those_of_the_loss():
    weights = [0.5, 0.0, 3.25, 7.0]
    exact = CostTable.of(orisk.WeightedLoss(weights, normalize=False), 4).gains
    for name, value in coverage_weights._gains(weights)._asdict().items():
        if name != "rank":  # of a class without weight all costs are equal, which levels do not ask
            np.testing.assert_array_equal(value, getattr(exact, name), err_msg=name)


# each variant of the C kernels, and numpy in their place


KERNELS = [*library.variants(), "numpy"]


@pytest.fixture(params=KERNELS)
def kernels(request, monkeypatch):
    """Each variant that this machine can run, and the way without any."""
    monkeypatch.setenv(library.FORCED, request.param)
    library.functions.cache_clear()
    yield request.param
    library.functions.cache_clear()


@pytest.mark.no_cover
@for_every_loss_and_rule
@settings(max_examples=2)
@given(data=calibration_sets(max_rows=5, max_classes=60))
def test_numpy_equals_the_reference(loss, growth, data):
    proba, y = data
    assert_kernels_agree(proba, y, loss(proba.shape[1]), growth, backend=vectorised)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_every_variant_equals_the_reference(kernels, rule, dtype):
    """Whole vectors of rows and what is left of them, of narrow and wide scales, with ties and denormals."""
    rng = np.random.default_rng(0)
    for turn, K in enumerate((2, 3, 7, 8, 17)):
        family, loss = PROBABILITIES[turn + 2], list(LOSSES.values())[2 * turn % len(LOSSES)]
        for n in (1, 41):
            proba = family(rng, n, K).astype(dtype)
            assert_kernels_agree(proba, rng.integers(0, K, n), loss(K), as_rule(rule))


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_every_variant_has_the_thresholds_of_one_side_and_of_another_loss(kernels, rule):
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        rows = rng.dirichlet(np.ones(7), 41).astype(dtype), rng.integers(0, 7, 41)
        for name in ("coverage", "weighted", "divergence", "table"):
            for side, grown_by in (("upper", None), ("lower", "coverage"), (None, "divergence")):
                assert_as_by_hand(LOSSES[name](7), side, grown_by, rule, rows, Fraction(1, 5))


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 300])
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_every_variant_does_any_number_of_rows(kernels, rule, n):
    rng = np.random.default_rng(n)
    K = 6
    proba, y, points = rng.dirichlet(np.ones(K), n), rng.integers(0, K, n), rng.integers(0, K, n)
    costs = CostTable.of(orisk.DivergenceLoss(), K).gains
    for point, given_points in (("bayes", None), ("given", points)):
        how = costs, rule, point
        if n:
            assert_kernels_agree(
                proba, y, orisk.DivergenceLoss(), replace(as_rule(rule), point=point), given_points
            )
        else:
            assert [len(part) for part in cpu.intervals(proba, *how, 0.1, given_points)] == [0, 0]
            assert [len(part) for part in cpu.steps(proba, y, *how, given_points)] == [0, 0, 0]
            assert cpu.levels(proba, *how, given_points).shape == (0, K)
            assert cpu.point_labels(proba, costs, point, given_points).shape == (0,)


@cache
def of_many_classes(loss, rule):
    """Rows of a long scale, and what the reference has for them."""
    rng = np.random.default_rng(1)
    K = 1_003
    proba, y = orisk.probabilities.softmax(rng.normal(0, 3, (2, K))), rng.integers(0, K, 2)
    how = CostTable.of(LOSSES[loss](K), K).gains, rule, "mode"
    levels = reference.levels(proba, *how)
    return proba, y, how, levels, reference.steps(proba, y, *how)


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_every_variant_does_many_classes(kernels, rule):
    for loss in ("coverage", "divergence"):
        proba, y, how, levels, steps = of_many_classes(loss, rule)
        assert_same_bits([cpu.levels(proba, *how)], [levels])
        assert_same_steps(cpu.steps(proba, y, *how), steps)
        threshold = float(np.quantile(levels, 0.5))
        assert_same_bits(cpu.intervals(proba, *how, threshold), ends(levels, threshold))


def _float16(proba):
    return proba.astype(np.float16)


def _bfloat16(proba):
    return (proba.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(BFLOAT16)


def _spread(proba):
    wide = np.zeros((2 * len(proba), 2 * proba.shape[1]))
    wide[::2, ::2] = proba
    return wide[::2, ::2]


def _unaligned(proba):
    bytes_ = np.zeros(proba.nbytes + 1, np.uint8)
    shifted = bytes_[1:].view(proba.dtype).reshape(proba.shape)
    shifted[...] = proba
    return shifted


def _read_only(proba):
    proba = proba.copy()
    proba.setflags(write=False)
    return proba


LAYOUTS = [
    *(np.asfortranarray, lambda proba: proba[::-1], lambda proba: proba[:, ::-1]),
    *(_spread, _unaligned, _read_only, _float16, _bfloat16),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_variant_reads_any_layout(kernels, layout):
    rng = np.random.default_rng(2)
    proba = layout(rng.dirichlet(np.ones(5), 70))
    plain = np.ascontiguousarray(widened(proba))
    y, points = (_unaligned(rng.integers(0, 5, 70)) for _ in range(2))
    for rule in RULE_NAMES:
        for point, given_points in (("mode", None), ("given", points)):
            how = CostTable.of(orisk.DivergenceLoss(), 5).gains, rule, point
            assert_same_bits(
                cpu.intervals(proba, *how, 0.1, given_points),
                reference.intervals(plain, *how, 0.1, given_points),
            )
            assert_same_steps(
                cpu.steps(proba, y, *how, given_points), reference.steps(plain, y, *how, given_points)
            )


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1e-9, 1e-3])
def test_every_variant_finds_the_first_invalid_row(kernels, wrong):
    costs = CostTable.of(orisk.WeightedLoss(), 4).gains
    for bad in (0, 64, 39_999):
        proba = np.full((40_000, 4), 0.25)
        proba[bad:, 2:] = wrong, 0.5
        for rule in RULE_NAMES:
            for kernel, rest in (
                (cpu.intervals, (costs, rule, "mode", 0.1)),
                (cpu.steps, (np.zeros(len(proba), np.int64), costs, rule, "mode")),
                (cpu.levels, (costs, rule, "mode")),
                (cpu.point_labels, (costs, "mode")),
            ):
                with pytest.raises(InvalidRow) as found:
                    kernel(proba, *rest)
                assert found.value.args == (bad,)


@pytest.mark.skipif(os.name == "nt", reason="pages are protected through the C library")
@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_variant_reads_beside_the_arrays(kernels, dtype, at_end):
    """Scores, labels and tables each end, or begin, at a page that can't be read."""
    rng = np.random.default_rng(3)
    for K in (2, 5, 15, 16, 17, 47, 100):  # 15 and 47: a row ends one lane before a vector does
        for n in (1, 7, 64, 131):
            proba = guarded(rng.dirichlet(np.full(K, 0.5), n).astype(dtype), at_end=at_end)
            y, points = (guarded(rng.integers(0, K, n), at_end=at_end) for _ in range(2))
            for loss in ("coverage", "divergence", "table"):
                gains = CostTable.of(LOSSES[loss](K), K).gains
                costs = gains._replace(
                    **{
                        name: guarded(getattr(gains, name), at_end=at_end)
                        for name in ("left", "right", "mode_weights", "rank")
                    }
                )
                for rule in RULE_NAMES:
                    for point, given_points in (("mode", None), ("given", points)):
                        how = costs, rule, point
                        cpu.levels(proba, *how, given_points)
                        cpu.steps(proba, y, *how, given_points)
                        for threshold in (0.5 / K, 0.3):
                            cpu.intervals(proba, *how, threshold, given_points)


def test_bets_are_the_same_in_every_variant(kernels):
    rng = np.random.default_rng(4)
    delta, outcomes = Fraction(1, 20), []
    for _ in range(200):
        n, alpha = int(rng.integers(1, 400)), Fraction(int(rng.integers(2, 50)), 100)
        losses = np.minimum(rng.random(n) * float(alpha) * rng.uniform(0.1, 2.5), 1.0)
        spread = rng.uniform(0.01, 0.5, betting_bound.BLOCKS)
        risk = betting_bound.as_float(alpha)
        how = risk, betting_bound.with_rounding_margin(delta, n), betting_bound.largest_bet(risk)
        outcomes.append(betting_bound.bets_reach_goal(losses, spread, alpha, delta))
        assert outcomes[-1] == betting_bound._bets_reach_goal_in_python(losses, spread, *how)
    assert {*outcomes} == {False, True}


# which kernels are taken


def in_new_process(code, **environment):
    """The output and the warnings of a new process."""
    there = {name: value for name, value in os.environ.items() if name != library.FORCED} | environment
    done = subprocess.run([sys.executable, "-c", code], env=there, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


PREDICT = """
import numpy as np
import ordinalrisk as orisk
from ordinalrisk.growth.kernels import library
{before}
proba = np.random.default_rng(0).dirichlet(np.ones(5), 300)
for _ in range(2):
    print(orisk.RiskController(alpha=0.1).calibrate(proba, np.arange(300) % 5).threshold_)
"""


def test_where_the_library_is_missing_numpy_serves_with_one_warning():
    expected, silent = in_new_process(PREDICT.format(before=""))
    without = PREDICT.format(before="library.PATH = library.PATH.with_name('missing.so')")
    printed, warned = in_new_process(without)
    assert printed == expected
    assert silent == ""
    assert warned.count("UserWarning") == 1
    assert "missing.so" in warned
    assert "Results are the same, but take" in warned
    assert in_new_process(without, ORDINALRISK_KERNELS="numpy") == (expected, "")


def _cut(folder):
    whole = library.PATH.read_bytes()
    (folder / library.PATH.name).write_bytes(whole[: len(whole) // 2])


def _foreign(folder):
    shutil.copyfile(np._core._multiarray_umath.__file__, folder / library.PATH.name)


def _of_another_version(folder):
    """As where the package was updated while a process ran that had not used its kernels yet."""
    version = f"{orisk.__version__} {library._sources(library.PATH.parent)}".encode()
    whole = library.PATH.read_bytes()
    assert version in whole
    other = b"9" + version[1:]
    (folder / library.PATH.name).write_bytes(whole.replace(version, other))


def _of_other_sources(folder):
    for path in (library.PATH, *library.PATH.parent.glob("*.[ch]")):
        shutil.copy(path, folder)
    with (folder / "rules.c").open("a") as file:
        file.write("/* changed */")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems say it in their own words")
@pytest.mark.skipif(library.functions() is None, reason="there is no library to damage")
@pytest.mark.parametrize(
    ("put", "why"),
    [
        (_cut, "is cut short"),
        (_foreign, "is not the library of this package"),
        (
            _of_another_version,
            f"belongs to version 9{orisk.__version__[1:]}, and this is {orisk.__version__}",
        ),
        (_of_other_sources, "was built from other sources than those in its folder"),
        (lambda folder: (folder / library.PATH.name).write_text("no library"), "file too short"),
        (lambda folder: (folder / library.PATH.name).mkdir(), "directory"),
    ],
    ids=["cut", "foreign", "of another version", "of other sources", "text", "folder"],
)
def test_where_the_library_is_not_the_right_one_numpy_serves_with_one_warning(tmp_path, put, why):
    expected, _ = in_new_process(PREDICT.format(before=""))
    put(tmp_path)
    there = f"library.PATH = type(library.PATH)({str(tmp_path / library.PATH.name)!r})"
    printed, warned = in_new_process(PREDICT.format(before=there))
    assert printed == expected
    assert warned.count("UserWarning") == 1
    assert why in warned


def test_kernels_that_the_machine_has_not_are_refused(monkeypatch):
    monkeypatch.setenv(library.FORCED, "sse9")
    library.functions.cache_clear()
    with pytest.raises(ValueError, match=r"ORDINALRISK_KERNELS='sse9' is not one of \['baseline', "):
        library.functions()
    monkeypatch.setattr(library, "_library", lambda: (_ for _ in ()).throw(OSError("no library")))
    monkeypatch.setenv(library.FORCED, "baseline")
    with pytest.raises(OSError, match="no library"):
        library.functions()
    library.functions.cache_clear()


def test_the_best_kernels_are_taken_without_being_asked(monkeypatch):
    monkeypatch.delenv(library.FORCED, raising=False)
    library.functions.cache_clear()
    with warnings.catch_warnings(action="error"):
        assert library.functions() is library.functions_of(library.variants()[-1])
