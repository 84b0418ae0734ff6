"""From losses to thresholds: accumulate rows, find thresholds, say what is guaranteed.

Thresholds, the rules for combining options, and the guarantee in words belong here. Reading rows
belongs to ``execution``, their checks to ``inputs``, and growing sets to ``prediction``. These modules
never see a probability.
"""
