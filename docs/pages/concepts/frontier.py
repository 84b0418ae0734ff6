r"""
Why ``frontier`` gives the smallest sets
========================================

All growth rules keep the same guarantee, but they need different numbers of labels. The default is
``frontier``. If the probabilities are accurate, then at each risk that ``frontier`` attains, no other
intervals that contain the point label have a smaller expected size. This page proves it, and checks it on
small examples against every possible rule.

Each label that you add to a set lowers the risk and makes the set larger by one. So you want to add the
labels that lower the risk most. But you must add them in order, outwards from the point label, and a label
of little value can come before a valuable one. The solution is to judge the two together, by their mean.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREY, INK, MUTED, ORANGE

# %%
# One row
# -------
#
# Let :math:`m` be the point label. For any cost table :math:`G`, the expected loss of the set :math:`[l, u]`
# under the model is the sum of a left and a right part:
#
# .. math::
#    R(l, u) = H(l) + T(u), \quad H(l) = \sum_{i < l} p_i\, G[i, l], \quad
#    T(u) = \sum_{i > u} p_i\, G[i, u]
#
# so each side can be treated on its own. To the right, let :math:`S(k) = T(m) - T(m + k)` be the risk that
# the first :math:`k` labels remove. Draw :math:`S` against :math:`k`, and stretch a string over it. The
# string is the least **concave majorant** :math:`\hat S`. Its slope over the :math:`k`-th label is the level
# of this label. The slopes of a concave function never rise outwards, as levels require. One pass finds them:
# merge neighbours as long as a later one is steeper ("pool adjacent violators").

p = np.array([0.02, 0.12, 0.40, 0.08, 0.38])
removed = np.cumsum([0, p[3], p[4]])
levels = orisk.FrontierGrowth().levels([p], loss="coverage")[0]
print("levels:", levels.round(2))

# %%
# To the right of the point label 2 are the probabilities 0.08 and 0.38. Together they remove 0.46, so 0.23
# each. This is the level of both labels, and they join together. To the left, 0.12 and 0.02 join one by one.
#
# Algorithm 1 of the paper is greedy: it adds the better of the two neighbours. Here it adds label 1 with
# 0.12, because it does not see the 0.38 behind the 0.08. Theorem 2 of the paper says that the greedy rule
# gives the shortest set for any scores. This is true if the weighted probabilities fall to both sides, but
# not here:

paper = orisk.PaperGrowth().levels([p], loss="coverage")[0]
for rule, found in (("frontier", levels), ("paper", paper)):
    sets = [np.flatnonzero(found >= tau) for tau in np.unique(found)[::-1]]
    print(rule)
    for s in sets:
        print(f"  {s[0]}..{s[-1]}  risk {1 - p[s].sum():.2f}")

# %%
# With three labels, ``frontier`` has a risk of 0.14. The greedy rule still has 0.40.
#
# The left picture shows the labels to the right of the point label, and the string over the risk that they
# remove. The right picture shows six other rows and *every* possible rule for them. A rule chooses for each
# row one set around its point label, and each grey dot is one rule.


# How the picture is drawn
def every_rule(proba, table, points):
    """Mean risk and mean size of each way to choose a set around the point label of each row."""
    risk, size = np.zeros(1), np.zeros(1)
    K = len(table)
    for p, m in zip(proba, points, strict=True):
        ends = list(product(range(m + 1), range(m, K)))
        R = [sum(p[i] * table[i, lo] for i in range(lo)) + sum(p[i] * table[i, hi] for i in range(hi + 1, K))
             for lo, hi in ends]  # fmt: skip
        risk = np.add.outer(risk, R).ravel()
        size = np.add.outer(size, [hi - lo + 1 for lo, hi in ends]).ravel()
    return risk / len(proba), size / len(proba)


def along(levels, proba, table):
    """Mean risk and mean size of the sets of a growth rule, at each of its thresholds."""
    found = []
    for tau in np.unique(levels)[::-1]:
        inside = levels >= tau
        lo, hi = inside.argmax(axis=1), len(table) - 1 - inside[:, ::-1].argmax(axis=1)
        nearest = np.clip(np.arange(len(table)), lo[:, None], hi[:, None])
        risk = np.sum(proba * table[np.arange(len(table)), nearest], axis=1).mean()
        found.append((tau, risk, inside.sum(axis=1).mean()))
    return np.array(found)


rng = np.random.default_rng(3)
proba = rng.dirichlet(np.full(5, 0.7), size=6)
coverage = 1 - np.eye(5)
levels = orisk.FrontierGrowth().levels(proba)
risk, size = every_rule(proba, coverage, points=levels.argmax(axis=1))
ours, greedy = (
    along(levels, proba, coverage),
    along(orisk.PaperGrowth().levels(proba), proba, coverage),
)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(8.2, 3.7), width_ratios=[1, 1.25], layout="constrained"
)
left.plot(
    [0, 1, 2],
    removed,
    "o-",
    color=GREY,
    markersize=7,
    markerfacecolor=INK,
    markeredgecolor=INK,
)
left.plot([0, 2], removed[[0, 2]], color=BLUE, linewidth=2.5)
left.text(0.95, 0.26, "slope 0.23:\nthe level of both", color=BLUE, ha="right")
left.text(1.05, 0.05, "risk removed", color=INK)
left.set(title="A string over the risk removed", xlabel="labels added to the right")
left.set(xticks=[0, 1, 2], ylim=(-0.03, 0.52))
right.scatter(size, risk, s=4, color=GREY, alpha=0.3, linewidths=0)
right.plot(greedy[:, 2], greedy[:, 1], "s", color=ORANGE, markersize=6)
right.plot(ours[:, 2], ours[:, 1], "o-", color=BLUE, markersize=5, linewidth=1.5)
right.text(1.6, 0.06, "frontier", color=BLUE)
right.text(3.4, 0.36, "every rule", color=MUTED)
right.text(2.5, 0.3, "paper", color=INK)
_ = right.set(
    title="No rule is below frontier",
    xlabel="labels in a set, on average",
    ylabel="risk",
)

# %%
# The theorem
# -----------
#
# Assume that the probabilities are accurate: given :math:`X`, the label has the distribution :math:`p(X)`. A
# *rule* chooses for each row an interval that contains the point label :math:`m(X)`. It may choose at random,
# if given :math:`X` the choice is independent of the label. It need not be nested or have a threshold. Its
# expected risk is :math:`E[R]` and its expected size is :math:`E[N]`, with :math:`N = u - l + 1`.
#
#    **Theorem.** *Let* :math:`\tau > 0`. *Of all rules, the sets* :math:`C_\tau = \{j : e_j \ge \tau\}`
#    *of* ``frontier`` *have the smallest* :math:`E[R] + \tau\, E[N]`. *Hence no rule with at most the same
#    expected risk has a smaller expected size, and no rule with at most the same expected size has a
#    smaller expected risk.*
#
# **Proof.** Fix a row. Since :math:`R = H + T` and :math:`N = 1 + (m - l) + (u - m)`, we can minimise each
# side separately. On the right we look for the :math:`k` with the largest :math:`S(k) - \tau k`. Let
# :math:`k^*` be the number of slopes of :math:`\hat S` that are at least :math:`\tau`. Slopes never rise, so
# :math:`\hat S(k) - \tau k` does not fall up to :math:`k^*` and falls after it. Its maximum is at
# :math:`k^*`. There the slope changes, or the scale begins or ends, so the string touches the curve:
# :math:`\hat S(k^*) = S(k^*)`. Hence, for every :math:`k`,
#
# .. math:: S(k) - \tau k \le \hat S(k) - \tau k \le \hat S(k^*) - \tau k^* = S(k^*) - \tau k^*
#
# and :math:`k^*` is the number of labels of :math:`C_\tau` to the right of :math:`m`. The left side works in
# the same way. So :math:`C_\tau` has the smallest :math:`R + \tau N` for every row. Taking expectations over
# rows and random choices, it has the smallest one of all rules. Now let another rule have the expected risk
# :math:`r` and the expected size :math:`s`. Then :math:`E[R] + \tau E[N] \le r + \tau s`, that is
#
# .. math:: \tau\, (s - E[N]) \ge E[R] - r
#
# If the risk of the other rule is at most ours, the right side is not negative, so its size is not smaller.
# If its size is at most ours, the left side is not positive, so its risk is not smaller. ∎
#
# Blocks and ties
# ---------------
#
# The theorem is about the risks that ``frontier`` attains. It does not attain every risk: the expected risk
# jumps if a positive share of the rows has a label at the same level. This happens with coarse scores, or in
# a population of six rows. If you ask for a risk inside a jump, ``frontier`` gives the lower end. A rule that
# includes only some of the tied labels, even half a block, may then be smaller. But no rule is better than
# choosing at random between the two ends. The proof also holds for :math:`\{j : e_j > \tau\}`, with "at
# least" and "more than" exchanged. So both ends of the jump have the same smallest :math:`E[R] + \tau E[N]`,
# and so has a random choice between them. In full:
#
# - With the random choice, ``frontier`` attains every risk from that of single labels down towards 0, with
#   the smallest expected size.
# - Without it, the same is true if no level is shared by a positive share of the rows, for example if levels
#   have a continuous distribution. Blocks alone do no harm: the labels of a block tie within one row, and
#   only ties *between* rows make a jump.
#
# ``randomize=True`` makes this random choice. The theorem holds for every positive threshold. So, given the
# calibration rows, it also holds for a calibrated threshold that is positive, if the new row is independent
# of these rows. (Exchangeable rows are not enough here.)
#
# Check against every rule
# ------------------------
#
# This checks fifty random populations of six rows, with random cost tables. At every threshold of
# ``frontier``, no rule has a smaller :math:`E[R] + \tau E[N]`, and no rule with at most the same risk is
# smaller.

n_rules = 0
for _ in range(50):
    table = np.zeros((5, 5))
    for y in range(5):  # costs never fall outwards
        table[y, y + 1 :] = np.cumsum(rng.integers(0, 4, 4 - y))
        table[y, :y] = np.cumsum(rng.integers(0, 4, y))[::-1]
    table[0, 4] += 1
    proba = rng.dirichlet(np.full(5, 0.7), size=6)
    loss = orisk.CostTableLoss(table, normalize=False)
    levels = orisk.FrontierGrowth().levels(proba, loss)
    risk, size = every_rule(proba, table, points=levels.argmax(axis=1))
    n_rules += len(risk)
    for tau, our_risk, our_size in along(levels, proba, table):
        if 0 < tau < np.inf:
            assert np.all(risk + tau * size >= our_risk + tau * our_size - 1e-9)
            assert size[risk <= our_risk + 1e-12].min() >= our_size - 1e-9
print(f"{n_rules:,} rules, no better one found")

# %%
# A rule that chooses at random is a mixture of rules that do not, so the first ``assert`` covers random rules
# too.
#
# What the theorem does not say
# -----------------------------
#
# - *If the probabilities are wrong, another rule can be better.* The theorem assumes that they are accurate.
#   With the probabilities of a model, ``frontier`` is a good first choice, and :func:`~ordinalrisk.compare`
#   measures which rule is smallest on your rows. The guarantee holds for all rules, even if the probabilities
#   are wrong.
# - *The point label is fixed.* Sets that need not contain it can be smaller. But the smallest sets at
#   different risks need not be nested, and the guarantee needs nested sets.
#   ``orisk.FrontierGrowth(point="bayes")`` grows from another label.
# - *The sets are smallest on average.* Rows with a clear answer get few labels and unclear ones many, and the
#   risk differs between rows. For more even risks use ``"adaptive"``.
# - *Size is the number of labels.* On a scale in years or euros, one label can span more than another.
# - *For distances no label has to wait for a later one.* With ``"divergence"`` of power 1 or more and equal
#   steps, each further label removes no more risk than the one before, so slopes never rise outwards. Labels
#   with equal slopes still join together. The greedy *order* is right too (Algorithm 3). Only the levels
#   differ, and so does the number of labels of each row.
