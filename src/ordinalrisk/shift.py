r"""When new rows are unlike the calibration rows: how much more often each kind occurs among them.

Rows that are weighted by :math:`dP_{new} / dP_{cal}` stand for the new population (Tibshirani et al. 2019).
These ratios are known only where the shift is by design; here they are estimated, from features alone for a
shift of the features (covariate shift), from predictions for a shift of the classes (label shift).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.display.text_table import listed
from ordinalrisk.growth.rules import require_valid
from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.labels import Classes, class_indices, require_column_order, resolve_classes
from ordinalrisk.inputs.matrix import as_matrix
from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.inputs.splitting import checked_seed, split_folds

__all__ = ["accepted_rows", "covariate_ratios", "effective_rows", "label_ratios"]

Ratios = NDArray[np.float64]

_ROUNDING = 1e-9  # of a solved system
_LARGEST = np.finfo(np.float64).max
_FEW = 10  # rows that count as fewer than one in so many deserve a warning


def covariate_ratios(
    X_cal: Any, X_new: Any, *, classifier: Any = None, folds: int = 5, seed: int = 0
) -> tuple[Ratios, Ratios]:
    r"""How much more often each row's features occur among new rows than among calibration rows.

    A classifier learns to tell the two samples apart. With :math:`q(x)` its probability that ``x`` is new,

    .. math:: w(x) = \frac{dP_{new}}{dP_{cal}}(x) = \frac{q(x)}{1 - q(x)} \cdot \frac{n_{cal}}{n_{new}}.

    Each row's ratio comes from a classifier that was not trained on that row.

    Parameters
    ----------
    X_cal, X_new : array-like of shape (n, d) and (m, d)
        Features of the calibration rows and of new ones; two pandas frames stay frames for the classifier.
    classifier : scikit-learn classifier, optional
        With ``predict_proba``; clones of it are trained. By default a logistic regression on standardized
        features, which is right where the logarithm of the ratio is linear in them.
    folds : int
        How many parts each sample is cut into.
    seed : int
        The seed of that cut.

    Returns
    -------
    ratios_cal, ratios_new : array of float
        On one scale, on which the calibration rows have mean 1, as the true ratios have in expectation. Only
        proportions matter to a calibration.

    Warns
    -----
    UserWarning
        Where the calibration rows count as fewer than a tenth of them: see :func:`effective_rows`.

    Notes
    -----
    With the true ratios the guarantee is for the new population exactly; with estimated ones it holds as far
    as they are right.

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

    seed = checked_seed(seed)
    X, n_cal, n_new = _stacked(X_cal, X_new)
    if classifier is None:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    elif not hasattr(classifier, "predict_proba"):
        raise ValueError(f"{classifier!r} has no predict_proba, and ratios are made from probabilities.")
    is_new = np.arange(n_cal + n_new) >= n_cal
    odds = np.empty(n_cal + n_new)
    halves = (split_folds(n, folds, random_state=seed) for n in (n_cal, n_new))
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
            f"The classifier is certain that {where} is new, so its ratio would be infinite: the samples do "
            "not overlap there. Take a classifier with smoother probabilities, or leave such rows out."
        )
    ratios_cal, ratios_new = odds[:n_cal], odds[n_cal:]
    if not ratios_cal.any():
        raise ValueError("The classifier is certain of every calibration row: the samples do not overlap.")
    _warn_of_few(ratios_cal)
    scale = ratios_cal.mean()
    return ratios_cal / scale, ratios_new / scale


