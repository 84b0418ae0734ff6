"""
Treat, refer or wait: an action for each set
============================================

A set says which grades are possible. Somebody then has to act. Here each photograph of a retina gets one of
three actions: the one with the least worst-case cost over the grades in its set.

The photographs and scores are from :doc:`/gallery/retina_grades`. The costs are made up.
"""

import matplotlib.pyplot as plt
import pandas as pd

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREY, VERMILLION

scores = pd.read_csv("../docs/scores/retinamnist.csv.gz")
proba = orisk.probabilities.softmax(scores.filter(like="logit"))
grade = scores["label"].to_numpy()
calibration, test = orisk.splitting.split_rows(len(scores), random_state=0)
controller = orisk.RiskController(alpha=0.1)
print(controller.calibrate(proba[calibration], grade[calibration]).guarantee())

# %%
# A row has the costs of an action for the grades 0 to 4. To wait is free for a healthy eye and harms a sick
# one. To treat at once is for severe grades. To refer to an expert is a middle way: it costs at most 10.

costs = {
    "wait": [0, 2, 10, 30, 60],
    "refer": [3, 3, 3, 6, 10],
    "treat": [12, 12, 8, 3, 0],
}
sets = controller.predict_set(proba[test])
decisions = sets.decide(costs, proba=proba[test])
print(decisions)

# %%
# If a set contains the true grade, the action costs at most ``worst_case``. Sets miss the true grade with
# probability at most 0.1, so the cost is above the worst case with probability at most 0.1.

cost = decisions.cost(grade[test])
above = cost > decisions.worst_case
print(f"missed: {1 - orisk.metrics.coverage(grade[test], sets):.3f}")
print(f"cost above the worst case: {above.mean():.3f}")
print(f"mean cost {cost.mean():.2f}, mean worst case {decisions.worst_case.mean():.2f}")

# %%
# The guarantee is for all rows together, not for the rows of one action. Photographs with the action *wait*
# have small sets of low grades, and a higher share of these sets misses.

table = pd.DataFrame({"action": decisions.action, "cost": cost, "above": above})
print(
    table.groupby("action").agg(rows=("cost", "size"), above=("above", "mean")).round(3)
)

# %%
# The rule is cautious: it looks only at the worst label in a set, however unlikely. If you trust the
# probabilities, the least mean cost is another choice, without a guarantee. On these rows both cost about the
# same, and less than any single action for all rows.

mean_costs = proba[test] @ pd.DataFrame(costs).to_numpy()
by_mean = pd.DataFrame(costs).to_numpy()[grade[test], mean_costs.argmin(axis=1)]
print(f"least worst case {cost.mean():.2f}, least mean cost {by_mean.mean():.2f}")
for action, row in costs.items():
    print(f"always {action}: {pd.Series(row)[grade[test]].mean():.2f}")

# %%
# ``ordinalrisk predict cal.json new.csv -o sets.csv --actions costs.csv`` does the same for files. The first
# column of ``costs.csv`` has the names of the actions, and the other columns are named after the grades.

share = pd.crosstab(grade[test], decisions.action, normalize="index")[[*costs]]
axes = share.plot.bar(stacked=True, color=[GREY, BLUE, VERMILLION], rot=0, width=0.8)
axes.set(xlabel="true grade", ylabel="share of photographs", ylim=(0, 1))
axes.legend(loc="upper center", ncols=3, bbox_to_anchor=(0.5, 1.12), frameon=False)
plt.show()
