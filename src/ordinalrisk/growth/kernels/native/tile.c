/* A tile of rows, one in each lane, and the kernels that Python calls.

   Computations that are the same in each row run across rows in vector lanes. Rows with a result that rounding
   can't change are settled before, by the quick test. */

#include "kernels.h"

enum { PARTS = 5, ROW_PARTS = 4 };

/* The workspace has the same size in every variant, so that a variant can use the workspace of another. */

enum { MOST_VECTOR_BYTES = 64 };

int64_t EXPORT(room_for)(int64_t n_classes) {
    int64_t numbers = PARTS * (n_classes + 2) * ROWS + ROW_PARTS * n_classes + ROWS;
    return numbers * (int64_t)sizeof(double) + MOST_VECTOR_BYTES;
}

static struct tile tile_in(void *room, int64_t n_classes) {
    double *at = (double *)(((uintptr_t)room + MOST_VECTOR_BYTES - 1) / MOST_VECTOR_BYTES * MOST_VECTOR_BYTES);
    struct tile tile = {.n_classes = n_classes, .point = at};
    double **part[PARTS] = {&tile.p, &tile.left, &tile.right, &tile.head, &tile.tail};
    at += ROWS;
    for (int k = 0; k < PARTS; k++) {
        *part[k] = at + ROWS;
        at += (n_classes + 2) * ROWS;
    }
    double **row_part[ROW_PARTS] = {&tile.level, &tile.block_total, &tile.block_mean, &tile.block_size};
    for (int k = 0; k < ROW_PARTS; k++) {
        *row_part[k] = at;
        at += n_classes;
    }
    for (int64_t q = -ROWS; q < 0; q++) tile.left[q] = tile.right[q] = -1.0;
    for (int64_t q = n_classes * ROWS; q < (n_classes + 1) * ROWS; q++) tile.left[q] = tile.right[q] = -1.0;
    return tile;
}

/* Rows into the tile. */

#if VECTOR_BYTES == 64
typedef float some_floats __attribute__((vector_size(32)));
#elif VECTOR_BYTES == 32
typedef float some_floats __attribute__((vector_size(16)));
#else
typedef float some_floats __attribute__((vector_size(8)));
#endif

/* Read LANES labels of one row, or the last few, but not past the end of the array. */
INLINE doubles labels_at(const char *at, const char *end, int64_t count, int64_t bytes) {
    if (count >= LANES || end - at >= LANES * bytes) {
        if (bytes == 4) {
            some_floats x;
            __builtin_memcpy(&x, at, sizeof x);
            return __builtin_convertvector(x, doubles);
        }
        doubles x;
        __builtin_memcpy(&x, at, sizeof x);
        return x;
    }
    double few[LANES] __attribute__((aligned(VECTOR_BYTES))) = {0};
    for (int64_t k = 0; k < count; k++) {
        float x;
        if (bytes == 4) {
            __builtin_memcpy(&x, at + 4 * k, 4);
            few[k] = x;
        } else {
            __builtin_memcpy(few + k, at + 8 * k, 8);
        }
    }
    return *lanes(few);
}

/* Turn rows into lanes; return which are not probability vectors. */
INLINE words load_lanes(const struct tile *tile, const struct rows *rows, int64_t v, int64_t bytes) {
    const int64_t K = tile->n_classes;
    const char *end = (const char *)rows->proba + rows->n * K * bytes, *row[LANES];
    for (int q = 0; q < LANES; q++) {
        int64_t number = tile->number[v + q < tile->count ? v + q : 0];
        row[q] = (const char *)rows->proba + number * K * bytes;
    }
    doubles total = {0};
    words wrong = {0};
    double *p = tile->p + v;
    for (int64_t j = 0; j < K; j += LANES) {
        doubles x[LANES];
        for (int q = 0; q < LANES; q++) x[q] = labels_at(row[q] + j * bytes, end, K - j, bytes);
        EACH_STAGE_OF_DOUBLES(TRANSPOSE, x)
        int64_t count = K - j < LANES ? K - j : LANES;
        for (int64_t k = 0; k < count; k++) {
            total += x[k];
            wrong |= x[k] < 0;
            *lanes(p + (j + k) * ROWS) = magnitude(x[k]); /* a minus zero is a zero */
        }
    }
    return wrong | ~(words)(magnitude(total - 1) <= rows->tolerance); /* so that a NaN is wrong */
}

