r"""The exact binomial test, without rounding errors for up to a trillion rows.

.. math:: P(\mathrm{Binom}(n, \alpha) \le c) \le \delta

Floating point decides unless its error could matter. If it could, exact whole numbers decide while they are
short enough, and long decimals with a bound on their error beyond that. If even those can't separate the two
sides, the test does not reject, which is safe.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

ROUNDING = 1e-9  # the relative error of the special functions is smaller
UNIT_ROUNDING = 1e-14  # each unit adds some ten roundings of 2**-53

_HALF = Fraction(1, 2)
_DIGITS = (20, 60)  # of the decimals, tried in turn
_FLOAT_DIGITS = 8
_MOST_BITS, _MOST_WORK = 10**6, 3 * 10**8  # of the whole numbers: in one, and in all together
_MOST_TERMS = 3 * 10**6 // 2  # of a sum in decimals: enough for 10**10 units
_AT_ONCE = 2**16
_GUARD = 20  # digits of a sum beyond those asked for
_BY_PRODUCT = 1_000  # factorials up to this are multiplied out
_STIRLING_TERMS = 20  # beyond that one, the next is below 1e-100


def rounding(n: int) -> float:
    """Return a bound on the relative error of a p-value of ``n`` units."""
    return ROUNDING + n * UNIT_ROUNDING


def with_rounding_margin(delta: Fraction, n: int) -> float:
    """Lower ``delta`` by more than the rounding error of a p-value, so that the test stays valid."""
    return float(delta) / (1 + rounding(n))


def binomial_p_value(n_missed: int, n: int, alpha: Fraction) -> float:
    r"""Return :math:`P(\mathrm{Binom}(n, \alpha) \le c)`: the chance of so few misses at risk ``alpha``."""
    from scipy.special import betainc

    if n_missed < 0:
        return 0.0
    if n_missed >= n:
        return 1.0
    return float(betainc(n - n_missed, n_missed + 1, float(1 - alpha)))


def binomial_rejects(n_missed: int, n: int, alpha: Fraction, delta: Fraction) -> bool:
    """Return whether ``P(Binom(n, alpha) <= n_missed) <= delta``, so that few misses reject a larger risk.

    The result is exact up to about ten thousand units. Beyond that it is exact unless the two sides agree to
    60 digits (8 digits with more than about :math:`10^{10}` units). Then it is False, except for the tie at
    ``alpha = delta = 1/2``, which follows from symmetry.
    """
    if n_missed < 0 or n_missed >= n:
        return n_missed < 0
    if n_missed == 0:
        return n >= units_without_loss(alpha, delta)
    if delta > _HALF and float(1 - delta) > 0:  # compare the complements, which have more digits
        ratio = float(1 - delta) / max(binomial_p_value(n - n_missed - 1, n, 1 - alpha), 5e-324)
    else:
        ratio = binomial_p_value(n_missed, n, alpha) / float(delta)
    if abs(ratio - 1) > rounding(n):
        return ratio < 1
    if alpha == delta == _HALF and n == 2 * n_missed + 1:
        return True
    n_bits = n * alpha.denominator.bit_length()
    if n_bits <= _MOST_BITS and n_bits * n_missed <= _MOST_WORK:
        return _p_value(n_missed, n, alpha) <= delta
    for digits in (_FLOAT_DIGITS, *_DIGITS):
        low, high = _p_value_between(n_missed, n, alpha, digits)
        if not low <= delta < high:
            return high <= delta
    return False


@lru_cache(maxsize=256)
def units_without_loss(alpha: Fraction, delta: Fraction) -> int:
    r"""Return the smallest ``n`` with :math:`(1 - \alpha)^n \le \delta`."""
    lost = len(str(alpha.denominator // alpha.numerator))  # digits of 1 - alpha before those of alpha
    for digits in _DIGITS:
        with decimal.localcontext(prec=2 * lost + digits):
            n = _log(delta) / _log(1 - alpha)
            nearest = int(n.to_integral_value())
            if abs(n - nearest) > Decimal(10) ** (8 - digits):  # n is off by less
                return math.ceil(n)
    if nearest * alpha.denominator.bit_length() <= _MOST_BITS and (1 - alpha) ** nearest <= delta:
        return max(nearest, 1)
    return nearest + 1


def _p_value(n_missed: int, n: int, alpha: Fraction) -> Fraction:
    missed, total = alpha.numerator, alpha.denominator
    covered = total - missed
    ways = in_all = covered**n
    for c in range(n_missed):
        ways = ways * (n - c) * missed // ((c + 1) * covered)
        in_all += ways
    return Fraction(in_all, total**n)


def _p_value_between(n_missed: int, n: int, alpha: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return a lower and an upper bound of the p-value, usually with so many digits in common.

    They sum the smaller tail: its terms decrease from the first one on, which bounds the error.
    """
    if n_missed > (n + 1) * alpha:
        low, high = _p_value_between(n - n_missed - 1, n, 1 - alpha, digits)
        return 1 - high, 1 - low
    if digits == _FLOAT_DIGITS:
        sums = _sum_in_floats(n_missed, n, alpha)
    else:
        sums = _sum_in_digits(n_missed, n, alpha, digits)
    context = decimal.Context(
        prec=digits + len(str(n)) + 15, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[]
    )
    with decimal.localcontext(context):
        log = _log_factorial(n) - _log_factorial(n_missed) - _log_factorial(n - n_missed)
        first = Fraction((log + n_missed * _log(alpha) + (n - n_missed) * _log(1 - alpha)).exp())
    off = Fraction(1, 10 ** (digits + 2))  # of the first term: logarithms are at most n * 1000, in 15 digits
    return sums[0] * first * (1 - off), sums[1] * first * (1 + off)


