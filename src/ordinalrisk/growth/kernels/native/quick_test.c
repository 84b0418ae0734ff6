/* The quick test of rows: where rounding can't change the result, in the rows' own number type.

   Of a weighted loss: if the labels whose gain reaches the threshold are next to each other, they are the
   frontier's interval: blocks of labels that all reach it have a mean that does, blocks of others have not, so
   no block has both. The point label has the largest gain, so it is one of them, or is alone.

   Gains that are running sums never rise outward: an end is found by counting those that reach the threshold.

   The margins decide how a set is computed, never what belongs to it. */

#include "kernels.h"

enum {
    AHEAD = 2048, /* numbers asked for before their turn */
    SPAN = 16,    /* labels whose sum is taken on its own */
    FEW = 32,     /* classes: with more, it takes longer to turn rows into lanes than to add lanes up */
};


#define NUMBER float
#define WHOLE int32_t
#define SIGN INT32_MIN
#define TINY 1e-30f
#define NAMED(name) name##_of_floats
#define EACH_STAGE EACH_STAGE_OF_FLOATS
#include "quick_test_lanes.h"
#undef NUMBER
#undef WHOLE
#undef SIGN
#undef TINY
#undef NAMED
#undef EACH_STAGE
#undef VECTOR
#undef MASK
#undef WIDE

#define NUMBER double
#define WHOLE int64_t
#define SIGN INT64_MIN
#define TINY 1e-290
#define NAMED(name) name##_of_doubles
#define EACH_STAGE EACH_STAGE_OF_DOUBLES
#include "quick_test_lanes.h"

int64_t INTERNAL(sets_of_rows)(const struct rows *rows, const struct quick_test *quick, int64_t first, int32_t *lower,
                               int32_t *upper, int64_t *waiting, int64_t left, void *room) {
    if (quick->at == AT_RUNNING_SUMS)
        return (rows->bytes == 4 ? running_sets_of_floats : running_sets_of_doubles)(rows, quick, first, lower,
                                                                                     upper, waiting, left, room);
    return (rows->bytes == 4 ? sets_of_floats : sets_of_doubles)(rows, quick, first, lower, upper, waiting, left,
                                                                 room);
}

int64_t INTERNAL(steps_of_rows)(const struct rows *rows, const struct quick_test *quick, int64_t first,
                                const int64_t *labels, double *at, int32_t *before, int32_t *after, int64_t *found,
                                int64_t *waiting, int64_t left, void *room) {
    return (rows->bytes == 4 ? steps_of_floats : steps_of_doubles)(rows, quick, first, labels, at, before, after,
                                                                   found, waiting, left, room);
}
