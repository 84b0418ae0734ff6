"""Sizes at which the library cuts its work, made small: few rows take every branch, and take little time.

One time is made long: that in which a command must have tidied up.
"""

from effort import PATIENCE

from ordinalrisk.curves import bracketing
from ordinalrisk.evaluation import outcomes, striking
from ordinalrisk.files import readers, writers
from ordinalrisk.report import facts, lookup, rows, stops

STEPS = {"KEPT_WHOLE": 20, "SAMPLED": 30, "SAMPLED_OF_STRATUM": 8, "MOST_SENT": 15}
"""So few steps that a search among some hundreds takes every branch."""
FEW = {"MOST_STOPS": 9, "MOST_STOPS_BY_ROW": 9, "FEWEST_STOPS": 2, "_FEWEST_STOPS_BY_ROW": 2}
TIDY_UP_PATIENTLY = f"""
from ordinalrisk.files import interrupting
interrupting._SECONDS_TO_TIDY_UP = {PATIENCE}
"""
"""For a process on a busy machine, which may need more than users would wait."""
USUAL = {name: getattr(stops, name) for name in FEW}


def search_few_steps(monkeypatch, **sizes):
    """The search for a threshold among parts treats few steps as it treats many."""
    for name, size in {**STEPS, **sizes}.items():
        monkeypatch.setattr(bracketing, name, size)


def few_stops(patch=setattr):
    """Reports are about few risks. The code that counts rows and the code that merges must agree on them."""
    for name, value in FEW.items():
        patch(stops, name, value)


def usual_stops(patch=setattr):
    """For tests of how many there are, and which."""
    for name, value in USUAL.items():
        patch(stops, name, value)


def compare_few_rows(monkeypatch, most):
    """A report compares growth rules on so many rows."""
    monkeypatch.setattr(rows, "_ROWS_COMPARED", most)


def count_few_rows_at_once(monkeypatch, most):
    """Sets are made and counted in chunks of so many rows."""
    monkeypatch.setattr(outcomes, "_ROWS_AT_ONCE", most)


def show_few_parts(monkeypatch, most):
    """Of many groups and classes a report shows only so many."""
    monkeypatch.setattr(facts, "MOST_PARTS", most)


def read_few_rows_at_once(monkeypatch, most, n_bytes=readers.BYTES_AT_ONCE):
    """Files are read so many rows, or bytes, at a time."""
    monkeypatch.setattr(readers, "ROWS_AT_ONCE", most)
    monkeypatch.setattr(readers, "BYTES_AT_ONCE", n_bytes)


def write_few_rows_at_once(monkeypatch, most):
    """Files are written in groups of so many rows."""
    monkeypatch.setattr(writers, "ROWS_IN_A_GROUP", most)


def look_up_few_rows(monkeypatch, most):
    """A report holds the first so many rows, to be looked up."""
    for module in (striking, lookup):
        monkeypatch.setattr(module, "MOST_LOOKED_UP", most)


def look_up_few_characters(monkeypatch, most):
    """A report holds as many of them as take so many characters."""
    monkeypatch.setattr(lookup, "_MOST_CHARACTERS", most)
