r"""Whether a deployed calibration still keeps its promise: a test that may be looked at after every row.

Bets against "the expected loss of each new row, whatever came before, is at most ``alpha``" start with a
wealth of 1 in all, and a row of loss ``L`` multiplies that of the bet of size :math:`\lambda` by
:math:`1 + \lambda (L - \alpha) / B`. As long as the claim is true no bet gains on average, nor do all
together, and so (Ville) their wealth ever reaches :math:`1 / \delta` with probability :math:`\delta` at most.

The best size for a risk of :math:`r \alpha` and losses of 0 or ``B`` is about :math:`r - 1`, and larger where
losses vary less. Not knowing the risk, wealth is spread over sizes that double: between two of them no more
than a sixth of the growth is lost, and a bet more costs little.

In good times bets lose, and after many good rows they would take long to recover when times change. So only
half of the wealth is bet from the first row on. The other half is kept and bet bit by bit, of which

.. math:: \frac{1}{2} \cdot \frac{1000}{1000 + t}

is left after ``t`` rows: at any time there is some that has lost nothing yet.

All is sums and products of positive numbers, and each row rounds down by more than its rounding errors: the
wealth as computed is never above the true one.
"""

from __future__ import annotations

import math
from fractions import Fraction
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.confidence_bounds import SMALLEST_SHARE, checked_delta
from ordinalrisk.calibration.promises import checked_alpha
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes, as_classes, class_indices
from ordinalrisk.inputs.numbers import as_fraction, as_number, decimal_text, from_json, to_json
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import as_loss
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.saving.document_with_digests import Schema, naming
from ordinalrisk.saving.shared_fields import count_of, require, saved_names, scale_of, total_of

SCHEMA = Schema(
    "ordinalrisk monitor",
    1,  # another one as soon as the bets change
    ("classes", "loss", "alpha", "delta", "n_rows", "total_loss", "wealth", "peak", "alarm_row"),
)
Floats = NDArray[np.float64]

_PARAMETERS = ("loss", "alpha", "delta", "classes")
_BET_AT_ONCE = 0.5
_PATIENCE = 1000.0
_DOWN_EACH_ROW, _DOWN_IN_SUM = 1 - Fraction(1, 2**48), 1 - 2.0**-40
_RICHEST = 1e300
_ROWS_AT_ONCE, _BETS_AT_ONCE = 65_536, 2**20
_SMALLEST_BET = Fraction(1, 32)
_LARGEST_STAKE = Fraction(1, 2)


