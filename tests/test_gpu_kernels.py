"""The GPU kernels equal the plain Python reference bit for bit.

Without a device they run in Triton's interpreter, which computes in the same order with numpy.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from devices import DEVICE, use_wide_blocks
from strategies import GROWTH_RULES, LOSSES, PROBABILITIES, RULE_NAMES, ends_of

import ordinalrisk as orisk
from ordinalrisk.growth.kernels import InvalidRow, gpu, reference
from ordinalrisk.inputs.arrays import SUM_TOLERANCE
from ordinalrisk.losses.cost_table import CostTable

pytestmark = [
    pytest.mark.usefixtures("interpreter"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # numpy's, of infinities in the interpreter
]
TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.fixture
def one_tile(monkeypatch):
    """All rows in one tile."""
    use_wide_blocks(monkeypatch)


@pytest.fixture
def listed(monkeypatch):
    """How many rows were left over by each of the two ways of finding clear intervals, for each call."""
    counts = []
    require_valid = gpu._Job.require_valid

    def recorded(job):
        findings = require_valid(job)
        counts.append((findings.n_listed, findings.n_unclear))
        return findings

    monkeypatch.setattr(gpu._Job, "require_valid", recorded)
    return counts


def gains(loss, K):
    return CostTable.of(LOSSES[loss](K) if isinstance(loss, str) else loss, K).gains


def rows_of_every_kind(K, each=5, number_type=torch.float64, seed=0):
    """Probabilities as a tensor, and exactly the same numbers in float64 for the reference."""
    rng = np.random.default_rng((K, seed))
    proba = torch.tensor(np.concatenate([draw(rng, each, K) for draw in PROBABILITIES])).to(number_type)
    off = (proba.double().sum(1) - 1).abs()
    proba = proba[off <= SUM_TOLERANCE[str(number_type).removeprefix("torch.")]]
    return proba.to(DEVICE), proba.double().numpy()


def assert_same_bits(here, there):
    for one, other in zip(here, there, strict=True):
        one = one.cpu().numpy()
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def as_multiset(steps):
    return sorted(zip(*(np.asarray(part.cpu()).tolist() for part in steps), strict=True))


def assert_same_intervals(tensor, proba, costs, rule, point, thresholds, given=None):
    on_device = None if given is None else torch.tensor(given, device=DEVICE)
    levels = reference.levels(proba, costs, rule, point, given)
    for threshold in thresholds:
        found = gpu.intervals(tensor, costs, rule, point, float(threshold), on_device)
        assert_same_bits(found, [end.astype(np.int32) for end in ends_of(levels, threshold)])


def assert_all_the_same(tensor, proba, costs, rule, point, given=None):
    """Every function, with thresholds on some level and just above it."""
    assert_same_levels_and_steps(tensor, proba, costs, rule, point, given)
    middle = middle_level(proba, costs, rule, point, given)
    thresholds = [*middle, *np.nextafter(middle, np.inf)]
    assert_same_intervals(tensor, proba, costs, rule, point, thresholds, given)


def assert_same_levels_and_steps(tensor, proba, costs, rule, point, given=None):
    K = proba.shape[1]
    on_device = None if given is None else torch.tensor(given, device=DEVICE)
    y = np.random.default_rng(K).integers(0, K, len(proba))
    how = (costs, rule, point)
    levels = reference.levels(proba, *how, given)
    assert_same_bits([gpu.levels(tensor, *how, on_device)], [levels])
    expected = reference.steps(proba, y, *how, given)
    found = gpu.steps(tensor, torch.tensor(y, device=DEVICE), *how, on_device)
    assert [part.dtype for part in found] == [torch.float64, torch.int32, torch.int32]
    assert as_multiset(found) == as_multiset(map(torch.tensor, expected))


def middle_level(proba, costs, rule, point, given=None):
    """Of the levels that are neither infinite nor zero, the one in the middle, if there is any."""
    levels = reference.levels(proba, costs, rule, point, given)
    some = np.unique(levels[np.isfinite(levels) & (levels != 0)])
    return some[len(some) // 2 :][:1]


@pytest.mark.parametrize("growth", GROWTH_RULES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES)
def test_equal_to_the_reference(loss, growth, one_tile):
    tensor, proba = rows_of_every_kind(4)
    how = (gains(loss, 4), growth.name, growth.point)
    assert_same_levels_and_steps(tensor, proba, *how)
    assert_same_intervals(tensor, proba, *how, middle_level(proba, *how))


@pytest.mark.parametrize("grown_by", ["coverage", "weighted", "divergence", "table"])
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_costs_of_one_side_and_levels_of_another_loss(rule, grown_by, one_tile):
    tensor, proba = rows_of_every_kind(4, each=2)
    for name in ("coverage", "zero weights", "asymmetric"):
        whole = CostTable.of(LOSSES[name](4), 4)
        for costs in (whole, whole.of_side("upper"), whole.of_side("lower")):
            grown = costs.with_levels_of(CostTable.of(LOSSES[grown_by](4), 4)).gains
            assert_same_levels_and_steps(tensor, proba, grown, rule, "mode")


@pytest.mark.parametrize(
    ("loss", "levels"),
    [
        ("coverage", [1 / 8, 1 / 2, np.inf, 3 / 4, 1 / 4]),  # right first, as in Algorithm 1
        ("divergence", [1 / 16, 1 / 4, np.inf, 5 / 32, 1 / 32]),  # left first, as in Algorithm 3
    ],
)
def test_ties_of_the_paper_rule(loss, levels, one_tile):
    """Both neighbours of the label in the middle tie, and then both ends."""
    row = torch.tensor([[1 / 8, 1 / 4, 1 / 4, 1 / 4, 1 / 8]], dtype=torch.float64, device=DEVICE)
    middle = torch.tensor([2], device=DEVICE)
    found = gpu.levels(row, gains(loss, 5), "paper", "given", middle)
    assert found.tolist() == [levels]


@pytest.mark.parametrize("point", ["mode", "bayes", "median"])
@pytest.mark.parametrize("loss", LOSSES)
def test_point_labels(loss, point, one_tile, measured):
    tensor, proba = rows_of_every_kind(6, seed=1)
    costs = gains(loss, 6)
    assert_same_bits([gpu.point_labels(tensor, costs, point)], [reference.point_labels(proba, costs, point)])


@pytest.mark.parametrize("rule", RULE_NAMES)
@pytest.mark.parametrize("loss", ["weighted", "divergence", "table"])
def test_from_given_points(loss, rule, one_tile, measured):
    tensor, proba = rows_of_every_kind(5, seed=2)
    given = np.random.default_rng(2).integers(0, 5, len(proba))
    costs = gains(loss, 5)
    assert_all_the_same(tensor, proba, costs, rule, "given", given)
    points = gpu.point_labels(tensor, costs, "given", torch.tensor(given, device=DEVICE))
    assert_same_bits([points], [given])


@pytest.mark.parametrize("number_type", TYPES, ids=str)
@pytest.mark.parametrize("loss", ["coverage", "asymmetric"])
def test_number_types_are_read_as_they_are(loss, number_type, one_tile):
    tensor, proba = rows_of_every_kind(6, number_type=number_type, seed=3)
    assert len(proba) > 20
    assert_all_the_same(tensor, proba, gains(loss, 6), "frontier", "mode")


def test_float32_denormals_are_kept(one_tile):
    small = np.float32(1e-45) * np.arange(1, 9, dtype=np.float32)
    proba = np.column_stack([small[::-1], np.ones(8, np.float32), small, 3 * small])
    tensor = torch.tensor(proba, device=DEVICE)
    for loss in ("coverage", "divergence"):
        for rule in ("paper", "frontier", "adaptive"):
            assert_all_the_same(tensor, proba.astype(np.float64), gains(loss, 4), rule, "mode")


@pytest.mark.parametrize(
    ("loss", "K", "number_type"),
    [
        ("weighted", 2, torch.float32),
        ("asymmetric", 3, torch.float32),
        ("weighted", 17, torch.float32),
        ("weighted", 40, torch.float64),  # three chunks of a row
        ("asymmetric", 130, torch.float32),
    ],
)
def test_any_number_of_classes(loss, K, number_type, one_tile):
    tensor, proba = rows_of_every_kind(K, each=16, number_type=number_type, seed=4)
    levels = reference.levels(proba, gains(loss, K), "frontier", "mode")
    threshold = np.quantile(levels[(levels > 0) & np.isfinite(levels)], 0.7, method="nearest")
    assert_same_intervals(tensor, proba, gains(loss, K), "frontier", "mode", [threshold, threshold * 1.01])


@pytest.mark.parametrize("rule", ["paper", "frontier", "adaptive"])
def test_many_classes_in_the_exact_kernels(rule, one_tile):
    tensor, proba = rows_of_every_kind(12, each=4, seed=5)
    assert_all_the_same(tensor, proba, gains("positions", 12), rule, "mode")


@pytest.mark.parametrize(
    ("number", "loss", "number_type"),
    [
        (0, "coverage", torch.float32),
        (1, "weighted", torch.float64),
        (2, "zero weights", torch.float32),
        (3, "divergence", torch.float64),
        (4, "asymmetric", torch.float32),
    ],
)
def test_thresholds_on_and_around_levels(number, loss, number_type, one_tile):
    """Distant labels alternate; each occurs with at least two losses."""
    tensor, proba = rows_of_every_kind(5, number_type=number_type, seed=6)
    costs = gains(loss, 5)
    levels = np.unique(reference.levels(proba, costs, "frontier", "mode"))
    some = levels[np.isfinite(levels) & (levels > 1e-3)]
    near = (0, 1e-15, -1e-15, 3e-8, -3e-8, 1e-6, -1e-6, 1e-4)
    around = [some[7 * i % len(some)] * (1 + share) for i, share in enumerate(near)]
    far = [-np.inf, -1.0, 0.0, 5e-324, 1e-31, 1e-29, 0.1, 0.9, 2.0, 1e31, np.inf]
    assert_same_intervals(tensor, proba, costs, "frontier", "mode", [*around, *far[number % 2 :: 2]])


@pytest.mark.parametrize("rule", ["paper", "adaptive", "rps"])
def test_thresholds_of_other_rules(rule, one_tile):
    tensor, proba = rows_of_every_kind(4, seed=7)
    costs = gains("weighted", 4)
    levels = np.unique(reference.levels(proba, costs, rule, "mode"))
    some = levels[np.isfinite(levels)][::12]
    thresholds = [*some, *np.nextafter(some, np.inf), -np.inf, 0.0, np.inf]
    assert_same_intervals(tensor, proba, costs, rule, "mode", thresholds)


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e29, 1e307])
def test_costs_at_the_ends_of_the_float_range(scale, one_tile):
    tensor, proba = rows_of_every_kind(6, seed=8)
    weights = scale * (1 + np.arange(6) % 3) / 3
    costs = gains(orisk.WeightedLoss(weights, normalize=False), 6)
    levels = reference.levels(proba, costs, "frontier", "mode")
    thresholds = np.quantile(levels[np.isfinite(levels)], [0.6, 0.95], method="nearest")
    assert_same_intervals(tensor, proba, costs, "frontier", "mode", thresholds)


def test_a_table_with_one_weight_on_each_side(one_tile):
    """Its gains need one term, but it is no weighted loss: left and right differ."""
    label = np.arange(5)
    table = np.where(label > label[:, None], 3, np.where(label < label[:, None], 1, 0))
    tensor, proba = rows_of_every_kind(5, seed=9)
    costs = gains(orisk.CostTableLoss(table, normalize=False), 5)
    for rule in ("paper", "frontier", "adaptive"):
        assert_all_the_same(tensor, proba, costs, rule, "mode")


def layouts(tensor):
    spread = torch.zeros((2 * len(tensor), 3 * tensor.shape[1]), dtype=tensor.dtype, device=DEVICE)
    spread[::2, ::3] = tensor
    return {
        "fortran": tensor.T.contiguous().T,
        "strided": spread[::2, ::3],
        "shifted": torch.cat([tensor[:1], tensor])[1:],
        "wide": spread[:, ::3].contiguous()[::2],
    }


@pytest.mark.parametrize("layout", ["fortran", "strided", "shifted", "wide"])
@pytest.mark.parametrize("loss", ["coverage", "divergence"])
def test_memory_layout_does_not_matter(loss, layout, one_tile):
    tensor, proba = rows_of_every_kind(6, number_type=torch.float32, seed=10)
    view = layouts(tensor)[layout]
    assert torch.equal(view, tensor)
    assert_all_the_same(view, proba, gains(loss, 6), "frontier", "mode")


@pytest.mark.parametrize(("n", "programs"), [(1, 1), (32, 2), (33, 1), (70, 2)])
def test_tiles_of_any_size(n, programs, monkeypatch):
    """Several tiles for each program, and whatever is left over in the last one."""
    for name, value in (
        ("BLOCK", 32),
        ("MOST_PROGRAMS", programs),
        ("CLEAR_BLOCK", 32),
        ("CLEAR_PROGRAMS", programs),
        ("STEPS_BLOCK", 32),
        ("STEPS_PROGRAMS", programs),
        ("CHEAPEST_BLOCK", 32),
        ("CHEAPEST_PROGRAMS", programs),
    ):
        monkeypatch.setattr(gpu, name, value)
    tensor, proba = rows_of_every_kind(3, each=20, seed=n)
    order = np.random.default_rng(n).permutation(len(proba))[:n]
    tensor, proba = tensor[torch.tensor(order, device=DEVICE)], proba[order]
    assert len(proba) == n
    assert_all_the_same(tensor, proba, gains("coverage", 3), "frontier", "mode")
    assert_all_the_same(tensor, proba, gains("divergence", 3), "adaptive", "mode")


def test_rows_that_are_not_clear_are_left_to_the_exact_kernel(one_tile, listed, measured):
    """And rows with more than one run of large gains are settled without it."""
    proba = np.array(
        [
            [0.05, 0.15, 0.6, 0.15, 0.05],  # clear
            [0.3, 0.02, 0.5, 0.03, 0.15],  # two runs
            [0.1, 0.2, 0.6, 0.05, 0.05],  # a gain of exactly the threshold
            [0.15, 0.05, 0.6, 0.15, 0.05],  # the mean of two gains is the threshold
        ]
    )
    tensor = torch.tensor(proba, device=DEVICE)
    assert_same_intervals(tensor, proba, gains("coverage", 5), "frontier", "mode", [0.1])
    assert listed == [(3, 2)]
    running = gains("divergence", 5)
    on_a_level = reference.levels(proba, running, "frontier", "mode")[1, 0]
    assert_same_intervals(tensor, proba, running, "frontier", "mode", [on_a_level])
    assert 1 <= listed[1][0] < len(proba)


def test_a_nearly_tied_mode_is_left_to_the_exact_kernel(one_tile, listed, measured):
    """In float32 the two scores are equal; in float64 the right one is larger."""
    weights = [1.0, 1.0 + 2**-30, 1.0]
    proba = np.array([[0.4, 0.4, 0.2], [0.2, 0.5, 0.3]], np.float32)
    costs = gains(orisk.WeightedLoss(weights, normalize=False), 3)
    tensor = torch.tensor(proba, device=DEVICE)
    assert_same_intervals(tensor, proba.astype(np.float64), costs, "frontier", "mode", [0.9])
    assert listed == [(1, 1)]


def test_most_rows_are_clear(one_tile, listed):
    """Even if gains above the threshold are far from each other; few rows are left to the exact kernel."""
    rng = np.random.default_rng(11)
    proba = rng.dirichlet(np.full(10, 0.5), 200).astype(np.float32)
    tensor = torch.tensor(proba, device=DEVICE)
    for loss in ("coverage", "weighted", "divergence"):
        assert_same_intervals(
            tensor, proba.astype(np.float64), gains(loss, 10), "frontier", "mode", [0.03, 0.07, 0.3]
        )
    proba = rng.dirichlet(np.full(40, 0.5), 50).astype(np.float32)  # more than one chunk of a row
    tensor = torch.tensor(proba, device=DEVICE)
    assert_same_intervals(
        tensor, proba.astype(np.float64), gains("divergence", 40), "frontier", "mode", [0.003]
    )
    assert max(n_listed for n_listed, _ in listed[:3]) > 50
    assert max(n_unclear for _, n_unclear in listed[:6]) <= 2
    assert all(n_listed == 0 for n_listed, _ in listed[6:])


BAD_VALUES = [np.nan, np.inf, -np.inf, -1e-3, 0.3]


@pytest.mark.parametrize("bad", BAD_VALUES)
def test_the_first_invalid_row_is_found(bad, monkeypatch):
    monkeypatch.setattr(gpu, "BLOCK", 32)
    monkeypatch.setattr(gpu, "CLEAR_BLOCK", 32)
    monkeypatch.setattr(gpu, "STEPS_BLOCK", 32)
    tensor = torch.full((70, 4), 0.25, dtype=torch.float32, device=DEVICE)
    tensor[40, 2] = bad
    tensor[69, 0] = bad
    y = torch.zeros(70, dtype=torch.int64, device=DEVICE)
    calls = [
        lambda: gpu.point_labels(tensor, gains("coverage", 4), "mode"),
        lambda: gpu.levels(tensor, gains("coverage", 4), "adaptive", "median"),
        lambda: gpu.intervals(tensor, gains("coverage", 4), "frontier", "mode", 0.1),
        lambda: gpu.intervals(tensor, gains("divergence", 4), "frontier", "mode", 0.1),
        lambda: gpu.intervals(tensor, gains("coverage", 4), "paper", "mode", 0.1),
        lambda: gpu.steps(tensor, y, gains("coverage", 4), "frontier", "mode"),
        lambda: gpu.steps(tensor, y, gains("divergence", 4), "frontier", "mode"),
    ]
    for call in calls:
        with pytest.raises(InvalidRow) as found:
            call()
        assert found.value.args == (40,)


@pytest.mark.parametrize("number_type", TYPES, ids=str)
def test_sums_may_be_off_by_the_rounding_of_their_type(number_type, one_tile):
    tolerance = SUM_TOLERANCE[str(number_type).removeprefix("torch.")]
    wide = torch.tensor([[0.5, 0.25, 0.25]] * 40, dtype=torch.float64)
    wide[:, 2] += torch.linspace(-2, 2, 40, dtype=torch.float64) * tolerance
    tensor = wide.to(number_type)
    fits = (tensor.double().sum(1) - 1).abs() <= tolerance
    assert 5 < int(fits.sum()) < 35
    for rule, loss in (("frontier", "coverage"), ("frontier", "divergence"), ("paper", "coverage")):
        gpu.intervals(tensor[fits].to(DEVICE), gains(loss, 3), rule, "mode", 0.1)
        y = torch.zeros(len(tensor), dtype=torch.int64, device=DEVICE)
        gpu.steps(tensor[fits].to(DEVICE), y[: int(fits.sum())], gains(loss, 3), rule, "mode")
        for row in torch.where(~fits)[0][[0, -1]].tolist():
            rows = torch.cat([tensor[fits], tensor[row : row + 1]]).to(DEVICE)
            with pytest.raises(InvalidRow) as found:
                gpu.intervals(rows, gains(loss, 3), rule, "mode", 0.1)
            assert found.value.args == (int(fits.sum()),)
            with pytest.raises(InvalidRow) as found:
                gpu.steps(rows, y[: len(rows)], gains(loss, 3), rule, "mode")
            assert found.value.args == (int(fits.sum()),)


def test_the_tolerance_is_not_rounded(one_tile):
    """Off by a hair less than 1e-5 is valid, by a hair more is not; float32 can't tell them from 1e-5."""
    inside, outside = ([[0.5, 0.25, 0.25 + 1e-5 + hair]] for hair in (-1e-13, 1e-13))
    for rule in ("frontier", "paper"):
        gpu.intervals(
            torch.tensor(inside, dtype=torch.float64, device=DEVICE), gains("coverage", 3), rule, "mode", 0.1
        )
        with pytest.raises(InvalidRow):
            gpu.intervals(
                torch.tensor(outside, dtype=torch.float64, device=DEVICE),
                gains("coverage", 3),
                rule,
                "mode",
                0.1,
            )


