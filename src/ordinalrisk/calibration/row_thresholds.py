"""The thresholds of a calibration at one ``alpha``, and which of them applies to which row and label."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.accumulate import Calibration, row_weights
from ordinalrisk.calibration.promises import Promise, ThresholdsByWeight, threshold_by_weight
from ordinalrisk.calibration.randomization import randomized
from ordinalrisk.display.text_table import listed
from ordinalrisk.inputs.row_names import RowNames

UNSEEN = ("error", "full")


class Thresholds:
    """A threshold for each stratum.

    Parameters
    ----------
    calibration : Calibration
        The losses of the calibration rows.
    promise : Promise
        What they are to keep.
    alphas : sequence of Fraction
        The risk of each stratum.
    randomize : bool
        Whether a coin decides about labels at the threshold itself.
    """

    def __init__(
        self, calibration: Calibration, promise: Promise, alphas: Sequence[Fraction], *, randomize: bool
    ) -> None:
        self._calibration, self.alphas, self._randomize = calibration, alphas, randomize
        self._strata = calibration.strata
        self.values = [
            promise.threshold(part, alpha) for part, alpha in zip(self._strata.parts, alphas, strict=True)
        ]
        weights = calibration.class_weights
        self.by_class = None if weights is None else self._by_class_weight(weights)
        """The threshold of each class under label shift, that of a row whose truth it is."""

    @property
    def too_heavy_classes(self) -> list[Any]:
        """The classes for which nothing can be certified because of their weights."""
        labels = self._calibration.classes.tolist()
        return (
            [] if self.by_class is None else [labels[k] for k in np.flatnonzero(self.by_class == -math.inf)]
        )

    def of_rows(
        self, n_rows: int, *, groups: Any, unseen_groups: str, sample_weight: Any, seed: Any
    ) -> float | NDArray[np.float64]:
        """The threshold of each row, or of each label, or of both; a number if all are the same."""
        if unseen_groups not in UNSEEN:
            raise ValueError(f"unseen_groups must be one of {list(UNSEEN)}; got {unseen_groups!r}.")
        self._require("groups", groups, self._strata.groups is not None)
        self._require("sample_weight", sample_weight, self._calibration.shift == "covariates")
        self._require("seed", seed, self._randomize)
        if self.by_class is not None:
            return self.by_class[None]
        group = self._group_numbers(groups, n_rows, unseen_groups)
        if sample_weight is not None:
            return self._by_weight(group, row_weights(sample_weight, n_rows))[:, None]
        if group is None and not self._randomize:
            return self._strata.table(self.values) if self._strata.n_labels > 1 else self.values[0]
        rows = np.zeros(n_rows, np.int64) if group is None else group
        table = np.vstack([self._strata.table(self.values), np.full(self._strata.n_labels, -math.inf)])
        thresholds = table[rows]  # the last line of the table is for groups that are not known
        if not self._randomize:
            return thresholds
        curves = [part.curve for part in self._strata.parts]
        return randomized(thresholds, rows, curves, self.alphas, seed)

    def _require(self, name: str, given: Any, wanted: bool) -> None:
        if wanted and given is None:
            made = "is randomized" if name == "seed" else f"was made with {name}"
            raise ValueError(f"The calibration {made}, so predictions need {name}= too.")
        if not wanted and given is not None:
            made = "randomized" if name == "seed" else f"made with {name}"
            raise ValueError(f"{name} was given, but the calibration was not {made}; calibrate so first.")

    def _group_numbers(self, groups: Any, n_rows: int, unseen_groups: str) -> NDArray[np.int64] | None:
        known = self._strata.groups
        if known is None:
            return None
        numbers, unseen = RowNames("groups", known).found(groups, n_rows)
        if unseen and unseen_groups == "error":
            row = int((numbers < 0).argmax())
            raise ValueError(
                f"groups[{row}] is {unseen[0]!r}, a group without calibration rows "
                f"({listed(map(repr, known))} have some); calibrate with it, or pass "
                'unseen_groups="full" to give such rows all labels.'
            )
        return numbers

    def _by_class_weight(self, weights: Sequence[Fraction]) -> NDArray[np.float64]:
        curve, alpha = self._strata.parts[0].curve, self.alphas[0]
        return np.array([threshold_by_weight(curve, alpha, weight) for weight in weights])

    @cached_property
    def _by_row_weight(self) -> list[ThresholdsByWeight]:
        return [
            ThresholdsByWeight(part.curve, alpha)
            for part, alpha in zip(self._strata.parts, self.alphas, strict=True)
        ]

    def _by_weight(
        self, group: NDArray[np.int64] | None, weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        known = np.ones(len(weights), bool) if group is None else group >= 0
        found = np.full(len(weights), -math.inf)
        if group is None:
            found = self._by_row_weight[0].of(weights)
        else:
            by_group = np.argsort(group, kind="stable")
            ends = np.searchsorted(group[by_group], np.arange(len(self._strata.parts) + 1))
            for number, thresholds in enumerate(self._by_row_weight):
                mine = by_group[ends[number] : ends[number + 1]]
                found[mine] = thresholds.of(weights[mine])
        if n_full := int(np.count_nonzero((found == -math.inf) & known)):
            warnings.warn(
                f"{n_full} of {len(weights)} new rows have weights so large, beside those of the calibration "
                "rows, that nothing can be certified for them: their sets are the full scale.",
                stacklevel=5,
            )
        return found
