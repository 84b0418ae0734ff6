"""Times that can be compared: the best of several repeats, taken in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

Job = Callable[[], Any]
FEWEST_TURNS, MOST_TURNS = 3, 25


def best_in_turns(jobs: Mapping[str, Job], seconds_each: float) -> dict[str, float]:
    """The best time of each job; a slow spell of the machine hits all of them.

    Every job runs three times, the order in each turn that of ``jobs``, and then again in further turns while
    it stays within ``seconds_each`` in all.
    """
    best = {name: seconds(job) for name, job in jobs.items()}
    turns = {
        name: min(MOST_TURNS, max(FEWEST_TURNS, int(seconds_each / taken))) for name, taken in best.items()
    }
    for turn in range(1, max(turns.values())):
        for name, job in jobs.items():
            if turn < turns[name]:
                best[name] = min(best[name], seconds(job))
    return best


def seconds(job: Job) -> float:
    start = time.perf_counter()
    kept = job()  # what it returns is freed after the clock has stopped
    taken = time.perf_counter() - start
    del kept
    return taken
