"""The steps of the losses of some of the rows, which stay where those rows are.

A part answers questions about its steps in few bytes, and answers of several parts add up to that of all of
them, whatever the rows were cut into: they are whole numbers, and sums by level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.accumulate import RowExtras
from ordinalrisk.calibration.fingerprint import Fingerprint
from ordinalrisk.curves.steps import Steps, last_of_each_level
from ordinalrisk.growth.rules import GrowthRule
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.losses.cost_table import CostTable

_TIMES_MORE = 4  # for small strata may a sample have, all together
_FEW = 4  # levels, below which steps are counted one after the other

Key = tuple[Any, int | None]
"""Which rows are calibrated together: the name of their group and the position of their true class."""


class LevelSums(NamedTuple):
    """Distinct levels, ascending, with the units and the number of the steps at each."""

    levels: NDArray[np.float64]
    units: NDArray[Any]
    counts: NDArray[np.integer]

    @classmethod
    def added(
        cls, levels: NDArray[np.float64], units: NDArray[Any], counts: NDArray[np.integer]
    ) -> LevelSums:
        """The sums of what may have equal levels, in any order and in as few bytes as hold them.

        Examples
        --------
        >>> LevelSums.added(np.array([0.5, 0.25, 0.5]), np.array([1, 2, 1]), np.array([1, 1, 1]))
        LevelSums(levels=array([0.25, 0.5 ]), units=array([2, 2], dtype=uint8), counts=array([1, 2], ...))
        """
        if not len(levels):
            return cls(np.empty(0), np.empty(0, np.uint8), np.empty(0, np.uint8))
        order = np.argsort(levels)
        at = levels[order]
        first = np.append(0, last_of_each_level(at)[:-1] + 1)
        wide = np.int64 if len(levels) * int(units.max()) < 2**63 else object
        sums = np.add.reduceat(units[order].astype(wide), first)
        number = np.add.reduceat(counts[order].astype(np.int64), first)
        return cls(at[first], _narrowed(sums), _narrowed(number))

    @classmethod
    def merged(cls, parts: Sequence[LevelSums]) -> LevelSums:
        """The sums over all parts."""
        return cls.added(*(np.concatenate([*arrays]) for arrays in zip(*parts, strict=True)))


def _narrowed(values: NDArray[Any]) -> NDArray[Any]:
    largest = int(values.max())
    return values if largest >= 2**63 else values.astype(np.min_scalar_type(largest))


@dataclass(frozen=True)
class Sizes:
    """How much there is: rows and steps of each stratum in the order met, and rows of each true class."""

    rows: dict[Key, int]
    steps: dict[Key, int]
    units: dict[Key, int]
    class_rows: NDArray[np.int64]
    digests: tuple[str, ...]

    @property
    def checksum(self) -> int:
        """That of all parts together."""
        return sum(int(digest, 16) for digest in self.digests)

    @classmethod
    def merged(cls, parts: Sequence[Sizes]) -> Sizes:
        """Those of all parts together."""
        return cls(
            _sums(part.rows for part in parts),
            _sums(part.steps for part in parts),
            _sums(part.units for part in parts),
            np.sum([part.class_rows for part in parts], axis=0),
            tuple(digest for part in parts for digest in part.digests),
        )


def _sums(parts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    total: dict[Key, int] = {}
    for part in parts:
        for key, number in part.items():
            total[key] = total.get(key, 0) + number
    return total


class Draw(NamedTuple):
    """Which share of the steps between two levels to draw at random."""

    share: float
    low: float
    high: float


class Sample(NamedTuple):
    """Some of the steps, in no order, and how many each of them stands for."""

    levels: NDArray[np.float64]
    units: NDArray[Any]
    weights: NDArray[np.float32]

    @classmethod
    def merged(cls, parts: Sequence[Sample]) -> Sample:
        """Those of all parts."""
        return cls(*(np.concatenate([*arrays]) for arrays in zip(*parts, strict=True)))


@dataclass(frozen=True)
class FirstLook:
    """How much there is, and a few steps: of a small part as many as of a large one."""

    sizes: Sizes
    samples: dict[Key, Sample]

    @classmethod
    def merged(cls, parts: Sequence[FirstLook]) -> FirstLook:
        """That of all parts together."""
        keys = dict.fromkeys(key for part in parts for key in part.samples)
        samples = {
            key: Sample.merged([part.samples[key] for part in parts if key in part.samples]) for key in keys
        }
        return cls(Sizes.merged([part.sizes for part in parts]), samples)


class Question(NamedTuple):
    """What to find out about the steps of a stratum.

    ``edges`` are levels, ascending, below each of which units and steps are counted; all steps from ``low``
    to ``high`` of each of the ``brackets`` are asked for, summed up by level.
    """

    edges: NDArray[np.float64]
    brackets: tuple[tuple[float, float], ...]


class Answer(NamedTuple):
    """The units and the number of steps below each edge, and the sums by level in the brackets."""

    units_below: tuple[int, ...]
    steps_below: tuple[int, ...]
    inside: LevelSums

    @classmethod
    def merged(cls, parts: Sequence[Answer]) -> Answer:
        """Those of all parts."""
        return cls(
            tuple(map(sum, zip(*(part.units_below for part in parts), strict=True))),
            tuple(map(sum, zip(*(part.steps_below for part in parts), strict=True))),
            LevelSums.merged([part.inside for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class PartSteps:
    """The steps of a part by stratum."""

    strata: dict[Key, Steps]
    rows: dict[Key, int]
    class_rows: NDArray[np.int64]
    digest: str | None

    def sizes(self) -> Sizes:
        """How much there is."""
        return Sizes(
            dict(self.rows),
            {key: len(steps.at) for key, steps in self.strata.items()},
            {key: steps.total for key, steps in self.strata.items()},
            self.class_rows,
            () if self.digest is None else (self.digest,),
        )

    @property
    def checksum(self) -> int:
        """The rows as a number, which is another one if they are others."""
        return int(self.digest or "0", 16)

    def first_look(self, most: float, most_of_stratum: float) -> FirstLook:
        """How much there is, and about ``most`` steps, shared out among the strata.

        If there are not too many strata, each of them has about ``most_of_stratum`` at least.
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
        """Some steps of strata, the same ones whenever asked."""
        random = np.random.default_rng(self.checksum)
        return {
            (key, number): _drawn(self.strata[key], draw, random)
            for (key, number), draw in draws.items()
            if key in self.strata
        }

    def answers(self, questions: Mapping[Key, Question]) -> dict[Key, Answer]:
        """What is asked about the strata."""
        return {
            key: _answer(self.strata[key], question)
            for key, question in questions.items()
            if key in self.strata
        }


