"""Rounds of cases of every kind, until the time is over."""

import hashlib
import json
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase

from fuzz import KINDS
from fuzz.workers import Finding, Worker

REGRESSIONS = Path(__file__).with_name("regressions")
_CASES_TO_SHRINK = 200


class _FoundError(Exception):
    pass


class Hunt:
    """Cases and findings so far; equal findings count once."""

    def __init__(self, worker: Worker, seed: int) -> None:
        self.worker, self.seed = worker, seed
        self.n_cases = dict.fromkeys(KINDS, 0)
        self.findings: dict[tuple[str, str, str], tuple[Any, Finding]] = {}

    def round(self, number: int, kinds: Collection[str] = tuple(KINDS), until: float = float("inf")) -> None:
        """Some cases of each kind; equal seeds and numbers give equal cases."""
        for kind in kinds:
            while time.monotonic() < until and self._hunt(kind, number, until):
                pass  # a finding ends the cases of its kind; the others follow

    def _hunt(self, kind: str, number: int, until: float) -> bool:
        """Whether something new was found."""
        best: tuple[str, Finding] | None = None
        left = _CASES_TO_SHRINK

        @hypothesis.seed(self.seed * 1_000_003 + number)
        @hypothesis.settings(
            max_examples=KINDS[kind].CASES_A_ROUND,
            database=None,
            deadline=None,
            derandomize=False,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=[*HealthCheck],
            report_multiple_bugs=False,
        )
        @hypothesis.given(KINDS[kind].cases())
        def one(case: Any) -> None:
            nonlocal best, left
            if left == 0 or (best is None and time.monotonic() > until):
                return
            self.n_cases[kind] += 1
            found = self.worker.run(kind, case)
            if best is not None:
                left -= 1
            if found is None or (kind, found.kind, found.where) in self.findings:
                return
            if best is not None and (found.kind, found.where) != best[1][:2]:
                return
            text = json.dumps(case)
            if best is None or len(text) <= len(best[0]):
                best = text, found
            raise _FoundError

        with suppress(_FoundError, hypothesis.errors.Flaky):  # flaky where there is no time to shrink
            one()
        if best is None:
            return False
        self.findings[kind, best[1].kind, best[1].where] = json.loads(best[0]), best[1]
        return True


def keep(kind: str, case: Any, found: Finding, folder: Path) -> Path:
    """Write a finding as a file for the tests."""
    name = hashlib.sha256(json.dumps(case).encode()).hexdigest()[:8]
    path = folder / f"{kind}-{name}.json"
    document = {"kind": kind, "found": f"{found.kind}: {found.where}", "case": case}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
    return path


def hunt(
    worker: Worker, seconds: float, seed: int, kinds: Collection[str], say: Callable[[str], None]
) -> Hunt:
    """Rounds until the time is over, with a line for each."""
    hunted, start = Hunt(worker, seed), time.monotonic()
    number = 0
    while time.monotonic() < start + seconds:
        hunted.round(number, kinds, until=start + seconds)
        number += 1
        spent = time.monotonic() - start
        say(f"{spent:6.0f} s  {sum(hunted.n_cases.values()):8,} cases  {len(hunted.findings)} findings")
    return hunted
