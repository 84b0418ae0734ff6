"""Prediction intervals for ordinal classifiers whose expected loss is guaranteed."""

__version__ = "0.1.0"

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordinalrisk import datasets, metrics, plots, probabilities, report, shift
    from ordinalrisk.choosing import alpha_for_singletons, alpha_for_size
    from ordinalrisk.comparing import compare, ranked
    from ordinalrisk.controller import RiskController
    from ordinalrisk.coverage_weights import weights_for_coverage
    from ordinalrisk.estimator import OrdinalRiskClassifier
    from ordinalrisk.growth import AdaptiveGrowth, FrontierGrowth, PaperGrowth, RankedProbabilityGrowth
    from ordinalrisk.intervals import IntervalSet
    from ordinalrisk.losses import CostTableLoss, DivergenceLoss, WeightedLoss
    from ordinalrisk.monitoring import RiskMonitor
    from ordinalrisk.online import OnlineRiskController
    from ordinalrisk.probabilities import softmax
    from ordinalrisk.risk_curve import RiskCurve
    from ordinalrisk.splitting import split_folds, split_rows
    from ordinalrisk.trading_off import trade_off

_HOME = {
    "AdaptiveGrowth": "growth",
    "CostTableLoss": "losses",
    "DivergenceLoss": "losses",
    "FrontierGrowth": "growth",
    "IntervalSet": "intervals",
    "OnlineRiskController": "online",
    "OrdinalRiskClassifier": "estimator",
    "PaperGrowth": "growth",
    "RankedProbabilityGrowth": "growth",
    "RiskController": "controller",
    "RiskCurve": "risk_curve",
    "RiskMonitor": "monitoring",
    "WeightedLoss": "losses",
    "alpha_for_singletons": "choosing",
    "alpha_for_size": "choosing",
    "compare": "comparing",
    "datasets": "",
    "metrics": "",
    "plots": "",
    "probabilities": "",
    "ranked": "comparing",
    "report": "",
    "shift": "",
    "softmax": "probabilities",
    "split_folds": "splitting",
    "split_rows": "splitting",
    "trade_off": "trading_off",
    "weights_for_coverage": "coverage_weights",
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
