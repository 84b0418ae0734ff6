r"""
Choosing a loss
===============

A loss says what it costs if the set misses the truth. It depends on your work, so you have to choose it.
Ask yourself: **which misses are bad, and how bad?**

==========================================  ==================================================
your situation                              the loss
==========================================  ==================================================
all misses are equally bad                  ``"coverage"``, the default
misses of some classes are worse            ``WeightedLoss([1, 1, 1, 2, 5])``
missing by two labels is worse than by one  ``DivergenceLoss()``, or with ``power=2``
labels are years, or euros                  ``DivergenceLoss(positions=[18, 25, 35, 50, 65],``
                                            ``normalize=False)``
a set too low is worse than one too high    ``DivergenceLoss(under=5)``
a set too high is worse                     ``DivergenceLoss(over=5)``
you have a table of costs                   ``CostTableLoss(table)``
==========================================  ==================================================

With class weights, also pass ``relative=True``: ``alpha`` is then a share of the largest loss possible for
each row's true label, and a larger weight protects its class. With distances it is a choice. Without it,
``alpha`` is a share of the largest loss in the whole table, and the same number allows more. If ``alpha`` is
in units such as years, leave it out. Using the survey from :doc:`/tutorial/first_intervals`, this page
explains why and compares the sets of several losses.
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
# A share of the possible loss
# ----------------------------
#
# Very poor marriages are rare: one or two in a hundred. The model hardly ever predicts one, so most of them
# are missed. To protect them, you raise their weight to 5 and then to 20, and keep ``alpha=0.1``. The table
# shows the result with ``alpha`` as a loss and as a share. Most of these calibrations warn about classes that
# the sets hardly ever contain. ``check=False`` turns the warning off, because the table shows the same.

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
# If ``alpha`` is a loss, a larger weight makes the sets of all other rows worse. In the end they are single
# labels, and two thirds of them miss. The reason: weights are divided by the largest one. At weight 20, a
# miss of any other rating costs a twentieth, and a mean loss of 0.1 allows a miss on every row. If ``alpha``
# is a share, it is a share of the loss *possible for each row's true label*: at most 10 % of the total weight
# is missed, whatever the weights are. A miss of a heavier class uses up more of this share, so the sets
# contain this class more often. With distances the guarantee means "on average, at most 10 % of the largest
# distance that is possible for the rows' own labels". :doc:`/guarantees` has the theorem and its proof.

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
# The share is a mean over all classes. For a guarantee for each class use ``condition_on="label"``.
#
# A loss is a table
# -----------------
#
# Each loss is a table: row ``y`` and column ``k`` hold the cost if the truth is ``y`` and the end of the set
# nearest to it is ``k``. The diagonal is zero, and the cost grows with the distance. In this example a set
# *above* the truth costs three times as much, because it overlooks a poor marriage:

worried = orisk.DivergenceLoss(over=3)
worried.cost_table(5).round(2)

# %%
# By default a table is divided by its largest cost, so ``alpha`` is a share of the worst miss in the whole
# table: ``very good`` for a very poor marriage. In this table a miss by one label costs a twelfth or a
# quarter of that. So an ``alpha`` of 0.05 looks strict but is not: 60 % of the sets could be one label too
# low (0.05 = 0.6 / 12). With ``relative=True``, ``alpha`` is a share of the worst miss of each row's own
# label. ``normalize=False`` keeps the units: one label too low costs 1, one label too high costs 3, and
# ``alpha`` limits the mean.
#
# Four losses side by side
# ------------------------
#
# All four use the same model, the same rows and the same mean number of labels.
# :func:`~ordinalrisk.alpha_for_size` finds the ``alpha`` at which a loss gives 2.5 labels on average. So only
# the *position* of the sets differs.

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
# (Pass the loss to :func:`~ordinalrisk.metrics.risk`: by default it counts misses.) Weights and asymmetric
# distances cover more of the rare poor ratings and fewer of the frequent good ones, as intended.

figure, panels = plt.subplots(1, 4, figsize=(8, 2.7), sharey=True, layout="constrained")
for axes, (name, sets) in zip(panels, found.items(), strict=True):
    coverage = orisk.metrics.class_coverage(rating[later], sets)
    axes.bar(range(1, 6), coverage, color=[ORANGE, ORANGE, BLUE, BLUE, BLUE])
    axes.set_title(name, fontsize=9)
    axes.set(xlabel="true rating", xticks=range(1, 6))
panels[0].set_ylabel("share covered")
figure.suptitle(
    "Four losses cover different ratings, with the same number of labels",
    x=0.01,
    ha="left",
)
figure.show()

poor = {
    name: orisk.metrics.class_coverage(rating[later], sets)[1]
    for name, sets in found.items()
}
assert poor["poor ratings weigh more"] > poor["coverage"]
assert poor["distance, over costs 3"] > poor["distance"]

# %%
# If none of these fits
# ---------------------
#
# - You know the coverage that you want for each class: :func:`~ordinalrisk.weights_for_coverage` finds the
#   weights.
# - You want a guarantee for each class, not on average: use ``RiskController(condition_on="label")`` with any
#   loss. See :doc:`/guarantees`.
# - You want to compare all losses and growth rules on your own rows: ``ordinalrisk compare scores.csv``, or
#   :func:`~ordinalrisk.compare`.
#
# Choose and calibrate on different rows
# --------------------------------------
#
# If you choose the loss, the growth rule or ``alpha`` on the calibration rows, there is no guarantee, because
# you pick what happens to look good on them. Split the rows first. Compare on one part and calibrate on the
# other:

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
# The confidence interval of a mean size is approximate. If two of them overlap, you cannot say which rule has
# smaller sets. The next step is to choose the risk: :doc:`/tutorial/choosing_alpha`.
