"""What a calibration promises beyond one risk for all rows, as a report tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.controller import RiskController
from ordinalrisk.curves.strata import Stratum
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.inputs.row_names import RowNames

MOST_PARTS = 120
"""Of more parts than these, a report shows those with the most calibration rows."""


def is_plain(controller: RiskController) -> bool:
    """Whether one risk is promised for all rows, on average over calibrations."""
    calibration = controller.calibration_
    return (
        calibration.strata.is_one
        and calibration.unit == "row"
        and calibration.shift is None
        and controller.delta is None
        and not controller.randomize
    )


class Parts:
    """The groups, true classes, or both, that have a guarantee of their own.

    Attributes
    ----------
    n_groups, n_parts : int
        How many there are of each; one group if there are none.
    positions : list of int
        Which strata of the calibration are shown; none if there is only one.
    shown : list of (int, int or None)
        The group and the true class of each.
    names : list of str
        What each is called.
    alphas_differ : bool
        Whether each true class has its own ``alpha``.
    """

    def __init__(self, controller: RiskController) -> None:
        calibration, strata = controller.calibration_, controller.calibration_.strata
        self._groups, self._n_labels = strata.groups, strata.n_labels
        self._classes = calibration.classes.tolist()
        self.n_groups = 1 if strata.groups is None else len(strata.groups)
        self.n_parts = len(strata.parts)
        order = sorted(range(self.n_parts), key=lambda i: -strata.parts[i].n_rows)
        self.positions = [] if strata.is_one else sorted(order[:MOST_PARTS])
        self.shown = [(i // self._n_labels, self._label(i)) for i in self.positions]
        self.names = [" / ".join(self._name(group, label)) for group, label in self.shown]
        self.alphas_differ = isinstance(controller.alpha, Mapping)

    @property
    def by(self) -> list[str]:
        """What tells rows apart."""
        return ["group"] * (self._groups is not None) + ["class"] * (self._n_labels > 1)

    @property
    def noun(self) -> str:
        """What the parts are, in the plural."""
        if len(self.by) == 2:
            return "groups by true class"
        return "groups" if self.by == ["group"] else "true classes"

    def group_numbers(self, groups: Any, n_rows: int) -> NDArray[np.int64]:
        """The group of each row; the number after the last for one without calibration rows."""
        if self._groups is None:
            return np.zeros(n_rows, np.int64)
        numbers, _ = RowNames("groups", self._groups).found(groups, n_rows)
        known: NDArray[np.int64] = np.where(numbers < 0, self.n_groups, numbers)
        return known

    def group_names(self, numbers: NDArray[np.int64]) -> list[Any] | None:
        """The groups of these numbers, and no group where there is none; None if rows have none."""
        if self._groups is None:
            return None
        names = [*self._groups, object()]
        return [names[number] for number in numbers.tolist()]

    def part_numbers(self, groups: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """The stratum of each row; the number after the last for one that has none."""
        parts = groups * self._n_labels + (labels if self._n_labels > 1 else 0)
        numbers: NDArray[np.int64] = np.minimum(parts, self.n_parts)
        return numbers

    def _label(self, position: int) -> int | None:
        return position % self._n_labels if self._n_labels > 1 else None

    def _name(self, group: int, label: int | None) -> list[str]:
        names = [] if self._groups is None else [str(self._groups[group])]
        return names if label is None else [*names, str(self._classes[label])]


def promise_facts(
    controller: RiskController, parts: Parts, part_rows: Sequence[int], seed: int | None
) -> dict[str, Any]:
    """The promise as JSON types, with what the calibration found for each part."""
    calibration, guarantee = controller.calibration_, controller.guarantee()
    weights = calibration.class_weights
    return {
        "delta": None if guarantee.delta is None else decimal_text(guarantee.delta),
        "bound": guarantee.bound_name,
        "shuffle_seed": calibration.shuffle_seed,
        "unit": calibration.unit,
        "shift": calibration.shift,
        "class_weights": None if weights is None else [decimal_text(weight) for weight in weights],
        "randomized": controller.randomize,
        "seed": seed,
        "by": parts.by,
        "noun": parts.noun,
        "alphas_differ": parts.alphas_differ,
        "parts": parts.n_parts if parts.by else 0,
        "strata": [
            _stratum_facts(calibration.strata.parts[position], controller.thresholds_[position], name, rows)
            | {
                "alpha": decimal_text(guarantee.parts[position].alpha),
                "needed": guarantee.parts[position].n_needed,
            }
            for position, name, rows in zip(parts.positions, parts.names, part_rows, strict=True)
        ],
    }


def _stratum_facts(part: Stratum, threshold: float, name: str, test_rows: int) -> dict[str, Any]:
    return {
        "name": name,
        "calibration_rows": part.n_rows,
        "calibration_units": part.curve.n_rows,
        "test_rows": test_rows,
        "threshold": {"decimal": repr(float(threshold)), "hex": float(threshold).hex()},
    }
