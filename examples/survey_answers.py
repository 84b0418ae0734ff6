"""Survey answers: from a table of answers to intervals of ratings.

6,366 women rated their marriage from 1 (very poor) to 5 (very good) and answered eight other questions (Fair
1978; the data come with statsmodels). An ordered logit predicts the rating from the other answers, and
its probabilities become intervals. A miss costs its distance in ratings: on average at most 0.2 of one.

    python examples/survey_answers.py [FOLDER]        needs pip install ".[report,plots]" statsmodels
"""

import sys
from pathlib import Path

import numpy as np
import statsmodels.api as sm
from statsmodels.miscmodels.ordinal_model import OrderedModel

import ordinalrisk as orisk
from ordinalrisk.report import write_report

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "survey")
folder.mkdir(parents=True, exist_ok=True)

# A third of the answers trains the model, a third calibrates, a third tests.
answers = sm.datasets.fair.load_pandas().data
rating = answers.pop("rate_marriage").astype(int)
part = np.random.default_rng(0).permutation(len(answers)) % 3
train, calibration, test = (part == k for k in range(3))

standardized = (answers - answers[train].mean()) / answers[train].std()
model = OrderedModel(rating[train], standardized[train], distr="logit").fit(
    method="bfgs", disp=False
)


def probabilities(rows):
    """P(rating = 1), .., P(rating = 5) of each row."""
    return np.asarray(model.predict(standardized[rows]))


# Distances in ratings, not divided by the largest: alpha = 0.2 reads "a fifth of a rating".
controller = orisk.RiskController(
    loss=orisk.DivergenceLoss(normalize=False), alpha=0.2, classes=[1, 2, 3, 4, 5]
)
controller.calibrate(probabilities(calibration), rating[calibration])
sets = controller.predict_set(probabilities(test))

print(controller.guarantee())
print(sets[:5])
risk = orisk.metrics.risk(rating[test], sets, loss=controller.loss, confidence=0.95)
print(
    f"On {len(sets):,} other women: off by {risk} ratings on average, {sets.size.mean():.2f} labels in a set."
)

# What an average hides: the low ratings are rare, and covered less often.
coverage = orisk.metrics.class_coverage(rating[test], sets)
print(
    "Coverage by rating:",
    ", ".join(
        f"{label}: {share:.2f}"
        for label, share in zip(range(1, 6), coverage, strict=True)
    ),
)

axes = orisk.plots.plot_class_coverage(rating[test], sets)
axes.figure.savefig(folder / "class_coverage.png", bbox_inches="tight")
controller.save(folder / "cal.json")
write_report(
    controller,
    probabilities(test),
    rating[test],
    folder / "report.html",
    cases={
        "row": answers.index[test],
        "age": answers["age"][test],
        "children": answers["children"][test],
    },
)
print(f"Wrote cal.json, class_coverage.png, report.html and report.json to {folder}")
