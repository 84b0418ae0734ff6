r"""
What is guaranteed, and what is not
===================================

In one picture
--------------

In a survey, women rated their marriage from 1, very poor, to 5, very good. A model estimates the rating from
the other answers. It is often unsure, so ``ordinalrisk`` returns a **prediction set** for each woman: one or
more neighbouring ratings. You say how often a set may miss the true rating. Here we said: one in ten.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import fair

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, INK, MUTED, ORANGE, SKY

ratings = ["very poor", "2", "3", "4", "very good"]
answers = fair.load_pandas().data
rating = answers.pop("rate_marriage").to_numpy().astype(int)
train, rest = orisk.splitting.split_rows(len(rating), share="1/3", random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression())
model.fit(answers.iloc[train], rating[train])
proba, y = model.predict_proba(answers.iloc[rest]), rating[rest]

calibration, new = orisk.splitting.split_rows(len(y), share="1/10", random_state=0)
controller = orisk.RiskController(
    "coverage", alpha=0.1, classes=[1, 2, 3, 4, 5], check=False
)
controller.calibrate(proba[calibration], y[calibration])

shown = new[:50]
sets, truth = controller.predict_set(proba[shown]), y[shown]
missed = (truth < sets.lower) | (truth > sets.upper)

# %%

# How the picture is drawn
order = np.lexsort((truth, sets.upper, sets.lower, missed))
figure, axes = plt.subplots(figsize=(8.2, 3.2), layout="constrained")
for x, i in enumerate(order):
    ends = [sets.lower[i] - 0.3, sets.upper[i] + 0.3]
    axes.plot([x, x], ends, color=SKY, linewidth=6, solid_capstyle="butt")
    dot = ORANGE if missed[i] else INK
    axes.plot(x, truth[i], "o", color=dot, markersize=8 if missed[i] else 5)
found = len(shown) - missed.sum()
axes.axvspan(found - 0.5, len(shown) - 0.5, color=ORANGE, alpha=0.12, linewidth=0)
axes.text(found / 2, 5.75, "the set contains the truth", ha="center", color=MUTED)
axes.text(
    (found + len(shown)) / 2 - 0.5,
    5.75,
    f"{missed.sum()} misses",
    ha="center",
    color=INK,
)
axes.set_title(
    f"One miss in ten is allowed: here {missed.sum()} of {len(shown)} sets miss"
)
axes.set(xlim=(-1, len(shown)), ylim=(0.5, 6.1), xticks=[])
axes.set_xlabel("one woman in each column: bar = her prediction set, dot = her rating")
axes.set_yticks(range(1, 6), ratings)
axes.tick_params(axis="y", length=0)
axes.spines[:].set_visible(False)

# %%
# Each column is one woman that the model has never seen. The bar is her set and the dot is the rating that
# she gave. Most dots lie in their bar. The orange dots are misses. With other women the number of misses
# changes a little; on average it is at most one in ten.

assert 0 < missed.sum() < 0.2 * len(shown)

# %%
# The formula
# -----------
#
# You choose a **loss** :math:`L`, the cost of a set :math:`C(X)` when the true label is :math:`Y`, and a
# number ``alpha``. You provide **calibration rows**: rows with known labels that the model was not trained
# on. Then, for a new row,
#
# .. math:: E[\,L(Y, C(X))\,] \le \alpha
#
# The coverage loss is 1 for a miss and 0 otherwise. Then the formula says: the probability of a miss is at
# most ``alpha``.
#
# There is one assumption: the new row is **exchangeable** with the calibration rows. This means that every
# order of the calibration rows and the new row is equally likely. Rows that are drawn at random from the same
# population are exchangeable.
#
# The expectation :math:`E` averages over two things: the new row, and the calibration rows that you happened
# to draw.
#
# The proof
# ---------
#
# This is Theorem 1 of the paper. Number the calibration rows :math:`1, \dots, n` and call the new row
# :math:`n + 1`. Let :math:`L_i(\tau)` be the loss of row :math:`i` at the threshold :math:`\tau`. A higher
# threshold removes labels from the sets (:doc:`/concepts/growth`), so :math:`L_i(\tau)` never falls as
# :math:`\tau` rises. It is at most :math:`B`, the largest loss, and 0 for the full scale. Thresholds range
# over :math:`\tau \in [-\infty, \infty]`: at :math:`-\infty` sets are the full scale, at :math:`\infty`
# single labels. The calibration takes the largest safe threshold,
#
# .. math:: \hat\tau = \sup \left\{ \tau : \frac{1}{n + 1} \sum_{i=1}^{n} L_i(\tau) + \frac{B}{n + 1}
#           \le \alpha \right\}.
#
# The term :math:`B / (n + 1)` charges the new row with the largest loss, because its label is unknown. If
# :math:`\alpha < B / (n + 1)`, no threshold is safe. Every set is then the full scale, its loss is 0, and
# there is nothing to prove. Otherwise, compare :math:`\hat\tau` with the threshold that you would take if you
# knew the new label,
#
# .. math:: \tau^* = \sup \left\{ \tau : \frac{1}{n + 1} \sum_{i=1}^{n+1} L_i(\tau) \le \alpha \right\}.
#
# 1. *The calibration is on the safe side.* :math:`L_{n+1}(\tau) \le B`, so every threshold in the set that
#    defines :math:`\hat\tau` is also in the set that defines :math:`\tau^*`. Hence :math:`\hat\tau \le
#    \tau^*`, and :math:`L_{n+1}(\hat\tau) \le L_{n+1}(\tau^*)`.
# 2. *All rows are alike at* :math:`\tau^*`. Reordering the :math:`n + 1` rows does not change :math:`\tau^*`.
#    As the rows are exchangeable, each has the same expected loss at :math:`\tau^*`:
#    :math:`E[L_{n+1}(\tau^*)] = E\big[\frac{1}{n + 1} \sum_{i=1}^{n+1} L_i(\tau^*)\big]`.
# 3. *Their mean is at most alpha.* A set includes the labels *at* the threshold, so the losses are unchanged
#    at a step and rise only above it. The supremum is therefore attained, and the mean in step 2 is at most
#    :math:`\alpha`.
#
# Together, :math:`E[L_{n+1}(\hat\tau)] \le E[L_{n+1}(\tau^*)] \le \alpha`. ∎
#
# The proof uses nothing about the model and nothing about the distribution, and it holds for every :math:`n`.
# :doc:`/concepts/threshold` shows :math:`\hat\tau` in a picture.
#
# A check on real data
# --------------------
#
# In practice you calibrate once. Here we calibrate 200 times, each time on another tenth of the survey rows,
# and measure the risk of each calibration on the other nine tenths.

alpha = 0.1
risks, class_risks = [], []
for seed in range(200):
    calibration, new = orisk.splitting.split_rows(
        len(y), share="1/10", random_state=seed
    )
    controller = orisk.RiskController(
        "coverage", alpha, classes=[1, 2, 3, 4, 5], check=False
    )
    controller.calibrate(proba[calibration], y[calibration])
    sets = controller.predict_set(proba[new])
    risks.append(orisk.metrics.risk(y[new], sets))
    class_risks.append(orisk.metrics.class_risk(y[new], sets))

mean, spread = np.mean(risks), np.std(risks)
above = np.mean(np.array(risks) > alpha)
print(f"{len(risks)} calibrations of {len(calibration)} rows")
print(f"risk: {mean:.3f} on average, spread {spread:.3f}, above alpha in {above:.0%}")

# %%
# The guarantee is about the average of all calibrations, and the average is ``alpha``, within the random
# error of 200 draws. The guarantee does not say how often a single calibration is above ``alpha``.

assert mean <= alpha + 2 * spread / np.sqrt(len(risks))
by_class = np.mean(class_risks, axis=0)
assert by_class[0] > 0.9
assert by_class[-1] < alpha

# %%

# How the picture is drawn
figure, (left, right) = plt.subplots(
    1, 2, width_ratios=[1.5, 1], sharey=False, layout="constrained"
)
figure.suptitle(
    "The mean is alpha; a single calibration or class can be above it",
    x=0.01,
    ha="left",
)
height = np.random.default_rng(0).uniform(-1, 1, len(risks))
left.scatter(risks, height, s=14, color=BLUE, alpha=0.5, linewidths=0)
left.axvline(alpha, color=INK, linestyle="--", linewidth=1.2)
left.plot([mean, mean], [-1.2, 1.2], color=ORANGE, linewidth=3)
left.text(alpha + 0.001, 1.72, "alpha", color=INK, va="center")
left.text(mean - 0.001, -1.5, "mean of all", color=MUTED, ha="right")
left.set(xlabel="risk of one calibration (a dot each)", yticks=[], ylim=(-1.8, 1.9))
left.spines["left"].set_visible(False)

right.barh(
    range(1, 6),
    by_class,
    color=[ORANGE if r > alpha else BLUE for r in by_class],
    height=0.7,
)
for k, r in enumerate(by_class, start=1):
    right.text(max(r, alpha) + 0.03, k, f"{r:.2f}", va="center", color=INK)
right.axvline(alpha, color=INK, linestyle="--", linewidth=1.2)
right.set(
    xlabel="risk by true rating", xlim=(0, 1.25), xticks=[0, 0.5, 1], yticks=range(1, 6)
)
right.set_yticklabels(ratings)
right.tick_params(axis="y", length=0)

# %%
# Left: each dot is one calibration. Their mean is ``alpha``, but about half of them are above it, some
# clearly.
#
# Right: the same sets, by true rating. Unhappy marriages are rare, and the answers of these women look like
# those of the others. So most of the misses fall on them. This does not contradict the guarantee, which is
# about the mean over all women.
#
# What it does not say
# --------------------
#
# - *Nothing about a single row.* A row can be a hard one. Its set is larger if the model is unsure, but there
#   is no guarantee for that row alone.
# - *Nothing about each class or group.* The picture shows how much they can differ.
# - *Nothing about your one calibration*, unless you add ``delta``. The risks of single calibrations spread
#   around the mean. The spread shrinks with more rows, about as one over the square root of their number.
# - *Nothing if you calibrate on the training rows.* The model looks better on rows that it was trained on.
#   New rows are not exchangeable with them.
# - *Nothing about another population.* A new clinic, a new year or a new camera changes the rows.
# - *Nothing about the size of the sets.* A bad model keeps the guarantee with large sets. Always read the
#   mean size together with the risk.
#
# What it does say
# ----------------
#
# The guarantee holds for any model, any distribution and any number of rows, 50 or 5 million. Nor are the
# sets needlessly large. If there are many rows, few of them share a level, and single labels would lose more
# than ``alpha``, then the risk is close to ``alpha`` (Theorem 4; :doc:`/design/paper-slips` has the exact
# statement). A calibrated controller states its guarantee with its numbers:

print(controller.guarantee())

# %%
# If you need more than an average, :doc:`/concepts/further_guarantees` lists the options, and
# :doc:`/maintaining/promises` lists every guarantee with its assumptions, its theorem and its test. To see
# what breaks the guarantee, read :doc:`/concepts/when_it_fails`.
