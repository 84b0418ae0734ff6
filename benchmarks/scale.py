"""Many partitions on a cluster of two workers here, against one process with as many threads.

``python -m benchmarks.scale files FOLDER SECONDS`` and the like are what child processes run; the workers are
processes of their own, with a thread each.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

from .memory import resident
from .partitions import K, as_dask, labels_of, made_ahead, proba_of
from .timing import best_in_turns, seconds

WORKERS = 2
CLUSTER = f"local:{WORKERS}"
ALPHA = 0.05
SCORES = [f"p{k}" for k in range(K)]
ROWS_IN_FILE = 500_000
ROWS_IN_CHUNK = 1_000_000
ROWS_IN_SMALL_CHUNK = 250_000
BYTES_OF_ROW = 4 * K
JOBS = ("calibrate", "predict", "evaluate")
ONE_MACHINE = {
    "files": ("file by file", "one file"),
    "arrays": ("chunk by chunk",),
}


def why_not() -> str | None:
    """Why nothing of this can be measured here, if so."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        return "left out, needs dask and distributed"
    if not Path("/proc/self/status").exists():
        return "left out, the system does not tell the memory of processes"
    return None


def measure_scale(rows: int, driver_rows: list[int], seconds_each: float) -> Iterator[tuple[str, Any]]:
    """Seconds of the jobs on files and on arrays, then what the driver has and gets, by number of rows."""
    n_files, n_chunks = rows // ROWS_IN_FILE, rows // ROWS_IN_CHUNK
    with tempfile.TemporaryDirectory() as folder:
        _write_files(Path(folder), n_files, ROWS_IN_FILE)
        yield "files", _in_child("files", folder, seconds_each)
    yield "arrays", _in_child("arrays", n_chunks, ROWS_IN_CHUNK, seconds_each)
    for each in driver_rows:
        yield "driver", _in_child("driver", each // ROWS_IN_SMALL_CHUNK)


def _in_child(*arguments: Any) -> Any:
    command = [sys.executable, "-m", "benchmarks.scale", *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _write_files(folder: Path, n_files: int, rows: int) -> None:
    """Many files, and one file with all their rows."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([*((name, pa.float32()) for name in SCORES), ("label", pa.int8())])
    (folder / "parts").mkdir()
    with parquet.ParquetWriter(folder / "whole.parquet", schema) as whole:
        for index in range(n_files):
            proba = proba_of(index, rows)
            columns = [np.ascontiguousarray(proba[:, k]) for k in range(K)]
            label = labels_of(index, rows).astype(np.int8)
            table = pa.table([*columns, label], schema=schema)
            parquet.write_table(table, folder / "parts" / f"part-{index:04}.parquet")
            whole.write_table(table)


def compare_files(folder: Path, seconds_each: float) -> dict[str, Any]:
    """Files on the cluster, and on one machine: as one file, or file by file; the faster one counts."""
    import pyarrow.parquet as parquet

    from ordinalrisk import RiskController, jobs

    parts, whole = sorted(map(str, (folder / "parts").glob("*.parquet"))), str(folder / "whole.parquet")
    columns: dict[str, Any] = {"scores": SCORES, "label": "label", "classes": range(K)}

    def calibrate(paths: Any, dask: Any = None) -> RiskController:
        return jobs.calibrate(RiskController(alpha=ALPHA), paths, dask=dask, **columns)

    def predict(paths: Any, out: str, dask: Any = None) -> int:
        return jobs.predict(controller, paths, folder / out, keep="", dask=dask).n_labels

    def evaluate(paths: Any, dask: Any = None) -> Any:
        return jobs.evaluate(controller, paths, dask=dask)

    with _timed_cluster() as (client, start):
        controller = calibrate(parts, client)
        _require_equal("thresholds", controller.threshold_, calibrate(parts).threshold_)
        found = predict(parts, "there", client)
        _require_equal("numbers of labels", found, predict(parts, "here"))
        timed: dict[str, Callable[[], Any]] = {
            "calibrate, file by file": lambda: calibrate(parts),
            "calibrate, one file": lambda: calibrate(whole),
            "calibrate, cluster": lambda: calibrate(parts, client),
            "predict, file by file": lambda: predict(parts, "here"),
            "predict, one file": lambda: predict(whole, "sets.parquet"),
            "predict, cluster": lambda: predict(parts, "there", client),
            "evaluate, file by file": lambda: evaluate(parts),
            "evaluate, one file": lambda: evaluate(whole),
            "evaluate, cluster": lambda: evaluate(parts, client),
        }
        times = best_in_turns(timed, seconds_each)
    return _compared("files", parquet.read_metadata(whole).num_rows, len(parts), start, times)


def compare_arrays(n_chunks: int, rows: int, seconds_each: float) -> dict[str, Any]:
    """Dask arrays on the cluster, and the same chunks one after the other on one machine, made ahead."""
    from ordinalrisk import RiskController, metrics
    from ordinalrisk.evaluation.counts import Tally

    def calibrate() -> RiskController:
        return RiskController(alpha=ALPHA).calibrate_batches(made_ahead(n_chunks, rows))

    def predict() -> float:
        sizes = [int(controller.predict_set(proba).size.sum()) for proba, _ in made_ahead(n_chunks, rows)]
        return sum(sizes) / (n_chunks * rows)

    def evaluate() -> float:
        tallies = [Tally.of(y, controller.predict_set(proba)) for proba, y in made_ahead(n_chunks, rows)]
        return float(reduce(Tally.merge, tallies).risk(controller.loss))

    def make() -> None:
        for _ in made_ahead(n_chunks, rows):
            pass

    with _timed_cluster() as (_, start):
        proba, y = as_dask(n_chunks, rows)
        controller = RiskController(alpha=ALPHA).calibrate(proba, y)
        _require_equal("thresholds", controller.threshold_, calibrate().threshold_)
        _require_equal("mean sizes", metrics.mean_size(controller.predict_set(proba)), predict())
        _require_equal("risks", metrics.risk(y, controller.predict_set(proba)), evaluate())
        jobs: dict[str, Callable[[], Any]] = {
            "making": make,
            "calibrate, chunk by chunk": calibrate,
            "calibrate, cluster": lambda: RiskController(alpha=ALPHA).calibrate(proba, y),
            "predict, chunk by chunk": predict,
            "predict, cluster": lambda: metrics.mean_size(controller.predict_set(proba)),
            "evaluate, chunk by chunk": evaluate,
            "evaluate, cluster": lambda: metrics.risk(y, controller.predict_set(proba)),
        }
        times = best_in_turns(jobs, seconds_each)
    return _compared("arrays", n_chunks * rows, n_chunks, start, times) | {"making": times["making"]}


def _compared(kind: str, rows: int, parts: int, start: float, times: dict[str, float]) -> dict[str, Any]:
    jobs = {}
    for job in JOBS:
        ways = {way: times[f"{job}, {way}"] for way in ONE_MACHINE[kind]}
        fastest = min(ways, key=ways.__getitem__)
        jobs[job] = {"one": ways[fastest], "way": fastest, "cluster": times[f"{job}, cluster"]}
    return {"n": rows, "parts": parts, "workers": WORKERS, "start": start, "jobs": jobs}


def measure_driver(n_chunks: int) -> dict[str, Any]:
    """The peak resident memory of this process, with client and scheduler, and the bytes it receives."""
    from ordinalrisk import RiskController, metrics

    rows = ROWS_IN_SMALL_CHUNK
    with _timed_cluster() as (client, _), _counting_sockets() as sockets:
        proba, y = as_dask(n_chunks, rows)
        found: dict[str, Any] = {"n": n_chunks * rows, "parts": n_chunks}
        with _counting_results() as results:
            controller = RiskController(alpha=ALPHA)
            found["calibrate"] = seconds(lambda: controller.calibrate(proba, y))
            found["received, calibrate"] = sum(results)
            found["predict"] = seconds(lambda: metrics.mean_size(controller.predict_set(proba)))
            found["received"] = sum(results)
        found["sockets"] = sum(sockets)
        found["workers resident"] = max(client.run(peak_resident).values())
    return found | {"resident": peak_resident(), "scores": n_chunks * rows * BYTES_OF_ROW}


def peak_resident() -> int:
    """The peak resident memory of the process that asks, in bytes."""
    return resident("VmHWM")


@contextmanager
def _timed_cluster() -> Iterator[tuple[Any, float]]:
    """A client, and the seconds that it took to start."""
    from ordinalrisk.execution.dask.connecting import connected

    before = time.perf_counter()
    with connected(CLUSTER) as client:
        client.wait_for_workers(WORKERS)
        yield client, time.perf_counter() - before


@contextmanager
def _counting_results() -> Iterator[list[int]]:
    """The size, pickled, of every result that is brought to this process."""
    import dask

    sizes: list[int] = []
    compute = dask.compute

    def counted(*collections: Any, **options: Any) -> Any:
        results = compute(*collections, **options)
        sizes.append(len(pickle.dumps(results, protocol=5)))
        return results

    dask.compute = dask.base.compute = counted  # of collections, and behind their own method
    try:
        yield sizes
    finally:
        dask.compute = dask.base.compute = compute


@contextmanager
def _counting_sockets() -> Iterator[list[int]]:
    """The size of everything that comes in from other processes: results, states of tasks, heartbeats."""
    from tornado.iostream import IOStream

    sizes: list[int] = []
    read = IOStream.read_from_fd

    def counted(self: IOStream, buffer: Any) -> int | None:
        size = read(self, buffer)
        sizes.append(size or 0)
        return size

    IOStream.read_from_fd = counted
    try:
        yield sizes
    finally:
        IOStream.read_from_fd = read


def _require_equal(what: str, one: Any, other: Any) -> None:
    if one != other:
        raise AssertionError(f"The {what} of the cluster and of one machine differ: {one!r}, {other!r}.")


if __name__ == "__main__":
    measure, arguments = sys.argv[1], sys.argv[2:]
    found: Any
    if measure == "files":
        found = compare_files(Path(arguments[0]), float(arguments[1]))
    elif measure == "arrays":
        found = compare_arrays(int(arguments[0]), int(arguments[1]), float(arguments[2]))
    else:
        found = measure_driver(int(arguments[0]))
    print(json.dumps(found))
