r"""
The risk curve and the exact threshold
======================================

Every case has levels (:doc:`/concepts/growth`). One threshold :math:`\tau` cuts them all, and the calibration
rows say where. Raise it, and labels drop out of the sets, so the loss of each row can only go up, in steps.
The total over all rows, :math:`\sum_i L_i(\tau)`, is a staircase too: the **risk curve**. The threshold is
the largest one whose total fits the budget,

.. math:: \hat\tau = \sup \{ \tau : \sum_{i=1}^n L_i(\tau) \le (n + 1)\,\alpha - B \}

where :math:`B` is the worst loss that a row can have. The budget reads: take what :math:`n + 1` cases may
cost altogether, and keep back the worst for the one that is still to come. (In the paper, Section 2.2, it is
an infimum: there the sets grow with the parameter. Here they shrink, as those of its Eq. 7 and 11 do.)
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, INK, MUTED, ORANGE

# %%
# Forty photographs of retinas with a network's probabilities for five grades: few enough to see every step.

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
axes.set(title="The curve has a step for every miss; one of them is the threshold")
axes.set(
    xlabel="threshold: higher means smaller sets", ylabel="calibration rows missed"
)
_ = axes.set(xlim=(0, 0.27), ylim=(-0.8, 19.5), yticks=range(0, 20, 3))

# %%
# Dots are levels of true labels. *At* such a level the label is still in, just above it the label is out and
# the total one higher. So the supremum is attained: the threshold is itself one of the levels.

assert tau in curve.levels
assert curve.total_loss(tau) <= budget < curve.total_loss(np.nextafter(tau, 1))

# %%
# Under a distance loss a row has several steps, one for each label between its point label and its true one,
# and under weights steps have different heights. Nothing else changes.
#
# Why there is no grid
# --------------------
#
# Nothing happens between two levels, so the levels are the only thresholds worth trying. Sorting them and
# adding up finds the answer for good. A grid or a bisection with a tolerance stops *near* it: on the safe
# side sets are larger than they need be, on the other side the inequality is broken and with it the promise.
# (The search of the paper's Algorithm 2 can end on either.) Even the comparison is exact: ``alpha=0.2`` means
# 1/5, and totals are compared as rational numbers.
#
# Ties
# ----
#
# Labels with the same level stay or go together. If many rows share one, the curve has a tall step there, and
# may jump from far below the budget to far above. The promise holds, but risk is given away. Rounding the
# probabilities to tenths shows it:

coarse = np.round(proba, 1)
missing = 1 - coarse.sum(axis=1)  # rows shall add up to 1 again
coarse[np.arange(len(y)), proba.argmax(axis=1)] += missing
for name, scored in (("as they are", proba), ("in tenths", coarse)):
    other = orisk.RiskController("coverage", alpha=0.2).calibrate(scored, y)
    tied, risk = other.risk_curve_.most_tied, other.risk_curve_.risk(other.threshold_)
    print(f"{name:11}  at most {tied:2} rows step at one level, risk {risk:.3f}")

# %%
# Theorem 4 of the paper puts a number on it. If at most :math:`M` of :math:`n + 1` exchangeable rows ever
# step at one level, and the single labels of these rows always lose more than :math:`(n + 1)\,\alpha - B` in
# total, then the expected loss is at least :math:`\alpha - (M + 1) B / (n + 1)`. Both conditions are about
# all rows that could be drawn, so the numbers above don't prove them: the bound is a statement about the
# method (:doc:`/design/paper-slips` has the proof). A coin gets the rest back: ``randomize=True``, see
# :doc:`/concepts/further_guarantees`.
#
# One calibration answers every alpha
# -----------------------------------
#
# The curve doesn't depend on ``alpha``; only the height of the budget does. So a calibrated controller, also
# one that was saved and loaded, answers for any other risk at once: ``predict_set(proba, alpha=0.1)``,
# ``guarantee(alpha=0.1)``.
#
# Both ends are worth knowing. With ``alpha`` below :math:`B / (n + 1)` the budget is negative: even no loss
# at all would not be enough evidence. Then every set is the full scale, and a warning says how many rows it
# takes. At the other end every step fits the budget. Then sets are single labels, and the risk stays below
# ``alpha`` because there is nothing smaller to give.

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
