"""The checked parameters of a controller: the loss, the growth rule, the guarantee and its options."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ordinalrisk.calibration.combinations import require_theorem
from ordinalrisk.calibration.confidence_bounds import checked_bound, checked_delta
from ordinalrisk.calibration.pooling import Pooling
from ordinalrisk.calibration.promises import (
    Expectation,
    HighProbability,
    Promise,
    checked_alpha,
    checked_share,
)
from ordinalrisk.calibration.result import Calibration
from ordinalrisk.calibration.row_thresholds import Thresholds
from ordinalrisk.calibration.warning_category import CalibrationWarning
from ordinalrisk.curves.windows import NotKnownError
from ordinalrisk.growth.rules import GrowthRule, as_growth
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import as_fraction, as_number, checked_seed, decimal_text
from ordinalrisk.inputs.weights import values_by_class
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss, as_loss
from ordinalrisk.recalibration.applying import checked_recalibration

AUTO = "auto"
"""The name of a growth rule that is still to be chosen."""
SIDES = ("upper", "lower")
OPTIONS = ("delta", "condition_on", "randomize", "relative", "pool_classes", "exempt_classes")


@dataclass(frozen=True)
class Spec:
    """The parameters of a :class:`ordinalrisk.RiskController`, checked."""

    loss: IntervalLoss | Any = "coverage"
    alpha: Any = 0.1
    growth: GrowthRule | Any = "frontier"
    classes: Any = None
    delta: Any = None
    confidence_bound: str = "auto"
    condition_on: str | None = None
    randomize: bool = False
    random_state: Any = None
    relative: bool = False
    pool_classes: Any = None
    exempt_classes: Any = ()
    recalibration: Any = None
    side: str | None = None
    growth_loss: IntervalLoss | Any = None

    def __post_init__(self) -> None:
        recalibration, classes = checked_recalibration(self.recalibration, self.classes)
        alpha, delta, seed = self.alpha, self.delta, self.random_state
        by_label = isinstance(alpha, Mapping)
        if self.condition_on not in (None, "label"):
            raise ValueError(f'condition_on must be "label" or None; got {self.condition_on!r}.')
        if not isinstance(self.randomize, bool):
            raise ValueError(f"randomize must be True or False; got {self.randomize!r}.")
        if not isinstance(self.relative, bool):
            raise ValueError(f"relative must be True or False; got {self.relative!r}.")
        if self.side not in (None, *SIDES):
            raise ValueError(f"side must be one of {list(SIDES)}, or None for both; got {self.side!r}.")
        checked = {
            "loss": as_loss(self.loss),
            "alpha": {label: as_number(risk, f"alpha of {label!r}") for label, risk in alpha.items()}
            if by_label
            else as_number(alpha, "alpha"),
            "growth": AUTO if self.growth_is_open else as_growth(self.growth),
            "delta": None if delta is None else as_number(delta, "delta"),
            "condition_on": "label" if by_label else self.condition_on,
            "random_state": None if seed is None else checked_seed(seed),
            "pool_classes": _checked_pools(self.pool_classes),
            "exempt_classes": checked_names(self.exempt_classes, "exempt_classes"),
            "recalibration": recalibration,
            "classes": classes,
            "growth_loss": None if self.growth_loss is None else as_loss(self.growth_loss),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.confidence_bound != "auto":
            checked_bound(self.confidence_bound)
        if delta is not None:
            checked_delta(delta)
        if delta is None and self.confidence_bound != "auto":
            raise ValueError(f"confidence_bound={self.confidence_bound!r} is for delta; give a delta too.")
        require_theorem(self.options)
        for name in ("pool_classes", "exempt_classes"):
            if getattr(self, name) and self.condition_on is None:
                raise ValueError(f'{name} is for a guarantee for each true class; add condition_on="label".')

    @cached_property
    def promise(self) -> Promise:
        measure = self.loss.measure if self.relative else None
        if self.delta is None:
            return Expectation(measure)
        return HighProbability(as_fraction(self.delta), self.confidence_bound, measure)

    @property
    def growth_is_open(self) -> bool:
        """Whether the growth rule is still to be chosen."""
        return isinstance(self.growth, str) and self.growth == AUTO

    def is_open(self, recalibrate: Any, recalibration_rows: Any) -> bool:
        """Return whether there is something to learn before calibrating."""
        if recalibrate is not None and self.recalibration is not None:
            raise ValueError("recalibrate fits a map, but recalibration is a fitted one; give one of them.")
        if recalibrate is None and not self.growth_is_open and recalibration_rows is not None:
            raise ValueError(
                'recalibration_rows are to fit a map or to choose the growth rule; add recalibrate="auto" or '
                'growth="auto".'
            )
        return recalibrate is not None or self.growth_is_open

    def require_growth(self) -> None:
        if self.growth_is_open:
            raise ValueError(
                'growth="auto" is chosen on rows that are set apart, which RiskController.calibrate does for '
                "arrays in memory and jobs.calibrate for files; name a rule, such as 'frontier'."
            )

    @property
    def options(self) -> list[str]:
        return [name for name in OPTIONS if getattr(self, name)]

    def costs(self, n_classes: int) -> CostTable:
        """Return the costs that the guarantee is about, with the levels that sets grow by."""
        if self.side is None and self.growth_loss is None:
            return CostTable.of(self.loss, n_classes)
        return _costs_with_levels(self.loss, self.side, self.growth_loss or self.loss, n_classes)

    def require_alpha(self, classes: Classes) -> None:
        """Raise an error unless ``alpha`` lies between 0 and the largest loss; a share between 0 and 1."""
        self._require_one_in_pools(self.alphas(self.alpha, classes, self.costs(len(classes))), classes)

    def _require_one_in_pools(self, alphas: list[Fraction], classes: Classes) -> None:
        pooling = self.pooling(classes)
        pools = [range(len(classes))] if pooling.by_count else pooling.named
        for pool in pools:
            if len(alphas) > 1 and len({alphas[k] for k in pool if k not in pooling.exempt}) > 1:
                raise ValueError(
                    "Classes that share a threshold need the same alpha; give those of a pool one alpha, and "
                    "all classes one alpha with pool_classes=True."
                )

    def pooling(self, classes: Classes) -> Pooling:
        return Pooling.of(self.pool_classes, self.exempt_classes, classes)

    def alphas(self, alpha: Any, classes: Classes, costs: CostTable) -> list[Fraction]:
        """Return the alpha of each class, or a single one for all classes."""
        if not isinstance(alpha, Mapping):
            return [self.checked_alpha(as_fraction(alpha, "alpha"), costs)]
        if self.condition_on is None:
            raise ValueError('alpha by class needs a calibration with condition_on="label".')
        risks = values_by_class(alpha, classes, "alpha")
        return [self.checked_alpha(as_fraction(risk, "alpha"), costs) for risk in risks]

    def largest_alpha(self, costs: CostTable) -> Fraction:
        """Return the upper limit of ``alpha``: the largest loss, or 1 if ``alpha`` is a share."""
        return Fraction(1) if self.relative else costs.bound

    def checked_alpha(self, alpha: Fraction, costs: CostTable) -> Fraction:
        return checked_share(alpha) if self.relative else checked_alpha(alpha, costs.bound)

    def stratum_alphas(self, alpha: Any, calibration: Calibration) -> list[Fraction]:
        alphas = self.alphas(alpha, calibration.classes, calibration.costs)
        self._require_one_in_pools(alphas, calibration.classes)
        labels = [part.label or 0 for part in calibration.strata.parts]
        return [alphas[label] if len(alphas) > 1 else alphas[0] for label in labels]

    def thresholds(self, calibration: Calibration, alpha: Any = None) -> Thresholds:
        """Return the thresholds of a calibration, at its own alpha or another."""
        risk = self.alpha if alpha is None else alpha
        alphas = self.stratum_alphas(risk, calibration)
        pooling = self.pooling(calibration.classes)
        try:
            return Thresholds(calibration, self.promise, alphas, randomize=self.randomize, pooling=pooling)
        except NotKnownError:
            pass
        known = [] if isinstance(self.alpha, Mapping) else [self.alpha]
        near = " and ".join(decimal_text(as_fraction(each)) for each in [*known, *calibration.more_alphas])
        raise NotKnownError(
            f"The risk curve was kept near alpha={near or self.alpha} only, since its rows lay in many "
            f"parts; calibrate again with {risk} in more_alphas."
        )

    def warn_if_unlikely(self, stacklevel: int) -> None:
        """Warn if ``delta`` looks like a confidence level, such as 0.95."""
        if self.delta is not None and (delta := as_fraction(self.delta)) > Fraction(1, 2):
            rest = decimal_text(1 - delta)
            warnings.warn(
                f"delta={self.delta} keeps alpha with probability {rest} only; for a confidence of "
                f"{decimal_text(delta)} write `delta={rest}`.",
                CalibrationWarning,
                stacklevel=stacklevel + 1,
            )


@lru_cache(maxsize=64)  # kernels recognise a table by its identity
def _costs_with_levels(
    loss: IntervalLoss, side: str | None, growth_loss: IntervalLoss, n_classes: int
) -> CostTable:
    whole = CostTable.of(loss, n_classes)
    costs = whole if side is None else whole.of_side(side)
    return costs.with_levels_of(CostTable.of(growth_loss, n_classes))


def checked_names(names: Any, parameter: str) -> tuple[Any, ...]:
    """Return the labels; raise an error unless they are a sequence of distinct labels."""
    if names is None:
        return ()
    if isinstance(names, str | Mapping) or not isinstance(names, Iterable):
        raise ValueError(f"{parameter} must be a sequence of labels; got {names!r}.")
    found = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
    if nested := [name for name in found if not isinstance(name, Hashable)]:
        raise ValueError(f"{parameter} must be a sequence of labels; got {nested[0]!r} in it.")
    if len({*found}) < len(found):
        raise ValueError(f"{parameter} has a label more than once; got {list(found)}.")
    return found


def _checked_pools(pools: Any) -> Any:
    """Return None, True or pools of labels, each label in one pool."""
    if pools is None or pools is False:
        return None
    if pools is True:
        return True
    if isinstance(pools, str | Mapping) or not isinstance(pools, Iterable):
        raise ValueError(f'pool_classes must be True or pools such as [("low", "mid")]; got {pools!r}.')
    found = tuple(checked_names(pool, "each of pool_classes") for pool in pools)
    if small := [pool for pool in found if len(pool) < 2]:
        raise ValueError(f"Each of pool_classes must have at least two classes; got {list(small[0])}.")
    labels = [label for pool in found for label in pool]
    if twice := [label for i, label in enumerate(labels) if label in labels[:i]]:
        raise ValueError(f"{twice[0]!r} is in more than one of pool_classes; put it into one.")
    return found or None
