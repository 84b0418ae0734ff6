"""What the commands share that run on a cluster, over many files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from importlib.util import find_spec
from pathlib import Path

from ordinalrisk.cli import terminal

INSTALL_CLUSTER = 'pip install "ordinalrisk[cluster]"'


def inputs(given: Sequence[str], cluster: str | None) -> list[str]:
    """The files that are named: on a cluster there may be many, and patterns stand for what they match."""
    if cluster is None:
        matched = given if len(given) > 1 or Path(given[0]).exists() else glob(given[0])
        if len(matched) > 1:
            terminal.fail(
                f"{len(matched)} files need a cluster, which may be this machine: add --cluster local.",
                code=2,
            )
        return list(given)
    for package in ("distributed", "fsspec"):
        if find_spec(package) is None:
            terminal.fail(f"--cluster needs {package}, which is not installed: {INSTALL_CLUSTER}", code=1)
    if "-" in given:
        terminal.fail("--cluster: workers can't read a pipe; name files.", code=2)
    from ordinalrisk.execution.dask.connecting import ClusterError, require_cluster
    from ordinalrisk.files.patterns import expanded

    try:
        require_cluster(cluster)
    except ClusterError as error:
        terminal.fail(f"--cluster: {error}", code=2)

    with terminal.bad_data_is_one_line():
        return expanded(given)


@contextmanager
def working_on(cluster: str, description: str, n_files: int) -> Iterator[Callable[[int], None]]:
    """A connection to a cluster, and a bar that takes the number of files done."""
    from ordinalrisk.execution.dask.connecting import ClusterError, connected

    try:
        with connected(cluster) as client:
            if client.dashboard_link:
                terminal.note(f"The work can be watched at {client.dashboard_link}")
            with terminal.progress() as bar:
                task = bar.add_task(f"{description} {n_files:,} files", total=n_files)
                yield lambda done: bar.update(task, completed=done)
    except ClusterError as error:
        terminal.fail(f"--cluster: {error}", code=1)
