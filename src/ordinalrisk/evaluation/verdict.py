r"""Whether the loss on test rows agrees with a guarantee, in one word and in plain sentences.

The guarantee is an average over calibrations too. Given one calibration with ``n`` rows, the risk itself lies
off ``alpha`` by about :math:`\sigma / \sqrt n`, where :math:`\sigma` is the standard deviation of a row's
loss, however many rows it is tested on. So a realised risk is called surprising only if it exceeds ``alpha``
by more than

.. math:: 1.96 \, \sigma \sqrt{1 / n_\text{calibration} + 1 / n_\text{test}}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

from ordinalrisk.calibration.guarantees import Guarantee
from ordinalrisk.calibration.promises import rows_needed
from ordinalrisk.display.wording import in_digits
from ordinalrisk.evaluation.counts import Tally
from ordinalrisk.evaluation.estimates import CONFIDENCE, Estimate
from ordinalrisk.evaluation.realised import TWO_SIDED_95, Realised, deviation
from ordinalrisk.inputs.numbers import decimal_text
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import IntervalLoss

_NAMES_SHOWN = 5
_WEIGHTS_FAR_OFF = 5  # standard deviations, since weights can have heavy tails
_FEWEST_WEIGHTED = 50  # test rows; with fewer, their own spread tells little
_ROUNDING = 1e-9


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
    >>> import numpy as np
    >>> from ordinalrisk import IntervalSet, WeightedLoss
    >>> sets = IntervalSet([0] * 100, [1] * 100, classes=[0, 1, 2])
    >>> tally, loss = Tally.of(np.array([0] * 96 + [2] * 4), sets), WeightedLoss()
    >>> guarantee = Guarantee(Fraction(1, 20), 500, Fraction(1), certified=True, saturated=False)
    >>> print(verdict_of(tally, loss, guarantee, tally.risk(loss, 0.95)).text)
    On 100 test rows the loss was 0.04 on average (95 % interval 0.011 to 0.09926). This agrees with the
    guarantee of at most 0.05.
    """
    realised = Realised(risk, loss_deviation(tally, loss), tally.n_rows)
    return judged(realised, guarantee, tally.n_rows, calibrated_on)


def judged(realised: Realised, guarantee: Guarantee, n_rows: int, calibrated_on: bool = False) -> Verdict:
    """What a realised risk, of whichever units, says of a guarantee."""
    risk, alpha = realised.risk, decimal_text(guarantee.alpha)
    measured = measured_in_words(realised, guarantee, n_rows)
    if other := _other_weights(realised, guarantee, n_rows):
        return Verdict("nothing", f"{measured}. {other}")
    if calibrated_on:
        return Verdict("nothing", f"{measured}. {_NO_TEST}")
    if not guarantee.certified:
        needed = guarantee.n_needed or rows_needed(guarantee.alpha, guarantee.bound)
        return Verdict(
            "nothing",
            f"Every set holds all labels, so nothing is missed, and nothing is learned either: {alpha} takes "
            f"at least {needed:,} calibration {guarantee.unit}s, and there were {guarantee.n_rows:,}.",
        )
    if risk.low <= guarantee.alpha:
        single = (
            " Every set is a single label; a larger alpha changes nothing." if guarantee.saturated else ""
        )
        within = ", which lies within the interval" if risk.value > guarantee.alpha else ""
        agrees = f"This agrees with the guarantee of at most {alpha}{within}."
        return Verdict("agrees", f"{measured}. {agrees}{single}{_suspicion(realised, guarantee)}")
    by_chance = TWO_SIDED_95 * excess_deviation(realised, guarantee)
    shown = in_digits(by_chance)
    if risk.value - guarantee.alpha <= by_chance:
        if guarantee.delta is not None:
            why = f"the loss that so few test {guarantee.unit}s show can be up to {shown} above that of all."
        else:
            why = (
                f"the guarantee is an average over calibrations, and after one with {guarantee.n_rows:,} "
                f"{guarantee.unit}s the loss that {_counted(realised.n_units)} test {guarantee.unit}s "
                f"show can be up to {shown} above it."
            )
        return Verdict("chance", f"{measured}, more than {alpha}. That can be chance: {why}")
    unlucky = (
        ""
        if guarantee.delta is None
        else f"A calibration fails with a probability of up to {decimal_text(guarantee.delta)}. Or else the"
    )
    return Verdict(
        "disagrees",
        f"{measured}, above the guaranteed {alpha} by more than the {shown} that chance "
        f"explains. {unlucky or 'The'} test {guarantee.unit}s may not be drawn like the calibration "
        f"{guarantee.unit}s: the model was trained on those, the population has moved, the model was "
        f"changed, {_other_reason(guarantee)}, or these are the wrong columns.",
    )


def _suspicion(realised: Realised, guarantee: Guarantee) -> str:
    """Ask about a loss that is far below that of the calibration rows."""
    usual = guarantee.calibration_risk
    if usual is None or guarantee.shift is not None:
        return ""
    spread = max(realised.deviation, math.sqrt(usual * (float(guarantee.bound) - usual)))
    by_chance = TWO_SIDED_95 * spread * math.sqrt(1 / guarantee.n_rows + 1 / realised.n_units)
    if usual - realised.risk.value <= by_chance:
        return ""
    return (
        f" It is far less than the {in_digits(usual)} of the calibration {guarantee.unit}s: was the model "
        "trained on these rows?"
    )


