r"""
What is promised, and what is not
=================================

You choose a loss and a number ``alpha``. You give some rows with known labels that the model was not trained
on. Then, for a new case :math:`X` with the unknown label :math:`Y`, the interval :math:`C(X)` keeps

.. math:: E[\,L(Y, C(X))\,] \le \alpha

however bad the model is (Theorem 1 of the paper). With the coverage loss this reads: the probability that the
interval misses the truth is at most ``alpha``. One assumption is behind it: the new case is **exchangeable**
with the calibration rows. Had someone shuffled the calibration rows and the new case, nobody could tell which
of them is the new one.

The little :math:`E` is where all misunderstandings live. It is a mean over *two* things at once: over new
cases, and over the calibration rows that happened to be drawn. This page draws them many times, to see what
the mean says and what it leaves open.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import fair

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, INK, MUTED, ORANGE

# %%
# In a survey women rated their marriage from 1, very poor, to 5, very good. A model predicts the rating from
# the other answers. It is trained once, on a third of the rows, which are then put aside.

answers = fair.load_pandas().data
rating = answers.pop("rate_marriage").to_numpy().astype(int)
train, rest = orisk.splitting.split_rows(len(rating), share="1/3", random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression())
model.fit(answers.iloc[train], rating[train])
proba, y = model.predict_proba(answers.iloc[rest]), rating[rest]

# %%
# Now what nobody can do in practice: calibrate again and again, each time on other rows, a tenth of those
# left. The other nine tenths play the new cases, and show the risk that this very calibration has.

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
# The average is the promise, and it holds up to the chance in 200 draws. How often a single
# calibration is above ``alpha`` is what the promise does not speak about.

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
    "The mean keeps to alpha; one calibration, or one class, need not",
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
right.set_yticklabels(["very poor", "2", "3", "4", "very good"])
right.tick_params(axis="y", length=0)

# %%
# Left, each dot is a team that took its own sample, calibrated, and went into production. Their mean is where
# it should be. But each team lives with its own dot, and about half of them are somewhat above ``alpha``.
#
# Right, the same sets by true rating. Unhappy marriages are rare and look like others in the answers, so
# nearly all of the allowed misses fall on them. Nothing is broken: the mean over all women is kept. It is
# merely a mean.
#
# What it does not say
# --------------------
#
# *Not per case.* A case at hand may be a hard one. The interval gets wider where the model is unsure, which
# helps, but no number is promised for it.
#
# *Not per class, and not per group.* The picture shows how far they can differ.
#
# *Not for this very calibration.* It spreads less with more rows, about as one over the square root of their
# number.
#
# *Not after training on the rows.* A model knows the rows it was trained on. Calibrated on them, it looks
# better than it is, and new cases are not exchangeable with them.
#
# *Not for another population.* A new clinic, a new year, a new camera: those cases are not drawn as the
# calibration rows were.
#
# *Not that sets are small.* A bad model keeps its promise with wide intervals. Read the mean size beside the
# risk.
#
# What it does say
# ----------------
#
# It needs no assumption about the model, the distribution or the sample size. It is not a limit for many
# rows either: with 50 rows it holds as it does with 5 million. And it is not far off in the other
# direction: where rows are many, few share a level and single labels would always lose more, the risk is
# nearly ``alpha`` (Theorem 4; :doc:`/design/paper-slips` has the exact statement). A calibrated controller
# says what it promises, with its numbers:

print(controller.guarantee())

# %%
# Most of what the plain promise leaves open can be had for an option and some labels:
# :doc:`/concepts/further_guarantees` is the map. What breaks even the plain one is on
# :doc:`/concepts/when_it_fails`.
