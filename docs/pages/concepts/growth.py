r"""
How a set grows
===============

The set of a row starts at one label, the **point label**, and grows. Each label :math:`j` has a number, its
**level** :math:`e_j`, and labels join in the order of their levels. The point label has an infinite level.
Going outwards from it, levels never rise. The set at the threshold :math:`\tau` contains every label with a
level of at least :math:`\tau`:

.. math:: C_\tau(x) = \{ j : e_j(x) \ge \tau \}

If you lower the threshold, labels join one after the other until the set is the full scale. So the set is
always an interval, always contains the point label, and grows as the threshold falls. These are the
conditions C1, C2 and C3 of the paper.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.animation import FuncAnimation

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, FAINT, GREY, MUTED, ORANGE

# %%
# A network graded photographs of retinas, from no diabetic retinopathy to proliferative retinopathy. The
# network is unsure about this photograph.

grades = ["none", "mild", "moderate", "severe", "proliferative"]
scores = pd.read_csv("../../scores/retinamnist.csv.gz")
proba = orisk.probabilities.softmax(scores.filter(like="logit").to_numpy())
y = np.array(grades)[scores["label"]]
case = proba[[56]]
levels = orisk.FrontierGrowth().levels(case, loss="coverage")[0]
print(pd.DataFrame({"probability": case[0], "level": levels}, index=grades).round(3))

# %%
# With the coverage loss, adding a label lowers the risk by the probability of this label. So the level of
# most labels is their probability. The left end is different: *none* is more probable than *mild*, but a set
# cannot skip *mild*. So the two labels join together, and the level of both is their mean probability. This
# is how ``frontier`` works, the default rule. :doc:`/concepts/frontier` shows in what sense no other rule
# gives smaller sets.

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
# Grey bars are the probabilities of the model, blue lines are the levels, and orange bars are the set after
# each step. Two of the five labels join together, so there are four steps instead of five.

assert levels[0] == levels[1]
assert len(steps) == 4

# %%
# The same as an animation. Start it, or use the buttons to go step by step.

# How the picture is drawn
film, stage = plt.subplots(figsize=(5.6, 2.8), dpi=80, layout="constrained")
bars = stage.bar(range(5), case[0], width=0.62)
[line] = stage.plot([-0.5, 4.5], [0, 0], color=ORANGE, linewidth=2)
stage.set(ylabel="probability", xlim=(-0.5, 4.5), ylim=(0, 0.5), yticks=[0, 0.2, 0.4])
stage.set_xticks(range(5), grades)
thresholds = np.linspace(0.48, 0.04, 12)


def draw(tau):
    """Draw the set at one threshold."""
    for bar, level in zip(bars, levels, strict=True):
        bar.set_color(BLUE if level >= tau else FAINT)
    line.set_ydata([tau, tau])
    stage.set_title(f"threshold {tau:.2f}: {np.sum(levels >= tau)} of 5 labels")


animation = FuncAnimation(film, draw, frames=thresholds, interval=500)
film.canvas.draw()

# %%
# One threshold for all rows
# --------------------------
#
# The levels of all rows are on the same scale. So a single threshold, found on the calibration rows, works
# for every row: :doc:`/concepts/threshold`. If the model is sure about a row, all levels except that of the
# point label are low, and the set has few labels. If the model is unsure, several levels are high, and the
# set has more labels.

controller = orisk.RiskController(alpha=0.1, classes=grades)
controller.calibrate(proba[100:], y[100:])
print(f"threshold {controller.threshold_:.3f}")
print(controller.predict_set(proba[54:58]))

# %%
# Four rules
# ----------
#
# A growth rule computes the levels. It uses the probabilities and the loss, and never ``alpha``.
#
# .. list-table::
#    :header-rows: 1
#    :widths: 16 84
#
#    * - rule
#      - the level of a label
#    * - ``"frontier"``
#      - the risk that the block of labels removes, divided by its number of labels; a block joins at once. If
#        the probabilities are accurate, then at each risk that the rule attains no other intervals that
#        contain the point label have a smaller expected size
#    * - ``"adaptive"``
#      - the model's estimate of the risk of the set before the label joins, in the order of ``"frontier"``.
#        The risk varies less from row to row. With accurate probabilities it is the oracle of the paper among
#        the intervals that contain the point label: for even distances (Eq. 10), and for weights if the
#        weighted scores fall to both sides (Eq. 6). This requires that no two labels of the row have the same
#        level under ``frontier``, and that the threshold is not itself a level (both equations have
#        :math:`\le`)
#    * - ``"paper"``
#      - the level of the paper: of the two neighbours, the one that removes more risk joins first
#        (Algorithms 1 and 3). On a tie the right one joins first with a weighted loss, the left one with
#        any other loss
#    * - ``"rps"``
#      - minus the ranked probability score of the label; sets grow around the median
#
# All four rules keep the guarantee. They differ in the number of labels, and :func:`~ordinalrisk.compare`
# measures it on your rows:

losses = {"weighted": orisk.WeightedLoss([1, 2, 3, 4, 5])}
for found in orisk.compare(proba, y, losses=losses, alphas=[0.05], classes=grades):
    print(f"{found.growth:9} {found.mean_size.value:.2f} labels, risk {found.risk:.3f}")

# %%
# With weights, the rule of the paper needs more labels: its levels compare a weighted sum with 1, even where
# all weights nearby are small. ``frontier`` and ``adaptive`` are close here. This network had few images to
# learn from, and ``frontier`` is smallest only if the probabilities are accurate.
