r"""
How an interval grows
=====================

The interval of a case starts at one label and grows. What decides the order is a number for each label, its
**level** :math:`e_j`. The point label has an infinite one, and outwards levels never rise. The interval at
the threshold :math:`\tau` holds every label whose level is at least that:

.. math:: C_\tau(x) = \{ j : e_j(x) \ge \tau \}

Lower the threshold and labels join, one after the other, until all are in. So whatever the model says, the
set is an interval, holds the point label, and only ever grows: conditions C1, C2 and C3 of the paper.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.animation import FuncAnimation

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, FAINT, GREY, MUTED, ORANGE

# %%
# A network graded photographs of retinas from no diabetic retinopathy to a proliferative one. Here is one
# that it finds hard.

grades = ["none", "mild", "moderate", "severe", "proliferative"]
scores = pd.read_csv("../../scores/retinamnist.csv.gz")
proba = orisk.probabilities.softmax(scores.filter(like="logit").to_numpy())
y = np.array(grades)[scores["label"]]
case = proba[[56]]
levels = orisk.FrontierGrowth().levels(case, loss="coverage")[0]
print(pd.DataFrame({"probability": case[0], "level": levels}, index=grades).round(3))

# %%
# Under the coverage loss a label removes its own probability from the risk, so most levels are just that.
# Look at the left end: *none* is worth more than *mild*, which stands in its way. An interval can't skip
# *mild*, so the two join together, at the mean of what they bring. That is the whole trick of ``frontier``,
# the default rule; :doc:`/concepts/frontier` proves in which sense nothing is smaller.

steps = np.unique(levels)[::-1]  # from the point label alone to the full scale

# %%

# How the picture is drawn
figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
axes.bar(range(5), case[0], width=0.62, color=FAINT, edgecolor=GREY)
for j, level in enumerate(levels):
    if np.isfinite(level):
        axes.plot([j - 0.31, j + 0.31], [level, level], color=BLUE, linewidth=3)
        axes.text(j + 0.34, level, f"{level:.3f}", color=BLUE, va="center", fontsize=9)
point = np.argmax(levels)
axes.text(
    point,
    case[0, point] + 0.01,
    "point label,\nlevel infinite",
    ha="center",
    color=BLUE,
)
for k, tau in enumerate(steps):
    inside, height = np.flatnonzero(levels >= tau), -0.11 - 0.055 * k
    ends = inside[[0, -1]] + [-0.31, 0.31]
    axes.plot(ends, [height, height], color=ORANGE, linewidth=9, solid_capstyle="butt")
    said = "at first" if np.isinf(tau) else f"at {tau:.3f}"
    axes.text(4.45, height, said, va="center", color=MUTED, fontsize=9)
for j, grade in enumerate(grades):
    axes.text(j, -0.015, grade, ha="center", va="top", color=MUTED)
axes.axhline(0, color=GREY, linewidth=0.8)
axes.set(
    title="As the threshold falls, labels join in the order of their levels",
    ylabel="probability",
)
axes.set(xlim=(-0.5, 5.1), ylim=(-0.33, 0.53), xticks=[], yticks=[0, 0.2, 0.4])
axes.spines["bottom"].set_visible(False)

# %%
# Grey bars are the model's probabilities, blue lines the levels, orange bars the interval after each step.
# Five labels could take five steps; here two join at once, and it takes four.

assert levels[0] == levels[1]
assert len(steps) == 4

# %%
# The same as a film: start it, or step through it with the buttons.

# How the picture is drawn
film, stage = plt.subplots(figsize=(5.6, 2.8), dpi=80, layout="constrained")
bars = stage.bar(range(5), case[0], width=0.62)
[line] = stage.plot([-0.5, 4.5], [0, 0], color=ORANGE, linewidth=2)
stage.set(ylabel="probability", xlim=(-0.5, 4.5), ylim=(0, 0.5), yticks=[0, 0.2, 0.4])
stage.set_xticks(range(5), grades)
thresholds = np.linspace(0.48, 0.04, 12)


def draw(tau):
    """The interval at one threshold."""
    for bar, level in zip(bars, levels, strict=True):
        bar.set_color(BLUE if level >= tau else FAINT)
    line.set_ydata([tau, tau])
    stage.set_title(f"threshold {tau:.2f}: {np.sum(levels >= tau)} of 5 labels")


animation = FuncAnimation(film, draw, frames=thresholds, interval=500)
film.canvas.draw()

# %%
# One threshold for all cases
# ---------------------------
#
# Levels of different cases are on one scale. So one number, found once on the calibration rows, cuts all of
# them: :doc:`/concepts/threshold`. A case that is clear to the model has low levels everywhere but at its
# point label, and keeps few labels. An unclear one has several high levels, and keeps more.

controller = orisk.RiskController(alpha=0.1, classes=grades)
controller.calibrate(proba[100:], y[100:])
print(f"threshold {controller.threshold_:.3f}")
print(controller.predict_set(proba[54:58]))

# %%
# Four rules
# ----------
#
# A growth rule is nothing but a way to give levels. It sees the probabilities and the loss, never ``alpha``.
#
# .. list-table::
#    :header-rows: 1
#    :widths: 16 84
#
#    * - rule
#      - the level of a label
#    * - ``"frontier"``
#      - the risk that it removes, averaged over the labels that join with it. If the probabilities are right,
#        sets have the smallest expected size of all intervals that hold the point label, at the risks that
#        the rule attains
#    * - ``"adaptive"``
#      - the model's own risk of the interval before it joins, in the same order: the risk of single cases is
#        more even (the paper's oracle, Section 2.3.1 and Eq. 10)
#    * - ``"paper"``
#      - the paper's, with the neighbour that removes more joining first (Algorithms 1 and 3). On a tie the
#        right one joins under a weighted loss, the left one under any other
#    * - ``"rps"``
#      - minus its ranked probability score, around the median
#
# All four keep the promise. They differ in how many labels it takes, and :func:`~ordinalrisk.compare` tells
# it for your rows:

losses = {"weighted": orisk.WeightedLoss([1, 2, 3, 4, 5])}
for found in orisk.compare(proba, y, losses=losses, alphas=[0.05], classes=grades):
    print(f"{found.growth:9} {found.mean_size.value:.2f} labels, risk {found.risk:.3f}")

# %%
# The paper's rule pays for weights, because its levels compare a weighted sum with 1 even where all weights
# in sight are small. ``frontier`` and ``adaptive`` are close here: this network had few images to learn from,
# and being smallest is proved for right probabilities only.
