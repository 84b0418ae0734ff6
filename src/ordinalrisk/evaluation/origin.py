"""Which calibration test rows are counted for: counts of one add up, those of several do not."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ordinalrisk.calibration.accumulate import Calibration
from ordinalrisk.losses.cost_table import ExactTable


@dataclass(frozen=True)
class Origin:
    """What tells a calibration apart, without the losses of its rows: it travels with every part.

    Attributes
    ----------
    data_blake3 : str
        The fingerprint of its rows.
    costs, classes
        The loss, and the labels in order.
    groups : tuple or None
        The groups, if it has some.
    n_labels : int
        The number of classes if it tells rows apart by class, else 1.
    sizes : tuple of (int, int, Fraction)
        For each stratum the number of rows and of units, and the weight of these.
    unit, shift, class_weights
        How rows count.

    Examples
    --------
    >>> from ordinalrisk import RiskController
    >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7, [0, 1, 2] * 7
    >>> one, same = (RiskController(alpha=0.5).calibrate(proba, y).calibration_ for _ in range(2))
    >>> other = RiskController(alpha=0.5).calibrate(proba, y, clusters=y).calibration_
    >>> Origin.of(one) == Origin.of(same), Origin.of(one) == Origin.of(other)
    (True, False)
    """

    data_blake3: str
    costs: ExactTable
    classes: tuple[Any, ...]
    groups: tuple[Any, ...] | None
    n_labels: int
    sizes: tuple[tuple[int, int, Fraction], ...]
    unit: str
    shift: str | None
    class_weights: tuple[Fraction, ...] | None

    @classmethod
    def of(cls, calibration: Calibration) -> Origin:
        """That of this calibration."""
        strata = calibration.strata
        return cls(
            calibration.data_blake3,
            calibration.costs.exact,
            tuple(calibration.classes.tolist()),
            strata.groups,
            strata.n_labels,
            tuple((part.n_rows, part.curve.n_rows, part.curve.weight) for part in strata.parts),
            calibration.unit,
            calibration.shift,
            calibration.class_weights,
        )

    @property
    def is_plain(self) -> bool:
        """Whether all rows count alike, and together."""
        return self.groups is None and self.n_labels == 1 and self.unit == "row" and self.shift is None
