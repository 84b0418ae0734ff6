"""What is kept of test rows at each stop: counts, the most striking rows, and losses by unit where asked.

Where one threshold serves all rows, the sets of a stop follow from it. Else rows have thresholds of their
own: by group, by true class, by weight, or by a coin.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.accumulate import RowExtras, row_weights
from ordinalrisk.calibration.guarantees import Guarantee
from ordinalrisk.calibration.promises import ThresholdsByWeight
from ordinalrisk.controller import RiskController
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import Estimate
from ordinalrisk.evaluation.packing import packed_tallies, unpacked_tallies
from ordinalrisk.evaluation.realised import (
    ClusterLosses,
    Realised,
    WeightedLosses,
    of_rows,
    of_weighted_classes,
)
from ordinalrisk.evaluation.verdict import PartVerdict, Verdict, judged, verdict_of, verdict_of_parts
from ordinalrisk.inputs.numbers import as_fraction, decimal_text
from ordinalrisk.inputs.random_rows import generator_at
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.prediction.ends import Ends, ends_by_label, ends_by_row
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.report.measured import measured
from ordinalrisk.report.promising import Parts
from ordinalrisk.report.stops import Stop, alpha_range, stops_apart, stops_of
from ordinalrisk.report.striking import CaseApart, StrikingRows, TopRowsAt, shown, still_striking, value_at

_ROWS_AT_ONCE = 65_536

Numbers = dict[str, Any]


class Counted(ABC):
    """What is kept of test rows."""

    def __init__(self, controller: RiskController) -> None:
        self._controller = controller
        self._costs = controller.calibration_.costs
        self._n_classes = len(controller.classes_)

    values: list[Fraction]
    """Where the slider can stand: values of ``alpha``, or factors on those of the classes."""
    start: int
    """Which of them is the calibrated one."""

    @abstractmethod
    def check(self, matrix: NDArray[Any], extras: RowExtras) -> None:
        """Refuse rows of which not all can be counted."""

    @abstractmethod
    def add(
        self,
        matrix: NDArray[Any],
        labels: NDArray[np.int64],
        extras: RowExtras,
        columns: Mapping[str, Any],
        first_row: int,
    ) -> None:
        """Take in checked rows, the first of which has this number."""

    @abstractmethod
    def merge(self, other: Any) -> None:
        """Take in what another of the same calibration has kept of other rows."""

    @abstractmethod
    def __getstate__(self) -> dict[str, Any]:
        """What is kept of rows, and nothing that follows from the controller: enough to be merged."""

    @property
    @abstractmethod
    def class_rows(self) -> list[int]:
        """The number of rows of each true class."""

    @property
    @abstractmethod
    def cases(self) -> Mapping[int, Any]:
        """The striking rows by number, ascending."""

    @property
    @abstractmethod
    def smallest_alpha(self) -> Fraction | None:
        """The smallest risk that can be certified."""

    @abstractmethod
    def stops(self, case_index: Mapping[int, int], calibrated_on: bool) -> list[Numbers]:
        """What holds, and what was realised, at each stop."""

    def _require_probabilities(self, matrix: NDArray[Any]) -> None:
        self._controller.growth.intervals(matrix, self._costs, math.inf, None)

    def _sets(self, ends: tuple[Any, Any]) -> IntervalSet:
        return IntervalSet.of(*ends, self._controller.classes_)

    def _promised(
        self, guarantee: Guarantee, value: Fraction, threshold: float | None, verdict: Verdict
    ) -> Numbers:
        return {
            "alpha": decimal_text(value),
            "value": float(value),
            "threshold": in_json(threshold),
            "certified": guarantee.certified,
            "saturated": guarantee.saturated,
            "guarantee": " ".join(str(guarantee).splitlines()),
            "verdict": verdict.word,
            "verdict_text": verdict.text,
        }


class AtOneThreshold(Counted):
    """Counts at the threshold of each stop."""

    def __init__(self, controller: RiskController) -> None:
        super().__init__(controller)
        alpha, K = as_fraction(controller.alpha), self._n_classes
        self._stops = stops_of(controller.risk_curve_, alpha, K, controller.calibration_.more_alphas)
        self.values = [stop.alpha for stop in self._stops]
        self.start = self.values.index(alpha)
        thresholds = [stop.threshold for stop in self._stops]
        self._tallies = {threshold: Tally.empty(K) for threshold in thresholds}
        self._striking = StrikingRows(controller.growth, controller.loss, K, thresholds)

    def check(self, matrix: NDArray[Any], extras: RowExtras) -> None:  # noqa: D102
        for name in extras.used:
            raise ValueError(
                f"{name} was given, but the calibration was not made with {name}; calibrate so first."
            )
        self._require_probabilities(matrix)

    def add(  # noqa: D102
        self,
        matrix: NDArray[Any],
        labels: NDArray[np.int64],
        extras: RowExtras,
        columns: Mapping[str, Any],
        first_row: int,
    ) -> None:
        for start in range(0, len(matrix), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            rows = first_row + np.arange(len(matrix))[part]
            for threshold in self._tallies:
                growth = self._controller.growth
                sets = self._sets(growth.intervals(matrix[part], self._costs, threshold, None))
                self._tallies[threshold] += Tally.of(labels[part], sets)
                self._striking.offer(threshold, labels[part], sets, rows)
        self._striking.keep(matrix, labels, columns, first_row)

    def merge(self, other: AtOneThreshold) -> None:  # noqa: D102
        self._tallies = {at: tally + other._tallies[at] for at, tally in self._tallies.items()}
        self._striking.merge(other._striking)

    def __getstate__(self) -> dict[str, Any]:
        tallies = [*self._tallies], packed_tallies(self._tallies.values())
        return {"tallies": tallies, "_striking": self._striking}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._striking = state["_striking"]
        thresholds, counts = state["tallies"]
        self._tallies = dict(zip(thresholds, unpacked_tallies(counts), strict=True))

    @property
    def class_rows(self) -> list[int]:  # noqa: D102
        rows: list[int] = self._tallies[self._stops[0].threshold].class_rows.tolist()
        return rows

    @property
    def cases(self) -> Mapping[int, Any]:  # noqa: D102
        return self._striking.cases

    @property
    def smallest_alpha(self) -> Fraction | None:  # noqa: D102
        curve = self._controller.calibration_.strata.parts[0].curve
        return curve.bound / (curve.n_rows + 1)

    def stops(self, case_index: Mapping[int, int], calibrated_on: bool) -> list[Numbers]:  # noqa: D102
        tallies, loss = self._tallies, self._controller.loss
        numbers = {threshold: measured(tally, loss) for threshold, tally in tallies.items()}
        return [
            self._at(stop, Estimate(*numbers[stop.threshold]["risk"]), calibrated_on)
            | numbers[stop.threshold]
            | {
                "widest": [case_index[row] for row in self._striking.widest(stop.threshold)],
                "missed": [case_index[row] for row in self._striking.missed(stop.threshold)],
            }
            for stop in self._stops
        ]

    def _at(self, stop: Stop, risk: Estimate, calibrated_on: bool) -> Numbers:
        guarantee = self._controller.guarantee(stop.alpha)
        tally, loss = self._tallies[stop.threshold], self._controller.loss
        verdict = verdict_of(tally, loss, guarantee, risk, calibrated_on)
        return self._promised(guarantee, stop.alpha, stop.threshold, verdict)


class AtOwnThresholds(Counted):
    """Counts of sets whose thresholds differ by row or label, or whose guarantee is not one for rows."""

    _KEPT = ("_single", "_cluster_names", "_whole_clusters", "_part_clusters", "_weighted", "_top", "_cases")

    def __init__(self, controller: RiskController, seed: int | None, unseen_groups: str) -> None:
        super().__init__(controller)
        calibration, costs, K = controller.calibration_, self._costs, self._n_classes
        self._calibration, self._seed, self._unseen = calibration, seed, unseen_groups
        self.parts = Parts(controller)
        self._ranges = [alpha_range(part, controller.spec.promise) for part in calibration.strata.parts]
        self._stops = stops_apart(controller, self._ranges, len(self.parts.shown))
        self.values = [stop.value for stop in self._stops]
        self._thresholds = [controller.spec.thresholds(calibration, stop.alpha) for stop in self._stops]
        self._guarantees = [controller.guarantee(stop.alpha) for stop in self._stops]
        self.start = [stop.alpha for stop in self._stops].index(self._own_alpha())
        none: dict[str, Any] = {name: [] for name in self._needed if name != "clusters"}
        self._of_rows(0, RowExtras(**none), seed)
        S, P, G = len(self._stops), self.parts.n_parts, self.parts.n_groups
        self._tables = self._group_tables() if self._fixed else []
        # the last group is for rows of groups without calibration rows
        self._tallies = [[Tally.empty(K) for _ in range(G + 1)] for _ in range(S)]
        self._single = np.zeros((S, G + 1, K), np.int64)
        self._cluster_names = RowNames("clusters")
        self._whole_clusters = ClusterLosses(S, 1, costs)
        self._part_clusters = ClusterLosses(S, P + 1, costs)
        self._weighted = WeightedLosses(S, G + 1, costs)
        self._top = TopRowsAt(range(S), controller.loss, K)
        self._cases: dict[int, CaseApart] = {}

    def _own_alpha(self) -> Any:
        controller = self._controller
        own = controller.spec.stratum_alphas(controller.alpha, self._calibration)
        if not self.parts.alphas_differ:
            return own[0]
        return dict(zip(controller.classes_.tolist(), own[: self._n_classes], strict=True))

    @property
    def _needed(self) -> list[str]:
        """What must come with test rows."""
        calibration = self._calibration
        needed = {
            "groups": calibration.strata.groups is not None,
            "clusters": calibration.unit == "cluster",
            "sample_weight": calibration.shift == "covariates",
        }
        return [name for name, wanted in needed.items() if wanted]

    @property
    def _fixed(self) -> bool:
        """Whether thresholds depend on the group alone."""
        return not self._controller.randomize and self._calibration.shift != "covariates"

    def _group_tables(self) -> list[NDArray[np.float64]]:
        """For each stop the thresholds of each group, by label if they differ, and of none at the end."""
        groups = self._calibration.strata.groups
        extras = RowExtras(None if groups is None else [*groups])
        applied = [self._of_rows(self.parts.n_groups, extras, None, s) for s in range(len(self._stops))]
        return [
            np.vstack([table, np.full_like(table[:1], -math.inf)]) for table in map(np.atleast_2d, applied)
        ]

    def _of_rows(
        self, n_rows: int, extras: RowExtras, seed: Any, stop: int = 0
    ) -> float | NDArray[np.float64]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the report says which rows have full sets
            return self._thresholds[stop].of_rows(
                n_rows,
                groups=extras.groups,
                unseen_groups=self._unseen,
                sample_weight=extras.sample_weight,
                seed=seed,
            )

    def check(self, matrix: NDArray[Any], extras: RowExtras) -> None:  # noqa: D102
        alike = extras
        if extras.sample_weight is not None:
            alike = replace(extras, sample_weight=0 * row_weights(extras.sample_weight, len(matrix)))
        self._of_rows(len(matrix), alike, self._seed)
        wanted, given = "clusters" in self._needed, extras.clusters is not None
        if wanted and not given:
            raise ValueError("The calibration was made with clusters, so test rows need clusters= too.")
        if given and not wanted:
            raise ValueError(
                "clusters was given, but the calibration was not made with clusters; calibrate so first."
            )
        if given:
            RowNames("clusters").numbered(extras.clusters, len(matrix))
        self._require_probabilities(matrix)

    def add(  # noqa: D102
        self,
        matrix: NDArray[Any],
        labels: NDArray[np.int64],
        extras: RowExtras,
        columns: Mapping[str, Any],
        first_row: int,
    ) -> None:
        n_rows = len(matrix)
        groups = self.parts.group_numbers(extras.groups, n_rows)
        clusters = self._cluster_numbers(extras.clusters, n_rows)
        weights = None if extras.sample_weight is None else row_weights(extras.sample_weight, n_rows)
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            mine = _Chunk(
                labels[part],
                groups[part],
                None if clusters is None else clusters[part],
                None if weights is None else weights[part],
                first_row + start,
            )
            ends = self._count(matrix[part], mine)
            self._keep(ends, labels[part], columns, start, first_row)

    def _cluster_numbers(self, clusters: Any, n_rows: int) -> NDArray[np.int64] | None:
        return None if clusters is None else self._cluster_names.numbered(clusters, n_rows)

    def _count(self, matrix: NDArray[Any], chunk: _Chunk) -> list[Ends]:
        """Take in rows at every stop; the sets of all of them."""
        labels, groups = chunk.labels, chunk.groups
        rows = chunk.first_row + np.arange(len(labels))
        levels = self._controller.growth.row_levels(matrix, self._costs, None)
        units = None
        if chunk.clusters is not None:
            none = np.zeros(len(labels), np.int64)
            part = self.parts.part_numbers(groups, labels)
            units = (
                self._whole_clusters.numbered(chunk.clusters, none),
                self._part_clusters.numbered(chunk.clusters, part),
            )
        weights = None if chunk.weights is None else WeightedLosses.exactly(chunk.weights)
        found = []
        for s in range(len(self._stops)):
            ends = self._ends(levels, self._applied(s, chunk))
            found.append(ends)
            sets = self._sets(ends)
            self._top.offer(s, labels, sets, rows)
            for group in np.unique(groups).tolist():
                mine = groups == group
                self._tallies[s][group] += Tally.of(labels[mine], sets[mine])
            single = sets.size == 1
            np.add.at(self._single[s], (groups[single], labels[single]), 1)
            nearest = np.clip(labels, *ends)
            if units is not None:
                losses = self._costs.units[labels, nearest]
                self._whole_clusters.add(s, units[0], losses)
                self._part_clusters.add(s, units[1], losses)
            if weights is not None:
                self._weighted.add(s, groups, labels, nearest, weights)
        return found

    def _applied(self, stop: int, chunk: _Chunk) -> NDArray[np.float64]:
        """The threshold of each row, of each label, or of both."""
        if self._fixed:
            table = self._tables[stop]
            return table[chunk.groups] if self._calibration.strata.groups is not None else table[:1]
        if chunk.weights is not None:
            return self._by_weight(stop, chunk.groups, chunk.weights)[:, None]
        names = RowExtras(self.parts.group_names(chunk.groups))
        coins = generator_at(chunk.first_row, self._seed)
        applied = self._of_rows(len(chunk.labels), names, coins, stop)
        assert isinstance(applied, np.ndarray)
        return applied

    def _by_weight(
        self, stop: int, groups: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        alpha, found = self._stops[stop].alpha, np.full(len(weights), -math.inf)
        for number, part in enumerate(self._calibration.strata.parts):
            mine = groups == number
            found[mine] = ThresholdsByWeight(part.curve, alpha).of(weights[mine])
        return found

    def _ends(self, levels: NDArray[np.float64], thresholds: NDArray[np.float64]) -> Ends:
        if thresholds.shape[1] > 1:
            return ends_by_label(levels, thresholds, self._costs)
        return ends_by_row(levels, thresholds[:, 0])

    def _keep(
        self,
        ends: list[Ends],
        labels: NDArray[np.int64],
        columns: Mapping[str, Any],
        start: int,
        first_row: int,
    ) -> None:
        striking, first = self._top.rows, first_row + start
        self._cases = still_striking(self._cases, striking)
        for row in sorted(striking - self._cases.keys()):
            at = row - first
            values = [shown(value_at(column, row - first_row)) for column in columns.values()]
            sets = [[int(lower[at]), int(upper[at])] for lower, upper in ends]
            self._cases[row] = CaseApart(values, int(labels[at]), sets)

    def merge(self, other: AtOwnThresholds) -> None:  # noqa: D102
        self._tallies = [
            [tally + follows for tally, follows in zip(*groups, strict=True)]
            for groups in zip(self._tallies, other._tallies, strict=True)
        ]
        self._single += other._single
        clusters = self._cluster_names.merge(other._cluster_names)
        self._whole_clusters.merge(other._whole_clusters, clusters)
        self._part_clusters.merge(other._part_clusters, clusters)
        self._weighted.merge(other._weighted)
        self._top.merge(other._top)
        self._cases = still_striking({**self._cases, **other._cases}, self._top.rows)

    def __getstate__(self) -> dict[str, Any]:
        tallies = packed_tallies(tally for groups in self._tallies for tally in groups)
        return {"tallies": tallies} | {name: self.__dict__[name] for name in self._KEPT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        tallies, n_stops = unpacked_tallies(state.pop("tallies")), len(state["_single"])
        n_groups = len(tallies) // n_stops
        self._tallies = [tallies[s * n_groups : (s + 1) * n_groups] for s in range(n_stops)]
        self.__dict__.update(state)

    @property
    def class_rows(self) -> list[int]:  # noqa: D102
        rows: list[int] = self._tally(0).class_rows.tolist()
        return rows

    @property
    def cases(self) -> Mapping[int, Any]:  # noqa: D102
        return dict(sorted(self._cases.items()))

    @property
    def smallest_alpha(self) -> Fraction | None:
        """The smallest risk that can be certified for every part; None if none can."""
        if any(found is None for found in self._ranges):
            return None
        return max(found.lowest for found in self._ranges if found is not None)

    @property
    def n_clusters(self) -> int | None:
        """How many clusters there are, if rows have some."""
        return len(self._cluster_names.known) if "clusters" in self._needed else None

    @property
    def part_rows(self) -> list[int]:
        """The number of rows of each part that is shown."""
        tallies = self._tallies[0]
        return [
            tallies[group].n_rows if label is None else int(tallies[group].class_rows[label])
            for group, label in self.parts.shown
        ]

    @property
    def unseen_rows(self) -> int:
        """The number of rows of groups without calibration rows."""
        return self._tallies[0][-1].n_rows

    def _tally(self, stop: int) -> Tally:
        return sum(self._tallies[stop][1:], self._tallies[stop][0])

    def stops(self, case_index: Mapping[int, int], calibrated_on: bool) -> list[Numbers]:  # noqa: D102
        return [self._at(s, case_index, calibrated_on) for s in range(len(self._stops))]

    def _at(self, s: int, case_index: Mapping[int, int], calibrated_on: bool) -> Numbers:
        guarantee, tally = self._guarantees[s], self._tally(s)
        numbers = measured(tally, self._controller.loss)
        whole = self._realised(s)
        if whole is None:  # no row has a weight
            whole = Realised(Estimate(0.0, 0.0, float(self._costs.bound)), 0.0, 1.0)
        words = self._part_verdicts(s, calibrated_on)
        if guarantee.parts:
            verdict = verdict_of_parts(words, self.parts.noun, whole, guarantee, tally.n_rows, calibrated_on)
        else:
            verdict = judged(whole, guarantee, tally.n_rows, calibrated_on)
        values = self._thresholds[s].values
        one = values[0] if len(values) == 1 and self._calibration.shift is None else None
        return (
            self._promised(guarantee, self.values[s], one, verdict)
            | numbers
            | {"risk": [*map(float, whole.risk)]}
            | {
                "widest": [case_index[row] for row in self._top.widest[s].rows],
                "missed": [case_index[row] for row in self._top.missed[s].rows],
                "lead": lead_of(guarantee),
                "units": whole.n_units,
                "strata": [self._part_dict(s, i, word) for i, word in enumerate(words)],
            }
        )

    def _realised(self, s: int) -> Realised | None:
        calibration = self._calibration
        if calibration.unit == "cluster":
            return self._whole_clusters.realised(s, 0)
        if calibration.shift == "covariates":
            return self._weighted.realised(s, range(self.parts.n_groups + 1))
        if calibration.class_weights is not None:
            return of_weighted_classes(self._tally(s), self._costs, calibration.class_weights)
        return of_rows(self._tally(s), self._controller.loss)

    def _part_verdicts(self, s: int, calibrated_on: bool) -> list[PartVerdict]:
        found = []
        for name, position, (group, label) in zip(
            self.parts.names, self.parts.positions, self.parts.shown, strict=True
        ):
            guarantee = self._guarantees[s].parts[position]
            if self._calibration.unit == "cluster":
                realised = self._part_clusters.realised(s, position)
            elif self._calibration.shift == "covariates":
                realised = self._weighted.realised(s, [group])
            else:
                realised = of_rows(self._tallies[s][group], self._controller.loss, label)
            word = "nothing" if realised is None else judged(realised, guarantee, 0, calibrated_on).word
            found.append(PartVerdict(name, guarantee, realised, word))
        return found

    def _part_dict(self, s: int, i: int, part: PartVerdict) -> Numbers:
        group, label = self.parts.shown[i]
        tally, single = self._tallies[s][group], self._single[s][group]
        if label is None:
            n_rows, size, alone = tally.n_rows, float(tally.mean_size()), int(single.sum())
        else:
            n_rows, size = int(tally.class_rows[label]), float(tally.class_size()[label])
            alone = int(single[label])
        threshold = self._thresholds[s].values[self.parts.positions[i]]
        return {
            "alpha": decimal_text(part.guarantee.alpha),
            "value": float(part.guarantee.alpha),
            "threshold": in_json(threshold),
            "certified": part.guarantee.certified,
            "saturated": part.guarantee.saturated,
            "verdict": part.word,
            "risk": None if part.realised is None else [*map(float, part.realised.risk)],
            "units": None if part.realised is None else part.realised.n_units,
            "mean_size": size if n_rows else None,
            "single": alone / n_rows if n_rows else None,
        }


class _Chunk(NamedTuple):
    """Rows counted at once: positions of labels and groups, what else they have, the number of the first."""

    labels: NDArray[np.int64]
    groups: NDArray[np.int64]
    clusters: NDArray[np.int64] | None
    weights: NDArray[np.float64] | None
    first_row: int


def lead_of(guarantee: Guarantee) -> str:
    """What is promised, in the guarantee's own words, without its condition."""
    return " ".join(str(guarantee).split()).partition(f", {guarantee.condition()}")[0] + "."


def in_json(threshold: float | None) -> float | str | None:
    """A threshold as a JSON value: infinite ones as text."""
    return threshold if threshold is None or math.isfinite(threshold) else str(threshold)
