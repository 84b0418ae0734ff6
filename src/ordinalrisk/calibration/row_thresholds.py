"""The thresholds of a calibration at one ``alpha``, and the threshold of each row and label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.pooling import NO_POOLS, Pool, Pooling, pooled_strata
from ordinalrisk.calibration.promises import Promise, ThresholdsByWeight, expectation_threshold
from ordinalrisk.calibration.randomization import coins, randomized
from ordinalrisk.calibration.result import Calibration
from ordinalrisk.curves.strata import Stratum
from ordinalrisk.curves.stratum_rows import rows_by_number
from ordinalrisk.display.text_table import listed
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.inputs.weights import row_weights

UNSEEN = ("error", "full")


class RowKeys(NamedTuple):
    """The values that the thresholds of rows depend on; None for options that the calibration lacks."""

    n_rows: int
    groups: NDArray[np.int64] | None = None  # positions in the calibration's groups, -1 if unknown
    weights: NDArray[np.float64] | None = None
    coins: NDArray[np.float64] | None = None  # random numbers from 0 to 1

    def at(self, rows: Any, n_rows: int) -> RowKeys:
        return RowKeys(n_rows, *(None if values is None else values[rows] for values in self[1:]))


class Thresholds:
    """The threshold of each stratum, and the thresholds of rows and labels that follow from them."""

    def __init__(
        self,
        calibration: Calibration,
        promise: Promise,
        alphas: Sequence[Fraction],
        *,
        randomize: bool,
        pooling: Pooling = NO_POOLS,
    ) -> None:
        self.calibration, self.randomize = calibration, randomize
        self.promise, self.alphas, self.pooled_by_count = promise, alphas, pooling.by_count
        self._strata = calibration.strata
        self.exempt = [part.label in pooling.exempt for part in self._strata.parts]
        self.pooled: list[tuple[Stratum, Pool]] = (
            pooled_strata(self._strata, pooling, promise.rows_needed, alphas)
            if pooling.named or pooling.by_count
            else [(part, ()) for part in self._strata.parts]
        )
        """The rows that each threshold comes from, and the classes that share it."""
        self.values = [
            math.inf if exempt else promise.threshold(part, alpha)
            for (part, _), alpha, exempt in zip(self.pooled, alphas, self.exempt, strict=True)
        ]
        self.by_class: NDArray[np.float64] | None = (
            None  # under label shift: the threshold for each true class
        )
        if (ratios := calibration.class_ratios) is not None:
            curve = self._strata.parts[0].curve
            self.by_class = np.array([expectation_threshold(curve, alphas[0], ratio) for ratio in ratios])
        alike = self._strata.is_one and calibration.shift is None and not randomize
        self.shared_threshold = self.values[0] if alike else None  # None if it depends on the row

    @property
    def too_heavy_classes(self) -> list[Any]:
        """The classes that can't be certified because of their weights."""
        if self.by_class is None:
            return []
        classes: list[Any] = self.calibration.classes[self.by_class == -math.inf].tolist()
        return classes

    def keys(
        self,
        n_rows: int,
        groups: Any = None,
        unseen_groups: str = "error",
        sample_weight: Any = None,
        random_state: Any = None,
    ) -> RowKeys:
        """Check the row options; return the values that thresholds depend on."""
        self.require_options(unseen_groups, random_state)
        self.require("groups", groups, self._strata.groups is not None)
        self.require("sample_weight", sample_weight, self.calibration.shift == "covariates")
        return RowKeys(
            n_rows,
            None if groups is None else self._group_numbers(groups, n_rows, unseen_groups),
            None if sample_weight is None else row_weights(sample_weight, n_rows),
            None if random_state is None else coins(random_state, n_rows),
        )

    def of(self, rows: RowKeys) -> float | NDArray[np.float64]:
        """Return the threshold of each row, or of each label, or of both; a number if all are the same."""
        if self.shared_threshold is not None:
            return self.shared_threshold
        if self.by_class is not None:
            return self.by_class[None]
        if rows.weights is not None:
            return self._by_weight(rows.groups, rows.weights)[:, None]
        if rows.groups is None and rows.coins is None:
            return self._strata.table(self.values) if self._strata.n_labels > 1 else self.values[0]
        group = np.zeros(rows.n_rows, np.int64) if rows.groups is None else rows.groups
        table = np.vstack([self._strata.table(self.values), np.full(self._strata.n_labels, -math.inf)])
        thresholds = table[group]  # the last row of the table is for unknown groups
        if rows.coins is None:
            return thresholds
        curves = [part.curve for part in self._strata.parts]
        return randomized(thresholds, group, curves, self.alphas, rows.coins)

    @property
    def signature(self) -> tuple[Any, ...]:
        """A key for the sets: thresholds with equal signatures give equal sets."""
        by_row = self.randomize or self.calibration.shift is not None
        return tuple(self.values), tuple(self.alphas) if by_row else None

    @staticmethod
    def n_uncertified(rows: RowKeys, applied: float | NDArray[np.float64]) -> int:
        """Return how many rows have weights so large that nothing can be certified for them."""
        if rows.weights is None or isinstance(applied, float):
            return 0
        full = applied[:, 0] == -math.inf
        return int(np.count_nonzero(full if rows.groups is None else full & (rows.groups >= 0)))

    def require_options(self, unseen_groups: str, random_state: Any) -> None:
        """Raise an error for options that do not exist or that the calibration can't use."""
        if unseen_groups not in UNSEEN:
            raise ValueError(f"unseen_groups must be one of {list(UNSEEN)}; got {unseen_groups!r}.")
        self.require("random_state", random_state, self.randomize)

    @staticmethod
    def require(name: str, value: Any, wanted: bool, rows: str = "predictions") -> None:
        """Raise an error if an option is missing, or was not used in the calibration."""
        if wanted and value is None:
            made = "is randomized" if name == "random_state" else f"was made with {name}"
            raise ValueError(f"The calibration {made}, so {rows} need {name}= too.")
        if not wanted and value is not None:
            made = "randomized" if name == "random_state" else f"made with {name}"
            raise ValueError(f"{name} was given, but the calibration was not {made}; calibrate so first.")

    def _group_numbers(self, groups: Any, n_rows: int, unseen_groups: str) -> NDArray[np.int64]:
        known = self._strata.groups
        assert known is not None
        numbers, unseen = RowNames("groups", known).looked_up(groups, n_rows)
        if unseen and unseen_groups == "error":
            row = int((numbers < 0).argmax())
            raise ValueError(
                f"groups[{row}] is {unseen[0]!r}, a group without calibration rows "
                f"({listed(map(repr, known))} have some); calibrate with it, or pass "
                'unseen_groups="full" to give such rows all labels.'
            )
        return numbers

    @cached_property
    def _by_row_weight(self) -> list[ThresholdsByWeight]:
        return [
            ThresholdsByWeight(part.curve, alpha)
            for part, alpha in zip(self._strata.parts, self.alphas, strict=True)
        ]

    def _by_weight(
        self, group: NDArray[np.int64] | None, weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if group is None:
            return self._by_row_weight[0].of(weights)
        of_rows = np.full(len(weights), -math.inf)
        for number, mine in rows_by_number(group).items():
            if number >= 0:
                of_rows[mine] = self._by_row_weight[number].of(weights[mine])
        return of_rows
