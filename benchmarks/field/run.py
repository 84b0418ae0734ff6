"""What ``python -m benchmarks --section field`` runs: every target with every model."""

from __future__ import annotations

from .measure import measure
from .results import save
from .scores import MODELS
from .targets import Target, installed

__all__ = ["measure", "pairs", "save", "splits"]

QUICK_TARGETS, SPLITS, QUICK_SPLITS = 2, 20, 4


def pairs(quick: bool) -> tuple[list[tuple[Target, str]], list[str]]:
    """Return the targets that can be loaded, each with every model, and a line on each that can't."""
    ready, left_out = installed()
    chosen = ready[-QUICK_TARGETS:] if quick else ready
    return [(target, model) for target in chosen for model in MODELS], left_out


def splits(quick: bool) -> int:
    return QUICK_SPLITS if quick else SPLITS
