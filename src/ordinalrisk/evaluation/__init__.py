"""Guarantees and known labels: counts, estimates with intervals, verdicts.

Summaries of test rows and their comparison with a guarantee belong here. Single metrics are in ``metrics``,
the page that shows them is in ``report``, and alarms over time are in ``sequential``.
"""
