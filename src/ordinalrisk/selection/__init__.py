"""Which alpha, loss and rule: searches and comparisons before a calibration.

Choices made on rows that do not calibrate belong here. The losses and rules themselves belong to ``losses``
and ``growth``, and verdicts on test rows to ``evaluation``.
"""
