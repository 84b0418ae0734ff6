"""OrdinalRiskClassifier: train and calibrate a scikit-learn classifier in one step."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _routing_enabled, process_routing
from sklearn.utils.validation import _check_method_params, check_is_fitted, column_or_1d

from ordinalrisk.calibration.guarantees import Guarantee
from ordinalrisk.calibration.spec import AUTO, Spec
from ordinalrisk.calibration.warning_category import CalibrationWarning
from ordinalrisk.controller import RiskController
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.batch import Batch
from ordinalrisk.inputs.caller import level_of_caller
from ordinalrisk.inputs.labels import Classes, as_classes, class_indices, ordered_categories, resolve_classes
from ordinalrisk.inputs.row_index import require_same_rows, row_index
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.inputs.training import (
    ordered_probabilities,
    require_probabilities,
    sorted_labels,
    warn_if_alphabetical,
    warn_of_absent_classes,
)
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.preparation.learning import Learned, fitted
from ordinalrisk.preparation.out_of_fold import may_learn, require_two_classes
from ordinalrisk.preparation.recalibrator import Recalibrator, recalibrator_of
from ordinalrisk.splitting import held_out_and_training, split_folds

_FOLDS = 5  # of the predictions that a map is fitted on


class OrdinalRiskClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that also predicts sets of labels with an expected loss of at most ``alpha``.

    :meth:`fit` trains any scikit-learn classifier on some of the rows and calibrates a
    :class:`RiskController` on the others. The sets have that controller's guarantee (paper, Eq. 2 and 3,
    Theorem 1). If your model is already trained, wrap it in a ``FrozenEstimator``.

    Parameters
    ----------
    estimator : classifier
        A classifier with ``predict_proba``.
    loss, alpha, growth
        As for :class:`RiskController`. With ``growth="auto"``, :meth:`fit` chooses on out-of-fold predictions
        of the training rows.
    classes : sequence, optional
        The labels in order. By default, the categories of an ordered pandas categorical or polars Enum ``y``,
        else the sorted labels of ``y``. A class that the estimator was not trained on gets probability 0.
        Sets never include a label outside the classes, and the guarantee does not cover such labels. So list
        the classes if ``y`` may lack some of them.
    delta, confidence_bound, condition_on, randomize, relative
        As for :class:`RiskController`.
    pool_classes, exempt_classes, side, growth_loss
        As for :class:`RiskController`.
    recalibrate : str, Recalibrator or None
        The map from the model's probabilities to better ones, which :meth:`fit` fits: the method of a
        :class:`Recalibrator`, or an unfitted one. It is fitted on out-of-fold predictions of the training
        rows, which costs no calibration row, and the guarantee is the same. What it costs is time: the
        estimator is trained five more times, each time without a fifth of the training rows. Clusters are
        kept whole. None turns it off. The default, ``"auto"``, uses the probabilities as they are if there
        are fewer than 30 training rows (with ``clusters``, clusters), or if a fold would leave rows of one
        class to train on, and with a warning if the estimator can't be trained without a fold. Any other
        value then raises an error. A ``FrozenEstimator`` is not trained, so this parameter does not concern
        it; see ``recalibrate`` of :meth:`calibrate`.
    calibration_size : float or int
        The share or the number of rows that :meth:`fit` holds out for calibration. With ``clusters``, it
        counts clusters.
    random_state : int, RandomState instance or None
        The seed for drawing the calibration rows and, with ``delta``, for the shuffle of the betting bound.
        The same int gives the same result in every fit.
    check : bool
        As for :class:`RiskController`.

    Attributes
    ----------
    estimator_ : classifier
        The trained model.
    controller_ : RiskController
        The calibrated controller.
    recalibrator_ : Recalibrator or None
        The fitted map, with what was compared to choose it; None if the probabilities are used as they are.
    growth_sizes_ : dict or None
        With ``growth="auto"``: the mean size of the sets of each rule that was compared.
    classes_ : array
        The labels, sorted: scikit-learn's scorers expect the columns of :meth:`predict_proba` in this order.
        The order on the scale is ``controller_.classes_``.
    n_features_in_, feature_names_in_
        The same attributes of ``estimator_``, if it has them.

    See Also
    --------
    RiskController : Sets from the class probabilities of any model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> severity = np.digitize(X[:, 0] + 0.5 * rng.normal(size=1000), [-1, 0, 1])
    >>> y = np.array(["None", "Mild", "Moderate", "Severe"])[severity]
    >>> model = OrdinalRiskClassifier(
    ...     LogisticRegression(), alpha=0.05, classes=["None", "Mild", "Moderate", "Severe"], random_state=0
    ... )
    >>> model.fit(X, y).predict_set([[-2.0, 0.0], [0.0, 0.0]])
    IntervalSet of 2 rows, 4 classes, mean size 1.5
      0  None
      1  Mild..Moderate
    """

    estimator_: Any
    controller_: RiskController
    recalibrator_: Recalibrator | None
    growth_sizes_: Mapping[str, float] | None
    classes_: Classes

    def __init__(
        self,
        estimator: Any,
        *,
        loss: Any = "coverage",
        alpha: Any = 0.1,
        growth: Any = "frontier",
        classes: Any = None,
        delta: Any = None,
        confidence_bound: str = "auto",
        condition_on: str | None = None,
        randomize: bool = False,
        relative: bool = False,
        pool_classes: Any = None,
        exempt_classes: Any = (),
        side: str | None = None,
        growth_loss: Any = None,
        recalibrate: Any = AUTO,
        calibration_size: float = 0.25,
        random_state: Any = None,
        check: bool = True,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.alpha = alpha
        self.growth = growth
        self.classes = classes
        self.delta = delta
        self.confidence_bound = confidence_bound
        self.condition_on = condition_on
        self.randomize = randomize
        self.relative = relative
        self.pool_classes = pool_classes
        self.exempt_classes = exempt_classes
        self.side = side
        self.growth_loss = growth_loss
        self.recalibrate = recalibrate
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.check = check

    def fit(self, X: Any, y: Any, *, groups: Any = None, clusters: Any = None, **fit_params: Any) -> Self:
        """Train a clone of the estimator on some of the rows and calibrate it on the others.

        The calibration rows are a simple random sample of all rows or, with ``clusters``, of all clusters.
        The draw is not stratified by label. Stratifying would give training rows and calibration rows matched
        class counts, which new rows do not have, and the guarantee would fail. A ``FrozenEstimator`` needs no
        training, so all rows are used for calibration.

        The guarantee averages over this draw. If you fix ``random_state``, the rows must be in random order:
        in rows sorted by label, the same seed would favour the same classes every time. Put a search for
        hyperparameters inside, as in ``OrdinalRiskClassifier(GridSearchCV(...))``. A search around this class
        would use the calibration rows to choose.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The features.
        y : array-like of shape (n,)
            The labels.
        groups, clusters : array-like of shape (n,), optional
            As for :meth:`RiskController.calibrate`.
        **fit_params
            Metadata for the ``fit`` of the estimator, such as ``sample_weight``; with metadata routing, what
            the estimator requests. The estimator gets the values of the training rows. Calibration does not
            use them.

        Returns
        -------
        OrdinalRiskClassifier
            The trained and calibrated classifier.

        Warns
        -----
        UserWarning
            If some label in ``y`` has no training row or no calibration row. Do not search for a
            ``random_state`` that avoids this warning: that would stratify the draw.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0]] * 40, [0, 1, 2] * 40
        >>> OrdinalRiskClassifier(LogisticRegression()).fit(X, y).controller_.n_rows_
        30
        """
        if isinstance(self.estimator, FrozenEstimator):
            return self.calibrate(X, y, groups=groups, clusters=clusters)
        require_probabilities(self.estimator)
        if y is None:
            raise ValueError("OrdinalRiskClassifier requires y to be passed, but the target y is None.")
        require_same_rows(X=X, y=y, groups=groups, clusters=clusters, **fit_params)
        order = self._label_order(y, self.recalibrate)
        if X is None or getattr(X, "shape", None) == ():
            raise ValueError(f"X must have a row for each label; got {X!r}.")
        X, y = indexable(X, column_or_1d(to_numpy(y, "y"), warn=True))
        random = check_random_state(self.random_state)
        split_seed = int(random.randint(2**31))
        controller = self._controller(sorted_labels(y) if order is None else order, random)
        if order is None:
            warn_if_alphabetical(controller.classes)
        indices = class_indices(y, controller.classes, len(y))
        if groups is not None:
            RowNames("groups").numbered(groups, len(y))  # raises an error for a bad name in any row
        recalibrator = None
        if self.recalibrate is not None:
            options = {"classes": controller.classes, "scores": "probabilities", "random_state": split_seed}
            recalibrator = recalibrator_of(self.recalibrate, **options)
        held_out, train = held_out_and_training(len(y), self.calibration_size, clusters, split_seed)
        warn_of_absent_classes(controller.classes, indices, train, held_out)
        if _routing_enabled():
            fit_params = process_routing(self, "fit", **fit_params)["estimator"]["fit"]
        estimator = self._trained(X, y, train, fit_params)
        of_training = None if clusters is None else _safe_indexing(indexable(clusters)[0], train)
        rows = Batch(labels=indices[train], clusters=of_training)
        learned = self._learned(controller.spec, recalibrator, X, y, train, rows, split_seed, fit_params)
        controller.recalibration, controller.growth = learned.spec.recalibration, learned.spec.growth
        of_rows = {
            name: _safe_indexing(indexable(values)[0], held_out)
            for name, values in {"groups": groups, "clusters": clusters}.items()
            if values is not None
        }
        self._calibrate(estimator, controller, _safe_indexing(X, held_out), y[held_out], **of_rows)
        self.recalibrator_, self.growth_sizes_ = learned.recalibrator, learned.growth_sizes
        return self

    def calibrate(
        self,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        clusters: Any = None,
        sample_weight: Any = None,
        class_ratios: Any = None,
        recalibrate: Any = None,
        recalibration_rows: Any = None,
    ) -> Self:
        """Calibrate a trained model on all the given rows.

        A map that :meth:`fit` fitted and a growth rule that it chose stay as they are, unless ``recalibrate``
        was set to None since, which drops the map. The probabilities of a
        ``FrozenEstimator`` are used as they are, unless you pass ``recalibrate``.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features of rows that the model was not trained on.
        y : array-like of shape (n,)
            The labels of these rows.
        groups, clusters, sample_weight, class_ratios
            As for :meth:`RiskController.calibrate`.
        recalibrate, recalibration_rows
            As for :meth:`RiskController.calibrate`: some of the rows are set apart to fit a map on, and do
            not calibrate. Only for a ``FrozenEstimator``.

        Returns
        -------
        OrdinalRiskClassifier
            The calibrated classifier.

        Examples
        --------
        >>> from sklearn.frozen import FrozenEstimator
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0]] * 40, [0, 1, 2] * 40
        >>> trained = FrozenEstimator(LogisticRegression().fit(X[::2], y[::2]))
        >>> OrdinalRiskClassifier(trained).calibrate(X[1::2], y[1::2]).controller_.n_rows_
        60
        """
        is_frozen = isinstance(self.estimator, FrozenEstimator)
        if is_frozen:
            self._require_nothing_to_fit()
            estimator = self.estimator
            check_is_fitted(estimator.estimator)
            require_probabilities(estimator.estimator)
            classes = np.asarray(estimator.classes_)
        else:
            self._require_fitted()
            if recalibrate is not None or recalibration_rows is not None:
                raise ValueError(
                    "recalibrate and recalibration_rows of calibrate are for a FrozenEstimator. fit fits the "
                    "map on training rows, which costs no calibration row: pass recalibrate to "
                    "OrdinalRiskClassifier, and fit again."
                )
            estimator, classes = self.estimator_, self.controller_.classes_
        require_same_rows(X=X, y=y, groups=groups, clusters=clusters, sample_weight=sample_weight)
        order = self._label_order(y, recalibrate if is_frozen else self.recalibrate)
        if order is None and is_frozen:
            warn_if_alphabetical(classes)
        classes, random = classes if order is None else order, check_random_state(self.random_state)
        controller = self._controller(classes, random, draws=recalibrate is not None)
        learning: dict[str, Any] = {}
        if is_frozen:
            learning = {"recalibrate": recalibrate, "recalibration_rows": recalibration_rows}
        else:  # what was learned in training stays
            self._take_over_what_was_learned(controller)
        labels, of_rows = column_or_1d(to_numpy(y, "y"), warn=True), {"groups": groups, "clusters": clusters}
        weights = {"sample_weight": sample_weight, "class_ratios": class_ratios}
        self._calibrate(estimator, controller, X, labels, **of_rows, **weights, **learning)
        if not is_frozen and controller.recalibration is None:
            self.recalibrator_ = None
        if is_frozen:
            self.recalibrator_ = getattr(controller, "recalibrator_", None)
            self.growth_sizes_ = getattr(controller, "growth_sizes_", None)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict one label for each row with the estimator.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The features.

        Returns
        -------
        array of shape (n,)
            The labels. A set need not include this label, because sets may grow from another one.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0]] * 40, [0, 1, 2] * 40
        >>> OrdinalRiskClassifier(LogisticRegression()).fit(X, y).predict([[0.0], [2.0]])
        array([0, 2])
        """
        self._require_fitted()
        labels: NDArray[Any] = self.estimator_.predict(X)
        return labels

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Predict class probabilities, with columns in the sorted order of ``classes_``.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The features.

        Returns
        -------
        array of shape (n, K)
            The probabilities; 0 for labels that the estimator was not trained on.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0]] * 40, [0, 1, 2] * 40
        >>> OrdinalRiskClassifier(LogisticRegression()).fit(X, y).predict_proba([[0.0], [2.0]]).shape
        (2, 3)
        """
        self._require_fitted()
        return ordered_probabilities(self.estimator_, X, self.classes_)

    def predict_ordered_proba(self, X: Any) -> NDArray[Any]:
        """Predict class probabilities with columns in scale order, which ``controller_`` and plots expect.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The features.

        Returns
        -------
        array of shape (n, K)
            The probabilities, columns in the order of ``controller_.classes_``.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0]] * 40, ["low", "middle", "high"] * 40
        >>> model = OrdinalRiskClassifier(LogisticRegression(), classes=["low", "middle", "high"])
        >>> model.fit(X, y).predict_ordered_proba([[0.0], [2.0]]).argmax(axis=1)
        array([0, 2])
        >>> model.predict_proba([[0.0], [2.0]]).argmax(axis=1), model.classes_.tolist()
        (array([1, 0]), ['high', 'low', 'middle'])
        """
        self._require_fitted()
        return ordered_probabilities(self.estimator_, X, self.controller_.classes_)

    def predict_set(self, X: Any, *, alpha: Any = None, **options: Any) -> IntervalSet:
        """Predict the set of each row.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The features.
        alpha : number, optional
            Another risk than the one calibrated for.
        **options
            Options of :meth:`RiskController.predict_set`.

        Returns
        -------
        IntervalSet
            The set of each row, with labels in the order of the scale, ``controller_.classes_``.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0]] * 40, [0, 1, 2] * 40
        >>> OrdinalRiskClassifier(LogisticRegression()).fit(X, y).predict_set([[0.0], [2.0]])
        IntervalSet of 2 rows, 3 classes, mean size 1
          0  0
          1  2
        """
        proba = self.predict_ordered_proba(X)
        sets = self.controller_.predict_set(proba, alpha=alpha, **options)
        sets.index = row_index(X)
        return sets

    def guarantee(self, alpha: Any = None) -> Guarantee:
        """Return what is guaranteed for new rows, like :meth:`RiskController.guarantee`.

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
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0]] * 40, [0, 1, 2] * 40
        >>> OrdinalRiskClassifier(LogisticRegression()).fit(X, y).guarantee().certified
        True
        """
        self._require_fitted()
        return self.controller_.guarantee(alpha)

    @property
    def n_features_in_(self) -> int:
        """Number of features that the model was trained on."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features that the model was trained on."""
        names: NDArray[Any] = self.estimator_.feature_names_in_
        return names

    def get_metadata_routing(self) -> Any:
        """Route the metadata of ``fit`` to the estimator's ``fit``."""
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _label_order(self, y: Any, recalibrate: Any) -> Classes | None:
        """Return the order given by ``classes``, a recalibrator or ``y``, or None."""
        own = getattr(recalibrate, "classes", None) if self.classes is None else self.classes
        labels = ordered_categories(y) if own is None else own
        return None if labels is None else resolve_classes(own, y, len(as_classes(labels)))

    def _controller(
        self, classes: Classes, random: np.random.RandomState, *, draws: bool = False
    ) -> RiskController:
        """Make the controller to calibrate; check its parameters before training."""
        if len(classes) < 2:
            raise ValueError(
                f"There must be at least two classes to choose from; got only one class: {classes.tolist()}."
            )
        draws = draws or self.delta is not None or self.growth == AUTO
        seeded = draws and self.random_state is not None
        names = [field.name for field in fields(Spec) if field.name != "recalibration"]
        options = {name: getattr(self, name) for name in names}
        options |= {"classes": classes, "random_state": int(random.randint(2**31)) if seeded else None}
        controller = RiskController(**options, check=self.check)
        controller.spec.require_alpha(classes)
        return controller

    def _take_over_what_was_learned(self, controller: RiskController) -> None:
        known = self.controller_
        if controller.spec.growth_is_open:
            controller.growth = known.growth
        if self.recalibrate is not None and known.recalibration is not None:
            now, then = np.asarray(controller.classes).tolist(), known.classes_.tolist()
            if now != then:
                raise ValueError(f"The map was fitted for the classes {then}; calibrate has {now}.")
            controller.recalibration = known.recalibration

    def _require_nothing_to_fit(self) -> None:
        if not (self.recalibrate is None or self._recalibrates_by_default):
            raise ValueError(
                f"recalibrate={self.recalibrate!r} is for a model that fit trains, and a FrozenEstimator is "
                "not trained. Leave it out here, and pass it to calibrate: calibrate(X, y, recalibrate=...) "
                "sets rows apart to fit the map on."
            )

    @property
    def _recalibrates_by_default(self) -> bool:
        return isinstance(self.recalibrate, str) and self.recalibrate == AUTO

    def _learned(
        self,
        spec: Spec,
        recalibrator: Recalibrator | None,
        X: Any,
        y: NDArray[Any],
        train: NDArray[np.int64],
        rows: Batch,
        seed: int,
        fit_params: dict[str, Any],
    ) -> Learned:
        """Fit the map and choose the growth rule on predictions of the training rows.

        By default, there is no map where one can't be fitted, or would be fitted on too few rows.
        """
        can_do_without = self._recalibrates_by_default and not spec.growth_is_open
        if self._recalibrates_by_default and not may_learn(rows):
            recalibrator = None
        if recalibrator is None and not spec.growth_is_open:
            return Learned(spec)
        folds = split_folds(len(train), _FOLDS, clusters=rows.clusters, random_state=seed)
        try:
            require_two_classes(rows, folds, spec.classes)
        except ValueError:
            if can_do_without:
                return Learned(spec)
            raise
        try:
            proba = self._out_of_fold(X, y, train, folds, spec.classes, fit_params)
            return fitted(spec, spec.classes, replace(rows, proba=proba), recalibrator)
        except Exception as error:
            if not can_do_without:
                raise
            warnings.warn(
                f"The probabilities are not recalibrated, because the predictions for it failed: {error} To "
                "use the probabilities as they are without this warning, pass recalibrate=None.",
                CalibrationWarning,
                stacklevel=level_of_caller(),
            )
            return Learned(spec)

    def _out_of_fold(
        self,
        X: Any,
        y: NDArray[Any],
        train: NDArray[np.int64],
        folds: Sequence[NDArray[np.int64]],
        classes: Classes,
        fit_params: dict[str, Any],
    ) -> NDArray[Any]:
        """Predict each training row with a model that was trained on the other folds."""
        parts = []
        for fold in folds:
            model = self._trained(X, y, np.delete(train, fold), fit_params)
            parts.append(ordered_probabilities(model, _safe_indexing(X, train[fold]), classes))
        proba: NDArray[Any] = np.concatenate(parts)[np.argsort(np.concatenate(folds))]
        return proba

    def _trained(self, X: Any, y: NDArray[Any], rows: NDArray[np.int64], fit_params: dict[str, Any]) -> Any:
        params = _check_method_params(X, fit_params, rows)
        return clone(self.estimator).fit(_safe_indexing(X, rows), y[rows], **params)

    def _calibrate(self, estimator: Any, controller: RiskController, X: Any, y: Any, **options: Any) -> Self:
        controller.calibrate(ordered_probabilities(estimator, X, controller.classes), y, **options)
        self.estimator_, self.controller_ = estimator, controller
        self.classes_ = np.unique(controller.classes)
        return self

    def _require_fitted(self) -> None:
        check_is_fitted(
            self,
            "controller_",
            msg="This %(name)s is not fitted yet; call fit(X, y), or pass a trained model in a "
            "FrozenEstimator and call calibrate(X, y).",
        )
