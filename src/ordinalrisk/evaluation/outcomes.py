"""The summary of test rows that were predicted at one threshold or at many.

The loss is the one that the guarantee is about: the mean loss of the rows of each group and each true class;
with clusters, the mean of their mean losses; with weights, the weighted mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.guarantees import Guarantee
from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.row_thresholds import RowKeys, Thresholds
from ordinalrisk.curves.stratum_rows import stratum_numbers
from ordinalrisk.evaluation import realised
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.far_off import far_off, kinds_of, least_covered
from ordinalrisk.evaluation.light import Light, light_of, too_few_rows
from ordinalrisk.evaluation.realised import ClusterLosses, Realised, StratumCounts, WeightedLosses
from ordinalrisk.evaluation.striking import StrikingRow, StrikingRows, shown, value_at
from ordinalrisk.evaluation.verdict import StratumRisk, Verdict, judged, strata_noun
from ordinalrisk.inputs.batch import Batch, Summary
from ordinalrisk.prediction.ends import freed
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.prediction.predictor import Predictor, ends_at

_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class Evaluation:
    """How test rows compare with a guarantee."""

    tally: Tally
    whole: Realised | None  # of all rows; None if their weights are all 0
    strata: list[StratumRisk]  # of each group and true class; empty if all rows count alike
    verdict: Verdict
    light: Light  # green, amber or red, and why


class Outcomes(Summary):
    """A comparison of the sets of test rows with their labels, at one or many stops of one calibration.

    Stops with equal thresholds share their counts; ``distinct`` has the position of each stop among the
    distinct ones. With ``striking`` the rows with the widest sets and the worst misses are kept.

    A summary that has rows is pickled without its predictors, so that no calibration travels with it. It can
    still be merged and finished.
    """

    def __init__(
        self,
        stops: Sequence[Predictor],
        *,
        unseen_groups: str = "error",
        random_state: int | None = None,
        striking: bool = False,
    ) -> None:
        calibration = stops[0].calibration
        strata, costs, shift = calibration.strata, calibration.costs, calibration.shift
        differ: dict[Any, Predictor] = {}
        for stop in stops:
            differ.setdefault(stop.thresholds.signature, stop)
        signatures = [*differ]
        self._predictors: list[Predictor] | None = [*differ.values()]
        self._options = unseen_groups, random_state
        promises = [(repr(stop.thresholds.promise), tuple(stop.thresholds.alphas)) for stop in stops]
        self._origin = (_origin(calibration), repr(stops[0].growth), promises, signatures, self._options)
        stops[0].thresholds.require_options(unseen_groups, random_state)
        n_stops, n_parts = len(differ), len(strata.parts) + (strata.groups is not None)
        self.distinct = [signatures.index(stop.thresholds.signature) for stop in stops]
        self.n_uncertified = 0
        self._tallies = [Tally.empty(costs.n_classes)] * n_stops
        alike = strata.is_one and calibration.unit == "row" and shift is None
        counted = n_stops, n_parts, costs, _is_relative(calibration)
        self._strata = None if alike else StratumCounts(*counted)
        self._clusters = ClusterLosses(*counted) if calibration.unit == "cluster" else None
        self._weighted = WeightedLosses(*counted) if shift == "covariates" else None
        self.striking = StrikingRows(n_stops, costs) if striking else None

    @property
    def n_rows(self) -> int:
        return self._tallies[0].n_rows

    @property
    def n_clusters(self) -> int | None:
        return None if self._clusters is None else self._clusters.n_clusters

    def part_rows(self, part: int) -> int:
        """Return the number of rows of a stratum; after the last, of groups without calibration rows."""
        return self.n_rows if self._strata is None else self._strata.n_rows(0, part)

    @property
    def _stops(self) -> list[Predictor]:
        """The predictors of the distinct stops."""
        if self._predictors is None:
            raise ValueError("A summary that was pickled takes in no more rows; merge it with a new one.")
        return self._predictors

    def add(self, batch: Batch) -> None:
        first, n_rows = self._stops[0], len(batch)
        first.thresholds.require("clusters", batch.clusters, self._clusters is not None, "test rows")
        keys = first.keys(batch, *self._options)
        parts = self._part_numbers(keys, batch.labels)
        clusters = None if self._clusters is None else self._clusters.numbered(batch.clusters, n_rows)
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            rows = slice(start, min(start + _ROWS_AT_ONCE, n_rows))
            self._count(batch, rows, keys, parts[rows], None if clusters is None else clusters[rows])
            self._keep_striking(batch, keys)

    def _part_numbers(self, keys: RowKeys, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the stratum of each row; after the last, for groups without calibration rows."""
        strata = self._stops[0].calibration.strata
        parts = stratum_numbers(keys.groups, labels, strata.n_labels)
        return parts if keys.groups is None else np.where(keys.groups < 0, len(strata.parts), parts)

    def _count(
        self, batch: Batch, rows: slice, keys: RowKeys, parts: NDArray[np.int64], clusters: Any
    ) -> None:
        """Add some rows at every stop."""
        calibration, labels = self._stops[0].calibration, batch.labels[rows]
        numbers = batch.first_row + np.arange(rows.start, rows.stop)
        units = None if self._clusters is None else self._clusters.units(clusters, parts)
        if self._clusters is not None and units is not None:
            self._clusters.add_stakes(units, labels)
        weights = None if keys.weights is None else WeightedLosses.exactly(keys.weights[rows])
        mine = keys.at(rows, len(labels))
        thresholds = (stop.thresholds.of(mine) for stop in self._stops)
        first = next(thresholds)
        self.n_uncertified += Thresholds.n_uncertified(mine, first)
        for stop, ends in enumerate(self._ends(batch, rows, chain([first], thresholds))):
            sets = IntervalSet.of(*ends, calibration.classes)
            self._tallies[stop] = self._tallies[stop].merge(Tally.of(labels, sets))
            if self.striking is not None:
                self.striking.add(stop, labels, ends, numbers)
            if self._strata is None:  # the tally is enough
                continue
            nearest = np.clip(labels, *ends)
            self._strata.add(stop, parts, labels, nearest, sets.size)
            if self._clusters is not None and units is not None:
                self._clusters.add(stop, units, calibration.costs.units[labels, nearest])
            if self._weighted is not None and weights is not None:
                self._weighted.add(stop, parts, labels, nearest, weights)

    def _ends(
        self, batch: Batch, rows: Any, thresholds: Iterable[float | NDArray[np.float64]]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield the ends of the sets of some rows at each stop; if the rows have sets, the ends of these."""
        growth, costs = self._stops[0].growth, self._stops[0].calibration.costs
        if (sets := batch.sets) is not None:
            yield from (freed((sets.lower_index[rows], sets.upper_index[rows]), costs) for _ in thresholds)
            return
        points = None if batch.point_labels is None else batch.point_labels[rows]
        yield from ends_at(growth, costs, batch.proba[rows], thresholds, points)

    def _keep_striking(self, batch: Batch, keys: RowKeys) -> None:
        """Keep the rows of a batch that are among the most striking so far."""
        if self.striking is None:
            return
        cases: dict[int, StrikingRow] = {}
        if len(rows := self.striking.new_rows - batch.first_row):
            mine = keys.at(rows, len(rows))
            thresholds = (stop.thresholds.of(mine) for stop in self._stops)
            ends = np.array([*self._ends(batch, rows, thresholds)], np.int32)  # by stop, end and row
            for row, of_row in zip(rows.tolist(), np.moveaxis(ends, 2, 0), strict=True):
                values = [shown(value_at(column, row)) for column in batch.columns.values()]
                cases[batch.first_row + row] = StrikingRow(values, int(batch.labels[row]), of_row)
        self.striking.keep(cases)

    def merge(self, other: Outcomes) -> Outcomes:
        if self._origin != other._origin:
            raise ValueError(
                "The part to merge was made for another calibration, random_state or unseen_groups; make all "
                "parts from one controller, with the same ones."
            )
        both = object.__new__(Outcomes)
        both.__dict__.update(self.__dict__)
        both._predictors = self._predictors or other._predictors
        both.n_uncertified = self.n_uncertified + other.n_uncertified
        both._tallies = [mine.merge(tally) for mine, tally in zip(self._tallies, other._tallies, strict=True)]
        for name in ("_strata", "_clusters", "_weighted", "striking"):
            if (mine := getattr(self, name)) is not None:
                setattr(both, name, mine.merge(getattr(other, name)))
        return both

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without predictors, once there are rows."""
        return self.__dict__ | ({"_predictors": None} if self.n_rows else {})

    def finish(
        self,
        calibration: Calibration,
        guarantees: Sequence[Guarantee],
        *,
        calibrated_on: bool = False,
        parts: Sequence[int] | None = None,
    ) -> list[Evaluation]:
        """Compare the rows with the guarantee of each stop.

        ``parts`` are the strata to look at, by default all. No verdict is possible on rows that were
        ``calibrated_on``.
        """
        if parts is None:
            parts = () if self._strata is None else range(len(calibration.strata.parts))
        risks = [
            {part: self._realised(stop, part, calibration) for part in (None, *parts)}
            for stop in range(len(self._tallies))
        ]
        evaluations = []
        for stop, guarantee in zip(self.distinct, guarantees, strict=True):
            whole = risks[stop][None]
            strata = [
                self._stratum_risk(stop, part, calibration, guarantee, risks[stop][part], calibrated_on)
                for part in parts
            ]
            verdict = judged(whole, guarantee, self.n_rows, calibrated_on, strata)
            light = self._light(stop, calibration, guarantee, verdict, whole, strata)
            evaluations.append(Evaluation(self._tallies[stop], whole, strata, verdict, light))
        return evaluations

    def _light(
        self,
        stop: int,
        calibration: Calibration,
        guarantee: Guarantee,
        verdict: Verdict,
        whole: Realised | None,
        strata: Sequence[StratumRisk],
    ) -> Light:
        """Return the colour of a verdict, with the classes, groups and sizes that are far off.

        With row weights nothing is checked: the test rows are not from the population of the guarantee.
        """
        tally, costs = self._tallies[stop], calibration.costs
        kinds = []
        if self._weighted is None:
            kinds = kinds_of(tally, guarantee, costs, calibration.classes.tolist(), strata)
        rows_per_unit = self.n_rows / max(self.n_clusters or self.n_rows, 1)
        found = far_off(kinds, rows_per_unit)
        bound = costs.bound if guarantee.measure is None else Fraction(1)
        too_few = too_few_rows(whole, guarantee.alpha, bound)
        noun = strata_noun(guarantee) if guarantee.parts else None
        least = least_covered(kinds, rows_per_unit)
        target = "all rows together" if not costs.one_cost else "1 - alpha" if bound == 1 else "1 - alpha / B"
        compared = {each.name for each in kinds if each.kind == "class"}
        with_rows = np.flatnonzero(tally.class_rows).tolist()
        labels = [calibration.classes.tolist()[k] for k in with_rows]
        others = [label for label in labels if label not in compared]
        return light_of(verdict.word, found, len(kinds), too_few, noun, least, target, others)

    def _realised(self, stop: int, part: int | None, calibration: Calibration) -> Realised | None:
        """Return the mean loss of the rows of a stratum, or of all rows."""
        tally, costs, n_labels = self._tallies[stop], calibration.costs, calibration.strata.n_labels
        if self._clusters is not None:
            return self._clusters.realised(stop, part)
        if self._weighted is not None:
            return self._weighted.realised(stop, part)
        if calibration.class_ratios is not None:
            ratios = calibration.class_ratios
            return realised.of_weighted_classes(tally, costs, ratios, _is_relative(calibration))
        if self._strata is not None and part is not None:
            return self._strata.realised(stop, part, part % n_labels if n_labels > 1 else None)
        if _is_relative(calibration):
            return realised.of_shares(costs.values, costs.stakes, tally.nearest, float(costs.bound))
        return realised.of_losses(costs.values, tally.nearest)

    def _stratum_risk(
        self,
        stop: int,
        part: int,
        calibration: Calibration,
        guarantee: Guarantee,
        risk: Realised | None,
        calibrated_on: bool,
    ) -> StratumRisk:
        assert self._strata is not None
        own = guarantee.parts[part] if guarantee.parts else guarantee
        n_rows = self._strata.n_rows(stop, part)
        if own.pool:  # the guarantee is about the rows of all its classes together
            labels = [k for k, label in enumerate(calibration.classes.tolist()) if label in own.pool]
            first = part - part % len(calibration.classes)
            risk = self._strata.realised_together(stop, [first + k for k in labels], labels)
        word = judged(risk, own, n_rows, calibrated_on).word
        if not n_rows:
            return StratumRisk(own, n_rows, risk, word)
        labels, single, covered = self._strata.sizes[stop, part].tolist()
        return StratumRisk(own, n_rows, risk, word, labels / n_rows, single / n_rows, covered)


def _is_relative(calibration: Calibration) -> bool:
    """Return whether losses count as a share of what could be lost."""
    return calibration.strata.parts[0].curve.stake is not None


def _origin(calibration: Calibration) -> tuple[Any, ...]:
    """Return what identifies a calibration, without the losses of its rows."""
    strata = calibration.strata
    return (
        calibration.data_blake3,
        calibration.costs.exact,
        calibration.classes.tolist(),
        strata.groups,
        strata.n_labels,
        [(part.n_rows, part.curve.n_rows, part.curve.weight, part.curve.stake) for part in strata.parts],
        calibration.unit,
        calibration.shift,
        calibration.class_ratios,
    )
