"""Growth rules as computations on rows of probabilities, one module for each backend.

Each backend has the same four functions, ``point_labels``, ``levels``, ``intervals`` and ``steps``, and gives
the same bits: float64 arithmetic in one stated order, nothing fused, nothing reassociated.
"""

SUM_TOLERANCE = 1e-5
"""How far a row's sum may be from 1: the rounding of a float32 softmax, with room for many classes."""


class InvalidRow(Exception):  # noqa: N818 - it is a finding of the kernels, the error is raised from it
    """A row of ``proba`` is no probability vector; ``args[0]`` is its number."""
