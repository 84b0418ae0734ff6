"""Triton kernels that read a row once, and write its interval if rounding can't change it.

They compute in the rows' own number type (float32 for shorter ones), and list the rows that are not clear.
The margins decide how a set is computed, never what belongs to it.
"""

import triton
import triton.language as tl

from ordinalrisk.growth.kernels.gpu_rows import (
    columns_from,
    first_row,
    in_float64,
    list_rows,
    near_weights_of,
    rows_from,
    weight_of,
)

ONE_LABEL = tl.constexpr(1 << 20)
"""A number of labels and the sum of those labels share an integer: the sum is less than this."""
SMALLEST_SAFE, LARGEST_SAFE = tl.constexpr(1e-30), tl.constexpr(1e30)
"""Where neither a product near the threshold nor its margin can underflow or overflow in float32."""


@triton.jit
def clear_intervals_kernel(
    proba, row_stride, column_stride, n, weights, lower, upper, n_unclear, unclear_rows,
    threshold: tl.float64, margin: tl.float64, safe_tolerance: tl.float64,
    K: tl.constexpr, CHUNK: tl.constexpr, WEIGHTED: tl.constexpr, EQUAL_WEIGHTS: tl.constexpr,
    MODE_MATTERS: tl.constexpr, IN_ORDER: tl.constexpr, COMPUTED_IN: tl.constexpr, BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """The frontier's intervals from the mode, of rows without a gain close to the threshold."""
    just_below = in_float64(threshold * (1.0 - margin), BLOCK).to(COMPUTED_IN)
    just_above = in_float64(threshold * (1.0 + margin), BLOCK).to(COMPUTED_IN)
    within = in_float64(safe_tolerance, BLOCK).to(COMPUTED_IN)
    near_weights = near_weights_of(weights, 3 * K, K, CHUNK)
    lanes = tl.arange(0, BLOCK)
    offsets = lanes * K if IN_ORDER else lanes.to(tl.int64) * row_stride
    for start in tl.range(first_row(BLOCK), n, tl.num_programs(0) * BLOCK, num_stages=STAGES):
        active = lanes < tl.minimum(n - start, BLOCK).to(tl.int32)
        place = proba + start * (K if IN_ORDER else row_stride)
        if WEIGHTED:
            low, high, clear, total, smallest = _runs(
                place, offsets, column_stride, active, weights, near_weights, margin, just_below, just_above,
                K, CHUNK, MODE_MATTERS, EQUAL_WEIGHTS, COMPUTED_IN, BLOCK, STAGES,
            )  # fmt: skip
        else:
            low, high, clear, total, smallest = _falls(
                place, offsets, column_stride, active, weights, near_weights, just_below, just_above,
                K, CHUNK, COMPUTED_IN, BLOCK,
            )  # fmt: skip
        clear = clear & (smallest >= 0.0) & (tl.abs(total - 1.0) <= within)
        tl.store(lower + start + lanes, low, mask=active)
        tl.store(upper + start + lanes, high, mask=active)
        list_rows(start + lanes, active & (clear == 0), n_unclear, unclear_rows)


@triton.jit
def cheapest_intervals_kernel(
    proba, row_stride, column_stride, n_rows, rows_left, weights, lower, upper, n_unclear, unclear_rows,
    threshold: tl.float64, margin: tl.float64, gap: tl.float64, safe_tolerance: tl.float64,
    K: tl.constexpr, CHUNK: tl.constexpr, EQUAL_WEIGHTS: tl.constexpr, COMPUTED_IN: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The same for rows with gains above the threshold in several places."""
    within = in_float64(safe_tolerance, BLOCK).to(COMPUTED_IN)
    n_listed = tl.load(n_rows)
    for start in range(first_row(BLOCK), n_listed, tl.num_programs(0) * BLOCK):
        rows, active = rows_from(start, n_listed, rows_left, True, BLOCK)
        low, high, clear, total, smallest = _cheapest(
            proba, rows * row_stride, column_stride, active, weights, margin, threshold, gap,
            K, CHUNK, EQUAL_WEIGHTS, COMPUTED_IN, BLOCK,
        )  # fmt: skip
        clear = clear & (smallest >= 0.0) & (tl.abs(total - 1.0) <= within)
        tl.store(lower + rows, low, mask=active)
        tl.store(upper + rows, high, mask=active)
        list_rows(rows, active & (clear == 0), n_unclear, unclear_rows)


@triton.jit
def _runs(
    place, offsets, column_stride, active, weights, near_weights, margin, just_below, just_above,
    K: tl.constexpr, CHUNK: tl.constexpr, MODE_MATTERS: tl.constexpr, EQUAL_WEIGHTS: tl.constexpr,
    COMPUTED_IN: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Weighted losses: if the gains that reach the threshold are neighbours, they are the interval.

    Pooling keeps a mean of such gains above the threshold and a mean of the others below, so that no block
    has both. Without any such gain, the interval is the mode. Of all sets with a given last label and as
    many labels, a run has the largest sum of labels.
    """
    total = tl.zeros([BLOCK], COMPUTED_IN)
    smallest = tl.zeros([BLOCK], COMPUTED_IN)
    best = tl.full([BLOCK], -1.0, COMPUTED_IN)
    second = tl.full([BLOCK], -1.0, COMPUTED_IN)
    mode = tl.zeros([BLOCK], tl.int32)
    last = tl.zeros([BLOCK], tl.int32)
    surely = tl.zeros([BLOCK], tl.int32)
    maybe = tl.zeros([BLOCK], tl.int32)
    for first in tl.range(0, K, CHUNK, num_stages=STAGES if EQUAL_WEIGHTS else 1):
        columns = columns_from(place, offsets, column_stride, active, first, K, CHUNK, COMPUTED_IN, BLOCK)
        chunk_total = tl.zeros([BLOCK], COMPUTED_IN)
        for i in tl.static_range(min(K, CHUNK)):
            j = first + i
            p = columns[i]
            chunk_total += p
            smallest = tl.minimum(smallest, p)
            gain = p
            if not EQUAL_WEIGHTS:
                gain = p * weight_of(weights, near_weights, 0, first, i, K, CHUNK)
            if MODE_MATTERS:
                second = tl.maximum(second, tl.minimum(best, gain))
                mode = tl.where(gain > best, j, mode)
                best = tl.maximum(best, gain)
            reaches = gain >= just_above
            last = tl.where(reaches, j, last)
            surely = tl.where(reaches, surely + (ONE_LABEL + j), surely)
            maybe = tl.where(gain >= just_below, maybe + (ONE_LABEL + j), maybe)
        total += chunk_total
    count, sum_of_labels = surely // ONE_LABEL, surely % ONE_LABEL
    are_neighbours = 2 * sum_of_labels == count * (2 * last + 1 - count)
    known = count > 0
    if MODE_MATTERS:
        known = known | _is_clearly_more(best, second, margin, EQUAL_WEIGHTS, COMPUTED_IN, BLOCK)
    low = tl.where(count > 0, last + 1 - count, mode)
    high = tl.where(count > 0, last, mode)
    return low, high, (surely == maybe) & are_neighbours & known, total, smallest


@triton.jit
def _cheapest(
    place, offsets, column_stride, active, weights, margin, threshold, gap,
    K: tl.constexpr, CHUNK: tl.constexpr, EQUAL_WEIGHTS: tl.constexpr, COMPUTED_IN: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Weighted losses: the interval is the cheapest one around the mode, when each label costs the threshold.

    ``saved`` is what the labels below ``j`` would take off the risk, less their price. The lower end is where
    it is least, up to the mode; the upper end is where it is most, from the mode on. Both are updated
    whenever a larger gain is found. Where the runner-up is worse by a clear ``gap``, no level is near the
    threshold.
    """
    total = tl.zeros([BLOCK], COMPUTED_IN)
    smallest = tl.zeros([BLOCK], COMPUTED_IN)
    price = in_float64(threshold, BLOCK).to(COMPUTED_IN)
    saved = tl.zeros([BLOCK], COMPUTED_IN)
    best = tl.full([BLOCK], -1.0, COMPUTED_IN)
    second = tl.full([BLOCK], -1.0, COMPUTED_IN)
    least = tl.full([BLOCK], float("inf"), COMPUTED_IN)
    next_least = tl.full([BLOCK], float("inf"), COMPUTED_IN)
    most = tl.full([BLOCK], float("-inf"), COMPUTED_IN)
    next_most = tl.full([BLOCK], float("-inf"), COMPUTED_IN)
    low_gap = tl.zeros([BLOCK], COMPUTED_IN)
    least_at = tl.zeros([BLOCK], tl.int32)
    low = tl.zeros([BLOCK], tl.int32)
    high = tl.zeros([BLOCK], tl.int32)
    for first in range(0, K, CHUNK):
        columns = columns_from(place, offsets, column_stride, active, first, K, CHUNK, COMPUTED_IN, BLOCK)
        chunk_total = tl.zeros([BLOCK], COMPUTED_IN)
        for i in tl.static_range(min(K, CHUNK)):
            j = first + i
            gain = columns[i]
            chunk_total += gain
            smallest = tl.minimum(smallest, gain)
            if not EQUAL_WEIGHTS:
                gain *= tl.load(weights + j, mask=j < K, other=0.0)
            second = tl.maximum(second, tl.minimum(best, gain))
            least_at = tl.where(saved < least, j, least_at)
            next_least = tl.minimum(next_least, tl.maximum(least, saved))
            least = tl.minimum(least, saved)
            is_best = gain > best
            best = tl.maximum(best, gain)
            low = tl.where(is_best, least_at, low)
            low_gap = tl.where(is_best, next_least - least, low_gap)
            saved += gain - price
            starts_or_grows = (is_best | (saved > most)) & (j < K)
            next_most = tl.where(is_best, float("-inf"), tl.maximum(next_most, tl.minimum(most, saved)))
            most = tl.where(starts_or_grows, saved, most)
            high = tl.where(starts_or_grows, j, high)
        total += chunk_total
    enough = in_float64(gap, BLOCK).to(COMPUTED_IN)
    clear = (low_gap > enough) & (most - next_most > enough)
    clear = clear & _is_clearly_more(best, second, margin, EQUAL_WEIGHTS, COMPUTED_IN, BLOCK)
    return low, high, clear, total, smallest


@triton.jit
def _is_clearly_more(
    best, second, margin, EQUAL_WEIGHTS: tl.constexpr, COMPUTED_IN: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Whether the order of two scores is certain in spite of rounding; unweighted scores are not rounded."""
    if EQUAL_WEIGHTS:
        return best >= second
    else:
        clearly_less = in_float64(1.0 - margin, BLOCK).to(COMPUTED_IN)
        return (second < best * clearly_less) & (best > SMALLEST_SAFE)


@triton.jit
def _falls(
    place, offsets, column_stride, active, weights, near_weights, just_below, just_above,
    K: tl.constexpr, CHUNK: tl.constexpr, COMPUTED_IN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Running sums never rise outward: the interval is the mode and the gains that reach the threshold.

    Past the end of the scale there are zeros. On the way right they come last, and on the way left they do
    not reach the threshold, so they are subtracted from the count.
    """
    USED: tl.constexpr = min(K, CHUNK)
    PLACES: tl.constexpr = (K + CHUNK - 1) // CHUNK * USED
    total = tl.zeros([BLOCK], COMPUTED_IN)
    smallest = tl.zeros([BLOCK], COMPUTED_IN)
    best = tl.full([BLOCK], -1.0, COMPUTED_IN)
    mode = tl.zeros([BLOCK], tl.int32)
    gain = tl.zeros([BLOCK], COMPUTED_IN)
    surely_left = tl.zeros([BLOCK], tl.int32)
    maybe_left = tl.zeros([BLOCK], tl.int32)
    for first in range(0, K, CHUNK):
        columns = columns_from(place, offsets, column_stride, active, first, K, CHUNK, COMPUTED_IN, BLOCK)
        chunk_total = tl.zeros([BLOCK], COMPUTED_IN)
        for i in tl.static_range(USED):
            j = first + i
            p = columns[i]
            chunk_total += p
            smallest = tl.minimum(smallest, p)
            mode = tl.where(p > best, j, mode)
            best = tl.maximum(best, p)
            gain += p * weight_of(weights, near_weights, 1, first, i, K, CHUNK)
            surely_left += (gain < just_below).to(tl.int32)
            maybe_left += (gain < just_above).to(tl.int32)
        total += chunk_total
    gain = tl.zeros([BLOCK], COMPUTED_IN)
    surely_right = tl.zeros([BLOCK], tl.int32)
    maybe_right = tl.zeros([BLOCK], tl.int32)
    for back in range(0, K, CHUNK):
        first = PLACES - USED - back
        columns = columns_from(place, offsets, column_stride, active, first, K, CHUNK, COMPUTED_IN, BLOCK)
        for i in tl.static_range(USED):
            weight = weight_of(weights, near_weights, 2, first, USED - 1 - i, K, CHUNK)
            gain += columns[USED - 1 - i] * weight
            surely_right += (gain < just_below).to(tl.int32)
            maybe_right += (gain < just_above).to(tl.int32)
    low, high = tl.minimum(mode, surely_left), tl.maximum(mode, PLACES - 1 - surely_right)
    clear = (low == tl.minimum(mode, maybe_left)) & (high == tl.maximum(mode, PLACES - 1 - maybe_right))
    return low, high, clear, total, smallest
