"""Prediction sets for ordinal classification: intervals of labels with a guaranteed expected loss.

The modules at this level and the folders ``jobs``, ``plots`` and ``report`` are public. The other folders are
internal.
"""

__version__ = "0.1.0"

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordinalrisk import datasets, jobs, metrics, plots, probabilities, report, shift, splitting
    from ordinalrisk.calibration.warning_category import CalibrationWarning, TooFewRowsWarning
    from ordinalrisk.controller import RiskController
    from ordinalrisk.curves.risk_curve import RiskCurve
    from ordinalrisk.estimator import OrdinalRiskClassifier
    from ordinalrisk.growth.rules import *  # noqa: F403
    from ordinalrisk.joint_controller import JointController
    from ordinalrisk.losses.kinds import *  # noqa: F403
    from ordinalrisk.prediction.interval_set import IntervalSet
    from ordinalrisk.preparation.recalibrator import Recalibrator
    from ordinalrisk.selection.choose_alpha import alpha_for_singletons, alpha_for_size
    from ordinalrisk.selection.compare import compare
    from ordinalrisk.selection.coverage_weights import weights_for_coverage
    from ordinalrisk.selection.trade_off import trade_off
    from ordinalrisk.sequential.drift import ScoreDrift
    from ordinalrisk.sequential.monitor import RiskMonitor
    from ordinalrisk.sequential.online import OnlineRiskController
    from ordinalrisk.triage.controller import TriageController

_HOME = {
    "CalibrationWarning": "calibration.warning_category",
    "IntervalSet": "prediction.interval_set",
    "JointController": "joint_controller",
    "OnlineRiskController": "sequential.online",
    "OrdinalRiskClassifier": "estimator",
    "Recalibrator": "preparation.recalibrator",
    "RiskController": "controller",
    "RiskCurve": "curves.risk_curve",
    "RiskMonitor": "sequential.monitor",
    "ScoreDrift": "sequential.drift",
    "TooFewRowsWarning": "calibration.warning_category",
    "TriageController": "triage.controller",
    "alpha_for_singletons": "selection.choose_alpha",
    "alpha_for_size": "selection.choose_alpha",
    "compare": "selection.compare",
    "datasets": "",
    "jobs": "",
    "metrics": "",
    "plots": "",
    "probabilities": "",
    "report": "",
    "shift": "",
    "splitting": "",
    "trade_off": "selection.trade_off",
    "weights_for_coverage": "selection.coverage_weights",
}
_FAMILIES = {"Growth": "growth.rules", "Loss": "losses.kinds"}
"""The ending that a family of public names shares, and the module with the family in its ``__all__``."""


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``import ordinalrisk`` stays light."""
    from importlib import import_module

    if name == "__all__":
        listed = (import_module(f"ordinalrisk.{home}").__all__ for home in _FAMILIES.values())
        return [*_HOME, *(each for names in listed for each in names)]
    if name in _HOME:
        module = import_module(f"ordinalrisk.{_HOME[name] or name}")
        return getattr(module, name) if _HOME[name] else module
    for ending, home in _FAMILIES.items():
        if name.endswith(ending) and name in (family := import_module(f"ordinalrisk.{home}")).__all__:
            return getattr(family, name)
    raise AttributeError(f"module 'ordinalrisk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]
