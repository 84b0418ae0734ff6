"""Mean set sizes at equal realised risk, over random splits of the rows that are held out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import ordinalrisk as orisk
from ordinalrisk.losses.kinds import IntervalLoss

from .methods import LEVELS, PLAIN, RECALIBRATED, RULES, Method
from .scores import Arrays, kept, scores
from .targets import Target

ALPHAS = (0.02, 0.05, 0.1)
LOSSES: dict[str, IntervalLoss] = {"coverage": orisk.WeightedLoss(), "divergence": orisk.DivergenceLoss()}
HERE = Path(__file__)

AUTO = {"auto": "{}", "auto, recalibrated": "{}, recalibrated"}
"""The rule that has the smallest sets on out-of-fold rows of training, at this loss and alpha."""


def measure(target: Target, model: str, splits: int) -> list[dict[str, Any]]:
    """Return what each method does with the scores of one model on one target, by loss and alpha."""
    scored = scores(target, model)
    K = scored.train.shape[1]
    recalibrator = orisk.Recalibrator(classes=range(K)).fit(scored.train, scored.y_train)
    train, held_out = (np.asarray(recalibrator.transform(proba)) for proba in (scored.train, scored.held_out))
    name = f"{target.name} {model} curves"
    found = {
        **kept_curves(name, scored.held_out, scored.y, PLAIN, splits),
        **kept_curves(f"{name} recalibrated", held_out, scored.y, RECALIBRATED, splits),
    }
    cells = []
    for at, (name, loss) in enumerate(LOSSES.items()):
        here = {method: curve[at] for method, curve in found.items()}
        chosen = [smallest_rule(proba, scored.y_train, loss) for proba in (scored.train, train)]
        for alpha in ALPHAS:
            rules = {
                auto: rule.format(by[alpha]) for (auto, rule), by in zip(AUTO.items(), chosen, strict=True)
            }
            cell = at_equal_risk(here | {auto: here[rule] for auto, rule in rules.items()}, alpha)
            cells.append({"loss": name, "alpha": alpha, **cell})
    about = {
        "target": target.name,
        "model": model,
        "K": K,
        "rows": len(scored.y),
        "map": recalibrator.method_,
    }
    return [about | cell for cell in cells]


def smallest_rule(proba: np.ndarray, y: np.ndarray, loss: IntervalLoss) -> dict[float, str]:
    """Return for each alpha the rule with the smallest sets on rows that are not held out."""
    compared = orisk.compare(
        proba, y, losses={"": loss}, growths=RULES, alphas=ALPHAS, classes=range(proba.shape[1])
    )
    return {
        alpha: min((c for c in compared if c.alpha == alpha), key=lambda c: c.mean_size.value).growth
        for alpha in ALPHAS
    }


def kept_curves(
    name: str, proba: np.ndarray, y: np.ndarray, methods: Mapping[str, Method], splits: int
) -> Arrays:
    """Return the curves of the methods, from the disk if they are there."""
    code = HERE.with_name("methods.py").read_text()
    decided_by = (proba.tobytes(), y.tobytes(), [*methods], code, orisk.__version__, splits)
    return kept(name, decided_by, lambda: curves(proba, y, methods, splits))


def curves(
    proba: np.ndarray, y: np.ndarray, methods: Mapping[str, Method], splits: int
) -> dict[str, np.ndarray]:
    """Return the realised risk and the mean size of each method, by loss, split and level."""
    found = {name: np.empty((len(LOSSES), splits, len(LEVELS), 2)) for name in methods}
    for split in range(splits):
        calibration, test = np.array_split(np.random.default_rng(split).permutation(len(y)), 2)
        given = proba[calibration], y[calibration], proba[test]
        for name, method in methods.items():
            same = None if method.knows_losses else [*method.sweep(LOSSES["coverage"], *given)]
            for curve, loss in zip(found[name], LOSSES.values(), strict=True):
                sets = method.sweep(loss, *given) if same is None else same
                curve[split] = [risk_and_size(mask, y[test], loss) for mask in sets]
    return found


def risk_and_size(mask: np.ndarray, y: np.ndarray, loss: IntervalLoss) -> tuple[float, float]:
    """Return the mean loss of the label in the set that is nearest to the truth, and the mean size."""
    costs = loss.cost_table(mask.shape[1])[y]
    losses = np.where(mask, costs, costs.max(axis=1, keepdims=True)).min(axis=1)
    return losses.mean(), mask.sum(axis=1).mean()


def at_equal_risk(curves: Mapping[str, np.ndarray], alpha: float) -> dict[str, Any]:
    """Return each method's size at the realised risk ``alpha``.

    ``without`` are the logarithms of the sizes without each of the splits, for the jackknife, and ``risks``
    the realised risks where the method is asked for ``alpha``. ``single`` says that single labels have a
    smaller risk: then there is nothing to compare.
    """
    sizes = {method: size_at(curve, alpha) for method, curve in curves.items()}
    without = {
        method: np.log([size_at(np.delete(curve, split, axis=0), alpha) for split in range(len(curve))])
        for method, curve in curves.items()
    }
    means = {method: curve.mean(axis=0)[:, 0] for method, curve in curves.items()}
    risks = {method: float(np.interp(alpha, LEVELS, risk)) for method, risk in means.items()}
    single = bool(means["frontier"].max() <= alpha)
    return {"single": single, "sizes": sizes, "without": without, "risks": risks}


def size_at(curve: np.ndarray, alpha: float) -> float:
    """Return the mean size at the realised risk ``alpha``, between two levels by interpolation.

    ``curve`` has the risk and the size by split and level.
    """
    risk, size = curve.mean(axis=0).T
    return float(np.interp(alpha, np.maximum.accumulate(risk), size))
