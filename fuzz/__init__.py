"""Attacks on the library: ``make fuzz SECONDS=60 SEED=0``.

Each module of ``KINDS`` makes cases (a hypothesis strategy of JSON values) and checks one (``check(case)``).
A case runs in a worker process with limits on memory and time. A crash, a hang, an error that is not a
``ValueError``, or a result where the documentation promises an error is a finding. Hypothesis shrinks it, and
a small file in ``fuzz/regressions`` keeps it, which ``tests/test_fuzz.py`` runs again.
"""

from types import ModuleType

from fuzz import api, data_files, hostile_text, saved_files, signals

KINDS: dict[str, ModuleType] = {
    "api": api,
    "saved": saved_files,
    "data": data_files,
    "text": hostile_text,
    "signals": signals,
}
