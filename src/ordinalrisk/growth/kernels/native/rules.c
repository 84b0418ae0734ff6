/* The growth rules: levels of one row of a tile, label by label, and sets of all its rows, one in each lane. */

#include "kernels.h"

enum { PAPER, FRONTIER, ADAPTIVE, RPS }; /* as reference.py numbers them */

/* Compute what a rule needs and what is the same computation in every row. */
void INTERNAL(prepare)(const struct tile *tile, const struct costs *costs, int64_t rule) {
    if (rule != RPS) {
        INTERNAL(find_gains)(tile, costs);
        if (rule != FRONTIER) INTERNAL(find_head_and_tail)(tile);
    }
}

/* Levels of one row. */

#define AT(part, label) ((part)[(label) * ROWS + q])

static const double INFINITE = __builtin_inf();

/* The neighbour that removes more risk joins next, until the labels asked for have joined. */
static void paper_levels(const struct tile *tile, const struct costs *costs, int64_t q, int64_t first, int64_t last) {
    int64_t m = (int64_t)tile->point[q], lower = m, upper = m;
    double covered = costs->mode_weights[m] * AT(tile->p, m);
    while (lower > first || upper < last) {
        double risk = costs->weighted ? costs->bound - covered : AT(tile->head, lower) + AT(tile->tail, upper);
        double left = AT(tile->left, lower - 1), right = AT(tile->right, upper + 1);
        if (left > right || (left == right && !costs->weighted)) {
            tile->level[--lower] = risk;
            covered += left;
        } else {
            tile->level[++upper] = risk;
            covered += right;
        }
    }
}

/* Pool adjacent violators, from the point label outward; the blocks, which stay in the tile. */
static int64_t pool(const struct tile *tile, const double *gain, int64_t q, int64_t first, int64_t outward,
                    int64_t count) {
    int64_t blocks = 0;
    for (int64_t t = 0; t < count; t++) {
        double total = AT(gain, first + outward * t), mean = total, size = 1.0;
        while (blocks > 0 && mean > tile->block_mean[blocks - 1]) {
            blocks--;
            total = tile->block_total[blocks] + total;
            size += tile->block_size[blocks];
            mean = total / size;
        }
        tile->block_total[blocks] = total;
        tile->block_mean[blocks] = mean;
        tile->block_size[blocks] = size;
        blocks++;
    }
    return blocks;
}

/* Write the slope of each label's block, at a stride. */
static void spread_slopes(const struct tile *tile, int64_t blocks, double *slope, int64_t stride) {
    for (int64_t b = 0; b < blocks; b++)
        for (double k = 0; k < tile->block_size[b]; k++, slope += stride) *slope = tile->block_mean[b];
}

static void slopes_on_left(const struct tile *tile, int64_t q) {
    int64_t m = (int64_t)tile->point[q];
    spread_slopes(tile, pool(tile, tile->left, q, m - 1, -1, m), tile->level + m - 1, -1);
}

static void slopes_on_right(const struct tile *tile, int64_t q) {
    int64_t m = (int64_t)tile->point[q];
    spread_slopes(tile, pool(tile, tile->right, q, m + 1, 1, tile->n_classes - 1 - m), tile->level + m + 1, 1);
}

static void frontier_ends(const struct tile *tile, int64_t q, double threshold, double *lower, double *upper) {
    int64_t m = (int64_t)tile->point[q], low = m, up = m;
    slopes_on_left(tile, q);
    slopes_on_right(tile, q);
    while (low > 0 && tile->level[low - 1] >= threshold) low--;
    while (up < tile->n_classes - 1 && tile->level[up + 1] >= threshold) up++;
    *lower = (double)low;
    *upper = (double)up;
}

/* Replace the gains of one row by slopes. */
static void pool_row(const struct tile *tile, int64_t q) {
    int64_t m = (int64_t)tile->point[q], K = tile->n_classes;
    slopes_on_left(tile, q);
    slopes_on_right(tile, q);
    for (int64_t j = 0; j < m; j++) AT(tile->left, j) = tile->level[j];
    for (int64_t j = m + 1; j < K; j++) AT(tile->right, j) = tile->level[j];
}

