"""Speed, memory and set size against peers and the machine's limits, as ratios measured in one run.

``make bench``, or ``python -m benchmarks`` in the repository's root. ``--quick`` takes about a minute.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ordinalrisk.files.atomic import replacing
from ordinalrisk.growth.kernels.cpu import N_THREADS

from . import files, pictures, scale
from .field import run as field
from .gpu import CLASSES, measure_gpu, why_not
from .latency import measure_cold_start, measure_latency
from .marks import Findings, all_marks
from .memory import available_bytes
from .report import tables
from .sizes import means_over_halves, one_half
from .speed import VARIANTS, Limits, measure_divergence_literal, measure_grid, measure_variants
from .tabular import scored_data

SECTIONS = ("speed", "variants", "sizes", "latency", "files", "scale", "gpu")
PACKAGES = ("numpy", "scikit-learn", "torch", "mapie", "crepes", "torchcp", "distributed")
SHARE_OF_AVAILABLE_MEMORY = 0.6
QUICK_ROWS = 4_000
WIDTH = 80


def main() -> None:
    arguments = _arguments()
    console = Console(width=WIDTH, highlight=False)
    limits = Limits(
        seconds=arguments.seconds or (2 if arguments.quick else 20),
        bytes=_memory_limit(arguments.memory),
        seconds_each=0.25 if arguments.quick else 3,
    )
    findings: Findings = {"machine": _machine(), "limits": vars(limits), "quick": arguments.quick, "took": {}}
    if not set(SECTIONS) <= set(arguments.section):
        findings = _earlier(arguments.out, findings) | findings
    columns = (TextColumn("{task.description:<48}"), BarColumn(16), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        for section in arguments.section:
            start = time.perf_counter()
            findings |= _RUN[section](arguments, limits, progress)
            findings["took"][section] = round(time.perf_counter() - start, 1)
    findings["marks"] = all_marks(findings)
    console.print(_headline(findings["machine"]))
    for table in tables(findings):
        console.print(table)
        console.print()
    _save(findings, arguments.out, console)


def _earlier(folder: Path, now: Findings) -> Findings:
    """The results of the other sections on the same machine, which are kept with the new ones."""
    try:
        before = json.loads((folder / "speed.json").read_text())
    except FileNotFoundError:
        return {}
    same = before["quick"] == now["quick"] and before["machine"]["processor"] == now["machine"]["processor"]
    if not same:
        return {}
    now["took"] = before["took"]
    return before


def _speed(arguments: argparse.Namespace, limits: Limits, progress: Progress) -> Findings:
    rows, classes = _grid(arguments)
    bar = progress.add_task("", total=len(rows) * len(classes))
    cells = []
    combinations = [(n, K) for K in classes for n in rows]
    measured = measure_grid(rows, classes, limits)
    for n, K in combinations:
        progress.update(bar, description=f"Time and memory: {n:,} rows, {K} classes")
        cells.append(next(measured))
        progress.advance(bar)
    return {"speed": cells}


def _variants(arguments: argparse.Namespace, limits: Limits, progress: Progress) -> Findings:
    n = 100_000 if arguments.quick else 1_000_000
    _, classes = _grid(arguments)
    bar = progress.add_task("Losses and rules", total=len(VARIANTS) * len(classes))
    cells = []
    for cell in measure_variants(n, classes, limits):
        cells.append(cell)
        progress.advance(bar)
    literal = list(measure_divergence_literal(1_000 if arguments.quick else 10_000, classes))
    return {"variants": cells, "divergence_literal": literal}


def _sizes(arguments: argparse.Namespace, limits: Limits, progress: Progress) -> Findings:
    halves = 2 if arguments.quick else 20
    ready, left_out = scored_data()
    bar = progress.add_task("Set sizes", total=halves * len(ready))
    found = []
    for make in ready:
        data = make().some(QUICK_ROWS) if arguments.quick else make()
        outcomes = []
        for half in range(halves):
            progress.update(bar, description=f"Set sizes: {data.name}")
            outcomes.append(one_half(data, half))
            progress.advance(bar)
        found += means_over_halves(data, outcomes)
    return {"sizes": found, "sizes_left_out": left_out, "halves": halves}


def _latency(arguments: argparse.Namespace, limits: Limits, progress: Progress) -> Findings:
    bar = progress.add_task("First use", total=3)
    repeats = 3 if arguments.quick else 9
    found = {}
    for name, times in measure_latency(repeats):
        found[name] = times
        progress.advance(bar)
    return {"latency": found, "cold_start": measure_cold_start(repeats)}


def _gpu(arguments: argparse.Namespace, limits: Limits, progress: Progress) -> Findings:
    reason = why_not()
    if reason:
        return {"gpu_note": f"GPU: {reason}"}
    bar = progress.add_task("GPU", total=len(CLASSES))
    found = []
    for cell in measure_gpu():
        found.append(cell)
        progress.advance(bar)
    return {"gpu": found}


def _files(arguments: argparse.Namespace, limits: Limits, progress: Progress) -> Findings:
    rows = 10_000_000 if arguments.quick else 100_000_000
    reason = files.why_not(rows)
    if reason:
        return {"files_note": f"Files: {reason}"}
    bar = progress.add_task(f"Files of {rows:,} rows", total=3)
    found = []
    for cell in files.measure_files(rows):
        found.append(cell)
        progress.advance(bar)
    return {"files": found}


def _scale(arguments: argparse.Namespace, limits: Limits, progress: Progress) -> Findings:
    reason = scale.why_not()
    if reason:
        return {"scale_note": f"Scale: {reason}"}
    rows = 1_000_000 if arguments.quick else 10_000_000
    driver_rows = [10**power for power in ((6,) if arguments.quick else (6, 7, 8))]
    bar = progress.add_task(f"On a cluster of {scale.WORKERS} workers", total=2 + len(driver_rows))
    found: Findings = {"driver": []}
    for name, measured in scale.measure_scale(rows, driver_rows, 0 if arguments.quick else 10):
        if name == "driver":
            found["driver"].append(measured)
        else:
            found[name] = measured
        progress.advance(bar)
    return {"scale": found}


def _field(arguments: argparse.Namespace, limits: Limits, progress: Progress) -> Findings:
    ready, left_out = field.pairs(quick=arguments.quick)
    bar = progress.add_task("Real targets", total=len(ready))
    cells = []
    for target, model in ready:
        progress.update(bar, description=f"{target.name}, {model}")
        cells += field.measure(target, model, field.splits(arguments.quick))
        progress.advance(bar)
    arguments.out.mkdir(parents=True, exist_ok=True)
    field.save(cells, field.splits(arguments.quick), arguments.out / "field.json")
    return {"field_left_out": left_out} if left_out else {}


_RUN = {
    "speed": _speed,
    "variants": _variants,
    "sizes": _sizes,
    "latency": _latency,
    "files": _files,
    "scale": _scale,
    "gpu": _gpu,
    "field": _field,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--section",
        nargs="+",
        choices=(*SECTIONS, "field"),
        default=SECTIONS,
        help="what to run; only if named: field",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows, classes and repeats")
    parser.add_argument("--rows", type=int, nargs="+", help="default: 10^4 .. 10^7")
    parser.add_argument("--classes", type=int, nargs="+", help="default: 5 10 20 100")
    parser.add_argument("--seconds", type=float, help="leave out calls that would take longer (20; quick: 2)")
    parser.add_argument("--memory", type=float, default=4.5, help="leave out what would need more, in GB")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent / "results",
        help="folder for speed.json, speed.png, sizes.png",
    )
    return parser.parse_args()


def _grid(arguments: argparse.Namespace) -> tuple[list[int], list[int]]:
    rows = arguments.rows or [10**power for power in ((4, 5, 6) if arguments.quick else (4, 5, 6, 7))]
    return sorted(rows), arguments.classes or ([10, 100] if arguments.quick else [5, 10, 20, 100])


def _memory_limit(gigabytes: float) -> float:
    """The limit asked for, or what the machine can spare if that is less."""
    asked, available = gigabytes * 2**30, available_bytes()
    return asked if available is None else min(asked, SHARE_OF_AVAILABLE_MEMORY * available)


def _machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "threads": N_THREADS,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _headline(machine: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {found}" for name, found in machine["packages"].items() if found)
    return f"{machine['processor']}, {machine['threads']} threads; Python {machine['python']}, {packages}\n"


def _save(findings: Findings, folder: Path, console: Console) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "speed.json") as file:
        file.write_text(json.dumps(findings, indent=2) + "\n")
    written = ["speed.json"]
    if any("ours" in cell["seconds"] for cell in findings.get("speed", [])):
        pictures.save_speed(findings, folder / "speed.png")
        written.append("speed.png")
    if findings.get("sizes"):
        pictures.save_sizes(findings, folder / "sizes.png")
        written.append("sizes.png")
    took = ", ".join(f"{section} {seconds:.0f} s" for section, seconds in findings["took"].items())
    console.print(f"Took: {took}\nWritten to {folder}: {', '.join(written)}", soft_wrap=True)


if __name__ == "__main__":
    main()
