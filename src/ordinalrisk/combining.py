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


def require_theorem(used: Iterable[str]) -> None:
    """Refuse options of which two have no theorem together.

    Examples
    --------
    >>> require_theorem(["delta", "groups", "clusters"])
    >>> require_theorem(["delta", "sample_weight"])
    Traceback (most recent call last):
    ValueError: No theorem covers delta together with sample_weight. Possible with delta: groups, clusters,
    condition_on; with sample_weight: groups.
    """
    options = list(used)
    for i, one in enumerate(options):
        for other in options[i + 1 :]:
            if other not in COMBINES[one]:
                raise ValueError(
                    f"No theorem covers {one} together with {other}. Possible with {_possible(one)}; "
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
