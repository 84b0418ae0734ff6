/* The quick test of ROWS rows, one in each lane, for one number type; quick_test.c includes it for both. */

typedef NUMBER NAMED(vector) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef WHOLE NAMED(mask) __attribute__((vector_size(VECTOR_BYTES), may_alias));
#define VECTOR NAMED(vector)
#define MASK NAMED(mask)
#define WIDE (VECTOR_BYTES / (int)sizeof(NUMBER))

INLINE VECTOR NAMED(pick)(MASK mask, VECTOR yes, VECTOR no) {
    return (VECTOR)((mask & (MASK)yes) | (~mask & (MASK)no));
}
INLINE VECTOR NAMED(all)(NUMBER x) { return x - (VECTOR){0}; }

INLINE WHOLE NAMED(some)(MASK mask) {
    WHOLE found = 0;
    for (int q = 0; q < WIDE; q++) found |= mask[q];
    return found;
}

INLINE void NAMED(write)(VECTOR labels, int32_t *to) {
    typedef int32_t narrow __attribute__((vector_size(4 * WIDE)));
    narrow whole = __builtin_convertvector(labels, narrow);
    __builtin_memcpy(to, &whole, sizeof whole);
}

INLINE VECTOR NAMED(labels)(const int64_t *at) {
    typedef int64_t wide __attribute__((vector_size(8 * WIDE)));
    wide whole;
    __builtin_memcpy(&whole, at, sizeof whole);
    return __builtin_convertvector(whole, VECTOR);
}

/* Append the rows that are not clear to the waiting rows; return the number of waiting rows. */
INLINE int64_t NAMED(wait)(MASK wrong, int64_t start, int64_t *waiting, int64_t left) {
    if (NAMED(some)(wrong)) {
        for (int64_t q = 0; q < WIDE; q++) {
            waiting[left] = start + q;
            left += wrong[q] != 0;
        }
    }
    return left;
}

/* A weighted probability; zero where the product could be denormal, which is a hundred times slower on some
   machines. */
INLINE VECTOR NAMED(weigh)(VECTOR p, NUMBER weight) { return (VECTOR)((MASK)p & (p >= TINY)) * weight; }

/* Read rows into lanes, label by label; return which may be invalid. The sum is exact enough: no number takes
   more than SPAN additions, plus one for each SPAN labels. */
INLINE MASK NAMED(load)(const struct rows *rows, const struct quick_test *quick, int64_t first, NUMBER *lane) {
    const int64_t K = rows->n_classes;
    const NUMBER *row = (const NUMBER *)rows->proba + first * K, *end = (const NUMBER *)rows->proba + rows->n * K;
    VECTOR total = {0}, part = {0};
    MASK signs = {0};
    for (int64_t j = 0; j < K; j += WIDE) {
        VECTOR x[WIDE];
        int64_t count = K - j < WIDE ? K - j : WIDE;
        if (end - (row + (WIDE - 1) * K + j) >= WIDE) {
            for (int q = 0; q < WIDE; q++) __builtin_memcpy(x + q, row + q * K + j, sizeof *x);
        } else {
            for (int q = 0; q < WIDE; q++) {
                NUMBER few[WIDE] = {0};
                for (int64_t k = 0; k < count; k++) few[k] = row[q * K + j + k];
                __builtin_memcpy(x + q, few, sizeof *x);
            }
        }
        EACH_STAGE(TRANSPOSE, x)
        for (int64_t k = 0; k < count; k++) {
            part += x[k];
            signs |= (MASK)x[k];
            *(VECTOR *)(lane + (j + k) * WIDE) = x[k];
        }
        if ((j + WIDE) % SPAN == 0 || j + WIDE >= K) {
            total += part;
            part = NAMED(all)(0);
        }
    }
    VECTOR off = (VECTOR)((MASK)(total - 1) & ~SIGN);
    return ~(MASK)(off <= (NUMBER)quick->slack) | (signs < 0);
}

