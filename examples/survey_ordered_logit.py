"""
Survey answers: an error of a fifth of a rating
===============================================

6,366 women rated their marriage from very poor (1) to very good (5) and answered eight other questions
(Fair 1978; the table is part of statsmodels). An ordered logit predicts the rating from the other answers.
An error of one rating is less bad than one of three. So a miss costs its distance here, and the guarantee
is in ratings: on average at most a fifth of a rating.
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm
from statsmodels.miscmodels.ordinal_model import OrderedModel

import ordinalrisk as orisk

answers = sm.datasets.fair.load_pandas().data
rating = answers.pop("rate_marriage").astype(int).to_numpy()
part = np.random.default_rng(0).permutation(len(answers)) % 3
train, calibration, test = part == 0, part == 1, part == 2

X = (answers - answers[train].mean()) / answers[train].std()
model = OrderedModel(rating[train], X[train], distr="logit").fit(
    method="bfgs", disp=False
)
proba = np.asarray(model.predict(X))
print(model.params.round(2).to_string())

# %%
# ``normalize=False`` keeps the distances as they are: 1 is one rating. So ``alpha=0.2`` is a fifth of a
# rating.

controller = orisk.RiskController(
    orisk.DivergenceLoss(normalize=False), alpha=0.2, classes=[1, 2, 3, 4, 5]
).calibrate(proba[calibration], rating[calibration])
sets = controller.predict_set(proba[test])
print(controller.guarantee())

# %%
# The result on test rows, which were used neither for training nor for calibration:

distance = orisk.metrics.risk(rating[test], sets, controller.loss, confidence=0.95)
print(
    f"off by {distance} ratings on average, with {sets.size.mean():.2f} ratings in a set"
)
assert distance.low < 0.2
sets.to_pandas().value_counts(["lower", "upper"]).rename("women").to_frame()

# %%
# Other values of ``alpha`` need more or fewer labels. One calibration works for all of them.

for alpha in (0.05, 0.1, 0.2, 0.3):
    size = controller.predict_set(proba[test], alpha=alpha).size
    print(f"alpha {alpha:4}: {size.mean():.2f} ratings in a set")

# %%
# A fifth of a rating is an average over all women. Most of them rate their marriage as good, and their sets
# are near the top of the scale. The sets of the few women with a low rating miss more often, and by more.

axes = orisk.plots.plot_stratum_risks(
    rating[test], sets, controller.loss, by=rating[test], alpha=0.2
)
axes.set(
    xlabel="true rating",
    ylabel="mean distance in ratings",
    title="0.2 of a rating on average, much more for unhappy marriages",
)
plt.show()
by_rating = orisk.metrics.class_risk(rating[test], sets, controller.loss)
assert by_rating[0] > 0.2 > by_rating[4]

# %%
# If you need more, use a guarantee for each true class with ``condition_on="label"``. It costs labels,
# because the rating of a new row is unknown; see :doc:`/gallery/groups_and_classes`.

each = orisk.RiskController(
    controller.loss, alpha=0.2, classes=[1, 2, 3, 4, 5], condition_on="label"
)
each.calibrate(proba[calibration], rating[calibration])
longer = each.predict_set(proba[test])
print(
    "distance by rating:",
    orisk.metrics.class_risk(rating[test], longer, controller.loss).round(2),
)
print(f"ratings in a set: {longer.size.mean():.2f}")
assert longer.size.mean() > sets.size.mean()
