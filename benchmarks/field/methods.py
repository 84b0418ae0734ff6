"""Every method as one function: calibrate on some rows, and give the sets of others at many levels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import ordinalrisk as orisk
from benchmarks.peers import GivenProbabilities, torchcp_classification
from benchmarks.windows import best_windows, widest_safe, window_ends
from ordinalrisk.losses.kinds import IntervalLoss

LEVELS = np.geomspace(0.01, 0.9, 18)
"""What each method is asked for; its sets are compared at the risk that they have."""

Sets = Iterator[np.ndarray]
Sweep = Callable[[IntervalLoss, np.ndarray, np.ndarray, np.ndarray], Sets]
"""``sweep(loss, calibration, y, new)`` gives for each of :data:`LEVELS` which labels are in the sets."""


@dataclass(frozen=True)
class Method:
    """How to sweep over the levels, and what is known of the sets.

    Attributes
    ----------
    sweep : callable
        The sets at each level.
    is_interval : bool
        Whether every set is an interval of labels.
    is_nested : bool
        Whether a set at a lower level includes that at a higher one. Else it has no guarantee.
    knows_losses : bool
        Whether it is calibrated for the loss. Else it is calibrated for misses, whatever the loss.
    """

    sweep: Sweep
    is_interval: bool = True
    is_nested: bool = True
    knows_losses: bool = False


def grown(growth: str) -> Sweep:
    """A growth rule of ordinalrisk, calibrated for the loss."""

    def sweep(loss: IntervalLoss, calibration: np.ndarray, y: np.ndarray, new: np.ndarray) -> Sets:
        controller = orisk.RiskController(loss, alpha=0.1, growth=growth, check=False)
        with warnings.catch_warnings(action="ignore"):  # too few rows for the lowest levels: full sets
            controller.calibrate(calibration, y)
            for level in LEVELS:
                yield controller.predict_set(new, alpha=float(level)).mask()

    return sweep


def mapie(score: str) -> Sweep:
    def sweep(loss: IntervalLoss, calibration: np.ndarray, y: np.ndarray, new: np.ndarray) -> Sets:
        from mapie.classification import SplitConformalClassifier

        model = GivenProbabilities(calibration.shape[1]).fit(calibration)
        with warnings.catch_warnings(action="ignore"):  # about float32
            fitted = SplitConformalClassifier(
                model, confidence_level=list(1 - LEVELS), conformity_score=score, prefit=True
            ).conformalize(calibration, y)
            _, sets = fitted.predict_set(new)
        yield from np.moveaxis(sets, 2, 0)

    return sweep


def torchcp(score: str) -> Sweep:
    def sweep(loss: IntervalLoss, calibration: np.ndarray, y: np.ndarray, new: np.ndarray) -> Sets:
        import torch

        parts = torchcp_classification()
        torch.manual_seed(0)  # its APS draws a number for each row
        with warnings.catch_warnings(action="ignore"):  # about its own deprecated default
            predictor = parts.SplitPredictor(getattr(parts, score)(score_type="identity"))
        known, labels, rows = map(torch.from_numpy, (calibration, y, new))
        for level in LEVELS:
            predictor.calculate_threshold(known, labels, alpha=float(level))
            yield predictor.predict_with_logits(rows).numpy().astype(bool)

    return sweep


def shortest_windows(loss: IntervalLoss, calibration: np.ndarray, y: np.ndarray, new: np.ndarray) -> Sets:
    known, asked = best_windows(calibration), best_windows(new)
    label = np.arange(new.shape[1])
    for level in LEVELS:
        lower, upper = window_ends(asked, widest_safe(known, y, float(level)))
        yield (lower[:, None] <= label) & (label <= upper[:, None])


def hull(sweep: Sweep) -> Sweep:
    """The intervals from the first to the last label of the sets of another method."""

    def filled(*arguments: np.ndarray) -> Sets:
        for mask in sweep(*arguments):
            yield np.logical_or.accumulate(mask, 1) & np.logical_or.accumulate(mask[:, ::-1], 1)[:, ::-1]

    return filled


RULES = ("frontier", "adaptive", "paper", "rps")
PLAIN = {
    **{rule: Method(grown(rule), knows_losses=True) for rule in RULES},
    "shortest windows": Method(shortest_windows, is_nested=False),
    "MAPIE lac": Method(mapie("lac"), is_interval=False),
    "MAPIE aps": Method(mapie("aps"), is_interval=False),
    "TorchCP LAC": Method(torchcp("LAC"), is_interval=False),
    "TorchCP APS": Method(torchcp("APS"), is_interval=False),
    "LAC, gaps filled": Method(hull(torchcp("LAC"))),
}
"""On scores as they are."""
RECALIBRATED = {f"{rule}, recalibrated": PLAIN[rule] for rule in RULES}
"""On recalibrated scores."""
