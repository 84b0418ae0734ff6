"""Total loss by threshold: the steps of each loss, the risk curve, the strata that have their own.

Exact sums of losses belong here: in memory, on a GPU, or in parts that stay on other machines. ``alpha`` and
budgets belong to ``calibration``.
"""
