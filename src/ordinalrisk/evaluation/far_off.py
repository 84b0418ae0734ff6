r"""Classes, groups and sizes of sets that are covered far less often than was guaranteed.

The average can be as guaranteed while one class is nearly always missed. A class, a group or a size of sets
is far off if it has at least 5 rows, its coverage is less than half of the target, and chance seldom explains
this: an exact binomial test at level 0.1 (Clopper-Pearson) rejects half of the target. The checks of
calibration rows have the same rule. A class is also far off if its exact 95 % interval lies below three
quarters of the target, for a loss with one cost for each class. The levels are not divided by the number of
classes, groups and sizes, because then the tests would not find rare classes, which are the ones that an
average hides.

The target is :math:`1 - \alpha / B` for a loss with one cost for each class. Other losses guarantee no
coverage. There a class is far off if it is covered less than half as often as all rows together: by the lower
end of the interval of all rows, so that neither of the two intervals is taken for certain.

With unequal weights all rows together can be missed far more often than :math:`\alpha / B`, although the mean
weight of the misses is as guaranteed. They are far off if they are missed more than twice as often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ordinalrisk.calibration.guarantees import Guarantee
from ordinalrisk.display.wording import whole_percent
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import CONFIDENCE, Estimate, share
from ordinalrisk.evaluation.verdict import StratumRisk
from ordinalrisk.losses.cost_table import CostTable

FEWEST_ROWS = 5
_DOUBT = 0.1  # the level of the test
_THREE_QUARTERS = 0.75


class Kind(NamedTuple):
    """A class, a group, a size of sets, or all rows: how many of the test rows are covered."""

    kind: str  # "class", "group", "size" or "all"
    name: Any
    n_rows: int
    n_covered: int
    promised: float  # the coverage
    guaranteed: bool = True  # whether the loss counts misses, so that it guarantees a coverage

    @property
    def least(self) -> float:
        """The coverage below which it is far off."""
        half = self.promised / 2
        return max(half, 2 * self.promised - 1) if self.kind == "all" else half

    def is_far_off(self, rows_per_unit: float) -> bool:
        n, hits = self.n_rows / rows_per_unit, self.n_covered / rows_per_unit
        limits = [(self.least, 1 - 2 * _DOUBT)]
        if self.kind == "class" and self.guaranteed:
            limits.append((_THREE_QUARTERS * self.promised, CONFIDENCE))
        return n >= FEWEST_ROWS and any(
            hits < n * limit and share(hits, n, confidence).high < limit for limit, confidence in limits
        )


class FarOff(NamedTuple):
    """A class, a group or a size of sets that is covered far less often than guaranteed; or all rows.

    Attributes
    ----------
    kind : {"class", "group", "size", "all"}
        What is far off; "all" for all rows, missed more than twice as often as equal weights allow.
    name
        The label, the group, or the number of labels in a set; None for all rows.
    n_rows, n_missed : int
        The number of its test rows, and of those whose set misses the truth.
    missed : Estimate
        The share that is missed. The interval is exact binomial, and corrected for the number of classes,
        groups and sizes that were looked at (Bonferroni), which the test is not.
    """

    kind: str
    name: Any
    n_rows: int
    n_missed: int
    missed: Estimate

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "rows": self.n_rows, "missed": [*self.missed]}

    def __str__(self) -> str:
        rows = f"({self.n_missed:,} of {self.n_rows:,} rows)"
        if self.kind == "all":
            share = whole_percent(self.n_missed, self.n_rows)
            return f"{share} of all rows are missed {rows[:-1]}, more than twice what equal weights allow)"
        if self.kind == "size":
            labels = "a single label" if self.name == 1 else f"{self.name} labels"
            return f"{whole_percent(self.n_missed, self.n_rows)} of the sets with {labels} miss {rows}"
        return f"{whole_percent(self.n_missed, self.n_rows)} of {self.kind} {self.name!r} are missed {rows}"


def far_off(kinds: Sequence[Kind], rows_per_unit: float = 1.0) -> list[FarOff]:
    """Return those that are far off: all rows together first, then the most often missed.

    Rows of clusters may depend on each other, so each counts as ``1 / rows_per_unit`` of a row.

    Examples
    --------
    >>> kinds = [Kind("class", "good", 900, 830, 0.9), Kind("class", "poor", 60, 3, 0.9)]
    >>> print(*far_off(kinds))
    95 % of class 'poor' are missed (57 of 60 rows)
    >>> far_off([Kind("class", "poor", 4, 0, 0.9)])
    []
    """
    found = []
    for each in kinds:
        kind, name, n_rows, n_covered, *_ = each
        if each.is_far_off(rows_per_unit):
            n_missed, of_units = n_rows - n_covered, (n_covered / rows_per_unit, n_rows / rows_per_unit)
            covered = share(*of_units, 1 - (1 - CONFIDENCE) / len(kinds))
            missed = Estimate(n_missed / n_rows, 1 - covered.high, 1 - covered.low)
            found.append(FarOff(kind, name, n_rows, n_missed, missed))
    return sorted(found, key=lambda each: (each.kind != "all", -each.missed.value))


def least_covered(kinds: Sequence[Kind], rows_per_unit: float = 1.0) -> str:
    """Name the least covered class that may be far below its target; an empty text if there is none.

    Its coverage is below half of the target, or its exact 95 % interval below the target.

    Examples
    --------
    >>> least_covered([Kind("class", "good", 900, 830, 0.9), Kind("class", "poor", 8, 3, 0.9)])
    "the least covered class is 'poor': 38 % (3 of 8 rows, 95 % interval 8.523 % to 75.51 %)"
    >>> least_covered([Kind("class", "good", 900, 830, 0.9), Kind("class", "poor", 8, 6, 0.9)])
    ''
    """
    low = []
    for each in kinds:
        covered = share(each.n_covered / rows_per_unit, each.n_rows / rows_per_unit, CONFIDENCE)
        is_below = each.guaranteed and covered.high < each.promised
        if each.kind == "class" and (covered.value < each.least or is_below):
            low.append((covered.value, each, covered))
    if not low:
        return ""
    _, worst, covered = min(low, key=lambda found: found[0])
    percent = whole_percent(worst.n_covered, worst.n_rows)
    interval = f"{100 * covered.low:.4g} % to {100 * covered.high:.4g} %"
    rows = f"{worst.n_covered:,} of {worst.n_rows:,} rows, 95 % interval {interval}"
    return f"the least covered class is {worst.name!r}: {percent} ({rows})"


def kinds_of(
    tally: Tally,
    guarantee: Guarantee,
    costs: CostTable,
    classes: Sequence[Any],
    strata: Iterable[StratumRisk] = (),
) -> list[Kind]:
    """Return each class, group and size of sets with test rows; not classes without cost or guarantee.

    With unequal weights, all rows are among them, unless the guarantee takes weights into account: one for
    each class, for the share of the weight, or for another population.
    """
    promised = _Promised(tally, guarantee, costs)
    largest = np.asarray(costs.units).max(axis=1)
    rows, covered = tally.class_rows.tolist(), tally.nearest.diagonal().tolist()
    exempt = {part.label for part in guarantee.parts if part.exempt}
    kinds = [
        Kind("class", label, n, hits, promised.to(label), promised.one_cost)
        for label, n, hits, cost in zip(classes, rows, covered, largest, strict=True)
        if n and cost and label not in exempt
    ]
    kinds += [Kind("group", group, *each, promised.to()) for group, each in _groups(strata)]
    sizes = zip(tally.sizes.tolist(), tally.covered_sizes.tolist(), strict=True)
    narrower = [*enumerate(sizes, start=1)][:-1]  # the whole scale never misses
    kinds += [Kind("size", size, *each, promised.to()) for size, each in narrower if each[0]]
    weighted = [k for k in range(costs.n_classes) if largest[k]]
    of_all = guarantee.measure is None and guarantee.shift is None and not promised.by_class
    if of_all and promised.one_cost and len({*largest[weighted].tolist()}) > 1:
        n_rows, n_covered = (
            int(each[weighted].sum()) for each in (tally.class_rows, tally.nearest.diagonal())
        )
        kinds.append(Kind("all", None, n_rows, n_covered, promised.to()))
    return kinds


class _Promised:
    """The coverage that a class or a group is compared with."""

    def __init__(self, tally: Tally, guarantee: Guarantee, costs: CostTable) -> None:
        self.one_cost = costs.one_cost
        self._of_all = float(tally.coverage(CONFIDENCE).low)
        self._guarantee = guarantee
        self._bound = costs.bound if guarantee.measure is None else Fraction(1)
        self._alphas: dict[Any, Fraction] = {}
        self.by_class = any(part.label is not None for part in guarantee.parts)
        for part in guarantee.parts:
            if part.label is not None:
                self._alphas[part.label] = max(part.alpha, self._alphas.get(part.label, part.alpha))

    def to(self, label: Any = None) -> float:
        if not self.one_cost:
            return self._of_all
        alpha = self._alphas.get(label, self._guarantee.alpha)
        return float(1 - alpha / self._bound)


def _groups(strata: Iterable[StratumRisk]) -> Iterator[tuple[Any, tuple[int, int]]]:
    """Yield each group with its rows and those that are covered."""
    counts: dict[Any, tuple[int, int]] = {}
    for part in strata:
        if (group := part.guarantee.group) is not None and part.n_rows:
            n_rows, n_covered = counts.get(group, (0, 0))
            counts[group] = n_rows + part.n_rows, n_covered + part.n_covered
    yield from counts.items()
