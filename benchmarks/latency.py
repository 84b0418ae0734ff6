"""What a fresh process pays: the import, and a first small call once compiled code is cached."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

IMPORT = "import ordinalrisk"
SMALL_CALL = """
import numpy as np
import ordinalrisk as orisk
rng = np.random.default_rng(0)
proba = rng.dirichlet(np.ones(5), size=1000)
controller = orisk.RiskController(alpha=0.1).calibrate(proba, rng.integers(0, 5, 1000))
controller.predict_set(proba)
"""
TIMED = """
import time
start = time.perf_counter()
{code}
print(time.perf_counter() - start)
"""


def measure_latency(repeats: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Best and median seconds of each in a row of processes; the first is not counted."""
    for name, code in {"import": IMPORT, "small call": SMALL_CALL}.items():
        inside, whole = [], []
        for _ in range(repeats + 1):
            start = time.perf_counter()
            script = [sys.executable, "-c", TIMED.format(code=code)]
            done = subprocess.run(script, check=True, stdout=subprocess.PIPE, text=True)
            whole.append(time.perf_counter() - start)
            inside.append(float(done.stdout))
        yield (
            name,
            {
                "best": min(inside[1:]),
                "median": statistics.median(inside[1:]),
                "whole process best": min(whole[1:]),
                "whole process median": statistics.median(whole[1:]),
            },
        )
