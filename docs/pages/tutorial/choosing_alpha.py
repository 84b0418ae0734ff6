r"""
Choosing alpha
==============

``alpha`` is the largest expected loss you accept. Small values cost labels: a range that
always holds the truth is the whole scale. This page shows the price list, and two ways to
choose from the other end.
"""

import matplotlib.pyplot as plt
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordinalrisk as orisk

answers = sm.datasets.fair.load_pandas().data
rating = answers.pop("rate_marriage").astype(int).to_numpy() - 1
train, held_out = orisk.split_rows(len(answers), share=1 / 3, seed=0)
half, other_half = orisk.split_rows(len(held_out), seed=0)
calibration, later = held_out[half], held_out[other_half]
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(
    answers.iloc[train], rating[train]
)
proba = model.predict_proba(answers.iloc[calibration])
proba_later = model.predict_proba(answers.iloc[later])

# %%
# The price list
# --------------
#
# :func:`~ordinalrisk.trade_off` cross-validates within the calibration rows: no other rows are
# needed to choose. A distance of 1 is one rating here, since ``normalize=False`` keeps the units.

ratings_off = orisk.DivergenceLoss(normalize=False)
prices = orisk.trade_off(
    proba,
    rating[calibration],
    losses={"coverage": "coverage", "ratings off": ratings_off},
    alphas=[0.02, 0.05, 0.1, 0.2, 0.3, 0.4],
)
print(prices)

# %%
# Read a line as: at this ``alpha`` the loss on rows that were left out was ``risk``, a range held
# ``size`` labels, a share ``single`` of the ranges was a single label, and a share ``coverage``
# held the truth.

table = prices.to_pandas()
figure, axes = plt.subplots(figsize=(6.4, 3.4))
for name, line in table.groupby("loss", sort=False):
    axes.plot(line["alpha"], line["mean_size"], marker="o")
    last = line.iloc[2]
    axes.annotate(
        name,
        (last["alpha"], last["mean_size"]),
        xytext=(8, 8),
        textcoords="offset points",
    )
axes.set(
    xlabel="alpha",
    ylabel="labels in a range",
    ylim=(1, 5),
    title="Less risk costs more labels",
)
figure.show()

# %%
# From the other end
# ------------------
#
# Perhaps the ranges must be short to be of use: at most two labels on average. The smallest
# ``alpha`` that gives that is exact, not searched:

controller = orisk.RiskController(ratings_off, alpha=0.2).calibrate(
    proba, rating[calibration]
)
alpha = orisk.alpha_for_size(controller, proba_later, 2)
print(f"two labels on average: alpha = {float(alpha):.3f} ratings")

# %%
# Or half of the cases must be decided, that is have a single label:

alpha = orisk.alpha_for_singletons(controller, proba_later, 0.5)
print(f"half of the cases decided: alpha = {float(alpha):.3f} ratings")

# %%
# One calibration answers every ``alpha``: the risk curve is kept, and another threshold is looked
# up in it.

for alpha in (0.1, 0.2, 0.4):
    sets = controller.predict_set(proba_later, alpha=alpha)
    risk = orisk.metrics.risk(rating[later], sets, ratings_off)
    print(f"alpha {alpha}: {risk:.3f} ratings off, {sets.size.mean():.2f} labels")

# %%
# Two warnings
# ------------
#
# - Choose ``alpha`` for what a miss costs you, before you look at the test rows. If the rows that
#   calibrate also choose among many ``alpha``, the promise is still about each one of them, and
#   no longer about the luckiest.
# - The promise is an average over calibrations. If this very calibration has to be good, add
#   ``delta``: ``RiskController(alpha=0.1, delta=0.05)``; see :doc:`/concepts/further_guarantees`.
#
# Now show the result to others: :doc:`/tutorial/reading_the_report`.
