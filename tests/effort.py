"""Limits on time and memory that hold on any machine, however busy it is."""

import time
import tracemalloc
from contextlib import contextmanager
from fractions import Fraction

PATIENCE = 600
"""Seconds after which what a test waits for will never come; a passing test hardly waits."""


def yardstick():
    """The processor time of a fixed piece of work, by which other work is measured on this machine."""
    start = time.process_time()
    for numerator in range(20_000):
        Fraction(f"{numerator}/7")
    return time.process_time() - start


@contextmanager
def quickly(times=20):
    """Little processor time, as a multiple of the yardstick, whatever the machine and what else it does.

    The yardstick is applied before and after, since what else the machine does changes how long both take.
    """
    before = yardstick()
    start = time.process_time()
    yield
    spent = time.process_time() - start
    assert spent < times * max(before, yardstick())


@contextmanager
def in_little_memory(n_bytes):
    """Fewer bytes than this are in use at any time."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < n_bytes


def wait_until(happened, still_running=lambda: True):
    """Wait for an event, as long as it takes; give up if what would bring it about has ended."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert still_running(), "it ended before that"
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.005)
