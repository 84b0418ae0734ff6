"""The page docs/field.md: its tables and its picture, from the numbers of the last run.

python -m benchmarks.field.page        after python -m benchmarks --section field, and benchmarks.field.judges
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from docs.page_blocks import filled, table
from ordinalrisk.files.atomic import replacing

from . import judges, judges_page
from .methods import RULES
from .results import (
    LOSSES,
    OURS,
    OWN,
    PEERS,
    Cell,
    adjusted_p_values,
    average_ranks,
    behind,
    behind_on_average,
    by,
    comparable,
    load,
    ratio,
)

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[2]
NUMBERS = ROOT / "benchmarks" / "results" / "field.json"
PICTURE = ROOT / "benchmarks" / "results" / "field.png"
PAGE = ROOT / "docs" / "field.md"
KINDS = {
    "shortest windows": "intervals, not nested: no guarantee",
    "MAPIE lac": "sets with gaps",
    "MAPIE aps": "sets with gaps",
    "TorchCP LAC": "sets with gaps",
    "TorchCP APS": "sets with gaps",
    "auto": "intervals; rule chosen on training rows",
    "auto, recalibrated": "intervals; rule chosen on training rows",
}
COLOURS = {"LAC": "#d9822b", "intervals": "#8a8f98", "frontier": "#1b6ca8"}


def main() -> None:
    """Write the tables into the page, and draw the picture."""
    cells, found = load(NUMBERS)
    compared = comparable(cells)
    blocks = {
        "methods": methods_table(compared, found),
        "models": models_table(compared),
        "rules": rules_table(compared),
        "behind": behind_table(compared, found),
    }
    blocks |= judges_page.tables(json.loads(judges.NUMBERS.read_text()))
    with replacing(PAGE) as temporary:
        temporary.write_text(filled(PAGE.read_text(), blocks))
    draw(compared, PICTURE)


def methods_table(cells: Sequence[Cell], found: dict[str, Any]) -> str:
    """Return size, rank and realised risk of each method, in the order of their ranks."""
    methods = found["methods"]
    columns = []
    for loss in LOSSES:
        mine = [cell for cell in cells if cell["loss"] == loss]
        ranks, _ = average_ranks(mine, methods)
        p = adjusted_p_values(mine, [method for method in methods if method != OURS])
        columns.append({m: _size_and_rank(ratio(mine, m, OURS), ranks[m], p.get(m)) for m in methods})
    first, _ = average_ranks([cell for cell in cells if cell["loss"] == LOSSES[0]], methods)
    lines = [["method", "sets", *(f"{loss}: size, rank" for loss in LOSSES), "risk / alpha"]]
    lines += [["---", "---", *["---:"] * (len(LOSSES) + 1)]]
    for method in sorted(methods, key=first.__getitem__):
        risk = f"{found['risks']['coverage'][method]:.2f}"
        lines.append([method, KINDS.get(method, "intervals"), *(c[method] for c in columns), risk])
    return table(lines)


def _size_and_rank(size: float, rank: float, p: float | None) -> str:
    unsure = "" if p is None or p < 0.05 else " (not significant)"
    return f"{size:.3f}, {rank:.1f}{unsure}"


def models_table(cells: Sequence[Cell]) -> str:
    """Return what recalibration changes, by family of models, loss and alpha."""
    families = by(cells, lambda cell: cell["model"])
    alphas = sorted({cell["alpha"] for cell in cells})
    heads = [f"{loss}, {alpha}" for loss in LOSSES for alpha in alphas]
    lines = [["model", *heads, "all", "worst data set"], ["---", *["---:"] * (len(heads) + 2)]]
    for model, mine in families.items():
        each = by(mine, lambda cell: (cell["loss"], cell["alpha"]))
        changes = [_change(each[loss, alpha]) for loss in LOSSES for alpha in alphas]
        worst = max(
            ratio(group, OURS, "frontier") for group in by(mine, lambda cell: cell["target"]).values()
        )
        lines.append([model, *changes, _change(mine), _percent(worst)])
    return table(lines)


def _change(cells: Iterable[Cell]) -> str:
    return _percent(ratio(cells, OURS, "frontier"))


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def rules_table(cells: Sequence[Cell]) -> str:
    """Return how much smaller ours is than each growth rule on scores as they are."""
    lines = [["rule on scores as they are", *LOSSES, "both"], ["---", *["---:"] * (len(LOSSES) + 1)]]
    for rule in RULES:
        each = [[cell for cell in cells if cell["loss"] == loss] for loss in LOSSES]
        lines.append([rule, *(_percent(ratio(mine, OURS, rule)) for mine in (*each, cells))])
    return table(lines)


def behind_table(cells: Sequence[Cell], found: dict[str, Any]) -> str:
    """Return how often none of the nested peers without gaps is smaller beyond doubt."""
    heads = ["data sets", "data sets and models", "single comparisons", "data sets without one"]
    lines = [["ours", *heads], ["---", *["---:"] * len(heads)]]
    targets = {cell["target"] for cell in cells}
    for method in OWN:
        single = behind(cells, method)
        by_target, n_targets = behind_on_average(cells, found, method, ["target"])
        by_pair, n_pairs = behind_on_average(cells, found, method, ["target", "model"])
        shares = [
            (n_targets - len(by_target), n_targets),
            (n_pairs - len(by_pair), n_pairs),
            (len(cells) - len(single), len(cells)),
            (len(targets - {cell["target"] for cell in single}), len(targets)),
        ]
        lines.append([method, *(f"{there} of {n}, {100 * there / n:.1f} %" for there, n in shares)])
    return table(lines)


def draw(cells: Sequence[Cell], path: Path) -> None:
    """Draw the size of other methods relative to ours, by target; peers with gaps as open marks."""
    groups = by([cell for cell in cells if cell["loss"] == "coverage"], lambda cell: cell["target"])
    best = {target: min(ratio(mine, peer, OURS) for peer in PEERS) for target, mine in groups.items()}
    names = sorted(groups, key=best.__getitem__)
    figure, axis = plt.subplots(figsize=(8, 10.5), layout="constrained")
    place = np.arange(len(names))
    marks = {
        "frontier, scores as they are": (
            [ratio(groups[n], "frontier", OURS) for n in names],
            "|",
            "frontier",
        ),
        "best of three nested peers without gaps": ([best[n] for n in names], "o", "intervals"),
        "LAC (sets may have gaps)": ([ratio(groups[n], "MAPIE lac", OURS) for n in names], "D", "LAC"),
    }
    for label, (sizes, marker, colour) in marks.items():
        face = "none" if marker == "D" else COLOURS[colour]
        style = {"s": 70, "linewidth": 2, "zorder": 3} if marker == "|" else {"s": 26}
        axis.scatter(sizes, place, marker=marker, color=COLOURS[colour], facecolor=face, label=label, **style)
    axis.axvline(1, color=COLOURS["frontier"], linewidth=1.5)
    axis.axvspan(0.99, 1.01, color="#dcebf5", linewidth=0, zorder=0, label="within 1 % of ours")
    axis.set_yticks(place, [f"{name}, {groups[name][0]['K']}" for name in names], fontsize=7.5)
    axis.set(xlabel="mean set size, in multiples of ours (frontier, recalibrated) at equal realised risk")
    figure.suptitle(
        "Coverage, mean of 3 models and 3 alphas; right of the line, sets are larger than ours",
        x=0.02,
        ha="left",
    )
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#eef0f2")
    axis.set_axisbelow(True)
    axis.set_ylim(-1, len(names))
    axis.legend(frameon=False, loc="lower right")
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=90)
    plt.close(figure)


if __name__ == "__main__":
    main()
