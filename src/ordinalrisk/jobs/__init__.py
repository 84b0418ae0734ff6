"""Whole jobs over files: calibrate, predict and evaluate, on this machine or on a cluster."""
