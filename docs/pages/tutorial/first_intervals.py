"""
From probabilities to prediction sets
=====================================

You have a model with ``predict_proba``. At the end of this page you have a prediction set for each row: one
or more neighbouring labels. On average, at most one set in ten misses the truth.

The data come from a survey. In 1974 a magazine asked its readers about their marriages. 6,366 women rated
theirs from *very poor* to *very good* and answered other questions: age, years married, children,
religiousness, education. The table is part of statsmodels, and the model is from scikit-learn: to run this
page, install both, ``pip install statsmodels scikit-learn``, and the library with ``pip install ".[plots]"``.
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordinalrisk as orisk

answers = sm.datasets.fair.load_pandas().data
rating = answers.pop("rate_marriage").to_numpy(int) - 1
RATINGS = ["very poor", "poor", "fair", "good", "very good"]
answers.head(3)

# %%
# Three parts
# -----------
#
# We split the rows into three parts. The first trains the model. The second, which the model has never seen,
# calibrates. The third plays the role of new rows, so that we can check the guarantee.

train, held_out = orisk.splitting.split_rows(len(answers), share=1 / 3, random_state=0)
half, other_half = orisk.splitting.split_rows(len(held_out), random_state=0)
calibration, later = held_out[half], held_out[other_half]

model = make_pipeline(StandardScaler(), LogisticRegression())
model.fit(answers.iloc[train], rating[train])
proba = model.predict_proba(answers.iloc[calibration])
proba[:3].round(2)

# %%
# The model is unsure, because these answers say little about a marriage. This is not a problem: the guarantee
# holds for any model. A weak model gets larger sets.
#
# Calibrate and predict
# ---------------------
#
# Pass rows with known labels to :meth:`~ordinalrisk.RiskController.calibrate`, and new rows to
# :meth:`~ordinalrisk.RiskController.predict_set`. The columns of the probabilities are in the order of the
# labels.

named = np.array(RATINGS)[rating]
controller = orisk.RiskController(alpha=0.1, classes=RATINGS)
controller.calibrate(proba, named[calibration])
sets = controller.predict_set(model.predict_proba(answers.iloc[later]))
print(sets[:5])

# %%
# The warning says that the sets hardly ever contain the two poorest ratings. Few women chose them, and
# ``alpha`` limits the misses of all ratings together. :doc:`choosing_a_loss` shows what to do if these
# ratings matter to you. :doc:`/reference/checks` lists the other warnings of a calibration.
#
# The controller states its guarantee in words:

print(controller.guarantee())

# %%
# ``sets`` has a ``lower`` and an ``upper`` label and a ``size`` for each row. You can convert it to a table:

sets[:5].to_pandas()

# %%
# Check the guarantee
# -------------------
#
# We know the ratings of the third part too. The share of misses should be about ``alpha``. ``confidence``
# adds a confidence interval, because chance plays a role with this many rows:

truth = named[later]
print("share of misses:", orisk.metrics.risk(truth, sets, confidence=0.95))
print("labels in a set:", round(orisk.metrics.mean_size(sets), 2))
assert orisk.metrics.risk(truth, sets, confidence=0.95).low <= 0.1

# %%
# Here are eight of these rows, with the probability of each label in the background. A disc is a rating in
# the set, and a cross is a miss:

figure, axes = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
orisk.plots.plot_intervals(
    sets, truth, model.predict_proba(answers.iloc[later]), rows=range(12, 20), ax=axes
)
axes.set_title("Eight women of the third part")
figure.show()

# %%
# What you need for your own model
# --------------------------------
#
# - The probability of each label, one column for each label, in order. :mod:`ordinalrisk.probabilities`
#   converts logits, cumulative heads and token log-probabilities.
# - A few hundred labelled rows *that the model was not trained on*, from the same population as the new rows.
#   With fewer than ``1 / alpha - 1`` rows there is no guarantee except with full sets, and a warning says so.
# - If the model is a scikit-learn estimator, :class:`~ordinalrisk.OrdinalRiskClassifier` does the split for
#   you.
#
# Here a miss by one label cost as much as a miss by four. If this does not fit your problem, continue with
# :doc:`/tutorial/choosing_a_loss`.
