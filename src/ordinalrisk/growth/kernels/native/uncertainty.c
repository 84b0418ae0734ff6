/* Count rows by uncertainty, one minus the largest probability, as in calibration/score_counts.py. */

#include "kernels.h"

#define LARGEST(name, number, vector, mask)                                                  \
    static double name(const number *p, int64_t n_classes) {                                 \
        enum { WIDE = VECTOR_BYTES / (int)sizeof(number) };                                  \
        number largest = 0;                                                                  \
        int64_t j = 0;                                                                       \
        if (n_classes >= WIDE) {                                                             \
            vector most = {0};                                                               \
            for (; j + WIDE <= n_classes; j += WIDE) {                                       \
                vector x;                                                                    \
                __builtin_memcpy(&x, p + j, sizeof x);                                       \
                mask larger = x > most;                                                      \
                most = (vector)((larger & (mask)x) | (~larger & (mask)most));                \
            }                                                                                \
            for (int q = 0; q < WIDE; q++) largest = most[q] > largest ? most[q] : largest;  \
        }                                                                                    \
        for (; j < n_classes; j++) largest = p[j] > largest ? p[j] : largest;                \
        return (double)largest;                                                              \
    }

LARGEST(largest_of_floats, float, floats, half_words)
LARGEST(largest_of_doubles, double, doubles, words)

/* Numbers with the same first bits share a bin. Bin 1 has the bits `first`; bin 0 is for all numbers below. */
void EXPORT(count_uncertainty)(const struct rows *rows, int64_t shift, int64_t first, int64_t n_bins, int64_t *counts) {
    const int64_t K = rows->n_classes;
    for (int64_t i = 0; i < rows->n; i++) {
        double largest = rows->bytes == 4 ? largest_of_floats((const float *)rows->proba + i * K, K)
                                          : largest_of_doubles((const double *)rows->proba + i * K, K);
        double away = largest < 1 ? 1 - largest : 0;
        int64_t bits, bin;
        __builtin_memcpy(&bits, &away, sizeof bits);
        bin = (bits >> shift) - first + 1;
        bin = bin < 0 ? 0 : bin;
        counts[bin < n_bins ? bin : n_bins - 1]++;
    }
}
