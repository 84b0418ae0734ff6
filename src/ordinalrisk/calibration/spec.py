"""What a calibration is made for: the loss, the growth rule, the promise and its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from ordinalrisk.calibration.accumulate import Calibration, Calibrator, by_class
from ordinalrisk.calibration.combinations import require_theorem
from ordinalrisk.calibration.confidence_bounds import checked_bound, checked_delta
from ordinalrisk.calibration.guarantees import Guarantee, guarantee_of, guarantee_of_all
from ordinalrisk.calibration.promises import Expectation, HighProbability, Promise, checked_alpha
from ordinalrisk.calibration.row_thresholds import Thresholds
from ordinalrisk.curves.windows import NotKnownError
from ordinalrisk.growth.rules import GrowthRule, as_growth
from ordinalrisk.inputs.device import beside
from ordinalrisk.inputs.labels import (
    Classes,
    as_classes,
    class_indices,
    require_column_order,
    resolve_classes,
)
from ordinalrisk.inputs.matrix import as_matrix
from ordinalrisk.inputs.numbers import as_fraction, as_number, decimal_text
from ordinalrisk.inputs.splitting import checked_seed
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss, as_loss

OPTIONS = ("delta", "condition_on", "randomize")


@dataclass(frozen=True)
class Spec:
    """The parameters of a :class:`ordinalrisk.RiskController`, checked.

    Examples
    --------
    >>> Spec("coverage", 0.1).options
    []
    >>> Spec("coverage", 0.1, delta=0.05).promise
    HighProbability(delta=Fraction(1, 20), bound='auto')
    """

    loss: IntervalLoss | Any = "coverage"
    alpha: Any = 0.1
    growth: GrowthRule | Any = "frontier"
    classes: Any = None
    delta: Any = None
    bound: str = "auto"
    condition_on: str | None = None
    randomize: bool = False
    random_state: Any = None

    def __post_init__(self) -> None:
        alpha, delta, seed = self.alpha, self.delta, self.random_state
        by_label = isinstance(alpha, Mapping)
        if self.condition_on not in (None, "label"):
            raise ValueError(f'condition_on must be "label" or None; got {self.condition_on!r}.')
        if not isinstance(self.randomize, bool):
            raise ValueError(f"randomize must be True or False; got {self.randomize!r}.")
        checked = {
            "loss": as_loss(self.loss),
            "alpha": {label: as_number(risk, f"alpha of {label!r}") for label, risk in alpha.items()}
            if by_label
            else as_number(alpha, "alpha"),
            "growth": as_growth(self.growth),
            "delta": None if delta is None else as_number(delta, "delta"),
            "condition_on": "label" if by_label else self.condition_on,
            "random_state": None if seed is None else checked_seed(seed, "random_state"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.bound != "auto":
            checked_bound(self.bound)
        if delta is not None:
            checked_delta(delta)
        if delta is None and self.bound != "auto":
            raise ValueError(f"bound={self.bound!r} is for delta; give a delta too.")
        require_theorem(self.options)

    @cached_property
    def promise(self) -> Promise:
        """What is promised of the expected loss."""
        if self.delta is None:
            return Expectation()
        return HighProbability(as_fraction(self.delta), self.bound)

    @property
    def options(self) -> list[str]:
        """The options that are in use, by name."""
        return [name for name in OPTIONS if getattr(self, name)]

    def at(self, alpha: Any) -> Spec:
        """The same at another risk."""
        return replace(self, alpha=alpha)

    def costs(self, n_classes: int) -> CostTable:
        """The exact table of the loss."""
        return CostTable.of(self.loss, n_classes)

    def checked_rows(self, proba: Any, y: Any, classes: Any) -> tuple[Any, Any, Classes]:
        """Checked probabilities, the positions of the labels, and the classes these are positions in."""
        matrix = as_matrix(proba)
        resolved = resolve_classes(classes, y, matrix.shape[1])
        require_column_order(proba, resolved)
        remedy = " Name the labels in order with classes=." if self.classes is None else ""
        labels = beside(matrix, class_indices(y, resolved, len(matrix), remedy=remedy), "y")
        return matrix, labels, resolved

    def calibrator(self, classes: Any, *, class_weight: Any = None) -> Calibrator:
        """What takes in rows batch by batch; ``alpha`` is checked against the loss."""
        known = as_classes(classes)
        costs = self.costs(len(known))
        self.alphas(self.alpha, known, costs)
        return Calibrator(
            costs,
            self.growth,
            self.promise,
            known,
            by_label=self.condition_on == "label",
            class_weight=class_weight,
            random_state=self.random_state,
        )

    def alphas(self, alpha: Any, classes: Classes, costs: CostTable) -> list[Fraction]:
        """The risk of each class; one for all if there is no mapping."""
        if not isinstance(alpha, Mapping):
            return [checked_alpha(as_fraction(alpha, "alpha"), costs.bound)]
        if self.condition_on is None:
            raise ValueError('alpha by class needs a calibration with condition_on="label".')
        risks = by_class(alpha, classes, "alpha")
        return [checked_alpha(as_fraction(risk, "alpha"), costs.bound) for risk in risks]

    def stratum_alphas(self, alpha: Any, calibration: Calibration) -> list[Fraction]:
        """The risk of each stratum."""
        alphas = self.alphas(alpha, calibration.classes, calibration.costs)
        labels = [part.label or 0 for part in calibration.strata.parts]
        return [alphas[label] if len(alphas) > 1 else alphas[0] for label in labels]

    def thresholds(self, calibration: Calibration, alpha: Any = None) -> Thresholds:
        """The thresholds of a calibration, at its own risk or another."""
        risk = self.alpha if alpha is None else alpha
        alphas = self.stratum_alphas(risk, calibration)
        try:
            return Thresholds(calibration, self.promise, alphas, randomize=self.randomize)
        except NotKnownError:
            pass
        known = [] if isinstance(self.alpha, Mapping) else [self.alpha]
        near = " and ".join(decimal_text(as_fraction(each)) for each in [*known, *calibration.more_alphas])
        raise NotKnownError(
            f"The risk curve was kept near alpha={near or self.alpha} only, since its rows lay in many "
            f"parts; calibrate again with {risk} in more_alphas."
        )

    def guarantee(self, calibration: Calibration, thresholds: Thresholds) -> Guarantee:
        """What holds with these thresholds."""
        strata, classes = calibration.strata, calibration.classes.tolist()
        parts = [
            guarantee_of(
                self.promise,
                part,
                alpha,
                threshold,
                unit=calibration.unit,
                shift=calibration.shift,
                randomized=self.randomize,
                group=None if strata.groups is None or part.group is None else strata.groups[part.group],
                label=None if part.label is None else classes[part.label],
            )
            for part, alpha, threshold in zip(strata.parts, thresholds.alphas, thresholds.values, strict=True)
        ]
        if not strata.is_one:
            return guarantee_of_all(parts)
        return replace(parts[0], always_held=tuple(thresholds.too_heavy_classes))
