r"""Adjacent true classes that share a threshold, and classes without a guarantee.

The guarantee for a pool ``P`` of classes is about its rows together,

.. math:: E[\,L \mid y \in P\,] \le \alpha.

If pools are named in advance, this is Theorem 1 for the rows of a pool. If they follow from the numbers of
rows, they must not depend on which row is the new one. So the new row is counted too: the threshold of label
``y`` is that of the pool that ``y`` is in if the new row has class ``y``. For the true class these are the
pools of all ``n + 1`` rows, whose order does not matter, and among the rows of its pool the new row is
exchangeable with the others. So the guarantee of such a pool is an average over draws in which the counts of
all ``n + 1`` rows form it, not over those with given calibration counts. ``docs/design/strata.md`` has the
proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.steps import Steps
from ordinalrisk.curves.strata import Strata, Stratum
from ordinalrisk.display.text_table import listed
from ordinalrisk.inputs.labels import Classes

Pool = tuple[int, ...]
"""The positions of classes that share a threshold, ascending."""


class Pooling(NamedTuple):
    """Which classes share a threshold (named pools, or pools by row counts), and which are exempt."""

    named: tuple[Pool, ...] = ()
    by_count: bool = False
    exempt: frozenset[int] = frozenset()

    @classmethod
    def of(cls, pool_classes: Any, exempt_classes: Iterable[Any], classes: Classes) -> Pooling:
        """Return the pooling that parameters ask for, as positions in the classes."""
        labels = classes.tolist()
        position = {label: k for k, label in enumerate(labels)}

        def at(label: Any, name: str) -> int:
            if label not in position:
                raise ValueError(
                    f"{name} has {label!r}, which is not one of the classes {listed(map(repr, labels))}."
                )
            return position[label]

        exempt = frozenset(at(label, "exempt_classes") for label in exempt_classes)
        if len(exempt) == len(labels):
            raise ValueError("exempt_classes has every class, so nothing is guaranteed; leave some out.")
        if pool_classes is True:
            return cls(by_count=True, exempt=exempt)
        named = []
        for pool in pool_classes or ():
            places = tuple(sorted(at(label, "pool_classes") for label in pool))
            if both := [labels[k] for k in places if k in exempt]:
                raise ValueError(
                    f"{both[0]!r} is in pool_classes and in exempt_classes; leave it out of one."
                )
            if places != tuple(range(places[0], places[-1] + 1)):
                raise ValueError(
                    f"The pool {listed(repr(labels[k]) for k in places)} has a gap; pool adjacent classes, "
                    f"in the order {listed(map(repr, labels))}."
                )
            named.append(places)
        return cls(tuple(named), exempt=exempt)

    def pools(
        self, n_rows: Sequence[int], fewest: Callable[[Pool], int], stakes: Sequence[Fraction]
    ) -> list[Pool]:
        """Return the pool of each class for a new row of that class; an exempt class is alone.

        ``n_rows`` counts the calibration rows of each class, and ``fewest`` is the number that a pool needs.
        Where ``alpha`` is a share, a row counts as its stake over the largest stake in the pool.
        """
        alone: list[Pool] = [(k,) for k in range(len(n_rows))]
        if not self.by_count:
            of_class = {k: pool for pool in self.named for k in pool}
            return [of_class.get(k, pool) for k, pool in enumerate(alone)]
        found = []
        for label in range(len(n_rows)):
            with_new = [n + (k == label) for k, n in enumerate(n_rows)]
            merged = _merged([pool for pool in alone if pool[0] not in self.exempt], with_new, fewest, stakes)
            found.append(next((pool for pool in merged if label in pool), alone[label]))
        return found


NO_POOLS = Pooling()


def _merged(
    pools: list[Pool], n_rows: Sequence[int], fewest: Callable[[Pool], int], stakes: Sequence[Fraction]
) -> list[Pool]:
    """Merge the smallest pool that has too few rows with its smaller neighbour until each has enough.

    ``n_rows`` include the new row, so a pool needs one more than ``fewest``. Only adjacent classes are
    merged: an exempt class between two others keeps them apart.
    """
    pools = [*pools]

    def size(place: int) -> tuple[int, int]:
        return sum(n_rows[k] for k in pools[place]), place

    def has_too_few(pool: Pool) -> bool:
        largest = max(stakes[k] for k in pool)
        counted = sum(n_rows[k] * stakes[k] for k in pool)
        return bool(fewest(pool)) and counted < (fewest(pool) + 1) * largest

    def neighbours(place: int) -> list[int]:
        return [
            other
            for other in (place - 1, place + 1)
            if 0 <= other < len(pools) and pools[min(place, other)][-1] + 1 == pools[max(place, other)][0]
        ]

    while small := [i for i, pool in enumerate(pools) if has_too_few(pool) and neighbours(i)]:
        one = min(small, key=size)
        other = min(neighbours(one), key=size)
        first = min(one, other)
        pools[first : first + 2] = [pools[first] + pools[first + 1]]
    return pools


def pooled_strata(
    strata: Strata,
    pooling: Pooling,
    rows_needed: Callable[[Stratum, Fraction], int],
    alphas: Sequence[Fraction],
) -> list[tuple[Stratum, Pool]]:
    """Return, for each stratum, the rows that its threshold comes from, and the pool of its true class."""
    n_labels, found = strata.n_labels, list[tuple[Stratum, Pool]]()
    for first in range(0, len(strata.parts), n_labels):
        parts, cached = strata.parts[first : first + n_labels], dict[Pool, Stratum]()
        mine = alphas[first : first + n_labels]

        def together(
            pool: Pool, parts: Sequence[Stratum] = parts, cached: dict[Pool, Stratum] = cached
        ) -> Stratum:
            if pool not in cached:
                cached[pool] = _merged_strata([parts[k] for k in pool])
            return cached[pool]

        def fewest(pool: Pool, parts: Sequence[Stratum] = parts, mine: Sequence[Fraction] = mine) -> int:
            return max(rows_needed(parts[k], mine[k]) for k in pool)

        is_share = parts[0].curve.stake is not None
        stakes = [part.curve.bound if is_share else Fraction(1) for part in parts]
        pools = pooling.pools([part.n_rows for part in parts], fewest, stakes)
        found += [(together(pool), pool) for pool in pools]
    return found


def _merged_strata(parts: Sequence[Stratum]) -> Stratum:
    """Return the rows of several true classes as one stratum."""
    first = parts[0]
    if len(parts) == 1:
        return first
    curves = [part.curve for part in parts]
    for curve in curves:
        curve.require_whole("A threshold for several classes together")
    bound, unit = max(curve.bound for curve in curves), first.curve.unit
    at = np.concatenate([curve.levels for curve in curves])
    by = np.concatenate([np.diff(curve.totals, prepend=curve.totals[:0].sum()) for curve in curves])
    n_rows = sum(curve.n_rows for curve in curves)
    stake = (
        None
        if first.curve.stake is None
        else sum((curve.stake or Fraction(0) for curve in curves), Fraction(0))
    )
    steps = Steps(at, by, int(by.max(initial=1)))
    curve = RiskCurve(steps, unit=unit, n_rows=n_rows, bound=bound, stake=stake)
    two_valued = all(part.two_valued for part in parts) and len({each.bound for each in curves}) == 1
    return Stratum(first.group, first.label, n_rows, curve, two_valued)
