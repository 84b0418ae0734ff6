"""What a miss costs: the kinds of loss, the exact cost table, a loss in words.

A loss is a table. New kinds of loss belong here. Losses never see data: steps and totals belong to
``curves``.
"""

from ordinalrisk.losses.kinds import IntervalLoss

__all__ = ["IntervalLoss"]
