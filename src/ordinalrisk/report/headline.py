"""The guarantee in one plain sentence: how many sets miss, or how far off they are."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ordinalrisk.calibration.guarantees import FULL, Guarantee
from ordinalrisk.display.text_table import listed
from ordinalrisk.inputs.numbers import decimal_text, percent_text
from ordinalrisk.losses.kinds import IntervalLoss

_MOST_ALPHAS = 4
_LIES = {"upper": "below", "lower": "above"}
_OF_A_SHARE = {
    "weight": "at most {share} of the total weight is missed",
    "distance": "sets miss by at most {share} of the largest possible distance on average",
    "loss": "sets cost at most {share} of the largest possible loss on average",
}
"""The guarantee if ``alpha`` is a share of what could be lost."""


def headline(loss: IntervalLoss, n_classes: int, guarantee: Guarantee) -> str:
    """Return the guarantee as one sentence.

    Examples
    --------
    >>> import ordinalrisk as orisk
    >>> proba = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20
    >>> controller = orisk.RiskController(alpha=0.1).calibrate(proba, [0, 1, 1] * 20)
    >>> headline(controller.loss, 3, controller.guarantee())
    'At most 10 % of sets miss the truth.'
    """
    if not guarantee.certified and not guarantee.parts:
        few = f"{guarantee.n_rows:,} calibration {guarantee.unit}s are too few for this alpha"
        return f"Every set {FULL[guarantee.side]}: {few}."
    what = _at_most(loss, n_classes, guarantee)
    where = "" if guarantee.shift is None else " in the new population"
    if guarantee.unit == "cluster":
        where += " over clusters" if what.endswith(" on average") else ", on average over clusters"
    text = "".join([*_conditions(guarantee), what, where, "."])
    return text[0].upper() + text[1:]


def loss_name(loss: IntervalLoss) -> str:
    """Name a loss in a word: "coverage" if every miss costs the same, else its kind."""
    return loss.called if loss.called is not None and loss == type(loss)() else loss.kind


def _conditions(guarantee: Guarantee) -> Iterator[str]:
    groups = {part.group for part in guarantee.parts} - {None}
    classes = {part.label for part in guarantee.parts} - {None}
    each = [f"in each of {len(groups)} groups"] if groups else []
    if classes and not _alphas_differ(guarantee):
        pooled = any(part.pool for part in guarantee.parts)
        each.append("for each pool of true classes" if pooled else "for each true class")
    exempt = dict.fromkeys(repr(part.label) for part in guarantee.parts if part.exempt)
    if exempt:
        if not classes or _alphas_differ(guarantee):
            each.append("for each true class")
        each[-1] += f" except {listed(exempt)}"
    if each:
        yield f"{' and '.join(each)}{'' if guarantee.delta is None else ' separately'}, "
    if guarantee.delta is not None:
        yield f"with {percent_text(1 - guarantee.delta)} confidence, "


def _alphas_differ(guarantee: Guarantee) -> bool:
    return len({part.alpha for part in guarantee.parts if not part.exempt}) > 1


def _at_most(loss: IntervalLoss, n_classes: int, guarantee: Guarantee) -> str:
    """Describe the risk, or the risk of each class if they differ."""
    if not _alphas_differ(guarantee):
        return _promise(loss, n_classes, guarantee, guarantee.alpha)
    labels: dict[Fraction, dict[str, None]] = {}
    for part in guarantee.parts:
        if not part.exempt:
            labels.setdefault(part.alpha, {})[repr(part.label)] = None
    promises = [_promise(loss, n_classes, guarantee, alpha) for alpha in labels]
    short = [promises[0], *(_without_same_end(promise, promises[0]) for promise in promises[1:])]
    each = [
        f"{promise} for {' and '.join(names)}" for promise, names in zip(short, labels.values(), strict=True)
    ]
    return listed(each, _MOST_ALPHAS)


def _without_same_end(text: str, other: str) -> str:
    """Leave out the last words that another text has too.

    >>> _without_same_end("at most 5 % of sets miss", "at most 10 % of sets miss")
    'at most 5 %'
    """
    words, others = text.split(), other.split()
    while words and others and words[-1] == others[-1] != "%":
        words.pop()
        others.pop()
    return " ".join(words)


def _promise(loss: IntervalLoss, n_classes: int, guarantee: Guarantee, alpha: Fraction) -> str:
    if guarantee.side is not None:
        return _of_side(loss, n_classes, guarantee, alpha)
    if guarantee.measure is None:
        return loss.promise_in_words(alpha, n_classes)
    return _OF_A_SHARE[guarantee.measure].format(share=percent_text(alpha))


def _of_side(loss: IntervalLoss, n_classes: int, guarantee: Guarantee, alpha: Fraction) -> str:
    lie = f"lie {_LIES[guarantee.side or '']} the truth"
    if guarantee.measure is not None:
        largest = f"the largest possible {guarantee.measure} there"
        return f"sets that {lie} cost at most {percent_text(alpha)} of {largest} on average"
    bound = loss.bound(n_classes)
    if loss.measure == "weight" and all(max(row) == bound for row in loss.exact_costs(n_classes)):
        return f"at most {percent_text(alpha / bound)} of sets {lie}"
    return f"sets that {lie} cost at most {decimal_text(alpha)} on average"
