"""A tile of rows: what is the same computation in each of them is done with one vector lane for each row.

Every rule mirrors its namesake in :mod:`ordinalrisk.growth.kernels.reference` and gives the same bits.
"""

from __future__ import annotations

from math import inf

import numpy as np

from ordinalrisk.growth.kernels import POINTS, RULES
from ordinalrisk.growth.kernels.compiling import helper, inlined
from ordinalrisk.losses.cost_table import DIAGONAL, RUNNING

PAPER, FRONTIER, ADAPTIVE, RPS = RULES.values()
MODE, BAYES, MEDIAN, GIVEN = POINTS.values()

# The workspace: a tile (PARTS, K, TILE) of what is computed for many rows at once, single numbers for each of
# its rows in lanes (N_LANES, TILE), a table (ROW_PARTS, K) of what is computed for one row at a time, and the
# numbers of the rows that wait for a place in the tile. Loops over lanes read before they choose, so that the
# compiler can choose without a branch, in registers.
TILE = 64
P, LEFT, RIGHT, HEAD, TAIL = range(5)
PARTS = 5
POINT, BEST, SECOND, TOTAL, LOWER, UPPER, GAP, CLEAR, MISSED = range(9)
N_LANES = 9
LEVEL, SLOPE, BLOCK_TOTAL, BLOCK_MEAN, BLOCK_SIZE = range(5)
ROW_PARTS = 5

ALL_VALID = -1

# By how much of the threshold the runner-up must be worse for a set to be known without pooling; and the
# smallest threshold, as a share of the largest loss, and the largest number of classes for which rounding
# stays far below that. They decide how a set is computed, never what belongs to it.
CLEARLY = 1e-5
SMALLEST_CLEAR_THRESHOLD = 1e-4
MOST_CLEAR_CLASSES = 1_000
FAR_FROM_DENORMAL, FAR_FROM_OVERFLOW = 1e-280, 1e290


@helper
def all_wait(start, n, waiting, left):
    """Every row of a tile joins those that wait; how many do now."""
    for i in range(start, min(start + TILE, n)):
        waiting[left] = i
        left += 1
    return left


@helper
def leave(count, waiting, left):
    """The first ones leave, the others move up; how many still wait."""
    for q in range(count, left):
        waiting[q - count] = waiting[q]
    return left - count


@helper
def read_tile(proba, given, costs, rule, point, tolerance, waiting, count, tile, lane):
    """Rows into the tile with all that is the same computation in each; the first invalid one, if any."""
    bad = load_tile(proba, waiting, count, tolerance, tile)
    if bad == ALL_VALID:
        find_points(costs, point, given, waiting, count, tile, lane)
        prepare(costs, rule, count, tile)
    return bad


@helper
def load_tile(proba, waiting, count, tolerance, tile):
    """Copy rows to the tile; the first that is no probability vector, if any."""
    for q in range(count):
        i = waiting[q]
        total = smallest = 0.0
        for j in range(tile.shape[1]):
            p = np.float64(proba[i, j])
            tile[P, j, q] = abs(p)  # a minus zero is a zero
            total += p
            smallest = p if p < smallest else smallest
        if not (smallest >= 0.0 and abs(total - 1.0) <= tolerance):  # so that a NaN fails
            return i
    return ALL_VALID


@helper
def find_points(costs, point, given, waiting, count, tile, lane):
    """The label each interval grows from, the leftmost on a tie."""
    K = tile.shape[1]
    for q in range(count):
        lane[POINT, q] = 0.0
    if point == MODE:
        for q in range(count):
            lane[BEST, q] = -1.0
        for j in range(K):
            weight = costs.mode_weights[j]
            for q in range(count):
                score, best, label = weight * tile[P, j, q], lane[BEST, q], lane[POINT, q]
                lane[BEST, q] = score if score > best else best
                lane[POINT, q] = float(j) if score > best else label
    elif point == BAYES:
        _gains(costs, count, tile)
        _head_and_tail(count, tile)
        for q in range(count):
            lane[BEST, q] = inf
        for j in range(K):
            for q in range(count):
                risk, least, label = tile[HEAD, j, q] + tile[TAIL, j, q], lane[BEST, q], lane[POINT, q]
                lane[BEST, q] = risk if risk < least else least
                lane[POINT, q] = float(j) if risk < least else label
    elif point == MEDIAN:
        for q in range(count):
            lane[TOTAL, q] = 0.0
        for j in range(K - 1):
            for q in range(count):
                lane[TOTAL, q] += tile[P, j, q]
                lane[POINT, q] += lane[TOTAL, q] < 0.5
    else:
        for q in range(count):
            lane[POINT, q] = given[waiting[q]]