def test_equal_gains_stay_blocks_of_their_own(one_tile, measured):
    """Three times 0.1, divided by 3, is not 0.1; gains further out rise, so that the row is pooled."""
    proba = np.array([[0.59, 0.1, 0.1, 0.1, 0.05, 0.06], [0.06, 0.05, 0.1, 0.1, 0.1, 0.59]])
    tensor = torch.tensor(proba, device=DEVICE)
    for rule in ("frontier", "adaptive"):
        assert_all_the_same(tensor, proba, gains("coverage", 6), rule, "mode")


def test_a_minus_zero_is_a_zero(one_tile):
    proba = np.array([[0.25, -0.0, 0.75], [-0.0, 1.0, -0.0], [-0.0, -0.0, 1.0]])
    tensor = torch.tensor(proba, device=DEVICE)
    for rule in RULE_NAMES:
        assert_all_the_same(tensor, np.abs(proba), gains("weighted", 3), rule, "mode")


def test_no_steps_at_all(measured):
    """Every point label is right, or costs nothing."""
    tensor = torch.eye(4, dtype=torch.float64, device=DEVICE)
    y = torch.arange(4, device=DEVICE)
    for labels, weights in ((y, [1, 1, 1, 1]), (torch.zeros_like(y), [0, 1, 1, 1])):
        costs = gains(orisk.WeightedLoss(weights), 4)
        at, before, after = gpu.steps(tensor, labels, costs, "frontier", "mode")
        assert len(at) == len(before) == len(after) == 0


