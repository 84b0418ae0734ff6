"""Time of the paper's reproduction from saved scores, and what sorting the levels once saves.

Run with ``make bench``. Scores: those in ``docs/scores``, and the paper's ``simulated.csv`` and
``diabetic_retinopathy.csv`` in the folder ``paper_scores`` of the folder that ``ORDINALRISK_DATA`` names.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from ordinalrisk import RiskController, metrics
from reproduction import diabetic_retinopathy, simulated, utkface
from reproduction.protocol import GROWTHS, halves, run_trials
from reproduction.run import reproduce
from reproduction.scores import read_scores
from reproduction.tables import TextTable

SCORES = Path(__file__).parents[1] / "docs" / "scores"
PAPER = Path(os.environ.get("ORDINALRISK_DATA", ".")) / "paper_scores"
FILES = [
    (simulated.EXPERIMENT, PAPER / "simulated.csv"),
    (utkface.EXPERIMENT, SCORES / "utkface.csv.gz"),
    (diabetic_retinopathy.EXPERIMENT, PAPER / "diabetic_retinopathy.csv"),
]
TRIALS = 5


def seconds(job, *args):
    start = time.perf_counter()
    job(*args)
    return time.perf_counter() - start


def by_controllers(experiment, proba, y):
    for trial in range(TRIALS):
        calibration, test = halves(len(y), trial)
        for loss in experiment.scenarios.values():
            for growth in GROWTHS:
                controller = RiskController(loss, growth=growth, check=False)
                controller.calibrate(proba[calibration], y[calibration])
                for alpha in experiment.alphas:
                    sets = controller.predict_set(proba[test], alpha=alpha)
                    metrics.risk(y[test], sets, loss)
                    metrics.mean_size(sets)
                    metrics.class_coverage(y[test], sets)


def sorted_once(experiment, proba, y):
    jobs = run_trials(
        proba, y, experiment.scenarios, growths=GROWTHS, alphas=experiment.alphas, trials=20 * TRIALS
    )
    for _ in jobs:
        pass


def main():
    rows = []
    for experiment, file in FILES:
        if not file.is_file():
            print(f"Without {file.name}: name its folder in ORDINALRISK_DATA.")
            continue
        scores = read_scores(file)
        proba = scores.proba()
        reproduce(experiment, scores, trials=1)  # imports
        whole = seconds(reproduce, experiment, scores)
        one_by_one = seconds(by_controllers, experiment, proba, scores.y)
        ratio = 20 * one_by_one / seconds(sorted_once, experiment, proba, scores.y)
        rows.append((experiment.name, f"{len(scores.y):,}", f"{whole:.1f}", f"{ratio:.1f}"))
    print(TextTable("", ("experiment", "rows", "100 trials, s", "ratio to controllers"), rows).text())


if __name__ == "__main__":
    main()
