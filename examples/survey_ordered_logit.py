"""
Survey answers: an error of a fifth of a rating
===============================================

6,366 women rated their marriage from very poor (1) to very good (5) and answered eight other questions (Fair
1978; the table comes with statsmodels). An ordered logit predicts the rating from the other answers. Being
off by one rating is less bad than by three, so here a miss costs its distance, and the promise is in the
units of the survey: on average at most a fifth of a rating.
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
# ``normalize=False`` keeps the distances as they are: 1 is one rating. ``alpha=0.2`` then reads
# as it is said.

controller = orisk.RiskController(
    orisk.DivergenceLoss(normalize=False), alpha=0.2, classes=[1, 2, 3, 4, 5]
).calibrate(proba[calibration], rating[calibration])
sets = controller.predict_set(proba[test])
print(controller.guarantee())

# %%
# On the women who took no part in training or calibration:

distance = orisk.metrics.risk(rating[test], sets, controller.loss, confidence=0.95)
print(
    f"off by {distance} ratings on average, with {sets.size.mean():.2f} ratings in an interval"
)
assert distance.low < 0.2
sets.to_pandas().value_counts(["lower", "upper"]).rename("women").to_frame()

# %%
# How much would another promise cost? One calibration answers for every ``alpha``.

for alpha in (0.05, 0.1, 0.2, 0.3):
    size = controller.predict_set(proba[test], alpha=alpha).size
    print(f"alpha {alpha:4}: {size.mean():.2f} ratings in an interval")

# %%
# A fifth of a rating is an average over all women. Most of them are content, and their intervals
# are near the top of the scale. The few who rated their marriage low are the ones whose answer is
# missed, and by more.

axes = orisk.plots.plot_stratum_risks(
    rating[test], sets, controller.loss, by=rating[test], alpha=0.2
)
axes.set(
    xlabel="true rating",
    ylabel="mean distance in ratings",
    title="0.2 of a rating on average, far more for unhappy marriages",
)
plt.show()
by_rating = orisk.metrics.class_risk(rating[test], sets, controller.loss)
assert by_rating[0] > 0.2 > by_rating[4]

# %%
# If that is not what you want, ask for the promise in each true class, with
# ``condition_on="label"``. It costs labels, since the rating is not known when the interval is
# made; :doc:`/gallery/groups_and_classes` has more.

each = orisk.RiskController(
    controller.loss, alpha=0.2, classes=[1, 2, 3, 4, 5], condition_on="label"
)
each.calibrate(proba[calibration], rating[calibration])
longer = each.predict_set(proba[test])
print(
    "distance by rating:",
    orisk.metrics.class_risk(rating[test], longer, controller.loss).round(2),
)
print(f"ratings in an interval: {longer.size.mean():.2f}")
assert longer.size.mean() > sets.size.mean()
