r"""How uncertain the model was on the calibration rows, as counts to compare new rows with.

The uncertainty of a row is one minus its largest probability. It is counted in narrow bins, if rows are
exchangeable with new rows. Counts add up over batches, do not depend on the order of the rows, and reveal no
single row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.growth.kernels import cpu
from ordinalrisk.inputs.arrays import widened
from ordinalrisk.inputs.batch import Batch, Summary
from ordinalrisk.inputs.device import on_device, to_host

if TYPE_CHECKING:
    import torch

    from ordinalrisk.calibration.result import Calibration

BinCounts = NDArray[np.int64]

_OCTAVES, _BINS_IN_OCTAVE = 16, 64
N_BINS = _OCTAVES * _BINS_IN_OCTAVE + 1
"""Bins are ranges of the uncertainty, ascending: 64 for each halving of it down to 2^-16, and one below."""
_SHIFT = 52 - int(math.log2(_BINS_IN_OCTAVE))  # the bits of a float below those that name its bin
_FIRST = (1023 - _OCTAVES) * _BINS_IN_OCTAVE
_ROWS_AT_ONCE = 16_384
_SURPRISING, _LARGE = 0.001, 0.1  # a p-value and a distance that are worth a note
_CLEAR = 0.5  # a distance that enough rows must show


def no_counts() -> BinCounts:
    return np.zeros(N_BINS, np.int64)


def score_bins(proba: NDArray[Any]) -> NDArray[np.int64]:
    """Return the bin of each row's uncertainty; rows are checked already.

    Examples
    --------
    >>> score_bins(np.array([[0.0, 1.0], [0.5, 0.5], [0.25, 0.75]]))
    array([  0, 961, 897])
    """
    uncertainty = np.clip(1.0 - _largest_probabilities(proba), 0.0, np.nextafter(1.0, 0.0))
    bins: NDArray[np.int64] = np.clip((uncertainty.view(np.int64) >> _SHIFT) - _FIRST + 1, 0, N_BINS - 1)
    return bins


def score_counts(proba: Any) -> BinCounts:
    """Return the number of rows in each bin."""
    if on_device(proba):
        return _score_counts_on_device(proba)
    if (counted := cpu.count_uncertainty(proba, _SHIFT, _FIRST, N_BINS)) is not None:
        return counted
    counts = no_counts()
    for start in range(0, len(proba), _ROWS_AT_ONCE):
        counts += np.bincount(score_bins(proba[start : start + _ROWS_AT_ONCE]), minlength=N_BINS)
    return counts


def _score_counts_on_device(proba: torch.Tensor) -> BinCounts:
    """Count on the device, as on the host; copy only the counts."""
    import torch

    below_one = float(np.nextafter(1.0, 0.0))
    uncertainty = (1.0 - proba.amax(dim=1).double()).clamp(0.0, below_one)
    bins = ((uncertainty.view(torch.int64) >> _SHIFT) - _FIRST + 1).clamp(0, N_BINS - 1)
    counts: BinCounts = to_host(torch.bincount(bins, minlength=N_BINS))
    return counts


def mean_uncertainty(counts: BinCounts) -> float:
    """Return the mean uncertainty of the rows, each at the middle of its bin; NaN without rows."""
    total = int(counts.sum())
    if not total:
        return math.nan
    ends = _lower_ends()
    middles = (ends[:-1] + ends[1:]) / 2
    return float((counts * middles).sum() / total)


def _lower_ends() -> NDArray[np.float64]:
    """Return the least uncertainty of each bin, and 1 for the end of the last."""
    ends: NDArray[np.float64] = ((np.arange(N_BINS + 1) - 1 + _FIRST) << _SHIFT).view(np.float64)
    ends[0] = 0.0
    return ends


class ScoreCounts(Summary):
    """The number of rows in each bin of uncertainty."""

    def __init__(self) -> None:
        self.counts = no_counts()

    def add(self, batch: Batch) -> None:
        self.counts = self.counts + score_counts(batch.proba)

    def merge(self, other: ScoreCounts) -> ScoreCounts:
        both = ScoreCounts()
        both.counts = self.counts + other.counts
        return both


def why_not_compared(calibration: Calibration) -> str | None:
    """Say why new scores can't be compared with those of a calibration; None if they can."""
    if calibration.score_counts is not None:
        return None
    if calibration.shift is not None:
        return "its rows have weights, since the new ones are expected to differ"
    if calibration.unit == "cluster":
        return "its rows come from clusters, so they are not exchangeable one by one"
    return "it was saved by an earlier version; calibrate again"


