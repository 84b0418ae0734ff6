"""Rows that are cut into parts, and a search among their steps that is watched."""

import numpy as np

from ordinalrisk import RiskController
from ordinalrisk.calibration.accumulate import RowExtras
from ordinalrisk.execution import bracketing
from ordinalrisk.execution.calibrating_parts import PartsCalibrator
from ordinalrisk.execution.part_steps import FirstLook

SMALL = {"KEPT_WHOLE": 20, "SAMPLED": 30, "SAMPLED_OF_STRATUM": 8, "MOST_SENT": 15}
"""So few steps that a search among some hundreds takes every branch."""


def make_small(patch, **sizes):
    """Let the search treat few steps as it treats many."""
    for name, size in {**SMALL, **sizes}.items():
        patch.setattr(bracketing, name, size)


class WatchedParts:
    """Parts whose answers are merged a few at a time, or all at once, and noted."""

    def __init__(self, parts, at_once=None):
        self.parts, self.at_once = parts, at_once
        self.questions, self.answers = [], []

    def first_look(self):
        return self.ask(bracketing.first_question(max(len(self.parts), 1)), FirstLook.merged)

    def ask(self, question, merged):
        answers = [question(part) for part in self.parts]
        while self.at_once and len(answers) > 1:
            answers = [merged(answers[i : i + self.at_once]) for i in range(0, len(answers), self.at_once)]
        found = answers[0] if self.at_once and answers else merged(answers)
        self.questions.append(question)
        self.answers.append(found)
        return found

    @property
    def n_rounds(self):
        return len(self.questions)


def cut_up(calibrator, proba, y, cuts, groups=None, point_labels=None, batch=None):
    """The steps of the rows between the cuts, taken in at once or in batches; there may be none."""
    parts = []
    for rows in np.split(np.arange(len(y)), sorted(cuts)):
        collector = calibrator.collector()
        for start in range(0, len(rows), batch or max(len(rows), 1)):
            mine = rows[start : start + (batch or len(rows))]
            extras = RowExtras(
                None if groups is None else groups[mine],
                point_labels=None if point_labels is None else point_labels[mine],
            )
            collector.add(proba[mine], y[mine], extras)
        parts.append(collector.finish())
    return parts


def calibrate_in_parts(
    controller, proba, y, cuts, *, at_once=None, groups=None, class_weight=None, more_alphas=(), **how
):
    """The controller, calibrated on rows in parts, and these parts."""
    calibrator = PartsCalibrator(
        controller.spec, np.arange(proba.shape[1]), groups is not None, class_weight, more_alphas
    )
    watched = WatchedParts(cut_up(calibrator, proba, y, cuts, groups, **how), at_once)
    return RiskController.of(controller.spec, calibrator.finish(watched)), watched