@pytest.mark.parametrize(
    ("loss", "K", "number_type"),
    [
        ("coverage", 5, torch.float64),
        ("weighted", 5, torch.float16),
        ("zero weights", 6, torch.float32),
        ("weighted", 17, torch.float64),  # two chunks of a row
        ("coverage", 2, torch.bfloat16),
    ],
)
def test_steps_of_rows_with_many_ties(loss, K, number_type, one_tile):
    """Of eight parts that fall on the labels, several are often equal, and there are zeros."""
    rng = np.random.default_rng(K)
    proba = rng.multinomial(8, rng.dirichlet(np.ones(K), 300)) / 8
    y = rng.integers(0, K, 300)
    how = (gains(loss, K), "frontier", "mode")
    found = gpu.steps(
        torch.tensor(proba, device=DEVICE).to(number_type), torch.tensor(y, device=DEVICE), *how
    )
    assert as_multiset(found) == as_multiset(map(torch.tensor, reference.steps(proba, y, *how)))
    assert len(found[0]) > 100


def test_steps_of_falling_gains_are_found_in_one_pass(one_tile, listed, measured):
    proba = np.array(
        [
            [0.1, 0.2, 0.4, 0.2, 0.1],
            [0.1, 0.2, 0.4, 0.1, 0.2],  # rises on the right
            [0.2, 0.1, 0.4, 0.2, 0.1],  # rises on the left
            [0.1, 0.4, 0.4, 0.1, 0.0],  # as much as the mode
            [0.1, 0.1, 0.1, 0.1, 0.6],
        ]
    )
    tensor, costs = torch.tensor(proba, device=DEVICE), gains("coverage", 5)
    for label, n_pooled in ((0, 1), (1, 1), (2, 0), (3, 1), (4, 1)):
        y = np.full(5, label)
        found = gpu.steps(tensor, torch.tensor(y, device=DEVICE), costs, "frontier", "mode")
        expected = reference.steps(proba, y, costs, "frontier", "mode")
        assert as_multiset(found) == as_multiset(map(torch.tensor, expected))
        assert listed.pop() == (n_pooled, 0)


