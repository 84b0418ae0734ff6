"""The level of each label: the growth rules, and the kernels that compute levels.

Growth rules, point labels and levels, on every device, belong here. Rules never see ``alpha``: thresholds
belong to ``calibration``, and sets to ``prediction``.
"""

from ordinalrisk.growth.rules import GrowthRule

__all__ = ["GrowthRule"]
