"""Whole jobs over files: calibrate, predict and evaluate, on this machine or on a cluster.

They take paths where :class:`ordinalrisk.RiskController` and :class:`ordinalrisk.TriageController` take
arrays, and read files of any size a few rows at a time. A triage runs on this machine.
"""

from ordinalrisk.files.set_writer import Predicted as Predicted
from ordinalrisk.jobs.calibration_job import calibrate as calibrate
from ordinalrisk.jobs.decision_writer import Decided as Decided
from ordinalrisk.jobs.evaluation_job import FileEvaluation as FileEvaluation
from ordinalrisk.jobs.evaluation_job import JointEvaluation as JointEvaluation
from ordinalrisk.jobs.evaluation_job import evaluate as evaluate
from ordinalrisk.jobs.evaluation_job import evaluate_arrays as evaluate_arrays
from ordinalrisk.jobs.prediction_job import predict as predict
from ordinalrisk.jobs.triage_job import decide as decide
from ordinalrisk.jobs.triage_job import triage as triage

__all__ = [
    "Decided",
    "FileEvaluation",
    "JointEvaluation",
    "Predicted",
    "calibrate",
    "decide",
    "evaluate",
    "evaluate_arrays",
    "predict",
    "triage",
]
