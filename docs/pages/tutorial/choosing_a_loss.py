r"""
Choosing a loss
===============

A loss says what it costs when the range misses the truth. It is the one thing about your work that the
library can't know. Ask yourself: **which miss hurts?**

==========================================  ==================================================
if you say                                  then it is
==========================================  ==================================================
a miss is a miss                            ``"coverage"``, the default
misses of some classes are worse            ``WeightedLoss([1, 1, 1, 2, 5])``
missing by two labels is worse than by one  ``DivergenceLoss()``, or with ``power=2``
labels are years, or euros                  ``DivergenceLoss(positions=[18, 25, 35, 50, 65],``
                                            ``normalize=False)``
a range too low is worse than one too high  ``DivergenceLoss(under=5)``
a range too high is worse                   ``DivergenceLoss(over=5)``
we have a table of costs                    ``CostTableLoss(table)``
==========================================  ==================================================

With any loss but the first, pass ``relative=True`` as well, unless ``alpha`` is in units such as
years: ``alpha`` is then a share of what could be lost, which is what most people mean. This page
takes the survey of :doc:`/tutorial/first_intervals`, shows why, and looks at what each choice
does to the ranges.
"""

import matplotlib.pyplot as plt
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, ORANGE
from ordinalrisk.selection.compare import ranked

answers = sm.datasets.fair.load_pandas().data
rating = answers.pop("rate_marriage").to_numpy(int) - 1
train, choice, later = orisk.splitting.split_folds(len(answers), 3, random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression())
model.fit(answers.iloc[train], rating[train])
proba = model.predict_proba(answers.iloc[choice])
proba_later = model.predict_proba(answers.iloc[later])

# %%
# A share of what could be lost
# -----------------------------
#
# Very poor marriages are rare: one or two in a hundred. The model hardly ever predicts one, so most
# of them are missed. You raise their weight to protect them, first to 5, then to 20, and keep
# ``alpha=0.1``. Here is what comes of it, with ``alpha`` as a loss and as a share. Most of these
# calibrations would warn of classes that they hardly cover; ``check=False`` turns that off, because the
# table shows it.

print("weight  alpha is  sets that cover: all  very poor  labels")
shown = {}
for relative in (False, True):
    for weight in (1, 5, 20):
        loss = orisk.WeightedLoss([weight, 1, 1, 1, 1])
        controller = orisk.RiskController(
            loss, alpha=0.1, relative=relative, check=False
        )
        controller.calibrate(proba, rating[choice])
        sets = controller.predict_set(proba_later)
        covered = orisk.metrics.coverage(rating[later], sets)
        rare = orisk.metrics.class_coverage(rating[later], sets)[0]
        size = sets.size.mean()
        shown[relative, weight] = covered, rare
        way = "a share" if relative else "a loss"
        print(f"{weight:6}  {way:8}  {covered:20.2f}  {rare:9.2f}  {size:6.2f}")

assert shown[False, 20][0] < 0.6 < 0.8 < shown[True, 20][0]
assert shown[True, 1][1] < shown[True, 5][1] < shown[True, 20][1]

# %%
# If ``alpha`` is a loss, a larger weight makes the sets of all other rows worse: in the end they
# are single labels, and two thirds of them miss. Weights are divided by the largest, so at weight
# 20 a miss of any other rating costs a twentieth, and an average loss of 0.1 allows a miss on every
# row. If ``alpha`` is a share, it is compared with what *could* be lost: at most 10 % of the total
# weight is missed, whatever the weights. A heavier class then uses up more of that when it is
# missed, so the sets cover it more often. With distances the promise reads "at most 10 % of the
# largest possible distance". The theorem and its proof are in :doc:`/guarantees`.

loss = orisk.WeightedLoss([20, 1, 1, 1, 1])
controller = orisk.RiskController(loss, alpha=0.1, relative=True)
controller.calibrate(proba, rating[choice])
sets = controller.predict_set(proba_later)
print(controller.guarantee())
print(
    "missed weight:",
    orisk.metrics.relative_risk(rating[later], sets, loss, confidence=0.95),
)

# %%
# The share is a mean over all classes. For a promise about each class by itself take
# ``condition_on="label"``.
#
# A loss is a table
# -----------------
#
# Whatever the words, what comes out is a table: in row ``y`` and column ``k``, the cost when the
# truth is ``y`` and the end of the range that is nearest to it is ``k``. Nothing on the diagonal,
# more when further away. Here it costs three times as much when the range lies *over* the truth,
# which is how a poor marriage is overlooked:

