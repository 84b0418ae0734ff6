"""The values of ``alpha`` that a report shows: round decimals from what can be certified to single labels."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeVar

from ordinalrisk.calibration.promises import Expectation, Promise
from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.row_thresholds import Thresholds
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.curves.strata import Stratum
from ordinalrisk.curves.windows import NotKnownError

Known = TypeVar("Known")

MOST_STOPS = 200
MOST_STOPS_BY_ROW = 40  # each stop takes longer if thresholds differ from row to row
FEWEST_STOPS = 15
MOST_CLASSES_HELD = 60  # with more classes, a report leaves out the labels in the sets of each class

_FEWEST_STOPS_BY_ROW = 12
_CHARACTERS, _CHARACTERS_OF_STRATUM = 900_000, 240
_FINEST = 1_000  # steps to where the risk saturates: three digits are enough for any reader
_WIDEST_GAP = Fraction(5, 2)  # from one of 1, 2, 5, 10 to the next


class Stop(NamedTuple):
    """A risk, or a factor on the risks of the classes, and its thresholds."""

    value: Fraction
    thresholds: Thresholds


class AlphaRange(NamedTuple):
    """The risks between which thresholds change: below nothing is certified, above sets are single labels."""

    lowest: Fraction
    saturation: Fraction


def stops_of(
    spec: Spec,
    calibration: Calibration,
    ranges: Sequence[AlphaRange | None],
    n_strata: int = 0,
    *,
    plain: bool = False,
) -> list[Stop]:
    """Return round values of ``alpha`` in ascending order, with the calibrated one and ``more_alphas``.

    They are the multiples of one step, 1, 2 or 5 times a power of ten, from the smallest that can be
    certified for some stratum to the first at which every set is a single label, or the last below the
    largest loss. Values without a known threshold are left out. If each class has its own ``alpha``, they are
    factors on all of them, with 1 for the calibrated ones.
    """
    own = spec.stratum_alphas(spec.alpha, calibration)
    by_class = isinstance(spec.alpha, Mapping)
    values = [Fraction(1) if by_class else own[0]]
    scales = own if by_class else [Fraction(1)] * len(own)
    scaled = [(each, scale) for each, scale in zip(ranges, scales, strict=True) if each is not None]
    if scaled:
        most = (MOST_STOPS if plain else MOST_STOPS_BY_ROW) - 1
        room = min(_room(len(calibration.classes), n_strata), most)
        lowest = min(each.lowest / scale for each, scale in scaled)
        saturation = max(each.saturation / scale for each, scale in scaled)
        limit = (1 if spec.relative else calibration.costs.bound) / max(scales)
        values += _multiples_between(lowest, saturation, limit, room)
    if not by_class:
        values += calibration.more_alphas
    classes = calibration.classes.tolist()
    stops = []
    for value in sorted({*values}):
        risks = (value * each for each in own[: len(classes)])
        alpha = dict(zip(classes, risks, strict=True)) if by_class else value
        if (thresholds := _if_known(spec.thresholds, calibration, alpha)) is not None:
            stops.append(Stop(value, thresholds))
    return stops


def alpha_range(part: Stratum, promise: Promise) -> AlphaRange | None:
    """Return where a stratum's thresholds begin and end, within a thousandth of ``B``; None if never.

    A share lies between 0 and 1, whatever ``B``.
    """
    curve = part.curve
    if not curve.n_rows or not curve.bound:
        return None
    if isinstance(promise, Expectation) and curve.stake is not None:
        whole = curve.stake + curve.bound * curve.weight / curve.n_rows
        lowest = (whole - curve.stake) / whole
        return AlphaRange(lowest, lowest + curve.total_loss(math.inf) / whole)
    if isinstance(promise, Expectation):
        per_row = curve.total_loss(math.inf) * curve.n_rows / curve.weight if curve.weight else Fraction(0)
        n = curve.n_rows + 1
        return AlphaRange(curve.bound / n, (per_row + curve.bound) / n)
    most = curve.bound if curve.stake is None else Fraction(1)
    steps = [most * step / _FINEST for step in range(1, _FINEST)]
    threshold = partial(_if_known, promise.threshold, part)
    first = bisect.bisect_left(steps, True, key=lambda alpha: threshold(alpha) != -math.inf)
    if first == len(steps):
        return None
    last = bisect.bisect_left(steps, True, lo=first, key=lambda alpha: threshold(alpha) == math.inf)
    return AlphaRange(steps[first], steps[last] if last < len(steps) else most)


def _if_known(threshold: Callable[..., Known], *arguments: Any) -> Known | None:
    """Return a threshold; None if the curve does not have that part."""
    try:
        return threshold(*arguments)
    except NotKnownError:
        return None


def _multiples_between(lowest: Fraction, saturation: Fraction, limit: Fraction, room: int) -> list[Fraction]:
    """Return the multiples of the finest round step for which there is room, below a limit."""

    def multiples(step: Fraction) -> range:
        below_limit = math.ceil(limit / step) - 1
        return range(math.ceil(lowest / step), min(math.ceil(saturation / step), below_limit) + 1)

    step = chosen = next(steps := _round_steps(limit))
    while len(multiples(step)) <= room and step * _FINEST >= saturation:
        chosen, step = step, next(steps)
    return [multiple * chosen for multiple in multiples(chosen)]


def _round_steps(bound: Fraction) -> Iterator[Fraction]:
    """Yield 1, 2 and 5 times the powers of ten, descending from the first of at least ``bound``."""
    power = Fraction(1)
    while power < bound:
        power *= 10
    while power >= 10 * bound:
        power /= 10
    for exponent in count():
        for digit in (10, 5, 2):
            yield digit * power / 10 ** (exponent + 1)


def _room(n_classes: int, n_strata: int) -> int:
    """Return how many multiples of a step a report has room for, with ``alpha`` between them."""
    held = 6 * n_classes**2 if n_classes <= MOST_CLASSES_HELD else 0
    cases = 10 * (120 + 4 * n_classes)
    room = _CHARACTERS // (1_200 + 160 * n_classes + held + cases + _CHARACTERS_OF_STRATUM * n_strata)
    fewest = _FEWEST_STOPS_BY_ROW if n_strata else math.ceil(FEWEST_STOPS * _WIDEST_GAP)
    return max(fewest, min(room, MOST_STOPS - 1))
