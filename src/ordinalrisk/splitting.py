"""Split rows at random into parts, keeping the rows of each cluster together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.curves.stratum_rows import rows_by_number
from ordinalrisk.inputs.numbers import as_fraction, checked_seed, is_whole
from ordinalrisk.inputs.row_names import RowNames

__all__ = ["split_folds", "split_rows"]

RowNumbers = NDArray[np.int64]

_MOST_ROWS = 10**9  # their positions take 8 gigabytes


def split_rows(
    n_or_y: Any, *, share: Any = 0.5, clusters: Any = None, random_state: int | None = None
) -> tuple[RowNumbers, RowNumbers]:
    """Split rows into two parts at random, for example to choose a loss on one and calibrate on the other.

    Parameters
    ----------
    n_or_y : int or array-like
        The number of rows, or anything with one entry for each row.
    share : number
        The share of the rows (with ``clusters``, of the clusters) in the first part, between 0 and 1.
    clusters : array-like, optional
        The cluster of each row, such as a patient; names may have any type. All rows of a cluster go into the
        same part. ``share`` counts clusters, not rows. If it counted rows, a large cluster would be less
        likely to fit into a part, so the clusters of that part would not be exchangeable with new clusters.
    random_state : int, optional
        The seed of the draw; a random one by default. Guarantees average over this draw too. If you fix the
        seed, the rows must be in random order: with sorted rows a fixed seed can favour some classes. If you
        try several seeds and keep the best result, the guarantee is lost.

    Returns
    -------
    first, second : array of int
        The positions of the rows of each part, ascending. Both parts have rows.

    Examples
    --------
    >>> split_rows(6, share=0.5, random_state=0)
    (array([2, 3, 5]), array([0, 1, 4]))
    >>> patients = ["Ann", "Ann", "Bob", "Eve", "Eve", "Bob"]
    >>> split_rows(6, clusters=patients, share="1/3", random_state=0)
    (array([3, 4]), array([0, 1, 2, 5]))
    """
    n_rows = _number_of_rows(n_or_y)
    exact = as_fraction(share, "share")
    if not 0 < exact < 1:
        raise ValueError(f"share must lie strictly between 0 and 1; got {share!r}.")
    cluster, n_clusters = _clusters(clusters, n_rows)
    if n_clusters < 2:
        raise ValueError("Two parts need at least two clusters; all rows belong to one cluster.")
    return _two_parts(cluster, min(max(round(exact * n_clusters), 1), n_clusters - 1), random_state)


def split_folds(
    n_rows: int, folds: int, *, clusters: Any = None, random_state: int | None = None
) -> list[RowNumbers]:
    """Split rows into folds at random.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    folds : int
        The number of folds, from 2 to the number of rows (with ``clusters``, of clusters).
    clusters : array-like, optional
        The cluster of each row; names may have any type. All rows of a cluster go into the same fold.
    random_state : int, optional
        The seed of the draw; a random one by default.

    Returns
    -------
    list of array of int
        The positions of the rows of each fold, ascending. Folds differ by at most one in their number of rows
        (with ``clusters``, of clusters).

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
        units = "rows" if clusters is None else "clusters"
        raise ValueError(
            f"folds must be a whole number from 2 to the number of {units}, {n_clusters}; got {folds!r}."
        )
    return _rows_of(np.array_split(_shuffled(n_clusters, random_state), folds), cluster)


def held_out_and_training(
    n_rows: int, size: Any, clusters: Any, random_state: int
) -> tuple[RowNumbers, RowNumbers]:
    """Draw the rows to calibrate with and the rows to train on.

    With ``clusters``, ``size`` counts clusters, since counting rows would favour clusters of some sizes.
    """
    cluster, n_clusters = _clusters(clusters, n_rows)
    n_held_out = _number_held_out(size, n_clusters, "rows" if clusters is None else "clusters")
    return _two_parts(cluster, n_held_out, random_state)


def _two_parts(cluster: RowNumbers, n_first: int, random_state: int | None) -> tuple[RowNumbers, RowNumbers]:
    order = _shuffled(int(cluster.max()) + 1, random_state)
    first, second = _rows_of([order[:n_first], order[n_first:]], cluster)
    return first, second


def _rows_of(parts: Sequence[RowNumbers], cluster: RowNumbers) -> list[RowNumbers]:
    """Return the positions of the rows in each part, ascending; ``parts`` lists the clusters of each part."""
    part_of = np.empty(sum(map(len, parts)), np.int64)
    for number, members in enumerate(parts):
        part_of[members] = number
    return [*rows_by_number(part_of[cluster]).values()]


def _number_of_rows(n_or_y: Any) -> int:
    n_rows = int(n_or_y if is_whole(n_or_y) else _length(n_or_y))
    if n_rows < 2:
        raise ValueError(f"Two parts need at least two rows; got {n_rows}.")
    _require_few(n_rows)
    return n_rows


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
            f"n_or_y must be the number of rows, or have one entry for each row; got {values!r}."
        ) from None


def _clusters(clusters: Any, n_rows: int) -> tuple[RowNumbers, int]:
    """Return the number of each row's cluster, in order of appearance, and the number of clusters."""
    if clusters is None:
        return np.arange(n_rows), n_rows
    cluster = RowNames("clusters").numbered(clusters, n_rows)
    return cluster, int(cluster.max()) + 1


def _shuffled(n: int, random_state: int | None) -> RowNumbers:
    seed = None if random_state is None else checked_seed(random_state)
    return np.random.default_rng(seed).permutation(n)


def _number_held_out(size: Any, n: int, units: str) -> int:
    if is_whole(size) and size >= 1:
        n_held_out = int(size)
    elif isinstance(size, float | np.floating) and 0 < size < 1:
        n_held_out = math.ceil(as_fraction(size) * n)
    else:
        raise ValueError(
            "calibration_size must be a share of the rows, strictly between 0 and 1, or a number of rows, at "
            f"least 1; got {size!r}."
        )
    if n_held_out >= n:
        raise ValueError(
            f"calibration_size={size!r} would hold out {n_held_out} of {n} {units} and leave none for "
            "training; take a smaller calibration_size."
        )
    return n_held_out
