"""
Age from a photograph, with an error in years
=============================================

A network sorts 17,000 faces into twenty age groups of five years. A risk of "0.05 of the scale" is hard to
interpret. If you give each group its age in years, ``alpha`` is in years too. How wide must the sets be for
a mean error of one, two or five years?

The scores are logits of a ResNet-34 on photographs of UTKFace that it was not trained on. Like UTKFace,
they are for non-commercial research only.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, SKY, VERMILLION

scores = pd.read_csv("../docs/scores/utkface.csv.gz")
proba = orisk.probabilities.softmax(scores.filter(like="logit"))
group = scores["label"].to_numpy()
calibration, test = orisk.splitting.split_rows(len(scores), random_state=0)

# %%
# ``positions`` are the first years of the groups, and ``normalize=False`` keeps the unit years. The loss of a
# set is the number of years between the true group and the nearest end of the set.

years = np.arange(0, 100, 5)
loss = orisk.DivergenceLoss(positions=years, normalize=False)
classes = [f"{year}-{year + 4}" for year in years]
controller = orisk.RiskController(loss, alpha=2, classes=classes)
names = np.array(classes)[group]
controller.calibrate(proba[calibration], names[calibration])
sets = controller.predict_set(proba[test])
print(controller.guarantee())
print(
    f"on the other half: {orisk.metrics.risk(names[test], sets, loss, confidence=0.95)} years"
)

# %%
# One calibration works for every ``alpha``, so a loop gives the whole trade-off. A set of ``s`` groups spans
# ``5 s`` years.

alphas = np.linspace(0.25, 5, 20).round(2)
spans = [
    5 * controller.predict_set(proba[test], alpha=alpha).size.mean() for alpha in alphas
]
figure, axes = plt.subplots(layout="constrained")
axes.plot(alphas, spans, color=BLUE, linewidth=2.5)
for alpha in (0.5, 1, 2, 4):
    span = 5 * controller.predict_set(proba[test], alpha=alpha).size.mean()
    axes.plot(alpha, span, "o", color=BLUE, markersize=8)
    axes.annotate(
        f"{span:.0f} years wide", (alpha, span), (8, 6), textcoords="offset points"
    )
axes.set(
    xlabel="alpha: years off, on average",
    ylabel="years in a set",
    xlim=(0, 5.2),
    ylim=(0, None),
)
axes.set_title("A smaller error needs wider sets")
plt.show()

# %%
# Here are eighty faces ordered by age. Their sets are off by two years on average. The sets of young faces
# are small, because a toddler looks different from a schoolchild. The sets of adults are larger.

chosen = np.random.default_rng(3).choice(len(test), 80, replace=False)
chosen = chosen[np.lexsort([sets.centroid[chosen], group[test][chosen]])]
few, truth = sets[chosen], years[group[test][chosen]] + 2.5
inside = few.contains(names[test][chosen])
# sphinx_gallery_thumbnail_number = 2
figure, axes = plt.subplots(figsize=(7.2, 4), layout="constrained")
x = np.arange(80)
axes.vlines(
    x, years[few.lower_index], years[few.upper_index] + 5, color=SKY, linewidth=5
)
axes.plot(x[inside], truth[inside], "o", color=BLUE, markersize=4)
axes.plot(x[~inside], truth[~inside], "X", color=VERMILLION, markersize=7)
axes.set(
    xlabel="faces, by age",
    ylabel="age",
    xticks=[],
    title="Eighty faces: sets off by two years on average",
)
child, adult = group[test] < 2, (group[test] >= 6) & (group[test] < 12)
assert sets.size[child].mean() < sets.size[adult].mean()
print(f"years in a set: {5 * sets.size[child].mean():.0f} below ten")
print(f"years in a set: {5 * sets.size[adult].mean():.0f} from thirty to sixty")
plt.show()
