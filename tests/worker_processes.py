"""Clusters on this machine, and what befalls their workers.

Workers are forked from a process that has imported what they need, so that a new one is there at once.
"""

import logging
import os
import signal
import sys
from contextlib import contextmanager
from functools import wraps
from itertools import count
from pathlib import Path

import dask
from distributed import LocalCluster
from distributed.utils import get_mp_context
from effort import PATIENCE, wait_until

from ordinalrisk.curves.part_steps import PartSteps
from ordinalrisk.execution.dask import connecting
from ordinalrisk.files import output_folder, scored_rows
from ordinalrisk.prediction.predictor import Predictor

connecting.SECONDS_TO_ANSWER = PATIENCE  # schedulers and workers may need more than users would wait


@contextmanager
def local_cluster(n_workers=2):
    """Processes with a thread each, which know the variables of the environment that we have now."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(
            ["distributed", "pytest", "pandas", "ordinalrisk.growth.kernels.cpu", "ordinalrisk.jobs"]
        )
        with LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",  # any port: another process that tests may have one
            silence_logs=logging.CRITICAL,
            env=dict(os.environ),
        ) as cluster:
            yield cluster


def answer_within(monkeypatch, seconds):
    """Wait so long for a scheduler and for workers."""
    monkeypatch.setattr(connecting, "SECONDS_TO_ANSWER", seconds)


def see_only(monkeypatch, names):
    """In a folder of output, this machine sees only these files."""
    monkeypatch.setattr(output_folder, "names_in", lambda folder: names)


# What follows runs on workers.

REAL = {"opened": scored_rows.source_at, "sets": Predictor.sets, "sizes": PartSteps.sizes}


def hide_ordinalrisk():
    for name in [name for name in sys.modules if name.partition(".")[0] == "ordinalrisk"]:
        del sys.modules[name]
    sys.modules["ordinalrisk"] = None


def have_version(version):
    sys.modules["ordinalrisk"].__version__ = version


def held(name, marker):
    """The same as it was, but the second call waits until there is such a file."""
    n_calls = count(1)

    @wraps(REAL[name])  # it is pickled by its name
    def call(*given, **options):
        if next(n_calls) == 2:
            wait_until(lambda: os.path.exists(marker))
        return REAL[name](*given, **options)

    return call


def hold_reading(marker):
    """The second file that is read waits for the marker."""
    scored_rows.source_at = held("opened", marker)


def hold_writing(marker):
    """The second file that is written waits for the marker, with its output begun."""
    Predictor.sets = held("sets", marker)


def die_once(marker, after=os.sep):
    """The first worker that is asked ends, as soon as there is such a file."""

    def sizes(self):
        if not os.path.exists(marker):
            wait_until(lambda: os.path.exists(after))
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return REAL["sizes"](self)

    PartSteps.sizes = sizes


def die_of(name):
    """A worker that opens such a file ends."""

    def opened(place, *given):
        if place.endswith(name):
            os.kill(os.getpid(), signal.SIGKILL)
        return REAL["opened"](place, *given)

    scored_rows.source_at = opened