@helper
def prepare(costs, rule, count, tile):
    """Whatever growth by ``rule`` needs that is the same computation in every row."""
    if rule != RPS:
        _gains(costs, count, tile)
        if rule != FRONTIER:
            _head_and_tail(count, tile)


@helper
def _gains(costs, count, tile):
    K = tile.shape[1]
    if costs.shape == DIAGONAL:
        for j in range(K):
            left, right = costs.left[j, j], costs.right[j, j]
            for q in range(count):
                tile[LEFT, j, q] = tile[P, j, q] * left
                tile[RIGHT, j, q] = tile[P, j, q] * right
    elif costs.shape == RUNNING:
        _running_sums(costs.left, 0, 1, LEFT, count, tile)
        _running_sums(costs.right, K - 1, -1, RIGHT, count, tile)
    else:
        for j in range(K):
            for q in range(count):
                tile[LEFT, j, q] = 0.0
                tile[RIGHT, j, q] = 0.0
            for i in range(j + 1):
                left = costs.left[j, i]
                for q in range(count):
                    tile[LEFT, j, q] += tile[P, i, q] * left
            for i in range(K - 1, j - 1, -1):
                right = costs.right[j, i]
                for q in range(count):
                    tile[RIGHT, j, q] += tile[P, i, q] * right


@helper
def _running_sums(saved, first, inward, part, count, tile):
    for q in range(count):
        tile[part, first, q] = tile[P, first, q] * saved[first, first]
    for t in range(1, tile.shape[1]):
        j = first + inward * t
        for q in range(count):
            tile[part, j, q] = tile[part, j - inward, q] + tile[P, j, q] * saved[j, j]


@helper
def _head_and_tail(count, tile):
    K = tile.shape[1]
    for q in range(count):
        tile[HEAD, 0, q] = 0.0
        tile[TAIL, K - 1, q] = 0.0
    for j in range(K - 1):
        for q in range(count):
            tile[HEAD, j + 1, q] = tile[HEAD, j, q] + tile[LEFT, j, q]
    for j in range(K - 1, 0, -1):
        for q in range(count):
            tile[TAIL, j - 1, q] = tile[TAIL, j, q] + tile[RIGHT, j, q]


@helper
def find_ends_of_falling_gains(threshold, count, tile, lane):
    """Running sums never rise outward, so they are the frontier's levels; the number of rows, all clear."""
    K = tile.shape[1]
    for q in range(count):
        lane[LOWER, q] = 0.0
        lane[UPPER, q] = K - 1.0
    for j in range(K - 1):
        here, there = float(j), float(K - 1 - j)
        for q in range(count):
            m, left, right = lane[POINT, q], tile[LEFT, j, q], tile[RIGHT, K - 1 - j, q]
            lane[LOWER, q] += 1.0 if (left < threshold) & (here < m) else 0.0
            lane[UPPER, q] -= 1.0 if (right < threshold) & (there > m) else 0.0
    return count


@helper
def find_clear_intervals(costs, threshold, count, tile, lane):
    """The frontier's intervals, where they can be known without pooling; how many those are.

    The lower end minimises ``H(l) + threshold * (m - l)``: what stays at risk, plus the price of the labels.
    Where every other label is clearly worse, no level is near the threshold, and rounding can't have moved
    the minimum. Likewise the upper end.
    """
    K = tile.shape[1]
    for q in range(count):
        lane[GAP, q] = inf
    _minimise(LEFT, 0, 1, threshold, LOWER, count, tile, lane)
    _minimise(RIGHT, K - 1, -1, threshold, UPPER, count, tile, lane)
    smallest = max(SMALLEST_CLEAR_THRESHOLD * costs.bound, FAR_FROM_DENORMAL)
    reliable = smallest < threshold < FAR_FROM_OVERFLOW and K <= MOST_CLEAR_CLASSES
    enough = CLEARLY * threshold if reliable else inf
    n_clear = 0.0
    for q in range(count):
        clear = 1.0 if lane[GAP, q] > enough else 0.0
        lane[CLEAR, q] = clear
        n_clear += clear
    return int(n_clear)


