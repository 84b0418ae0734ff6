"""The growth rules in Triton, on tensors that stay where they are.

Every rule mirrors its namesake in :mod:`ordinalrisk.growth.kernels.reference` and gives the same bits:
float64 arithmetic in the reference's order, with nothing fused. Each lane processes one row, each program
tiles of ``BLOCK`` rows. The numbers of a row are in a workspace that stays in the caches, because registers
can't be indexed by a label that differs from lane to lane (:mod:`ordinalrisk.growth.kernels.gpu_levels`).

The frontier's intervals have faster kernels, which read each row once and keep it in registers
(:mod:`ordinalrisk.growth.kernels.gpu_quick_sets`). They settle the rows whose set rounding can't change, and
list the others for the exact kernel. So do those for the steps of a weighted loss
(:mod:`ordinalrisk.growth.kernels.gpu_quick_steps`), with the rows whose gains need no pooling.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl

from ordinalrisk.growth.kernels import POINT_NUMBERS, RULE_NUMBERS, InvalidRow, SameObject
from ordinalrisk.growth.kernels.gpu_levels import (
    N_STEPS,
    Findings,
    intervals_kernel,
    levels_kernel,
    missed_rows_kernel,
    point_labels_kernel,
    steps_kernel,
)
from ordinalrisk.growth.kernels.gpu_quick_sets import (
    LARGEST_SAFE,
    SMALLEST_SAFE,
    cheapest_intervals_kernel,
    clear_intervals_kernel,
)
from ordinalrisk.growth.kernels.gpu_quick_steps import clear_steps_kernel
from ordinalrisk.growth.kernels.gpu_rows import PARTS
from ordinalrisk.inputs.arrays import SUM_TOLERANCE
from ordinalrisk.losses.cost_table import RUNNING, GainTables

BLOCK = 32
"""Rows in a tile of the exact kernels: one warp, so that a pooling row holds up few others."""
MOST_PROGRAMS = 4096
WORKSPACE_BYTES = 1 << 28

CLEAR_BLOCK, CLEAR_STAGES, CLEAR_PROGRAMS = 32, 3, 4224
CHEAPEST_BLOCK, CHEAPEST_PROGRAMS = 128, 2112
STEPS_BLOCK, STEPS_PROGRAMS = 128, 2112
CHUNK_BYTES = 128
"""How much of a row is in registers at a time."""
MOST_CLEAR_CLASSES = 1_000
ROUNDING = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}

Tensor = torch.Tensor


def point_labels(proba: Tensor, costs: GainTables, point: str, given: Tensor | None = None) -> Tensor:
    """The label that each set grows from."""
    job = _Job(proba, costs, "frontier", point, given)
    points = torch.empty(len(proba), dtype=torch.int64, device=proba.device)
    job.launch(point_labels_kernel, points=points)
    job.require_valid()
    return points


def levels(proba: Tensor, costs: GainTables, rule: str, point: str, given: Tensor | None = None) -> Tensor:
    """``e[i, j]``: the largest threshold at which label ``j`` belongs to the set of row ``i``."""
    job = _Job(proba, costs, rule, point, given)
    out = torch.empty(proba.shape, dtype=torch.float64, device=proba.device)
    job.launch(levels_kernel, out=out)
    job.require_valid()
    return out


def intervals(
    proba: Tensor, costs: GainTables, rule: str, point: str, threshold: float, given: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """First and last label of each row's set ``{j : e_j >= threshold}``."""
    job = _Job(proba, costs, rule, point, given)
    ends = {
        name: torch.empty(len(proba), dtype=torch.int32, device=proba.device) for name in ("lower", "upper")
    }
    listed = _can_be_clear(proba, costs, rule, point, threshold)
    if listed:
        job.launch_clear(threshold, **ends)
    job.launch(intervals_kernel, **ends, threshold=threshold, LISTED=listed)
    job.require_valid()
    return ends["lower"], ends["upper"]


