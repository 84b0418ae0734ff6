"""``python -m fuzz --seconds 60 --seed 0``: hunt, and keep what is found; exit code 1 if anything is."""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from fuzz import KINDS
from fuzz.hunting import REGRESSIONS, hunt, keep
from fuzz.workers import Worker


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long new cases are made; 60")
    parser.add_argument("--seed", type=int, default=0, help="equal seeds make equal cases, in equal order; 0")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS], help="what to attack; all")
    parser.add_argument("--keep", type=Path, default=REGRESSIONS, help="folder for the findings")
    asked = parser.parse_args()
    start = time.monotonic()
    with Worker() as worker:
        hunted = hunt(worker, asked.seconds, asked.seed, asked.kinds, lambda line: print(line, flush=True))
    for (kind, *_), (case, found) in hunted.findings.items():
        print(f"\n{found.kind}: {found.where}\n{found.text}\n{keep(kind, case, found, asked.keep)}: {case}")
    cases = ", ".join(f"{kind} {count:,}" for kind, count in hunted.n_cases.items())
    kinds = Counter(found.kind for _, found in hunted.findings.values())
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
    print(f"\nCases: {cases}. Findings: {told}. {time.monotonic() - start:.0f} s, seed {asked.seed}.")
    return 1 if hunted.findings else 0


if __name__ == "__main__":
    sys.exit(main())