/* Copy rows to the tile; return the number of the first that is not a probability vector, if any. */
static int64_t load(struct tile *tile, const struct rows *rows, const int64_t *number, int64_t count) {
    words wrong[VECTORS], some = {0};
    tile->number = number;
    tile->count = count;
    for (int k = 0; k < VECTORS; k++) {
        wrong[k] = rows->bytes == 4 ? load_lanes(tile, rows, k * LANES, 4) : load_lanes(tile, rows, k * LANES, 8);
        some |= wrong[k];
    }
    if (any(some))
        for (int64_t q = 0; q < count; q++)
            if (wrong[q / LANES][q % LANES]) return number[q];
    return ALL_VALID;
}

/* Sums that every row needs. */

static void full_gains(const struct tile *tile, const struct costs *costs);

void INTERNAL(find_gains)(const struct tile *tile, const struct costs *costs) {
    const int64_t K = tile->n_classes;
    if (costs->shape == FULL) {
        full_gains(tile, costs);
        return;
    }
    const words running = (words){0} - (costs->shape == RUNNING);
    EACH_PAIR(v) {
        const double *p = tile->p + v;
        double *left = tile->left + v, *right = tile->right + v;
        doubles from_left[2] = {{0}}, from_right[2] = {{0}};
        for (int64_t j = 0, i = K - 1; j < K; j++, i--)
            OF_PAIR(k) {
                doubles here = *lanes(p + j * ROWS + k * LANES) * costs->left_diagonal[j];
                doubles there = *lanes(p + i * ROWS + k * LANES) * costs->right_diagonal[i];
                from_left[k] = where(running, from_left[k]) + here;
                from_right[k] = where(running, from_right[k]) + there;
                *lanes(left + j * ROWS + k * LANES) = from_left[k];
                *lanes(right + i * ROWS + k * LANES) = from_right[k];
            }
    }
}

/* Four labels at a time; the tables hold zeros where a label has no term, and adding 0 changes no bit. */
static void full_gains(const struct tile *tile, const struct costs *costs) {
    const int64_t K = tile->n_classes;
    EACH_VECTOR(v) {
        for (int64_t j = 0; j < K; j += 4) {
            const int64_t most = K - j < 4 ? K - j : 4;
            const double *row[4], *other[4];
            for (int64_t k = 0; k < 4; k++) {
                row[k] = costs->left + (j + (k < most ? k : 0)) * K;
                other[k] = costs->right + (j + (k < most ? k : 0)) * K;
            }
            doubles sum[4] = {{0}}, sum_right[4] = {{0}};
            for (int64_t i = 0; i < j + most; i++) {
                doubles p = *lanes(tile->p + i * ROWS + v);
                for (int k = 0; k < 4; k++) sum[k] += p * row[k][i];
            }
            for (int64_t i = K - 1; i >= j; i--) {
                doubles p = *lanes(tile->p + i * ROWS + v);
                for (int k = 0; k < 4; k++) sum_right[k] += p * other[k][i];
            }
            for (int64_t k = 0; k < most; k++) {
                *lanes(tile->left + (j + k) * ROWS + v) = sum[k];
                *lanes(tile->right + (j + k) * ROWS + v) = sum_right[k];
            }
        }
    }
}

void INTERNAL(find_head_and_tail)(const struct tile *tile) {
    const int64_t K = tile->n_classes;
    EACH_PAIR(v) {
        doubles head[2] = {{0}}, tail[2] = {{0}};
        for (int64_t j = 0, i = K - 1; j < K; j++, i--)
            OF_PAIR(k) {
                const int64_t here = j * ROWS + v + k * LANES, there = i * ROWS + v + k * LANES;
                *lanes(tile->head + here) = head[k];
                *lanes(tile->tail + there) = tail[k];
                head[k] += *lanes(tile->left + here);
                tail[k] += *lanes(tile->right + there);
            }
    }
}