def steps(
    proba: Tensor, labels: Tensor, costs: GainTables, rule: str, point: str, given: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Where each row's loss steps up as the threshold rises, and between which entries of the cost table.

    The steps of different rows come in any order. ``labels`` must lie in ``0..K-1``.
    """
    job = _Job(proba, costs, rule, point, given)
    labels = labels.contiguous()
    listed = job.make_list()
    has_one_step = _has_one_step(costs, rule, point)
    if not has_one_step:
        job.launch(missed_rows_kernel, labels=labels)
    room = len(proba) if has_one_step else job.require_valid().room
    at = torch.empty(room, dtype=torch.float64, device=proba.device)
    before, after = torch.empty((2, room), dtype=torch.int32, device=proba.device)
    where = {"labels": labels, "at": at, "before": before, "after": after}
    if has_one_step:
        job.launch_clear_steps(listed, **where)
    job.launch(steps_kernel, **where)
    n_steps = job.require_valid().n_steps
    return _fitting(at, n_steps), _fitting(before, n_steps), _fitting(after, n_steps)


class _Job:
    """The rows, tables, workspace and findings of one call, as arguments of kernels."""

    def __init__(self, proba: Tensor, costs: GainTables, rule: str, point: str, given: Tensor | None) -> None:
        self.proba, self.costs, self.rule, self.point, self.given = proba, costs, rule, point, given
        self.found = torch.zeros(len(Findings._fields), dtype=torch.int64, device=proba.device)
        self.tolerance = SUM_TOLERANCE[str(proba.dtype).removeprefix("torch.")]
        self.rows = {"proba": proba, "row_stride": proba.stride(0), "column_stride": proba.stride(1)}
        self.list = {"n_listed": self.found, "listed_rows": self.found}
        self.n_lists = 0

    @cached_property
    def exact(self) -> dict[str, Any]:
        """The arguments of every exact kernel."""
        n, K = self.proba.shape
        workspace_bytes = PARTS.value * K * BLOCK * 8
        n_programs = max(1, min(MOST_PROGRAMS, triton.cdiv(n, BLOCK), WORKSPACE_BYTES // workspace_bytes))
        return {
            **self.rows,
            **_tables_on(SameObject(self.costs), self.proba.device),
            "n": n,
            "K": K,
            "found": self.found,
            "given": self.found if self.given is None else self.given.contiguous(),
            "workspace": torch.empty(
                (n_programs, workspace_bytes // 8), dtype=torch.float64, device=self.proba.device
            ),
            "TOLERANCE": self.tolerance,
            "RULE": RULE_NUMBERS[self.rule],
            "POINT": POINT_NUMBERS[self.point],
            "SHAPE": self.costs.shape,
            "WEIGHTED": self.costs.weighted,
            "BLOCK": BLOCK,
            "num_warps": max(1, BLOCK // 32),
            "num_stages": 1,
            "enable_fp_fusion": False,  # so that sums round as they do everywhere else
        }

    def launch(self, kernel: Any, **rest: Any) -> None:
        """Run ``kernel``, whose programs take tiles of rows until there are none left."""
        with torch.cuda.device_of(self.found):
            kernel[(len(self.exact["workspace"]),)](**self.exact, **self.list, **rest)

    def launch_clear(self, threshold: float, lower: Tensor, upper: Tensor) -> None:
        """Write the intervals of clear rows, and list the other rows."""
        n, K = self.proba.shape
        number_type = torch.float64 if self.proba.dtype == torch.float64 else torch.float32
        rounding = ROUNDING[number_type]
        chunk = min(triton.next_power_of_2(K), CHUNK_BYTES // self.proba.element_size())
        weights = _weights_on(SameObject(self.costs), self.proba.device, number_type)
        both = {
            **self.rows,
            "weights": weights.numbers,
            "lower": lower,
            "upper": upper,
            "threshold": threshold,
            "margin": 4 * (K + 4) * rounding,
            "safe_tolerance": self.tolerance
            - 1.01 * (chunk + K // chunk + 1) * rounding
            - 2 * K * ROUNDING[torch.float64],
            "K": K,
            "CHUNK": chunk,
            "EQUAL_WEIGHTS": weights.equal,
            "COMPUTED_IN": tl.float64 if number_type == torch.float64 else tl.float32,
        }
        rows_left = self.make_list()
        with torch.cuda.device_of(self.proba):
            clear_intervals_kernel[(min(CLEAR_PROGRAMS, triton.cdiv(n, CLEAR_BLOCK)),)](
                **both,
                n=n,
                n_unclear=self.found[self.n_lists :],
                unclear_rows=rows_left,
                WEIGHTED=self.costs.weighted,
                MODE_MATTERS=not threshold < 0.99 * weights.least_largest_gain,
                IN_ORDER=self.proba.stride() == (K, 1),
                STAGES=CLEAR_STAGES,
                BLOCK=CLEAR_BLOCK,
                num_warps=max(1, CLEAR_BLOCK // 32),
                num_stages=1,
            )
            if self.costs.weighted:
                scale = 1.01 * self.costs.bound + K * threshold
                cheapest_intervals_kernel[(min(CHEAPEST_PROGRAMS, triton.cdiv(n, CHEAPEST_BLOCK)),)](
                    **both,
                    n_rows=self.found[self.n_lists :],
                    rows_left=rows_left,
                    unclear_rows=self.make_list(),
                    n_unclear=self.found[self.n_lists :],
                    gap=4 * (K + 4) * scale * (rounding + 2 * (K + 4) * ROUNDING[torch.float64]),
                    BLOCK=CHEAPEST_BLOCK,
                    num_warps=max(1, CHEAPEST_BLOCK // 32),
                    num_stages=1,
                )

    def launch_clear_steps(self, listed: Tensor, **where: Tensor) -> None:
        """Write the steps of rows that need no pooling, and list the others that have one."""
        n, K = self.proba.shape
        tables = _tables_on(SameObject(self.costs), self.proba.device)
        weights = _weights_on(SameObject(self.costs), self.proba.device, torch.float64)
        is_wide = self.proba.dtype == torch.float64 or not weights.equal
        with torch.cuda.device_of(self.proba):
            clear_steps_kernel[(min(STEPS_PROGRAMS, triton.cdiv(n, STEPS_BLOCK)),)](
                **self.rows,
                **where,
                n=n,
                found=self.found,
                weights=weights.numbers,
                rank=tables["rank"],
                n_steps=self.found[N_STEPS.value :],
                n_listed=self.list["n_listed"],
                listed_rows=listed,
                TOLERANCE=self.tolerance,
                K=K,
                CHUNK=min(triton.next_power_of_2(K), CHUNK_BYTES // self.proba.element_size()),
                EQUAL_WEIGHTS=weights.equal,
                IN_ORDER=self.proba.stride() == (K, 1),
                COMPUTED_IN=tl.float64 if is_wide else tl.float32,
                BLOCK=STEPS_BLOCK,
                STAGES=CLEAR_STAGES,
                num_warps=max(1, STEPS_BLOCK // 32),
                num_stages=1,
                enable_fp_fusion=False,
            )

    def make_list(self) -> Tensor:
        """Return a list with room for every row; exact kernels process the last list made."""
        n = len(self.proba)
        number = torch.int32 if n < 2**31 else torch.int64
        self.n_lists += 1
        self.list = {
            "n_listed": self.found[self.n_lists :],
            "listed_rows": torch.empty(n, dtype=number, device=self.found.device),
        }
        return self.list["listed_rows"]

    def findings(self) -> Findings:
        """Wait for the kernels, and read what they counted."""
        return Findings(*self.found.tolist())

    def require_valid(self) -> Findings:
        """Return the findings; raise an error with the first row that is not a probability vector."""
        findings = self.findings()
        if findings.rows_from_first_bad:
            raise InvalidRow(len(self.proba) - findings.rows_from_first_bad)
        return findings


@lru_cache(maxsize=32)
def _tables_on(costs: SameObject, device: torch.device) -> dict[str, Tensor]:
    gains: GainTables = costs.value
    return {
        "left": torch.tensor(gains.left, device=device),
        "right": torch.tensor(gains.right, device=device),
        "mode_weights": torch.tensor(gains.mode_weights, device=device),
        "rank": torch.tensor(gains.rank.astype(np.int32), device=device),
        "bound": torch.tensor([gains.bound], dtype=torch.float64, device=device),
    }


class _DeviceWeights(NamedTuple):
    """The weights of the mode, then of each label that joins left, then of each that joins right."""

    numbers: Tensor
    equal: bool
    least_largest_gain: float


@lru_cache(maxsize=32)
def _weights_on(costs: SameObject, device: torch.device, number_type: torch.dtype) -> _DeviceWeights:
    gains: GainTables = costs.value
    numbers = np.concatenate([gains.mode_weights, gains.left.diagonal(), gains.right.diagonal()])
    with np.errstate(all="ignore"):
        least_largest_gain = float(1.0 / np.sum(1.0 / gains.mode_weights))
    numbers_there = torch.tensor(numbers, dtype=number_type, device=device)
    return _DeviceWeights(numbers_there, bool((gains.mode_weights == 1.0).all()), least_largest_gain)


def _fitting(steps: Tensor, n_steps: int) -> Tensor:
    """Return the first steps, copied if most of the memory would stay unused."""
    return steps[:n_steps].clone() if 2 * n_steps < len(steps) else steps[:n_steps]


def _has_one_step(costs: GainTables, rule: str, point: str) -> bool:
    """Return whether each row has at most one step, at the gain of its label unless gains must be pooled."""
    return rule == "frontier" and point == "mode" and costs.one_step


def _can_be_clear(proba: Tensor, costs: GainTables, rule: str, point: str, threshold: float) -> bool:
    """Return whether it is worth looking for rows that need no pooling."""
    return (
        rule == "frontier"
        and point == "mode"
        and (costs.weighted or costs.shape == RUNNING)
        and proba.shape[1] <= MOST_CLEAR_CLASSES
        and SMALLEST_SAFE.value < threshold < LARGEST_SAFE.value
        and costs.bound < LARGEST_SAFE.value
    )