INLINE void NAMED(fetch)(const struct rows *rows, int64_t first) {
    uintptr_t at = (uintptr_t)((const NUMBER *)rows->proba + first * rows->n_classes) + AHEAD * sizeof(NUMBER);
    for (int64_t k = 0; k < WIDE * rows->n_classes * (int64_t)sizeof(NUMBER); k += 64)
        __builtin_prefetch((const void *)(at + (uintptr_t)k), 0, 3);
}

/* Find the label with the largest weighted probability of each row; return whether no other is close to it. */
INLINE MASK NAMED(point)(const struct quick_test *quick, int64_t K, const NUMBER *lane, VECTOR *label) {
    const NUMBER *weights = quick->weights;
    VECTOR best = {0}, second = {0}, found = {0};
    for (int64_t j = 0; j < K; j++) {
        VECTOR weighted = NAMED(weigh)(*(const VECTOR *)(lane + j * WIDE), weights[j]);
        MASK better = weighted > best;
        VECTOR worse = NAMED(pick)(better, best, weighted);
        second = NAMED(pick)(worse > second, worse, second);
        best = NAMED(pick)(better, weighted, best);
        found = NAMED(pick)(better, NAMED(all)((NUMBER)j), found);
    }
    *label = found;
    return (second < best * (NUMBER)quick->below) & (best > (NUMBER)quick->smallest);
}

/* Return whether there are many classes, but not so many that a sum by lanes has larger errors than one by spans. */
INLINE int NAMED(by_row)(int64_t K) { return K > FEW && (K + WIDE - 1) / WIDE + 4 <= (K + SPAN - 1) / SPAN + SPAN; }

/* For WIDE rows, each read in whole vectors: the number of labels whose gain reaches the threshold, the sum of
   their numbers, and the last of them. Return which rows are not clear for another reason. */
INLINE MASK NAMED(count_by_row)(const struct rows *rows, const struct quick_test *quick, int64_t first, VECTOR *count,
                                VECTOR *sum, VECTOR *last) {
    const int64_t K = rows->n_classes;
    const NUMBER *row = (const NUMBER *)rows->proba + first * K, *end = (const NUMBER *)rows->proba + rows->n * K;
    enum { SHIFT = 11 };
    VECTOR total[WIDE], furthest[WIDE], lane;
    MASK found[WIDE], wrong[WIDE], whole, zero = {0};
    for (int q = 0; q < WIDE; q++) {
        lane[q] = (NUMBER)q;
        whole[q] = q;
    }
    for (int q = 0; q < WIDE; q++, row += K) {
        VECTOR here = lane, sum_here = {0}, last_here = {0};
        MASK number = (whole << SHIFT) + 1, number_here = {0}, signs = {0}, near = {0};
        for (int64_t j = 0; j < K; j += WIDE) {
            VECTOR x, nearly, enough;
            __builtin_memcpy(&nearly, (const NUMBER *)quick->nearly + j, sizeof nearly);
            __builtin_memcpy(&enough, (const NUMBER *)quick->enough + j, sizeof enough);
            if (j * (int64_t)sizeof *row % 64 == 0)
                __builtin_prefetch((const void *)((uintptr_t)(row + j) + AHEAD * sizeof *row), 0, 3);
            if (end - (row + j) >= WIDE) {
                __builtin_memcpy(&x, row + j, sizeof x);
                if (j + WIDE > K) x = (VECTOR)((MASK)x & (lane < (NUMBER)(K - j)));
            } else {
                NUMBER few[WIDE] = {0};
                for (int64_t k = 0; k < K - j; k++) few[k] = row[j + k];
                __builtin_memcpy(&x, few, sizeof x);
            }
            MASK inside = x >= enough;
            near |= (x >= nearly) ^ inside;
            signs |= (MASK)x;
            sum_here += x;
            number_here += inside & number;
            last_here = NAMED(pick)(inside, here, last_here);
            number += (MASK)(zero + 1) * (WIDE << SHIFT);
            here += WIDE;
        }
        total[q] = sum_here;
        furthest[q] = last_here;
        found[q] = number_here;
        wrong[q] = near | (signs < 0);
    }
    EACH_STAGE(ADD, total)
    EACH_STAGE(ADD, found)
    EACH_STAGE(EITHER, wrong)
    EACH_STAGE(FURTHER, furthest)
    *count = __builtin_convertvector(found[0] & ((1 << SHIFT) - 1), VECTOR);
    *sum = __builtin_convertvector(found[0] >> SHIFT, VECTOR);
    *last = furthest[0];
    VECTOR off = (VECTOR)((MASK)(total[0] - 1) & ~SIGN);
    return wrong[0] | ~(MASK)(off <= (NUMBER)quick->slack);
}

