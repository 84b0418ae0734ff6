"""Strata of a saved calibration: thresholds, curves and steps, checked against each other and the loss."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
from msgspec import to_builtins

from ordinalrisk.curves.risk_curve import RiskCurve
from ordinalrisk.curves.strata import Strata, Stratum
from ordinalrisk.curves.unit_steps import UnitSteps
from ordinalrisk.curves.windows import OrderedSteps, Window
from ordinalrisk.inputs.numbers import as_fraction
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.saving.calibration_document import SavedCurve, SavedSteps, SavedStratum, SavedWindow
from ordinalrisk.saving.document_with_digests import require
from ordinalrisk.saving.shared_fields import Name


def saved_stratum(part: Stratum, threshold: float) -> dict[str, Any]:
    """Describe a stratum and its threshold as a :class:`SavedStratum`."""
    curve, steps = part.curve, part.steps
    windows = [
        {"below": window.below, "levels": window.levels.tolist(), "totals": window.totals.tolist()}
        for window in ([] if steps else curve.windows)
    ]
    return {
        "group": part.group,
        "label": part.label,
        "n_rows": part.n_rows,
        "threshold": {"hex": threshold.hex(), "decimal": repr(threshold)},
        "curve": {
            "unit": str(curve.unit),
            "bound": str(curve.bound),
            "n_rows": curve.n_rows,
            "weight": str(curve.weight),
            "most_tied": curve.most_tied,
            "total": int(curve.total_loss(math.inf) / curve.unit),
            "windows": None if steps else windows,
            "stake": None if curve.stake is None else str(curve.stake),
        },
        "steps": None if steps is None else _saved_steps(steps),
    }


def _saved_steps(steps: UnitSteps) -> dict[str, Any]:
    stakes = None if steps.stakes is None else steps.stakes.tolist()
    return {name: getattr(steps, name).tolist() for name in ("at", "unit", "by")} | {"stakes": stakes}


def require_same(saved: SavedStratum, again: dict[str, Any]) -> None:
    """Refuse a stratum unless it would be saved as it was: its threshold must follow from its curve."""
    for name, value in to_builtins(saved).items():
        require(value == again[name], f"has a {name} that does not follow from the other values")


def loaded_strata(
    saved: list[SavedStratum],
    costs: CostTable,
    groups: tuple[Name, ...] | None,
    *,
    by_label: bool,
    clustered: bool,
    shift: str | None,
    relative: bool,
) -> Strata:
    """Return the strata, one for each group and, within it, each true class."""
    labels = range(costs.n_classes) if by_label else [None]
    keys = [*product([None] if groups is None else range(len(groups)), labels)]
    require(len(saved) == len(keys), f"must be a list of {len(keys)}")
    parts = []
    for part, (group, label) in zip(saved, keys, strict=True):
        n_rows, n_units, bound = part.n_rows, part.curve.n_rows, costs.bound_of(label)
        unit = as_fraction(part.curve.unit) if shift or clustered else costs.unit
        weight = as_fraction(part.curve.weight) if shift else Fraction(n_units)
        require(bool(shift) or (costs.unit / unit).denominator == 1, "has another unit than the loss")
        fewest = min(1, n_rows) if clustered else n_rows
        require(fewest <= n_units <= n_rows, f"must have from {fewest} to {n_rows} units")
        steps = None if part.steps is None else _unit_steps(part.steps, n_units)
        in_order = steps.steps(int(bound / unit)).in_order if steps else _ordered_steps(part.curve)
        stake = _stake(part, steps, unit, weight * bound) if relative else None
        require(relative or part.curve.stake is None, "has a stake, but alpha is not a share of it")
        curve = RiskCurve(in_order, unit=unit, n_rows=n_units, bound=bound, weight=weight, stake=stake)
        any_levels = len(curve.levels) > 0
        require(
            any_levels <= curve.most_tied <= any_levels * n_rows,
            "must have between 1 and n_rows rows tied at a level, 0 without levels",
        )
        most = weight * bound if stake is None else stake
        require(curve.total_loss(math.inf) <= most, "has a larger total than so many rows can have")
        two_valued = costs.two_valued(label, relative) and not clustered
        parts.append(Stratum(group, label, n_rows, curve, two_valued, steps))
    require(any(part.n_rows for part in parts), "must have rows")
    require(
        shift != "covariates" or all(part.curve.is_whole for part in parts),
        "must have whole curves where each row has a threshold of its own",
    )
    return Strata(tuple(parts), groups, len(labels))


def _stake(saved: SavedStratum, steps: UnitSteps | None, unit: Fraction, largest: Fraction) -> Fraction:
    """Return what the rows of a stratum can lose, which its steps must agree with."""
    require(saved.curve.stake is not None, "must have a stake, because alpha is a share of it")
    stake = as_fraction(saved.curve.stake)
    require(stake <= largest and (stake / unit).denominator == 1, "has a stake that its rows can't have")
    if steps is not None:
        require(steps.stake(unit) == stake, "has a stake that is not that of its steps")
        lost = np.zeros(steps.n_units, object)
        np.add.at(lost, steps.unit, steps.by.astype(object))
        require(bool((lost <= steps.stakes).all()), "has a unit that loses more than its stake")
    return stake


def _ordered_steps(saved: SavedCurve) -> OrderedSteps:
    require(saved.windows is not None, "must have windows")
    windows = tuple(_window(window) for window in saved.windows or [])
    for one, next_one in pairwise(windows):
        require(
            one.levels[-1] < next_one.levels[0] and int(one.totals[-1]) < next_one.below,
            "must have windows in ascending order, with something between them",
        )
    last = int(windows[-1].totals[-1]) if windows else 0
    require(last <= saved.total, "has levels above its total")
    return OrderedSteps(windows, saved.total, saved.most_tied)


def _window(saved: SavedWindow) -> Window:
    levels, totals = np.array(saved.levels, np.float64), saved.totals
    require(len(levels) == len(totals), "must have a total for each level")
    require(bool((np.diff(levels) > 0).all()), "must have increasing levels")
    require(all(a < b for a, b in pairwise([saved.below, *totals])), "must have increasing totals")
    return Window(saved.below, levels, np.array(totals, np.int64 if totals[-1] < 2**63 else object))


def _unit_steps(saved: SavedSteps, n_units: int) -> UnitSteps:
    at, unit, by = np.array(saved.at, np.float64), np.array(saved.unit, np.int64), saved.by
    require(len(at) == len(unit) == len(by), "must have a level and a unit for each step")
    require(bool((unit < n_units).all()), "must have steps of its own units")
    stakes = None
    if saved.stakes is not None:
        require(len(saved.stakes) == n_units, "must have a stake for each unit")
        stakes = np.array(saved.stakes, np.int64 if sum(saved.stakes) < 2**63 else object)
    return UnitSteps(at, unit, np.array(by, np.int64 if sum(by) < 2**63 else object), n_units, stakes)
