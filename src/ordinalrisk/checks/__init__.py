"""Checks of calibration rows: warnings about scores, labels and sets that look like mistakes.

The data, the evidence and the text of each warning belong here. A check never changes a calibration. Certain
mistakes are errors and belong to ``inputs``.
"""
