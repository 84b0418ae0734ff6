"""RiskController: calibrate on rows with known labels, then predict a set of labels for each new row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from os import PathLike
from typing import Any

from ordinalrisk.calibration.calibration import Calibration
from ordinalrisk.calibration.combinations import require_parts_suffice, require_theorem
from ordinalrisk.calibration.guarantees import Guarantee, guarantee_of, warn_if_uncertified
from ordinalrisk.calibration.labelled_rows import labelled_batches, labelled_rows
from ordinalrisk.calibration.row_thresholds import Thresholds
from ordinalrisk.calibration.spec import OPTIONS, Spec
from ordinalrisk.checks.findings import warn_of_findings
from ordinalrisk.execution.calibrate import calibrate
from ordinalrisk.execution.fold import InMemory
from ordinalrisk.inputs.arrays import is_dask
from ordinalrisk.inputs.caller import level_of_caller
from ordinalrisk.inputs.scattered_rows import ScatteredRows
from ordinalrisk.prediction import notebook_view
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.prediction.predictor import Predictor

_PARAMETERS = tuple(field.name for field in fields(Spec))
_CALL_INSTEAD = {
    "fit": "it trains no model. Call calibrate(proba, y) with class probabilities of rows that the model was "
    "not trained on; OrdinalRiskClassifier has fit(X, y).",
    "predict": "call predict_set(proba); the model that made the probabilities predicts single labels.",
    "predict_proba": "pass the probabilities that your model predicts to calibrate and predict_set.",
}
"""What to do instead of calling methods that a controller does not have."""


class RiskController:
    r"""Prediction sets with an expected loss of at most ``alpha``.

    It turns the class probabilities of new rows into intervals of labels ``[l, u]`` with

    .. math:: E[\,G(y, [l, u])\,] \le \alpha

    if new rows are exchangeable with the calibration rows, whatever the model (paper, Eq. 2 and Theorem 1).
    With losses :math:`L_i(\tau)` of the ``n`` calibration rows, at most ``B`` each, the threshold is

    .. math:: \hat\tau = \sup \{ \tau : \sum_{i=1}^n L_i(\tau) \le (n + 1)\,\alpha - B \},

    found exactly (the paper's Eq. 3, which Algorithm 2 searches for).

    Parameters
    ----------
    loss : IntervalLoss, str or table
        What a miss costs: a :class:`WeightedLoss`, a :class:`DivergenceLoss`, a :class:`CostTableLoss` or its
        table, ``"coverage"`` or ``"divergence"``.
    alpha : number or mapping
        The largest expected loss, between 0 and the largest value of the loss. Decimals are exact: 0.29 is
        29/100. A mapping gives each class its own ``alpha`` and implies ``condition_on="label"``. With
        ``relative`` it is a share, between 0 and 1.
    growth : GrowthRule or str
        How intervals grow: a growth rule or its name, such as ``"frontier"`` or ``"paper"``. If the
        probabilities are right, ``"frontier"`` has the smallest expected size of all intervals that hold the
        point label, at the risks that it attains.
    classes : sequence, optional
        The labels in order. By default those of an ordered categorical ``y``, else ``0 .. K-1``.
    delta : number, optional
        Keep the expected loss within ``alpha`` with probability ``1 - delta`` over the draw of the
        calibration rows, not just on average over them. The rows must be independent draws.
    confidence_bound : {"auto", "binomial", "hoeffding_bentkus", "betting", "dkw"}
        The bound behind ``delta``: by default the tightest that is valid for the loss, at one ``alpha`` that
        was chosen without these rows. ``"dkw"`` is wider and holds for every ``alpha`` at once.
    condition_on : {"label"}, optional
        Keep the expected loss within ``alpha`` for each true class, also if the class shares change.
    randomize : bool
        Let a coin decide about labels at the threshold itself, so that ties do not enlarge sets (Remark 1).
    random_state : int, optional
        The seed of the shuffle for the betting bound; by default it is drawn at random, and saved. A fixed
        seed needs rows in random order: on sorted files it can fail far more often than ``delta``. If you try
        several seeds and keep the best threshold, no promise holds.
    relative : bool
        Whether ``alpha`` is a share of what could be lost: :math:`E[G] \le \alpha\,E[g_y]` with :math:`g_y`
        the largest cost of class ``y``. With weights, at most this share of the total weight is missed, so
        a raised weight protects its class.
    pool_classes : True or sequence of sequences, optional
        With ``condition_on="label"``: adjacent classes that share a threshold, such as
        ``[("poor", "very poor")]``. The promise is then for the rows of a pool together. True merges classes
        with too few calibration rows with their smaller neighbours, by the numbers of rows alone.
    exempt_classes : sequence, optional
        With ``condition_on="label"``: classes for which nothing is promised.
    check : bool
        Warn if the calibration rows look wrong: scores in another order than the classes, labels of other
        rows, classes that the sets nearly always miss. See :class:`CalibrationWarning`. It is not saved.

    Attributes
    ----------
    threshold_ : float or dict
        The exact threshold: a set includes the labels with at least this level. A dict by group, by class or
        by both if each has its own; if rows have weights, the threshold of a row of mean weight.
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
        The seed of the shuffle, if the bound needed one; as ``random_state`` it repeats the calibration.
    calibration_ : Calibration
        All that predictions need.

    Notes
    -----
    Options combine where a theorem covers both; a pair without a theorem is an error, which names the
    possible ones. For ``delta`` after a shift of the population, see :func:`ordinalrisk.shift.accepted_rows`.

    If the single labels of ``n + 1`` rows always lose more than ``(n + 1) alpha - B``, which a calibration
    can't show, the expected loss is at least ``alpha - B / (n + 1)`` with ``randomize``, and without it at
    least ``alpha - (M + 1) B / (n + 1)`` if at most ``M`` rows step at one level (paper, Theorem 4).

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Eq. 2 and 3, Theorems 1 and 4,
    Algorithm 2, Remark 1.

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

    check = True  # also for a controller that was loaded

    def __init__(
        self,
        loss: Any = "coverage",
        alpha: Any = 0.1,
        growth: Any = "frontier",
        classes: Any = None,
        *,
        delta: Any = None,
        confidence_bound: str = "auto",
        condition_on: str | None = None,
        randomize: bool = False,
        random_state: Any = None,
        relative: bool = False,
        pool_classes: Any = None,
        exempt_classes: Any = (),
        check: bool = True,
    ) -> None:
        if not isinstance(check, bool):
            raise ValueError(f"check must be True or False; got {check!r}.")
        spec = Spec(
            *(loss, alpha, growth, classes, delta, confidence_bound, condition_on, randomize, random_state),
            *(relative, pool_classes, exempt_classes),
        )
        self.loss, self.alpha, self.growth, self.classes = spec.loss, spec.alpha, spec.growth, classes
        self.delta, self.confidence_bound, self.condition_on = spec.delta, confidence_bound, spec.condition_on
        self.randomize, self.random_state, self.relative = randomize, spec.random_state, relative
        self.pool_classes, self.exempt_classes = spec.pool_classes, spec.exempt_classes
        self.check = check
        spec.warn_if_unlikely(stacklevel=2)

    @classmethod
    def of(cls, spec: Spec, calibration: Calibration) -> RiskController:
        """Return a controller with a calibration that was made for ``spec``."""
        return cls.__new__(cls)._use(spec, calibration)

    @property
    def spec(self) -> Spec:
        """The checked parameters."""
        return self.__dict__.get("_spec") or Spec(**{name: getattr(self, name) for name in _PARAMETERS})

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
        class_ratios: Any = None,
        point_labels: Any = None,
        more_alphas: Sequence[Any] = (),
    ) -> RiskController:
        """Find the exact threshold on rows with known labels (paper, Eq. 3; in place of Algorithm 2).

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, columns in label order: numpy, nested lists, pandas, polars, pyarrow, torch.
            Tensors on a GPU are used on the GPU, dask arrays and frames where their partitions are; ``y`` and
            ``groups`` must then be dask collections too, cut in the same places.
        y : array-like of shape (n,)
            The true labels. Inputs with a value for each row are matched by position. Their pandas or dask
            indexes must agree: labels in another order are an error, other labels a warning.
        groups : array-like of shape (n,), optional
            The group of each row. Each group gets its own threshold and its own guarantee.
        clusters : array-like of shape (n,), optional
            The patient, or other unit, that each row comes from. Rows of one unit are not independent: the
            clusters must be exchangeable, and the guarantee is for the mean loss of a new cluster.
        sample_weight : array-like of shape (n,), optional
            Likelihood ratios of a new population to that of these rows, up to a factor, if covariates have
            shifted; see :func:`ordinalrisk.shift.covariate_ratios`.
        class_ratios : sequence or mapping, optional
            Ratios of the new shares of the classes to those among these rows, if only the shares have
            shifted; see :func:`ordinalrisk.shift.label_ratios`.
        point_labels : array-like of int, optional
            The position of the label that each set grows from, for a growth rule with ``point="given"``.
        more_alphas : sequence of number
            Other risks to predict at. Only dask collections need them in advance: their risk curve is kept
            near the thresholds only.

        Returns
        -------
        RiskController
            The same controller, calibrated. If there are too few rows for ``alpha``, it warns, and every set
            holds all labels.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> RiskController(alpha=0.1).calibrate(proba, [1, 1, 2] + [0, 1, 2] * 6)
        RiskController(loss=WeightedLoss(), alpha=0.1, growth=FrontierGrowth(point='mode')): threshold inf ...
        """
        spec, for_all = self.spec, {"class_ratios": class_ratios, "more_alphas": more_alphas}
        of_rows = {"groups": groups, "clusters": clusters, "sample_weight": sample_weight}
        options = of_rows | {"class_ratios": class_ratios}
        used = [name for name, values in options.items() if values is not None]
        require_theorem([*spec.options, *used])
        if is_dask(proba):
            from ordinalrisk.execution.dask.collections import calibrate_collections

            require_parts_suffice([*spec.options, *used])
            calibrated = calibrate_collections(
                spec, proba, y, groups=groups, point_labels=point_labels, check=self.check, **for_all
            )
        else:
            batch, classes = labelled_rows(spec, spec.classes, proba, y, **of_rows, point_labels=point_labels)
            calibrated = calibrate(spec, classes, [InMemory([batch])], check=self.check, **for_all)
        return self._use(spec, *calibrated, stacklevel=1 + level_of_caller())

    def calibrate_batches(self, batches: Iterable[Any], *, class_ratios: Any = None) -> RiskController:
        """Find the exact threshold on rows that come in batches; probabilities are not kept.

        The result is that of :meth:`calibrate` on all rows at once with the same ``random_state``.

        Parameters
        ----------
        batches : iterable of (proba, y) or of mapping
            Each as for :meth:`calibrate`. A mapping has ``proba``, ``y``, and any of ``groups``,
            ``clusters``, ``sample_weight`` and ``point_labels``.
        class_ratios : sequence or mapping, optional
            As for :meth:`calibrate`.

        Returns
        -------
        RiskController
            The same controller, calibrated.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> batches = [(proba, [1, 2, 2] + [0, 1, 2] * 6), (proba, [0, 1, 2] * 7)]
        >>> RiskController(alpha=0.05).calibrate_batches(batches)
        RiskController(loss=WeightedLoss(), ...): threshold 0.3 from 42 rows
        """
        spec = self.spec
        used, classes, rows = labelled_batches(spec, batches)
        require_theorem([*spec.options, *used, *([] if class_ratios is None else ["class_ratios"])])
        source = [InMemory(rows)]
        calibrated = calibrate(spec, classes, source, class_ratios=class_ratios, check=self.check)
        return self._use(spec, *calibrated, stacklevel=1 + level_of_caller())

    def _use(
        self,
        spec: Spec,
        calibration: Calibration,
        rows: ScatteredRows | None = None,
        stacklevel: int | None = None,
    ) -> RiskController:
        predictor, strata, classes = Predictor.of(spec, calibration), calibration.strata, calibration.classes
        thresholds = predictor.thresholds
        if stacklevel is not None:  # before anything is changed: a warning may be an error
            warn_if_uncertified(thresholds, stacklevel)
            warn_of_findings(spec, predictor, rows, stacklevel)
        self.__dict__.update({name: getattr(spec, name) for name in _PARAMETERS})
        self._spec, self.calibration_, self.classes_ = spec, calibration, classes
        self._predictor = predictor
        self.columns_, self.shuffle_seed_ = calibration.columns, calibration.shuffle_seed
        self.n_rows_, self.data_blake3_ = strata.n_rows, calibration.data_blake3
        self.risk_curve_ = strata.named([part.curve for part in strata.parts], classes)
        self.threshold_ = strata.named(thresholds.values, classes)
        return self

    def predict_set(
        self,
        proba: Any,
        *,
        alpha: Any = None,
        groups: Any = None,
        unseen_groups: str = "error",
        sample_weight: Any = None,
        random_state: Any = None,
        point_labels: Any = None,
    ) -> IntervalSet:
        """Predict the set of each row: the labels with at least the threshold as their level.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, as for :meth:`calibrate`. Tensors on a GPU give sets on the GPU, dask
            collections give sets that are computed later, by ``compute()``.
        alpha : number, optional
            Another risk than the one calibrated for. With ``delta`` each has its confidence by itself. Choose
            it without the calibration rows, unless ``confidence_bound="dkw"``, which covers all together.
        groups : array-like of shape (n,), optional
            The group of each row, if the calibration has groups.
        unseen_groups : {"error", "full"}
            What to do with groups that had no calibration rows: raise an error, or predict all labels.
        sample_weight : array-like of shape (n,), optional
            The likelihood ratio of each row, on the scale of those at calibration.
        random_state : int or numpy Generator, optional
            The seed of randomized sets: every call with the same number tosses the same coins. If rows come
            in parts, pass the same Generator to each call.
        point_labels : array-like of int, optional
            As for :meth:`calibrate`.

        Returns
        -------
        IntervalSet
            The set of each row.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> controller = RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6)
        >>> controller.predict_set([[0.5, 0.4, 0.1], [0.1, 0.1, 0.8]])
        IntervalSet of 2 rows, 3 classes, mean size 1.5
          0  0..1
          1  2
        """
        thresholds = self._thresholds_at(alpha)
        if alpha is not None:
            warn_if_uncertified(thresholds, stacklevel=2)
        own = self._predictor
        predict: Any = own if thresholds is own.thresholds else replace(own, thresholds=thresholds)
        if is_dask(proba):
            from ordinalrisk.execution.dask.collections import predict_collections

            predict = partial(predict_collections, predict)
        sets: IntervalSet = predict(
            proba,
            groups=groups,
            unseen_groups=unseen_groups,
            sample_weight=sample_weight,
            random_state=random_state,
            point_labels=point_labels,
        )
        return sets

    def guarantee(self, alpha: Any = None) -> Guarantee:
        """State what holds for new rows (paper, Theorem 1), in numbers; ``print`` says it in words.

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
        return guarantee_of(self._thresholds_at(alpha))

    def threshold_at(self, alpha: Any) -> Any:
        """Return what ``threshold_`` would be at another risk.

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
        >>> RiskController(alpha=0.1).calibrate(proba, [1, 2, 2] + [0, 1, 2] * 6).threshold_at(0.2)
        inf
        """
        return self.calibration_.strata.named(self._thresholds_at(alpha).values, self.classes_)

    @property
    def thresholds_(self) -> list[float]:
        """The threshold of each stratum, in the order of groups and classes."""
        return self._thresholds_at(None).values

    def save(self, path: str | PathLike[str], *, key: str | PathLike[str] | None = None) -> None:
        """Write the calibration to a JSON file, whole or not at all.

        Digests of all fields reveal accidents, not forgery: sign the file if others could replace it.

        Parameters
        ----------
        path : path
            The file to write; an existing file is replaced.
        key : path, optional
            An Ed25519 private key in PEM. The signature is written to ``path`` with ``.sig`` appended.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     RiskController().calibrate([[0.6, 0.4]] * 20, [0] * 20).save(f"{folder}/grades.json")
        """
        self._require_calibrated()
        from ordinalrisk.saving import calibration_file

        calibration_file.write(self._spec, self.calibration_, path, key)

    @classmethod
    def load(cls, path: str | PathLike[str], *, key: str | PathLike[str] | None = None) -> RiskController:
        """Read a calibration that :meth:`save` wrote; its predictions are the same bit for bit.

        Parameters
        ----------
        path : path
            The file to read.
        key : path, optional
            The Ed25519 public key in PEM. The signature is verified before anything in the file is used;
            without a key, a carefully forged file is loaded like any other.

        Returns
        -------
        RiskController
            The calibrated controller. It warns if the version that saved it promised more than holds.

        Raises
        ------
        ValueError
            If the file was cut, edited or written in another schema: the message names the field. With a key,
            if the signature is missing or does not match.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     RiskController().calibrate([[0.6, 0.4]] * 20, [0] * 20).save(f"{folder}/grades.json")
        ...     RiskController.load(f"{folder}/grades.json")
        RiskController(loss=WeightedLoss(), ...): threshold inf from 20 rows
        """
        from ordinalrisk.saving import calibration_file

        return RiskController.of(*calibration_file.read(path, key))

    def _thresholds_at(self, alpha: Any) -> Thresholds:
        self._require_calibrated()
        return (
            self._predictor.thresholds if alpha is None else self._spec.thresholds(self.calibration_, alpha)
        )

    def _require_calibrated(self) -> None:
        if not hasattr(self, "threshold_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("This RiskController is not calibrated yet; call calibrate(proba, y) first.")

    def __getattr__(self, name: str) -> Any:
        """Say what to call instead of the methods that estimators have."""
        if name in _CALL_INSTEAD:
            raise AttributeError(f"RiskController has no {name!r}: {_CALL_INSTEAD[name]}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name in OPTIONS if (value := getattr(self, name)))
        text = f"RiskController(loss={self.loss!r}, alpha={self.alpha!r}, growth={self.growth!r}{options})"
        if hasattr(self, "threshold_"):
            own = self.threshold_
            count = f"{len(own)} thresholds" if isinstance(own, dict) else f"threshold {own:.6g}"
            text += f": {count} from {self.n_rows_} rows"
        return text

    def _repr_html_(self) -> str:
        thresholds = self._predictor.thresholds if hasattr(self, "threshold_") else None
        return notebook_view.controller_html(type(self).__name__, self.spec, thresholds)
