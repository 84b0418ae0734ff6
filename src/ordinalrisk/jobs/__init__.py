"""Whole jobs over files: calibrate, predict and evaluate, on this machine or on a cluster.

They take paths where :class:`ordinalrisk.RiskController` takes arrays, and read files of any size a few rows
at a time.
"""

from ordinalrisk.files.set_writer import Predicted as Predicted
from ordinalrisk.jobs.calibration_job import calibrate as calibrate
from ordinalrisk.jobs.evaluation_job import FileEvaluation as FileEvaluation
from ordinalrisk.jobs.evaluation_job import JointEvaluation as JointEvaluation
from ordinalrisk.jobs.evaluation_job import evaluate as evaluate
from ordinalrisk.jobs.prediction_job import predict as predict

__all__ = ["FileEvaluation", "JointEvaluation", "Predicted", "calibrate", "evaluate", "predict"]
