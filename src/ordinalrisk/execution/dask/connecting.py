"""Connect to a Dask cluster: one that is running, or processes on this machine."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from multiprocessing import active_children, resource_tracker

import dask
from distributed import Client, LocalCluster, Nanny
from distributed.comm import CommClosedError, connect
from distributed.scheduler import KilledWorker
from distributed.security import Security

from ordinalrisk import __version__
from ordinalrisk.files.formats import one_line
from ordinalrisk.files.interrupting import temporary_folder, undone_if_interrupted
from ordinalrisk.files.redacting import redacted

SECONDS_TO_ANSWER = 10
_THIS_MACHINE = "127.0.0.1"
_LOCAL = re.compile(r"local(?::(\d+))?")
_LOGGERS = ("distributed", "distributed.client", "tornado.application")  # each has its own level
_VERSION = "__import__('ordinalrisk').__version__"
_SETTINGS = {"distributed.admin.large-graph-warning-threshold": "1 PiB"}  # a calibration may be large


class ClusterError(ValueError):
    """An error of a cluster, in one line that names the cluster."""


def require_cluster(cluster: str) -> re.Match[str] | None:
    """Return the match of ``local`` or ``local:4``, None for an address; raise an error for anything else."""
    local = _LOCAL.fullmatch(cluster)
    if local is None and not re.search(r":\d+$", cluster):
        raise ClusterError(
            f"{cluster} is not a cluster; write the address of a scheduler, such as tcp://10.0.0.1:8786, or "
            "local, or local:4 for 4 processes on this machine."
        )
    if local is not None and local[1] is not None and int(local[1]) < 1:
        raise ClusterError(f"{cluster} has no workers; write local:2 for two of them.")
    return local


@contextmanager
def connected(cluster: str) -> Iterator[Client]:
    """Connect to a scheduler; ``local`` and ``local:4`` start processes that end with the block."""
    local = require_cluster(cluster)
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are raised
    with dask.config.set(_SETTINGS), _client(cluster, local) as client:
        _require_workers(client, cluster)
        try:
            yield client
        except (CancelledError, CommClosedError):
            raise ClusterError(
                f"{cluster}: the scheduler was lost during the work; start it again, and repeat the command."
            ) from None
        except KilledWorker:
            raise ClusterError(
                f"{cluster}: workers were lost again and again; do they have enough memory?"
            ) from None


@contextmanager
def _client(cluster: str, local: re.Match[str] | None) -> Iterator[Client]:
    if local is None:
        try:
            asyncio.run(_greeted(cluster))
            client = Client(cluster, timeout=f"{SECONDS_TO_ANSWER}s")
        except Exception as error:  # any error: the server may not be a scheduler
            raise ClusterError(
                f"{redacted(cluster, cluster)}: no scheduler answers there "
                f"({redacted(one_line(error), cluster) or type(error).__name__}); correct "
                "the address, or start one with: dask scheduler"
            ) from None
        with client:
            yield client
        return
    settings = {
        "distributed.nanny.pre-spawn-environ.ORDINALRISK_NUM_THREADS": 1,  # the workers share the cores
        "distributed.scheduler.worker-saturation": 2.0,  # workers have another task while the scheduler waits
    }
    nannies: list[Nanny] = []
    with (
        dask.config.set(settings),
        undone_if_interrupted(lambda: _kill_workers(nannies)),
        temporary_folder(dask.config.get("temporary-directory", None)) as folder,
        dask.config.set({"temporary-directory": folder}),
        _local_cluster(None if local[1] is None else int(local[1])) as workers,
        Client(workers) as client,
    ):
        nannies.extend(workers.workers.values())
        yield client


def _local_cluster(n_workers: int | None) -> LocalCluster:
    """Start processes that other machines can't reach.

    A terminal sends Ctrl-C to all its processes. Workers inherit the blocked signal, and end with this
    process.
    """
    with _quiet_children():  # else the tracker warns of semaphores if this process ends first
        resource_tracker.ensure_running()
    has_masks = hasattr(signal, "pthread_sigmask")  # not on Windows
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if has_masks else set()
    try:
        return LocalCluster(
            host=_THIS_MACHINE,
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=f"{_THIS_MACHINE}:0",
            silence_logs=logging.CRITICAL,
        )
    finally:
        if has_masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _quiet_children() -> Iterator[None]:
    """Silence the warnings of processes that start in the block."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore"
    try:
        yield
    finally:
        del os.environ["PYTHONWARNINGS"]
        if before is not None:
            os.environ["PYTHONWARNINGS"] = before


def _kill_workers(nannies: list[Nanny]) -> None:
    """End the processes of a local cluster before their files are removed."""
    for nanny in nannies:
        nanny.close_gracefully()  # else it restarts its worker, which prints an error
    children = active_children()
    for child in children:
        child.kill()
    for child in children:
        child.join()


async def _greeted(cluster: str) -> None:
    """Check that a Dask scheduler answers: a client would wait forever for a silent server."""
    security = Security().get_connection_args("client")
    greeting = connect(cluster, timeout=SECONDS_TO_ANSWER, **security)
    comm = await asyncio.wait_for(greeting, 2 * SECONDS_TO_ANSWER)
    await comm.close()


def _require_workers(client: Client, cluster: str) -> None:
    """Raise an error unless there are workers, all with the same version of the package."""
    try:
        client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
    except TimeoutError:
        raise ClusterError(f"{cluster}: has no workers; start some with: dask worker {cluster}") from None
    # Only the built-in functions are sure to be on a worker.
    for worker, version in client.run(eval, _VERSION, on_error="return").items():
        if version != __version__:
            has = "no ordinalrisk" if isinstance(version, Exception) else f"ordinalrisk {version}"
            raise ClusterError(
                f"{cluster}: worker {worker} has {has}; install ordinalrisk {__version__} on all of them."
            )
