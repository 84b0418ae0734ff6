/* What the kernels share: vectors with one row in each lane, the cost table, and a tile of rows.

   Every rule mirrors its namesake in reference.py and gives the same bits: float64 arithmetic, sums in the
   stated order, nothing fused. A lane never mixes with its neighbours, so the width of a vector changes no
   result. Each file is compiled once for each kind of processor; VARIANT becomes part of every name. */

#ifndef ORDINALRISK_KERNELS_H
#define ORDINALRISK_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define JOINED_(name, variant) name##_##variant
#define JOINED(name, variant) JOINED_(name, variant)
#define INTERNAL(name) JOINED(name, VARIANT)
#if defined(_WIN32)
#define EXPORT(name) __declspec(dllexport) JOINED(name, VARIANT)
#else
#define EXPORT(name) __attribute__((visibility("default"))) JOINED(name, VARIANT)
#endif
#define INLINE static inline __attribute__((always_inline))

/* Vectors */

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
enum { LANES = VECTOR_BYTES / 8, ROWS = 16, VECTORS = ROWS / LANES };

typedef double doubles __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef int64_t words __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef float floats __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef int32_t half_words __attribute__((vector_size(VECTOR_BYTES), may_alias));

INLINE doubles spread(double x) { return x - (doubles){0}; }
INLINE doubles pick(words mask, doubles yes, doubles no) {
    return (doubles)((mask & (words)yes) | (~mask & (words)no));
}
INLINE doubles where(words mask, doubles yes) { return (doubles)(mask & (words)yes); }
INLINE doubles magnitude(doubles x) { return (doubles)((words)x & INT64_MAX); }
INLINE doubles lesser(doubles a, doubles b) { return pick(a < b, a, b); }
INLINE doubles greater(doubles a, doubles b) { return pick(a > b, a, b); }
#define EACH_VECTOR(v) for (int64_t v = 0; v < ROWS; v += LANES)
/* Two vectors side by side, where each number needs the one before: one adds while the other waits. */
#define EACH_PAIR(v) for (int64_t v = 0; v < ROWS; v += 2 * LANES)
#define OF_PAIR(k) for (int k = 0; k < 2; k++)
INLINE doubles *lanes(const double *at) { return (doubles *)at; }
INLINE int64_t any(words mask) {
    int64_t some = 0;
    for (int q = 0; q < LANES; q++) some |= mask[q];
    return some;
}

/* Shuffles take lane numbers: of the first vector, then of the second. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLED(a, b, kind, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLED(a, b, kind, ...) __builtin_shuffle(a, b, (kind){__VA_ARGS__})
#endif

/* Exchange ever larger blocks of lanes between vectors: of two vectors, one has the lanes whose number lacks the
   bit of the distance, the other has those with it. All of it turns rows of numbers into lanes; adding both each
   time (or what else combines them) leaves in lane i the sum of the i-th vector's lanes. */
