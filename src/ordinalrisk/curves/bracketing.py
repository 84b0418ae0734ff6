"""Find exact thresholds of rows in many parts that do not send all their steps.

A random sample of the steps brackets each threshold. Each part then counts the steps below the bracket and
sends those inside it, summed by level. If the bracket misses the threshold, exact counts below many levels of
the sample show where to look instead. How much is sent and kept does not grow with the rows. Which steps are
kept in the end depends on the rows alone, not on the sample or on how the rows are cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.part_steps import (
    Answer,
    Draw,
    FirstLook,
    Key,
    LevelSums,
    PartQuestion,
    PartSteps,
    Question,
    Sample,
)
from ordinalrisk.curves.windows import OrderedSteps, Window

KEPT_WHOLE = 1 << 15
"""Keep all steps if there are at most this many in all strata together."""
SAMPLED = 1 << 15
"""The size of the first sample of steps, all strata together."""
SAMPLED_OF_STRATUM = 1 << 10
MOST_SENT = 1 << 18
"""The most steps of a bracket to send at once, if no two have the same level."""
MOST_ROUNDS = 100
"""A few rounds are enough, because each question narrows the bracket."""
_EDGES = 256
_DEVIATIONS = 3  # on either side of the estimated threshold; rarely, another round is needed
_TIMES_WORSE = 4  # how much less even than a new sample the first one may be
_SPREAD, _WIDEST = 4, 1 << 16

_CHANGED = (
    "The rows of the partitions changed between two passes. They must be the same whenever they are "
    "computed: give random numbers a seed, and do not change files meanwhile."
)

AnswerT = TypeVar("AnswerT")


class RemoteParts(Protocol):
    """All parts of the rows, wherever they are."""

    def first_look(self) -> FirstLook:
        """Return the merged answers of all parts to the :func:`first_question`."""

    def ask(self, question: Callable[[PartSteps], AnswerT]) -> AnswerT:
        """Return the answers of all parts, merged before they are sent."""


def first_question(n_parts: int) -> Callable[[PartSteps], FirstLook]:
    """Return the first question to each of ``n_parts`` parts: its sizes, and a sample of its steps."""
    return methodcaller("first_look", SAMPLED / n_parts, SAMPLED_OF_STRATUM / n_parts)


def windows_around(
    parts: RemoteParts, first: FirstLook, budgets: Mapping[Key, set[int]], largest: Mapping[Key, int]
) -> dict[Key, OrderedSteps]:
    """Return the steps of each stratum near the levels at which its total loss exceeds one of its budgets.

    ``budgets`` and ``largest``, the largest loss of a row, are in units; each stratum has steps.
    """
    sizes = first.sizes
    if sum(sizes.steps.values()) <= KEPT_WHOLE:
        answers = _ask(parts, "answers", dict.fromkeys(budgets, _EVERYTHING), sizes.checksum)
        return {key: _all_of(answer.inside, sizes.units[key]) for key, answer in answers.items()}
    searches = [
        _Search(key, budget, _margin(budget, largest[key]), sizes.units[key], sizes.steps[key])
        for key, wanted in budgets.items()
        for budget in sorted(wanted)
        if 0 <= budget < sizes.units[key]
    ]
    _find(parts, searches, first.samples, sizes.checksum)
    return {
        key: OrderedSteps(
            _adjoining_windows_merged(
                [each.window for each in searches if each.key == key and each.window is not None]
            ),
            sizes.units[key],
            max((each.most_tied for each in searches if each.key == key), default=0),
        )
        for key in budgets
    }


def _margin(budget: int, largest: int) -> int:
    """Return how far around the budget to keep steps: about how much the total of other rows can differ."""
    return min(_SPREAD * math.isqrt(budget * largest), _WIDEST)


def _find(
    parts: RemoteParts, searches: Sequence[_Search], samples: Mapping[Key, Sample], checksum: int
) -> None:
    """Ask the parts until each search has found its window."""
    drawn = {(key, 0): sample for key, sample in samples.items()}
    drawn |= _drawn_evenly(parts, {each.key: each.n_steps for each in searches}, samples, checksum)
    for each in searches:
        each.asked = each.asks(drawn[each.key, 0])
    remaining = list(searches)
    for _ in range(MOST_ROUNDS):
        if not remaining:
            return
        questions = {
            key: _together([each.asked for each in remaining if each.key == key])
            for key in dict.fromkeys(each.key for each in remaining)
        }
        answers = _ask(parts, "answers", questions, checksum)
        for each in remaining:
            each.learn(questions[each.key], answers[each.key])
        remaining = [each for each in remaining if each.window is None]
        draws = {
            (each.key, number): Draw(SAMPLED / each.n_inside, each.low, each.high)
            for number, each in enumerate(remaining)
            if not each.asked.brackets and each.n_inside > MOST_SENT and not each.is_stuck
        }
        drawn = _ask(parts, "sample", draws, checksum)
        for number, each in enumerate(remaining):
            if each.asked.brackets:
                each.asked = each.asks_edges()
            elif (each.key, number) in draws:
                each.asked = each.asks(drawn[each.key, number])
            else:
                each.asked = each.asks_all()
    raise ValueError(_CHANGED)


def _drawn_evenly(
    parts: RemoteParts, n_steps: Mapping[Key, int], samples: Mapping[Key, Sample], checksum: int
) -> dict[tuple[Key, int], Sample]:
    """Sample strata again if the first sample is poor, for example with most steps in one part."""
    total, draws = sum(n_steps.values()), dict[tuple[Key, int], Draw]()
    for key, n in n_steps.items():
        share = min(1.0, max(SAMPLED / total, SAMPLED_OF_STRATUM / n))
        weights = samples[key].weights.astype(np.float64)
        worth = weights.sum() ** 2 / (weights**2).sum() if len(weights) else 0.0
        if worth < share * n / _TIMES_WORSE:
            draws[key, 0] = Draw(share, -math.inf, math.inf)
    return _ask(parts, "sample", draws, checksum)


def _ask(parts: RemoteParts, method: str, queries: Mapping[Any, Any], checksum: int) -> dict[Any, Any]:
    """Return the merged answers of all parts; raise an error if their rows have changed."""
    if not queries:
        return {}
    answers = parts.ask(PartQuestion(method, queries))
    if answers.checksum != checksum:
        raise ValueError(_CHANGED)
    return answers.by_key


@dataclass
class _Search:
    """Search for the steps at which the total loss of a stratum is within ``margin`` of ``budget``.

    They lie between the levels ``low`` and ``high``. Below ``low`` there are ``n_below`` steps of ``below``
    units in all, below ``high`` there are ``n_below_high`` steps.
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
        self.asked = self.asks_all()

    def asks_all(self) -> Question:
        """Ask for all steps, if they are few or if most of them have the same level."""
        return Question(np.array([self.low]), ((self.low, self.high),))

    def asks(self, sample: Sample) -> Question:
        """Ask for the bracket that a sample of the steps between ``low`` and ``high`` suggests."""
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
        if _estimated_levels(levels[inside], weights[inside]) > MOST_SENT:
            return self.asks_edges()
        return Question(np.unique([low, self.low]), ((low, high),))

    def asks_edges(self) -> Question:
        """Ask for the counts below many levels of the sample, if its bracket missed the threshold."""
        return Question(self.edges, ())

    def learn(self, question: Question, answer: Answer) -> None:
        """Keep the window if the answer contains it, else narrow the bracket.

        The question combines the questions of all searches for this stratum.
        """
        for low, high in self.asked.brackets:
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
                if edge > self.low:  # another search may have asked about it
                    self.low, self.below, self.n_below = edge, units, steps
            elif units > self.budget + self.margin:
                if edge < self.high:
                    self.high, self.n_below_high = edge, steps
                break
        self.n_inside = self.n_below_high - self.n_below
        self.is_stuck = (self.low, self.high) == before


