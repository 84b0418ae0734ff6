"""Rows in many places: the steps of each part, one exact threshold for all parts, Dask."""
