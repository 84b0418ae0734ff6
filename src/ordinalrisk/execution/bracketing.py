"""Exact thresholds of rows that lie in many parts, none of which sends all its steps.

A random sample of the steps brackets each threshold. Each part then counts what lies below the bracket, and
sends the steps inside it, summed up by level. If that is not all that is wanted, exact counts below many
levels of the sample tell where to look instead. How much is sent and kept does not grow with the rows. Which
steps are kept in the end depends on the rows alone, not on the sample or on how the rows were cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.risk_curve import OrderedSteps
from ordinalrisk.curves.steps import SortedSteps
from ordinalrisk.curves.windows import Window, WindowedSteps
from ordinalrisk.execution.part_steps import (
    Answer,
    Draw,
    FirstLook,
    Key,
    LevelSums,
    PartSteps,
    Question,
    Sample,
)

KEPT_WHOLE = 1 << 15
"""So many steps, all strata together, are few enough to keep them all."""
SAMPLED = 1 << 15
"""How many steps are drawn, all strata together, to begin with."""
SAMPLED_OF_STRATUM = 1 << 10
MOST_SENT = 1 << 18
"""So many steps of a bracket may be sent at once, even if no two have the same level."""
MOST_ROUNDS = 100
"""Each question encloses a threshold more closely, so that a few are enough."""
_EDGES = 256
_DEVIATIONS = 3  # on either side of where the sample puts a threshold; rarely, another round is needed
_TIMES_WORSE = 4  # than an even sample may the first one be
_SPREAD, _WIDEST = 4, 1 << 16

_CONTRADICTED = (
    "The partitions contradict what they said before; their rows must be the same whenever they are "
    "computed: give random numbers a seed, and do not change files meanwhile."
)

Found = TypeVar("Found")


class Parts(Protocol):
    """All parts of the rows, wherever they are."""

    def first_look(self) -> FirstLook:
        """What all parts answer to the :func:`first_question`."""

    def ask(
        self, question: Callable[[PartSteps], Found], merged: Callable[[Sequence[Found]], Found]
    ) -> Found:
        """What all parts answer, merged before it is sent."""


def first_question(n_parts: int) -> Callable[[PartSteps], FirstLook]:
    """What to ask each of so many parts first: how much there is, and for a few steps."""
    return _FirstAsked(SAMPLED / n_parts, SAMPLED_OF_STRATUM / n_parts)


def windows_around(
    parts: Parts, first: FirstLook, budgets: Mapping[Key, set[int]], largest: Mapping[Key, int]
) -> dict[Key, OrderedSteps]:
    """The steps of each stratum around the levels at which its total loss passes one of the budgets.

    Parameters
    ----------
    parts : Parts
        The steps.
    first : FirstLook
        How many there are, and some of them.
    budgets : mapping to set of int
        In units, for each stratum that has steps.
    largest : mapping to int
        The largest loss of a row of each stratum, in units.
    """
    sizes = first.sizes
    few_in_all = sum(sizes.steps.values()) <= KEPT_WHOLE
    searches = [
        _Search(key, budget, _margin(budget, largest[key]), sizes.units[key], sizes.steps[key])
        for key, wanted in budgets.items()
        for budget in sorted(wanted)
        if not few_in_all and 0 <= budget < sizes.units[key]
    ]
    whole = {key for key in budgets if few_in_all and sizes.steps[key]}
    everything = _Answered(dict.fromkeys(whole, _EVERYTHING))
    few = _asked(parts, everything, Answer, sizes.checksum) if whole else {}
    _find(parts, searches, first.samples, sizes.checksum)
    return {
        key: _all_of(few[key].inside, sizes.units[key])
        if key in whole
        else WindowedSteps(
            _joined([each.window for each in searches if each.key == key and each.window is not None]),
            sizes.units[key],
            max((each.most_tied for each in searches if each.key == key), default=0),
        )
        for key in budgets
    }


def _margin(budget: int, largest: int) -> int:
    """How far from the budget the steps are kept: as far as the total loss of other rows may well lie."""
    return min(_SPREAD * math.isqrt(budget * largest), _WIDEST)


def _find(parts: Parts, searches: Sequence[_Search], samples: Mapping[Key, Sample], checksum: int) -> None:
    """Ask until all that is wanted is found."""
    drawn = {(key, 0): sample for key, sample in samples.items()}
    drawn |= _drawn_evenly(parts, {each.key: each.n_steps for each in searches}, samples, checksum)
    asked = {id(each): each.asks(drawn[each.key, 0]) for each in searches}
    remaining = list(searches)
    for _ in range(MOST_ROUNDS):
        if not remaining:
            return
        questions = {
            key: _together([asked[id(each)] for each in remaining if each.key == key])
            for key in dict.fromkeys(each.key for each in remaining)
        }
        answers = _asked(parts, _Answered(questions), Answer, checksum)
        for each in remaining:
            each.learn(asked[id(each)], questions[each.key], answers[each.key])
        remaining = [each for each in remaining if each.window is None]
        draws = {
            (each.key, number): Draw(SAMPLED / each.n_inside, each.low, each.high)
            for number, each in enumerate(remaining)
            if not asked[id(each)].brackets and each.n_inside > MOST_SENT and not each.is_stuck
        }
        drawn = _asked(parts, _Sampled(draws), Sample, checksum) if draws else {}
        for number, each in enumerate(remaining):
            if asked[id(each)].brackets:
                asked[id(each)] = each.asks_edges()
            elif (each.key, number) not in draws:
                asked[id(each)] = each.asks_all()
            else:
                asked[id(each)] = each.asks(drawn[each.key, number])
    raise ValueError(_CONTRADICTED)


def _drawn_evenly(
    parts: Parts, n_steps: Mapping[Key, int], samples: Mapping[Key, Sample], checksum: int
) -> dict[tuple[Key, int], Sample]:
    """Samples of those strata whose first one says little, as when most steps lie in one part."""
    total, draws = sum(n_steps.values()), dict[tuple[Key, int], Draw]()
    for key, n in n_steps.items():
        share = min(1.0, max(SAMPLED / total, SAMPLED_OF_STRATUM / n))
        weights = samples[key].weights.astype(np.float64)
        worth = weights.sum() ** 2 / (weights**2).sum() if len(weights) else 0.0
        if worth < share * n / _TIMES_WORSE:
            draws[key, 0] = Draw(share, -math.inf, math.inf)
    return _asked(parts, _Sampled(draws), Sample, checksum) if draws else {}


def _asked(parts: Parts, question: Callable[[PartSteps], Any], kind: Any, checksum: int) -> dict[Any, Any]:
    """What the parts answer, if they are still the same as when they were asked first."""
    answers: dict[Any, Any]
    answers, found = parts.ask(question, _MergedByKey(kind))
    if found != checksum:
        raise ValueError(_CONTRADICTED)
    return answers


@dataclass
class _Search:
    """Looks for the steps where the total loss of a stratum is within ``margin`` of ``budget``.

    All of them lie from ``low``, below which there are ``below`` units in ``n_below`` steps, to ``high``,
    below which there are ``n_below_high`` steps.
    """

    key: Key
    budget: int
    margin: int
    total: int
    n_steps: int
    low: float = -math.inf
    high: float = math.inf
    below: int = 0
    n_below: int = 0
    is_stuck: bool = False
    window: Window | None = None
    most_tied: int = 0

    def __post_init__(self) -> None:
        self.n_inside = self.n_below_high = self.n_steps
        self.edges = np.array([self.low])

    def asks_all(self) -> Question:
        """What to ask if the steps are few, or if so many have one level that no sample tells them apart."""
        return Question(np.array([self.low]), ((self.low, self.high),))

    def asks(self, sample: Sample) -> Question:
        """What to ask when some of the steps from ``low`` to ``high`` are known."""
        if not len(sample.levels):
            return self.asks_all()
        order = np.argsort(sample.levels, kind="stable")
        levels, weights = sample.levels[order], sample.weights[order].astype(np.float64)
        shares = _shares(sample.units[order], self.total) * weights
        about = self.below / self.total + np.cumsum(shares)
        error = _DEVIATIONS * np.sqrt(np.cumsum(shares**2) + shares.max() ** 2)
        first = int(np.searchsorted(about + error, (self.budget - self.margin) / self.total, side="right"))
        above = np.maximum.accumulate(about - error)
        last = int(np.searchsorted(above, (self.budget + self.margin) / self.total, side="right"))
        low = float(levels[first - 1]) if first else self.low
        high = float(levels[last]) if last < len(levels) else self.high
        near = levels[_spread_over(len(levels), (first + last) // 2)]
        self.edges = np.unique(np.append(near, [low, self.low]))
        inside = slice(first, last + 1)
        if _distinct(levels[inside], weights[inside]) > MOST_SENT:
            return self.asks_edges()
        return Question(np.unique([low, self.low]), ((low, high),))

    def asks_edges(self) -> Question:
        """What to ask if the sample did not tell true: how much lies below many of its levels."""
        return Question(self.edges, ())

    def learn(self, asked: Question, question: Question, answer: Answer) -> None:
        """Keep what is wanted if it is there, else look closer."""
        for low, high in asked.brackets:
            below = answer.units_below[int(np.searchsorted(question.edges, low))]
            self._keep(_between(answer.inside, low, high), below)
        if self.window is None:
            self._look_closer(question.edges, answer)

    def _keep(self, inside: LevelSums, below: int) -> None:
        totals = below + np.cumsum(inside.units.astype(object if self.total >= 2**63 else np.int64))
        lowest, highest = self.budget - self.margin, self.budget + self.margin
        through = int(totals[-1]) if len(totals) else below
        if below > max(lowest, 0) or through <= min(highest, self.total - 1):
            return
        before = np.append(below, totals[:-1])
        wanted = np.flatnonzero((totals > lowest) & (before <= highest))
        kept = slice(wanted[0], wanted[-1] + 1)
        self.window = Window(int(before[kept][0]), inside.levels[kept], totals[kept])
        self.most_tied = int(inside.counts[kept].max())

    def _look_closer(self, edges: NDArray[np.float64], answer: Answer) -> None:
        before = self.low, self.high
        for edge, units, steps in zip(edges.tolist(), answer.units_below, answer.steps_below, strict=True):
            if units <= max(self.budget - self.margin, 0):
                if edge > self.low:  # it may be one that another search has asked about
                    self.low, self.below, self.n_below = edge, units, steps
            elif units > self.budget + self.margin:
                if edge < self.high:
                    self.high, self.n_below_high = edge, steps
                break
        self.n_inside = self.n_below_high - self.n_below
        self.is_stuck = (self.low, self.high) == before


def _shares(units: NDArray[Any], total: int) -> NDArray[np.float64]:
    """Steps as shares of all of them together: units alone may be too large for a float."""
    if units.dtype == object:
        return np.array([unit / total for unit in units.tolist()])
    return units / float(total)


def _distinct(levels: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """About how many levels there are, of which these are a sample: those met again are few and heavy."""
    _, first, times = np.unique(levels, return_index=True, return_counts=True)
    return float(weights[first[times == 1]].sum() + np.count_nonzero(times > 1))


def _spread_over(n: int, middle: int) -> NDArray[np.int64]:
    """Some positions among ``n``, half of them as close to the middle as a sample may be wrong."""
    near = middle + np.arange(-_EDGES // 2, _EDGES // 2) * max(math.isqrt(n) // 32, 1)
    everywhere = np.linspace(0, n - 1, _EDGES).astype(np.int64)
    return np.unique(np.clip(np.concatenate([near, everywhere]), 0, n - 1))


def _between(sums: LevelSums, low: float, high: float) -> LevelSums:
    first, last = np.searchsorted(sums.levels, low), np.searchsorted(sums.levels, high, side="right")
    return LevelSums(sums.levels[first:last], sums.units[first:last], sums.counts[first:last])


def _together(questions: Sequence[Question]) -> Question:
    edges = np.unique(np.concatenate([question.edges for question in questions]))
    return Question(edges, tuple(bracket for question in questions for bracket in question.brackets))


def _joined(windows: Sequence[Window]) -> tuple[Window, ...]:
    """The windows with no two that overlap or touch, in ascending order."""
    apart: list[Window] = []
    for window in sorted(windows, key=lambda each: each.below):
        if apart and window.below <= apart[-1].totals[-1]:
            before = apart.pop()
            new = slice(int(np.searchsorted(window.levels, before.levels[-1], side="right")), None)
            levels = np.concatenate([before.levels, window.levels[new]])
            window = Window(before.below, levels, np.concatenate([before.totals, window.totals[new]]))
        apart.append(window)
    return tuple(apart)


def _all_of(sums: LevelSums, total: int) -> SortedSteps:
    totals = np.cumsum(sums.units.astype(object if total >= 2**63 else np.int64))
    return SortedSteps(sums.levels, totals, int(sums.counts.max()))


_EVERYTHING = Question(np.array([-math.inf]), ((-math.inf, math.inf),))


@dataclass(frozen=True)
class _MergedByKey:
    """Merges answers for each stratum, which not every part has; a class, since it travels to the parts."""

    kind: Any

    def __call__(self, parts: Sequence[tuple[dict[Any, Any], int]]) -> tuple[dict[Any, Any], int]:
        keys = dict.fromkeys(key for part, _ in parts for key in part)
        answers = {key: self.kind.merged([part[key] for part, _ in parts if key in part]) for key in keys}
        return answers, sum(checksum for _, checksum in parts)


@dataclass(frozen=True)
class _FirstAsked:
    most: float
    most_of_stratum: float

    def __call__(self, part: PartSteps) -> FirstLook:
        return part.first_look(self.most, self.most_of_stratum)


@dataclass(frozen=True)
class _Sampled:
    draws: Mapping[tuple[Key, int], Draw]

    def __call__(self, part: PartSteps) -> tuple[dict[tuple[Key, int], Sample], int]:
        return part.sample(self.draws), part.checksum


@dataclass(frozen=True)
class _Answered:
    questions: Mapping[Key, Question]

    def __call__(self, part: PartSteps) -> tuple[dict[Key, Answer], int]:
        return part.answers(self.questions), part.checksum
