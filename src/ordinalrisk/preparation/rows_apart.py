r"""Draw the rows to learn from at random; the others calibrate.

A row that is set apart is lost for the calibration. With ``n`` rows, the expected risk is about
:math:`\alpha - B/(n+1)` and not :math:`\alpha`, so without ``m`` of them it is smaller by

.. math:: B/(n - m + 1) - B/(n + 1)

which makes sets larger. By default ``m`` is as large as this allows if it may be at most 3 % of ``alpha``,
but at most a quarter of the rows and at most 2,000: more do not improve a map by much. If fewer than 30 rows
can be set apart, none are.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.inputs.arrays import to_numpy
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.numbers import as_fraction, is_whole

Mask = NDArray[np.bool_]
FEWEST, MOST, LARGEST_SHARE = 30, 2_000, 4
_COST = Fraction(3, 100)


def number_apart(n_units: int, risk: Fraction, n_parts: int = 1) -> int:
    """Return how many rows, or clusters, to set apart by default.

    ``risk`` is ``alpha`` by the largest loss, and ``n_parts`` the number of thresholds that share the rows.

    >>> [number_apart(n, Fraction(1, 10)) for n in (100, 200, 1_000, 10_000, 10**6)]
    [0, 50, 250, 2000, 2000]
    """
    own = Fraction(n_units, n_parts) + 1
    affordable = int(n_parts * (own - 1 / (_COST * risk + 1 / own)))
    number = min(affordable, n_units // LARGEST_SHARE, MOST)
    return number if number >= FEWEST else 0


def rows_apart(asked: Any, default: int, units: NDArray[np.int64], seed: int | None) -> Mask:
    """Return which rows are set apart.

    ``asked`` is None, a share, a number, a mask or positions; ``units`` numbers the cluster of each row.
    """
    n_rows, n_units = len(units), int(units.max()) + 1
    if asked is not None and not _is_number(asked):
        mask = _mask(asked, n_rows)
        torn = np.intersect1d(units[mask], units[~mask])
        if torn.size:
            raise ValueError(
                f"recalibration_rows splits the cluster of row {int((units == torn[0]).argmax())}; set whole "
                "clusters apart."
            )
    else:
        number = default if asked is None else _number(asked, n_units)
        order = np.random.default_rng(None if seed is None else [seed, 1]).permutation(n_units)
        mask = np.isin(units, order[:number])
    if asked is not None and (mask.all() or not mask.any()):
        raise ValueError(
            f"recalibration_rows={asked!r} sets {int(mask.sum())} of {n_rows} rows apart; some rows must be "
            "set apart, and some must stay to calibrate with."
        )
    return mask


def _is_number(asked: Any) -> bool:
    return isinstance(asked, str | Fraction) or not hasattr(asked, "__len__")


def _number(asked: Any, n_units: int) -> int:
    if is_whole(asked) and asked >= 1:
        return min(int(asked), n_units)
    share = as_fraction(asked, "recalibration_rows")
    if not 0 < share < 1:
        raise ValueError(
            "recalibration_rows must be a share of the rows, strictly between 0 and 1, a number of rows, a "
            f"mask or positions; got {asked!r}."
        )
    return min(max(round(share * n_units), 1), n_units)


def _mask(asked: Any, n_rows: int) -> Mask:
    chosen = to_numpy(to_host(asked), "recalibration_rows")
    if chosen.dtype == bool and chosen.shape == (n_rows,):
        return chosen
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise ValueError(
            f"recalibration_rows must be a mask of all {n_rows} rows, or positions of rows; got an array of "
            f"shape {chosen.shape} and type {chosen.dtype}."
        )
    if len(chosen) and not 0 <= int(chosen.min()) <= int(chosen.max()) < n_rows:
        raise ValueError(f"recalibration_rows must lie in 0 .. {n_rows - 1}.")
    mask = np.zeros(n_rows, bool)
    mask[chosen] = True
    return mask
