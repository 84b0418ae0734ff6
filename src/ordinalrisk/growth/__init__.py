"""The level of each label: the growth rules, and the kernels that compute levels.

A growth rule is an order. Rules never see ``alpha``.
"""

from ordinalrisk.growth.rules import GrowthRule

__all__ = ["GrowthRule"]