/* The frontier's sets in the frontier's order; the level is the model's risk before a label joins. */
static void adaptive_levels(const struct tile *tile, const struct costs *costs, int64_t q, int64_t first, int64_t last) {
    int64_t m = (int64_t)tile->point[q], lower = m, upper = m;
    if (costs->shape != RUNNING) pool_row(tile, q);
    while (lower > first || upper < last) {
        double risk = AT(tile->head, lower) + AT(tile->tail, upper);
        double left = AT(tile->left, lower - 1), right = AT(tile->right, upper + 1);
        double steepest = left > right ? left : right;
        while (AT(tile->left, lower - 1) == steepest) tile->level[--lower] = risk;
        while (AT(tile->right, upper + 1) == steepest) tile->level[++upper] = risk;
    }
}

static void ranked_probability_levels(const struct tile *tile, int64_t q) {
    const int64_t K = tile->n_classes;
    int64_t m = (int64_t)tile->point[q], median = 0;
    double cumulative = 0, score = 0, *F = tile->head, *level = tile->level;
    for (int64_t j = 0; j < K; j++) {
        cumulative += AT(tile->p, j);
        AT(F, j) = cumulative;
        median += j < K - 1 && cumulative < 0.5;
    }
    for (int64_t k = 0; k < K - 1; k++) {
        double miss = k < median ? AT(F, k) : 1.0 - AT(F, k);
        score += miss * miss;
    }
    level[median] = 0.0 - score;
    double further = score;
    for (int64_t j = median - 1; j >= 0; j--) {
        further += 1.0 - 2.0 * AT(F, j);
        level[j] = 0.0 - further;
    }
    further = score;
    for (int64_t j = median + 1; j < K; j++) {
        further += 2.0 * AT(F, j - 1) - 1.0;
        level[j] = 0.0 - further;
    }
    for (int64_t j = m - 2; j >= 0; j--) level[j] = level[j + 1] < level[j] ? level[j + 1] : level[j];
    for (int64_t j = m + 2; j < K; j++) level[j] = level[j - 1] < level[j] ? level[j - 1] : level[j];
}

/* The levels in one row of the labels from the first to the last and to the point label. */
void INTERNAL(row_levels)(const struct tile *tile, const struct costs *costs, int64_t rule, int64_t q, int64_t first,
                          int64_t last) {
    int64_t m = (int64_t)tile->point[q];
    if (rule == PAPER) {
        paper_levels(tile, costs, q, first, last);
    } else if (rule == FRONTIER && costs->shape == RUNNING) { /* they never rise outward, as they are */
        for (int64_t j = first; j < m; j++) tile->level[j] = AT(tile->left, j);
        for (int64_t j = m + 1; j <= last; j++) tile->level[j] = AT(tile->right, j);
    } else if (rule == FRONTIER) {
        if (first < m) slopes_on_left(tile, q);
        if (last > m) slopes_on_right(tile, q);
    } else if (rule == ADAPTIVE) {
        adaptive_levels(tile, costs, q, first, last);
    } else {
        ranked_probability_levels(tile, q);
    }
    tile->level[m] = INFINITE;
}

/* A set is known without pooling if the runner-up is worse by this share of the threshold. Rounding stays far
   below that if the threshold is at least this share of the largest loss, with at most this many classes. They
   decide how a set is computed, never what belongs to it. */
static const double CLEARLY = 1e-5, SMALLEST_CLEAR_THRESHOLD = 1e-4;
static const double FAR_FROM_DENORMAL = 1e-280, FAR_FROM_OVERFLOW = 1e290;
enum { MOST_CLEAR_CLASSES = 1000 };

/* Sets at a threshold; both ends of each, as numbers in lanes. */

