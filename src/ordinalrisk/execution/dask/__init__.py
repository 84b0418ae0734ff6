"""Work on Dask: partitions are calibrated, predicted and counted where they are.

The kernels are the same as on one machine, so the results are the same bit for bit.
"""