/* The label that each interval grows from, the leftmost on a tie. */
static void find_points(const struct tile *tile, const struct rows *rows, const struct costs *costs, int64_t how) {
    const int64_t K = tile->n_classes;
    if (how == GIVEN) {
        for (int64_t q = 0; q < ROWS; q++) tile->point[q] = (double)rows->given[tile->number[q < tile->count ? q : 0]];
        return;
    }
    if (how == BAYES) {
        INTERNAL(find_gains)(tile, costs);
        INTERNAL(find_head_and_tail)(tile);
    }
    EACH_PAIR(v) {
        const double *p = tile->p + v, *head = tile->head + v, *tail = tile->tail + v;
        doubles label[2] = {{0}};
        if (how == MODE) {
            doubles best[2] = {spread(-1.0), spread(-1.0)};
            for (int64_t j = 0; j < K; j++)
                OF_PAIR(k) {
                    doubles score = *lanes(p + j * ROWS + k * LANES) * costs->mode_weights[j];
                    words better = score > best[k];
                    best[k] = pick(better, score, best[k]);
                    label[k] = pick(better, spread((double)j), label[k]);
                }
        } else if (how == BAYES) {
            doubles least[2] = {spread(__builtin_inf()), spread(__builtin_inf())};
            for (int64_t j = 0; j < K; j++)
                OF_PAIR(k) {
                    doubles risk = *lanes(head + j * ROWS + k * LANES) + *lanes(tail + j * ROWS + k * LANES);
                    words better = risk < least[k];
                    least[k] = pick(better, risk, least[k]);
                    label[k] = pick(better, spread((double)j), label[k]);
                }
        } else {
            doubles cumulative[2] = {{0}};
            for (int64_t j = 0; j < K - 1; j++)
                OF_PAIR(k) {
                    cumulative[k] += *lanes(p + j * ROWS + k * LANES);
                    label[k] += where(cumulative[k] < 0.5, spread(1.0));
                }
        }
        OF_PAIR(k) *lanes(tile->point + v + k * LANES) = label[k];
    }
}

static int64_t read_tile(struct tile *tile, const struct rows *rows, const struct costs *costs, int64_t point,
                         const int64_t *number, int64_t count) {
    int64_t bad = load(tile, rows, number, count);
    if (bad == ALL_VALID) find_points(tile, rows, costs, point);
    return bad;
}

/* The kernels. */

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Remove the first waiting rows and move the others up; return how many still wait. */
static int64_t leave(int64_t count, int64_t *waiting, int64_t left) {
    for (int64_t q = count; q < left; q++) waiting[q - count] = waiting[q];
    return left - count;
}

static int64_t all_wait(int64_t first, int64_t end, int64_t *waiting, int64_t left) {
    for (int64_t i = first; i < end; i++) waiting[left++] = i;
    return left;
}

int64_t EXPORT(point_labels)(const struct rows *rows, const struct costs *costs, int64_t point, int64_t *points,
                             void *room) {
    struct tile tile = tile_in(room, rows->n_classes);
    int64_t number[ROWS];
    for (int64_t start = 0; start < rows->n; start += ROWS) {
        int64_t count = all_wait(start, least(start + ROWS, rows->n), number, 0);
        int64_t bad = read_tile(&tile, rows, costs, point, number, count);
        if (bad != ALL_VALID) return bad;
        for (int64_t q = 0; q < count; q++) points[start + q] = (int64_t)tile.point[q];
    }
    return ALL_VALID;
}

int64_t EXPORT(levels)(const struct rows *rows, const struct costs *costs, int64_t rule, int64_t point, double *out,
                       void *room) {
    const int64_t K = rows->n_classes;
    struct tile tile = tile_in(room, K);
    int64_t number[ROWS];
    for (int64_t start = 0; start < rows->n; start += ROWS) {
        int64_t count = all_wait(start, least(start + ROWS, rows->n), number, 0);
        int64_t bad = read_tile(&tile, rows, costs, point, number, count);
        if (bad != ALL_VALID) return bad;
        INTERNAL(prepare)(&tile, costs, rule);
        for (int64_t q = 0; q < count; q++) {
            INTERNAL(row_levels)(&tile, costs, rule, q, 0, K - 1);
            __builtin_memcpy(out + (start + q) * K, tile.level, (size_t)K * sizeof(double));
        }
    }
    return ALL_VALID;
}