def test_cost_tables_are_uploaded_once():
    costs = gains("divergence", 5)
    device = torch.device(DEVICE)
    first = gpu._tables_on(gpu.SameObject(costs), device)
    assert gpu._tables_on(gpu.SameObject(costs), device) is first
    another = costs._replace(bound=2.0)
    assert gpu._tables_on(gpu.SameObject(another), device) is not first


on_a_device = pytest.mark.skipif(DEVICE == "cpu", reason="too many rows for the interpreter")


@on_a_device
@pytest.mark.parametrize("K", [2, 5, 10, 17, 100])
@pytest.mark.parametrize("number_type", TYPES, ids=str)
@pytest.mark.parametrize("loss", ["coverage", "weighted", "divergence"])
def test_clear_intervals_of_many_rows_equal_the_exact_ones(loss, number_type, K, monkeypatch):
    torch.manual_seed(K)
    centre = torch.rand((300_000, 1), device=DEVICE) * (K - 1)
    one_mode = -((torch.arange(K, device=DEVICE) - centre) ** 2) + 0.05 * torch.randn(
        (300_000, K), device=DEVICE
    )
    for logits in (one_mode, 2 * torch.randn((300_000, K), device=DEVICE)):
        proba = torch.softmax(logits, 1).to(number_type)
        levels = gpu.levels(proba[:1_000], gains(loss, K), "frontier", "mode")
        for share in (0.3, 0.9, 0.99):
            threshold = float(torch.quantile(levels[torch.isfinite(levels)], share))
            how = (gains(loss, K), "frontier", "mode", threshold)
            clear = gpu.intervals(proba, *how)
            with monkeypatch.context() as patch:
                patch.setattr(gpu, "MOST_CLEAR_CLASSES", 0)
                exact = gpu.intervals(proba, *how)
            assert all(torch.equal(*ends) for ends in zip(clear, exact, strict=True))


