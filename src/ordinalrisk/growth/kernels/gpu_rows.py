"""How programs of the Triton kernels read rows, list rows for other kernels, and use their workspace."""

import triton
import triton.language as tl

# The workspace of a program: (PARTS, K, BLOCK) numbers. GAIN holds what a label takes off the risk when it
# joins, and its level once that is known: the left gain below the point label, the right gain above it. RISK
# holds the model's risk beyond a label, on its own side of the point label. SIZE and MEAN are the stack of
# pooled blocks, whose totals take the place of gains that were used.
P, GAIN, RISK, SIZE, MEAN = (tl.constexpr(part) for part in range(5))
PARTS = tl.constexpr(5)


@triton.jit
def first_row(BLOCK: tl.constexpr):
    """Where this program's first tile begins."""
    return tl.program_id(0).to(tl.int64) * BLOCK


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
    """``number`` as float64 in every lane; in a comparison it would be rounded to float32."""
    return tl.full([BLOCK], number, tl.float64)


@triton.jit
def any_lane(lanes):
    """Whether the condition holds in some lane."""
    return tl.max(lanes.to(tl.int32), 0) > 0


@triton.jit
def own_tile(workspace, K, BLOCK: tl.constexpr):
    """Where each lane's part of this program's workspace begins."""
    return workspace + tl.program_id(0).to(tl.int64) * (PARTS * K * BLOCK) + tl.arange(0, BLOCK)


@triton.jit
def read(
    proba, row_stride, column_stride, n, found, TOLERANCE: tl.constexpr,
    rows, active, tile, K, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy the rows to the tile; return which lanes have a probability vector."""
    tl.debug_barrier()
    place = proba + rows * row_stride
    total = tl.zeros([BLOCK], tl.float64)
    smallest = tl.zeros([BLOCK], tl.float64)
    for j in range(K):
        p = tl.load(place, mask=active, other=0.0).to(tl.float64)
        tl.store(tile + (P * K + j) * BLOCK, tl.abs(p))  # a minus zero is a zero
        total += p
        smallest = tl.where(p < smallest, p, smallest)
        place += column_stride
    valid = is_probability(total, smallest, TOLERANCE, BLOCK)
    note_first_bad(rows, active & (valid == 0), n, found)
    tl.debug_barrier()
    return active & valid


@triton.jit
def is_probability(total, smallest, TOLERANCE: tl.constexpr, BLOCK: tl.constexpr):
    """Which rows have this sum and no negative number; a NaN in the sum fails too."""
    return (smallest >= 0.0) & (tl.abs(total - 1.0) <= in_float64(TOLERANCE, BLOCK))


@triton.jit
def note_first_bad(rows, bad, n, found):
    """Keep the first of the bad rows that programs come across, counted from the end."""
    first_bad = tl.min(tl.where(bad, rows, n), 0)
    if first_bad < n:
        tl.atomic_max(found, n - first_bad)


@triton.jit
def columns_from(
    place, offsets, column_stride, active, first,
    K: tl.constexpr, CHUNK: tl.constexpr, COMPUTED_IN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A chunk of each row's numbers, the row in one lane."""
    columns = first + tl.arange(0, CHUNK)
    within_tile = offsets[:, None] + (columns.to(offsets.dtype) * column_stride)[None, :]
    on_scale = active[:, None] & (columns < K)[None, :]
    chunk = tl.load(place + within_tile, mask=on_scale, other=0.0).to(COMPUTED_IN)
    return columns_of(chunk, CHUNK, BLOCK)


@triton.jit
def columns_of(chunk, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """A row's numbers in one lane, from a tile of them; ``WIDTH`` is a power of two."""
    if WIDTH == 2:
        first, second = tl.split(chunk)
        return (first, second)
    else:
        halves = tl.permute(tl.reshape(chunk, [BLOCK, 2, WIDTH // 2]), 0, 2, 1)
        first, second = tl.split(halves)
        return columns_of(first, WIDTH // 2, BLOCK) + columns_of(second, WIDTH // 2, BLOCK)


@triton.jit
def near_weights_of(weights, COUNT: tl.constexpr, K: tl.constexpr, CHUNK: tl.constexpr):
    """All weights in registers, if a row is one chunk, so that the loop over rows need not load them."""
    loaded = ()
    if K <= CHUNK:
        for i in tl.static_range(COUNT):
            loaded += (tl.load(weights + i),)  # type: ignore[assignment]
    return loaded


@triton.jit
def weight_of(
    weights, near_weights, WHICH: tl.constexpr, first, COLUMN: tl.constexpr,
    K: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The weight of a column, the first, the second or the third one that each column has."""
    if K <= CHUNK:
        return near_weights[WHICH * K + COLUMN]
    else:
        return tl.load(weights + WHICH * K + first + COLUMN, mask=first + COLUMN < K, other=0.0)
