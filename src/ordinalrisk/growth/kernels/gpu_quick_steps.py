"""A Triton kernel that reads a row once, and writes its step if no gains have to be pooled for it.

Sums and products are those of the reference in float64, so the levels are the same. Numbers that are only
compared stay as short as they come. The other rows are listed.
"""

import triton
import triton.language as tl

from ordinalrisk.growth.kernels.gpu_rows import (
    columns_from,
    first_row,
    is_probability,
    list_rows,
    near_weights_of,
    note_first_bad,
    weight_of,
)


@triton.jit
def clear_steps_kernel(
    proba, row_stride, column_stride, n, found, weights, rank, labels, at, before, after,
    n_steps, n_listed, listed_rows,
    TOLERANCE: tl.constexpr, K: tl.constexpr, CHUNK: tl.constexpr, EQUAL_WEIGHTS: tl.constexpr,
    IN_ORDER: tl.constexpr, COMPUTED_IN: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The step of the frontier from the mode under a weighted loss, where gains never rise outward.

    A label's level is then its gain, and a row whose label is not the mode has one step, at that level.
    """
    near_weights = near_weights_of(weights, K, K, CHUNK)
    lanes = tl.arange(0, BLOCK)
    offsets = lanes * K if IN_ORDER else lanes.to(tl.int64) * row_stride
    for start in tl.range(first_row(BLOCK), n, tl.num_programs(0) * BLOCK, num_stages=STAGES):
        active = lanes < tl.minimum(n - start, BLOCK).to(tl.int32)
        y = tl.load(labels + start + lanes, mask=active, other=0).to(tl.int32)
        place = proba + start * (K if IN_ORDER else row_stride)
        m, level, next_label, pools, total, smallest = _step(
            place, offsets, column_stride, active, y, weights, near_weights,
            K, CHUNK, EQUAL_WEIGHTS, COMPUTED_IN, BLOCK, STAGES,
        )  # fmt: skip
        valid = is_probability(total, smallest, TOLERANCE, BLOCK)
        note_first_bad(start + lanes, active & (valid == 0), n, found)
        pays = active & valid & (y != m)
        if not EQUAL_WEIGHTS:
            pays = pays & (tl.load(rank + y * K + m, mask=active, other=0) > 0)
        steps = pays & (pools == 0)
        list_rows(start + lanes, pays & pools, n_listed, listed_rows)
        first_step = tl.atomic_add(n_steps, tl.sum(steps.to(tl.int32)).to(tl.int64))
        step = first_step + tl.cumsum(steps.to(tl.int32), 0) - 1
        tl.store(at + step, level, mask=steps)
        tl.store(before + step, y * K + y, mask=steps)
        tl.store(after + step, y * K + next_label, mask=steps)


@triton.jit
def _step(
    place, offsets, column_stride, active, y, weights, near_weights,
    K: tl.constexpr, CHUNK: tl.constexpr, EQUAL_WEIGHTS: tl.constexpr, COMPUTED_IN: tl.constexpr,
    BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The mode, the gain of ``y``, the first label towards the mode with another, and whether gains rise.

    Labels of equal gains drop out together. Past the end of the scale there are zeros, which change nothing.
    """
    total = tl.zeros([BLOCK], tl.float64)
    smallest = tl.zeros([BLOCK], COMPUTED_IN)
    best = tl.full([BLOCK], -1.0, COMPUTED_IN)
    last = tl.full([BLOCK], -1.0, COMPUTED_IN)
    level = tl.full([BLOCK], -1.0, COMPUTED_IN)
    m = tl.zeros([BLOCK], tl.int32)
    run_start = tl.zeros([BLOCK], tl.int32)  # of the labels with the same gain as the last one
    before_run = tl.zeros([BLOCK], tl.int32)  # the label before those with the gain of y
    after_run = tl.full([BLOCK], K, tl.int32)
    fell = tl.zeros([BLOCK], tl.int1)
    pools_left = tl.zeros([BLOCK], tl.int1)
    pools_right = tl.zeros([BLOCK], tl.int1)
    for first in tl.range(0, K, CHUNK, num_stages=STAGES if EQUAL_WEIGHTS else 1):
        columns = columns_from(place, offsets, column_stride, active, first, K, CHUNK, COMPUTED_IN, BLOCK)
        for i in tl.static_range(min(K, CHUNK)):
            j = first + i
            p = columns[i]
            total += p.to(tl.float64)
            smallest = tl.where(p < smallest, p, smallest)
            gain = tl.abs(p)  # a minus zero is a zero
            if not EQUAL_WEIGHTS:
                gain *= weight_of(weights, near_weights, 0, first, i, K, CHUNK)
            run_start = tl.where(gain == last, run_start, j)
            after_run = tl.where((j > y) & (gain != level), tl.minimum(after_run, j), after_run)
            level = tl.where(j == y, gain, level)
            before_run = tl.where(j == y, run_start - 1, before_run)
            fell = fell | (gain < last)
            is_best = gain > best
            m = tl.where(is_best, j, m)
            best = tl.where(is_best, gain, best)
            pools_left = tl.where(is_best, fell, pools_left)
            pools_right = (is_best == 0) & (pools_right | (gain > last))
            last = gain
    next_label = tl.where(y < m, tl.minimum(after_run, m), tl.maximum(before_run, m))
    pools = (y < m) & pools_left | (y > m) & pools_right
    return m, level.to(tl.float64), next_label, pools, total, smallest
