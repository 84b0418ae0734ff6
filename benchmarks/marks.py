"""The requirements of the package, compared with the measurements of this run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

Findings = dict[str, Any]
MAIN_ROWS, MAIN_CLASSES = 1_000_000, 10
LITERAL_ROWS = 10_000
LINEAR_FROM, LINEAR_TO, LINEAR_WITHIN = 100_000, 10_000_000, 0.2
GPU_ROWS = 100_000_000
GPU_SHARES = (("predict", 5, 0.55), ("predict", 10, 0.80), ("predict", 100, 0.75), ("calibrate", 10, 0.15))
SCALE_ROWS = 10_000_000  # on a cluster
MOST_OVERHEAD = 0.3
UNLESS_SAID = "n = 10^6, K = 10, unless said otherwise"


@dataclass(frozen=True)
class Mark:
    """One requirement; ``met`` is None if this run did not measure it."""

    what: str
    asked: str
    measured: str
    met: bool | None


def all_marks(findings: Findings) -> list[dict[str, Any]]:
    """Every mark, in the order they are shown."""
    return [asdict(mark) for mark in _marks(findings)]


def _marks(findings: Findings) -> list[Mark]:
    main, wide = _cell(findings, MAIN_ROWS, MAIN_CLASSES), _cell(findings, MAIN_ROWS, 100)
    literal = ratio(_cell(findings, LITERAL_ROWS, MAIN_CLASSES), "Algorithms 1-2", "calibrate")
    latency = findings.get("latency", {})
    return [
        _at_least("predict, reading / ours", 0.25, read_share(main, "predict"), _percent),
        _at_least("predict, reading / ours, K = 100", 0.60, read_share(wide, "predict"), _percent),
        _at_least("predict, MAPIE lac / ours", 15, ratio(main, "MAPIE lac", "predict"), _times),
        _at_least("predict, MAPIE aps / ours", 150, ratio(main, "MAPIE aps", "predict"), _times),
        _at_least("calibrate, MAPIE lac / ours", 10, ratio(main, "MAPIE lac", "calibrate"), _times),
        _at_least("calibrate, Algorithms 1-2 / ours, n = 10^4", 1_000, literal, _times),
        _at_most("predict, peak extra bytes a row", 10, _memory(main), _plain),
        _linear(findings, "predict"),
        _linear(findings, "calibrate"),
        *_files(findings),
        *_scale(findings),
        *_gpu(findings),
        _at_most("fresh process, 1,000 rows", 1.5, _median(latency, "small call"), _seconds),
        _at_most("cold start after import numpy, n = 2,000", 0.3, _cold_start(findings), _seconds),
        _at_most("cold start, imports of numpy", 6, _cold_start(findings, over="numpy"), _times),
        _at_most("fresh process, import ordinalrisk", 0.3, _median(latency, "import"), _seconds),
    ]


def ratio(cell: Findings | None, peer: str, step: str) -> float | None:
    """How many times as long the peer takes."""
    if cell is None or peer not in cell["seconds"] or "ours" not in cell["seconds"]:
        return None
    return cell["seconds"][peer][step] / cell["seconds"]["ours"][step]


def read_share(cell: Findings | None, step: str) -> float | None:
    """The time to read the array once, as a share of our time."""
    if cell is None or "ours" not in cell["seconds"]:
        return None
    return cell["seconds"]["read"] / cell["seconds"]["ours"][step]


def time_growth(findings: Findings, step: str, K: int) -> float | None:
    """The time for the most rows divided by that for a hundredth of them."""
    few, many = _cell(findings, LINEAR_FROM, K), _cell(findings, LINEAR_TO, K)
    if few is None or many is None or not all("ours" in cell["seconds"] for cell in (few, many)):
        return None
    return many["seconds"]["ours"][step] / few["seconds"]["ours"][step]


def _cell(findings: Findings, n: int, K: int) -> Findings | None:
    return next((cell for cell in findings.get("speed", []) if (cell["n"], cell["K"]) == (n, K)), None)


def _memory(cell: Findings | None) -> float | None:
    return cell["bytes_a_row"].get("predict") if cell else None


def _files(findings: Findings) -> list[Mark]:
    """Marks of the commands on files; of the rows that were measured."""
    cells = {cell["job"]: cell for cell in findings.get("files", [])}
    marks = []
    for job in ("predict, to Parquet", "predict, to Arrow", "evaluate"):
        cell = cells.get(job)
        share = cell and cell["read"] / cell["seconds"]
        resident = cell and cell["resident"] / 1e6
        marks.append(_at_least(f"file, {job}, reading / ours", 0.5, share, _percent))
        marks.append(_at_most(f"file, {job}, resident MB", 1_000, resident, _plain))
    return marks


def _scale(findings: Findings) -> list[Mark]:
    """Marks of a cluster: its time against one machine's, and what comes to the driver."""
    scale = findings.get("scale", {})
    marks = []
    for kind in ("files", "arrays"):
        cell = scale.get(kind)
        jobs = cell["jobs"] if cell and cell["n"] == SCALE_ROWS else {}
        for job in ("calibrate", "predict", "evaluate"):
            share = overhead(jobs[job]) if job in jobs else None
            marks.append(
                _at_most(f"cluster, {kind}, {job}, n = 10^7, overhead", MOST_OVERHEAD, share, _percent)
            )
    driver = {cell["n"]: cell for cell in scale.get("driver", [])}
    few, many = driver.get(10**6), driver.get(10**8)
    growth = many["resident"] / few["resident"] if few and many else None
    marks.append(_at_most("driver, resident, n = 10^8 / 10^6", 1.1, growth, lambda value: f"{value:.2f}"))
    for power in (7, 8):
        cell = driver.get(10**power)
        received = cell and cell["sockets"] / cell["scores"]
        marks.append(_at_most(f"driver, bytes got / scores, n = 10^{power}", 0.01, received, _permille))
    return marks


