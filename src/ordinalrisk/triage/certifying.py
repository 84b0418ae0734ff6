r"""Find the largest threshold at which the expected loss of accepted rows is certified.

A row is accepted if its score ``s``, the model's own risk of its label, is below a threshold ``t``. The risk
of accepted rows, :math:`r(t) = E[L \mid s < t]`, need not rise with ``t``. So thresholds are tested one after
the other, from a start upwards, up to the first test that does not reject :math:`r(t) \ge \alpha`. The
starts are ranks, ``k``, ``3k``, ``9k`` and so on: they depend on the number of rows, ``alpha`` and ``delta``
only. Each of ``J`` starts is tested at level ``delta / J``; no threshold above a start needs a correction.
Ties are ordered at random, and rows with equal scores are accepted together or not at all.
:doc:`/maintaining/promises` has the proof.

Losses and ``alpha`` are relative here: shares of the largest loss ``B``.

References
----------
Angelopoulos, Bates, Candès, Jordan and Lei, "Learn then Test: Calibrating predictive algorithms to achieve
risk control", 2021. Geifman and El-Yaniv, "Selective classification for deep neural networks", 2017.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.binomial_tails import binomial_rejects, with_rounding_margin
from ordinalrisk.calibration.confidence_bounds import units_needed
from ordinalrisk.evaluation.estimates import bets

RATIO = 3  # of one start to the next; 2 and 5 accept as many rows, within a percent or two
_AT_ONCE = 65_536

Floats = NDArray[np.float64]


class RankTests(ABC):
    """The tests of the mean loss of the first ``k`` rows, in one order of the rows, at level ``delta``."""

    @abstractmethod
    def passes(self, k: int) -> bool:
        """Return whether a risk of ``alpha`` or more is rejected for the first ``k`` rows."""

    @abstractmethod
    def first_failure(self, k: int) -> int:
        """Return the smallest number above ``k`` whose test does not reject, or the number of rows plus 1."""


class BinomialTests(RankTests):
    """Exact tests if every miss costs the same. Between two misses a rejection stays a rejection."""

    def __init__(self, losses: NDArray[Any], alpha: Fraction, delta: Fraction) -> None:
        self._missed = np.flatnonzero(losses) + 1  # the ranks, counted from 1
        self._n, self._alpha, self._delta = len(losses), alpha, delta

    def passes(self, k: int) -> bool:
        n_missed = int(np.searchsorted(self._missed, k, side="right"))
        return binomial_rejects(n_missed, k, self._alpha, self._delta)

    def first_failure(self, k: int) -> int:
        before = int(np.searchsorted(self._missed, k, side="right"))
        for n_missed, rank in enumerate(self._missed[before:].tolist(), before + 1):
            if not binomial_rejects(n_missed, rank, self._alpha, self._delta):
                return int(rank)
        return self._n + 1


class BettingTests(RankTests):
    r"""Bets of fixed sizes on a risk below ``alpha``, for losses of any size.

    .. math:: K_k = \sum_j p_j \prod_{i \le k} \Big(1 + \kappa_j \frac{\alpha - L_i}{1 - \alpha}\Big)

    At a risk of ``alpha`` or more the expected wealth is at most 1, so it reaches ``1 / delta`` with
    probability ``delta`` at most (Markov). The order of the first ``k`` rows does not matter.
    """

    def __init__(self, losses: NDArray[Any], scale: Fraction, alpha: Fraction, delta: Fraction) -> None:
        costs, self._cost = np.unique(losses, return_inverse=True)
        gains = [float((alpha - cost * scale) / (1 - alpha)) for cost in costs.tolist()]
        stakes, self._log_shares = bets(len(losses))
        self._log_factors = np.log1p(stakes * np.array(gains))  # [bet, cost]
        self._goal = -math.log(with_rounding_margin(delta, len(losses)))

    def passes(self, k: int) -> bool:
        return bool(self._log_wealth(self._after(k)[:, None])[0] >= self._goal)

    def first_failure(self, k: int) -> int:
        n, wealth = len(self._cost), self._after(k)
        for start in range(k, n, _AT_ONCE):
            steps = self._log_factors[:, self._cost[start : start + _AT_ONCE]]
            run = wealth[:, None] + np.cumsum(steps, axis=1)
            failing = np.flatnonzero(self._log_wealth(run) < self._goal)
            if len(failing):
                return start + int(failing[0]) + 1
            wealth = run[:, -1]
        return n + 1

    def _after(self, k: int) -> Floats:
        counts = np.bincount(self._cost[:k], minlength=self._log_factors.shape[1])
        product: Floats = self._log_factors @ counts
        return product

    def _log_wealth(self, of_bets: Floats) -> Floats:
        total: Floats = np.logaddexp.reduce(of_bets + self._log_shares[:, None], axis=0)
        return total


def rows_needed(n: int, alpha: Fraction, delta: Fraction, two_valued: bool) -> int:
    """Return the fewest accepted rows without a loss that certify ``alpha``, with one start of ``n`` rows.

    >>> rows_needed(500, Fraction(1, 20), Fraction(1, 20), two_valued=True)
    59
    """
    fewest = units_needed("binomial", alpha, delta)
    if two_valued:
        return fewest
    stakes, log_shares = bets(n)
    growth = np.log1p(stakes[:, 0] * float(alpha / (1 - alpha)))
    goal = -math.log(with_rounding_margin(delta, n))

    def reached(k: int) -> bool:
        return bool(np.logaddexp.reduce(log_shares + k * growth) >= goal)

    low, high = 0, fewest  # betting needs at least as many
    while not reached(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def start_ranks(n: int, alpha: Fraction, delta: Fraction, two_valued: bool) -> list[int]:
    """Return the numbers of rows at which tests start, smallest first; none if ``n`` rows are too few.

    >>> start_ranks(1000, Fraction(1, 20), Fraction(1, 20), two_valued=True)
    [80, 240, 720]
    """
    starts: list[int] = []
    while True:
        n_starts = len(starts) + 1
        first = rows_needed(n, alpha, delta / n_starts, two_valued)
        if first * RATIO ** len(starts) > n:
            return starts
        starts = [first * RATIO**i for i in range(n_starts)]


def certified_threshold(scores: Floats, starts: Sequence[int], tests: Callable[[int], RankTests]) -> float:
    """Return the largest threshold that is certified: infinite for all rows, minus infinity for none.

    ``scores`` ascend; ``tests(n_starts)`` tests the rows in this order, at level ``delta / n_starts``.
    A threshold in the tie of its start is not above it, so a smaller start must vouch for it.
    """
    if not starts:
        return -math.inf
    ranks = tests(len(starts))
    for start in reversed(starts):
        if not ranks.passes(start):
            continue
        accepted = ranks.first_failure(start) - 1
        if accepted == len(scores):
            return math.inf
        if scores[accepted] > scores[start]:
            return float(scores[accepted])
    return -math.inf