def _drawn(steps: Steps, draw: Draw, random: np.random.Generator) -> Sample:
    inside = (steps.at >= draw.low) & (steps.at <= draw.high)
    n_inside = int(np.count_nonzero(inside))
    count = min(int(n_inside * draw.share + random.random()), n_inside)
    chosen = random.choice(n_inside, count, replace=False, shuffle=False)
    if n_inside < len(inside):
        chosen = np.flatnonzero(inside)[chosen]
    return Sample(steps.at[chosen], steps.sizes_of(chosen), np.full(count, 1 / draw.share, np.float32))


def _answer(steps: Steps, question: Question) -> Answer:
    below = [_below(steps, edge) for edge in question.edges] if len(question.edges) <= _FEW else None
    units, counts = zip(*below, strict=True) if below else _below_each(steps, question.edges)
    inside = np.zeros(len(steps.at), bool)
    for low, high in question.brackets:
        inside |= (steps.at >= low) & (steps.at <= high)
    chosen = np.flatnonzero(inside)
    sums = LevelSums.added(steps.at[chosen], steps.sizes_of(chosen), np.ones(len(chosen), np.uint8))
    return Answer(units, counts, sums)


def _below(steps: Steps, edge: float) -> tuple[int, int]:
    """The units and the number of the steps below a level."""
    below = steps.at < edge
    count = int(np.count_nonzero(below))
    if isinstance(steps.by, int):
        return steps.by * count, count
    return steps.sum_of(below), count


