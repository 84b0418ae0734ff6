r"""Whether the loss on test rows agrees with a guarantee, in one word and in plain sentences.

The guarantee is an average over calibrations. The risk of one calibration with ``n`` rows differs from
``alpha`` by about :math:`\sigma / \sqrt n`, where :math:`\sigma` is the standard deviation of a row's loss.
More test rows do not change that. So a realised risk is surprising only if it exceeds ``alpha`` by more than

.. math:: 1.96 \, \sigma \sqrt{1 / n_\text{calibration} + 1 / n_\text{test}}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

from ordinalrisk.calibration.guarantees import FULL, SATURATED, Guarantee
from ordinalrisk.calibration.promises import rows_needed
from ordinalrisk.display.text_table import listed
from ordinalrisk.display.wording import four_digits
from ordinalrisk.evaluation.estimates import CONFIDENCE
from ordinalrisk.evaluation.realised import Realised
from ordinalrisk.inputs.numbers import decimal_text

_TWO_SIDED_95 = 1.96
_NAMES_SHOWN = 5
_WEIGHTS_FAR_OFF = 5  # standard deviations, since weights can have heavy tails
_FEWEST_WEIGHTED = 50  # test rows; fewer say little about the spread
_ROUNDING = 1e-9


class Verdict(NamedTuple):
    """``"agrees"``, ``"chance"``, ``"disagrees"``, or ``"nothing"`` if nothing is certified; and why."""

    word: str
    text: str


@dataclass(frozen=True)
class StratumRisk:
    """What test rows show about the guarantee of a group, a true class, or both."""

    guarantee: Guarantee
    n_rows: int
    realised: Realised | None  # None if no test rows count
    word: str  # the word of the verdict
    mean_size: float = math.nan  # NaN without rows
    single: float = math.nan  # the share of sets with a single label
    n_covered: int = 0  # the rows whose set includes the truth

    @property
    def name(self) -> str:
        return self._named(self.guarantee.label)

    @property
    def pool_name(self) -> str:
        """The name with all classes that share the threshold."""
        return self._named(" + ".join(map(str, self.guarantee.pool)) or self.guarantee.label)

    @property
    def n_units(self) -> int:
        """The number of clusters if they are the units, else of rows; in a pool, of all its classes."""
        if self.guarantee.unit == "row" and not self.guarantee.pool:
            return self.n_rows
        return 0 if self.realised is None else int(self.realised.n_units)

    def _named(self, label: Any) -> str:
        return " / ".join(str(name) for name in (self.guarantee.group, label) if name is not None)


def judged(
    realised: Realised | None,
    guarantee: Guarantee,
    n_rows: int,
    calibrated_on: bool = False,
    strata: Sequence[StratumRisk] = (),
) -> Verdict:
    """Return what the risk of test rows says about a guarantee.

    A guarantee with parts is judged by what each part says; ``realised`` is then the risk of all rows. Rows
    that were ``calibrated_on`` say nothing.
    """
    if realised is None:
        return Verdict("nothing", f"The weights of all {n_rows:,} test rows are 0, so nothing is learned.")
    measured = _in_words(realised, guarantee, n_rows)
    if other := _other_weights(realised, guarantee, n_rows):
        return Verdict("nothing", f"{measured}. {other}")
    if calibrated_on:
        no_test = "But these are the rows of the calibration itself, which can't test it: take others."
        return Verdict("nothing", f"{measured}. {no_test}")
    if guarantee.parts:
        return _judged_by_strata(strata, guarantee, measured)
    if guarantee.exempt:
        return Verdict("nothing", f"{measured}. There is no guarantee for this class.")
    alpha = decimal_text(guarantee.alpha)
    if not guarantee.certified:
        needed = guarantee.n_needed or rows_needed(guarantee.alpha, guarantee.bound)
        most = "" if guarantee.stake is None else " that can lose the most"
        return Verdict(
            "nothing",
            f"Every set {FULL[guarantee.side]}, so there are no misses, and the test rows show nothing: "
            f"alpha={alpha} needs at least {needed:,} calibration {guarantee.unit}s{most}, and there were "
            f"{guarantee.n_rows:,}.",
        )
    risk = realised.risk
    if risk.low <= guarantee.alpha:
        text = f"{measured}. This agrees with the guarantee of at most {alpha}"
        text += ", which lies within the interval." if risk.value > guarantee.alpha else "."
        if guarantee.saturated:
            text += f" Every set {SATURATED[guarantee.side]}; a larger alpha changes nothing."
        return Verdict("agrees", text + _suspicion(realised, guarantee))
    by_chance = _TWO_SIDED_95 * _excess_deviation(realised, guarantee)
    margin = four_digits(by_chance)
    if risk.value - guarantee.alpha <= by_chance:
        if guarantee.delta is not None:
            why = f"the loss that so few test {guarantee.unit}s show can be up to {margin} above that of all."
        else:
            why = (
                f"the guarantee is an average over calibrations, and after one with {guarantee.n_rows:,} "
                f"{guarantee.unit}s the loss that {_counted(realised.n_units)} test {guarantee.unit}s "
                f"show can be up to {margin} above it."
            )
        return Verdict("chance", f"{measured}, more than {alpha}. That can be chance: {why}")
    the = "The"
    if guarantee.delta is not None:
        the = f"A calibration fails with a probability of up to {decimal_text(guarantee.delta)}. Or else the"
    return Verdict(
        "disagrees",
        f"{measured}, above the guaranteed {alpha} by more than the {margin} that chance "
        f"explains. {the} test {guarantee.unit}s may not be drawn like the calibration "
        f"{guarantee.unit}s: the model was trained on those, the population has moved, the model was "
        f"changed, {_other_reason(guarantee)}, or these are the wrong columns.",
    )


def _judged_by_strata(strata: Sequence[StratumRisk], guarantee: Guarantee, measured: str) -> Verdict:
    """Judge a guarantee that each stratum has for itself.

    If many strata all keep their guarantee, some look as if they did not. So the whole disagrees only if a
    stratum exceeds its ``alpha`` by more than chance explains for the worst of so many (Bonferroni).
    Classes that share a threshold are one stratum.
    """
    noun = strata_noun(guarantee)
    if any(part.guarantee.pool for part in strata):
        strata = [*{part.pool_name: part for part in strata}.values()]
        noun = (
            "pools of true classes" if guarantee.parts[0].group is None else "combinations of group and pool"
        )
    tested = [part for part in strata if part.word != "nothing"]
    if not tested:
        return Verdict(
            "nothing",
            f"{measured}. None of the {len(strata)} {noun} with test rows has enough calibration "
            f"{guarantee.unit}s for a guarantee, so nothing is learned.",
        )
    normal = NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / 2 / len(tested))
    beyond = [part for part in tested if part.word == "disagrees" and _excess(part) > normal]
    above = [part for part in tested if part.word in ("chance", "disagrees") and part not in beyond]
    agreeing = len(tested) - len(beyond) - len(above)
    each = f"All {agreeing}" if agreeing == len(tested) > 1 else f"{agreeing} of {len(tested)}"
    agree = "agrees" if agreeing == 1 else "agree"
    text = f"{measured}. {each} {noun} that could be tested {agree} with the guarantee."
    of = "For" if guarantee.parts[0].group is None else "In"
    if above:
        chance = "by no more than chance explains" + f" among {len(tested)}" * (len(tested) > 1)
        text += f" {of} {_names(above)}, the loss is above alpha {chance}."
    if beyond:
        text += (
            f" {of} {_names(beyond)}, the loss is above alpha by more than chance explains; the test "
            f"{guarantee.unit}s may not be drawn like the calibration {guarantee.unit}s."
        )
    if exempt := [part for part in strata if part.guarantee.exempt]:
        text += f" There is no guarantee for {_names(exempt)}."
    if uncertified := [part for part in strata if not part.guarantee.certified]:
        text += f" Too few calibration {guarantee.unit}s for a guarantee: {_names(uncertified)}."
    return Verdict("disagrees" if beyond else "chance" if above else "agrees", text)


def _names(strata: Sequence[StratumRisk]) -> str:
    return listed([part.pool_name for part in strata], _NAMES_SHOWN)


def _excess(part: StratumRisk) -> float:
    """Return by how many standard deviations a stratum exceeds its guarantee."""
    assert part.realised is not None
    excess = float(part.realised.risk.value - part.guarantee.alpha)
    return excess / _excess_deviation(part.realised, part.guarantee)


def _suspicion(realised: Realised, guarantee: Guarantee) -> str:
    """Return a sentence if the loss is far below the calibration loss, else an empty text."""
    usual = guarantee.calibration_risk
    if usual is None or guarantee.shift is not None:
        return ""
    largest = float(guarantee.bound) if guarantee.stake is None else 1.0
    spread = max(realised.deviation, math.sqrt(usual * (largest - usual)))
    by_chance = _TWO_SIDED_95 * spread * math.sqrt(1 / guarantee.n_rows + 1 / realised.n_units)
    if usual - realised.risk.value <= by_chance:
        return ""
    return (
        f" It is far less than the {four_digits(usual)} of the calibration {guarantee.unit}s: was the model "
        "trained on these rows?"
    )


def _other_weights(realised: Realised, guarantee: Guarantee, n_rows: int) -> str:
    """Say so if the weights show that the test rows are not drawn like the calibration rows."""
    usual = guarantee.mean_weight
    if realised.weight is None or usual is None or n_rows < _FEWEST_WEIGHTED:
        return ""
    mean = realised.weight / n_rows
    spread = mean * math.sqrt(max(n_rows / realised.n_units - 1, 0))
    by_chance = _WEIGHTS_FAR_OFF * spread * math.sqrt(1 / n_rows + 1 / guarantee.n_rows)
    if mean - usual <= by_chance + _ROUNDING * usual:  # rows of the new population weigh more, not less
        return ""
    return (
        f"But their mean weight is {four_digits(mean)}, and that of the calibration rows was "
        f"{four_digits(usual)}, so they may not be drawn like those. Rows of the new population would be "
        "weighted twice: test on rows drawn like the calibration rows, with weights on the same scale."
    )


def _other_reason(guarantee: Guarantee) -> str:
    if guarantee.shift is not None:
        return "the weights are not its likelihood ratios"
    if guarantee.unit == "cluster":
        return "the clusters are not independent"
    return "many rows come from one person or other unit"


def _in_words(realised: Realised, guarantee: Guarantee, n_rows: int) -> str:
    """Describe the mean loss and the number of rows, without a full stop."""
    rows = "the one test row" if n_rows == 1 else f"{n_rows:,} test rows"
    interval = f"(95 % interval {four_digits(realised.risk.low)} to {four_digits(realised.risk.high)})"
    value = four_digits(realised.risk.value)
    if guarantee.stake is not None:
        value += " of the largest possible loss"
    if guarantee.unit == "cluster":
        clusters = f"{realised.n_units:,} cluster{'' if realised.n_units == 1 else 's'}"
        return f"On {clusters} with {rows} the average loss of a cluster was {value} {interval}"
    if guarantee.shift is not None:
        counted = f"which count as {_counted(realised.n_units)} by their weights,"
        return f"On {rows}, {counted} the weighted average loss was {value} {interval}"
    return f"On {rows} the average loss was {value} {interval}"


def _counted(n_units: float) -> str:
    return f"{n_units:,}" if isinstance(n_units, int) else four_digits(n_units)


def strata_noun(guarantee: Guarantee) -> str:
    """Return what the parts of a guarantee are, in the plural."""
    first = guarantee.parts[0]
    if first.group is None:
        return "true classes"
    return "groups" if first.label is None else "combinations of group and true class"


def _excess_deviation(realised: Realised, guarantee: Guarantee) -> float:
    """The standard deviation of the realised risk over draws of the test units and of the calibration.

    With ``delta`` the guarantee is about this one calibration, so only the test units are random.
    """
    calibrations = 1 / guarantee.n_rows if guarantee.delta is None and guarantee.n_rows else 0.0
    return realised.deviation * math.sqrt(calibrations + 1 / realised.n_units)