def _other_weights(realised: Realised, guarantee: Guarantee, n_rows: int) -> str:
    """What to say if the weights show that the test rows are not drawn like the calibration rows."""
    usual = guarantee.mean_weight
    if realised.weight is None or usual is None or n_rows < _FEWEST_WEIGHTED:
        return ""
    mean = realised.weight / n_rows
    spread = mean * math.sqrt(max(n_rows / realised.n_units - 1, 0))
    by_chance = _WEIGHTS_FAR_OFF * spread * math.sqrt(1 / n_rows + 1 / guarantee.n_rows)
    if mean - usual <= by_chance + _ROUNDING * usual:  # rows of the new population weigh more, not less
        return ""
    return (
        f"But their mean weight is {in_digits(mean)}, and that of the calibration rows was "
        f"{in_digits(usual)}, so they may not be drawn like those. Rows of the new population would be "
        "weighted twice: test on rows drawn like the calibration rows, with weights on the same scale."
    )


_NO_TEST = "But these are the rows of the calibration itself, which can't test it: take others."


def _other_reason(guarantee: Guarantee) -> str:
    if guarantee.shift is not None:
        return "the weights are not its likelihood ratios"
    return (
        "the clusters are not independent"
        if guarantee.unit == "cluster"
        else "many rows come from one person"
    )


class PartVerdict(NamedTuple):
    """A part of the rows by name: what it was promised, what it realised, and the word for that."""

    name: str
    guarantee: Guarantee
    realised: Realised | None
    word: str


def verdict_of_parts(
    parts: Sequence[PartVerdict],
    noun: str,
    whole: Realised,
    guarantee: Guarantee,
    n_rows: int,
    calibrated_on: bool = False,
) -> Verdict:
    """What the parts say together of a guarantee that each has for itself.

    Of many parts that all keep their promise some look as if they did not. So the whole disagrees only if a
    part exceeds its ``alpha`` by more than chance explains for the worst of so many (Bonferroni).
    """
    measured = measured_in_words(whole, guarantee, n_rows)
    if other := _other_weights(whole, guarantee, n_rows):
        return Verdict("nothing", f"{measured}. {other}")
    if calibrated_on:
        return Verdict("nothing", f"{measured}. {_NO_TEST}")
    tested = [part for part in parts if part.word != "nothing"]
    if not tested:
        return Verdict(
            "nothing",
            f"{measured}. None of the {len(parts)} {noun} with test rows has enough calibration "
            f"{guarantee.unit}s for a guarantee, so nothing is learned.",
        )
    normal = NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / 2 / len(tested))
    beyond = [part for part in tested if part.word == "disagrees" and _excess(part) > normal]
    above = [part for part in tested if part.word in ("chance", "disagrees") and part not in beyond]
    agreeing = len(tested) - len(beyond) - len(above)
    said = [
        f"{measured}. Of {len(tested)} {noun} that could be tested, {agreeing} agree with their guarantee."
    ]
    if above:
        said.append(f"Above it, but within chance for {len(tested)} of them: {_listed(above)}.")
    if beyond:
        said.append(
            f"Above it by more than chance explains: {_listed(beyond)}. Their test rows may not be drawn "
            "like their calibration rows."
        )
    uncertified = [part for part in parts if not part.guarantee.certified]
    if uncertified:
        said.append(f"Too few calibration {guarantee.unit}s for a guarantee: {_listed(uncertified)}.")
    return Verdict("disagrees" if beyond else "chance" if above else "agrees", " ".join(said))


def _excess(part: PartVerdict) -> float:
    """By how many standard deviations a part exceeds its guarantee."""
    assert part.realised is not None
    return float(part.realised.risk.value - part.guarantee.alpha) / excess_deviation(
        part.realised, part.guarantee
    )


def _listed(parts: Sequence[PartVerdict]) -> str:
    names = [part.name for part in parts]
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more


def measured_in_words(realised: Realised, guarantee: Guarantee, n_rows: int) -> str:
    """What was realised on how many rows, without a full stop."""
    rows = "the one test row" if n_rows == 1 else f"{n_rows:,} test rows"
    interval = f"(95 % interval {in_digits(realised.risk.low)} to {in_digits(realised.risk.high)})"
    value = in_digits(realised.risk.value)
    if guarantee.unit == "cluster":
        clusters = f"{realised.n_units:,} cluster{'' if realised.n_units == 1 else 's'}"
        return f"On {clusters} with {rows} the loss of a cluster was {value} on average {interval}"
    if guarantee.shift is not None:
        alike = f"which count as {_counted(realised.n_units)} by their weights,"
        return f"On {rows}, {alike} the weighted loss was {value} on average {interval}"
    return f"On {rows} the loss was {value} on average {interval}"


def _counted(n_units: float) -> str:
    return f"{n_units:,}" if isinstance(n_units, int) else in_digits(n_units)


def loss_deviation(tally: Tally, loss: IntervalLoss) -> float:
    """The standard deviation of a row's loss, with one row without loss counted in."""
    return deviation(CostTable.of(loss, len(tally.nearest)).values, tally.nearest)


def excess_deviation(realised: Realised, guarantee: Guarantee) -> float:
    """The standard deviation of the realised risk over draws of the test units, and of the calibration's.

    With ``delta`` the promise is about the calibration at hand, so only the test units are by chance.
    """
    calibrations = 1 / guarantee.n_rows if guarantee.delta is None and guarantee.n_rows else 0.0
    return realised.deviation * math.sqrt(calibrations + 1 / realised.n_units)
