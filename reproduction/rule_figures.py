"""The pictures of the demo: the data, the sizes of the sets, a few intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ordinalrisk.controller import RiskController
from reproduction.figures import data_figure, example_rows, interval_figure, size_figure
from reproduction.protocol import CURVE_ALPHAS, Experiment, TrialMeans, halves, means_over_trials, run_trials
from reproduction.scores import Scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CURVE_TRIALS = 5
_EXAMPLE_ALPHA = 0.1


def demo_pictures(
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    scores: Scores,
    results: Sequence[TrialMeans],
    experiment: Experiment,
    seed: int = 0,
) -> dict[str, Figure]:
    """The data, the sizes of the sets and a few intervals, by the name of the picture.

    Sizes are drawn at more values of alpha than ``results`` has, from fewer trials.
    """
    proba, labels = scores.proba(), scores.y
    curves = means_over_trials(
        run_trials(
            proba,
            labels,
            experiment.scenarios,
            growths=list(dict.fromkeys(result.growth for result in results)),
            alphas=CURVE_ALPHAS,
            trials=min(_CURVE_TRIALS, results[0].trials),
            seed=seed,
        )
    )
    calibration, test = halves(len(labels), seed=seed)
    controller = RiskController(loss="coverage", alpha=_EXAMPLE_ALPHA, check=False)
    controller.calibrate(proba[calibration], labels[calibration])
    examples = test[example_rows(labels[test], controller.predict_set(proba[test]))]
    return {
        "data": data_figure(X, y),
        "sizes": size_figure(curves, results, experiment.meaning),
        "intervals": interval_figure(
            proba[examples],
            labels[examples],
            controller.predict_set(proba[examples]),
            f"On average, at most {_EXAMPLE_ALPHA:.0%} of sets miss",
        ),
    }
