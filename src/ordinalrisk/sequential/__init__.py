"""Rows one after the other: online control, and a monitor that raises an alarm.

Code that learns from each label as it arrives belongs here. Fixed calibrations belong to ``calibration``, and
tests of one batch of labels to ``evaluation``.
"""
