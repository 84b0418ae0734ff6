"""How programs of the Triton kernels take their rows and pass others on."""

import triton
import triton.language as tl


@triton.jit
def first_row(BLOCK: tl.constexpr):
    """Where this program's first tile begins."""
    return tl.program_id(0).to(tl.int64) * BLOCK


@triton.jit
def rows_to_take(n_listed, n, LISTED: tl.constexpr):
    """How many rows there are: those of a list, or all."""
    if LISTED:
        return tl.load(n_listed)
    else:
        return n


@triton.jit
def rows_from(start, n_rows, listed_rows, LISTED: tl.constexpr, BLOCK: tl.constexpr):
    """The tile's rows, and which of its lanes have one."""
    rows = start + tl.arange(0, BLOCK).to(tl.int64)
    active = rows < n_rows
    if LISTED:
        rows = tl.load(listed_rows + rows, mask=active, other=0).to(tl.int64)
    return rows, active


@triton.jit
def list_rows(rows, wanted, counter, listed_rows):
    """Add the wanted rows of a tile to a list that programs share."""
    count = tl.sum(wanted.to(tl.int32))
    if count > 0:
        first = tl.atomic_add(counter, count.to(tl.int64))
        place = first + tl.cumsum(wanted.to(tl.int32), 0) - 1
        tl.store(listed_rows + place, rows, mask=wanted)


@triton.jit
def in_float64(number, BLOCK: tl.constexpr):
    """``number`` in every lane; as it stands in a comparison it would be rounded to float32."""
    return tl.full([BLOCK], number, tl.float64)


@triton.jit
def any_lane(lanes):
    """Whether the condition holds in some lane."""
    return tl.max(lanes.to(tl.int32), 0) > 0
