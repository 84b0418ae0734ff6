"""The summary of calibration rows: at which thresholds their losses step up.

If only the total loss of a group and a true class matters, steps are kept without their rows. Clusters, row
weights and the betting bound need the row of each step.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.fingerprint import DataFingerprint
from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.score_counts import BinCounts, no_counts, score_counts
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.curves.device_steps import concatenated_steps
from ordinalrisk.curves.part_steps import Key, PartSteps
from ordinalrisk.curves.risk_curve import AnySteps, RiskCurve
from ordinalrisk.curves.strata import Strata, Stratum, strata_of
from ordinalrisk.curves.stratum_rows import rows_by_number, stratum_numbers
from ordinalrisk.curves.unit_steps import UnitSteps
from ordinalrisk.curves.windows import NO_STEPS
from ordinalrisk.inputs.batch import Batch, Summary
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.inputs.weights import checked_class_ratios, exact_weights, row_weights, whole_weights

_SEED_BITS = 53  # every reader of JSON represents such numbers exactly
_ROWS_WORTH_A_CALL = 256  # with fewer rows in a stratum, the levels of all rows are computed at once


class LossSteps(Summary):
    """The steps of the losses of calibration rows.

    Examples
    --------
    >>> proba, y = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]] * 20), np.array([0, 1, 1, 2] * 10)
    >>> parts = [LossSteps(Spec(alpha=0.2), np.arange(3)) for _ in range(2)]
    >>> parts[0].add(Batch(proba[:5], y[:5], part=0))
    >>> parts[1].add(Batch(proba[5:], y[5:], part=1))
    >>> parts[1].merge(parts[0]).finish().strata.parts[0].curve
    RiskCurve(1 levels, 40 rows, B=1)
    """

    def __init__(self, spec: Spec, classes: Classes, class_ratios: Any = None) -> None:
        self.spec, self.classes, self.costs = spec, classes, spec.costs(len(classes))
        spec.require_alpha(classes)  # before the rows are read
        self.class_ratios = None if class_ratios is None else checked_class_ratios(class_ratios, classes)
        self._kept: dict[tuple[int, int], _Totals | _StepsByRow] = {}
        self._used: list[str] | None = None
        self._fingerprint = DataFingerprint()
        self._score_counts = no_counts()

    @property
    def labels(self) -> Sequence[int | None]:
        """The true classes that have their own strata, or a single None."""
        return range(len(self.classes)) if self.spec.condition_on == "label" else [None]

    @property
    def needs_order(self) -> bool:
        """Whether a bound needs the steps of each row."""
        needs_steps = self.spec.promise.needs_steps
        return any(needs_steps(self._two_valued(label)) for label in self.labels)

    def _two_valued(self, label: int | None) -> bool:
        return self.costs.two_valued(label, self.spec.relative)

    def add(self, batch: Batch) -> None:
        """Add a batch with known labels and at least one row."""
        self._require_alike(batch.used)
        by_row = self.needs_order or {"clusters", "sample_weight"} & {*batch.used}
        self._kept[batch.place] = self._units(batch) if by_row else self._totals(batch)
        self._used = batch.used
        self._fingerprint.add(batch)
        self._score_counts = self._score_counts + score_counts(batch.proba)

    def merge(self, other: LossSteps) -> LossSteps:
        if other._used is not None:
            self._require_alike(other._used)
        both = LossSteps.__new__(LossSteps)
        both.__dict__.update(self.__dict__)
        both._kept = {**self._kept, **other._kept}
        both._used = other._used if self._used is None else self._used
        both._fingerprint = self._fingerprint.merge(other._fingerprint)
        both._score_counts = self._score_counts + other._score_counts
        return both

    def finish(self, columns: ScoreColumns | None = None) -> Calibration:
        if not self._kept:
            raise ValueError("There are no rows to calibrate with.")
        if units := self._kept_of(_StepsByRow):
            return self._calibration_of_units(units, columns)
        rows, steps, class_rows, stakes = self._added_up()
        digest, counts = self._fingerprint.hexdigest(), self._score_counts
        return self.assembled(rows, class_rows, steps, digest, columns, stakes=stakes, score_counts=counts)

    def as_part(self) -> PartSteps:
        """Return the steps in few bytes, to be kept where the rows are; there may be no rows."""
        rows, steps, class_rows, stakes = self._added_up()
        packed = {key: concatenated_steps(parts).packed() for key, parts in steps.items()}
        digests = self._fingerprint.digests
        return PartSteps(packed, rows, class_rows, digests, stakes, self._score_counts)

    def assembled(
        self,
        rows: Mapping[Key, int],
        class_rows: NDArray[np.int64],
        steps: Mapping[Key, Any],
        digest: str,
        columns: ScoreColumns | None = None,
        more_alphas: tuple[Fraction, ...] = (),
        *,
        stakes: Mapping[Key, int] | None = None,
        score_counts: BinCounts | None = None,
    ) -> Calibration:
        """Make a calibration from the numbers of rows, the steps and the stakes of each stratum."""
        groups = tuple(dict.fromkeys(group for group, _ in rows))
        weights, unit, weight = self.class_ratios, Fraction(1), None
        if weights is not None:
            whole, unit = whole_weights(weights)
            weight = sum(w * n for w, n in zip(whole, class_rows.tolist(), strict=True)) * unit
            if weight == 0:
                raise ValueError("class_ratios is 0 for every class that the calibration rows have.")
        costs, grouped = self.costs, groups != (None,)

        def stratum(number: int, group: Any, label: int | None) -> Stratum:
            n_rows, mine = rows.get((group, label), 0), steps.get((group, label), NO_STEPS)
            concatenated: AnySteps = concatenated_steps(mine) if isinstance(mine, list) else mine
            bound, scale = costs.bound_of(label), costs.unit * unit
            stake = (stakes or {}).get((group, label), 0) * scale if self.spec.relative else None
            curve = RiskCurve(
                concatenated, unit=scale, n_rows=n_rows, bound=bound, weight=weight, stake=stake
            )
            return Stratum(number if grouped else None, label, n_rows, curve, self._two_valued(label))

        parts = [stratum(i, group, label) for (i, group), label in product(enumerate(groups), self.labels)]
        return Calibration(
            costs,
            self.classes,
            Strata(tuple(parts), groups if grouped else None, len(self.labels)),
            digest,
            "row",
            None if weights is None else "labels",
            weights,
            columns,
            more_alphas,
            score_counts=score_counts if weights is None else None,
            recalibration=self.spec.recalibration,
        )

    def _require_alike(self, used: list[str]) -> None:
        if self._used not in (None, used):
            raise ValueError(
                f"These rows come with {used or 'no options'}, those before with {self._used or 'none'}; "
                "give all batches the same."
            )

    def _totals(self, batch: Batch) -> _Totals:
        """Return the steps by stratum, and the numbers of rows of each stratum and each true class."""
        if batch.groups is None and self.spec.condition_on is None and self.class_ratios is None:
            steps = self.spec.growth.steps(batch.proba, batch.labels, self.costs, batch.point_labels)
            key: Key = (None, None)
            stakes = {key: self._stake(to_host(batch.labels))} if self.spec.relative else {}
            return _Totals({key: len(batch)}, {key: [steps]}, np.zeros(1, np.int64), stakes)
        rows: dict[Key, int] = {}
        stakes = {}
        steps_of: dict[Key, list[Any]] = {}
        labels = to_host(batch.labels)
        by_class = self.spec.condition_on is not None or self.class_ratios is not None
        strata = [*self._strata(labels, batch.groups, by_class)]
        for (key, label, mine), steps in zip(strata, self._steps_by_stratum(batch, strata), strict=True):
            if self.class_ratios is not None and label is not None:
                steps = steps.times(whole_weights(self.class_ratios)[0][label])
            rows[key] = rows.get(key, 0) + len(mine)
            if self.spec.relative:
                stakes[key] = stakes.get(key, 0) + self._stake(labels[mine])
            steps_of.setdefault(key, []).append(steps)
        return _Totals(rows, steps_of, np.bincount(labels, minlength=len(self.classes)), stakes)

    def _stake(self, labels: NDArray[np.int64]) -> int:
        """Return the most that rows with these labels can lose together, in units."""
        weights = None if self.class_ratios is None else whole_weights(self.class_ratios)[0]
        return self.costs.stake(np.bincount(labels, minlength=len(self.classes)), weights)

    def _steps_by_stratum(self, batch: Batch, strata: Sequence[Any]) -> Iterator[Any]:
        """Return the steps of each stratum, by a kernel for each or, if many, from the levels of all rows."""
        if len(strata) * _ROWS_WORTH_A_CALL > len(batch):
            number = np.empty(len(batch), np.int64)
            for i, (_, _, mine) in enumerate(strata):
                number[mine] = i
            for _, steps in self._unit_steps(batch).split(number, len(strata)):
                yield steps.steps(int(self.costs.units.max()))
            return
        for _, _, mine in strata:
            points = None if batch.point_labels is None else batch.point_labels[mine]
            yield self.spec.growth.steps(batch.proba[mine], batch.labels[mine], self.costs, points)

    def _strata(
        self, labels: NDArray[np.int64], groups: Any, by_class: bool
    ) -> Iterator[tuple[Key, int | None, NDArray[np.int64]]]:
        """Return the rows of each group, and of each true class if classes have strata or weights."""
        names = RowNames("groups")
        number = None if groups is None else names.numbered(groups, len(labels))
        n_classes = len(self.classes) if by_class else 1
        for each, rows in rows_by_number(stratum_numbers(number, labels, n_classes)).items():
            group = None if groups is None else names.known[each // n_classes]
            label = each % n_classes if by_class else None
            yield (group, None if self.spec.condition_on is None else label), label, rows

    def _kept_of(self, kind: type[KeptT]) -> list[KeptT]:
        """Return what was kept of the batches, in the order of the rows."""
        return [kept for _, kept in sorted(self._kept.items()) if isinstance(kept, kind)]

    def _added_up(self) -> _Totals:
        whole = _Totals({}, {}, np.zeros(len(self.classes), np.int64), {})
        for each in self._kept_of(_Totals):
            for key, n_rows in each.rows.items():
                whole.rows[key] = whole.rows.get(key, 0) + n_rows
                whole.steps.setdefault(key, []).extend(each.steps[key])
            whole.class_rows[:] += each.class_rows
            for key, stake in each.stakes.items():
                whole.stakes[key] = whole.stakes.get(key, 0) + stake
        return whole

    def _unit_steps(self, batch: Batch) -> UnitSteps:
        levels = to_host(self.spec.growth.row_levels(batch.proba, self.costs, batch.point_labels))
        return UnitSteps.of_rows(levels, to_host(batch.labels), self.costs, self.spec.relative)

    def _units(self, batch: Batch) -> _StepsByRow:
        n_rows, weights = len(batch), batch.sample_weight
        return _StepsByRow(
            self._unit_steps(batch),
            to_host(batch.labels),
            _distinct_names("groups", batch.groups, n_rows),
            _distinct_names("clusters", batch.clusters, n_rows),
            None if weights is None else row_weights(weights, n_rows),
        )

    def _calibration_of_units(self, kept: list[_StepsByRow], columns: ScoreColumns | None) -> Calibration:
        labels = np.concatenate([each.labels for each in kept])
        groups, group_names = _names_numbered([each.groups for each in kept])
        clusters, _ = _names_numbered([each.clusters for each in kept])
        weights, weight_unit = None, Fraction(1)
        if kept[0].weights is not None:
            of_rows = np.concatenate([each.weights for each in kept if each.weights is not None])
            if not of_rows.any():
                raise ValueError("sample_weight is 0 in every row; some row must count.")
            weights, weight_unit = exact_weights(of_rows)
        strata = strata_of(
            UnitSteps.concatenated([each.steps for each in kept]),
            labels,
            self.costs,
            group_names,
            groups=groups,
            clusters=clusters,
            weights=weights,
            weight_unit=weight_unit,
            by_label=self.spec.condition_on == "label",
        )
        seed = secrets.randbits(_SEED_BITS) if self.spec.random_state is None else self.spec.random_state
        parts = tuple(self._with_needed_steps(part, seed) for part in strata.parts)
        return Calibration(
            self.costs,
            self.classes,
            replace(strata, parts=parts),
            self._fingerprint.hexdigest(),
            "row" if clusters is None else "cluster",
            None if weights is None else "covariates",
            columns=columns,
            shuffle_seed=seed if any(part.steps for part in parts) else None,
            score_counts=self._score_counts if clusters is None and weights is None else None,
            recalibration=self.spec.recalibration,
        )

    def _with_needed_steps(self, stratum: Stratum, seed: int) -> Stratum:
        """Return the stratum without its steps, or with shuffled units if a bound needs them."""
        if stratum.steps is None or not self.spec.promise.needs_steps(stratum.two_valued):
            return replace(stratum, steps=None)
        return replace(stratum, steps=stratum.steps.shuffled(seed))


class _Totals(NamedTuple):
    """The rows, the steps and the stakes of each stratum of a batch, and the rows of each true class."""

    rows: dict[Key, int]
    steps: dict[Key, list[Any]]
    class_rows: NDArray[np.int64]
    stakes: dict[Key, int]


class _StepsByRow(NamedTuple):
    """The steps of a batch, with the row of each step."""

    steps: UnitSteps
    labels: NDArray[np.int64]
    groups: Names | None
    clusters: Names | None
    weights: NDArray[np.float64] | None


KeptT = TypeVar("KeptT", _Totals, _StepsByRow)
Names = tuple[tuple[Any, ...], NDArray[np.int64]]
"""The distinct names of a batch in order of appearance, and the position of the name of each row."""


def _distinct_names(kind: str, values: Any, n_rows: int) -> Names | None:
    if values is None:
        return None
    names = RowNames(kind)
    positions = names.numbered(values, n_rows)
    return names.known, positions


def _names_numbered(
    batches: Sequence[Names | None],
) -> tuple[NDArray[np.int64] | None, tuple[Any, ...] | None]:
    """Number the names of all batches; return the number of each row, and the names in that order."""
    number: dict[Any, int] = {}
    numbers = [
        np.array([number.setdefault(name, len(number)) for name in batch[0]], np.int64)[batch[1]]
        for batch in batches
        if batch is not None
    ]
    return (np.concatenate(numbers), tuple(number)) if numbers else (None, None)
