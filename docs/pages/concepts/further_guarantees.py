r"""
What each further guarantee adds
================================

The plain promise is a mean over cases and over calibrations (:doc:`/concepts/promise`). Someone will ask
about a part of it: this calibration, my hospital, the severe cases, next year. For each such question there
is an option that changes *what is averaged over*, and each has its price in labels, or in rows. This page is
the map; :doc:`/guarantees` goes through each on real data, with code, tables and the theorem behind it.

.. list-table::
   :header-rows: 1
   :widths: 24 26 28 22

   * - question
     - option
     - what is averaged over
     - what it costs
   * - Does it hold for the calibration I have?
     - ``delta=0.1``
     - new cases only; calibrations hold it with probability 0.9
     - some labels, fewer with more rows
   * - For each hospital?
     - ``groups=``
     - new cases of one group
     - rows in each group; labels move between groups
   * - For each severity?
     - ``condition_on="label"``, ``alpha={..}``
     - new cases of one true class
     - rows in each class, some labels
   * - Several rows of one patient?
     - ``clusters=``
     - new patients, each by the mean of its rows
     - fewer units, so larger sets
   * - New cases of other kinds?
     - ``sample_weight=``
     - cases of the new population
     - ratios must be known or estimated; rows count less
   * - Other shares of the classes?
     - ``class_ratios=``
     - cases of the new population
     - the same
   * - Do cases change all the time?
     - :class:`~ordinalrisk.OnlineRiskController`
     - time: the mean over the sets handed out so far
     - true labels, soon after; it lags behind
   * - Is it still kept?
     - :class:`~ordinalrisk.RiskMonitor`
     - nothing; it watches, and raises an alarm
     - true labels
   * - Are the scores coarse?
     - ``randomize=True``
     - new cases, calibrations and a coin
     - equal cases may get unequal sets
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import fair

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREY, INK, MUTED, ORANGE

# %%
# What they change, and what it costs
# -----------------------------------
#
# The numbers are those that were measured for :doc:`/guarantees`, on photographs of retinas, diamonds,
# ratings of lecturers and a survey. For each question the picture takes the risk that the question is
# *about*, as a multiple of ``alpha``: that of the worst group, of the worst class, of the unluckiest tenth of
# calibrations, of the rows after a change.

# How the picture is drawn
measured = json.loads(Path("../../guarantees/numbers.json").read_text(encoding="utf-8"))


rows = []  # question and option; risk over alpha without and with it; labels in a set without and with it


def add(name, alpha, *ways):
    """A risk and a mean size, without the option and with it."""
    rows.append(
        (name, *(risk / alpha for risk, _ in ways), *(size["mean"] for _, size in ways))
    )


def unlucky(way):
    """The risk that a tenth of the calibrations exceed."""
    return np.quantile(way["risks"], 0.9), way["size"]


def worst(strata, way):
    """The highest risk of a group or class; the last entry is all of them together."""
    return max(one[way]["risk"]["mean"] for one in strata[:-1]), strata[-1][way]["size"]


def of(way):
    """The risk of all rows."""
    return way["risk"]["mean"], way["size"]


one = measured["confidence"]["losses"]["coverage"]
add(
    "unlucky calibration:  delta",
    one["alpha"],
    unlucky(one["without"]),
    unlucky(one["with"]),
)
one = measured["groups"]
add(
    "worst group:  groups",
    one["alpha"],
    *(worst(one["groups"], way) for way in ("without", "with")),
)
one = measured["classes"]
ways = ("on average", "for each class")
add(
    "worst class:  condition_on",
    one["alpha"],
    *(worst(one["classes"], way) for way in ways),
)
one = measured["clusters"][1]
ways = {way["way"]: unlucky(way) for way in one["ways"] if way["delta"]}
add("unlucky lecturers:  clusters", one["alpha"], ways["rows"], ways["clusters"])
for name, one in zip(
    ("kinds:  sample_weight", "shares:  class_ratios"),
    measured["shift"]["populations"][::3],
    strict=True,
):
    add(
        f"other {name}",
        one["alpha"],
        of(one["ways"]["none"]),
        of(one["ways"]["estimated"]),
    )
one = measured["online"]
add(
    "after a change:  online",
    one["alpha"],
    *(of(one["ways"][way]["after"]) for way in ("fixed", "online")),
)
one = measured["randomize"]
add(
    "coarse scores:  randomize",
    one["alpha"],
    *(of(one["voters"][1][way]) for way in ("without", "with")),
)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(8.4, 4.2), sharey=True, width_ratios=[1.7, 1], layout="constrained"
)
figure.suptitle(
    "Each option brings the risk it is about to alpha; most cost labels",
    x=0.01,
    ha="left",
)
for k, (_, risk, kept, size, larger) in enumerate(rows):
    for axes, before, after in ((left, risk, kept), (right, size, larger)):
        axes.plot([before, after], [k, k], color=GREY, linewidth=2, zorder=1)
        axes.plot(before, k, "o", color=ORANGE, markersize=8)
        axes.plot(after, k, "o", color=BLUE, markersize=8)
left.axvline(1, color=INK, linestyle="--", linewidth=1.2, zorder=0)
left.text(1.04, -0.75, "alpha", va="center", color=MUTED)
left.text(rows[2][1], 1.5, "without", ha="center", color=INK)
left.text(rows[2][2] - 0.05, 1.5, "with", ha="right", color=INK)
left.set(
    xlabel="the risk in question, as a multiple of alpha",
    xlim=(0.5, 4),
    ylim=(len(rows) - 0.5, -1.1),
)
left.set_yticks(range(len(rows)), [name for name, *_ in rows])
left.tick_params(axis="y", length=0, labelcolor=INK)
right.set(xlabel="labels in a set, on average")
right.tick_params(axis="y", length=0)

# %%
# Without the option, the orange dot, the risk in question is above ``alpha``: in the first four lines
# although the plain promise is kept, in the next three because the cases are no longer those of the
# calibration. With it, the blue dot, it is at ``alpha`` or close by. The last line is the other way round:
# coarse scores leave risk unused, and a coin turns it into smaller sets.

for name, risk, kept, _, _ in rows[:-1]:
    assert kept < min(risk, 1.1), name
assert rows[-1][4] < rows[-1][3]

# %%
# What a controller says
# ----------------------
#
# Every controller states in words what it promises, and on which condition. Here on a survey in which women
# rated their marriage, with how religious they are as the group.

answers = fair.load_pandas().data
rating = answers.pop("rate_marriage").to_numpy().astype(int)
train, calibration = orisk.splitting.split_rows(len(rating), random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression())
model.fit(answers.iloc[train], rating[train])
proba, y = model.predict_proba(answers.iloc[calibration]), rating[calibration]
faith = answers["religious"].to_numpy()[calibration].astype(int)
scale = [1, 2, 3, 4, 5]

plain = orisk.RiskController(alpha=0.1, classes=scale, check=False)
print(plain.calibrate(proba, y).guarantee())

# %%

confident = orisk.RiskController(alpha=0.1, delta=0.1, classes=scale, check=False)
print(confident.calibrate(proba, y).guarantee())

# %%

grouped = orisk.RiskController(alpha=0.1, classes=scale, check=False)
print(grouped.calibrate(proba, y, groups=faith).guarantee())

# %%

by_class = orisk.RiskController(alpha=0.1, condition_on="label", classes=scale)
print(by_class.calibrate(proba, y).guarantee())

# %%
# Which to take
# -------------
#
# Start from the person who will ask, and take only what they ask for: every option splits the rows or holds
# back more, and few rows make wide sets. An auditor asks for ``delta``. A doctor asks for classes. Whoever
# serves several sites asks for groups. ``clusters`` is not a matter of taste: use it whenever rows come in
# bunches. Weights and online control answer a population that differs, and don't help where it doesn't.
#
# Options combine where a theorem covers both, and are refused where none does, with the list of what is
# possible. In depth, in this order: :doc:`/guarantees`.
