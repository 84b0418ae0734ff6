"""A colour and a sentence that say whether test rows agree with a guarantee.

Green: the test rows agree with the guarantee, no class, group or size of sets is clearly far off, and there
are enough test rows. Red: the test rows disagree with the guarantee. Amber: everything else, such as a loss
above alpha that can be chance, a class that is nearly always missed, or rows that show nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ordinalrisk.display.text_table import listed
from ordinalrisk.evaluation.far_off import FarOff
from ordinalrisk.evaluation.realised import Realised

_MOST_NAMED = 2
_AGREE = "The test rows agree with the guarantee"


class Light(NamedTuple):
    """``"green"``, ``"amber"`` or ``"red"``, and what the colour stands for in one sentence."""

    colour: str
    sentence: str
    far_off: Sequence[FarOff] = ()
    n_looked_at: int = 0  # classes, groups and sizes with test rows


def light_of(
    word: str,
    far_off: Sequence[FarOff],
    n_looked_at: int,
    too_few: bool,
    strata: str | None = None,
    least_covered: str = "",
    target: str = "1 - alpha",
    not_compared: Sequence[Any] = (),
) -> Light:
    """Return the colour of a verdict and what else the test rows show.

    ``strata`` names what has guarantees of its own, such as ``"groups"``: then the loss is above ``alpha`` in
    some of them, not over all rows.

    A green sentence names the coverage that classes, groups and sizes were compared with, the ``target``, and
    the classes that were ``not_compared``. It ends with what may be wrong with the ``least_covered`` class.

    Examples
    --------
    >>> light_of("agrees", [], 9, too_few=False).colour
    'green'
    >>> light_of("agrees", [], 1, too_few=True).sentence
    'There are too few test rows to tell whether the guarantee holds.'
    """
    named = _sentence_list([*map(str, far_off)])
    if word == "disagrees":
        sentence = "The test rows disagree with the guarantee"
        return Light("red", f"{sentence}; {named}." if far_off else f"{sentence}.", far_off, n_looked_at)
    if word == "nothing":
        sentence = "The test rows say nothing about the guarantee"
        return Light(
            "amber", f"{sentence}, but {named}." if far_off else f"{sentence}.", far_off, n_looked_at
        )
    above = "The" if strata is None else f"In some {strata}, the"
    above += " loss is above alpha, which can be chance"
    if far_off:
        start = above if word == "chance" else "The test rows agree with the guarantee on average"
        return Light("amber", f"{start}, but {named}.", far_off, n_looked_at)
    if word == "chance":
        return Light("amber", f"{above}.", far_off, n_looked_at)
    if too_few:
        few = "There are too few test rows to tell whether the guarantee holds."
        return Light("amber", few, far_off, n_looked_at)
    if not n_looked_at:
        return Light("green", f"{_AGREE}.")
    no_class = "No class"
    if not_compared:
        classes = "class" if len(not_compared) == 1 else "classes"
        no_class = f"Not counting {classes} {listed(map(repr, not_compared), _MOST_NAMED)}, no class"
    fine = f"{_AGREE}. {no_class}, group or set size is clearly covered less than half as often as {target}"
    return Light("green", f"{fine}; {least_covered}." if least_covered else f"{fine}.", far_off, n_looked_at)


def too_few_rows(realised: Realised | None, alpha: Fraction, bound: Fraction) -> bool:
    """Return whether the risk may be so large that less than half of what was guaranteed is kept.

    The 95 % interval of the risk then ends above ``B - (B - alpha) / 2``.
    """
    return realised is None or bool(realised.risk.high > (alpha + bound) / 2)


def _sentence_list(texts: Sequence[str]) -> str:
    """Join a few texts with commas and "and"; of many, name the first."""
    if len(texts) > _MOST_NAMED:
        texts = [*texts[:_MOST_NAMED], f"{len(texts) - _MOST_NAMED} more"]
    *first, last = texts or [""]
    return f"{', '.join(first)} and {last}" if first else last
