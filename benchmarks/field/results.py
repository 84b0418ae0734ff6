"""What was measured over the field, as one small file, and the comparisons that are made of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from ordinalrisk.files.atomic import replacing

Cell = Mapping[str, Any]
OURS = "frontier, recalibrated"
OWN = ("frontier", "auto", OURS, "auto, recalibrated")
LOSSES = ("coverage", "divergence")
ABOUT = ("target", "model", "K", "rows", "map")
PEERS = ("rps", "paper", "LAC, gaps filled")
"""Nested intervals of others: ranked probability sets, the paper's rule, LAC with its gaps filled."""
DUELS = [(own, peer) for own in OWN for peer in PEERS]
Errors = Mapping[tuple[str, str], float]
"""For each of :data:`DUELS`, the standard error of the mean logarithm of the ratio of the sizes."""


def save(cells: Sequence[Cell], splits: int, path: Path) -> None:
    """Write one line for each target and model, with the numbers of all methods in one order."""
    methods = [*cells[0]["sizes"]]
    pairs = by(cells, lambda cell: tuple(cell[name] for name in ABOUT))
    lines = []
    for about, mine in pairs.items():
        sizes = [[float(f"{cell['sizes'][method]:.4g}") for method in methods] for cell in mine]
        line = dict(zip(ABOUT, about, strict=True)) | {"single": [int(cell["single"]) for cell in mine]}
        line |= {"sizes": sizes, "errors": [_errors([cell]) for cell in mine]}
        lines.append(json.dumps(line | {"error": _errors(comparable(mine))}, separators=(",", ":")))
    head = {
        "splits": splits,
        "methods": methods,
        "asked": [(cell["loss"], cell["alpha"]) for cell in mine],
        "risks": {loss: _risks([cell for cell in cells if cell["loss"] == loss], methods) for loss in LOSSES},
        "duels": DUELS,
        "targets": {name: _errors(group) for name, group in by(comparable(cells), _target).items()},
    }
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(head)[:-1] + ', "pairs": [\n' + ",\n".join(lines) + "\n]}\n")


def load(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the cells of a file, each with the numbers of the methods by name, and what holds for all.

    ``found["errors"]`` has the errors of all cells of a target, or of a target and a model, by their names.
    """
    found = json.loads(path.read_text())
    methods, cells = found["methods"], []
    duels = [tuple(duel) for duel in found.pop("duels")]

    def named(errors: Sequence[int]) -> dict[tuple[str, str], float]:
        return dict(zip(duels, np.array(errors) / 1e4, strict=True)) if errors else {}

    together = {(target,): named(errors) for target, errors in found.pop("targets").items()}
    for pair in found.pop("pairs"):
        about = {name: pair[name] for name in ABOUT}
        together[pair["target"], pair["model"]] = named(pair["error"])
        for at, (loss, alpha) in enumerate(found["asked"]):
            sizes = dict(zip(methods, pair["sizes"][at], strict=True))
            here = {"loss": loss, "alpha": alpha, "single": bool(pair["single"][at])}
            cells.append(about | here | {"sizes": sizes, "errors": named(pair["errors"][at])})
    return cells, found | {"errors": together}


def _errors(cells: Sequence[Cell]) -> list[int]:
    """Return the error of each of the duels, in units of 0.0001."""
    return [round(1e4 * error(cells, *duel)) for duel in DUELS] if cells else []


def error(cells: Iterable[Cell], ours: str, peer: str) -> float:
    """Return the standard error of the mean log ratio of the sizes, by the jackknife over splits.

    A split of a target is the same for all of its cells, so it is left out of all of them at once.
    """
    without = np.mean([cell["without"][ours] - cell["without"][peer] for cell in cells], axis=0)
    return float(np.sqrt((len(without) - 1) * without.var()))


def _risks(cells: Sequence[Cell], methods: Sequence[str]) -> dict[str, float]:
    """Return the realised risk of each method where it is asked for ``alpha``, as a multiple of it."""
    shares = {m: np.mean([cell["risks"][m] / cell["alpha"] for cell in comparable(cells)]) for m in methods}
    return {method: round(float(share), 3) for method, share in shares.items()}


def comparable(cells: Iterable[Cell]) -> list[Cell]:
    """Leave out cells in which single labels have a risk below ``alpha``: there all methods are the same."""
    return [cell for cell in cells if not cell["single"]]


def ratio(cells: Iterable[Cell], method: str, reference: str) -> float:
    """Return the geometric mean of the size of a method, in multiples of another one's."""
    return float(np.exp(np.mean([np.log(_ratio(cell, method, reference)) for cell in cells])))


def by(cells: Iterable[Cell], key: Callable[[Cell], Any]) -> dict[Any, list[Cell]]:
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return groups


def average_ranks(cells: Iterable[Cell], methods: Sequence[str]) -> tuple[dict[str, float], float]:
    """Return the mean rank of each method over targets, 1 for the smallest, and Friedman's p-value.

    The cells of one target are not independent, so their ratios are averaged first.
    """
    table = _by_target(cells, methods)
    ranks = rankdata(table, axis=1).mean(axis=0)
    return dict(zip(methods, map(float, ranks), strict=True)), float(friedmanchisquare(*table.T).pvalue)


def adjusted_p_values(cells: Iterable[Cell], methods: Sequence[str]) -> dict[str, float]:
    """Return Wilcoxon's p-value of each method against ours over targets, adjusted by Holm."""
    table = _by_target(cells, [OURS, *methods])
    raw = {
        m: float(wilcoxon(table[:, 0], column).pvalue) for m, column in zip(methods, table.T[1:], strict=True)
    }
    found, largest = {}, 0.0
    for step, (method, p) in enumerate(sorted(raw.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(raw) - step) * p))
        found[method] = largest
    return found


def _by_target(cells: Iterable[Cell], methods: Sequence[str]) -> np.ndarray:
    groups = by(cells, lambda cell: cell["target"]).values()
    return np.array([[np.log(ratio(group, method, OURS)) for method in methods] for group in groups])


def is_behind(cells: Sequence[Cell], errors: Errors, ours: str, peers: Sequence[str] = PEERS) -> bool:
    """Return whether a peer is smaller on average by more than 1 %, and by more than two standard errors."""
    gaps = {peer: float(np.log(ratio(cells, ours, peer))) for peer in peers}
    return any(gap > np.log(1.01) and gap > 2 * errors[ours, peer] for peer, gap in gaps.items())


def behind(cells: Iterable[Cell], ours: str) -> list[Cell]:
    """Return the single comparisons in which a peer is smaller."""
    return [cell for cell in cells if is_behind([cell], cell["errors"], ours)]


def behind_on_average(
    cells: Iterable[Cell], found: Mapping[str, Any], ours: str, names: Sequence[str]
) -> tuple[list[tuple[Any, ...]], int]:
    """Return the groups of cells in which a peer is smaller on average, and how many groups there are."""
    groups = by(cells, lambda cell: tuple(cell[name] for name in names))
    return [key for key, mine in groups.items() if is_behind(mine, found["errors"][key], ours)], len(groups)


def _target(cell: Cell) -> str:
    return str(cell["target"])


def _ratio(cell: Cell, method: str, reference: str) -> float:
    return cell["sizes"][method] / cell["sizes"][reference]
