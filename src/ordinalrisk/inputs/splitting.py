"""Cutting rows in parts at random, with the rows of one cluster always on the same side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.inputs.row_names import RowNames

Rows = NDArray[np.int64]

_MOST_ROWS = 10**9  # their positions take 8 gigabytes


def split_rows(
    n_or_y: Any, *, share: Any = 0.5, clusters: Any = None, random_state: int | None = None
) -> tuple[Rows, Rows]:
    """The rows in two parts, drawn at random: to choose with one and to calibrate with the other, say.

    Parameters
    ----------
    n_or_y : int or array-like
        The number of rows, or anything that has one entry for each.
    share : number
        The share of the rows, or of the clusters where there are any, in the first part; strictly between 0
        and 1.
    clusters : array-like, optional
        A name of any type for each row; rows of one name are never separated. How many of them the first part
        gets does not depend on their sizes: else large ones would be less likely in it, and no more
        exchangeable with new ones.
    random_state : int, optional
        The seed of the draw; a random one by default. Promises are over this draw too. With a fixed seed the
        rows must come in random order: on a sorted file one seed can prefer some classes. Whoever tries
        several seeds and keeps the best has no promise.

    Returns
    -------
    first, second : array of int
        The positions of the rows of each part, ascending; neither is empty.

    Examples
    --------
    >>> split_rows(6, share=0.5, random_state=0)
    (array([2, 3, 5]), array([0, 1, 4]))
    >>> patients = ["Ann", "Ann", "Bob", "Eve", "Eve", "Bob"]
    >>> split_rows(6, clusters=patients, share="1/3", random_state=0)
    (array([3, 4]), array([0, 1, 2, 5]))
    """
    n_rows = _number_of_rows(n_or_y)
    wanted = as_fraction(share, "share")
    if not 0 < wanted < 1:
        raise ValueError(f"share must lie strictly between 0 and 1; got {share!r}.")
    cluster, n_clusters = _clusters(clusters, n_rows)
    if n_clusters < 2:
        raise ValueError("Two parts need at least two clusters; there is only one.")
    order = _generator(random_state).permutation(n_clusters)
    n_first = min(max(round(wanted * n_clusters), 1), n_clusters - 1)
    in_first = np.zeros(n_clusters, bool)
    in_first[order[:n_first]] = True
    is_first = in_first[cluster]
    return np.flatnonzero(is_first), np.flatnonzero(~is_first)


def split_folds(
    n_rows: int, folds: int, *, clusters: Any = None, random_state: int | None = None
) -> list[Rows]:
    """The rows in so many folds, drawn at random.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    folds : int
        How many folds, from 2 to the number of rows, or of clusters.
    clusters : array-like, optional
        A name of any type for each row; rows of one name are never separated.
    random_state : int, optional
        The seed of the draw; a random one by default.

    Returns
    -------
    list of array of int
        The positions of the rows of each fold, ascending. The numbers of rows, or of clusters where there are
        any, differ by at most one from fold to fold.

    Examples
    --------
    >>> split_folds(5, 2, random_state=0)
    [array([2, 3, 4]), array([0, 1])]
    >>> split_folds(5, 2, clusters=["Ann", "Ann", "Bob", "Eve", "Ann"], random_state=0)
    [array([0, 1, 3, 4]), array([2])]
    """
    if not is_whole(n_rows) or n_rows < 1:
        raise ValueError(f"n_rows must be a whole number, at least 1; got {n_rows!r}.")
    _require_few(int(n_rows))
    cluster, n_clusters = _clusters(clusters, int(n_rows))
    if not is_whole(folds) or not 2 <= folds <= n_clusters:
        raise ValueError(
            f"folds must be a whole number from 2 to the number of {_units(clusters)}, {n_clusters}; "
            f"got {folds!r}."
        )
    order = _generator(random_state).permutation(n_clusters)
    fold_of = np.empty(n_clusters, np.int64)
    for fold, members in enumerate(np.array_split(order, folds)):
        fold_of[members] = fold
    by_fold = np.argsort(fold_of[cluster], kind="stable")
    return np.split(by_fold, np.cumsum(np.bincount(fold_of[cluster], minlength=folds))[:-1])


def is_whole(value: Any) -> bool:
    """Whether it is a whole number of any type, and not a truth value."""
    try:
        index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def _number_of_rows(n_or_y: Any) -> int:
    n_rows = n_or_y if is_whole(n_or_y) else _length(n_or_y)
    if n_rows < 2:
        raise ValueError(f"Two parts need at least two rows; there are {n_rows}.")
    _require_few(int(n_rows))
    return int(n_rows)


def _require_few(n_rows: int) -> None:
    if n_rows > _MOST_ROWS:
        raise ValueError(f"At most {_MOST_ROWS} rows can be split; got {n_rows}.")


def _length(values: Any) -> int:
    shape: Sequence[int] | None = getattr(values, "shape", None)
    try:
        if isinstance(values, str | bytes | Mapping):
            raise TypeError
        return len(values) if shape is None else shape[0]
    except (TypeError, IndexError):
        raise ValueError(
            f"n_or_y must be a number of rows, or have an entry for each; got {values!r}."
        ) from None


def _clusters(clusters: Any, n_rows: int) -> tuple[Rows, int]:
    """The number of each row's cluster, in the order in which they are met, and how many there are."""
    if clusters is None:
        return np.arange(n_rows), n_rows
    cluster = RowNames("clusters").numbered(clusters, n_rows)
    return cluster, int(cluster.max()) + 1


def _units(clusters: Any) -> str:
    return "rows" if clusters is None else "clusters"


def _generator(random_state: int | None) -> np.random.Generator:
    return np.random.default_rng(None if random_state is None else checked_seed(random_state, "random_state"))


def checked_seed(seed: Any, name: str = "seed") -> int:
    """``seed`` itself if it is a whole number, 0 or larger."""
    if not is_whole(seed) or seed < 0:
        raise ValueError(f"{name} must be a whole number, 0 or larger; got {seed!r}.")
    return int(seed)
