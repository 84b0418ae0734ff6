"""The loss on test rows in the strata of a calibration, beside what was guaranteed for each.

What counts is what the guarantee is about: the mean loss of the rows of each group and each true class; where
clusters are the units, the mean of their mean losses; where rows have weights, the weighted mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.accumulate import Calibration, RowExtras
from ordinalrisk.calibration.guarantees import Guarantee
from ordinalrisk.evaluation import realised
from ordinalrisk.evaluation.counts import Tally, mean_loss
from ordinalrisk.evaluation.estimates import CONFIDENCE
from ordinalrisk.evaluation.origin import Origin
from ordinalrisk.evaluation.realised import ClusterLosses, Realised, WeightedLosses
from ordinalrisk.evaluation.verdict import PartVerdict, Verdict, judged, verdict_of_parts
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.prediction.interval_set import IntervalSet


class StratumLosses:
    """The losses of test rows in each stratum of a calibration, batch by batch.

    Of rows only the number of each loss is kept; of clusters the sum and the number of theirs. Those of
    several parts, such as files, add up; a cluster may have rows in more than one.

    Parameters
    ----------
    calibration : Calibration
        Whose groups, true classes, clusters and weights tell rows apart.
    """

    def __init__(self, calibration: Calibration) -> None:
        strata, costs = calibration.strata, calibration.costs
        n_parts = len(strata.parts)
        self._origin, self._costs = Origin.of(calibration), costs
        self.tally = Tally.empty(costs.n_classes)
        self._groups = None if strata.groups is None else RowNames("groups", strata.groups)
        self._values, which = np.unique(costs.values, return_inverse=True)
        self._which: NDArray[np.int64] = which.reshape(costs.values.shape)
        self._counts = np.zeros((n_parts, len(self._values)), np.int64)
        self._cluster_names = RowNames("clusters")
        by_cluster, by_weight = calibration.unit == "cluster", calibration.shift == "covariates"
        self._clusters = ClusterLosses(1, n_parts, costs) if by_cluster else None
        self._whole_clusters = ClusterLosses(1, 1, costs) if by_cluster else None
        self._weighted = WeightedLosses(1, n_parts, costs) if by_weight else None

    def add(self, labels: NDArray[np.int64], sets: IntervalSet, extras: RowExtras | None = None) -> None:
        """Take in rows whose labels have these positions, of groups that were calibrated."""
        self.tally += Tally.of(labels, sets)
        if self.is_plain:  # the tally has it all
            return
        extras = extras or RowExtras()
        n_labels = self._origin.n_labels
        part = np.zeros(len(labels), np.int64)
        if self._groups is not None:
            part = self._groups.found(extras.groups, len(labels))[0] * n_labels
        if n_labels > 1:
            part = part + labels
        nearest = np.clip(labels, sets.lower_index, sets.upper_index)
        cell = part * len(self._values) + self._which[labels, nearest]
        self._counts += np.bincount(cell, minlength=self._counts.size).reshape(self._counts.shape)
        if self._clusters is not None and self._whole_clusters is not None:
            cluster = self._cluster_names.numbered(extras.clusters, len(labels))
            units = self._costs.units[labels, nearest]
            self._clusters.add(0, self._clusters.numbered(cluster, part), units)
            whole = self._whole_clusters.numbered(cluster, np.zeros_like(part))
            self._whole_clusters.add(0, whole, units)
        if self._weighted is not None:
            weights = WeightedLosses.exactly(np.asarray(extras.sample_weight, np.float64))
            self._weighted.add(0, part, labels, nearest, weights)

    def merge(self, other: StratumLosses) -> StratumLosses:
        """Take in the losses of other rows at the same calibration, which are left as they are; gives these.

        Examples
        --------
        >>> from ordinalrisk import RiskController
        >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20, np.array([0, 1, 1] * 20)
        >>> controller = RiskController(alpha=0.1).calibrate(proba, y)
        >>> parts = [StratumLosses(controller.calibration_) for _ in range(2)]
        >>> for part, rows in zip(parts, (slice(20), slice(20, 60)), strict=True):
        ...     part.add(y[rows], controller.predict_set(proba[rows]))
        >>> parts[0].merge(parts[1]).tally.n_rows
        60
        """
        if self._origin != other._origin:
            raise ValueError(
                "The losses to merge are those of another calibration; count all parts for the same one."
            )
        self.tally += other.tally
        self._counts += other._counts
        if self._clusters is not None and self._whole_clusters is not None:
            assert other._clusters is not None
            assert other._whole_clusters is not None
            clusters = self._cluster_names.merge(other._cluster_names)
            self._clusters.merge(other._clusters, clusters)
            self._whole_clusters.merge(other._whole_clusters, clusters)
        if self._weighted is not None:
            assert other._weighted is not None
            self._weighted.merge(other._weighted)
        return self

    @property
    def is_plain(self) -> bool:
        """Whether all rows count alike, and together."""
        return self._origin.is_plain

    def n_rows(self, part: int) -> int:
        """The number of test rows of a stratum."""
        return int(self._loss_counts(part).sum())

    def realised(self, part: int) -> Realised | None:
        """What the test rows of a stratum came to; None if there are none that count."""
        if self._clusters is not None:
            return self._clusters.realised(0, part)
        if self._weighted is not None:
            return self._weighted.realised(0, [part])
        if self._origin.class_weights is not None:
            return self.realised_by_all()
        n_labels = self._origin.n_labels
        possible = np.unique(self._which[part % n_labels] if n_labels > 1 else self._which)
        counts, values = self._loss_counts(part)[possible], self._values[possible]
        return self._of_counts(counts, values)

    def realised_by_all(self) -> Realised | None:
        """What all test rows came to."""
        class_weights = self._origin.class_weights
        if self._whole_clusters is not None:
            return self._whole_clusters.realised(0, 0)
        if self._weighted is not None:
            return self._weighted.realised(0, range(len(self._counts)))
        if class_weights is not None:
            return realised.of_weighted_classes(self.tally, self._costs, class_weights)
        return self._of_counts(self._loss_counts(None), self._values)

    def _loss_counts(self, part: int | None) -> NDArray[np.int64]:
        """How many rows of a stratum, or of all, have each of the losses that there are."""
        if part is not None and not self.is_plain:
            counts: NDArray[np.int64] = self._counts[part]
            return counts
        nearest = self.tally.nearest.ravel()
        return np.bincount(self._which.ravel(), nearest, len(self._values)).astype(np.int64)

    @staticmethod
    def _of_counts(counts: NDArray[np.int64], values: NDArray[np.float64]) -> Realised | None:
        n_rows = int(counts.sum())
        if not n_rows:
            return None
        risk = mean_loss(counts, values, CONFIDENCE)
        return Realised(risk, realised.deviation(values, counts), n_rows)


@dataclass(frozen=True)
class StratumRisk:
    """What the test rows of one stratum showed.

    Attributes
    ----------
    guarantee : Guarantee
        What was guaranteed: ``alpha``, the ``group`` and the true class ``label``, if there are any.
    n_rows : int
        How many test rows there are.
    realised : Realised or None
        The mean loss that counts, with its 95 % interval; None if no test rows count.
    word : {"agrees", "chance", "disagrees", "nothing"}
        What that says of the guarantee.
    """

    guarantee: Guarantee
    n_rows: int
    realised: Realised | None
    word: str


def stratum_risks(
    losses: StratumLosses, guarantee: Guarantee, *, calibrated_on: bool = False
) -> list[StratumRisk]:
    """The realised risk of each group and true class beside what was guaranteed.

    Parameters
    ----------
    losses : StratumLosses
        Those of the test rows.
    guarantee : Guarantee
        Of the same calibration, at the ``alpha`` that the sets were made for.
    calibrated_on : bool
        Whether the test rows are the calibration rows themselves: then they say nothing.

    Examples
    --------
    >>> from ordinalrisk import RiskController
    >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20, np.array([0, 1, 1] * 20)
    >>> groups = ["a", "b", "b"] * 20
    >>> controller = RiskController(alpha=0.1).calibrate(proba, y, groups=groups)
    >>> losses = StratumLosses(controller.calibration_)
    >>> losses.add(y, controller.predict_set(proba, groups=groups), RowExtras(groups))
    >>> for found in stratum_risks(losses, controller.guarantee()):
    ...     print(found.guarantee.group, found.n_rows, found.realised.risk, found.word)
    a 20 0 (0 to 0.1684) agrees
    b 40 0 (0 to 0.0881) agrees
    """
    risks = []
    for number, part in enumerate(guarantee.parts or (guarantee,)):
        found, n_rows = losses.realised(number), losses.n_rows(number)
        word = "nothing" if found is None else judged(found, part, n_rows, calibrated_on).word
        risks.append(StratumRisk(part, n_rows, found, word))
    return risks


def verdict_on(losses: StratumLosses, guarantee: Guarantee, *, calibrated_on: bool = False) -> Verdict:
    """What the test rows say of the guarantee, in one word and in plain sentences."""
    whole, n_rows = losses.realised_by_all(), losses.tally.n_rows
    if whole is None:
        return Verdict("nothing", f"The weights of all {n_rows:,} test rows are 0, so nothing is learned.")
    if not guarantee.parts:
        return judged(whole, guarantee, n_rows, calibrated_on)
    parts = [
        PartVerdict(_name(found.guarantee), found.guarantee, found.realised, found.word)
        for found in stratum_risks(losses, guarantee, calibrated_on=calibrated_on)
    ]
    return verdict_of_parts(parts, _noun(guarantee), whole, guarantee, n_rows, calibrated_on)


def _name(guarantee: Guarantee) -> str:
    return " / ".join(str(part) for part in (guarantee.group, guarantee.label) if part is not None)


def _noun(guarantee: Guarantee) -> str:
    first = guarantee.parts[0]
    if first.group is None:
        return "true classes"
    return "groups" if first.label is None else "groups by true class"
