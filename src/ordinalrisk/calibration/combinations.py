"""Which options go together: those for whose combination there is a theorem."""

from __future__ import annotations

from collections.abc import Iterable

COMBINES = {
    "delta": ("groups", "clusters", "condition_on"),
    "condition_on": ("delta", "groups", "clusters"),
    "groups": ("delta", "condition_on", "clusters", "sample_weight", "randomize"),
    "clusters": ("delta", "condition_on", "groups", "randomize"),
    "sample_weight": ("groups",),
    "class_weight": (),
    "randomize": ("groups", "clusters"),
}
"""For each option those that it can be combined with."""

_ACCEPT = (
    "In Python, ordinalrisk.shift.accepted_rows draws rows by their weights; "
    "calibrate on those without weights."
)
INSTEAD = {
    frozenset(("delta", "sample_weight")): _ACCEPT,
    frozenset(("delta", "class_weight")): _ACCEPT,
    frozenset(("condition_on", "class_weight")): (
        "A promise for each true class does not depend on the shares of the classes: leave class_weight out."
    ),
}
"""What to do in place of a pair that is refused, where something else keeps both promises."""


def require_theorem(used: Iterable[str]) -> None:
    """Refuse options of which two can't be used together.

    Examples
    --------
    >>> require_theorem(["delta", "groups", "clusters"])
    >>> require_theorem(["condition_on", "class_weight"])
    Traceback (most recent call last):
    ValueError: condition_on and class_weight can't be used together. A promise for each true class does not
    depend on the shares of the classes: leave class_weight out. Possible with condition_on: delta, groups,
    clusters; with class_weight: no other option.
    """
    options = list(used)
    for i, one in enumerate(options):
        for other in options[i + 1 :]:
            if other not in COMBINES[one]:
                instead = INSTEAD.get(frozenset((one, other)), "We know of no theorem for both.")
                raise ValueError(
                    f"{one} and {other} can't be used together. {instead} Possible with {_possible(one)}; "
                    f"with {_possible(other)}."
                )


def _possible(option: str) -> str:
    return f"{option}: {', '.join(COMBINES[option]) or 'no other option'}"


def require_parts_suffice(used: Iterable[str]) -> None:
    """Refuse what can't be calibrated with where rows lie in many parts, none of which knows the others.

    Examples
    --------
    >>> require_parts_suffice(["clusters"])
    Traceback (most recent call last):
    ValueError: clusters can't be used with dask: rows of one cluster may lie in several partitions.
    Calibrate on one machine; its calibration predicts anywhere.
    """
    reasons = {
        "clusters": "rows of one cluster may lie in several partitions",
        "sample_weight": "each row then has a threshold of its own, from the whole risk curve",
    }
    for name in used:
        if name in reasons:
            raise ValueError(
                f"{name} can't be used with dask: {reasons[name]}. Calibrate on one machine; its calibration "
                "predicts anywhere."
            )