class RiskMonitor:
    r"""An alarm for a risk above ``alpha``, false with probability ``delta`` at most over all time.

    Watches labels as they become known beside the intervals that were predicted, and tests

        the expected loss of each new row, given all rows before it, is at most ``alpha``.

    It may be asked after every row, for ever: the probability that it ever rings although this is true is at
    most ``delta``, whatever the distribution of the losses. No alarm is no proof that the risk is kept.

    Bets of several sizes :math:`\lambda` start with a wealth of 1 in all and are multiplied, at each row, by

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
        The labels in order. By default those of the first intervals.

    Attributes
    ----------
    alarm_ : bool
        Whether the alarm was raised. It stays so.
    alarm_row_ : int or None
        The row at which it was raised, the first row being 1.
    evidence_ : float
        What the bets are worth now, from a start of 1; not counted beyond 1e300.
    p_value_ : float
        One over the largest evidence so far: at every moment a valid p-value of the claim. At most ``delta``
        once the alarm was raised.
    n_rows_ : int
        The rows so far.
    risk_ : float
        Their mean loss; NaN before the first.
    classes_ : array
        The labels in order.

    Notes
    -----
    A :class:`RiskController` keeps ``alpha`` on average over calibrations. With the one that was drawn the
    risk can be a little above it (its standard deviation is about
    :math:`\sqrt{\alpha (1 - \alpha) / n}` for coverage and ``n`` calibration rows), which no one has done
    anything wrong about, and which a monitor will find in the long run. Calibrate for high probability with
    ``delta=``, or give the monitor a slightly larger ``alpha``, if only a real worsening should ring.

    The order in which rows are watched must not depend on their labels: take the order of prediction. If bad
    labels become known sooner and rows are watched as labels arrive, the first rows are worse than ``alpha``
    although nothing has worsened. For the same reason watch all rows, or rows chosen without their labels.

    Rows of one patient are not what is tested: given the first, the expected loss of the second may be above
    ``alpha`` although nothing has worsened. Watch one row of each.

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

    loss: Any
    alpha: Any
    delta: Any

    def __init__(
        self, loss: Any = "coverage", alpha: Any = 0.1, delta: Any = 0.05, classes: Any = None
    ) -> None:
        self.loss = as_loss(loss)
        self.alpha = as_number(alpha, "alpha")
        self.delta = as_number(delta, "delta")
        self.classes = classes
        checked_delta(self.delta)
        self._needed = float(1 / as_fraction(self.delta))
        self.n_rows_ = 0
        self.alarm_row_: int | None = None
        self._lost = 0
        self._peak = 1.0
        self._bets: _Bets | None = None
        if classes is not None:
            self._begin(as_classes(classes))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _PARAMETERS and name in self.__dict__:
            raise AttributeError(f"{name} can't change while it is watched; make a new RiskMonitor.")
        super().__setattr__(name, value)

    @property
    def alarm_(self) -> bool:  # noqa: D102 - attributes, documented as such
        return self.alarm_row_ is not None

    @property
    def evidence_(self) -> float:  # noqa: D102
        return float(_evidence(self._wealth, self.n_rows_)) if self.n_rows_ else 1.0

    @property
    def p_value_(self) -> float:  # noqa: D102
        return 1 / self._peak

    @property
    def risk_(self) -> float:  # noqa: D102
        return float(self._total_loss / self.n_rows_) if self.n_rows_ else math.nan

    @property
    def classes_(self) -> Classes:  # noqa: D102
        return self._begun("classes_").classes

    def update(self, y: Any, sets: IntervalSet) -> bool:
        """Watch rows with known labels, in the order in which they were predicted.

        Any cut of rows into batches gives the same state, bit for bit. Nothing has changed if there is an
        error.

        Parameters
        ----------
        y : array-like of shape (n,)
            The true labels.
        sets : IntervalSet
            The intervals that were predicted before the labels were known.

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
        """
        if not isinstance(sets, IntervalSet):
            raise ValueError(
                f"sets must be an IntervalSet, what predict_set gives; got {type(sets).__name__}. "
                "The labels come first: update(y, sets)."
            )
        require_same_rows(sets=sets, y=y)
        sets = sets.cpu()
        known = sets.classes if self._bets is None else self._bets.classes
        if sets.classes.tolist() != known.tolist():
            raise ValueError(
                f"The intervals have the classes {sets.classes.tolist()}, but {known.tolist()} are watched; "
                "watch them with a monitor of their own."
            )
        labels = to_host(class_indices(y, known, len(sets)))
        if self._bets is None:
            self._begin(known)
        bets = self._begun("update")
        nearest = np.clip(labels, sets.lower_index, sets.upper_index)
        self._lost += sum(bets.costs.units[labels, nearest].tolist())
        at_once = min(_ROWS_AT_ONCE, _BETS_AT_ONCE // len(bets.sizes))
        for start in range(0, len(labels), at_once):
            here = slice(start, start + at_once)
            self._watch(bets.factors(labels[here], nearest[here]))
        return self.alarm_

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to a JSON file, whole or not at all.

        Parameters
        ----------
        path : path
            Of the file. One that is there is replaced.

        Examples
        --------
        >>> import tempfile
        >>> monitor = RiskMonitor(alpha=0.1, classes=[0, 1, 2])
        >>> alarm = monitor.update([0, 2], IntervalSet([0, 1], [0, 1], classes=[0, 1, 2]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     monitor.save(f"{folder}/monitor.json")
        ...     same = RiskMonitor.load(f"{folder}/monitor.json")
        >>> same.evidence_ == monitor.evidence_, same.n_rows_
        (True, 2)
        """
        values = {
            "classes": saved_names(self._begun("save").classes.tolist()),
            "loss": self.loss.to_dict(),
            "alpha": to_json(self.alpha),
            "delta": to_json(self.delta),
            "n_rows": self.n_rows_,
            "total_loss": str(self._total_loss),
            "wealth": [part.hex() for part in self._wealth.tolist()],
            "peak": self._peak.hex(),
            "alarm_row": self.alarm_row_,
        }
        SCHEMA.write(values, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> RiskMonitor:
        """Read what :meth:`save` wrote; it goes on as if it had never been interrupted, bit for bit.

        Parameters
        ----------
        path : path
            Of the file.

        Returns
        -------
        RiskMonitor
            In the state that was saved.

        Raises
        ------
        ValueError
            If the file was cut, edited or written by another schema; it names the field.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     RiskMonitor(alpha=0.1, classes=[0, 1, 2]).save(f"{folder}/monitor.json")
        ...     monitor = RiskMonitor.load(f"{folder}/monitor.json")
        >>> monitor.alarm_
        False
        """
        saved = SCHEMA.read(path)
        loss, classes, costs = scale_of(path, saved)
        with naming(path, "alpha"):
            alpha = from_json(saved["alpha"])
            checked_alpha(as_fraction(alpha), costs.bound)
        with naming(path, "delta"):
            monitor = cls(loss, alpha, from_json(saved["delta"]), classes)
        with naming(path, "n_rows"):
            monitor.n_rows_ = count_of(saved["n_rows"])
        with naming(path, "total_loss"):
            monitor._lost = int(total_of(saved["total_loss"], monitor.n_rows_, costs) / costs.unit)
        with naming(path, "wealth"):
            wealth = np.array([float.fromhex(part) for part in saved["wealth"]])
            require(wealth.shape == monitor._wealth.shape, "must have a number for each bet")
            require(bool(((wealth >= 0) & (wealth <= _RICHEST)).all()), "must be wealth")
            require(monitor.n_rows_ > 0 or not wealth.any(), "must be nothing before the first row")
            monitor._wealth = wealth
        with naming(path, "peak"):
            monitor._peak = float.fromhex(saved["peak"])
            require(max(1.0, monitor.evidence_) <= monitor._peak <= _RICHEST, "must be the largest evidence")
        with naming(path, "alarm_row"):
            row = saved["alarm_row"]
            require(
                row is None or (type(row) is int and 1 <= row <= monitor.n_rows_), "must be one of the rows"
            )
            require((row is not None) == (monitor._peak >= monitor._needed), "must be there if it was raised")
            monitor.alarm_row_ = row
        return monitor

    @property
    def _total_loss(self) -> Fraction:
        return Fraction(0) if self._bets is None else self._lost * self._bets.costs.unit

    def _begin(self, classes: Classes) -> None:
        self._bets = _Bets(CostTable.of(self.loss, len(classes)), as_fraction(self.alpha), classes)
        self._wealth: Floats = np.zeros(len(self._bets.sizes))

    def _begun(self, wanted: str) -> _Bets:
        if self._bets is None:
            raise AttributeError(
                f"{wanted} needs to know the classes; give classes=, or the first intervals to update."
            )
        return self._bets

    def _watch(self, factors: Floats) -> None:
        rows = self.n_rows_ + 1 + np.arange(len(factors))
        wealth = np.empty(factors.T.shape)
        for i, row in enumerate(rows.tolist()):
            self._wealth = wealth[:, i] = _wealth_after(self._wealth, factors[i], row)
        evidence = _evidence(wealth, rows)
        if not self.alarm_ and (raised := evidence >= self._needed).any():
            self.alarm_row_ = int(rows[raised.argmax()])
        self._peak = max(self._peak, float(evidence.max()))
        self.n_rows_ += len(factors)

    def __repr__(self) -> str:
        text = f"RiskMonitor(loss={self.loss!r}, alpha={self.alpha!r}, delta={self.delta!r})"
        if not self.n_rows_:
            return text
        state = f"alarm at row {self.alarm_row_}" if self.alarm_ else "no alarm"
        return (
            f"{text}: {state}, p-value {self.p_value_:.3g} after {self.n_rows_} rows, "
            f"mean loss {self.risk_:.4g}"
        )


class _Bets:
    """The sizes of the bets, and what each entry of the cost table multiplies their wealth by."""

    def __init__(self, costs: CostTable, alpha: Fraction, classes: Classes) -> None:
        self.costs, self.classes = costs, classes
        claim = checked_alpha(alpha, costs.bound) / costs.bound
        if claim < SMALLEST_SHARE:
            raise ValueError(f"alpha must be at least 1e-300 of the largest loss; got {decimal_text(alpha)}.")
        self.sizes = _bet_sizes(claim)
        distinct, which = np.unique(costs.units.ravel(), return_inverse=True)
        shares = [Fraction(cost, int(distinct[-1])) for cost in distinct.tolist()]
        self._factors: Floats = np.array([_factors(share - claim, self.sizes) for share in shares])
        self._which = which.reshape(costs.units.shape)

    def factors(self, labels: NDArray[np.int64], nearest: NDArray[np.int64]) -> Floats:
        """What these truths and nearest labels multiply the bets by: a row for each."""
        found: Floats = self._factors[self._which[labels, nearest]]
        return found


def _bet_sizes(claim: Fraction) -> list[Fraction]:
    """From the smallest, doubling, as long as a row without loss leaves half of the wealth.

    Smaller bets would find a risk of less than 1.02 ``alpha``, in a million rows; larger ones one of many
    times ``alpha``, a few rows earlier.

    Examples
    --------
    >>> [str(size) for size in _bet_sizes(Fraction(1, 10))]
    ['1/32', '1/16', '1/8', '1/4', '1/2', '1', '2', '4']
    """
    sizes = [_SMALLEST_BET]
    while 2 * sizes[-1] * claim <= _LARGEST_STAKE:
        sizes.append(2 * sizes[-1])
    return sizes


def _factors(surplus: Fraction, sizes: list[Fraction]) -> list[float]:
    """``1 + size * surplus`` for each size, rounded down by more than a row's rounding errors add up to."""
    down, lost, in_all = _DOWN_EACH_ROW, surplus.numerator, surplus.denominator
    return [  # Python divides whole numbers with one rounding
        (size.denominator * in_all + size.numerator * lost)
        * down.numerator
        / (size.denominator * in_all * down.denominator)
        for size in sizes
    ]


def _newly_bet(row: int) -> float:
    """The part of all wealth that is bet from this row on, the first being row 1."""
    part = (1 - _BET_AT_ONCE) * _PATIENCE / ((_PATIENCE + (row - 1)) * (_PATIENCE + row))
    return _BET_AT_ONCE + part if row == 1 else part


def _wealth_after(wealth: Floats, factors: Floats, row: int) -> Floats:
    """What the bets, on the first axis, have after a row; in equal shares of all wealth at the start."""
    with np.errstate(over="ignore"):
        after: Floats = np.minimum((wealth + _newly_bet(row)) * factors, _RICHEST)
    return after


def _evidence(wealth: Floats, row: int | NDArray[np.int64]) -> Floats:
    """All wealth after a row, or after each of several: of the bets, and what is not bet yet."""
    kept = (1 - _BET_AT_ONCE) * _PATIENCE / (_PATIENCE + row)
    in_order = np.add.accumulate(wealth, axis=0)[-1]  # a sum whose order does not depend on the shape
    total: Floats = (in_order / len(wealth) + kept) * _DOWN_IN_SUM
    return total
