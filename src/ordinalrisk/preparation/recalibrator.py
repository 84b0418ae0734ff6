"""The transformer that people use: fit it on scores and labels, then turn scores into probabilities."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from msgspec import to_builtins
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.labels import Classes, as_classes, class_indices, ordered_categories
from ordinalrisk.inputs.numbers import checked_seed, is_whole
from ordinalrisk.inputs.probability_matrix import as_matrix
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.inputs.row_names import RowNames
from ordinalrisk.inputs.training import sorted_labels, warn_if_alphabetical
from ordinalrisk.recalibration.choosing import BLENDED, METHODS, MOST_COMPARED, candidates, choose
from ordinalrisk.recalibration.fitting import FitRows
from ordinalrisk.recalibration.reading import KINDS, as_scores, floor_of, kind_of, log_probabilities
from ordinalrisk.recalibration.recalibration import Recalibration
from ordinalrisk.saving.document_with_digests import FilePath, naming, require
from ordinalrisk.saving.recalibrator_document import RecalibratorDocument
from ordinalrisk.saving.shared_fields import saved_names

__all__ = ["Recalibrator", "recalibrator_of"]

_MOST_FITTED = 200_000


class Recalibrator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Turn scores of a model into probabilities of the labels.

    The guarantee of a :class:`RiskController` holds for any scores, but its sets are smallest if the scores
    are right. This transformer learns from rows with known labels how scores and labels go together. Fit it
    on rows that you do not calibrate with: the out-of-fold predictions of training rows, or rows set apart.

    Each map is fitted to maximize the log score

    .. math:: \frac{1}{n} \sum_{i=1}^n \log q_{y_i}(x_i).

    With :math:`\ell_j` the logarithm of the score of label ``j``, the maps are

    ==================== ==================================================================================
    identity             :math:`q_k = p_k`
    mixture              :math:`q_k = (1 - w)\,p_k + w\,\pi_k`, with :math:`\pi` the shares of the labels
    temperature          :math:`q_k \propto \exp(a\,\ell_k + b_k)`
    isotonic             :math:`P(y \le k) = f_k(\sum_{j \le k} p_j)`, with non-decreasing :math:`f_k`
    ordered_regression   :math:`P(y \le k) = \sigma(c_k - \sum_j w_j \ell_j - v \sum_j j\,p_j)`
    regression           :math:`q_k \propto \exp(b_k + \sum_j W_{kj}\,\ell_j)`
    ==================== ==================================================================================

    The last two also take scores on another scale: the 1 to 5 of a judge for labels on 13 levels.

    By default, the probabilities are the mean of the identity and of both regressions,

    .. math:: q_k = \sum_m w_m\, q_k^{(m)},

    with the weights :math:`w` that have the best log score on rows that the maps were not fitted on. So that
    few rows do no harm, 40 rows are added in which the identity gives the label twice the probability that
    the regressions give it. Scores on another scale have no identity.

    Parameters
    ----------
    method : str
        The name of a map, or ``"auto"``: the weighted mean of the maps that is described above.
    classes : sequence, optional
        The labels in order. By default, the categories of an ordered categorical ``y``; else ``0 .. K'-1`` if
        they include all labels of ``y``; else the sorted labels of ``y``.
    scores : {"auto", "probabilities", "logits"}
        What the scores are. Log-probabilities are logits too. By default, scores with a negative number are
        logits, and rows that all sum to 1 are probabilities; anything else raises an error.
    folds : int
        The number of folds of the cross-validation.
    random_state : int
        The seed of the folds.

    Attributes
    ----------
    classes_ : array
        The labels in order; the columns of :meth:`transform`.
    method_ : str
        The name of the map, ``"blend"`` for a mean of several.
    weights_ : dict
        How much each map counts.
    log_scores_ : dict
        The cross-validated mean log score of each map, and of their mean; larger is better.
    gain_ : float
        By how much the mean log score is better than that of the scores as they are. NaN if these were not
        compared.
    recalibration_ : Recalibration
        The fitted map; :class:`RiskController` takes it as ``recalibration``.

    Notes
    -----
    The maps are computed from additions, products and quotients alone, so that the same scores give the same
    bits on every machine and in every batch.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 1], size=2000)
    >>> y = np.array([rng.choice(3, p=row) for row in proba])
    >>> sure = proba**3 / (proba**3).sum(axis=1, keepdims=True)  # far too sure of itself
    >>> recalibrator = Recalibrator("temperature").fit(sure[:1000], y[:1000])
    >>> bool(abs(recalibrator.transform(sure[1000:]) - proba[1000:]).max() < 0.1)
    True
    """

    classes_: NDArray[Any]
    recalibration_: Recalibration

    def __init__(
        self,
        method: str = "auto",
        *,
        classes: Any = None,
        scores: str = "auto",
        folds: int = 5,
        random_state: int = 0,
    ) -> None:
        self.method = method
        self.classes = classes
        self.scores = scores
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, clusters: Any = None) -> Self:
        """Fit the map on rows with known labels.

        Parameters
        ----------
        X : array-like of shape (n, K')
            The scores: probabilities or logits, with columns in the order of their labels.
        y : array-like of shape (n,)
            The labels.
        clusters : array-like of shape (n,), optional
            The patient, or other unit, of each row. The cross-validation keeps the rows of a unit together.

        Returns
        -------
        Recalibrator
            The fitted transformer.

        Examples
        --------
        >>> judge = Recalibrator(classes=[1, 2, 3])
        >>> judge.fit([[0.9, 0.1], [0.2, 0.8]] * 20, [1, 3] * 20).recalibration_.n_scores
        2
        """
        self._require_valid_parameters()
        require_same_rows(X=X, y=y, clusters=clusters)
        given = as_matrix(X, "scores", fewest=1)
        kind = kind_of(given) if self.scores == "auto" else self.scores
        matrix = to_host(as_scores(given, kind))
        n_rows, n_scores = matrix.shape
        self.classes_ = self._labels_in_order(y, n_scores)
        labels = np.asarray(to_host(class_indices(y, self.classes_, n_rows)), np.int64)
        floor = floor_of(matrix, kind)
        logs = np.column_stack(log_probabilities(matrix, kind, floor))
        rows = FitRows(logs, labels, len(self.classes_))
        fold_of = self._folds(n_rows, clusters)
        if n_rows > _MOST_FITTED:
            some = np.sort(np.random.default_rng(self.random_state).permutation(n_rows)[:_MOST_FITTED])
            rows, fold_of = rows.some(some), fold_of[some]
        fits = candidates(rows)
        if self.method not in {"auto", *fits}:
            raise ValueError(
                f"method={self.method!r} needs one score for each label; got {n_scores} scores and "
                f"{len(self.classes_)} labels. Use one of {list(fits)}."
            )
        names = [name for name in BLENDED if name in fits] if self.method == "auto" else [self.method]
        with threadpool_limits(1, "blas"):  # on small tables, threads wait for each other
            chosen = choose(rows, fold_of, {name: fits[name] for name in names})
        found = Recalibration(chosen.map, kind, floor, n_scores, n_rows)
        return self._use(self.classes_, found, chosen.log_scores)

    def transform(self, X: Any) -> Any:
        """Turn scores into probabilities.

        Parameters
        ----------
        X : array-like of shape (m, K')
            Scores of the same kind as in :meth:`fit`.

        Returns
        -------
        array of float64 of shape (m, K)
            The probabilities of the labels; on the GPU if the scores are there.

        Examples
        --------
        >>> fitted = Recalibrator("temperature").fit([[0.9, 0.1], [0.2, 0.8]] * 20, [0, 1] * 20)
        >>> fitted.transform([[0.5, 0.5]]).shape
        (1, 2)
        """
        check_is_fitted(self)
        return self.recalibration_(X)

    def save(self, path: FilePath) -> None:
        """Write the fitted map to a JSON file, whole or not at all.

        The file has a digest of each field, which reveals accidental damage. It holds the map, the labels and
        what was compared to choose the map, but no rows.

        Parameters
        ----------
        path : path
            The file to write; an existing file is replaced.

        Examples
        --------
        >>> import tempfile
        >>> fitted = Recalibrator("temperature").fit([[0.9, 0.1], [0.2, 0.8]] * 20, [0, 1] * 20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fitted.save(f"{folder}/map.json")
        ...     again = Recalibrator.load(f"{folder}/map.json")
        >>> bool((again.transform([[0.5, 0.5]]) == fitted.transform([[0.5, 0.5]])).all())
        True
        """
        check_is_fitted(self)
        values = {
            "classes": saved_names(self.classes_.tolist()),
            "recalibration": to_builtins(self.recalibration_),
            "method": self.method,
            "folds": int(self.folds),
            "random_state": int(self.random_state),
            "log_scores": [{"map": name, "mean": mean} for name, mean in self.log_scores_.items()],
        }
        RecalibratorDocument.write(values, path)

    @classmethod
    def load(cls, path: FilePath) -> Self:
        """Load a fitted map that :meth:`save` wrote; its probabilities are identical bit for bit.

        The parameters are those that it was fitted with. Do not calibrate on rows that it was fitted on.

        Parameters
        ----------
        path : path
            The file to read.

        Returns
        -------
        Recalibrator
            The fitted transformer.

        Raises
        ------
        ValueError
            If the file was cut, edited or written by another schema; the message names the field.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/map.json"
        ...     Recalibrator("mixture").fit([[0.9, 0.1], [0.2, 0.8]] * 20, [0, 1] * 20).save(path)
        ...     Recalibrator.load(path).recalibration_.in_words()
        'mixture, fitted on 40 rows'
        """
        saved, field = RecalibratorDocument.read(path), partial(naming, path)
        found = saved.recalibration
        with field("classes"):
            classes = as_classes(saved.classes)
            require(len(classes) == found.n_labels, "must have a label for each probability of the map")
        with field("random_state"):
            checked_seed(saved.random_state)
        made = cls(
            saved.method,
            classes=saved.classes,
            scores=found.scores,
            folds=saved.folds,
            random_state=saved.random_state,
        )
        log_scores = {each.map: each.mean for each in saved.log_scores}
        with field("log_scores"):
            require(found.method in log_scores, "must have the map that was chosen")
            require(len(log_scores) == len(saved.log_scores), "must have each map once")
        with field("method"):
            require(saved.method in ("auto", found.method), "must be auto, or the method of the map")
        return made._use(classes, found, log_scores)

    def _use(self, classes: Classes, fitted: Recalibration, log_scores: dict[str, float]) -> Self:
        self.classes_, self.recalibration_, self.n_features_in_ = classes, fitted, fitted.n_scores
        self.method_, self.weights_, self.log_scores_ = (
            fitted.method,
            fitted.map.weights_of_maps(),
            log_scores,
        )
        self.gain_ = log_scores[fitted.method] - log_scores.get("identity", np.nan)
        return self

    def _require_valid_parameters(self) -> None:
        if self.method != "auto" and self.method not in METHODS:
            raise ValueError(f"method={self.method!r} is not known; the names are {['auto', *METHODS]}.")
        if self.scores != "auto" and self.scores not in KINDS:
            raise ValueError(f"scores={self.scores!r} is not known; the names are {['auto', *KINDS]}.")
        if not is_whole(self.folds) or self.folds < 2:
            raise ValueError(f"folds must be a whole number from 2 on; got {self.folds!r}.")
        checked_seed(self.random_state)

    def _take(self, classes: Any = None, scores: str | None = None, random_state: Any = None) -> None:
        """Set parameters that were left open; those that were given must be the same."""
        if classes is not None:
            own = None if self.classes is None else as_classes(self.classes).tolist()
            if own is not None and own != (others := as_classes(classes).tolist()):
                raise ValueError(
                    f"The Recalibrator has the classes {own}, the calibration {others}. Make them equal, or "
                    "leave them out of the Recalibrator."
                )
            self.classes = classes
        if scores is not None:
            if self.scores not in ("auto", scores):
                raise ValueError(
                    f"The Recalibrator is for {self.scores}, but the scores are {scores}. Leave out scores= "
                    "of the Recalibrator."
                )
            self.scores = scores

    def _labels_in_order(self, y: Any, n_scores: int) -> NDArray[Any]:
        if self.classes is not None:
            return as_classes(self.classes)
        if (categories := ordered_categories(y)) is not None:
            return as_classes(categories)
        found = sorted_labels(column_or_1d(to_numpy(y, "y")))
        warn_if_alphabetical(found)
        positions = np.arange(n_scores)
        return positions if np.isin(found, positions).all() else found

    def _folds(self, n_rows: int, clusters: Any) -> NDArray[np.int64]:
        """Return the fold of each row, -1 for rows that are not compared."""
        units = np.arange(n_rows)
        if clusters is not None:
            units = np.asarray(RowNames("clusters").numbered(clusters, n_rows), np.int64)
        n_units = int(units.max()) + 1
        if n_units < self.folds:
            what = "rows" if clusters is None else "clusters"
            raise ValueError(f"{self.folds} folds need at least {self.folds} {what}; got {n_units}.")
        place = np.random.default_rng(self.random_state).permutation(n_units)
        most = max(self.folds, n_units * MOST_COMPARED // n_rows)
        fold = np.where(place < most, place % self.folds, -1)
        return fold[units]


def recalibrator_of(recalibrate: Any, **parameters: Any) -> Recalibrator:
    """Return an unfitted recalibrator for a method's name or a recalibrator, with these parameters too.

    A recalibrator keeps its own ``random_state``; other parameters that differ from its own raise an error.
    """
    if isinstance(recalibrate, Recalibrator):
        if hasattr(recalibrate, "recalibration_"):
            raise ValueError(
                "recalibrate must be an unfitted Recalibrator or the name of a method; pass a fitted one as "
                "RiskController(recalibration=...)."
            )
        made: Recalibrator = clone(recalibrate)
        made._require_valid_parameters()
        made._take(**parameters)
    else:
        made = Recalibrator(recalibrate, **parameters)
        made._require_valid_parameters()
    return made
