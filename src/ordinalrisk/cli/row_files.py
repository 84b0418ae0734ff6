"""The files that commands read: which ones, on which machine, and what is shown meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec

from ordinalrisk.cli import options, terminal
from ordinalrisk.files.patterns import expanded


def require_installed(purpose: str, *packages: str, extra: str) -> None:
    for package in packages:
        if find_spec(package) is None:
            install = f'pip install "ordinalrisk[{extra}]"'
            terminal.fail(f"{purpose} {package}, which is not installed: {install}", code=1)


def named(patterns: Sequence[str], cluster: str | None = None) -> list[str]:
    """Return the files that arguments and patterns name; fail early if they can't be read."""
    require_installed("files are read with", "pyarrow", extra="files")
    if cluster is not None:
        _require_cluster(patterns, cluster)
    if "-" in patterns and len(patterns) > 1:
        terminal.fail("- is a pipe, which is read alone; name files.")
    with terminal.bad_data_is_one_line():
        places = expanded(patterns)
    options.require_input(*map(options.place, places if cluster is None else places[:1]))
    return places


def _require_cluster(patterns: Sequence[str], cluster: str) -> None:
    require_installed("--cluster needs", "distributed", "fsspec", extra="cluster")
    if "-" in patterns:
        terminal.fail("--cluster: workers can't read a pipe; name files.")
    from ordinalrisk.execution.dask.connecting import require_cluster

    with _cluster_error_is_one_line(code=2):
        require_cluster(cluster)


@contextmanager
def working_on(
    places: Sequence[str], description: str, cluster: str | None = None
) -> Iterator[Callable[[int, float], None]]:
    """Show a progress bar while files are read; report errors of files or the cluster in one line."""
    some = f"{description} {len(places):,} files" if len(places) > 1 or cluster is not None else description
    cluster_errors = nullcontext() if cluster is None else _cluster_error_is_one_line(code=1)
    with terminal.bad_data_is_one_line(), cluster_errors, terminal.file_progress(some) as progress:
        yield progress


@contextmanager
def _cluster_error_is_one_line(code: int) -> Iterator[None]:
    from ordinalrisk.execution.dask.connecting import ClusterError

    try:
        yield
    except ClusterError as error:
        terminal.fail(f"--cluster: {error}", code)
