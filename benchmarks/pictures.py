"""What was measured, as pictures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from ordinalrisk.files.atomic import replacing

from .marks import Findings, ratio
from .peers import ALPHA, PEERS
from .speed import STEPS

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

OURS, PEER, GREY = "#1b6ca8", "#d9822b", "#8a8f98"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e8eb",
    "legend.frameon": False,
    "figure.dpi": 130,
    "savefig.bbox": "tight",
}


def save_speed(findings: Findings, path: str | os.PathLike[str]) -> None:
    """Time and memory a row against n and K on log axes, and the peers' times over ours."""
    cells = [cell for cell in findings["speed"] if "ours" in cell["seconds"]]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 3, figsize=(13, 7.6), layout="constrained")
        for axis, step in zip(axes[0], STEPS, strict=False):
            _time_against_rows(axis, cells, step)
        _memory_against_rows(axes[1, 0], cells)
        _against_classes(axes[1, 1], cells)
        for axis, step in zip(axes[:, 2], STEPS, strict=True):
            _ratio_bars(axis, cells, step)
        _save(figure, path)


def _time_against_rows(axis: Any, cells: list[Findings], step: str) -> None:
    for K, colour in _colours(cells).items():
        mine = [cell for cell in cells if cell["K"] == K]
        n = np.array([cell["n"] for cell in mine])
        time = np.array([cell["seconds"]["ours"][step] for cell in mine])
        read = np.array([cell["seconds"]["read"] for cell in mine])
        axis.plot(n, time / n * 1e9, "o-", color=colour, label=f"K = {K}")
        axis.plot(n, read / n * 1e9, ":", color=colour)
    axis.plot([], [], ":", color=GREY, label="reading the array once")
    _finish(axis, f"{step}: nanoseconds a row", "rows")


def _memory_against_rows(axis: Any, cells: list[Findings]) -> None:
    for K, colour in _colours(cells).items():
        mine = [cell for cell in cells if cell["K"] == K]
        n = [cell["n"] for cell in mine]
        for step, line in zip(STEPS, ("s--", "o-"), strict=True):
            axis.plot(n, [cell["bytes_a_row"][step] for cell in mine], line, color=colour)
        axis.plot(n, [4 * K] * len(n), ":", color=colour)
    for line, label in (("o-", "predict"), ("s--", "calibrate"), (":", "the probabilities themselves")):
        axis.plot([], [], line, color=GREY, label=label)
    _finish(axis, "peak extra memory: bytes a row", "rows")


def _against_classes(axis: Any, cells: list[Findings]) -> None:
    n = _rows_of_most_cells(cells)
    mine = [cell for cell in cells if cell["n"] == n]
    K = [cell["K"] for cell in mine]
    for step, line in zip(STEPS, ("s--", "o-"), strict=True):
        time = [cell["seconds"]["ours"][step] / n * 1e9 for cell in mine]
        axis.plot(K, time, line, color=OURS, label=f"{step}: ns a row")
        memory = [cell["bytes_a_row"][step] for cell in mine]
        axis.plot(K, memory, line, color=PEER, label=f"{step}: bytes a row")
    read = [cell["seconds"]["read"] / n * 1e9 for cell in mine]
    axis.plot(K, read, ":", color=GREY, label="reading: ns a row")
    _finish(axis, f"growth with classes, {n:,} rows", "classes")
    axis.set_xticks(K, [str(k) for k in K])
    axis.tick_params(axis="x", which="minor", length=0)


def _finish(axis: Any, title: str, across: str) -> None:
    """Log axes with plain numbers, and room above the lines for the legend."""
    axis.set(title=title, xlabel=across, xscale="log", yscale="log")
    axis.yaxis.set_major_formatter("{x:,g}")
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.xaxis.set_minor_formatter(NullFormatter())
    low, high = axis.get_ylim()
    axis.set_ylim(low, high * (high / low) ** 0.45)
    axis.legend(fontsize=8, loc="upper left", ncols=2)