/* Running sums never rise outward, so they are the frontier's levels. */
static void ends_of_falling_gains(const struct tile *tile, const struct costs *costs, double threshold,
                                  double *lower, double *upper) {
    const int64_t K = tile->n_classes;
    EACH_PAIR(v) {
        doubles from_left[2] = {{0}}, from_right[2] = {{0}}, n_left[2] = {{0}}, n_right[2] = {{0}};
        for (int64_t j = 0, i = K - 1; j < K - 1; j++, i--)
            OF_PAIR(k) {
                const double *p = tile->p + v + k * LANES;
                from_left[k] += *lanes(p + j * ROWS) * costs->left_diagonal[j];
                from_right[k] += *lanes(p + i * ROWS) * costs->right_diagonal[i];
                n_left[k] += where(from_left[k] < threshold, spread(1.0));
                n_right[k] += where(from_right[k] < threshold, spread(1.0));
            }
        OF_PAIR(k) {
            const doubles m = *lanes(tile->point + v + k * LANES);
            *lanes(lower + v + k * LANES) = lesser(n_left[k], m);
            *lanes(upper + v + k * LANES) = greater((double)(K - 1) - n_right[k], m);
        }
    }
}

/* Find the end with the least risk plus price, from one end of the scale inward to the point label. */
INLINE doubles cheapest(const double *gain, doubles n_inward, int64_t first, int64_t inward, int64_t K, double price,
                        doubles *gap) {
    doubles total = {0}, best = {0}, second = spread(__builtin_inf()), end = {0};
    for (int64_t t = 1; t < K; t++) {
        total += *lanes(gain + (first + inward * (t - 1)) * ROWS);
        doubles value = pick((double)t <= n_inward, total - (double)t * price, spread(__builtin_inf()));
        words better = value < best;
        second = lesser(pick(better, best, value), second);
        best = pick(better, value, best);
        end = pick(better, spread((double)t), end);
    }
    *gap = lesser(second - best, *gap);
    return (double)first + (double)inward * end;
}

/* Find the frontier's intervals, without pooling where they are clear.

   The lower end minimises H(l) + threshold * (m - l): what stays at risk, plus the price of the labels. Where
   every other label is clearly worse, no level is near the threshold, and rounding can't have moved the
   minimum. Likewise the upper end. */
static void clear_ends(const struct tile *tile, const struct costs *costs, double threshold, double *lower,
                       double *upper) {
    const int64_t K = tile->n_classes;
    double smallest = SMALLEST_CLEAR_THRESHOLD * costs->bound;
    smallest = smallest > FAR_FROM_DENORMAL ? smallest : FAR_FROM_DENORMAL;
    const int reliable = smallest < threshold && threshold < FAR_FROM_OVERFLOW && K <= MOST_CLEAR_CLASSES;
    EACH_VECTOR(v) {
        doubles m = *lanes(tile->point + v), gap = spread(__builtin_inf());
        words clear = {0};
        if (reliable) {
            *lanes(lower + v) = cheapest(tile->left + v, m, 0, 1, K, threshold, &gap);
            *lanes(upper + v) = cheapest(tile->right + v, (double)(K - 1) - m, K - 1, -1, K, threshold, &gap);
            clear = gap > CLEARLY * threshold;
        }
        for (int64_t q = 0; q < LANES; q++)
            if (!clear[q] && v + q < tile->count) frontier_ends(tile, v + q, threshold, lower + v + q, upper + v + q);
    }
}

/* Gather one number of a part for each lane; a place counts from the first label of the lane's row. */
INLINE doubles gather(const double *part, words place) {
    doubles found;
    for (int q = 0; q < LANES; q++) found[q] = part[place[q] + q];
    return found;
}

INLINE words places(const double *label) {
    words place;
    for (int q = 0; q < LANES; q++) place[q] = (int64_t)label[q] * ROWS;
    return place;
}

INLINE void write_labels(words place, double *label) {
    for (int q = 0; q < LANES; q++) label[q] = (double)(place[q] / ROWS);
}