int64_t EXPORT(intervals)(const struct rows *rows, const struct costs *costs, int64_t rule, int64_t point,
                          double threshold, const struct quick_test *quick, int32_t *lower, int32_t *upper,
                          void *room) {
    struct tile tile = tile_in(room, rows->n_classes);
    int64_t waiting[2 * ROWS], left = 0, next = 0;
    double low[ROWS] __attribute__((aligned(64))), up[ROWS] __attribute__((aligned(64)));
    while (next < rows->n || left > 0) {
        while (next < rows->n && left < ROWS) {
            int64_t stop = least(next + ROWS, rows->n);
            if (quick->at && next + ROWS <= rows->n)
                left = INTERNAL(sets_of_rows)(rows, quick, next, lower, upper, waiting, left, tile.left);
            else
                left = all_wait(next, stop, waiting, left);
            next = stop;
        }
        int64_t count = least(ROWS, left);
        if (count == 0) continue;
        int64_t bad = read_tile(&tile, rows, costs, point, waiting, count);
        if (bad != ALL_VALID) return bad;
        INTERNAL(ends)(&tile, costs, rule, threshold, low, up);
        for (int64_t q = 0; q < count; q++) {
            lower[waiting[q]] = (int32_t)low[q];
            upper[waiting[q]] = (int32_t)up[q];
        }
        left = leave(count, waiting, left);
    }
    return ALL_VALID;
}

/* Write the steps from the label to the point label, whose levels are given; return their number. */
static int64_t walk(const struct costs *costs, const double *level, int64_t y, int64_t m, double *at, int32_t *before,
                    int32_t *after) {
    const int64_t K = costs->n_classes, towards = m > y ? 1 : -1, *rank = costs->rank + y * K;
    int64_t found = 0, near = y;
    while (rank[near] < rank[m]) {
        double here = level[near];
        int64_t far = near + towards;
        while (far != m && level[far] == here) far += towards;
        if (rank[far] > rank[near]) {
            at[found] = here;
            before[found] = (int32_t)(y * K + near);
            after[found] = (int32_t)(y * K + far);
            found++;
        }
        near = far;
    }
    return found;
}

/* Write steps until the room is full or no rows are left; return the first invalid row, and in progress the rows
   done and the steps found. Room for as many steps as the rows can have is always enough. */
int64_t EXPORT(steps)(const struct rows *rows, const struct costs *costs, int64_t rule, int64_t point,
                      const struct quick_test *quick, const int64_t *labels, double *at, int32_t *before,
                      int32_t *after, int64_t most, int64_t *progress, void *room) {
    const int64_t K = rows->n_classes, of_row = costs->one_step ? 1 : K - 1;
    struct tile tile = tile_in(room, K);
    int64_t waiting[2 * ROWS], left = 0, next = 0, found = 0, fits = 1;
    while ((next < rows->n && fits) || left > 0) {
        while (next < rows->n && left < ROWS) {
            int64_t stop = least(next + ROWS, rows->n);
            fits = found + (left + stop - next) * of_row <= most;
            if (!fits) break;
            if (quick->at && next + ROWS <= rows->n)
                left = INTERNAL(steps_of_rows)(rows, quick, next, labels, at, before, after, &found, waiting, left,
                                               tile.left);
            else
                left = all_wait(next, stop, waiting, left);
            next = stop;
        }
        int64_t count = least(ROWS, left);
        if (count == 0) continue;
        int64_t bad = read_tile(&tile, rows, costs, point, waiting, count);
        if (bad != ALL_VALID) return bad;
        INTERNAL(prepare)(&tile, costs, rule);
        for (int64_t q = 0; q < count; q++) {
            int64_t y = labels[waiting[q]], m = (int64_t)tile.point[q];
            if (costs->rank[y * K + m] == 0) continue;
            INTERNAL(row_levels)(&tile, costs, rule, q, y, y);
            found += walk(costs, tile.level, y, m, at + found, before + found, after + found);
        }
        left = leave(count, waiting, left);
    }
    progress[0] = next;
    progress[1] = found;
    return ALL_VALID;
}

/* The intervals of one tile by the quick test; returns the number of rows left to do. */
int64_t EXPORT(sets_by_quick_test)(const struct rows *rows, const struct quick_test *quick, int64_t first,
                                   int32_t *lower, int32_t *upper, int64_t *waiting, void *room) {
    struct tile tile = tile_in(room, rows->n_classes);
    return INTERNAL(sets_of_rows)(rows, quick, first, lower, upper, waiting, 0, tile.left);
}

/* Copy rows from columns at these addresses; in a column, each row is a stride in bytes after the one before. */
void EXPORT(copy_rows)(const int64_t *addresses, int64_t stride, int64_t bytes, char *copy, int64_t n, int64_t K) {
    if (bytes == 4) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < K; j++)
                __builtin_memcpy(copy + (i * K + j) * 4, (const char *)(uintptr_t)addresses[j] + i * stride, 4);
    } else {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < K; j++)
                __builtin_memcpy(copy + (i * K + j) * 8, (const char *)(uintptr_t)addresses[j] + i * stride, 8);
    }
}
