"""The options of a calibration: which of them have a theorem together, and the names of the bounds."""

import re

import ordinalrisk as orisk


def _bounds():
    """The names that the refusal of an unknown bound lists."""
    try:
        orisk.RiskController(delta=0.1, confidence_bound="unknown")
    except ValueError as error:
        return tuple(re.search(r"one of (.*);", str(error))[1].split(", "))


BOUNDS = _bounds()
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
"""For each option those that it can be combined with; the refusal of any other pair lists these."""
