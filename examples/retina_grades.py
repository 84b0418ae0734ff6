"""
Retina grades: severe ones weigh more
=====================================

A network grades photographs of retinas, from no retinopathy to proliferative retinopathy. A missed severe
case does more harm than a missed mild one, so each true grade gets a weight. With the same mean number of
labels, the sets then cover more of the severe cases.

The scores are logits of a ResNet-34 for the 520 photographs of RetinaMNIST (MedMNIST v2, CC BY 4.0) that it
was not trained on.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREY, ORANGE

scores = pd.read_csv("../docs/scores/retinamnist.csv.gz")
proba = orisk.probabilities.softmax(scores.filter(like="logit"))
grade = scores["label"].to_numpy()
names = ["No DR", "Mild", "Moderate", "Severe", "Proliferative"]
calibration, test = orisk.splitting.split_rows(len(scores), random_state=1)
print(dict(zip(names, np.bincount(grade).tolist(), strict=True)))

# %%
# We calibrate twice on the same photographs. In one calibration every miss has the same weight, in the other
# the upper grades have up to four times the weight. Weights are divided by the largest one, so ``alpha`` is a
# share of the worst miss.

rows = proba[calibration], grade[calibration]
plain = orisk.RiskController(alpha=0.2).calibrate(*rows)
weighted = orisk.RiskController(
    orisk.WeightedLoss([1, 1, 2, 4, 4]), alpha=0.1
).calibrate(*rows)
print(weighted.guarantee())

# %%
# The two values of ``alpha`` measure different things. For a fair comparison, both get the same number of
# labels: :func:`~ordinalrisk.alpha_for_size` finds the ``alpha`` at which sets have a given size on average.

severe_first = weighted.predict_set(proba[test])
equal = plain.predict_set(
    proba[test],
    alpha=orisk.alpha_for_size(plain, proba[test], severe_first.size.mean()),
)
for name, sets in (("equal weights", equal), ("severe first", severe_first)):
    risk = orisk.metrics.risk(grade[test], sets, weighted.loss, confidence=0.95)
    print(f"{name}: {sets.size.mean():.2f} labels in a set, weighted loss {risk}")

# %%
# The weights move labels to the grades with the largest weights. The mild grade has the lowest weight and
# loses most of them.

before, after = (
    orisk.metrics.class_coverage(grade[test], sets) for sets in (equal, severe_first)
)
place = np.arange(5)
figure, axes = plt.subplots(layout="constrained")
axes.vlines(place, before, after, color=GREY, linewidth=6, alpha=0.6)
axes.plot(place, before, "o", color=ORANGE, markersize=10)
axes.plot(place, after, "o", color=BLUE, markersize=10)
axes.annotate(
    "equal weights",
    (0, before[0]),
    (9, 0),
    textcoords="offset points",
    color=ORANGE,
    va="center",
)
axes.annotate(
    "severe first",
    (0, after[0]),
    (9, 0),
    textcoords="offset points",
    color=BLUE,
    va="center",
)
axes.set_xticks(
    place,
    [
        f"{name}\nweight {weight}"
        for name, weight in zip(names, (1, 1, 2, 4, 4), strict=True)
    ],
)
axes.set(
    ylabel="share covered",
    ylim=(0, 1),
    title="The same number of labels, more of them for severe grades",
)
severe = grade[test] >= 3
assert (
    severe_first.contains(grade[test])[severe].mean()
    > equal.contains(grade[test])[severe].mean()
)
assert (before - after).argmax() == 1
plt.show()

# %%
# Few photographs are proliferative, so its two dots are imprecise. You can do the same with the command line
# from a file, without Python: ``examples/retina_grader.sh``.

print(f"{(grade[test] == 4).sum()} proliferative photographs in the test half")
