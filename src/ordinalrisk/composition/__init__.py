"""Several guarantees for the same sets: each keeps its own, because a larger set never loses more.

How the sets of several calibrations become one set, and what then holds, belong here.
"""
