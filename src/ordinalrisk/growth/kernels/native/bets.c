/* Bets against a risk; the same in calibration/betting_bound.py, which has the formula. */

#include <math.h>

#include "kernels.h"

int64_t EXPORT(bets_reach_goal)(const double *losses, int64_t n, const double *spread, int64_t n_blocks,
                                double alpha, double share, double largest_bet) {
    double at_best = log1p(largest_bet * alpha) * (1 + 1e-9);
    for (int64_t block = 0; block < n_blocks; block++) {
        for (int64_t t = block * n / n_blocks; t < (block + 1) * n / n_blocks; t++) {
            double left = (double)(n - t), missing = -log(share);
            if (missing > left * at_best) return 0;
            double bet = sqrt(2 * missing / left) / spread[block];
            bet = bet < largest_bet ? bet : largest_bet;
            share *= 1 + bet * (alpha - losses[t]);
            if (share >= 1) return 1;
        }
    }
    return 0;
}
