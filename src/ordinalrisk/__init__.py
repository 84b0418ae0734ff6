"""Prediction sets for ordinal classification: intervals of labels with a guaranteed expected loss.

The modules at the top are the front door, what users import. Each folder is a room with one noun.
"""

__version__ = "0.1.0"

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordinalrisk import datasets, metrics, plots, probabilities, report, shift
    from ordinalrisk.controller import RiskController
    from ordinalrisk.curves.risk_curve import RiskCurve
    from ordinalrisk.estimator import OrdinalRiskClassifier
    from ordinalrisk.growth.rules import AdaptiveGrowth, FrontierGrowth, PaperGrowth, RankedProbabilityGrowth
    from ordinalrisk.inputs.splitting import split_folds, split_rows
    from ordinalrisk.losses.kinds import CostTableLoss, DivergenceLoss, WeightedLoss
    from ordinalrisk.prediction.interval_set import IntervalSet
    from ordinalrisk.probabilities import softmax
    from ordinalrisk.selection.choose_alpha import alpha_for_singletons, alpha_for_size
    from ordinalrisk.selection.compare import compare, ranked
    from ordinalrisk.selection.coverage_weights import weights_for_coverage
    from ordinalrisk.selection.trade_off import trade_off
    from ordinalrisk.sequential.monitor import RiskMonitor
    from ordinalrisk.sequential.online import OnlineRiskController

_HOME = {
    "AdaptiveGrowth": "growth.rules",
    "CostTableLoss": "losses.kinds",
    "DivergenceLoss": "losses.kinds",
    "FrontierGrowth": "growth.rules",
    "IntervalSet": "prediction.interval_set",
    "OnlineRiskController": "sequential.online",
    "OrdinalRiskClassifier": "estimator",
    "PaperGrowth": "growth.rules",
    "RankedProbabilityGrowth": "growth.rules",
    "RiskController": "controller",
    "RiskCurve": "curves.risk_curve",
    "RiskMonitor": "sequential.monitor",
    "WeightedLoss": "losses.kinds",
    "alpha_for_singletons": "selection.choose_alpha",
    "alpha_for_size": "selection.choose_alpha",
    "compare": "selection.compare",
    "datasets": "",
    "metrics": "",
    "plots": "",
    "probabilities": "",
    "ranked": "selection.compare",
    "report": "",
    "shift": "",
    "softmax": "probabilities",
    "split_folds": "inputs.splitting",
    "split_rows": "inputs.splitting",
    "trade_off": "selection.trade_off",
    "weights_for_coverage": "selection.coverage_weights",
}
__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    """Import public names when first used, so that ``import ordinalrisk`` stays light."""
    if name not in _HOME:
        raise AttributeError(f"module 'ordinalrisk' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"ordinalrisk.{_HOME[name] or name}")
    return getattr(module, name) if _HOME[name] else module


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