def _ratio_bars(axis: Any, cells: list[Findings], step: str) -> None:
    """Each peer at the most rows, up to a million, at which it was timed."""
    names, values = [], []
    for name in PEERS:
        timed = [cell for cell in cells if name in cell["seconds"] and cell["K"] == _main_classes(cells)]
        timed = [cell for cell in timed if cell["n"] <= 1_000_000]
        if timed:
            names.append(f"{name}\n{timed[-1]['n']:,} rows")
            values.append(ratio(timed[-1], name, step))
    bars = axis.barh(names, values, color=PEER, height=0.62)
    labels = [f"{value:,.1f}x" if value < 10 else f"{value:,.0f}x" for value in values]
    axis.bar_label(bars, labels, padding=3)
    axis.axvline(1, color=OURS, linewidth=1.5)
    axis.set(title=f"{step}: time over ours, K = {_main_classes(cells)}", xscale="log")
    axis.set_xlim(min(0.5, *values) / 1.5, max(values) * 8)
    axis.xaxis.set_major_formatter("{x:,g}x")
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0, labelsize=8)


def save_sizes(findings: Findings, path: str | os.PathLike[str]) -> None:
    """Mean set size of every method on every data set, with its realised risk."""
    names = list(dict.fromkeys(found["data"] for found in findings["sizes"]))
    with plt.rc_context(STYLE):
        columns = min(3, len(names))
        rows = -(-len(names) // columns)
        figure, axes = plt.subplots(
            rows, columns, figsize=(4.5 * columns, 3.4 * rows + 0.3), layout="constrained", squeeze=False
        )
        for axis, name in zip(axes.flat, names, strict=False):
            _sizes_of(axis, [found for found in findings["sizes"] if found["data"] == name])
        for axis in axes.flat[len(names) :]:
            axis.set_axis_off()
        figure.suptitle(
            f"Mean set size, all calibrated to miss {ALPHA:.0%} of the labels; at the right what they miss\n"
            "blue: ordinalrisk; orange: others; grey: not nested, so without a guarantee",
            x=0.01,
            ha="left",
            fontweight="bold",
        )
        _save(figure, path)


def _sizes_of(axis: Any, found: list[Findings]) -> None:
    for at, method in enumerate(found):
        peer = method["method"] in PEERS
        colour = PEER if peer else OURS if method["guaranteed"] else GREY
        axis.errorbar(method["size"], at, xerr=2 * method["size_se"], fmt="o", color=colour, capsize=2)
        note = f"{method['risk']:.1%}"
        if method["not_intervals"] >= 0.0005:
            note += f", {method['not_intervals']:.1%} gaps"
        axis.text(1.02, at, note, transform=axis.get_yaxis_transform(), va="center", fontsize=8, color="#444")
    axis.set_yticks(range(len(found)), [method["method"] for method in found])
    axis.invert_yaxis()
    axis.margins(x=0.08)
    axis.set(
        title=f"{found[0]['data']}, K = {found[0]['K']}", xlabel="labels in a set (bars: 2 standard errors)"
    )


def _colours(cells: list[Findings]) -> dict[int, Any]:
    classes = sorted({cell["K"] for cell in cells})
    return dict(zip(classes, plt.get_cmap("viridis")(np.linspace(0.05, 0.8, len(classes))), strict=True))


def _main_classes(cells: list[Findings]) -> int:
    classes = {cell["K"] for cell in cells}
    return 10 if 10 in classes else min(classes)


def _rows_of_most_cells(cells: list[Findings]) -> int:
    """The largest number of rows at which the most numbers of classes were timed."""
    rows = [cell["n"] for cell in cells]
    return max(set(rows), key=lambda n: (rows.count(n), n))


def _save(figure: Any, path: str | os.PathLike[str]) -> None:
    with replacing(path) as temporary:
        figure.savefig(temporary, format=Path(path).suffix[1:])
    plt.close(figure)