static void paper_ends(const struct tile *tile, const struct costs *costs, double threshold, double *lower,
                       double *upper) {
    EACH_PAIR(v) {
        words low[2], up[2], growing[2];
        doubles covered[2];
        OF_PAIR(k) {
            const double *m = tile->point + v + k * LANES;
            low[k] = up[k] = places(m);
            doubles weight;
            for (int q = 0; q < LANES; q++) weight[q] = costs->mode_weights[(int64_t)m[q]];
            covered[k] = weight * gather(tile->p + v + k * LANES, low[k]);
        }
        do {
            OF_PAIR(k) {
                const int64_t at = v + k * LANES;
                doubles on_left = gather(tile->left + at, low[k] - ROWS);
                doubles on_right = gather(tile->right + at, up[k] + ROWS);
                doubles risk;
                words goes_left = on_left > on_right;
                if (costs->weighted) {
                    risk = costs->bound - covered[k];
                } else {
                    risk = gather(tile->head + at, low[k]) + gather(tile->tail + at, up[k]);
                    goes_left |= on_left == on_right;
                }
                growing[k] = ~(words)(risk < threshold) & ((on_left >= 0) | (on_right >= 0));
                goes_left &= growing[k];
                covered[k] += where(growing[k], pick(goes_left, on_left, on_right));
                low[k] -= goes_left & ROWS;
                up[k] += growing[k] & ~goes_left & ROWS;
            }
        } while (any(growing[0] | growing[1]));
        OF_PAIR(k) {
            write_labels(low[k], lower + v + k * LANES);
            write_labels(up[k], upper + v + k * LANES);
        }
    }
}

/* Rounding can't matter if all gains further out are less than this share of the level of a block. */
static const double LESS = 1 - 1e-9;

/* Pool the rows where pooling could change a set: where a gain rises outward among labels that could belong to it.
   Afterwards the gains are the frontier's levels, as far as the set can reach. */
static void pool_where_needed(const struct tile *tile, const struct costs *costs, double threshold) {
    const int64_t K = tile->n_classes;
    if (costs->shape == RUNNING) return;
    EACH_PAIR(v) {
        doubles m[2], head_at_m[2], tail_at_m[2], most_left[2] = {{0}}, most_right[2] = {{0}};
        words rises[2] = {{0}};
        OF_PAIR(k) {
            words place = places(tile->point + v + k * LANES);
            m[k] = *lanes(tile->point + v + k * LANES);
            head_at_m[k] = gather(tile->head + v + k * LANES, place);
            tail_at_m[k] = gather(tile->tail + v + k * LANES, place);
        }
        for (int64_t j = 0, i = K - 1; j < K - 1; j++, i--)
            OF_PAIR(k) {
                const int64_t here = j * ROWS + v + k * LANES, there = i * ROWS + v + k * LANES;
                doubles on_left = *lanes(tile->left + here), on_right = *lanes(tile->right + there);
                doubles risk = *lanes(tile->head + here + ROWS) + tail_at_m[k];
                rises[k] |= ((double)j < m[k]) & ~(words)(risk < threshold) & (on_left * LESS < most_left[k]);
                risk = head_at_m[k] + *lanes(tile->tail + there - ROWS);
                rises[k] |= ((double)i > m[k]) & ~(words)(risk < threshold) & (on_right * LESS < most_right[k]);
                most_left[k] = greater(on_left, most_left[k]);
                most_right[k] = greater(on_right, most_right[k]);
            }
        OF_PAIR(k) if (any(rises[k]))
            for (int64_t q = 0, row = v + k * LANES; q < LANES; q++, row++)
                if (rises[k][q] && row < tile->count) pool_row(tile, row);
    }
}

static void adaptive_ends(const struct tile *tile, const struct costs *costs, double threshold, double *lower,
                          double *upper) {
    pool_where_needed(tile, costs, threshold);
    EACH_PAIR(v) {
        words low[2], up[2], stopped[2] = {{0}};
        doubles slope[2] = {spread(-2.0), spread(-2.0)};
        OF_PAIR(k) low[k] = up[k] = places(tile->point + v + k * LANES);
        do {
            OF_PAIR(k) {
                const int64_t at = v + k * LANES;
                doubles on_left = gather(tile->left + at, low[k] - ROWS);
                doubles on_right = gather(tile->right + at, up[k] + ROWS);
                doubles risk = gather(tile->head + at, low[k]) + gather(tile->tail + at, up[k]);
                words same = (on_left == slope[k]) | (on_right == slope[k]);
                stopped[k] |= ~same & ((words)(risk < threshold) | ((on_left < 0) & (on_right < 0)));
                slope[k] = pick(same, slope[k], greater(on_left, on_right));
                words goes_left = ~stopped[k] & (on_left == slope[k]);
                low[k] -= goes_left & ROWS;
                up[k] += ~stopped[k] & ~goes_left & ROWS;
            }
        } while (any(~(stopped[0] & stopped[1])));
        OF_PAIR(k) {
            write_labels(low[k], lower + v + k * LANES);
            write_labels(up[k], upper + v + k * LANES);
        }
    }
}

