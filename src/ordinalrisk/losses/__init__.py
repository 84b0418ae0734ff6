"""Define what a miss costs: the kinds of loss, the exact cost table, and losses in words.

A loss is a table. New kinds of loss belong here. Losses never see data; steps and total losses belong to
``curves``.
"""

from ordinalrisk.losses.kinds import IntervalLoss

__all__ = ["IntervalLoss"]