/* Write the intervals of rows without a gain near the threshold; return the number of waiting rows. */
static int64_t NAMED(sets)(const struct rows *rows, const struct quick_test *quick, int64_t first, int32_t *lower,
                           int32_t *upper, int64_t *waiting, int64_t left, void *room) {
    const int64_t K = rows->n_classes;
    const NUMBER *nearly = quick->nearly, *enough = quick->enough;
    NUMBER *lane = room;
    for (int64_t start = first; start < first + ROWS; start += WIDE) {
        if (NAMED(by_row)(K)) {
            VECTOR count, sum, last;
            MASK wrong = NAMED(count_by_row)(rows, quick, start, &count, &sum, &last);
            if (!NAMED(some)(count < 1)) {
                /* so large only if they are next to each other */
                wrong |= sum != count * last - count * (count - 1) / 2;
                NAMED(write)(last - count + 1, lower + start);
                NAMED(write)(last, upper + start);
                left = NAMED(wait)(wrong, start, waiting, left);
                continue;
            }
        }
        NAMED(fetch)(rows, start);
        MASK wrong = NAMED(load)(rows, quick, start, lane), before = {0};
        VECTOR count = {0}, around = {0}, runs = {0}, last = {0}, one = NAMED(all)(1);
        for (int64_t j = 0; j < K; j++) {
            VECTOR x = *(VECTOR *)(lane + j * WIDE);
            MASK inside = x >= enough[j];
            around += (VECTOR)((MASK)(x >= nearly[j]) & (MASK)one);
            count += (VECTOR)(inside & (MASK)one);
            runs += (VECTOR)(inside & ~before & (MASK)one);
            last = NAMED(pick)(inside, NAMED(all)((NUMBER)j), last);
            before = inside;
        }
        MASK none = count < 1;
        wrong |= (around > count) | (runs > 1);
        VECTOR low = last - count + 1, point;
        if (NAMED(some)(none)) {
            wrong |= none & ~NAMED(point)(quick, K, lane, &point);
            low = NAMED(pick)(none, point, low);
            last = NAMED(pick)(none, point, last);
        }
        NAMED(write)(low, lower + start);
        NAMED(write)(last, upper + start);
        left = NAMED(wait)(wrong, start, waiting, left);
    }
    return left;
}

