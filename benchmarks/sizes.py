"""Set size at equal risk: every method calibrated to the same alpha on the same random halves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .peers import ALPHA, PEERS, Contender, Ours
from .tabular import Scored
from .windows import ShortestWindows

METHODS: dict[str, Callable[[], Contender]] = {
    "frontier": Ours,
    "adaptive": lambda: Ours("adaptive"),
    "paper": lambda: Ours("paper"),
    "rps": lambda: Ours("rps"),
    "shortest windows": lambda: ShortestWindows(ALPHA),
} | {name: peer.make for name, peer in PEERS.items() if peer.installed and name != "Algorithms 1-2"}
WITHOUT_GUARANTEE = ("shortest windows",)
STANDARD_ERRORS_ALLOWED = 5


def one_half(data: Scored, half: int) -> dict[str, tuple[float, ...]]:
    """The results of each method on one random half after calibrating on the other."""
    n, K = data.proba.shape
    rows = np.random.default_rng(half).permutation(n)
    calibration, test = rows[: n // 2], rows[n // 2 :]
    outcomes = {}
    for name, make in METHODS.items():
        method = make()
        method.calibrate(data.proba[calibration], data.y[calibration])
        mask = method.mask(method.predict(data.proba[test]), K)
        outcomes[name] = _measures(mask, data.y[test])
    return outcomes


def means_over_halves(data: Scored, halves: list[dict[str, tuple[float, ...]]]) -> Iterator[dict[str, Any]]:
    """One finding for each method: means over the halves, and their standard errors."""
    n, K = data.proba.shape
    for name in METHODS:
        values = np.array([outcomes[name] for outcomes in halves])
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(halves))
        _require_control(data.name, name, mean[0], error[0], n - n // 2)
        yield {
            "data": data.name,
            "rows": n,
            "K": K,
            "method": name,
            "guaranteed": name not in WITHOUT_GUARANTEE,
            "risk": mean[0],
            "risk_se": error[0],
            "size": mean[1],
            "size_se": error[1],
            "not_intervals": mean[2],
            "empty": mean[3],
        }


def _measures(mask: np.ndarray, y: np.ndarray) -> tuple[float, float, float, float]:
    """Miscoverage, mean size, share of sets with a gap, share of empty sets."""
    size = mask.sum(axis=1)
    K = mask.shape[1]
    span = K - mask[:, ::-1].argmax(axis=1) - mask.argmax(axis=1)
    missed = ~mask[np.arange(len(y)), y]
    return missed.mean(), size.mean(), ((size > 0) & (span > size)).mean(), (size == 0).mean()


def _require_control(data: str, method: str, risk: float, error: float, rows: int) -> None:
    """Refuse sizes of a method that misses more than it was asked to."""
    slack = STANDARD_ERRORS_ALLOWED * max(error, np.sqrt(ALPHA * (1 - ALPHA) / rows))
    if risk > ALPHA + slack:
        raise RuntimeError(f"{method} misses {risk:.3f} on {data}, asked for {ALPHA}; its size says little.")
