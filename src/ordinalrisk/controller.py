"""RiskController: probabilities and labels in, intervals out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from ordinalrisk.calibration.accumulate import Calibration, RowExtras
from ordinalrisk.calibration.combinations import require_parts_suffice, require_theorem
from ordinalrisk.calibration.guarantees import Guarantee
from ordinalrisk.calibration.promises import checked_more_alphas
from ordinalrisk.calibration.row_thresholds import Thresholds
from ordinalrisk.calibration.spec import OPTIONS, Spec
from ordinalrisk.growth.rules import GrowthRule
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.column_roles import ScoreColumns
from ordinalrisk.inputs.device import on_device
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.lazy import is_dask
from ordinalrisk.inputs.numbers import as_fraction, decimal_text
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.losses.kinds import IntervalLoss
from ordinalrisk.prediction import notebook_view
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.prediction.predictor import Predictor
from ordinalrisk.saving import calibration_file

_PARAMETERS = tuple(field.name for field in fields(Spec))


class RiskController:
    r"""Label intervals whose expected loss is at most ``alpha``.

    Calibrated on rows with known labels, it turns the class probabilities of new rows into intervals
    ``[l, u]`` with

    .. math:: E[\,G(y, [l, u])\,] \le \alpha

    for rows exchangeable with the calibration rows, whatever the model and the distribution (paper, Eq. 2
    and Theorem 1). With losses :math:`L_i(\tau)` of the ``n`` calibration rows, at most ``B`` each, the
    threshold is

    .. math:: \hat\tau = \sup \{ \tau : \sum_{i=1}^n L_i(\tau) \le (n + 1)\,\alpha - B \},

    found exactly (the paper's Eq. 3, which Algorithm 2 searches for).

    Parameters
    ----------
    loss : IntervalLoss, str or table
        What a miss costs: a :class:`WeightedLoss`, a :class:`DivergenceLoss`, a :class:`CostTableLoss` or its
        table, ``"coverage"`` or ``"divergence"``.
    alpha : number or mapping
        The largest expected loss, between 0 and the loss's largest value. It means the decimals that are
        written: 0.29 is 29/100. A mapping gives each class its own, which implies ``condition_on="label"``.
    growth : GrowthRule or str
        How intervals grow: ``"frontier"``, ``"adaptive"``, ``"paper"`` or ``"rps"``. If the probabilities are
        right, ``"frontier"`` has the smallest expected size of all intervals that hold the point label, at
        the risks that it attains.
    classes : sequence, optional
        The labels in order. By default those of an ordered categorical ``y``, else ``0 .. K-1``.
    delta : number, optional
        Keep the expected loss within ``alpha`` with probability ``1 - delta`` over the draw of the
        calibration rows, not just on average over them. The rows must be independent draws.
    bound : {"auto", "binomial", "hoeffding_bentkus", "betting", "dkw"}
        The bound behind ``delta``: by default the tightest that is valid for the loss, at one ``alpha`` that
        was chosen without these rows. ``"dkw"`` is wider and holds for every ``alpha`` at once.
    condition_on : {"label"}, optional
        Keep the expected loss within ``alpha`` for each true class, not just on average over them. This
        also holds if the shares of the classes change.
    randomize : bool
        Let a coin decide about labels whose level is the threshold itself, so that ties do not make sets
        larger than needed: the expected loss lies within ``B / (n + 1)`` of ``alpha``, if the single labels
        of ``n + 1`` rows always lose more than ``(n + 1) alpha - B`` (the paper's Remark 1 names the idea).
    random_state : int, optional
        The seed of the shuffle that the betting bound needs. By default it is drawn at random, and saved with
        the calibration. The promise is over the rows and a seed drawn at random. With a fixed seed it holds
        if the rows come in random order; on sorted files one seed can fail far more often than ``delta``.
        Whoever tries several seeds and keeps the best threshold has no promise.

    Attributes
    ----------
    threshold_ : float or dict
        The exact threshold: a label belongs to a set if its level is at least this. By group, by class, or by
        both where each has its own; for a row of mean weight where rows have weights.
    risk_curve_ : RiskCurve or dict
        The total calibration loss at every threshold; a dict as for ``threshold_``.
    classes_ : array
        The labels in order.
    n_rows_ : int
        The number of calibration rows.
    data_blake3_ : str
        A fingerprint of the calibration data.
    columns_ : ScoreColumns or None
        Which columns the calibration data had, if they came from a file.
    shuffle_seed_ : int or None
        The seed of the shuffle, if the bound needed one. The same rows in the same order with this
        ``random_state`` give the same thresholds.
    calibration_ : Calibration
        All that predictions need.

    Notes
    -----
    Options combine where a theorem covers both: ``delta`` with groups, clusters and ``condition_on``;
    ``condition_on`` with these; ``randomize`` with groups and clusters; row weights with groups. For
    ``delta`` in a population that has shifted, see :func:`ordinalrisk.shift.accepted_rows`.

    The expected loss is at least ``alpha - (M + 1) B / (n + 1)`` if never more than ``M`` of ``n + 1`` rows
    step at one level and the single labels of ``n + 1`` rows always lose more than ``(n + 1) alpha - B``
    (paper, Theorem 4). The second condition can't be read off a calibration.

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Eq. 2 and 3, Theorems 1 and 4,
    Algorithm 2.

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

    loss: IntervalLoss
    alpha: Any
    growth: GrowthRule
    classes: Any
    delta: Any
    bound: str
    condition_on: str | None
    randomize: bool
    random_state: int | None
    threshold_: Any
    risk_curve_: Any
    classes_: Classes
    n_rows_: int
    data_blake3_: str
    columns_: ScoreColumns | None
    shuffle_seed_: int | None
    calibration_: Calibration

    def __init__(
        self,
        loss: Any = "coverage",
        alpha: Any = 0.1,
        growth: Any = "frontier",
        classes: Any = None,
        *,
        delta: Any = None,
        bound: str = "auto",
        condition_on: str | None = None,
        randomize: bool = False,
        random_state: Any = None,
    ) -> None:
        spec = Spec(loss, alpha, growth, classes, delta, bound, condition_on, randomize, random_state)
        for name in _PARAMETERS:
            setattr(self, name, getattr(spec, name))
        if delta is not None and (wrong := as_fraction(delta)) > Fraction(1, 2):
            rest = decimal_text(1 - wrong)
            warnings.warn(
                f"delta={delta} keeps alpha with probability {rest} only; for a confidence of "
                f"{decimal_text(wrong)} write delta={rest}.",
                stacklevel=2,
            )

    @classmethod
    def of(cls, spec: Spec, calibration: Calibration) -> RiskController:
        """A controller with a calibration that was made for ``spec``."""
        controller = cls.__new__(cls)
        return controller._adopted(spec, calibration, spec.thresholds(calibration))

    @property
    def spec(self) -> Spec:
        """The parameters, checked: what a calibration is made for."""
        kept: Spec | None = self.__dict__.get("_spec")
        return kept or Spec(**{name: getattr(self, name) for name in _PARAMETERS})

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _PARAMETERS and hasattr(self, "threshold_"):
            raise AttributeError(
                f"{name} can't change after the calibration it was made for; make a new RiskController"
                f"{', or pass alpha to predict_set' if name == 'alpha' else ''}."
            )
        super().__setattr__(name, value)

    def calibrate(
        self,
        proba: Any,
        y: Any,
        *,
        groups: Any = None,
        clusters: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        point_labels: Any = None,
        more_alphas: Sequence[Any] = (),
    ) -> RiskController:
        """Find the exact threshold on rows with known labels (paper, Eq. 3; in place of Algorithm 2).

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, columns in label order: numpy, nested lists, pandas, polars, pyarrow, torch.
            A tensor on a GPU is calibrated with on the GPU, a dask array or frame where its partitions are;
            then ``y`` and ``groups`` are dask collections too, cut in the same places.
        y : array-like of shape (n,)
            The true labels. They belong to the rows of ``proba`` by position, and so does all that has a
            value for each row. Row indexes of pandas or dask must agree where two inputs have one: the same
            labels in another order are an error, other labels a warning.
        groups : array-like of shape (n,), optional
            The group of each row. Each group gets its own threshold, and its own guarantee.
        clusters : array-like of shape (n,), optional
            Whom each row comes from. Rows of one patient are not independent: the clusters are what is
            exchangeable, and the guarantee is for the mean loss of a new cluster.
        sample_weight : array-like of shape (n,), optional
            Likelihood ratios of a new population to that of these rows, up to a factor, if covariates have
            shifted; see :func:`ordinalrisk.shift.covariate_ratios`. They are taken as the binary numbers they
            are, not as decimals.
        class_weight : sequence or mapping, optional
            Ratios of the new shares of the classes to those among these rows, if only the shares have
            shifted; see :func:`ordinalrisk.shift.label_ratios`.
        point_labels : array-like of int, optional
            The label index each interval grows from, for a growth rule with ``point="given"``.
        more_alphas : sequence of number
            Other risks at which thresholds will be asked for. Only dask collections need to be told: of these
            the risk curve is kept around the thresholds alone.

        Returns
        -------
        RiskController
            Itself, calibrated.

        Warns
        -----
        UserWarning
            Where there are too few rows for ``alpha``: sets then hold all labels, and it says how many rows
            are needed.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> RiskController(alpha=0.1).calibrate(proba, [1, 1, 2] + [0, 1, 2] * 6)
        RiskController(loss=WeightedLoss(), alpha=0.1, growth=FrontierGrowth(point='mode')): threshold inf ...
        """
        spec, extras = self.spec, RowExtras(groups, clusters, sample_weight)
        require_theorem(
            [*spec.options, *extras.used, *(["class_weight"] if class_weight is not None else [])]
        )
        if is_dask(proba):
            from ordinalrisk.execution.dask import collections

            require_parts_suffice(extras.used)
            return self._finished(
                spec,
                collections.calibration_of(
                    spec,
                    proba,
                    y,
                    groups=groups,
                    class_weight=class_weight,
                    point_labels=point_labels,
                    more_alphas=more_alphas,
                ),
            )
        require_same_rows(
            proba=proba,
            y=y,
            groups=groups,
            clusters=clusters,
            sample_weight=sample_weight,
            point_labels=point_labels,
        )
        matrix, labels, classes = spec.checked_rows(proba, y, spec.classes)
        calibrator = spec.calibrator(classes, class_weight=class_weight)
        checked_more_alphas(more_alphas, spec.costs(len(classes)))
        given = spec.growth.given_points(point_labels, matrix)
        calibrator.add(matrix, labels, replace(extras, point_labels=given))
        return self._finished(spec, calibrator.finish())

    def calibrate_batches(self, batches: Iterable[tuple[Any, Any]]) -> RiskController:
        """Find the exact threshold on rows that come in batches, of which only the losses' steps are kept.

        The result is that of :meth:`calibrate` on all rows at once, bit for bit; with the betting bound, if
        both have the same ``random_state``.

        Parameters
        ----------
        batches : iterable of (proba, y)
            Each as for :meth:`calibrate`, on the host, without groups, clusters or weights. The growth rule
            must find its own point labels.

        Returns
        -------
        RiskController
            Itself, calibrated.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> batches = [(proba, [1, 2, 2] + [0, 1, 2] * 6), (proba, [0, 1, 2] * 7)]
        >>> RiskController(alpha=0.05).calibrate_batches(batches)
        RiskController(loss=WeightedLoss(), ...): threshold 0.3 from 42 rows
        """
        spec = self.spec
        if spec.growth.point == "given":
            raise ValueError('Batches bring no point labels; with point="given" use calibrate on all rows.')
        classes, calibrator = spec.classes, None
        for proba, y in _pairs(batches):
            require_same_rows(proba=proba, y=y)
            host = to_numpy(proba, "proba") if on_device(proba) else proba  # which refuses it
            matrix, labels, classes = spec.checked_rows(host, y, classes)
            if calibrator is None:
                calibrator = spec.calibrator(classes)
            calibrator.add(matrix, labels)
        if calibrator is None:
            raise ValueError("There are no batches to calibrate with.")
        return self._finished(spec, calibrator.finish())

    def _finished(self, spec: Spec, calibration: Calibration) -> RiskController:
        """Take it over, and say first where there are too few rows: a warning may be an error."""
        thresholds = spec.thresholds(calibration)
        _warn_if_uncertified(spec, calibration, thresholds, stacklevel=4)
        return self._adopted(spec, calibration, thresholds)

    def _adopted(self, spec: Spec, calibration: Calibration, thresholds: Thresholds) -> RiskController:
        strata = calibration.strata
        self.__dict__.update({name: getattr(spec, name) for name in _PARAMETERS})  # as they were checked
        self._spec, self.calibration_ = spec, calibration
        self._predictor = Predictor(spec.growth, calibration, thresholds)
        self.columns_ = calibration.columns
        self.shuffle_seed_ = calibration.shuffle_seed
        self.classes_ = calibration.classes
        self.n_rows_ = strata.n_rows
        self.risk_curve_ = strata.named([part.curve for part in strata.parts], calibration.classes)
        self.data_blake3_ = calibration.data_blake3
        self.threshold_ = strata.named(thresholds.values, calibration.classes)
        return self

    def predict_set(
        self,
        proba: Any,
        *,
        alpha: Any = None,
        groups: Any = None,
        unseen_groups: str = "error",
        sample_weight: Any = None,
        seed: Any = None,
        point_labels: Any = None,
    ) -> IntervalSet:
        """The interval of each row.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, as for :meth:`calibrate`. A tensor on a GPU gives intervals there, a dask
            collection intervals that are computed when someone asks.
        alpha : number, optional
            Another risk than the one calibrated for, from the same risk curve. It must not be chosen by a
            look at the calibration rows. With ``delta`` each ``alpha`` has this confidence by itself; with
            ``bound="dkw"`` all of them together, also one that was chosen by these rows.
        groups : array-like of shape (n,), optional
            The group of each row, if the calibration has groups.
        unseen_groups : {"error", "full"}
            What rows of a group get that has no calibration rows: an error, or all labels.
        sample_weight : array-like of shape (n,), optional
            The likelihood ratio of each row, on the scale of those that were calibrated with. Each row then
            has its own exact threshold.
        seed : int or numpy Generator, optional
            For randomized sets: equal seeds give equal sets. A number is for all rows at once: the coins of
            every call with it are the same. For rows that come in parts, pass one Generator to each call.
        point_labels : array-like of int, optional
            As for :meth:`calibrate`.

        Returns
        -------
        IntervalSet
            The labels whose level is at least the threshold.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
        >>> controller.predict_set([[0.5, 0.4, 0.1], [0.1, 0.1, 0.8]])
        IntervalSet of 2 rows, 3 classes, mean size 1.5
          0  0..1
          1  2
        """
        predictor = self._predictor_at(alpha)
        if alpha is not None:
            _warn_if_uncertified(self._spec, self.calibration_, predictor.thresholds, stacklevel=3)
        predict: Any = predictor
        if is_dask(proba):
            from ordinalrisk.execution.dask.collections import predicted

            predict = partial(predicted, predictor)
        sets: IntervalSet = predict(
            proba,
            groups=groups,
            unseen_groups=unseen_groups,
            sample_weight=sample_weight,
            seed=seed,
            point_labels=point_labels,
        )
        return sets

    def guarantee(self, alpha: Any = None) -> Guarantee:
        r"""What holds, in numbers; printed, in words (paper, Theorem 1).

        Parameters
        ----------
        alpha : number, optional
            Another risk than the one calibrated for.

        Returns
        -------
        Guarantee
            See :class:`~ordinalrisk.calibration.guarantees.Guarantee`.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> print(RiskController(alpha=0.1).calibrate(proba, [0, 1, 2] * 7).guarantee())
        The expected loss of a new row is at most 0.1, if it is exchangeable with the
        calibration rows (n = 21 rows, losses from 0 to B = 1).
        Every set is a single label; on the calibration rows their mean loss was 0.
        """
        thresholds = self._predictor_at(alpha).thresholds
        return self._spec.guarantee(self.calibration_, thresholds)

    def threshold_at(self, alpha: Any) -> Any:
        """What ``threshold_`` would be at another risk.

        Parameters
        ----------
        alpha : number or mapping
            As for the class.

        Returns
        -------
        float or dict
            As ``threshold_``.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
        >>> controller.threshold_at(0.2)
        inf
        """
        values = self._predictor_at(alpha).thresholds.values
        return self.calibration_.strata.named(values, self.classes_)

    @property
    def thresholds_(self) -> list[float]:
        """The threshold of each stratum, in the order of groups and classes."""
        return self._predictor_at(None).thresholds.values

    def save(self, path: str | PathLike[str], *, key: str | PathLike[str] | None = None) -> None:
        """Write the calibration to a JSON file, whole or not at all.

        The file has a digest of every field, which finds accidents. The digests have no key: anybody can edit
        the file and compute them again. Sign the file where somebody else could replace it.

        Parameters
        ----------
        path : path
            Of the file. One that is there is replaced.
        key : path, optional
            An Ed25519 private key in PEM. The signature goes to the same name with ``.sig`` after it.

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
        calibration_file.write(self._spec, self.calibration_, path, key)

    @classmethod
    def load(cls, path: str | PathLike[str], *, key: str | PathLike[str] | None = None) -> RiskController:
        """Read a calibration that :meth:`save` wrote; its predictions are the same bit for bit.

        Without a key, a file that was forged with care is loaded like any other.

        Parameters
        ----------
        path : path
            Of the file.
        key : path, optional
            The Ed25519 public key in PEM. The signature is verified before anything in the file is used.

        Returns
        -------
        RiskController
            Calibrated.

        Raises
        ------
        ValueError
            If the file was cut, edited or written by another schema; it names the field. With a key, if the
            signature is missing or does not match.

        Warns
        -----
        UserWarning
            Where an earlier version made the calibration, and its promise is weaker than it said.

        Examples
        --------
        >>> import tempfile
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     controller.save(f"{folder}/grades.json")
        ...     same = RiskController.load(f"{folder}/grades.json")
        >>> same.predict_set(proba) == controller.predict_set(proba)
        True
        """
        return RiskController.of(*calibration_file.read(path, key))

    def _predictor_at(self, alpha: Any) -> Predictor:
        """What predicts at a risk, by default the one calibrated for."""
        self._require_calibrated()
        if alpha is None:
            return self._predictor
        return replace(self._predictor, thresholds=self._spec.thresholds(self.calibration_, alpha))

    def _require_calibrated(self) -> None:
        if not hasattr(self, "threshold_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("This RiskController is not calibrated yet; call calibrate(proba, y) first.")

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name in OPTIONS if (value := getattr(self, name)))
        text = f"RiskController(loss={self.loss!r}, alpha={self.alpha!r}, growth={self.growth!r}{options})"
        if hasattr(self, "threshold_"):
            found = self.threshold_
            count = f"{len(found)} thresholds" if isinstance(found, dict) else f"threshold {found:.6g}"
            text += f": {count} from {self.n_rows_} rows"
        return text

    def _repr_html_(self) -> str:
        return notebook_view.controller_html(self)


def _warn_if_uncertified(
    spec: Spec, calibration: Calibration, thresholds: Thresholds, stacklevel: int
) -> None:
    if -math.inf in thresholds.values or thresholds.too_heavy_classes:  # else the curve need not be sorted
        warnings.warn(str(spec.guarantee(calibration, thresholds).warning), stacklevel=stacklevel)


def _pairs(batches: Any) -> Iterator[tuple[Any, Any]]:
    if not isinstance(batches, Iterable) or isinstance(batches, str | bytes | Mapping | np.ndarray):
        raise ValueError(f"batches must be pairs (proba, y); got a {type(batches).__name__}.")
    for number, batch in enumerate(batches):
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise ValueError(f"Batch {number} must be a pair (proba, y); got a {type(batch).__name__}.")
        yield batch[0], batch[1]
