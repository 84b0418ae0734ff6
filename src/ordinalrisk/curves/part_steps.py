"""The steps of the losses of one part of the rows, kept where the part is.

A part answers questions about its steps in few bytes. Answers are whole numbers and sums by level, so those
of several parts add up to the answer of all rows, however the rows are cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.steps import Steps, last_of_each_level

_TIMES_MORE = 4  # how much larger a sample may become so that small strata are in it
_FEW = 4  # up to this many edges, each is counted on its own

Key = tuple[Any, int | None]
"""A stratum: the name of its group and the position of its true class."""


def _uncounted() -> NDArray[np.int64]:
    return np.zeros(0, np.int64)


class LevelSums(NamedTuple):
    """Distinct levels, ascending, with the units and the number of the steps at each."""

    levels: NDArray[np.float64]
    units: NDArray[Any]
    counts: NDArray[np.integer]

    @classmethod
    def added(
        cls, levels: NDArray[np.float64], units: NDArray[Any], counts: NDArray[np.integer]
    ) -> LevelSums:
        """Sum steps in any order by level, in the smallest number types that hold the sums."""
        if not len(levels):
            return cls(np.empty(0), np.empty(0, np.uint8), np.empty(0, np.uint8))
        order = np.argsort(levels)
        at = levels[order]
        first = np.append(0, last_of_each_level(at)[:-1] + 1)
        wide = np.int64 if len(levels) * int(units.max()) < 2**63 else object
        sums = np.add.reduceat(units[order].astype(wide), first)
        number = np.add.reduceat(counts[order].astype(np.int64), first)
        return cls(at[first], _narrowed(sums), _narrowed(number))

    def merge(self, other: LevelSums) -> LevelSums:
        return self.added(*(np.concatenate(both) for both in zip(self, other, strict=True)))


def _narrowed(values: NDArray[Any]) -> NDArray[Any]:
    largest = int(values.max())
    return values if largest >= 2**63 else values.astype(np.min_scalar_type(largest))


@dataclass(frozen=True)
class Sizes:
    """The numbers of rows, steps and units of each stratum, and of rows of each true class.

    ``stakes`` is the most that the rows of each stratum can lose together, in units, if ``alpha`` is a share.
    """

    rows: dict[Key, int]
    steps: dict[Key, int]
    units: dict[Key, int]
    class_rows: NDArray[np.int64]
    digests: dict[int, str]
    first_seen: dict[Key, tuple[int, int]]
    stakes: dict[Key, int] = field(default_factory=dict)
    score_counts: NDArray[np.int64] = field(default_factory=_uncounted)

    @property
    def checksum(self) -> int:
        """A number that changes with the rows."""
        return sum(int(digest, 16) for digest in self.digests.values())

    @property
    def rows_in_order(self) -> dict[Key, int]:
        """The number of rows of each stratum, in the order of first appearance."""
        return {key: self.rows[key] for key in sorted(self.rows, key=self.first_seen.__getitem__)}

    def merge(self, other: Sizes) -> Sizes:
        return Sizes(
            _sums(self.rows, other.rows),
            _sums(self.steps, other.steps),
            _sums(self.units, other.units),
            self.class_rows + other.class_rows,
            self.digests | other.digests,
            {
                key: min(seen[key] for seen in (self.first_seen, other.first_seen) if key in seen)
                for key in {**self.first_seen, **other.first_seen}
            },
            _sums(self.stakes, other.stakes),
            self.score_counts + other.score_counts,
        )


def _sums(one: Mapping[Key, int], other: Mapping[Key, int]) -> dict[Key, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


class Draw(NamedTuple):
    """The share of the steps between two levels to draw at random."""

    share: float
    low: float
    high: float


class Sample(NamedTuple):
    """A sample of the steps, unsorted, and how many steps each of them stands for."""

    levels: NDArray[np.float64]
    units: NDArray[Any]
    weights: NDArray[np.float32]

    def merge(self, other: Sample) -> Sample:
        columns: Any = zip(self, other, strict=True)
        return Sample(*map(np.concatenate, columns))


@dataclass(frozen=True)
class FirstLook:
    """The sizes of a part, and a sample of its steps of the same size for every part."""

    sizes: Sizes
    samples: dict[Key, Sample]

    def merge(self, other: FirstLook) -> FirstLook:
        return FirstLook(self.sizes.merge(other.sizes), merge_by_key(self.samples, other.samples))


def merge_by_key(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> dict[Any, Any]:
    """Merge the values that both mappings have, and keep those that one of them has."""
    both = {key: value.merge(other[key]) for key, value in one.items() if key in other}
    return {**one, **other, **both}


@dataclass(frozen=True)
class Answers:
    """The answers for each stratum of a part, with the checksum of its rows."""

    by_key: dict[Any, Any]
    checksum: int

    def merge(self, other: Answers) -> Answers:
        return Answers(merge_by_key(self.by_key, other.by_key), self.checksum + other.checksum)


class Question(NamedTuple):
    """Count the steps below each edge (ascending levels), and sum those in the brackets by level."""

    edges: NDArray[np.float64]
    brackets: tuple[tuple[float, float], ...]


class Answer(NamedTuple):
    """The units and the number of steps below each edge, and the sums by level in the brackets."""

    units_below: tuple[int, ...]
    steps_below: tuple[int, ...]
    inside: LevelSums

    def merge(self, other: Answer) -> Answer:
        return Answer(
            tuple(map(sum, zip(self.units_below, other.units_below, strict=True))),
            tuple(map(sum, zip(self.steps_below, other.steps_below, strict=True))),
            self.inside.merge(other.inside),
        )


@dataclass(frozen=True, eq=False)
class PartSteps:
    """The steps of a part, by stratum."""

    strata: dict[Key, Steps]
    rows: dict[Key, int]
    class_rows: NDArray[np.int64]
    digests: dict[int, str]
    stakes: dict[Key, int] = field(default_factory=dict)
    score_counts: NDArray[np.int64] = field(default_factory=_uncounted)

    def sizes(self) -> Sizes:
        return Sizes(
            dict(self.rows),
            {key: len(steps.at) for key, steps in self.strata.items()},
            {key: steps.total for key, steps in self.strata.items()},
            self.class_rows,
            self.digests,
            {key: (min(self.digests), order) for order, key in enumerate(self.rows)},
            self.stakes,
            self.score_counts,
        )

    @property
    def checksum(self) -> int:
        return sum(int(digest, 16) for digest in self.digests.values())

    def first_look(self, most: float, most_of_stratum: float) -> FirstLook:
        """Return the sizes, and a sample of about ``most`` steps of all strata together.

        Unless there are too many strata, the sample has at least about ``most_of_stratum`` steps of each.
        """
        sizes = self.sizes()
        n_steps = sum(sizes.steps.values())
        most_of_stratum = min(most_of_stratum, _TIMES_MORE * most / max(len(self.strata), 1))
        draws = {
            (key, 0): Draw(min(1.0, max(most / n_steps, most_of_stratum / n)), -np.inf, np.inf)
            for key, n in sizes.steps.items()
            if n
        }
        return FirstLook(sizes, {key: sample for (key, _), sample in self.sample(draws).items()})

    def sample(self, draws: Mapping[tuple[Key, int], Draw]) -> dict[tuple[Key, int], Sample]:
        """Draw steps of some strata at random, the same ones in every call."""
        random = np.random.default_rng(self.checksum)
        return {
            (key, number): _drawn(self.strata[key], draw, random)
            for (key, number), draw in draws.items()
            if key in self.strata
        }

    def answers(self, questions: Mapping[Key, Question]) -> dict[Key, Answer]:
        return {
            key: _answer(self.strata[key], question)
            for key, question in questions.items()
            if key in self.strata
        }


@dataclass(frozen=True)
class PartQuestion:
    """A call of :meth:`PartSteps.sample` or :meth:`PartSteps.answers` that can be sent to another machine."""

    method: str
    queries: Mapping[Any, Any]

    def __call__(self, part: PartSteps) -> Answers:
        return Answers(getattr(part, self.method)(self.queries), part.checksum)


def _drawn(steps: Steps, draw: Draw, random: np.random.Generator) -> Sample:
    inside = (steps.at >= draw.low) & (steps.at <= draw.high)
    n_inside = int(np.count_nonzero(inside))
    count = min(int(n_inside * draw.share + random.random()), n_inside)
    chosen = random.choice(n_inside, count, replace=False, shuffle=False)
    if n_inside < len(inside):
        chosen = np.flatnonzero(inside)[chosen]
    return Sample(steps.at[chosen], steps.sizes_of(chosen), np.full(count, 1 / draw.share, np.float32))


def _answer(steps: Steps, question: Question) -> Answer:
    below = [steps.below(edge) for edge in question.edges] if len(question.edges) <= _FEW else None
    units, counts = zip(*below, strict=True) if below else _below_each(steps, question.edges)
    inside = np.zeros(len(steps.at), bool)
    for low, high in question.brackets:
        inside |= (steps.at >= low) & (steps.at <= high)
    chosen = np.flatnonzero(inside)
    sums = LevelSums.added(steps.at[chosen], steps.sizes_of(chosen), np.ones(len(chosen), np.uint8))
    return Answer(units, counts, sums)


def _below_each(steps: Steps, edges: NDArray[np.float64]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return units and numbers below each of many ascending levels."""
    if isinstance(steps.by, int):
        counts = np.searchsorted(np.sort(steps.at), edges).tolist()
        return tuple(steps.by * count for count in counts), tuple(counts)
    order = np.argsort(steps.at)
    wide = np.int64 if len(steps.at) * steps.largest < 2**63 else object
    totals = np.append(0, np.cumsum(steps.by[order].astype(wide)))
    places = np.searchsorted(steps.at[order], edges)
    return tuple(totals[places].tolist()), tuple(places.tolist())
