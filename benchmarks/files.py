"""Files: time of the commands' work against reading the same columns, and the memory of the commands.

``python -m benchmarks.files PATH`` is what a child process runs to time jobs on a file.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .scores import ordinal_scores
from .timing import best_in_turns

K = 10
SCORES = [f"p{k}" for k in range(K)]
ROWS_TO_CALIBRATE = 100_000
ROWS_WRITTEN_AT_ONCE = 1_000_000
BYTES_A_ROW = 4 * K + 1
ALPHA = 0.1


def why_not(rows: int) -> str | None:
    """Why files of so many rows can't be measured here, if so."""
    needed = 2 * rows * BYTES_A_ROW
    if shutil.disk_usage(tempfile.gettempdir()).free < needed:
        return f"left out, {needed / 1e9:.0f} GB of disk are needed"
    return None


def measure_files(rows: int) -> Iterator[dict[str, Any]]:
    """Seconds of each job in one process, then the peak resident memory of each command in its own."""
    with tempfile.TemporaryDirectory() as folder:
        scores, calibration = Path(folder) / "scores.parquet", Path(folder) / "cal.json"
        _write_scores(scores, rows)
        _calibrate(scores, calibration)
        child = [sys.executable, "-m", "benchmarks.files", str(scores), str(calibration)]
        timed = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True).stdout)
        commands = {
            "predict, to Parquet": ["predict", calibration, scores, "-o", Path(folder) / "sets.parquet"],
            "predict, to Arrow": ["predict", calibration, scores, "-o", Path(folder) / "sets.arrow"],
            "evaluate": ["evaluate", calibration, scores],
        }
        for name, command in commands.items():
            yield {
                "job": name,
                "n": rows,
                "seconds": timed[name],
                "read": timed[f"{name}, reading"],
                "resident": _peak_resident([*command]),
            }


def _write_scores(path: Path, rows: int) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    at_once = min(rows, ROWS_WRITTEN_AT_ONCE)
    proba, y = ordinal_scores(at_once, K)
    columns = [np.ascontiguousarray(proba[:, k], np.float32) for k in range(K)]
    table = pa.table([*columns, y.astype(np.int8)], names=[*SCORES, "label"])
    with parquet.ParquetWriter(path, table.schema) as writer:
        for start in range(0, rows, at_once):
            writer.write_table(table.slice(0, min(at_once, rows - start)))


def _calibrate(scores: Path, calibration: Path) -> None:
    """On a few of the rows, through the library: what is saved grows with them."""
    from pyarrow import parquet

    from ordinalrisk.controller import RiskController
    from ordinalrisk.inputs.column_roles import ScoreColumns

    few = next(parquet.ParquetFile(scores).iter_batches(ROWS_TO_CALIBRATE))
    controller = RiskController(alpha=ALPHA).calibrate(few.select(SCORES), few.column("label"))
    controller.columns_ = ScoreColumns(tuple(SCORES), "label")
    controller.save(calibration)


_MEASURED = """
import resource, subprocess, sys
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
status = subprocess.run([sys.executable, "-m", "ordinalrisk", *sys.argv[1:]], **quiet).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


def _peak_resident(arguments: list[Any]) -> int:
    """The peak resident memory, in bytes, of the command with these arguments.

    A small process starts the command: the peak of a process counts the memory of the one that it came from.
    """
    command = [sys.executable, "-c", _MEASURED, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout) * (1 if sys.platform == "darwin" else 1024)


def _jobs(scores: Path, calibration: Path) -> dict[str, Callable[[], Any]]:
    from pyarrow import parquet

    from ordinalrisk import RiskController, jobs
    from ordinalrisk.files.readers import ROWS_AT_ONCE

    controller = RiskController.load(calibration)

    def read(names: list[str]) -> None:
        for _ in parquet.ParquetFile(scores, pre_buffer=False).iter_batches(ROWS_AT_ONCE, columns=names):
            pass

    def predict(suffix: str) -> None:
        jobs.predict(controller, scores, scores.with_name(f"timed.{suffix}"), keep="", note=lambda _: None)

    return {
        "predict, to Parquet, reading": lambda: read(SCORES),
        "predict, to Parquet": lambda: predict("parquet"),
        "predict, to Arrow, reading": lambda: read(SCORES),
        "predict, to Arrow": lambda: predict("arrow"),
        "evaluate, reading": lambda: read([*SCORES, "label"]),
        "evaluate": lambda: jobs.evaluate(controller, scores),
    }


if __name__ == "__main__":
    print(json.dumps(best_in_turns(_jobs(*map(Path, sys.argv[1:3])), seconds_each=5)))
