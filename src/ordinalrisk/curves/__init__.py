"""Total loss by threshold: the steps of each loss, the risk curve, the strata that have their own."""
