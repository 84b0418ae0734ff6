"""Rows that are cut into parts, and a search among their steps that is watched."""

import numpy as np

from ordinalrisk import RiskController
from ordinalrisk.calibration.loss_steps import LossSteps
from ordinalrisk.calibration.promises import checked_more_alphas
from ordinalrisk.curves import bracketing
from ordinalrisk.execution.calibrate import finish_remotely, require_totals_suffice
from ordinalrisk.inputs.batch import Batch, merge_all


class WatchedParts:
    """Parts whose answers are merged a few at a time, or all at once, and noted."""

    def __init__(self, parts, at_once=None):
        self.parts, self.at_once = parts, at_once
        self.questions, self.answers = [], []

    def first_look(self):
        return self.ask(bracketing.first_question(max(len(self.parts), 1)))

    def ask(self, question):
        answers = [question(part) for part in self.parts]
        while self.at_once and len(answers) > 1:
            answers = [merge_all(answers[i : i + self.at_once]) for i in range(0, len(answers), self.at_once)]
        found = merge_all(answers)
        self.questions.append(question)
        self.answers.append(found)
        return found

    @property
    def n_rounds(self):
        return len(self.questions)


def cut_up(how, proba, y, cuts, groups=None, point_labels=None, batch=None):
    """The steps of the rows between the cuts, taken in at once or in batches; there may be none."""
    parts = []
    for number, rows in enumerate(np.split(np.arange(len(y)), sorted(cuts))):
        steps = LossSteps(*how)
        for start in range(0, len(rows), batch or max(len(rows), 1)):
            mine = rows[start : start + (batch or len(rows))]
            steps.add(
                Batch(
                    proba[mine],
                    y[mine],
                    None if groups is None else groups[mine],
                    point_labels=None if point_labels is None else point_labels[mine],
                    part=number,
                    first_row=start,
                )
            )
        parts.append(steps.as_part())
    return parts


def calibrate_in_parts(
    controller, proba, y, cuts, *, at_once=None, groups=None, class_ratios=None, more_alphas=(), **how
):
    """The controller, calibrated on rows in parts, and these parts."""
    made_for = controller.spec, np.arange(proba.shape[1]), class_ratios
    watched = WatchedParts(cut_up(made_for, proba, y, cuts, groups, **how), at_once)
    return RiskController.of(controller.spec, finished(watched, *made_for, more_alphas=more_alphas)), watched


def finished(parts, spec, classes, class_ratios=None, *, more_alphas=()):
    """The calibration of parts, after the checks that come before rows are read."""
    empty = LossSteps(spec, classes, class_ratios)
    more = checked_more_alphas(more_alphas, empty.costs, spec.relative)
    require_totals_suffice(empty)
    return finish_remotely(empty, parts, None, more)
