"""The table of peers in docs/peers.md, from the last run and from what is tried here.

python -m benchmarks.front_table        after make bench, or after one of --section speed sizes
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from docs.page_blocks import filled
from ordinalrisk.files.atomic import replacing

from .marks import Findings
from .peers import PEERS, Contender, Ours

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "peers.md"
COMMANDS = {
    "sizes": "`python -m benchmarks --section sizes`",
    "speed": "`python -m benchmarks --section speed`",
    "tried": "`python -m benchmarks.front_table`, which also writes this table",
    "read": "in the documentation of MAPIE 1.6, TorchCP 1.2 and crepes 0.9, of their sets for one label "
    "(MAPIE controls risks of other predictions too, as with `MultiClassificationLTTController`)",
}
ROWS, CLASSES = 1_000_000, 10
DATA = {
    "diamonds: clarity": "clarity of diamonds, 8 classes",
    "paper: diabetic retinopathy": "retina grades, 5",
    "fair: marriage rating": "survey answers, 5",
    "ERA: job applicants": "job applicants, 9",
}
METHODS: dict[str, Callable[[], Contender]] = {"ordinalrisk": Ours} | {
    name: PEERS[name].make for name in ("MAPIE lac", "MAPIE aps", "TorchCP LAC", "TorchCP APS", "crepes")
}
YES, NO = "yes", "no"
# What no call shows.
DOCUMENTED = {
    "loss by class, distance or cost table": (YES, NO, NO, NO, NO, NO),
    "guarantee for each group": (YES, YES, YES, NO, NO, YES),
    "guarantee for each true class": (YES, NO, NO, YES, YES, YES),
    "guarantee for a single calibration": (YES, NO, NO, NO, NO, NO),
    "regression and other tasks": (NO, YES, YES, YES, YES, YES),
}


def main() -> None:
    """Write the table into its page."""
    findings = json.loads((ROOT / "benchmarks" / "results" / "speed.json").read_text())
    page = filled(PAGE.read_text(), {"peers": table(findings)})
    with replacing(PAGE) as temporary:
        temporary.write_text(page)
    print(table(findings))


def table(findings: Findings) -> str:
    """The table as Markdown, and below it how each line comes about."""
    rows = [(f"labels in a set: {told}", sizes(findings, data), "sizes") for data, told in DATA.items()]
    rows += [("sets with gaps, of clarity", gaps(findings, "diamonds: clarity"), "sizes")]
    rows += [(f"time to {step}", times(findings, step), "speed") for step in ("calibrate", "predict")]
    rows += [
        ("refuses NaN", [refused(make(), np.nan) for make in METHODS.values()], "tried"),
        ("refuses rows that sum to 2", [refused(make(), 1.5) for make in METHODS.values()], "tried"),
    ]
    rows += [(what, answers, "read") for what, answers in DOCUMENTED.items()]
    lines = [["", *METHODS, "how"], ["---", *["---:"] * len(METHODS), "---"]]
    lines += [[what, *answers, f"*{how}*"] for what, answers, how in rows]
    explained = "; ".join(f"*{how}*: {command}" for how, command in COMMANDS.items())
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{explained}."


def sizes(findings: Findings, data: str) -> list[str]:
    """The mean number of labels in a set, and in brackets a realised risk that is far from alpha."""
    found = _of(findings, data)
    return [
        f"{one['size']:.2f}" + (f" (risk {one['risk']:.2f})" if abs(one["risk"] - 0.1) > 0.015 else "")
        for one in found
    ]


def gaps(findings: Findings, data: str) -> list[str]:
    """The share of sets that are no intervals."""
    return [f"{one['not_intervals']:.0%}" for one in _of(findings, data)]


def times(findings: Findings, step: str) -> list[str]:
    """Our time, and how many times as long the others take."""
    seconds = next(cell["seconds"] for cell in findings["speed"] if (cell["n"], cell["K"]) == (ROWS, CLASSES))
    ours = seconds["ours"][step]
    others = (seconds.get(name) for name in METHODS if name != "ordinalrisk")
    left_out = {"calibrate": "not timed", "predict": "too long"}[step]  # for the time that predicting takes
    return [
        f"{ours * 1e3:.2g} ms",
        *(_ratio(other[step] / ours) if other else left_out for other in others),
    ]


def refused(method: Contender, value: float) -> str:
    """Whether a calibration with one probability of ``value`` raises an error."""
    proba = np.tile(np.float32([0.5, 0.25, 0.25]), (100, 1))
    proba[50, 0] = value
    try:
        with warnings.catch_warnings(action="ignore"):
            method.calibrate(proba, np.arange(100) % 3)
    except (ValueError, AssertionError):
        return YES
    return NO


def _ratio(value: float) -> str:
    return f"{value:.1f}x" if value < 10 else f"{value:.0f}x"


def _of(findings: Findings, data: str) -> list[dict[str, Any]]:
    found = {one["method"]: one for one in findings["sizes"] if one["data"] == data}
    return [found["frontier" if name == "ordinalrisk" else name] for name in METHODS]


if __name__ == "__main__":
    main()
