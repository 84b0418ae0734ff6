"""RiskController: probabilities and labels in, intervals out."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

from ordinalrisk import calibration_file, html_repr
from ordinalrisk.calibration import (
    Guarantee,
    checked_alpha,
    expectation_guarantee,
    expectation_threshold,
    warn_if_uncertified,
)
from ordinalrisk.cost_table import CostTable
from ordinalrisk.device import beside
from ordinalrisk.exact import as_fraction, as_number
from ordinalrisk.fingerprint import Fingerprint, fingerprint
from ordinalrisk.growth import as_growth
from ordinalrisk.intervals import IntervalSet
from ordinalrisk.labels import Classes, class_indices, require_column_order, resolve_classes
from ordinalrisk.losses import as_loss
from ordinalrisk.probabilities import as_matrix, to_numpy
from ordinalrisk.risk_curve import RiskCurve
from ordinalrisk.score_columns import ScoreColumns
from ordinalrisk.steps import Steps


class RiskController:
    r"""Label intervals whose expected loss is at most ``alpha``.

    Calibrated on rows with known labels, it turns the class probabilities of new rows into intervals
    ``[l, u]`` with

    .. math:: E[\,G(y, [l, u])\,] \le \alpha

    for rows exchangeable with the calibration rows, whatever the model and the distribution (Theorem 1).

    Parameters
    ----------
    loss : IntervalLoss, str or table
        What a miss costs: a :class:`WeightedLoss`, a :class:`DivergenceLoss`, a :class:`CostTableLoss` or its
        table, ``"coverage"`` or ``"divergence"``.
    alpha : number
        The largest expected loss, between 0 and the loss's largest value. It means the decimals that are
        written: 0.29 is 29/100.
    growth : GrowthRule or str
        How intervals grow: ``"frontier"`` (smallest), ``"adaptive"``, ``"paper"`` or ``"rps"``.
    classes : sequence, optional
        The labels in order. By default those of an ordered categorical ``y``, else ``0 .. K-1``.

    Attributes
    ----------
    threshold_ : float
        The exact threshold: a label belongs to a set if its level is at least this.
    risk_curve_ : RiskCurve
        The total calibration loss at every threshold.
    classes_ : array
        The labels in order.
    data_blake3_ : str
        A fingerprint of the calibration data.
    columns_ : ScoreColumns or None
        Which columns the calibration data had, if they came from a file.

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=1000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> controller = RiskController(loss="coverage", alpha=0.1).calibrate(proba[:500], y[:500])
    >>> controller.predict_set(proba[500:])
    IntervalSet of 500 rows, 5 classes, mean size 3.1...
    """

    threshold_: float
    risk_curve_: RiskCurve
    classes_: Classes
    data_blake3_: str
    columns_: ScoreColumns | None

    def __init__(
        self, loss: Any = "coverage", alpha: Any = 0.1, growth: Any = "frontier", classes: Any = None
    ) -> None:
        self.loss = as_loss(loss)
        self.alpha = as_number(alpha, "alpha")
        self.growth = as_growth(growth)
        self.classes = classes

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("loss", "alpha", "growth", "classes") and hasattr(self, "threshold_"):
            raise AttributeError(
                f"{name} can't change after the calibration it was made for; make a new RiskController"
                f"{', or pass alpha to predict_set' if name == 'alpha' else ''}."
            )
        super().__setattr__(name, value)

    def calibrate(self, proba: Any, y: Any, *, point_labels: Any = None) -> RiskController:
        """Find the exact threshold on rows with known labels.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, columns in label order: numpy, nested lists, pandas, polars, pyarrow, torch.
            A tensor on a GPU is calibrated with on the GPU.
        y : array-like of shape (n,)
            The true labels.
        point_labels : array-like of int, optional
            The label index each interval grows from, for a growth rule with ``point="given"``.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> RiskController(alpha=0.1).calibrate(proba, [1, 1, 2] + [0, 1, 2] * 6)
        RiskController(loss=WeightedLoss(), alpha=0.1, growth=FrontierGrowth(point='mode')): threshold inf ...
        """
        matrix, labels, classes = self._rows(proba, y, self.classes)
        costs = CostTable.of(self.loss, len(classes))
        alpha = checked_alpha(as_fraction(self.alpha), costs.bound)
        given = self.growth.given_points(point_labels, matrix)
        steps = self.growth.steps(matrix, labels, costs, given)
        curve = RiskCurve(steps, unit=costs.unit, n_rows=len(matrix), bound=costs.bound)
        warn_if_uncertified(alpha, curve.bound, len(matrix))
        return self._calibrated(
            costs, classes, curve, expectation_threshold(curve, alpha), fingerprint(matrix, labels)
        )

    def calibrate_batches(self, batches: Iterable[tuple[Any, Any]]) -> RiskController:
        """Find the exact threshold on rows that come in batches, of which only the losses' steps are kept.

        The result is that of :meth:`calibrate` on all rows at once, bit for bit.

        Parameters
        ----------
        batches : iterable of (proba, y)
            Each as for :meth:`calibrate`, on the host. The growth rule must find its own point labels.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> batches = [(proba, [1, 2, 2] + [0, 1, 2] * 6), (proba, [0, 1, 2] * 7)]
        >>> RiskController(alpha=0.05).calibrate_batches(batches)
        RiskController(loss=WeightedLoss(), ...): threshold 0.3 from 42 rows
        """
        if self.growth.point == "given":
            raise ValueError('Batches bring no point labels; with point="given" use calibrate on all rows.')
        classes, n_rows, digest = self.classes, 0, Fingerprint()
        steps: list[Any] = []
        for proba, y in batches:
            matrix, labels, classes = self._rows(to_numpy(proba, "proba"), y, classes)
            costs = CostTable.of(self.loss, len(classes))
            alpha = checked_alpha(as_fraction(self.alpha), costs.bound)
            steps.append(self.growth.steps(matrix, labels, costs, None))
            n_rows += len(matrix)
            digest.update(matrix, labels)
        if not steps:
            raise ValueError("There are no batches to calibrate with.")
        curve = RiskCurve(Steps.joined(steps), unit=costs.unit, n_rows=n_rows, bound=costs.bound)
        warn_if_uncertified(alpha, curve.bound, n_rows)
        threshold = expectation_threshold(curve, alpha)
        return self._calibrated(costs, classes, curve, threshold, digest.hexdigest())

    def predict_set(self, proba: Any, *, alpha: Any = None, point_labels: Any = None) -> IntervalSet:
        """The interval of each row.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, as for :meth:`calibrate`. A tensor on a GPU gives intervals there.
        alpha : number, optional
            Another risk than the one calibrated for, from the same risk curve.
        point_labels : array-like of int, optional
            As for :meth:`calibrate`.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
        >>> controller.predict_set([[0.5, 0.4, 0.1], [0.1, 0.1, 0.8]])
        IntervalSet of 2 rows, 3 classes, mean size 1.5
          0  0..1
          1  2
        """
        threshold = self._threshold(alpha)
        matrix = as_matrix(proba)
        K = matrix.shape[1]
        if len(self.classes_) != K:
            raise ValueError(f"proba has {K} columns, but the calibration had {len(self.classes_)} classes.")
        require_column_order(proba, self.classes_)
        given = self.growth.given_points(point_labels, matrix)
        lower, upper = self.growth.intervals(matrix, self._costs, threshold, given)
        return IntervalSet.of(lower, upper, self.classes_)

    def guarantee(self, alpha: Any = None) -> Guarantee:
        """What holds, in numbers; printed, in words.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> print(RiskController(alpha=0.1).calibrate(proba, [0, 1, 2] * 7).guarantee())
        The expected loss of a new case is at most 0.1,
        if it is exchangeable with the calibration rows
        (n = 21 rows, losses from 0 to B = 1).
        Single labels already achieve it: the risk saturates below 0.1.
        """
        self._require_calibrated()
        return expectation_guarantee(
            self.risk_curve_, as_fraction(self.alpha if alpha is None else alpha, "alpha")
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the calibration to a JSON file, whole or not at all.

        Examples
        --------
        >>> import tempfile
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     controller.save(f"{folder}/grades.json")
        ...     same = RiskController.load(f"{folder}/grades.json")
        >>> same.threshold_ == controller.threshold_
        True
        """
        self._require_calibrated()
        calibration_file.write(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> RiskController:
        """Read a calibration that :meth:`save` wrote; its predictions are the same bit for bit."""
        return calibration_file.read(path)

    def _rows(self, proba: Any, y: Any, classes: Any) -> tuple[Any, Any, Classes]:
        """Checked probabilities, the positions of the labels, and the classes these are positions in."""
        matrix = as_matrix(proba)
        resolved = resolve_classes(classes, y, matrix.shape[1])
        require_column_order(proba, resolved)
        remedy = " Name the labels in order with classes=." if self.classes is None else ""
        labels = beside(matrix, class_indices(y, resolved, len(matrix), remedy=remedy), "y")
        return matrix, labels, resolved

    def _calibrated(
        self,
        costs: CostTable,
        classes: Classes,
        curve: RiskCurve,
        threshold: float,
        digest: str,
        columns: ScoreColumns | None = None,
    ) -> RiskController:
        self._costs = costs
        self.columns_ = columns
        self.classes_ = classes
        self.risk_curve_ = curve
        self.data_blake3_ = digest
        self.threshold_ = threshold
        return self

    def _threshold(self, alpha: Any) -> float:
        self._require_calibrated()
        if alpha is None:
            return self.threshold_
        exact = as_fraction(alpha, "alpha")
        threshold = expectation_threshold(self.risk_curve_, exact)
        warn_if_uncertified(exact, self.risk_curve_.bound, self.risk_curve_.n_rows, stacklevel=4)
        return threshold

    def _require_calibrated(self) -> None:
        if not hasattr(self, "threshold_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("This RiskController is not calibrated yet; call calibrate(proba, y) first.")

    def __repr__(self) -> str:
        text = f"RiskController(loss={self.loss!r}, alpha={self.alpha!r}, growth={self.growth!r})"
        if hasattr(self, "threshold_"):
            text += f": threshold {self.threshold_:.6g} from {self.risk_curve_.n_rows} rows"
        return text

    def _repr_html_(self) -> str:
        return html_repr.controller_html(self)