worried = orisk.DivergenceLoss(over=3)
worried.cost_table(5).round(2)

# %%
# By default tables are divided by their largest cost, so ``alpha`` is a share of the worst miss:
# ``very good`` for a marriage that is very poor. In this table a miss by one label costs a
# twelfth or a quarter of that, so an ``alpha`` of 0.05 looks strict and is not: more than half of
# the ranges could be one label too low. With ``relative=True`` it is a share of the worst miss of
# each row's own label. ``normalize=False`` keeps the units: one label too low costs 1, one too high
# 3, and ``alpha`` bounds their mean.
#
# Four losses side by side
# ------------------------
#
# The same model, the same rows, the same mean number of labels:
# :func:`~ordinalrisk.alpha_for_size` finds the ``alpha`` at which each loss gives 2.5 labels on
# average, so that only the *placing* of the labels differs.

losses = {
    "coverage": orisk.WeightedLoss(),
    "poor ratings weigh more": orisk.WeightedLoss([8, 4, 2, 1, 1]),
    "distance": orisk.DivergenceLoss(),
    "distance, over costs 3": worried,
}
found = {}
for name, loss in losses.items():
    controller = orisk.RiskController(loss, alpha=0.1, check=False)
    controller.calibrate(proba, rating[choice])
    alpha = orisk.alpha_for_size(controller, proba_later, 2.5)
    sets = found[name] = controller.predict_set(proba_later, alpha=alpha)
    risk = orisk.metrics.risk(rating[later], sets, loss)
    covered = orisk.metrics.coverage(rating[later], sets)
    print(f"{name:24} alpha {float(alpha):.3f}  risk {risk:.3f}  covered {covered:.2f}")

# %%
# (:func:`~ordinalrisk.metrics.risk` is told the loss: by default it counts misses.) Weights and
# asymmetric distances buy coverage of the rare poor ratings with coverage of the frequent good
# ones. That is what was asked for.

figure, panels = plt.subplots(1, 4, figsize=(8, 2.7), sharey=True, layout="constrained")
for axes, (name, sets) in zip(panels, found.items(), strict=True):
    coverage = orisk.metrics.class_coverage(rating[later], sets)
    axes.bar(range(1, 6), coverage, color=[ORANGE, ORANGE, BLUE, BLUE, BLUE])
    axes.set_title(name, fontsize=9)
    axes.set(xlabel="true rating", xticks=range(1, 6))
panels[0].set_ylabel("share covered")
figure.suptitle("The same labels, placed for another purpose", x=0.01, ha="left")
figure.show()

poor = {
    name: orisk.metrics.class_coverage(rating[later], sets)[1]
    for name, sets in found.items()
}
assert poor["poor ratings weigh more"] > poor["coverage"]
assert poor["distance, over costs 3"] > poor["distance"]

# %%
# If no sentence fits
# -------------------
#
# - You know the coverage that you want of each class: :func:`~ordinalrisk.weights_for_coverage`
#   finds the weights.
# - You want a promise for each class, not for the average: that is not a loss but a guarantee,
#   ``RiskController(condition_on="label")``. See :doc:`/guarantees`.
# - You want to see all losses with all growth rules on your own rows: ``ordinalrisk compare
#   scores.csv``, or :func:`~ordinalrisk.compare`.
#
# Choose on other rows than you calibrate with
# --------------------------------------------
#
# A loss, growth rule or ``alpha`` that was chosen on the calibration rows has no guarantee: the choice
# prefers what these rows make look good. Split the rows first, compare on one part and calibrate on
# the other:

choose, calibrate = orisk.splitting.split_rows(len(choice), random_state=0)
compared = orisk.compare(
    proba[choose],
    rating[choice][choose],
    losses={"poor ratings weigh more": losses["poor ratings weigh more"]},
    alphas=[0.1],
    relative=True,
)
for result in ranked(compared):
    print(f"{result.growth:9} {result.mean_size} labels")
best = ranked(compared)[0]
controller = orisk.RiskController(best.loss, best.alpha, best.growth, relative=True)
controller.calibrate(proba[calibrate], rating[choice][calibrate])

# %%
# The interval of a mean size is approximate. Where two of them overlap, they leave open which rule has
# smaller sets. The next question is how much risk to take: :doc:`/tutorial/choosing_alpha`.