@helper
def _minimise(gains, first, inward, price, end, count, tile, lane):
    """From one end of the scale inward to the point label, the end at which risk plus price is least."""
    for q in range(count):
        lane[TOTAL, q] = 0.0
        lane[BEST, q] = 0.0
        lane[SECOND, q] = inf
        lane[end, q] = first
    for t in range(1, tile.shape[1]):
        j = float(first + inward * t)
        for q in range(count):
            best, second, label = lane[BEST, q], lane[SECOND, q], lane[end, q]
            total = lane[TOTAL, q] + tile[gains, first + inward * (t - 1), q]
            value = total - t * price if (j - lane[POINT, q]) * inward <= 0.0 else inf
            runner_up = best if value < best else value
            lane[TOTAL, q] = total
            lane[SECOND, q] = runner_up if runner_up < second else second
            lane[BEST, q] = value if value < best else best
            lane[end, q] = j if value < best else label
    for q in range(count):
        gap, so_far = lane[SECOND, q] - lane[BEST, q], lane[GAP, q]
        lane[GAP, q] = gap if gap < so_far else so_far


@helper
def _find_gains_that_fall(count, tile, lane):
    """Mark the rows whose gains never rise outward: they are the frontier's levels as they are."""
    for q in range(count):
        lane[CLEAR, q] = 1.0
    for j in range(tile.shape[1] - 1):
        here = float(j)
        for q in range(count):
            clear, m = lane[CLEAR, q], lane[POINT, q]
            left, left_inward = tile[LEFT, j, q], tile[LEFT, j + 1, q]
            right, right_outward = tile[RIGHT, j, q], tile[RIGHT, j + 1, q]
            rises_left = (left > left_inward) & (here + 1.0 < m)
            rises_right = (right < right_outward) & (here > m)
            lane[CLEAR, q] = 0.0 if rises_left | rises_right else clear


@helper
def grow(costs, rule, m, threshold, q, tile, row):
    """Grow from ``m`` while the next level is at least ``threshold``; its levels stay in ``row``."""
    if rule == PAPER:
        return _paper(costs, m, threshold, q, tile, row)
    if rule == ADAPTIVE:
        return _adaptive(m, threshold, q, tile, row)
    if rule == FRONTIER:
        _frontier_levels(m, LEVEL, q, tile, row)
    else:
        _ranked_probability_levels(m, q, tile, row)
    K = tile.shape[1]
    lower = upper = m
    while lower > 0 and row[LEVEL, lower - 1] >= threshold:
        lower -= 1
    while upper < K - 1 and row[LEVEL, upper + 1] >= threshold:
        upper += 1
    return lower, upper


@helper
def _paper(costs, m, threshold, q, tile, row):
    K = tile.shape[1]
    row[LEVEL, m] = inf
    lower = upper = m
    covered = costs.mode_weights[m] * tile[P, m, q]
    while upper - lower < K - 1:
        risk = costs.bound - covered if costs.weighted else tile[HEAD, lower, q] + tile[TAIL, upper, q]
        if risk < threshold:
            break
        left = tile[LEFT, lower - 1, q] if lower > 0 else -1.0
        right = tile[RIGHT, upper + 1, q] if upper < K - 1 else -1.0
        if left > right or (left == right and not costs.weighted):
            lower -= 1
            row[LEVEL, lower] = risk
            covered += tile[LEFT, lower, q]
        else:
            upper += 1
            row[LEVEL, upper] = risk
            covered += tile[RIGHT, upper, q]
    return lower, upper


@helper
def _frontier_levels(m, part, q, tile, row):
    row[part, m] = inf
    _decreasing_slopes(LEFT, m - 1, -1, m, part, q, tile, row)
    _decreasing_slopes(RIGHT, m + 1, 1, tile.shape[1] - 1 - m, part, q, tile, row)


@helper
def _decreasing_slopes(gains, first, outward, count, part, q, tile, row):
    blocks = 0
    for t in range(count):
        total = mean = tile[gains, first + outward * t, q]
        size = 1.0
        while blocks > 0 and mean > row[BLOCK_MEAN, blocks - 1]:
            blocks -= 1
            total = row[BLOCK_TOTAL, blocks] + total
            size += row[BLOCK_SIZE, blocks]
            mean = total / size
        row[BLOCK_TOTAL, blocks] = total
        row[BLOCK_MEAN, blocks] = mean
        row[BLOCK_SIZE, blocks] = size
        blocks += 1
    j = first
    for b in range(blocks):
        for _ in range(int(row[BLOCK_SIZE, b])):
            row[part, j] = row[BLOCK_MEAN, b]
            j += outward


