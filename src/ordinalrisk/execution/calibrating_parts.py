"""A calibration from rows in many parts: the same as from all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from ordinalrisk.calibration.accumulate import (
    NO_CLASS_COUNTS,
    Calibration,
    checked_class_weights,
    whole_weights,
)
from ordinalrisk.calibration.fingerprint import of_parts
from ordinalrisk.calibration.promises import HighProbability, checked_more_alphas
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.curves.risk_curve import AnySteps, OrderedSteps, RiskCurve
from ordinalrisk.curves.steps import SortedSteps
from ordinalrisk.curves.strata import Strata, Stratum
from ordinalrisk.execution.bracketing import Parts, first_question, windows_around
from ordinalrisk.execution.part_steps import FirstLook, Key, PartCollector, PartSteps, Sizes
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.losses.cost_table import CostTable

NO_STEPS = SortedSteps(np.empty(0), np.empty(0, np.int64), 0)


@dataclass(frozen=True)
class PartsCalibrator:
    """Calibrates on rows in many parts.

    Parameters
    ----------
    spec : Spec
        What the calibration is for.
    classes : array
        The labels in order.
    grouped : bool
        Whether rows come with groups.
    class_weight : sequence or mapping, optional
        As for :meth:`RiskController.calibrate`.
    more_alphas : sequence
        Other risks at which thresholds will be asked for.

    Examples
    --------
    >>> from ordinalrisk.calibration.accumulate import RowExtras
    >>> proba, y = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]] * 20), np.array([0, 1, 1, 2] * 10)
    >>> calibrator = PartsCalibrator(Spec(alpha=0.2), np.arange(3))
    >>> parts = []
    >>> for rows in (slice(0, 5), slice(5, 40)):
    ...     collector = calibrator.collector()
    ...     collector.add(proba[rows], y[rows], RowExtras())
    ...     parts.append(collector.finish())
    >>> calibration = calibrator.finish(PartsHere(parts))
    >>> calibration.strata.parts[0].curve
    RiskCurve(1 levels, 40 rows, B=1)
    """

    spec: Spec
    classes: Classes
    grouped: bool = False
    class_weight: Any = None
    more_alphas: Sequence[Any] = ()

    def __post_init__(self) -> None:
        promise = self.spec.promise  # all is checked before the rows are read rather than after
        object.__setattr__(self, "more_alphas", checked_more_alphas(self.more_alphas, self._costs))
        self.spec.alphas(self.spec.alpha, self.classes, self._costs)
        if self.class_weight is not None:
            checked_class_weights(self.class_weight, self.classes)
        if isinstance(promise, HighProbability) and not all(
            promise.needs_totals_only(self._costs.two_valued(label)) for label in self._labels
        ):
            raise ValueError(
                'bound="betting" must know whose loss steps where, which rows in many parts do not send; '
                'take bound="hoeffding_bentkus", or calibrate on one machine.'
            )

    def collector(self) -> PartCollector:
        """What takes in the rows of one part, wherever they are."""
        weights = self._class_weights
        return PartCollector(
            self._costs,
            self.spec.growth,
            self.spec.condition_on == "label",
            None if weights is None else whole_weights(weights)[0],
        )

    def finish(self, parts: Parts, columns: ScoreColumns | None = None) -> Calibration:
        """What is kept of the rows of all parts."""
        first = parts.first_look()
        sizes = first.sizes
        if not sizes.rows:
            raise ValueError("There are no rows to calibrate with.")
        keys = self._keys(sizes)
        probes = {key: _Probe() for key in keys}
        probed = self._calibration(sizes, probes, columns)
        for alpha in self._alphas:
            self.spec.thresholds(probed, alpha)
        largest = {
            key: int(part.curve.bound / part.curve.unit)
            for key, part in zip(keys, probed.strata.parts, strict=True)
        }
        budgets = {key: probe.budgets for key, probe in probes.items() if sizes.steps.get(key)}
        found: dict[Key, OrderedSteps] = windows_around(parts, first, budgets, largest)
        return self._calibration(sizes, {key: found.get(key, NO_STEPS) for key in keys}, columns)

    @property
    def _costs(self) -> CostTable:
        return CostTable.of(self.spec.loss, len(self.classes))

    @property
    def _alphas(self) -> list[Any]:
        return [self.spec.alpha, *self.more_alphas]

    @property
    def _labels(self) -> Sequence[int | None]:
        return range(len(self.classes)) if self.spec.condition_on == "label" else [None]

    @property
    def _class_weights(self) -> tuple[Fraction, ...] | None:
        return None if self.class_weight is None else checked_class_weights(self.class_weight, self.classes)

    def _keys(self, sizes: Sizes) -> list[Key]:
        """All strata, those without rows too, in their order."""
        groups = dict.fromkeys(group for group, _ in sizes.rows)
        return [*product(groups, self._labels)]

    def _calibration(self, sizes: Sizes, steps: dict[Key, Any], columns: ScoreColumns | None) -> Calibration:
        weights, unit, total = self._class_weights, Fraction(1), None
        if weights is not None:
            whole, unit = whole_weights(weights)
            total = sum(w * n for w, n in zip(whole, sizes.class_rows.tolist(), strict=True)) * unit
            if total == 0:
                raise ValueError(NO_CLASS_COUNTS)
        groups = tuple(dict.fromkeys(group for group, _ in steps)) if self.grouped else None
        parts = [
            self._stratum(
                None if groups is None else groups.index(group),
                label,
                sizes.rows.get((group, label), 0),
                steps[group, label],
                unit,
                total,
            )
            for group, label in steps
        ]
        n_labels = len(self.classes) if self.spec.condition_on == "label" else 1
        return Calibration(
            self._costs,
            self.classes,
            Strata(tuple(parts), groups, n_labels),
            of_parts(sizes.digests),
            "row",
            None if weights is None else "labels",
            weights,
            columns,
            tuple(self.more_alphas),
        )

    def _stratum(
        self,
        group: int | None,
        label: int | None,
        n_rows: int,
        steps: AnySteps,
        weight_unit: Fraction,
        weight: Fraction | None,
    ) -> Stratum:
        costs = self._costs
        curve = RiskCurve(
            steps, unit=costs.unit * weight_unit, n_rows=n_rows, bound=costs.bound_of(label), weight=weight
        )
        return Stratum(group, label, n_rows, curve, costs.two_valued(label))


class PartsHere:
    """Parts on this machine."""

    def __init__(self, parts: Sequence[PartSteps]) -> None:
        self._parts = parts

    def first_look(self) -> FirstLook:
        """What all parts say first."""
        first: FirstLook = self.ask(first_question(max(len(self._parts), 1)), FirstLook.merged)
        return first

    def ask(self, question: Any, merged: Any) -> Any:
        """What all parts answer, merged."""
        return merged([question(part) for part in self._parts])


@dataclass
class _Probe:
    """Stands for steps that are not known yet, and notes for which budgets a level is asked."""

    budgets: set[int] = field(default_factory=set)
    in_order: OrderedSteps = NO_STEPS

    def first_level_above(self, budget: int) -> float:
        self.budgets.add(budget)
        return 0.0
