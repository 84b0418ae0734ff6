"""Convert the output of models to class probabilities.

A controller takes an ``(n, K)`` array of probabilities, columns in label order. These functions make such an
array from logits, from cumulative probabilities or from the token log-probabilities of a language model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import to_numpy, widened
from ordinalrisk.inputs.labels import as_classes
from ordinalrisk.inputs.probability_matrix import as_matrix, softmax_of_rows

__all__ = ["from_cumulative", "from_cumulative_logits", "from_logprobs", "min_shift", "softmax"]

_LARGE = 1e300  # sums of differences of smaller logits stay finite


def softmax(logits: Any) -> NDArray[np.float64]:
    r"""Convert logits to probabilities.

    .. math:: p_k = e^{z_k} / \sum_i e^{z_i}

    Parameters
    ----------
    logits : array-like of shape (n, K)
        One logit for each class, columns in label order.

    Returns
    -------
    array of float64 of shape (n, K)
        Class probabilities.

    Examples
    --------
    >>> softmax([[0.0, 0.0], [1000.0, 0.0]])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    return softmax_of_rows(_finite_matrix(logits, "logits"))


def min_shift(logits: Any) -> NDArray[np.float64]:
    r"""Convert logits to the scores that the paper's released code calls softmax.

    .. math:: p_k = \frac{z_k - \min z}{\sum_i (z_i - \min z)}

    Only these scores reproduce the paper's Table 3. For new work use :func:`softmax`.

    Parameters
    ----------
    logits : array-like of shape (n, K)
        One logit for each class; the logits of a row must not all be equal.

    Returns
    -------
    array of float64 of shape (n, K)
        Scores that add up to 1; the smallest of each row is 0.

    Examples
    --------
    >>> min_shift([[1.0, 2.0, 4.0]])
    array([[0.  , 0.25, 0.75]])
    """
    z = _finite_matrix(logits, "logits")
    z = np.where(np.abs(z).max(axis=1, keepdims=True) > _LARGE, z * 2.0**-64, z)  # exact, without overflow
    shifted = z - z.min(axis=1, keepdims=True)
    total = shifted.sum(axis=1, keepdims=True)
    if (row := _first_row(total == 0)) is not None:
        raise ValueError(
            f"min_shift is not defined for row {row}: its logits are all equal. Use softmax, or leave the "
            "row out."
        )
    scores: NDArray[np.float64] = shifted / total
    return scores


def from_cumulative(cumulative: Any) -> NDArray[np.float64]:
    r"""Convert cumulative probabilities to class probabilities.

    .. math:: p_k = P(Y \le k) - P(Y \le k - 1)

    Parameters
    ----------
    cumulative : array-like of shape (n, K - 1)
        :math:`P(Y \le k)` for ``k = 0 .. K-2``, which must not decrease along a row.

    Returns
    -------
    array of float64 of shape (n, K)
        Class probabilities.

    Examples
    --------
    >>> from_cumulative([[0.25, 0.75]])
    array([[0.25, 0.5 , 0.25]])
    """
    inner = _finite_matrix(cumulative, "cumulative", fewest=1)
    if (row := _first_row((inner < 0) | (inner > 1))) is not None:
        raise ValueError(f"Row {row} of cumulative has a value outside [0, 1]: {inner[row].tolist()}.")
    n = len(inner)
    proba = np.diff(inner, axis=1, prepend=np.zeros((n, 1)), append=np.ones((n, 1)))
    _require_monotone(proba < 0, "cumulative", "increase from P(Y <= 0) to P(Y <= K-2)", inner)
    return proba


def from_cumulative_logits(logits: Any) -> NDArray[np.float64]:
    r"""Convert logits of :math:`P(Y > k)`, such as CORAL models give, to class probabilities.

    .. math:: p_k = \sigma(z_{k-1}) - \sigma(z_k) = \sigma(z_{k-1})\,\sigma(-z_k)\,(1 - e^{z_k - z_{k-1}})

    This function computes the last form, which keeps full precision in the tails.

    Parameters
    ----------
    logits : array-like of shape (n, K - 1)
        Logits of :math:`P(Y > k)` for ``k = 0 .. K-2``, which must not increase along a row.

    Returns
    -------
    array of float64 of shape (n, K)
        Class probabilities.

    Examples
    --------
    >>> from_cumulative_logits([[2.0, -2.0]]).round(3)
    array([[0.119, 0.762, 0.119]])
    """
    z = _finite_matrix(logits, "logits", fewest=1)
    _require_monotone(z[:, 1:] > z[:, :-1], "logits", "decrease from P(Y > 0) to P(Y > K-2)", z)
    with np.errstate(over="ignore"):  # at minus infinity the factor is 1
        middle = _sigmoid(z[:, :-1]) * _sigmoid(-z[:, 1:]) * -np.expm1(np.diff(z, axis=1))
    return np.concatenate([_sigmoid(-z[:, :1]), middle, _sigmoid(z[:, -1:])], axis=1)


