r"""Estimate how a new population differs from that of the calibration rows.

Calibration rows with weights :math:`dP_{new} / dP_{cal}` represent the new population (Tibshirani et al.
2019). These ratios are known only if the shift is by design. The functions here estimate them: from features
if the features have shifted (covariate shift), from predictions if the class shares have shifted (label
shift).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.display.text_table import listed
from ordinalrisk.growth.rules import require_valid
from ordinalrisk.inputs.arrays import library_of, to_numpy
from ordinalrisk.inputs.labels import Classes, class_indices, require_column_order, resolve_classes
from ordinalrisk.inputs.numbers import as_fraction, checked_seed
from ordinalrisk.inputs.probability_matrix import as_matrix
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.splitting import split_folds

__all__ = ["accepted_rows", "covariate_ratios", "effective_rows", "label_ratios"]

Ratios = NDArray[np.float64]

_ROUNDING = 1e-9  # of a solved linear system
_LARGEST = np.finfo(np.float64).max
_FEW = 10  # warn if the effective number of rows is less than the number of rows divided by this


def covariate_ratios(
    X_cal: Any, X_new: Any, *, classifier: Any = None, folds: int = 5, random_state: int = 0
) -> tuple[Ratios, Ratios]:
    r"""Estimate the likelihood ratio of each row's features: new population over calibration population.

    A classifier learns to distinguish the two samples. With :math:`q(x)` its probability that ``x`` is new,

    .. math:: w(x) = \frac{dP_{new}}{dP_{cal}}(x) = \frac{q(x)}{1 - q(x)} \cdot \frac{n_{cal}}{n_{new}}.

    The ratio of each row comes from a classifier that was not trained on that row.

    Parameters
    ----------
    X_cal, X_new : array-like of shape (n, d) and (m, d)
        Features of the calibration rows and of new rows. If both are pandas frames, the classifier gets a
        frame.
    classifier : scikit-learn classifier, optional
        A classifier with ``predict_proba``; clones of it are trained. The default is a logistic regression on
        standardized features, which is right if the logarithm of the ratio is linear in the features.
    folds : int
        The number of folds that each sample is split into.
    random_state : int
        The seed of the folds.

    Returns
    -------
    ratios_cal, ratios_new : array of float
        The ratios, scaled so that the calibration rows have mean 1, as the true ratios have in expectation.
        A calibration uses only their proportions.

    Warns
    -----
    UserWarning
        If the effective number of calibration rows is less than a tenth of their number; see
        :func:`effective_rows`.

    Notes
    -----
    With the true ratios the guarantee holds exactly for the new population. With estimated ratios it holds
    only as far as the estimates are right.

    References
    ----------
    Tibshirani, Barber, Candès, Ramdas. Conformal Prediction Under Covariate Shift. NeurIPS 2019.

    Examples
    --------
    The feature of new rows is larger by 1, and the true ratio is :math:`e^{x - 1/2}`.

    >>> rng = np.random.default_rng(0)
    >>> X_cal, X_new = rng.normal(0, 1, (4000, 1)), rng.normal(1, 1, (4000, 1))
    >>> ratios_cal, ratios_new = covariate_ratios(X_cal, X_new)
    >>> bool(np.median(ratios_cal / np.exp(X_cal[:, 0] - 0.5)).round(1) == 1)
    True
    >>> round(effective_rows(ratios_cal) / 4000, 1)
    0.4
    """
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    random_state = checked_seed(random_state)
    X, n_cal, n_new = _stacked(X_cal, X_new)
    if classifier is None:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    elif not hasattr(classifier, "predict_proba"):
        raise ValueError(
            f"{classifier!r} has no predict_proba, but the ratios come from class probabilities; use another "
            "classifier."
        )
    is_new = np.arange(n_cal + n_new) >= n_cal
    odds = np.empty(n_cal + n_new)
    halves = (split_folds(n, folds, random_state=random_state) for n in (n_cal, n_new))
    for cal, new in zip(*halves, strict=True):
        held_out = np.concatenate([cal, n_cal + new])
        others = np.setdiff1d(np.arange(n_cal + n_new), held_out, assume_unique=True)
        model = clone(classifier).fit(_safe_indexing(X, others), is_new[others])
        proba = np.asarray(model.predict_proba(_safe_indexing(X, held_out)), np.float64)
        prior = (~is_new[others]).sum() / is_new[others].sum()
        with np.errstate(divide="ignore"):
            odds[held_out] = proba[:, 1] / proba[:, 0] * prior
    if not np.isfinite(odds).all():
        row = int((~np.isfinite(odds)).argmax())
        where = f"X_new[{row - n_cal}]" if is_new[row] else f"X_cal[{row}]"
        raise ValueError(
            f"The classifier is certain that {where} is a new row, so its ratio would be infinite: the "
            "samples do not overlap there. Use a classifier with smoother probabilities, or leave such rows "
            "out."
        )
    ratios_cal, ratios_new = odds[:n_cal], odds[n_cal:]
    if not ratios_cal.any():
        raise ValueError(
            "The classifier is certain about every calibration row: X_cal and X_new do not overlap, so the "
            "calibration rows can't represent the new ones."
        )
    _warn_of_few(ratios_cal)
    scale = ratios_cal.mean()
    return ratios_cal / scale, ratios_new / scale


def accepted_rows(weights: Any, *, largest: Any, random_state: int | None = None) -> NDArray[np.int64]:
    r"""Draw a sample of the new population from the calibration rows, by rejection.

    .. math:: P(\text{row } i \text{ is accepted}) = w_i / w_{max}

    Each row is accepted independently of the others. If the rows are independent draws, the weights are the
    true ratios, up to a factor, and were not computed from these rows, and no new row is of a kind that
    calibration rows never have, then the accepted rows are independent draws from the new population. So
    every guarantee for independent rows holds in the new population, even with ``delta``, and neither
    calibration nor prediction needs weights. Guarantees for clusters do not hold. With estimated ratios a
    guarantee holds only as far as the estimates are right.

    Parameters
    ----------
    weights : array-like of shape (n,)
        The likelihood ratio of each row; if the class shares have shifted, the ratio of its class.
    largest : number
        An upper bound of all weights in the population, known without these rows. If the class shares have
        shifted, pass the largest ratio. If the shift is by design, pass the largest weight of the design.
    random_state : int, optional
        The seed of the draw; a random one by default. With a fixed seed the rows must come in random order.
        If you try several seeds and keep the best threshold, the guarantee is lost.

    Returns
    -------
    array of int
        The positions of the accepted rows, ascending; about ``sum(weights) / largest`` of them.

    References
    ----------
    Park, Dobriban, Lee, Bastani. PAC Prediction Sets Under Covariate Shift. ICLR 2022.

    Examples
    --------
    The last class is now 1.3 times as frequent as before, the others are 0.6 times as frequent.

    >>> from ordinalrisk import RiskController
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4], size=1000)
    >>> y = np.array([rng.choice(3, p=p) for p in proba])
    >>> ratios = np.array([0.6, 0.6, 1.3])
    >>> rows = accepted_rows(ratios[y], largest=ratios.max(), random_state=0)
    >>> len(rows)
    750
    >>> controller = RiskController(alpha=0.1, delta=0.1).calibrate(proba[rows], y[rows])
    """
    w = _checked_weights(weights)
    exact = as_fraction(largest, "largest")
    if not 0 < exact <= _LARGEST:
        raise ValueError(f"largest must be a positive number that a float can hold; got {largest!r}.")
    bound = float(exact)
    if (w > bound).any():
        row = int(w.argmax())
        raise ValueError(
            f"weights[{row}] is {w[row]}, but largest={largest}; pass an upper bound of all weights in the "
            "population as largest."
        )
    random_state = None if random_state is None else checked_seed(random_state)
    return np.flatnonzero(np.random.default_rng(random_state).random(len(w)) * bound < w)


def effective_rows(weights: Any) -> float:
    r"""Return how many equally weighted rows carry as much information as these weighted rows.

    .. math:: \frac{(\sum_i w_i)^2}{\sum_i w_i^2}

    Parameters
    ----------
    weights : array-like of shape (n,)
        The weight of each row, not negative.

    Returns
    -------
    float
        A number from 1 (one row has all the weight) to ``n`` (all weights are equal).

    Examples
    --------
    >>> effective_rows([1, 1, 1, 1]), effective_rows([1, 0, 0, 0])
    (4.0, 1.0)
    """
    w = _checked_weights(weights)
    relative = w / w.max()  # squares of large weights would overflow
    return float(relative.sum() ** 2 / (relative**2).sum())


def _checked_weights(weights: Any) -> NDArray[Any]:
    w = to_numpy(weights, "weights")
    if w.ndim != 1 or not len(w) or w.dtype.kind not in "biuf":
        raise ValueError(
            f"weights must have one number for each row; got an array of shape {w.shape} and type {w.dtype}."
        )
    wrong = ~(np.isfinite(w) & (w >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"weights must be finite and not negative; weights[{row}] is {w[row]}.")
    if not w.any():
        raise ValueError("weights are all zero; at least one must be positive.")
    return w


def label_ratios(proba_cal: Any, y_cal: Any, proba_new: Any, *, classes: Any = None) -> Ratios:
    r"""Estimate how much the share of each class has changed, from new rows without labels.

    If only the shares of the classes have changed, the labels predicted for new rows follow from the
    confusion matrix of the calibration rows (black-box shift estimation):

    .. math:: \sum_k C_{jk} w_k = \mu_j, \qquad
              C_{jk} = P_{cal}(\hat y = j, y = k), \quad \mu_j = P_{new}(\hat y = j)

    with the most probable label as :math:`\hat y`. The ratios are estimates from both samples: with weak
    predictions or few rows they can be far off, and a calibration that uses them keeps ``alpha`` only as far
    as they are right. A guarantee for each true class (``condition_on="label"``) needs no ratios. If the
    solution has a negative entry, the function returns the non-negative least-squares solution instead,
    scaled so that the implied class shares sum to 1.

    Parameters
    ----------
    proba_cal, y_cal : array-like of shape (n, K) and (n,)
        Class probabilities and true labels of the calibration rows, which the model was not trained on.
    proba_new : array-like of shape (m, K)
        Class probabilities of new rows.
    classes : sequence, optional
        The labels in order, as for :class:`~ordinalrisk.RiskController`.

    Returns
    -------
    array of float of shape (K,)
        :math:`q_k / p_k`, the weight of each class: ``controller.calibrate(..., class_ratios=ratios)``.

    Warns
    -----
    UserWarning
        If an entry was negative, which means that the predictions say little about some classes.

    References
    ----------
    Lipton, Wang, Smola. Detecting and Correcting for Label Shift with Black Box Predictors. ICML 2018.

    Examples
    --------
    The model predicts the last class for half of the new rows, and for a quarter of the calibration rows.

    >>> proba_cal, y_cal = np.eye(3)[[0, 0, 1, 2]], [0, 0, 1, 2]
    >>> label_ratios(proba_cal, y_cal, np.eye(3)[[0, 1, 2, 2]])
    array([0.5, 1. , 2. ])
    """
    require_same_rows(proba_cal=proba_cal, y_cal=y_cal)
    samples = {"proba_cal": proba_cal, "proba_new": proba_new}
    cal, new = (as_matrix(to_numpy(proba, name), name) for name, proba in samples.items())
    K = cal.shape[1]
    if new.shape[1] != K:
        raise ValueError(f"proba_cal has {K} columns, but proba_new has {new.shape[1]}.")
    known = resolve_classes(classes, y_cal, K)
    for (name, proba), matrix in zip(samples.items(), (cal, new), strict=True):
        require_column_order(proba, known)
        try:
            require_valid(matrix)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    labels = class_indices(y_cal, known, len(cal), "y_cal")
    code = cal.argmax(axis=1) * K + labels
    confusion = np.bincount(code, minlength=K * K).reshape(K, K) / len(cal)
    predicted = np.bincount(new.argmax(axis=1), minlength=K) / len(new)
    _require_regular(confusion, known)
    ratios: NDArray[Any] = np.linalg.solve(confusion, predicted)
    negative = [repr(label) for label in known[ratios < -_ROUNDING].tolist()]
    if negative:
        warnings.warn(
            f"The predictions hardly show how the share of {listed(negative)} has changed: the estimated "
            "ratio is negative, so all ratios are uncertain. Use more rows, or merge classes that the model "
            "confuses.",
            stacklevel=2,
        )
    if (ratios < 0).any():
        from scipy.optimize import nnls

        ratios = nnls(confusion, predicted)[0]
        ratios /= confusion.sum(axis=0) @ ratios
    return ratios


def _stacked(X_cal: Any, X_new: Any) -> tuple[Any, int, int]:
    """Return both samples in one table, and the number of rows of each."""
    shapes = [tuple(X.shape) if hasattr(X, "shape") else np.shape(X) for X in (X_cal, X_new)]
    if any(len(shape) != 2 or shape[0] < 2 for shape in shapes) or shapes[0][1] != shapes[1][1]:
        raise ValueError(
            "X_cal and X_new must be two tables of at least two rows, with the same features as columns; "
            f"got shapes {shapes[0]} and {shapes[1]}."
        )
    if library_of(X_cal) == library_of(X_new) == "pandas":
        import pandas as pd

        if list(X_cal.columns) != list(X_new.columns):
            raise ValueError(
                f"X_cal has the columns {list(X_cal.columns)}, but X_new has {list(X_new.columns)}."
            )
        return pd.concat([X_cal, X_new], ignore_index=True), shapes[0][0], shapes[1][0]
    return np.concatenate([to_numpy(X_cal, "X_cal"), to_numpy(X_new, "X_new")]), shapes[0][0], shapes[1][0]


def _warn_of_few(ratios: Ratios) -> None:
    n, count = len(ratios), effective_rows(ratios)
    if count * _FEW < n:
        shares = np.cumsum(np.sort(ratios)[::-1]) / ratios.sum()
        half = int(np.searchsorted(shares, 0.5)) + 1
        warnings.warn(
            f"The {n} calibration rows count as {count:.3g} rows: {half} of them carry half of the weight. "
            "The new rows differ so much that sets will be large and the ratios are uncertain.",
            stacklevel=3,
        )


def _require_regular(confusion: NDArray[np.float64], classes: Classes) -> None:
    for axis, problem in enumerate(("has no calibration row", "is predicted for no calibration row")):
        share = confusion.sum(axis=axis)
        if not share.all():
            raise ValueError(
                f"Class {classes.tolist()[share.argmin()]!r} {problem}, so predictions can't show how the "
                "class shares have changed: merge it with a neighbour, or use more rows."
            )
    if np.linalg.matrix_rank(confusion) < len(classes):
        raise ValueError(
            "The confusion matrix of the calibration rows is singular: the model can't distinguish some "
            "classes, so predictions can't show how the class shares have changed. Merge those classes, or "
            "use more rows."
        )
