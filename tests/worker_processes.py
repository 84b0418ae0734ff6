"""Clusters on this machine, and what befalls their workers.

Workers are forked from a process that has imported what they need, so that a new one is there at once.
"""

import logging
import os
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import dask
from distributed import LocalCluster
from distributed.utils import get_mp_context

from ordinalrisk.execution.part_steps import PartSteps
from ordinalrisk.files import readers
from ordinalrisk.jobs import many_files as files
from ordinalrisk.jobs import one_file


@contextmanager
def local_cluster(n_workers=2):
    """Processes with a thread each, which know the variables of the environment that we have now."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(
            ["distributed", "pytest", "pandas", "ordinalrisk.growth.kernels.cpu", files.__name__]
        )
        with LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",  # any port: another process that tests may have one
            silence_logs=logging.CRITICAL,
            env=dict(os.environ),
        ) as cluster:
            yield cluster


# What follows runs on workers.

REAL = {"opened": readers.opened, "sets": one_file.Predictor.sets, "sizes": PartSteps.sizes}


def hide_ordinalrisk():
    for name in [name for name in sys.modules if name.partition(".")[0] == "ordinalrisk"]:
        del sys.modules[name]
    sys.modules["ordinalrisk"] = None


def slow_down(seconds):
    """Every file takes a while, with its output begun."""

    def sets(self, rows):
        time.sleep(seconds)
        return REAL["sets"](self, rows)

    def opened(*given):
        time.sleep(seconds)
        return REAL["opened"](*given)

    one_file.Predictor.sets, files.opened = sets, opened


def die_once(marker):
    """Whoever is asked first dies."""

    def sizes(self):
        if not os.path.exists(marker):
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return REAL["sizes"](self)

    PartSteps.sizes = sizes


def die_of(name):
    """Whoever opens such a file dies."""

    def opened(place, *given):
        if place.endswith(name):
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        return REAL["opened"](place, *given)

    files.opened = opened
