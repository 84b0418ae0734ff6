"""Probabilities and labels to time on: float32, made in blocks so that only the result takes memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

ROWS_AT_ONCE = 20_000


def ordinal_scores(n: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of a good ordinal model: a peak of width 1 around a latent position, with noise."""
    return _drawn(n, K, width=1.0, noise=0.3)


def wide_scores(n: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """A peak as wide as a tenth of the scale, so that the sets of many classes are large."""
    return _drawn(n, K, width=K / 10, noise=0.3)


def unordered_scores(n: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """The worst case for growing intervals: probabilities without any order."""
    return _drawn(n, K, width=np.inf, noise=2.0)


def _drawn(n: int, K: int, width: float, noise: float) -> tuple[np.ndarray, np.ndarray]:
    proba, y = np.empty((n, K), np.float32), np.empty(n, np.int64)
    label = np.arange(K, dtype=np.float32)

    def fill(start: int) -> None:
        rows = slice(start, min(start + ROWS_AT_ONCE, n))
        rng = np.random.default_rng([K, start])
        m = rows.stop - rows.start
        latent = rng.uniform(-0.5, K - 0.5, (m, 1)).astype(np.float32)
        logits = rng.standard_normal((m, K), np.float32) * np.float32(noise)
        logits -= ((label - latent) / np.float32(width)) ** 2 / 2
        np.exp(logits - logits.max(axis=1, keepdims=True), out=logits)
        np.divide(logits, logits.sum(axis=1, keepdims=True), out=proba[rows])
        passed = proba[rows].cumsum(axis=1)[:, :-1] < rng.random((m, 1), np.float32)
        y[rows] = passed.sum(axis=1)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, n, ROWS_AT_ONCE)))
    return proba, y
