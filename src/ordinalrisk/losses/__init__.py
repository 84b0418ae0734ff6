"""What a miss costs: the kinds of loss, the exact cost table, a loss in words.

A loss is a table. Losses never see data.
"""

from ordinalrisk.losses.kinds import IntervalLoss

__all__ = ["IntervalLoss"]
