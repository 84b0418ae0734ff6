r"""Rows in time order, and nothing assumed of them: intervals whose long-run mean loss is ``alpha``.

The threshold is walked. A place :math:`\theta` on a scale from 0 (sets that hold every label) to 1 (single
labels) says which threshold a row is predicted with. What the row then costs moves the place,

.. math:: \theta_{t+1} = \min\{1,\ \theta_t + \gamma\,(\alpha - L_t) / B\},

towards larger sets by a loss above ``alpha``, towards smaller ones by a loss below it. A full set costs
nothing, so :math:`\theta` can't fall below :math:`-\gamma (1 - \alpha/B)`: from a place at or below 0 it
only rises, and from above 0 no step is longer than that. Adding up the steps, of which the ceiling at 1 can
only have taken something away,

.. math:: \sum_{t \le n} L_t \;\le\; n \alpha + \frac{B}{\gamma} (\theta_1 - \theta_{n+1})
          \;\le\; n \alpha + \frac{B}{\gamma} \theta_1 + (B - \alpha)

for every sequence of rows, drawn, drifting or chosen by an adversary who sees the sets. The ceiling is there
because single labels may cost less than ``alpha``: without it the place would rise all the while, and after
a change for the worse it would take as long to come down. It only makes sets larger.

Places are whole multiples of a rational, so the inequality holds as computed, not up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration import checked_alpha
from ordinalrisk.controller import RiskController
from ordinalrisk.cost_table import CostTable
from ordinalrisk.device import to_host
from ordinalrisk.exact import as_fraction, as_number, from_json, to_json
from ordinalrisk.growth import GrowthRule, as_growth
from ordinalrisk.intervals import IntervalSet
from ordinalrisk.labels import Classes, as_classes, class_indices, require_column_order, resolve_classes
from ordinalrisk.losses import as_loss
from ordinalrisk.probabilities import as_matrix
from ordinalrisk.saved_document import Schema
from ordinalrisk.saved_parts import (
    count_of,
    growth_of,
    naming,
    require,
    saved_growth,
    saved_names,
    scale_of,
    total_of,
)

SCHEMA = Schema(
    "ordinalrisk online controller",
    1,
    ("classes", "loss", "growth", "alpha", "rate", "n_rows", "total_loss", "start", "place", "theta"),
)
_PARAMETERS = ("loss", "alpha", "growth", "classes", "rate")
_FAINT = 1e-9
"""Levels below this share of the largest are told apart by their difference, no more by their ratio."""

_PLACES_BETWEEN_MOVES = 2**40  # so that a run can start anywhere


class OnlineRiskController:
    r"""Label intervals whose mean loss over time is at most ``alpha``, whatever comes.

    Rolling risk control: each row is predicted with what the rows before it cost, then its own loss moves
    the threshold. Rows need not be exchangeable, independent or random. For every sequence, with losses up
    to ``B``, the mean loss of the first ``n`` rows is at most

    .. math:: \alpha + \frac{B\,\theta_1 / \mathrm{rate} + B - \alpha}{n}

    where :math:`\theta_1`, from 0 to 1, is where the threshold starts; :meth:`bound_after` is that number.
    While single labels are not enough, the mean is also no less than
    :math:`\alpha - B\,(1 - \theta_1) / (\mathrm{rate} \cdot n)`: it goes to ``alpha``. What holds is a mean
    over time; it says nothing about one row, or about one kind of rows.

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
        The rows so far.
    risk_ : float
        Their mean loss; NaN before the first.
    threshold_ : float
        What the next row is predicted with: a label belongs to the set if its level is at least this.
        Minus infinity where sets are full, infinity where they are single labels.
    classes_ : array
        The labels in order.

    Notes
    -----
    Without :meth:`calibrate` the start is the threshold ``alpha``, near which good probabilities end up for
    the rules whose levels are parts of the model's risk, and -1 for ``"rps"``.

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
    >>> sets = controller.update(proba, y)
    >>> controller
    OnlineRiskController(loss=WeightedLoss(), alpha=0.1, growth=FrontierGrowth(point='mode'), rate=0.01):
    threshold 0.02... after 2000 rows, mean loss 0.1...
    >>> float(sets[:1000].size.mean()), float(sets[1000:].size.mean())
    (3.0..., 4.4...)
    >>> controller.risk_ <= controller.bound_after(2000)
    True
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
    def risk_(self) -> float:  # noqa: D102
        return float(self._run.total_loss / self.n_rows_) if self._run and self.n_rows_ else math.nan

    @property
    def threshold_(self) -> float:  # noqa: D102
        return self._begun("threshold_").threshold

    @property
    def classes_(self) -> Classes:  # noqa: D102
        return self._begun("classes_").classes

    def calibrate(self, proba: Any, y: Any, *, point_labels: Any = None) -> OnlineRiskController:
        """Begin a new run, at the threshold that a :class:`RiskController` has with these rows.

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

    def update(self, proba: Any, y: Any, *, point_labels: Any = None) -> IntervalSet:
        """Predict each row with what the rows before it cost, then let it pay: one after the other.

        Any cut of rows into batches gives the same intervals and the same state, bit for bit. Nothing has
        changed if there is an error.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities of rows in time order, as for :meth:`RiskController.calibrate`.
        y : array-like of shape (n,)
            Their true labels.
        point_labels : array-like of int, optional
            The label index each interval grows from, for a growth rule with ``point="given"``.

        Returns
        -------
        IntervalSet
            What was predicted, on the host.

        Examples
        --------
        The miss in the first row makes the second row's set larger.

        >>> controller = OnlineRiskController(alpha=0.2, rate=0.1)
        >>> controller.update([[0.1, 0.25, 0.65]] * 3, [0, 2, 2])
        IntervalSet of 3 rows, 3 classes, mean size 2.667
          0  1..2
          1  0..2
          2  0..2
        >>> controller.risk_
        0.3333333333333333
        """
        matrix = as_matrix(proba)
        run = self._run
        classes = resolve_classes(self.classes if run is None else run.classes, y, matrix.shape[1])
        run = self._new_run(classes) if run is None else run
        require_column_order(proba, classes)
        remedy = " Name the labels in order with classes=." if self.classes is None else ""
        labels = to_host(class_indices(y, classes, len(matrix), remedy=remedy))
        levels = to_host(self.growth.levels(matrix, self.loss, point_labels))
        self._run = run
        ends = np.fromiter(run.walked(levels, labels.tolist()), np.dtype((np.int32, 2)), len(levels))
        lower, upper = np.ascontiguousarray(ends.T)
        return IntervalSet.of(lower, upper, classes)

    def predict_set(self, proba: Any, *, point_labels: Any = None) -> IntervalSet:
        """The interval of each row at the threshold of the moment, which stays as it is.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities. A tensor on a GPU gives intervals there.
        point_labels : array-like of int, optional
            As for :meth:`update`.

        Returns
        -------
        IntervalSet
            The labels whose level is at least the threshold.

        Examples
        --------
        >>> OnlineRiskController(alpha=0.2).predict_set([[0.1, 0.2, 0.7], [0.4, 0.3, 0.3]])
        IntervalSet of 2 rows, 3 classes, mean size 2.5
          0  1..2
          1  0..2
        """
        matrix = as_matrix(proba)
        K = matrix.shape[1]
        run = self._new_run(np.arange(K)) if self._run is None else self._run
        if len(run.classes) != K:
            raise ValueError(f"proba has {K} columns, but there are {len(run.classes)} classes.")
        require_column_order(proba, run.classes)
        given = self.growth.given_points(point_labels, matrix)
        lower, upper = self.growth.intervals(matrix, run.costs, run.threshold, given)
        return IntervalSet.of(lower, upper, run.classes)

    def bound_after(self, n_rows: int) -> Fraction:
        r"""What the mean loss of the first ``n_rows`` rows can't exceed, whatever they are.

        .. math:: \min \{ B,\; \alpha + \frac{B\,\theta_1 / \mathrm{rate} + B - \alpha}{n} \}

        Parameters
        ----------
        n_rows : int
            The number of rows ``n``, at least 1.

        Returns
        -------
        Fraction
            In units of the loss.

        Examples
        --------
        >>> controller = OnlineRiskController(alpha=0.1, classes=range(5))
        >>> float(controller.bound_after(1_000)), float(controller.bound_after(100_000))
        (0.18978..., 0.10089...)
        """
        run = self._begun("bound_after")
        return run.bound_over(n_rows, run.start)

    def bound_over_any(self, n_rows: int) -> Fraction:
        r"""An upper bound of the mean loss of any ``n_rows`` consecutive rows, wherever in the run they are.

        .. math:: \min \{ B,\; \alpha + \frac{B / \mathrm{rate} + B - \alpha}{n} \}

        Parameters
        ----------
        n_rows : int
            The number of rows ``n``, at least 1.

        Returns
        -------
        Fraction
            In units of the loss, up to the rounding of the scale's end to a whole number of places.

        Examples
        --------
        >>> float(OnlineRiskController(alpha=0.1, classes=range(5)).bound_over_any(1_000))
        0.2009
        """
        run = self._begun("bound_over_any")
        return run.bound_over(n_rows, run.ceiling)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the run to a JSON file, whole or not at all.

        Parameters
        ----------
        path : path
            Of the file. One that is there is replaced.

        Examples
        --------
        >>> import tempfile
        >>> controller = OnlineRiskController(alpha=0.1)
        >>> sets = controller.update([[0.1, 0.2, 0.7]] * 3, [2, 0, 2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     controller.save(f"{folder}/run.json")
        ...     same = OnlineRiskController.load(f"{folder}/run.json")
        >>> same.threshold_ == controller.threshold_, same.n_rows_
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
        with naming(path, "total_loss"):
            run.lost = int(total_of(saved["total_loss"], run.n_rows, costs) / run.part)
        with naming(path, "start"):
            run.start = _whole(saved["start"])
            require(0 <= run.start <= run.ceiling, "must lie on the scale")
        with naming(path, "place"):
            run.place = _whole(saved["place"])
            require(run.floor <= run.place <= run.ceiling, "must lie on the scale")
            require(run.cut_off >= 0, "must be one that the losses lead to")
            require(run.n_rows > 0 or run.place == run.start, "must be the start before the first row")
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
                f"{wanted} needs to know the classes; give classes=, or the first rows to update."
            )
        return self._run

    def __repr__(self) -> str:
        text = (
            f"OnlineRiskController(loss={self.loss!r}, alpha={self.alpha!r}, growth={self.growth!r}, "
            f"rate={self.rate!r})"
        )
        if self._run is not None:
            text += f": threshold {self.threshold_:.6g} after {self.n_rows_} rows"
        return text + (f", mean loss {self.risk_:.4g}" if self.n_rows_ else "")


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
        self.floor = self.budget - max(map(max, self.losses))
        self.start = self.place = math.floor(theta / self.step)
        self.n_rows = self.lost = 0

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
        return self.start + self.n_rows * self.budget - self.lost - self.place

    def walked(self, levels: NDArray[np.float64], labels: list[int]) -> Iterator[tuple[int, int]]:
        """The ends of the set of each row, predicted before and paid for after the one before it."""
        last = levels.shape[1] - 1
        for level, y in zip(levels, labels, strict=True):
            inside = level >= self.threshold
            lower, upper = int(inside.argmax()), last - int(inside[::-1].argmax())
            loss = self.losses[y][min(max(y, lower), upper)]
            self.n_rows += 1
            self.lost += loss
            self.place = min(self.ceiling, self.place + self.budget - loss)
            yield lower, upper

    def bound_over(self, n_rows: int, start: int) -> Fraction:
        if n_rows < 1:
            raise ValueError(f"A mean loss is that of at least one row; got n_rows={n_rows!r}.")
        room = (start - self.floor) * self.part
        return min(self.costs.bound, self.alpha + room / n_rows)


def _whole(value: Any) -> int:
    require(type(value) is int, "must be a whole number")
    number: int = value
    return number