def _shares(units: NDArray[Any], total: int) -> NDArray[np.float64]:
    """Return steps as shares of their total: the units themselves may be too large for a float."""
    if units.dtype == object:
        return np.array([unit / total for unit in units.tolist()])
    return units / float(total)


def _estimated_levels(levels: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Estimate the number of distinct levels from a sample; a level that occurs twice counts as one."""
    _, first, times = np.unique(levels, return_index=True, return_counts=True)
    return float(weights[first[times == 1]].sum() + np.count_nonzero(times > 1))


def _spread_over(n: int, middle: int) -> NDArray[np.int64]:
    """Return some of ``n`` positions, half of them within a sampling error of the middle."""
    near = middle + np.arange(-_EDGES // 2, _EDGES // 2) * max(math.isqrt(n) // 32, 1)
    everywhere = np.linspace(0, n - 1, _EDGES).astype(np.int64)
    return np.unique(np.clip(np.concatenate([near, everywhere]), 0, n - 1))


def _between(sums: LevelSums, low: float, high: float) -> LevelSums:
    first, last = np.searchsorted(sums.levels, low), np.searchsorted(sums.levels, high, side="right")
    return LevelSums(sums.levels[first:last], sums.units[first:last], sums.counts[first:last])


def _together(questions: Sequence[Question]) -> Question:
    edges = np.unique(np.concatenate([question.edges for question in questions]))
    return Question(edges, tuple(bracket for question in questions for bracket in question.brackets))


def _adjoining_windows_merged(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Merge windows that overlap or touch; return them in ascending order."""
    merged: list[Window] = []
    for window in sorted(windows, key=lambda each: each.below):
        if merged and window.below <= merged[-1].totals[-1]:
            before = merged.pop()
            new = slice(int(np.searchsorted(window.levels, before.levels[-1], side="right")), None)
            levels = np.concatenate([before.levels, window.levels[new]])
            window = Window(before.below, levels, np.concatenate([before.totals, window.totals[new]]))
        merged.append(window)
    return tuple(merged)


def _all_of(sums: LevelSums, total: int) -> OrderedSteps:
    totals = np.cumsum(sums.units.astype(object if total >= 2**63 else np.int64))
    return OrderedSteps.whole(sums.levels, totals, int(sums.counts.max()))


_EVERYTHING = Question(np.array([-math.inf]), ((-math.inf, math.inf),))
