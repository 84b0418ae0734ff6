"""Rows in many partitions, on one machine or on many: calibrated, predicted and counted where they lie.

The scheduler is Dask's, the kernels are those of one machine, and so is every bit of the results.
"""
