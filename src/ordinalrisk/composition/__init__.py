"""Several guarantees: each is kept, because a larger set never loses more.

The modules here make one set from the sets of several calibrations, and say what then holds.
"""
