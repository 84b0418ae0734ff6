"""
Clinical costs: a missed case against a false alarm
===================================================

Calling a sick eye healthy and calling a healthy eye sick are both wrong, and not equally bad. Three ways to
say so, from none to a table of one's own, and what each does to the intervals.

The photographs and scores are those of :doc:`/gallery/retina_grades`.
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
# A loss is a table: a row for the true grade, a column for the end of the interval that is
# nearest to it. Below the diagonal the interval lies too low, and an ill person is sent home;
# above it lies too high, and a healthy one is sent for more tests.
#
# ``under=5`` makes every step too low five times as dear as one too high. A table can say
# anything, as long as costs do not fall with the distance. This one has the cost of a needless
# visit, and of a treatment that comes too late, which is what really hurts from the fourth grade
# on.

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
# To see what changes, and not just how much is spent, all three get the same number of labels.

found = {}
for name, loss in losses.items():
    controller = orisk.RiskController(loss, alpha=0.1).calibrate(
        proba[calibration], grade[calibration]
    )
    alpha = orisk.alpha_for_size(controller, proba[test], 2.5)
    found[name] = controller.predict_set(proba[test], alpha=alpha)
    severe_missed = (found[name].upper_index < 3)[grade[test] >= 3].mean()
    print(
        f"{name:10}: {found[name].size.mean():.2f} labels, {severe_missed:.0%} of the severe called less"
    )

# %%
# Misses change sides. Fewer intervals lie below the truth and more lie above it: some healthy
# eyes are looked at again, and fewer severe ones are sent home. Under the table this goes
# furthest where it costs most.

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
axes.set_xlabel("interval below the truth  |  above the truth")
axes.set_title("Fewer sick eyes called healthy, more healthy ones looked at again")
below = [(sets.upper_index < grade[test]).mean() for sets in found.values()]
assert below[0] > below[1] >= below[2]
plt.show()

# %%
# Used for real, ``alpha`` comes first and the size follows. With ``normalize=False`` it is in the
# units of the table: here at most one needless visit's worth of harm for each patient.

controller = orisk.RiskController(orisk.CostTableLoss(table, normalize=False), alpha=1)
sets = controller.calibrate(proba[calibration], grade[calibration]).predict_set(
    proba[test]
)
cost = orisk.metrics.risk(grade[test], sets, controller.loss, confidence=0.95)
print(f"mean cost {cost}, {sets.size.mean():.2f} labels in an interval")
