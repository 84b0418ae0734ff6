r"""
Stronger guarantees
===================

The standard guarantee holds on average over rows and over calibrations (:doc:`/concepts/promise`). You may
need more: a guarantee for your one calibration, for your hospital, for severe cases or for next year. For
each of these there is an option. It changes *what the mean is taken over*, and it costs labels or needs more
rows. This page gives an overview. :doc:`/guarantees` shows each option on real data, with code, tables and
the theorem behind it.

.. list-table::
   :header-rows: 1
   :widths: 24 26 28 22

   * - question
     - option
     - mean over
     - what it costs
   * - Does it hold for my calibration?
     - ``delta=0.1``
     - new rows only; it holds for a calibration with probability at least 0.9
     - some labels, fewer with more rows
   * - Does it hold for each hospital?
     - ``groups=``
     - new rows of one group
     - rows in each group; some groups gain labels and others lose them
   * - Does it hold for each true class?
     - ``condition_on="label"``, ``alpha={..}``
     - new rows of one true class
     - rows in each class, some labels
   * - Are there several rows of one patient?
     - ``clusters=``
     - new patients, each by the mean of its rows
     - fewer units, so larger sets
   * - Are the new rows of other kinds?
     - ``sample_weight=``
     - rows of the new population
     - ratios must be known or estimated; rows count less
   * - Do the shares of the classes change?
     - ``class_ratios=``
     - rows of the new population
     - the same
   * - Do the rows change all the time?
     - :class:`~ordinalrisk.OnlineRiskController`
     - time: all sets returned so far
     - true labels, soon after; it reacts with a delay
   * - Does it still hold?
     - :class:`~ordinalrisk.RiskMonitor`
     - nothing; it monitors, and raises an alarm
     - true labels
   * - Are the scores coarse?
     - ``randomize=True``
     - new rows, calibrations and a random choice
     - equal rows may get different sets
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
# What the options change, and what they cost
# -------------------------------------------
#
# The picture uses the numbers of :doc:`/guarantees`, measured on photographs of retinas, diamonds, ratings of
# lecturers and a survey. For each question it shows the risk in question as a multiple of ``alpha``: the risk
# of the worst group, of the worst class, of the unluckiest tenth of calibrations, or of the rows after a
# change.

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
    """The highest risk of a group or class; the last entry is for all rows."""
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
    "Each option but the last lowers the risk in question to about alpha; most cost labels",
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
# Orange dots show the risk without the option. It is above ``alpha``. In the first three lines the standard
# guarantee holds anyway, because it is about another mean. The orange dot of the fourth line is a calibration
# with ``delta=0.1`` that treats the ratings of a lecturer as independent. They are not, so this calibration
# has no guarantee: 28 % of such calibrations are above ``alpha`` (:doc:`/guarantees`). In the next three
# lines the new rows differ from the calibration rows. Blue dots show the risk with the option, at ``alpha``
# or close to it. The last line is the opposite case: coarse scores leave risk unused, and a random choice
# uses it for smaller sets.

for name, risk, kept, _, _ in rows[:-1]:
    assert kept < min(risk, 1.1), name
assert rows[-1][4] < rows[-1][3]

# %%
# What a controller reports
# -------------------------
#
# Every controller states its guarantee and the condition for it. Here is the survey in which women rated
# their marriage. The groups are how religious they are.

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
# Which option to use
# -------------------
#
# Start from the people who use the sets, and add only what they need. Most options split the rows, count
# fewer of them or reserve more of the budget, and with few rows the sets get large. An auditor needs
# ``delta``. A doctor needs a guarantee for each class. If you serve several sites, you need groups. If
# several rows come from one unit, such as a patient, you always need ``clusters``. Weights and online control
# are for a population that changes; without a change they do not help.
#
# You can combine options if a theorem covers the combination. Other combinations raise an error that lists
# what is possible. :doc:`/guarantees` describes the options in the same order, and
# :doc:`/maintaining/promises` has the assumptions, the theorem and the test of each.
