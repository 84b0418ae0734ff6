"""What a miss costs, in one plain sentence for each kind of loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ordinalrisk.inputs.numbers import as_fraction, decimal_text
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.losses.kinds import DivergenceLoss, IntervalLoss, WeightedLoss

_FEW = 12


def loss_in_words(loss: IntervalLoss, classes: Sequence[str]) -> str:
    """What a set that misses the truth costs.

    Examples
    --------
    >>> from ordinalrisk import DivergenceLoss, WeightedLoss
    >>> loss_in_words(WeightedLoss([1, 1, 2]), ["None", "Mild", "Severe"])
    'A miss costs by the true class, however far off it is: 0.5 for None, 0.5 for Mild, 1 for Severe.'
    >>> loss_in_words(DivergenceLoss(under=2), ["None", "Mild", "Severe"])
    'A miss costs the number of labels between the truth and the set, times 2 where the set lies below the
     truth, as a share of the largest such cost.'
    """
    if isinstance(loss, WeightedLoss):
        return _weighted(CostTable.of(loss, len(classes)), classes)
    if isinstance(loss, DivergenceLoss):
        return _divergence(loss, classes)
    bound = decimal_text(CostTable.of(loss, len(classes)).bound)
    share = ", as a share of the largest cost in it" if loss.normalize else f", {bound} at most"
    return f"A miss costs what the cost table has for the true class and the nearest label of the set{share}."


def _weighted(costs: CostTable, classes: Sequence[str]) -> str:
    by_class = [row[-1] if y < len(classes) - 1 else row[0] for y, row in enumerate(costs.exact)]
    if set(by_class) == {1}:
        return (
            "Every miss costs 1, whatever the class and however far off it is: "
            "the average loss is the share of cases whose set misses the truth."
        )
    each = _listed(classes, [decimal_text(cost) for cost in by_class])
    return f"A miss costs by the true class, however far off it is: {each}."


def _divergence(loss: DivergenceLoss, classes: Sequence[str]) -> str:
    if loss.positions is None:
        scale, distance = "", "the number of labels between the truth and the set"
    else:
        at = _listed(classes, [decimal_text(as_fraction(position)) for position in loss.positions])
        scale, distance = f" on the scale {at}", "the distance from the truth to the set"
    power = as_fraction(loss.power)
    raised = "" if power == 1 else " squared" if power == 2 else f" to the power {decimal_text(power)}"
    sides = "".join(
        f", times {decimal_text(as_fraction(factor))} where the set lies {side} the truth"
        for factor, side in ((loss.under, "below"), (loss.over, "above"))
        if factor != 1
    )
    bound = decimal_text(loss.bound(len(classes)))
    share = ", as a share of the largest such cost" if loss.normalize else f", {bound} at most"
    return f"A miss costs {distance}{scale}{raised}{sides}{share}."


def _listed(classes: Sequence[str], values: Sequence[Any]) -> str:
    pairs = [f"{value} for {label}" for label, value in zip(classes, values, strict=True)]
    if len(pairs) > _FEW:
        pairs[_FEW // 2 : -_FEW // 2] = ["..."]
    return ", ".join(pairs)
