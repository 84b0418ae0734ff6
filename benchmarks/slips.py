"""How often Theorem 2 and Algorithm 2 of the paper fail on random rows; ``python -m benchmarks.slips``.

Rows are drawn uniformly from all probability vectors of eight classes, and labels from the rows.
"""

from __future__ import annotations

import numpy as np

from .literal import Literal

K = 8


def greedy_is_longer(proba: np.ndarray, lam: float | None = None) -> float:
    """The share of rows where the greedy set at ``lam`` is not the shortest; at any lambda if it is None."""
    return float(np.mean([_is_longer(f, lam) for f in proba]))


def _is_longer(f: np.ndarray, lam: float | None) -> bool:
    """Compare the sums of scores, with equal weights, that the greedy and the best set of each size have."""
    l = u = m = int(np.argmax(f))  # noqa: E741
    greedy = [f[m]]
    while u - l < K - 1:
        left, right = f[l - 1] if l > 0 else -1.0, f[u + 1] if u < K - 1 else -1.0
        l, u = (l - 1, u) if left > right else (l, u + 1)  # noqa: E741
        greedy.append(f[l : u + 1].sum())
    best = [
        max(f[first : first + size].sum() for first in range(max(0, m - size + 1), min(m, K - size) + 1))
        for size in range(1, K + 1)
    ]
    if lam is None:
        return bool(np.any(np.array(best) > np.array(greedy) + 1e-12))
    return bool(np.argmax(np.array(greedy) >= 1 - lam) > np.argmax(np.array(best) >= 1 - lam))


def search_breaks_its_inequality(loss: str, alpha: float, n: int, trials: int, seed: int = 0) -> float:
    """The share of trials where the rows lose more at the lambda of Algorithm 2 than it allows."""
    rng = np.random.default_rng(seed)
    broken = 0
    for _ in range(trials):
        proba, y = _rows(rng, n)
        search = Literal(alpha, loss)
        search.calibrate(proba, y)
        lower, upper = search.predict(proba).T
        miss = np.maximum(np.maximum(lower - y, y - upper), 0)
        total = np.sum(miss > 0) if loss == "coverage" else miss.sum() / (K - 1)
        broken += bool(total > (n + 1) * alpha - 1 + 1e-9)
    return broken / trials


def _rows(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    proba = rng.dirichlet(np.ones(K), n)
    return proba, (proba.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)


def main() -> None:
    proba, _ = _rows(np.random.default_rng(0), 20_000)
    print("Greedy sets that are not the shortest, of 20,000 rows:")
    for lam in (0.1, 0.2, 0.3, None):
        at = "at some lambda" if lam is None else f"at lambda = {lam}"
        print(f"  {at:15} {greedy_is_longer(proba, lam):.1%}")
    print("Lambdas of Algorithm 2 that break its inequality, of 1,000 trials with 100 rows and alpha = 0.1:")
    for loss in ("coverage", "divergence"):
        print(f"  {loss:15} {search_breaks_its_inequality(loss, 0.1, 100, 1_000):.1%}")


if __name__ == "__main__":
    main()
