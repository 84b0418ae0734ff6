"""The summary of calibration rows: the model's risk of each row's label, and its loss."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.fingerprint import DataFingerprint
from ordinalrisk.growth.rules import AdaptiveGrowth
from ordinalrisk.inputs.batch import Batch, Summary
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.triage.certifying import (
    BettingTests,
    BinomialTests,
    certified_threshold,
    rows_needed,
    start_ranks,
)
from ordinalrisk.triage.guarantee import Certified
from ordinalrisk.triage.model_risk import labels_and_risks

_SEED_BITS = 53  # every reader of JSON represents such numbers exactly


@dataclass(frozen=True)
class RankedRows:
    """The rows of a group in the order of their scores, ties in random order."""

    group: Any
    scores: NDArray[np.float64]
    losses: NDArray[Any]  # in units of the cost table
    costs: CostTable

    def certified(self, alpha: Fraction, delta: Fraction) -> Certified:
        """Return the largest certified threshold at this risk, and what it accepts."""
        n, costs = len(self.scores), self.costs
        share, scale, two_valued = alpha / costs.bound, costs.unit / costs.bound, costs.two_valued()

        def tests(n_starts: int) -> BinomialTests | BettingTests:
            if two_valued:
                return BinomialTests(self.losses, share, delta / n_starts)
            return BettingTests(self.losses, scale, share, delta / n_starts)

        starts = start_ranks(n, share, delta, two_valued)
        threshold = certified_threshold(self.scores, starts, tests)
        n_accepted = int(np.searchsorted(self.scores, threshold))
        needed = starts[0] if starts else rows_needed(n, share, delta, two_valued)
        losses, times = np.unique(self.losses[:n_accepted], return_counts=True)
        lost = sum(loss * count for loss, count in zip(losses.tolist(), times.tolist(), strict=True))
        return Certified(self.group, n, threshold, n_accepted, lost * costs.unit, needed)


class _Kept(NamedTuple):
    scores: NDArray[np.float64]
    losses: NDArray[Any]
    groups: tuple[tuple[Any, ...], NDArray[np.int64]] | None


class ScoredRows(Summary):
    """The scores and the losses of calibration rows, in any number of batches."""

    def __init__(self, growth: AdaptiveGrowth, costs: CostTable) -> None:
        self.growth, self.costs = growth, costs
        self._kept: dict[tuple[int, int], _Kept] = {}
        self._fingerprint = DataFingerprint()

    def add(self, batch: Batch) -> None:
        labels, scores = labels_and_risks(self.growth, batch.proba, self.costs, batch.point_labels)
        losses = self.costs.units[to_host(batch.labels), labels]
        groups = None
        if batch.groups is not None:
            names = RowNames("groups")
            numbers = names.numbered(batch.groups, len(batch))
            groups = names.known, numbers
        self._kept[batch.place] = _Kept(scores, losses, groups)
        self._fingerprint.add(batch)

    def merge(self, other: ScoredRows) -> ScoredRows:
        both = ScoredRows(self.growth, self.costs)
        both._kept = {**self._kept, **other._kept}
        both._fingerprint = self._fingerprint.merge(other._fingerprint)
        return both

    @property
    def n_rows(self) -> int:
        return sum(len(kept.scores) for kept in self._kept.values())

    @property
    def data_blake3(self) -> str:
        return self._fingerprint.hexdigest()

    def ranked(self, seed: int | None) -> tuple[list[RankedRows], int | None]:
        """Return the rows of each group in order, and the seed of the order of ties; None without ties."""
        kept = [rows for _, rows in sorted(self._kept.items())]
        if not self.n_rows:
            raise ValueError("There are no rows to calibrate with.")
        scores, losses = (np.concatenate([rows[i] for rows in kept]) for i in (0, 1))
        known: dict[Any, int] = {}
        groups = np.zeros(len(scores), np.int64)
        if kept[0].groups is not None:
            numbers = [
                np.array([known.setdefault(name, len(known)) for name in rows.groups[0]], np.int64)[
                    rows.groups[1]
                ]
                for rows in kept
                if rows.groups is not None
            ]
            groups = np.concatenate(numbers)
        used = secrets.randbits(_SEED_BITS) if seed is None else seed
        coins = np.random.default_rng(used).permutation(len(scores))
        order = np.lexsort((coins, scores, groups))
        scores, losses, groups = scores[order], losses[order], groups[order]
        tied = bool(((scores[1:] == scores[:-1]) & (groups[1:] == groups[:-1])).any())
        ends = [*np.flatnonzero(np.diff(groups)) + 1, len(groups)]
        parts = [
            RankedRows(name, scores[start:end], losses[start:end], self.costs)
            for name, start, end in zip([*known] or [None], [0, *ends[:-1]], ends, strict=True)
        ]
        return parts, used if tied else None