@on_a_device
@pytest.mark.parametrize("K", [2, 5, 10, 17, 100])
@pytest.mark.parametrize("number_type", TYPES, ids=str)
@pytest.mark.parametrize("loss", ["coverage", "weighted"])
def test_steps_of_many_rows_in_one_pass_equal_the_exact_ones(loss, number_type, K, monkeypatch):
    torch.manual_seed(K)
    logits = 2 * torch.randn((300_000, K), device=DEVICE)
    proba, y = torch.softmax(logits, 1).to(number_type), torch.randint(K, (300_000,), device=DEVICE)
    how = (proba, y, gains(loss, K), "frontier", "mode")
    quick = gpu.steps(*how)
    monkeypatch.setattr(gpu, "_has_one_step", lambda *_: False)
    assert as_multiset(quick) == as_multiset(gpu.steps(*how))


@on_a_device
def test_more_numbers_than_32_bits_can_count():
    n, K = 450_000_000, 10
    proba = torch.full((n, K), 0.1, dtype=torch.float16, device=DEVICE)
    proba[-1_000:] = torch.softmax(3 * torch.randn((1_000, K), device=DEVICE), 1).half()
    for rule in ("frontier", "paper"):
        how = (gains("coverage", K), rule, "mode", 0.15)
        ends = [part[-1_000:] for part in gpu.intervals(proba, *how)]
        assert all(torch.equal(*pair) for pair in zip(ends, gpu.intervals(proba[-1_000:], *how), strict=True))
    proba[-7, 3] = -1
    with pytest.raises(InvalidRow) as found:
        gpu.intervals(proba, gains("coverage", K), "frontier", "mode", 0.15)
    assert found.value.args == (n - 7,)


