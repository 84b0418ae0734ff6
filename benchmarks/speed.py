"""Time of calibrating and predicting, ours against reading the array and against peers, and our memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .literal import Literal
from .memory import peak_bytes, resident_peak_bytes
from .peers import ALPHA, PEERS, Contender, Ours, Peer, require_coverage
from .reading import readers
from .scores import ordinal_scores, unordered_scores, wide_scores
from .timing import best_in_turns, seconds

STEPS = ("calibrate", "predict")
ROWS_TO_PROBE = 1_000
ROWS_TO_CHECK = 5_000
ROWS_FOR_RESIDENT_MEMORY = 1_000_000  # below, page and allocator effects drown the call's own memory
TIME, MEMORY, MISSING = "time", "memory", "missing"


@dataclass(frozen=True)
class Limits:
    """Limits of time and memory; larger calls and arrays are left out."""

    seconds: float
    bytes: float
    seconds_each: float


@dataclass
class Expectation:
    """What a contender's next call should cost, from the last one measured."""

    rows: int
    calibrate: float
    predict: float
    bytes_a_row: float

    def refusal(self, peer: Peer, n: int, array_bytes: int, limits: Limits) -> str | None:
        more = n / self.rows
        if array_bytes + n * self.bytes_a_row > limits.bytes:
            return MEMORY
        if max(self.calibrate * more, self.predict * more**peer.predict_order) > limits.seconds:
            return TIME
        return None


def measure_grid(rows: list[int], classes: list[int], limits: Limits) -> Iterator[dict[str, Any]]:
    """One finding for each number of classes and rows, the rows in rising order."""
    for K in classes:
        known = {"ours": Peer(Ours, "ordinalrisk"), **PEERS}
        expected = {name: _probed(peer, K) for name, peer in known.items() if peer.installed}
        for n in sorted(rows):
            yield _measure_cell(n, K, known, expected, limits)


def _probed(peer: Peer, K: int) -> Expectation:
    """A first run on few rows, which also imports the packages."""
    proba, y = ordinal_scores(ROWS_TO_PROBE, K)
    contender = peer.make()
    contender.calibrate(proba, y)
    contender.predict(proba)
    best = best_in_turns(_jobs(contender, proba, y), seconds_each=0.2)
    memory = max(peak_bytes(job) for job in _jobs(contender, proba, y).values()) / ROWS_TO_PROBE
    return Expectation(ROWS_TO_PROBE, best["calibrate"], best["predict"], max(memory, K * peer.bytes_a_cell))


def _jobs(contender: Contender, proba: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], Any]]:
    return {
        "calibrate": lambda: contender.calibrate(proba, y),
        "predict": lambda: contender.predict(proba),
    }


def _measure_cell(
    n: int, K: int, known: Mapping[str, Peer], expected: Mapping[str, Expectation], limits: Limits
) -> dict[str, Any]:
    found: dict[str, Any] = {"n": n, "K": K, "seconds": {}, "left_out": {}, "bytes_a_row": {}}
    array_bytes = n * K * np.dtype(np.float32).itemsize + n * np.dtype(np.int64).itemsize
    for name, peer in known.items():
        reason = expected[name].refusal(peer, n, array_bytes, limits) if name in expected else MISSING
        if reason:
            found["left_out"][name] = reason
    if "ours" in found["left_out"]:
        return found
    proba, y = ordinal_scores(n, K)
    contenders = {name: peer.make() for name, peer in known.items() if name not in found["left_out"]}
    jobs = dict(readers(proba))
    for name, contender in contenders.items():
        jobs |= {f"{name} {step}": job for step, job in _jobs(contender, proba, y).items()}
    best = best_in_turns(jobs, limits.seconds_each)
    found["seconds"]["read"] = min(best.pop("read"), best.pop("read in threads"))
    check = slice(0, ROWS_TO_CHECK)
    for name, contender in contenders.items():
        require_coverage(name, contender, proba[check], y[check])
        times = {step: best[f"{name} {step}"] for step in STEPS}
        found["seconds"][name] = times
        expected[name].rows = n
        expected[name].calibrate, expected[name].predict = times["calibrate"], times["predict"]
    for step, job in _jobs(contenders["ours"], proba, y).items():
        found["bytes_a_row"][step] = peak_bytes(job) / n
        if n >= ROWS_FOR_RESIDENT_MEMORY and (resident := resident_peak_bytes(job)) is not None:
            found["bytes_a_row"][f"{step} resident"] = resident / n
    expected["ours"].bytes_a_row = max(found["bytes_a_row"].values())
    return found


VARIANTS = {
    "coverage, frontier": (ordinal_scores, Ours()),
    "coverage, adaptive": (ordinal_scores, Ours("adaptive")),
    "coverage, paper": (ordinal_scores, Ours("paper")),
    "coverage, rps": (ordinal_scores, Ours("rps")),
    "divergence, frontier": (ordinal_scores, Ours("frontier", "divergence")),
    "divergence, adaptive": (ordinal_scores, Ours("adaptive", "divergence")),
    "divergence, paper": (ordinal_scores, Ours("paper", "divergence")),
    "frontier, wide peaks": (wide_scores, Ours()),
    "frontier, no order": (unordered_scores, Ours()),
}


def measure_variants(n: int, classes: list[int], limits: Limits) -> Iterator[dict[str, Any]]:
    """Our losses and rules, and harder probabilities, each against reading the same array."""
    for K in classes:
        for scores in (ordinal_scores, wide_scores, unordered_scores):
            proba, y = scores(n, K)
            jobs = dict(readers(proba))
            for name, (made_by, ours) in VARIANTS.items():
                if made_by is scores:
                    ours.calibrate(proba[:ROWS_TO_PROBE], y[:ROWS_TO_PROBE])  # imports
                    ours.predict(proba[:ROWS_TO_PROBE])
                    jobs |= {f"{name} {step}": job for step, job in _jobs(ours, proba, y).items()}
            best = best_in_turns(jobs, limits.seconds_each / 3)
            read = min(best.pop("read"), best.pop("read in threads"))
            for name, (made_by, _) in VARIANTS.items():
                if made_by is scores:
                    times = {step: best[f"{name} {step}"] for step in STEPS}
                    yield {"n": n, "K": K, "variant": name, "read": read, "seconds": times}


def measure_divergence_literal(n: int, classes: list[int]) -> Iterator[dict[str, Any]]:
    """The paper's Algorithms 2 and 3 against ours with the same loss and rule."""
    for K in classes:
        proba, y = ordinal_scores(n, K)
        ours, literal = Ours("paper", "divergence"), Literal(ALPHA, "divergence")
        ours_best = best_in_turns(_jobs(ours, proba, y), seconds_each=0.5)
        taken = {step: seconds(job) for step, job in _jobs(literal, proba, y).items()}
        yield {"n": n, "K": K, "ours": ours_best, "Algorithms 2-3": taken}