def from_logprobs(
    rows: Iterable[Mapping[str, float] | Sequence[Mapping[str, Any]]], classes: Sequence[Any]
) -> NDArray[np.float64]:
    r"""Convert token log-probabilities of a language model to class probabilities.

    .. math:: p_k = \frac{e^{s_k}}{\sum_{i} e^{s_i}}

    The model answers with a label. Here :math:`s_k` is the log-probability of label ``k``, and the sum is
    over the labels among the candidates.

    Parameters
    ----------
    rows : iterable
        For each row, the candidate tokens for the answer: a mapping from token to log-probability, or a list
        of ``{"token": ..., "logprob": ...}``.
    classes : sequence
        The labels in order. White space around a token is ignored. Labels that are not among the candidates
        get probability 0, and the probabilities of the other labels are rescaled to sum to 1.

    Returns
    -------
    array of float64 of shape (n, K)
        Class probabilities.

    Examples
    --------
    >>> from_logprobs([{"4": -0.2, " 5": -2.0, "The": -5.0}], classes=[1, 2, 3, 4, 5]).round(3)
    array([[0.   , 0.   , 0.   , 0.858, 0.142]])
    """
    single = isinstance(rows, str | bytes | Mapping) or getattr(rows, "ndim", 1) == 0
    if single or not isinstance(rows, Iterable):
        raise ValueError(f"rows must be a sequence with the candidate tokens of each row; got {rows!r}.")
    labels = as_classes(classes).tolist()
    column = {str(label).strip(): k for k, label in enumerate(labels)}
    if len(column) < len(labels):
        raise ValueError(f"classes must differ when written as tokens; got {labels}.")
    proba = []
    for i, candidates in enumerate(rows):
        pairs = _token_logprobs(candidates, i)
        for token, logprob in pairs:
            if not logprob <= 0:
                raise ValueError(
                    f"Row {i}: the log-probability of {token!r} is {logprob}; it must be at most 0."
                )
        known = [(column[token.strip()], logprob) for token, logprob in pairs if token.strip() in column]
        largest = max((logprob for _, logprob in known), default=-np.inf)
        if largest == -np.inf:
            raise ValueError(
                f"Row {i}: none of the labels {list(column)} is among the tokens "
                f"{[token for token, _ in pairs]}. Ask the model for more candidates, or check the classes."
            )
        p = np.zeros(len(column))
        for k, logprob in known:
            p[k] += np.exp(logprob - largest)
        proba.append(p / p.sum())
    if not proba:
        raise ValueError("rows is empty; pass the candidates of at least one row.")
    return np.array(proba)


def _token_logprobs(candidates: Any, row: int) -> list[tuple[str, float]]:
    try:
        if isinstance(candidates, Mapping):
            return [(str(token), float(logprob)) for token, logprob in candidates.items()]
        return [(str(candidate["token"]), float(candidate["logprob"])) for candidate in candidates]
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"Row {row}: the candidates must map tokens to log-probabilities, or be a list of "
            f'{{"token": ..., "logprob": ...}}; got {candidates!r}.'
        ) from None


def _finite_matrix(values: Any, name: str, fewest: int = 2) -> NDArray[np.float64]:
    array = widened(as_matrix(to_numpy(values, name), name, fewest)).astype(np.float64)
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(f"{name} has {array[row, column]} at row {row}, column {column}; it must be finite.")
    return array


def _require_monotone(wrong: NDArray[np.bool_], name: str, rule: str, values: NDArray[np.float64]) -> None:
    if (row := _first_row(wrong)) is not None:
        raise ValueError(f"{name} must {rule} along a row; row {row} is {values[row].tolist()}.")


def _first_row(wrong: NDArray[np.bool_]) -> int | None:
    rows = wrong.any(axis=1)
    return int(rows.argmax()) if rows.any() else None


def _sigmoid(z: NDArray[np.float64]) -> NDArray[np.float64]:
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1.0 + e)
