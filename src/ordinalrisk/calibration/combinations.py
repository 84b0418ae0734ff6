"""Which options can be combined: pairs that a theorem covers."""

from __future__ import annotations

from collections.abc import Iterable

COMBINES = {
    "delta": ("groups", "clusters", "condition_on", "exempt_classes", "relative"),
    "condition_on": ("delta", "groups", "clusters", "pool_classes", "exempt_classes", "relative"),
    "groups": (
        *("delta", "condition_on", "clusters", "sample_weight", "randomize"),
        *("pool_classes", "exempt_classes", "relative"),
    ),
    "clusters": ("delta", "condition_on", "groups", "randomize", "exempt_classes", "relative"),
    "sample_weight": ("groups", "relative"),
    "class_ratios": ("relative",),
    "randomize": ("groups", "clusters", "relative"),
    "pool_classes": ("condition_on", "groups", "exempt_classes", "relative"),
    "exempt_classes": ("condition_on", "delta", "groups", "clusters", "pool_classes", "relative"),
    "relative": (
        *("delta", "condition_on", "groups", "clusters", "sample_weight", "class_ratios", "randomize"),
        *("pool_classes", "exempt_classes"),
    ),
}
"""For each option, the options that it can be combined with."""

_ACCEPT = (
    "Calibrate again on recent rows of the new population, without weights. If there are none: in Python, "
    "ordinalrisk.shift.accepted_rows draws rows by their weights, to calibrate on without weights."
)
_ONE_LABEL = (
    "Pools keep the expected loss of rows; a class without enough rows can be exempt_classes instead."
)
INSTEAD = {
    frozenset(("delta", "pool_classes")): _ONE_LABEL,
    frozenset(("clusters", "pool_classes")): _ONE_LABEL,
    frozenset(("delta", "sample_weight")): _ACCEPT,
    frozenset(("delta", "class_ratios")): _ACCEPT,
    frozenset(("condition_on", "class_ratios")): (
        "A guarantee for each true class does not depend on the class shares: leave class_ratios out."
    ),
}
"""What to do instead of combining a pair, if something else keeps both promises."""


def require_theorem(used: Iterable[str]) -> None:
    """Raise an error if two of the options can't be used together."""
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
    """Raise an error for options that don't work with rows in many parts."""
    reasons = {
        "clusters": "rows of one cluster may lie in several partitions",
        "pool_classes": "the losses of several classes are added up on one machine",
        "sample_weight": "each row then has a threshold of its own, from the whole risk curve",
    }
    for name in used:
        if name in reasons:
            raise ValueError(
                f"{name} can't be used with dask: {reasons[name]}. Calibrate on one machine; its calibration "
                "predicts anywhere."
            )
