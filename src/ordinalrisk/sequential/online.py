"""Online control: sets with a bounded mean loss over time, for rows in any order and of any kind."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ordinalrisk.controller import RiskController
from ordinalrisk.growth.rules import as_growth
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.device import on_device, to_host
from ordinalrisk.inputs.labels import (
    Classes,
    as_classes,
    class_indices,
    require_column_order,
    resolve_classes,
)
from ordinalrisk.inputs.numbers import as_fraction, as_number, from_json, to_json
from ordinalrisk.inputs.probability_matrix import as_matrix
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.losses.kinds import as_loss
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.saving.document_with_digests import FilePath, naming, require
from ordinalrisk.saving.run_documents import OnlineDocument, run_settings
from ordinalrisk.saving.shared_fields import growth_of, saved_growth
from ordinalrisk.sequential.online_run import OnlineRun
from ordinalrisk.sequential.state import SequentialState


class OnlineRiskController(SequentialState[OnlineRun]):
    r"""Prediction sets with a bounded mean loss over time, for any sequence of rows.

    :meth:`predict_set` hands out sets at the current threshold. :meth:`update` settles them when their labels
    are known: each loss moves the threshold. Labels may come late, in batches and in any order; until then
    the rows are pending. Rows need not be exchangeable, independent or random. For every sequence, with
    losses up to ``B``, the mean loss of the first ``n`` rows handed out is at most

    .. math:: \alpha + \frac{B\,\theta_1 / \mathrm{rate} + b\,(B - \alpha)}{n}

    where :math:`\theta_1`, from 0 to 1, is where the threshold starts and ``b`` is the largest number of rows
    that were pending at once. :meth:`bound_after` computes it. Pending rows are included, whatever their
    labels will be. It bounds a mean over time; it says nothing about one row, or about one kind of rows.

    Parameters
    ----------
    loss, alpha, growth, classes
        As for :class:`RiskController`.
    rate : number
        How far a row moves the threshold, between 0 and 1, on a scale from full sets to single labels:
        ``1 / rate`` losses ``B`` in a row move it from end to end. A larger rate follows changes sooner, with
        sets that vary more and are larger on average. At the default of 0.01 a miss divides a small threshold
        by 1.2; on rows that do not change, sets are about 1 % larger than with the best fixed threshold.

    Attributes
    ----------
    n_rows_ : int
        The rows handed out so far. They are numbered 0, 1, 2, ... in that order.
    n_pending_ : int
        How many of them are pending; the others are settled.
    most_pending_ : int
        The largest number of rows that were pending at once so far: ``b``.
    risk_ : float
        The mean loss of the settled rows; NaN before the first.
    threshold_ : float
        The threshold of the next set, which has the labels with a level of at least this.
    classes_ : array
        The labels in order.

    Notes
    -----
    Without :meth:`calibrate` the threshold starts at ``alpha``, and at -1 for ``"rps"``.

    The mean loss can stay below ``alpha``: single labels may cost less. As long as the threshold has never
    reached infinity, the mean loss of ``n`` settled rows is at least
    :math:`\alpha - B\,(1 - \theta_1) / (\mathrm{rate} \cdot n)`.

    References
    ----------
    Feldman, Ringel, Bates, Romano. Achieving Risk Control in Online Learning Settings. TMLR 2023.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=2000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> y[1000:] = rng.integers(5, size=1000)  # from here on the model knows nothing
    >>> controller = OnlineRiskController(loss="coverage", alpha=0.1)
    >>> sizes = []
    >>> for start in range(0, 2000, 10):
    ...     sets = controller.predict_set(proba[start : start + 10])  # ten sets are used, then
    ...     sizes += sets.size.tolist()
    ...     controller = controller.update(y[start : start + 10])  # their labels become known
    >>> controller
    OnlineRiskController(loss=WeightedLoss(), alpha=0.1, growth=FrontierGrowth(point='mode'), rate=0.01):
    threshold 0.02... after 2000 rows, mean loss 0.1...
    >>> float(np.mean(sizes[:1000])), float(np.mean(sizes[1000:]))
    (3.15, 4.428)
    >>> controller.most_pending_, controller.risk_ <= controller.bound_so_far()
    (10, True)
    """

    growth: Any
    rate: Any
    _parameters = ("loss", "alpha", "growth", "classes", "rate")
    _first_rows = "rows to predict_set"
    _document = OnlineDocument

    def __init__(
        self,
        loss: Any = "coverage",
        alpha: Any = 0.1,
        growth: Any = "frontier",
        classes: Any = None,
        *,
        rate: Any = 0.01,
    ) -> None:
        self.loss = as_loss(loss)
        self.alpha = as_number(alpha, "alpha")
        self.growth = as_growth(growth)
        self.classes = classes
        self.rate = as_number(rate, "rate")
        if not 0 < as_fraction(self.rate) <= 1:
            raise ValueError(
                f"rate must be above 0 and at most 1, at which one largest loss leads from single labels to "
                f"full sets; got {rate!r}."
            )
        self._run = None if classes is None else self._new_run(as_classes(classes))

    @property
    def n_pending_(self) -> int:
        return 0 if self._run is None else len(self._run.pending)

    @property
    def most_pending_(self) -> int:
        return 0 if self._run is None else self._run.most_pending

    @property
    def threshold_(self) -> float:
        return self._begun("threshold_").threshold

    def calibrate(self, proba: Any, y: Any, *, point_labels: Any = None) -> OnlineRiskController:
        """Begin a new run at the threshold of a :class:`RiskController`; rows are numbered from 0 again.

        Parameters
        ----------
        proba, y, point_labels
            As for :meth:`RiskController.calibrate`.

        Returns
        -------
        OnlineRiskController
            The same controller.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> OnlineRiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
        OnlineRiskController(loss=WeightedLoss(), ..., rate=0.01): threshold 0.3 after 0 rows
        """
        batch = RiskController(self.loss, self.alpha, self.growth, self.classes)
        batch.calibrate(proba, y, point_labels=point_labels)
        self._run = self._new_run(batch.classes_, batch.threshold_)
        return self

    def predict_set(self, proba: Any, *, point_labels: Any = None) -> IntervalSet:
        """Hand out the prediction set of each row, at the current threshold.

        The rows are pending until :meth:`update` gets their labels. They have the numbers from ``n_rows_``
        before the call to ``n_rows_ - 1`` after it. Nothing has changed if there is an error.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, as for :meth:`RiskController.calibrate`. A tensor on a GPU gives sets there.
        point_labels : array-like of int, optional
            The label index each set grows from, for a growth rule with ``point="given"``.

        Returns
        -------
        IntervalSet
            The labels with a level of at least the threshold.

        Examples
        --------
        >>> controller = OnlineRiskController(alpha=0.2)
        >>> controller.predict_set([[0.1, 0.2, 0.7], [0.4, 0.3, 0.3]])
        IntervalSet of 2 rows, 3 classes, mean size 2.5
          0  1..2
          1  0..2
        >>> controller.n_rows_, controller.n_pending_
        (2, 2)
        """
        require_same_rows(proba=proba, point_labels=point_labels)
        matrix = as_matrix(proba)
        K = matrix.shape[1]
        run = self._new_run(np.arange(K)) if self._run is None else self._run
        if len(run.classes) != K:
            raise ValueError(f"proba has {K} columns, but there are {len(run.classes)} classes.")
        require_column_order(proba, run.classes)
        points = self.growth.given_points(point_labels, matrix)
        lower, upper = self.growth.intervals(matrix, run.costs, run.threshold, points)
        self._run = run
        run.hand_out(to_host(lower).tolist(), to_host(upper).tolist())
        return IntervalSet.of(lower, upper, run.classes)

    def update(self, y: Any, rows: Any = None) -> OnlineRiskController:
        """Settle pending rows: the loss of each moves the threshold, in the order given.

        Nothing has changed if there is an error.

        Parameters
        ----------
        y : array-like of shape (n,)
            True labels.
        rows : array-like of int, optional
            The number of the row that each label belongs to. By default the labels belong to the rows that
            have been pending longest, in order.

        Returns
        -------
        OnlineRiskController
            The same controller.

        Examples
        --------
        Three sets are handed out at once. The label of the last comes first; the others come together.

        >>> controller = OnlineRiskController(alpha=0.2, rate=0.1)
        >>> sets = controller.predict_set([[0.1, 0.25, 0.65]] * 3)
        >>> controller.update([0], rows=[2])
        OnlineRiskController(...): threshold 0.03... after 3 rows, 2 of them pending, mean loss 1
        >>> controller.update([2, 2])
        OnlineRiskController(...): threshold 0.08... after 3 rows, mean loss 0.3333
        """
        run = self._run
        if run is None:
            raise ValueError("update settles rows that predict_set has handed out; call predict_set first.")
        n_labels = _length(y)
        numbers = run.pending_rows(rows, n_labels)
        resolve_classes(run.classes, y, len(run.classes))
        labels = to_host(class_indices(y, run.classes, n_labels, remedy=self._remedy))
        for number, label in zip(numbers, labels.tolist(), strict=True):
            run.settle(label, run.pending.pop(number))
        return self

    def replay(self, proba: Any, y: Any, *, point_labels: Any = None) -> IntervalSet:
        """Hand out and settle one row after the other, where each label is known before the next row comes.

        Any cut of rows into batches gives the same sets and the same state, bit for bit. Nothing has changed
        if there is an error.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities of rows in time order, as for :meth:`predict_set`.
        y : array-like of shape (n,)
            Their true labels.
        point_labels : array-like of int, optional
            As for :meth:`predict_set`.

        Returns
        -------
        IntervalSet
            The predicted sets, on the host.

        Examples
        --------
        The miss in the first row makes the second row's set larger.

        >>> controller = OnlineRiskController(alpha=0.2, rate=0.1)
        >>> controller.replay([[0.1, 0.25, 0.65]] * 3, [0, 2, 2])
        IntervalSet of 3 rows, 3 classes, mean size 2.667
          0  1..2
          1  0..2
          2  0..2
        >>> controller.risk_
        0.3333333333333333
        """
        require_same_rows(proba=proba, y=y, point_labels=point_labels)
        matrix = as_matrix(proba)
        run = self._run
        classes = resolve_classes(self.classes if run is None else run.classes, y, matrix.shape[1])
        run = self._new_run(classes) if run is None else run
        require_column_order(proba, classes)
        labels = to_host(class_indices(y, classes, len(matrix), remedy=self._remedy))
        levels = to_host(self.growth.levels(matrix, self.loss, point_labels))
        self._run = run
        ends = np.fromiter(run.replay(levels, labels.tolist()), np.dtype((np.int32, 2)), len(levels))
        lower, upper = np.ascontiguousarray(ends.T)
        return IntervalSet.of(lower, upper, classes)

    def bound_after(self, n_rows: int, pending: int = 1) -> Fraction:
        r"""Return an upper bound of the mean loss of the first ``n_rows`` rows handed out, whatever they are.

        .. math:: \min \{ B,\; \alpha + \frac{B\,\theta_1 / \mathrm{rate} + b\,(B - \alpha)}{n} \}

        Parameters
        ----------
        n_rows : int
            The number of rows ``n``, at least 1.
        pending : int
            The largest number of rows ``b`` that are pending at once: 1 for :meth:`replay`, the size of a
            batch if all its labels are known before the next one is handed out. Rows that never get a label
            stay pending.

        Returns
        -------
        Fraction
            In units of the loss.

        Examples
        --------
        >>> controller = OnlineRiskController(alpha=0.1, classes=range(5))
        >>> float(controller.bound_after(1_000)), float(controller.bound_after(100_000))
        (0.18978..., 0.10089...)
        >>> float(controller.bound_after(100_000, pending=100))
        0.10178...
        """
        return self._begun("bound_after").bound_after(n_rows, pending)

    def bound_so_far(self) -> Fraction:
        """Return :meth:`bound_after` for ``n_rows_`` rows of which ``most_pending_`` were pending at once.

        Returns
        -------
        Fraction
            In units of the loss.

        Examples
        --------
        >>> controller = OnlineRiskController(alpha=0.1)
        >>> sets = controller.predict_set([[0.1, 0.2, 0.7]] * 50)
        >>> sets = controller.update([2] * 50).replay([[0.1, 0.2, 0.7]] * 950, [2] * 950)
        >>> float(controller.bound_so_far()), float(controller.bound_after(1_000, pending=50))
        (0.233..., 0.233...)
        """
        return self.bound_after(self.n_rows_, self.most_pending_)

    def bound_over_any(self, n_rows: int, pending: int = 1) -> Fraction:
        r"""Return an upper bound of the mean loss of any ``n_rows`` consecutive rows of a run.

        .. math:: \min \{ B,\; \alpha + \frac{B / \mathrm{rate} + b B - \alpha}{n} \}

        Parameters
        ----------
        n_rows, pending : int
            As for :meth:`bound_after`.

        Returns
        -------
        Fraction
            In units of the loss.

        Examples
        --------
        >>> controller = OnlineRiskController(alpha=0.1, classes=range(5))
        >>> float(controller.bound_over_any(1_000)), float(controller.bound_over_any(1_000, pending=10))
        (0.2009, 0.2099)
        """
        return self._begun("bound_over_any").bound_over_any(n_rows, pending)

    def _new_run(self, classes: Classes, threshold: float | None = None) -> OnlineRun:
        alpha, rate = as_fraction(self.alpha), as_fraction(self.rate)
        return OnlineRun(classes, self.loss, self.growth, alpha, rate, threshold)

    def _values_of(self, run: OnlineRun) -> dict[str, Any]:
        lower, upper = ([ends[side] for ends in run.pending.values()] for side in (0, 1))
        return {
            "growth": saved_growth(self.growth),
            "rate": to_json(self.rate),
            "start": run.start,
            "place": run.place,
            "theta": run.theta.hex(),
            "pending": {"rows": [*run.pending], "lower": lower, "upper": upper},
            "most_pending": run.most_pending,
        }

    @classmethod
    def _restored(cls, path: FilePath, saved: OnlineDocument) -> OnlineRiskController:
        loss, classes, alpha = run_settings(path, saved)
        field = partial(naming, path)
        with field("growth"):
            growth = growth_of(saved.growth)
        with field("rate"):
            controller = cls(loss, alpha, growth, classes, rate=from_json(saved.rate))
            run = controller._begun("load")
        run.n_rows, run.start, run.place = saved.n_rows, saved.start, saved.place
        with field("pending"):
            rows, ends = saved.pending.rows, [*zip(saved.pending.lower, saved.pending.upper, strict=True)]
            require(all(i < j for i, j in pairwise([*rows, run.n_rows])), "must have row numbers in order")
            require(all(i <= j < len(classes) for i, j in ends), "must be intervals of labels")
            run.pending = dict(zip(rows, ends, strict=True))
        with field("most_pending"):
            run.most_pending, fewest = saved.most_pending, max(len(rows), min(1, run.n_rows))
            require(fewest <= run.most_pending <= run.n_rows, f"must be from {fewest} to {run.n_rows}")
        with field("total_loss"):
            run.restore_total(saved.total_loss)
        with field("start"):
            require(run.start <= run.ceiling, "must lie on the scale")
        with field("place"):
            require(run.floor <= run.place <= run.ceiling, "must lie on the scale")
            require(run.cut_off >= 0, "must follow from the losses")
            require(run.n_settled > 0 or run.place == run.start, "must be the start before the first label")
        with field("theta"):
            require(float.fromhex(saved.theta) == run.theta, "must be the place")
        return controller

    @property
    def _remedy(self) -> str:
        return " Name the labels in order with classes=." if self.classes is None else ""

    def __repr__(self) -> str:
        text = (
            f"OnlineRiskController(loss={self.loss!r}, alpha={self.alpha!r}, growth={self.growth!r}, "
            f"rate={self.rate!r})"
        )
        if self._run is not None:
            text += f": threshold {self.threshold_:.6g} after {self.n_rows_} rows"
        if self.n_pending_:
            text += f", {self.n_pending_} of them pending"
        return text + (f", mean loss {self.risk_:.4g}" if self.n_rows_ > self.n_pending_ else "")


def _length(y: Any) -> int:
    shape = tuple(y.shape) if on_device(y) else to_numpy(y, "y").shape
    if len(shape) != 1:
        raise ValueError(f"y must be a sequence of labels; got shape {shape}.")
    return int(shape[0])
