"""
From probabilities to intervals
===============================

You have a model with ``predict_proba``. At the end of this page you have a range of labels for each case, and
on average at most one range in ten misses the truth.

The data are answers to a survey. In 1974 a magazine asked its readers about their marriages, and 6,366 women
rated theirs from *very poor* to *very good* and told a few things more: age, years married, children,
religiousness, education. The table comes with statsmodels.
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
# One part of the rows trains the model. Another, which the model has never seen, calibrates. A
# third plays the women who come later, so that we can look whether the promise is kept.

train, held_out = orisk.splitting.split_rows(len(answers), share=1 / 3, random_state=0)
half, other_half = orisk.splitting.split_rows(len(held_out), random_state=0)
calibration, later = held_out[half], held_out[other_half]

model = make_pipeline(StandardScaler(), LogisticRegression())
model.fit(answers.iloc[train], rating[train])
proba = model.predict_proba(answers.iloc[calibration])
proba[:3].round(2)

# %%
# The model is not very sure of anything: nothing in these answers gives a marriage away. That is
# no obstacle. What follows holds for any model; a weak one gets wider ranges.
#
# Two lines
# ---------
#
# Rows with known labels go into :meth:`~ordinalrisk.RiskController.calibrate`, new ones into
# :meth:`~ordinalrisk.RiskController.predict_set`. The columns of the probabilities are in the
# order of the labels.

named = np.array(RATINGS)[rating]
controller = orisk.RiskController(alpha=0.1, classes=RATINGS)
controller.calibrate(proba, named[calibration])
sets = controller.predict_set(model.predict_proba(answers.iloc[later]))
print(sets[:5])

# %%
# The warning says that the sets hardly ever cover the two poorest ratings. Few women chose them,
# and ``alpha`` limits the misses of all ratings together. :doc:`choosing_a_loss` shows what to do
# if you need these cases. :doc:`/reference/checks` lists what else a calibration warns of.
#
# And what is promised, in words that can be passed on:

print(controller.guarantee())

# %%
# ``sets`` has a ``lower`` and an ``upper`` label, a ``size``, and becomes a table when asked:

sets[:5].to_pandas()

# %%
# Is it true?
# -----------
#
# The later women rated their marriages too. The share of ranges that miss should be about
# ``alpha``, give or take what chance does to this many rows, which ``confidence`` puts around it:

truth = named[later]
print("share missed:", orisk.metrics.risk(truth, sets, confidence=0.95))
print("labels in a range:", round(orisk.metrics.mean_size(sets), 2))
assert orisk.metrics.risk(truth, sets, confidence=0.95).low <= 0.1

# %%
# Eight of them, with the probability of each label in the background. A disc is a rating inside
# the range, a cross one that was missed:

figure, axes = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
orisk.plots.plot_intervals(
    sets, truth, model.predict_proba(answers.iloc[later]), rows=range(12, 20), ax=axes
)
axes.set_title("Eight women who were not calibrated with")
figure.show()

# %%
# What you need for your own model
# --------------------------------
#
# - The probabilities of each class, one column a label, in order. Logits, cumulative heads and
#   token log-probabilities become probabilities with :mod:`ordinalrisk.probabilities`.
# - Some hundred labelled rows *that the model was not trained on*, drawn the same way as the
#   cases to come. With fewer than ``1 / alpha - 1`` of them nothing can be certified, and a
#   warning says so.
# - If the model is a scikit-learn estimator, :class:`~ordinalrisk.OrdinalRiskClassifier` does the
#   holding out.
#
# A miss by one label counted as much here as a miss by four. If that is not what you care about,
# go on with :doc:`/tutorial/choosing_a_loss`.
