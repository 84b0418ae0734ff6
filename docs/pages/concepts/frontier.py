r"""
Why ``frontier`` is smallest
============================

Many growth rules keep the same promise. They differ in how many labels they spend. If the probabilities are
right, the default, ``frontier``, has the smallest expected size of all intervals that hold the point label,
at the risks that it attains. This page proves it, and checks it against every other rule there is on small
examples.

Adding labels to an interval removes risk, and each label has a price of one. Buy where a label brings most.
The catch: labels must be bought in order, outward from the point label, and a worthless one may stand before
a valuable one. Then judge them together, by what they bring on average.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np

import ordinalrisk as orisk
from ordinalrisk.display.palette import BLUE, GREY, INK, MUTED, ORANGE

# %%
# One case
# --------
#
# Write :math:`m` for the point label. For any cost table :math:`G` the model's expected loss of the interval
# :math:`[l, u]` around it falls into a part on the left and one on the right:
#
# .. math::
#    R(l, u) = H(l) + T(u), \quad H(l) = \sum_{i < l} p_i\, G[i, l], \quad
#    T(u) = \sum_{i > u} p_i\, G[i, u]
#
# so that the sides can be looked at one by one. To the right, let :math:`S(k) = T(m) - T(m + k)` be the risk
# that the first :math:`k` labels remove. Draw it against :math:`k`, and stretch a string over it: the least
# **concave majorant** :math:`\hat S`. Its slope over the :math:`k`-th label is the level of that label.
# Slopes never rise outwards, so they are levels indeed. Pooling neighbours while a later one is steeper
# ("pool adjacent violators") finds them in one pass.

p = np.array([0.02, 0.12, 0.40, 0.08, 0.38])
removed = np.cumsum([0, p[3], p[4]])
levels = orisk.FrontierGrowth().levels([p], loss="coverage")[0]
print("levels:", levels.round(2))

# %%
# To the right of the point label 2 stand 0.08 and then 0.38. Together they are worth 0.46, so 0.23 each: that
# is the level of both, and they join at once. To the left 0.12 and 0.02 join one by one.
#
# The paper's Algorithm 1 is greedy: it takes the better neighbour. Here this is label 1, for 0.12, since it
# does not see the 0.38 behind the 0.08. Theorem 2 of the paper says that this gives the shortest interval for
# any scores. It does where weighted probabilities fall off to both sides, but not here:

paper = orisk.PaperGrowth().levels([p], loss="coverage")[0]
for rule, found in (("frontier", levels), ("paper", paper)):
    sets = [np.flatnonzero(found >= tau) for tau in np.unique(found)[::-1]]
    print(rule)
    for s in sets:
        print(f"  {s[0]}..{s[-1]}  risk {1 - p[s].sum():.2f}")

# %%
# With three labels, ``frontier`` is down at a risk of 0.14 where the greedy rule still has 0.40.
#
# The picture: left, the labels to the right of the point label, with the string over the risk that they
# remove. Right, six other cases and *every* rule that there is for them. Each case has its intervals around
# the point label, a rule is one choice for each case, and each grey dot is one such rule.


# How the picture is drawn
def every_rule(proba, table, points):
    """Mean risk and mean size of each way to choose an interval around the point label for each case."""
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
    title="No rule is below it", xlabel="labels in a set, on average", ylabel="risk"
)

# %%
# The theorem
# -----------
#
# Let the probabilities be right: given :math:`X`, the label has the distribution :math:`p(X)`. A *rule*
# chooses for each case an interval that holds the point label :math:`m(X)`; it may toss coins, and need not
# be nested or have a threshold. Its expected risk is :math:`E[R]`, its expected size :math:`E[N]`, with
# :math:`N = u - l + 1`.
#
#    **Theorem.** *Let* :math:`\tau > 0`. *Of all rules, the intervals* :math:`C_\tau = \{j : e_j \ge \tau\}`
#    *of* ``frontier`` *have the least* :math:`E[R] + \tau\, E[N]`. *Hence no rule with at most the same
#    expected risk has a smaller expected size, and none with at most the same expected size has a smaller
#    expected risk.*
#
# **Proof.** Fix a case. Since :math:`R = H + T` and :math:`N = 1 + (m - l) + (u - m)`, both sides can be
# minimised separately. On the right we look for the :math:`k` with the largest :math:`S(k) - \tau k`. Let
# :math:`k^*` be the number of slopes of :math:`\hat S` that are at least :math:`\tau`. Slopes never rise, so
# :math:`\hat S(k) - \tau k` does not fall up to :math:`k^*` and falls after it: its maximum is at
# :math:`k^*`. There the slope changes, or the scale begins or ends, so the string touches: :math:`\hat S(k^*)
# = S(k^*)`. For every :math:`k` therefore
#
# .. math:: S(k) - \tau k \le \hat S(k) - \tau k \le \hat S(k^*) - \tau k^* = S(k^*) - \tau k^*
#
# and :math:`k^*` is how many labels :math:`C_\tau` has to the right of :math:`m`. The left side is the same.
# So :math:`C_\tau` has the least :math:`R + \tau N` for every case, and by taking expectations, over cases
# and coins, among all rules. Now let another rule have the expected risk :math:`r` and the expected size
# :math:`s`. Then :math:`E[R] + \tau E[N] \le r + \tau s`, that is
#
# .. math:: \tau\, (s - E[N]) \ge E[R] - r
#
# If its risk is at most ours, the right side is not negative, and so its size is not smaller. If its size is
# at most ours, the left side is not positive, and so its risk is not smaller. ∎
#
# Blocks and ties
# ---------------
#
# The theorem compares at the risks that ``frontier`` attains. It leaves some out only where the expected
# risk jumps: where a positive share of the cases has a label at one and the same level, as with coarse
# scores, or in a population of six cases. Asked for a risk inside the jump, ``frontier`` gives the lower
# end, and a rule that lets in only some of the tied labels, even half a block, may be smaller than that.
# But no rule beats a coin: the proof holds for :math:`\{j : e_j > \tau\}` with "at least" and "more than"
# exchanged, so both ends of the jump have the same least :math:`E[R] + \tau E[N]`, and so has a rule that
# tosses a coin between them. Hence, in full:
#
# - with the coin, every risk from that of single labels down towards 0 is attained, with the least expected
#   size;
# - without it, the same holds where no level has a positive share of the cases, which is everywhere if levels
#   have a continuous distribution. Blocks alone do no harm then: the labels of a block tie within one case,
#   and it takes ties *across* cases to make a jump.
#
# The coin is ``randomize=True``. And as the theorem holds at every positive threshold, it holds at the one
# that was calibrated, if that is positive.
#
# Against every rule there is
# ---------------------------
#
# The dots of the picture again, now counted: fifty random populations of six cases, with random cost tables.
# At every threshold of ``frontier``, no rule has a smaller :math:`E[R] + \tau E[N]`, and none with at most
# its risk is smaller.

n_rules = 0
for _ in range(50):
    table = np.zeros((5, 5))
    for y in range(5):  # costs that never fall outwards
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
print(f"{n_rules:,} rules, none of them better")

# %%
# A rule with coins is a mixture of rules without, so the first ``assert`` covers those too.
#
# What is not claimed
# -------------------
#
# - *With wrong probabilities any rule can win.* The theorem is about right ones. With those of a model
#   ``frontier`` is the natural bet, and :func:`~ordinalrisk.compare` tells which rule is smallest on your
#   rows. The promise on the risk needs no right probabilities, and holds for all rules.
# - *The point label is given.* Intervals that need not hold it can be shorter. But the shortest ones of
#   different risks need not be nested, and without nesting there is no promise.
#   ``orisk.FrontierGrowth(point="bayes")`` grows from another label.
# - *It is smallest on average.* Clear cases get few labels and unclear ones many, and the risk is not the
#   same for each. For more even risks there is ``"adaptive"``.
# - *Size is counted in labels.* On a scale in years or euros, a label may be wider than another.
# - *For distances there is nothing to pool.* With ``"divergence"`` of power 1 or more and equal steps, risk
#   falls ever more slowly outwards, all blocks are single labels, and the greedy *order* is right as well
#   (Algorithm 3). What still differs is the level, and with it how labels are shared out among cases.