@helper
def _adaptive(m, threshold, q, tile, row):
    K = tile.shape[1]
    row[LEVEL, m] = inf
    lower = upper = m
    if tile[HEAD, m, q] + tile[TAIL, m, q] < threshold:
        return lower, upper
    _frontier_levels(m, SLOPE, q, tile, row)
    while upper - lower < K - 1:
        risk = tile[HEAD, lower, q] + tile[TAIL, upper, q]
        if risk < threshold:
            break
        steepest = max(
            row[SLOPE, lower - 1] if lower > 0 else -1.0,
            row[SLOPE, upper + 1] if upper < K - 1 else -1.0,
        )
        while lower > 0 and row[SLOPE, lower - 1] == steepest:
            lower -= 1
            row[LEVEL, lower] = risk
        while upper < K - 1 and row[SLOPE, upper + 1] == steepest:
            upper += 1
            row[LEVEL, upper] = risk
    return lower, upper


@helper
def _ranked_probability_levels(m, q, tile, row):
    K = tile.shape[1]
    cumulative = 0.0
    median = 0
    for j in range(K):
        cumulative += tile[P, j, q]
        tile[HEAD, j, q] = cumulative
        median += j < K - 1 and cumulative < 0.5
    score = 0.0
    for k in range(K - 1):
        miss = tile[HEAD, k, q] if k < median else 1.0 - tile[HEAD, k, q]
        score += miss * miss
    tile[TAIL, median, q] = score
    for j in range(median - 1, -1, -1):
        tile[TAIL, j, q] = tile[TAIL, j + 1, q] + (1.0 - 2.0 * tile[HEAD, j, q])
    for j in range(median + 1, K):
        tile[TAIL, j, q] = tile[TAIL, j - 1, q] + (2.0 * tile[HEAD, j - 1, q] - 1.0)
    row[LEVEL, m] = inf
    for j in range(m - 1, -1, -1):
        row[LEVEL, j] = min(row[LEVEL, j + 1], 0.0 - tile[TAIL, j, q])
    for j in range(m + 1, K):
        row[LEVEL, j] = min(row[LEVEL, j - 1], 0.0 - tile[TAIL, j, q])


@helper
def steps_in_tile(labels, at, before, after, costs, rule, found, waiting, count, tile, lane, row):
    """Write down the steps of the tile's rows; how many there are so far."""
    K = tile.shape[1]
    if rule == FRONTIER and costs.shape != RUNNING:
        _find_gains_that_fall(count, tile, lane)
    n_missed = 0
    for q in range(count):
        lane[MISSED, n_missed] = q
        n_missed += costs.rank[labels[waiting[q]], int(lane[POINT, q])] > 0
    for t in range(n_missed):
        q = int(lane[MISSED, t])
        y, m = labels[waiting[q]], int(lane[POINT, q])
        towards, gains = (1, LEFT) if m > y else (-1, RIGHT)
        if rule != FRONTIER:
            grow(costs, rule, m, -inf, q, tile, row)
        elif costs.shape == RUNNING or lane[CLEAR, q] == 1.0:
            for j in range(y, m, towards):
                row[LEVEL, j] = tile[gains, j, q]
        else:
            n_outward = m if m > y else K - 1 - m
            _decreasing_slopes(gains, m - towards, -towards, n_outward, LEVEL, q, tile, row)
        found = _walk(costs, y, m, at, before, after, found, row)
    return found


@inlined
def _walk(costs, y, m, at, before, after, found, row):
    """Write down the steps from the label to the point label, whose levels are in ``row``."""
    K = costs.rank.shape[0]
    towards = 1 if m > y else -1
    near = y
    while costs.rank[y, near] < costs.rank[y, m]:
        level = row[LEVEL, near]
        far = near + towards
        while far != m and level == row[LEVEL, far]:
            far += towards
        if costs.rank[y, far] > costs.rank[y, near]:
            at[found] = level
            before[found] = y * K + near
            after[found] = y * K + far
            found += 1
        near = far
    return found
