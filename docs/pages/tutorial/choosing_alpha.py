r"""
Choosing alpha
==============

``alpha`` is the largest expected loss you accept. Small values cost labels: a range that
always holds the truth is the whole scale. This page shows the price list, and two ways to
choose from the other end.

There are four parts of the rows now: one trains, one is for choosing, one calibrates what was chosen, and one
plays the women who come later.
"""

import matplotlib.pyplot as plt
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordinalrisk as orisk

answers = sm.datasets.fair.load_pandas().data
rating = answers.pop("rate_marriage").to_numpy(int) - 1
train, choice, calibration, later = orisk.splitting.split_folds(
    len(answers), 4, random_state=0
)
model = make_pipeline(StandardScaler(), LogisticRegression())
model.fit(answers.iloc[train], rating[train])
proba = model.predict_proba(answers)

# %%
# The price list
# --------------
#
# :func:`~ordinalrisk.trade_off` cross-validates within the rows it is given. A distance of 1 is
# one rating here, since ``normalize=False`` keeps the units.

ratings_off = orisk.DivergenceLoss(normalize=False)
prices = orisk.trade_off(
    proba[choice],
    rating[choice],
    losses={"coverage": "coverage", "ratings off": ratings_off},
    alphas=[0.02, 0.05, 0.1, 0.2, 0.3, 0.4],
)
print(prices)

# %%
# Read a line as: at this ``alpha`` the loss on rows that were left out was ``risk``, a range held
# ``size`` labels (with an approximate 95 % interval, ``from`` and ``to``), a share ``single`` of the
# ranges was a single label, and a share ``coverage`` held the truth.

table = prices.to_pandas()
figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for name, line in table.groupby("loss", sort=False):
    (drawn,) = axes.plot(line["alpha"], line["mean_size"], marker="o")
    last = line.iloc[-1]
    axes.text(
        last["alpha"] + 0.01,
        last["mean_size"],
        name,
        color=drawn.get_color(),
        va="center",
    )
axes.set(xlabel="alpha", ylabel="labels in a range", xlim=(0, 0.5), ylim=(1, 5))
axes.set_title("Less risk costs more labels")
figure.show()

# %%
# From the other end
# ------------------
#
# Perhaps the ranges must be short to be of use: at most two labels on average. The smallest
# ``alpha`` that gives that is exact, not from a grid:

trial = orisk.RiskController(ratings_off, alpha=0.2)
trial.calibrate(proba[choice], rating[choice])
alpha = orisk.alpha_for_size(trial, proba[choice], 2)
print(f"two labels on average: alpha = {float(alpha):.3f} ratings")

# %%
# Or half of the cases must be decided, that is have a single label:

alpha = orisk.alpha_for_singletons(trial, proba[choice], 0.5)
print(f"half of the cases decided: alpha = {float(alpha):.3f} ratings")

# %%
# Calibrate what was chosen
# -------------------------
#
# The choice has seen its rows, so others calibrate. One calibration answers every ``alpha``: the
# risk curve is kept, and another threshold is looked up in it.

controller = orisk.RiskController(ratings_off, alpha=0.2)
controller.calibrate(proba[calibration], rating[calibration])
for alpha in (0.1, 0.2, 0.4):
    sets = controller.predict_set(proba[later], alpha=alpha)
    risk = orisk.metrics.risk(rating[later], sets, ratings_off)
    print(f"alpha {alpha}: {risk:.3f} ratings off, {sets.size.mean():.2f} labels")

# %%
# Two warnings
# ------------
#
# - An ``alpha`` that was chosen on the calibration rows has no guarantee: choose on other rows, as above.
# - The promise is an average over calibrations. If this very calibration has to be good, add
#   ``delta``: ``RiskController(alpha=0.1, delta=0.05)``; see :doc:`/concepts/further_guarantees`.
#
# Now show the result to others: :doc:`/tutorial/reading_the_report`.
