r"""Significance tests for checks: a false warning for at most one calibration in a thousand.

Bets test whether differences :math:`d_i` in ``[-1, 1]`` have a positive mean. If they have not, the wealth
does not grow on average:

.. math:: W = \prod_{i=1}^n (1 + \lambda d_i), \quad E[W] \le 1 \text{ if } E[d] \le 0.

So :math:`W \ge 1000` has a probability of at most 1/1000 for any number of rows (Markov's inequality). The
initial wealth is split between several stakes :math:`\lambda`.

References
----------
Waudby-Smith, Ramdas. Estimating means of bounded random variables by betting. JRSS B 2024.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.binomial_tails import binomial_rejects

FALSE_ALARMS = Fraction(1, 1_000)
_STAKES = (0.05, 0.1, 0.2, 0.4, 0.7)


def is_positive(differences: NDArray[np.float64], n_tried: float = 1.0) -> bool:
    """Return whether the mean of independent values in ``[-1, 1]`` is significantly positive.

    ``n_tried`` is the number of alternatives of which the best is tested.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> is_positive(rng.uniform(-0.5, 0.5, 1_000)), is_positive(rng.uniform(-0.4, 0.6, 1_000))
    (False, True)
    """
    needed = math.log(n_tried) - math.log(FALSE_ALARMS)
    if differences.sum() <= 0:
        return False
    won = [float(np.log1p(stake * differences).sum()) for stake in _STAKES]
    return float(np.logaddexp.reduce(won)) - math.log(len(_STAKES)) >= needed


def is_rarer(n_found: int, n_rows: int, share: Fraction, alarms: Fraction = FALSE_ALARMS) -> bool:
    r"""Return whether so few of the rows show that the share is smaller than ``share``.

    ``alarms`` is the largest probability of that many or fewer if it is not.

    With the divergence :math:`D` of the share found from ``share``, their probability is between
    :math:`e^{-nD} / \sqrt{8 n \hat p (1 - \hat p)}` and :math:`e^{-nD}`. Where that decides, which is nearly
    always, the exact test and its library are not needed.

    Examples
    --------
    >>> is_rarer(3, 46, Fraction(2, 5)), is_rarer(12, 46, Fraction(2, 5))
    (True, False)
    """
    if n_found >= share * n_rows:
        return False
    found = n_found / n_rows
    divergence = (1 - found) * math.log((1 - found) / float(1 - share)) if share < 1 else math.inf
    divergence += found * math.log(found / float(share)) if n_found else 0
    bound = -n_rows * divergence
    if bound < math.log(alarms) or not n_found:
        return bound < math.log(alarms)
    if bound - math.log(8 * n_rows * found * (1 - found)) / 2 > math.log(alarms):
        return False
    return binomial_rejects(n_found, n_rows, share, alarms)


def is_more_common(n_found: int, n_rows: int, share: Fraction) -> bool:
    """Return whether ``n_found`` of ``n_rows`` is significantly more than ``share``."""
    return n_rows > 0 and is_rarer(n_rows - n_found, n_rows, 1 - share)