def _below_each(steps: Steps, edges: NDArray[np.float64]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The same for many levels, which ascend."""
    if isinstance(steps.by, int):
        counts = np.searchsorted(np.sort(steps.at), edges).tolist()
        return tuple(steps.by * count for count in counts), tuple(counts)
    order = np.argsort(steps.at)
    wide = np.int64 if len(steps.at) * steps.largest < 2**63 else object
    totals = np.append(0, np.cumsum(steps.by[order].astype(wide)))
    places = np.searchsorted(steps.at[order], edges)
    return tuple(totals[places].tolist()), tuple(places.tolist())


@dataclass
class PartCollector:
    """Takes in the rows of a part, batch by batch, and keeps the steps of their losses by stratum.

    Parameters
    ----------
    costs : CostTable
        The loss.
    growth : GrowthRule
        How intervals grow.
    by_label : bool
        Whether each true class is a stratum of its own.
    class_weights : sequence of int, optional
        How often rows of each class count.
    """

    costs: CostTable
    growth: GrowthRule
    by_label: bool = False
    class_weights: Sequence[int] | None = None
    _steps: dict[Key, list[Steps]] = field(default_factory=dict)
    _rows: dict[Key, int] = field(default_factory=dict)
    _fingerprint: Fingerprint = field(default_factory=Fingerprint)

    def __post_init__(self) -> None:
        self._class_rows = np.zeros(self.costs.n_classes, np.int64)

    def add(self, proba: NDArray[Any], labels: NDArray[np.int64], extras: RowExtras) -> None:
        """Take in checked rows, of which there is at least one."""
        given = extras.point_labels
        self._fingerprint.update(proba, labels)
        self._class_rows += np.bincount(labels, minlength=len(self._class_rows))
        for key, label, rows in self._apart(labels, extras.groups):
            self._rows[key] = self._rows.get(key, 0) + _count(rows, len(labels))
            mine: Any = self.growth.steps(
                proba[rows], labels[rows], self.costs, None if given is None else given[rows]
            )
            if self.class_weights is not None and label is not None:
                mine = mine.times(self.class_weights[label])
            self._steps.setdefault(key, []).append(mine)

    def finish(self) -> PartSteps:
        """What is kept of all rows, of which there may be none."""
        return PartSteps(
            {key: Steps.joined(steps).packed() for key, steps in self._steps.items()},
            self._rows,
            self._class_rows,
            self._fingerprint.hexdigest() if self._rows else None,
        )

    def _apart(self, labels: NDArray[np.int64], groups: Any) -> Iterator[tuple[Key, int | None, Any]]:
        """For each stratum, and for each class if classes weigh differently, the rows."""
        by_class = self.by_label or self.class_weights is not None
        if groups is None and not by_class:
            yield (None, None), None, slice(None)
            return
        names = RowNames("groups")
        number = np.zeros(len(labels), np.int64) if groups is None else names.numbered(groups, len(labels))
        n_classes = self.costs.n_classes if by_class else 1
        code = number * n_classes + (labels if by_class else 0)
        order = np.argsort(code, kind="stable")
        codes, first = np.unique(code[order], return_index=True)
        for each, rows in zip(codes.tolist(), np.split(order, first[1:]), strict=True):
            group = None if groups is None else names.known[each // n_classes]
            label = each % n_classes if by_class else None
            yield (group, label if self.by_label else None), label, rows


def _count(rows: Any, n_rows: int) -> int:
    return n_rows if isinstance(rows, slice) else len(rows)