def difference(calibrated: BinCounts, new: BinCounts) -> str | None:
    """Describe how the scores of new rows differ, if the difference is large and not due to chance."""
    if two_sample_p_value(calibrated, new) >= _SURPRISING or distance_of(calibrated, new) < _LARGE:
        return None
    before, now = (f"{100 * (1 - mean_uncertainty(counts)):.3g} %" for counts in (calibrated, new))
    return (
        "The scores of these rows differ from those of the calibration rows: the largest probability is "
        f"{now} on average, and was {before} when calibrating (two-sample test, p < {_SURPRISING}). The "
        "guarantee needs rows that are drawn like the calibration rows."
    )


def difference_of(calibration: Calibration, new: BinCounts) -> str | None:
    """Say how the scores of new rows differ, unless they may: another mix of groups keeps each guarantee."""
    if calibration.score_counts is None or calibration.strata.groups is not None:
        return None
    return difference(calibration.score_counts, new)


def comparison(calibrated: BinCounts, new: BinCounts) -> str:
    """Say whether the scores of new rows differ.

    Examples
    --------
    >>> rows = score_counts(np.array([[0.2, 0.8], [0.4, 0.6]] * 50))
    >>> comparison(rows, rows)
    'No sign of drift: the scores look like those of the calibration rows.'
    """
    if (text := difference(calibrated, new)) is not None:
        return text
    n, m = int(calibrated.sum()), int(new.sum())
    if _p_value(_CLEAR, n, m) >= _SURPRISING:
        return "There are too few rows to tell whether the scores differ from those of the calibration rows."
    if two_sample_p_value(calibrated, new) >= _SURPRISING:
        return "No sign of drift: the scores look like those of the calibration rows."
    return (
        "The scores differ a little from those of the calibration rows, by more than chance (two-sample "
        f"test, p < {_SURPRISING})."
    )


def coarse_counts(counts: BinCounts, n_bins: int = 16) -> list[int]:
    """Count rows by their largest probability, in equal bins from 0 to 1; ``n_bins`` is a power of two.

    Examples
    --------
    >>> coarse_counts(score_counts(np.array([[0.2, 0.8], [0.4, 0.6], [0.0, 1.0]])), 4)
    [0, 0, 1, 2]
    """
    bins = (_lower_ends()[:-1] * n_bins).astype(np.int64)  # exact: the ends of bins are ends of narrow ones
    coarse: list[int] = np.bincount(bins, counts, n_bins).astype(np.int64)[::-1].tolist()
    return coarse


def distance_of(calibrated: BinCounts, new: BinCounts) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples."""
    shares = np.cumsum(calibrated) / calibrated.sum() - np.cumsum(new) / new.sum()
    return float(abs(shares).max())


def two_sample_p_value(calibrated: BinCounts, new: BinCounts) -> float:
    r"""Return the approximate p-value of the Kolmogorov-Smirnov distance of samples of ``n`` and ``m`` rows.

    .. math:: p \approx 2 \exp\Big(-2 D^2 \frac{n m}{n + m}\Big)

    This is not proved to be an upper bound for all ``n`` and ``m`` (Wei and Dudley 2012). Binned
    uncertainties tie, which can only make the distance smaller.
    """
    n, m = int(calibrated.sum()), int(new.sum())
    return _p_value(distance_of(calibrated, new), n, m) if n and m else 1.0


def _p_value(distance: float, n: int, m: int) -> float:
    return min(1.0, 2 * math.exp(-2 * distance**2 * n * m / (n + m)))


def _largest_probabilities(proba: NDArray[Any]) -> NDArray[np.float64]:
    """Return the largest probability of each row, column by column, which numpy does faster than by row."""
    top = widened(proba[:, 0])
    for column in range(1, proba.shape[1]):
        top = np.maximum(top, widened(proba[:, column]))
    return top.astype(np.float64)