def accepted_rows(weights: Any, *, largest: Any, random_state: int | None = None) -> NDArray[np.int64]:
    r"""Draw from the calibration rows a sample of the new population, by rejection.

    .. math:: P(\text{row } i \text{ is accepted}) = w_i / w_{max}

    Rows are accepted independently of each other. If they are independent draws and the weights are the true
    ratios, up to a factor, then the accepted ones are independent draws from the new population. So every
    promise for independent rows holds there, also the one with ``delta``, without weights at calibration or
    prediction; promises for clusters do not. With estimated ratios it holds as far as they are right.

    Parameters
    ----------
    weights : array-like of shape (n,)
        The likelihood ratio of each row; for a shift of the classes, the ratio of its class.
    largest : number
        No row of the population has a larger weight than this. It must be known without these rows: for a
        shift of the classes it is the largest ratio, for a shift by design the largest of the design.
    random_state : int, optional
        The seed of the draw; a random one by default. With a fixed seed the rows must come in random order.
        Whoever tries several seeds and keeps the best threshold has no promise.

    Returns
    -------
    array of int
        The positions of the accepted rows, ascending; about ``sum(weights) / largest`` of them.

    References
    ----------
    Park, Dobriban, Lee, Bastani. PAC Prediction Sets Under Covariate Shift. ICLR 2022.

    Examples
    --------
    The last class is 1.3 times as frequent as it was, the others are 0.6 times as frequent.

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
            f"weights[{row}] is {w[row]}, larger than largest={largest}; largest must bound every weight of "
            "the population."
        )
    seed = None if random_state is None else checked_seed(random_state, "random_state")
    accepted: NDArray[np.int64] = np.flatnonzero(np.random.default_rng(seed).random(len(w)) * bound < w)
    return accepted


def effective_rows(weights: Any) -> float:
    r"""How many rows of equal weight tell as much.

    .. math:: \frac{(\sum_i w_i)^2}{\sum_i w_i^2}

    Parameters
    ----------
    weights : array-like of shape (n,)
        The weight of each row, not negative.

    Returns
    -------
    float
        From 1, where one row has all the weight, to ``n``.

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
        raise ValueError(f"weights must be a number for each row; got shape {w.shape} of type {w.dtype}.")
    wrong = ~(np.isfinite(w) & (w >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"weights must be finite and not negative; weights[{row}] is {w[row]}.")
    if not w.any():
        raise ValueError("weights are all zero; at least one must be positive.")
    return w


def label_ratios(proba_cal: Any, y_cal: Any, proba_new: Any, *, classes: Any = None) -> Ratios:
    r"""How much more often each class occurs among new rows than among calibration rows, without new labels.

    If only the shares of the classes have changed, the labels predicted for new rows follow from the
    confusion matrix of the calibration rows (black-box shift estimation):

    .. math:: \sum_k C_{jk} w_k = \mu_j, \qquad
              C_{jk} = P_{cal}(\hat y = j, y = k), \quad \mu_j = P_{new}(\hat y = j)

    with the most probable label as :math:`\hat y`. The ratios are estimates from both samples: with weak
    predictions or few rows they can be far off, and a calibration that uses them keeps ``alpha`` only as far
    as they are right. A promise for each true class (``condition_on="label"``) needs no ratios. Where the
    solution has a negative entry, the non-negative one of least squares takes its place, scaled so that the
    shares of the classes that it means add up to 1.

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
        :math:`q_k / p_k`, the weight of each class: ``controller.calibrate(..., class_weight=ratios)``.

    Warns
    -----
    UserWarning
        Where that was needed: the predictions then tell little about some classes.

    References
    ----------
    Lipton, Wang, Smola. Detecting and Correcting for Label Shift with Black Box Predictors. ICML 2018.

    Examples
    --------
    Half of the new rows are predicted to be of the last class, and one in four of the calibration rows.

    >>> proba_cal, y_cal = np.eye(3)[[0, 0, 1, 2]], [0, 0, 1, 2]
    >>> label_ratios(proba_cal, y_cal, np.eye(3)[[0, 1, 2, 2]])
    array([0.5, 1. , 2. ])
    """
    require_same_rows(proba_cal=proba_cal, y_cal=y_cal)
    cal, new = (as_matrix(to_numpy(p, name), name) for p, name in _named(proba_cal, proba_new))
    K = cal.shape[1]
    if new.shape[1] != K:
        raise ValueError(f"proba_cal has {K} columns, but proba_new has {new.shape[1]}.")
    known = resolve_classes(classes, y_cal, K)
    for (proba, name), matrix in zip(_named(proba_cal, proba_new), (cal, new), strict=True):
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
    ratios: Any = np.linalg.solve(confusion, predicted)
    negative = [repr(label) for label in known[ratios < -_ROUNDING].tolist()]
    if negative:
        warnings.warn(
            f"The predictions can hardly tell how the share of {listed(negative)} has shifted: its ratio "
            "came out negative, and all are uncertain. Take more rows, or merge classes that are confused.",
            stacklevel=2,
        )
    if (ratios < 0).any():
        from scipy.optimize import nnls

        ratios = nnls(confusion, predicted)[0]
        ratios /= confusion.sum(axis=0) @ ratios
    found: Ratios = ratios
    return found


def _stacked(X_cal: Any, X_new: Any) -> tuple[Any, int, int]:
    """Both samples in one table, and how many rows each has."""
    shapes = [tuple(X.shape) if hasattr(X, "shape") else np.shape(X) for X in (X_cal, X_new)]
    if any(len(shape) != 2 or shape[0] < 2 for shape in shapes) or shapes[0][1] != shapes[1][1]:
        raise ValueError(
            "X_cal and X_new must be two tables of at least two rows, with the same features as columns; "
            f"got shapes {shapes[0]} and {shapes[1]}."
        )
    if all(type(X).__module__.startswith("pandas") for X in (X_cal, X_new)):
        import pandas as pd

        if list(X_cal.columns) != list(X_new.columns):
            raise ValueError(
                f"X_cal has the columns {list(X_cal.columns)}, but X_new has {list(X_new.columns)}."
            )
        return pd.concat([X_cal, X_new], ignore_index=True), shapes[0][0], shapes[1][0]
    return np.concatenate([to_numpy(X_cal, "X_cal"), to_numpy(X_new, "X_new")]), shapes[0][0], shapes[1][0]


def _warn_of_few(ratios: Ratios) -> None:
    n = len(ratios)
    count = effective_rows(ratios)
    if count * _FEW < n:
        shares = np.cumsum(np.sort(ratios)[::-1]) / ratios.sum()
        half = int(np.searchsorted(shares, 0.5)) + 1
        warnings.warn(
            f"The {n} calibration rows count as {count:.3g} rows: {half} of them carry half of the weight. "
            "New rows are so unlike them that intervals will be wide and the ratios uncertain.",
            stacklevel=3,
        )


def _named(proba_cal: Any, proba_new: Any) -> list[tuple[Any, str]]:
    return [(proba_cal, "proba_cal"), (proba_new, "proba_new")]


def _require_regular(confusion: NDArray[np.float64], classes: Classes) -> None:
    remedy = "merge it with a neighbour, or take more rows."
    for sums, what in (
        (confusion.sum(axis=0), "absent from y_cal"),
        (confusion.sum(axis=1), "never predicted"),
    ):
        if not sums.all():
            label = classes.tolist()[int(sums.argmin())]
            raise ValueError(
                f"Class {label!r} is {what} for the calibration rows, so the shift of the classes can't be "
                f"told from predictions: {remedy}"
            )
    if np.linalg.matrix_rank(confusion) < len(classes):
        raise ValueError(
            "The confusion matrix of the calibration rows is singular: some classes are predicted alike, so "
            "the shift of the classes can't be told from predictions. Merge those classes, or take more rows."
        )
