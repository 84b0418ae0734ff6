"""A monitor of a deployed calibration: a test of its risk that you may look at after every row."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from msgspec import to_builtins
from numpy.typing import NDArray

from ordinalrisk.calibration.confidence_bounds import checked_delta
from ordinalrisk.calibration.pooling import Pooling
from ordinalrisk.calibration.spec import Spec, checked_names
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes, as_classes, class_indices
from ordinalrisk.inputs.numbers import as_fraction, as_number, from_json, to_json
from ordinalrisk.inputs.probability_matrix import RowError
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.saving.document_with_digests import FilePath, naming, require
from ordinalrisk.saving.run_documents import MonitorDocument, WatchedFile, run_settings
from ordinalrisk.saving.shared_fields import saved_names
from ordinalrisk.sequential.betting_run import BettingRun, Seen
from ordinalrisk.sequential.state import SequentialState, Watch
from ordinalrisk.sequential.wealth import Bets


class RiskMonitor(SequentialState[BettingRun], Watch):
    r"""An alarm for a risk above ``alpha``, false with probability at most ``delta`` over all time.

    Compares labels, as they become known, with the predicted sets, and tests

        the expected loss of each new row, given all rows before it, is at most ``alpha``.

    You may look after every row: the probability of ever raising the alarm although this is true is at most
    ``delta``, whatever the distribution of the losses. Without an alarm the risk may still exceed ``alpha``.

    Bets of several sizes :math:`\lambda` start with a total wealth of 1 and are multiplied, at each row, by

    .. math:: 1 + \lambda\,(L - \alpha) / B.

    The alarm is raised when their wealth, the evidence, reaches :math:`1 / \delta`.

    With ``relative`` it tests that the expected loss of each new row is at most ``alpha`` times the largest
    cost :math:`g_y` of its true label, in expectation too: :math:`E[L - \alpha g_y] \le 0`, given all rows
    before it. The factors are :math:`1 + \lambda\,(L - \alpha g_y) / B`. With ``exempt_classes`` it tests the
    expected loss of each new row of the other classes; rows of the exempt ones are left out.

    Parameters
    ----------
    loss : IntervalLoss, str or table
        As for :class:`RiskController`.
    alpha : number
        The largest expected loss, between 0 and the loss's largest value; it means the decimals written.
        With ``relative``, a share between 0 and 1.
    delta : number
        The probability of a false alarm, between 0 and 1.
    classes : sequence, optional
        The labels in order. By default those of the first sets.
    relative : bool
        Whether ``alpha`` is a share of what could be lost, as for a :class:`RiskController` with
        ``relative=True``.
    exempt_classes : sequence
        Labels without a guarantee, as for :class:`RiskController`.

    Attributes
    ----------
    alarm_ : bool
        Whether the alarm was raised, now or before.
    alarm_row_ : int or None
        The row at which it was raised; the first row is 1.
    evidence_ : float
        The wealth of the bets now, from a start of 1; at most 1e300.
    p_value_ : float
        One over the largest evidence so far: a valid p-value at any time.
    rise_row_ : int or None
        The row at which the loss began to rise, as it looked when the alarm was raised: from there to the
        alarm it was furthest above ``alpha`` in total.
    n_rows_ : int
        The number of rows so far; with clusters, the number of clusters. Exempt rows do not count.
    n_exempt_ : int
        The number of rows of exempt classes.
    risk_ : float
        Their mean loss; NaN before the first row. With ``relative``, their total loss as a share of what they
        could lose.
    recent_risk_ : float
        The same of the last 500 rows or clusters.
    files_ : list of WatchedFile
        The files that were watched, by number of rows and fingerprint; see :meth:`remember`.
    classes_ : array
        The labels in order.

    Notes
    -----
    A :class:`RiskController` keeps ``alpha`` on average over calibrations. The risk of a single calibration
    can be a little above it (for coverage and ``n`` calibration rows its standard deviation is about
    :math:`\sqrt{\alpha (1 - \alpha) / n}`), and a monitor will find that in the long run. To raise the alarm
    only if the risk has grown, calibrate with ``delta=``, or watch a slightly larger ``alpha``.

    Watch all rows, or rows chosen without their labels, in the order of prediction or in the order in which
    labels arrive. Labels may come late, and in any order that has nothing to do with the losses. If bad
    labels become known sooner, or if rows are sorted by label or score, a run of rows can be worse than
    ``alpha`` although the risk has not grown, and the alarm can be false.

    If rows come from patients or other units with several rows each, calibrate with ``clusters=`` and pass
    them here: given one row of a patient, the expected loss of the next may be above ``alpha``. A cluster
    then counts as one row, with the mean loss of its rows, so all its rows must come in one update.

    With the defaults and losses of 0 or 1, half of the alarms for a risk of twice ``alpha`` are raised within
    about 100 rows, of 1.5 times ``alpha`` within 350, of 1.25 times within 1,300, if it was so from the first
    row; after 10,000 good rows within 300, 900 and 3,200.

    References
    ----------
    Waudby-Smith, Ramdas. Estimating means of bounded random variables by betting. JRSS B 2024.

    Podkopaev, Ramdas. Tracking the risk of a deployed model and detecting harmful distribution shifts.
    ICLR 2022.

    Examples
    --------
    Nine in ten labels are covered, then two in three.

    >>> monitor = RiskMonitor(loss="coverage", alpha=0.1, delta=0.05)
    >>> sets = IntervalSet([0] * 1000, [1] * 1000, classes=["none", "mild", "severe"])
    >>> monitor.update(["none", "severe", *["mild"] * 8] * 100, sets)
    False
    >>> monitor.update(["severe", "none", "mild"] * 100, sets[:300])
    True
    >>> monitor
    RiskMonitor(loss=WeightedLoss(), alpha=0.1, delta=0.05): alarm at row 1055, p-value ... after 1300 rows,
    mean loss 0.1538
    """

    _parameters = ("loss", "alpha", "delta", "classes", "relative", "exempt_classes")
    _first_rows = "sets to update"
    _document = MonitorDocument

    def __init__(
        self,
        loss: Any = "coverage",
        alpha: Any = 0.1,
        delta: Any = 0.05,
        classes: Any = None,
        *,
        relative: bool = False,
        exempt_classes: Any = (),
    ) -> None:
        spec = Spec(loss, alpha, relative=relative)
        self.loss, self.alpha, self.relative = spec.loss, spec.alpha, relative
        self.delta = as_number(delta, "delta")
        self.classes = classes
        self.exempt_classes = checked_names(exempt_classes, "exempt_classes")
        self.files_: list[WatchedFile] = []
        checked_delta(self.delta)
        self._run = None if classes is None else self._new_run(as_classes(classes))

    @property
    def _bets(self) -> Bets | None:
        return None if self._run is None else self._run.bets

    @property
    def n_exempt_(self) -> int:
        return 0 if self._run is None else self._run.n_exempt

    @property
    def recent_risk_(self) -> float:
        return math.nan if self._run is None else self._run.mean_loss(self._run.recent)

    def update(self, y: Any, sets: IntervalSet, *, clusters: Any = None) -> bool:
        """Watch rows with known labels, in the order of prediction or as labels arrive.

        Any cut of rows (or whole clusters) into batches gives the same state, bit for bit. Nothing has
        changed if there is an error.

        Parameters
        ----------
        y : array-like of shape (n,)
            The true labels.
        sets : IntervalSet
            The sets that were predicted before the labels were known.
        clusters : array-like of shape (n,), optional
            The patient, or other unit, that each row comes from; in every update or in none. A cluster that
            was watched before is an error.

        Returns
        -------
        bool
            Whether the alarm was raised, now or before.

        Examples
        --------
        >>> monitor = RiskMonitor(alpha=0.1)
        >>> monitor.update([0, 2, 1], IntervalSet([0, 1, 1], [0, 1, 2], classes=[0, 1, 2]))
        False
        >>> monitor.evidence_, monitor.risk_
        (1.16..., 0.3333333333333333)

        Two patients, of whom the first has a miss in one of two rows:

        >>> monitor = RiskMonitor(alpha=0.1)
        >>> sets = IntervalSet([0, 1, 1], [0, 1, 2], classes=[0, 1, 2])
        >>> monitor.update([0, 2, 1], sets, clusters=["Ann", "Ann", "Ben"])
        False
        >>> monitor.n_rows_, monitor.risk_
        (2, 0.25)
        """
        if not isinstance(sets, IntervalSet):
            raise ValueError(
                f"sets must be an IntervalSet, what predict_set gives; got {type(sets).__name__}. "
                "The labels come first: update(y, sets)."
            )
        require_same_rows(sets=sets, y=y, clusters=clusters)
        sets = sets.cpu()
        known = sets.classes if self._run is None else self._run.classes
        if sets.classes.tolist() != known.tolist():
            raise ValueError(
                f"The sets have the classes {sets.classes.tolist()}, but {known.tolist()} are watched; "
                "use another monitor for them."
            )
        labels = to_host(class_indices(y, known, len(sets)))
        nearest = np.clip(labels, sets.lower_index, sets.upper_index)
        run = self._run or self._new_run(known)
        if run.n_rows and (run.clusters is None) != (clusters is None):
            begun = "without" if run.clusters is None else "with"
            raise ValueError(
                f"The monitor was begun {begun} clusters; go on as it was begun, or begin another."
            )
        if clusters is None:
            run.watch(labels, nearest)
        else:
            numbers, digests = _new_clusters(clusters, len(labels), run.clusters or {})
            run.watch_clusters(labels, nearest, numbers)
            run.clusters = {**(run.clusters or {}), **digests}
        self._run = run
        return self.alarm_

    def _new_run(self, classes: Classes) -> BettingRun:
        costs, needed = CostTable.of(self.loss, len(classes)), float(1 / as_fraction(self.delta))
        exempt = Pooling.of(None, self.exempt_classes, classes).exempt
        return BettingRun(costs, as_fraction(self.alpha), needed, classes, self.relative, exempt)

    def _values_of(self, run: BettingRun) -> dict[str, Any]:
        def text(parts: int | Fraction) -> str:
            return str(parts * run.part)

        lost, staked = zip(*run.recent, strict=True) if run.recent else ((), ())
        stakes = {
            "total": text(run.staked),
            "lowest": text(run.lowest.staked),
            "recent": [*map(text, staked)],
        }
        return run.bets.values() | {
            "delta": to_json(self.delta),
            "relative": self.relative,
            "exempt_classes": saved_names([*self.exempt_classes]),
            "n_exempt": run.n_exempt,
            "lowest": {"n_rows": run.lowest.n_rows, "total_loss": text(run.lowest.lost)},
            "recent": [*map(text, lost)],
            "stakes": stakes if self.relative else None,
            "clusters": None if run.clusters is None else [*run.clusters],
            "files": to_builtins(self.files_),
        }

    @classmethod
    def _restored(cls, path: FilePath, saved: MonitorDocument) -> RiskMonitor:
        loss, classes, alpha = run_settings(path, saved)
        field = partial(naming, path)
        options: dict[str, Any] = {"relative": saved.relative, "exempt_classes": saved.exempt_classes}
        with field("exempt_classes"):
            Pooling.of(None, saved.exempt_classes, classes)
        with field("delta"):
            monitor = cls(loss, alpha, from_json(saved.delta), classes, **options)
            run = monitor._begun("load")
        run.n_rows, run.n_exempt, monitor.files_ = saved.n_rows, saved.n_exempt, [*saved.files]
        with field("n_exempt"):
            require(bool(saved.exempt_classes) or not run.n_exempt, "must be 0 without exempt classes")
        with field("clusters"):
            run.clusters = None if saved.clusters is None else dict.fromkeys(saved.clusters)
            n_clusters = run.n_rows if run.clusters is None else len(run.clusters)
            enough = n_clusters == run.n_rows or (run.n_exempt > 0 and n_clusters > run.n_rows)
            require(enough, "must have a digest for each cluster")
        with field("total_loss"):
            run.restore_total(saved.total_loss, whole=run.clusters is None)
        stakes = saved.stakes
        with field("stakes"):
            require((stakes is not None) == saved.relative, "must be there if alpha is a share, else null")
            run.staked = run.n_rows if stakes is None else run.parts_of(as_fraction(stakes.total))
            most = run.n_rows * (run.costs.bound / run.part if saved.relative else 1)
            require(run.staked <= most, "must be at most the largest loss of so many rows")
        with field("lowest"):
            n_rows, lowest = saved.lowest.n_rows, as_fraction(saved.lowest.total_loss)
            require(n_rows <= run.n_rows, "must be one of the rows")
            require(lowest <= run.total_loss, "must be part of the total loss")
            staked = n_rows if stakes is None else run.parts_of(as_fraction(stakes.lowest))
            run.lowest = Seen(n_rows, run.parts_of(lowest), staked)
            at_most = min(Fraction(0), run.excess(run.lost, run.staked))
            require(run.excess(run.lowest.lost, staked) <= at_most, "must be the lowest")
        with field("recent"):
            recent = [as_fraction(loss) for loss in saved.recent]
            require(len(recent) <= run.n_rows, "must be losses of the rows")
            require(sum(recent) <= run.total_loss, "must be part of the total loss")
        with field("stakes"):
            at_stake: list[int | Fraction] = [1] * len(recent)
            if stakes is not None:
                at_stake = [run.parts_of(as_fraction(stake)) for stake in stakes.recent]
            run.recent.extend(zip(map(run.parts_of, recent), at_stake, strict=True))
            require(max(sum(at_stake), run.lowest.staked) <= run.staked, "must be part of the total")
            parts = [(run.lost, run.staked), run.lowest[1:], *run.recent]
            enough = all(lost <= staked for lost, staked in parts)
            require(enough or not saved.relative, "must be at least the loss")
        run.bets.restore(path, saved)
        with field("rise_row"):
            require((saved.rise_row or 0) <= (saved.alarm_row or 0), "must not come after the alarm")
        return monitor

    def __repr__(self) -> str:
        text = f"RiskMonitor(loss={self.loss!r}, alpha={self.alpha!r}, delta={self.delta!r}"
        text += ", relative=True" * self.relative
        text += f", exempt_classes={[*self.exempt_classes]!r})" if self.exempt_classes else ")"
        if not self.n_rows_:
            return text
        unit = "row" if self._begun("").clusters is None else "cluster"
        state = f"alarm at {unit} {self.alarm_row_}" if self.alarm_ else "no alarm"
        return (
            f"{text}: {state}, p-value {self.p_value_:.3g} after {self.n_rows_} {unit}s, "
            f"{'share lost' if self.relative else 'mean loss'} {self.risk_:.4g}"
        )


def _new_clusters(
    clusters: Any, n_rows: int, known: dict[str, None]
) -> tuple[NDArray[np.int64], dict[str, None]]:
    """Number clusters, and return a digest of each; refuse one that is known."""
    names = RowNames("clusters")
    numbers = names.numbered(clusters, n_rows)
    digests: dict[str, None] = {}
    for number, name in enumerate(names.known):
        same = int(name) if isinstance(name, float) and name.is_integer() else name  # as in another format
        digest = hashlib.blake2b(str(same).encode(), digest_size=8).hexdigest()
        if digest in known or digest in digests:
            row = int((numbers == number).argmax())
            raise RowError(
                f"clusters[{row}] is {name!r}, a cluster that was watched before. A cluster counts once, "
                "with the mean loss of its rows: give all its rows in one update, or watch one row of each "
                "cluster, drawn at random, with a calibration by row.",
                row,
                name,
            )
        digests[digest] = None
    return numbers, digests
