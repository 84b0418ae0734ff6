"""What was measured, as tables of at most 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .gpu import table as gpu_table
from .marks import UNLESS_SAID, Findings, overhead, ratio, read_share, time_growth
from .peers import PEERS
from .speed import MEMORY, MISSING, STEPS, TIME, VARIANTS

HEADS = {
    "MAPIE lac": "MAPIE\nlac",
    "MAPIE aps": "MAPIE\naps",
    "crepes": "\ncrepes",
    "TorchCP LAC": "Torch\nCP LAC",
    "TorchCP APS": "Torch\nCP APS",
    "Algorithms 1-2": "Alg.\n1-2",
}
LETTER = {TIME: "t", MEMORY: "m", MISSING: "i"}


def tables(findings: Findings) -> Iterator[RenderableType]:
    """One for each section that was run, the marks at the end."""
    if "speed" in findings:
        yield speed_table(findings)
        yield growth_table(findings)
    if "variants" in findings:
        yield variants_table(findings)
    if "sizes" in findings:
        yield sizes_table(findings)
    if "latency" in findings:
        yield latency_table(findings)
        yield cold_start_table(findings)
    if "files" in findings:
        yield files_table(findings)
    if "scale" in findings:
        yield scale_table(findings)
        yield driver_table(findings)
    if "gpu" in findings:
        yield Text(gpu_table(findings["gpu"]))
    yield marks_table(findings)


def speed_table(findings: Findings) -> RenderableType:
    title = "Time: ours, and how many times as long the others take"
    table = _table()
    for head in ("n", "K", "", "ours\nms", "of\nread", *(HEADS[name] for name in PEERS)):
        table.add_column(head, justify="left" if head == "" else "right")
    left_out = set()
    for cell in findings["speed"]:
        left_out |= set(cell["left_out"].values())
        for step in STEPS:
            first = step == STEPS[0]
            table.add_row(
                _power(cell["n"]) if first else "",
                str(cell["K"]) if first else "",
                step,
                *_ours(cell, step),
                *(_peer(cell, name, step) for name in PEERS),
                end_section=not first and cell["n"] == max(c["n"] for c in findings["speed"]),
            )
    limits = findings["limits"]
    legend = [
        "of read: time to sum the same array once, in as many threads, over our time",
        "Alg. 1-2: the paper's, line by line; all float32, coverage loss, alpha = 0.1",
    ]
    meaning = {
        TIME: f"- t: left out, a call would take more than {limits['seconds']:.0f} s",
        MEMORY: f"- m: left out, would need more than {limits['bytes'] / 2**30:.1f} GB with its arrays",
        MISSING: "- i: left out, not installed",
    }
    return _titled(title, table, [*legend, *(meaning[reason] for reason in meaning if reason in left_out)])


def growth_table(findings: Findings) -> RenderableType:
    title = "Growth: nanoseconds and peak extra bytes a row, ours"
    table = _table()
    for head in ("K", "", *(_power(n) for n in _rows(findings)), "bytes", "resident", "10^7 / 10^5"):
        table.add_column(head, justify="left" if head == "" else "right")
    cells = findings["speed"]
    for K in dict.fromkeys(cell["K"] for cell in cells):
        mine = {cell["n"]: cell for cell in cells if cell["K"] == K and "ours" in cell["seconds"]}
        if not mine:
            continue
        largest = mine[max(mine)]["bytes_a_row"]
        for step in STEPS:
            times = [
                f"{mine[n]['seconds']['ours'][step] / n * 1e9:.1f}" if n in mine else "-"
                for n in _rows(findings)
            ]
            resident, growth = largest.get(f"{step} resident"), time_growth(findings, step, K)
            table.add_row(
                str(K) if step == STEPS[0] else "",
                step,
                *times,
                f"{largest[step]:.1f}",
                "-" if resident is None else f"{resident:.1f}",
                "-" if growth is None else f"{growth:.0f}",
            )
    legend = [
        "bytes: most held at once during the call at the largest n, result included, by",
        "measured by tracemalloc, which includes numpy; resident: increase of the process's memory",
        "10^7 / 10^5: time at 10^7 rows over time at 10^5, 100 if linear; -: not run",
    ]
    return _titled(title, table, legend)


def variants_table(findings: Findings) -> RenderableType:
    cells = {(cell["variant"], cell["K"]): cell for cell in findings["variants"]}
    classes = list(dict.fromkeys(K for _, K in cells))
    n = findings["variants"][0]["n"]
    title = f"Losses, rules, harder probabilities: reading over our time, n = {_power(n)}"
    table = _table()
    for head in ("", "", *(f"K = {K}" for K in classes)):
        table.add_column(head, justify="right" if head else "left")
    for name in VARIANTS:
        for step in STEPS:
            shares = [cells[name, K]["read"] / cells[name, K]["seconds"][step] for K in classes]
            table.add_row(name if step == STEPS[0] else "", step, *(f"{share:.0%}" for share in shares))
    table.add_section()
    literal = findings["divergence_literal"]
    for step in STEPS:
        ratios = [cell["Algorithms 2-3"][step] / cell["ours"][step] for cell in literal]
        name = "Algorithms 2-3 / ours" if step == STEPS[0] else ""
        table.add_row(name, step, *(f"{value:,.0f}x" for value in ratios))
    legend = [
        f"Algorithms 2-3: the paper's, line by line, divergence loss, at n = {_power(literal[0]['n'])}",
        "against ours with the same loss and rule",
    ]
    return _titled(title, table, legend)


def sizes_table(findings: Findings) -> RenderableType:
    title = "Set size at equal risk: all calibrated to miss alpha = 0.1 of the labels"
    table = _table()
    for head in ("", "risk", "se", "size", "se", "gaps", "empty"):
        table.add_column(head, justify="left" if head == "" else "right")
    data = None
    for found in findings["sizes"]:
        if found["data"] != data:
            data = found["data"]
            table.add_section()
            table.add_row(f"[bold]{data}[/]", f"n={found['rows']:,}", f"K={found['K']}")
        table.add_row(
            f"  {found['method']}{'' if found['guaranteed'] else ' *'}",
            f"{found['risk']:.4f}",
            f"{found['risk_se']:.4f}",
            f"{found['size']:.3f}",
            f"{found['size_se']:.3f}",
            f"{found['not_intervals']:.1%}",
            f"{found['empty']:.1%}",
        )
    legend = [
        f"means over {findings['halves']} random halves, se: their standard error; risk: share missed",
        "gaps: share of sets that are no intervals; empty: share without any label",
        "*: windows are not nested, so their risk is not guaranteed",
        *findings["sizes_left_out"],
    ]
    return _titled(title, table, legend)


def latency_table(findings: Findings) -> RenderableType:
    title = "First use, in seconds: a fresh process each time"
    table = _table()
    for head in ("", "best", "median", "whole process, best", "median"):
        table.add_column(head, justify="left" if head == "" else "right")
    for name, code in {"import": "import ordinalrisk", "small call": "calibrate, predict 1,000 rows"}.items():
        table.add_row(code, *(f"{value:.3f}" for value in findings["latency"][name].values()))
    return _titled(title, table, [])


def cold_start_table(findings: Findings) -> RenderableType:
    found = findings["cold_start"]
    table = _table()
    for head in ("", "seconds", "over ours"):
        table.add_column(head, justify="left" if head == "" else "right")
    for name, seconds in found.items():
        table.add_row(name, f"{seconds:.3f}", f"{seconds / found['ours']:.1f}x")
    legend = [
        "median of fresh processes that take turns, from the import to the sets of 2,000 rows,",
        "after importing numpy; numpy: that import alone",
    ]
    return _titled("Cold start: import, calibrate, predict", table, legend)


def files_table(findings: Findings) -> RenderableType:
    cells = findings["files"]
    title = f"Files: Parquet with {_power(cells[0]['n'])} rows of 10 float32 scores, streamed"
    table = _table()
    for head in ("", "seconds", "million rows/s", "of reading", "resident MB"):
        table.add_column(head, justify="left" if head == "" else "right")
    for cell in cells:
        table.add_row(
            cell["job"],
            f"{cell['seconds']:.1f}",
            f"{cell['n'] / cell['seconds'] / 1e6:.1f}",
            f"{cell['read'] / cell['seconds']:.0%}",
            f"{cell['resident'] / 1e6:.0f}",
        )
    legend = [
        "of reading: time to read the same columns with pyarrow and do nothing, over ours,",
        "in one process, from the system's cache; resident: peak of the whole command",
    ]
    return _titled(title, table, legend)


def scale_table(findings: Findings) -> RenderableType:
    cells = {kind: findings["scale"][kind] for kind in ("files", "arrays")}
    workers = cells["files"]["workers"]
    title = f"Cluster: {workers} workers against one process with as many threads, seconds"
    table = _table()
    for head in ("", "n", "parts", "", "one", "", "cluster", "overhead"):
        table.add_column(head, justify="left" if head == "" else "right")
    for kind, cell in cells.items():
        for job, times in cell["jobs"].items():
            first = job == next(iter(cell["jobs"]))
            table.add_row(
                kind if first else "",
                _power(cell["n"]) if first else "",
                str(cell["parts"]) if first else "",
                job,
                f"{times['one']:.2f}",
                times["way"],
                f"{times['cluster']:.2f}",
                f"{overhead(times):+.0%}",
                end_section=job == list(cell["jobs"])[-1],
            )
    making, arrays = cells["arrays"]["making"], cells["arrays"]["jobs"]
    shares = ", ".join(f"{making / arrays[job]['one']:.0%} ({job})" for job in arrays)
    legend = [
        "float32, K = 10, coverage loss, alpha = 0.05; both find the same thresholds;",
        "one: the fastest way, of Parquet files file by file or all rows in one file;",
        f"starting the cluster took {cells['files']['start']:.1f} s more; making arrays is part of it, and",
        f"takes of one machine's time {shares}",
    ]
    return _titled(title, table, legend)


def driver_table(findings: Findings) -> RenderableType:
    title = "Driver: the process with client and scheduler, rows made on the workers"
    table = _table()
    for head in (
        "n",
        "parts",
        "calibrate\ns",
        "predict\ns",
        "resident\nMB",
        "worker\nMB",
        "results\nMB",
        "got\nMB",
        "of the\nscores",
    ):
        table.add_column(head, justify="right")
    for cell in findings["scale"]["driver"]:
        table.add_row(
            _power(cell["n"]),
            str(cell["parts"]),
            f"{cell['calibrate']:.1f}",
            f"{cell['predict']:.1f}",
            *(f"{cell[name] / 1e6:.0f}" for name in ("resident", "workers resident")),
            *(f"{cell[name] / 1e6:.2f}" for name in ("received", "sockets")),
            f"{cell['sockets'] / cell['scores']:.2%}",
        )
    legend = [
        "predict: the mean size; resident: its peak, worker: that of the larger worker;",
        "results: what was asked for, pickled; got: all bytes from other processes, with",
        "heartbeats, states of tasks, and results twice, as they pass the scheduler",
    ]
    return _titled(title, table, legend)


def marks_table(findings: Findings) -> RenderableType:
    title = "Marks"
    table = _table()
    for head in ("", "asked", "measured", ""):
        table.add_column(head, justify="right" if head else "left")
    for mark in findings["marks"]:
        verdict = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[mark["met"]]
        table.add_row(mark["what"], mark["asked"], mark["measured"], verdict)
    legend = [UNLESS_SAID]
    if any(mark["met"] is None for mark in findings["marks"]):
        legend.append("-: not measured in this run")
    legend += [findings[note] for note in ("files_note", "scale_note", "gpu_note") if note in findings]
    return _titled(title, table, legend)


def _ours(cell: dict[str, Any], step: str) -> tuple[str, str]:
    if "ours" not in cell["seconds"]:
        reason = f"- {LETTER[cell['left_out']['ours']]}"
        return reason, reason
    return _three_digits(cell["seconds"]["ours"][step] * 1e3), f"{read_share(cell, step):.0%}"


def _peer(cell: dict[str, Any], name: str, step: str) -> str:
    value = ratio(cell, name, step)
    if value is not None:
        return _three_digits(value)
    return f"- {LETTER[cell['left_out'].get(name, cell['left_out'].get('ours'))]}"


def _three_digits(value: float) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def _power(n: int) -> str:
    power = len(str(n)) - 1
    return f"10^{power}" if n == 10**power else f"{n:,}"


def _rows(findings: Findings) -> list[int]:
    return sorted({cell["n"] for cell in findings["speed"]})


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1))


def _titled(title: str, table: Table, legend: list[str]) -> RenderableType:
    return Group(Text(title, style="bold"), table, *(Text(f" {line}", style="dim") for line in legend))
