"""Shortest windows: for each row the fewest neighbouring labels whose probability reaches 1 - lambda.

They need not be nested as lambda falls, so the search over lambda below carries no guarantee. They show how
small sets could be without this guarantee.
"""

from __future__ import annotations

import numpy as np

HALVINGS = 40


class ShortestWindows:
    """Windows at the largest lambda found by bisection whose calibration loss is within the budget."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def calibrate(self, proba: np.ndarray, y: np.ndarray) -> None:
        self.lam = widest_safe(best_windows(proba), y, self.alpha)

    def predict(self, proba: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return window_ends(best_windows(proba), self.lam)

    def mask(self, ends: tuple[np.ndarray, np.ndarray], K: int) -> np.ndarray:
        lower, upper = ends
        return (lower[:, None] <= np.arange(K)) & (np.arange(K) <= upper[:, None])


def widest_safe(windows: tuple[np.ndarray, np.ndarray], y: np.ndarray, alpha: float) -> float:
    """The largest lambda found whose misses, and one more, are within the budget."""
    safe, unsafe = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (safe + unsafe) / 2
        lower, upper = window_ends(windows, middle)
        missed = np.count_nonzero((y < lower) | (y > upper))
        if missed + 1 <= alpha * (len(y) + 1):
            safe = middle
        else:
            unsafe = middle
    return safe


def best_windows(proba: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row and length the largest probability of a window, and where that window starts."""
    n, K = proba.shape
    below = np.zeros((n, K + 1))
    np.cumsum(proba, axis=1, out=below[:, 1:])
    mass, start = np.empty((n, K)), np.empty((n, K), np.int64)
    for length in range(1, K + 1):
        inside = below[:, length:] - below[:, : K + 1 - length]
        start[:, length - 1] = inside.argmax(axis=1)
        mass[:, length - 1] = inside.max(axis=1)
    return mass, start


def window_ends(windows: tuple[np.ndarray, np.ndarray], lam: float) -> tuple[np.ndarray, np.ndarray]:
    mass, start = windows
    enough = mass >= 1 - lam
    enough[:, -1] = True  # the full scale, whatever the rounding of its sum
    length = enough.argmax(axis=1)
    lower = start[np.arange(len(start)), length]
    return lower, lower + length
