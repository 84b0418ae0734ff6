"""A few held-out images of an experiment, with their labels and intervals."""

from __future__ import annotations

import numpy as np

from ordinalrisk.controller import RiskController
from reproduction.experiment_figures import Examples
from reproduction.images import ImageData
from reproduction.protocol import halves
from reproduction.run import Reproduction

ALPHA = 0.1
_EXAMPLES = 6


def held_out_examples(reproduction: Reproduction, data: ImageData) -> Examples:
    """Images of the test half, from classes spread over the scale, and their intervals at ``ALPHA``.

    The intervals are those of plain coverage, the growth rule that the experiment ends with, and softmax.
    """
    experiment, scores = reproduction.experiment, reproduction.scores
    calibration, test = halves(len(scores.y), seed=reproduction.seed)
    proba = scores.proba()
    controller = RiskController(
        alpha=ALPHA, growth=reproduction.growths[-1], classes=experiment.classes, check=False
    )
    controller.calibrate(proba[calibration], np.array(experiment.classes)[scores.y[calibration]])
    position = {name: row for row, name in enumerate(data.names)}
    shown = [row for row in test.tolist() if scores.names[row] in position]
    present = sorted({int(scores.y[row]) for row in shown})
    spread = np.unique(np.linspace(0, len(present) - 1, _EXAMPLES).round().astype(int))
    rows = [next(row for row in shown if scores.y[row] == present[k]) for k in spread]
    sets = controller.predict_set(proba[rows])
    truths = [experiment.classes[scores.y[row]] for row in rows]
    where = [position[scores.names[row]] for row in rows]
    return Examples(
        images=data.images[where],
        captions=[
            "" if data.captions[i] == truth else data.captions[i]
            for i, truth in zip(where, truths, strict=True)
        ],
        truths=[f"class {scores.y[row]}: {truth}" for row, truth in zip(rows, truths, strict=True)],
        intervals=[low if low == high else f"{low} .. {high}" for low, high in sets],
        note=f"coverage loss, alpha = {ALPHA}, {controller.growth.name} rule, softmax",
        missed=[not covered for covered in sets.contains(truths).tolist()],
    )
