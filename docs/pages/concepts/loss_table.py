r"""
A loss is a table
=================

A set that contains the truth costs nothing. A set that misses it has a cost, and you decide how much. You
write the costs as a table: :math:`G[y, k]` is the cost if the truth is :math:`y` and :math:`k` is the end
of the set nearest to it. For example, if the truth is *severe* and the set is *none..mild*, the cost is in
row *severe* and column *mild*.

The library needs nothing else. The two losses of the paper are tables (Sections 2.3 and 2.4), and so are
the costs of a hospital.
"""

import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, INK

names = ["none", "mild", "moderate", "severe"]
losses = {
    "coverage:\na miss is a miss": orisk.WeightedLoss(),
    "weighted:\nby the class missed": orisk.WeightedLoss([1, 1, 1, 3]),
    "divergence:\nby the distance": orisk.DivergenceLoss(),
    "asymmetric:\ntoo low is worse": orisk.DivergenceLoss(under=3),
    "own costs:\nyour own table": orisk.CostTableLoss(
        [[0, 1, 2, 3], [2, 0, 1, 2], [6, 3, 0, 1], [12, 10, 8, 0]]
    ),
}

# %%
# Each of the five tables is divided by its largest entry. Darker cells are worse misses, and 1 is the worst.

# How the picture is drawn
shades = LinearSegmentedColormap.from_list("costs", ["white", BLUE])
figure, row = plt.subplots(1, 5, figsize=(9.6, 3.4), sharey=True, layout="constrained")
figure.suptitle("Five losses, each of them a table", x=0.01, ha="left")
for axes, (title, loss) in zip(row, losses.items(), strict=True):
    table = loss.cost_table(4)
    axes.imshow(table, cmap=shades, vmin=0, vmax=1.1)
    for y in range(4):
        for k in range(4):
            text = (
                "0"
                if y == k
                else f"{table[y, k]:.2f}".removeprefix("0").removesuffix(".00")
            )
            axes.text(
                k,
                y,
                text,
                ha="center",
                va="center",
                color="white" if table[y, k] > 0.6 else INK,
                fontsize=9,
            )
    axes.set_title(title, fontsize="small")
    axes.set_xticks(range(4), names, rotation=60, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(4), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
row[0].set_ylabel("truth")
_ = figure.supxlabel("nearest end of the set", fontsize="medium")

# %%
# Choose a loss
# -------------
#
# Take the first line that fits.
#
# 1. *You know the costs: money, days, years of life.* Enter them as they are:
#    :class:`~ordinalrisk.CostTableLoss` with ``normalize=False``.
# 2. *The labels are numbers: ages, prices, doses.* :class:`~ordinalrisk.DivergenceLoss` with ``positions=``.
# 3. *Some classes must not be missed.* :class:`~ordinalrisk.WeightedLoss` with a weight for each class. If
#    you want a separate guarantee for each class, set an ``alpha`` for each (:doc:`/guarantees`).
# 4. *A set below the truth is worse than a set above it, or the reverse.*
#    :class:`~ordinalrisk.DivergenceLoss` with ``under=`` or ``over=``.
# 5. *A far miss is worse than a near one.* ``"divergence"``, with ``power=2`` if far misses are much worse.
# 6. *None of these, or you must explain it in one sentence.* ``"coverage"``: on average, at most a fraction
#    ``alpha`` of the sets miss the truth.
#
# You can combine two losses. The product of two tables is again a table: ``CostTableLoss(one.cost_table(5) *
# other.cost_table(5))``. :doc:`/tutorial/choosing_a_loss` shows the choice on a data set.
#
# The loss does two things. It defines what ``alpha`` limits, and it steers how the sets grow: with weights, a
# set grows towards the heavier classes. If you are unsure, calibrate with two losses and compare the sets of
# ten rows. :func:`~ordinalrisk.trade_off` compares losses over several values of ``alpha``.
#
# Natural units
# -------------
#
# By default a table is divided by its largest entry :math:`B`, so ``alpha`` is a share of the worst miss in
# the whole table. (With ``relative=True`` it is a share of the worst miss possible for each row's true label:
# :doc:`/guarantees`.) With ``normalize=False`` the table keeps its units, and ``alpha`` has the same units.
# With labels at 20, 35, 50 and 70 years, ``alpha=2`` means that the set is off by at most two years on
# average.

years = orisk.DivergenceLoss(positions=[20, 35, 50, 70], normalize=False)
print(years.cost_table(4))
print("the worst miss, B:", years.bound(4))

# %%
# Two conditions
# --------------
#
# The diagonal is zero, and costs never fall as you move away from it along a row. The guarantee needs this: a
# larger set must never cost more. When a set grows, its nearest end moves towards the truth. If that could
# raise the cost, the loss would not be monotone in the threshold, and the proof of the guarantee would fail.
# A table that breaks this rule raises an error that names the entry:

try:
    orisk.CostTableLoss([[0, 2, 1], [1, 0, 1], [2, 1, 0]])
except ValueError as error:
    print(error)

# %%
# A table need not be symmetric, evenly spaced or in whole numbers. A table cannot express a cost that depends
# on more than the label and the set, or a cost of large sets. Row weights do not express the first: they are
# likelihood ratios of another population. You can give rows of different kinds thresholds of their own with
# ``groups`` (:doc:`/concepts/further_guarantees`). The second is the job of a growth rule
# (:doc:`/concepts/growth`).
