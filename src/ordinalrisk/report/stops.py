"""The values of ``alpha`` that a report shows: round decimals from what can be certified to single labels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import count
from typing import NamedTuple

from ordinalrisk.calibration import expectation_threshold
from ordinalrisk.risk_curve import RiskCurve

MOST_STOPS = 200
FEWEST_STOPS = 15
CHARACTERS = 900_000
MOST_CLASSES_HELD = 60
"""With more classes a report leaves out which labels the sets of each class hold."""

_FINEST = 1_000  # steps to where the risk saturates: three digits are enough for any reader
_WIDEST_GAP = Fraction(5, 2)  # from one of 1, 2, 5, 10 to the next


class Stop(NamedTuple):
    """A risk and the threshold that the calibration has for it."""

    alpha: Fraction
    threshold: float


def stops_of(curve: RiskCurve, alpha: Fraction, n_classes: int) -> list[Stop]:
    """Round values of ``alpha`` in ascending order, and ``alpha`` itself.

    They are the multiples of one step, 1, 2 or 5 times a power of ten, from the smallest that can be
    certified to the first at which every set is a single label, or the last below the largest loss.

    Examples
    --------
    >>> import numpy as np
    >>> levels = np.linspace(0.01, 0.5, 50)
    >>> curve = RiskCurve.from_steps(
    ...     levels, np.ones(50, int), unit=Fraction(1), n_rows=99, bound=Fraction(1)
    ... )
    >>> stops = stops_of(curve, Fraction(1, 3), n_classes=5)
    >>> len(stops), [str(stop.alpha) for stop in (stops[0], stops[1], stops[-1])], stops[-1].threshold
    (102, ['1/100', '3/200', '51/100'], inf)
    """
    saturation = (curve.total_loss(math.inf) + curve.bound) / (curve.n_rows + 1)
    lowest = curve.bound / (curve.n_rows + 1)

    def multiples(step: Fraction) -> range:
        below_bound = math.ceil(curve.bound / step) - 1
        return range(math.ceil(lowest / step), min(math.ceil(saturation / step), below_bound) + 1)

    step = chosen = next(steps := _round_steps(curve.bound))
    while len(multiples(step)) <= _room(n_classes) and step * _FINEST >= saturation:
        chosen, step = step, next(steps)
    alphas = {multiple * chosen for multiple in multiples(chosen)} | {alpha}
    return [Stop(stop, expectation_threshold(curve, stop)) for stop in sorted(alphas)]


def _round_steps(bound: Fraction) -> Iterator[Fraction]:
    """1, 2 and 5 times the powers of ten, descending from the first that is no less than ``bound``."""
    power = Fraction(1)
    while power < bound:
        power *= 10
    while power >= 10 * bound:
        power /= 10
    for exponent in count():
        for digit in (10, 5, 2):
            yield digit * power / 10 ** (exponent + 1)


def _room(n_classes: int) -> int:
    """How many multiples of a step a report has room for, with ``alpha`` between them."""
    held = 6 * n_classes**2 if n_classes <= MOST_CLASSES_HELD else 0
    cases = 10 * (120 + 4 * n_classes)
    room = CHARACTERS // (1_200 + 160 * n_classes + held + cases)
    return max(math.ceil(FEWEST_STOPS * _WIDEST_GAP), min(room, MOST_STOPS - 1))
