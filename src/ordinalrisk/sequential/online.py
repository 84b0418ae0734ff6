r"""Rows in time order, and nothing assumed of them: sets with a bounded mean loss over time.

The threshold is walked. A place :math:`\theta` on a scale from 0 (sets that hold every label) to 1 (single
labels) gives the threshold of the moment. A row is *handed out* when its set is predicted at that threshold.
It is *settled* when its label is known: its loss moves the place,

.. math:: \theta \leftarrow \min\{1,\ \theta + \gamma\,(\alpha - L) / B\},

towards larger sets if the loss is above ``alpha``, towards smaller ones if it is below. In between the row is
*pending*. Let ``b`` be the largest number of rows that were pending at once, the row just handed out
included.

**The place never falls below** :math:`-b \gamma (1 - \alpha/B)`. A set that is handed out at a place of 0 or
less is full and costs nothing, so settling it raises the place. While the place is at or below 0, it is
lowered only by rows that were pending when it was last above 0. There are at most ``b`` of them, and none
lowers it by more than :math:`\gamma (1 - \alpha/B)`. (If it was never above 0, no row costs anything.)

**The first** ``n`` **rows handed out.** Stop when row ``n`` is handed out, and settle the pending rows in
thought, with any labels. No further row is handed out, so the lowest place stays what it was. Add up the
moves, of which the ceiling at 1 can only have taken something away:

.. math:: \sum_{t \le n} L_t \;\le\; n \alpha + \frac{B}{\gamma} (\theta_1 - \theta_{\mathrm{end}})
          \;\le\; n \alpha + \frac{B}{\gamma} \theta_1 + b\,(B - \alpha).

**Any** ``n`` **consecutive rows.** When the first of them is handed out, the place is at most 1 and at most
``b - 1`` earlier rows are pending. Each of these may still be settled without a loss, which raises the place
by :math:`\gamma \alpha / B`. Stop when the last of the ``n`` rows is handed out, settle those that are
pending in thought, and add up as before:

.. math:: \sum_{t = s + 1}^{s + n} L_t \;\le\; n \alpha + (b - 1)\,\alpha + \frac{B}{\gamma} + b\,(B - \alpha)
          \;=\; n \alpha + \frac{B}{\gamma} + b B - \alpha.

Both hold for every sequence of rows and every order of labels: drawn, drifting or chosen by an adversary who
sees the sets. An adversary can come as close to both as the loss of one row, for instance for coverage and
probabilities of 0 and 1.

The ceiling is there because single labels may cost less than ``alpha``: without it the place would rise all
the while, and after a change for the worse it would take as long to come down. It only makes sets larger.

Places are whole multiples of a rational, so the inequalities hold as computed, not up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, pairwise
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.promises import checked_alpha
from ordinalrisk.controller import RiskController
from ordinalrisk.growth.rules import GrowthRule, as_growth
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.device import on_device, to_host
from ordinalrisk.inputs.labels import (
    Classes,
    as_classes,
    class_indices,
    require_column_order,
    resolve_classes,
)
from ordinalrisk.inputs.matrix import as_matrix
from ordinalrisk.inputs.numbers import as_fraction, as_number, from_json, to_json
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.inputs.splitting import is_whole
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import as_loss
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.saving.document_with_digests import OlderSchema, Schema, naming
from ordinalrisk.saving.shared_fields import (
    count_of,
    growth_of,
    require,
    saved_growth,
    saved_names,
    scale_of,
    total_of,
)

_FIELDS_1 = ("classes", "loss", "growth", "alpha", "rate", "n_rows", "total_loss", "start", "place", "theta")


def _with_pending(values: dict[str, Any]) -> dict[str, Any]:
    """A run of schema 1: each row was settled before the next one was handed out."""
    pending: dict[str, list[int]] = {"rows": [], "lower": [], "upper": []}
    return {**values, "pending": pending, "most_pending": int(values["n_rows"] != 0)}


SCHEMA = Schema(
    "ordinalrisk online controller",
    2,
    (*_FIELDS_1, "pending", "most_pending"),
    older={1: OlderSchema(_FIELDS_1, _with_pending)},
)
_PARAMETERS = ("loss", "alpha", "growth", "classes", "rate")
_FAINT = 1e-9
"""Levels below this share of the largest are told apart by their difference, no more by their ratio."""

_PLACES_BETWEEN_MOVES = 2**40  # so that a run can start anywhere


class OnlineRiskController:
    r"""Prediction sets with a bounded mean loss over time, whatever comes.

    :meth:`predict_set` hands out sets at the threshold of the moment. :meth:`update` settles them when their
    labels are known: each loss moves the threshold. Labels may come late, in batches and in any order; until
    then the rows are pending. Rows need not be exchangeable, independent or random. For every sequence, with
    losses up to ``B``, the mean loss of the first ``n`` rows handed out is at most

    .. math:: \alpha + \frac{B\,\theta_1 / \mathrm{rate} + b\,(B - \alpha)}{n}

    where :math:`\theta_1`, from 0 to 1, is where the threshold starts and ``b`` is the largest number of rows
    that were pending at once. Pending rows are included, whatever their labels will be. :meth:`bound_after`
    is that number. It is a mean over time, over sets that are used as they were handed out; it says nothing
    about one row, or about one kind of rows.

    Parameters
    ----------
    loss, alpha, growth, classes
        As for :class:`RiskController`.
    rate : number
        How far a row moves the threshold, between 0 and 1. Thresholds lie on a scale of length one, from full
        sets to single labels, on which equal moves are about equal ratios of small thresholds: as many
        losses ``B`` in a row as ``1 / rate`` walk it from end to end. A larger rate follows changes sooner
        and makes more restless, on average larger sets. At the default of 0.01 a miss divides a threshold by
        1.2, which on rows that do not change makes sets about 1 % larger than the best fixed threshold.

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
        What the next row is predicted with: a label belongs to the set if its level is at least this.
        Minus infinity where sets are full, infinity where they are single labels.
    classes_ : array
        The labels in order.

    Notes
    -----
    Without :meth:`calibrate` the start is the threshold ``alpha``, near which good probabilities end up for
    the rules whose levels are parts of the model's risk, and -1 for ``"rps"``.

    The mean loss can stay below ``alpha``: single labels may cost less. As long as the threshold has never
    reached infinity, the mean loss of ``n`` settled rows is at least
    :math:`\alpha - B\,(1 - \theta_1) / (\mathrm{rate} \cdot n)`.

    The last term of the bound is small if few rows are pending at once: 100 pending rows add 100 times as
    much as one. While labels are missing, the threshold does not move.

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

    loss: Any
    alpha: Any
    growth: Any
    rate: Any

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

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _PARAMETERS and name in self.__dict__:
            raise AttributeError(f"{name} can't change during a run; make a new OnlineRiskController.")
        super().__setattr__(name, value)

    @property
    def n_rows_(self) -> int:  # noqa: D102 - attributes, documented as such
        return 0 if self._run is None else self._run.n_rows

    @property
    def n_pending_(self) -> int:  # noqa: D102
        return 0 if self._run is None else len(self._run.pending)

    @property
    def most_pending_(self) -> int:  # noqa: D102
        return 0 if self._run is None else self._run.most_pending

    @property
    def risk_(self) -> float:  # noqa: D102
        run = self._run
        return float(run.total_loss / run.n_settled) if run and run.n_settled else math.nan

    @property
    def threshold_(self) -> float:  # noqa: D102
        return self._begun("threshold_").threshold

    @property
    def classes_(self) -> Classes:  # noqa: D102
        return self._begun("classes_").classes

    def calibrate(self, proba: Any, y: Any, *, point_labels: Any = None) -> OnlineRiskController:
        """Begin a new run, at the threshold that a :class:`RiskController` has with these rows.

        The run so far ends: its pending rows can no longer be settled, and rows are numbered from 0 again.

        Parameters
        ----------
        proba, y, point_labels
            As for :meth:`RiskController.calibrate`.

        Returns
        -------
        OnlineRiskController
            Itself.

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
        """Hand out the prediction set of each row, at the threshold of the moment.

        The rows are pending until :meth:`update` gets their labels. The rows of a call have the numbers from
        ``n_rows_`` before the call to ``n_rows_ - 1`` after it. The first call starts the run. Nothing has
        changed if there is an error.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, as for :meth:`RiskController.calibrate`. A tensor on a GPU gives intervals
            there.
        point_labels : array-like of int, optional
            The label index each interval grows from, for a growth rule with ``point="given"``.

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
        given = self.growth.given_points(point_labels, matrix)
        lower, upper = self.growth.intervals(matrix, run.costs, run.threshold, given)
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
            The number of the row that each label belongs to, for labels that come out of order. By default
            the labels belong to the rows that have been pending longest, in order.

        Returns
        -------
        OnlineRiskController
            Itself.

        Raises
        ------
        ValueError
            If there are more labels than pending rows, or if a row was not handed out, is settled already or
            is there twice.

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
        numbers = run.numbers_of(rows, n_labels)
        resolve_classes(run.classes, y, len(run.classes))
        labels = to_host(class_indices(y, run.classes, n_labels, remedy=self._remedy))
        for number, label in zip(numbers, labels.tolist(), strict=True):
            run.settle(label, run.pending.pop(number))
        return self

    def replay(self, proba: Any, y: Any, *, point_labels: Any = None) -> IntervalSet:
        """Hand out one row, settle it, go on to the next: for past rows and for labels known at once.

        Each row is predicted with the losses of all rows before it, so at most one row of the call is pending
        at a time. Use it where the label of each row is known before the next row comes. Any cut of rows into
        batches gives the same sets and the same state, bit for bit. Nothing has changed if there is an error.

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
            What was predicted, on the host.

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
        ends = np.fromiter(run.walked(levels, labels.tolist()), np.dtype((np.int32, 2)), len(levels))
        lower, upper = np.ascontiguousarray(ends.T)
        return IntervalSet.of(lower, upper, classes)

    def bound_after(self, n_rows: int, pending: int = 1) -> Fraction:
        r"""Upper bound of the mean loss of the first ``n_rows`` rows handed out, whatever they are.

        .. math:: \min \{ B,\; \alpha + \frac{B\,\theta_1 / \mathrm{rate} + b\,(B - \alpha)}{n} \}

        Parameters
        ----------
        n_rows : int
            The number of rows ``n``, at least 1.
        pending : int
            The largest number of rows ``b`` that are pending at once. It is 1 for :meth:`replay`; it is the
            number of rows in a batch if all labels of a batch are known before the next one is handed out,
            and 100 for batches of 50 with labels that come one batch later. Rows with labels that never come
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
        run = self._begun("bound_after")
        _require_counts(n_rows, pending)
        return run.mean_bound(run.start * run.part + pending * (run.costs.bound - run.alpha), n_rows)

    def bound_so_far(self) -> Fraction:
        """Upper bound of the mean loss of all rows handed out so far, whatever labels pending rows will get.

        It is :meth:`bound_after` for ``n_rows_`` rows of which ``most_pending_`` were pending at once.

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
        r"""Upper bound of the mean loss of any ``n_rows`` rows handed out one after the other.

        They may be anywhere in the run.

        .. math:: \min \{ B,\; \alpha + \frac{B / \mathrm{rate} + b B - \alpha}{n} \}

        Parameters
        ----------
        n_rows : int
            The number of rows ``n``, at least 1.
        pending : int
            The largest number of rows ``b`` that are pending at once, as for :meth:`bound_after`.

        Returns
        -------
        Fraction
            In units of the loss, up to the rounding of the scale's end to a whole number of places.

        Examples
        --------
        >>> controller = OnlineRiskController(alpha=0.1, classes=range(5))
        >>> float(controller.bound_over_any(1_000)), float(controller.bound_over_any(1_000, pending=10))
        (0.2009, 0.2099)
        """
        run = self._begun("bound_over_any")
        _require_counts(n_rows, pending)
        return run.mean_bound(run.ceiling * run.part + pending * run.costs.bound - run.alpha, n_rows)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the run, pending rows included, to a JSON file, whole or not at all.

        Parameters
        ----------
        path : path
            Of the file. One that is there is replaced.

        Examples
        --------
        >>> import tempfile
        >>> controller = OnlineRiskController(alpha=0.1)
        >>> sets = controller.predict_set([[0.1, 0.2, 0.7]] * 3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     controller.save(f"{folder}/run.json")
        ...     same = OnlineRiskController.load(f"{folder}/run.json")
        >>> same.update([2, 0, 2]).threshold_ == controller.update([2, 0, 2]).threshold_, same.n_rows_
        (True, 3)
        """
        run = self._begun("save")
        values = {
            "classes": saved_names(run.classes.tolist()),
            "loss": self.loss.to_dict(),
            "growth": saved_growth(self.growth),
            "alpha": to_json(self.alpha),
            "rate": to_json(self.rate),
            "n_rows": run.n_rows,
            "total_loss": str(run.total_loss),
            "start": run.start,
            "place": run.place,
            "theta": run.theta.hex(),
            "pending": {
                "rows": [*run.pending],
                "lower": [lower for lower, _ in run.pending.values()],
                "upper": [upper for _, upper in run.pending.values()],
            },
            "most_pending": run.most_pending,
        }
        SCHEMA.write(values, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> OnlineRiskController:
        """Read a run that :meth:`save` wrote; it goes on as if it had never been interrupted, bit for bit.

        Parameters
        ----------
        path : path
            Of the file.

        Returns
        -------
        OnlineRiskController
            In the middle of the run.

        Raises
        ------
        ValueError
            If the file was cut, edited or written by another schema; it names the field.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     OnlineRiskController(alpha=0.1, classes=range(3)).save(f"{folder}/run.json")
        ...     controller = OnlineRiskController.load(f"{folder}/run.json")
        >>> controller.n_rows_
        0
        """
        saved = SCHEMA.read(path)
        loss, classes, costs = scale_of(path, saved)
        with naming(path, "growth"):
            growth = growth_of(saved["growth"])
        with naming(path, "alpha"):
            alpha = from_json(saved["alpha"])
            checked_alpha(as_fraction(alpha), costs.bound)
        with naming(path, "rate"):
            controller = cls(loss, alpha, growth, classes, rate=from_json(saved["rate"]))
        run = controller._begun("load")
        with naming(path, "n_rows"):
            run.n_rows = count_of(saved["n_rows"])
        with naming(path, "pending"):
            run.pending = _pending_of(saved["pending"], run.n_rows, costs.n_classes)
        with naming(path, "most_pending"):
            run.most_pending = count_of(saved["most_pending"])
            fewest = max(len(run.pending), min(1, run.n_rows))
            require(fewest <= run.most_pending <= run.n_rows, "must be one that so many rows can have")
        with naming(path, "total_loss"):
            run.lost = int(total_of(saved["total_loss"], run.n_settled, costs) / run.part)
        with naming(path, "start"):
            run.start = _whole(saved["start"])
            require(0 <= run.start <= run.ceiling, "must lie on the scale")
        with naming(path, "place"):
            run.place = _whole(saved["place"])
            require(run.floor <= run.place <= run.ceiling, "must lie on the scale")
            require(run.cut_off >= 0, "must be one that the losses lead to")
            require(run.n_settled > 0 or run.place == run.start, "must be the start before the first label")
        with naming(path, "theta"):
            require(float.fromhex(saved["theta"]) == run.theta, "must be the place")
        return controller

    def _new_run(self, classes: Classes, threshold: float | None = None) -> _Run:
        costs = CostTable.of(self.loss, len(classes))
        alpha = checked_alpha(as_fraction(self.alpha), costs.bound)
        scale = _scale(self.growth, costs)
        if threshold is None:
            threshold = -1.0 if scale.scores else float(alpha)
        # A little short of the threshold's own place, so that rounding does not put it past its own labels.
        theta = Fraction(scale.place_of(threshold)) * (1 - Fraction(1, 2**40))
        return _Run(classes, costs, scale, alpha, as_fraction(self.rate), theta)

    def _begun(self, wanted: str) -> _Run:
        if self._run is None:
            raise AttributeError(
                f"{wanted} needs to know the classes; give classes=, or the first rows to predict_set."
            )
        return self._run

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


class _Scale(NamedTuple):
    """Thresholds as places between 0 and 1: exponential, so that equal moves are about equal ratios.

    Levels that are parts of the model's risk lie between 0 and ``length``, and it is the small ones that tell
    rows apart. Scores lie between ``-length`` and 0, and it is those near 0 that do.
    """

    length: float
    stretch: float
    scores: bool

    def threshold(self, theta: float) -> float:
        if theta <= 0:
            return -math.inf
        if theta >= 1:
            return math.inf
        away = 1 - theta if self.scores else theta
        level = self.length * math.expm1(self.stretch * away) / math.expm1(self.stretch)
        return -level if self.scores else level

    def place_of(self, threshold: float) -> float:
        """The place of a threshold, the nearer end for one beyond the scale."""
        low, high = (-self.length, 0.0) if self.scores else (0.0, self.length)
        share = abs(min(max(threshold, low), high)) / self.length
        away = math.log1p(share * math.expm1(self.stretch)) / self.stretch
        return min(1.0, max(0.0, 1 - away if self.scores else away))


def _scale(growth: GrowthRule, costs: CostTable) -> _Scale:
    low, high = growth.level_range(costs)
    if low < 0:
        return _Scale(-low, math.log(costs.n_classes), scores=True)
    return _Scale(high, -math.log(_FAINT), scores=False)


class _Run:
    """Where the walk is, in whole numbers of equal parts of which each move has whole numbers too."""

    def __init__(
        self,
        classes: Classes,
        costs: CostTable,
        scale: _Scale,
        alpha: Fraction,
        rate: Fraction,
        theta: Fraction,
    ) -> None:
        self.classes, self.costs, self.scale, self.alpha = classes, costs, scale, alpha
        parts = math.lcm(alpha.denominator, costs.unit.denominator) * _PLACES_BETWEEN_MOVES
        self.part = Fraction(1, parts)  # alpha and every loss are whole multiples of it
        self.step = rate / costs.bound * self.part
        whole = parts // costs.unit.denominator
        self.losses = [[int(cost) * whole for cost in row] for row in costs.units]
        self.budget = int(alpha * parts)
        self.ceiling = math.ceil(1 / self.step)
        self.start = self.place = math.floor(theta / self.step)
        self.n_rows = self.lost = self.most_pending = 0
        self.pending: dict[int, tuple[int, int]] = {}  # the ends of the set by row number, oldest first

    @property
    def floor(self) -> int:
        """The lowest place that so many pending rows can lead to."""
        return self.most_pending * (self.budget - max(map(max, self.losses)))

    @property
    def n_settled(self) -> int:
        return self.n_rows - len(self.pending)

    @property
    def theta(self) -> float:
        return self.place * self.step.numerator / self.step.denominator  # rounded once

    @property
    def total_loss(self) -> Fraction:
        return self.lost * self.part

    @property
    def threshold(self) -> float:
        return self.scale.threshold(self.theta)

    @property
    def cut_off(self) -> int:
        """How much of the moves the ceiling has taken away."""
        return self.start + self.n_settled * self.budget - self.lost - self.place

    def hand_out(self, lower: list[int], upper: list[int]) -> None:
        self.pending.update(enumerate(zip(lower, upper, strict=True), self.n_rows))
        self.n_rows += len(lower)
        self.most_pending = max(self.most_pending, len(self.pending))

    def numbers_of(self, rows: Any, n_labels: int) -> list[int]:
        """The number of the pending row that each label belongs to."""
        if rows is None:
            if n_labels > len(self.pending):
                raise ValueError(f"y has {n_labels} labels, but only {len(self.pending)} rows are pending.")
            return [*islice(self.pending, n_labels)]
        array = to_numpy(to_host(rows), "rows")
        if array.shape != (n_labels,) or (n_labels and array.dtype.kind not in "iu"):
            raise ValueError(
                f"rows must have a whole number for each of the {n_labels} labels; got shape {array.shape} "
                f"and type {array.dtype}."
            )
        numbers: list[int] = array.tolist()
        seen: set[int] = set()
        for number in numbers:
            if not 0 <= number < self.n_rows:
                raise ValueError(f"Row {number} was never handed out; there are {self.n_rows} rows so far.")
            if number in seen:
                raise ValueError(f"Row {number} is in rows more than once; give it one label.")
            if number not in self.pending:
                raise ValueError(f"Row {number} is settled already; leave it and its label out.")
            seen.add(number)
        return numbers

    def settle(self, y: int, ends: tuple[int, int]) -> None:
        lower, upper = ends
        loss = self.losses[y][min(max(y, lower), upper)]
        self.lost += loss
        self.place = min(self.ceiling, self.place + self.budget - loss)

    def walked(self, levels: NDArray[np.float64], labels: list[int]) -> Iterator[tuple[int, int]]:
        """The ends of the set of each row, which is settled before the next one is handed out."""
        last = levels.shape[1] - 1
        self.most_pending = max(self.most_pending, len(self.pending) + 1)
        for level, y in zip(levels, labels, strict=True):
            inside = level >= self.threshold
            ends = int(inside.argmax()), last - int(inside[::-1].argmax())
            self.n_rows += 1
            self.settle(y, ends)
            yield ends

    def mean_bound(self, room: Fraction, n_rows: int) -> Fraction:
        """Upper bound of a mean loss if the sum is at most ``alpha`` for each row and ``room`` in all."""
        return min(self.costs.bound, self.alpha + room / n_rows)


def _require_counts(n_rows: int, pending: int) -> None:
    if not is_whole(n_rows) or n_rows < 1:
        raise ValueError(f"A mean loss is that of at least one row; got n_rows={n_rows!r}.")
    if not is_whole(pending) or pending < 1:
        raise ValueError(f"pending must be at least 1, the row that is handed out; got {pending!r}.")


def _length(y: Any) -> int:
    shape = tuple(y.shape) if on_device(y) else to_numpy(y, "y").shape
    if len(shape) != 1:
        raise ValueError(f"y must be a sequence of labels; got shape {shape}.")
    return int(shape[0])


def _pending_of(saved: Any, n_rows: int, n_classes: int) -> dict[int, tuple[int, int]]:
    require(set(saved) == {"rows", "lower", "upper"}, "must have rows, lower and upper")
    rows, lower, upper = ([count_of(value) for value in saved[name]] for name in ("rows", "lower", "upper"))
    require(len(rows) == len(lower) == len(upper), "must have two ends for each row")
    require(all(i < j for i, j in pairwise([*rows, n_rows])), "must have the numbers of rows in order")
    require(all(i <= j < n_classes for i, j in zip(lower, upper, strict=True)), "must be intervals of labels")
    return dict(zip(rows, zip(lower, upper, strict=True), strict=True))


def _whole(value: Any) -> int:
    require(type(value) is int, "must be a whole number")
    number: int = value
    return number
