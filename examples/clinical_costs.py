"""
Clinical costs: a missed case against a false alarm
===================================================

It is wrong to call a sick eye healthy, and it is wrong to call a healthy eye sick, but the harm differs.
Here are three losses, from no difference to your own cost table, and their effect on the sets.

The photographs and scores are from :doc:`/gallery/retina_grades`.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap

import ordinalrisk as orisk
from ordinalrisk.display.palette import INK, SKY, VERMILLION

scores = pd.read_csv("../docs/scores/retinamnist.csv.gz")
proba = orisk.probabilities.softmax(scores.filter(like="logit"))
grade = scores["label"].to_numpy()
calibration, test = orisk.splitting.split_rows(len(scores), random_state=0)

# %%
# A loss is a table: a row for the true grade, and a column for the end of the set nearest to it. Below the
# diagonal the set is too low, and an ill person is sent home. Above the diagonal it is too high, and a
# healthy person gets more tests.
#
# ``under=5`` makes each step too low five times as expensive as one too high. Your own table can have any
# costs that do not fall with the distance. This one has the cost of an unnecessary visit and the cost of a
# late treatment, which is high from the fourth grade on.

table = [
    [0, 1, 1, 2, 2],
    [1, 0, 1, 1, 2],
    [4, 2, 0, 1, 1],
    [20, 15, 10, 0, 1],
    [40, 30, 20, 5, 0],
]
losses = {
    "distance": orisk.DivergenceLoss(),
    "under=5": orisk.DivergenceLoss(under=5),
    "cost table": orisk.CostTableLoss(table),
}

figure, rows = plt.subplots(1, 3, figsize=(7.2, 2.7), layout="constrained")
for axes, (name, loss) in zip(rows, losses.items(), strict=True):
    costs = loss.cost_table(5)
    axes.imshow(
        costs,
        cmap=LinearSegmentedColormap.from_list("shade", ["white", VERMILLION]),
        vmin=0,
        vmax=1,
    )
    axes.set(title=name, xticks=range(5), yticks=range(5), xlabel="nearest end")
    axes.tick_params(length=0)
rows[0].set_ylabel("true grade")
plt.show()

# %%
# All three losses get the same mean number of labels, so that you see only where the labels go.

found = {}
for name, loss in losses.items():
    controller = orisk.RiskController(loss, alpha=0.1).calibrate(
        proba[calibration], grade[calibration]
    )
    alpha = orisk.alpha_for_size(controller, proba[test], 2.5)
    found[name] = controller.predict_set(proba[test], alpha=alpha)
    severe_missed = (found[name].upper_index < 3)[grade[test] >= 3].mean()
    print(
        f"{name:10}: {found[name].size.mean():.2f} labels, {severe_missed:.0%} of the severe rated lower"
    )

# %%
# Fewer sets are below the truth and more are above it: more healthy eyes are examined again, and fewer severe
# cases are sent home. The effect is strongest for the table, at the grades with the highest costs.

# sphinx_gallery_thumbnail_number = 2
figure, axes = plt.subplots(figsize=(7.2, 2.8), layout="constrained")
for row, sets in enumerate(found.values()):
    for sign, share, colour in (
        (-1, (sets.upper_index < grade[test]).mean(), VERMILLION),
        (1, (sets.lower_index > grade[test]).mean(), SKY),
    ):
        axes.barh(row, sign * share, color=colour)
        side = "right" if sign < 0 else "left"
        axes.annotate(
            f"{share:.0%}",
            (sign * share, row),
            (4 * sign, 0),
            textcoords="offset points",
            ha=side,
            va="center",
        )
axes.axvline(0, color=INK, linewidth=1)
axes.set_yticks(range(3), list(found))
axes.set(ylim=(2.5, -0.5), xlim=(-0.26, 0.26), xticks=[])
axes.set_xlabel("set below the truth  |  above the truth")
axes.set_title("Fewer sick eyes called healthy, more healthy eyes examined again")
below = [(sets.upper_index < grade[test]).mean() for sets in found.values()]
assert below[0] > below[1] >= below[2]
plt.show()

# %%
# In practice you choose ``alpha`` first, and the size follows. With ``normalize=False``, ``alpha`` is in the
# units of the table. Here the mean cost for a patient is at most that of one unnecessary visit.

controller = orisk.RiskController(orisk.CostTableLoss(table, normalize=False), alpha=1)
sets = controller.calibrate(proba[calibration], grade[calibration]).predict_set(
    proba[test]
)
cost = orisk.metrics.risk(grade[test], sets, controller.loss, confidence=0.95)
print(f"mean cost {cost}, {sets.size.mean():.2f} labels in a set")
