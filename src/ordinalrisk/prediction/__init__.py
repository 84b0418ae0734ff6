"""Prediction sets: intervals of labels, their ends by row or by label, actions, their view in a notebook.

How a set follows from levels and thresholds, and what it offers to users, belong here. Levels belong to
``growth``, thresholds to ``calibration``, and how good the sets are to ``evaluation``.
"""