#define LIST(...) __VA_ARGS__
#if VECTOR_BYTES == 64
#define EACH_STAGE_OF_FLOATS(DO, x) \
    DO(x, 16, 1, half_words, \
       LIST(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30), \
       LIST(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)) \
    DO(x, 16, 2, half_words, \
       LIST(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29), \
       LIST(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)) \
    DO(x, 16, 4, half_words, \
       LIST(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27), \
       LIST(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)) \
    DO(x, 16, 8, half_words, \
       LIST(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23), \
       LIST(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
#define EACH_STAGE_OF_DOUBLES(DO, x) \
    DO(x, 8, 1, words, LIST(0, 8, 2, 10, 4, 12, 6, 14), LIST(1, 9, 3, 11, 5, 13, 7, 15)) \
    DO(x, 8, 2, words, LIST(0, 1, 8, 9, 4, 5, 12, 13), LIST(2, 3, 10, 11, 6, 7, 14, 15)) \
    DO(x, 8, 4, words, LIST(0, 1, 2, 3, 8, 9, 10, 11), LIST(4, 5, 6, 7, 12, 13, 14, 15))
#elif VECTOR_BYTES == 32
#define EACH_STAGE_OF_FLOATS(DO, x) \
    DO(x, 8, 1, half_words, LIST(0, 8, 2, 10, 4, 12, 6, 14), LIST(1, 9, 3, 11, 5, 13, 7, 15)) \
    DO(x, 8, 2, half_words, LIST(0, 1, 8, 9, 4, 5, 12, 13), LIST(2, 3, 10, 11, 6, 7, 14, 15)) \
    DO(x, 8, 4, half_words, LIST(0, 1, 2, 3, 8, 9, 10, 11), LIST(4, 5, 6, 7, 12, 13, 14, 15))
#define EACH_STAGE_OF_DOUBLES(DO, x) \
    DO(x, 4, 1, words, LIST(0, 4, 2, 6), LIST(1, 5, 3, 7)) \
    DO(x, 4, 2, words, LIST(0, 1, 4, 5), LIST(2, 3, 6, 7))
#else
#define EACH_STAGE_OF_FLOATS(DO, x) \
    DO(x, 4, 1, half_words, LIST(0, 4, 2, 6), LIST(1, 5, 3, 7)) \
    DO(x, 4, 2, half_words, LIST(0, 1, 4, 5), LIST(2, 3, 6, 7))
#define EACH_STAGE_OF_DOUBLES(DO, x) \
    DO(x, 2, 1, words, LIST(0, 2), LIST(1, 3))
#endif
#define TRANSPOSE(x, width, distance, kind, ones, others)                             \
    for (int i = 0; i < (width); i++)                                                 \
        if (!(i & (distance))) {                                                      \
            __typeof__(*(x)) one = SHUFFLED((x)[i], (x)[i + (distance)], kind, ones); \
            (x)[i + (distance)] = SHUFFLED((x)[i], (x)[i + (distance)], kind, others); \
            (x)[i] = one;                                                             \
        }
#define ADD(x, width, distance, kind, ones, others)                      \
    for (int i = 0; i < (width); i += 2 * (distance))                    \
        (x)[i] = SHUFFLED((x)[i], (x)[i + (distance)], kind, ones) +     \
                 SHUFFLED((x)[i], (x)[i + (distance)], kind, others);
#define EITHER(x, width, distance, kind, ones, others)                   \
    for (int i = 0; i < (width); i += 2 * (distance))                    \
        (x)[i] = SHUFFLED((x)[i], (x)[i + (distance)], kind, ones) |     \
                 SHUFFLED((x)[i], (x)[i + (distance)], kind, others);
#define FURTHER(x, width, distance, kind, ones, others)                                \
    for (int i = 0; i < (width); i += 2 * (distance)) {                                \
        __typeof__(*(x)) one = SHUFFLED((x)[i], (x)[i + (distance)], kind, ones);      \
        __typeof__(*(x)) other = SHUFFLED((x)[i], (x)[i + (distance)], kind, others);  \
        (x)[i] = NAMED(pick)(one > other, one, other);                                 \
    }

/* The loss, the rows and the quick test; the same structures as in arguments.py. */

enum { MODE, BAYES, MEDIAN, GIVEN };
enum { DIAGONAL, RUNNING, FULL };
enum { ALL_VALID = -1 };

struct costs {
    const double *left, *right;                   /* [K][K] */
    const double *left_diagonal, *right_diagonal; /* [K] */
    const double *mode_weights;                   /* [K] */
    const int64_t *rank;                          /* [K][K] */
    int64_t n_classes, shape, weighted, one_step;
    double bound;
};

struct rows {
    const void *proba; /* [n][K], float or double */
    int64_t bytes;     /* of a number: 4 or 8 */
    int64_t n, n_classes;
    const int64_t *given;
    double tolerance;
};

enum { NO_QUICK_TEST, AT_GAINS, AT_RUNNING_SUMS };

struct quick_test {
    int64_t at;
    const void *weights, *nearly, *enough; /* [K], in the number type of the rows */
    const void *left, *right;              /* [K], of running sums, as shares of the threshold */
    const double *exact_weights;           /* [K] */
    double below, above, smallest, slack;
};

/* A tile: ROWS rows, each part [K][ROWS] with the rows of one label side by side. Parts have one more label
   at both ends of the scale; those of gains are -1, less than any gain. */
struct tile {
    int64_t n_classes, count;
    const int64_t *number;               /* of its rows; the last lanes repeat row 0 if there are fewer */
    double *p, *left, *right, *head, *tail; /* [K][ROWS] */
    double *level, *block_total, *block_mean, *block_size; /* [K], for one row */
    double *point;                       /* [ROWS] */
};

/* tile.c: what several rules need, for all rows of a tile */
void INTERNAL(find_gains)(const struct tile *tile, const struct costs *costs);
void INTERNAL(find_head_and_tail)(const struct tile *tile);

/* rules.c: the preparation for a rule; the levels of one row, for the labels from the first to the last and to the
   point label; and both ends of each row's set, as numbers in lanes */
void INTERNAL(prepare)(const struct tile *tile, const struct costs *costs, int64_t rule);
void INTERNAL(row_levels)(const struct tile *tile, const struct costs *costs, int64_t rule, int64_t q,
                          int64_t first, int64_t last);
void INTERNAL(ends)(const struct tile *tile, const struct costs *costs, int64_t rule, double threshold,
                    double *lower, double *upper);

/* quick_test.c: rows with a result that rounding can't change */
int64_t INTERNAL(sets_of_rows)(const struct rows *rows, const struct quick_test *quick, int64_t first,
                               int32_t *lower, int32_t *upper, int64_t *waiting, int64_t left, void *room);
int64_t INTERNAL(steps_of_rows)(const struct rows *rows, const struct quick_test *quick, int64_t first,
                                const int64_t *labels, double *at, int32_t *before, int32_t *after,
                                int64_t *found, int64_t *waiting, int64_t left, void *room);

#endif