def _sum_in_floats(n_missed: int, n: int, alpha: Fraction) -> tuple[Fraction, Fraction]:
    """Return bounds of the sum of ``P(X = c - j) / P(X = c)`` over ``j``, in floats; the terms decrease."""
    if n >= 2**52:
        return Fraction(1), Fraction(n_missed + 1)
    odds, in_all, last, terms = float((1 - alpha) / alpha), 1.0, 1.0, 0
    while terms < n_missed and last > 1e-20:
        j = np.arange(terms, min(terms + _AT_ONCE, n_missed))
        products = last * np.cumprod((n_missed - j) / (n - n_missed + 1 + j) * odds)
        in_all, last, terms = in_all + float(products.sum()), float(products[-1]), terms + len(j)
    off = Fraction(8 * (terms + 1), 2**53)  # each term adds four roundings
    return Fraction(in_all) * (1 - off), Fraction(in_all + last * terms) * (1 + off)


def _sum_in_digits(n_missed: int, n: int, alpha: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return bounds of the sum of ``P(X = c - j) / P(X = c)`` over ``j``, in whole numbers."""
    one = 10 ** (digits + _GUARD)
    term, in_all, terms = one, 0, 0
    up, down = (1 - alpha).numerator, alpha.numerator
    while term and terms < _MOST_TERMS:
        in_all += term
        term = term * (n_missed - terms) * up // ((n - n_missed + 1 + terms) * down)
        terms += 1
    if term:
        return Fraction(1), Fraction(n_missed + 1)
    # Term j is too small by j units at most, as each is rounded down once and then shrinks; the terms left
    # out fall at least as fast as the earlier ones did on average, and add less than terms**2 / 2.
    return Fraction(in_all, one), Fraction(in_all + (terms + 2) ** 2, one)


def _log(value: Fraction) -> Decimal:
    return (Decimal(value.numerator) / Decimal(value.denominator)).ln()


def _log_factorial(m: int) -> Decimal:
    """Return ``log(m!)`` to the digits of the current context, at most 100."""
    if m <= _BY_PRODUCT:
        return Decimal(math.factorial(m)).ln()
    constant = Decimal(math.factorial(_BY_PRODUCT)).ln() - _stirling(_BY_PRODUCT)  # log(2 pi) / 2
    return _stirling(m) + constant


def _stirling(m: int) -> Decimal:
    x = Decimal(m)
    series = sum(
        Decimal(b.numerator) / (b.denominator * 2 * k * (2 * k - 1) * x ** (2 * k - 1))
        for k, b in enumerate(_bernoulli_numbers()[2::2], 1)
    )
    return (x + Decimal("0.5")) * x.ln() - x + series


@cache
def _bernoulli_numbers() -> tuple[Fraction, ...]:
    numbers = [Fraction(1)]
    for m in range(1, 2 * _STIRLING_TERMS + 1):
        total = sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers)), Fraction(0))
        numbers.append(-total / (m + 1))
    return tuple(numbers)