/* Write the intervals of rows without a running sum near the threshold, here 1; return the number of waiting rows. */
static int64_t NAMED(running_sets)(const struct rows *rows, const struct quick_test *quick, int64_t first,
                                   int32_t *lower, int32_t *upper, int64_t *waiting, int64_t left, void *room) {
    const int64_t K = rows->n_classes;
    const NUMBER *saved_left = quick->left, *saved_right = quick->right;
    const NUMBER below = (NUMBER)quick->below, above = (NUMBER)quick->above;
    NUMBER *lane = room;
    for (int64_t start = first; start < first + ROWS; start += WIDE) {
        NAMED(fetch)(rows, start);
        MASK wrong = NAMED(load)(rows, quick, start, lane), n_left = {0}, n_right = {0}, near = {0};
        VECTOR from_left = {0}, from_right = {0}, best = *(VECTOR *)lane, m = {0};
        for (int64_t j = 0, i = K - 1; j < K - 1; j++, i--) {
            from_left += NAMED(weigh)(*(VECTOR *)(lane + j * WIDE), saved_left[j]);
            from_right += NAMED(weigh)(*(VECTOR *)(lane + i * WIDE), saved_right[i]);
            MASK on_left = from_left >= above, on_right = from_right >= above;
            near |= ((from_left >= below) ^ on_left) | ((from_right >= below) ^ on_right);
            n_left -= ~on_left;
            n_right -= ~on_right;
            VECTOR p = *(VECTOR *)(lane + (j + 1) * WIDE);
            MASK better = p > best;
            best = NAMED(pick)(better, p, best);
            m = NAMED(pick)(better, NAMED(all)((NUMBER)(j + 1)), m);
        }
        VECTOR low = __builtin_convertvector(n_left, VECTOR);
        VECTOR up = (NUMBER)(K - 1) - __builtin_convertvector(n_right, VECTOR);
        NAMED(write)(NAMED(pick)(m < low, m, low), lower + start);
        NAMED(write)(NAMED(pick)(m > up, m, up), upper + start);
        left = NAMED(wait)(wrong | near, start, waiting, left);
    }
    return left;
}

/* Steps of the rows whose label is a block of its own: its gain is less than every one inward and more than
   every one outward. Return the number of waiting rows, and add to the number of steps. */
static int64_t NAMED(steps)(const struct rows *rows, const struct quick_test *quick, int64_t first,
                            const int64_t *labels, double *at, int32_t *before, int32_t *after, int64_t *found,
                            int64_t *waiting, int64_t left, void *room) {
    const int64_t K = rows->n_classes;
    const NUMBER *weights = quick->weights;
    NUMBER *lane = room;
    int64_t n = *found;
    for (int64_t start = first; start < first + ROWS; start += WIDE) {
        NAMED(fetch)(rows, start);
        MASK wrong = NAMED(load)(rows, quick, start, lane), costs_nothing = {0}, pooled;
        VECTOR m, y = NAMED(labels)(labels + start), gain = {0};
        wrong |= ~NAMED(point)(quick, K, lane, &m);
        for (int64_t j = 0; j < K; j++) {
            MASK here = y == (NUMBER)j;
            gain = NAMED(pick)(here, NAMED(weigh)(*(VECTOR *)(lane + j * WIDE), weights[j]), gain);
            if (weights[j] == 0) costs_nothing |= here;
        }
        VECTOR bar = gain * (NUMBER)quick->below, higher_bar = gain * (NUMBER)quick->above;
        MASK upward = m > y;
        VECTOR inward = m - y;
        pooled = ~(MASK)(gain > (NUMBER)quick->smallest);
        for (int64_t j = 0; j < K; j++) {
            VECTOR weighted = NAMED(weigh)(*(VECTOR *)(lane + j * WIDE), weights[j]);
            VECTOR from_y = (NUMBER)j - y, from_m = (NUMBER)j - m;
            pooled |= (from_y * from_m < 0) & (weighted < higher_bar);
            pooled |= (from_y * inward < 0) & (weighted >= bar);
        }
        MASK misses = (y != m) & ~costs_nothing;
        wrong |= misses & pooled;
        left = NAMED(wait)(wrong, start, waiting, left);
        MASK steps = misses & ~wrong & 1, towards = (upward & 2) - 1;
        WHOLE is_step[WIDE], next[WIDE]; /* single lanes are read faster from here */
        __builtin_memcpy(is_step, &steps, sizeof steps);
        __builtin_memcpy(next, &towards, sizeof towards);
        for (int64_t q = 0; q < WIDE; q++) {
            const int64_t label = labels[start + q], entry = label * (K + 1);
            at[n] = (double)lane[label * WIDE + q] * quick->exact_weights[label];
            before[n] = (int32_t)entry;
            after[n] = (int32_t)(entry + next[q]);
            n += is_step[q];
        }
    }
    *found = n;
    return left;
}
