"""RiskController: calibrate on rows with known labels, then predict a set of labels for each new row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ordinalrisk.calibration.combinations import require_parts_suffice, require_theorem
from ordinalrisk.calibration.guarantees import (
    Guarantee,
    guarantee_of,
    warn_if_uncertified,
    warn_of_tiny_groups,
)
from ordinalrisk.calibration.labelled_rows import labelled_batches, labelled_rows
from ordinalrisk.calibration.result import Calibration
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

if TYPE_CHECKING:
    from ordinalrisk.preparation.learning import Learned

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

    The controller turns the class probabilities of each new row into a set: an interval of labels ``[l, u]``
    with

    .. math:: E[\,G(y, [l, u])\,] \le \alpha

    for any model, if new rows are exchangeable with the calibration rows (paper, Eq. 2 and Theorem 1).
    With losses :math:`L_i(\tau)` of the ``n`` calibration rows, at most ``B`` each, the threshold is

    .. math:: \hat\tau = \sup \{ \tau : \sum_{i=1}^n L_i(\tau) \le (n + 1)\,\alpha - B \}.

    It is computed exactly. The paper's Algorithm 2 searches for the same threshold (Eq. 3).

    Parameters
    ----------
    loss : IntervalLoss, str or table
        What a miss costs: a :class:`WeightedLoss`, a :class:`DivergenceLoss`, a :class:`CostTableLoss` or its
        table, ``"coverage"`` or ``"divergence"``.
    alpha : number or mapping
        The largest expected loss to allow, between 0 and the largest value of the loss. Decimals are exact:
        0.29 is 29/100. A mapping gives each class its own ``alpha`` and implies ``condition_on="label"``.
        With ``relative``, ``alpha`` is a share, between 0 and 1.
    growth : GrowthRule or str
        How sets grow: a growth rule or its name, such as ``"frontier"`` or ``"paper"``. With ``"auto"``,
        :meth:`calibrate` chooses the rule and the point label with the smallest sets at this ``alpha``, on
        rows that it sets apart; it keeps ``"frontier"`` unless another is clearly better. If the
        probabilities are right, ``"frontier"`` has the smallest expected size of all intervals that
        include the point label, at the risks that it attains.
    classes : sequence, optional
        The labels in order. By default, the categories of an ordered categorical ``y``, else ``0 .. K-1``.
    delta : number, optional
        Keep the expected loss within ``alpha`` with probability ``1 - delta`` over the draw of the
        calibration rows, not just on average over such draws. The rows must be independent draws.
    confidence_bound : {"auto", "binomial", "hoeffding_bentkus", "betting", "dkw"}
        The confidence bound that ``delta`` uses. The default is the tightest one that is valid for the loss;
        it holds for one ``alpha``, chosen without the calibration rows. ``"dkw"`` gives larger sets and holds
        for every ``alpha`` at once.
    condition_on : {"label"}, optional
        Keep the expected loss within ``alpha`` for each true class, even if the class shares change.
    randomize : bool
        Include a label exactly at the threshold at random, so that ties do not enlarge sets (Remark 1).
    random_state : int, optional
        The seed of the shuffle for the betting bound. By default, it is drawn at random and saved. A fixed
        seed needs rows in random order: with sorted rows the bound can fail far more often than ``delta``. If
        you try several seeds and keep the best threshold, the guarantee is lost.
    relative : bool
        Whether ``alpha`` is a share of what could be lost: :math:`E[G] \le \alpha\,E[g_y]` with :math:`g_y`
        the largest cost of class ``y``. With class weights, misses then make up at most this share of the
        total weight, so a larger weight protects its class.
    pool_classes : True or sequence of sequences, optional
        With ``condition_on="label"``: adjacent classes that share a threshold, such as
        ``[("poor", "very poor")]``. The guarantee is then for the rows of a pool together. True merges each
        class that has too few calibration rows with its smaller neighbour, looking only at row counts. The
        guarantee of such a pool is an average over all draws of the rows in which the counts of all
        :math:`n + 1` rows form it; it need not hold for the counts of one calibration.
    exempt_classes : sequence, optional
        With ``condition_on="label"``: classes without a guarantee.
    recalibration : Recalibrator, optional
        A fitted :class:`Recalibrator`. The controller then takes the scores that the recalibrator takes, and
        calibrates and predicts with the probabilities that it makes of them. It must not have been fitted on
        calibration rows.
    side : {"upper", "lower"}, optional
        Control one end of the sets and leave the other free. With ``"upper"``, sets are all labels up to an
        upper end ("at most Mild"), and a loss counts where the set lies below the truth. ``"lower"`` gives
        "Severe or worse". :class:`JointController` combines both.
    growth_loss : IntervalLoss, str or table, optional
        The loss that sets grow by, if it is not ``loss``. The guarantee does not depend on it.
    check : bool
        Warn if the calibration rows look wrong: score columns in another order than the classes, labels that
        belong to other rows, classes that the sets nearly always miss. See :class:`CalibrationWarning`. This
        option is not saved.

    Attributes
    ----------
    threshold_ : float or dict
        The exact threshold: a set includes the labels with at least this level. It is a dict if each group or
        class has its own threshold. If rows have weights, it is the threshold of a row of mean weight.
    risk_curve_ : RiskCurve or dict
        The total calibration loss at every threshold; a dict if ``threshold_`` is one.
    classes_ : array
        The labels in order.
    n_rows_ : int
        The number of calibration rows.
    data_blake3_ : str
        A fingerprint of the calibration data.
    columns_ : ScoreColumns or None
        The columns of the calibration data, if the data came from a file.
    shuffle_seed_ : int or None
        The seed of the shuffle, if the bound needed one. Pass it as ``random_state`` to repeat the
        calibration.
    calibration_ : Calibration
        Everything that predictions need.
    rows_apart_, recalibrator_, growth_sizes_
        What ``recalibrate`` and ``growth="auto"`` did: the positions of the rows that were set apart, the
        fitted :class:`Recalibrator`, and the cross-validated mean size of the sets of each rule. Only after
        such a calibration; they are not saved.

    Notes
    -----
    You can combine two options if a theorem covers both. Otherwise the error message lists the options that
    you can combine. To use ``delta`` after a population shift, see :func:`ordinalrisk.shift.accepted_rows`.

    The expected loss also has a lower bound, provided that sets of one label each would always cost
    ``n + 1`` rows more than ``(n + 1) alpha - B`` in total. A calibration can't show whether this is so. The
    bound is ``alpha - B / (n + 1)`` with ``randomize``. Without ``randomize`` it is
    ``alpha - (M + 1) B / (n + 1)`` if the losses of at most ``M`` rows step at one level (paper, Theorem 4).

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

    check = True  # the default of loaded controllers too

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
        recalibration: Any = None,
        side: str | None = None,
        growth_loss: Any = None,
        check: bool = True,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in _PARAMETERS}
        if not isinstance(check, bool):
            raise ValueError(f"check must be True or False; got {check!r}.")
        spec = Spec(**given)
        self.loss, self.alpha, self.growth, self.classes = spec.loss, spec.alpha, spec.growth, spec.classes
        self.delta, self.confidence_bound, self.condition_on = spec.delta, confidence_bound, spec.condition_on
        self.randomize, self.random_state, self.relative = randomize, spec.random_state, relative
        self.pool_classes, self.exempt_classes = spec.pool_classes, spec.exempt_classes
        self.recalibration, self.side, self.growth_loss = spec.recalibration, side, spec.growth_loss
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
        recalibrate: Any = None,
        recalibration_rows: Any = None,
    ) -> RiskController:
        """Find the exact threshold on rows with known labels (paper, Eq. 3, without Algorithm 2).

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, columns in label order: numpy, nested lists, pandas, polars, pyarrow, torch.
            Tensors on a GPU are processed on the GPU, dask arrays and frames on the workers that hold their
            partitions. With dask, ``y`` and ``groups`` must be dask collections with the same partitions.
        y : array-like of shape (n,)
            The true labels. Inputs with a value for each row are matched by position. If they have pandas or
            dask indexes, these must agree: the same index labels in another order raise an error, different
            index labels give a warning.
        groups : array-like of shape (n,), optional
            The group of each row. Each group gets its own threshold and its own guarantee.
        clusters : array-like of shape (n,), optional
            The patient, or other unit, that each row comes from. Rows of one unit need not be independent.
            The clusters must be exchangeable, and the guarantee is for the mean loss of a new cluster.
        sample_weight : array-like of shape (n,), optional
            If covariates have shifted: for each row, the likelihood ratio of the new population to the
            population of these rows, up to a common factor. The guarantee assumes that no new row is of a
            kind that calibration rows never have, and that the ratios were not computed from these rows. See
            :func:`ordinalrisk.shift.covariate_ratios`.
        class_ratios : sequence or mapping, optional
            If only the class shares have shifted: for each class, its new share divided by its share among
            these rows. The guarantee assumes that no new row is of a class that calibration rows never have,
            and that the ratios were not computed from these rows. See
            :func:`ordinalrisk.shift.label_ratios`.
        point_labels : array-like of int, optional
            The position of the label that each set grows from, for a growth rule with ``point="given"``.
        more_alphas : sequence of number
            Other values of ``alpha`` to predict at later. Only dask collections need them in advance, because
            their risk curve is kept only near the thresholds.
        recalibrate : str or Recalibrator, optional
            Fit a map from the scores to better probabilities first: the method of a :class:`Recalibrator`,
            such as ``"auto"``, or an unfitted one. ``proba`` may then be logits, or scores on another scale
            than the labels. The map is fitted on rows that are set apart at random; the other rows calibrate,
            so the guarantee is the same.
        recalibration_rows : number or array-like, optional
            The rows to set apart for ``recalibrate`` and for ``growth="auto"``: a share, a number, a mask or
            positions, chosen without the labels. With ``clusters``, whole clusters, which a share or a number
            counts. ``random_state`` is the seed of the draw. By default, as many as make the risk at most 3 %
            smaller than it could be, that is ``B/(n - m + 1) - B/(n + 1) <= 0.03 alpha`` for ``m`` of ``n``
            rows, but at most a quarter and at most 2,000. With groups or true classes, ``n`` is the mean
            number of rows of each. If that leaves fewer than 30, the method warns and uses the scores as they
            are.

        Returns
        -------
        RiskController
            The same controller, calibrated. If there are too few rows for ``alpha``, the method warns, and
            every set includes all labels.

        Examples
        --------
        >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 7
        >>> RiskController(alpha=0.1).calibrate(proba, [1, 1, 2] + [0, 1, 2] * 6)
        RiskController(loss=WeightedLoss(), alpha=0.1, growth=FrontierGrowth(point='mode')): threshold inf ...
        """
        spec, for_all = self._asked, {"class_ratios": class_ratios, "more_alphas": more_alphas}
        of_rows = {"groups": groups, "clusters": clusters, "sample_weight": sample_weight}
        options = of_rows | {"class_ratios": class_ratios}
        used = [name for name, values in options.items() if values is not None]
        require_theorem([*spec.options, *used])
        asked, learned = spec, None
        if spec.is_open(recalibrate, recalibration_rows) and not is_dask(proba):
            from ordinalrisk.preparation.learning import learned_apart

            learned = learned_apart(
                spec, proba, y, recalibrate, recalibration_rows, groups=groups, clusters=clusters
            )
            spec = learned.spec
        if is_dask(proba):
            spec.require_growth()
            if recalibrate is not None:
                raise ValueError(
                    "recalibrate can't be used with dask collections; fit a Recalibrator on some rows and "
                    "pass it as RiskController(recalibration=...)."
                )
            from ordinalrisk.execution.dask.collections import calibrate_collections

            require_parts_suffice([*spec.options, *used])
            calibrated = calibrate_collections(
                spec, proba, y, groups=groups, point_labels=point_labels, check=self.check, **for_all
            )
        else:
            batch, classes = labelled_rows(spec, spec.classes, proba, y, **of_rows, point_labels=point_labels)
            if learned is not None and learned.apart is not None:
                batch = batch.some(np.flatnonzero(~learned.apart))
            calibrated = calibrate(spec, classes, [InMemory([batch])], check=self.check, **for_all)
        self._use(spec, *calibrated, stacklevel=1 + level_of_caller())
        return self._remember(asked, learned)

    def calibrate_batches(self, batches: Iterable[Any], *, class_ratios: Any = None) -> RiskController:
        """Find the exact threshold on rows that come in batches, without keeping their probabilities.

        The result is the same as that of :meth:`calibrate` on all rows at once with the same
        ``random_state``.

        Parameters
        ----------
        batches : iterable of (proba, y) or of mapping
            Batches of inputs for :meth:`calibrate`. A mapping has ``proba``, ``y``, and any of ``groups``,
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
        spec = self._asked
        spec.require_growth()
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
        if stacklevel is not None:  # before anything is changed: filters can turn warnings into errors
            warn_of_tiny_groups(calibration, stacklevel)
            warn_if_uncertified(thresholds, stacklevel)
            warn_of_findings(spec, predictor, rows, stacklevel)
            for name in ("recalibrator_", "growth_sizes_", "rows_apart_"):  # of an earlier calibration
                self.__dict__.pop(name, None)
        self.__dict__.update({name: getattr(spec, name) for name in _PARAMETERS})
        self._spec, self.calibration_, self.classes_ = spec, calibration, classes
        self._predictor = predictor
        self.columns_, self.shuffle_seed_ = calibration.columns, calibration.shuffle_seed
        self.n_rows_, self.data_blake3_ = strata.n_rows, calibration.data_blake3
        self.risk_curve_ = strata.named([part.curve for part in strata.parts], classes)
        self.threshold_ = strata.named(thresholds.values, classes)
        return self

    def _remember(self, asked: Spec, learned: Learned | None) -> RiskController:
        """Keep what was learned on rows set apart; another calibration starts from what was asked for."""
        if learned is not None:
            self._open_spec = asked
            self.recalibrator_, self.growth_sizes_ = learned.recalibrator, learned.growth_sizes
            self.rows_apart_ = None if learned.apart is None else np.flatnonzero(learned.apart)
        return self

    @property
    def _asked(self) -> Spec:
        return self.__dict__.get("_open_spec") or self.spec

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
        """Predict the set of each row: the labels with a level of at least the threshold.

        Parameters
        ----------
        proba : array-like of shape (n, K)
            Class probabilities, as for :meth:`calibrate`. Tensors on a GPU give sets on the GPU. Dask
            collections give sets that ``compute()`` computes later.
        alpha : number, optional
            Another risk than the one calibrated for. With ``delta``, the confidence holds for each ``alpha``
            separately, and you must choose ``alpha`` without the calibration rows. With
            ``confidence_bound="dkw"`` it holds for all of them at once, however you choose. Sets of a larger
            ``alpha`` lie in those of a smaller one, except if ``pool_classes=True`` finds other pools or
            randomized sets have another ``random_state``.
        groups : array-like of shape (n,), optional
            The group of each row, if the calibration has groups.
        unseen_groups : {"error", "full"}
            What to do with groups that had no calibration rows: raise an error, or predict all labels.
        sample_weight : array-like of shape (n,), optional
            The likelihood ratio of each row, on the same scale as at calibration.
        random_state : int or numpy Generator, optional
            The seed of randomized sets: the same seed gives the same random numbers in every call. If rows
            come in parts, pass the same Generator to each call.
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
        """Return what is guaranteed for new rows (paper, Theorem 1), in numbers; ``print`` gives it in words.

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
        The expected loss of a new row is at most 0.1, provided that the row is
        exchangeable with the calibration rows (n = 21 rows, losses from 0 to B = 1).
        Every set is a single label; on the calibration rows their mean loss was 0.
        """
        return guarantee_of(self._thresholds_at(alpha))

    def threshold_at(self, alpha: Any) -> Any:
        """Return the threshold at another risk.

        Parameters
        ----------
        alpha : number or mapping
            The risk, as for the ``alpha`` of this class.

        Returns
        -------
        float or dict
            The threshold, in the form of ``threshold_``.

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
        """Write the calibration to a JSON file.

        An interrupted call leaves no partial file. The file contains digests of all fields, which reveal
        accidental damage but not forgery: sign the file if others could replace it.

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
        """Load a calibration that :meth:`save` wrote; its predictions are identical bit for bit.

        A map that was fitted stays part of it, so do not calibrate it again on rows that the map was fitted
        on.

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
            The calibrated controller. This method warns if the version that saved the file stated a stronger
            guarantee than the one that holds.

        Raises
        ------
        ValueError
            If the file was truncated, edited or written in another schema; the message names the field. With
            a key, also if the signature is missing or does not match.

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
        """Raise an error; for the methods of estimators, say what to call instead."""
        if name in _CALL_INSTEAD:
            raise AttributeError(f"RiskController has no {name!r}: {_CALL_INSTEAD[name]}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        options = "".join(
            f", {name}={value!r}"
            for name in (*OPTIONS, "side", "growth_loss")
            if (value := getattr(self, name))
        )
        if self.recalibration is not None:
            options += f", recalibration={self.recalibration.method}"
        text = f"RiskController(loss={self.loss!r}, alpha={self.alpha!r}, growth={self.growth!r}{options})"
        if hasattr(self, "threshold_"):
            own = self.threshold_
            count = f"{len(own)} thresholds" if isinstance(own, dict) else f"threshold {own:.6g}"
            text += f": {count} from {self.n_rows_} rows"
        return text

    def _repr_html_(self) -> str:
        thresholds = self._predictor.thresholds if hasattr(self, "threshold_") else None
        return notebook_view.controller_html(type(self).__name__, self.spec, thresholds)


def require_controller(controller: Any) -> None:
    if not isinstance(controller, RiskController):
        raise ValueError(
            f"controller must be a RiskController; got a {type(controller).__name__}. For an "
            "OrdinalRiskClassifier, pass its controller_."
        )


def require_calibrated(controller: Any) -> None:
    require_controller(controller)
    controller._require_calibrated()
