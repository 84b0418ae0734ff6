"""The growth rules side by side on the test rows, for the report."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.controller import RiskController
from ordinalrisk.growth.rules import GROWTH_RULES
from ordinalrisk.losses.kinds import of_side
from ordinalrisk.selection.cross_validation import cross_validated, curves_without_each, shuffled_folds

_FOLDS = 5
_FEWEST_ROWS = 10


def compare_rules(
    controller: RiskController,
    proba: NDArray[Any],
    labels: NDArray[np.int64],
    alphas: Sequence[Fraction],
    n_rows: int,
) -> dict[str, Any] | None:
    """Return the risk and mean size of each rule at each ``alpha``; None with few rows.

    The rows are drawn from ``n_rows``. The controller's own rule starts from its own point labels.
    """
    if len(labels) < _FEWEST_ROWS:
        return None
    folds = shuffled_folds(proba, labels, controller.classes_, _FOLDS, random_state=0)
    own, costs = controller.growth, controller.calibration_.costs
    loss = of_side(controller.loss, controller.side, costs.n_classes)
    risk_of = attrgetter("relative_risk" if controller.relative else "risk")
    risks, sizes = [], []
    for name, rule_of_name in GROWTH_RULES.items():
        rule = own if name == own.name else rule_of_name()
        curves = curves_without_each(folds, rule, costs, controller.relative)
        results = cross_validated(folds, rule, costs, curves, alphas)
        risks.append([risk_of(result.tally)(loss) if result.certified else None for result in results])
        sizes.append([result.tally.mean_size() if result.certified else None for result in results])
    drawn = f"{n_rows:,} test rows"
    if len(labels) < n_rows:
        drawn = f"{len(labels):,} of {drawn}, drawn at random"
    return {
        "text": f"{_FOLDS}-fold cross-validation on {drawn}",
        "rows": len(labels),
        "folds": _FOLDS,
        "names": list(GROWTH_RULES),
        "risk": risks,
        "mean_size": sizes,
    }
