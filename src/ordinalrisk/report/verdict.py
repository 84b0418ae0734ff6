r"""Whether the loss on test rows agrees with a guarantee, in one word and in plain sentences.

The guarantee is an average over calibrations too. Given one calibration with ``n`` rows, the risk itself lies
off ``alpha`` by about :math:`\sigma / \sqrt n`, where :math:`\sigma` is the standard deviation of a row's
loss, however many rows it is tested on. So a realised risk is called surprising only if it exceeds ``alpha``
by more than

.. math:: 1.96 \, \sigma \sqrt{1 / n_\text{calibration} + 1 / n_\text{test}}.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ordinalrisk.calibration import rows_needed
from ordinalrisk.cost_table import CostTable
from ordinalrisk.estimates import Estimate
from ordinalrisk.exact import decimal_text
from ordinalrisk.guarantees import Guarantee
from ordinalrisk.losses import IntervalLoss
from ordinalrisk.tally import Tally

TWO_SIDED_95 = 1.96


class Verdict(NamedTuple):
    """``"agrees"``, ``"chance"``, ``"disagrees"``, or ``"nothing"`` if nothing is certified; and why."""

    word: str
    text: str


def verdict_of(
    tally: Tally, loss: IntervalLoss, guarantee: Guarantee, risk: Estimate, calibrated_on: bool = False
) -> Verdict:
    """What the realised risk on test rows says of the guarantee: nothing, if they were calibrated on.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from ordinalrisk import IntervalSet, WeightedLoss
    >>> sets = IntervalSet([0] * 100, [1] * 100, classes=[0, 1, 2])
    >>> tally, loss = Tally.of(np.array([0] * 96 + [2] * 4), sets), WeightedLoss()
    >>> guarantee = Guarantee(Fraction(1, 20), None, 500, Fraction(1), 1, certified=True, saturated=False)
    >>> print(verdict_of(tally, loss, guarantee, tally.risk(loss, 0.95)).text)
    On 100 test rows the loss was 0.04 on average (95 % interval 0.011 to 0.09926). This agrees with the
    guarantee of at most 0.05.
    """
    n_rows, alpha = tally.n_rows, decimal_text(guarantee.alpha)
    rows = "On the one test row" if n_rows == 1 else f"On {n_rows:,} test rows"
    measured = (
        f"{rows} the loss was {in_digits(risk.value)} on average "
        f"(95 % interval {in_digits(risk.low)} to {in_digits(risk.high)})"
    )
    if calibrated_on:
        return Verdict(
            "nothing",
            f"{measured}. But these are the rows of the calibration itself, which can't test it: take "
            "others.",
        )
    if not guarantee.certified:
        needed = rows_needed(guarantee.alpha, guarantee.bound)
        return Verdict(
            "nothing",
            f"Every set holds all labels, so nothing is missed, and nothing is learned either: {alpha} takes "
            f"at least {needed:,} calibration rows, and there were {guarantee.n_rows:,}.",
        )
    if risk.low <= guarantee.alpha:
        single = (
            " Every set is a single label; the loss can't come any closer." if guarantee.saturated else ""
        )
        within = ", which lies within the interval" if risk.value > guarantee.alpha else ""
        agrees = f"This agrees with the guarantee of at most {alpha}{within}."
        return Verdict("agrees", f"{measured}. {agrees}{single}")
    by_chance = TWO_SIDED_95 * excess_deviation(tally, loss, guarantee.n_rows)
    if risk.value - guarantee.alpha <= by_chance:
        return Verdict(
            "chance",
            f"{measured}, more than {alpha}. That can be chance: the guarantee is an average over "
            f"calibrations, and after one with {guarantee.n_rows:,} rows the loss that {n_rows:,} test rows "
            f"show can be up to {in_digits(by_chance)} above it.",
        )
    return Verdict(
        "disagrees",
        f"{measured}, above the guaranteed {alpha} by more than the {in_digits(by_chance)} that chance "
        "explains. The test rows may not be drawn like the calibration rows: the population has moved, the "
        "model was changed, many rows come from one person, or these are the wrong columns.",
    )


def excess_deviation(tally: Tally, loss: IntervalLoss, n_calibration: int) -> float:
    """The standard deviation of the realised risk over draws of the calibration rows and the test rows.

    One row without loss is counted in, so that a few rows of one and the same loss do not look certain.
    """
    losses = np.append(CostTable.of(loss, len(tally.nearest)).values, 0)
    times = np.append(tally.nearest, 1)
    variance = np.average((losses - np.average(losses, weights=times)) ** 2, weights=times)
    return math.sqrt(variance * (1 / n_calibration + 1 / tally.n_rows))


def in_digits(value: float) -> str:
    """Four digits, and thousands in groups.

    Examples
    --------
    >>> in_digits(0.04812345), in_digits(12345.6), in_digits(0.0)
    ('0.04812', '12,346', '0')
    """
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
