r"""
The risk curve and the exact threshold
======================================

Each label of a row has a level (:doc:`/concepts/growth`), and a label is in the set if its level is at
least the threshold :math:`\tau`. The calibration rows determine the threshold. If you raise it, labels
leave the sets, so the loss of each row can only rise, in steps. The total loss of all rows, :math:`\sum_i
L_i(\tau)`, is then also a step function, the **risk curve**. The threshold is the largest one with a total
loss within the budget:

.. math:: \hat\tau = \sup \{ \tau : \sum_{i=1}^n L_i(\tau) \le (n + 1)\,\alpha - B \}

where :math:`B` is the largest loss that a row can have. The budget is the loss that :math:`n + 1` rows may
have in total, minus the largest loss, which is reserved for the new row. (The paper writes an infimum in
Section 2.2, because there the sets grow with the parameter. Here they shrink, as in its Eq. 7 and 11.)
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, INK, MUTED, ORANGE

# %%
# Here are forty photographs of retinas, with the probabilities of a network for five grades. With so few rows
# you can see every step.

scores = pd.read_csv("../../scores/retinamnist.csv.gz")
proba = orisk.probabilities.softmax(scores.filter(like="logit").to_numpy())
y = scores["label"].to_numpy()
controller = orisk.RiskController("coverage", alpha=0.2).calibrate(proba[:40], y[:40])

curve, tau = controller.risk_curve_, controller.threshold_
budget = (40 + 1) * 0.2 - 1
total = int(curve.total_loss(tau))
print(f"budget {budget:.1f}, threshold {tau:.4f}, total loss there {total}")

# %%

# How the picture is drawn
figure, axes = plt.subplots(figsize=(7.2, 3.9), layout="constrained")
totals = np.concatenate([[0], curve.totals])
axes.stairs(totals, [0, *curve.levels, 0.27], color=BLUE, linewidth=2, baseline=None)
axes.plot(curve.levels, totals[:-1], "o", color=BLUE, markersize=5)
axes.axhline(budget, color=ORANGE, linewidth=1.6, linestyle="--")
axes.plot([tau, tau], [-1, total], color=INK, linewidth=1.2, linestyle=":")
axes.plot(tau, total, "o", color=INK, markersize=9, zorder=4)
axes.text(0.268, budget + 0.3, "budget (n + 1) alpha - B", ha="right", color=INK)
axes.text(
    tau + 0.003,
    2.5,
    "the threshold: the last point\nof the curve within the budget",
    color=INK,
)
axes.text(0.235, totals[-1], "single labels", ha="right", va="center", color=MUTED)
axes.text(0.028, 0, "all labels", va="center", color=MUTED)
axes.set(
    title="Each miss adds a step; the threshold is the last point within the budget"
)
axes.set(
    xlabel="threshold: higher means smaller sets", ylabel="calibration rows missed"
)
_ = axes.set(xlim=(0, 0.27), ylim=(-0.8, 19.5), yticks=range(0, 20, 3))

# %%
# Each dot is the level of a true label. *At* this level the label is still in the set. Just above it the
# label is out, and the total is one higher. So the supremum is attained: the threshold is one of the levels.

assert tau in curve.levels
assert curve.total_loss(tau) <= budget < curve.total_loss(np.nextafter(tau, 1))

# %%
# With a distance loss, a row has several steps, one for each label between its point label and its true
# label. With weights, the steps have different heights. Everything else is the same.
#
# Why there is no grid
# --------------------
#
# The total does not change between two levels, so only the levels need to be tried. Sorting and adding them
# gives the exact answer. A grid, or a bisection with a tolerance, stops *near* it. On one side the sets are
# larger than needed. On the other side the inequality does not hold, and neither does the guarantee. (The
# search of the paper's Algorithm 2 can end on either side.) The comparison is exact too: ``alpha=0.2`` means
# 1/5, and totals are compared as rational numbers.
#
# Ties
# ----
#
# Labels with the same level leave the sets together. If many rows share a level, the curve has a tall step
# there, and can jump from far below the budget to far above it. The guarantee still holds, but the sets are
# larger than they need to be. To see this, round the probabilities to tenths:

coarse = np.round(proba, 1)
missing = 1 - coarse.sum(axis=1)  # make rows sum to 1 again
coarse[np.arange(len(y)), proba.argmax(axis=1)] += missing
for name, scored in (("as they are", proba), ("in tenths", coarse)):
    other = orisk.RiskController("coverage", alpha=0.2).calibrate(scored, y)
    tied, risk = other.risk_curve_.most_tied, other.risk_curve_.risk(other.threshold_)
    print(f"{name:11}  at most {tied:2} rows step at one level, risk {risk:.3f}")

# %%
# Theorem 4 of the paper limits how much risk is lost. Suppose that at most :math:`M` of :math:`n + 1`
# exchangeable rows ever have a step at the same level, and that the single labels of these rows always lose
# more than :math:`(n + 1)\,\alpha - B` in total. Then the expected loss is at least :math:`\alpha - (M + 1) B
# / (n + 1)`. Both conditions are about all rows that could be drawn, so the numbers above do not prove them
# (:doc:`/design/paper-slips` has the proof). To use the lost risk, pass ``randomize=True``: sets then break
# ties at random, see :doc:`/concepts/further_guarantees`.
#
# One calibration for every alpha
# -------------------------------
#
# The curve does not depend on ``alpha``; only the budget does. (With ``pool_classes=True`` it is different:
# which classes share a curve depends on ``alpha``.) So a calibrated controller, also one that you saved and
# loaded, can use any other ``alpha``: ``predict_set(proba, alpha=0.1)``, ``guarantee(alpha=0.1)``.
#
# There are two extremes. If ``alpha`` is below :math:`B / (n + 1)`, the budget is negative, and even
# calibration rows without any loss are not enough evidence. Every set is then the full scale, and a warning
# says how many rows you need. If ``alpha`` is so large that every step fits the budget, sets are single
# labels, and a larger ``alpha`` changes nothing. The guarantee is the same as always: the risk is at most
# ``alpha`` on average over calibrations, and for one calibration it can be above.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for alpha in (0.02, 0.05, 0.1, 0.2, 0.4, 0.6):
        sets = controller.predict_set(proba[40:], alpha=alpha)
        at = controller.threshold_at(alpha)
        size = orisk.metrics.mean_size(sets)
        print(f"alpha {alpha:<4}  threshold {at:7.4f}  {size:.2f} labels on average")

print(caught[0].message)

assert controller.threshold_at(0.02) == -np.inf
assert controller.threshold_at(0.6) == np.inf
