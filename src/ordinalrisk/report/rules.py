"""The growth rules side by side on the test rows, for the report."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.controller import RiskController
from ordinalrisk.growth.rules import GROWTH_RULES
from ordinalrisk.selection.compare import GROWTHS
from ordinalrisk.selection.cross_validation import cross_validated, shuffled_folds

FOLDS = 5
FEWEST_ROWS = 10


def rules_compared(
    controller: RiskController,
    proba: NDArray[Any],
    labels: NDArray[np.int64],
    alphas: Sequence[Fraction],
    n_rows: int,
) -> dict[str, Any] | None:
    """Risk and mean size of each rule at each ``alpha`` on rows drawn from ``n_rows``; None of few rows.

    The controller's own rule starts from its own point labels, the others from their usual ones.
    """
    if len(labels) < FEWEST_ROWS:
        return None
    folds = shuffled_folds(proba, labels, controller.classes_, FOLDS, seed=0)
    own, loss = controller.growth, controller.loss
    risks, sizes = [], []
    for name in GROWTHS:
        rule = own if name == own.name else GROWTH_RULES[name]()
        outcomes = cross_validated(folds, loss, rule, alphas)
        risks.append([tally.risk(loss) if certified else None for tally, certified in outcomes])
        sizes.append([tally.mean_size() if certified else None for tally, certified in outcomes])
    which = f"{n_rows:,} test rows"
    if len(labels) < n_rows:
        which = f"{len(labels):,} of {which}, drawn at random"
    return {
        "text": f"{FOLDS}-fold cross-validation on {which}",
        "rows": len(labels),
        "folds": FOLDS,
        "names": list(GROWTHS),
        "risk": risks,
        "mean_size": sizes,
    }
