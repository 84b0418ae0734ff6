"""Several guarantees: each is kept, because a larger set never loses more.

How the sets of several calibrations become one set, and what then holds, belong here.
"""
