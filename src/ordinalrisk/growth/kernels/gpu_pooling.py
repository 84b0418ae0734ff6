"""The frontier's levels in Triton: pool adjacent violators on each side of the point label."""

import triton
import triton.language as tl

from ordinalrisk.growth.kernels.gpu_rows import GAIN, MEAN, SIZE, any_lane


@triton.jit
def label_at(t, m):
    """The label at place ``t`` of the walk outward from ``m``, first all that are left of it, then right."""
    return tl.where(t < m, m - 1 - t, t + 1)


@triton.jit
def frontier_levels(m, begin, end, active, tile, K, BLOCK: tl.constexpr):
    """Pool adjacent violators on each side of ``m``: each turn of the loop takes a gain or merges two blocks.

    A side's stack of blocks lies in its own places, from the first one on, and never reaches those whose
    gains are not taken yet. The block on top, and the one below it, are in registers.
    """
    gains = tile + GAIN * K * BLOCK
    sizes = tile + SIZE * K * BLOCK
    means = tile + MEAN * K * BLOCK
    working = active & (begin < end)
    t, top, n_left = begin, begin, begin
    total = tl.load(gains + label_at(t, m) * BLOCK, mask=working, other=0.0)
    size = tl.full([BLOCK], 1.0, tl.float64)
    mean = total
    below_total, below_size = tl.zeros_like(total), tl.zeros_like(total)
    below_mean = tl.full([BLOCK], float("inf"), tl.float64)
    while any_lane(working):
        merges = working & (mean > below_mean)
        ends = working & (merges == 0)
        slot = label_at(top, m) * BLOCK
        tl.store(gains + slot, total, mask=ends)
        tl.store(sizes + slot, size, mask=ends)
        tl.store(means + slot, mean, mask=ends)
        tl.debug_barrier()
        t += ends.to(tl.int32)
        side_ends = ends & (t == m)
        n_left = tl.where(side_ends, top + 1, n_left)
        working = working & ((ends == 0) | (t < end))
        takes = ends & working
        top = tl.where(merges, top - 1, tl.where(side_ends & takes, m, top + ends.to(tl.int32)))
        bottom = tl.where(t < m, 0, m)
        pops = merges & (top > bottom)
        source = label_at(tl.where(merges, top - 1, t), m) * BLOCK
        read = tl.load(gains + source, mask=takes | pops, other=0.0)
        popped_size = tl.load(sizes + source, mask=pops, other=0.0)
        popped_mean = tl.load(means + source, mask=pops, other=float("inf"))
        merged_total, merged_size = below_total + total, below_size + size
        below_total = tl.where(merges, read, total)
        below_size = tl.where(merges, popped_size, size)
        below_mean = tl.where(merges, popped_mean, tl.where(side_ends, float("inf"), mean))
        total = tl.where(merges, merged_total, read)
        size = tl.where(merges, merged_size, 1.0)
        mean = tl.where(merges, merged_total / merged_size, read)
    if any_lane(active):
        _spread(m, begin, end, top, n_left, active, tile, K, BLOCK)


@triton.jit
def _spread(m, begin, end, top, n_left, active, tile, K, BLOCK: tl.constexpr):
    """Give each label its block's mean, from the last place to the first."""
    tl.debug_barrier()
    left_over = tl.zeros([BLOCK], tl.float64)
    mean = tl.zeros([BLOCK], tl.float64)
    for back in range(K - 1):
        t = K - 2 - back
        here = active & (begin <= t) & (t < end)
        top = tl.where(t == m - 1, n_left, top)
        next_block = here & (left_over == 0.0)
        top = tl.where(next_block, top - 1, top)
        slot = label_at(top, m) * BLOCK
        left_over = tl.where(next_block, tl.load(tile + SIZE * K * BLOCK + slot, mask=next_block), left_over)
        mean = tl.where(next_block, tl.load(tile + MEAN * K * BLOCK + slot, mask=next_block), mean)
        left_over = tl.where(here, left_over - 1.0, left_over)
        tl.store(tile + GAIN * K * BLOCK + label_at(t, m) * BLOCK, mean, mask=here)
    tl.debug_barrier()
