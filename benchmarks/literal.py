"""The paper's Algorithms 1 to 3, line by line.

Two things are not as printed, since it would otherwise leave the scale or never end: a neighbour outside the
scale counts as minus infinity, and growth ends at the full scale. Algorithm 3 takes head, tail and R with the
1 / (K - 1) of Eq. 9, so that lambda is on the scale of the loss. Everything else stays, slips included:
``sum`` starts at 0, and Algorithm 2 returns its last lambda whether or not that one met the inequality.
"""

from __future__ import annotations

import numpy as np

# delta of Algorithm 2: the paper gives no number, these are the ones in its authors' released code
PRECISION = {"coverage": 5e-4, "divergence": 1e-4}


def algorithm_1(lam, h, f):
    """The set of one row for a weighted loss."""
    K = len(f)
    s = h * f
    u = l = int(np.argmax(s))  # noqa: E741
    total = 0.0
    while total < 1 - lam and (l > 0 or u < K - 1):
        left = s[l - 1] if l > 0 else -np.inf
        right = s[u + 1] if u < K - 1 else -np.inf
        if left > right:
            total, l = total + left, l - 1  # noqa: E741
        else:
            total, u = total + right, u + 1
    return l, u


def algorithm_3(lam, f):
    """The set of one row for the divergence loss."""
    K = len(f)
    head = np.cumsum(f) / (K - 1)
    tail = np.cumsum(f[::-1])[::-1] / (K - 1)
    l = u = int(np.argmax(f))  # noqa: E741
    total = sum((l - i) * f[i] for i in range(l)) + sum((i - u) * f[i] for i in range(u + 1, K))
    total = total / (K - 1)
    while total > lam and (l > 0 or u < K - 1):
        left = head[l - 1] if l > 0 else -np.inf
        right = tail[u + 1] if u < K - 1 else -np.inf
        if left >= right:
            total, l = total - left, l - 1  # noqa: E741
        else:
            total, u = total - right, u + 1
    return l, u


def algorithm_2(proba, y, alpha, delta, set_of_row, loss_of_row):
    """Lambda by binary search."""
    n = len(y)
    previous, lam = 0.0, 0.5
    while abs(lam - previous) > delta:
        total = 0.0
        for i in range(n):
            l, u = set_of_row(lam, proba[i])  # noqa: E741
            total += loss_of_row(y[i], l, u)
        step = abs(lam - previous) / 2
        previous, lam = lam, (lam - step if total > (n + 1) * alpha - 1 else lam + step)
    return lam


class Literal:
    """Both losses with the interface of the other contenders."""

    def __init__(self, alpha: float, loss: str = "coverage") -> None:
        self.alpha, self.loss = alpha, loss

    def calibrate(self, proba: np.ndarray, y: np.ndarray) -> None:
        K = proba.shape[1]
        if self.loss == "coverage":
            weights = np.ones(K)
            self.set_of_row = lambda lam, f: algorithm_1(lam, weights, f)
            cost = lambda label, l, u: float(not l <= label <= u)  # noqa: E731, E741
        else:
            self.set_of_row = algorithm_3
            cost = lambda label, l, u: max(l - label, label - u, 0) / (K - 1)  # noqa: E731, E741
        self.lam = algorithm_2(proba, y, self.alpha, PRECISION[self.loss], self.set_of_row, cost)

    def predict(self, proba: np.ndarray) -> np.ndarray:
        return np.array([self.set_of_row(self.lam, f) for f in proba])

    def mask(self, ends: np.ndarray, K: int) -> np.ndarray:
        return (ends[:, :1] <= np.arange(K)) & (np.arange(K) <= ends[:, 1:])
