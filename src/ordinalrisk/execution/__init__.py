"""Where rows are read: one fold over parts, in this thread, ahead in another one, or on Dask.

Reading batches into a summary, and finding thresholds if the steps stay on other machines, belong here. The
content of a summary belongs to its own room (``calibration``, ``evaluation``), and file formats to ``files``.
"""