def overhead(job: Findings) -> float:
    """How much longer the cluster takes than one machine with as many cores, as a share."""
    return job["cluster"] / job["one"] - 1


def _gpu(findings: Findings) -> Iterator[Mark]:
    cells = {(cell["n"], cell["K"]): cell["share_of_copy"] for cell in findings.get("gpu", [])}
    for step, K, asked in GPU_SHARES:
        what = f"GPU {step}, share of copying, n = 10^8, K = {K}"
        yield _at_least(what, asked, cells.get((GPU_ROWS, K), {}).get(step), _percent)


def _cold_start(findings: Findings, over: str | None = None) -> float | None:
    found = findings.get("cold_start", {})
    return found["ours"] / (found[over] if over else 1) if found else None


def _median(latency: Findings, name: str) -> float | None:
    return latency[name]["whole process median"] if name in latency else None


def _at_least(what: str, asked: float, found: float | None, shown: Callable[[float], str]) -> Mark:
    return Mark(what, f">= {shown(asked)}", *_measured(found, shown, lambda value: value >= asked))


def _at_most(what: str, asked: float, found: float | None, shown: Callable[[float], str]) -> Mark:
    return Mark(what, f"<= {shown(asked)}", *_measured(found, shown, lambda value: value <= asked))


def _linear(findings: Findings, step: str) -> Mark:
    expected = LINEAR_TO / LINEAR_FROM
    low, high = expected * (1 - LINEAR_WITHIN), expected * (1 + LINEAR_WITHIN)
    found = time_growth(findings, step, MAIN_CLASSES)
    return Mark(
        f"{step}, time at n = 10^7 / at 10^5",
        f"{low:.0f} .. {high:.0f}",
        *_measured(found, lambda value: f"{value:.0f}", lambda value: low <= value <= high),
    )


def _measured(
    found: float | None, shown: Callable[[float], str], met: Callable[[float], bool]
) -> tuple[str, bool | None]:
    return ("-", None) if found is None else (shown(found), met(found))


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _permille(value: float) -> str:
    return f"{value:.2%}"


def _times(value: float) -> str:
    return f"{value:,.0f}x"


def _plain(value: float) -> str:
    return f"{value:.1f}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s"