static void ranked_probability_ends(const struct tile *tile, double threshold, double *lower, double *upper) {
    const int64_t K = tile->n_classes;
    EACH_PAIR(v) {
        doubles m[2], cumulative[2] = {{0}}, score_of_median[2] = {{0}}, median[2] = {{0}}, low[2], up[2], score[2];
        for (int64_t j = 0; j < K - 1; j++)
            OF_PAIR(k) {
                const int64_t here = j * ROWS + v + k * LANES;
                cumulative[k] += *lanes(tile->p + here);
                *lanes(tile->head + here) = cumulative[k];
                words below = cumulative[k] < 0.5;
                doubles miss = pick(below, cumulative[k], 1.0 - cumulative[k]);
                score_of_median[k] += miss * miss;
                median[k] += where(below, spread(1.0));
            }
        OF_PAIR(k) {
            m[k] = *lanes(tile->point + v + k * LANES);
            score[k] = score_of_median[k];
            words out = (0.0 - score[k]) < threshold;
            low[k] = where(out & (median[k] < m[k]), median[k] + 1);
            up[k] = pick(out & (median[k] > m[k]), median[k] - 1, spread((double)(K - 1)));
        }
        for (int64_t j = K - 2; j >= 0; j--)
            OF_PAIR(k) {
                double here = (double)j;
                words below = here < median[k];
                score[k] += where(below, 1.0 - 2.0 * *lanes(tile->head + j * ROWS + v + k * LANES));
                words out = below & ((0.0 - score[k]) < threshold);
                low[k] = greater(low[k], where(out & (here < m[k]), spread(here + 1)));
                up[k] = pick(out & (here > m[k]), lesser(up[k], spread(here - 1)), up[k]);
            }
        OF_PAIR(k) score[k] = score_of_median[k];
        for (int64_t j = 1; j < K; j++)
            OF_PAIR(k) {
                double here = (double)j;
                words above = here > median[k];
                score[k] += where(above, 2.0 * *lanes(tile->head + (j - 1) * ROWS + v + k * LANES) - 1.0);
                words out = above & ((0.0 - score[k]) < threshold);
                low[k] = greater(low[k], where(out & (here < m[k]), spread(here + 1)));
                up[k] = pick(out & (here > m[k]), lesser(up[k], spread(here - 1)), up[k]);
            }
        OF_PAIR(k) {
            *lanes(lower + v + k * LANES) = low[k];
            *lanes(upper + v + k * LANES) = up[k];
        }
    }
}

void INTERNAL(ends)(const struct tile *tile, const struct costs *costs, int64_t rule, double threshold,
                    double *lower, double *upper) {
    if (rule == RPS) {
        ranked_probability_ends(tile, threshold, lower, upper);
    } else if (rule == FRONTIER && costs->shape == RUNNING) {
        ends_of_falling_gains(tile, costs, threshold, lower, upper);
    } else {
        INTERNAL(find_gains)(tile, costs);
        if (rule == FRONTIER) {
            clear_ends(tile, costs, threshold, lower, upper);
        } else if (rule == PAPER) {
            if (!costs->weighted) INTERNAL(find_head_and_tail)(tile);
            paper_ends(tile, costs, threshold, lower, upper);
        } else {
            INTERNAL(find_head_and_tail)(tile);
            adaptive_ends(tile, costs, threshold, lower, upper);
        }
    }
}
