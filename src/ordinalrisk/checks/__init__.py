"""Checks of calibration rows: scores, labels and sets that their user can hardly have meant.

What a warning needs to know of the rows, how sure it must be and what it says belong here. A check never
changes a calibration. What is wrong for certain is an error and belongs to ``inputs``.
"""