# no GPU is needed to compile for one

COMPILE = """
import json, re, sys
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from ordinalrisk.growth.kernels import RULE_NUMBERS, gpu_quick_sets, gpu_quick_steps, gpu_levels

def ptx(kernel, types, constants, **options):
    types = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    constants = {name: constants[name] for name, kind in types.items() if kind == "constexpr"}
    source = ASTSource(kernel, types, constexprs=constants)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]

rows = {"proba": "*fp32", "row_stride": "i64", "column_stride": "i32", "n": "i64"}
exact = rows | {
    "found": "*i64", "K": "i32", "n_listed": "*i64", "listed_rows": "*i32", "given": "*i64", "left": "*fp64",
    "right": "*fp64", "mode_weights": "*fp64", "rank": "*i32", "bound": "*fp64", "workspace": "*fp64",
    "points": "*i64", "out": "*fp64", "lower": "*i32", "upper": "*i32", "threshold": "fp64",
    "labels": "*i64", "at": "*fp64", "before": "*i32", "after": "*i32",
}
clear = rows | {
    "weights": "*fp32", "lower": "*i32", "upper": "*i32", "n_unclear": "*i64", "unclear_rows": "*i32",
    "n_rows": "*i64", "rows_left": "*i32", "threshold": "fp64", "margin": "fp64", "gap": "fp64",
    "safe_tolerance": "fp64",
}
how = {"TOLERANCE": 1e-5, "RULE": 1, "POINT": 0, "SHAPE": 0, "WEIGHTED": True, "BLOCK": 32, "LISTED": True}
quick = {
    "K": 10, "CHUNK": 16, "WEIGHTED": True, "EQUAL_WEIGHTS": True, "MODE_MATTERS": True, "IN_ORDER": True,
    "COMPUTED_IN": tl.float32, "BLOCK": 32, "STAGES": 3,
}
exactly = {"num_warps": 1, "num_stages": 1, "enable_fp_fusion": False}
code = {}
for rule in RULE_NUMBERS.values():
    for shape in (0, 2):
        kind = how | {"RULE": rule, "SHAPE": shape, "WEIGHTED": shape == 0}
        code[f"intervals {rule} {shape}"] = ptx(gpu_levels.intervals_kernel, exact, kind, **exactly)
code["steps"] = ptx(gpu_levels.steps_kernel, exact, how, **exactly)
once = exact | {"n_steps": "*i64", "weights": "*fp64"}
del once["K"]
for K, chunk, equal in ((10, 16, True), (10, 16, False), (100, 32, True)):
    kind = how | quick | {"K": K, "CHUNK": chunk, "EQUAL_WEIGHTS": equal, "BLOCK": 128}
    kind["COMPUTED_IN"] = tl.float32 if equal else tl.float64
    kernel = gpu_quick_steps.clear_steps_kernel
    code[f"clear steps {K} {equal}"] = ptx(kernel, once, kind, **exactly | {"num_warps": 4})
code["missed rows"] = ptx(gpu_levels.missed_rows_kernel, exact, how, **exactly)
code["levels"] = ptx(gpu_levels.levels_kernel, exact, how | {"SHAPE": 1, "WEIGHTED": False}, **exactly)
code["points"] = ptx(gpu_levels.point_labels_kernel, exact, how | {"POINT": 1, "SHAPE": 2}, **exactly)
found = {
    name: [len(re.findall(r"fma[.]rn[.]f64", text)), len(re.findall(r"[.]ftz", text)),
           sorted(set(re.findall(r"div[.]\\w+[.]f64", text)))]
    for name, text in code.items()
}
unequal = {"EQUAL_WEIGHTS": False, "MODE_MATTERS": False}
for kind in ({}, unequal, {"WEIGHTED": False}, {"K": 100, "CHUNK": 32}):
    assert ".ftz" not in ptx(gpu_quick_sets.clear_intervals_kernel, clear, quick | kind, num_warps=1)
ptx(gpu_quick_sets.cheapest_intervals_kernel, clear, quick | {"BLOCK": 128}, num_warps=4)
print(json.dumps(found))
"""


def test_kernels_compile_and_nothing_is_fused():
    """Every operation is rounded on its own."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 15
    for name, (fused, flushed, divisions) in found.items():
        assert (fused, flushed) == (0, 0), name
        assert set(divisions) <= {"div.rn.f64"}, name
    assert found["intervals 1 0"][2] == ["div.rn.f64"]  # pooled means
