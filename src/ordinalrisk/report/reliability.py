"""Reliability of the probabilities: predicted against observed frequencies, in bins.

Two kinds of probability are counted. The top one is that of each row's most probable label, which should be
right as often as the model says. The cumulative ones say for each label that the truth is at most that label.

Sums are whole multiples of a power of two, so they do not depend on how rows were cut into batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.evaluation.estimates import CONFIDENCE, share
from ordinalrisk.inputs.arrays import widened
from ordinalrisk.inputs.batch import Batch, Summary

_N_BINS = 10
_UNIT = 2.0**-24  # of sums: 64 bits hold those of 10^11 rows
_ROWS_AT_ONCE = 65_536


class Reliability(Summary):
    """How often labels are right, by their predicted probability.

    Examples
    --------
    >>> found = Reliability()
    >>> found.add(Batch(np.array([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75]]), np.array([0, 1, 1])))
    >>> found.finish()["top"]["predicted"], round(found.finish()["top"]["right"], 3)
    (0.75, 0.667)
    """

    def __init__(self) -> None:
        self._counts = np.zeros(
            (2, 3, _N_BINS), np.int64
        )  # top, cumulative: rows, hits, sum of probabilities

    def add(self, batch: Batch) -> None:
        for start in range(0, len(batch), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            proba = widened(batch.proba[rows]).astype(np.float64)
            labels = batch.labels[rows]
            top = proba.argmax(axis=1)
            self._count(0, proba[np.arange(len(top)), top], top == labels)
            below = proba.cumsum(axis=1)[:, :-1]
            self._count(1, below.ravel(), (labels[:, None] <= np.arange(below.shape[1])).ravel())

    def _count(self, kind: int, probabilities: NDArray[np.float64], true: NDArray[np.bool_]) -> None:
        """Add probabilities, and whether each predicted event occurred."""
        inside = np.clip(probabilities, 0, 1)  # sums may be off by a rounding
        bins = np.minimum((inside * _N_BINS).astype(np.int64), _N_BINS - 1)
        whole = np.rint(inside / _UNIT)  # exact as float64, and so are the sums of a chunk
        for of_kind, weights in zip(self._counts[kind], (None, true, whole), strict=True):
            of_kind += np.bincount(bins, weights, _N_BINS).astype(np.int64)

    def merge(self, other: Reliability) -> Reliability:
        both = copy(self)
        both._counts = self._counts + other._counts
        return both

    def finish(self) -> dict[str, Any]:
        """Return the bins of both kinds that have rows, and the mean top probability."""
        rows, hits, sums = (int(part.sum()) for part in self._counts[0])
        return {
            "top": {
                "predicted": sums * _UNIT / rows if rows else None,
                "right": hits / rows if rows else None,
                "bins": [*self._bins(0)],
            },
            "cumulative": {"bins": [*self._bins(1)]},
        }

    def _bins(self, kind: int) -> Iterator[dict[str, Any]]:
        """Yield each bin with rows; cumulative probabilities of one row depend on each other: no interval."""
        for at, (rows, hits, total) in enumerate(self._counts[kind].T.tolist()):
            if rows:
                seen = [*share(hits, rows, CONFIDENCE)] if kind == 0 else [hits / rows]
                yield {
                    "from": at / _N_BINS,
                    "to": (at + 1) / _N_BINS,
                    "count": rows,
                    "predicted": total * _UNIT / rows,
                    "observed": seen,
                }
