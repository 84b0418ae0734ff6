"""A monitor of a deployed calibration: a test of its risk that you may look at after every row."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.confidence_bounds import checked_delta
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes, as_classes, class_indices
from ordinalrisk.inputs.matrix import RowError
from ordinalrisk.inputs.numbers import as_fraction, as_number, from_json, to_json
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import as_loss
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.saving.document_with_digests import FilePath, naming, require
from ordinalrisk.saving.run_documents import MonitorDocument, WatchedFile, run_settings
from ordinalrisk.sequential.betting_run import LARGEST_WEALTH, BettingRun
from ordinalrisk.sequential.state import SequentialState, remember


class RiskMonitor(SequentialState[BettingRun]):
    r"""An alarm for a risk above ``alpha``, false with probability at most ``delta`` over all time.

    Compares labels, as they become known, with the predicted sets, and tests

        the expected loss of each new row, given all rows before it, is at most ``alpha``.

    You may look after every row: the probability of ever raising the alarm although this is true is at most
    ``delta``, whatever the distribution of the losses. Without an alarm the risk may still exceed ``alpha``.

    Bets of several sizes :math:`\lambda` start with a total wealth of 1 and are multiplied, at each row, by

    .. math:: 1 + \lambda\,(L - \alpha) / B.

    The alarm is raised when their wealth, the evidence, reaches :math:`1 / \delta`.

    Parameters
    ----------
    loss : IntervalLoss, str or table
        As for :class:`RiskController`.
    alpha : number
        The largest expected loss, between 0 and the loss's largest value; it means the decimals written.
    delta : number
        The probability of a false alarm, between 0 and 1.
    classes : sequence, optional
        The labels in order. By default those of the first sets.

    Attributes
    ----------
    alarm_ : bool
        Whether the alarm was raised, now or before.
    alarm_row_ : int or None
        The row at which it was raised, the first row being 1.
    evidence_ : float
        The wealth of the bets now, from a start of 1; at most 1e300.
    p_value_ : float
        One over the largest evidence so far: a valid p-value at any time.
    rise_row_ : int or None
        The row at which the loss began to rise, as it looked when the alarm was raised: from there to the
        alarm it was furthest above ``alpha`` in total.
    n_rows_ : int
        The number of rows so far; with clusters, the number of clusters.
    risk_ : float
        Their mean loss; NaN before the first row.
    recent_risk_ : float
        The mean loss of the last 500 of them.
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
    labels become known sooner, or if rows are sorted by label or score, some rows in a row are worse than
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

    delta: Any
    _parameters = ("loss", "alpha", "delta", "classes")
    _first_rows = "sets to update"
    _document = MonitorDocument

    def __init__(
        self, loss: Any = "coverage", alpha: Any = 0.1, delta: Any = 0.05, classes: Any = None
    ) -> None:
        self.loss = as_loss(loss)
        self.alpha = as_number(alpha, "alpha")
        self.delta = as_number(delta, "delta")
        self.classes = classes
        self.files_: list[WatchedFile] = []
        checked_delta(self.delta)
        self._run = None if classes is None else self._new_run(as_classes(classes))

    @property
    def alarm_(self) -> bool:
        return self.alarm_row_ is not None

    @property
    def alarm_row_(self) -> int | None:
        return None if self._run is None else self._run.alarm_row

    @property
    def rise_row_(self) -> int | None:
        return None if self._run is None else self._run.rise_row

    @property
    def recent_risk_(self) -> float:
        recent = [] if self._run is None else self._run.recent
        return float(sum(recent) * self._begun("").part / len(recent)) if recent else math.nan

    @property
    def evidence_(self) -> float:
        return 1.0 if self._run is None else self._run.evidence

    @property
    def p_value_(self) -> float:
        return 1.0 if self._run is None else 1 / self._run.peak

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

    def remember(self, fingerprint: str, n_rows: int, *, again: bool = False) -> None:
        """Keep the fingerprint of rows that are watched, and refuse rows that were watched before.

        The command ``ordinalrisk monitor`` does so for each file. Call it before :meth:`update`.

        Parameters
        ----------
        fingerprint : str
            64 hexadecimal digits, such as a SHA-256 of the file.
        n_rows : int
            The number of rows.
        again : bool
            Accept rows that were watched before.

        Examples
        --------
        >>> import hashlib
        >>> monitor = RiskMonitor(alpha=0.1, classes=[0, 1, 2])
        >>> january = hashlib.sha256(b"the rows of January").hexdigest()
        >>> monitor.remember(january, 3)
        >>> monitor.remember(january, 3)
        Traceback (most recent call last):
        ...
        ValueError: These 3 rows were watched before, and would count twice; ...
        """
        remember(self.files_, fingerprint, n_rows, again)

    def _new_run(self, classes: Classes) -> BettingRun:
        costs, needed = CostTable.of(self.loss, len(classes)), float(1 / as_fraction(self.delta))
        return BettingRun(costs, as_fraction(self.alpha), needed, classes)

    def _values(self, run: BettingRun) -> dict[str, Any]:
        return {
            "delta": to_json(self.delta),
            "wealth": [part.hex() for part in run.wealth.tolist()],
            "peak": run.peak.hex(),
            "alarm_row": run.alarm_row,
            "rise_row": run.rise_row,
            "lowest": {"n_rows": run.lowest[0], "total_loss": str(run.lowest[1] * run.part)},
            "recent": [str(loss * run.part) for loss in run.recent],
            "clusters": None if run.clusters is None else [*run.clusters],
            "files": [{"n_rows": file.n_rows, "blake3": file.blake3} for file in self.files_],
        }

    @classmethod
    def _restored(cls, path: FilePath, saved: MonitorDocument) -> RiskMonitor:
        loss, classes, alpha = run_settings(path, saved)
        field = partial(naming, path)
        with field("delta"):
            monitor = cls(loss, alpha, from_json(saved.delta), classes)
            run = monitor._begun("load")
        run.n_rows, run.alarm_row = saved.n_rows, saved.alarm_row
        monitor.files_ = [*saved.files]
        with field("clusters"):
            run.clusters = None if saved.clusters is None else dict.fromkeys(saved.clusters)
            n_clusters = run.n_rows if run.clusters is None else len(run.clusters)
            require(n_clusters == run.n_rows, "must have a digest for each cluster")
        by_row = run.clusters is None
        with field("total_loss"):
            run.restore_total(saved.total_loss, whole=by_row)
        with field("lowest"):
            lowest = as_fraction(saved.lowest.total_loss)
            require(saved.lowest.n_rows <= run.n_rows, "must be one of the rows")
            require(lowest <= run.total_loss, "must be part of the total loss")
            require(
                lowest - saved.lowest.n_rows * run.alpha
                <= min(Fraction(0), run.total_loss - run.n_rows * run.alpha),
                "must be the lowest",
            )
            run.lowest = saved.lowest.n_rows, run.parts_of(lowest)
        with field("recent"):
            recent = [as_fraction(loss) for loss in saved.recent]
            require(len(recent) <= run.n_rows, "must be losses of the rows")
            require(sum(recent) <= run.total_loss, "must be part of the total loss")
            run.recent.extend(run.parts_of(loss) for loss in recent)
        with field("wealth"):
            wealth = np.array([float.fromhex(part) for part in saved.wealth])
            require(wealth.shape == run.wealth.shape, "must have a number for each bet")
            require(bool((wealth <= LARGEST_WEALTH).all()), f"must be at most {LARGEST_WEALTH}")
            require(run.n_rows > 0 or not wealth.any(), "must be 0 before the first row")
            run.wealth = wealth
        with field("peak"):
            run.peak = float.fromhex(saved.peak)
            require(max(1.0, run.evidence) <= run.peak <= LARGEST_WEALTH, "must be the largest evidence")
        with field("alarm_row"):
            require((run.alarm_row or 0) <= run.n_rows, "must be one of the rows")
            require(monitor.alarm_ == (run.peak >= run.needed), "must be there if the alarm was raised")
        with field("rise_row"):
            run.rise_row = saved.rise_row
            require((run.rise_row or 0) <= (run.alarm_row or 0), "must not come after the alarm")
        return monitor

    def __repr__(self) -> str:
        text = f"RiskMonitor(loss={self.loss!r}, alpha={self.alpha!r}, delta={self.delta!r})"
        if not self.n_rows_:
            return text
        unit = "row" if self._begun("").clusters is None else "cluster"
        state = f"alarm at {unit} {self.alarm_row_}" if self.alarm_ else "no alarm"
        return (
            f"{text}: {state}, p-value {self.p_value_:.3g} after {self.n_rows_} {unit}s, "
            f"mean loss {self.risk_:.4g}"
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
