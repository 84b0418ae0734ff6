"""From losses to thresholds: accumulate rows, keep a promise, say what is guaranteed.

A calibration is a number. It sees levels and losses, and never a probability.
"""
