r"""
Choosing alpha
==============

``alpha`` is the largest expected loss that you accept. A smaller ``alpha`` needs more labels, up to the
full scale. This page shows how many labels each ``alpha`` costs. It also shows two ways to start from the
sets you need and find ``alpha``.

We split the rows into four parts: one trains, one is for choosing, one calibrates, and one plays the role
of new rows.
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
# What each alpha costs
# ---------------------
#
# :func:`~ordinalrisk.trade_off` cross-validates on the rows that you pass. ``normalize=False`` keeps the
# units, so a distance of 1 is one rating.

ratings_off = orisk.DivergenceLoss(normalize=False)
prices = orisk.trade_off(
    proba[choice],
    rating[choice],
    losses={"coverage": "coverage", "ratings off": ratings_off},
    alphas=[0.02, 0.05, 0.1, 0.2, 0.3, 0.4],
)
print(prices)

# %%
# Each line is one ``alpha``. ``risk`` is the mean loss on the rows left out, and ``size`` is the mean number
# of labels in a set (``from`` and ``to`` are an approximate 95 % confidence interval). ``single`` is the
# share of sets with a single label, and ``coverage`` is the share of sets that contain the truth.

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
axes.set(xlabel="alpha", ylabel="labels in a set", xlim=(0, 0.5), ylim=(1, 5))
axes.set_title("Less risk costs more labels")
figure.show()

# %%
# Start from the sets
# -------------------
#
# Perhaps the sets are only useful if they have at most two labels on average.
# :func:`~ordinalrisk.alpha_for_size` finds the smallest ``alpha`` for this, exactly and without a grid:

trial = orisk.RiskController(ratings_off, alpha=0.2)
trial.calibrate(proba[choice], rating[choice])
alpha = orisk.alpha_for_size(trial, proba[choice], 2)
print(f"two labels on average: alpha = {float(alpha):.3f} ratings")

# %%
# Or half of the sets must have a single label:

alpha = orisk.alpha_for_singletons(trial, proba[choice], 0.5)
print(f"single labels for half of the rows: alpha = {float(alpha):.3f} ratings")

# %%
# Calibrate with your choice
# --------------------------
#
# Calibrate on rows that you did not use for the choice. One calibration works for every ``alpha``: the
# controller keeps the risk curve and looks up the threshold.

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
# - If you choose ``alpha`` on the calibration rows, there is no guarantee. Choose on other rows, as above.
# - The guarantee holds on average over calibrations. If you need it for your one calibration, add ``delta``:
#   ``RiskController(alpha=0.1, delta=0.05)``; see :doc:`/concepts/further_guarantees`.
#
# The next page shows how to present the result: :doc:`/tutorial/reading_the_report`.
