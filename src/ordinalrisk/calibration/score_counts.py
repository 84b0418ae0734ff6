r"""How certain the model was of the calibration rows: counts that show whether the scores of new rows differ.

The uncertainty of a row is one minus its largest probability. Rows that are exchangeable with new
rows have counts, by narrow bins, that new rows can be compared with, whatever their order. Counts add up over
batches, and no row can be read from them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.growth.kernels import cpu
from ordinalrisk.inputs.arrays import widened
from ordinalrisk.inputs.device import on_device, to_host

if TYPE_CHECKING:
    import torch

BinCounts = NDArray[np.int64]

_OCTAVES, _BINS_IN_OCTAVE = 16, 64
N_BINS = _OCTAVES * _BINS_IN_OCTAVE + 1
"""Bins are ranges of the uncertainty, ascending: 64 for each halving of it down to 2^-16, and one below."""
_SHIFT = 52 - int(math.log2(_BINS_IN_OCTAVE))  # the bits of a float below those that name its bin
_FIRST = (1023 - _OCTAVES) * _BINS_IN_OCTAVE
_ROWS_AT_ONCE = 16_384
_SURPRISING, _LARGE = 0.001, 0.1  # a p-value and a distance that are worth a note


def no_counts() -> BinCounts:
    return np.zeros(N_BINS, np.int64)


def score_bins(proba: NDArray[Any]) -> NDArray[np.int64]:
    """Return the bin of each row's uncertainty; rows are checked already.

    Examples
    --------
    >>> score_bins(np.array([[0.0, 1.0], [0.5, 0.5], [0.25, 0.75]]))
    array([  0, 961, 897])
    """
    uncertainty = np.clip(1.0 - _largest(proba), 0.0, np.nextafter(1.0, 0.0))
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
    """Count as on the host, where the rows are; only the counts are copied."""
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
    lower = ((np.arange(N_BINS + 1) - 1 + _FIRST) << _SHIFT).view(np.float64)
    lower[0] = 0.0
    middles = (lower[:-1] + lower[1:]) / 2
    return float((counts * middles).sum() / total)


def difference(calibrated: BinCounts, new: BinCounts) -> str | None:
    """Say in a sentence how the scores of new rows differ, if they do by a lot and not by chance."""
    p_value = two_sample_p_value(calibrated, new)
    if p_value >= _SURPRISING or distance_of(calibrated, new) < _LARGE:
        return None
    return (
        f"The scores of these rows differ from those of the calibration rows (two-sample test, p = "
        f"{p_value:.1g}): their mean uncertainty, one minus the largest probability, is "
        f"{mean_uncertainty(new):.3g}, when calibrating it was {mean_uncertainty(calibrated):.3g}, and the "
        "guarantee needs rows that are exchangeable with the calibration rows. `drift_note=False` turns this "
        "note off."
    )


def distance_of(calibrated: BinCounts, new: BinCounts) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples."""
    shares = np.cumsum(calibrated) / calibrated.sum() - np.cumsum(new) / new.sum()
    return float(abs(shares).max())


def two_sample_p_value(calibrated: BinCounts, new: BinCounts) -> float:
    r"""Return an upper bound of the p-value of the Kolmogorov-Smirnov distance between two samples.

    .. math:: p \le 2 \exp\Big(-2 D^2 \frac{n m}{n + m}\Big)

    Binned uncertainties tie, which can only make the distance smaller.
    """
    n, m = int(calibrated.sum()), int(new.sum())
    if not n or not m:
        return 1.0
    return min(1.0, 2 * math.exp(-2 * distance_of(calibrated, new) ** 2 * n * m / (n + m)))


def _largest(proba: NDArray[Any]) -> NDArray[np.float64]:
    """Return the largest probability of each row, column by column, which numpy does faster than by row."""
    top = widened(proba[:, 0])
    for column in range(1, proba.shape[1]):
        top = np.maximum(top, widened(proba[:, column]))
    return top.astype(np.float64)
