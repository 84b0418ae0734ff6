"""The tables on judges in docs/field.md, from the numbers of the last run of ``benchmarks.field.judges``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from docs.page_blocks import table

from .methods import RULES

OURS = "frontier, recalibrated"
RAW = (*RULES, "auto", "frontier, temperature", "shares of the labels alone")
LEARNED = tuple(f"{rule}, recalibrated" for rule in (*RULES, "auto"))
Cell = Mapping[str, Any]


def tables(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the blocks of the page."""
    return {"judges": sizes_tables(found), "judges best": best_table(found)}


def sizes_tables(found: Mapping[str, Any]) -> str:
    """Return a table for each judge: the size of each method at the last of the risks, by number of rows."""
    judges = {
        cell["judge"]: [c for c in found["cells"] if c["judge"] == cell["judge"]] for cell in found["cells"]
    }
    parts = []
    for judge, cells in judges.items():
        many = next(name for name in cells[0]["methods"] if "map from" in name)
        heads = [f"{cell['rows']:,} rows" for cell in cells]
        asked = f"asked for {found['risks'][-1]}, {heads[-1]}: size, missed"
        lines = [["method", *heads, asked], ["---", *["---:"] * (len(heads) + 1)]]
        for method in (*RAW, *LEARNED, many):
            mine = [cell["methods"][method] for cell in cells]
            missed, size = mine[-1]["asked"]
            sizes = [f"{one['sizes'][-1]:.2f} ± {one['errors'][-1]:.2f}" for one in mine]
            lines.append([method, *sizes, f"{size:.2f}, {100 * missed:.1f} %"])
        parts.append(f"**Judge: {judge}**\n\n{table(lines)}")
    return "\n\n".join(parts)


def best_table(found: Mapping[str, Any]) -> str:
    """Return how much larger recalibrated frontier is than the best rule, with and without the map."""
    heads = [
        f"{risk}: {kind}" for risk in found["risks"] for kind in ("best raw rule", "best recalibrated rule")
    ]
    lines = [["judge", "rows", *heads], ["---", "---:", *["---:"] * len(heads)]]
    for cell in found["cells"]:
        changes = [
            _against_best(cell, at, rules)
            for at in range(len(found["risks"]))
            for rules in (RULES, [f"{rule}, recalibrated" for rule in RULES])
        ]
        lines.append([cell["judge"], f"{cell['rows']:,}", *changes])
    return table(lines)


def _against_best(cell: Cell, at: int, rules: Iterable[str]) -> str:
    """Return the change to the rule with the smallest sets, and the standard error of the change."""
    methods = cell["methods"]
    best = min(rules, key=lambda rule: methods[rule]["sizes"][at])
    change = methods[OURS]["sizes"][at] / methods[best]["sizes"][at] - 1
    error = methods[best]["errors_of_ratio"][at]
    sure = f" ± {100 * error:.1f}" if best != OURS else ""
    return f"{100 * change:+.1f}{sure} % ({best.removesuffix(', recalibrated')})"
