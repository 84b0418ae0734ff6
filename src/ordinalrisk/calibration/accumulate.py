"""From rows to what a calibration keeps of them, batch by batch."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.fingerprint import Fingerprint, fingerprint
from ordinalrisk.calibration.promises import HighProbability, Promise
from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.steps import Steps
from ordinalrisk.curves.strata import RowsApart, Strata, Stratum, strata_of
from ordinalrisk.curves.unit_steps import UnitSteps, exact_weights
from ordinalrisk.growth.rules import GrowthRule
from ordinalrisk.inputs.arrays import as_floats, to_numpy
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.matrix import RowError
from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.losses.cost_table import CostTable

_SEED_BITS = 53  # so that every reader of JSON has the same number
NO_CLASS_COUNTS = "class_weight is 0 for every class that the calibration rows have."


@dataclass(frozen=True)
class Calibration:
    """All that predictions need.

    Attributes
    ----------
    costs, classes
        The loss, and the labels in order.
    strata : Strata
        The losses of the calibration rows.
    unit : {"row", "cluster"}
        What is exchangeable.
    shift : {"covariates", "labels"} or None
        Which weights the rows have: likelihood ratios of their own, or of their classes.
    class_weights : tuple of Fraction or None
        The ratios of the classes.
    data_blake3 : str
        A fingerprint of the rows.
    columns : ScoreColumns or None
        Which columns they had, if they came from a file.
    more_alphas : tuple of Fraction
        Other risks around which a curve in windows is known.
    shuffle_seed : int or None
        The seed of the order in which rows bet, if a bound needs an order.
    """

    costs: CostTable
    classes: Classes
    strata: Strata
    data_blake3: str
    unit: str = "row"
    shift: str | None = None
    class_weights: tuple[Fraction, ...] | None = None
    columns: ScoreColumns | None = None
    more_alphas: tuple[Fraction, ...] = ()
    shuffle_seed: int | None = None


@dataclass(frozen=True)
class RowExtras:
    """What comes with rows beside probabilities and labels: a value for each row, or None."""

    groups: Any = None
    clusters: Any = None
    sample_weight: Any = None
    point_labels: NDArray[np.int64] | None = None

    @property
    def used(self) -> list[str]:
        """The names of those options that are given."""
        names = ("groups", "clusters", "sample_weight")
        return [name for name in names if getattr(self, name) is not None]


class Calibrator:
    """Takes in rows whose labels are positions in ``classes``, and keeps only the steps of their losses."""

    def __init__(
        self,
        costs: CostTable,
        growth: GrowthRule,
        promise: Promise,
        classes: Classes,
        *,
        by_label: bool = False,
        class_weight: Any = None,
        random_state: int | None = None,
    ) -> None:
        self._costs, self._growth, self._promise, self._classes = costs, growth, promise, classes
        self._by_label = by_label
        self._shuffle_seed = secrets.randbits(_SEED_BITS) if random_state is None else random_state
        self._class_weights = None if class_weight is None else checked_class_weights(class_weight, classes)
        self._steps: list[Any] = []
        self._labels: list[NDArray[np.int64]] = []
        self._groups, self._clusters = RowNames("groups"), RowNames("clusters")
        self._extras: list[dict[str, NDArray[Any]]] = []
        self._fingerprint: Fingerprint | str = Fingerprint()
        self._n_rows = 0

    def add(self, proba: Any, labels: Any, extras: RowExtras | None = None) -> None:
        """Take in rows; on a device all of them at once."""
        extras = extras or RowExtras()
        costs, growth, given = self._costs, self._growth, extras.point_labels
        n_rows = len(proba)
        self._extras.append(self._numbered(extras, n_rows))
        if self._rows_are_alike:
            self._steps.append(growth.steps(proba, labels, costs, given))
        else:
            positions = to_host(labels)
            levels = to_host(growth.row_levels(proba, costs, given))
            self._steps.append(UnitSteps.of_rows(levels, positions, costs))
            self._labels.append(positions)
        if isinstance(proba, np.ndarray):
            assert isinstance(self._fingerprint, Fingerprint)
            self._fingerprint.update(proba, labels)
        else:
            self._fingerprint = fingerprint(proba, labels)
        self._n_rows += n_rows

    def finish(self, columns: ScoreColumns | None = None) -> Calibration:
        """What is kept of all rows."""
        digest = self._fingerprint if isinstance(self._fingerprint, str) else self._fingerprint.hexdigest()
        strata = Strata((self._whole(),)) if self._rows_are_alike else self._strata()
        shift = "labels" if self._class_weights else "covariates" if self._has("sample_weight") else None
        return Calibration(
            self._costs,
            self._classes,
            strata,
            digest,
            "cluster" if self._has("clusters") else "row",
            shift,
            self._class_weights,
            columns,
            shuffle_seed=self._shuffle_seed if any(part.steps for part in strata.parts) else None,
        )

    @property
    def _rows_are_alike(self) -> bool:
        """Whether it does not matter which row a step belongs to."""
        if self._by_label or self._class_weights or self._extras[0]:
            return False
        promise = self._promise
        return not isinstance(promise, HighProbability) or promise.needs_totals_only(self._costs.two_valued())

    def _has(self, name: str) -> bool:
        return name in self._extras[0]

    def _numbered(self, extras: RowExtras, n_rows: int) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {}
        if extras.groups is not None:
            found["groups"] = self._groups.numbered(extras.groups, n_rows)
        if extras.clusters is not None:
            found["clusters"] = self._clusters.numbered(extras.clusters, n_rows)
        if extras.sample_weight is not None:
            found["sample_weight"] = row_weights(extras.sample_weight, n_rows)
        return found

    def _whole(self) -> Stratum:
        costs = self._costs
        steps = self._steps[0] if len(self._steps) == 1 else Steps.joined(self._steps)
        curve = RiskCurve(steps, unit=costs.unit, n_rows=self._n_rows, bound=costs.bound)
        return Stratum(None, None, self._n_rows, curve, costs.two_valued())

    def _strata(self) -> Strata:
        labels = np.concatenate(self._labels)
        columns = {name: np.concatenate([part[name] for part in self._extras]) for name in self._extras[0]}
        weights, weight_unit = self._weights(labels, columns.get("sample_weight"))
        strata = strata_of(
            UnitSteps.joined(self._steps),
            labels,
            self._costs,
            RowsApart(columns.get("groups"), columns.get("clusters"), weights, weight_unit),
            self._groups.known if "groups" in columns else None,
            by_label=self._by_label,
        )
        return replace(strata, parts=tuple(map(self._with_needed_steps, strata.parts)))

    def _weights(
        self, labels: NDArray[np.int64], of_rows: NDArray[np.float64] | None
    ) -> tuple[NDArray[Any] | None, Fraction]:
        if of_rows is not None:
            if not of_rows.any():
                raise ValueError("sample_weight is 0 in every row; some row must count.")
            return exact_weights(of_rows)
        if self._class_weights is None:
            return None, Fraction(1)
        by_class, unit = whole_weights(self._class_weights)
        whole = np.array(by_class, object)[labels]
        if not whole.any():
            raise ValueError(NO_CLASS_COUNTS)
        return whole, unit

    def _with_needed_steps(self, stratum: Stratum) -> Stratum:
        """The stratum without its steps, or with units in the random order in which they bet."""
        promise, steps = self._promise, stratum.steps
        if (
            steps is None
            or not isinstance(promise, HighProbability)
            or promise.bound_for(stratum) != "betting"
        ):
            return replace(stratum, steps=None)
        return replace(stratum, steps=steps.shuffled(self._shuffle_seed))


def row_weights(values: Any, n_rows: int, name: str = "sample_weight") -> NDArray[np.float64]:
    """A finite weight, 0 or larger, for each row."""
    array = to_numpy(to_host(values), name)
    if array.shape != (n_rows,):
        raise ValueError(
            f"{name} must have one weight for each of the {n_rows} rows of proba; got shape {array.shape}."
        )
    if (weights := as_floats(array)) is None:
        raise ValueError(f"{name} must hold numbers; got an array of type {array.dtype}.")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise RowError(
            f"{name}[{row}] is {weights[row]}; a weight is a likelihood ratio, finite and 0 or larger.",
            row,
            float(weights[row]),
        )
    return weights


def whole_weights(weights: Sequence[Fraction]) -> tuple[list[int], Fraction]:
    """Weights as whole multiples of one number.

    Examples
    --------
    >>> whole_weights([Fraction(1, 2), Fraction(1, 3)])
    ([3, 2], Fraction(1, 6))
    """
    unit = Fraction(1, math.lcm(*(weight.denominator for weight in weights)))
    return [int(weight / unit) for weight in weights], unit


def checked_class_weights(given: Any, classes: Classes) -> tuple[Fraction, ...]:
    """A weight for each class, from a sequence or by name."""
    if isinstance(given, Mapping):
        values = by_class(given, classes, "class_weight")
    elif not isinstance(given, str) and (array := to_numpy(given, "class_weight")).ndim == 1:
        values = array.tolist()
    else:
        raise ValueError(f"class_weight must be a weight for each class, or a mapping; got {given!r}.")
    if len(values) != len(classes):
        raise ValueError(
            f"class_weight must have one weight for each of the {len(classes)} classes; got {len(values)}."
        )
    weights = tuple(as_fraction(value, "class_weight") for value in values)
    for label, weight in zip(classes.tolist(), weights, strict=True):
        if weight < 0:
            raise ValueError(
                f"class_weight of {label!r} is negative: {float(weight):g}; it is a ratio of shares."
            )
    if not any(weights):
        raise ValueError("class_weight is 0 for every class; some class must count.")
    return weights


def by_class(given: Mapping[Any, Any], classes: Classes, name: str) -> list[Any]:
    """The values of a mapping in the order of the classes: each class has one, and nothing else does."""
    labels = classes.tolist()
    for label in given:
        if label not in labels:
            raise ValueError(f"{name} has {label!r}, which is not one of the classes {labels}.")
    for label in labels:
        if label not in given:
            raise ValueError(
                f"{name} has nothing for class {label!r}; give each of the classes {labels} a value."
            )
    return [given[label] for label in labels]
