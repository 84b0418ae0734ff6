"""TriageController: accept the clear rows, refer the others."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.calibration.labelled_rows import labelled_rows
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.calibration.warning_category import TooFewRowsWarning
from ordinalrisk.display.tables import ColumnsByName, Table
from ordinalrisk.display.text_table import listed
from ordinalrisk.growth.rules import AdaptiveGrowth
from ordinalrisk.inputs.arrays import is_dask
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.caller import level_of_caller
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import Number, as_fraction
from ordinalrisk.inputs.row_index import require_same_rows, row_index
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.losses.exact_numbers import items
from ordinalrisk.losses.kinds import IntervalLoss
from ordinalrisk.prediction.predictor import require_columns
from ordinalrisk.recalibration.applying import recalibrated
from ordinalrisk.triage.guarantee import Certified, TriageGuarantee
from ordinalrisk.triage.model_risk import labels_and_risks
from ordinalrisk.triage.scored_rows import RankedRows, ScoredRows
from ordinalrisk.triage.triaged_rows import TriagedRows

_PARAMETERS = ("loss", "alpha", "delta", "classes", "point", "random_state")
_ALPHAS = ("0.005", "0.01", "0.02", "0.03", "0.05", "0.075", "0.1", "0.15", "0.2", "0.3", "0.4", "0.5")
UNSEEN = ("error", "refer")


@dataclass(frozen=True)
class ShareCurve(Table):
    """The share of rows that is accepted at each ``alpha``.

    Made by :meth:`~ordinalrisk.TriageController.share_curve`.

    Attributes
    ----------
    guarantees : tuple of TriageGuarantee
        The guarantee of each ``alpha`` by itself.

    Examples
    --------
    >>> import ordinalrisk as orisk
    >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
    >>> triage = orisk.TriageController(alpha=0.05, delta=0.05).calibrate(proba, y)
    >>> triage.share_curve([0.05, 0.4]).to_pandas()[["alpha", "threshold", "accepted", "mean_loss"]]
       alpha  threshold  accepted  mean_loss
    0   0.05        0.6  0.666667   0.000000
    1   0.40        inf  1.000000   0.333333
    """

    guarantees: tuple[TriageGuarantee, ...]

    def _columns(self) -> ColumnsByName:
        each = [guarantee._columns() for guarantee in self.guarantees]
        return {name: [value for columns in each for value in columns[name]] for name in each[0]}


class TriageController:
    r"""Accept the rows whose label is safe enough, and refer the others to a person.

    A row is accepted if the model's own risk of its label is below a threshold. The controller finds the
    largest threshold with

    .. math:: P\big( E[\,G(y, m(x)) \mid \text{accepted, calibration}\,] \le \alpha \big) \ge 1 - \delta

    for any model, where ``m(x)`` is the label that the model gives and the probability is over the draw of
    the calibration rows. A guarantee for all rows, such as that of :class:`RiskController`, can hide that the
    answers that look certain, such as single labels, are often wrong; this one is about these answers alone.

    Parameters
    ----------
    loss : IntervalLoss, str or table
        What a wrong label costs, as for :class:`RiskController`. With ``"coverage"``, the mean loss of
        accepted rows is their share of wrong labels.
    alpha : number
        The largest expected loss of an accepted row, between 0 and the largest value of the loss. Decimals
        are exact: 0.29 is 29/100.
    delta : number
        The probability, over the draw of the calibration rows, that the expected loss is above ``alpha``.
    classes : sequence, optional
        The labels in order. By default, the categories of an ordered categorical ``y``, else ``0 .. K-1``.
    point : {"bayes", "mode", "median", "given"}
        The label of a row: the one of least expected loss, the most probable one (weighted by class for a
        weighted loss), the median, or one that you give for each row.
    random_state : int, optional
        The seed of the order of rows with equal scores. By default, it is drawn at random and saved. A fixed
        seed needs rows in random order.

    Attributes
    ----------
    threshold_ : float or dict
        Rows are accepted if the model's own risk of their label is below it: infinite if all rows are, minus
        infinity if none is. With groups, the threshold of each.
    classes_ : array
        The labels in order.
    n_rows_ : int
        The number of calibration rows.
    data_blake3_ : str
        A fingerprint of the calibration data.
    columns_ : ScoreColumns or None
        The columns of the calibration data, if the data came from a file.
    shuffle_seed_ : int or None
        The seed of the order of equal scores; None if no two rows have equal scores.

    Notes
    -----
    The rows must be independent draws, so there is no ``clusters``: if patients have several rows, take one
    row of each at random.

    Thresholds are tested one after the other, the strictest first, up to the first test that does not reject
    a risk of ``alpha`` or more. Several tests need no correction, but the first ones must have enough rows.
    So there are a few starts, each with an equal part of ``delta``: the surest ``k`` rows, ``3k``, ``9k`` and
    so on, where ``k`` is the fewest rows that can certify ``alpha``. The tests are exact binomial if every
    wrong label costs the same, else bets. :doc:`/maintaining/promises` has the proof.

    Each ``alpha`` is certified by itself: choose it without the calibration rows. The statement is about
    accepted rows together, not about each class or group among them; ``groups`` gives each group its own.

    References
    ----------
    Angelopoulos, Bates, Candès, Jordan, Lei. Learn then Test: Calibrating Predictive Algorithms to Achieve
    Risk Control. 2021. Geifman, El-Yaniv. Selective Classification for Deep Neural Networks. NeurIPS 2017.
    The paper has no such method.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([0.1, 0.2, 0.4, 0.2, 0.1], size=2000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> triage = TriageController(alpha=0.05, delta=0.05).calibrate(proba[:1000], y[:1000])
    >>> triage.decide(proba[1000:])
    TriagedRows of 1,000 rows, 5 classes: ... accepted, ... referred
    """

    def __init__(
        self,
        loss: Any = "coverage",
        alpha: Any = 0.1,
        delta: Any = 0.05,
        classes: Any = None,
        *,
        point: str = "bayes",
        random_state: Any = None,
    ) -> None:
        if isinstance(alpha, Mapping):
            raise ValueError("alpha must be one number; the true label of an accepted row is not known.")
        if delta is None:
            raise ValueError("delta must be a number, such as 0.05; triage has no guarantee without it.")
        spec = Spec(loss, alpha, AdaptiveGrowth(point), classes, delta=delta, random_state=random_state)
        self.loss: IntervalLoss = spec.loss
        self.alpha: Number = spec.alpha
        self.delta: Number = spec.delta
        self.classes, self.point, self.random_state = spec.classes, point, spec.random_state
        self._spec = spec
        spec.warn_if_unlikely(stacklevel=2)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _PARAMETERS and name in self.__dict__:
            raise AttributeError(f"{name} can't change; make a new TriageController.")
        super().__setattr__(name, value)

    def calibrate(
        self, proba: Any, y: Any, *, groups: Any = None, point_labels: Any = None
    ) -> TriageController:
        """Find the largest certified threshold on rows with known labels.

        Use rows that the model was not trained on.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, columns in label order, as for :meth:`RiskController.calibrate`.
        y : array-like of shape (n,)
            The true labels.
        groups : array-like of shape (n,), optional
            The group of each row. Each group gets a threshold, and the guarantee by itself.
        point_labels : array-like of int, optional
            The position of the label of each row in the classes, with ``point="given"``.

        Returns
        -------
        TriageController
            The same controller, calibrated.

        Examples
        --------
        >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
        >>> TriageController(alpha=0.05, delta=0.05).calibrate(proba, y)
        TriageController(loss=WeightedLoss(), alpha=0.05, delta=0.05): 66.7 % of 300 rows accepted
        """
        _require_no_dask(proba)
        batch, classes = labelled_rows(
            self._spec, self._spec.classes, proba, y, groups=groups, point_labels=point_labels
        )
        rows = self.empty_rows(classes)
        rows.add(batch)
        return self.use_rows(rows, classes, stacklevel=1 + level_of_caller())

    def uncalibrated(self) -> TriageController:
        """Return a new controller with the same parameters."""
        return TriageController(**{name: getattr(self, name) for name in _PARAMETERS})

    def empty_rows(self, classes: Classes) -> ScoredRows:
        """Return a summary to which checked batches of calibration rows can be added."""
        self._spec.require_alpha(classes)
        return ScoredRows(self._growth, self._spec.costs(len(classes)))

    def use_rows(
        self, rows: ScoredRows, classes: Classes, *, columns: ScoreColumns | None = None, stacklevel: int = 2
    ) -> TriageController:
        """Calibrate with a summary of rows."""
        ranked, seed = rows.ranked(self.random_state)
        parts = [part.certified(as_fraction(self.alpha), as_fraction(self.delta)) for part in ranked]
        found = self._guarantee_of(self.alpha, parts, classes)
        if (warning := found.warning) is not None:
            warnings.warn(warning, TooFewRowsWarning, stacklevel=stacklevel)
        self._use(found.parts, classes, rows.data_blake3, seed, columns)
        self._ranked: Sequence[RankedRows] | None = ranked
        return self

    def _use(
        self,
        parts: Sequence[Certified],
        classes: Classes,
        data_blake3: str,
        seed: int | None,
        columns: ScoreColumns | None,
    ) -> None:
        self._parts, self.classes_ = tuple(parts), classes
        self.data_blake3_, self.shuffle_seed_, self.columns_ = data_blake3, seed, columns
        self.n_rows_ = sum(part.n_rows for part in parts)
        self._ranked = None
        thresholds = {part.group: part.threshold for part in parts}
        self.threshold_ = thresholds if self.groups_ else parts[0].threshold

    @property
    def groups_(self) -> tuple[Any, ...] | None:
        """The groups of the calibration; None if there are none."""
        groups = tuple(part.group for part in self._calibrated())
        return None if groups == (None,) else groups

    @property
    def _growth(self) -> AdaptiveGrowth:
        return AdaptiveGrowth(self.point)

    def decide(
        self, proba: Any, *, groups: Any = None, unseen_groups: str = "error", point_labels: Any = None
    ) -> TriagedRows:
        """Accept or refer each row.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, as for :meth:`calibrate`.
        groups : array-like of shape (n,), optional
            The group of each row, if the calibration has groups.
        unseen_groups : {"error", "refer"}
            What to do with groups that had no calibration rows: raise an error, or refer their rows.
        point_labels : array-like of int, optional
            As for :meth:`calibrate`.

        Returns
        -------
        TriagedRows
            Which rows are accepted, and with which label.

        Examples
        --------
        >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
        >>> triage = TriageController(alpha=0.05, delta=0.05).calibrate(proba, y)
        >>> triage.decide([[0.8, 0.1, 0.1], [0.4, 0.3, 0.3]]).accepted
        array([ True, False])
        """
        self._calibrated()
        _require_no_dask(proba)
        require_same_rows(proba=proba, groups=groups, point_labels=point_labels)
        matrix = recalibrated(proba, None)
        require_columns(proba, matrix.shape[1], self.classes_)
        points = self._growth.given_points(point_labels, matrix)
        return self._decided(matrix, groups, unseen_groups, points, row_index(proba))

    def decide_batch(self, batch: Batch, unseen_groups: str = "error") -> TriagedRows:
        """Accept or refer each row of a checked batch."""
        return self._decided(batch.proba, batch.groups, unseen_groups, batch.point_labels)

    def _decided(
        self, matrix: Any, groups: Any, unseen_groups: str, points: Any, index: Any = None
    ) -> TriagedRows:
        labels, risks = labels_and_risks(self._growth, matrix, self._spec.costs(len(self.classes_)), points)
        accepted = risks < self._row_thresholds(len(matrix), groups, unseen_groups)
        return TriagedRows(accepted, labels, risks, self.classes_, index)

    def _row_thresholds(self, n_rows: int, groups: Any, unseen_groups: str) -> NDArray[np.float64]:
        if unseen_groups not in UNSEEN:
            raise ValueError(f"unseen_groups must be one of {list(UNSEEN)}; got {unseen_groups!r}.")
        known = self.groups_
        if (known is None) != (groups is None):
            raise ValueError(
                "groups was given, but the calibration was not made with groups; calibrate with them first."
                if known is None
                else "The calibration was made with groups, so decisions need groups= too."
            )
        thresholds = np.array([*(part.threshold for part in self._parts), -math.inf])
        if known is None:
            return thresholds[:1]
        numbers, unseen = RowNames("groups", known).looked_up(groups, n_rows)
        if unseen and unseen_groups == "error":
            row = int((numbers < 0).argmax())
            raise ValueError(
                f"groups[{row}] is {unseen[0]!r}, a group without calibration rows "
                f"({listed(map(repr, known))} have some); calibrate with it, or pass "
                "`unseen_groups='refer'` to refer such rows."
            )
        return thresholds[numbers]  # the last one is for unknown groups

    def guarantee(self) -> TriageGuarantee:
        """Return what is guaranteed for accepted rows, in numbers; ``print`` gives it in words.

        Returns
        -------
        TriageGuarantee
            See :class:`~ordinalrisk.triage.guarantee.TriageGuarantee`.

        Examples
        --------
        >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
        >>> triage = TriageController(alpha=0.05, delta=0.05).calibrate(proba, y)
        >>> print(triage.guarantee().parts[0].share)
        0.6667 (0.5883 to 0.7451)
        """
        return self._guarantee_of(self.alpha, self._calibrated(), self.classes_)

    def _guarantee_of(self, alpha: Any, parts: Sequence[Certified], classes: Classes) -> TriageGuarantee:
        costs = self._spec.costs(len(classes))
        tests = "exact binomial" if costs.two_valued() else "betting"
        return TriageGuarantee(as_fraction(alpha), as_fraction(self.delta), costs.bound, tests, tuple(parts))

    def share_curve(self, alphas: Sequence[Any] | None = None) -> ShareCurve:
        """Return the share of rows that is accepted at several ``alpha``: what a stricter one would cost.

        Each ``alpha`` is certified by itself. If you choose ``alpha`` by looking at this curve, calibrate
        again on other rows.

        Parameters
        ----------
        alphas : sequence of numbers, optional
            By default, shares of the largest loss from 0.005 to 0.5.

        Returns
        -------
        ShareCurve
            A table with a row for each ``alpha`` (and group). It needs the calibration rows, which a file
            does not have.

        Examples
        --------
        >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
        >>> triage = TriageController(alpha=0.05, delta=0.05).calibrate(proba, y)
        >>> triage.share_curve([0.01, 0.05]).to_pandas().accepted.tolist()
        [0.0, 0.6666666666666666]
        """
        self._calibrated()
        if self._ranked is None:
            raise ValueError(
                "The file of a triage does not have the scores of the calibration rows, which share_curve "
                "needs; calibrate again."
            )
        costs = self._spec.costs(len(self.classes_))
        given = (
            [as_fraction(each) * costs.bound for each in _ALPHAS]
            if alphas is None
            else items(alphas, "alphas")
        )
        if not given:
            raise ValueError("alphas must have at least one number.")
        risks = [self._spec.checked_alpha(as_fraction(each, "alpha"), costs) for each in given]
        delta = as_fraction(self.delta)
        return ShareCurve(
            tuple(
                self._guarantee_of(
                    risk, [part.certified(risk, delta) for part in self._ranked], self.classes_
                )
                for risk in risks
            )
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the thresholds and what they are for to a JSON file, whole or not at all.

        Parameters
        ----------
        path : path
            The file to write; an existing file is replaced.

        Examples
        --------
        >>> import tempfile
        >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
        >>> triage = TriageController(alpha=0.05, delta=0.05).calibrate(proba, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     triage.save(f"{folder}/triage.json")
        ...     same = TriageController.load(f"{folder}/triage.json")
        >>> same.decide(proba) == triage.decide(proba)
        True
        """
        from ordinalrisk.triage.saved_triage import write

        parts = self._calibrated()
        evidence = {"data_blake3": self.data_blake3_, "shuffle_seed": self.shuffle_seed_}
        write(path, self._spec, self.classes_, parts, self.columns_, **evidence)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> TriageController:
        """Load what :meth:`save` wrote; its decisions are identical bit for bit.

        Parameters
        ----------
        path : path
            The file to read.

        Returns
        -------
        TriageController
            The calibrated controller, without :meth:`share_curve`.

        Raises
        ------
        ValueError
            If the file was cut, edited or written in another schema; the message names the field.

        Examples
        --------
        >>> import tempfile
        >>> proba, y = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]] * 100, [0, 1, 0] * 100
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     TriageController(alpha=0.05, delta=0.05).calibrate(proba, y).save(f"{folder}/triage.json")
        ...     TriageController.load(f"{folder}/triage.json")
        TriageController(loss=WeightedLoss(), alpha=0.05, delta=0.05): 66.7 % of 300 rows accepted
        """
        from ordinalrisk.triage.saved_triage import read

        parameters, found = read(path)
        controller = cls(**parameters)
        controller._use(**found)
        return controller

    def _calibrated(self) -> tuple[Certified, ...]:
        if "_parts" not in self.__dict__:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                "This TriageController is not calibrated yet; call calibrate(proba, y) first."
            )
        return self._parts

    def __repr__(self) -> str:
        text = f"TriageController(loss={self.loss!r}, alpha={self.alpha!r}, delta={self.delta!r}"
        text += ")" if self.point == "bayes" else f", point={self.point!r})"
        if "_parts" in self.__dict__:
            share = sum(part.n_accepted for part in self._parts) / self.n_rows_
            groups = f" in {len(self._parts)} groups" if self.groups_ else ""
            text += f": {100 * share:.1f} % of {self.n_rows_} rows accepted{groups}"
        return text


def _require_no_dask(proba: Any) -> None:
    if is_dask(proba):
        raise ValueError("triage takes no dask collections; call proba.compute() first.")
