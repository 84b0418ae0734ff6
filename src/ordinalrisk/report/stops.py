"""The values of ``alpha`` that a report shows: round decimals from what can be certified to single labels."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from typing import Any, NamedTuple, TypeVar

from ordinalrisk.calibration.promises import Expectation, Promise, expectation_threshold
from ordinalrisk.controller import RiskController
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.strata import Stratum
from ordinalrisk.curves.windows import NotKnownError

Known = TypeVar("Known")

MOST_STOPS = 200
MOST_STOPS_APART = 40
"""Where thresholds differ from row to row, each stop takes longer."""
FEWEST_STOPS = 15
CHARACTERS = 900_000
MOST_CLASSES_HELD = 60
"""With more classes a report leaves out which labels the sets of each class hold."""

_FEWEST_STOPS_APART = 12
_CHARACTERS_OF_STRATUM = 240
_FINEST = 1_000  # steps to where the risk saturates: three digits are enough for any reader
_WIDEST_GAP = Fraction(5, 2)  # from one of 1, 2, 5, 10 to the next


class Stop(NamedTuple):
    """A risk and the threshold that the calibration has for it."""

    alpha: Fraction
    threshold: float


def stops_of(curve: RiskCurve, alpha: Fraction, n_classes: int, more: Sequence[Fraction] = ()) -> list[Stop]:
    """Round values of ``alpha`` in ascending order, ``alpha`` itself, and ``more``.

    They are the multiples of one step, 1, 2 or 5 times a power of ten, from the smallest that can be
    certified to the first at which every set is a single label, or the last below the largest loss. Of a
    curve that is known in windows they are those whose thresholds are known.

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
    alphas = sorted({*_multiples_between(lowest, saturation, curve.bound, _room(n_classes)), alpha, *more})
    thresholds = [_if_known(expectation_threshold, curve, stop) for stop in alphas]
    return [Stop(a, found) for a, found in zip(alphas, thresholds, strict=True) if found is not None]


class StopApart(NamedTuple):
    """A risk, or a factor on the risks of the classes, and what to ask of the controller for it."""

    value: Fraction
    alpha: Any


class AlphaRange(NamedTuple):
    """Between which risks a calibration says something: below nothing is certified, above nothing changes."""

    lowest: Fraction
    saturation: Fraction


def stops_apart(
    controller: RiskController, ranges: Sequence[AlphaRange | None], n_strata: int
) -> list[StopApart]:
    """Round values of ``alpha``, from the smallest certified for some stratum to single labels in all.

    Where each class has its own, they are factors on all of them, with 1 for the calibrated ones.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba, y = rng.dirichlet([4, 2, 1], size=60), np.arange(60) % 3
    >>> controller = RiskController(alpha={0: 0.2, 1: 0.4, 2: 0.3}).calibrate(proba, y)
    >>> ranges = [alpha_range(part, Expectation()) for part in controller.calibration_.strata.parts]
    >>> stops = stops_apart(controller, ranges, n_strata=3)
    >>> [str(stop.value) for stop in stops[:4]], stops[0].alpha[1]
    (['1/5', '3/10', '2/5', '1/2'], Fraction(2, 25))
    """
    calibration, alpha = controller.calibration_, controller.alpha
    own = controller.spec.stratum_alphas(alpha, calibration)
    by_class = isinstance(alpha, Mapping)
    whole = [Fraction(1) if by_class else own[0]]
    scales = own if by_class else [Fraction(1)] * len(own)
    scaled = [
        AlphaRange(found.lowest / scale, found.saturation / scale)
        for found, scale in zip(ranges, scales, strict=True)
        if found is not None
    ]
    if scaled:
        room = min(_room(len(calibration.classes), n_strata), MOST_STOPS_APART - 1)
        lowest, saturation = min(each.lowest for each in scaled), max(each.saturation for each in scaled)
        limit = calibration.costs.bound / max(scales)
        whole += _multiples_between(lowest, saturation, limit, room)
    if not by_class:
        whole += calibration.more_alphas
    classes = calibration.classes.tolist()
    stops = [
        StopApart(
            value,
            dict(zip(classes, (value * each for each in own[: len(classes)]), strict=True))
            if by_class
            else value,
        )
        for value in sorted({*whole})
    ]
    return [stop for stop in stops if _if_known(controller.spec.thresholds, calibration, stop.alpha)]


def alpha_range(part: Stratum, promise: Promise) -> AlphaRange | None:
    """Where a stratum's thresholds begin and end, within a thousandth of ``B``; None if they never do.

    Examples
    --------
    >>> import numpy as np
    >>> from ordinalrisk.calibration.promises import HighProbability
    >>> at, by = np.array([0.5]), np.array([1])
    >>> curve = RiskCurve.from_steps(at, by, unit=Fraction(1), n_rows=22, bound=Fraction(1))
    >>> part = Stratum(None, None, 22, curve, two_valued=True)
    >>> print(*alpha_range(part, Expectation()), *alpha_range(part, HighProbability(Fraction(1, 10))))
    1/23 2/23 1/10 83/500
    """
    curve = part.curve
    if not curve.n_rows or not curve.bound:
        return None
    if isinstance(promise, Expectation):
        per_row = curve.total_loss(math.inf) * curve.n_rows / curve.weight if curve.weight else Fraction(0)
        n = curve.n_rows + 1
        return AlphaRange(curve.bound / n, (per_row + curve.bound) / n)
    steps = [curve.bound * step / _FINEST for step in range(1, _FINEST)]

    def is_certified(alpha: Fraction) -> bool:
        return _if_known(promise.threshold, part, alpha) != -math.inf

    def is_saturated(alpha: Fraction) -> bool:
        return _if_known(promise.threshold, part, alpha) == math.inf

    first = bisect.bisect_left(steps, True, key=is_certified)
    if first == len(steps):
        return None
    last = bisect.bisect_left(steps, True, lo=first, key=is_saturated)
    return AlphaRange(steps[first], steps[last] if last < len(steps) else curve.bound)


def _if_known(threshold: Callable[..., Known], *asked: Any) -> Known | None:
    """What a curve tells; None, for something finite, if it was not kept there."""
    try:
        return threshold(*asked)
    except NotKnownError:
        return None


def _multiples_between(lowest: Fraction, saturation: Fraction, limit: Fraction, room: int) -> list[Fraction]:
    """The multiples of the finest round step with no more of them than there is room for, below a limit."""

    def multiples(step: Fraction) -> range:
        below_limit = math.ceil(limit / step) - 1
        return range(math.ceil(lowest / step), min(math.ceil(saturation / step), below_limit) + 1)

    step = chosen = next(steps := _round_steps(limit))
    while len(multiples(step)) <= room and step * _FINEST >= saturation:
        chosen, step = step, next(steps)
    return [multiple * chosen for multiple in multiples(chosen)]


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


def _room(n_classes: int, n_strata: int = 0) -> int:
    """How many multiples of a step a report has room for, with ``alpha`` between them."""
    held = 6 * n_classes**2 if n_classes <= MOST_CLASSES_HELD else 0
    cases = 10 * (120 + 4 * n_classes)
    room = CHARACTERS // (1_200 + 160 * n_classes + held + cases + _CHARACTERS_OF_STRATUM * n_strata)
    fewest = _FEWEST_STOPS_APART if n_strata else math.ceil(FEWEST_STOPS * _WIDEST_GAP)
    return max(fewest, min(room, MOST_STOPS - 1))
