r"""
A loss is a table
=================

An interval that holds the truth costs nothing. One that misses it costs something, and *you* say what. Say it
as a table: :math:`G[y, k]` is the cost when the truth is :math:`y` and the end of the interval nearest to it
is :math:`k`. If the truth is *severe* and the interval *none..mild*, look into the row *severe* at the column
*mild*.

That is all the library ever needs to know. The two losses of the paper are tables (Sections 2.3 and 2.4), and
so is the price list of a hospital.
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
    "own costs:\nyour price list": orisk.CostTableLoss(
        [[0, 1, 2, 3], [2, 0, 1, 2], [6, 3, 0, 1], [12, 10, 8, 0]]
    ),
}

# %%
# Five tables, each divided by its largest entry, so that darker is worse and 1 is the worst.

# How the picture is drawn
shades = LinearSegmentedColormap.from_list("costs", ["white", BLUE])
figure, row = plt.subplots(1, 5, figsize=(9.6, 3.4), sharey=True, layout="constrained")
figure.suptitle("Which miss hurts? Each answer is a table", x=0.01, ha="left")
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
_ = figure.supxlabel("nearest end of the interval", fontsize="medium")

# %%
# Which miss hurts?
# -----------------
#
# Take the first line that is true.
#
# 1. *There are amounts: money, days, years of life.* Write them down as they are:
#    :class:`~ordinalrisk.CostTableLoss` with ``normalize=False``.
# 2. *The labels stand at known places: ages, prices, doses.* :class:`~ordinalrisk.DivergenceLoss` with
#    ``positions=``.
# 3. *Some classes must not be missed.* :class:`~ordinalrisk.WeightedLoss` with a weight for each; or, for a
#    promise that holds for each class by itself, an ``alpha`` for each (:doc:`/guarantees`).
# 4. *Too low is worse than too high, or the other way.* :class:`~ordinalrisk.DivergenceLoss` with ``under=``
#    or ``over=``.
# 5. *A far miss is worse than a near one.* ``"divergence"``; with ``power=2`` if far ones are much worse.
# 6. *None of these, or it must be explained in one sentence.* ``"coverage"``: at most a share ``alpha`` is
#    missed.
#
# Two of them at once? The product of two tables is a table again, as in
# ``CostTableLoss(one.cost_table(5) * other.cost_table(5))``. :doc:`/tutorial/choosing_a_loss` walks through
# the choice on one data set.
#
# The loss has two jobs. It defines what ``alpha`` bounds, and it tells the interval where to grow: under
# weights an interval leans towards the classes that matter. If in doubt, calibrate with two of them and look
# at the same ten cases side by side, or let :func:`~ordinalrisk.trade_off` lay them out.
#
# Natural units
# -------------
#
# By default a table is divided by its largest entry :math:`B`, so that ``alpha`` is a share of the worst
# miss. Leave it in its units and ``alpha`` speaks them: with labels at 20, 35, 50 and 70 years, ``alpha=2``
# means that the interval is at most two years off on average.

years = orisk.DivergenceLoss(positions=[20, 35, 50, 70], normalize=False)
print(years.cost_table(4))
print("the worst miss, B:", years.bound(4))

# %%
# Two conditions
# --------------
#
# The diagonal is zero, and along each row costs never fall while moving away from it. The reason is the
# promise itself: it rests on larger intervals never costing more. When an interval grows, its nearest end
# moves towards the truth; if that could raise the cost, no threshold would be safe. A table that breaks this
# is refused, with the place:

try:
    orisk.CostTableLoss([[0, 2, 1], [1, 0, 1], [2, 1, 0]])
except ValueError as error:
    print(error)

# %%
# Symmetry is not asked for, nor equal steps, nor whole numbers. What can't be written as a table: a cost that
# depends on the case rather than on its label, and a price on long intervals. The first is a job for weights
# of rows or for groups (:doc:`/concepts/further_guarantees`); the second is what a growth rule is for
# (:doc:`/concepts/growth`).
